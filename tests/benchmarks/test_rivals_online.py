"""The online rivals as published, and the evaluation that puts monitors beside them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.evaluate_online import evaluate_monitor
from benchmarks.rivals_online import NEVER, online_pcpd, scan, threshold_for

COINS = ("bernoulli(0.2)", "bernoulli(0.8)")


@pytest.mark.parametrize("window", [1, 2, 5, 8])
def test_the_scan_is_the_largest_suffix_sum_of_the_window(window: int) -> None:
    ratios = np.random.default_rng(window).standard_normal((3, 12))
    found = scan(ratios, window)
    for run in range(3):
        for t in range(12 - window + 1):
            part = -ratios[run, t : t + window]
            assert found[run, t] == pytest.approx(max(part[k:].sum() for k in range(window)), abs=1e-12)


def test_without_noise_it_stops_at_the_first_crossing() -> None:
    ratios = np.concatenate([np.full((1, 20), 1.0), np.full((1, 20), -1.0)], axis=1)
    seen, index = online_pcpd(ratios, 1e-9, 1.0, 5.5, 10, np.random.default_rng(1))
    assert (seen.tolist(), index.tolist()) == ([26], [20])
    seen, index = online_pcpd(ratios, 1e-9, 1.0, 11.0, 10, np.random.default_rng(1))
    assert (seen.tolist(), index.tolist()) == ([NEVER], [NEVER])


def test_the_noise_is_the_published_one() -> None:
    """Pr[crossing at the only step] for Lap(4A/eps) against Lap(8A/eps) noise, by numerical integration."""
    runs, scale = 40_000, 0.5
    ratios = np.zeros((runs, 4))
    seen, _ = online_pcpd(ratios, scale, 1.0, 3.0, 4, np.random.default_rng(2))
    x = np.linspace(-200, 200, 400_001)
    narrow, wide = (np.exp(-np.abs(x) / b) / (2 * b) for b in (4 * scale, 8 * scale))
    tail = 1 - np.cumsum(wide) * (x[1] - x[0])
    expected = float(np.sum(narrow * np.interp(3.0 + x, x, tail)) * (x[1] - x[0]))
    share = np.mean(seen != NEVER)
    assert abs(share - expected) < 5 * np.sqrt(0.25 / runs) + 1e-3


def test_the_threshold_meets_its_target() -> None:
    rng = np.random.default_rng(3)
    quiet = np.where(rng.random((3000, 60)) < 0.2, -np.log(4), np.log(4))
    threshold = threshold_for(quiet, 2.8, 2.0, 200.0, 20, rng)
    fresh = np.where(rng.random((3000, 60)) < 0.2, -np.log(4), np.log(4))
    seen, _ = online_pcpd(fresh, 2.8, 2.0, threshold, 20, rng)
    assert np.mean(seen != NEVER) == pytest.approx(1 - np.exp(-60 / 200), abs=0.04)


def test_monitors_beside_their_rivals() -> None:
    asked = {"epsilon": 1, "n": 500, "runs": 150, "mean_time_between_false_alarms": 5000}
    rows = evaluate_monitor(*COINS, **asked, change=250, rng=np.random.default_rng(5))
    found = {row.name: row for row in rows}
    assert list(found) == ["cusum", "paper", "OnlinePCPD", "OnlinePCPD, delta=0.1", "fixed times"]
    ours = found["cusum"]
    assert ours.delay < 0.5 * found["OnlinePCPD"].delay
    assert ours.delay < found["paper"].delay
    assert ours.error < found["OnlinePCPD"].error + 3
    assert found["fixed times"].missed > 0.8
    assert ours.missed == 0
    assert ours.stated_delay is not None
    assert ours.delay <= ours.stated_delay
    assert ours.outside is not None
    assert ours.outside <= 0.1 + 4 * np.sqrt(0.09 / 150)
    assert all(json.dumps(row.to_dict(), allow_nan=False) and row.name in str(row) for row in rows)
