"""Records: what every engine offers, how far one person reaches into it, and how it is read without being heard.

Every engine offers :class:`Records`: sums of scores, whole or per block; never epsilon or randomness. :class:`Column`
is the base of records in memory, :class:`OneReading` of those in a source that may change while it is read. Checks look
at a column's type and length, never at a record.

Records say how far one person reaches into them (:class:`Promise`), a mechanism what its noise hides (:class:`Need`);
:func:`check_promise` is the one place where the two are compared. Records say what their column's type declares
(:class:`Declared`), a score's cells what they take; :func:`check_declared` is the one place where these are compared.

What a library raises, warns of or logs while it reads records for us reaches nobody: a database that fails quotes the
text it failed at, Arrow the number that does not fit, PySpark logs both. So all code of others that looks at records
runs guarded: every method of records (:class:`Guarded` wraps them, whatever the engine), and all that happens when they
are opened or read part by part (:func:`guarded`, :func:`each_guarded`). Errors of this package, which quote no record,
pass; any other becomes a sentence about the source. Warnings' filters are the process's: while anybody reads, no
thread's warnings are heard. Logs of the thread that reads are dropped, those of others are not. Not held back: what
code writes to a terminal itself, and logs on other machines.
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
from typing import Any, ClassVar, Literal, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from privatest.errors import InvalidData, InvalidInput, PrivatestError
from privatest.numbers import Floats, Integers
from privatest.scores import Cells, LabelCells, Score
from privatest.scores.score import is_number

Answer = TypeVar("Answer")
Complaint = str | Callable[[BaseException], str]

# Below the level of every handler, so that none of them gets to see the record of a log.
NO_LEVEL = -1


class _Inside(threading.local):
    """Whether this thread is reading."""

    now = False


_inside = _Inside()


class _Filters:
    """The warnings' filters, put aside by the first thread that reads and put back by the last."""

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
                warnings.showwarning = _unshown

    def leave(self) -> None:
        with self._lock:
            self._readers -= 1
            if self._readers == 0:
                self._before.__exit__(None, None, None)


_filters = _Filters()


def _unshown(*_: Any, **__: Any) -> None:
    """Takes a warning that somebody's own filter lets through, and shows it to nobody."""


def _drop_logs() -> None:
    """Install a factory that empties the log records of a thread that reads, at a level below every handler's."""
    made = logging.getLogRecordFactory()
    if getattr(made, "drops", None) is _inside:
        return

    def factory(*args: Any, **words: Any) -> logging.LogRecord:
        record = made(*args, **words)
        if _inside.now:
            record.levelno, record.msg, record.args = NO_LEVEL, "", ()
            record.exc_info = record.exc_text = record.stack_info = None
        return record

    factory.drops = _inside  # type: ignore[attr-defined]
    logging.setLogRecordFactory(factory)


@contextmanager
def silenced() -> Iterator[None]:
    """Context in which warnings and logs of this thread are dropped. Exceptions pass; :func:`guarded` replaces them."""
    if _inside.now:
        yield
        return
    _drop_logs()
    _filters.enter()
    _inside.now = True
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _inside.now = False
        _filters.leave()


def guarded(complaint: Complaint, ask: Callable[[], Answer]) -> Answer:
    """Return what ``ask`` returns, within :func:`silenced`. Whatever it raises becomes InvalidData with the complaint.

    Args:
        complaint: a sentence about the source, or a function that makes one of the error.
        ask: code that looks at records by way of a library.
    """
    try:
        with silenced():
            return ask()
    except PrivatestError as error:
        error.__cause__ = error.__context__ = None  # what a library raised, and may quote a record
        raise
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # panics of libraries in Rust are no Exceptions
        problem = f"{complaint} ({type(error).__name__})" if isinstance(complaint, str) else complaint(error)
    # Raised out here, so that it does not carry the library's error as its context.
    raise InvalidData(problem)


