"""One person, many rows: all of them count, scaled to the rows that a person may have; and order by a column."""

from __future__ import annotations

import datetime
import io
import math
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privatest as pt
from privatest import engines
from privatest.engines.records import Surplus
from privatest.errors import InvalidData
from privatest.scores import DyadicCells, Score

CELLS = DyadicCells(0, 0, 10)  # the score of k is k, for k = 0 .. 9
DIGITS = Score(CELLS, np.append(np.arange(10), 3), Fraction(0), Fraction(1), np.arange(1), np.ones(1), np.ones(1))


def frame(rows: list[tuple[Any, Any]]) -> pa.Table:
    return pa.table({"who": pa.array([who for who, _ in rows]), "x": pa.array([x for _, x in rows], pa.float64())})


def summed(rows: list[tuple[Any, Any]], most: int) -> int:
    return engines.total(DIGITS, frame(rows), column="x", unit="who", max_rows_per_unit=most)


def by_hand(rows: list[tuple[Any, Any]], most: int) -> Fraction:
    """The sum of all persons' digits, each person's scaled to ``most`` rows."""
    own: dict[Any, list[int]] = {}
    for who, x in rows:
        if who is not None:
            own.setdefault(who, []).append(3 if x is None else int(x))
    return sum((Fraction(min(len(xs), most) * sum(xs), len(xs)) for xs in own.values()), Fraction(0))


def nearest(number: Fraction) -> int:
    return math.floor(number + Fraction(1, 2))


def test_every_row_of_a_unit_counts_alike() -> None:
    rows = [("ann", 1), ("ann", 9), ("ann", 2), ("bob", 4)]
    assert summed(rows, 1) == 4 + 4
    assert summed(rows, 2) == 8 + 4
    assert summed(rows, 3) == 12 + 4
    assert summed([("ann", 1), (None, 9), ("ann", None)], 2) == 1 + 3  # no unit: not counted; no number: odd
    assert summed([("ann", 1), ("ann", None)], 1) == 2


@settings(max_examples=40)
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=14),
    others=st.lists(st.integers(0, 9), max_size=6),
    most=st.integers(1, 3),
    shuffle=st.randoms(use_true_random=False),
)
def test_one_unit_never_decides_about_another(
    rows: list[tuple[int, int]], others: list[int], most: int, shuffle: Any
) -> None:
    """All rows of one unit replaced: the total moves by an integer within that unit's own reach, others do not move."""
    without = [row for row in rows if row[0] != 0]
    mine, theirs = [row for row in rows if row[0] == 0], [(0, x) for x in others]
    found = [summed([*without, *own], most) for own in (mine, theirs)]
    assert found == [nearest(by_hand([*without, *own], most)) for own in (mine, theirs)]
    for own, total in zip((mine, theirs), found, strict=True):
        assert 0 <= total - summed(without, most) <= 9 * min(len(own), most)
    mixed = list(rows)
    shuffle.shuffle(mixed)
    assert summed(mixed, most) == summed(rows, most)


def test_totals_of_units_beyond_64_bits_are_exact() -> None:
    table = np.array([2**62, 2**62 - 1, 0])
    wide = Score(DyadicCells(0, 0, 2), table, Fraction(0), Fraction(1), np.array([0]), np.ones(1), np.ones(1))
    rows = [(who, x) for who in range(5) for x in (0.0, 1.0)]
    assert engines.total(wide, frame(rows), column="x", unit="who", max_rows_per_unit=2) == 5 * (2**63 - 1)
    assert engines.total(wide, frame(rows), column="x", unit="who") == nearest(Fraction(5 * (2**63 - 1), 2))


