r"""Build a test of each kind from a pair, a clamp and a notion of privacy: its score, its noise and its threshold.

If neighbours differ by one person's records being added or removed, n is not public and the threshold must not depend
on it. Every record's score is then shifted by a constant c, the threshold for one record, and the shifted total is
compared with 0. The noise must hide a change of

.. math:: \max(|\text{low} - c|, |\text{high} - c|)

instead of high - low, which is less noise if c lies near the middle of the scores. The shift is a fraction C/M of the
score's lattice, fine enough for n records; the total is the integer :math:`M \sum s_i - C \cdot \text{count}`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from privatest.decision.private_test import Coin, PrivateTest
from privatest.decision.problem import CALIBRATED
from privatest.errors import InvalidInput
from privatest.hypotheses import DiscretePair, Pair
from privatest.laws import Curves, NoisyTotal, TwoSidedCurves
from privatest.numbers import Floats, Number, first_true, rational
from privatest.privacy import NOISES, Logistic, Noise, NoNoise, Notion, Pure, canonical_noise
from privatest.privacy.decision_chain import decision_noise
from privatest.privacy.notion import REPLACE, Neighbourhood
from privatest.scores import Score, clamped_score, whole_score
from privatest.scores.score import FEW_VALUES

FEW_UNITS = 64
"""Number of lattice steps to the width of a score with few values."""


def from_score(
    pair: Pair,
    score: Score,
    notion: Notion,
    n: int,
    kind: str,
    clamp: tuple[Number, Number],
    *,
    threshold: Fraction | None = None,
    alpha: float | None = None,
    around: Neighbourhood = REPLACE,
    cutoffs: Sequence[Fraction] | None = None,
    start: Fraction | None = None,
) -> PrivateTest:
    """Return a private test with this clamp on n records.

    Args:
        pair: P and Q.
        score: the result of :func:`kind_score`, perhaps with the worst laws of sets.
        notion, n, kind, clamp: the test's notion of privacy, number of records, kind and clamp.
        threshold: the threshold in nats. None: the largest one that keeps the type I error at ``alpha``; without an
            ``alpha`` the one with the largest advantage or, for the paper's tests, 0.
        alpha: the largest type I error.
        around: which data sets are neighbours.
        cutoffs: the result of :func:`calibrated_cutoffs`, if it is known.
        start: the start of a decision's chain, see :func:`decision_noise`.
    """
    calibrated = threshold is None and (alpha is not None or kind in CALIBRATED)
    uppers: list[Fraction] = []
    coin = None
    if around.kind == "add-remove":
        if calibrated:
            shifted = centred(score, kind, notion, n, alpha, around)
        else:
            shifted = unmoved(score, kind, notion, n, threshold or Fraction(0), around)
        noise, cutoff, scale, shift = shifted.noise, shifted.cutoff, shifted.scale, shifted.shift
    else:
        noise, scale, shift = calibrated_noise(kind, score, notion, clamp, around.rows, start), 1, 0
        if calibrated and kind == "stair" and alpha is not None:
            cutoff, coin = mixed(score, noise, n, alpha)
        elif calibrated:
            cutoff, *uppers = cutoffs or calibrated_cutoffs(score, noise, n, alpha)
        else:
            cutoff = literal_cutoff(score, kind, threshold, n)
    return PrivateTest(
        name=kind,
        score=score,
        noise=noise,
        cutoff=cutoff,
        notion=notion,
        n=n,
        neighbours=around.kind,
        null=pair.null.describe(),
        alternative=pair.alternative.describe(),
        max_rows_per_unit=around.rows,
        scale=scale,
        shift=shift,
        upper=uppers[0] if uppers else None,
        coin=coin,
    )


def kind_score(pair: Pair, kind: str, clamp: tuple[Number, Number]) -> Score:
    """Return the clamped score on the kind's lattice.

    Few values need few steps: a coarse lattice makes the exact law of their sum much cheaper. The paper's tests
    keep the fine one, which is closest to the letter.
    """
    few = isinstance(pair, DiscretePair) and 2 < len(pair.ratios) <= FEW_VALUES
    return clamped_score(pair, clamp, FEW_UNITS if kind in CALIBRATED and few else None)


def calibrated_noise(
    kind: str,
    score: Score,
    notion: Notion,
    clamp: tuple[Number, Number],
    rows: int,
    start: Fraction | None = None,
) -> Noise:
    """Return the noise of a test of this kind for persons with ``rows`` rows, in units of the score's lattice."""
    width = Fraction(score.width)
    if kind == "stair":
        return decision_noise(notion, rows * width, start)
    if kind != "tight":  # the paper's b - a, not the realised one
        width = (rational(clamp[1], "clamp") - rational(clamp[0], "clamp")) / score.step
    return kind_noise(kind, notion, rows * width, score.step)


