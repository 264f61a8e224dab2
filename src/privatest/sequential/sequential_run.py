"""P or Q, decided as soon as the records allow it: a stream that is tested while it comes, for one epsilon.

Block sizes and boundaries are those with the smallest expected number of records, by exact recursion. The first block
may have another size than the later ones. For every clamp and every pair of sizes the boundaries are as near as the
errors allow; a single block of the fixed test's n is always among the candidates.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from privatest import numbers
from privatest.changepoint.detectors import Problem, law_of
from privatest.changepoint.watch import SumBlocks
from privatest.changepoint.watcher import UNSAID, Watcher
from privatest.decision import PrivateTest
from privatest.errors import Infeasible, InvalidInput, NothingToTest, shown
from privatest.headway import each, part
from privatest.hypotheses import Pair
from privatest.hypotheses.convert import as_hypothesis
from privatest.hypotheses.question import Question, pair_or_question
from privatest.laws.block_laws import ScoreLaw
from privatest.markup import Fact, Probability
from privatest.numbers import Number
from privatest.power.tuning import Family, make_family, make_goal, smallest_n
from privatest.power.worst_case import sides_of
from privatest.privacy import Noise, Notion, Pure, canonical_noise, make_notion
from privatest.privacy.asked import budget_word, told
from privatest.privacy.composition import per_row
from privatest.scores import Score
from privatest.sequential.evalues import PARTS, VoteLaw, VoteLaws, block_votes, mean_bound
from privatest.sequential.sequential_plan import (
    NEGLIGIBLE,
    Boundaries,
    SequentialPlan,
    Stopped,
    Verdict,
    WalkProgress,
    stopped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AIMS", "LARGEST_BLOCK", "SMALLEST_ERROR", "Asked", "Sequential", "tuned_plan"]


AIMS = ("larger", "null", "alternative")
"""Whose expected number of records is made small: the larger of both, that under P, that under Q."""
# While sizes are compared votes are coarser, and walks are followed less far.
_COARSE, _ROUGH = 16, 1e-7
# First and later block sizes to begin with, as shares of the fixed test's n.
_STARTS = ((0.55, 0.4), (0.75, 0.55), (0.4, 0.25))
_CLAMPS = 3
_MOST_TRIED = 60
# What computed errors may be wrong by, as a share and at least: calibrated this much below what was asked. A block's
# window leaves out 2e-11 of its law, and two ways to compute an error differ by 1e-13.
_MARGIN, _LEAST_MARGIN = 1e-7, 1e-9
SMALLEST_ERROR = 1e-7
"""The smallest alpha or beta that is far enough above what computed errors may be wrong by."""
LARGEST_BLOCK = 10**7
"""Records in a block, at most: its law is computed value by value."""
# Boundaries beyond this many times Wald's are of no use; a hard stop may call for wider ones.
_WIDEST = 4.0
_WIDER = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)


class Asked(NamedTuple):
    """What was asked for: errors, the hard stop, whose expectation counts, sizes that are given."""

    alpha: float
    beta: float
    most: int | None
    aim: str
    schedule: tuple[int, int] | None
    rows: int | None

    def cost(self, null: float, alternative: float) -> float:
        """Of expected numbers of records under P and under Q."""
        return {"larger": max(null, alternative), "null": null, "alternative": alternative}[self.aim]

    def meets(self, null: Stopped, alternative: Stopped) -> bool:
        """Whether the errors are as small as asked."""
        return self.small(null) and self.small_beta(alternative)

    def small(self, null: Stopped) -> bool:
        """Whether alpha is."""
        return null.alternative <= self.alpha - max(self.alpha * _MARGIN, _LEAST_MARGIN)

    def small_beta(self, alternative: Stopped) -> bool:
        """Whether beta is."""
        return alternative.null <= self.beta - max(self.beta * _MARGIN, _LEAST_MARGIN)


class Found(NamedTuple):
    """A rule for block sizes, and its expected numbers of records."""

    cost: float
    rule: Boundaries
    sizes: tuple[int, int]


@dataclass(eq=False)
class Candidate:
    """A score and its noise: laws of its votes for every block size, and the best rule for a pair of sizes."""

    law: ScoreLaw
    noise: Noise
    monotone: bool
    parts: int
    _laws: dict[int, VoteLaws] = field(default_factory=dict)

    def votes(self, n: int) -> VoteLaws:
        """Of a block of n records."""
        if n not in self._laws:
            table = block_votes(self.law, self.noise, n, monotone=self.monotone, parts=self.parts)
            p, q = (VoteLaw.of(table.votes, masses) for masses in (table.null, table.alternative))
            self._laws[n] = VoteLaws(p, q, mean_bound(table.null, table.votes, self.parts))
        return self._laws[n]

    def rule(self, first: int, later: int, asked: Asked) -> Found | None:
        """The nearest boundaries that meet the errors; None where none do."""
        one, two = self.votes(first), self.votes(later)
        negligible = NEGLIGIBLE if self.parts >= PARTS else _ROUGH

        def walk(rule: Boundaries, under: str) -> Stopped | None:
            return stopped(getattr(one, under), getattr(two, under), rule, negligible)

        rule = self._nearest(walk, asked)
        last = None if asked.most is None else 1 + (asked.most - first) // later
        if rule is not None and last is not None:
            rule = self._with_last(walk, rule, last, asked)
        if rule is None:
            return None
        null, alternative = walk(rule, "null"), walk(rule, "alternative")
        if null is None or alternative is None or not asked.meets(null, alternative):
            return None
        means = [first + later * (each.blocks() - 1) for each in (null, alternative)]
        return Found(asked.cost(*means), rule, (first, later))

    def _nearest(self, walk: Callable[[Boundaries, str], Stopped | None], asked: Asked) -> Boundaries | None:
        """Boundaries moved towards one another in turn, from Wald's on, for as long as the errors allow."""
        wald = [
            math.ceil(math.log((1 - b) / a) * self.parts)
            for a, b in ((asked.alpha, asked.beta), (asked.beta, asked.alpha))
        ]
        upper, lower = wald[0], -wald[1]

        def good_upper(value: int) -> bool:
            found = walk(Boundaries(lower, value, cut=lower), "null")
            return found is not None and asked.small(found)

        def good_lower(value: int) -> bool:
            found = walk(Boundaries(-value, upper, cut=-value), "alternative")
            return found is not None and asked.small_beta(found)

        for _ in range(3):
            before = lower, upper
            found = _smallest(good_upper, lower + 1, math.ceil(_WIDEST * wald[0]), max(upper, lower + 1))
            if found is None:
                return None
            upper = found
            found = _smallest(good_lower, 1 - upper, math.ceil(_WIDEST * wald[1]), max(-lower, 1 - upper))
            if found is None:
                return None
            lower = -found
            if (lower, upper) == before:
                break
        return Boundaries(lower, upper, cut=lower)

    def _with_last(
        self, walk: Callable[[Boundaries, str], Stopped | None], rule: Boundaries, last: int, asked: Asked
    ) -> Boundaries | None:
        """The same boundaries, or wider ones about the same middle, so that the errors are met with a hard stop."""
        if last < 1:
            return None
        middle, half = (rule.lower + rule.upper) / 2, (rule.upper - rule.lower) / 2
        for factor in _WIDER:
            lower, upper = math.floor(middle - factor * half), math.ceil(middle + factor * half)

            def at(cut: int, ends: tuple[int, int] = (lower, upper)) -> Boundaries:
                return Boundaries(*ends, last, cut)

            def good(cut: int, at: Callable[[int], Boundaries] = at) -> bool:
                found = walk(at(cut), "null")
                return found is not None and asked.small(found)

            cut = _smallest(good, lower, upper, round(middle))
            if cut is not None:
                found = walk(at(cut), "alternative")
                if found is not None and asked.small_beta(found):
                    return at(cut)
        return None


