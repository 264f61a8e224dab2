"""Checks of arguments: ``_validate.positive(epsilon=epsilon)`` raises an error that names them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Integral

from privatest.errors import InvalidInput, shown
from privatest.rational import positive, rational

__all__ = ["choice", "positive", "positive_integer", "probability", "rows_of_a_unit", "suggestion"]


def positive_integer(remedy: str = "", **arguments: int) -> int:
    """The one named argument, as an integer that is at least 1."""
    ((name, value),) = arguments.items()
    whole = isinstance(value, Integral) or (isinstance(value, float) and float(value).is_integer())
    if isinstance(value, bool) or not whole or value < 1:
        raise InvalidInput(f"{name}={shown(value)} must be a whole number of at least 1. {remedy}".rstrip())
    return int(value)


def rows_of_a_unit(unit: object, max_rows_per_unit: int | None) -> int:
    """The most rows of one person that count: 1 if nothing is said; refuses a number where nobody names the person."""
    if unit is None and max_rows_per_unit is not None:
        raise InvalidInput(f"max_rows_per_unit={shown(max_rows_per_unit)} needs a unit. Name the column: unit=...")
    return 1 if max_rows_per_unit is None else positive_integer(max_rows_per_unit=max_rows_per_unit)


def probability(remedy: str = "", **arguments: float) -> float:
    """The one named argument, as a number strictly between 0 and 1."""
    ((name, value),) = arguments.items()
    number = rational(value, name)
    if not 0 < number < 1:
        raise InvalidInput(f"{name}={shown(value)} must lie in (0, 1). {remedy}".rstrip())
    return float(number)


def choice(options: Iterable[str], **arguments: object) -> str:
    """The one named argument, as one of ``options``."""
    ((name, value),) = arguments.items()
    known = list(options)
    if not isinstance(value, str) or value not in known:
        listed = ", ".join(repr(option) for option in known)
        raise InvalidInput(f"{name}={shown(value)} must be one of {listed}.{suggestion(str(value), known)}")
    return value


def suggestion(word: str, known: Iterable[str]) -> str:
    """`` Did you mean 'normal'?`` where some known word is close, else nothing."""
    close = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f" Did you mean {close[0]!r}?" if close else ""