def test_rows_of_persons_with_too_many_are_drawn_and_nothing_else_is() -> None:
    rows = [("ann", 1), ("ann", 9), ("ann", 9), ("bob", 4), ("cid", 0), ("cid", 3), ("dan", 9), ("dan", 9), ("dan", 1)]
    records = engines.open_source(frame(rows), column="x", unit="who", max_rows_per_unit=2)
    seen = []

    def last(table: Any, most: int) -> Any:
        seen.append(table.tolist())
        return table[:, -most:]

    assert records.histogram(CELLS, last) == [1, 0, 0, 1, 1, 0, 0, 0, 0, 4, 0]
    assert seen == [[[1, 9, 9], [1, 9, 9]]]
    assert records.count() == 2 + 1 + 2 + 2
    for ask in (
        lambda: records.series(DIGITS),
        lambda: records.block_totals(DIGITS, 1),
        lambda: records.check_ends(range(1)),
    ):
        with pytest.raises(InvalidData, match="the rows of a person are one sum"):
            ask()


def test_the_tables_of_persons_do_not_depend_on_the_order_of_rows() -> None:
    rng = np.random.default_rng(4)
    rows = [(who, int(x)) for who in range(60) for x in rng.integers(0, 10, 1 + who % 5)]
    wanted: dict[int, list[list[int]]] = {}
    for who in range(60):
        own = sorted(x for name, x in rows if name == who)
        if len(own) > 2:
            wanted.setdefault(len(own), []).append(own)
    for seed in range(3):
        mixed = [rows[i] for i in np.random.default_rng(seed).permutation(len(rows))]
        records: Any = engines.open_source(frame(mixed), column="x", unit="who", max_rows_per_unit=2)
        _, surplus = records._cells(CELLS)
        assert isinstance(surplus, Surplus)
        assert [table.tolist() for table in surplus.tables] == [sorted(wanted[m]) for m in sorted(wanted)]


UNITS: dict[str, list[Any]] = {
    "integers": [1, 2, 1, None, 2],
    "long integers": [2**60, 2**60 + 1, 2**60, None, 2**60 + 1],
    "negative": [-1, -2, -1, None, -2],
    "floats": [0.0, 1.5, -0.0, math.nan, 1.5],
    "text": ["ä", "b", "ä", None, "b"],
    "empty text": ["", " ", "", None, " "],
    "truths": [True, False, True, None, False],
    "days": [
        datetime.date(2024, 1, 1),
        datetime.date(2024, 1, 2),
        datetime.date(2024, 1, 1),
        None,
        datetime.date(2024, 1, 2),
    ],
    "times": [
        datetime.datetime(2024, 1, 1, 5),
        datetime.datetime(2024, 1, 2),
        datetime.datetime(2024, 1, 1, 5),
        None,
        datetime.datetime(2024, 1, 2),
    ],
    "decimals": [Decimal("1.10"), Decimal("2.00"), Decimal("1.10"), None, Decimal("2.00")],
    "bytes": [b"\xff", b"\xfe", b"\xff", None, b"\xfe"],
}


@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("library", ["pyarrow", "pandas", "pandas objects", "pandas arrow", "polars"])
def test_units_of_every_type(kind: str, library: str) -> None:
    """Rows 0 and 2 are one unit's, 1 and 4 another's, row 3 is nobody's."""
    who, x = UNITS[kind], [1.0, 2.0, 3.0, 9.0, 4.0]
    table = pa.table({"who": pa.array(who), "x": x})
    if library == "pandas":
        types = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype(), pa.string(): pd.StringDtype()}
        source: Any = table.to_pandas(types_mapper=types.get)
    elif library == "pandas objects":
        source = pd.DataFrame({"who": pd.Series(who, dtype=object), "x": x})
    elif library == "pandas arrow":
        source = table.to_pandas(types_mapper=pd.ArrowDtype)
    else:
        source = table if library == "pyarrow" else pl.from_arrow(table)
    words = {"column": "x", "unit": "who"}
    assert engines.open_source(source, **words).count() == 2
    assert engines.total(DIGITS, source, **words, max_rows_per_unit=2) == 1 + 3 + 2 + 4
    assert engines.total(DIGITS, source, **words) == 2 + 3


