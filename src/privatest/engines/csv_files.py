"""CSV files, plain or compressed: every field is text until a score asks for numbers, so no record decides a type.

A row with too few or too many fields is one odd record at its place; it neither stops the reading nor vanishes. No
row does: past the first line, which names the columns, any bytes are rows.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from privatest.engines.arrow import import_arrow
from privatest.engines.fields import LONGEST, FieldRecords, Utf8, csv_rows, field_keys
from privatest.engines.paths import Wanted, progress_bar, rows, structure
from privatest.engines.streams import Part, Piece, Progress, Stream
from privatest.errors import InvalidData

__all__ = ["csv_stream"]

# Bytes that Arrow parses at once; it cannot parse rows that are longer. Of the first line, the most there may be.
BLOCK = 1 << 23
# Rows that are read one by one are handed on in this number.
ROWS = 1 << 14


def csv_stream(files: Sequence[str], choose: Callable[[Sequence[str], str], Wanted]) -> Stream:
    """The rows of the files; only their first lines are read now."""
    pa = import_arrow("A CSV file")
    headers = [_header(path) for path in files]
    wanted = choose(headers[0], repr(files[0]))
    for path, names in zip(files[1:], headers[1:], strict=True):
        if any(
            names.count(name) != 1 for name in wanted.names()
        ):  # not quoted: of files without names they are records
            raise InvalidData(
                f"The first line of {path!r} does not name the columns that are read of {files[0]!r}, each once. Pass "
                "files whose first lines name the same columns."
            )
    pieces = [_piece(path, wanted, names) for path, names in zip(files, headers, strict=True)]
    return Stream(pieces, FieldRecords(pa.nulls(0, pa.binary())), bar=progress_bar(files))


def _delimiter(path: str) -> str:
    return "\t" if ".tsv" in os.path.basename(path).lower() else ","


@contextmanager
def _text(path: str, progress: Progress | None = None) -> Iterator[Utf8]:
    """The text of the file, decompressed as its name says."""
    import pyarrow as pa

    with open(path, "rb") as raw:
        compression = pa.Codec.detect(path).name if not path.lower().endswith((".csv", ".tsv")) else None
        counted = raw if progress is None else _Counted(raw, progress)
        if compression is None:
            yield Utf8(counted, _delimiter(path))
            return
        with pa.input_stream(counted, compression=compression) as file:
            yield Utf8(file, _delimiter(path))


class _Counted:
    """A file that tells how many bytes were read of it."""

    def __init__(self, raw: Any, progress: Progress) -> None:
        self._raw, self._progress, self.closed = raw, progress, False

    def read(self, size: int = -1) -> bytes:
        found: bytes = self._raw.read(size)
        self._progress(len(found))
        return found

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


def _header(path: str) -> list[str]:
    """The names of the columns."""

    def ask() -> list[str]:
        with _text(path) as file:
            first = next(csv_rows(_start(file, path), _delimiter(path)), [])
        if not first or (len(first) == 1 and first[0] and not first[0].strip()):
            raise InvalidData(f"The file {path!r} is empty: its first line must name the columns.")
        return [(name or b"").decode() for name in first]

    return structure(path, "CSV", ask)


def _start(file: Utf8, path: str) -> Iterator[bytes]:
    left = BLOCK
    while left and (block := file.read(min(left, 1 << 16))):
        left -= len(block)
        yield block
    if not left and file.read(1):
        raise InvalidData(
            f"The first line of {path!r} has more than {BLOCK:,} bytes. It must name the columns; is a quote left open?"
        )


def _piece(path: str, wanted: Wanted, header: Sequence[str]) -> Piece:
    places = [header.index(name) for name in wanted.names()]

    def read(progress: Progress) -> Iterator[Part]:
        import pyarrow as pa

        seen = done = 0

        def count(amount: int) -> None:
            nonlocal seen
            seen += amount
            progress(amount)

        def count_again(amount: int) -> None:
            nonlocal seen
            seen -= amount
            if seen < 0:
                progress(-seen)
                seen = 0

        try:
            for columns in _quick(path, places, len(header), count):
                done += len(columns[0])
                yield _part(columns, wanted)
            return
        except pa.ArrowInvalid:
            pass  # A row too long for Arrow: it and all after it are read one by one.
        for columns in _one_by_one(path, places, len(header), count_again, done):
            yield _part(columns, wanted)

    return Piece(lambda progress: rows(path, "CSV", read(progress)))


def _quick(path: str, places: Sequence[int], width: int, progress: Progress) -> Iterator[list[Any]]:
    """The columns of the rows after the header, some rows at a time, parsed by Arrow."""
    import pyarrow as pa
    import pyarrow.csv

    strange: deque[int] = deque()  # places of the rows that do not fit, in order

    def skip(row: Any) -> str:
        strange.append(row.number - 1)
        return "skip"

    # Columns by number: the names of those that are not read may repeat or be no text.
    names = [str(place) for place in range(width)]
    with _text(path, progress) as file:
        reader = pa.csv.open_csv(
            file,
            # In one thread: only so are rows that do not fit reported with their places.
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=BLOCK, column_names=names),
            parse_options=pa.csv.ParseOptions(
                delimiter=_delimiter(path),
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


def _one_by_one(path: str, places: Sequence[int], width: int, progress: Progress, done: int) -> Iterator[list[Any]]:
    """What ``_quick`` gives, beyond the rows that are done; in memory for some rows, however long they are."""
    import pyarrow as pa

    with _text(path, progress) as file:
        blocks = iter(lambda: file.read(1 << 18), b"")
        every = csv_rows(blocks, _delimiter(path), set(places), width)
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
