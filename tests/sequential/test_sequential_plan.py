"""A plan's document, what it refuses, and its promises against simulation."""

from __future__ import annotations

import json

import numpy as np
import pytest

import privatest as pt
from privatest.changepoint.sum_blocks import SumBlocks
from privatest.errors import InvalidDocument
from privatest.sequential import SequentialPlan, boundaries
from privatest.sequential.boundaries import Boundaries, WalkProgress
from privatest.sequential.evidence import PARTS
from tests.sequential.plans import coin


def test_documents_restore_the_plan() -> None:
    plan = coin()
    again = SequentialPlan.from_dict(json.loads(plan.text))
    assert again.text == plan.text
    assert (again.alpha, again.beta, again.expected_n) == (plan.alpha, plan.beta, plan.expected_n)
    assert again.epsilon == plan.epsilon == 1


def test_a_plan_whose_votes_are_no_evalues_is_refused() -> None:
    document = json.loads(coin().text)
    for part in ("first", "later"):
        bold = json.loads(json.dumps(document))
        bold[part]["votes"] = [vote + PARTS // 8 for vote in bold[part]["votes"]]
        with pytest.raises(InvalidDocument, match="no e-values"):
            SequentialPlan.from_dict(bold)


def test_a_plan_that_does_not_fit_together_is_refused() -> None:
    document = json.loads(coin().text)
    for change, message in (
        ({"later": {**document["later"], "kind": "bits"}}, "must be sums"),
        ({"null": 3}, "does not fit together"),
        ({"rule": {"lower": 3, "upper": 3, "last": None, "cut": 3}}, "boundaries"),
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
        SequentialPlan(other, plan.later, plan.rule, 0.05, 0.05, 21, "P", "Q")


def test_a_walk_too_long_to_be_followed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundaries, "MOST_BLOCKS", 30)
    plan = coin()
    slow = SumBlocks(plan.later.score, plan.later.noise, 1, 0, 1, np.array([-1, -1]))
    still = SequentialPlan(slow, slow, Boundaries(-40, 1), 0.05, 0.05, 21, "P", "Q")
    with pytest.raises(InvalidDocument, match="too many blocks"):
        _ = still.alpha


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
        levels = levels + table.votes(2 * totals + doubled)
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


def test_verdicts() -> None:
    plan = coin()
    for level, decision in ((plan.rule.upper, "alternative"), (plan.rule.lower, "null")):
        found = plan.raised(WalkProgress(2, level, max(level, 0)), 0, 20, False)
        assert (found.decision, found.seen, found.private, found.replayed) == (decision, 20, True, None)
        assert found.evalue == pytest.approx(np.exp(level / PARTS))
        assert plan.raised_from_dict(found.to_dict(), False) == found
        assert "20 records" in found.sentence
    with pytest.raises(InvalidDocument):
        plan.raised_from_dict({"decision": "maybe", "seen": 3, "evalue": 1.0}, False)
    assert plan.raised(WalkProgress(2, 0, 0), 0, 20, True).title == "Verdict, SIMULATED, not private"


def test_a_plan_and_a_run_are_described_without_their_tables() -> None:
    run = pt.Sequential("bernoulli(0.3)", "bernoulli(0.7)", epsilon=1, rng=np.random.default_rng(1))
    assert repr(run.plan).startswith("SequentialPlan(bernoulli(0.3) or bernoulli(0.7), epsilon=1, alpha=0.04")
    assert "array" not in repr(run.plan)
