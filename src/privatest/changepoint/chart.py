r"""A CUSUM chart on blocks' votes: false alarms, delay and error of its index, computed from a Markov chain.

Each block votes with an integer g, positive where it speaks for the new regime. The chart

.. math:: W_j = \max(W_{j-1} + g_j, 0), \qquad \text{alarm when } W_j > h

is a Markov chain on 0, ..., h until the alarm, so that times to it solve linear equations: nothing is simulated. The
index is the start of the excursion that raised the alarm: the block after the last j with W_j = 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import linalg

from privatest.changepoint.suffix_alarm import decay_rate

__all__ = ["MOST_BLOCKS", "Chart", "Mixed"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# A block's law is known up to this much of its mass: in each block, so much is counted as a false alarm.
LAW_ERROR = 1e-10
# The equations have positive solutions without cancellation; a dense solver agrees to 1e-9 and better.
_SOLVER = 1e-6
MOST_BLOCKS = 10**9
"""False alarms rarer than one in this many blocks cannot be told from the laws' rounding."""
_LARGEST_THRESHOLD = 3_000
# Ages of excursions and numbers of old blocks are followed until what is left is less than this.
_NEGLIGIBLE = 1e-9
_MOST_STEPS = 4_000


@dataclass(frozen=True, eq=False)
class Mixed:
    """A law of the block in which the stream changes, whose first ``old`` records are old."""

    old: int
    law: Floats


