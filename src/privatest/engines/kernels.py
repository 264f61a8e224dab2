"""Scores of a chunk of numbers, in place: a few passes of arithmetic and one lookup, or none where scores are linear.

A kernel has working memory of its own, for one thread and chunks of ``size`` records at most. It says what the cells'
``index`` and the score's table say; a chunk with anything odd in it (not finite, outside the support, no integer where
integers are due) takes that path.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from privatest.engines.columns import CHUNK, LARGE
from privatest.scores import BoundedCells, DyadicCells, IntegerCells, LabelCells, Score
from privatest.scores.cells import is_number

__all__ = ["scores_of", "total_of"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Integers = npt.NDArray[np.int64]
# Where the scores of a chunk are in a table, those beyond its ends meaning the ends; None: not by this quick way.
Places = Callable[[Floats], Indices | None]

# Sums of a chunk's scores below this are exact in doubles.
SMALL = (1 << 53) // CHUNK
# Doubles from here to twice it are the integers: their last bits are the integer, less this one's own bits.
INTEGERS = float(1 << 52)
INTEGER_BITS = int(np.float64(INTEGERS).view(np.int64))
# Integers are looked up where so many of them are between the first and the last.
MOST_INTEGERS = 1 << 16


def total_of(score: Score, size: int = CHUNK) -> Callable[[Floats], int]:
    """The sum of a chunk's scores."""
    table, cells = score.table, score.cells
    if max(abs(score.low), abs(score.high)) >= LARGE:
        return lambda chunk: sum(table[cells.index(chunk)].tolist())
    if score.line is not None and isinstance(cells, DyadicCells) and abs(cells.first) + cells.size < SMALL:
        return _line_total(score, cells, score.line, size)
    quick = _quick(score, size)
    if quick is None:
        return lambda chunk: int(table[cells.index(chunk)].sum())
    (places, entries), scores = quick, np.empty(size, dtype=np.int64)

    def total(chunk: Floats) -> int:
        found = places(chunk)
        if found is None:
            return int(table[cells.index(chunk)].sum())
        return int(entries.take(found, out=scores[: len(chunk)], mode="clip").sum())

    return total


def scores_of(score: Score, size: int = CHUNK) -> Callable[[Floats, Integers], None]:
    """Writes the scores of a chunk one by one, which ordered data need."""
    table, cells = score.table, score.cells
    quick = _quick(score, size)
    if quick is None:
        return lambda chunk, out: _write(table, cells.index(chunk), out)
    places, entries = quick

    def write(chunk: Floats, out: Integers) -> None:
        found = places(chunk)
        if found is None:
            _write(table, cells.index(chunk), out)
        else:
            _write(entries, found, out)

    return write


def _write(table: Integers, places: Indices, out: Integers) -> None:
    table.take(places, out=out, mode="clip")


def _quick(score: Score, size: int) -> tuple[Places, Integers] | None:
    """Places in a table, and the table."""
    cells = score.cells
    if isinstance(cells, DyadicCells) and abs(cells.first) < INTEGERS:
        return _dyadic_places(cells, size), score.table[:-1]
    if isinstance(cells, BoundedCells):
        return _bounded_places(cells, size), score.table[:-1]
    if isinstance(cells, IntegerCells):
        low, high, last = int(cells.first[0]), int(cells.first[-1]), cells.last
    elif isinstance(cells, LabelCells):
        numbers = [int(label) for label in cells.labels if is_number(label) and label == int(label)]
        low, high = (min(numbers), max(numbers)) if numbers else (0, 0)
        last = high
    else:
        return None
    if high - low >= MOST_INTEGERS or max(abs(low), abs(high)) >= 1 << 52:
        return None
    return _whole_places(low, high, last, size), score.of_numbers(np.arange(low - 1, high + 2, dtype=np.float64))


