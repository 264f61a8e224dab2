"""Records in a Spark DataFrame, summed by the cluster as one SQL expression: no Python worker, no row to the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest.engines import expression
from privatest.engines.fit import check_numbers, check_text, unfit
from privatest.engines.names import choose
from privatest.engines.protocol import NO_ENDS, OneReading, Promise, Seen, tied, unordered
from privatest.engines.spark_language import SparkLanguage, is_number, is_text
from privatest.engines.spark_stages import score_in_stages
from privatest.engines.sql_errors import SUMMABLE, asked, rows_of_a_unit
from privatest.errors import InvalidData, MissingExtra
from privatest.scores import Cells, Score

__all__ = ["SparkRecords", "open_frame"]

Integers = npt.NDArray[np.int64]

# monotonically_increasing_id: the partition above these bits, the row's place in it below.
PLACE_BITS = 33
# Where Spark keeps the type char(n) or varchar(n) of a column that it calls a string.
CHAR = "__CHAR_VARCHAR_TYPE_STRING"
COMPLAINT = "Spark could not finish the job. Look at its log, or count the frame's rows, to learn why."


def open_frame(
    frame: Any,
    *,
    column: str | None = None,
    unit: str | None = None,
    max_rows_per_unit: int | None = None,
    order: str | None = None,
) -> SparkRecords:
    """The records of one column of a Spark DataFrame. Nothing runs yet."""
    kind = type(frame).__module__
    remote = ".connect." in kind
    try:
        functions = import_module("pyspark.sql.connect.functions" if remote else "pyspark.sql.functions")
        window = import_module("pyspark.sql.connect.window" if remote else "pyspark.sql.window").Window
    except ImportError:
        raise MissingExtra("A Spark DataFrame needs PySpark. Install it: pip install privatest[spark]") from None
    if type(frame).__name__ != "DataFrame":
        raise InvalidData(f"The data are a Spark {type(frame).__name__}. Pass a DataFrame.")
    if frame.isStreaming:
        raise InvalidData("The data are a streaming DataFrame, which never ends. Pass a DataFrame of one batch.")
    language = SparkLanguage(functions)
    fields = asked(
        "The columns of the DataFrame cannot be found out. Do its tables and files exist?", lambda: frame.schema.fields
    )
    types = {entry.name: entry.metadata.get(CHAR, entry.dataType.simpleString()) for entry in fields}
    names = [entry.name for entry in fields]
    record, unit, order = choose(names, column, unit, order, "the DataFrame")
    if not (is_number(types[record]) or is_text(types[record])):
        raise unfit(f"type {types[record]}")
    read = language.text if is_text(types[record]) else language.double
    chosen = [read(_named(frame, names, record), types[record]).alias("r")]
    if unit is not None:
        chosen.append(language.key(_named(frame, names, unit), types[unit]).alias("u"))
    if order is not None:
        chosen.append(language.place(_named(frame, names, order), types[order]).alias("o"))
    most = rows_of_a_unit(max_rows_per_unit) if unit is not None else None
    rows = asked("The columns of the DataFrame cannot be read.", lambda: frame.select(*chosen))
    return SparkRecords(rows, language, window, types[record], most, order)


def _named(frame: Any, names: list[str], name: str) -> Any:
    """The column of that name, whatever dots it has in it."""
    alike = [other for other in names if other.lower() == name.lower()]
    quoted = "`" + name.replace("`", "``") + "`"
    if len(alike) > 1:  # one of them at most exists for Spark, unless it is told to mind the case
        twins = " and ".join(map(repr, alike))
        return asked(
            f"Columns {twins} of the DataFrame differ in case only, which Spark overlooks. Rename all but one, or set "
            "spark.sql.caseSensitive to true before the DataFrame is made.",
            lambda: frame[quoted],
        )
    return frame[quoted]


@dataclass(frozen=True, eq=False)
class SparkRecords(OneReading):
    """A column of a DataFrame, with the columns of its units and of its order."""

    rows: Any  # a frame of the columns r (record), u (unit) and o (order), the latter two where they were named
    language: SparkLanguage
    window: Any
    kind: str
    most: int | None
    order: str | None
    _seen: Seen = field(default_factory=Seen, repr=False)

    @property
    def promise(self) -> Promise:
        return Promise.of(self.most, self.order, lie=False)

    def _fits(self, score: Score) -> None:
        (check_text if is_text(self.kind) else check_numbers)(score, self.kind)

    def _rows(self) -> int:
        F = self.language.functions
        if self.most is None:
            query = self.rows.agg(F.count(F.lit(1)))
        else:
            units = self.rows.where(F.col("u").isNotNull()).groupBy("u").agg(F.count(F.lit(1)).alias("n"))
            query = units.agg(F.sum(F.least(F.col("n"), self.language.whole(self.most))))
        return int(self._ask(query)[0][0] or 0)

    def _sum(self, score: Score) -> tuple[int, int]:
        F = self.language.functions
        if max(abs(score.low), abs(score.high)) >= SUMMABLE:
            counts = self._counts(self._kept(self._valued(*self._scored(score))))
            return sum(counts.values()), sum(value * count for value, count in counts.items())
        rows, value = self._scored(score)
        if self.most is not None:
            rows, value = self._kept(self._valued(rows, value)), F.col("v")
        ((count, total),) = self._ask(rows.agg(F.count(F.lit(1)), F.sum(value)))
        return int(count), int(total or 0)

    def _cells(self, cells: Cells) -> list[int]:
        counts = self._counts(self._kept(self._valued(self.rows, self._cell(cells))))
        return [counts.get(cell, 0) for cell in range(cells.count + 1)]

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
            return asked(COMPLAINT, lambda: np.asarray(rows.toArrow().column("v")).astype(np.int64))
        return asked(COMPLAINT, lambda: np.fromiter((row[0] for row in rows.toLocalIterator()), dtype=np.int64))

    def check_ends(self, ends: range) -> None:
        if not len(ends):
            return
        if self.order is None:
            raise unordered()
        F = self.language.functions
        with self._placed(self.rows.select("o").sort(F.col("o").asc_nulls_last())) as (rows, _):
            self._check_ties(rows, ends)

    def _check_ties(self, rows: Any, ends: range) -> None:
        """Refuse rows with places if those on both sides of an end have one order, which is told where it lies."""
        F, whole, first, step = self.language.functions, self.language.whole, max(ends.start, 1), ends.step
        place, along = F.col("place"), self.window.orderBy("place")
        # The last row before an end and the first one after it: few enough for a window over all of them.
        inside = (place >= whole(first - 1)) & (place < whole(ends.stop))
        near = rows.where(inside & (((place - whole(first - step)) % whole(step)).isin(0, step - 1)))
        same = F.col("o").eqNullSafe(F.lag("o").over(along)) & (F.lag("place").over(along) == place - whole(1))
        at_end = (place >= whole(first)) & ((place - whole(first - step)) % whole(step) == whole(0))
        tie = near.select((same & at_end).alias("tie")).where(F.col("tie"))
        if self._ask(tie.agg(F.count(F.lit(1))))[0][0]:
            raise tied(self.order)

    @contextmanager
    def _placed(self, rows: Any) -> Iterator[tuple[Any, int]]:
        """Sorted rows with their places, and how many: they stay in their partitions, whose sizes tell the places."""
        F, whole = self.language.functions, self.language.whole
        rows = rows.withColumn("id", F.monotonically_increasing_id()).persist()
        try:
            part = F.shiftright("id", PLACE_BITS)
            sizes = dict(map(tuple, self._ask(rows.groupBy(part.alias("part")).agg(F.count(F.lit(1))))))
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
            placed = rows.select("v", "o", shifted).where(F.col("place") >= whole(0))
            number = ((F.col("place") - F.col("place") % whole(block)) / whole(block)).cast("bigint")
            ends = {"first": F.min("o"), "last": F.max("o"), "known": F.count("o"), "n": F.count(F.lit(1))}
            blocks = placed.groupBy(number.alias("block")).agg(
                F.sum("v").alias("total"), *(value.alias(name) for name, value in ends.items())
            )
            # Ties are told where the order lies: Python has no years beyond 9999, and one hour twice a year.
            # NULLs come last: after a block that ends in one, the next one starts with one.
            along = self.window.orderBy("block")
            before = {name: F.lag(name).over(along) for name in ends}
            tie = (before["known"] < before["n"]) | (before["last"] == F.col("first"))
            rest = blocks.where(F.col("n") == whole(block))
            found = sorted(self._ask(rest.select("block", "total", F.coalesce(tie, F.lit(False)).alias("tie"))))
        self._agree(count)
        if any(tie for _, _, tie in found):
            raise tied(self.order)
        return [int(total) for _, total, _ in found]

    def _sorted(self, score: Score) -> Any:
        self._fits(score)
        if self.order is None:
            raise unordered()
        F = self.language.functions
        return self._kept(self._valued(*self._scored(score))).sort(F.col("o").asc_nulls_last(), F.col("v").asc())

    def _scored(self, score: Score) -> tuple[Any, Any]:
        """All rows, and the column that is their score."""
        F, language = self.language.functions, self.language
        if is_text(self.kind):
            return self.rows, expression.score_of_text(score, F.col("r"), language)
        staged = score_in_stages(score, self.rows, self.others, F)
        return staged or (self.rows, expression.score_of_number(score, F.col("r"), language))

    def _cell(self, cells: Cells) -> Any:
        made = expression.cell_of_text if is_text(self.kind) else expression.cell_of_number
        return made(cells, self.language.functions.col("r"), self.language)

    def _valued(self, rows: Any, value: Any) -> Any:
        """The rows with their value v."""
        return rows.select(*self.others, value.alias("v"))

    @property
    def others(self) -> list[str]:
        """The columns beside the records'."""
        return [*(["u"] if self.most is not None else []), *(["o"] if self.order is not None else [])]

    def _kept(self, rows: Any) -> Any:
        """The rows that count: of a unit's ranks by value, the evenly spaced ones."""
        F, k = self.language.functions, self.most
        if k is None:
            return rows
        by_value = [F.col("v").asc(), *([F.col("o").asc_nulls_last()] if self.order is not None else [])]
        unit = self.window.partitionBy("u")
        rows = rows.where(F.col("u").isNotNull()).select(
            "*",
            F.row_number().over(unit.orderBy(*by_value)).cast("bigint").alias("rank"),
            F.count(F.lit(1)).over(unit).alias("size"),
        )
        rank, size, twice = F.col("rank"), F.col("size"), self.language.whole(2 * k)
        # A multiple of 2m lies in (2rk + m, 2(r+1)k + m]: the step between two floors, without a division.
        return rows.where((size <= k) | ((rank * twice + size) % (size * 2) < twice))

    def _counts(self, rows: Any) -> dict[int, int]:
        F = self.language.functions
        return {int(value): int(count) for value, count in self._ask(rows.groupBy("v").agg(F.count(F.lit(1))))}

    def _ask(self, query: Any) -> list[Any]:
        return asked(COMPLAINT, lambda: list(query.collect()))
