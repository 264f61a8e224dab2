"""From P and Q (or P and a distance) to a monitor's design: block, votes and threshold chosen by computed delay."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privatest.changepoint.blocks import BlockDesign
from privatest.changepoint.charts import LONGEST_INTERVAL, MOST_BLOCKS, Chart, Majority, Mixed, recommended_interval
from privatest.changepoint.detectors import Clamp, Problem, block_test, law_of, paper_test
from privatest.changepoint.watch import Cusum, FitBlocks, Intervals, SumBlocks, Watch
from privatest.decision import PrivateTest
from privatest.errors import Infeasible
from privatest.hypotheses import Pair
from privatest.hypotheses.question import Question
from privatest.laws.block_laws import BlockLaws
from privatest.numbers import Floats, Integers, Number
from privatest.privacy import Notion, Pure, as_notion, canonical_noise
from privatest.privacy.asked import budget_word, told

__all__ = ["Targets", "pair_watch", "unknown_watch"]


# False alarms are this many times as far apart as records are needed to tell P from Q, unless asked otherwise.
DEFAULT_RARITY = 1_000
# Blocks to try, in units of the block that tells P from Q by three deviations.
_FACTORS = (0.08, 0.12, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0)
_FIRST_FACTOR = 0.35
# Votes are log-likelihood ratios in sixteenths of a nat, finer where blocks say little.
_UNIT, _FINEST_UNIT, _UNITS_PER_DEVIATION = 1 / 16, 1 / 128, 8
_LARGEST_VOTE = 40.0
# Error rates of the goodness-of-fit tests to try.
_ERRORS = (1 / 3, 1 / 6, 0.05)
_OFFSETS = 17


@dataclass(frozen=True)
class Targets:
    """What was asked: beta, records between false alarms, blocks in an interval; None for both: as computed."""

    beta: float
    records: float | None
    interval: int | None

    def between(self, enough: float) -> float:
        """Records between false alarms, where ``enough`` records tell P from Q."""
        if self.records is not None:
            return self.records
        return float(f"{DEFAULT_RARITY * max(enough, 1.0):.1e}")


def pair_watch(asked: Pair | Question, privacy: Notion | Number, method: str, targets: Targets) -> Watch:
    """The monitor of a method for a known alternative, or for sets of distributions; a number is an epsilon.

    Guarantees, of sets: the scores' laws are the worst of the sets and votes never rise with a block's sum, so that the
    time between false alarms is at least the stated one, and the delay at most, whatever the members are.
    """
    notion = as_notion(privacy)
    problem = Problem.of(asked, notion)
    names = asked.null.describe(), asked.alternative.describe()
    records = targets.between(problem.natural_block(problem.clamps[0]))
    if method == "paper":
        test = paper_test(problem)
        return _by_majority(_bit_blocks(test), test.alpha, test.beta, targets, records, names, notion)
    clamp, block = _best(problem, records)
    score = problem.score(clamp)
    design = BlockDesign(law_of(score), canonical_noise(notion, score.width), block)
    laws = design.laws
    votes = _votes(laws)
    if problem.question is not None:
        votes = np.minimum.accumulate(votes)
    chart = _calibrated(votes, laws.laws[-1], laws.laws[0], records, block, notion)
    mixed = [Mixed(old, law) for old, law in zip(laws.olds[:-1], laws.laws[:-1], strict=True)]
    blocks = SumBlocks(score, design.noise, block, laws.first, laws.bin_width, votes)
    return _by_chart(blocks, chart, mixed, targets, names, notion)


def unknown_watch(null: Any, distance: float, privacy: Notion | Number, method: str, targets: Targets) -> Watch:
    """The monitor of a method for an unknown alternative, at least ``distance`` away in total variation.

    Guarantees: the errors of new blocks are at most the test's, whatever the new law is; delay and accuracy are
    computed at the largest errors, at which they are worst.
    """
    notion = as_notion(privacy)
    tests = [block_test(null, distance, notion, error) for error in (_ERRORS if method == "cusum" else _ERRORS[:1])]
    records = targets.between(tests[0].n)
    names = tests[0].domain.null, f"any law at distance {distance!r} or more"
    if method == "paper":
        test = tests[0]
        return _by_majority(FitBlocks(test, -1, 1), test.alpha, test.beta, targets, records, names, notion)
    charts = []
    for test in tests:
        old, new = np.array([test.alpha, 1 - test.alpha]), np.array([1 - test.beta, test.beta])
        votes = _bit_votes(test.alpha, test.beta)
        charts.append(_calibrated(votes, old, new, records, test.n, notion))
    test, chart = min(zip(tests, charts, strict=True), key=lambda one: _delay(one[1], one[0].n))
    offsets = np.unique(np.linspace(0, test.n - 1, min(test.n, _OFFSETS)).astype(np.int64)).tolist()
    mixed = [Mixed(old, law) for old in offsets for law in np.eye(2)]
    return _by_chart(FitBlocks(test, int(chart.votes[1]), int(chart.votes[0])), chart, mixed, targets, names, notion)


def _by_chart(
    blocks: SumBlocks | FitBlocks,
    chart: Chart,
    mixed: Iterable[Mixed],
    targets: Targets,
    names: tuple[str, str],
    notion: Notion,
) -> Watch:
    block, beta = blocks.block, targets.beta
    accuracy = chart.accuracy(beta, block, list(mixed))
    if accuracy is None:
        raise Infeasible(
            f"No distance is exceeded with probability at most beta={beta:g} at {told(notion)} by the "
            f"index of the alarm. Use a larger {budget_word(notion)} or beta."
        )
    between = block * chart.blocks_between_false_alarms
    late = block - 1 + block * chart.blocks_within(beta)
    return Watch(
        blocks, Cusum(chart.threshold), "cusum", beta, accuracy, between, _delay(chart, block), late, None, *names,
        notion=_other(notion),
    )  # fmt: skip


def _other(notion: Notion) -> Notion | None:
    """The notion, where it is not epsilon alone."""
    return None if isinstance(notion, Pure) else notion


def _delay(chart: Chart, block: int) -> float:
    """Records after k*: the rest of its block, then whole blocks from W = 0."""
    return block - 1 + block * chart.blocks_to_alarm


def _by_majority(
    blocks: SumBlocks | FitBlocks,
    alpha: float,
    beta: float,
    targets: Targets,
    records: float,
    names: tuple[str, str],
    notion: Notion,
) -> Watch:
    block = blocks.block
    recommended = recommended_interval(block, alpha, beta, targets.beta, records)
    interval = targets.interval or recommended
    if interval is None:
        raise Infeasible(
            f"mean_time_between_false_alarms={records:g} would take intervals of more than {LONGEST_INTERVAL} blocks. "
            "Ask for less, or use method='cusum'."
        )
    rule = Majority(interval, block, alpha, beta)
    accuracy = rule.accuracy(targets.beta)
    if accuracy is None or rule.time_between_false_alarms < records:
        between = rule.time_between_false_alarms
        smallest = "" if recommended is None else f" The smallest interval that does is {recommended}."
        raise Infeasible(
            f"interval={interval} blocks of {block} records cannot have false alarms {records:g} records apart and an "
            f"index that is good with probability {1 - targets.beta:g}: false alarms come every {between:.4g} records, "
            f"and a change is missed by an interval with probability {rule.missed:.3g}.{smallest}"
        )
    between = min(rule.time_between_false_alarms, 1e300)
    late = rule.delay_within(targets.beta)
    return Watch(
        blocks, Intervals(interval), "paper", targets.beta, accuracy, between, rule.expected_delay, late, recommended,
        *names, notion=_other(notion),
    )  # fmt: skip


def _best(problem: Problem, records: float) -> tuple[Clamp, int]:
    """Clamp and block length of the smallest expected delay."""
    tried: dict[tuple[Clamp, int], float] = {}

    def delay(clamp: Clamp, factor: float) -> float:
        block = max(round(factor * problem.natural_block(clamp)), 1)
        if (clamp, block) not in tried:
            law = problem.rough_law(clamp)
            laws = BlockLaws.of(law, canonical_noise(problem.notion, law.width), block, (0, block))
            chart = _chart(_votes(laws), laws.laws[-1], laws.laws[0], records / block)
            tried[clamp, block] = math.inf if chart is None else _delay(chart, block)
        return tried[clamp, block]

    clamps = list(dict.fromkeys((*problem.clamps[:4], problem.paper)))
    clamp = min(clamps, key=lambda one: delay(one, _FIRST_FACTOR))
    _descend(lambda i: delay(clamp, _FACTORS[i]), _FACTORS.index(_FIRST_FACTOR))
    best: tuple[Clamp, int] = min(tried, key=lambda key: tried[key])
    return best


def _descend(value: Callable[[int], float], start: int) -> None:
    """Walk from ``start`` in both directions for as long as the value falls."""
    for step in (-1, 1):
        place = start
        while 0 <= place + step < len(_FACTORS) and value(place + step) < value(place):
            place += step


def _chart(votes: Integers, old: Floats, new: Floats, blocks: float) -> Chart | None:
    """None where the votes of old blocks do not fall, or no threshold will do."""
    if float(votes @ old) >= 0 or float(votes @ new) <= 0:
        return None
    return Chart.calibrated(votes, old, new, blocks)


def _calibrated(votes: Integers, old: Floats, new: Floats, records: float, block: int, notion: Notion) -> Chart:
    chart = _chart(votes, old, new, records / block)
    if chart is not None:
        return chart
    if records / block > MOST_BLOCKS:
        raise Infeasible(
            f"mean_time_between_false_alarms={records:g} is more than {MOST_BLOCKS:g} blocks of {block} records, "
            f"which is beyond what can be computed. Ask for at most {float(MOST_BLOCKS) * block:g}."
        )
    raise Infeasible(
        f"mean_time_between_false_alarms={records:g} cannot be had at {told(notion)}: the blocks tell too "
        f"little. Use a larger {budget_word(notion)}, or ask for less."
    )


def _votes(laws: BlockLaws) -> Integers:
    """Log-likelihood ratios of new against old, as integers; the last of ``laws`` is old, the first new."""
    nats = np.clip(laws.log_laws[0] - laws.log_laws[-1], -_LARGEST_VOTE, _LARGEST_VOTE)
    mean = float(laws.laws[-1] @ nats)
    deviation = math.sqrt(max(float(laws.laws[-1] @ (nats - mean) ** 2), 1e-12))
    unit = min(_UNIT, max(deviation / _UNITS_PER_DEVIATION, _FINEST_UNIT))
    votes: Integers = np.rint(nats / unit).astype(np.int64)
    return votes


def _bit_votes(alpha: float, beta: float) -> Integers:
    """Votes of "new" and of "as before"."""
    odds = [math.log((1 - beta) / max(alpha, 1e-17)), -math.log((1 - alpha) / max(beta, 1e-17))]
    votes = np.rint(np.clip(odds, -_LARGEST_VOTE, _LARGEST_VOTE) / _UNIT).astype(np.int64)
    factor = max(math.gcd(*(int(vote) for vote in votes)), 1)
    reduced: Integers = votes // factor
    return reduced


def _bit_blocks(test: PrivateTest) -> SumBlocks:
    """Blocks of a test of P against Q: two bins, below and above its cutoff."""
    noise = test.noise
    first = (test.cutoff - noise.offset).__floor__() + 1  # T > cutoff exactly when floor(T) >= first
    return SumBlocks(test.score, noise, test.n, first, 1, np.array([1, -1], dtype=np.int64))
