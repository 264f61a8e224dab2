"""Importing the package is quick and brings in nothing that only some users need."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HEAVY = [
    "pandas",
    "sqlalchemy",
    "psycopg",
    "polars",
    "pyarrow",
    "matplotlib",
    "duckdb",
    "ibis",
    "pyspark",
    "fastapi",
    "plotly",
    "opendp",
]


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    source = str(Path(__file__).resolve().parents[1] / "src")
    environment = {**os.environ, "PYTHONPATH": source}
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment)


def test_import_brings_in_nothing_heavy() -> None:
    code = f"import sys, privatest; print([name for name in {HEAVY} if name in sys.modules])"
    assert python("-c", code).stdout.strip() == "[]"


@pytest.mark.parametrize("statement", ["import privatest", "from privatest import design"])
def test_import_time(statement: str, show: Callable[[str], None]) -> None:
    python("-c", statement)  # compiled files and disk cache warm
    lines = python("-X", "importtime", "-c", statement).stderr.splitlines()
    # Outermost imports only (one blank before the name): their times include what they import in turn.
    ours = [line for line in lines if re.fullmatch(r"import time:\s+\d+ \|\s+\d+ \| privatest\S*", line)]
    milliseconds = sum(int(line.split("|")[1]) for line in ours) / 1000
    assert ours
    # Shown, not asserted: a wall-clock bar fails on a busy machine for reasons that are not the package's.
    show(f"{statement!r} takes {milliseconds:.0f} ms")


def test_public_names_exist_and_are_documented() -> None:
    code = (
        "import privatest as pt\n"
        "names = [name for name in pt.__all__ if not name.startswith('_')]\n"
        "assert len(names) == len(set(names)) and names, names\n"
        "print([name for name in names if not (getattr(pt, name).__doc__ or '').strip()])\n"
    )
    assert python("-c", code).stdout.strip() == "[]"
