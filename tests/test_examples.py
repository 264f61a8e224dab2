"""The four worked problems run from their scripts, and what they say about made-up data is right."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import privatest as pt
from tests.ready import command_line

PROBLEMS = ["conversion", "lab_value", "daily_counts", "survey"]
CHANGE = 2000  # of examples/make_worked.py


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "survey" else pytest.mark.exhaustive) for name in PROBLEMS]
)
def test_a_worked_problem(name: str, root: Path, tmp_path: Path) -> None:
    program = {"PRIVATEST": " ".join(command_line()), "PYTHON": sys.executable, "PYTHONPATH": str(root / "src")}
    words = ["sh", str(root / "examples" / name / "run.sh"), str(tmp_path)]
    found = subprocess.run(words, env=os.environ | program, capture_output=True, text=True, timeout=300)
    assert (found.returncode, found.stderr) == (0, ""), found.stderr
    assert all(len(line) <= 80 for line in found.stdout.splitlines() if not line.startswith("$"))
    reports = {"plan", "test", "detect", "fit"} if name == "survey" else {"test"}
    assert {path.stem for path in tmp_path.glob("*.html")} == reports
    with pt.Ledger(tmp_path / "ledger.db", create=False) as ledger:
        spent = {entry.request: entry.release for entry in ledger.history(name) if entry.kind == "release"}
        assert ledger.left(name) == 0
        ledger.verify()
    # Both are right but for a probability below 1e-3; with the file's accuracy the index is off with 0.1 at most.
    assert spent["latest"]["decision"] == "alternative"
    assert spent["when"]["changed"] is True
    assert abs(spent["when"]["index"] - CHANGE) <= 10 * spent["when"]["accuracy"]
    problem = tomllib.loads((root / "examples" / name / "problem.toml").read_text())
    design = pt.results.PrivateTest.from_json((tmp_path / "design.json").read_text())
    assert design == pt.design(problem["null"], problem["alternative"], epsilon=problem["epsilon"])
    for path in tmp_path.glob("*.html"):
        assert "http://" not in path.read_text().replace("http://www.w3.org", ""), "a report asks no other machine"


def test_estimates_on_public_data_stand_beside_the_answers_without_privacy(root: Path) -> None:
    script = [sys.executable, str(root / "examples" / "estimates.py")]
    found = subprocess.run(
        script, env=os.environ | {"PYTHONPATH": str(root / "src")}, capture_output=True, text=True, timeout=300
    )
    assert (found.returncode, found.stderr) == (0, "")
    lines = found.stdout.splitlines()
    assert len(lines) == 4
    for line, without in zip(lines, (0.3811, 2.8903, 1.5697, 0.1979), strict=True):
        assert f"without privacy {without:.4f}" in line
        value, low, high = (float(word) for word in re.findall(r"-?\d+\.\d{4}", line)[:3])
        assert low <= value <= high
        # The records differ from the truth that the interval is for, and the noise from nothing: within twice its
        # length but for a probability below 1e-6.
        assert abs(value - without) < 2 * (high - low)
    assert 0 < float(lines[3].rpartition(" ")[2]) <= 1
