"""Files: whole or not at all, and errors that say what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from privatest import report
from privatest.errors import InvalidInput

ASKED = {"null": "bernoulli(0.3)", "epsilon": 1}


def test_a_report_replaces_what_is_there(tmp_path: Path) -> None:
    target = tmp_path / "out.html"
    target.write_text("old")
    report.write(target, question=ASKED, kind="fit")
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    report.write(str(target), question=ASKED, kind="fit")
    assert os.listdir(tmp_path) == ["out.html"]


def test_a_failure_leaves_the_old_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out.html"
    target.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidInput, match="No space left"):
        report.write(target, question=ASKED, kind="fit")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.html"]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is a folder"):
        report.write(tmp_path, question=ASKED)
    with pytest.raises(InvalidInput, match="there is no folder"):
        report.write(tmp_path / "missing" / "out.html", question=ASKED)
    with pytest.raises(InvalidInput, match="must be one of"):
        report.write(tmp_path / "out.html", question=ASKED, kind="poem")
    assert os.listdir(tmp_path) == []
