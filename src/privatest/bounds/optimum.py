r"""The best private test on a finite domain, exactly private and runnable if its notion is made of lines.

A test is its probability g(x) of "null" for each histogram x of the records (``theory/coupling.py`` shows that
classes of labels and histograms lose nothing). The best one solves

.. math:: \max_g \sum_x (P^n(x) - Q^n(x))\, g(x), \quad g(x) \le h(g(x'))

over all neighbours x, x'; at a level alpha it minimises :math:`\sum_x Q^n(x)\, g(x)` among those with
:math:`\sum_x P^n(x)\, g(x) \ge 1 - \alpha`. For pure, approx and tv h consists of straight lines and this is a linear
program; for the other notions h is concave, and lines that touch it where the last solution violated it are added until
no violation exceeds 1e-9 (Kelley 1960): every program on the way bounds the best test from above.

One of the best tests is *monotone*: moving a record to a class of larger ratio never lowers g. To see this, split the
classes into slivers of equal Q-mass, ordered by ratio, and sort g along one record after the other. Under Q the mean of
g stays, under P it can only grow; sorting preserves every inequality between neighbours, because both sides are sorted
alike and h increases; and averaging over the slivers of each class, h being concave, gives a monotone test on the
classes again. With the monotone inequalities added, of each set of mutual neighbours r + e_1, ..., r + e_k only the
outermost two need the privacy inequalities: k + 1 inequalities for each r instead of 2k(k - 1), which HiGHS solves many
times faster. (If Q has no mass but P has, the class has infinite ratio and is last in the order already.)
Two classes need no program: ``bounds/two_point.py``.

The solution becomes a :class:`HistogramTest`: a fraction for each histogram, an exact coin, and privacy verified in
integers. With E a rational below e^epsilon, every two neighbouring histograms have

.. math:: g(h) \le E\, g(h') + \delta, \qquad 1 - g(h') \le E\, (1 - g(h)) + \delta,

delta = 0 for epsilon-DP, E = 1 for stability in total variation. A curved h has no such line, and no such
test: no table of rationals provably meets it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest import numbers
from privatest.bounds.lower_bound import records_bound
from privatest.bounds.two_point import Chains
from privatest.charge_before_release import Draw
from privatest.decision import Release
from privatest.decision.problem import Goal
from privatest.decision.run import Decision, Design, hidden_fact
from privatest.errors import InvalidInput, PrivatestError
from privatest.facts import Described, Fact, Probability
from privatest.hypotheses import DiscretePair, make_pair
from privatest.numbers import Floats, Integers, Number
from privatest.privacy import Approx, Notion, Pure, RandomSource, Tv, make_notion
from privatest.privacy.bulk_draws import draw_rows
from privatest.privacy.notion import Line, exact_line, notion_words, tangent
from privatest.privacy.randomness import bernoulli
from privatest.scores import Cells, IntegerCells, LabelCells
from privatest.theory.coupling import Classes, Histograms, merge, solved_program

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.engines import Need, Records


# Numerators are below 2^53, so that every JSON reader keeps them exact.
DENOMINATOR = 1 << 50
MOST_HISTOGRAMS = 5_000_000
CURVED = "Its advantage is known; for a test to run use design(), or pure, approx or tv."


@dataclass(frozen=True, eq=False)
class HistogramTest(Design[Release]):
    r"""Decide P ("null") with probability ``numerators[h] / DENOMINATOR`` for the histogram h of the records.

    Guarantees: private in the sense of its notion (replace one record, n public), verified exactly over all
    neighbouring histograms whenever such an object is made; ``alpha`` and ``beta`` are exact to 1e-12.

    Attributes:
        cells: the labels or integers of the domain.
        members: the class of each cell, then the class of a record that makes no sense, which is fixed at design
            time: that whose ratio is nearest to 0.
        null_law, alternative_law: mass of each class under P and under Q.
        numerators: probability of "null" for each histogram of classes, in lexicographic order, in units of
            1/DENOMINATOR.
        notion: pure, approx or tv, with its budget.
        n: number of records.
        name: name of the test, shown in releases.
        null, alternative: short descriptions of P and Q.
        neighbours: which pairs of data sets the guarantee compares: "replace".
    """

    FORMAT: ClassVar[str] = "privatest/histogram-test/1"
    KIND: ClassVar[str] = "histogram test"

    cells: Cells
    members: Integers
    null_law: Floats
    alternative_law: Floats
    numerators: Integers
    notion: Notion
    n: int
    name: str = "optimum"
    null: str = "P"
    alternative: str = "Q"
    neighbours: str = "replace"

    def __post_init__(self) -> None:
        for array in (self.members, self.null_law, self.alternative_law, self.numerators):
            array.setflags(write=False)
        laws = self.null_law, self.alternative_law
        fits = (
            isinstance(self.cells, LabelCells | IntegerCells)
            and len(self.members) == self.cells.count + 1
            and laws[0].shape == laws[1].shape
            and 0 <= self.members.min() <= self.members.max() < len(laws[0])
            and all(np.all(law >= 0) and abs(math.fsum(law) - 1) < 1e-9 for law in laws)
            and self.n >= 1
            and len(self.numerators) <= MOST_HISTOGRAMS
        )
        if not fits:
            raise InvalidInput("The cells, classes, laws and probabilities of the test do not fit together.")
        if self.neighbours != "replace":
            raise InvalidInput(f"neighbours={self.neighbours!r} must be 'replace'.")
        if len(self.numerators) != self.histograms.count:
            raise InvalidInput(
                f"{self.histograms.count} histograms of n={self.n} records need as many probabilities, "
                f"not {len(self.numerators)}."
            )
        if self.numerators.min() < 0 or self.numerators.max() > DENOMINATOR:
            raise InvalidInput(f"Probabilities must lie between 0 and {DENOMINATOR} / {DENOMINATOR}.")
        if exact_line(self.notion) is None:
            raise InvalidInput(f"{self.notion} has a curved h, which no table of fractions provably meets. {CURVED}")
        if not self.is_private():
            raise InvalidInput(
                f"The probabilities allow a privacy loss of {self.largest_log_ratio():.9g}, more than "
                f"{notion_words(self.notion)}. Move them towards 1/2."
            )

    @property
    def epsilon(self) -> float:
        """Privacy loss of one run, if the notion bounds it."""
        return float(self.notion.epsilon)

    @property
    def privacy(self) -> Any:
        """The notion of stability that every run meets."""
        return self.notion

    @property
    def private(self) -> bool:
        """True: construction fails for a test that is not private."""
        return True

    @cached_property
    def histograms(self) -> Histograms:
        """The histograms to which the probabilities belong."""
        return Histograms(len(self.null_law), self.n)

    @cached_property
    def _extremes(self) -> tuple[Integers, Integers]:
        """Least and largest numerator of each set of mutual neighbours in which they differ."""
        among = self.numerators[self.histograms.rows]
        low, high = among.min(axis=1), among.max(axis=1)
        return low[low < high], high[low < high]

    def is_private(self) -> bool:
        """Whether both inequalities hold for all neighbours, in exact arithmetic, with a rational below e^epsilon."""
        line = exact_line(self.notion)
        assert line is not None, "made for a curved h"
        low, high = (ends.astype(object) for ends in self._extremes)
        # Everything is multiplied by the line's denominators, so that all numbers are whole.
        common = math.lcm(line.slope.denominator, line.height.denominator)
        top, more = int(line.slope * common), int(line.height * common) * DENOMINATOR
        null_kept = np.all(high * common <= low * top + more)
        return bool(null_kept and np.all((DENOMINATOR - low) * common <= (DENOMINATOR - high) * top + more))

    def largest_log_ratio(self) -> float:
        """Return the largest log-ratio of the probabilities of either decision over all neighbours."""
        low, high = (ends.astype(np.float64) for ends in self._extremes)
        if len(low) == 0:
            return 0.0
        with np.errstate(divide="ignore"):
            null = np.log(high) - np.log(low)
            alternative = np.log(DENOMINATOR - low) - np.log(DENOMINATOR - high)
        return float(max(null.max(), alternative.max()))

    def probability(self, histogram: Iterable[int]) -> Fraction:
        """Probability of "null" for the numbers of records in each class.

        Args:
            histogram: numbers of records in each class, n in all.
        """
        counts = np.array([list(histogram)], dtype=np.int64)
        fits = counts.shape[1] == self.histograms.classes and counts.min() >= 0 and counts.sum() == self.n
        if not fits:
            raise InvalidInput(
                f"histogram={counts[0].tolist()} must be {self.histograms.classes} counts that sum to n={self.n}."
            )
        return Fraction(int(self.numerators[self.histograms.rank(counts)[0]]), DENOMINATOR)

    @cached_property
    def alpha(self) -> float:
        """Type I error: probability of "alternative" under P."""
        law = self.histograms.law(self.null_law)
        return math.fsum((law * ((DENOMINATOR - self.numerators) / DENOMINATOR)).tolist())

    @cached_property
    def beta(self) -> float:
        """Type II error: probability of "null" under Q."""
        law = self.histograms.law(self.alternative_law)
        return math.fsum((law * (self.numerators / DENOMINATOR)).tolist())

    @property
    def advantage(self) -> float:
        """1 - alpha - beta."""
        return 1.0 - self.alpha - self.beta

    @property
    def price(self) -> Fraction | Notion | None:
        """Epsilon, exactly, or the notion."""
        return self.notion.price

    @property
    def need(self) -> Need:
        """One row of each person."""
        from privatest.engines import Need  # planning needs no engine

        return Need()

    @property
    def outcome(self) -> type[Release]:
        """A release that carries the decision only."""
        return Release

    def question(self) -> dict[str, Any]:
        """Return the whole test."""
        return {"test": self.to_dict()}

    @property
    def record_cells(self) -> Cells:
        """The labels or integers of the domain."""
        return self.cells

    def check(self, records: Records) -> None:
        """Check the type and the number of the records."""
        from privatest.engines.records import check_count, counting_score  # planning needs no engine

        records.check(counting_score(self.cells))
        check_count(records.count(), self.n)

    def draw(self, records: Records, source: RandomSource) -> Draw:
        """Return the decision, by an exact coin of the histogram's probability."""
        counts = np.zeros(self.histograms.classes, dtype=np.int64)
        np.add.at(counts, self.members, records.histogram(self.cells, partial(draw_rows, source)))
        numerator = int(self.numerators[self.histograms.rank(counts[None, :])[0]])
        return "null" if bernoulli(numerator, DENOMINATOR, source) else "alternative"

    def release(self, draw: Decision, *, simulated: bool = False) -> Release:
        """Return a release that carries the decision only."""
        return Release(
            decision=draw,
            statistic=None,
            pvalue=None,
            epsilon=self.epsilon,
            n=self.n,
            test=self.name,
            neighbours=self.neighbours,
            simulated=simulated,
            privacy=None if isinstance(self.notion, Pure) else self.notion.text,
        )

    @property
    def chances(self) -> Floats:
        """Probability of "null" for each histogram."""
        return self.numerators / DENOMINATOR

    def plot(self, ax: Axes | None = None, *, release: Release | None = None) -> Axes:
        """Draw the laws of the histogram's log ratio under P and Q, and the probability of "null" there."""
        from privatest import pictures

        return pictures.histogram_test(self, ax, release=release)

    @property
    def title(self) -> str:
        """Names the test."""
        return f"Histogram test {self.name!r} of {self.null} against {self.alternative}"

    def facts(self) -> list[Fact]:
        """Return the question and the exact error rates."""
        return [
            Fact("null", self.null, "the null hypothesis P"),
            Fact("alternative", self.alternative, "the alternative Q"),
            Fact("test", self.name, "method that chose its probabilities"),
            *(
                [Fact("epsilon", self.epsilon, "privacy loss of one run")]
                if isinstance(self.notion, Pure)
                else [Fact("privacy", self.notion.text, "notion that one run meets")]
            ),
            Fact("n", self.n, "records, public"),
            Fact("alpha", Probability(self.alpha), "type I error: alternative under P; exact"),
            Fact("beta", Probability(self.beta), "type II error: null under Q; exact"),
            Fact("advantage", self.advantage, "1 - alpha - beta"),
            Fact("classes", self.histograms.classes, "of records of equal ratio"),
            Fact("histograms", self.histograms.count, "each with its own probability of saying null"),
            hidden_fact(self.neighbours, persons=False),
        ]

    def __hash__(self) -> int:
        return hash((self.name, self.notion, self.n, self.numerators.tobytes()))

    def __repr__(self) -> str:
        return (
            f"HistogramTest({self.name!r}, null={self.null}, alternative={self.alternative}, "
            f"{notion_words(self.notion)}, n={self.n}, {self.histograms.classes} classes of records, "
            f"{self.histograms.count} histograms, neighbours={self.neighbours!r})"
        )


