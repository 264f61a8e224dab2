"""Reports: self-contained, accessible, escaped, with everything they must say; on disk whole or not at all."""

from __future__ import annotations

import json
import math
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest import report
from privatest.errors import InvalidInput
from tests.report import pages

HOSTILE = "<script>alert('1')</script>"
NULL, ALTERNATIVE = {HOSTILE: 0.5, "b&b": 0.5}, {HOSTILE: 0.2, "b&b": 0.8}
HEADINGS = ["Question", "Result", "Guarantee", "Budget", "Signatures", "Design", "Pictures", "How to ask again"]


def made(kind: str) -> dict[str, Any]:
    """Arguments of render for each kind, hostile labels where there are labels."""
    rng = np.random.default_rng(7)
    if kind == "plan":
        test = pt.design(NULL, ALTERNATIVE, epsilon=1, n=30)
        more = pt.compare(NULL, ALTERNATIVE, epsilon=1), pt.power_curve(NULL, ALTERNATIVE, epsilon=1, n=[10, 30])
        asked = {"null": NULL, "alternative": ALTERNATIVE, "epsilon": 1, "n": 30}
        return {"question": asked, "design": [test, *more], "kind": kind}
    if kind == "test":
        test = pt.design(NULL, ALTERNATIVE, epsilon=0.5, n=30)
        asked = {"null": NULL, "alternative": ALTERNATIVE, "epsilon": 0.5, "n": 30, "column": HOSTILE}
        asked |= {"source": "post://me:hunter2@host/db?key=hunter2", "dataset": "claims", "request": HOSTILE}
        return {"question": asked, "design": test, "result": test.run([HOSTILE] * 30), "kind": kind}
    if kind == "detect":
        plan = pt.design_change("bernoulli(0.2)", "bernoulli(0.8)", epsilon=1, false_alarm=0.05)
        asked = {"null": "bernoulli(0.2)", "alternative": "bernoulli(0.8)", "epsilon": 1, "false_alarm": 0.05}
        data = np.concatenate([rng.random(100) < 0.2, rng.random(100) < 0.8]).astype(int)
        return {"question": asked, "design": plan, "result": plan.run(data), "kind": kind}
    if kind == "sequential":
        run = pt.Sequential("bernoulli(0.2)", "bernoulli(0.8)", epsilon=1, alpha=0.05, beta=0.05)
        asked = {"null": "bernoulli(0.2)", "alternative": "bernoulli(0.8)", "epsilon": 1, "alpha": 0.05, "beta": 0.05}
        return {"question": asked, "design": run.plan, "result": run.update([0] * 200), "kind": kind}
    if kind == "estimate":
        design = pt.design_estimate("bernoulli(?)", between=(0, 1), epsilon=2, n=40)
        asked = {"family": "bernoulli(?)", "between": (0, 1), "epsilon": 2, "column": HOSTILE, "data": "a b.csv"}
        return {"question": asked, "design": design, "result": design.run([0, 1] * 20), "kind": kind}
    if kind == "groups":
        arms = pt.design_groups(n=(20, 30), epsilon=2, alternative="greater", success=HOSTILE)
        asked = {"alternative": "greater", "success": HOSTILE, "epsilon": 2, "data": "a.csv", "treatment": "b c.csv"}
        return {"question": asked, "design": arms, "result": arms.run(["no"] * 20, [HOSTILE] * 30), "kind": kind}
    if kind == "table":
        cells = pt.design_table(between=(0, 8), cells=4, epsilon=2, n=40)
        asked = {"between": (0, 8), "cells": 4, "epsilon": 2, "column": HOSTILE, "data": "a b.csv"}
        return {"question": asked, "design": cells, "result": cells.run([1.0, 5.0] * 20), "kind": kind}
    test = pt.design_fit(NULL, distance=0.2, epsilon=1, n=60)
    asked = {"null": NULL, "distance": 0.2, "epsilon": 1, "n": 60}
    return {"question": asked, "design": test, "result": test.run([HOSTILE] * 60), "kind": "fit"}


@pytest.fixture(scope="module")
def rendered() -> dict[str, tuple[dict[str, Any], str]]:
    found = {}
    for kind in report.KINDS:
        arguments = made(kind)
        found[kind] = arguments, report.render(**arguments)
    return found


