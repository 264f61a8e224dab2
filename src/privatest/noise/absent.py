"""No noise at all: what the tests that are not private add."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privatest.noise.noise import Floats, Noise
from privatest.noise.randomness import Source

__all__ = ["NoNoise"]


@dataclass(frozen=True)
class NoNoise(Noise):
    """N = 0. Hides nothing: any shift of the total has infinite privacy loss.

    >>> NoNoise().privacy_loss(1)
    inf
    """

    kind: ClassVar[str] = "none"

    @property
    def offset(self) -> Fraction:
        return Fraction(0)

    @property
    def decay_rate(self) -> float:
        return math.inf

    @property
    def variance(self) -> float:
        return 0.0

    def _draw_doubled(self, source: Source) -> int:  # noqa: ARG002 - the signature every noise has
        return 0

    def _log_pmf(self, v: Floats) -> Floats:
        return np.where(v == 0, 0.0, -np.inf)

    def _log_lower(self, v: Floats) -> Floats:
        return np.full_like(v, -np.inf)

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        return np.ones_like(t)

    def _exact_loss(self, shift: int) -> Fraction | None:
        return None if shift else Fraction(0)
