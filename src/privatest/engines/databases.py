"""Databases: records in a table of DuckDB, PostgreSQL or any other database that Ibis supports, summed there.

Opening a table reads its structure only. A total, the totals of blocks and a histogram are one query each, which
returns integers and never a record. Errors of a database may quote records, so their texts are not shown.

:class:`PostgresColumns` reads columns of PostgreSQL so that no value of any record can raise an error. The server says
what a column is: a domain is its base type, an enumeration is text. Text is read only in databases whose encoding is
UTF-8: in others some bytes stand for no character (129 in WIN1252), and to convert a record with one would raise.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

import numpy as np

from privatest.data_addresses import format_of, has_ambiguous_login, without_secrets
from privatest.engines.arrays import arrow_records
from privatest.engines.key_columns import ColumnNames, Selection, group_name, plain_key, plain_time
from privatest.engines.orders_and_ties import ties_error
from privatest.engines.records import (
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
    each_guarded,
    guarded,
    index_score,
    no_order_error,
    unsupported_type,
)
from privatest.engines.rows_per_person import sum_of_persons
from privatest.engines.score_sql import IbisLanguage, few_steps, grouped_score, score_of_number, score_of_text
from privatest.errors import InvalidData, MissingExtra
from privatest.numbers import Integers, suggestion
from privatest.scores import Cells, GroupedCells, Score

SUMMABLE = 1 << 22
"""Scores below this are summed by the database: sums of 2^41 of them stay within 64 bits. Larger ones are counted
there, and summed here as Python integers."""
MOST_ROWS = 1 << 62
"""More rows than any table has."""


def group_caller(kind: Any) -> Callable[[str], str | None]:
    """Return a function from what a database writes for a group's key of this type to the group's name."""
    if kind.is_string():
        return str
    if kind.is_boolean():
        return lambda text: group_name(text.lower() in ("true", "t", "1"))
    if kind.is_date() or kind.is_time() or kind.is_timestamp():
        return plain_time
    if not kind.is_numeric():
        raise unsupported_type(f"groups of type {kind}", "Groups are numbers, texts or dates")
    return lambda text: group_name(plain_key(text, untyped=True))


NUMBERS = {
    "bool": "boolean",
    "int2": "int16",
    "int4": "int32",
    "int8": "int64",
    "float4": "float32",
    "float8": "float64",
}
TEXTS = ("text", "varchar", "bpchar", "char", "name", "citext", "enum")
TIMES = {"date": "date", "time": "time", "timestamp": "timestamp", "timestamptz": "timestamp"}
UNITS = ("uuid", "bytea", "inet", "cidr", "macaddr", "macaddr8", "timetz")
"""Types besides numbers, texts and times that a unit may have."""
KEY_ERRORS = (
    ("units", "Units are numbers, texts or dates"),
    ("an order", "Order by numbers, dates, times or texts"),
    ("groups", "Groups are numbers, texts or dates"),
)
"""How messages name the columns of unit, order and group, and what these may be."""
UNREADABLE = "The columns of {} cannot be read. May you read it?"
TYPES = """
SELECT oid, CASE WHEN typtype = 'e' THEN 'enum'
                 WHEN typnamespace = 'pg_catalog'::regnamespace OR typname = 'citext' THEN typname::text
                 ELSE format_type(oid, NULL) END,
       ARRAY(SELECT enumlabel::text FROM pg_catalog.pg_enum WHERE enumtypid = t.oid ORDER BY enumsortorder)
