"""Running on data: the index convention, what comes back, and what must not stop it."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from privatest.changepoint import ChangePoint, detect_change, plan_change
from privatest.errors import Infeasible, InvalidData, InvalidInput

COINS = ("bernoulli(0.2)", "bernoulli(0.8)")
METHODS = ("direct", "blocks", "paper")


def series(n: int, change: int) -> np.ndarray:
    """The cleanest series there is: zeros, then ones."""
    return (np.arange(n) >= change).astype(np.int64)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("change", [40, 100, 133])
def test_the_index_is_that_of_the_first_new_record(method: str, change: int) -> None:
    """At a large epsilon a clean series leaves no doubt, but for the bits, which know blocks only."""
    plan = plan_change(*COINS, epsilon=30, method=method)
    rng = np.random.default_rng(1)
    found = [plan.detect(series(200, change), rng=rng).index for _ in range(5)]
    assert found == [change // plan.block * plan.block if method == "paper" else change] * 5


@pytest.mark.parametrize("method", METHODS)
def test_all_new_is_0_and_none_new_is_n(method: str) -> None:
    plan = plan_change(*COINS, epsilon=30, method=method)
    rng = np.random.default_rng(2)
    assert plan.detect(series(60, 0), rng=rng).index == 0
    last = plan.detect(series(60, 60), rng=rng).index
    # The paper's argmin runs over blocks only: the last block is as late as it can say.
    assert last == (60 // plan.block - 1) * plan.block if method == "paper" else last == 60


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_what_comes_back(method: str) -> None:
    point = detect_change(series(300, 150), *COINS, epsilon=1, beta=0.2, method=method, rng=np.random.default_rng(3))
    assert isinstance(point, ChangePoint)
    assert isinstance(point.index, int)
    assert 0 <= point.index <= 300
    assert (point.epsilon, point.beta, point.n, point.changed) == (1.0, 0.2, 300, None)
    assert point.method == method or method == "auto"
    assert point.simulated
    assert not point.private
    document = json.loads(json.dumps(point.to_dict()))
    assert document["index"] == point.index
    assert document["private"] is False
    known = "index accuracy beta changed epsilon method n false_alarm power neighbours simulated block sums receipt"
    assert {field.name for field in fields(point)} == set(known.split())
    assert "SIMULATED" in str(point)


def test_the_noisy_sums_come_with_the_index() -> None:
    """At epsilon 60 the noise is less than a step: the sums are those of the clamped ratios, block by block."""
    data = series(303, 150)
    plan = plan_change(*COINS, epsilon=60, method="blocks")
    point = plan.detect(data)
    assert point.block is not None
    assert point.sums is not None
    assert plan.clamp is not None
    start = len(data) % point.block // 2
    blocks = data[start : start + len(point.sums) * point.block].reshape(-1, point.block)
    low, high = plan.clamp
    exact = np.where(blocks == 0, high, low).sum(axis=1)
    assert np.max(np.abs(np.array(point.sums) - exact)) <= (high - low) / 4 + 1e-9
    assert "sums" not in repr(point)
    assert ChangePoint.from_dict(json.loads(json.dumps(point.to_dict()))) == point
    direct = plan_change(*COINS, epsilon=1, method="direct").detect(data)
    assert (direct.block, direct.sums) == (None, None)
    paper = plan_change(*COINS, epsilon=1, method="paper").detect(data)
    assert (paper.sums, paper.block is None) == (None, False)


def test_without_a_generator_the_answer_is_private() -> None:
    point = detect_change(series(300, 150), *COINS, epsilon=1)
    assert point.private
    assert point.to_dict()["simulated"] is False
    assert "1-differentially private" in str(point)
    doubtful = np.random.default_rng(9).integers(0, 2, size=300)
    indices = {detect_change(doubtful, *COINS, epsilon=0.3).index for _ in range(20)}
    assert len(indices) > 1  # the system's randomness, afresh each time


@pytest.mark.parametrize("method", METHODS)
def test_no_change(method: str) -> None:
    rng = np.random.default_rng(4)
    plan = plan_change(*COINS, epsilon=1, n=400, method=method, false_alarm=0.05)
    quiet = plan.detect(series(400, 400), rng=rng)
    assert (quiet.changed, quiet.index) == (False, None)
    assert quiet.false_alarm is not None
    assert quiet.false_alarm <= 0.05
    assert "no change in 400 records" in str(quiet)
    loud = plan.detect(series(400, 200), rng=rng)
    assert loud.changed is True
    assert loud.index is not None
    assert loud.epsilon == 1.0


@pytest.mark.parametrize("kind", ["list", "pandas", "polars", "pyarrow", "floats", "booleans"])
def test_data_of_many_kinds_give_the_same_answer(kind: str) -> None:
    values = series(200, 90)
    if kind in ("pandas", "polars", "pyarrow"):
        module = pytest.importorskip(kind)
        make = module.table if kind == "pyarrow" else module.DataFrame
        data, column = make({"t": np.arange(200), "x": values}), "x"
    else:
        data = {"list": values.tolist(), "floats": values.astype(float), "booleans": values.astype(bool)}[kind]
        column = None
    point = detect_change(data, *COINS, epsilon=1, column=column, rng=np.random.default_rng(5))
    assert point == detect_change(values, *COINS, epsilon=1, rng=np.random.default_rng(5))


def test_labels() -> None:
    old, new = {"ok": 0.9, "fault": 0.1}, {"ok": 0.4, "fault": 0.6}
    data = ["ok"] * 80 + ["fault"] * 80
    point = detect_change(data, old, new, epsilon=3, rng=np.random.default_rng(6))
    assert point.index is not None
    assert abs(point.index - 80) <= point.accuracy


@pytest.mark.parametrize("method", METHODS)
def test_records_that_make_no_sense_neither_raise_nor_show(method: str) -> None:
    values = [None, float("nan"), "text", float("inf"), [1], 2.5, *series(194, 94).tolist()]
    point = detect_change(values, *COINS, epsilon=1, method=method, rng=np.random.default_rng(7))
    assert point.n == 200


def test_structure_may_raise() -> None:
    with pytest.raises(InvalidData, match="no records"):
        detect_change([], *COINS, epsilon=1)
    with pytest.raises(InvalidData, match="single text"):
        detect_change("0101", *COINS, epsilon=1)
    with pytest.raises(InvalidData, match="no order"):
        detect_change({0, 1}, *COINS, epsilon=1)
    with pytest.raises(InvalidData, match="fewer than one block"):
        detect_change([0, 1], *COINS, epsilon=0.1)
    with pytest.raises((Infeasible, InvalidData)):
        detect_change(series(50, 25), "normal(0, 1)", "normal(0.2, 1)", epsilon=1)
    with pytest.raises(InvalidData, match="plan is for n=100"):
        plan_change(*COINS, epsilon=1, n=100).detect(series(99, 50))
    with pytest.raises(InvalidInput, match="rng="):
        detect_change(series(100, 50), *COINS, epsilon=1, rng=5)  # type: ignore[arg-type]


def test_a_seed_makes_it_reproducible() -> None:
    one, other = (detect_change(series(200, 90), *COINS, epsilon=0.5, rng=np.random.default_rng(8)) for _ in range(2))
    assert one == other


@pytest.mark.parametrize(
    ("null", "alternative"), [COINS, ("bernoulli(0.05)", "bernoulli(0.1)"), ([0.3, 0.7], [0.9, 0.1])]
)
def test_records_that_make_no_sense_count_for_neither_side(null: Any, alternative: Any) -> None:
    """Their score is the ratio 0, clamped, to a thirty-second of the clamp, also where the scores have two values."""
    for method in ("blocks", "direct"):
        score = plan_change(null, alternative, epsilon=1, method=method)._design.probe
        assert score is not None
        low, high = score.bounds()
        assert abs(float(score.origin + score.step * score.odd_score) - min(max(0.0, low), high)) <= (high - low) / 32
