"""The table of questions is true of the package, and the command line, problem files, studio and report follow it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privatest as pt
from privatest import options, privacy
from privatest.cli import problem_file as words
from privatest.report import html_page as page
from privatest.studio import planning_requests
from privatest.unanswered_questions import UNANSWERED

COMMANDS = [name for name in options.QUESTIONS if not name.startswith("/")]
REQUESTS = [name for name in options.QUESTIONS if name.startswith("/")]


@pytest.mark.parametrize("taker", options.QUESTIONS)
def test_an_option_of_a_question_is_an_argument_of_its_function(taker: str) -> None:
    """Under the same name, and with the default that the table states."""
    question = options.QUESTIONS[taker]
    known = inspect.signature(attrgetter(question.call)(pt)).parameters
    for option in options.of(taker):
        if option.role == options.RULE and option.name != "epsilons":  # one call for each of these
            assert option.name in known or ("ranges" in known and option.name.endswith("_between"))
            if option.default is not None:
                assert known[option.name].default == option.default


@pytest.mark.parametrize("taker", options.QUESTIONS)
def test_every_option_is_declared_once_for_a_taker(taker: str) -> None:
    names = [option.name for option in options.of(taker)]
    assert len(names) == len(set(names))
    assert set(options.QUESTIONS[taker].needs.split()) <= set(names)


def test_a_row_reaches_everybody_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    row = options.Option("patience", options.SHARE, options.RULE, "How long.", "plan /design")
    for where in (
        lambda: words.signature("plan").parameters,
        lambda: planning_requests.body("/design").model_fields,
    ):
        assert "patience" not in where()
    monkeypatch.setattr(options, "OPTIONS", (*options.OPTIONS, row))
    assert "patience" in words.signature("plan").parameters
    assert planning_requests.body("/design").model_fields["patience"].description == "How long."
    assert options._keys()["patience"] is options.SHARE
    asked: dict[str, Any] = {"null": "bernoulli(0.3)", "alternative": "bernoulli(0.4)", "epsilon": 1, "patience": 0.5}
    assert page.command("plan", asked).endswith("--epsilon 1 --patience 0.5")
    assert "epsilon=1, patience=0.5)" in page.python("plan", asked)
    assert planning_requests.arguments("/design", asked, options.RULE) == asked


@pytest.mark.parametrize("taker", REQUESTS)
def test_a_body_holds_what_the_table_says(taker: str) -> None:
    body = planning_requests.body(taker)
    assert list(body.model_fields) == [option.name for option in options.of(taker)]
    needs = set(options.QUESTIONS[taker].needs.split())
    if "privacy" in body.model_fields:
        needs.discard("epsilon")  # which privacy can stand for
    assert {name for name, field in body.model_fields.items() if field.is_required()} == needs


def test_the_notions_are_those_of_the_package() -> None:
    shown = planning_requests.controls()["notions"]
    assert set(shown) == set(privacy.NOTIONS)
    for name, each in shown.items():
        assert ":" in each["words"], name  # the name of the notion, and what it means
        values = ", ".join(f"{start:g}" for _, start in each["parameters"])
        assert privacy.as_notion(f"{name}({values})").name == name


@pytest.mark.parametrize("command", COMMANDS)
def test_a_problem_file_knows_all_that_a_command_asks(command: str) -> None:
    asked = [option.name for option in options.of(command) if option.role != options.MANNER]
    assert set(asked) <= set(options.KEYS)
    assert not {"json", "save", "report", "force", "document", "source"} & set(options.KEYS)


TABLE = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0] * 20, "y": [0, 1, 1, 0] * 20, "arm": list("abcd") * 20})
TWO = TABLE[TABLE["arm"] < "c"]
REFUSED: dict[str, tuple[Callable[..., object], str, str]] = {
    "median(?)": (lambda k: pt.estimate(TABLE.x, "median(?)", between=(0, 9), **k), "no family", "median_above"),
    "cut": (
        lambda k: pt.estimate(TABLE.x, "share_above(?, 0.5)", between=(0, 9), **k),
        "must be public",
        "share_above",
    ),
    "np.median": (lambda k: pt.estimate(TABLE.x, np.median, between=(0, 9), **k), "no family", "share_above"),
    "mean(?)": (lambda k: pt.estimate(TABLE.x, "mean(?)", between=(0, 9), **k), "no family", "sd in"),
    "sd=?": (lambda k: pt.estimate(TABLE.x, "normal(mean=?, sd=?)", between=(0, 9), **k), "sd_between", "missing"),
    "variance": (lambda k: pt.estimate(TABLE.x, "variance", between=(0, 9), **k), "spread", "sd=?"),
    "correlation": (lambda k: pt.estimate(TABLE, "correlation", column=["x", "y"], **k), "two columns", "above="),
    "slope": (lambda k: pt.estimate(TABLE, "slope(?)", **k), "two columns", "compare_groups"),
    "formula": (lambda k: pt.estimate(TABLE, "y ~ x", **k), "two columns", "compare_groups"),
    "trend": (lambda k: pt.estimate(TABLE.x, "trend", **k), "not estimated", "detect_change"),
    "by": (lambda k: pt.estimate(TABLE, "bernoulli(?)", column="y", by="arm", **k), "each group", "tabulate"),
    "censored": (
        lambda k: pt.estimate(TABLE, "exponential(?)", column="x", between=(1, 9), event="y", **k),
        "censored times",
        "share_above",
    ),
    "columns": (lambda k: pt.estimate(TABLE, "bernoulli(?)", column=["x", "y"], **k), "several columns", "one label"),
    "what": (lambda k: pt.compare_groups(TWO, group="arm", column="x", what="mean", **k), "by shares", "above="),
    "outcome": (lambda k: pt.compare_groups(TWO, group="arm", column="x", outcome="mean", **k), "by shares", "above="),
    "outcome median": (
        lambda k: pt.compare_groups(TWO, group="arm", column="x", outcome="median(?)", **k),
        "no family",
        "share_above",
    ),
    "four arms": (lambda k: pt.compare_groups(TABLE, group="arm", column="y", **k), "two groups", "divide alpha"),
    "four lists": (lambda k: pt.compare_groups([0], [1], [1], [0], **k), "two groups at a time", "divide alpha"),
    "paired": (lambda k: pt.compare_groups([0], [1], paired=True, **k), "two columns", "difference first"),
    "independence": (
        lambda k: pt.goodness_of_fit(TABLE.y, "independent", distance=0.2, **k),
        "joint distribution",
        "goodness_of_fit",
    ),
    "fit of a normal": (
        lambda k: pt.goodness_of_fit(TABLE.x, "normal(?, ?)", distance=0.2, **k),
        "question mark is for estimates",
        "Write a number",
    ),
    "test of a mean": (lambda k: pt.decide(TABLE.x, "mean<=1", "mean>=2", **k), "no family", "sd in"),
    "typing error": (lambda k: pt.estimate(TABLE, "bernoulli(?)", colunm="y", **k), "no argument", "'column'"),
    "by position": (lambda k: pt.estimate(TABLE.y, "bernoulli(?)", 1, **k), "without a name", "epsilon=1"),
}


@pytest.mark.parametrize("question", REFUSED)
def test_what_is_not_answered_is_refused_with_reason_and_way_out_before_any_charge(
    question: str, tmp_path: Path
) -> None:
    ask, reason, way_out = REFUSED[question]
    with pt.Ledger(tmp_path / "ledger.db") as ledger:
        ledger.grant("people", epsilon=1)
        with pytest.raises(pt.errors.InvalidInput) as raised:
            ask({"epsilon": 1, "ledger": ledger, "dataset": "people", "request": "one"})
        assert reason in str(raised.value)
        assert way_out in str(raised.value)
        assert ledger.left("people") == 1


def test_every_unanswered_question_has_a_reason_and_a_way_out_and_no_word_twice() -> None:
    words = [word for one in UNANSWERED for word in one.words.split()]
    assert len(words) == len(set(words))
    for one in UNANSWERED:
        assert re.search(r"pt\.\w|'\w+\(|=\.\.\.|alpha", one.instead), one


def test_a_name_that_the_package_does_not_have_says_what_to_use() -> None:
    with pytest.raises(AttributeError, match=r"two columns of each record.*compare_groups"):
        _ = pt.correlation
    assert not hasattr(pt, "__wrapped__")
