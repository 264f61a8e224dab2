"""Lines as they arrive: from standard input or from a file. (Files that grow: ``line_files``.)"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator

from privatest import errors, line_files

__all__ = ["STANDARD_INPUT", "arriving"]

STANDARD_INPUT = "-"
AT_ONCE = 1 << 16


def arriving(name: str) -> Iterator[list[bytes]]:
    """Batches of complete lines, each as soon as it is there. The last line may lack its end.

    The name is checked at once, before the first line is asked for.
    """
    if name == STANDARD_INPUT:
        if sys.stdin is None or sys.stdin.closed:
            raise errors.InvalidInput("Standard input is closed. Give the name of a file.")
        return _lines(_typed())
    return (lines for lines, _ in line_files.LineFile(name).batches())


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


def _lines(pieces: Iterator[bytes]) -> Iterator[list[bytes]]:
    rest, first = b"", True
    for piece in pieces:
        whole, rest = line_files.whole_lines(rest, piece)
        if whole:
            whole[0], first = whole[0].removeprefix(codecs.BOM_UTF8) if first else whole[0], False
            yield whole
    if rest:
        yield [rest.removeprefix(codecs.BOM_UTF8) if first else rest]
