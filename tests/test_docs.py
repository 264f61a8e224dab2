"""Every document's Python blocks run, and print what the document says they print."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.md")])
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def test_the_examples_of_every_document(run_document: Callable[[Path], int]) -> None:
    """All of them, so that whatever is wrong is named at once."""
    wrong = []
    for document in DOCUMENTS:
        try:
            run_document(document)
        except Exception as error:
            wrong.append(f"{document.relative_to(ROOT)}: {type(error).__name__}: {error}")
    assert wrong == []


def test_every_correction_is_computed() -> None:
    paper = ROOT / "docs" / "paper.md"
    corrections = re.split(r"^#### (?=\d)", paper.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert len(corrections) >= 10
    bare = [text.splitlines()[0] for text in corrections if "```python" not in text]
    assert bare == []


ITEMS = {
    "1": ["Definition 1.1", "Theorem 1.2", "Figure 1", "Theorem 1.3", *(f"Equation ({k})" for k in range(1, 7))],
    "2": ["Theorem 2.1", "Corollary 2.2", "Lemma 2.3", "Corollary 2.4", "Theorem 2.5", "Lemma 2.6", "Equation (7)"],
    "3": ["Lemma 3.1", "Lemma 3.2", "Lemma 3.3", "Fact 3.4", "Theorem 3.5"],
    "4": [
        *("Definition 4.1", "Definition 4.2", "Theorem 4.3", "Lemma 4.4", "Lemma 4.5", "Theorem 4.6"),
        *("Definition 4.7", "Theorem 4.8", "Theorem 4.9"),
    ],
    "appendices": ["Lemma B.1", "Theorem C.1", "Lemma E.1 and equation (8)", "Lemma F.1"],
}
"""The numbered items of the paper: 27 statements, a figure, and eight equations."""
UNNUMBERED = {"Comparison to known bounds", "Appendix A", "Appendix D"}
EXAMPLES = "Bernoulli, ", "Ber(0) against", "three points", "the better of S_{0} and S_{0,1}", "Section 2.3"


def test_every_item_of_the_paper_is_executed(show: Callable[[str], None]) -> None:
    """In the paper's order, each with a computation and what it prints."""
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    sections = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    titles = [section.splitlines()[0] for section in sections]
    executed = [
        section for section in sections if re.search(r"```python\n.+?```\n\n```text\n.+?\n```", section, re.DOTALL)
    ]
    assert len(executed) == len(sections)
    wanted = [name for items in ITEMS.values() for name in items]
    names = [next((name for name in wanted if title.startswith(f"{name} ")), title) for title in titles]
    assert sorted(name for name in names if name in wanted) == sorted(wanted)
    others = [title for title, name in zip(titles, names, strict=True) if name not in wanted]
    assert [name for name in EXAMPLES if not any(name in title for title in others)] == []
    assert all(title.startswith(("Example: ", "Remark: ")) or title.split(" (")[0] in UNNUMBERED for title in others)
    statements = [name for name in names if re.fullmatch(r"(Definition|Theorem|Lemma|Corollary|Fact) .*", name)]
    order = [re.search(r"([1-4BCEF])\.(\d)", name) for name in statements]
    assert [match[0] for match in order if match] == sorted(match[0] for match in order if match)
    equations = 8
    show(
        f"the paper's items: {len(statements)} statements, 1 figure, {equations} equations, {len(others)} without a "
        f"number; executed {len(executed)} sections of {len(sections)}"
    )
    assert len(statements) == 27


@pytest.mark.parametrize(
    "document",
    [*DOCUMENTS, ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_links_of(document: Path) -> None:
    targets = [link for link in LINK.findall(document.read_text(encoding="utf-8")) if "://" not in link]
    missing = [target for target in targets if not (document.parent / target).exists()]
    assert missing == []
