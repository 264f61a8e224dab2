"""Opens whatever the user passes as data, so that its records can be counted, summed, or scored in order.

Libraries are recognised by name and are not imported for that. Totals and scores are raw integers: they must not leave
the process except through a private mechanism.

:func:`read_as` says how texts are read (decimal commas, texts that mean missing, labels in any case), in the same way
for all records: no record decides how another one is read. :func:`open_for` opens the records for a mechanism, and
:func:`open_arms` opens those of two groups: two sources, or one source with a column of groups.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from privatest import numbers
from privatest.data_addresses import (
    AS_WRITTEN,
    OpenOnce,
    ReadAs,
    Reading,
    address_of,
    hard_links,
    reading_options,
    unwrapped,
)
from privatest.engines.arrays import (
    Progress,
    ReadRows,
    RowPart,
    RowStream,
    SequenceRecords,
    StreamedRecords,
    StreamRecords,
    arrow_backed,
    from_array,
    from_pandas,
    import_arrow,
    line_records,
    memory_of_arrow,
    pandas_keys,
    stream_of_arrow,
    with_reading,
)
from privatest.engines.csv_fields import CsvText, LineFields
from privatest.engines.files import as_paths, check_no_paths, file_identity, files_of
from privatest.engines.key_columns import Keys, Selection, group_name, keys_of_array, keys_of_objects
from privatest.engines.orders_and_ties import OrderedRecords, check_order
from privatest.engines.records import (
    Column,
    LastReading,
    Need,
    Records,
    Tallied,
    check_promise,
    guarded,
    totals_of_blocks,
    unsupported_type,
)
from privatest.engines.rows_per_person import PlacedRecords, Turns, records_of_rows
from privatest.errors import InvalidData, InvalidInput, shown
from privatest.numbers import positive_integer
from privatest.scores import Score
from privatest.unanswered_questions import MORE_GROUPS, SEVERAL_COLUMNS, sentence

DELIMITERS = (",", ";", "\t", "|")


def read_as(
    data: Any,
    *,
    decimal: str = ".",
    missing: Sequence[str] = (),
    fold_case: bool = False,
    delimiter: str | None = None,
    text_order: bool = False,
) -> Any:
    """Return the same data with a rule for reading its texts. Every function that takes data takes the result.

    Args:
        data: whatever ``run`` takes; of data in a database or on a cluster only ``text_order`` may be given.
        decimal: "," if numbers are written 3,5; a field with a dot is then odd. With a comma, columns of text
            are read as numbers too.
        missing: texts that mean a missing record, such as "NA"; blanks around them are ignored.
        fold_case: whether a text is a label that differs from it only in case or in blanks around it.
        delimiter: what separates the fields of CSV files, such as ";"; None: a comma, and in ``.tsv`` files a tab.
        text_order: whether a column of text that is named as ``order`` is meant to sort as text. Otherwise such
            a column is refused in databases and on clusters, and elsewhere unless all of it is of one ISO form.

    A ledger's request includes how the data are read: the same data read in another way are another question.

    >>> import privatest as pt
    >>> data = pt.data.read_as(pt.data.read_lines(["0,5", "NA", "1,5"]), decimal=",", missing=["NA"])
    >>> pt.check(data, "normal(0, 1)", "normal(1, 1)").missing
    1
    """
    if not isinstance(decimal, str) or decimal not in (".", ","):
        raise InvalidInput(f"decimal={shown(decimal)} must be '.' or ','.")
    try:
        texts = (missing,) if isinstance(missing, str) else tuple(missing)
    except TypeError:
        raise InvalidInput(f"missing={shown(missing)} must be a list of texts, such as ['NA'].") from None
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput(f"missing holds {shown(text)}; name texts such as 'NA'. Empty ones are missing anyway.")
    for word, value in (("fold_case", fold_case), ("text_order", text_order)):
        if not isinstance(value, bool):
            raise InvalidInput(f"{word}={shown(value)} must be True or False.")
    if delimiter is not None and (not isinstance(delimiter, str) or delimiter not in DELIMITERS):
        raise InvalidInput(f"delimiter={shown(delimiter)} must be one of {', '.join(map(repr, DELIMITERS))}.")
    source = data.data if isinstance(data, OpenOnce) else data
    if isinstance(source, ReadAs):
        raise InvalidInput(
            "The data are to be read in a way that was said already. Say all of it at once: read_as(...)."
        )
    reading = Reading(decimal, tuple(sorted({text.strip() for text in texts})), fold_case, delimiter, text_order)
    return data if reading == AS_WRITTEN else ReadAs(source, reading)


def _read_in_this_way(records: Records, reading: Reading) -> Records:
    """Return records whose texts are read in this way; delimiter and order were handled when they were opened."""
    if replace(reading, delimiter=None, text_order=False) == AS_WRITTEN:
        return records
    if isinstance(records, Column):
        return with_reading(records, reading)
    if isinstance(records, StreamedRecords):
        return replace(records, stream=_stream(records.stream, reading), _last_reading=LastReading())
    raise InvalidData(
        "decimal, missing and fold_case are about texts that privatest reads itself; these records lie in a database "
        "or on a cluster. Leave them out, and convert the column there: name a view or a query that does it."
    )


def _stream(stream: RowStream, reading: Reading) -> RowStream:
    def read_in_this_way(read: ReadRows) -> ReadRows:
        return lambda progress: (part._replace(records=with_reading(part.records, reading)) for part in read(progress))

    sample = with_reading(stream.sample, reading)
    return replace(stream, runs=[read_in_this_way(read) for read in stream.runs], sample=sample)


def total(
    score: Score,
    source: Any,
    *,
    column: str | None = None,
    unit: str | None = None,
    max_rows_per_unit: int | None = None,
    order: str | None = None,
) -> int:
    """Return the exact sum of the scores of all records of a source; each unit is scaled to the rows that count.

    The integer is raw: it must not leave the process except through a test's noise.
    """
    records = open_source(source, column=column, unit=unit, max_rows_per_unit=max_rows_per_unit, order=order)
    records.check(score)
    return records.total(score)


UNOPENED = "The data cannot be opened: a library that was to do it, or an iterator of records, failed."


def open_source(
    source: Any,
    *,
    column: str | None = None,
    unit: str | None = None,
    max_rows_per_unit: int | None = None,
    order: str | None = None,
    group: str | None = None,
) -> Records:
    """Open a source and return its records. Only the structure of the source is read now.

    Args:
        source: array or list; column or table of pandas, polars or pyarrow, or any object of the Arrow protocol; path,
            glob or folder of Parquet, CSV or Feather files; Ibis table, DuckDB relation, ``"postgresql://...::table"``;
            Spark DataFrame; or records that are open already.
        column: the column of the records; may be left out if there is only one.
        unit: the column that says whose a row is; rows without a unit do not count.
        max_rows_per_unit: the most records that the rows of one unit count as; 1 if only ``unit`` is given.
        order: the column that gives the order; None: the order in the source.
        group: the column that divides the rows into groups; see ``Records.groups``.
    """
    rows = numbers.rows_of_a_unit(unit, max_rows_per_unit)
    selection = Selection(column, unit, None if unit is None else rows, order, group)
    for word, name in selection.by_word().items():
        if isinstance(name, list | tuple | set | np.ndarray):
            raise InvalidInput(f"{word}={shown(name)} must be the name of one column. {sentence(SEVERAL_COLUMNS)}")
    return guarded(UNOPENED, lambda: _open(source, selection))


def _open(source: Any, selection: Selection) -> Records:
    if isinstance(source, OpenOnce):
        key = (str(selection),)
        if key not in source.opened:
            source.opened[key] = _open(source.data, selection)
        return cast(Records, source.opened[key])
    if isinstance(source, ReadAs):
        return _read_in_this_way(_open_delimited(source, selection), source.reading)
    if issubclass(type(source), Records | Tallied):
        if selection.by_word():
            raise InvalidInput("The records are open already. Name column, unit, order and group when opening them.")
        return cast(Records, source)
    return _open_elsewhere(source, selection) or _in_memory(source, selection)


def _open_delimited(source: ReadAs, selection: Selection) -> Records:
    """Return the records of data before the rule for texts is applied, using the rule's delimiter."""
    delimiter, paths = source.reading.delimiter, as_paths(source.data)
    if delimiter is None:
        return _open(source.data, selection)
    if paths is None:
        raise InvalidInput(f"delimiter={delimiter!r} is about CSV files, and the data are none. Leave it out.")
    from privatest.engines.files import open_files  # what only an extra needs

    return open_files(paths, selection, delimiter)


