"""Records in memory: NumPy arrays, Python objects, columns of Arrow, pandas and polars; and rows that come in parts.

A class of records says which cell each record is in; :class:`Kernel` scores chunks of numbers. Columns are taken
without a copy where their type allows it.

:class:`RowStream` is a source whose rows come part by part, each part with the keys of its rows: a file, a large Arrow
table, a data frame with a unit or an order. Parts are read in parallel where only sums are needed, and one after the
other where the order matters. At most a few of them are in memory, so that memory does not grow with the source.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from privatest.engines.keys import Keys, group_codes, keys_of_array, keys_of_objects
from privatest.engines.records import (
    CHUNK,
    LARGE,
    MOST_GROUPS,
    NO_ENDS,
    UNDECLARED,
    Column,
    Declared,
    Indices,
    OneReading,
    Promise,
    Seen,
    SomeRecords,
    silenced,
    unfit,
    whole_blocks,
)
from privatest.errors import InvalidData, MissingExtra
from privatest.numbers import Floats, Integers
from privatest.scores import Cells, DyadicCells, IntegerCells, LabelCells, Score
from privatest.scores.score import is_number

Result = TypeVar("Result")

# Doubles from here to twice it are whole numbers, and their last bits are the number less this one.
WHOLE = float(1 << 52)
WHOLE_BITS = int(np.float64(WHOLE).view(np.int64))
# Whole numbers are looked up in a table of all those between the first and the last, which may be this many.
MOST_INTEGERS = 1 << 16
# Below this many records threads cost more than they save.
FEW = 1 << 20


@dataclass(frozen=True, eq=False)
class LookUp:
    """The scores of numbers x in [low, high] at the places floor(factor x) - first of a table, clipped to its ends.

    Attributes:
        factor: a power of two.
        first: what the first entry of the table is for.
        entries: the table.
        low: the smallest number that has a score in the table.
        high: the largest one.
        whole: whether numbers that are no whole numbers have none.
    """

    factor: float
    first: int
    entries: Integers
    low: float
    high: float
    whole: bool = False

    @classmethod
    def of(cls, score: Score) -> LookUp | None:
        """The table for a score, or None where its cells are not of this form."""
        cells = score.cells
        if isinstance(cells, DyadicCells) and abs(cells.first) < WHOLE:
            return cls(cells.factor, cells.first, score.table[:-1], cells.low, cells.high)
        if isinstance(cells, IntegerCells):
            low, high, last = int(cells.first[0]), int(cells.first[-1]), float(cells.last)
        elif isinstance(cells, LabelCells) and not cells.others:
            numbers = [int(label) for label in cells.labels if is_number(label) and label == int(label)]
            low, high, last = min(numbers, default=0), max(numbers, default=0), math.inf
        else:
            return None
        if high - low >= MOST_INTEGERS or max(abs(low), abs(high)) >= WHOLE:
            return None
        # An entry more at either end, for all numbers below and above. Below all are odd; above all are alike.
        entries = score.of_numbers(np.arange(low - 1, high + 2, dtype=np.float64))
        return cls(1.0, low - 1, entries, -math.inf, last if last > high else math.inf, whole=True)

    def places(self, chunk: Floats, cell: Floats) -> Integers | None:
        """The place of each number, written into ``cell``; None if one of them has no place."""
        np.multiply(chunk, self.factor, out=cell)
        if not (
            np.isfinite(np.add.reduce(cell))
            and (self.low == -math.inf or np.minimum.reduce(chunk, initial=math.inf) >= self.low)
            and (self.high == math.inf or np.maximum.reduce(chunk, initial=-math.inf) <= self.high)
        ):
            return None
        np.floor(cell, out=cell)
        if self.whole and not np.array_equal(cell, chunk):
            return None
        np.clip(cell, float(self.first), float(self.first + len(self.entries) - 1), out=cell)
        np.add(cell, WHOLE - self.first, out=cell)
        bits = cell.view(np.int64)  # quicker than a conversion
        return np.subtract(bits, WHOLE_BITS, out=bits)


class Kernel:
    """Scores numbers chunk by chunk: by a look-up where all of a chunk has a place there, else by the cells.

    Both ways give the same scores; the look-up takes a tenth to a half of the time. A kernel has working memory of its
    own, for chunks of at most ``size`` numbers, so that it serves one thread.
    """

    def __init__(self, score: Score, size: int = CHUNK) -> None:
        self._score, self._look_up = score, LookUp.of(score)
        self._cell, self._found = np.empty(size), np.empty(size, dtype=np.int64)

    def scores(self, chunk: Floats) -> Integers:
        """The score of each number; valid until the next call."""
        if self._look_up is not None:
            with np.errstate(all="ignore"):
                places = self._look_up.places(chunk, self._cell[: len(chunk)])
            if places is not None:
                return self._look_up.entries.take(places, out=self._found[: len(chunk)], mode="clip")
        return self._score.table[self._score.cells.index(chunk)]

    def series(self, values: npt.NDArray[Any]) -> Integers:
        """The score of each number of an array."""
        found = np.empty(len(values), dtype=np.int64)
        for first in range(0, len(values), CHUNK):
            chunk = as_floats(values[first : first + CHUNK])
            found[first : first + len(chunk)] = self.scores(chunk)
        return found

    @cached_property
    def _large(self) -> bool:
        """Whether the scores of a chunk may not fit into 64 bits together."""
        return max(abs(self._score.low), abs(self._score.high)) >= LARGE

    def total(self, values: npt.NDArray[Any]) -> int:
        """The exact sum of the scores of an array: the totals of chunks are summed as Python integers."""
        scores = (self.scores(as_floats(values[first : first + CHUNK])) for first in range(0, len(values), CHUNK))
        return sum(sum(one.tolist()) if self._large else int(one.sum()) for one in scores)


@dataclass(frozen=True, eq=False)
class ArrayRecords(Column):
    """A one-dimensional array of booleans, integers or floats; ``kind``: the type it was made from, if another one."""

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
        return sum(self._in_ranges(lambda values: Kernel(score, min(len(values), CHUNK)).total(values)))

    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:  # noqa: ARG002 - nothing is tied
        return np.concatenate(self._in_ranges(lambda values: Kernel(score, min(len(values), CHUNK)).series(values)))

    def _in_ranges(self, work: Callable[[npt.NDArray[Any]], Result]) -> list[Result]:
        """The results for as many equal parts as there are processors; for the whole where it is short."""
        threads = min(os.cpu_count() or 1, 16) if len(self.values) > FEW else 1
        if threads == 1:
            return [work(self.values)]
        bounds = np.linspace(0, len(self.values), threads + 1).astype(np.int64).tolist()
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda ends: work(self.values[slice(*ends)]), itertools.pairwise(bounds)))


def as_floats(chunk: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The chunk as float64; integers beyond 2^53 are rounded, as in every engine."""
    with np.errstate(all="ignore"):  # a number too long for a double must not be heard of
        return np.ascontiguousarray(chunk, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class SequenceRecords(Column):
    """Python objects of any kind, unless the column's type says more."""

    values: Sequence[Any] = field(repr=False)
    declared: Declared = UNDECLARED

    def count(self) -> int:
        return len(self.values)

    def index(self, cells: Cells) -> Indices:
        if isinstance(cells, LabelCells):
            found = (cells.index_of(record) for record in self.values)
            return np.fromiter(found, dtype=np.intp, count=len(self.values))
        return self._floats().index(cells)

    def part(self, first: int, last: int) -> SequenceRecords:
        return SequenceRecords(self.values[first:last], self.declared)

    def total(self, score: Score) -> int:
        return super().total(score) if isinstance(score.cells, LabelCells) else self._floats().total(score)

    def _floats(self) -> ArrayRecords:
        return ArrayRecords(np.fromiter(map(_number, self.values), dtype=np.float64, count=len(self.values)))


@dataclass(frozen=True, eq=False)
class CodedRecords(Column):
    """Text or Python objects as positions in a list of the distinct ones; -1 for a missing record."""

    codes: npt.NDArray[np.signedinteger[Any]] = field(repr=False)
    distinct: Sequence[Any] = field(repr=False)
    declared: Declared = UNDECLARED

    def count(self) -> int:
        return len(self.codes)

    def index(self, cells: Cells) -> Indices:
        known = SequenceRecords([*self.distinct, None]).index(cells)
        return known.take(self.codes, mode="wrap")

    def part(self, first: int, last: int) -> CodedRecords:
        return CodedRecords(self.codes[first:last], self.distinct, self.declared)


def _number(record: object) -> float:
    """The record as a float; NaN, that is, odd, for whatever is not a number (numeric text included)."""
    if type(record) is float:
        return record
    try:
        return float(record) if isinstance(record, (Real, Decimal, np.bool_)) else math.nan
    except Exception:  # a number type of the user's may raise anything: that record is odd
        return math.nan


Progress = Callable[[int], None]  # so many rows (or bytes) more have been read


class RowPart(NamedTuple):
    """Some rows: their records, and where asked for the columns that say whose they are, when, and of which group."""

    records: Column
    unit: Keys | None = None
    order: Keys | None = None
    group: Keys | None = None

    def only(self, name: str) -> RowPart:
        """The rows of one group."""
        assert self.group is not None
        known: dict[str, int] = {}
        rows = group_codes(self.group, known) == known.get(name, len(known))
        keys = (None if one is None else one.at(rows) for one in (self.unit, self.order))
        return RowPart(SomeRecords(self.records, np.flatnonzero(rows)), *keys)


ReadRows = Callable[[Progress], Iterator[RowPart]]
"""Reads a run of rows, part by part, as often as it is called."""


def _silent(_amount: int) -> None:
    pass


def _no_bar() -> AbstractContextManager[Progress]:
    return nullcontext(_silent)


@dataclass(frozen=True, eq=False)
class RowStream:
    """The rows of a source, as often as they are asked for.

    Attributes:
        runs: all rows, in the order they lie in.
        sample: no record at all, of the column's type: what a score is checked against.
        rows: how many rows there are, where that is known without reading them.
        bar: shows the progress of one reading.
    """

    runs: Sequence[ReadRows]
    sample: Column
    rows: int | None = None
    bar: Callable[[], AbstractContextManager[Progress]] = field(default=_no_bar)

    def parts(self) -> Iterator[RowPart]:
        """All rows in order, one part at a time."""
        with self.bar() as progress:
            for read in self.runs:
                yield from read(progress)

    def gather(self, make_work: Callable[[], Callable[[Column], Result]]) -> Iterator[Result]:
        """The work on all parts, in no order that matters: by several threads, each with work of its own."""
        threads = min(os.cpu_count() or 1, 16, len(self.runs))
        if threads <= 1:
            work = make_work()
            for part in self.parts():
                yield work(part.records)
            return
        own = threading.local()
        with self.bar() as progress, ThreadPoolExecutor(threads) as pool:

            def run(read: ReadRows) -> list[Result]:
                if not hasattr(own, "work"):
                    own.work = make_work()
                with silenced():
                    return [own.work(part.records) for part in read(progress)]

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
        """The names of the groups, as many as are needed to see that they are too many."""
        known: dict[str, int] = {}
        for part in self.parts():
            assert part.group is not None
            group_codes(part.group, known)
            if len(known) >= MOST_GROUPS:
                break
        return list(known)[:MOST_GROUPS]

    def only(self, name: str) -> RowStream:
        """The rows of one group."""

        def chosen(read: ReadRows) -> ReadRows:
            return lambda progress: (part.only(name) for part in read(progress))

        return replace(self, runs=[chosen(read) for read in self.runs], rows=None)

    @cached_property
    def row_count(self) -> int:
        """How many rows there are, by reading them if nothing else tells."""
        return self.rows if self.rows is not None else sum(self.gather(lambda: lambda records: records.count()))


@dataclass(frozen=True, eq=False)
class StreamedRecords(OneReading):
    """Rows of a stream."""

    stream: RowStream
    _seen: Seen = field(default_factory=Seen, repr=False, kw_only=True)

    @property
    def declared(self) -> Declared:
        return replace(self.stream.sample.declared, nullable=True)  # of one part: another may be of another type

    def groups(self) -> list[str]:
        return self.stream.groups()

    def only(self, name: str) -> Self:
        return replace(self, stream=self.stream.only(name), _seen=Seen())


@dataclass(frozen=True, eq=False)
class StreamRecords(StreamedRecords):
    """All rows of a stream, in the order they lie in."""

    @property
    def promise(self) -> Promise:
        return Promise()

    def is_shared(self) -> bool:
        """Every row is a person of its own."""
        return False

    def count(self) -> int:
        return self.stream.rows if self.stream.rows is not None else super().count()

    def _known(self) -> int | None:
        return self.stream.rows if self.stream.rows is not None else super()._known()

    def _rows(self) -> int:
        return self.stream.row_count

    def _sum(self, score: Score) -> tuple[int, int]:
        def make_work() -> Callable[[Column], tuple[int, int]]:
            kernel = Kernel(score)

            def work(records: Column) -> tuple[int, int]:
                if isinstance(records, ArrayRecords):
                    return records.count(), kernel.total(records.values)
                return records.count(), records.total(score)

            return work

        found = list(self.stream.gather(make_work))
        return sum(rows for rows, _ in found), sum(total for _, total in found)

    def _cells(self, cells: Cells) -> tuple[list[int], None]:
        counts = np.zeros(cells.count + 1, dtype=np.int64)
        for found in self.stream.gather(lambda: lambda records: records.histogram(cells)):
            counts += found
        return [int(count) for count in counts], None

    def check_ends(self, ends: range) -> None:
        """Rows lie in an order of their own: nothing is tied."""

    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:  # noqa: ARG002 - nothing is tied
        found = [part.records.series(score) for part in self.stream.parts()]
        self._agree(sum(map(len, found)))
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)

    def block_totals(self, score: Score, block: int, start: int = 0) -> list[int]:
        totals: list[int] = []
        # The scores of the block that is not complete yet: pieces of at most one block in all.
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
                totals += whole_blocks(joined, block)
                open_block = [joined[held - held % block :]]
                held %= block
        self._agree(seen)
        return totals


