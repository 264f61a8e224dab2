"""Names of a public module that are loaded when they are first used, so that importing the package is quick."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def homes(rooms: Mapping[str, str]) -> dict[str, str]:
    """Return the room of each name, from the names of each room.

    >>> homes({"power": "plan compare", "ledger": "Ledger"})
    {'plan': 'power', 'compare': 'power', 'Ledger': 'ledger'}
    """
    return {name: room for room, names in rooms.items() for name in names.split()}


def loader(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module: it loads a name from its room, explains its parameters and keeps it.

    A name whose room is the empty text is a public module itself.
    """

    def load(name: str) -> Any:
        if name not in homes:
            imported_next = module == "privatest" and find_spec(f"{module}.{name}") is not None
            if name.startswith("_") or imported_next:
                reason = ""
            else:
                reason = import_module("privatest.unanswered_questions").unanswered(name)
            raise AttributeError(f"module {module!r} has no attribute {name!r}" + (f". {reason}" if reason else ""))
        room = homes[name]
        value = getattr(import_module(f"privatest.{room}"), name) if room else import_module(f"privatest.{name}")
        vars(import_module(module))[name] = value
        import_module("privatest.parameter_help").explain(value)  # so that help() explains every parameter
        return value

    return load
