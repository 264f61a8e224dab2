"""Records in Parquet, Feather and CSV files. Opening a file reads its structure; rows are read when they are summed.

Parquet footers give the structure, and row groups are read in parallel, only the columns that are needed. Feather and
Arrow files are read one record batch at a time. No error about a file quotes anything in it.

Fields of CSV files, and lines that are one field each, are bytes without a type. The score says whether they are
numbers or texts, so that no record decides how another one is read. One rule reads numbers: apart from white space
around them, ``[+-]digits[.digits][e[+-]digits]`` in ASCII, or ``true`` and ``false`` in any case. All else is odd.

After the first line, which names the columns, any bytes are rows. They never make the reading fail, because a failure
would tell of a record. A row with too few or too many fields is one odd record in its place. Arrow parses the rows. It
fails at bytes that are not UTF-8, so it reads through :class:`Utf8`, which replaces them. It stops at a row longer than
its block, such as an unclosed quote makes of all rows that follow; then :func:`csv_rows` goes on by the same rules, but
slowly.
"""

from __future__ import annotations

import codecs
import glob
import math
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt

from privatest.addresses import FORMATS, format_of
from privatest.engines.arrays import (
    NUMBERS_AT_ONCE,
    SLICE,
    ArrayRecords,
    Progress,
    ReadRows,
    RowPart,
    RowStream,
    arrow_keys,
    arrow_kind,
    arrow_records,
    as_numpy,
    import_arrow,
    key_kind,
)
from privatest.engines.keys import DECIMAL, ColumnNames, Keys, Selection
from privatest.engines.records import Column, Records, changed_data_error, each_guarded, guarded
from privatest.engines.units import records_of_rows
from privatest.errors import InvalidData, InvalidInput, shown
from privatest.numbers import suggestion
from privatest.scores import Cells, LabelCells

ENDINGS = ", ".join(ending for endings in FORMATS.values() for ending in endings)


def as_paths(source: Any) -> list[str] | None:
    """Return the paths that a source names, None if it names no files. Texts in a list are labels, not paths."""
    if isinstance(source, os.PathLike):
        named = os.fspath(source)
        return [os.fsdecode(named)]
    if isinstance(source, (list, tuple)) and source and all(issubclass(type(one), os.PathLike) for one in source):
        return [os.fsdecode(os.fspath(one)) for one in source]
    if not isinstance(source, str):
        return None
    looks_like_one = format_of(source) is not None or source.endswith("/") or ("/" in source and glob.has_magic(source))
    try:
        return [source] if looks_like_one or os.path.exists(source) else None
    except ValueError:  # a null character, which no path has
        return None


def check_no_paths(records: Iterable[Any]) -> None:
    """Raise InvalidData if all records are names of files that exist, because these were meant as paths."""

    def names_a_file(one: Any) -> bool:
        if issubclass(type(one), os.PathLike):
            return True
        return issubclass(type(one), str) and format_of(one) is not None and os.path.isfile(one)

    several = False
    for one in records:
        if not names_a_file(one):
            return
        several = True
    if several:
        raise InvalidData(
            "The data are names of files, which would be taken for records. Pass a list of paths, [Path(name), ...], "
            "or the folder or pattern itself."
        )


def files_of(paths: Sequence[str]) -> tuple[str, list[str]]:
    """Return the format and the names of all files that the paths, globs and folders name, sorted within each."""
    found: list[str] = []
    for path in paths:
        found += _files_of_one(path)
    _check_once(found)
    forms = {path: format_of(path) for path in found}
    for path, form in forms.items():
        if form is None:
            raise InvalidData(f"The file {path!r} is of no known format. Names may end with: {ENDINGS}.")
    kinds = sorted({str(form) for form in forms.values()})
    if len(kinds) > 1:
        raise InvalidData(f"The files are of different formats: {' and '.join(kinds)}. Name files of one: '*.parquet'.")
    return kinds[0], found


def _check_once(files: Sequence[str]) -> None:
    """Raise InvalidData for a file that is named twice, by links, paths or patterns: its records would count twice."""
    known: dict[Any, str] = {}
    for path in files:
        one = file_identity(path)
        if one in known:
            both = repr(path) if known[one] == path else f"{known[one]!r} and {path!r}"
            raise InvalidData(
                f"One file is reached twice, by {both}: each of its records would count twice, and cost twice the "
                "privacy. Name it once, and keep links to it out of the folder or the pattern."
            )
        known[one] = path


