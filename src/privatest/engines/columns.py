"""A run of records in memory: what each kind of it must say about itself, and all that follows from that."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from privatest.engines.protocol import NO_ENDS, Promise
from privatest.scores import Cells, Score

__all__ = ["CHUNK", "LARGE", "Column", "whole_blocks"]

Indices = npt.NDArray[np.intp]
Integers = npt.NDArray[np.int64]

# Records at a time: few enough for the cache, many enough that threads seldom wait for the interpreter.
CHUNK = 1 << 18
# Scores from here on are summed as Python integers: a chunk of them may not fit 64 bits.
LARGE = (1 << 62) // CHUNK


class Column(ABC):
    """Records in memory. Their cells are enough to say everything else."""

    promise = Promise()

    @abstractmethod
    def count(self) -> int:
        """How many records there are."""

    @abstractmethod
    def check(self, score: Score) -> None:
        """Raise InvalidData if the column's type (never a record's value) cannot fit the score."""

    @abstractmethod
    def index(self, cells: Cells) -> Indices:
        """The cell of each record."""

    @abstractmethod
    def part(self, first: int, last: int) -> Column:
        """Records first .. last - 1, without a copy."""

    def total(self, score: Score) -> int:
        """The exact sum of all records' scores."""
        parts = (self.part(first, first + CHUNK) for first in range(0, self.count(), CHUNK))
        if max(abs(score.low), abs(score.high)) >= LARGE:
            return sum(sum(score.table[part.index(score.cells)].tolist()) for part in parts)
        return sum(int(score.table[part.index(score.cells)].sum()) for part in parts)

    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:  # noqa: ARG002 - nothing is tied
        """The score of each record, in order."""
        return score.table[self.index(score.cells)]

    def check_ends(self, ends: range) -> None:  # noqa: B027 - for columns there is nothing to check
        """Records lie in an order of their own: nothing is tied."""

    def block_totals(self, score: Score, block: int, start: int = 0) -> list[int]:
        """Totals of consecutive blocks from record ``start`` on; an incomplete last block is not used."""
        count = max(self.count() - start, 0) // block
        # Whole blocks at a time: the scores of the others need not be kept.
        step = max(CHUNK // block, 1)
        totals: list[int] = []
        for first in range(0, count, step):
            last = min(first + step, count)
            totals += whole_blocks(self.part(start + first * block, start + last * block).series(score), block)
        return totals

    def histogram(self, cells: Cells) -> list[int]:
        """How many records each cell has, the odd cell last."""
        counts = np.zeros(cells.count + 1, dtype=np.int64)
        for first in range(0, self.count(), CHUNK):
            counts += np.bincount(self.part(first, first + CHUNK).index(cells), minlength=cells.count + 1)
        return [int(count) for count in counts]


def whole_blocks(scores: Integers, block: int) -> list[int]:
    """Sums of consecutive runs of ``block`` scores; what is left over is not used."""
    whole = len(scores) // block * block
    return [int(total) for total in scores[:whole].reshape(-1, block).sum(axis=1)]
