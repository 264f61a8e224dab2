"""Records in Parquet, Feather and CSV files. Opening a file reads its structure; rows are read when they are summed.

Parquet footers give the structure, and row groups are read in parallel, only the columns that are needed. Feather and
Arrow files are read one record batch at a time; CSV files as :mod:`privatest.engines.csv_fields` says. No error about a
file quotes anything in it.
"""

from __future__ import annotations

import glob
import io
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from privatest.data_addresses import FORMATS, format_of
from privatest.engines.arrays import (
    SLICE,
    FieldRecords,
    Progress,
    ReadRows,
    RowPart,
    RowStream,
    arrow_keys,
    arrow_kind,
    arrow_records,
    field_keys,
    import_arrow,
    key_kind,
)
from privatest.engines.csv_fields import CsvText, Row, Utf8, csv_columns, csv_rows, field_number, field_text
from privatest.engines.key_columns import ColumnNames, Selection
from privatest.engines.records import Records, changed_data_error, each_guarded, guarded
from privatest.engines.rows_per_person import records_of_rows
from privatest.errors import InvalidData, InvalidInput
from privatest.numbers import suggestion
from privatest.progress_events import part

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
    result: list[str] = []
    for path in paths:
        result += _files_of_one(path)
    _check_once(result)
    forms = {path: format_of(path) for path in result}
    for path, form in forms.items():
        if form is None:
            raise InvalidData(f"The file {path!r} is of no known format. Names may end with: {ENDINGS}.")
    kinds = sorted({str(form) for form in forms.values()})
    if len(kinds) > 1:
        raise InvalidData(f"The files are of different formats: {' and '.join(kinds)}. Name files of one: '*.parquet'.")
    return kinds[0], result


def _check_once(files: Sequence[str]) -> None:
    """Raise InvalidData for a file that is named twice, by links, paths or patterns: its records would count twice."""
    paths: dict[Any, str] = {}
    for path in files:
        one = file_identity(path)
        if one in paths:
            both = repr(path) if paths[one] == path else f"{paths[one]!r} and {path!r}"
            raise InvalidData(
                f"One file is reached twice, by {both}: each of its records would count twice, and cost twice the "
                "privacy. Name it once, and keep links to it out of the folder or the pattern."
            )
        paths[one] = path


def file_identity(path: str) -> tuple[int, int] | str:
    """Return what identifies a file, the same for all links to it; the path itself if there is no file."""
    try:
        result = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return (result.st_dev, result.st_ino) if result.st_ino else os.path.realpath(path)


def _files_of_one(path: str) -> list[str]:
    path = os.path.expanduser(path)
    if os.path.isdir(path):
        inside = sorted(_walk(path))
        result = [name for name in inside if format_of(name) is not None]
        if not result:
            raise InvalidData(f"The folder {path!r} holds no data files. Their names may end with: {ENDINGS}.")
        return result
    if os.path.exists(path):
        if not os.path.isfile(path):
            raise InvalidData(
                f"{path!r} is a pipe or a device, and data are read more than once. Save them to a file first, or pass "
                "one record a line as standard input."
            )
        return [path]
    if glob.has_magic(path):
        result = sorted(name for name in glob.glob(path, recursive=True) if os.path.isfile(name))
        if not result:
            raise InvalidData(f"No file matches {path!r}. Check the folder and the pattern.")
        return result
    folder, name = os.path.split(path)
    try:
        near = os.listdir(folder or ".")
    except OSError:
        raise InvalidData(f"No file {path!r}: there is no folder {folder!r}.") from None
    raise InvalidData(f"No file {path!r}.{suggestion(name, near)}")


