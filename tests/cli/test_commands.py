"""0 done, 2 bad input, 3 over budget, 4 failed after the charge, 130 interrupted; decisions only when asked.

docs/cli.md is what the commands say of themselves, and every example in it runs.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from docs import make_cli
from privatest.cli.commands import COMMANDS, command
from privatest.options import KEYS
from tests.cli.conftest import ENVIRONMENT, PROGRAM, Run

PAIR = ("--null", "bernoulli(0.2)", "--alternative", "bernoulli(0.8)", "--epsilon", "2")
ZEROS, ONES = b"0\n" * 400, b"1\n" * 400


@pytest.mark.parametrize(("lines", "decision", "code"), [(ZEROS, "null", 0), (ONES, "alternative", 1)])
def test_decisions_are_exit_codes_only_when_asked(run: Run, lines: bytes, decision: str, code: int) -> None:
    plain = run("test", "-", *PAIR, "--json", stdin=lines)
    assert (plain.code, plain.document["decision"]) == (0, decision)
    assert run("test", "-", *PAIR, "--exit-code", stdin=lines).code == code
    fit = ("fit", "-", "--null", "bernoulli(0.2)", "--distance", "0.5", "--epsilon", "2")
    assert run(*fit, stdin=lines).code == 0
    assert run(*fit, "--exit-code", stdin=lines).code == (1 if lines == ONES else run(*fit, stdin=lines).code)


def test_no_change_is_an_answer_unless_a_change_is_taken_for_granted(run: Run) -> None:
    same = run(
        "detect", "-", *PAIR[:4], "--epsilon", "4", stdin=ZEROS
    )  # with little noise: a false alarm in 10^11 runs
    assert (same.code, same.err) == (0, "")
    assert "no change" in same.out
    certain = run("detect", "-", *PAIR, "--assume-change", "--json", stdin=ZEROS)
    assert (certain.document["changed"], certain.document["false_alarm"]) == (None, None)
    assert certain.document["index"] is not None
    both = run("detect", "-", *PAIR, "--assume-change", "--false-alarm", "0.1", stdin=ZEROS)
    assert (both.code, both.refused) == (2, True)
    assert "--false-alarm 0.1 and --assume-change exclude each other" in both.err


def test_over_budget_is_3_and_says_what_is_left(run: Run, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    run("ledger", "grant", "--ledger", ledger, "--dataset", "claims", "--epsilon", "3")
    paying = ("test", "-", *PAIR, "--ledger", ledger, "--dataset", "claims", "--json")
    first = run(*paying, "--request", "a", stdin=ZEROS)
    assert first.code == 0
    before = ledger.read_bytes()
    refused = run(*paying, "--request", "b", stdin=ZEROS)
    assert (refused.code, refused.refused, ledger.read_bytes() == before) == (3, True, True)
    assert "1.0 left" in refused.err
    again = run(*paying, "--request", "a", stdin=ZEROS)
    assert again.document["replayed"]
    assert "nothing charged, the data given now were not read" in again.document["receipt"]["note"]
    kept = [{k: v for k, v in one.document.items() if k not in ("receipt", "replayed")} for one in (first, again)]
    assert kept[0] == kept[1], "the same request is free, and the same"
    assert first.document["receipt"]["fingerprint"] == again.document["receipt"]["fingerprint"]


def test_help_and_completion_exit_with_0(run: Run) -> None:
    for words in ((), ("--help",), ("ledger",), ("ledger", "show", "--help"), ("plan", "--help")):
        found = run(*words)
        assert (found.code, found.err) == (0, "")
        assert "Usage: privatest" in found.out


def until(true: Callable[[], bool], seconds: float = 600) -> None:
    """Wait for something to come true; ten minutes only where it never does."""
    for _ in range(round(seconds / 0.05)):
        if true():
            return
        time.sleep(0.05)
    pytest.fail("It did not happen.")


def test_control_c_ends_with_130_and_no_traceback(tmp_path: Path) -> None:
    lines = tmp_path / "values.txt"
    lines.write_text("0\n" * 10)
    state = tmp_path / "state.json"
    words = [*PROGRAM, "monitor", str(lines), "--follow", "--state", str(state), *PAIR]
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # what runs behind a shell may ignore it
    ) as process:
        try:
            until(lambda: state.exists() or process.poll() is not None)
            for _ in range(60):
                process.send_signal(signal.SIGINT)  # again, as a person would: Python drops one that meets a destructor
                with contextlib.suppress(subprocess.TimeoutExpired):
                    out, err = process.communicate(timeout=5)
                    break
        finally:
            process.kill()
    assert (process.returncode, out, err) == (130, b"", b"")


def test_a_reader_that_went_away_is_no_error() -> None:
    shell = f"{sys.executable} -m privatest plan --help; echo ${{PIPESTATUS[0]}} >&2"
    read, write = os.pipe()
    os.close(read)
    found = subprocess.run(
        ["bash", "-c", shell], stdout=write, stderr=subprocess.PIPE, text=True, timeout=600, env=ENVIRONMENT
    )
    os.close(write)
    assert found.stderr.strip() == "141"


def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        found = subprocess.run(
            [*PROGRAM, "version"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=600, env=ENVIRONMENT
        )
    assert found.returncode == 2
    assert found.stderr.strip() == "privatest: Standard output cannot be written: No space left on device."


SHOWN = re.findall(r"```sh\n(.*?)```", make_cli.page(), re.DOTALL)
BLOCKS = [block.replace("\\\n", " ").splitlines() for block in SHOWN]
EXAMPLES = [shlex.split(line) for block in BLOCKS for line in block]
MADE_BY_HAND = {"studio"}  # it serves until interrupted; the studio's own tests start it


def test_the_page_is_up_to_date() -> None:
    assert make_cli.PAGE.read_text(encoding="utf-8") == make_cli.page(), "run: python docs/make_cli.py"


def test_every_command_has_an_example_and_json() -> None:
    assert len(BLOCKS) == len(COMMANDS)
    for place, name, _ in COMMANDS:
        group = command() if place is None else command().commands[place]
        options = {option for parameter in group.commands[name].params for option in parameter.opts}
        assert ("--json" in options) == (name not in MADE_BY_HAND), name


def test_options_are_the_words_of_problem_files() -> None:
    """Whatever a problem file may say is an option of some command, in the same words."""
    known = {
        option
        for place, name, _ in COMMANDS
        for parameter in (command() if place is None else command().commands[place]).commands[name].params
        for option in parameter.opts
    }
    assert {f"--{key.replace('_', '-')}" for key in KEYS if key not in ("data", "treatment")} <= known


@pytest.mark.parametrize("words", EXAMPLES, ids=lambda words: " ".join(words[:3]))
def test_the_example_runs(words: list[str], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("claims.csv").write_text("value\n" + "\n".join(str(i % 7 / 3 - 1) for i in range(700)) + "\n")
    if "smoker" in words:
        Path("claims.csv").write_text("value,smoker\n" + "0.5,Yes\n-0.5,No\n" * 100)
    Path("survey.csv").write_text("answer\n" + "yes\nno\n" * 400)
    Path("answers.txt").write_text("1\n0\n1\n" * 40)
    Path("visits.csv").write_text("arm,bought\n" + "old,0\nnew,1\nold,1\nnew,1\n" * 20)
    if words[1:3] in (["ledger", "show"], ["ledger", "verify"]):
        run("ledger", "grant", "--ledger", "ledger.db", "--dataset", "claims", "--epsilon", "1")
    if words[0] == "tail":
        words = words[words.index("|") + 1 :]
    if words[1] in MADE_BY_HAND:
        assert run(words[1], "--help").code == 0
        return
    found = run(*words[1:], stdin=b"0.5\n-0.5\n" * 30)
    assert (found.code, found.err) == (0, "")
    assert all(len(line) <= 80 for line in found.out.splitlines() if not line.startswith("{"))  # JSON: one line