@pytest.mark.parametrize("kind", report.KINDS)
def test_a_page_is_whole_and_alone(kind: str, rendered: dict[str, tuple[dict[str, Any], str]]) -> None:
    _, text = rendered[kind]
    page = pages.read(text)
    assert text.startswith("<!DOCTYPE html>")
    assert page.of("html")[0].attributes["lang"] == "en"
    assert [h.text for h in page.of("h2")] == HEADINGS
    assert len(page.of("h1")) == len(page.of("main")) == len(page.of("title")) == 1
    assert not {element.tag for element in page.elements} & {"script", "iframe", "object", "embed", "link", "form", "a"}
    allowed = {"src", "alt", "lang", "charset", "http-equiv", "content", "name", "id", "class", "scope", "tabindex"}
    assert {name for element in page.elements for name in element.attributes} <= allowed | {"aria-labelledby"}
    policy = next(m.attributes["content"] for m in page.of("meta") if "http-equiv" in m.attributes)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    assert "url(" not in text
    assert "@import" not in text
    for image in page.of("img"):
        assert image.attributes["src"].startswith("data:image/png;base64,")
        assert len(image.attributes["alt"]) > 20
    assert page.pictures()
    assert all(picture.startswith(b"\x89PNG") for picture in page.pictures())
    for table in page.of("table"):
        assert table.text
    assert all(header.attributes["scope"] in ("row", "col") for header in page.of("th"))
    assert len(page.of("caption")) == len(page.of("table"))
    ids = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    assert [section.attributes["aria-labelledby"] for section in page.of("section")] == ids
    assert "@media print" in text


@pytest.mark.parametrize("kind", report.KINDS)
def test_a_page_says_what_it_must(kind: str, rendered: dict[str, tuple[dict[str, Any], str]]) -> None:
    arguments, text = rendered[kind]
    page = pages.read(text)
    epsilon = arguments["question"]["epsilon"]
    factor = math.exp(epsilon)
    for words in (
        f"{epsilon:g}-differentially private",
        f"e^{epsilon:g} = {factor:.4g}",
        f"{100 * factor / (1 + factor):.3g}% afterwards",
        "replacing one record by anything else",
        "number of records n is assumed to be public",
        "what is not protected",
        f"privatest {pt.__version__}",
        "import privatest as pt",
        f"privatest {kind}",
        "SHA-256",
    ):
        assert words in page.text, words
    main = arguments["design"][0] if isinstance(arguments["design"], list) else arguments["design"]
    document = json.loads(
        next(d for d in page.of("details") if d.text.startswith("JSON")).text.partition("{")[2].join(["{", ""])
    )
    assert document == json.loads(json.dumps(main.to_dict()))
    if kind == "plan":
        assert "No data have been read" in page.text
    else:
        assert next(p for p in page.of("p") if p.attributes.get("class") == "answer").text
    if kind == "test":
        assert "Charged to the ledger" in page.text
        assert f"{arguments['result'].pvalue:.4g}" in page.text
    if kind == "detect":
        assert f"{arguments['result'].accuracy} records" in page.text
    for told in (main, arguments.get("result")):
        assert told is None or all(part in page.text for line in told.lines() for part in line)


def test_the_calls_can_be_run_again(rendered: dict[str, tuple[dict[str, Any], str]]) -> None:
    arguments, text = rendered["plan"]
    code, command = (element.text for element in pages.read(text).of("pre")[:2])
    space: dict[str, Any] = {}
    lines = code.splitlines()
    exec("\n".join([*lines[:-1], f"found = {lines[-1]}"]), space)
    assert space["found"] == arguments["design"][0]
    words = shlex.split(command)
    assert words[:2] == ["privatest", "plan"]
    options = dict(zip(words[2::2], words[3::2], strict=True))
    assert options["--epsilon"] == "1"
    laws = options["--null"], options["--alternative"]
    again = pt.design(*laws, epsilon=float(options["--epsilon"]), n=int(options["--n"]))
    assert again == arguments["design"][0]


def test_without_matplotlib_the_words_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = made("test")
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = pages.read(report.render(**arguments))
    assert not page.of("img")
    assert 'pip install "matplotlib>=' in page.text
    assert "0.5-differentially private" in page.text


