"""The exact law of the statistic when n records are drawn from q: no simulation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import fft

from privatest.errors import InvalidInput
from privatest.fit.excess import Excess
from privatest.fit.groups import Groups, binomial_masses, windows
from privatest.fit.transform import Part, Transform
from privatest.noise import Noise

__all__ = ["ACCURACY", "ExcessLaw", "excess_law"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

ACCURACY = 1e-8
"""Bound on the error of a probability of T plus noise; measured in tests/fit/test_law.py."""

LARGEST_WINDOW = 1 << 24
# Standard deviations below and above the mean that the window holds; T is skewed to the right.
REACHES = (9.0, 15.0)


@dataclass(frozen=True, eq=False)
class ExcessLaw:
    """Values of T, in increasing order, and their probabilities."""

    values: Integers
    masses: Floats

    @cached_property
    def _away(self) -> Floats:
        return np.asarray((self.values - self.values[0]).astype(np.float64))

    @cached_property
    def mean(self) -> float:
        """E T."""
        return float(self.values[0]) + float(self.masses @ self._away)

    @cached_property
    def deviation(self) -> float:
        """Standard deviation of T."""
        return math.sqrt(float(self.masses @ (self._away - float(self.masses @ self._away)) ** 2))

    def above(self, cutoff: Fraction, noise: Noise) -> float:
        """Pr[T + N > cutoff]."""
        return min(float(self.masses @ noise.sf(float(cutoff - int(self.values[0])) - self._away)), 1.0)

    def below(self, cutoff: Fraction, noise: Noise) -> float:
        """Pr[T + N <= cutoff]."""
        return min(float(self.masses @ noise.cdf(float(cutoff - int(self.values[0])) - self._away)), 1.0)

    def cutoff(self, level: float, noise: Noise) -> Fraction:
        """The smallest c halfway between two values of T + N with Pr[T + N > c] <= level.

        Invariant of the bisection: the probability is above the level at ``low``, not above it at ``high``.
        """
        shift = noise.offset + Fraction(1, 2)
        span = max(1, round(self.deviation + math.sqrt(noise.variance)))
        low, high = round(self.mean) - span, round(self.mean) + span
        while self.above(low + shift, noise) <= level:
            low -= 2 * (high - low)
        while self.above(high + shift, noise) > level:
            high += 2 * (high - low)
        while high - low > 1:
            middle = (low + high) // 2
            if self.above(middle + shift, noise) > level:
                low = middle
            else:
                high = middle
        return high + shift


def excess_law(excess: Excess, n: int, q: Floats) -> ExcessLaw:
    """The law of T for n records from q."""
    if excess.symbols == 2:
        return _two_point(excess, n, q)
    # A common factor of the weights is one of T: the law is found without it.
    factor = math.gcd(*excess.weights.tolist())
    excess = Excess(excess.knots, excess.weights // factor, excess.symbols)
    transform = Transform([Part.of(block, n) for block in Groups.of(excess, q).blocks(n)], n, excess.width)
    deviation = transform.spread()[0]
    below, above = (math.ceil(reach * deviation) for reach in REACHES)
    size = fft.next_fast_len(below + above + 30 * excess.width + 16, real=True)
    if size > LARGEST_WINDOW:
        raise InvalidInput(
            f"n={n} and {excess.symbols} symbols give a statistic of {size} values, too many for its exact law. "
            "Use method='direct', or an n with a large common factor with the number of symbols."
        )
    phi = transform.at(size)
    first = round(transform.mean) - below - 10 * excess.width
    t = 2 * math.pi * np.arange(len(phi)) / size
    masses = fft.irfft(np.conj(phi) * np.exp(1j * t * (first - transform.offset)), size)
    keep = masses > 1e-17
    return ExcessLaw(factor * (first + np.flatnonzero(keep)), masses[keep] / masses[keep].sum())


def _two_point(excess: Excess, n: int, q: Floats) -> ExcessLaw:
    """Two symbols: enumerate the count of the second."""
    ((_, counts),) = windows(q[1:], n)
    masses = binomial_masses(counts, n, q[1:])[0]
    j, masses = counts[0][masses > 0], masses[masses > 0]
    values = np.zeros(len(j), dtype=np.int64)
    for weight, knots in zip(excess.weights.tolist(), excess.rows(np.arange(2)).T, strict=True):
        values += weight * (np.maximum(n - j - knots[0], 0) + np.maximum(j - knots[1], 0))
    order = np.argsort(values, kind="stable")
    return ExcessLaw(values[order], masses[order])
