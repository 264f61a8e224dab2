"""From whatever the user passes to records: opened, counted, summed, or scored in order.

Libraries are recognised by name, never imported for it. Totals and scores are raw integers: they must not leave the
process except through a private mechanism.

:func:`read_as` says how texts are read (decimal commas, texts that mean missing, labels in any case), for all records
alike: no record decides how another one is read. :func:`open_for` gives a mechanism the records it needs, and
:func:`open_arms` those of two groups: two sources, or one whose rows a column parts.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from privatest import numbers
from privatest.addresses import OpenOnce, ReadAs, Reading, named_by_user, said_of, source_of
from privatest.engines.arrays import (
    ArrayRecords,
    CodedRecords,
    Progress,
    ReadRows,
    RowPart,
    RowStream,
    SequenceRecords,
    StreamedRecords,
    StreamRecords,
    arrow_backed,
    column_keys,
    from_array,
    from_pandas,
    from_polars,
    import_arrow,
    memory_of_arrow,
    stream_of_arrow,
)
from privatest.engines.files import (
    FieldRecords,
    LineFields,
    LineRecords,
    as_paths,
    check_no_paths,
    field_number,
    file_identity,
    files_of,
    line_keys,
)
from privatest.engines.keys import Keys, Selection, group_name, keys_of_array, keys_of_objects
from privatest.engines.records import (
    Column,
    Declared,
    Grouped,
    Need,
    OrderTeller,
    Records,
    Seen,
    check_order,
    check_promise,
    each_guarded,
    folded_labels,
    guarded,
    totals_of_blocks,
)
from privatest.engines.units import OrderedRecords, PlacedRecords, Turns, UnitRecords, records_of
from privatest.errors import InvalidData, InvalidInput, shown
from privatest.numbers import positive_integer
from privatest.questions import MORE_GROUPS, SEVERAL_COLUMNS, sentence
from privatest.scores import Cells, LabelCells, Score

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
    """The same data, whose texts are to be read in this way; wherever data are taken, this is taken.

    Args:
        data: whatever ``run`` takes; if it lies in a database or on a cluster, for ``text_order`` alone.
        decimal: "," where numbers are written 3,5 (a dot then makes a field odd). Where it is given, columns of text
            are read as numbers, too.
        missing: texts that stand for a missing record, such as "NA"; blanks around them do not count.
        fold_case: whether text equals a label that differs from it in case, or by blanks around it, only.
        delimiter: what separates the fields of CSV files, such as ";"; left out: a comma, in ``.tsv`` files a tab.
        text_order: whether a column of text that is named as ``order`` is meant to sort as text. Left out, it is
            refused unless it is of one ISO form; of databases and clusters, too.

    It is part of a ledger's request: the same data read in another way are another question.

    >>> import privatest as pt
    >>> data = pt.read_as(pt.read_lines(["0,5", "NA", "1,5"]), decimal=",", missing=["NA"])
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
    return data if reading == Reading() else ReadAs(source, reading)


def reread(records: Records, reading: Reading) -> Records:
    """Records whose texts are read in this way; what separates fields, and their order, were settled before."""
    if replace(reading, delimiter=None, text_order=False) == Reading():
        return records
    if isinstance(records, Column):
        return _column(records, reading)
    if isinstance(records, StreamedRecords):
        return replace(records, stream=_stream(records.stream, reading), _seen=Seen())
    raise InvalidData(
        "decimal, missing and fold_case are about texts that privatest reads itself; these records lie in a database "
        "or on a cluster. Leave them out, and convert the column there: name a view or a query that does it."
    )


def _column(records: Column, reading: Reading) -> Column:
    return records if isinstance(records, ArrayRecords | TextRecords) else TextRecords(records, reading)


