r"""p-values and e-values of a noisy total, and the hypotheses that the data fit.

The p-value is the probability, under the null hypothesis, of a noisy total at most as large as the one that was drawn;
for sets it is the largest over the set, and for two-sided tests twice the smaller tail.

The e-value is evidence against P that has a mean of at most 1 under it, so that e-values of several tests can be
combined. For a test of two distributions it is the likelihood ratio of the noisy total, in bins that do not depend on
the data:

.. math:: e = \Pr_Q[\text{bin}] / \Pr_P[\text{bin}]

with the errors of the computed probabilities counted against Q, so that the mean is at most 1 exactly. For sets, for
two-sided tests and for releases that have a p-value only, it is :math:`1/(2\sqrt p)`, whose mean is at most 1 for every
p-value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from privatest.laws import NoisyTotal
from privatest.numbers import first_true

Fits = Literal["null", "alternative", "both", "neither"]

EXTREME = 0.001
"""A noisy total with a smaller two-sided p-value does not fit a hypothesis."""
FITTING: dict[tuple[bool, bool], Fits] = {
    (True, True): "both",
    (True, False): "null",
    (False, True): "alternative",
    (False, False): "neither",
}


Cutoffs = list[tuple[Fraction, float]]
"""Cutoffs with their probabilities: one, or the two between which a coin chooses."""


def chance_up_to(totals: Sequence[NoisyTotal], cutoffs: Cutoffs) -> float:
    """Return the largest probability, over several laws, of a noisy total up to the cutoff."""
    return max(math.fsum(share * total.cdf(cutoff) for cutoff, share in cutoffs) for total in totals)


def chance_beyond(totals: Sequence[NoisyTotal], cutoffs: Cutoffs) -> float:
    """Return the largest probability, over several laws, of a noisy total beyond the cutoff."""
    return max(math.fsum(share * total.sf(cutoff) for cutoff, share in cutoffs) for total in totals)


@dataclass(frozen=True, eq=False, kw_only=True)
class HypothesisLaws:
    """The laws of a test's noisy total under both hypotheses; several of each if the worst one depends on the total.

    Attributes:
        lowest_null: the lowest laws under the null: no member's total is lower.
        highest_null: the highest laws under the null; the same list if the null is one distribution.
        highest_alternative: the highest laws under the alternative that lies below the null.
        lowest_alternative: the lowest laws under that alternative; the same list if it is one distribution.
        upper: the lowest laws under the alternative above the null, in a two-sided test; else empty.
    """

    lowest_null: Sequence[NoisyTotal]
    highest_null: Sequence[NoisyTotal]
    highest_alternative: Sequence[NoisyTotal]
    lowest_alternative: Sequence[NoisyTotal]
    upper: Sequence[NoisyTotal] = ()

    def pvalues(self, most: Fraction, least: Fraction) -> tuple[float, float, Fits]:
        """Return the p-values under P and under Q of a noisy total in (least, most], and the hypotheses that it fits.

        Tails that cannot change the result are not computed.
        """
        at_most: Cutoffs = [(most, 1.0)]
        at_least: Cutoffs = [(least, 1.0)]
        low, other = chance_up_to(self.lowest_null, at_most), chance_beyond(self.highest_alternative, at_least)
        if self.upper:
            pvalue = min(2 * min(low, chance_beyond(self.highest_null, at_least)), 1.0)
            other = max(other, chance_up_to(self.upper, at_most))
            return pvalue, other, FITTING[pvalue >= EXTREME, 2 * other >= EXTREME]
        # Under one law the other tail is at least 1 minus the first.
        fits_null = 2 * low >= EXTREME and (
            (self.highest_null is self.lowest_null and 2 * (1 - low) >= EXTREME)
            or 2 * chance_beyond(self.highest_null, at_least) >= EXTREME
        )
        fits_alternative = 2 * other >= EXTREME and (
            (self.lowest_alternative is self.highest_alternative and 2 * (1 - other) >= EXTREME)
            or 2 * chance_up_to(self.lowest_alternative, at_most) >= EXTREME
        )
        return low, other, FITTING[fits_null, fits_alternative]


def evalue_of_pvalue(pvalue: float) -> float:
    """Return the e-value 1/(2 sqrt p) of a p-value; its integral over p from 0 to 1 is 1.

    >>> evalue_of_pvalue(0.01)
    5.0
    """
    return 0.5 / math.sqrt(max(pvalue, 1e-300))


# Bins of 1/24 of a standard deviation make a likelihood hardly coarser.
_BINS_PER_DEVIATION = 24
# Bins with a smaller probability under P are merged. It is far above the smallest double.
_VANISHING = 1e-250
# Noise of so many nats has a probability below _VANISHING.
_FAR = 600.0


def binned_ratio(null: NoisyTotal, alternative: NoisyTotal, cutoff: Fraction, noisy: Fraction) -> float:
    """Return the likelihood ratio of Q against P of the bin that holds a noisy total.

    Guarantees: the mean over a total of P's law is at most 1: the bins depend on the two laws and the cutoff alone,
    P's probability is rounded up and Q's down.
    """
    width = max(int(min(null.deviation, alternative.deviation) / _BINS_PER_DEVIATION), 1)
    place = math.floor((noisy - cutoff - Fraction(1, 4)) / width)  # a bin has its upper end, whatever was rounded
    if _vanishes(null, cutoff + (place + 1) * width):  # one bin of all these, or 0 would be divided by 0
        end = cutoff + _last_vanishing(null, cutoff, width) * width
        return alternative.bounded_cdf(end).lower / max(null.bounded_cdf(end).upper, 1e-300)
    low = cutoff + place * width
    return likelihood_ratio(null, alternative, low, low + width)


def likelihood_ratio(null: NoisyTotal, alternative: NoisyTotal, low: Fraction, high: Fraction) -> float:
    """Return Pr_Q[low < T <= high] / Pr_P[low < T <= high], rounded down."""
    return _mass(alternative, low, high)[0] / max(_mass(null, low, high)[1], 1e-300)


def _vanishes(total: NoisyTotal, end: Fraction) -> bool:
    """Whether the probability of a noisy total up to ``end`` is too small for a ratio of doubles."""
    return total.bounded_cdf(end).upper < _VANISHING


@lru_cache(maxsize=64)
def _last_vanishing(total: NoisyTotal, cutoff: Fraction, width: int) -> int:
    """Return the largest k such that Pr[T <= cutoff + k width] vanishes; about 30 probabilities, whatever was drawn."""
    sums = total.n * int(total.support[0]), total.n * int(total.support[-1])
    # Far below all sums the probability vanishes; above the largest of them it does not.
    low = math.floor((sums[0] - total.noise.reach(_FAR) - total.noise.plateau - cutoff) / width)
    high = math.ceil((sums[1] - cutoff) / width) + 1
    return first_true(lambda k: not _vanishes(total, cutoff + k * width), low, high) - 1


def _mass(total: NoisyTotal, low: Fraction, high: Fraction) -> tuple[float, float]:
    """Return bounds on Pr[low < T <= high], computed from the tail that gives them a small relative error."""
    above = total.bounded_sf(low)
    if above.value <= 0.5:
        far = total.bounded_sf(high)
        return max(above.lower - far.upper, 0.0), above.upper - far.lower
    below, near = total.bounded_cdf(high), total.bounded_cdf(low)
    return max(below.lower - near.upper, 0.0), below.upper - near.lower
