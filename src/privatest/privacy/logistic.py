"""Logistic noise on the half integers: the noise of scLLR, whose decision is the sigmoid coin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privatest.numbers import Floats
from privatest.privacy import randomness as coins
from privatest.privacy.noise import HalfIntegerNoise
from privatest.privacy.randomness import Source

__all__ = ["Logistic"]

# The two series below gain exp(-2 pi^2 scale) and exp(-1/scale) per term; at 1/2 either needs few terms.
_SERIES_SWITCH = 0.5
# Terms below exp(-40) = 4e-18 of the leading one are dropped.
_NEGLIGIBLE = 40.0


@dataclass(frozen=True)
class Logistic(HalfIntegerNoise):
    r"""N = ceil(X) - 1/2 for X continuous logistic.

    .. math:: \Pr[N = \pm(m + \tfrac12)] = \sigma_{m+1} - \sigma_m = (1 - r) r^m \sigma_m \sigma_{m+1},
              \qquad \sigma_m = \frac{1}{1 + r^m}, \quad r = e^{-1/scale}

    Guarantees: for every integer s, Pr[s + N > 0] = sigmoid(s/scale) exactly; one step of the total costs
    at most 1/scale, approached in the tails and never reached.

    >>> round(float(Logistic(Fraction(2)).sf(-3)), 12) == round(1 / (1 + math.exp(-3 / 2)), 12)
    True
    """

    kind: ClassVar[str] = "logistic"
    test: ClassVar[str] = "scllr"

    @classmethod
    def for_width(cls, epsilon: Fraction, width: Fraction, step: Fraction) -> Self:
        # The exponent 1/2 of the paper is a scale of 2 nats, enough while the width is at most 2 epsilon of them.
        return cls(max(2 / step, width / epsilon))

    @property
    def variance(self) -> float:
        r"""Minus the second derivative at 0 of whichever series ``characteristic`` uses."""
        s = float(self.scale)
        if s < _SERIES_SWITCH:
            value = np.arange(_NEGLIGIBLE * s + 4) + 0.5
            return float(2 * np.sum(value**2 * self.pmf(value)))
        q = np.exp(-2 * np.pi**2 * s * np.arange(1, _images(s) + 1))
        # cosh(z)/sinh(z)^2 = 2q (1 + q^2)/(1 - q^2)^2 with q = exp(-z).
        images = np.sum(2 * q * (1 + q**2) / (1 - q**2) ** 2)
        return float((np.pi * s) ** 2 * (1 / 3 + 4 * images) + 1 / 12)

    def _draw_doubled(self, source: Source) -> int:
        rate_p, rate_q = self.scale.denominator, self.scale.numerator
        # Invariant: rejected values leave no trace; m is kept with probability sigma_m sigma_(m+1).
        while True:
            m = coins.geometric(rate_p, rate_q, source)
            if coins.sigmoid(m * rate_p, rate_q, source) and coins.sigmoid((m + 1) * rate_p, rate_q, source):
                return 2 * m + 1 if source.bits(1) else -2 * m - 1

    def _log_pmf(self, v: Floats) -> Floats:
        rate = self.decay_rate
        y = rate * (np.abs(v) - 0.5)
        return math.log(-math.expm1(-rate)) - y - np.log1p(np.exp(-y)) - np.log1p(np.exp(-y - rate))

    def _log_lower(self, v: Floats) -> Floats:
        y = self.decay_rate * (-v - 0.5)
        return -y - np.log1p(np.exp(-y))

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        series = self._by_geometrics if float(self.scale) < _SERIES_SWITCH else self._by_images
        return series(t)

    def _by_images(self, t: NDArray[Any]) -> NDArray[Any]:
        r"""Poisson summation of h, the continuous law's characteristic function times that of the rounding.

        .. math:: h(t) = \frac{\pi s t}{\sinh \pi s t} \cdot \frac{\sin(t/2)}{t/2}, \qquad
                  \sum_k (-1)^k h(t + 2\pi k) = \sum_k \frac{2\pi s \sin(t/2)}{\sinh(\pi s (t + 2\pi k))}
        """
        s = float(self.scale)
        safe = np.where(t == 0, 1, t)
        total = np.where(t == 0, 1, 2 * np.sin(safe / 2) * np.pi * s * _csch(np.pi * s * safe))
        for k in range(1, _images(s) + 1):
            turn = 2 * np.pi * k
            pair = _csch(np.pi * s * (t + turn)) + _csch(np.pi * s * (t - turn))
            total = total + 2 * np.sin(t / 2) * np.pi * s * pair
        return total

    def _by_geometrics(self, t: NDArray[Any]) -> NDArray[Any]:
        r"""The pmf beyond m = 0 as an alternating sum of geometrics, each summed in closed form.

        .. math:: \Pr[N = m + \tfrac12] = \sum_{j \ge 1} (-1)^{j+1} (1 - r^j) r^{jm}, \qquad m \ge 1
        """
        rate = self.decay_rate
        total = 2 * self.pmf(0.5) * np.cos(t / 2)
        for j in range(1, int(_NEGLIGIBLE / rate) + 3):
            y = j * rate
            # Both directions of t; their sum is real for real t.
            ahead = np.exp(-y + 1.5j * t) / -np.expm1(-y + 1j * t)
            back = np.exp(-y - 1.5j * t) / -np.expm1(-y - 1j * t)
            both = ahead + back if np.iscomplexobj(t) else 2 * ahead.real
            total = total - (-1) ** j * -np.expm1(-y) * both
        return np.asarray(total)


def _images(s: float) -> int:
    """How many images matter on each side: at abs(t) = pi the k-th is exp(-2 pi^2 s (k - 1)) of the first."""
    return int(_NEGLIGIBLE / (2 * np.pi**2 * s)) + 2


def _csch(z: NDArray[Any]) -> NDArray[Any]:
    """1/sinh(z), z not 0, without overflow."""
    side = np.where(z.real < 0, -1.0, 1.0)
    mirrored = side * z
    return np.asarray(side * 2 * np.exp(-mirrored) / -np.expm1(-2 * mirrored))
