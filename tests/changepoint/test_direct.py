"""Direct: utilities by hand, the level that balances both sides, curves that bound."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privatest.changepoint.direct import DirectDesign, DirectDetector, best_level
from privatest.changepoint.laws import ScoreLaw
from privatest.changepoint.search import Problem, law_of
from privatest.errors import InvalidInput
from privatest.pairs import make_pair

COIN = ScoreLaw(np.array([0, 1]), np.array([0.2, 0.8]), np.array([0.8, 0.2]), 1)
SKEWED = ScoreLaw(np.array([0, 1]), np.array([0.0, 1.0]), np.array([0.1, 0.9]), 1)
NEAR = ScoreLaw(np.array([0, 1]), np.array([0.499, 0.501]), np.array([0.501, 0.499]), 1)


@pytest.mark.parametrize("stride", [1, 3])
def test_utilities_are_suffix_sums_up_to_a_constant(stride: int) -> None:
    score = Problem(make_pair(stats.norm(0, 1), stats.norm(1, 1)), Fraction(1)).score((-0.5, 0.5))
    level = Fraction(33, 4)
    detector = DirectDetector(score, DirectDesign(law_of(score), Fraction(1), level, 0.1, stride))
    x = np.random.default_rng(1).normal(size=50)
    s = score.of_numbers(x)
    suffix = [-sum((int(v) - level for v in s[k:]), Fraction(0)) for k in range(0, 51, stride)]
    found = detector.utilities(x, 50)
    assert [Fraction(int(u), 4) for u in found] == [q - suffix[0] for q in suffix]


def test_the_level_balances_both_sides() -> None:
    level, decay = best_level(COIN, 1.0)
    assert level == Fraction(1, 2)
    assert decay > 0.1
    level, decay = best_level(SKEWED, 1.0)
    assert Fraction(9, 10) < level < 1
    assert decay > 0
    level, decay = best_level(NEAR, 1.0)  # far more privacy loss than such a pair needs
    assert abs(level - Fraction(1, 2)) < Fraction(1, 1000)
    assert 0 < decay < 1e-5


@pytest.mark.parametrize("law", [COIN, SKEWED])
@pytest.mark.parametrize("epsilon", [Fraction(1, 5), Fraction(1), Fraction(5)])
def test_chernoffs_bound_lies_above_what_is_simulated(law: ScoreLaw, epsilon: Fraction) -> None:
    design = DirectDesign.of(law, epsilon, 0.1)
    certain, simulated = design.failures(1e-9, 100), design.failures(0.05, 3000)
    assert (certain.runs, simulated.runs) == (0, 3000)
    shared = min(len(certain.distances), len(simulated.distances))
    assert np.all(simulated.failures[:shared] <= certain.failures[:shared] + 1e-12)
    assert simulated.accuracy(0.05) is not None


def test_the_simulated_curve_agrees_with_the_mechanism_itself() -> None:
    """The curve's means, against the exact law of the index on simulated coins."""
    design = DirectDesign(COIN, Fraction(1), Fraction(1, 2), best_level(COIN, 1.0)[1], 2)
    rng = np.random.default_rng(2)
    runs, half = 4000, 60
    for phase in (0, 1):
        scores = rng.random((runs, 4 * half)) < np.where(np.arange(4 * half) < 2 * half + phase, 0.8, 0.2)
        q = np.zeros((runs, 4 * half + 1))
        q[:, 1:] = np.cumsum(scores - 0.5, axis=1)
        q, places = q[:, ::2], np.arange(0, 4 * half + 1, 2) - (2 * half + phase)
        w = np.exp(q - q.max(axis=1, keepdims=True))
        w /= w.sum(axis=1, keepdims=True)
        distances = np.arange(0, 40, 2)
        means = design._simulate(phase, half, distances, 4000, np.random.default_rng(3))
        for a, mean in zip(distances, means, strict=True):
            direct = w[:, np.abs(places) > a].sum(axis=1)
            assert abs(direct.mean() - mean) < 6 * np.sqrt(2 * direct.var() / runs) + 1e-9


def test_sums_that_could_leave_64_bits_are_refused() -> None:
    score = Problem(make_pair([0.2, 0.8], [0.8, 0.2]), Fraction(1)).score((-1.0, 1.0))
    design = DirectDesign(law_of(score), Fraction(1), Fraction(1, 2**60), 0.1, 1)
    with pytest.raises(InvalidInput, match="could leave 64 bits"):
        DirectDetector(score, design).utilities(np.zeros(100), 100)
