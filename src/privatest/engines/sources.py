"""From whatever the user passes to records: opened, counted, summed, or scored in order.

Libraries are recognised by name, never imported for it. Totals and scores are raw integers: they must not leave the
process except through a private mechanism.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import numpy as np

from privatest import numbers
from privatest.addresses import OpenOnce, ReadAs, named_by_user
from privatest.engines.arrays import Part, Piece, Progress, SequenceRecords, Stream, StreamRecords, import_arrow
from privatest.engines.csv_files import LineRecords, Lines
from privatest.engines.frames import column_keys, from_array, from_pandas, from_polars, stream_of_arrow
from privatest.engines.keys import Keys, keys_of_array, keys_of_objects
from privatest.engines.paths import as_paths, choose
from privatest.engines.protocol import (
    Column,
    Need,
    Records,
    check_promise,
    totals_of_blocks,
)
from privatest.engines.reading import reread
from privatest.engines.unheard import asked
from privatest.engines.units import OrderedRecords, PlacedRecords, Turns, UnitRecords
from privatest.errors import InvalidData, InvalidInput, shown
from privatest.numbers import positive_integer
from privatest.questions import SEVERAL_COLUMNS, sentence
from privatest.scores import Score

__all__ = [
    "block_totals",
    "column_names",
    "count_records",
    "open_for",
    "open_once",
    "open_source",
    "placed",
    "total",
]


def total(
    score: Score,
    source: Any,
    *,
    column: str | None = None,
    unit: str | None = None,
    max_rows_per_unit: int | None = None,
    order: str | None = None,
) -> int:
    """The exact sum of the scores of all records of a source; of units, each scaled to the rows that it may contribute.

    The integer is raw: it must not leave the process except through a test's noise.
    """
    records = open_source(source, column=column, unit=unit, max_rows_per_unit=max_rows_per_unit, order=order)
    records.check(score)
    return records.total(score)


UNOPENED = "The data cannot be opened: a library that was to do it, or an iterator of records, failed."
KEYS = ("column", "unit", "order", "group")
"""What names a column."""
PLAIN = {list, tuple, range, set, frozenset, str, np.ndarray}
"""Sources that are not records yet, by their type alone."""


def open_source(
    source: Any,
    *,
    column: str | None = None,
    unit: str | None = None,
    max_rows_per_unit: int | None = None,
    order: str | None = None,
    group: str | None = None,
) -> Records:
    """The records of a source, wherever it lies; nothing is read yet but its structure.

    Args:
        source: array or list; pandas, polars or pyarrow column or table, or anything that speaks Arrow; path, glob or
            folder of Parquet, CSV or Feather files; Ibis table, DuckDB relation, ``"postgresql://...::table"``; Spark
            DataFrame; or records that are open already.
        column: which column holds the records; may be left out where there is one only.
        unit: the column that says whose a row is; rows without a unit are not counted.
        max_rows_per_unit: the most records that the rows of one unit count as, 1 if only ``unit`` is given.
        order: the column that gives the order; left out: the order the records lie in.
        group: the column that parts the rows into groups; the records are then :class:`Grouped`.
    """
    rows = numbers.rows_of_a_unit(unit, max_rows_per_unit)
    words = {
        "column": column,
        "unit": unit,
        "max_rows_per_unit": None if unit is None else rows,
        "order": order,
        "group": group,
    }
    for word in KEYS:
        if isinstance(words[word], list | tuple | set | np.ndarray):
            raise InvalidInput(
                f"{word}={shown(words[word])} must be the name of one column. {sentence(SEVERAL_COLUMNS)}"
            )
    return asked(UNOPENED, lambda: _open(source, words))


def _open(source: Any, words: dict[str, Any]) -> Records:
    if isinstance(source, OpenOnce):
        known = tuple(None if word is None else str(word) for word in words.values())
        if known not in source.opened:
            source.opened[known] = _open(source.data, words)
        return cast(Records, source.opened[known])
    if isinstance(source, ReadAs):
        return reread(_open_delimited(source, words), source.reading)
    # First, for a Spark column claims to have every attribute, those of records among them.
    elsewhere = _open_elsewhere(source, words)
    if elsewhere is not None:
        return elsewhere
    # To look at a protocol takes longer than to sum a short list.
    if type(source) not in PLAIN and isinstance(source, Records):
        if any(words[word] is not None for word in KEYS):
            raise InvalidInput("The records are open already. Name column, unit, order and group when opening them.")
        return source
    return _in_memory(source, words)


def _open_delimited(source: ReadAs, words: dict[str, Any]) -> Records:
    """The records of data that are to be read in a way of their own, their fields separated as was said."""
    delimiter, paths = source.reading.delimiter, as_paths(source.data)
    if delimiter is None:
        return _open(source.data, words)
    if paths is None:
        raise InvalidInput(f"delimiter={delimiter!r} is about CSV files, and the data are none. Leave it out.")
    from privatest.engines.files import open_files  # what only an extra needs

    return open_files(paths, **words, delimiter=delimiter)


def open_once(source: Any) -> OpenOnce:
    """The same source, opened once for all calls that are given this: it is counted and then summed on one reading.

    A CSV file is opened once, and read once if the columns that are asked for fit 16 MiB; a database or Spark is
    connected to once. Rows that arrive after the first call may not be seen: make another one for these.

    Args:
        source: whatever ``run`` takes.

    >>> import privatest as pt
    >>> data = pt.open_once([0.5, None, 2.0])
    >>> pt.count_records(data)
    3
    """
    return source if isinstance(source, OpenOnce) else OpenOnce(source)


def _open_elsewhere(source: Any, words: dict[str, Any]) -> Records | None:
    """Records in a database, on a cluster or in files; None for what lies in memory."""
    library = type(source).__module__.partition(".")[0]
    if library == "ibis":
        from privatest.engines.sql import open_table  # an extra

        return open_table(source, **words)
    if library == "pyspark":
        from privatest.engines.spark import open_frame  # an extra

        return open_frame(source, **words)
    if type(source).__name__ == "DuckDBPyRelation":
        from privatest.engines.sql import open_relation  # an extra

        return open_relation(source, **words)
    if isinstance(source, str) and "://" in source:
        from privatest.engines.sql import open_address  # an extra

        return open_address(source, **words)
    paths = as_paths(source)
    if paths is not None:
        from privatest.engines.files import open_files  # an extra

        return open_files(paths, **words)
    return None


def _in_memory(source: Any, words: dict[str, Any]) -> Records:
    if type(source).__name__ == "LazyFrame":
        raise InvalidData("The data are a LazyFrame, which holds no records yet. Call its collect() first.")
    library = type(source).__module__.partition(".")[0]
    # Of the type, not of the object: a pandas column shows its index as attributes.
    table = hasattr(type(source), "columns") or hasattr(type(source), "column_names")
    if not table and (library == "pyarrow" or (library not in ("pandas", "polars", "numpy") and _speaks_arrow(source))):
        source = _from_capsule(source)
        library, table = "pyarrow", hasattr(type(source), "column_names")
    if not table:
        for word in KEYS:
            if words[word] is not None:
                named = f"{word}={shown(words[word])}"
                raise InvalidData(f"{named} was given, but the data are a single column. Leave it out.")
        return _single(source)
    names = [str(name) for name in (source.column_names if hasattr(source, "column_names") else source.columns)]
    order, most = words["order"], words["max_rows_per_unit"]
    wanted = choose(names, words["column"], words["unit"], order, "the data", group=words["group"])
    if library == "pyarrow":
        pa = import_arrow("An Arrow table")
        whole = pa.Table.from_batches([source]) if isinstance(source, pa.RecordBatch) else source
        chosen = [None if name is None else whole.column(name) for name in wanted]
        stream = stream_of_arrow(*chosen, column=wanted.records)
    else:
        found = _single(_pick(source, names, wanted.records), wanted.records)
        if all(name is None for name in wanted[1:]):
            return found
        keys = [None if name is None else column_keys(_pick(source, names, name)) for name in wanted[1:]]
        stream = _with_keys(found, *keys)
    if most is not None:
        return UnitRecords(stream, most)
    return StreamRecords(stream) if order is None else OrderedRecords(stream, order)


def _with_keys(records: Column | StreamRecords, *keys: Keys | None) -> Stream:
    """The rows of a column together with their keys (unit, order, group), as one piece."""

    def read(progress: Progress) -> Iterator[Part]:
        columns = [records] if isinstance(records, Column) else (part.records for part in records.stream.parts())
        first = 0
        for found in columns:
            rows = slice(first, first + found.count())
            yield Part(found, *(None if one is None else one.at(rows) for one in keys))
            progress(found.count())
            first += found.count()

    sample = records.part(0, 0) if isinstance(records, Column) else records.stream.sample
    return Stream([Piece(read)], sample, rows=records.count())


def _pick(table: Any, names: list[str], name: str) -> Any:
    if hasattr(table, "iloc"):  # pandas: by position, so that labels that are not text work too
        return table.iloc[:, names.index(name)]
    return table[name]


def _speaks_arrow(source: Any) -> bool:
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")


def _single(source: Any, column: str | None = None) -> Column | StreamRecords:
    """The records of a single column, of this name if it has one."""
    if isinstance(source, (str, bytes, bytearray)):
        raise InvalidData(
            "The data are a single text, and no file is called so. Pass a list, an array or a column of records, or a "
            "path that ends with .parquet, .csv or .feather."
        )
    if isinstance(source, Lines):
        return LineRecords(source.fields)
    if isinstance(source, np.ndarray):
        return from_array(source)
    library = type(source).__module__.partition(".")[0]
    if library == "pyarrow":
        return _from_arrow(source)
    if library == "polars":
        return from_polars(source, column)
    if library == "pandas":
        return from_pandas(source, column)
    if hasattr(source, "__array__"):
        return from_array(np.asarray(source))
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise InvalidData(f"The data are of type {type(source).__name__}. Pass an array, a list or a column.")
    return SequenceRecords(source if isinstance(source, (list, tuple, range)) else list(source))


def _from_capsule(source: Any) -> Any:
    """What an object that speaks Arrow hands over: a table, or a chunked column. Nothing is copied."""
    pa = import_arrow(f"The data are a {type(source).__name__}, which")
    if type(source).__module__.partition(".")[0] == "pyarrow" and not isinstance(source, pa.RecordBatchReader):
        return source
    if not hasattr(source, "__arrow_c_stream__"):
        found = pa.array(source)
        return pa.table(pa.RecordBatch.from_struct_array(found)) if pa.types.is_struct(found.type) else found
    found = pa.chunked_array(source)
    return pa.Table.from_struct_array(found) if pa.types.is_struct(found.type) else found


def _from_arrow(values: Any) -> StreamRecords:
    pa = import_arrow("An Arrow column")
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        raise InvalidData(f"The data are a pyarrow {type(values).__name__}. Pass one column of it.")
    chunked = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    return StreamRecords(stream_of_arrow(chunked))


def count_records(source: Any, **where: Any) -> int:
    """The number of records that a test on this source sees.

    ``where`` says where they lie, as for ``run``: ``column``, ``unit``, ``max_rows_per_unit``, ``order``. A unit with m
    rows counts as min(m, max_rows_per_unit) records.

    Args:
        source: as for :func:`privatest.open_once`.
        **where: ``column``, ``unit``, ``max_rows_per_unit``, ``order``.

    >>> count_records([0.5, None, 2.0])
    3
    """
    return open_source(source, **where).count()


def column_names(source: Any) -> list[str]:
    """The names of a file's columns, in its order: for whoever holds the data, to choose from.

    Names only, never a value or a number of rows. The first line of a text file that looks like a record rather than
    names (a number, a date, something empty, twice the same, or what the rows below hold) is refused and not shown.

    Args:
        source: path, glob or folder of Parquet, CSV or Feather files; of several the first one's.
    """
    paths = as_paths(source)
    if paths is None:
        raise InvalidInput("source must be the path of a file whose columns have names.")
    from privatest.engines.files import names_in  # what only an extra needs

    return names_in(paths)


def open_for(
    need: Need,
    source: Any,
    *,
    column: str | None = None,
    unit: str | None = None,
    order: str | None = None,
    group: str | None = None,
) -> Records:
    """The records of a source for a mechanism: they promise what it needs, or are refused.

    Every mechanism gets its records here. With ``unit`` those of a person are joined to as many as it hides, or, where
    it looks at their order, left in their places (:class:`PlacedRecords`); records that are open already keep what they
    were opened with.
    """
    if need.ordered and isinstance(named_by_user(source), (set, frozenset)):
        raise _no_order()
    most = None if unit is None else need.rows
    records = open_source(source, column=column, unit=unit, max_rows_per_unit=most, order=order, group=group)
    if need.ordered and most is not None:
        if isinstance(records, UnitRecords):
            records = PlacedRecords(records.stream, order, turns=Turns(most))
        elif in_places := getattr(records, "in_places", None):  # a database's
            records = in_places()
        else:
            raise InvalidData(
                f"unit={shown(unit)} cannot be given here together with a question about the order of records: a "
                "cluster would have to say which of a person's rows came first. Write the rows to a Parquet or CSV "
                "file in order of time, and pass that."
            )
    check_promise(records.promise, need)
    return records


def placed(turns: Turns, source: Any, *, column: str | None, unit: Any, order: str | None) -> PlacedRecords:
    """A batch of a stream whose units had some turns before; ``unit`` names a column, or says whose each record is."""
    if isinstance(unit, str):
        found = open_for(Need(turns.most, ordered=True), source, column=column, unit=unit, order=order)
        if not isinstance(found, PlacedRecords):
            raise InvalidData(
                f"unit={shown(unit)} cannot be given here: whose rows of a stream have counted is remembered "
                "from batch to batch, and a database does not say whose they are. Read the batch into a data frame, or "
                "write it to a Parquet or CSV file, and pass that."
            )
        return PlacedRecords(found.stream, order, turns=turns)
    if column is not None or order is not None:
        raise InvalidInput("unit must be the name of a column where column or order is one.")
    records = open_for(Need(ordered=True), source)
    if isinstance(unit, (bytes, Mapping)) or not isinstance(unit, Iterable):
        raise InvalidInput(f"unit={shown(unit)} must name a column, or list whose each record of the batch is.")
    owners = keys_of_array(unit) if isinstance(unit, np.ndarray) and unit.dtype.kind in "iuf" else keys_of_objects(unit)
    if not isinstance(records, Column | StreamRecords) or isinstance(records, OrderedRecords):
        raise InvalidInput("unit must be the name of a column where the batch is a table.")
    if len(owners.values) != records.count():
        raise InvalidInput(
            f"unit lists {len(owners.values)} persons for {records.count()} records. Give one for each record."
        )
    return PlacedRecords(_with_keys(records, owners), None, turns=turns)


def block_totals(
    score: Score, source: Any, block: int, column: str | None = None, *, order: str | None = None, start: int = 0
) -> list[int]:
    """:func:`totals_of_blocks` of a source, in its own order or in that of the column ``order``."""
    block = positive_integer(block=block)
    if start < 0:
        raise InvalidInput(f"start={start} must be at least 0.")
    if isinstance(named_by_user(source), (set, frozenset)):
        raise _no_order()
    return totals_of_blocks(open_source(source, column=column, order=order), score, block, start)


def _no_order() -> InvalidData:
    return InvalidData("The data are a set, which has no order. Pass a list, an array or a column in order of time.")
