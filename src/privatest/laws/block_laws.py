r"""Laws of noisy totals as arrays of probabilities, where all values are needed at once.

:class:`BlockLaws`: blocks of records around a change. The total of a block of B records, r of the old regime and the
rest of the new one, has the law

.. math:: \text{law}_r = p^{*r} * q^{*(B - r)} * \text{noise}

by one FFT on a window that holds all but 1e-10 of every law; the mass beyond belongs to the outermost bins.
:func:`first_argmin_law` is the law of the place to which the blocks' bits point.

:class:`NoisyCount`: a noisy count of successes :math:`T = m X + N`, X binomial and N noise on the integers, in units
of 1/m of a record. For two groups :math:`\Pr[w_b T_b + w_a T_a \ge v]` is one sum, over the values of one count, of
tails of the other (:func:`upper_tail`). All comparisons of totals are comparisons of integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privatest.errors import Infeasible
from privatest.laws.fourier import Complexes, convolution, sum_laws
from privatest.numbers import Floats, Integers, clipped
from privatest.privacy import Noise

# Noise is beyond its window with probability about e^-25 = 1.4e-11; a sum is beyond 7.5 deviations as rarely.
_NOISE_REACH = 25.0
_SUM_REACH = 7.5
MOST_TOTALS = 1 << 25
"""Largest number of values of a block's noisy total: a quarter of a gigabyte for each of a few tables."""
# Bins of 1/24 of a deviation change no likelihood visibly.
_BINS_PER_DEVIATION = 24
# The transforms' rounding is near 1e-17; smaller likelihoods count as this floor.
_FLOOR = 1e-15


@dataclass(frozen=True, eq=False)
class ScoreLaw:
    """The law of a record's integer score under P and under Q, and the score's width."""

    support: Integers
    p: Floats
    q: Floats
    width: int

    @cached_property
    def means(self) -> tuple[float, float]:
        """Mean score under P and under Q."""
        return float(self.p @ self.support), float(self.q @ self.support)

    @cached_property
    def variances(self) -> tuple[float, float]:
        """Variance of the score under P and under Q."""
        p, q = (float(law @ (self.support - m) ** 2) for law, m in zip((self.p, self.q), self.means, strict=True))
        return p, q

    @property
    def gap(self) -> float:
        """Difference of the mean scores under P and under Q, in widths."""
        return (self.means[0] - self.means[1]) / self.width


