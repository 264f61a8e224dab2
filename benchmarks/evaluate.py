"""How well detectors do on simulated series: all of them on the same ones, with a dummy beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import rivals
from privatest import numbers
from privatest.changepoint.change_plan import METHODS, ChangePlan, design_change
from privatest.errors import InvalidInput
from privatest.hypotheses import Pair, make_pair
from privatest.numbers import Floats, Integers, Number

__all__ = ["RIVALS", "Evaluation", "evaluate_change", "simulate_series"]


RIVALS = ("OfflinePCPD", "OfflinePCPD, delta=0.1", "maximum likelihood", "PNCPD", "middle")


@dataclass(frozen=True)
class Evaluation:
    """What a detector did over many simulated series.

    Attributes:
        name: a method of ours, or a rival.
        private: what the detector guarantees.
        runs: number of series.
        mean, median, q90, q99: of abs(index - k*), over the series in which an index was named.
        accuracy: as stated beforehand; None for rivals.
        outside: share of all series in which abs(index - k*) exceeded it or no index was named.
        alarms: share of series in which an index was named: false alarms where nothing changed, else the power.
    """

    name: str
    private: str
    runs: int
    mean: float
    median: float
    q90: float
    q99: float
    accuracy: int | None = None
    outside: float | None = None
    alarms: float = 1.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        stated = "" if self.accuracy is None else f"  accuracy {self.accuracy} exceeded {self.outside:.4f}"
        alarms = "" if self.alarms == 1 else f"  named {self.alarms:.4f}"
        errors = f"mean {self.mean:7.2f}  median {self.median:5.0f}  q90 {self.q90:6.1f}  q99 {self.q99:6.1f}"
        return f"{self.name:24s} {self.private:18s} {errors}{stated}{alarms}"


def evaluate_change(
    null: Any,
    alternative: Any,
    *,
    epsilon: Number,
    n: int,
    runs: int,
    rng: np.random.Generator,
    change: int | None = None,
    methods: Iterable[str] = ("auto", *RIVALS),
    beta: float = 0.1,
    false_alarm: float | None = None,
) -> list[Evaluation]:
    """Run detectors on the same ``runs`` series of n simulated records and tell how far off they were.

    Args:
        null, alternative, epsilon, beta: as for :func:`design_change`.
        false_alarm: likewise; None: a change is taken for granted (``assume_change=True``), as the rivals do.
        change: k*, the index of the first new record (n: nothing changes). None: uniform on the middle three fifths.
        methods: methods of ours, and names among ``RIVALS``. A rival that does not apply to the pair is left out.
        rng: all randomness of the simulation.
    """
    n, runs = numbers.positive_integer(n=n), numbers.positive_integer(runs=runs)
    if change is not None and not 0 <= change <= n:
        raise InvalidInput(f"change={change} must lie between 0 and n={n}.")
    pair = make_pair(null, alternative)
    truth = rng.integers(n // 5, n - n // 5, size=runs) if change is None else np.full(runs, change)
    series = simulate_series(pair, n, truth, rng)
    found = []
    for name in methods:
        if name in METHODS:
            asked: dict[str, Any] = {"false_alarm": false_alarm, "assume_change": false_alarm is None}
            plan = design_change(null, alternative, epsilon=epsilon, n=n, beta=beta, method=name, **asked)
            found.append(_ours(plan, name, series, truth, rng))
            continue
        numbers.choice((*METHODS, *RIVALS), methods=name)
        index = _rival(name, pair, series, float(epsilon), rng)
        if index is not None:
            found.append(_summary(name, _GUARANTEES[name], np.abs(index - truth).astype(np.float64)))
    return found


def simulate_series(pair: Pair, n: int, truth: Integers, rng: np.random.Generator) -> npt.NDArray[Any]:
    """One row for each entry of ``truth``: that many records from P, then records from Q."""
    runs = len(truth)
    old = np.asarray(pair.null.sample(rng, runs * n)).reshape(runs, n)
    new = np.asarray(pair.alternative.sample(rng, runs * n)).reshape(runs, n)
    return np.where(np.arange(n) < truth[:, None], old, new)


_GUARANTEES = {
    "OfflinePCPD": "epsilon",
    "OfflinePCPD, delta=0.1": "not DP (delta 0.1)",
    "maximum likelihood": "no",
    "PNCPD": "epsilon",
    "middle": "trivially",
}


def _ours(
    plan: ChangePlan, name: str, series: npt.NDArray[Any], truth: Integers, rng: np.random.Generator
) -> Evaluation:
    errors, outside = [], 0
    for row, k in zip(series, truth, strict=True):
        point = plan.run(row, rng=rng)
        if point.index is not None:
            errors.append(abs(point.index - int(k)))
        outside += point.index is None or abs(point.index - int(k)) > plan.accuracy
    title = f"{name} ({plan.method})" if name != plan.method else name
    return _summary(title, "epsilon", np.array(errors, dtype=np.float64), len(truth), plan.accuracy, outside)


def _summary(
    name: str, private: str, errors: Floats, runs: int | None = None, accuracy: int | None = None, outside: int = 0
) -> Evaluation:
    runs = len(errors) if runs is None else runs
    mean = median = q90 = q99 = math.nan
    if len(errors):
        mean = float(np.mean(errors))
        median, q90, q99 = (float(np.quantile(errors, p)) for p in (0.5, 0.9, 0.99))
    share = None if accuracy is None else outside / runs
    return Evaluation(name, private, runs, mean, median, q90, q99, accuracy, share, len(errors) / runs)


def _rival(
    name: str, pair: Pair, series: npt.NDArray[Any], epsilon: float, rng: np.random.Generator
) -> Integers | None:
    """The rival's indices; None where it does not apply."""
    runs, n = series.shape
    if name == "middle":
        return rivals.middle(n, runs)
    if name == "PNCPD":
        if series.dtype.kind not in "biuf":
            return None
        rising = float(np.mean(pair.alternative.sample(rng, 4000) - pair.null.sample(rng, 4000))) > 0
        return rivals.pncpd(series.astype(np.float64), epsilon, rng, rising=rising)
    ratios = np.asarray(pair.ratio(series.ravel()), dtype=np.float64).reshape(runs, n)
    if not np.all(np.isfinite(ratios)):
        return None
    if name == "maximum likelihood":
        return rivals.maximum_likelihood(ratios)
    scale = rivals.range_of_ratio(pair) if name == "OfflinePCPD" else rivals.truncated_range(pair, 0.1)
    return rivals.offline_pcpd(ratios, scale, epsilon, rng) if math.isfinite(scale) else None
