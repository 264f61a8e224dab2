r"""Weighted sums of noisy counts: their noise, and bounds on their tails for every distribution.

A statistic :math:`\sum_c w_c T_c` of noisy counts :math:`T_c = N_c + Z_c` is the sum of a score, :math:`\sum_i w(x_i)`,
plus the noise :math:`\sum_c w_c Z_c`. So :class:`WeightedNoise` makes it a :class:`~privatest.laws.NoisyTotal`.

If the law of the records is not known, :class:`BoundedSum` bounds the tails of the sum plus noise for all laws with a
given range, mean and variance: for every such law, every :math:`h < x` and the sum Y of n independent numbers that take
two values (Bentkus 2004, "On Hoeffding's inequalities", theorem 1.1 and its proof),

.. math:: \Pr[S + N \ge x] \le \frac{E (S + N - h)_+^2}{(x - h)^2} \le \frac{E (Y + N - h)_+^2}{(x - h)^2}.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privatest.laws.block_laws import binomial
from privatest.laws.fourier import fast_length
from privatest.laws.noisy_total import NoisyTotal
from privatest.numbers import Floats, Integers
from privatest.privacy import Noise, RandomSource

# exp(-45) < 1e-19: the mass on either side that the table of probabilities may leave out.
_LEFT_OUT = 45.0
# Below this a probability from the table may be rounding only; Chernoff's bound takes its place.
_RESOLVED = 1e-12
_TILTS = np.geomspace(0.02, 40.0, 64)
"""Tilts times the standard deviation, at which Chernoff's bound is looked for."""


