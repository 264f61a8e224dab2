"""Distributions with a density on the real line: what each can do, and scipy's, classic and new-style."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from privatest.errors import InvalidDistribution
from privatest.hypotheses.distribution import Numbers
from privatest.hypotheses.families import FromScipy
from privatest.hypotheses.quadrature import find_breaks
from privatest.vectors import Floats, quiet

__all__ = ["LEVELS", "NewScipyReals", "Reals", "ScipyReals", "inverse_cdf"]

LEVELS: Final[Floats] = np.unique(
    np.concatenate(
        [
            np.arange(0.02, 0.5, 0.02),  # the body
            10.0 ** -np.arange(2.0, 16.01, 0.5),  # tails that matter to a probability
            10.0 ** -np.arange(20.0, 301.0, 10.0),  # tails that matter to a ratio
            [0.5],
        ]
    )
)
"""Tail probabilities at whose quantiles panels and landmarks are placed."""

SMALLEST: Final = -708.0
"""Log of the smallest float that still has all its digits."""
LARGEST_VALUE: Final = 1e100
"""The middle 98% of a law must lie within this of 0: squares and sums of its values are computed."""


class Reals(Numbers):
    """A density on an interval, with a cdf and its complement that are accurate in their own tails."""

    kind = "reals"

    @abstractmethod
    def logpdf(self, x: ArrayLike) -> Floats:
        """Log density; -inf off the support."""

    @property
    @abstractmethod
    def breaks(self) -> Floats:
        """Finite points between which the density is tame: quantiles far into both tails, ends, kinks."""

    @property
    def cut(self) -> float | None:
        """Where the shape is unknown and only the side of a number counts: the number that divides them."""
        return None

    def pdf(self, x: ArrayLike) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.exp(self.logpdf(x)))

    def ppf(self, u: ArrayLike) -> Floats:
        return inverse_cdf(self, np.asarray(u, dtype=float), upper=False)

    def isf(self, u: ArrayLike) -> Floats:
        return inverse_cdf(self, np.asarray(u, dtype=float), upper=True)

    def mass(self, lower: ArrayLike, upper: ArrayLike) -> Floats:
        """Pr[lower < X <= upper] from whichever tail does not cancel."""
        a, b = np.broadcast_arrays(np.asarray(lower, dtype=float), np.asarray(upper, dtype=float))
        both = np.concatenate([a.ravel(), b.ravel()])
        cdf = self.cdf(both).reshape(2, -1)
        sf = self.sf(both).reshape(2, -1)
        centre = 1.0 - (cdf[0] + sf[1])
        mass = np.where(
            cdf[1] <= 0.5,
            cdf[1] - cdf[0],
            np.where(sf[0] <= 0.5, sf[0] - sf[1], centre),
        )
        return np.asarray(np.maximum(mass, 0.0).reshape(a.shape))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        return self.ppf(rng.random(size))


def inverse_cdf(law: Reals, u: Floats, *, upper: bool) -> Floats:
    """Quantiles by bisection of all targets at once, from brackets on the law's own breaks.

    Invariant: the quantile lies in (low, high].
    """
    lo, hi = law.support
    grid = np.unique(np.concatenate([law.breaks, [x for x in (lo, hi) if math.isfinite(x)]]))
    flat = np.atleast_1d(u).ravel()

    def reached(x: Floats, target: Floats) -> Any:
        return law.sf(x) <= target if upper else law.cdf(x) >= target

    on_grid = law.sf(grid) if upper else law.cdf(grid)
    order = -on_grid if upper else on_grid
    index = np.searchsorted(np.maximum.accumulate(order), -flat if upper else flat, side="left")
    low = np.where(index > 0, grid[np.minimum(np.maximum(index - 1, 0), grid.size - 1)], grid[0])
    high = grid[np.minimum(index, grid.size - 1)]
    for _ in range(80):
        middle = low + (high - low) / 2
        open_ = (middle > low) & (middle < high)
        if not open_.any():
            break
        there = reached(middle, flat)
        high = np.where(there & open_, middle, high)
        low = np.where(~there & open_, middle, low)
    x = high.astype(float)
    outside = np.isnan(flat) | (flat < 0) | (flat > 1)
    at_lo, at_hi = (flat == 1, flat == 0) if upper else (flat == 0, flat == 1)
    x = np.where(at_lo, lo, np.where(at_hi, hi, np.where(outside, np.nan, x)))
    return np.asarray(x.reshape(np.shape(u)))


def check_scale(ppf: Callable[[Floats], Any], text: str) -> None:
    """Refuse a law of which doubles cannot hold the middle: squares and sums of its values would overflow or vanish."""
    with quiet():
        try:
            low, left, right, high = np.asarray(ppf(np.array([0.01, 0.25, 0.75, 0.99])), dtype=float).tolist()
        except (OverflowError, ValueError, ZeroDivisionError):
            low = left = right = high = math.nan
    apart = right - left > 1 / LARGEST_VALUE and len({low, left, right, high}) > 2
    held = max(abs(low), abs(high)) < LARGEST_VALUE and apart
    if not held:
        raise InvalidDistribution(
            f"{text} has its mass where floating-point numbers do not tell its values apart: 98% of it must lie within "
            f"{LARGEST_VALUE:g} of 0, and not all in one place. Measure in other units."
        )


class ScipyReals(FromScipy, Reals):
    """A frozen continuous scipy distribution."""

    def __init__(self, frozen: Any, spec: str | None = None, name: str = "distribution") -> None:
        super().__init__(frozen, spec)
        with quiet():
            middle = float(np.asarray(self._frozen.median())) if _has_fast_quantiles(self._frozen) else 0.0
        if any(map(math.isnan, (*self._support, middle))):
            raise InvalidDistribution(
                f"{name}={self.describe()} has invalid parameters: scipy gives NaN for its support or median."
            )
        if _has_fast_quantiles(self._frozen):
            check_scale(self._frozen.ppf, f"{name}={self.describe()}")
        self._from_density = _lacks_log_density(self._frozen)

    def logpdf(self, x: ArrayLike) -> Floats:
        with quiet():
            log = np.asarray(self._frozen.logpdf(x), dtype=float)
        if self._from_density:  # the log of a density that has lost its digits says nothing
            log = np.where(log < SMALLEST, -np.inf, log)
        return log

    def ppf(self, u: ArrayLike) -> Floats:
        if not _has_fast_quantiles(self._frozen):
            return super().ppf(u)
        with quiet():
            return np.asarray(self._frozen.ppf(u), dtype=float)

    def isf(self, u: ArrayLike) -> Floats:
        if not _has_fast_quantiles(self._frozen):
            return super().isf(u)
        with quiet():
            return np.asarray(self._frozen.isf(u), dtype=float)

    @property
    def cut(self) -> float | None:
        return getattr(self._frozen, "cut", None)

    @cached_property
    def breaks(self) -> Floats:
        lo, hi = self._support
        ends = [x for x in (lo, hi) if math.isfinite(x)]
        try:
            fast = _has_fast_quantiles(self._frozen)
            quantiles = np.concatenate([self.ppf(LEVELS), self.isf(LEVELS)]) if fast else None
        except ArithmeticError:  # some of scipy's quantiles give up far out
            quantiles = None
        if quantiles is None:
            quantiles = find_breaks(self.logpdf, self._support)
        points = np.concatenate([quantiles, ends])
        if self.cut is not None:
            points = np.append(points, self.cut)
        edges = getattr(self._frozen.dist, "_hbins", None) if hasattr(self._frozen, "dist") else None
        if edges is not None:  # a histogram's density jumps at its edges
            points = np.concatenate([points, np.asarray(edges, dtype=float)])
        return np.unique(points[np.isfinite(points)])

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        return np.asarray(self._given.rvs(size=size, random_state=rng), dtype=float)


def _lacks_log_density(frozen: Any) -> bool:
    """Whether scipy takes the log of the density for want of a formula."""
    family = getattr(frozen, "dist", None)
    if family is None:
        return False
    from scipy import stats

    return type(family)._logpdf is stats.rv_continuous._logpdf


def _has_fast_quantiles(frozen: Any) -> bool:
    """Whether scipy has a formula for the quantiles; its generic root finder takes a millisecond for each."""
    family = getattr(frozen, "dist", None)
    if family is None:
        return True
    from scipy import stats

    return type(family)._ppf is not stats.rv_continuous._ppf


class NewScipyReals(Reals):
    """A continuous distribution object such as ``stats.Normal(mu=0, sigma=1)``."""

    def __init__(self, given: Any, name: str = "distribution") -> None:
        self._given = given
        with quiet():
            ends = given.support()
            middle = np.asarray(given.median())
        if middle.ndim > 0:
            raise InvalidDistribution(
                f"{name} holds an array of parameters: give one distribution with scalar parameters."
            )
        self._support = (float(ends[0]), float(ends[1]))
        if math.isnan(self._support[0]) or math.isnan(self._support[1]) or math.isnan(float(middle)):
            raise InvalidDistribution(f"{name}={self.describe()} has invalid parameters.")
        check_scale(given.icdf, f"{name}={self.describe()}")

    @property
    def support(self) -> tuple[float, float]:
        return self._support

    def describe(self) -> str:
        return str(self._given)

    def _call(self, method: str, x: ArrayLike) -> Floats:
        with quiet():
            return np.asarray(getattr(self._given, method)(np.asarray(x, dtype=float)), dtype=float)

    def logpdf(self, x: ArrayLike) -> Floats:
        return self._call("logpdf", x)

    def cdf(self, x: ArrayLike) -> Floats:
        return self._call("cdf", x)

    def sf(self, x: ArrayLike) -> Floats:
        return self._call("ccdf", x)

    def ppf(self, u: ArrayLike) -> Floats:
        return self._call("icdf", u)

    def isf(self, u: ArrayLike) -> Floats:
        return self._call("iccdf", u)

    @cached_property
    def breaks(self) -> Floats:
        points = np.concatenate([self.ppf(LEVELS), self.isf(LEVELS), self._support])
        return np.unique(points[np.isfinite(points)])
