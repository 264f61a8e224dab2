"""Records in a database, summed there: one query each for a total, the totals of blocks, or a histogram.

Only integers come back, never a record. What a database says when it fails may quote records, so its words are not
passed on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest.engines import expression
from privatest.engines.fit import check_numbers, check_text, unfit
from privatest.engines.names import choose
from privatest.engines.protocol import NO_ENDS, OneReading, Promise, Seen, tied, unordered
from privatest.engines.sql_errors import SUMMABLE, asked, rows_of_a_unit
from privatest.engines.sql_language import IbisLanguage
from privatest.engines.sql_line import FoldedLine, folded_line
from privatest.scores import Cells, Score

__all__ = ["Asker", "SqlRecords"]

Integers = npt.NDArray[np.int64]

COMPLAINT = "The database could not answer the query. Ask it about the table itself to learn why."


@dataclass(frozen=True)
class Asker:
    """How a query is run: to an Arrow table, or to batches one after the other."""

    whole: Callable[[Any], Any]
    stream: Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class SqlRecords(OneReading):
    """A column of an Ibis table, with the columns of its units and of its order."""

    rows: Any  # a table of the columns r (record), u (unit) and o (order), the latter two where they were named
    asker: Asker
    language: IbisLanguage
    most: int | None
    order: str | None
    _seen: Seen = field(default_factory=Seen, repr=False)

    @classmethod
    def of(
        cls,
        table: Any,
        asker: Asker,
        language: IbisLanguage,
        *,
        column: str | None,
        unit: str | None,
        most: int | None,
        order: str | None,
    ) -> SqlRecords:
        """The records of one column of a table."""
        record, unit, order = choose(list(table.columns), column, unit, order, "the table")
        chosen = {"r": table[record]}
        kind = chosen["r"].type()
        if not (kind.is_numeric() or kind.is_boolean() or kind.is_string()):
            raise unfit(f"type {kind}")
        if unit is not None:
            chosen["u"] = language.key(table[unit])
        if order is not None:
            chosen["o"] = language.place(table[order])
        return cls.over(table.select(**chosen), asker, language, unit=unit, most=most, order=order)

    @classmethod
    def over(
        cls, rows: Any, asker: Asker, language: IbisLanguage, *, unit: str | None, most: int | None, order: str | None
    ) -> SqlRecords:
        """The records of a table of the columns r, u and o."""
        return cls(rows, asker, language, rows_of_a_unit(most) if unit is not None else None, order)

    @property
    def promise(self) -> Promise:
        return Promise.of(self.most, self.order, lie=False)

    def _fits(self, score: Score) -> None:
        kind = self.rows.r.type()
        (check_text if kind.is_string() else check_numbers)(score, str(kind))
        if kind.is_string():  # some labels the database must be asked about
            self._score(score)

    def _rows(self) -> int:
        if self.most is None:
            query = self.rows.aggregate(n=self.rows.count())
        else:
            units = self.rows.filter(self.rows.u.notnull()).group_by("u").aggregate(rows=lambda t: t.count())
            units = units.select(rows=self.language.case([(units.rows > self.most, self.most)], units.rows))
            query = units.aggregate(n=units.rows.sum().cast("int64"))
        return int(self._ask(query)["n"][0].as_py() or 0)

    def _sum(self, score: Score) -> tuple[int, int]:
        if max(abs(score.low), abs(score.high)) >= SUMMABLE or not (self.most or expression.few_steps(score)):
            return self._counted_sum(score)
        quick = self._quick(score)
        if quick is not None:
            found = self._ask(self.rows.aggregate(**quick.sums, n=self.rows.count()))
            count = int(found["n"][0].as_py())
            return count, quick.total(count, *(int(found[name][0].as_py() or 0) for name in quick.sums))
        rows = self._kept(self._score(score))
        found = self._ask(rows.aggregate(total=rows.v.sum().cast("int64"), n=rows.count()))
        return int(found["n"][0].as_py()), int(found["total"][0].as_py() or 0)

    def _quick(self, score: Score) -> FoldedLine | None:
        if self.most is not None or self.language.dialect != "duckdb" or self.rows.r.type().is_string():
            return None
        return folded_line(score, self.rows.r, self.language)

    def _counted_sum(self, score: Score) -> tuple[int, int]:
        """The same sum, from how many records have each value: exact however large the scores are."""
        by_cell = self.most is None
        rows = self._kept(self._cell(score.cells) if by_cell else self._score(score))
        values, counts = self._counts(rows)
        table = score.table.tolist()
        scores = (table[value] if by_cell else value for value in values)
        return sum(counts), sum(one * count for one, count in zip(scores, counts, strict=True))

    def _cells(self, cells: Cells) -> list[int]:
        counts = [0] * (cells.count + 1)
        for value, count in zip(*self._counts(self._kept(self._cell(cells))), strict=True):
            counts[value] = count
        return counts

    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:
        self._fits(score)
        if self.order is None:
            raise unordered()
        rows = self._kept(self._score(score))
        if len(ends):
            rows = self._with_ties(rows, self._in_order(rows), ends)
        ties = {"tie": rows.tie} if len(ends) else {}
        query = rows.order_by(self._in_order(rows)).select(v=rows.v.cast("int64"), **ties)
        batches = asked(COMPLAINT, lambda: list(self.asker.stream(query)))
        if ties and any(np.asarray(batch.column(1)).any() for batch in batches):
            raise tied(self.order)
        found = np.concatenate([np.empty(0, dtype=np.int64), *(np.asarray(batch.column(0)) for batch in batches)])
        self._agree(len(found))
        return found

    def check_ends(self, ends: range) -> None:
        if not len(ends):
            return
        if self.order is None:
            raise unordered()
        rows = self._with_ties(self.rows, [self.rows.o.asc(nulls_first=False)], ends)
        if self._ask(rows.aggregate(n=rows.tie.sum()))["n"][0].as_py():
            raise tied(self.order)

    def _with_ties(self, rows: Any, in_order: list[Any], ends: range) -> Any:
        """The rows with a column tie: 1 for the first row after an end if the one before has the same order."""
        window = self.language.ibis.window(order_by=in_order)
        rows = rows.mutate(
            place=self.language.ibis.row_number().over(window), same=rows.o.identical_to(rows.o.lag().over(window))
        )
        first, step = max(ends.start, 1), ends.step
        at_end = (rows.place >= first) & (rows.place < ends.stop) & ((rows.place - first) % step == 0)
        return rows.mutate(tie=self.language.case([(rows.same & at_end, 1)], 0))

    def block_totals(self, score: Score, block: int, start: int = 0) -> list[int]:
        self._fits(score)
        if self.order is None:
            raise unordered()
        score.check_total(block)
        ibis = self.language.ibis
        rows = self._kept(self._score(score))
        window = ibis.window(order_by=self._in_order(rows))
        rows = rows.mutate(
            place=ibis.row_number().over(window) - start, tie=rows.o.identical_to(rows.o.lag().over(window))
        )
        rows = rows.filter(rows.place >= 0)
        rows = rows.mutate(
            block=(rows.place - rows.place % block) / block,
            tie=self.language.case([(rows.tie & (rows.place % block == 0), 1)], 0),
        )
        rows = rows.mutate(block=rows.block.cast("int64"))
        blocks = rows.group_by("block").aggregate(total=rows.v.sum().cast("int64"), n=rows.count(), ties=rows.tie.sum())
        found = self._ask(blocks.order_by("block"))
        sizes = found["n"].to_pylist()
        if sizes:
            self._agree(start + sum(sizes))
        whole = sum(size == block for size in sizes)  # all but the last, at least
        if any(found["ties"].to_pylist()[1:whole]):
            raise tied(self.order)
        return [int(total) for total in found["total"].to_pylist()[:whole]]

    def _in_order(self, rows: Any) -> list[Any]:
        return [rows.o.asc(nulls_first=False), rows.v.asc()]

    def _score(self, score: Score) -> Any:
        if self.rows.r.type().is_string():
            return expression.score_of_text(score, self.rows.r, self.language)
        x = self.language.double(self.rows.r)
        return self.language.unless_odd(x, score.odd_score, expression.score_of_number(score, x, self.language))

    def _cell(self, cells: Cells) -> Any:
        if self.rows.r.type().is_string():
            return expression.cell_of_text(cells, self.rows.r, self.language)
        x = self.language.double(self.rows.r)
        return self.language.unless_odd(x, cells.count, expression.cell_of_number(cells, x, self.language))

    def _kept(self, value: Any) -> Any:
        """The rows that count, with their value v: of a unit's ranks by value, the evenly spaced ones."""
        names = {"v": value} | {name: self.rows[name] for name in ("u", "o") if name in self.rows.columns}
        rows = self.rows.select(**names)
        if self.most is None:
            return rows
        ibis, k = self.language.ibis, self.most
        rows = rows.filter(rows.u.notnull())
        by_value = [rows.v.asc(), *([rows.o.asc(nulls_first=False)] if "o" in rows.columns else [])]
        rows = rows.mutate(
            rank=ibis.row_number().over(ibis.window(group_by=rows.u, order_by=by_value)) + 1,
            size=rows.count().over(ibis.window(group_by=rows.u)),
        )
        # A multiple of 2m lies in (2rk + m, 2(r+1)k + m]: the step between two floors, without a division.
        return rows.filter((rows.size <= k) | ((rows.rank * (2 * k) + rows.size) % (rows.size * 2) < 2 * k))

    def _counts(self, rows: Any) -> tuple[list[int], list[int]]:
        found = self._ask(rows.group_by("v").aggregate(n=rows.count()))
        return [int(v) for v in found["v"].to_pylist()], [int(n) for n in found["n"].to_pylist()]

    def _ask(self, query: Any) -> Any:
        return asked(COMPLAINT, lambda: self.asker.whole(query))
