"""The statistic: one record moves it by at most its width, however it is rewritten."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privatest.errors import InvalidDocument, InvalidInput
from privatest.fit.excess import Excess
from tests.fit.brute_force import histograms, neighbours


@st.composite
def statistics(draw: st.DrawFn) -> tuple[Excess, int]:
    k, n, levels = draw(st.integers(2, 4)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    rows = draw(st.sampled_from([1, k]))
    knots = draw(st.lists(st.lists(st.integers(0, n), min_size=levels, max_size=levels), min_size=rows, max_size=rows))
    weights = draw(st.lists(st.integers(1, 4), min_size=levels, max_size=levels))
    return Excess(np.array(knots, dtype=np.int64), np.array(weights, dtype=np.int64), k), n


@given(statistics())
@settings(max_examples=150)
def test_one_record_moves_the_statistic_by_at_most_its_width(case: tuple[Excess, int]) -> None:
    excess, n = case
    for counts in histograms(excess.symbols, n):
        for other in neighbours(counts):
            assert abs(excess.of(np.array(counts)) - excess.of(np.array(other))) <= excess.width


@given(statistics())
@settings(max_examples=150)
def test_simplified_is_the_same_test_with_no_larger_width(case: tuple[Excess, int]) -> None:
    # Rows are sorted first: simplification may rename the levels of a row.
    excess, n = case
    uniform_weights = Excess(excess.knots.copy(), np.ones_like(excess.weights), excess.symbols)
    simple = uniform_weights.simplified(n)
    values = [uniform_weights.of(np.array(counts)) for counts in histograms(excess.symbols, n)]
    if simple is None:
        assert len(set(values)) == 1
        return
    assert simple.width <= uniform_weights.width
    found = [simple.of(np.array(counts)) for counts in histograms(excess.symbols, n)]
    ratios = {(a - values[0], b - found[0]) for a, b in zip(values, found, strict=True)}
    factors = {a / b for a, b in ratios if b}
    assert len(factors) <= 1
    assert all(a == 0 for a, b in ratios if b == 0)


def test_refined_multiplies_and_nothing_else() -> None:
    excess = Excess(np.array([[1, 2]]), np.array([2, 1]), 3)
    fine = excess.refined(64)
    assert fine.width == 66
    assert fine.of(np.array([4, 1, 0])) == 22 * excess.of(np.array([4, 1, 0]))


def test_rejects_what_is_no_statistic() -> None:
    with pytest.raises(InvalidInput, match="at least 1"):
        Excess(np.array([[1]]), np.array([0]), 3)
    with pytest.raises(InvalidInput, match="one row"):
        Excess(np.array([[1], [2]]), np.array([1]), 3)
    with pytest.raises(InvalidInput, match="64 bits"):
        Excess(np.array([[1]]), np.array([2**40]), 3).check_total(2**30)
    with pytest.raises(InvalidDocument, match="whole numbers"):
        Excess.from_dict({"knots": [[0.5]], "weights": [1], "symbols": 2})
    with pytest.raises(InvalidDocument):
        Excess.from_dict({"knots": [[1]], "symbols": 2})
