"""CSV: no record decides a type, stops the reading or moves another, whatever it is."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privatest import engines
from privatest.engines import csv_files
from privatest.engines.fields import FieldRecords, field_number
from privatest.errors import InvalidData
from privatest.pairs import make_pair
from privatest.scores import clamped_score
from tests.engines.catalogue import SCORES

SCORE = SCORES["line"].score


def written(folder: Path, text: str | bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def scores(values: list[float]) -> list[int]:
    return SCORE.of_numbers(values).tolist()


NUMBERS = {
    b"1": 1.0,
    b"-2.5": -2.5,
    b"+1": 1.0,
    b"1.": 1.0,
    b".5": 0.5,
    b"1e2": 100.0,
    b"1E-2": 0.01,
    b" 1\t": 1.0,
    b"-0.0": 0.0,
    b"00012": 12.0,
    b"true": 1.0,
    b"False": 0.0,
    b"1e400": math.inf,
    b"1e-400": 0.0,
    b"9007199254740993": 2.0**53,
    b"0.1000000000000000055511151231257827021181583404541015625": 0.1,
    b"123456789012345678901234567890123456789e-20": 1234567890123456789.0,
}
NO_NUMBERS = [
    *(b"", b" ", b"abc", b"1,5", b"1_000", b"0x10", b"1 2", b"--1", b"e5", b".", b"1e", b"$1", b"\xff\xfe", b"nan"),
    *("١٢".encode(), b"1\x00", b"None", b"NULL", b"yes", b"t", b"1d", b"1f", b"inf", b"-Infinity", b"+-1", b"1e5.0"),
]


@pytest.mark.parametrize("field", NUMBERS, ids=repr)
def test_what_is_a_number(field: bytes) -> None:
    assert field_number(field) == NUMBERS[field]


@pytest.mark.parametrize("field", [*NO_NUMBERS, None], ids=repr)
def test_what_is_none(field: bytes | None) -> None:
    assert math.isnan(field_number(field))


@settings(max_examples=60)
@given(
    fields=st.lists(
        st.one_of(
            st.none(),
            st.sampled_from([*NUMBERS, *NO_NUMBERS]),
            st.floats().map(lambda x: repr(x).encode()),
            st.integers().map(lambda x: str(x).encode()),
            st.binary(max_size=4),
            st.text("0123456789+-.eE _naif", max_size=7).map(str.encode),
        ),
        max_size=9,
    )
)
def test_fields_are_read_alike_alone_and_among_others(fields: list[bytes | None]) -> None:
    """In bulk or one by one, the same number: the way a batch is read must not depend on one field."""
    found = FieldRecords(pa.array(fields, type=pa.binary())).numbers().values
    alone = [FieldRecords(pa.array([field], type=pa.binary())).numbers().values[0] for field in fields]
    by_rule = [field_number(field) for field in fields]
    for one, other, rule in zip(found, alone, by_rule, strict=True):
        finite = [x if math.isfinite(x) else None for x in (one, other, rule)]  # nan and inf are odd alike
        assert finite[0] == finite[1] == finite[2]


@pytest.mark.parametrize("block", [1 << 23, 64, 200])
def test_rows_that_do_not_fit_are_odd_records_at_their_place(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "BLOCK", block)
    text = "name,x\n"
    expected: list[float] = []
    for number in range(200):
        match number % 8:
            case 0:
                text, value = text + "too few\n", math.nan
            case 3:
                text, value = text + f"too,many,{number}\n", math.nan
            case 5:
                text, value = text + f'"two\nlines, ""quoted""",{number}\n', float(number)
            case 6:
                text, value = text + f"no number,{number}x\n", math.nan
            case _:
                text, value = text + f"plain,{number / 8}\n", number / 8
        expected.append(value)
    records = engines.open_source(written(tmp_path, text), column="x")
    assert records.count() == 200
    assert records.series(SCORE).tolist() == scores(expected)
    assert records.total(SCORE) == sum(scores(expected))
    assert records.block_totals(SCORE, 7, 3) == np.array(scores(expected))[3:199].reshape(-1, 7).sum(1).tolist()
    # strange rows first, last, and alone
    for rows in (["1", "b,2"], ["b,2", "1"], ["1"], ["1", "1,2,3"]):
        found = engines.open_source(written(tmp_path, "name,x\n" + "\n".join(rows)), column="x")
        assert found.series(SCORE).tolist() == scores([2.0 if row == "b,2" else math.nan for row in rows])


