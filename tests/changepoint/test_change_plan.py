"""Running on data: the index convention, what comes back, and what must not stop it.

Plans: accuracy before any data are seen, and refusals that name the remedy.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privatest as pt
from privatest import engines
from privatest.changepoint import ChangePlan, ChangePoint, design_change, detect_change
from privatest.changepoint.change_point import PublicOrder
from privatest.errors import Infeasible, InvalidData, InvalidInput, RequestConflict

COINS = ("bernoulli(0.2)", "bernoulli(0.8)")
METHODS = ("direct", "blocks", "paper")


def series(n: int, change: int) -> np.ndarray:
    """The cleanest series there is: zeros, then ones."""
    return (np.arange(n) >= change).astype(np.int64)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("change", [40, 100, 133])
def test_the_index_is_that_of_the_first_new_record(method: str, change: int) -> None:
    """At a large epsilon a clean series leaves no doubt, but for the bits, which know blocks only."""
    plan = design_change(*COINS, epsilon=30, method=method, assume_change=method == "direct")
    rng = np.random.default_rng(1)
    found = [plan.run(series(200, change), rng=rng).index for _ in range(5)]
    assert found == [change // plan.block * plan.block if method == "paper" else change] * 5


@pytest.mark.parametrize(
    ("method", "assume_change"), [(m, a) for m in ("auto", *METHODS) for a in (True, False) if a or m != "direct"]
)
def test_what_comes_back(method: str, assume_change: bool) -> None:
    settings: dict[str, Any] = {"epsilon": 1, "beta": 0.2, "method": method, "assume_change": assume_change}
    point = detect_change(series(300, 150), *COINS, **settings, rng=np.random.default_rng(3))
    assert isinstance(point, ChangePoint)
    assert isinstance(point.index, int)
    assert 0 <= point.index <= 300
    assert (point.epsilon, point.beta, point.n, point.changed) == (1.0, 0.2, 300, None if assume_change else True)
    assert (point.false_alarm is None, point.power is None) == (assume_change, assume_change)
    assert point.method == method or method == "auto"
    assert point.simulated
    assert not point.private
    document = json.loads(json.dumps(point.to_dict()))
    assert document["index"] == point.index
    assert document["private"] is False
    known = (
        "indices states spacing accuracy beta changed epsilon method n false_alarm power neighbours simulated block "
        "sums order_values order_range receipt design drawn privacy persons misfits odd_share odd_margin odd_epsilon"
    )
    assert {field.name for field in fields(point)} == set(known.split())
    assert "SIMULATED" in str(point)


def test_the_noisy_sums_come_with_the_index() -> None:
    """At epsilon 60 the noise is less than a step: the sums are those of the clamped ratios, block by block."""
    data = series(303, 150)
    plan = design_change(*COINS, epsilon=60, method="blocks")
    point = plan.run(data)
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
    direct = design_change(*COINS, epsilon=1, method="direct", assume_change=True).run(data)
    assert (direct.block, direct.sums) == (None, None)
    paper = design_change(*COINS, epsilon=1, method="paper").run(data)
    assert (paper.sums, paper.block is None) == (None, False)


@pytest.mark.parametrize("method", ["blocks", "paper"])
def test_no_change(method: str) -> None:
    rng = np.random.default_rng(4)
    plan = design_change(*COINS, epsilon=1, n=400, method=method)
    quiet = plan.run(series(400, 400), rng=rng)
    assert (quiet.changed, quiet.index) == (False, None)
    assert quiet.false_alarm is not None
    assert quiet.false_alarm <= 0.05
    assert "no change" in str(quiet)
    assert "No change was found in 400 records. One that " in quiet.sentence
    assert f" that {plan.accuracy} records or more follow" in quiet.sentence
    document = json.loads(json.dumps(quiet.to_dict()))
    assert (document["index"], document["changed"]) == (None, False)
    loud = plan.run(series(400, 200), rng=rng)
    assert loud.changed is True
    assert loud.index is not None
    assert loud.epsilon == 1.0


@pytest.mark.parametrize("method", METHODS)
def test_records_that_make_no_sense_neither_raise_nor_show(method: str) -> None:
    values = [None, float("nan"), "text", float("inf"), [1], 2.5, *series(194, 94).tolist()]
    point = detect_change(values, *COINS, epsilon=1, method=method, assume_change=True, rng=np.random.default_rng(7))
    assert point.n == 200


def test_structure_may_raise() -> None:
    with pytest.raises(InvalidData, match="no records"):
        detect_change([], *COINS, epsilon=1)
    with pytest.raises(InvalidData, match="single text"):
        detect_change("0101", *COINS, epsilon=1)
    with pytest.raises(InvalidData, match="no order"):
        detect_change({0, 1}, *COINS, epsilon=1)
    with pytest.raises(InvalidData, match="fewer than one block"):
        detect_change([0, 1], *COINS, epsilon=0.1, assume_change=True)
    with pytest.raises(Infeasible, match=r"false_alarm=0\.05 \(the default\) is not reachable with n=2 records"):
        detect_change([0, 1], *COINS, epsilon=0.1)
    with pytest.raises(Infeasible, match=r"false_alarm=0\.05 \(the default\) is not reachable with n=3 records"):
        detect_change([0, 1, 1], *COINS, epsilon=0.1)
    with pytest.raises(InvalidData, match="plan is for n=100"):
        design_change(*COINS, epsilon=1, n=100).run(series(99, 50))
    with pytest.raises(InvalidInput, match="rng="):
        detect_change(series(100, 50), *COINS, epsilon=1, rng=5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("null", "alternative"), [COINS, ("bernoulli(0.05)", "bernoulli(0.1)"), ([0.3, 0.7], [0.9, 0.1])]
)
def test_records_that_make_no_sense_count_for_neither_side(null: Any, alternative: Any) -> None:
    """Their score is the ratio 0, clamped, to a thirty-second of the clamp, also where the scores have two values."""
    for method in ("blocks", "direct"):
        score = design_change(null, alternative, epsilon=1, method=method, assume_change=True).detector.score
        low, high = score.bounds()
        assert abs(float(score.origin + score.step * score.odd_score) - min(max(0.0, low), high)) <= (high - low) / 32


NORMALS = ("normal(0, 1)", "normal(1, 1)")


@pytest.mark.parametrize("pair", [COINS, NORMALS])
def test_auto_takes_the_smaller_computed_accuracy(pair: tuple[str, str]) -> None:
    settings: dict[str, Any] = {"epsilon": 1, "assume_change": True}
    plan = design_change(*pair, **settings)
    each = {method: design_change(*pair, **settings, method=method) for method in ("direct", "blocks", "paper")}
    assert {name: each[name].method for name in each} == {name: name for name in each}
    assert plan.accuracy == min(each["direct"].accuracy, each["blocks"].accuracy)
    assert plan.method in plan.compared
    assert each["paper"].accuracy > plan.accuracy
    assert each["paper"].runs == 0
    assert each["blocks"].runs >= 1000


@pytest.mark.parametrize("method", ["auto", "blocks", "paper"])
def test_no_change_as_an_answer(method: str) -> None:
    plan = design_change(*COINS, epsilon=1, method=method, false_alarm=0.01)
    assert plan.false_alarm is not None
    assert plan.power is not None
    assert 0 < plan.false_alarm <= 0.01
    assert plan.power >= 0.9
    assert plan.threshold is not None
    assert plan.accuracy > design_change(*COINS, epsilon=1, method=method, assume_change=True).accuracy
    assert plan.power_after(plan.accuracy) == pytest.approx(plan.power)
    assert plan.power_after(1) <= plan.power_after(3 * plan.accuracy)
    assert plan.power_after(10**9) > 1 - 1e-9


def test_an_accuracy_of_half_the_series_is_said_to_be_no_better_than_its_middle() -> None:
    plan = design_change(*COINS, epsilon=0.5, n=30, assume_change=True)
    assert plan.informative is False
    point = plan.run(np.zeros(30), rng=np.random.default_rng(1))
    assert not point.informative
    assert "no better than naming the middle" in str(point)


def test_infeasible_false_alarms_name_the_smallest_epsilon() -> None:
    with pytest.raises(Infeasible, match=r"smallest epsilon that does is about [\d.]+") as caught:
        design_change(*COINS, epsilon=0.2, n=60, false_alarm=0.01, method="blocks")
    smallest = float(re.findall(r"is about ([\d.]+)\. ", str(caught.value))[0])
    assert 0.2 < smallest < 10
    design_change(*COINS, epsilon=smallest, n=60, false_alarm=0.01, method="blocks")
    with pytest.raises(Infeasible):
        design_change(*COINS, epsilon=round(smallest * 0.6, 2), n=60, false_alarm=0.01, method="blocks")
    with pytest.raises(Infeasible, match="no epsilon reaches it"):
        design_change(*COINS, epsilon=1, n=3, false_alarm=1e-6, method="blocks")


def test_assuming_a_change_is_a_remedy_only_where_it_helps() -> None:
    """So many records are too few to say "no change", and place an index; one fewer says no more than the middle."""
    certain = design_change(*COINS, epsilon=0.5, assume_change=True)
    n = 2 * certain.accuracy + 1
    with pytest.raises(Infeasible, match=rf"assume_change=True places it within {certain.accuracy} records") as caught:
        design_change(*COINS, epsilon=0.5, n=n)
    assert f"is not reachable with n={n} records" in str(caught.value)
    assert design_change(*COINS, epsilon=0.5, n=n, assume_change=True).informative
    with pytest.raises(Infeasible, match="is not reachable") as caught:
        design_change(*COINS, epsilon=0.5, n=n - 1)
    assert "assume_change" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0}, "epsilon=0 must be greater than 0"),
        ({"epsilon": float("nan")}, "epsilon=nan must be finite"),
        ({"epsilon": 1, "beta": 1.5}, r"beta=1.5 must lie in \(0, 1\)"),
        ({"epsilon": 1, "method": "block"}, "Did you mean 'blocks'"),
        ({"epsilon": 1, "false_alarm": 0}, r"false_alarm=0 must lie in \(0, 1\)"),
        ({"epsilon": 1, "false_alarm": 0.1, "assume_change": True}, "false_alarm=0.1 and assume_change=True exclude"),
        ({"epsilon": 1, "assume_change": "no"}, "assume_change='no' must be True or False"),
        ({"epsilon": 1, "n": 0}, "n=0 must be a whole number"),
        ({"epsilon": 1, "distance": 0.2}, "Give either the alternative"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        design_change(*COINS, **arguments)


# Years that no other number or text in a release can be taken for.
ZERO, FIRST = 7_300_000_000_000_001, np.datetime64("7301-01-01")
YEARS = {"year": lambda i: ZERO + i, "text": lambda i: f"Ming {i:04d}", "day": lambda i: FIRST + i}
TRACES = ("7300000000", "7,300,000,000", "7.3e+15", "Ming", "7301-0")


def dated(n: int, change: int, order: str) -> Any:
    """A clean series whose rows do not lie in the order of their years; that of texts is said to be meant."""
    frame = pd.DataFrame({"x": series(n, change), order: [YEARS[order](i) for i in range(n)]})
    return pt.data.read_as(frame.iloc[np.random.default_rng(1).permutation(n)], text_order=order == "text")


@pytest.mark.parametrize("order", YEARS)
@pytest.mark.parametrize("method", METHODS)
def test_a_public_order_names_the_year_of_the_change(method: str, order: str) -> None:
    plan = design_change(*COINS, epsilon=30, method=method, assume_change=True)
    point = plan.run(dated(200, 120, order), column="x", order=order, public_order=True, rng=rng_of(1))
    accuracy = plan.accuracy
    assert point.index is not None
    told = [YEARS[order](i) for i in (point.index, point.index - accuracy, point.index + accuracy)]
    told = [str(value) if order == "day" else value for value in told]
    assert [point.order_value, *(point.order_range or ())] == told
    assert f" ({told[0]}) of 200, give or take {accuracy} records ({told[1]} to {told[2]}): " in point.sentence
    assert str(told[0]) in str(point)
    assert str(told[0]) in point.plot().get_title(loc="left")
    document = json.loads(json.dumps(point.to_dict()))
    assert (document["order_value"], document["order_range"]) == (told[0], told[1:])
    assert ChangePoint.from_dict(document) == point


@pytest.mark.parametrize("order", YEARS)
@pytest.mark.parametrize("method", METHODS)
def test_without_the_declaration_nothing_of_the_order_leaves_the_data(method: str, order: str, tmp_path: Path) -> None:
    """A year is a record's own unless somebody says otherwise: not in a value, a sentence, a picture or the ledger."""
    data = dated(200, 120, order)
    with pt.Ledger(tmp_path / "ledger.db") as ledger:
        ledger.grant("claims", epsilon=9)
        paying: dict[str, Any] = {"ledger": ledger, "dataset": "claims", "request": "r", "assume_change": True}
        point = detect_change(data, *COINS, epsilon=2, method=method, column="x", order=order, **paying)
        noted = [repr(entry.release) for entry in ledger.history("claims")]
    assert (point.order_value, point.order_range) == (None, None)
    shown = [repr(point), str(point), point.sentence, json.dumps(point.to_dict()), point._repr_html_(), *noted]
    axes = point.plot()
    shown += [axes.get_title(loc="left"), *(text.get_text() for text in axes.get_xticklabels())]
    assert not any(trace in words for words in shown for trace in TRACES)
    again = detect_change(data, *COINS, epsilon=2, column="x", order=order, public_order=True)
    assert any(trace in str(again) for trace in TRACES)  # the check can fail


