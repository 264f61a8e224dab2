"""Missing records in an estimate: the answer is about those present, and the measured number of them is paid for."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Hashable
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privatest as pt
from privatest.engines import Tallied, open_source
from privatest.engines.records import PresentRecords, nearest
from privatest.errors import InvalidInput
from privatest.estimates.estimate import EstimateDesign
from privatest.privacy import Pure, Tulap, seeded_source
from privatest.privacy.bulk_draws import draw_some
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


def test_how_many_records_are_summed_is_said_by_the_noisy_number_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is drawn about neighbours, one of which has a record less, where each record adds many widths."""
    design = counting_design()
    score = replace(design.score, table=design.score.table + 10, support=design.score.support + 10)  # type: ignore[union-attr]
    design = replace(design, score=score)
    monkeypatch.setattr(
        sys.modules["privatest.estimates.estimate"], "MISCOUNTED", 5
    )  # else so few are summed: always one
    only_the_draw(monkeypatch)
    pairs = list(itertools.permutations([(1.0, 1.0), (1.0, np.nan)], 2))
    summed = {design._presence.summed(Fraction(number), 2) for number in range(-3, 6)}
    assert summed == {1, 2}
    with walking(3):
        laws = laws_of(lambda data, source: design.run(np.array(data), rng=source), pairs)
        assert 0.3 < largest_loss(laws, pairs, None) <= EPSILON * SLACK


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

    @cache
    def opened(mine: Any) -> Any:
        frame = pd.DataFrame({"who": ["me"] * len(mine) + ["you"] * 3, "x": [*mine, 1.0, np.nan, 0.0]})
        return open_source(frame, column="x", unit="who")

    def run(mine: Any, source: Any) -> Hashable:
        return design.run(opened(mine), rng=source)

    sets = [*itertools.combinations_with_replacement((0.0, 1.0, np.nan), 2), (np.nan,), (1.0,)]
    pairs = list(itertools.permutations(sets, 2))
    with walking(3):
        assert largest_loss(laws_of(run, pairs), pairs, None) <= EPSILON * SLACK


def test_the_counts_of_two_groups_are_private_with_the_numbers_present() -> None:
    """Each group is drawn by itself, and nobody is in both: one of them is walked."""
    score = small_rate(EPSILON, 2, 1).score
    fields = {
        "score": replace(score, table=np.array([0, 1, 0]), support=np.array([0, 1])),
        "noise": Tulap(EPSILON - COUNTING, 1),
        "count_noise": Tulap(COUNTING, 1),
    }
    design = replace(pt.design_groups(n=(2, 1), epsilon=1, missing="count"), notion=Pure(EPSILON), **fields)
    object.__setattr__(design, "n", (2,))  # of the group that is walked
    sets = list(itertools.product((0.0, 1.0, np.nan), repeat=2))
    pairs = [
        (one, other)
        for one in sets
        for other in sets
        if sum(repr(a) != repr(b) for a, b in zip(one, other, strict=True)) == 1
    ]

    def run(data: Any, source: Any) -> Hashable:
        one = SimpleNamespace(both=(open_source(np.array(data)),), names=())
        return tuple(map(str, design.draw(one, source)))

    with walking(3):
        assert 0.9 * EPSILON < largest_loss(laws_of(run, pairs), pairs, None) <= EPSILON * SLACK
        design = forged(design, count_noise=Tulap(2 * COUNTING, 1))  # the counts are half paid for
        assert largest_loss(laws_of(run, pairs), pairs, None) > EPSILON * 1.2


def farthest(sum_of: Callable[[PresentRecords, int], int], k: int) -> int:
    """How far all rows of one person, replaced by as many, move a sum of the present rows of persons, at most."""
    score = small_rate(EPSILON, 2, k).score
    others = [(1.0, 0.0, np.nan), (1.0,), (np.nan, np.nan)]
    sets = list(itertools.combinations_with_replacement((0.0, 1.0, np.nan), 3))
    found: dict[int, list[int]] = {}
    for other, mine in itertools.product(range(3), sets):
        rows = [("me", x) for x in mine] + [(f"you {i}", x) for i, x in enumerate(others[other])]
        frame = pd.DataFrame(rows, columns=["who", "x"])
        present = Tallied(open_source(frame, column="x", unit="who", max_rows_per_unit=k)).present(score)
        for most in range(1, 7):
            found.setdefault((other, most), []).append(sum_of(present, most))  # type: ignore[arg-type]
    return max(max(totals) - min(totals) for totals in found.values())


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_present_rows_of_a_person_move_the_sum_by_as_many_widths_as_rows_count(k: int) -> None:
    def fair(present: PresentRecords, most: int) -> int:
        return present.sum_of(most, lambda *_: pytest.fail("nothing is drawn"))

    def stretched(present: PresentRecords, most: int) -> int:
        """Scaled up as well, as if the mean could be had of any number."""
        return nearest(present.total * most / present.rows) if present.rows else 0

    width = small_rate(EPSILON, 2, k).score.width
    assert farthest(fair, k) <= k * width
    assert farthest(stretched, k) > k * width


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
    assert found.sentence.startswith("MORE THAN HALF of the records may be missing") == (absent == 0.8)
    among = "finite numbers" if family[0] in "ns" else "0 or 1"
    assert f"among the records that are {among} (about {found.present:,.0f} of 4,000)" in found.sentence


