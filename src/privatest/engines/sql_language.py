"""How Ibis says what expressions need, with the differences between its databases.

A score that is a clipped line has a form of its own for DuckDB: a CASE with three branches costs four times its
``sum(x)``, and ``least`` with ``greatest`` no less. Two absolute values clip without a branch: |c - L| - |c - H| =
2 clip(c, L, H) - (L + H). All of it in whole numbers, so exact.

PostgreSQL: what its columns are, and how they are read so that no value of any record can raise.

The server says what a column is: a domain is its base type, an enumeration is text. Text is compared byte by byte as it
lies there (``COLLATE "C"``), so nothing is converted: a byte that stands for no character, as 129 in WIN1252, converts
to nothing, and asking for it would raise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from privatest.engines.expression import clipped_line
from privatest.engines.keys import group_name, plain_key, plain_time
from privatest.engines.protocol import unfit
from privatest.engines.unheard import asked
from privatest.errors import InvalidData
from privatest.numbers import suggestion
from privatest.scores import DyadicCells, Score

__all__ = [
    "SUMMABLE",
    "FoldedLine",
    "IbisLanguage",
    "PostgresColumns",
    "find_table",
    "folded_line",
    "group_caller",
    "label_bytes",
]


# Sums of 2^41 such scores stay within 64 bits. Larger scores are counted, and summed here in Python's integers.
SUMMABLE = 1 << 22


# Databases whose arrays can be written as a text and indexed in constant time.
ARRAYS = {"duckdb": "[{}]", "postgres": "{{{}}}"}


@dataclass(frozen=True)
class IbisLanguage:
    """Expressions of Ibis for one database; ``dialect`` is the name of its back end."""

    ibis: Any
    dialect: str
    encoding: str = "UTF8"
    # The bytes of a label in that encoding; None where no text of the database can be this label.
    label_bytes: Callable[[str], bytes | None] = str.encode

    def number(self, value: float) -> Any:
        # By way of text: as a plain literal 0.1 would be a decimal, whose cast to a double some databases round.
        return self.ibis.literal(repr(float(value))).cast("float64")

    def whole(self, value: int) -> Any:
        return self.ibis.literal(value)

    def case(self, arms: Sequence[tuple[Any, Any]], otherwise: Any) -> Any:
        return self.ibis.cases(*arms, else_=otherwise)

    def floor(self, x: Any) -> Any:
        return x.floor().cast("int64")

    def absolute(self, x: Any) -> Any:
        return x.abs()

    def pick(self, table: Sequence[int], index: Any) -> Any:
        if self.dialect in ARRAYS:
            written = ARRAYS[self.dialect].format(",".join(map(str, table)))
            return self.ibis.literal(written).cast("array<int64>")[index]
        # Elsewhere: the entries side by side in one text, as digits above the smallest.
        least = min(table)
        width = len(str(max(table) - least))
        written = "".join(f"{entry - least:0{width}d}" for entry in table)
        return self.ibis.literal(written).substr(index * width, width).cast("int64") + least

    def any_of(self, text: Any, labels: Sequence[str]) -> Any:
        if self.dialect in ("duckdb", "postgres"):
            found = (self.label_bytes(label) for label in labels)
            written = self._constants([data for data in found if data is not None])
        else:
            written = [self.ibis.literal(label) for label in labels if "\0" not in label]
        return self.exact(text).isin(written) if written else self.ibis.literal(False)

    def _constants(self, texts: Sequence[bytes]) -> list[Any]:
        """What ``exact`` makes of texts of these bytes; in digits, so that no character of them reaches a parser."""
        builtin = self.ibis.udf.scalar.builtin
        if self.dialect == "duckdb":

            @builtin(signature=(("string",), "binary"))
            def unhex(digits):  # type: ignore[no-untyped-def]
                ...

            return [unhex(data.hex()) for data in texts]

        @builtin(signature=(("string", "string"), "binary"))
        def decode(digits, form):  # type: ignore[no-untyped-def]
            ...

        @builtin(signature=(("binary", "string"), "string"))
        def convert_from(data, encoding):  # type: ignore[no-untyped-def]
            ...

        return [convert_from(decode(data.hex(), "hex"), self.encoding) for data in texts]

    def finite(self, x: Any) -> Any:
        """Whether a number of DuckDB's is neither NaN nor infinite."""

        @self.ibis.udf.scalar.builtin(signature=(("float64",), "boolean"))
        def isfinite(x):  # type: ignore[no-untyped-def]
            ...

        return isfinite(x)

    def unless_odd(self, x: Any, odd: int, value: Any) -> Any:
        """The value of a double, ``odd`` where it is NaN or infinite, for a database that needs to be told first."""
        if self.dialect != "duckdb":
            return value
        # DuckDB leaves comparisons out that a Parquet file's minimum and maximum settle, but NaN is in neither.
        return self.case([(~self.finite(x), self.whole(odd))], value)

    def double(self, x: Any) -> Any:
        """A column of numbers as doubles; the cast cannot fail for any record."""
        kind = x.type()
        if kind.is_boolean():
            return x.cast("int32").cast("float64")
        if self.dialect == "postgres" and kind.is_decimal() and not _short(kind):
            return self._guarded(x)
        if self.dialect == "duckdb" and kind.is_decimal() and not kind.scale:
            # HUGEINT is of this type to Ibis. DuckDB casts it to a double near by, its text to the nearest one.
            near = x.cast("float64")
            small = near.abs() <= self.number(2.0**53)
            return self.case([(small, near)], x.cast("string").cast("float64"))
        return x if kind.is_float64() else x.cast("float64")

    def _guarded(self, x: Any) -> Any:
        """PostgreSQL's numeric is unbounded, and its cast to a double raises beyond a double's range."""
        # Half-way between the largest double and 2^1024, and half the smallest: from there on doubles end.
        over, under = Decimal(2**1024 - 2**970), _written(Fraction(1, 2**1075))
        far = self.ibis.literal(str(over)).cast("decimal")
        tiny = self.ibis.literal(f"{under:f}").cast("decimal")
        nothing = self.ibis.null().cast("float64")
        arms = [(x >= far, nothing), (x <= -far, nothing), ((x <= tiny) & (x >= -tiny), self.number(0.0))]
        return self.case(arms, x.cast("float64"))

    def key(self, x: Any) -> Any:
        """A unit as something that equal units share: 0.0 and -0.0 are one, NaN is none."""
        kind = x.type()
        if kind.is_floating():
            x = x.cast("float64") + self.number(0.0)
            return self.case([(x.isnan(), self.ibis.null().cast("float64"))], x)
        if kind.is_nested() or kind.is_json():
            raise unfit(f"units of type {kind}", "Units are numbers, texts or dates")
        return self.exact(x) if kind.is_string() else x

    def place(self, x: Any) -> Any:
        """An order as something that sorts the same everywhere: text by code points, NaN as NULL."""
        kind = x.type()
        if kind.is_string():
            return self.exact(x)
        if kind.is_boolean():
            return x.cast("int32")
        if not (kind.is_numeric() or kind.is_date() or kind.is_time() or kind.is_timestamp()):
            raise unfit(f"an order of type {kind}", "Order by numbers, dates, times or texts")
        return self.key(x)

    def exact(self, text: Any) -> Any:
        """A text as something that compares by code points: columns may have collations that ignore case.

        Those of PostgreSQL have lost theirs already, see ``postgres``.
        """
        if self.dialect == "duckdb":

            @self.ibis.udf.scalar.builtin(signature=(("string",), "binary"))
            def encode(text):  # type: ignore[no-untyped-def]
                ...

            return encode(text)
        return text


