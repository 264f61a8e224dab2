"""Records in a list or an object array: each one is read on its own, so no record can change the structure."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest.engines.arrays import ArrayRecords
from privatest.engines.columns import Column
from privatest.engines.fit import check_text
from privatest.scores import Cells, LabelCells, Score

__all__ = ["CodedRecords", "SequenceRecords"]

# The warnings' filters are the process's: two threads that set and restore them at once would leave them wrong.
ONE_AT_A_TIME = threading.RLock()


@dataclass(frozen=True, eq=False)
class SequenceRecords(Column):
    """Python objects of any kind; ``text`` names the column's type when it can hold text only."""

    values: Sequence[Any]
    text: str | None = None

    def count(self) -> int:
        return len(self.values)

    def check(self, score: Score) -> None:
        if self.text is not None:
            check_text(score, self.text)

    def index(self, cells: Cells) -> npt.NDArray[np.intp]:
        if isinstance(cells, LabelCells):
            with _quiet():
                found = (cells.index_of(record) for record in self.values)
                return np.fromiter(found, dtype=np.intp, count=len(self.values))
        return self._floats().index(cells)

    def part(self, first: int, last: int) -> SequenceRecords:
        return SequenceRecords(self.values[first:last], self.text)

    def total(self, score: Score) -> int:
        return super().total(score) if isinstance(score.cells, LabelCells) else self._floats().total(score)

    def _floats(self) -> ArrayRecords:
        return ArrayRecords(np.fromiter(self._numbers(), dtype=np.float64, count=len(self.values)))

    def _numbers(self) -> Iterator[float]:
        with _quiet():
            for record in self.values:
                yield _number(record)


@dataclass(frozen=True, eq=False)
class CodedRecords(Column):
    """Python objects as positions in a list of the few distinct ones; -1 for a missing record."""

    codes: npt.NDArray[np.signedinteger[Any]]
    distinct: Sequence[Any]

    def count(self) -> int:
        return len(self.codes)

    def check(self, score: Score) -> None:
        """Objects fit any score."""

    def index(self, cells: Cells) -> npt.NDArray[np.intp]:
        known = SequenceRecords([*self.distinct, None]).index(cells)
        return known.take(self.codes, mode="wrap")

    def part(self, first: int, last: int) -> CodedRecords:
        return CodedRecords(self.codes[first:last], self.distinct)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings that a record's own code may give: they would tell of one record."""
    with ONE_AT_A_TIME, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _number(record: object) -> float:
    """The record as a float; NaN, that is, odd, for whatever is not a number (numeric text included)."""
    if type(record) is float:
        return record
    try:
        return float(record) if isinstance(record, (Real, Decimal, np.bool_)) else math.nan
    except Exception:  # a number type of the user's may raise anything: that record is odd
        return math.nan