def _stream(stream: RowStream, reading: Reading) -> RowStream:
    def reread(read: ReadRows) -> ReadRows:
        return lambda progress: (part._replace(records=_column(part.records, reading)) for part in read(progress))

    return replace(stream, runs=[reread(read) for read in stream.runs], sample=_column(stream.sample, reading))


Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TextRecords(Column):
    """Records that are text, or may be, read in a way of their own."""

    plain: Column
    reading: Reading

    @property
    def declared(self) -> Declared:
        found = replace(self.plain.declared, folded=self.reading.fold_case)
        # Texts with a decimal comma are numbers by what was said, whatever their type.
        return replace(found, content="anything") if found.content == "text" and self.reading.decimal != "." else found

    def count(self) -> int:
        return self.plain.count()

    def part(self, first: int, last: int) -> TextRecords:
        return TextRecords(self.plain.part(first, last), self.reading)

    def index(self, cells: Cells) -> npt.NDArray[np.intp]:
        codes, distinct = coded(self.plain)
        # Missing texts are None from here on; other objects are read as they always are.
        kept = [None if type(one) is str and one.strip() in self.reading.missing else one for one in distinct]
        found = SequenceRecords(kept).index(cells)
        rest = cells.rest if isinstance(cells, LabelCells) else cells.count
        if self.reading.fold_case and isinstance(cells, LabelCells):
            folded = folded_labels(cells)
            near = (folded.get(fold(one), rest) if type(one) is str else rest for one in kept)
            found = np.minimum(found, np.fromiter(near, dtype=np.intp, count=len(kept)), where=found == rest, out=found)
        if is_loose(self):
            mark = self.reading.decimal
            numbers = np.array(
                [number_of(one, mark) if type(one) is str else math.nan for one in kept], dtype=np.float64
            )
            as_numbers = cells.index(numbers)
            found = np.where((found < rest) | (as_numbers == cells.count), found, as_numbers)
        return np.append(found, cells.count)[codes]


def is_loose(records: Column) -> bool:
    """Whether texts may be numbers: fields always, other texts where a decimal mark was said."""
    if isinstance(records, TextRecords):
        return records.reading.decimal != "." or is_loose(records.plain)
    return isinstance(records, FieldRecords | LineRecords)


def fold(text: str) -> str:
    """The text as it is compared where case and blanks do not count."""
    return text.strip().casefold()


def number_of(text: str, decimal: str = ".") -> float:
    """The number that a text stands for, with this decimal mark; NaN for anything else.

    >>> number_of("1,5", ","), number_of("1.5", ","), number_of("-3", ",")
    (1.5, nan, -3.0)
    """
    if decimal != ".":
        text = "." if "." in text else text.replace(decimal, ".")
    return field_number(text.encode("utf-8", "surrogatepass"))


def coded(records: Column) -> tuple[Codes, Sequence[Any]]:
    """Records that are not numbers by type as positions in a list of values; -1 for a missing one."""
    if isinstance(records, TextRecords):
        return coded(records.plain)
    if isinstance(records, FieldRecords):
        codes, fields = records.encoded()
        return codes, [_decoded(field) for field in fields]
    if isinstance(records, LineRecords):
        known = {field: place for place, field in enumerate(sorted(set(records.values) - {None}))}  # type: ignore[type-var]
        places = [known.get(field, -1) for field in records.values]
        return np.array(places, dtype=np.int64), [_decoded(field) for field in known if field is not None]
    if isinstance(records, CodedRecords):
        return np.asarray(records.codes, dtype=np.int64), records.distinct
    assert isinstance(records, SequenceRecords)
    return np.arange(len(records.values), dtype=np.int64), records.values


def _decoded(field: bytes) -> str | bytes:
    try:
        return field.decode()
    except UnicodeDecodeError:
        return field


def portions(records: Records) -> Iterator[Column]:
    """All records, some at a time, as columns in memory: raw, for the holder of the data only; units are not cut."""
    if isinstance(records, Column):
        yield from records.parts()
    elif isinstance(records, StreamedRecords):
        yield from each_guarded(records.complaint, lambda: (part.records for part in records.stream.parts()))
    else:
        yield from records.portions()  # type: ignore[attr-defined]


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
    selection = Selection(column, unit, None if unit is None else rows, order, group)
    for word, name in selection.by_word().items():
        if isinstance(name, list | tuple | set | np.ndarray):
            raise InvalidInput(f"{word}={shown(name)} must be the name of one column. {sentence(SEVERAL_COLUMNS)}")
    return guarded(UNOPENED, lambda: _open(source, selection))


