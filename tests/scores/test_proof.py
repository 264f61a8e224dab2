"""The tests that proof.md names exist: an argument must not outlive its evidence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROOF = "src/privatest/scores/proof.md"


def test_every_test_that_is_named_exists(root: Path) -> None:
    named = set(re.findall(r"`(test_\w+)`", (root / PROOF).read_text(encoding="utf-8")))
    assert len(named) > 20
    sources = "".join(path.read_text(encoding="utf-8") for path in (root / "tests").rglob("test_*.py"))
    assert {name for name in named if f"def {name}(" not in sources} == set()


@pytest.mark.parametrize("file", ["clamped.py", "score.py"])
def test_every_file_that_is_named_exists(root: Path, file: str) -> None:
    text = (root / PROOF).read_text(encoding="utf-8")
    assert file in text
    assert (root / "src/privatest/scores" / file).is_file()
