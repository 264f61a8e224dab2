"""Records: what every engine offers, how far one person reaches into it, and how it is read without saying anything.

Every engine has a subclass of :class:`Records`: sums of scores, of all records or of blocks, without epsilon or
randomness. :class:`Column` is the base of records in memory; :class:`SourceRecords` is the base of records in a source
that may change while it is read. Checks look at a column's type and length, never at a record.

Records say how far one person reaches into them (:class:`Promise`), and a mechanism says what its noise hides
(:class:`Need`); only :func:`check_promise` compares the two. Records say what their column's type declares
(:class:`Declared`), and a score's cells say what they take; only :func:`check_declared` compares these.

What a library raises, warns of or logs while it reads records must not reach the user: a database that fails quotes the
text it failed at, Arrow quotes the number that does not fit, and PySpark logs both. So all code of libraries that looks
at records runs guarded: every method of records (:class:`Records` wraps them in every engine), and everything that
happens when records are opened or read in parts (:func:`guarded`, :func:`each_guarded`). Errors of this package pass,
because they quote no record; any other error becomes a sentence about the source. Python keeps the filters of warnings
per process, so no thread's warnings are shown while any thread reads. Logs are dropped in the thread that reads only.
Not suppressed: what other code writes to a terminal itself, and logs on other machines.
"""

from __future__ import annotations

import functools
import logging
import math
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeVar, cast

import numpy as np
import numpy.typing as npt

from privatest.errors import InvalidData, InvalidInput, PrivatestError
from privatest.numbers import Floats, Integers
from privatest.scores import Cells, GroupedCells, LabelCells, Score
from privatest.scores.score import is_number

Result = TypeVar("Result")
Complaint = str | Callable[[BaseException], str]

NO_LEVEL = -1
"""A log's level that is below the level of every handler, so that no handler sees it."""


class _ThisThread(threading.local):
    reads = False


_thread = _ThisThread()


class _Filters:
    """Ignores all warnings from when the first thread begins to read until the last one has ended."""

    def __init__(self) -> None:
        self._lock, self._readers = threading.Lock(), 0
        self._before: Any = None

    def enter(self) -> None:
        with self._lock:
            self._readers += 1
            if self._readers == 1:
                self._before = warnings.catch_warnings()
                self._before.__enter__()
                warnings.simplefilter("ignore")
                warnings.showwarning = _ignore_warning

    def leave(self) -> None:
        with self._lock:
            self._readers -= 1
            if self._readers == 0:
                self._before.__exit__(None, None, None)


_filters = _Filters()


def _ignore_warning(*_: Any, **__: Any) -> None:
    """Ignore a warning that a filter set by other code lets through."""


def _drop_logs() -> None:
    """Install a factory of log records that empties the log records of a thread that reads data."""
    standard = logging.getLogRecordFactory()
    if getattr(standard, "drops", None) is _thread:
        return

    def factory(*args: Any, **words: Any) -> logging.LogRecord:
        record = standard(*args, **words)
        if _thread.reads:
            record.levelno, record.msg, record.args = NO_LEVEL, "", ()
            record.exc_info = record.exc_text = record.stack_info = None
        return record

    factory.drops = _thread  # type: ignore[attr-defined]
    logging.setLogRecordFactory(factory)


@contextmanager
def silenced() -> Iterator[None]:
    """Drop warnings, and this thread's logs, while the context lasts. Exceptions pass."""
    if _thread.reads:
        yield
        return
    _drop_logs()
    _filters.enter()
    _thread.reads = True
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _thread.reads = False
        _filters.leave()


def guarded(complaint: Complaint, read: Callable[[], Result]) -> Result:
    """Return what ``read`` returns, within :func:`silenced`; an error of a library becomes InvalidData.

    Args:
        complaint: a sentence about the source, or a function that makes one from the library's error.
        read: a function that looks at records by means of a library.
    """
    try:
        with silenced():
            return read()
    except PrivatestError as error:
        error.__cause__ = error.__context__ = None  # a library's error, which may quote a record
        raise
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of a library in Rust is no Exception
        problem = f"{complaint} ({type(error).__name__})" if isinstance(complaint, str) else complaint(error)
    # Raised outside of the except clause, so that it does not carry the library's error as its context.
    raise InvalidData(problem)


