"""Records in files: structure is read when they are opened, rows when they are summed, piece by piece."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, TypeVar

from privatest.engines.arrow import arrow_kind, column_of, import_arrow, key_kind, keys_of
from privatest.engines.cuts import OrderedRecords, UnitRecords
from privatest.engines.names import choose
from privatest.engines.paths import files_of
from privatest.engines.protocol import Records
from privatest.engines.streams import Part, Progress, StreamRecords
from privatest.errors import InvalidData, PrivatestError

__all__ = ["Wanted", "file_size", "open_files", "progress_bar", "rows", "same_columns", "structure"]


Answer = TypeVar("Answer")


class Wanted(NamedTuple):
    """Names of the columns to read."""

    records: str
    unit: str | None
    order: str | None

    def names(self) -> list[str]:
        """Each of them once."""
        return list(dict.fromkeys(name for name in self if name is not None))

    def part(self, batch: Any) -> Part:
        """The columns of an Arrow batch."""
        keys = [None if name is None else keys_of(batch.column(name)) for name in (self.unit, self.order)]
        return Part(column_of(batch.column(self.records)), *keys)


def open_files(
    paths: Sequence[str], *, column: str | None, unit: str | None, max_rows_per_unit: int | None, order: str | None
) -> Records:
    """The records of Parquet, CSV or Feather files, in order of the files' names."""
    form, files = files_of(paths)
    import_arrow(f"A file of the format {form}")
    if form == "CSV":
        from privatest.engines.csv_files import csv_stream as stream_of
    elif form == "Parquet":
        from privatest.engines.parquet import parquet_stream as stream_of
    else:
        from privatest.engines.feather import feather_stream as stream_of
    apart = form != "CSV"
    stream = stream_of(files, lambda names, where: Wanted(*choose(names, column, unit, order, where, apart=apart)))
    if max_rows_per_unit is not None:
        return UnitRecords(stream, max_rows_per_unit, order)
    return StreamRecords(stream) if order is None else OrderedRecords(stream, order)


def structure(path: str, form: str, ask: Callable[[], Answer]) -> Answer:
    """What ``ask`` finds out about a file; what it raises becomes one line about the file."""
    return next(rows(path, form, (ask() for _ in range(1))))


def rows(path: str, form: str, parts: Iterator[Answer]) -> Iterator[Answer]:
    """The parts of a file. Errors of the reader become one line about the file: its own words may quote a record."""
    while True:
        try:
            found = next(parts)
        except StopIteration:
            return
        except PrivatestError:
            raise
        except Exception as error:  # pyarrow raises OSError and its own kinds of ValueError and KeyError alike
            problem = _problem(path, form, error)
        else:
            yield found
            continue
        # Raised out here, so that the error does not carry the reader's as its context.
        raise InvalidData(problem)


def _problem(path: str, form: str, error: Exception) -> str:
    if isinstance(error, PermissionError):
        return f"The file {path!r} may not be read. Check its permissions."
    if isinstance(error, FileNotFoundError):
        return f"The file {path!r} is gone."
    kind = type(error).__name__
    return f"The file {path!r} cannot be read as {form} ({kind}). Is it cut short, or of another format?"


def same_columns(wanted: Wanted, schemas: Sequence[tuple[str, Any]]) -> None:
    """Refuse files whose columns differ in what they are read as; each schema is (file, Arrow schema)."""
    first, known = schemas[0]
    arrow_kind(known.field(wanted.records).type)
    for role, name in (("unit", wanted.unit), ("order", wanted.order)):
        if name is not None:
            key_kind(known.field(name).type, f"a column {role}")
    for path, schema in schemas[1:]:
        choose(schema.names, *wanted, repr(path))
        for name in wanted.names():
            ours, theirs = known.field(name).type, schema.field(name).type
            # Numbers of several widths are read alike; keys are compared, and must be of one type.
            alike = name not in (wanted.unit, wanted.order) and arrow_kind(ours) == arrow_kind(theirs)
            if ours != theirs and not alike:
                raise InvalidData(
                    f"Column {name!r} is {ours} in {first!r} and {theirs} in {path!r}. "
                    "Pass files whose columns have one type."
                )


def progress_bar(files: Sequence[str]) -> Callable[[], AbstractContextManager[Progress]]:
    """A bar of the bytes read, on the terminal's stderr while the files are read; nothing where that is no terminal.

    Of bytes, never of rows: a test may hide how many people are in the data, and how large its files are it does not.
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
    """How many bytes a file has, 0 if it is gone."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
