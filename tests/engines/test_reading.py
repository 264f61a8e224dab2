"""Texts are read as was said before, alike from every source; numbers stay; no record raises anything."""

from __future__ import annotations

import math
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
from privatest.engines.sources import read_as
from privatest.errors import InvalidData, InvalidInput, RequestConflict
from privatest.hypotheses import make_pair
from privatest.scores import clamped_score
from tests.engines.catalogue import HOSTILE
from tests.engines.warehouses import duckdb_address

NORMAL = "normal(0, 1)", "normal(1, 1)"
ANSWERS = {"yes": 0.2, "No": 0.3, "1": 0.5}, {"yes": 0.5, "No": 0.3, "1": 0.2}
NUMBERS = clamped_score(make_pair(*NORMAL), (-1, 1))
LABELS = clamped_score(make_pair(*ANSWERS), (-1, 1))
WRITTEN = ["1,5", "-0,25", "0.5", " 2 ", "NA", " - ", "", "x", "1.000,5", "1,5,5", "1e-1", None]
MEANT = [1.5, -0.25, math.nan, 2.0, *[math.nan] * 6, 0.1, math.nan]


def _csv(values: list[Any], folder: Path) -> Path:
    (folder / "a.csv").write_text("x,y\n" + "".join(f"{'' if v is None else _quoted(v)},0\n" for v in values))
    return folder / "a.csv"


def _quoted(value: str) -> str:
    return f'"{value}"'


def _parquet(values: list[Any], folder: Path) -> Path:
    pa.parquet.write_table(pa.table({"x": pa.array(values, pa.string())}), folder / "a.parquet", row_group_size=5)
    return folder / "a.parquet"


def _feather(values: list[Any], folder: Path) -> Path:
    pa.feather.write_feather(pa.table({"x": pa.array(values, pa.string())}), folder / "a.feather")
    return folder / "a.feather"


TABLES: dict[str, Callable[[list[Any], Path], Any]] = {
    "CSV": _csv,
    "Parquet": _parquet,
    "Feather": _feather,
    "pandas objects": lambda values, _: pd.DataFrame({"x": pd.Series(values, dtype=object)}),
    "pandas text": lambda values, _: pd.DataFrame({"x": pd.Series(values, dtype="string")}),
    "pandas categories": lambda values, _: pd.DataFrame({"x": pd.Categorical(values)}),
    "polars": lambda values, _: pl.DataFrame({"x": values}, schema={"x": pl.String}),
    "Arrow": lambda values, _: pa.table({"x": pa.array(values, pa.string())}),
}
SINGLE: dict[str, Callable[[list[Any], Path], Any]] = {
    "list": lambda values, _: list(values),
    "lines": lambda values, _: pt.data.read_lines([v or "" for v in values]),
    "array": lambda values, _: np.array(values, dtype=object),
}
EVERY = {**TABLES, **SINGLE}


def opened(opener: str, values: list[Any], folder: Path, **how: Any) -> engines.Records:
    where = {"column": "x"} if opener in TABLES else {}
    return engines.open_source(read_as(EVERY[opener](values, folder), **how), **where)


@pytest.mark.parametrize("opener", EVERY)
def test_a_decimal_comma_is_read_where_it_was_said(opener: str, tmp_path: Path) -> None:
    records = opened(opener, WRITTEN, tmp_path, decimal=",", missing=["NA", "-"])
    records.check(NUMBERS)
    assert records.count() == len(WRITTEN)
    assert records.total(NUMBERS) == int(NUMBERS.of_numbers(MEANT).sum())
    assert records.series(NUMBERS).tolist() == NUMBERS.of_numbers(MEANT).tolist()
    assert records.histogram(NUMBERS.cells)[-1] == sum(map(math.isnan, MEANT))


def test_a_text_that_means_missing_may_be_a_label_no_more(tmp_path: Path) -> None:
    for opener in EVERY:
        found = opened(opener, ["1", "yes"], tmp_path, missing=["1"])
        assert found.histogram(LABELS.cells)[-1] == 1, opener


def test_no_record_raises_and_none_is_quoted(recwarn: pytest.WarningsRecorder) -> None:
    for score in (NUMBERS, LABELS):
        records = engines.open_source(read_as(list(HOSTILE), decimal=",", missing=["NA"], fold_case=True))
        records.check(score)
        assert records.histogram(score.cells)[-1] == len(HOSTILE) - 1  # "1" is a number, and a label
    assert not recwarn.list


