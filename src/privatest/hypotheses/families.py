"""Frozen distributions of the named families, as scipy.stats has them but without importing it.

Importing ``scipy.stats`` takes a second, longer than a whole plan. What a pair needs of a named family is a handful of
formulas; here they are, the same as scipy's, with the special functions of the standard library or of
``scipy.special``, loaded when a family first needs them. See docs/decisions/008-own-formulas.md.

The families of distributions that can be written as text, and how scipy calls them.

Every family names its parameters in order, what each must satisfy, and how to build the frozen scipy
distribution, or our own formulas for it, which are quicker to load. What scipy's continuous distributions lack, classic
and new-style, is added here.
Parameters are the textbook ones: ``normal(mean, sd)``, ``uniform(low, high)``,
``exponential(scale)`` or ``exponential(rate=...)``, ``gamma(shape, scale)``, ``student_t(df, loc, scale)``.
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

from privatest.errors import InvalidDistribution
from privatest.hypotheses.distribution import LEVELS, Reals, find_breaks
from privatest.numbers import Floats, quiet

if TYPE_CHECKING:
    from privatest.numbers import Floats


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
    "zipf": Masses(
        lambda k, a: -a * np.log(k) - math.log(special_functions().zeta(a)),
        lambda k, a: 1 - special_functions().zeta(a, k + 1) / special_functions().zeta(a),
        lambda k, a: special_functions().zeta(a, k + 1) / special_functions().zeta(a),
        low=1.0,
    ),
}
"""By their names in scipy.stats."""


Rule = tuple[str, Callable[[float], bool]]

ANY: Final[Rule] = ("finite", math.isfinite)
POSITIVE: Final[Rule] = ("greater than 0", lambda x: 0 < x < math.inf)
UNIT: Final[Rule] = ("between 0 and 1", lambda x: 0 <= x <= 1)
INSIDE: Final[Rule] = ("greater than 0 and less than 1", lambda x: 0 < x < 1)
COUNTED: Final[Rule] = ("greater than 0 and at most 2^52", lambda x: 0 < x <= 2**52)  # beyond, doubles miss integers
RARE: Final[Rule] = ("at least 1e-12 and at most 1", lambda x: 1e-12 <= x <= 1)  # likewise: waiting times beyond 2^53
COUNT: Final[Rule] = (
    "a whole number of at least 1",
    lambda x: x >= 1 and float(x).is_integer() and x < 2**53,
)

SMALLEST: Final = -708.0
"""Log of the smallest float that still has all its digits."""
LARGEST_VALUE: Final = 1e100
"""The middle 98% of a law must lie within this of 0: squares and sums of its values are computed."""


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, what it means, the rule it must obey, and a default where it may be left out."""

    name: str
    rule: Rule
    default: float | None = None
    meaning: str = ""


@dataclass(frozen=True)
class Family:
    """A named family: ``scipy`` is the name in ``scipy.stats``, ``arguments`` its shapes, loc and scale.

    ``about`` says what its records are, for the table of families.
    """

    name: str
    parameters: tuple[Parameter, ...]
    scipy: str
    arguments: Callable[..., tuple[tuple[float, ...], float, float]]
    inverse: Callable[..., tuple[float, ...] | None]
    discrete: bool = False
    about: str = ""

    def signature(self) -> str:
        words = (p.name if p.default is None else f"{p.name}={number_text(p.default)}" for p in self.parameters)
        return f"{self.name}({', '.join(words)})"

    def check(self, values: tuple[float, ...]) -> None:
        """Raise an error that names the parameter, its value and its rule."""
        for parameter, value in zip(self.parameters, values, strict=True):
            rule, holds = parameter.rule
            if not holds(value):
                raise InvalidDistribution(
                    f"{self.name}: {parameter.name}={number_text(value)} must be {rule}, in {self.signature()}."
                )
        if self.name == "uniform" and not values[0] < values[1]:
            raise InvalidDistribution(
                f"uniform: low={number_text(values[0])} must be less than high={number_text(values[1])}."
            )

    def freeze(self, values: tuple[float, ...]) -> Any:
        """The frozen scipy distribution, or what stands for it."""
        try:
            shapes, loc, scale = self.arguments(*values)
        except OverflowError:
            given = ", ".join(map(number_text, values))
            raise InvalidDistribution(f"{self.name}({given}) is beyond what floating-point numbers hold.") from None
        if self.scipy in CONTINUOUS:
            return FrozenReals(self.scipy, shapes, loc, scale)
        if self.scipy in DISCRETE:
            return FrozenIntegers(self.scipy, shapes)
        from scipy import stats

        family = getattr(stats, self.scipy)
        return family(*shapes, loc=loc) if self.discrete else family(*shapes, loc=loc, scale=scale)

    def text(self, values: tuple[float, ...]) -> str:
        return f"{self.name}({', '.join(number_text(value) for value in values)})"


