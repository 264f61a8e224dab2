"""The Fourier integral by itself: right where it answers, and silent where its integrand is too rough."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from privatest.hypothesis.inversion import upper_tail_by_inversion
from privatest.noise import Laplace, Logistic, Noise, NoNoise, Tulap
from tests.hypothesis.reference import law_of_sum, tails

STEPS, LAW = np.array([0.0, 1.0, 2.0, 5.0]), np.array([0.3, 0.3, 0.3, 0.1])
NOISES: list[Noise] = [Tulap(Fraction(1), 5), Laplace(Fraction(5)), Logistic(Fraction(7)), NoNoise()]


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("spacing", [1, 5, 6])
@pytest.mark.parametrize("theta", [1e-6, 0.01])
def test_any_contour_gives_the_same_number(noise: Noise, spacing: int, theta: float) -> None:
    """On a coarser lattice there are peaks at every multiple of 2 pi/spacing."""
    n = 400
    mean, deviation = n * 1.4 * spacing, math.sqrt(n * 2.0) * spacing
    start, sums = law_of_sum((STEPS * spacing).astype(np.int64), LAW, n)
    for z in (0.0, 1.5, 4.0):
        x = Fraction(round(mean + z * deviation)) + noise.offset
        found = upper_tail_by_inversion(STEPS, LAW, n, noise, x + Fraction(1, 2), spacing, theta, most_lobes=10)
        assert found is not None
        value, error = found
        exact = float(tails(start, sums, noise, x)[1])
        assert abs(value - exact) <= error
        assert value == pytest.approx(exact, rel=1e-9, abs=1e-13)


def test_other_peaks_are_refused_unless_allowed() -> None:
    arguments = (STEPS, LAW, 400, Laplace(Fraction(5)), Fraction(5600), 10, 0.001)
    assert upper_tail_by_inversion(*arguments) is None
    assert upper_tail_by_inversion(*arguments, most_lobes=4) is None
    assert upper_tail_by_inversion(*arguments, most_lobes=5) is not None


def test_few_records_are_refused() -> None:
    assert upper_tail_by_inversion(STEPS, LAW, 2, NoNoise(), Fraction(7, 2), 1, 0.1) is None


def test_the_other_poles_of_a_wide_tulap_are_not_overlooked() -> None:
    noise = Tulap(Fraction(1, 100), 3000)
    assert upper_tail_by_inversion(STEPS, LAW, 400, noise, Fraction(561), 1, 1e-6) is None


def test_too_much_work_is_refused() -> None:
    assert upper_tail_by_inversion(STEPS, LAW, 400, Laplace(Fraction(5)), Fraction(561), 1, 0.01, 0, 10) is None