def each_guarded(complaint: Complaint, read: Callable[[], Iterable[Result]]) -> Iterator[Result]:
    """Yield the items of the iterable that ``read`` returns; each step is guarded as by :func:`guarded`."""
    items = guarded(complaint, lambda: iter(read()))
    nothing: Any = object()
    while (item := guarded(complaint, lambda: next(items, nothing))) is not nothing:
        yield item


GUARDED_METHODS = (
    "count",
    "check",
    "total",
    "exact",
    "block_totals",
    "series",
    "check_ends",
    "histogram",
    "index",
    "order_forms",
    "order_values",
    "groups",
    "is_shared",
    "only",
    "grouped",
)
"""Methods of :class:`Records` that look at records. They are guarded in every class."""


def _guarded_method(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def wrapped(self: Records, *args: Any, **words: Any) -> Any:
        if _thread.reads:
            return method(self, *args, **words)
        return guarded(self.complaint, lambda: method(self, *args, **words))

    wrapped.guarded = True  # type: ignore[attr-defined]
    return wrapped


NO_ENDS = range(0)
"""Numbers of records after which a series is cut: nowhere."""


@dataclass(frozen=True)
class Promise:
    """Bounds on the records that one person can contribute, whatever that person's rows hold.

    The number of a person's rows and their times are public.

    Attributes:
        rows: the most rows of one person that count; None: no unit was named, so each row is a person of its own.
        positions: "fixed": rows lie in the order of their source. "tied": they are sorted by a column, and what rows
            hold decides their order among equal values of it. "joined": the rows of a person are one sum, which has no
            position. "none": rows lie in no order.
    """

    rows: int | None = None
    positions: Literal["fixed", "tied", "joined", "none"] = "fixed"

    @classmethod
    def of_database(cls, most: int | None, order: str | None) -> Promise:
        """Return the promise of a database's rows: joined by unit, sorted by a column, or in no order."""
        return cls(most, "joined" if most is not None else "tied" if order is not None else "none")


@dataclass(frozen=True)
class Need:
    """What a mechanism assumes about the records.

    Attributes:
        rows: the most rows of one person that its noise hides. Above 1, records must have been limited to that many.
        ordered: whether it uses the positions of records. A person may then move other people's records only among
            equal values of the order. Where records are cut into blocks, ``Records.check_ends`` refuses equal values on
            both sides of a cut.
    """

    rows: int = 1
    ordered: bool = False


ORDERED = Need(ordered=True)


def check_promise(promise: Promise, need: Need) -> None:
    """Raise InvalidData if the records promise less than the mechanism needs, so that it would not be private."""
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
    if need.ordered:
        check_positions(promise)


def check_positions(promise: Promise) -> None:
    """Raise InvalidData if the rows have no positions."""
    if promise.positions == "joined":
        raise InvalidData(
            f"The records were opened with unit and max_rows_per_unit={promise.rows}: the rows of a person are one "
            "sum, and this looks at the order of rows. Name the unit in the call itself: the first rows of each person "
            "then count, and all stay in their places."
        )
    if promise.positions == "none":
        raise no_order_error()


@dataclass(frozen=True)
class Declared:
    """What the type of a column declares about every record of it, before any is read.

    Attributes:
        content: what the records are. "anything" where nothing is declared: lists and columns of Python objects, fields
            of CSV files, lines, and columns in which everything is missing. There an error would depend on a record.
        type: the type, as its library writes it.
        column: the column's name, if it has one.
        folded: whether labels are compared without case, so that no two labels may be equal but for case.
        nullable: whether the type admits a missing value.
    """

    content: Literal["anything", "numbers", "truths", "text", "bytes"] = "anything"
    type: str = ""
    column: str | None = None
    folded: bool = False
    nullable: bool = True
    between: tuple[float, float] = (-math.inf, math.inf)

    def may_leave(self, support: tuple[float, float]) -> bool:
        """Whether the type admits a record that is missing, or a number outside the support of a family."""
        return self.nullable or self.between[0] < support[0] or support[1] < self.between[1]

    @property
    def subject(self) -> str:
        """Beginning of a sentence about the records."""
        return "The data are" if self.column is None else f"Column {self.column!r} is"


UNDECLARED = Declared()


_LABELS_REMEDY = (
    "If it holds labels, name the one that counts (success='Yes', for estimates and groups), or describe them "
    "(categorical(Yes=0.4, No=0.6), for tests)"
)


def check_declared(declared: Declared, score: Score) -> None:
    """Raise InvalidData if the column's type allows no record that is in the support of either distribution."""
    cells, content = score.cells.of_record, declared.content
    if declared.folded:
        folded_labels(cells)
    if content == "anything" or _some_value_fits(content, cells):
        return
    result = f"{declared.subject} {content if content in ('text', 'bytes') else 'numbers'} ({declared.type})"
    other = f"{'pass' if declared.column is None else 'name'} another column"
    if not isinstance(cells, LabelCells):
        rule, remedy = "the distributions are over numbers", f"{_LABELS_REMEDY}. Or convert it to numbers, or {other}"
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
    raise InvalidData(f"{result}, but {rule}: no record of it could count. {remedy}.")


def fold(text: str) -> str:
    """Return a text in the form that is compared where case and blanks around it do not matter."""
    return text.strip().casefold()


def folded_labels(cells: Cells) -> dict[str, int]:
    """Return the cell of each text label, by the label in lower case and without blanks around it.

    Raises InvalidInput if two labels are then equal.
    """
    result: dict[str, int] = {}
    texts = cells.labels if isinstance(cells, LabelCells) else ()
    for cell, label in enumerate(texts):
        if isinstance(label, str):
            first = result.setdefault(fold(label), cell)
            if first != cell:
                raise InvalidInput(
                    f"fold_case was given, but the labels {texts[first]!r} and {label!r} differ in case or blanks "
                    "only. Leave fold_case out, or make them one label."
                )
    return result


def _some_value_fits(content: str, cells: Cells) -> bool:
    """Whether some value of this content has a cell."""
    if content == "truths":
        named = cells.rest if isinstance(cells, LabelCells) else cells.count
        return bool(np.any(cells.index(np.array([0.0, 1.0])) < named))
    if not isinstance(cells, LabelCells):
        return content == "numbers"
    if content == "numbers":
        return any(is_number(label) for label in cells.labels)
    return any(isinstance(label, str if content == "text" else bytes) for label in cells.labels)


def no_order_error() -> InvalidData:
    """Return the error for a question about order where no column gives it."""
    return InvalidData("The rows of a database lie in no order. Name the column that gives it: order=...")


def changed_data_error(how: str) -> InvalidData:
    """Return the error for a source that differs from what it was when it was read before."""
    return InvalidData(
        f"The data changed while they were read: {how}. Nothing was released. Run it again on data that nobody writes "
        "to; the same request is not charged twice."
    )


def block_ends(n: int, block: int, start: int = 0) -> range:
    """Return the numbers of records, of n, after which a whole block ends and another one begins."""
    return range(start + block, start + max(n - start, 0) // block * block, block)


Draw = Callable[[Integers, int], Integers]
"""Draws so many entries of each line of a table without looking at them: ``draw_rows`` of ``privacy/bulk_draws.py``.

Engines have no randomness of their own: the caller passes it.
"""


@dataclass(frozen=True, eq=False)
class Surplus:
    """The cells of all rows of persons with more than ``most`` rows. The rows that count are drawn later.

    Guarantees: the same persons give the same tables on every engine, in whatever order they were read.

    Attributes:
        tables: one table for every number of rows m, of the persons with m rows. Each line of it is a person, as m
            cells in ascending order; the lines are sorted.
        most: the most rows of one person that count.
    """

    tables: tuple[Integers, ...]
    most: int

    @classmethod
    def split(
        cls, persons: Integers, cells: Integers, counts: Integers, few: npt.NDArray[np.bool_], size: int, most: int
    ) -> tuple[list[int], Surplus]:
        """Return the counts of the cells of persons whose rows all count, and the other persons.

        Args:
            persons, cells, counts: pairs of a person and a cell, and how many rows each pair has.
            few: whether each pair is of a person with at most ``most`` rows. These persons need no number.
            size: number of cells, the odd one included.
            most: the most rows of one person that count.
        """
        certain = np.zeros(size, dtype=np.int64)
        np.add.at(certain, cells[few], counts[few])
        persons, cells, counts = persons[~few], cells[~few], counts[~few]
        order = np.lexsort((cells, persons))
        rows, owner = np.repeat(cells[order], counts[order]), np.repeat(persons[order], counts[order])
        _, sizes = np.unique(owner, return_counts=True)
        of_row = np.repeat(sizes, sizes)
        every, many = np.unique(of_row, return_counts=True)
        result = np.split(rows[np.argsort(of_row, kind="stable")], np.cumsum(many)[:-1])
        tables = [cell.reshape(-1, m) for m, cell in zip(every.tolist(), result, strict=False)]
        return certain.tolist(), cls(tuple(table[np.lexsort(table.T[::-1])] for table in tables), most)

    @property
    def count(self) -> int:
        """Number of records that these persons count as."""
        return self.most * sum(len(table) for table in self.tables)

    def drawn(self, draw: Draw, size: int) -> Integers:
        """Draw the rows that count, and return the counts of their cells."""
        counts = np.zeros(size, dtype=np.int64)
        for table in self.tables:
            counts += np.bincount(draw(table, self.most).ravel(), minlength=size)
        return counts


class Records(ABC):
    """One column of records, wherever it lies. With a unit, the rows of a person are limited to ``max_rows_per_unit``.

    Guarantees: the same records give the same integers on every engine (docs/engines.md has the rules). All of these
    integers are raw, and must not leave the process except through a private mechanism. The methods named in
    ``GUARDED_METHODS`` are guarded in every subclass.

    Attributes:
        complaint: a sentence for the error of a library that fails to read them.
    """

    complaint: ClassVar[str] = "The data could not be read: a library that was to do it failed."

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        for name in GUARDED_METHODS:
            if name in cls.__dict__:
                setattr(cls, name, _guarded_method(cls.__dict__[name]))

    @property
    @abstractmethod
    def promise(self) -> Promise:
        """How far one person reaches into the records."""

    @property
    def declared(self) -> Declared:
        """What the column's type declares about every record."""
        return UNDECLARED

    @abstractmethod
    def count(self) -> int:
        """Return the number of records; with a unit a person with m rows counts as min(m, max_rows_per_unit)."""

    @abstractmethod
    def check(self, score: Score) -> None:
        """Raise InvalidData if the column's type (never a record's value) cannot fit the score."""

    @abstractmethod
    def total(self, score: Score) -> int:
        """Return the exact sum of all records' scores; with a unit the sum over all persons, rounded once."""

    @abstractmethod
    def histogram(self, cells: Cells, draw: Draw | None = None) -> list[int]:
        """Return the number of records in each cell, the odd cell last.

        Args:
            cells: the cells.
            draw: chooses the rows that count of persons who have too many; needed only with a unit.
        """

    @abstractmethod
    def block_totals(self, score: Score, block: int, start: int = 0) -> list[int]:
        """Return the totals of consecutive blocks from record ``start`` on, without an incomplete last block."""

    @abstractmethod
    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:
        """Return the score of each record, in order. Raises as :meth:`check_ends` does."""

    def check_ends(self, ends: range) -> None:  # noqa: B027 - nothing is tied where the source gives the order
        """Raise InvalidData if equal values of the order lie on both sides of one of the ends.

        Args:
            ends: numbers of records, counted from the first one, after which a block ends.

        It looks only at the order, which is public and the same for neighbouring data, never at a record.
        """

    @property
    def has_order_values(self) -> bool:
        """Whether the records are ordered by a column whose values can be read."""
        return False

    def order_forms(self) -> set[str]:
        """Return the ISO forms of the order's texts and objects, "" for one that has none; two of them are enough.

        The set is empty if the order's type sorts by itself. It looks only at the order, never at a record.
        """
        return set()

    def order_values(self, places: Sequence[int]) -> list[int | float | str | None]:
        """Return the order's values at these places, counted from 0, as numbers and texts; None for a missing one.

        Guarantees: depends on the order alone, never on a record. Whether it fails does not depend on the places.
        """
        raise NotImplementedError

    def groups(self) -> list[str]:
        """Return the names of the groups, at most ``MOST_GROUPS`` of them. Rows without a name are in no group.

        The column of the groups and that of the unit are public; no record is looked at.
        """
        raise NotImplementedError

    def declared_groups(self) -> list[str]:
        """Return the groups that the schema of a database lists: the labels of an enumeration. Empty if it lists none.

        Categories of data frames, dictionaries of Arrow and Parquet and enumerations of DuckDB are none of these: what
        makes them takes them from the records.
        """
        return []

    def is_shared(self) -> bool:
        """Whether some unit has rows in more than one group."""
        raise NotImplementedError

    def only(self, name: str) -> Records:
        """Return the records of one group. Their promise is the same."""
        raise NotImplementedError

    def in_places(self) -> Records:
        """Return the same rows in their places, for records with a unit: the first rows of each unit count.

        The other rows, and rows without a unit, have the odd score.
        """
        raise NotImplementedError

    def grouped(self, names: Sequence[str]) -> Records:  # noqa: ARG002 - for records without groups
        """Return the same records, to be counted by the cells of these groups (:class:`GroupedCells`).

        Guarantees: the promise is the same. A record's cell depends on that record and its group alone.
        """
        raise InvalidData("The data are a single column, which has no groups. Pass a table, and name by=...")

    def portions(self) -> Iterator[Column]:
        """Yield all records as columns in memory. Raw, for the holder of the data only; units are not limited."""
        raise NotImplementedError


MOST_GROUPS = 3
"""The most names of groups that are read: two groups are compared, and a third one is an error."""


@dataclass(eq=False)
class LastReading:
    """What the last reading of a source found.

    Attributes:
        checked: a score that was checked since then and has not been summed yet.
        count: number of records.
        by: the score that they were summed by, or the cells that they were counted by.
        result: the sum, or the counts of the cells and the persons of whom rows are still to be drawn.
    """

    checked: Score | None = None
    count: int | None = None
    by: Score | Cells | None = None
    result: Any = None


class SourceRecords(Records):
    """Base of records in a source that may change while it is read: a count and a sum come from one reading.

    Guarantees: once a score was checked, :meth:`count` sums it too, and the sum is kept until it is used. Both come
    from one query, job or pass, so rows that arrive in between are in both or in neither. A reading that finds another
    number of records than the one before raises InvalidData.
    """

    _last_reading: LastReading

    def _fits(self, score: Score) -> None:
        """Raise InvalidData if the column's type cannot fit the score."""
        check_declared(self.declared, score)

    @abstractmethod
    def _rows(self) -> int:
        """Return the number of records, from a separate reading of the source."""

    @abstractmethod
    def _sum(self, score: Score) -> tuple[int, int | Fraction]:
        """Return the number of records and the sum of their scores before rounding, from one reading."""

    @abstractmethod
    def _cells(self, cells: Cells) -> tuple[list[int], Surplus | None]:
        """Return the counts of the cells from one reading, and with a unit the persons whose rows are to be drawn."""

    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:  # noqa: ARG002 - for rows without positions
        check_positions(self.promise)
        raise NotImplementedError

    def check_ends(self, ends: range) -> None:
        if len(ends):
            check_positions(self.promise)

    def block_totals(self, score: Score, block: int, start: int = 0) -> list[int]:  # noqa: ARG002 - as series
        check_positions(self.promise)
        raise NotImplementedError

    def check(self, score: Score) -> None:
        self._fits(score)
        self._last_reading.checked = score

    def count(self) -> int:
        seen = self._last_reading
        if seen.checked is not None:
            _ = self._counted(seen.checked.cells) if _only_counts(seen.checked) else self.total(seen.checked)
        elif seen.count is None:
            seen.count = self._rows()
        assert seen.count is not None
        return seen.count

    def total(self, score: Score) -> int:
        return nearest(self.exact(score))

    def exact(self, score: Score) -> Fraction:
        """Return the sum of the scores before it is rounded."""
        seen = self._last_reading
        if seen.by is not score:
            self._fits(score)
            count, result = self._sum(score)
            self._agree(count)
            seen.count, seen.result, seen.by = count, result, score
        seen.checked = None
        return Fraction(seen.result)

    def histogram(self, cells: Cells, draw: Draw | None = None) -> list[int]:
        certain, surplus = self._counted(cells)
        if surplus is None:
            return certain
        assert draw is not None, "a unit was named"
        return (surplus.drawn(draw, len(certain)) + certain).tolist()  # type: ignore[no-any-return]

    def _counted(self, cells: Cells) -> tuple[list[int], Surplus | None]:
        seen = self._last_reading
        if seen.by is not cells:
            self._fits(counting_score(cells))
            certain, surplus = self._cells(cells)
            count = sum(certain) + (0 if surplus is None else surplus.count)
            self._agree(count)
            seen.count, seen.result, seen.by = count, (certain, surplus), cells
        seen.checked = None
        certain, surplus = seen.result
        return list(certain), surplus

    def _expected_count(self) -> int | None:
        """Return the number of records by the last reading or by the source's structure; None if it is not known."""
        return self._last_reading.count

    def _agree(self, count: int) -> None:
        """Raise InvalidData if a reading found another number of records than the one before."""
        if self._expected_count() not in (None, count):
            raise changed_data_error("rows came or went after they were counted")


def _only_counts(score: Score) -> bool:
    return bool(np.all(score.table == 1))


def counting_score(cells: Cells) -> Score:
    """Return the score that is 1 for every record; it checks the cells of a histogram."""
    return _score_with_table(cells, np.ones(cells.count + 1, dtype=np.int64))


def index_score(cells: Cells) -> Score:
    """Return the score that is the index of the record's cell; the odd cell is the last one."""
    return _score_with_table(cells, np.arange(cells.count + 1, dtype=np.int64))


_NAN_BITS = 0x7FF8 << 48
"""Bits of NaN. As an integer they are more than those of any finite double."""


class _NumberCells(Cells):
    """One cell for each finite double. The index of a cell is the double's 64 bits."""

    kind = "numbers"

    @property
    def count(self) -> int:
        return _NAN_BITS

    def index(self, numbers: Floats) -> npt.NDArray[np.intp]:
        bits = np.add(numbers, 0.0, dtype=np.float64).view(np.int64)  # -0.0 is 0.0
        return np.where(np.isfinite(numbers), bits, _NAN_BITS)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}


class _IndexTable:
    """A table in which the score of every cell is its index. There are too many cells to list them."""

    def __getitem__(self, places: Any) -> Any:
        return _NAN_BITS if isinstance(places, int) else places  # the only single place is -1, of the odd cell

    def setflags(self, *, write: bool) -> None:
        """Do nothing: there are no entries."""


NUMBERS = Score(
    _NumberCells(),
    cast(Integers, _IndexTable()),
    Fraction(0),
    Fraction(1),
    np.zeros(1, np.int64),
    np.ones(1),
    np.ones(1),
)
"""The score that is the number itself, as its 64 bits; what is not a finite number has the bits of NaN.

For ``Records.series`` of records in memory and in files only. Raw, like every series.
"""


def numbers_of(series: Integers) -> Floats:
    """Return the numbers that a series of :data:`NUMBERS` stands for; NaN for a record that is not a number."""
    return series.view(np.float64)


def _score_with_table(cells: Cells, table: Integers) -> Score:
    """Return a score with these cells and table. Engines use nothing else of it, so its laws are arbitrary."""
    law = np.ones(1)
    return Score(cells, table, Fraction(0), Fraction(1), table[:1].copy(), law, law.copy())


class Tallied:
    """Records whose odd ones are counted too.

    Without a unit the counts of the cells give both the total and the number of odd records, in one reading. With a
    unit, where sums are rounded, these are two readings. In memory two sums are faster than many counts.
    """

    def __init__(self, records: Records) -> None:
        self._records, self._apart = records, records.promise.rows is not None or isinstance(records, Column)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._records, name)

    def check(self, score: Score) -> None:
        """Raise InvalidData as ``Records.check`` does. The next count is a count of cells."""
        self._records.check(score if self._apart else counting_score(score.cells))

    def total(self, score: Score) -> int:
        """Return the exact sum of all records' scores."""
        if self._apart:
            return self._records.total(score)
        counts = self._records.histogram(score.cells)
        return sum(one * count for one, count in zip(score.table.tolist(), counts, strict=True) if count)

    def odd(self, score: Score) -> int:
        """Return the number of records in the odd cell. It is raw, like a total."""
        if not self._apart:
            return self._records.histogram(score.cells)[-1]
        table = np.zeros(score.cells.count + 1, dtype=np.int64)
        table[-1] = 1
        return self._records.total(_score_with_table(score.cells, table))

    def centred(self, score: Score, scale: int, shift: int) -> tuple[int, int]:
        """Return the sum of ``scale s - shift`` over the records that are not odd, and their number. Both are raw.

        An odd record adds 0 to both, and so does an odd row of a person. Each sum is rounded by itself.
        """
        table = scale * score.table - shift
        table[-1] = 0
        ones = _ones_unless_odd(score)
        return self.total(_score_with_table(score.cells, table)), self.total(_score_with_table(score.cells, ones))

    def present(self, score: Score) -> PresentRecords:
        """Return the records that are not odd."""
        if self._records.promise.rows is None:
            counts = self._records.histogram(score.cells)
            return PresentRecords(score, Fraction(sum(counts[:-1])), counts)
        table, ones = score.table.copy(), _ones_unless_odd(score)
        table[-1] = 0
        records = cast(SourceRecords, self._records)
        rows = records.exact(_score_with_table(score.cells, ones))
        return PresentRecords(score, rows, total=records.exact(_score_with_table(score.cells, table)))


