"""Streams under every notion of privacy: exact laws of all that is put out, on all small binary streams.

Streams go through the package's code up to the raw totals and from the releases on; the laws of the releases come from
the noise's probabilities. Every check is shown failing where a record moves the total twice as far as the noise hides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.changepoint.block_sums import SumsModel, law_of
from privatest.changepoint.detector_search import best_choice
from privatest.changepoint.exponential_mechanism import ExponentialDetector
from privatest.engines import open_source
from privatest.hypotheses import make_pair
from privatest.privacy import Noise, Notion, canonical_noise
from privatest.privacy.canonical_noise import loss_range
from privatest.privacy.notion import per_row
from privatest.privacy.verification import measure
from privatest.scores import clamped_score
from privatest.streams import Sequential, SequentialPlan
from privatest.streams.block_schedule import voting_blocks
from privatest.streams.blocks import SumBlocks
from privatest.streams.evalues import PARTS
from privatest.streams.monitor_plan import Cusum
from privatest.streams.sequential_plan import Boundaries
from tests.sequential import plans

P, Q = "bernoulli(0.2)", "bernoulli(0.8)"
PAIR = make_pair(P, Q)
SCORE = clamped_score(PAIR, (-1, 1), 1)  # one step: label 0 scores 1, label 1 scores 0
NOTIONS = [pt.approx(1, 0.02), pt.approx(0, 0.2), pt.tv(0.2), pt.gdp(1), pt.zcdp(0.5), pt.renyi(2, 0.5), pt.kl(0.3)]
each = pytest.mark.parametrize("notion", NOTIONS, ids=str)
Stream = tuple[int, ...]
Law = dict[Hashable, float]
Mechanism = Callable[[Stream], Law]


def lattice(noise: Noise) -> np.ndarray:
    """Twice all values that have a probability worth mentioning."""
    reach = noise.window(60.0) + 1
    return 2 * np.arange(-reach, reach + 1) + int(2 * noise.offset)


def add(law: Law, key: Hashable, mass: float) -> None:
    law[key] = law.get(key, 0.0) + mass


def votes_of(blocks: SumBlocks, reach: int) -> Mechanism:
    """The law of a block's vote; a record moves the total ``reach`` times as far as it should."""
    doubled = lattice(blocks.noise)
    masses = blocks.noise.pmf(doubled / 2)

    @cache
    def law(total: int) -> Law:
        found: Law = {}
        for vote, mass in zip(blocks.votes((doubled + 2 * total).tolist()), masses.tolist(), strict=True):
            if mass:
                add(found, vote, mass)
        return found

    return lambda records: law(reach * int(blocks.values_of(list(records)).sum()))


def small_blocks(row: Notion, n: int) -> SumBlocks:
    noise = canonical_noise(row, SCORE.width)
    return voting_blocks(SCORE, noise, n, monotone=False, parts=4)


def monitored(row: Notion, reach: int = 1) -> Mechanism:
    """The law of the alarm, or that there is none."""
    blocks = small_blocks(row, 2)
    made = plans.watching(blocks, Cusum(2), notion=row)
    return walked(made, [votes_of(blocks, reach)] * 2)


def walked(made: Any, votes: list[Mechanism]) -> Mechanism:
    """The law of when a rule stops, and how; all of the progress before."""

    def law(stream: Stream) -> Law:
        found: Law = {}
        quiet: Law = {made.rule.begin: 1.0}
        for count in range(1, len(stream) + 1):
            start, end = made.records(count - 1), made.records(count)
            if end > len(stream):
                break
            after: Law = {}
            for progress, p in quiet.items():
                for vote, q in votes[count > 1](stream[start:end]).items():
                    then, hit = made.rule.feed(progress, [vote])
                    add(after if hit is None else found, then if hit is None else (then, end), p * q)
            quiet = after
        return found | quiet

    return law


def sequential(row: Notion, reach: int = 1) -> Mechanism:
    first, later = small_blocks(row, 1), small_blocks(row, 2)
    plan = SequentialPlan.__new__(SequentialPlan)  # coarse votes: what is checked here is the law, not the e-value
    for name, value in {"first": first, "later": later, "rule": Boundaries(-3, 3)}.items():
        object.__setattr__(plan, name, value)
    return walked(plan, [votes_of(first, reach), votes_of(later, reach)])


def bits(row: Notion, reach: int = 1) -> Mechanism:
    """The bits of the paper's method."""
    noise, cutoff = canonical_noise(row, 1), 0.25

    def law(stream: Stream) -> Law:
        found: Law = {(): 1.0}
        for first in range(0, len(stream) - 1, 2):
            total = reach * (2 - sum(stream[first : first + 2]))
            null = float(noise.sf(cutoff - total))
            found = {(*key, bit): p * q for key, p in found.items() for bit, q in ((1, null), (-1, 1 - null))}  # type: ignore[misc]
        return found

    return law


def placed(row: Notion, reach: int = 1) -> Mechanism:
    """The index of the posterior's median, from noisy sums of blocks."""
    found = SumsModel(law_of(SCORE), canonical_noise(row, 1), 2)
    votes = votes_of(SumBlocks(SCORE, found.noise, 2, found.laws.first, 1, np.arange(found.laws.count)), reach)

    def law(stream: Stream) -> Law:
        answers: Law = {}
        for one, p in votes(stream[:2]).items():
            for two, q in votes(stream[2:4]).items():
                if p * q > 1e-14:
                    add(answers, found.locate(np.array([one, two])), p * q)
        return answers

    return law


