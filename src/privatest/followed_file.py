"""A file of one record a line that grows: which of its lines come next, and whether it is still the same file.

A place in a stream is a file and the number of the record that its first line is. A file is identified by what the
system says of it (its number and when it was made). Its name does not identify it, because a rotation gives the name to
another file; its content is not used, because an answer that depends on content tells of records. Where another file
has the name, or lines that were read are gone, reading stops with an error: the lines may be new, or the same ones
again, and to read these again would release them a second time. Only the user can say which.

Not detected: a file that was cut short and has grown to at least its old length between two looks at it.
"""

from __future__ import annotations

import codecs
import ctypes
import os
import select
import stat
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from privatest.data_addresses import PACKED, format_of
from privatest.errors import InvalidInput

AT_ONCE = 1 << 16
LONGEST_LINE = 1 << 20
NO_TEXT = b"\xff"
"""Stands for a line that is too long: no character in UTF-8, so that it is an odd record."""
PAUSE = 0.2
"""Seconds between two looks at a file that is followed."""


class ReadLines(NamedTuple):
    """Lines of one file, and its place in the stream; None for a pipe or a device."""

    lines: list[bytes]
    place: dict[str, Any] | None


class LineFile:
    """A file that is read line by line, once. It is opened at once, so that a wrong name is refused immediately.

    Args:
        name: path of a file without a heading; names of tables (``.csv``, ``.parquet``) are refused.
    """

    def __init__(self, name: str | os.PathLike[str]) -> None:
        self._name = os.fspath(name)
        form = "compressed" if self._name.lower().endswith(PACKED) else format_of(self._name)
        if form is not None:
            raise InvalidInput(
                f"{self._name!r} is a {form} file by its name. Records are read one a line, of a file without a "
                "heading: write the column to a file of its own, such as records.txt, or pipe it in."
            )
        self._file = _opened(self._name)
        self._identity = _identity(self._file)
        self._size, self._rest, self._first = 0, b"", True

    def batches(
        self,
        seen: int = 0,
        place: Any = None,
        *,
        follow: bool = False,
        new_file: bool = False,
        remedy: str = "",
        wait: Callable[[float], object] = time.sleep,
    ) -> Iterator[ReadLines]:
        """Yield complete lines as they arrive, beginning with record number ``seen`` of the stream.

        Args:
            seen: number of records of the stream that were read before.
            place: the place of the last of them.
            follow: whether to wait for more lines at the end of the file. A last line without its end is then waited
                for; otherwise it counts as a line.
            new_file: whether a file that is not the one that was read before holds new records, to be read from its
                first line.
            remedy: added to the error that another file has the name: what the user can do.
            wait: called between two looks at the file; reading ends if it returns something true.
        """
        known = isinstance(place, dict) and isinstance(place.get("file"), list) and isinstance(place.get("first"), int)
        same = known and place["file"] == self._identity
        if seen > 0 and not (same or new_file):
            what = "is another file than the one that was read before" if known else "may be another file than was read"
            raise self._refusal(what, seen, remedy)
        first, number = place["first"] if same else seen, seen
        skip = seen - first
        while True:
            here = None if self._identity is None else {"file": self._identity, "first": first}
            for lines in self._arrived():
                skipped = min(skip, len(lines))
                skip -= skipped
                if lines := lines[skipped:]:
                    number += len(lines)
                    yield ReadLines(lines, here)
            if (missing := skip - bool(self._rest)) > 0:
                if new_file:  # the same file, cut short and written anew
                    os.lseek(self._file, 0, os.SEEK_SET)
                    self._size, self._rest, self._first = 0, b"", True
                    first, skip, new_file = seen, 0, False
                    continue
                raise self._refusal(f"was cut short: {missing} lines of it are gone", number, remedy)
            if not follow:
                if self._rest and not skip:
                    yield ReadLines([_without_mark(self._rest, self._first)], here)
                return
            if wait(PAUSE):
                return
            if change := self._change():
                raise self._refusal(f"was {change}", number, remedy)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _arrived(self) -> Iterator[list[bytes]]:
        """Yield the complete lines that were added since the last call."""
        while piece := self._piece():
            self._size += len(piece)
            lines, self._rest = whole_lines(self._rest, piece)
            if lines:
                lines[0], self._first = _without_mark(lines[0], self._first), False
                yield lines

    def _piece(self) -> bytes:
        if stat.S_ISFIFO(os.fstat(self._file).st_mode) and os.name == "posix":
            select.select([self._file], [], [])  # a pipe that is empty, but not closed, is waited for
        return os.read(self._file, AT_ONCE)

    def _change(self) -> str | None:
        """What happened to the file of this name; None where it is the one that is read, or where there is none."""
        try:
            now = os.stat(self._name)
        except OSError:
            return None
        if not os.path.samestat(now, os.fstat(self._file)):
            return "replaced"
        return "cut short" if stat.S_ISREG(now.st_mode) and now.st_size < self._size else None

    def _refusal(self, what: str, number: int, remedy: str) -> InvalidInput:
        return InvalidInput(
            f"The file {self._name!r} {what}, after {number} records. Its lines may be new ones, or the same once "
            f"more, which would be released a second time.{remedy and ' '}{remedy}"
        )


def whole_lines(rest: bytes, piece: bytes) -> tuple[list[bytes], bytes]:
    """Return the lines that a piece completes, and what is left of it; a line that is too long becomes ``NO_TEXT``."""
    *lines, rest = (rest + piece).split(b"\n")
    return lines, NO_TEXT if len(rest) > LONGEST_LINE else rest


def _without_mark(line: bytes, first: bool) -> bytes:
    return line.removeprefix(codecs.BOM_UTF8) if first else line


def _opened(name: str) -> int:
    try:
        # Without O_NONBLOCK to open a pipe would wait for somebody who writes to it.
        file = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidInput(f"The file {name!r} cannot be read: {reason}.") from None
    if stat.S_ISDIR(os.fstat(file).st_mode):
        os.close(file)
        raise InvalidInput(f"{name!r} is a folder. Give a file of one record a line.")
    return file


def _identity(file: int) -> list[int] | None:
    """What identifies a regular file: its number, which a later file may get again, and when it was made."""
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):
        return None
    birth = getattr(found, "st_birthtime", None)
    made = _linux_birth(file) if birth is None else int(birth * 1_000_000)
    return [found.st_ino, found.st_dev if made is None else made]


def _linux_birth(file: int) -> int | None:
    """Nanoseconds at which a file was made, by Linux's statx, which Python does not offer; None where it is unknown."""
    answer = ctypes.create_string_buffer(256)
    try:
        failed = ctypes.CDLL(None).statx(file, b"", 0x1000, 0x800, answer)  # AT_EMPTY_PATH, STATX_BTIME
    except (OSError, AttributeError, TypeError):
        return None
    (mask,) = struct.unpack_from("=I", answer, 0)
    seconds, nanoseconds = struct.unpack_from("=qI", answer, 80)
    return None if failed or not mask & 0x800 else int(seconds) * 10**9 + int(nanoseconds)