def file_identity(path: str) -> tuple[int, int] | str:
    """Return what identifies a file, the same for all links to it; the path itself if there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return (found.st_dev, found.st_ino) if found.st_ino else os.path.realpath(path)


def _files_of_one(path: str) -> list[str]:
    path = os.path.expanduser(path)
    if os.path.isdir(path):
        inside = sorted(_walk(path))
        found = [name for name in inside if format_of(name) is not None]
        if not found:
            raise InvalidData(f"The folder {path!r} holds no data files. Their names may end with: {ENDINGS}.")
        return found
    if os.path.exists(path):
        if not os.path.isfile(path):
            raise InvalidData(
                f"{path!r} is a pipe or a device, and data are read more than once. Save them to a file first, or pass "
                "one record a line as standard input."
            )
        return [path]
    if glob.has_magic(path):
        found = sorted(name for name in glob.glob(path, recursive=True) if os.path.isfile(name))
        if not found:
            raise InvalidData(f"No file matches {path!r}. Check the folder and the pattern.")
        return found
    folder, name = os.path.split(path)
    try:
        near = os.listdir(folder or ".")
    except OSError:
        raise InvalidData(f"No file {path!r}: there is no folder {folder!r}.") from None
    raise InvalidData(f"No file {path!r}.{suggestion(name, near)}")


def _walk(folder: str) -> list[str]:
    """Return all files below a folder but hidden ones and those that writers put beside the data (``_SUCCESS``)."""
    found = []
    for path in Path(folder).rglob("*"):
        names = path.relative_to(folder).parts
        if not any(name.startswith((".", "_")) for name in names) and path.is_file():
            found.append(str(path))
    return found


Result = TypeVar("Result")


def structure(path: str, form: str, read: Callable[[], Result]) -> Result:
    """Return what ``read`` returns about a file's structure; an error of a library becomes one about the file."""
    return guarded(lambda error: _problem(path, form, error), read)


def rows(path: str, form: str, parts: Iterator[Result]) -> Iterator[Result]:
    """Yield the parts of a file; an error of its reader, which may quote a record, becomes one about the file."""
    return each_guarded(lambda error: _problem(path, form, error), lambda: parts)


def _problem(path: str, form: str, error: BaseException) -> str:
    if isinstance(error, PermissionError):
        return f"The file {path!r} may not be read. Check its permissions."
    if isinstance(error, FileNotFoundError):
        return f"The file {path!r} is gone."
    kind = type(error).__name__
    return f"The file {path!r} cannot be read as {form} ({kind}). Is it cut short, or of another format?"


def row_part(batch: Any, wanted: ColumnNames) -> RowPart:
    """Return the rows of an Arrow batch."""
    keys = [None if name is None else arrow_keys(batch.column(name)) for name in wanted[1:]]
    return RowPart(arrow_records(batch.column(wanted.record)), *keys)


def same_columns(selection: Selection, schemas: Sequence[tuple[str, Any]]) -> ColumnNames:
    """Return the columns to read. Raises InvalidData if they are of different types in two files; see ``Selection.of``.

    Args:
        selection: the columns that the user named.
        schemas: each file and its Arrow schema.
    """
    first, known = schemas[0]
    wanted = selection.of(known.names, repr(first))
    arrow_kind(known.field(wanted.record).type, wanted.record)
    for role, name in zip(wanted._fields[1:], wanted[1:], strict=True):
        if name is not None:
            key_kind(known.field(name).type, f"a column {role}")
    for path, schema in schemas[1:]:
        replace(selection, column=wanted.record).of(schema.names, repr(path))
        for name in wanted.distinct():
            ours, theirs = known.field(name).type, schema.field(name).type
            # Numbers of different widths are read alike, but keys are compared and must be of one type.
            alike = name not in wanted[1:] and arrow_kind(ours) == arrow_kind(theirs)
            if ours != theirs and not alike:
                raise InvalidData(
                    f"Column {name!r} is {ours} in {first!r} and {theirs} in {path!r}. "
                    "Pass files whose columns have one type."
                )
    return wanted


def progress_bar(files: Sequence[str]) -> Callable[[], AbstractContextManager[Progress]]:
    """Return a progress bar of the bytes read, on standard error; one that shows nothing if that is not a terminal.

    It counts bytes and never rows: the number of people in the data may be secret, the size of the files is not.
    """

    @contextmanager
    def bar() -> Iterator[Progress]:
        if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
            yield lambda _amount: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("reading", total=sum(map(file_size, files)))
            yield lambda amount: progress.advance(task, amount)

    return bar


