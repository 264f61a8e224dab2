"""Our own formulas for the named families beside scipy.stats, and that it makes no difference which is given."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest.hypotheses import as_distribution, make_pair
from privatest.hypotheses.density import LEVELS
from privatest.hypotheses.families import CONTINUOUS, DISCRETE, FrozenIntegers, FrozenReals, formulas_of
from privatest.numbers import quiet

Numbers = Any

SHAPES: dict[str, tuple[tuple[float, float], ...]] = {
    "pareto": ((0.4, 9.0),),
    "lognorm": ((0.1, 2.0),),
    "bernoulli": ((0.0, 1.0),),
    "poisson": ((1e-3, 300.0),),
    "geom": ((1e-3, 1.0),),
}
TOLERANCE = 4e-15
# Where arguments are squared or multiplied up in an exponent, scipy's own rounding is this large far out.
LOOSE = {("norm", "cdf"): 2e-13, ("norm", "sf"): 2e-13, ("lognorm", "cdf"): 2e-12, ("lognorm", "sf"): 2e-12}
LOOSE |= {("lognorm", "ppf"): 1e-13, ("lognorm", "isf"): 1e-13, ("binom", "cdf"): 1e-11}


def drawn(name: str, rng: np.random.Generator) -> tuple[float, ...]:
    if name == "binom":
        return int(rng.integers(1, 2000)), float(rng.random())
    return tuple(float(low + (high - low) * rng.random() ** 2) for low, high in SHAPES.get(name, ()))


def apart(ours: Numbers, scipys: Numbers, size: Numbers = None, *, floor: float = 1e-290) -> float:
    """The largest difference relative to scipy's, or to a size; infinite where only one is NaN or infinite."""
    a, b = np.asarray(ours, dtype=float), np.asarray(scipys, dtype=float)
    assert a.shape == b.shape
    same = (a == b) | (np.isnan(a) & np.isnan(b)) | ((np.abs(a) < floor) & (np.abs(b) < floor))
    with np.errstate(all="ignore"):
        gap = np.abs(a - b) / np.maximum(np.abs(b) if size is None else size, 1e-300)
    return float(np.max(np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap)), initial=0.0))


@pytest.mark.parametrize("name", [name for name in CONTINUOUS if hasattr(stats, name)])
def test_continuous_formulas_are_scipys(name: str, show: Callable[[str], None]) -> None:
    if name == "cauchy" and stats.cauchy.cdf(-1e20) == 0:
        pytest.skip("scipy's cauchy has no tails before 1.15")
    rng = np.random.default_rng(list(name.encode()))
    u = np.concatenate([LEVELS, 1 - LEVELS, rng.random(50), [0.0, 1.0, -0.5, 1.5, math.nan]])
    worst: dict[str, float] = {}
    for _ in range(6):
        shapes, loc, scale = drawn(name, rng), float(rng.normal()), float(np.exp(2 * rng.normal()))
        for place, size in ((0.0, 1.0), (loc, scale)):
            scipys, ours = getattr(stats, name)(*shapes, loc=place, scale=size), FrozenReals(name, shapes, place, size)
            assert ours.support() == tuple(float(end) for end in scipys.support())
            with quiet():
                for method in ("ppf", "isf"):
                    got, want = getattr(ours, method)(u), np.asarray(getattr(scipys, method)(u))
                    size_of_terms = np.abs(want - place) + abs(place)  # a shift takes digits, on either side
                    worst[method] = max(worst.get(method, 0.0), apart(got, want, size_of_terms))
                x = np.concatenate([scipys.ppf(u), scipys.isf(u), place + size * np.linspace(-60, 60, 241)])
                x = np.concatenate([x, [math.inf, -math.inf, math.nan, 1e300, -1e300, place, *ours.support()]])
                for method in ("cdf", "sf"):
                    got = getattr(ours, method)(x)
                    worst[method] = max(worst.get(method, 0.0), apart(got, getattr(scipys, method)(x)))
                # scipy has the log of a few densities only as the log of their underflowing selves
                got, want = ours.logpdf(x), np.asarray(scipys.logpdf(x))
                known = want > -700 if name in ("laplace", "pareto") else np.full(x.shape, True)
                size_of_terms = np.maximum(np.abs(want[known]), 1.0) + abs(math.log(size))  # terms may cancel
                gap = apart(got[known], want[known], size_of_terms)
                worst["logpdf"] = max(worst.get("logpdf", 0.0), gap)
    show(f"{name}: " + ", ".join(f"{method} {value:.1e}" for method, value in worst.items()))
    for method, value in worst.items():
        assert value < LOOSE.get((name, method), TOLERANCE), method


