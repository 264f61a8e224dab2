"""Tilted laws: normalised, centred on the level asked for, and contained in their windows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privatest.hypothesis.tilt import saddle, tilt, window_ends
from tests.hypothesis.reference import law_of_sum

STEPS, LAW = np.array([0.0, 1.0, 4.0, 9.0]), np.array([0.3, 0.4, 0.2, 0.1])


@pytest.mark.parametrize("theta", [0.0, 1e-6, 0.3, 20.0, -0.5])
def test_a_tilted_law_is_a_law(theta: float) -> None:
    tilted, log_mass = tilt(STEPS, LAW, theta)
    assert math.fsum(tilted) == pytest.approx(1, abs=1e-15)
    assert log_mass == pytest.approx(math.log(float(LAW @ np.exp(theta * STEPS))), rel=1e-13, abs=1e-15)


def test_tilting_does_not_overflow() -> None:
    tilted, log_mass = tilt(STEPS, LAW, 1e5)
    assert tilted.tolist() == [0, 0, 0, 1]
    assert log_mass == pytest.approx(9e5, rel=1e-5)


@pytest.mark.parametrize("n", [1, 20, 10**6])
@pytest.mark.parametrize("share", [0.35, 0.6, 0.9])
def test_the_saddle_point_centres_the_sum_on_the_level(n: int, share: float) -> None:
    level = share * 9 * n
    theta = saddle(STEPS, LAW, n, level, math.inf)
    tilted, _ = tilt(STEPS, LAW, theta)
    mean = float(tilted @ STEPS)
    deviation = math.sqrt(n * float(tilted @ (STEPS - mean) ** 2))
    assert abs(n * mean - level) < deviation + 1e-2 * level


def test_the_saddle_point_stays_inside_the_strip_and_is_0_below_the_mean() -> None:
    assert saddle(STEPS, LAW, 10, 85.0, 0.01) <= 0.01
    assert saddle(STEPS, LAW, 10, 5.0, math.inf) == 0.0
    assert saddle(STEPS, LAW, 10, 1e9, math.inf) < 2000


def test_neighbouring_levels_share_a_tilt() -> None:
    assert len({saddle(STEPS, LAW, 10**4, 21_000.0 + k, math.inf) for k in range(500)}) < 12


@pytest.mark.parametrize("n", [1, 7, 60, 300])
@pytest.mark.parametrize("theta", [0.0, 0.4])
def test_windows_hold_all_but_1e_17(n: int, theta: float) -> None:
    tilted, _ = tilt(STEPS, LAW, theta)
    first, last = window_ends(STEPS, tilted, n)
    _, sums = law_of_sum(STEPS.astype(np.int64), tilted, n)
    assert float(sums[:first].sum() + sums[last + 1 :].sum()) < 1e-17
    assert 0 <= first < last <= 9 * n
