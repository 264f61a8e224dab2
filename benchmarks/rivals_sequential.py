r"""Other private sequential tests, for honest comparison: none of them ours, and none of them safe to use on real data.

- :func:`dp_sprt`: DP-SPRT (arXiv 2508.06377) with Laplace noise and its printed constants: one Z ~ Lap(2/epsilon)
  shared by both thresholds, Lap(4/epsilon) at every step, a correction of 6 log(max(epsilon, 2) n^s zeta(s)/level)
  /epsilon on the sum, s = 1.134, and levels max(1/2, 1 - 1/epsilon) alpha. Bernoulli records only.
- :func:`priv_sprt`: PrivSPRT (arXiv 2204.04597): ratios truncated to [-A, A], thresholds with N(0, sigma1^2) and sums
  with N(0, sigma2^2) at every step, sigma1^2 = 32 A^2 log(1.25/delta)/e'^2, sigma2^2 = 4 sigma1^2, e' = epsilon/sqrt 8
  (the scales of the public comparison by the authors of DP-SPRT); (epsilon, delta)-DP, which is weaker than ours. Its
  thresholds carry no error guarantee: :func:`thresholds_for` moves them out until simulated errors are as asked.
- :func:`dp_cusum`: DP-CUSUM (arXiv 2509.02768): no code and no readable table of constants; ASSUMED here are a
  threshold with Lap(4 A/epsilon) noise and Lap(2 A/epsilon) at every step on W = max(W + log Q/P, 0), A the ratio's
  range.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from privatest.numbers import Floats, Integers

__all__ = ["NEVER", "Outcomes", "dp_cusum", "dp_sprt", "priv_sprt", "thresholds_for"]

NEVER = -1
S = 1.134
ZETA = float(special.zeta(S))


class Outcomes(NamedTuple):
    """Of each stream: records till the decision (-1: none), and whether it was for the alternative."""

    seen: Integers
    alternative: np.ndarray


def dp_sprt(
    records: np.ndarray,
    rates: tuple[float, float],
    errors: tuple[float, float],
    epsilon: float,
    rng: np.random.Generator,
    correction: float = 1.0,
) -> Outcomes:
    """One row of zeros and ones for each stream; ``correction``: a factor on the printed correction, 1 as published."""
    (p0, p1), (alpha, beta) = rates, errors
    runs, most = records.shape
    n = np.arange(1, most + 1, dtype=np.float64)
    odds = math.log(p1 * (1 - p0) / (p0 * (1 - p1)))
    kl01, kl10 = _divergence(p0, p1), _divergence(p1, p0)
    noisy = np.cumsum(records, axis=1) + rng.laplace(scale=4 / epsilon, size=records.shape)
    shared = rng.laplace(scale=2 / epsilon, size=(runs, 1))
    share = max(0.5, 1 - 1 / epsilon)

    def extra(level: float) -> Floats:
        found: Floats = correction * 6 * np.log(max(epsilon, 2) * n**S * ZETA / level) / epsilon
        return found

    lower = n * p0 + (n * kl01 - math.log(1 / (share * beta))) / odds - shared - extra(beta)
    upper = n * p1 + (-n * kl10 + math.log(1 / (share * alpha))) / odds + shared + extra(alpha)
    return _first(noisy <= lower, noisy >= upper)


def priv_sprt(
    ratios: Floats,
    thresholds: tuple[float, float],
    most_ratio: float,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
) -> Outcomes:
    """One row of log Q/P for each stream."""
    runs = len(ratios)
    sigma = math.sqrt(32 * math.log(1.25 / delta)) * most_ratio / (epsilon / math.sqrt(8))
    sums = np.cumsum(np.clip(ratios, -most_ratio, most_ratio), axis=1)
    low, high = (threshold + rng.normal(scale=sigma, size=(runs, 1)) for threshold in thresholds)
    down, up = (sums + rng.normal(scale=2 * sigma, size=sums.shape) for _ in range(2))
    return _first(down <= low, up >= high)


def thresholds_for(
    null: Floats, alternative: Floats, errors: tuple[float, float], most_ratio: float, epsilon: float, delta: float,
    rng: np.random.Generator,
) -> tuple[float, float]:  # fmt: skip
    """Symmetric thresholds for :func:`priv_sprt`, the nearest at which simulated errors are at most as asked."""
    low, high = 0.0, 1.0

    def good(level: float) -> bool:
        wrong = priv_sprt(null, (-level, level), most_ratio, epsilon, delta, rng).alternative.mean()
        missed = 1 - priv_sprt(alternative, (-level, level), most_ratio, epsilon, delta, rng).alternative.mean()
        return bool(wrong <= errors[0] and missed <= errors[1])

    while not good(high) and high < 1e6:
        low, high = high, 2 * high
    while high - low > 0.02 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return -high, high


def dp_cusum(ratios: Floats, reach: float, epsilon: float, threshold: float, rng: np.random.Generator) -> Integers:
    """Records till the alarm (-1: none) of each row of log Q/P; ``reach`` is the range of the ratio."""
    sums = np.concatenate([np.zeros((len(ratios), 1)), np.cumsum(ratios, axis=1)], axis=1)
    walk = (sums - np.minimum.accumulate(sums, axis=1))[:, 1:]
    levels = threshold + rng.laplace(scale=4 * reach / epsilon, size=(len(ratios), 1))
    crossed = walk + rng.laplace(scale=2 * reach / epsilon, size=walk.shape) > levels
    found: Integers = np.where(crossed.any(axis=1), np.argmax(crossed, axis=1) + 1, NEVER)
    return found


def _divergence(p: float, q: float) -> float:
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


def _first(null: np.ndarray, alternative: np.ndarray) -> Outcomes:
    """The first step at which one of the two holds; of both at once the null's, as published."""
    either = null | alternative
    place = np.argmax(either, axis=1)
    rows = np.arange(len(either))
    seen = np.where(either.any(axis=1), place + 1, NEVER)
    return Outcomes(seen, alternative[rows, place] & ~null[rows, place])
