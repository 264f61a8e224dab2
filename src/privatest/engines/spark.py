"""Spark: the rows of a DataFrame, summed by the cluster with built-in functions. No row comes to the driver.

The queries are those of every database (:mod:`privatest.engines.databases`), which Ibis writes in Spark's SQL. Errors
of a job may quote records, so Spark's own log is off while a job runs, and the error's text is not shown.
"""

from __future__ import annotations

import itertools
import os
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np

from privatest.engines.arrays import import_arrow
from privatest.engines.databases import QueryRunner, SqlRecords, import_ibis
from privatest.engines.key_columns import Selection
from privatest.engines.records import CHUNK, guarded, unsupported_type
from privatest.engines.score_sql import IbisLanguage
from privatest.errors import InvalidData, MissingExtra

TEXTS = ("string", "varchar", "char")
TYPES = {
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "float": "float32",
    "double": "float64",
    "timestamp_ntz": "timestamp",
}
"""Ibis's names of Spark's types, where they differ."""
ALIKE = ("boolean", "date", "timestamp", "time", "binary", "decimal")
"""Types that have one name in Spark and in Ibis."""
CHAR = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark keeps the type char(n) or varchar(n) of a column that it calls a string."""
PLACE_BITS = 33
"""Bits of monotonically_increasing_id that hold a row's place in its partition; the partition is above them."""
LAST_WORDS = 5.0
"""The most seconds to wait for the other tasks of a failed job, which may fail and log a record too."""
_numbers = itertools.count()


def open_frame(frame: Any, selection: Selection) -> SparkRecords:
    """Return the records of one column of a Spark DataFrame. No job runs yet."""
    remote = ".connect." in type(frame).__module__
    try:
        functions = import_module("pyspark.sql.connect.functions" if remote else "pyspark.sql.functions")
    except ImportError:
        raise MissingExtra.of("A Spark DataFrame needs PySpark.", "spark") from None
    ibis = import_ibis("A Spark DataFrame", "spark")
    if type(frame).__name__ != "DataFrame":
        raise InvalidData(f"The data are a Spark {type(frame).__name__}. Pass a DataFrame.")
    if frame.isStreaming:
        raise InvalidData("The data are a streaming DataFrame, which never ends. Pass a DataFrame of one batch.")
    fields = guarded(
        "The columns of the DataFrame cannot be read. Do its tables and files exist?", lambda: frame.schema.fields
    )
    kinds = {entry.name: entry.metadata.get(CHAR, entry.dataType.simpleString()) for entry in fields}
    sure = {entry.name for entry in fields if not entry.nullable}
    names = [entry.name for entry in fields]
    wanted = selection.of(names, "the DataFrame")
    chosen, types = [], {}
    for name in wanted.distinct():
        column, kind = _column_called(frame, names, name), kinds[name]
        types[name] = ibis.dtype(_ibis_type(kind, name), nullable=name not in sure)
        if kind.startswith("string collate"):  # Spark has collations from version 4 on
            column = functions.collate(column, "UTF8_BINARY")
        chosen.append((functions.rtrim(column.cast("string")) if kind.startswith("char(") else column).alias(name))
    view = f"privatest_{os.getpid()}_{next(_numbers)}"
    rows = guarded("The columns of the DataFrame cannot be read.", lambda: frame.select(*chosen))
    runner = SparkRunner(rows.sparkSession, ibis, functions)
    runner.view(rows, view)
    return SparkRecords.of(ibis.table(types, name=view), runner, IbisLanguage(ibis, "pyspark"), selection)


def _ibis_type(kind: str, name: str) -> str:
    plain = kind.partition("(")[0].partition(" ")[0]
    if plain in TEXTS:
        return "string"
    if plain not in TYPES and plain not in ALIKE:
        raise unsupported_type(f"values of type {kind}", "Name a column of numbers, texts or dates", name)
    return TYPES.get(plain, kind if plain == "decimal" else plain)


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


