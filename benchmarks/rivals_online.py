r"""Other ways to watch a stream, for honest comparison: none of them ours, and none of them safe to use on real data.

- :func:`online_pcpd`: Cummings, Krehbiel, Mei, Tuo, Zhang 2018: a threshold with Lap(4A/epsilon) noise; at each step
  the largest suffix sum of log Q/P in the last ``window`` records with Lap(8A/epsilon) noise; once it crosses,
  OfflinePCPD at epsilon/2 on that window. A is the range of the ratio, or A_delta for a guarantee weaker than DP.
- :func:`several_pcpd`: Zhang, Krehbiel, Tuo, Mei, Cummings 2021 (JMLR 22:29), several changes. We have no copy of its
  settings, so this is an assumption, the one that their online method suggests: it runs again and again, each time from
  the record after the last window on and with P and Q exchanged. Every record lies in one run, so that all of them
  together cost epsilon.
- :func:`fixed_times`: the dummy, an alarm every so many records whatever the data.
"""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from benchmarks.rivals import offline_pcpd
from privatest.numbers import Floats, Integers

__all__ = ["fixed_times", "online_pcpd", "scan", "several_pcpd", "threshold_for"]


NEVER = -1
"""``seen`` of a stream without an alarm."""


def scan(ratios: Floats, window: int) -> Floats:
    """Column t: the largest sum of log Q/P from any record of the last ``window`` up to record window - 1 + t."""
    sums = np.concatenate([np.zeros((len(ratios), 1)), -np.cumsum(ratios, axis=1)], axis=1)
    lowest = ndimage.minimum_filter1d(sums[:, :-1], window, axis=1, origin=(window - 1) // 2, mode="nearest")
    found: Floats = sums[:, window:] - lowest[:, window - 1 :]
    return found


def online_pcpd(
    ratios: Floats, sensitivity: float, epsilon: float, threshold: float, window: int, rng: np.random.Generator
) -> tuple[Integers, Integers]:
    """For each stream (row of log P/Q): records seen at the alarm (-1: none), and the index."""
    runs = len(ratios)
    levels = threshold + rng.laplace(scale=4 * sensitivity / epsilon, size=(runs, 1))
    found = scan(ratios, window)
    crossed = found + rng.laplace(scale=8 * sensitivity / epsilon, size=found.shape) > levels
    fired = crossed.any(axis=1)
    seen = np.where(fired, np.argmax(crossed, axis=1) + window, NEVER)
    index = np.full(runs, NEVER, dtype=np.int64)
    for run in np.flatnonzero(fired):
        first = int(seen[run]) - window
        part = ratios[run : run + 1, first : int(seen[run])]
        index[run] = first + int(offline_pcpd(part, sensitivity, epsilon / 2, rng)[0])
    return seen.astype(np.int64), index


def several_pcpd(
    ratios: Floats, sensitivity: float, epsilon: float, threshold: float, window: int, rng: np.random.Generator
) -> tuple[int, ...]:
    """The changes of one series (its log P/Q): :func:`online_pcpd` again and again, P and Q in turn."""
    found: list[int] = []
    start, sign = 0, 1
    while start + window <= len(ratios):
        rest = sign * ratios[np.newaxis, start:]
        seen, index = online_pcpd(rest, sensitivity, epsilon, threshold, window, rng)
        if seen[0] == NEVER:
            break
        found.append(start + int(index[0]))
        start, sign = start + int(seen[0]), -sign
    return tuple(found)


def threshold_for(
    ratios: Floats, sensitivity: float, epsilon: float, between: float, window: int, rng: np.random.Generator
) -> float:
    """The threshold at which these streams, which do not change, raise an alarm every ``between`` records.

    By simulation: alarms come about like events of a Poisson process, so a share 1 - e^(-n/between) of streams has one.
    """
    found = scan(ratios, window)
    highest = np.max(found + rng.laplace(scale=8 * sensitivity / epsilon, size=found.shape), axis=1)
    highest -= rng.laplace(scale=4 * sensitivity / epsilon, size=len(highest))
    share = -np.expm1(-ratios.shape[1] / between)
    return float(np.quantile(highest, 1 - share))


def fixed_times(runs: int, n: int, between: float, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Alarms every ``between`` records from a random start: the first of each stream, named as its own index."""
    seen = np.ceil(rng.uniform(0, between, size=runs)).astype(np.int64)
    seen = np.where(seen <= n, seen, NEVER)
    return seen, np.maximum(seen - 1, NEVER)
