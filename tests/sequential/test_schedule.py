"""Sizes and boundaries: as few records as promised, errors as asked, sets, hard stops."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import privatest as pt
from privatest.decision.clamp_tuning import Tuner
from privatest.decision.problem import Goal, Method, Problem
from privatest.laws.block_laws import ScoreLaw
from privatest.scores.score_law import score_law
from privatest.streams import block_schedule as schedule
from privatest.streams.block_schedule import SequentialTargets, _single
from privatest.streams.evalues import PARTS, VoteLaw
from privatest.streams.sequential_plan import SequentialPlan, stopped
from tests.sequential.plans import P, Q, coin, deciding


@pytest.mark.parametrize(("epsilon", "most"), [("1", 16.5), ("1/2", 26.3)])
def test_the_coin_needs_no_more_than_promised(epsilon: str, most: float) -> None:
    plan = coin(epsilon)
    assert max(plan.expected_n) <= most
    assert plan.alpha <= 0.05
    assert plan.beta <= 0.05
    assert plan.fixed_n == pt.sample_size(P, Q, epsilon=Fraction(epsilon), alpha=0.05, beta=0.05)


@pytest.mark.parametrize("most", [30, 60])
def test_a_hard_stop_keeps_the_errors(most: int) -> None:
    plan = coin("1", most)
    assert plan.most is not None
    assert plan.most <= most
    assert max(plan.alpha, plan.beta) <= 0.05
    assert max(plan.quantile_n(0.999999)) <= most
    assert max(coin().expected_n) <= max(plan.expected_n) <= plan.fixed_n


def test_whose_expectation_counts() -> None:
    lop = "bernoulli(0.02)", "bernoulli(0.3)"
    null, alternative = (pt.Sequential(*lop, epsilon=3, aim=aim).expected_n for aim in ("null", "alternative"))
    assert null[0] < alternative[0]
    assert null[1] > alternative[1]
    asked = SequentialTargets(0.05, 0.05, None, "null", None, None)
    assert [asked._replace(aim=aim).cost(3, 5) for aim in ("larger", "null", "alternative")] == [5, 3, 5]


def test_a_single_block_decides_as_the_fixed_test_where_likelihoods_fall_short(monkeypatch: pytest.MonkeyPatch) -> None:
    family = Tuner.of(Problem.of(P, Q, epsilon=1), Method(), Goal.of(alpha=0.05, beta=0.05))
    test = family.test(21)
    asked = SequentialTargets(0.05, 0.05, None, "larger", None, None)
    assert len(_single(family.test(26), asked)[0].table) > 2
    monkeypatch.setattr(schedule, "_smallest", lambda *_: None)
    blocks, rule = _single(test, asked)
    assert len(blocks.table) == 2
    plan = deciding(blocks, blocks, rule)
    assert plan.alpha == pytest.approx(test.alpha, abs=1e-9)
    assert plan.beta == pytest.approx(test.beta, abs=1e-9)


def member_walk(plan: SequentialPlan, law: str) -> tuple[float, float]:
    """Probability of "alternative", and bound on the mean e-value, if the records come from this law."""
    score = plan.later.score
    support, masses = score_law(score, pt.hypotheses.as_distribution(law))  # type: ignore[attr-defined]
    from privatest.laws.block_laws import BlockLaws

    votes, mean = [], 0.0
    for blocks in (plan.first, plan.later):
        n = blocks.block
        dense = BlockLaws.of(ScoreLaw(support, masses, masses, score.width), blocks.noise, n, (n,), bin_width=1)
        found = np.array(blocks.votes((2 * dense.values).tolist()))
        votes.append(VoteLaw.of(found, dense.laws[0]))
        mean = max(mean, float(dense.laws[0] @ np.exp(found / PARTS)))
    walk = stopped(votes[0], votes[1], plan.rule)
    assert walk is not None
    return walk.alternative, mean


def test_errors_are_kept_for_every_member_of_a_set() -> None:
    plan = pt.Sequential("bernoulli(p<=0.3)", "bernoulli(p>=0.7)", epsilon=2, schedule=(10, 6)).plan
    assert np.all(np.diff(plan.first.table) <= 0)
    errors = [member_walk(plan, f"bernoulli({rate})") for rate in (0.3, 0.25, 0.01)]
    assert all(error <= plan.alpha + 1e-6 for error, _ in errors)
    assert all(mean <= 1 + 1e-6 for _, mean in errors)
    assert errors[0][0] == pytest.approx(plan.alpha, abs=1e-6)
    power = [member_walk(plan, f"bernoulli({rate})")[0] for rate in (0.7, 0.8, 0.99)]
    assert all(1 - found <= plan.beta + 1e-6 for found in power)
    # a law that does not belong to the null makes both fail
    error, mean = member_walk(plan, "bernoulli(0.4)")
    assert error > 0.05
    assert mean > 1


@pytest.mark.parametrize("error", [0.2, 0.05, 1e-6])
def test_computed_errors_stay_below_what_was_asked_by_what_they_may_be_wrong_by(error: float) -> None:
    """Two ways to compute an error differ by 1e-13 and a window leaves out 2e-11: both must fit in."""
    asked = SequentialTargets(error, error, None, "larger", None, None)
    for most in (asked.most_alpha, asked.most_beta):
        assert 5e-10 < error - most < max(error * 1e-6, 2e-9)
