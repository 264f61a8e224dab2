"""How large the house is, and how many rooms one question walks through.

``python benchmarks/house.py`` counts modules, lines and the longest chain of imports of the package that Python would
import here, then follows the calls of a few everyday questions: which modules their functions stand in, how many lines
those modules have, and how deep the calls nest.
"""

from __future__ import annotations

import ast
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import privatest as pt

ROOT = Path(pt.__file__).resolve().parent


def modules() -> dict[str, Path]:
    """Every module of the package, by its dotted name."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = [ROOT.name, *path.relative_to(ROOT).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """What a module imports when it is imported itself, as (module, name)."""

    def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
        for node in body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                yield node
            elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
                yield from statements(node.body + node.orelse)
            elif isinstance(node, ast.Try):
                yield from statements(node.body)

    for node in statements(ast.parse(path.read_text(encoding="utf-8")).body):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def longest_chain() -> list[str]:
    """The longest chain of modules of which each imports the next.

    A name that a folder's face hands on counts as imported from the module that has it.
    """
    known = modules()
    faces = {name for name, path in known.items() if path.name == "__init__.py"}
    handed_on = {(face, name): module for face in faces for module, name in imports(known[face]) if module in known}

    def home(module: str, name: str) -> str:
        if f"{module}.{name}" in known:
            module = f"{module}.{name}"
        elif (module, name) in handed_on:
            return home(handed_on[module, name], name)
        return module

    graph = {
        name: {where for pair in imports(path) if (where := home(*pair)) in known and where not in faces}
        for name, path in known.items()
        if name not in faces
    }

    @cache
    def chain(name: str) -> tuple[str, ...]:
        return (name, *max((chain(one) for one in graph[name]), key=len, default=()))

    return list(max((chain(name) for name in graph), key=len))


def walked(question: Callable[[], Any]) -> tuple[int, int, int]:
    """Modules whose functions the question calls, their lines, and the deepest nesting of calls of the package."""
    files: set[str] = set()
    nesting = threading.local()
    deepest = [0]

    def watch(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event not in ("call", "return") or not name.startswith(str(ROOT)) or frame.f_code.co_name == "<module>":
            return
        nesting.depth = getattr(nesting, "depth", 0) + (1 if event == "call" else -1)
        if event == "call":
            files.add(name)
            deepest[0] = max(deepest[0], nesting.depth)

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        question()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return len(files), sum(lines(Path(name)) for name in files), deepest[0]


def questions(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Everyday questions, each with its data ready."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    P, Q = "normal(0, 1)", "normal(1, 1)"
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(0, 1, 150), rng.normal(1, 1, 150)])
    table, parquet, book = folder / "f.csv", folder / "f.parquet", folder / "ledger.db"
    table.write_text("x\n" + "\n".join(map(str, x)) + "\n", encoding="utf-8")
    pq.write_table(pa.table({"x": x}), parquet)
    pt.Ledger(book).grant(dataset="d", epsilon=5)
    test = pt.design(P, Q, epsilon=1, n=300)
    monitor = pt.Monitor(P, Q, epsilon=1)
    records = rng.normal(0, 1, 1000)

    def command() -> None:
        from privatest.cli import main

        words = f"test {table} --column x --epsilon 1 --ledger {book} --dataset d --request r --json".split()
        keep, sys.stdout = sys.stdout, open(folder / "out.txt", "w", encoding="utf-8")  # noqa: SIM115
        try:
            main([*words, "--null", P, "--alternative", Q])
        except SystemExit as stop:
            if stop.code:
                raise RuntimeError(f"The command line ended with {stop.code}.") from None
        finally:
            sys.stdout.close()
            sys.stdout = keep

    yield "pt.design(P, Q)", lambda: pt.design("normal(0, 1)", "normal(1.1, 1)", epsilon=1, n=100)
    yield "test.run(csv)", lambda: test.run(str(table), column="x")
    yield "privatest test, with a ledger", command
    yield "detect_change(parquet)", lambda: pt.detect_change(str(parquet), P, Q, epsilon=1, column="x")
    yield "Monitor.update", lambda: monitor.update(records)
    yield "goodness_of_fit", lambda: pt.goodness_of_fit(x, P, distance=0.3, epsilon=1, beta=None)


def main() -> None:
    found = modules()
    chain = longest_chain()
    print(f"modules {len(found)}, lines {sum(map(lines, found.values()))}, longest chain of imports {len(chain)}")
    print("  " + " > ".join(name.removeprefix(f"{ROOT.name}.") for name in chain))
    print(f"{'question':32}{'modules':>9}{'lines':>9}{'depth':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for name, question in questions(Path(folder)):
            print(f"{name:32}" + "{:9}{:9}{:7}".format(*walked(question)))


if __name__ == "__main__":
    main()
