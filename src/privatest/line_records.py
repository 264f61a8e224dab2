"""Records that come one a line. A line that is no number is a label; one that is neither is an odd record, no error."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["record_of", "records_of"]

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


def records_of(lines: Iterable[bytes | str]) -> list[int | float | str | None]:
    """A record for each line."""
    return [record_of(line) for line in lines]


def record_of(line: bytes | str) -> int | float | str | None:
    """A number where the line is one, else its text; None for what is no text at all.

    >>> [record_of(line) for line in (b"3\\n", " 0.5", b"often", b"", b"\\xff", "1_000")]
    [3, 0.5, 'often', '', None, '1_000']
    """
    try:
        text = (line.decode("utf-8") if isinstance(line, bytes) else line).strip()
    except UnicodeDecodeError:
        return None
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        return text if "_" in text else float(text)  # Python's digit groups are no way to write data
    except ValueError:
        return text
