r"""Mean and variance of the statistic, its slopes in q, and the normal approximation that planning starts from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from privatest.fit.excess import Excess
from privatest.fit.groups import Groups, binomial_masses, poisson_masses

__all__ = ["Moments", "marginals", "moments", "normal_laplace_above", "rough_error"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Mean of T (exact) and its standard deviation (to first order in 1/n)."""

    mean: float
    deviation: float


def moments(excess: Excess, n: int, q: Floats) -> Moments:
    """For n records from q.

    Counts are binomial one by one, which gives the mean. Given their sum, Poisson counts are those of n records:
    the variance is that of T less what a regression on the sum explains.
    """
    mean = variance = covariance = 0.0
    for block in Groups.of(excess, q).blocks(n):
        mean += float(block.sizes @ (binomial_masses(block.counts, n, block.q) * block.values).sum(axis=1))
        masses = poisson_masses(block.counts, n, block.q)
        away = block.values - (masses * block.values).sum(axis=1, keepdims=True)
        variance += float(block.sizes @ (masses * away**2).sum(axis=1))
        covariance += float(block.sizes @ (masses * away * block.counts).sum(axis=1))
    return Moments(mean, math.sqrt(max(variance - covariance**2 / n, 1e-9)))


def marginals(excess: Excess, n: int, q: Floats) -> tuple[Floats, Floats]:
    r"""First and second derivative of E f_x(Bin(n, q_x)) in q_x, for each symbol.

    .. math:: h'(q) = n\,E\,\delta(\mathrm{Bin}(n-1, q)), \qquad h''(q) = n(n-1)\,E\,\Delta\delta(\mathrm{Bin}(n-2, q))

    with delta(j) = f(j+1) - f(j). The second is computed with Bin(n-1, q), which is near.
    """
    groups = Groups.of(excess, q)
    first, second = np.empty(len(groups.q)), np.empty(len(groups.q))
    for block in groups.blocks(n):
        masses = binomial_masses(block.counts, max(n - 1, 1), block.q)
        first[block.which] = n * (masses * block.steps).sum(axis=1)
        bends = np.diff(block.steps, axis=1, append=excess.width)
        second[block.which] = n * max(n - 1, 1) * (masses * bends).sum(axis=1)
    return first[groups.member], second[groups.member]


def normal_laplace_above(x: Floats | float, deviation: float, scale: float) -> Floats:
    """Pr[deviation Z + Laplace(scale) > x]."""
    # Beyond 1000 the Laplace part cannot be seen, and the exponents below would lose their digits.
    ratio = min(deviation / scale, 1000.0)
    z = np.asarray(x) / deviation
    with np.errstate(over="ignore", under="ignore"):
        right = np.exp(special.log_ndtr(z - ratio) + ratio**2 / 2 - z * ratio)
        left = np.exp(special.log_ndtr(-z - ratio) + ratio**2 / 2 + z * ratio)
    return np.asarray(special.ndtr(-z) + (right - left) / 2)


def rough_error(null: Moments, other: Moments, width: int, epsilon: float, alpha: float) -> float:
    """Type II error at type I error alpha, were T normal: what candidates are compared by."""
    scale = width / epsilon
    blurred = [math.hypot(m.deviation, width / math.sqrt(12)) for m in (null, other)]
    far = 40 * (blurred[0] + scale)
    cutoff = optimize.brentq(lambda x: float(normal_laplace_above(x, blurred[0], scale)) - alpha, -far, far)
    return float(normal_laplace_above(other.mean - null.mean - cutoff, blurred[1], scale))
