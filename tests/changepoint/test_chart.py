"""The CUSUM chart: times by other solvers and by enumeration, index errors by simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from privatest.changepoint.chart import LAW_ERROR, MOST_BLOCKS, Chart, Mixed, _moves

VOTES = np.array([-3, -1, 0, 1, 2, 5])
OLD = np.array([0.3, 0.35, 0.15, 0.1, 0.07, 0.03])
NEW = np.array([0.05, 0.1, 0.1, 0.3, 0.25, 0.2])


@pytest.mark.parametrize("threshold", [0, 1, 4, 30])
def test_mean_times_by_a_dense_solver(threshold: int) -> None:
    chart = Chart(VOTES, OLD, NEW, threshold)
    for law, lost, found in ((OLD, LAW_ERROR, chart.blocks_between_false_alarms), (NEW, 0.0, chart.blocks_to_alarm)):
        chain = (1 - lost) * _moves(VOTES, law, threshold)
        exact = np.linalg.solve(np.eye(threshold + 1) - chain, np.ones(threshold + 1))[0]
        assert found == pytest.approx(exact, rel=2e-6)
    assert (
        chart.blocks_between_false_alarms
        <= np.linalg.solve(np.eye(threshold + 1) - _moves(VOTES, OLD, threshold), np.ones(threshold + 1))[0]
    )


def test_survival_by_enumeration() -> None:
    """Pr[no alarm in 5 blocks], over all 6^5 series of outcomes."""
    chart, quiet = Chart(VOTES, NEW, NEW, 6), 0.0
    for outcomes in itertools.product(range(6), repeat=5):
        level, fired = 0, False
        for outcome in outcomes:
            level = max(level + int(VOTES[outcome]), 0)
            fired |= level > 6
        quiet += 0.0 if fired else float(np.prod(NEW[list(outcomes)]))
    state = np.eye(7)[0]
    for _ in range(5):
        state = state @ _moves(VOTES, NEW, 6)
    assert state.sum() == pytest.approx(quiet, abs=1e-12)
    assert chart.blocks_within(quiet + 1e-6) == 5
    assert chart.blocks_within(quiet - 1e-6) == 6


@pytest.mark.parametrize("blocks", [3.0, 100.0, 1e5, 1e8])
def test_the_threshold_is_the_smallest(blocks: float) -> None:
    chart = Chart.calibrated(VOTES, OLD, NEW, blocks)
    assert chart is not None
    assert chart.blocks_between_false_alarms >= blocks
    assert chart.threshold == 0 or Chart(VOTES, OLD, NEW, chart.threshold - 1).blocks_between_false_alarms < blocks


def test_what_cannot_be_computed_is_not_promised() -> None:
    assert Chart.calibrated(VOTES, OLD, NEW, 2.0 * MOST_BLOCKS) is None


def simulate(chart: Chart, change: int, mixed: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Start of the excursion minus the mixed block, over runs without an alarm before it."""
    errors = []
    while len(errors) < runs:
        level = zero = block = 0
        while True:
            law = chart.old if block < change else mixed if block == change else chart.new
            level = max(level + int(chart.votes[np.searchsorted(np.cumsum(law), rng.random())]), 0)
            block += 1
            if level == 0:
                zero = block
            if level > chart.threshold:
                break
        if block > change:
            errors.append(zero - change)
    return np.array(errors)


@pytest.mark.statistical
@pytest.mark.parametrize("change", [0, 3, 60])
def test_index_errors_are_bounded_whenever_the_change_comes(change: int) -> None:
    """A poor chart, so that errors are frequent; the bounds hold at every distance and are not far off."""
    chart, runs = Chart(VOTES, OLD, NEW, 9), 4000
    mixed = (OLD + NEW) / 2
    left, right = chart._errors(mixed)
    errors = simulate(chart, change, mixed, runs, np.random.default_rng(change))
    for distance in range(1, 12):
        for bound, share in ((left, np.mean(errors <= -distance)), (right, np.mean(errors >= distance))):
            error = 6 * np.sqrt(max(share, 1 / runs) / runs)
            assert share <= bound[min(distance, len(bound) - 1)] + error
            if change == 60:  # W is far from 0 at times, so the right bound, from W = 0, is not tight
                assert bound[min(distance, len(bound) - 1)] <= 2 * share + error


def test_accuracy_is_the_smallest_distance_that_will_do() -> None:
    chart = Chart(VOTES, OLD, NEW, 20)
    mixed = [Mixed(0, NEW), Mixed(4, (OLD + NEW) / 2)]
    loose, tight = (chart.accuracy(beta, 8, mixed) for beta in (0.2, 0.01))
    assert loose is not None
    assert tight is not None
    assert 0 < loose < tight
    assert chart.accuracy(1e-12, 8, mixed) is None
