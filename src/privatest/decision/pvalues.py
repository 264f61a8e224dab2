r"""The p-values and the e-value of a noisy total, and the public coin between two cutoffs.

The e-value is evidence against P that has mean 1 at most under it, so that it combines with others. Of a test of two
distributions it is the likelihood ratio of the noisy total, in bins that are fixed beforehand:

.. math:: e = \Pr_Q[\text{bin}] / \Pr_P[\text{bin}]

with the computed probabilities' errors counted against Q, so that the mean is at most 1 exactly. Of sets, of two-sided
tests and of releases that have a p-value only it is :math:`1/(2\sqrt p)`, whose mean is at most 1 for every p-value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from privatest.errors import InvalidInput
from privatest.laws import NoisyTotal
from privatest.numbers import first_true
from privatest.privacy import RandomSource
from privatest.privacy import randomness as coins

if TYPE_CHECKING:
    from privatest.decision.private_test import PrivateTest
    from privatest.decision.run import Fits


EXTREME = 0.001
"""A noisy total whose two-sided p-value is below this does not fit."""
FITTING: dict[tuple[bool, bool], Fits] = {
    (True, True): "both",
    (True, False): "null",
    (False, True): "alternative",
    (False, False): "neither",
}


@dataclass(frozen=True)
class Coin:
    """A public coin: with probability ``share``, exactly, the cutoff is this one. It looks at no data: it is free."""

    cutoff: Fraction
    share: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidInput(f"The share {self.share} of a coin must lie strictly between 0 and 1.")

    def toss(self, source: RandomSource) -> bool:
        """Whether the cutoff is this one."""
        return coins.bernoulli(self.share.numerator, self.share.denominator, source)


Cutoffs = list[tuple[Fraction, float]]
"""Cutoffs with their probabilities: one, or the two of a coin."""


def below(totals: Sequence[NoisyTotal], cutoffs: Cutoffs) -> float:
    """The largest probability of a noisy total up to the cutoff."""
    return max(math.fsum(share * total.cdf(cutoff) for cutoff, share in cutoffs) for total in totals)


def above(totals: Sequence[NoisyTotal], cutoffs: Cutoffs) -> float:
    """The largest probability of a noisy total beyond the cutoff."""
    return max(math.fsum(share * total.sf(cutoff) for cutoff, share in cutoffs) for total in totals)


def pvalues(test: PrivateTest, most: Fraction, least: Fraction) -> tuple[float, float, Fits]:
    """The p-values under P and under Q, and the hypotheses that a noisy total in (least, most] is consistent with.

    Tails that cannot change the result are not computed.
    """
    at_most: Cutoffs = [(most, 1.0)]
    at_least: Cutoffs = [(least, 1.0)]
    low, other = below(test._lowest, at_most), above(test._alternatives, at_least)
    if test.upper is not None:
        pvalue = min(2 * min(low, above(test._highest, at_least)), 1.0)
        other = max(other, below(test._uppers, at_most))
        return pvalue, other, FITTING[pvalue >= EXTREME, 2 * other >= EXTREME]
    # Under one law the other tail is at least 1 minus the first.
    fits_null = 2 * low >= EXTREME and (
        (test._highest is test._lowest and 2 * (1 - low) >= EXTREME) or 2 * above(test._highest, at_least) >= EXTREME
    )
    fits_alternative = 2 * other >= EXTREME and (
        (test._outer_alternatives is test._alternatives and 2 * (1 - other) >= EXTREME)
        or 2 * below(test._outer_alternatives, at_most) >= EXTREME
    )
    return low, other, FITTING[fits_null, fits_alternative]


# Bins of 1/24 of a deviation lose nothing that could be seen in a likelihood.
_BINS_PER_DEVIATION = 24
# Probabilities under P below which bins are one: far above the least double, far below whatever is asked for.
_VANISHING = 1e-250
# In nats: beyond as much noise even the largest probability vanishes.
_FAR = 600.0


def evalue_of(test: Any, statistic: float | None, pvalue: float | None) -> float | None:
    """The e-value of a release of this test; None if the release has neither a statistic nor a p-value."""
    simple = isinstance(getattr(test, "null_total", None), NoisyTotal) and test.worst_members is None
    if statistic is None or not simple or test.upper is not None or test.score.other_null_laws:
        return None if pvalue is None else from_pvalue(pvalue)
    if test.released == "level":  # a level counts from the cutoff, and a release does not say which one a coin chose
        return _of_level(test, round(statistic)) if test.coin is None else from_pvalue(pvalue or 0.0)
    score = test.score
    shift, scale = (test.shift * test.n, test.scale) if test.neighbours == "replace" else (0, test.scale)
    nats = Fraction(statistic) - (test.n * score.origin if test.neighbours == "replace" else 0)
    noisy = nats / score.step * scale - shift
    return ratio(test.null_total, test.alternative_total, test.cutoff, noisy)


def _of_level(test: Any, level: int) -> float:
    """The likelihood ratio of Q against P of a level, which is a bin of totals one spacing wide; see :func:`ratio`."""
    spacing = test.noise.spacing
    ends = test.cutoff + spacing * (level - 1), test.cutoff + spacing * level
    return _mass(test.alternative_total, *ends)[0] / max(_mass(test.null_total, *ends)[1], 1e-300)


def from_pvalue(pvalue: float) -> float:
    """The e-value 1/(2 sqrt p) of a p-value; its integral over p from 0 to 1 is 1.

    >>> from_pvalue(0.01)
    5.0
    """
    return 0.5 / math.sqrt(max(pvalue, 1e-300))


def ratio(null: NoisyTotal, alternative: NoisyTotal, cutoff: Fraction, noisy: Fraction) -> float:
    """The likelihood ratio of Q against P of the bin that holds a noisy total.

    Guarantees: the mean over a total of P's law is at most 1: the bins depend on the two laws and the cutoff alone,
    P's probability is rounded up and Q's down.
    """
    width = max(int(min(_deviation(null), _deviation(alternative)) / _BINS_PER_DEVIATION), 1)
    place = math.floor((noisy - cutoff + Fraction(1, 4)) / width)  # within a bin, whatever was rounded
    if _vanishes(null, cutoff + (place + 1) * width):  # one bin of all these, or 0 would be divided by 0
        end = cutoff + _last_vanishing(null, cutoff, width) * width
        return alternative.bounded_cdf(end).lower / max(null.bounded_cdf(end).upper, 1e-300)
    low = cutoff + place * width
    return _mass(alternative, low, low + width)[0] / max(_mass(null, low, low + width)[1], 1e-300)


def _vanishes(total: NoisyTotal, end: Fraction) -> bool:
    """Whether the probability of a noisy total up to ``end`` is too small for a ratio of doubles."""
    return total.bounded_cdf(end).upper < _VANISHING


@lru_cache(maxsize=64)
def _last_vanishing(total: NoisyTotal, cutoff: Fraction, width: int) -> int:
    """The largest k such that Pr[T <= cutoff + k width] vanishes; about 30 probabilities, whatever was drawn."""
    sums = total.n * int(total.support[0]), total.n * int(total.support[-1])
    # Far below all sums the probability vanishes; above the largest of them it does not.
    low = math.floor((sums[0] - total.noise.reach(_FAR) - total.noise.plateau - cutoff) / width)
    high = math.ceil((sums[1] - cutoff) / width) + 1
    return first_true(lambda k: not _vanishes(total, cutoff + k * width), low, high) - 1


def _mass(total: NoisyTotal, low: Fraction, high: Fraction) -> tuple[float, float]:
    """Bounds on Pr[low < T <= high], from the tail that gives them a small relative error."""
    above = total.bounded_sf(low)
    if above.value <= 0.5:
        far = total.bounded_sf(high)
        return max(above.lower - far.upper, 0.0), above.upper - far.lower
    below, near = total.bounded_cdf(high), total.bounded_cdf(low)
    return max(below.lower - near.upper, 0.0), below.upper - near.lower


def _deviation(total: NoisyTotal) -> float:
    """The standard deviation of a noisy total."""
    mean = float(total.law @ total.support)
    spread = float(total.law @ (total.support - mean) ** 2)
    return math.sqrt(total.n * spread + total.noise.variance)
