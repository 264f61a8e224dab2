"""Frozen distributions of the named families, as scipy.stats has them but without importing it.

Importing ``scipy.stats`` takes a second, longer than a whole plan. What a pair needs of a named family is a handful of
formulas; here they are, the same as scipy's, with the special functions of the standard library or of
``scipy.special``, loaded when a family first needs them. See docs/decisions/008-own-formulas.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from privatest.numbers import Floats


__all__ = ["CONTINUOUS", "DISCRETE", "Formulas", "FrozenIntegers", "FrozenReals", "Masses", "special_functions"]

_LOG_ROOT_2_PI: Final = math.log(math.sqrt(2 * math.pi))
_ROOT_HALF: Final = math.sqrt(0.5)
_inner_quantile = NormalDist().inv_cdf


@dataclass(frozen=True)
class Formulas:
    """A family at location 0 and scale 1, as functions of x (or a probability strictly between 0 and 1) and the shapes.

    ``logpdf`` is called on the support, ``cdf`` and ``sf`` inside it; what they give elsewhere is not looked at.
    """

    logpdf: Callable[..., Floats]
    cdf: Callable[..., Floats]
    sf: Callable[..., Floats]
    ppf: Callable[..., Floats]
    isf: Callable[..., Floats]
    support: tuple[float, float] = (-math.inf, math.inf)
    with_ends: bool = True
    """Whether the density is taken at the ends of the support too; else it is 0 there."""


class FrozenReals:
    """The members of a frozen continuous scipy distribution that pairs use."""

    def __init__(self, family: str, shapes: tuple[float, ...], loc: float, scale: float) -> None:
        self._family, self._shapes, self._loc, self._scale = family, shapes, loc, scale
        self._low, self._high = self._formulas.support

    @property
    def _formulas(self) -> Formulas:
        return CONTINUOUS[self._family]  # not kept: functions of a table cannot be pickled

    @property
    def cut(self) -> float | None:
        """Where only the side of a number counts: the number that divides them."""
        return self._loc if self._family == "share_above" else None

    def support(self) -> tuple[float, float]:
        return self._low * self._scale + self._loc, self._high * self._scale + self._loc

    def median(self) -> Floats:
        return self.ppf(0.5)

    def _standard(self, x: ArrayLike) -> Floats:
        return np.asarray((np.asarray(x) - self._loc) / self._scale, dtype=np.float64)

    def logpdf(self, x: ArrayLike) -> Floats:
        y = self._standard(x)
        with np.errstate(all="ignore"):
            log = self._formulas.logpdf(y, *self._shapes) - np.log(self._scale)
        inside = (y > self._low) & (y < self._high)
        there = inside | (y == self._low) | (y == self._high) if self._formulas.with_ends else inside
        return np.where(there, log, np.where(np.isnan(y), np.nan, -np.inf))

    def cdf(self, x: ArrayLike) -> Floats:
        return self._share(self._formulas.cdf, x, 0.0, 1.0)

    def sf(self, x: ArrayLike) -> Floats:
        return self._share(self._formulas.sf, x, 1.0, 0.0)

    def _share(self, formula: Callable[..., Floats], x: ArrayLike, at_low: float, at_high: float) -> Floats:
        y = self._standard(x)
        with np.errstate(all="ignore"):
            inside = formula(y, *self._shapes)
        outside = np.where(y <= self._low, at_low, np.where(y >= self._high, at_high, np.nan))
        return np.where((y > self._low) & (y < self._high), inside, outside)

    def ppf(self, u: ArrayLike) -> Floats:
        return self._point(self._formulas.ppf, u, *self.support())

    def isf(self, u: ArrayLike) -> Floats:
        low, high = self.support()
        return self._point(self._formulas.isf, u, high, low)

    def _point(self, formula: Callable[..., Floats], u: ArrayLike, at_0: float, at_1: float) -> Floats:
        share = np.asarray(u, dtype=np.float64)
        inner = (share > 0) & (share < 1)
        with np.errstate(all="ignore"):
            x = formula(np.where(inner, share, 0.5), *self._shapes) * self._scale + self._loc
        return np.where(inner, x, np.where(share == 0, at_0, np.where(share == 1, at_1, np.nan)))

    @cached_property
    def _of_scipy(self) -> Any:
        from scipy import stats

        return getattr(stats, self._family)(*self._shapes, loc=self._loc, scale=self._scale)

    def rvs(self, size: int, random_state: np.random.Generator) -> Any:
        """Draws, which are scipy's own where it knows the family."""
        if self.cut is not None:
            return self.ppf(random_state.random(size))
        return self._of_scipy.rvs(size=size, random_state=random_state)


