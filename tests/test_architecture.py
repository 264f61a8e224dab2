"""The map of the package, enforced: which folder may know which, where randomness enters, how long files and ways get.

`violations(root)` reads the sources with `ast` (it imports nothing) and says what breaks the rules; the same
function is shown to fail on small trees with one planted mistake each.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

from benchmarks.house import duplicate_names, inner_imports, longest_chain
from benchmarks.walk import walked
from privatest import design
from tests.mutants import ACCEPTED, NAMED

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src" / "privatest"
LONGEST_CHAIN = 14
"""Modules of which each imports the next. Lower it when the chain gets shorter; 12 is the aim."""
MOST_OF_A_DESIGN = 21
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
TOKENS = Path("studio/access.py")
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


def test_a_design_walks_through_few_modules() -> None:
    files, _depth = walked(lambda: design("normal(0, 1)", "normal(1.1, 1)", epsilon=1, n=101), SOURCE)
    names = sorted(Path(name).relative_to(SOURCE).as_posix() for name in files)
    assert {"decision/clamp_tuning.py", "laws/cutoffs.py", "scores/clamped.py"} <= set(names)
    assert len(names) <= MOST_OF_A_DESIGN, f"a design visits {len(names)} modules: {', '.join(names)}"
