"""What was asked, as plain values, never data nor a password; how to ask it again; and the design it leads to."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from privatest import questions
from privatest.addresses import without_secrets
from privatest.changepoint import ChangePlan, ChangePoint, design_change
from privatest.errors import InvalidInput, PrivatestError
from privatest.fit import FitRelease, FitTest, design_fit
from privatest.hypotheses import as_distribution

__all__ = ["command", "document", "plain_question", "python", "redesign"]

LAWS = ("null", "alternative")
# The only settings that are lists: others could be a column of data, passed by mistake.
LISTS = {"clamp": 2, "n": 200}
LONGEST = 4000
UNKNOWN = "data.csv"


def plain_question(question: Mapping[str, Any]) -> dict[str, Any]:
    """The question as texts, numbers and short lists; laws as text.

    Refuses anything that could hold data, and leaves user names, passwords and options out of addresses.
    """
    if not isinstance(question, Mapping):
        raise InvalidInput(f"question must be a mapping of settings, not {type(question).__name__}.")
    found: dict[str, Any] = {}
    for key, value in question.items():
        name = str(key)
        if value is None:
            continue
        found[name] = _law(name, value) if name in LAWS else _setting(name, value)
    return found


def _law(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value[:LONGEST]
    try:
        law = as_distribution(value, name)
    except PrivatestError:  # its message may quote a number, which might be a record's
        raise InvalidInput(f"question[{name!r}] of type {type(value).__name__} is no distribution.") from None
    spec = law.spec
    return str(spec if spec is not None and len(spec) <= LONGEST else law.describe())


def _setting(name: str, value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, str):
        return without_secrets(value)[:LONGEST]
    most = LISTS.get(name, 0)
    if isinstance(value, list | tuple) and len(value) <= most and all(isinstance(one, int | float) for one in value):
        return list(value)
    raise InvalidInput(
        f"question[{name!r}] is of type {type(value).__name__}: a report takes texts and numbers only, so that no data "
        "get into it."
    )


def python(kind: str, question: dict[str, Any]) -> str:
    """The call of the public function; a text the reader can run."""
    laws = [repr(question[name]) for name in LAWS if question.get(name)]
    source = repr(_source(question))
    settings = [f"{name}={_value(question[name])}" for name in _rules(kind) if name in question]
    run = [*questions.named(kind, questions.WHERE), "dataset", "request"]
    running = [f"{name}={question[name]!r}" for name in run if name in question]
    lines = ["import privatest as pt", ""]
    if "ledger" in question:
        lines.append(f"ledger = pt.Ledger({question['ledger']!r})")
        running.append("ledger=ledger")
    call = f"pt.{questions.QUESTIONS[kind].call}"
    if kind == "plan":
        lines.append(f"{call}({', '.join([*laws, *settings])}).design")
    elif kind == "test":
        lines.append(f"test = {call}({', '.join([*laws, *settings])})")
        lines.append(f"test.run({', '.join([source, *running])})")
    else:
        lines.append(f"{call}({', '.join([source, *laws, *settings, *running])})")
    return "\n".join(lines)


def command(kind: str, question: dict[str, Any]) -> str:
    """The call on the command line."""
    words = ["privatest", kind]
    if kind != "plan":
        words.append(str(_source(question)))
    for name in questions.named(kind, questions.RULE, questions.WHERE, questions.PAYER):
        value = question.get(name)
        if value is None:
            continue
        words.append(questions.flag(name))
        words.append(",".join(map(_value, value)) if isinstance(value, list) else str(value))
    return shlex.join(words)


def _source(question: dict[str, Any]) -> Any:
    """Where the data are, or a stand-in for it."""
    return next((question[name] for name in ("source", "data") if name in question), UNKNOWN)


def _rules(kind: str) -> list[str]:
    """What the function takes by name: all that makes the design, but for the laws."""
    return [name for name in questions.named(kind, questions.RULE) if name not in LAWS]


def document(design: Any) -> str | None:
    """The design as JSON, if it can be written so."""
    if design is None or not callable(getattr(design, "to_dict", None)):
        return None
    return json.dumps(design.to_dict(), indent=1, default=str)


def _value(value: Any) -> str:
    return f"({', '.join(map(repr, value))})" if isinstance(value, list) else repr(value)


def redesign(asked: dict[str, Any], result: Any) -> ChangePlan | FitTest | None:
    """The plan or test that gave the result; None where the question does not lead to one of the same promises."""
    try:
        if isinstance(result, ChangePoint):
            rules = {name: asked[name] for name in _rules("detect") if name in asked}
            plan = design_change(asked["null"], asked.get("alternative"), **rules)
            promised = plan.method, plan.accuracy, plan.beta, plan.false_alarm, plan.epsilon
            kept = result.method, result.accuracy, result.beta, result.false_alarm, result.epsilon
            return plan if promised == kept else None
        if isinstance(result, FitRelease):
            rules = {name: asked[name] for name in _rules("fit") if name in asked and name != "beta"}
            test = design_fit(asked["null"], n=result.n, **rules)
            return test if (test.method, test.epsilon) == (result.test, result.epsilon) else None
    except (PrivatestError, KeyError, TypeError):  # a law without a text of its own, or half a question
        return None
    return None