def import_arrow(what: str) -> Any:
    """The module pyarrow, or an error that names the extra."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra.of(f"{what} is read by way of pyarrow.", "files") from None
    return pa


def as_numpy(array: Any, missing: float | None = None) -> npt.NDArray[Any]:
    """A primitive Arrow array, in the same memory unless something must stand for nulls.

    By its buffers: Arrow's own ways to NumPy and to a scalar load pandas.
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
    """The bytes that the entries of an Arrow array lie in, or what points to them; those it shares with no neighbour.

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


# Rows of one slice: small enough for several of them to stay in cache, large enough for the calls not to count.
SLICE = 1 << 18
# What stands behind a time that was converted to this zone.
UTC = "+00:00"
# Up to so many categories are read once for each chunk of records.
FEW_CATEGORIES = 1 << 14


def arrow_kind(kind: Any, column: str | None = None) -> str:
    """What a column of this Arrow type is read as: "number", "decimal", "text", "other"; refuses what has no rule."""
    types = import_arrow("An Arrow column").types
    content = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_temporal(content) or types.is_nested(content):
        raise unfit(f"type {kind}", column=column)
    if types.is_integer(content) or types.is_floating(content) or types.is_boolean(content):
        return "number"
    if types.is_decimal(content):
        return "decimal"
    return "text" if str(content) in ("string", "large_string", "string_view") else "other"


def _declared(kind: Any, column: str | None) -> Declared:
    """What an Arrow type says of every record."""
    types = import_arrow("An Arrow column").types
    content = kind.value_type if types.is_dictionary(kind) else kind
    name = str(kind)
    if types.is_boolean(content):
        return Declared("truths", name, column)
    if "binary" in str(content):
        return Declared("bytes", name, column)
    read = arrow_kind(kind, column)
    if read == "other":  # no type at all where everything is missing; of an extension, values may be any objects
        return Declared(column=column)
    return Declared("text" if read == "text" else "numbers", name, column)


def column_of(array: Any, column: str | None = None) -> Column:
    """The records of one Arrow array (not chunked)."""
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
        # By way of text, which is rounded once; Arrow's own conversion of long decimals is not the nearest double.
        return ArrayRecords(as_numpy(array.cast(pa.string()).cast(pa.float64()), math.nan), declared)
    if kind == "text":
        return _dictionary(array.cast(pa.large_binary()).dictionary_encode(), declared)
    return SequenceRecords(array.to_pylist(), declared)


def _dictionary(array: Any, declared: Declared) -> CodedRecords:
    pa = import_arrow("An Arrow column")
    # By way of bytes: text that is not valid UTF-8 (files may hold it) would raise, for one record.
    distinct = tuple(_decoded(entry) for entry in array.dictionary.cast(pa.large_binary()).to_pylist())
    return CodedRecords(as_numpy(array.indices.cast(pa.int64()), -1), distinct, declared)


def _decoded(entry: bytes | None) -> str | None:
    try:
        return None if entry is None else entry.decode()
    except UnicodeDecodeError:
        return None


def key_kind(kind: Any, role: str) -> None:
    """Refuse a type that cannot say whose a row is, or when it happened."""
    types = import_arrow("An Arrow column").types
    content = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_nested(content):
        raise unfit(f"{role} of type {kind}", "Name a column of numbers, texts or times")


def keys_of(array: Any) -> Keys:
    """One Arrow array (not chunked) as keys."""
    pa = import_arrow("An Arrow column")
    types = pa.types
    if types.is_dictionary(array.type):
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
    """How NumPy names an Arrow type of dates, times or spans, and the zone of its values; "" for no such type."""
    types = import_arrow("An Arrow column").types
    if types.is_date(kind):
        return f"datetime64[{'D' if types.is_date32(kind) else 'ms'}]", ""
    if types.is_timestamp(kind):
        return f"datetime64[{kind.unit}]", "" if kind.tz is None else UTC
    return f"timedelta64[{kind.unit}]" if types.is_time(kind) or types.is_duration(kind) else "", ""


def stream_of_arrow(
    values: Any, unit: Any = None, order: Any = None, group: Any = None, *, column: str | None = None
) -> RowStream:
    """The rows of chunked columns of equal length, slice by slice."""
    pa = import_arrow("An Arrow column")
    arrow_kind(values.type, column)
    for role, keys in (("unit", unit), ("order", order), ("group", group)):
        if keys is not None:
            key_kind(keys.type, f"a column {role}")

    def run(start: int, size: int, chunk: Any) -> ReadRows:
        def read(progress: Progress) -> Iterator[RowPart]:
            records = column_of(chunk.slice(start - base, size))
            keys = [None if one is None else keys_of(_joined(one.slice(start, size))) for one in (unit, order, group)]
            progress(size)
            yield RowPart(records, *keys)

        base = offset
        return read

    runs, offset = [], 0
    for chunk in values.chunks:
        for first in range(0, len(chunk), SLICE):
            runs.append(run(offset + first, min(SLICE, len(chunk) - first), chunk))
        offset += len(chunk)
    return RowStream(runs, column_of(pa.nulls(0, values.type), column), rows=len(values))


def _joined(column: Any) -> Any:
    joined = column.combine_chunks()
    pa = import_arrow("An Arrow column")
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined


def from_array(values: npt.NDArray[Any], column: str | None = None, kind: Declared | None = None) -> Column:
    """The records of an array; ``kind`` is what the type says that it was made from."""
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]  # one column, as scikit-learn has it
    if values.ndim != 1:
        raise InvalidData(f"The data are an array of {values.ndim} dimensions. Pass one dimension: one entry a record.")
    letter = values.dtype.kind
    if letter not in "biufOUST":
        raise unfit(f"dtype {values.dtype}", column=column)
    declared = kind or _declared_by_numpy(values.dtype, column)
    if isinstance(values, np.ma.MaskedArray):
        return _from_masked(values, declared)
    if kind is None and letter in "biu":  # an array of these has no value that means a missing one
        declared = replace(declared, nullable=False)
    return ArrayRecords(values, declared) if letter in "biuf" else SequenceRecords(_listed(values), declared)


_BY_LETTER = {"b": "truths", "i": "numbers", "u": "numbers", "f": "numbers", "U": "text", "T": "text", "S": "bytes"}


def _declared_by_numpy(dtype: Any, column: str | None) -> Declared:
    """What a dtype of NumPy, or a nullable one of pandas, says of every record; objects say nothing."""
    content = _BY_LETTER.get(dtype.kind)
    return Declared(column=column) if content is None else Declared(content, str(dtype), column)  # type: ignore[arg-type]


def _from_masked(values: Any, declared: Declared) -> Column:
    if values.dtype.kind not in "biuf":
        return SequenceRecords(values.astype(object).filled(None).tolist(), declared)
    with np.errstate(all="ignore"):
        return ArrayRecords(values.astype(np.float64).filled(np.nan), declared)


def _listed(values: npt.NDArray[Any]) -> list[Any]:
    """The entries as Python objects, one by one where some are no text at all: those are odd."""
    try:
        return list(values.tolist())
    except Exception:
        return [_entry(values, index) for index in range(len(values))]


def _entry(values: npt.NDArray[Any], index: int) -> Any:
    try:
        return values[index].item() if hasattr(values[index], "item") else values[index]
    except Exception:
        return None


def from_pandas(values: Any, column: str | None = None) -> Column | StreamRecords:
    if not hasattr(values, "to_numpy") or getattr(values, "ndim", 1) != 1:
        raise InvalidData(f"The data are a pandas {type(values).__name__}. Pass one column: a Series.")
    dtype = values.dtype
    kind = getattr(dtype, "kind", "O")
    if isinstance(dtype, np.dtype):
        return from_array(values.to_numpy(), column)
    if kind in "mMc" or type(dtype).__name__ in ("PeriodDtype", "IntervalDtype"):
        raise unfit(f"dtype {dtype}", column=column)
    array = getattr(values, "array", values)
    if arrow_backed(dtype):
        return StreamRecords(stream_of_arrow(_chunked(array.__arrow_array__()), column=column))
    if kind in "biuf":  # nullable numbers
        declared = _declared_by_numpy(dtype, column)
        return from_array(values.to_numpy(dtype=np.float64, na_value=np.nan), kind=declared)
    if type(dtype).__name__ == "CategoricalDtype":
        declared = _declared_by_categories(dtype.categories.dtype, column)
        if len(dtype.categories) <= FEW_CATEGORIES:
            categorical = getattr(array, "_values", array)  # of an index as well
            codes, distinct = np.asarray(categorical.codes), categorical.categories.astype(object).tolist()
            return CodedRecords(codes, distinct, declared)
        return SequenceRecords(array.astype(object).tolist(), declared)
    declared = Declared("text", str(dtype), column) if str(dtype).startswith("str") else Declared(column=column)
    return SequenceRecords(array.astype(object).tolist(), declared)


def _declared_by_categories(dtype: Any, column: str | None) -> Declared:
    """What the type of a categorical's categories says; which categories there are depends on records."""
    name = f"category of {dtype}"
    if getattr(dtype, "kind", "O") in "mMc":
        raise unfit(f"dtype {name}", column=column)
    if str(dtype).startswith("str") or str(dtype) == "object":
        return Declared("text", name, column)  # names of categories, as pandas before version 3 keeps them
    found = _declared_by_numpy(dtype, column) if hasattr(dtype, "kind") else Declared(column=column)
    return replace(found, type=name) if found.type else found