def rng_of(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_an_index_behind_the_last_record_has_no_year() -> None:
    plan = design_change(*COINS, epsilon=30, assume_change=True)
    point = plan.run(dated(60, 60, "year"), column="x", order="year", public_order=True, rng=rng_of(2))
    assert (point.index, point.order_value) == (60, None)
    assert point.order_range == (ZERO + 60 - plan.accuracy, ZERO + 59)


def test_a_declaration_needs_an_order_that_can_be_told(tmp_path: Path) -> None:
    data, plan = dated(200, 120, "year"), design_change(*COINS, epsilon=2)
    for call in (plan.run, lambda data, **words: detect_change(data, *COINS, epsilon=2, **words)):
        with pytest.raises(InvalidInput, match="public_order=True was given without order="):
            call(data, column="x", public_order=True)
        with pytest.raises(InvalidInput, match="public_order='yes' must be True or False"):
            call(data, column="x", order="year", public_order="yes")
    untold = engines.open_source(data, column="x", order="year")

    class Untold(type(untold)):  # type: ignore[misc]
        has_order_values = False

    with pt.Ledger(tmp_path / "ledger.db") as ledger:
        ledger.grant("claims", epsilon=9)
        where = {"column": "x", "order": "year"}
        paying: dict[str, Any] = {"ledger": ledger, "dataset": "claims", "request": "r", "rng": None}
        with pytest.raises(InvalidData, match="public_order=True cannot be kept here"):
            plan.run_opened(Untold(untold.stream, "year"), data, where, **paying, besides=PublicOrder())  # type: ignore[attr-defined]
        assert ledger.spent("claims") == 0


def test_a_recorded_answer_has_the_year_and_the_declaration_is_part_of_the_question(tmp_path: Path) -> None:
    data = dated(200, 120, "year")
    with pt.Ledger(tmp_path / "ledger.db") as ledger:
        ledger.grant("claims", epsilon=9)
        words: dict[str, Any] = {"epsilon": 2, "column": "x", "order": "year", "ledger": ledger, "dataset": "claims"}
        first = detect_change(data, *COINS, **words, request="r", public_order=True)
        again = detect_change(data, *COINS, **words, request="r", public_order=True)
        assert again.replayed is not None
        assert (again.order_value, again.order_range) == (first.order_value, first.order_range)
        assert isinstance(again.order_value, int)
        with pytest.raises(RequestConflict, match="public_order"):
            detect_change(data, *COINS, **words, request="r")
        assert ledger.spent("claims") == 2
        assert first.design.run(data, column="x", order="year").order_value is None  # of one run, not of the plan


SETS = ("bernoulli(p<=0.2)", "bernoulli(p>=0.8)")


@pytest.mark.parametrize(
    ("method", "assume_change"), [("auto", False), ("auto", True), ("direct", True), ("paper", True)]
)
def test_a_change_between_sets_is_as_accurate_for_every_member(method: str, assume_change: bool) -> None:
    """The index is off by more than the stated accuracy in at most beta of 300 runs, 4 deviations allowed."""
    plan = design_change(*SETS, epsilon=1, beta=0.2, method=method, assume_change=assume_change)
    assert (plan.null, plan.alternative) == SETS
    rng = np.random.default_rng(12)
    for old, new in ((0.2, 0.8), (0.01, 0.99), (0.2, 0.99), (0.05, 0.8)):
        off = 0
        for _ in range(300):
            data = np.concatenate([rng.random(150) < old, rng.random(150) < new]).astype(np.int64)
            found = plan.run(data, rng=rng)
            off += found.index is None or abs(found.index - 150) > plan.accuracy
        assert off / 300 <= 0.2 + 4 * np.sqrt(0.16 / 300)
    again = ChangePlan.from_json(plan.to_json())
    assert again == plan


def test_what_cannot_be_promised_for_sets_is_refused() -> None:
    with pytest.raises(
        InvalidInput, match=r"method='blocks' weighs sums of blocks by one P and one Q.* method='paper'"
    ):
        design_change(*SETS, epsilon=1, method="blocks")
    with pytest.raises(InvalidInput, match=r"method='direct' always names an index.* assume_change=True"):
        design_change(*SETS, epsilon=1, method="direct")
    with pytest.raises(pt.errors.NothingToTest, match="lies on both sides of the null"):
        design_change("normal(0, 1)", "any_of(normal(-1, 1), normal(1, 1))", epsilon=1)
    with pytest.raises(pt.errors.NothingToTest, match="overlap"):
        design_change("bernoulli(p<=0.5)", "bernoulli(p>=0.4)", epsilon=1)


def test_a_change_looked_for_too_far_away_is_said_not_to_fit() -> None:
    """Q twice too far: the index is far beyond its accuracy, and the released sums say that P and Q do not fit."""
    far, right = (
        pt.design_change("normal(0, 1)", q, epsilon=1, n=2000, assume_change=True)
        for q in ("normal(1, 1)", "normal(0.5, 1)")
    )
    seen = {far: 0, right: 0}
    for seed in range(20):
        for plan in seen:
            rng = np.random.default_rng(seed)
            data = np.concatenate([rng.normal(0, 1, 1000), rng.normal(0.5, 1, 1000)])
            found = plan.run(data, rng=rng)
            seen[plan] += found.fits is False
            assert ("the promise does not hold" in found.sentence) == (found.fits is False)
            assert f"those after it from {plan.alternative}" in found.sentence
    assert seen == {far: 20, right: 0}