FROM pg_catalog.pg_type AS t WHERE oid = ANY(%s::oid[])
"""
TABLES = """
SELECT n.nspname::text, c.relname::text, pg_catalog.pg_table_is_visible(c.oid)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p')
"""


def find_table(backend: Any, name: str, shown: str) -> str:
    """Return a table as SQL, by a name that is visible without its schema, or by ``<schema>.<table>``.

    Names may contain dots. Views of both kinds, foreign and partitioned tables are tables.
    """

    def run_query() -> list[tuple[str, str, bool]]:
        with backend.begin() as cursor:
            cursor.execute(TABLES)
            return list(cursor.fetchall())

    every = guarded(f"The tables of {shown} cannot be listed. May you connect to it?", run_query)
    return ".".join(map(_quoted, _one_table(every, name, shown)))


SYSTEM = ("pg_catalog", "information_schema", "pg_toast")


def _one_table(every: Sequence[tuple[str, str, bool]], name: str, shown: str) -> tuple[str, str]:
    """Return the schema and the name of the one table of this name; raise InvalidData for none or several.

    Args:
        every: schema and name of each table, and whether it is visible without its schema.
        name: the table's name, with its schema or without.
        shown: the database's address, for messages.
    """
    meant = [(schema, bare) for schema, bare, visible in every if name in (f"{schema}.{bare}", bare if visible else "")]
    if not meant:
        tables = [(schema, bare, visible) for schema, bare, visible in every if schema not in SYSTEM]
        names = [bare if visible else f"{schema}.{bare}" for schema, bare, visible in tables if visible or "." in name]
        raise InvalidData(f"No table {name!r} in {shown}.{suggestion(name, names)}")
    if len(meant) > 1:
        raise InvalidData(f"{len(meant)} tables in {shown} can be meant by {name!r}. Make a view with another name.")
    return meant[0]


@dataclass(frozen=True)
class PostgresColumns:
    """The columns of a table or query, with the types that the server states, and the labels of enumerations."""

    backend: Any
    ibis: Any
    source: str
    kinds: dict[str, tuple[str, int | None, int | None]]
    labels: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, backend: Any, ibis: Any, source: str, shown: str) -> PostgresColumns:
        """Return the columns of ``source``, SQL that may follow FROM. No row is read."""

        def run_query() -> tuple[list[Any], dict[int, tuple[str, list[str]]]]:
            with backend.begin() as cursor:
                cursor.execute(f"SELECT * FROM {source} AS t LIMIT 0")
                columns = list(cursor.description or ())
                cursor.execute(TYPES, [[column.type_code for column in columns]])
                return columns, {oid: (kind, labels) for oid, kind, labels in cursor.fetchall()}

        columns, types = guarded(UNREADABLE.format(shown), run_query)
        kinds = {column.name: (types[column.type_code][0], column.precision, column.scale) for column in columns}
        if len(kinds) < len(columns):
            raise InvalidData(f"Several columns of {shown} have one name. Rename all but one.")
        labels = {column.name: tuple(types[column.type_code][1]) for column in columns}
        return cls(backend, ibis, source, kinds, labels)

    def rows(self, wanted: ColumnNames) -> Any:
        """Return an Ibis table of the columns r, u, o and g (see ``SqlRecords.rows``) that cannot raise an error."""
        parts = {"r": self._record(wanted.record)}
        for part, name, (what, remedy) in zip("uog", wanted[1:], KEY_ERRORS, strict=True):
            if name is not None:
                parts[part] = self._key(name, what, remedy, UNITS if part == "u" else ())
        chosen = ", ".join(f"{sql} AS {name}" for name, (sql, _) in parts.items())
        schema = self.ibis.schema({name: kind for name, (_, kind) in parts.items()})
        return self.backend.sql(f"SELECT {chosen} FROM {self.source} AS t", schema=schema, dialect="postgres")

    def _record(self, name: str) -> tuple[str, Any]:
        kind = self.kinds[name][0]
        if kind in TEXTS:
            return self._text(name), "string"
        if kind != "numeric" and kind not in NUMBERS:
            raise unsupported_type(f"type {kind}", column=name)
        return _quoted(name), self._number(name)

    def _key(self, name: str, what: str, remedy: str, others: Sequence[str]) -> tuple[str, Any]:
        kind, column = self.kinds[name][0], _quoted(name)
        if kind in others:
            return column, "binary"
        if kind in TEXTS:
            return self._text(name), "string"
        if kind == "numeric":  # NaN, which equals itself in PostgreSQL, becomes NULL
            return f"NULLIF({column}, 'NaN'::numeric)", self._number(name)
        if kind in ("float4", "float8"):
            return f"NULLIF({column}::float8 + 0.0::float8, 'NaN'::float8)", "float64"
        if kind in NUMBERS or kind in TIMES:
            return column, {**NUMBERS, **TIMES}[kind]
        raise unsupported_type(f"{what} of type {kind}", remedy)

    def _number(self, name: str) -> Any:
        kind, precision, scale = self.kinds[name]
        if kind != "numeric":
            return NUMBERS[kind]
        if precision is None or scale is None or scale < 0:
            return self.ibis.dtype("decimal")
        return self.ibis.dtype(f"decimal({max(precision, scale)}, {scale})")

    def _text(self, name: str) -> str:
        """Return a text that compares by code points; char(n) loses the blanks at its end."""
        encoding = self.backend.con.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise unsupported_type(
                f"text in the encoding {encoding}, in which not every byte is a character",
                "Name a column of numbers or dates, such as that of a view with a number for each text, or copy the "
                "table to a database in UTF8",
                column=name,
            )
        return f'{_quoted(name)}::text COLLATE "C"'


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class QueryRunner:
    """Functions of a query: ``whole`` returns its result as an Arrow table, ``stream`` yields the batches of it."""

    whole: Callable[[Any], Any]
    stream: Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class SqlRecords(SourceRecords):
    """A column of a database's table, with the columns of its unit, order and group."""

    complaint = "The database could not answer the query. Ask it about the table itself to learn why."
    rows: Any  # a table of the columns r (record), u (unit), o (order), g (group), if named
    runner: QueryRunner
    language: IbisLanguage
    most: int | None
    order: str | None
    column: str | None = None
    placed: bool = False  # whether rows that do not count stay in their places, as in PlacedRecords
    called: Callable[[str], str | None] = str  # returns the name of a group for a text in g
    group_texts: tuple[tuple[str, ...], ...] = ()  # the texts in g that mean each group of grouped cells
    group_labels: tuple[str, ...] = ()  # the labels of the enumeration that is the type of g
    _last_reading: LastReading = field(default_factory=LastReading, repr=False)
    _texts: dict[str, str] = field(default_factory=dict, repr=False)  # the text in g by the group's name

    @classmethod
    def of(cls, table: Any, runner: QueryRunner, language: IbisLanguage, selection: Selection) -> Self:
        """Return the records of one column of a table."""
        wanted = selection.of(list(table.columns), "the table")
        record: Any = table[wanted.record]
        unit, order, group = (None if name is None else table[name] for name in wanted[1:])
        kind = record.type()
        if not (kind.is_numeric() or kind.is_boolean() or kind.is_string()):
            raise unsupported_type(f"type {kind}", column=wanted.record)
        chosen = {"r": record}
        if unit is not None:
            chosen["u"] = language.key(unit)
        if order is not None:
            chosen["o"] = language.place(order)
        if group is not None:
            chosen["g"] = group if group.type().is_string() else language.key(group)
        return cls.over(table.select(**chosen), runner, language, wanted, selection.most)

    @classmethod
    def over(
        cls, rows: Any, runner: QueryRunner, language: IbisLanguage, wanted: ColumnNames, most: int | None
    ) -> Self:
        """Return the records of a table of the columns r, u, o and g, made from the wanted columns."""
        called: Callable[[str], str | None] = str
        if "g" in rows.columns:
            called = group_caller(rows.g.type())
            rows = rows.mutate(g=rows.g if rows.g.type().is_string() else rows.g.cast("string"))
        return cls(rows, runner, language, most, wanted.order, wanted.record, called=called)

    def declared_groups(self) -> list[str]:
        return [label for label in self.group_labels if group_name(label) is not None]

    def groups(self) -> list[str]:
        for text in self._distinct_groups(MOST_GROUPS):
            name = self.called(text)
            if name is not None:  # two decimals may be one double: the first has the name
                self._texts[text if name in self._texts else name] = text
        return list(self._texts)

    def _distinct_groups(self, most: int | None = None) -> list[str]:
        """Return the distinct texts of the column g in order, at most ``most`` of them."""
        rows = self.rows.filter(self.rows.g.notnull())
        query = rows.select(g=self.language.exact(rows.g)).distinct()
        texts = self._run(query if most is None else query.limit(most))["g"].to_pylist()
        return sorted(text.decode() if isinstance(text, bytes) else text for text in texts)

    def grouped(self, names: Sequence[str]) -> SqlRecords:
        # Texts are their own names. How a database writes a number or a date is read from it.
        texts = list(names) if self.called is str else self._distinct_groups()
        meant = tuple(tuple(text for text in texts if self.called(text) == name) for name in names)
        return replace(self, group_texts=meant, _last_reading=LastReading())

    def is_shared(self) -> bool:
        if self.most is None:
            return False
        rows = self.rows.filter(self.rows.u.notnull() & self.rows.g.notnull())
        people = rows.group_by("u").aggregate(groups=self.language.exact(rows.g).nunique())
        several = people.filter(people.groups > 1)
        return bool(self._run(several.aggregate(n=several.count()))["n"][0].as_py())

    def only(self, name: str) -> SqlRecords:
        inside = self.language.any_of(self.rows.g, [self._texts[name]])
        return replace(self, rows=self.rows.filter(inside), _last_reading=LastReading())

    @property
    def promise(self) -> Promise:
        if self.placed and self.order is not None:
            return Promise(self.most, "tied")
        return Promise.of_database(self.most, self.order)

    def in_places(self) -> SqlRecords:
        """Return the same rows in their places; the first ``most`` rows of each unit count, by order and score.

        Guarantees: how many rows of a unit count at each place depends on units and order alone. The other rows, and
        rows without a unit, have the odd score. :class:`PlacedRecords` counts the same rows.
        """
        if self.order is None:
            raise no_order_error()
        return replace(self, placed=True, _last_reading=LastReading())

    @property
    def declared(self) -> Declared:
        kind = self.rows.r.type()
        content: Any = "text" if kind.is_string() else "truths" if kind.is_boolean() else "numbers"
        whole = kind.is_integer() or kind.is_boolean()
        result = Declared(content, str(kind), self.column, nullable=kind.nullable or not whole)
        return replace(result, between=(0, 1) if kind.is_boolean() else tuple(kind.bounds)) if whole else result

    def portions(self) -> Iterator[Column]:
        """Yield the records themselves, for the holder of the data only."""
        query = self.rows.select(r=self.rows.r)
        return each_guarded(
            self.complaint, lambda: (arrow_records(batch.column(0), self.column) for batch in self.runner.stream(query))
        )

    def _rows(self) -> int:
        if self.most is None or self.placed:
            query = self.rows.aggregate(n=self.rows.count())
        else:
            units = self.rows.filter(self.rows.u.notnull()).group_by("u").aggregate(rows=lambda t: t.count())
            units = units.select(rows=self.language.case([(units.rows > self.most, self.most)], units.rows))
            query = units.aggregate(n=units.rows.sum().cast("int64"))
        return int(self._run(query)["n"][0].as_py() or 0)

    def _sum(self, score: Score) -> tuple[int, int | Fraction]:
        large = max(abs(score.low), abs(score.high)) >= SUMMABLE
        if self._joins:
            return sum_of_persons(self._by_size(score, counted=large), self.most or 1)
        if large or not (self.most or few_steps(score)):
            return self._counted_sum(score)
        rows = self._scored(score)
        result = self._run(rows.aggregate(total=rows.v.sum().cast("int64"), n=rows.count()))
        return int(result["n"][0].as_py()), int(result["total"][0].as_py() or 0)

    def _by_size(self, score: Score, *, counted: bool) -> Iterator[tuple[int, int, int]]:
        """Yield m, the number of rows and the sum of scores of the units with m rows each; see ``sum_of_persons``.

        Args:
            score: what is summed.
            counted: whether scores are too large to be summed by the database. Then it counts the rows with
                each score.
        """
        rows = self._scored(score)
        if counted:
            rows = rows.mutate(m=rows.count().over(self.language.ibis.window(group_by=rows.u)))
            groups = rows.group_by(["m", "v"]).aggregate(n=lambda t: t.count())
            result = self._run(groups)
            totals = [v * n for v, n in zip(result["v"].to_pylist(), result["n"].to_pylist(), strict=True)]
        else:
            units = rows.group_by("u").aggregate(total=rows.v.cast("int64").sum(), m=rows.count())
            groups = units.group_by("m").aggregate(total=units.total.sum(), n=units.m.sum())
            result = self._run(groups)
            totals = result["total"].to_pylist()
        # In some databases sums are decimals.
        yield from zip(
            *(map(int, part) for part in (result["m"].to_pylist(), result["n"].to_pylist(), totals)), strict=True
        )

    def _counted_sum(self, score: Score) -> tuple[int, int]:
        """Return count and sum, computed from counts of each value, which is exact however large scores are."""
        if self.most is None:  # a cell is found quicker than its score
            values, counts = self._counts(self._scored(index_score(score.cells)))
            values = score.table[values].tolist()
        else:
            values, counts = self._counts(self._scored(score))
        return sum(counts), sum(one * count for one, count in zip(values, counts, strict=True))

    def _cells(self, cells: Cells) -> tuple[list[int], Surplus | None]:
        rows = self._scored(index_score(cells))
        if not self._joins:
            counts = [0] * (cells.count + 1)
            for value, count in zip(*self._counts(rows), strict=True):
                counts[value] = count
            return counts, None
        ibis, most = self.language.ibis, self.most or 1
        pairs = rows.group_by(["u", "v"]).aggregate(n=rows.count())
        pairs = pairs.mutate(many=pairs.n.sum().over(ibis.window(group_by=pairs.u)) > most)
        # Units of few rows lose their names here: all their rows count, so the database adds them up.
        pairs = pairs.mutate(u=ibis.cases((pairs.many, pairs.u)))
        pairs = pairs.group_by(["u", "v"]).aggregate(n=pairs.n.sum())
        pairs = pairs.mutate(
            place=ibis.row_number().over(ibis.window(group_by=pairs.u, order_by=pairs.v.asc())), few=pairs.u.isnull()
        )
        pairs = pairs.order_by([pairs.u.asc(nulls_first=True), pairs.v.asc()])
        names = ("v", "n", "place")
        result = self._run(pairs.select(**{name: pairs[name].cast("int64") for name in names}, few=pairs.few))
        cell, n, place = (np.asarray(result[name]).astype(np.int64) for name in names)
        few = np.asarray(result["few"]).astype(np.bool_)
        return Surplus.split(np.cumsum(place == 0), cell, n, few, cells.count + 1, most)

    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:
        self._in_places(score)
        rows = self._scored(score)
        if len(ends):
            rows = self._with_ties(rows, self._in_order(rows), ends)
        ties = {"tie": rows.tie} if len(ends) else {}
        query = rows.order_by(self._in_order(rows)).select(v=rows.v.cast("int64"), **ties)
        answer = self._run(query)
        if ties and np.asarray(answer["tie"]).any():
            raise ties_error(self.order)
        result = np.asarray(answer["v"]).astype(np.int64)
        self._agree(len(result))
        return result

    def check_ends(self, ends: range) -> None:
        super().check_ends(ends)
        if not len(ends):
            return
        rows = self._with_ties(self.rows, [self.rows.o.asc(nulls_first=False)], ends)
        if self._run(rows.aggregate(n=rows.tie.sum()))["n"][0].as_py():
            raise ties_error(self.order)

    @property
    def has_order_values(self) -> bool:
        return self.order is not None

    def order_forms(self) -> set[str]:
        kind = self.rows.o.type()  # a database has types for dates and times, so a text is no order unless it is meant
        return {""} if kind.is_string() or kind.is_binary() else set()

    def order_values(self, places: Sequence[int]) -> list[int | float | str | None]:
        order, kind = self.rows.o, self.rows.o.type()
        # Dates and decimals are read as texts, because Python does not have all of them.
        plain = kind.is_integer() or kind.is_floating() or kind.is_binary() or kind.is_string()
        rows = self._with_places(self.rows, [order.asc(nulls_first=False)])
        count = rows.count().over(self.language.ibis.window()).cast("int64")
        rows = rows.select(place=rows.place, value=rows.o if plain else rows.o.cast("string"), n=count)
        result = self._run(rows.filter(rows.place.isin(sorted(set(places)))))
        if places:
            self._agree(next(iter(result["n"].to_pylist()), 0))
        values = dict(zip(result["place"].to_pylist(), result["value"].to_pylist(), strict=True))
        if kind.is_date() or kind.is_time() or kind.is_timestamp():
            return [None if values.get(place) is None else plain_time(values[place]) for place in places]
        return [plain_key(values.get(place), untyped=kind.is_decimal()) for place in places]

    def _with_places(self, rows: Any, in_order: list[Any]) -> Any:
        """Return the rows with their places in this order, counted from 0."""
        place = self.language.ibis.row_number().over(self.language.ibis.window(order_by=in_order))
        return rows.mutate(place=place.cast("int64"))

    def _with_ties(self, rows: Any, in_order: list[Any], ends: range) -> Any:
        """Return the rows with their places, and tie: 1 for a row after an end with the order of the row before it."""
        rows = self._with_places(rows, in_order)
        first, step = max(ends.start, 1), ends.step
        # The last row before an end and the first one after it are in one part, whose rows the database compares. Where
        # every row ends a block, each row is compared with the one before it: no parts have both.
        part = rows.place - (rows.place - (first - 1)) % step if step > 1 else None
        window = self.language.ibis.window(group_by=part, order_by=rows.place.asc())
        rows = rows.mutate(same=rows.o.identical_to(rows.o.lag().over(window)))
        at_end = (rows.place >= first) & (rows.place < ends.stop) & ((rows.place - first) % step == 0)
        return rows.mutate(tie=self.language.case([(rows.same & at_end, 1)], 0))

    def block_totals(self, score: Score, block: int, start: int = 0) -> list[int]:
        self._in_places(score)
        score.check_total(block)
        rows = self._scored(score)
        # The number of rows is known only afterwards, so the last end may not lie between two whole blocks.
        rows = self._with_ties(rows, self._in_order(rows), block_ends(MOST_ROWS, block, start))
        rows = rows.filter(rows.place >= start)
        from_start = rows.place - start
        rows = rows.mutate(block=((from_start - from_start % block) / block).cast("int64"))
        blocks = rows.group_by("block").aggregate(total=rows.v.sum().cast("int64"), n=rows.count(), ties=rows.tie.sum())
        result = self._run(blocks.order_by("block"))
        sizes = result["n"].to_pylist()
        if sizes:
            self._agree(start + sum(sizes))
        whole = sum(size == block for size in sizes)  # all but the last, at least
        if any(result["ties"].to_pylist()[:whole]):
            raise ties_error(self.order)
        return [int(total) for total in result["total"].to_pylist()[:whole]]

    def _in_order(self, rows: Any) -> list[Any]:
        return [rows.o.asc(nulls_first=False), rows.v.asc()]

    def _score(self, score: Score) -> Any:
        """Return the score of each row as a column."""
        if isinstance(score.cells, GroupedCells):
            cell = self._score(index_score(score.cells.inner))
            return grouped_score(score, cell, self.rows.g, self.group_texts, self.language)
        if self.rows.r.type().is_string():
            return score_of_text(score, self.rows.r, self.language)
        x = self.language.double(self.rows.r)
        return self.language.unless_odd(x, score.odd_score, score_of_number(score, x, self.language))

    @property
    def _joins(self) -> bool:
        """Whether the rows of a unit are joined to one sum."""
        return self.most is not None and not self.placed

    def _in_places(self, score: Score) -> None:
        """Raise InvalidData for a score that does not fit, and for rows without an order."""
        self._fits(score)
        check_positions(self.promise)

    def _scored(self, score: Score) -> Any:
        """Return the rows with their scores v. Joined rows need a unit; placed rows that do not count are odd."""
        names = {"v": self._score(score)} | {name: self.rows[name] for name in ("u", "o") if name in self.rows.columns}
        rows = self.rows.select(**names)
        if self._joins:
            return rows.filter(rows.u.notnull())
        if self.most is None:
            return rows
        ibis = self.language.ibis
        turn = ibis.row_number().over(ibis.window(group_by=rows.u, order_by=self._in_order(rows)))
        rows = rows.mutate(turn=turn)
        counts = rows.u.notnull() & (rows.turn < self.most)
        return rows.mutate(v=self.language.case([(counts, rows.v)], score.odd_score)).drop("turn")

    def _counts(self, rows: Any) -> tuple[list[int], list[int]]:
        result = self._run(rows.group_by("v").aggregate(n=rows.count()))
        return [int(v) for v in result["v"].to_pylist()], [int(n) for n in result["n"].to_pylist()]

    def _run(self, query: Any) -> Any:
        return self.runner.whole(query)


