"""Curves by tables and by the integral agree with each other and with the exact law."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privatest.laws import Curves, NoisyTotal
from privatest.privacy import Approx, Gaussian, Noise, NoNoise, Stair, Tulap, Tv
from privatest.privacy.decision_chain import decision_noise

SUPPORT = np.array([0, 3, 5, 11, 16])
NULL, ALTERNATIVE = np.array([0.1, 0.1, 0.2, 0.3, 0.3]), np.array([0.3, 0.25, 0.2, 0.15, 0.1])
NOISES = [
    Tulap(Fraction(1, 2), 16),
    Tulap(Fraction(1, 100), 16),
    Tulap(Fraction(1), 1600),
    Tulap(Fraction(3), 17),
    NoNoise(),
]


SPACED = [
    Stair(Fraction(1, 2), 16),
    Stair(Fraction(1, 50), 700),
    decision_noise(Approx(Fraction(1), Fraction(1, 100)), 16, Fraction(1, 3)),
    decision_noise(Tv(Fraction(1, 4)), 9, Fraction(1, 7)),
]


@pytest.mark.parametrize("noise", [*NOISES, *SPACED, Tulap(Fraction(50), 16)], ids=str)
@pytest.mark.parametrize("n", [1, 7, 50])
def test_tables_are_the_exact_law(noise: Noise, n: int) -> None:
    curves = Curves(SUPPORT, NULL, ALTERNATIVE, n, noise)
    edge = int(curves._core)
    offsets = np.unique(np.rint(np.linspace(-edge, edge, 9)))
    for law, table in zip((NULL, ALTERNATIVE), curves._tabulated(offsets), strict=True):
        total = NoisyTotal(SUPPORT, law, n, noise)
        exact = [total.cdf(curves.cutoff(int(offset))) for offset in offsets]
        np.testing.assert_allclose(table, exact, atol=1e-13)


@pytest.mark.parametrize("noise", [*NOISES[:4], Gaussian(Fraction(1), 512), *SPACED], ids=str)
@pytest.mark.parametrize("alpha", [1e-12, 1e-4, 0.05, 0.7])
def test_a_cutoff_is_the_largest_of_its_level(noise: Noise, alpha: float) -> None:
    made = Curves(SUPPORT, NULL, ALTERNATIVE, 50, noise)
    total = NoisyTotal(SUPPORT, NULL, 50, noise)
    found = made.cutoff_for_alpha(alpha)
    assert total.cdf(found) <= alpha < total.cdf(found + noise.spacing)
    assert abs(made.about_cutoff_for_alpha(alpha) - found) <= noise.spacing


def test_tails_of_1e_300_under_gaussian_noise() -> None:
    law = np.array([0.125, 0.25, 0.125, 0.5])
    made = Curves(np.array([231, 244, 320, 506]), law, law, 8, Gaussian(Fraction(1), 275))
    found = made.cutoff_for_alpha(1e-300)
    total = NoisyTotal(made.support, law, 8, made.noise)
    assert total.cdf(found) <= 1e-300 < total.cdf(found + 1)