def file_size(path: str) -> int:
    """Return the size of a file in bytes; 0 if there is no file."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


LONGEST = 1 << 20
"""A field of more bytes than this is read as a missing one."""
Row = list[bytes | None]
_QUOTE, _RETURN, _NEWLINE = b'"\r\n'
_START, _PLAIN, _QUOTED, _AFTER_QUOTE = range(4)


class Utf8:
    """Reads a file as UTF-8 without a byte order mark.

    A byte b that is not part of UTF-8 is replaced by the character U+10FF00 + b, of the last private plane. The field
    is then neither a number nor a label, and two units that differ in such bytes stay two. If the file ends with a
    delimiter, a newline is added: otherwise Arrow takes the last field, which is empty, for quoted if the one before it
    is.
    """

    def __init__(self, raw: Any, delimiter: str) -> None:
        self._raw, self._delimiter, self.closed = raw, delimiter.encode(), False
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._first, self._ended = True, False
        self._last = b""  # the last byte so far
        self._held = b""  # read and converted, but not handed out yet

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most ``size``. A carriage return is not cut off from its newline.

        Arrow drops a newline at the start of a block after such a cut, within quotes too, and takes a block that is
        only a newline for the end of the file.
        """
        self._fill(size)
        if size > 1 and self._held[size - 1 : size] == b"\r":
            self._fill(size + 1)
            size -= self._held[size : size + 1] == b"\n"
        taken, self._held = self._held[:size], self._held[size:]
        return taken

    def put_back(self, data: bytes) -> None:
        """Make these bytes the next ones to be read."""
        self._held = data + self._held

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True

    def _fill(self, size: int) -> None:
        while len(self._held) < size and not self._ended:
            more = self._more(size - len(self._held))
            self._held = self._held + more if self._held else more

    def _more(self, size: int) -> bytes:
        block: bytes = self._raw.read(size)
        self._ended = not block
        if not block.isascii() or self._decoder.getstate()[0]:
            # First a bad byte b becomes U+DC00 + b, whose bytes ED B2 or ED B3 and one more occur in no text.
            block = self._decoder.decode(block, self._ended).encode("utf-8", "surrogatepass")
            block = block.replace(b"\xed\xb2", b"\xf4\x8f\xbe").replace(b"\xed\xb3", b"\xf4\x8f\xbf")
        if self._first and block:
            block, self._first = block.removeprefix(codecs.BOM_UTF8), False
        self._last = block[-1:] or self._last
        return block + b"\n" if self._ended and self._last == self._delimiter else block


def csv_rows(
    blocks: Iterable[bytes], delimiter: str, wanted: Collection[int] | None = None, width: int | None = None
) -> Iterator[Row]:
    """Yield the rows of a CSV text by Arrow's rules, an empty line as ``[]``. Any bytes are rows.

    A quote opens a field only at the field's start. It is closed by a quote that is not doubled, or by the end of the
    file. Rows end with a newline, a carriage return, or both.

    Args:
        blocks: the bytes of the text, in pieces.
        delimiter: what separates fields.
        wanted: positions of the fields to keep; None: all. The others may be None, as an empty field without quotes is.
        width: number of fields that matter. A longer row is given with one field more than these.
    """
    comma = delimiter.encode()
    border = re.compile(b"[%b\r\n]" % comma)
    resumed = re.compile(b'[\r\n]|(?<=%b)"' % re.escape(comma))
    row: Row = []
    field, mode, after_return = _Field(wanted is None or 0 in wanted), _START, False
    for block in blocks:
        at = 0
        while at < len(block):
            if mode == _START and not row and not after_return:
                # The usual case: a line without quotes.
                stop = block.find(b"\n", at, at + LONGEST)
                line = block[at : max(stop, at)].removesuffix(b"\r")
                if stop >= 0 and _QUOTE not in line and _RETURN not in line:
                    yield [one or None for one in line.split(comma, -1 if width is None else width)] if line else []
                    at = stop + 1
                    continue
            if mode == _START and width is not None and len(row) > width and block[at] != _QUOTE:
                # There are too many fields, and none of these is kept. Skip to the row's end or to a quote.
                found = resumed.search(block, at)
                at = found.start() if found else len(block)
                ended = found is not None and block[at] != _QUOTE
                mode = _START if not ended and block[at - 1 : at] == comma else _PLAIN
            elif mode == _START:
                newline, after_return = after_return and block[at] == _NEWLINE, False
                field.quoted = not newline and block[at] == _QUOTE
                at += newline or field.quoted
                mode = _START if newline else _QUOTED if field.quoted else _PLAIN
            elif mode == _QUOTED:
                stop = block.find(_QUOTE, at)
                field.add(block, at, stop if stop >= 0 else len(block))
                at, mode = (stop + 1, _AFTER_QUOTE) if stop >= 0 else (len(block), _QUOTED)
            elif mode == _AFTER_QUOTE:
                mode = _QUOTED if block[at] == _QUOTE else _PLAIN
                if mode == _QUOTED:
                    field.add(block, at, at + 1)
                    at += 1
            else:
                found = border.search(block, at)
                stop = found.start() if found else len(block)
                field.add(block, at, stop)
                at = stop + 1
                if not found:
                    continue
                mode, ended = _START, block[stop] in b"\r\n"
                if not (ended and not row and field.empty()) and (width is None or len(row) <= width):
                    row.append(field.value())
                if ended:
                    yield row
                    row, after_return = [], block[stop] == _RETURN
                field = _Field(wanted is None or len(row) in wanted)
    if row or mode != _START:
        yield [*row, field.value()] if width is None or len(row) <= width else row


