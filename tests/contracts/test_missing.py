"""Missing records in an estimate: the answer is about those present, and the measured number of them is paid for."""

from __future__ import annotations

import itertools
import json
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privatest as pt
from privatest.engines import open_source
from privatest.errors import InvalidDocument, InvalidInput
from privatest.estimates.estimate import EstimateDesign
from privatest.privacy import Tulap
from tests.contracts.test_estimate_privacy import forged, small_rate
from tests.contracts.test_running_privacy import SLACK, laws_of
from tests.contracts.walk import largest_loss, walking

EPSILON, COUNTING = Fraction(3, 2), Fraction(1, 2)


def counting_design(rows: int = 1, n: int = 2) -> EstimateDesign:
    noises = {"noise": Tulap(EPSILON - COUNTING, 4 * rows), "count_noise": Tulap(COUNTING, rows)}
    return small_rate(EPSILON, n, rows, missing="count", **noises)


def only_the_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a release is computed from."""
    monkeypatch.setattr(EstimateDesign, "release", lambda _self, draw, **_: tuple(draw))
    monkeypatch.setattr("privatest.decision.run.replace", lambda found, **_: found)


def test_total_and_number_of_present_records_are_private_together(monkeypatch: pytest.MonkeyPatch) -> None:
    design = counting_design()
    only_the_draw(monkeypatch)
    sets = list(itertools.product((0.0, 1.0, np.nan), repeat=2))
    pairs = [
        (one, other)
        for one in sets
        for other in sets
        if sum(repr(a) != repr(b) for a, b in zip(one, other, strict=True)) == 1
    ]

    def run(data: Any, source: Any) -> Hashable:
        return design.run(np.array(data), rng=source)

    with walking(3):
        assert 0.9 * EPSILON < largest_loss(laws_of(run, pairs), pairs, None) <= EPSILON * SLACK
        design = forged(design, count_noise=Tulap(2 * COUNTING, 1))  # the count is half paid for
        assert largest_loss(laws_of(run, pairs), pairs, None) > EPSILON * 1.2


def test_all_rows_of_a_person_are_hidden_together(monkeypatch: pytest.MonkeyPatch) -> None:
    design = counting_design(n=2)
    only_the_draw(monkeypatch)

    def run(mine: Any, source: Any) -> Hashable:
        frame = pd.DataFrame({"who": ["me"] * len(mine) + ["you"] * 3, "x": [*mine, 1.0, np.nan, 0.0]})
        return design.run(frame, column="x", unit="who", rng=source)

    sets = [*itertools.product((0.0, 1.0, np.nan), repeat=2), (np.nan,), (1.0,)]
    pairs = list(itertools.permutations(sets, 2))
    with walking(3):
        assert largest_loss(laws_of(run, pairs), pairs, None) <= EPSILON * SLACK


def test_a_count_that_the_budget_does_not_hold_is_refused() -> None:
    with pytest.raises(InvalidInput, match="Use more noise"):
        small_rate(EPSILON, 2, missing="count", noise=Tulap(EPSILON, 4), count_noise=Tulap(COUNTING, 1))
    with pytest.raises(InvalidInput, match="count_noise goes with"):
        small_rate(EPSILON, 2, missing="count", noise=Tulap(EPSILON, 4))


@pytest.mark.parametrize("absent", [0.05, 0.37, 0.8])
@pytest.mark.parametrize(
    ("family", "between", "true"),
    [("bernoulli(?)", None, 0.3), ("normal(mean=?, sd=1)", (-2, 4), 0.5), ("share_above(0.5, ?)", None, 0.2)],
)
def test_the_answer_is_about_the_records_that_are_present(
    family: str, between: Any, true: float, absent: float
) -> None:
    rng = np.random.default_rng(7)
    drawn = {"b": rng.random(4000) < true, "n": rng.normal(true, 1, 4000), "s": rng.random(4000) - 0.3}[family[0]]
    data = drawn.astype(float)
    data[rng.random(4000) < absent] = np.nan
    found = pt.estimate(data, family, between=between, epsilon=1, confidence=0.999, rng=rng)
    assert found.interval[0] < true < found.interval[1]
    assert found.width < 0.4
    assert found.present_interval[0] <= np.isfinite(data).sum() <= found.present_interval[1]
    assert found.few_present == (absent == 0.8)
    assert ("MORE THAN HALF" in found.sentence) == (absent == 0.8)
    assert "among the records that are present" in found.sentence


def test_a_wide_range_is_the_whole_interval_where_nearly_nothing_is_present() -> None:
    data = np.full(4000, np.nan)
    data[:40] = 37.0
    found = pt.estimate(data, "normal(mean=?, sd=1)", between=(-100, 100), epsilon=1, rng=np.random.default_rng(1))
    assert found.interval == (-100, 100)
    assert found.few_present


@pytest.mark.parametrize("data", [np.array([0, 1] * 50), np.array([False, True] * 50)])
def test_it_costs_nothing_where_the_type_admits_no_missing_value(data: Any) -> None:
    found = pt.estimate(data, "bernoulli(?)", epsilon=1, rng=np.random.default_rng(1))
    assert found.missing == "none"
    assert found.present is None
    listed = pt.estimate(data.tolist(), "bernoulli(?)", epsilon=1, rng=np.random.default_rng(1))
    assert listed.missing == "count"
    assert open_source(pd.Series(data, dtype="Int64")).declared.nullable
    assert pt.estimate([0, 1] * 50, "bernoulli(?)", epsilon=1, missing="none").present is None


def test_the_share_of_a_label_is_one_of_all_records() -> None:
    found = pt.estimate(["a", None] * 100, "categorical(a=?)", epsilon=1, rng=np.random.default_rng(1))
    assert found.missing == "other"
    with pytest.raises(InvalidInput, match="share of all records"):
        pt.design_estimate("categorical(a=?)", epsilon=1, n=10, missing="count")


def test_documents_hold_it_and_a_tampered_one_is_refused() -> None:
    plan = pt.design_estimate("bernoulli(?)", epsilon=1, n=100, missing="count")
    assert EstimateDesign.from_json(plan.to_json()) == plan
    assert plan.at_n(50).missing == "count"
    document = json.loads(plan.to_json())
    for change in ({"missing": "none"}, {"missing": "some"}, {"count_noise": None}):
        with pytest.raises((InvalidDocument, InvalidInput)):
            EstimateDesign.from_dict({**document, **change})
    release = plan.run([0, 1, None, 1] * 25, rng=np.random.default_rng(3))
    assert type(release).from_dict(release.to_dict()).present == release.present


def test_every_engine_finds_the_same_pair(tmp_path: Any) -> None:
    plan = pt.design_estimate("normal(mean=?, sd=1)", between=(-2, 2), epsilon=1, n=60, missing="count")
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"x": np.where(rng.random(60) < 0.4, np.nan, rng.normal(size=60)), "who": np.arange(60) // 3})
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame.to_parquet(tmp_path / "data.parquet")
    wanted = plan._sums(open_source(frame["x"]))
    assert wanted[1] == frame["x"].notna().sum()
    for source in (frame, tmp_path / "data.csv", tmp_path / "data.parquet"):
        assert plan._sums(open_source(source, column="x")) == wanted
    by_unit = [plan._sums(open_source(source, column="x", unit="who")) for source in (frame, tmp_path / "data.csv")]
    assert by_unit[0] == by_unit[1]
