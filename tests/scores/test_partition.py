"""Cells for real numbers: fine enough where it matters, few, and with the masses their edges give them."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from privatest.pairs import ContinuousPair, make_pair, mixture
from privatest.scores import BoundedCells, DyadicCells
from privatest.scores.partition import MOST_CELLS, cell_masses, partition

PAIRS = {
    "normal": (stats.norm(0, 1), stats.norm(1, 1)),
    "scale": (stats.norm(0, 1), stats.norm(0, 2)),
    "tiny": (stats.norm(0, 1e-99), stats.norm(1e-99, 1e-99)),
    "huge": (stats.norm(0, 1e99), stats.norm(1e99, 1e99)),
    "far from 0": (stats.norm(1e12, 1), stats.norm(1e12 + 1, 1)),
    "cauchy": (stats.cauchy(0, 1), stats.cauchy(1, 1)),
    "student and normal": (stats.t(2), stats.norm()),
    "exponential and gamma": (stats.expon(), stats.gamma(2)),
    "misaligned uniforms": (stats.uniform(0, 1), stats.uniform(0.3337, 1.1)),
    "narrow component": (
        mixture([0.9, 0.1], [stats.norm(0, 1), stats.norm(4, 0.001)]),
        mixture([0.8, 0.2], [stats.norm(0, 1), stats.norm(4, 0.001)]),
    ),
    "pareto": (stats.pareto(0.5), stats.pareto(0.7)),
}


def continuous(name: str) -> ContinuousPair:
    pair = make_pair(*PAIRS[name])
    assert isinstance(pair, ContinuousPair)
    return pair


@pytest.mark.parametrize("name", PAIRS)
def test_the_clamped_ratio_varies_little_within_a_cell(name: str) -> None:
    pair = continuous(name)
    low, high, step, spread = -1.0, 1.0, 2.0 / 512, 0.5
    cells, edges = partition(pair, low, high, step, spread)
    assert 3 <= cells.count <= MOST_CELLS + 2
    assert len(edges) == cells.count - 1
    assert np.all(np.diff(edges) > 0)
    # the variation within each record's cell, over records of both hypotheses, not over landmarks
    rng = np.random.default_rng(3)
    for law in (pair.null, pair.alternative):
        x = law.sample(rng, 2000)
        place = np.searchsorted(edges, x, side="right")
        ends = np.concatenate([[edges[0]], edges, [edges[-1]]])
        a, b = (np.clip(pair.ratio(ends[place + side]), low, high) for side in (0, 1))
        assert math.sqrt(float(np.mean(np.nan_to_num(a - b) ** 2)) / 12) <= max(step, spread / 24)


@pytest.mark.parametrize("name", PAIRS)
def test_cells_know_their_records(name: str) -> None:
    pair = continuous(name)
    cells, edges = partition(pair, -1.0, 1.0, 2.0 / 512, 0.5)
    x = pair.null.sample(np.random.default_rng(4), 4000)
    found = cells.index(np.asarray(x, dtype=np.float64))
    expected = np.searchsorted(edges, x, side="right")
    if isinstance(cells, DyadicCells):
        np.testing.assert_array_equal(found, expected)
    else:
        assert np.mean(found != expected) < 1e-3  # rounding within an ulp of an edge


def test_heavy_tails_take_the_bounded_transform_and_light_ones_do_not() -> None:
    assert isinstance(partition(continuous("cauchy"), -0.9, 0.9, 1.8 / 512, 0.4)[0], BoundedCells)
    assert isinstance(partition(continuous("pareto"), -2.0, 2.0, 4.0 / 512, 0.4)[0], BoundedCells)
    assert isinstance(partition(continuous("normal"), -1.0, 1.0, 2.0 / 512, 0.5)[0], DyadicCells)


@pytest.mark.parametrize("name", PAIRS)
def test_masses_are_probabilities(name: str) -> None:
    pair = continuous(name)
    _, edges = partition(pair, -1.0, 1.0, 2.0 / 512, 0.5)
    for law in (pair.null, pair.alternative):
        masses = cell_masses(law, edges)
        assert len(masses) == len(edges) + 1
        assert np.all(masses >= 0)
        assert math.fsum(masses) == pytest.approx(1, abs=2e-15)


def test_masses_are_accurate_relative_to_themselves_in_both_tails() -> None:
    edges = np.array([-30.0, -20.0, -8.0, 0.0, 1.0, 9.0, 25.0])
    pair = continuous("normal")
    masses = cell_masses(pair.null, edges)
    with mpmath.workdps(250):
        points = [mpmath.mpf("-inf"), *map(mpmath.mpf, edges.tolist()), mpmath.mpf("inf")]
        exact = [float(mpmath.ncdf(b) - mpmath.ncdf(a)) for a, b in itertools.pairwise(points)]
    np.testing.assert_allclose(masses, exact, rtol=1e-12)