def arrow_backed(dtype: Any) -> bool:
    """Whether a column of pandas with this dtype is an Arrow array inside."""
    return hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", "") == "pyarrow"


def _chunked(values: Any) -> Any:
    pa = import_arrow("An Arrow column")
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])


def from_polars(values: Any, column: str | None = None) -> Column:
    if not hasattr(values, "dtype"):
        raise InvalidData(f"The data are a polars {type(values).__name__}. Pass one column: a Series.")
    dtype, name = values.dtype, str(values.dtype)
    if dtype.is_temporal() or dtype.is_nested():
        raise unfit(f"type {name}", column=column)
    if name == "Boolean" or (dtype.is_numeric() and not dtype.is_decimal()):
        if values.null_count() or name == "Boolean" or name.endswith("128"):
            values = values.cast(sys.modules["polars"].Float64)
        content: Any = "truths" if name == "Boolean" else "numbers"
        return from_array(values.to_numpy(), kind=Declared(content, name, column))
    if dtype.is_decimal():
        floats = np.array([np.nan if x is None else float(x) for x in values.to_list()], dtype=np.float64)
        return ArrayRecords(floats, Declared("numbers", name, column))
    content = "text" if name.startswith(("String", "Categorical", "Enum")) else "bytes" if name == "Binary" else None
    declared = Declared(column=column) if content is None else Declared(content, name, column)
    return SequenceRecords(values.to_list(), declared)