@pytest.mark.parametrize("name", [name for name in DISCRETE if name != "zipf"])  # scipy adds its masses one by one
def test_discrete_formulas_are_scipys(name: str, show: Callable[[str], None]) -> None:
    rng = np.random.default_rng(list(name.encode()))
    u = np.array([0.25, 0.5, 0.75, 0.01, 0.99, 1e-6, 0.0, 1.0])
    worst: dict[str, float] = {}
    for _ in range(15):
        shapes = drawn(name, rng)
        scipys, ours = getattr(stats, name)(*shapes), FrozenIntegers(name, shapes)
        assert ours.support() == tuple(float(end) for end in scipys.support())
        with quiet():
            around = np.rint(scipys.mean() + scipys.std() * np.linspace(-30, 30, 301))
            k = np.concatenate([np.arange(-3, 40), around, [0.5, 2.5, 1e15, math.inf, -math.inf, math.nan]])
            assert apart(ours.ppf(u), scipys.ppf(u)) == 0
            for method in ("cdf", "sf"):
                # beyond 1e-250 it is scipy that gives up: stats.binom(1617, 0.383).cdf(33) is 4.9e-278, not 0
                gap = apart(getattr(ours, method)(k), getattr(scipys, method)(k), floor=1e-250)
                worst[method] = max(worst.get(method, 0.0), gap)
            got, want = ours.logpmf(k), np.asarray(scipys.logpmf(k))
            worst["logpmf"] = max(worst.get("logpmf", 0.0), apart(np.exp(got), np.exp(want), floor=1e-200))
            assert np.array_equal(np.isneginf(got), np.isneginf(want))
    show(f"{name}: " + ", ".join(f"{method} {value:.1e}" for method, value in worst.items()))
    for method, value in worst.items():
        limit = LOOSE.get((name, method), 1e-12 if method == "logpmf" else TOLERANCE)
        assert value < limit, method


@pytest.mark.parametrize(("a", "total"), [(2.0, math.pi**2 / 6), (4.0, math.pi**4 / 90)])
def test_zipf_is_the_sum_of_its_masses(a: float, total: float) -> None:
    ours, k = FrozenIntegers("zipf", (a,)), np.arange(1, 2001)
    masses = k**-a / total
    assert apart(np.exp(ours.logpmf(k)), masses) < 1e-14
    assert apart(ours.cdf(k), np.cumsum(masses)) < 1e-13
    assert apart(ours.sf(k), 1 - np.cumsum(masses), 1.0) < 1e-13
    far = 1e9  # the first terms of Euler and Maclaurin's sum
    assert ours.sf(far) == pytest.approx((far ** (1 - a) / (a - 1) - far**-a / 2) / total, rel=1e-14)
    assert [float(ours.ppf(u)) for u in (0.5, 0.99)] == [float(stats.zipf(a).ppf(u)) for u in (0.5, 0.99)]


SAME = [
    ("normal(0, 1)", stats.norm(0, 1), "normal(0.3, 1.1)", stats.norm(loc=0.3, scale=1.1)),
    ("laplace(0, 1)", stats.laplace(0, 1), "laplace(0.5, 1)", stats.laplace(0.5)),
    ("exponential(1)", stats.expon(), "exponential(1.3)", stats.expon(scale=1.3)),
    ("gamma(2, 1)", stats.gamma(2), "gamma(2.5, 1)", stats.gamma(a=2.5)),
    ("lognormal(0, 1)", stats.lognorm(1), "lognormal(0, 0.8)", stats.lognorm(s=0.8)),
    ("student_t(4)", stats.t(4), "student_t(4, 1, 2)", stats.t(4, 1, 2)),
    ("beta(2, 3)", stats.beta(2, 3), "beta(3, 3)", stats.beta(3, 3)),
    ("poisson(3)", stats.poisson(3), "poisson(4)", stats.poisson(4)),
    ("binomial(10, 0.4)", stats.binom(10, 0.4), "binomial(10, 0.5)", stats.binom(10, 0.5)),
    ("geometric(0.3)", stats.geom(0.3), "geometric(0.4)", stats.geom(0.4)),
    ("zipf(3)", stats.zipf(3), "zipf(4)", stats.zipf(4)),
]


@pytest.mark.parametrize("pair", SAME, ids=lambda pair: str(pair[0]))
def test_text_and_frozen_distributions_make_the_same_test(pair: tuple[str, Any, str, Any]) -> None:
    """Digit for digit: the same scores, laws, noise and cutoff; two of them by the same steps of tuning."""
    p_text, p_frozen, q_text, q_frozen = pair
    clamp = "tuned" if p_text.startswith(("normal", "poisson")) else "paper"
    from_text = pt.design(p_text, q_text, epsilon=0.7, n=60, clamp=clamp).to_dict()
    from_scipy = pt.design(p_frozen, q_frozen, epsilon=0.7, n=60, clamp=clamp).to_dict()
    for document in (from_text, from_scipy):
        document.pop("null"), document.pop("alternative")  # the names people see are those they gave
    assert from_text == from_scipy


class _Doubled(stats.rv_continuous):
    def _pdf(self, x: Numbers) -> Numbers:
        return stats.norm.pdf(x / 2) / 2


def test_only_scipys_own_families_are_recognised() -> None:
    assert isinstance(formulas_of(stats.norm(1, 2)), FrozenReals)
    assert isinstance(formulas_of(stats.expon(loc=3)), FrozenReals)
    assert isinstance(formulas_of(stats.binom(3, 0.5)), FrozenIntegers)
    namesake = _Doubled(name="norm")()
    assert formulas_of(namesake) is namesake
    for kept in (stats.norm(0, -1), stats.gamma(-2), stats.poisson(0), stats.poisson(3, loc=2), stats.t(math.inf)):
        assert formulas_of(kept) is kept
    law: Any = as_distribution(namesake)
    assert law.logpdf(0.0) == pytest.approx(math.log(stats.norm.pdf(0) / 2))


def test_a_log_density_that_scipy_loses_is_kept() -> None:
    law: Any = as_distribution("laplace(0, 1)")
    assert law.logpdf(5000.0) == pytest.approx(-5000 - math.log(2), rel=1e-15)
    assert make_pair("pareto(2)", "pareto(2.5)").ratio_range[1] == math.inf  # log x/2 grows for ever
