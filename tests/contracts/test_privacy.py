"""Privacy verified, not argued: every data set, every neighbour, exact output probabilities.

Run with ``-s`` to see the largest log-ratio of each test as a fraction of epsilon.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

import privatest as pt
from privatest.decision import PrivateTest
from privatest.errors import InvalidInput
from privatest.privacy import Noise, Pure, Tulap
from tests.contracts.exhaustive import (
    decision_log_ratio,
    largest_log_ratio,
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


@pytest.mark.parametrize("kind", ["tight", "ncllr"])
def test_the_check_fails_for_a_clamp_one_lattice_step_wider_than_declared(kind: str) -> None:
    test = pt.design([0.95, 0.05], [0.05, 0.95], epsilon=1, n=3, test=kind, clamp="paper")
    wider = [*coarse(test), test.score.high + 1]
    assert log_ratio(test.noise, coarse(test), 3) <= SLACK
    assert log_ratio(test.noise, wider, 3) > 1 + 1e-6
    if kind == "tight":
        with pytest.raises(InvalidInput, match="privacy loss"):
            PrivateTest("tight", test.score, Tulap(Fraction(1), test.score.width - 1), test.cutoff, Pure(1), 3)
