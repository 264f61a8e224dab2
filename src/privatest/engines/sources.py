"""From whatever the user passes to records. Libraries are recognised by name, never imported for it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest._validate import suggestion
from privatest.engines.arrays import ArrayRecords
from privatest.engines.protocol import Records
from privatest.engines.sequences import SequenceRecords
from privatest.errors import InvalidData, MissingExtra
from privatest.scores import Score

__all__ = ["open_source", "total"]


def total(score: Score, source: Any, *, column: str | None = None) -> int:
    """The exact sum of the scores of all records of a source.

    The integer is raw: it must not leave the process except through a test's noise.
    """
    records = open_source(source, column=column)
    records.check(score)
    return records.total(score)


def open_source(source: Any, *, column: str | None = None) -> Records:
    """The records of a source: array, list, or pandas, polars or pyarrow column or table."""
    if type(source).__name__ == "LazyFrame":
        raise InvalidData("The data are a LazyFrame, which holds no records yet. Call its collect() first.")
    # Of the type, not of the object: a pandas column shows its index as attributes.
    if hasattr(type(source), "columns") or hasattr(type(source), "column_names"):
        source = _column(source, column)
    elif column is not None:
        raise InvalidData(f"column={column!r} was given, but the data are a single column. Leave column out.")
    if isinstance(source, (str, bytes, bytearray)):
        raise InvalidData("The data are a single text. Pass a list, an array or a column of records.")
    if isinstance(source, np.ndarray):
        return _from_array(source)
    library = type(source).__module__.partition(".")[0]
    if library == "pyarrow":
        return _from_arrow(source)
    if library == "polars":
        return _from_polars(source)
    if library == "pandas":
        return _from_pandas(source)
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return _from_capsule(source)
    if hasattr(source, "__array__"):
        return _from_array(np.asarray(source))
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise InvalidData(f"The data are of type {type(source).__name__}. Pass an array, a list or a column.")
    return SequenceRecords(source if isinstance(source, Sequence) else list(source))


def _column(table: Any, column: str | None) -> Any:
    names = [str(name) for name in (table.column_names if hasattr(table, "column_names") else table.columns)]
    if column is None:
        if len(names) != 1:
            raise InvalidData(f"The data have {len(names)} columns. Say which one holds the records: column=...")
        column = names[0]
    if str(column) not in names:
        raise InvalidData(f"No column {column!r} in the data.{suggestion(str(column), names)}")
    if hasattr(table, "iloc"):  # pandas: by position, so that labels that are not text work too
        return table.iloc[:, names.index(str(column))]
    return table[str(column)]


def _from_array(values: npt.NDArray[Any]) -> Records:
    if values.ndim != 1:
        raise InvalidData(f"The data are an array of {values.ndim} dimensions. Pass one dimension: one entry a record.")
    kind = values.dtype.kind
    text = f"dtype {values.dtype}" if kind in "UST" else None
    if kind not in "biufOUST":
        raise _unfit(f"dtype {values.dtype}")
    if isinstance(values, np.ma.MaskedArray):
        return _from_masked(values, text)
    return ArrayRecords(values) if kind in "biuf" else SequenceRecords(_listed(values), text=text)


def _from_masked(values: Any, text: str | None) -> Records:
    if values.dtype.kind not in "biuf":
        return SequenceRecords(values.astype(object).filled(None).tolist(), text=text)
    with np.errstate(all="ignore"):
        return ArrayRecords(values.astype(np.float64).filled(np.nan))


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


def _from_pandas(values: Any) -> Records:
    if not hasattr(values, "to_numpy") or getattr(values, "ndim", 1) != 1:
        raise InvalidData(f"The data are a pandas {type(values).__name__}. Pass one column: a Series.")
    dtype = values.dtype
    kind = getattr(dtype, "kind", "O")
    if isinstance(dtype, np.dtype):
        return _from_array(values.to_numpy())
    if kind in "mMc" or type(dtype).__name__ in ("PeriodDtype", "IntervalDtype"):
        raise _unfit(f"dtype {dtype}")
    if kind in "biuf":  # nullable numbers
        return _from_array(values.to_numpy(dtype=np.float64, na_value=np.nan))
    array = getattr(values, "array", values)
    if hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", "") == "pyarrow":
        return _from_arrow(array.__arrow_array__())
    text = "string" if str(dtype).startswith("str") else None
    return SequenceRecords(array.astype(object).tolist(), text=text)


def _from_polars(values: Any) -> Records:
    if not hasattr(values, "dtype"):
        raise InvalidData(f"The data are a polars {type(values).__name__}. Pass one column: a Series.")
    dtype, name = values.dtype, str(values.dtype)
    if dtype.is_temporal() or dtype.is_nested():
        raise _unfit(f"type {name}")
    if name == "Boolean" or (dtype.is_numeric() and not dtype.is_decimal()):
        if values.null_count() or name == "Boolean" or name.endswith("128"):
            values = values.cast(sys.modules["polars"].Float64)
        return _from_array(values.to_numpy())
    return SequenceRecords(values.to_list(), text=name if name.startswith(("String", "Categorical", "Enum")) else None)


def _from_capsule(source: Any) -> Records:
    """A column of a library that speaks Arrow."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra(
            f"The data are a {type(source).__name__}, which is read by way of pyarrow. Install it: pip install pyarrow"
        ) from None
    return _from_arrow(pa.chunked_array(source) if hasattr(source, "__arrow_c_stream__") else pa.array(source))


def _from_arrow(values: Any) -> Records:
    pa = sys.modules["pyarrow"]
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        raise InvalidData(f"The data are a pyarrow {type(values).__name__}. Pass one column of it.")
    types, kind = pa.types, values.type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        if values.null_count or types.is_boolean(kind):
            values = values.cast(pa.float64(), safe=False)
        copying = {} if isinstance(values, pa.ChunkedArray) else {"zero_copy_only": False}
        return _from_array(np.asarray(values.to_numpy(**copying)))
    content = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_temporal(content) or types.is_nested(content):
        raise _unfit(f"type {kind}")
    if types.is_dictionary(kind):
        values = values.cast(content)
    if str(content) in ("string", "large_string", "string_view"):
        # By way of bytes: text that is not valid UTF-8 (files may hold it) would raise, for one record.
        entries = values.cast(pa.large_binary()).to_pylist()
        return SequenceRecords([_decoded(entry) for entry in entries], text=str(kind))
    return SequenceRecords(values.to_pylist())


def _decoded(entry: bytes | None) -> str | None:
    try:
        return None if entry is None else entry.decode()
    except UnicodeDecodeError:
        return None


def _unfit(what: str) -> InvalidData:
    return InvalidData(f"The data have {what}. Pass numbers, or the labels of the distributions.")
