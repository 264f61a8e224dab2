"""Keys that are told: the values of a public order, as numbers and texts, whatever column they come from."""

from __future__ import annotations

import datetime
import json
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privatest import engines
from privatest.engines.key_columns import keys_of_array, keys_of_objects, plain_key
from privatest.engines.orders_and_ties import keys_at, ranks
from tests.engines.warehouses import SPARK, WAREHOUSES

DAY = datetime.date(2009, 3, 1)
NOON = datetime.datetime(2009, 3, 1, 12, 30)


@pytest.mark.parametrize(
    ("key", "told"),
    [
        (7, 7), (2.0, 2), (2.5, 2.5), (True, 1), (np.int8(3), 3), (Decimal("2.50"), 2.5), (Fraction(1, 4), 0.25),
        (10**30, 10**30), (math.inf, "inf"), (-math.inf, "-inf"), (math.nan, None), (None, None), (object(), None),
        ("spring ", "spring"), (b"spring", "spring"), (b"\xff", "\ufffd"), ("\ud800", "?"), ("x" * 999, "x" * 200),
        (DAY, "2009-03-01"), (NOON, "2009-03-01T12:30:00"), (Decimal("1e999999"), "1E+999999"), (Decimal("NaN"), None),
    ],
)  # fmt: skip
def test_a_key_is_told_as_json_has_it(key: Any, told: Any) -> None:
    found = plain_key(key)
    assert (type(found), found) == (type(told), told)
    json.dumps(found, allow_nan=False)


def test_places_count_over_all_parts_and_missing_keys_come_last() -> None:
    parts = [keys_of_array(np.array([5.0, math.nan])), keys_of_array(np.array([])), keys_of_array(np.array([1.5, 9.0]))]
    assert keys_at(parts, [3, 2, 1, 0, 0]) == [None, 9, 5, 1.5, 1.5]
    assert keys_at([keys_of_objects(["b", None, "a"])], range(3)) == ["a", "b", None]


# PostgreSQL has columns of its own below.
NAMED = [pytest.param(name, marks=SPARK if name == "Spark" else []) for name in WAREHOUSES if name != "PostgreSQL"]
TIMES = [DAY + datetime.timedelta(days=i) for i in (2, 0, 1)]
FRAMES: dict[str, Any] = {
    "pandas": lambda table: table.to_pandas(),
    "pandas, Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "pyarrow": lambda table: table,
}
KINDS: dict[str, pa.DataType] = {
    "day": pa.date32(), "date64": pa.date64(), "s": pa.timestamp("s"), "ms": pa.timestamp("ms"),
    "us": pa.timestamp("us"), "ns": pa.timestamp("ns"), "zone": pa.timestamp("us", tz="Asia/Tokyo"),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("frame", FRAMES)
def test_dates_are_told_as_dates_whatever_holds_them(frame: str, kind: str) -> None:
    table = pa.table({"x": [1.0, 2.0, 3.0], "when": pa.array(TIMES, type=pa.date32()).cast(KINDS[kind])})
    records: Any = engines.open_source(FRAMES[frame](table), column="x", order="when")
    zone = "T00:00:00+00:00" if kind == "zone" else ""
    told = [f"2009-03-0{i}{zone}" for i in (1, 2, 3)]
    assert records.order_values([2, 0, 1]) == [told[i] for i in (2, 0, 1)]


@pytest.mark.parametrize("opener", NAMED)
def test_databases_tell_dates_numbers_and_texts(opener: str, tmp_path: Path) -> None:
    columns = {
        "day": pa.array([*TIMES, None], type=pa.date32()),
        "moment": pa.array([NOON + datetime.timedelta(hours=i) for i in (2, 0, 1)] + [None], type=pa.timestamp("us")),
        "share": pa.array([0.75, 0.25, 0.5, None]),
        "text": pa.array(["b", "B", "\u00e4", None]),
    }
    table = pa.table({"x": [1.0, 2.0, 3.0, 4.0], **columns})
    source = WAREHOUSES[opener](table, tmp_path)
    told = {
        "day": ["2009-03-01", "2009-03-02", "2009-03-03", None],
        "moment": [f"2009-03-01T{hour}:30:00" for hour in (12, 13, 14)] + [None],
        "share": [0.25, 0.5, 0.75, None],
        "text": ["B", "b", "\u00e4", None],
    }
    for order, values in told.items():
        records: Any = engines.open_source(source, column="x", order=order)
        assert records.has_order_values
        assert records.order_values(range(4)) == values, order


def test_texts_that_look_like_numbers_are_texts_where_the_column_has_a_type() -> None:
    typed = keys_of_objects(["10", "9", " 8"])
    assert ranks([typed]).tolist() == [1, 2, 0]
    assert keys_at([typed], range(3)) == ["8", "10", "9"]
    untyped = replace(typed, untyped=True)
    assert ranks([untyped]).tolist() == [2, 1, 0]
    assert keys_at([untyped], range(3)) == [8, 9, 10]
    assert ranks([]).tolist() == []
