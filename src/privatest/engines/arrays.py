"""Records in memory (NumPy arrays, Python objects, columns of Arrow, pandas and polars), and rows read part by part.

A class of records in memory says which cell each record is in. Columns are not copied where their type allows it.

:class:`RowStream` is a source that is read in parts: a file, a large Arrow table, or a data frame with a unit or an
order. A part holds some rows and their keys. Parts are read in parallel where only sums are needed, and one after the
other where the order matters. Few parts are in memory at a time, so memory does not grow with the source.
"""

from __future__ import annotations

import itertools
import math
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from privatest.data_addresses import AS_WRITTEN, Reading
from privatest.engines.csv_fields import LineFields, field_number, field_text
from privatest.engines.key_columns import Keys, group_codes, keys_of_array, keys_of_objects
from privatest.engines.records import (
    MOST_GROUPS,
    NO_ENDS,
    UNDECLARED,
    Column,
    Declared,
    GroupedRecords,
    Indices,
    LastReading,
    Promise,
    SomeRecords,
    SourceRecords,
    each_guarded,
    fold,
    folded_labels,
    silenced,
    sums_of_blocks,
    unsupported_type,
)
from privatest.errors import InvalidData, MissingExtra
from privatest.numbers import Integers
from privatest.scores import Cells, LabelCells, Score

Result = TypeVar("Result")

