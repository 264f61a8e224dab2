"""Find the clamp that needs the fewest records by exact error rates, and the test and the sample size with it.

A :class:`Profile` is the law of a pair's unclamped ratio in fine bins; :func:`tuned_clamps` compares clamps by it.
A :class:`Tuner` tunes everything that the user left open in the tests of one problem, for any number of records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest.decision import PrivateTest
from privatest.decision.construction import (
    FEW_UNITS,
    calibrated_cutoffs,
    calibrated_noise,
    from_score,
    kind_score,
    literal_cutoff,
    unclamped,
)
from privatest.decision.problem import CALIBRATED, ChosenClamp, Goal, Method, Problem
from privatest.decision.worst_case import (
    SLACK,
    Known,
    Sides,
    WorstCase,
    score_for_sets,
    settled_case,
    sides_of,
    worst_score,
)
from privatest.errors import Infeasible
from privatest.hypotheses import ContinuousPair, DiscretePair, Distribution, Pair
from privatest.hypotheses.distribution import Leaf, Side
from privatest.laws import Curves, TwoSidedCurves
from privatest.numbers import Floats, Number, first_true_near, rational
from privatest.privacy import Noise, Notion, Pure, canonical_noise
from privatest.privacy.decision_chain import chain_starts, decision_noise
from privatest.privacy.notion import REPLACE, Neighbourhood
from privatest.progress_events import part
from privatest.scores import Score, whole_score
from privatest.scores.clamped import cell_masses, cell_ratios
from privatest.scores.score import FEW_VALUES, IntegerCells, LabelCells
from privatest.scores.score_law import cell_law
from privatest.theory.decomposition import paper_clamp

# Steps of the lattice while tuning. The final test has a finer lattice, except if the values are few.
COARSE_UNITS, WIDE_UNITS = 192, 24
# If a person has so many rows, or the noise is so many widths wide, a coarser lattice is fine enough beside the noise.
MANY_ROWS, MANY_WIDTHS = 16, 5_000


@dataclass(frozen=True, eq=False)
class Profile:
    """The law of the unclamped ratio: values in increasing order and their probabilities under P and Q.

    Attributes:
        ratios: the log-likelihood ratios, which may be infinite.
        p, q: their probabilities under P and under Q.
        parts: for sets, the parts of the two sets that P and Q are members of.
        upper: for a two-sided question, the probabilities under the alternative above P; Q is the one below.
    """

    ratios: Floats
    p: Floats
    q: Floats
    parts: tuple[Leaf, Leaf] | None = None
    upper: Floats | None = None

    def curves(
        self,
        clamp: tuple[float, float],
        notion: Notion,
        n: int,
        around: Neighbourhood = REPLACE,
        start: Fraction | None = None,
    ) -> Curves | TwoSidedCurves:
        """Return the error rates of a test with this clamp, or of a decision with a ``start``, on a coarse lattice."""
        a, b = clamp
        low, high = max(a, float(self.ratios[0])), min(b, float(self.ratios[-1]))
        wide = notion.equivalent * MANY_WIDTHS < 1
        units = FEW_UNITS if self.few else WIDE_UNITS if wide else COARSE_UNITS
        if around.rows >= MANY_ROWS:
            units = min(units, COARSE_UNITS // 4)
        steps = np.rint((np.clip(self.ratios, low, high) - low) * (units / (high - low))).astype(np.int64)
        if len(steps) > units:
            support = np.arange(units + 1)
            place = steps
        else:
            support, place = np.unique(steps, return_inverse=True)
        null, alternative = (self._law(mass, place, len(support)) for mass in (self.p, self.q))
        centre = (self.centre(clamp) - low) * (units / (high - low))
        width = math.ceil(around.extent(0, units, centre) - 1e-9)
        noise = canonical_noise(notion, width) if start is None else decision_noise(notion, width, start)
        spoiled = self.parts or (None, None)
        worst = _worst(spoiled[0], null, "low"), _worst(spoiled[1], alternative, "high")
        if self.upper is None:
            return Curves(support, *worst, n, noise)
        above = _worst(spoiled[1], self._law(self.upper, place, len(support)), "low")
        return TwoSidedCurves.of(support, *worst, _worst(spoiled[0], null, "high"), above, n, noise)

    @staticmethod
    def _law(masses: Floats, place: npt.NDArray[np.int64], count: int) -> Floats:
        return np.bincount(place, weights=masses, minlength=count).astype(np.float64)

    @cached_property
    def values(self) -> Floats:
        """The distinct ratios, up to rounding."""
        return np.unique(np.round(self.ratios, 12))

    @property
    def few(self) -> bool:
        """Whether there are few ratios, so that the test has the coarse lattice for few values."""
        return 2 < len(self.ratios) <= FEW_VALUES

    @cached_property
    def typical(self) -> float:
        """A typical size of the ratio: the 70% quantile of the finite ones, under P and Q together."""
        finite = np.isfinite(self.ratios)
        sizes, mass = np.abs(self.ratios[finite]), (self.p + self.q)[finite]
        order = np.argsort(sizes)
        below = np.cumsum(mass[order])
        if len(below) == 0 or below[-1] <= 0:
            return 1.0
        return float(sizes[order][np.searchsorted(below, 0.7 * below[-1])]) or 1.0

    def centre(self, clamp: tuple[float, float]) -> float:
        """Return the midpoint of the two means of the clamped ratio, which is about the threshold for one record."""
        values = np.clip(self.ratios, *clamp)
        return float(np.sum((self.p + self.q) * values)) / 2

    def moments(self, clamp: tuple[float, float]) -> tuple[float, float, float]:
        """Return the difference of the means and the two variances of the clamped ratio."""
        values = np.clip(self.ratios, *clamp)
        means = [float(np.sum(mass * values)) for mass in (self.p, self.q)]
        spreads = [float(np.sum(m * (values - mean) ** 2)) for m, mean in zip((self.p, self.q), means, strict=True)]
        lost = 0.0 if self.parts is None else sum(part.share for part in self.parts) * float(values[-1] - values[0])
        return means[0] - means[1] - lost, spreads[0], spreads[1]


def _worst(part: Leaf | None, law: Floats, side: Side) -> Floats:
    return law if part is None else part.worst(law, side)


def profile_of(pair: Pair, between: Distribution | None = None) -> Profile:
    """Return the profile of a pair, from its atoms or from the cells between the landmarks of a continuous pair.

    Args:
        pair: the pair of P and Q.
        between: for a two-sided question, the null; the pair then holds the alternatives above and below.
    """
    if isinstance(pair, DiscretePair):
        ratios, p, q = pair.ratios, pair.p, pair.q
        cells = LabelCells(pair.labels) if pair.kind == "labels" else IntegerCells(pair.first, int(pair.last[-1]))
        middle = p if between is None else cell_law(cells, between)[:-1]
    else:
        assert isinstance(pair, ContinuousPair)
        edges = pair.landmarks
        p, q = cell_masses(pair.null, edges), cell_masses(pair.alternative, edges)
        middle = p if between is None else cell_masses(between, edges)
        ratios = cell_ratios(pair, edges, p, q)
        if pair.null.cut is not None:  # two values, whatever the cells
            ratios, place = np.unique(np.round(ratios, 12), return_inverse=True)
            p, q, middle = (np.bincount(place, weights=masses) for masses in (p, q, middle))
    seen = (p + q + middle > 0) & ~np.isnan(ratios)
    order = np.argsort(ratios[seen], kind="stable")
    ratios, p, q, middle = (values[seen][order] for values in (ratios, p, q, middle))
    upper, p, q, middle = (masses / math.fsum(masses) for masses in (p, p, q, middle))
    return Profile(ratios, p, q) if between is None else Profile(ratios, middle, q, upper=upper)


# Candidate ends of the clamp, in units of the ratio's typical size.
_GRID = (0.05, 0.4, 1.0, 2.0, 4.0, 8.0, 32.0)
_FIRST_STEP, _LAST_STEP, _MOST_STARTS, _MOST_TRIALS, _NEXT_BEST = 1.6, 1.03, 14, 160, 6
Clamp = tuple[float, float]


def tuned_clamps(
    profile: Profile,
    notion: Notion,
    n: int,
    goal: Goal,
    *extra: Clamp,
    around: Neighbourhood = REPLACE,
    chains: Sequence[Fraction | None] = (None,),
) -> tuple[Clamp, ...]:
    """Return the clamp (a, b) with the largest margin at n records, and for few values the next best clamps.

    For three values every place of the middle one on the lattice is tried, which covers all clamps. Otherwise both ends
    are searched on a grid, then by a pattern search from the best two points of the grid: error rates are smooth in the
    ends but can have two peaks, one for counting rare records and one for using all of them (the paper's three-point
    example). For few values the error rates are not smooth, and the best clamp for n records need not be the best one
    for n + 1. So the next best clamps are returned as well.

    Args:
        profile, notion, n, goal, around: the question, for n records.
        extra: further clamps to try, such as the paper's.
        chains: the starts of a decision's chain to choose from; None for the tight test.
    """
    least, most = float(profile.ratios[0]), float(profile.ratios[-1])
    values = profile.values
    if len(values) <= 2:  # every clamp gives the same test up to scale
        return (extra[0] if extra else (max(least, -1.0), min(most, 1.0)),)
    tried: dict[Clamp, float] = {}

    def margin(clamp: Clamp) -> float:
        a, b = max(clamp[0], least), min(clamp[1], most)
        key = (float(f"{a:.12g}"), float(f"{b:.12g}"))
        if not key[0] < key[1]:  # ends that differ in their last digits alone
            return -math.inf
        if key not in tried:
            best = max(goal.margin(profile.curves(key, notion, n, around, start)) for start in chains)
            tried[key] = round(best, 12)  # of mirrored clamps the first, whatever the last digits say
        return tried[key]

    with part("tuning", _MOST_TRIALS) as tell:
        first = _ladder(*values) if len(values) == 3 else [(a, b) for _, a, b in _ranked(profile, notion, n, around)]
        for clamp in (*extra, *(first if len(values) == 3 else first[:_MOST_STARTS]), *_counts(profile)):
            margin(clamp)
            tell(len(tried))
        if len(values) > 3:
            for start in sorted(tried, key=lambda clamp: -tried[clamp])[:2]:
                _climb(margin, start, tried)
    best: dict[float, Clamp] = {}  # clamps of one margin are one test
    for clamp in sorted(tried, key=lambda clamp: -tried[clamp])[: None if profile.few else 1]:
        best.setdefault(tried[clamp], clamp)
    return tuple(best.values())[:_NEXT_BEST]


def _ladder(low: float, middle: float, high: float) -> list[Clamp]:
    """Return clamps that put the middle one of three values on each point of the lattice between the other two."""
    clamps = []
    for step in range(FEW_UNITS + 1):
        below, above = step / FEW_UNITS, 1 - step / FEW_UNITS
        width = min((middle - low) / below if below else math.inf, (high - middle) / above if above else math.inf)
        width = width if math.isfinite(width) else 1.0
        clamps.append((middle - below * width, middle + above * width))
    return clamps


def _counts(profile: Profile) -> list[Clamp]:
    """Return the clamps between neighbouring values, if there are few: they count the records on one side."""
    ends = np.clip(profile.values, -1e3, 1e3).tolist() if profile.few else []  # finite ones
    return [(a, b) for a, b in pairwise(ends) if a < b]


def rough_clamp(profile: Profile, notion: Notion, n: int, around: Neighbourhood = REPLACE) -> Clamp:
    """Return an approximately best clamp, by the means and variances of the noisy total."""
    tried: dict[Clamp, float] = {}
    spread = _noise_variance(notion)

    def value(clamp: Clamp) -> float:
        if clamp not in tried:
            tried[clamp] = _deflection(profile, clamp, spread, n, around)
        return tried[clamp]

    _, *start = _ranked(profile, notion, n, around)[0]
    return _climb(value, (start[0], start[1]), tried)


def _ranked(profile: Profile, notion: Notion, n: int, around: Neighbourhood) -> list[tuple[float, float, float]]:
    """Return (deflection, a, b) for all clamps of the grid, the largest deflection first."""
    least, most = float(profile.ratios[0]), float(profile.ratios[-1])
    size, spread = profile.typical, _noise_variance(notion)
    lows = sorted({max(-g * size, least) for g in _GRID})
    highs = sorted({min(g * size, most) for g in _GRID})
    return sorted(((_deflection(profile, (a, b), spread, n, around), a, b) for a in lows for b in highs), reverse=True)


def _deflection(profile: Profile, clamp: Clamp, spread: float, n: int, around: Neighbourhood) -> float:
    """Return the difference of the means over the standard deviation of the noisy total, which ranks clamps."""
    gap, null, alternative = profile.moments(clamp)
    low, high = max(clamp[0], float(profile.ratios[0])), min(clamp[1], float(profile.ratios[-1]))
    width = around.extent(low, high, profile.centre(clamp))
    return n * gap / math.sqrt(n * (null + alternative) / 2 + spread * width**2)


def _noise_variance(notion: Notion) -> float:
    """Return the variance of the canonical noise for a width of 1, without a lattice."""
    if isinstance(notion, Pure):
        return 1 / (2 * math.sinh(min(notion.epsilon, 40) / 2)) ** 2 + 1 / 12
    units = 1 << 10
    return canonical_noise(notion, units).variance / units**2


def _climb(margin: Callable[[Clamp], float], start: Clamp, tried: dict[Clamp, float]) -> Clamp:
    """Find the clamp of the largest margin by a pattern search from a start.

    Each step multiplies the distance of one end, or of both, from 0 (from the middle of a clamp that does not contain
    0). If no step increases the margin, the step is made smaller.
    """
    here, step = start, _FIRST_STEP
    zero = 0.0 if start[0] <= 0 <= start[1] else (start[0] + start[1]) / 2
    value = margin(here)
    while step > _LAST_STEP and len(tried) < _MOST_TRIALS:
        moves = [(s, 1.0) for s in (step, 1 / step)] + [(1.0, s) for s in (step, 1 / step)]
        moves += [(s, s) for s in (step, 1 / step)]
        for left, right in moves:
            there = (zero + (here[0] - zero) * left, zero + (here[1] - zero) * right)
            if there[0] < there[1] and margin(there) > value + 1e-12:
                here, value = there, margin(there)
                break
        else:
            step = math.sqrt(step)
    return here


def tuning_size(n: int) -> int:
    """The number of records for which the clamp of a test on n records is tuned: n, or a nearby number of a grid.

    The best clamp hardly depends on n. If all n within 3% share a clamp, the advantage is smooth in n, and the search
    for a sample size tunes only once or twice.

    >>> [tuning_size(n) for n in (1, 64, 115, 1000, 10**6)]
    [1, 64, 114, 995, 989724]
    """
    if n <= 64:
        return n
    return round(2 ** (round(math.log2(n) * 24) / 24))


# The largest sample size that is searched for.
MOST_RECORDS = 10**13
# If fewer numbers of records than this are possible, the search starts at the upper end, without a guess.
FEW_NUMBERS = 4
# For scores with fewer values than FEW_SCORES power is a sawtooth in n, and further numbers of records are checked.
FEW_SCORES = 64
LEAST_AHEAD, MOST_AHEAD = 32, 400
# Number of teeth of the sawtooth that are checked.
TEETH = 2


class Tuner:
    """Finds the clamp, the sample size and the test for a problem, a method and a goal.

    It remembers every clamp, score and law that it has computed. :meth:`of` remembers the last few tuners.

    Attributes:
        problem: the hypotheses, the notion of privacy, and the neighbouring data sets.
        method: the settings of the test that the user fixed.
        goal: the error rates that the test must reach.
    """

    def __init__(
        self,
        problem: Problem,
        method: Method,
        goal: Goal,
        *,
        relative: Tuner | None = None,
    ) -> None:
        """Make a tuner.

        Args:
            problem, method, goal: see the class.
            relative: a tuner for the same hypotheses and scores, whose results this one shares.
        """
        self.problem, self.method, self.goal = problem, method, goal
        self._relative = relative
        self._scores: dict[ChosenClamp, Score] = {} if relative is None else relative._scores
        self._clamps: dict[int, Sequence[ChosenClamp]] = {}
        self._rivals: dict[str | ChosenClamp, Tuner] = {}
        self._starts: dict[tuple[ChosenClamp, int], Fraction | None] = {}
        self._worst_cases: dict[tuple[ChosenClamp, int], WorstCase] = {}
        self._settled_cases: dict[ChosenClamp, WorstCase | None] = {}
        self._worst_laws: dict[ChosenClamp, dict[tuple[int, int], Known]] = {}
        self._last_test: PrivateTest | None = None
        self._sample_size: int | None = None

    @classmethod
    def of(cls, problem: Problem, method: Method, goal: Goal) -> Tuner:
        """Return the tuner of a problem, from a cache. Raises InvalidInput for a method that does not fit."""
        method.check_fits(problem)
        tuner = _cached_tuner(problem, method, goal)
        if tuner.sides is not None and tuner.sides.above:
            method.check_two_sided(problem)
        return tuner

    @cached_property
    def sides(self) -> Sides | None:
        """The parts of the alternative by their side of the null; None for two distributions."""
        if self._relative is not None:
            return self._relative.sides
        hypotheses = self.problem.hypotheses
        return None if hypotheses.simple else sides_of(hypotheses)

    @property
    def pair(self) -> Pair:
        """The two distributions whose ratio is the score."""
        return self.problem.pair if self.sides is None else self.sides.pair

    @cached_property
    def profile(self) -> Profile:
        """The law of the unclamped ratio."""
        if self._relative is not None:
            return self._relative.profile
        if self.sides is None:
            return profile_of(self.pair)
        profile = profile_of(self.pair, self.sides.null if self.sides.above else None)
        return replace(profile, parts=self.problem.hypotheses.parts)

    @property
    def _calibrated(self) -> bool:
        """Whether the threshold is the one with the best error rates."""
        method = self.method
        return method.threshold is None and (method.kind in CALIBRATED or self.goal.alpha is not None)

    def _with(self, *, problem: Problem | None = None, **fixed: Any) -> Tuner:
        """Return a tuner for another notion of privacy or other neighbours, or with other settings of the method."""
        method = replace(self.method, **fixed) if fixed else self.method
        return Tuner(problem or self.problem, method, self.goal, relative=self)

    @cached_property
    def statistic_tuner(self) -> Tuner:
        """The tuner for tests that release their statistic, if this one is for tests that release a decision."""
        relative, method = self._relative, replace(self.method, release="statistic")
        if relative is not None and (relative.problem, relative.method) == (self.problem, method):
            return relative
        return self._with(release="statistic")

    def with_clamp_for(self, n: int) -> Tuner:
        """Return a tuner that uses the clamp of n records for every number of records."""
        return self._with(clamp=self.clamp_for(n)) if self.method.clamp == "tuned" else self

    def at_epsilon(self, epsilon: Number, clamp: ChosenClamp | None = None) -> Tuner:
        """Return a tuner for the same problem at another epsilon, perhaps with a fixed clamp."""
        problem = replace(self.problem, privacy=Pure(rational(epsilon, "epsilon")))
        return self._with(problem=problem, clamp=clamp or self.method.clamp)

    def rivals(self, n: int) -> Iterator[Tuner]:
        """Yield tuners of other tests with the same privacy, one of which may be slightly better.

        If the clamp is tuned, their clamps are the paper's and the next best ones; for a decision there are also the
        tests that release their statistic. A rival can be better because the clamp is tuned on a coarse lattice or for
        a nearby n, and a chain starts from one of few values. Every smaller class of tests must be a rival, so that a
        larger class is never worse.
        """
        if self.method.clamp == "tuned" and self.method.kind in CALIBRATED:
            clamps: list[str | ChosenClamp] = ["paper", *self.clamps_for(n)[1:]]
            for clamp in clamps:
                if clamp not in self._rivals:
                    self._rivals[clamp] = self._with(clamp=clamp)
                yield self._rivals[clamp]
        if self.method.kind == "stair":
            yield self.statistic_tuner
            yield from self.statistic_tuner.rivals(n)

    def test(self, n: int) -> PrivateTest:
        """Return the best test on n records, of this tuner and its rivals."""
        rivals = list(self.rivals(n))
        best = max((self, *rivals), key=lambda one: round(one.own_margin(n), 12)) if rivals else self
        return best._own_test(n)

    def _own_test(self, n: int) -> PrivateTest:
        """Return this tuner's own test on n records. The last one is cached."""
        if self._last_test is None or self._last_test.n != n:
            self._last_test = self._make_test(n)
        return self._last_test

    def _make_test(self, n: int) -> PrivateTest:
        method, problem = self.method, self.problem
        if not method.private:
            return unclamped(self.pair, n, method.kind, threshold=method.threshold, alpha=self.goal.alpha)
        clamp, worst = self.clamp_for(n), self._worst_case(n)
        test = from_score(
            self.pair,
            self._pair_score(clamp) if worst is None else worst.score,
            problem.privacy,
            n,
            method.kind,
            clamp,
            threshold=method.threshold,
            alpha=self.goal.alpha,
            around=problem.around,
            cutoffs=None if worst is None else worst.cutoffs,
            start=self.start_for(n),
        )
        if worst is None:
            return test
        return replace(
            test,
            null=problem.null.describe(),
            alternative=problem.alternative.describe(),
            worst_members=worst.members,
        )

    @cached_property
    def _paper_clamp(self) -> ChosenClamp:
        """The clamp of the paper's decomposition."""
        return paper_clamp(self.pair, self.problem.privacy.equivalent)

    def clamp_for(self, n: int) -> ChosenClamp:
        """Return the clamp of the test on n records."""
        return self.clamps_for(n)[0]

    def clamps_for(self, n: int) -> Sequence[ChosenClamp]:
        """Return the clamp of the test on n records and, if it is tuned, the next best clamps."""
        if not isinstance(self.method.clamp, str):
            return (self.method.clamp,)
        if self.method.clamp == "paper":
            return (self._paper_clamp,)
        size = tuning_size(n)
        if size not in self._clamps:
            first = [self._paper_clamp]
            if self.method.kind == "stair":
                first.append(self.statistic_tuner.clamp_for(n))
            self._clamps[size] = tuned_clamps(
                self.profile,
                self.problem.privacy,
                size,
                self.goal,
                *((float(a), float(b)) for a, b in first),
                around=self.problem.around,
                chains=self._chain_starts,
            )
        return self._clamps[size]

    @property
    def _chain_starts(self) -> Sequence[Fraction | None]:
        """The starts of a decision's chain to choose from; a single None if the statistic is released."""
        return chain_starts(self.problem.privacy) if self.method.kind == "stair" else (None,)

    def start_for(self, n: int) -> Fraction | None:
        """Return the best start of the decision's chain for n records, under the laws of the pair."""
        starts = self._chain_starts
        if len(starts) == 1:
            return starts[0]
        clamp = self.clamp_for(n)
        if (clamp, n) not in self._starts:
            score = self._pair_score(clamp)
            margins = [self._margin(score, self._noise(score, clamp, start), n) for start in starts]
            self._starts[clamp, n] = starts[int(np.argmax(margins))]
        return self._starts[clamp, n]

    def _noise(self, score: Score, clamp: ChosenClamp, start: Fraction | None) -> Noise:
        return calibrated_noise(self.method.kind, score, self.problem.privacy, clamp, self.problem.around.rows, start)

    def _margin(self, score: Score, noise: Noise, n: int) -> float:
        """Return the margin by which the best cutoff exceeds the goal, under the first laws of the score."""
        return self.goal.margin(Curves.of(score, n, noise))

    def score_for(self, n: int) -> Score:
        """Return the score of the test on n records, with the worst laws of sets."""
        if not self.method.private:
            return whole_score(self.pair, n)
        worst = self._worst_case(n)
        return self._pair_score(self.clamp_for(n)) if worst is None else worst.score

    def _pair_score(self, clamp: ChosenClamp) -> Score:
        """Return the score with this clamp and the laws of the pair."""
        if clamp not in self._scores:
            score = kind_score(self.pair, self.method.kind, clamp)
            sets = self.problem.hypotheses
            self._scores[clamp] = score if self.sides is None else score_for_sets(sets, self.sides, score)
        return self._scores[clamp]

    def _worst_case(self, n: int) -> WorstCase | None:
        """Return the worst laws of sets for the test on n records; None for two distributions."""
        if self.sides is None:
            return None
        clamp, method = self.clamp_for(n), self.method
        if clamp not in self._settled_cases:
            score = self._pair_score(clamp)
            self._settled_cases[clamp] = settled_case(self.problem.hypotheses, self.sides, score)
        if (settled := self._settled_cases[clamp]) is not None:
            return settled
        if (clamp, n) not in self._worst_cases:
            score = self._pair_score(clamp)
            noise = self._noise(score, clamp, self.start_for(n))

            def cutoffs_of(trial: Score) -> tuple[Fraction, ...]:
                if self._calibrated:
                    return calibrated_cutoffs(trial, noise, n, self.goal.alpha)
                return (literal_cutoff(trial, method.kind, method.threshold, n),)

            laws = self._worst_laws.setdefault(clamp, {})
            hypotheses = self.problem.hypotheses
            self._worst_cases[clamp, n] = worst_score(hypotheses, self.sides, score, noise, n, cutoffs_of, laws)
        return self._worst_cases[clamp, n]

    def margin(self, n: int) -> float:
        """Return the margin by which the best test on n records, of this tuner and its rivals, exceeds the goal.

        The rivals are computed only if this tuner's own test misses the goal.
        """
        own = self.own_margin(n)
        return own if own >= 0 else max([own, *(rival.own_margin(n) for rival in self.rivals(n))])

    def own_margin(self, n: int) -> float:
        """Return the exact margin by which this tuner's own test on n records exceeds the goal; negative below it."""
        score = self.score_for(n)
        if not self._has_curves(score):
            test = self._own_test(n)
            return self.goal.surplus(test.alpha, test.beta)
        return self._margin(score, self._noise(score, self.clamp_for(n), self.start_for(n)), n)

    def _has_curves(self, score: Score) -> bool:
        """Whether one law under P and one under Q determine the error rates at the best cutoff."""
        one_law = len(score.null_laws) + len(score.alternative_laws) == 2 and not score.upper_laws
        coin = self.method.kind != "stair" or self.sides is None  # a stair for sets has no coin
        return one_law and coin and self._calibrated and self.method.private and self.problem.around.kind == "replace"

    def sample_size(self, between: tuple[int, int] | None = None) -> int:
        """Return the smallest n such that the tests on n records, and on any larger number of records, meet the goal.

        Args:
            between: two numbers of records. The goal is known to be missed with fewer than the first, and to be met
                with the second.
        """
        if self._sample_size is None:
            self._refuse_hopeless()
            with part("the number of records", 2) as tell:
                tell(0)
                crossing = self._crossing(between)
                tell(1)
                n = self._beyond_dips(crossing)
                # A smaller n is possible only where a rival meets the goal with one record fewer.
                if n > 1 and self.margin(n - 1) >= 0:
                    n = self._beyond_dips(first_true_near(lambda m: self.margin(m) >= 0, n - 1, most=MOST_RECORDS))
                self._sample_size = n
        return self._sample_size

    def _crossing(self, between: tuple[int, int] | None) -> int:
        """Return an n at which this tuner's own test meets the goal, while n - 1 records do not."""
        if between is not None:
            least, enough = between
            if enough - least < FEW_NUMBERS or tuning_size(least) == tuning_size(enough):
                return first_true_near(
                    lambda n: n >= enough or (n >= least and self.own_margin(n) >= 0), enough, most=MOST_RECORDS
                )
        n = first_true_near(lambda n: self.own_margin(n) >= 0, self._guess(), most=MOST_RECORDS)
        if n <= MOST_RECORDS:
            return n
        if self.margin(MOST_RECORDS) >= 0:  # of a rival
            return MOST_RECORDS
        best = self.test(MOST_RECORDS)
        raise Infeasible(
            f"test={self.method.kind!r} does not reach {self.goal} with up to {MOST_RECORDS:.0e} records: there alpha "
            f"is {best.alpha:.4g} and beta {best.beta:.4g}. Use a larger epsilon, a lower target or a more distant "
            "pair."
        )

    def _beyond_dips(self, crossing: int) -> int:
        """The smallest n from the crossing on such that the goal is met at n and at all larger numbers of records.

        Power can dip below the goal again beyond the crossing.
        """
        while True:
            fixed = self.with_clamp_for(crossing)
            score = fixed.score_for(crossing)
            counts = range(crossing + 1, crossing + _ahead(score, crossing) + 1)
            # A clamp tuned for each n is at least as good as the one tuned for the crossing.
            doubtful = [n for n in counts if not fixed._surely_meets(n, score) and fixed.margin(n) < 0]
            dips = [n for n in doubtful if self.margin(n) < 0]
            if not dips:
                return crossing
            crossing = dips[-1] + 1

    def _surely_meets(self, n: int, score: Score) -> bool:
        """Whether n records certainly meet the goal, by the worst laws of sets for a nearby number of records.

        The errors under the worst laws for n records exceed those under these laws by at most the slack of both sets.
        """
        if self.sides is None or not self._has_curves(score):
            return False
        return self._margin(score, self._noise(score, self.clamp_for(n), None), n) >= 2 * SLACK

    def _guess(self) -> int:
        """Return a number of records near the sample size, from a normal approximation and the coarse profile."""
        kind, profile, privacy, around = self.method.kind, self.profile, self.problem.privacy, self.problem.around
        if kind == "llr":
            return self._guess_without_privacy()
        if kind not in CALIBRATED or self.method.clamp != "tuned" or len(profile.ratios) <= 2:
            return 64
        noise = 2 / (math.sinh(min(float(privacy.equivalent), 9.0)) * self.pair.total_variation)
        n = min(self._guess_without_privacy() + math.ceil(min(noise, MOST_RECORDS)), MOST_RECORDS // 4)
        clamp = rough_clamp(profile, privacy, n, around)

        def reaches(m: int, clamp: Clamp = clamp, starts: Sequence[Fraction | None] = (None,)) -> bool:
            return any(self.goal.margin(profile.curves(clamp, privacy, m, around, start)) >= 0 for start in starts)

        n = min(first_true_near(reaches, n, most=MOST_RECORDS, within=1.0), MOST_RECORDS)
        if kind != "stair":
            return n
        # A stair can need far fewer records. One tuned clamp shows how many, without tuning for each number tried.
        a, b = self.clamp_for(n)
        with_starts = partial(reaches, clamp=(float(a), float(b)), starts=self._chain_starts)
        return min(first_true_near(with_starts, n, most=MOST_RECORDS), MOST_RECORDS)

    def _guess_without_privacy(self) -> int:
        """Return the sample size without privacy, by a normal approximation.

        The totals of n log ratios under P and Q are about sqrt(-8 n log(1 - H^2)) standard deviations apart.
        """
        alpha, beta = self.goal.alpha, self.goal.beta
        if alpha is None or beta is None:
            alpha = beta = (1 - (self.goal.advantage or 0.0)) / 2
        quantiles = [NormalDist().inv_cdf(min(max(1 - error, 1e-15), 1 - 1e-15)) for error in (alpha, beta)]
        rate = -8 * math.log1p(-min(self.pair.hellinger_squared, 1 - 1e-15))
        return min(max(round(sum(quantiles) ** 2 / rate), 1), MOST_RECORDS)

    def _refuse_hopeless(self) -> None:
        """Raise Infeasible for a fixed threshold at which one of the errors tends to 1/2 or 1.

        For both errors to vanish, the total must drift up under P and down under Q.
        """
        if self._calibrated:
            return
        score = self.score_for(1)
        null, alternative = (
            float(score.origin) + float(score.step) * score.mean(law) for law in (score.null_law, score.alternative_law)
        )
        size = abs(null) + abs(alternative)
        if null > 1e-12 * size and alternative < -1e-12 * size:
            return
        side, mean = ("null", null) if null <= 1e-12 * size else ("alternative", alternative)
        raise Infeasible(
            f"test={self.method.kind!r} with threshold {float(self.method.threshold or 0):g} never reaches {self.goal} "
            f"for good: one record adds {mean:.3g} on average under the {side}, so that this side's error stays at 1/2 "
            "or more for every n. Use test='tight', whose threshold is calibrated, or another threshold."
        )


def _ahead(score: Score, n: int) -> int:
    """Return the number of sample sizes above n that are checked for dips of the power.

    With many scores the power has no sawtooth. With few, the length of a tooth is the number of records in which the
    rarest score occurs once on average.
    """
    if len(score.support) >= FEW_SCORES:
        return 3
    rarest = float((score.null_law + score.alternative_law).min()) / 2
    return min(max(LEAST_AHEAD, n // 8), MOST_AHEAD, math.ceil(TEETH / rarest))


@lru_cache(maxsize=32)
def _cached_tuner(problem: Problem, method: Method, goal: Goal) -> Tuner:
    """Return the tuner of these arguments. The last 32 tuners are cached, with everything that they have computed."""
    statistic = replace(method, release="statistic")
    relative = _cached_tuner(problem, statistic, goal) if method.release == "decision" else None
    return Tuner(problem, method, goal, relative=relative)