def group_caller(kind: Any) -> Callable[[str], str | None]:
    """What a group is called whose key, of this type of Ibis, the database writes as a text."""
    if kind.is_string():
        return str
    if kind.is_boolean():
        return lambda text: group_name(text.lower() in ("true", "t", "1"))
    if kind.is_date() or kind.is_time() or kind.is_timestamp():
        return plain_time
    if not kind.is_numeric():
        raise unfit(f"groups of type {kind}", "Groups are numbers, texts or dates")
    return lambda text: group_name(plain_key(text, loose=True))


def _short(kind: Any) -> bool:
    """Whether every number of a decimal type lies within the range of doubles."""
    return kind.precision is not None and kind.precision <= 300 and (kind.scale or 0) <= 300


def _written(number: Fraction) -> Decimal:
    return Context(prec=math.ceil(number.denominator.bit_length()) + 10).divide(number.numerator, number.denominator)


# Records far below count so much, those far above 1: one sum tells both numbers, up to 2^40 records each.
BELOW = 1 << 40


@dataclass(frozen=True)
class FoldedLine:
    """The sums to ask for, and how the total follows from them."""

    sums: dict[str, Any]
    score: Score
    first: int
    low: int
    high: int

    def total(self, count: int, finite: int, folded: int, far: int) -> int:
        """The total of ``count`` records: the finite ones, of which the far ones come in two counts, and odd ones."""
        assert self.score.line is not None
        sign, offset = self.score.line
        below, above = divmod(far, BELOW)
        near = finite - above - below
        clipped = (folded + near * (self.low + self.high)) // 2 + above * self.high + below * self.low
        return sign * (clipped - finite * self.first) + finite * offset + (count - finite) * self.score.odd_score