FEW = 1 << 20
"""Number of records below which threads cost more time than they save."""
NUMBERS_AT_ONCE = 1 << 15
"""Numbers scored at a time: few enough that all intermediate arrays stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class ArrayRecords(Column):
    """A one-dimensional array of booleans, integers or floats.

    Attributes:
        values: the array.
        kind: what the type declares that the array was made from, where that is another one.
    """

    chunk: ClassVar[int] = NUMBERS_AT_ONCE
    values: npt.NDArray[Any] = field(repr=False)
    kind: Declared = UNDECLARED

    @property
    def declared(self) -> Declared:
        if self.kind.type:
            return self.kind
        content: Any = "truths" if self.values.dtype.kind == "b" else "numbers"
        return replace(self.kind, content=content, type=str(self.values.dtype))

    def count(self) -> int:
        return len(self.values)

    def index(self, cells: Cells) -> Indices:
        return cells.index(as_floats(self.values))

    def part(self, first: int, last: int) -> ArrayRecords:
        return ArrayRecords(self.values[first:last], self.kind)

    def total(self, score: Score) -> int:
        return sum(self._by_threads(lambda part: Column.total(part, score)))

    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:
        return np.concatenate(self._by_threads(lambda part: Column.series(part, score, ends)))

    def _by_threads(self, work: Callable[[ArrayRecords], Result]) -> list[Result]:
        """Return the results of one part for each processor; of the whole array where it is short."""
        threads = min(os.cpu_count() or 1, 16) if len(self.values) > FEW else 1
        if threads == 1:
            return [work(self)]
        bounds = np.linspace(0, len(self.values), threads + 1).astype(np.int64).tolist()
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda ends: work(self.part(*ends)), itertools.pairwise(bounds)))


def as_floats(chunk: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the chunk as float64. Integers beyond 2^53 are rounded, as in every engine."""
    with np.errstate(all="ignore"):  # a warning about a number too large for a double would be about one record
        return np.ascontiguousarray(chunk, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class SequenceRecords(Column):
    """Python objects of any kind, unless the column's type declares more."""

    chunk: ClassVar[int] = NUMBERS_AT_ONCE
    values: Sequence[Any] = field(repr=False)
    declared: Declared = UNDECLARED

    def count(self) -> int:
        return len(self.values)

    def index(self, cells: Cells) -> Indices:
        if isinstance(cells, LabelCells):
            answer = (cells.index_of(record) for record in self.values)
            return np.fromiter(answer, dtype=np.intp, count=len(self.values))
        return cells.index(np.fromiter(map(_number, self.values), dtype=np.float64, count=len(self.values)))

    def part(self, first: int, last: int) -> SequenceRecords:
        return SequenceRecords(self.values[first:last], self.declared)

    def coded(self) -> CodedRecords:
        return CodedRecords(np.arange(len(self.values)), self.values, self.declared)


@dataclass(frozen=True, eq=False)
class CodedRecords(Column):
    """Texts or Python objects, given as positions in a list of the distinct ones; -1 is a missing record.

    Attributes:
        codes: the position of each record.
        distinct: the list.
        declared: what the column's type declares.
        reading: how the user said that texts are read.
        fields: whether texts are fields of a text file, which may be numbers.
    """

    codes: npt.NDArray[np.signedinteger[Any]] = field(repr=False)
    distinct: Sequence[Any] = field(repr=False)
    declared: Declared = UNDECLARED
    reading: Reading = AS_WRITTEN
    fields: bool = False
    _cached: dict[str, Any] = field(default_factory=dict, repr=False)
    """The cells of the distinct records, for the cells that were looked up last; shared by all parts of a column."""

    @property
    def may_be_numbers(self) -> bool:
        """Whether texts may be numbers: fields of text files always, other texts if a decimal mark was given."""
        return self.fields or self.reading.decimal != "."

    def count(self) -> int:
        return len(self.codes)

    def index(self, cells: Cells) -> Indices:
        if self._cached.get("of") is not cells:
            self._cached.update(of=cells, cells=np.append(self._cells_of_distinct(cells), cells.count))
        cells_of_distinct: Indices = self._cached["cells"]
        return cells_of_distinct.take(self.codes, mode="wrap")

    def part(self, first: int, last: int) -> CodedRecords:
        return replace(self, codes=self.codes[first:last])

    def coded(self) -> CodedRecords:
        return self

    def _cells_of_distinct(self, cells: Cells) -> Indices:
        """Return the cell of each distinct record: that of the label which it is, or else of the number."""
        # Texts that mean missing become None; other objects are read as usual.
        missing = self.reading.missing
        readable = [None if missing and type(one) is str and one.strip() in missing else one for one in self.distinct]
        answer = SequenceRecords(readable).index(cells)
        rest = cells.rest if isinstance(cells, LabelCells) else cells.count
        if self.reading.fold_case and isinstance(cells, LabelCells):
            folded = folded_labels(cells)
            near = (folded.get(fold(one), rest) if type(one) is str else rest for one in readable)
            folded_cells = np.fromiter(near, dtype=np.intp, count=len(readable))
            answer = np.where(answer == rest, np.minimum(answer, folded_cells), answer)
        if self.may_be_numbers:
            mark = self.reading.decimal
            numbers = (field_number(one, mark) if type(one) is str else math.nan for one in readable)
            as_numbers = cells.index(np.fromiter(numbers, dtype=np.float64, count=len(readable)))
            answer = np.where((answer < rest) | (as_numbers == cells.count), answer, as_numbers)
        return answer


def with_reading(records: Column, reading: Reading) -> Column:
    """Return records of a column whose texts are read in this way."""
    if isinstance(records, ArrayRecords):
        return records
    coded: CodedRecords = records.coded()
    declared = replace(coded.declared, folded=reading.fold_case)
    if declared.content == "text" and reading.decimal != ".":  # texts may be numbers, whatever the type declares
        declared = replace(declared, content="anything")
    return replace(coded, declared=declared, reading=reading, _cached={})


def line_records(lines: LineFields) -> CodedRecords:
    """Return lines as records, without Arrow. Their cells are those of :class:`FieldRecords`."""
    codes, distinct = lines.coded()
    return CodedRecords(codes, [field_text(one) for one in distinct], fields=True)


ORDINARY = r"^-?[0-9]{1,30}(\.[0-9]{0,30})?([eE][+-]?[0-9]{1,2})?$"
"""Pattern of numbers that Arrow converts without failing."""


@dataclass(frozen=True, eq=False)
class FieldRecords(Column):
    """Fields of a CSV file as an Arrow array of bytes; null is a missing one."""

    chunk: ClassVar[int] = NUMBERS_AT_ONCE
    values: Any = field(repr=False)

    def count(self) -> int:
        return len(self.values)

    def index(self, cells: Cells) -> Indices:
        texts = isinstance(cells, LabelCells) and any(isinstance(label, str | bytes) for label in cells.labels)
        return self.coded().index(cells) if texts else self.numbers().index(cells)

    def part(self, first: int, last: int) -> FieldRecords:
        return FieldRecords(self.values[first:last])

    def coded(self) -> CodedRecords:
        """Return the fields as positions in a list of the distinct ones."""
        codes, distinct = _encoded(self.values)
        return CodedRecords(codes, [field_text(one) for one in distinct], fields=True)

    def numbers(self) -> ArrayRecords:
        """Return the fields as numbers; NaN for a field that is not a number."""
        pa = import_arrow("A CSV file")
        try:
            # If Arrow converts all of them, they are numbers by our rule too, or nan and inf, which are odd anyway.
            answer = self.values.cast(pa.string()).cast(pa.float64())
        except pa.ArrowInvalid:
            return ArrayRecords(self._one_by_one())
        return ArrayRecords(as_numpy(answer, math.nan))

    def _one_by_one(self) -> npt.NDArray[np.float64]:
        import pyarrow.compute as pc

        pa = import_arrow("A CSV file")
        plain = pc.match_substring_regex(self.values, ORDINARY)
        answer = np.full(len(self.values), math.nan)
        answer[as_numpy(plain, 0)] = as_numpy(self.values.filter(plain).cast(pa.string()).cast(pa.float64()))
        rest = pc.invert(plain)
        answer[as_numpy(rest, 0)] = [field_number(field) for field in self.values.filter(rest).to_pylist()]
        return answer


def _encoded(values: Any) -> tuple[Integers, list[bytes]]:
    """Return the position of each entry among the distinct ones, -1 for a missing one; and the distinct ones."""
    encoded = values.dictionary_encode()
    return as_numpy(encoded.indices.cast(import_arrow("A CSV file").int64()), -1), encoded.dictionary.to_pylist()


def field_keys(values: Any) -> Keys:
    """Return an Arrow array of fields as keys, byte by byte."""
    codes, distinct = _encoded(values)
    return Keys(np.maximum(codes, 0), codes >= 0, distinct, untyped=True)


def _number(record: object) -> float:
    """Return the record as a float; NaN, which is odd, for everything that is not a number (numeric text included)."""
    if type(record) is float:
        return record
    try:
        return float(record) if isinstance(record, (Real, Decimal, np.bool_)) else math.nan
    except Exception:  # a user's own type of numbers may raise anything: that record is odd
        return math.nan


Progress = Callable[[int], None]
"""Called with the number of rows (of files: bytes) that were read since the last call."""


class RowPart(NamedTuple):
    """Some rows: their records, and the keys of the columns that the user named as unit, order and group."""

    records: Column
    unit: Keys | None = None
    order: Keys | None = None
    group: Keys | None = None

    def only(self, name: str) -> RowPart:
        """Return the rows of one group."""
        assert self.group is not None
        numbers: dict[str, int] = {}
        rows = group_codes(self.group, numbers) == numbers.get(name, len(numbers))
        keys = (None if one is None else one.at(rows) for one in (self.unit, self.order))
        return RowPart(SomeRecords(self.records, np.flatnonzero(rows)), *keys)

    def grouped(self, names: Sequence[str]) -> RowPart:
        """Return the rows with the place of each one's group among these names."""
        assert self.group is not None
        codes = group_codes(self.group, {name: place for place, name in enumerate(names)})
        return self._replace(records=GroupedRecords(self.records, np.where(codes < len(names), codes, -1)))


ReadRows = Callable[[Progress], Iterator[RowPart]]
"""Reads a run of rows, part by part. Each call reads it anew."""


def _no_bar() -> AbstractContextManager[Progress]:
    return nullcontext(lambda _amount: None)


@dataclass(frozen=True, eq=False)
class RowStream:
    """The rows of a source. They may be read several times.

    Attributes:
        runs: readers of consecutive runs of rows, in the order of the source.
        sample: a column of the same type without any record, which a score is checked against.
        rows: number of rows; None where it is not known before they are read.
        bar: shows the progress of one reading.
    """

    runs: Sequence[ReadRows]
    sample: Column
    rows: int | None = None
    bar: Callable[[], AbstractContextManager[Progress]] = field(default=_no_bar)

    def parts(self) -> Iterator[RowPart]:
        """Yield all rows in order, one part at a time."""
        with self.bar() as progress:
            for read in self.runs:
                yield from read(progress)

    def gather(self, work: Callable[[Column], Result]) -> Iterator[Result]:
        """Yield the result of ``work`` for every part. Several threads read parts, so work must not keep a state."""
        threads = min(os.cpu_count() or 1, 16, len(self.runs))
        if threads <= 1:
            for part in self.parts():
                yield work(part.records)
            return
        with self.bar() as progress, ThreadPoolExecutor(threads) as pool:

            def run(read: ReadRows) -> list[Result]:
                with silenced():
                    return [work(part.records) for part in read(progress)]

            waiting: deque[Future[list[Result]]] = deque()
            try:
                for read in self.runs:
                    waiting.append(pool.submit(run, read))
                    if len(waiting) > 2 * threads:
                        yield from waiting.popleft().result()
                while waiting:
                    yield from waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def groups(self) -> list[str]:
        """Return the names of the groups, at most ``MOST_GROUPS`` of them."""
        numbers: dict[str, int] = {}
        for part in self.parts():
            assert part.group is not None
            group_codes(part.group, numbers)
            if len(numbers) >= MOST_GROUPS:
                break
        return list(numbers)[:MOST_GROUPS]

    def only(self, name: str) -> RowStream:
        """Return a stream of the rows of one group."""

        return replace(self._each(lambda part: part.only(name)), rows=None)

    def grouped(self, names: Sequence[str]) -> RowStream:
        """Return a stream whose records know the places of their groups among these names."""
        return self._each(lambda part: part.grouped(names))

    def _each(self, change: Callable[[RowPart], RowPart]) -> RowStream:
        """Return a stream of the changed parts."""

        def changed(read: ReadRows) -> ReadRows:
            return lambda progress: (change(part) for part in read(progress))

        return replace(self, runs=[changed(read) for read in self.runs])

    @cached_property
    def row_count(self) -> int:
        """Number of rows; they are read if it is not known otherwise."""
        return self.rows if self.rows is not None else sum(self.gather(lambda records: records.count()))


@dataclass(frozen=True, eq=False)
class StreamedRecords(SourceRecords):
    """Base of records that are read from a stream of rows."""

    stream: RowStream
    _last_reading: LastReading = field(default_factory=LastReading, repr=False, kw_only=True)

    @property
    def declared(self) -> Declared:
        return replace(self.stream.sample.declared, nullable=True)  # files may differ in this

    def portions(self) -> Iterator[Column]:
        return each_guarded(self.complaint, lambda: (part.records for part in self.stream.parts()))

    def groups(self) -> list[str]:
        return self.stream.groups()

    def only(self, name: str) -> Self:
        return replace(self, stream=self.stream.only(name), _last_reading=LastReading())

    def grouped(self, names: Sequence[str]) -> Self:
        return replace(self, stream=self.stream.grouped(names), _last_reading=LastReading())


@dataclass(frozen=True, eq=False)
class StreamRecords(StreamedRecords):
    """All rows of a stream, each a record, in the order of the source."""

    @property
    def promise(self) -> Promise:
        return Promise()

    def is_shared(self) -> bool:
        """Return False, because each row belongs to a different person."""
        return False

    def count(self) -> int:
        return self.stream.rows if self.stream.rows is not None else super().count()

    def _expected_count(self) -> int | None:
        return self.stream.rows if self.stream.rows is not None else super()._expected_count()

    def _rows(self) -> int:
        return self.stream.row_count

    def _sum(self, score: Score) -> tuple[int, int]:
        answer = list(self.stream.gather(lambda records: (records.count(), records.total(score))))
        return sum(rows for rows, _ in answer), sum(total for _, total in answer)

    def _cells(self, cells: Cells) -> tuple[list[int], None]:
        counts = np.zeros(cells.count + 1, dtype=np.int64)
        for answer in self.stream.gather(lambda records: records.histogram(cells)):
            counts += answer
        return [int(count) for count in counts], None

    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:  # noqa: ARG002 - nothing is tied
        answer = [part.records.series(score) for part in self.stream.parts()]
        self._agree(sum(map(len, answer)))
        return np.concatenate(answer) if answer else np.empty(0, dtype=np.int64)

    def block_totals(self, score: Score, block: int, start: int = 0) -> list[int]:
        totals: list[int] = []
        # Scores of the block that is not complete yet.
        open_block: list[Integers] = []
        seen, held, skip = 0, 0, start
        for part in self.stream.parts():
            scores = part.records.series(score)
            seen += len(scores)
            scores, skip = scores[skip:], max(skip - len(scores), 0)
            open_block.append(scores)
            held += len(scores)
            if held >= block:
                joined = np.concatenate(open_block)
                totals += sums_of_blocks(joined, block)
                open_block = [joined[held - held % block :]]
                held %= block
        self._agree(seen)
        return totals


def import_arrow(what: str) -> Any:
    """Return the module pyarrow; where it is not installed, raise an error that names the extra."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra.of(f"{what} is read by way of pyarrow.", "files") from None
    return pa


def as_numpy(array: Any, missing: float | None = None) -> npt.NDArray[Any]:
    """Return a primitive Arrow array as a NumPy array, without a copy unless ``missing`` replaces nulls.

    It reads the array's buffers, because Arrow's own conversions to NumPy and to scalars import pandas.
    """
    pa = import_arrow("An Arrow column")
    if pa.types.is_boolean(array.type):
        return np.asarray(as_numpy(array.cast(pa.uint8()), missing) != 0)
    letter = "f" if pa.types.is_floating(array.type) else "i" if pa.types.is_signed_integer(array.type) else "u"
    dtype = np.dtype(f"{letter}{array.type.bit_width // 8}")
    if len(array) == 0 or array.buffers()[1] is None:
        return np.full(len(array), 0 if missing is None else missing, dtype=dtype)
    values = np.frombuffer(array.buffers()[1], dtype, count=len(array), offset=array.offset * dtype.itemsize)
    if array.null_count and missing is not None:
        values = values.copy()
        values[as_numpy(array.is_null())] = missing
    return values


def memory_of_arrow(array: Any) -> npt.NDArray[np.uint8]:
    """Return the bytes of an Arrow array's entries, or of pointers to them, which no neighbouring slice shares.

    Of lists and of texts these are the places where each begins; of a dictionary, which entry each is.
    """
    types = import_arrow("An Arrow column").types
    array = array.indices if types.is_dictionary(array.type) else array
    held = array.buffers()[1:2]
    if not len(array) or not held or held[0] is None:
        return np.empty(0, dtype=np.uint8)
    try:
        bits = array.type.bit_width
    except ValueError:  # of no fixed width: a table of places
        name = str(array.type)
        bits = 128 if name.endswith("_view") else 64 if name.startswith("large_") else 32
    first, last = -(-array.offset * bits // 8), (array.offset + len(array)) * bits // 8
    return np.frombuffer(held[0], dtype=np.uint8)[first:last]


SLICE = 1 << 18
"""Rows of an Arrow table that are read at a time."""
UTC = "+00:00"
"""Zone that is written after a time that was converted to UTC."""


def arrow_kind(kind: Any, column: str | None = None) -> str:
    """Return how a column of an Arrow type is read: "number", "decimal", "text" or "other".

    Raises InvalidData for types that records cannot have.
    """
    types = import_arrow("An Arrow column").types
    content = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_temporal(content) or types.is_nested(content):
        raise unsupported_type(f"type {kind}", column=column)
    if types.is_integer(content) or types.is_floating(content) or types.is_boolean(content):
        return "number"
    if types.is_decimal(content):
        return "decimal"
    return "text" if str(content) in ("string", "large_string", "string_view") else "other"


def _declared(kind: Any, column: str | None) -> Declared:
    """Return what an Arrow type declares about every record."""
    types = import_arrow("An Arrow column").types
    content = kind.value_type if types.is_dictionary(kind) else kind
    name = str(kind)
    if types.is_boolean(content):
        return Declared("truths", name, column)
    if "binary" in str(content):
        return Declared("bytes", name, column)
    read = arrow_kind(kind, column)
    if read == "other":  # the null type declares nothing, and values of an extension type may be any objects
        return Declared(column=column)
    return Declared("text" if read == "text" else "numbers", name, column)


def arrow_records(array: Any, column: str | None = None) -> Column:
    """Return the records of one Arrow array (not a chunked one)."""
    pa = import_arrow("An Arrow column")
    kind = arrow_kind(array.type, column)
    declared = _declared(array.type, column)
    if pa.types.is_dictionary(array.type):
        if kind == "text":
            return _dictionary(array, declared)
        array = array.cast(array.type.value_type)
    if kind == "number":
        if array.null_count:
            array = array.cast(pa.float64(), safe=False)
        return ArrayRecords(as_numpy(array, math.nan if array.null_count else None), declared)
    if kind == "decimal":
        # The text is converted, which rounds once: Arrow's own conversion of a long decimal is not the nearest double.
        return ArrayRecords(as_numpy(array.cast(pa.string()).cast(pa.float64()), math.nan), declared)
    if kind == "text":
        return _dictionary(array.cast(pa.large_binary()).dictionary_encode(), declared)
    return SequenceRecords(array.to_pylist(), declared)


def _dictionary(array: Any, declared: Declared) -> CodedRecords:
    pa = import_arrow("An Arrow column")
    # The bytes are decoded one by one: files may hold text that is not valid UTF-8, which must not raise.
    distinct = tuple(_decoded(entry) for entry in array.dictionary.cast(pa.large_binary()).to_pylist())
    return CodedRecords(as_numpy(array.indices.cast(pa.int64()), -1), distinct, declared)


def _decoded(entry: bytes | None) -> str | None:
    try:
        return None if entry is None else entry.decode()
    except UnicodeDecodeError:
        return None


def key_kind(kind: Any, role: str) -> None:
    """Raise InvalidData for a type that cannot be a unit, an order or a group."""
    types = import_arrow("An Arrow column").types
    content = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_nested(content):
        raise unsupported_type(f"{role} of type {kind}", "Name a column of numbers, texts or times")


def arrow_keys(array: Any) -> Keys:
    """Return the keys of one Arrow array (not a chunked one)."""
    pa = import_arrow("An Arrow column")
    types = pa.types
    if types.is_dictionary(array.type):
        if str(array.type.value_type) == "string_view":  # of polars; Arrow does not decode these
            array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.large_string()))
        array = array.cast(array.type.value_type)
    missing = as_numpy(array.is_null()) if array.null_count else None
    times, zone = _times(array.type)
    if types.is_date32(array.type) or types.is_time32(array.type):
        array = array.cast(pa.int32())
    elif types.is_temporal(array.type) and not types.is_interval(array.type):
        array = array.cast(pa.int64())
    if types.is_integer(array.type) or types.is_floating(array.type) or types.is_boolean(array.type):
        return replace(keys_of_array(as_numpy(array, 0), missing), times=times, zone=zone)
    text = str(array.type) in ("string", "large_string", "string_view")
    if not (text or types.is_binary(array.type) or types.is_large_binary(array.type)):
        return keys_of_objects(array.to_pylist())
    encoded = array.cast(pa.large_binary()).dictionary_encode()
    codes = as_numpy(encoded.indices.cast(pa.int64()), 0)
    present = np.ones(len(codes), dtype=np.bool_) if missing is None else ~missing
    return Keys(codes, present, encoded.dictionary.to_pylist())


def _times(kind: Any) -> tuple[str, str]:
    """Return NumPy's name of an Arrow type of dates, times or durations, and the zone of its values; else ""."""
    types = import_arrow("An Arrow column").types
    if types.is_date(kind):
        return f"datetime64[{'D' if types.is_date32(kind) else 'ms'}]", ""
    if types.is_timestamp(kind):
        return f"datetime64[{kind.unit}]", "" if kind.tz is None else UTC
    return f"timedelta64[{kind.unit}]" if types.is_time(kind) or types.is_duration(kind) else "", ""


def stream_of_arrow(
    values: Any, unit: Any = None, order: Any = None, group: Any = None, *, column: str | None = None
) -> RowStream:
    """Return a stream over chunked columns of equal length."""
    pa = import_arrow("An Arrow column")
    arrow_kind(values.type, column)
    for role, keys in (("unit", unit), ("order", order), ("group", group)):
        if keys is not None:
            key_kind(keys.type, f"a column {role}")

    def run(start: int, size: int, chunk: Any) -> ReadRows:
        def read(progress: Progress) -> Iterator[RowPart]:
            records = arrow_records(chunk.slice(start - base, size))
            keys = [
                None if one is None else arrow_keys(_joined(one.slice(start, size))) for one in (unit, order, group)
            ]
            progress(size)
            yield RowPart(records, *keys)

        base = offset
        return read

    runs, offset = [], 0
    for chunk in values.chunks:
        for first in range(0, len(chunk), SLICE):
            runs.append(run(offset + first, min(SLICE, len(chunk) - first), chunk))
        offset += len(chunk)
    return RowStream(runs, arrow_records(pa.nulls(0, values.type), column), rows=len(values))


def _joined(column: Any) -> Any:
    joined = column.combine_chunks()
    pa = import_arrow("An Arrow column")
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined


def from_array(values: npt.NDArray[Any], column: str | None = None, kind: Declared | None = None) -> Column:
    """Return the records of an array; ``kind`` is what the type declares that the array was made from."""
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]  # one column, in the shape that scikit-learn uses
    if values.ndim != 1:
        raise InvalidData(f"The data are an array of {values.ndim} dimensions. Pass one dimension: one entry a record.")
    letter = values.dtype.kind
    if letter not in "biufOUST":
        raise unsupported_type(f"dtype {values.dtype}", column=column)
    declared = kind or _declared_by_numpy(values.dtype, column)
    if isinstance(values, np.ma.MaskedArray):
        return _from_masked(values, declared)
    if kind is None and letter in "biu":  # these types have no value for a missing record
        declared = replace(declared, nullable=False)
        if np.can_cast(values.dtype, np.int64):  # larger ones lie outside of every family's whole numbers
            ends = (0, 1) if letter == "b" else (np.iinfo(values.dtype).min, np.iinfo(values.dtype).max)
            declared = replace(declared, between=ends)
    return ArrayRecords(values, declared) if letter in "biuf" else SequenceRecords(_listed(values), declared)