def _whole_places(low: int, high: int, last: int, size: int) -> Places:
    """Places among the integers low - 1 .. high + 1: all below are odd, and all beyond up to ``last`` are alike.

    Beyond ``last`` they are odd. Where ``last`` is ``high`` that is all beyond, which are alike then too.
    """
    first, limit = float(low - 1), float(last) if last > high else np.inf
    work, same = np.empty(size), np.empty(size, dtype=np.bool_)

    def places(chunk: Floats) -> Indices | None:
        cell, whole = work[: len(chunk)], same[: len(chunk)]
        with np.errstate(all="ignore"):
            np.floor(chunk, out=cell)
            np.equal(cell, chunk, out=whole)
            if not (whole.all() and np.maximum.reduce(cell, initial=-np.inf) <= limit):
                return None
            np.clip(cell, first, float(high + 1), out=cell)
            np.add(cell, INTEGERS - first, out=cell)
        return _integers(cell)

    return places


def _dyadic_places(cells: DyadicCells, size: int) -> Places:
    inside = _inside(cells)
    first, last = float(cells.first), float(cells.first + cells.size - 1)
    work = np.empty(size)

    def places(chunk: Floats) -> Indices | None:
        cell = work[: len(chunk)]
        with np.errstate(all="ignore"):
            np.multiply(chunk, cells.factor, out=cell)
            if not inside(chunk, cell):
                return None
            np.floor(cell, out=cell)
            np.clip(cell, first, last, out=cell)
            np.add(cell, INTEGERS - first, out=cell)
        return _integers(cell)

    return places


def _bounded_places(cells: BoundedCells, size: int) -> Places:
    inside = _inside(cells)
    half = float(1 << cells.exponent)
    work, distance = np.empty(size), np.empty(size)

    def places(chunk: Floats) -> Indices | None:
        cell, away = work[: len(chunk)], distance[: len(chunk)]
        with np.errstate(all="ignore"):
            np.subtract(chunk, cells.centre, out=cell)
            np.abs(cell, out=away)
            if not inside(chunk, away):
                return None
            np.add(away, cells.scale, out=away)
            np.divide(cell, away, out=cell)
            np.multiply(cell, cells.factor, out=cell)
            np.floor(cell, out=cell)
            # Far out t rounds to 1, one cell beyond the last.
            np.add(cell, INTEGERS + half, out=cell)
        return _integers(cell)

    return places


def _line_total(score: Score, cells: DyadicCells, line: tuple[int, int], size: int) -> Callable[[Floats], int]:
    """The ratio is linear in x, so the score is the clipped index itself and no lookup is needed."""
    inside, (sign, offset) = _inside(cells), line
    # score = clip(sign * index + offset, low, high): the indices at which the clipping starts
    ends = sorted(sign * (bound - offset) for bound in (score.low, score.high))
    first, last = (float(cells.first + min(max(end, 0), cells.size - 1)) for end in ends)
    work = np.empty(size)

    def total(chunk: Floats) -> int:
        cell = work[: len(chunk)]
        with np.errstate(all="ignore"):
            np.multiply(chunk, cells.factor, out=cell)
            if not inside(chunk, cell):
                return int(score.table[cells.index(chunk)].sum())
            np.floor(cell, out=cell)
            np.clip(cell, first, last, out=cell)
        return sign * (int(np.add.reduce(cell)) - cells.first * len(chunk)) + offset * len(chunk)

    return total


def _inside(cells: DyadicCells | BoundedCells) -> Callable[[Floats, Floats], bool]:
    """Whether all of a chunk is finite and in the support; ``scaled`` is not finite where the chunk is not."""
    low, high = cells.low, cells.high

    def inside(chunk: Floats, scaled: Floats) -> bool:
        return bool(
            np.isfinite(np.add.reduce(scaled))
            and (low == -np.inf or np.minimum.reduce(chunk, initial=np.inf) >= low)
            and (high == np.inf or np.maximum.reduce(chunk, initial=-np.inf) <= high)
        )

    return inside


def _integers(numbers: Floats) -> Indices:
    """What whole numbers in [2^52, 2^53) exceed 2^52 by, written over them: quicker than a conversion."""
    bits = numbers.view(np.int64)
    np.subtract(bits, INTEGER_BITS, out=bits)
    return bits
