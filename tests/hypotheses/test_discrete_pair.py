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

from privatest.hypotheses import DiscretePair, Labels, WholeNumbers, as_distribution, make_pair
from privatest.hypotheses.distribution import IntegerBlocks
from privatest.hypotheses.families import DENSE
from privatest.hypotheses.pair import common_atoms

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


LEVELS = (0.0, 0.1, 0.5, 1.0, 2.0)


def close(value: float, truth: Any, relative: float = 1e-12) -> bool:
    return abs(value - float(truth)) <= relative * abs(float(truth))


def discrete(null: Any, alternative: Any) -> DiscretePair:
    pair = make_pair(null, alternative)
    assert isinstance(pair, DiscretePair)
    assert abs(pair.p.sum() - 1) < 1e-12
    assert abs(pair.q.sum() - 1) < 1e-12
    return pair


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
