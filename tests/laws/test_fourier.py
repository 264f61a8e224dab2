"""Lengths of transforms, beside scipy's.

Panels resolve what they say they resolve.

The transform of a law: its logarithm to full accuracy near zero, and all of its peaks elsewhere.
"""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

from privatest.laws.fourier import central_reach, doubling_panels, log_transform, side_lobes


@pytest.mark.parametrize("frequency", [0.3, 5.0, 200.0])
@pytest.mark.parametrize("first", [1e-3, 10.0])
def test_waves_up_to_the_frequency_are_integrated_to_rounding(first: float, frequency: float) -> None:
    panels = doubling_panels(first, 3.0, frequency, 100)
    assert panels is not None
    nodes, weights = panels
    for share in (0.1, 0.9, 1.0):
        f = share * frequency
        assert math.fsum(weights * np.cos(f * nodes)) == pytest.approx(math.sin(3 * f) / f, abs=1e-13)


Floats = np.ndarray[Any, Any]


def law(seed: int, count: int, span: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    steps = np.sort(rng.choice(span + 1, count, replace=False)).astype(np.float64)
    steps[0], steps[-1] = 0, span
    weights = rng.dirichlet(np.full(count, 0.5)) + 1e-6
    return steps, weights / math.fsum(weights)


@pytest.mark.parametrize("size", [1e-9, 1e-4, 0.05, 0.5, 3.0])
@pytest.mark.parametrize(("count", "span"), [(2, 1), (5, 40), (30, 500)])
def test_the_logarithm_is_accurate_relative_to_itself(size: float, count: int, span: int) -> None:
    """Multiplied by a billion records it must still be right: against 60 digits."""
    steps, weights = law(1, count, span)
    z = size * np.exp(1j * np.linspace(0.1, 1.5, 5)) / span
    mean, logs = log_transform(steps, weights, z)
    with mpmath.workdps(60):
        masses = [mpmath.mpf(p) for p in weights]
        masses = [p / mpmath.fsum(masses) for p in masses]
        for point, found in zip(z, logs, strict=True):
            exact = mpmath.log(
                mpmath.fsum(
                    p * mpmath.exp(mpmath.mpc(point) * (s - mpmath.mpf(mean)))
                    for p, s in zip(masses, steps, strict=True)
                )
            )
            assert abs(complex(found) - complex(exact)) <= 2e-14 * abs(complex(exact)) + 1e-16 * size


@pytest.mark.parametrize(("count", "span", "n"), [(2, 1, 2000), (4, 9, 300), (12, 100, 5000), (3, 60, 10**6)])
def test_nothing_is_left_outside_the_peaks(count: int, span: int, n: int) -> None:
    """Beyond the central peak and away from the side lobes, the n-th power is below e^-42 everywhere."""
    steps, weights = law(2, count, span)
    reach = central_reach(steps, weights, n, 42.0)
    assert reach is not None
    lobes = side_lobes(steps, weights, n, reach, 42.0)
    assert lobes is not None
    away = steps - weights @ steps
    t = np.linspace(reach, math.pi, 40_001)
    logs = np.array([n * math.log(max(abs(np.exp(1j * a * away) @ weights), 1e-300)) for a in t])
    near = np.zeros(len(t), dtype=bool)
    for lobe in lobes:
        near |= np.abs(t - lobe) < 2 * reach
    assert np.all(logs[~near] < -42.0 + 1e-6)
    for lobe in lobes:
        assert n * math.log(abs(np.exp(1j * lobe * away) @ weights)) > -42.0


def test_all_lobes_of_a_coarser_lattice_are_found() -> None:
    """Scores 0 and 512, with a rare 77: one peak at every multiple of 2 pi/512."""
    steps, weights = np.array([0.0, 77.0, 512.0]), np.array([0.4, 1e-8, 0.6 - 1e-8])
    n = 10**8
    reach = central_reach(steps, weights, n, 46.0)
    assert reach is not None
    lobes = side_lobes(steps, weights, n, reach, 46.0)
    assert lobes is not None
    np.testing.assert_allclose(lobes, 2 * math.pi / 512 * np.arange(1, 257), atol=1e-9)
    same = side_lobes(steps, weights, n, reach, 46.0, most=256)
    assert same is not None
    assert same.tolist() == lobes.tolist()
    assert side_lobes(steps, weights, n, reach, 46.0, most=255) is None


def test_no_reach_where_the_transform_does_not_die() -> None:
    steps = np.array([0.0, 1.0])
    assert central_reach(steps, np.array([1.0, 0.0]), 1000, 42.0) is None
    assert central_reach(steps, np.array([1 - 1e-9, 1e-9]), 1000, 42.0) is None
    assert side_lobes(np.array([0.0, 1e9]), np.array([0.5, 0.5]), 10, 0.1, 42.0) is None
