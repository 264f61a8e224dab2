"""Fixtures of every test: numbers worth reading in the summary, and documents whose examples run."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parents[1]

# No deadline: on a busy machine it fails tests for reasons that have nothing to do with them.
hypothesis.settings.register_profile("privatest", deadline=None, print_blob=True)
hypothesis.settings.load_profile("privatest")

# A block marked python and, when nothing but blank lines stands between, the block marked text after it.
EXAMPLE = re.compile(r"^```python\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
FIGURE = "figure"


@pytest.fixture
def root() -> Path:
    """The top folder of the project."""
    return ROOT


@pytest.fixture
def show(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Call show("largest loss 0.99 epsilon"): the line appears under "figures" when all tests are done."""
    return lambda line: record_property(FIGURE, line)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests measured, also when they ran in several processes."""
    lines = [
        f"{report.nodeid.split('::')[-1]}: {value}"
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        for name, value in getattr(report, "user_properties", ())
        if name == FIGURE and report.when == "call"
    ]
    if lines:
        terminalreporter.section("figures")
        for line in lines:
            terminalreporter.write_line(line)


@dataclass(frozen=True)
class Example:
    """One Python block of a document, and what its next block says it prints (None: nothing said)."""

    code: str
    printed: str | None
    line: int


def examples(text: str) -> Iterator[Example]:
    """Python blocks in order; a block marked `text` that follows at once holds the expected output."""
    for block in EXAMPLE.finditer(text):
        yield Example(code=block[1], printed=block[2], line=text.count("\n", 0, block.start(1)) + 1)


def run_text(text: str, name: str) -> int:
    """Run all examples in one namespace, compare what they print, and return how many there were."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    checker, count = doctest.OutputChecker(), 0
    for example in examples(text):
        # Blank lines put the block where it stands in the document, so tracebacks point at it.
        program = compile("\n" * (example.line - 1) + example.code, name, "exec")
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(program, namespace)
        if example.printed is not None:
            got = output.getvalue()
            same = checker.check_output(example.printed, got, doctest.ELLIPSIS)
            assert same, f"{name}, line {example.line} prints\n{got}\ninstead of\n{example.printed}"
        count += 1
    return count


@pytest.fixture
def run_document() -> Callable[[Path], int]:
    """Run a Markdown file's Python blocks; return how many."""
    return lambda path: run_text(path.read_text(encoding="utf-8"), str(path))
