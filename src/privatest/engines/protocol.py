"""What every engine offers (:class:`Records`): sums of scores, whole or per block; never epsilon or randomness.

Records say how far one person reaches into them (:class:`Promise`), a mechanism what its noise hides (:class:`Need`);
:func:`check_promise` is the one place where the two are compared. Records say what their column's type declares
(:class:`Declared`), a score's cells what they take; :func:`check_declared` is the one place where these are compared.
:class:`OneReading` is for sources that may change while they are read, :class:`Column` for records in memory. Checks
look at a column's type and length, never at a record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from privatest.errors import InvalidData, InvalidInput
from privatest.numbers import Integers
from privatest.scores import Cells, LabelCells, Score
from privatest.scores.score import is_number

__all__ = [
    "CHUNK",
    "LARGE",
    "NO_ENDS",
    "ORDERED",
    "UNDECLARED",
    "Column",
    "Declared",
    "Need",
    "OneReading",
    "OrderTeller",
    "Promise",
    "Records",
    "Seen",
    "Tallied",
    "block_ends",
    "check_count",
    "check_declared",
    "check_promise",
    "counter",
    "folded_labels",
    "indexer",
    "scores_of_each",
    "tied",
    "totals_of_blocks",
    "unfit",
    "unordered",
    "whole_blocks",
]

# Numbers of records after which a series is cut; those at or beyond its length cut nothing.
NO_ENDS = range(0)


@dataclass(frozen=True)
class Promise:
    """How far one person reaches into records, whatever that person's rows hold; how many rows, and when, is public.

    Attributes:
        rows: the most rows of one person that count; None: no unit was named, each row is a person of its own.
        positions: "fixed", the rows lie in an order of their own; "tied", in that of a column, and what they hold
            decides among equal values of it; "moved", what a person's rows hold decides which of them count, and so
            where everybody else's stand; "none", the rows lie in no order.
    """

    rows: int | None = None
    positions: Literal["fixed", "tied", "moved", "none"] = "fixed"

    @classmethod
    def of(cls, most: int | None, order: str | None, *, lie: bool) -> Promise:
        """What rows promise that are cut to ``most`` of a unit and sorted by a column; without one they ``lie`` so."""
        return cls(most, "moved" if most is not None else "tied" if order is not None else "fixed" if lie else "none")


@dataclass(frozen=True)
class Need:
    """What a mechanism takes for granted.

    Attributes:
        rows: the most rows of one person that its noise hides; above 1, records must have been cut to them.
        ordered: whether it looks at positions: a person may then move other people's among equal values of an order
            only. Where it cuts blocks, no such values lie on both sides of a cut: ``Records.check_ends`` sees to it.
    """

    rows: int = 1
    ordered: bool = False


ORDERED = Need(ordered=True)


def check_promise(promise: Promise, need: Need) -> None:
    """Raise InvalidData if the records promise less than the mechanism needs: its answer would not be private."""
    if promise.rows is None and need.rows > 1:
        raise InvalidData(
            f"The test was designed for up to max_rows_per_unit={need.rows} records of one person, but unit is "
            "missing. Say which column names the person: unit=..."
        )
    if promise.rows is not None and promise.rows > need.rows:
        raise InvalidData(
            f"The records were opened with max_rows_per_unit={promise.rows}, and this needs max_rows_per_unit="
            f"{need.rows} at most: with more rows a person moves the answer further than the noise hides. Open them "
            f"with max_rows_per_unit={need.rows}, or run a test designed with max_rows_per_unit={promise.rows}."
        )
    if need.ordered and promise.positions == "moved":
        raise InvalidData(
            f"The records were cut to max_rows_per_unit={promise.rows} by unit, and this looks at their order: what "
            "one person's rows hold decides which of them count, and so where everybody else's stand. Name the unit in "
            "the call itself: the first rows of each person then count, and all stay in their places."
        )
    if need.ordered and promise.positions == "none":
        raise unordered()


@dataclass(frozen=True)
class Declared:
    """What the declared type of a column says about every record of it, before any is read.

    Attributes:
        content: "anything" where nothing is declared (lists and columns of Python objects, fields of CSV files, lines,
            columns in which everything is missing): there an error would be about a record, so there is none.
        type: the type, as its library writes it.
        column: the column's name, where it has one.
        folded: whether labels are met in any case: no two of them may then be the same.
    """

    content: Literal["anything", "numbers", "truths", "text", "bytes"] = "anything"
    type: str = ""
    column: str | None = None
    folded: bool = False

    @property
    def subject(self) -> str:
        """How a sentence about the records begins."""
        return "The data are" if self.column is None else f"Column {self.column!r} is"


UNDECLARED = Declared()


def check_declared(declared: Declared, score: Score) -> None:
    """Raise InvalidData if no record that the column's type allows is in the support of either distribution."""
    cells, content = score.cells, declared.content
    if declared.folded:
        folded_labels(cells)
    if content == "anything" or _some_fit(content, cells):
        return
    found = f"{declared.subject} {content if content in ('text', 'bytes') else 'numbers'} ({declared.type})"
    other = f"{'pass' if declared.column is None else 'name'} another column"
    if not isinstance(cells, LabelCells):
        rule, remedy = "the distributions are over numbers", f"Convert it to numbers, or {other}"
        if content == "truths":
            rule, remedy = "neither 0 nor 1 is in the support of either distribution", other.capitalize()
    elif content in ("text", "bytes"):
        rule = f"no label of the distributions is {content}"
        remedy = f"Convert it to what the labels are, give the distributions labels of {content}, or {other}"
    elif any(is_number(label) for label in cells.labels):
        rule, remedy = "no label of the distributions is 0 or 1", f"Give the distributions such labels, or {other}"
    else:
        rule = "no label of the distributions is a number"
        remedy = f"Pass the labels themselves, give the distributions numeric labels, or {other}"
    raise InvalidData(f"{found}, but {rule}: no record of it could count. {remedy}.")


