"""A file of one record a line that grows, is rotated, replaced or cut short: which of its lines come next.

A place in a stream of files is a file and the number of the record that its first line is. A file is known by what the
system says of it (its number and when it was born), never by its name, which a rotation hands on, and never by its
content: what depends on that would tell of records. So a file that was replaced or cut short is seen to be another one,
and whether its lines are new ones only the user can say: read as new, lines that were seen before would be released a
second time; taken for the same, new ones would be passed over.

Not seen: a file that is cut short and has grown again to at least its old length between two looks; a second rotation
between two looks, or while nobody looked, of which the file in the middle is passed over.
"""

from __future__ import annotations

import codecs
import ctypes
import functools
import os
import select
import stat
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from privatest.addresses import PACKED, format_of
from privatest.errors import InvalidInput

AT_ONCE = 1 << 16
LONGEST_LINE = 1 << 20
NO_TEXT = b"\xff"  # no character in UTF-8, so that it makes no sense as a record
PAUSE = 0.2  # seconds between two looks at a file that is followed
REPLACED = ("new", "same")
"""What a file may hold that was replaced or cut short: records that were not seen, or the same lines once more."""


class ReadLines(NamedTuple):
    """Lines of one file, and its place in the stream; None for what is no regular file."""

    lines: list[bytes]
    place: dict[str, Any] | None


class LineFile:
    """A file by name, opened at once: a name that cannot be read, or is one of a table's, is refused here.

    What its lines are is said by nothing in it: the first of them is a record like any other.
    """

    def __init__(self, name: str | os.PathLike[str]) -> None:
        self._name = os.fspath(name)
        form = "compressed" if self._name.lower().endswith(PACKED) else format_of(self._name)
        if form is not None:
            raise InvalidInput(
                f"{self._name!r} is a {form} file by its name. Records are read one a line, of a file without a "
                "heading: write the column to a file of its own, such as records.txt, or pipe it in."
            )
        self._reader = _OpenFile(_opened(self._name))

    def batches(
        self,
        seen: int = 0,
        place: Any = None,
        *,
        follow: bool = False,
        replaced: str | None = None,
        remedy: str = "",
        wait: Callable[[float], object] = time.sleep,
        say: Callable[[str], object] = lambda _: None,
    ) -> Iterator[ReadLines]:
        """Complete lines as they arrive, from record number ``seen`` on; the last one may lack its end.

        Args:
            seen, place: how many records of the stream were seen, and the place of the last of them.
            follow: wait for more at the end of the file; a last line without its end is then waited for.
            replaced: what a file holds that was replaced or cut short, "new" or "same"; None: that is refused.
            remedy: added to the refusal: how the user says so.
            wait: called between two looks; ends the lines by returning something true.
            say: told what a reader of the lines should know.
        """
        reader, number, known = self._reader, seen, _known(place)
        identity = reader.identity
        if seen == 0 and known is None:
            first = 0
        elif known is not None and identity is not None and known["file"] == identity:
            first = known["first"]
        elif replaced is None:
            what = "is another file than the one that was read before" if known else "may be another file than was read"
            raise self._refusal(what, number, remedy)
        elif replaced == "same":
            first = 0 if known is None else known["first"]
        else:
            for lines in self._left_behind(known, seen, say):
                number += len(lines)
                yield ReadLines(lines, known)
            first = number
        reader.skip, new = number - first, False
        while True:
            here = None if reader.identity is None else {"file": reader.identity, "first": first}
            for lines in reader.arrived():
                number += len(lines)
                yield ReadLines(lines, here)
            if reader.missing > 0 and not new:
                # What was seen of the file is no longer there. (A rewrite that goes on is waited for.)
                if replaced != "new":
                    raise self._refusal(f"was cut short: {reader.missing} lines of it are gone", number, remedy)
                reader, first = reader.again(), number
                continue
            if not follow:
                if last := reader.last():
                    yield ReadLines(last, here)
                return
            if wait(PAUSE):
                return
            if (change := self._change(reader)) is None:
                continue
            if change == "replaced" and wait(PAUSE):  # for those who still write to the old one
                return
            for lines in reader.arrived():
                number += len(lines)
                yield ReadLines(lines, here)
            if replaced != "same" and (last := reader.last()):
                number += 1
                yield ReadLines(last, here)
            if replaced is None:
                raise self._refusal(f"was {change}", number, remedy)
            if change == "cut short":
                reader = reader.again()
            else:
                try:
                    newer = _OpenFile(os.open(self._name, os.O_RDONLY))
                except OSError:
                    continue  # gone again
                reader.close()
                reader = newer
            first = first if replaced == "same" else number
            reader.skip, new = number - first, True
            self._reader = reader

    def close(self) -> None:
        """Read no more."""
        self._reader.close()

    def _change(self, reader: _OpenFile) -> str | None:
        try:
            now = os.stat(self._name)
        except OSError:
            return None  # between two files of a rotation
        if not os.path.samestat(now, os.fstat(reader.file)):
            return "replaced"
        return "cut short" if stat.S_ISREG(now.st_mode) and now.st_size < reader.size else None

    def _left_behind(
        self, known: dict[str, Any] | None, seen: int, say: Callable[[str], object]
    ) -> Iterator[list[bytes]]:
        """The lines beyond those seen of the file that was read before, if it is still there under another name."""
        if known is None:
            return
        with os.scandir(os.path.dirname(os.path.realpath(self._name))) as entries:
            found = list(entries)
        for entry in found:
            try:
                if not entry.is_file(follow_symlinks=False) or entry.inode() != known["file"][0]:
                    continue
                reader = _OpenFile(os.open(entry.path, os.O_RDONLY))
            except OSError:
                continue
            try:
                if reader.identity == known["file"]:
                    reader.skip = seen - known["first"]
                    yield from reader.arrived()
                    if last := reader.last():
                        yield last
                    return
            finally:
                reader.close()
        say(f"The file that was read before is gone: lines it had after record {seen} were not seen.")

    def _refusal(self, what: str, number: int, remedy: str) -> InvalidInput:
        return InvalidInput(
            f"The file {self._name!r} {what}, after {number} records. Its lines may be new ones, or the same once "
            f"more, which would be released a second time.{remedy and ' '}{remedy}"
        )


