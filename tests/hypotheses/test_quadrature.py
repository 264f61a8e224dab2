"""Quadrature, edges, flat stretches, extrema and heavy tails, on functions with known answers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privatest.hypotheses.density import (
    Nodes,
    adaptive,
    build_panels,
    half_nodes,
    panel_nodes,
    split_panels,
)
from privatest.hypotheses.distribution import find_breaks
from privatest.hypotheses.pair import (
    find_edges,
    find_plateaus,
    has_true_zero,
    limits,
    refine_extrema,
    subdivide,
    tail_remainder,
)
from privatest.numbers import Floats

EDGES = np.linspace(0.0, 2.0, 5)


def abscissae(x: Floats) -> Nodes:
    return (x,)


def integrate(function, cuts: Floats | None = None) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    lower, upper = EDGES[:-1], EDGES[1:]
    whole = abscissae(panel_nodes(lower, upper)[0])
    halves = half_nodes(abscissae, lower, upper)
    if cuts is not None:
        lower, upper, whole, halves = split_panels(abscissae, cuts, lower, upper, whole, halves)
    value, error, parts = adaptive(
        lambda nodes: (function(nodes[0]), 0 * nodes[0]), abscissae, lower, upper, whole, halves
    )
    assert parts.sum() == pytest.approx(value)
    return value, error


@pytest.mark.parametrize(
    ("function", "truth"),
    [
        (np.exp, math.expm1(2)),
        (lambda x: np.abs(x - 0.3137), (0.3137**2 + (2 - 0.3137) ** 2) / 2),
        (lambda x: np.where(x > 1.2345, 1.0, 0.0), 2 - 1.2345),
        (lambda x: 1 / np.sqrt(x), 2 * math.sqrt(2)),
        (lambda x: np.exp(-(((x - 1) / 1e-2) ** 2)), 1e-2 * math.sqrt(math.pi)),
    ],
)
def test_smooth_kinked_broken_and_singular_integrands(function, truth: float) -> None:  # type: ignore[no-untyped-def]
    value, error = integrate(function)
    assert abs(value - truth) <= max(error, 1e-13) + 1e-9 * abs(truth)
    assert value == pytest.approx(truth, rel=1e-8)


def test_cuts_make_kinks_harmless() -> None:
    value, error = integrate(lambda x: np.abs(x - 0.3137), np.array([-1.0, 0.3137, 0.5, 1.9, 7.0]))
    assert value == pytest.approx((0.3137**2 + (2 - 0.3137) ** 2) / 2, rel=1e-15)
    assert error < 1e-14


def test_noise_stops_the_refinement() -> None:
    rng = np.random.default_rng(6)
    calls = []

    def noisy(x: Floats) -> Nodes:
        calls.append(x.size)
        return (x, rng.normal(0, 1e-9, x.shape))

    lower, upper = EDGES[:-1], EDGES[1:]
    whole, halves = noisy(panel_nodes(lower, upper)[0]), half_nodes(noisy, lower, upper)
    value, _, _ = adaptive(
        lambda nodes: (nodes[0] + nodes[1], np.full_like(nodes[0], 1e-9)), noisy, lower, upper, whole, halves
    )
    assert value == pytest.approx(2, abs=1e-8)
    assert len(calls) == 2


def test_edges_of_smooth_functions_and_of_jumps() -> None:
    grid = np.array([0.0, 1.0, 2.0, 3.0])

    def function(x: Floats) -> Floats:
        return np.where(x < 1.5, x**3, np.where(x < 2.25, -5.0, 40.0))

    values = function(grid)
    there = values > 0.5
    flips = np.flatnonzero(there[1:] != there[:-1])
    edges = find_edges(function, lambda v: v > 0.5, 0.5, grid, values, flips, there[flips])
    np.testing.assert_allclose(edges, [0.5 ** (1 / 3), 1.5, 2.25], rtol=3e-16)
    assert function(edges[1:2])[0] <= 0.5  # the interval is open: its end is not inside


def test_edges_next_to_zero_and_with_infinities() -> None:
    grid = np.array([-1.0, 1e-3, 1.0])

    def function(x: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(x < 0, -np.inf, np.where(x > 0.25, np.nan, 1.0))

    there = np.array([False, True, False])
    edges = find_edges(function, lambda v: v > 0, 0.0, grid, function(grid), np.array([0, 1]), there[np.array([0, 1])])
    assert abs(edges[0]) < 1e-15
    assert edges[1] == pytest.approx(0.25, rel=1e-15)


def test_plateaus_are_found_and_drifts_are_not() -> None:
    x = np.linspace(-10, 10, 201)
    noise = np.full(x.size, 1e-15)
    rng = np.random.default_rng(8)
    flat = np.clip(x, -1, 1) + rng.uniform(-1e-15, 1e-15, x.size)
    found = find_plateaus(x, flat, noise, (-np.inf, np.inf))
    assert found.start.tolist() == [-np.inf, pytest.approx(1)]
    assert found.end.tolist() == [pytest.approx(-1), np.inf]
    assert found.apply(np.array([-1e9, 0.5, 1e9]), np.array([7.0, 0.5, 7.0])) == pytest.approx([-1, 0.5, 1])
    drift = 1e-15 * np.arange(x.size)
    assert not find_plateaus(x, drift, noise / 4, (-np.inf, np.inf))
    assert not find_plateaus(x, x, noise, (-np.inf, np.inf))


def test_extrema_are_refined() -> None:
    x = np.linspace(0, 10, 40)
    found = refine_extrema(x, np.sin(x), np.full(x.size, 1e-16), np.sin)
    np.testing.assert_allclose(found, [math.pi / 2, 3 * math.pi / 2, 5 * math.pi / 2], rtol=1e-7)


def test_limits_at_the_ends() -> None:
    def with_noise(function):  # type: ignore[no-untyped-def]
        return lambda x: (function(x), np.full(x.shape, 1e-16))

    breaks = np.linspace(-5, 5, 11)
    line = (-math.inf, math.inf)
    np.testing.assert_allclose(limits(with_noise(np.tanh), line, breaks), [-1, 1])
    assert limits(with_noise(lambda x: np.log1p(np.abs(x))), line, breaks).tolist() == [math.inf, math.inf]
    ends = limits(with_noise(lambda x: np.log(x)), (0.0, 1.0), np.array([0.1, 0.5, 0.9]))
    assert ends[0] == -math.inf
    assert ends[1] == pytest.approx(0, abs=1e-6)


def test_subdivision() -> None:
    np.testing.assert_allclose(subdivide(np.array([0.0, 1.0, 3.0]), 2), [0, 0.5, 1, 2, 3])
    assert subdivide(np.array([1.0]), 4).tolist() == [1.0]


def test_tails_that_converge_and_tails_that_do_not() -> None:
    u = 10.0 ** -np.arange(300, 4, -1.0)
    assert tail_remainder(u, 1 / u) == math.inf  # like Cauchy against normal: u L(u) constant
    assert tail_remainder(u, u**-0.5) == pytest.approx(2e-150, rel=1e-6)
    assert tail_remainder(u, -np.log(u)) < 1e-290
    assert tail_remainder(u, -np.ones_like(u)) == 0
    assert tail_remainder(np.full(50, 1e-16), np.arange(1.0, 51.0)) == 0


def test_zeros_and_underflows_are_told_apart() -> None:
    inf = math.inf
    assert not has_true_zero(np.array([1.0, 2.0]), np.array([-1.0, -2.0]))
    assert has_true_zero(np.array([1.0, inf, 2.0]), np.array([-1.0, -inf, -2.0]))
    assert has_true_zero(np.array([1.0, inf]), np.array([-1.0, -inf]))
    assert not has_true_zero(np.array([1.0, 700.0, inf]), np.array([-1.0, -705.0, -inf]))
    assert has_true_zero(np.array([inf]), np.array([-inf]))


def test_panels_of_a_density() -> None:
    def log(x: Floats) -> Floats:
        return -np.abs(x - 1e3) - math.log(2)

    panels = build_panels(log, find_breaks(log, (-math.inf, math.inf)))
    assert panels.total == pytest.approx(1, abs=1e-12)
    assert panels.error < 1e-10
    assert np.all(np.diff(panels.edges) > 0)
