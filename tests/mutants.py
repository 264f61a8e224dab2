"""Mutants: small mistakes put into the package, one at a time, to see whether the tests notice.

    python -m tests.mutants                        the privacy- and money-critical files (`WATCHED`)
    python -m tests.mutants noise ledger/hash_chain.py  folders or files under src/privatest
    ... --minutes 20 --seed 3                      as many as fit in the time, in an order given by the seed
    ... --sample 100 --seed 3                      so many of them
    ... --seconds 12                               with fewer tests for each: quicker, and some survive that need not
    ... --again                                    only those that survived the last run
    ... --named                                    those that no test saw once (`mutants_named.toml`), by the tests that
                                                   see them now

The mistakes are those of cosmic-ray's operators, and a statement left out. (mutmut 3 makes none inside dataclasses, of
which this package consists, and none outside of functions.) Mutants never touch the checkout: each worker has a copy.

A first pass runs the tests that belong to the files' folders and notes which test reaches which line and how long
it takes; the notes are kept in output/ until the package or the file of the test changes. Each mutant then runs only
the tests that reach its statement, the quickest first, till one fails. Workers are forked from a process that has
imported everything but the package, so that a mutant costs little more than its tests.

Not made: mistakes inside of annotations and what is imported for them, of f-strings (the texts for people; nothing is
computed from them) and in the size of an `lru_cache`.
Mutants that change nothing anybody could observe are listed, with the reason, in ``mutants_accepted.toml``, by the line
before and after: the list survives a move of the module. They are put aside before a sample is drawn. A mutant whose
tests do not end counts as killed. Exit code 1 below 95% of the others.
"""

from __future__ import annotations

import argparse
import ast
import atexit
import contextlib
import hashlib
import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/privatest")
ACCEPTED = Path(__file__).with_name("mutants_accepted.toml")
NAMED = Path(__file__).with_name("mutants_named.toml")
RESULTS = ROOT / "output" / "mutants.json"
REACHED = ROOT / "output" / "mutants_reached.json"
GOAL = 0.95

WATCHED = [
    "privacy",
    "scores",
    "ledger",
    "charge_before_release.py",
    "json_documents.py",
    "numbers.py",
    "decision/run.py",
    "decision/private_test.py",
    "engines/rows_per_person.py",
    "engines/key_columns.py",
    "engines/arrays.py",
    "changepoint/exponential_mechanism.py",
    "changepoint/block_tests.py",
    "changepoint/block_sums.py",
    "streams/blocks.py",
    "streams/stream.py",
    "streams/monitor_plan.py",
    "streams/saved_state.py",
    "fit/fit_test.py",
    "bounds/optimum.py",
]
# Tests of a file: those of its folder, its doctests, and these.
BESIDES = [
    "tests/contracts/test_running_privacy.py",
    "tests/contracts/test_covered.py",
    "tests/contracts/test_gates.py",
    "tests/contracts/test_fingerprints.py",
    "tests/contracts/test_notions.py",
    "tests/contracts/test_promises.py",
    "tests/test_charge.py",
]
# Tests of a file that stand in other folders.
ELSEWHERE = {
    "charge_before_release.py": ["tests/ledger", "tests/changepoint/test_monitor_state.py", "tests/decision"],
    "json_documents.py": ["tests/scores", "tests/decision", "tests/bounds", "tests/fit/test_fit_test.py"],
    "numbers.py": [
        "tests/scores",
        "tests/privacy",
        "tests/decision/test_private_test.py",
        "tests/bounds/test_histogram_test.py",
    ],
    "privacy/noise.py": ["tests/decision/test_edges.py"],
    "decision/run.py": [
        "tests/changepoint/test_change_plan.py",
        "tests/fit/test_fit_test.py",
        "tests/bounds/test_histogram_test.py",
    ],
}
# Servers, JVMs and processes that are killed take their time; what they show is shown without them, too.
WITHOUT = "not Spark and not PostgreSQL and not spark and not postgres and not kills and not kill_minus and not _race"
SECONDS_A_TEST = 8.0
FIRST_FEW = 12
# A test that takes so many seconds of the processor, and so many times as long as without a mutant, does not end.
PATIENCE = 10.0
TIMES_AS_LONG = 10.0
ENDLESS = 71
MOST_MEMORY = 6 << 30
CHILDREN: set[int] = set()