def number_text(value: float) -> str:
    """The shortest text that reads back to the same float; whole numbers without a point."""
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def _location_scale(
    name: str, scipy: str, about: str, *meanings: str, loc: str = "loc", scale: str = "scale"
) -> Family:
    return Family(
        name,
        (Parameter(loc, ANY, 0.0, meanings[0]), Parameter(scale, POSITIVE, 1.0, meanings[1])),
        scipy,
        lambda m, s: ((), m, s),
        lambda m, s: (m, s),
        about=about,
    )


def _positive_shape(name: str, scipy: str, about: str, shape: str, scale: str) -> Family:
    """One shape and a scale, on the positive half line; the words say what they mean."""
    return Family(
        name,
        (Parameter("shape", POSITIVE, None, shape), Parameter("scale", POSITIVE, 1.0, scale)),
        scipy,
        lambda a, s: ((a,), 0.0, s),
        lambda a, m, s: (a, s) if m == 0 else None,
        about=about,
    )


_ALL = (
    _location_scale("normal", "norm", "real numbers", "the mean", "the standard deviation", loc="mean", scale="sd"),
    _location_scale(
        "laplace",
        "laplace",
        "real numbers",
        "the location, the median if the records come from this law",
        "the mean distance from it",
    ),
    _location_scale(
        "cauchy",
        "cauchy",
        "real numbers, heavy tails",
        "the location, the median if the records come from this law",
        "half the interquartile range",
    ),
    _location_scale("logistic", "logistic", "real numbers", "the mean", "the sd times sqrt(3)/pi"),
    _location_scale("gumbel", "gumbel_r", "real numbers, largest values", "the mode", "the sd times sqrt(6)/pi"),
    Family(
        "uniform",
        (Parameter("low", ANY, None, "the least value"), Parameter("high", ANY, None, "the largest value")),
        "uniform",
        lambda a, b: ((), a, b - a),
        lambda m, s: (m, m + s) if (m + s) - m == s else None,
        about="real numbers",
    ),
    Family(
        "exponential",
        (Parameter("scale", POSITIVE, None, "the mean; rate=1/scale may be given instead"),),
        "expon",
        lambda s: ((), 0.0, s),
        lambda m, s: (s,) if m == 0 else None,
        about="numbers from 0 on",
    ),
    Family(
        "half_normal",
        (Parameter("scale", POSITIVE, 1.0, "the sd of that normal law"),),
        "halfnorm",
        lambda s: ((), 0.0, s),
        lambda m, s: (s,) if m == 0 else None,
        about="numbers from 0 on: abs(x) of a normal law",
    ),
    Family(
        "rayleigh",
        (Parameter("scale", POSITIVE, 1.0, "the mode"),),
        "rayleigh",
        lambda s: ((), 0.0, s),
        lambda m, s: (s,) if m == 0 else None,
        about="numbers from 0 on",
    ),
    _positive_shape("gamma", "gamma", "numbers from 0 on", "mean over scale", "variance over mean"),
    _positive_shape(
        "inverse_gamma", "invgamma", "numbers from 0 on", "that of the gamma law of 1/x", "1 over the scale of that law"
    ),
    _positive_shape(
        "weibull",
        "weibull_min",
        "numbers from 0 on, lifetimes",
        "below 1: early failures; above: ageing",
        "63% lie below it",
    ),
    _positive_shape(
        "pareto", "pareto", "numbers from scale on", "a share (scale/x)^shape lies above x", "the least value"
    ),
    Family(
        "lognormal",
        (
            Parameter("mean", ANY, None, "the mean of log(x), not of x"),
            Parameter("sd", POSITIVE, None, "the standard deviation of log(x)"),
        ),
        "lognorm",
        lambda m, s: ((s,), 0.0, math.exp(m)),
        lambda a, m, s: (math.log(s), a) if m == 0 and math.exp(math.log(s)) == s else None,
        about="positive numbers",
    ),
    Family(
        "beta",
        (Parameter("a", POSITIVE, None, "the mean is a/(a + b)"), Parameter("b", POSITIVE, None, "see a")),
        "beta",
        lambda a, b: ((a, b), 0.0, 1.0),
        lambda a, b, m, s: (a, b) if (m, s) == (0, 1) else None,
        about="numbers between 0 and 1",
    ),
    Family(
        "student_t",
        (
            Parameter("df", POSITIVE, None, "degrees of freedom"),
            Parameter("loc", ANY, 0.0, "the location, the median if the records come from this law"),
            Parameter("scale", POSITIVE, 1.0, "the sd times sqrt((df - 2)/df)"),
        ),
        "t",
        lambda df, m, s: ((df,), m, s),
        lambda df, m, s: (df, m, s),
        about="real numbers, heavy tails",
    ),
    Family(
        "chi2",
        (Parameter("df", POSITIVE, None, "degrees of freedom, the mean"),),
        "chi2",
        lambda df: ((df,), 0.0, 1.0),
        lambda df, m, s: (df,) if (m, s) == (0, 1) else None,
        about="numbers from 0 on",
    ),
    Family(
        "share_above",
        (
            Parameter("cut", ANY, None, "where they are parted, public"),
            Parameter("share", INSIDE, None, "of the records above it"),
        ),
        "share_above",  # not one of scipy's
        lambda cut, share: ((share,), cut, 1.0),
        lambda share, cut, _: (cut, share),
        about="real numbers of which only the side of the cut counts",
    ),
    Family(
        "bernoulli",
        (Parameter("p", UNIT, None, "the share of ones"),),
        "bernoulli",
        lambda p: ((p,), 0, 1),
        lambda p, m: (p,) if m == 0 else None,
        discrete=True,
        about="0 and 1",
    ),
    Family(
        "binomial",
        (Parameter("n", COUNT, None, "trials"), Parameter("p", UNIT, None, "the share that succeeds")),
        "binom",
        lambda n, p: ((int(n), p), 0, 1),
        lambda n, p, m: (n, p) if m == 0 else None,
        discrete=True,
        about="whole numbers from 0 to n",
    ),
    Family(
        "poisson",
        (Parameter("mean", COUNTED, None, "the mean"),),
        "poisson",
        lambda mu: ((mu,), 0, 1),
        lambda mu, m: (mu,) if m == 0 else None,
        discrete=True,
        about="whole numbers from 0 on, counts",
    ),
    Family(
        "geometric",
        (Parameter("p", RARE, None, "the share that succeeds"),),
        "geom",
        lambda p: ((p,), 0, 1),
        lambda p, m: (p,) if m == 0 else None,
        discrete=True,
        about="whole numbers from 1 on: trials up to the first success",
    ),
    Family(
        "negative_binomial",
        (
            Parameter("n", POSITIVE, None, "successes waited for; need not be whole"),
            Parameter("p", RARE, None, "the share that succeeds"),
        ),
        "nbinom",
        lambda n, p: ((n, p), 0, 1),
        lambda n, p, m: (n, p) if m == 0 else None,
        discrete=True,
        about="whole numbers from 0 on: failures before n successes",
    ),
    Family(
        "zipf",
        (
            Parameter(
                "a", ("greater than 1", lambda x: 1 < x < math.inf), None, "k has probability proportional to k^-a"
            ),
        ),
        "zipf",
        lambda a: ((a,), 0, 1),
        lambda a, m: (a,) if m == 0 else None,
        discrete=True,
        about="whole numbers from 1 on",
    ),
)

