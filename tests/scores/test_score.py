"""Every record falls into exactly one cell, and the cell is found by arithmetic that has nothing to round.

A score: table, width, line, the check of 64 bits, and documents.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import privatest as pt
from privatest.errors import InvalidDistribution, InvalidDocument, InvalidInput
from privatest.hypotheses import make_pair
from privatest.scores import (
    BoundedCells,
    Cells,
    DyadicCells,
    IntegerCells,
    LabelCells,
    Score,
    clamped_score,
    whole_score,
)
from privatest.scores.score import LARGEST_TOTAL, cells_from_dict

INT64 = np.iinfo(np.int64)
EXAMPLES: dict[str, Cells] = {
    "labels": LabelCells(("a", 1, 2.5, True + 2, ("x", 3), b"y")),
    "integers": IntegerCells(np.array([-3, 0, 1, 5]), 9),
    "pooled integers": IntegerCells(np.array([INT64.min, -2, 0, 7]), INT64.max),
    "dyadic": DyadicCells(3, -20, 41),
    "dyadic, coarse": DyadicCells(-2, -3, 7),
    "dyadic, supported": DyadicCells(4, -17, 40, -1.0, 1.3),
    "bounded": BoundedCells(0.5, 4.0, 7),
    "bounded, supported": BoundedCells(-2.0, 0.25, 5, -3.0, math.inf),
}
ODD_NUMBERS = [math.nan, math.inf, -math.inf]
HUGE_NUMBERS = [1e16, 1e17, 2.0**63, 1e200, sys.float_info.max, -1e17, -1e200, -sys.float_info.max]


def index(cells: Cells, *numbers: float) -> list[int]:
    return cells.index(np.array(numbers, dtype=np.float64)).tolist()


def around(x: float) -> list[float]:
    """x and its two neighbours among the doubles."""
    return [float(np.nextafter(x, -math.inf)), x, float(np.nextafter(x, math.inf))]


@pytest.mark.parametrize("kind", EXAMPLES)
def test_every_number_has_a_cell_and_what_is_not_finite_has_the_odd_one(kind: str) -> None:
    cells = EXAMPLES[kind]
    assert index(cells, *ODD_NUMBERS) == [cells.count] * 3
    found = index(cells, *HUGE_NUMBERS, *np.linspace(-30, 30, 977), 5e-324, -5e-324, -0.0)
    assert min(found) >= 0
    assert max(found) <= cells.count


@pytest.mark.parametrize("kind", EXAMPLES)
def test_documents_restore_the_cells_exactly(kind: str) -> None:
    cells = EXAMPLES[kind]
    again = cells_from_dict(json.loads(json.dumps(cells.to_dict(), allow_nan=False)))
    assert type(again) is type(cells)
    assert again.to_dict() == cells.to_dict()
    numbers = np.concatenate([np.linspace(-40, 40, 4001), HUGE_NUMBERS, ODD_NUMBERS])
    np.testing.assert_array_equal(again.index(numbers), cells.index(numbers))
    if isinstance(cells, LabelCells):
        assert isinstance(again, LabelCells)
        assert again.labels == cells.labels
        assert [type(label) for label in again.labels] == [type(label) for label in cells.labels]


class TestLabels:
    def test_what_is_no_label_is_odd(self) -> None:
        class Hostile:
            def __hash__(self) -> int:
                raise RuntimeError("no hash today")

        class Equal:
            def __hash__(self) -> int:
                return hash("a")

            def __eq__(self, other: object) -> bool:
                raise RuntimeError("no comparison either")

        cells = EXAMPLES["labels"]
        assert isinstance(cells, LabelCells)
        odd: list[Any] = [None, math.nan, "A", "1", [1], {}, Hostile(), Equal(), 2**70, (1, 2), b"a", object()]
        assert [cells.index_of(record) for record in odd] == [cells.count] * len(odd)
        assert index(cells, 1.5, 0.0, -1.0, 2.0**53) == [cells.count] * 4

    @pytest.mark.parametrize("label", [None, math.nan, float("inf"), 2**53, np.int64(2**60), Decimal("NaN"), 1e300])
    def test_a_label_that_engines_could_confuse_is_refused(self, label: Any) -> None:
        with pytest.raises(InvalidDistribution, match="label"):
            LabelCells(("a", label))


class TestIntegers:
    def test_runs_and_their_ends(self) -> None:
        cells = EXAMPLES["integers"]
        expected = {-4: 4, -3: 0, -1: 0, 0: 1, 1: 2, 4: 2, 5: 3, 9: 3, 10: 4}
        assert index(cells, *expected) == list(expected.values())

    def test_the_outermost_runs_reach_to_the_ends_of_64_bits_and_no_further(self) -> None:
        cells = EXAMPLES["pooled integers"]
        assert index(cells, float(INT64.min), -1e15, float(INT64.max), 1e19, -1e19) == [0, 0, 3, 4, 4]


class TestDyadic:
    @settings(max_examples=150)
    @given(
        exponent=st.integers(-8, 30),
        first=st.integers(-(2**40), 2**40),
        size=st.integers(1, 200),
        places=st.lists(st.integers(-5, 205), min_size=1, max_size=20),
    )
    def test_index_is_searchsorted_on_edges_at_the_edges_and_an_ulp_beside(
        self, exponent: int, first: int, size: int, places: list[int]
    ) -> None:
        cells = DyadicCells(exponent, first, size)
        edges = cells.edges
        assert len(edges) == cells.count - 1
        for edge, k in zip(edges, range(first + 1, first + size), strict=True):
            assert Fraction(float(edge)) == Fraction(k) / Fraction(2) ** exponent  # exact, not nearly
        numbers = [y for k in places for y in around(math.ldexp(first + k, -exponent))]
        assert index(cells, *numbers) == np.searchsorted(edges, numbers, side="right").tolist()

    def test_numbers_that_overflow_on_the_way_go_to_the_outermost_cells(self) -> None:
        cells = DyadicCells(1000, -5, 10)
        assert index(cells, 1e300, -1e300) == [9, 0]


class TestBounded:
    @settings(max_examples=100)
    @given(
        centre=st.floats(-1e6, 1e6),
        scale=st.floats(1e-3, 1e6),
        exponent=st.integers(0, 12),
        places=st.lists(st.floats(-1, 1), min_size=1, max_size=30),
    )
    def test_index_is_searchsorted_on_edges_up_to_rounding(
        self, centre: float, scale: float, exponent: int, places: list[float]
    ) -> None:
        cells = BoundedCells(centre, scale, exponent)
        edges = cells.edges
        assert len(edges) == cells.count - 1
        for t in places:
            x = centre + scale * t / max(1.0 - abs(t), 1e-9)
            slack = 1e-12 * (abs(centre) + abs(x - centre))
            if np.min(np.abs(edges - x), initial=math.inf) > slack:
                assert index(cells, x) == [int(np.searchsorted(edges, x, side="right"))]


DATE = datetime.date(2024, 2, 29)
KINDS_OF_LABELS: list[Any] = [
    "text",
    "",
    7,
    -7,
    2.5,
    True,
    Decimal("1.10"),
    Fraction(2, 3),
    DATE,
    datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.UTC),
    b"\x00\xff",
    ("a", (1, DATE)),
]


@pytest.mark.parametrize("label", KINDS_OF_LABELS, ids=repr)
def test_labels_of_every_kind_survive_documents(label: Any) -> None:
    cells = LabelCells((label, "another"))
    again = cells_from_dict(json.loads(json.dumps(cells.to_dict(), allow_nan=False)))
    assert isinstance(again, LabelCells)
    assert again.labels == cells.labels
    assert type(again.labels[0]) is type(label)
    assert again.index_of(label) == 0


def test_integer_cells_end_where_the_last_run_does() -> None:
    document = IntegerCells(np.array([0, 5], dtype=np.int64), 5).to_dict()
    assert cells_from_dict(document).to_dict() == document
    with pytest.raises(InvalidDocument, match="not in increasing order"):
        cells_from_dict({**document, "last": 4})


SCORES: dict[str, Score] = {
    "labels": clamped_score(make_pair({"a": 0.2, "b": 0.3, "c": 0.5}, {"a": 0.5, "b": 0.3, "c": 0.2}), (-1, 1)),
    "integers": clamped_score(make_pair(stats.poisson(3), stats.poisson(4)), (-0.7, 0.4)),
    "dyadic": clamped_score(make_pair(stats.norm(0, 1), stats.norm(1, 1)), (-0.5, 1)),
    "dyadic, supported": clamped_score(make_pair(stats.expon(), stats.gamma(2)), (-1, 1)),
    "bounded": clamped_score(make_pair(stats.cauchy(0, 1), stats.cauchy(0, 3)), (-1, 1)),
    "whole": whole_score(make_pair(stats.uniform(0, 1), stats.uniform(0.5, 1)), 40),
}


@pytest.mark.parametrize("kind", SCORES)
def test_what_a_score_guarantees(kind: str) -> None:
    score = SCORES[kind]
    assert len(score.table) == score.cells.count + 1
    assert score.width == score.high - score.low == int(score.table.max()) - int(score.table.min()) > 0
    assert score.low <= score.odd_score <= score.high
    assert np.all(np.diff(score.support) > 0)
    assert np.all(np.isin(score.support, score.table))
    for law in (score.null_law, score.alternative_law):
        assert np.all(law >= 0)
        assert math.fsum(law) == pytest.approx(1, abs=1e-15)
    low, high = score.bounds()
    assert low == float(score.origin + score.step * score.low)
    assert high == float(score.origin + score.step * score.high)


@pytest.mark.parametrize("kind", SCORES)
def test_value_and_lattice_threshold_are_inverse(kind: str) -> None:
    score = SCORES[kind]
    for total in (0, -7, Fraction(5, 3)):
        assert score.lattice_threshold(score.value(total, 11), 11) == total


def small(table: list[int], first: int = -3) -> Score:
    """A score with this table on dyadic cells, its odd score last."""
    cells = DyadicCells(2, first, len(table) - 1)
    return Score(
        cells, np.array(table), Fraction(0), Fraction(1), np.array([table[0]]), np.array([1.0]), np.array([1.0])
    )


class TestLine:
    @pytest.mark.parametrize(
        ("table", "line"),
        [
            ([0, 0, 1, 2, 3, 4, 4, 2], (1, -1)),
            ([4, 4, 3, 2, 1, 0, 0, 2], (-1, 5)),
            ([0, 0, 1, 2, 2, 3, 4, 2], None),  # a flat cell inside
            ([0, 0, 2, 4, 6, 8, 8, 2], None),  # two units a cell
            ([0, 1, 2, 3, 2, 1, 0, 0], None),  # there and back
            ([0, 0, 0, 4, 4, 4, 4, 4], None),  # a jump
            ([0, 0, 1, 2, 3, 4, 4, 9], None),  # the odd score is the highest
            ([5, 5, 5, 5, 5, 5, 5, 5], None),
        ],
    )
    def test_known_tables(self, table: list[int], line: tuple[int, int] | None) -> None:
        assert small(table).line == line

    @settings(max_examples=200)
    @given(
        low=st.integers(-20, 20),
        width=st.integers(2, 30),
        sign=st.sampled_from([1, -1]),
        offset=st.integers(-60, 60),
        size=st.integers(3, 60),
        odd=st.integers(0, 30),
    )
    def test_a_line_is_the_table(self, low: int, width: int, sign: int, offset: int, size: int, odd: int) -> None:
        cells = np.clip(sign * np.arange(size) + offset, low, low + width)
        score = small([*cells.tolist(), low + odd % (width + 1)])
        if score.line is not None:
            slope, start = score.line
            again = np.clip(slope * np.arange(size) + start, score.low, score.high)
            np.testing.assert_array_equal(again, score.table[:-1])
        elif cells.min() == low and cells.max() == low + width and width > 2:
            pytest.fail("a straight table was not recognised")


class TestTotals:
    def test_negative_scores_count_too(self) -> None:
        score = small([-4, -3, 0, 1, 0])
        score.check_total(LARGEST_TOTAL // 4)
        with pytest.raises(InvalidInput):
            score.check_total(LARGEST_TOTAL // 4 + 1)


@pytest.mark.parametrize("odd", [-(10**6), 10**6])
def test_the_odd_cell_counts_for_the_width(odd: int) -> None:
    """A record that makes no sense moves a total like any other: a document cannot hide a far odd score."""
    score = clamped_score(make_pair([0.2, 0.8], [0.8, 0.2]), (-1, 1))
    table = score.table.copy()
    table[-1] = odd
    far = dataclasses.replace(score, table=table)
    assert (far.low, far.high) == (min(odd, score.low), max(odd, score.high))
    assert far.width >= 10**6
    test = pt.design([0.2, 0.8], [0.8, 0.2], epsilon=1, n=5)
    with pytest.raises(InvalidInput, match="privacy loss"):
        dataclasses.replace(test, score=far)
    with pytest.raises(InvalidDocument, match="privacy loss"):
        pt.results.PrivateTest.from_dict({**test.to_dict(), "score": far.to_dict()})
