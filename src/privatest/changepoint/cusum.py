r"""Whether there was a change, from the votes of blocks: suffix sums offline, a CUSUM chart online.

Each block votes with an integer g, positive where it speaks for the new regime. Both statistics are walks with a floor,

.. math:: W_j = \max(W_{j-1} + g_j, 0)

(Lindley's recursion), which are post-processing of what the blocks released. Offline, the largest suffix sum is W after
the last block, and "changed" is said where it exceeds a threshold. Online, the alarm is raised when W > h for the first
time: a Markov chain on 0, ..., h, so that times to the alarm solve linear equations. The index of an alarm is the start
of the excursion that raised it: the block after the last j with W_j = 0. All laws are computed, none is simulated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privatest.errors import InvalidInput
from privatest.laws.fourier import convolution
from privatest.numbers import Floats, Integers, first_true, root

# W exceeds the level at which its law is cut off with probability e^-36 = 2e-16.
_NEGLIGIBLE_EXPONENT = 36.0
# Room above the threshold, in multiples of the largest step, when W drifts upwards. Less room only adds to the bound.
_ROOM = 8
_CONVERGED = 1e-15
# Below this probability of missing a change no further blocks are followed.
_SETTLED = 1e-9
_MOST_CHART_BLOCKS = 20_000
# Rounding of the transforms, allowed for in every probability.
_ROUNDING = 1e-13


def largest_suffix_sum(steps: Integers) -> int:
    """Return the largest sum of the steps from any place on, at least 0."""
    sums = np.cumsum(steps[::-1])
    return max(int(sums.max()), 0) if len(sums) else 0


@dataclass(frozen=True, eq=False)
class SuffixAlarm:
    """A decision that says "changed" if the largest suffix sum of the blocks' steps exceeds a threshold.

    Attributes:
        steps: the integer step of each outcome of a block.
        old, new: probabilities of the outcomes when all records of a block are old, or all are new.
        threshold: the level that the sum must exceed.
        false_alarm: a bound on Pr["changed"] if there is no change.
    """

    steps: Integers
    old: Floats
    new: Floats
    threshold: int
    false_alarm: float

    @classmethod
    def calibrated(cls, steps: Integers, old: Floats, new: Floats, target: float, blocks: int | None) -> SuffixAlarm:
        """Return the alarm with the smallest threshold whose false-alarm probability is at most ``target``.

        Args:
            steps, old, new: as for the class.
            target: the largest false-alarm probability.
            blocks: the number of blocks; None if it may be any number. (W grows with it and converges in law.)
        """
        law = _step_law(steps, old)
        low = int(steps.min())
        top = math.ceil((math.log(1 / target) + _NEGLIGIBLE_EXPONENT) / decay_rate(steps, old)) + int(steps.max())
        state = np.zeros(top + 1)
        state[0] = 1.0
        for _ in range(min(blocks or _MOST_CHART_BLOCKS, _MOST_CHART_BLOCKS)):
            after = _advance(state, law, low)
            moved = float(np.max(np.abs(after - state)))
            state = after
            if moved < _CONVERGED:
                break
        above = np.cumsum(state[::-1])[::-1] + _ROUNDING  # Pr[W >= w]
        enough = np.flatnonzero(above <= target)
        threshold = int(enough[0]) - 1 if len(enough) else top
        return cls(steps, old, new, threshold, float(above[min(threshold + 1, top)]))

    def fires(self, outcomes: Integers) -> bool:
        """Return whether the outcomes of these blocks say "changed"."""
        return largest_suffix_sum(self.steps[outcomes]) > self.threshold

    def missed(self, blocks: Integers) -> Floats:
        """Return upper bounds on Pr["no change"] after these numbers of whole blocks of the new regime.

        Guarantees: the bounds hold whatever came before, since W is at least 0 and a larger W is more likely to pass.
        """
        most = int(np.max(blocks))
        law, low = _step_law(self.steps, self.new), int(self.steps.min())
        while len(self._missed) <= most and self._missed[-1] > _SETTLED:
            self._states[0] = _advance(self._states[0], law, low)
            missed = float(self._states[0][: self.threshold + 1].sum()) + _ROUNDING
            self._missed.append(min(missed, self._missed[-1]))
        probabilities = np.array(self._missed)
        bounds: Floats = probabilities[np.minimum(blocks, len(probabilities) - 1)]
        return bounds

    @cached_property
    def _states(self) -> list[Floats]:
        """The law of W at the largest number of blocks for which :meth:`missed` was computed."""
        room = max(_ROOM * int(self.steps.max()), 50)
        state = np.zeros(self.threshold + room + 1)
        state[0] = 1.0
        return [state]

    @cached_property
    def _missed(self) -> list[float]:
        return [1.0]


def decay_rate(steps: Integers, law: Floats) -> float:
    r"""Return the theta > 0 with E e^(theta g) = 1. Then Pr[W >= w] <= e^(-theta w) for any number of blocks.

    For log-likelihood ratios it is 1 over the size of a step in nats, by Ville's inequality.
    """
    seen = law > 0
    g, p = steps[seen].astype(np.float64), law[seen] / law[seen].sum()
    if float(p @ g) >= 0:
        raise InvalidInput("The blocks of the old regime vote for a change: their test's error must be below 1/2.")
    if g.max() <= 0:
        return math.inf

    def excess(theta: float) -> float:
        return float(np.log(p @ np.exp(theta * (g - g.max()))) + theta * g.max())

    high = 1.0 / float(g.max())
    while excess(high) < 0 and high < 1e3:
        high *= 2
    low, high = root(lambda theta: excess(theta) >= 0, 0.0, high, relative=1e-15)
    return low or high


def _step_law(steps: Integers, law: Floats) -> Floats:
    """Return the probabilities of all integers from the smallest step to the largest."""
    return np.bincount(steps - int(steps.min()), weights=law).astype(np.float64)


def _advance(state: Floats, law: Floats, low: int) -> Floats:
    """Return the law of min(max(W + g, 0), top), where the law of W is ``state``. Mass seldom reaches the top."""
    spread = np.maximum(convolution(state, law), 0.0)
    after = np.zeros_like(state)
    # spread[i] is Pr[W + g = i + low]
    floor = min(max(-low, 0), len(spread) - 1)
    after[0] = spread[: floor + 1].sum() if low <= 0 else 0.0
    start = floor + 1 if low <= 0 else 0
    room = len(state) - 1 - (start + low)
    body = spread[start : start + room + 1]
    after[start + low : start + low + len(body)] += body
    after[-1] += spread[start + room + 1 :].sum()
    law_after: Floats = after / after.sum()
    return law_after


# The law of a block is known up to this share of its mass, which is counted as a false alarm in each block.
LAW_ERROR = 1e-10
# The relative error that is allowed for the solver. Solutions are positive, without cancellation; a dense solver agrees
# to 1e-9.
_SOLVER = 1e-6
MOST_BLOCKS = 10**9
"""False alarms rarer than one in this many blocks cannot be distinguished from the laws' rounding."""
_LARGEST_THRESHOLD = 3_000
# Ages of excursions and numbers of old blocks are followed until less than this probability is left.
_NEGLIGIBLE = 1e-9
_MOST_STEPS = 4_000


