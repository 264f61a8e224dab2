"""The CUSUM chart: times by other solvers and by enumeration, index errors by simulation.

The paper's intervals: exact laws against enumeration, the rule against its definition.

The no-change decision: Lindley's recursion against all sequences of votes.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from privatest.changepoint.cusum import (
    LAW_ERROR,
    Chart,
    SuffixAlarm,
    _moves,
    decay_rate,
    largest_suffix_sum,
)
from privatest.errors import InvalidInput
from privatest.laws.block_laws import first_argmin_law
from privatest.streams.monitor_plan import Intervals
from privatest.streams.paper_intervals import Majority, recommended_interval

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


@pytest.mark.parametrize("blocks", [1, 2, 7])
def test_the_argmins_law_by_enumeration(blocks: int) -> None:
    ups = np.random.default_rng(blocks).random(blocks)
    law = np.zeros(blocks)
    for signs in itertools.product((1, -1), repeat=blocks):
        z = np.array(signs)
        law[np.argmin(np.cumsum(z[::-1])[::-1])] += np.prod(np.where(z < 0, ups, 1 - ups))
    assert first_argmin_law(ups[:-1]) == pytest.approx(law, abs=1e-14)


@pytest.mark.parametrize("interval", [1, 4, 5])
def test_false_stops_and_misses_by_enumeration(interval: int) -> None:
    rule = Majority(interval, 3, 0.3, 0.2)
    stops = missed = 0.0
    for new in itertools.product((0, 1), repeat=interval):
        count = sum(new)
        stops += 0.3**count * 0.7 ** (interval - count) * (2 * count > interval)
        missed += 0.8**count * 0.2 ** (interval - count) * (2 * count <= interval)
    assert rule.false_stop == pytest.approx(stops, rel=1e-12)
    assert rule.missed == pytest.approx(missed, rel=1e-12)
    assert rule.time_between_false_alarms == pytest.approx(3 * interval / stops)


def test_the_recommended_interval_is_the_smallest_that_meets_the_targets() -> None:
    n = recommended_interval(10, 0.3, 0.3, 0.1, 1e5)
    assert n is not None

    def meets(size: int) -> bool:
        rule = Majority(size, 10, 0.3, 0.3)
        enough = rule.time_between_false_alarms >= 1e5 and rule.missed <= 0.025
        return enough and rule.accuracy(0.1) is not None

    assert meets(n)
    assert not any(meets(size) for size in range(1, n))
    larger = recommended_interval(10, 0.3, 0.3, 0.1, 1e8)
    assert larger is not None
    assert larger > n  # the paper's log k*
    assert recommended_interval(10, 0.499, 0.499, 0.1, 1e9) is None


@pytest.mark.statistical
@pytest.mark.parametrize("place", [0, 5, 12])
def test_the_accuracy_holds(place: int) -> None:
    """Changes at several places of an interval, given no stop before: simulated bits through the rule that runs."""
    n, alpha, beta, runs = 13, 0.25, 0.25, 3000
    accuracy = Majority(n, 1, alpha, beta).accuracy(0.2)
    assert accuracy is not None
    rng, rule, off, valid = np.random.default_rng(place), Intervals(n), 0, 0
    change = 2 * n + place
    for _ in range(runs):
        new = np.where(np.arange(20 * n) < change, rng.random(20 * n) < alpha, rng.random(20 * n) >= beta)
        progress, hit = rule.feed(rule.begin, np.where(new, 1, -1))
        assert hit is not None
        if hit >= change:
            valid += 1
            off += abs(progress.start - change) > accuracy
    assert valid > runs / 2
    assert off / valid <= 0.2 + 4 * np.sqrt(0.16 / valid)


def test_the_rule_is_the_papers() -> None:
    """Blocks of bits in any portions: the first interval with more -1, then the argmin over it and the one before."""
    rng = np.random.default_rng(4)
    for _ in range(200):
        z = np.where(rng.random(40) < 0.55, 1, -1)
        n = int(rng.integers(1, 7))
        stop = next((j for j in range(40 // n) if z[j * n : (j + 1) * n].sum() < 0), None)
        rule, progress, hit, done = Intervals(n), Intervals.begin, None, 0
        while done < 40 and hit is None:
            size = int(rng.integers(1, 9))
            progress, hit = rule.feed(progress, -z[done : done + size])
            hit = None if hit is None else done + hit
            done += size
        if stop is None:
            assert hit is None
            continue
        assert hit == (stop + 1) * n - 1
        first = max(stop - 1, 0) * n
        sums = [z[t : (stop + 1) * n].sum() for t in range(first, (stop + 1) * n)]
        assert progress.start == first + int(np.argmin(sums))


STEPS = np.array([-3, -1, 2, 4], dtype=np.int64)
OLD_SUFFIX_ALARM = np.array([0.5, 0.3, 0.15, 0.05])
NEW_SUFFIX_ALARM = np.array([0.05, 0.15, 0.3, 0.5])


def all_sequences(law: np.ndarray, blocks: int) -> list[tuple[float, int]]:
    return [
        (float(np.prod(law[list(seen)])), largest_suffix_sum(STEPS[list(seen)]))
        for seen in itertools.product(range(4), repeat=blocks)
    ]


@pytest.mark.parametrize("blocks", [1, 2, 5, 7])
@pytest.mark.parametrize("target", [0.3, 0.04, 0.012])
def test_thresholds_and_false_alarms_by_enumeration(blocks: int, target: float) -> None:
    alarm = SuffixAlarm.calibrated(STEPS, OLD_SUFFIX_ALARM, NEW_SUFFIX_ALARM, target, blocks)
    seen = all_sequences(OLD_SUFFIX_ALARM, blocks)
    above = {c: sum(p for p, w in seen if w > c) for c in (alarm.threshold - 1, alarm.threshold)}
    assert above[alarm.threshold] == pytest.approx(alarm.false_alarm, abs=1e-11)
    assert above[alarm.threshold] <= target
    assert alarm.threshold == 0 or above[alarm.threshold - 1] > target


def test_missed_changes_by_enumeration() -> None:
    alarm = SuffixAlarm.calibrated(STEPS, OLD_SUFFIX_ALARM, NEW_SUFFIX_ALARM, 0.02, None)
    missed = alarm.missed(np.arange(7))
    for d in range(7):
        exact = sum(p for p, w in all_sequences(NEW_SUFFIX_ALARM, d) if w <= alarm.threshold)
        assert exact <= missed[d] + 1e-12
        assert missed[d] == pytest.approx(exact, abs=1e-11)
    assert np.all(np.diff(alarm.missed(np.arange(50))) <= 0)
    assert alarm.missed(np.array([10**12]))[0] < 1e-8


def test_any_number_of_blocks_is_the_limit_from_below() -> None:
    rates = [SuffixAlarm(STEPS, OLD_SUFFIX_ALARM, NEW_SUFFIX_ALARM, 6, 0.0)]
    ever = SuffixAlarm.calibrated(STEPS, OLD_SUFFIX_ALARM, NEW_SUFFIX_ALARM, 0.02, None)
    finite = [SuffixAlarm.calibrated(STEPS, OLD_SUFFIX_ALARM, NEW_SUFFIX_ALARM, 0.02, m) for m in (3, 10, 100)]
    assert [a.threshold for a in finite] == sorted(a.threshold for a in finite)
    assert finite[-1].threshold == ever.threshold
    rng = np.random.default_rng(4)
    votes = STEPS[rng.choice(4, p=OLD_SUFFIX_ALARM, size=(20_000, 60))]
    fired = np.mean([largest_suffix_sum(v) > ever.threshold for v in votes])
    assert fired <= ever.false_alarm + 4 * np.sqrt(0.02 / 20_000)
    assert rates[0].fires(np.array([0, 3, 3]))
    assert not rates[0].fires(np.array([0, 3]))


def test_likelihood_ratios_obey_villes_inequality() -> None:
    steps = np.rint(16 * np.log(NEW_SUFFIX_ALARM / OLD_SUFFIX_ALARM)).astype(np.int64)
    assert decay_rate(steps, OLD_SUFFIX_ALARM) == pytest.approx(1 / 16, rel=0.02)
    alarm = SuffixAlarm.calibrated(steps, OLD_SUFFIX_ALARM, NEW_SUFFIX_ALARM, 0.01, None)
    assert alarm.threshold <= 16 * np.log(1 / 0.01) + 1


def test_blocks_that_vote_the_wrong_way_are_refused() -> None:
    with pytest.raises(InvalidInput, match="below 1/2"):
        SuffixAlarm.calibrated(np.array([1, -1]), np.array([0.6, 0.4]), np.array([0.7, 0.3]), 0.1, None)
