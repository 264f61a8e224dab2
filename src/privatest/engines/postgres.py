"""PostgreSQL: what its columns are, and how they are read so that no value of any record can raise.

The server says what a column is: a domain is its base type, an enumeration is text. Text is compared byte by byte as it
lies there (``COLLATE "C"``), so nothing is converted: a byte that stands for no character, as 129 in WIN1252, converts
to nothing, and asking for it would raise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from privatest.engines.protocol import unfit
from privatest.engines.sql_language import asked
from privatest.errors import InvalidData
from privatest.numbers import suggestion

__all__ = ["PostgresColumns", "find_table", "label_bytes"]

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

    def rows(self, record: str, unit: str | None, order: str | None) -> Any:
        """An Ibis table of the columns r, u and o, each of a type that Ibis knows and in a form that cannot raise."""
        parts = {"r": self._record(record)}
        if unit is not None:
            parts["u"] = self._unit(unit)
        if order is not None:
            parts["o"] = self._order(order)
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