def open_once(source: Any) -> OpenOnce:
    """Return the same source, opened once for all calls that take it.

    The headers of files are then read once, and a database or Spark is connected to once. Rows that arrive after the
    first call may not be seen: call it again for these.

    Args:
        source: whatever ``run`` takes.

    >>> import privatest as pt
    >>> data = pt.data.open_once([0.5, None, 2.0])
    >>> pt.data.count_records(data)
    3
    """
    return source if isinstance(source, OpenOnce) else OpenOnce(source)


def _open_elsewhere(source: Any, selection: Selection) -> Records | None:
    """Return the records of a database, a cluster or files; None for data in memory."""
    library = type(source).__module__.partition(".")[0]
    if library == "ibis":
        from privatest.engines.databases import open_table  # an extra

        return open_table(source, selection)
    if library == "pyspark":
        from privatest.engines.spark import open_frame  # an extra

        return open_frame(source, selection)
    if type(source).__name__ == "DuckDBPyRelation":
        from privatest.engines.databases import open_relation  # an extra

        return open_relation(source, selection)
    if isinstance(source, str) and "://" in source:
        from privatest.engines.databases import open_address  # an extra

        return open_address(source, selection)
    paths = as_paths(source)
    if paths is not None or isinstance(source, CsvText):
        from privatest.engines.files import open_files, open_text  # an extra

        return open_text(source, selection) if paths is None else open_files(paths, selection)
    return None


