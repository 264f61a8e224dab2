"""How texts are read: decimal commas, texts that mean missing, labels in any case. Said before, for all records alike.

A reading changes records that are text, of CSV files, lines, and columns of text or of Python objects in memory or in
files, before they get their cells. Numbers stay what they are. No record decides how another one is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest.addresses import OpenOnce, ReadAs, Reading
from privatest.engines.arrays import (
    ArrayRecords,
    CodedRecords,
    Part,
    Piece,
    Progress,
    SequenceRecords,
    Stream,
    StreamedRecords,
)
from privatest.engines.csv_files import FieldRecords, LineRecords, field_number
from privatest.engines.frames import DictionaryRecords
from privatest.engines.protocol import CHUNK, Column, Declared, Records, Seen, folded_labels
from privatest.engines.unheard import each_asked
from privatest.errors import InvalidData, InvalidInput, shown
from privatest.scores import Cells, LabelCells

__all__ = ["TextRecords", "coded", "fold", "is_loose", "number_of", "portions", "read_as", "reread"]


DELIMITERS = (",", ";", "\t", "|")


def read_as(
    data: Any,
    *,
    decimal: str = ".",
    missing: Sequence[str] = (),
    fold_case: bool = False,
    delimiter: str | None = None,
) -> Any:
    """The same data, whose texts are to be read in this way; wherever data are taken, this is taken.

    Args:
        data: whatever ``run`` takes, unless it lies in a database or on a cluster.
        decimal: "," where numbers are written 3,5 (a dot then makes a field odd). Where it is given, columns of text
            are read as numbers, too.
        missing: texts that stand for a missing record, such as "NA"; blanks around them do not count.
        fold_case: whether text equals a label that differs from it in case, or by blanks around it, only.

        delimiter: what separates the fields of CSV files, such as ";"; left out: a comma, in ``.tsv`` files a tab.

    It is part of a ledger's request: the same data read in another way are another question.

    >>> import privatest as pt
    >>> data = pt.read_as(pt.read_lines(["0,5", "NA", "1,5"]), decimal=",", missing=["NA"])
    >>> pt.check(data, "normal(0, 1)", "normal(1, 1)").missing
    1
    """
    if not isinstance(decimal, str) or decimal not in (".", ","):
        raise InvalidInput(f"decimal={shown(decimal)} must be '.' or ','.")
    try:
        texts = (missing,) if isinstance(missing, str) else tuple(missing)
    except TypeError:
        raise InvalidInput(f"missing={shown(missing)} must be a list of texts, such as ['NA'].") from None
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput(f"missing holds {shown(text)}; name texts such as 'NA'. Empty ones are missing anyway.")
    if not isinstance(fold_case, bool):
        raise InvalidInput(f"fold_case={shown(fold_case)} must be True or False.")
    if delimiter is not None and (not isinstance(delimiter, str) or delimiter not in DELIMITERS):
        raise InvalidInput(f"delimiter={shown(delimiter)} must be one of {', '.join(map(repr, DELIMITERS))}.")
    source = data.data if isinstance(data, OpenOnce) else data
    if isinstance(source, ReadAs):
        raise InvalidInput(
            "The data are to be read in a way that was said already. Say all of it at once: read_as(...)."
        )
    reading = Reading(decimal, tuple(sorted({text.strip() for text in texts})), fold_case, delimiter)
    return data if reading == Reading() else ReadAs(source, reading)


def reread(records: Records, reading: Reading) -> Records:
    """Records whose texts are read in this way; what separates fields was settled when they were opened."""
    if replace(reading, delimiter=None) == Reading():
        return records
    if isinstance(records, Column):
        return _column(records, reading)
    if isinstance(records, StreamedRecords):
        return replace(records, stream=_stream(records.stream, reading), _seen=Seen())
    raise InvalidData(
        "decimal, missing and fold_case are about texts that privatest reads itself; these records lie in a database "
        "or on a cluster. Leave them out, and convert the column there: name a view or a query that does it."
    )


def _column(records: Column, reading: Reading) -> Column:
    return records if isinstance(records, ArrayRecords | TextRecords) else TextRecords(records, reading)


def _stream(stream: Stream, reading: Reading) -> Stream:
    def piece(plain: Piece) -> Piece:
        def read(progress: Progress) -> Iterator[Part]:
            for part in plain.read(progress):
                yield part._replace(records=_column(part.records, reading))

        return Piece(read)

    return replace(stream, pieces=[piece(one) for one in stream.pieces], sample=_column(stream.sample, reading))


Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TextRecords(Column):
    """Records that are text, or may be, read in a way of their own."""

    plain: Column
    reading: Reading

    @property
    def declared(self) -> Declared:
        found = replace(self.plain.declared, folded=self.reading.fold_case)
        # Texts with a decimal comma are numbers by what was said, whatever their type.
        return replace(found, content="anything") if found.content == "text" and self.reading.decimal != "." else found

    def count(self) -> int:
        return self.plain.count()

    def part(self, first: int, last: int) -> TextRecords:
        return TextRecords(self.plain.part(first, last), self.reading)

    def index(self, cells: Cells) -> npt.NDArray[np.intp]:
        codes, distinct = coded(self.plain)
        # Missing texts are None from here on; other objects are read as they always are.
        kept = [None if type(one) is str and one.strip() in self.reading.missing else one for one in distinct]
        found = SequenceRecords(kept).index(cells)
        if self.reading.fold_case and isinstance(cells, LabelCells):
            folded = folded_labels(cells)
            near = (folded.get(fold(one), cells.count) if type(one) is str else cells.count for one in kept)
            found = np.where(found < cells.count, found, np.fromiter(near, dtype=np.intp, count=len(kept)))
        if is_loose(self):
            mark = self.reading.decimal
            numbers = np.array(
                [number_of(one, mark) if type(one) is str else math.nan for one in kept], dtype=np.float64
            )
            found = np.where(found < cells.count, found, cells.index(numbers))
        return np.append(found, cells.count)[codes]


def is_loose(records: Column) -> bool:
    """Whether texts may be numbers: fields always, other texts where a decimal mark was said."""
    if isinstance(records, TextRecords):
        return records.reading.decimal != "." or is_loose(records.plain)
    return isinstance(records, FieldRecords | LineRecords)


def fold(text: str) -> str:
    """The text as it is compared where case and blanks do not count."""
    return text.strip().casefold()


def number_of(text: str, decimal: str = ".") -> float:
    """The number that a text stands for, with this decimal mark; NaN for anything else.

    >>> number_of("1,5", ","), number_of("1.5", ","), number_of("-3", ",")
    (1.5, nan, -3.0)
    """
    if decimal != ".":
        text = "." if "." in text else text.replace(decimal, ".")
    return field_number(text.encode("utf-8", "surrogatepass"))


def coded(records: Column) -> tuple[Codes, Sequence[Any]]:
    """Records that are not numbers by type as positions in a list of values; -1 for a missing one."""
    if isinstance(records, TextRecords):
        return coded(records.plain)
    if isinstance(records, FieldRecords):
        codes, fields = records.encoded()
        return codes, [_decoded(field) for field in fields]
    if isinstance(records, LineRecords):
        known = {field: place for place, field in enumerate(sorted(set(records.values) - {None}))}  # type: ignore[type-var]
        places = [known.get(field, -1) for field in records.values]
        return np.array(places, dtype=np.int64), [_decoded(field) for field in known if field is not None]
    if isinstance(records, DictionaryRecords | CodedRecords):
        return np.asarray(records.codes, dtype=np.int64), records.distinct
    assert isinstance(records, SequenceRecords)
    return np.arange(len(records.values), dtype=np.int64), records.values


def _decoded(field: bytes) -> str | bytes:
    try:
        return field.decode()
    except UnicodeDecodeError:
        return field


def portions(records: Records) -> Iterator[Column]:
    """All records, some at a time, as columns in memory: raw, for the holder of the data only; units are not cut."""
    if isinstance(records, Column):
        for first in range(0, records.count(), CHUNK):
            yield records.part(first, first + CHUNK)
    elif isinstance(records, StreamedRecords):
        yield from each_asked(records.complaint, lambda: (part.records for part in records.stream.parts()))
    else:
        yield from records.portions()  # type: ignore[attr-defined]
