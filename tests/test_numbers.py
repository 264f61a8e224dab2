"""Integer bounds of e^-x against 400 digits, and numbers of any type as exact rationals."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privatest.numbers import exp_bounds, rational


def check(p: int, q: int, bits: int) -> None:
    low, high = exp_bounds(p, q, bits)
    with mpmath.workdps(400):
        exact = mpmath.power(2, bits) * mpmath.exp(-mpmath.mpf(p) / q)
        assert low <= exact <= high
    assert high - low <= 2


@given(p=st.integers(0, 10**9), q=st.integers(1, 10**9), bits=st.integers(1, 300))
def test_bounds_hold_and_are_tight(p: int, q: int, bits: int) -> None:
    if p / q < 500:
        check(p, q, bits)


@pytest.mark.parametrize(
    ("p", "q", "bits"),
    [(0, 1, 64), (1, 10**30, 96), (10**6, 1, 200), (10**12, 1, 64), (64, 1, 96), (1, 1, 1000), (10**20, 10**20, 64)],
)
def test_extremes(p: int, q: int, bits: int) -> None:
    check(p, q, bits)


def test_nothing_rounds_to_a_certain_coin() -> None:
    """e^-x < 1 for x > 0, however small: the lower bound must not be 1 at every precision."""
    low, _ = exp_bounds(1, 10**9, 96)
    assert low < 1 << 96
    assert exp_bounds(0, 1, 96)[1] >= 1 << 96


@pytest.mark.parametrize(("whole", "shares"), [("0.5", 52), ("1", 3), ("0.25", 365), ("2", 7), ("0.1", 12_000)])
def test_equal_shares_of_a_budget_add_up_to_it(whole: str, shares: int) -> None:
    assert shares * rational(float(whole) / shares) == Fraction(whole)


def test_what_a_float_is_read_as_rounds_to_it() -> None:
    for number in np.random.default_rng(3).uniform(size=2000) * 10.0 ** np.arange(2000) ** 0.3:
        assert float(rational(float(number))) == number
    for decimal in ("0.123456", "123456.123456", "0.333333", "1e-9", "0.30000000000000004"):
        assert rational(float(decimal)) == Fraction(decimal)
