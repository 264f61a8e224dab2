"""Files that commands write: they are checked before the work starts, so that no result is lost for a typing error."""

from __future__ import annotations

import glob
import os
import re
import select
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from privatest import errors

__all__ = ["check_target", "read_bytes", "read_text", "write_report", "write_text"]

LARGEST = 100_000_000
PATIENCE = 10.0
"""Seconds that a pipe may be silent where a short text is due."""
_SCHEME = re.compile(r"(?:duckdb|sqlite|file)[\w+]*://(?:/(?=/|[A-Za-z]:|[^/]))?")
_BESIDE = ("", "-wal", "-shm", "-journal", ".next", ".lock")  # what databases and states keep beside themselves
# How the files begin that commands write; a problem file is read instead.
_OURS = {"report": b"<!DOCTYPE html>", "save_design": b'{"format": "privatest/'}


def check_target(reads: Iterable[str | None] = (), force: bool = False, **paths: str | None) -> None:
    """Refuse, by the option's name, a path that cannot be written, or that must not be.

    Guarantees: no file that ``reads`` names is written over, however it is spelt or linked, nor is a file written
    twice; other files only if they are empty or such that the option has written before, or with ``force``.
    """
    taken = [file for text in reads if text for file in _files(text)]
    for name, path in paths.items():
        if path is None:
            continue
        option = f"--{name.replace('_', '-')}"
        try:
            for file in taken:
                if _same(path, file):
                    raise errors.InvalidInput(
                        f"{option} {path!r} is a file that this command reads or writes already. Name another one."
                    )
            taken.append(path)
            target = Path(path)
            folder = target.parent
            if not path.strip() or target.is_dir():
                raise errors.InvalidInput(f"{option} {path!r} must be the name of a file, not of a folder.")
            if not folder.is_dir():
                raise errors.InvalidInput(f"{option} {path!r}: there is no folder {str(folder)!r}.")
            if not os.access(target if target.exists() else folder, os.W_OK):
                raise errors.InvalidInput(f"{option} {path!r}: you may not write there.")
            if target.exists() and not target.is_file():
                raise errors.InvalidInput(f"{option} {path!r} is a pipe or a device. Name a file.")
            if name != "state" and not force and target.is_file() and not _ours(name, path):
                raise errors.InvalidInput(
                    f"{option} {path!r} is there already, and no such file. Name another one, or give --force."
                )
        except (OSError, ValueError) as error:
            if isinstance(error, errors.InvalidInput):
                raise
            raise errors.InvalidInput(f"{option} {path!r} is not a usable file name.") from None


def _files(text: str) -> Iterator[str]:
    """The files that a path, a glob, a folder or a database's address means, and what lies beside a database."""
    path = os.path.expanduser(_SCHEME.sub("", text).partition("::")[0])
    if "://" in path or "\0" in path:
        return
    if os.path.isdir(path):
        yield from (os.path.join(base, name) for base, _, names in os.walk(path) for name in names)
    elif glob.has_magic(path) and not os.path.exists(path):
        yield from glob.iglob(path, recursive=True)
    else:
        yield from (path + ending for ending in _BESIDE)


def _same(path: str, other: str) -> bool:
    """Whether two names lead to one file, or would if it were there."""
    try:
        if os.path.samefile(path, other):
            return True
    except (OSError, ValueError):
        pass  # one of them is not there yet
    return os.path.normcase(os.path.realpath(path)) == os.path.normcase(os.path.realpath(other))


def _ours(name: str, path: str) -> bool:
    """Whether the option may have written this file: it is empty, or of the kind that it writes."""
    if os.path.getsize(path) == 0:
        return True
    if name == "save":
        from privatest.cli.problems import read_problem

        try:
            read_problem(path)
            return True
        except errors.InvalidInput:
            return False
    with open(path, "rb") as file:
        start = file.read(1 << 16)
    return start.startswith(_OURS[name]) and b"privatest" in start


def write_text(path: str, text: str, option: str) -> None:
    """The text in a file, or an error that names the option."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise errors.InvalidInput(f"{option} {path!r} could not be written: {_reason(error)}.") from None


def read_text(path: str, option: str) -> str:
    """The text of a file, or an error that names the option."""
    try:
        return read_bytes(path, option, LARGEST).decode("utf-8")
    except UnicodeDecodeError:
        raise errors.InvalidInput(f"{option} {path!r} is not text.") from None
    except (OSError, ValueError) as error:
        if isinstance(error, errors.InvalidInput):
            raise
        raise errors.InvalidInput(f"{option} {path!r} could not be read: {_reason(error)}.") from None


def read_bytes(path: str, option: str, most: int) -> bytes:
    """The bytes of a file or of a pipe, which must not be silent for long."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    found = bytearray()
    try:
        pipe = stat.S_ISFIFO(os.fstat(file).st_mode)
        while len(found) <= most:
            if pipe and not select.select([file], [], [], PATIENCE)[0]:
                raise errors.InvalidInput(f"{option} {path!r} is a pipe that was silent for {PATIENCE:g} seconds.")
            if not (piece := os.read(file, 1 << 16)):
                return bytes(found)
            found += piece
    finally:
        os.close(file)
    raise errors.InvalidInput(f"{option} {path!r} is larger than {most} bytes.")


def write_report(path: str, **content: Any) -> None:
    """One self-contained HTML file about a plan or a result."""
    from privatest import report

    try:
        report.write(path, **content)
    except OSError as error:
        raise errors.InvalidInput(f"--report {path!r} could not be written: {_reason(error)}.") from None


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
