"""The map of the package, enforced: which folder may know which, where randomness enters, how long files and ways get.

`violations(root)` reads the sources with `ast` (it imports nothing) and says what breaks the rules; the same
function is shown to fail on small trees with one planted mistake each.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.house import duplicate_names, inner_imports, longest_chain
from benchmarks.walk import walked
from privatest import design
from tests.mutants import ACCEPTED, NAMED

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src" / "privatest"
LONGEST_CHAIN = 14
"""Modules of which each imports the next. Lower it when the chain gets shorter; 12 is the aim."""
MOST_OF_A_DESIGN = 22
"""Modules whose functions one `pt.design(...)` calls; `python benchmarks/house.py` counts those of other questions."""
STILL_DOUBLE: set[str] = set()
"""File names that occur in two folders. Take out what no longer does; nothing is put in."""

# A folder may import the folders before it in this order.
ORDER = [
    "hypotheses",
    "theory",
    "scores",
    "privacy",
    "laws",
    "decision",
    "bounds",
    "power",
    "estimates",
    "fit",
    "changepoint",
    "streams",
]
MAY_IMPORT: dict[str, set[str]] = {folder: set(ORDER[:i]) for i, folder in enumerate(ORDER)}
MAY_IMPORT["privacy"] -= {"hypotheses", "theory"}  # noise is calibrated to a width and an epsilon, never to a pair
MAY_IMPORT["engines"] = {"scores"}  # engines sum integers: no epsilon, no randomness
MAY_IMPORT["laws"] -= {"hypotheses", "theory"}  # of scores, whatever they are scores of
for folder in (
    "decision",
    "bounds",
    "power",
    "estimates",
    "fit",
    "changepoint",
    "streams",
):  # those that run on data
    MAY_IMPORT[folder] |= {"engines"}
MAY_IMPORT["ledger"] = {"privacy"}  # what notions are, and what they come to together; never noise
MAY_IMPORT["pictures"] = set(ORDER)  # drawn from designs and releases; never from data
MAY_IMPORT["report"] = {*ORDER, "pictures"}
DRAWN_BY = {"pictures": ("plot", "plot_power")}  # any folder may import it, but only inside methods of these names
PUBLIC_ONLY = {"cli", "studio"}  # `import privatest` and `from privatest import name`, nothing deeper
# What they open besides: the report and the studio have no place among the package's functions.
PUBLIC_PAGES = {"cli": {"report", "studio"}, "studio": {"report"}}
FOLDERS = MAY_IMPORT.keys() | PUBLIC_ONLY
FACES = {"__init__.py", "data.py", "notions.py", "results.py"}
"""The public modules, which show what the folders hold. They are thin, and may be named as the file that they show."""
NO_NOUNS = {"utils", "util", "common", "helpers", "misc"}

RANDOMNESS = Path("privacy/randomness.py")
TOKENS = Path("studio/guard.py")
"""The one place where a secret is drawn that is no noise: the key of the studio."""
RANDOM_MODULES = {"secrets", "random", "uuid"}
RANDOM_CALLS_OF_OS = {"os.urandom", "os.getrandom"}


def violations(root: Path) -> list[str]:
    """Everything under `root` (the package's folder) that breaks a rule, one line each."""
    found = []
    for path in sorted(root.rglob("*.py")):
        where = path.relative_to(root)
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text, filename=str(path))
        for rule in (layout, imports, randomness, names):
            found += [f"{where}: {problem}" for problem in rule(where, tree, root)]
    found += [
        f"{' and '.join(places)}: two files of the same name"
        for name, places in duplicate_names(root).items()
        if name not in STILL_DOUBLE and not (name in FACES and name in places and len(places) == 2)
    ]
    if len(chain := longest_chain(root)) > LONGEST_CHAIN:
        found.append(f"{' > '.join(chain)}: {len(chain)} modules import one another, more than {LONGEST_CHAIN}")
    return found


