"""The no-change decision: Lindley's recursion against all sequences of votes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from privatest.changepoint.suffix_alarm import SuffixAlarm, decay_rate, largest_suffix_sum
from privatest.errors import InvalidInput

STEPS = np.array([-3, -1, 2, 4], dtype=np.int64)
OLD = np.array([0.5, 0.3, 0.15, 0.05])
NEW = np.array([0.05, 0.15, 0.3, 0.5])


def all_sequences(law: np.ndarray, blocks: int) -> list[tuple[float, int]]:
    return [
        (float(np.prod(law[list(seen)])), largest_suffix_sum(STEPS[list(seen)]))
        for seen in itertools.product(range(4), repeat=blocks)
    ]


def test_the_largest_suffix_sum() -> None:
    assert largest_suffix_sum(np.array([5, -9, 2, -1, 3])) == 4
    assert largest_suffix_sum(np.array([-1, -2])) == 0
    assert largest_suffix_sum(np.array([], dtype=np.int64)) == 0


@pytest.mark.parametrize("blocks", [1, 2, 5, 7])
@pytest.mark.parametrize("target", [0.3, 0.04, 0.012])
def test_thresholds_and_false_alarms_by_enumeration(blocks: int, target: float) -> None:
    alarm = SuffixAlarm.calibrated(STEPS, OLD, NEW, target, blocks)
    seen = all_sequences(OLD, blocks)
    above = {c: sum(p for p, w in seen if w > c) for c in (alarm.threshold - 1, alarm.threshold)}
    assert above[alarm.threshold] == pytest.approx(alarm.false_alarm, abs=1e-11)
    assert above[alarm.threshold] <= target
    assert alarm.threshold == 0 or above[alarm.threshold - 1] > target


def test_missed_changes_by_enumeration() -> None:
    alarm = SuffixAlarm.calibrated(STEPS, OLD, NEW, 0.02, None)
    missed = alarm.missed(np.arange(7))
    for d in range(7):
        exact = sum(p for p, w in all_sequences(NEW, d) if w <= alarm.threshold)
        assert exact <= missed[d] + 1e-12
        assert missed[d] == pytest.approx(exact, abs=1e-11)
    assert np.all(np.diff(alarm.missed(np.arange(50))) <= 0)
    assert alarm.missed(np.array([10**12]))[0] < 1e-8


def test_any_number_of_blocks_is_the_limit_from_below() -> None:
    rates = [SuffixAlarm(STEPS, OLD, NEW, 6, 0.0)]
    ever = SuffixAlarm.calibrated(STEPS, OLD, NEW, 0.02, None)
    finite = [SuffixAlarm.calibrated(STEPS, OLD, NEW, 0.02, m) for m in (3, 10, 100)]
    assert [a.threshold for a in finite] == sorted(a.threshold for a in finite)
    assert finite[-1].threshold == ever.threshold
    rng = np.random.default_rng(4)
    votes = STEPS[rng.choice(4, p=OLD, size=(20_000, 60))]
    fired = np.mean([largest_suffix_sum(v) > ever.threshold for v in votes])
    assert fired <= ever.false_alarm + 4 * np.sqrt(0.02 / 20_000)
    assert rates[0].fires(np.array([0, 3, 3]))
    assert not rates[0].fires(np.array([0, 3]))


def test_likelihood_ratios_obey_villes_inequality() -> None:
    steps = np.rint(16 * np.log(NEW / OLD)).astype(np.int64)
    assert decay_rate(steps, OLD) == pytest.approx(1 / 16, rel=0.02)
    alarm = SuffixAlarm.calibrated(steps, OLD, NEW, 0.01, None)
    assert alarm.threshold <= 16 * np.log(1 / 0.01) + 1


def test_blocks_that_vote_the_wrong_way_are_refused() -> None:
    with pytest.raises(InvalidInput, match="below 1/2"):
        SuffixAlarm.calibrated(np.array([1, -1]), np.array([0.6, 0.4]), np.array([0.7, 0.3]), 0.1, None)
