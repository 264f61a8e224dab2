"""Sums over atoms against closed forms and against plain summation in many digits.

Distributions on the integers and their atoms.
"""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from privatest.errors import InvalidDistribution
from privatest.hypotheses import DiscretePair, Labels, WholeNumbers, as_distribution, make_pair
from privatest.hypotheses.distribution import IntegerBlocks
from privatest.hypotheses.families import DENSE
from privatest.hypotheses.pair import common_atoms
from privatest.numbers import distinct

FAMILIES: list[Any] = [
    stats.poisson(3),
    stats.poisson(1e5),
    stats.poisson(1e9),
    stats.binom(20, 0.3),
    stats.binom(10**7, 0.5),
    stats.geom(0.01),
    stats.nbinom(3, 0.001),
    stats.hypergeom(100, 30, 20),
    stats.skellam(5, 9),
    stats.dlaplace(0.3),
    stats.randint(-3, 9),
    stats.logser(0.9),
    stats.betabinom(30, 2, 3),
    stats.zipf(2.5),
    stats.yulesimon(2.5),
    stats.boltzmann(0.4, 30),
]


@pytest.mark.parametrize("frozen", FAMILIES, ids=lambda frozen: f"{frozen.dist.name}{frozen.args}")
def test_atoms_hold_all_the_mass_and_cover_the_support(frozen: Any) -> None:
    law = as_distribution(frozen)
    assert isinstance(law, WholeNumbers)
    first, last, (mass,), _ = common_atoms([law])
    assert abs(mass.sum() - 1) < 1e-12
    assert np.all(first[1:] == last[:-1] + 1)
    assert np.all(first <= last)
    assert mass.size < 8 * DENSE
    lo, hi = law.support
    assert (first[0] == lo) if np.isfinite(lo) else (first[0] == np.iinfo(np.int64).min)
    assert (last[-1] == hi) if np.isfinite(hi) else (last[-1] == np.iinfo(np.int64).max)
    # blocks of several integers weigh what the cdf says
    wide = np.flatnonzero((last > first) & (mass > 1e-9))[:-1]
    if wide.size and frozen.dist.name != "zipf":
        some = wide[:: max(1, wide.size // 20)]
        truth = frozen.cdf(last[some]) - frozen.cdf(first[some] - 1)
        # scipy's log masses lose digits as k log k grows
        exact = float(last[-2]) < 1e8
        np.testing.assert_allclose(mass[some], truth, rtol=1e-9 if exact else 1e-5, atol=1e-14 if exact else 3e-9)


@pytest.mark.parametrize("frozen", [stats.poisson(3), stats.binom(20, 0.3), stats.geom(0.1), stats.skellam(2, 3)])
def test_quantiles_are_scipys(frozen: Any) -> None:
    law = as_distribution(frozen)
    assert isinstance(law, WholeNumbers)
    u = np.array([1e-9, 0.01, 0.2, 0.5, 0.77, 0.999])
    np.testing.assert_array_equal(law.ppf(u), frozen.ppf(u))
    np.testing.assert_array_equal(law.isf(u), frozen.isf(u))


def test_blocks_from_labels() -> None:
    blocks = IntegerBlocks.from_labels(Labels.from_mapping({5: 0.25, -2: 0.5, np.int64(7): 0.25, 9: 0.0}))
    assert blocks is not None
    assert blocks.support == (-2, 7)
    np.testing.assert_allclose(blocks.pmf([-2, 5, 7, 9, 0, 5.5]), [0.5, 0.25, 0.25, 0, 0, 0])
    np.testing.assert_allclose(blocks.cdf([-3, -2, 4, 5, 6.9, 7, 100]), [0, 0.5, 0.5, 0.75, 0.75, 1, 1])
    np.testing.assert_allclose(blocks.sf([-3, -2, 4, 5, 6.9, 7, 100]), [1, 0.5, 0.5, 0.25, 0.25, 0, 0])
    assert blocks.ppf(0.6) == 5
    assert IntegerBlocks.from_labels(Labels.from_mapping({"a": 1.0})) is None
    assert IntegerBlocks.from_labels(Labels.from_mapping({1.5: 1.0})) is None
    assert IntegerBlocks.from_labels(Labels.from_mapping({2**60: 1.0})) is None


def test_a_block_spreads_its_mass_evenly() -> None:
    blocks = IntegerBlocks(np.array([0, 10]), np.array([4, 19]), np.array([0.5, 0.5]))
    assert blocks.pmf(3) == pytest.approx(0.1)
    assert blocks.cdf(1) == pytest.approx(0.2)
    assert blocks.sf(14) == pytest.approx(0.25)
    assert blocks.cdf(7) == pytest.approx(0.5)


def test_samples_are_integers() -> None:
    rng = np.random.default_rng(4)
    for law in (
        as_distribution("poisson(3)"),
        as_distribution("mixture(0.5, poisson(3), 0.5, geometric(0.5))"),
    ):
        drawn = law.sample(rng, 3000)
        assert drawn.dtype == np.int64
        assert drawn.shape == (3000,)
    blocks = IntegerBlocks(np.array([0, 10]), np.array([4, 19]), np.array([0.5, 0.5]))
    drawn = blocks.sample(rng, 2000)
    assert set(drawn) <= {*range(5), *range(10, 20)}
    assert abs(np.mean(drawn < 5) - 0.5) < 0.06


@pytest.mark.parametrize("size", [0, 1, 2, 100, 10_000])
def test_distinct_integers_are_those_of_numpy(size: int) -> None:
    rng = np.random.default_rng(size)
    for values in (rng.integers(-50, 50, size), np.arange(size), np.repeat(rng.integers(-(2**62), 2**62, size), 2)):
        before = values.copy()
        found = distinct(values)
        assert found.dtype == np.int64
        assert found.tolist() == np.unique(values).tolist()
        assert np.array_equal(values, before)


@pytest.mark.parametrize("rate", ["1e-300", "0.001", "0.5"])
def test_masses_that_cannot_be_computed_are_refused_at_once(rate: str) -> None:
    with pytest.raises(InvalidDistribution, match=r"NaN for its masses|must be at least 1e-12"):
        as_distribution(f"negative_binomial(5e-324, {rate})")


LEVELS = (0.0, 0.1, 0.5, 1.0, 2.0)


def close(value: float, truth: Any, relative: float = 1e-12) -> bool:
    return abs(value - float(truth)) <= relative * abs(float(truth))


def discrete(null: Any, alternative: Any) -> DiscretePair:
    pair = make_pair(null, alternative)
    assert isinstance(pair, DiscretePair)
    assert abs(pair.p.sum() - 1) < 1e-12
    assert abs(pair.q.sum() - 1) < 1e-12
    return pair


def test_bernoulli_by_hand() -> None:
    pair = discrete([0.95, 0.05], [0.9, 0.1])
    for y in LEVELS:
        forward = max(0.95 - math.exp(y) * 0.9, 0) + max(0.05 - math.exp(y) * 0.1, 0)
        backward = max(0.9 - math.exp(y) * 0.95, 0) + max(0.1 - math.exp(y) * 0.05, 0)
        assert close(pair.hockey_stick(y), forward)
        assert close(pair.hockey_stick(y, reverse=True), backward)
    assert close(pair.hellinger_squared, 1 - math.sqrt(0.95 * 0.9) - math.sqrt(0.05 * 0.1))
    assert close(pair.kl, 0.95 * math.log(0.95 / 0.9) + 0.05 * math.log(0.5))
    assert pair.ratio_range == pytest.approx((-math.log(2), math.log(0.95 / 0.9)), rel=1e-15)


@pytest.mark.parametrize(("a", "b"), [(3.0, 4.0), (0.1, 0.2), (200.0, 230.0), (5.0, 5.000001), (1e5, 1.003e5)])
def test_poisson(a: float, b: float) -> None:
    """L(k) = b - a - k log(b/a) decreases: {L > y} = {k < (b - a - y) / log(b/a)}."""
    pair = discrete(stats.poisson(a), stats.poisson(b))
    relative = 1e-9 if b - a < 0.1 or a > 1e4 else 1e-11  # logs of the masses carry the rounding of log k!
    with mp.workdps(40):
        p, q = mp.mpf(a), mp.mpf(b)
        assert close(pair.hellinger_squared, -mp.expm1(-((mp.sqrt(p) - mp.sqrt(q)) ** 2) / 2), relative)
        assert close(pair.kl, p * mp.log(p / q) + q - p, 10 * relative)
        assert close(pair.kl_reverse, q * mp.log(q / p) + p - q, 10 * relative)
        for y in LEVELS:
            if a > 1e4:
                continue
            k = mp.ceil((q - p - y) / mp.log(q / p)) - 1
            if k >= 0:
                truth = mp.gammainc(k + 1, p, regularized=True) - mp.exp(y) * mp.gammainc(k + 1, q, regularized=True)
                assert close(pair.hockey_stick(y), truth, relative * 100)
            else:
                assert pair.hockey_stick(y) == 0
    # unbounded on the right, where k goes on for ever
    assert pair.ratio_range[0] == -math.inf
    assert close(pair.ratio_range[1], b - a, 1e-9)


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.25), (0.1, 0.11), (0.001, 0.002)])
def test_geometric(a: float, b: float) -> None:
    """On 1, 2, ...: L(k) = log(a/b) + (k - 1) log((1 - a)/(1 - b))."""
    pair = discrete(stats.geom(a), stats.geom(b))
    assert close(pair.hellinger_squared, 1 - math.sqrt(a * b) / (1 - math.sqrt((1 - a) * (1 - b))), 1e-9)
    assert close(pair.kl, math.log(a / b) + (1 - a) / a * math.log((1 - a) / (1 - b)), 1e-9)
    slope = math.log((1 - a) / (1 - b))
    for y in LEVELS:
        bound = (y - math.log(a / b)) / slope + 1  # L(k) > y
        if slope < 0:
            k = math.ceil(bound) - 1
            truth = -math.expm1(k * math.log1p(-a)) + math.exp(y) * math.expm1(k * math.log1p(-b)) if k >= 1 else 0.0
        else:
            k = max(math.floor(bound), 0)
            truth = math.exp(k * math.log1p(-a)) - math.exp(y + k * math.log1p(-b))
        assert pair.hockey_stick(y) == pytest.approx(truth, rel=1e-10, abs=1e-15)


