"""Hundreds of malformed command lines: no traceback, an exit code of the list, the ledger untouched."""

from __future__ import annotations

import contextlib
import io
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from privatest import cli
from tests.cli.conftest import ENVIRONMENT
from tests.ready import command_line

LEDGER = "ledger.db"
OTHER_LEDGER = "other.db"  # for grants: one whose spoilt word happens to be a good name is a grant
LINES = b"1\n0\nodd\n\xff\n" * 15
LINES_IN_PROCESS, LINES_IN_PROCESSES = 800, 12
SEED = 20261116

# Options and values of which no mixture makes a command line that designs anything large.
HOSTILE = [
    "", " ", "-", "--", "---", "nan", "inf", "-inf", "1e999", "-0", "0", "1e-400", "9" * 5000, "0x10", "1_000",
    "½", "٣", "1,2",
    "\x00", "\n", "\r\n", "\t", "\x1b[2J", "\x07", "\udcff", "\ud800", "\u202e\u2066", "\ufeff", "e\u0301" * 40,
    "🧪" * 50, "[red]x[/red]",
    "%s%n", "${HOME}", "$(true)", "`true`", "; true", "| true", "../../..", "/", ".", "/dev/null",
    "/dev/zero/x", "~", "*", "[", "**",
    "file.csv::", "::", "postgresql://", "duckdb://", "duckdb:///::", "sqlite:///x::y",
    "http://127.0.0.1:1/x.csv", "s3://bucket/key",
    "normal", "normal(", "normal()", "normal(0,1", "normal(0,1))", "normal(0,0)", "normal(nan,1)",
    "normal(1e999,1)", "normal(0,1)normal(0,1)",
    "bernoulli(2)", "bernoulli(-0.1)", "bernoulli()", "poisson(0)", "categorical()", "categorical(a=1,a=0)",
    "categorical(a=0.5)",
    "categorical(a=-1,b=2)", "mixture(1)", "mixture(0.5,normal(0,1))", "uniform(1,0)", "beta(0,0)", "lambda: 0",
    "__import__('os')",
    "None", "True", "null", "{}", "[]", "[0.5,0.5]", '{"a": 1}', "a" * 3000, "--null", "--json", "--help=",
    "--epsilon=", "-n", "-e1",
    "tight", "paper", "tuned", "replace", "add-remove",
]  # fmt: skip
WORDS = ["plan", "compare", "curve", "test", "detect", "monitor", "fit", "ledger", "version", "grant", "show", "verify"]
OPTIONS = [
    "--null", "--alternative", "--epsilon", "--n", "--advantage", "--alpha", "--beta", "--test", "--clamp",
    "--threshold",
    "--neighbours", "--max-rows-per-unit", "--distance", "--bins", "--method", "--false-alarm", "--interval",
    "--mean-time-between-false-alarms", "--column", "--unit", "--order", "--dataset", "--request", "--problem",
    "--design",
    "--since", "--json", "--exit-code", "--any-power", "--from-start", "--nonsense", "-x", "--epsilon=1",
    "--null=normal(0,1)",
]  # fmt: skip
SOUND = {
    "--null": "bernoulli(0.6)",
    "--alternative": "bernoulli(0.4)",
    "--epsilon": "1",
    "--distance": "0.3",
    "--n": "40",
    "--ledger": LEDGER,
    "--dataset": "claims",
    "--request": "q3",
    "--since": "1:0",
    "--alpha": "0.1",
}
PAID = ["--ledger", "--dataset", "--request"]
TAKES = {
    "plan": ["--null", "--alternative", "--epsilon", "--n", "--alpha"],
    "compare": ["--null", "--alternative", "--epsilon"],
    "curve": ["--null", "--alternative", "--epsilon", "--n"],
    "test": ["--null", "--alternative", "--epsilon", *PAID],
    "detect": ["--null", "--alternative", "--epsilon", *PAID],
    "fit": ["--null", "--distance", "--epsilon", *PAID],
    "monitor": ["--null", "--alternative", "--epsilon"],
    "ledger grant": ["--ledger", "--dataset", "--epsilon"],
    "ledger show": ["--ledger", "--dataset"],
    "ledger verify": ["--ledger", "--since"],
}