@dataclass(frozen=True, eq=False)
class BlockLaws:
    """Binned laws of floor(S + N), S the total of a block of ``block`` records of which the first ``olds[i]`` are old.

    Attributes:
        first: the smallest floor(S + N) of the second bin; all smaller values belong to the first bin.
        bin_width: number of lattice values in a bin.
        laws: probabilities of the bins, one row for each of ``olds``.
    """

    block: int
    olds: tuple[int, ...]
    first: int
    bin_width: int
    laws: Floats

    @classmethod
    def of(
        cls, law: ScoreLaw, noise: Noise | None, block: int, olds: Sequence[int], *, bin_width: int | None = None
    ) -> BlockLaws:
        """The laws for these numbers of old records, in bins of this width (None: as fine as a likelihood needs)."""
        low, high, deviation = _window(law, noise, block)
        if high - low >= MOST_TOTALS:
            raise Infeasible(
                f"The noisy total of a block of {block:,} records takes about {high - low:.2g} values, more than the "
                f"{MOST_TOTALS:.2g} that fit into memory. Use a larger epsilon, or hypotheses that differ more."
            )
        base = int(law.support[0])
        window = (low - block * base, high - block * base)
        if bin_width is None:
            bin_width = 1 if noise is None else max(int(deviation / _BINS_PER_DEVIATION), 1)
        dense = sum_laws(
            law.support - base,
            [law.p, law.q],
            [(old, block - old) for old in olds],
            [window] * len(olds),
            None if noise is None else lambda size: _log_noise_waves(noise, size),
        )
        laws = np.add.reduceat(np.array(dense), np.arange(0, high - low + 1, bin_width), axis=1)
        return cls(block, tuple(olds), low + bin_width, bin_width, laws / laws.sum(axis=1, keepdims=True))

    @property
    def count(self) -> int:
        """Number of bins."""
        return int(self.laws.shape[1])

    @property
    def values(self) -> Integers:
        """The lattice value of each bin, for bins of one value."""
        return self.first - 1 + np.arange(self.count, dtype=np.int64)

    def bins(self, totals: Integers, doubled_noise: Integers) -> Integers:
        """Return the bins of exact totals plus noise, in exact integers; ``doubled_noise`` is twice the noise."""
        floors = totals + (doubled_noise >> 1)
        return np.asarray(np.clip((floors - self.first) // self.bin_width + 1, 0, self.count - 1))

    @cached_property
    def log_laws(self) -> Floats:
        """Logarithms of the laws, with a floor."""
        return np.log(np.maximum(self.laws, _FLOOR / self.count))

    @cached_property
    def _cdfs(self) -> Floats:
        cdfs = np.cumsum(self.laws, axis=1)
        cdfs[:, -1] = 2.0
        return cdfs

    def sample(self, row: int, shape: tuple[int, ...], rng: np.random.Generator) -> Integers:
        """Bins drawn from one of the laws, which are public: for simulations only."""
        return np.searchsorted(self._cdfs[row], rng.random(shape), side="right")

    def affinity(self, row: int, other: int) -> float:
        """Bhattacharyya coefficient of two of the laws."""
        return float(np.sum(np.sqrt(self.laws[row] * self.laws[other])))


def _window(law: ScoreLaw, noise: Noise | None, block: int) -> tuple[int, int, float]:
    """First and last lattice value that matter, and the smaller standard deviation of a noisy total."""
    spread = [math.sqrt(block * v) * _SUM_REACH + _SUM_REACH**2 * law.width / 2 for v in law.variances]
    lows = [max(block * m - s, block * int(law.support[0])) for m, s in zip(law.means, spread, strict=True)]
    highs = [min(block * m + s, block * int(law.support[-1])) for m, s in zip(law.means, spread, strict=True)]
    low, high, variance = math.floor(min(lows)), math.ceil(max(highs)), 0.0
    if noise is not None:
        reach = noise.window(_NOISE_REACH)
        low, high, variance = low - reach, high + reach, noise.variance
    return low, high, math.sqrt(block * min(law.variances) + variance)


def _log_noise_waves(noise: Noise, size: int) -> Complexes:
    """Logarithms of the Fourier coefficients of floor(N), an integer."""
    t = 2 * math.pi * np.arange(size // 2 + 1) / size
    turned = np.asarray(noise.characteristic(t), dtype=np.complex128)
    # The phases are e^{-itk}, as in the FFT; the floor of a half integer lies 1/2 lower.
    return np.asarray(np.log(np.where(turned == 0, 1e-300, turned)) + (0.0 if noise.offset == 0 else 0.5j * t))


def first_argmin_law(ups: Floats, before: float = 0.0, after: float = 0.0) -> Floats:
    """Exact law of the first place at which a walk with independent steps of +1 and -1 is lowest.

    The places are 0, ..., m; the step from place t to place t + 1 is +1 with probability ``ups[t]``. The walk may
    continue at both ends: to the left of the first place it ever rises one step above it with probability ``before``,
    to the right of the last place it ever falls one step below it with probability ``after`` (0: it ends there).

    Guarantees: place t is the first lowest one exactly if no sum of the steps from t rightwards is below 0 and all sums
    of the steps from t - 1 leftwards are; both events are followed step by step.

    >>> first_argmin_law(np.array([0.5, 0.5])).tolist()
    [0.5, 0.25, 0.25]
    """
    m = len(ups) + 1
    right, left = np.zeros(m), np.zeros(m)
    heights = np.arange(m + 1)  # each step needs one fewer: a walk must reach 0 in the steps that are left
    stay = 1.0 - after ** (heights + 1)  # stay[x]: from x, never below 0 on the way to the right
    right[m - 1] = stay[0]
    for t in range(m - 2, -1, -1):
        then = ups[t] * stay[1 : t + 2]
        then[1:] += (1 - ups[t]) * stay[:t]
        stay, right[t] = then, then[0]
    stay = 1.0 - before**heights  # stay[x]: from -x, never back to 0 on the way to the left
    left[0] = (1.0 - before) / (1.0 + before)  # the first step goes down with probability 1/(1 + before)
    for t in range(1, m):
        then = (1 - ups[t - 1]) * stay[1 : m - t + 1]
        then[2:] += ups[t - 1] * stay[1 : m - t - 1]
        stay, left[t] = then, then[0]
    return right * left


REACH = 9.0
"""A binomial is this many deviations (and as many records) from its mean with probability under 1e-18."""
KEPT = 64
"""Number of laws that are kept for the next time."""
REACHES = {"laplace": 42, "gaussian": 12, "discrete_laplace": 42}
"""Beyond this multiple of its size noise of each kind is negligible."""


@dataclass(frozen=True, eq=False)
class NoiseMasses:
    """Probabilities of noise on consecutive integers, from ``first`` on, in units of 1/``fine`` of a record.

    Attributes:
        slack: number of units by which rounding to the lattice may change a noisy count.
    """

    first: int
    masses: Floats
    fine: int
    slack: int = 0

    @cached_property
    def slope(self) -> float:
        """The most by which one more record changes the probability of a set."""
        return float(np.abs(self._difference).sum()) / 2

    @cached_property
    def bend(self) -> float:
        """The most by which one more record changes that change."""
        return float(np.abs(self._moved_less(self._difference)).sum()) / 2

    @cached_property
    def _difference(self) -> Floats:
        """Return the probabilities of the noise shifted by one record minus the probabilities of the noise."""
        return self._moved_less(self.masses)

    def _moved_less(self, masses: Floats) -> Floats:
        apart = np.zeros(self.fine)
        return np.append(apart, masses) - np.append(masses, apart)


@dataclass(frozen=True, eq=False)
class Counted:
    """The law of a noisy count: probabilities of consecutive integers, from ``first`` on."""

    first: int
    masses: Floats

    @cached_property
    def tails(self) -> Floats:
        """Pr[T >= first + i], with a last entry of 0."""
        return np.append(np.cumsum(self.masses[::-1])[::-1], 0.0)

    @property
    def end(self) -> int:
        """One more than the largest value."""
        return self.first + len(self.masses)

    @property
    def values(self) -> Integers:
        """All values, in increasing order."""
        return self.first + np.arange(len(self.masses), dtype=np.int64)

    def at_least(self, values: Integers) -> Floats:
        """Pr[T >= value] for each of ``values``."""
        return self.tails[clipped(values - self.first, 0, len(self.masses))]


@dataclass(frozen=True, eq=False)
class NoisyCount:
    """The noisy number of successes among n records, whose law depends on the success rate."""

    n: int
    noise: NoiseMasses

    @cached_property
    def _laws(self) -> dict[float, Counted]:
        return {}

    def law(self, rate: float) -> Counted:
        """Return the law if records are successes at this rate; the last ``KEPT`` laws are cached."""
        if len(self._laws) > KEPT:
            self._laws.clear()
        if rate not in self._laws:
            self._laws[rate] = self._law(rate)
        return self._laws[rate]

    def _law(self, rate: float) -> Counted:
        low, plain = binomial(self.n, rate)
        fine = self.noise.fine
        spaced = np.zeros((len(plain) - 1) * fine + 1)
        spaced[::fine] = plain
        masses = np.maximum(convolution(spaced, self.noise.masses), 0.0)
        return Counted(low * fine + self.noise.first, masses / masses.sum())


def binomial(n: int, rate: float, reach: float = REACH) -> tuple[int, Floats]:
    """First count and probabilities of a binomial, without counts ``reach`` deviations (and reach^2) off the mean.

    Ratios of neighbouring probabilities are exact; multiplied from the mean outwards and normalised they lose no
    more than a few digits, however large n is.

    >>> binomial(2, 0.5)[1].tolist()
    [0.25, 0.5, 0.25]
    """
    if not 0.0 < rate < 1.0:
        return (n if rate > 0 else 0), np.ones(1)
    away = reach * math.sqrt(n * rate * (1 - rate)) + reach**2
    first, last = max(math.floor(n * rate - away), 0), min(math.ceil(n * rate + away), n)
    k = np.arange(first, last, dtype=np.float64)
    steps = np.log((n - k) / (k + 1)) + (math.log(rate) - math.log1p(-rate))
    middle = min(max(round(n * rate), first), last) - first
    up = np.concatenate([[0.0], np.cumsum(steps[middle:])])
    down = np.cumsum(-steps[:middle][::-1])[::-1]
    with np.errstate(under="ignore"):
        law = np.exp(np.concatenate([down, up]))
    return first, law / law.sum()


def upper_tail(one: Counted, other: Counted, weights: tuple[int, int], level: int) -> float:
    """Pr[w T + w' T' >= level] of two independent noisy counts; the second weight is positive."""
    first, second = weights
    needed = -((first * one.values - level) // second)  # the least T' with which the level is reached
    return float(one.masses @ other.at_least(needed))


def variance_of(kind: str, size: float) -> float:
    """Variance of noise of this kind and size."""
    if kind == "gaussian":
        return size**2
    if kind == "laplace":
        return 2 * size**2
    b = math.exp(-1 / size)
    return 2 * b / (1 - b) ** 2


def masses_of(kind: str, size: float, fine: int) -> NoiseMasses:
    """Probabilities of noise rounded to the lattice; ``slack`` accounts for the rounding."""
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
