"""An order is that of times and numbers, wherever it lies; texts are refused unless they sort as what they say."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privatest as pt
from privatest.errors import InvalidData
from tests.engines.openers import FRAMES
from tests.engines.warehouses import SPARK, WAREHOUSES

RATES = ("bernoulli(0.2)", "bernoulli(0.8)")
DAYS = [datetime.date(2026, 1, 1) + datetime.timedelta(3 * i) for i in range(40)]
CHANGE = 20
SHUFFLED = np.random.default_rng(1).permutation(len(DAYS)).tolist()


def _dressed(told: Callable[[int, datetime.date], Any]) -> list[Any]:
    return [told(i, day) for i, day in enumerate(DAYS)]


SORTING: dict[str, list[Any]] = {
    "days": _dressed(lambda _, day: day.isoformat()),
    "days, short": _dressed(lambda _, day: f"{day:%Y%m%d}"),
    "times": _dressed(lambda _, day: f"{day}T10:30"),
    "times with a blank": _dressed(lambda _, day: f"{day} 10:30:00"),
    "fractions of some": _dressed(lambda i, _: f"2026-01-01T00:00:{i:02}{'.5' * (i % 2)}"),
    "Z": _dressed(lambda _, day: f"{day}T10:30:00Z"),
    "hours": _dressed(lambda i, _: f"10:{i:02}"),
    "weeks": _dressed(lambda i, _: f"2026-W{i + 1:02}"),
    "months": _dressed(lambda i, _: f"{2026 + i // 12}-{i % 12 + 1:02}"),
    "some missing": _dressed(lambda i, day: None if i > 37 else day.isoformat()),
}
MISLEADING: dict[str, list[Any]] = {
    "day first": _dressed(lambda _, day: f"{day:%d/%m/%Y}"),
    "month first": _dressed(lambda _, day: f"{day:%m/%d/%Y}"),
    "year, day, month": _dressed(lambda _, day: f"{day:%Y-%d-%m}"),
    "a time zone": _dressed(lambda _, day: f"{day}T10:30:00+02:00"),
    "two time zones": _dressed(lambda i, day: f"{day}T10:30:00+0{i % 2}:00"),
    "Z behind fractions of some": _dressed(lambda i, _: f"2026-01-01T00:00:{i:02}{'.5' * (i % 2)}Z"),
    "T and blanks": _dressed(lambda i, day: f"{day}{'T '[i % 2]}10:30:00"),
    "one that is none": _dressed(lambda i, day: "unknown" if i == 7 else day.isoformat()),
    "names": _dressed(lambda i, _: f"step {i}"),
}
NUMBERS = {"numbers": _dressed(lambda i, _: str(7 * i))}


def _cast(frame: str, kind: Any) -> Callable[[Any, Path], Any]:
    def made(columns: Any, _: Path) -> Any:
        if frame == "polars":
            return pl.DataFrame(columns).with_columns(pl.col("when").cast(kind))
        return pd.DataFrame(columns).astype({"when": kind})

    return made


def _dictionary(columns: Any, _: Path) -> pa.Table:
    return pa.table({"x": columns["x"], "when": pa.array(columns["when"], pa.string()).dictionary_encode()})


TABLES: dict[str, Callable[[Any, Path], Any]] = {
    **FRAMES,
    **WAREHOUSES,
    "pandas, objects": _cast("pandas", object),
    "pandas, categories": _cast("pandas", "category"),
    "pandas, Arrow": _cast("pandas", "string[pyarrow]"),
    "polars, categories": _cast("polars", pl.Categorical),
    "Arrow, dictionary": _dictionary,
}
TYPED = [name for name in TABLES if name != "CSV"]


def _marked(names: list[str]) -> list[Any]:
    return [pytest.param(name, marks=SPARK * (name == "Spark")) for name in names]


def _columns(order: list[Any]) -> dict[str, list[Any]]:
    return {"x": [float(i >= CHANGE) for i in SHUFFLED], "when": [order[i] for i in SHUFFLED]}


def _index(data: Any, **words: Any) -> int | None:
    return pt.detect_change(data, *RATES, epsilon=50, assume_change=True, column="x", order="when", **words).index


def _cases(name: str, cases: dict[str, list[Any]], few: tuple[str, ...]) -> dict[str, list[Any]]:
    """All of them; of a cluster, which takes its time, what it does in a way of its own."""
    return {case: cases[case] for case in few} if name == "Spark" else cases


@pytest.mark.parametrize("name", [name for name in TABLES if name not in WAREHOUSES])
def test_texts_of_one_iso_form_are_an_order(name: str, tmp_path: Path) -> None:
    for number, (case, order) in enumerate(SORTING.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert _index(TABLES[name](_columns(order), folder)) == CHANGE, case


@pytest.mark.parametrize("name", _marked(list(TABLES)))
def test_other_texts_are_refused_before_the_charge_unless_they_are_meant(name: str, tmp_path: Path) -> None:
    ledger = pt.Ledger(tmp_path / "ledger.db")
    ledger.grant("may", epsilon=1000)
    # A database has types for dates and times, so every text is refused there.
    cases = {
        **MISLEADING,
        **(NUMBERS if name in TYPED else {}),
        **({"days": SORTING["days"]} if name in WAREHOUSES else {}),
    }
    few = ("day first", "days")
    for number, (case, order) in enumerate(_cases(name, cases, few).items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        paying = {"ledger": ledger, "dataset": "may", "request": case}
        data = TABLES[name](_columns(order), folder)
        with pytest.raises(InvalidData, match=r"orders by text.*text_order"):
            _index(data, **paying)
        assert ledger.spent("may") == 0, case
        if name != "Arrow stream":
            expected = sorted(range(len(DAYS)), key=lambda i: order[i].encode())
            meant = _index(pt.data.read_as(data, text_order=True), rng=np.random.default_rng(2))
            by_hand = [float(i >= CHANGE) for i in expected]
            plain = pt.detect_change(by_hand, *RATES, epsilon=50, assume_change=True, rng=np.random.default_rng(2))
            assert meant == plain.index, case


def test_numbers_in_csv_files_are_an_order_and_numbers_among_texts_are_none(tmp_path: Path) -> None:
    for number, (order, fine) in enumerate(
        [
            (NUMBERS["numbers"], True),
            (["-1.5e0", *NUMBERS["numbers"][1:]], True),
            (["-Infinity", *NUMBERS["numbers"][1:-2], "inf", "NaN"], True),
            (["", *SORTING["days"][1:]], False),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        data = TABLES["CSV"](_columns(order), folder)
        if fine:
            assert _index(data) == CHANGE
        else:  # a text in quotes
            with pytest.raises(InvalidData, match="orders by text"):
                _index(data)


def _time(second: int, zone: Any) -> datetime.datetime:
    return datetime.datetime(2026, 1, 1, 0, 0, second, tzinfo=zone)


OBJECTS: dict[str, tuple[Callable[[int], Any], bool]] = {
    "days": (lambda i: DAYS[i], True),
    "times": (lambda i: _time(i, None), True),
    "fractions": (lambda i: Fraction(i, 3), True),
    "numbers and texts": (lambda i: i if i % 2 else str(i), False),
    "periods": (lambda i: pd.Period(DAYS[i], "D"), False),
    "spans": (lambda i: datetime.timedelta(i), False),
    "tuples": (lambda i: (i,), False),
    "times of which some have a zone": (lambda i: _time(i, (None, datetime.UTC)[i % 2]), False),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_objects_are_an_order_if_all_are_of_one_kind_that_sorts(kind: str) -> None:
    """Those of no rule would all be equal, and the records among them sorted by what they are."""
    told, fine = OBJECTS[kind]
    frame = pd.DataFrame(_columns([None] * len(DAYS)))
    frame["when"] = pd.Series([told(i) for i in SHUFFLED], dtype=object)
    if fine:
        assert _index(frame) == CHANGE
    else:
        with pytest.raises(InvalidData, match="orders by text"):
            _index(frame)
