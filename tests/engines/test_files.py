"""Files: the right ones are found, what is wrong with them is said before anything is read, columns stay unread."""

from __future__ import annotations

import gzip
import shutil
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import privatest as pt
from privatest import engines
from privatest.engines import files
from privatest.engines.files import as_paths, format_of
from privatest.errors import InvalidData, InvalidInput
from tests.engines.catalogue import SCORES

SCORE = SCORES["line"].score
NUMBERS = np.random.default_rng(3).normal(0.5, 2, 5000)
EXPECTED = int(SCORE.of_numbers(NUMBERS).sum())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The same numbers once in each format, in a folder each."""
    table = pa.table({"id": np.arange(len(NUMBERS)), "x": NUMBERS})
    for name in ("parquet", "feather", "csv"):
        (tmp_path / name).mkdir()
    pq.write_table(table, tmp_path / "parquet" / "data.parquet", row_group_size=777)
    pa.feather.write_feather(table, tmp_path / "feather" / "data.feather")
    pa.csv.write_csv(table, tmp_path / "csv" / "data.csv")
    return tmp_path


@pytest.mark.parametrize("form", ["parquet", "feather", "csv"])
class TestEveryFormat:
    def test_paths_texts_globs_folders_and_lists_of_paths(self, folder: Path, form: str) -> None:
        path = folder / form / f"data.{form}"
        many = [path, str(path), str(folder / form), folder / form, str(folder / "*" / f"*.{form}"), [path]]
        for source in many:
            records = engines.open_source(source, column="x")
            assert (records.count(), records.total(SCORE)) == (len(NUMBERS), EXPECTED)
        copy = folder / f"copy.{form}"
        shutil.copy(path, copy)
        assert engines.total(SCORE, [path, copy], column="x") == 2 * EXPECTED

    def test_a_missing_column_is_named_with_a_suggestion(self, folder: Path, form: str) -> None:
        path = folder / form / f"data.{form}"
        first = "the first line of " if form == "csv" else ""
        end = r", which must name the columns\." if form == "csv" else r"\. Did you mean 'x'\?"
        with pytest.raises(InvalidData, match=rf"No column 'xx' in {first}'.*data\.{form}'{end}"):
            engines.open_source(path, column="xx")
        with pytest.raises(InvalidData, match="2 columns"):
            engines.open_source(path)
        assert engines.open_source(path, order="id").total(SCORE) == EXPECTED  # the other column is meant
        with pytest.raises(InvalidData, match="No column 'pid'"):
            engines.open_source(path, column="x", unit="pid")

    def test_what_is_no_such_file_is_refused_when_opened(self, folder: Path, form: str) -> None:
        path = folder / form / f"wrong.{form}"
        path.write_bytes(b"" if form == "csv" else b"id,x\n1,4711.25\n")
        with pytest.raises(InvalidData, match="wrong") as caught:
            engines.open_source(path, column="x")
        assert "4711" not in str(caught.value)
        path.write_bytes(b"")
        with pytest.raises(InvalidData, match=r"cannot be read as|is empty"):
            engines.open_source(path, column="x")


def test_files_cut_short_are_refused_when_opened(folder: Path) -> None:
    for form in ("parquet", "feather"):
        path = folder / form / f"data.{form}"
        whole = path.read_bytes()
        for size in (len(whole) // 2, len(whole) - 1, 3):
            path.write_bytes(whole[:size])
            with pytest.raises(InvalidData, match="Is it cut short"):
                engines.open_source(path, column="x")


def test_damage_inside_a_file_is_an_error_without_its_bytes(folder: Path) -> None:
    path = folder / "parquet" / "data.parquet"
    whole = bytearray(path.read_bytes())
    start = pq.read_metadata(path).row_group(2).column(1).data_page_offset
    whole[start : start + 900] = b"\x07" * 900
    path.write_bytes(bytes(whole))
    records = engines.open_source(path, column="x")  # the footer is whole
    with pytest.raises(InvalidData, match="cannot be read as Parquet") as caught:
        records.total(SCORE)
    assert caught.value.__context__ is None  # the reader's own words, which may quote a record, are not kept
    packed = folder / "cut.csv.gz"
    packed.write_bytes(gzip.compress(b"x\n" + b"1.5\n" * 10**5)[:200])
    with pytest.raises(InvalidData, match="cannot be read as CSV"):
        engines.total(SCORE, packed)


def test_files_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1.0], "who": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": ["1.0"], "who": [1]}), tmp_path / "b.parquet")
    with pytest.raises(InvalidData, match=r"Column 'x' is double in '.*a\.parquet' and string in '.*b\.parquet'"):
        engines.open_source(tmp_path, column="x")
    pq.write_table(pa.table({"y": [1.0], "who": [1]}), tmp_path / "b.parquet")
    with pytest.raises(InvalidData, match=r"No column 'x' in '.*b\.parquet'"):
        engines.open_source(tmp_path, column="x")
    pq.write_table(pa.table({"who": [2.0], "x": [3]}), tmp_path / "b.parquet")  # integers are read like doubles
    assert engines.total(SCORE, tmp_path, column="x") == int(SCORE.of_numbers([1, 3]).sum())
    with pytest.raises(InvalidData, match=r"Column 'who' is int64 .* and double"):  # but identities must be alike
        engines.open_source(tmp_path, column="x", unit="who")
    (tmp_path / "c.csv").write_text("x,who\n1,2\n")
    with pytest.raises(InvalidData, match="different formats: CSV and Parquet"):
        engines.open_source(tmp_path, column="x")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.csv").write_text("x,who\n1,2\n")
    (tmp_path / "a" / "2.csv").write_text("who,x\n7,3\n")
    assert engines.total(SCORE, tmp_path / "a", column="x") == int(SCORE.of_numbers([1, 3]).sum())
    (tmp_path / "a" / "2.csv").write_text("who,z\n7,3\n")
    with pytest.raises(InvalidData, match=r"The first line of '.*2\.csv' does not name"):
        engines.open_source(tmp_path / "a", column="x")


def test_no_file_no_folder_no_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claims.parquet").write_bytes(b"")
    with pytest.raises(InvalidData, match=r"No file 'clams\.parquet'\. Did you mean 'claims\.parquet'\?"):
        engines.open_source("clams.parquet")
    with pytest.raises(InvalidData, match="there is no folder 'nowhere'"):
        engines.open_source("nowhere/claims.parquet")
    with pytest.raises(InvalidData, match=r"No file matches '20\*\.csv'"):
        engines.open_source("20*.csv")
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(InvalidData, match="no known format"):
        engines.open_source("notes.txt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidData, match="holds no data files"):
        engines.open_source("empty")


def test_texts_that_are_no_paths_are_not_taken_for_any() -> None:
    assert as_paths(["a.csv", "b.csv"]) is None  # labels
    assert as_paths("0.5") is None
    assert as_paths("a\0b") is None
    assert as_paths(np.zeros(3)) is None
    assert as_paths([]) is None
    assert as_paths(Path("x")) == ["x"]
    assert [format_of(name) for name in ("a.CSV", "b.tsv.gz", "c.parquet.gz", "d.pq", "e")] == [
        "CSV",
        "CSV",
        None,
        "Parquet",
        None,
    ]


def test_only_the_needed_columns_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    plain = files.row_part
    monkeypatch.setattr(files, "row_part", lambda batch, names: seen.append(batch.schema.names) or plain(batch, names))
    engines.total(SCORE, folder / "parquet" / "data.parquet", column="x")
    engines.total(SCORE, folder / "feather" / "data.feather", column="x")
    assert len(seen) > 5
    assert all(names == ["x"] for names in seen)


def test_a_file_that_may_not_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError("secret 4711")  # root may read everything, so the system's refusal is played

    monkeypatch.setattr(pq, "ParquetFile", refuse)
    with pytest.raises(InvalidData, match="may not be read") as caught:
        engines.open_source(folder / "parquet", column="x")
    assert "4711" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("form", ["parquet", "feather", "csv"])
def test_a_listener_hears_of_the_bytes_that_were_read(folder: Path, form: str) -> None:
    path, heard = folder / form / f"data.{form}", []
    with pt.progress(heard.append):
        assert engines.total(SCORE, path, column="x") == EXPECTED
    assert {(each.what, each.total) for each in heard} == {("reading bytes", path.stat().st_size)}
    assert heard[-1].done > 0


def test_words_that_contradict_each_other(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="max_rows_per_unit=2 needs a unit"):
        engines.open_source(folder / "csv" / "data.csv", column="x", max_rows_per_unit=2)
    for wrong in (-1, 0, 1.5, True):
        with pytest.raises(InvalidInput, match=f"max_rows_per_unit={wrong}"):
            engines.open_source(folder / "csv" / "data.csv", column="x", unit="id", max_rows_per_unit=wrong)
    records = engines.open_source(folder / "csv" / "data.csv", column="x")
    assert engines.open_source(records) is records
    with pytest.raises(InvalidInput, match="open already"):
        engines.open_source(records, column="x")
    for words in ({"unit": "id"}, {"order": "id"}):
        with pytest.raises(InvalidData, match="single column"):
            engines.open_source(NUMBERS, **words)


SECRET = "Miller-1948"


@pytest.fixture
def headerless(tmp_path: Path) -> list[Path]:
    """Text files whose first line is a record, as everybody who forgot the names has them."""
    found = [tmp_path / "one.csv", tmp_path / "two.csv", tmp_path / "tabs.tsv", tmp_path / "packed.csv.gz"]
    for path, line in zip(
        found[:3], (f"{SECRET},{SECRET}x,7", "Smith,Jones,8", f"{SECRET}\t{SECRET}y\t7"), strict=True
    ):
        path.write_text(f"{line}\nBrown,White,9\n".replace(",", "\t" if path.suffix == ".tsv" else ","))
    found[3].write_bytes(gzip.compress(found[0].read_bytes()))
    (tmp_path / "single.csv").write_text(f"{SECRET}\n1\n0\n")
    (tmp_path / "other.csv").write_text("Smith\n1\n0\n")
    (tmp_path / "twice.csv").write_text(f"{SECRET},{SECRET}\n1,0\n")
    return [*found, tmp_path / "twice.csv"]


def test_the_first_line_of_a_text_file_is_in_no_message(headerless: list[Path]) -> None:
    """However near a guess comes: a file without names has a record there. Through every entrance."""
    guess = SECRET[:-1]
    P, Q = "bernoulli(0.3)", "bernoulli(0.6)"
    test = pt.design(P, Q, epsilon=1, n=2)
    asks: list[Any] = []
    for path in headerless:
        for words in ({"column": guess}, {"column": SECRET.lower()}, {"unit": guess}, {"order": guess}, {}):
            asks += [
                lambda path=path, words=words: (
                    engines.open_source(path, **words, max_rows_per_unit=1)
                    if "unit" in words
                    else engines.open_source(path, **words)
                )
            ]
        asks += [
            lambda path=path: pt.data.count_records(path, column=guess),
            lambda path=path: test.run(path, column=guess),
            lambda path=path: test.run(path, column="x", unit=guess),
            lambda path=path: pt.detect_change(path, P, Q, epsilon=1, column=guess),
            lambda path=path: pt.goodness_of_fit(path, P, distance=0.3, epsilon=1, column=guess),
            lambda path=path: pt.Monitor(P, Q, epsilon=1).update_many(path, column=guess),
        ]
    folder = headerless[0].parent
    asks += [  # several files: the first one's only column is meant, and is not in the second
        lambda: engines.open_source([folder / "single.csv", folder / "other.csv"]),
        lambda: test.run([folder / "single.csv", folder / "other.csv"]),
        lambda: engines.open_source([folder / "one.csv", folder / "two.csv"], column=guess),
    ]
    for ask in asks:
        with pytest.raises((InvalidData, ValueError)) as raised:
            ask()
        said = "".join(traceback.format_exception(raised.value, chain=True)[-1:]) + repr(raised.value)
        assert SECRET not in said
        assert "1948" not in said.replace(guess, "").replace(SECRET.lower(), "")
