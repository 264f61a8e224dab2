"""Records in a Spark DataFrame, summed by the cluster with built-in functions: no Python worker, no row to the driver.

A score is one expression (:mod:`privatest.engines.sql`), as in every database. Errors of a job may quote
records, so Spark's own log is off while a job runs, and the error's text is not shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib import import_module
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from privatest.engines import sql
from privatest.engines.arrays import SequenceRecords
from privatest.engines.databases import SUMMABLE
from privatest.engines.key_columns import Selection, group_name, plain_key, plain_time
from privatest.engines.orders import ISO, ISO_ZONED, ZONE, ties_error
from privatest.engines.records import (
    CHUNK,
    MOST_GROUPS,
    NO_ENDS,
    Column,
    Declared,
    LastReading,
    Promise,
    SourceRecords,
    Surplus,
    block_ends,
    check_positions,
    guarded,
    index_score,
    unsupported_type,
)
from privatest.engines.units import sum_of_persons
from privatest.errors import InvalidData, MissingExtra
from privatest.numbers import Integers
from privatest.scores import Cells, Score

Result = TypeVar("Result")
NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "boolean")
PLAIN = "string"


@dataclass(frozen=True)
class SparkLanguage:
    """Expressions of Spark; ``functions`` is the module for the frame's kind of session."""

    functions: Any

    def number(self, value: float) -> Any:
        return self.functions.lit(float(value))

    def whole(self, value: int) -> Any:
        return self.functions.lit(value).cast("bigint")

    def case(self, arms: Sequence[tuple[Any, Any]], otherwise: Any) -> Any:
        (condition, value), *others = arms
        chain = self.functions.when(condition, value)
        for condition, value in others:
            chain = chain.when(condition, value)
        return chain.otherwise(otherwise)

    def floor(self, x: Any) -> Any:
        return self.functions.floor(x)

    def absolute(self, x: Any) -> Any:
        return self.functions.abs(x)

    def pick(self, table: Sequence[int], index: Any) -> Any:
        return self.functions.get(self.functions.expr(constant_array(table)), index)

    def is_not_null(self, x: Any) -> Any:
        return x.isNotNull()

    def any_of(self, text: Any, labels: Sequence[str]) -> Any:
        return text.isin(list(labels))

    def double(self, x: Any, kind: str) -> Any:
        """Return a column of numbers as doubles, by a cast that cannot fail for any record."""
        return x if kind == "double" else x.cast("double")

    def text(self, x: Any, kind: str) -> Any:
        """Return a text without its column's collation, which Spark has from version 4 on, and without padding."""
        if kind.startswith("string collate"):
            return self.functions.collate(x, "UTF8_BINARY")
        return self.functions.rtrim(x.cast(PLAIN)) if kind.startswith("char(") else x

    def key(self, x: Any, kind: str) -> Any:
        """Return a unit in a form in which equal units are equal: 0.0 and -0.0 are one unit, NaN is none."""
        if kind in ("float", "double"):
            x = x.cast("double") + self.number(0.0)
            return self.functions.when(~self.functions.isnan(x), x)
        if is_text(kind):
            return x if kind == PLAIN else self.text(x, kind).cast("binary")
        if not (is_number(kind) or kind.startswith(("date", "time", "binary"))):
            raise unsupported_type(f"units of type {kind}", "Units are numbers, texts or dates")
        return x

    def group(self, x: Any, kind: str) -> Any:
        """Return a group as a text."""
        if not (is_text(kind) or is_number(kind) or kind.startswith(("date", "time"))):
            raise unsupported_type(f"groups of type {kind}", "Groups are numbers, texts or dates")
        return self.text(x, kind) if is_text(kind) else self.key(x, kind).cast(PLAIN)

    def form(self, text: Any) -> Any:
        """Return the form of a text in ISO format, as ``orders.order_forms`` names it."""
        F = self.functions

        def whole(pattern: str) -> Any:
            return text.rlike(f"^({pattern})\\z")

        arms = [(whole(pattern), F.lit(name)) for name, pattern in ISO.items()]
        for name, pattern in ISO_ZONED.items():
            arms.append((whole(f"{pattern}Z"), F.concat(F.lit(f"{name} Z"), F.length(text).cast(PLAIN))))
            zone = F.regexp_extract(text, f"({ZONE})\\z", 1)
            arms.append((whole(pattern + ZONE), F.concat(F.lit(f"{name} "), zone)))
        return self.case(arms, F.lit(""))

    def place(self, x: Any, kind: str) -> Any:
        """Return an order in a form that sorts as in all databases: text by code points, NaN as NULL."""
        if is_text(kind):
            return self.text(x, kind).cast("binary")
        if kind == "boolean":
            return x.cast("int")
        if not (is_number(kind) or kind.startswith(("date", "time"))):
            raise unsupported_type(f"an order of type {kind}", "Order by numbers, dates, times or texts")
        return self.key(x, kind)


