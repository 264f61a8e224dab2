"""Tables with groups, and estimates in steps: databases and Spark release what memory does, from the same draws."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privatest as pt
from tests.engines.warehouses import SPARK, WAREHOUSES, postgres

ROWS = 240
PLACES = [pytest.param(name, marks=SPARK if name == "Spark" else []) for name in ("DuckDB", "PostgreSQL", "Spark")]


@cache
def table() -> pa.Table:
    """Numbers and labels, odd ones too; groups that are texts and numbers; people with one to five rows."""
    rng = np.random.default_rng(8)
    numbers: list[Any] = rng.normal(0.4, 1, ROWS).tolist()
    numbers[3], numbers[5] = float("nan"), None
    labels: list[Any] = rng.choice(["yes", "no", "it's"], ROWS).tolist()
    labels[5] = None
    arms: list[Any] = rng.choice(["new", "old"], ROWS).tolist()
    arms[7] = None
    columns = {
        "x": (numbers, pa.float64()),
        "label": (labels, pa.string()),
        "arm": (arms, pa.string()),
        "level": (rng.integers(0, 3, ROWS).astype(float).tolist(), pa.float64()),
        "who": (np.sort(rng.integers(0, 100, ROWS)).tolist(), pa.int64()),
    }
    return pa.table({name: pa.array(values, kind) for name, (values, kind) in columns.items()})


@pytest.mark.parametrize("engine", PLACES)
@pytest.mark.parametrize("unit", [{}, {"unit": "who", "max_rows_per_unit": 2}], ids=["rows", "people"])
def test_a_table_with_groups_is_the_same_wherever_the_records_lie(engine: str, unit: Any, tmp_path: Path) -> None:
    """Groups that are texts, and groups that are numbers; a group of nobody, and rows in none of the groups."""
    source, frame = WAREHOUSES[engine](table(), tmp_path), table().to_pandas()
    for column, by, groups, cells in (
        ("x", "arm", ["new", "it's"], {"edges": [-1, 0, 1]}),
        ("label", "arm", ["old", "new"], {"labels": ["yes", "it's"]}),
        ("x", "level", [1, 0], {"between": (-3, 3), "cells": 3}),
    ):
        question: dict[str, Any] = {"column": column, "by": by, "groups": groups, "epsilon": 3, **cells, **unit}
        here, there, again = (
            pt.tabulate(data, rng=np.random.default_rng(seed), **question)
            for data, seed in ((table(), 3), (source, 3), (source, 4))
        )
        assert here.doubled == there.doubled, column
        assert here.doubled != again.doubled
        if not unit:
            of_group = ((frame[by] == groups[0]) & frame[column].notna()).sum()
            assert abs(here.groups[str(groups[0])].counts.sum() - of_group) <= 30


@pytest.mark.parametrize("engine", PLACES)
def test_an_estimate_in_steps_is_the_same_wherever_the_records_lie(engine: str, tmp_path: Path) -> None:
    source = WAREHOUSES[engine](table(), tmp_path)
    for question in ("median", "mean"):
        words: dict[str, Any] = {"between": (-5, 5), "column": "x", "epsilon": 1}
        here, there = (pt.estimate(data, question, rng=np.random.default_rng(3), **words) for data in (table(), source))
        assert here == there


def test_groups_are_taken_from_the_schema_and_never_from_records(tmp_path: Path) -> None:
    """An enumeration of PostgreSQL lists its labels, also those of nobody. What is made from records is refused."""
    url = postgres().new_database("")
    structure = """
        CREATE TYPE arm AS ENUM ('old', 'new', 'nobody'); CREATE DOMAIN arms AS arm;
        CREATE TABLE visits (x double precision, a arm, d arms, t text);
        INSERT INTO visits SELECT i % 3, 'new', 'new', 'new' FROM generate_series(1, 60) AS i;
        INSERT INTO visits VALUES (1, NULL, NULL, NULL);
    """
    postgres().execute(structure, url)
    words: dict[str, Any] = {"column": "x", "edges": [0.5, 1.5], "epsilon": 3}
    for by in ("a", "d"):
        for more in ({}, {"neighbours": "add-remove", "n": 50}):
            made = pt.tabulate(f"{url}::visits", by=by, rng=np.random.default_rng(1), **words, **more)
            assert list(made.groups) == ["old", "new", "nobody"]
            listed = pt.tabulate(
                f"{url}::visits", by=by, groups=list(made.groups), rng=np.random.default_rng(1), **words, **more
            )
            assert made == listed
            assert abs(made.groups["new"].counts.sum() - 60) <= 20
            assert abs(made.groups["nobody"].counts.sum()) <= 20
    arms = pa.array(["new", "old"] * 20).dictionary_encode()
    frame = pa.table({"x": pa.array([1.0] * 40), "a": arms})
    pq.write_table(frame, tmp_path / "arms.parquet")
    duck = WAREHOUSES["DuckDB"](frame, tmp_path)
    ledger = pt.Ledger(tmp_path / "ledger.db")
    ledger.grant("visits", epsilon=3)
    for data, by in (
        (f"{url}::visits", "t"),
        (frame, "a"),
        (tmp_path / "arms.parquet", "a"),
        (frame.to_pandas(), "a"),
        (duck, "a"),
    ):
        with pytest.raises(pt.errors.InvalidInput, match=r"groups is missing.*List those"):
            pt.tabulate(data, by=by, ledger=ledger, dataset="visits", request="r", **words)
    assert ledger.spent("visits") == 0