FAMILIES: Final[dict[str, Family]] = {family.name: family for family in _ALL}
ALIASES: Final[dict[str, str]] = {
    "gaussian": "normal",
    "norm": "normal",
    "expon": "exponential",
    "t": "student_t",
    "student": "student_t",
    "chi_squared": "chi2",
    "halfnormal": "half_normal",
    "log_normal": "lognormal",
    "binom": "binomial",
    "geom": "geometric",
    "nbinom": "negative_binomial",
    "discrete": "categorical",
}
_BY_SCIPY = {family.scipy: family for family in _ALL}


def _scipy_arguments(frozen: Any) -> tuple[str, tuple[float, ...]] | None:
    """Name and shapes, loc and (continuous) scale of a frozen distribution of scipy's, where they are plain numbers."""
    family = getattr(frozen, "dist", None)
    name = getattr(family, "name", None)
    if not isinstance(name, str):
        return None
    from scipy import stats  # loaded already: it made this object

    if type(family) is not type(getattr(stats, name, None)):  # somebody's own, which happens to share the name
        return None
    try:
        shapes, loc, scale = family._parse_args(*frozen.args, **frozen.kwds)  # type: ignore[union-attr]
        values = [float(np.asarray(value)) for value in (*shapes, loc)]
        if hasattr(family, "pdf"):
            values.append(float(np.asarray(scale)))
    except (TypeError, ValueError, AttributeError):
        return None
    return name, tuple(values)


