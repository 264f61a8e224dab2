"""What every engine offers: sums of scores, whole or per block. Engines never see epsilon or randomness."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from privatest.scores import Cells, Score

__all__ = ["Records", "counter", "indexer"]

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
