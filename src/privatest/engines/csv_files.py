"""CSV files, plain or compressed: every field is text until a score asks for numbers, so no record decides a type.

A row with too few or too many fields is one odd record at its place; it neither stops the reading nor vanishes. No
row does: past the first line, which names the columns, any bytes are rows.
"""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any

from privatest.engines.fields import LONGEST, FieldRecords, Utf8, csv_rows, field_keys
from privatest.engines.frames import import_arrow
from privatest.engines.paths import Wanted, file_size, progress_bar, rows, structure
from privatest.engines.streams import Part, Piece, Progress, Stream
from privatest.errors import InvalidData

__all__ = ["csv_stream"]

# Bytes that Arrow parses at once; it cannot parse rows that are longer. Of the first line, the most there may be.
BLOCK = 1 << 23
# Bytes of the wanted columns, of all files of a source together, that are held in memory once they were read.
HELD = 1 << 24
# So many files stay open between their first line and their rows; of more, each is opened twice.
MOST_OPEN = 64
# Rows that are read one by one are handed on in this number.
ROWS = 1 << 14


def csv_stream(files: Sequence[str], choose: Callable[[Sequence[str], str], Wanted]) -> Stream:
    """The rows of the files; only their first lines are read now, and the files stay open for the rest."""
    pa = import_arrow("A CSV file")
    opened = [CsvFile(path, HELD // len(files), keep_open=len(files) <= MOST_OPEN) for path in files]
    wanted = choose(opened[0].names, repr(files[0]))
    for file in opened[1:]:
        # The names are not quoted: in a file that lacks them they are a record.
        if any(file.names.count(name) != 1 for name in wanted.names()):
            raise InvalidData(
                f"The first line of {file.path!r} does not name the columns that are read of {files[0]!r}, each once. "
                "Pass files whose first lines name the same columns."
            )
    pieces = [Piece(partial(file.parts, wanted)) for file in opened]
    return Stream(pieces, FieldRecords(pa.nulls(0, pa.binary())), bar=progress_bar(files))


class CsvFile:
    """One file: its first line is read when it is made, its rows when they are asked for.

    Guarantees: the first time, the rows are read from the opening and behind the bytes that the first line was read
    with: one open, each byte once. Rows of at most ``most_held`` bytes are held and never read again.

    Attributes:
        path: where it lies.
        names: of its columns.
    """

    def __init__(self, path: str, most_held: int, *, keep_open: bool) -> None:
        self.path, self._most_held = path, most_held
        self._held: list[list[Any]] | None = None
        self._raw: _RawFile | None = None
        self.names: list[str] = structure(path, "CSV", lambda: self._first_line(keep_open))

    def parts(self, wanted: Wanted, progress: Progress) -> Iterator[Part]:
        """The rows of the wanted columns, some at a time, in order."""
        if self._held is None:
            yield from rows(self.path, "CSV", self._read(wanted, progress))
        else:
            progress(file_size(self.path))
            yield from (_part(columns, wanted) for columns in self._held)

    def _first_line(self, keep_open: bool) -> list[str]:
        raw = _RawFile(self.path)
        try:
            with raw.text() as text:
                first = next(csv_rows(_start(text, self.path), _delimiter(self.path)), [])
            if not first or (len(first) == 1 and first[0] and not first[0].strip()):
                raise InvalidData(f"The file {self.path!r} is empty: its first line must name the columns.")
        except BaseException:
            raw.shut()
            raise
        if keep_open:
            self._raw = raw
            weakref.finalize(self, raw.shut)
        else:
            raw.shut()
        return [(name or b"").decode() for name in first]

    def _read(self, wanted: Wanted, progress: Progress) -> Iterator[Part]:
        raw, self._raw = self._raw or _RawFile(self.path), None
        held: list[list[Any]] | None = []
        size = 0
        try:
            for columns in self._columns(raw, wanted, progress):
                size += sum(column.nbytes for column in columns)
                if size > self._most_held:
                    held = None
                elif held is not None:
                    held.append(columns)
                yield _part(columns, wanted)
        finally:
            raw.shut()
        self._held = held

    def _columns(self, raw: _RawFile, wanted: Wanted, progress: Progress) -> Iterator[list[Any]]:
        import pyarrow as pa  # an extra

        places, width, done = [self.names.index(name) for name in wanted.names()], len(self.names), 0
        try:
            with raw.text(progress) as text:
                for columns in _quick(text, _delimiter(self.path), places, width):
                    done += len(columns[0])
                    yield columns
            return
        except pa.ArrowInvalid:
            pass  # A row too long for Arrow: it and all after it are read one by one.
        with raw.text(progress) as text:
            yield from _one_by_one(text, _delimiter(self.path), places, width, done)


class _RawFile:
    """A file that is open. Its first text keeps the bytes that were read for it; the second one starts with these."""

    def __init__(self, path: str) -> None:
        self.path, self._file, self.closed = path, open(path, "rb"), False  # noqa: SIM115 - closed by shut()
        self._first: list[bytes] | None = None  # what was read for the first text, until the second one starts
        self._ahead = b""  # of that, what is to be read again
        self._place = self._told = 0
        self._progress: Progress = lambda _amount: None

    @contextmanager
    def text(self, progress: Progress | None = None) -> Iterator[Utf8]:
        """The text from its first byte on, decompressed as the file's name says."""
        import pyarrow as pa  # an extra

        if self._first is None and progress is None:
            self._first = []
        elif self._first is not None:
            self._ahead, self._first = b"".join(self._first), None
        else:
            self._ahead = b""
            self._file.seek(0)
        self._place, self.closed = 0, False
        self._progress = progress or self._progress
        delimiter = _delimiter(self.path)
        compression = pa.Codec.detect(self.path).name if not self.path.lower().endswith((".csv", ".tsv")) else None
        if compression is None:
            yield Utf8(self, delimiter)
            return
        with pa.input_stream(self, compression=compression) as file:
            yield Utf8(file, delimiter)

    def read(self, size: int = -1) -> bytes:
        found: bytes
        if self._ahead:
            size = len(self._ahead) if size < 0 else size
            found, self._ahead = self._ahead[:size], self._ahead[size:]
        else:
            found = self._file.read(size)
        if self._first is not None:
            self._first.append(found)
            return found
        self._place += len(found)
        if self._place > self._told:  # bytes that are read again are told of once
            self._progress(self._place - self._told)
            self._told = self._place
        return found

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        """What Arrow calls at the end of a text; the file stays open for the next one."""
        self.closed = True

    def shut(self) -> None:
        """Close the file itself."""
        self._file.close()


def _delimiter(path: str) -> str:
    return "\t" if ".tsv" in os.path.basename(path).lower() else ","


def _start(file: Utf8, path: str) -> Iterator[bytes]:
    left = BLOCK
    while left and (block := file.read(min(left, 1 << 16))):
        left -= len(block)
        yield block
    if not left and file.read(1):
        raise InvalidData(
            f"The first line of {path!r} has more than {BLOCK:,} bytes. It must name the columns; is a quote left open?"
        )


def _quick(text: Utf8, delimiter: str, places: Sequence[int], width: int) -> Iterator[list[Any]]:
    """The columns of the rows after the header, some rows at a time, parsed by Arrow."""
    import pyarrow as pa
    import pyarrow.csv

    strange: deque[int] = deque()  # places of the rows that do not fit, in order

    def skip(row: Any) -> str:
        strange.append(row.number - 1)
        return "skip"

    # Columns by number: the names of those that are not read may repeat or be no text.
    names = [str(place) for place in range(width)]
    reader = pa.csv.open_csv(
        text,
        # In one thread: only so are rows that do not fit reported with their places.
        read_options=pa.csv.ReadOptions(use_threads=False, block_size=BLOCK, column_names=names),
        parse_options=pa.csv.ParseOptions(
            delimiter=delimiter,
            newlines_in_values=True,
            # Of a single column an empty line is a missing record.
            ignore_empty_lines=width > 1,
            invalid_row_handler=skip,
        ),
        convert_options=pa.csv.ConvertOptions(
            check_utf8=False,
            include_columns=[names[place] for place in places],
            column_types=dict.fromkeys(names, pa.binary()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    for batch in _with_strange(reader, strange):
        yield [_short(column) for column in batch.columns]


def _with_strange(reader: Any, strange: deque[int]) -> Iterator[Any]:
    """The rows of the reader after the header, with an odd one at the place of each row that does not fit."""
    import pyarrow as pa

    place = 0

    def placed(batch: Any, last: bool) -> Any:
        nonlocal place
        pieces, used = [], 0
        while strange and (last or strange[0] <= place + batch.num_rows - used):
            ahead = strange.popleft() - place
            pieces += [batch.slice(used, ahead), _nothing(batch.schema)]
            used += ahead
            place += ahead + 1
        place += batch.num_rows - used
        if not pieces:
            return [batch]
        pieces.append(batch.slice(used))
        return pa.Table.from_batches(pieces).combine_chunks().to_batches()

    first, empty = True, None
    for batch in reader:
        for one in placed(batch, last=False):
            yield one.slice(1) if first else one
            first = False
        empty = batch.slice(0, 0)
    if strange and empty is not None:
        yield from placed(empty, last=True)


def _nothing(schema: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.nulls(1, field.type) for field in schema], schema=schema)


def _short(values: Any) -> Any:
    """The fields, but those that are too long missing: so they are where rows are read one by one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.binary_length(values)
    if (pc.max(lengths).as_py() or 0) <= LONGEST:
        return values
    return pc.if_else(pc.greater(lengths, LONGEST), pa.scalar(None, values.type), values)


def _one_by_one(text: Utf8, delimiter: str, places: Sequence[int], width: int, done: int) -> Iterator[list[Any]]:
    """What ``_quick`` gives, beyond the rows that are done; in memory for some rows, however long they are."""
    import pyarrow as pa

    blocks = iter(lambda: text.read(1 << 18), b"")
    every = csv_rows(blocks, delimiter, set(places), width)
    records = (row for row in every if row or width == 1)
    # Fields may be long: no more bytes than Arrow would parse at once, or else a single row.
    found: list[list[bytes | None]] = []
    held = 0
    for row in islice(records, 1 + done, None):
        found.append([row[place] if len(row) == width else None for place in places])
        held += sum(len(field or b"") for field in found[-1])
        if len(found) == ROWS or held > BLOCK:
            yield [pa.array(column, pa.binary()) for column in zip(*found, strict=True)]
            found, held = [], 0
    if found:
        yield [pa.array(column, pa.binary()) for column in zip(*found, strict=True)]


def _part(columns: Sequence[Any], wanted: Wanted) -> Part:
    named = dict(zip(wanted.names(), columns, strict=True))
    keys = [None if name is None else field_keys(named[name]) for name in (wanted.unit, wanted.order)]
    return Part(FieldRecords(named[wanted.records]), *keys)
