"""Named families of distributions: their parameters, their formulas, and scipy's frozen distributions as ours.

A :class:`Family` names its parameters in order, the rule of each, and how to freeze a member. Parameters are the
textbook ones: ``normal(mean, sd)``, ``uniform(low, high)``, ``exponential(scale)`` or ``exponential(rate=...)``,
``gamma(shape, scale)``, ``student_t(df, loc, scale)``.

Common families are computed by formulas of their own, the same as scipy's, because to import ``scipy.stats`` takes
longer than a whole plan (docs/decisions/008-own-formulas.md). All others are scipy's frozen distributions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.errors import InvalidDistribution
from privatest.hypotheses.density import LEVELS, find_breaks
from privatest.hypotheses.distribution import Reals, WholeNumbers, number_text, smallest_integers
from privatest.numbers import Floats, Integers, distinct, quiet

_LOG_ROOT_2_PI: Final = math.log(math.sqrt(2 * math.pi))
_HALF_LINE: Final = (0.0, math.inf)


@dataclass(frozen=True)
class Formulas:
    """A continuous family at location 0 and scale 1.

    The functions take arrays of x, or of probabilities strictly between 0 and 1, and the shapes. Their values outside
    of the support are ignored.
    """

    logpdf: Callable[..., Floats]
    cdf: Callable[..., Floats]
    sf: Callable[..., Floats]
    ppf: Callable[..., Floats]
    isf: Callable[..., Floats]
    support: tuple[float, float] = (-math.inf, math.inf)
    with_ends: bool = True
    """Whether the density is positive at the ends of the support."""


class FrozenReals:
    """A member of a family with :class:`Formulas`: the methods of a frozen scipy distribution that pairs need."""

    def __init__(self, family: str, shapes: tuple[float, ...], loc: float, scale: float) -> None:
        self._family, self._shapes, self._loc, self._scale = family, shapes, loc, scale
        self._low, self._high = self._formulas.support

    @property
    def _formulas(self) -> Formulas:
        return CONTINUOUS[self._family]  # not kept: functions of a table cannot be pickled

    @property
    def cut(self) -> float | None:
        """The cut of a share above it; None for other families."""
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

    def rvs(self, size: int, random_state: np.random.Generator) -> Any:
        """Draws, which are scipy's own if it has the family."""
        if self.cut is not None:
            return self.ppf(random_state.random(size))
        from scipy import stats

        law = getattr(stats, self._family)(*self._shapes, loc=self._loc, scale=self._scale)
        return law.rvs(size=size, random_state=random_state)


def _each(function: Callable[[float], float], x: Floats) -> Floats:
    """Return a function of the standard library at every element."""
    return np.fromiter(map(function, x.ravel().tolist()), dtype=np.float64, count=x.size).reshape(x.shape)


def _normal_cdf(x: Floats) -> Floats:
    return 0.5 * _each(math.erfc, -x * math.sqrt(0.5))


def _normal_ppf(u: Floats) -> Floats:
    """Return the standard normal quantile, of shares rounded to 0 or 1 too."""
    quantile = NormalDist().inv_cdf
    return _each(lambda share: quantile(share) if 0 < share < 1 else math.inf if share else -math.inf, u)


def _laplace_cdf(x: Floats) -> Floats:
    return np.where(x > 0, 1.0 - 0.5 * np.exp(-x), 0.5 * np.exp(x))


def _laplace_ppf(u: Floats) -> Floats:
    return np.where(u > 0.5, -np.log(2 * (1 - u)), np.log(2 * u))


def _cauchy_logpdf(x: Floats) -> Floats:
    size = np.abs(x)
    far = 2 * np.log(size) + np.log1p((1 / size) ** 2)
    return -math.log(math.pi) - np.where(size < 1, np.log1p(size**2), far)


def _cauchy_isf(u: Floats) -> Floats:
    """Return the cotangent of pi u, from whichever end of (0, 1) is nearer."""
    return np.where(u == 0.5, 0.0, 1 / np.tan(math.pi * np.where(u > 0.5, u - 1, u)))


