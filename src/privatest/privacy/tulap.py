r"""Tulap, the tight noise: no epsilon-DP test on a two-point domain decides better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privatest import _validate
from privatest.privacy import randomness as coins
from privatest.privacy.noise import Noise, positive_within_double, two_sided_characteristic
from privatest.privacy.randomness import Source
from privatest.vectors import Floats

__all__ = ["Tulap"]


@dataclass(frozen=True)
class Tulap(Noise):
    r"""N = width G + U: a two-sided geometric spread evenly over blocks of ``width`` lattice values.

    .. math:: \Pr[G = g] = \tanh(\epsilon/2)\, e^{-\epsilon |g|}, \qquad
              U \sim \mathrm{Unif}\{-\tfrac{w-1}{2}, \dots, \tfrac{w-1}{2}\}

    Guarantees: with b = e^-epsilon and F the cdf, F(x + width) = min(F(x)/b, 1 - b (1 - F(x))) at every
    lattice x: the epsilon-DP constraint is met with equality. Half integers when the width is even.
    Reference: Awan and Slavkovic 2018; Awan and Vadhan 2023.

    >>> Tulap(Fraction(1, 2), 3).privacy_loss(3)
    0.5
    """

    epsilon: Fraction
    width: int
    kind: ClassVar[str] = "tulap"
    test: ClassVar[str] = "tight"

    @classmethod
    def for_width(cls, epsilon: Fraction, width: Fraction, step: Fraction) -> Self:  # noqa: ARG003 - whatever a step is
        return cls(epsilon, math.ceil(width))

    @property
    def plateau(self) -> int:
        return self.width

    def coarser(self, spacing: int) -> Tulap | None:
        return None if self.width % spacing else Tulap(self.epsilon, self.width // spacing)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_within_double(epsilon=self.epsilon))
        object.__setattr__(self, "width", _validate.positive_integer(width=self.width))

    @property
    def offset(self) -> Fraction:
        return Fraction(0) if self.width % 2 else Fraction(1, 2)

    @property
    def decay_rate(self) -> float:
        return float(self.epsilon / self.width)

    @property
    def variance(self) -> float:
        # Var G = 2b/(1-b)^2 = 1/(2 sinh(epsilon/2)^2), Var U = (w^2 - 1)/12.
        epsilon = float(self.epsilon)
        blocks = 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2
        return self.width**2 * blocks + (self.width**2 - 1) / 12

    def _draw_doubled(self, source: Source) -> int:
        w = self.width
        g = coins.two_sided_geometric(self.epsilon.numerator, self.epsilon.denominator, source)
        return 2 * (w * g + source.below(w)) - (w - 1)

    def _log_pmf(self, v: Floats) -> Floats:
        g, _ = self._block(v)
        epsilon = float(self.epsilon)
        return math.log(math.tanh(epsilon / 2)) - math.log(self.width) - epsilon * np.abs(g)

    def _log_lower(self, v: Floats) -> Floats:
        # g <= 0 here: Pr[N <= v] = Pr[G < g] + Pr[G = g] (r+1)/w, and Pr[G < g] = b^(1-g)/(1+b).
        g, r = self._block(v)
        epsilon = float(self.epsilon)
        b = math.exp(-epsilon)
        within = b - math.expm1(-epsilon) * ((r + 1) / self.width)
        return epsilon * g + np.log(within) - math.log1p(b)

    def _block(self, v: Floats) -> tuple[Floats, Floats]:
        """v = width g + (r - (width-1)/2) with 0 <= r < width."""
        w = float(self.width)
        j = v + (w - 1) / 2
        g = np.floor(j / w)
        # A quotient just below a whole number may round up to it.
        g = np.where(j < w * g, g - 1, g)
        return g, np.minimum(np.maximum(j - w * g, 0), w - 1)

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        w = float(self.width)
        blocks = two_sided_characteristic(float(self.epsilon), w * t)
        # Dirichlet kernel of U; 1 at t = 0, and abs(Re t) <= pi keeps other zeros of sin(t/2) away.
        half = np.where(t == 0, 1, t / 2)
        return blocks * np.where(t == 0, 1, np.sin(w * half) / (w * np.sin(half)))

    def hides(self, shift: int) -> bool:
        """Whether moving the total by shift costs epsilon at most, exactly."""
        return self.exact_loss(shift) <= self.epsilon

    def exact_loss(self, shift: int) -> Fraction:
        """As for every noise; always bounded."""
        loss = super().exact_loss(shift)
        assert loss is not None
        return loss

    def _exact_loss(self, shift: int) -> Fraction:
        return self.epsilon * -(-shift // self.width)
