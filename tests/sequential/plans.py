"""Sequential plans that several tests ask of, each designed once; and a small one of which all is enumerable."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from privatest.hypotheses import make_pair
from privatest.privacy import Notion, Pure, Tulap
from privatest.scores import clamped_score
from privatest.streams import Sequential, SequentialPlan
from privatest.streams.block_schedule import voting_blocks
from privatest.streams.blocks import SumBlocks
from privatest.streams.monitor_plan import AlarmRule, BitBlocks, MonitorPlan
from privatest.streams.sequential_plan import Boundaries

P, Q = "bernoulli(0.3)", "bernoulli(0.7)"


@cache
def coin(epsilon: str = "1", most: int | None = None) -> SequentialPlan:
    """Ber(.3) against Ber(.7), errors of 5%."""
    return Sequential(P, Q, epsilon=Fraction(epsilon), most=most).plan


def small_blocks(epsilon: Fraction, n: int) -> SumBlocks:
    """One step of the lattice and noise of width 1."""
    score = clamped_score(make_pair("bernoulli(0.2)", "bernoulli(0.8)"), (-1, 1), 1)
    return voting_blocks(score, Tulap(epsilon, 1), n, monotone=False)


def price(blocks: SumBlocks | BitBlocks, rows: int | None) -> Notion:
    """The notion that blocks meet for all rows of a person."""
    if isinstance(blocks, BitBlocks):
        return blocks.voter.notion
    loss = blocks.noise.exact_loss(blocks.score.width)
    assert loss is not None
    return Pure(loss * (rows or 1))


def watching(
    blocks: SumBlocks | BitBlocks, rule: AlarmRule, *, notion: Notion | None = None, rows: int | None = None
) -> MonitorPlan:
    """The plan of a monitor with these blocks and this rule; its other promises mean nothing."""
    return MonitorPlan(
        blocks=blocks,
        rule=rule,
        beta=0.1,
        accuracy=1,
        mean_time_between_false_alarms=1.0,
        expected_delay=1.0,
        delay_bound=1,
        null="P",
        alternative="Q",
        notion=price(blocks, rows) if notion is None else notion,
        max_rows_per_unit=rows,
    )


def deciding(
    first: SumBlocks, later: SumBlocks, rule: Boundaries, *, notion: Notion | None = None, rows: int | None = None
) -> SequentialPlan:
    """The plan of a sequential test with these blocks and boundaries; its goals mean nothing."""
    return SequentialPlan(
        first=first,
        later=later,
        rule=rule,
        goal_alpha=0.05,
        goal_beta=0.05,
        fixed_n=9,
        null="P",
        alternative="Q",
        notion=price(later, rows) if notion is None else notion,
        max_rows_per_unit=rows,
    )


def small_plan(epsilon: Fraction, sizes: tuple[int, int], rule: Boundaries, rows: int | None = None) -> SequentialPlan:
    """A plan of blocks of these sizes; with ``rows``, noise for so many rows of a person."""
    first, later = (small_blocks(epsilon / (rows or 1), n) for n in sizes)
    return deciding(first, later, rule, rows=rows)
