"""What every test may use: numbers worth reading in the summary, documents whose examples run, and the two tiers.

`make test` runs every test, but of a test whose cases together take longer than :data:`SECONDS_OF_A_TEST` only as many
as fit into that, spread over all of them: at least the first and the last, or the first alone where one case takes
longer than twice that. `make exhaustive` runs the other cases, and the tests marked `exhaustive`. How long the slowest
case of a test takes stands in tests/seconds.txt; `pytest --measure` (some tests or all, in one process or several)
writes down those that it runs. The summary names tests that take long and do not stand there.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests import ready

ROOT = Path(__file__).resolve().parents[1]

# For the processes that share the tests, and those they start: one thread of BLAS each, and memory that is given back
# to the system is soon asked for again (a tenth of the processor's time).
for _name, _value in {
    "OPENBLAS_NUM_THREADS": 1,
    "MALLOC_TRIM_THRESHOLD_": 2**28,
    "MALLOC_MMAP_THRESHOLD_": 2**25,
}.items():
    os.environ.setdefault(_name, str(_value))

# Neither a deadline nor a clock on how examples are made: on a busy machine both fail tests for reasons that have
# nothing to do with them. The same examples every time: what a change is blamed for is its own doing. New examples are
# looked for with --hypothesis-profile=search.
_calm: dict[str, Any] = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("privatest", derandomize=True, **_calm)
hypothesis.settings.register_profile("search", print_blob=True, **_calm)
hypothesis.settings.load_profile("privatest")

# A block marked python and, when nothing but blank lines stands between, the block marked text after it.
EXAMPLE = re.compile(r"^```python\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
FIGURE = "figure"

MEASURED = Path(__file__).with_name("seconds.txt")
WORTH_NOTING = 0.1
"""Seconds of processor time, its children's included, above which the slowest case of a test is written down."""
SECONDS_OF_A_TEST = 1.0
"""What the cases of one test may take together in `make test`, where they are more than two."""
JVM = "spark"
EXHAUSTIVE = "exhaustive"
SECONDS = "seconds of processor time"
BEGAN = pytest.StashKey[tuple[float, float]]()
MEASURED_AS = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("privatest")
    group.addoption("--measure", action="store_true", help="write the times of these tests to tests/seconds.txt")


def measured_as(item: pytest.Item) -> str:
    """The test, whatever its parameters: `tests/a.py::test_b`; with `[long]` for a case that is marked exhaustive."""
    name = item.nodeid.partition("[")[0]
    return f"{name}[long]" if item.get_closest_marker(EXHAUSTIVE) is not None else name


def long_cases(items: list[pytest.Item], seconds: Mapping[str, float]) -> list[pytest.Item]:
    """The cases that `make test` leaves to `make exhaustive`: those for which a test has no time left."""
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker(EXHAUSTIVE) is None:
            cases[item.nodeid.partition("[")[0]].append(item)
    left_out = []
    for name, several in cases.items():
        slowest = seconds.get(name, 0.0)
        room = len(several) if slowest * len(several) <= SECONDS_OF_A_TEST else int(SECONDS_OF_A_TEST / slowest)
        least = 2 if slowest <= 2 * SECONDS_OF_A_TEST else 1
        kept = {round(place) for place in spread(len(several), min(max(room, least), len(several)))}
        left_out += [item for place, item in enumerate(several) if place not in kept]
    return left_out


def spread(count: int, chosen: int) -> list[float]:
    """Places of ``chosen`` of ``count`` things, evenly from the first to the last."""
    return [0.0] if chosen == 1 else [place * (count - 1) / (chosen - 1) for place in range(chosen)]


@cache
def measured_seconds() -> dict[str, float]:
    """What tests/seconds.txt says: how long the slowest case of a test takes."""
    lines = (line.split(maxsplit=1) for line in MEASURED.read_text(encoding="utf-8").splitlines())
    return {name: float(seconds) for seconds, name in lines}


def shared_by(nodeid: str) -> str:
    """What one process runs as a whole: the tests that share a JVM, which name Spark, else those of a file.

    By name, since the process that hands out tests sees no marks (and xdist 3.8 fails to append them under pytest 9.2).
    """
    return JVM if JVM in nodeid.lower() else nodeid.partition("::")[0]


def check_names(items: list[pytest.Item]) -> None:
    """Every test that needs the JVM says so in its name: otherwise each process would start a JVM of its own."""
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        if mark is not None and mark.args[0] == JVM and shared_by(item.nodeid) != JVM:
            raise pytest.UsageError(f"{item.nodeid} uses Spark: say so in its name or in the id of its case.")


