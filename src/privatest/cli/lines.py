"""Records that come one a line. A line that is no number is a label; one that is neither is an odd record, no error."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import BinaryIO

__all__ = ["read_records", "record_of"]

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


def read_records(stream: BinaryIO) -> list[int | float | str | None]:
    """The records of all lines."""
    return records_of(stream)


def records_of(lines: Iterable[bytes]) -> list[int | float | str | None]:
    """A record for each line."""
    return [record_of(line) for line in lines]


def record_of(line: bytes) -> int | float | str | None:
    """A number where the line is one, else its text; None for what is no text at all.

    >>> [record_of(line) for line in (b"3\\n", b" 0.5", b"often", b"", b"\\xff")]
    [3, 0.5, 'often', '', None]
    """
    try:
        text = line.decode("utf-8").strip()
    except UnicodeDecodeError:
        return None
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text
