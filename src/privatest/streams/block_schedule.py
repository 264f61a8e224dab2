"""The block schedule and the boundaries of a sequential test with the smallest expected number of records.

The first block may have another size than the later ones. For every clamp and every pair of sizes the boundaries are as
near as the errors allow. A single block of the fixed test's n is always among the candidates.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from privatest.changepoint.block_sums import law_of
from privatest.changepoint.detector_search import BlockTuner
from privatest.decision import PrivateTest
from privatest.decision.clamp_tuning import Tuner
from privatest.errors import Infeasible
from privatest.hypotheses import Pair
from privatest.hypotheses.parse import Hypotheses
from privatest.laws.block_laws import ScoreLaw
from privatest.numbers import first_true
from privatest.privacy import Noise, Notion, canonical_noise
from privatest.privacy.notion import budget_word, notion_words, per_row
from privatest.progress_events import each, part
from privatest.scores import Score
from privatest.streams.blocks import SumBlocks
from privatest.streams.evalues import PARTS, VoteLaw, VoteLaws, block_votes, mean_bound
from privatest.streams.sequential_plan import NEGLIGIBLE, Boundaries, SequentialPlan, Stopped, rarely, stopped

AIMS = ("larger", "null", "alternative")
"""The expected number of records to make small: the larger of both, that under P, or that under Q."""
# While sizes are compared, votes are coarser and walks are computed less far.
_COARSE, _ROUGH = 16, 1e-7
# The sizes of first and later blocks with which the search begins, as shares of the fixed test's n.
_STARTS = ((0.55, 0.4), (0.75, 0.55), (0.4, 0.25))
_CLAMPS = 3
_MOST_TRIED = 60
# The number of schedules, the best by coarser votes, that are compared by the finest votes.
_FINE = 4
# The number of starts from which sizes are improved.
_DESCENTS = 2
# Errors are calibrated below the targets by this share, and at least by this much: the window of a block leaves out
# 2e-11 of its law, and two ways to compute an error differ by 1e-13.
_MARGIN, _LEAST_MARGIN = 1e-7, 1e-9
SMALLEST_ERROR = 1e-7
"""The smallest alpha or beta that is far above the numerical error of computed errors."""
LARGEST_BLOCK = 10**7
"""The largest number of records in a block, whose law is computed value by value."""
# Boundaries are at most this many times Wald's, and wider ones are tried for a hard stop.
_WIDEST = 4.0
_WIDER = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)


class SequentialTargets(NamedTuple):
    """The targets of a sequential test: errors, the hard stop, the aim, given sizes, and rows of one person."""

    alpha: float
    beta: float
    most: int | None
    aim: str
    schedule: tuple[int, int] | None
    rows: int | None

    def cost(self, null: float, alternative: float) -> float:
        """Return the number to minimise: the expected number of records under P, under Q, or the larger of the two."""
        return {"larger": max(null, alternative), "null": null, "alternative": alternative}[self.aim]

    def meets(self, null: Stopped, alternative: Stopped) -> bool:
        """Return whether both errors are at most the requested ones, leaving a margin for rounding."""
        return self.meets_alpha(null) and self.meets_beta(alternative)

    def meets_alpha(self, null: Stopped) -> bool:
        """Return whether the type I error is at most the requested one, leaving a margin for rounding."""
        return null.alternative <= self.most_alpha

    def meets_beta(self, alternative: Stopped) -> bool:
        """Return whether the type II error is at most the requested one, leaving a margin for rounding."""
        return alternative.null <= self.most_beta

    @property
    def most_alpha(self) -> float:
        """The largest computed type I error that is accepted."""
        return self.alpha - max(self.alpha * _MARGIN, _LEAST_MARGIN)

    @property
    def most_beta(self) -> float:
        """The largest computed type II error that is accepted."""
        return self.beta - max(self.beta * _MARGIN, _LEAST_MARGIN)


class BestSchedule(NamedTuple):
    """The best rule for two block sizes, and its expected number of records."""

    cost: float
    rule: Boundaries
    sizes: tuple[int, int]


Meets = Callable[[Boundaries], bool]
"""A function that returns whether an error of a rule is small enough."""


@dataclass(eq=False)
class ScheduleCandidate:
    """A score with its noise, the laws of its votes by block size, and the best rule for two sizes."""

    law: ScoreLaw
    noise: Noise
    monotone: bool
    parts: int
    _laws: dict[int, VoteLaws] = field(default_factory=dict)

    def votes(self, n: int) -> VoteLaws:
        """Return the laws of the votes of a block of n records."""
        if n not in self._laws:
            table = block_votes(self.law, self.noise, n, monotone=self.monotone, parts=self.parts)
            p, q = (VoteLaw.of(table.votes, masses) for masses in (table.null, table.alternative))
            self._laws[n] = VoteLaws(p, q, mean_bound(table.null, table.votes, self.parts))
        return self._laws[n]

    def rule(self, first: int, later: int, targets: SequentialTargets) -> BestSchedule | None:
        """Return the nearest boundaries that meet the errors; None if there are none."""
        one, two = self.votes(first), self.votes(later)

        def meets_alpha(rule: Boundaries) -> bool:
            return rarely(one.null, two.null, rule, "alternative", targets.most_alpha)

        def meets_beta(rule: Boundaries) -> bool:
            return rarely(one.alternative, two.alternative, rule, "null", targets.most_beta)

        rule = self._nearest(meets_alpha, meets_beta, targets)
        last = None if targets.most is None else 1 + (targets.most - first) // later
        if rule is not None and last is not None:
            rule = _with_last(meets_alpha, meets_beta, rule, last)
        if rule is None:
            return None
        negligible = NEGLIGIBLE if self.parts >= PARTS else _ROUGH
        null = stopped(one.null, two.null, rule, negligible)
        alternative = stopped(one.alternative, two.alternative, rule, negligible)
        if null is None or alternative is None or not targets.meets(null, alternative):
            return None
        means = [first + later * (each.blocks() - 1) for each in (null, alternative)]
        return BestSchedule(targets.cost(*means), rule, (first, later))

    def _nearest(self, meets_alpha: Meets, meets_beta: Meets, targets: SequentialTargets) -> Boundaries | None:
        """Move the boundaries, from Wald's on, in turn towards one another for as long as the errors allow."""
        wald = [
            math.ceil(math.log((1 - b) / a) * self.parts)
            for a, b in ((targets.alpha, targets.beta), (targets.beta, targets.alpha))
        ]
        upper, lower = wald[0], -wald[1]

        def good_upper(value: int) -> bool:
            return meets_alpha(Boundaries(lower, value, cut=lower))

        def good_lower(value: int) -> bool:
            return meets_beta(Boundaries(-value, upper, cut=-value))

        for _ in range(3):
            before = lower, upper
            bound = _smallest(good_upper, lower + 1, math.ceil(_WIDEST * wald[0]), max(upper, lower + 1))
            if bound is None:
                return None
            upper = bound
            bound = _smallest(good_lower, 1 - upper, math.ceil(_WIDEST * wald[1]), max(-lower, 1 - upper))
            if bound is None:
                return None
            lower = -bound
            if (lower, upper) == before:
                break
        return Boundaries(lower, upper, cut=lower)


