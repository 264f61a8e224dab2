"""The table of questions is true of the package, and the command line, problem files, studio and report follow it."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

import privatest as pt
from privatest import privacy, questions
from privatest.cli import options
from privatest.report import page
from privatest.studio import answering

COMMANDS = [name for name in questions.QUESTIONS if not name.startswith("/")]
REQUESTS = [name for name in questions.QUESTIONS if name.startswith("/")]


@pytest.mark.parametrize("taker", questions.QUESTIONS)
def test_an_option_of_a_question_is_an_argument_of_its_function(taker: str) -> None:
    """Under the same name, and with the default that the table states."""
    question = questions.QUESTIONS[taker]
    known = inspect.signature(getattr(pt, question.call)).parameters
    for option in questions.options(taker):
        if option.role == questions.RULE and option.name != "epsilons":  # one call for each of these
            assert option.name in known
            if option.default is not None:
                assert known[option.name].default == option.default


@pytest.mark.parametrize("taker", questions.QUESTIONS)
def test_every_option_is_declared_once_for_a_taker(taker: str) -> None:
    names = [option.name for option in questions.options(taker)]
    assert len(names) == len(set(names))
    assert set(questions.QUESTIONS[taker].needs.split()) <= set(names)


def test_a_row_reaches_everybody_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    row = questions.Option("patience", questions.SHARE, questions.RULE, "How long.", "plan /design")
    for where in (lambda: options.signature("plan").parameters, lambda: answering.body("/design").model_fields):
        assert "patience" not in where()
    monkeypatch.setattr(questions, "OPTIONS", (*questions.OPTIONS, row))
    assert "patience" in options.signature("plan").parameters
    assert answering.body("/design").model_fields["patience"].description == "How long."
    assert questions._keys()["patience"] is questions.SHARE
    asked: dict[str, Any] = {"null": "bernoulli(0.3)", "alternative": "bernoulli(0.4)", "epsilon": 1, "patience": 0.5}
    assert page.command("plan", asked).endswith("--epsilon 1 --patience 0.5")
    assert "epsilon=1, patience=0.5)" in page.python("plan", asked)
    assert answering.arguments("/design", asked, questions.RULE) == asked


def test_a_switch_is_told_by_its_flag_alone() -> None:
    asked: dict[str, Any] = {"null": "bernoulli(0.3)", "epsilon": 1, "assume_change": True, "public_order": False}
    assert page.command("detect", asked).endswith("--epsilon 1 --assume-change")
    assert "epsilon=1, assume_change=True" in page.python("detect", asked)


@pytest.mark.parametrize("taker", REQUESTS)
def test_a_body_holds_what_the_table_says(taker: str) -> None:
    body = answering.body(taker)
    assert list(body.model_fields) == [option.name for option in questions.options(taker)]
    needs = set(questions.QUESTIONS[taker].needs.split())
    if "privacy" in body.model_fields:
        needs.discard("epsilon")  # which privacy can stand for
    assert {name for name, field in body.model_fields.items() if field.is_required()} == needs


def test_the_notions_are_those_of_the_package() -> None:
    assert {name: len(each.parameters) for name, each in questions.NOTIONS.items()} == {
        name: len(dataclasses.fields(kind)) for name, kind in privacy.NOTIONS.items()
    }
    for name, each in questions.NOTIONS.items():
        values = ", ".join(f"{start:g}" for _, start in each.parameters)
        assert privacy.as_notion(f"{name}({values})").name == name
        named = [field.name for field in dataclasses.fields(privacy.NOTIONS[name])]
        assert [parameter for parameter, _ in each.parameters] == [{"loss": "epsilon"}.get(one, one) for one in named]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_problem_file_knows_all_that_a_command_asks(command: str) -> None:
    asked = [option.name for option in questions.options(command) if option.role != questions.MANNER]
    assert set(asked) <= set(questions.KEYS)
    assert not {"json", "save", "report", "force", "document", "source"} & set(questions.KEYS)
