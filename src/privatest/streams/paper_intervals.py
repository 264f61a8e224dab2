r"""The paper's online algorithm: an alarm as soon as an interval of n blocks has more bits -1 than +1.

The change is then placed in the last two intervals. For bits that are wrong with probability alpha (old blocks) and
beta' (new blocks) everything is computed:

.. math:: \text{false stop} = \Pr[\mathrm{Bin}(n, \alpha) > n/2], \qquad
          \text{missed} = \Pr[\mathrm{Bin}(n, 1 - \beta') \le n/2]

False alarms are :math:`n B / \text{false stop}` records apart. An interval of new records stops the monitor unless
it is missed, so that with probability 1 - missed fewer than 2 n B records are seen after k*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import special

from privatest.laws.block_laws import first_argmin_law
from privatest.numbers import Floats

LONGEST_INTERVAL = 5_000
# The numbers of places of k* for which errors are computed, in blocks and within a block.
_PLACES, _OFFSETS = 33, 17


@dataclass(frozen=True)
class Majority:
    """The laws of intervals of ``interval`` blocks of ``block`` records, whose bits have these error rates."""

    interval: int
    block: int
    alpha: float
    beta: float

    @property
    def records(self) -> int:
        """The number of records in an interval."""
        return self.interval * self.block

    @cached_property
    def false_stop(self) -> float:
        """The probability that an interval of old records raises the alarm."""
        return float(special.bdtrc(self.interval // 2, self.interval, self.alpha))

    @cached_property
    def missed(self) -> float:
        """The probability that an interval of new records does not raise the alarm."""
        return float(special.bdtr(self.interval // 2, self.interval, 1 - self.beta))

    @property
    def time_between_false_alarms(self) -> float:
        """The mean number of records between false alarms; exact."""
        return self.records / self.false_stop if self.false_stop > 0 else math.inf

    @property
    def expected_delay(self) -> float:
        """A bound on the mean number of records from k* to the alarm: the rest of an interval, then whole ones."""
        return self.records - 1 + self.records / (1 - self.missed)

    def delay_within(self, beta: float) -> int:
        """Return a number of records after k* within which the alarm comes with probability at least 1 - beta."""
        whole = 1 if self.missed <= beta else math.ceil(math.log(beta) / math.log(self.missed))
        return self.records - 1 + whole * self.records

    def accuracy_within(self, beta: float) -> int:
        """Return an a with Pr[abs(index - k*) > a] <= beta given no alarm before k*, for intervals of any length.

        If :meth:`accuracy` is None, it is the delay that is exceeded with probability beta, which is at least two
        intervals: the index lies within the last two intervals before the alarm.
        """
        accuracy = self.accuracy(beta)
        return self.delay_within(beta) if accuracy is None else accuracy

    def accuracy(self, beta: float) -> int | None:
        r"""Return the smallest a with Pr[abs(index - k*) > a] <= beta for all k*, given no alarm before k*.

        The alarm comes with the interval of k*, with the next one or, with probability ``missed``, later, which counts
        as a failure. In the first two cases the failure is at most the smaller of two probabilities: that the alarm
        comes then, and that the argmin of that pair of intervals is off. To condition on no alarm in the interval
        before that of k* is to divide by at least 1 - false_stop. The result is None if no a suffices.
        """
        n, B = self.interval, self.block
        distances = np.arange(0, 2 * n * B, max(B // 8, 1), dtype=np.int64)
        worst = np.zeros(len(distances))
        offsets = np.unique(np.linspace(0, B - 1, min(B, _OFFSETS)).astype(np.int64))
        for place in np.unique(np.linspace(0, n - 1, min(n, _PLACES)).astype(np.int64)):
            for bit in (0.0, 1.0):  # the mixed block says "new" or not; the failure is linear in its probability
                windows = ((n, 0), (0, 0), (0, n))  # the interval of k* is the second, the only one, the first
                laws = [first_argmin_law(self._ups(int(place), bit, *window)[:-1]) for window in windows]
                now = self._majority(int(place), bit)
                for r in offsets.tolist():
                    second, only, late = (
                        _off(law, before + int(place), B, r, distances)
                        for law, (before, _) in zip(laws, windows, strict=True)
                    )
                    total = self.missed + np.minimum(np.maximum(second, only), now) + np.minimum(late, 1 - now)
                    worst = np.maximum(worst, total / (1 - self.false_stop))
        enough = np.flatnonzero(worst <= beta)
        return int(distances[enough[0]]) if len(enough) else None

    def _ups(self, place: int, bit: float, before: int, after: int) -> Floats:
        """Return the probability of "new" for each block: old ones, the mixed one, new ones."""
        old = np.full(before + place, self.alpha)
        new = np.full(self.interval - place - 1 + after, 1 - self.beta)
        return np.concatenate([old, [bit], new])

    def _majority(self, place: int, bit: float) -> float:
        """Return the probability that most bits of the interval of k* are for the new regime."""
        from scipy import stats  # late: it takes a second to import, and only votes need it

        old = stats.binom.pmf(np.arange(place + 1), place, self.alpha)
        rest = self.interval - place - 1
        new = stats.binom.pmf(np.arange(rest + 1), rest, 1 - self.beta)
        votes = np.convolve(old, new)
        return float(votes[2 * (np.arange(len(votes)) + bit) > self.interval].sum())


def recommended_interval(block: int, alpha: float, beta: float, confidence: float, records: float) -> int | None:
    r"""Return the smallest n that meets the paper's condition :math:`n = \Omega(SC \log(k^*/(n \beta)))`, or None.

    False alarms are then at least ``records`` apart (a false alarm before k* has probability at most k*/records), an
    interval of new records is missed with probability at most confidence/4, and the index has an accuracy.
    """
    n = np.arange(1, LONGEST_INTERVAL + 1)
    stops, missed = special.bdtrc(n // 2, n, alpha), special.bdtr(n // 2, n, 1 - beta)
    fine = (n * block >= records * stops) & (missed <= confidence / 4)
    for size in n[fine].tolist():
        if Majority(size, block, alpha, beta).accuracy(confidence) is not None:
            return int(size)
    return None


def _off(law: Floats, start: int, block: int, old: int, distances: npt.NDArray[np.int64]) -> Floats:
    """Return Pr[abs(argmin * block - k*) > a] for k* = start * block + old."""
    upto = np.concatenate([[0.0], np.cumsum(law)])
    first = np.clip(start - (distances - old) // block, 0, len(law))
    last = np.clip(start + (distances + old) // block + 1, 0, len(law))
    off: Floats = np.maximum(1.0 - (upto[last] - upto[first]), 0.0)
    return off
