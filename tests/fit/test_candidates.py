"""Two symbols: near the best of all epsilon-DP tests, and better than a noisy interval."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, stats

from privatest.fit import design_fit
from privatest.privacy import Tulap

ALPHA = 1 / 6


def best_possible(p: float, distance: float, epsilon: float, n: int) -> float:
    """Smallest type II error of any epsilon-DP test of the count, by linear programming."""
    x, e = np.arange(n + 1), np.exp(epsilon)
    rows, bounds = [], []
    for i in range(n):
        for a, b in ((i, i + 1), (i + 1, i)):
            row = np.zeros(n + 2)
            row[a], row[b] = 1, -e
            rows.append(row)
            bounds.append(0.0)
            row = np.zeros(n + 2)
            row[a], row[b] = e, -1
            rows.append(row)
            bounds.append(e - 1)
    rows.append(np.append(stats.binom.pmf(x, n, p), 0))
    bounds.append(ALPHA)
    for q in (p - distance, p + distance):
        if 0 <= q <= 1:
            rows.append(np.append(-stats.binom.pmf(x, n, q), 1))
            bounds.append(0.0)
    found = optimize.linprog(
        np.append(np.zeros(n + 1), -1), A_ub=np.array(rows), b_ub=bounds, bounds=[(0, 1)] * (n + 2), method="highs"
    )
    return 1 - float(found.x[-1])


def interval(p: float, distance: float, epsilon: str, n: int) -> float:
    """Type II error of the symmetric interval for the noisy count."""
    x, noise, scale = np.arange(n + 1), Tulap(Fraction(epsilon), 4), 4

    def outside(half: float, q: float) -> float:
        upper, lower = noise.sf(scale * (n * p + half - x)), noise.cdf(scale * (n * p - half - x))
        return float(stats.binom.pmf(x, n, q) @ (upper + lower))

    half = optimize.brentq(lambda h: outside(h, p) - ALPHA, 0, 3 * n)
    return max(1 - outside(half, q) for q in (p - distance, p + distance))


@pytest.mark.parametrize(
    ("p", "distance", "epsilon", "n"),
    [(0.5, 0.3, 1.0, 30), (0.5, 0.3, 0.3, 30), (0.2, 0.1, 1.0, 100), (0.1, 0.3, 0.3, 30)],
)
def test_close_to_the_best_possible(p: float, distance: float, epsilon: float, n: int) -> None:
    test = design_fit([1 - p, p], distance=distance, epsilon=epsilon, n=n, alpha=1 / 6)
    best = best_possible(p, distance, epsilon, n)
    assert best - 1e-9 <= test.beta <= 1.07 * best
    assert test.method == "binomial"