def _smallest(good: Callable[[int], bool], least: int, most: int, start: int) -> int | None:
    """The smallest value from ``least`` to ``most`` that is good, where larger ones are good, too; None: none is."""
    start = min(max(start, least), most)
    step = 1
    if good(start):
        high, low = start, start - step
        while low >= least and good(low):
            high, step = low, 2 * step
            low = high - step
        low = max(low, least - 1)
    else:
        low, high = start, start + step
        while high <= most and not good(high):
            low, step = high, 2 * step
            high = low + step
        if high > most:
            if low == most or not good(most):
                return None
            high = most
    # Invariant: high is good, low is not, or is below the least.
    while high - low > 1:
        middle = (low + high) // 2
        if good(middle):
            high = middle
        else:
            low = middle
    return high


def tuned_plan(asked_of: Pair | Question, family: Family, asked: Asked) -> SequentialPlan:
    """The plan of the smallest expected number of records for a pair, or for sets of distributions.

    Args:
        family: the tests of a fixed number of records with the same errors, and the notion that the stream is to meet.

    Guarantees: alpha and beta are at most what was asked, of sets whatever the members are. Of a pair the expected
    number of records is at most the fixed test's n, unless sizes or a hard stop were given.
    """
    fixed_n = smallest_n(family)
    whole = family.notion
    row = per_row(whole, asked.rows or 1)
    problem = Problem.of(asked_of, row)
    monotone = problem.question is not None
    found: list[tuple[Found, Score]] = []
    for clamp, sizes in _best_sizes(problem, fixed_n, asked, monotone):
        score = problem.score(clamp)
        fine = Candidate(law_of(score), canonical_noise(row, score.width), monotone, PARTS)
        made = fine.rule(*sizes, asked)
        if made is not None:
            found.append((made, score))
            break
    common = (asked.alpha, asked.beta, fixed_n, asked_of.null.describe(), asked_of.alternative.describe())
    rest = (*common, asked.aim, asked.rows, None if isinstance(whole, Pure) else whole)
    free = asked.schedule is None and (asked.most is None or asked.most >= fixed_n)
    best = min(found, key=lambda entry: entry[0].cost) if found else None
    single = free and not monotone and asked.rows in (None, 1)  # the fixed test hides rows another way
    if single and (best is None or best[0].cost > fixed_n):
        blocks, rule = _single(family.test(fixed_n), asked)
        return SequentialPlan(blocks, blocks, rule, *rest)
    if best is None:
        raise Infeasible(_why_not(asked, fixed_n, row))
    (_, rule, sizes), score = best
    first, later = (_blocks(score, canonical_noise(row, score.width), size, monotone) for size in sizes)
    return SequentialPlan(first, later, rule, *rest)


