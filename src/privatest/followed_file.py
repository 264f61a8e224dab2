"""A file of one record a line that grows: its lines as they arrive, until another file takes its place.

A place in a stream is a file, the number of the record that its first line is, and the bytes that were read of it. The
system's number of a file identifies it, and never its content, because an answer that depends on content tells of
records. Where another file has the name, or the file is shorter than what was read of it, reading stops with an error:
its lines may be new, or the same ones again, and to read these again would release them a second time. Only the user
can say which.

Not detected: a file that was cut short and has grown to at least its old length between two looks at it, and a file
that got the number of one that was removed between two runs.
"""

from __future__ import annotations

import codecs
import os
import select
import stat
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
        self._size, self._rest = 0, b""

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
        same = self._continues(place)
        if seen > 0 and not (same or new_file):
            raise self._refusal("may be another file than the one that was read before, or was cut short", seen, remedy)
        first = place["first"] if same else seen
        skip, number = seen - first, seen
        while True:
            for lines in self._arrived():
                skipped = min(skip, len(lines))
                skip -= skipped
                if lines := lines[skipped:]:
                    number += len(lines)
                    yield ReadLines(lines, self._place(first))
            if not follow:
                if self._rest and not skip:
                    yield ReadLines([self._rest], self._place(first))
                return
            if wait(PAUSE):
                return
            if self._was_replaced():
                raise self._refusal("was replaced or cut short", number, remedy)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _place(self, first: int) -> dict[str, Any] | None:
        result = os.fstat(self._file)
        if not stat.S_ISREG(result.st_mode):
            return None
        return {"file": [result.st_ino, result.st_dev], "first": first, "size": self._size}

    def _continues(self, place: Any) -> bool:
        """Whether a place is in this file, which still has all that was read of it."""
        here = self._place(0)
        if here is None or not isinstance(place, dict) or place.get("file") != here["file"]:
            return False
        complete = all(isinstance(place.get(name), int) for name in ("first", "size"))
        return complete and os.fstat(self._file).st_size >= place["size"]

    def _arrived(self) -> Iterator[list[bytes]]:
        """Yield the complete lines that were added since the last call."""
        while piece := self._piece():
            lines, self._rest = whole_lines(self._rest, piece if self._size else piece.removeprefix(codecs.BOM_UTF8))
            self._size += len(piece)
            if lines:
                yield lines

    def _piece(self) -> bytes:
        if stat.S_ISFIFO(os.fstat(self._file).st_mode) and os.name == "posix":
            select.select([self._file], [], [])  # a pipe that is empty, but not closed, is waited for
        return os.read(self._file, AT_ONCE)

    def _was_replaced(self) -> bool:
        """Whether another file has the name now, or this one is shorter than before. A missing one is waited for."""
        try:
            now = os.stat(self._name)
        except OSError:
            return False
        shorter = stat.S_ISREG(now.st_mode) and now.st_size < self._size
        return shorter or not os.path.samestat(now, os.fstat(self._file))

    def _refusal(self, what: str, number: int, remedy: str) -> InvalidInput:
        return InvalidInput(
            f"The file {self._name!r} {what}, after {number} records. Its lines may be new ones, or the same once "
            f"more, which would be released a second time.{remedy and ' '}{remedy}"
        )


def whole_lines(rest: bytes, piece: bytes) -> tuple[list[bytes], bytes]:
    """Return the lines that a piece completes, and what is left of it; a line that is too long becomes ``NO_TEXT``."""
    *lines, rest = (rest + piece).split(b"\n")
    return lines, NO_TEXT if len(rest) > LONGEST_LINE else rest


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
