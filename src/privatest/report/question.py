"""What was asked, as plain values: never data, never a password."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from privatest.addresses import without_secrets
from privatest.errors import InvalidInput, PrivatestError
from privatest.hypotheses import as_distribution

__all__ = ["LAWS", "plain_question"]

LAWS = ("null", "alternative")
# The only settings that are lists: others could be a column of data, passed by mistake.
LISTS = {"clamp": 2, "n": 200}
LONGEST = 4000


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
