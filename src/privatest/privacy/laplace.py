"""Laplace noise on the half integers: the noise of ncLLR, decided as the continuous one decides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privatest.numbers import Floats
from privatest.privacy import randomness as coins
from privatest.privacy.noise import HalfIntegerNoise, two_sided_characteristic
from privatest.privacy.randomness import Source

__all__ = ["Laplace"]


@dataclass(frozen=True)
class Laplace(HalfIntegerNoise):
    r"""N = ceil(X) - 1/2 for X continuous Laplace: plus or minus (m + 1/2), m geometric.

    .. math:: \Pr[N = \pm(m + \tfrac12)] = \tfrac12 (1 - r) r^m, \qquad r = e^{-1/scale}

    Guarantees: for every integer s, Pr[s + N > 0] = Pr[s + X > 0] exactly; one step of the total costs
    1/scale of privacy.

    >>> round(float(Laplace(Fraction(2)).sf(-2)), 12) == round(1 - math.exp(-1) / 2, 12)
    True
    """

    kind: ClassVar[str] = "laplace"
    test: ClassVar[str] = "ncllr"

    @classmethod
    def for_width(cls, epsilon: Fraction, width: Fraction, step: Fraction) -> Self:  # noqa: ARG003 - whatever a step is
        return cls(width / epsilon)

    @property
    def variance(self) -> float:
        rate = self.decay_rate
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2 + 0.25

    def _draw_doubled(self, source: Source) -> int:
        # The ratio is exp(-1/scale): numerator and denominator change places.
        m = coins.geometric(self.scale.denominator, self.scale.numerator, source)
        return 2 * m + 1 if source.bits(1) else -2 * m - 1

    def _log_pmf(self, v: Floats) -> Floats:
        rate = self.decay_rate
        return math.log(-math.expm1(-rate) / 2) - rate * (np.abs(v) - 0.5)

    def _log_lower(self, v: Floats) -> Floats:
        return -math.log(2) - self.decay_rate * (-v - 0.5)

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        return two_sided_characteristic(self.decay_rate, t) * np.cos(t / 2)
