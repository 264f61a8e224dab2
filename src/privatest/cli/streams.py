"""Lines as they arrive: from standard input, from a file, or from a file that grows and is replaced."""

from __future__ import annotations

import codecs
import os
import sys
import time
from collections.abc import Iterator

from privatest import errors

__all__ = ["STANDARD_INPUT", "arriving"]

STANDARD_INPUT = "-"
AT_ONCE = 1 << 16
LONGEST_LINE = 1 << 20
NO_TEXT = b"\xff"  # no character in UTF-8, so that it makes no sense as a record
PAUSE = 0.2  # seconds between two looks at a file that is followed


def arriving(name: str, *, follow: bool = False) -> Iterator[list[bytes]]:
    """Batches of complete lines, each as soon as it is there. The last line may lack its end, except when following.

    The name is checked at once, before the first line is asked for.
    """
    if name == STANDARD_INPUT:
        if sys.stdin is None:
            raise errors.InvalidInput("Standard input is closed. Give the name of a file.")
        return _lines(_typed())
    try:
        file = os.open(name, os.O_RDONLY)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise errors.InvalidInput(f"The file {name!r} cannot be read: {reason}.") from None
    if os.path.isdir(name):
        os.close(file)
        raise errors.InvalidInput(f"{name!r} is a folder. Give a file of one record a line.")
    return _lines(_followed(name, file)) if follow else _lines(_pieces(file))


def _pieces(file: int) -> Iterator[bytes]:
    while piece := os.read(file, AT_ONCE):
        yield piece


def _typed() -> Iterator[bytes]:
    """Standard input, each piece as soon as it is there; also where it is no file of the system's."""
    try:
        number = sys.stdin.fileno()
    except OSError:
        yield sys.stdin.buffer.read()
    else:
        yield from _pieces(number)


def _followed(name: str, file: int) -> Iterator[bytes]:
    """The bytes of a file as it grows. A file that was replaced or cut short is read again from its start."""
    place = 0
    while True:
        while piece := os.read(file, AT_ONCE):
            place += len(piece)
            yield piece
        time.sleep(PAUSE)
        try:
            now = os.stat(name)
        except OSError:
            continue  # between two files of a rotation
        same = os.path.samestat(now, os.fstat(file))
        if same and now.st_size >= place:
            continue
        if not same:
            # What was still written to the old one comes first.
            while piece := os.read(file, AT_ONCE):
                yield piece
            try:
                newer = os.open(name, os.O_RDONLY)
            except OSError:
                continue
            os.close(file)
            file = newer
        else:
            os.lseek(file, 0, os.SEEK_SET)
        place = 0


def _lines(pieces: Iterator[bytes]) -> Iterator[list[bytes]]:
    rest, first = b"", True
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > LONGEST_LINE:
            rest = NO_TEXT  # memory stays bounded; whatever follows on this line, it is an odd record
        if whole:
            whole[0], first = whole[0].removeprefix(codecs.BOM_UTF8) if first else whole[0], False
            yield whole
    if rest:
        yield [rest.removeprefix(codecs.BOM_UTF8) if first else rest]
