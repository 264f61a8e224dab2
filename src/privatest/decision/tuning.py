"""A score with the laws that are worst for it over sets of distributions: error rates then hold for every member.

The clamp that needs the fewest records, chosen by exact error rates.

A goal says what a test must achieve (an advantage, or two error rates), a :class:`Profile` what tuning needs to know
of a pair: the law of its unclamped ratio, finely binned. A :class:`Tuner` has one test for each n, what the user fixed
and the rest tuned, and whatever smaller class of tests does better: :meth:`Tuner.rivals`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest import numbers
from privatest.decision import PrivateTest
from privatest.decision.calibration import (
    CALIBRATED,
    FEW_UNITS,
    KINDS,
    PRIVATE_KINDS,
    Goal,
    calibrated_cutoffs,
    calibrated_noise,
    check_decision,
    check_two_sided,
    from_score,
    kind_score,
    literal_cutoff,
    unclamped,
)
from privatest.errors import InvalidInput, NothingToTest, shown
from privatest.hypotheses import ContinuousPair, DiscretePair, Distribution, Pair
from privatest.hypotheses.distribution import Distribution, Pair
from privatest.hypotheses.parse import Hypotheses, make_hypotheses, matched, nearest
from privatest.hypotheses.sets import Leaf, Side
from privatest.laws import Curves, NoisyTotal, TwoSidedCurves
from privatest.laws.fourier import fast_length
from privatest.numbers import Floats, Integers, Number, rational, suggestion
from privatest.privacy import Noise, Notion, Pure, canonical_noise, make_notion
from privatest.privacy.chain import chain_starts, decision_noise
from privatest.privacy.noise import REPLACE, Neighbourhood, make_neighbourhood
from privatest.progress_events import part
from privatest.scores import Score, clamped_score, whole_score
from privatest.scores.clamped import cell_masses, cell_ratios
from privatest.scores.score import FEW_VALUES, IntegerCells, LabelCells
from privatest.scores.score_law import (
    Known,
    Worst,
    bounding_law,
    cell_law,
    every_score,
    score_law,
    worst_laws,
    worst_member,
)
from privatest.theory.decomposition import paper_clamp

# The worst laws move the cutoff, and another cutoff may have other worst members; it settles at once or not at all.
ROUNDS = 3
# Ratios are clipped to this many nats to see on which side of the null an alternative lies.
CLIP = 1.0
FEW_SCORES, MOST_TOTALS = 64, 2**16
"""Of more scores a transform of the whole law of their total is taken, on a lattice of so many values at most."""


@dataclass(frozen=True, eq=False)
class Sides:
    """The parts of a question's alternative by the side of the null on which they lie.

    Attributes:
        pair: whose ratio the score is: null and alternative or, of a two-sided question, the nearest alternatives to
            either side.
        below: parts that score lower than the null: all of them, where the question is one-sided.
        above: parts that score higher.
        null: the member of the null that is nearest to an alternative.
    """

    pair: Pair
    below: tuple[Leaf, ...]
    above: tuple[Leaf, ...]
    null: Distribution


def sides_of(question: Hypotheses) -> Sides:
    """On which side of the null each part of the alternative lies, by the ratio of the two nearest members."""
    score = clamped_score(question.pair, (-CLIP, CLIP))

    def mean(member: Distribution) -> float:
        support, law = score_law(score, member)
        return math.fsum(support * law)

    nulls, alternatives = question.null.leaves(), question.alternative.leaves()
    middle, other = mean(question.pair.null), mean(question.pair.alternative)
    for leaf in nulls if len(nulls) > 1 else ():
        if mean(nearest([leaf], alternatives).pair.null) <= other:
            raise NothingToTest(
                f"null {question.null.describe()} has members on both sides of the alternative "
                f"{question.alternative.describe()}. Exchange them: an alternative may lie on both sides of the null."
            )
    found = [(leaf, nearest(nulls, [leaf]).pair.alternative) for leaf in alternatives] if len(alternatives) > 1 else []
    above = [(leaf, member) for leaf, member in found if mean(member) >= middle]
    if not above:
        return Sides(question.pair, tuple(alternatives), (), question.pair.null)
    below = [(leaf, member) for leaf, member in found if mean(member) < middle]
    ends = [nearest(nulls, [leaf for leaf, _ in side]).pair.alternative for side in (above, below)]
    pair = matched(*ends)
    score = clamped_score(pair, (-CLIP, CLIP))
    means = [mean(member) for member in (*[m for _, m in below], question.pair.null, *[m for _, m in above])]
    if not max(means[: len(below)]) < means[len(below)] < min(means[len(below) + 1 :]):
        raise NothingToTest(
            f"alternative {question.alternative.describe()} has parts that do not lie on two sides of the null "
            f"{question.null.describe()} along one score. Ask of each part with a test of its own."
        )
    return Sides(pair, tuple(leaf for leaf, _ in below), tuple(leaf for leaf, _ in above), question.pair.null)


def worst_score(
    question: Hypotheses,
    sides: Sides,
    score: Score,
    noise: Noise,
    n: int,
    cutoffs_of: Callable[[Score], Sequence[Fraction]],
    known: dict[tuple[Any, ...], Known],
) -> tuple[Score, str, str]:
    """The score with the worst laws of both sets, and the worst member found of each.

    Args:
        score: made for the sides' pair.
        noise, n: of the test; ``cutoffs_of`` gives its cutoffs for a score with certain laws.
        known: laws of this score by side and part, kept from one n to the next.
    """
    support = every_score(score)
    nulls = question.null.leaves()
    two = bool(sides.above)
    made = _first_guess(score, question, sides)
    cutoffs: Sequence[Fraction] | None = None
    worst: list[list[Worst]] = []
    for _ in range(ROUNDS):
        new = tuple(cutoffs_of(made))
        if new == cutoffs:
            break
        cutoffs = new
        low, high = (_error(support, n, noise, cutoffs[-1 if upper else 0], upper=upper) for upper in (False, True))
        asked: list[tuple[Sequence[Leaf], Side, Callable[[Floats], float]]] = [
            (nulls, "low", low),
            (sides.below, "high", lambda law, low=low: 1 - low(law)),  # type: ignore[misc]
            (nulls, "high", high if two else _no_error),
            (sides.above if two else sides.below, "low", (lambda law, high=high: 1 - high(law)) if two else _no_error),  # type: ignore[misc]
        ]
        worst = [
            _of_leaves(score, leaves, side, error, [known.setdefault((part, i), {}) for i in range(len(leaves))])
            for part, (leaves, side, error) in enumerate(asked)
        ]
        made = _with_laws(score, [[entry.law for entry in found] for found in worst], two)
    null_parts, alternative_parts = ([0, 2], [1, 3]) if two else ([0], [1])
    null, alternative = (
        max((entry for part in parts for entry in worst[part]), key=lambda entry: entry.attained).member
        for parts in (null_parts, alternative_parts)
    )
    return made, null, alternative


def settled_score(question: Hypotheses, sides: Sides, score: Score) -> tuple[Score, str, str] | None:
    """:func:`worst_score` where one member of each set is the worst for every n, noise and cutoff; else None.

    Then a question about sets costs what that about these two members costs.
    """
    if sides.above:
        return None
    nulls, others = question.null.leaves(), sides.below
    null, alternative = worst_member(score, nulls, "low"), worst_member(score, others, "high")
    if null is None or alternative is None:
        return None
    outer = [bounding_law(score, leaf, "high") for leaf in nulls], [bounding_law(score, leaf, "low") for leaf in others]
    return _with_laws(score, [[null[0]], [alternative[0]], *outer], two=False), null[1], alternative[1]


def envelope_score(question: Hypotheses, score: Score) -> Score:
    """The score with one law for each set: no member of the null has lower scores, none of the alternative higher ones.

    Its outer laws bound them on the other side.

    For mechanisms whose guarantees are monotone in every record's score; they have no single cutoff to be worst at.
    """
    support = every_score(score)
    heights = (support - support[0]) / max(int(support[-1] - support[0]), 1)
    nulls, alternatives = question.null.leaves(), question.alternative.leaves()
    sides: list[tuple[Sequence[Leaf], Side, Floats]] = [
        (nulls, "low", 1 - heights),
        (alternatives, "high", heights),
        (nulls, "high", heights),
        (alternatives, "low", 1 - heights),
    ]
    laws = []
    for leaves, side, badness in sides:
        found = _of_leaves(score, leaves, side, lambda law, of=badness: float(law @ of), [{} for _ in leaves])  # type: ignore[misc]
        below = [np.cumsum(entry.law) for entry in found]
        envelope = np.maximum.reduce(below) if side == "low" else np.minimum.reduce(below)
        envelope[-1] = 1.0
        laws.append([np.maximum(np.diff(envelope, prepend=0.0), 0.0)])
    made = _with_laws(score, laws, two=False)
    if not made.mean(made.null_law) > made.mean(made.alternative_law):
        raise NothingToTest(
            f"null {question.null.describe()} and alternative {question.alternative.describe()}: some members of one "
            "score as members of the other do, so no change between the two can be promised to be seen. Use narrower "
            "sets."
        )
    return made


def _no_error(_: Floats) -> float:
    """For bounds that need not be tight: the box as a whole."""
    return 0.0


def _first_guess(score: Score, question: Hypotheses, sides: Sides) -> Score:
    """The score with the laws of the nearest members."""
    support = every_score(score)

    def law(member: Distribution) -> list[Floats]:
        found, masses = score_law(score, member)
        whole = np.zeros(len(support))
        whole[np.searchsorted(support, found)] = masses
        return [whole]

    null = law(sides.null)
    if sides.above:
        return _with_laws(score, [null, law(sides.pair.alternative), null, law(sides.pair.null)], two=True)
    alternative = law(question.pair.alternative)
    return _with_laws(score, [null, alternative, null, alternative], two=False)


def _of_leaves(
    score: Score, leaves: Sequence[Leaf], side: Side, error: Callable[[Floats], float], known: Sequence[Known]
) -> list[Worst]:
    each = (worst_laws(score, leaf, side, error, laws) for leaf, laws in zip(leaves, known, strict=True))
    found = [entry for entries in each for entry in entries]
    return sorted(found, key=lambda entry: -entry.error)


def _error(support: Integers, n: int, noise: Noise, cutoff: Fraction, *, upper: bool) -> Callable[[Floats], float]:
    """The probability of a noisy total up to the cutoff, or beyond it where that is the upper one."""
    low = int(support[0])
    if len(support) > FEW_SCORES and n * FEW_SCORES <= MOST_TOTALS:
        return _quick_error(support - low, n, noise, cutoff - n * low, upper=upper)

    def error(law: Floats) -> float:
        curves = Curves(support, law, law, n, noise)
        offset = float((cutoff - curves.base) / curves.unit)
        if curves.everywhere and abs(offset) <= curves.reach:
            below = float(curves.cdfs(np.array([offset]))[0][0])
            return 1 - below if upper else below
        total = NoisyTotal(support, law, n, noise)
        return total.sf(cutoff) if upper else total.cdf(cutoff)

    return error


def _quick_error(scores: Integers, n: int, noise: Noise, cutoff: Fraction, *, upper: bool) -> Callable[[Floats], float]:
    """:func:`_error`, nearly, of scores that start at 0: which of two laws is worse, not what is stated of the worst.

    It is the mean of the noise's cdf at ``cutoff - S``. By Parseval's theorem that is a sum over frequencies, whose
    part of the noise is the same for every law. Where n scores have many totals the mass of each score is shared by
    its neighbours on a coarser lattice, which leaves every mean, and which of two laws is the lower, as they are.
    """
    step = -(-n * int(scores[-1]) // MOST_TOTALS)
    below, part = np.divmod(scores, step)
    most = int(below[-1]) + 1
    totals = n * most + 1
    size = fast_length(totals)
    away = math.floor(2 * cutoff) / 2 - float(step) * np.arange(totals)  # noise lies on integers or halves
    weights = np.conj(np.fft.rfft(noise.sf(away) if upper else noise.cdf(away), size))
    weights[1 : (size + 1) // 2] *= 2
    least = math.exp(-80 / n)

    def error(law: Floats) -> float:
        moved = law * (part / step)
        masses = np.bincount(below, law - moved, most + 1) + np.bincount(below + 1, moved, most + 1)
        waves = np.fft.rfft(masses, size)
        seen = np.abs(waves) ** 2 > least
        return float((np.exp(n * np.log(waves[seen])) @ weights[seen]).real) / size

    return error


def _with_laws(score: Score, laws: list[list[Floats]], two: bool) -> Score:
    """The same score with other laws, over all of its scores that one of them visits.

    Args:
        laws: lowest of the null; highest of the alternative (below the null); highest of the null; lowest of the
            alternative (above the null, in a two-sided question).
    """
    support = every_score(score)
    visited = np.any([law > 0 for side in laws for law in side], axis=0)
    null, alternative, outer, last = (tuple(law[visited] / math.fsum(law) for law in side) for side in laws)
    return replace(
        score,
        support=support[visited],
        null_law=null[0],
        alternative_law=alternative[0],
        other_null_laws=null[1:],
        other_alternative_laws=alternative[1:],
        outer_null_laws=outer,
        outer_alternative_laws=() if two else last,
        upper_laws=last if two else (),
    )


RELEASES = ("statistic", "decision")
"""What a test is tuned to release: its noisy statistic and all that follows from it, or the decision."""

# Steps of the lattice used while tuning; the final test has a finer one, but where values are few: it has the same.
COARSE_UNITS, WIDE_UNITS = 192, 24
# Where noise is for so many rows of a person, or so many widths wide, what a record is rounded by is nothing beside it.
MANY_ROWS, MANY_WIDTHS = 16, 5_000


@dataclass(frozen=True, eq=False)
class Profile:
    """Ratios in increasing order (perhaps infinite) and their probabilities under P and Q.

    Attributes:
        parts: of sets, the parts that P and Q are members of, with what spoils them.
        upper: of a two-sided question, the probabilities under the alternative that lies above P; Q lies below.
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
        """Error rates of the tight test, or of the stair, with this clamp, on a coarse lattice."""
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
        """The ratios that there are, each once, whatever their last digits say."""
        return np.unique(np.round(self.ratios, 12))

    @property
    def few(self) -> bool:
        """Whether the test has the lattice of few values."""
        return 2 < len(self.ratios) <= FEW_VALUES

    @cached_property
    def typical(self) -> float:
        """A typical size of the ratio: the 70% quantile of the finite ones, P and Q together; infinite ones apart."""
        finite = np.isfinite(self.ratios)
        sizes, mass = np.abs(self.ratios[finite]), (self.p + self.q)[finite]
        order = np.argsort(sizes)
        below = np.cumsum(mass[order])
        if len(below) == 0 or below[-1] <= 0:
            return 1.0
        return float(sizes[order][np.searchsorted(below, 0.7 * below[-1])]) or 1.0

    def centre(self, clamp: tuple[float, float]) -> float:
        """The middle between the means of the clamped ratio: about the threshold for one record."""
        values = np.clip(self.ratios, *clamp)
        return float(np.sum((self.p + self.q) * values)) / 2

    def moments(self, clamp: tuple[float, float]) -> tuple[float, float, float]:
        """Difference of means and the two variances of the clamped ratio."""
        values = np.clip(self.ratios, *clamp)
        means = [float(np.sum(mass * values)) for mass in (self.p, self.q)]
        spreads = [float(np.sum(m * (values - mean) ** 2)) for m, mean in zip((self.p, self.q), means, strict=True)]
        lost = 0.0 if self.parts is None else sum(part.share for part in self.parts) * float(values[-1] - values[0])
        return means[0] - means[1] - lost, spreads[0], spreads[1]


