"""The paper's blocks: their length, and what it gives. An unknown alternative: blocks with the goodness-of-fit test."""

from __future__ import annotations

import numpy as np
import pytest

import privatest as pt
from privatest.changepoint import design_change, detect_change
from privatest.errors import Infeasible, InvalidInput

NULL = [0.25] * 4
COINS, NORMALS = ("bernoulli(0.2)", "bernoulli(0.8)"), ("normal(0, 1)", "normal(1, 1)")


@pytest.mark.parametrize(
    ("pair", "epsilon", "block", "delay", "accuracy"),
    [(COINS, 1, 5, 119, 19), (COINS, 0.3, 14, 281, 55), (NORMALS, 1, 9, 216, 36), (NORMALS, 0.3, 23, 462, 92)],
    ids=["coins-1", "coins-0.3", "normals-1", "normals-0.3"],
)
def test_the_papers_blocks_have_as_many_records_as_advantage_2_3_needs(
    pair: tuple[str, str], epsilon: float, block: int, delay: float, accuracy: int
) -> None:
    plan = design_change(*pair, epsilon=epsilon, method="paper", assume_change=True)
    monitor = pt.Monitor(*pair, epsilon=epsilon, method="paper", mean_time_between_false_alarms=50_000)
    assert plan.block == monitor.block == pt.sample_size(*pair, epsilon=epsilon) == block
    assert (plan.accuracy, round(monitor.expected_delay)) == (accuracy, delay)


@pytest.mark.parametrize(
    ("pair", "privacy"),
    [
        (("normal(mean<=0, sd=1)", "normal(mean>=1, sd=1)"), "pure(1)"),
        (COINS, "zcdp(0.5)"),
        (COINS, "approx(1, 1e-6)"),
        (("bernoulli(0)", "bernoulli(0.1)"), "pure(1)"),
    ],
    ids=["sets", "zcdp", "approx", "zero"],
)
def test_so_have_those_of_sets_and_of_other_notions(pair: tuple[str, str], privacy: str) -> None:
    plan = design_change(*pair, privacy=privacy, method="paper")
    assert plan.block == pt.sample_size(*pair, privacy=privacy)


@pytest.mark.parametrize("block", [1, 2, 9, 40])
def test_a_block_may_have_any_length(block: int) -> None:
    plan = design_change(*COINS, epsilon=1, block=block, assume_change=True)
    assert (plan.method, plan.block) == ("paper", block)
    assert pt.Monitor(*COINS, epsilon=1, block=block).block == block
    data = np.repeat([0.0, 1.0], 600)
    found = detect_change(data, *COINS, epsilon=1, block=block, assume_change=True, rng=np.random.default_rng(1))
    assert (found.block, found.method) == (block, "paper")
    assert abs(found.index - 600) <= plan.accuracy


def test_short_blocks_of_uneven_pairs_have_bits_that_tell_something() -> None:
    """The largest advantage on one record of Ber(0) and Ber(.1) errs with probability .66 on one side."""
    test = pt.design("bernoulli(0)", "bernoulli(0.1)", epsilon=1, n=1)
    assert max(test.alpha, test.beta) > 0.6
    plan = design_change("bernoulli(0)", "bernoulli(0.1)", epsilon=1, block=1, beta=0.5, assume_change=True)
    alpha, beta = (plan.to_dict()["detector"][name] for name in ("alpha", "beta"))
    assert max(alpha, beta) < 0.49
    assert alpha == pytest.approx(beta, abs=1e-3)
    with pytest.raises(Infeasible, match=r"block=1 is too short at epsilon=1: .* below 1/2"):
        design_change("bernoulli(0)", "bernoulli(1e-9)", epsilon=1, block=1)


REFUSED_BLOCKS = {
    "none": ({"block": 0}, "block=0"),
    "half": ({"block": 1.5}, "block=1.5"),
    "other method": ({"block": 4, "method": "direct"}, r"block=4 belongs to method='paper', not to method='direct'"),
}


@pytest.mark.parametrize("case", REFUSED_BLOCKS)
def test_a_block_that_cannot_be_cut_is_refused(case: str) -> None:
    asked, message = REFUSED_BLOCKS[case]
    with pytest.raises(InvalidInput, match=message):
        design_change(*COINS, epsilon=1, **asked)
    with pytest.raises(InvalidInput, match=r"block=4 needs the alternative Q.*design_fit\(..., n=4\)"):
        design_change(NULL, distance=0.3, epsilon=1, block=4)


@pytest.mark.statistical
def test_any_far_enough_alternative_is_located() -> None:
    plan = design_change(NULL, distance=0.3, epsilon=1, assume_change=True)
    assert plan.method == "fit"
    n, runs = 8 * plan.accuracy, 150
    rng = np.random.default_rng(1)
    for new in ([0.5, 0.5, 0, 0], [0.4, 0.4, 0.1, 0.1], [0.55, 0.15, 0.15, 0.15]):
        outside = 0
        for _ in range(runs):
            change = int(rng.integers(plan.accuracy, n - plan.accuracy))
            data = np.concatenate([rng.choice(4, size=change), rng.choice(4, p=new, size=n - change)])
            found = plan.run(data, rng=rng)
            assert found.index is not None
            outside += abs(found.index - change) > plan.accuracy
        assert outside / runs <= plan.beta + 6 * np.sqrt(plan.beta * (1 - plan.beta) / runs)


def test_no_change_is_an_answer_here_too() -> None:
    rng = np.random.default_rng(2)
    plan = design_change(NULL, distance=0.3, epsilon=1, false_alarm=0.02)
    n = 4 * plan.accuracy
    alarms = [plan.run(rng.choice(4, size=n), rng=rng).changed for _ in range(60)]
    assert sum(alarms) <= 8  # binomial(60, 0.02) exceeds 8 with probability under 1e-5
    changed = plan.run(np.concatenate([rng.choice(4, size=n // 2), np.zeros(n // 2, dtype=int)]), rng=rng)
    assert changed.changed is True


def test_one_call_and_its_refusals() -> None:
    rng = np.random.default_rng(3)
    data = [*rng.choice(4, size=400).tolist(), *[0, 1] * 200]
    point = detect_change(data, NULL, distance=0.4, epsilon=1, rng=rng)
    assert point.index is not None
    assert abs(point.index - 400) <= point.accuracy
    with pytest.raises(InvalidInput, match=r"distance=1\.5"):
        detect_change(data, NULL, distance=1.5, epsilon=1)
    with pytest.raises((Infeasible, InvalidInput)):
        detect_change(data[:20], NULL, distance=0.3, epsilon=1)
