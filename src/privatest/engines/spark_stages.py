"""Scores as columns that Spark computes one from another, in steps so small that its compiler inlines them.

A record is first made a number that no later step can fail for: itself where it is near, a stand-in where it is far
away or makes no sense. The rest is arithmetic without branches: a CASE of ranges takes twice as long, since which arm
the next record takes cannot be foreseen. The integers are those of ``expression`` and of NumPy, for every double.

Steps are SQL texts: columns built one by one cost a call to the Java process each.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from privatest.engines.expression import LARGEST
from privatest.engines.spark_language import constant_array
from privatest.scores import BoundedCells, DyadicCells, Score

__all__ = ["score_in_stages"]

# Indices of near records are below 2^NEAR; the stand-in of an odd one is 2^ODD, which a shift by ODD bits tells.
NEAR, ODD = 49, 52
# Exponents at which neither 2^NEAR nor 2^ODD cells leave the range of doubles.
EXPONENTS = range(-900, 901)
# An integer, or 0 where it is negative.
POSITIVE = "(r & ~shiftright(r, 63))"


class _Stages(NamedTuple):
    """Each step makes the columns of these names from those before, the first from the record r."""

    steps: list[dict[str, str]]
    last: str


def score_in_stages(score: Score, rows: Any, others: list[str], functions: Any) -> tuple[Any, Any] | None:
    """Rows with all steps but the last, from the record r, beside the others; and the last, which is the score.

    None where the cells do not suit this. (Spark merges a last step into the one before, unless it is in an aggregate.)
    """
    stages = _stages(score)
    if stages is None:
        return None
    for step in stages.steps:
        rows = rows.selectExpr(*others, *(f"{text} AS {name}" for name, text in step.items()))
    return rows, functions.expr(stages.last)


def _stages(score: Score) -> _Stages | None:
    cells = score.cells
    if isinstance(cells, BoundedCells):
        return _bounded(score, cells)
    if not isinstance(cells, DyadicCells) or cells.exponent not in EXPONENTS:
        return None
    near = math.ldexp(1.0, NEAR - cells.exponent)
    if abs(cells.first) + cells.size > 1 << NEAR or not (cells.low < near and cells.high > -near):
        return None
    return _line(score, cells, *score.line) if score.line is not None else _table(score, cells)


def _line(score: Score, cells: DyadicCells, sign: int, offset: int) -> _Stages:
    """clip(sign * cell + offset, low, high). The stand-in of an odd record has its score."""
    same = cells.first + sign * (score.odd_score - offset)
    start = offset - sign * cells.first - score.low
    steps = [
        _safe(cells, math.ldexp(2 * same + 1, -1 - cells.exponent)),
        {"r": f"{start}L {'+' if sign == 1 else '-'} floor(r * {_double(cells.factor)})"},
        {"r": f"{score.high - score.low}L - {POSITIVE}"},
    ]
    return _Stages(steps, f"{score.high}L - {POSITIVE}")


def _table(score: Score, cells: DyadicCells) -> _Stages:
    """The table's entry at the clipped cell, the next one for the stand-in of an odd record."""
    last = cells.size - 1
    steps = [
        _safe(cells, math.ldexp(1.0, ODD - cells.exponent)),
        {"r": f"floor(r * {_double(cells.factor)}) - ({cells.first}L)"},
        {"odd": f"shiftright(r + {1 << NEAR + 1}L, {ODD})", "r": f"{last}L - {POSITIVE}"},
        {"r": f"{last}L - {POSITIVE} + odd"},
    ]
    return _Stages(steps, _entry(score))


def _bounded(score: Score, cells: BoundedCells) -> _Stages | None:
    """As ``BoundedCells.index``: t is just below 1 for records far away, 1 for odd ones, a cell further on."""
    reach = cells.scale * 2.0**40
    if not (max(reach, abs(cells.centre)) < 2.0**900 and reach > max(8 * math.ulp(cells.centre), 2.0**-900)):
        return None
    away = f"(r - {_double(cells.centre)})" if cells.centre else "r"
    close, sane = f"abs({away}) <= {_double(reach)}", _inside(cells, LARGEST)
    if math.isfinite(cells.low) or math.isfinite(cells.high):
        close = f"{sane} AND {close}"
    far = f"if({sane}, signum({away}) * {_double(reach)}, {_double(cells.scale * 2.0**60)})"
    share = f"r / ({_double(cells.scale)} + abs(r))"
    steps = [
        {"r": f"if({close}, {away}, {far})"},
        {"r": f"floor({share} * {_double(cells.factor)}) + {1 << cells.exponent}L"},
    ]
    return _Stages(steps, _entry(score))


def _safe(cells: DyadicCells, odd: float) -> dict[str, str]:
    """Records at most 2^NEAR cells from 0, and stand-ins for the others."""
    most = math.ldexp(1.0, NEAR - cells.exponent)
    rest = _double(odd)
    if cells.low < -most or cells.high > most:
        rest = f"if({_inside(cells, LARGEST)}, signum(r) * {_double(most)}, {rest})"
    return {"r": f"if({_inside(cells, most)}, r, {rest})"}


def _inside(cells: DyadicCells | BoundedCells, most: float) -> str:
    """Whether a record is in the support and at most so large; not true for NULL and NaN, which Spark puts last."""
    if cells.low <= -most and cells.high >= most:
        return f"abs(r) <= {_double(most)}"
    return f"r >= {_double(max(cells.low, -most))} AND r <= {_double(min(cells.high, most))}"


def _entry(score: Score) -> str:
    return f"get({constant_array(score.table.tolist())}, r)"


def _double(value: float) -> str:
    """The number to the bit."""
    return f"({np.format_float_scientific(value, unique=True)}D)"
