r"""How far off an index can be: a curve of failure probabilities, exact or bounded with stated confidence.

Simulations here are of public quantities (the laws of scores under P and Q), seeded, and never see data.

Was there a change at all? The largest suffix sum of block steps against a threshold, its law computed exactly.

Each block votes with an integer step g_j, positive where it speaks for the new regime. The statistic

.. math:: W_m = \max_{t \le m + 1} \sum_{j=t}^{m} g_j \quad\text{obeys}\quad W_{j} = \max(W_{j-1} + g_j, 0)

(Lindley's recursion), so that its law under "no change" and after d blocks of the new regime follows by
convolutions. It is post-processing of what the blocks released: the answer costs no privacy.

The paper's online algorithm: intervals of n blocks, stop when one has more -1 than +1, then look at the last two.

With bits that are wrong with probability alpha (old blocks) and beta' (new blocks) everything is computed:

.. math:: \text{false stop} = \Pr[\mathrm{Bin}(n, \alpha) > n/2], \qquad
          \text{missed} = \Pr[\mathrm{Bin}(n, 1 - \beta') \le n/2]

False alarms are :math:`n B / \text{false stop}` records apart. An interval of new records stops the monitor unless
it is missed, so that with probability 1 - missed fewer than 2 n B records are seen after k*.

A CUSUM chart on blocks' votes: false alarms, delay and error of its index, computed from a Markov chain.

Each block votes with an integer g, positive where it speaks for the new regime. The chart

.. math:: W_j = \max(W_{j-1} + g_j, 0), \qquad \text{alarm when } W_j > h

is a Markov chain on 0, ..., h until the alarm, so that times to it solve linear equations: nothing is simulated. The
index is the start of the excursion that raised the alarm: the block after the last j with W_j = 0.

Where did the change happen, from what blocks of records released: noisy sums, or the bits of private tests.

Sums, by the likelihood of what was released. Each block of B records releases T_j, the total of its scores plus noise
that meets the notion. A record lies in one block, so all of them together cost what one does, and whatever is computed
from them is free. If the first r records of block t are old and the rest new, the released sums have log-likelihood

.. math:: \sum_{j < t} \log f_B(T_j) + \log f_r(T_t) + \sum_{j > t} \log f_0(T_j)

with f_r the exact law of the noisy total of r old and B - r new records. The index is the median of the
posterior with a uniform prior over positions: it errs less than the most likely position does.

Bits, the paper's reduction: a private test on each block, bits z_j = +-1, and the argmin of their suffix sums.

.. math:: \hat k = (\arg\min_{1 \le t \le m} \sum_{j=t}^{m} z_j - 1) \cdot B

The answer's law is computed exactly, for any test with known error rates: z is a random walk that falls after the
change and rises before it, and the argmin is t exactly when the walk stays above on one side and at or above on the
other (Lemma "Solving Bernoulli Change-Point Detection", with constants).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from privatest.engines.records import totals_of_blocks
from privatest.errors import InvalidInput
from privatest.laws.block_laws import BlockLaws, ScoreLaw, first_argmin_law
from privatest.laws.fourier import convolution
from privatest.numbers import Floats, Integers
from privatest.privacy import Noise, RandomSource
from privatest.privacy.bulk_draws import draw_many
from privatest.scores import Score

CONFIDENCE = 0.999
"""The chance that a simulated bound is one."""


@dataclass(frozen=True, eq=False)
class FailureCurve:
    """Bounds on Pr[abs(index - k*) > a], for increasing a; beyond the last a the last bound holds.

    Guarantees: each bound is exact (``runs`` 0), or one with confidence 0.999 from ``runs`` simulations; as both the
    truth and the estimates fall with a, the confidence holds for the a that a target picks, too.
    """

    distances: Integers
    failures: Floats
    runs: int = 0

    def accuracy(self, beta: float, missed: Floats | None = None) -> int | None:
        """The smallest a whose failure probability (plus ``missed``, given for each a) is at most beta."""
        total = self.failures if missed is None else self.failures + missed
        enough = np.flatnonzero(total <= beta)
        return int(self.distances[enough[0]]) if len(enough) else None

    def quantile(self, beta: float, missed: Floats | None = None) -> float:
        """As :meth:`accuracy`, between the distances: for comparing designs. Infinite where beta is not reached."""
        total = self.failures if missed is None else self.failures + missed
        below = np.flatnonzero(total <= beta)
        if len(below) == 0:
            return math.inf
        at = int(below[0])
        if at == 0:
            return float(self.distances[0])
        high, low = total[at - 1], total[at]
        share = (high - beta) / (high - low) if high > low else 1.0
        return float(self.distances[at - 1] + share * (self.distances[at] - self.distances[at - 1]))


def upper_bounds(means: Floats, runs: int, confidence: float = CONFIDENCE) -> Floats:
    r"""Upper confidence bounds for the means of variables in [0, 1], from the averages of ``runs`` of them.

    The p above the average m with :math:`runs \cdot kl(m \| p) = \log 1/(1 - confidence)` (Chernoff, Hoeffding).
    """
    goal = -math.log1p(-confidence) / runs
    m = np.clip(means, 0.0, 1.0)
    low, high = m.copy(), np.ones_like(m)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Invariant: kl(m || low) <= goal < kl(m || high).
        for _ in range(60):
            p = (low + high) / 2
            kl = np.where(m > 0, m * np.log(m / p), 0.0) + np.where(m < 1, (1 - m) * np.log((1 - m) / (1 - p)), 0.0)
            inside = kl <= goal
            low, high = np.where(inside, p, low), np.where(inside, high, p)
    return high


def worst_of(curves: list[FailureCurve]) -> FailureCurve:
    """The pointwise largest of curves over the same distances."""
    failures = np.max([curve.failures for curve in curves], axis=0)
    return FailureCurve(curves[0].distances, failures, min(curve.runs for curve in curves))


# W climbs so far with probability e^-36 = 2e-16: the law is computed up to there.
_NEGLIGIBLE_EXPONENT = 36.0
# Room above the threshold, in multiples of the largest step, when W drifts upwards. Less room only adds to the bound.
_ROOM = 8
_CONVERGED = 1e-15
# A change that is missed with less probability than this need not be followed further.
_SETTLED = 1e-9
_MOST_CHART_BLOCKS = 20_000
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


LONGEST_INTERVAL = 5_000
# Places of k* that are looked at, in blocks and within a block.
_PLACES, _OFFSETS = 33, 17


@dataclass(frozen=True)
class Majority:
    """Intervals of ``interval`` blocks of ``block`` records, with bits of these error rates."""

    interval: int
    block: int
    alpha: float
    beta: float

    @property
    def records(self) -> int:
        """Records in an interval."""
        return self.interval * self.block

    @cached_property
    def false_stop(self) -> float:
        """Probability that an interval of old records stops the monitor."""
        return float(special.bdtrc(self.interval // 2, self.interval, self.alpha))

    @cached_property
    def missed(self) -> float:
        """Probability that an interval of new records does not."""
        return float(special.bdtr(self.interval // 2, self.interval, 1 - self.beta))

    @property
    def time_between_false_alarms(self) -> float:
        """Mean, in records; exact."""
        return self.records / self.false_stop if self.false_stop > 0 else math.inf

    @property
    def expected_delay(self) -> float:
        """Bound on the mean number of records after k* till the alarm: the rest of an interval, then whole ones."""
        return self.records - 1 + self.records / (1 - self.missed)

    def delay_within(self, beta: float) -> int:
        """Records after k* by which the alarm was raised with probability at least 1 - beta."""
        whole = 1 if self.missed <= beta else math.ceil(math.log(beta) / math.log(self.missed))
        return self.records - 1 + whole * self.records

    def accuracy_within(self, beta: float) -> int:
        """An a with Pr[abs(index - k*) > a] <= beta given no alarm before k*, for intervals of any length.

        Where :meth:`accuracy` finds none it is the delay that is exceeded with probability beta, two intervals or more:
        the index lies within the last two intervals before the alarm.
        """
        found = self.accuracy(beta)
        return self.delay_within(beta) if found is None else found

    def accuracy(self, beta: float) -> int | None:
        r"""The smallest a with Pr[abs(index - k*) > a] <= beta given no alarm before k*, worst over all k*.

        The alarm comes with the interval of k* (if that has the majority), with the next, or, with probability
        ``missed``, later, which counts as a failure. In each case the failure is at most the smaller of the
        probabilities that the alarm comes then and that the argmin of that pair of intervals is off. The interval
        before that of k* did not stop the monitor: conditioning on that divides by at most 1 - false_stop.
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
        """Probability of "new" for each block: old ones, the mixed one, new ones."""
        old = np.full(before + place, self.alpha)
        new = np.full(self.interval - place - 1 + after, 1 - self.beta)
        return np.concatenate([old, [bit], new])

    def _majority(self, place: int, bit: float) -> float:
        """Probability that the interval of k* has the majority."""
        from scipy import stats  # late: it takes a second to import, and only votes need it

        old = stats.binom.pmf(np.arange(place + 1), place, self.alpha)
        rest = self.interval - place - 1
        new = stats.binom.pmf(np.arange(rest + 1), rest, 1 - self.beta)
        said = np.convolve(old, new)
        return float(said[2 * (np.arange(len(said)) + bit) > self.interval].sum())