def _in_memory(source: Any, selection: Selection) -> Records:
    if type(source).__name__ == "LazyFrame":
        raise InvalidData("The data are a LazyFrame, which holds no records yet. Call its collect() first.")
    library = type(source).__module__.partition(".")[0]
    # The class is looked at, not the object: a pandas column shows its index as attributes.
    table = hasattr(type(source), "columns") or hasattr(type(source), "column_names")
    if library == "polars" and not table and str(getattr(source, "dtype", "")) == "Object":
        return _single(source.to_list())  # Arrow has no type for Python's objects; a list may hold them
    if not table and (library == "pyarrow" or (library not in ("pandas", "numpy") and _speaks_arrow(source))):
        source = _from_capsule(source)
        library, table = "pyarrow", hasattr(type(source), "column_names")
    if not table:
        for word, name in selection.by_word().items():
            raise InvalidData(f"{word}={shown(name)} was given, but the data are a single column. Leave it out.")
        return _single(source)
    names = [str(name) for name in (source.column_names if hasattr(source, "column_names") else source.columns)]
    wanted = selection.of(names, "the data")
    if library == "polars" and str(source.schema[wanted.record]) == "Object" and len(wanted.distinct()) == 1:
        return _single(source[wanted.record].to_list(), wanted.record)
    if library == "polars":
        source, library = _from_capsule(source.select(wanted.distinct())), "pyarrow"
    if library == "pyarrow":
        pa = import_arrow("An Arrow table")
        whole = pa.Table.from_batches([source]) if isinstance(source, pa.RecordBatch) else source
        chosen = [None if name is None else whole.column(name) for name in wanted]
        stream = stream_of_arrow(*chosen, column=wanted.record)
    else:
        result = _single(_pick(source, names, wanted.record), wanted.record)
        if all(name is None for name in wanted[1:]):
            return result
        columns = [None if name is None else _pick(source, names, name) for name in wanted[1:]]
        keys = [None if one is None else pandas_keys(one) for one in columns]
        stream = _with_keys(result, *keys)
    return records_of_rows(stream, selection.most, selection.order)


def _with_keys(records: Column | StreamRecords, *keys: Keys | None) -> RowStream:
    """Return the rows of a column together with their keys (unit, order, group)."""

    def read(progress: Progress) -> Iterator[RowPart]:
        columns = [records] if isinstance(records, Column) else (part.records for part in records.stream.parts())
        first = 0
        for result in columns:
            rows = slice(first, first + result.count())
            yield RowPart(result, *(None if one is None else one.at(rows) for one in keys))
            progress(result.count())
            first += result.count()

    sample = records.part(0, 0) if isinstance(records, Column) else records.stream.sample
    return RowStream([read], sample, rows=records.count())


def _pick(table: Any, names: list[str], name: str) -> Any:
    if hasattr(table, "iloc"):  # pandas: by position, because its labels need not be texts
        return table.iloc[:, names.index(name)]
    return table[name]


def _speaks_arrow(source: Any) -> bool:
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")


