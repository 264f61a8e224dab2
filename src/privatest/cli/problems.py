"""Problem files: the options of a command in a TOML or JSON file, under the same names.

::

    null = "normal(0, 1)"
    alternative = "normal(0.5, 1)"
    epsilon = 0.5
    column = "value"

A distribution may also be a table of label = probability, or a list of probabilities. What the command line says wins
over the file. A command takes from the file what it has an option for; names that no command knows are refused.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privatest import addresses, errors
from privatest.cli.output import complain
from privatest.cli.writing import read_bytes

__all__ = ["KEYS", "merge", "read_problem", "write_problem"]

LARGEST = 10_000_000
_LAW, _NUMBER, _WHOLE, _TEXT, _CLAMP = "a law", "a number", "a whole number", "text", "a clamp"

KEYS: dict[str, str] = {
    "null": _LAW,
    "alternative": _LAW,
    "epsilon": _NUMBER,
    "n": _WHOLE,
    "advantage": _NUMBER,
    "alpha": _NUMBER,
    "beta": _NUMBER,
    "test": _TEXT,
    "clamp": _CLAMP,
    "threshold": _NUMBER,
    "neighbours": _TEXT,
    "max_rows_per_unit": _WHOLE,
    "distance": _NUMBER,
    "bins": _WHOLE,
    "method": _TEXT,
    "false_alarm": _NUMBER,
    "interval": _WHOLE,
    "mean_time_between_false_alarms": _NUMBER,
    "data": _TEXT,
    "column": _TEXT,
    "unit": _TEXT,
    "order": _TEXT,
    "ledger": _TEXT,
    "dataset": _TEXT,
    "request": _TEXT,
    "ledger_timeout": _NUMBER,
}
ADDRESSES = ("data", "ledger")


def merge(problem: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, on the command line or else in the problem file; ``given`` names all there are."""
    settings = {} if problem is None else {k: v for k, v in read_problem(problem).items() if k in given}
    settings.update({name: value for name, value in given.items() if value is not None})
    if isinstance(settings.get("clamp"), str):
        settings["clamp"] = _clamp(settings["clamp"])
    return settings


def read_problem(path: str) -> dict[str, Any]:
    """The settings in a problem file, each of the right kind."""
    found = _parsed(path)
    for name, value in found.items():
        if name not in KEYS:
            close = difflib.get_close_matches(name, KEYS, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else f" Known are {', '.join(KEYS)}."
            raise errors.InvalidInput(f"{name!r} in the problem file {path!r} is not an option.{hint}")
        if not _fits(KEYS[name], value):
            raise errors.InvalidInput(f"{name}={value!r} in the problem file {path!r} must be {KEYS[name]}.")
    return found


def write_problem(path: str, settings: Mapping[str, Any]) -> None:
    """A problem file from which :func:`read_problem` gets the same settings: JSON if it is named so, else TOML.

    Guarantees: no password is written. Addresses are kept without it, and whoever runs the file gives it to the
    database's own client (PGPASSWORD, or a file ~/.pgpass).
    """
    kept = {name: settings[name] for name in KEYS if settings.get(name) is not None}
    for name in ADDRESSES:
        if name in kept and (open_ := addresses.without_password(kept[name])) != kept[name]:
            kept[name] = open_
            complain(
                f"The password of --{name} is not written to {path!r}: give it by PGPASSWORD or in ~/.pgpass when you "
                "use that file."
            )
    kept = {name: list(value) if isinstance(value, tuple) else value for name, value in kept.items()}
    if path.lower().endswith(".json"):
        text = json.dumps(kept, indent=2, allow_nan=False) + "\n"
    else:
        import tomli_w

        text = tomli_w.dumps(kept)
    try:
        Path(path).write_text(text, encoding="utf-8", errors="strict")
    except (OSError, ValueError) as error:
        raise errors.InvalidInput(f"The problem cannot be saved to {path!r}: {_reason(error)}.") from None


def _parsed(path: str) -> dict[str, Any]:
    try:
        content = read_bytes(path, "The problem file", LARGEST)
    except (OSError, ValueError) as error:
        if isinstance(error, errors.InvalidInput):
            raise
        raise errors.InvalidInput(f"The problem file {path!r} cannot be read: {_reason(error)}.") from None
    try:
        text = content.decode("utf-8")
        if path.lower().endswith(".json"):
            found = json.loads(text)
        else:
            import tomllib

            found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        kind = "JSON" if path.lower().endswith(".json") else "TOML"
        raise errors.InvalidInput(
            f"The problem file {path!r} is not valid {kind}: {error}. Write TOML, or JSON in a file named *.json."
        ) from None
    if not isinstance(found, dict):
        raise errors.InvalidInput(f"The problem file {path!r} must hold a table of options, such as epsilon = 0.5.")
    return found


def _fits(kind: str, value: object) -> bool:
    if isinstance(value, bool):
        return False
    if kind == _LAW:
        return isinstance(value, str | dict | list)
    if kind == _CLAMP:
        return isinstance(value, str) or (
            isinstance(value, list) and len(value) == 2 and all(_fits(_NUMBER, end) for end in value)
        )
    kinds = {_NUMBER: int | float, _WHOLE: int, _TEXT: str}
    return isinstance(value, kinds[kind])


def _clamp(text: str) -> str | tuple[float, ...]:
    if "," not in text:
        return text
    try:
        a, b = (float(part) for part in text.strip("()[] ").split(","))
    except ValueError:
        raise errors.InvalidInput(f"clamp={text!r} must be 'tuned', 'paper' or two numbers such as -0.5,0.5.") from None
    return a, b


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