def recommended_interval(block: int, alpha: float, beta: float, confidence: float, records: float) -> int | None:
    r"""The smallest n that meets the paper's condition :math:`n = \Omega(SC \log(k^*/(n \beta)))`, as computed.

    False alarms at least ``records`` apart (one before k* then has probability at most k*/records), an interval of
    new records missed with probability at most confidence/4, and the index's accuracy attained.
    """
    n = np.arange(1, LONGEST_INTERVAL + 1)
    stops, missed = special.bdtrc(n // 2, n, alpha), special.bdtr(n // 2, n, 1 - beta)
    fine = (n * block >= records * stops) & (missed <= confidence / 4)
    for size in n[fine].tolist():
        if Majority(size, block, alpha, beta).accuracy(confidence) is not None:
            return int(size)
    return None


def _off(law: Floats, start: int, block: int, old: int, distances: npt.NDArray[np.int64]) -> Floats:
    """Pr[abs(argmin * block - k*) > a] for k* = start * block + old."""
    upto = np.concatenate([[0.0], np.cumsum(law)])
    first = np.clip(start - (distances - old) // block, 0, len(law))
    last = np.clip(start + (distances + old) // block + 1, 0, len(law))
    off: Floats = np.maximum(1.0 - (upto[last] - upto[first]), 0.0)
    return off


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
    from scipy import linalg  # late: it takes a while to import, and only votes need it

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


# Blocks on either side whose probabilities are computed one by one; the rest is bounded by what is missing from 1.
_MOST_BLOCKS = 1_500
_MISSING = 1e-12

Bits = Callable[[Any, int, RandomSource], Integers]
"""(records, number of records, source) -> z_j, +1 where the block's test says "old"."""


@dataclass(frozen=True)
class BitDesign:
    """Blocks whose bits are wrong with probability at most ``alpha`` (old blocks) and ``beta`` (new blocks)."""

    block: int
    alpha: float
    beta: float

    @cached_property
    def _argmin(self) -> tuple[int, list[Floats]]:
        """T, and for each value of the mixed block's bit the probabilities of argmin - (mixed block) = -T, ..., T.

        With g = -z: t is the first argmin when every sum of g from t rightwards is at least 0 and every sum
        leftwards from t - 1 is below 0. Right of all old blocks the walk has gone up with probability 1 - beta.
        """
        a, b = self.alpha, self.beta
        reach = 8
        while True:
            laws = [_argmin_law(a, b, mixed, reach) for mixed in (1, -1)]
            if min(float(law.sum()) for law in laws) > 1 - _MISSING or reach >= _MOST_BLOCKS:
                return reach, laws
            reach *= 2

    def failures(self) -> FailureCurve:
        """Exact bounds on how far off the index is: worst over where in a block k* lies and over the mixed block's bit.

        The window is [k* - a, k* + a - B]: its blocks lie within the series whenever k* is at least a from both ends.
        """
        reach, laws = self._argmin
        distances = np.arange(0, reach * self.block, max(self.block // 8, 1), dtype=np.int64)
        offsets = np.unique(np.linspace(0, self.block - 1, min(self.block, 33)).astype(np.int64))
        worst = np.zeros(len(distances))
        for law in laws:
            upto = np.concatenate([[0.0], np.cumsum(law)])  # upto[i] = Pr[t < i - reach]
            for r in offsets:
                first = -((distances - r) // self.block)  # ceil((r - a)/B)
                last = (distances - self.block + r) // self.block
                low, high = (np.clip(t + reach, 0, len(law)) for t in (first, last + 1))
                inside = np.maximum(upto[high] - upto[low], 0.0)
                worst = np.maximum(worst, 1.0 - inside)
        return FailureCurve(distances, np.minimum(worst, 1.0))

    @property
    def votes(self) -> tuple[Integers, Floats, Floats]:
        """The alarm's steps for a block that says "new" or "old", and their probabilities in old and in new blocks."""
        old, new = np.array([self.alpha, 1 - self.alpha]), np.array([1 - self.beta, self.beta])
        return np.array([1, -1], dtype=np.int64), old, new

    def alarm(self, target: float, blocks: int | None) -> SuffixAlarm:
        """The no-change decision: the most that "new" leads "old" in any suffix of the bits."""
        return SuffixAlarm.calibrated(*self.votes, target, blocks)

    def missed(self, alarm: SuffixAlarm, distances: Integers) -> Floats:
        """Bound on Pr["no change"] for changes at least this far from the end of the series."""
        return alarm.missed(np.maximum(distances // self.block - 1, 0))  # the tail may hold almost a block

    def locate(self, bits: Integers) -> int:
        """(argmin - 1) * block, the first argmin."""
        suffix_sums = np.cumsum(bits[::-1])[::-1]
        return int(np.argmin(suffix_sums)) * self.block


@dataclass(frozen=True, eq=False)
class BitDetector:
    """A private test for each block, and what is made of their bits.

    Guarantees: a record lies in one block, so all bits together meet the notion that each test does, and so does the
    answer.
    """

    design: BitDesign
    bits: Bits
    alarm: SuffixAlarm | None = None

    def draw(self, records: Any, n: int, source: RandomSource) -> list[int]:
        """The blocks' bits."""
        found: list[int] = self.bits(records, n, source).tolist()
        return found

    def locate(self, drawn: Sequence[int], n: int) -> int | None:  # noqa: ARG002 - whatever n is
        """The index, or None for "no change", from the bits."""
        bits = np.array(drawn, dtype=np.int64)
        if self.alarm is not None and not self.alarm.fires(np.where(bits < 0, 0, 1)):
            return None
        return self.design.locate(bits)


def _argmin_law(a: float, b: float, mixed: int, reach: int) -> Floats:
    """Pr[argmin = t] for t = -reach, ..., reach, with block 0 the mixed one, of step g = ``mixed``."""
    ups = np.concatenate([np.full(reach, a), np.full(1, float(mixed == 1)), np.full(reach - 1, 1 - b)])
    return first_argmin_law(ups, before=_ruin(a), after=_ruin(b))


def _ruin(error: float) -> float:
    """Probability that a walk ever falls one below its start, for steps down of this probability."""
    return min(error / (1 - error), 1.0)


# Positions within a block that the posterior tells apart.
_SUBDIVISIONS = 12
# A side's mass must stay under this share of the window's: the rest is left for what lies beyond the simulated blocks.
_SHARE = 0.99
# Steps of the alarm, in nats.
_STEP = 1 / 16
_LARGEST_STEP = 40.0
_ROWS = 1_000
# Places of k* within a block that are simulated, and blocks on either side in a rough look.
_PHASES = 6
_ROUGH_SIDE = 12
# A simulation tells little of failures it expects fewer of than this.
_FEWEST_EXPECTED = 15
_SEED = 20_181_128
# The sum of so many records is nearly normal; a normal number is further away than this with probability 0.001.
_MANY_RECORDS = 30
_TOO_FAR = 3.2905267314919255


@dataclass(frozen=True, eq=False)
class BlockDesign:
    """A law of scores, a noise and a block length: all that accuracy depends on."""

    law: ScoreLaw
    noise: Noise
    block: int

    @cached_property
    def olds(self) -> tuple[int, ...]:
        """Numbers r of old records in a block that are told apart, from 0 to the whole block."""
        parts = min(self.block, _SUBDIVISIONS)
        return tuple(sorted({round(c * self.block / parts) for c in range(parts + 1)}))

    @cached_property
    def laws(self) -> BlockLaws:
        """Laws of the noisy total for each of ``olds``."""
        return BlockLaws.of(self.law, self.noise, self.block, self.olds)

    @cached_property
    def _truths(self) -> BlockLaws:
        """The laws for numbers of old records that k* may call for: some of ``olds``, and middles between them."""
        between = {(a + b) // 2 for a, b in zip(self.olds, self.olds[1:], strict=False)}
        known = {*self.olds[:-1], *between}
        chosen = sorted(known)[:: max(len(known) // _PHASES, 1)]
        return BlockLaws.of(self.law, self.noise, self.block, chosen)

    @cached_property
    def log_odds(self) -> Floats:
        """log f_B/f_0 of each outcome: how much a block speaks for being old."""
        odds: Floats = self.laws.log_laws[-1] - self.laws.log_laws[0]
        return odds

    @cached_property
    def partial(self) -> Floats:
        """log f_r/f_0 of each outcome, for the r < B of ``olds``."""
        odds: Floats = self.laws.log_laws[:-1] - self.laws.log_laws[0]
        return odds

    @property
    def slack(self) -> int:
        """The most records at either end that no block holds."""
        return self.block // 2

    @cached_property
    def alarm_steps(self) -> Integers:
        """The blocks' votes for the alarm: their log-odds in sixteenths of a nat."""
        nats = np.clip(-self.log_odds, -_LARGEST_STEP, _LARGEST_STEP)
        return np.rint(nats / _STEP).astype(np.int64)

    @property
    def votes(self) -> tuple[Integers, Floats, Floats]:
        """The alarm's steps for each outcome of a block, and their probabilities in old and in new blocks."""
        return self.alarm_steps, self.laws.laws[-1], self.laws.laws[0]

    def alarm(self, target: float, blocks: int | None) -> SuffixAlarm:
        """The no-change decision from the same noisy sums."""
        return SuffixAlarm.calibrated(*self.votes, target, blocks)

    def missed(self, alarm: SuffixAlarm, distances: Integers) -> Floats:
        """Bound on Pr["no change"] for changes at least this far from the end of the series."""
        return alarm.missed(np.maximum(distances - self.slack, 0) // self.block)

    def failures(self, beta: float, runs: int, seed: int = _SEED) -> FailureCurve:
        """Bounds on how far off the index is, worst over where in a block k* lies.

        From simulations of the blocks' laws and, where these are too few to tell, from affinities. In a simulation a
        distance a counts as exceeded unless the window around k* outweighs either side even when ``slack`` of
        its records are missing: so the bound holds for series of any length with k* at least a from both ends.
        """
        side = self._side(beta)
        distances = self._distances(side)
        certain = self._by_affinity(distances)
        if runs * beta < _FEWEST_EXPECTED:
            return FailureCurve(distances, certain)
        rng = np.random.default_rng(seed)
        rows = range(len(self._truths.olds))
        rough = {row: self._simulate(self._truths, row, side, distances, max(runs // 10, 200), rng) for row in rows}
        # The worst places by a first look get the runs.
        worst = sorted(rows, key=lambda row: -float(np.sum(rough[row])))[:2]
        curves = []
        for row in worst:
            means = self._simulate(self._truths, row, side, distances, runs, rng)
            confidence = 1 - (1 - CONFIDENCE) / len(rows)
            bounds = upper_bounds(means, runs, confidence) + beta / 1000
            curves.append(FailureCurve(distances, np.minimum(bounds, certain), runs))
        return worst_of(curves)

    def _by_affinity(self, distances: Integers) -> Floats:
        r"""A bound without simulation: a side outweighs the window only if the sum of its
        :math:`\sqrt{w_k/w_{k_0}}` exceeds :math:`\sqrt{0.99}`, k_0 the candidate next to k*.

        Their means are products: the affinity for each whole block in between, and a factor for the block of k*.
        """
        laws, truths, places = self.laws, self._truths, np.array(self.olds)
        factor = 1.0
        for row, old in enumerate(truths.olds):
            nearest = int(np.argmin(np.abs(places - old)))
            for end in (0, len(places) - 1):
                factor = max(
                    factor, float(truths.laws[row] @ np.exp((laws.log_laws[end] - laws.log_laws[nearest]) / 2))
                )
        between = np.maximum((distances - self.slack) // self.block - 1, 0)
        sums = len(places) * self._affinity**between / (1 - self._affinity)
        bounds: Floats = np.minimum(2 * factor * sums / math.sqrt(_SHARE), 1.0)
        return bounds

    def rough(self, beta: float, runs: int = 1_000, seed: int = _SEED) -> FailureCurve:
        """About :meth:`failures`, without its bounds: for comparing designs. A k* amid a block is the hardest."""
        side = min(self._side(beta), _ROUGH_SIDE)
        distances = self._distances(side)
        rng = np.random.default_rng(seed)
        means = self._simulate(self.laws, len(self.olds) // 2, side, distances, runs, rng)
        return FailureCurve(distances, means, runs)

    @cached_property
    def _affinity(self) -> float:
        return min(max(self.laws.affinity(0, len(self.olds) - 1), 1e-12), 1 - 1e-9)

    def _side(self, beta: float) -> int:
        r"""Blocks to simulate on either side, so that what lies beyond changes the failure by under beta/1000.

        Pr[mass beyond > 1% of k*'s] <= 10 sum of E sqrt(w_k/w_k*), geometric with the affinity of a block's two laws.
        """
        goal = 1e4 * 2 * len(self.olds) / (beta * (1 - self._affinity))
        return min(max(math.ceil(math.log(goal) / -math.log(self._affinity)), 4), 400)

    def _distances(self, side: int) -> Integers:
        """Multiples of 1/16 of a block, as far as the simulated blocks reach; sparser far out."""
        step = max(self.block // 16, 1)
        grid, reach = [0], side * self.block
        while grid[-1] < reach:
            grid.append(grid[-1] + max(step, grid[-1] // (20 * step) * step))
        return np.array(grid, dtype=np.int64)

    def _simulate(
        self, truths: BlockLaws, row: int, side: int, distances: Integers, runs: int, rng: np.random.Generator
    ) -> Floats:
        """Share of runs whose answer may be off by more than each distance; k* lies truths.olds[row] into its block."""
        old = len(self.olds) - 1
        place = self._positions(2 * side + 1) - (side * self.block + truths.olds[row])

        def upto(x: Integers) -> Integers:
            return np.searchsorted(place, x, side="right")

        # Masses of x < -a, x < -a + slack, x <= a - slack, x <= a are columns of the cumulated posterior.
        columns = [
            upto(edge) for edge in (-distances - 1, -distances + self.slack - 1, distances - self.slack, distances)
        ]
        failed, done = np.zeros(len(distances)), 0
        while done < runs:
            count = min(_ROWS, runs - done)
            outcomes = np.empty((count, 2 * side + 1), dtype=np.int64)
            outcomes[:, :side] = self.laws.sample(old, (count, side), rng)
            outcomes[:, side] = truths.sample(row, (count,), rng)
            outcomes[:, side + 1 :] = self.laws.sample(0, (count, side), rng)
            mass = np.zeros((count, len(place) + 1))
            np.cumsum(self._posterior(outcomes), axis=1, out=mass[:, 1:])
            left, cut_left, cut_right, right = (mass[:, c] for c in columns)
            beyond = mass[:, -1:] - right
            bad = left >= _SHARE * (cut_right - left)
            bad |= beyond >= _SHARE * (right - cut_left)
            failed += bad.sum(axis=0)
            done += count
        return failed / runs

    def _positions(self, blocks: int) -> Integers:
        """Candidate positions, counted from the first block's first record."""
        inner = np.arange(blocks, dtype=np.int64)[:, None] * self.block + np.array(self.olds[:-1], dtype=np.int64)
        return np.append(inner.ravel(), blocks * self.block)

    def _posterior(self, outcomes: Integers) -> Floats:
        """Posterior weights of the candidate positions, the largest 1; rows of ``outcomes`` are series of blocks."""
        count, blocks = outcomes.shape
        before = np.zeros((count, blocks + 1))
        np.cumsum(self.log_odds[outcomes], axis=1, out=before[:, 1:])
        highest = np.maximum((before[:, :-1] + self.partial.max(axis=0)[outcomes]).max(axis=1), before[:, -1])
        before -= highest[:, None]
        weights = np.empty((count, blocks * len(self.partial) + 1))
        inner = weights[:, :-1].reshape(count, blocks, len(self.partial))  # a view
        np.add(before[:, :-1, None], np.ascontiguousarray(self.partial.T)[outcomes], out=inner)
        weights[:, -1] = before[:, -1]
        return np.asarray(np.exp(weights, out=weights))

    def locate(self, outcomes: Integers) -> int:
        """The median of the posterior, counted from the first block's first record."""
        before = np.zeros(len(outcomes) + 1)
        np.cumsum(self.log_odds[outcomes], out=before[1:])
        # Blocks more than 60 nats below the best cannot move the median, even ten million of them.
        near = np.flatnonzero(before[:-1] >= before.max() - 60 - float(self.partial.max()))
        logs = before[near, None] + self.partial.T[outcomes[near]]
        place = np.append(near[:, None] * self.block + np.array(self.olds[:-1]), len(outcomes) * self.block)
        logs = np.append(logs, before[-1])
        mass = np.cumsum(np.exp(logs - logs.max()))
        return int(place[np.searchsorted(mass, mass[-1] / 2, side="left")])


@dataclass(frozen=True, eq=False)
class BlockDetector:
    """A score and a design, ready to run.

    Guarantees: the noisy sums of all blocks together, hence the answer, meet the notion that the noise was made for.
    """

    score: Score
    design: BlockDesign
    alarm: SuffixAlarm | None = None

    def __post_init__(self) -> None:
        if not self.design.noise.hides(self.score.width):
            raise AssertionError("the noise is narrower than the score")  # a slip of ours, never the user's

    def draw(self, records: Any, n: int, source: RandomSource) -> list[int]:
        """Twice the blocks' noisy sums: private, and all that leaves the data."""
        block = self.design.block
        self.score.check_total(4 * block)
        totals = np.array(totals_of_blocks(records, self.score, block, self.start(n)), dtype=np.int64)
        found: list[int] = (2 * totals + draw_many(self.design.noise, len(totals), source)).tolist()
        return found

    def start(self, n: int) -> int:
        """Where the first block starts: what the blocks do not hold is shared between both ends."""
        return n % self.design.block // 2

    def locate(self, drawn: Sequence[int], n: int) -> int | None:
        """The index, or None for "no change", from twice the noisy sums."""
        outcomes = self.design.laws.bins(np.zeros(len(drawn), dtype=np.int64), np.array(drawn, dtype=np.int64))
        if self.alarm is not None and not self.alarm.fires(outcomes):
            return None
        return self.start(n) + self.design.locate(outcomes)

    def misfits(
        self, released: Integers, n: int, turns: Sequence[int], states: Sequence[str], away: int
    ) -> tuple[str, ...] | None:
        """Hypotheses, "null" and "alternative", that the noisy sums of their stretches do not look like; None: unknown.

        The sum of a hypothesis's blocks has the mean and the variance that its law and the noise give it, and is nearly
        normal, being one of many records; it is too extreme where that probability, both sides, is below 0.001. Of a
        set no member has lower sums than its lowest law, and none higher ones than its highest. Blocks within ``away``
        records of a change are left out: which law they come from is not known.

        Args:
            released: twice the noisy sums.
            n: number of records.
            turns: the indices that were reported.
            states: "null" or "alternative" for each stretch between them.
            away: records on either side of a change that are left out.
        """
        block, score = self.design.block, self.score
        begins = self.start(n) + block * np.arange(len(released))
        ends = [-away, *turns, n + away]
        found, looked = [], False
        bounds = {
            "null": (score.null_law, score.null_high_laws[0]),
            "alternative": ((score.outer_alternative_laws or score.alternative_laws)[0], score.alternative_law),
        }
        for state, laws in bounds.items():
            blocks = np.zeros(len(released), dtype=bool)
            for left, right, label in zip(ends[:-1], ends[1:], states, strict=True):
                if label == state:
                    blocks |= (begins >= left + away) & (begins + block <= right - away)
            many = int(np.count_nonzero(blocks))
            if many * block < _MANY_RECORDS:
                continue
            looked = True
            total = float(np.sum(released[blocks].astype(float))) / 2
            lowest, highest = (self._away(total, many, law) for law in laws)
            if lowest < -_TOO_FAR or highest > _TOO_FAR:
                found.append(state)
        return tuple(found) if looked else None

    def _away(self, total: float, blocks: int, law: Floats) -> float:
        """How many deviations a noisy sum of so many blocks lies above its mean under a law of the score."""
        block, support = self.design.block, self.score.support
        mean = float(law @ support)
        variance = float(law @ (support - mean) ** 2)
        return (total - blocks * block * mean) / math.sqrt(blocks * (block * variance + self.design.noise.variance))

    def nats(self, released: Integers) -> tuple[float, ...]:
        """The noisy sums of clamped log P/Q, in nats."""
        start, step = float(self.design.block * self.score.origin), float(self.score.step) / 2
        return tuple((start + step * released).tolist())
