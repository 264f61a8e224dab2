"""Penalised labels of blocks: the best ones, by brute force; and their probabilities, several ways."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from privatest.changepoint.switches import Switches

# Three outcomes: speaks for Q, says nothing, speaks for P.
STEPS = np.array([3, 0, -2], dtype=np.int64)
OLD, NEW = np.array([0.1, 0.3, 0.6]), np.array([0.7, 0.2, 0.1])


def score(labels: tuple[int, ...], votes: list[int], penalty: int) -> tuple[int, int]:
    changes = sum(a != b for a, b in itertools.pairwise((0, *labels)))
    return sum(v for v, label in zip(votes, labels, strict=True) if label) - penalty * changes, -changes


@pytest.mark.parametrize("penalty", [0, 1, 2, 3, 5])
def test_the_labels_are_the_best_ones_with_the_fewest_changes(penalty: int) -> None:
    made = Switches(STEPS, OLD, NEW, penalty)
    for outcomes in itertools.product(range(3), repeat=6):
        votes = STEPS[list(outcomes)].tolist()
        best = max(score(labels, votes, penalty) for labels in itertools.product((0, 1), repeat=6))
        found = tuple(made.labels(np.array(outcomes)).tolist())
        assert score(found, votes, penalty)[0] == best[0]
        if penalty:
            assert any(found) == (best[1] < 0)  # no change where one gains nothing


@pytest.mark.parametrize("penalty", [1, 2, 4])
def test_the_false_alarm_is_the_sum_over_all_outcomes(penalty: int) -> None:
    made = Switches(STEPS, OLD, NEW, penalty)
    for blocks in (1, 2, 6):
        total = sum(
            float(np.prod(OLD[list(outcomes)]))
            for outcomes in itertools.product(range(3), repeat=blocks)
            if made.labels(np.array(outcomes)).any()
        )
        assert made.false_alarm(blocks) == pytest.approx(total, abs=1e-8)


def test_long_series_settle_to_the_same_as_step_by_step() -> None:
    made = Switches(STEPS, OLD, NEW, 6)
    chain, state = made._rising._chain(OLD), made._rising._from_zero()
    for _ in range(5_000):
        state = state @ chain
    assert made.false_alarm(5_000) == pytest.approx(1 - state[:7].sum(), abs=1e-6)


def test_a_change_is_missed_no_more_often_than_said() -> None:
    """Exhaustively: so many old blocks, then as many new ones, whatever lies beyond."""
    made, blocks = Switches(STEPS, OLD, NEW, 1), 3
    for before, after in itertools.product(((), (0, 0), (2, 2)), repeat=2):
        missed = 0.0
        for outcomes in itertools.product(range(3), repeat=2 * blocks):
            labels = made.labels(np.array([*before, *outcomes, *after]))[len(before) : len(before) + 2 * blocks]
            if not any(a == 0 and b == 1 for a, b in itertools.pairwise(labels.tolist())):
                law = [*OLD[list(outcomes[:blocks])], *NEW[list(outcomes[blocks:])]]
                missed += float(np.prod(law))
        assert missed <= made.missed(blocks)
    assert made.missed(blocks) < 0.9  # the bound says something


def test_the_penalty_is_the_smallest_that_will_do() -> None:
    made = Switches.calibrated(STEPS, OLD, NEW, 0.05, 100)
    assert made is not None
    assert made.false_alarm(100) <= 0.05
    assert Switches(STEPS, OLD, NEW, made.penalty - 1).false_alarm(100) > 0.05
    assert made.reach(0.1) is not None
    assert made.missed(made.reach(0.1)) <= 0.1 < made.missed(made.reach(0.1) - 1)  # type: ignore[operator]
    assert Switches.calibrated(STEPS, NEW, OLD, 0.05, 100) is None  # votes the wrong way round
