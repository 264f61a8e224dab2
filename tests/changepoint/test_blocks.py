"""Blocks with noisy sums: the answer is the posterior's median; the simulated curve bounds what happens.

The paper's reduction: the argmin's exact law against enumeration and simulation.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from privatest.changepoint.block_sums import SumsModel
from privatest.changepoint.block_tests import BitsModel, _argmin_law
from privatest.changepoint.detector import upper_bounds
from privatest.laws.block_laws import ScoreLaw
from privatest.privacy import Tulap


def finite_law(a: float, b: float, mixed: int, left: int, right: int) -> dict[int, float]:
    """Pr[first argmin = t], block 0 mixed, by running the detector on all bits of left old and right new blocks."""
    design, found = BitsModel(1, a, b), dict.fromkeys(range(-left, right + 1), 0.0)
    for votes in itertools.product((1, -1), repeat=left + right):
        old, new = votes[:left], votes[left:]
        p = np.prod([1 - a if z > 0 else a for z in old]) * np.prod([1 - b if z < 0 else b for z in new])
        found[design.locate(np.array([*old, -mixed, *new])) - left] += float(p)
    return found


@pytest.mark.parametrize("mixed", [1, -1])
def test_the_infinite_law_is_the_limit_of_enumerated_ones(mixed: int) -> None:
    """Errors of 5% die out within six blocks a side, to a few parts in a thousand."""
    a, b = 0.05, 0.04
    law = _argmin_law(a, b, mixed, 60)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    enumerated = finite_law(a, b, mixed, 6, 6)
    for t in range(-3, 4):
        assert law[60 + t] == pytest.approx(enumerated[t], abs=2e-3)


@pytest.mark.parametrize(("a", "b"), [(1 / 3, 1 / 3), (0.1, 0.3), (0.3, 0.1)])
def test_simulated_bits_agree_with_the_exact_curve(a: float, b: float) -> None:
    rng = np.random.default_rng(8)
    runs, side = 20_000, 150
    steps = np.ones((runs, 2 * side + 1), dtype=np.int64)
    steps[:, :side] = np.where(rng.random((runs, side)) < a, 1, -1)
    steps[:, side + 1 :] = np.where(rng.random((runs, side)) < b, -1, 1)
    for mixed in (1, -1):
        steps[:, side] = mixed
        found = np.argmax(np.cumsum(steps[:, ::-1], axis=1)[:, ::-1], axis=1) - side
        law = _argmin_law(a, b, mixed, 400)
        for t in range(-5, 6):
            p = law[400 + t]
            assert abs(np.mean(found == t) - p) < 6 * np.sqrt(p * (1 - p) / runs) + 1e-9


def test_locate_takes_the_first_argmin() -> None:
    design = BitsModel(10, 0.3, 0.3)
    assert design.locate(np.array([1, 1, -1, -1])) == 20
    assert design.locate(np.array([-1, -1])) == 0
    assert design.locate(np.array([1, 1, 1])) == 20  # t runs from 1 to m: the last block
    assert design.locate(np.array([-1, 1, -1])) == 0  # ties: sums -1, 0, -1


COIN = ScoreLaw(np.array([0, 1]), np.array([0.2, 0.8]), np.array([0.8, 0.2]), 1)


def brute_median(design: SumsModel, outcomes: np.ndarray) -> int:
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
    design = SumsModel(COIN, Tulap(Fraction(1), 1), block)
    rng = np.random.default_rng(1)
    for _ in range(30):
        blocks = int(rng.integers(1, 12))
        change = int(rng.integers(0, blocks + 1))
        outcomes = np.concatenate(
            [design.laws.sample(len(design.olds) - 1, (change,), rng), design.laws.sample(0, (blocks - change,), rng)]
        )
        assert design.locate(outcomes) == brute_median(design, outcomes)


@pytest.mark.parametrize(("epsilon", "block"), [(Fraction(1), 9), (Fraction(1, 2), 16)])
def test_the_curve_bounds_what_the_detector_does_at_any_place_and_length(epsilon: Fraction, block: int) -> None:
    design = SumsModel(COIN, Tulap(epsilon, 1), block)
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


def test_the_bound_by_affinities_lies_above_what_is_simulated() -> None:
    for epsilon, block in ((Fraction(1), 9), (Fraction(1, 2), 23), (Fraction(4), 3)):
        design = SumsModel(COIN, Tulap(epsilon, 1), block)
        side = design._side(0.01)
        distances = design._distances(side)
        bound = design._by_affinity(distances)
        assert np.all(np.diff(bound) <= 0)
        assert bound[-1] < 0.01
        for row in range(len(design._truths.olds)):
            means = design._simulate(design._truths, row, side, distances, 2000, np.random.default_rng(1))
            assert np.all(means <= bound + 4 * np.sqrt(bound * (1 - bound) / 2000))
