"""What is printed: whole numbers on narrow terminals, and words that the command line knows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from privatest import options
from privatest.cli.output import spoken
from tests.cli.conftest import Run

PAIR = ("--null", "bernoulli(0.3)", "--alternative", "bernoulli(0.7)", "--epsilon", "1")


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
        ("alpha=-0.5 must lie in (0, 1).", "--alpha -0.5 must lie in (0, 1)."),
        ("between is missing: between=(low, high).", "--between is missing: --between low high."),
        ("such as n=[50, 100].", "such as --n 50,100."),
        ("family='normal(mean=0, sd=1)' must", "--family 'normal(mean=0, sd=1)' must"),
        ("No column 'order=3'.", "No column 'order=3'."),
        ("binomial: n=0.5 must be whole, in binomial(n, p).", "binomial: n=0.5 must be whole, in binomial(n, p)."),
        (
            "public_order=True was given without order=: leave public_order out.",
            "--public-order was given without --order: leave --public-order out.",
        ),
        (
            "Raise it with ledger.grant(), see sample_size(...).",
            "Raise it with privatest ledger grant, see privatest plan.",
        ),
        ("Look at it (pt.check): success='Yes'.", "Look at it (privatest check): --success 'Yes'."),
        ("privatest.check counts them.", "privatest check counts them."),
        (
            "Use pt.tabulate(data, between=(low, high), epsilon=1).quantile(0.5).",
            "Use Python's pt.tabulate(data, between=(low, high), epsilon=1).quantile(0.5).",
        ),
        (
            "Use pt.compare_groups(data, group=..., column=...), or pt.detect_change.",
            "Use privatest groups DATA --group --column, or privatest detect.",
        ),
        ("It is meant: pt.data.read_as(data, text_order=True).", "It is meant: --text-order."),
    ],
)
def test_remedies_speak_command_line(text: str, told: str) -> None:
    assert spoken(text) == told


DATA = "examples/data/clinic.csv"
MISTAKES = {
    "estimate": ["--family", "normal(mean=?, sd=1)", "--column", "value", "--between", "1", "0"],
    "groups": ["--column", "visit", "--group", "answer"],
    "sequential": [*PAIR[:4], "--alpha", "2"],
    "monitor": [*PAIR[:4], "--beta", "2"],
    "detect": [*PAIR[:2], "--column", "visit"],
    "fit": [*PAIR[:2], "--column", "visit", "--distance", "3"],
    "test": [*PAIR[:4], "--column", "visit", "--alpha", "2"],
    "check": [*PAIR[:4]],
    "plan": [*PAIR[:4], "--alpha", "0.1"],
    "curve": [*PAIR[:4], "--clamp", "1,0"],
    "compare": [*PAIR[:4], "--advantage", "2"],
}


@pytest.mark.parametrize("command", MISTAKES)
def test_every_command_complains_in_its_own_words(command: str, run: Run, root: Path) -> None:
    data = [] if command in ("plan", "curve", "compare") else [str(root / DATA)]
    if command in ("monitor", "sequential"):
        data = ["-"]
    found = run(command, *data, *MISTAKES[command], "--epsilon", "1", **({"stdin": b"0\n"} if data == ["-"] else {}))
    assert found.code == 2
    assert "--" in found.err
    keywords = "|".join(option.name for option in options.OPTIONS)
    assert not re.search(rf"(?<![\w'])({keywords})=", found.err.replace("normal(mean=?, sd=1)", ""))


STREAMS = ("monitor", "sequential")


@pytest.mark.parametrize("command", STREAMS)
@pytest.mark.parametrize(
    ("name", "told"), [("a.CSV", "CSV"), ("a.pq", "Parquet"), ("a.ipc", "Feather"), ("a.txt.gz", "comp")]
)
def test_a_stream_is_no_file_of_a_tables_name(run: Run, tmp_path: Path, command: str, name: str, told: str) -> None:
    """The name says it, and nothing else: whatever the first line is, the answer is the same."""
    path, found = tmp_path / name, []
    for content in (b"1\n0\n", b"x,y\n1,0\n", b"PAR1\x15\x04", b""):
        path.write_bytes(content)
        found.append(run(command, str(path), *PAIR))
    assert {(code, out) for code, out, _ in found} == {(2, "")}
    assert len({err for _, _, err in found}) == 1
    assert f"is a {told}" in found[0][2]


@pytest.mark.parametrize("command", STREAMS)
@pytest.mark.parametrize("piped", [False, True])
def test_no_first_record_decides_whether_a_stream_is_read(run: Run, tmp_path: Path, command: str, piped: bool) -> None:
    """A heading, several fields, the first bytes of other formats, nothing: each is one record, and an odd one."""
    path = tmp_path / "data.txt"
    for first in ("1", "value", "yes,no", "x,y", "1,5", "PAR1", "ARROW1", "\x1f\x8b", "a;b", "a\tb", '"', "", "\0"):
        path.write_bytes(f"{first}\n0\n1\n".encode("latin-1"))
        words = (command, *PAIR) if piped else (command, str(path), *PAIR)
        found = run(*words, "--json", stdin=path.read_bytes() if piped else b"")
        assert (found[0], json.loads(found[1].splitlines()[-1])["seen"]) == (0, 3), first