def _worst(part: Leaf | None, law: Floats, side: Side) -> Floats:
    return law if part is None else part.worst(law, side)


def profile_of(pair: Pair, between: Distribution | None = None) -> Profile:
    """The profile of a pair: its atoms, or the cells between the landmarks of a continuous pair.

    Args:
        between: of a two-sided question the null, the pair being the alternatives above and below.
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


# Candidate ends of the clamp, in units of the ratio's typical size; 0 stands for "hardly anything".
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
    """(a, b) of the largest margin at n records, and the next best; ``extra`` clamps (the paper's) compete too.

    Of three values all lattice points of the middle one are tried, which is every clamp there is. Else a grid over both
    ends, then a pattern search from the best two of it: error rates are smooth in the ends but can have two peaks, one
    for counting rare records and one for using them all (the paper's three-point example). Few values make steps of
    what is smooth, and the best for n records need not be the best for one more: so there are next best ones.
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
    """A clamp for each place that the middle one of three values can have on the lattice between the other two."""
    found = []
    for step in range(FEW_UNITS + 1):
        below, above = step / FEW_UNITS, 1 - step / FEW_UNITS
        width = min((middle - low) / below if below else math.inf, (high - middle) / above if above else math.inf)
        width = width if math.isfinite(width) else 1.0
        found.append((middle - below * width, middle + above * width))
    return found


def _counts(profile: Profile) -> list[Clamp]:
    """Of few values the clamps between neighbours: they count the records on one side."""
    ends = np.clip(profile.values, -1e3, 1e3).tolist() if profile.few else []  # finite ones
    return [(a, b) for a, b in pairwise(ends) if a < b]


def rough_clamp(profile: Profile, notion: Notion, n: int, around: Neighbourhood = REPLACE) -> Clamp:
    """About the best (a, b), by the means and variances of the noisy total alone: error rates are not computed."""
    tried: dict[Clamp, float] = {}
    spread = _noise_variance(notion)

    def value(clamp: Clamp) -> float:
        if clamp not in tried:
            tried[clamp] = _deflection(profile, clamp, spread, n, around)
        return tried[clamp]

    _, *start = _ranked(profile, notion, n, around)[0]
    return _climb(value, (start[0], start[1]), tried)


def _ranked(profile: Profile, notion: Notion, n: int, around: Neighbourhood) -> list[tuple[float, float, float]]:
    """(deflection, a, b) of the clamps of the grid, the most promising first."""
    least, most = float(profile.ratios[0]), float(profile.ratios[-1])
    size, spread = profile.typical, _noise_variance(notion)
    lows = sorted({max(-g * size, least) for g in _GRID})
    highs = sorted({min(g * size, most) for g in _GRID})
    return sorted(((_deflection(profile, (a, b), spread, n, around), a, b) for a in lows for b in highs), reverse=True)


def _deflection(profile: Profile, clamp: Clamp, spread: float, n: int, around: Neighbourhood) -> float:
    """Gap of the means over the standard deviation of the noisy total: a quick guide to where to look."""
    gap, null, alternative = profile.moments(clamp)
    low, high = max(clamp[0], float(profile.ratios[0])), min(clamp[1], float(profile.ratios[-1]))
    width = around.extent(low, high, profile.centre(clamp))
    return n * gap / math.sqrt(n * (null + alternative) / 2 + spread * width**2)


def _noise_variance(notion: Notion) -> float:
    """Of the canonical noise for a width of 1, without a lattice."""
    if isinstance(notion, Pure):
        return 1 / (2 * math.sinh(min(notion.epsilon, 40) / 2)) ** 2 + 1 / 12
    units = 1 << 10
    return canonical_noise(notion, units).variance / units**2


def _climb(margin: Callable[[Clamp], float], start: Clamp, tried: dict[Clamp, float]) -> Clamp:
    """Pattern search: multiply either end, or both, by the step; shrink the step when nothing helps.

    What is multiplied is the distance from 0, or from the middle of a clamp that 0 does not lie in.
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


GivenClamp = tuple[Number, Number]


def tuning_size(n: int) -> int:
    """The n for which the clamp of a test on n records is tuned: n itself, or a nearby number of a sparse grid.

    The best clamp hardly moves with n. With the same clamp for all n within 3% the advantage is as smooth in n as the
    data allow, and the search for a sample size tunes once or twice.

    >>> [tuning_size(n) for n in (1, 64, 115, 1000, 10**6)]
    [1, 64, 114, 995, 989724]
    """
    if n <= 64:
        return n
    return round(2 ** (round(math.log2(n) * 24) / 24))


@dataclass(frozen=True, eq=False)
class Tuner:
    """Tests of one pair at one epsilon for any n."""

    pair: Pair
    notion: Notion
    kind: str
    clamp: str | GivenClamp
    threshold: Fraction | None
    goal: Goal
    around: Neighbourhood = REPLACE
    question: Hypotheses | None = None
    """Where null or alternative is a set; ``pair`` has the members that are the hardest to tell apart."""
    sides: Sides | None = None
    """Where the parts of the alternative lie; ``pair`` has the nearest to either side where it is two-sided."""

    def rivals(self, n: int) -> Iterator[Tuner]:
        """Families of tests that are as private and release no more than was asked for: their tests may stand in.

        A tuned clamp may be the paper's or one of the next best, and a decision may be that of the noisy statistic:
        what is tuned on a coarse lattice or for a nearby n, and a chain from one of few starts, can be a trace worse.
        Every class of tests that is smaller for the user is listed here, so the larger one never does worse.
        """
        if self.clamp == "tuned" and self.kind in CALIBRATED:
            known: dict[Any, Tuner] = self.__dict__.setdefault("_rivals", {})
            for clamp in ("paper", *self.clamps_for(n)[1:]):
                if clamp not in known:
                    known[clamp] = self._with(clamp=clamp)
                yield known[clamp]
        if self.kind == "stair":
            yield self.tight
            yield from self.tight.rivals(n)

    def best_for(self, n: int) -> Tuner:
        """This family, or the rival whose test on n records is better."""
        rivals = list(self.rivals(n))
        return max((self, *rivals), key=lambda one: round(one.own_margin(n), 12)) if rivals else self

    def test(self, n: int) -> PrivateTest:
        """The best test on n records, of this family and its rivals."""
        return self.best_for(n)._own_test(n)

    def _own_test(self, n: int) -> PrivateTest:
        """This family's test on n records; the last one is kept."""
        known: list[PrivateTest] = self.__dict__.setdefault("_made", [])
        if not known or known[0].n != n:
            known[:] = [self._make_test(n)]
        return known[0]

    def _make_test(self, n: int) -> PrivateTest:
        if self.kind not in PRIVATE_KINDS:
            return unclamped(self.pair, n, self.kind, threshold=self.threshold, alpha=self.goal.alpha)
        made = from_score(
            self.pair,
            self.score_for(n),
            self.notion,
            n,
            self.kind,
            self.clamp_for(n),
            threshold=self.threshold,
            alpha=self.goal.alpha,
            around=self.around,
            cutoffs=self.__dict__.get("_cutoffs", {}).get((self.clamp_for(n), n)),
            start=self.start_for(n),
        )
        if self.question is None:
            return made
        worst = self.__dict__["_worst"][self.clamp_for(n), n]
        null, alternative = self.question.null.describe(), self.question.alternative.describe()
        return replace(made, null=null, alternative=alternative, worst_members=worst)

    @cached_property
    def profile(self) -> Profile:
        """The law of the unclamped ratio."""
        if self.question is None or self.sides is None:
            return profile_of(self.pair)
        profile = profile_of(self.pair, self.sides.null if self.sides.above else None)
        return replace(profile, parts=self.question.parts)

    @cached_property
    def paper(self) -> GivenClamp:
        """The decomposition's clamp."""
        return paper_clamp(self.pair, self.notion.equivalent)

    def clamp_for(self, n: int) -> GivenClamp:
        """The clamp of the test on n records."""
        return self.clamps_for(n)[0]

    def clamps_for(self, n: int) -> Sequence[GivenClamp]:
        """The clamp of the test on n records, and where it is tuned the next best."""
        if not isinstance(self.clamp, str):
            return (self.clamp,)
        if self.clamp == "paper":
            return (self.paper,)
        size = tuning_size(n)
        known: dict[int, Sequence[GivenClamp]] = self.__dict__.setdefault("_tuned", {})
        if size not in known:
            first = [(float(self.paper[0]), float(self.paper[1]))]
            if self.kind == "stair":
                a, b = self.tight.clamp_for(n)
                first.append((float(a), float(b)))
            asked = self.profile, self.notion, size, self.goal
            known[size] = tuned_clamps(*asked, *first, around=self.around, chains=self.starts)
        return known[size]

    @property
    def starts(self) -> Sequence[Fraction | None]:
        """Of the chain of a decision; None where the statistic is released."""
        return chain_starts(self.notion) if self.kind == "stair" else (None,)

    def start_for(self, n: int) -> Fraction | None:
        """The best start for n records, of the pair's own laws."""
        starts = self.starts
        if len(starts) == 1:
            return starts[0]
        ends = self.clamp_for(n)
        known: dict[tuple[GivenClamp, int], Fraction | None] = self.__dict__.setdefault("_starts", {})
        if (ends, n) not in known:
            score = self._pair_score(ends)
            laws = score.support, score.null_law, score.alternative_law
            margins = [
                self.goal.margin(
                    Curves(*laws, n, calibrated_noise(self.kind, score, self.notion, ends, self.around.rows, start))
                )
                for start in starts
            ]
            known[ends, n] = starts[int(np.argmax(margins))]
        return known[ends, n]

    @cached_property
    def tight(self) -> Tuner:
        """The same family releasing its statistic, for a stair."""
        return self._with(kind="tight")

    def _with(self, **changes: Any) -> Tuner:
        """The same family with changes that leave the law of the ratio, and the scores of a clamp, as they are."""
        other = replace(self, **changes)
        if "profile" in self.__dict__:
            other.__dict__["profile"] = self.profile
        for name in ("_scores", "_settled"):
            other.__dict__[name] = self.__dict__.setdefault(name, {})
        return other

    def score_for(self, n: int) -> Score:
        """The score of the test on n records."""
        if self.kind not in PRIVATE_KINDS:
            return whole_score(self.pair, n)
        ends = self.clamp_for(n)
        score = self._pair_score(ends)
        if self.question is None or self.sides is None:
            return score
        return self._worst_score(self.question, self.sides, score, ends, n)

    def _pair_score(self, ends: GivenClamp) -> Score:
        """The score with this clamp and the laws of the pair."""
        known: dict[GivenClamp, Score] = self.__dict__.setdefault("_scores", {})
        if ends not in known:
            known[ends] = kind_score(self.pair, self.kind, ends)
        return known[ends]

    def _worst_score(self, question: Hypotheses, sides: Sides, score: Score, ends: GivenClamp, n: int) -> Score:
        """The score with the worst laws of the sets for the test on n records."""
        known: dict[tuple[GivenClamp, int], Score] = self.__dict__.setdefault("_worst_scores", {})
        settled: dict[GivenClamp, Any] = self.__dict__.setdefault("_settled", {})
        if ends not in settled:
            settled[ends] = settled_score(question, sides, score)
        if settled[ends] is not None:
            found, *worst = settled[ends]
            self.__dict__.setdefault("_worst", {})[ends, n] = tuple(worst)
            return found  # type: ignore[no-any-return]
        if (ends, n) not in known:
            noise = calibrated_noise(self.kind, score, self.notion, ends, self.around.rows, self.start_for(n))

            last: list[tuple[Score, tuple[Fraction, ...]]] = []

            def cutoffs_of(made: Score) -> tuple[Fraction, ...]:
                if self.threshold is None and (self.goal.alpha is not None or self.kind in CALIBRATED):
                    last[:] = [(made, calibrated_cutoffs(made, noise, n, self.goal.alpha))]
                    return last[0][1]
                return (literal_cutoff(made, self.kind, self.threshold, n),)

            laws = self.__dict__.setdefault("_laws", {}).setdefault(ends, {})
            found, *worst = worst_score(question, sides, score, noise, n, cutoffs_of, laws)
            known[ends, n] = found
            if last and last[0][0] is found:  # they have settled
                self.__dict__.setdefault("_cutoffs", {})[ends, n] = last[0][1]
            self.__dict__.setdefault("_worst", {})[ends, n] = tuple(worst)
        return known[ends, n]

    def margin(self, n: int) -> float:
        """That of the family's own test, and where it falls short the largest of it and the rivals'."""
        own = self.own_margin(n)
        return own if own >= 0 else max([own, *(rival.own_margin(n) for rival in self.rivals(n))])

    def own_margin(self, n: int) -> float:
        """By how much this family's own test on n records exceeds the goal, exactly; negative where it falls short."""
        calibrated = self.threshold is None and (self.kind in CALIBRATED or self.goal.alpha is not None)
        score = self.score_for(n)
        several = len(score.null_laws) + len(score.alternative_laws) > 2 or bool(score.upper_laws)
        several = several or (self.kind == "stair" and self.question is not None)  # no coin
        if several or not calibrated or self.kind not in PRIVATE_KINDS or self.around.kind != "replace":
            test = self._own_test(n)
            return self.goal.surplus(test.alpha, test.beta)
        ends, start = self.clamp_for(n), self.start_for(n)
        noise = calibrated_noise(self.kind, score, self.notion, ends, self.around.rows, start)
        return self.goal.margin(Curves(score.support, score.null_law, score.alternative_law, n, noise))

    def with_clamp_for(self, n: int) -> Tuner:
        """The same family with the clamp of n records at every n."""
        if self.clamp != "tuned":
            return self
        return self._with(clamp=self.clamp_for(n))

    def at_epsilon(self, epsilon: Number, clamp: GivenClamp | None = None) -> Tuner:
        """The same family at another epsilon, perhaps with a fixed clamp."""
        return self._with(notion=Pure(rational(epsilon, "epsilon")), clamp=clamp or self.clamp)

    def few_values(self, n: int) -> bool:
        """Whether the score takes so few values that power is a sawtooth in n."""
        return len(self.score_for(n).support) < 64

    def drifts(self, n: int) -> tuple[float, float]:
        """Mean of one record's ratio under P and under Q, in nats above the threshold 0."""
        score = self.score_for(n)
        null, alternative = (
            float(score.origin) + float(score.step) * score.mean(law) for law in (score.null_law, score.alternative_law)
        )
        return null, alternative


def make_tuner(
    null: Any,
    alternative: Any,
    epsilon: Number | None,
    test: str,
    clamp: str | GivenClamp | None,
    threshold: Number | None,
    goal: Goal,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
    privacy: Any = None,
    release: str = "statistic",
) -> Tuner:
    """The family a user asks for, all arguments checked."""
    notion = make_notion(epsilon, privacy)
    numbers.choice(KINDS, test=test)
    if numbers.choice(RELEASES, release=release) == "decision":
        check_decision(test, neighbours)
    if test != "tight" and not isinstance(notion, Pure):
        raise InvalidInput(f"test={test!r} is for epsilon=, not for privacy={notion.text!r}. Use test='tight'.")
    if clamp is None:
        clamp = "tuned" if test == "tight" else "paper"
    elif test not in PRIVATE_KINDS:
        raise InvalidInput(f"clamp={shown(clamp)} does not apply to test={test!r}, which does not clamp. Leave it out.")
    if not isinstance(clamp, str) or clamp not in ("tuned", "paper"):
        clamp = _given_clamp(clamp)
    level = None if threshold is None else rational(threshold, "threshold")
    if level is not None and abs(level) > 10**30:  # nats: no total is as far
        raise InvalidInput(f"threshold={shown(threshold)} must be at most 1e+30 in size: it is in nats.")
    around = make_neighbourhood(neighbours, max_rows_per_unit)
    if around != REPLACE and test not in PRIVATE_KINDS:
        name, value = ("neighbours", neighbours) if around.kind != "replace" else ("max_rows_per_unit", around.rows)
        raise InvalidInput(
            f"{name}={shown(value)} does not apply to test={test!r}, which is not private. Leave it out."
        )
    arguments = clamp, level, goal, around
    asked = make_hypotheses(null, alternative)
    found = _family(asked, notion, test, *arguments)
    if release == "decision":
        test = "stair"
        tight, found = found, _family(asked, notion, test, *arguments)
        found.__dict__["tight"] = tight  # where tuning starts; it may be tuned already
    if found.sides is not None and found.sides.above:
        check_two_sided(test, neighbours, threshold)
    return found


@lru_cache(maxsize=32)
def _family(
    asked: Hypotheses,
    notion: Notion,
    test: str,
    clamp: str | GivenClamp,
    threshold: Fraction | None,
    goal: Goal,
    around: Neighbourhood,
) -> Tuner:
    """The last few are kept, with the clamps that they have tuned."""
    if asked.simple:
        return Tuner(asked.pair, notion, test, clamp, threshold, goal, around)
    if test not in PRIVATE_KINDS:
        raise InvalidInput(f"test={test!r} is for two distributions, not for sets of them. Use test='tight'.")
    sides = sides_of(asked)
    return Tuner(sides.pair, notion, test, clamp, threshold, goal, around, asked, sides)


def _given_clamp(clamp: Any) -> GivenClamp:
    """A clamp that a user wrote as two numbers, exactly."""
    try:
        a, b = [] if isinstance(clamp, str) else clamp
    except (TypeError, ValueError):
        meant = suggestion(clamp, ("tuned", "paper")) if isinstance(clamp, str) else ""
        rule = f"must be 'tuned', 'paper' or a pair (a, b) with a < b.{meant}"
        raise InvalidInput(f"clamp={shown(clamp)} {rule}") from None
    return rational(a, "clamp"), rational(b, "clamp")
