"""CSV files, plain or compressed: every field is text until a score asks for numbers, so no record decides a type.

A row with too few or too many fields is one odd record at its place; it neither stops the reading nor vanishes.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from privatest.engines.arrow import import_arrow
from privatest.engines.fields import FieldRecords, field_keys
from privatest.engines.files import Wanted, progress_bar, readable
from privatest.engines.names import choose as choose_names
from privatest.engines.streams import Part, Piece, Progress, Stream
from privatest.errors import InvalidData

__all__ = ["csv_stream"]

# The longest row that can be read is about this long.
BLOCK = 1 << 23


def csv_stream(files: Sequence[str], choose: Callable[[Sequence[str], str], Wanted]) -> Stream:
    """The rows of the files; only their first lines are read now."""
    pa = import_arrow("A CSV file")
    headers = [_header(path) for path in files]
    wanted = choose(headers[0], repr(files[0]))
    for path, names in zip(files[1:], headers[1:], strict=True):
        choose_names(names, *wanted, repr(path))
    size = sum(os.path.getsize(path) for path in files)
    pieces = [_piece(path, wanted, names) for path, names in zip(files, headers, strict=True)]
    return Stream(pieces, FieldRecords(pa.nulls(0, pa.binary())), bar=progress_bar(size, "bytes"))


def _delimiter(path: str) -> str:
    return "\t" if ".tsv" in os.path.basename(path).lower() else ","


@contextmanager
def _unpacked(path: str, progress: Progress | None = None) -> Iterator[Any]:
    """The bytes of the file, decompressed as its name says."""
    import pyarrow as pa

    with open(path, "rb") as raw:
        compression = pa.Codec.detect(path).name if not path.lower().endswith((".csv", ".tsv")) else None
        counted = raw if progress is None else _Counted(raw, progress)
        with pa.input_stream(counted, compression=compression) as file:
            yield file


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
    with readable(path, "CSV"), _unpacked(path) as file:
        # Bytes that are no UTF-8 in a name are no reason to fail: that column can just not be named.
        line = _first_line(file).decode("utf-8-sig", "replace")
        if not line.strip():
            raise InvalidData(f"The file {path!r} is empty: its first line must name the columns.")
        return next(csv.reader(io.StringIO(line, newline=""), delimiter=_delimiter(path)))


def _first_line(file: Any) -> bytes:
    """Up to the first end of line that is not inside quotes."""
    found = bytearray()
    while more := file.read(1 << 16):
        found += more
        quoted = False
        for place, byte in enumerate(found):
            if byte == ord('"'):
                quoted = not quoted
            elif byte in b"\r\n" and not quoted:
                return bytes(found[:place])
        if len(found) > BLOCK:
            break
    return bytes(found)


def _piece(path: str, wanted: Wanted, header: Sequence[str]) -> Piece:
    import pyarrow as pa
    import pyarrow.csv

    def read(progress: Progress) -> Iterator[Part]:
        strange: list[int] = []  # places of the rows that do not fit, in order

        def skip(row: Any) -> str:
            strange.append(row.number - 1)
            return "skip"

        # Columns by number: the names of those that are not read may repeat or be no text.
        columns = [str(place) for place in range(len(header))]
        names = {name: columns[header.index(name)] for name in wanted.names()}
        with readable(path, "CSV"), _unpacked(path, progress) as file:
            reader = pa.csv.open_csv(
                file,
                # In one thread: only so are rows that do not fit reported with their places.
                read_options=pa.csv.ReadOptions(use_threads=False, block_size=BLOCK, column_names=columns),
                parse_options=pa.csv.ParseOptions(
                    delimiter=_delimiter(path),
                    newlines_in_values=True,
                    # Of a single column an empty line is a missing record.
                    ignore_empty_lines=len(header) > 1,
                    invalid_row_handler=skip,
                ),
                convert_options=pa.csv.ConvertOptions(
                    check_utf8=False,
                    include_columns=list(names.values()),
                    column_types=dict.fromkeys(columns, pa.binary()),
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
            yield from _with_strange(reader, strange, names, wanted)

    return Piece(read)


def _with_strange(reader: Any, strange: list[int], names: dict[str, str], wanted: Wanted) -> Iterator[Part]:
    """The rows of the reader after the header, with an odd one at the place of each row that does not fit."""
    import pyarrow as pa

    place = 0

    def placed(batch: Any, last: bool) -> Any:
        nonlocal place
        pieces, used = [], 0
        while strange and (last or strange[0] <= place + batch.num_rows - used):
            ahead = strange.pop(0) - place
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
        found = placed(batch, last=False)
        for one in found:
            row = one.slice(1) if first else one
            first = False
            yield _part(row, names, wanted)
        empty = batch.slice(0, 0)
    if strange and empty is not None:
        for one in placed(empty, last=True):
            yield _part(one, names, wanted)


def _nothing(schema: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.nulls(1, field.type) for field in schema], schema=schema)


def _part(batch: Any, names: dict[str, str], wanted: Wanted) -> Part:
    keys = [None if name is None else field_keys(batch.column(names[name])) for name in (wanted.unit, wanted.order)]
    return Part(FieldRecords(batch.column(names[wanted.records])), *keys)
