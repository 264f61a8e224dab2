"""How to ask the same again: in Python, on the command line, and the design itself as a document."""

from __future__ import annotations

import json
import shlex
from typing import Any

__all__ = ["command", "document", "python"]

# Settings that say where the data are and who pays, not what is asked.
SOURCES = ("source", "data")
RUNS = ("column", "unit", "order", "dataset", "request")
DESIGNS = {
    "plan": (
        "epsilon",
        "n",
        "advantage",
        "alpha",
        "beta",
        "test",
        "clamp",
        "threshold",
        "neighbours",
        "max_rows_per_unit",
    ),
    "test": ("epsilon", "n", "alpha", "test", "clamp", "threshold", "neighbours", "max_rows_per_unit"),
    "detect": ("distance", "epsilon", "beta", "method", "false_alarm"),
    "fit": ("distance", "epsilon", "alpha", "beta", "bins", "method"),
}
UNKNOWN = "data.csv"


def python(kind: str, question: dict[str, Any]) -> str:
    """The call of the public function; a text the reader can run."""
    laws = [repr(question[name]) for name in ("null", "alternative") if question.get(name)]
    source = repr(next((question[name] for name in SOURCES if name in question), UNKNOWN))
    settings = [f"{name}={_value(question[name])}" for name in DESIGNS[kind] if name in question]
    running = [f"{name}={question[name]!r}" for name in RUNS if name in question]
    lines = ["import privatest as pt", ""]
    if "ledger" in question:
        lines.append(f"ledger = pt.Ledger({question['ledger']!r})")
        running.append("ledger=ledger")
    if kind == "plan":
        lines.append(f"pt.design({', '.join([*laws, *settings])})")
    elif kind == "test":
        lines.append(f"test = pt.design({', '.join([*laws, *settings])})")
        lines.append(f"test.run({', '.join([source, *running])})")
    else:
        function = "detect_change" if kind == "detect" else "goodness_of_fit"
        lines.append(f"pt.{function}({', '.join([source, *laws, *settings, *running])})")
    return "\n".join(lines)


def command(kind: str, question: dict[str, Any]) -> str:
    """The call on the command line."""
    words = ["privatest", kind]
    source = next((question[name] for name in SOURCES if name in question), UNKNOWN)
    if kind != "plan":
        words.append(str(source))
    for name in ("null", "alternative", *DESIGNS[kind], *RUNS, "ledger"):
        value = question.get(name)
        if value is None:
            continue
        words.append(f"--{name.replace('_', '-')}")
        words.append(",".join(map(_value, value)) if isinstance(value, list) else str(value))
    return shlex.join(words)


def document(design: Any) -> str | None:
    """The design as JSON, if it can be written so."""
    if design is None or not callable(getattr(design, "to_dict", None)):
        return None
    return json.dumps(design.to_dict(), indent=1, default=str)


def _value(value: Any) -> str:
    return f"({', '.join(map(repr, value))})" if isinstance(value, list) else repr(value)