def test_binomial_against_plain_sums() -> None:
    pair = discrete("binomial(40, 0.3)", "binomial(50, 0.35)")
    with mp.workdps(40):

        def mass(n: int, p: str, k: int) -> Any:
            return mp.binomial(n, k) * mp.mpf(p) ** k * (1 - mp.mpf(p)) ** (n - k)

        for y in LEVELS:
            terms = [mass(40, "0.3", k) - mp.exp(y) * mass(50, "0.35", k) for k in range(51)]
            assert close(pair.hockey_stick(y), sum(t for t in terms if t > 0), 1e-12)
    assert pair.kl < math.inf
    assert pair.kl_reverse == math.inf
    assert pair.ratio_range[0] == -math.inf
    assert pair.above(0.0)[0] == pytest.approx(stats.binom(40, 0.3).cdf(14), rel=1e-12)


def test_zipf_has_blocks_and_still_the_right_sums() -> None:
    pair = discrete("zipf(1.5)", "zipf(2)")
    a, b, c = (float(special.zeta(s)) for s in (1.5, 2.0, 1.75))
    assert close(pair.hellinger_squared, 1 - c / math.sqrt(a * b), 1e-8)
    assert pair.last[-1] == np.iinfo(np.int64).max
    assert np.all(pair.first[1:] == pair.last[:-1] + 1)
    assert pair.ratio_range[1] == math.inf
    k = np.arange(1, 100.0)
    truth = math.log(b / a) + 0.5 * np.log(k)
    np.testing.assert_allclose(pair.ratio(np.arange(1, 100)), truth, rtol=1e-12, atol=1e-14)
    heavy = discrete("zipf(3)", "zipf(3.5)")
    assert close(
        heavy.hellinger_squared,
        1 - special.zeta(3.25) / math.sqrt(special.zeta(3.0) * special.zeta(3.5)),
        1e-10,
    )