def _with_last(meets_alpha: Meets, meets_beta: Meets, rule: Boundaries, last: int) -> Boundaries | None:
    """Return these boundaries, or wider ones about the same middle, that meet the errors with a hard stop."""
    if last < 1:
        return None
    middle, half = (rule.lower + rule.upper) / 2, (rule.upper - rule.lower) / 2
    for factor in _WIDER:
        lower, upper = math.floor(middle - factor * half), math.ceil(middle + factor * half)

        def at(cut: int, ends: tuple[int, int] = (lower, upper)) -> Boundaries:
            return Boundaries(*ends, last, cut)

        cut = _smallest(lambda cut, at=at: meets_alpha(at(cut)), lower, upper, round(middle))  # type: ignore[misc]
        if cut is not None and meets_beta(at(cut)):
            return at(cut)
    return None


def _smallest(good: Callable[[int], bool], least: int, most: int, start: int) -> int | None:
    """Return the smallest good value from ``least`` to ``most``, if all larger ones are good, too; None if none is.

    The search begins at ``start``, a guess, because ``good`` takes long.
    """
    start = min(max(start, least), most)
    if not good(start):
        smallest = first_true(good, start, most=most)
        return None if smallest > most else smallest
    below = first_true(lambda steps: start - steps < least or not good(start - steps), 1)
    return start - below + 1


