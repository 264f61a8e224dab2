r"""Several changes between P and Q: blocks are labelled by penalised dynamic programming on what they released.

Each block votes with an integer g_j, positive where it speaks for Q. Of all ways to label the blocks P or Q, the first
stretch being P, the one with the largest

.. math:: \sum_{j:\, \text{labelled } Q} g_j - \lambda \cdot \text{(number of changes)}

is taken, by Viterbi's recursion in whole numbers; among equal ones the one with the fewest changes. With Lindley's walk
:math:`W_j = \max(W_{j-1} + g_j, 0)` some change is reported exactly when :math:`W_j > 2 \lambda` for some j, or
:math:`W_m > \lambda` at the end: a Markov chain, so that the false-alarm probability is computed. Arguments: proof.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from privatest.changepoint.block_sums import SumsDetector, block_votes
from privatest.changepoint.cusum import LAW_ERROR, Chart
from privatest.changepoint.detector import Located
from privatest.engines import Records
from privatest.numbers import Floats, Integers, first_true

# The largest penalty that is tried: a chain has twice as many states.
_LARGEST_PENALTY = 1_500
# A law that changes by less from one block to the next is taken to be stationary.
_SETTLED = 1e-14
# The largest number of blocks on either side of a change for which its accuracy is computed.
_MOST_REACH = 2_000


@dataclass(frozen=True, eq=False)
class Switches:
    """The votes of blocks and the penalty of a change, with the error probabilities that follow from them.

    Attributes:
        steps: the integer vote of each outcome of a block, positive for the new regime.
        old, new: probabilities of the outcomes when all records of a block are old, or all are new.
        penalty: the cost of a change, in votes.
    """

    steps: Integers
    old: Floats
    new: Floats
    penalty: int

    @classmethod
    def calibrated(cls, steps: Integers, old: Floats, new: Floats, target: float, blocks: int) -> Switches | None:
        """Return the smallest penalty with a false-alarm probability of at most ``target`` over ``blocks`` blocks.

        The result is None if no penalty is large enough, or if the votes of the two regimes do not differ.
        """
        if float(steps @ old) >= 0 or float(steps @ new) <= 0:
            return None
        penalty = first_true(lambda p: cls(steps, old, new, p).false_alarm(blocks) <= target, 0, most=_LARGEST_PENALTY)
        return None if penalty > _LARGEST_PENALTY else cls(steps, old, new, penalty)

    def false_alarm(self, blocks: int) -> float:
        """Return a bound on Pr[some change is reported] if all of this number of blocks are old."""
        chain = self._rising._chain(self.old)
        state, survived = self._rising._from_zero(), 1.0  # the law of W among the walks that have not passed yet
        for left in range(blocks, 0, -1):
            after = state @ chain
            share = float(after.sum())
            after /= share
            settled = float(np.abs(after - state).max()) < _SETTLED
            state = after
            if settled:  # from here on each block takes the same share
                survived *= share**left
                break
            survived *= share
        quiet = survived * float(state[: self.penalty + 1].sum())
        return min(max(1.0 - quiet, 0.0) + LAW_ERROR * blocks, 1.0)

    def missed(self, blocks: int) -> float:
        """Return a bound on the probability that a true change is not reported within this number of blocks of it.

        If a run of old blocks beside the change votes for P by more than two penalties, the best labels are not Q on
        all of the run; likewise on the other side. In between they change, in the right direction.
        """
        missed = self._missed_bounds
        while len(missed) <= blocks and (len(missed) < 2 or missed[-1] > 1e-9):
            for row, (state, chain) in enumerate(self._walks):
                self._walks[row] = state @ chain, chain
            missed.append(min(sum(float(state.sum()) for state, _ in self._walks) + 2 * LAW_ERROR * len(missed), 1.0))
        return missed[min(blocks, len(missed) - 1)]

    def reach(self, beta: float) -> int | None:
        """Return the smallest number of blocks with :meth:`missed` at most beta; None if it is too large."""
        return next((blocks for blocks in range(1, _MOST_REACH) if self.missed(blocks) <= beta), None)

    def labels(self, outcomes: Integers) -> Integers:
        """Return the best labels of the blocks, 0 for P and 1 for Q."""
        votes, penalty = self.steps[outcomes].tolist(), self.penalty
        old, new = 0, -penalty  # the largest value with each last label
        came = np.zeros((len(votes), 2), dtype=np.int8)
        for j, vote in enumerate(votes):
            if j:
                stay, enter, leave, hold = old, old - penalty, new - penalty, new
                old, new = (stay, hold) if stay >= leave else (leave, hold)
                came[j] = (0 if stay >= leave else 1, 1 if hold >= enter else 0)
                new = max(hold, enter)
            new += vote
        labels = np.zeros(len(votes), dtype=np.int64)
        label = 1 if new > old else 0
        for j in range(len(votes) - 1, -1, -1):
            labels[j] = label
            label = int(came[j, label])
        return labels

    @property
    def _rising(self) -> Chart:
        return Chart(self.steps, self.old, self.new, 2 * self.penalty)

    @cached_property
    def _missed_bounds(self) -> list[float]:
        return [1.0]

    @cached_property
    def _walks(self) -> list[tuple[Floats, Floats]]:
        """The walk up on new blocks and the walk down on old ones, each until it passes two penalties."""
        falling = Chart(-self.steps, self.new, self.old, 2 * self.penalty)
        return [(chart._from_zero(), chart._chain(chart.new)) for chart in (self._rising, falling)]


@dataclass(frozen=True, eq=False)
class SeveralDetector(SumsDetector):
    """Locates all changes between P and Q from the noisy sums of blocks (``changes="several"``).

    Guarantees: as private as the noisy sums.

    Attributes:
        score, noise, block: of the noisy sums.
        threshold: the penalty of a change, in votes.
        false_alarm: bound on the probability of any change where there is none.
        monotone: whether votes never rise with a sum, as sets of distributions need.
    """

    monotone: bool = field(default=False)
    kind: ClassVar[str] = "several"

    @cached_property
    def switches(self) -> Switches:
        """The votes of the blocks and the penalty of a change."""
        laws, votes = self.model.laws, block_votes(self.model.laws, monotone=self.monotone)
        return Switches(votes, laws.laws[-1], laws.laws[0], self.threshold or 0)

    def check(self, records: Records) -> None:
        super().check(records)
        _ = self.switches  # laws that cannot be computed are refused before anything is charged

    def missed(self, distances: Integers) -> Floats | None:  # noqa: ARG002 - the curve counts missed changes as failures
        return None

    def locate(self, drawn: Sequence[int], n: int) -> Located:
        """Place each change of the best labels by the median of a posterior.

        The posterior is that given the blocks between the middles of the two stretches beside the change. An index lies
        at most half a block from where the labels change, and after the index before it.
        """
        outcomes = self.outcomes(drawn)
        labels = self.switches.labels(outcomes)
        turns = (np.flatnonzero(np.diff(labels)) + 1).tolist()
        start, block, model = self.start(n), self.block, self.model
        indices: list[int] = []
        for place, turn in enumerate(turns):
            before = turns[place - 1] if place else 0
            after = turns[place + 1] if place + 1 < len(turns) else len(labels)
            low, high = (before + turn) // 2, (turn + after + 1) // 2
            near = outcomes[low:high]
            inside = model.locate(near) if labels[turn] else len(near) * block - model.locate(near[::-1])
            index = low * block + min(max(inside, (turn - low) * block - block // 2), (turn - low) * block + block // 2)
            indices.append(start + max(index, indices[-1] - start + 1 if indices else 0))
        return Located(tuple(indices), int(labels[0]))