def folded_labels(cells: Cells) -> dict[str, int]:
    """The cells of text labels, by the label without its case and the blanks around it; refuses two that coincide."""
    found: dict[str, int] = {}
    texts = cells.labels if isinstance(cells, LabelCells) else ()
    for cell, label in enumerate(texts):
        if isinstance(label, str):
            first = found.setdefault(label.strip().casefold(), cell)
            if first != cell:
                raise InvalidInput(
                    f"fold_case was given, but the labels {texts[first]!r} and {label!r} differ in case or blanks "
                    "only. Leave fold_case out, or make them one label."
                )
    return found


def _some_fit(content: str, cells: Cells) -> bool:
    """Whether some value of this content has a cell."""
    if content == "truths":
        return bool(np.any(cells.index(np.array([0.0, 1.0])) < cells.count))
    if not isinstance(cells, LabelCells):
        return content == "numbers"
    if content == "numbers":
        return any(is_number(label) for label in cells.labels)
    return any(isinstance(label, str if content == "text" else bytes) for label in cells.labels)


def tied(order: str | None) -> InvalidData:
    """The error for blocks whose ends are not settled."""
    return InvalidData(
        f"Column {order!r} does not order the records: equal values lie on both sides of a block's end, so that one "
        "record could change two blocks. Order by a column without ties, or sort the rows yourself and leave order out."
    )


def unordered() -> InvalidData:
    """The error for a series of rows that lie in no order."""
    return InvalidData("The rows of a database lie in no order. Name the column that gives it: order=...")