class _Field:
    """Collects the bytes of one field if it is wanted and not too long."""

    def __init__(self, wanted: bool) -> None:
        self.quoted, self._wanted, self._size, self._bytes = False, wanted, 0, bytearray()

    def add(self, block: bytes, first: int, last: int) -> None:
        self._size += last - first
        if self._wanted and self._size <= LONGEST:
            self._bytes += block[first:last]

    def empty(self) -> bool:
        return not self.quoted and not self._size

    def value(self) -> bytes | None:
        return bytes(self._bytes) if self._wanted and self._size <= LONGEST and not self.empty() else None


ORDINARY = r"^-?[0-9]{1,30}(\.[0-9]{0,30})?([eE][+-]?[0-9]{1,2})?$"
"""Pattern of numbers that Arrow converts without failing."""
TRUTHS = {b"true": 1.0, b"false": 0.0}


@dataclass(frozen=True, eq=False)
class FieldRecords(Column):
    """Fields of a CSV file as an Arrow array of bytes; an empty field without quotes is missing."""

    chunk: ClassVar[int] = NUMBERS_AT_ONCE
    values: Any = field(repr=False)

    def count(self) -> int:
        return len(self.values)

    def index(self, cells: Cells) -> npt.NDArray[np.intp]:
        if not _reads_texts(cells):
            return self.numbers().index(cells)
        codes, distinct = self.encoded()
        known = np.array([_label_cell(field, cells) for field in distinct] + [cells.count], dtype=np.intp)
        return known[codes]

    def part(self, first: int, last: int) -> FieldRecords:
        return FieldRecords(self.values[first:last])

    def encoded(self) -> tuple[npt.NDArray[np.int64], list[bytes]]:
        """Return each field's position among the distinct fields, -1 for a missing one; and the distinct fields."""
        encoded = self.values.dictionary_encode()
        codes = encoded.indices.cast(import_arrow("A CSV file").int64())
        return as_numpy(codes, -1), encoded.dictionary.to_pylist()

    def numbers(self) -> ArrayRecords:
        """Return the fields as numbers; NaN for a field that is not a number."""
        pa = import_arrow("A CSV file")
        try:
            # If Arrow converts all of them, they are numbers by our rule too, or nan and inf, which are odd anyway.
            found = self.values.cast(pa.string()).cast(pa.float64())
        except pa.ArrowInvalid:
            return ArrayRecords(self._one_by_one())
        return ArrayRecords(as_numpy(found, math.nan))

    def _one_by_one(self) -> npt.NDArray[np.float64]:
        import pyarrow.compute as pc

        pa = import_arrow("A CSV file")
        plain = pc.match_substring_regex(self.values, ORDINARY)
        found = np.full(len(self.values), math.nan)
        found[as_numpy(plain, 0)] = as_numpy(self.values.filter(plain).cast(pa.string()).cast(pa.float64()))
        rest = pc.invert(plain)
        found[as_numpy(rest, 0)] = [field_number(field) for field in self.values.filter(rest).to_pylist()]
        return found


@dataclass(frozen=True, eq=False, repr=False)
class LineFields:
    """Lines of one field each, None for an empty line. :func:`read_lines` returns it."""

    fields: Sequence[bytes | None]

    def __repr__(self) -> str:
        return f"<{len(self.fields)} lines>"  # logs and debuggers must not show records


