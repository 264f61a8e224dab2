"""The families of distributions that can be written as text, and how scipy calls them.

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
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from privatest.errors import InvalidDistribution
from privatest.hypotheses.distribution import LEVELS, Reals, find_breaks
from privatest.hypotheses.formulas import CONTINUOUS, DISCRETE, FrozenIntegers, FrozenReals
from privatest.numbers import Floats, quiet

__all__ = [
    "ALIASES",
    "FAMILIES",
    "Family",
    "FromScipy",
    "NewScipyReals",
    "ScipyReals",
    "describe_scipy",
    "formulas_of",
    "number_text",
    "spec_of_scipy",
]

Rule = tuple[str, Callable[[float], bool]]

ANY: Final[Rule] = ("finite", math.isfinite)
POSITIVE: Final[Rule] = ("greater than 0", lambda x: 0 < x < math.inf)
UNIT: Final[Rule] = ("between 0 and 1", lambda x: 0 <= x <= 1)
INSIDE: Final[Rule] = ("greater than 0 and less than 1", lambda x: 0 < x < 1)
HALF_OPEN: Final[Rule] = ("greater than 0 and at most 1", lambda x: 0 < x <= 1)
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
        (Parameter("mean", POSITIVE, None, "the mean"),),
        "poisson",
        lambda mu: ((mu,), 0, 1),
        lambda mu, m: (mu,) if m == 0 else None,
        discrete=True,
        about="whole numbers from 0 on, counts",
    ),
    Family(
        "geometric",
        (Parameter("p", HALF_OPEN, None, "the share that succeeds"),),
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
            Parameter("p", HALF_OPEN, None, "the share that succeeds"),
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
