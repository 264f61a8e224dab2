"""The text of CSV files, whatever bytes they hold: nothing in a row makes the reading fail, and memory is bounded.

Two ways lead over the rows of a file. Arrow's is quick, but it stops at a row longer than its block (a quote that is
never closed makes one of all rows that follow), and at bytes that are no UTF-8. So it is given ``Utf8``, which has no
such bytes, and where it stops, ``csv_rows`` reads on by the same rules, slowly.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

__all__ = ["LONGEST", "Utf8", "csv_rows"]

# A longer field (1 MiB) is read as a missing one, on either way.
LONGEST = 1 << 20

Row = list[bytes | None]
_BYTE_ORDER_MARK = codecs.BOM_UTF8
_QUOTE, _RETURN, _NEWLINE = b'"\r\n'
_START, _PLAIN, _QUOTED, _AFTER_QUOTE = range(4)


class Utf8:
    """A file whose bytes are UTF-8, without a byte order mark.

    A byte b that is not part of UTF-8 is replaced by the character U+10FF00 + b, of the last private plane: the field
    is no number and no label, and two units that differ in such bytes stay two. Where the file ends with a delimiter, a
    newline is added: without it Arrow takes the last, empty field for quoted if the one before it is.
    """

    def __init__(self, raw: Any, delimiter: str) -> None:
        self._delimiter, self._last = delimiter.encode(), b""
        self._raw, self._first, self._ended, self.closed = raw, True, False, False
        self._cut = b""  # the start of a character that ends in the next block
        self._held = b""  # checked, and not asked for yet

    def read(self, size: int) -> bytes:
        """So many bytes more, fewer only at the end or not to cut a carriage return from its newline.

        Arrow drops a newline at the start of a block after such a cut, in quotes too, and takes a block of nothing else
        for the end of the file.
        """
        self._fill(size)
        if size > 1 and self._held[size - 1 : size] == b"\r":
            self._fill(size + 1)
            size -= self._held[size : size + 1] == b"\n"
        found, self._held = self._held[:size], self._held[size:]
        return found

    def _fill(self, size: int) -> None:
        while len(self._held) < size and not self._ended:
            more = self._more(size - len(self._held))
            self._held = self._held + more if self._held else more

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True

    def _more(self, size: int) -> bytes:
        block = self._raw.read(size)
        self._ended = not block
        found, self._cut = _repaired(self._cut + block if self._cut else block, self._ended)
        if self._first and found:
            found, self._first = found.removeprefix(_BYTE_ORDER_MARK), False
        self._last = found[-1:] or self._last
        return found + b"\n" if self._ended and self._last == self._delimiter else found


def _repaired(block: bytes, last: bool) -> tuple[bytes, bytes]:
    """The block in UTF-8, and what is left of it for the next one."""
    if block.isascii():
        return block, b""
    try:
        used = codecs.utf_8_decode(block, "strict", last)[1]
        return block[:used], block[used:]
    except UnicodeDecodeError:
        text, used = codecs.utf_8_decode(block, "surrogateescape", last)
    # Each bad byte b is U+DC00 + b now, in bytes ED B2 or ED B3 and one more, which text does not have otherwise.
    odd = text.encode("utf-8", "surrogatepass")
    return odd.replace(b"\xed\xb2", b"\xf4\x8f\xbe").replace(b"\xed\xb3", b"\xf4\x8f\xbf"), block[used:]


def csv_rows(
    blocks: Iterable[bytes], delimiter: str, wanted: Collection[int] | None = None, width: int | None = None
) -> Iterator[Row]:
    """The rows by Arrow's rules, an empty line as ``[]``. Any bytes have rows.

    A quote opens a field only at its start; it is closed by a quote that is not doubled, or by the end of the file.
    Rows end at a newline, a carriage return, or both.

    Args:
        wanted: the fields to keep, all if left out; others may be None, as is an empty field without quotes.
        width: of a row with more fields only one more than these is given.
    """
    comma = delimiter.encode()
    border = re.compile(b"[%b\r\n]" % comma)
    row: Row = []
    field, mode, after_return = _Field(wanted is None or 0 in wanted), _START, False
    for block in blocks:
        at = 0
        while at < len(block):
            if mode == _START and not row and not after_return:
                # Most rows are plain lines.
                stop = block.find(b"\n", at, at + LONGEST)
                line = block[at : max(stop, at)].removesuffix(b"\r")
                if stop >= 0 and _QUOTE not in line and _RETURN not in line:
                    yield [one or None for one in line.split(comma, -1 if width is None else width)] if line else []
                    at = stop + 1
                    continue
            if mode == _START:
                newline, after_return = after_return and block[at] == _NEWLINE, False
                field.quoted = not newline and block[at] == _QUOTE
                at += newline or field.quoted
                mode = _START if newline else _QUOTED if field.quoted else _PLAIN
            elif mode == _QUOTED:
                stop = block.find(_QUOTE, at)
                field.add(block, at, stop if stop >= 0 else len(block))
                at, mode = (stop + 1, _AFTER_QUOTE) if stop >= 0 else (len(block), _QUOTED)
            elif mode == _AFTER_QUOTE:
                mode = _QUOTED if block[at] == _QUOTE else _PLAIN
                if mode == _QUOTED:
                    field.add(block, at, at + 1)
                    at += 1
            else:
                found = border.search(block, at)
                stop = found.start() if found else len(block)
                field.add(block, at, stop)
                at = stop + 1
                if not found:
                    continue
                mode, ended = _START, block[stop] in b"\r\n"
                if not (ended and not row and field.empty()) and (width is None or len(row) <= width):
                    row.append(field.value())
                if ended:
                    yield row
                    row, after_return = [], block[stop] == _RETURN
                field = _Field(wanted is None or len(row) in wanted)
    if row or mode != _START:
        yield [*row, field.value()] if width is None or len(row) <= width else row


class _Field:
    """The bytes of one field, as long as they are wanted and few."""

    def __init__(self, wanted: bool) -> None:
        self.quoted, self._wanted, self._size, self._bytes = False, wanted, 0, bytearray()

    def add(self, block: bytes, first: int, last: int) -> None:
        self._size += last - first
        if self._wanted and self._size <= LONGEST:
            self._bytes += block[first:last]

    def empty(self) -> bool:
        return not self.quoted and not self._size

    def value(self) -> bytes | None:
        return bytes(self._bytes) if self._wanted and self._size <= LONGEST and not self.empty() else None
