r"""Other ways to find a change, for honest comparison: none of them ours, and none of them safe to use on real data.

They run on simulated series, in doubles, many at once: rows of ``series`` are series, rows of ``ratios`` their
log-likelihood ratios log P/Q. Index 0, ..., n - 1 is the first record of the new regime.

- :func:`offline_pcpd`: Cummings, Krehbiel, Mei, Tuo, Zhang 2018: argmax of :math:`\sum_{i \ge k} \log Q/P` plus
  Laplace noise of scale A/epsilon, A the range of the ratio, or A_delta for a guarantee weaker than DP.
- :func:`maximum_likelihood`: not private.
- :func:`pncpd`: Cummings, Krehbiel, Lut, Zhang 2020: Mann-Whitney statistics, for unknown P and Q.
"""

from __future__ import annotations

import math

import numpy as np

from privatest.errors import Infeasible
from privatest.hypotheses import Pair
from privatest.numbers import Floats, Integers

__all__ = ["maximum_likelihood", "middle", "offline_pcpd", "pncpd", "range_of_ratio", "truncated_range"]


def maximum_likelihood(ratios: Floats) -> Integers:
    """The most likely index."""
    found: Integers = np.argmax(_suffix_sums(ratios), axis=1)
    return found


def offline_pcpd(ratios: Floats, sensitivity: float, epsilon: float, rng: np.random.Generator) -> Integers:
    """Report noisy max with Laplace noise of scale sensitivity/epsilon."""
    noise = rng.laplace(scale=sensitivity / epsilon, size=ratios.shape)
    found: Integers = np.argmax(_suffix_sums(ratios) + noise, axis=1)
    return found


def pncpd(
    series: Floats, epsilon: float, rng: np.random.Generator, gamma: float = 0.1, rising: bool = True
) -> Integers:
    r"""Argmax, from gamma n to (1 - gamma) n, of the share of pairs across k in order, plus Lap(2/(epsilon gamma n)).

    .. math:: V(k) = \frac{1}{k (n - k)} \sum_{i \le k < j} 1[x_i < x_j]

    with ``rising`` False for 1[x_i > x_j], as published.
    """
    runs, n = series.shape
    first, last = math.ceil(gamma * n), math.floor((1 - gamma) * n)
    k = np.arange(first, last + 1)
    found = np.empty(runs, dtype=np.int64)
    for run in range(runs):
        x = series[run] if rising else -series[run]
        ordered = (x[:, None] < x[None, :]).astype(np.int32)
        # below[i, j] = pairs with first member before i and second member before j
        below = np.zeros((n + 1, n + 1), dtype=np.int64)
        below[1:, 1:] = ordered.cumsum(axis=0).cumsum(axis=1)
        statistic = (below[k, n] - below[k, k]) / (k * (n - k))
        found[run] = k[np.argmax(statistic + rng.laplace(scale=2 / (epsilon * gamma * n), size=len(k)))]
    return found


def middle(n: int, runs: int) -> Integers:
    """The dummy: the middle of the series, whatever the data."""
    return np.full(runs, n // 2, dtype=np.int64)


def range_of_ratio(pair: Pair) -> float:
    """A: the largest minus the smallest log-likelihood ratio. Infinite for most continuous pairs."""
    low, high = pair.ratio_range
    return high - low


def truncated_range(pair: Pair, delta: float) -> float:
    """A_delta = min {t: max over P and Q of Pr[2 abs(ratio) > t] < delta/2}."""

    def outside(t: float) -> float:
        return max(a + b for a, b in zip(pair.above(t / 2), pair.below(-t / 2), strict=True))

    low, high = 0.0, 1.0
    while outside(high) >= delta / 2:
        low, high = high, 2 * high
        if high > 1e6:
            raise Infeasible(f"delta={delta:g}: the ratio is unbounded with more probability than that.")
    # Invariant: outside(low) >= delta/2 > outside(high), or low = 0.
    for _ in range(60):
        t = (low + high) / 2
        low, high = (low, t) if outside(t) < delta / 2 else (t, high)
    return high


def _suffix_sums(ratios: Floats) -> Floats:
    """l(k) = sum over i >= k of log Q/P."""
    sums: Floats = -np.cumsum(ratios[:, ::-1], axis=1)[:, ::-1]
    return sums
