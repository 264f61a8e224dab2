"""`make lowest`: that what is installed is the lowest that pyproject.toml allows, and that the package works with it.

The tests are those that meet the dependencies: data frames, files, databases, Spark, ledger, pictures, report, command
line and studio. Old versions warn about newer ones of what they use themselves, so a warning is no error here.
"""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ["files", "sql", "postgres", "spark", "studio", "plot", "opendp", "ledger", "bench", "dev"]
TESTS = [
    *("tests/test_import.py", "tests/test_readme.py", "tests/scores", "tests/hypotheses", "tests/engines"),
    *("tests/pictures", "tests/report", "tests/ledger/test_ledger.py", "tests/cli", "tests/studio/test_answering.py"),
    *("tests/studio/test_runs.py", "tests/studio/test_server.py", "tests/studio/test_page.py"),
]


def bounds() -> dict[str, Version]:
    """The lower bound of every direct dependency; the larger one where two extras differ."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    written = [
        *project["dependencies"],
        *(text for extra in EXTRAS for text in project["optional-dependencies"][extra]),
    ]
    found: dict[str, Version] = {}
    for requirement in map(Requirement, written):
        for bound in requirement.specifier:
            assert bound.operator == ">=", f"{requirement} is no lower bound"
            found[requirement.name] = max(found.get(requirement.name, Version("0")), Version(bound.version))
    return found


def main() -> int:
    higher = []
    for name, bound in sorted(bounds().items()):
        installed = Version(version(name))
        print(f"{name:18} >= {bound!s:10} installed {installed}")
        if installed.release[:2] != bound.release[:2] and len(bound.release) > 1:
            higher.append(name)
    if higher:
        print(f"Not the lowest: {', '.join(higher)}. Write the lowest version that there is into pyproject.toml.")
        return 1
    return int(
        pytest.main(
            ["-q", "-n", "auto", "--dist=loadgroup", "--max-worker-restart=0", "-o", "filterwarnings=default", *TESTS]
        )
    )


if __name__ == "__main__":
    sys.exit(main())
