"""Files: `total` on Parquet over DuckDB's `SELECT sum(x)` of the same file, and the memory it takes as rows grow.

    python benchmarks/bench_engines.py --rows 50000000

The data are written to a temporary folder first. Ten times the rows are ten hard links to the same file: the engine
reads every row of each. Memory is the peak resident size of a process of its own, the interpreter and libraries in it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from bench_core import Comparison, side_by_side

import privatest as pt
from privatest import engines

GROUP = 1 << 20
# The kernel's own peak where it tells: what getrusage says starts at the size of the process that started this one.
PEAK = """
import resource, sys
from pathlib import Path
from privatest import engines
from privatest.decision import PrivateTest
test = PrivateTest.from_json(open(sys.argv[2]).read())
def peak():
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) // 1024
before = peak()
engines.total(test.score, sys.argv[1], column="x")
print(before, peak())
"""


def write_numbers(path: Path, rows: int, row_group: int = GROUP) -> None:
    """Normal numbers and a column that no test reads, as pyarrow writes them by default."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, rows, row_group):
            size = min(row_group, rows - first)
            batch = pa.table({"id": np.arange(first, first + size), "x": rng.normal(0.3, 1, size)})
            writer.write_table(batch, row_group_size=row_group)


def parquet_file(rows: int, repeats: int, folder: Path) -> Comparison:
    """The file engine, and DuckDB's own sum on the same file."""
    import duckdb

    path = folder / "numbers.parquet"
    write_numbers(path, rows)
    line = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=0.5, n=rows).score
    curve = pt.design("normal(0, 1)", "normal(0, 2)", epsilon=0.5, n=rows).score
    connection = duckdb.connect()
    connection.execute(f"SET threads = {os.cpu_count() or 1}")
    contestants: dict[str, Callable[[], object]] = {
        "DuckDB: SELECT sum(x)": lambda: connection.execute(f"SELECT sum(x) FROM '{path}'").fetchall(),
        "total of a file, ratio linear in x": lambda: engines.total(line, path, column="x"),
        "total of a file, ratio curved": lambda: engines.total(curve, path, column="x"),
    }
    notes = [f"{path.stat().st_size / 1e6:.0f} MB, row groups of {GROUP:,} rows, read from the page cache"]
    return Comparison("Parquet file", rows, side_by_side(contestants, repeats), notes)


def peaks(rows: int, folder: Path) -> dict[str, tuple[int, int]]:
    """(before, peak) in MB of the file engine: on one file, on ten times the rows, on one huge row group."""
    path, many = folder / "numbers.parquet", folder / "many"
    if not path.exists():
        write_numbers(path, rows)
    many.mkdir(exist_ok=True)
    for number in range(10):
        os.link(path, many / f"{number}.parquet")
    huge = folder / "huge.parquet"
    write_numbers(huge, rows // 5, row_group=rows // 5)
    test = folder / "test.json"
    test.write_text(pt.design("normal(0, 1)", "normal(1, 1)", epsilon=0.5, n=rows).to_json())
    found = {}
    for name, source in (
        (f"{rows:,} rows", path),
        (f"{10 * rows:,} rows, ten files", many),
        (f"{rows // 5:,} rows in one row group", huge),
    ):
        command = [sys.executable, "-c", PEAK, str(source), str(test)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        found[name] = (int(said[0]), int(said[1]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = parquet_file(arguments.rows, arguments.repeats, folder)
        print(f"{found.title}: {found.rows:,} rows ({'; '.join(found.notes)})")
        for what, seconds in found.seconds.items():
            print(f"  {what:40} {seconds:8.3f} s   ratio {found.ratios[what]:.2f}")
        print("Peak memory of `total` (before it, at its peak):")
        for what, (before, peak) in peaks(arguments.rows, folder).items():
            print(f"  {what:40} {before:5d} MB {peak:5d} MB")


if __name__ == "__main__":
    main()
