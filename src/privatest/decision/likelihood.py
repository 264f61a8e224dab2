r"""The e-value of a release: evidence against P that has mean 1 at most under it, so that it combines with others.

Of a test of two distributions it is the likelihood ratio of the noisy total, in bins that are fixed beforehand:

.. math:: e = \Pr_Q[\text{bin}] / \Pr_P[\text{bin}]

with the computed probabilities' errors counted against Q, so that the mean is at most 1 exactly. Of sets, of two-sided
tests and of what has a p-value only it is :math:`1/(2\sqrt p)`, whose mean is at most 1 for every p-value.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from privatest.laws import NoisyTotal

__all__ = ["evalue_of", "from_pvalue", "ratio"]

# Bins of 1/24 of a deviation lose nothing that could be seen in a likelihood.
_BINS_PER_DEVIATION = 24


def evalue_of(test: Any, statistic: float | None, pvalue: float | None) -> float | None:
    """The e-value of a release of this test; None where it told neither a statistic nor a p-value."""
    simple = isinstance(getattr(test, "null_total", None), NoisyTotal) and test.worst_members is None
    if statistic is None or not simple or test.upper is not None or test.score.other_null_laws:
        return None if pvalue is None else from_pvalue(pvalue)
    score = test.score
    shift, scale = (test.shift * test.n, test.scale) if test.neighbours == "replace" else (0, test.scale)
    nats = Fraction(statistic) - (test.n * score.origin if test.neighbours == "replace" else 0)
    noisy = nats / score.step * scale - shift
    return ratio(test.null_total, test.alternative_total, test.cutoff, noisy)


def from_pvalue(pvalue: float) -> float:
    """1/(2 sqrt p): the integral of it over p from 0 to 1 is 1.

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
    low = cutoff + math.floor((noisy - cutoff + Fraction(1, 4)) / width) * width  # within a bin, whatever was rounded
    return _mass(alternative, low, low + width)[0] / max(_mass(null, low, low + width)[1], 1e-300)


def _mass(total: NoisyTotal, low: Fraction, high: Fraction) -> tuple[float, float]:
    """Bounds on Pr[low < T <= high], by the tail in which they are accurate relative to themselves."""
    above = total.bounded_sf(low)
    if above.value <= 0.5:
        far = total.bounded_sf(high)
        return max(above.lower - far.upper, 0.0), above.upper - far.lower
    below, near = total.bounded_cdf(high), total.bounded_cdf(low)
    return max(below.lower - near.upper, 0.0), below.upper - near.lower


def _deviation(total: NoisyTotal) -> float:
    mean = float(total.law @ total.support)
    spread = float(total.law @ (total.support - mean) ** 2)
    return math.sqrt(total.n * spread + total.noise.variance)
