"""The Fourier integral by itself: right where it answers, and silent where its integrand is too rough.

Tilted laws: normalised, centred on the level asked for, and contained in their windows.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from privatest.laws.tails import saddle, tilt, upper_tail_by_inversion, window_ends
from privatest.privacy import Laplace, Logistic, Noise, NoNoise, Tulap
from tests.laws.reference import law_of_sum, tails

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


STEPS_TILT, LAW_TILT = np.array([0.0, 1.0, 4.0, 9.0]), np.array([0.3, 0.4, 0.2, 0.1])


@pytest.mark.parametrize("theta", [0.0, 1e-6, 0.3, 20.0, -0.5])
def test_a_tilted_law_is_a_law(theta: float) -> None:
    tilted, log_mass = tilt(STEPS_TILT, LAW_TILT, theta)
    assert math.fsum(tilted) == pytest.approx(1, abs=1e-15)
    assert log_mass == pytest.approx(math.log(float(LAW_TILT @ np.exp(theta * STEPS_TILT))), rel=1e-13, abs=1e-15)


def test_tilting_does_not_overflow() -> None:
    tilted, log_mass = tilt(STEPS_TILT, LAW_TILT, 1e5)
    assert tilted.tolist() == [0, 0, 0, 1]
    assert log_mass == pytest.approx(9e5, rel=1e-5)


@pytest.mark.parametrize("n", [1, 20, 10**6])
@pytest.mark.parametrize("share", [0.35, 0.6, 0.9])
def test_the_saddle_point_centres_the_sum_on_the_level(n: int, share: float) -> None:
    level = share * 9 * n
    theta = saddle(STEPS_TILT, LAW_TILT, n, level, math.inf)
    tilted, _ = tilt(STEPS_TILT, LAW_TILT, theta)
    mean = float(tilted @ STEPS_TILT)
    deviation = math.sqrt(n * float(tilted @ (STEPS_TILT - mean) ** 2))
    assert abs(n * mean - level) < deviation + 1e-2 * level


def test_the_saddle_point_stays_inside_the_strip_and_is_0_below_the_mean() -> None:
    assert saddle(STEPS_TILT, LAW_TILT, 10, 85.0, 0.01) <= 0.01
    assert saddle(STEPS_TILT, LAW_TILT, 10, 5.0, math.inf) == 0.0
    assert saddle(STEPS_TILT, LAW_TILT, 10, 1e9, math.inf) < 2000


def test_neighbouring_levels_share_a_tilt() -> None:
    assert len({saddle(STEPS_TILT, LAW_TILT, 10**4, 21_000.0 + k, math.inf) for k in range(500)}) < 12


@pytest.mark.parametrize("n", [1, 7, 60, 300])
@pytest.mark.parametrize("theta", [0.0, 0.4])
def test_windows_hold_all_but_1e_17(n: int, theta: float) -> None:
    tilted, _ = tilt(STEPS_TILT, LAW_TILT, theta)
    first, last = window_ends(STEPS_TILT, tilted, n)
    _, sums = law_of_sum(STEPS_TILT.astype(np.int64), tilted, n)
    assert float(sums[:first].sum() + sums[last + 1 :].sum()) < 1e-17
    assert 0 <= first < last <= 9 * n
