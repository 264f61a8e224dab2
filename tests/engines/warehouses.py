"""Databases and a cluster for tests, started when first asked for: real ones, in temporary folders of their own."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import tempfile
import warnings
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import ibis
import psycopg
import pyarrow as pa
import pyarrow.parquet
import pytest

from tests import needs
from tests.engines.openers import Columns, arrow_table
from tests.ledger import server as postgresql

__all__ = ["SPARK", "WAREHOUSES", "new_table", "postgres", "spark"]

# Tests with Spark in one process of pytest-xdist (--dist loadgroup), so that one JVM is started; PySpark itself warns
# of the version of pandas and leaves sockets open.
SPARK = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

_numbers = itertools.count()
_connections: list[Any] = []
"""A relation of an old DuckDB does not keep its connection open."""


def _table(columns: Columns | pa.Table) -> pa.Table:
    return columns if isinstance(columns, pa.Table) else arrow_table(columns)


def _parquet(columns: Columns | pa.Table, folder: Path) -> Path:
    path = folder / f"warehouse-{next(_numbers)}.parquet"
    pa.parquet.write_table(_table(columns), path, row_group_size=97)
    return path


def duckdb_relation(columns: Columns | pa.Table, folder: Path) -> Any:
    """A relation of a connection of its own, over a Parquet file."""
    _connections.append(duckdb.connect())
    return _connections[-1].read_parquet(str(_parquet(columns, folder)))


def ibis_table(columns: Columns | pa.Table, folder: Path) -> Any:
    """An Ibis table of a DuckDB connection."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ibis 12 calls what DuckDB 2 warns of
        return ibis.duckdb.connect().read_parquet(str(_parquet(columns, folder)), table_name="records")


def duckdb_address(columns: Columns | pa.Table, folder: Path) -> str:
    """The address of a table in a DuckDB file."""
    path, data = folder / f"warehouse-{next(_numbers)}.db", _parquet(columns, folder)
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE records AS FROM read_parquet('{data}')")
    return f"duckdb:///{path}::records"


@cache
def postgres() -> postgresql.Server:
    """One PostgreSQL server for all tests of this process."""
    if needs.required() and postgresql.binaries() is None and os.getuid() == 0:
        postgresql.install()
    programs = postgresql.binaries()
    if programs is None:
        needs.missing(postgresql.HOW_TO_GET_IT)
        raise AssertionError
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(postgresql.serving(programs))


def new_table(definition: str, *rows: tuple[Any, ...]) -> str:
    """The address of a new PostgreSQL table with these columns and rows."""
    url, name = postgres().url(), f"records_{next(_numbers)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} ({definition})".encode())
        with connection.cursor().copy(f"COPY {name} FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row(row)
    return f"{url}::{name}"


def postgres_address(columns: Columns | pa.Table, _folder: Path) -> str:
    table = _table(columns)
    types = {pa.string(): "text", pa.int64(): "bigint", pa.float64(): "double precision"}
    definition = ", ".join(f'"{entry.name}" {types[entry.type]}' for entry in table.schema)
    return new_table(definition, *zip(*(column.to_pylist() for column in table.columns), strict=True))


SHORT_LIVED = " ".join(
    [
        "-XX:TieredStopAtLevel=1",
        "-XX:ReservedCodeCacheSize=256m",
        "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
        "-XX:+UseSerialGC",
    ]
)
"""For a JVM that serves tests: compile quickly rather than well, keep all of it, trust Spark's classes to be whole
(together a quarter of its processor time), and collect garbage in one thread."""


def warehouse() -> str:
    """A folder for Spark's own tables, which else lies in the current one; it goes when this process ends."""
    folder = tempfile.mkdtemp(prefix="spark-warehouse-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def spark() -> Any:
    """One Spark session for all tests of this process."""
    if shutil.which("java") is None:
        needs.missing("Java is not installed. Get it: apt-get update && apt-get install -y default-jre-headless")
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas' age, of open sockets
        from pyspark.sql import SparkSession

        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "3",
            "spark.sql.adaptive.enabled": "false",  # adapting makes several jobs of one
            "spark.driver.memory": "1g",
            "spark.log.level": "ERROR",
            "spark.driver.extraJavaOptions": SHORT_LIVED,
            "spark.sql.warehouse.dir": warehouse(),
        }
        builder = SparkSession.builder.master("local[1]")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    atexit.register(session.stop)
    return session


def spark_frame(columns: Columns | pa.Table, folder: Path) -> Any:
    """A DataFrame over a Parquet file."""
    return spark().read.parquet(str(_parquet(columns, folder)))


WAREHOUSES = {
    "DuckDB": duckdb_relation,
    "DuckDB through Ibis": ibis_table,
    "DuckDB file": duckdb_address,
    "PostgreSQL": postgres_address,
    "Spark": spark_frame,
}