NAME = "privatest_records"
"""What queries call a DuckDB relation."""
PREPARED = "The database could not be given the tables in memory that the query joins. May you make temporary tables?"
UNLISTED = "The tables of {} cannot be listed. May you read that schema?"


def open_table(table: Any, selection: Selection) -> SqlRecords:
    """Return the records of an Ibis table, view, query or column, summed by its database."""
    ibis = import_ibis("An Ibis table")
    if isinstance(table, ibis.expr.types.Column):
        table = table.as_table()
    if not isinstance(table, ibis.expr.types.Table):
        raise InvalidData(f"The data are an Ibis {type(table).__name__}. Pass a table or a column.")
    backend = guarded(
        "The Ibis table belongs to no database. Take it from a connection: ibis.duckdb.connect(...).table(...)",
        lambda: ibis.get_backend(table),
    )
    if backend.name == "postgres":
        names = selection.of(list(table.columns), "the table").distinct()
        table = table.select(*names)
        for name in names:
            kind = table[name].type()
            if kind.is_geospatial() or kind.is_json():  # Ibis reads these through functions
                raise unsupported_type(f"type {kind}", column=name)
        # Tables in memory that the query uses are sent to the server first, and must live as long as the records.
        guarded(PREPARED, lambda: backend._run_pre_execute_hooks(table))
        source = f"({backend.compile(table)})"
        return _of_postgres(ibis, backend, source, "the table", selection, keep=table)
    # DuckDB answers with Arrow tables, and DuckDB 2 lacks the method that Ibis 12 uses to read batches.
    batches = backend.name != "duckdb"
    runner = QueryRunner(
        backend.to_pyarrow, backend.to_pyarrow_batches if batches else lambda q: backend.to_pyarrow(q).to_batches()
    )
    return SqlRecords.of(table, runner, IbisLanguage(ibis, backend.name), selection)


