r"""The least type II error of any test, private or not, between two members of a family: Neyman and Pearson 1933.

Where the sum of one statistic of the records says all there is to know, its law is one of four, and the error is a
formula. Discrete totals are decided by a coin at one value, so that the type I error is alpha and not less: no test has
a smaller type II error.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.special import bdtr, gammainc, gammaincc, gammainccinv, gammaincinv, nbdtr, ndtr, ndtri, pdtr

from privatest.decision.build import unclamped
from privatest.hypotheses import Distribution, Pair
from privatest.hypotheses.sets import parameters_of

__all__ = ["least_missed", "least_missed_between"]

Cdf = Callable[[int], float]


def least_missed(pair: Pair, n: int, alpha: float) -> float:
    """The type II error that no test on n records with a type I error of at most alpha can fall below.

    Guarantees: at most the best test's, up to rounding; equal to it where the family has a formula.
    """
    found = least_missed_between(pair.null, pair.alternative, n, alpha)
    if found is not None:
        return found
    made = unclamped(pair, n, "llr", alpha=alpha)
    # What the coin adds to the type I error, it takes from the type II error at no more than the next ratio's rate.
    least = float(made.score.value(made.cutoff, n))
    return max(made.beta - math.exp(min(-least, 700.0)) * max(alpha - made.alpha, 0.0), 0.0)


def least_missed_between(null: Distribution, alternative: Distribution, n: int, alpha: float) -> float | None:
    """The same by a formula; None where there is none for the two."""
    one, other = parameters_of(null), parameters_of(alternative)
    if one is None or other is None or one[0] != other[0]:
        return None
    moved = [i for i, (a, b) in enumerate(zip(one[1], other[1], strict=True)) if a != b]
    if not moved:
        return 1 - alpha
    which = one[0].name, one[0].parameters[moved[0]].name
    if which in SHIFTS and len(moved) == 1:
        return _normal(SHIFTS[which](n, *one[1]), SHIFTS[which](n, *other[1]), alpha)
    if which in SCALES and len(moved) == 1:
        return _gamma(SCALES[which](n, *one[1]), SCALES[which](n, *other[1]), alpha)
    if which in COUNTS and len(moved) == 1:
        return _counts(COUNTS[which](n, *one[1]), COUNTS[which](n, *other[1]), alpha)
    return None


# Mean and standard deviation of a total that is normal.
SHIFTS: dict[tuple[str, str], Callable[..., tuple[float, float]]] = {
    ("normal", "mean"): lambda n, mean, sd: (n * mean, math.sqrt(n) * sd),
    ("lognormal", "mean"): lambda n, mean, sd: (n * mean, math.sqrt(n) * sd),
}
# Shape and scale of a total that has a gamma law: of |x|, x^2 / 2, x^k or log x.
SCALES: dict[tuple[str, str], Callable[..., tuple[float, float]]] = {
    ("exponential", "scale"): lambda n, scale: (n, scale),
    ("gamma", "scale"): lambda n, shape, scale: (n * shape, scale),
    ("laplace", "scale"): lambda n, _, scale: (n, scale),
    ("normal", "sd"): lambda n, _, sd: (n / 2, sd**2),
    ("lognormal", "sd"): lambda n, _, sd: (n / 2, sd**2),
    ("half_normal", "scale"): lambda n, scale: (n / 2, scale**2),
    ("rayleigh", "scale"): lambda n, scale: (n, scale**2),
    ("weibull", "scale"): lambda n, shape, scale: (n, scale**shape),
    ("pareto", "shape"): lambda n, shape, _: (n, 1 / shape),
}
# The cdf of a total that is a whole number, and its mean.
COUNTS: dict[tuple[str, str], Callable[..., tuple[Cdf, float]]] = {
    ("bernoulli", "p"): lambda n, p: (lambda k: float(bdtr(min(k, n), n, p)), n * p),
    ("share_above", "share"): lambda n, _, p: (lambda k: float(bdtr(min(k, n), n, p)), n * p),
    ("binomial", "p"): lambda n, of, p: (lambda k: float(bdtr(min(k, n * int(of)), n * int(of), p)), n * of * p),
    ("poisson", "mean"): lambda n, mean: (lambda k: float(pdtr(k, n * mean)), n * mean),
    ("geometric", "p"): lambda n, p: (lambda k: float(nbdtr(k, n, p)), n * (1 - p) / p),
}


def _normal(null: tuple[float, float], alternative: tuple[float, float], alpha: float) -> float:
    return float(ndtr(-ndtri(alpha) - abs(null[0] - alternative[0]) / null[1]))


def _gamma(null: tuple[float, float], alternative: tuple[float, float], alpha: float) -> float:
    (shape, one), (_, other) = null, alternative
    if other > one:
        return float(gammainc(shape, float(gammainccinv(shape, alpha)) * one / other))
    return float(gammaincc(shape, float(gammaincinv(shape, alpha)) * one / other))


def _counts(null: tuple[Cdf, float], alternative: tuple[Cdf, float], alpha: float) -> float:
    (under_null, mean), (under_alternative, other) = null, alternative
    up = other > mean

    def tails(k: int, cdf: Cdf) -> float:
        """Of k or more, or of k or less: those at which the null is given up."""
        below = float(cdf(k - 1 if up else k)) if k - up >= 0 else 0.0
        return 1 - below if up else below

    # Invariant: giving up from `inside` on keeps to alpha, from `outside` on does not.
    step = 1 if up else -1
    reach = 1
    inside = outside = round(mean)
    while tails(inside, under_null) > alpha:
        if inside < 0:
            break
        outside, inside, reach = inside, inside + step * reach, 2 * reach
    reach = 1
    while tails(outside, under_null) <= alpha:
        inside, outside, reach = outside, outside - step * reach, 2 * reach
    while abs(inside - outside) > 1:
        middle = (inside + outside) // 2
        inside, outside = (middle, outside) if tails(middle, under_null) <= alpha else (inside, middle)
    (a, more), (found, rest) = ((tails(inside, cdf), tails(outside, cdf)) for cdf in (under_null, under_alternative))
    coin = (alpha - a) / (more - a)
    return min(max(1 - found - coin * (rest - found), 0.0), 1.0)
