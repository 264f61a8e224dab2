"""Every document's Python blocks run, and print what the document says they print."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.md")])
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_examples_of(document: Path, run_document: Callable[[Path], int]) -> None:
    run_document(document)


def test_every_correction_is_computed() -> None:
    errata = ROOT / "docs" / "errata.md"
    corrections = re.split(r"^## (?=\d)", errata.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert len(corrections) >= 10
    bare = [text.splitlines()[0] for text in corrections if "```python" not in text]
    assert bare == []


@pytest.mark.parametrize(
    "document",
    [*DOCUMENTS, ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_links_of(document: Path) -> None:
    targets = [link for link in LINK.findall(document.read_text(encoding="utf-8")) if "://" not in link]
    missing = [target for target in targets if not (document.parent / target).exists()]
    assert missing == []


BROKEN = {
    "wrong output": "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n",
    "failed claim": "```python\nassert 1 + 1 == 3\n```\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_document_is_noticed(text: str, tmp_path: Path, run_document: Callable[[Path], int]) -> None:
    document = tmp_path / "broken.md"
    document.write_text(text)
    with pytest.raises(AssertionError):
        run_document(document)


def test_a_sound_document_passes(tmp_path: Path, run_document: Callable[[Path], int]) -> None:
    document = tmp_path / "sound.md"
    document.write_text("```python\nx = 2\n```\n\nWords.\n\n```python\nprint(x, 'etc.')\n```\n\n```text\n2 ...\n```\n")
    assert run_document(document) == 2