def _each(function: Callable[[float], float], x: Floats) -> Floats:
    """A function of the standard library at every element."""
    return np.fromiter(map(function, x.ravel().tolist()), dtype=np.float64, count=x.size).reshape(x.shape)


def _quantile(u: float) -> float:
    """The standard normal quantile."""
    return _inner_quantile(u) if 0.0 < u < 1.0 else math.inf if u == 1.0 else -math.inf if u == 0.0 else math.nan


def _normal_logpdf(x: Floats) -> Floats:
    return np.asarray(-(x**2) / 2.0 - _LOG_ROOT_2_PI)


def _normal_cdf(x: Floats) -> Floats:
    return 0.5 * _each(math.erfc, -x * _ROOT_HALF)


def _normal_sf(x: Floats) -> Floats:
    return 0.5 * _each(math.erfc, x * _ROOT_HALF)


def _normal_ppf(u: Floats) -> Floats:
    return _each(_quantile, u)


def _normal_isf(u: Floats) -> Floats:
    return -_each(_quantile, u)


def _laplace_cdf(x: Floats) -> Floats:
    return np.where(x > 0, 1.0 - 0.5 * np.exp(-x), 0.5 * np.exp(x))


def _laplace_ppf(u: Floats) -> Floats:
    return np.where(u > 0.5, -np.log(2 * (1 - u)), np.log(2 * u))


# A share of the mass above 0, the rest below. Pairs with the same cut have a ratio that only knows the side: what lies
# on either could have any shape.
def _share_logpdf(x: Floats, share: float) -> Floats:
    return np.where(x >= 0, math.log(share), math.log1p(-share)) - np.abs(x)


def _share_cdf(x: Floats, share: float) -> Floats:
    return np.where(x >= 0, 1.0 - share * np.exp(-np.abs(x)), (1.0 - share) * np.exp(-np.abs(x)))


def _share_sf(x: Floats, share: float) -> Floats:
    return np.where(x >= 0, share * np.exp(-np.abs(x)), 1.0 - (1.0 - share) * np.exp(-np.abs(x)))


def _share_ppf(u: Floats, share: float) -> Floats:
    return np.where(u > 1 - share, -np.log((1 - u) / share), np.log(u / (1 - share)))


def _share_isf(u: Floats, share: float) -> Floats:
    return np.where(u > share, np.log((1 - u) / (1 - share)), -np.log(u / share))


def _cauchy_logpdf(x: Floats) -> Floats:
    size = np.abs(x)
    far = 2 * np.log(size) + np.log1p((1 / size) ** 2)
    return -math.log(math.pi) - np.where(size < 1, np.log1p(size**2), far)


def _cauchy_isf(u: Floats) -> Floats:
    """The cotangent of pi u, from whichever end of (0, 1) is nearer."""
    return np.where(u == 0.5, 0.0, 1 / np.tan(math.pi * np.where(u > 0.5, u - 1, u)))


def special_functions() -> Any:
    """``scipy.special``, loaded when a family first needs it."""
    from scipy import special

    return special


def _logistic_logpdf(x: Floats) -> Floats:
    y = -np.abs(x)
    return np.asarray(y - 2.0 * np.log1p(np.exp(y)))


def _logistic_cdf(x: Floats) -> Floats:
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1.0) / (1.0 + small)


def _logistic_ppf(u: Floats) -> Floats:
    """log u/(1 - u), near 1/2 from the distance to it."""
    return np.where(np.abs(u - 0.5) < 0.2, 2 * np.arctanh(2 * (u - 0.5)), np.log(u / (1 - u)))


def _gamma_logpdf(x: Floats, a: float) -> Floats:
    special = special_functions()
    return np.asarray(special.xlogy(a - 1.0, x) - x - special.gammaln(a))


def _weibull_logpdf(x: Floats, c: float) -> Floats:
    return np.asarray(np.log(c) + (0.0 if c == 1 else (c - 1) * np.log(x)) - x**c)


def _lognormal_logpdf(x: Floats, s: float) -> Floats:
    return np.asarray(-(np.log(x) ** 2) / (2 * s**2) - np.log(s * x * np.sqrt(2 * np.pi)))


def _student_logpdf(x: Floats, df: float) -> Floats:
    constant = np.log(special_functions().poch(0.5 * df, 0.5)) - 0.5 * (np.log(df) + np.log(np.pi))
    return np.asarray(constant - (df + 1) / 2 * np.log1p(x * x / df))


def _chi2_logpdf(x: Floats, df: float) -> Floats:
    special = special_functions()
    return np.asarray(special.xlogy(df / 2.0 - 1, x) - x / 2.0 - special.gammaln(df / 2.0) - (np.log(2) * df) / 2.0)