def test_one_record_changes_its_own_score_alone(tmp_path: Path) -> None:
    rows = [f"{i / 10},n" for i in range(50)]
    before = engines.open_source(written(tmp_path, "x,y\n" + "\n".join(rows)), column="x").series(SCORE).tolist()
    for strange in ("abc,n", ",n", '"",n', "1,2,3", "1", "nan,n", "1e999,n", '"a\nb",n', '"a""b",n', " ,n", "\x00,n"):
        changed = [*rows[:20], strange, *rows[21:]]
        path = written(tmp_path, "x,y\n" + "\n".join(changed))
        after = engines.open_source(path, column="x").series(SCORE).tolist()
        assert after == [*before[:20], SCORE.odd_score, *before[21:]], strange
    latin = written(tmp_path, ("x,y\n" + "\n".join([*rows[:20], "é,n", *rows[21:]])).encode("latin-1"))
    assert engines.total(SCORE, latin, column="x") == sum(before) - before[20] + SCORE.odd_score


def test_single_columns_keep_their_empty_lines(tmp_path: Path) -> None:
    """As pandas, polars and pyarrow write missing records."""
    for text in ('x\n1\n""\n2\n', "x\n1\n\n2\n", '"x"\r\n1\r\n\r\n2\r\n', "x\n1\n\n2"):
        records = engines.open_source(written(tmp_path, text))
        assert records.series(SCORE).tolist() == scores([1, math.nan, 2])
    two = engines.open_source(written(tmp_path, "x,y\n1,2\n\n3,4\n\n"), column="x")
    assert two.series(SCORE).tolist() == scores([1, 3])


def test_headers(tmp_path: Path) -> None:
    for text in ("\ufeffx,y\n1,2\n", '"x","y"\n1,2\n', 'x,"y\nz"\n1,2\n', "x,\n1,2\n", "x,y,y\n1,2,3\n"):
        assert engines.total(SCORE, written(tmp_path, text), column="x") == sum(scores([1]))
    assert engines.open_source(written(tmp_path, b"x,\xff\xfe\n1,2\n"), column="x").count() == 1
    for empty in ("", "\n\n"):
        with pytest.raises(InvalidData, match="first line must name the columns"):
            engines.open_source(written(tmp_path, empty))


def test_labels_are_texts_first_and_numbers_otherwise(tmp_path: Path) -> None:
    path = written(tmp_path, 'x\na\n1\n1.0\n"1"\n a\n""\n\ntrue\n')
    cases: list[tuple[Any, list[Any]]] = [
        ({"a": 0.2, "b": 0.8}, ["a", *[None] * 7]),
        ({"a": 0.2, "1": 0.8}, ["a", "1", None, "1", None, None, None, None]),
        ({"a": 0.2, 1: 0.8}, ["a", 1, 1, 1, None, None, None, 1]),
        ({"": 0.2, "1": 0.3, 1: 0.5}, [None, "1", 1, "1", None, "", None, 1]),
        ([0.2, 0.8], [None, 1, 1, 1, None, None, None, 1]),
        ({True: 0.2, False: 0.8}, [None, True, True, True, None, None, None, True]),
    ]
    for null, expected in cases:
        labels = list(null) if isinstance(null, dict) else [0, 1]
        alternative = dict(zip(labels, np.random.default_rng(1).dirichlet(np.ones(len(labels))).tolist(), strict=True))
        law = null if isinstance(null, dict) else dict(enumerate(null))
        score = clamped_score(make_pair(law, alternative), (-0.9, 1.1))
        table = dict(zip(score.cells.labels, score.table.tolist(), strict=False))  # type: ignore[attr-defined]
        records = engines.open_source(path)
        records.check(score)
        assert records.series(score).tolist() == [table.get(one, score.odd_score) for one in expected], null
        assert records.total(score) == sum(table.get(one, score.odd_score) for one in expected)


def test_order_by_numbers_and_by_dates(tmp_path: Path) -> None:
    """Numbers sort as numbers, dates in ISO form by their text; a strange one moves itself alone."""
    path = written(tmp_path, "t,x\n10,3\n9,2\n-1e0,1\n,5\nzzz,4\n")
    records = engines.open_source(path, column="x", order="t")
    assert records.series(SCORE).tolist() == scores([1, 2, 3, 4, 5])
    dated = written(tmp_path, "t,x\n2024-10-01,2\n2024-09-30T23:59,1\n2025-01-01,3\n")
    assert engines.open_source(dated, column="x", order="t").series(SCORE).tolist() == scores([1, 2, 3])
    long = written(tmp_path, "t,x\n9007199254740993,2\n9007199254740992,1\n")
    assert engines.open_source(long, column="x", order="t").series(SCORE).tolist() == scores([1, 2])


def test_a_quote_that_is_never_closed_is_an_error_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, 'x,y\n1,"4711\n' + "2,3\n" * 5_000_000)
    with pytest.raises(InvalidData, match="cannot be read as CSV") as caught:
        engines.total(SCORE, path, column="x")
    assert "4711" not in str(caught.value)
    assert caught.value.__context__ is None
