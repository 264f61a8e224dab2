"""A declared type that fits no record is refused before anything is charged, by every source; nothing else is refused.

Sources that declare nothing (lists, columns of objects, CSV files, lines) raise for no record: an error that depends
on values would tell of one person.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import privatest as pt
from privatest import engines
from privatest.errors import InvalidData
from tests.engines.warehouses import SPARK, WAREHOUSES

NUMBERS = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=2, clamp="paper")
LABELS = pt.design({"yes": 0.3, "no": 0.7}, {"yes": 0.7, "no": 0.3}, epsilon=1, n=2, clamp="paper")
CODES = pt.design([0.3, 0.7], [0.7, 0.3], epsilon=1, n=2, clamp="paper")
SECRET = "4711,25"
TEXTS, TRUTHS, WHOLE = [SECRET, "no"], [True, False], [0, 1]
Opener = Callable[[dict[str, list[Any]], Path], Any]


def _parquet(columns: dict[str, list[Any]], folder: Path) -> Any:
    pa.parquet.write_table(pa.table(columns), folder / "a.parquet")
    return folder / "a.parquet"


def _feather(columns: dict[str, list[Any]], folder: Path) -> Any:
    pa.feather.write_feather(pa.table(columns), folder / "a.feather")
    return str(folder / "a.feather")


def _duckdb(columns: dict[str, list[Any]], folder: Path) -> Any:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(folder / "a.db")) as connection:
        connection.register("given", pa.table(columns))
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
    return f"duckdb:///{folder / 'a.db'}::t"


DECLARING: dict[str, Opener] = {
    "pandas": lambda columns, _: pd.DataFrame({k: pd.array(v, dtype=_nullable(v)) for k, v in columns.items()}),
    "pandas categories": lambda columns, _: pd.DataFrame(
        {k: pd.Categorical(v, categories=pd.Index(sorted(set(v)), dtype=_nullable(v))) for k, v in columns.items()}
    ),
    "pandas of Arrow": lambda columns, _: pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda columns, _: pl.DataFrame(columns),
    "polars categories": lambda columns, _: pl.DataFrame(columns).with_columns(pl.col(pl.String).cast(pl.Categorical)),
    "Arrow": lambda columns, _: pa.table(columns),
    "Arrow dictionary": lambda columns, _: pa.table({k: pa.array(v).dictionary_encode() for k, v in columns.items()}),
    "Parquet": _parquet,
    "Feather": _feather,
    "DuckDB": _duckdb,
    "PostgreSQL": WAREHOUSES["PostgreSQL"],
    "Spark": WAREHOUSES["Spark"],
}


def _nullable(values: list[Any]) -> str:
    return {str: "string", bool: "boolean", int: "Int64"}[type(values[0])]


def every(openers: dict[str, Opener]) -> list[Any]:
    return [pytest.param(name, marks=SPARK if name == "Spark" else []) for name in openers]


WRONG = [("text", TEXTS, NUMBERS), ("text", TEXTS, CODES), ("whole", WHOLE, LABELS), ("truths", TRUTHS, LABELS)]


@pytest.fixture
def paying(tmp_path: Path) -> dict[str, Any]:
    ledger = pt.Ledger(tmp_path / "ledger.db", create=True)
    ledger.grant("d", epsilon=1)
    return {"ledger": ledger, "dataset": "d", "request": "r"}


@pytest.mark.parametrize(("what", "values", "test"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("opener", every(DECLARING))
def test_the_wrong_type_is_refused_before_any_charge(
    opener: str, what: str, values: list[Any], test: pt.results.PrivateTest, paying: dict[str, Any], tmp_path: Path
) -> None:
    source = DECLARING[opener]({"amount": values, "other": [1, 2]}, tmp_path)
    with pytest.raises(InvalidData) as error:
        test.run(source, column="amount", **paying)
    said = str(error.value)
    assert said.startswith(f"Column 'amount' is {'text' if what == 'text' else 'numbers'} (")
    assert "but" in said  # the rule
    assert "name another column." in said  # the remedy
    assert "4711" not in said
    assert paying["ledger"].left("d") == 1
    assert [entry.kind for entry in paying["ledger"].history("d")] == ["grant"]


@pytest.mark.parametrize("opener", every(DECLARING))
def test_the_right_type_is_read(opener: str, tmp_path: Path) -> None:
    columns = {"answer": ["yes", "maybe"], "truth": TRUTHS, "whole": WHOLE}
    if opener == "PostgreSQL":
        columns = {"answer": ["yes", "maybe"], "whole": WHOLE}
    source = DECLARING[opener](columns, tmp_path)
    for name, test in (("answer", LABELS), ("truth", NUMBERS), ("whole", NUMBERS), ("truth", CODES), ("whole", CODES)):
        if name in columns:
            wanted = engines.total(test.score, [*columns[name]])
            assert engines.total(test.score, source, column=name) == wanted, name


NESTED: dict[str, Any] = {
    "Arrow list": lambda _: pa.table({"x": [[1.0], [2.0]]}),
    "Arrow struct": lambda _: pa.table({"x": [{"a": 1}, {"a": 2}]}),
    "Arrow dates": lambda _: pa.table({"x": pa.array([1, 2], pa.date32())}),
    "polars list": lambda _: pl.DataFrame({"x": [[1.0], [2.0]]}),
    "polars struct": lambda _: pl.DataFrame({"x": [{"a": 1}, {"a": 2}]}),
    "polars dates": lambda _: pl.DataFrame({"x": pl.Series([1, 2]).cast(pl.Date)}),
    "pandas of Arrow lists": lambda _: pd.DataFrame({"x": pd.array([[1], [2]], pd.ArrowDtype(pa.list_(pa.int64())))}),
    "pandas dates": lambda _: pd.DataFrame({"x": pd.to_datetime(["2024-01-01", "2024-01-02"])}),
    "pandas categories of dates": lambda _: pd.DataFrame(
        {"x": pd.Categorical(pd.to_datetime(["2024-01-01", "2024-01-02"]))}
    ),
    "Parquet lists": lambda folder: _parquet({"x": [[1.0], [2.0]]}, folder),
    "Feather structs": lambda folder: _feather({"x": [{"a": 1}, {"a": 2}]}, folder),
    "DuckDB lists": lambda folder: _duckdb({"x": [[1.0], [2.0]]}, folder),
    "DuckDB dates": lambda folder: _duckdb({"x": pa.array([1, 2], pa.date32())}, folder),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("name", NESTED)
def test_nested_columns_and_dates_are_refused_by_name(name: str, paying: dict[str, Any], tmp_path: Path) -> None:
    for test in (NUMBERS, LABELS, CODES):
        with pytest.raises(InvalidData, match=r"Column 'x' has (d?type|type) .*\. Pass numbers, or the labels"):
            test.run(NESTED[name](tmp_path), column="x", **paying)
        assert paying["ledger"].left("d") == 1
        for file in tmp_path.glob("a.*"):
            file.unlink()


def _objects(values: list[Any]) -> Any:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


UNDECLARING: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "array of objects": _objects,
    "pandas": lambda values: pd.Series(_objects(values), dtype=object),
    "pandas categories": lambda values: pd.Series(_objects(values), dtype="category"),
    "pandas categories, listed": lambda values: pd.Series(
        pd.Categorical(values, categories=pd.Index(_objects([0, 1, "x", "y", 2.5]), dtype=object))
    ),
    "polars": lambda values: pl.Series(values, dtype=pl.Object),
    "Arrow": lambda values: pa.nulls(len(values)),
}


@pytest.mark.parametrize("name", UNDECLARING)
def test_where_nothing_is_declared_no_record_is_refused(name: str) -> None:
    """Also where a library derives a type from the records, as pandas does of categories."""
    for values in ([0, 1], [0, "x"], ["x", "y"], ["x", 2.5], [True, False], [None, None]):
        for test in (NUMBERS, LABELS, CODES):
            assert test.run(UNDECLARING[name](values)).private, values
