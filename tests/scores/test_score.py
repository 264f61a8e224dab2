"""A score: table, width, line, the check of 64 bits, and documents."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import privatest as pt
from privatest.errors import InvalidDocument, InvalidInput
from privatest.hypotheses import make_pair
from privatest.scores import DyadicCells, LabelCells, Score, clamped_score, whole_score
from privatest.scores.score import LARGEST_TOTAL, lattice

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
def test_a_score_is_frozen(kind: str) -> None:
    score = SCORES[kind]
    for field in dataclasses.fields(score):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(score, field.name, None)
    for array in (score.table, score.support, score.null_law, score.alternative_law):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize("kind", SCORES)
def test_value_and_lattice_threshold_are_inverse(kind: str) -> None:
    score = SCORES[kind]
    for total in (0, -7, Fraction(5, 3)):
        assert score.lattice_threshold(score.value(total, 11), 11) == total


@pytest.mark.parametrize("kind", SCORES)
def test_documents_restore_the_score_exactly(kind: str) -> None:
    score = SCORES[kind]
    again = Score.from_dict(json.loads(json.dumps(score.to_dict(), allow_nan=False)))
    assert again.to_dict() == score.to_dict()
    assert (again.origin, again.step, again.width, again.line) == (score.origin, score.step, score.width, score.line)
    for one, other in ((again.null_law, score.null_law), (again.alternative_law, score.alternative_law)):
        np.testing.assert_array_equal(one, other)
    numbers = np.concatenate([np.random.default_rng(1).normal(0, 5, 3000), [math.nan, math.inf, 1e30, 2, 3]])
    np.testing.assert_array_equal(again.of_numbers(numbers), score.of_numbers(numbers))


@pytest.mark.parametrize("kind", SCORES)
def test_copies_score_alike(kind: str) -> None:
    score = SCORES[kind]
    for again in (pickle.loads(pickle.dumps(score)), copy.deepcopy(score)):
        assert again.to_dict() == score.to_dict()


def test_mean_is_the_laws_mean() -> None:
    score = SCORES["labels"]
    exact = sum(Fraction(float(p)) * int(s) for p, s in zip(score.null_law, score.support, strict=True))
    assert score.mean(score.null_law) == pytest.approx(float(exact), rel=1e-15)


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

    def test_linear_ratios_are_recognised(self) -> None:
        for shift in (1, -1, 0.1):
            assert clamped_score(make_pair(stats.norm(0, 1), stats.norm(shift, 1)), (-0.05, 0.04)).line is not None
        assert clamped_score(make_pair(stats.norm(0, 1), stats.norm(0, 2)), (-0.5, 0.5)).line is None


class TestTotals:
    def test_the_largest_total_fits_and_the_next_does_not(self) -> None:
        score = SCORES["dyadic"]
        largest = max(abs(score.low), abs(score.high))
        most = LARGEST_TOTAL // largest
        score.check_total(most)
        with pytest.raises(InvalidInput, match=rf"n={most + 1} is too large.*at most {most}"):
            score.check_total(most + 1)

    def test_negative_scores_count_too(self) -> None:
        score = small([-4, -3, 0, 1, 0])
        score.check_total(LARGEST_TOTAL // 4)
        with pytest.raises(InvalidInput):
            score.check_total(LARGEST_TOTAL // 4 + 1)

    def test_scores_of_a_test_without_clamp_can_be_too_large(self) -> None:
        pair = make_pair([0.5, 0.5, 0.0], [0.0, 0.5, 0.5])
        with pytest.raises(InvalidInput, match="64 bits"):
            whole_score(pair, 10**12).check_total(10**12)
        with pytest.raises(InvalidInput, match="64 bits"):
            whole_score(pair, 10**25).check_total(10**25)


def test_lattice_ends_are_exact() -> None:
    origin, step = lattice(-0.1, 0.3, 7)
    assert (origin, origin + 7 * step) == (Fraction(-1, 10), Fraction(3, 10))
    assert lattice(Fraction(-5, 7), Fraction(5, 7), 2) == (Fraction(-5, 7), Fraction(5, 7))


def tamper(change: Callable[[dict[str, Any]], object], kind: str = "labels") -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(SCORES[kind].to_dict()))
    change(document)
    return document


TAMPERED: dict[str, Callable[[dict[str, Any]], object]] = {
    "no table": lambda d: d.pop("table"),
    "no law": lambda d: d.pop("null_law"),
    "table short": lambda d: d["table"].pop(),
    "table long": lambda d: d["table"].append([0, 1]),
    "table of text": lambda d: d.update(table="0"),
    "step 0": lambda d: d.update(step="0"),
    "step negative": lambda d: d.update(step="-1/5"),
    "step over 0": lambda d: d.update(step="1/0"),
    "step enormous": lambda d: d.update(step="1e99999999"),
    "origin a number": lambda d: d.update(origin=0.5),
    "support unsorted": lambda d: d["support"].reverse(),
    "support foreign": lambda d: d.update(support=[1, 2, 3]),
    "support empty": lambda d: d.update(support=[]),
    "law short": lambda d: d["null_law"].pop(),
    "law negative": lambda d: d.update(null_law=[-0.2, 0.7, 0.5]),
    "law not 1": lambda d: d.update(null_law=[0.2, 0.3, 0.4]),
    "law NaN": lambda d: d.update(null_law=[math.nan, 0.5, 0.5]),
    "law text": lambda d: d.update(null_law=["0.2", 0.3, 0.5]),
    "cells missing": lambda d: d.pop("cells"),
    "cells of others": lambda d: d.update(cells=LabelCells(("a", "b")).to_dict()),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_tampered_documents_are_refused(name: str) -> None:
    with pytest.raises(InvalidDocument):
        Score.from_dict(tamper(TAMPERED[name]))


@pytest.mark.parametrize("document", [None, [], "score", 3], ids=repr)
def test_what_is_no_document_is_refused(document: Any) -> None:
    with pytest.raises(InvalidDocument):
        Score.from_dict(document)


def test_repr_says_what_counts() -> None:
    assert repr(SCORES["labels"]) == "Score(labels, 3 cells, ratio -0.916291 to 0.916291, width 512)"


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
        pt.PrivateTest.from_dict({**test.to_dict(), "score": far.to_dict()})
