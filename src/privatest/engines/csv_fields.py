"""CSV: what one field is read as, and the rows of a text of fields, of a file or of standard input.

Fields are bytes without a type. The score says whether they are numbers or texts, so that no record decides how another
one is read. One rule reads numbers (:func:`field_number`). An empty field is a missing record; in quotes it is an empty
text.

After the first line, which names the columns, any bytes are rows. They never make the reading fail, because a failure
would tell of a record. A row with too few or too many fields is one missing record in its place. A row that is longer
than ``BLOCK``, such as an unclosed quote makes of all rows that follow, ends the reading: it and all that follows are
one missing record. Arrow parses the rows; Python's own parser reads the first lines alone, which give the names.
"""

from __future__ import annotations

import codecs
import csv
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privatest.engines.key_columns import DECIMAL
from privatest.errors import InvalidData, shown
from privatest.numbers import Integers

Row = list[bytes | None]
BLOCK = 1 << 23
"""Bytes that Arrow parses at once. It cannot parse a longer row."""
TRUTHS = {"true": 1.0, "false": 0.0}
_QUOTED = re.compile(rb'"((?:[^"]|"")*)"?(.*)', re.DOTALL)


def field_number(field: str | bytes | None, decimal: str = ".") -> float:
    """Return the number that a field is written as; NaN, which is odd, for anything else.

    Apart from white space around it, a number is ``[+-]digits[.digits][e[+-]digits]`` in ASCII, or ``true`` or
    ``false`` in any case.

    Args:
        field: the field; None is a missing one.
        decimal: the decimal mark. With a comma, a field with a dot is no number.

    >>> field_number(b" 1.5e3"), field_number("TRUE"), field_number("1_000"), field_number(b"")
    (1500.0, 1.0, nan, nan)
    >>> field_number("1,5", ","), field_number("1.5", ","), field_number("-3", ",")
    (1.5, nan, -3.0)
    """
    if field is None:
        return math.nan
    text = field_text(field) if isinstance(field, bytes) else field
    text = text.strip(" \t\r\n\v\f")
    if text.lower() in TRUTHS:
        return TRUTHS[text.lower()]
    if decimal != ".":
        text = "" if "." in text else text.replace(decimal, ".")
    return float(text) if DECIMAL.fullmatch(text) else math.nan


def field_text(field: bytes) -> str:
    """Return a field as text. A byte that is no part of UTF-8 becomes a lone surrogate, which is in no label."""
    return field.decode("utf-8", "surrogateescape")


