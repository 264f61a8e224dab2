"""Whatever is typed or lies in a file: one or two lines, exit code 2, nothing written, no traceback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run

PAIR = ("--null", "bernoulli(0.6)", "--alternative", "bernoulli(0.4)", "--epsilon", "1")
LINES = b"1\n0\n" * 25
RATE = ("--family", "bernoulli(?)", "--epsilon", "1")
LIFT = ("--epsilon", "1", "--rate", "0.3", "--lift", "0.2")

REFUSED = {
    "no such command": ("plaan",),
    "no such option": ("plan", *PAIR, "--epsilom", "1"),
    "a word too many": ("plan", *PAIR, "surplus"),
    "nothing given": ("plan",),
    "no value": ("plan", "--null"),
    "epsilon is no number": ("plan", *PAIR, "--epsilon", "one"),
    "epsilon is not a number": ("plan", *PAIR, "--epsilon", "nan"),
    "epsilon is negative": ("plan", *PAIR, "--epsilon", "-1"),
    "n is negative": ("plan", *PAIR, "--n", "-3"),
    "a law of no family": ("plan", *PAIR, "--null", "nromal(0,1)"),
    "a law that is code": ("plan", *PAIR, "--null", "__import__('os').system('true')"),
    "a law of hostile letters": ("plan", *PAIR, "--null", "\x1b[31m\u202e\udcff\x00\n\nbernoulli(0.3)"),
    "a law a megabyte long": ("plan", *PAIR, "--null", "a" * 1_000_001),
    "laws nested without end": ("plan", *PAIR, "--null", "mixture(1," * 5000),
    "the same law twice": ("plan", "--null", "normal(0,1)", "--alternative", "normal(0,1)", "--epsilon", "1"),
    "a clamp of words": ("plan", *PAIR, "--clamp", "a,b"),
    "sizes that are none": ("curve", *PAIR, "--n", "1,two"),
    "no data": ("test", *PAIR),
    "no such file": ("test", "nowhere.csv", *PAIR),
    "a file of no name": ("test", "\x00", *PAIR),
    "a ledger without a request": ("test", "-", *PAIR, "--ledger", "ledger.db", "--dataset", "claims"),
    "a request without a ledger": ("test", "-", *PAIR, "--request", "q3"),
    "no such ledger": ("test", "-", *PAIR, "--ledger", "no.db", "--dataset", "claims", "--request", "q3"),
    "n that the data do not have": ("test", "-", *PAIR, "--n", "51"),
    "a distance and an alternative": ("detect", "-", *PAIR, "--distance", "0.2"),
    "neither": ("detect", "-", "--null", "bernoulli(0.6)", "--epsilon", "1"),
    "power asked and not": (
        "fit", "-", "--null", "bernoulli(0.6)", "--epsilon", "1", "--distance", "0.3", "--beta", "0.1", "--any-power",
    ),
    "no such design": ("test", "-", "--design", "nowhere.json"),
    "no such problem": ("plan", "--problem", "nowhere.toml"),
    "nowhere to save": ("plan", *PAIR, "--save", "no/such/folder/problem.toml"),
    "nowhere to save the design": ("plan", *PAIR, "--save-design", "."),
    "nowhere to report": ("plan", *PAIR, "--report", "no/such/folder/report.html"),
    "a family without a question": ("estimate", "-", "--family", "bernoulli(0.3)", "--epsilon", "1"),
    "a range that is missing": ("estimate", "-", "--family", "poisson(?)", "--epsilon", "1"),
    "a range upside down": ("estimate", "-", "--family", "poisson(?)", "--epsilon", "1", "--between", "9", "3"),
    "a guess outside of the range": ("estimate", "-", *RATE, "--near", "2"),
    "a hidden number that nobody expects": ("estimate", "-", *RATE, "--neighbours", "add-remove"),
    "a plan on data": ("estimate", "-", *RATE, "--at", "0.5"),
    "a plan for a number and a width": ("estimate", *RATE, "--n", "20", "--width", "0.1"),
    "a plan with a ledger": ("estimate", *RATE, "--n", "20", "--ledger", "new.db"),
    "an estimate of no file": ("estimate", "nowhere.csv", *RATE),
    "one group": ("groups", "-", "--epsilon", "1"),
    "standard input twice": ("groups", "-", "-", "--epsilon", "1"),
    "groups of lines": ("groups", "-", "--group", "arm", "--epsilon", "1"),
    "two sources and a column of groups": ("groups", "-", "b.csv", "--group", "arm", "--epsilon", "1"),
    "groups read in a way of their own": ("groups", "a.csv", "--group", "arm", "--decimal", ",", "--epsilon", "1"),
    "two kinds of success": ("groups", *LIFT, "--n", "20,20", "--above", "3", "--success", "yes"),
    "a number and an error": ("groups", *LIFT, "--n", "20,20", "--beta", "0.1"),
    "a lift of nothing": ("groups", "--epsilon", "1", "--rate", "0.3", "--lift", "0"),
    "groups planned with a column of groups": ("groups", *LIFT, "--group", "arm"),
    "a lift on data": ("groups", "-", "b.csv", *LIFT),
    "following nothing": ("monitor", *PAIR, "--follow"),
    "monitoring nothing": ("monitor", "nowhere.txt", *PAIR),
    "monitoring a folder": ("monitor", ".", *PAIR),
    "a budget of nothing": ("ledger", "grant", "--ledger", "new.db", "--dataset", "claims"),
    "a budget of zero": ("ledger", "grant", "--ledger", "new.db", "--dataset", "claims", "--epsilon", "0"),
    "a ledger that is not there": ("ledger", "verify", "--ledger", "no.db"),
    "a ledger that is a folder": ("ledger", "show", "--ledger", "."),
    "an address of nothing": ("ledger", "show", "--ledger", "postgresql://nobody@nowhere.invalid/none"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_a_line_or_two(run: Run, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = run(*REFUSED[case], stdin=LINES)
    assert (found.code, found.refused) == (2, True), found
    assert found.err.isprintable() or found.err.rstrip("\n").isprintable()
    assert list(tmp_path.iterdir()) == [], "nothing may be left behind"


FILES = {
    "binary": bytes(range(256)),
    "empty": b"",
    "cut short": b'null = "norm',
    "no table": b"[1, 2]",
    "of another world": b'nul = "normal(0, 1)"',
    "of wrong kinds": b"epsilon = true",
    "a law that is a number": b"null = 3",
    "a law of dates": b"null = {a = 2020-01-01}\nalternative = {a = 1}\nepsilon = 1",
    "a law of lists": b"null = [[1], [2]]\nalternative = [0.5, 0.5]\nepsilon = 1",
    "nan": b"epsilon = nan\nnull = 'bernoulli(0.1)'\nalternative = 'bernoulli(0.2)'",
    "deep": b"null = " + b"[" * 100_000,
}


@pytest.mark.parametrize("content", FILES)
@pytest.mark.parametrize("name", ["problem.toml", "problem.json", "problem.yaml"])
def test_problem_files_that_are_none(run: Run, tmp_path: Path, content: str, name: str) -> None:
    where = tmp_path / name
    where.write_bytes(FILES[content])
    found = run("plan", "--problem", str(where))
    assert (found.code, found.refused) == (2, True), found


@pytest.fixture
def nobody() -> Iterator[None]:
    """A user who may touch nothing of ours, also where the tests run as the superuser."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.usefixtures("nobody")