def block_ends(n: int, block: int, start: int = 0) -> range:
    """After how many of n records whole blocks from ``start`` on end where another one begins."""
    return range(start + block, start + max(n - start, 0) // block * block, block)


@runtime_checkable
class Records(Protocol):
    """One column of records, wherever it lies, its rows cut to the most that one unit may contribute.

    ``promise`` says how far one person reaches into them, ``declared`` what their type says of every one of them.

    Guarantees: the same records give the same integers on every engine (docs/engines.md has the rules); all of them
    are raw and must not leave the process except through a private mechanism.
    """

    @property
    def promise(self) -> Promise: ...

    @property
    def declared(self) -> Declared: ...

    def count(self) -> int:
        """How many records there are (with a unit: after the cut)."""

    def check(self, score: Score) -> None:
        """Raise InvalidData if the column's type (never a record's value) cannot fit the score."""

    def total(self, score: Score) -> int:
        """The exact sum of all records' scores."""

    def block_totals(self, score: Score, block: int, start: int = 0) -> list[int]:
        """Totals of consecutive blocks from record ``start`` on; an incomplete last block is not used."""

    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:
        """The score of each record, in order; refused as by :meth:`check_ends`."""

    def check_ends(self, ends: range) -> None:
        """Raise InvalidData if equal values of the order lie on both sides of one of the ends (records before it).

        Looks at the order alone, which is public and the same for neighbours; never at a record.
        """

    def histogram(self, cells: Cells) -> list[int]:
        """How many records each cell has, the odd cell last."""


@runtime_checkable
class OrderTeller(Protocol):
    """Records in the order of a column whose values can be told, for those who declare that column public."""

    @property
    def tells_order(self) -> bool:
        """Whether the values are at hand in the form in which the column has them."""

    def order_values(self, places: Sequence[int]) -> list[int | float | str | None]:
        """The order's values at these places, counted from 0, as numbers and texts; None for a missing one.

        Guarantees: depends on the order alone, never on a record; fails, if at all, whatever the places are.
        """


@dataclass(eq=False)
class Seen:
    """What the last reading of a source found.

    Attributes:
        checked: a score that was checked since, and that no reading has summed yet.
        count: how many records there are.
        by: what they were summed or counted by.
        found: the sum by a score, or the counts of cells.
    """

    checked: Score | None = None
    count: int | None = None
    by: Score | Cells | None = None
    found: Any = None


class OneReading(ABC):
    """Records of a source that may change while it is read: how many there are and what they sum to go together.

    Guarantees: once a score was checked, counting sums it too, and the sum is kept until it is asked for: both are of
    one query, one job or one pass, and rows that arrive between the two questions are in both or in neither. A series
    of another length than the count before it is refused.
    """

    _seen: Seen

    @property
    @abstractmethod
    def declared(self) -> Declared:
        """What the column's type says of every record."""

    def _fits(self, score: Score) -> None:
        """Raise InvalidData if the column's type cannot fit the score."""
        check_declared(self.declared, score)

    @abstractmethod
    def _rows(self) -> int:
        """How many records there are, from a reading of its own."""

    @abstractmethod
    def _sum(self, score: Score) -> tuple[int, int]:
        """How many records there are and the sum of their scores, from one reading."""

    @abstractmethod
    def _cells(self, cells: Cells) -> list[int]:
        """How many records each cell has, from one reading."""

    def check(self, score: Score) -> None:
        self._fits(score)
        self._seen.checked = score

    def count(self) -> int:
        seen = self._seen
        if seen.checked is not None:
            _ = self.histogram(seen.checked.cells) if _is_counter(seen.checked) else self.total(seen.checked)
        elif seen.count is None:
            seen.count = self._rows()
        assert seen.count is not None
        return seen.count

    def total(self, score: Score) -> int:
        seen = self._seen
        if seen.by is not score:
            self._fits(score)
            seen.count, seen.found = self._sum(score)
            seen.by = score
        seen.checked = None
        return int(seen.found)

    def histogram(self, cells: Cells) -> list[int]:
        seen = self._seen
        if seen.by is not cells:
            self._fits(counter(cells))
            seen.found = self._cells(cells)
            seen.count, seen.by = sum(seen.found), cells
        seen.checked = None
        return list(seen.found)

    def _known(self) -> int | None:
        """How many records there must be, by the last reading or by the source's structure."""
        return self._seen.count

    def _agree(self, count: int) -> None:
        """Refuse a reading of another number of records than the one that was told."""
        if self._known() not in (None, count):
            raise InvalidData(
                "The data changed while they were read: rows came or went after they were counted. Nothing "
                "was released. Run it again on data that nobody writes to; the same request is not charged twice."
            )


def _is_counter(score: Score) -> bool:
    return bool(np.all(score.table == 1))


def counter(cells: Cells) -> Score:
    """A score of 1 for everything: what a histogram's cells are checked with."""
    return _bare(cells, np.ones(cells.count + 1, dtype=np.int64))


def indexer(cells: Cells) -> Score:
    """The score that is the index of the cell, the odd cell last."""
    return _bare(cells, np.arange(cells.count + 1, dtype=np.int64))


def _bare(cells: Cells, table: Integers) -> Score:
    """Engines look at the cells and the table only; the laws are those of a score nobody asks about."""
    law = np.ones(1)
    return Score(cells, table, Fraction(0), Fraction(1), table[:1].copy(), law, law.copy())


class Tallied:
    """Records that also tell how many of them are odd, of one reading with their total where no unit is named.

    The total is that of the cells' counts, which is the same integer. With units each of the two cuts a person's rows
    by the score that is summed, so that they are two readings; in memory two sums are quicker than many counts.
    """

    def __init__(self, records: Records) -> None:
        self._records, self._apart = records, records.promise.rows is not None or isinstance(records, Column)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._records, name)

    def check(self, score: Score) -> None:
        """As the records do; what is counted next is counted by cells."""
        self._records.check(score if self._apart else counter(score.cells))

    def total(self, score: Score) -> int:
        """The exact sum of all records' scores."""
        if self._apart:
            return self._records.total(score)
        counts = self._records.histogram(score.cells)
        return sum(one * count for one, count in zip(score.table.tolist(), counts, strict=True) if count)

    def odd(self, score: Score) -> int:
        """How many records have the odd cell: raw, like a total."""
        if not self._apart:
            return self._records.histogram(score.cells)[-1]
        table = np.zeros(score.cells.count + 1, dtype=np.int64)
        table[-1] = 1
        return self._records.total(_bare(score.cells, table))