def test_only_designs_and_releases_get_in() -> None:
    import pandas as pd

    test = pt.design("bernoulli(0.3)", "bernoulli(0.4)", epsilon=1, n=5)
    asked = {"null": "bernoulli(0.3)", "alternative": "bernoulli(0.4)", "epsilon": 1}
    frame = pd.DataFrame({"x": [123456.5]})
    for wrong in (
        {"design": frame},
        {"design": [test, frame]},
        {"design": test, "result": frame},
        {"design": test, "result": test},
        {"design": test, "result": {"decision": "null"}},
        {"question": {**asked, "data": [1, 0, 1]}},
        {"question": {**asked, "data": np.zeros(3)}},
        {"question": {**asked, "frame": frame}},
        {"question": {**asked, "null": frame}},
        {"question": {**asked, "epsilon": "many"}},
        {"question": [1, 2]},
        {"kind": "poem"},
    ):
        given: dict[str, Any] = {"question": asked, "kind": "test", **wrong}
        with pytest.raises(InvalidInput) as refusal:
            report.render(**given)
        assert "123456" not in str(refusal.value)
    with pytest.raises(InvalidInput, match=r"kind='plan' does not fit a Release\. Use kind='test'"):
        report.render(question=asked, design=test, result=test.run([0] * 5), kind="plan")


def test_a_report_of_sets_names_the_worst_members_and_what_the_data_fit() -> None:
    P, Q = pt.near("normal(0, sd in [0.9, 1.1])", 0.01), "normal(1, sd in [0.9, 1.1])"
    test = pt.design(P, Q, epsilon=1, n=400)
    release = test.run(np.random.default_rng(2).normal(0.5, 1, 400))
    asked = {"null": P, "alternative": Q, "epsilon": 1, "n": 400}
    page = pages.read(report.render(question=asked, design=test, result=release, kind="test"))
    answer = next(p for p in page.of("p") if p.attributes.get("class") == "answer").text
    assert answer.startswith("The data fit neither P nor Q")
    for words in (
        "near(normal(mean=0, sd in [0.9, 1.1]), 0.01)",
        "neither",
        "the largest of all members",
        test.worst_null,
        test.worst_alternative,
    ):
        assert words in page.text, words
    again = page.of("pre")[0].text
    assert "near(normal(mean=0, sd in [0.9, 1.1]), 0.01)" in again
    said = [image.attributes["alt"] for image in page.of("img")]
    assert len(said) == 2
    assert "the members of the sets that are hardest to tell apart" in said[1]


@pytest.mark.parametrize(
    ("grant", "price"), [({"epsilon": 2}, {"epsilon": 0.5}), ({"privacy": "zcdp(1)"}, {"privacy": "zcdp(0.25)"})]
)
def test_a_page_to_sign_names_purpose_author_and_what_is_left(
    tmp_path: Path, grant: dict[str, Any], price: dict[str, Any]
) -> None:
    ledger = pt.Ledger(tmp_path / "ledger.db")
    ledger.grant("claims", **grant)
    test = pt.design("bernoulli(0.4)", "bernoulli(0.6)", **price, n=40)
    release = test.run([0, 1] * 20, ledger=ledger, dataset="claims", request="r")
    asked = {"null": "bernoulli(0.4)", "alternative": "bernoulli(0.6)", **price, "dataset": "claims", "request": "r"}
    more = {"purpose": f"to see {HOSTILE}", "author": "A.\nNonymous", "ledger": ledger}
    text = report.render(question=asked, design=test, result=release, kind="test", **more)
    page = pages.read(text)
    told = (
        ["epsilon 2", "epsilon 0.5", "epsilon 1.5"] if "epsilon" in grant else ["zcdp(1)", "zcdp(0.25)", "zcdp(0.75)"]
    )
    table = next(one for one in page.of("table") if one.text.startswith("Budget of claims"))
    for name, amount in zip(("granted", "spent", "left"), told, strict=True):
        assert f"{name}{amount}" in table.text
    for words in (f"to see {HOSTILE}", "A. Nonymous", "Asked by A. Nonymous: signature", "bernoulli with p 0.4"):
        assert words in page.text
    # Details stand behind folds: the design, every setting, the calls.
    folded = " ".join(one.text for one in page.of("details"))
    assert all(words in folded for words in ("The test in all its details", "Every setting", "import privatest as pt"))
    with pytest.raises(InvalidInput, match="purpose must be a text"):
        report.render(question=asked, kind="plan", purpose=7)
