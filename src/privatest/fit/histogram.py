"""How many records each symbol has, from any engine that can sum integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from privatest.engines import Records
from privatest.engines.arrays import CHUNK, ArrayRecords, as_floats
from privatest.engines.sequences import SequenceRecords
from privatest.scores import Cells, LabelCells, Score

__all__ = ["histogram"]

Integers = npt.NDArray[np.int64]

# Sums of up to 2^46 keep every engine on its fast path.
PACKED_BITS = 46


def histogram(records: Records, cells: Cells, odd: int) -> Integers:
    """Counts of the symbols; records that make no sense count as symbol ``odd``.

    The counts are raw: they must not leave the process except through a test's noise.
    """
    records.check(_counter(cells, 0, 1))
    if isinstance(records, ArrayRecords):
        counts = np.zeros(cells.count + 1, dtype=np.int64)
        for start in range(0, len(records.values), CHUNK):
            chunk = cells.index(as_floats(records.values[start : start + CHUNK]))
            counts += np.bincount(chunk, minlength=cells.count + 1)
    elif isinstance(records, SequenceRecords) and isinstance(cells, LabelCells):
        found = np.fromiter((cells.index_of(record) for record in records.values), np.int64, records.count())
        counts = np.bincount(found, minlength=cells.count + 1).astype(np.int64)
    else:
        counts = _by_totals(records, cells)
    symbols = counts[:-1].copy()
    symbols[odd] += counts[-1]
    return symbols


def _by_totals(records: Records, cells: Cells) -> Integers:
    """Each sum carries the counts of several cells, as the digits of one number."""
    bits = max(records.count(), 1).bit_length()
    together = max(1, PACKED_BITS // bits)
    counts = []
    for first in range(0, cells.count + 1, together):
        total = records.total(_counter(cells, first, together, bits))
        counts += [total >> (bits * digit) & ((1 << bits) - 1) for digit in range(together)]
    return np.array(counts[: cells.count + 1], dtype=np.int64)


def _counter(cells: Cells, first: int, together: int, bits: int = 1) -> Score:
    """The score 2^(bits i) for cell first + i, 0 for other cells."""
    table = np.zeros(cells.count + 1, dtype=np.int64)
    digits = np.arange(min(together, len(table) - first))
    table[first + digits] = 1 << (bits * digits)
    one = np.ones(1)
    return Score(cells, table, Fraction(0), Fraction(1), np.unique(table)[:1], one, one.copy())
