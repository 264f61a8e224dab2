"""Cells for real-valued records: uniform in x where that is enough, else uniform in a bounded transform."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from privatest.pairs import ContinuousPair, Distribution, Reals
from privatest.scores.cells import BoundedCells, DyadicCells

__all__ = ["MOST_CELLS", "cell_masses", "partition"]

Floats = npt.NDArray[np.float64]

MOST_CELLS = 1 << 16
# A table of this many entries stays in the processor's nearest caches.
COMFORTABLE_CELLS = 1 << 13


def partition(
    pair: ContinuousPair, low: float, high: float, step: float, spread: float
) -> tuple[DyadicCells | BoundedCells, Floats]:
    """Cells so fine that the ratio clamped to [low, high] varies little within one, and their inner edges.

    Little: the root mean square of the variation, over both hypotheses, is at most a quarter of ``step``. Where
    that would take more than a comfortable number of cells (a jump of the density inside one), there are as many as
    that and, if need be, more, until it is at most 1/64 of the ratio's standard deviation ``spread``.
    """
    x = pair.landmarks
    with np.errstate(invalid="ignore"):
        ratios = np.clip(pair.ratio(x), low, high)
    known = ~np.isnan(ratios)
    x, ratios = x[known], ratios[known]
    mass = sum(np.maximum(np.diff(d.cdf(x)), 0.0) for d in (pair.null, pair.alternative)) / 2
    jumps = np.abs(np.diff(ratios))
    left, right = _active(x, ratios, step / 2)
    shortest = _shortest(left, right)

    def error(coordinates: Floats, length: float) -> float:
        """Root mean square variation of the ratio within cells of this length."""
        gaps = np.maximum(np.diff(coordinates), 1e-300)
        within = np.minimum(jumps * np.minimum(length / gaps, 1.0), high - low)
        spill = np.maximum(length / gaps, 1.0)  # a jump inside a short gap spoils the whole cell
        share = np.minimum(mass * spill, 1.0)
        return math.sqrt(float(share @ within**2) / 12)

    centre, scale = _middle(pair)
    away = x - centre
    t = away / (scale + np.abs(away))
    found: list[tuple[bool, float, int, DyadicCells | BoundedCells]]
    for most in (COMFORTABLE_CELLS, MOST_CELLS):
        goal = step / 4 if most == COMFORTABLE_CELLS else max(step / 4, spread / 64)
        exponent = min(_finest(lambda e: error(x, math.ldexp(1.0, -e)), right - left, goal, most), shortest)
        uniform = _dyadic(pair, exponent, left, right)
        left_over = error(x, math.ldexp(1.0, -exponent))
        found = [(left_over > goal, left_over if left_over > goal else 0.0, uniform.count, uniform)]
        if found[0][0] or uniform.count > COMFORTABLE_CELLS // 2:
            bits = _finest(lambda e: error(t, math.ldexp(1.0, -e)), 2.0, goal, most)
            bounded = BoundedCells(centre, scale, bits, *pair.support)
            left_over = error(t, math.ldexp(1.0, -bits))
            found.append((left_over > goal, left_over if left_over > goal else 0.0, bounded.count, bounded))
        # One that meets the goal, and then the fewest cells; else the one that comes nearest.
        missed, left_over, _, best = min(found, key=lambda entry: entry[:3])
        if not missed or left_over <= spread / 64:
            break
    return best, best.edges


def _active(x: Floats, ratios: Floats, tolerance: float) -> tuple[float, float]:
    """The interval outside which the clamped ratio stays within ``tolerance`` of its value at the end."""
    from_left = np.flatnonzero(np.abs(ratios - ratios[0]) > tolerance)
    from_right = np.flatnonzero(np.abs(ratios - ratios[-1]) > tolerance)
    left = x[max(from_left[0] - 1, 0)] if len(from_left) else x[0]
    right = x[min(from_right[-1] + 1, len(x) - 1)] if len(from_right) else x[-1]
    return float(left), float(right)


def _shortest(left: float, right: float) -> int:
    """The largest exponent at which all edges between left and right are exact in floating point."""
    return min(50 - math.frexp(max(abs(left), abs(right)))[1], 1000)


def _finest(error: Callable[[int], float], length: float, goal: float, most: int) -> int:
    """The smallest exponent e for which cells of length 2^-e meet the goal, or the largest affordable one."""
    exponent = -math.floor(math.log2(length / 64))
    last = -math.floor(math.log2(length / most)) - 1
    while exponent < last and error(exponent) > goal:
        exponent += 1
    return exponent


def _dyadic(pair: ContinuousPair, exponent: int, left: float, right: float) -> DyadicCells:
    first = math.floor(math.ldexp(left, exponent)) - 1  # one cell for all that lies left of `left`
    last = math.floor(math.ldexp(right, exponent)) + 1
    return DyadicCells(exponent, first, last - first + 1, *pair.support)


def _middle(pair: ContinuousPair) -> tuple[float, float]:
    """A centre and a scale, rounded to short binary numbers so that they print and travel exactly."""
    quartiles = np.concatenate([d.ppf(np.array([0.25, 0.5, 0.75])) for d in (pair.null, pair.alternative)])
    spread = float(quartiles.max() - quartiles.min()) or 1.0
    scale = math.ldexp(1.0, round(math.log2(spread)))
    return round(float(np.median(quartiles)) / scale * 16) * scale / 16, scale


def cell_masses(distribution: Distribution, edges: Floats) -> Floats:
    """Mass of (-inf, e_1), [e_1, e_2), ..., [e_m, inf): differences of the cdf or, on the right, of the sf."""
    assert isinstance(distribution, Reals)
    cdf = np.concatenate([[0.0], distribution.cdf(edges), [1.0]])
    sf = np.concatenate([[1.0], distribution.sf(edges), [0.0]])
    return np.maximum(np.where(cdf[1:] <= 0.5, np.diff(cdf), -np.diff(sf)), 0.0)