MOST_VARIABLES = 100_000
"""Largest number of variables of a program; it takes a quarter of a minute to a minute."""
LONGEST_TABLE = 20_000_000
"""Largest table of n + 1 probabilities for two classes that fits comfortably into memory."""
VIOLATION = 1e-9
"""Largest violation of a curved h that is accepted."""
MOST_ROUNDS = 60
_ELSEWHERE = "Use lower_bound() for what no private test can beat, and design() for one that comes close."


@dataclass(frozen=True)
class Optimum(Described):
    """The best private test, repaired to exact privacy, and its distance from the best possible.

    Attributes:
        runnable: the test; None if its notion is not made of lines, so that no table of fractions provably meets it.
        alpha, beta: its error rates, exact to 1e-12 if there is a test.
        bound: no private test on n records has a larger advantage (at a level: a larger power).
        n, privacy: number of records and notion of stability.
        method: "closed form" (two classes of labels), "linear program" or "tangent cuts".
        level: the largest type I error allowed; None: the advantage is the largest.
        null, alternative: short descriptions of P and Q.
    """

    runnable: HistogramTest | None
    alpha: float
    beta: float
    bound: float
    n: int
    privacy: Notion
    method: str
    level: float | None
    null: str
    alternative: str

    @property
    def test(self) -> HistogramTest:
        """The test itself."""
        if self.runnable is None:
            raise InvalidInput(f"{self.privacy} has a curved h, which no table of fractions provably meets. {CURVED}")
        return self.runnable

    @property
    def epsilon(self) -> float:
        """The privacy loss, if the notion bounds it."""
        return float(self.privacy.epsilon)

    @property
    def advantage(self) -> float:
        """1 - alpha - beta."""
        return 1.0 - self.alpha - self.beta

    @property
    def power(self) -> float:
        """1 - beta."""
        return 1.0 - self.beta

    @property
    def gap(self) -> float:
        """Cost of rounding and repair: bound - advantage (at a level: bound - power)."""
        return self.bound - (self.advantage if self.level is None else self.power)

    @property
    def title(self) -> str:
        """Names the test and its level."""
        at = "" if self.level is None else f" at level {self.level:g}"
        return f"The best private test of {self.null} against {self.alternative}{at}"

    def facts(self) -> list[Fact]:
        """Return the facts of the test, and the bound that no private test exceeds."""
        if self.runnable is not None:
            facts = self.runnable.facts()
        else:
            facts = [
                Fact("null", self.null, "the null hypothesis P"),
                Fact("alternative", self.alternative, "the alternative Q"),
                Fact("privacy", self.privacy.text, "notion that it meets"),
                Fact("n", self.n, "records, public"),
                Fact("alpha", Probability(self.alpha), "type I error: alternative under P"),
                Fact("beta", Probability(self.beta), "type II error: null under Q"),
                Fact("advantage", self.advantage, "1 - alpha - beta"),
            ]
        most = "advantage" if self.level is None else "power at this level"
        return [
            *facts,
            Fact("level", self.level, "the largest type I error allowed"),
            Fact("bound", self.bound, f"no private test has a larger {most}"),
            Fact("gap", self.gap, f"cost of rounding and repair: bound less {most}"),
            Fact("method", self.method),
        ]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw :attr:`test`."""
        return self.test.plot(ax)

    def __repr__(self) -> str:
        best = f"advantage={self.advantage:.9f}"
        if self.level is not None:
            best = f"power={self.power:.9f}, level={self.level:g}"
        gap = max(self.gap, 0.0)
        return f"Optimum({best}, n={self.n}, {notion_words(self.privacy)}, method={self.method!r}, gap={gap:.1e})"


def optimum(
    null: Any,
    alternative: Any,
    *,
    epsilon: Number | None = None,
    privacy: Any = None,
    n: int,
    alpha: float | None = None,
) -> Optimum:
    """Return the best private test of P against Q on n records; finite domains only.

    Args:
        null, alternative: P and Q.
        epsilon, privacy: the notion of stability: ``epsilon=1`` is ``privacy="pure(1)"``.
        n: number of records.
        alpha: the largest type I error allowed; the power is then maximised, as by Neyman and Pearson. None: the
            advantage is maximised.

    >>> optimum([0.6, 0.4], [0.4, 0.6], epsilon=1, n=29)
    Optimum(advantage=0.677428013, n=29, epsilon=1, method='closed form', gap=...)
    >>> optimum([0.6, 0.4], [0.4, 0.6], privacy="tv(0.1)", n=43, alpha=0.05)
    Optimum(power=0.628920643, level=0.05, n=43, privacy=tv(0.1), method='closed form', gap=...)
    """
    notion = make_notion(epsilon, privacy)
    n = numbers.positive_integer(n=n)
    level = None if alpha is None else numbers.probability(alpha=alpha)
    pair = make_pair(null, alternative)
    classes = merge(pair, _ELSEWHERE)
    line = exact_line(notion)
    described: dict[str, Any] = {
        "n": n,
        "privacy": notion,
        "level": level,
        "null": pair.null.describe(),
        "alternative": pair.alternative.describe(),
    }
    if classes.count == 2:
        _refuse(n + 1, LONGEST_TABLE, f"n={n} records of two classes need a table of {n + 1} probabilities")
        problem = Chains(n, float(classes.p[1]), float(classes.q[1]), notion)
        bound, at = _two_points(problem, level)
        method = "closed form"
        if line is None:
            errors = problem.errors(at)
        else:
            numerators = _staircase(problem, at, line, level)
    else:
        program = Program(classes, notion, n, level)
        g, bound = program.solved()
        method = "tangent cuts" if line is None else "linear program"
        if line is None:
            g = program.private_near(g)
            errors = float(program.laws[0] @ (1 - g)), float(program.laws[1] @ g)
        else:
            numerators = _repaired(g, program, line)
    test = None
    if line is not None:
        assert isinstance(pair, DiscretePair)
        labelled = pair.kind == "labels"
        test = HistogramTest(
            cells=LabelCells(pair.labels) if labelled else IntegerCells(pair.first, int(pair.last[-1])),
            members=np.append(classes.members, classes.odd),
            null_law=classes.p.copy(),
            alternative_law=classes.q.copy(),
            numerators=numerators,
            notion=notion,
            n=n,
            null=pair.null.describe(),
            alternative=pair.alternative.describe(),
        )
        errors = test.alpha, test.beta
    return Optimum(runnable=test, alpha=errors[0], beta=errors[1], bound=bound, method=method, **described)


def optimum_sample_size(
    null: Any,
    alternative: Any,
    *,
    epsilon: Number | None = None,
    privacy: Any = None,
    advantage: float | None = None,
    alpha: float | None = None,
    beta: float | None = None,
) -> int:
    """Return the smallest n at which some private test meets the goal; so does the best test on any larger n.

    Args:
        null, alternative, epsilon, privacy: as for :func:`privatest.optimum`.
        advantage, alpha, beta: as for :func:`privatest.lower_bound`.

    >>> optimum_sample_size([0.6, 0.4], [0.4, 0.6], epsilon=1)
    29
    >>> optimum_sample_size("bernoulli(0.4)", "bernoulli(0.6)", privacy="gdp(1)")
    27
    """
    notion, goal = make_notion(epsilon, privacy), Goal.of(advantage=advantage, alpha=alpha, beta=beta)
    pair = make_pair(null, alternative)
    classes = merge(pair, _ELSEWHERE)
    first = records_bound(pair, notion, goal)
    if classes.count == 2:  # the bound is exact
        return first
    target = goal.advantage if goal.advantage is not None else 1 - (goal.beta or 0.0)
    return numbers.first_true(lambda n: Program(classes, notion, n, goal.alpha).reaches(target), first)


def _two_points(problem: Chains, level: float | None) -> tuple[float, float]:
    """Return the best value and its threshold, in rungs of the problem's chains."""
    if level is not None:
        beta, at = problem.beta_at(level)
        return 1 - beta, at
    return problem.best()


