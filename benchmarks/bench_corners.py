"""Corners that used to be slow, before and after, in one run: seconds of each and their ratio.

    python benchmarks/bench_corners.py                 # before = the commit below
    python benchmarks/bench_corners.py --before REV --only compare curve

Each corner runs in a process of its own, once with the sources of the commit and once with these, one after the other.
Seconds are those of the processor, so that a busy machine disturbs both alike; "cold" ones count the import of the
package. What the corner computes is compared: it must be the same.
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

BEFORE = "49f3fdf"
ROOT = Path(__file__).resolve().parents[1]
LONGEST = 900

CORNERS = {
    "compare poisson(100)/poisson(101), epsilon 0.1": (
        "compare",
        "f = pt.compare('poisson(100)', 'poisson(101)', epsilon=0.1); answer = [(r.test, r.n) for r in f.rows]",
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
    ("poisson(3)", "poisson(4)"),
    ("normal(0,1)", "normal(1,1)"),
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

PROGRAM = """
import json, sys, time
if {cold}:
    start = time.process_time()
import privatest as pt
if not {cold}:
    pt.design, pt.plan, pt.compare
    start = time.process_time()
{code}
print(json.dumps([time.process_time() - start, answer]))
"""


def run(source: Path, kind: str, code: str) -> tuple[float, object] | None:
    """Seconds and the answer with these sources; None where it takes too long."""
    program = PROGRAM.format(cold=kind == "cold", code=code)
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
    seconds, answer = json.loads(done.stdout)
    return seconds, answer


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
    parser.add_argument("--only", nargs="*", help="kinds of corners: compare, curve, rows, small, cold")
    given = parser.parse_args()
    print(f"{'seconds of the processor':58} {'before':>8} {'after':>8} {'ratio':>7}  same answer")
    with tempfile.TemporaryDirectory() as folder:
        before = sources_of(given.before, folder)
        for source in (before, ROOT / "src"):  # compiled files
            run(source, "cold", "f = pt.plan('poisson(3)', 'poisson(4)', epsilon=1); answer = 0")
        for name, (kind, code) in CORNERS.items():
            if given.only and kind not in given.only:
                continue
            old, new = run(before, kind, code), run(ROOT / "src", kind, code)
            first = f"> {LONGEST}" if old is None else f"{old[0]:.2f}"
            second = f"> {LONGEST}" if new is None else f"{new[0]:.2f}"
            ratio = "" if old is None or new is None else f"{old[0] / new[0]:.1f}"
            same = "" if old is None or new is None else "yes" if old[1] == new[1] else f"NO: {old[1]} {new[1]}"
            print(f"{name:58} {first:>8} {second:>8} {ratio:>7}  {same}", flush=True)


if __name__ == "__main__":
    main()
