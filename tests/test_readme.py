"""What the README promises: its example, its commands, the example data and the main job."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import privatest as pt
from examples import make_data
from privatest import options
from tests.fresh import commands
from tests.ready import command_line


def test_the_example_prints_what_the_readme_says(root: Path, run_document: Callable[[Path], int]) -> None:
    text = (root / "README.md").read_text(encoding="utf-8")
    assert "```text" in text
    assert run_document(root / "README.md") >= 1


SETTING_UP = ("make ", "python3 -m venv ", ". env/bin/activate", "pip install ")
"""What `make readme` runs in an environment of its own; here the environment is that of development."""


def test_the_commands_exist(root: Path) -> None:
    text = (root / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\bmake ([a-z]+)", text))
    targets = set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {"run", "test"} <= named <= targets
    extras = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    asked = {extra for listed in re.findall(r'pip install "\.\[([a-z,]+)\]"', text) for extra in listed.split(",")}
    assert {"files", "ledger", "plot"} <= asked <= set(extras)


def test_the_commands_run_as_written(root: Path, tmp_path: Path, show: Callable[[str], None]) -> None:
    """One after the other, in a folder that holds the example data and what the commands before made."""
    (tmp_path / "examples").symlink_to(root / "examples")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "privatest"
    program.write_text(f'#!/bin/sh\nexec {" ".join(command_line())} "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "COLUMNS": "80"}
    every = commands((root / "README.md").read_text(encoding="utf-8"))
    asked = [command for command in every if not command.startswith(SETTING_UP)]
    for command in asked:
        done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), f"{command}\n{done.stderr}"
        assert max(map(len, done.stdout.splitlines())) <= 80
    show(f"commands of the README: {len(every)}, run here {len(asked)}, with `make readme` all but `make test`")
    assert len(asked) >= 5
    assert (tmp_path / "when.html").exists()
    with pt.Ledger(tmp_path / "ledger.db", create=False) as ledger:
        assert (ledger.left("clinic"), len(ledger.history("clinic"))) == (0, 5)


def test_the_table_of_questions_names_what_there_is(root: Path) -> None:
    """In the README and in the document: every public call and command of the table, and no question without one."""
    commands_asked = {name for name in options.QUESTIONS if "/" not in name and name != "check"} | {"ledger"}
    for name in ("README.md", "docs/questions.md"):
        lines = (root / name).read_text(encoding="utf-8").splitlines()
        rows = [line.strip("| ").split(" | ") for line in lines if re.match(r"\|.*\| .*`pt\.", line)]
        calls = {call for row in rows for call in re.findall(r"pt\.(\w+)", row[1])}
        assert calls <= set(pt.__all__)
        assert {
            word for row in rows for word in re.findall(r"`(\w+)`", row[2] if len(row) > 2 else "")
        } == commands_asked


def test_the_script_makes_the_example_data_byte_for_byte(root: Path, tmp_path: Path) -> None:
    made = make_data.write(tmp_path / "clinic.csv").read_bytes()
    assert made == (root / "examples" / "data" / "clinic.csv").read_bytes()


# As elsewhere, the picture of many sample sizes computes the least number of them.
HASTY = """
import pathlib, runpy, sys
from privatest.pictures import plans
plans.complexity.__kwdefaults__.update(patience=0.0)
sys.argv.pop(0)
sys.path.insert(0, str(pathlib.Path(sys.argv[0]).parent))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_the_main_job_runs_in_80_columns(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "examples", tmp_path / "examples")  # it writes beside itself
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    old = version("matplotlib").startswith("3.8.")  # which uses new versions of others in old ways
    strict = ["-W", "error", *(["-W", "ignore::DeprecationWarning"] if old else [])]
    command = [sys.executable, *strict, "-c", HASTY, str(tmp_path / "examples" / "main_job.py")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, env=environment)
    assert max(map(len, done.stdout.splitlines())) <= 80
    releases = json.loads((tmp_path / "output" / "releases.json").read_text(encoding="utf-8"))
    # The data are fixed; over the noise alone a wrong decision has probability below 1e-7 in each of the six.
    *decided, change = releases
    assert [release["decision"] for release in decided] == ["null", "alternative"] * 3
    assert all(release["private"] for release in releases)
    assert 0 < change["accuracy"] < change["n"] // 2
