"""Records in a NumPy array of numbers, in chunks that stay in cache."""

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
from privatest.engines.kernels import scores_of, total_of
from privatest.engines.protocol import NO_ENDS
from privatest.scores import Cells, Score

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

    def series(self, score: Score, ends: range = NO_ENDS) -> npt.NDArray[np.int64]:  # noqa: ARG002 - nothing is tied
        scores = np.empty(len(self.values), dtype=np.int64)

        def fill(begin: int, end: int) -> None:
            write = scores_of(score, min(end - begin, CHUNK))
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
    return _add_up(values, total_of(score, min(len(values), CHUNK)))


def _add_up(values: npt.NDArray[Any], kernel: Callable[[npt.NDArray[np.float64]], int]) -> int:
    """Exact: the totals of chunks are summed as Python integers."""
    return sum(kernel(as_floats(values[start : start + CHUNK])) for start in range(0, len(values), CHUNK))


def summer(score: Score) -> Callable[[Column], int]:
    """The totals of columns one after the other, in one thread: arrays share the working memory of one kernel."""
    kernel = total_of(score)

    def add_up(records: Column) -> int:
        return _add_up(records.values, kernel) if isinstance(records, ArrayRecords) else records.total(score)

    return add_up


def as_floats(chunk: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The chunk as float64; integers beyond 2^53 are rounded, as in every engine."""
    with np.errstate(all="ignore"):  # a number too long for a double must not be heard of
        return np.ascontiguousarray(chunk, dtype=np.float64)