class SparkRunner(QueryRunner):
    """Runs queries in a Spark session, on temporary views that are dropped together with the runner."""

    def __init__(self, session: Any, ibis: Any, functions: Any) -> None:
        super().__init__(self._whole, self._stream)
        self.session, self.functions, self._ibis = session, functions, ibis
        ibis.pyspark  # noqa: B018 - Ibis registers the options of a database when it is first named

    def view(self, frame: Any, name: str) -> None:
        """Make a DataFrame a view of this name."""
        frame.createTempView(name)
        weakref.finalize(self, _drop_view, self.session, name).atexit = False

    def frame(self, query: Any) -> Any:
        """Return a query of Ibis as a DataFrame."""
        return self.session.sql(str(self._ibis.to_sql(query, dialect="pyspark")))

    def _whole(self, query: Any) -> Any:
        with _log_off(self.session):
            frame = self.frame(query)
            if hasattr(frame, "toArrow"):  # from version 4 on
                return frame.toArrow()
            return _arrow_table(query, [tuple(row) for row in frame.collect()])

    def _stream(self, query: Any) -> Iterator[Any]:
        with _log_off(self.session):
            rows = self.frame(query).toLocalIterator()
            while some := [tuple(row) for row in islice(rows, CHUNK)]:
                yield from _arrow_table(query, some).to_batches()


def _arrow_table(query: Any, rows: list[tuple[Any, ...]]) -> Any:
    pa, schema = import_arrow("A Spark DataFrame"), query.schema().to_pyarrow()
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    return pa.table([pa.array(list(values), one.type) for values, one in zip(columns, schema, strict=True)], schema)


def _drop_view(session: Any, name: str) -> None:
    with suppress(Exception):  # Spark's process may have ended
        session.catalog.dropTempView(name)


@dataclass(frozen=True, eq=False)
class SparkRecords(SqlRecords):
    """A column of a DataFrame, with the columns of its unit, order and group."""

    complaint = "Spark could not finish the job. Count the frame's rows yourself to learn why."
    _cached_frames: list[Any] = field(default_factory=list, repr=False)  # sorted frames, until they are queried

    def _with_places(self, rows: Any, in_order: list[Any]) -> Any:
        """Return the rows with their places; one window over all rows would sort them on one machine.

        Spark sorts the rows into partitions, whose sizes give the places.
        """
        runner: Any = self.runner
        F = runner.functions
        with _log_off(runner.session):
            frame = runner.frame(rows.order_by(in_order)).withColumn("id", F.monotonically_increasing_id()).persist()
            self._cached_frames.append(frame)
            part = F.shiftright("id", PLACE_BITS)
            sizes = dict(map(tuple, frame.groupBy(part.alias("part")).agg(F.count(F.lit(1))).collect()))
        before = np.cumsum([0, *(sizes.get(i, 0) for i in range(max(sizes, default=0)))]).tolist()
        starts = F.expr(f"cast(split('{','.join(map(str, before))}', ',') AS array<bigint>)")
        inside = F.col("id").bitwiseAND(F.lit((1 << PLACE_BITS) - 1).cast("bigint"))
        name = f"privatest_{os.getpid()}_{next(_numbers)}"
        runner.view(frame.withColumn("place", inside + F.get(starts, part)).drop("id"), name)
        return self.language.ibis.table({**rows.schema(), "place": "int64"}, name=name)

    def _run(self, query: Any) -> Any:
        try:
            return super()._run(query)
        finally:
            while self._cached_frames:
                self._cached_frames.pop().unpersist()


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
    """Wait for the tasks of a failed job, because each task may log the record at which it fails."""
    last = time.monotonic() + LAST_WORDS
    with suppress(Exception):
        tracker = context._jsc.sc().statusTracker()
        while any(one.numRunningTasks() for one in tracker.getExecutorInfos()) and time.monotonic() < last:
            time.sleep(0.05)
