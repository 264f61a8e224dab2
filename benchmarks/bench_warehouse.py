"""Databases: `total` pushed down to DuckDB and to Spark, over their own `sum(x)` of the same Parquet file.

    python benchmarks/bench_warehouse.py --rows 50000000

The data are written to a temporary folder first and read from the page cache. Ratios are of medians, in one run.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench_core import Comparison, side_by_side
from bench_engines import write_numbers

import privatest as pt
from privatest import engines
from privatest.scores import Score


def scores(rows: int) -> dict[str, Score]:
    """One score of each shape that a database computes in another way."""
    pairs = {
        "ratio linear in x": ("normal(0, 1)", "normal(1, 1)"),
        "ratio curved": ("normal(0, 1)", "normal(0, 2)"),
        "heavy tails": ("cauchy(0, 1)", "cauchy(1, 1)"),
    }
    return {name: pt.design(*pair, epsilon=0.5, n=rows).score for name, pair in pairs.items()}


def with_duckdb(rows: int, repeats: int, path: Path) -> Comparison:
    """A relation over the file, and DuckDB's own sum."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads = {os.cpu_count() or 1}")
    relation = connection.read_parquet(str(path))
    contestants: dict[str, Callable[[], object]] = {
        "DuckDB: SELECT sum(x)": lambda: connection.execute(f"SELECT sum(x) FROM '{path}'").fetchall()
    }
    for name, score in scores(rows).items():
        contestants[f"total in DuckDB, {name}"] = lambda score=score: engines.total(score, relation, column="x")  # type: ignore[misc]
    return Comparison("DuckDB", rows, side_by_side(contestants, repeats))


def with_spark(rows: int, repeats: int, path: Path) -> Comparison:
    """A DataFrame over the file, and Spark's own sum, on all cores of this machine."""
    from pyspark.sql import SparkSession, functions

    builder = SparkSession.builder.master("local[*]").config("spark.driver.memory", "2g")
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    session = builder.config("spark.log.level", "ERROR").getOrCreate()
    frame = session.read.parquet(str(path))
    contestants: dict[str, Callable[[], object]] = {"Spark: sum(x)": lambda: frame.agg(functions.sum("x")).collect()}
    for name, score in scores(rows).items():
        contestants[f"total in Spark, {name}"] = lambda score=score: engines.total(score, frame, column="x")  # type: ignore[misc]
    found = Comparison("Spark", rows, side_by_side(contestants, repeats))
    session.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "numbers.parquet"
        write_numbers(path, arguments.rows)
        for compare in (with_duckdb, with_spark):
            found = compare(arguments.rows, arguments.repeats, path)
            print(f"{found.title}: {found.rows:,} rows")
            for what, seconds in found.seconds.items():
                print(f"  {what:40} {seconds:8.3f} s   ratio {found.ratios[what]:.2f}", flush=True)


if __name__ == "__main__":
    main()
