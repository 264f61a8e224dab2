"""Compositions against closed forms, against the library run by hand, and never on the wrong side."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from privatest.errors import InvalidInput
from privatest.privacy import (
    Approx,
    Gaussian,
    Gdp,
    Kl,
    Laplace,
    Logistic,
    Noise,
    Notion,
    Pure,
    Renyi,
    TruncatedTulap,
    Tulap,
    Tv,
    Uniform,
    Zcdp,
)
from privatest.privacy.composition import composed_epsilon, event_of, loss_distribution, noise_distribution

pytest.importorskip("dp_accounting")
from dp_accounting import dp_event
from dp_accounting.pld import common, pld_privacy_accountant, privacy_loss_distribution

DELTA = Fraction(1, 10**6)


def binomial_delta(loss: float, times: int, epsilon: float) -> float:
    """Of so many randomised responses, exactly: the loss is (2 K - times) loss, K binomial."""
    total = 0.0
    for k in range(times + 1):
        each = (2 * k - times) * loss
        if each > epsilon:
            total += binom.pmf(k, times, 1 / (1 + math.exp(-loss))) * -math.expm1(epsilon - each)
    return float(total)


@pytest.mark.parametrize(("loss", "times"), [(Fraction(1, 42), 100), (Fraction(1, 3), 5)])
def test_pure_answers_compose_as_randomised_responses_do(loss: Fraction, times: int) -> None:
    """The epsilon that is found is safe, and a thousandth less is not."""
    found = composed_epsilon({Pure(loss): times}, DELTA)
    assert binomial_delta(float(loss), times, found) <= 1e-6
    assert binomial_delta(float(loss), times, found * (1 - 1e-3)) > 1e-6


def test_gaussian_answers_compose_as_one_gaussian_does() -> None:
    """100 of them within (1, 1e-6) have mu = 0.02367 each; the closed form is that of sqrt(100) mu."""
    found = composed_epsilon({Gdp(0.02367): 100}, DELTA)
    whole = Gdp(0.2367)
    assert whole._delta(found) <= 1e-6
    assert whole._delta(found - 1e-4) > 1e-6
    assert found == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("whole", "beside"),
    [
        (Zcdp(0.3), {}),
        (Renyi(8, 0.3), {Approx(Fraction(1, 2), Fraction(1, 10**9)): 1}),
        (Kl(1e-7), {Approx(Fraction(1, 2), Fraction(1, 10**9)): 1}),
    ],
    ids=["zcdp", "renyi", "kl"],
)
def test_three_answers_at_a_third_cost_what_one_at_the_whole_does(whole: Notion, beside: dict[Notion, int]) -> None:
    """Every one of several equal charges counts, alone and beside a charge in another notion."""
    one = composed_epsilon({whole: 1, **beside}, DELTA)
    assert composed_epsilon({whole.share(3): 3, **beside}, DELTA) == pytest.approx(one, rel=1e-6, abs=1e-12)


def test_the_library_run_by_hand_says_the_same() -> None:
    gaussian = privacy_loss_distribution.from_gaussian_mechanism(20.0).self_compose(30)
    response = privacy_loss_distribution.from_privacy_parameters(common.DifferentialPrivacyParameters(0.02, 0.0))
    by_hand = gaussian.compose(response.self_compose(20)).get_epsilon_for_delta(1e-6)
    assert composed_epsilon({Gdp(0.05): 30, Pure(0.02): 20}, DELTA) == pytest.approx(by_hand, rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.45, 0.6])
def test_the_distribution_of_a_notion_has_its_curve(epsilon: float) -> None:
    for notion in (Pure(0.5), Approx(0.5, 0.01), Tv(0.1), Gdp(0.5)):
        found = loss_distribution(notion).get_delta_for_epsilon(epsilon)
        assert notion._delta(epsilon) - 1e-12 <= found <= notion._delta(epsilon) + 1e-6


def test_the_exact_law_of_the_noise_has_the_curve_of_its_notion() -> None:
    """Tulap meets pure with equality; Laplace, rounded, stays below it; half the noise would not."""
    for epsilon in (0.0, 0.2, 0.4):
        tulap = noise_distribution(Tulap(Fraction(1, 2), 7), 7).get_delta_for_epsilon(epsilon)
        assert tulap == pytest.approx(Pure(0.5)._delta(epsilon), abs=1e-4)
        assert noise_distribution(Laplace(Fraction(20)), 10).get_delta_for_epsilon(epsilon) <= tulap + 1e-4
        assert noise_distribution(Tulap(Fraction(1), 7), 7).get_delta_for_epsilon(epsilon) > tulap + 0.05
    assert noise_distribution(Tulap(Fraction(1, 2), 7), 7).get_delta_for_epsilon(0.5002) < 1e-20


def test_moves_of_more_than_a_width_cost_more() -> None:
    """A move that is no whole number of widths costs as much as the next one that is: never less than it does."""
    noise = Tulap(Fraction(1, 2), 7)
    x = np.arange(-600, 601)
    for move in (8, 13, 15, 14, 7, 6, 1):
        found = noise_distribution(noise, move)
        for epsilon in (0.0, 0.4, 0.6, 0.9, 1.2):
            exact = float(np.maximum(noise.pmf(x) - math.exp(epsilon) * noise.pmf(x - move), 0).sum())
            assert found.get_delta_for_epsilon(epsilon) >= exact - 1e-15
    assert noise_distribution(noise, 8).get_delta_for_epsilon(0.6) > 0.1


LAWS: list[tuple[Noise, int]] = [
    (Tulap(Fraction(1, 2), 7), 7),
    (TruncatedTulap(Fraction(1, 2), Fraction(1, 20), 7), 7),
    (TruncatedTulap(Fraction(1, 2), Fraction(1, 20), 6), 4),
    (Laplace(Fraction(20)), 10),
    (Logistic(Fraction(9, 2)), 3),
    (Gaussian(Fraction(1, 2), 9), 9),
    (Uniform(40), 3),
]


@pytest.mark.parametrize(("noise", "move"), LAWS, ids=lambda value: str(value) if isinstance(value, Noise) else "")
@pytest.mark.parametrize("grid", [1e-3, 0.07])
def test_no_noise_loses_more_than_its_distribution_says(noise: Noise, move: int, grid: float) -> None:
    """Delta by definition, as a sum over all values; the grid may be seen, and always on the safe side."""
    found = noise_distribution(noise, move, grid)
    x = np.arange(-3000, 3000 + move) + float(noise.offset)
    with np.errstate(under="ignore"):
        here, there = noise.pmf(x), noise.pmf(x - move)
    twice = found.self_compose(2)
    for epsilon in (0.0, 0.03, 0.2, 0.4, 0.51, 0.9, 1.3):
        exact = math.fsum(np.maximum(here - math.exp(epsilon) * there, 0).tolist())
        assert exact - 1e-14 <= found.get_delta_for_epsilon(epsilon) <= exact + grid / 4 + 1e-12
        assert twice.get_delta_for_epsilon(epsilon) >= exact - 1e-12  # two answers tell no less than one


def test_the_rounding_of_a_transform_is_paid_for_in_delta() -> None:
    """What is found is safe although a transform is off by 1e-12, which is much of the least deltas."""
    delta = Fraction(2, 10**10)
    assert binomial_delta(0.02, 100, composed_epsilon({Pure(0.02): 100}, delta)) <= 2e-10 - 1e-12
    assert Gdp(0.5)._delta(composed_epsilon({Gdp(0.05): 100}, delta)) <= 2e-10 - 1e-12


def test_events_are_understood_by_the_librarys_own_accountant() -> None:
    accountant = pld_privacy_accountant.PLDAccountant()
    accountant.compose(event_of(Pure(0.02)), 20)
    accountant.compose(event_of(Gdp(0.05)), 30)
    mine = composed_epsilon({Gdp(0.05): 30, Pure(0.02): 20}, DELTA)
    assert accountant.get_epsilon(1e-6) == pytest.approx(mine, rel=1e-4)
    assert event_of(Zcdp(0.5)) == dp_event.ZCDpEvent(0.5)
    for notion in (Renyi(2, 1), Approx(1, 1e-6)):
        with pytest.raises(InvalidInput, match="no event"):
            event_of(notion)
