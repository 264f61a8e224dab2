"""The paper's worked examples: exact sample sizes stay within a constant band of its formulas."""

from __future__ import annotations

import pytest

import privatest as pt

ALPHAS = (0.1, 0.02, 0.003)
EPSILONS = (0.001, 0.03, 0.3, 1)
CORNERS = (0.1, 0.02), (0.03, 1)
grids = pytest.mark.parametrize(
    "grid", [CORNERS, pytest.param((ALPHAS, EPSILONS), marks=pytest.mark.exhaustive)], ids=["few", "all"]
)


def band(ratios: dict[tuple[float, float], float]) -> str:
    low, high = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    return f"{ratios[low]:.3f} (alpha {low[0]}, eps {low[1]}) to {ratios[high]:.3f} (alpha {high[0]}, eps {high[1]})"


@grids
def test_three_points_whose_best_test_changes_with_epsilon(grid, show) -> None:  # type: ignore[no-untyped-def]
    """min{1/(alpha^1.5 eps), 1/alpha^2 + 1/(alpha eps)}: count the impossible records, or use them all."""
    ratios = {}
    for alpha in grid[0]:
        rare = 2 * alpha**1.5
        p, q = [0.0, 0.5, 0.5], [rare, 0.5 + alpha - rare / 2, 0.5 - alpha - rare / 2]
        for epsilon in grid[1]:
            formula = min(1 / (alpha**1.5 * epsilon), 1 / alpha**2 + 1 / (alpha * epsilon))
            ratios[alpha, epsilon] = pt.sample_size(p, q, epsilon=epsilon) / formula
    show(f"three points: n over the formula from {band(ratios)}")
    assert min(ratios.values()) > 0.2
    assert max(ratios.values()) < 2


@pytest.mark.parametrize("example", ["symmetric", "from zero"])
@grids
def test_bernoulli_examples(example, grid, show) -> None:  # type: ignore[no-untyped-def]
    ratios = {}
    for alpha in grid[0]:
        for epsilon in grid[1]:
            if example == "symmetric":
                p, q, formula = (1 + alpha) / 2, (1 - alpha) / 2, 1 / alpha**2 + 1 / (alpha * epsilon)
            else:
                p, q, formula = 0.0, alpha, 1 / (alpha * epsilon)
            n = pt.sample_size([1 - p, p], [1 - q, q], epsilon=epsilon)
            ratios[alpha, epsilon] = n / formula
    show(f"Bernoulli, {example}: n over the formula from {band(ratios)}")
    assert min(ratios.values()) > 0.3
    assert max(ratios.values()) < 3.5
