"""Every source gives the same integers for the same records, odd ones included: totals, blocks, cells, units, order.

The expected integers are computed record by record in plain Python, from the rules alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest import engines
from privatest.errors import InvalidData
from tests.contracts.cases import CASES, Case, by_hand
from tests.engines import random_cases
from tests.engines.catalogue import first_rows
from tests.engines.openers import FRAMES, OPENERS, SINGLE
from tests.engines.warehouses import SPARK, WAREHOUSES

ELSEWHERE = {name: WAREHOUSES[name] for name in ("DuckDB", "PostgreSQL", "Spark")}
TABLES = {**FRAMES, **ELSEWHERE}
EVERY = {**OPENERS, **ELSEWHERE}
TIED = "equal days on both sides of a block's end"
# The first cases have a score of each kind. Spark takes its time: it is asked for fewer.
KINDS = 7
FEWER = {"Spark": (3, 10)}


def named(openers: dict[str, Any]) -> list[Any]:
    """Each opener with some cases for `make test`, and with the others for `make exhaustive`."""
    found = []
    for name in openers:
        marks = SPARK if name == "Spark" else []
        few, last = FEWER.get(name, (KINDS, len(CASES)))
        found.append(pytest.param(name, range(few), id=name, marks=marks))
        found.append(pytest.param(name, range(few, last), id=f"{name}, others", marks=[*marks, pytest.mark.exhaustive]))
    return found


ODD = [None, math.nan, math.inf, -math.inf]


def findings(case: Case, opener: str, folder: Path) -> dict[str, Any]:
    """Everything an engine says about the records of a case."""
    score = case.score
    words = {} if opener in SINGLE else {"column": "x"}
    records = engines.open_source(EVERY[opener](case.columns, folder), **words)
    records.check(score)
    return {"count": records.count(), "total": records.total(score), "cells": records.histogram(score.cells)}


def ordered_findings(case: Case, opener: str, folder: Path) -> dict[str, Any]:
    """What an engine says about the records in the order of a column, and about units."""
    score, source = case.score, TABLES[opener](case.columns, folder)
    if opener == "Arrow stream":  # can be read once only
        source = source.read_all()
    ordered = engines.open_source(source, column="x", order="when")
    cut = {"unit": "who", "max_rows_per_unit": case.most}
    units = engines.open_source(source, column="x", **cut)
    found = {
        "blocks": engines.block_totals(score, source, case.block, "x", order="when", start=case.start),
        "total": units.total(score),
    }
    need = engines.Need(case.most, ordered=True)
    texts = pt.data.read_as(source, text_order=True)  # days are texts of no ISO form
    days = engines.open_for(need, texts, column="x", unit="who", order="day")
    found["placed blocks by day"] = refusable(lambda: days.block_totals(score, case.block, case.start))
    found |= {
        "series": ordered.series(score).tolist(),
        "values": told(ordered, len(case.columns["when"])),
        "values by day": told(engines.open_source(source, column="x", order="day"), len(case.columns["day"])),
        "count": units.count(),
        "cells": units.histogram(score.cells, first_rows),
    }
    return {**found, "placed series by day": days.series(score).tolist()}


def told(records: Any, n: int) -> list[Any]:
    """The values of the order, the last one first."""
    assert records.has_order_values
    return records.order_values(range(n - 1, -1, -1))[::-1]


def refusable(ask: Callable[[], list[int]]) -> list[int] | str:
    """The blocks, or that a tie leaves them open."""
    try:
        return ask()
    except InvalidData as error:
        return TIED if "does not order the records" in str(error) else str(error)


@cache
def expected(case: Case) -> dict[str, Any]:
    scores = [by_hand(case.score, record) for record in case.columns["x"]]
    return {"count": len(scores), "total": sum(scores), "cells": cells_by_hand(case, case.columns["x"])}


def cells_by_hand(case: Case, records: list[Any]) -> list[int]:
    return tally([cell_by_hand(case, record) for record in records], case.score.cells.count + 1)


def cell_by_hand(case: Case, record: Any) -> int:
    cells: Any = case.score.cells
    if cells.kind == "labels":
        return cells.index_of(record)
    return int(cells.index(np.array([math.nan if record is None else record]))[0])


def tally(found: list[int], size: int) -> list[int]:
    counts = [0] * size
    for one in found:
        counts[one] += 1
    return counts


@cache
def expected_in_order(case: Case) -> dict[str, Any]:
    rows = list(zip(case.columns["when"], case.columns["x"], case.columns["who"], strict=True))
    scores = [by_hand(case.score, x) for _, x, _ in sorted(rows, key=lambda row: row[0])]
    ends = range(case.start + case.block, len(scores) + 1, case.block)
    units: dict[Any, list[int]] = {}
    unit_cells: dict[Any, list[int]] = {}
    for _, x, who in rows:
        if who is not None:
            units.setdefault(who, []).append(by_hand(case.score, x))
            unit_cells.setdefault(who, []).append(cell_by_hand(case, x))
    exact = sum(Fraction(min(len(own), case.most) * sum(own), len(own)) for own in units.values())
    first_cells = [cell for own in unit_cells.values() for cell in sorted(own)[: case.most]]
    by_day = placed_by_day(case)
    return {
        "blocks": [sum(scores[end - case.block : end]) for end in ends],
        "series": scores,
        "values": sorted(case.columns["when"]),
        "values by day": sorted(case.columns["day"], key=lambda day: (day is None, day)),
        "total": math.floor(exact + Fraction(1, 2)),
        "count": sum(min(len(own), case.most) for own in units.values()),
        "cells": tally(first_cells, case.score.cells.count + 1),
        "placed series by day": [score for _, score in by_day],
        "placed blocks by day": blocks_by_hand(by_day[case.start :], case.block),
    }


def placed_by_day(case: Case) -> list[tuple[Any, int]]:
    """(day, score) of all rows in order, missing days last: after a unit's first rows, and of nobody, the odd score."""
    units: dict[Any, list[tuple[Any, int]]] = {}
    for day, x, who in zip(*(case.columns[name] for name in ("day", "x", "who")), strict=True):
        units.setdefault(who, []).append(((day is None, day or 0), by_hand(case.score, x)))
    found = []
    for who, own in units.items():
        counting = 0 if who is None else case.most
        found += [(day, score if i < counting else case.score.odd_score) for i, (day, score) in enumerate(sorted(own))]
    return sorted(found)


