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
from privatest.engines.keys import keys_at, keys_of_array, keys_of_objects, plain_key, plain_time, ranks
from tests.engines.warehouses import SPARK, WAREHOUSES, new_table

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


def test_a_field_of_a_csv_file_is_a_number_where_it_sorts_as_one() -> None:
    assert [plain_key(key, untyped=True) for key in (b"2009", b" 2.5", b"1e999", b"2009-03-01", b"x")] == [
        2009, 2.5, "inf", "2009-03-01", "x",
    ]  # fmt: skip


def test_a_key_whose_own_code_raises_is_not_told() -> None:
    class Raising(float):
        def __float__(self) -> float:
            raise RuntimeError("2009")

    assert plain_key(Raising(1)) is None


def test_a_time_is_told_in_iso_form() -> None:
    assert plain_time("2009-03-01 12:00:00+02") == "2009-03-01T12:00:00+02:00"
    assert plain_time("10000-01-01") == "10000-01-01"
    assert plain_time("2009-03-01 00:00:00.5") == "2009-03-01T00:00:00.5"
    assert plain_time("2009-03-01 00:00:00.000+00") == "2009-03-01T00:00:00+00:00"
    assert plain_time("infinity") == "infinity"


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


@pytest.mark.parametrize("kind", [pa.duration("s"), pa.time32("s")], ids=str)
def test_spans_and_times_of_day_are_told(kind: pa.DataType) -> None:
    table = pa.table({"x": [1.0, 2.0], "when": pa.array([90, 60], type=kind)})
    records: Any = engines.open_source(table, column="x", order="when")
    assert records.order_values([0]) == ["60 seconds"]


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


def test_postgresql_tells_what_python_has_not() -> None:
    """Years beyond 9999 and infinity: an error for one of them would tell where the index lies."""
    days = ["2009-03-01", "12009-03-01", "infinity", "-infinity", "0044-03-15 BC"]
    address = new_table(
        "x float8, day date, moment timestamp, exact numeric, word text",
        *((float(i), day, day, f"{i}.50", f"\u00e4{i}") for i, day in enumerate(days)),
    )
    ordered = ["-infinity", "0044-03-15 BC", "2009-03-01", "12009-03-01", "infinity"]
    moments = ["-infinity", "0044-03-15 00:00:00 BC", "2009-03-01", "12009-03-01", "infinity"]
    told = {
        "day": ordered,
        "moment": moments,
        "exact": [0.5, 1.5, 2.5, 3.5, 4.5],
        "word": [f"\u00e4{i}" for i in range(5)],
    }
    for order, values in told.items():
        records: Any = engines.open_source(address, column="x", order=order)
        assert records.has_order_values
        assert records.order_values(range(5)) == values, order


def test_texts_that_look_like_numbers_are_texts_where_the_column_has_a_type() -> None:
    typed = keys_of_objects(["10", "9", " 8"])
    assert ranks([typed]).tolist() == [1, 2, 0]
    assert keys_at([typed], range(3)) == ["8", "10", "9"]
    untyped = replace(typed, untyped=True)
    assert ranks([untyped]).tolist() == [2, 1, 0]
    assert keys_at([untyped], range(3)) == [8, 9, 10]
    assert ranks([]).tolist() == []
