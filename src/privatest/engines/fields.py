"""Fields: bytes without a type, of CSV files or one a line. The score says whether they are to be numbers or texts.

One rule reads numbers: white space around them apart, ``[+-]digits[.digits][e[+-]digits]`` in ASCII, or ``true`` and
``false`` in any case. Everything else is odd, whatever the records around it are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from privatest.engines.arrays import ArrayRecords
from privatest.engines.arrow import as_numpy, import_arrow
from privatest.engines.columns import Column
from privatest.engines.csv_rows import LONGEST, csv_rows
from privatest.engines.keys import DECIMAL, Keys
from privatest.errors import InvalidData
from privatest.scores import Cells, LabelCells, Score

__all__ = ["FieldRecords", "LineRecords", "Lines", "field_keys", "field_number", "read_lines"]

# What Arrow reads in bulk and no field can fail at: a short ordinary number.
ORDINARY = r"^-?[0-9]{1,30}(\.[0-9]{0,30})?([eE][+-]?[0-9]{1,2})?$"
TRUTHS = {b"true": 1.0, b"false": 0.0}


@dataclass(frozen=True, eq=False)
class FieldRecords(Column):
    """An Arrow array of bytes; an unquoted empty field is missing."""

    values: Any

    def count(self) -> int:
        return len(self.values)

    def check(self, score: Score) -> None:
        """A field may be anything, so any score fits."""

    def index(self, cells: Cells) -> npt.NDArray[np.intp]:
        if not _reads_texts(cells):
            return self.numbers().index(cells)
        codes, distinct = _encoded(self.values)
        known = np.array([_label_cell(field, cells) for field in distinct] + [cells.count], dtype=np.intp)
        return known[codes]

    def part(self, first: int, last: int) -> FieldRecords:
        return FieldRecords(self.values[first:last])

    def total(self, score: Score) -> int:
        return super().total(score) if isinstance(score.cells, LabelCells) else self.numbers().total(score)

    def numbers(self) -> ArrayRecords:
        """The fields as numbers, NaN for what is none."""
        pa = import_arrow("A CSV file")
        try:
            # All of them numbers: what Arrow accepts, the rule accepts, but for nan and inf, which are odd either way.
            found = self.values.cast(pa.string()).cast(pa.float64())
        except pa.ArrowInvalid:
            return ArrayRecords(self._one_by_one())
        return ArrayRecords(as_numpy(found, math.nan))

    def _one_by_one(self) -> npt.NDArray[np.float64]:
        import pyarrow.compute as pc

        pa = import_arrow("A CSV file")
        plain = pc.match_substring_regex(self.values, ORDINARY)
        found = np.full(len(self.values), math.nan)
        found[as_numpy(plain, 0)] = as_numpy(self.values.filter(plain).cast(pa.string()).cast(pa.float64()))
        rest = pc.invert(plain)
        found[as_numpy(rest, 0)] = [field_number(field) for field in self.values.filter(rest).to_pylist()]
        return found


@dataclass(frozen=True, eq=False)
class Lines:
    """Fields that came one a line, None for an empty one; what :func:`read_lines` gives."""

    fields: Sequence[bytes | None]


def read_lines(lines: Iterable[bytes | str]) -> Lines:
    """Lines as a source of records, one each, read as the fields of a CSV file are: the distributions say what is due.

    Ends of lines are left off, and quotes around a field. A line that makes no sense is an odd record, no error.

    >>> import privatest as pt
    >>> pt.count_records(pt.read_lines(["3", " 0.5", "often", ""]))
    4
    """
    return Lines([_field(line) for line in lines])


def _field(line: bytes | str) -> bytes | None:
    if not isinstance(line, (bytes, str)):
        raise InvalidData(f"A line is a {type(line).__name__}, not text. Pass numbers as they are, without read_lines.")
    raw = line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")
    raw = raw.removesuffix(b"\n").removesuffix(b"\r")
    if raw.startswith(b'"'):
        return next(csv_rows([raw], "\n"))[0]  # a line holds no newline, so that it has one field
    return raw if 0 < len(raw) <= LONGEST else None


@dataclass(frozen=True, eq=False)
class LineRecords(Column):
    """The same records as :class:`FieldRecords`, without Arrow."""

    values: Sequence[bytes | None]

    def count(self) -> int:
        return len(self.values)

    def check(self, score: Score) -> None:
        """A field may be anything, so any score fits."""

    def index(self, cells: Cells) -> npt.NDArray[np.intp]:
        if not _reads_texts(cells):
            return ArrayRecords(np.array([field_number(field) for field in self.values], dtype=np.float64)).index(cells)
        known = {field: _label_cell(field, cells) for field in set(self.values)}
        return np.array([known[field] for field in self.values], dtype=np.intp)

    def part(self, first: int, last: int) -> LineRecords:
        return LineRecords(self.values[first:last])


def _reads_texts(cells: Cells) -> TypeGuard[LabelCells]:
    return isinstance(cells, LabelCells) and any(isinstance(label, (str, bytes)) for label in cells.labels)


def field_number(field: bytes | None) -> float:
    """The number a field stands for; NaN, that is, odd, for anything else.

    >>> field_number(b" 1.5e3"), field_number(b"TRUE"), field_number(b"1_000"), field_number(b"")
    (1500.0, 1.0, nan, nan)
    """
    if field is None:
        return math.nan
    text = field.strip(b" \t\r\n\v\f")
    if text.lower() in TRUTHS:
        return TRUTHS[text.lower()]
    return float(text) if text.isascii() and DECIMAL.fullmatch(text.decode("ascii")) else math.nan


def _label_cell(field: bytes | None, cells: LabelCells) -> int:
    """A text label of exactly this text; or else a number that is a label."""
    if field is None:
        return cells.count
    try:
        found = cells.index_of(field.decode())
    except UnicodeDecodeError:
        return cells.count
    return found if found < cells.count else int(cells.index(np.array([field_number(field)]))[0])


def field_keys(values: Any) -> Keys:
    """Fields as keys: their exact bytes."""
    codes, distinct = _encoded(values)
    return Keys(np.maximum(codes, 0), codes >= 0, distinct, loose=True)


def _encoded(values: Any) -> tuple[npt.NDArray[np.int64], list[bytes]]:
    """Positions among the distinct fields, -1 for missing ones."""
    pa = import_arrow("A CSV file")
    encoded = values.dictionary_encode()
    return as_numpy(encoded.indices.cast(pa.int64()), -1), encoded.dictionary.to_pylist()