@dataclass(frozen=True, eq=False, repr=False)
class CsvLines:
    """A table of comma-separated fields that is not a file, such as standard input. Its first line names the columns.

    The rules are those of CSV files: a row with too few or too many fields is one missing record.
    """

    names: tuple[str, ...]
    rows: Sequence[Row]

    @classmethod
    def of(cls, blocks: Iterable[bytes]) -> CsvLines:
        """Read a table that comes in pieces."""
        rows = csv_rows(blocks, ",")
        names = tuple((name or b"").decode(errors="replace") for name in next(rows, []))
        odd: Row = [None] * len(names)
        kept = [row if len(row) == len(names) else odd for row in rows if row or len(names) == 1]
        return cls(names, kept)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.names

    def __getitem__(self, name: str) -> LineFields:
        """Return the fields of one column."""
        place = self.names.index(name)
        return LineFields([row[place] for row in self.rows])

    def __repr__(self) -> str:
        return f"<{len(self.rows)} rows of {len(self.names)} columns>"


def line_keys(lines: LineFields) -> Keys:
    """Return fields as keys, byte by byte."""
    known: dict[bytes, int] = {}
    codes = [-1 if field is None else known.setdefault(field, len(known)) for field in lines.fields]
    found = np.array(codes, dtype=np.int64)
    return Keys(np.maximum(found, 0), found >= 0, list(known), untyped=True)


def read_lines(lines: Iterable[bytes | str], *, table: bool = False) -> LineFields | CsvLines:
    """Return lines as a source of records: each line is one record, read like a field of a CSV file.

    Ends of lines, and quotes around a field, are removed. A line that makes no sense is an odd record, not an error.

    Args:
        lines: texts or bytes, such as an open file.
        table: whether the lines are a table: fields separated by commas, with the names of the columns in the first
            line.

    >>> import privatest as pt
    >>> pt.data.count_records(pt.data.read_lines(["3", " 0.5", "often", ""]))
    4
    """
    try:
        found = iter(lines)
    except TypeError:
        raise InvalidData(f"lines={shown(lines)} must be lines of text, such as a list or an open file.") from None
    if table:
        return CsvLines.of(_line_bytes(line).removesuffix(b"\n") + b"\n" for line in found)
    return LineFields([_line_field(line) for line in found])


def _line_bytes(line: bytes | str) -> bytes:
    if not isinstance(line, (bytes, str)):
        raise InvalidData(f"A line is a {type(line).__name__}, not text. Pass numbers as they are, without read_lines.")
    return line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")


def _line_field(line: bytes | str) -> bytes | None:
    raw = _line_bytes(line).removesuffix(b"\n").removesuffix(b"\r")
    if raw.startswith(b'"'):
        return next(csv_rows([raw], "\n"))[0]  # a line holds no newline, so it is one field
    return raw if 0 < len(raw) <= LONGEST else None


@dataclass(frozen=True, eq=False)
class LineRecords(Column):
    """Lines as records, without Arrow. Their cells are those of :class:`FieldRecords`."""

    values: Sequence[bytes | None] = field(repr=False)

    def count(self) -> int:
        return len(self.values)

    def index(self, cells: Cells) -> npt.NDArray[np.intp]:
        if not _reads_texts(cells):
            return ArrayRecords(np.array([field_number(field) for field in self.values], dtype=np.float64)).index(cells)
        known = {field: _label_cell(field, cells) for field in set(self.values)}
        return np.array([known[field] for field in self.values], dtype=np.intp)

    def part(self, first: int, last: int) -> LineRecords:
        return LineRecords(self.values[first:last])


def _reads_texts(cells: Cells) -> TypeGuard[LabelCells]:
    return isinstance(cells, LabelCells) and any(isinstance(label, (str, bytes)) for label in cells.labels)


def field_number(field: bytes | None) -> float:
    """Return the number that a field is written as; NaN, which is odd, for anything else.

    >>> field_number(b" 1.5e3"), field_number(b"TRUE"), field_number(b"1_000"), field_number(b"")
    (1500.0, 1.0, nan, nan)
    """
    if field is None:
        return math.nan
    text = field.strip(b" \t\r\n\v\f")
    if text.lower() in TRUTHS:
        return TRUTHS[text.lower()]
    return float(text) if text.isascii() and DECIMAL.fullmatch(text.decode("ascii")) else math.nan


def _label_cell(field: bytes | None, cells: LabelCells) -> int:
    """Return the cell of the label that is this text, or else of the label that is this number."""
    if field is None:
        return cells.count
    try:
        found = cells.index_of(field.decode())
    except UnicodeDecodeError:
        return cells.count
    if found < cells.rest:
        return found
    as_number = int(cells.index(np.array([field_number(field)]))[0])
    return as_number if as_number < cells.count else found


def field_keys(values: Any) -> Keys:
    """Return an Arrow array of fields as keys, byte by byte."""
    codes, distinct = FieldRecords(values).encoded()
    return Keys(np.maximum(codes, 0), codes >= 0, distinct, untyped=True)


