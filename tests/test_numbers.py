"""Integer bounds of e^-x against 400 digits, and numbers of any type as exact rationals."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privatest.errors import InvalidInput
from privatest.numbers import exp_bounds, number_or_nan, positive_integer, probability, rational


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


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64, np.uint64, np.intp])
def test_integers_of_numpy_become_those_of_python_which_do_not_overflow(kind: Any) -> None:
    found = rational(kind(100))
    assert type(found.numerator) is int
    assert type(found.denominator) is int
    assert found * 10**40 / 3 == Fraction(10**42, 3)


@pytest.mark.parametrize("value", [10**400, -(10**400), Fraction(10**400), Decimal("1e400"), math.inf, np.nan])
def test_numbers_beyond_floats_are_refused_by_name(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^epsilon=.* must be .*finite"):
        rational(value, "epsilon")


@pytest.mark.parametrize("value", ["0.5", b"1", True, np.True_, None, [0.5], np.array(0.5), 1j, object()])
def test_what_is_no_number_is_none(value: Any) -> None:
    assert math.isnan(number_or_nan(value))


def test_counts_and_probabilities_stay_within_what_is_computed() -> None:
    with pytest.raises(InvalidInput, match="n=9223372036854775808 must be a whole number of at most 9"):
        positive_integer(n=2**63)
    with pytest.raises(InvalidInput, match="alpha=5e-324 must be at least 1e-300"):
        probability(alpha=5e-324)
    with pytest.raises(InvalidInput, match=r"must lie in \(0, 1\)"):
        probability(alpha=Fraction(10**30 - 1, 10**30))


@pytest.mark.parametrize(("whole", "shares"), [("0.5", 52), ("1", 3), ("0.25", 365), ("2", 7), ("0.1", 12_000)])
def test_equal_shares_of_a_budget_add_up_to_it(whole: str, shares: int) -> None:
    assert shares * rational(float(whole) / shares) == Fraction(whole)


def test_what_a_float_is_read_as_rounds_to_it() -> None:
    for number in np.random.default_rng(3).uniform(size=2000) * 10.0 ** np.arange(2000) ** 0.3:
        assert float(rational(float(number))) == number
    for decimal in ("0.123456", "123456.123456", "0.333333", "1e-9", "0.30000000000000004"):
        assert rational(float(decimal)) == Fraction(decimal)
