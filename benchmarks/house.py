"""How large the house is, and how many rooms one question walks through.

``python benchmarks/house.py`` counts modules, lines, names that occur twice, imports inside functions and the longest
chain of imports, then follows the calls of a few everyday questions: which modules their functions stand in, how many
lines those modules have, and how deep the calls nest. ``--before REV`` prints the same of that revision beside it.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]


def modules(root: Path) -> dict[str, Path]:
    """Every module of the package that lies in `root`, by its dotted name."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = [root.name, *path.relative_to(root).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def duplicate_names(root: Path) -> dict[str, list[str]]:
    """File names that occur in more than one folder (but `__init__.py`), with where they do."""
    paths = [path.relative_to(root) for path in modules(root).values() if path.name != "__init__.py"]
    counts = Counter(path.name for path in paths)
    return {
        name: [path.as_posix() for path in paths if path.name == name] for name, n in sorted(counts.items()) if n > 1
    }


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """What a module imports when it is imported itself, as (module, name)."""

    def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
        for node in body:
            if isinstance(node, ast.Import | ast.ImportFrom):
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


def inner_imports(tree: ast.Module, package: str) -> list[tuple[str, int]]:
    """Imports of the package's own modules inside functions: the function's name and the line."""
    found: dict[int, str] = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom):
                    own = node.level > 0 or (node.module or "").split(".")[0] == package
                elif isinstance(node, ast.Import):
                    own = any(alias.name.split(".")[0] == package for alias in node.names)
                else:
                    continue
                if own:
                    found[node.lineno] = function.name  # of the innermost: `walk` goes from the outside in
    return [(name, line) for line, name in sorted(found.items())]


def longest_chain(root: Path) -> list[str]:
    """The longest chain of modules of which each imports the next.

    A name that a folder's face hands on counts as imported from the module that has it.
    """
    known = modules(root)
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
        return (name, *max((chain(one) for one in sorted(graph[name])), key=len, default=()))

    return list(max((chain(name) for name in graph), key=len, default=()))


def questions(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Everyday questions, each with its data ready."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    import privatest as pt

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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # starlette would rather have httpx2
        from fastapi.testclient import TestClient

    from privatest.studio import create_app

    token = "a-token-of-the-house-0123456789"
    app = create_app(folder=folder, ledger=pt.Ledger(book), token=token)
    body = {"null": P, "alternative": Q, "epsilon": 1.0, "source": {"path": "f.csv"}, "column": "x"}

    # Not entered as a context: then each question gets a fresh thread, whose calls are followed.
    client = TestClient(app, base_url="http://127.0.0.1", headers={"authorization": f"Bearer {token}"})

    def page() -> None:
        answer = client.post("/api/run/test", json={**body, "dataset": "d", "request": "studio"})
        if answer.status_code != 200:
            raise RuntimeError(f"The studio answered {answer.status_code}: {answer.text}")

    yield "studio's run, with its worker", page


def counted() -> dict[str, Any]:
    """All figures of the package that Python imports here, by name; a question that it cannot ask is None."""
    import privatest as pt

    try:  # beside this script, or as a module of the folder of benchmarks
        from walk import following, walked
    except ModuleNotFoundError:
        from benchmarks.walk import following, walked

    root = Path(pt.__file__).resolve().parent
    found = modules(root)
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in found.values()]
    chain = longest_chain(root)
    figures: dict[str, Any] = {
        "modules": [len(found)],
        "lines": [sum(map(lines, found.values()))],
        "longest chain of imports": [len(chain)],
        "file names that occur twice": [len(duplicate_names(root))],
        "imports inside functions": [sum(len(inner_imports(tree, root.name)) for tree in trees)],
    }
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as site:
        notes = following(Path(site), root)
        for name, question in questions(Path(folder)):
            try:
                files, depth = walked(question, root, notes)
            except (AttributeError, TypeError) as error:  # another revision's names
                print(f"{name}: {error}", file=sys.stderr)
                figures[name] = None
            else:
                figures[name] = [len(files), sum(lines(Path(file)) for file in files), depth]
    names = " > ".join(name.removeprefix(f"{root.name}.") for name in chain)
    return {"figures": figures, "chain": names, "twice": duplicate_names(root)}


def counted_in(source: Path) -> dict[str, Any]:
    """The same of the package under `source`, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    found = subprocess.run(
        [sys.executable, __file__, "--json"], env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return dict(json.loads(found.stdout))


def counted_at(revision: str) -> dict[str, Any]:
    """The same of a revision of this repository."""
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["git", "archive", revision, "src"], cwd=PROJECT, check=True, stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)
        return counted_in(Path(folder) / "src")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", metavar="REV", help="a revision to print beside what is here")
    parser.add_argument("--json", action="store_true", help="figures of the package that Python imports, as JSON")
    asked = parser.parse_args()
    if asked.json:
        print(json.dumps(counted()))
        return
    columns = {"before": counted_at(asked.before)} if asked.before else {}
    columns["now"] = counted_in(PROJECT / "src")
    print(f"{'':32}" + "".join(f"{title:>28}" for title in columns))
    print(f"{'':32}" + f"{'modules':>12}{'lines':>9}{'depth':>7}" * len(columns))
    for name in columns["now"]["figures"]:
        cells = [column["figures"].get(name) for column in columns.values()]
        numbers = (
            "".join(f"{n:>{width}}" for n, width in zip(cell or "---", (12, 9, 7), strict=False)) for cell in cells
        )
        print(f"{name:32}" + "".join(f"{text:28}" for text in numbers))
    print("longest chain: " + columns["now"]["chain"])
    for name, places in columns["now"]["twice"].items():
        print(f"{name} occurs as {', '.join(places)}")


if __name__ == "__main__":
    main()
