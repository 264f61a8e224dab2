"""The least type II error of any test: by formulas, against the best of all tests found by sorting ratios."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from privatest.bounds.neyman_pearson import COUNTS, SCALES, SHIFTS, least_missed
from privatest.decision.build import unclamped
from privatest.hypotheses import make_pair
from privatest.hypotheses.families import FAMILIES


def sorted_out(null: Any, alternative: Any, alpha: float) -> float:
    """Give up the null where the alternative is likelier by most, and flip a coin at the last value."""
    there = null + alternative > 1e-30
    null, alternative = null[there], alternative[there]
    ratio = alternative / np.maximum(null, 1e-40)
    order = np.argsort(-ratio, kind="stable")
    used, found = 0.0, 0.0
    for i in order:
        part = 1.0 if null[i] <= alpha - used else (alpha - used) / null[i]
        used, found = used + part * null[i], found + part * alternative[i]
        if part < 1:
            break
    return 1 - found


K = np.arange(0, 4000)
TOTALS = {
    ("bernoulli(0.3)", "bernoulli(0.4)"): (stats.binom(30, 0.3), stats.binom(30, 0.4)),
    ("bernoulli(0.3)", "bernoulli(0.1)"): (stats.binom(30, 0.3), stats.binom(30, 0.1)),
    ("bernoulli(0.02)", "bernoulli(0.01)"): (stats.binom(30, 0.02), stats.binom(30, 0.01)),
    ("binomial(4, 0.3)", "binomial(4, 0.35)"): (stats.binom(120, 0.3), stats.binom(120, 0.35)),
    ("poisson(2)", "poisson(2.5)"): (stats.poisson(60), stats.poisson(75)),
    ("poisson(2)", "poisson(1.5)"): (stats.poisson(60), stats.poisson(45)),
    ("poisson(0.01)", "poisson(0.005)"): (stats.poisson(0.3), stats.poisson(0.15)),
    ("geometric(0.3)", "geometric(0.4)"): (stats.nbinom(30, 0.3), stats.nbinom(30, 0.4)),
    ("geometric(0.3)", "geometric(0.25)"): (stats.nbinom(30, 0.3), stats.nbinom(30, 0.25)),
}


@pytest.mark.parametrize("names", TOTALS)
@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_whole_numbers_as_the_best_of_all_tests(names: tuple[str, str], alpha: float) -> None:
    null, alternative = (law.pmf(K) for law in TOTALS[names])
    assert least_missed(make_pair(*names), 30, alpha) == pytest.approx(sorted_out(null, alternative, alpha), abs=1e-9)


@pytest.mark.parametrize(
    ("null", "alternative"),
    [
        ("normal(0, 2)", "normal(0.5, 2)"),
        ("lognormal(0, 1)", "lognormal(-0.3, 1)"),
        ("normal(0, 1)", "normal(0, 1.2)"),
        ("lognormal(0, 1)", "lognormal(0, 0.8)"),
        ("exponential(1)", "exponential(1.4)"),
        ("gamma(2, 1)", "gamma(2, 0.8)"),
        ("laplace(0, 1)", "laplace(0, 1.3)"),
        ("half_normal(1)", "half_normal(1.2)"),
        ("rayleigh(1)", "rayleigh(1.2)"),
        ("weibull(1.5, 1)", "weibull(1.5, 1.2)"),
        ("pareto(3, 1)", "pareto(4, 1)"),
        ("share_above(5, 0.3)", "share_above(5, 0.4)"),
    ],
)
def test_formulas_are_those_of_the_ratio_on_its_lattice(null: str, alternative: str) -> None:
    """The lattice's test is a test: it misses no less, and hardly more."""
    pair = make_pair(null, alternative)
    made = unclamped(pair, 40, "llr", alpha=0.05)
    found = least_missed(pair, 40, 0.05)
    assert found <= made.beta + 1e-9
    # A share of 40 records is decided between whole numbers, so the lattice's test keeps to less than alpha.
    assert found == pytest.approx(made.beta, abs=0.09 if null.startswith("share") else 5e-3)


def test_without_a_formula_the_lattice_with_a_coin() -> None:
    pair = make_pair({"a": 0.5, "b": 0.3, "c": 0.2}, {"a": 0.3, "b": 0.3, "c": 0.4})
    one, other = np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.3, 0.3])
    laws = []
    for law in (one, other):
        total = np.ones((1, 1, 1))
        for _ in range(5):  # counts of all three labels
            grown = np.zeros(tuple(size + 1 for size in total.shape))
            for axis, p in enumerate(law):
                place = [slice(0, size) for size in total.shape]
                place[axis] = slice(1, total.shape[axis] + 1)
                grown[tuple(place)] += p * total
            total = grown
        laws.append(total.ravel())
    assert least_missed(pair, 5, 0.05) == pytest.approx(sorted_out(*laws, 0.05), abs=2e-3)
    assert least_missed(pair, 5, 0.05) <= unclamped(pair, 5, "llr", alpha=0.05).beta


def test_every_formula_is_of_a_family_with_such_a_parameter() -> None:
    for name, parameter in [*SHIFTS, *SCALES, *COUNTS]:
        assert parameter in [each.name for each in FAMILIES[name].parameters]