def unclamped(
    pair: Pair, n: int, kind: str, *, threshold: Fraction | None = None, alpha: float | None = None
) -> PrivateTest:
    """Return a test "llr" or "sllr", which do not clamp the ratio, on n records."""
    score = whole_score(pair, n)
    noise = NoNoise() if kind == "llr" else Logistic(2 / score.step)
    if alpha is not None and threshold is None:
        (cutoff,) = calibrated_cutoffs(score, noise, n, alpha)
    else:
        cutoff = literal_cutoff(score, kind, threshold, n)
    bounded = kind == "sllr" and all(math.isfinite(end) for end in pair.ratio_range)
    return PrivateTest(
        name=kind,
        score=score,
        noise=noise,
        cutoff=cutoff,
        notion=(noise.guarantee(score.width) if bounded else None) or Pure(math.inf),
        n=n,
        null=pair.null.describe(),
        alternative=pair.alternative.describe(),
    )


def literal_cutoff(score: Score, kind: str, threshold: Fraction | None, n: int) -> Fraction:
    """Return the cutoff for a given threshold, or for the threshold 0."""
    cutoff = score.lattice_threshold(threshold or Fraction(0), n)
    # The likelihood-ratio test says P on ties (the paper's K_S), so the cutoff lies just below.
    return math.ceil(cutoff) - Fraction(1, 2) if kind == "llr" else cutoff


_ROUNDS = 6


@dataclass(frozen=True)
class Shifted:
    """The noise and the cutoff for the total M S - C count, where M is the ``scale`` and C the ``shift``."""

    noise: Noise
    cutoff: Fraction
    scale: int
    shift: int


def centred(score: Score, kind: str, notion: Notion, n: int, alpha: float | None, around: Neighbourhood) -> Shifted:
    """The shift for which 0 is the best cutoff at n records: of the largest advantage, or the largest that keeps alpha.

    The noise depends on the shift, and the best shift depends a little on the noise, so both are found in a few rounds.
    """
    scale = _fineness(n)
    middle = Fraction(score.mean(score.null_law) + score.mean(score.alternative_law)) / 2
    centre = middle
    for _ in range(_ROUNDS):
        curves = Curves.of(score, n, _with_noise(score, kind, notion, 1, centre, around).noise)
        cutoff = curves.best_cutoff() if alpha is None else curves.cutoff_for_alpha(alpha)
        # A cutoff beyond all totals (a tiny alpha) leaves the shift within the scores.
        before, centre = centre, min(max(cutoff / n, Fraction(score.low)), Fraction(score.high))
        if around.units(score, centre) == around.units(score, before):
            break

    def at(shift: int) -> Shifted:
        return _with_noise(score, kind, notion, scale, shift, around)

    if alpha is not None:
        return _at_most_alpha(score, n, at(math.floor(scale * centre)), alpha)
    # Less noise may be worth a threshold that is a little off: the middle of the scores needs the least.
    rivals = (centre, middle, -score.origin / score.step, Fraction(score.low + score.high, 2))
    return max((at(round(scale * rival)) for rival in rivals), key=lambda one: round(_advantage(score, n, one), 12))


def _advantage(score: Score, n: int, shifted: Shifted) -> float:
    """Return an approximation of the advantage of a test with this shift."""
    noise, threshold = shifted.noise, Fraction(n * shifted.shift, shifted.scale)
    coarse = noise.coarser(shifted.scale)
    if coarse is not None and len(score.support) > FEW_VALUES:
        # On the score's own lattice, where the curves are quick; between its points they are interpolated.
        curves = Curves.of(score, n, coarse)
        null, alternative = curves.cdfs(np.array([float((threshold - curves.base) / curves.unit)]))
        return float(alternative[0] - null[0])
    scores = shifted.scale * score.support - shifted.shift
    laws = score.null_law, score.alternative_law
    low, high = (NoisyTotal(scores, law, n, noise).cdf(shifted.cutoff) for law in laws)
    return high - low


def unmoved(score: Score, kind: str, notion: Notion, n: int, threshold: Fraction, around: Neighbourhood) -> Shifted:
    """Return the shift for which the score of a ratio of 0 is 0, so that the threshold can be given in nats."""
    scale = _fineness(n)
    shift = round(-scale * score.origin / score.step)
    return replace(_with_noise(score, kind, notion, scale, shift, around), cutoff=threshold * scale / score.step)