def folded_line(score: Score, column: Any, language: IbisLanguage) -> FoldedLine | None:
    """The sums for a score that is a line over the whole of the reals; None for other scores."""
    cells, ibis = score.cells, language.ibis
    if not isinstance(cells, DyadicCells) or score.line is None or min(-cells.low, cells.high) < math.inf:
        return None
    line = clipped_line(cells, score.table, score.line)
    low, high = cells.first + line.left, cells.first + line.right
    # The floor in a short integer, the difference in one of twice the length: that cannot overflow.
    short, long = ("int16", "int32") if max(abs(low), abs(high)) < 1 << 15 else ("int32", "int64")
    if max(abs(low), abs(high)) >= 1 << 31 or high - low >= SUMMABLE:
        return None

    @ibis.udf.scalar.builtin(signature=(("float64",), "float64"))
    def floor(x):  # type: ignore[no-untyped-def]
        ...

    x = language.double(column)
    # NULL where the floor is too large for the short integer, and for NULL, NaN and infinities. DuckDB may take it for
    # never NULL, from a file's minimum and maximum, which know no NaN: so the finite ones are counted by themselves.
    cell = floor(x * language.number(cells.factor)).try_cast(short).cast(long)
    folded = (cell - ibis.literal(low, type=long)).abs() - (cell - ibis.literal(high, type=long)).abs()
    far = cell.isnull() & language.finite(x)
    return FoldedLine(
        {
            "finite": language.finite(x).sum(),
            "folded": folded.sum().cast("int64"),
            "far": ibis.cases((far, ibis.ifelse(x > 0, 1, BELOW))).sum(),
        },
        score,
        cells.first,
        low,
        high,
    )


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
# Besides numbers, texts and times: what can be grouped by, and says whose a row is.
UNITS = ("uuid", "bytea", "inet", "cidr", "macaddr", "macaddr8", "timetz")
# Encodings whose bytes lie in the order of the code points.
ORDERED = ("UTF8", "LATIN1", "SQL_ASCII")
# Encodings of one byte for each character, by their names in Python.
SINGLE = {
    **{
        f"LATIN{number}": f"iso8859-{part}"
        for number, part in zip(range(2, 11), (2, 3, 4, 9, 10, 13, 14, 15, 16), strict=True)
    },
    **{f"ISO_8859_{part}": f"iso8859-{part}" for part in range(5, 9)},
    **{f"WIN{page}": f"cp{page}" for page in (866, 874, *range(1250, 1259))},
    "KOI8R": "koi8-r",
    "KOI8U": "koi8-u",
}
# What the server raises for a character that its encoding does not have.
NO_SUCH_CHARACTER = ("22P05", "22021")
UNREADABLE = "The columns of {} cannot be read. May you read it?"
TYPES = """
SELECT oid, CASE WHEN typtype = 'e' THEN 'enum'
                 WHEN typnamespace = 'pg_catalog'::regnamespace OR typname = 'citext' THEN typname::text
                 ELSE format_type(oid, NULL) END
FROM pg_catalog.pg_type WHERE oid = ANY(%s::oid[])
"""
TABLES = """
SELECT n.nspname::text, c.relname::text, pg_catalog.pg_table_is_visible(c.oid)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p')
"""