def blocks_by_hand(rows: list[tuple[Any, int]], block: int) -> list[int] | str:
    ends = range(block, len(rows) + 1, block)
    if any(rows[end - 1][0] == rows[end][0] for end in ends[:-1]):
        return TIED
    return [sum(score for _, score in rows[end - block : end]) for end in ends]


@pytest.mark.parametrize(("opener", "numbers"), named(EVERY))
def test_random_cases_have_the_same_totals(opener: str, numbers: range, tmp_path: Path) -> None:
    for number in numbers:
        folder = tmp_path / str(number)
        folder.mkdir()
        assert findings(CASES[number], opener, folder) == expected(CASES[number]), number


@pytest.mark.parametrize(("opener", "numbers"), named(TABLES))
def test_random_cases_have_the_same_blocks_and_units(opener: str, numbers: range, tmp_path: Path) -> None:
    for number in numbers:
        folder = tmp_path / str(number)
        folder.mkdir()
        found, wanted = ordered_findings(CASES[number], opener, folder), expected_in_order(CASES[number])
        assert found == {key: wanted[key] for key in found}, number


ODD_TABLES = [("duckdb", 6, 20), ("postgres", 6, 20), ("spark", 2, 6)]


@pytest.mark.parametrize(
    ("engine", "numbers"),
    [
        pytest.param(engine, numbers, id=f"{engine}{name}", marks=[*(SPARK if engine == "spark" else []), *marks])
        for engine, few, last in ODD_TABLES
        for numbers, name, marks in ((range(few), "", []), (range(few, last), ", others", [pytest.mark.exhaustive]))
    ],
)
def test_random_tables_of_odd_types_are_what_plain_lists_are(engine: str, numbers: range) -> None:
    """Units, orders and missing values together; more of them: python -m tests.engines.random_cases --cases 300."""
    wrong = [str(found) for found in random_cases.differences(engine, numbers) if found is not None]
    assert not wrong, "\n".join(wrong)


def records(rng: np.random.Generator) -> list[float | None]:
    plain: list[float | None] = [float(x) for x in np.round(rng.normal(1, 2, 300), 2)]
    plain += [float(k) for k in rng.integers(-1, 12, 100)] + [1e300, -1e300, 5e-324, 2.0**60]
    mixed = plain + ODD
    return [mixed[i] for i in rng.permutation(len(mixed))]
