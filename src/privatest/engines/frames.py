"""Columns of pandas and polars, and NumPy arrays: records without a copy where the type allows."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest.engines.arrays import ArrayRecords, CodedRecords, SequenceRecords
from privatest.engines.arrow import import_arrow, keys_of, stream_of_arrow
from privatest.engines.keys import Keys, keys_of_array, keys_of_objects
from privatest.engines.protocol import Column, unfit
from privatest.engines.streams import StreamRecords
from privatest.errors import InvalidData

__all__ = ["column_keys", "from_array", "from_pandas", "from_polars"]

# Up to so many categories are read once for each chunk of records.
FEW = 1 << 14


def from_array(values: npt.NDArray[Any]) -> Column:
    if values.ndim != 1:
        raise InvalidData(f"The data are an array of {values.ndim} dimensions. Pass one dimension: one entry a record.")
    kind = values.dtype.kind
    text = f"dtype {values.dtype}" if kind in "UST" else None
    if kind not in "biufOUST":
        raise unfit(f"dtype {values.dtype}")
    if isinstance(values, np.ma.MaskedArray):
        return _from_masked(values, text)
    return ArrayRecords(values) if kind in "biuf" else SequenceRecords(_listed(values), text=text)


def _from_masked(values: Any, text: str | None) -> Column:
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


def from_pandas(values: Any) -> Column | StreamRecords:
    if not hasattr(values, "to_numpy") or getattr(values, "ndim", 1) != 1:
        raise InvalidData(f"The data are a pandas {type(values).__name__}. Pass one column: a Series.")
    dtype = values.dtype
    kind = getattr(dtype, "kind", "O")
    if isinstance(dtype, np.dtype):
        return from_array(values.to_numpy())
    if kind in "mMc" or type(dtype).__name__ in ("PeriodDtype", "IntervalDtype"):
        raise unfit(f"dtype {dtype}")
    array = getattr(values, "array", values)
    if _arrow_backed(dtype):
        return StreamRecords(stream_of_arrow(_chunked(array.__arrow_array__())))
    if kind in "biuf":  # nullable numbers
        return from_array(values.to_numpy(dtype=np.float64, na_value=np.nan))
    if type(dtype).__name__ == "CategoricalDtype" and len(dtype.categories) <= FEW:
        categorical = getattr(array, "_values", array)  # of an index as well
        return CodedRecords(np.asarray(categorical.codes), categorical.categories.astype(object).tolist())
    text = "string" if str(dtype).startswith("str") else None
    return SequenceRecords(array.astype(object).tolist(), text=text)


def _arrow_backed(dtype: Any) -> bool:
    return hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", "") == "pyarrow"


def _chunked(values: Any) -> Any:
    pa = import_arrow("An Arrow column")
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])


def from_polars(values: Any) -> Column:
    if not hasattr(values, "dtype"):
        raise InvalidData(f"The data are a polars {type(values).__name__}. Pass one column: a Series.")
    dtype, name = values.dtype, str(values.dtype)
    if dtype.is_temporal() or dtype.is_nested():
        raise unfit(f"type {name}")
    if name == "Boolean" or (dtype.is_numeric() and not dtype.is_decimal()):
        if values.null_count() or name == "Boolean" or name.endswith("128"):
            values = values.cast(sys.modules["polars"].Float64)
        return from_array(values.to_numpy())
    if dtype.is_decimal():
        return ArrayRecords(np.array([np.nan if x is None else float(x) for x in values.to_list()], dtype=np.float64))
    return SequenceRecords(values.to_list(), text=name if name.startswith(("String", "Categorical", "Enum")) else None)


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
            return keys_of_array(values.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
        if getattr(dtype, "kind", "O") in "iu":  # nullable integers, not by way of floats
            return keys_of_array(values.fillna(0).to_numpy(dtype=dtype.numpy_dtype), values.isna().to_numpy())
        if getattr(dtype, "kind", "O") in "bf":
            return keys_of_array(values.to_numpy(dtype=np.float64, na_value=np.nan))
        return keys_of_objects(values.astype(object).tolist())
    dtype = values.dtype
    if dtype.is_nested():
        raise unfit(f"a key column of type {dtype}", "Name a column of numbers, texts or times")
    if (dtype.is_integer() or dtype.is_temporal()) and not str(dtype).endswith("128"):
        whole = values.to_physical() if dtype.is_temporal() else values
        missing = values.is_null().to_numpy() if values.null_count() else None
        return keys_of_array(whole.fill_null(0).to_numpy() if missing is not None else whole.to_numpy(), missing)
    if dtype.is_float():
        return keys_of_array(values.cast(sys.modules["polars"].Float64).to_numpy())
    return keys_of_objects(values.to_list())
