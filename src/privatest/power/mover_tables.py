"""The two-point problems of many counts of movers at once, as tables: the lower bound asks for dozens of them.

What :class:`privatest.power.two_point.TwoPoint` says of one count, for all counts together: the same formulas, with
one row of an array for each count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privatest.power.two_point import TwoPoint, discounted, window_of

__all__ = ["Table", "balanced", "make_tables", "single_table"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_LARGEST_BATCH = 1 << 16
# Rows on which discounts by e^-eps a step stay clear of underflow.
_DEEPEST = 500.0
_NEAR = np.array([[-1], [0], [1]])
_PEAK_GRID = np.linspace(-4.0, 4.0, 81)


@dataclass(frozen=True, eq=False)
class Table:
    """Both error rates at every threshold that matters, and at which ratio each threshold takes over.

    Attributes:
        alphas, betas: type I and type II errors, threshold by threshold.
        turns: log ratios at which it begins to pay to go to the next threshold; they never decrease.
        gap: what the rates between the thresholds listed cannot fall below, for u = v = 1; infinite where all are.
        target, peak: where Phi(e^(l/2), e^(-l/2)) is largest as a function of l, and how large.
    """

    alphas: Floats
    betas: Floats
    turns: Floats
    gap: float
    target: float = 0.0
    peak: float = 1.0


def make_tables(counts: Sequence[int], x: float, y: float, epsilon: float, reach: float) -> list[Table]:
    """The table of each number of movers, which are "+" at rates x under P and y <= x under Q.

    Counts more than ``reach`` deviations off are left out.
    """
    plain: dict[int, Table] = {}
    for batch, starts, width in _batches(sorted(set(counts)), x, y, reach):
        if (width - 1) * epsilon > _DEEPEST:
            plain |= {count: single_table(TwoPoint(count, x, y, epsilon, reach)) for count in batch}
        else:
            plain |= zip(batch, _together(batch, starts, width, (x, y), epsilon, reach), strict=True)
    rough = [plain[count] for count in counts]
    values = balanced(rough, [len(_PEAK_GRID)] * len(rough), np.tile(_PEAK_GRID, len(rough)))
    found = []
    for table, row in zip(rough, values.reshape(len(rough), -1), strict=True):
        top = int(np.argmax(row))
        target, peak = float(_PEAK_GRID[top]), float(row[top])
        found.append(Table(table.alphas, table.betas, table.turns, table.gap, target, peak))
    return found


def balanced(tables: Sequence[Table], lengths: Sequence[int], ratio: Floats) -> Floats:
    r"""Phi(e^(l/2), e^(-l/2)) at each l = log u/v, the first ``lengths[0]`` of them for the first table, and so on.

    Guarantees: at most the true value, up to rounding; at most e^(-|l|/2).
    """
    tables, lengths = _merged(tables, lengths)
    sizes = np.array([len(table.alphas) for table in tables])
    starts = np.cumsum(sizes) - sizes
    ends = np.cumsum(lengths)
    place = np.concatenate(
        [
            np.searchsorted(table.turns, -ratio[end - length : end])
            for table, length, end in zip(tables, lengths, ends.tolist(), strict=True)
        ]
    )
    # The neighbours of the place too: rounding may have blurred the turns.
    at = np.minimum(np.maximum(place + _NEAR, 0), np.repeat(sizes - 1, lengths)) + np.repeat(starts, lengths)
    alphas, betas = (np.concatenate([getattr(table, name) for table in tables]) for name in ("alphas", "betas"))
    up = np.exp(np.minimum(np.maximum(ratio, -600.0), 600.0) / 2)  # beyond, the smaller weight is nothing anyway
    down = 1 / up
    reached = (up * alphas[at] + betas[at] * down).min(axis=0)
    most = np.minimum(up, down)
    gaps = np.array([table.gap for table in tables])
    if np.isfinite(gaps).any():
        most = np.minimum(most, np.repeat(gaps, lengths))
    return np.asarray(np.minimum(most, reached))


def _merged(tables: Sequence[Table], lengths: Sequence[int]) -> tuple[list[Table], list[int]]:
    """Neighbours of the same table as one."""
    kept: list[Table] = []
    sizes: list[int] = []
    for table, length in zip(tables, lengths, strict=True):
        if kept and kept[-1] is table:
            sizes[-1] += length
        else:
            kept.append(table)
            sizes.append(length)
    return kept, sizes


def _batches(counts: list[int], x: float, y: float, reach: float) -> Iterator[tuple[list[int], Integers, int]]:
    """Counts whose rows make an array of moderate size, where each row starts, and how long the rows are."""
    batch: list[int] = []
    starts: list[int] = []
    width = 0
    for count in counts:
        windows = [window_of(count, rate, reach) for rate in (x, y)]
        start, end = min(first for first, _ in windows) - 1, max(last for _, last in windows) + 1
        size = end - start + 1
        if batch and max(width, size) * (len(batch) + 1) > _LARGEST_BATCH:
            yield batch, np.array(starts), width
            batch, starts, width = [], [], 0
        batch.append(count)
        starts.append(start)
        width = max(width, size)
    if batch:
        yield batch, np.array(starts), width


def single_table(problem: TwoPoint) -> Table:
    """The table of one problem; its peak is not looked for."""
    alphas, betas = problem.rates
    return Table(alphas, betas, problem.turns, problem.gap)


def _together(
    counts: list[int], starts: Integers, width: int, rates: tuple[float, float], epsilon: float, reach: float
) -> list[Table]:
    """Every whole threshold from ``starts`` on, all counts at once: there is no gap between the two windows."""
    b = math.exp(-epsilon)
    under_p, under_q = (_laws(counts, starts, width, rate, reach) for rate in rates)
    sums = [(discounted(law, b), discounted(law[:, ::-1], b)[:, ::-1]) for law in (under_p, under_q)]
    (below_p, above_p), (below_q, above_q) = sums
    nothing = np.zeros((len(counts), 1))
    # One step further up: counts of at least j + 1.
    next_p, next_q = (np.hstack([above[:, 1:], nothing]) for above in (above_p, above_q))
    rest = np.hstack([np.cumsum(under_q[:, ::-1], axis=1)[:, ::-1][:, 1:], nothing])
    alphas = np.cumsum(under_p, axis=1) - below_p * (b / (1 + b)) + next_p * (b / (1 + b))
    betas = rest - next_q * (b / (1 + b)) + below_q * (b / (1 + b))
    masses = [
        np.maximum(below + above - law, 1e-300) for (below, above), law in zip(sums, (under_p, under_q), strict=True)
    ]
    turns = np.maximum.accumulate(np.log(masses[0][:, 1:]) - np.log(masses[1][:, 1:]), axis=1)
    return [Table(*rows, gap=math.inf) for rows in zip(alphas, betas, turns, strict=True)]


def _laws(counts: list[int], starts: Integers, width: int, rate: float, reach: float) -> Floats:
    """Binomials, one a row, from ``starts`` on: as :func:`privatest.power.two_point.binomial`."""
    k = starts[:, None] + np.arange(width)
    windows = np.array([window_of(count, rate, reach) for count in counts])
    first, last = windows[:, :1], windows[:, 1:]
    if not 0.0 < rate < 1.0:
        return np.asarray(k == first, dtype=np.float64)
    n = np.array(counts)[:, None]
    inside = (k >= first) & (k < last)
    step = np.log(np.where(inside, n - k, 1) / np.where(inside, k + 1, 1)) + (math.log(rate) - math.log1p(-rate))
    logs = np.cumsum(np.where(inside, step, 0.0), axis=1)
    logs = np.hstack([np.zeros((len(counts), 1)), logs[:, :-1]])
    there = (k >= first) & (k <= last)
    logs = np.where(there, logs, -np.inf)
    with np.errstate(under="ignore"):
        law = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(law / law.sum(axis=1, keepdims=True))
