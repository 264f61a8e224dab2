r"""Gaussian noise: its law and its exact draw.

A draw is an exact normal number rounded to the lattice; as many of its digits are drawn as rounding needs. What is
released is post-processing of an exact Gaussian, hence exactly mu-GDP; a discrete Gaussian is not. Many draws at once:
``bulk_draws.py``.

Reference: Karney 2016, "Sampling exactly from the normal distribution", algorithm N. Arguments: proof.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privatest import numbers
from privatest.numbers import Floats
from privatest.privacy import randomness as coins
from privatest.privacy.noise import Noise, positive_within_double
from privatest.privacy.notion import Gdp, Notion
from privatest.privacy.randomness import RandomSource

# From this deviation on the mass of a lattice value is integrated: the difference of two tails would lose digits.
_WIDE = 8.0


@dataclass(frozen=True)
class Gaussian(Noise):
    r"""The nearest integer to a normal number of standard deviation width/mu.

    .. math:: \Pr[N = k] = \Phi\Big(\frac{k + 1/2}{\sigma}\Big) - \Phi\Big(\frac{k - 1/2}{\sigma}\Big), \qquad
              \sigma = \frac{width}{\mu}

    Guarantees: noisy totals of totals d apart meet (mu d/width)-GDP exactly, as if the normal number itself were added.

    >>> Gaussian(Fraction(1, 2), 100).guarantee(200)
    gdp(1)
    """

    mu: Fraction
    width: int
    kind: ClassVar[str] = "gaussian"
    grain: ClassVar[int] = 8  # rounding then adds 1/768 of the squared width to the variance

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", positive_within_double(mu=self.mu))
        object.__setattr__(self, "width", numbers.positive_integer(width=self.width))

    @property
    def sd(self) -> float:
        """Standard deviation before rounding."""
        return float(self.width / self.mu)

    @property
    def decay_rate(self) -> float:
        return math.inf

    @property
    def variance(self) -> float:
        if self.sd >= 2:  # rounding adds 1/12, up to e^(-2 pi^2 sd^2)
            return self.sd**2 + 1 / 12
        value = np.arange(math.ceil(40 * self.sd) + 2, dtype=np.float64)
        return float(2 * np.sum(value**2 * self.pmf(value)))

    def reach(self, nats: float) -> float:
        return self.sd * math.sqrt(2 * nats) + 1

    def transform_reach(self, nats: float) -> float:
        return math.sqrt(2 * nats) / self.sd

    def exponent(self, x: float) -> float:
        return (x / self.sd) ** 2 / 2

    def drift(self, theta: float) -> float:
        """The mean of the law tilted by e^(theta N)."""
        return self.sd**2 * theta

    def log_excess(self, theta: float) -> float:
        return (self.sd * theta) ** 2 / 2 + theta / 2

    def guarantee(self, shift: int) -> Notion | None:
        return Gdp(self.mu * abs(shift) / self.width) if shift else None

    def scattered(self, rows: int) -> Notion | None:
        """The rows in one count: the squares of the shifts of several counts add up, which is less."""
        return self.guarantee(rows)

    def hides(self, shift: int) -> bool:
        return abs(shift) <= self.width

    def draw_doubled(self, source: RandomSource) -> int:
        return self.rounded(*_half_normal(source), source)

    def rounded(self, whole: int, digits: coins.UniformDigits, source: RandomSource) -> int:
        """Twice the integer nearest to ``whole + digits`` deviations, with a fair sign. Draws the digits it needs."""
        top, bottom = self.width * self.mu.denominator, self.mu.numerator  # the deviation is top/bottom
        # Invariant: by the digits known so far, the number plus 1/2 lies in [low, high)/(2 bottom 2^bits).
        while True:
            known = (whole << digits.bits) + digits.value
            half = bottom << digits.bits
            low, high = 2 * top * known + half, 2 * top * (known + 1) + half
            rounded = low // (2 * half)
            if high <= (rounded + 1) * 2 * half:
                return 2 * rounded if source.bits(1) else -2 * rounded
            digits.extend()

    def _log_pmf(self, v: Floats) -> Floats:
        from scipy.special import log_ndtr  # start-up: planning a pure test needs no scipy

        sd, size = self.sd, np.abs(v)
        if sd < _WIDE:
            near, far = log_ndtr(-(size - 0.5) / sd), log_ndtr(-(size + 0.5) / sd)
            middle = math.log(math.erf(0.5 / sd / math.sqrt(2)))
            return np.where(size == 0, middle, near + np.log(-np.expm1(far - near)))
        nodes, weights = np.polynomial.legendre.leggauss(20)
        u = nodes / 2
        inside = np.exp(-np.multiply.outer(size / sd**2, u) - u**2 / (2 * sd**2)) @ (weights / 2)
        return np.asarray(-((size / sd) ** 2) / 2 - math.log(sd * math.sqrt(2 * math.pi)) + np.log(inside))

    def _log_lower(self, v: Floats) -> Floats:
        from scipy.special import log_ndtr  # start-up: planning a pure test needs no scipy

        return np.asarray(log_ndtr((v + 0.5) / self.sd))

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        r"""Poisson summation of the normal law's transform times that of the rounding.

        .. math:: \sum_k e^{-\sigma^2 (t + 2\pi k)^2/2} \frac{(-1)^k \sin(t/2)}{(t + 2\pi k)/2}
        """
        sd = self.sd
        safe = np.where(t == 0, 1, t)
        total = np.where(t == 0, 1, np.exp(-((sd * t) ** 2) / 2) * np.sin(safe / 2) / (safe / 2))
        for k in range(1, math.ceil(9.5 / (2 * math.pi * sd)) + 1):
            for turned in (t + 2 * math.pi * k, t - 2 * math.pi * k):
                total = total + (-1) ** k * np.exp(-((sd * turned) ** 2) / 2) * np.sin(t / 2) / (turned / 2)
        return np.asarray(total)


def _half_normal(source: RandomSource) -> tuple[int, coins.UniformDigits]:
    """k and x such that k + x has the law of the absolute value of a standard normal number (algorithm N).

    k is kept in proportion to e^(-k/2) e^(-k(k-1)/2) = e^(-k^2/2), x in proportion to e^(-x(2k+x)/2).
    """
    # Invariant: a rejected pair leaves no trace.
    while True:
        k = 0
        while coins.bernoulli_exp(1, 2, source):
            k += 1
        if not coins.bernoulli_exp(k * (k - 1), 2, source):
            continue
        x = coins.UniformDigits(source)
        if all(_kept_share(x, k, source) for _ in range(k + 1)):
            return k, x


def _kept_share(x: coins.UniformDigits, k: int, source: RandomSource) -> bool:
    """True with probability e^(-y), y = x (2k + x)/(2k + 2) < 1: ``_bernoulli_exp_within_one`` with a lazy y."""
    j = 1
    # Invariant: the coins y/1, ..., y/(j-1) all came up true.
    while _below_mass(x, k, j, source):
        j += 1
    return j & 1 == 1


def _below_mass(x: coins.UniformDigits, k: int, j: int, source: RandomSource) -> bool:
    """True with probability y/j = x (2k + x)/(j (2k + 2))."""

    def mass(bits: int) -> tuple[int, int]:
        while x.bits < bits:
            x.extend()
        low, high = (value * ((2 * k << x.bits) + value) << bits for value in (x.value, x.value + 1))
        scale = j * (2 * k + 2) << 2 * x.bits
        return low // scale, -(-high // scale)

    return coins.UniformDigits(source).is_below(mass)