def test_groups_of_labels_that_nobody_named_have_no_rates() -> None:
    arms = [np.array(["Yes", "No"] * half, dtype=object) for half in (200, 250)]
    found = pt.compare_groups(*arms, epsilon=1, rng=np.random.default_rng(3))
    told = {fact.name: fact for fact in found.facts()}
    for name in ("decision", "difference", "rates"):
        assert told[name].meaning == f"no {name}: there may be no record to answer for"
    assert "success='Yes' or 'categorical(Yes=?)'" in found.sentence
    (low, high), other = found.present_intervals
    assert f"[{low:.4g}, {high:.4g}] and [{other[0]:.4g}, {other[1]:.4g}]" in str(found)


@pytest.mark.parametrize("absent", [0.05, 0.37, 0.8])
def test_groups_are_compared_by_the_records_that_are_present(absent: float) -> None:
    rng = np.random.default_rng(4)
    arms = [(rng.random(4000) < rate).astype(float) for rate in (0.3, 0.45)]
    arms[0][rng.random(4000) < absent] = np.nan  # of one group alone: counted as no success, it would look worse
    found = pt.compare_groups(*arms, success=1, epsilon=1, confidence=0.999, rng=rng)
    assert found.interval[0] < 0.15 < found.interval[1]
    assert found.decision == "alternative"
    assert found.few_present == (absent == 0.8)
    for (low, high), arm in zip(found.present_intervals, arms, strict=True):
        assert low <= np.isfinite(arm).sum() <= high
    none = pt.compare_groups(arms[0], arms[0].copy(), success=1, epsilon=1, rng=rng)
    assert none.decision == "null"
    assert found.design.from_dict(found.design.to_dict()) == found.design


@pytest.mark.parametrize("data", [np.array([False, True] * 50)])
def test_it_costs_nothing_where_the_type_admits_no_missing_value(data: Any) -> None:
    found = pt.estimate(data, "bernoulli(?)", epsilon=1, rng=np.random.default_rng(1))
    assert found.missing == "none"
    assert found.present is None
    listed = pt.estimate(data.tolist(), "bernoulli(?)", epsilon=1, rng=np.random.default_rng(1))
    assert listed.missing == "count"
    assert open_source(pd.Series(data, dtype="Int64")).declared.nullable
    assert pt.estimate([0, 1] * 50, "bernoulli(?)", epsilon=1, missing="none").present is None


COUNTS, UNSIGNED = np.array([0, 1] * 50), np.array([0, 1] * 50, dtype=np.uint8)


def test_a_whole_number_outside_the_family_pulls_no_answer() -> None:
    """Zeros and ones with a third of twos; numbers coded 1 and 2; counts with a sentinel."""
    rng = np.random.default_rng(3)
    ones = (rng.random(3000) < 0.3).astype(int)
    third = np.where(rng.random(3000) < 1 / 3, 2, ones)
    found = pt.estimate(third, "bernoulli(?)", epsilon=1, confidence=0.999, rng=rng)
    assert found.interval[0] < 0.3 < found.interval[1]
    assert "among the records that are 0 or 1 (about" in found.sentence
    assert found.present_interval[0] <= (third < 2).sum() <= found.present_interval[1]
    assert pt.estimate(third, "bernoulli(?)", missing="none", epsilon=1, rng=rng).interval[0] > 0.33  # a half each
    coded = pt.estimate(2 - ones, "bernoulli(?)", epsilon=1, rng=rng)
    assert coded.sentence.startswith("MORE THAN HALF of the records may be missing, or not 0 or 1")
    assert "success=" in coded.sentence
    counts = np.where(rng.random(3000) < 0.1, -999, rng.poisson(2, 3000))
    found = pt.estimate(counts, "poisson(?)", between=(0.5, 9), epsilon=1, confidence=0.999, rng=rng)
    assert found.interval[0] < 2 < found.interval[1]
    arms = pt.compare_groups(third[:1500], third[1500:], epsilon=1, rng=rng)
    assert "among the records that are 0 or 1 (about" in arms.sentence