def open_relation(relation: Any, selection: Selection) -> SqlRecords:
    """Return the records of a DuckDB relation, summed by its connection."""
    return _of_relation(relation, lambda text: relation.query(NAME, text), selection, name=NAME)


def _of_relation(relation: Any, run_query: Callable[[str], Any], selection: Selection, **place: str) -> SqlRecords:
    """Return the records of a DuckDB relation; ``place`` is the name, and the schema, by which queries call it."""
    ibis = import_ibis("A DuckDB relation")
    from ibis.backends.sql.datatypes import DuckDBType

    types = (DuckDBType.from_string(str(kind)) for kind in relation.types)
    table = ibis.table(ibis.schema(dict(zip(relation.columns, types, strict=True))), **place)

    def answer(query: Any) -> Any:
        return run_query(str(ibis.to_sql(query, dialect="duckdb")))

    def stream(query: Any) -> Iterator[Any]:
        result = answer(query)
        # DuckDB has renamed this method twice; the last name is that of versions before 1.4.
        names = ("to_arrow_reader", "fetch_record_batch", "fetch_arrow_reader")
        yield from getattr(result, next(name for name in names if hasattr(result, name)))()

    def whole(query: Any) -> Any:
        return answer(query).to_arrow_table()

    return SqlRecords.of(table, QueryRunner(whole, stream), IbisLanguage(ibis, "duckdb"), selection)


