"""Records in a NumPy array of numbers: chunks that stay in cache, two passes of arithmetic, one lookup."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from privatest.engines.columns import CHUNK, Column
from privatest.engines.fit import check_numbers
from privatest.engines.single import Integers, single_scores
from privatest.scores import BoundedCells, Cells, DyadicCells, Score

__all__ = ["ArrayRecords", "summer"]

# Below this many records the threads cost more than they save.
FEW = 1 << 20

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class ArrayRecords(Column):
    """A one-dimensional array of booleans, integers or floats."""

    values: npt.NDArray[Any]

    def count(self) -> int:
        return len(self.values)

    def check(self, score: Score) -> None:
        check_numbers(score, str(self.values.dtype))

    def index(self, cells: Cells) -> npt.NDArray[np.intp]:
        return cells.index(as_floats(self.values))

    def part(self, first: int, last: int) -> ArrayRecords:
        return ArrayRecords(self.values[first:last])

    def total(self, score: Score) -> int:
        if len(self.values) <= FEW:
            return _sum_chunks(self.values, score)
        return sum(_in_threads(lambda a, b: _sum_chunks(self.values[a:b], score), len(self.values)))

    def series(self, score: Score) -> Integers:
        scores = np.empty(len(self.values), dtype=np.int64)

        def fill(begin: int, end: int) -> None:
            write = single_scores(score)
            for first in range(begin, end, CHUNK):
                last = min(first + CHUNK, end)
                write(as_floats(self.values[first:last]), scores[first:last])

        if len(scores) <= FEW:
            fill(0, len(scores))
        else:
            _in_threads(fill, len(scores))
        return scores


def _in_threads(work: Callable[[int, int], Result], count: int) -> list[Result]:
    """The work on as many equal ranges of 0 .. count - 1 as there are processors."""
    threads = min(os.cpu_count() or 1, 16)
    bounds = np.linspace(0, count, threads + 1).astype(np.int64).tolist()
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda ends: work(*ends), itertools.pairwise(bounds)))


def _sum_chunks(values: npt.NDArray[Any], score: Score) -> int:
    return _add_up(values, _kernel(score))


def _add_up(values: npt.NDArray[Any], kernel: Callable[[npt.NDArray[np.float64]], int]) -> int:
    """Exact: a chunk's total of 64-bit scores is summed in Python integers beyond the chunk."""
    return sum(kernel(as_floats(values[start : start + CHUNK])) for start in range(0, len(values), CHUNK))


def summer(score: Score) -> Callable[[Column], int]:
    """The totals of columns one after the other, in one thread: arrays share the working memory of one kernel."""
    kernel = _kernel(score)

    def add_up(records: Column) -> int:
        return _add_up(records.values, kernel) if isinstance(records, ArrayRecords) else records.total(score)

    return add_up


