"""Write docs/cli.md: the reference of all commands, from what they say of themselves.

    python docs/make_cli.py

A test compares the page with what this makes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from privatest.cli.commands import COMMANDS, command

PAGE = Path(__file__).with_name("cli.md")

HEAD = """# The command line

`privatest` and `python -m privatest` are the same. Options have the names of the Python API's arguments. This page is
made by `python docs/make_cli.py`; `privatest COMMAND --help` says the same, and
`privatest --install-completion` teaches them to your shell.

Exit codes: 0 done, 2 bad input (one or two lines on standard error, nothing charged), 3 over budget (nothing
charged), 4 failed after the charge (standard error says how to get the answer, which is not charged again), 130
interrupted. A decision is no exit code, unless `--exit-code` asks for it: then 1 stands for
"alternative" or "changed", 0 for "null" or "no change".

Laws are written `normal(0, 1)`, `bernoulli(0.3)`, `poisson(4)`, `categorical(yes=0.2, no=0.8)`, `mixture(0.3,
normal(0, 1), 0.7, normal(2, 1))` and so on; they are parsed, never evaluated. `--problem` reads any options from a TOML
or JSON file, where a law may also be a table of label = probability or a list of probabilities; the command line wins
over the file, a command takes from it what it knows, and `--save` writes one:

```toml
null = "normal(0, 1)"
alternative = "normal(0.5, 1)"
epsilon = 0.5
column = "value"
```
"""


def page() -> str:
    """The whole of it."""
    return "\n".join([HEAD, *(line for place, name, function in COMMANDS for line in _section(place, name, function))])


def _section(place: str | None, name: str, function: Callable[..., None]) -> Iterator[str]:
    group = command() if place is None else command().commands[place]
    title = f"privatest {name}" if place is None else f"privatest {place} {name}"
    about, _, example = inspect.cleandoc(function.__doc__ or "").partition("\b\nExample:\n")
    yield f"## {title}\n\n{about.strip()}\n\n```sh\n{inspect.cleandoc(example)}\n```\n"
    yield "| | |\n|---|---|"
    for parameter in group.commands[name].params:
        if parameter.name != "help":
            yield f"| `{_usage(parameter)}` | {_cell(parameter.help)} |"
    yield ""


def _usage(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"[{parameter.metavar}]"
    return f"{parameter.opts[0]} {'' if parameter.is_flag else parameter.metavar or 'TEXT'}".strip()


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