def find_table(backend: Any, name: str, shown: str) -> str:
    """The table of that name as SQL: one that is visible without its schema, or ``<schema>.<table>``.

    Names may have dots in them; views of both kinds, foreign and partitioned tables are tables.
    """

    def ask() -> list[tuple[str, str, bool]]:
        with backend.begin() as cursor:
            cursor.execute(TABLES)
            return list(cursor.fetchall())

    every = asked(f"The tables of {shown} cannot be listed. May you connect to it?", ask)
    found = [
        (schema, table) for schema, table, visible in every if name in (f"{schema}.{table}", table if visible else "")
    ]
    if not found:
        system = ("pg_catalog", "information_schema", "pg_toast")
        names = [table for schema, table, visible in every if visible and schema not in system]
        names += [f"{schema}.{table}" for schema, table, _ in every if "." in name and schema not in system]
        raise InvalidData(f"No table {name!r} in {shown}.{suggestion(name, names)}")
    if len(found) > 1:
        raise InvalidData(f"{len(found)} tables in {shown} can be meant by {name!r}. Make a view with another name.")
    return ".".join(map(_quoted, found[0]))


@dataclass(frozen=True)
class PostgresColumns:
    """The columns of a table or query, by what the server says they are."""

    backend: Any
    ibis: Any
    source: str
    kinds: dict[str, tuple[str, int | None, int | None]]
    encoding: str

    @classmethod
    def of(cls, backend: Any, ibis: Any, source: str, shown: str) -> PostgresColumns:
        """The columns of ``source``: SQL that may stand behind FROM. No row is read."""

        def ask() -> tuple[list[Any], dict[int, str]]:
            with backend.begin() as cursor:
                cursor.execute(f"SELECT * FROM {source} AS t LIMIT 0")
                columns = list(cursor.description or ())
                cursor.execute(TYPES, [[column.type_code for column in columns]])
                return columns, dict(cursor.fetchall())

        columns, names = asked(UNREADABLE.format(shown), ask)
        kinds = {column.name: (names[column.type_code], column.precision, column.scale) for column in columns}
        if len(kinds) < len(columns):
            raise InvalidData(f"Several columns of {shown} have one name. Rename all but one.")
        return cls(backend, ibis, source, kinds, server_encoding(backend))

    def rows(self, record: str, unit: str | None, order: str | None, group: str | None = None) -> Any:
        """An Ibis table of the columns r, u, o, g, each of a type that Ibis knows and in a form that cannot raise."""
        parts = {"r": self._record(record)}
        if unit is not None:
            parts["u"] = self._unit(unit)
        if order is not None:
            parts["o"] = self._order(order)
        if group is not None:
            what = f"groups of type {self.kinds[group][0]}"
            parts["g"] = self._key(group, self._text, what, "Groups are numbers, texts or dates")
        chosen = ", ".join(f"{sql} AS {name}" for name, (sql, _) in parts.items())
        schema = self.ibis.schema({name: kind for name, (_, kind) in parts.items()})
        return self.backend.sql(f"SELECT {chosen} FROM {self.source} AS t", schema=schema, dialect="postgres")

    def _record(self, name: str) -> tuple[str, Any]:
        kind = self.kinds[name][0]
        if kind in TEXTS:
            return self._text(name), "string"
        if kind != "numeric" and kind not in NUMBERS:
            raise unfit(f"type {kind}", column=name)
        return _quoted(name), self._number(name)

    def _unit(self, name: str) -> tuple[str, Any]:
        kind = self.kinds[name][0]
        if kind in UNITS:
            return _quoted(name), "binary"
        return self._key(name, self._text, f"units of type {kind}", "Units are numbers, texts or dates")

    def _order(self, name: str) -> tuple[str, Any]:
        kind = self.kinds[name][0]
        return self._key(name, self._sorted_text, f"an order of type {kind}", "Order by numbers, dates, times or texts")

    def keeps_text(self, name: str) -> bool:
        """Whether :meth:`rows` has this order as it is, and not as a text that merely sorts likewise."""
        return self.kinds[name][0] not in TEXTS or self.encoding in ORDERED

    def _key(self, name: str, text: Callable[[str], str], what: str, remedy: str) -> tuple[str, Any]:
        kind, column = self.kinds[name][0], _quoted(name)
        if kind in TEXTS:
            return text(name), "string"
        if kind == "numeric":  # its NaN equals itself here, and is missing everywhere else
            return f"NULLIF({column}, 'NaN'::numeric)", self._number(name)
        if kind in ("float4", "float8"):
            return f"NULLIF({column}::float8 + 0.0::float8, 'NaN'::float8)", "float64"
        if kind in NUMBERS or kind in TIMES:
            return column, {**NUMBERS, **TIMES}[kind]
        raise unfit(what, remedy)

    def _number(self, name: str) -> Any:
        kind, precision, scale = self.kinds[name]
        if kind != "numeric":
            return NUMBERS[kind]
        if precision is None or scale is None or scale < 0:
            return self.ibis.dtype("decimal")
        return self.ibis.dtype(f"decimal({max(precision, scale)}, {scale})")

    def _text(self, name: str) -> str:
        """A text byte by byte; of char(n), which is padded with blanks, without the blanks at its end."""
        return f'{_quoted(name)}::text COLLATE "C"'

    def _sorted_text(self, name: str) -> str:
        """A text whose bytes sort as the code points of its characters do."""
        if self.encoding in ORDERED:
            return self._text(name)
        if self.encoding not in SINGLE:
            raise unfit(
                f"an order of text in the encoding {self.encoding}, which does not sort by code points",
                "Order by a number, a date or a time, of a view that casts it if need be",
            )
        high = sorted(range(128, 256), key=lambda byte: _code_point(byte, SINGLE[self.encoding]))
        old, new = (self._constant(bytes(found)) for found in (high, range(128, 256)))
        return f'translate({_quoted(name)}::text, {old}, {new}) COLLATE "C"'

    def _constant(self, data: bytes) -> str:
        """A text of these bytes, without a conversion."""
        return f"convert_from(decode('{data.hex()}', 'hex'), '{self.encoding}')"


