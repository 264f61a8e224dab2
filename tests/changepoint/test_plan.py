"""Plans: accuracy before any data are seen, and refusals that name the remedy."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from scipy import stats

from privatest.changepoint import ChangePlan, plan_change
from privatest.errors import Infeasible, InvalidData, InvalidInput

COINS = ("bernoulli(0.2)", "bernoulli(0.8)")
NORMALS = ("normal(0, 1)", "normal(1, 1)")


@pytest.mark.parametrize("pair", [COINS, NORMALS])
def test_auto_takes_the_smaller_computed_accuracy(pair: tuple[str, str]) -> None:
    plan = plan_change(*pair, epsilon=1)
    each = {method: plan_change(*pair, epsilon=1, method=method) for method in ("direct", "blocks", "paper")}
    assert {name: each[name].method for name in each} == {name: name for name in each}
    assert plan.accuracy == min(each["direct"].accuracy, each["blocks"].accuracy)
    assert plan.method in plan.compared
    assert each["paper"].accuracy > plan.accuracy
    assert each["paper"].runs == 0
    assert each["blocks"].runs >= 1000


def test_accuracy_improves_with_epsilon_and_with_beta() -> None:
    by_epsilon = [plan_change(*COINS, epsilon=epsilon).accuracy for epsilon in (0.2, 0.5, 1, 3)]
    assert by_epsilon == sorted(by_epsilon, reverse=True)
    by_beta = [plan_change(*COINS, epsilon=1, beta=beta).accuracy for beta in (0.01, 0.1, 0.3)]
    assert by_beta == sorted(by_beta, reverse=True)


def test_plans_are_the_same_every_time_and_for_every_spelling() -> None:
    one, other = plan_change(*COINS, epsilon=1), plan_change([0.8, 0.2], [0.2, 0.8], epsilon=1)
    assert (one.accuracy, one.block, one.method) == (other.accuracy, other.block, other.method)
    law = stats.norm(0, 1).logpdf
    fresh = [plan_change(stats.norm(0, 1), stats.norm(1, 1), epsilon=1).to_dict() for _ in range(2)]
    assert fresh[0] == fresh[1]
    assert law(0) < 0


def test_a_plan_prints_and_travels_as_plain_values() -> None:
    plan = plan_change(*NORMALS, epsilon=0.5, n=400, false_alarm=0.05)
    document = json.loads(json.dumps(plan.to_dict()))
    assert document["accuracy"] == plan.accuracy
    assert document["n"] == 400
    assert set(document) == {name for name in plan.__dataclass_fields__ if not name.startswith("_")}
    assert "within" in str(plan)
    assert "false alarms with probability at most 0.04" in str(plan)
    assert "_design" not in repr(plan)
    assert plan.informative is True
    assert plan_change(*NORMALS, epsilon=0.5).informative is None


@pytest.mark.parametrize("method", ["auto", "direct", "blocks", "paper"])
def test_no_change_as_an_answer(method: str) -> None:
    plan = plan_change(*COINS, epsilon=1, method=method, false_alarm=0.01)
    assert plan.false_alarm is not None
    assert plan.power is not None
    assert 0 < plan.false_alarm <= 0.01
    assert plan.power >= 0.9
    assert plan.threshold is not None
    assert plan.accuracy > plan_change(*COINS, epsilon=1, method=method).accuracy
    assert plan.power_after(plan.accuracy) == pytest.approx(plan.power)
    assert plan.power_after(1) <= plan.power_after(3 * plan.accuracy)
    assert plan.power_after(10**9) > 1 - 1e-9


def test_a_plan_that_always_names_an_index_has_no_power() -> None:
    plan = plan_change(*COINS, epsilon=1)
    assert (plan.power, plan.false_alarm, plan.threshold) == (None, None, None)
    with pytest.raises(InvalidInput, match="false_alarm="):
        plan.power_after(10)


def test_one_sided_supports_and_infinite_ratios() -> None:
    rare = plan_change("bernoulli(0)", "bernoulli(0.1)", epsilon=1)
    assert rare.accuracy < 100
    disjoint = plan_change([1.0, 0.0], [0.0, 1.0], epsilon=1)
    assert disjoint.accuracy <= 8
    assert plan_change("uniform(0, 1)", "uniform(0.5, 1.5)", epsilon=1).accuracy < 40


def test_series_too_short_for_a_block_or_for_the_accuracy() -> None:
    plan = plan_change(*NORMALS, epsilon=0.1)
    with pytest.raises(InvalidData, match=rf"has 10 records, fewer than one block of \d+. Pass at least {plan.block}"):
        plan_change(*NORMALS, epsilon=0.1, n=10, method=plan.method)
    plan = plan_change(*NORMALS, epsilon=0.1, method="direct")
    with pytest.raises(Infeasible, match=rf"within {plan.accuracy} records, and the series has 100"):
        plan_change(*NORMALS, epsilon=0.1, n=100, method="direct")


def test_an_accuracy_of_half_the_series_is_said_to_be_no_better_than_its_middle() -> None:
    plan = plan_change(*COINS, epsilon=0.5, n=30)
    assert plan.informative is False
    point = plan.detect(np.zeros(30), rng=np.random.default_rng(1))
    assert not point.informative
    assert "no better than naming the middle" in str(point)


def test_infeasible_false_alarms_name_the_smallest_epsilon() -> None:
    with pytest.raises(Infeasible, match=r"smallest epsilon that does is about [\d.]+") as caught:
        plan_change(*COINS, epsilon=0.2, n=60, false_alarm=0.01, method="blocks")
    smallest = float(re.findall(r"is about ([\d.]+)\. ", str(caught.value))[0])
    assert 0.2 < smallest < 10
    plan_change(*COINS, epsilon=smallest, n=60, false_alarm=0.01, method="blocks")
    with pytest.raises(Infeasible):
        plan_change(*COINS, epsilon=round(smallest * 0.6, 2), n=60, false_alarm=0.01, method="blocks")
    with pytest.raises(Infeasible, match="no epsilon does"):
        plan_change(*COINS, epsilon=1, n=3, false_alarm=1e-6, method="blocks")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0}, "epsilon=0 must be greater than 0"),
        ({"epsilon": float("nan")}, "epsilon=nan must be finite"),
        ({"epsilon": 1, "beta": 1.5}, r"beta=1.5 must lie in \(0, 1\)"),
        ({"epsilon": 1, "method": "block"}, "Did you mean 'blocks'"),
        ({"epsilon": 1, "false_alarm": 0}, r"false_alarm=0 must lie in \(0, 1\)"),
        ({"epsilon": 1, "n": 0}, "n=0 must be a whole number"),
        ({"epsilon": 1, "distance": 0.2}, "Give either the alternative"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        plan_change(*COINS, **arguments)


def test_an_alternative_or_a_distance_is_needed() -> None:
    with pytest.raises(InvalidInput, match="Give either the alternative"):
        plan_change(COINS[0], epsilon=1)
    with pytest.raises(InvalidInput, match="method='direct' needs the alternative"):
        plan_change(COINS[0], distance=0.3, epsilon=1, method="direct")


def test_plans_are_frozen() -> None:
    plan = plan_change(*COINS, epsilon=1)
    assert isinstance(plan, ChangePlan)
    with pytest.raises(AttributeError):
        plan.accuracy = 1  # type: ignore[misc]
