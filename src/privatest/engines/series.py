"""Scores of an ordered column, record by record or block by block: what change points are found from.

Like the totals, these integers are raw: they must not leave the process except through a private mechanism.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest._validate import positive_integer
from privatest.engines.arrays import ArrayRecords, as_floats
from privatest.engines.protocol import Records
from privatest.engines.sequences import SequenceRecords
from privatest.engines.sources import open_source
from privatest.errors import InvalidData, InvalidInput
from privatest.scores import DyadicCells, LabelCells, Score

__all__ = ["as_records", "block_totals", "score_series"]

Integers = npt.NDArray[np.int64]

CHUNK = 1 << 16
# Below this many records the threads cost more than they save.
FEW = 1 << 18


def score_series(score: Score, source: Any, column: str | None = None) -> Integers:
    """The integer score of each record, in the order of the source.

    Guarantees: an odd record gets the odd score; no sum of any of the scores leaves 64 bits (checked).
    """
    records = as_records(source, column)
    records.check(score)
    score.check_total(max(records.count(), 1))
    return _scores(score, records)


def block_totals(score: Score, source: Any, block: int, column: str | None = None, *, start: int = 0) -> list[int]:
    """Totals of consecutive blocks of ``block`` records, from record ``start`` on; what is left over is not used.

    Guarantees: the same scores as :func:`score_series`, summed exactly (checked against 64 bits).
    """
    block = positive_integer(block=block)
    if start < 0:
        raise InvalidInput(f"start={start} must be at least 0.")
    records = as_records(source, column)
    records.check(score)
    score.check_total(block)
    count = max(records.count() - start, 0) // block
    # Whole blocks at a time: the scores of the others need not be kept.
    step = max(CHUNK // block, 1)
    totals: list[int] = []
    for first in range(0, count, step):
        last = min(first + step, count)
        part = _part(records, start + first * block, start + last * block)
        totals += _scores(score, part).reshape(last - first, block).sum(axis=1).tolist()
    return totals


def as_records(source: Any, column: str | None = None) -> Records:
    """The records of a source whose order is that of time; records opened before are taken as they are."""
    if isinstance(source, (ArrayRecords, SequenceRecords)):
        return source
    if isinstance(source, (set, frozenset)):
        raise InvalidData("The data are a set, which has no order. Pass a list, an array or a column in order of time.")
    records = open_source(source, column=column)
    if not isinstance(records, (ArrayRecords, SequenceRecords)):
        raise InvalidData("Change points need the records in memory and in order. Pass an array, a list or a column.")
    return records


def _part(records: Records, first: int, last: int) -> Records:
    if isinstance(records, ArrayRecords):
        return ArrayRecords(records.values[first:last])
    assert isinstance(records, SequenceRecords)
    return SequenceRecords(records.values[first:last], records.text)


def _scores(score: Score, records: Records) -> Integers:
    if isinstance(records, SequenceRecords):
        cells = score.cells
        if isinstance(cells, LabelCells):
            found = (cells.index_of(record) for record in records.values)
            return score.table[np.fromiter(found, dtype=np.intp, count=len(records.values))]
        numbers = np.fromiter(records._numbers(), dtype=np.float64, count=len(records.values))
        return _scores(score, ArrayRecords(numbers))
    assert isinstance(records, ArrayRecords)
    values = records.values
    scores = np.empty(len(values), dtype=np.int64)

    def fill(bounds: tuple[int, int]) -> None:
        kernel = _kernel(score)
        for first in range(*bounds, CHUNK):
            last = min(first + CHUNK, bounds[1])
            kernel(as_floats(values[first:last]), scores[first:last])

    if len(values) <= FEW:
        fill((0, len(values)))
        return scores
    threads = min(os.cpu_count() or 1, 16)
    ends = np.linspace(0, len(values), threads + 1).astype(np.int64).tolist()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(fill, itertools.pairwise(ends)))
    return scores


def _kernel(score: Score) -> Callable[[npt.NDArray[np.float64], Integers], None]:
    """Writes the scores of a chunk of numbers; the fast path has the cells of ``cells.index``, computed in place."""
    cells, table = score.cells, score.table
    short = isinstance(cells, DyadicCells) and max(abs(cells.first), abs(cells.first + cells.size)) < 1 << 30
    if not isinstance(cells, DyadicCells) or not short or np.isfinite([cells.low, cells.high]).any():

        def plain(chunk: npt.NDArray[np.float64], out: Integers) -> None:
            np.take(table, cells.index(chunk), out=out)

        return plain
    first, last = float(cells.first), float(cells.first + cells.size - 1)
    buffer, narrow, place = np.empty(CHUNK), np.empty(CHUNK, dtype=np.int32), np.empty(CHUNK, dtype=np.intp)

    def dyadic(chunk: npt.NDArray[np.float64], out: Integers) -> None:
        work, size = buffer[: len(chunk)], len(chunk)
        with np.errstate(all="ignore"):
            np.multiply(chunk, cells.factor, out=work)
            if not np.isfinite(np.add.reduce(work)):  # NaN, infinities, or an overflow: the general path
                np.take(table, cells.index(chunk), out=out)
                return
            np.floor(work, out=work)
            np.clip(work, first, last, out=work)
            np.subtract(work, first, out=work)
        # By way of 32 bits: processors convert doubles to those in bulk, to 64 bits one by one.
        np.copyto(narrow[:size], work, casting="unsafe")
        np.copyto(place[:size], narrow[:size])
        np.take(table, place[:size], out=out, mode="clip")

    return dyadic
