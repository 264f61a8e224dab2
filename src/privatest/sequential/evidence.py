r"""Evidence for Q against P in what a block releases: integer log e-values.

The likelihood ratio of a noisy total has mean 1 under P, so it is an e-value, the one that grows fastest under Q. Here
totals are binned and logarithms rounded down to ``1/PARTS`` of a nat, which only makes the mean smaller:

.. math:: \sum_b (p_b + \delta) e^{v_b / \text{PARTS}} \le 1

with :math:`\delta` more than the error of a computed probability. Argument: proof.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privatest.changepoint.sum_blocks import SumBlocks
from privatest.laws.block_laws import BlockLaws, ScoreLaw
from privatest.numbers import Floats, Integers
from privatest.privacy import Noise
from privatest.scores import Score

__all__ = ["ERROR", "PARTS", "Table", "VoteLaw", "VoteLaws", "block_votes", "mean_bound", "vote_laws"]

PARTS = 128
"""Votes are log e-values in so many parts of a nat."""
ERROR = 1e-9
"""More than the error of a bin's computed probability: windows leave out 1e-10, transforms err by 1e-15."""
LARGEST = 30.0
"""Nats that one block can speak for Q or against it."""
_POOLED = 1e-4


class VoteLaw(NamedTuple):
    """The law of an integer: its least value, and the probabilities from there on."""

    least: int
    masses: Floats

    @classmethod
    def of(cls, values: Integers, masses: Floats) -> VoteLaw:
        """The law of values that have these probabilities, in any order and more than once."""
        least = int(values.min())
        return cls(least, np.bincount(values - least, weights=masses).astype(np.float64))


class VoteLaws(NamedTuple):
    """The laws of a block's vote under P and under Q, and the bound on the mean of its e-value under P."""

    null: VoteLaw
    alternative: VoteLaw
    mean: float


def mean_bound(masses: Floats, votes: Integers, parts: int) -> float:
    """An upper bound on the mean of e^(vote/parts), for bins of these computed probabilities."""
    return float((masses + ERROR) @ np.exp(votes / parts))


class Table(NamedTuple):
    """What a block votes: ``first``, ``bin_width`` and ``votes`` as :class:`SumBlocks` has them.

    Attributes:
        null, alternative: the bins' probabilities under P and under Q.
    """

    first: int
    bin_width: int
    votes: Integers
    null: Floats
    alternative: Floats

    def blocks(self, score: Score, noise: Noise, n: int) -> SumBlocks:
        """Blocks of n records that vote so."""
        return SumBlocks(score, noise, n, self.first, self.bin_width, self.votes)


def block_votes(law: ScoreLaw, noise: Noise, n: int, *, monotone: bool, parts: int = PARTS) -> Table:
    """The bins of a block of n records, and the vote of each: positive for Q.

    Totals that are so low that Q has them with probability ``_POOLED`` at most are one bin, and so are those so high
    that P does: beyond, likelihoods would be no more than rounding.

    Guarantees: :func:`mean_bound` under P is at most 1. ``monotone``: votes never rise with the total, so that the mean
    is at most 1 under every law of the scores that is stochastically higher than P's.
    """
    laws = BlockLaws.of(law, noise, n, (0, n))
    q, p = laws.laws
    low = min(int(np.searchsorted(np.cumsum(q), _POOLED)), len(q) - 2)
    high = max(int(np.searchsorted(np.cumsum(p[::-1]), _POOLED)), 0)
    high = max(len(p) - 1 - high, low + 1)
    edges = np.concatenate([[0], np.arange(low + 1, high + 1)])
    q, p = (np.add.reduceat(masses, edges) for masses in (q, p))
    with np.errstate(divide="ignore"):
        nats = np.log(q) - np.log(p + ERROR)
    votes: Integers = np.floor(np.clip(nats, -LARGEST, LARGEST) * parts).astype(np.int64)
    if monotone:
        votes = np.minimum.accumulate(votes)
    while mean_bound(p, votes, parts) > 1:  # rounding in the last digits, where nothing was rounded down
        votes = votes - 1
    return Table(laws.first + low * laws.bin_width, laws.bin_width, votes, p, q)


def vote_laws(score: Score, blocks: SumBlocks, parts: int = PARTS) -> VoteLaws:
    """What the votes of a block do under P and under Q, from the block's own table, whoever made it."""
    law = ScoreLaw(score.support, score.null_law, score.alternative_law, score.width)
    dense = BlockLaws.of(law, blocks.noise, blocks.block, (0, blocks.block), bin_width=1)
    votes = blocks.votes(2 * dense.values)
    q, p = dense.laws
    bins = np.clip((dense.values - blocks.first) // blocks.bin_width + 1, 0, len(blocks.table) - 1)
    inside = np.bincount(bins, weights=p, minlength=len(blocks.table)).astype(np.float64)
    return VoteLaws(VoteLaw.of(votes, p), VoteLaw.of(votes, q), mean_bound(inside, blocks.table, parts))