class _OpenFile:
    """A file that is open: its lines so far, in pieces."""

    def __init__(self, file: int) -> None:
        self.file, self.identity = file, _identity(file)
        self.size = self.skip = 0
        self._rest, self._first = b"", True
        self._pipe = os.name == "posix" and stat.S_ISFIFO(os.fstat(file).st_mode)

    @property
    def missing(self) -> int:
        """How many of the lines that are to be passed over are not there, not even without their end."""
        return self.skip - bool(self._rest)

    def arrived(self) -> Iterator[list[bytes]]:
        """The complete lines that are there and were not handed out; the first ``skip`` of them are passed over."""
        while piece := self._next():
            self.size += len(piece)
            lines, self._rest = whole_lines(self._rest, piece)
            if lines:
                lines[0], self._first = _without_mark(lines[0], self._first), False
            passed = min(self.skip, len(lines))
            self.skip -= passed
            if len(lines) > passed:
                yield lines[passed:]

    def _next(self) -> bytes:
        if self._pipe:  # to wait for somebody who writes is not to be at the end
            select.select([self.file], [], [])
        return os.read(self.file, AT_ONCE)

    def last(self) -> list[bytes]:
        """The line that lacks its end, as a line."""
        rest, self._rest = self._rest, b""
        if rest and self.skip:
            self.skip -= 1
            return []
        return [_without_mark(rest, self._first)] if rest else []

    def again(self) -> _OpenFile:
        """The same file from its start."""
        os.lseek(self.file, 0, os.SEEK_SET)
        return _OpenFile(self.file)

    def close(self) -> None:
        if self.file >= 0:
            os.close(self.file)
        self.file = -1


def whole_lines(rest: bytes, piece: bytes) -> tuple[list[bytes], bytes]:
    """The lines that a piece completes, and the rest of it. Memory stays bounded: too long a line is an odd record."""
    *lines, rest = (rest + piece).split(b"\n")
    return lines, NO_TEXT if len(rest) > LONGEST_LINE else rest


def _without_mark(line: bytes, first: bool) -> bytes:
    return line.removeprefix(codecs.BOM_UTF8) if first else line


def _known(place: Any) -> dict[str, Any] | None:
    known = isinstance(place, dict) and isinstance(place.get("file"), list) and isinstance(place.get("first"), int)
    return place if known else None


def _opened(name: str) -> int:
    try:
        # A pipe that nobody writes to is waited for later, when all else is checked.
        file = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidInput(f"The file {name!r} cannot be read: {reason}.") from None
    if stat.S_ISDIR(os.fstat(file).st_mode):
        os.close(file)
        raise InvalidInput(f"{name!r} is a folder. Give a file of one record a line.")
    return file


def _identity(file: int) -> list[int] | None:
    """What a regular file is known by: its number, which a later file may get again, and when it was born."""
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):
        return None
    birth = getattr(found, "st_birthtime", None)
    born = _born(file) if birth is None else int(birth * 1_000_000)
    return [found.st_ino, found.st_dev if born is None else born]


_EMPTY_PATH, _BIRTH = 0x1000, 0x800


@functools.cache
def _statx() -> Any:
    try:
        return ctypes.CDLL(None, use_errno=True).statx
    except (OSError, AttributeError, TypeError):
        return None


def _born(file: int) -> int | None:
    """Nanoseconds at which a file was made, where Linux knows it."""
    statx = _statx()
    if statx is None:
        return None
    answer = ctypes.create_string_buffer(256)
    if statx(file, b"", _EMPTY_PATH, _BIRTH, answer) != 0:
        return None
    (mask,) = struct.unpack_from("=I", answer, 0)
    seconds, rest = struct.unpack_from("=qI", answer, 80)
    return int(seconds) * 10**9 + int(rest) if mask & _BIRTH else None
