"""What others do: noisy counts and a chi-squared statistic; without privacy, the binomial and chi-squared tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

__all__ = ["plain_binomial", "private_chi_squared"]

Floats = npt.NDArray[np.float64]


def private_chi_squared(
    p: Floats, q: Floats, n: int, epsilon: float, alpha: float, runs: int, rng: np.random.Generator
) -> float:
    """Type II error at q of the chi-squared statistic of counts with Laplace noise of scale 2/epsilon.

    Gaboardi, Lim, Rogers and Vadhan 2016, the version whose threshold is simulated under P.
    """

    def statistic(law: Floats) -> Floats:
        parts = []
        for start in range(0, runs, 500):
            size = min(500, runs - start)
            noisy = rng.multinomial(n, law, size=size) + rng.laplace(scale=2 / epsilon, size=(size, len(p)))
            parts.append(((noisy - n * p) ** 2 / (n * p)).sum(axis=1))
        return np.concatenate(parts)

    threshold = np.quantile(statistic(p), 1 - alpha)
    return float(np.mean(statistic(q) <= threshold))


def plain_binomial(p: float, distance: float, n: int, alpha: float) -> float:
    """Type II error, without privacy, of the two-sided binomial test with equal tails, randomised to its level."""
    x = np.arange(n + 1)
    law = stats.binom.pmf(x, n, p)
    reject = np.zeros(n + 1)
    for order in (np.arange(n + 1), np.arange(n, -1, -1)):
        before = np.cumsum(law[order]) - law[order]
        reject[order] += np.clip((alpha / 2 - before) / np.maximum(law[order], 1e-300), 0, 1)
    sides = [q for q in (p - distance, p + distance) if 0 <= q <= 1]
    return max(1 - float(stats.binom.pmf(x, n, q) @ np.minimum(reject, 1)) for q in sides)
