"""`make bench`: run every comparison, print the ratios, save them to output/bench.json."""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import scipy
from bench_cli import cold_starts
from bench_core import Comparison, heavy_tails, importing, normal_in_memory
from bench_engines import parquet_file
from bench_power import error_rates, sample_sizes
from rich.console import Console
from rich.table import Table

import privatest as pt

OUTPUT = Path(__file__).resolve().parents[1] / "output"


def comparisons(rows: int, repeats: int) -> Iterator[Comparison]:
    yield normal_in_memory(rows, repeats)
    yield heavy_tails(max(rows // 10, 1), repeats)  # scipy's densities are slow and need several copies
    yield importing(repeats)
    yield cold_starts(repeats)
    yield error_rates(repeats)
    yield sample_sizes(repeats)
    with tempfile.TemporaryDirectory() as folder:
        yield parquet_file(rows, repeats, Path(folder))


def shown(comparison: Comparison) -> Table:
    rows = f": {comparison.rows:,} rows" if comparison.rows else ""
    table = Table(title=comparison.title + rows, title_justify="left")
    table.add_column("what", min_width=40)
    table.add_column("seconds", justify="right")
    table.add_column("ratio", justify="right")
    for name, seconds in comparison.seconds.items():
        table.add_row(name, f"{seconds:.4f}", f"{comparison.ratios[name]:.2f}")
    return table


def environment() -> dict[str, object]:
    """What a reader needs to judge the numbers."""
    return {
        "privatest": pt.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "cores": os.cpu_count(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000, help="rows of the largest data set")
    parser.add_argument("--repeats", type=int, default=5, help="rounds, of which medians are taken")
    arguments = parser.parse_args()
    console = Console(width=100)
    done = []
    for comparison in comparisons(arguments.rows, arguments.repeats):
        console.print(shown(comparison))
        console.print("\n".join([*comparison.notes, ""]), markup=False, highlight=False)
        done.append({**asdict(comparison), "ratios": comparison.ratios})
    OUTPUT.mkdir(exist_ok=True)
    target = OUTPUT / "bench.json"
    target.write_text(json.dumps({"environment": environment(), "comparisons": done}, indent=1) + "\n")
    console.print(f"Saved: {target.relative_to(OUTPUT.parent)}")


if __name__ == "__main__":
    main()
