r"""A test that knows the histogram of the records: any private decision rule on a finite domain.

The probability of "null" is a fraction for each histogram, the coin is exact, and privacy is verified in
integers: with E a rational below e^epsilon, every two neighbouring histograms have

.. math:: g(h) \le E\, g(h') + \delta, \qquad 1 - g(h') \le E\, (1 - g(h)) + \delta,

delta = 0 for epsilon-DP, E = 1 for stability in total variation. A notion whose h is curved has no such line, and no
test of this kind: a table of rationals cannot meet it provably.

The best private test of all on a finite domain: exactly private and runnable where its notion is made of lines.

A test is its probability g(x) of "null" for each histogram x of the records (``theory/wasserstein.py`` shows that
classes of labels and histograms lose nothing). The best one solves

.. math:: \max_g \sum_x (P^n(x) - Q^n(x))\, g(x), \quad g(x) \le h(g(x'))

over all neighbours x, x'; at a level alpha it minimises :math:`\sum_x Q^n(x)\, g(x)` among those with
:math:`\sum_x P^n(x)\, g(x) \ge 1 - \alpha`. For pure, approx and tv h is made of straight lines and this is a linear
program; for the others h is concave, and lines that touch it where the last solution broke it are added until none is
broken by more than 1e-9 (Kelley 1960): every program on the way bounds the best test from above.

One of the best is *monotone*: moving a record to a class of larger ratio never lowers g. For split the classes into
slivers of equal Q-mass, ordered by ratio, and sort g along one record after the other. Under Q the mean of g stays,
under P it can only grow; sorting keeps every inequality between neighbours, for both sides are sorted alike and h
increases; and averaging over the slivers of each class, h being concave, makes a monotone test on the classes again.
With the monotone inequalities added, of each set of mutual neighbours r + e_1, ..., r + e_k only the outermost two need
the privacy inequalities: k + 1 inequalities for each r instead of 2k(k - 1), which HiGHS solves many times faster.
(Where Q has no mass but P has, the class has infinite ratio and is the top of the order already.)

Two classes need no program: ``bounds/two_point.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest import numbers
from privatest.bounds.lower_bound import records_bound
from privatest.bounds.two_point import Chains, TwoPoint
from privatest.charge import Draw
from privatest.decision import Release
from privatest.decision.problem import Goal
from privatest.decision.run import Decision, Design, hidden_fact
from privatest.documents import fraction_from_json, texts_from_json, wholes_from_json
from privatest.errors import InvalidDocument, InvalidInput, PrivatestError
from privatest.facts import Described, Fact, Probability
from privatest.hypotheses import DiscretePair, Pair, make_pair
from privatest.numbers import Floats, Integers, Number
from privatest.privacy import Approx, Notion, Pure, RandomSource, Tv, as_notion, make_notion
from privatest.privacy.canonical import notion_words
from privatest.privacy.draws import draw_rows
from privatest.privacy.notions import Line, exact_line, tangent
from privatest.privacy.randomness import bernoulli
from privatest.scores import IntegerCells, LabelCells
from privatest.scores.score import cells_from_dict
from privatest.theory.wasserstein import UNITS, Classes, Histograms, Wasserstein, merge, solved_program

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.engines import Need, Records


FORMAT = "privatest/histogram-test/1"
# Numerators stay below 2^53: every JSON reader keeps them whole.
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
        members: the class of each cell, then the class that counts for a record that makes no sense: fixed at
            design time, the class whose ratio is nearest to 0.
        null_law, alternative_law: mass of each class under P and under Q.
        numerators: probability of "null" for each histogram of classes, in lexicographic order, in units of
            1/DENOMINATOR.
        notion: pure, approx or tv, with its budget.
        n: number of records.
        name: what a release says it came from.
        null, alternative: short descriptions of P and Q.
        neighbours: which pairs of data sets the guarantee compares: "replace".
    """

    FORMAT: ClassVar[str] = FORMAT
    KIND: ClassVar[str] = "histogram test"

    cells: LabelCells | IntegerCells
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

    @classmethod
    def of_pair(
        cls, pair: Pair, classes: Classes, numerators: Integers, notion: Notion, n: int, name: str
    ) -> HistogramTest:
        """The test on the domain of a pair whose classes are ``classes``.

        Args:
            pair: P and Q on their common domain, which is finite.
            classes: cells of the domain that are told apart, see ``members``.
            numerators, notion, n, name: as for :class:`HistogramTest`.
        """
        assert isinstance(pair, DiscretePair)
        labelled = pair.kind == "labels"
        cells = LabelCells(pair.labels) if labelled else IntegerCells(pair.first, int(pair.last[-1]))
        members = np.append(classes.members, classes.odd)
        return cls(
            cells,
            members,
            classes.p.copy(),
            classes.q.copy(),
            numerators,
            notion,
            n,
            name,
            pair.null.describe(),
            pair.alternative.describe(),
        )

    @property
    def epsilon(self) -> float:
        """Privacy loss of one run, where the notion bounds it."""
        return float(self.notion.epsilon)

    @property
    def privacy(self) -> Any:
        """The notion of stability that every run meets."""
        return self.notion

    @property
    def private(self) -> bool:
        """Always: a test that is not cannot be made."""
        return True

    @cached_property
    def histograms(self) -> Histograms:
        """The histograms the probabilities belong to."""
        return Histograms(len(self.null_law), self.n)

    @cached_property
    def _extremes(self) -> tuple[Integers, Integers]:
        """Least and largest numerator among each set of mutual neighbours, where they differ."""
        among = self.numerators[self.histograms.rows]
        low, high = among.min(axis=1), among.max(axis=1)
        return low[low < high], high[low < high]

    def is_private(self) -> bool:
        """Whether both inequalities hold for all neighbours, in exact arithmetic, with a rational below e^epsilon."""
        line = exact_line(self.notion)
        assert line is not None, "made for a curved h"
        low, high = (ends.astype(object) for ends in self._extremes)
        # All times the denominators of the line: whole numbers.
        common = math.lcm(line.slope.denominator, line.height.denominator)
        top, more = int(line.slope * common), int(line.height * common) * DENOMINATOR
        null_kept = np.all(high * common <= low * top + more)
        return bool(null_kept and np.all((DENOMINATOR - low) * common <= (DENOMINATOR - high) * top + more))

    def largest_log_ratio(self) -> float:
        """The largest log-ratio of the probabilities of either decision over all neighbours."""
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
        """The whole test."""
        return {"test": self.to_dict()}

    def check(self, records: Records) -> None:
        """Type and number; no law is needed."""
        from privatest.engines.records import check_count, counter  # planning needs no engine

        records.check(counter(self.cells))
        check_count(records.count(), self.n)

    def draw(self, records: Records, source: RandomSource) -> Draw:
        """The decision, by an exact coin of the histogram's probability."""
        counts = np.zeros(self.histograms.classes, dtype=np.int64)
        np.add.at(counts, self.members, records.histogram(self.cells, partial(draw_rows, source)))
        numerator = int(self.numerators[self.histograms.rank(counts[None, :])[0]])
        return "null" if bernoulli(numerator, DENOMINATOR, source) else "alternative"

    def release(self, draw: Decision, *, simulated: bool = False) -> Release:
        """A release that carries the decision only."""
        said = None if isinstance(self.notion, Pure) else self.notion.text
        words: dict[str, Any] = {"simulated": simulated, "privacy": said}
        return Release(draw, None, None, self.epsilon, self.n, self.name, self.neighbours, **words)

    @property
    def chances(self) -> Floats:
        """Probability of "null" for each histogram."""
        return self.numerators / DENOMINATOR

    def plot(self, ax: Axes | None = None, *, release: Release | None = None) -> Axes:
        """Laws of the histogram's log ratio under P and Q, and how probably the test says "null" there."""
        from privatest import pictures

        return pictures.histogram_test(self, ax, release=release)

    @property
    def title(self) -> str:
        """Names the test."""
        return f"Histogram test {self.name!r} of {self.null} against {self.alternative}"

    def facts(self) -> list[Fact]:
        """The question and the exact error rates."""
        return [
            Fact("null", self.null, "the null hypothesis P"),
            Fact("alternative", self.alternative, "the alternative Q"),
            Fact("test", self.name, "where its probabilities come from"),
            *(
                [Fact("epsilon", self.epsilon, "privacy loss of one run")]
                if isinstance(self.notion, Pure)
                else [Fact("privacy", self.notion.text, "what one run keeps to")]
            ),
            Fact("n", self.n, "records, public"),
            Fact("alpha", Probability(self.alpha), "type I error: alternative under P; exact"),
            Fact("beta", Probability(self.beta), "type II error: null under Q; exact"),
            Fact("advantage", self.advantage, "1 - alpha - beta"),
            Fact("classes", self.histograms.classes, "of records of equal ratio"),
            Fact("histograms", self.histograms.count, "each with its own probability of saying null"),
            hidden_fact(self.neighbours, persons=False),
        ]

    def to_dict(self) -> dict[str, Any]:
        """A JSON document from which :meth:`from_dict` restores the test exactly."""
        return {
            "format": FORMAT,
            "name": self.name,
            "null": self.null,
            "alternative": self.alternative,
            **({"epsilon": str(self.notion.loss)} if isinstance(self.notion, Pure) else {"privacy": self.notion.text}),
            "n": self.n,
            "neighbours": self.neighbours,
            "cells": self.cells.to_dict(),
            "members": self.members.tolist(),
            "null_law": self.null_law.tolist(),
            "alternative_law": self.alternative_law.tolist(),
            "denominator": DENOMINATOR,
            "numerators": self.numerators.tolist(),
        }

    @classmethod
    def _read(cls, document: dict[str, Any]) -> HistogramTest:
        cells = cells_from_dict(document["cells"])
        members, numerators = (_integers(document[key]) for key in ("members", "numerators"))
        laws = [np.array(document[key], dtype=np.float64) for key in ("null_law", "alternative_law")]
        notion = (
            as_notion(texts_from_json(document, "privacy")["privacy"])
            if "privacy" in document
            else Pure(numbers.positive(epsilon=fraction_from_json(document["epsilon"])))
        )
        n = wholes_from_json(document, "n", least=1)["n"]
        fits = (
            isinstance(cells, LabelCells | IntegerCells)
            and document["denominator"] == DENOMINATOR
            and len(members) == cells.count + 1
            and all(law.shape == laws[0].shape and law.ndim == 1 for law in laws)
            and 0 <= members.min() <= members.max() < len(laws[0])
            and all(np.all(law >= 0) and abs(math.fsum(law) - 1) < 1e-9 for law in laws)
            and len(numerators) == Histograms(len(laws[0]), n).count <= MOST_HISTOGRAMS
        )
        if not fits:
            raise InvalidDocument("The parts of the test do not fit together.")
        assert isinstance(cells, LabelCells | IntegerCells)
        texts = texts_from_json(document, "name", "null", "alternative", "neighbours")
        return cls(cells, members, laws[0], laws[1], numerators, notion, n, **texts)

    def __hash__(self) -> int:
        return hash((self.name, self.notion, self.n, self.numerators.tobytes()))

    def __repr__(self) -> str:
        return (
            f"HistogramTest({self.name!r}, null={self.null}, alternative={self.alternative}, "
            f"{notion_words(self.notion)}, n={self.n}, {self.histograms.classes} classes of records, "
            f"{self.histograms.count} histograms, neighbours={self.neighbours!r})"
        )


