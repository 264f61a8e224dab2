"""Distributions on the integers and their atoms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from privatest.errors import InvalidDistribution
from privatest.hypotheses import Integers, Labels, as_distribution
from privatest.hypotheses.integers import DENSE, IntegerBlocks, common_atoms
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
    assert isinstance(law, Integers)
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
    assert isinstance(law, Integers)
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


@pytest.mark.parametrize(
    "text", ["poisson(3)", "binomial(20, 0.3)", "bernoulli(0.3)", "geometric(0.1)", "negative_binomial(3, 0.4)"]
)
def test_what_a_text_names_is_not_searched_for_its_edges_before_they_are_asked_for(text: str) -> None:
    made = as_distribution(text)
    assert "edges" not in vars(made)
    assert isinstance(made, Integers)
    assert len(made.edges) > 1


@pytest.mark.parametrize("rate", ["1e-300", "0.001", "0.5"])
def test_masses_that_cannot_be_computed_are_refused_at_once(rate: str) -> None:
    with pytest.raises(InvalidDistribution, match="NaN for its masses"):
        as_distribution(f"negative_binomial(5e-324, {rate})")