def constant_array(table: Sequence[int]) -> str:
    """Return SQL for an array of integers, written as one text: thousands of numbers take long to parse."""
    return f"cast(split('{','.join(map(str, table))}', ',') AS array<bigint>)"


def is_number(kind: str) -> bool:
    """Return whether a type is one of numbers; booleans are 0 and 1."""
    return kind.partition("(")[0] in NUMBERS


def is_text(kind: str) -> bool:
    """Return whether a type is text, with or without a collation."""
    return kind.partition("(")[0].partition(" ")[0] in (PLAIN, "varchar", "char")


PLACE_BITS = 33
"""Bits of monotonically_increasing_id that hold a row's place in its partition; the partition is above them."""
CHAR = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark keeps the type char(n) or varchar(n) of a column that it calls a string."""
COMPLAINT = "Spark could not finish the job. Count the frame's rows yourself to learn why."
LAST_WORDS = 5.0
"""The most seconds to wait for the other tasks of a failed job, which may fail and log a record too."""


def open_frame(frame: Any, selection: Selection) -> SparkRecords:
    """Return the records of one column of a Spark DataFrame. No job runs yet."""
    kind = type(frame).__module__
    remote = ".connect." in kind
    try:
        functions = import_module("pyspark.sql.connect.functions" if remote else "pyspark.sql.functions")
        window = import_module("pyspark.sql.connect.window" if remote else "pyspark.sql.window").Window
    except ImportError:
        raise MissingExtra.of("A Spark DataFrame needs PySpark.", "spark") from None
    if type(frame).__name__ != "DataFrame":
        raise InvalidData(f"The data are a Spark {type(frame).__name__}. Pass a DataFrame.")
    if frame.isStreaming:
        raise InvalidData("The data are a streaming DataFrame, which never ends. Pass a DataFrame of one batch.")
    language = SparkLanguage(functions)
    fields = guarded(
        "The columns of the DataFrame cannot be read. Do its tables and files exist?", lambda: frame.schema.fields
    )
    sure = {entry.name for entry in fields if not entry.nullable}
    types = {entry.name: entry.metadata.get(CHAR, entry.dataType.simpleString()) for entry in fields}
    names = [entry.name for entry in fields]
    record, unit, order, group = selection.of(names, "the DataFrame")
    if not (is_number(types[record]) or is_text(types[record])):
        raise unsupported_type(f"type {types[record]}", column=record)
    read = language.text if is_text(types[record]) else language.double
    chosen = [read(_column_called(frame, names, record), types[record]).alias("r")]
    if unit is not None:
        chosen.append(language.key(_column_called(frame, names, unit), types[unit]).alias("u"))
    if order is not None:
        time = _column_called(frame, names, order)
        chosen.append(language.place(time, types[order]).alias("o"))
        if is_text(types[order]):
            chosen.append(language.text(time, types[order]).alias("t"))
    if group is not None:
        chosen.append(language.group(_column_called(frame, names, group), types[group]).alias("g"))
    rows = guarded("The columns of the DataFrame cannot be read.", lambda: frame.select(*chosen))
    return SparkRecords(
        rows=rows,
        language=language,
        window=window,
        kind=types[record],
        most=selection.most,
        order=order,
        column=record,
        grouped=types.get(group or "", PLAIN),
        nullable=record not in sure,
    )


def _column_called(frame: Any, names: list[str], name: str) -> Any:
    """Return the column of that name, which may contain dots."""
    alike = [other for other in names if other.lower() == name.lower()]
    quoted = "`" + name.replace("`", "``") + "`"
    if len(alike) > 1:  # for Spark at most one of them exists, unless it compares case
        twins = " and ".join(map(repr, alike))
        return guarded(
            f"Columns {twins} of the DataFrame differ in case only, which Spark overlooks. Rename all but one, or set "
            "spark.sql.caseSensitive to true before the DataFrame is made.",
            lambda: frame[quoted],
        )
    return frame[quoted]


def _group_called(text: str, kind: str) -> str | None:
    """Return the name of a group whose key, of this type, Spark writes as this text."""
    if is_text(kind):
        return text
    if kind == "boolean":
        return group_name(text == "true")
    return group_name(plain_key(text, untyped=True)) if is_number(kind) else plain_time(text)


@dataclass(frozen=True, eq=False)
class SparkRecords(SourceRecords):
    """A column of a DataFrame, with the columns of its unit, order and group."""

    rows: Any  # a frame of the columns r (record), u (unit), o (order), t (the order's text), g (group), if named
    language: SparkLanguage
    window: Any
    kind: str
    most: int | None
    order: str | None
    column: str
    grouped: str = PLAIN  # type of the group's column
    nullable: bool = True  # whether the schema allows NULL
    _last_reading: LastReading = field(default_factory=LastReading, repr=False)
    _texts: dict[str, str] = field(default_factory=dict, repr=False)  # the text in g by the group's name

    @property
    def promise(self) -> Promise:
        return Promise.of_database(self.most, self.order)

    @property
    def declared(self) -> Declared:
        content: Any = "text" if is_text(self.kind) else "truths" if self.kind == "boolean" else "numbers"
        missing = (
            self.nullable or content == "text" or self.kind in ("float", "double")
        )  # a text may be "", a double NaN
        found = Declared(content, self.kind, self.column, nullable=missing)
        return replace(found, between=(0, 1)) if content == "truths" else found

    def groups(self) -> list[str]:
        found = self._run(self.rows.where("g IS NOT NULL").select("g").distinct().limit(MOST_GROUPS))
        for text in sorted(text for (text,) in found):
            name = _group_called(text, self.grouped)
            if name is not None:  # two decimals may be one double: the first has the name
                self._texts[text if name in self._texts else name] = text
        return list(self._texts)

    def is_shared(self) -> bool:
        F = self.language.functions
        if self.most is None:
            return False
        people = self.rows.where("u IS NOT NULL AND g IS NOT NULL").groupBy("u").agg(F.countDistinct("g").alias("n"))
        return bool(self._run(people.where("n > 1").limit(1)))

    def only(self, name: str) -> SparkRecords:
        inside = self.language.any_of(self.language.functions.col("g"), [self._texts[name]])
        return replace(self, rows=self.rows.where(inside), _last_reading=LastReading())

    def portions(self) -> Iterator[Column]:
        """Yield the records themselves, for the holder of the data only, partition by partition."""
        rows = self._guarded(lambda: self.rows.select("r").toLocalIterator())
        while some := self._guarded(lambda: [row[0] for row in islice(rows, CHUNK)]):
            yield SequenceRecords(some, self.declared)

    def _rows(self) -> int:
        F = self.language.functions
        if self.most is None:
            query = self.rows.agg(F.count(F.lit(1)))
        else:
            units = self.rows.where(F.col("u").isNotNull()).groupBy("u").agg(F.count(F.lit(1)).alias("n"))
            query = units.agg(F.sum(F.least(F.col("n"), self.language.whole(self.most))))
        return int(self._run(query)[0][0] or 0)

    def _sum(self, score: Score) -> tuple[int, int | Fraction]:
        F = self.language.functions
        large = max(abs(score.low), abs(score.high)) >= SUMMABLE
        if self.most is not None:
            return sum_of_persons(self._by_size(self._scored(score), counted=large), self.most)
        if large:
            counts = self._counts(self._scored(score))
            return sum(counts.values()), sum(value * count for value, count in counts.items())
        ((count, total),) = self._run(self.rows.agg(F.count(F.lit(1)), F.sum(self._score(score))))
        return int(count), int(total or 0)

    def _by_size(self, rows: Any, *, counted: bool) -> list[tuple[int, int, int]]:
        """Return m, the number of rows and the sum of values of the units with m rows each; see ``sum_of_persons``.

        Args:
            rows: the rows that have a unit, with their values v.
            counted: whether values are too large to be summed by Spark. Then the rows with each value are counted.
        """
        F = self.language.functions
        if counted:
            rows = rows.withColumn("m", F.count(F.lit(1)).over(self.window.partitionBy("u")))
            found = self._run(rows.groupBy("m", "v").agg(F.count(F.lit(1))))
            return [(int(m), int(n), int(v) * int(n)) for m, v, n in found]
        units = rows.groupBy("u").agg(F.sum("v").alias("total"), F.count(F.lit(1)).alias("m"))
        found = self._run(units.groupBy("m").agg(F.sum("m"), F.sum("total")))
        return [(int(m), int(n), int(total)) for m, n, total in found]

    def _cells(self, cells: Cells) -> tuple[list[int], Surplus | None]:
        F = self.language.functions
        if self.most is None:
            counts = self._counts(self._scored(index_score(cells)))
            return [counts.get(cell, 0) for cell in range(cells.count + 1)], None
        rows = self._scored(index_score(cells))
        pairs = rows.groupBy("u", "v").agg(F.count(F.lit(1)).alias("n"))
        unit, most = self.window.partitionBy("u"), self.language.whole(self.most)
        pairs = pairs.select("u", "v", "n", (F.sum("n").over(unit) > most).alias("many"))
        # Units of few rows lose their names here: all their rows count, so Spark adds them up.
        pairs = pairs.select(F.when(F.col("many"), F.col("u")).alias("u"), "v", "n").groupBy("u", "v")
        pairs = pairs.agg(F.sum("n").alias("n"))
        place = F.row_number().over(unit.orderBy("v")).alias("place")
        ordered = pairs.select("u", "v", "n", place).sort(F.col("u").asc_nulls_first(), F.col("v").asc())
        found = self._run(ordered.select("v", "n", F.col("u").isNull(), "place"))
        cell, n, few, first = (np.array([row[i] for row in found], dtype=np.int64) for i in range(4))
        return Surplus.split(np.cumsum(first == 1), cell, n, few == 1, cells.count + 1, self.most)

    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:
        if not len(ends):
            found = self._gathered(self._sorted(score))
        else:
            with self._placed(self._sorted(score)) as (rows, _):
                self._check_ties(rows, ends)
                found = self._gathered(rows)
        self._agree(len(found))
        return found

    def _gathered(self, rows: Any) -> Integers:
        rows = rows.select("v")
        if hasattr(rows, "toArrow"):
            return self._guarded(lambda: np.asarray(rows.toArrow().column("v")).astype(np.int64))
        return self._guarded(lambda: np.fromiter((row[0] for row in rows.toLocalIterator()), dtype=np.int64))

    def check_ends(self, ends: range) -> None:
        super().check_ends(ends)
        if not len(ends):
            return
        F = self.language.functions
        with self._placed(self.rows.select("o").sort(F.col("o").asc_nulls_last())) as (rows, _):
            self._check_ties(rows, ends)

    @property
    def has_order_values(self) -> bool:
        return True

    def order_forms(self) -> set[str]:
        if "t" not in self.rows.columns:
            return set()
        form = self.language.form(self.language.functions.col("t")).alias("form")
        return {text for (text,) in self._run(self.rows.where("t IS NOT NULL").select(form).distinct().limit(2))}

    def order_values(self, places: Sequence[int]) -> list[int | float | str | None]:
        F = self.language.functions
        with self._placed(self.rows.select("o").sort(F.col("o").asc_nulls_last())) as (rows, _):
            kind = dict(rows.dtypes)["o"]
            times = kind.startswith(("date", "time"))
            value = F.col("o").cast("string") if times else F.col("o")  # Python has no years beyond 9999
            asked_for = F.col("place").isin(sorted({int(place) for place in places}))
            values = dict(map(tuple, self._run(rows.where(asked_for).select("place", value))))
        if times:
            return [None if values.get(place) is None else plain_time(values[place]) for place in places]
        return [plain_key(values.get(place)) for place in places]

    def _check_ties(self, rows: Any, ends: range) -> None:
        """Raise InvalidData if the rows on both sides of an end have equal orders.

        Spark compares them itself, because Python has no years beyond 9999 and repeats one hour each year.
        """
        if not len(ends):
            return
        F, whole, first, step = self.language.functions, self.language.whole, max(ends.start, 1), ends.step
        place, along = F.col("place"), self.window.orderBy("place")
        # Only the last row before an end and the first one after it: few enough for one window over all of them.
        inside = (place >= whole(first - 1)) & (place < whole(ends.stop))
        near = rows.where(inside & (((place - whole(first - step)) % whole(step)).isin(0, step - 1)))
        same = F.col("o").eqNullSafe(F.lag("o").over(along)) & (F.lag("place").over(along) == place - whole(1))
        at_end = (place >= whole(first)) & ((place - whole(first - step)) % whole(step) == whole(0))
        tie = near.select((same & at_end).alias("tie")).where(F.col("tie"))
        if self._run(tie.agg(F.count(F.lit(1))))[0][0]:
            raise ties_error(self.order)

    @contextmanager
    def _placed(self, rows: Any) -> Iterator[tuple[Any, int]]:
        """Yield sorted rows with their places, and their number. The sizes of the partitions give the places."""
        F, whole = self.language.functions, self.language.whole
        rows = rows.withColumn("id", F.monotonically_increasing_id()).persist()
        try:
            part = F.shiftright("id", PLACE_BITS)
            sizes = dict(map(tuple, self._run(rows.groupBy(part.alias("part")).agg(F.count(F.lit(1))))))
            before = np.cumsum([0, *(sizes.get(i, 0) for i in range(max(sizes, default=0)))]).tolist()
            place = F.col("id").bitwiseAND(whole((1 << PLACE_BITS) - 1)) + self.language.pick(before, part)
            yield rows.withColumn("place", place), sum(sizes.values())
        finally:
            rows.unpersist()

    def block_totals(self, score: Score, block: int, start: int = 0) -> list[int]:
        score.check_total(block)
        F, whole = self.language.functions, self.language.whole
        with self._placed(self._sorted(score)) as (rows, count):
            shifted = (F.col("place") - whole(start)).alias("place")
            placed = rows.select("v", shifted).where(F.col("place") >= whole(0))
            self._check_ties(rows, block_ends(count, block, start))
            number = ((F.col("place") - F.col("place") % whole(block)) / whole(block)).cast("bigint")
            blocks = placed.groupBy(number.alias("block")).agg(F.sum("v"), F.count(F.lit(1)).alias("n"))
            found = sorted(self._run(blocks.where(F.col("n") == whole(block))))
        self._agree(count)
        return [int(total) for _, total, _ in found]

    def _sorted(self, score: Score) -> Any:
        self._fits(score)
        check_positions(self.promise)
        F = self.language.functions
        return self._scored(score).sort(F.col("o").asc_nulls_last(), F.col("v").asc())

    def _score(self, score: Score) -> Any:
        """Return the score of each row as a column."""
        made = sql.score_of_text if is_text(self.kind) else sql.score_of_number
        return made(score, self.language.functions.col("r"), self.language)

    def _scored(self, score: Score) -> Any:
        """Return the rows with their scores v. With a unit only rows that have one."""
        others = [*(["u"] if self.most is not None else []), *(["o"] if self.order is not None else [])]
        rows = self.rows.select(*others, self._score(score).alias("v"))
        return rows if self.most is None else rows.where(self.language.functions.col("u").isNotNull())

    def _counts(self, rows: Any) -> dict[int, int]:
        F = self.language.functions
        return {int(value): int(count) for value, count in self._run(rows.groupBy("v").agg(F.count(F.lit(1))))}

    def _run(self, query: Any) -> list[Any]:
        return self._guarded(lambda: list(query.collect()))

    def _guarded(self, read: Callable[[], Result]) -> Result:
        """Run a job guarded and with Spark's own log off, which quotes the records that a job fails at."""

        def quietly() -> Result:
            with _log_off(self.rows.sparkSession):
                return read()

        return guarded(COMPLAINT, quietly)


