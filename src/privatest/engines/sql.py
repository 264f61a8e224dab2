"""Records in a table of DuckDB, PostgreSQL or whatever else Ibis speaks to, summed where they lie.

Opening a table looks at its structure only. A total, the totals of blocks and a histogram are one query each, of which
only integers come back, never a record. What a database says when it fails may quote records, so it is not passed on.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from privatest.addresses import unclear_login, without_secrets
from privatest.engines import expression
from privatest.engines.frames import column_of
from privatest.engines.keys import plain_key, plain_time
from privatest.engines.paths import choose
from privatest.engines.protocol import (
    MOST_GROUPS,
    NO_ENDS,
    Column,
    Declared,
    OneReading,
    Promise,
    Seen,
    Surplus,
    no_places,
    tied,
    unfit,
    unordered,
)
from privatest.engines.sql_language import (
    SUMMABLE,
    FoldedLine,
    IbisLanguage,
    PostgresColumns,
    find_table,
    folded_line,
    group_caller,
    label_bytes,
)
from privatest.engines.unheard import asked, each_asked
from privatest.engines.units import joined
from privatest.errors import InvalidData, MissingExtra
from privatest.numbers import Integers, suggestion
from privatest.scores import Cells, Score

__all__ = ["Asker", "SqlRecords", "open_address", "open_relation", "open_table"]

COMPLAINT = "The database could not answer the query. Ask it about the table itself to learn why."


@dataclass(frozen=True)
class Asker:
    """How a query is run: to an Arrow table, or to batches one after the other."""

    whole: Callable[[Any], Any]
    stream: Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class SqlRecords(OneReading):
    """A column of an Ibis table, with the columns of its units and of its order."""

    rows: Any  # a table of the columns r (record), u (unit), o (order) and g (group), but r where they were named
    asker: Asker
    language: IbisLanguage
    most: int | None
    order: str | None
    column: str | None = None
    tells_order: bool = True  # False where texts stand in o in another form, which only sorts as they do
    placed: bool = False  # rows that do not count stay in their places, as those of PlacedRecords
    called: Callable[[str], str | None] = str  # the name of a group, of the text that stands in g
    _seen: Seen = field(default_factory=Seen, repr=False)
    _texts: dict[str, str] = field(default_factory=dict, repr=False)  # by the groups' names

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
        group: str | None = None,
    ) -> SqlRecords:
        """The records of one column of a table."""
        wanted = choose(list(table.columns), column, unit, order, "the table", group=group)
        record, unit, order, group = wanted
        chosen = {"r": table[record]}
        kind = chosen["r"].type()
        if not (kind.is_numeric() or kind.is_boolean() or kind.is_string()):
            raise unfit(f"type {kind}", column=record)
        if unit is not None:
            chosen["u"] = language.key(table[unit])
        if order is not None:
            chosen["o"] = language.place(table[order])
        if group is not None:
            chosen["g"] = table[group] if table[group].type().is_string() else language.key(table[group])
        return cls.over(table.select(**chosen), asker, language, record, unit=unit, most=most, order=order)

    @classmethod
    def over(
        cls,
        rows: Any,
        asker: Asker,
        language: IbisLanguage,
        column: str,
        *,
        unit: str | None,
        most: int | None,
        order: str | None,
    ) -> SqlRecords:
        """The records of a table of the columns r, u, o and g; the first is ``column``."""
        called: Callable[[str], str | None] = str
        if "g" in rows.columns:
            called = group_caller(rows.g.type())
            rows = rows.mutate(g=rows.g if rows.g.type().is_string() else rows.g.cast("string"))
        most = (most or 1) if unit is not None else None
        return cls(rows, asker, language, most, order, column, called=called)

    def groups(self) -> list[str]:
        rows = self.rows.filter(self.rows.g.notnull())
        found = self._ask(rows.select(g=self.language.exact(rows.g)).distinct().limit(MOST_GROUPS))
        texts = [text.decode() if isinstance(text, bytes) else text for text in found["g"].to_pylist()]
        for text in sorted(texts):
            name = self.called(text)
            if name is not None:  # two decimals may be one double, whose name is the first one's then
                self._texts[text if name in self._texts else name] = text
        return list(self._texts)

    def is_shared(self) -> bool:
        if self.most is None:
            return False
        rows = self.rows.filter(self.rows.u.notnull() & self.rows.g.notnull())
        people = rows.group_by("u").aggregate(groups=self.language.exact(rows.g).nunique())
        several = people.filter(people.groups > 1)
        return bool(self._ask(several.aggregate(n=several.count()))["n"][0].as_py())

    def only(self, name: str) -> SqlRecords:
        inside = self.language.any_of(self.rows.g, [self._texts[name]])
        return replace(self, rows=self.rows.filter(inside), _seen=Seen())

    @property
    def promise(self) -> Promise:
        if self.placed and self.order is not None:
            return Promise(self.most, "tied")
        return Promise.of(self.most, self.order)

    def in_places(self) -> SqlRecords:
        """The same rows, all in the places of the order: the first ``most`` of each unit count, by order and score.

        Guarantees: how many rows of a unit count at each place depends on units and order alone; the others, and those
        of nobody, have the odd score. The same rows count as those of :class:`PlacedRecords`.
        """
        if self.order is None:
            raise unordered()
        return replace(self, placed=True, _seen=Seen())

    @property
    def declared(self) -> Declared:
        kind = self.rows.r.type()
        content: Any = "text" if kind.is_string() else "truths" if kind.is_boolean() else "numbers"
        whole = kind.is_integer() or kind.is_boolean()
        return Declared(content, str(kind), self.column, nullable=kind.nullable or not whole)

    def _fits(self, score: Score) -> None:
        super()._fits(score)
        if self.declared.content == "text":  # some labels the database must be asked about
            self._score(score)

    def portions(self) -> Iterator[Column]:
        """The records themselves, for the holder of the data only."""
        query = self.rows.select(r=self.rows.r)
        return each_asked(
            COMPLAINT, lambda: (column_of(batch.column(0), self.column) for batch in self.asker.stream(query))
        )

    def _rows(self) -> int:
        if self.most is None or self.placed:
            query = self.rows.aggregate(n=self.rows.count())
        else:
            units = self.rows.filter(self.rows.u.notnull()).group_by("u").aggregate(rows=lambda t: t.count())
            units = units.select(rows=self.language.case([(units.rows > self.most, self.most)], units.rows))
            query = units.aggregate(n=units.rows.sum().cast("int64"))
        return int(self._ask(query)["n"][0].as_py() or 0)

    def _sum(self, score: Score) -> tuple[int, int]:
        large = max(abs(score.low), abs(score.high)) >= SUMMABLE
        if self._joins:
            return joined(self._by_size(score, counted=large), self.most or 1)
        if large or not (self.most or expression.few_steps(score)):
            return self._counted_sum(score)
        quick = self._quick(score)
        if quick is not None:
            found = self._ask(self.rows.aggregate(**quick.sums, n=self.rows.count()))
            count = int(found["n"][0].as_py())
            return count, quick.total(count, *(int(found[name][0].as_py() or 0) for name in quick.sums))
        rows = self._valued(self._score(score), score.odd_score)
        found = self._ask(rows.aggregate(total=rows.v.sum().cast("int64"), n=rows.count()))
        return int(found["n"][0].as_py()), int(found["total"][0].as_py() or 0)

    def _by_size(self, score: Score, *, counted: bool) -> Iterator[tuple[int, int, int]]:
        """Of the units with m rows each: m, how many rows they have, and the sum of their scores (see ``joined``).

        Args:
            score: what is summed.
            counted: whether scores are too large to be summed there: how many rows have each of them is asked instead.
        """
        rows = self._valued(self._score(score), score.odd_score)
        if counted:
            rows = rows.mutate(m=rows.count().over(self.language.ibis.window(group_by=rows.u)))
            groups = rows.group_by(["m", "v"]).aggregate(n=lambda t: t.count())
            found = self._ask(groups)
            totals = [v * n for v, n in zip(found["v"].to_pylist(), found["n"].to_pylist(), strict=True)]
        else:
            units = rows.group_by("u").aggregate(total=rows.v.cast("int64").sum(), m=rows.count())
            groups = units.group_by("m").aggregate(total=units.total.sum(), n=units.m.sum())
            found = self._ask(groups)
            totals = found["total"].to_pylist()
        # Sums are decimals to some databases.
        yield from zip(
            *(map(int, part) for part in (found["m"].to_pylist(), found["n"].to_pylist(), totals)), strict=True
        )

    def _quick(self, score: Score) -> FoldedLine | None:
        if self.most is not None or self.language.dialect != "duckdb" or self.rows.r.type().is_string():
            return None
        return folded_line(score, self.rows.r, self.language)

    def _counted_sum(self, score: Score) -> tuple[int, int]:
        """The same sum, from how many records have each value: exact however large the scores are."""
        by_cell = self.most is None
        value = self._cell(score.cells) if by_cell else self._score(score)
        rows = self._valued(value, score.cells.count if by_cell else score.odd_score)
        values, counts = self._counts(rows)
        table = score.table.tolist()
        scores = (table[value] if by_cell else value for value in values)
        return sum(counts), sum(one * count for one, count in zip(scores, counts, strict=True))

    def _cells(self, cells: Cells) -> tuple[list[int], Surplus | None]:
        rows = self._valued(self._cell(cells), cells.count)
        if not self._joins:
            counts = [0] * (cells.count + 1)
            for value, count in zip(*self._counts(rows), strict=True):
                counts[value] = count
            return counts, None
        ibis, most = self.language.ibis, self.most or 1
        pairs = rows.group_by(["u", "v"]).aggregate(n=rows.count())
        pairs = pairs.mutate(many=pairs.n.sum().over(ibis.window(group_by=pairs.u)) > most)
        # Units of few rows have no name from here on: their rows count, and are added up where they lie.
        pairs = pairs.mutate(u=ibis.cases((pairs.many, pairs.u)))
        pairs = pairs.group_by(["u", "v"]).aggregate(n=pairs.n.sum())
        pairs = pairs.mutate(
            place=ibis.row_number().over(ibis.window(group_by=pairs.u, order_by=pairs.v.asc())), few=pairs.u.isnull()
        )
        pairs = pairs.order_by([pairs.u.asc(nulls_first=True), pairs.v.asc()])
        names = ("v", "n", "place")
        found = self._ask(pairs.select(**{name: pairs[name].cast("int64") for name in names}, few=pairs.few))
        cell, n, place = (np.asarray(found[name]).astype(np.int64) for name in names)
        few = np.asarray(found["few"]).astype(np.bool_)
        return Surplus.split(np.cumsum(place == 0), cell, n, few, cells.count + 1, most)

    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:
        self._in_places(score)
        rows = self._valued(self._score(score), score.odd_score)
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

    def order_values(self, places: Sequence[int]) -> list[int | float | str | None]:
        order, kind = self.rows.o, self.rows.o.type()
        # Dates and decimals as the database writes them: Python does not have all of them.
        plain = kind.is_integer() or kind.is_floating() or kind.is_binary() or kind.is_string()
        window = self.language.ibis.window(order_by=[order.asc(nulls_first=False)])
        place = self.language.ibis.row_number().over(window)
        rows = self.rows.select(place=place.cast("int64"), value=order if plain else order.cast("string"))
        found = self._ask(rows.filter(rows.place.isin(sorted(set(places)))))
        values = dict(zip(found["place"].to_pylist(), found["value"].to_pylist(), strict=True))
        if kind.is_date() or kind.is_time() or kind.is_timestamp():
            return [None if values.get(place) is None else plain_time(values[place]) for place in places]
        return [plain_key(values.get(place), loose=kind.is_decimal()) for place in places]

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
        self._in_places(score)
        score.check_total(block)
        ibis = self.language.ibis
        rows = self._valued(self._score(score), score.odd_score)
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

    @property
    def _joins(self) -> bool:
        """Whether the rows of a unit are joined."""
        return self.most is not None and not self.placed

    def _in_places(self, score: Score) -> None:
        """Refuse a score that does not fit, and rows that have no places."""
        self._fits(score)
        if self._joins:
            raise no_places(self.most)
        if self.order is None:
            raise unordered()

    def _valued(self, value: Any, odd: int) -> Any:
        """All rows with their value v; of units those that have one, in places those that do not count as ``odd``."""
        names = {"v": value} | {name: self.rows[name] for name in ("u", "o") if name in self.rows.columns}
        rows = self.rows.select(**names)
        if self._joins:
            return rows.filter(rows.u.notnull())
        if self.most is None:
            return rows
        ibis = self.language.ibis
        turn = ibis.row_number().over(ibis.window(group_by=rows.u, order_by=self._in_order(rows)))
        rows = rows.mutate(turn=turn)
        counts = rows.u.notnull() & (rows.turn < self.most)
        return rows.mutate(v=self.language.case([(counts, rows.v)], odd)).drop("turn")

    def _counts(self, rows: Any) -> tuple[list[int], list[int]]:
        found = self._ask(rows.group_by("v").aggregate(n=rows.count()))
        return [int(v) for v in found["v"].to_pylist()], [int(n) for n in found["n"].to_pylist()]

    def _ask(self, query: Any) -> Any:
        return asked(COMPLAINT, lambda: self.asker.whole(query))


NAME = "privatest_records"
PREPARED = "The database could not be given the tables in memory that the query joins. May you make temporary tables?"
UNLISTED = "The tables of {} cannot be listed. May you read that schema?"


def open_table(
    table: Any,
    *,
    column: str | None = None,
    unit: str | None = None,
    max_rows_per_unit: int | None = None,
    order: str | None = None,
    group: str | None = None,
) -> SqlRecords:
    """The records of an Ibis table, view or query (or of a single Ibis column), summed where it lies."""
    ibis = _import_ibis("An Ibis table")
    if isinstance(table, ibis.expr.types.Column):
        table = table.as_table()
    if not isinstance(table, ibis.expr.types.Table):
        raise InvalidData(f"The data are an Ibis {type(table).__name__}. Pass a table or a column.")
    backend = asked(
        "The Ibis table belongs to no database. Take it from a connection: ibis.duckdb.connect(...).table(...)",
        lambda: ibis.get_backend(table),
    )
    words = {"column": column, "unit": unit, "order": order, "group": group}
    if backend.name == "postgres":
        wanted = choose(list(table.columns), column, unit, order, "the table", group=group)
        names = wanted.names()
        table = table.select(*names)
        for name in names:
            kind = table[name].type()
            if kind.is_geospatial() or kind.is_json():  # which Ibis writes as functions of them
                raise unfit(f"type {kind}", column=name)
        # What the expression holds in memory is brought to the server first, and must live as long as the records.
        asked(PREPARED, lambda: backend._run_pre_execute_hooks(table))
        source = f"({backend.compile(table)})"
        return _of_postgres(ibis, backend, source, "the table", words, max_rows_per_unit, keep=table)
    # DuckDB's answers are Arrow tables already (and DuckDB 2 lacks what Ibis 12 asks it for batches with).
    batches = backend.name != "duckdb"
    asker = Asker(
        backend.to_pyarrow, backend.to_pyarrow_batches if batches else lambda q: backend.to_pyarrow(q).to_batches()
    )
    return SqlRecords.of(table, asker, IbisLanguage(ibis, backend.name), most=max_rows_per_unit, **words)


def open_relation(
    relation: Any,
    *,
    column: str | None = None,
    unit: str | None = None,
    max_rows_per_unit: int | None = None,
    order: str | None = None,
    group: str | None = None,
) -> SqlRecords:
    """The records of a DuckDB relation, summed by the connection that it comes from."""
    words = {"column": column, "unit": unit, "max_rows_per_unit": max_rows_per_unit, "order": order, "group": group}
    return _of_relation(relation, lambda text: relation.query(NAME, text), words, name=NAME)


def _of_relation(relation: Any, ask: Callable[[str], Any], words: dict[str, Any], **place: str) -> SqlRecords:
    """The records of what has the columns of a DuckDB relation; in the queries that are asked it stands at a place."""
    ibis = _import_ibis("A DuckDB relation")
    from ibis.backends.sql.datatypes import DuckDBType

    types = (DuckDBType.from_string(str(kind)) for kind in relation.types)
    table = ibis.table(ibis.schema(dict(zip(relation.columns, types, strict=True))), **place)

    def answer(query: Any) -> Any:
        return ask(str(ibis.to_sql(query, dialect="duckdb")))

    def stream(query: Any) -> Iterator[Any]:
        found = answer(query)
        # DuckDB renamed it twice; the oldest name is that of versions before 1.4.
        names = ("to_arrow_reader", "fetch_record_batch", "fetch_arrow_reader")
        yield from getattr(found, next(name for name in names if hasattr(found, name)))()

    def whole(query: Any) -> Any:
        return answer(query).to_arrow_table()

    names = {name: words.get(name) for name in ("column", "unit", "order", "group")}
    language, most = IbisLanguage(ibis, "duckdb"), words.get("max_rows_per_unit")
    return SqlRecords.of(table, Asker(whole, stream), language, most=most, **names)


def open_address(
    address: str,
    *,
    column: str | None = None,
    unit: str | None = None,
    max_rows_per_unit: int | None = None,
    order: str | None = None,
    group: str | None = None,
) -> SqlRecords:
    """The records of a table named by ``<database>::<table>``, such as ``duckdb:///claims.db::payments``.

    A table of another schema than the default one is ``<schema>.<table>``. Databases: ``duckdb:///<path>``,
    ``postgresql://<user>@<host>/<name>``, and every other address that Ibis knows.
    """
    database, found, name = address.rpartition("::")
    shown = without_secrets(database or address, user=True)
    if unclear_login(address):
        raise InvalidData(f"The name or password in the address {shown!r} holds an @. Write it as %40.")
    if not found or not name or "://" not in database:
        raise InvalidData(
            f"{shown!r} names a database but no table. Append the table's name: {shown}::table. "
            "(A path to a file must not contain '://'.)"
        )
    ibis = _import_ibis(f"The database {shown}")
    connection = _connect(ibis, database, shown)
    close = connection.close if database.startswith("duckdb://") else connection.disconnect
    try:
        words = {"column": column, "unit": unit, "max_rows_per_unit": max_rows_per_unit, "order": order, "group": group}
        records = (_of_duckdb if database.startswith("duckdb://") else _of_ibis)(connection, name, shown, words)
    except BaseException:
        close()
        raise
    weakref.finalize(records.asker, close)  # which copies of the records share
    return records


def _of_ibis(connection: Any, name: str, shown: str, words: dict[str, Any]) -> SqlRecords:
    if connection.name == "postgres":
        named = dict(words)
        most, source = named.pop("max_rows_per_unit"), find_table(connection, name, shown)
        return _of_postgres(_import_ibis(shown), connection, source, f"{name!r} in {shown}", named, most)
    names = asked(UNLISTED.format(shown), connection.list_tables)
    schema, dot, bare = ("", "", name) if name in names else name.rpartition(".")
    where = {"database": schema} if dot else {}
    names = asked(UNLISTED.format(shown), lambda: connection.list_tables(**where)) if dot else names
    if bare not in names:
        raise InvalidData(f"No table {name!r} in {shown}.{suggestion(bare, names)}")
    table = asked(f"The columns of {name!r} in {shown} cannot be read.", lambda: connection.table(bare, **where))
    return open_table(table, **words)


def _of_postgres(
    ibis: Any, backend: Any, source: str, shown: str, words: dict[str, Any], most: int | None, keep: Any = None
) -> SqlRecords:
    """The records of what stands behind FROM in PostgreSQL."""
    columns = PostgresColumns.of(backend, ibis, source, shown)
    column, unit, order, group = (words[word] for word in ("column", "unit", "order", "group"))
    record, unit, order, group = choose(list(columns.kinds), column, unit, order, "the table", group=group)

    def ask(query: Any, _alive: Any = keep) -> Any:
        return backend.to_pyarrow(query)

    language = IbisLanguage(ibis, "postgres", *label_bytes(backend))
    asker = Asker(ask, backend.to_pyarrow_batches)
    rows = columns.rows(record, unit, order, group)
    found = SqlRecords.over(rows, asker, language, record, unit=unit, most=most, order=order)
    return replace(found, tells_order=order is None or columns.keeps_text(order))


def _of_duckdb(connection: Any, name: str, shown: str, words: dict[str, Any]) -> SqlRecords:
    """By DuckDB's own connection: not every version of Ibis can list the tables of every version of DuckDB."""
    query = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = current_database()"
    every = asked(UNLISTED.format(shown), lambda: connection.execute(query).fetchall())
    found = [(schema, bare) for schema, bare in every if name in (f"{schema}.{bare}", bare if schema == "main" else "")]
    if not found:
        names = [bare if schema == "main" else f"{schema}.{bare}" for schema, bare in every]
        raise InvalidData(f"No table {name!r} in {shown}.{suggestion(name, names)}")
    if len(found) > 1:
        raise InvalidData(f"{len(found)} tables in {shown} can be meant by {name!r}. Make a view with another name.")
    quoted = ".".join('"' + part.replace('"', '""') + '"' for part in found[0])
    relation = asked(f"The columns of {name!r} in {shown} cannot be read.", lambda: connection.query(f"FROM {quoted}"))
    # Not relation.query: it makes a view, which DuckDB before 2.0 refuses in a file that is open for reading.
    schema, bare = found[0]
    return _of_relation(relation, connection.query, words, database=schema, name=bare)