def _single(source: Any, column: str | None = None) -> Column | StreamRecords:
    """Return the records of a single column; ``column`` is its name if it has one."""
    if isinstance(source, (str, bytes, bytearray)):
        raise InvalidData(
            "The data are a single text, and no file is called so. Pass a list, an array or a column of records, or a "
            "path that ends with .parquet, .csv or .feather."
        )
    if isinstance(source, LineFields):
        return line_records(source)
    if isinstance(source, np.ndarray):
        if source.dtype.kind in "OU":
            check_no_paths(source.flat)
        return from_array(source)
    library = type(source).__module__.partition(".")[0]
    if library == "pyarrow":
        return _from_arrow(source)
    if library == "pandas":
        return from_pandas(source, column)
    if library == "polars":
        raise InvalidData(f"The data are a polars {type(source).__name__}. Pass one column: a Series.")
    if hasattr(source, "__array__"):
        return from_array(np.asarray(source))
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise InvalidData(f"The data are of type {type(source).__name__}. Pass an array, a list or a column.")
    if isinstance(source, io.IOBase):
        raise InvalidData(
            "The data are an open file. Pass its path, or its lines, a record each: pt.data.read_lines(file)."
        )
    values = source if isinstance(source, (list, tuple, range)) else list(source)
    check_no_paths(values)
    return SequenceRecords(values)


def _from_capsule(source: Any) -> Any:
    """Return the table or chunked column of an object of the Arrow protocol, without a copy."""
    pa = import_arrow(f"The data are a {type(source).__name__}, which")
    if type(source).__module__.partition(".")[0] == "pyarrow" and not isinstance(source, pa.RecordBatchReader):
        return source
    if "Object" in map(str, getattr(source, "dtypes", [getattr(source, "dtype", "")])):  # polars hands over pointers
        raise unsupported_type("the polars type Object", "Pass a list, or convert the column to numbers or texts")
    if not hasattr(source, "__arrow_c_stream__"):
        result = pa.array(source)
        return pa.table(pa.RecordBatch.from_struct_array(result)) if pa.types.is_struct(result.type) else result
    result = pa.chunked_array(source)
    return pa.Table.from_struct_array(result) if pa.types.is_struct(result.type) else result


def _from_arrow(values: Any) -> StreamRecords:
    pa = import_arrow("An Arrow column")
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        raise InvalidData(f"The data are a pyarrow {type(values).__name__}. Pass one column of it.")
    chunked = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    return StreamRecords(stream_of_arrow(chunked))


def count_records(source: Any, **where: Any) -> int:
    """Return the number of records that a test on this source counts.

    A unit with m rows counts as min(m, max_rows_per_unit) records.

    Args:
        source: as for :func:`privatest.data.open_once`.
        **where: ``column``, ``unit``, ``max_rows_per_unit`` and ``order``, as for ``run``.

    >>> count_records([0.5, None, 2.0])
    3
    """
    return open_source(source, **where).count()


def column_names(source: Any) -> list[str]:
    """Return the names of a file's columns, in order, for the holder of the data to choose from.

    It returns names only, never a value or a number of rows. If the first line of a text file looks like a record
    rather than like names (it has a number, a date, an empty field, one name twice, or a field of the rows below), it
    raises InvalidData and does not show the line.

    Args:
        source: path, glob or folder of Parquet, CSV or Feather files; the first file is read.
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
    """Open the records of a source for a mechanism. Raises InvalidData if they do not promise what it needs.

    Every mechanism gets its records here. With ``unit`` the rows of a person are joined to as many as the noise hides
    or, for a mechanism that uses their order, left in their places (:class:`PlacedRecords`). Records that are open
    already keep what they were opened with.
    """
    if need.ordered and isinstance(unwrapped(source), (set, frozenset)):
        raise _set_has_no_order()
    most = None if unit is None else need.rows
    records = open_source(source, column=column, unit=unit, max_rows_per_unit=most, order=order, group=group)
    if need.ordered and most is not None:
        records = records.in_places()
    check_promise(records.promise, need)
    if order is not None and not reading_options(source).text_order:
        check_order(order, records.order_forms())
    return records


def placed(turns: Turns, source: Any, *, column: str | None, unit: Any, order: str | None) -> PlacedRecords:
    """Open a batch of a stream, of whose units some rows were taken before.

    Args:
        turns: the rows that were taken.
        source: the batch.
        column, order: columns of the batch.
        unit: name of a column, or the unit of each record.
    """
    if isinstance(unit, str):
        result = open_for(Need(turns.most, ordered=True), source, column=column, unit=unit, order=order)
        if not isinstance(result, PlacedRecords):
            raise InvalidData(
                f"unit={shown(unit)} cannot be given here: whose rows of a stream have counted is remembered "
                "from batch to batch, and a database does not say whose they are. Read the batch into a data frame, or "
                "write it to a Parquet or CSV file, and pass that."
            )
        return PlacedRecords(result.stream, order, turns=turns)
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
    """Return :func:`totals_of_blocks` of a source, in its own order or in that of the column ``order``."""
    block = positive_integer(block=block)
    if start < 0:
        raise InvalidInput(f"start={start} must be at least 0.")
    if isinstance(unwrapped(source), (set, frozenset)):
        raise _set_has_no_order()
    return totals_of_blocks(open_source(source, column=column, order=order), score, block, start)


def _set_has_no_order() -> InvalidData:
    return InvalidData("The data are a set, which has no order. Pass a list, an array or a column in order of time.")


@dataclass(frozen=True)
class Arms:
    """The records of two groups, and the groups' names."""

    control: Records
    treatment: Records
    names: tuple[str, str] = ("control", "treatment")

    @property
    def both(self) -> tuple[Records, Records]:
        """Records of the control group and of the treated group."""
        return self.control, self.treatment

    def counts(self) -> tuple[int, int]:
        """Return the number of records of each group."""
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
    """Open the records of two groups for a mechanism.

    Args:
        need: what the mechanism assumes about the records of each group.
        source: a pair of sources, of the control group and of the treated one; or one source, with ``group``.
        group: the column that says in which group a row is. It is public and has two values; rows without a value are
            in neither group.
        control: the name of the control group; None: the first one in alphabetical order.
        column, unit: columns of the source, as for :func:`open_source`.
    """
    if isinstance(source, Arms):
        for one in source.both:
            check_promise(one.promise, need)
        return source
    if group is None:
        return _open_two(need, source, control, column, unit)
    if isinstance(source, tuple):
        raise InvalidInput(
            f"group={shown(group)} was given together with two sources. Give one table, or leave it out."
        )
    records = open_for(need, source, column=column, unit=unit, group=group)
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
    arms = None
    if not _identities(first) & _identities(second):
        arms = Arms(open_for(need, first, column=column), open_for(need, second, column=column))
    if arms is None or guarded(UNOPENED, lambda: _have_rows_in_common(first, second, column)):
        raise InvalidData(
            "Control and treatment are the same data, or have a file or memory in common: everybody in it would be in "
            "both groups, and pay for each group's count. Give the records of different people, or one table and "
            "group=. If these are different people, pass copies."
        )
    return arms