def _staircase(problem: Chains, at: float, line: Line, level: float | None) -> Integers:
    """The chain through its start, for N = n, ..., 0 records of the second class, rounded so that it stays private.

    From the start outwards each number is the least, or the largest, that the last one allows. At a level the start
    is increased until the type I error is at most the level.
    """
    n = problem.n
    count, (p, _) = problem.start(at)
    start = round(p * DENOMINATOR)
    if isinstance(problem.notion, Pure) and level is None:  # the middle step 1/(1 + E) exactly, without doubles
        top, bottom = line.slope.numerator, line.slope.denominator
        start = -(-DENOMINATOR * bottom // (top + bottom)) if p < 0.5 else DENOMINATOR * top // (top + bottom)
    numerators = _chain(n, count, start, line)
    if level is not None:
        law = Histograms(2, n).law(np.array([1 - problem.x, problem.x]))
        while start < DENOMINATOR and math.fsum((law * ((DENOMINATOR - numerators) / DENOMINATOR)).tolist()) > level:
            start = min(start + max(DENOMINATOR >> 44, 1), DENOMINATOR)
            numerators = _chain(n, count, start, line)
    return numerators


def _chain(n: int, count: int, start: int, line: Line) -> Integers:
    """Numerators for N = n, ..., 0: ``start`` at N = count, which may lie outside, and the extremes that it allows."""
    up, down = [start], [start]
    while len(up) <= n - count and (more := line.most(up[-1], DENOMINATOR)) != up[-1]:
        up.append(more)
    while len(down) <= count and (less := line.least(down[-1], DENOMINATOR)) != down[-1]:
        down.append(less)
    away = np.arange(n, -1, -1) - count
    above, below = np.array(up, dtype=np.int64), np.array(down, dtype=np.int64)
    return np.where(away >= 0, above[np.clip(away, 0, len(up) - 1)], below[np.clip(-away, 0, len(down) - 1)])


def _refuse(size: int, most: int, what: str) -> None:
    if size > most:
        raise InvalidInput(f"{what}; at most {most} are handled. {_ELSEWHERE}")


@dataclass(frozen=True, eq=False)
class Program:
    """The program of the best test on n records; at a level, of the most powerful test."""

    classes: Classes
    notion: Notion
    n: int
    level: float | None = None

    @cached_property
    def histograms(self) -> Histograms:
        """The histograms, one for each variable."""
        k, n = self.classes.count, self.n
        variables, constraints = Histograms(k, n).count, (k + 1) * math.comb(n + k - 2, k - 1)
        program = f"a linear program of {variables} variables and {constraints} constraints"
        _refuse(variables, MOST_VARIABLES, f"n={n} records of {k} classes need {program}")
        return Histograms(k, n)

    @cached_property
    def laws(self) -> tuple[Floats, Floats]:
        """Laws of the histograms under P and under Q."""
        return self.histograms.law(self.classes.p), self.histograms.law(self.classes.q)

    @property
    def gain(self) -> Floats:
        """Coefficients of g in the objective."""
        return self.laws[0] - self.laws[1] if self.level is None else -self.laws[1]

    @property
    def constant(self) -> float:
        """Constant term of the objective."""
        return 0.0 if self.level is None else 1.0

    @cached_property
    def ends(self) -> tuple[Integers, Integers]:
        """The outermost two histograms of each set of mutual neighbours."""
        rows = self.histograms.rows
        return rows[:, 0], rows[:, -1]

    def solved(self, target: float | None = None) -> tuple[Floats, float]:
        """Return an optimal g up to the solver's tolerance, and an upper bound on the value of every private test.

        If h is curved, no cuts are added once the bound is below ``target``, or g, made private, reaches it.
        """
        line = _float_line(self.notion)
        if line is not None:
            g, bound = self._solved_under(_Cuts.everywhere(self, [line]))
            return g, bound + self.constant
        cuts = _Cuts.everywhere(self, [_tangent(self.notion, p) for p in _first_points(self.notion)])
        for _ in range(MOST_ROUNDS):
            g, bound = self._solved_under(cuts)
            excess = self._excess(g)
            value, most = self._value(self.private_near(g, excess)), bound + self.constant
            done = most - value <= VIOLATION or float(excess.max(initial=0.0)) <= VIOLATION
            if done or (target is not None and (most < target or value >= target)):
                return g, most
            cuts = cuts.more(self, np.flatnonzero(excess > VIOLATION / 2), g)
        raise PrivatestError(f"The program of n={self.n} records was not solved to {VIOLATION:g}. Use a smaller n.")

    def reaches(self, target: float) -> bool:
        """Whether some private test has at least this value."""
        return self.solved(target)[1] >= target

    def _solved_under(self, cuts: _Cuts) -> tuple[Floats, float]:
        """Return the best g under these inequalities and an upper bound on its value, by a linear program."""
        least = None if self.level is None else (self.laws[0], 1.0 - self.level)
        return solved_program(self.gain, self.histograms, (cuts.high, cuts.low), (cuts.a, cuts.b, cuts.c), least)

    def _excess(self, g: Floats) -> Floats:
        """Return the violation of h by each set of neighbours."""
        values, place = np.unique(g[self.ends[0]], return_inverse=True)
        steps = np.array([self.notion.step(value, 1 - value)[0] for value in values.tolist()])
        return np.asarray(g[self.ends[1]] - steps[place])

    def _value(self, g: Floats) -> float:
        return float(self.gain @ g) + self.constant

    def private_near(self, g: Floats, excess: Floats | None = None) -> Floats:
        """Return a private test close to g, which violates h by ``excess``.

        Shrinking towards 1/2 by a share s leaves of a violation v at most (1 - s) v - s (h(1/2) - 1/2): h is concave.
        """
        among = g[self.histograms.rows]
        order = float(np.max(among.max(axis=1) - g[self.ends[1]], initial=0.0))
        broken = self._excess(g) if excess is None else excess
        v = max(float(broken.max(initial=0.0)), 0.0) + 2 * order + 1e-15
        share = v / (v + self.notion.step(0.5, 0.5)[0] - 0.5)
        return shrunk(self, g, share)


def shrunk(program: Program, g: Floats, share: float) -> Floats:
    """Return g moved towards 1/2 by a share; at a level, first mixed with "always null" to keep its type I error."""
    if program.level is not None:
        alpha = float(program.laws[0] @ (1 - g))
        allowed = max(program.level - share / 2 - 1e-13, 0.0) / (1 - share)
        if alpha > allowed:
            g = 1 - (1 - g) * (allowed / alpha)
    return np.asarray((1 - share) * g + share / 2)


@dataclass(frozen=True, eq=False)
class _Cuts:
    """Inequalities a g(high) + b g(low) <= c, one in each row."""

    high: Integers
    low: Integers
    a: Floats
    b: Floats
    c: Floats

    @classmethod
    def everywhere(cls, program: Program, lines: list[tuple[float, float]]) -> _Cuts:
        """Return the inequalities of each line and its mirror image, for every set of neighbours."""
        low, high = program.ends
        size = len(low)
        return cls._joined(
            [cls._of_lines(low, high, np.full(size, slope), np.full(size, height)) for slope, height in lines]
        )

    @classmethod
    def _of_lines(cls, low: Integers, high: Integers, slope: Floats, height: Floats) -> _Cuts:
        """Return the cuts high <= slope low + height and 1 - low <= slope (1 - high) + height.

        A row with large entries is divided by them: the same inequality, better scaled.
        """
        scale = np.maximum(slope / LARGEST_ENTRY, 1.0)
        one, by = np.ones(len(low)) / scale, slope / scale
        return cls(
            np.concatenate([high, high]),
            np.concatenate([low, low]),
            np.concatenate([one, by]),
            np.concatenate([-by, -one]),
            np.concatenate([height / scale, (slope - 1 + height) / scale]),
        )

    @classmethod
    def _joined(cls, parts: list[_Cuts]) -> _Cuts:
        return cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))

    def more(self, program: Program, broken: Integers, g: Floats) -> _Cuts:
        """Return these cuts and, for each of these sets of neighbours, a tangent at the point where it violates h."""
        low, high = program.ends[0][broken], program.ends[1][broken]
        points, place = np.unique(np.clip(g[low], LEAST_POINT, 1 - LEAST_POINT), return_inverse=True)
        lines = np.array([_tangent(program.notion, point) for point in points.tolist()])[place]
        return self._joined([self, self._of_lines(low, high, lines[:, 0], lines[:, 1])])


