"""A plan's document, what it refuses, and its promises against simulation.

The stopped walk: recursion against enumeration of all walks; the rule record by record and in portions.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from privatest.errors import InvalidDocument
from privatest.scores import Score
from privatest.streams import SequentialPlan
from privatest.streams.blocks import SumBlocks
from privatest.streams.evalues import PARTS, VoteLaw
from privatest.streams.sequential_plan import Boundaries, Stopped, WalkProgress, stopped
from tests.sequential.plans import coin, deciding

FIRST = VoteLaw(-4, np.array([0.2, 0.1, 0.0, 0.1, 0.05, 0.15, 0.1, 0.1, 0.2]))
LATER = VoteLaw(-2, np.array([0.3, 0.15, 0.1, 0.2, 0.0, 0.25]))
RULES = [Boundaries(-3, 3, 5, 0), Boundaries(-2, 4, 4, 1), Boundaries(-1, 1, 3, 0), Boundaries(-30, 30, 3, -2)]


def enumerated(rule: Boundaries, last: int) -> Stopped:
    """Every sequence of votes up to the last block, by the rule itself."""
    decided = {True: 0.0, False: 0.0}
    stops = np.zeros(last)
    steps = [[(law.least + i, float(p)) for i, p in enumerate(law.masses) if p] for law in (FIRST, LATER)]

    def go(progress: WalkProgress, p: float) -> None:
        for vote, q in steps[progress.blocks > 0]:
            then, out = rule.feed(progress, [vote])
            if out is not None:
                decided[rule.for_alternative(then)] += p * q
                stops[then.blocks - 1] += p * q
            else:
                go(then, p * q)

    go(rule.begin, 1.0)
    return Stopped(decided[True], decided[False], stops)


@pytest.mark.parametrize("rule", RULES)
def test_the_recursion_is_the_enumeration(rule: Boundaries) -> None:
    assert rule.last is not None
    found, expected = stopped(FIRST, LATER, rule), enumerated(rule, rule.last)
    assert found is not None
    assert found.alternative == pytest.approx(expected.alternative, abs=1e-14)
    assert found.null == pytest.approx(expected.null, abs=1e-14)
    assert found.stops == pytest.approx(expected.stops[: len(found.stops)], abs=1e-14)


def test_a_boundary_that_is_one_off_is_seen() -> None:
    for other in (Boundaries(-3, 4, 5, 0), Boundaries(-2, 3, 5, 0), Boundaries(-3, 3, 5, 1), Boundaries(-3, 3, 4, 0)):
        found = stopped(FIRST, LATER, other)
        assert found is not None
        assert abs(found.alternative - enumerated(RULES[0], 5).alternative) > 1e-3


@pytest.mark.parametrize("rule", RULES)
def test_portions_of_any_size_give_the_same(rule: Boundaries) -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        votes = rng.integers(-3, 4, size=12)
        progress, hits = rule.begin, []
        for i, vote in enumerate(votes.tolist()):
            progress, out = rule.feed(progress, [vote])
            if out is not None:
                hits.append(i)
                break
        for cut in range(12):
            then, hit = rule.feed(rule.begin, votes[:cut]) if cut else (rule.begin, None)
            if hit is None:
                then, more = rule.feed(then, votes[cut:])
                hit = None if more is None else cut + more
            assert (then, [hit] if hit is not None else []) == (progress, hits)


def test_a_plan_whose_votes_are_no_evalues_is_refused() -> None:
    document = json.loads(coin().text)
    for part in ("first", "later"):
        bold = json.loads(json.dumps(document))
        bold[part]["votes"] = [vote + PARTS // 8 for vote in bold[part]["votes"]]
        with pytest.raises(InvalidDocument, match="not e-values"):
            SequentialPlan.from_dict(bold)


def test_a_plan_that_does_not_fit_together_is_refused() -> None:
    document = json.loads(coin().text)
    for change, message in (
        ({"null": 3}, "must be a text"),
        ({"rule": {"lower": 3, "upper": 3, "cut": 3}}, "boundaries"),
    ):
        with pytest.raises(InvalidDocument, match=message):
            SequentialPlan.from_dict({**document, **change})
    noise = {**document["later"], "noise": {**document["later"]["noise"], "epsilon": "2/1", "width": 1}}
    with pytest.raises(InvalidDocument, match="not be private"):
        SequentialPlan.from_dict({**document, "later": noise})
    plan = coin()
    score, n = plan.first.score, plan.first
    other = SumBlocks(score, type(n.noise)(n.noise.epsilon / 2, n.noise.width), n.block, n.first, n.bin_width, n.table)
    with pytest.raises(InvalidDocument, match="share one score and one noise"):
        deciding(other, plan.later, plan.rule)
    document = score.to_dict()
    mirrored = Score.from_dict({**document, "table": [[score.low + score.high - v, k] for v, k in document["table"]]})
    with pytest.raises(InvalidDocument, match="share one score and one noise"):
        deciding(replace(n, score=mirrored), plan.later, plan.rule)


@pytest.mark.statistical
@pytest.mark.parametrize("under", [0, 1])
def test_simulated_walks_agree_with_the_recursion(under: int) -> None:
    """Whole runs of the rule on noisy totals drawn from the definitions, 20,000 of them."""
    plan, runs, rng = coin(), 20_000, np.random.default_rng(under)
    rate, epsilon, width = (0.3, 0.7)[under], float(plan.epsilon), plan.later.noise.width
    seen, wrong = [], 0
    levels, alive, blocks = np.zeros(runs, dtype=np.int64), np.arange(runs), 0
    while len(alive):
        table = plan.first if blocks == 0 else plan.later
        ones = rng.binomial(table.block, rate, size=len(alive))
        scores = table.score.table[table.score.cells.index(np.array([0.0, 1.0]))]
        totals = ones * scores[1] + (table.block - ones) * scores[0]
        g = rng.geometric(1 - np.exp(-epsilon), size=(2, len(alive)))
        doubled = 2 * (width * (g[0] - g[1]) + rng.integers(0, width, size=len(alive))) - (width - 1)
        levels = levels + np.array(table.votes((2 * totals + doubled).tolist()))
        blocks += 1
        out = (levels >= plan.rule.upper) | (levels <= plan.rule.lower)
        wrong += int(np.sum((levels >= plan.rule.upper)[out] != bool(under)))
        seen += [plan.records(blocks)] * int(out.sum())
        alive, levels = alive[~out], levels[~out]
    mean, error = np.mean(seen), np.std(seen) / np.sqrt(runs)
    assert abs(mean - plan.expected_n[under]) < 4 * error
    share = (plan.alpha, plan.beta)[under]
    assert abs(wrong / runs - share) < 4 * np.sqrt(share / runs)
    quantile = plan.quantile_n(0.9)[under]
    assert np.mean(np.array(seen) <= quantile) > 0.89
