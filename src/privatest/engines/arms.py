"""Two groups of records: two sources, or one whose rows are told apart by a column."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from privatest.addresses import OpenOnce, ReadAs
from privatest.engines.arrays import import_arrow
from privatest.engines.csv_files import read_lines
from privatest.engines.paths import as_paths, choose, format_of
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
            raise InvalidInput(f"control_name={shown(control)} needs group=. Name the column of the groups.")
        if not isinstance(source, tuple) or len(source) != 2 or any(one is None for one in source):
            raise InvalidInput(
                "The data of two groups are missing: give a control and a treatment, or one table and group=, the "
                "column that names the group of a row."
            )
        if unit is not None:
            raise InvalidInput(
                f"unit={shown(unit)} needs one table and group=: whether somebody is in both groups is looked at "
                "there. Without unit every row is a person of its own."
            )
        first, second = (open_for(need, one, column=column) for one in source)
        return Arms(first, second)
    if isinstance(source, tuple):
        raise InvalidInput(
            f"group={shown(group)} was given together with two sources. Give one table, or leave it out."
        )
    told = source.data if isinstance(source, OpenOnce) else source
    if isinstance(told, ReadAs):
        raise InvalidInput(f"group={shown(group)} cannot be told how texts are read. Give both groups apart.")
    paths = as_paths(told)
    if paths is not None and {format_of(path) for path in paths} == {"CSV"}:
        names, part, _ = _split_csv(paths, group, column, unit)
        column = None
    else:
        names, part, columns = _split(told, group, unit)
        others = [name for name in columns if name not in (group, unit)]
        if column is None and len(others) == 1:
            column = str(others[0])
    if len(names) != 2:
        many = "none" if not names else "one" if len(names) == 1 else "more than two"
        raise InvalidData(
            f"group={shown(group)} must name a column with two values, one for each group, and it has {many}. Keep the "
            "rows of two groups."
        )
    names = sorted(names, key=str)
    if str(names[0]) == str(names[1]):
        raise InvalidData(f"group={shown(group)} has two values of one name, {shown(names[0])}. Write them as texts.")
    if control is not None:
        same = [name for name in names if name == control or str(name) == str(control)]
        if not same:
            either = f"{shown(names[0])} or {shown(names[1])}"
            raise InvalidInput(f"control_name={shown(control)} must be one of the groups, {either}.")
        names = [same[0], *(name for name in names if name != same[0])]
    opened = [open_for(need, part(name), column=column, unit=unit) for name in names]
    return Arms(opened[0], opened[1], (str(names[0]), str(names[1])))


Split = tuple[list[Any], Callable[[Any], Any], list[Any]]
"""The values of the column of groups, at most ``MOST_NAMES`` of them, a function from a value to its rows, and the
names of all columns."""


def _split(source: Any, group: str, unit: str | None) -> Split:
    library = type(source).__module__.partition(".")[0]
    if isinstance(source, str) and "://" in source:
        raise InvalidInput(
            f"group={shown(group)} needs the table itself, not its address. Open it with Ibis, such as "
            "ibis.connect(address).table(name), or give both groups as tables or views of their own."
        )
    if library == "pyspark":
        return _split_spark(source, group, unit)
    if library == "ibis":
        return _split_ibis(source, group, unit)
    if library == "pandas" and hasattr(source, "columns"):
        _check_columns(source.columns, group, unit)
        keys = source[group]
        if unit is not None:
            pairs = source[[unit, group]].dropna().drop_duplicates()
            _check_apart(bool(pairs[unit].duplicated().any()), unit)
        return list(keys.dropna().unique()[:MOST_NAMES]), lambda name: source[keys == name], list(source.columns)
    if type(source).__name__ == "LazyFrame":
        raise InvalidData("The data are a LazyFrame, which holds no records yet. Call its collect() first.")
    if library == "polars" and hasattr(source, "columns"):
        _check_columns(source.columns, group, unit)
        keys = source[group]
        if keys.dtype.is_float():
            keys = keys.fill_nan(None)  # no name
            source = source.with_columns(keys)
        if unit is not None:
            pairs = source.select([unit, group]).drop_nulls().unique()
            _check_apart(bool(pairs[unit].is_duplicated().any()), unit)
        known = keys.drop_nulls().unique()[:MOST_NAMES].to_list()
        return known, lambda name: source.filter(keys == name), list(source.columns)
    return _split_arrow(source, group, unit)


def _split_spark(source: Any, group: str, unit: str | None) -> Split:
    _check_columns(source.columns, group, unit)
    known = source.where(source[group].isNotNull())
    if unit is not None:
        pairs = known.where(known[unit].isNotNull()).select(unit, group).distinct()
        _check_apart(bool(pairs.groupBy(unit).count().where("count > 1").limit(1).collect()), unit)
    found = known.select(group).distinct().limit(MOST_NAMES).collect()
    return [row[0] for row in found], lambda name: source.where(source[group] == name), list(source.columns)


def _split_ibis(source: Any, group: str, unit: str | None) -> Split:
    _check_columns(source.columns, group, unit)
    known = source.filter(source[group].notnull())
    if source[group].type().is_floating():
        known = known.filter(~known[group].isnan())
    if unit is not None:
        people = known.filter(known[unit].notnull()).group_by(unit).agg(groups=known[group].nunique())
        _check_apart(bool(people.filter(people.groups > 1).count().to_pyarrow().as_py()), unit)
    found = known.select(known[group]).distinct().limit(MOST_NAMES).to_pyarrow()
    return found.column(0).to_pylist(), lambda name: source.filter(source[group] == name), list(source.columns)


def _split_arrow(source: Any, group: str, unit: str | None) -> Split:
    """Tables that speak Arrow, and files, which are read into memory."""
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
    _check_columns(table.schema.names, group, unit)
    keys = table.column(group)
    if pa.types.is_floating(keys.type):
        keys = pc.if_else(pc.is_nan(keys), None, keys)  # no name
        table = table.set_column(table.schema.names.index(group), group, keys)
    if unit is not None:
        people = table.select([unit, group]).drop_null().group_by(unit).aggregate([(group, "count_distinct")])
        _check_apart(len(people) > 0 and pc.max(people.column(f"{group}_count_distinct")).as_py() > 1, unit)
    names = pc.unique(pc.drop_null(keys)).to_pylist()[:MOST_NAMES]
    return names, lambda name: table.filter(pc.equal(keys, pa.scalar(name, keys.type))), table.schema.names


def _table_of_files(paths: list[str]) -> Any:
    """The whole table that files hold, whose types do not depend on what any row holds."""
    from pyarrow import dataset  # an extra

    kinds = {format_of(path) for path in paths}
    if len(kinds) != 1 or not kinds <= {"Parquet", "Feather"}:
        raise InvalidData("group= reads Parquet, Feather and CSV files, of one kind. Give both groups apart.")
    return dataset.dataset(paths, format=str(kinds.pop()).lower()).to_table()


def _split_csv(paths: list[str], group: str, column: str | None, unit: str | None) -> Split:
    """Fields as they stand in the files: what one of them holds decides nothing but its own score."""
    if unit is not None:
        raise InvalidInput(
            f"unit={shown(unit)} together with group= needs a Parquet file or a data frame, not a CSV file."
        )
    parts: dict[str, list[str]] = {}
    for path in paths:
        if not os.path.exists(path):
            raise InvalidData(f"No file {shown(path)}.")
        if not path.lower().endswith((".csv", ".tsv")) or not os.path.isfile(path):
            raise InvalidData(f"group= reads plain CSV files, and {shown(path)} is none. Give both groups apart.")
        with open(path, newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
            rows = csv.reader(file, delimiter="\t" if path.lower().endswith(".tsv") else ",")
            names = next(rows, [])
            chosen, key_name, _ = choose(names, column, group, None, repr(path), apart=False, first_key="group")
            key, value = names.index(str(key_name)), names.index(chosen)
            for row in rows:
                arm = row[key].strip() if key < len(row) else ""
                if arm:
                    parts.setdefault(arm, []).append(row[value] if value < len(row) else "")
    return list(parts)[:MOST_NAMES], lambda name: read_lines(parts[name]), []


def _check_apart(both: bool, unit: str) -> None:
    if both:
        raise InvalidData(
            f"Somebody of the column unit={shown(unit)} has rows in both groups, and would pay for each group's count. "
            "Keep the rows of one group for each."
        )


def _check_columns(names: Any, group: str, unit: str | None) -> None:
    for word, name in (("group", group), ("unit", unit)):
        if name is not None and name not in list(names):
            raise InvalidData(f"{word}={shown(name)} must be one of the columns: {', '.join(map(str, names))}.")
