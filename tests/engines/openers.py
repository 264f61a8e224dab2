"""The same records in every kind of source: what the contract runs over. An engine joins by one line in OPENERS.

An opener takes columns of plain Python values (None for missing) and a folder of its own, and returns what a user
would pass as the source. ``"x"`` holds the records; ``"who"`` and ``"when"``, where given, the unit and the order.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

__all__ = ["FRAMES", "OPENERS", "SINGLE", "Columns", "arrow_table", "write_csv"]

Columns = Mapping[str, list[Any]]
Opener = Callable[[Columns, Path], Any]


def arrow_table(columns: Columns) -> pa.Table:
    """With types by what the column holds: text, or doubles; keys as they are."""
    made = {}
    for name, values in columns.items():
        types = {*map(type, values)}
        text, whole = any(issubclass(one, str) for one in types), types <= {int, type(None)}
        kind = pa.string() if text else pa.int64() if whole and name != "x" else pa.float64()
        made[name] = pa.array(values, type=kind, from_pandas=False)
    return pa.table(made)


def _pandas(columns: Columns, _folder: Path) -> pd.DataFrame:
    # Nullable types, so that long identity numbers stay whole.
    types = {pa.string(): pd.StringDtype(), pa.int64(): pd.Int64Dtype()}
    return arrow_table(columns).to_pandas(types_mapper=types.get)


def _polars(columns: Columns, _folder: Path) -> pl.DataFrame:
    return pl.from_arrow(arrow_table(columns))  # type: ignore[return-value]


def _chunked(columns: Columns, _folder: Path) -> pa.Table:
    table = arrow_table(columns)
    return pa.concat_tables([table.slice(first, 17) for first in range(0, len(table), 17)])


def _stream(columns: Columns, folder: Path) -> pa.RecordBatchReader:
    return _chunked(columns, folder).to_reader()


def _parquet(columns: Columns, folder: Path) -> Path:
    pa.parquet.write_table(arrow_table(columns), folder / "data.parquet", row_group_size=23)
    return folder / "data.parquet"


def _parquet_folder(columns: Columns, folder: Path) -> str:
    table = arrow_table(columns)
    for number, first in enumerate(range(0, max(len(table), 1), 31)):
        pa.parquet.write_table(table.slice(first, 31), folder / f"part-{number:04d}.parquet")
    (folder / "_SUCCESS").touch()
    return str(folder)


def _feather(columns: Columns, folder: Path) -> Path:
    pa.feather.write_feather(arrow_table(columns), folder / "data.feather", chunksize=19)
    return folder / "data.feather"


def _arrow_stream(columns: Columns, folder: Path) -> str:
    with pa.ipc.new_stream(folder / "data.arrows", arrow_table(columns).schema) as writer:
        writer.write_table(arrow_table(columns), max_chunksize=29)
    return str(folder / "data.arrows")


def write_csv(columns: Columns, path: Path) -> Path:
    """Texts in quotes, so that an empty text is not a missing one; numbers as Python writes them."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_MINIMAL)
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            file.write(",".join(_field(value) for value in row) + "\r\n")
    return path


def _field(value: Any) -> str:
    if value is None:
        return ""
    return '"' + value.replace('"', '""') + '"' if isinstance(value, str) else repr(value)


def _numpy(columns: Columns, _folder: Path) -> Any:
    values = columns["x"]
    if any(isinstance(value, str) for value in values):
        return np.array(values, dtype=object)
    return np.array([math.nan if value is None else value for value in values])


# Sources that are tables: they can have units and an order.
FRAMES: dict[str, Opener] = {
    "pandas": _pandas,
    "polars": _polars,
    "pyarrow": lambda columns, _folder: arrow_table(columns),
    "pyarrow, chunked": _chunked,
    "Arrow stream": _stream,
    "Parquet": _parquet,
    "Parquet folder": _parquet_folder,
    "Feather": _feather,
    "Arrow file": _arrow_stream,
    "CSV": lambda columns, folder: write_csv(columns, folder / "data.csv"),
}
# Single columns: no column name is given.
SINGLE: dict[str, Opener] = {
    "NumPy": _numpy,
    "list": lambda columns, _folder: list(columns["x"]),
}
OPENERS: dict[str, Opener] = {**SINGLE, **FRAMES}
