"""Cells of every kind at the ends of what they allow, and the doubles at which expressions may go wrong."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privatest.engines.records import index_score
from privatest.scores import BoundedCells, Cells, DyadicCells, EdgeCells, IntegerCells, LabelCells, Score

__all__ = ["EXTREMES", "TINY", "doubles", "scores"]

TINY = 5e-324
LARGEST = 1.7976931348623157e308


EXTREMES: dict[str, Cells] = {
    "dyadic, scaled down": DyadicCells(-3, -5, 11),
    "dyadic, from zero": DyadicCells(-20, 0, 7),
    "dyadic, up to zero": DyadicCells(-2, -9, 10),
    "dyadic, scaled far down": DyadicCells(-1000, -2, 5),
    "dyadic, edges beyond all numbers": DyadicCells(-1022, -9, 19),
    "dyadic, scaled far up": DyadicCells(1020, -3, 7),
    "dyadic, one cell": DyadicCells(2, 3, 1),
    "dyadic, two cells": DyadicCells(2, -1, 2),
    "dyadic, supported": DyadicCells(-4, -3, 9, -20.5, 40.25),
    "dyadic, supported from zero": DyadicCells(-4, 0, 9, 0.0, math.inf),
    "dyadic, supported outside its cells": DyadicCells(3, 0, 9, 7.5, 8.0),
    "dyadic, many cells": DyadicCells(6, -1000, 2000),
    "dyadic, far from zero": DyadicCells(2, 2**49 - 9, 9),
    "dyadic, further from zero": DyadicCells(2, -(2**49), 9),
    "dyadic, beyond the far": DyadicCells(0, 0, 5, 2.0**49, math.inf),
    "dyadic, almost beyond": DyadicCells(0, 2**48, 5, 2.0**49 - 1, 2.0**52),
    "dyadic, scaled down by as much as stages allow": DyadicCells(-900, -5, 11),
    "bounded": BoundedCells(0.0, 1.0, 5),
    "bounded, large scale": BoundedCells(0.0, 3.0 * 2**60, 6),
    "bounded, even scale": BoundedCells(0.0, 6.0, 3),
    "bounded, small scale": BoundedCells(0.0, 1e-300, 4),
    "bounded, off centre": BoundedCells(-1234.5, 0.37, 7),
    "bounded, supported": BoundedCells(0.5, 4.0, 5, 0.0, 100.0),
    "bounded, supported far right": BoundedCells(0.5, 4.0, 5, 1e20, math.inf),
    "integers, few": IntegerCells(np.array([0, 3, 4]), 9),
    "integers, many": IntegerCells(np.array([-4, *range(0, 40)]), 2**53 + 4),
    "integers with gaps": IntegerCells(np.array([k * k for k in range(30)]), 2**62),
    "integers, huge": IntegerCells(np.array([-(2**62), -(2**54), 0, 2**54]), 2**63 - 1),
    "labels": LabelCells((0, 1, 2.5, -1e15, 7, "text")),
    "labels in a row": LabelCells(tuple(range(-7, 60))),
    "labels, many": LabelCells(tuple(k * 0.1 for k in range(-20, 40))),
    "edges": EdgeCells((-1.5, 0.0, 0.1, 2.0, 1e10)),
    "edges, supported": EdgeCells(tuple(float(k) for k in range(1, 30)), 0.0, 30.0),
}


def doubles(cells: Cells) -> list[float | None]:
    """NULL, NaN, infinities, the ends of the doubles, and the neighbours of every edge."""
    plain = [
        0.0,
        -0.0,
        0.1,
        0.5,
        1.0,
        2.5,
        7.0,
        -7.5,
        1e10,
        2.0**53,
        2.0**53 + 2,
        -(2.0**53),
        2.0**62,
        2.0**63,
        -(2.0**63),
    ]
    ends = [TINY, 2 * TINY, 3 * TINY, 2.0**-1022, 2.0**-1000, 1e-300, 1e300, 1e17, LARGEST, 2.0**1023]
    with np.errstate(over="ignore"):
        edges = [float(edge) for edge in getattr(cells, "edges", [])]
    edges += [float(first) for first in getattr(cells, "first", [])] if isinstance(cells, IntegerCells) else []
    edges += [float(end) for end in (getattr(cells, "low", 0.0), getattr(cells, "high", 0.0)) if math.isfinite(end)]
    edges += [float(label) for label in getattr(cells, "labels", ()) if not isinstance(label, str)]
    if isinstance(cells, DyadicCells) and cells.exponent < 0:
        edges += [sign * 2.0 ** (k - 1075 - cells.exponent) for sign in (-1, 1) for k in (0, 1)]
    if isinstance(cells, DyadicCells):
        # Where Spark's stand-ins are.
        powers = [math.ldexp(1.0, min(k - cells.exponent, 1023)) for k in (48, 49, 50, 51, 52, 53)]
        edges += [sign * power for sign in (-1, 1) for power in powers]
    if isinstance(cells, BoundedCells):
        edges += [cells.centre + sign * math.ldexp(cells.scale, k) for sign in (-1, 1) for k in (30, 40, 52, 54)]
        edges += [sign * cells.scale * 2.0**-1070 * k for sign in (-1, 1) for k in (1 / 32, 1 / 16)]
    numbers = [*plain, *ends, *(-end for end in ends), *edges]
    near = [math.nextafter(x, way) for x in edges if math.isfinite(x) for way in (-math.inf, math.inf)]
    finite = [x for x in [*numbers, *near] if math.isfinite(x)]
    return [None, math.nan, math.inf, -math.inf, *dict.fromkeys(finite), -0.0]


def scores(cells: Cells) -> list[Score]:
    """The cell itself; tables that tell all cells apart, have few steps, fill 62 bits, rise and fall linearly."""
    rng = np.random.default_rng(cells.count)
    index = index_score(cells)
    shuffled = rng.permutation(cells.count + 1) - 7
    coarse = np.append(np.arange(cells.count) // max(cells.count // 3, 1), -5)
    huge = rng.integers(-(2**61), 2**61, cells.count + 1)
    ramp = np.clip(np.arange(cells.count), cells.count // 4, max(3 * cells.count // 4, 1))
    odd = int(np.median(ramp))
    lines = [np.append(ramp, odd), np.append(3 - ramp, 3 - odd)]
    return [index, *(Score(cells, table, *_laws(index)) for table in (shuffled, coarse, huge, *lines))]


def _laws(score: Score) -> tuple[Any, ...]:
    return score.origin, score.step, score.support.copy(), score.null_law.copy(), score.alternative_law.copy()