LARGEST_ENTRY = 1e3
"""Largest entry of a row, as the solver's tolerance is that of the whole row."""
LEAST_POINT = 1e-12
"""The smallest point of contact with an h that is steep at 0."""


def _tangent(notion: Notion, p: float) -> tuple[float, float]:
    """Slope and height of the line that touches a curved h at p."""
    q, slope = tangent(notion, p, 1 - p)
    return slope, q - slope * p


def _float_line(notion: Notion) -> tuple[float, float] | None:
    """Return the slope and the height of the line of a notion that consists of lines; None for another notion."""
    if isinstance(notion, Pure | Approx):
        return math.exp(min(notion.epsilon, 300.0)), float(notion.delta) if isinstance(notion, Approx) else 0.0
    return (1.0, float(notion.eta)) if isinstance(notion, Tv) else None


def _first_points(notion: Notion) -> list[float]:
    """Return the first points of contact with h; with their mirror images they cover it."""
    low = notion.balanced[0]
    return [low, low / 3, low / 30, low / 1000]


def _repaired(g: Floats, program: Program, line: Line) -> Integers:
    """Return a private test close to g, which is nearly private, in units of 1/DENOMINATOR.

    Shrinking towards 1/2 by a share s leaves of a violation v at most (1 - s) v - s ((E - 1)/2 + delta). So with v the
    largest violation, rounding included, s = v/((E - 1)/2 + delta + v) is enough.
    """
    among = g[program.histograms.rows]
    low, high = among.min(axis=1), among.max(axis=1)
    e, height = float(min(line.slope, Fraction(10**30))), float(line.height)  # a larger slope changes nothing
    violation = max(float(np.max(high - e * low - height)), float(np.max(e * high - low)) - (e - 1) - height, 0.0)
    # Rounding to the lattice and the doubles above move each side by at most this.
    violation += (1 + e) * (1.0 / DENOMINATOR + 4e-16)
    share = violation / ((e - 1) / 2 + height + violation)
    return np.rint(shrunk(program, g, share) * DENOMINATOR).astype(np.int64)