def test_no_number_is_told_where_no_record_may_be_of_the_family(tmp_path: Path) -> None:
    """A file declares no types, and a refusal would tell of one record: the answer says so, and nothing else."""
    (tmp_path / "a.csv").write_text("x\n" + "Yes\nNo\nNo\n" * 300)
    words: dict[str, Any] = {"column": "x", "epsilon": 1, "rng": np.random.default_rng(1)}
    found = pt.estimate(tmp_path / "a.csv", "bernoulli(?)", **words)
    assert found.interval == (0, 1)
    assert found.sentence == (
        "ALL of the records may be missing, or not 0 or 1: look at the column (pt.check). Labels: name the one that "
        "counts, success='Yes' or 'categorical(Yes=?)'. Numbers: name a cut, 'share_above(5, ?)'. "
        "Nothing is known of the records that are 0 or 1: report no number."
    )
    assert str(found).splitlines()[1].split()[:2] == ["few", "present"]
    assert pt.estimate(tmp_path / "a.csv", "bernoulli(?)", success="Yes", **words).width < 0.2
    (tmp_path / "b.csv").write_text("x,arm\n" + "Yes,a\nNo,b\nNo,a\nYes,b\n" * 300)
    arms = pt.compare_groups(tmp_path / "b.csv", group="arm", **words)
    assert arms.decision == "null"
    assert arms.sentence.endswith("report no number.")


@pytest.mark.parametrize("form", ["objects", "category", "text", "csv", "numbers", "duckdb"])
def test_the_share_of_a_label_is_one_of_the_records_that_are_present(form: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    labels = rng.choice(["a", "b", "c"], 3000, p=[0.3, 0.5, 0.2]).astype(object)
    labels[rng.random(3000) < 0.5] = None
    source: Any = pd.DataFrame({"x": labels})
    label, words = "a", {"column": "x"}
    if form == "category":
        source["x"] = source["x"].astype("category")
    elif form == "text":
        source["x"] = source["x"].astype("string[pyarrow]")
    elif form == "numbers":
        label, source = 1, pd.DataFrame({"x": source["x"].map({"a": 1.0, "b": 2.0, "c": 3.0})})
    elif form == "csv":
        source.to_csv(tmp_path / "a.csv", index=False)
        source = tmp_path / "a.csv"
    elif form == "duckdb":
        source = pytest.importorskip("duckdb").connect().from_df(source)
    found = pt.estimate(source, "bernoulli(?)", success=label, epsilon=1, confidence=0.999, rng=rng, **words)
    assert found.interval[0] < 0.3 < found.interval[1]
    assert found.width < 0.1
    assert found.present_interval[0] <= (labels != None).sum() <= found.present_interval[1]  # noqa: E711 - by entry


def test_every_engine_finds_the_same_pair(tmp_path: Any) -> None:
    plan = pt.design_estimate("normal(mean=?, sd=1)", between=(-2, 2), epsilon=1, n=60, missing="count")
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"x": np.where(rng.random(60) < 0.4, np.nan, rng.normal(size=60)), "who": np.arange(60) // 3})
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame.to_parquet(tmp_path / "data.parquet")

    def found(source: Any, **where: Any) -> tuple[int, int]:
        present = Tallied(open_source(source, **where)).present(plan.score)
        return present.count, present.sum_of(20, partial(draw_some, seeded_source(np.random.default_rng(2))))

    wanted = found(frame["x"])
    assert wanted[0] == frame["x"].notna().sum()
    for source in (frame, tmp_path / "data.csv", tmp_path / "data.parquet"):
        assert found(source, column="x") == wanted
    by_unit = [found(source, column="x", unit="who") for source in (frame, tmp_path / "data.csv")]
    assert by_unit[0] == by_unit[1]


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("epsilon", [0.2, 1])
def test_intervals_of_noisy_counts_hold_as_often_as_they_say_and_hardly_more_often(
    confidence: float, epsilon: float
) -> None:
    """Of the records that are present, in an estimate and in groups, and of the odd ones: by the law of the noise."""
    words: dict[str, Any] = {"confidence": confidence, "missing": "count", "epsilon": epsilon}
    estimate = pt.design_estimate("bernoulli(?)", n=9000, **words)
    groups = pt.design_groups(n=(9000, 8000), **words)
    widths = []
    found = estimate.release([0 + estimate.noise.offset, 4000 + estimate.count_noise.offset])
    widths.append((found.present_interval, estimate.count_noise, found.present))
    pair = groups.run([0.0, None] * 4500, [1.0, None] * 4000, rng=np.random.default_rng(1))
    widths += [
        (ends, groups.count_noise, about) for ends, about in zip(pair.present_intervals, pair.present, strict=True)
    ]
    for (low, high), noise, about in widths:
        away = (high - low) / 2
        assert low + away == pytest.approx(float(about))
        assert 1 - 2 * noise.sf(away) >= confidence > 1 - 2 * noise.sf(away - 1)
    for rows in (1, 3):
        test = pt.design("bernoulli(0.2)", "bernoulli(0.8)", epsilon=1, n=900, max_rows_per_unit=rows)
        data = pd.DataFrame({"x": [0.0, 1.0, None] * 300, "who": range(900)})
        odd = test.run(data, column="x", unit="who", odd_epsilon=epsilon, rng=np.random.default_rng(1))
        away, noise = odd.odd_margin * 900, Tulap(Fraction(str(epsilon)), rows)
        assert 1 - 2 * noise.sf(away + 1e-9) >= 0.95 > 1 - 2 * noise.sf(away - 1)
