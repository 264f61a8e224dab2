"""Designing, planning, running and storing goodness-of-fit tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import privatest as pt
from privatest.errors import (
    Infeasible,
    InvalidDistribution,
    InvalidInput,
)
from privatest.fit import FitTest, design_fit, goodness_of_fit
from privatest.privacy import canonical_noise
from privatest.privacy.decision_chain import decision_noise
from tests.fit.brute_force import exact_law, simulated_noise, simulated_values, tulap_pmf

Floats = npt.NDArray[np.float64]
SKEWED = {"a": 0.5, "b": 0.25, "c": 0.15, "d": 0.1}


def fit(**changes: Any) -> Any:
    arguments: dict[str, Any] = {"null": SKEWED, "distance": 0.2, "epsilon": 1, "n": 80} | changes
    return design_fit(arguments.pop("null"), **arguments)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"distance": 0}, InvalidInput, "distance=0 must lie in"),
        ({"distance": float("nan")}, InvalidInput, "distance"),
        ({"distance": 0.95}, InvalidInput, "larger than 0.9, the largest total variation distance"),
        ({"epsilon": 0}, InvalidInput, "epsilon=0 must be greater than 0"),
        ({"epsilon": "1"}, InvalidInput, "epsilon"),
        ({"alpha": 1.5}, InvalidInput, "alpha=1.5"),
        ({"beta": 0}, InvalidInput, "beta"),
        ({"alpha": 1e-9}, InvalidInput, "alpha=1e-09 must be at least 1e-06"),
        ({"alpha": 0.6, "beta": 0.4}, InvalidInput, "must sum to less than 1"),
        ({"n": 0}, InvalidInput, "n=0"),
        ({"method": "uniform"}, InvalidInput, "Did you mean 'uniformity'"),
        ({"method": "uniformity"}, InvalidInput, "needs a uniform null"),
        ({"bins": 5}, InvalidInput, "Leave bins out"),
        ({"null": {"a": 0.5, "b": 0.4}}, InvalidDistribution, "sum to"),
        ({"null": [1.0]}, InvalidDistribution, "single outcome"),
    ],
)
def test_bad_input(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fit(**changes)


def test_a_domain_too_large_for_the_data_is_refused_with_numbers() -> None:
    with pytest.raises(
        Infeasible, match=r"n=50 records give a type II error of 0\.\d+.*1000 outcomes: about \d+ records"
    ):
        goodness_of_fit(np.zeros(50, dtype=int), np.full(1000, 0.001), distance=0.2, epsilon=1)
    with pytest.raises(Infeasible, match="more than 1000000000 records"):
        design_fit([0.5, 0.5], distance=1e-6, epsilon=1)
    release = goodness_of_fit(
        np.zeros(50, dtype=int), np.full(100, 0.01), distance=0.2, epsilon=1, beta=None, rng=np.random.default_rng(1)
    )
    assert release.n == 50


def test_release() -> None:
    test = fit()
    data = ["a"] * 40 + ["b"] * 20 + ["c"] * 12 + ["d"] * 8
    release = test.run(data, rng=np.random.default_rng(0))
    assert release.simulated
    assert not release.private
    assert "SIMULATED" in str(release)
    assert release == test.run(data, rng=np.random.default_rng(0))
    private = test.run(data)
    assert private.private
    assert "1-differentially private" in str(private)
    assert json.loads(json.dumps(private.to_dict()))["epsilon"] == 1.0
    far = test.run(["d"] * 80, rng=np.random.default_rng(0))
    assert far.decision == "alternative"
    assert far.pvalue < 1e-6
    assert far.statistic < -0.3  # large values speak for P, as with every release
    # The decision is the p-value's: at most alpha means rejected.
    for release in (test.run(data, rng=np.random.default_rng(seed)) for seed in range(200)):
        assert (release.decision == "alternative") == (release.pvalue <= test.alpha + 1e-12)


def test_pvalue_by_enumeration() -> None:
    """Pr[T + N >= t] at every t of the lattice, t itself included, from the definitions of both."""
    test = design_fit([0.25, 0.75], distance=0.4, epsilon=1, n=6, alpha=0.2)
    law = exact_law(test.candidate.excess, test.n, [Fraction(1, 4), Fraction(3, 4)])
    width, centre = test.noise.width, round(test.null_law.mean)
    start = test.noise.offset  # T is whole: T + N lies where N does
    reach = 30 * width
    ladder = [float(tulap_pmf(test.noise.epsilon, width, start + step)) for step in range(-reach, reach)]
    below = np.concatenate([[0.0], np.cumsum(ladder)])  # Pr[N < start + step - reach]
    for t in (start + centre + step for step in (-2 * width, -1, 0, 1, width, 3 * width)):
        expected = 1 - sum(float(mass) * below[int(t - start) - value + reach] for value, mass in law.items())
        assert test.release(t).pvalue == pytest.approx(expected, abs=1e-9)
        assert test.release(t).pvalue > test.release(t + 1).pvalue + 1e-6  # it tells neighbours on the lattice apart


@pytest.mark.parametrize(
    ("null", "distance", "epsilon"),
    [(SKEWED, 0.2, 1), ([0.1] * 10, 0.3, 0.3), (np.full(1000, 0.001), 0.3, 1)],
)
def test_sample_size_meets_both_targets_and_a_little_less_does_not(null: Any, distance: float, epsilon: float) -> None:
    n = design_fit(null, distance=distance, epsilon=epsilon, alpha=0.1, beta=0.2).n
    test = design_fit(null, distance=distance, epsilon=epsilon, n=n, alpha=0.1, beta=0.2)
    assert test.alpha <= 0.1
    assert test.beta <= 0.2
    assert design_fit(null, distance=distance, epsilon=epsilon, n=round(0.95 * n) - 1, alpha=0.1).beta > 0.2


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("k", "exponent", "distance", "epsilon", "n"),
    [(2, 1, 0.3, 0.3, 38), (10, 0, 0.1, 1, 294), (10, 1, 0.3, 1, 38), (100, 1, 0.3, 0.3, 130), (1000, 0, 0.3, 1, 276)],
)
def test_measured_error_rates(
    k: int, exponent: float, distance: float, epsilon: float, n: int, show: Callable[[str], None]
) -> None:
    p = np.arange(1, k + 1) ** -float(exponent)
    p /= p.sum()
    test = design_fit(p, distance=distance, epsilon=epsilon, n=n)
    rates = measured(test, p, np.random.default_rng(k), runs=4000)
    show(
        f"k={k} exponent {exponent} distance {distance} epsilon {epsilon} n={n}: "
        f"type I {rates[0]:.4f} (stated {test.alpha:.4f}), type II {rates[1]:.4f} (stated {test.beta:.4f})"
    )
    assert test.beta < 0.175
    # Six standard errors: the chance of a false alarm is below 1e-8.
    assert rates[0] == pytest.approx(test.alpha, abs=6 * np.sqrt(test.alpha / 4000))
    assert rates[1] == pytest.approx(test.beta, abs=6 * np.sqrt(test.beta / 4000))


def measured(test: FitTest, p: Floats, rng: np.random.Generator, runs: int) -> tuple[float, float]:
    """Type I error, and type II error at the hardest alternative, from simulated histograms and noise."""
    excess, rejected = test.candidate.excess, []
    for q in (p, test.hardest_law):
        noise = simulated_noise(test.epsilon, excess.width, runs, rng)
        values = simulated_values(excess, test.n, q, runs, rng)
        rejected.append(float(np.mean(values + noise > float(test.cutoff))))
    return rejected[0], 1 - rejected[1]


@pytest.mark.parametrize("text", ["approx(0.5, 0.05)", "tv(0.2)", "gdp(1)", "zcdp(0.5)", "renyi(2, 0.5)", "kl(0.3)"])
@pytest.mark.parametrize("rows", [1, 2])
def test_every_notion(text: str, rows: int) -> None:
    """Error rates by enumeration of all histograms, documents, what is refused and what leaves."""
    p = [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]
    test = design_fit([float(x) for x in p], distance=0.4, privacy=text, n=8, alpha=0.2, max_rows_per_unit=rows)
    law = exact_law(test.candidate.excess, test.n, p)
    alpha = sum(float(mass) * float(test.noise.sf(float(test.cutoff) - value)) for value, mass in law.items())
    assert test.alpha == pytest.approx(alpha, abs=1e-8)
    assert test.alpha <= 0.2
    assert test.privacy == pt.notions.parse(text)
    assert test.noise.meets(test.privacy, rows * test.candidate.excess.width)
    again = FitTest.from_json(test.to_json())
    assert again == test
    assert again.price == pt.notions.parse(text)
    frame = pd.DataFrame({"x": [0, 0, 0, 0, 1, 1, 2, 2], "who": range(8)})
    release = test.run(frame, column="x", unit="who")
    assert release.private
    assert release.privacy == pt.notions.parse(text).text
    with pytest.raises(InvalidInput, match="does not hide"):
        replace(test, noise=canonical_noise(test.privacy, rows * test.candidate.excess.width // 2))
    with pytest.raises(InvalidInput, match="does not hide"):
        replace(test, noise=decision_noise(test.privacy, rows * test.candidate.excess.width))


def test_a_small_p_value_beside_null_is_explained() -> None:
    """Without alpha the errors are balanced: the level may be far below a small p-value, and the sentence says so."""
    test = pt.design_fit([0.25] * 4, distance=0.3, epsilon=1, n=2000)
    found = replace(test.release(str(test.cutoff)), design=test)
    assert found.decision == "null"
    assert found.pvalue < 1e-3
    assert "at level" in found.sentence
    assert "above the test's level" in found.sentence
    plain = pt.design_fit([0.25] * 4, distance=0.3, epsilon=1, n=2000, alpha=0.05)
    assert "above the test's level" not in replace(plain.release(str(plain.cutoff)), design=plain).sentence
