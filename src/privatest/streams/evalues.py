r"""e-values: the evidence of a block for Q against P, products and averages of e-values, and discoveries.

The vote of a block is an integer log e-value. The likelihood ratio of a noisy total has mean 1 under P, so it is an
e-value, and the one that grows fastest under Q. Totals are binned and logarithms are rounded down to ``1/PARTS`` of a
nat, which only reduces the mean:

.. math:: \sum_b (p_b + \delta) e^{v_b / \text{PARTS}} \le 1

where :math:`\delta` exceeds the error of a computed probability. The proof is in proof.md.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from privatest import numbers
from privatest.errors import InvalidInput, shown
from privatest.laws.block_laws import BlockLaws, ScoreLaw
from privatest.numbers import Floats, Integers
from privatest.privacy import Noise
from privatest.scores import Score

if TYPE_CHECKING:
    from privatest.streams.blocks import SumBlocks


PARTS = 128
"""Votes are log e-values in 1/128 of a nat."""
ERROR = 1e-9
"""A bound on the error of a bin's computed probability: windows leave out 1e-10, transforms err by 1e-15."""
LARGEST = 30.0
"""The largest evidence of one block for Q or against it, in nats."""
_POOLED = 1e-4


class VoteLaw(NamedTuple):
    """The law of an integer: its least value, and the probabilities from there on."""

    least: int
    masses: Floats

    @classmethod
    def of(cls, values: Integers, masses: Floats) -> VoteLaw:
        """Return the law of values with these probabilities; values may be in any order and repeated."""
        least = int(values.min())
        return cls(least, np.bincount(values - least, weights=masses).astype(np.float64))


class VoteLaws(NamedTuple):
    """The laws of a block's vote under P and under Q, and the bound on the mean of its e-value under P."""

    null: VoteLaw
    alternative: VoteLaw
    mean: float


def mean_bound(masses: Floats, votes: Integers, parts: int) -> float:
    """Return an upper bound on the mean of e^(vote/parts), for bins with these computed probabilities."""
    return float((masses + ERROR) @ np.exp(votes / parts))


class VoteTable(NamedTuple):
    """The bins of a block's totals with their votes.

    Attributes:
        first, bin_width, votes: as for :class:`SumBlocks`.
        null, alternative: the probabilities of the bins under P and under Q.
    """

    first: int
    bin_width: int
    votes: Integers
    null: Floats
    alternative: Floats


