r"""The stair: the noise of the best decision, which releases a level of the total and never the noisy total itself.

Every epsilon-DP test is a mixture of tests that add a two-sided geometric to an integer which one record moves by 1 at
most. Such an integer is the level of the total, the number of whole widths by which it exceeds a cutoff:

.. math:: T = \lceil (S - \kappa)/w \rceil + G, \qquad S + wG > \kappa \iff T \ge 1.

So a decision has the error rates of the noise wG; what may leave is T alone, for S + wG tells S modulo w.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privatest import numbers
from privatest.numbers import Floats
from privatest.privacy import randomness as coins
from privatest.privacy.noise import Noise, positive_within_double, two_sided_characteristic
from privatest.privacy.randomness import Source

__all__ = ["Stair"]


@dataclass(frozen=True)
class Stair(Noise):
    r"""N = width G, G a two-sided geometric: Pr[G = g] = tanh(epsilon/2) e^(-epsilon abs(g)).

    Guarantees: the level of S + N, counted in widths from any public cutoff, is epsilon-DP where S moves by ``width``
    at most. S + N itself is not: ``spacing`` says so, and tests release the level only.
    Reference: Awan and Slavkovic 2018 (their F is the average of these decisions over all cutoffs).

    >>> Stair(Fraction(1, 2), 3).privacy_loss(3), Stair(Fraction(1, 2), 3).spacing
    (0.5, 3)
    """

    epsilon: Fraction
    width: int
    kind: ClassVar[str] = "stair"
    test: ClassVar[str] = "stair"

    @classmethod
    def for_width(cls, epsilon: Fraction, width: Fraction, step: Fraction) -> Self:  # noqa: ARG003 - whatever a step is
        return cls(epsilon, math.ceil(width))

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_within_double(epsilon=self.epsilon))
        object.__setattr__(self, "width", numbers.positive_integer(width=self.width))

    @property
    def plateau(self) -> int:
        return self.width

    @property
    def spacing(self) -> int:
        return self.width

    def coarser(self, spacing: int) -> Stair | None:
        return None if self.width % spacing else Stair(self.epsilon, self.width // spacing)

    @property
    def offset(self) -> Fraction:
        return Fraction(0)

    @property
    def decay_rate(self) -> float:
        return float(self.epsilon / self.width)

    @property
    def variance(self) -> float:
        epsilon = float(self.epsilon)
        return self.width**2 * 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2

    def _draw_doubled(self, source: Source) -> int:
        p, q = self.epsilon.numerator, self.epsilon.denominator
        return 2 * self.width * coins.two_sided_geometric(p, q, source)

    def _log_pmf(self, v: Floats) -> Floats:
        epsilon, g = float(self.epsilon), v / self.width
        return np.where(g == np.floor(g), math.log(math.tanh(epsilon / 2)) - epsilon * np.abs(g), -np.inf)

    def _log_lower(self, v: Floats) -> Floats:
        # Pr[G <= -m] = b^m/(1+b) for m >= 0.
        epsilon, g = float(self.epsilon), np.floor(v / self.width)
        # A quotient just below a whole number may round up to it.
        return epsilon * np.where(v < self.width * g, g - 1, g) - math.log1p(math.exp(-epsilon))

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        return two_sided_characteristic(float(self.epsilon), self.width * t)

    def _exact_loss(self, shift: int) -> Fraction:
        """Of the level, which moves by one for every width that the total moves by, begun ones included."""
        return self.epsilon * -(-shift // self.width)
