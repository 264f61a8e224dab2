"""Command lines run in this process, with everything they print and their exit code."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from privatest import cli

SOURCE = Path(__file__).resolve().parents[2] / "src"
PROGRAM = [sys.executable, "-m", "privatest"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(SOURCE)}


class Outcome(NamedTuple):
    """What a command line did."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def refused(self) -> bool:
        """Said so in one or two lines, printed nothing else, and left without a traceback."""
        lines = self.err.strip().splitlines()
        return (
            not self.out and 1 <= len(lines) <= 2 and lines[0].startswith("privatest: ") and "Traceback" not in self.err
        )


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(*words: str, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsys.readouterr()
        code = cli.main([str(word) for word in words])
        return Outcome(code, *capsys.readouterr())

    return run
