"""What the README promises: its example, its commands, the example data and the main job."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from examples import make_data


def test_the_example_prints_what_the_readme_says(root: Path, run_document: Callable[[Path], int]) -> None:
    text = (root / "README.md").read_text(encoding="utf-8")
    assert "```text" in text
    assert run_document(root / "README.md") >= 1


def test_the_commands_exist(root: Path) -> None:
    commands = set(re.findall(r"\bmake ([a-z]+)", (root / "README.md").read_text(encoding="utf-8")))
    targets = set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {"run", "test"} <= commands <= targets


def test_the_script_makes_the_example_data_byte_for_byte(root: Path, tmp_path: Path) -> None:
    made = make_data.write(tmp_path / "clinic.csv").read_bytes()
    assert made == (root / "examples" / "data" / "clinic.csv").read_bytes()


def test_the_main_job_runs_in_80_columns(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "examples", tmp_path / "examples")  # it writes beside itself
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    old = version("matplotlib").startswith("3.8.")  # which uses new versions of others in old ways
    strict = ["-W", "error", *(["-W", "ignore::DeprecationWarning"] if old else [])]
    command = [sys.executable, *strict, str(tmp_path / "examples" / "main_job.py")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, env=environment)
    assert max(map(len, done.stdout.splitlines())) <= 80
    releases = json.loads((tmp_path / "output" / "releases.json").read_text(encoding="utf-8"))
    # The data are fixed; over the noise alone a wrong decision has probability below 1e-7 in each of the six.
    *decided, change = releases
    assert [release["decision"] for release in decided] == ["null", "alternative"] * 3
    assert all(release["private"] for release in releases)
    assert 0 < change["accuracy"] < change["n"] // 2