CONTINUOUS: Final[dict[str, Formulas]] = {
    "norm": Formulas(
        lambda x: np.asarray(-(x**2) / 2.0 - _LOG_ROOT_2_PI),
        _normal_cdf,
        lambda x: _normal_cdf(-x),
        _normal_ppf,
        lambda u: -_normal_ppf(u),
    ),
    "laplace": Formulas(
        lambda x: -np.abs(x) - math.log(2),
        _laplace_cdf,
        lambda x: _laplace_cdf(-x),
        _laplace_ppf,
        lambda u: -_laplace_ppf(u),
    ),
    # A share of the mass above 0, the rest below. In pairs with the same cut only the side counts, whatever the shape
    # on either side.
    "share_above": Formulas(
        lambda x, share: np.where(x >= 0, math.log(share), math.log1p(-share)) - np.abs(x),
        lambda x, share: np.where(x >= 0, 1.0 - share * np.exp(-np.abs(x)), (1.0 - share) * np.exp(-np.abs(x))),
        lambda x, share: np.where(x >= 0, share * np.exp(-np.abs(x)), 1.0 - (1.0 - share) * np.exp(-np.abs(x))),
        lambda u, share: np.where(u > 1 - share, -np.log((1 - u) / share), np.log(u / (1 - share))),
        lambda u, share: np.where(u > share, np.log((1 - u) / (1 - share)), -np.log(u / share)),
    ),
    "cauchy": Formulas(
        _cauchy_logpdf,
        lambda x: np.arctan2(1, -x) / np.pi,
        lambda x: np.arctan2(1, x) / np.pi,
        lambda u: -_cauchy_isf(u),
        _cauchy_isf,
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
    "pareto": Formulas(
        lambda x, b: np.log(b) - (b + 1) * np.log(x),
        lambda x, b: 1 - x ** (-b),
        lambda x, b: x ** (-b),
        lambda u, b: (1 - u) ** (-1.0 / b),
        lambda u, b: u ** (-1.0 / b),
        (1.0, math.inf),
    ),
    "lognorm": Formulas(
        lambda x, s: np.asarray(-(np.log(x) ** 2) / (2 * s**2) - np.log(s * x * np.sqrt(2 * np.pi))),
        lambda x, s: _normal_cdf(np.log(x) / s),
        lambda x, s: _normal_cdf(-np.log(x) / s),
        lambda u, s: np.exp(s * _normal_ppf(u)),
        lambda u, s: np.exp(-s * _normal_ppf(u)),
        _HALF_LINE,
        with_ends=False,
    ),
}
"""By their names in scipy.stats."""


@dataclass(frozen=True)
class Masses:
    """A family on the integers: functions of an integer in its support and the shapes; ``high`` ends the support."""

    logpmf: Callable[..., Floats]
    cdf: Callable[..., Floats]
    sf: Callable[..., Floats]
    low: float = 0.0
    high: Callable[..., float] = lambda *_: math.inf


class FrozenIntegers:
    """A member of a family with :class:`Masses`: the methods of a frozen scipy distribution that pairs need."""

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
        """Return the smallest k with cdf(k) >= u."""
        share = np.asarray(u, dtype=np.float64)
        low, high = (np.full(share.shape, end) for end in (self._low - 1, min(self._high, 2.0**53)))
        quantile = smallest_integers(lambda k: self.cdf(k) >= share, low, high)
        return np.where((share > 0) & (share < 1), quantile, np.where(share == 1, self._high, self._low - 1))

    def rvs(self, size: int, random_state: np.random.Generator) -> Any:
        """Draws, which are scipy's own."""
        from scipy import stats

        return getattr(stats, self._family)(*self._shapes).rvs(size=size, random_state=random_state)


def _special() -> Any:
    """``scipy.special``, loaded when a family first needs it."""
    from scipy import special

    return special


def _binomial_logpmf(k: Floats, n: float, p: float) -> Floats:
    gammaln, xlogy, xlog1py = _special().gammaln, _special().xlogy, _special().xlog1py
    return np.asarray(gammaln(n + 1) - (gammaln(k + 1) + gammaln(n - k + 1)) + xlogy(k, p) + xlog1py(n - k, -p))


DISCRETE: Final[dict[str, Masses]] = {
    "bernoulli": Masses(
        lambda k, p: np.where(k == 1, np.log(p), np.log1p(-p)),
        lambda k, p: np.where(k == 0, 1 - p, 1.0),
        lambda k, p: np.where(k == 0, p, 0.0),
        high=lambda _: 1.0,
    ),
    "binom": Masses(
        _binomial_logpmf,
        lambda k, n, p: _special().betaincc(k + 1, n - k, p),
        lambda k, n, p: _special().betainc(k + 1, n - k, p),
        high=lambda n, _: n,
    ),
    "poisson": Masses(
        lambda k, mean: k * math.log(mean) - _special().gammaln(k + 1) - mean,
        lambda k, mean: _special().pdtr(k, mean),
        lambda k, mean: _special().pdtrc(k, mean),
    ),
    "geom": Masses(
        lambda k, p: np.where(k == 1, 0.0, (k - 1) * np.log1p(-p)) + np.log(p),
        lambda k, p: -np.expm1(np.log1p(-p) * k),
        lambda k, p: np.exp(np.log1p(-p) * k),
        low=1.0,
    ),
    "zipf": Masses(
        lambda k, a: -a * np.log(k) - math.log(_special().zeta(a)),
        lambda k, a: 1 - _special().zeta(a, k + 1) / _special().zeta(a),
        lambda k, a: _special().zeta(a, k + 1) / _special().zeta(a),
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
HEAVY: Final[Rule] = ("greater than 1", lambda x: 1 < x < math.inf)
COUNT: Final[Rule] = ("a whole number of at least 1", lambda x: x >= 1 and float(x).is_integer() and x < 2**53)

SMALLEST: Final = -708.0
"""Log of the smallest float that still has all its digits."""
LARGEST_VALUE: Final = 1e100
"""The middle 98% of a law must lie within this of 0: squares and sums of its values are computed."""


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, what it means, the rule it must obey, and a default where it may be left out.

    ``role`` says what it is in scipy: "loc", "scale", or one of the shapes.
    """

    name: str
    rule: Rule
    meaning: str = ""
    default: float | None = None
    role: str = "shape"


@dataclass(frozen=True)
class Family:
    """A named family. ``scipy`` is its name in ``scipy.stats``; ``about`` says what its records are."""

    name: str
    scipy: str
    about: str
    parameters: tuple[Parameter, ...]
    discrete: bool = False

    def arguments(self, values: tuple[float, ...]) -> tuple[tuple[float, ...], float, float]:
        """Return the shapes, loc and scale of scipy for these parameters."""
        if self.name == "uniform":
            return (), values[0], values[1] - values[0]
        if self.name == "lognormal":
            return (values[1],), 0.0, math.exp(values[0])
        shapes, places = [], {"loc": 0.0, "scale": 1.0}
        for parameter, value in zip(self.parameters, values, strict=True):
            if parameter.role == "shape":
                shapes.append(int(value) if parameter.rule is COUNT else value)
            else:
                places[parameter.role] = value
        return tuple(shapes), places["loc"], places["scale"]

    def inverse(self, shapes: tuple[float, ...], loc: float, scale: float) -> tuple[float, ...] | None:
        """Return the parameters for which :meth:`arguments` returns these numbers; None if there are none."""
        if self.name == "uniform":
            return (loc, loc + scale) if (loc + scale) - loc == scale else None
        if self.name == "lognormal":
            return (math.log(scale), *shapes) if loc == 0 and math.exp(math.log(scale)) == scale else None
        left, places = iter(shapes), {"loc": loc, "scale": scale}
        values = tuple(places.pop(one.role, 0.0) if one.role != "shape" else next(left) for one in self.parameters)
        return values if places.get("loc", 0) == 0 and places.get("scale", 1) == 1 else None

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
        """Return the frozen scipy distribution, or what stands for it."""
        try:
            shapes, loc, scale = self.arguments(values)
        except OverflowError:
            arguments = ", ".join(map(number_text, values))
            raise InvalidDistribution(f"{self.name}({arguments}) is beyond what floating-point numbers hold.") from None
        if self.scipy in CONTINUOUS:
            return FrozenReals(self.scipy, shapes, loc, scale)
        if self.scipy in DISCRETE:
            return FrozenIntegers(self.scipy, shapes)
        from scipy import stats

        family = getattr(stats, self.scipy)
        return family(*shapes, loc=loc) if self.discrete else family(*shapes, loc=loc, scale=scale)

    def text(self, values: tuple[float, ...]) -> str:
        return f"{self.name}({', '.join(number_text(value) for value in values)})"


def _loc(meaning: str, name: str = "loc") -> Parameter:
    return Parameter(name, ANY, meaning, 0.0, "loc")


def _scale(meaning: str, name: str = "scale", default: float | None = 1.0) -> Parameter:
    return Parameter(name, POSITIVE, meaning, default, "scale")


_CENTRE = "the location, the median if the records come from this law"
_SUCCESS = "the share that succeeds"
_LINE, _FROM_0, _WHOLE = "real numbers", "numbers from 0 on", "whole numbers from 0 on"
_ALL = (
    Family("normal", "norm", _LINE, (_loc("the mean", "mean"), _scale("the standard deviation", "sd"))),
    Family("laplace", "laplace", _LINE, (_loc(_CENTRE), _scale("the mean distance from it"))),
    Family("cauchy", "cauchy", f"{_LINE}, heavy tails", (_loc(_CENTRE), _scale("half the interquartile range"))),
    Family("logistic", "logistic", _LINE, (_loc("the mean"), _scale("the sd times sqrt(3)/pi"))),
    Family("gumbel", "gumbel_r", f"{_LINE}, largest values", (_loc("the mode"), _scale("the sd times sqrt(6)/pi"))),
    Family(
        "uniform",
        "uniform",
        _LINE,
        (Parameter("low", ANY, "the least value"), Parameter("high", ANY, "the largest value")),
    ),
    Family("exponential", "expon", _FROM_0, (_scale("the mean; rate=1/scale may be given instead", default=None),)),
    Family("half_normal", "halfnorm", f"{_FROM_0}: abs(x) of a normal law", (_scale("the sd of that normal law"),)),
    Family("rayleigh", "rayleigh", _FROM_0, (_scale("the mode"),)),
    Family("gamma", "gamma", _FROM_0, (Parameter("shape", POSITIVE, "mean over scale"), _scale("variance over mean"))),
    Family(
        "inverse_gamma",
        "invgamma",
        _FROM_0,
        (Parameter("shape", POSITIVE, "that of the gamma law of 1/x"), _scale("1 over the scale of that law")),
    ),
    Family(
        "weibull",
        "weibull_min",
        f"{_FROM_0}, lifetimes",
        (Parameter("shape", POSITIVE, "below 1: early failures; above: ageing"), _scale("63% lie below it")),
    ),
    Family(
        "pareto",
        "pareto",
        "numbers from scale on",
        (Parameter("shape", POSITIVE, "a share (scale/x)^shape lies above x"), _scale("the least value")),
    ),
    Family(
        "lognormal",
        "lognorm",
        "positive numbers",
        (
            Parameter("mean", ANY, "the mean of log(x), not of x"),
            Parameter("sd", POSITIVE, "the standard deviation of log(x)"),
        ),
    ),
    Family(
        "beta",
        "beta",
        "numbers between 0 and 1",
        (Parameter("a", POSITIVE, "the mean is a/(a + b)"), Parameter("b", POSITIVE, "see a")),
    ),
    Family(
        "student_t",
        "t",
        f"{_LINE}, heavy tails",
        (Parameter("df", POSITIVE, "degrees of freedom"), _loc(_CENTRE), _scale("the sd times sqrt((df - 2)/df)")),
    ),
    Family("chi2", "chi2", _FROM_0, (Parameter("df", POSITIVE, "degrees of freedom, the mean"),)),
    Family(
        "share_above",
        "share_above",  # not one of scipy's
        "real numbers of which only the side of the cut counts",
        (
            Parameter("cut", ANY, "where they are parted, public", role="loc"),
            Parameter("share", INSIDE, "of the records above it"),
        ),
    ),
    Family("bernoulli", "bernoulli", "0 and 1", (Parameter("p", UNIT, "the share of ones"),), discrete=True),
    Family(
        "binomial",
        "binom",
        "whole numbers from 0 to n",
        (Parameter("n", COUNT, "trials"), Parameter("p", UNIT, _SUCCESS)),
        discrete=True,
    ),
    Family("poisson", "poisson", f"{_WHOLE}, counts", (Parameter("mean", COUNTED, "the mean"),), discrete=True),
    Family(
        "geometric",
        "geom",
        "whole numbers from 1 on: trials up to the first success",
        (Parameter("p", RARE, _SUCCESS),),
        discrete=True,
    ),
    Family(
        "negative_binomial",
        "nbinom",
        f"{_WHOLE}: failures before n successes",
        (Parameter("n", POSITIVE, "successes waited for; need not be whole"), Parameter("p", RARE, _SUCCESS)),
        discrete=True,
    ),
    Family(
        "zipf",
        "zipf",
        "whole numbers from 1 on",
        (Parameter("a", HEAVY, "k has probability proportional to k^-a"),),
        discrete=True,
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
    arguments = _scipy_arguments(frozen)
    if arguments is None or not all(math.isfinite(value) for value in arguments[1]):
        return frozen
    name, values = arguments
    if name in CONTINUOUS and all(value > 0 for value in (*values[:-2], values[-1])):
        return FrozenReals(name, values[:-2], values[-2], values[-1])
    if name in DISCRETE and spec_of_scipy(frozen) is not None:
        return FrozenIntegers(name, values[:-1])
    return frozen


def spec_of_scipy(frozen: Any) -> str | None:
    """Text that reads back to this frozen scipy distribution, where the parser knows its family."""
    arguments = _scipy_arguments(frozen)
    family = _BY_SCIPY.get(arguments[0]) if arguments else None
    if arguments is None or family is None or not all(math.isfinite(value) for value in arguments[1]):
        return None
    *shapes, loc, scale = (*arguments[1], 1.0) if family.discrete else arguments[1]
    values = family.inverse(tuple(shapes), loc, scale)
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
        self._scipy, self._frozen, self._spec = frozen, formulas_of(frozen), spec
        with quiet():
            low, high = (float(np.asarray(end)) for end in self._frozen.support())
        self._support = low, high

    @property
    def support(self) -> tuple[float, float]:
        return self._support

    @property
    def spec(self) -> str | None:
        return self._spec if self._spec is not None else spec_of_scipy(self._scipy)

    def describe(self) -> str:
        return self._spec if self._spec is not None else describe_scipy(self._scipy)

    def cdf(self, x: ArrayLike) -> Floats:
        with quiet():
            return np.asarray(self._frozen.cdf(x), dtype=float)

    def sf(self, x: ArrayLike) -> Floats:
        with quiet():
            return np.asarray(self._frozen.sf(x), dtype=float)


def describe_scipy(frozen: Any) -> str:
    """Scipy's own words, such as ``norm(0, 1)``."""
    if isinstance(frozen, ClassicNames):
        return str(frozen)
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
    """Refuse a law whose quantiles are so large or so close that squares and sums of its values overflow or vanish."""
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
            middle = float(np.asarray(self._frozen.median())) if has_formula(self._frozen, "_ppf") else 0.0
        if any(map(math.isnan, (*self._support, middle))):
            raise InvalidDistribution(
                f"{name}={self.describe()} has invalid parameters: scipy gives NaN for its support or median."
            )
        if has_formula(self._frozen, "_ppf"):
            check_scale(self._frozen.ppf, f"{name}={self.describe()}")
        self._from_density = not has_formula(self._frozen, "_logpdf")

    def logpdf(self, x: ArrayLike) -> Floats:
        with quiet():
            log = np.asarray(self._frozen.logpdf(x), dtype=float)
        if self._from_density:  # the log of a density that has lost its digits says nothing
            log = np.where(log < SMALLEST, -np.inf, log)
        return log

    def ppf(self, u: ArrayLike) -> Floats:
        if not has_formula(self._frozen, "_ppf"):
            return super().ppf(u)
        with quiet():
            return np.asarray(self._frozen.ppf(u), dtype=float)

    def isf(self, u: ArrayLike) -> Floats:
        if not has_formula(self._frozen, "_ppf"):
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
            fast = has_formula(self._frozen, "_ppf")
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
        return np.asarray(self._scipy.rvs(size=size, random_state=rng), dtype=float)


LARGEST_COUNT: Final = 2**53
"""Doubles tell neighbouring integers apart up to this."""
DENSE: Final = 2**17
"""Largest number of integers that are all atoms of their own."""
FINENESS: Final = 2048
"""A block at distance d from a bulk of half-width s holds about (d + s) / FINENESS integers."""
NEGLIGIBLE: Final = math.log(1e-300)
INVISIBLE: Final = math.log(1e-20)
"""Log mass from which on integers stay atoms of their own, if they are not too many."""


class ScipyIntegers(FromScipy, WholeNumbers):
    """A frozen discrete scipy distribution on the integers."""

    def __init__(self, frozen: Any, spec: str | None = None, name: str = "distribution") -> None:
        super().__init__(frozen, spec)
        lo, hi = self._support
        if math.isnan(lo) or math.isnan(hi):
            raise InvalidDistribution(
                f"{name}={self.describe()} has invalid parameters: scipy gives NaN for its support."
            )
        if (math.isfinite(lo) and lo != round(lo)) or (math.isfinite(hi) and hi != round(hi)):
            raise InvalidDistribution(
                f"{name}={self.describe()} has mass off the integers (its support starts at {lo!r}): "
                "shift it to the integers, or give a mapping from label to probability."
            )
        points = getattr(getattr(frozen, "dist", None), "xk", None)
        if points is not None and bool(np.any(np.asarray(points, dtype=float) % 1 != 0)):
            raise InvalidDistribution(
                f"{name}={self.describe()} has mass off the integers: give a mapping from label to probability instead."
            )
        if has_formula(self._frozen, "_cdf") and self._beyond(LARGEST_COUNT) > 0.1:
            raise InvalidDistribution(
                f"{name}={self.describe()} has its mass beyond 2^53, where floating-point numbers do not tell one "
                "integer from the next. Count in thousands, or take a continuous distribution."
            )
        if isinstance(self._frozen, FrozenIntegers):  # our formulas fail everywhere or nowhere: no need for the edges
            ends = np.array([lo, min(lo + 1, hi)])
        else:
            ends = self.edges[[0, self.edges.size // 2, -2]].astype(float)
        if np.isnan(self.logpmf(ends)).any():
            raise InvalidDistribution(
                f"{name}={self.describe()} has invalid parameters: scipy gives NaN for its masses."
            )

    def _beyond(self, far: float) -> float:
        with quiet():
            return float(np.asarray(self._frozen.sf(far))) + float(np.asarray(self._frozen.cdf(-far)))

    def logpmf(self, k: ArrayLike) -> Floats:
        with quiet():
            return np.asarray(self._frozen.logpmf(k), dtype=float)

    def sample(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        return np.asarray(self._scipy.rvs(size=size, random_state=rng)).astype(np.int64)

    @cached_property
    def edges(self) -> Integers:
        centre, spread = self._bulk()
        lo = self._reach(centre, -1)
        hi = self._reach(centre, +1)
        if hi - lo < DENSE:
            return np.arange(lo, hi + 2, dtype=np.int64)
        right = centre + _growing_steps(spread, hi - centre, abs(self._reach(centre, +1, INVISIBLE) - centre))
        left = centre - _growing_steps(spread, centre - lo, abs(self._reach(centre, -1, INVISIBLE) - centre))
        return distinct(np.concatenate([left, right, [lo, hi + 1]]))

    def _bulk(self) -> tuple[int, int]:
        """Median and half the distance between the quartiles, where scipy has a cdf; else the finite end."""
        lo, hi = self._support
        if has_formula(self._frozen, "_cdf"):
            with quiet():
                first, middle, third = np.asarray(self._frozen.ppf([0.25, 0.5, 0.75]), dtype=float)
            if all(math.isfinite(x) and abs(x) < LARGEST_COUNT for x in (first, middle, third)):
                return int(middle), max(1, int(third - first) // 2)
        start = lo if math.isfinite(lo) else hi if math.isfinite(hi) else 0.0
        return int(max(-LARGEST_COUNT, min(LARGEST_COUNT, start))), 1

    def _reach(self, centre: int, side: int, bar: float = NEGLIGIBLE) -> int:
        """Return the last integer to sum: the end of the support, or where the log of the masses is below the bar."""
        end = self._support[(side + 1) // 2]
        limit = int(min(abs(end - centre), LARGEST_COUNT)) if math.isfinite(end) else LARGEST_COUNT - abs(centre)
        if limit < DENSE // 2 and math.isfinite(end):
            return centre + side * limit
        steps = np.unique(np.minimum(2 ** np.arange(0, 54, dtype=np.int64), limit))
        # after the last step at which there still is mass everything is negligible; refine that step
        for _ in range(6):
            alive = np.flatnonzero(self.logpmf((centre + side * steps).astype(float)) >= bar)
            last = int(alive[-1]) if alive.size else 0
            if last == steps.size - 1 or steps[last + 1] - steps[last] <= 8:
                break
            steps = np.unique(np.linspace(steps[last], steps[last + 1], 65).astype(np.int64))
        return centre + side * int(steps[min(last + 1, steps.size - 1)])


def _growing_steps(spread: int, reach: int, visible: int) -> Integers:
    """0 = d_0 < d_1 < ... < reach, single steps first, then steps of (d + spread) / FINENESS."""
    few = visible <= DENSE
    base = 1 if few else max(1, spread // FINENESS)
    flat = max(0, min(reach, max(2 * FINENESS * base - spread, visible if few else 0)))
    steps = np.arange(0, flat + 1, base, dtype=np.int64)
    start = float(flat + spread)
    count = max(0, math.ceil(math.log((reach + spread + 1.0) / start) / math.log1p(1 / FINENESS))) if start > 0 else 0
    grown = start * np.exp(np.arange(1, count + 1) * math.log1p(1 / FINENESS)) - spread
    return distinct(np.concatenate([steps, np.minimum(grown, reach).astype(np.int64)]))


def has_formula(frozen: Any, method: str) -> bool:
    """Whether scipy has a formula of this family for a method such as "_ppf", not only a generic search or sum."""
    family = getattr(frozen, "dist", None)
    if family is None:
        return True
    from scipy import stats

    generic = stats.rv_continuous if isinstance(family, stats.rv_continuous) else stats.rv_discrete
    return getattr(type(family), method) is not getattr(generic, method)


class ClassicNames:
    """One of scipy's newer distributions, such as ``stats.Normal(mu=0, sigma=1)``, under the classic names."""

    def __init__(self, frozen: Any) -> None:
        self._scipy = frozen
        self.logpdf, self.cdf, self.sf = frozen.logpdf, frozen.cdf, frozen.ccdf
        self.ppf, self.isf, self.support, self.median = frozen.icdf, frozen.iccdf, frozen.support, frozen.median

    def rvs(self, size: int, random_state: np.random.Generator) -> Any:
        """Draws by inversion."""
        return self.ppf(random_state.random(size))

    def __str__(self) -> str:
        return str(self._scipy)
