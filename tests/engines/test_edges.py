"""Scores, units and keys at their edges: by hand and by plain lists, one step on each side."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from privatest import engines
from privatest.engines.arrays import ArrayRecords
from privatest.engines.keys import Coder, keys_of_array, keys_of_objects, ranks
from privatest.engines.records import block_ends
from privatest.engines.units import _counted, _UnitSums, check_ends
from privatest.errors import InvalidData
from privatest.scores import BoundedCells, Cells, DyadicCells, Score
from tests.engines.catalogue import first_rows


def digits(cells: Cells, odd: int = 3) -> Score:
    """The score of cell k is k."""
    table = np.append(np.arange(cells.count), odd)
    return Score(cells, table, Fraction(0), Fraction(1), np.arange(1), np.ones(1), np.ones(1))


TEN = digits(DyadicCells(0, 0, 10))
BENT = Score(TEN.cells, np.append(np.arange(10) % 4, 3), Fraction(0), Fraction(1), np.arange(1), np.ones(1), np.ones(1))
FAR = [-6e15, -4.6e15, -(2.0**52) - 1, -(2.0**53), -9e15, -1e16, -1e300, 6e15, 2.0**52, 2.0**53, 9e15, 1e300]


@pytest.mark.parametrize("score", [TEN, BENT], ids=["line", "table"])
@pytest.mark.parametrize("x", [*range(-2, 12), 0.5, 9.5, -0.5, *FAR], ids=repr)
def test_every_number_by_itself(score: Score, x: float) -> None:
    one = np.array([float(x)])
    expected = int(score.table[min(max(math.floor(x), 0), 9)])
    assert ArrayRecords(one).total(score) == expected
    assert ArrayRecords(one).series(score).tolist() == [expected]


@pytest.mark.parametrize("low", [-math.inf, -1.0])
@pytest.mark.parametrize("high", [math.inf, 9.5])
@pytest.mark.parametrize("kind", ["line", "table", "bounded"])
def test_the_ends_of_a_support_and_an_ulp_beyond(kind: str, low: float, high: float) -> None:
    cells: Cells = BoundedCells(4.0, 2.0, 3, low, high) if kind == "bounded" else DyadicCells(0, 0, 10, low, high)
    score = digits(cells, 7)
    if kind == "table":
        score = dataclasses.replace(BENT, cells=cells, table=np.append(np.arange(10) % 4, 7))
    for x in (-1.0, np.nextafter(-1.0, -2), 9.5, np.nextafter(9.5, 10), math.inf, -math.inf, math.nan, 4.0):
        numbers = np.array([4.0, x, 4.0])
        expected = sum(score.table[cells.index(numbers)].tolist())
        assert ArrayRecords(numbers).total(score) == expected
        inside = low <= x <= high and math.isfinite(x)
        assert (int(score.table[cells.index(numbers)[1]]) == 7) >= (not inside)


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_units_are_what_plain_lists_are(most: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    units = [None if code == 5 else f"u{code}" for code in rng.integers(0, 6, 14).tolist()]
    rows = list(zip(units, rng.integers(0, 10, 14).tolist(), strict=True))
    table = pa.table({name: pa.array([row[i] for row in rows]) for i, name in enumerate(("who", "x"))})
    records = engines.open_source(table, column="x", unit="who", max_rows_per_unit=most)
    own = [sorted(x for who, x in rows if who == unit) for unit in {unit for unit in units if unit is not None}]
    exact = sum(Fraction(min(len(xs), most) * sum(xs), len(xs)) for xs in own)
    assert records.total(TEN) == math.floor(exact + Fraction(1, 2))
    assert records.count() == sum(min(len(xs), most) for xs in own)
    first = [x for xs in own for x in xs[:most]]
    drawn = records.histogram(TEN.cells, first_rows)
    assert drawn == [first.count(digit) for digit in range(10)] + [0]


def test_ties_across_an_end_are_refused() -> None:
    table = pa.table({"who": ["a", "b", "c", "d", "e"], "x": [1, 2, 3, 4, 5], "at": [1, 2, 2, 3, 1]})
    records = engines.open_source(table, column="x", order="at")  # at: 1 1 2 2 3
    assert records.series(TEN, range(2, 5, 2)).tolist() == [1, 5, 2, 3, 4]
    for ends in (range(1, 2), range(3, 4)):
        with pytest.raises(InvalidData, match="order"):
            records.series(TEN, ends)
    with pytest.raises(InvalidData, match="order"):
        records.block_totals(TEN, 1)
    assert records.block_totals(TEN, 2) == [6, 5]


def test_ends_between_equal_places_and_beside_them() -> None:
    places = np.array([1, 1, 2, 2, 1])
    check_ends(places, range(0, 1), "at")  # no end lies before the first row
    check_ends(places, range(5, 9), "at")  # nor behind the last
    check_ends(places, block_ends(5, 2), "at")
    with pytest.raises(InvalidData):
        check_ends(places, range(1, 2), "at")


def test_tallies_of_one_pair_and_of_none() -> None:
    tally = _UnitSums()
    assert [part.tolist() for part in tally.merged()] == [[], [], []]
    for unit in (4, 2, 4):
        tally.add(np.array([unit]), np.array([7]))
        tally.merged()
    assert [part.tolist() for part in tally.merged()] == [[2, 4], [7, 7], [1, 2]]
    empty = np.empty(0, dtype=np.int64)
    assert [len(part) for part in _counted(empty, empty)] == [0, 0, 0]


def test_keys_that_are_numbers() -> None:
    tiny = keys_of_array(np.array([1e-20, 2e-20, -0.0, 0.0, math.nan]))
    assert tiny.present.tolist() == [True] * 4 + [False]
    assert ranks([tiny]).tolist() == [1, 2, 0, 0, 3]
    assert len(set(Coder().codes(tiny).tolist())) == 3
    large = keys_of_array(np.array([2**63 + 1, 2**63, 5], dtype=np.uint64))
    assert ranks([large]).tolist() == [2, 1, 0]
    small = keys_of_array(np.array([200, 5], dtype=np.uint8))
    assert ranks([small]).tolist() == [1, 0]
    some = keys_of_objects(["b", None, "a", math.nan, "b"])
    assert some.present.tolist() == [True, False, True, False, True]
    assert Coder().codes(some).tolist() == [0, 1, 0]


def test_ties_are_found_before_anything_is_charged() -> None:
    table = pa.table({"x": [1, 2, 3, 4, 5], "at": [1, 2, 2, 3, 1]})
    records = engines.open_source(table, column="x", order="at")  # 1 1 2 2 3
    records.check_ends(range(2, 5, 2))
    records.check_ends(range(0))
    for ends in (range(1, 2), range(3, 4), range(1, 5, 2)):
        with pytest.raises(InvalidData, match="order"):
            records.check_ends(ends)
