"""What every engine offers: sums of scores, whole or per block. Engines never see epsilon or randomness."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from privatest.errors import InvalidData
from privatest.scores import Cells, Score

__all__ = ["OneReading", "Records", "Seen", "counter", "indexer"]

Integers = npt.NDArray[np.int64]


@runtime_checkable
class Records(Protocol):
    """One column of records, wherever it lies, its rows cut to the most that one unit may contribute.

    Guarantees: the same records give the same integers on every engine (docs/engines.md has the rules); all of them
    are raw and must not leave the process except through a private mechanism.
    """

    def count(self) -> int:
        """How many records there are (with a unit: after the cut)."""

    def check(self, score: Score) -> None:
        """Raise InvalidData if the column's type (never a record's value) cannot fit the score."""

    def total(self, score: Score) -> int:
        """The exact sum of all records' scores."""

    def block_totals(self, score: Score, block: int, start: int = 0) -> list[int]:
        """Totals of consecutive blocks from record ``start`` on; an incomplete last block is not used."""

    def series(self, score: Score) -> Integers:
        """The score of each record, in order."""

    def histogram(self, cells: Cells) -> list[int]:
        """How many records each cell has, the odd cell last."""


@dataclass(eq=False)
class Seen:
    """What the last reading of a source found.

    Attributes:
        checked: a score that was checked since, and that no reading has summed yet.
        count: how many records there are.
        by: what they were summed or counted by.
        found: the sum by a score, or the counts of cells.
    """

    checked: Score | None = None
    count: int | None = None
    by: Score | Cells | None = None
    found: Any = None


class OneReading(ABC):
    """Records of a source that may change while it is read: how many there are and what they sum to go together.

    Guarantees: once a score was checked, counting sums it too, and the sum is kept until it is asked for: both are of
    one query, one job or one pass, and rows that arrive between the two questions are in both or in neither. A series
    of another length than the count before it is refused.
    """

    _seen: Seen

    @abstractmethod
    def _fits(self, score: Score) -> None:
        """Raise InvalidData if the column's type cannot fit the score."""

    @abstractmethod
    def _rows(self) -> int:
        """How many records there are, from a reading of its own."""

    @abstractmethod
    def _sum(self, score: Score) -> tuple[int, int]:
        """How many records there are and the sum of their scores, from one reading."""

    @abstractmethod
    def _cells(self, cells: Cells) -> list[int]:
        """How many records each cell has, from one reading."""

    def check(self, score: Score) -> None:
        self._fits(score)
        self._seen.checked = score

    def count(self) -> int:
        seen = self._seen
        if seen.checked is not None:
            _ = self.histogram(seen.checked.cells) if _is_counter(seen.checked) else self.total(seen.checked)
        elif seen.count is None:
            seen.count = self._rows()
        assert seen.count is not None
        return seen.count

    def total(self, score: Score) -> int:
        seen = self._seen
        if seen.by is not score:
            self._fits(score)
            seen.count, seen.found = self._sum(score)
            seen.by = score
        seen.checked = None
        return int(seen.found)

    def histogram(self, cells: Cells) -> list[int]:
        seen = self._seen
        if seen.by is not cells:
            self._fits(counter(cells))
            seen.found = self._cells(cells)
            seen.count, seen.by = sum(seen.found), cells
        seen.checked = None
        return list(seen.found)

    def _known(self) -> int | None:
        """How many records there must be, by the last reading or by the source's structure."""
        return self._seen.count

    def _agree(self, count: int) -> None:
        """Refuse a reading of another number of records than the one that was told."""
        if self._known() not in (None, count):
            raise InvalidData(
                "The data changed while they were read: rows came or went after they were counted. Nothing "
                "was released. Run it again on data that nobody writes to; the same request is not charged twice."
            )


def _is_counter(score: Score) -> bool:
    return bool(np.all(score.table == 1))


def counter(cells: Cells) -> Score:
    """A score of 1 for everything: what a histogram's cells are checked with."""
    return _bare(cells, np.ones(cells.count + 1, dtype=np.int64))


def indexer(cells: Cells) -> Score:
    """The score that is the index of the cell, the odd cell last."""
    return _bare(cells, np.arange(cells.count + 1, dtype=np.int64))


def _bare(cells: Cells, table: Integers) -> Score:
    """Engines look at the cells and the table only; the laws are those of a score nobody asks about."""
    law = np.ones(1)
    return Score(cells, table, Fraction(0), Fraction(1), table[:1].copy(), law, law.copy())