def _ones_unless_odd(score: Score) -> Integers:
    """Return a table that is 1 for every cell but the odd one."""
    ones = np.ones(score.cells.count + 1, dtype=np.int64)
    ones[-1] = 0
    return ones


@dataclass(frozen=True, eq=False)
class PresentRecords:
    """The records of a source that are not odd. All of it is raw.

    Attributes:
        score: the score that is summed.
        rows: number of these records; rows of a person with too many rows have a weight below 1.
        counts: number of records in each cell; None with a unit.
        total: the exact sum with a unit; else 0.
    """

    score: Score
    rows: Fraction
    counts: Sequence[int] | None = None
    total: Fraction = Fraction(0)

    @property
    def count(self) -> int:
        """Number of these records, rounded."""
        return nearest(self.rows)

    def sum_of(self, most: int, choose: Choose) -> int:
        """Return the sum of the scores of ``most`` of these records, with the odd score for each that is lacking.

        Without a unit the records are chosen at random, so that they follow the law of so many records. With a unit,
        where rows have weights, the sum of all is scaled by ``most`` over their number.

        Guarantees: if up to k rows change, or become odd or not odd, the sum moves by at most k times the score's
        width, whatever ``most`` is (proof.md in ``scores``).
        """
        odd = self.score.odd_score
        if self.counts is None:
            whole = self.total if self.rows <= most else self.total * most / self.rows
            return nearest(whole + max(most - self.rows, Fraction(0)) * odd)
        chosen = choose(self.counts[:-1], min(most, self.count))
        table: list[int] = self.score.table.tolist()
        result = sum(one * count for one, count in zip(table, chosen, strict=False) if count)
        return result + max(most - self.count, 0) * odd