def dual_test(distance: Wasserstein) -> HistogramTest:
    """The mechanism that says P with probability (1 + f)/4, f the distance's dual function.

    Guarantees: epsilon-DP, verified like any other; its advantage is exactly W/4.
    """
    numerators = (UNITS + distance.dual) * (DENOMINATOR // (4 * UNITS))
    return HistogramTest.of_pair(
        distance.pair, distance.classes, numerators, Pure(distance.epsilon), distance.n, "wasserstein"
    )


def _integers(values: Any) -> Integers:
    """A list of whole numbers, and nothing that merely rounds to them."""
    if not isinstance(values, list) or not values or any(type(value) is not int for value in values):
        raise InvalidDocument("A list of whole numbers is missing from the test or holds something else.")
    return np.array(values, dtype=np.int64)


MOST_VARIABLES = 100_000
"""A program of this size takes a quarter of a minute to a minute."""
LONGEST_TABLE = 20_000_000
"""For two classes: a table of n + 1 probabilities that still fits comfortably into memory."""
VIOLATION = 1e-9
"""By how much the last solution may break a curved h."""
MOST_ROUNDS = 60
_ELSEWHERE = "Use lower_bound() for what no private test can beat, and design() for one that comes close."


@dataclass(frozen=True)
class Optimum(Described):
    """The best private test, repaired to exact privacy, and how far from the best that leaves it.

    Attributes:
        made: the test; None where its notion is not made of lines, and no table of fractions provably meets it.
        alpha, beta: its error rates, exact to 1e-12 where there is a test.
        bound: no private test on n records has a larger advantage; at a level, a larger power.
        n, privacy: what it was asked for.
        method: "closed form" (two classes of labels), "linear program" or "tangent cuts".
        level: the largest type I error allowed; None: the advantage is the largest.
        null, alternative: short descriptions of P and Q.
    """

    made: HistogramTest | None
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
        if self.made is None:
            raise InvalidInput(f"{self.privacy} has a curved h, which no table of fractions provably meets. {CURVED}")
        return self.made

    @property
    def epsilon(self) -> float:
        """The privacy loss, where the notion bounds it."""
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
        """What rounding and repair cost: bound - advantage; at a level, bound - power."""
        return self.bound - (self.advantage if self.level is None else self.power)

    @property
    def title(self) -> str:
        """What this is."""
        at = "" if self.level is None else f" at level {self.level:g}"
        return f"The best private test of {self.null} against {self.alternative}{at}"

    def facts(self) -> list[Fact]:
        """The test's, and how far they are from the best possible."""
        if self.made is not None:
            facts = self.made.facts()
        else:
            facts = [
                Fact("null", self.null, "the null hypothesis P"),
                Fact("alternative", self.alternative, "the alternative Q"),
                Fact("privacy", self.privacy.text, "what it keeps to"),
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
            Fact("gap", self.gap, "what rounding and repair cost: the bound less what this test has"),
            Fact("method", self.method),
        ]

    def plot(self, ax: Axes | None = None) -> Axes:
        """That of :attr:`test`."""
        return self.test.plot(ax)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; the test itself is ``test.to_dict()``."""
        return self.values()

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
    """The best private test of P against Q on n records; finite domains only.

    Args:
        null, alternative: P and Q.
        epsilon, privacy: the notion of stability: ``epsilon=1`` is ``privacy="pure(1)"``.
        n: number of records.
        alpha: the largest type I error allowed: the power is the largest then, as Neyman and Pearson ask. None: the
            advantage is.

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
    names = pair.null.describe(), pair.alternative.describe()
    if classes.count == 2:
        _refuse(n + 1, LONGEST_TABLE, f"n={n} records of two classes need a table of {n + 1} probabilities")
        problem = Chains(n, float(classes.p[1]), float(classes.q[1]), notion)
        bound, at = _two_points(problem, level)
        if line is None:
            return Optimum(None, *problem.errors(at), bound, n, notion, "closed form", level, *names)
        numerators, method = _staircase(problem, at, line, level), "closed form"
    else:
        program = Program(classes, notion, n, level)
        found, bound = program.solved()
        method = "linear program" if line is not None else "tangent cuts"
        if line is None:
            g = program.kept(found)
            laws = program.laws
            errors = float(laws[0] @ (1 - g)), float(laws[1] @ g)
            return Optimum(None, *errors, bound, n, notion, method, level, *names)
        numerators = _repaired(found, program, line)
    test = HistogramTest.of_pair(pair, classes, numerators, notion, n, "optimum")
    return Optimum(test, test.alpha, test.beta, bound, n, notion, method, level, *names)


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
    """The smallest n at which some private test meets the goal, which is that of ``lower_bound``.

    More records never hurt the best test.

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
    if classes.count == 2:  # the bound is exact there
        return first
    target = goal.advantage if goal.advantage is not None else 1 - (goal.beta or 0.0)
    return _smallest(lambda n: Program(classes, notion, n, goal.alpha).reaches(target), first)


def _smallest(reaches: Callable[[int], bool], first: int) -> int:
    """The smallest n >= first that reaches. Invariant: not reached at low, reached at high."""
    low, step = first - 1, 1
    while not reaches(low + step):
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def _two_points(problem: Chains, level: float | None) -> tuple[float, float]:
    """The best value and its threshold, in the rungs of the problem's chains."""
    if level is not None:
        beta, at = problem.beta_at(level)
        return 1 - beta, at
    if isinstance(problem.notion, Pure):  # however many records
        value, threshold = TwoPoint(problem.n, problem.x, problem.y, problem.notion.epsilon).best()
        return value, float(threshold)
    return problem.best()


def _staircase(problem: Chains, at: float, line: Line, level: float | None) -> Integers:
    """The chain through its start, for N = n, ..., 0 records of the second class, rounded so that it stays private.

    From the start outwards each number is the least, or the most, that the last one allows. At a level the start is
    rounded up until the type I error is at most that.
    """
    n = problem.n
    count, (p, _) = problem.start(at)
    start = round(p * DENOMINATOR)
    if isinstance(problem.notion, Pure) and level is None:  # the middle step itself, 1/(1 + E): no double is rounded
        top, bottom = line.slope.numerator, line.slope.denominator
        start = -(-DENOMINATOR * bottom // (top + bottom)) if p < 0.5 else DENOMINATOR * top // (top + bottom)
    found = _chain(n, count, start, line)
    if level is not None:
        law = Histograms(2, n).law(np.array([1 - problem.x, problem.x]))
        while start < DENOMINATOR and math.fsum((law * ((DENOMINATOR - found) / DENOMINATOR)).tolist()) > level:
            start = min(start + max(DENOMINATOR >> 44, 1), DENOMINATOR)
            found = _chain(n, count, start, line)
    return found


def _chain(n: int, count: int, start: int, line: Line) -> Integers:
    """Numerators for N = n, ..., 0: ``start`` at N = count, which need not lie between them, and all that allows."""
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
    """The program of the best test on n records; with a level, of the most powerful one."""

    classes: Classes
    notion: Notion
    n: int
    level: float | None = None

    @cached_property
    def histograms(self) -> Histograms:
        """Of the variables."""
        k, n = self.classes.count, self.n
        rows = math.comb(n + k - 2, k - 1)
        found = Histograms(k, n)
        _refuse(
            found.count,
            MOST_VARIABLES,
            f"n={n} records of {k} classes need a linear program of {found.count} variables and "
            f"{(k + 1) * rows} constraints",
        )
        return found

    @cached_property
    def laws(self) -> tuple[Floats, Floats]:
        """Of the histograms, under P and under Q."""
        return self.histograms.law(self.classes.p), self.histograms.law(self.classes.q)

    @property
    def gain(self) -> Floats:
        """What g is worth, but for a constant."""
        return self.laws[0] - self.laws[1] if self.level is None else -self.laws[1]

    @property
    def constant(self) -> float:
        """That constant."""
        return 0.0 if self.level is None else 1.0

    @cached_property
    def ends(self) -> tuple[Integers, Integers]:
        """The outermost two histograms of each set of mutual neighbours."""
        rows = self.histograms.rows
        return rows[:, 0], rows[:, -1]

    def solved(self, target: float | None = None) -> tuple[Floats, float]:
        """An optimal g up to the solver's tolerance, and an upper bound on what every private test achieves.

        Where h is curved, no cuts are added once the bound is below ``target``, or g, made private, reaches it.
        """
        line = _float_line(self.notion)
        if line is not None:
            found, bound = self._solved_under(_Cuts.everywhere(self, [line]))
            return found, bound + self.constant
        cuts = _Cuts.everywhere(self, [_tangent(self.notion, p) for p in _first_points(self.notion)])
        for _ in range(MOST_ROUNDS):
            found, bound = self._solved_under(cuts)
            excess = self._excess(found)
            value, most = self._value(self.kept(found, excess)), bound + self.constant
            done = most - value <= VIOLATION or float(excess.max(initial=0.0)) <= VIOLATION
            if done or (target is not None and (most < target or value >= target)):
                return found, most
            cuts = cuts.more(self, np.flatnonzero(excess > VIOLATION / 2), found)
        raise PrivatestError(f"The program of n={self.n} records was not solved to {VIOLATION:g}. Use a smaller n.")

    def reaches(self, target: float) -> bool:
        """Whether some private test is worth that much."""
        return self.solved(target)[1] >= target

    def _solved_under(self, cuts: _Cuts) -> tuple[Floats, float]:
        """The best g that keeps these inequalities, and its value: a linear program."""
        from scipy import sparse

        histograms, rows = self.histograms, self.histograms.rows
        size = len(rows)
        pairs = [(rows[:, i], rows[:, i + 1]) for i in range(histograms.classes - 1)]  # g rises with the class
        columns = np.concatenate([np.stack(pair) for pair in pairs] + [np.stack([cuts.high, cuts.low])], axis=1)
        steady = np.ones(size * len(pairs))
        entries = np.stack([np.concatenate([steady, cuts.a]), np.concatenate([-steady, cuts.b])])
        limit = np.concatenate([0 * steady, cuts.c])
        lines = np.tile(np.arange(len(limit)), 2)
        matrix: Any = sparse.csr_matrix(
            (entries.ravel(), (lines, columns.ravel())), shape=(len(limit), histograms.count)
        )
        if self.level is not None:
            matrix = sparse.vstack([matrix, sparse.csr_matrix(-self.laws[0])], format="csr")
            limit = np.append(limit, self.level - 1.0)
        return solved_program(self.gain, matrix, limit)

    def _excess(self, g: Floats) -> Floats:
        """By how much each set of neighbours breaks h."""
        low, high = g[self.ends[0]], g[self.ends[1]]
        known: dict[float, float] = {}
        for value in low.tolist():
            if value not in known:
                known[value] = self.notion.step(value, 1 - value)[0]
        return np.asarray(high - np.array([known[value] for value in low.tolist()]))

    def _value(self, g: Floats) -> float:
        return float(self.gain @ g) + self.constant

    def kept(self, g: Floats, excess: Floats | None = None) -> Floats:
        """A test next to g, which breaks h by so much, that does not.

        Shrinking towards 1/2 by a share s leaves of a violation v at most (1 - s) v - s (h(1/2) - 1/2): h is concave.
        """
        among = g[self.histograms.rows]
        order = float(np.max(among.max(axis=1) - g[self.ends[1]], initial=0.0))
        broken = self._excess(g) if excess is None else excess
        v = max(float(broken.max(initial=0.0)), 0.0) + 2 * order + 1e-15
        share = v / (v + self.notion.step(0.5, 0.5)[0] - 0.5)
        return shrunk(self, g, share)


def shrunk(program: Program, g: Floats, share: float) -> Floats:
    """g moved towards 1/2 by a share; at a level it is mixed with "always null" first, for its type I error to stay."""
    if program.level is not None:
        alpha = float(program.laws[0] @ (1 - g))
        allowed = max(program.level - share / 2 - 1e-13, 0.0) / (1 - share)
        if alpha > allowed:
            g = 1 - (1 - g) * (allowed / alpha)
    return np.asarray((1 - share) * g + share / 2)


@dataclass(frozen=True, eq=False)
class _Cuts:
    """Inequalities a g(high) + b g(low) <= c, one a row."""

    high: Integers
    low: Integers
    a: Floats
    b: Floats
    c: Floats

    @classmethod
    def everywhere(cls, program: Program, lines: list[tuple[float, float]]) -> _Cuts:
        """Each line, and its mirror image, for every set of neighbours."""
        low, high = program.ends
        made = [
            cls._of_lines(low, high, np.full(len(low), slope), np.full(len(low), height)) for slope, height in lines
        ]
        return cls._joined(made)

    @classmethod
    def _of_lines(cls, low: Integers, high: Integers, slope: Floats, height: Floats) -> _Cuts:
        """high <= slope low + height and 1 - low <= slope (1 - high) + height.

        A row of large entries is divided: the same inequality, better scaled.
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
        """With a tangent where each of these sets of neighbours broke h."""
        low, high = program.ends[0][broken], program.ends[1][broken]
        known: dict[float, tuple[float, float]] = {}
        for value in g[low].tolist():
            at = min(max(value, LEAST_POINT), 1 - LEAST_POINT)
            if value not in known:
                known[value] = _tangent(program.notion, at)
        lines = np.array([known[value] for value in g[low].tolist()])
        return self._joined([self, self._of_lines(low, high, lines[:, 0], lines[:, 1])])


LARGEST_ENTRY = 1e3
"""Of a row: the solver's tolerance is that of the row."""
LEAST_POINT = 1e-12
"""Where an h that is steep at 0 is touched at the latest."""


def _tangent(notion: Notion, p: float) -> tuple[float, float]:
    """Slope and height of the line that touches a curved h at p."""
    q, slope = tangent(notion, p, 1 - p)
    return slope, q - slope * p


def _float_line(notion: Notion) -> tuple[float, float] | None:
    """Slope and height of the one line of a notion that is made of lines."""
    if isinstance(notion, Pure | Approx):
        return math.exp(min(notion.epsilon, 300.0)), float(notion.delta) if isinstance(notion, Approx) else 0.0
    return (1.0, float(notion.eta)) if isinstance(notion, Tv) else None


def _first_points(notion: Notion) -> list[float]:
    """Where h is touched first: with the mirror images these cover it."""
    low = notion.balanced[0]
    return [low, low / 3, low / 30, low / 1000]


def _repaired(found: Floats, program: Program, line: Line) -> Integers:
    """A feasible g next to a nearly feasible one, in units of 1/DENOMINATOR.

    Shrinking towards 1/2 by a share s leaves of a violation v at most (1 - s) v - s ((E - 1)/2 + delta). So with v the
    largest violation, rounding included, s = v/((E - 1)/2 + delta + v) is enough.
    """
    among = found[program.histograms.rows]
    low, high = among.min(axis=1), among.max(axis=1)
    e, height = float(min(line.slope, Fraction(10**30))), float(line.height)  # more would overflow, and changes nothing
    violation = max(float(np.max(high - e * low - height)), float(np.max(e * high - low)) - (e - 1) - height, 0.0)
    # Rounding to the lattice and the doubles above move each side by at most this.
    violation += (1 + e) * (1.0 / DENOMINATOR + 4e-16)
    share = violation / ((e - 1) / 2 + height + violation)
    return np.rint(shrunk(program, found, share) * DENOMINATOR).astype(np.int64)