_BY_LETTER = {"b": "truths", "i": "numbers", "u": "numbers", "f": "numbers", "U": "text", "T": "text", "S": "bytes"}


def _declared_by_numpy(dtype: Any, column: str | None) -> Declared:
    """Return what a dtype of NumPy, or a nullable one of pandas, declares about every record; of objects nothing."""
    content = _BY_LETTER.get(dtype.kind)
    return Declared(column=column) if content is None else Declared(content, str(dtype), column)  # type: ignore[arg-type]


def _from_masked(values: Any, declared: Declared) -> Column:
    if values.dtype.kind not in "biuf":
        return SequenceRecords(values.astype(object).filled(None).tolist(), declared)
    with np.errstate(all="ignore"):
        return ArrayRecords(values.astype(np.float64).filled(np.nan), declared)


def _listed(values: npt.NDArray[Any]) -> list[Any]:
    """Return the entries as Python objects; None for an entry that NumPy cannot convert."""

    def entry(index: int) -> Any:
        try:
            return values[index].item() if hasattr(values[index], "item") else values[index]
        except Exception:
            return None

    try:
        return list(values.tolist())
    except Exception:
        return [entry(index) for index in range(len(values))]


def from_pandas(values: Any, column: str | None = None) -> Column | StreamRecords:
    """Return the records of a pandas column."""
    if not hasattr(values, "to_numpy") or getattr(values, "ndim", 1) != 1:
        raise InvalidData(f"The data are a pandas {type(values).__name__}. Pass one column: a Series.")
    dtype = values.dtype
    kind = getattr(dtype, "kind", "O")
    if isinstance(dtype, np.dtype):
        return from_array(values.to_numpy(), column)
    if kind in "mMc" or type(dtype).__name__ in ("PeriodDtype", "IntervalDtype"):
        raise unsupported_type(f"dtype {dtype}", column=column)
    array = getattr(values, "array", values)
    if arrow_backed(dtype):
        return StreamRecords(stream_of_arrow(_chunked(array.__arrow_array__()), column=column))
    if kind in "biuf":  # nullable numbers
        declared = _declared_by_numpy(dtype, column)
        return from_array(values.to_numpy(dtype=np.float64, na_value=np.nan), kind=declared)
    if type(dtype).__name__ == "CategoricalDtype":
        declared = _declared_by_categories(dtype.categories.dtype, column)
        categorical = getattr(array, "_values", array)  # an index keeps its categorical there
        distinct = categorical.categories.astype(object).tolist()
        return CodedRecords(np.asarray(categorical.codes), distinct, declared)
    declared = Declared("text", str(dtype), column) if str(dtype).startswith("str") else Declared(column=column)
    return SequenceRecords(array.astype(object).tolist(), declared)