def unexplained_imports(root: Path) -> list[str]:
    """Imports of the package's modules inside functions that no comment on their line or the one above explains.

    What may be imported so: what only an extra needs, and what would make the start slower. A cycle is no reason.
    """
    found = []
    for path in sorted(root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for function, number in inner_imports(ast.parse(text), root.name):
            drawing = function in DRAWN_BY.get(lines[number - 1].split()[-1], ())  # the map says why
            if not drawing and "#" not in "".join(lines[max(number - 2, 0) : number]):
                found.append(f"{path.relative_to(root).as_posix()}:{number}: {lines[number - 1].strip()}")
    return found


def layout(where: Path, _tree: ast.Module, _root: Path) -> Iterator[str]:
    for part in (*where.parts[:-1], where.stem):
        if part in NO_NOUNS:
            yield f"{part!r} is not a noun of the theory"
    if len(where.parts) > 1 and where.parts[0] not in FOLDERS | NO_NOUNS:
        yield f"unknown folder {where.parts[0]!r}; give it a place in this file's map"


def imports(where: Path, tree: ast.Module, root: Path) -> Iterator[str]:
    own = where.parts[0] if len(where.parts) > 1 else None
    for module, name in imported(where, without_drawing(tree, root.name), root.name):
        parts = module.split(".")
        if parts[0] != root.name:
            continue
        # `from privatest import hypotheses` reaches the folder as `import privatest.hypotheses` does.
        parts += [name] if len(parts) == 1 and name is not None else []
        target = parts[1] if len(parts) > 1 and (root / parts[1]).is_dir() else None
        if own == target and own is not None:
            continue
        if own in PUBLIC_ONLY:
            page = len(module.split(".")) == 1 and target in PUBLIC_PAGES.get(own, set())
            if not page and (target is not None or len(module.split(".")) > 1):
                yield f"imports {'.'.join(parts)}; {own} knows the public package only"
        elif own is None:
            if where.name == "__main__.py" and target == "cli":
                continue
            if target is not None and (where.name not in FACES or target in PUBLIC_ONLY):
                yield f"imports {'.'.join(parts)}; a root module knows root modules only"
        elif len(parts) == 1:
            yield "imports the whole package; name the folder or module it needs"
        elif target is not None and target not in MAY_IMPORT.get(own, set()):
            yield f"imports {'.'.join(parts)}; {own} may not know {target}"
        elif target is None and not (root / f"{parts[1]}.py").is_file() and parts[1] != "__version__":
            yield f"imports {'.'.join(parts)} from the package's face; name the module it needs"


def without_drawing(tree: ast.Module, package: str) -> ast.Module:
    """The tree without the imports that stand where DRAWN_BY allows them."""

    methods = {name for names in DRAWN_BY.values() for name in names}
    if not any(isinstance(node, ast.FunctionDef) and node.name in methods for node in ast.walk(tree)):
        return tree

    class Removed(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
            drawn = [folder for folder, names in DRAWN_BY.items() if node.name in names]
            kept = [
                line
                for line in node.body
                if not (
                    isinstance(line, ast.ImportFrom)
                    and line.module == package
                    and all(alias.name in drawn for alias in line.names)
                )
            ]
            node.body = kept or [ast.Pass()]
            return node

    return ast.fix_missing_locations(Removed().visit(ast.parse(ast.unparse(tree))))


def imported(where: Path, tree: ast.Module, package: str) -> Iterator[tuple[str, str | None]]:
    """All imports as (absolute module, imported name), wherever they stand: also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                here = [package, *where.parts[:-1]]
                base = here[: len(here) - node.level + 1]
                module = ".".join([*base, module] if module else base)
            yield from ((module, alias.name) for alias in node.names)


def randomness(where: Path, tree: ast.Module, root: Path) -> Iterator[str]:
    if where != RANDOMNESS:
        for module, name in imported(where, tree, root.name):
            top = module.split(".")[0]
            if where == TOKENS and top == "secrets":
                continue
            if top in RANDOM_MODULES or f"{module}.{name}" in RANDOM_CALLS_OF_OS:
                yield f"imports {top}; randomness enters through {RANDOMNESS} alone"
            if module.startswith("numpy.random") and name not in {"Generator", None}:
                yield f"imports numpy.random.{name}; pass a numpy.random.Generator instead"
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = dotted(node.func)
        if called in RANDOM_CALLS_OF_OS and where != RANDOMNESS:
            yield f"calls {called}; randomness enters through {RANDOMNESS} alone"
        elif called.startswith(("np.random.", "numpy.random.")):
            seeded = called.endswith(".default_rng") and (node.args or node.keywords)
            if not (seeded or called.endswith(".Generator")):
                yield f"calls {called} without an explicit generator or seed"
        elif called.endswith(".rvs") and not any(word.arg == "random_state" for word in node.keywords):
            yield f"calls {called} without random_state, which draws from numpy's hidden global state"


def dotted(node: ast.expr) -> str:
    """`np.random.normal` for the expression of that text; calls and indices on the way become empty parts."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def names(_where: Path, tree: ast.Module, _root: Path) -> Iterator[str]:
    for node in ast.walk(tree):
        defined: list[str] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined = [node.name]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined = [node.id]
        yield from (
            f"defines {name}, which pytest would collect" for name in defined if name.startswith(("test_", "Test"))
        )


def test_the_package_keeps_its_own_rules() -> None:
    assert violations(SOURCE) == []


def test_imports_inside_functions_say_why() -> None:
    assert unexplained_imports(SOURCE) == []


def test_mutants_stand_where_their_lists_say() -> None:
    """A named mistake is put in by its text: in one place, or it would be none. An accepted one has its line still."""
    texts = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
    named, accepted = (tomllib.loads(path.read_text(encoding="utf-8"))["mutant"] for path in (NAMED, ACCEPTED))
    before = [mutant["before"].strip("\n") for mutant in named]
    assert [text for text in before if sum(each.count(text) for each in texts) != 1] == []
    assert {mutant["before"] for mutant in accepted if not any(mutant["before"] in each for each in texts)} == set()


def test_the_check_reads_the_real_sources() -> None:
    found = [
        module
        for path in SOURCE.rglob("*.py")
        for module, _ in imported(path.relative_to(SOURCE), ast.parse(path.read_text()), "privatest")
    ]
    assert sum(module.startswith("privatest.") for module in found) > 20


PLANTED = {
    "hypotheses/a.py": ("from privatest.theory import decompose", "hypotheses may not know theory"),
    "theory/a.py": ("def f():\n    import privatest.scores.score", "theory may not know scores"),
    "privacy/a.py": ("from privatest.hypotheses import Pair", "privacy may not know hypotheses"),
    "privacy/b.py": ("from ..theory import decompose", "privacy may not know theory"),
    "privacy/c.py": ("from privatest import hypotheses", "privacy may not know hypotheses"),
    "engines/a.py": ("from privatest.privacy import Tulap", "engines may not know privacy"),
    "theory/c.py": ("from privatest.engines import total", "theory may not know engines"),
    "ledger/a.py": ("from privatest.decision import design", "ledger may not know decision"),
    "theory/d.py": ("from privatest import pictures", "theory may not know pictures"),
    "theory/e.py": ("def draw():\n    from privatest import pictures", "theory may not know pictures"),
    "theory/f.py": ("def plot():\n    from privatest import power", "theory may not know power"),
    "pictures/a.py": ("from privatest.engines import total", "pictures may not know engines"),
    "pictures/b.py": ("from privatest import ledger", "pictures may not know ledger"),
    "report/a.py": ("from privatest import engines", "report may not know engines"),
    "scores/a.py": ("import privatest", "imports the whole package"),
    "scores/b.py": ("from privatest import design", "from the package's face"),
    "cli/a.py": ("from privatest.decision import design", "cli knows the public package only"),
    "cli/b.py": ("from privatest.errors import InvalidInput", "cli knows the public package only"),
    "cli/c.py": ("from privatest.studio.app import serve", "cli knows the public package only"),
    "cli/d.py": ("from privatest import decision", "cli knows the public package only"),
    "studio/a.py": ("from privatest import decision", "studio knows the public package only"),
    "errors.py": ("from privatest.hypotheses import Pair", "a root module knows root modules only"),
    "utils.py": ("", "'utils' is not a noun"),
    "common/a.py": ("", "'common' is not a noun"),
    "gadgets/a.py": ("", "unknown folder 'gadgets'"),
    "decision/a.py": ("class TestStatistic:\n    pass", "defines TestStatistic"),
    "decision/b.py": ("def test_of_tests():\n    pass", "defines test_of_tests"),
    "decision/c.py": ("import secrets", "imports secrets"),
    "studio/b.py": ("import secrets", "imports secrets"),
    "studio/guard.py": ("import random", "imports random"),
    "decision/d.py": ("from random import randrange", "imports random"),
    "decision/e.py": ("import os\nx = os.urandom(8)", "calls os.urandom"),
    "decision/f.py": ("import numpy as np\nx = np.random.normal()", "calls np.random.normal"),
    "decision/g.py": ("import numpy as np\nx = np.random.default_rng()", "calls np.random.default_rng"),
    "decision/h.py": ("from numpy.random import default_rng", "imports numpy.random.default_rng"),
    "decision/i.py": ("def f(law):\n    return law.rvs(3)", "calls law.rvs without random_state"),
}


def plant(root: Path, where: str, text: str) -> None:
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "errors.py").touch()
    path = root / where
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("where", PLANTED)
def test_a_planted_mistake_is_found(where: str, tmp_path: Path) -> None:
    text, complaint = PLANTED[where]
    plant(tmp_path / "privatest", where, text)
    (line,) = violations(tmp_path / "privatest")
    assert where in line
    assert complaint in line


def test_two_files_of_the_same_name_are_found(tmp_path: Path) -> None:
    root = tmp_path / "privatest"
    for where in ("scores/cells.py", "engines/cells.py", "scores/__init__.py", "engines/__init__.py"):
        plant(root, where, "")
    assert violations(root) == ["engines/cells.py and scores/cells.py: two files of the same name"]


@pytest.mark.parametrize("more", [0, 1])
def test_a_long_chain_of_imports_is_found(more: int, tmp_path: Path) -> None:
    root = tmp_path / "privatest"
    plant(root, "scores/__init__.py", "from privatest.scores.a0 import x")
    for i in range(last := LONGEST_CHAIN - 1 + more):
        # Through the folder's face, and not through it: both count.
        plant(root, f"scores/a{i}.py", f"from privatest.scores.a{i + 1} import x")
    plant(root, f"scores/a{last}.py", "x = 1")
    plant(root, "laws/b.py", "from privatest.scores.a1 import x")
    found = violations(root)
    assert len(found) == more
    assert all(f"{LONGEST_CHAIN + 1} modules import one another" in line for line in found)


INNER = {
    "def f():\n    from privatest.scores import cells": 1,
    "def f():\n    def g():\n        import privatest.scores": 1,
    "async def f():\n    if True:\n        from . import cells": 1,
    "def f():\n    from privatest import pictures": 1,
    "def f():\n    from privatest.scores import cells  # start-up: scipy": 0,
    "def f():\n    # Only with the extra.\n    from privatest.scores import cells": 0,
    "def plot():\n    from privatest import pictures": 0,
    "def f():\n    import scipy": 0,
    "from privatest.scores import cells": 0,
}


@pytest.mark.parametrize(("text", "count"), INNER.items())
def test_imports_inside_functions_are_found(text: str, count: int, tmp_path: Path) -> None:
    plant(tmp_path / "privatest", "scores/a.py", text)
    assert len(unexplained_imports(tmp_path / "privatest")) == count


ALLOWED = {
    "theory/a.py": "from privatest.errors import InvalidInput\nfrom privatest.hypotheses import Pair",
    "theory/b.py": "class Split:\n    def plot(self):\n        from privatest import pictures\n        return pictures",
    "pictures/a.py": "from privatest.power import sample_size",
    "report/a.py": "from privatest import pictures",
    "scores/a.py": "from . import cells\nfrom .score import Score\nfrom ..theory import decompose",
    "decision/a.py": "from privatest.engines import total\nfrom privatest.privacy import Tulap",
    "cli/a.py": "import privatest as pt\nfrom privatest import design\nfrom privatest.cli.tables import row",
    "cli/b.py": "from privatest import errors, report, studio",
    "__init__.py": "from privatest.decision import design\nfrom privatest.hypotheses import density",
    "__main__.py": "from privatest.cli import main",
    "privacy/randomness.py": "import secrets",
    "studio/guard.py": "import secrets",
    "hypotheses/a.py": "import numpy as np\nx = np.random.default_rng(3)",
    "hypotheses/b.py": "def f(law, rng):\n    return law.rvs(3, random_state=rng)",
}


@pytest.mark.parametrize("where", ALLOWED)
def test_what_the_map_allows_passes(where: str, tmp_path: Path) -> None:
    plant(tmp_path / "privatest", where, ALLOWED[where])
    assert violations(tmp_path / "privatest") == []


def test_a_design_walks_through_few_modules() -> None:
    files, _depth = walked(lambda: design("normal(0, 1)", "normal(1.1, 1)", epsilon=1, n=101), SOURCE)
    names = sorted(Path(name).relative_to(SOURCE).as_posix() for name in files)
    assert {"decision/tuning.py", "laws/curves.py", "scores/clamped.py"} <= set(names)
    assert len(names) <= MOST_OF_A_DESIGN, f"a design visits {len(names)} modules: {', '.join(names)}"