def _open(source: Any, selection: Selection) -> Records:
    if isinstance(source, OpenOnce):
        known = (str(selection),)
        if known not in source.opened:
            source.opened[known] = _open(source.data, selection)
        return cast(Records, source.opened[known])
    if isinstance(source, ReadAs):
        return reread(_open_delimited(source, selection), source.reading)
    # First, for a Spark column claims to have every attribute, those of records among them.
    elsewhere = _open_elsewhere(source, selection)
    if elsewhere is not None:
        return elsewhere
    # To look at a protocol takes longer than to sum a short list.
    if type(source) not in PLAIN and isinstance(source, Records):
        if selection.by_word():
            raise InvalidInput("The records are open already. Name column, unit, order and group when opening them.")
        return source
    return _in_memory(source, selection)


def _open_delimited(source: ReadAs, selection: Selection) -> Records:
    """The records of data before their texts are reread, by the delimiter that the reading names."""
    delimiter, paths = source.reading.delimiter, as_paths(source.data)
    if delimiter is None:
        return _open(source.data, selection)
    if paths is None:
        raise InvalidInput(f"delimiter={delimiter!r} is about CSV files, and the data are none. Leave it out.")
    from privatest.engines.files import open_files  # what only an extra needs

    return open_files(paths, selection, delimiter)


def open_once(source: Any) -> OpenOnce:
    """Return the same source, to be opened once by all calls that take it: the headers of files are read once, and a
    database or Spark is connected to once.

    Rows that arrive after the first call may not be seen: make another one for these.

    Args:
        source: whatever ``run`` takes.

    >>> import privatest as pt
    >>> data = pt.open_once([0.5, None, 2.0])
    >>> pt.count_records(data)
    3
    """
    return source if isinstance(source, OpenOnce) else OpenOnce(source)


def _open_elsewhere(source: Any, selection: Selection) -> Records | None:
    """Records in a database, on a cluster or in files; None for what lies in memory."""
    library = type(source).__module__.partition(".")[0]
    if library == "ibis":
        from privatest.engines.sql import open_table  # an extra

        return open_table(source, selection)
    if library == "pyspark":
        from privatest.engines.spark import open_frame  # an extra

        return open_frame(source, selection)
    if type(source).__name__ == "DuckDBPyRelation":
        from privatest.engines.sql import open_relation  # an extra

        return open_relation(source, selection)
    if isinstance(source, str) and "://" in source:
        from privatest.engines.sql import open_address  # an extra

        return open_address(source, selection)
    paths = as_paths(source)
    if paths is not None:
        from privatest.engines.files import open_files  # an extra

        return open_files(paths, selection)
    return None


def _in_memory(source: Any, selection: Selection) -> Records:
    if type(source).__name__ == "LazyFrame":
        raise InvalidData("The data are a LazyFrame, which holds no records yet. Call its collect() first.")
    library = type(source).__module__.partition(".")[0]
    # Of the type, not of the object: a pandas column shows its index as attributes.
    table = hasattr(type(source), "columns") or hasattr(type(source), "column_names")
    if not table and (library == "pyarrow" or (library not in ("pandas", "polars", "numpy") and _speaks_arrow(source))):
        source = _from_capsule(source)
        library, table = "pyarrow", hasattr(type(source), "column_names")
    if not table:
        for word, name in selection.by_word().items():
            raise InvalidData(f"{word}={shown(name)} was given, but the data are a single column. Leave it out.")
        return _single(source)
    names = [str(name) for name in (source.column_names if hasattr(source, "column_names") else source.columns)]
    wanted = selection.of(names, "the data")
    if library == "pyarrow":
        pa = import_arrow("An Arrow table")
        whole = pa.Table.from_batches([source]) if isinstance(source, pa.RecordBatch) else source
        chosen = [None if name is None else whole.column(name) for name in wanted]
        stream = stream_of_arrow(*chosen, column=wanted.record)
    else:
        found = _single(_pick(source, names, wanted.record), wanted.record)
        if all(name is None for name in wanted[1:]):
            return found
        columns = [None if name is None else _pick(source, names, name) for name in wanted[1:]]
        keys = [
            None if one is None else line_keys(one) if isinstance(one, LineFields) else column_keys(one)
            for one in columns
        ]
        stream = _with_keys(found, *keys)
    return records_of(stream, selection.most, selection.order)