def _fineness(n: int) -> int:
    """Return a factor M so large that n roundings of the shift stay far below the standard deviation of n scores."""
    return 1 << (256 * math.isqrt(n)).bit_length()


def _with_noise(
    score: Score, kind: str, notion: Notion, scale: int, shift: int | Fraction, around: Neighbourhood
) -> Shifted:
    """Return the shift with the noise that hides what one person can change, and the cutoff 0."""
    units = around.units(score, Fraction(shift) / scale)
    noise = kind_noise(kind, notion, Fraction(units * scale), score.step / scale)
    return Shifted(noise, Fraction(0), scale, math.floor(shift))


def kind_noise(kind: str, notion: Notion, width: Fraction, step: Fraction) -> Noise:
    """The noise with which a test of this kind hides a change of ``width`` lattice steps of ``step`` nats each."""
    if isinstance(notion, Pure):
        return next(noise for noise in NOISES.values() if noise.test == kind).for_width(notion.loss, width, step)
    if kind != "tight":
        raise InvalidInput(f"test={kind!r} is for epsilon=, not for privacy={notion.text!r}. Use test='tight'.")
    return canonical_noise(notion, width)


def _at_most_alpha(score: Score, n: int, shifted: Shifted, alpha: float) -> Shifted:
    """Return the shift with the largest integer cutoff, up to the given one, whose type I error is at most alpha."""
    scores = shifted.scale * score.support - shifted.shift
    totals = [NoisyTotal(scores, law, n, shifted.noise) for law in score.null_laws]

    def error(cutoff: Fraction | int) -> float:
        return max(total.cdf(cutoff) for total in totals)

    if error(shifted.cutoff) <= alpha:
        return shifted
    highest = math.floor(shifted.cutoff)
    steps = first_true(lambda k: error(highest - k * shifted.scale) <= alpha, 1)
    low = highest - steps * shifted.scale
    return replace(shifted, cutoff=Fraction(first_true(lambda c: error(c) > alpha, low + 1, low + shifted.scale) - 1))


# Shares are multiples of 2^-SHARES: the type I error falls short of alpha by at most 1e-14.
SHARES = 48


def calibrated_cutoffs(score: Score, noise: Noise, n: int, alpha: float | None) -> tuple[Fraction, ...]:
    """Return the cutoff of the largest advantage, or the largest one whose type I error is at most alpha.

    A two-sided test has two cutoffs, between which the decision is "null", with equal tails.
    """
    score.check_total(n)
    if not score.upper_laws:
        if alpha is None:
            return (Curves.of(score, n, noise).best_cutoff(),)
        rivals = [Curves.of(score, n, noise, law) for law in score.null_laws]
        return (min(rival.cutoff_for_alpha(alpha) for rival in rivals),)
    below, above = score.alternative_law, score.upper_laws[0]

    def curves(low: Floats, high: Floats) -> TwoSidedCurves:
        return TwoSidedCurves.of(score.support, low, below, high, above, n, noise)

    if alpha is None:
        return curves(score.null_law, score.null_high_laws[0]).best_cutoffs()
    lows = [curves(law, law).low.cutoff_for_alpha(alpha / 2) for law in score.null_laws]
    highs = [-curves(law, law).high.cutoff_for_alpha(alpha / 2) for law in score.null_high_laws]
    return min(lows), max(highs)


def mixed(score: Score, noise: Noise, n: int, alpha: float) -> tuple[Fraction, Coin | None]:
    """Return a cutoff and a coin with which the type I error is alpha or, by rounding, slightly less.

    For sets, whose worst laws are those for one cutoff, there is no coin: the cutoff is the largest that keeps alpha.
    """
    score.check_total(n)
    rivals = [Curves.of(score, n, noise, law) for law in score.null_laws]
    if len(rivals) > 1 or score.outer_null_laws:
        return min(rival.cutoff_for_alpha(alpha) for rival in rivals), None
    first, second = rivals[0].mixed_cutoffs(alpha)
    null = NoisyTotal(score.support, score.null_law, n, noise)
    low, high = (null.bounded_cdf(cutoff).upper for cutoff in (first, second))
    if low > alpha:  # by the curves' rounding
        return rivals[0].cutoff_for_alpha(alpha), None
    part = (Fraction(alpha) - Fraction(low)) / Fraction(high - low) if high > low else Fraction(0)
    share = Fraction(math.floor(part * 2**SHARES), 2**SHARES)
    return first, Coin(second, share) if 0 < share < 1 else None