COMPARISONS = "Lt_LtE LtE_Lt Gt_GtE GtE_Gt Eq_NotEq NotEq_Eq Lt_GtE GtE_Lt Gt_LtE LtE_Gt Is_IsNot IsNot_Is"
BINARY = (
    "Add_Sub Sub_Add Mul_Add Mul_FloorDiv Div_Mul FloorDiv_Mul FloorDiv_Div Mod_Mul Pow_Mul LShift_RShift "
    "RShift_LShift BitAnd_BitOr BitOr_BitAnd BitXor_BitAnd"
)
UNARY = "USub_UAdd Delete_Not Delete_USub"
OPERATORS = [
    *(f"ReplaceComparisonOperator_{name}" for name in COMPARISONS.split()),
    *(f"ReplaceBinaryOperator_{name}" for name in BINARY.split()),
    *(f"ReplaceUnaryOperator_{name}" for name in UNARY.split()),
    *("NumberReplacer", "AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr"),
    *("ReplaceOrWithAnd", "ExceptionReplacer", "ReplaceBreakWithContinue", "ReplaceContinueWithBreak"),
    "ZeroIterationForLoop",
]
SIGNS = {
    **{"Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "Eq": "==", "NotEq": "!=", "Is": " is ", "IsNot": " is not "},
    **{"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**", "LShift": "<<"},
    **{"RShift": ">>", "BitAnd": "&", "BitOr": "|", "BitXor": "^"},
}


@dataclass(frozen=True)
class Mutant:
    """A file with one mistake in it."""

    path: str
    line: int
    before: str
    after: str
    code: str

    @property
    def key(self) -> tuple[str, str]:
        return self.before, self.after

    def __str__(self) -> str:
        return f"{self.path}:{self.line}\n    - {self.before}\n    + {self.after}"


# making mutants -------------------------------------------------------------------------------------------------------


def mutants_of(path: Path) -> list[Mutant]:
    """Every mutant of a file that is a program and another one: not only in types or in texts for people."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    lines = (ROOT / path).read_text(encoding="utf-8").splitlines(keepends=True)
    found: dict[str, Mutant] = {}
    for first, last, indent in _pieces("".join(lines)):
        # A piece is parsed again for every mutant, so it had better be small.
        piece = "".join(line.removeprefix(indent) for line in lines[first:last])
        plain = _program(piece)
        names = [name for name in OPERATORS if any(sign in piece for sign in _signs(name))]
        codes = [code for name in names for code in _each(mutate_code, piece, get_operator(f"core/{name}")())]
        for code in dict.fromkeys([*codes, *_without_statements(piece)]):
            if _program(code) in (None, plain):
                continue
            changed = [indent + line if line.strip() else line for line in code.splitlines(keepends=True)]
            line, before, after = _difference(lines[first:last], changed)
            whole = "".join([*lines[:first], *changed, *lines[last:]])
            found.setdefault(whole, Mutant(str(path), first + line + 1, before, after, whole))
    return list(found.values())


def _pieces(text: str) -> Iterator[tuple[int, int, str]]:
    """(first line, line after the last, indentation) of the functions, methods and statements of a file."""
    for node in ast.parse(text).body:
        for part in node.body if isinstance(node, ast.ClassDef) else [node]:
            decorators = getattr(part, "decorator_list", [])
            first = min([part.lineno, *(one.lineno for one in decorators)]) - 1
            yield first, part.end_lineno or part.lineno, " " * part.col_offset


def _signs(name: str) -> list[str]:
    """What a text must hold for an operator to find something in it."""
    if name == "NumberReplacer":
        return list("0123456789")
    replaced = name.removeprefix("ReplaceComparisonOperator_").removeprefix("ReplaceBinaryOperator_").split("_")[0]
    return [SIGNS[replaced]] if replaced in SIGNS else [""]


def _each(mutate: Any, text: str, operator: Any) -> Iterator[str]:
    occurrence = 0
    while (code := mutate(text, operator, occurrence)) is not None:
        yield code
        occurrence += 1


def _without_statements(text: str) -> Iterator[str]:
    """A call made for its effect, or an exception, left out."""
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await)
        if call or isinstance(node, ast.Raise):
            first, last = node.lineno - 1, node.end_lineno
            indent = lines[first][: node.col_offset]
            if not indent.strip():  # not several statements on a line
                yield "".join([*lines[:first], f"{indent}pass\n", *lines[last:]])


def _difference(before: list[str], after: list[str]) -> tuple[int, str, str]:
    """Where two texts begin to differ, and the lines that do, each on one line."""
    first = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
    same = 0
    while same < min(len(before), len(after)) - first and before[-1 - same] == after[-1 - same]:
        same += 1
    parts = (before[first : len(before) - same], after[first : len(after) - same])
    old, new = (" ".join(line.strip() for line in part) for part in parts)
    return first, old, new


def _program(text: str) -> str | None:
    """What a text computes, for comparison: without annotations and formatted texts; None if it is no program."""
    try:
        return ast.dump(_score_with_table(text))
    except SyntaxError:
        return None


def _score_with_table(text: str) -> ast.AST:
    """The program without annotations, texts for people and sizes of caches: nothing is computed from them."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        elif isinstance(node, ast.JoinedStr):
            node.values = []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "lru_cache":
            node.keywords = []
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.test = ast.Constant(None)
    return tree


# which test reaches which line ----------------------------------------------------------------------------------------


class Recorder:
    """A pytest plugin: the lines that each passing test reaches, and its time."""

    def __init__(self, files: list[str]) -> None:
        import coverage

        self._files = files
        self._coverage = coverage.Coverage(data_file=None, include=files, config_file=False, messages=False)
        self._coverage.start()
        self.seconds: dict[str, float] = {}
        self._failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Any:
        """A test that computes for longer than that would make a mutant cost too much: it counts as failed here."""
        signal.signal(signal.SIGPROF, _too_long)
        signal.setitimer(signal.ITIMER_PROF, SECONDS_A_TEST)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if not report.passed:
            self._failed.add(report.nodeid)

    def reached(self) -> dict[str, Any]:
        self._coverage.stop()
        data = self._coverage.get_data()
        lines = {
            os.path.relpath(file): {
                str(line): [test for test in tests if test and test not in self._failed]
                for line, tests in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        return {"lines": lines, "seconds": {t: s for t, s in self.seconds.items() if t not in self._failed},
                "failed": sorted(self._failed)}  # fmt: skip


def _too_long(_: int, frame: Any) -> None:
    if "coverage" in Path(frame.f_code.co_filename).parts:  # it may hold its lock, and would never let go of it
        signal.setitimer(signal.ITIMER_PROF, 0.01)
        return
    raise TimeoutError


def tests_of(path: Path) -> list[str]:
    inside = path.relative_to(PACKAGE)
    own = f"tests/test_{inside.name}" if len(inside.parts) == 1 else f"tests/{inside.parts[0]}"
    tests = [own, *ELSEWHERE.get(str(inside), ()), *BESIDES, str(path)]
    return [test for test in tests if (ROOT / test).exists()]


def _pytest(arguments: list[str], plugins: list[Any]) -> int:
    quiet = [
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
        "-q",
        "-p",
        "no:cacheprovider",
        "-n0",  # not without xdist: tests carry its marks
        "-p",
        "no:schemathesis",
        "--no-header",
        "--tb=no",
    ]
    return int(pytest.main([*quiet, "--hypothesis-seed=0", *arguments], plugins=plugins))


def _begin_child(copy: Path, log: Path) -> None:
    """Everything a forked child needs before it imports the package: its own copy, its own group, no terminal."""
    os.setpgid(0, 0)
    CHILDREN.clear()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy / "src")
    sys.path[:0] = [str(copy / "src"), str(copy)]
    sys.modules.pop("tests", None)
    importlib.invalidate_caches()
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)


def _fork(copy: Path, log: Path, work: Any) -> int:
    """A child that does ``work`` in the copy and exits with what it returns."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            _begin_child(copy, log)
            code = work()
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    with contextlib.suppress(OSError):
        os.setpgid(child, child)
    CHILDREN.add(child)
    return child


def end_children(*_: Any) -> None:
    """No child, and nothing that a child started, outlives this process."""
    for child in CHILDREN:
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)
    if _:
        raise SystemExit(130)


def first_pass(files: list[Path], copies: list[Path], folder: Path) -> dict[str, Any]:
    """Which tests of these files reach which lines: noted before, or run now, in as many processes as copies."""
    # Doctests last: pytest would import their modules anew, beside the ones that tests change.
    wanted = sorted(
        {str(found) for path in files for test in tests_of(path) for found in _test_files(test)}, reverse=True
    )
    digests = _digests(wanted)
    noted = json.loads(REACHED.read_text()) if REACHED.exists() else {}
    measured = {str(path) for path in files}
    old = {
        test: noted[test]
        for test in wanted
        if noted.get(test, {}).get("digest") == digests[test] and measured <= set(noted[test]["measured"])
    }
    found = _run_first([test for test in wanted if test not in old], files, copies, folder)
    for test, note in found.items():
        note |= {"digest": digests[test], "measured": sorted(measured)}
    REACHED.parent.mkdir(exist_ok=True)
    REACHED.write_text(json.dumps(noted | found))
    merged: dict[str, Any] = {"lines": {}, "seconds": {}, "failed": []}
    for note in [*old.values(), *found.values()]:
        for file, lines in note["lines"].items():
            for line, tests in lines.items():
                merged["lines"].setdefault(file, {}).setdefault(int(line), []).extend(tests)
        merged["seconds"].update(note["seconds"])
        merged["failed"] += note["failed"]
    return merged


def warm(reached: dict[str, Any], copies: list[Path], folder: Path) -> None:
    """Compile every file of tests once in each copy: mutants find them compiled, and compile nothing but themselves."""
    tests = sorted(reached["seconds"])

    def work() -> int:
        sys.dont_write_bytecode = False
        return _pytest(["--collect-only", *tests], [])

    for child in [_fork(copy, folder / "warm.log", work) for copy in copies]:
        if _ended(child) != "survived":
            # A test that cannot be found would count as one that fails.
            raise SystemExit(f"The tests cannot be collected:\n{(folder / 'warm.log').read_text()[-3000:]}")


def _digests(tests: list[str]) -> dict[str, str]:
    """For each file of tests, a name of its content, of the package's and of what else the tests consist of."""
    shared = hashlib.sha256()
    for path in sorted([*(ROOT / PACKAGE).rglob("*.py"), *(ROOT / "tests").rglob("*.py")]):
        if not path.name.startswith("test_") and path != Path(__file__):
            shared.update(path.read_bytes())
    found = {}
    for test in tests:
        one = shared.copy()
        one.update((ROOT / test).read_bytes())
        found[test] = one.hexdigest()
    return found


def _run_first(wanted: list[str], files: list[Path], copies: list[Path], folder: Path) -> dict[str, Any]:
    """What each of these files of tests reaches; lines that are run at import only stand with the first."""
    children = []
    for number, copy in enumerate(copies):
        share, result = wanted[number :: len(copies)], folder / f"reached{number}.json"
        if not share:
            continue

        def work(share: list[str] = share, result: Path = result, copy: Path = copy) -> int:
            recorder = Recorder([str(copy / path) for path in files])
            code = _pytest([*share, "-k", WITHOUT], [recorder])
            result.write_text(json.dumps(recorder.reached()))
            return code

        children.append((_fork(copy, result.with_suffix(".log"), work), result))
    notes: dict[str, Any] = {test: {"lines": {}, "seconds": {}, "failed": []} for test in wanted}
    for child, result in children:
        _, status = os.waitpid(child, 0)
        CHILDREN.discard(child)
        # A test that fails is left out; a file that cannot even be collected would hide all others.
        ran = os.WIFEXITED(status) and os.WEXITSTATUS(status) in (
            pytest.ExitCode.OK,
            pytest.ExitCode.TESTS_FAILED,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        )
        if not ran or not result.exists():
            log = result.with_suffix(".log").read_text()
            raise SystemExit(f"The tests do not run without any mutant:\n{log[-3000:]}")
        part = json.loads(result.read_text())
        for file, lines in part["lines"].items():
            for line, tests in lines.items():
                notes[wanted[0]]["lines"].setdefault(file, {}).setdefault(line, [])
                for test in tests:
                    notes[test.split("::")[0]]["lines"].setdefault(file, {}).setdefault(line, []).append(test)
        for test, seconds in part["seconds"].items():
            notes[test.split("::")[0]]["seconds"][test] = seconds
        for test in part["failed"]:
            notes[test.split("::")[0]]["failed"].append(test)
    return notes


def _test_files(test: str) -> list[Path]:
    path = ROOT / test
    found = sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
    return [file.relative_to(ROOT) for file in found]


def reaching(mutant: Mutant, reached: dict[str, Any], seconds: float) -> list[str]:
    """The tests that reach the mutant's statement, the quickest first.

    Of a line run at import all of the file's, those first that stand under its name, or together with edges and gates.
    """
    lines = reached["lines"].get(mutant.path, {})
    own: tuple[str, ...] = ()
    first, last = _statement(mutant)
    if _at_import(mutant):  # noted with whichever test imported it first, if with any
        tests = {test for some in lines.values() for test in some}
        own = _named_after(Path(mutant.path))
    else:
        tests = {test for line in range(first, last + 1) for test in lines.get(line, ())}
    chosen, total = [], 0.0

    def rank(test: str) -> tuple[bool, bool, float]:
        return test.startswith("src/"), not test.startswith(own), reached["seconds"].get(test, 0.0)

    for test in sorted(tests, key=rank):
        total += reached["seconds"].get(test, 0.0)
        if chosen and total > seconds:
            break
        chosen.append(test)
    return chosen


def _at_import(mutant: Mutant) -> bool:
    """Whether the line is run when the module is imported: outside of all functions, or in the head of one."""
    tree = ast.parse((ROOT / mutant.path).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return not any(node.body[0].lineno <= mutant.line <= (node.end_lineno or 0) for node in functions)


def _named_after(path: Path) -> tuple[str, ...]:
    """Files of tests to look into first: for ``keys.py`` ``test_keys.py``, and the edges and gates of its folder."""
    folder = "/".join(["tests", *path.relative_to(PACKAGE).parts[:-1]])
    return tuple(f"{folder}/test_{name}.py" for name in (path.stem, "edges", "gates"))


def _statement(mutant: Mutant) -> tuple[int, int]:
    """First and last line of the innermost statement that holds the mutant's line; of a block only its head."""
    text = (ROOT / mutant.path).read_text(encoding="utf-8")
    best = (mutant.line, mutant.line)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and node.lineno <= mutant.line <= (node.end_lineno or node.lineno):
            body = getattr(node, "body", None)
            last = max(body[0].lineno - 1, node.lineno) if body else (node.end_lineno or node.lineno)
            if mutant.line <= last and node.lineno >= best[0] - 200:
                best = (node.lineno, last)
    return best


# running mutants ------------------------------------------------------------------------------------------------------


def run(
    mutants: list[Mutant], reached: dict[str, Any], copies: list[Path], folder: Path, until: float, each: float
) -> Iterator[Any]:
    """(mutant, "killed" | "timeout" | "survived" | "no test") for each, as they end."""
    free, busy, queue = list(range(len(copies))), {}, iter(mutants)
    done = False
    while busy or not done:
        while free and not done:
            mutant = next(queue, None)
            if mutant is None or time.monotonic() > until:
                done = True
                break
            tests = reaching(mutant, reached, each)
            if not tests:
                yield mutant, "no test"
                continue
            place = free.pop()
            copy = copies[place]
            (copy / mutant.path).write_text(mutant.code, encoding="utf-8")
            seconds = {test: reached["seconds"].get(test, 0.0) for test in tests}
            limit = 10 * (PATIENCE + sum(seconds.values()))
            child = _fork(copy, folder / f"run{place}.log", lambda seconds=seconds: _till_one_fails(seconds))
            busy[child] = place, mutant, time.monotonic() + limit
        ended = []
        for child, (place, mutant, deadline) in busy.items():
            pid, status = os.waitpid(child, os.WNOHANG)
            late = time.monotonic() > deadline
            if pid == 0 and not late:
                continue
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            if pid == 0:
                os.waitpid(child, 0)
            CHILDREN.discard(child)
            shutil.copyfile(ROOT / mutant.path, copies[place] / mutant.path)
            ended.append((child, place, mutant, "timeout" if late else _verdict(status)))
        for child, place, mutant, verdict in ended:
            del busy[child]
            free.append(place)
            yield mutant, verdict
        time.sleep(0.02)


class Impatient:
    """A pytest plugin that ends the process when a test takes far longer than it did."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds = seconds

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        signal.signal(signal.SIGPROF, lambda *_: os._exit(ENDLESS))
        signal.setitimer(signal.ITIMER_PROF, PATIENCE + TIMES_AS_LONG * self._seconds.get(item.nodeid, 0.0))
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


def _till_one_fails(seconds: dict[str, float]) -> int:
    """The exit code of these tests, the first few by themselves: to collect all of them takes longer than most run."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    tests = list(seconds)
    for part in (tests[:FIRST_FEW], tests[FIRST_FEW:]):
        if not part:
            break
        child = os.fork()
        if child == 0:
            os._exit(_pytest(["-x", *part], [Impatient(seconds)]))
        verdict = _verdict(os.waitpid(child, 0)[1])
        if verdict != "survived":
            return ENDLESS if verdict == "timeout" else 1
    return 0


def _verdict(status: int) -> str:
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1
    return {0: "survived", ENDLESS: "timeout"}.get(code, "killed")


def preload() -> None:
    """Import what the tests need and the package does not own, so that forked children need not."""
    for name in ("numpy", "scipy.stats", "scipy.optimize", "scipy.special", "scipy.fft", "mpmath", "hypothesis",
                 "hypothesis.strategies", "pytest", "pandas", "polars", "pyarrow", "pyarrow.parquet", "duckdb",
                 "sqlalchemy", "coverage", "cosmic_ray.mutating"):  # fmt: skip
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    assert not any(name == "privatest" or name.startswith("privatest.") for name in sys.modules)


def make_copies(count: int, folder: Path) -> list[Path]:
    copies = [folder / f"copy{number}" for number in range(count)]
    skip = shutil.ignore_patterns(".venv*", ".git", "output", "__pycache__", ".hypothesis", ".*_cache", "build", "dist")
    for copy in copies:
        shutil.copytree(ROOT, copy, ignore=skip)
    return copies


def chosen(names: list[str]) -> list[Path]:
    found = []
    for name in names:
        path = ROOT / PACKAGE / name.removeprefix(f"{PACKAGE}/")
        if not path.exists():
            raise SystemExit(f"No file or folder {name!r} in {PACKAGE}.")
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [path.relative_to(ROOT) for path in dict.fromkeys(found) if path.name != "__init__.py"]


class Equivalents:
    """The accepted mutants: lines before and after, in the file named, or wherever they stand if none is."""

    def __init__(self) -> None:
        entries = tomllib.loads(ACCEPTED.read_text(encoding="utf-8")).get("mutant", [])
        self._entries = {(entry.get("file", ""), entry["before"], entry["after"]): entry["why"] for entry in entries}
        assert len(self._entries) == len(entries), "a mutant is accepted twice"

    def __contains__(self, mutant: Mutant) -> bool:
        return any((file, *mutant.key) in self._entries for file in ("", Path(mutant.path).name))

    def gone(self, mutants: list[Mutant]) -> list[str]:
        """Entries for these mutants' files, or for any file, that none answers to: lines that were changed since."""
        looked_at = {"", *(Path(mutant.path).name for mutant in mutants)}
        made = {(file, *mutant.key) for mutant in mutants for file in ("", Path(mutant.path).name)}
        gone = [entry for entry in self._entries if entry[0] in looked_at and entry not in made]
        return [f"{file} {before} -> {after}" for file, before, after in gone]


def run_named() -> int:
    """Put in each mutant of ``mutants_named.toml`` by its text, wherever it stands, and run the tests named with it."""
    entries = tomllib.loads(NAMED.read_text(encoding="utf-8"))["mutant"]
    unseen = 0
    with tempfile.TemporaryDirectory(prefix="mutants") as name:
        folder = Path(name)
        (copy,) = make_copies(1, folder)
        tests = list(dict.fromkeys(test for entry in entries for test in entry["by"]))
        if _ended(_fork(copy, folder / "run.log", lambda: _pytest(tests, []))) != "survived":
            raise SystemExit(f"The tests do not pass without any mutant:\n{(folder / 'run.log').read_text()[-3000:]}")
        for number, entry in enumerate(entries, 1):
            holders = [path for path in (copy / PACKAGE).rglob("*.py") if entry["before"] in path.read_text("utf-8")]
            text = holders[0].read_text("utf-8") if holders else ""
            if not entry["by"]:
                verdict, where = "no test", ", ".join(path.name for path in holders)
            elif len(holders) != 1 or text.count(entry["before"]) != 1:
                verdict, where = "not one place", ", ".join(path.name for path in holders)
            else:
                (path,) = holders
                where = str(path.relative_to(copy / PACKAGE))
                path.write_text(text.replace(entry["before"], entry["after"]), "utf-8")
                by = entry["by"]
                verdict = _ended(_fork(copy, folder / "run.log", lambda by=by: _pytest(["-x", *by], [])))
                path.write_text(text, "utf-8")
            unseen += verdict != "killed"
            print(f"{number:3} {verdict:9} {where}: {entry['cost']}", flush=True)
    print(f"{len(entries) - unseen} of {len(entries)} killed")
    return 1 if unseen else 0


def _ended(child: int) -> str:
    _, status = os.waitpid(child, 0)
    CHILDREN.discard(child)
    return _verdict(status)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=[], help="folders or files under src/privatest")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seconds", type=float, default=40.0, help="the quickest tests that together take so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--again", action="store_true", help="only the survivors of the last run")
    parser.add_argument("--named", action="store_true", help="those of mutants_named.toml, by the tests named there")
    parser.add_argument("--list", action="store_true", help="say how many there are, and run none")
    asked = parser.parse_args()

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    atexit.register(end_children)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_children)
    preload()
    if asked.named:
        return run_named()
    files = chosen(asked.files or WATCHED)
    equivalent = Equivalents()
    mutants = [mutant for path in files for mutant in mutants_of(path)]
    counts = Counter(mutant.path for mutant in mutants)
    if asked.list:
        print("\n".join(f"{counts[str(path)]:6} {path}" for path in files), f"\n{len(mutants):6} mutants")
        print("\n".join(f"accepted, but not made any more: {entry}" for entry in equivalent.gone(mutants)))
        return 0
    if asked.again:
        last = {(one["path"], one["before"], one["after"]) for one in json.loads(RESULTS.read_text())["survivors"]}
        mutants = [mutant for mutant in mutants if (mutant.path, *mutant.key) in last]
    known = [mutant for mutant in mutants if mutant in equivalent]
    mutants = [mutant for mutant in mutants if mutant not in equivalent]
    if asked.sample is not None or asked.minutes < float("inf"):
        random.Random(asked.seed).shuffle(mutants)
    mutants = mutants[: asked.sample]
    files = [path for path in files if any(mutant.path == str(path) for mutant in mutants)]
    with tempfile.TemporaryDirectory(prefix="mutants") as name:
        folder = Path(name)
        copies = make_copies(asked.workers, folder)
        begun = time.monotonic()
        reached = first_pass(files, copies, folder)
        print(f"{len(reached['seconds'])} tests reach {len(files)} files; noted in {time.monotonic() - begun:.0f} s")
        for test in reached["failed"]:
            print(f"    too slow, or does not pass without a mutant; left out: {test}")
        warm(reached, copies, folder)
        results: list[tuple[Mutant, str]] = []
        for mutant, verdict in run(
            mutants, reached, copies, folder, time.monotonic() + 60 * asked.minutes, asked.seconds
        ):
            results.append((mutant, verdict))
            if verdict in ("survived", "no test", "timeout"):
                print(f"{verdict}: {mutant}", flush=True)
            if len(results) % 20 == 0:
                print(f"... {len(results)} of {len(mutants)} in {time.monotonic() - begun:.0f} s", flush=True)
    return report(results, known, len(mutants), time.monotonic() - begun)