BLOCK = 1 << 23
"""Bytes that Arrow parses at once. It cannot parse a longer row, and the first line must not be longer."""
BYTES = 1 << 16
"""Bytes that csv_rows gets at once."""
LONGEST_NAME = 100
"""The most characters of a column's name; a longer one is taken for a record."""
LOOKED_AT = 100
"""Number of rows that are compared with the first line, to see whether it is one of them."""
ROWS = 1 << 14
"""Number of rows in a part, where rows are read one by one."""


def csv_stream(files: Sequence[str], selection: Selection, delimiter: str | None = None) -> RowStream:
    """Return the rows of CSV files. Only their first lines are read now."""
    pa = import_arrow("A CSV file")
    opened = [CsvFile(path, delimiter) for path in files]
    wanted = selection.of(opened[0].names, repr(files[0]), apart=False)
    for file in opened[1:]:
        # The names are not quoted: in a file that lacks them they are a record.
        if any(file.names.count(name) != 1 for name in wanted.distinct()):
            raise InvalidData(
                f"The first line of {file.path!r} does not name the columns that are read of {files[0]!r}, each once. "
                "Pass files whose first lines name the same columns."
            )
    runs = [partial(file.parts, wanted) for file in opened]
    return RowStream(runs, FieldRecords(pa.nulls(0, pa.binary())), bar=progress_bar(files))


class CsvFile:
    """A CSV file. Its first line is read now; its rows are read later, if the first line is still the same.

    Attributes:
        path: path of the file.
        names: names of its columns.
    """

    def __init__(self, path: str, delimiter: str | None = None) -> None:
        self.path = path
        self._delimiter = delimiter or ("\t" if ".tsv" in os.path.basename(path).lower() else ",")
        self.names = structure(path, "CSV", self._read_names)

    def parts(self, wanted: ColumnNames, progress: Progress) -> Iterator[RowPart]:
        """Yield the rows of the wanted columns, in order."""
        return rows(self.path, "CSV", self._parts(wanted, progress))

    def starts_with_a_row(self) -> bool:
        """Whether the first line looks like a row rather than like names.

        It does if one of its fields is empty, occurs twice, starts as a number or a date does, or equals the field of
        one of the first rows in the same column.
        """
        names = [name.strip() for name in self.names]
        odd = [
            not name or len(name) > LONGEST_NAME or name[0] in "0123456789+-." or not name.isprintable()
            for name in names
        ]
        known = [not math.isnan(field_number(name.encode())) for name in names]  # true and false are numbers here
        if any(odd) or any(known) or len(set(names)) < len(names):
            return True
        with self._text() as (_, text):
            below = islice(csv_rows(_blocks(text, BLOCK), self._delimiter), 1, 1 + LOOKED_AT)
            return any(
                name == (field or b"").decode(errors="replace").strip()
                for row in below
                for name, field in zip(names, row, strict=False)
            )

    @contextmanager
    def _text(self) -> Iterator[tuple[Any, Utf8]]:
        """Yield the open file and its text, decompressed if its name says that it is compressed."""
        import pyarrow as pa  # an extra

        plain = self.path.lower().endswith((".csv", ".tsv"))
        with open(self.path, "rb") as raw:
            file = raw if plain else pa.input_stream(raw, compression=pa.Codec.detect(self.path).name)
            yield raw, Utf8(file, self._delimiter)

    def _read_names(self) -> list[str]:
        with self._text() as (_, text):
            names = self._names_of(text)
        if not names or (len(names) == 1 and names[0] and not names[0].strip()):
            raise InvalidData(f"The file {self.path!r} is empty: its first line must name the columns.")
        return names

    def _names_of(self, text: Utf8) -> list[str]:
        """Return the fields of the first line, and put the line back."""
        blocks: list[bytes] = []

        def taken() -> Iterator[bytes]:
            for block in _blocks(text, BLOCK):
                blocks.append(block)
                yield block
            if text.read(1):
                raise InvalidData(
                    f"The first line of {self.path!r} has more than {BLOCK:,} bytes. It must name the columns; is a "
                    "quote left open?"
                )

        names = next(csv_rows(taken(), self._delimiter), [])
        text.put_back(b"".join(blocks))
        return [(name or b"").decode() for name in names]

    def _parts(self, wanted: ColumnNames, progress: Progress) -> Iterator[RowPart]:
        reported = 0
        for columns, place in self._columns(wanted.distinct()):
            named = dict(zip(wanted.distinct(), columns, strict=True))
            keys = [None if name is None else field_keys(named[name]) for name in wanted[1:]]
            yield RowPart(FieldRecords(named[wanted.record]), *keys)
            progress(max(place - reported, 0))
            reported = max(place, reported)

    def _columns(self, names: Sequence[str]) -> Iterator[tuple[list[Any], int]]:
        """Yield the columns of some rows as Arrow arrays, and the position in the file after them."""
        import pyarrow as pa  # an extra

        places, width, done = [self.names.index(name) for name in names], len(self.names), 0
        with self._text() as (raw, text):
            if self._names_of(text) != self.names:
                raise changed_data_error(f"the first line of {self.path!r} is another one")
            try:
                for columns in _quick(text, self._delimiter, places, width):
                    done += len(columns[0])
                    yield columns, raw.tell()
                return
            except pa.ArrowInvalid:
                pass  # a row is too long for Arrow: it and all rows after it are read one by one
        with self._text() as (raw, text):
            for columns in _one_by_one(text, self._delimiter, places, width, done):
                yield columns, raw.tell()