_HALF_LINE: Final = (0.0, math.inf)
CONTINUOUS: Final[dict[str, Formulas]] = {
    "norm": Formulas(_normal_logpdf, _normal_cdf, _normal_sf, _normal_ppf, _normal_isf),
    "laplace": Formulas(
        lambda x: -np.abs(x) - math.log(2),
        _laplace_cdf,
        lambda x: _laplace_cdf(-x),
        _laplace_ppf,
        lambda u: -_laplace_ppf(u),
    ),
    "share_above": Formulas(
        _share_logpdf,
        _share_cdf,
        _share_sf,
        _share_ppf,
        _share_isf,
    ),
    "cauchy": Formulas(
        _cauchy_logpdf,
        lambda x: np.arctan2(1, -x) / np.pi,
        lambda x: np.arctan2(1, x) / np.pi,
        lambda u: -_cauchy_isf(u),
        _cauchy_isf,
    ),
    "logistic": Formulas(
        _logistic_logpdf,
        _logistic_cdf,
        lambda x: _logistic_cdf(-x),
        _logistic_ppf,
        lambda u: -_logistic_ppf(u),
    ),
    "gumbel_r": Formulas(
        lambda x: -x - np.exp(-x),
        lambda x: np.exp(-np.exp(-x)),
        lambda x: -np.expm1(-np.exp(-x)),
        lambda u: -np.log(-np.log(u)),
        lambda u: -np.log(-np.log1p(-u)),
    ),
    "uniform": Formulas(np.zeros_like, lambda x: x, lambda x: 1.0 - x, lambda u: u, lambda u: 1.0 - u, (0.0, 1.0)),
    "expon": Formulas(
        lambda x: -x,
        lambda x: -np.expm1(-x),
        lambda x: np.exp(-x),
        lambda u: -np.log1p(-u),
        lambda u: -np.log(u),
        _HALF_LINE,
    ),
    "halfnorm": Formulas(
        lambda x: 0.5 * np.log(2.0 / np.pi) - x * x / 2.0,
        lambda x: _each(math.erf, x / np.sqrt(2)),
        lambda x: 2 * _normal_sf(x),
        lambda u: _normal_ppf((1 + u) / 2.0),
        lambda u: _normal_isf(u / 2),
        _HALF_LINE,
    ),
    "rayleigh": Formulas(
        lambda x: np.log(x) - 0.5 * x * x,
        lambda x: -np.expm1(-0.5 * x**2),
        lambda x: np.exp(-0.5 * x * x),
        lambda u: np.sqrt(-2 * np.log1p(-u)),
        lambda u: np.sqrt(-2 * np.log(u)),
        _HALF_LINE,
        with_ends=False,
    ),
    "gamma": Formulas(
        _gamma_logpdf,
        lambda x, a: special_functions().gammainc(a, x),
        lambda x, a: special_functions().gammaincc(a, x),
        lambda u, a: special_functions().gammaincinv(a, u),
        lambda u, a: special_functions().gammainccinv(a, u),
        _HALF_LINE,
    ),
    "invgamma": Formulas(
        lambda x, a: -(a + 1) * np.log(x) - special_functions().gammaln(a) - 1.0 / x,
        lambda x, a: special_functions().gammaincc(a, 1.0 / x),
        lambda x, a: special_functions().gammainc(a, 1.0 / x),
        lambda u, a: 1.0 / special_functions().gammainccinv(a, u),
        lambda u, a: 1.0 / special_functions().gammaincinv(a, u),
        _HALF_LINE,
        with_ends=False,
    ),
    "weibull_min": Formulas(
        _weibull_logpdf,
        lambda x, c: -np.expm1(-(x**c)),
        lambda x, c: np.exp(-(x**c)),
        lambda u, c: (-np.log1p(-u)) ** (1.0 / c),
        lambda u, c: (-np.log(u)) ** (1 / c),
        _HALF_LINE,
    ),
    "pareto": Formulas(
        lambda x, b: np.log(b) - (b + 1) * np.log(x),
        lambda x, b: 1 - x ** (-b),
        lambda x, b: x ** (-b),
        lambda u, b: (1 - u) ** (-1.0 / b),
        lambda u, b: u ** (-1.0 / b),
        (1.0, math.inf),
    ),
    "lognorm": Formulas(
        _lognormal_logpdf,
        lambda x, s: _normal_cdf(np.log(x) / s),
        lambda x, s: _normal_sf(np.log(x) / s),
        lambda u, s: np.exp(s * _normal_ppf(u)),
        lambda u, s: np.exp(s * _normal_isf(u)),
        _HALF_LINE,
        with_ends=False,
    ),
    "t": Formulas(
        _student_logpdf,
        lambda x, df: special_functions().stdtr(df, x),
        lambda x, df: special_functions().stdtr(df, -x),
        lambda u, df: special_functions().stdtrit(df, u),
        lambda u, df: -special_functions().stdtrit(df, u),
    ),
    "chi2": Formulas(
        _chi2_logpdf,
        lambda x, df: special_functions().chdtr(df, x),
        lambda x, df: special_functions().chdtrc(df, x),
        lambda u, df: 2 * special_functions().gammaincinv(df / 2, u),
        lambda u, df: special_functions().chdtri(df, u),
        _HALF_LINE,
    ),
}
"""By their names in scipy.stats. Its beta is not among them: ``scipy.special`` loses its quantiles far out."""


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