Indices = npt.NDArray[np.intp]

# Records at a time: few enough for the cache, many enough that threads seldom wait for the interpreter.
CHUNK = 1 << 18
# Scores from here on are summed as Python integers: a chunk of them may not fit 64 bits.
LARGE = (1 << 62) // CHUNK


class Column(ABC):
    """Records in memory. Their cells are enough to say everything else."""

    promise = Promise()

    @property
    def declared(self) -> Declared:
        """What the column's type says of every record."""
        return UNDECLARED

    @abstractmethod
    def count(self) -> int:
        """How many records there are."""

    def check(self, score: Score) -> None:
        """Raise InvalidData if the column's type (never a record's value) cannot fit the score."""
        check_declared(self.declared, score)

    @abstractmethod
    def index(self, cells: Cells) -> Indices:
        """The cell of each record."""

    @abstractmethod
    def part(self, first: int, last: int) -> Column:
        """Records first .. last - 1, without a copy."""

    def total(self, score: Score) -> int:
        """The exact sum of all records' scores."""
        parts = (self.part(first, first + CHUNK) for first in range(0, self.count(), CHUNK))
        if max(abs(score.low), abs(score.high)) >= LARGE:
            return sum(sum(score.table[part.index(score.cells)].tolist()) for part in parts)
        return sum(int(score.table[part.index(score.cells)].sum()) for part in parts)

    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:  # noqa: ARG002 - nothing is tied
        """The score of each record, in order."""
        return score.table[self.index(score.cells)]

    def check_ends(self, ends: range) -> None:  # noqa: B027 - for columns there is nothing to check
        """Records lie in an order of their own: nothing is tied."""

    def block_totals(self, score: Score, block: int, start: int = 0) -> list[int]:
        """Totals of consecutive blocks from record ``start`` on; an incomplete last block is not used."""
        count = max(self.count() - start, 0) // block
        # Whole blocks at a time: the scores of the others need not be kept.
        step = max(CHUNK // block, 1)
        totals: list[int] = []
        for first in range(0, count, step):
            last = min(first + step, count)
            totals += whole_blocks(self.part(start + first * block, start + last * block).series(score), block)
        return totals

    def histogram(self, cells: Cells) -> list[int]:
        """How many records each cell has, the odd cell last."""
        counts = np.zeros(cells.count + 1, dtype=np.int64)
        for first in range(0, self.count(), CHUNK):
            counts += np.bincount(self.part(first, first + CHUNK).index(cells), minlength=cells.count + 1)
        return [int(count) for count in counts]


def whole_blocks(scores: Integers, block: int) -> list[int]:
    """Sums of consecutive runs of ``block`` scores; what is left over is not used."""
    whole = len(scores) // block * block
    return [int(total) for total in scores[:whole].reshape(-1, block).sum(axis=1)]


def scores_of_each(records: Records, score: Score, ends: range = NO_ENDS) -> Integers:
    """The integer score of each record, in order of time.

    Refuses an order with equal values on both sides of one of the ``ends``, where the series is to be cut.

    Guarantees: an odd record gets the odd score; no sum of any of the scores leaves 64 bits (checked).
    """
    records.check(score)
    score.check_total(max(records.count(), 1))
    return records.series(score, ends)


def totals_of_blocks(records: Records, score: Score, block: int, start: int = 0) -> list[int]:
    """Totals of consecutive blocks of ``block`` records, from record ``start`` on; what is left over is not used.

    Guarantees: the same scores as :func:`scores_of_each`, summed exactly (checked against 64 bits).
    """
    records.check(score)
    score.check_total(block)
    return records.block_totals(score, block, start)


def check_count(count: int, n: int) -> None:
    """Refuse data of another length than the test's, where that is public."""
    if count != n:
        raise InvalidData(
            f"The data have {count} records, the test was designed for n={n}. "
            f"Design it with n={count}, or pass exactly {n} records."
        )


def unfit(
    what: str, remedy: str = "Pass numbers, or the labels of the distributions", column: str | None = None
) -> InvalidData:
    """The error for a type that no rule reads."""
    return InvalidData(f"{'The data have' if column is None else f'Column {column!r} has'} {what}. {remedy}.")
