"""The statistic: one record moves it by at most its width, however it is rewritten.

The statistic of Acharya, Sun and Zhang: sensitivity, integers and null mean, against enumeration.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privatest.fit.excess_law import Excess, uniformity
from tests.fit.brute_force import distance_from_uniform, histograms, neighbours


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


SIZES = [(k, m) for k in range(2, 7) for m in range(1, 9) if math.comb(k + m - 1, m) <= 800]


@pytest.mark.parametrize(("k", "m"), SIZES)
def test_the_integers_carry_the_statistic_and_their_width_is_attained(k: int, m: int) -> None:
    excess = uniformity(k, m)
    assert excess.width == (k // math.gcd(k, m) if m >= k else 1)
    scale = Fraction(excess.width * max(m, k)) if m > 1 else Fraction(1)
    offsets = {scale * distance_from_uniform(counts) - excess.of(np.array(counts)) for counts in histograms(k, m)}
    assert m == 1 or len(offsets) == 1
    moves = {abs(excess.of(np.array(a)) - excess.of(np.array(b))) for a in histograms(k, m) for b in neighbours(a)}
    assert max(moves) == (excess.width if m > 1 else 0)
