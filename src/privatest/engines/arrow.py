"""Arrow columns, slice by slice and without a copy of the whole: pyarrow, and all that speak its C interface."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest.engines.arrays import ArrayRecords, SequenceRecords
from privatest.engines.keys import Keys, keys_of_array, keys_of_objects
from privatest.engines.protocol import Column, check_text, unfit
from privatest.engines.streams import Part, Piece, Progress, Stream
from privatest.errors import MissingExtra
from privatest.scores import Cells, LabelCells, Score

__all__ = [
    "DictionaryRecords",
    "arrow_kind",
    "as_numpy",
    "column_of",
    "import_arrow",
    "key_kind",
    "keys_of",
    "stream_of_arrow",
]

# Rows of one slice: small enough for several of them to stay in cache, large enough for the calls not to count.
SLICE = 1 << 18


def import_arrow(what: str) -> Any:
    """The module pyarrow, or an error that names the extra."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra(f"{what} is read by way of pyarrow. Install it: pip install privatest[files]") from None
    return pa


@dataclass(frozen=True, eq=False)
class DictionaryRecords(Column):
    """Text as positions in a list of the distinct ones; -1 for a missing record."""

    codes: npt.NDArray[np.int64]
    distinct: tuple[str | None, ...]
    text: str | None = None

    def count(self) -> int:
        return len(self.codes)

    def check(self, score: Score) -> None:
        if self.text is not None:
            check_text(score, self.text)

    def index(self, cells: Cells) -> npt.NDArray[np.intp]:
        if not isinstance(cells, LabelCells):  # text is never a number
            return np.full(len(self.codes), cells.count, dtype=np.intp)
        known = np.array([*map(cells.index_of, self.distinct), cells.count], dtype=np.intp)
        return known[self.codes]

    def part(self, first: int, last: int) -> DictionaryRecords:
        return DictionaryRecords(self.codes[first:last], self.distinct, self.text)


def arrow_kind(kind: Any) -> str:
    """What a column of this Arrow type is read as: "number", "decimal", "text", "other"; refuses what has no rule."""
    types = import_arrow("An Arrow column").types
    content = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_temporal(content) or types.is_nested(content):
        raise unfit(f"type {kind}")
    if types.is_integer(content) or types.is_floating(content) or types.is_boolean(content):
        return "number"
    if types.is_decimal(content):
        return "decimal"
    return "text" if str(content) in ("string", "large_string", "string_view") else "other"


def as_numpy(array: Any, missing: float | None = None) -> npt.NDArray[Any]:
    """A primitive Arrow array, in the same memory unless something must stand for nulls.

    By its buffers: Arrow's own ways to NumPy and to a scalar load pandas.
    """
    pa = import_arrow("An Arrow column")
    if pa.types.is_boolean(array.type):
        return np.asarray(as_numpy(array.cast(pa.uint8()), missing) != 0)
    letter = "f" if pa.types.is_floating(array.type) else "i" if pa.types.is_signed_integer(array.type) else "u"
    dtype = np.dtype(f"{letter}{array.type.bit_width // 8}")
    if len(array) == 0 or array.buffers()[1] is None:
        return np.full(len(array), 0 if missing is None else missing, dtype=dtype)
    values = np.frombuffer(array.buffers()[1], dtype, count=len(array), offset=array.offset * dtype.itemsize)
    if array.null_count and missing is not None:
        values = values.copy()
        values[as_numpy(array.is_null())] = missing
    return values


def column_of(array: Any) -> Column:
    """The records of one Arrow array (not chunked)."""
    pa = import_arrow("An Arrow column")
    kind = arrow_kind(array.type)
    name = str(array.type)
    if pa.types.is_dictionary(array.type):
        if kind == "text":
            return _dictionary(array, name)
        array = array.cast(array.type.value_type)
    if kind == "number":
        if array.null_count:
            array = array.cast(pa.float64(), safe=False)
        return ArrayRecords(as_numpy(array, math.nan if array.null_count else None))
    if kind == "decimal":
        # By way of text, which is rounded once; Arrow's own conversion of long decimals is not the nearest double.
        return ArrayRecords(as_numpy(array.cast(pa.string()).cast(pa.float64()), math.nan))
    if kind == "text":
        return _dictionary(array.cast(pa.large_binary()).dictionary_encode(), name)
    return SequenceRecords(array.to_pylist())


def _dictionary(array: Any, name: str) -> DictionaryRecords:
    pa = import_arrow("An Arrow column")
    # By way of bytes: text that is not valid UTF-8 (files may hold it) would raise, for one record.
    distinct = tuple(_decoded(entry) for entry in array.dictionary.cast(pa.large_binary()).to_pylist())
    return DictionaryRecords(as_numpy(array.indices.cast(pa.int64()), -1), distinct, text=name)


def _decoded(entry: bytes | None) -> str | None:
    try:
        return None if entry is None else entry.decode()
    except UnicodeDecodeError:
        return None


def key_kind(kind: Any, role: str) -> None:
    """Refuse a type that cannot say whose a row is, or when it happened."""
    types = import_arrow("An Arrow column").types
    content = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_nested(content):
        raise unfit(f"{role} of type {kind}", "Name a column of numbers, texts or times")


def keys_of(array: Any) -> Keys:
    """One Arrow array (not chunked) as keys."""
    pa = import_arrow("An Arrow column")
    types = pa.types
    if types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    missing = as_numpy(array.is_null()) if array.null_count else None
    if types.is_date32(array.type) or types.is_time32(array.type):
        array = array.cast(pa.int32())
    elif types.is_temporal(array.type) and not types.is_interval(array.type):
        array = array.cast(pa.int64())
    if types.is_integer(array.type) or types.is_floating(array.type) or types.is_boolean(array.type):
        return keys_of_array(as_numpy(array, 0), missing)
    text = str(array.type) in ("string", "large_string", "string_view")
    if not (text or types.is_binary(array.type) or types.is_large_binary(array.type)):
        return keys_of_objects(array.to_pylist())
    encoded = array.cast(pa.large_binary()).dictionary_encode()
    codes = as_numpy(encoded.indices.cast(pa.int64()), 0)
    present = np.ones(len(codes), dtype=np.bool_) if missing is None else ~missing
    return Keys(codes, present, encoded.dictionary.to_pylist())


def stream_of_arrow(values: Any, unit: Any = None, order: Any = None) -> Stream:
    """The rows of chunked columns of equal length, slice by slice."""
    pa = import_arrow("An Arrow column")
    arrow_kind(values.type)
    for role, keys in (("unit", unit), ("order", order)):
        if keys is not None:
            key_kind(keys.type, f"a column {role}")

    def piece(start: int, size: int, chunk: Any) -> Piece:
        def read(progress: Progress) -> Iterator[Part]:
            records = column_of(chunk.slice(start - base, size))
            keys = [None if column is None else keys_of(_joined(column.slice(start, size))) for column in (unit, order)]
            progress(size)
            yield Part(records, *keys)

        base = offset
        return Piece(read)

    pieces, offset = [], 0
    for chunk in values.chunks:
        for first in range(0, len(chunk), SLICE):
            pieces.append(piece(offset + first, min(SLICE, len(chunk) - first), chunk))
        offset += len(chunk)
    return Stream(pieces, column_of(pa.nulls(0, values.type)), rows=len(values))


def _joined(column: Any) -> Any:
    joined = column.combine_chunks()
    pa = import_arrow("An Arrow column")
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined
