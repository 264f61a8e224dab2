"""Frozen distributions on the integers of the named families, as scipy.stats has them but without importing it.

As :mod:`privatest.pairs.frozen_reals`, for probability mass functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from privatest.pairs.distribution import Floats
from privatest.pairs.frozen_reals import special_functions

__all__ = ["DISCRETE", "FrozenIntegers", "Masses"]


@dataclass(frozen=True)
class Masses:
    """A family as functions of an integer k of its support and the shapes; ``high`` gives the support's end."""

    logpmf: Callable[..., Floats]
    cdf: Callable[..., Floats]
    sf: Callable[..., Floats]
    low: float = 0.0
    high: Callable[..., float] = lambda *_: math.inf


class FrozenIntegers:
    """The members of a frozen discrete scipy distribution that pairs use."""

    def __init__(self, family: str, shapes: tuple[float, ...]) -> None:
        self._family, self._shapes = family, shapes
        self._low, self._high = self._masses.low, float(self._masses.high(*shapes))

    @property
    def _masses(self) -> Masses:
        return DISCRETE[self._family]  # not kept: functions of a table cannot be pickled

    def support(self) -> tuple[float, float]:
        return self._low, self._high

    def logpmf(self, k: ArrayLike) -> Floats:
        x = np.asarray(k, dtype=np.float64)
        there = (x >= self._low) & (x <= self._high) & (np.floor(x) == x)
        with np.errstate(all="ignore"):
            log = self._masses.logpmf(np.where(there, x, self._low), *self._shapes)
        return np.where(there, log, np.where(np.isnan(x), np.nan, -np.inf))

    def cdf(self, k: ArrayLike) -> Floats:
        return self._share(self._masses.cdf, k, 0.0, 1.0)

    def sf(self, k: ArrayLike) -> Floats:
        return self._share(self._masses.sf, k, 1.0, 0.0)

    def _share(self, formula: Callable[..., Floats], k: ArrayLike, at_low: float, at_high: float) -> Floats:
        x = np.asarray(k, dtype=np.float64)
        there = (x >= self._low) & (x < self._high)
        with np.errstate(all="ignore"):
            inside = np.clip(formula(np.floor(np.where(there, x, self._low)), *self._shapes), 0.0, 1.0)
        outside = np.where(x < self._low, at_low, np.where(x >= self._high, at_high, np.nan))
        return np.where(there, inside, outside)

    def ppf(self, u: ArrayLike) -> Floats:
        """The smallest k with cdf(k) >= u.

        Invariant: cdf(low) < u <= cdf(high), once high is far enough.
        """
        share = np.asarray(u, dtype=np.float64)
        low = np.full(share.shape, self._low - 1)
        high = np.full(share.shape, min(self._high, self._low + 1))
        while bool(np.any(short := (self.cdf(high) < share) & (high < min(self._high, 2.0**60)))):
            low = np.where(short, high, low)
            high = np.where(short, np.minimum(self._low + 2 * (high - self._low), self._high), high)
        while bool(np.any(high - low > 1)):
            middle = np.floor((low + high) / 2)
            there = self.cdf(middle) >= share
            high, low = np.where(there, middle, high), np.where(there, low, middle)
        return np.where((share > 0) & (share < 1), high, np.where(share == 1, self._high, self._low - 1))

    @cached_property
    def _of_scipy(self) -> Any:
        from scipy import stats

        return getattr(stats, self._family)(*self._shapes)

    def rvs(self, size: int, random_state: np.random.Generator) -> Any:
        """Draws, which are scipy's own."""
        return self._of_scipy.rvs(size=size, random_state=random_state)


def _binomial_logpmf(k: Floats, n: float, p: float) -> Floats:
    special = special_functions()
    ways = special.gammaln(n + 1) - (special.gammaln(k + 1) + special.gammaln(n - k + 1))
    return np.asarray(ways + special.xlogy(k, p) + special.xlog1py(n - k, -p))


def _poisson_logpmf(k: Floats, mean: float) -> Floats:
    special = special_functions()
    return np.asarray(special.xlogy(k, mean) - special.gammaln(k + 1) - mean)


def _geometric_logpmf(k: Floats, p: float) -> Floats:
    return np.asarray(np.where(k == 1, 0.0, (k - 1) * np.log1p(-p)) + np.log(p))


def _negative_binomial_logpmf(k: Floats, n: float, p: float) -> Floats:
    special = special_functions()
    ways = special.gammaln(n + k) - special.gammaln(k + 1) - special.gammaln(n)
    return np.asarray(ways + n * np.log(p) + special.xlog1py(k, -p))


DISCRETE: Final[dict[str, Masses]] = {
    "bernoulli": Masses(
        lambda k, p: np.where(k == 1, np.log(p), np.log1p(-p)),
        lambda k, p: np.where(k == 0, 1 - p, 1.0),
        lambda k, p: np.where(k == 0, p, 0.0),
        high=lambda _: 1.0,
    ),
    "binom": Masses(
        _binomial_logpmf,
        lambda k, n, p: special_functions().betaincc(k + 1, n - k, p),
        lambda k, n, p: special_functions().betainc(k + 1, n - k, p),
        high=lambda n, _: n,
    ),
    "poisson": Masses(
        _poisson_logpmf,
        lambda k, mean: special_functions().pdtr(k, mean),
        lambda k, mean: special_functions().pdtrc(k, mean),
    ),
    "geom": Masses(
        _geometric_logpmf,
        lambda k, p: -np.expm1(np.log1p(-p) * k),
        lambda k, p: np.exp(np.log1p(-p) * k),
        low=1.0,
    ),
    "nbinom": Masses(
        _negative_binomial_logpmf,
        lambda k, n, p: special_functions().betainc(n, k + 1, p),
        lambda k, n, p: special_functions().betaincc(n, k + 1, p),
    ),
}
"""By their names in scipy.stats. Its zipf is not among them: no special function is its cdf."""