@dataclass(frozen=True)
class WeightedNoise(Noise):
    r"""N = sum of w_c Z_c, where the Z_c are independent and have the law of ``noise``.

    It is the law of what is computed from counts that were released. It hides no record itself, so no test accepts it
    as its noise.

    Guarantees: probabilities are those of the law to 1e-15 or, if they are below 1e-12, bounds from above.

    Attributes:
        noise: the noise on each count.
        weights: an integer for each count.
    """

    kind: ClassVar[str] = "weighted"

    noise: Noise
    weights: tuple[int, ...]

    @cached_property
    def _sizes(self) -> tuple[Floats, Floats]:
        """The sizes of the weights that are not 0, and how often each occurs."""
        sizes, often = np.unique(np.abs([weight for weight in self.weights if weight]), return_counts=True)
        return sizes.astype(np.float64), often.astype(np.float64)

    @property
    def offset(self) -> Fraction:
        return self.noise.offset * sum(self.weights) % 1

    @property
    def decay_rate(self) -> float:
        sizes, _ = self._sizes
        return self.noise.decay_rate / float(sizes[-1]) if len(sizes) else math.inf

    @property
    def variance(self) -> float:
        return self.noise.variance * sum(weight * weight for weight in self.weights)

    def draw_doubled(self, source: RandomSource) -> int:
        return sum(weight * self.noise.draw_doubled(source) for weight in self.weights)

    def drift(self, theta: float) -> float:
        return math.fsum(
            often * size * self.noise.drift(theta * size) for size, often in zip(*self._sizes, strict=True)
        )

    def log_excess(self, theta: float) -> float:
        return math.fsum(often * self._log_moment(theta * size) for size, often in zip(*self._sizes, strict=True))

    def _log_moment(self, theta: float) -> float:
        """log E e^(theta Z)."""
        moment = complex(self.noise.characteristic(np.array([-1j * theta]))[0])
        size = math.hypot(moment.real, moment.imag)  # abs() of a complex number fails where it leaves the doubles
        return math.log(size) if math.isfinite(size) else math.inf

    @cached_property
    def _bounds(self) -> tuple[Floats, Floats]:
        """Tilts theta and the logarithm of E e^(theta N) at each, for Chernoff's bound."""
        theta = np.minimum(_TILTS / math.sqrt(max(self.variance, 1e-300)), 0.999 * min(self.decay_rate, 1e9))
        logs = np.array([self.log_excess(float(tilt)) for tilt in theta])
        finite = np.isfinite(logs)
        return theta[finite], logs[finite]

    def reach(self, nats: float) -> float:
        if not len(self._sizes[0]):
            return 0.0
        theta, logs = self._bounds
        return float(((nats + logs) / theta).min())

    @cached_property
    def _table(self) -> tuple[int, Floats, Floats]:
        """A whole number, and the probabilities of the values within it of 0 and their sums from below.

        The values are the integers plus the offset.
        """
        reach = math.ceil(self.reach(_LEFT_OUT)) + 1
        size = fast_length(2 * reach + 2)
        t = 2 * math.pi * np.arange(size // 2 + 1) / size
        waves = self._characteristic(t) * np.exp(-1j * t * float(self.offset))
        circle = np.maximum(np.fft.irfft(waves.conj(), size), 0.0)
        masses = np.concatenate([circle[-reach:], circle[: reach + 1]])
        return reach, masses / math.fsum(masses), np.cumsum(masses)

    def _place(self, v: Floats) -> tuple[Floats, NDArray[np.int64]]:
        reach, masses, _ = self._table
        place = v - float(self.offset) + reach
        return place, np.clip(place, 0, len(masses) - 1).astype(np.int64)

    def _log_pmf(self, v: Floats) -> Floats:
        return self._log_of(self._table[1], v)

    def _log_lower(self, v: Floats) -> Floats:
        return self._log_of(self._table[2], v)

    def _log_of(self, probabilities: Floats, v: Floats) -> Floats:
        """Return the logarithms of the tabled probabilities at v; bounds by Chernoff where these are rounding only."""
        place, index = self._place(v)
        resolved = (place >= 0) & (place < len(probabilities)) & (probabilities[index] > _RESOLVED)
        logs = np.asarray(np.log(np.maximum(probabilities[index], _RESOLVED)))
        if not np.all(resolved):
            logs = np.where(resolved, logs, 0.0)
            logs[~resolved] = self._chernoff(np.abs(v)[~resolved])
        return logs

    def _chernoff(self, away: Floats) -> Floats:
        """Return a bound on the logarithm of the probability that N exceeds these distances from 0."""
        theta, logs = self._bounds
        if not len(theta):
            return np.where(away > 0, -np.inf, 0.0)
        return np.asarray(np.minimum((logs - np.multiply.outer(away, theta)).min(axis=-1), 0.0))

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        product: Any = np.ones_like(t)
        for size, often in zip(*self._sizes, strict=True):
            product = product * self.noise.characteristic(size * t) ** int(often)
        return np.asarray(product, dtype=t.dtype)

    @cached_property
    def _moments(self) -> tuple[int, Floats, Floats, Floats]:
        """For E (N - u)_+^2: a whole number, and the sums of v^k Pr[N = v] from each value upwards, k = 0, 1, 2."""
        reach, masses, _ = self._table
        values = np.arange(-reach, reach + 1) + float(self.offset)

        def above(terms: Floats) -> Floats:
            return np.append(np.cumsum(terms[::-1])[::-1], 0.0)

        return reach, above(masses), above(masses * values), above(masses * values**2)

    def excess_square(self, u: Floats) -> Floats:
        """E (N - u)_+^2 at each u."""
        reach, zeroth, first, second = self._moments
        place = np.clip(np.floor(u - float(self.offset)) + reach + 1, 0, len(zeroth) - 1).astype(np.int64)
        return np.asarray(np.maximum(second[place] - 2 * u * first[place] + u * u * zeroth[place], 0.0))


_HEIGHTS = np.concatenate([np.linspace(-1.0, 6.0, 71), np.geomspace(6.5, 60.0, 12)])
"""How far below x the numbers h are that are tried, in standard deviations of the sum."""


@dataclass(frozen=True, eq=False)
class BoundedSum:
    """Bounds on the tails of S + N, S the sum of n independent numbers in [0, 1] with equal laws, N noise.

    Attributes:
        n: the number of records.
        noise: the noise, on the integers.
        unit: the number of the noise's units that 1 is: the noise on S is N / unit.
    """

    n: int
    noise: WeightedNoise
    unit: float

    def at_least(self, x: float, mean: float, variance: float) -> float:
        """Return an upper bound on Pr[S + N >= x], where a number has this mean and at most this variance."""
        room = 1.0 - mean
        variance = min(variance, mean * room)
        if variance <= 0:
            return float(self.noise.sf((x - self.n * mean) * self.unit - 1))
        share = variance / (variance + room * room)
        step = room + variance / room
        first, masses = binomial(self.n, share)
        away = (first + np.arange(len(masses))) * step - self.n * variance / room  # Y less its mean
        far = x - self.n * mean
        deviation = math.sqrt(self.n * variance + self.noise.variance / self.unit**2)
        heights = far - deviation * _HEIGHTS[_HEIGHTS > 0]
        squares = self.noise.excess_square(((heights[:, None] - away[None, :]) * self.unit).ravel())
        bounds = squares.reshape(len(heights), -1) @ masses / ((far - heights) * self.unit) ** 2
        return float(min(bounds.min(), 1.0))

    def at_most(self, x: float, mean: float, variance: float) -> float:
        """Return an upper bound on Pr[S + N <= x], where a number has this mean and at most this variance."""
        return self.at_least(self.n - x, 1.0 - mean, variance)


def weighted(noise: Noise, weights: Sequence[int]) -> WeightedNoise:
    """Return the noise of the weighted sum of counts that each have this noise."""
    return WeightedNoise(noise, tuple(int(weight) for weight in weights))


@dataclass(frozen=True, eq=False)
class Statistic:
    """A weighted sum of noisy counts, and its law for every law of the records.

    Attributes:
        weights: an integer for each cell, and last that of the missing records.
        noise: the noise on each count.
        n: the number of all records, if it is public.
        doubled: twice the observed sum.
    """

    weights: Integers
    noise: Noise
    n: int | None
    doubled: int

    @cached_property
    def combined(self) -> WeightedNoise:
        """The noise of the sum."""
        return weighted(self.noise, self.weights.tolist())

    def tail(self, law: Floats, possible: Sequence[int], side: int) -> float:
        """Return the largest probability of at most (side 0) or at least (side 1) this sum over the possible numbers.

        Args:
            law: the probability of each cell for a record that is present.
            possible: the numbers of present records to consider.
            side: which tail.
        """
        support, place = np.unique(self.weights[:-1], return_inverse=True)
        masses = np.bincount(place, weights=law, minlength=len(support)).astype(np.float64)
        largest = 0.0
        for number in possible:
            seen = self._seen(number)
            total = NoisyTotal(support.astype(np.int64), masses, number, self.combined)
            largest = max(largest, total.sf(seen - Fraction(1, 2)) if side else total.cdf(seen))
        return largest

    def _seen(self, number: int) -> Fraction:
        """Return the observed sum over the records that are present, if ``number`` records are present."""
        return Fraction(self.doubled, 2) - (0 if self.n is None else (self.n - number) * int(self.weights[-1]))

    def rough_tail(self, law: Floats, possible: Sequence[int], side: int) -> float:
        """About :meth:`tail`, by Edgeworth's series to the fourth cumulant: to look for an end before it is proven."""
        weights = self.weights[:-1].astype(np.float64)
        mean = float(law @ weights)
        second, third, fourth = (float(law @ (weights - mean) ** k) for k in (2, 3, 4))
        squares = float(np.square(self.weights.astype(np.float64)).sum())
        fourths = float((self.weights.astype(np.float64) ** 4).sum())
        largest = 0.0
        for number in possible:
            variance = number * second + self.noise.variance * squares
            if variance <= 0:
                return 1.0
            skewness = number * third / variance**1.5
            excess = (number * (fourth - 3 * second**2) + self._fourth * fourths) / variance**2
            sign = -1.0 if side else 1.0
            away = sign * (float(self._seen(number)) - number * mean) / math.sqrt(variance)
            polynomial = (
                sign * skewness / 6 * (away**2 - 1)
                + excess / 24 * (away**3 - 3 * away)
                + skewness**2 / 72 * (away**5 - 10 * away**3 + 15 * away)
            )
            density = math.exp(-min(away * away, 1400.0) / 2) / math.sqrt(2 * math.pi)
            tail = 0.5 * math.erfc(-away / math.sqrt(2)) - density * polynomial
            largest = max(largest, min(max(tail, 0.5 * math.erfc(-away / math.sqrt(2)) / 8), 1.0))
        return largest

    @cached_property
    def _fourth(self) -> float:
        """The fourth cumulant of the noise on a count."""
        t = 0.2 / math.sqrt(max(self.noise.variance, 1.0))
        log = math.log(float(np.real(self.noise.characteristic(np.array([t]))[0])))
        return 24 * (log + self.noise.variance * t * t / 2) / t**4

    def surely_beyond(self, law: Floats, possible: Sequence[int], side: int, level: float) -> bool:
        """Whether a tail is proven to be at most the level: by Cantelli's inequality or, if it is near, exactly."""
        weights = self.weights[:-1].astype(np.float64)
        mean = float(law @ weights)
        spread = float(law @ (weights - mean) ** 2)
        for number in possible:
            away = (float(self._seen(number)) - number * mean) * (1 if side else -1)
            if away <= 0:
                return False
            variance = number * spread + self.combined.variance
            if variance / (variance + away * away) > level:
                return self.tail(law, possible, side) <= level
        return True

    def bound(
        self, values: Floats, mean: float, variance: float, possible: Sequence[int], *, upper: bool = True
    ) -> float:
        """A bound on the probability of at least (at most) this sum for every law with this mean and this variance.

        Args:
            values: the values in [0, 1] of which the weights are multiples, up to rounding and a number added to all.
            mean: the mean of the values.
            variance: an upper bound on their variance.
            possible: the numbers of present records to consider.
            upper: whether the upper tail is meant.
        """
        unit = float(np.ptp(self.weights[:-1]) / np.ptp(values))
        offsets = self.weights[:-1] - unit * values
        shift, rounded = float(offsets.mean()), float(np.ptp(offsets))
        largest = 0.0
        for number in possible:
            fixed = 0 if self.n is None else (self.n - number) * int(self.weights[-1])
            away = (self.doubled / 2 - fixed - number * shift) / unit
            law = BoundedSum(number, self.combined, unit)
            slack = number * rounded / unit
            tail = law.at_least(away - slack, mean, variance) if upper else law.at_most(away + slack, mean, variance)
            largest = max(largest, tail)
        return largest