def as_floats(chunk: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The chunk as float64; integers beyond 2^53 are rounded, as in every engine."""
    with np.errstate(all="ignore"):  # a number too long for a double must not be heard of
        return np.ascontiguousarray(chunk, dtype=np.float64)


def _kernel(score: Score) -> Callable[[npt.NDArray[np.float64]], int]:
    table = score.table
    # A chunk's sum in doubles is exact while scores stay under 2^37; larger ones are summed as Python integers.
    if max(abs(score.low), abs(score.high)) >= 1 << 37:
        return lambda chunk: sum(table[score.cells.index(chunk)].tolist())
    unbounded = isinstance(score.cells, DyadicCells | BoundedCells) and not (
        np.isfinite(score.cells.low) or np.isfinite(score.cells.high)
    )
    if unbounded and isinstance(score.cells, DyadicCells) and abs(score.cells.first) < 1 << 36:
        return _dyadic_kernel(score, score.cells)
    if unbounded and isinstance(score.cells, BoundedCells):
        return _bounded_kernel(score, score.cells)
    return lambda chunk: int(table[score.cells.index(chunk)].sum())


def _dyadic_kernel(score: Score, cells: DyadicCells) -> Callable[[npt.NDArray[np.float64]], int]:
    """The same cells as ``cells.index``, in place; a chunk with anything not finite takes the general path."""
    if score.line is not None:
        return _line_kernel(score, cells, *score.line)
    table = _float_table(score)
    first, last = float(cells.first), float(cells.first + cells.size - 1)
    work, short, found = np.empty(CHUNK), np.empty(CHUNK, dtype=np.int32), np.empty(CHUNK, dtype=np.intp)

    def kernel(chunk: npt.NDArray[np.float64]) -> int:
        size = len(chunk)
        buffer = work[:size]
        with np.errstate(all="ignore"):
            np.multiply(chunk, cells.factor, out=buffer)
            if not np.isfinite(np.add.reduce(buffer)):
                return int(score.table[cells.index(chunk)].sum())
            np.floor(buffer, out=buffer)
            np.clip(buffer, first, last, out=buffer)
            np.subtract(buffer, first, out=buffer)
        # By way of 32 bits: processors convert doubles to those in bulk, to 64 bits one by one.
        np.copyto(short[:size], buffer, casting="unsafe")
        np.copyto(found[:size], short[:size])
        return int(table.take(found[:size], out=buffer, mode="clip").sum())

    return kernel


def _line_kernel(score: Score, cells: DyadicCells, sign: int, offset: int) -> Callable[[npt.NDArray[np.float64]], int]:
    """The ratio is linear in x, so the score is the clipped index itself and no lookup is needed."""
    # score = clip(sign * index + offset, low, high): the indices at which the clipping starts
    ends = sorted(sign * (bound - offset) for bound in (score.low, score.high))
    first, last = (float(cells.first + min(max(end, 0), cells.size - 1)) for end in ends)
    work = np.empty(CHUNK)

    def kernel(chunk: npt.NDArray[np.float64]) -> int:
        buffer = work[: len(chunk)]
        with np.errstate(all="ignore"):
            np.multiply(chunk, cells.factor, out=buffer)
            if not np.isfinite(np.add.reduce(buffer)):
                return int(score.table[cells.index(chunk)].sum())
            np.floor(buffer, out=buffer)
            np.clip(buffer, first, last, out=buffer)
        # Exact: integers of at most 2^53 / 2^16 in size, 2^16 of them.
        return sign * (int(np.add.reduce(buffer)) - cells.first * len(chunk)) + offset * len(chunk)

    return kernel


def _float_table(score: Score) -> npt.NDArray[np.float64]:
    """The table as doubles, in which a chunk's sum is exact while scores stay under 2^37."""
    return score.table.astype(np.float64)


def _bounded_kernel(score: Score, cells: BoundedCells) -> Callable[[npt.NDArray[np.float64]], int]:
    """The same arithmetic as ``cells.index``, in place."""
    # Without the odd cell: far out t rounds to 1, one cell beyond the last, and is clipped to it.
    table = _float_table(score)[:-1]
    half = float(1 << cells.exponent)
    work, sizes = np.empty(CHUNK), np.empty(CHUNK)
    short, found = np.empty(CHUNK, dtype=np.int32), np.empty(CHUNK, dtype=np.intp)

    def kernel(chunk: npt.NDArray[np.float64]) -> int:
        away, size, index = work[: len(chunk)], sizes[: len(chunk)], found[: len(chunk)]
        with np.errstate(all="ignore"):
            np.subtract(chunk, cells.centre, out=away)
            np.abs(away, out=size)
            if not np.isfinite(np.add.reduce(size)):
                return int(score.table[cells.index(chunk)].sum())
            np.add(size, cells.scale, out=size)
            np.divide(away, size, out=away)
            np.multiply(away, cells.factor, out=away)
            np.floor(away, out=away)
            np.add(away, half, out=away)
        np.copyto(short[: len(chunk)], away, casting="unsafe")
        np.copyto(index, short[: len(chunk)])
        return int(table.take(index, out=away, mode="clip").sum())

    return kernel