def test_two_sided_infinite_support() -> None:
    pair = discrete(stats.dlaplace(1.0), stats.dlaplace(1.0, loc=1))
    # L is 1 up to 0 and -1 from 1 on: e^-|k| against e^-|k-1|
    assert pair.ratio_range == pytest.approx((-1, 1), rel=1e-12)
    half = float(stats.dlaplace(1.0).cdf(0))
    assert pair.total_variation == pytest.approx(half - math.exp(-1) * half, rel=1e-12)
    assert pair.hockey_stick(1.0) == pytest.approx(0, abs=1e-15)
    assert pair.first[0] == np.iinfo(np.int64).min
    skellam = discrete(stats.skellam(3, 4), stats.skellam(4, 3))
    assert skellam.ratio_range == (-math.inf, math.inf)
    assert skellam.total_variation == pytest.approx(skellam.hockey_stick(0.0, reverse=True), rel=1e-10)


def test_supports_that_differ() -> None:
    pair = discrete({0: 0.5, 3: 0.5, 10**9: 0}, {3: 0.25, 10**9: 0.75, 0: 0.0})
    assert pair.total_variation == pytest.approx(0.75)
    assert pair.kl == math.inf
    mixed = discrete({0: 0.5, 10**9: 0.5}, "poisson(2)")
    assert mixed.total_variation == pytest.approx(1 - math.exp(-2), rel=1e-12)
    assert mixed.ratio(10**9) > 1e10
    np.testing.assert_array_equal(mixed.ratio([7, 12345678, -1, 2 * 10**9]), [-np.inf, -np.inf, np.nan, -np.inf])