def malformed(draw: random.Random, files: list[str]) -> list[str]:
    """A command line with at least one thing wrong, mostly exactly one."""
    if draw.random() < 0.15:  # noise
        return [draw.choice(HOSTILE + WORDS + OPTIONS) for _ in range(draw.randrange(1, 6))]
    command = draw.choice(list(TAKES))
    words = command.split()
    if command in ("test", "detect", "fit", "monitor"):
        words.append(draw.choice(["-", draw.choice(files), draw.choice(HOSTILE)]))
    options = TAKES[command]
    spoilt = draw.choice(options)
    for option in options:
        value = OTHER_LEDGER if (command, option) == ("ledger grant", "--ledger") else SOUND[option]
        if option == spoilt:
            if draw.random() < 0.1:
                continue
            value = draw.choice(HOSTILE + files)
        words += [option, value]
    if draw.random() < 0.3:
        words += [draw.choice(OPTIONS), draw.choice(HOSTILE + files)]
    if draw.random() < 0.1:
        draw.shuffle(words)
    return words


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A folder with a ledger whose budget no line here fits in, and files of all kinds."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(["ledger", "grant", "--ledger", LEDGER, "--dataset", "claims", "--epsilon", "0.5"]) == 0
    contents = {
        "binary.csv": bytes(range(256)) * 4,
        "empty.csv": b"",
        "heading.csv": b"x\n",
        "binary.parquet": b"PAR1" + bytes(200) + b"PAR1",
        "cut.feather": b"ARROW1\0\0",
        "problem.toml": b'null = "norm',
        "problem.json": b'{"epsilon": [1]}',
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder.csv").mkdir()
    return [*contents, "folder.csv"]


def command_lines(number: int, files: list[str], seed: int) -> Iterator[list[str]]:
    draw = random.Random(seed)
    for _ in range(number):
        yield malformed(draw, files)


def test_malformed_command_lines(
    files: list[str], show: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Path(LEDGER).read_bytes()
    codes: Counter[int] = Counter()
    for words in command_lines(LINES_IN_PROCESS, files, SEED):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LINES), encoding="utf-8"))
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.main(words)
        codes[code] += 1
        assert code in {0, 2, 3}, (words, code, err.getvalue())
        assert "Traceback" not in err.getvalue() + out.getvalue(), words
        assert "report the command line as a bug" not in err.getvalue(), (words, err.getvalue())
        assert len(err.getvalue().strip().splitlines()) <= 2, (words, err.getvalue())
        assert (code == 0) or err.getvalue(), words
        assert Path(LEDGER).read_bytes() == before, words
    show(f"{LINES_IN_PROCESS} malformed command lines: exit codes {dict(sorted(codes.items()))}")
    assert codes[2] > 0.8 * LINES_IN_PROCESS
    assert codes[3] > 0


def test_malformed_command_lines_in_processes_of_their_own(files: list[str]) -> None:
    before = Path(LEDGER).read_bytes()
    done = 0
    for words in command_lines(3 * LINES_IN_PROCESSES, files, SEED + 1):
        if any("\x00" in word for word in words) or words[:1] in (["plan"], ["compare"], ["curve"]):
            continue  # no process can be given a NUL; planning is slow to start
        found = subprocess.run(
            [*command_line(), *words], input=LINES, capture_output=True, env=ENVIRONMENT, timeout=600
        )
        assert found.returncode in {0, 2, 3}, (words, found)
        assert b"Traceback" not in found.stdout + found.stderr, words
        assert len(found.stderr.splitlines()) <= 2, words
        done += 1
        if done == LINES_IN_PROCESSES:
            break
    assert done == LINES_IN_PROCESSES
    assert Path(LEDGER).read_bytes() == before
