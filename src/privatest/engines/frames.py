"""Columns of Arrow, pandas and polars, and NumPy arrays: records without a copy where the type allows.

Arrow columns, of pyarrow and all that speak its C interface, are read slice by slice.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest.engines.arrays import (
    ArrayRecords,
    CodedRecords,
    Part,
    Piece,
    Progress,
    SequenceRecords,
    Stream,
    StreamRecords,
    as_numpy,
    import_arrow,
)
from privatest.engines.keys import Keys, keys_of_array, keys_of_objects
from privatest.engines.protocol import UNDECLARED, Column, Declared, unfit
from privatest.errors import InvalidData
from privatest.scores import Cells, LabelCells

__all__ = [
    "DictionaryRecords",
    "arrow_kind",
    "as_numpy",
    "column_keys",
    "column_of",
    "from_array",
    "from_pandas",
    "from_polars",
    "import_arrow",
    "key_kind",
    "keys_of",
    "stream_of_arrow",
]

# Rows of one slice: small enough for several of them to stay in cache, large enough for the calls not to count.
SLICE = 1 << 18
# What stands behind a time that was converted to this zone.
UTC = "+00:00"
# Up to so many categories are read once for each chunk of records.
FEW = 1 << 14


@dataclass(frozen=True, eq=False)
class DictionaryRecords(Column):
    """Text as positions in a list of the distinct ones; -1 for a missing record."""

    codes: npt.NDArray[np.int64] = field(repr=False)
    distinct: tuple[str | None, ...] = field(repr=False)
    declared: Declared = UNDECLARED

    def count(self) -> int:
        return len(self.codes)

    def index(self, cells: Cells) -> npt.NDArray[np.intp]:
        if not isinstance(cells, LabelCells):  # text is never a number
            return np.full(len(self.codes), cells.count, dtype=np.intp)
        known = np.array([*map(cells.index_of, self.distinct), cells.count], dtype=np.intp)
        return known[self.codes]

    def part(self, first: int, last: int) -> DictionaryRecords:
        return DictionaryRecords(self.codes[first:last], self.distinct, self.declared)


def arrow_kind(kind: Any, column: str | None = None) -> str:
    """What a column of this Arrow type is read as: "number", "decimal", "text", "other"; refuses what has no rule."""
    types = import_arrow("An Arrow column").types
    content = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_temporal(content) or types.is_nested(content):
        raise unfit(f"type {kind}", column=column)
    if types.is_integer(content) or types.is_floating(content) or types.is_boolean(content):
        return "number"
    if types.is_decimal(content):
        return "decimal"
    return "text" if str(content) in ("string", "large_string", "string_view") else "other"


def _declared(kind: Any, column: str | None) -> Declared:
    """What an Arrow type says of every record."""
    types = import_arrow("An Arrow column").types
    content = kind.value_type if types.is_dictionary(kind) else kind
    name = str(kind)
    if types.is_boolean(content):
        return Declared("truths", name, column)
    if "binary" in str(content):
        return Declared("bytes", name, column)
    read = arrow_kind(kind, column)
    if read == "other":  # no type at all where everything is missing; of an extension, values may be any objects
        return Declared(column=column)
    return Declared("text" if read == "text" else "numbers", name, column)


def column_of(array: Any, column: str | None = None) -> Column:
    """The records of one Arrow array (not chunked)."""
    pa = import_arrow("An Arrow column")
    kind = arrow_kind(array.type, column)
    declared = _declared(array.type, column)
    if pa.types.is_dictionary(array.type):
        if kind == "text":
            return _dictionary(array, declared)
        array = array.cast(array.type.value_type)
    if kind == "number":
        if array.null_count:
            array = array.cast(pa.float64(), safe=False)
        return ArrayRecords(as_numpy(array, math.nan if array.null_count else None), declared)
    if kind == "decimal":
        # By way of text, which is rounded once; Arrow's own conversion of long decimals is not the nearest double.
        return ArrayRecords(as_numpy(array.cast(pa.string()).cast(pa.float64()), math.nan), declared)
    if kind == "text":
        return _dictionary(array.cast(pa.large_binary()).dictionary_encode(), declared)
    return SequenceRecords(array.to_pylist(), declared)


def _dictionary(array: Any, declared: Declared) -> DictionaryRecords:
    pa = import_arrow("An Arrow column")
    # By way of bytes: text that is not valid UTF-8 (files may hold it) would raise, for one record.
    distinct = tuple(_decoded(entry) for entry in array.dictionary.cast(pa.large_binary()).to_pylist())
    return DictionaryRecords(as_numpy(array.indices.cast(pa.int64()), -1), distinct, declared)


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
    times, zone = _times(array.type)
    if types.is_date32(array.type) or types.is_time32(array.type):
        array = array.cast(pa.int32())
    elif types.is_temporal(array.type) and not types.is_interval(array.type):
        array = array.cast(pa.int64())
    if types.is_integer(array.type) or types.is_floating(array.type) or types.is_boolean(array.type):
        return replace(keys_of_array(as_numpy(array, 0), missing), times=times, zone=zone)
    text = str(array.type) in ("string", "large_string", "string_view")
    if not (text or types.is_binary(array.type) or types.is_large_binary(array.type)):
        return keys_of_objects(array.to_pylist())
    encoded = array.cast(pa.large_binary()).dictionary_encode()
    codes = as_numpy(encoded.indices.cast(pa.int64()), 0)
    present = np.ones(len(codes), dtype=np.bool_) if missing is None else ~missing
    return Keys(codes, present, encoded.dictionary.to_pylist())


def _times(kind: Any) -> tuple[str, str]:
    """How NumPy names an Arrow type of dates, times or spans, and the zone of its values; "" for no such type."""
    types = import_arrow("An Arrow column").types
    if types.is_date(kind):
        return f"datetime64[{'D' if types.is_date32(kind) else 'ms'}]", ""
    if types.is_timestamp(kind):
        return f"datetime64[{kind.unit}]", "" if kind.tz is None else UTC
    return f"timedelta64[{kind.unit}]" if types.is_time(kind) or types.is_duration(kind) else "", ""


def stream_of_arrow(
    values: Any, unit: Any = None, order: Any = None, group: Any = None, *, column: str | None = None
) -> Stream:
    """The rows of chunked columns of equal length, slice by slice."""
    pa = import_arrow("An Arrow column")
    arrow_kind(values.type, column)
    for role, keys in (("unit", unit), ("order", order), ("group", group)):
        if keys is not None:
            key_kind(keys.type, f"a column {role}")

    def piece(start: int, size: int, chunk: Any) -> Piece:
        def read(progress: Progress) -> Iterator[Part]:
            records = column_of(chunk.slice(start - base, size))
            keys = [None if one is None else keys_of(_joined(one.slice(start, size))) for one in (unit, order, group)]
            progress(size)
            yield Part(records, *keys)

        base = offset
        return Piece(read)

    pieces, offset = [], 0
    for chunk in values.chunks:
        for first in range(0, len(chunk), SLICE):
            pieces.append(piece(offset + first, min(SLICE, len(chunk) - first), chunk))
        offset += len(chunk)
    return Stream(pieces, column_of(pa.nulls(0, values.type), column), rows=len(values))


def _joined(column: Any) -> Any:
    joined = column.combine_chunks()
    pa = import_arrow("An Arrow column")
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined


def from_array(values: npt.NDArray[Any], column: str | None = None, kind: Declared | None = None) -> Column:
    """The records of an array; ``kind`` is what the type says that it was made from."""
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]  # one column, as scikit-learn has it
    if values.ndim != 1:
        raise InvalidData(f"The data are an array of {values.ndim} dimensions. Pass one dimension: one entry a record.")
    letter = values.dtype.kind
    if letter not in "biufOUST":
        raise unfit(f"dtype {values.dtype}", column=column)
    declared = kind or _declared_by_numpy(values.dtype, column)
    if isinstance(values, np.ma.MaskedArray):
        return _from_masked(values, declared)
    if kind is None and letter in "biu":  # an array of these has no value that means a missing one
        declared = replace(declared, nullable=False)
    return ArrayRecords(values, declared) if letter in "biuf" else SequenceRecords(_listed(values), declared)


_BY_LETTER = {"b": "truths", "i": "numbers", "u": "numbers", "f": "numbers", "U": "text", "T": "text", "S": "bytes"}


def _declared_by_numpy(dtype: Any, column: str | None) -> Declared:
    """What a dtype of NumPy, or a nullable one of pandas, says of every record; objects say nothing."""
    content = _BY_LETTER.get(dtype.kind)
    return Declared(column=column) if content is None else Declared(content, str(dtype), column)  # type: ignore[arg-type]


def _from_masked(values: Any, declared: Declared) -> Column:
    if values.dtype.kind not in "biuf":
        return SequenceRecords(values.astype(object).filled(None).tolist(), declared)
    with np.errstate(all="ignore"):
        return ArrayRecords(values.astype(np.float64).filled(np.nan), declared)


def _listed(values: npt.NDArray[Any]) -> list[Any]:
    """The entries as Python objects, one by one where some are no text at all: those are odd."""
    try:
        return list(values.tolist())
    except Exception:
        return [_entry(values, index) for index in range(len(values))]


def _entry(values: npt.NDArray[Any], index: int) -> Any:
    try:
        return values[index].item() if hasattr(values[index], "item") else values[index]
    except Exception:
        return None


def from_pandas(values: Any, column: str | None = None) -> Column | StreamRecords:
    if not hasattr(values, "to_numpy") or getattr(values, "ndim", 1) != 1:
        raise InvalidData(f"The data are a pandas {type(values).__name__}. Pass one column: a Series.")
    dtype = values.dtype
    kind = getattr(dtype, "kind", "O")
    if isinstance(dtype, np.dtype):
        return from_array(values.to_numpy(), column)
    if kind in "mMc" or type(dtype).__name__ in ("PeriodDtype", "IntervalDtype"):
        raise unfit(f"dtype {dtype}", column=column)
    array = getattr(values, "array", values)
    if _arrow_backed(dtype):
        return StreamRecords(stream_of_arrow(_chunked(array.__arrow_array__()), column=column))
    if kind in "biuf":  # nullable numbers
        declared = _declared_by_numpy(dtype, column)
        return from_array(values.to_numpy(dtype=np.float64, na_value=np.nan), kind=declared)
    if type(dtype).__name__ == "CategoricalDtype":
        declared = _declared_by_categories(dtype.categories.dtype, column)
        if len(dtype.categories) <= FEW:
            categorical = getattr(array, "_values", array)  # of an index as well
            codes, distinct = np.asarray(categorical.codes), categorical.categories.astype(object).tolist()
            return CodedRecords(codes, distinct, declared)
        return SequenceRecords(array.astype(object).tolist(), declared)
    declared = Declared("text", str(dtype), column) if str(dtype).startswith("str") else Declared(column=column)
    return SequenceRecords(array.astype(object).tolist(), declared)


def _declared_by_categories(dtype: Any, column: str | None) -> Declared:
    """What the type of a categorical's categories says; which categories there are depends on records."""
    name = f"category of {dtype}"
    if getattr(dtype, "kind", "O") in "mMc":
        raise unfit(f"dtype {name}", column=column)
    if str(dtype).startswith("str") or str(dtype) == "object":
        return Declared("text", name, column)  # names of categories, as pandas before version 3 keeps them
    found = _declared_by_numpy(dtype, column) if hasattr(dtype, "kind") else Declared(column=column)
    return replace(found, type=name) if found.type else found