def test_ratio_of_records() -> None:
    pair = discrete({"a": 0.2, "b": 0.8, ("x", 1): 0.0}, {"a": 0.5, "b": 0.5, ("x", 1): 0.0})
    ratio = pair.ratio(["a", "b", "c", None, ["unhashable"]])
    np.testing.assert_allclose(ratio, [math.log(0.4), math.log(1.6), np.nan, np.nan, np.nan])
    assert pair.ratio("a") == pytest.approx(math.log(0.4))
    assert np.isnan(pair.ratio(("x", 1)))  # both probabilities are zero
    assert pair.ratio(np.array([["a"], ["b"]])).shape == (2, 1)
    integers = discrete("poisson(3)", "poisson(4)")
    ratio = integers.ratio(np.array([0.0, 1.5, -1.0, np.nan, np.inf, 2.0]))
    assert np.isnan(ratio[[1, 2, 3]]).all()
    assert ratio[5] == pytest.approx(1 - 2 * math.log(4 / 3))
    assert integers.ratio(10**6) < -30  # the last atom holds everything beyond
    assert np.isnan(integers.ratio(["a"])).all()


def test_a_level_at_an_atom_does_not_count_it() -> None:
    pair = discrete([0.5, 0.5], [0.25, 0.75])
    top = math.log(2)
    assert pair.above(top) == (0.0, 0.0)
    assert pair.hockey_stick(top) == 0.0
    assert pair.above(top * (1 - 1e-9)) == (0.5, 0.25)


masses = st.lists(st.floats(0, 1), min_size=2, max_size=8)


@given(masses, st.randoms(use_true_random=False), st.floats(0, 4))
def test_against_many_digits(weights: list[float], random: Any, y: float) -> None:
    others = weights[:]
    random.shuffle(others)
    if sum(weights) < 1e-3 or weights == others:
        return
    p, q = np.array(weights) / sum(weights), np.array(others) / sum(others)
    if np.abs(p - q).sum() < 1e-10 or set(p.tolist()) <= {0.0, 1.0}:  # the latter are taken for data
        return
    pair = discrete(p, q)
    with mp.workdps(40):
        exact = [(mp.mpf(float(a)), mp.mpf(float(b))) for a, b in zip(p, q, strict=True)]
        stick = sum(max(a - mp.exp(mp.mpf(y)) * b, 0) for a, b in exact)
        assert abs(pair.hockey_stick(y) - float(stick)) <= 1e-12 * float(stick) + 1e-15
        h2 = sum((mp.sqrt(a) - mp.sqrt(b)) ** 2 for a, b in exact) / 2
        assert close(pair.hellinger_squared, h2, 1e-10)
        if all(b > 0 or a == 0 for a, b in exact):
            kl = sum(a * mp.log(a / b) if a > 0 else mp.mpf(0) for a, b in exact) + sum(b - a for a, b in exact)
            assert close(pair.kl, kl, 1e-9)
        else:
            assert pair.kl == math.inf
