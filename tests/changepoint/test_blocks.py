"""Blocks with noisy sums: the answer is the posterior's median; the simulated curve bounds what happens."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privatest.changepoint.blocks import BlockDesign
from privatest.changepoint.confidence import upper_bounds
from privatest.laws.block_laws import ScoreLaw
from privatest.privacy import Tulap

COIN = ScoreLaw(np.array([0, 1]), np.array([0.2, 0.8]), np.array([0.8, 0.2]), 1)


def brute_median(design: BlockDesign, outcomes: np.ndarray) -> int:
    """The posterior's median from the likelihood of each position, block by block."""
    laws, block = design.laws, design.block
    positions, logs = [], []
    for j in range(len(outcomes) + 1):
        for c, old in enumerate(design.olds[:-1] if j < len(outcomes) else (0,)):
            log = sum(laws.log_laws[-1][y] for y in outcomes[:j]) + sum(laws.log_laws[0][y] for y in outcomes[j + 1 :])
            if j < len(outcomes):
                log += laws.log_laws[c][outcomes[j]]
            positions.append(j * block + old)
            logs.append(log)
    weights = np.exp(np.array(logs) - max(logs))
    return positions[int(np.searchsorted(np.cumsum(weights), weights.sum() / 2))]


@pytest.mark.parametrize("block", [1, 5, 30])
def test_locate_is_the_median_of_the_posterior(block: int) -> None:
    design = BlockDesign(COIN, Tulap(Fraction(1), 1), block)
    rng = np.random.default_rng(1)
    for _ in range(30):
        blocks = int(rng.integers(1, 12))
        change = int(rng.integers(0, blocks + 1))
        outcomes = np.concatenate(
            [design.laws.sample(len(design.olds) - 1, (change,), rng), design.laws.sample(0, (blocks - change,), rng)]
        )
        assert design.locate(outcomes) == brute_median(design, outcomes)


def test_locate_and_simulation_share_their_posterior() -> None:
    design = BlockDesign(COIN, Tulap(Fraction(1, 2), 1), 16)
    outcomes = design.laws.sample(5, (40, 9), np.random.default_rng(2))
    mass = np.cumsum(design._posterior(outcomes), axis=1)
    medians = design._positions(9)[(mass < mass[:, -1:] / 2).sum(axis=1)]
    assert medians.tolist() == [design.locate(row) for row in outcomes]


def test_extreme_outcomes_point_to_the_ends() -> None:
    design = BlockDesign(COIN, Tulap(Fraction(1), 1), 10)
    assert design.locate(np.zeros(8, dtype=np.int64)) <= 2  # all sums tiny: all new
    assert design.locate(np.full(8, design.laws.count - 1)) >= 78  # all sums huge: none new


@pytest.mark.parametrize(("epsilon", "block"), [(Fraction(1), 9), (Fraction(1, 2), 16)])
def test_the_curve_bounds_what_the_detector_does_at_any_place_and_length(epsilon: Fraction, block: int) -> None:
    design = BlockDesign(COIN, Tulap(epsilon, 1), block)
    accuracy = design.failures(0.1, 4000).accuracy(0.1)
    assert accuracy is not None
    rng = np.random.default_rng(3)
    noise = design.noise
    for n, change in [
        (200, 100),
        (201, 100 + block // 2),
        (2 * accuracy, accuracy),
        (150, accuracy),
        (150, 150 - accuracy),
    ]:
        runs = 1500
        series = rng.random((runs, n)) < np.where(np.arange(n) < change, 0.8, 0.2)
        start, blocks = n % block // 2, n // block
        totals = series[:, start : start + blocks * block].reshape(runs, blocks, block).sum(axis=2)
        b = np.exp(-float(epsilon))
        g = rng.geometric(1 - b, totals.shape) - rng.geometric(1 - b, totals.shape)
        outcomes = design.laws.bins(totals, 2 * g)
        found = np.array([start + design.locate(row) for row in outcomes])
        outside = np.mean(np.abs(found - change) > accuracy)
        assert outside <= 0.1 + 4 * np.sqrt(0.09 / runs)
    assert noise.width == 1


def test_upper_bounds_are_those_of_the_binomial() -> None:
    rng = np.random.default_rng(5)
    for p in (0.003, 0.1, 0.5):
        bounds = upper_bounds(rng.binomial(1000, p, size=20_000) / 1000, 1000, 0.99)
        assert np.mean(bounds < p) <= 0.01
    assert upper_bounds(np.array([1.0]), 10)[0] == pytest.approx(1.0)


def test_smaller_beta_asks_for_more_and_is_not_extrapolated() -> None:
    design = BlockDesign(COIN, Tulap(Fraction(1), 1), 9)
    accuracies = [design.failures(beta, 8000).accuracy(beta) for beta in (0.2, 0.05, 0.01)]
    assert accuracies == sorted(accuracies)


def test_the_bound_by_affinities_lies_above_what_is_simulated() -> None:
    for epsilon, block in ((Fraction(1), 9), (Fraction(1, 2), 23), (Fraction(4), 3)):
        design = BlockDesign(COIN, Tulap(epsilon, 1), block)
        side = design._side(0.01)
        distances = design._distances(side)
        bound = design._by_affinity(distances)
        assert np.all(np.diff(bound) <= 0)
        assert bound[-1] < 0.01
        for row in range(len(design._truths.olds)):
            means = design._simulate(design._truths, row, side, distances, 2000, np.random.default_rng(1))
            assert np.all(means <= bound + 4 * np.sqrt(bound * (1 - bound) / 2000))


def test_tiny_betas_need_no_simulation() -> None:
    curve = BlockDesign(COIN, Tulap(Fraction(1), 1), 9).failures(1e-9, 8000)
    assert curve.runs == 0
    assert curve.accuracy(1e-9) is not None
