"""Divergences of densities against closed forms (derived beside each) and against mpmath quadrature."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from privatest.hypotheses import ContinuousPair, Pair, density, make_pair

TIGHT = 1e-12
LEVELS = (0.0, 0.01, 0.2, 0.5, 1.0, 2.0)


def close(value: float, truth: Any, relative: float = TIGHT) -> bool:
    if truth == math.inf:
        return value == math.inf
    return abs(value - float(truth)) <= relative * abs(float(truth))


def continuous(null: Any, alternative: Any) -> ContinuousPair:
    pair = make_pair(null, alternative)
    assert isinstance(pair, ContinuousPair)
    return pair


def ncdf(x: Any) -> Any:
    return mp.ncdf(x)


def test_far_tails_are_relatively_accurate() -> None:
    pair = continuous("normal(0, 1)", "normal(0.5, 1)")
    with mp.workdps(60):
        d = mp.mpf("0.5")
        for y in (3, 5, 10):
            p, q = ncdf(d / 2 - y / d), ncdf(-d / 2 - y / d)
            above = pair.above(float(y))
            assert close(above[0], p, 1e-10)
            assert close(above[1], q, 1e-10)
            assert close(pair.hockey_stick(float(y)), p - mp.exp(y) * q, 1e-10)


@pytest.mark.parametrize("s", [2.0, 1.1, 30.0])
def test_normal_scale_where_the_ratio_is_not_monotone(s: float) -> None:
    """{L > y} = {|x| < c}, c^2 = 2 (log s - y) / (1 - 1/s^2)."""
    pair = continuous("normal(0, 1)", f"normal(0, {s})")
    with mp.workdps(40):
        sd = mp.mpf(s)
        for y in LEVELS:
            if y < math.log(s):
                c = mp.sqrt(2 * (mp.log(sd) - y) / (1 - 1 / sd**2))
                truth = mp.erf(c / mp.sqrt(2)) - mp.exp(y) * mp.erf(c / sd / mp.sqrt(2))
                assert close(pair.hockey_stick(y), truth, 1e-11)
            else:
                assert pair.hockey_stick(y) == 0
            c = mp.sqrt(2 * (mp.log(sd) + y) / (1 - 1 / sd**2))
            truth = mp.erfc(c / sd / mp.sqrt(2)) - mp.exp(y) * mp.erfc(c / mp.sqrt(2))
            assert close(pair.hockey_stick(y, reverse=True), truth, 1e-11)
        assert close(pair.hellinger_squared, 1 - mp.sqrt(2 * sd / (1 + sd**2)), 1e-11)
        assert close(pair.kl, mp.log(sd) + 1 / (2 * sd**2) - mp.mpf(1) / 2, 1e-11)
        assert close(pair.kl_reverse, -mp.log(sd) + sd**2 / 2 - mp.mpf(1) / 2, 1e-11)
    assert len(pair.regions_above(0.0)) == 1
    assert len(pair.regions_below(0.0)) == 2
    assert close(pair.ratio_range[1], math.log(s))


def test_cauchy_against_normal_by_mpmath() -> None:
    """L = log sqrt(2/pi) + x^2/2 - log(1 + x^2): extrema at 0 and +-1."""
    pair = continuous(stats.cauchy(), stats.norm())
    with mp.workdps(30):

        def p(x: Any) -> Any:
            return 1 / (mp.pi * (1 + x * x))

        def q(x: Any) -> Any:
            return mp.npdf(x)

        def ratio(x: Any) -> Any:
            return mp.log(p(x) / q(x))

        for y in (0.0, 0.2, 0.5, 1.0):
            c = mp.findroot(lambda x, y=y: ratio(x) - y, 2.3)
            truth = 2 * (mp.atan(1 / c) / mp.pi - mp.exp(y) * ncdf(-c))
            assert close(pair.hockey_stick(y), truth, 1e-11)
        outer = mp.findroot(lambda x: ratio(x) + mp.mpf("0.3"), 1.5)
        inner = mp.findroot(lambda x: ratio(x) + mp.mpf("0.3"), 0.5)
        truth = 2 * mp.quad(lambda x: q(x) - mp.exp(mp.mpf("0.3")) * p(x), [inner, 1, outer])
        assert close(pair.hockey_stick(0.3, reverse=True), truth, 1e-10)
        points = [0, 1, 2, 4, 8, 16, mp.inf]
        bc = 2 * mp.quad(lambda x: mp.sqrt(p(x) * q(x)), points)
        assert close(pair.hellinger_squared, 1 - bc, 1e-11)
        assert close(pair.kl_reverse, 2 * mp.quad(lambda x: -q(x) * ratio(x), points), 1e-10)
    assert pair.kl == math.inf
    assert pair.ratio_range[1] == math.inf
    assert close(pair.ratio_range[0], math.log(math.sqrt(2 / math.pi)) + 0.5 - math.log(2), 1e-14)


@pytest.mark.parametrize(
    ("first", "second"), [((0.5, 0.5), (0.6, 0.5)), ((2, 3), (3, 2)), ((0.5, 2), (2, 0.5)), ((1, 1), (5, 5))]
)
def test_beta_with_singular_ends(first: tuple[float, float], second: tuple[float, float]) -> None:
    pair = continuous(stats.beta(*first), stats.beta(*second))
    (a, b), (c, d) = first, second
    log_bc = special.betaln((a + c) / 2, (b + d) / 2) - (special.betaln(a, b) + special.betaln(c, d)) / 2
    # next to 1, unlike next to 0, floats are too coarse to resolve a singularity: 1e-8 is what they allow
    singular = min(b, d) < 1
    relative = 2e-7 if singular else 1e-11
    assert close(pair.hellinger_squared, -math.expm1(log_bc), relative)
    truth = (
        special.betaln(c, d)
        - special.betaln(a, b)
        + (a - c) * special.digamma(a)
        + (b - d) * special.digamma(b)
        + (c - a + d - b) * special.digamma(a + b)
    )
    assert close(pair.kl, truth, 10 * relative)


@pytest.mark.parametrize(
    ("null", "alternative", "forward", "backward"),
    [
        ("cauchy(0, 1)", "normal(0, 1)", True, False),
        ("student_t(2)", "normal(0, 1)", True, False),
        ("student_t(3)", "normal(0, 1)", False, False),
        ("pareto(2)", "mixture(0.5, normal(0, 1), 0.5, normal(3, 1))", True, True),
        ("pareto(1.5)", "pareto(2.5)", False, False),
        ("lognormal(0, 1)", "gamma(2)", False, False),
        ("laplace(0, 1)", "normal(0, 1)", False, False),
        ("uniform(0, 1)", "normal(0, 1)", False, True),
        ("uniform(0, 1)", "beta(2, 1)", False, False),
        ("exponential(1)", "half_normal(1)", False, False),
    ],
)
def test_kl_is_infinite_where_it_is(null: str, alternative: str, forward: bool, backward: bool) -> None:
    pair = make_pair(null, alternative)
    assert (math.isinf(pair.kl), math.isinf(pair.kl_reverse)) == (forward, backward)


def test_figure_one_of_the_paper() -> None:
    pair = figure_one()
    assert round(pair.hockey_stick(0.2), 6) == 0.220031
    assert round(pair.hockey_stick(0.2, reverse=True), 6) == 0.268620
    with mp.workdps(30):
        c = 2 * (1 - mp.log(2))

        def gap(x: Any) -> Any:
            return 2 * x - mp.exp(mp.mpf("0.2")) / (c * (1 + mp.sqrt(x)))

        root = mp.findroot(gap, 0.5)
        assert close(pair.hockey_stick(0.2), mp.quad(gap, [root, 1]), 1e-12)


def figure_one() -> Pair:
    c = 2 * (1 - math.log(2))
    p = density(lambda x: np.log(2 * x), support=(0, 1))
    q = density(lambda x: -np.log1p(np.sqrt(x)) - math.log(c), support=(0, 1))
    return make_pair(p, q)


SMOOTH: dict[str, Callable[[float, float], str]] = {
    "normal": lambda a, b: f"normal({a}, {b})",
    "laplace": lambda a, b: f"laplace({a}, {b})",
    "cauchy": lambda a, b: f"cauchy({a}, {b})",
    "logistic": lambda a, b: f"logistic({a}, {b})",
    "student_t": lambda a, b: f"student_t(3, {a}, {b})",
    "gumbel": lambda a, b: f"gumbel({a}, {b})",
    "uniform": lambda a, b: f"uniform({a}, {a + b})",
}
laws = st.builds(
    lambda name, a, b: SMOOTH[name](round(a, 3) + 0.0, round(b, 3)),
    st.sampled_from(sorted(SMOOTH)),
    st.floats(-3, 3),
    st.floats(0.1, 5),
)


@settings(max_examples=60)
@given(laws, laws, st.floats(0, 3), st.floats(0, 3))
def test_hockey_stick_is_monotone_starts_at_tv_and_obeys_the_inequalities(
    null: str, alternative: str, y: float, z: float
) -> None:
    if null == alternative:
        return
    pair = make_pair(null, alternative)
    low, high = min(y, z), max(y, z)
    tv, h2 = pair.total_variation, pair.hellinger_squared
    for reverse in (False, True):
        assert 0 <= pair.hockey_stick(high, reverse) <= pair.hockey_stick(low, reverse) + 1e-13
        assert pair.hockey_stick(0.0, reverse) == pytest.approx(tv, rel=1e-9, abs=1e-14)
    assert h2 <= tv + 1e-12
    assert tv <= math.sqrt(h2 * (2 - h2)) + 1e-12
    assert pair.kl >= -2 * math.log1p(-h2) * (1 - 1e-9) if h2 < 1 else True
    p, q = pair.above(low)
    assert p - math.exp(low) * q == pytest.approx(pair.hockey_stick(low), abs=1e-12)
    assert p + pair.below(low)[0] <= 1 + 1e-12
