r"""Noisy sums of blocks, from which a change is located and which tell whether there was one (method "blocks").

Each block of B records releases T_j, the total of its scores plus noise that meets the notion. A record lies in one
block, so all sums together cost what one sum costs, and everything that is computed from them is free. If the first r
records of block t are old and the rest new, the released sums have log-likelihood

.. math:: \sum_{j < t} \log f_B(T_j) + \log f_r(T_t) + \sum_{j > t} \log f_0(T_j)

where f_r is the exact law of the noisy total of r old and B - r new records. The index is the median of the posterior
under a uniform prior over positions, which errs less than the most likely position does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from privatest.changepoint.cusum import SuffixAlarm
from privatest.changepoint.detector import (
    CONFIDENCE,
    BlocksDetector,
    FailureCurve,
    Located,
    ScoredDetector,
    upper_bounds,
    worst_of,
)
from privatest.engines import Records
from privatest.engines.records import totals_of_blocks
from privatest.errors import InvalidDocument
from privatest.laws.block_laws import BlockLaws, ScoreLaw
from privatest.numbers import Floats, Integers
from privatest.privacy import Noise, Notion, RandomSource
from privatest.privacy.bulk_draws import draw_many
from privatest.scores import Score

VOTE_UNIT = 1 / 16
"""Votes of blocks are log-likelihood ratios in units of so many nats."""
LARGEST_VOTE = 40.0
"""The largest vote, in nats."""


def law_of(score: Score) -> ScoreLaw:
    """Return the law of a score under P and under Q; for sets of distributions, the worst laws."""
    return ScoreLaw(score.support, score.null_law, score.alternative_law, score.width)


def block_votes(laws: BlockLaws, unit: float = VOTE_UNIT, *, monotone: bool = False) -> Integers:
    """Return the vote of each outcome of a block: its log-likelihood ratio of new against old, as an integer.

    Args:
        laws: the laws of a block's noisy total; the first is that of new blocks, the last that of old ones.
        unit: of the votes, in nats.
        monotone: whether votes must not rise with the total, as sets of distributions need.
    """
    nats = np.clip(laws.log_laws[0] - laws.log_laws[-1], -LARGEST_VOTE, LARGEST_VOTE)
    votes: Integers = np.rint(nats / unit).astype(np.int64)
    return np.minimum.accumulate(votes) if monotone else votes


# The number of positions within a block between which the posterior distinguishes.
_SUBDIVISIONS = 12
# The mass of a side must stay below this share of the window's mass. The rest is for what lies beyond the simulated
# blocks.
_SHARE = 0.99
_ROWS = 1_000
# The number of places of k* within a block that are simulated, and of blocks on either side in a rough simulation.
_PHASES = 6
_ROUGH_SIDE = 12
# If fewer failures than this are expected in a simulation, bounds are computed instead.
_FEWEST_EXPECTED = 15
_SEED = 20_181_128
# The sum of this many records is nearly normal; a normal number is further away than _TOO_FAR with probability 0.001.
_MANY_RECORDS = 30
_TOO_FAR = 3.2905267314919255


@dataclass(frozen=True, eq=False)
class SumsModel:
    """The law of a score, the noise and the length of a block, on which the accuracy depends."""

    law: ScoreLaw
    noise: Noise
    block: int

    @cached_property
    def olds(self) -> tuple[int, ...]:
        """The numbers r of old records in a block, from 0 to the block's length, for which laws are computed."""
        parts = min(self.block, _SUBDIVISIONS)
        return tuple(sorted({round(c * self.block / parts) for c in range(parts + 1)}))

    @cached_property
    def laws(self) -> BlockLaws:
        """The laws of the noisy total for each number of old records in ``olds``."""
        return BlockLaws.of(self.law, self.noise, self.block, self.olds)

    @cached_property
    def _truths(self) -> BlockLaws:
        """The laws for simulated numbers of old records in the block of k*: some of ``olds``, and middles."""
        between = {(a + b) // 2 for a, b in zip(self.olds, self.olds[1:], strict=False)}
        counts = {*self.olds[:-1], *between}
        chosen = sorted(counts)[:: max(len(counts) // _PHASES, 1)]
        return BlockLaws.of(self.law, self.noise, self.block, chosen)

    @cached_property
    def log_odds(self) -> Floats:
        """The evidence of each outcome that all records of its block are old: log f_B/f_0."""
        odds: Floats = self.laws.log_laws[-1] - self.laws.log_laws[0]
        return odds

    @cached_property
    def partial(self) -> Floats:
        """The evidence of each outcome for r old records, log f_r/f_0, for every r < B in ``olds``."""
        odds: Floats = self.laws.log_laws[:-1] - self.laws.log_laws[0]
        return odds

    @property
    def slack(self) -> int:
        """The largest number of records at either end that lie in no block."""
        return self.block // 2

    @cached_property
    def votes(self) -> tuple[Integers, Floats, Floats]:
        """The vote of each outcome of a block, and the probabilities of the outcomes in old and in new blocks."""
        return block_votes(self.laws), self.laws.laws[-1], self.laws.laws[0]

    def missed(self, alarm: SuffixAlarm, distances: Integers) -> Floats:
        """Bound on Pr["no change"] for changes at least this far from the end of the series."""
        return alarm.missed(np.maximum(distances - self.slack, 0) // self.block)

    def failures(self, beta: float, runs: int, seed: int = _SEED) -> FailureCurve:
        """Bounds on the error of the index for the worst place of k* in its block.

        They come from simulations of the blocks' laws or, where simulations are too few, from affinities. In a
        simulation a distance a counts as exceeded unless the window around k* outweighs either side even if ``slack``
        of its records are missing. So the bound holds for series of any length with k* at least a from both ends.
        """
        side = self._side(beta)
        distances = self._distances(side)
        certain = self._by_affinity(distances)
        if runs * beta < _FEWEST_EXPECTED:
            return FailureCurve(distances, certain)
        rng = np.random.default_rng(seed)
        rows = range(len(self._truths.olds))
        rough = {row: self._simulate(self._truths, row, side, distances, max(runs // 10, 200), rng) for row in rows}
        # The two places that are worst in short simulations get all runs.
        worst = sorted(rows, key=lambda row: -float(np.sum(rough[row])))[:2]
        curves = []
        for row in worst:
            means = self._simulate(self._truths, row, side, distances, runs, rng)
            confidence = 1 - (1 - CONFIDENCE) / len(rows)
            bounds = upper_bounds(means, runs, confidence) + beta / 1000
            curves.append(FailureCurve(distances, np.minimum(bounds, certain), runs))
        return worst_of(curves)

    def _by_affinity(self, distances: Integers) -> Floats:
        r"""Bounds without simulation: a side outweighs the window only if the sum of its
        :math:`\sqrt{w_k/w_{k_0}}` exceeds :math:`\sqrt{0.99}`, k_0 the candidate next to k*.

        The means of these roots are products: the affinity for each whole block in between, and a factor for the
        block of k*.
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
        """Return an approximation of :meth:`failures` to compare designs, with k* amid its block, the hardest place."""
        side = min(self._side(beta), _ROUGH_SIDE)
        distances = self._distances(side)
        rng = np.random.default_rng(seed)
        means = self._simulate(self.laws, len(self.olds) // 2, side, distances, runs, rng)
        return FailureCurve(distances, means, runs)

    @cached_property
    def _affinity(self) -> float:
        return min(max(self.laws.affinity(0, len(self.olds) - 1), 1e-12), 1 - 1e-9)

    def _side(self, beta: float) -> int:
        r"""The number of blocks to simulate on either side: what lies beyond changes the failure by at most beta/1000.

        Pr[mass beyond > 1% of k*'s] <= 10 sum of E sqrt(w_k/w_k*), geometric with the affinity of a block's two laws.
        """
        goal = 1e4 * 2 * len(self.olds) / (beta * (1 - self._affinity))
        return min(max(math.ceil(math.log(goal) / -math.log(self._affinity)), 4), 400)

    def _distances(self, side: int) -> Integers:
        """Distances for the curve: multiples of 1/16 of a block within the simulated blocks, sparser far out."""
        step = max(self.block // 16, 1)
        grid, reach = [0], side * self.block
        while grid[-1] < reach:
            grid.append(grid[-1] + max(step, grid[-1] // (20 * step) * step))
        return np.array(grid, dtype=np.int64)

    def _simulate(
        self, truths: BlockLaws, row: int, side: int, distances: Integers, runs: int, rng: np.random.Generator
    ) -> Floats:
        """The share of runs with an error above each distance, for a k* that lies truths.olds[row] into its block."""
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
        """Return the candidate positions, counted from the first record of the first block."""
        inner = np.arange(blocks, dtype=np.int64)[:, None] * self.block + np.array(self.olds[:-1], dtype=np.int64)
        return np.append(inner.ravel(), blocks * self.block)

    def _posterior(self, outcomes: Integers) -> Floats:
        """Return the posterior weights of the candidate positions, the largest being 1, for each row of outcomes."""
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
        """Return the median of the posterior, counted from the first record of the first block."""
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
class SumsDetector(BlocksDetector, ScoredDetector):
    """Locates a change from the noisy sums of blocks (method "blocks").

    Guarantees: the noisy sums of all blocks together, hence the answer, meet the notion that the noise was made for.

    Attributes:
        score, noise: of a record, and of a block's total.
        block: records in a block.
        threshold, false_alarm: as for :class:`SuffixAlarm`; None if the answer always names a change.
    """

    score: Score
    noise: Noise
    block: int
    threshold: int | None = None
    false_alarm: float | None = None
    kind: ClassVar[str] = "blocks"

    def __post_init__(self) -> None:
        if not self.noise.hides(self.score.width) or self.block < 1:
            raise InvalidDocument(f"The noise of the blocks does not hide scores of width {self.score.width}.")

    @classmethod
    def of(cls, score: Score, noise: Noise, block: int, false_alarm: float | None) -> SumsDetector:
        """Return the detector whose threshold keeps the probability of a false alarm at most ``false_alarm``."""
        if false_alarm is None:
            return cls(score, noise, block)
        alarm = SuffixAlarm.calibrated(*SumsModel(law_of(score), noise, block).votes, false_alarm, None)
        return cls(score, noise, block, alarm.threshold, alarm.false_alarm)

    @cached_property
    def model(self) -> SumsModel:
        """The laws of the noisy sums."""
        return SumsModel(law_of(self.score), self.noise, self.block)

    def meets(self, notion: Notion) -> bool:
        return self.noise.meets(notion, self.score.width)

    def draw(self, records: Records, n: int, source: RandomSource) -> list[int]:
        """Draw twice the noisy sum of each block."""
        self.score.check_total(4 * self.block)
        totals = np.array(totals_of_blocks(records, self.score, self.block, self.start(n)), dtype=np.int64)
        drawn: list[int] = (2 * totals + draw_many(self.noise, len(totals), source)).tolist()
        return drawn

    def start(self, n: int) -> int:
        """The first record of the first block. The records that no block holds lie in equal numbers at both ends."""
        return n % self.block // 2

    def outcomes(self, drawn: Sequence[int]) -> Integers:
        """Return the bin of each noisy sum, given twice the sums."""
        return self.model.laws.bins(np.zeros(len(drawn), dtype=np.int64), np.array(drawn, dtype=np.int64))

    def locate(self, drawn: Sequence[int], n: int) -> Located:
        outcomes = self.outcomes(drawn)
        if self.alarm is not None and not self.alarm.fires(outcomes):
            return Located(())
        return Located((self.start(n) + self.model.locate(outcomes),))

    def misfits(
        self, released: Integers, n: int, turns: Sequence[int], states: Sequence[str], away: int
    ) -> tuple[str, ...] | None:
        """Return the hypotheses, "null" or "alternative", that the noisy sums of their stretches do not fit.

        The result is None if there are too few sums. The sum of a hypothesis's blocks is nearly normal, with a mean
        and a variance that follow from its law and the noise. It does not fit if the two-sided probability of so
        extreme a sum is below 0.001. For a set, sums are compared with its lowest and its highest law. Blocks within
        ``away`` records of a change are left out, because it is not known which law they come from.

        Args:
            released: twice the noisy sums.
            n: number of records.
            turns: the indices that were reported.
            states: "null" or "alternative" for each stretch between them.
            away: records on either side of a change that are left out.
        """
        block, score = self.block, self.score
        begins = self.start(n) + block * np.arange(len(released))
        ends = [-away, *turns, n + away]
        sentences, looked = [], False
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
                sentences.append(state)
        return tuple(sentences) if looked else None

    def _away(self, total: float, blocks: int, law: Floats) -> float:
        """Return the standard deviations by which a noisy sum of blocks exceeds its mean under a law of the score."""
        block, support = self.block, self.score.support
        mean = float(law @ support)
        variance = float(law @ (support - mean) ** 2)
        return (total - blocks * block * mean) / math.sqrt(blocks * (block * variance + self.noise.variance))

    def nats(self, released: Integers) -> tuple[float, ...]:
        """Return the noisy sums of clamped log P/Q in nats, given twice the sums in steps of the lattice."""
        start, step = float(self.block * self.score.origin), float(self.score.step) / 2
        return tuple((start + step * released).tolist())