class Utf8:
    """A binary file that is read as UTF-8 without a byte order mark, as Arrow needs it.

    A byte b that is no part of UTF-8 becomes the character U+10FF00 + b, of the last private plane. The field is then
    neither a number nor a label, and two units that differ in such bytes stay two. The last row gets an end.
    """

    def __init__(self, raw: Any) -> None:
        self._raw, self.closed = raw, False
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._held, self._last, self._started, self._ended = b"", b"\n", False, False

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most ``size``. A carriage return is not cut off from its newline.

        Arrow would drop a newline within quotes after such a cut.
        """
        while len(self._held) <= size and not self._ended:
            self._held += self._more(size + 1 - len(self._held))
        size += self._held[size - 1 : size + 1] == b"\r\n" and -1
        taken, self._held = self._held[:size], self._held[size:]
        return taken

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True

    def _more(self, size: int) -> bytes:
        block: bytes = self._raw.read(size)
        self._ended = not block
        if not block.isascii() or self._decoder.getstate()[0]:
            # First a bad byte b becomes U+DC00 + b, whose bytes ED B2 or ED B3 and one more occur in no text.
            block = self._decoder.decode(block, self._ended).encode("utf-8", "surrogatepass")
            block = block.replace(b"\xed\xb2", b"\xf4\x8f\xbe").replace(b"\xed\xb3", b"\xf4\x8f\xbf")
        if not self._started and block:
            block, self._started = block.removeprefix(codecs.BOM_UTF8), True
        self._last = block[-1:] or self._last
        return block + b"\n" if self._ended and self._last not in b"\r\n" else block


def csv_rows(lines: Iterable[bytes], delimiter: str) -> Iterator[Row]:
    """Yield the rows of a CSV text, an empty line as ``[]`` and a row that Python cannot read as ``[None]``.

    Args:
        lines: the lines with their ends; a quoted field may reach over several of them.
        delimiter: what separates fields.
    """
    pieces = itertools.chain.from_iterable(line.splitlines(keepends=True) for line in lines)
    reader = csv.reader((piece.decode("latin-1") for piece in pieces), delimiter=delimiter)  # latin-1 keeps all bytes
    while True:
        try:
            yield [field.encode("latin-1") or None for field in next(reader)]
        except StopIteration:
            return
        except csv.Error:  # a field of more than 128 KiB
            yield [None]


def csv_columns(text: Utf8, delimiter: str, places: Sequence[int], width: int) -> Iterator[list[Any]]:
    """Yield some columns of all rows, the first line included, as Arrow arrays of bytes.

    Args:
        text: the file.
        delimiter: what separates fields.
        places: places of the columns in a row.
        width: number of fields of a row. In the place of every row with another number all columns are missing.
    """
    import pyarrow as pa
    import pyarrow.csv

    strange: list[int] = []  # places of the rows with another number of fields, in order

    def skip(row: Any) -> str:
        strange.append(row.number - 1)
        return "skip"

    def missing(rows: int) -> list[Any]:
        return [pa.nulls(rows, pa.binary())] * len(places)

    # Columns are called by number, because names of columns that are not read may repeat.
    names = [str(place) for place in range(width)]
    done = 0
    try:
        reader = pa.csv.open_csv(
            text,
            # With several threads Arrow does not report the places of invalid rows.
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=BLOCK, column_names=names),
            parse_options=pa.csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=True,
                # In a file of one column an empty line is a missing record.
                ignore_empty_lines=width > 1,
                invalid_row_handler=skip,
            ),
            convert_options=pa.csv.ConvertOptions(
                check_utf8=False,
                include_columns=[names[place] for place in places],
                column_types=dict.fromkeys(names, pa.binary()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        for batch in reader:
            columns, size = batch.columns, batch.num_rows
            before = np.array(strange, dtype=np.int64) - done - np.arange(len(strange))  # rows of the batch
            here = int(np.searchsorted(before, size, side="right"))
            if here:
                rows = np.insert(np.arange(size), before[:here], -1)
                rows = pa.array(rows, mask=rows < 0)
                columns = [column.take(rows) for column in columns]
                del strange[:here]
            done += size + here
            yield columns
    except pa.ArrowInvalid:
        strange.append(done)  # a row is too long: it and all that follows are one record
    if strange:
        yield missing(len(strange))


@dataclass(frozen=True, eq=False, repr=False)
class LineFields:
    """Lines of one field each, None for an empty line. :func:`read_lines` returns it."""

    fields: Sequence[bytes | None]

    def __repr__(self) -> str:
        return f"<{len(self.fields)} lines>"  # logs and debuggers must not show records

    def coded(self) -> tuple[Integers, list[bytes]]:
        """Return each field's position among the distinct fields, -1 for a missing one; and the distinct fields."""
        numbers: dict[bytes, int] = {}
        codes = [-1 if field is None else numbers.setdefault(field, len(numbers)) for field in self.fields]
        return np.array(codes, dtype=np.int64), list(numbers)


@dataclass(frozen=True, eq=False, repr=False)
class CsvText:
    """The text of a CSV file that lies in no file, such as standard input."""

    content: bytes

    def __repr__(self) -> str:
        return f"<{len(self.content)} bytes of CSV>"  # logs and debuggers must not show records


def read_lines(lines: Iterable[bytes | str], *, table: bool = False) -> LineFields | CsvText:
    """Return lines as a source of records: each line is one record, read like a field of a CSV file.

    Ends of lines, and quotes around a field, are removed. A line that makes no sense is an odd record, not an error.

    Args:
        lines: texts or bytes, such as an open file.
        table: whether the lines are a table: fields separated by commas, with the names of the columns in the first
            line.

    >>> import privatest as pt
    >>> pt.data.count_records(pt.data.read_lines(["3", " 0.5", "often", ""]))
    4
    """
    try:
        result = iter(lines)
    except TypeError:
        raise InvalidData(f"lines={shown(lines)} must be lines of text, such as a list or an open file.") from None
    if table:
        return CsvText(b"".join(_line_bytes(line).removesuffix(b"\n") + b"\n" for line in result))
    return LineFields([_line_field(line) for line in result])


def _line_bytes(line: bytes | str) -> bytes:
    if not isinstance(line, (bytes, str)):
        raise InvalidData(f"A line is a {type(line).__name__}, not text. Pass numbers as they are, without read_lines.")
    return line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")


def _line_field(line: bytes | str) -> bytes | None:
    raw = _line_bytes(line).removesuffix(b"\n").removesuffix(b"\r")
    quoted = _QUOTED.fullmatch(raw)
    return raw or None if quoted is None else quoted[1].replace(b'""', b'"') + quoted[2]