@pytest.mark.parametrize("opener", EVERY)
def test_neighbours_never_differ_in_whether_they_raise(opener: str, tmp_path: Path) -> None:
    test = pt.design(*NORMAL, epsilon=1, n=3)
    where = {"column": "x"} if opener in TABLES else {}
    for other in ("NA", "1,5", "0.5", "x", "", None, "9" * 400, "\udcff" if opener == "list" else "ÿ", "1" + "0" * 309):
        data = read_as(EVERY[opener](["0,5", "1,5", other], tmp_path), decimal=",")
        assert test.run(data, **where).private


def test_labels_that_coincide_are_refused_before_any_charge(tmp_path: Path) -> None:
    ledger = pt.Ledger(tmp_path / "ledger.db", create=True)
    ledger.grant("d", epsilon=1)
    test = pt.design({"a": 0.4, "A ": 0.6}, {"a": 0.6, "A ": 0.4}, epsilon=1, n=2)
    for source in (["a", "b"], TABLES["CSV"](["a", "b"], tmp_path), TABLES["Parquet"](["a", "b"], tmp_path)):
        where = {} if isinstance(source, list) else {"column": "x"}
        with pytest.raises(InvalidInput, match="the labels 'a' and 'A ' differ in case or blanks only"):
            test.run(read_as(source, fold_case=True), **where, ledger=ledger, dataset="d", request="r")
    assert ledger.left("d") == 1


def test_databases_refuse_and_say_what_to_do(tmp_path: Path) -> None:
    address = duckdb_address({"x": ["YES", "no"]}, tmp_path)
    with pytest.raises(InvalidData, match=r"in a database or on a cluster.*name a view"):
        engines.open_source(read_as(address, fold_case=True), column="x")


def test_how_the_data_are_read_is_part_of_the_request(tmp_path: Path) -> None:
    ledger = pt.Ledger(tmp_path / "ledger.db", create=True)
    ledger.grant("d", epsilon=1)
    test, path = pt.design(*NORMAL, epsilon=1, n=2), _csv(["0,5", "NA"], tmp_path)
    paying: dict[str, Any] = {"column": "x", "ledger": ledger, "dataset": "d", "request": "r"}
    first = test.run(read_as(path, decimal=","), **paying)
    again = test.run(pt.data.open_once(read_as(path, decimal=",")), **paying)
    assert again.replayed
    assert again.receipt is not None
    assert again.receipt.same_source  # the same file, whatever it is wrapped in
    assert again.statistic == first.statistic
    for other in (path, read_as(path, decimal=",", missing=["NA"]), read_as(path, delimiter=",")):
        with pytest.raises(RequestConflict):
            test.run(other, **paying)
    with pytest.raises(RequestConflict, match="decimal ',' then, None now"):
        test.run(path, **paying)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"decimal": ";"}, "decimal=';' must be"),
        ({"decimal": 5}, "decimal=5 must be"),
        ({"missing": [5]}, "missing holds 5"),
        ({"missing": [" "]}, "missing holds ' '"),
        ({"delimiter": "::"}, "delimiter='::' must be one of"),
        ({"fold_case": "yes"}, "fold_case='yes' must be True or False"),
    ],
)
def test_bad_words_are_refused(words: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read_as([1], **words)


def test_fields_are_separated_as_was_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x;y\n1,5;a\nNA;b\n-0,25;c\n;d\n2;e;f\n")
    records = engines.open_source(read_as(tmp_path / "a.csv", decimal=",", missing=["NA"], delimiter=";"), column="x")
    assert records.series(NUMBERS).tolist() == NUMBERS.of_numbers([1.5, math.nan, -0.25, math.nan, math.nan]).tolist()
    plain = engines.open_source(read_as(tmp_path / "a.csv", delimiter=";"), column="y")
    assert plain.count() == 5
    (tmp_path / "b.tsv").write_text("x|y\n0.5|a\n")
    assert engines.open_source(read_as(tmp_path / "b.tsv", delimiter="|"), column="x").total(NUMBERS) == int(
        NUMBERS.of_numbers([0.5]).sum()
    )
    for source in ([1.0], _parquet(["a"], tmp_path), "duckdb:///a.db::t"):
        with pytest.raises(InvalidInput, match=r"delimiter=';' is about CSV files.*Leave it out"):
            engines.open_source(read_as(source, delimiter=";"))