def direct(row: Notion, reach: int = 1) -> Mechanism:
    found = best_choice(PAIR, row, 0.1, "direct", None)
    detector = found.detector
    assert isinstance(detector, ExponentialDetector)
    made = replace(detector, score=SCORE, level=Fraction(0), block=1)
    assert made.epsilon / SCORE.width == loss_range(row)
    rate = float(loss_range(row)) * reach

    def law(stream: Stream) -> Law:
        utilities = made.utilities(open_source(np.array(stream)), len(stream)) * rate
        weights = np.exp(utilities - utilities.max())
        return dict(enumerate((weights / weights.sum()).tolist()))

    return law


MECHANISMS = {f.__name__: f for f in (monitored, sequential, bits, placed, direct)}
CASES = [
    (name, notion)
    for name, notion in itertools.product(MECHANISMS, NOTIONS)
    if name != "placed" or notion.name in ("tv", "gdp", "zcdp")  # many outcomes; others have such noise
]
each_case = pytest.mark.parametrize(("name", "notion"), CASES, ids=lambda part: str(part))


@each_case
def test_all_that_a_stream_puts_out_meets_the_notion(name: str, notion: Notion) -> None:
    found = pt.verify_privacy(MECHANISMS[name](notion), domain=(0, 1), n=4, privacy=notion)
    assert found.private, found
    assert found.measured > 0.2 * found.allowed


@each_case
def test_half_the_noise_does_not(name: str, notion: Notion) -> None:
    times = 4 if name == "direct" and not notion.tradeoff else 2  # there no index tells so much as the bound allows for
    assert not pt.verify_privacy(MECHANISMS[name](notion, times), domain=(0, 1), n=4, privacy=notion).private


def largest(law: Mechanism, notion: Notion, rows: int) -> float:
    """As the notion measures it, between streams of four records of which any ``rows`` differ."""
    laws = {stream: law(stream) for stream in itertools.product((0, 1), repeat=4)}
    pairs = [
        (one, tuple(1 - x if i in places else x for i, x in enumerate(one)))
        for one in laws
        for places in itertools.combinations(range(4), rows)
    ]
    return max(float(measure(notion, laws[one], laws[other])[0]) for one, other in pairs)


def allowed(notion: Notion) -> float:
    return float(notion.exact[-1])


@each
@pytest.mark.parametrize("name", ["monitored", "direct"])
def test_persons_of_two_rows(name: str, notion: Notion) -> None:
    made = MECHANISMS[name]
    assert largest(made(per_row(notion, 2)), notion, 2) <= allowed(notion) * (1 + 1e-9)
    assert largest(made(notion), notion, 2) > allowed(notion)


@pytest.mark.parametrize("notion", [pt.approx(1, 0.02), pt.gdp(1), pt.zcdp(0.5), pt.kl(0.3)], ids=str)
def test_a_share_for_several_answers_is_too_much_for_two_rows_in_one_block(notion: Notion) -> None:
    noise, narrow = (canonical_noise(row, 1) for row in (per_row(notion, 2), notion.share(2)))

    def moved(noise: Noise) -> float:
        values = lattice(noise) / 2
        values = np.append(values, values[-1] + 1 + np.arange(2))
        here, there = (dict(enumerate(noise.pmf(values - shift).tolist())) for shift in (2, 0))
        keep = [key for key in here if here[key] > 1e-200 and there[key] > 1e-200] if notion.name != "approx" else here
        return float(measure(notion, {k: here[k] for k in keep}, {k: there[k] for k in keep})[0])

    assert moved(noise) <= allowed(notion) * (1 + 1e-9) < moved(narrow)


@each
def test_the_range_of_a_loss_that_the_notion_allows(notion: Notion) -> None:
    """No event's log odds move by more; two-point laws, of which the divergences are the largest, meet the notion."""
    e = float(loss_range(notion))

    def excess(e: float) -> float:
        odds = np.linspace(-12, 12, 401)
        p, q = (1 / (1 + np.exp(-(odds + shift))) for shift in (0.0, e))
        if notion.tradeoff:
            return float(np.max(q - notion.h(p)))
        pairs = [({1: a, 0: 1 - a}, {1: b, 0: 1 - b}) for a, b in zip(p.tolist(), q.tolist(), strict=True)]
        return max(float(measure(notion, *both)[0]) for pair in pairs for both in (pair, pair[::-1])) - allowed(notion)

    assert excess(e) <= 1e-12
    assert excess(1.3 * e) > 0
    if notion.tradeoff:
        assert excess(1.01 * e) > 0


@cache
def plan(notion: Notion) -> SequentialPlan:
    return Sequential("bernoulli(0.3)", "bernoulli(0.7)", privacy=notion, schedule=(24, 14)).plan


@pytest.mark.parametrize("notion", [pt.approx(1, 0.02), pt.tv(0.2), pt.gdp(1)], ids=str)
def test_evalues_are_finite_and_have_mean_one_at_most(notion: Notion) -> None:
    made = plan(notion)
    doubled = lattice(made.first.noise)
    masses = made.first.noise.pmf(doubled / 2)
    high, low = (made.first.score.table[label] for label in (0, 1))
    for blocks in (made.first, made.later):
        assert np.all(np.abs(blocks.table) <= 30 * PARTS)
        n, mean = blocks.block, 0.0
        for ones in range(n + 1):
            total = int(ones * low + (n - ones) * high)
            chance = math.comb(n, ones) * 0.3**ones * 0.7 ** (n - ones)
            mean += chance * float(masses @ np.exp(np.array(blocks.votes((doubled + 2 * total).tolist())) / PARTS))
        assert 0.9 < mean <= 1 + 1e-9
    assert made.alpha <= 0.05
    assert made.beta <= 0.05
    assert made.first.score.width == 2 * made.first.noise.grain  # what makes no sense lies halfway


# Designs, documents, states, prices.
