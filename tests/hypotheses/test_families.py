"""Masses and quantiles of densities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from privatest.hypotheses import Reals, as_distribution
from privatest.hypotheses.distribution import inverse_cdf


def real(given: object) -> Reals:
    law = as_distribution(given)
    assert isinstance(law, Reals)
    return law


def test_mass_is_relatively_accurate_in_both_tails() -> None:
    law = real("normal(0, 1)")
    both = law.mass([-11.0, 10.0, -1.0, -math.inf], [-10.0, 11.0, 1.0, math.inf])
    tail = stats.norm.cdf(-10) - stats.norm.cdf(-11)
    np.testing.assert_allclose(both, [tail, tail, math.erf(1 / math.sqrt(2)), 1.0], rtol=1e-13)
    assert law.mass(1.0, 1.0) == 0
    assert law.mass(2.0, 1.0) == 0


@pytest.mark.parametrize("text", ["normal(0, 1)", "cauchy(3, 2)", "gamma(0.3)", "beta(2, 3)", "uniform(-1, 1)"])
def test_bisected_quantiles_are_scipys(text: str) -> None:
    law = real(text)
    u = np.array([0.0, 1e-200, 1e-9, 0.1, 0.5, 0.9, 1 - 1e-9, 1.0])
    np.testing.assert_allclose(inverse_cdf(law, u, upper=False), law.ppf(u), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(inverse_cdf(law, u, upper=True), law.isf(u), rtol=1e-6, atol=1e-12)
    assert np.isnan(inverse_cdf(law, np.array([-0.5, 1.5, np.nan]), upper=False)).all()


@pytest.mark.parametrize("frozen", [stats.exponnorm(1.5), stats.foldnorm(1.0), stats.recipinvgauss(0.6)])
def test_families_without_quantile_formulas_get_ours(frozen: object) -> None:
    law = real(frozen)
    u = np.array([0.01, 0.3, 0.5, 0.9])
    np.testing.assert_allclose(law.cdf(law.ppf(u)), u, rtol=1e-9)
    np.testing.assert_allclose(law.sf(law.isf(u)), u, rtol=1e-9)
    assert np.all(np.diff(law.breaks) > 0)


def test_breaks_reach_far_into_the_tails() -> None:
    law = real("normal(0, 1)")
    assert law.breaks[0] < -37
    assert law.breaks[-1] > 37
    assert real("cauchy(0, 1)").breaks[-1] > 1e290


def test_samples_come_from_the_generator_that_is_given() -> None:
    law = real("normal(0, 1)")
    first, second = (law.sample(np.random.default_rng(7), 5) for _ in range(2))
    np.testing.assert_array_equal(first, second)
