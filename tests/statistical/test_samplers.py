"""Draws of each noise against its exact law, and the same test on draws of laws that are 1% off.

The draws are those behind the public ``draw`` with a seeded source, so that a failure can be seen again: the sampler's
code is the one that runs in production, its integers are simulated. One test uses the system's own source. The long
version makes a million draws. ``pytest tests/statistical`` prints the p-values under "figures".
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from privatest.privacy import (
    Gaussian,
    Laplace,
    Logistic,
    Noise,
    TruncatedTulap,
    Tulap,
    Uniform,
    seeded_source,
    system_source,
)
from tests.statistical.goodness_of_fit import BAR, draw_counts, goodness_of_fit, law_counts, scaled

pytestmark = pytest.mark.statistical

MILLION = 10**6
NOISES: list[Noise] = [Tulap(Fraction(1), 3), Laplace(Fraction(4)), Logistic(Fraction(3))]
OTHERS: list[Noise] = [
    # Parameters of 17 to 20 digits, or so small that few values occur.
    Tulap(Fraction(7500000000000001, 25000000000000000), 4),
    Laplace(Fraction(2 * 10**20, 31234567890123456789)),
    Logistic(Fraction(2 * 10**20, 31234567890123456789)),
    Logistic(Fraction(1, 3)),
    Tulap(Fraction(1), 1),
    TruncatedTulap(Fraction(1), Fraction(1, 100), 3),
    TruncatedTulap(Fraction(1, 10), Fraction(1, 2), 5),
    TruncatedTulap(Fraction(4), Fraction(1, 10**9), 1),
    Uniform(10),
    Uniform(7),
    Gaussian(Fraction(1), 4),
    Gaussian(Fraction(1, 10), 3),
    Gaussian(Fraction(3), 1),
]
each_noise = pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.kind)
long = pytest.mark.exhaustive


@pytest.mark.parametrize(
    ("noise", "count"),
    [
        *((noise, 20_000) for noise in NOISES),
        *((noise, 8_000) for noise in OTHERS),
        *(pytest.param(noise, MILLION, marks=long) for noise in NOISES),
        *(pytest.param(noise, 100_000, marks=long) for noise in OTHERS),
    ],
    ids=str,
)
def test_draws_follow_the_law(noise: Noise, count: int, show: Callable[[str], None]) -> None:
    fit = goodness_of_fit(draw_counts(noise, count, seeded_source(np.random.default_rng(1811))), noise)
    show(f"{count} draws of {noise}: {fit}")
    assert fit.pvalue > BAR
    # Six standard errors: the same bar, one moment at a time.
    assert abs(fit.mean_z) < 6
    assert abs(fit.variance_z) < 6.5 or count < MILLION


@each_noise
def test_a_sampler_one_percent_off_is_rejected(noise: Noise, show: Callable[[str], None]) -> None:
    """Drawn from the probabilities of the law it would have: how a sampler comes by them is not the question."""
    factor = Fraction(101, 100)
    fit = goodness_of_fit(law_counts(scaled(noise, factor), MILLION, np.random.default_rng(11148)), noise)
    show(f"epsilon times {float(factor)} against {noise}: {fit}")
    assert fit.pvalue < BAR


@each_noise
def test_draws_from_the_system_source_follow_the_law(noise: Noise, show: Callable[[str], None]) -> None:
    """Draws that no seed reproduces; fails by chance less than once in 10^8 runs."""
    fit = goodness_of_fit(draw_counts(noise, 5_000, system_source), noise)
    show(f"{noise}, system source: {fit}")
    assert fit.pvalue > BAR


@pytest.mark.parametrize(
    ("drawn", "claimed"),
    [
        (Uniform(10), Uniform(11)),
        (Gaussian(Fraction(1), 4), Gaussian(Fraction(11, 10), 4)),
        (TruncatedTulap(Fraction(1), Fraction(1, 100), 3), Tulap(Fraction(1), 3)),
        (TruncatedTulap(Fraction(1), Fraction(1, 20), 3), TruncatedTulap(Fraction(1), Fraction(1, 30), 3)),
    ],
    ids=str,
)
def test_draws_of_another_law_are_rejected(drawn: Noise, claimed: Noise) -> None:
    assert goodness_of_fit(law_counts(drawn, 20_000, np.random.default_rng(5)), claimed).pvalue < BAR
