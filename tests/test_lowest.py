"""`make lowest` comes to an end and sees what is red, whatever an old library does to its process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import lowest

pytestmark = pytest.mark.exhaustive  # each starts several runs of pytest


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files made here need no plugin, and loading those of this environment takes most of the time."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


FILES = {
    "test_bad.py": ("def test_bad():\n    assert 1 == 2\n", "1 failed"),
    "test_dies.py": (
        # The child outlives its parent and holds on to its output.
        "import os, subprocess\ndef test_dies():\n    subprocess.Popen(['sleep', '600'])\n    os.abort()\n",
        "died of signal 6 (SIGABRT)",
    ),
    "test_empty.py": ("", "no tests ran"),
    "test_fine.py": ("def test_fine():\n    pass\n", "1 passed"),
}


def test_a_file_that_fails_dies_or_is_empty_is_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lowest, "ROOT", tmp_path)
    monkeypatch.setattr(lowest, "bounds", dict)
    for name, (program, _) in FILES.items():
        (tmp_path / name).write_text(program, encoding="utf-8")
    assert lowest.main(["."]) == 1
    lines = capsys.readouterr().out.splitlines()
    for name, (_, result) in FILES.items():
        colour = "green" if name == "test_fine.py" else "RED"
        assert [line for line in lines if line.split()[:2] == [colour, name] and result in line]
    assert any(line.startswith("1 of 4 files of tests are green") for line in lines)
    assert lowest.main(["test_fine.py"]) == 0


def test_a_file_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lowest, "ROOT", tmp_path)
    monkeypatch.setattr(lowest, "SECONDS", 0.5)
    (tmp_path / "test_hangs.py").write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
    (run,) = lowest.runs(["test_hangs.py"], 1)
    assert not run.passed()
    assert "SIGKILL" in run.result()
