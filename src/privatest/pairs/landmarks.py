"""Where the log-likelihood ratio does something: extrema, flat stretches, limits at the ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privatest.pairs.distribution import Floats

__all__ = ["Plateaus", "find_plateaus", "limits", "refine_extrema", "subdivide"]

SHORTEST_RUN = 6
"""Consecutive landmarks at one level that make a flat stretch."""


@dataclass(frozen=True)
class Plateaus:
    """Intervals on which L is constant up to rounding (Laplace pairs outside their centres, cores of
    clamped pairs).

    Guarantees: inside them :meth:`apply` gives exactly the level, so that {L > level} does not flicker.
    """

    start: Floats
    end: Floats
    level: Floats

    def __bool__(self) -> bool:
        return self.start.size > 0

    def apply(self, x: Floats, ratio: Floats) -> Floats:
        """``ratio`` with the flat stretches made flat."""
        if not self:
            return ratio
        index = np.clip(np.searchsorted(self.start, x, side="right") - 1, 0, None)
        inside = (x >= self.start[index]) & (x <= self.end[index])
        return np.asarray(np.where(inside, self.level[index], ratio))


def find_plateaus(grid: Floats, ratio: Floats, noise: Floats, support: tuple[float, float]) -> Plateaus:
    """Maximal runs of landmarks that differ by rounding only; outermost runs reach the support's ends."""
    with np.errstate(invalid="ignore"):
        same = np.abs(np.diff(ratio)) <= 2 * (noise[1:] + noise[:-1])
    same &= np.isfinite(ratio[1:]) & np.isfinite(ratio[:-1])
    starts, ends, levels = [], [], []
    edge = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(int)))
    for first, last in zip(edge[::2], edge[1::2], strict=True):  # points first..last share a level
        run = ratio[first : last + 1]
        if last - first + 1 < SHORTEST_RUN:
            continue
        level = float(run[np.argmin(noise[first : last + 1])])
        if np.any(np.abs(run - level) > 4 * (noise[first : last + 1] + 2.3e-16)):
            continue  # a slow drift, not a constant
        starts.append(-np.inf if first == 0 and support[0] == -np.inf else float(grid[first]))
        ends.append(np.inf if last == grid.size - 1 and support[1] == np.inf else float(grid[last]))
        levels.append(level)
    return Plateaus(np.array(starts), np.array(ends), np.array(levels))


def subdivide(points: Floats, parts: int) -> Floats:
    """The points and ``parts - 1`` more between each two."""
    if points.size < 2:
        return points
    fractions = np.arange(parts) / parts
    inner = points[:-1, None] + np.diff(points)[:, None] * fractions
    return np.unique(np.append(inner.ravel(), points[-1]))


def refine_extrema(grid: Floats, ratio: Floats, noise: Floats, function: Callable[[Floats], Floats]) -> Floats:
    """Local extrema of L, all refined at once, so that a thin bump over a level is not missed."""
    finite = np.where(np.isfinite(ratio), ratio, np.nan)
    with np.errstate(invalid="ignore"):
        step = np.diff(finite)
        step[np.abs(step) <= 4 * (noise[1:] + noise[:-1])] = 0.0
        turn = np.sign(step[:-1]) * np.sign(step[1:])
        turns = np.flatnonzero((turn < 0) | ((turn == 0) & (step[:-1] != step[1:]))) + 1
    if turns.size == 0 or turns.size > 500:
        return grid[turns]
    sign = np.where((step[turns - 1] > 0) | (step[turns] < 0), 1.0, -1.0)[:, None]
    low, high = grid[turns - 1], grid[turns + 1]
    fractions = np.linspace(0, 1, 33)
    rows = np.arange(turns.size)
    best = grid[turns]
    for _ in range(12):
        x = low[:, None] + (high - low)[:, None] * fractions
        values = sign * function(x)
        top = np.argmax(np.where(np.isnan(values), -np.inf, values), axis=1)
        best = x[rows, top]
        low, high = x[rows, np.maximum(top - 1, 0)], x[rows, np.minimum(top + 1, 32)]
        if np.all(high - low <= 1e-9 * np.maximum(np.abs(low), np.abs(high))):  # flat at an extremum: no more to see
            break
    return best


def limits(function: Callable[[Floats], tuple[Floats, Floats]], support: tuple[float, float], breaks: Floats) -> Floats:
    """Limits of L at both ends of the support, infinite where it still moves at the last point seen."""
    found: list[float] = []
    centre = float(np.median(breaks))
    for side, end in ((-1, support[0]), (1, support[1])):
        if math.isinf(end):
            scale = max(abs(centre), float(np.ptp(breaks[(breaks > -1e100) & (breaks < 1e100)])) * 1e-3, 1e-300)
            x = centre + side * scale * 2.0 ** np.arange(0, 470)
        else:
            width = max(abs(end - centre), 1e-300)
            x = end - side * width * 2.0 ** -np.arange(1, 900.0)
            x = np.unique(x[(x - end) * side < 0])[::side]
        values, noise = function(x[np.isfinite(x)])
        noise = noise[~np.isnan(values)]
        values = values[~np.isnan(values)]
        if values.size < 3:
            continue
        last, before = values[-1], values[-2]
        if math.isinf(last) or abs(last - before) <= 1e-6 + 2 * noise[-1]:
            sharp = np.flatnonzero(noise <= max(1e-11, float(noise.min())))  # it has settled: read it where it is sharp
            found.append(float(values[sharp[-1]]))
        else:
            found.append(math.copysign(math.inf, last - before))
    return np.array(found)
