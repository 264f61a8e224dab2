"""How well monitors do on simulated streams: all of them on the same ones, with a dummy beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import rivals, rivals_online
from benchmarks.evaluate import simulate_series
from privatest import numbers
from privatest.errors import InvalidInput
from privatest.hypotheses import Pair, make_pair
from privatest.numbers import Integers, Number
from privatest.streams.monitor import METHODS, Monitor, MonitorTargets, pair_plan
from privatest.streams.monitor_plan import MonitorPlan

__all__ = ["ONLINE_RIVALS", "MonitorEvaluation", "evaluate_monitor"]


ONLINE_RIVALS = ("OnlinePCPD", "OnlinePCPD, delta=0.1", "fixed times")
_GUARANTEES = {"OnlinePCPD": "epsilon", "OnlinePCPD, delta=0.1": "not DP (delta 0.1)", "fixed times": "trivially"}


@dataclass(frozen=True)
class MonitorEvaluation:
    """What a monitor did over many simulated streams.

    Attributes:
        name: a method of ours, or a rival.
        private: what it guarantees.
        runs: number of streams.
        false_alarms: share of streams with an alarm before anything changed.
        missed: share of the other streams without any alarm.
        time_between_false_alarms: records of the old regime over false alarms; infinite when there were none.
        delay, delay_q90: records from the change to the alarm, mean and 90% quantile, over true alarms.
        error, error_q90: abs(index - k*), mean and 90% quantile, over true alarms.
        accuracy: as stated beforehand; None for rivals.
        outside: share of true alarms whose error exceeds it.
        stated_time_between_false_alarms, stated_delay: as computed beforehand; None for rivals.
    """

    name: str
    private: str
    runs: int
    false_alarms: float
    missed: float
    time_between_false_alarms: float
    delay: float
    delay_q90: float
    error: float
    error_q90: float
    accuracy: int | None = None
    outside: float | None = None
    stated_time_between_false_alarms: float | None = None
    stated_delay: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; what is not a number or infinite is None."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }

    def __str__(self) -> str:
        stated = ""
        if self.accuracy is not None:
            stated = (
                f"  stated: {self.stated_time_between_false_alarms:.4g} between, delay {self.stated_delay:.1f}, "
                f"accuracy {self.accuracy} exceeded {self.outside:.4f}"
            )
        return (
            f"{self.name:24s} {self.private:18s} false alarms {self.false_alarms:.4f} "
            f"({self.time_between_false_alarms:8.0f} between)  missed {self.missed:.4f}  delay {self.delay:7.1f} "
            f"q90 {self.delay_q90:6.0f}  error {self.error:6.1f} q90 {self.error_q90:6.1f}{stated}"
        )


def evaluate_monitor(
    null: Any,
    alternative: Any,
    *,
    epsilon: Number,
    n: int,
    runs: int,
    rng: np.random.Generator,
    change: int,
    mean_time_between_false_alarms: float,
    methods: Iterable[str] = (*METHODS, *ONLINE_RIVALS),
    beta: float = 0.1,
    window: int | None = None,
) -> list[MonitorEvaluation]:
    """Run monitors on the same ``runs`` streams of n simulated records and tell how late and how far off they were.

    Args:
        null, alternative, epsilon, beta, mean_time_between_false_alarms: as for :class:`Monitor`. The threshold of
            OnlinePCPD is set by simulation to the same time between false alarms.
        change: k*, the index of the first new record (n: nothing changes).
        methods: methods of ours, and names among ``ONLINE_RIVALS``. A rival that does not apply is left out.
        window: records that OnlinePCPD looks at; None: n // 4, at most 200.
        rng: all randomness of the simulation.
    """
    n, runs = numbers.positive_integer(n=n), numbers.positive_integer(runs=runs)
    budget = numbers.positive(epsilon=epsilon)
    beta = numbers.probability(beta=beta)
    between = float(numbers.positive(mean_time_between_false_alarms=mean_time_between_false_alarms))
    if not 0 <= change <= n:
        raise InvalidInput(f"change={change} must lie between 0 and n={n}.")
    window = min(max(n // 4, 1), 200) if window is None else numbers.positive_integer(window=window)
    if window > n:
        raise InvalidInput(f"window={window} must be at most n={n}.")
    pair = make_pair(null, alternative)
    streams = simulate_series(pair, n, np.full(runs, change), rng)
    found = []
    for name in methods:
        if name in METHODS:
            watch = pair_plan(pair, budget, name, MonitorTargets(beta, between, None))
            found.append(_summary(name, "epsilon", *_ours(watch, streams, rng), n, change, watch))
            continue
        numbers.choice((*METHODS, *ONLINE_RIVALS), methods=name)
        answers = _rival(name, pair, streams, float(budget), between, window, rng)
        if answers is not None:
            found.append(_summary(name, _GUARANTEES[name], *answers, n, change))
    return found


def _ours(watch: MonitorPlan, streams: npt.NDArray[Any], rng: np.random.Generator) -> tuple[Integers, Integers]:
    seen, index = np.full(len(streams), rivals_online.NEVER), np.full(len(streams), rivals_online.NEVER)
    for run, stream in enumerate(streams):
        alarm = Monitor.of(watch, rng=rng).update_many(stream)
        if alarm is not None:
            seen[run], index[run] = alarm.seen, alarm.index
    return seen, index


def _rival(
    name: str,
    pair: Pair,
    streams: npt.NDArray[Any],
    epsilon: float,
    between: float,
    window: int,
    rng: np.random.Generator,
) -> tuple[Integers, Integers] | None:
    """Records seen at the alarm and index of each stream; None where the rival does not apply."""
    runs, n = streams.shape
    if name == "fixed times":
        return rivals_online.fixed_times(runs, n, between, rng)
    scale = rivals.range_of_ratio(pair) if name == "OnlinePCPD" else rivals.truncated_range(pair, 0.1)
    quiet = simulate_series(pair, n, np.full(runs, n), rng)
    ratios, quiet_ratios = (
        np.asarray(pair.ratio(part.ravel()), dtype=np.float64).reshape(runs, n) for part in (streams, quiet)
    )
    if not math.isfinite(scale) or not np.all(np.isfinite(ratios)):
        return None
    threshold = rivals_online.threshold_for(quiet_ratios, scale, epsilon, between, window, rng)
    return rivals_online.online_pcpd(ratios, scale, epsilon, threshold, window, rng)


def _summary(
    name: str, private: str, seen: Integers, index: Integers, n: int, change: int, watch: MonitorPlan | None = None
) -> MonitorEvaluation:
    early = (seen != rivals_online.NEVER) & (seen <= change)
    true = seen > change
    quiet = np.where(early, seen, change)
    delays, errors = (seen - change)[true].astype(np.float64), np.abs(index - change)[true].astype(np.float64)
    delay = error = delay_q90 = error_q90 = math.nan
    if len(delays):
        delay, error = float(delays.mean()), float(errors.mean())
        delay_q90, error_q90 = float(np.quantile(delays, 0.9)), float(np.quantile(errors, 0.9))
    others = max(int((~early).sum()), 1)
    missed = 0.0 if change == n else float((seen == rivals_online.NEVER).sum()) / others
    outside = None if watch is None or not len(errors) else float(np.mean(errors > watch.accuracy))
    return MonitorEvaluation(
        name=name,
        private=private,
        runs=len(seen),
        false_alarms=float(early.mean()),
        missed=missed,
        time_between_false_alarms=float(quiet.sum() / early.sum()) if early.any() else math.inf,
        delay=delay,
        delay_q90=delay_q90,
        error=error,
        error_q90=error_q90,
        accuracy=None if watch is None else watch.accuracy,
        outside=outside if outside is not None or watch is None else 0.0,
        stated_time_between_false_alarms=None if watch is None else watch.mean_time_between_false_alarms,
        stated_delay=None if watch is None else watch.expected_delay,
    )
