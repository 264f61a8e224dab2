"""The cutoffs of a test on n records: of the best error rates, or of a type I error, perhaps with a public coin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privatest.documents import fraction_from_json
from privatest.errors import InvalidInput
from privatest.laws import Curves, NoisyTotal, TwoSidedCurves
from privatest.privacy import Noise, Source
from privatest.privacy import randomness as coins
from privatest.scores import Score
from privatest.vectors import Floats

__all__ = ["Coin", "Cutoffs", "calibrated_cutoffs", "mixed"]

# Shares are multiples of 2^-SHARES: a type I error falls short of the one asked for by 1e-14 at most.
SHARES = 48


@dataclass(frozen=True)
class Coin:
    """A public coin: with probability ``share``, exactly, the cutoff is this one. It looks at no data: it is free."""

    cutoff: Fraction
    share: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidInput(f"The share {self.share} of a coin must lie strictly between 0 and 1.")

    def toss(self, source: Source) -> bool:
        """Whether the cutoff is this one."""
        return coins.bernoulli(self.share.numerator, self.share.denominator, source)

    def to_dict(self) -> dict[str, str]:
        """Both numbers, exactly."""
        return {"cutoff": str(self.cutoff), "share": str(self.share)}

    @classmethod
    def from_dict(cls, document: Any) -> Coin:
        """What :meth:`to_dict` wrote, and nothing else."""
        if not isinstance(document, dict) or set(document) != {"cutoff", "share"}:
            raise InvalidInput("A coin must be written as its cutoff and its share.")
        return cls(fraction_from_json(document["cutoff"]), fraction_from_json(document["share"]))


Cutoffs = list[tuple[Fraction, float]]
"""Cutoffs with their probabilities: one, or the two of a coin."""


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