def _walk(folder: str) -> list[str]:
    """Return all files below a folder but hidden ones and those that writers put beside the data (``_SUCCESS``)."""
    result = []
    for path in Path(folder).rglob("*"):
        names = path.relative_to(folder).parts
        if not any(name.startswith((".", "_")) for name in names) and path.is_file():
            result.append(str(path))
    return result


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
    first, first_schema = schemas[0]
    wanted = selection.of(first_schema.names, repr(first))
    arrow_kind(first_schema.field(wanted.record).type, wanted.record)
    for role, name in zip(wanted._fields[1:], wanted[1:], strict=True):
        if name is not None:
            key_kind(first_schema.field(name).type, f"a column {role}")
    for path, schema in schemas[1:]:
        replace(selection, column=wanted.record).of(schema.names, repr(path))
        for name in wanted.distinct():
            ours, theirs = first_schema.field(name).type, schema.field(name).type
            # Numbers of different widths are read alike, but keys are compared and must be of one type.
            alike = name not in wanted[1:] and arrow_kind(ours) == arrow_kind(theirs)
            if ours != theirs and not alike:
                raise InvalidData(
                    f"Column {name!r} is {ours} in {first!r} and {theirs} in {path!r}. "
                    "Pass files whose columns have one type."
                )
    return wanted


def progress_bar(files: Sequence[str]) -> Callable[[], AbstractContextManager[Progress]]:
    """Return what reports the progress of a reading to the listener of ``pt.progress``, if there is one.

    It counts bytes and never rows: the number of people in the data may be secret, the size of the files is not.
    """

    @contextmanager
    def bar() -> Iterator[Progress]:
        with part("reading bytes", sum(map(file_size, files))) as report:
            done = [0]

            def advance(amount: int) -> None:
                done[0] += amount
                report(done[0])

            yield advance

    return bar


def file_size(path: str) -> int:
    """Return the size of a file in bytes; 0 if there is no file."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


HEAD = 1 << 20
"""Bytes that are read for the first line; it must not be longer."""
LONGEST_NAME = 100
"""The most characters of a column's name; a longer one is taken for a record."""
LOOKED_AT = 100
"""Number of rows that are compared with the first line, to see whether it is one of them."""


def csv_stream(files: Sequence[CsvFile], selection: Selection) -> RowStream:
    """Return the rows of CSV files. Only their first lines have been read."""
    pa = import_arrow("A CSV file")
    wanted = selection.of(files[0].names, repr(files[0].path), apart=False)
    for file in files[1:]:
        # The names are not quoted: in a file that lacks them they are a record.
        if any(file.names.count(name) != 1 for name in wanted.distinct()):
            raise InvalidData(
                f"The first line of {file.path!r} does not name the columns that are read of {files[0].path!r}, each "
                "once. Pass files whose first lines name the same columns."
            )
    runs = [partial(file.parts, wanted) for file in files]
    bar = progress_bar([file.path for file in files])
    return RowStream(runs, FieldRecords(pa.nulls(0, pa.binary())), bar=bar)


class CsvFile:
    """A CSV file. Its first line is read now; its rows are read later, if the first line is still the same.

    Attributes:
        path: path of the file; what messages call a text that lies in no file.
        names: names of its columns.
    """

    def __init__(self, path: str, delimiter: str | None = None, content: bytes | None = None) -> None:
        self.path, self._content = path, content
        self._delimiter = delimiter or ("\t" if ".tsv" in os.path.basename(path).lower() else ",")
        self.names = [field_text(name or b"") for name in structure(path, "CSV", self._first_rows)[0]]

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
        numeric = [not math.isnan(field_number(name)) for name in names]  # true and false are numbers here
        if any(odd) or any(numeric) or len(set(names)) < len(names):
            return True
        return any(
            name == field_text(field or b"").strip()
            for row in structure(self.path, "CSV", self._first_rows)[1:]
            for name, field in zip(names, row, strict=False)
        )

    @contextmanager
    def _text(self) -> Iterator[tuple[Any, Utf8]]:
        """Yield the open file and its text, decompressed if its name says that it is compressed."""
        import pyarrow as pa  # an extra

        plain = self._content is not None or self.path.lower().endswith((".csv", ".tsv"))
        with open(self.path, "rb") if self._content is None else io.BytesIO(self._content) as raw:
            yield raw, Utf8(raw if plain else pa.input_stream(raw, compression=pa.Codec.detect(self.path).name))

    def _first_rows(self) -> list[Row]:
        """Return the first line and at most ``LOOKED_AT`` rows after it."""
        with self._text() as (_, text):
            head = text.read(HEAD)
        result = list(islice(csv_rows([head], self._delimiter), 1 + LOOKED_AT))
        if len(head) == HEAD and len(result) < 2:
            raise InvalidData(
                f"The first line of {self.path!r} has more than {HEAD:,} bytes. It must name the columns; is a quote "
                "left open?"
            )
        if not result or not b"".join(name or b"" for name in result[0]).strip():
            raise InvalidData(f"The file {self.path!r} is empty: its first line must name the columns.")
        return result

    def _parts(self, wanted: ColumnNames, progress: Progress) -> Iterator[RowPart]:
        names, reported, begun = wanted.distinct(), 0, False
        places = [self.names.index(name) for name in names]
        with self._text() as (raw, text):
            for columns in csv_columns(text, self._delimiter, places, len(self.names)):
                if not begun:
                    if [column[0].as_py() or b"" for column in columns] != [name.encode() for name in names]:
                        break
                    columns, begun = [column.slice(1) for column in columns], True
                named = dict(zip(names, columns, strict=True))
                keys = [None if name is None else field_keys(named[name]) for name in wanted[1:]]
                yield RowPart(FieldRecords(named[wanted.record]), *keys)
                place = raw.tell()
                progress(max(place - reported, 0))
                reported = max(place, reported)
        if not begun:
            raise changed_data_error(f"the first line of {self.path!r} is another one")


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
"""First bytes of an Arrow file in the format whose batches have numbers; other files are in the streaming format."""


