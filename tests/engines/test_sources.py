"""Scores in order: the same integers as the totals are made of, whatever the data come in.

The same integer from every container, whatever odd records are among them; and clear errors for wrong structure.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import privatest as pt
from privatest.engines import open_source, total
from privatest.engines.records import scores_of_each
from privatest.engines.sources import block_totals
from privatest.errors import InvalidData, InvalidInput
from privatest.hypotheses import make_pair
from privatest.scores import Score, clamped_score
from tests.engines.catalogue import HOSTILE, NUMERIC, SCORES, STRANGE, by_hand, containers

NUMPY_TEXT = hasattr(np.dtypes, "StringDType")
"""numpy 2 has a type of its own for text."""

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
        scores_of_each(open_source(np.zeros(100)), wide)
    with pytest.raises(InvalidInput, match="could leave 64 bits"):
        block_totals(wide, np.zeros(100), 50)


def test_what_has_no_order_or_no_fitting_type_is_refused() -> None:
    score = score_of("line")
    with pytest.raises(InvalidData, match="set, which has no order"):
        block_totals(score, {1.0, 2.0}, 1)
    with pytest.raises(InvalidData, match="text"):
        block_totals(score, np.array(["a", "b"]), 1)
    with pytest.raises(InvalidInput, match="block=0"):
        block_totals(score, [1.0], 0)
    with pytest.raises(InvalidInput, match="start=-1"):
        block_totals(score, [1.0], 1, start=-1)


def data_sets(name: str) -> list[list[Any]]:
    case = SCORES[name]
    if case.texts:
        return [list(case.texts) * 5, [*case.texts, None, "foreign", "a ", None]]
    numbers = list(case.numbers)
    return [
        numbers * 3,
        [0, 1, 1, 0, 1],
        [0, 1, None, 1],
        [*numbers, None],
        [3, 2**53, -4, 2],
        [*numbers, *STRANGE, None],
    ]


TRUTHS = ("pandas boolean", "arrow bool", "polars Boolean", "bool")


@pytest.mark.parametrize("name", SCORES)
def test_every_container_gives_the_same_integer(name: str) -> None:
    case = SCORES[name]
    for records in data_sets(name):
        expected = by_hand(case.score, records)
        made = dict(containers(records, text=bool(case.texts)))
        if name == "fraction labels":  # of which none is 0 or 1: a type that has no other values is refused
            truths = [made.pop(kind) for kind in TRUTHS if kind in made]
            for make in truths:
                with pytest.raises(InvalidData, match="no label of the distributions is 0 or 1"):
                    total(case.score, make())
        found = {kind: total(case.score, make()) for kind, make in made.items()}
        assert found == dict.fromkeys(found, expected)
        assert len(found) >= 19 + NUMPY_TEXT


def test_integers_beyond_exact_doubles_are_rounded_alike() -> None:
    score = SCORES["integers"].score
    for values in ([2**53 + 1, 2**62 + 1, -(2**61) - 1], [2**63 - 1, -(2**63), 0]):
        found = {
            total(score, values),
            total(score, np.array(values, dtype=np.int64)),
            total(score, pa.array(values, type=pa.int64())),
            total(score, pa.array([*values, None], type=pa.int64())) - score.odd_score,
            total(score, pl.Series(values)),
            total(score, pl.Series([*values, None])) - score.odd_score,
            total(score, pd.Series(values, dtype="Int64")),
        }
        assert len(found) == 1


class TestOddRecords:
    """They never raise, never warn (warnings are errors here), and all have the one score."""

    @pytest.mark.parametrize("name", SCORES)
    def test_hostile_records_have_the_odd_score(self, name: str) -> None:
        score = SCORES[name].score
        array = np.empty(len(HOSTILE), dtype=object)
        array[:] = [*HOSTILE[:-1], None]
        for index, record in enumerate(HOSTILE):
            assert total(score, [record]) == score.odd_score, index
        assert total(score, list(HOSTILE)) == len(HOSTILE) * score.odd_score
        assert total(score, array) == len(HOSTILE) * score.odd_score
        assert total(score, pd.Series(array, dtype=object)) == len(HOSTILE) * score.odd_score
        for source in (pl.Series("x", array, dtype=pl.Object), pl.DataFrame({"x": array}, schema={"x": pl.Object})):
            assert total(score, source) == len(HOSTILE) * score.odd_score

    def test_a_record_that_warns_is_not_heard(self) -> None:
        from tests.engines.catalogue import Shouting

        for name in NUMERIC:
            score = SCORES[name].score
            assert isinstance(total(score, [Shouting(1.0), 0]), int)

    def test_text_that_is_no_text_is_odd(self) -> None:
        """Files can hold strings that are not valid UTF-8; converting such a column would raise for one record."""
        score = SCORES["text labels"].score
        offsets, data = np.array([0, 1, 3, 4], dtype=np.int32), b"a\xff\xfeb"
        broken = pa.StringArray.from_buffers(3, pa.py_buffer(offsets), pa.py_buffer(data))
        with pytest.raises(UnicodeDecodeError):
            broken.to_pylist()
        expected = by_hand(score, ["a", None, "b"])
        assert total(score, broken) == expected
        assert total(score, pa.chunked_array([broken])) == expected
        assert total(score, pd.Series(broken, dtype=pd.ArrowDtype(pa.string()))) == expected


STRUCTURE: dict[str, tuple[Any, str]] = {
    "two dimensions": (np.zeros((3, 2)), "2 dimensions"),
    "no dimension": (np.float64(3.0), "0 dimensions"),
    "dates in numpy": (np.array(["2024-01-01"], dtype="datetime64[D]"), "datetime64"),
    "durations in numpy": (np.array([1], dtype="timedelta64[s]"), "timedelta64"),
    "masked dates": (np.ma.masked_array(np.array(["2024-01-01"], dtype="datetime64[D]"), [True]), "datetime64"),
    "complex": (np.array([1j]), "complex128"),
    "records with fields": (np.zeros(2, dtype=[("a", "f8")]), "Pass numbers"),
    "dates in pandas": (pd.Series(pd.to_datetime(["2024-01-01"])), "datetime64"),
    "zoned dates in pandas": (pd.Series(pd.to_datetime(["2024-01-01"], utc=True)), "datetime64"),
    "periods in pandas": (pd.Series(pd.period_range("2024", periods=2, freq="M")), "period"),
    "intervals in pandas": (pd.Series(pd.interval_range(0, 2)), "interval"),
    "categories with frames": (pd.DataFrame({"a": [1], "b": [2]}), "2 columns"),
    "dates in arrow": (pa.array([datetime.date(2024, 1, 1)]), "date32"),
    "dates of a dictionary in arrow": (pa.array([datetime.date(2024, 1, 1)]).dictionary_encode(), "date32"),
    "dates in pandas by arrow": (
        pd.Series([datetime.date(2024, 1, 1)], dtype=pd.ArrowDtype(pa.date32())),
        "date32",
    ),
    "lists in arrow": (pa.array([[1, 2]]), "list"),
    "a scalar of arrow": (pa.scalar(3), "pyarrow"),
    "dates in polars": (pl.Series([datetime.date(2024, 1, 1)]), "date32"),
    "lists in polars": (pl.Series([[1, 2]]), "list"),
    "a lazy frame": (pl.DataFrame({"x": [1]}).lazy(), "collect"),
    "groups": (pl.DataFrame({"x": [1]}).group_by("x"), "Pass"),
    "a text": ("0.5", "single text"),
    "bytes": (b"0.5", "single text"),
    "a mapping": ({"x": [1.0]}, "dict"),
    "an integer": (5, "type int"),
    "nothing": (None, "NoneType"),
    "a path to nothing": (Path("no_such_data.csv"), "No file 'no_such_data.csv'"),
}


@pytest.mark.parametrize("name", STRUCTURE)
def test_wrong_structure_is_an_error_that_says_so(name: str) -> None:
    source, words = STRUCTURE[name]
    with pytest.raises(InvalidData, match=words):
        total(SCORES["line"].score, source)


def test_no_description_of_data_shows_a_record(tmp_path: Path) -> None:
    values = [17.25, 18.5]
    where = tmp_path / "lines.csv"
    sources = [values, np.array(values), ["17.25", "b"], pd.Series(values), pd.Series(["17.25", "b"], dtype="category")]
    sources += [pd.DataFrame({"x": values}), pa.array(values), pl.Series(values), pt.data.read_lines(["17.25", "3"])]
    for source in sources:
        told = [open_source(source), pt.data.open_once(source), pt.data.read_as(source, missing=["-"])]
        told += [open_source(one) for one in told[1:]]
        assert not [one for one in told if "17.25" in f"{one!r}{one}"], type(source)
    assert "17.25" not in repr(pt.data.read_lines(["17.25"]))
    assert repr(pt.data.open_once(str(where))) == f"<{where}, to be opened once>"