def _arrow_backed(dtype: Any) -> bool:
    return hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", "") == "pyarrow"


def _chunked(values: Any) -> Any:
    pa = import_arrow("An Arrow column")
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])


def from_polars(values: Any, column: str | None = None) -> Column:
    if not hasattr(values, "dtype"):
        raise InvalidData(f"The data are a polars {type(values).__name__}. Pass one column: a Series.")
    dtype, name = values.dtype, str(values.dtype)
    if dtype.is_temporal() or dtype.is_nested():
        raise unfit(f"type {name}", column=column)
    if name == "Boolean" or (dtype.is_numeric() and not dtype.is_decimal()):
        if values.null_count() or name == "Boolean" or name.endswith("128"):
            values = values.cast(sys.modules["polars"].Float64)
        content: Any = "truths" if name == "Boolean" else "numbers"
        return from_array(values.to_numpy(), kind=Declared(content, name, column))
    if dtype.is_decimal():
        floats = np.array([np.nan if x is None else float(x) for x in values.to_list()], dtype=np.float64)
        return ArrayRecords(floats, Declared("numbers", name, column))
    content = "text" if name.startswith(("String", "Categorical", "Enum")) else "bytes" if name == "Binary" else None
    declared = Declared(column=column) if content is None else Declared(content, name, column)
    return SequenceRecords(values.to_list(), declared)


