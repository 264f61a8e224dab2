"""Two groups of records: two sources, or one whose rows are told apart by a column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from privatest.addresses import named_by_user
from privatest.engines.frames import import_arrow
from privatest.engines.paths import as_paths
from privatest.engines.protocol import Need, Records
from privatest.engines.sources import open_for
from privatest.errors import InvalidData, InvalidInput, shown

__all__ = ["Arms", "open_arms"]

MOST_NAMES = 3
"""Names of groups that are looked at; a third one is one too many."""


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
        if control is not None:
            raise InvalidInput(f"control={shown(control)} was given without group=. Name the column of the groups.")
        if not isinstance(source, tuple) or len(source) != 2 or any(one is None for one in source):
            raise InvalidInput(
                "The data of two groups are missing: give a control and a treatment, or one table and group=, the "
                "column that names the group of a row."
            )
        first, second = (open_for(need, one, column=column, unit=unit) for one in source)
        return Arms(first, second)
    if isinstance(source, tuple):
        raise InvalidInput(
            f"group={shown(group)} was given together with two sources. Give one table, or leave it out."
        )
    names, part = _split(named_by_user(source), group)
    if len(names) != 2:
        told = "none" if not names else "one" if len(names) == 1 else "more than two"
        raise InvalidData(
            f"group={shown(group)} must name a column with two values, one for each group, and it has {told}"
            f"{': ' + ', '.join(map(shown, names)) if names else ''}. Keep the rows of two groups."
        )
    names = sorted(names, key=str)
    if control is not None:
        same = [name for name in names if name == control or str(name) == str(control)]
        if not same:
            raise InvalidInput(
                f"control={shown(control)} must be one of the groups, {shown(names[0])} or {shown(names[1])}."
            )
        names = [same[0], *(name for name in names if name != same[0])]
    opened = [open_for(need, part(name), column=column, unit=unit) for name in names]
    return Arms(opened[0], opened[1], (str(names[0]), str(names[1])))


def _split(source: Any, group: str) -> tuple[list[Any], Callable[[Any], Any]]:
    """The values of the column, at most ``MOST_NAMES`` of them, and a function from a value to its rows."""
    library = type(source).__module__.partition(".")[0]
    if library == "pyspark":
        _check_column(source.columns, group)
        found = source.select(group).where(source[group].isNotNull()).distinct().limit(MOST_NAMES).collect()
        return [row[0] for row in found], lambda name: source.where(source[group] == name)
    if isinstance(source, str) and "://" in source:
        raise InvalidInput(
            f"group={shown(group)} needs the table itself, not its address. Open it with Ibis, such as "
            "ibis.connect(address).table(name), or give both groups as tables or views of their own."
        )
    if library == "ibis":
        _check_column(source.columns, group)
        column = source[group]
        found = source.filter(column.notnull()).select(column).distinct().limit(MOST_NAMES).to_pyarrow()
        return found.column(0).to_pylist(), lambda name: source.filter(column == name)
    return _split_in_memory(source, group)


def _split_in_memory(source: Any, group: str) -> tuple[list[Any], Callable[[Any], Any]]:
    library = type(source).__module__.partition(".")[0]
    if library == "pandas" and hasattr(source, "columns"):
        _check_column(source.columns, group)
        keys = source[group]
        return list(keys.dropna().unique()[:MOST_NAMES]), lambda name: source[keys == name]
    if library == "polars" and hasattr(source, "columns"):
        _check_column(source.columns, group)
        keys = source[group]
        return keys.drop_nulls().unique()[:MOST_NAMES].to_list(), lambda name: source.filter(keys == name)
    pa = import_arrow("Groups that a column tells apart")
    import pyarrow.compute as pc  # an extra

    paths = as_paths(source)
    if paths is not None:
        table = _table_of_files(paths)
    elif type(source).__name__ == "DuckDBPyRelation":
        table = source.to_arrow_table()
    elif isinstance(source, pa.Table | pa.RecordBatch):
        table = source
    elif hasattr(source, "__arrow_c_stream__"):
        table = pa.table(source)
    else:
        raise InvalidData(
            f"group={shown(group)} was given, but the data, a {type(source).__name__}, are no table. Give a data "
            "frame, a file, a table of a database, or both groups apart."
        )
    _check_column(table.schema.names, group)
    keys = table.column(group)
    names = pc.unique(pc.drop_null(keys)).to_pylist()[:MOST_NAMES]
    return names, lambda name: table.filter(pc.equal(keys, pa.scalar(name, keys.type)))


def _table_of_files(paths: Any) -> Any:
    """The whole table that files hold: groups are told apart in memory."""
    from pyarrow import dataset

    texts = [str(path) for path in (paths if isinstance(paths, list | tuple) else [paths])]
    endings = {text.rpartition(".")[2].lower() for text in texts}
    kinds = {"parquet": "parquet", "csv": "csv", "feather": "feather", "arrow": "feather"}
    if len(endings) != 1 or not endings <= kinds.keys():
        raise InvalidData("group= reads Parquet, Feather and plain CSV files only. Give both groups apart.")
    return dataset.dataset(texts, format=kinds[endings.pop()]).to_table()


def _check_column(names: Any, group: str) -> None:
    if group not in list(names):
        raise InvalidData(f"group={shown(group)} must be one of the columns: {', '.join(map(str, names))}.")