def _connect(ibis: Any, database: str, shown: str) -> Any:
    scheme = database.partition("://")[0]
    if scheme == "duckdb":
        try:
            import duckdb
        except ImportError:
            raise MissingExtra.of(f"{shown} needs DuckDB.", "sql") from None
        path = Path(unquote(database.removeprefix("duckdb://").removeprefix("/")))
        if not path.is_file():
            raise InvalidData(f"No DuckDB file {str(path)!r}. (An absolute path has four slashes: duckdb:////a.db)")
        return asked(
            f"{str(path)!r} cannot be opened as a DuckDB database. Is it one, and is nobody writing to it?",
            lambda: duckdb.connect(str(path), read_only=True),
        )
    if scheme in ("postgres", "postgresql"):
        try:
            import psycopg
        except ImportError:
            raise MissingExtra.of(f"{shown} needs a driver.", "postgres") from None
        return asked(
            f"The database {shown} cannot be reached. Is it running, and may you connect to it?",
            lambda: ibis.postgres.from_connection(psycopg.connect(database, client_encoding="utf8")),
        )
    return asked(
        f"The database {shown} cannot be reached, or Ibis does not know addresses that start with {scheme}://.",
        lambda: ibis.connect(database),
    )


def _import_ibis(what: str) -> Any:
    try:
        import ibis
        import pyarrow  # noqa: F401 - answers come as Arrow tables
    except ImportError:
        raise MissingExtra.of(f"{what} is read by way of Ibis.", "sql") from None
    return ibis