def each_guarded(complaint: Complaint, ask: Callable[[], Iterable[Answer]]) -> Iterator[Answer]:
    """Yield the items of an iterable that ``ask`` returns; each step is guarded as by :func:`guarded`."""
    answers = guarded(complaint, lambda: iter(ask()))
    nothing: Any = object()
    while (answer := guarded(complaint, lambda: next(answers, nothing))) is not nothing:
        yield answer


QUESTIONS = (
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
)
"""Methods of :class:`Records` that look at records: each of them is guarded in every class."""


class Guarded:
    """Base of all records: wraps the methods named in ``QUESTIONS`` of each class in :func:`guarded`."""

    complaint: ClassVar[str] = "The data could not be read: a library that was to do it failed."

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        for name in QUESTIONS:
            if name in cls.__dict__:
                setattr(cls, name, _guarded_method(cls.__dict__[name]))


def _guarded_method(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def question(self: Guarded, *args: Any, **words: Any) -> Any:
        if _inside.now:
            return method(self, *args, **words)
        return guarded(self.complaint, lambda: method(self, *args, **words))

    question.unheard = True  # type: ignore[attr-defined]
    return question


# Numbers of records after which a series is cut; those at or beyond its length cut nothing.
NO_ENDS = range(0)


@dataclass(frozen=True)
class Promise:
    """How far one person reaches into records, whatever that person's rows hold; how many rows, and when, is public.

    Attributes:
        rows: the most rows of one person that count; None: no unit was named, each row is a person of its own.
        positions: "fixed", the rows lie in an order of their own; "tied", in that of a column, and what they hold
            decides among equal values of it; "joined", the rows of a person are one sum, which has no place; "none",
            the rows lie in no order.
    """

    rows: int | None = None
    positions: Literal["fixed", "tied", "joined", "none"] = "fixed"

    @classmethod
    def of(cls, most: int | None, order: str | None) -> Promise:
        """What a database's rows promise that are joined to ``most`` of a unit, or sorted by a column."""
        return cls(most, "joined" if most is not None else "tied" if order is not None else "none")


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
    if need.ordered and promise.positions == "joined":
        raise no_places(promise.rows)
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
        nullable: whether the type admits a missing value.
        between: the least and the largest number of the type, where these are known and few; else the whole line.
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
        """How a sentence about the records begins."""
        return "The data are" if self.column is None else f"Column {self.column!r} is"


UNDECLARED = Declared()


_LABELLED = (
    "If it holds labels, name the one that counts (success='Yes', for estimates and groups), or describe them "
    "(categorical(Yes=0.4, No=0.6), for tests)"
)


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
        rule, remedy = "the distributions are over numbers", f"{_LABELLED}. Or convert it to numbers, or {other}"
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
    """Whether a value of this content can have a cell."""
    if content == "truths":
        named = cells.rest if isinstance(cells, LabelCells) else cells.count
        return bool(np.any(cells.index(np.array([0.0, 1.0])) < named))
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


def no_places(most: int | None) -> InvalidData:
    """The error for a series of persons, whose rows are joined."""
    return InvalidData(
        f"The records were opened with unit and max_rows_per_unit={most}: the rows of a person are one sum, and this "
        "looks at the order of rows. Name the unit in the call itself: the first rows of each person then count, and "
        "all stay in their places."
    )


def changed(how: str) -> InvalidData:
    """The error for a source that is not what it was when it was read before."""
    return InvalidData(
        f"The data changed while they were read: {how}. Nothing was released. Run it again on data that nobody writes "
        "to; the same request is not charged twice."
    )


def block_ends(n: int, block: int, start: int = 0) -> range:
    """After how many of n records whole blocks from ``start`` on end where another one begins."""
    return range(start + block, start + max(n - start, 0) // block * block, block)


@runtime_checkable
class Records(Protocol):
    """One column of records, wherever it lies, the rows of one unit joined to the most that it may contribute.

    ``promise`` says how far one person reaches into them, ``declared`` what their type says of every one of them.

    Guarantees: the same records give the same integers on every engine (docs/engines.md has the rules); all of them
    are raw and must not leave the process except through a private mechanism.
    """

    @property
    def promise(self) -> Promise: ...

    @property
    def declared(self) -> Declared: ...

    def count(self) -> int:
        """How many records there are (with a unit: of a person with m rows min(m, k))."""

    def check(self, score: Score) -> None:
        """Raise InvalidData if the column's type (never a record's value) cannot fit the score."""

    def total(self, score: Score) -> int:
        """The exact sum of all records' scores; with a unit that of all persons', rounded once."""

    def block_totals(self, score: Score, block: int, start: int = 0) -> list[int]:
        """Totals of consecutive blocks from record ``start`` on; an incomplete last block is not used."""

    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:
        """The score of each record, in order; refused as by :meth:`check_ends`."""

    def check_ends(self, ends: range) -> None:
        """Raise InvalidData if equal values of the order lie on both sides of one of the ends (records before it).

        Looks at the order alone, which is public and the same for neighbours; never at a record.
        """

    def histogram(self, cells: Cells, draw: Draw | None = None) -> list[int]:
        """How many records each cell has, the odd cell last.

        Args:
            cells: what is counted.
            draw: which rows count of persons who have too many; None is enough where no unit was named.
        """


Draw = Callable[[Integers, int], Integers]
"""Of each line of a table so many entries, drawn without looking at them (:func:`privatest.privacy.draws.rows_drawer`).

Engines know no randomness: whoever asks for counts brings it along.
"""


@dataclass(frozen=True, eq=False)
class Surplus:
    """Persons who have more rows than count: the cells of all their rows, of which ``most`` are still to be drawn.

    Guarantees: the same persons make the same tables on every engine, in whatever order they were read.

    Attributes:
        tables: the persons with m rows each, one table for every m: a person is a line of m cells in ascending order,
            and lines are in order.
        most: rows of one person that count.
    """

    tables: tuple[Integers, ...]
    most: int

    @classmethod
    def split(
        cls, persons: Integers, cells: Integers, counts: Integers, few: npt.NDArray[np.bool_], size: int, most: int
    ) -> tuple[list[int], Surplus]:
        """How many rows each of ``size`` cells has of persons with few rows, all of which count; and the other persons.

        Args:
            persons, cells, counts: pairs of a person and a cell, and how many rows each pair has.
            few: whether a pair is of a person with at most ``most`` rows; of such the person need not be told.
            size: number of cells.
            most: rows of one person that count.
        """
        certain = np.zeros(size, dtype=np.int64)
        np.add.at(certain, cells[few], counts[few])
        persons, cells, counts = persons[~few], cells[~few], counts[~few]
        order = np.lexsort((cells, persons))
        rows, owner = np.repeat(cells[order], counts[order]), np.repeat(persons[order], counts[order])
        _, sizes = np.unique(owner, return_counts=True)
        of_row = np.repeat(sizes, sizes)
        every, many = np.unique(of_row, return_counts=True)
        found = np.split(rows[np.argsort(of_row, kind="stable")], np.cumsum(many)[:-1])
        tables = [cell.reshape(-1, m) for m, cell in zip(every.tolist(), found, strict=False)]
        return certain.tolist(), cls(tuple(table[np.lexsort(table.T[::-1])] for table in tables), most)

    @property
    def count(self) -> int:
        """How many records these persons count as."""
        return self.most * sum(len(table) for table in self.tables)

    def drawn(self, draw: Draw, size: int) -> Integers:
        """How many of the drawn rows each of ``size`` cells has."""
        counts = np.zeros(size, dtype=np.int64)
        for table in self.tables:
            counts += np.bincount(draw(table, self.most).ravel(), minlength=size)
        return counts


@runtime_checkable
class OrderTeller(Protocol):
    """Records in the order of a column whose values can be told, for those who declare that column public."""

    @property
    def tells_order(self) -> bool:
        """Whether the values are at hand in the form in which the column has them."""

    def order_forms(self) -> set[str]:
        """In which forms the order's texts and objects stand, "" for those of none; none at all if its type sorts.

        Two forms are enough to know of. Looks at the order alone, never at a record.
        """

    def order_values(self, places: Sequence[int]) -> list[int | float | str | None]:
        """The order's values at these places, counted from 0, as numbers and texts; None for a missing one.

        Guarantees: depends on the order alone, never on a record; fails, if at all, whatever the places are.
        """


def check_order(order: str, forms: set[str]) -> None:
    """Raise InvalidData for an order whose texts do not sort as what they stand for."""
    if len(forms) > 1 or "" in forms:
        raise InvalidData(
            f"Column {order!r} orders by text, and not all of it is of one ISO form (2026-01-31, 2026-01-31T10:00): "
            "as texts, 31/01/2026 comes after 01/02/2026, and 10 before 9. Make it a column of dates, times or "
            "numbers, or say that the order of texts is meant: pt.read_as(data, text_order=True), --text-order."
        )


MOST_GROUPS = 3
"""Names of groups that are looked for: two are compared, a third one is one too many."""


@runtime_checkable
class Grouped(Protocol):
    """Records whose rows a column parts into groups. It is public, and so is whose a row is; no record is looked at."""

    def groups(self) -> list[str]:
        """The groups' names, at most ``MOST_GROUPS`` of them; rows without a name are of no group."""

    def is_shared(self) -> bool:
        """Whether some unit has rows in more than one group."""

    def only(self, name: str) -> Records:
        """The records of one group, which promise what all of them do."""


@dataclass(eq=False)
class Seen:
    """What the last reading of a source found.

    Attributes:
        checked: a score that was checked since, and that no reading has summed yet.
        count: how many records there are.
        by: what they were summed or counted by.
        found: the sum by a score, or the counts of cells and the persons of whom rows are still to be drawn.
    """

    checked: Score | None = None
    count: int | None = None
    by: Score | Cells | None = None
    found: Any = None


class OneReading(Guarded, ABC):
    """Records of a source that may change while it is read: how many there are and what they sum to go together.

    Guarantees: once a score was checked, counting sums it too, and the sum is kept until it is asked for: both are of
    one query, one job or one pass, and rows that arrive between the two questions are in both or in neither. A reading
    of another number of records than the one before it is refused.
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
    def _sum(self, score: Score) -> tuple[int, int | Fraction]:
        """How many records there are and the sum of their scores, not rounded, from one reading."""

    @abstractmethod
    def _cells(self, cells: Cells) -> tuple[list[int], Surplus | None]:
        """How many records each cell has, from one reading; and the persons of whom rows are still to be drawn."""

    def check(self, score: Score) -> None:
        self._fits(score)
        self._seen.checked = score

    def count(self) -> int:
        seen = self._seen
        if seen.checked is not None:
            _ = self._counted(seen.checked.cells) if _is_counter(seen.checked) else self.total(seen.checked)
        elif seen.count is None:
            seen.count = self._rows()
        assert seen.count is not None
        return seen.count

    def total(self, score: Score) -> int:
        return nearest(self.exact(score))

    def exact(self, score: Score) -> Fraction:
        """The sum before it is rounded."""
        seen = self._seen
        if seen.by is not score:
            self._fits(score)
            count, found = self._sum(score)
            self._agree(count)
            seen.count, seen.found, seen.by = count, found, score
        seen.checked = None
        return Fraction(seen.found)

    def histogram(self, cells: Cells, draw: Draw | None = None) -> list[int]:
        certain, surplus = self._counted(cells)
        if surplus is None:
            return certain
        assert draw is not None, "a unit was named"
        return (surplus.drawn(draw, len(certain)) + certain).tolist()  # type: ignore[no-any-return]

    def _counted(self, cells: Cells) -> tuple[list[int], Surplus | None]:
        seen = self._seen
        if seen.by is not cells:
            self._fits(counter(cells))
            certain, surplus = self._cells(cells)
            count = sum(certain) + (0 if surplus is None else surplus.count)
            self._agree(count)
            seen.count, seen.found, seen.by = count, (certain, surplus), cells
        seen.checked = None
        certain, surplus = seen.found
        return list(certain), surplus

    def _known(self) -> int | None:
        """How many records there must be, by the last reading or by the source's structure."""
        return self._seen.count

    def _agree(self, count: int) -> None:
        """Refuse a reading of another number of records than the one that was told."""
        if self._known() not in (None, count):
            raise changed("rows came or went after they were counted")


def _is_counter(score: Score) -> bool:
    return bool(np.all(score.table == 1))


def counter(cells: Cells) -> Score:
    """A score of 1 for everything: what a histogram's cells are checked with."""
    return _bare(cells, np.ones(cells.count + 1, dtype=np.int64))


def indexer(cells: Cells) -> Score:
    """A score that is the index of the record's cell; the odd cell is the last."""
    return _bare(cells, np.arange(cells.count + 1, dtype=np.int64))


# The bits of NaN: as an integer more than those of any finite double.
_NO_NUMBER = 0x7FF8 << 48


class _EveryNumber(Cells):
    """Every finite double is a cell of its own, its index the double's 64 bits; NaN's are the odd cell's."""

    kind = "numbers"

    @property
    def count(self) -> int:
        return _NO_NUMBER

    def index(self, numbers: Floats) -> npt.NDArray[np.intp]:
        bits = np.add(numbers, 0.0, dtype=np.float64).view(np.int64)  # -0.0 is 0.0
        return np.where(np.isfinite(numbers), bits, _NO_NUMBER)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}


class _Itself:
    """The table of scores that are the indices of their cells, which are too many to list."""

    def __getitem__(self, places: Any) -> Any:
        return _NO_NUMBER if isinstance(places, int) else places  # a single place is -1, the odd cell's

    def setflags(self, *, write: bool) -> None:
        """It has no entries that could be changed."""


NUMBERS = Score(
    _EveryNumber(), cast(Integers, _Itself()), Fraction(0), Fraction(1), np.zeros(1, np.int64), np.ones(1), np.ones(1)
)
"""The score that is the number itself, as its 64 bits: for ``Records.series`` alone, of records in memory and in files.

Raw, like every series. What is no finite number has the bits of NaN.
"""


def numbers_of(series: Integers) -> Floats:
    """The numbers that a series of :data:`NUMBERS` holds, NaN for a record that is none."""
    return series.view(np.float64)


def _bare(cells: Cells, table: Integers) -> Score:
    """Engines look at the cells and the table only; the laws are those of a score nobody asks about."""
    law = np.ones(1)
    return Score(cells, table, Fraction(0), Fraction(1), table[:1].copy(), law, law.copy())


class Tallied:
    """Records that also tell how many of them are odd, of one reading with their total where no unit is named.

    The total is that of the cells' counts, which is the same integer. With units, whose sums are rounded, they are two
    readings; in memory two sums are quicker than many counts.
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

    def centred(self, score: Score, scale: int, shift: int) -> tuple[int, int]:
        """The sum of ``scale s - shift`` over the records that are not odd, and how many these are: raw, both.

        An odd record adds 0 to either, and so does an odd row of a person: each sum is rounded by itself.
        """
        table = scale * score.table - shift
        table[-1] = 0
        return self.total(_bare(score.cells, table)), self.total(_bare(score.cells, _sane(score)))

    def present(self, score: Score) -> Present:
        """The records that are not odd: how many there are, and what any number of them sums to."""
        if self._records.promise.rows is None:
            counts = self._records.histogram(score.cells)
            return Present(score, Fraction(sum(counts[:-1])), counts)
        table, ones = score.table.copy(), _sane(score)
        table[-1] = 0
        records = cast(OneReading, self._records)
        rows = records.exact(_bare(score.cells, ones))
        return Present(score, rows, total=records.exact(_bare(score.cells, table)))


def _sane(score: Score) -> Integers:
    """A table of 1 for every record that is not odd."""
    ones = np.ones(score.cells.count + 1, dtype=np.int64)
    ones[-1] = 0
    return ones


@dataclass(frozen=True, eq=False)
class Present:
    """The records of a source that are not odd. Raw, all of it.

    Attributes:
        score: what is summed.
        rows: how many there are; of persons with too many rows each row has its weight.
        counts: how many records each cell has; None where a unit was named.
        total: the exact sum where one was.
    """

    score: Score
    rows: Fraction
    counts: Sequence[int] | None = None
    total: Fraction = Fraction(0)

    @property
    def count(self) -> int:
        """How many there are, a whole number."""
        return nearest(self.rows)

    def sum_of(self, most: int, choose: Choose) -> int:
        """The sum of ``most`` of them, with the odd score for each that is lacking.

        Without units they are chosen at random, so that their law is that of so many records. Persons' rows, which are
        weighted, are scaled: the sum of all, times most over their number.

        Guarantees: where up to k rows become others, or odd ones, or odd ones others, the sum moves by k times the
        score's width at most, whatever ``most`` is (proof.md in ``scores``).
        """
        odd = self.score.odd_score
        if self.counts is None:
            whole = self.total if self.rows <= most else self.total * most / self.rows
            return nearest(whole + max(most - self.rows, Fraction(0)) * odd)
        kept = choose(self.counts[:-1], min(most, self.count))
        table: list[int] = self.score.table.tolist()
        found = sum(one * count for one, count in zip(table, kept, strict=False) if count)
        return found + max(most - self.count, 0) * odd


Choose = Callable[[Sequence[int], int], Sequence[int]]
"""Of so many things of each kind a given number, all choices being equally likely (``privacy.draws.draw_some``)."""


def nearest(exact: Fraction | int) -> int:
    """The nearest integer, halves up: it moves by an integer where the number does, and by no more than k for k."""
    return math.floor(exact + Fraction(1, 2))


Indices = npt.NDArray[np.intp]

CHUNK = 1 << 18
"""Records that are read at a time."""
LARGE = (1 << 62) // CHUNK
"""Scores of at least this size are summed as Python integers: a chunk of them may not fit 64 bits."""


class Column(Guarded, ABC):
    """Records in memory. Their cells are enough to say everything else."""

    chunk: ClassVar[int] = CHUNK
    """Records that are scored at a time, at most ``CHUNK``."""
    promise = Promise()

    @property
    def declared(self) -> Declared:
        """What the column's type declares about every record."""
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

    def parts(self) -> Iterator[Column]:
        """Yield all records, ``chunk`` of them at a time."""
        for first in range(0, self.count(), self.chunk):
            yield self.part(first, first + self.chunk)

    def total(self, score: Score) -> int:
        """The exact sum of all records' scores."""
        scores = (score.table[part.index(score.cells)] for part in self.parts())
        if max(abs(score.low), abs(score.high)) >= LARGE:
            return sum(sum(some.tolist()) for some in scores)
        return sum(int(some.sum()) for some in scores)

    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:  # noqa: ARG002 - nothing is tied
        """The score of each record, in order."""
        found, first = np.empty(self.count(), dtype=np.int64), 0
        for part in self.parts():
            scores = score.table[part.index(score.cells)]
            found[first : first + len(scores)] = scores
            first += len(scores)
        return found

    def check_ends(self, ends: range) -> None:
        """Return at once: records in an order of their own are never tied."""

    def block_totals(self, score: Score, block: int, start: int = 0) -> list[int]:
        """Totals of consecutive blocks from record ``start`` on; an incomplete last block is not used."""
        count = max(self.count() - start, 0) // block
        # Whole blocks at a time: the scores of the others need not be kept.
        step = max(self.chunk // block, 1)
        totals: list[int] = []
        for first in range(0, count, step):
            last = min(first + step, count)
            totals += whole_blocks(self.part(start + first * block, start + last * block).series(score), block)
        return totals

    def histogram(self, cells: Cells, draw: Draw | None = None) -> list[int]:  # noqa: ARG002 - every record counts
        """How many records each cell has, the odd cell last."""
        counts = np.zeros(cells.count + 1, dtype=np.int64)
        for part in self.parts():
            counts += np.bincount(part.index(cells), minlength=cells.count + 1)
        return [int(count) for count in counts]


@dataclass(frozen=True, eq=False)
class SomeRecords(Column):
    """The records of a column at some places, which are in ascending order."""

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