@dataclass(frozen=True, eq=False)
class Mixed:
    """The law of the block in which the stream changes, if its first ``old`` records are old."""

    old: int
    law: Floats


@dataclass(frozen=True, eq=False)
class Chart:
    """A CUSUM chart: blocks vote, and the alarm is raised when W exceeds the threshold.

    Attributes:
        votes: the integer vote of each outcome of a block.
        old, new: probabilities of the outcomes when all records of a block are old, or all are new.
        threshold: h, the level that W must exceed.
    """

    votes: Integers
    old: Floats
    new: Floats
    threshold: int

    @classmethod
    def calibrated(cls, votes: Integers, old: Floats, new: Floats, blocks: float) -> Chart | None:
        """Return the chart with the smallest threshold at which false alarms are ``blocks`` blocks apart on average.

        The result is None if no threshold is large enough.
        """
        if blocks > MOST_BLOCKS:
            return None
        threshold = first_true(
            lambda h: cls(votes, old, new, h).blocks_between_false_alarms >= blocks, 0, most=_LARGEST_THRESHOLD
        )
        return None if threshold > _LARGEST_THRESHOLD else cls(votes, old, new, threshold)

    @cached_property
    def blocks_between_false_alarms(self) -> float:
        """A lower bound on the mean number of blocks until a false alarm, from W = 0."""
        return self._mean_blocks(self.old, LAW_ERROR) * (1 - _SOLVER)

    @cached_property
    def blocks_to_alarm(self) -> float:
        """An upper bound on the mean number of blocks of the new regime until the alarm, for any W at the change."""
        return self._mean_blocks(self.new, 0.0) * (1 + _SOLVER)

    def blocks_within(self, beta: float) -> int:
        """Return a number of new blocks after which the alarm has been raised with probability at least 1 - beta."""
        chain, state = self._chain(self.new), self._from_zero()
        for count in range(1, _MOST_STEPS):
            state = state @ chain
            if float(state.sum()) + LAW_ERROR * count <= beta:
                return count
        return math.ceil(self.blocks_to_alarm / beta)  # Markov's inequality

    def accuracy(self, beta: float, block: int, mixed: Sequence[Mixed]) -> int | None:
        """Return the smallest a with Pr[abs(index - k*) > a] <= beta for all k*; None if no a of the grid suffices.

        Args:
            beta: the largest probability of a larger error.
            block: the number of records in a block.
            mixed: the possible laws of the block that holds k*.

        Guarantees: the bound holds given that no alarm was raised before k*.
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
        """Return bounds on the probabilities that the index lies l or more blocks before the mixed block, or after it.

        Before: the excursion was l blocks old at the change, and W did not return to 0. After: W was 0 again l blocks
        later, which is the most likely from W = 0, since all other paths lie higher.
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
        """The probability, from each W >= 1, that new blocks raise the alarm before W is 0."""
        h = self.threshold
        escape = np.zeros(h + 1)
        if h >= 1:
            steps = _steps(self.votes, self.new, h)
            past = np.cumsum(steps[::-1])[1 : h + 1]  # Pr[w + g > h], for w = 1, ..., h
            escape[1:] = np.clip(_excursion_sums(steps, h - 1, past[:, None])[:, 0], 0, 1)
        return escape

    @cached_property
    def _excursions(self) -> Floats:
        """Row l is the law of W after l old blocks of an excursion that began at 0 and did not return to it."""
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
        """Row m, column l is Pr[W_{m-l} = 0, no alarm until then] / Pr[no alarm until m], until rows converge."""
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
        first = np.maximum(start, 0)
        law: Floats = np.where(start >= 0, np.array(zeros)[first] * np.exp(logs[first] - logs[m]), 0.0)
        return law

    def _mean_blocks(self, law: Floats, lost: float) -> float:
        """Return the mean time from W = 0 until W falls below 0 or passes h, over the probability that it passes h."""
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
    """Return Pr[vote g] at place h + 1 + g; votes beyond +-(h + 1) count as +-(h + 1)."""
    most = h + 1
    return np.bincount(np.clip(votes, -most, most) + most, weights=law, minlength=2 * most + 1).astype(np.float64)


def _excursion_sums(steps: Floats, top: int, values: Floats) -> Floats:
    """Return the mean sum of values along a walk from each of 0, ..., top until it leaves them (a Toeplitz system)."""
    from scipy import linalg  # late: it takes a while to import, and only votes need it

    middle = len(steps) // 2
    up, down = -steps[middle : middle + top + 1], -steps[middle - top : middle + 1][::-1]
    up[0] = down[0] = 1.0 + up[0]
    sums: Floats = linalg.solve_toeplitz((down, up), values)
    return sums


def _moves(votes: Integers, law: Floats, h: int) -> Floats:
    """Return the matrix with Pr[max(w + g, 0) = v] in row w and column v, for v <= h."""
    steps, w = _steps(votes, law, h), np.arange(h + 1)
    transitions: Floats = steps[h + 1 + w[None, :] - w[:, None]]
    transitions[:, 0] = np.cumsum(steps)[h + 1 - w]
    return transitions
