"""Two groups of records: two sources, or one whose rows are told apart by a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privatest.addresses import named_by_user, source_of
from privatest.engines.keys import group_name
from privatest.engines.paths import as_paths, file_identity, files_of
from privatest.engines.protocol import Grouped, Need, Records
from privatest.engines.sources import open_for
from privatest.errors import InvalidData, InvalidInput, shown
from privatest.questions import MORE_GROUPS, sentence

__all__ = ["Arms", "open_arms"]


@dataclass(frozen=True)
class Arms:
    """The records of two groups, and what the groups are called."""

    control: Records
    treatment: Records
    names: tuple[str, str] = ("control", "treatment")

    @property
    def both(self) -> tuple[Records, Records]:
        """The two."""
        return self.control, self.treatment

    def counts(self) -> tuple[int, int]:
        """How many records each group has."""
        return self.control.count(), self.treatment.count()


def open_arms(
    need: Need,
    source: Any,
    *,
    group: str | None = None,
    control: Any = None,
    column: str | None = None,
    unit: str | None = None,
) -> Arms:
    """The records of two groups, each for a mechanism that needs this much of a promise.

    Args:
        source: a pair of sources, of the control group and of the treated one; or one source, with ``group``.
        group: the column that says which group a row belongs to. It is public, and has two values; rows without one
            belong to neither.
        control: which of these is the control group; left out: the first in the order of their names.
    """
    if isinstance(source, Arms):
        return source
    if group is None:
        return _open_two(need, source, control, column, unit)
    if isinstance(source, tuple):
        raise InvalidInput(
            f"group={shown(group)} was given together with two sources. Give one table, or leave it out."
        )
    records = open_for(need, source, column=column, unit=unit, group=group)
    assert isinstance(records, Grouped)
    names = sorted(records.groups())
    if len(names) != 2:
        many = "none" if not names else "one" if len(names) == 1 else "more than two"
        raise InvalidData(
            f"group={shown(group)} must name a column with two values, one for each group, and it has {many}. "
            f"{sentence(MORE_GROUPS)}"
        )
    if control is not None:
        first = group_name(control)
        if first not in names:
            raise InvalidInput(
                f"control_name={shown(control)} must be one of the groups, {shown(names[0])} or {shown(names[1])}."
            )
        names.sort(key=lambda name: name != first)
    if records.is_shared():
        raise InvalidData(
            f"Somebody of the column unit={shown(unit)} has rows in both groups, and would pay for each group's count. "
            "Keep the rows of one group for each."
        )
    return Arms(records.only(names[0]), records.only(names[1]), (names[0], names[1]))


def _open_two(need: Need, source: Any, control: Any, column: str | None, unit: str | None) -> Arms:
    if control is not None:
        raise InvalidInput(f"control_name={shown(control)} needs group=. Name the column of the groups.")
    if not isinstance(source, tuple) or len(source) != 2 or any(one is None for one in source):
        raise InvalidInput(
            "The data of two groups are missing: give a control and a treatment, or one table and group=, the "
            "column that names the group of a row. More than two groups are compared two by two."
        )
    if unit is not None:
        raise InvalidInput(
            f"unit={shown(unit)} needs one table and group=: whether somebody is in both groups is looked at "
            "there. Without unit every row is a person of its own."
        )
    first, second = source
    if _places(first) & _places(second):
        raise InvalidData(
            "Control and treatment are the same data, or have a file in common: everybody in it would be in both "
            "groups, and pay for each group's count. Give the records of different people, or one table and group=."
        )
    return Arms(open_for(need, first, column=column), open_for(need, second, column=column))


def _places(source: Any) -> set[Any]:
    """What a source is known by, wherever it lies: files, tables, or the object itself."""
    data = named_by_user(source)
    if isinstance(data, str) and "://" in data:
        return set(source_of(data).parts)
    paths = as_paths(data)
    if paths is not None:
        return {file_identity(path) for path in files_of(paths)[1]}
    return set() if isinstance(data, tuple | range) else {id(data)}  # Python makes one of two constants
