"""Tables with groups, and estimates in steps: databases and Spark release what memory does, from the same draws."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import privatest as pt
from tests.engines.warehouses import SPARK, WAREHOUSES

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