def test_files_one_may_not_touch(run: Run, tmp_path_factory: pytest.TempPathFactory) -> None:
    closed = tmp_path_factory.getbasetemp() / "closed.toml"
    for words in (("plan", "--problem"), ("plan", *PAIR, "--save"), ("monitor", *PAIR), ("test", *PAIR)):
        found = run(*words, str(closed))
        assert (found.code, found.refused) == (2, True), found


SAID = {
    "a file of no known ending that is missing": (("test", "nowhere.json", *PAIR), "No file 'nowhere.json'"),
    "a pattern that matches nothing": (("test", "*.nothing", *PAIR), "No file matches '*.nothing'"),
    "a table without rows": (("test", "heading.csv", *PAIR), "The data have no records. Pass at least one."),
    "a fit without rows": (
        ("fit", "heading.csv", "--null", "bernoulli(0.6)", "--distance", "0.3", "--epsilon", "1"),
        "The data have no records. Pass at least one.",
    ),
    "what a sentence is about": (("plan", *PAIR, "--null", "normal(0"), "--null: expected ',' or ')'"),
    "a notion's delta": (("plan", *PAIR[:4], "--privacy", "approx(1, 2)"), "delta=2 must lie in [0, 1)"),
    "a clamp of one number": (("plan", *PAIR, "--clamp", "1"), "--clamp '1' must be 'tuned', 'paper' or two numbers"),
    "a range of words": (
        ("estimate", "-", *RATE, "--between", "a", "b"),
        "--between a b must be two numbers, such as -3 3.",
    ),
    "one group": (("groups", "-", "--epsilon", "1"), "Only one group's data were given."),
    "a lift beyond 1": (
        ("groups", "--epsilon", "1", "--rate", "0.9", "--lift", "0.3"),
        "--rate 0.9 and --lift 0.3: rate + lift is 1.2, and must lie between 0 and 1.",
    ),
    "a target out of reach": (
        ("plan", "--null", "normal(0,1)", "--alternative", "normal(1e-9,1)", "--epsilon", "1"),
        "Use a larger epsilon, a lower target or a more distant pair.",
    ),
    "something else in the way": (
        ("plan", *PAIR, "--report", "heading.csv"),
        "exists and was not written by --report.",
    ),
    "another file as a ledger": (
        ("ledger", "show", "--ledger", "heading.csv"),
        "is no ledger: file is not a database. Give the file or database of a ledger.\n",
    ),
    "several columns to watch": (
        ("monitor", "people.csv", *PAIR),
        "'people.csv' is a CSV file by its name. Records are read one a line",
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_said_in_the_words_of_the_command_line(
    run: Run, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("heading.csv").write_text("value\n")
    Path("people.csv").write_text("Smith,Jane\nMiller,Joe\n")  # without a heading: these are records
    words, said = SAID[case]
    found = run(*words, stdin=LINES)
    assert (found.code, found.refused) == (2, True), found
    assert said in found.err
    assert "Smith" not in found.err