def test_units_that_cannot_be_compared_are_nobody() -> None:
    class Hostile:
        def __hash__(self) -> int:
            raise RuntimeError("secret 4711")

    source = pd.DataFrame({"who": pd.Series([[1], Hostile(), "a", pd.NA, pd.NaT, "a"], dtype=object), "x": [1.0] * 6})
    assert engines.open_source(source, column="x", unit="who", max_rows_per_unit=5).count() == 2


ORDERS: dict[str, list[Any]] = {
    "integers": [3, 1, None, 2],
    "long integers": [2**60 + 2, 2**60, None, 2**60 + 1],
    "floats": [0.5, -math.inf, math.nan, 0.25],
    "text": ["b", "B", None, "a"],
    "days": [datetime.date(2024, 3, 1), datetime.date(2024, 1, 1), None, datetime.date(2024, 2, 1)],
    "zoned times": [
        datetime.datetime(2024, 1, 1, hour, tzinfo=datetime.UTC) if hour else None for hour in (23, 5, 0, 12)
    ],
}


@pytest.mark.parametrize("kind", ORDERS)
@pytest.mark.parametrize("library", ["pyarrow", "pandas", "pandas objects", "polars"])
def test_order_by_every_type(kind: str, library: str) -> None:
    table = pa.table({"when": pa.array(ORDERS[kind]), "x": [3.0, 1.0, 4.0, 2.0]})
    source: Any = table if library == "pyarrow" else pl.from_arrow(table)
    if library == "pandas":
        types = {pa.int64(): pd.Int64Dtype(), pa.string(): pd.StringDtype()}
        source = table.to_pandas(types_mapper=types.get)
    elif library == "pandas objects":
        source = pd.DataFrame({"when": pd.Series(ORDERS[kind], dtype=object), "x": table["x"].to_numpy()})
    assert engines.open_source(source, column="x", order="when").series(DIGITS).tolist() == [1, 2, 3, 4]


def _objects(values: list[Any]) -> Any:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


ONE = [
    (7, "7"),
    ("7", b"7"),
    (np.int64(7), "7.0"),
    (7.5, "7.5"),
    (Decimal(7), "007"),
    (True, "1"),
    ("a", b"a"),
    (7, " 7 "),
]


@pytest.mark.parametrize("names", ONE, ids=str)
def test_one_person_is_one_however_a_column_of_objects_holds_the_name(names: tuple[Any, Any]) -> None:
    """pandas reads a long CSV file in parts, and a column of numbers as texts from the part on that holds a text."""
    who = pd.Series(_objects([*names, "zoe"]), dtype=object)
    table = pd.DataFrame({"who": who, "x": [1.0, 1.0, 1.0], "arm": ["a", "b", "b"]})
    assert engines.open_source(table, column="x", unit="who", max_rows_per_unit=1).count() == 2
    with pytest.raises(InvalidData, match="in both groups"):
        pt.compare_groups(table, group="arm", column="x", unit="who", epsilon=1)


def test_a_column_that_pandas_read_in_parts_has_no_more_persons() -> None:
    rows = 300_000
    text = "who,x\n" + "".join(f"{i % 500},1\n" for i in range(rows)) + "zoe,1\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)
        frame = pd.read_csv(io.StringIO(text))
    assert {type(name) for name in frame["who"]} == {int, str}
    assert engines.open_source(frame, column="x", unit="who", max_rows_per_unit=1).count() == 501


def test_texts_of_a_typed_column_are_compared_as_they_are() -> None:
    """As databases compare them."""
    frame = pd.DataFrame({"who": pd.Series(["7", "7.0", "07", " 7"], dtype="string"), "x": [1.0] * 4})
    assert engines.open_source(frame, column="x", unit="who", max_rows_per_unit=1).count() == 4