def column_keys(values: Any) -> Keys:
    """A pandas or polars column as keys, exactly."""
    library = type(values).__module__.partition(".")[0]
    if library == "pandas":
        dtype = values.dtype
        if isinstance(dtype, np.dtype) and dtype.kind in "biufmM":
            return keys_of_array(values.to_numpy())
        if arrow_backed(dtype):
            found = _chunked(values.array.__arrow_array__()).combine_chunks()
            return keys_of(found.chunk(0) if hasattr(found, "chunks") else found)
        if type(dtype).__name__ in ("PeriodDtype", "IntervalDtype"):
            raise unfit(f"a key column of dtype {dtype}", "Name a column of numbers, texts or times")
        if type(dtype).__name__ == "DatetimeTZDtype":
            return replace(keys_of_array(values.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()), zone=UTC)
        if getattr(dtype, "kind", "O") in "iu":  # nullable integers, not by way of floats
            return keys_of_array(values.fillna(0).to_numpy(dtype=dtype.numpy_dtype), values.isna().to_numpy())
        if getattr(dtype, "kind", "O") == "b":
            return keys_of_array(values.fillna(False).to_numpy(dtype=np.bool_), values.isna().to_numpy())
        if getattr(dtype, "kind", "O") == "f":
            return keys_of_array(values.to_numpy(dtype=np.float64, na_value=np.nan))
        return keys_of_objects(values.astype(object).tolist())
    dtype = values.dtype
    if dtype.is_nested():
        raise unfit(f"a key column of type {dtype}", "Name a column of numbers, texts or times")
    if (dtype.is_integer() or dtype.is_temporal()) and not str(dtype).endswith("128"):
        whole = values.to_physical() if dtype.is_temporal() else values
        missing = values.is_null().to_numpy() if values.null_count() else None
        found = keys_of_array(whole.fill_null(0).to_numpy() if missing is not None else whole.to_numpy(), missing)
        if not dtype.is_temporal():
            return found
        span = "datetime64" if str(dtype).startswith("Date") else "timedelta64"
        unit = "D" if str(dtype) == "Date" else getattr(dtype, "time_unit", "ns")
        return replace(found, times=f"{span}[{unit}]", zone=UTC if getattr(dtype, "time_zone", None) else "")
    if dtype.is_float():
        return keys_of_array(values.cast(sys.modules["polars"].Float64).to_numpy())
    return keys_of_objects(values.to_list())