def block_votes(law: ScoreLaw, noise: Noise, n: int, *, monotone: bool, parts: int = PARTS) -> VoteTable:
    """Return the bins of a block of n records and the vote of each bin, which is positive for Q.

    The lowest totals, which have probability ``_POOLED`` or less under Q, are one bin, and so are the highest ones
    under P, because likelihoods there would consist of rounding errors.

    Guarantees: :func:`mean_bound` under P is at most 1. With ``monotone`` votes never rise with the total, so that the
    mean is at most 1 under every law of the scores that is stochastically higher than P's.
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
    while mean_bound(p, votes, parts) > 1:  # because of rounding in the last digits
        votes = votes - 1
    return VoteTable(laws.first + low * laws.bin_width, laws.bin_width, votes, p, q)


def vote_laws(score: Score, blocks: SumBlocks, parts: int = PARTS) -> VoteLaws:
    """Return the laws of a block's votes under P and under Q, computed from the block's own table."""
    law = ScoreLaw(score.support, score.null_law, score.alternative_law, score.width)
    dense = BlockLaws.of(law, blocks.noise, blocks.block, (0, blocks.block), bin_width=1)
    votes = np.array(blocks.votes((2 * dense.values).tolist()), dtype=np.int64)
    q, p = dense.laws
    bins = np.clip((dense.values - blocks.first) // blocks.bin_width + 1, 0, len(blocks.table) - 1)
    inside = np.bincount(bins, weights=p, minlength=len(blocks.table)).astype(np.float64)
    return VoteLaws(VoteLaw.of(votes, p), VoteLaw.of(votes, q), mean_bound(inside, blocks.table, parts))


def combine_evalues(values: Iterable[float] | Mapping[Any, float], *, dependent: bool = False) -> float:
    """Combine several e-values of one null hypothesis into one: their product or, with ``dependent``, their average.

    Guarantees: the mean under the null is at most 1 if that of each value is. For the product the values must come from
    independent records, or each from later records than the others, as in a :class:`Sequential`; for the average
    (``dependent=True``) they may depend on one another.

    Args:
        values: e-values: ``run.evalue``, ``release.evalue``; in a list, or by name in a mapping.
        dependent: whether they may depend on one another, as for two questions about the same records.

    >>> combine_evalues([4, 0.5, 3]), combine_evalues([4, 0.5, 3], dependent=True)
    (6.0, 2.5)
    """
    if not isinstance(dependent, bool | np.bool_):
        raise InvalidInput(f"dependent={shown(dependent)} must be True or False.")
    evalues = [_evalue(value) for value in _listed(values.values() if isinstance(values, Mapping) else values)]
    if not evalues:
        raise InvalidInput("values is empty: there is nothing to combine.")
    if dependent:
        return math.fsum(value / len(evalues) for value in evalues)
    if 0.0 in evalues or math.inf in evalues:
        return 0.0 if 0.0 in evalues else math.inf
    # Invariant: the product so far is share * 2^power with 1/2 <= share < 1, so that no partial product overflows.
    share, power = 0.5, 1
    for value in evalues:
        mantissa, exponent = math.frexp(value)
        share, more = math.frexp(share * mantissa)
        power += exponent + more
    return sys.float_info.max if power > sys.float_info.max_exp else math.ldexp(share, power)  # rounded down


def evalue_discoveries(values: Any, *, alpha: float) -> tuple[Any, ...]:
    """Return which null hypotheses to reject so that the false discovery rate is at most alpha.

    This is the e-Benjamini-Hochberg procedure (Wang and Ramdas 2022). Of K values it rejects the k largest, for the
    largest k whose k-th largest value is at least K/(alpha k).

    Guarantees: the expected share of true nulls among the rejected ones (0 if there are none) is at most alpha, however
    the e-values depend on one another.

    Args:
        values: e-values, in a list or by name in a mapping.
        alpha: the bound on the false discovery rate.

    The result has the positions in the list, in order, or the names in the mapping's order.

    >>> evalue_discoveries([90, 0.3, 50, 2], alpha=0.05)
    (0, 2)
    >>> evalue_discoveries({"north": 90, "south": 3}, alpha=0.05)
    ('north',)
    """
    alpha = float(numbers.probability(alpha=alpha))
    named = dict(values) if isinstance(values, Mapping) else dict(enumerate(_listed(values)))
    evalues = {name: _evalue(value) for name, value in named.items()}
    ranked = sorted(evalues.values(), reverse=True)
    count = max((k for k, value in enumerate(ranked, 1) if value * alpha * k >= len(ranked)), default=0)
    return tuple(name for name, value in evalues.items() if count and value >= ranked[count - 1])


def _listed(values: Any) -> list[Any]:
    flat = isinstance(values, Iterable) and not (isinstance(values, np.ndarray) and values.ndim != 1)
    if isinstance(values, (str, bytes)) or not flat:
        raise InvalidInput(f"values={shown(values)} must be a list of e-values.")
    if isinstance(values, (set, frozenset)):
        raise InvalidInput("values must be a list of e-values: a set drops equal ones.")
    return list(values)


def _evalue(value: Any) -> float:
    try:
        evalue = float(value)
    except (TypeError, ValueError, OverflowError):
        evalue = math.nan
    if not evalue >= 0 or isinstance(value, (str, bytes)):
        raise InvalidInput(
            f"values: {shown(value)} is no e-value: it must be a number of at least 0. (The release of a test that is "
            "not private has none.)"
        )
    return evalue