def open_address(address: str, selection: Selection) -> SqlRecords:
    """Return the records of a table named by ``<database>::<table>``, such as ``duckdb:///claims.db::payments``.

    A table outside of the default schema is ``<schema>.<table>``. Databases are ``duckdb:///<path>``,
    ``postgresql://<user>@<host>/<name>``, and all other addresses that Ibis knows.
    """
    database, result, name = address.rpartition("::")
    shown = without_secrets(database or address, user=True)
    if has_ambiguous_login(address):
        raise InvalidData(f"The name or password in the address {shown!r} holds an @. Write it as %40.")
    if not result and format_of(address) is not None:
        raise InvalidData(f"{shown!r} names a file, and addresses are for tables. Pass a path on this machine.")
    if not result or not name or "://" not in database:
        raise InvalidData(
            f"{shown!r} names a database but no table. Append the table's name: {shown}::table. "
            "(A path to a file must not contain '://'.)"
        )
    ibis = import_ibis(f"The database {shown}")
    connection = _connect(ibis, database, shown)
    close = connection.close if database.startswith("duckdb://") else connection.disconnect
    try:
        records = (_of_duckdb if database.startswith("duckdb://") else _of_ibis)(connection, name, shown, selection)
    except BaseException:
        close()
        raise
    weakref.finalize(records.runner, close)  # copies of the records share the runner
    return records


