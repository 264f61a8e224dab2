"""The monitor as users see it."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import privatest as pt
from privatest.errors import Infeasible, InvalidData, InvalidInput, NothingToTest
from privatest.hypotheses import make_pair
from privatest.numbers import rational
from privatest.streams.monitor import Monitor, MonitorTargets, pair_plan, unknown_plan
from privatest.streams.monitor_plan import Cusum, CusumProgress, Intervals, MonitorPlan
from privatest.streams.stream import TRACE

COINS = make_pair("bernoulli(0.2)", "bernoulli(0.8)")
CUSUM = pair_plan(COINS, rational(1), "cusum", MonitorTargets(0.1, 2000.0, None))


@pytest.fixture(scope="module", params=["cusum", "paper", "fit"])
def watch(request: pytest.FixtureRequest) -> MonitorPlan:
    """Built when a test asks for it: two of them take a second."""
    if request.param == "paper":
        return pair_plan(COINS, rational(1), "paper", MonitorTargets(0.1, 500.0, None))
    if request.param == "fit":
        return unknown_plan([0.25] * 4, 0.4, rational(1), "cusum", MonitorTargets(0.1, 2000.0, None))
    return CUSUM


def coins(seed: int, old: int, new: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.random(old) < 0.2, rng.random(new) < 0.8]).astype(np.int64)


def test_a_change_is_found() -> None:
    monitor = pt.Monitor("normal(0, 1)", "normal(1, 1)", epsilon=1)
    rng = np.random.default_rng(1)
    assert monitor.update_many(rng.standard_normal(300)) is None or monitor.drift_detected
    fresh = pt.Monitor("normal(0, 1)", "normal(1, 1)", epsilon=1, rng=np.random.default_rng(2))
    alarm = fresh.update_many(np.concatenate([rng.standard_normal(600), 1 + rng.standard_normal(600)]))
    assert isinstance(alarm, pt.results.Alarm)
    assert abs(alarm.index - 600) <= alarm.accuracy == fresh.accuracy
    assert 600 < alarm.seen == fresh.seen <= 1200
    assert fresh.drift_detected
    assert fresh.alarm == alarm


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_how_a_stream_is_cut_makes_no_difference(watch, data) -> None:
    stream = coins(data.draw(st.integers(0, 50)), 150, 200)
    whole = Monitor.of(watch, rng=np.random.default_rng(7))
    expected = whole.update_many(stream)
    cut = Monitor.of(watch, rng=np.random.default_rng(7))
    found, place = None, 0
    while found is None and place < len(stream):
        size = data.draw(st.integers(0, 60))
        found = cut.update(int(stream[place])) if size == 0 else cut.update_many(stream[place : place + size])
        place += max(size, 1)
    assert found == expected
    assert cut.trace == whole.trace
    if expected is not None:
        assert cut.seen == whole.seen == expected.seen
        assert expected.seen % watch.block == 0


def test_after_the_alarm_nothing_is_consumed_until_reset() -> None:
    monitor = Monitor.of(CUSUM, rng=np.random.default_rng(1))
    stream = coins(1, 100, 3000)
    alarm = monitor.update_many(stream)
    assert alarm is not None
    for again in (monitor.update(1), monitor.update_many(stream), monitor.update([])):
        assert again == alarm
    assert monitor.seen == alarm.seen
    monitor.reset()
    assert not monitor.drift_detected
    second = monitor.update_many(stream[monitor.seen :])
    assert second is not None
    assert alarm.seen <= second.index < second.seen <= len(stream)


def test_memory_does_not_grow_with_the_stream() -> None:
    monitor = Monitor.of(
        pair_plan(COINS, rational(1), "cusum", MonitorTargets(0.1, 1e8, None)), rng=np.random.default_rng(2)
    )
    batch = coins(5, 20_000, 0)
    for _ in range(3):
        monitor.update_many(batch)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(30):
        assert monitor.update_many(batch) is None
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 100_000
    assert monitor.seen == 33 * len(batch)
    assert len(monitor.trace) == TRACE


def test_nothing_raw_is_shown() -> None:
    """Streams that differ in an unfinished block look the same from outside."""
    shown = []
    for bit in (0, 1):
        monitor = Monitor.of(CUSUM, rng=np.random.default_rng(9))
        monitor.update_many([0] * CUSUM.block + [bit] * (CUSUM.block - 1))
        shown.append((repr(monitor), json.dumps(monitor.to_dict()), monitor.trace))
    assert shown[0] == shown[1]


def test_an_unknown_alternative() -> None:
    monitor = pt.Monitor([0.25] * 4, distance=0.4, epsilon=1, rng=np.random.default_rng(3))
    rng = np.random.default_rng(4)
    assert monitor.update(rng.integers(0, 4, 500)) is None
    alarm = monitor.update(rng.choice(4, p=[0.7, 0.1, 0.1, 0.1], size=3000))
    assert alarm is not None
    assert abs(alarm.index - 500) <= alarm.accuracy
    assert set(monitor.trace) <= {1.0, -1.0}


BAD = [
    ({"epsilon": 0}, InvalidInput, "epsilon=0"),
    ({"epsilon": float("nan")}, InvalidInput, "epsilon"),
    ({"beta": 1.5}, InvalidInput, "beta=1.5"),
    ({"method": "median"}, InvalidInput, "method='median'"),
    ({"interval": 0}, InvalidInput, "interval=0"),
    ({"interval": 3, "method": "cusum"}, InvalidInput, "belongs to method='paper'"),
    ({"mean_time_between_false_alarms": -1}, InvalidInput, "mean_time_between_false_alarms=-1"),
    ({"distance": 0.2}, InvalidInput, "either the alternative"),
    ({"alternative": None}, InvalidInput, "either the alternative"),
    ({"alternative": "bernoulli(0.2)"}, NothingToTest, "same"),
    ({"ledger": object()}, InvalidInput, "ledger must be"),
    ({"dataset": "clicks"}, InvalidInput, "without ledger="),
    ({"rng": 3}, InvalidInput, "rng=3"),
    ({"state": 3}, InvalidInput, "path=3"),
    ({"mean_time_between_false_alarms": 1e15}, Infeasible, "Use at most"),
    ({"block": 1, "mean_time_between_false_alarms": 1e300}, Infeasible, "intervals of more than"),
    ({"block": 0}, InvalidInput, "block=0"),
    ({"block": 4, "method": "cusum"}, InvalidInput, "block=4 belongs to method='paper'"),
    ({"block": 4, "alternative": None, "distance": 0.3}, InvalidInput, "block=4 needs the alternative Q"),
]


@pytest.mark.parametrize(("change", "kind", "message"), BAD, ids=[str(sorted(case[0])) for case in BAD])
def test_bad_input(change: dict, kind: type[Exception], message: str) -> None:
    asked = {"null": "bernoulli(0.2)", "alternative": "bernoulli(0.8)", "epsilon": 1, **change}
    with pytest.raises(kind, match=message):
        pt.Monitor(asked.pop("null"), asked.pop("alternative"), **asked)


def said(interval: int, block: int, alpha: float, beta: float) -> tuple[float, float]:
    """Records between false alarms and mean delay, from the binomial law alone."""
    false_stop = stats.binom.sf(interval // 2, interval, alpha)
    missed = stats.binom.cdf(interval // 2, interval, 1 - beta)
    records = interval * block
    return records / false_stop, records - 1 + records / (1 - missed)


@pytest.mark.parametrize("interval", [1, 2, 3, 12, 60])
def test_an_interval_is_free_and_what_it_promises_is_computed(interval: int) -> None:
    """Whatever was asked for between false alarms: one every few records, or none in a lifetime."""
    asked = {"epsilon": 1, "interval": interval, "mean_time_between_false_alarms": 1e6}
    monitor = pt.Monitor("bernoulli(0.2)", "bernoulli(0.8)", **asked)
    test = pt.design("bernoulli(0.2)", "bernoulli(0.8)", epsilon=1, n=monitor.block)
    between, delay = said(interval, monitor.block, test.alpha, test.beta)
    assert monitor.mean_time_between_false_alarms == pytest.approx(between)
    assert monitor.expected_delay == pytest.approx(delay)
    assert monitor.false_alarm == pytest.approx(interval * monitor.block / between)
    assert "probability of an alarm in one interval" in str(monitor)
    named = monitor.recommended_interval
    assert named is not None
    assert (between >= 1e6) == (interval >= named)


def test_a_short_intervals_accuracy_is_kept() -> None:
    """No distance within two intervals will do where one is often missed: the bound on the delay then does."""
    watch = pair_plan(COINS, rational(1), "paper", MonitorTargets(0.1, 500.0, 1))
    rng, runs, change = np.random.default_rng(5), 500, 53
    off, seen = 0, 0
    for _ in range(runs):
        stream = np.concatenate([COINS.null.sample(rng, change), COINS.alternative.sample(rng, 400)])
        alarm = Monitor.of(watch, rng=rng).update_many(stream)
        assert alarm is not None
        if alarm.seen > change:
            seen += 1
            off += abs(alarm.index - change) > watch.accuracy
    assert watch.accuracy == watch.delay_bound == 14
    assert off <= 0.1 * seen


def false_alarms(monitor: Monitor, quiet: np.ndarray) -> int:
    """How often a monitor that is restarted after each alarm raises one."""
    alarms = 0
    while monitor.seen < len(quiet):
        if monitor.update_many(quiet[monitor.seen : monitor.seen + 3000]) is not None:
            alarms += 1
            monitor.reset()
    return alarms


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("null", "alternative", "method"),
    [
        ("bernoulli(0.2)", "bernoulli(0.8)", "cusum"),
        ("bernoulli(0.2)", "bernoulli(0.8)", "paper"),
        (stats.norm(0, 1), stats.norm(1, 1), "cusum"),
    ],
    ids=["coins-cusum", "coins-paper", "normals-cusum"],
)
def test_promises_are_kept(null: object, alternative: object, method: str) -> None:
    """False alarms of a restarted monitor over a long quiet stream, then delays and index errors at one place."""
    pair = make_pair(null, alternative)
    watch = pair_plan(pair, rational(1), method, MonitorTargets(0.2, 1000.0, None))
    rng = np.random.default_rng(8)
    quiet = pair.null.sample(rng, 300_000)
    alarms = false_alarms(Monitor.of(watch, rng=rng), quiet)
    measured = len(quiet) / alarms
    assert measured >= watch.mean_time_between_false_alarms * (1 - 4 / np.sqrt(alarms))
    assert measured <= watch.mean_time_between_false_alarms * (1 + 4 / np.sqrt(alarms))
    delays, off, late, runs, change = [], 0, 0, 800, 101
    for _ in range(runs):
        stream = np.concatenate([pair.null.sample(rng, change), pair.alternative.sample(rng, 1500)])
        alarm = Monitor.of(watch, rng=rng).update_many(stream)
        assert alarm is not None
        if alarm.seen > change:
            delays.append(alarm.seen - change)
            off += abs(alarm.index - change) > alarm.accuracy
            late += delays[-1] > watch.delay_bound
    spread = 4 * np.std(delays) / np.sqrt(len(delays))
    assert np.mean(delays) <= watch.expected_delay + spread
    for share in (off / len(delays), late / len(delays)):
        assert share <= 0.2 + 4 * np.sqrt(0.16 / len(delays))


@pytest.mark.statistical
def test_a_threshold_that_is_too_low_breaks_the_promise() -> None:
    """The check above can fail: a chart at half the threshold alarms much more often than the design says."""
    from dataclasses import replace

    from privatest.streams.monitor_plan import Cusum

    assert isinstance(CUSUM.rule, Cusum)
    broken = replace(CUSUM, rule=Cusum(CUSUM.rule.threshold // 2))
    rng = np.random.default_rng(8)
    quiet = COINS.null.sample(rng, 100_000)
    alarms = false_alarms(Monitor.of(broken, rng=rng), quiet)
    assert len(quiet) / alarms < CUSUM.mean_time_between_false_alarms * (1 - 4 / np.sqrt(alarms))


@pytest.mark.parametrize("method", ["cusum", "paper"])
def test_a_monitor_of_sets_keeps_its_promises_for_every_member(method: str) -> None:
    """At the boundary and beyond it: no more false alarms than stated, no longer delays."""
    monitor = Monitor(
        "normal(mean<=0, sd=1)", "normal(mean>=1, sd=1)", epsilon=1, method=method, mean_time_between_false_alarms=2000
    )
    watch = monitor._plan
    assert watch.null == "normal(mean<=0, sd=1)"
    rng = np.random.default_rng(3)
    for mean in (0.0, -0.5):
        alarms = false_alarms(Monitor.of(watch, rng=rng), rng.normal(mean, 1, 100_000))
        assert alarms <= 100_000 / watch.mean_time_between_false_alarms + 4 * np.sqrt(50)
    for new in (1.0, 1.5):
        delays = []
        for _ in range(60):
            alarm = Monitor.of(watch, rng=rng).update_many(
                np.concatenate([rng.normal(0, 1, 61), rng.normal(new, 1, 3000)])
            )
            assert alarm is not None
            delays += [alarm.seen - 61] if alarm.seen > 61 else []
        assert np.mean(delays) <= watch.expected_delay + 4 * np.std(delays) / np.sqrt(len(delays))


def test_what_the_alarm_looks_at_follows_from_what_was_released() -> None:
    watch = pt.Monitor("bernoulli(0.2)", "bernoulli(0.8)", epsilon=1)
    assert (watch.levels, watch.threshold is not None) == ((), True)
    level, walked = 0, []
    for part in np.split(coins(3, 400, 200), 60):
        watch.update_many(part)
        watch._settle()
        votes = watch._plan.votes(list(watch._released), 0)
        level, walked = 0, []
        for vote in votes:
            level = max(level + vote, 0)
            walked.append(level)
        assert list(watch.levels) == walked
    assert watch.drift_detected
    assert watch.threshold is not None
    assert walked[-1] > watch.threshold >= max(walked[:-1])
    watch.reset()
    assert watch.levels == ()


def one_by_one(watch: MonitorPlan, records: list[float], *, look: bool) -> tuple[int, object, tuple[float, ...], int]:
    """After how many records which alarm came, what was released, and how many records waited at most."""
    monitor, waited = Monitor.of(watch, rng=np.random.default_rng(5)), 0
    for count, record in enumerate(records, 1):
        alarm = monitor.update(record)
        waited = max(waited, len(monitor._pending))
        assert monitor.seen == count or alarm is not None
        if look:
            assert len(monitor.trace) == min(count // watch.block, TRACE)
        if alarm is not None:
            return count, alarm, monitor.trace, waited
    return len(records), None, monitor.trace, waited


def quiet_one_too_many(self: Cusum, most: int, progress: CusumProgress) -> int:
    return 1 + (self.threshold - progress.level) // most


NORMALS = make_pair("normal(0, 1)", "normal(1, 1)")


@pytest.mark.parametrize("epsilon", [8, 2])
def test_blocks_that_wait_for_one_that_may_raise_the_alarm_change_nothing(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = pair_plan(NORMALS, rational(epsilon), "cusum", MonitorTargets(0.1, 1e4, None))
    rng, late = np.random.default_rng(2), 0
    for _ in range(12):
        records = [*rng.normal(0, 1, 10 * watch.block).tolist(), *rng.normal(1, 1, 30 * watch.block).tolist()]
        end, alarm, trace, waited = one_by_one(watch, records, look=False)
        assert waited > watch.block  # else nothing is shown
        assert one_by_one(watch, records, look=True)[:3] == (end, alarm, trace)
        whole = Monitor.of(watch, rng=np.random.default_rng(5))
        assert whole.update_many(np.array(records)) == alarm
        assert whole.trace == trace
        assert alarm is None or end == alarm.seen  # type: ignore[attr-defined]
        with monkeypatch.context() as patch:
            patch.setattr(Cusum, "quiet", quiet_one_too_many)
            late += one_by_one(replace(watch), records, look=False)[0] > end
    assert late > 0  # a block more would be too many


@pytest.mark.parametrize("level", range(0, 60, 7))
def test_no_votes_raise_an_alarm_as_long_as_a_rule_says_so_and_then_they_do(level: int) -> None:
    rule, start = Cusum(50), CusumProgress(9, level, 5)
    for most in (1, 3, 17, 80):
        quiet = rule.quiet(most, start)
        assert quiet < 0 or rule.feed(start, [most] * quiet)[1] is None
        assert rule.feed(start, [most] * (quiet + 1))[1] == quiet or level > 50
    interval = Intervals(4)
    for seen in range(4):
        progress = interval.feed(interval.begin, np.ones(seen, dtype=np.int64))[0]
        quiet = interval.quiet(1, progress)
        assert interval.feed(progress, [1] * (quiet + 1))[1] == quiet
        assert quiet == 0 or interval.feed(progress, [1] * quiet)[1] is None


def test_ties_are_looked_for_at_the_ends_of_blocks_behind_blocks_that_wait() -> None:
    watch: MonitorPlan = pt.Monitor("bernoulli(0.2)", "bernoulli(0.8)", epsilon=2)._plan  # type: ignore[assignment]
    block, waiting = watch.block, Monitor.of(watch)._room
    assert 1 < block < waiting - block  # full blocks wait
    for before in range(waiting):
        for tied in range(1, 2 * block + 3):
            monitor = Monitor.of(watch)
            for _ in range(before):
                monitor.update(0)
            order = [place - (place >= tied) for place in range(2 * block + 3)]
            table = pd.DataFrame({"x": 0, "t": order})
            if (before + tied) % block:
                monitor.update_many(table, column="x", order="t")
                assert monitor.seen == before + len(order)
            else:
                with pytest.raises(InvalidData, match="both sides of a block's end"):
                    monitor.update_many(table, column="x", order="t")
                assert monitor.seen == before
