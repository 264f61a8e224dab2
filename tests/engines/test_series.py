"""Scores in order: the same integers as the totals are made of, whatever the data come in."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from privatest import engines
from privatest.engines import arrays, columns
from privatest.engines.series import block_totals, score_series
from privatest.errors import InvalidData, InvalidInput
from privatest.pairs import make_pair
from privatest.scores import Score, clamped_score

PAIRS = {
    "line": (stats.norm(0, 1), stats.norm(1, 1)),
    "curve": (stats.norm(0, 1), stats.norm(0, 2)),
    "heavy": (stats.cauchy(0, 1), stats.cauchy(1, 1)),
    "half-line": (stats.expon(), stats.expon(scale=2)),
    "counts": (stats.poisson(3), stats.poisson(4)),
    "labels": ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2]),
}


def score_of(name: str, units: int | None = None) -> Score:
    return clamped_score(make_pair(*PAIRS[name]), (-1, 1), units)


def numbers(name: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    values = make_pair(*PAIRS[name]).null.sample(rng, n).astype(float)
    values[:: max(n // 9, 1)] = np.nan
    values[1 :: max(n // 7, 1)] = np.inf
    values[2 :: max(n // 5, 1)] = -1e300
    values[3 :: max(n // 4, 1)] = 0.5
    return values


@pytest.mark.parametrize("units", [None, 16])
@pytest.mark.parametrize("name", PAIRS)
def test_every_record_gets_the_score_of_its_cell(name: str, units: int | None) -> None:
    score, values = score_of(name, units), numbers(name, 5000)
    found = score_series(score, values)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, score.of_numbers(values))
    assert found[0] == score.odd_score  # NaN
    assert int(found.sum()) == engines.total(score, values)


@pytest.mark.parametrize("name", ["line", "heavy", "labels"])
def test_long_series_go_through_threads_and_chunks_unharmed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "FEW", 1000)
    monkeypatch.setattr(arrays, "CHUNK", 333)
    monkeypatch.setattr(columns, "CHUNK", 333)
    score, values = score_of(name), numbers(name, 10_007)
    np.testing.assert_array_equal(score_series(score, values), score.of_numbers(values))
    np.testing.assert_array_equal(
        block_totals(score, values, 7), score.of_numbers(values)[:10_003].reshape(-1, 7).sum(1)
    )


def test_lists_text_and_objects() -> None:
    score = clamped_score(make_pair({"a": 0.2, "b": 0.8}, {"a": 0.7, "b": 0.3}), (-1, 1))
    table = dict(zip(score.cells.labels, score.table.tolist(), strict=False))  # type: ignore[attr-defined]
    data = ["a", "b", None, "zzz", ["unhashable"], "b"]
    assert score_series(score, data).tolist() == [table["a"], table["b"], *[score.odd_score] * 3, table["b"]]
    assert block_totals(score, data, 2) == [table["a"] + table["b"], 2 * score.odd_score, score.odd_score + table["b"]]
    line = score_of("line")
    mixed = [0.25, None, "1.5", float("nan"), 3, True]
    floats = [0.25, np.nan, np.nan, np.nan, 3.0, 1.0]
    np.testing.assert_array_equal(score_series(line, mixed), line.of_numbers(floats))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_of_data_frames(library: str) -> None:
    module = pytest.importorskip(library)
    score, values = score_of("line"), np.linspace(-3, 3, 41)
    make = module.table if library == "pyarrow" else module.DataFrame
    frame = make({"when": np.arange(41), "x": values})
    np.testing.assert_array_equal(score_series(score, frame, "x"), score.of_numbers(values))
    assert block_totals(score, frame, 10, "x") == score.of_numbers(values)[:40].reshape(4, 10).sum(1).tolist()


def test_blocks_start_where_told_and_leave_the_rest() -> None:
    score, values = score_of("line"), np.linspace(-2, 2, 23)
    scores = score.of_numbers(values)
    assert block_totals(score, values, 5, start=2) == [int(scores[2 + 5 * j : 7 + 5 * j].sum()) for j in range(4)]
    assert block_totals(score, values, 24) == []
    assert block_totals(score, values, 23) == [int(scores.sum())]
    assert block_totals(score, [], 3) == []
    assert block_totals(score, values, 3, start=30) == []


def test_sums_that_could_leave_64_bits_are_refused() -> None:
    score = score_of("line", 16)
    wide = Score(
        score.cells,
        score.table << 58,
        score.origin,
        score.step,
        score.support << 58,
        score.null_law,
        score.alternative_law,
    )
    with pytest.raises(InvalidInput, match="could leave 64 bits"):
        score_series(wide, np.zeros(100))
    with pytest.raises(InvalidInput, match="could leave 64 bits"):
        block_totals(wide, np.zeros(100), 50)


def test_what_has_no_order_or_no_fitting_type_is_refused() -> None:
    score = score_of("line")
    with pytest.raises(InvalidData, match="set, which has no order"):
        score_series(score, {1.0, 2.0})
    with pytest.raises(InvalidData, match="text"):
        score_series(score, np.array(["a", "b"]))
    with pytest.raises(InvalidInput, match="block=0"):
        block_totals(score, [1.0], 0)
    with pytest.raises(InvalidInput, match="start=-1"):
        block_totals(score, [1.0], 1, start=-1)