def _of_ibis(connection: Any, name: str, shown: str, selection: Selection) -> SqlRecords:
    if connection.name == "postgres":
        source = find_table(connection, name, shown)
        return _of_postgres(import_ibis(shown), connection, source, f"{name!r} in {shown}", selection)
    names = guarded(UNLISTED.format(shown), connection.list_tables)
    schema, dot, bare = ("", "", name) if name in names else name.rpartition(".")
    where = {"database": schema} if dot else {}
    names = guarded(UNLISTED.format(shown), lambda: connection.list_tables(**where)) if dot else names
    if bare not in names:
        raise InvalidData(f"No table {name!r} in {shown}.{suggestion(bare, names)}")
    table = guarded(f"The columns of {name!r} in {shown} cannot be read.", lambda: connection.table(bare, **where))
    return open_table(table, selection)


def _of_postgres(
    ibis: Any, backend: Any, source: str, shown: str, selection: Selection, keep: Any = None
) -> SqlRecords:
    """Return the records of SQL that may follow FROM in PostgreSQL; ``keep`` lives as long as they do."""
    columns = PostgresColumns.of(backend, ibis, source, shown)
    wanted = selection.of(list(columns.kinds), "the table")

    def run_query(query: Any, _alive: Any = keep) -> Any:
        return backend.to_pyarrow(query)

    runner = QueryRunner(run_query, backend.to_pyarrow_batches)
    records = SqlRecords.over(columns.rows(wanted), runner, IbisLanguage(ibis, "postgres"), wanted, selection.most)
    return replace(records, group_labels=columns.labels.get(wanted.group or "", ()))


