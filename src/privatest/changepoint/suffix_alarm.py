r"""Was there a change at all? The largest suffix sum of block steps against a threshold, its law computed exactly.

Each block votes with an integer step g_j, positive where it speaks for the new regime. The statistic

.. math:: W_m = \max_{t \le m + 1} \sum_{j=t}^{m} g_j \quad\text{obeys}\quad W_{j} = \max(W_{j-1} + g_j, 0)

(Lindley's recursion), so that its law under "no change" and after d blocks of the new regime follows by
convolutions. It is post-processing of what the blocks released: the answer costs no privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import signal

from privatest.errors import InvalidInput

__all__ = ["SuffixAlarm", "decay_rate", "largest_suffix_sum"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# W climbs so far with probability e^-36 = 2e-16: the law is computed up to there.
_NEGLIGIBLE_EXPONENT = 36.0
# Room above the threshold, in multiples of the largest step, when W drifts upwards. Less room only adds to the bound.
_ROOM = 8
_CONVERGED = 1e-15
# A change that is missed with less probability than this need not be followed further.
_SETTLED = 1e-9
_MOST_BLOCKS = 20_000
# Rounding of the transforms, allowed for in every probability.
_ROUNDING = 1e-13


def largest_suffix_sum(steps: Integers) -> int:
    """max over t of the sum of the steps from t on; 0 for the empty sum."""
    sums = np.cumsum(steps[::-1])
    return max(int(sums.max()), 0) if len(sums) else 0


@dataclass(frozen=True, eq=False)
class SuffixAlarm:
    """Says "changed" when the largest suffix sum of steps exceeds ``threshold``.

    Attributes:
        steps: the integer step of each outcome of a block.
        old, new: probabilities of the outcomes when all records of a block are old, or all are new.
        threshold: see above.
        false_alarm: bound on Pr["changed"] when there is no change.
    """

    steps: Integers
    old: Floats
    new: Floats
    threshold: int
    false_alarm: float

    @classmethod
    def calibrated(cls, steps: Integers, old: Floats, new: Floats, target: float, blocks: int | None) -> SuffixAlarm:
        """The smallest threshold with a false-alarm probability of at most ``target`` over ``blocks`` blocks.

        None for the number of blocks: however many there are (W grows with their number and converges in law).
        """
        law = _step_law(steps, old)
        low = int(steps.min())
        top = math.ceil((math.log(1 / target) + _NEGLIGIBLE_EXPONENT) / decay_rate(steps, old)) + int(steps.max())
        state = np.zeros(top + 1)
        state[0] = 1.0
        for _ in range(min(blocks or _MOST_BLOCKS, _MOST_BLOCKS)):
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
        """Whether these blocks' outcomes say "changed"."""
        return largest_suffix_sum(self.steps[outcomes]) > self.threshold

    def missed(self, blocks: Integers) -> Floats:
        """Bounds on Pr["no change"] after these numbers of whole blocks of the new regime.

        Guarantees: an upper bound whatever came before, since W is never below 0 and more is better.
        """
        most = int(np.max(blocks))
        law, low = _step_law(self.steps, self.new), int(self.steps.min())
        while len(self._missed) <= most and self._missed[-1] > _SETTLED:
            self._states[0] = _advance(self._states[0], law, low)
            missed = float(self._states[0][: self.threshold + 1].sum()) + _ROUNDING
            self._missed.append(min(missed, self._missed[-1]))
        known = np.array(self._missed)
        bounds: Floats = known[np.minimum(blocks, len(known) - 1)]
        return bounds

    @cached_property
    def _states(self) -> list[Floats]:
        """The law of W, at the latest number of blocks that :meth:`missed` looked at."""
        room = max(_ROOM * int(self.steps.max()), 50)
        state = np.zeros(self.threshold + room + 1)
        state[0] = 1.0
        return [state]

    @cached_property
    def _missed(self) -> list[float]:
        return [1.0]


def decay_rate(steps: Integers, law: Floats) -> float:
    r"""The theta > 0 with E e^(theta g) = 1: Pr[W >= w] <= e^(-theta w) however many blocks there are.

    For log-likelihood ratios it is one over the step's size in nats, by Ville's inequality.
    """
    seen = law > 0
    g, p = steps[seen].astype(np.float64), law[seen] / law[seen].sum()
    if float(p @ g) >= 0:
        raise InvalidInput("The blocks of the old regime vote for a change: their test's error must be below 1/2.")
    if g.max() <= 0:
        return math.inf
    low, high = 0.0, 1.0 / g.max()

    def excess(theta: float) -> float:
        return float(np.log(p @ np.exp(theta * (g - g.max()))) + theta * g.max())

    while excess(high) < 0 and high < 1e3:
        low, high = high, 2 * high
    # Invariant: E e^(low g) <= 1 < E e^(high g), or low = 0.
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return low or high


def _step_law(steps: Integers, law: Floats) -> Floats:
    """Probabilities of the steps, from the smallest on."""
    return np.bincount(steps - int(steps.min()), weights=law).astype(np.float64)


def _advance(state: Floats, law: Floats, low: int) -> Floats:
    """The law of min(max(W + g, 0), top). The ceiling is high enough not to matter."""
    spread = np.maximum(signal.fftconvolve(state, law), 0.0)
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
