"""`make lowest`: that what is installed is the lowest that pyproject.toml allows, and that the package works with it.

The tests are those that meet the dependencies: data frames, files, databases, Spark, ledger, pictures, report, command
line and studio. Old versions warn about newer ones of what they use themselves, so a warning is no error here.

Every file of tests has a process of its own: a library that ends its process fails that file and no other, and a file
that hangs is ended. `python -m tests.lowest tests/pictures` tries a part.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import IO

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = [
    *("files", "sql", "postgres", "spark", "studio", "plot", "opendp", "accounting", "ledger", "bench", "docs", "dev"),
]
TESTS = [
    *("tests/engines", "tests/cli", "tests/studio/test_page.py", "tests/studio/test_runs.py"),
    *("tests/studio/test_server.py", "tests/studio/test_planning_requests.py", "tests/ledger/test_ledger.py"),
    *("tests/hypotheses", "tests/scores", "tests/pictures", "tests/report", "tests/test_readme.py"),
    "tests/test_import.py",
]
SECONDS = 1800
"""What one file may take on a busy machine before it counts as hung."""


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


def files(tests: Iterable[str]) -> list[str]:
    """The files of tests in these files and folders."""
    return [
        str(file.relative_to(ROOT))
        for path in map(ROOT.joinpath, tests)
        for file in (sorted(path.rglob("test_*.py")) if path.is_dir() else [path])
    ]


@dataclass
class Run:
    """One file of tests in a process of its own. It prints to a file: a pipe stays open as long as any child of it."""

    file: str
    output: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    text: str = ""
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        options = ["-q", "--tb=short", "-p", "no:cacheprovider", "-o", "filterwarnings=default"]
        # What tests start by name is of this environment, not of the one that `make` was typed in.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, self.file],
            cwd=ROOT,
            env=os.environ | {"PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            process_group=0,
        )

    def over(self) -> bool:
        """Whether it ended or takes too long."""
        return self.process.poll() is not None or time.monotonic() - self.began > SECONDS

    def end(self) -> None:
        """End the process, what it started and what it left behind, and keep what it printed."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        with self.output as printed:
            printed.seek(0)
            self.text = printed.read().decode(errors="replace").rstrip()

    def passed(self) -> bool:
        return self.process.returncode == 0

    def result(self) -> str:
        """pytest's last line, or how the process died."""
        code = self.process.returncode
        if code < 0:
            return f"died of signal {-code} ({signal.Signals(-code).name}) after {time.monotonic() - self.began:.0f} s"
        return self.text.rpartition("\n")[2].strip("= ") or f"exit code {code}"


def runs(waiting: list[str], at_once: int) -> Iterator[Run]:
    """Run the files, so many at once, and yield each when it is over. Nothing goes on when the loop is left."""
    going: list[Run] = []
    try:
        while waiting or going:
            while waiting and len(going) < at_once:
                going.append(Run(waiting.pop(0)))
            for run in [run for run in going if run.over()]:
                going.remove(run)
                run.end()
                yield run
            time.sleep(0.1)
    finally:
        for run in going:
            run.end()


def main(chosen: list[str]) -> int:
    higher = []
    for name, bound in sorted(bounds().items()):
        installed = Version(version(name))
        print(f"{name:18} >= {bound!s:10} installed {installed}")
        parts = max(2, len(bound.release))
        if installed.release[:parts] != bound.release[:parts]:
            higher.append(name)
    if higher:
        print(f"Not the lowest: {', '.join(higher)}. Write the lowest version that there is into pyproject.toml.")
        return 1
    # Tests send it to children, which inherit that it is ignored where a shell started us in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    began, failed, count = time.monotonic(), [], 0
    for run in runs(files(chosen or TESTS), os.cpu_count() or 1):
        count += 1
        print(f"{'green' if run.passed() else 'RED':6}{run.file:44} {run.result()}", flush=True)
        if not run.passed():
            failed.append(run.file)
            print(run.text, flush=True)
    minutes = (time.monotonic() - began) / 60
    print(f"{count - len(failed)} of {count} files of tests are green with the lowest versions, {minutes:.0f} minutes.")
    if failed:
        print(f"Red: {' '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
