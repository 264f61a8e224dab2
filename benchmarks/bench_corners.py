"""Corners that used to be slow, before and after, in one run: seconds of each and their ratio.

    python benchmarks/bench_corners.py                 # before = the commit below
    python benchmarks/bench_corners.py --before REV --only compare curve records

Each corner runs in a process of its own, once with the sources of the commit and once with these, one after the other.
Seconds are those of the processor, so that a busy machine disturbs both alike, and do not count the start of the
interpreter; "cold" ones count the import of the package, which is printed too, and beside their ratio that to the plan
of the first pair. What the corner computes is compared: it must be the same (of comparisons, in all rows of both).
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

BEFORE = "49f3fdf"
ROOT = Path(__file__).resolve().parents[1]
LONGEST = 900

CORNERS = {
    "compare poisson(100)/poisson(101), epsilon 0.1": (
        "compare",
        "f = pt.compare('poisson(100)', 'poisson(101)', epsilon=0.1); answer = {r.test: r.n for r in f.rows}",
    ),
    "curve normal(0,1)/normal(0.2,1), epsilon 0.5, 200 n": (
        "curve",
        "f = pt.power_curve('normal(0,1)', 'normal(0.2,1)', epsilon=0.5, n=range(10, 2010, 10)); "
        "answer = [round(a, 4) for a in f.advantage[::20]]",
    ),
    "plan normal(0,1)/normal(1,1), 100 rows per unit": (
        "rows",
        "f = pt.plan('normal(0,1)', 'normal(1,1)', epsilon=1, max_rows_per_unit=100); answer = [f.n, f.lower_bound]",
    ),
    "plan normal(0,1)/normal(1,1), 1000 rows per unit": (
        "rows",
        "f = pt.plan('normal(0,1)', 'normal(1,1)', epsilon=1, max_rows_per_unit=1000); answer = [f.n, f.lower_bound]",
    ),
    "sample size normal(0,1)/normal(1,1), epsilon 0.01": (
        "small",
        "answer = pt.sample_size('normal(0,1)', 'normal(1,1)', epsilon=0.01)",
    ),
    "sample size poisson(3)/poisson(4), epsilon 0.01": (
        "small",
        "answer = pt.sample_size('poisson(3)', 'poisson(4)', epsilon=0.01)",
    ),
    "sample size poisson(100)/poisson(101), epsilon 0.01": (
        "small",
        "answer = pt.sample_size('poisson(100)', 'poisson(101)', epsilon=0.01)",
    ),
}

PAIRS = [
    ("normal(0,1)", "normal(1,1)"),
    ("poisson(3)", "poisson(4)"),
    ("normal(0,1)", "normal(0.2,1)"),
    ("bernoulli(0.6)", "bernoulli(0.4)"),
    ("poisson(100)", "poisson(101)"),
    ("exponential(1)", "exponential(2)"),
    ("laplace(0,1)", "laplace(1,1)"),
    ("gamma(2)", "gamma(2.5)"),
    ("binomial(10,0.4)", "binomial(10,0.5)"),
    ("t(3)", "normal(0,1)"),
]
for null, alternative in PAIRS:
    CORNERS[f"cold plan {null}/{alternative}, epsilon 1"] = (
        "cold",
        f"f = pt.plan({null!r}, {alternative!r}, epsilon=1); answer = [f.n, f.lower_bound]",
    )

# What was quick before must be so after: five million records, from where they lie; the clock starts when they do.
RECORDS = """
import os, tempfile
import numpy as np
from privatest import engines
x, where = np.random.default_rng(0).normal(size=5_000_000), {}
test = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=len(x), clamp=(-1, 1))
"""
FILE = """
import pyarrow, pyarrow.parquet
place, where = os.path.join(tempfile.mkdtemp(), "x.parquet"), {"column": "x"}
pyarrow.parquet.write_table(pyarrow.table({"x": x}), place)
x = place
"""
TABLE = """
import ibis
x = ibis.duckdb.connect().read_parquet(place, table_name="t")
"""
TOTAL = """
engines.total(test.score, x, **where)
begun = time.process_time()
answer = [engines.total(test.score, x, **where) for _ in range(10)][0]
"""
for place, code in {
    "in memory": RECORDS,
    "of a Parquet file": RECORDS + FILE,
    "of a table of DuckDB's": RECORDS + FILE + TABLE,
}.items():
    CORNERS[f"ten totals of five million records {place}"] = "records", code + TOTAL

PROGRAM = """
import json, sys, time
start = time.process_time()
import privatest as pt
pt.design, pt.plan, pt.compare, pt.power_curve
begun = time.process_time()
{code}
end = time.process_time()
print(json.dumps([end - begun, begun - start, answer]))
"""


Run = tuple[float, float, Any]
"""Seconds of the corner, seconds of the imports before it, and the answer."""


def run(source: Path, code: str) -> Run | None:
    """One corner with these sources; None where it takes too long."""
    program = PROGRAM.format(code=code)
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": ""}
    try:
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
            timeout=LONGEST,
        )
    except subprocess.TimeoutExpired:
        return None
    seconds, imports, answer = json.loads(done.stdout)
    return seconds, imports, answer


def same(old: Any, new: Any) -> str:
    """Whether the answers are the same: of tables, in the rows that both have."""
    if isinstance(old, dict):
        shared = old.keys() & new.keys()
        added = f", beside {', '.join(sorted(new.keys() - shared))}" if new.keys() - shared else ""
        return f"yes{added}" if shared == old.keys() and all(old[k] == new[k] for k in shared) else f"NO: {old} {new}"
    return "yes" if old == new else f"NO: {old} {new}"


def sources_of(revision: str, folder: str) -> Path:
    """The sources of a commit, unpacked."""
    packed = subprocess.run(["git", "archive", revision, "src"], capture_output=True, check=True, cwd=ROOT).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return Path(folder) / "src"


def main() -> None:
    """Print every corner."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", default=BEFORE)
    parser.add_argument("--only", nargs="*", help="kinds of corners: compare, curve, rows, small, cold, records")
    given = parser.parse_args()
    print(f"{'seconds of the processor':58} {'before':>8} {'after':>8} {'ratio':>7} {'imports':>8}  same answer")
    normal: Run | None = None
    with tempfile.TemporaryDirectory() as folder:
        before = sources_of(given.before, folder)
        for source in (before, ROOT / "src"):  # compiled files
            run(source, "f = pt.plan('poisson(3)', 'poisson(4)', epsilon=1); answer = 0")
        for name, (kind, code) in CORNERS.items():
            if given.only and kind not in given.only:
                continue
            old, new = run(before, code), run(ROOT / "src", code)
            if new is None:
                print(f"{name:58} {'':8} > {LONGEST}", flush=True)
                continue
            imports = kind == "cold"  # these count
            after = new[0] + imports * new[1]
            first, ratio, told = f"> {LONGEST}", "", ""
            if old is not None:
                seconds = old[0] + imports * old[1]
                first, ratio, told = f"{seconds:.2f}", f"{seconds / after:.1f}", same(old[2], new[2])
            if imports:
                normal = normal or new
                told += f"; {after / sum(normal[:2]):.2f} of the first, {new[0] / normal[0]:.2f} without imports"
            print(f"{name:58} {first:>8} {after:>8.2f} {ratio:>7} {new[1]:>8.2f}  {told}", flush=True)


if __name__ == "__main__":
    main()
