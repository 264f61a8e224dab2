"""Curves by running sums, by tables and by the integral agree; the quick peak is the largest advantage."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privatest.laws import Curves
from privatest.laws import curves as module
from privatest.privacy import NoNoise, Tulap

SUPPORT = np.array([0, 3, 5, 11, 16])
NULL, ALTERNATIVE = np.array([0.1, 0.1, 0.2, 0.3, 0.3]), np.array([0.3, 0.25, 0.2, 0.15, 0.1])
NOISES = [
    Tulap(Fraction(1, 2), 16),
    Tulap(Fraction(1, 100), 16),
    Tulap(Fraction(1), 1600),
    Tulap(Fraction(3), 17),
    NoNoise(),
]


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("n", [1, 7, 50])
def test_running_sums_are_the_tables(noise: Tulap | NoNoise, n: int) -> None:
    made = Curves(SUPPORT, NULL, ALTERNATIVE, n, noise)
    edge = int(made._core)
    offsets = np.unique(np.rint(np.linspace(-edge, edge, 41)))
    for places in (offsets, offsets[:-1] + 0.25):
        for stairs, tables in zip(made._on_stairs(places), made._tabulated(places), strict=True):
            np.testing.assert_allclose(stairs, tables, atol=3e-14)


def test_running_sums_of_a_wrong_width_would_be_seen() -> None:
    right = Curves(SUPPORT, NULL, ALTERNATIVE, 7, Tulap(Fraction(1, 2), 16))
    wrong = Curves(SUPPORT, NULL, ALTERNATIVE, 7, Tulap(Fraction(1, 2), 18))
    offsets = np.arange(-20.0, 20.0)
    assert np.abs(right._on_stairs(offsets)[0] - wrong._tabulated(offsets)[0]).max() > 1e-3


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("n", [40, 400, 20_000])
def test_the_quick_peak_is_the_largest_advantage(epsilon: Fraction, n: int) -> None:
    support = np.arange(64)
    null = np.exp(-((support - 34) ** 2) / 200)
    alternative = np.exp(-((support - 30) ** 2) / 200)
    made = Curves(support, null / null.sum(), alternative / alternative.sum(), n, Tulap(epsilon, 63))
    want = made.best_offset()[1]
    assert made.best_advantage() == pytest.approx(want, abs=1e-13)
    if made._smooth and not made._apart:
        # Where the laws are all but apart it leaves the choice to the longer way.
        assert made._peak() == (None if want > 1 - 1e-12 else pytest.approx(want, abs=1e-13))


def test_stairs_are_not_used_where_they_would_be_long() -> None:
    narrow = Curves(SUPPORT, NULL, ALTERNATIVE, 3000, Tulap(Fraction(1), 1))
    assert not narrow._by_stairs(module._GRID)
    assert Curves(SUPPORT, NULL, ALTERNATIVE, 3000, Tulap(Fraction(1), 16))._by_stairs(module._GRID)
