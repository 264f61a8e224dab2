"""Estimates and groups, asked where the records lie: databases and Spark release what memory does, from the same draws.

Odd records, units with more rows than are used, bent scores, bins of a first step and both groups of one table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pytest

import privatest as pt
from privatest.errors import PrivatestError
from privatest.estimates.estimate import EstimateDesign
from privatest.estimates.groups import GroupsDesign
from tests.engines.warehouses import SPARK, WAREHOUSES

ROWS = 240
ELSEWHERE = ("DuckDB", "PostgreSQL", "Spark")
ASKED: dict[str, dict[str, Any]] = {
    "rate": {"family": "bernoulli(?)"},
    "count": {"family": "poisson(?)", "between": (0, 10)},
    "mean": {"family": "normal(mean=?, sd=1)", "between": (-3, 3)},
    "far": {"family": "normal(mean=?, sd=1)", "between": (-400, 400)},
    "label": {"family": "categorical(yes=?)"},
}


@cache
def table() -> pa.Table:
    """A column for each question, odd records in all; people with one to five rows, each in one group."""
    rng = np.random.default_rng(8)
    who = np.sort(rng.integers(0, 100, ROWS))
    columns: dict[str, Any] = {
        "rate": rng.integers(0, 2, ROWS).astype(float),
        "count": rng.poisson(3, ROWS).astype(float),
        "mean": rng.normal(0.4, 1, ROWS),
        "far": rng.normal(123.4, 1, ROWS),
        "label": rng.choice(["yes", "no", "it's"], ROWS).tolist(),
        "who": who.astype(np.int64),
        "arm": np.where(who % 2, "new", "old").tolist(),
    }
    for name in ("rate", "count", "mean", "far"):
        columns[name][[3, 77]] = np.nan
        columns[name] = [None if i == 5 else x for i, x in enumerate(columns[name].tolist())]
        columns[name][9] = 0.5 if name != "far" else 1e300
    columns["label"][5] = None
    types = {"who": pa.int64(), "label": pa.string(), "arm": pa.string()}
    return pa.table({name: pa.array(column, types.get(name, pa.float64())) for name, column in columns.items()})


@cache
def somewhere(engine: str, folder: Path) -> Any:
    return WAREHOUSES[engine](table(), folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("estimates")


@cache
def estimate_of(question: str, rows: int) -> Any:
    n = ROWS if rows == 1 else len(kept(rows))
    epsilon = 4 if question == "far" else 1
    return pt.design_estimate(**ASKED[question], epsilon=epsilon, n=n, max_rows_per_unit=rows)


@cache
def kept(rows: int) -> list[int]:
    """Which person's row each is that counts: how many there are, at most so many of one person."""
    counts = pd.Series(table()["who"].to_pylist()).value_counts().clip(upper=rows)
    return [who for who, count in counts.items() for _ in range(count)]


@pytest.fixture(autouse=True, scope="module")
def releases_are_kept() -> Iterator[None]:
    """Each is made once from noisy numbers: what differs between places, and takes no time, is how those come about."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in (EstimateDesign, GroupsDesign):
            patch.setattr(kind, "release", released_once(kind.release))
        yield


def released_once(release: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[Any, Any] = {}

    def made(design: Any, *noisy: Any, **words: Any) -> Any:
        key = repr((design.to_dict(), noisy, words))
        if key not in known:
            known[key] = release(design, *noisy, **words)
        return known[key]

    return made


def said(release: Any) -> dict[str, Any]:
    found: dict[str, Any] = {name: value for name, value in release.to_dict().items() if name not in ("receipt", "at")}
    return found


def places() -> list[Any]:
    return [pytest.param(name, marks=SPARK if name == "Spark" else []) for name in ELSEWHERE]


@pytest.mark.parametrize("engine", places())
@pytest.mark.parametrize("rows", [1, 2])
def test_an_estimate_is_the_same_wherever_the_records_lie(engine: str, rows: int, folder: Path) -> None:
    source = somewhere(engine, folder)
    for question in ASKED:
        if rows > 1 and question == "label":
            continue
        design, words = estimate_of(question, rows), {} if rows == 1 else {"unit": "who"}
        assert (design.location is not None) == (question == "far")
        here, there = (
            design.run(data, column=question, rng=np.random.default_rng(rows), **words) for data in (table(), source)
        )
        assert said(here) == said(there), question
        other = design.run(source, column=question, rng=np.random.default_rng(rows + 9), **words)
        assert said(other) != said(here), question  # a check of nothing would not see this


@pytest.mark.parametrize("engine", places())
def test_two_groups_are_the_same_wherever_the_records_lie(engine: str, folder: Path) -> None:
    """Of a table for each, and of one table."""
    arms = [table().filter(pa.compute.equal(table()["arm"], name)) for name in ("new", "old")]
    both = [WAREHOUSES[engine](arm, folder) for arm in arms]
    for question, words in (("rate", {"success": 1}), ("mean", {"above": 0.25}), ("label", {"success": "it's"})):
        asked: dict[str, Any] = {"column": question, "epsilon": 1, **words}
        here, there = (pt.compare_groups(*data, rng=np.random.default_rng(2), **asked) for data in (arms, both))
        assert said(here) == said(there), question
    cut: dict[str, Any] = {
        "group": "arm",
        "column": "rate",
        "unit": "who",
        "max_rows_per_unit": 2,
        "epsilon": 1,
        "success": 1,
    }
    source = somewhere(engine, folder)
    here, there = (pt.compare_groups(data, rng=np.random.default_rng(3), **cut) for data in (table(), source))
    assert said(here) == said(there)
    assert sum(here.n) == len(kept(2))
    assert here.names == ("new", "old")


@pytest.mark.parametrize("engine", places())
def test_a_person_in_both_groups_is_refused_there_as_here(engine: str, folder: Path) -> None:
    moved = table().set_column(table().column_names.index("arm"), "arm", pa.array(["new", "old"] * (ROWS // 2)))
    for data in (moved, WAREHOUSES[engine](moved, folder)):
        with pytest.raises(PrivatestError, match=r"both|one group"):
            pt.compare_groups(data, group="arm", column="rate", unit="who", max_rows_per_unit=2, epsilon=1)