Choose = Callable[[Sequence[int], int], Sequence[int]]
"""Chooses a given number of things at random, of so many of each kind (``privacy.bulk_draws.draw_some``)."""


def nearest(exact: Fraction | int) -> int:
    """Return the nearest integer, halves rounded up. If the number changes by at most k, so does the result."""
    return math.floor(exact + Fraction(1, 2))


Indices = npt.NDArray[np.intp]

CHUNK = 1 << 18
"""Records that are read at a time."""
LARGE = (1 << 62) // CHUNK
"""Scores of at least this size are summed as Python integers: a chunk of them may not fit 64 bits."""


class Column(Records):
    """Base of records in memory. Subclasses say which cell each record is in; all else follows from that."""

    chunk: ClassVar[int] = CHUNK
    """Records that are scored at a time, at most ``CHUNK``."""
    promise = Promise()

    def check(self, score: Score) -> None:
        check_declared(self.declared, score)

    @abstractmethod
    def index(self, cells: Cells) -> Indices:
        """Return the cell of each record."""

    @abstractmethod
    def part(self, first: int, last: int) -> Column:
        """Return the records first .. last - 1, without a copy."""

    def coded(self) -> Any:
        """Return records that are not numbers by type as :class:`privatest.engines.arrays.CodedRecords`."""
        raise NotImplementedError

    def portions(self) -> Iterator[Column]:
        return self.parts()

    def parts(self) -> Iterator[Column]:
        """Yield all records, ``chunk`` of them at a time."""
        for first in range(0, self.count(), self.chunk):
            yield self.part(first, first + self.chunk)

    def total(self, score: Score) -> int:
        scores = (score.table[part.index(score.cells)] for part in self.parts())
        if max(abs(score.low), abs(score.high)) >= LARGE:
            return sum(sum(some.tolist()) for some in scores)
        return sum(int(some.sum()) for some in scores)

    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:  # noqa: ARG002 - nothing is tied
        result, first = np.empty(self.count(), dtype=np.int64), 0
        for part in self.parts():
            scores = score.table[part.index(score.cells)]
            result[first : first + len(scores)] = scores
            first += len(scores)
        return result

    def block_totals(self, score: Score, block: int, start: int = 0) -> list[int]:
        count = max(self.count() - start, 0) // block
        # Several whole blocks at a time, so that not all scores are in memory.
        step = max(self.chunk // block, 1)
        totals: list[int] = []
        for first in range(0, count, step):
            last = min(first + step, count)
            totals += sums_of_blocks(self.part(start + first * block, start + last * block).series(score), block)
        return totals

    def histogram(self, cells: Cells, draw: Draw | None = None) -> list[int]:  # noqa: ARG002 - every record counts
        counts = np.zeros(cells.count + 1, dtype=np.int64)
        for part in self.parts():
            counts += np.bincount(part.index(cells), minlength=cells.count + 1)
        return [int(count) for count in counts]


@dataclass(frozen=True, eq=False)
class SomeRecords(Column):
    """The records of a column at some places, in ascending order."""

    plain: Column
    places: Indices = field(repr=False)

    @property
    def declared(self) -> Declared:
        return self.plain.declared

    def count(self) -> int:
        return len(self.places)

    def index(self, cells: Cells) -> Indices:
        return self.plain.index(cells)[self.places]

    def part(self, first: int, last: int) -> SomeRecords:
        places = self.places[first:last]
        if not len(places):
            return SomeRecords(self.plain.part(0, 0), places)
        return SomeRecords(self.plain.part(int(places[0]), int(places[-1]) + 1), places - places[0])


@dataclass(frozen=True, eq=False)
class GroupedRecords(Column):
    """The records of a column with the place of each one's group in a public list; -1 for no group."""

    plain: Column
    group_of: Indices = field(repr=False)

    @property
    def declared(self) -> Declared:
        return self.plain.declared

    def count(self) -> int:
        return len(self.group_of)

    def index(self, cells: Cells) -> Indices:
        inner = self.plain.index(cells.of_record)
        return cells.crossed(inner, self.group_of) if isinstance(cells, GroupedCells) else inner

    def part(self, first: int, last: int) -> GroupedRecords:
        return GroupedRecords(self.plain.part(first, last), self.group_of[first:last])


def sums_of_blocks(scores: Integers, block: int) -> list[int]:
    """Return the sums of consecutive runs of ``block`` scores; an incomplete last run is not used."""
    whole = len(scores) // block * block
    return [int(total) for total in scores[:whole].reshape(-1, block).sum(axis=1)]


def scores_of_each(records: Records, score: Score, ends: range = NO_ENDS) -> Integers:
    """Return the integer score of each record, in order of time.

    Raises InvalidData if equal values of the order lie on both sides of one of the ``ends``, where the series is cut.

    Guarantees: an odd record has the odd score; no sum of some of the scores leaves 64 bits (checked).
    """
    records.check(score)
    score.check_total(max(records.count(), 1))
    return records.series(score, ends)


def totals_of_blocks(records: Records, score: Score, block: int, start: int = 0) -> list[int]:
    """Return the totals of consecutive blocks, beginning with record ``start``; an incomplete last block is not used.

    Guarantees: the same scores as :func:`scores_of_each`, summed exactly (checked against 64 bits).
    """
    records.check(score)
    score.check_total(block)
    return records.block_totals(score, block, start)


def check_count(count: int, n: int) -> None:
    """Raise InvalidData if the number of records, which is public, is not that of the design."""
    if count != n:
        raise InvalidData(
            f"The data have {count} records, the test was designed for n={n}. "
            f"Design it with n={count}, or pass exactly {n} records."
        )


def unsupported_type(
    what: str, remedy: str = "Pass numbers, or the labels of the distributions", column: str | None = None
) -> InvalidData:
    """Return the error for a type that cannot be read."""
    return InvalidData(f"{'The data have' if column is None else f'Column {column!r} has'} {what}. {remedy}.")
