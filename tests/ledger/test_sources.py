"""What a request reads: noted, told to whoever asks again, and compared with what the grant covers."""

from __future__ import annotations

import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.data_addresses import address_of, is_covered, normalized_covers, without_secrets
from privatest.errors import InvalidInput, SourceNotCovered, charge_note

BITS = np.random.default_rng(3).integers(0, 2, 40)
TEST = pt.design("bernoulli(0.3)", "bernoulli(0.6)", epsilon=0.5, n=40)
PAID = {"dataset": "d", "request": "r"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x\n" + "\n".join(map(str, BITS)) + "\n")
    return tmp_path


@pytest.fixture
def book(tmp_path: Path) -> pt.Ledger:
    found = pt.Ledger(tmp_path / "ledger.db")
    found.grant("d", epsilon=2)
    return found


class TestRecordedAnswers:
    def test_another_file_is_named_and_was_not_read(self, book: pt.Ledger, folder: Path) -> None:
        first = TEST.run(folder / "a.csv", column="x", ledger=book, **PAID)
        for name, same in (("a.csv", True), ("b.csv", False), ("gone.csv", False)):
            again = TEST.run(folder / name, column="x", ledger=book, **PAID)
            assert again == first
            assert again.replayed is not None
            assert again.replayed.same_source is same
            assert again.replayed.recorded == book.history()[-1].time
            assert f"for '{folder / 'a.csv'}'; nothing charged, the data given now" in str(again)
            assert "were not read" in str(again)
            assert (f"({str(folder / name)!r})" in str(again)) is not same
            assert type(again).from_dict(again.to_dict()).replayed == again.replayed
        assert book.spent("d") == Fraction(1, 2)

    def test_the_slower_of_two_runs_is_told(self, book: pt.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        inner: list[Any] = []
        draw = type(TEST.noise).draw_doubled

        def racing(noise: Any, source: Any) -> int:
            if not inner:
                inner.append(None)
                inner.append(TEST.run(BITS, ledger=book, **PAID))
            return draw(noise, source)

        monkeypatch.setattr("privatest.privacy.tulap.Tulap.draw_doubled", racing)
        outer = TEST.run(BITS, ledger=book, **PAID)
        assert outer == inner[1]
        assert inner[1].replayed is None
        assert outer.replayed is not None
        assert "another run of this request had charged it before" in str(outer)
        assert book.spent("d") == Fraction(1, 2)


class TestWhatAGrantCovers:
    def test_other_files_are_refused_and_nothing_is_charged(self, book: pt.Ledger, folder: Path) -> None:
        book.grant("d", epsilon=2, covers=folder / "a.csv")
        with pytest.raises(SourceNotCovered, match=r"granted for 'a\.csv'; .*b\.csv' is none of them"):
            TEST.run(folder / "b.csv", column="x", ledger=book, **PAID)
        with pytest.raises(SourceNotCovered, match="data in memory"):
            TEST.run(BITS, ledger=book, **PAID)
        assert (book.spent("d"), book.verify()) == (0, 2)
        TEST.run(folder / "a.csv", column="x", ledger=book, **PAID)
        assert book.spent("d") == Fraction(1, 2)
        assert book.covers("d") == [str((folder / "a.csv").resolve())]

    def test_a_request_that_was_charged_does_not_go_on_with_another_file(
        self, book: pt.Ledger, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        book.grant("d", epsilon=2, covers=folder / "a.csv")
        with monkeypatch.context() as broken:
            broken.setattr(pt.results.PrivateTest, "release", lambda *_, **__: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                TEST.run(folder / "a.csv", column="x", ledger=book, **PAID)
        draw = book.history("d")[-1].about["draw"]
        found = TEST.run(folder / "b.csv", column="x", ledger=book, **PAID)
        assert found == TEST.release(draw)
        assert found.replayed is not None
        assert found.replayed.source == str(folder / "a.csv")
        assert found.replayed.same_source is False
        assert f"({str(folder / 'b.csv')!r}) were not read" in found.replayed.note

    def test_a_covered_document_that_was_edited_is_found(self, book: pt.Ledger, folder: Path, tmp_path: Path) -> None:
        book.grant("d", epsilon=2, covers=folder / "a.csv")
        with sqlite3.connect(tmp_path / "ledger.db") as raw:
            raw.execute("UPDATE privatest_ledger_rows SET release = NULL WHERE sequence = 2")
        with pytest.raises(pt.errors.LedgerTampered, match="Row 2"):
            TEST.run(folder / "b.csv", column="x", ledger=book, **PAID)

    @pytest.mark.parametrize(
        ("covers", "inside", "outside"),
        [
            ("/d/a.csv", ["/d/a.csv", "/d/../d/a.csv"], ["/d/a.csv.gz", "/d/b.csv", "/e/a.csv"]),
            ("/d", ["/d/a.csv", "/d/e/b.csv", "/d/", "/d"], ["/da.csv", "/dd/a.csv"]),
            ("/d/*.csv", ["/d/a.csv"], ["/d/e/a.csv", "/d/a.txt", "/d", "/d/"]),
            ("/d/**/*.csv", ["/d/e/a.csv", "/d/e/f/a.csv"], ["/e/f/a.csv"]),
            (
                "postgresql://h/db::t",
                ["postgres://ann:s@H:5432/db::public.t", "postgresql+psycopg://h/db?sslmode=require::t"],
                [
                    "postgresql://h/db::u",
                    "postgresql://h/db2::t",
                    "postgresql://h:5433/db::t",
                    "postgresql://h/db::s.t",
                ],
            ),
            (
                "postgresql://localhost:5433/db::t",
                ["postgresql://127.0.0.1:5433/db::t", "postgresql://[::1]:5433/db::t"],
                ["postgresql://127.0.0.10:5433/db::t", "postgresql://127.0.0.1/db::t"],
            ),
            ("postgresql:///db?host=a::t", ["postgresql:///db?host=a&password=x::t"], ["postgresql:///db?host=b::t"]),
            (
                "duckdb:////d/x.db::t",
                ["duckdb:////d/e/../x.db::main.t"],
                ["duckdb:////d/x.db::s", "duckdb:////x.db::t"],
            ),
        ],
    )
    def test_what_is_inside_and_one_step_outside(self, covers: str, inside: list[str], outside: list[str]) -> None:
        named = normalized_covers(covers)
        assert [source for source in inside if not is_covered(address_of(source), named)] == []
        assert [source for source in outside if is_covered(address_of(source), named)] == []


@pytest.mark.parametrize("password", ["pw", "p/w", "p?w", "p#w", "p@w", "p w", "p::w", "p:w", "p/w@x?y#z::q", "1/w"])
def test_no_password_is_in_a_name_or_an_identity(password: str) -> None:
    for tail in ("", "::t", "?sslmode=require", "?password=" + password + "::t", "?passfile=pw::t"):
        address = f"postgresql://ann:{password}@host/claims{tail}"
        source = address_of(address)
        for text in (source.name, without_secrets(address, user=True), *source.parts):
            assert "w" not in text.replace("password", "").replace("...", ""), (tail, text)
        assert source.name.startswith("postgresql://...@host/claims")
        assert without_secrets(address, user=True).startswith("postgresql://ann@host/claims")


def test_whatever_fails_after_the_charge_says_how_to_go_on(book: pt.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for failing in (lambda *_, **__: 1 / 0, lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt)):
        with monkeypatch.context() as broken:
            broken.setattr(pt.results.PrivateTest, "release", failing)
            with pytest.raises((ZeroDivisionError, KeyboardInterrupt)) as caught:
                TEST.run(BITS, ledger=book, **PAID)
        note = charge_note(caught.value)
        assert note == (
            "epsilon=0.5 of data set 'd' stays charged for request 'r'. The same request again completes it, without a "
            "new charge."
        )
        assert caught.value.__notes__ == [note]
    with pytest.raises(InvalidInput) as refused:
        book.perform(dataset="d", request="s", epsilon=1, design="x", draw=dict, release=lambda _: 3)  # type: ignore[arg-type,return-value]
    assert charge_note(refused.value) is not None
    with pytest.raises(pt.errors.BudgetExceeded) as early:
        book.perform(dataset="d", request="t", epsilon=1, design="x", draw=dict)
    assert charge_note(early.value) is None


class TestOneBudgetForAFile:
    """However it is named: by itself, by its folder, by a glob, through a link."""

    @pytest.mark.parametrize(
        "named", ["data", "data/*.csv", "dat*/a.csv", "data/[a]*.csv", "data/../data/a.csv", "**/a.csv"]
    )
    def test_grants_that_overlap_are_refused(
        self, named: str, book: pt.Ledger, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(folder)
        (folder / "data").mkdir()
        (folder / "a.csv").rename(folder / "data" / "a.csv")
        for first, second in (("data/a.csv", named), (named, "data/a.csv")):
            book.grant("d", epsilon=2, covers=first)
            with pytest.raises(InvalidInput, match="belongs to data set 'd' already"):
                book.grant("other", epsilon=2, covers=[second, "elsewhere.csv"])
        book.grant("other", epsilon=2, covers="b.csv")

    @pytest.mark.parametrize("named", ["data/a.csv", "data", "data/*.csv", "duckdb:///data/x.db::t"])
    def test_a_hard_link_is_the_same_file(
        self, named: str, book: pt.Ledger, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Two names of one file have no common path, but the same records."""
        monkeypatch.chdir(folder)
        (folder / "data").mkdir()
        name = "x.db" if "x.db" in named else "a.csv"
        (folder / "data" / name).write_bytes((folder / "a.csv").read_bytes())
        link = named.replace("data/", "") if "x.db" in named else "linked.csv"
        (folder / link.removeprefix("duckdb:///").removesuffix("::t")).hardlink_to(folder / "data" / name)
        book.grant("other", epsilon=2, covers="b.csv")
        for first, second in ((named, link), (link, named)):
            book.grant("d", epsilon=2, covers=first)
            with pytest.raises(InvalidInput, match="belongs to data set 'd' already"):
                book.grant("other", epsilon=2, covers=[second])
        book.grant("d", epsilon=2, covers=named)
        book.grant("free", epsilon=2)
        with pytest.raises(pt.errors.SourceNotCovered, match="belongs to data set 'd'"):
            TEST.run(link if "x.db" in named else folder / link, column="x", ledger=book, dataset="free", request="r")
        assert book.spent("free") == 0
