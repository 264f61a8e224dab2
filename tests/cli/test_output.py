"""What is printed: whole numbers on narrow terminals, and words that the command line knows."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import privatest as pt
from privatest.cli import output
from privatest.cli.output import facts, show_table, spoken
from tests.cli.conftest import Run

PAIR = ("--null", "bernoulli(0.3)", "--alternative", "bernoulli(0.7)", "--epsilon", "1")


def test_the_version_is_an_option(run: Run) -> None:
    code, out, err = run("--version")
    assert (code, out.strip(), err) == (0, f"privatest {pt.__version__}", "")


def test_a_file_that_is_missing_is_said_to_be(run: Run) -> None:
    code, _, err = run("test", "nofile.json")
    assert (code, err.strip()) == (2, "privatest: No file 'nofile.json'.")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Say which one: column=...", "Say which one: --column"),
        ("Name it: max_rows_per_unit=..., or not.", "Name it: --max-rows-per-unit, or not."),
        ("Take it away: ledger.grant('x', covers=...).", "Take it away: ledger.grant('x', covers=...)."),
        ("nothing=... is no option", "nothing=... is no option"),
    ],
)
def test_remedies_speak_command_line(text: str, told: str) -> None:
    assert spoken(text) == told


def test_two_columns_ask_for_the_option(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("x,y\n1,2\n0,1\n")
    code, _, err = run("test", str(path), *PAIR)
    assert code == 2
    assert "--column" in err
    assert "column=" not in err


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"x,y\n1,0\n", "2 columns: x, y"), (b"PAR1\x15\x04", "Parquet"), (b"\x1f\x8b\x08", "compressed")],
)
def test_a_monitor_refuses_what_is_not_one_record_a_line(run: Run, tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "data"
    path.write_bytes(content)
    code, out, err = run("monitor", str(path), *PAIR)
    assert (code, out) == (2, "")
    assert told in err


@pytest.mark.parametrize("content", [b"value\n1\n0\n", b"1\n0\n", b"1,5\n0,5\n", b""])
def test_a_monitor_takes_one_record_a_line(run: Run, tmp_path: Path, content: bytes) -> None:
    """Also with a heading, or with a decimal comma: a record is never asked."""
    path = tmp_path / "data"
    path.write_bytes(content)
    assert run("monitor", str(path), *PAIR)[0] == 0


def narrow(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setattr(output, "_columns", lambda: columns)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)


def test_numbers_do_not_break_at_42_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch, 42)
    rows = [("tight, the paper's own clamp", "1,234,567", "12.3456", "1.23456", "yes", "as the paper defines it")]
    show_table("Records", ("test", "records", "/ bound", "/ best", "private", "note"), rows, left=("test", "note"))
    facts("Plan", [("alpha", "< 1e-300", "type I error: alternative under P; exact"), ("n", "123,456,789", "records")])
    printed = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out)  # without the codes of a terminal
    assert all(len(line) <= 42 for line in printed.splitlines())
    for number in ("1,234,567", "12.3456", "1.23456", "< 1e-300", "123,456,789"):
        assert number in printed
