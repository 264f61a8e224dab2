"""Densities made of two others, piece by piece: P~ = min{P, c Q}, or what P has above c Q.

On each interval the density is a P + b Q with constants a and b: the cores and tails of the decomposition
are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.pairs.distribution import Floats
from privatest.pairs.reals import Reals

__all__ = ["Piece", "Splice"]


@dataclass(frozen=True)
class Piece:
    """On (lower, upper) the density is ``of_first`` times the first plus ``of_second`` times the second."""

    lower: float
    upper: float
    of_first: float
    of_second: float


class Splice(Reals):
    """Piecewise linear combination of two densities; pieces from left to right, zero between them.

    Guarantees: the masses of the pieces sum to 1 (they are normalised by what they do sum to, which the
    caller has made 1 but for rounding).
    """

    def __init__(self, first: Reals, second: Reals, pieces: Sequence[Piece], text: str) -> None:
        self._first, self._second = first, second
        self._pieces = tuple(piece for piece in pieces if piece.upper > piece.lower)
        self._text = text
        self._lower = np.array([piece.lower for piece in self._pieces])
        self._upper = np.array([piece.upper for piece in self._pieces])
        self._a = np.array([piece.of_first for piece in self._pieces])
        self._b = np.array([piece.of_second for piece in self._pieces])
        masses = self._combine(np.arange(len(self._pieces)), self._lower, self._upper)
        total = math.fsum(masses.tolist())
        self._masses = masses / total
        self._log_total = math.log(total)

    @property
    def support(self) -> tuple[float, float]:
        ends = (self._first.support, self._second.support)
        lo, hi = min(end[0] for end in ends), max(end[1] for end in ends)
        return max(lo, float(self._lower[0])), min(hi, float(self._upper[-1]))

    def describe(self) -> str:
        return self._text

    def _combine(self, index: NDArray[np.intp], lower: Floats, upper: Floats) -> Floats:
        """Mass of (lower, upper) inside piece ``index``, before normalisation."""
        a, b = self._a[index], self._b[index]
        upper = np.maximum(upper, lower)
        of_first = np.where(a != 0, a * self._first.mass(lower, upper), 0.0)
        of_second = np.where(b != 0, b * self._second.mass(lower, upper), 0.0)
        return np.asarray(np.maximum(of_first + of_second, 0.0))

    def _find(self, x: Floats) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Which piece each x lies in, and whether in any."""
        index = np.clip(np.searchsorted(self._lower, x, side="right") - 1, 0, None)
        return index, (x >= self._lower[index]) & (x <= self._upper[index])

    def logpdf(self, x: ArrayLike) -> Floats:
        values = np.asarray(x, dtype=float)
        index, inside = self._find(values)
        a, b = self._a[index], self._b[index]
        with np.errstate(all="ignore"):
            log_first = np.log(np.abs(a)) + self._first.logpdf(values)
            log_second = np.log(np.abs(b)) + self._second.logpdf(values)
            top = np.where(a * b < 0, np.where(a > 0, log_first, log_second), np.maximum(log_first, log_second))
            gap = np.where(top == log_first, log_second, log_first) - top
            # sum, or what is left of the positive part when the other is taken away (NaN if less than
            # nothing)
            both = np.where(a * b < 0, np.log(-np.expm1(gap)), np.log1p(np.exp(gap)))
            log = top + np.where(gap == -np.inf, 0.0, both)
        return np.asarray(np.where(inside & ~np.isnan(log), log - self._log_total, -np.inf))

    def cdf(self, x: ArrayLike) -> Floats:
        return self._cumulative(x, upper=False)

    def sf(self, x: ArrayLike) -> Floats:
        return self._cumulative(x, upper=True)

    def _cumulative(self, x: ArrayLike, *, upper: bool) -> Floats:
        values = np.asarray(x, dtype=float)
        flat = values.ravel()
        index = np.searchsorted(self._lower, flat, side="right") - 1
        safe = np.clip(index, 0, None)
        scale = math.exp(-self._log_total)
        if upper:
            after = np.concatenate([np.cumsum(self._masses[::-1])[::-1], [0.0]])
            part = self._combine(safe, np.maximum(flat, self._lower[safe]), self._upper[safe]) * scale
            mass = np.where(index < 0, 1.0, after[safe + 1] + np.where(flat < self._upper[safe], part, 0.0))
        else:
            before = np.concatenate([[0.0], np.cumsum(self._masses)])
            part = self._combine(safe, self._lower[safe], np.minimum(flat, self._upper[safe])) * scale
            mass = np.where(index < 0, 0.0, before[safe] + part)
        mass = np.where(np.isnan(flat), np.nan, np.clip(mass, 0.0, 1.0))
        return np.asarray(mass.reshape(values.shape))

    @cached_property
    def breaks(self) -> Floats:
        points = np.concatenate([self._first.breaks, self._second.breaks])
        _, inside = self._find(points)
        edges = np.concatenate([self._lower, self._upper])
        everything = np.concatenate([points[inside], edges])
        return np.unique(everything[np.isfinite(everything)])
