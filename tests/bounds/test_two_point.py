"""Chains of every notion on two points: DESIGN's table, the program, levels; a polygon that is never above them."""

from __future__ import annotations

import numpy as np
import pytest

from privatest.bounds.lower_bound import lower_bound
from privatest.bounds.optimum import Program, optimum, optimum_sample_size
from privatest.bounds.two_point import Chains, corners
from privatest.hypotheses import make_pair
from privatest.notions import approx, gdp, kl, pure, renyi, tv, zcdp
from privatest.privacy import Notion, as_notion
from privatest.theory.coupling import merge

SIZES = {
    "pure(1)": 29,
    "approx(1, 1e-6)": 29,
    "approx(0.5, 0.05)": 32,
    "tv(0.1)": 43,
    "tv(0.25)": 28,
    "gdp(1)": 27,
    "gdp(0.5)": 34,
}
COINS = "bernoulli(0.4)", "bernoulli(0.6)"
ALL = [pure(1), approx(0.5, 0.05), tv(0.1), gdp(1), kl(0.1), renyi(2, 0.5), zcdp(0.5)]


@pytest.mark.parametrize("notion", SIZES)
def test_sample_sizes_of_the_design(notion: str) -> None:
    """Must show 1, the optimum's side; the program agrees on both sides of the step at fewer records."""
    assert optimum_sample_size(*COINS, privacy=notion) == lower_bound(*COINS, privacy=notion) == SIZES[notion]
    n = SIZES[notion]
    assert Chains(n, 0.6, 0.4, as_notion(notion)).best()[0] >= 2 / 3
    assert Chains(n - 1, 0.6, 0.4, as_notion(notion)).best()[0] < 2 / 3


@pytest.mark.parametrize("notion", ALL, ids=str)
def test_chains_are_what_the_program_finds(notion: Notion) -> None:
    n = 4 if notion == zcdp(0.5) else 7
    x, y = 0.8, 0.35
    classes = merge(make_pair([1 - x, x], [1 - y, y]))
    assert Chains(n, x, y, notion).best()[0] == pytest.approx(Program(classes, notion, n).solved()[1], abs=3e-9)
    power = Program(classes, notion, n, 0.1).solved()[1]
    assert 1 - Chains(n, x, y, notion).beta_at(0.1)[0] == pytest.approx(power, abs=1e-8)


@pytest.mark.parametrize("notion", [approx(0.5, 0.05), gdp(0.7), kl(0.2)], ids=str)
def test_the_polygon_encloses_the_curve(notion: Notion) -> None:
    """No chain, between rungs either, has errors below the polygon, and it is near."""
    problem = Chains(25, 0.7, 0.4, notion, fine=4)
    a, b = corners(problem, 0)
    (first, alphas, _), _ = problem.outlines
    for at in first + np.linspace(2, len(alphas) - 3, 40):
        alpha, beta = problem.errors(float(at))
        least = float(np.interp(alpha, a, b))
        assert least - 1e-13 <= beta <= least + 0.01
    low, high = problem.bounds()
    assert low - 1e-15 <= problem.best()[0] <= high + 1e-15
    assert high - low < 0.005


def test_a_level_is_kept_and_used_up() -> None:
    for privacy in ("pure(1)", "approx(0.5, 0.05)", "tv(0.1)", "gdp(1)"):
        found = optimum(*COINS, privacy=privacy, n=20, alpha=0.05)
        assert 0.05 - 1e-9 <= found.alpha <= 0.05
        assert found.gap == pytest.approx(0, abs=1e-9)
    size = optimum_sample_size(*COINS, epsilon=1, alpha=0.05, beta=0.2)
    assert size == 44
    assert optimum(*COINS, epsilon=1, n=44, alpha=0.05).beta <= 0.2 < optimum(*COINS, epsilon=1, n=43, alpha=0.05).beta