def _log_factorials(k: Floats) -> Floats:
    """log k!, by the standard library where that is quicker than loading scipy.special."""
    if k.size > _MOST_EACH or float(np.max(k, initial=0.0)) > 1e300:
        return np.asarray(special_functions().gammaln(k + 1))
    return _each(math.lgamma, k + 1)


def _binomial_logpmf(k: Floats, n: float, p: float) -> Floats:
    ways = math.lgamma(n + 1) - (_log_factorials(k) + _log_factorials(n - k))
    hits, misses = math.log(p) if p > 0 else -math.inf, math.log1p(-p) if p < 1 else -math.inf
    return np.asarray(ways + np.where(k == 0, 0.0, k * hits) + np.where(k == n, 0.0, (n - k) * misses))


def _poisson_logpmf(k: Floats, mean: float) -> Floats:
    return np.asarray(k * math.log(mean) - _log_factorials(k) - mean)


# Values of a function of the standard library that take less time than loading scipy.special.
_MOST_EACH = 1 << 16
# Means of Poisson laws, and numbers of trials of binomial ones, whose masses are quickly added up.
_LARGEST_MEAN = _MOST_TRIALS = 1e4


def _added_up(masses: Floats) -> tuple[Floats, Floats]:
    """Pr[K <= k] and Pr[K > k] for k = 0, 1, ..., each added up from its small end, of masses up to a factor."""
    masses = masses / math.fsum(masses)
    return np.cumsum(masses), np.append(np.cumsum(masses[::-1])[-2::-1], 0.0)


@lru_cache(maxsize=64)
def _poisson_sums(mean: float) -> tuple[Floats, Floats]:
    """Pr[K <= k] and Pr[K > k] for k = 0, 1, ... until nothing is left.

    Masses follow from those beside them, from the largest on, which is found from their sum being 1.
    """
    top = math.floor(mean)
    last = top + 64 + math.ceil(40 * math.sqrt(mean)) + math.ceil(mean)
    with np.errstate(under="ignore"):
        up = np.cumprod(mean / np.arange(top + 1, last + 1, dtype=np.float64))
        down = np.cumprod(np.arange(top, 0, -1, dtype=np.float64) / mean)[::-1]
        return _added_up(np.concatenate([down, [1.0], up]))


@lru_cache(maxsize=64)
def _binomial_sums(n: int, p: float) -> tuple[Floats, Floats]:
    """The same of so many trials."""
    top, odds = min(math.floor((n + 1) * p), n), p / (1 - p)
    with np.errstate(under="ignore"):
        k = np.arange(top, n, dtype=np.float64)
        up = np.cumprod((n - k) / (k + 1) * odds)
        k = np.arange(top, 0, -1, dtype=np.float64)
        down = np.cumprod(k / ((n - k + 1) * odds))[::-1]
        return _added_up(np.concatenate([down, [1.0], up]))


def _binomial_share(k: Floats, n: float, p: float, *, above: bool) -> Floats:
    if n > _MOST_TRIALS or not 0 < p < 1:
        special = special_functions()
        return np.asarray((special.betainc if above else special.betaincc)(k + 1, n - k, p))
    return _binomial_sums(int(n), p)[above][k.astype(np.intp)]


def _poisson_share(k: Floats, mean: float, *, above: bool) -> Floats:
    if mean > _LARGEST_MEAN:
        special = special_functions()
        return np.asarray((special.pdtrc if above else special.pdtr)(k, mean))
    sums = _poisson_sums(mean)[above]
    return np.asarray(np.where(k < len(sums), sums[np.clip(k, 0, len(sums) - 1).astype(np.intp)], float(not above)))


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
        lambda k, n, p: _binomial_share(k, n, p, above=False),
        lambda k, n, p: _binomial_share(k, n, p, above=True),
        high=lambda n, _: n,
    ),
    "poisson": Masses(
        _poisson_logpmf,
        lambda k, mean: _poisson_share(k, mean, above=False),
        lambda k, mean: _poisson_share(k, mean, above=True),
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
