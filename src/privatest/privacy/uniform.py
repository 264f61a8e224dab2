"""Uniform noise: the canonical noise of stability in total variation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privatest import numbers
from privatest.numbers import Floats
from privatest.privacy.noise import Noise
from privatest.privacy.notions import Notion, Tv
from privatest.privacy.randomness import Source

__all__ = ["Uniform"]


@dataclass(frozen=True)
class Uniform(Noise):
    """N uniform on ``points`` consecutive lattice values centred at 0.

    Guarantees: totals d apart have noisy totals at a total variation of exactly d/points. Half integers when the number
    of points is even.

    >>> Uniform(10).guarantee(1)
    tv(0.1)
    """

    points: int
    kind: ClassVar[str] = "uniform"
    grain: ClassVar[int] = 8  # points are a whole number, at most 1/8 of a width more than the notion asks for

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", numbers.positive_integer(points=self.points))

    @property
    def plateau(self) -> int:
        return self.points

    def coarser(self, spacing: int) -> Uniform | None:
        return None if self.points % spacing else Uniform(self.points // spacing)

    @property
    def offset(self) -> Fraction:
        return Fraction(0) if self.points % 2 else Fraction(1, 2)

    @property
    def decay_rate(self) -> float:
        return math.inf

    @property
    def variance(self) -> float:
        return (self.points**2 - 1) / 12

    def reach(self, nats: float) -> float:  # noqa: ARG002 - the same for all
        return self.points / 2

    def exponent(self, x: float) -> float:  # noqa: ARG002 - nothing is exponentiated
        return 0.0

    def drift(self, theta: float) -> float:
        """Mean of the law tilted by e^(theta N)."""
        m = float(self.points)
        if theta * m < 1e-3:
            return theta * self.variance
        return 0.5 * (m / math.tanh(m * theta / 2) - 1 / math.tanh(theta / 2))

    def guarantee(self, shift: int) -> Notion | None:
        return Tv(Fraction(abs(shift), self.points)) if 0 < abs(shift) < self.points else None

    def scattered(self, rows: int) -> Notion | None:
        """Total variations add up, whatever counts they are of."""
        return self.guarantee(rows)

    def _draw_doubled(self, source: Source) -> int:
        return 2 * source.below(self.points) - (self.points - 1)

    def _log_pmf(self, v: Floats) -> Floats:
        return np.where(np.abs(v) <= (self.points - 1) / 2, -math.log(self.points), -np.inf)

    def _log_lower(self, v: Floats) -> Floats:
        return np.log(np.maximum(v + (self.points + 1) / 2, 0.0) / self.points)

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        m = float(self.points)
        half = np.where(t == 0, 1, t / 2)
        return np.where(t == 0, 1, np.sin(m * half) / (m * np.sin(half)))

    def _exact_loss(self, shift: int) -> Fraction | None:
        return None if shift else Fraction(0)
