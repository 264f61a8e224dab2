"""docs/cli.md is what the commands say of themselves, and every example in it runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from privatest.cli.commands import COMMANDS, command
from privatest.cli.reference import reference
from privatest.questions import KEYS
from tests.cli.conftest import Run

BLOCKS = [block.replace("\\\n", " ").splitlines() for block in re.findall(r"```sh\n(.*?)```", reference(), re.DOTALL)]
EXAMPLES = [shlex.split(line) for block in BLOCKS for line in block]
MADE_BY_HAND = {"studio"}  # it serves until interrupted; the studio's own tests start it


def test_the_page_is_up_to_date(root: Path) -> None:
    written = (root / "docs" / "cli.md").read_text(encoding="utf-8")
    assert written == reference(), "run: python -m privatest.cli.reference > docs/cli.md"


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
    assert max(map(len, found.out.splitlines()), default=0) <= 80
