"""Which columns of a table are meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privatest._validate import suggestion
from privatest.errors import InvalidData

__all__ = ["choose"]


def choose(
    names: Sequence[str], column: Any, unit: Any, order: Any, where: str, *, apart: bool = True
) -> tuple[str, str | None, str | None]:
    """The names of the records', the unit's and the order's column, each known to be there exactly once.

    Args:
        apart: whether names are kept apart from rows. Those of a text file are its first line, which is a record where
            somebody forgot to write them: no message may quote any of them.
    """
    keys = [None if name is None else _known(names, name, where, apart) for name in (unit, order)]
    if column is None:
        rest = [name for name in names if name not in keys]
        if len(rest) != 1:
            raise InvalidData(f"{_start(where)} have {len(rest)} columns. Say which one holds the records: column=...")
        column = rest[0]
    found = _known(names, column, where, apart)
    for word, key in zip(("unit", "order"), keys, strict=True):
        if key == found:
            raise InvalidData(
                f"{word}={key!r} is the column of the records too. Whose a record is, and when it was made, must not "
                "depend on what it holds: name another column."
            )
    return found, keys[0], keys[1]


def _known(names: Sequence[str], name: Any, where: str, apart: bool) -> str:
    times = list(names).count(str(name))
    if times == 0 and not apart:
        raise InvalidData(
            f"No column {name!r} in the first line of {where}, which must name the columns. That line is not shown "
            "here: in a file that lacks it, it is a record."
        )
    if times == 0:
        raise InvalidData(f"No column {name!r} in {where}.{suggestion(str(name), names)}")
    if times > 1:
        raise InvalidData(f"{times} columns of {where} are called {name!r}. Rename all but one.")
    return str(name)


def _start(where: str) -> str:
    return where[0].upper() + where[1:]