def tuned_plan(hypotheses: Pair | Hypotheses, tuner: Tuner, targets: SequentialTargets) -> SequentialPlan:
    """Return the plan with the smallest expected number of records, for a pair or for sets of distributions.

    Args:
        hypotheses: the pair or the sets.
        tuner: a tuner of tests of a fixed number of records with the same errors, under the notion of the stream.
        targets: the targets of the test.

    Guarantees: alpha and beta are at most the targets, for all members of sets. For a pair the expected number of
    records is at most the fixed test's n, unless sizes or a hard stop were given.
    """
    fixed_n = tuner.sample_size()
    whole = tuner.problem.privacy
    row = per_row(whole, targets.rows or 1)
    problem = BlockTuner.of(hypotheses, row)
    monotone = problem.question is not None
    scores: dict[tuple[float, float], tuple[Score, ScheduleCandidate]] = {}
    plans: list[tuple[BestSchedule, Score]] = []
    for clamp, sizes in _best_sizes(problem, fixed_n, targets, monotone):
        if clamp not in scores:
            score = problem.score(clamp)
            scores[clamp] = score, ScheduleCandidate(law_of(score), canonical_noise(row, score.width), monotone, PARTS)
        score, fine = scores[clamp]
        schedule = fine.rule(*sizes, targets)
        if schedule is not None:
            plans.append((schedule, score))
            if len(plans) == _FINE:
                break
    settings: dict[str, Any] = {
        "goal_alpha": targets.alpha,
        "goal_beta": targets.beta,
        "fixed_n": fixed_n,
        "null": hypotheses.null.describe(),
        "alternative": hypotheses.alternative.describe(),
        "aim": targets.aim,
        "max_rows_per_unit": targets.rows,
        "notion": whole,
    }
    free = targets.schedule is None and (targets.most is None or targets.most >= fixed_n)
    best = min(plans, key=lambda entry: entry[0].cost) if plans else None
    single = free and targets.rows in (None, 1)  # the fixed test hides rows in another way
    if single and (best is None or best[0].cost > fixed_n):
        plan = _single_plan(tuner.test(fixed_n), targets, monotone, settings)
        if plan is not None:
            return plan
    if best is None:
        raise Infeasible(_why_not(targets, fixed_n, row))
    (_, rule, sizes), score = best
    first, later = (voting_blocks(score, canonical_noise(row, score.width), size, monotone=monotone) for size in sizes)
    return SequentialPlan(first=first, later=later, rule=rule, **settings)


def _single_plan(
    test: PrivateTest, targets: SequentialTargets, monotone: bool, settings: dict[str, Any]
) -> SequentialPlan | None:
    """Return the plan of one block with the fixed test's decision; None if a set has several worst laws."""
    score = test.score
    if len(score.null_laws) > 1 or len(score.alternative_laws) > 1 or score.upper_laws:
        return None
    blocks, rule = _single(test, targets, monotone)
    plan = SequentialPlan(first=blocks, later=blocks, rule=rule, **settings)
    return plan if targets.meets(*plan.walks) or not monotone else None


def _why_not(targets: SequentialTargets, fixed_n: int, notion: Notion) -> str:
    goal = f"alpha={targets.alpha:g} and beta={targets.beta:g}"
    if targets.schedule is not None:
        return f"Blocks of schedule={targets.schedule} do not reach {goal} at {notion_words(notion)}. Use larger ones."
    if targets.most is not None:
        return (
            f"most={targets.most} records do not suffice for {goal}: a test of a fixed number needs {fixed_n}. Use a "
            f"larger number, larger errors, or a larger {budget_word(notion)}."
        )
    return f"No blocks were found that reach {goal} at {notion_words(notion)}. Use a larger {budget_word(notion)}."


def voting_blocks(score: Score, noise: Noise, n: int, *, monotone: bool, parts: int = PARTS) -> SumBlocks:
    """Return blocks of n records that vote by their likelihoods.

    Args:
        score, noise: the score and the noise of the totals.
        n: number of records in a block.
        monotone: whether votes never rise with the total.
        parts: the unit of votes is 1/parts of a nat.
    """
    table = block_votes(law_of(score), noise, n, monotone=monotone, parts=parts)
    return SumBlocks(score, noise, n, table.first, table.bin_width, table.votes)