def report(results: list[tuple[Mutant, str]], known: list[Mutant], made: int, seconds: float) -> int:
    """Print a table, keep the survivors, and judge."""
    table: dict[str, Counter[str]] = {}
    for mutant, verdict in results:
        table.setdefault(mutant.path, Counter())[verdict] += 1
    for mutant in known:
        table.setdefault(mutant.path, Counter())["accepted"] += 1
    print(f"\n{'file':46} {'run':>6} {'killed':>7} {'survived':>9} {'accepted':>9}")
    for path, row in sorted(table.items()):
        dead, alive = row["killed"] + row["timeout"], row["survived"] + row["no test"]
        print(f"{path:46} {dead + alive:6} {dead:7} {alive:9} {row['accepted']:9}")
    dead = sum(verdict in ("killed", "timeout") for _, verdict in results)
    share = dead / len(results) if results else 1.0
    endless = sum(verdict == "timeout" for _, verdict in results)
    print(
        f"{len(results)} of {made} mutants run in {seconds:.0f} s: {dead} killed ({share:.1%}; {endless} did not "
        f"end), {len(results) - dead} survived; {len(known)} accepted as equivalent, with reasons in {ACCEPTED.name}"
    )
    survivors = [mutant for mutant, verdict in results if verdict not in ("killed", "timeout")]
    RESULTS.parent.mkdir(exist_ok=True)
    kept = [{key: value for key, value in asdict(mutant).items() if key != "code"} for mutant in survivors]
    RESULTS.write_text(json.dumps({"run": len(results), "killed": dead, "survivors": kept}, indent=1))
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
