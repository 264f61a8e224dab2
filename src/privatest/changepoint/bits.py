r"""The paper's reduction: a private test on each block, bits z_j = +-1, and the argmin of their suffix sums.

.. math:: \hat k = (\arg\min_{1 \le t \le m} \sum_{j=t}^{m} z_j - 1) \cdot B

The answer's law is computed exactly, for any test with known error rates: z is a random walk that falls after the
change and rises before it, and the argmin is t exactly when the walk stays above on one side and at or above on the
other (Lemma "Solving Bernoulli Change-Point Detection", with constants).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privatest.changepoint.charts import SuffixAlarm
from privatest.changepoint.confidence import FailureCurve
from privatest.decision import PrivateTest
from privatest.engines.protocol import block_ends, counter, indexer, totals_of_blocks
from privatest.fit import FitTest
from privatest.fit.domain import symbols
from privatest.laws.block_laws import first_argmin_law
from privatest.numbers import Floats, Integers
from privatest.privacy import Source
from privatest.privacy.draws import draw_many

__all__ = ["BitDesign", "BitDetector", "fit_bits", "fit_vote", "pair_bits"]


# Blocks on either side whose probabilities are computed one by one; the rest is bounded by what is missing from 1.
_MOST_BLOCKS = 1_500
_MISSING = 1e-12

Bits = Callable[[Any, int, Source], Integers]
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

    def ends(self, n: int) -> range:
        """After how many records blocks are cut."""
        return block_ends(n, self.design.block)

    def locate(self, records: Any, n: int, source: Source) -> int | None:
        """The index, or None for "no change"."""
        bits = self.bits(records, n, source)
        if self.alarm is not None and not self.alarm.fires(np.where(bits < 0, 0, 1)):
            return None
        return self.design.locate(bits)


def pair_bits(test: PrivateTest) -> Bits:
    """The bits of a test of P against Q on blocks of test.n records."""
    noise = test.noise

    def bits(records: Any, n: int, source: Source) -> Integers:  # noqa: ARG001 - the length is the records' own
        totals = np.array(totals_of_blocks(records, test.score, test.n), dtype=np.int64)
        floors = totals + (draw_many(noise, len(totals), source) >> 1)
        # T > cutoff, T = floor + offset, all exact: floor > cutoff - offset
        limit = (test.cutoff - noise.offset).__floor__()
        return np.where(floors > limit, 1, -1).astype(np.int64)

    return bits


def _argmin_law(a: float, b: float, mixed: int, reach: int) -> Floats:
    """Pr[argmin = t] for t = -reach, ..., reach, with block 0 the mixed one, of step g = ``mixed``."""
    ups = np.concatenate([np.full(reach, a), np.full(1, float(mixed == 1)), np.full(reach - 1, 1 - b)])
    return first_argmin_law(ups, before=_ruin(a), after=_ruin(b))


def _ruin(error: float) -> float:
    """Probability that a walk ever falls one below its start, for steps down of this probability."""
    return min(error / (1 - error), 1.0)


def fit_vote(test: FitTest, counts: Integers, source: Source) -> int:
    """The bit of one block, from its histogram: -1 where the test says that the block is new."""
    if test.candidate.grains is not None:
        counts = test.candidate.grains.draw(counts, source)
    noisy = test.candidate.excess.of(counts) + test.noise.draw(source)
    return -1 if noisy > test.cutoff else 1


def fit_bits(test: FitTest) -> Bits:
    """The bits of a goodness-of-fit test on blocks of test.n records."""

    def bits(records: Any, n: int, source: Source) -> Integers:
        votes = []
        cells = test.domain.cells
        records.check(counter(cells))
        found = records.series(indexer(cells), block_ends(n, test.n))
        for first in range(0, n - test.n + 1, test.n):
            counts = np.bincount(found[first : first + test.n], minlength=cells.count + 1)
            votes.append(fit_vote(test, symbols(counts, test.odd_symbol), source))
        return np.array(votes, dtype=np.int64)

    return bits