def _why_not(asked: Asked, fixed_n: int, notion: Notion) -> str:
    goal = f"alpha={asked.alpha:g} and beta={asked.beta:g}"
    if asked.schedule is not None:
        return f"Blocks of schedule={asked.schedule} do not reach {goal} at {told(notion)}. Use larger ones."
    if asked.most is not None:
        return (
            f"most={asked.most} records do not suffice for {goal}: a test of a fixed number needs {fixed_n}. Use a "
            f"larger number, larger errors, or a larger {budget_word(notion)}."
        )
    return f"No blocks were found that reach {goal} at {told(notion)}. Use a larger {budget_word(notion)}."


def _blocks(score: Score, noise: Noise, n: int, monotone: bool) -> SumBlocks:
    return block_votes(law_of(score), noise, n, monotone=monotone).blocks(score, noise, n)


def _single(test: PrivateTest, asked: Asked) -> tuple[SumBlocks, Boundaries]:
    """One block, decided as the fixed test decides; where likelihoods do as well, with these for votes."""
    noise = test.noise
    candidate = Candidate(law_of(test.score), noise, False, PARTS)
    laws = candidate.votes(test.n)

    def good(cut: int) -> bool:
        found = stopped(laws.null, laws.null, Boundaries(cut, cut + 1, cut=cut))
        return found is not None and asked.small(found)

    span = len(laws.null.masses)
    cut = _smallest(good, laws.null.least, laws.null.least + span, laws.null.least + span // 2)
    if cut is not None:
        rule = Boundaries(cut, cut + 1, cut=cut)
        found = stopped(laws.alternative, laws.alternative, rule)
        if found is not None and asked.small_beta(found):
            return _blocks(test.score, noise, test.n, monotone=False), rule
    first = (test.cutoff - noise.offset).__floor__() + 1  # T > cutoff exactly when floor(T) >= first
    alpha, beta = test.alpha + 2 * _MARGIN, test.beta + 2 * _MARGIN
    bits = np.array([math.log((1 - beta) / alpha), math.log(beta / (1 - alpha))])
    votes = np.floor(bits * PARTS).astype(np.int64)
    return SumBlocks(test.score, noise, test.n, first, 1, votes), Boundaries(0, 1, cut=0)


def _best_sizes(
    problem: Problem, fixed_n: int, asked: Asked, monotone: bool
) -> Iterator[tuple[tuple[float, float], tuple[int, int]]]:
    """Clamps and sizes, the best first, by coarser votes."""
    tried: dict[tuple[tuple[float, float], int, int], float] = {}
    candidates: dict[tuple[float, float], Candidate] = {}

    def cost(clamp: tuple[float, float], first: int, later: int) -> float:
        key = (clamp, first, later)
        if key not in tried:
            if clamp not in candidates:
                law = problem.rough_law(clamp)
                parts = _COARSE if asked.schedule is None else PARTS  # sizes that are given may be small
                candidates[clamp] = Candidate(law, canonical_noise(problem.notion, law.width), monotone, parts)
            found = candidates[clamp].rule(first, later, asked)
            tried[key] = math.inf if found is None else found.cost
        return tried[key]

    most = math.inf if asked.most is None else asked.most
    clamps = list(dict.fromkeys((*problem.clamps[:_CLAMPS], problem.paper)))
    if asked.schedule is not None:
        for clamp in clamps:
            cost(clamp, *asked.schedule)
    else:
        starts = [(max(round(a * fixed_n), 1), max(round(b * fixed_n), 1)) for a, b in _STARTS]
        starts = [(int(min(a, most)), b) for a, b in starts]
        for clamp in each("clamps", clamps):
            cost(clamp, *starts[0])
        best = sorted(clamps, key=lambda clamp: cost(clamp, *starts[0]))[:2]
        for clamp in each("schedules", best):
            for start in starts:
                cost(clamp, *start)
        clamp, first, later = min(tried, key=lambda key: tried[key])
        _descend(lambda a, b: cost(clamp, a, b), (first, later), fixed_n, most)
    for key in sorted((key for key in tried if tried[key] < math.inf), key=lambda key: tried[key]):
        yield key[0], (key[1], key[2])


def _descend(cost: Callable[[int, int], float], start: tuple[int, int], fixed_n: int, most: float) -> None:
    """Walk from ``start`` to neighbours of smaller cost, in steps that become shorter."""
    place, step, tried = start, max(round(0.1 * fixed_n), 1), 0
    with part("block sizes", _MOST_TRIED) as tell:
        while tried < _MOST_TRIED:
            tell(tried)
            around = [
                (place[0] + a * step, place[1] + b * step)
                for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1))
            ]
            around = [(a, b) for a, b in around if 1 <= a <= most and b >= 1]
            tried += len(around)
            best = min([place, *around], key=lambda sizes: cost(*sizes))
            if best != place:
                place = best
            elif step == 1:
                return
            else:
                step = max(step // 2, 1)


class Sequential(Watcher[SequentialPlan, Verdict]):
    r"""Test P (``null``) against Q (``alternative``) on a stream, and stop as soon as the records allow it.

    Records are gathered in blocks, each of which releases its noisy sum. The likelihood ratio of a noisy sum is an
    e-value: it has mean 1 under P at most. Their product E grows under Q and shrinks under P; the verdict is
    "alternative" as soon as log E reaches the upper boundary, "null" as soon as it reaches the lower one.

    Guarantees: every record lies in one block, so all that is ever put out is together epsilon-differentially private,
    or meets the notion ``privacy`` (replace one record; the number of records is public). ``alpha`` and ``beta``, the
    probabilities of the wrong verdict, are computed on the stopped walk and at most what was asked, of sets whatever
    the members are. Under P (every member of it) the e-value ever reaches 1/a with probability a at most, so ``evalue``
    and ``pvalue`` are valid whenever one looks, whatever rule one stops by. Nothing depends on how the stream is cut
    into batches. A block's noise is drawn when the block is released; a sequential test cannot be copied, pickled or
    used in a forked process. Threads may share one: they take turns.

    After the verdict nothing more is consumed: a further batch is refused.

    State files (``state=``, :meth:`save`, :meth:`load`) and ledgers are as those of :class:`Monitor`: no block is
    released twice and no verdict is lost, whenever the process was killed.

    Args:
        null, alternative: P and Q, distributions or sets, in any of the forms that :func:`privatest.design` takes.
        epsilon: privacy loss of the whole stream; a float is read as its shortest decimal.
        privacy: in place of epsilon: another notion, such as ``pt.zcdp(0.5)`` or "approx(1, 1e-6)".
        alpha, beta: the errors that are allowed: "alternative" under P, "null" under Q.
        most: decide after so many records in any case; the errors are kept all the same. None: no such stop.
        aim: whose expected number of records is made small: "larger" (of both), "null" or "alternative".
        schedule: sizes of the first block and of the later ones; None: those with the smallest expected number.
        max_rows_per_unit: the most rows of one person that count in the whole stream, as for a :class:`Monitor`; every
            update then says whose the records are (``unit``), and each row costs epsilon/max_rows_per_unit.
        state: path of a state file; where there is one of the same settings, the test goes on from it.
        ledger, dataset, request, source: charge that to a ledger, once, as a :class:`Monitor` does.
        rng: only for simulations: a seeded generator in place of the operating system's randomness. The test then says
            that it is simulated, and is not private.

    >>> run = Sequential("bernoulli(0.3)", "bernoulli(0.7)", epsilon=1, rng=np.random.default_rng(3))
    >>> run.fixed_n, [round(n, 1) for n in run.expected_n]
    (21, [15.9, 15.9])
    >>> verdict = run.update([1, 1, 0, 1, 1] * 20)
    >>> verdict.decision, run.seen < 100, run.pvalue < 0.2
    ('alternative', True, True)
    """

    DESIGN = SequentialPlan

    def __init__(
        self,
        null: Any,
        alternative: Any,
        *,
        epsilon: Number | None = None,
        privacy: Any = None,
        alpha: float = 0.05,
        beta: float = 0.05,
        most: int | None = None,
        aim: str = "larger",
        schedule: tuple[int, int] | None = None,
        max_rows_per_unit: int | None = None,
        state: str | os.PathLike[str] | None = None,
        ledger: Any = None,
        dataset: str | None = None,
        request: str | None = None,
        source: str | os.PathLike[str] | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        whole = make_notion(epsilon, privacy)
        goal = make_goal(None, alpha, beta)
        assert goal.alpha is not None
        assert goal.beta is not None
        for name, error in {"alpha": goal.alpha, "beta": goal.beta}.items():
            if error < SMALLEST_ERROR:
                raise InvalidInput(
                    f"{name}={error:g} is smaller than {SMALLEST_ERROR:g}, the smallest error of a stopped walk that "
                    "can be computed safely. Use a larger number, or stop at an e-value of your own choice."
                )
        aim = numbers.choice(AIMS, aim=aim)
        sizes = _sizes(schedule)
        if most is not None:
            most = numbers.positive_integer(most=most)
            if sizes is not None and most < sizes[0]:
                raise InvalidInput(
                    f"most={most} is smaller than the first block of {sizes[0]} records: nothing would ever be "
                    "decided. Use a larger number, or a smaller first block."
                )
        rows = max_rows_per_unit
        if rows is not None:
            rows = numbers.positive_integer(max_rows_per_unit=rows)
        laws = [as_hypothesis(law, name) for name, law in {"null": null, "alternative": alternative}.items()]
        settings = {
            "alpha": goal.alpha,
            "beta": goal.beta,
            "most": most,
            "aim": aim,
            "schedule": None if sizes is None else list(sizes),
        }
        wanted = Asked(goal.alpha, goal.beta, most, aim, sizes, rows)

        def made() -> SequentialPlan:
            question = pair_or_question(null, alternative)
            if isinstance(question, Question) and sides_of(question).above:
                raise NothingToTest(
                    f"alternative {question.alternative.describe()} lies on both sides of the null "
                    f"{question.null.describe()}. A sequential test looks at one side: run one for each, and "
                    "combine their e-values with combine_evalues(..., dependent=True): they see the same records."
                )
            family = make_family(
                null, alternative, None, "tight", None, None, goal, "replace", rows or 1, privacy=whole
            )
            return tuned_plan(question, family, wanted)

        paying: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "request": request, "source": source}
        self._begin(laws, settings, made, notion=whole, rows=rows, state=state, rng=rng, **paying)

    @property
    def plan(self) -> SequentialPlan:
        """The design: frozen, with everything that is known before any data."""
        return self._design

    @property
    def alpha(self) -> float:
        """Probability of "alternative" under P, computed on the stopped walk; of sets the largest."""
        return self._design.alpha

    @property
    def beta(self) -> float:
        """Probability of "null" under Q, computed on the stopped walk; of sets the largest."""
        return self._design.beta

    @property
    def expected_n(self) -> tuple[float, float]:
        """The mean number of records till the verdict, computed: under P, under Q.

        Of sets, for records whose scores have the worst laws of the sets.
        """
        return self._design.expected_n

    def quantile_n(self, share: float) -> tuple[int, int]:
        """Records within which the verdict falls with probability ``share``, computed: under P, under Q."""
        return self._design.quantile_n(float(numbers.probability(share=share)))

    @property
    def fixed_n(self) -> int:
        """Records that the test of a fixed number needs for the same errors, for comparison."""
        return self._design.fixed_n

    @property
    def schedule(self) -> tuple[int, int]:
        """Records in the first block and in each later one."""
        return self._design.first.block, self._design.later.block

    @property
    def boundaries(self) -> tuple[float, float]:
        """The logarithms of the e-value at which it is decided, for P and for Q."""
        rule = self._design.rule
        return self._design.nats(rule.lower), self._design.nats(rule.upper)

    @property
    def most(self) -> int | None:
        """Records after which it is decided in any case; None: there is no such number."""
        return self._design.most

    @property
    def verdict(self) -> Verdict | None:
        """The verdict, once there is one."""
        found = super().raised
        return None if found is None else replace(found, walk=self.walk, design=self._design)

    @property
    def raised(self) -> Verdict | None:
        """The verdict, once there is one, with its walk."""
        return self.verdict

    @property
    def decided(self) -> bool:
        """Whether there is a verdict."""
        return self.raised is not None

    @property
    def _progress(self) -> WalkProgress:
        found: WalkProgress = self._stream.progress
        return found

    @property
    def evalue(self) -> float:
        """Evidence against P so far: the product of the blocks' likelihood ratios, rounded down; 1 before the first.

        Under P it ever reaches 1/a with probability a at most, so it may be looked at, and stopped at, at any time.
        """
        return math.exp(self._design.nats(self._progress.level))

    @property
    def pvalue(self) -> float:
        """One over the largest e-value so far, 1 at most: a p-value that is valid at any time."""
        return math.exp(-self._design.nats(self._progress.peak))

    @property
    def walk(self) -> tuple[float, ...]:
        """The logarithm of the e-value after each of the newest blocks (at most 256), oldest first."""
        released, blocks = list(self._stream.released), self._progress.blocks
        level, walk = self._progress.level, []
        for vote in reversed(self._design.few_votes(released, blocks - len(released))):  # whose last level is known
            walk.append(self._design.nats(level))
            level -= vote
        return tuple(reversed(walk))

    @property
    def trace(self) -> tuple[float, ...]:
        """The newest releases (at most 256), oldest first: noisy block sums of clamped log P/Q in nats."""
        released, blocks = list(self._stream.released), self._progress.blocks
        before = blocks - len(released)
        plan = self._design
        return tuple((plan.later if before + i else plan.first).trace(value) for i, value in enumerate(released))

    def update(self, x: Any, *, unit: Any = UNSAID) -> Verdict | None:
        """Take one record, or a batch if x is a list, an array or a column; the verdict if it falls.

        A record that makes no sense raises nothing: it gets a fixed score. Refused once there is a verdict.

        Args:
            x: the record or the batch.
            unit: whose it is, where ``max_rows_per_unit`` was given: any value that names a person; of a batch, one for
                each record. None is nobody.
        """
        self._check_open()
        super().update(x, unit=unit)
        return self.verdict

    def update_many(
        self,
        batch: Any,
        *,
        column: str | None = None,
        unit: Any = UNSAID,
        order: str | None = None,
        place: Any = None,
    ) -> Verdict | None:
        """Take a batch of records in order of time, as :meth:`Monitor.update_many` does; the verdict if it falls."""
        self._check_open()
        super().update_many(batch, column=column, unit=unit, order=order, place=place)
        return self.verdict

    def _check_open(self) -> None:
        if self.raised is not None:
            raise InvalidInput(
                f"This sequential test was {self.raised.sentence}. Nothing more is consumed: for more records make a "
                "new one, with a budget of its own."
            )

    def plot(self, ax: Axes | None = None) -> Axes:
        """The walk of the log e-value between its boundaries; never the records."""
        from privatest import pictures

        seen = self._design.records(self._progress.blocks)
        return pictures.walk(self._design, self.walk, seen, self.raised, ax, private=self.private)

    @property
    def title(self) -> str:
        """What this is."""
        return "Sequential test"

    def facts(self) -> list[Fact]:
        """The question, the promises, and what was released so far."""
        verdict = self.raised
        return [
            *self._design.facts(),
            Fact("seen", self.seen, "records so far; the stream goes on with this one"),
            Fact("evalue", self.evalue, "evidence against P so far, valid whenever one looks"),
            Fact("pvalue", Probability(self.pvalue), "valid whenever one looks"),
            Fact("decided", self.decided, "no verdict yet" if verdict is None else verdict.sentence),
            Fact("private", self.private, "SIMULATED, not private" if self.simulated else ""),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Settings, promises and what was released so far: plain values, ready for JSON."""
        verdict = None if self.raised is None else self.raised.to_dict()
        return {**self.values(), "verdict": verdict, "walk": list(self.walk), "trace": list(self.trace)}

    def __repr__(self) -> str:
        plan = self._design
        low, high = self.expected_n
        return (
            f"Sequential({plan.null} or {plan.alternative}, {self._cost}, alpha={self.alpha:.4g}, "
            f"beta={self.beta:.4g}, expected_n=({low:.4g}, {high:.4g}), fixed_n={self.fixed_n}, "
            f"schedule={self.schedule}, seen={self.seen}, evalue={self.evalue:.4g}, verdict={self.raised!r})"
        )


def _sizes(schedule: Any) -> tuple[int, int] | None:
    if schedule is None:
        return None
    if not isinstance(schedule, (tuple, list)) or len(schedule) != 2:
        raise InvalidInput(
            f"schedule={shown(schedule)} must be two numbers: the first block's size and the later ones'."
        )
    first, later = (numbers.positive_integer(schedule=size) for size in schedule)
    if max(first, later) > LARGEST_BLOCK:
        raise InvalidInput(
            f"schedule={shown(schedule)} has blocks of more than {LARGEST_BLOCK} records. Use smaller ones."
        )
    return first, later
