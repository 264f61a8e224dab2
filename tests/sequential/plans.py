"""Sequential plans that several tests ask of, each designed once; and a small one of which all is enumerable."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from privatest.hypotheses import make_pair
from privatest.privacy import Tulap
from privatest.scores import clamped_score
from privatest.streams import Sequential, SequentialPlan
from privatest.streams.schedule import voting_blocks
from privatest.streams.sequential_plan import Boundaries
from privatest.streams.stream import SumBlocks

P, Q = "bernoulli(0.3)", "bernoulli(0.7)"


@cache
def coin(epsilon: str = "1", most: int | None = None) -> SequentialPlan:
    """Ber(.3) against Ber(.7), errors of 5%."""
    return Sequential(P, Q, epsilon=Fraction(epsilon), most=most).plan


def small_blocks(epsilon: Fraction, n: int) -> SumBlocks:
    """One step of the lattice and noise of width 1."""
    score = clamped_score(make_pair("bernoulli(0.2)", "bernoulli(0.8)"), (-1, 1), 1)
    return voting_blocks(score, Tulap(epsilon, 1), n, monotone=False)


def small_plan(epsilon: Fraction, sizes: tuple[int, int], rule: Boundaries, rows: int | None = None) -> SequentialPlan:
    """A plan of blocks of these sizes; with ``rows``, noise for so many rows of a person."""
    first, later = (small_blocks(epsilon / (rows or 1), n) for n in sizes)
    return SequentialPlan(first, later, rule, 0.05, 0.05, 9, "P", "Q", max_rows_per_unit=rows)
