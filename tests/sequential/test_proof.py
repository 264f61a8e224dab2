"""The tests that proof.md names exist."""

from __future__ import annotations

import re
from pathlib import Path


def test_every_test_that_is_named_exists(root: Path) -> None:
    text = (root / "src/privatest/streams/proof.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", text))
    assert len(named) > 20
    sources = "".join(path.read_text(encoding="utf-8") for path in (root / "tests").rglob("test_*.py"))
    assert {name for name in named if f"def {name}(" not in sources} == set()
    for file in re.findall(r"\(`(\w+\.py)`", text):
        assert (root / "src/privatest/streams" / file).is_file()