def _blocks(text: Utf8, most: float = math.inf) -> Iterator[bytes]:
    """Yield the bytes of a text in pieces, ``most`` bytes at most."""
    while most > 0 and (block := text.read(int(min(most, BYTES)))):
        most -= len(block)
        yield block


def _quick(text: Utf8, delimiter: str, places: Sequence[int], width: int) -> Iterator[list[Any]]:
    """Yield the columns of the rows after the first line, parsed by Arrow."""
    import pyarrow as pa
    import pyarrow.csv

    strange: deque[int] = deque()  # places of the rows with another number of fields, in order

    def skip(row: Any) -> str:
        strange.append(row.number - 1)
        return "skip"

    # Columns are called by number, because names of columns that are not read may repeat.
    names = [str(place) for place in range(width)]
    reader = pa.csv.open_csv(
        text,
        # With several threads Arrow does not report the places of invalid rows.
        read_options=pa.csv.ReadOptions(use_threads=False, block_size=BLOCK, column_names=names),
        parse_options=pa.csv.ParseOptions(
            delimiter=delimiter,
            newlines_in_values=True,
            # In a file of one column an empty line is a missing record.
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
    """Yield the rows after the first line, with an odd one in the place of each row that Arrow skipped."""
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
    """Return the fields, with missing ones in place of those that are too long."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.binary_length(values)
    if (pc.max(lengths).as_py() or 0) <= LONGEST:
        return values
    return pc.if_else(pc.greater(lengths, LONGEST), pa.scalar(None, values.type), values)


def _one_by_one(text: Utf8, delimiter: str, places: Sequence[int], width: int, done: int) -> Iterator[list[Any]]:
    """Yield the same columns as :func:`_quick`, from row ``done`` on, with bounded memory however long rows are."""
    import pyarrow as pa

    every = csv_rows(_blocks(text), delimiter, set(places), width)
    records = (row for row in every if row or width == 1)
    # Fields may be long, so a part has no more bytes than Arrow parses at once, unless it is a single row.
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


BATCH = 1 << 20
"""Number of rows of a Parquet file that are read at a time."""
TEXT_BATCH = 1 << 16
"""The same where a record may be a long text."""
BUFFER = 1 << 20
"""Bytes that are read ahead, so that not all of a row group's column is in memory."""


def parquet_stream(files: Sequence[str], selection: Selection) -> RowStream:
    """Return the rows of Parquet files. Only their footers are read now."""
    pa = import_arrow("A Parquet file")
    footers = [_footer(path) for path in files]
    wanted = same_columns(selection, [(path, schema) for path, (_, schema) in zip(files, footers, strict=True)])
    runs = []
    for path, (metadata, schema) in zip(files, footers, strict=True):
        short = all(_is_short(schema.field(name).type) for name in wanted.distinct())
        batch = BATCH if short else TEXT_BATCH
        runs += [_row_group(path, metadata, group, wanted, batch) for group in range(metadata.num_row_groups)]
    count = sum(metadata.num_rows for metadata, _ in footers)
    sample = arrow_records(pa.nulls(0, footers[0][1].field(wanted.record).type), wanted.record)
    return RowStream(runs, sample, rows=count, bar=progress_bar(files))


def _is_short(kind: Any) -> bool:
    """Whether every value of an Arrow type takes a few bytes."""
    return bool(import_arrow("A Parquet file").types.is_primitive(kind))


def _footer(path: str) -> tuple[Any, Any]:
    import pyarrow.parquet as pq

    def read() -> tuple[Any, Any]:
        with pq.ParquetFile(path) as file:
            return file.metadata, file.schema_arrow

    return structure(path, "Parquet", read)


def _row_group(path: str, metadata: Any, group: int, wanted: ColumnNames, size: int) -> ReadRows:
    import pyarrow.parquet as pq

    def read(progress: Progress) -> Iterator[RowPart]:
        with pq.ParquetFile(path, metadata=metadata, pre_buffer=False, buffer_size=BUFFER) as file:
            for batch in file.iter_batches(size, row_groups=[group], columns=wanted.distinct(), use_threads=False):
                yield row_part(batch, wanted)
        progress(file_size(path) // metadata.num_row_groups)

    return lambda progress: rows(path, "Parquet", read(progress))


MAGIC = b"ARROW1"
"""First bytes of an Arrow file whose batches can be read by number."""


def feather_stream(files: Sequence[str], selection: Selection) -> RowStream:
    """Return the rows of Feather files. Only their schemas and numbers of batches are read now."""
    pa = import_arrow("A Feather file")
    found = [_structure(path) for path in files]
    wanted = same_columns(selection, [(path, schema) for path, (schema, _) in zip(files, found, strict=True)])
    runs = []
    for path, (schema, batches) in zip(files, found, strict=True):
        places = [schema.get_field_index(name) for name in wanted.distinct()]
        if batches is None:
            runs.append(_streamed(path, wanted))
        else:
            runs += [_batch(path, number, batches, wanted, places) for number in range(batches)]
    sample = arrow_records(pa.nulls(0, found[0][0].field(wanted.record).type), wanted.record)
    return RowStream(runs, sample, bar=progress_bar(files))


@contextmanager
def _opened(path: str, places: Sequence[int] | None = None) -> Iterator[Any]:
    """Yield a reader of the file: of batches by number or, in the streaming format, of one batch after the other."""
    import pyarrow as pa

    options = pa.ipc.IpcReadOptions(included_fields=list(places) if places else None, use_threads=False)
    with open(path, "rb") as probe:
        random_access = probe.read(len(MAGIC)) == MAGIC
    with pa.OSFile(path, "rb") as file:
        open_it = pa.ipc.open_file if random_access else pa.ipc.open_stream
        with open_it(file, options=options) as reader:
            yield reader


def _structure(path: str) -> tuple[Any, int | None]:
    def read() -> tuple[Any, int | None]:
        with _opened(path) as reader:
            return reader.schema, getattr(reader, "num_record_batches", None)

    return structure(path, "Feather", read)


def _batch(path: str, number: int, batches: int, wanted: ColumnNames, places: Sequence[int]) -> ReadRows:
    def read(progress: Progress) -> Iterator[RowPart]:
        with _opened(path, places) as reader:
            yield from _slices(reader.get_batch(number), wanted)
        progress(file_size(path) // batches)

    return lambda progress: rows(path, "Feather", read(progress))


def _streamed(path: str, wanted: ColumnNames) -> ReadRows:
    def read(progress: Progress) -> Iterator[RowPart]:
        with _opened(path) as reader:
            for batch in reader:
                yield from _slices(batch, wanted)
        progress(file_size(path))

    return lambda progress: rows(path, "Feather", read(progress))


def _slices(batch: Any, wanted: ColumnNames) -> Iterator[RowPart]:
    for first in range(0, batch.num_rows, SLICE):
        yield row_part(batch.slice(first, SLICE), wanted)


def names_in(paths: Sequence[str]) -> list[str]:
    """Return the names of the columns; see :func:`privatest.data.column_names`."""
    form, files = files_of(paths)
    import_arrow(f"A file of the format {form}")
    if form == "Parquet":
        return list(_footer(files[0])[1].names)
    if form == "Feather":
        return list(_structure(files[0])[0].names)
    first = CsvFile(files[0])
    if first.starts_with_a_row():
        raise InvalidData(
            f"The first line of {files[0]!r} does not look like names of columns, but like a record; it is not shown. "
            "Write the names there, or name the column yourself."
        )
    return first.names


def open_files(paths: Sequence[str], selection: Selection, delimiter: str | None = None) -> Records:
    """Return the records of Parquet, CSV or Feather files, in the order of the files' names."""
    form, files = files_of(paths)
    if delimiter is not None and form != "CSV":
        raise InvalidInput(f"delimiter={delimiter!r} is about CSV files, and these are {form} files. Leave it out.")
    import_arrow(f"A file of the format {form}")
    if form == "CSV":
        stream = csv_stream(files, selection, delimiter)
    else:
        stream = (parquet_stream if form == "Parquet" else feather_stream)(files, selection)
    return records_of_rows(stream, selection.most, selection.order)