def _single(test: PrivateTest, targets: SequentialTargets, monotone: bool = False) -> tuple[SumBlocks, Boundaries]:
    """Return one block with the fixed test's decision; its votes are likelihoods if these decide as well."""
    noise = test.noise
    candidate = ScheduleCandidate(law_of(test.score), noise, monotone, PARTS)
    laws = candidate.votes(test.n)

    def good(cut: int) -> bool:
        errors = stopped(laws.null, laws.null, Boundaries(cut, cut + 1, cut=cut))
        return errors is not None and targets.meets_alpha(errors)

    span = len(laws.null.masses)
    cut = _smallest(good, laws.null.least, laws.null.least + span, laws.null.least + span // 2)
    if cut is not None:
        rule = Boundaries(cut, cut + 1, cut=cut)
        walk = stopped(laws.alternative, laws.alternative, rule)
        if walk is not None and targets.meets_beta(walk):
            return voting_blocks(test.score, noise, test.n, monotone=monotone), rule
    first = (test.cutoff - noise.offset).__floor__() + 1  # T > cutoff exactly when floor(T) >= first
    alpha, beta = test.alpha + 2 * _MARGIN, test.beta + 2 * _MARGIN
    bits = np.array([math.log((1 - beta) / alpha), math.log(beta / (1 - alpha))])
    votes = np.floor(bits * PARTS).astype(np.int64)
    return SumBlocks(test.score, noise, test.n, first, 1, votes), Boundaries(0, 1, cut=0)


def _best_sizes(
    problem: BlockTuner, fixed_n: int, targets: SequentialTargets, monotone: bool
) -> Iterator[tuple[tuple[float, float], tuple[int, int]]]:
    """Yield clamps and sizes, the best first, compared by coarser votes."""
    tried: dict[tuple[tuple[float, float], int, int], float] = {}
    candidates: dict[tuple[float, float], ScheduleCandidate] = {}

    def cost(clamp: tuple[float, float], first: int, later: int) -> float:
        key = (clamp, first, later)
        if key not in tried:
            if clamp not in candidates:
                law = problem.rough_law(clamp)
                parts = _COARSE if targets.schedule is None else PARTS  # given sizes may be small
                candidates[clamp] = ScheduleCandidate(law, canonical_noise(problem.notion, law.width), monotone, parts)
            schedule = candidates[clamp].rule(first, later, targets)
            tried[key] = math.inf if schedule is None else schedule.cost
        return tried[key]

    most = math.inf if targets.most is None else targets.most
    clamps = list(dict.fromkeys((*problem.clamps[:_CLAMPS], problem.paper)))
    if targets.schedule is not None:
        for clamp in clamps:
            cost(clamp, *targets.schedule)
    else:
        starts = [(max(round(a * fixed_n), 1), max(round(b * fixed_n), 1)) for a, b in _STARTS]
        starts = [(int(min(a, most)), b) for a, b in starts]
        for clamp in each("clamps", clamps):
            cost(clamp, *starts[0])
        best = sorted(clamps, key=lambda clamp: cost(clamp, *starts[0]))[:2]
        for clamp in each("schedules", best):
            for start in starts:
                cost(clamp, *start)
        for clamp, first, later in sorted(tried, key=lambda key: tried[key])[:_DESCENTS]:
            _descend(lambda a, b, clamp=clamp: cost(clamp, a, b), (first, later), fixed_n, most)  # type: ignore[misc]
        clamp, first, later = min(tried, key=lambda key: tried[key])
        step = max(fixed_n // 30, 1)  # for small totals the cost goes up and down from one size to the next
        for a, b in itertools.product((-1, 0, 1), range(-3, 4)):
            if 1 <= first + a * step <= most and later + b * step >= 1:
                cost(clamp, first + a * step, later + b * step)
    for key in sorted((key for key in tried if tried[key] < math.inf), key=lambda key: tried[key]):
        yield key[0], (key[1], key[2])


def _descend(cost: Callable[[int, int], float], start: tuple[int, int], fixed_n: int, most: float) -> None:
    """Search from ``start`` on for neighbours of smaller cost, in shorter and shorter steps."""
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