def formulas_of(frozen: Any) -> Any:
    """Our own formulas for a frozen scipy distribution, where we have them; else the distribution itself.

    The same distribution given as text and as a frozen one of scipy's so makes the same pair, digit for digit.
    """
    found = _scipy_arguments(frozen)
    if found is None or not all(math.isfinite(value) for value in found[1]):
        return frozen
    name, values = found
    if name in CONTINUOUS and all(value > 0 for value in (*values[:-2], values[-1])):
        return FrozenReals(name, values[:-2], values[-2], values[-1])
    if name in DISCRETE and spec_of_scipy(frozen) is not None:
        return FrozenIntegers(name, values[:-1])
    return frozen


def spec_of_scipy(frozen: Any) -> str | None:
    """Text that reads back to this frozen scipy distribution, where the parser knows its family."""
    found = _scipy_arguments(frozen)
    family = _BY_SCIPY.get(found[0]) if found else None
    if found is None or family is None or not all(math.isfinite(value) for value in found[1]):
        return None
    values = family.inverse(*found[1])
    if values is None:
        return None
    try:
        family.check(values)
    except InvalidDistribution:
        return None
    return family.text(values)


class FromScipy:
    """What frozen scipy distributions have in common, the continuous and the discrete ones."""

    def __init__(self, frozen: Any, spec: str | None) -> None:
        self._given, self._frozen, self._spec = frozen, formulas_of(frozen), spec
        with quiet():
            low, high = (float(np.asarray(end)) for end in self._frozen.support())
        self._support = low, high

    @property
    def support(self) -> tuple[float, float]:
        return self._support

    @property
    def spec(self) -> str | None:
        return self._spec if self._spec is not None else spec_of_scipy(self._given)

    def describe(self) -> str:
        return self._spec if self._spec is not None else describe_scipy(self._given)

    def cdf(self, x: ArrayLike) -> Floats:
        with quiet():
            return np.asarray(self._frozen.cdf(x), dtype=float)

    def sf(self, x: ArrayLike) -> Floats:
        with quiet():
            return np.asarray(self._frozen.sf(x), dtype=float)


def describe_scipy(frozen: Any) -> str:
    """Scipy's own words, such as ``norm(0, 1)``."""
    family = getattr(frozen, "dist", None)
    name = getattr(family, "name", None) or type(frozen).__name__
    arguments = [_short(value) for value in getattr(frozen, "args", ())]
    arguments += [f"{key}={_short(value)}" for key, value in getattr(frozen, "kwds", {}).items()]
    return f"{name}({', '.join(arguments)})"


def _short(value: Any) -> str:
    try:
        return number_text(float(value))
    except (TypeError, ValueError, OverflowError):
        return str(value)[:40]


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
