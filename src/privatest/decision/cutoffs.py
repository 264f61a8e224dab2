"""The cutoffs of a test on n records: of the best error rates, or of a type I error, perhaps with a public coin."""

from __future__ import annotations

import math
from fractions import Fraction

from privatest.decision.pvalues import Coin
from privatest.laws import Curves, NoisyTotal, TwoSidedCurves
from privatest.privacy import Noise
from privatest.scores import Score
from privatest.vectors import Floats

__all__ = ["calibrated_cutoffs", "mixed"]

# Shares are multiples of 2^-SHARES: a type I error falls short of the one asked for by 1e-14 at most.
SHARES = 48


def calibrated_cutoffs(score: Score, noise: Noise, n: int, alpha: float | None) -> tuple[Fraction, ...]:
    """The cutoff of the largest advantage, or the largest one whose type I error is at most alpha.

    Of a two-sided test two of them, between which the decision is "null", with equal tails.
    """
    score.check_total(n)
    if not score.upper_laws:
        if alpha is None:
            return (Curves(score.support, score.null_law, score.alternative_law, n, noise).best_cutoff(),)
        rivals = [Curves(score.support, law, score.alternative_law, n, noise) for law in score.null_laws]
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
    """A cutoff, and the coin with which the type I error is alpha, short of it by a rounding at most.

    Of sets, whose worst laws are those of one cutoff, there is no coin: the largest cutoff that keeps alpha for them.
    """
    score.check_total(n)
    rivals = [Curves(score.support, law, score.alternative_law, n, noise) for law in score.null_laws]
    if len(rivals) > 1 or score.outer_null_laws:
        return min(rival.cutoff_for_alpha(alpha) for rival in rivals), None
    first, second = rivals[0].mixed_cutoffs(alpha)
    null = NoisyTotal(score.support, score.null_law, n, noise)
    low, high = (null.bounded_cdf(cutoff).upper for cutoff in (first, second))
    if low > alpha:  # by the curves' rounding
        return rivals[0].cutoff_for_alpha(alpha), None
    share = (
        Fraction(math.floor((Fraction(alpha) - Fraction(low)) / Fraction(high - low) * 2**SHARES), 2**SHARES)
        if (high > low)
        else Fraction(0)
    )
    return first, Coin(second, share) if 0 < share < 1 else None
