"""Tables in databases: DuckDB, PostgreSQL and whatever else Ibis speaks to. Opening one looks at its structure only."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from privatest._validate import suggestion
from privatest.addresses import unclear_login, without_secrets
from privatest.engines.fit import unfit
from privatest.engines.names import choose
from privatest.engines.postgres import PostgresColumns, find_table, label_bytes
from privatest.engines.sql_errors import asked
from privatest.engines.sql_language import IbisLanguage
from privatest.engines.sql_records import Asker, SqlRecords
from privatest.errors import InvalidData, MissingExtra

__all__ = ["open_address", "open_relation", "open_table"]

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
    words = {"column": column, "unit": unit, "order": order}
    if backend.name == "postgres":
        names = [name for name in choose(list(table.columns), column, unit, order, "the table") if name is not None]
        table = table.select(*dict.fromkeys(names))
        for name in names:
            kind = table[name].type()
            if kind.is_geospatial() or kind.is_json():  # which Ibis writes as functions of them
                raise unfit(f"type {kind}")
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
) -> SqlRecords:
    """The records of a DuckDB relation, summed by the connection that it comes from."""
    ibis = _import_ibis("A DuckDB relation")
    from ibis.backends.sql.datatypes import DuckDBType

    types = (DuckDBType.from_string(str(kind)) for kind in relation.types)
    table = ibis.table(ibis.schema(dict(zip(relation.columns, types, strict=True))), name=NAME)

    def ask(query: Any) -> Any:
        return relation.query(NAME, str(ibis.to_sql(query, dialect="duckdb")))

    def stream(query: Any) -> Iterator[Any]:
        found = ask(query)
        reader = found.to_arrow_reader() if hasattr(found, "to_arrow_reader") else found.fetch_record_batch()
        yield from reader

    def whole(query: Any) -> Any:
        found = ask(query)
        return found.to_arrow_table() if hasattr(found, "to_arrow_table") else found.fetch_arrow_table()

    words = {"column": column, "unit": unit, "order": order}
    return SqlRecords.of(table, Asker(whole, stream), IbisLanguage(ibis, "duckdb"), most=max_rows_per_unit, **words)


def open_address(
    address: str,
    *,
    column: str | None = None,
    unit: str | None = None,
    max_rows_per_unit: int | None = None,
    order: str | None = None,
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
        words = {"column": column, "unit": unit, "max_rows_per_unit": max_rows_per_unit, "order": order}
        records = (_of_duckdb if database.startswith("duckdb://") else _of_ibis)(connection, name, shown, words)
    except BaseException:
        close()
        raise
    weakref.finalize(records, close)
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
    column, unit, order = (words[word] for word in ("column", "unit", "order"))
    record, unit, order = choose(list(columns.kinds), column, unit, order, "the table")

    def ask(query: Any, _alive: Any = keep) -> Any:
        return backend.to_pyarrow(query)

    language = IbisLanguage(ibis, "postgres", *label_bytes(backend))
    asker = Asker(ask, backend.to_pyarrow_batches)
    return SqlRecords.over(columns.rows(record, unit, order), asker, language, unit=unit, most=most, order=order)


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
    return open_relation(relation, **words)


def _connect(ibis: Any, database: str, shown: str) -> Any:
    scheme = database.partition("://")[0]
    if scheme == "duckdb":
        try:
            import duckdb
        except ImportError:
            raise MissingExtra(f"{shown} needs DuckDB. Install it: pip install privatest[sql]") from None
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
            raise MissingExtra(f"{shown} needs a driver. Install it: pip install privatest[postgres]") from None
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
        raise MissingExtra(f"{what} is read by way of Ibis. Install it: pip install privatest[sql]") from None
    return ibis