@dataclass(frozen=True, eq=False)
class Chart:
    """A CUSUM chart with its threshold.

    Attributes:
        votes: the integer vote of each outcome of a block.
        old, new: probabilities of the outcomes when all records of a block are old, or all are new.
        threshold: h; the alarm is raised when W exceeds it.
    """

    votes: Integers
    old: Floats
    new: Floats
    threshold: int

    @classmethod
    def calibrated(cls, votes: Integers, old: Floats, new: Floats, blocks: float) -> Chart | None:
        """The smallest threshold with false alarms at least ``blocks`` blocks apart on average; None: none has."""
        if blocks > MOST_BLOCKS:
            return None
        high = min(max(int(math.log(max(blocks, 2)) / decay_rate(votes, old)), 1), _LARGEST_THRESHOLD)
        low = -1
        # Invariant: the threshold low is too small (or none), and high suffices once the loop ends.
        while cls(votes, old, new, high).blocks_between_false_alarms < blocks:
            if high >= _LARGEST_THRESHOLD:
                return None
            low, high = high, min(2 * high, _LARGEST_THRESHOLD)
        while high - low > 1:
            middle = (low + high) // 2
            enough = cls(votes, old, new, middle).blocks_between_false_alarms >= blocks
            low, high = (low, middle) if enough else (middle, high)
        return cls(votes, old, new, high)

    @cached_property
    def blocks_between_false_alarms(self) -> float:
        """Mean number of blocks until a false alarm, from W = 0; a bound from below."""
        return self._mean_blocks(self.old, LAW_ERROR) * (1 - _SOLVER)

    @cached_property
    def blocks_to_alarm(self) -> float:
        """Mean number of blocks of the new regime until the alarm, from W = 0; a bound from above for any W."""
        return self._mean_blocks(self.new, 0.0) * (1 + _SOLVER)

    def blocks_within(self, beta: float) -> int:
        """Blocks of the new regime after which the alarm has been raised with probability at least 1 - beta."""
        chain, state = self._chain(self.new), self._from_zero()
        for count in range(1, _MOST_STEPS):
            state = state @ chain
            if float(state.sum()) + LAW_ERROR * count <= beta:
                return count
        return math.ceil(self.blocks_to_alarm / beta)  # Markov's inequality

    def accuracy(self, beta: float, block: int, mixed: Sequence[Mixed]) -> int | None:
        """The smallest a with Pr[abs(index - k*) > a] <= beta, worst over ``mixed`` and over all k*.

        Guarantees: given no alarm before k*, and the laws as given. None where no a of the grid will do.
        """
        lefts, rights = zip(*(self._errors(one.law) for one in mixed), strict=True)
        reach = (max(len(lefts[0]), len(rights[0])) + 1) * block
        distances = np.arange(0, reach, max(block // 8, 1), dtype=np.int64)
        worst = np.zeros(len(distances))
        for one, left, right in zip(mixed, lefts, rights, strict=True):
            early = np.clip((distances - one.old) // block + 1, 0, len(left) - 1)
            late = np.clip((distances + one.old) // block + 1, 0, len(right) - 1)
            worst = np.maximum(worst, left[early] + right[late])
        enough = np.flatnonzero(worst <= beta)
        return int(distances[enough[0]]) if len(enough) else None

    def _errors(self, mixed: Floats) -> tuple[Floats, Floats]:
        """left[l] bounds Pr[the index lies l or more blocks before the mixed one], right[l] l or more after its start.

        Left: the excursion was l blocks old and never came back to 0. Right: W was 0 again l blocks later; most
        likely so from W = 0, from which all paths lie lower.
        """
        escape = self._escape
        table = _moves(self.votes, mixed, self.threshold)
        past = np.maximum(1.0 - table.sum(axis=1), 0.0)
        first = table[:, 1:] @ escape[1:] + past
        left = np.max(np.cumsum((self._ages * (self._excursions @ first))[:, ::-1], axis=1)[:, ::-1], axis=0)
        state, chain, right = table[0], self._chain(self.new), [1.0]
        stays = 1.0 - escape
        stays[0] = 1.0
        while len(right) < _MOST_STEPS:
            right.append(float(state @ stays))
            if right[-1] < _NEGLIGIBLE:
                break
            state = state @ chain
        return np.append(left, 0.0) + _NEGLIGIBLE, np.array(right) + _NEGLIGIBLE

    @cached_property
    def _escape(self) -> Floats:
        """Pr[the alarm comes before W is 0] from each W >= 1, new blocks only."""
        h = self.threshold
        escape = np.zeros(h + 1)
        if h >= 1:
            steps = _steps(self.votes, self.new, h)
            past = np.cumsum(steps[::-1])[1 : h + 1]  # Pr[w + g > h], for w = 1, ..., h
            escape[1:] = np.clip(_excursion_sums(steps, h - 1, past[:, None])[:, 0], 0, 1)
        return escape

    @cached_property
    def _excursions(self) -> Floats:
        """Row l: the law of W after l old blocks of an excursion that started at 0 and did not come back to it."""
        chain, state = self._chain(self.old), self._from_zero()
        rows = [state]
        while len(rows) < _MOST_STEPS:
            state = state @ chain
            state[0] = 0.0
            rows.append(state)
            if float(state.sum()) < _NEGLIGIBLE / 100:
                break
        return np.array(rows)

    @cached_property
    def _ages(self) -> Floats:
        """Row m, column l: Pr[W_{m-l} = 0, no alarm till then] / Pr[no alarm till m], until that no longer moves."""
        chain, state, zeros, survived = self._chain(self.old), self._from_zero(), [1.0], [0.0]
        while len(zeros) < _MOST_STEPS:
            after = state @ chain
            share = float(after.sum())
            after /= share
            moved = float(np.abs(after - state).max())
            state = after
            zeros.append(float(state[0]))
            survived.append(survived[-1] + math.log(share))
            if moved < 1e-13:
                break
        steady, ages = len(zeros), len(self._excursions)
        rate = survived[-1] - survived[-2]
        zeros += [zeros[-1]] * ages
        survived += [survived[-1] + rate * (i + 1) for i in range(ages)]
        logs = np.array(survived)
        m = np.unique(np.linspace(0, steady + ages - 1, min(steady + ages, 1_000)).astype(np.int64))[:, None]
        start = m - np.arange(ages)[None, :]
        known = np.maximum(start, 0)
        found: Floats = np.where(start >= 0, np.array(zeros)[known] * np.exp(logs[known] - logs[m]), 0.0)
        return found

    def _mean_blocks(self, law: Floats, lost: float) -> float:
        """Mean time from 0 until W would fall below 0 or passes h, over the probability of the latter."""
        h = self.threshold
        steps = _steps(self.votes, law, h) * (1 - lost)
        past = np.cumsum(steps[::-1])[: h + 1] + lost  # Pr[w + g > h], for w = 0, ..., h
        lengths, ends = _excursion_sums(steps, h, np.stack([np.ones(h + 1), past], axis=1))[0]
        return float(lengths / ends)

    def _chain(self, law: Floats) -> Floats:
        return _moves(self.votes, law, self.threshold)

    def _from_zero(self) -> Floats:
        state = np.zeros(self.threshold + 1)
        state[0] = 1.0
        return state


def _steps(votes: Integers, law: Floats, h: int) -> Floats:
    """Pr[vote g] at place h + 1 + g, those beyond +-(h + 1) gathered at the ends."""
    most = h + 1
    return np.bincount(np.clip(votes, -most, most) + most, weights=law, minlength=2 * most + 1).astype(np.float64)


def _excursion_sums(steps: Floats, top: int, values: Floats) -> Floats:
    """Mean sum of values along a walk on 0, ..., top until it leaves them, from each place: a Toeplitz system."""
    middle = len(steps) // 2
    up, down = -steps[middle : middle + top + 1], -steps[middle - top : middle + 1][::-1]
    up[0] = down[0] = 1.0 + up[0]
    sums: Floats = linalg.solve_toeplitz((down, up), values)
    return sums


def _moves(votes: Integers, law: Floats, h: int) -> Floats:
    """Row w, column v: Pr[max(w + g, 0) = v] for v <= h."""
    steps, w = _steps(votes, law, h), np.arange(h + 1)
    found: Floats = steps[h + 1 + w[None, :] - w[:, None]]
    found[:, 0] = np.cumsum(steps)[h + 1 - w]
    return found