def _of_duckdb(connection: Any, name: str, shown: str, selection: Selection) -> SqlRecords:
    """Return the records of a DuckDB table by DuckDB's own connection: Ibis cannot list the tables of all versions."""
    query = (
        "SELECT table_schema, table_name, table_schema = 'main' FROM information_schema.tables "
        "WHERE table_catalog = current_database()"
    )
    every = guarded(UNLISTED.format(shown), lambda: connection.execute(query).fetchall())
    schema, bare = _one_table(every, name, shown)
    relation = guarded(
        f"The columns of {name!r} in {shown} cannot be read.",
        lambda: connection.query(f"FROM {_quoted(schema)}.{_quoted(bare)}"),
    )
    # relation.query would make a view, which DuckDB before 2.0 refuses in a file that is open for reading.
    return _of_relation(relation, connection.query, selection, database=schema, name=bare)


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
        return guarded(
            f"{str(path)!r} cannot be opened as a DuckDB database. Is it one, and is nobody writing to it?",
            lambda: duckdb.connect(str(path), read_only=True),
        )
    if scheme in ("postgres", "postgresql"):
        try:
            import psycopg
        except ImportError:
            raise MissingExtra.of(f"{shown} needs a driver.", "postgres") from None
        return guarded(
            f"The database {shown} cannot be reached. Is it running, and may you connect to it?",
            lambda: ibis.postgres.from_connection(psycopg.connect(database, client_encoding="utf8")),
        )
    return guarded(
        f"The database {shown} cannot be reached, or Ibis does not know addresses that start with {scheme}://.",
        lambda: ibis.connect(database),
    )


def import_ibis(what: str, extra: str = "sql") -> Any:
    """Return the module ibis; where it is not installed, raise an error that names the extra."""
    try:
        import ibis
        import pyarrow  # noqa: F401 - Ibis returns Arrow tables
    except ImportError:
        raise MissingExtra.of(f"{what} is read by way of Ibis.", extra) from None
    return ibis