def label_bytes(backend: Any) -> tuple[str, Callable[[str], bytes | None]]:
    """The encoding of the database's texts, and the bytes of a label there: None if it has characters that none has."""
    encoding = server_encoding(backend)

    @lru_cache(maxsize=1 << 16)
    def of(label: str) -> bytes | None:
        if "\0" in label:  # which no text of PostgreSQL has
            return None
        data = label.encode()
        if encoding in ("UTF8", "SQL_ASCII") or data.isascii():
            return data

        def ask() -> bytes | None:
            try:
                with backend.begin() as cursor:
                    cursor.execute("SELECT convert_to(convert_from(%s, 'UTF8'), %s)", [data, encoding])
                    return bytes(cursor.fetchone()[0])
            except Exception as error:
                if getattr(error, "sqlstate", None) in NO_SUCH_CHARACTER:
                    return None
                raise

        return asked("The database could not say how it writes a label.", ask)

    return encoding, of


def server_encoding(backend: Any) -> str:
    """The encoding of the texts in the database, by PostgreSQL's name."""
    return str(backend.con.info.parameter_status("server_encoding"))


def _code_point(byte: int, codec: str) -> int:
    """Which character a byte is; after all others where it is none."""
    try:
        return ord(bytes([byte]).decode(codec))
    except UnicodeDecodeError:
        return 0x10FF00 + byte


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