def feather_stream(files: Sequence[str], selection: Selection) -> RowStream:
    """Return the rows of Feather files, each read by one thread. Only their schemas are read now."""
    pa = import_arrow("A Feather file")
    schemas = [(path, _schema(path)) for path in files]
    wanted = same_columns(selection, schemas)
    sample = arrow_records(pa.nulls(0, schemas[0][1].field(wanted.record).type), wanted.record)
    return RowStream([partial(_feather_rows, path, wanted) for path in files], sample, bar=progress_bar(files))


@contextmanager
def _opened(path: str, columns: Sequence[int] = ()) -> Iterator[Any]:
    """Yield a reader of an Arrow file of either format."""
    import pyarrow as pa

    options = pa.ipc.IpcReadOptions(included_fields=list(columns), use_threads=False)
    with open(path, "rb") as probe:
        numbered = probe.read(len(MAGIC)) == MAGIC
    with (
        pa.OSFile(path, "rb") as file,
        (pa.ipc.open_file if numbered else pa.ipc.open_stream)(file, options=options) as it,
    ):
        yield it


def _schema(path: str) -> Any:
    def read() -> Any:
        with _opened(path) as reader:
            return reader.schema

    return structure(path, "Feather", read)


def _feather_rows(path: str, wanted: ColumnNames, progress: Progress) -> Iterator[RowPart]:
    def read() -> Iterator[RowPart]:
        schema = _schema(path)
        with _opened(path, [schema.get_field_index(name) for name in wanted.distinct()]) as reader:
            numbered = hasattr(reader, "get_batch")
            batches = map(reader.get_batch, range(reader.num_record_batches)) if numbered else iter(reader)
            for batch in batches:
                for first in range(0, batch.num_rows, SLICE):
                    yield row_part(batch.slice(first, SLICE), wanted)
        progress(file_size(path))

    return rows(path, "Feather", read())


def names_in(paths: Sequence[str]) -> list[str]:
    """Return the names of the columns; see :func:`privatest.data.column_names`."""
    form, files = files_of(paths)
    import_arrow(f"A file of the format {form}")
    if form == "Parquet":
        return list(_footer(files[0])[1].names)
    if form == "Feather":
        return list(_schema(files[0]).names)
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
        stream = csv_stream([CsvFile(path, delimiter) for path in files], selection)
    else:
        stream = (parquet_stream if form == "Parquet" else feather_stream)(files, selection)
    return records_of_rows(stream, selection.most, selection.order)


def open_text(text: CsvText, selection: Selection) -> Records:
    """Return the records of a CSV text that lies in no file."""
    import_arrow("A table of lines")
    file = CsvFile("the lines", content=text.content)
    return records_of_rows(csv_stream([file], selection), selection.most, selection.order)
