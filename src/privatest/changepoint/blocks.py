r"""Where did the change happen, from what blocks of records released: noisy sums, or the bits of private tests.

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

from privatest.changepoint.charts import SuffixAlarm
from privatest.changepoint.confidence import CONFIDENCE, FailureCurve, upper_bounds, worst_of
from privatest.engines.protocol import totals_of_blocks
from privatest.laws.block_laws import BlockLaws, ScoreLaw, first_argmin_law
from privatest.numbers import Floats, Integers
from privatest.privacy import Noise, Source
from privatest.privacy.draws import draw_many
from privatest.scores import Score

__all__ = ["BitDesign", "BitDetector", "BlockDesign", "BlockDetector"]


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

    def draw(self, records: Any, n: int, source: Source) -> list[int]:
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

    def draw(self, records: Any, n: int, source: Source) -> list[int]:
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

    def misfits(self, released: Integers, n: int, index: int | None, away: int) -> tuple[str, ...] | None:
        """Sides of the index, "before" and "after", whose noisy sums are too extreme for P, or for Q; None: unknown.

        A side's sum has the mean and the variance that its law and the noise give it, and is nearly normal, being one
        of many records; it is too extreme where that probability, both sides, is below 0.001. Blocks within ``away``
        records of the index are left out: which law they come from is not known.

        Args:
            released: twice the noisy sums.
            n: number of records.
            index: what :meth:`locate` gave.
            away: records on either side of it that are left out.
        """
        block, score = self.design.block, self.score
        if len(score._every_law()) > 2:  # of sets there is no one law to compare with
            return None
        begins = self.start(n) + block * np.arange(len(released))
        old = begins + block <= (n if index is None else index - away)
        new = np.zeros(len(released), dtype=bool) if index is None else begins >= index + away
        found, looked = [], False
        for side, blocks, law in (("before", old, score.null_law), ("after", new, score.alternative_law)):
            many = int(np.count_nonzero(blocks))
            if many * block < _MANY_RECORDS:
                continue
            looked = True
            mean = float(law @ score.support)
            variance = float(law @ (score.support - mean) ** 2)
            spread = math.sqrt(many * (block * variance + self.design.noise.variance))
            total = float(np.sum(released[blocks].astype(float))) / 2
            if abs(total - many * block * mean) > _TOO_FAR * spread:
                found.append(side)
        return tuple(found) if looked else None

    def nats(self, released: Integers) -> tuple[float, ...]:
        """The noisy sums of clamped log P/Q, in nats."""
        start, step = float(self.design.block * self.score.origin), float(self.score.step) / 2
        return tuple((start + step * released).tolist())
