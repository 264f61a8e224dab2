"""Which files and which of their columns are meant, and errors about a file that quote nothing of what is in it."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from privatest.addresses import FORMATS, format_of
from privatest.engines.arrays import Part, Progress
from privatest.engines.frames import arrow_kind, column_of, key_kind, keys_of
from privatest.engines.unheard import asked, each_asked
from privatest.errors import InvalidData, shown
from privatest.numbers import suggestion

__all__ = [
    "Wanted",
    "as_paths",
    "choose",
    "file_identity",
    "file_size",
    "files_of",
    "progress_bar",
    "rows",
    "same_columns",
    "structure",
]


ENDINGS = ", ".join(ending for endings in FORMATS.values() for ending in endings)


def as_paths(source: Any) -> list[str] | None:
    """The paths a source stands for, or None if it is not about files. Texts in a list are labels, not paths."""
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
    except ValueError:  # a null character: no path
        return None


def files_of(paths: Sequence[str]) -> tuple[str, list[str]]:
    """The format of the files that the paths, globs and folders name, and all of them, each in order of name."""
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
    """Refuse a file that is reached twice, by links, repeated paths or patterns: its records would count twice."""
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
    """What one file is known by, whatever links lead to it; a path that leads nowhere is known by its name."""
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
    """All files below a folder; hidden ones and those that writers leave beside the data are not data."""
    found = []
    for path in Path(folder).rglob("*"):
        names = path.relative_to(folder).parts
        if not any(name.startswith((".", "_")) for name in names) and path.is_file():
            found.append(str(path))
    return found


def choose(
    names: Sequence[str], column: Any, unit: Any, order: Any, where: str, *, group: Any = None, apart: bool = True
) -> Wanted:
    """The columns of the records, the unit, the order and the group, each known to be there exactly once.

    Args:
        apart: whether names are kept apart from rows. Those of a text file are its first line, which is a record where
            somebody forgot to write them: no message may quote any of them.
    """
    keys = [None if name is None else _known(names, name, where, apart) for name in (unit, order, group)]
    if column is None:
        rest = [name for name in names if name not in keys]
        if len(rest) != 1:
            raise InvalidData(f"{_start(where)}: {len(rest)} columns. Say which one holds the records: column=...")
        column = rest[0]
    found = _known(names, column, where, apart)
    for word, key in zip(("unit", "order", "group"), keys, strict=True):
        if key == found:
            raise InvalidData(
                f"{word}={key!r} is the column of the records too. Whose a record is, when it was made and which group "
                "it is of must not depend on what it holds: name another column."
            )
    return Wanted(found, *keys)


def _known(names: Sequence[str], name: Any, where: str, apart: bool) -> str:
    times = list(names).count(str(name))
    if times == 0 and not apart:
        raise InvalidData(
            f"No column {shown(name)} in the first line of {where}, which must name the columns. That line is not "
            "shown here: in a file that lacks it, it is a record."
        )
    if times == 0:
        raise InvalidData(f"No column {shown(name)} in {where}.{suggestion(str(name), names)}")
    if times > 1:
        raise InvalidData(f"{times} columns of {where} are called {shown(name)}. Rename all but one.")
    return str(name)


def _start(where: str) -> str:
    return where[0].upper() + where[1:]


Answer = TypeVar("Answer")


class Wanted(NamedTuple):
    """Names of the columns to read."""

    records: str
    unit: str | None = None
    order: str | None = None
    group: str | None = None

    def names(self) -> list[str]:
        """Each of them once."""
        return list(dict.fromkeys(name for name in self if name is not None))

    def part(self, batch: Any) -> Part:
        """The columns of an Arrow batch."""
        keys = [None if name is None else keys_of(batch.column(name)) for name in self[1:]]
        return Part(column_of(batch.column(self.records)), *keys)


def structure(path: str, form: str, ask: Callable[[], Answer]) -> Answer:
    """What ``ask`` finds out about a file; what it raises becomes one line about the file."""
    return asked(lambda error: _problem(path, form, error), ask)


def rows(path: str, form: str, parts: Iterator[Answer]) -> Iterator[Answer]:
    """The parts of a file. Errors of the reader become one line about the file: its own words may quote a record."""
    return each_asked(lambda error: _problem(path, form, error), lambda: parts)


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
    arrow_kind(known.field(wanted.records).type, wanted.records)
    for role, name in zip(wanted._fields[1:], wanted[1:], strict=True):
        if name is not None:
            key_kind(known.field(name).type, f"a column {role}")
    for path, schema in schemas[1:]:
        choose(schema.names, *wanted[:3], repr(path), group=wanted.group)
        for name in wanted.names():
            ours, theirs = known.field(name).type, schema.field(name).type
            # Numbers of several widths are read alike; keys are compared, and must be of one type.
            alike = name not in wanted[1:] and arrow_kind(ours) == arrow_kind(theirs)
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