def _declared_by_categories(dtype: Any, column: str | None) -> Declared:
    """Return what the type of the categories declares. Nothing if pandas may have derived it from the records."""
    name = f"category of {dtype}"
    if getattr(dtype, "kind", "O") in "mMc":
        raise unsupported_type(f"dtype {name}", column=column)
    if isinstance(dtype, np.dtype) or str(dtype) == "str":
        return Declared(column=column)
    if str(dtype).startswith("str"):
        return Declared("text", name, column)
    answer = _declared_by_numpy(dtype, column) if hasattr(dtype, "kind") else Declared(column=column)
    return replace(answer, type=name) if answer.type else answer


def arrow_backed(dtype: Any) -> bool:
    """Whether a column of pandas with this dtype is an Arrow array inside."""
    return hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", "") == "pyarrow"


def _chunked(values: Any) -> Any:
    pa = import_arrow("An Arrow column")
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])


def pandas_keys(values: Any) -> Keys:
    """Return the keys of a pandas column, without rounding any."""
    dtype = values.dtype
    kind = getattr(dtype, "kind", "O")
    if isinstance(dtype, np.dtype) and kind in "biufmM":
        return keys_of_array(values.to_numpy())
    if type(dtype).__name__ in ("PeriodDtype", "IntervalDtype"):
        raise unsupported_type(f"a key column of dtype {dtype}", "Name a column of numbers, texts or times")
    if type(dtype).__name__ == "CategoricalDtype" or not (arrow_backed(dtype) or kind in "biufmM"):
        return keys_of_objects(values.astype(object).tolist())
    return arrow_keys(_joined(_chunked(import_arrow("A nullable column of keys").array(values))))