@contextmanager
def _log_off(session: Any) -> Iterator[None]:
    """Switch off the log of Spark's process on this machine. Logs of Spark Connect and other machines stay on."""
    context: Any = getattr(session, "_sc", None)
    try:
        log4j = context._jvm.org.apache.logging.log4j
        deny, neutral = (log4j.core.Filter.Result.valueOf(word) for word in ("DENY", "NEUTRAL"))
        nothing = log4j.core.filter.ThresholdFilter.createFilter(log4j.Level.OFF, neutral, deny)
        settings = log4j.LogManager.getContext(False).getConfiguration()
        settings.addFilter(nothing)
    except Exception:  # a remote session, or one with another kind of log
        yield
        return
    try:
        yield
    except BaseException:
        _await_tasks(context)
        raise
    finally:
        with suppress(Exception):  # Spark's process may have ended
            settings.removeFilter(nothing)


def _await_tasks(context: Any) -> None:
    """Wait for the tasks of a job that failed, because each of them may log the record that it fails at."""
    last = time.monotonic() + LAST_WORDS
    with suppress(Exception):
        tracker = context._jsc.sc().statusTracker()
        while any(one.numRunningTasks() for one in tracker.getExecutorInfos()) and time.monotonic() < last:
            time.sleep(0.05)