def long_ones_first(items: list[pytest.Item], seconds: Mapping[str, float]) -> list[pytest.Item]:
    """What takes longest before all else: of two processes neither is left with it when the other is done."""
    taken: defaultdict[str, float] = defaultdict(float)
    for item in items:
        taken[shared_by(item.nodeid)] += seconds.get(item.stash[MEASURED_AS], 0.0)

    def place(item: pytest.Item) -> tuple[float, str]:
        shared = shared_by(item.nodeid)
        return -taken[shared], shared if taken[shared] else ""

    return sorted(items, key=place)


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    check_names(items)
    for item in items:
        item.stash[MEASURED_AS] = measured_as(item)
    for item in long_cases(items, measured_seconds()):
        item.add_marker(EXHAUSTIVE)
    if hasattr(config, "workerinput"):  # several processes share the tests
        items[:] = long_ones_first(items, measured_seconds())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are processors: some wait for a browser, a JVM or a clock."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """One process that has imported everything is enough for all that run tests."""
    ready.share()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With --dist=loadgroup a file's tests run in one process: what they share is made once, not in every process."""
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling  # here, as pytest runs without it, too

    class ByFile(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return shared_by(nodeid)

    config.option.loadscopereorder = False  # long ones come first as it is
    return ByFile(config, log)


_measured: defaultdict[str, float] = defaultdict(float)
"""The slowest case of each test so far, with what its fixtures take: seconds of processor time."""
_cases: defaultdict[str, float] = defaultdict(float)
"""All cases of a test that `make test` runs, together."""
_folders: defaultdict[str, float] = defaultdict(float)
"""Of all tests of a folder together."""
_fixtures: dict[tuple[str, str], float] = {}
"""Of the fixtures that tests share, by file and name: whichever test comes first makes them."""


def clock() -> float:
    """Seconds of processor time so far, children's included."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[object]:
    before = clock()
    found = yield
    if fixturedef.scope != "function":
        _fixtures[request.node.nodeid, fixturedef.argname] = clock() - before
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    item.stash[BEGAN] = clock(), sum(_fixtures.values())
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[pytest.TestReport]:
    """The last report of a test tells its time, also to the process that handed it out."""
    if call.when == "teardown":
        began, made = item.stash[BEGAN]
        taken, file = clock() - began, item.nodeid.partition("::")[0]
        shared = [_fixtures.get((file, name), 0.0) for name in getattr(item, "fixturenames", ())]
        alone = taken - (sum(_fixtures.values()) - made) + sum(shared)
        item.user_properties.append((SECONDS, (item.stash[MEASURED_AS], taken, alone)))
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown" and SECONDS in (found := dict(report.user_properties)):
        name, taken, alone = found[SECONDS]
        _measured[name] = max(_measured[name], alone)
        if EXHAUSTIVE not in report.keywords:
            _cases[name] += taken
        _folders[name.partition("::")[0].rpartition("/")[0]] += taken


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("--measure") and not hasattr(session.config, "workerinput"):
        others = {name: taken for name, taken in measured_seconds().items() if name not in _measured and is_there(name)}
        every = sorted({**others, **_measured}.items())
        lines = [f"{taken:.2g} {name}" for name, taken in every if taken > WORTH_NOTING]
        MEASURED.write_text("\n".join(lines) + "\n", encoding="utf-8")


def is_there(name: str) -> bool:
    """Whether a test of this name still stands in its file."""
    file, _, rest = name.partition("::")
    return (ROOT / file).exists() and re.split(r"::|\.", rest.partition("[")[0])[-1] in (ROOT / file).read_text(
        encoding="utf-8"
    )


@pytest.fixture(autouse=True, scope="module")
def hasty(request: pytest.FixtureRequest) -> Iterator[None]:
    """Pictures that compute as much as seconds allow compute their least, but where they themselves are tested."""
    with pytest.MonkeyPatch.context() as patch:
        if "pictures" not in request.path.parts:
            ready.hasten(patch)
        yield


CACHES = (".", "__pycache__", "output", "_build", "reference", "spark-warehouse")
"""How the names begin of what .gitignore lists."""


@contextlib.contextmanager
def left_tidy(root: Path, who: str) -> Iterator[None]:
    """Fails if anything new lies at the top of the project or of one of its folders afterwards."""

    def lying() -> set[Path]:
        folders = [root, *(root / name for name in ("tests", "docs", "examples", "src"))]
        found = (each for folder in folders if folder.exists() for each in folder.iterdir())
        return {each for each in found if not each.name.startswith(CACHES)}

    before = lying()
    yield
    new = sorted(str(each.relative_to(root)) for each in lying() - before)
    assert not new, f"{who} left {', '.join(new)}: tests write into folders of their own, such as tmp_path"


@pytest.fixture(autouse=True, scope="module")
def tidy(request: pytest.FixtureRequest) -> Iterator[None]:
    """A file of tests, examples of documents included, leaves nothing beside the sources."""
    with left_tidy(ROOT, request.node.name):
        yield


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
    lines += [
        f"{taken:.1f} {SECONDS}, which tests/seconds.txt does not know: {name}"
        for name, taken in sorted(_cases.items(), key=lambda test: -test[1])
        if taken > 2 * SECONDS_OF_A_TEST and name not in measured_seconds()
    ]
    if terminalreporter.config.getoption("--measure"):
        parts = sorted(_folders.items(), key=lambda part: -part[1])
        lines.append(f"{SECONDS}: {sum(_folders.values()):.0f}; " + ", ".join(f"{a} {b:.0f}" for a, b in parts))
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