def column_keys(values: Any) -> Keys:
    """A pandas or polars column as keys, exactly."""
    library = type(values).__module__.partition(".")[0]
    if library == "pandas":
        dtype = values.dtype
        if isinstance(dtype, np.dtype) and dtype.kind in "biufmM":
            return keys_of_array(values.to_numpy())
        if _arrow_backed(dtype):
            found = _chunked(values.array.__arrow_array__()).combine_chunks()
            return keys_of(found.chunk(0) if hasattr(found, "chunks") else found)
        if type(dtype).__name__ in ("PeriodDtype", "IntervalDtype"):
            raise unfit(f"a key column of dtype {dtype}", "Name a column of numbers, texts or times")
        if type(dtype).__name__ == "DatetimeTZDtype":
            return replace(keys_of_array(values.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()), zone=UTC)
        if getattr(dtype, "kind", "O") in "iu":  # nullable integers, not by way of floats
            return keys_of_array(values.fillna(0).to_numpy(dtype=dtype.numpy_dtype), values.isna().to_numpy())
        if getattr(dtype, "kind", "O") == "b":
            return keys_of_array(values.fillna(False).to_numpy(dtype=np.bool_), values.isna().to_numpy())
        if getattr(dtype, "kind", "O") == "f":
            return keys_of_array(values.to_numpy(dtype=np.float64, na_value=np.nan))
        return keys_of_objects(values.astype(object).tolist())
    dtype = values.dtype
    if dtype.is_nested():
        raise unfit(f"a key column of type {dtype}", "Name a column of numbers, texts or times")
    if (dtype.is_integer() or dtype.is_temporal()) and not str(dtype).endswith("128"):
        whole = values.to_physical() if dtype.is_temporal() else values
        missing = values.is_null().to_numpy() if values.null_count() else None
        found = keys_of_array(whole.fill_null(0).to_numpy() if missing is not None else whole.to_numpy(), missing)
        if not dtype.is_temporal():
            return found
        span = "datetime64" if str(dtype).startswith("Date") else "timedelta64"
        unit = "D" if str(dtype) == "Date" else getattr(dtype, "time_unit", "ns")
        return replace(found, times=f"{span}[{unit}]", zone=UTC if getattr(dtype, "time_zone", None) else "")
    if dtype.is_float():
        return keys_of_array(values.cast(sys.modules["polars"].Float64).to_numpy())
    return keys_of_objects(values.to_list())
