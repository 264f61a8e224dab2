"""CSV: no record decides a type, stops the reading or moves another, whatever it is."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import privatest as pt
from privatest import engines
from privatest.engines import csv_fields as csv_files
from privatest.engines.arrays import FieldRecords, StreamRecords
from privatest.engines.csv_fields import field_number
from privatest.errors import InvalidData
from privatest.hypotheses import make_pair
from privatest.scores import clamped_score
from tests.engines.catalogue import SCORES

SCORE = SCORES["line"].score
HEALTH = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


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


# ---- any bytes are rows


def by_letters(data: bytes, width: int) -> list[list[bytes | None]]:
    """The rows of the data letter by letter, all at once: the rules without the haste."""
    text = "".join(
        chr(0x10FF00 + ord(letter) - 0xDC00) if "\udc80" <= letter <= "\udcff" else letter
        for letter in data.decode("utf-8", "surrogateescape")
    )
    text += "" if text[-1:] in ("", "\r", "\n") else "\n"  # the last row gets an end
    rows: list[list[bytes | None]] = []
    place = 0
    while place < len(text):
        row: list[bytes | None] = []
        while True:
            field, quoted = "", text[place : place + 1] == '"'
            if quoted:
                place += 1
                while place < len(text) and (text[place] != '"' or text[place + 1 : place + 2] == '"'):
                    field, place = field + text[place], place + (2 if text[place] == '"' else 1)
                place += 1
            while place < len(text) and text[place] not in ",\r\n":
                field, place = field + text[place], place + 1
            row.append(field.encode() if field or quoted else None)
            if text[place : place + 1] != ",":
                break
            place += 1
        place += 2 if text[place : place + 2] == "\r\n" else 1
        if len(row) == width:
            rows.append(row)
        elif row != [None]:  # an empty line is no row
            rows.append([None] * width)
    return rows


PIECES = [
    *(b'"', b",", b"\n", b"\r", b"\r\n", b"\xff", b"\xe2\x82", b"\xac", b"\xed\xb2\x80", b"\xef\xbb\xbf", b"\x00"),
    *(
        b"1",
        b"2.5",
        b"a",
        "é€😀".encode(),
        b'""',
        b"1,2\n",
        b"3,a\r\n",
        b'4,"\n\r"\n',
        b" ",
        b"\\",
        b"\x1a",
        b"\x0b\x85",
    ),
]
BYTES = st.one_of(st.binary(max_size=40), st.lists(st.sampled_from(PIECES), max_size=25).map(b"".join))
LINE_TEST = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1.0, n=20, neighbours="add-remove")
LABEL_TEST = pt.design({"a": 0.2, 1: 0.8}, {"a": 0.6, 1: 0.4}, epsilon=1.0, n=20, neighbours="add-remove")


@pytest.fixture
def quiet(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Nothing is written, neither by Python's hook for lost exceptions nor by Arrow itself."""
    lost: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    yield
    assert not lost
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("quiet")
@settings(max_examples=250, suppress_health_check=HEALTH)
@example(data=b"\xc2\x80\xe1\x80\x80\xf0\x90\x80\x80123\r\n", width=1, block=8, end=True)
@example(data=b'"1234\r\n5"\n6', width=1, block=8, end=True)
@example(data=b'"",', width=2, block=8, end=False)
@given(data=BYTES, width=st.integers(1, 3), block=st.sampled_from([8, 9, 10, 13, 32, 1 << 23]), end=st.booleans())
def test_any_bytes_are_rows(tmp_path: Path, data: bytes, width: int, block: int, end: bool) -> None:
    """Small blocks cut characters, quotes and ends of lines anywhere, and are too small for some of the rows."""
    header = ["x", "y", "z"][:width]
    path = written(tmp_path, ",".join(header).encode() + b"\n" + data + (b"\n" if end else b""))
    expected = by_letters(data + (b"\n" if end else b""), width)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "BLOCK", block)
        for place in range(width):
            fields = [row[place] for row in expected]
            records = engines.open_source(path, column=header[place])
            assert isinstance(records, StreamRecords)
            found = [field for part in records.stream.parts() for field in part.records.values.to_pylist()]  # type: ignore[attr-defined]
            if block < 1 << 20 and found != fields:  # a row was too long
                assert found[-1] is None
                assert found[:-1] == fields[: len(found) - 1]
                fields = found
            assert found == fields
            assert records.count() == len(fields)
            assert records.series(SCORE).tolist() == scores([field_number(field) for field in fields])


