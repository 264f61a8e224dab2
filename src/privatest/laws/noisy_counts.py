r"""Two noisy counts of successes, each in a group of its own: laws of their sum and of their difference.

A noisy count is :math:`T = m X + N`, X binomial and N noise on the integers, in units of 1/m of a record. Both groups'
laws are arrays of probabilities, so that :math:`\Pr[w_b T_b + w_a T_a \ge v]` is one sum: over the values of the one,
the tail of the other. All comparisons of totals are comparisons of integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats
from scipy.signal import fftconvolve

from privatest.vectors import Floats, Integers

__all__ = ["Counted", "NoiseMasses", "NoisyCount", "upper_tail"]

DEVIATIONS = 10.0
"""Counts more than so many standard deviations off are left out: they have a probability of 1e-20 or so."""
KEPT = 64
"""Laws that are kept for the next time."""


@dataclass(frozen=True, eq=False)
class NoiseMasses:
    """Probabilities of noise on consecutive integers, from ``first`` on, in units of 1/``fine`` of a record.

    Attributes:
        slack: by how many of these units a noisy count may differ from the one that these stand for.
    """

    first: int
    masses: Floats
    fine: int
    slack: int = 0


@dataclass(frozen=True, eq=False)
class Counted:
    """The law of a noisy count: probabilities of consecutive integers, from ``first`` on."""

    first: int
    masses: Floats

    @cached_property
    def tails(self) -> Floats:
        """Pr[T >= first + i]; one entry more, which is 0."""
        return np.append(np.cumsum(self.masses[::-1])[::-1], 0.0)

    @property
    def values(self) -> Integers:
        """All that it can be."""
        return self.first + np.arange(len(self.masses), dtype=np.int64)

    def at_least(self, values: Integers) -> Floats:
        """Pr[T >= value] for each."""
        return self.tails[np.clip(values - self.first, 0, len(self.masses))]


@dataclass(frozen=True, eq=False)
class NoisyCount:
    """How many of n records are successes, with noise: its law for every rate."""

    n: int
    noise: NoiseMasses

    @cached_property
    def _known(self) -> dict[float, Counted]:
        return {}

    def law(self, rate: float) -> Counted:
        """Where records are successes at this rate."""
        if len(self._known) > KEPT:
            self._known.clear()
        if rate not in self._known:
            self._known[rate] = self._law(rate)
        return self._known[rate]

    def _law(self, rate: float) -> Counted:
        spread = DEVIATIONS * math.sqrt(self.n * rate * (1 - rate)) + 4 * DEVIATIONS
        low, high = max(math.floor(self.n * rate - spread), 0), min(math.ceil(self.n * rate + spread), self.n)
        plain = stats.binom.pmf(np.arange(low, high + 1), self.n, rate)
        fine = self.noise.fine
        spaced = np.zeros((high - low) * fine + 1)
        spaced[::fine] = plain
        masses = np.maximum(fftconvolve(spaced, self.noise.masses), 0.0)
        return Counted(low * fine + self.noise.first, masses / math.fsum(masses))


def upper_tail(one: Counted, other: Counted, weights: tuple[int, int], level: int) -> float:
    """Pr[w T + w' T' >= level] of two independent noisy counts; the second weight is positive."""
    first, second = weights
    needed = -((first * one.values - level) // second)  # the least T' that reaches the level
    return float(one.masses @ other.at_least(needed))