def _identities(source: Any) -> set[Any]:
    """Return what identifies a source (its files, its table, or the object), so that two can be compared."""
    data = unwrapped(source)
    if isinstance(data, str) and "://" in data:
        return {*address_of(data).parts, *hard_links(address_of(data).parts)}
    paths = as_paths(data)
    if paths is not None:
        return {file_identity(path) for path in files_of(paths)[1]}
    return set() if isinstance(data, tuple | range) else {id(data)}  # Python may keep two equal constants as one object


def _have_rows_in_common(first: Any, second: Any, column: str | None) -> bool:
    """Whether two sources that can be opened are one query, or lie in memory that they share.

    Equal values in two places are no sign of it, and what two different queries select nobody can tell.
    """
    one, other = unwrapped(first), unwrapped(second)
    libraries = {type(data).__module__.partition(".")[0] for data in (one, other)}
    if libraries == {"ibis"}:
        return bool(one.equals(other))
    if libraries == {"pyspark"}:
        return bool(one.sameSemantics(other))
    if {type(one).__name__, type(other).__name__} == {"DuckDBPyRelation"}:
        return bool(one.sql_query() == other.sql_query())
    memory = [(a, b) for a in _memory(one, column) for b in _memory(other, column)]
    return any(np.shares_memory(a, b) for a, b in memory)


def _memory(data: Any, column: str | None) -> list[np.ndarray[Any, Any]]:
    """Return the memory of the records of an array, a buffer or a data frame; of a list, nothing."""
    library = type(data).__module__.partition(".")[0]
    if isinstance(data, np.ndarray):
        return [data]
    if library not in ("pandas", "polars", "pyarrow"):
        try:
            return [np.asarray(data if hasattr(data, "__array__") else memoryview(data))]
        except TypeError:  # it is no buffer
            return []
    if hasattr(type(data), "columns") or hasattr(type(data), "column_names"):
        names = [str(name) for name in (data.column_names if library == "pyarrow" else data.columns)]
        data = _pick(data, names, Selection(column=column).of(names, "the data").record)
    if library == "pandas":
        if not arrow_backed(data.dtype):
            held = data.array
            plain = data.to_numpy() if isinstance(data.dtype, np.dtype) else getattr(held, "_data", None)
            result = getattr(held, "codes", plain)  # of categories
            return [result] if isinstance(result, np.ndarray) else []
        data = data.array.__arrow_array__()
    elif library == "polars":
        data = _from_capsule(data)
    return [memory_of_arrow(chunk) for chunk in getattr(data, "chunks", [data])]