@pytest.mark.usefixtures("quiet")
@settings(max_examples=25, suppress_health_check=HEALTH, deadline=None)
@given(data=BYTES, block=st.sampled_from([8, 1 << 23]))
def test_no_bytes_make_a_run_fail(tmp_path: Path, data: bytes, block: int) -> None:
    path = written(tmp_path, b"x,who\n" + data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "BLOCK", block)
        count = pt.data.count_records(path, column="x")
        assert count == len(by_letters(data, 2)) or block == 8
        assert LINE_TEST.run(path, column="x").decision in ("null", "alternative")
        assert LABEL_TEST.run(path, column="x").decision in ("null", "alternative")
        assert LABEL_TEST.run(path, column="x", unit="who").decision in ("null", "alternative")
        for one in (engines.open_source(path, column="x", order="who"), engines.open_source(path, column="who")):
            assert len(one.series(SCORE)) == one.count() == count


def alone(program: str, *files: Path) -> tuple[str, str]:
    """What the program writes in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(Path(pt.__file__).parents[1])}
    command = [sys.executable, "-W", "error", "-c", program, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600, env=environment)
    return done.stdout.strip(), done.stderr


def test_bad_bytes_in_a_row_that_does_not_fit_say_nothing(tmp_path: Path) -> None:
    """In a process of its own: what Arrow and Python write at the end of one is seen too."""
    program = "import sys, privatest as pt; print([pt.data.count_records(path, column='x') for path in sys.argv[1:]])"
    files = [
        written(tmp_path, data, f"{number}.csv")
        for number, data in enumerate(
            [
                b"x,y\n1,a\n1,c,\xff\n",
                b"x,y\n\xff\n1,a\n",
                b"x,y\n1,2\n" + b"1,2,\xe2\x82\n" * 9,
                b'x,y\n1,2\n3,"\xff' + b"4,5\n" * 5_000_000,
            ]
        )
    ]
    out, err = alone(program, *files)
    assert (out, err) == ("[2, 2, 10, 2]", "")


@pytest.mark.usefixtures("quiet")
def test_a_quote_that_is_never_closed_ends_the_reading(tmp_path: Path) -> None:
    """The rest is one field, however long it is; if Arrow cannot parse as much at once, one missing record."""
    for rest, values in ((3, [5, 1]), (6_000_000, [5, math.nan])):
        path = written(tmp_path, 'x,y\n5,6\n1,"4711\n' + "2,3\n" * rest)
        records = engines.open_source(path, column="x")
        assert records.series(SCORE).tolist() == scores(values)
        assert records.total(SCORE) == sum(scores(values))
        assert records.count() == 2


def test_memory_for_a_long_row_is_bounded(tmp_path: Path) -> None:
    path = written(tmp_path, b'x,y\n1,"' + b"a,b\n" * (32 << 20))
    program = (
        "import sys, resource, privatest as pt; pt.data.count_records(sys.argv[2], column='x');"
        "start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; pt.data.count_records(sys.argv[1], column='x');"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start)"
    )
    small = written(tmp_path, "x,y\n1,2\n", "small.csv")
    out, _ = alone(program, path, small)
    assert int(out) * (1 if sys.platform != "darwin" else 2**-10) < 80_000  # KB, of a row of 128 MB


def test_a_file_whose_first_line_changed_is_refused(tmp_path: Path) -> None:
    """Columns are found by their places: behind another first line they would be others."""
    path = written(tmp_path, "x,y\n1,2\n")
    records = engines.open_source(path, column="x")
    assert records.series(SCORE).tolist() == scores([1])
    written(tmp_path, "y,x\n1,2\n")
    with pytest.raises(
        InvalidData, match=r"changed while they were read: the first line of .*data.csv' is another one"
    ):
        records.series(SCORE)
