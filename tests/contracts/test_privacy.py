"""Privacy verified, not argued: every data set, every neighbour, exact output probabilities.

Run with ``-s`` to see the largest log-ratio of each test as a fraction of epsilon.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privatest as pt
from privatest.decision import PrivateTest
from privatest.errors import InvalidInput
from privatest.numbers import rational
from privatest.privacy import Laplace, Noise, Pure, Tulap
from tests.contracts.exhaustive import (
    decision_log_ratio,
    largest_log_ratio,
    log_pmf,
    log_sf,
    neighbouring_totals,
)

PRIVATE = ("tight", "scllr", "ncllr")
PAIRS = [
    ({"a": 0.6, "b": 0.4}, {"a": 0.4, "b": 0.6}),
    ([0.0, 1.0], [0.1, 0.9]),
    ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2]),
    ([0.9, 0.05, 0.05], [0.05, 0.05, 0.9]),
    ([0.5, 0.5, 0.0], [0.0, 0.5, 0.5]),
]
SLACK = 1 + 1e-12


def log_ratio(noise: Noise, scores: list[int], n: int) -> float:
    """Largest log-ratio of the noisy total over all data sets of n records and all neighbours."""
    return largest_log_ratio(noise, neighbouring_totals(scores, n), reach=2 * (max(scores) - min(scores)) + 5)


def coarse(test: PrivateTest) -> list[int]:
    """Every score any record can have, odd ones included."""
    return sorted(set(test.score.table.tolist()))


@pytest.mark.parametrize("kind", PRIVATE)
def test_largest_log_ratio_over_all_data_sets_and_neighbours(kind: str) -> None:
    worst, tightest = 0.0, math.inf
    for (null, alternative), epsilon, n in itertools.product(PAIRS, (0.1, 0.5, 1, 3), (1, 2, 5)):
        test = pt.design(null, alternative, epsilon=epsilon, n=n, test=kind, clamp="paper")
        fraction = log_ratio(test.noise, coarse(test), n) / epsilon
        totals = neighbouring_totals(coarse(test), n)
        # deciding is post-processing
        assert decision_log_ratio(test.noise, test.cutoff, totals) <= fraction * epsilon * SLACK
        worst, tightest = max(worst, fraction), min(tightest, fraction)
    print(f"{kind}: largest log-ratio / epsilon {worst:.15f}, smallest {tightest:.15f}")
    assert worst <= SLACK
    if kind == "tight":
        assert tightest >= 0.999999


@settings(max_examples=60, deadline=None)
@given(
    weights=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=2, max_size=3),
    epsilon=st.fractions(Fraction(1, 50), 4, max_denominator=100),
    n=st.integers(1, 4),
    kind=st.sampled_from(PRIVATE),
    clamp=st.one_of(st.just("paper"), st.tuples(st.floats(-3, -0.05), st.floats(0.05, 3))),
)
def test_random_pairs_are_private(weights, epsilon, n, kind, clamp) -> None:  # type: ignore[no-untyped-def]
    p, q = (np.array(column, dtype=float) for column in zip(*weights, strict=True))
    if p.sum() == 0 or q.sum() == 0 or np.allclose(p / p.sum(), q / q.sum()):
        return
    laws = (dict(enumerate(law / law.sum())) for law in (p, q))  # an array of zeros and a one is taken for data
    test = pt.design(*laws, epsilon=epsilon, n=n, test=kind, clamp=clamp)
    assert log_ratio(test.noise, coarse(test), n) <= epsilon * SLACK
    totals = neighbouring_totals(coarse(test), n)
    assert decision_log_ratio(test.noise, test.cutoff, totals) <= epsilon * SLACK


def test_the_check_fails_for_the_laplace_scale_of_the_papers_introduction() -> None:
    """Lap(1/(eps (b - a))) at eps = 1: the introduction's scale is not private."""
    good = pt.design([0.95, 0.05], [0.05, 0.95], epsilon=1, n=3, test="ncllr", clamp="paper")
    a, b = (rational(end) for end in (-1, 1))
    introduction = Laplace(1 / (1 * (b - a)) / good.score.step)
    assert log_ratio(good.noise, coarse(good), 3) <= SLACK
    assert log_ratio(introduction, coarse(good), 3) > 3.9  # (b - a) / scale = 4
    with pytest.raises(InvalidInput, match="privacy loss of 4"):
        PrivateTest("ncllr", good.score, introduction, good.cutoff, Pure(1), 3)


@pytest.mark.parametrize("kind", ["tight", "ncllr"])
def test_the_check_fails_for_a_clamp_one_lattice_step_wider_than_declared(kind: str) -> None:
    test = pt.design([0.95, 0.05], [0.05, 0.95], epsilon=1, n=3, test=kind, clamp="paper")
    wider = [*coarse(test), test.score.high + 1]
    assert log_ratio(test.noise, coarse(test), 3) <= SLACK
    assert log_ratio(test.noise, wider, 3) > 1 + 1e-6
    if kind == "tight":
        with pytest.raises(InvalidInput, match="privacy loss"):
            PrivateTest("tight", test.score, Tulap(Fraction(1), test.score.width - 1), test.cutoff, Pure(1), 3)


def test_the_checks_own_formulas_agree_with_the_package() -> None:
    """Two ways to every probability: the closed forms of this check and the package's pmf and sf."""
    for kind, n in itertools.product(PRIVATE, (3, 4)):
        noise = pt.design([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], epsilon=0.7, n=n, test=kind, clamp="paper").noise
        values = 2 * np.arange(-3000, 3000) + int(2 * noise.offset)
        np.testing.assert_allclose(np.exp(log_pmf(noise, values)).astype(float), noise.pmf(values / 2), rtol=1e-12)
        between = values + 1
        np.testing.assert_allclose(np.exp(log_sf(noise, between)).astype(float), noise.sf(between / 2), rtol=1e-12)
