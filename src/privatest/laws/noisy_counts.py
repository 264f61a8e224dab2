r"""Two noisy counts of successes, each in a group of its own: laws of their sum and of their difference.

A noisy count is :math:`T = m X + N`, X binomial and N noise on the integers, in units of 1/m of a record. Both groups'
laws are arrays of probabilities, so that :math:`\Pr[w_b T_b + w_a T_a \ge v]` is one sum: over the values of the one,
the tail of the other. All comparisons of totals are comparisons of integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privatest.numbers import Floats, Integers, clipped

__all__ = [
    "REACH",
    "REACHES",
    "Counted",
    "NoiseMasses",
    "NoisyCount",
    "binomial",
    "masses_of",
    "upper_tail",
    "variance_of",
    "window_of",
]

REACH = 9.0
"""A binomial is this many deviations (and as many records) from its mean with probability under 1e-18."""
KEPT = 64
"""Laws that are kept for the next time."""
REACHES = {"laplace": 42, "gaussian": 12, "discrete_laplace": 42}
"""As far, in its own size, noise of this kind is not negligible."""


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

    @cached_property
    def slope(self) -> float:
        """By how much one record more changes the probability of a set, at most."""
        return float(np.abs(self._once).sum()) / 2

    @cached_property
    def bend(self) -> float:
        """By how much that itself changes with another record, at most."""
        apart = np.zeros(self.fine)
        return float(np.abs(np.append(apart, self._once) - np.append(self._once, apart)).sum()) / 2

    @cached_property
    def _once(self) -> Floats:
        """Probabilities a record further minus those here."""
        apart = np.zeros(self.fine)
        return np.append(apart, self.masses) - np.append(self.masses, apart)

    @cached_property
    def _spectra(self) -> dict[int, Any]:
        return {}

    def added_to(self, law: Floats) -> Floats:
        """The law of a count plus this noise, to rounding of the largest probability."""
        length = len(law) + len(self.masses) - 1
        size = fast_length(length)
        if size not in self._spectra:
            self._spectra[size] = np.fft.rfft(self.masses, size)
        return np.fft.irfft(np.fft.rfft(law, size) * self._spectra[size], size)[:length]


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
    def end(self) -> int:
        """The first value beyond all that it can be."""
        return self.first + len(self.masses)

    @property
    def values(self) -> Integers:
        """All that it can be."""
        return self.first + np.arange(len(self.masses), dtype=np.int64)

    def at_least(self, values: Integers) -> Floats:
        """Pr[T >= value] for each."""
        return self.tails[clipped(values - self.first, 0, len(self.masses))]


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
        low, plain = binomial(self.n, rate)
        fine = self.noise.fine
        spaced = np.zeros((len(plain) - 1) * fine + 1)
        spaced[::fine] = plain
        masses = np.maximum(self.noise.added_to(spaced), 0.0)
        return Counted(low * fine + self.noise.first, masses / masses.sum())


def fast_length(least: int) -> int:
    """The least length from here on that is 2^k, 3 * 2^k or 5 * 2^k: a transform of it is quick.

    >>> [fast_length(n) for n in (1, 5, 6, 9, 11, 13, 700)]
    [1, 5, 6, 10, 12, 16, 768]
    """
    return min(odd << max(-(-least // odd) - 1, 0).bit_length() for odd in (1, 3, 5))


def binomial(n: int, rate: float, reach: float = REACH) -> tuple[int, Floats]:
    """First count and probabilities of a binomial, but for counts ``reach`` deviations (and reach^2) off.

    Ratios of neighbouring probabilities are exact; multiplied up from the mean outwards and normalised they lose no
    more than a few digits, however large n is.

    >>> binomial(2, 0.5)[1].tolist()
    [0.25, 0.5, 0.25]
    """
    if not 0.0 < rate < 1.0:
        return (n if rate > 0 else 0), np.ones(1)
    first, last = window_of(n, rate, reach)
    k = np.arange(first, last, dtype=np.float64)
    steps = np.log((n - k) / (k + 1)) + (math.log(rate) - math.log1p(-rate))
    middle = min(max(round(n * rate), first), last) - first
    up = np.concatenate([[0.0], np.cumsum(steps[middle:])])
    down = np.cumsum(-steps[:middle][::-1])[::-1]
    with np.errstate(under="ignore"):
        law = np.exp(np.concatenate([down, up]))
    return first, law / law.sum()


def window_of(n: int, rate: float, reach: float) -> tuple[int, int]:
    """The first and the last count of a binomial that matters."""
    if not 0.0 < rate < 1.0:
        return (n, n) if rate > 0 else (0, 0)
    away = reach * math.sqrt(n * rate * (1 - rate)) + reach**2
    return max(math.floor(n * rate - away), 0), min(math.ceil(n * rate + away), n)


def upper_tail(one: Counted, other: Counted, weights: tuple[int, int], level: int) -> float:
    """Pr[w T + w' T' >= level] of two independent noisy counts; the second weight is positive."""
    first, second = weights
    needed = -((first * one.values - level) // second)  # the least T' that reaches the level
    return float(one.masses @ other.at_least(needed))


def variance_of(kind: str, size: float) -> float:
    """Of noise of this kind and size."""
    if kind == "gaussian":
        return size**2
    if kind == "laplace":
        return 2 * size**2
    b = math.exp(-1 / size)
    return 2 * b / (1 - b) ** 2


def masses_of(kind: str, size: float, fine: int) -> NoiseMasses:
    """Probabilities of noise rounded to the lattice; what is rounded off is told as slack."""
    reach = math.ceil(REACHES[kind] * size * fine) + 2
    values = np.arange(-reach, reach + 1)
    if kind == "discrete_laplace" and fine == 1:
        return NoiseMasses(-reach, math.tanh(1 / (2 * size)) * np.exp(-np.abs(values) / size), 1)
    if kind == "discrete_laplace":
        spaced = np.zeros(2 * reach + 1)
        whole = values % fine == 0
        spaced[whole] = math.tanh(1 / (2 * size)) * np.exp(-np.abs(values[whole] / fine) / size)
        return NoiseMasses(-reach, spaced, fine)
    upper, lower = -(np.abs(values) - 0.5) / fine, -(np.abs(values) + 0.5) / fine
    below = _normal_cdf if kind == "gaussian" else _laplace_cdf
    masses = np.where(values == 0, 1 - 2 * below(-0.5 / fine / size), below(upper / size) - below(lower / size))
    return NoiseMasses(-reach, np.maximum(masses, 0.0), fine, slack=1)


def _laplace_cdf(x: Any) -> Any:
    return np.exp(-np.abs(x)) / 2  # of numbers up to 0, and of 0 itself where it is not used


def _normal_cdf(x: Any) -> Any:
    from scipy.special import ndtr  # start-up: of counts that others have noised only

    return ndtr(x)