def _with_keys(records: Column | StreamRecords, *keys: Keys | None) -> RowStream:
    """The rows of a column together with their keys (unit, order, group), as one piece."""

    def read(progress: Progress) -> Iterator[RowPart]:
        columns = [records] if isinstance(records, Column) else (part.records for part in records.stream.parts())
        first = 0
        for found in columns:
            rows = slice(first, first + found.count())
            yield RowPart(found, *(None if one is None else one.at(rows) for one in keys))
            progress(found.count())
            first += found.count()

    sample = records.part(0, 0) if isinstance(records, Column) else records.stream.sample
    return RowStream([read], sample, rows=records.count())


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
    if isinstance(source, LineFields):
        return LineRecords(source.fields)
    if isinstance(source, np.ndarray):
        if source.dtype.kind in "OU":
            check_no_paths(source.flat)
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
    if isinstance(source, io.IOBase):
        raise InvalidData("The data are an open file. Pass its path, or its lines, a record each: pt.read_lines(file).")
    values = source if isinstance(source, (list, tuple, range)) else list(source)
    check_no_paths(values)
    return SequenceRecords(values)


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
    if order is not None and isinstance(records, OrderTeller) and not said_of(source).text_order:
        check_order(order, records.order_forms())
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
    arms = None
    if not _places(first) & _places(second):
        arms = Arms(open_for(need, first, column=column), open_for(need, second, column=column))
    if arms is None or guarded(UNOPENED, lambda: _have_rows_in_common(first, second, column)):
        raise InvalidData(
            "Control and treatment are the same data, or have a file or memory in common: everybody in it would be in "
            "both groups, and pay for each group's count. Give the records of different people, or one table and "
            "group=. If these are different people, pass copies."
        )
    return arms


def _places(source: Any) -> set[Any]:
    """Identities of a source, to tell whether two are the same: of files, tables, or the object itself."""
    data = named_by_user(source)
    if isinstance(data, str) and "://" in data:
        return set(source_of(data).parts)
    paths = as_paths(data)
    if paths is not None:
        return {file_identity(path) for path in files_of(paths)[1]}
    return set() if isinstance(data, tuple | range) else {id(data)}  # Python makes one of two constants


def _have_rows_in_common(first: Any, second: Any, column: str | None) -> bool:
    """Whether two sources that can be opened are one query, or lie in memory that they share.

    Equal values in two places are no sign of it, and what two different queries select nobody can tell.
    """
    one, other = named_by_user(first), named_by_user(second)
    libraries = {type(data).__module__.partition(".")[0] for data in (one, other)}
    if libraries == {"ibis"}:
        return bool(one.equals(other))
    if libraries == {"pyspark"}:
        return bool(one.sameSemantics(other))
    return any(np.shares_memory(a, b) for a in _memory(one, column) for b in _memory(other, column))


def _memory(data: Any, column: str | None) -> list[np.ndarray[Any, Any]]:
    """The memory that the records lie in, of arrays and data frames; without that of texts and of objects."""
    library = type(data).__module__.partition(".")[0]
    if isinstance(data, np.ndarray) or library not in ("pandas", "polars", "pyarrow"):
        return [data] if isinstance(data, np.ndarray) else []
    if hasattr(type(data), "columns") or hasattr(type(data), "column_names"):
        names = [str(name) for name in (data.column_names if library == "pyarrow" else data.columns)]
        data = _pick(data, names, Selection(column=column).of(names, "the data").record)
    if library == "pandas":
        if not arrow_backed(data.dtype):
            held = data.array
            plain = data.to_numpy() if isinstance(data.dtype, np.dtype) else getattr(held, "_data", None)
            found = getattr(held, "codes", plain)  # of categories
            return [found] if isinstance(found, np.ndarray) else []
        data = data.array.__arrow_array__()
    elif library == "polars":
        data = data.to_arrow()
    return [memory_of_arrow(chunk) for chunk in getattr(data, "chunks", [data])]
