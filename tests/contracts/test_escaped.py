"""What a page or a notebook prints is text, wherever it came from: names of groups, labels, columns, files, requests.

Everything that is told (title, facts, sentence, notes, pictures' titles, what was asked, who asks) is replaced by words
that would be an element, one at a time, for every kind of page and every kind of object; all must come out as words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import privatest as pt
from privatest import progress_events as headway
from privatest import report
from privatest.charge_before_release import Receipt
from privatest.errors import MissingExtra
from privatest.facts import Fact
from privatest.report import html_page as page_module
from tests.contracts.test_facts import TABLES, TOLD
from tests.contracts.test_facts import made as told
from tests.report import pages
from tests.report.test_page import made

HOSTILE = "</p><script>alert(\"'1'\")</script>&amp;"


def words(text: str) -> str:
    """All that a reader sees, in a page or in a part of one; the check itself: nothing became an element."""
    assert "<script" not in text.lower()
    whole = text if "<body" in text else f"<body>{text}</body>"
    page = pages.read(whole)
    assert "script" not in {element.tag for element in page.elements}
    attributes = [value for element in page.elements for value in element.attributes.values()]
    return page.text + "".join(attributes)


def hostile_facts(one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    own = type(one).facts
    monkeypatch.setattr(type(one), "facts", lambda self: [*own(self), Fact(HOSTILE, HOSTILE, HOSTILE)])


def hostile_property(one: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(one), name, property(lambda _: HOSTILE))


# Name, values and meanings of facts; the title.
@pytest.mark.parametrize("kind", TOLD)
def test_whatever_is_told_in_a_notebook_is_text(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = told(kind)
    assert HOSTILE not in words(one._repr_html_())
    hostile_facts(one, monkeypatch)
    hostile_property(one, "title", monkeypatch)
    assert words(one._repr_html_()).count(HOSTILE) == 4


@pytest.mark.parametrize("kind", TABLES)
def test_whatever_a_table_holds_is_text(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = told(kind)
    for name in ("title", "ending"):
        hostile_property(one, name, monkeypatch)
    size = len(one.HEADINGS)
    monkeypatch.setattr(type(one), "HEADINGS", (HOSTILE,) * size)
    monkeypatch.setattr(type(one), "cells", lambda _: [(HOSTILE,) * size])
    assert words(one._repr_html_()).count(HOSTILE) == 2 + 2 * size


@pytest.fixture(scope="module")
def arguments() -> dict[str, dict[str, Any]]:
    return {kind: made(kind) for kind in report.KINDS}


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "png", lambda _: b"")


def main(words_of: dict[str, Any]) -> Any:
    design = words_of["design"]
    return design[0] if isinstance(design, list) else design


def hostile_question(given: dict[str, Any], _: pytest.MonkeyPatch) -> int:
    given["question"] = {
        **given["question"],
        **dict.fromkeys(("column", "unit", "dataset", "request", "data"), HOSTILE),
    }
    return 4


def hostile_title(given: dict[str, Any], patch: pytest.MonkeyPatch) -> int:
    for one in (main(given), given.get("result")):
        if one is not None:
            hostile_property(one, "title", patch)
    return 3  # in a table, below a picture, and in its place


def told_facts(given: dict[str, Any], patch: pytest.MonkeyPatch) -> int:
    for one in (main(given), given.get("result")):
        if one is not None:
            hostile_facts(one, patch)
    return 3


def hostile_sentence(given: dict[str, Any], patch: pytest.MonkeyPatch) -> int:
    if given.get("result") is None:
        return 0
    hostile_property(given["result"], "sentence", patch)
    return 1


def hostile_receipt(given: dict[str, Any], _: pytest.MonkeyPatch) -> int:
    result = given.get("result")
    if result is None or "receipt" not in {one.name for one in fields(result)}:
        return 0
    known: dict[str, Any] = {one.name: HOSTILE for one in fields(Receipt)}
    known |= {"recorded": datetime(2025, 1, 2, tzinfo=UTC), "replayed": True, "same_source": False, "read": False}
    given["result"] = replace(result, receipt=Receipt(**known))
    given["question"] = {**given["question"], "dataset": HOSTILE, "request": HOSTILE}
    return 4


def hostile_people(given: dict[str, Any], _: pytest.MonkeyPatch) -> int:
    given |= {"purpose": HOSTILE, "author": HOSTILE}
    return 3


def no_extra(given: dict[str, Any], patch: pytest.MonkeyPatch) -> int:  # noqa: ARG001 - of the pictures alone
    def missing(_: Any) -> bytes:
        raise MissingExtra(HOSTILE)

    patch.setattr(page_module, "png", missing)
    return 1


PUSHED: dict[str, Callable[[dict[str, Any], pytest.MonkeyPatch], int]] = {
    "what was asked": hostile_question,
    "titles": hostile_title,
    "facts": told_facts,
    "the sentence": hostile_sentence,
    "the receipt": hostile_receipt,
    "who asks and what for": hostile_people,
    "an extra that is missing": no_extra,
}


@pytest.mark.parametrize("pushed", PUSHED)
@pytest.mark.parametrize("kind", report.KINDS)
@pytest.mark.usefixtures("no_pictures")
def test_whatever_is_told_on_a_page_is_text(
    kind: str, pushed: str, arguments: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = dict(arguments[kind])
    least = PUSHED[pushed](given, monkeypatch)
    assert words(report.render(**given)).count(HOSTILE) >= least


@pytest.mark.usefixtures("no_pictures")
def test_names_of_groups_and_values_of_an_order_are_text() -> None:
    """By the public way: data whose groups and days are called so."""
    table = pa.table({"x": [0, 1] * 20, "arm": [HOSTILE, "b"] * 20, "day": [f"{HOSTILE}{i:03d}" for i in range(40)]})
    groups = pt.compare_groups(table, column="x", group="arm", epsilon=2)
    assert HOSTILE in words(groups._repr_html_())
    assert words(report.render(question={"epsilon": 2}, result=groups, kind="groups")).count(HOSTILE) >= 2
    plan = pt.design_change(
        "bernoulli(0.2)", "bernoulli(0.8)", epsilon=8, n=40, beta=0.3, false_alarm=0.3, changes="several"
    )
    changed = pa.table({"x": [0] * 20 + [1] * 20, "day": table.column("day")})
    found = plan.run(pt.data.read_as(changed, text_order=True), column="x", order="day", public_order=True)
    assert HOSTILE in words(found._repr_html_())
    words(report.render(question={"epsilon": 8}, result=found, kind="detect"))


def test_progress_in_a_notebook_is_text() -> None:
    for total in (0, 7):
        shown = headway._in_notebook(headway.Headway(HOSTILE, 3, total))
        assert HOSTILE in words(shown["text/html"])


SINKS = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "createContextualFragment", "eval(")


def test_the_studio_builds_its_page_without_markup_from_texts() -> None:
    """All that the studio is told it puts into text nodes: none of its scripts makes elements of a text."""
    import privatest.studio

    folder = Path(privatest.studio.__file__).parent / "static"
    scripts = {file.name: file.read_text("utf-8") for file in folder.glob("*.js")}
    assert len(scripts) > 5
    assert any("textContent" in text for text in scripts.values())
    assert not [(name, sink) for name, text in scripts.items() for sink in SINKS if sink in text]
