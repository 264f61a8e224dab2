"""Whatever reads data: one file counts once, and what is said while data are read tells of no record."""

from __future__ import annotations

import array
import ast
import importlib.util
import inspect
import logging
import math
import os
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import privatest as pt
from privatest.engines import arrays, sources
from privatest.engines import arrays as frames
from privatest.engines import csv_fields as csv_files
from privatest.engines import files as paths
from privatest.engines.records import GUARDED_METHODS, Records, each_guarded, guarded
from privatest.errors import InvalidData, InvalidInput
from tests.engines import warehouses
from tests.engines.openers import FRAMES, OPENERS, SINGLE

TABLE = pa.table({"x": [0, 1] * 20, "arm": ["a"] * 20 + ["b"] * 20, "who": list(range(40))})
WRITERS: dict[str, Callable[[Path], object]] = {
    "csv": lambda path: path.write_text(
        "x,arm,who\n" + "".join(f"{row['x']},{row['arm']},{row['who']}\n" for row in TABLE.to_pylist())
    ),
    "parquet": lambda path: pa.parquet.write_table(TABLE, path),
    "feather": lambda path: pa.feather.write_feather(TABLE, str(path)),
}


def _beside(link: Callable[[Path, Path], object]) -> Callable[[Path], Path]:
    """A folder of a file and of what leads to it."""

    def made(file: Path) -> Path:
        link(file, file.with_name(f"latest{file.suffix}"))
        return file.parent

    return made


TWICE: dict[str, Callable[[Path], Any]] = {
    "folder with a link": _beside(lambda file, link: link.symlink_to(file.name)),
    "folder with a hard link": _beside(lambda file, link: os.link(file, link)),
    "glob over a link": lambda file: f"{_beside(lambda a, b: b.symlink_to(a.name))(file)}/*{file.suffix}",
    "path twice": lambda file: [file, file],
    "path twice, spelled in two ways": lambda file: [file, file.parent / ".." / file.parent.name / file.name],
    "file and its folder": lambda file: [file, file.parent],
    "folder reached by a link": lambda file: [_linked(file.parent), file],
}


def _linked(folder: Path) -> Path:
    other = folder.with_name("again")
    other.symlink_to(folder)
    return other


RATES = ("bernoulli(0.2)", "bernoulli(0.8)")
Words = dict[str, Any]
STATED = pt.block_test(lambda _: "null", n=8, alpha=0.1, beta=0.1, epsilon=1)
ENTRANCES: dict[str, Callable[[Any, Words, Words], object]] = {
    "run": lambda data, where, paid: pt.design(*RATES, epsilon=1, n=40).run(data, **where, **paid),
    "decide": lambda data, where, paid: pt.decide(data, *RATES, epsilon=1, **where, **paid),
    "estimate": lambda data, where, paid: pt.estimate(data, "bernoulli(?)", epsilon=1, **where, **paid),
    "groups": lambda data, where, paid: pt.compare_groups(data, group="arm", epsilon=1, **where, **paid),
    "groups, units": lambda data, where, paid: pt.compare_groups(
        data, group="arm", unit="who", epsilon=1, **where, **paid
    ),
    "fit": lambda data, where, paid: pt.goodness_of_fit(data, RATES[0], distance=0.3, epsilon=1, **where, **paid),
    "check": lambda data, where, _: pt.check(data, *RATES, **where),
    "detect": lambda data, where, paid: pt.detect_change(data, *RATES, epsilon=1, assume_change=True, **where, **paid),
    "function": lambda data, where, paid: pt.detect_change(data, test=STATED, assume_change=True, **where, **paid),
    "monitor": lambda data, where, _: pt.Monitor(*RATES, epsilon=1).update_many(data, **where),
    "sequential": lambda data, where, _: pt.Sequential(*RATES, epsilon=1).update_many(data, **where),
    "count": lambda data, where, _: pt.data.count_records(data, **where),
    "names": lambda data, _, __: pt.data.column_names(data),
}
UNORDERED = ("run", "decide", "estimate", "groups", "groups, units", "fit", "check")
"""What asks any source, a database's without an order among them, and looks at what its records hold."""


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("way", TWICE)
def test_one_file_that_is_reached_twice_is_refused_before_the_charge(form: str, way: str, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    WRITERS[form](folder / f"may.{form}")
    source = TWICE[way](folder / f"may.{form}")
    ledger = pt.Ledger(tmp_path / "ledger.db")
    ledger.grant("may", epsilon=5)
    for name, enter in ENTRANCES.items():
        for given in (source, pt.data.open_once(source)) if name != "names" else (source,):
            with pytest.raises(InvalidData, match="One file is reached twice"):
                enter(given, {"column": "x"}, {"ledger": ledger, "dataset": "may", "request": name})
    assert ledger.spent("may") == 0


@pytest.mark.parametrize("form", WRITERS)
def test_one_file_is_not_both_groups(form: str, tmp_path: Path) -> None:
    file = tmp_path / f"may.{form}"
    WRITERS[form](file)
    os.link(file, tmp_path / f"other.{form}")
    for other in (
        file,
        str(file),
        tmp_path / f"other.{form}",
        pt.data.open_once(file),
        pt.data.read_as(file, missing="NA"),
    ):
        with pytest.raises(InvalidData, match="both groups"):
            pt.compare_groups(file, other, column="x", epsilon=1)
    WRITERS[form](tmp_path / f"june.{form}")
    with pytest.raises(InvalidData, match="both groups"):  # whichever of several files it is
        pt.compare_groups([tmp_path / f"june.{form}", file], file, column="x", epsilon=1)
    with pytest.raises(InvalidData, match="both groups"):
        pt.compare_groups(TABLE, TABLE, column="x", epsilon=1)


def test_one_table_is_not_both_groups(tmp_path: Path) -> None:
    """However its address is written, and however it was opened."""
    with duckdb.connect(str(tmp_path / "a.db")) as connection:
        connection.register("given", TABLE)
        connection.execute("create table t as select * from given; create table other as select * from given")
    (tmp_path / "link.db").symlink_to(tmp_path / "a.db")
    (tmp_path / "hard.db").hardlink_to(tmp_path / "a.db")
    address = f"duckdb:///{tmp_path}/a.db"
    table = f"{address}::t"
    for other in (
        table,
        f"{address}::main.t",
        f"duckdb:///{tmp_path}/../{tmp_path.name}/a.db::t",
        f"duckdb:///{tmp_path}/link.db::t",
        f"duckdb:///{tmp_path}/hard.db::t",
        pt.data.open_once(table),
        pt.data.read_as(table, missing="NA"),
    ):
        with pytest.raises(InvalidData, match="both groups"):
            pt.compare_groups(table, other, column="x", epsilon=1)
    for place in ("a.db", "hard.db"):
        assert pt.compare_groups(table, f"duckdb:///{tmp_path}/{place}::other", column="x", epsilon=1).n == (40, 40)
    relation = duckdb.from_arrow(TABLE)
    with pytest.raises(InvalidData, match="both groups"):
        pt.compare_groups(relation, relation, column="x", epsilon=1)


WORDS = [str(i % 2) for i in range(64)]
TRUTHS = [i % 2 == 1 for i in range(64)]
VIEWED: dict[str, Callable[[], Any]] = {
    "NumPy": lambda: np.arange(64.0) % 2,
    "Arrow": lambda: pa.array(TRUTHS),
    "Arrow, texts": lambda: pa.array(WORDS),
    "Arrow, chunked": lambda: pa.chunked_array([[0, 1] * 12, [0, 1] * 20]),
    "polars": lambda: pl.Series("x", TRUTHS),
    "polars, texts": lambda: pl.Series("x", WORDS),
    "pandas": lambda: pd.Series([0.0, 1.0] * 32),
    "pandas, nullable": lambda: pd.Series(TRUTHS, dtype="boolean"),
    "pandas, Arrow": lambda: pd.Series([0, 1] * 32, dtype=pd.ArrowDtype(pa.int64())),
    "pandas, categories": lambda: pd.Series(WORDS, dtype="category"),
}


def _part(values: Any, first: int, last: int) -> Any:
    rows = getattr(values, "iloc", values)
    return values.slice(first, last - first) if isinstance(values, pa.Array | pa.ChunkedArray) else rows[first:last]


@pytest.mark.parametrize("kind", VIEWED)
def test_views_of_one_memory_are_not_both_groups(kind: str) -> None:
    """Two objects that lie in the same memory are the same people; two halves of it are not, nor are copies."""
    values = VIEWED[kind]()
    texts = "texts" in kind or "categories" in kind
    compare = partial(pt.compare_groups, epsilon=1, **({"success": "1"} if texts else {"outcome": "bernoulli(?)"}))
    for first, second in (((0, 64), (0, 64)), ((0, 40), (24, 64))):
        with pytest.raises(InvalidData, match="both groups"):
            compare(_part(values, *first), _part(values, *second))
    assert compare(_part(values, 0, 32), _part(values, 32, 64)).n == (32, 32)
    assert compare(values, VIEWED[kind]()).n == (64, 64)


class Wrapped:
    """An object that NumPy takes for an array."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        return self.values

    def __len__(self) -> int:
        return len(self.values)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ibis asks DuckDB in an old way
def test_one_buffer_or_query_is_not_both_groups() -> None:
    """Whatever objects it is reached through; two halves of a buffer are different people, and two tables are."""
    values = array.array("q", [0, 1] * 32)
    seen = np.frombuffer(values, dtype=np.int64)
    database = duckdb.connect()
    for name in ("t", "other"):
        database.execute(f"create table {name} as select i % 2 as x from range(40) as r(i)")
    connection = ibis.duckdb.from_connection(database)
    same = [(memoryview(values), memoryview(values)), (values, seen), (Wrapped(seen), Wrapped(seen[9:]))]
    apart = [(Wrapped(seen[:32]), seen[32:])]
    for table in (database.table, connection.table):
        same.append((table("t"), table("t")))
        apart.append((table("t"), table("other")))
    for one, other in same:
        with pytest.raises(InvalidData, match="both groups"):
            pt.compare_groups(one, other, epsilon=1, outcome="bernoulli(?)")
    for one, other in apart:
        assert pt.compare_groups(one, other, epsilon=1, outcome="bernoulli(?)").n in ((32, 32), (40, 40))


@pytest.mark.parametrize("name", [pytest.param("Spark", marks=warehouses.SPARK)])
def test_one_query_is_not_both_groups(name: str, tmp_path: Path) -> None:
    frame = warehouses.WAREHOUSES[name]({"x": [0.0, 1.0] * 20}, tmp_path)
    with pytest.raises(InvalidData, match="both groups"):
        pt.compare_groups(frame, frame.select("x"), epsilon=1, outcome="bernoulli(?)")
    halves = frame.filter("x < 1"), frame.filter("x > 0")
    assert pt.compare_groups(*halves, epsilon=1, outcome="bernoulli(?)").n == (20, 20)


CANARY = "CANARYx7051"
FLAGS = {
    "who": [f"p{i}" for i in range(40)],
    "arm": ["a", "b"] * 20,
    "s": ["0", "1", "1", "0"] * 9 + ["1", "0", "0", CANARY],
}


def _duckdb(_: Path) -> Any:
    connection = duckdb.connect()
    connection.register("raw", pa.table(FLAGS))
    return connection.sql("select who, arm, s::int as x, 'a' || (s::int)::text as g from raw")


def _ibis(folder: Path) -> Any:
    raw = warehouses.ibis_table(pa.table(FLAGS), folder)
    return raw.mutate(x=raw.s.cast("int64"))


def _postgres(_: Path) -> Any:
    rows = zip(*FLAGS.values(), strict=True)
    address = warehouses.new_table("who text, arm text, s text", *rows)
    database, _, name = address.rpartition("::")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"CREATE VIEW cast_{name} AS SELECT who, arm, s::int AS x FROM {name}".encode())
    return f"{database}::cast_{name}"


def _spark(_: Path) -> Any:
    frame = warehouses.spark().createDataFrame(
        list(zip(*FLAGS.values(), strict=True)), "who string, arm string, s string"
    )
    return frame.selectExpr("who", "arm", "cast(s AS int) AS x")


def _reader(_: Path) -> Any:
    """An Arrow stream that fails, warns and logs behind its first batch."""
    table = pa.table({**FLAGS, "x": [0, 1] * 20})

    def batches() -> Iterator[pa.RecordBatch]:
        yield table.to_batches()[0]
        _say()

    return pa.RecordBatchReader.from_batches(table.schema, batches())


def _say() -> None:
    warnings.warn(CANARY, stacklevel=2)
    logging.getLogger("a.library").error(CANARY)
    raise ValueError(CANARY)


def _cut_short(_: Path) -> Any:
    """A data frame whose column is of a library's type that fails when it is read."""

    class Column(pd.arrays.IntegerArray):  # type: ignore[misc]
        def to_numpy(self, *_: Any, **__: Any) -> Any:
            _say()

    mask = np.zeros(40, dtype=bool)
    return pd.DataFrame({**FLAGS, "x": Column(np.array([0, 1] * 20), mask)})


def _generated(_: Path) -> Any:
    def records() -> Iterator[int]:
        yield 0
        _say()

    return records()


FAILING: dict[str, Callable[[Path], Any]] = {
    "DuckDB": _duckdb,
    "DuckDB through Ibis": _ibis,
    "PostgreSQL": _postgres,
    "Spark": _spark,
    "Arrow stream": _reader,
    "pandas": _cut_short,
    "generator": _generated,
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [pytest.param(name, marks=warehouses.SPARK * (name == "Spark")) for name in FAILING])
def test_what_a_library_says_when_it_fails_reaches_nobody(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither its error, nor what it warns of, nor what it logs: each would quote the record that it failed at."""
    if kind == "Spark":
        warehouses.spark().sparkContext.setLogLevel("WARN")  # what it has unless somebody sets another one
    caplog.set_level(logging.DEBUG)
    single = kind == "generator"
    for name in UNORDERED:
        if single and name.startswith("groups"):
            continue
        with pytest.raises(InvalidData) as caught:
            ENTRANCES[name](FAILING[kind](tmp_path), {} if single else {"column": "x"}, {})
        told = "".join(traceback.format_exception(caught.value))
        assert CANARY not in told, name
        assert caught.value.__context__ is caught.value.__cause__ is None
    if kind == "Spark":
        warehouses.spark().sparkContext.setLogLevel("ERROR")
    heard = capfd.readouterr()
    assert CANARY not in heard.out + heard.err + caplog.text


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", OPENERS)
def test_what_is_said_while_records_in_files_and_in_memory_are_read_reaches_nobody(
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """As above, of a library that fails, warns and logs wherever a column of it is read."""
    source = OPENERS[kind]({"x": [0, 1] * 20, "arm": ["a", "b"] * 20, "who": list(range(40))}, tmp_path)
    for module in (arrays, csv_files, frames, paths, sources):
        for name in ("as_numpy", "as_floats", "_number", "arrow_records", "arrow_keys", "from_pandas", "from_polars"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, lambda *_, **__: _say())
    for name in UNORDERED:
        if kind in SINGLE and name.startswith("groups"):
            continue
        given = OPENERS[kind](TABLE.to_pydict(), tmp_path) if kind == "Arrow stream" else source
        with pytest.raises(InvalidData) as caught:
            ENTRANCES[name](given, {} if kind in SINGLE else {"column": "x"}, {})
        assert CANARY not in "".join(traceback.format_exception(caught.value)), name
        assert caught.value.__context__ is caught.value.__cause__ is None
    heard = capfd.readouterr()
    assert CANARY not in heard.out + heard.err + caplog.text


class Panic(BaseException):
    """As libraries in Rust raise: no Exception."""


@pytest.mark.parametrize("raised", [Panic, KeyboardInterrupt, SystemExit])
def test_a_panic_of_a_library_is_a_sentence_and_an_interrupt_is_one(raised: type[BaseException]) -> None:
    def records() -> Iterator[int]:
        yield 0
        raise raised(CANARY)

    for ask in (pt.data.count_records, lambda data: pt.estimate(data, "bernoulli(?)", epsilon=1)):
        with pytest.raises(InvalidData if raised is Panic else raised) as caught:
            ask(records())
        assert raised is not Panic or CANARY not in "".join(traceback.format_exception(caught.value))


SOURCE = Path(pt.__file__).parent
READS = set(
    "to_table to_arrow_table to_pyarrow to_pyarrow_batches read_table read_csv read_parquet read_feather open_csv "  # noqa: SIM905
    "ParquetFile iter_batches read_row_group open_file open_stream get_batch OSFile input_stream reader DictReader "
    "loadtxt fetchall fetchone collect toLocalIterator toArrow toPandas to_pandas to_numpy to_list to_pylist "
    "chunked_array __arrow_array__ to_reader scan_csv scan_parquet".split()
)
"""How libraries are asked for what records hold."""
READERS = {
    "engines/csv_fields.py": "rows of CSV files, inside `rows` and `structure`; lines of text",
    "engines/files.py": "rows of Parquet and Feather files: `rows` and `structure`",
    "engines/arrays.py": "columns of Arrow, pandas and polars: `open_source`, or questions of `StreamedRecords`",
    "engines/sources.py": "what speaks Arrow, and iterators of records: `open_source`",
    "engines/databases.py": "DuckDB, PostgreSQL, and others of Ibis: guarded methods of `SqlRecords`, `each_guarded`",
    "engines/spark.py": "Spark: methods of `SparkRecords`, each guarded; its runner also turns Spark's log off",
    "estimates/table.py": "no records: a noisy table that was written down",
}
"""All modules that ask libraries for records, and by which guard; each of these is `records.guarded` in the end."""


OPENS = {"open", "read_bytes", "stdin", "memmap", "urlopen"}
"""How files are opened without a library; of ``Path.read_text`` it is ``read_bytes`` that is used."""
FILES = {
    "engines/files.py": "records: CSV files and the first bytes of Feather files, inside `structure` and `rows`",
    "followed_file.py": "records: lines of `monitor` and `sequential`, bytes still, read by `line_records`",
    "cli/commands.py": "records: lines of standard input, as above",
    "streams/saved_state.py": "no records: a stream's own state",
    "ledger/store.py": "no records: the ledger",
    "cli/output.py": "no records: documents (--design, --problem) that were named as such; what is written",
    "cli/problem_file.py": "no records: whether an output may be written over",
    "report/html_page.py": "no records: writes",
    "studio/app.py": "no records: the page's own files, and the browser's start",
    "studio/job_queues.py": "no records: questions from the studio to its process",
    "studio/runs.py": "no records: writes what was uploaded, as it comes",
    "studio/worker.py": "no records: questions from the studio to its process",
}
"""All modules that open files by themselves."""


def _uses(names: set[str]) -> set[str]:
    """The modules that call functions, methods or attributes of these names."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text if any(name in text for name in names) else "")
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        used |= {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        if used & names:
            found.add(path.relative_to(SOURCE).as_posix())
    return found


@pytest.mark.parametrize(("names", "known"), [(READS, READERS), (OPENS, FILES)], ids=["libraries", "files"])
def test_every_reader_of_data_is_known_and_guarded(names: set[str], known: dict[str, str]) -> None:
    """A reader that is not listed is a second one: give it records' questions to answer, and it is guarded.

    Prints the list: ``pytest -s -k every_reader``.
    """
    found = _uses(names)
    print("", *(f"{module}: {known.get(module, 'UNKNOWN')}" for module in sorted(found)), sep="\n")
    assert found == known.keys()


def test_a_refusal_of_our_own_carries_no_error_of_a_library() -> None:
    """Neither as its cause nor as its context, where a debugger or a logger would find the record."""

    def read() -> None:
        try:
            raise ValueError(CANARY)
        except ValueError:
            raise InvalidData("A sentence of ours.")  # noqa: B904 - as code that forgets it would

    for ask in (lambda: guarded("Another.", read), lambda: next(each_guarded("Another.", lambda: map(len, [read()])))):  # type: ignore[func-returns-value, list-item]
        with pytest.raises(InvalidData, match="of ours") as caught:
            ask()
        assert caught.value.__context__ is caught.value.__cause__ is None


def test_every_question_of_every_kind_of_records_is_asked_unheard() -> None:
    def kinds(of: type) -> Iterator[type]:
        for one in of.__subclasses__():
            yield one
            yield from kinds(one)

    every = [one for one in kinds(Records) if one.__module__.startswith("privatest.")]
    for kind in every:
        for name in GUARDED_METHODS:
            assert name not in vars(kind) or getattr(vars(kind)[name], "guarded", False), (kind, name)
        told = {name for name, value in vars(kind).items() if inspect.isfunction(value) and not name.startswith("_")}
        assert told <= {*GUARDED_METHODS, *UNASKED}, kind
    assert len(every) >= 12


UNASKED = {"declared_groups", "parts", "part", "in_places", "consumed", "owners", "portions", "coded", "numbers"}
"""Methods that look at no record, and those that only the others call; portions are guarded one by one."""


class Odd:
    """A record whose own code fails, warns and logs, whatever it is asked."""

    __hash__ = __eq__ = __float__ = __str__ = __repr__ = __bool__ = __len__ = __iter__ = lambda *_: _say()  # type: ignore


NUMBERS = [None, math.nan, math.inf, -math.inf, 1e308, -1e-308, -0.0, 2.5, 78_051_234_567.0, -1.0]
TEXTS = [
    None,
    "",
    " ",
    "YES",
    "no ",
    "\0",
    '"',
    'a"b',
    "1,5",
    "x" * 140_000,
    "\u2028",
    "\ud7ff",
    "a\r\nb",
    "=1+1",
    "yes\t",
]
OBJECTS = [
    None,
    math.nan,
    [],
    {},
    set(),
    (1, 2),
    b"yes",
    "yes",
    1,
    True,
    10**400,
    Decimal("NaN"),
    object(),
    Odd(),
    pd.NA,
]


def _cells(kind: str) -> dict[str, Any]:
    """Rows of two groups whose first ones are odd."""
    plain: list[Any] = [0.0, 1.0, 1.0] if kind == "numbers" else ["yes", "no", "no"]
    odd: list[Any] = {"numbers": NUMBERS, "texts": TEXTS, "objects": OBJECTS}[kind]
    records = [*odd, *plain * 20]
    return {"x": records, "arm": ["a", "b"] * (len(records) // 2) + ["a"] * (len(records) % 2)}


PANDAS: dict[str, tuple[str, Callable[[Any, Path], Any]]] = {
    "pandas, objects": ("objects", lambda columns, _: pd.DataFrame(columns, dtype=object)),
    "pandas, categories": ("texts", lambda columns, _: pd.DataFrame(columns).astype("category")),
    "pandas, Arrow texts": ("texts", lambda columns, _: pd.DataFrame(columns).astype("string[pyarrow]")),
    "pandas, Arrow numbers": ("numbers", lambda columns, _: pd.DataFrame(columns).astype({"x": "double[pyarrow]"})),
    "pandas, nullable": ("numbers", lambda columns, _: pd.DataFrame(columns).astype({"x": "Float64"})),
    "pandas, texts": ("texts", lambda columns, _: pd.DataFrame(columns).astype({"x": "str"})),
    "polars, categories": ("texts", lambda columns, _: pl.DataFrame(columns).cast(pl.Categorical)),
    "Arrow, dictionary": ("texts", lambda columns, _: _dictionary(columns)),
}
CONTAINERS: dict[str, tuple[str, Callable[[Any, Path], Any]]] = {
    **{f"{name}, {kind}": (kind, made) for name, made in FRAMES.items() for kind in ("numbers", "texts")},
    **PANDAS,
    **{
        f"{name}, {kind}": (kind, made) for name, made in warehouses.WAREHOUSES.items() for kind in ("numbers", "texts")
    },
}


def _dictionary(columns: Any) -> pa.Table:
    return pa.table({name: pa.array(values).dictionary_encode() for name, values in columns.items()})


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=warehouses.SPARK * name.startswith("Spark")) for name in CONTAINERS]
)
def test_groups_of_odd_records_are_what_they_are_in_two_lists(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No record of either group, whatever it is, raises, is heard of, or moves another one into the other group."""
    kind, made = CONTAINERS[name]
    columns = _cells(kind)
    asked: dict[str, Any] = {"epsilon": 1, **({"above": 0.5} if kind == "numbers" else {"success": "yes"})}
    if name.startswith("PostgreSQL"):  # which has no such text
        columns["x"] = [None if record == "\0" else record for record in columns["x"]]
    arms = [[x for x, arm in zip(*columns.values(), strict=True) if arm == one] for one in "ab"]
    expected = pt.compare_groups(*arms, rng=np.random.default_rng(5), **asked)
    found = pt.compare_groups(made(columns, tmp_path), group="arm", column="x", rng=np.random.default_rng(5), **asked)
    assert (found.n, found.rates, found.pvalue) == (expected.n, expected.rates, expected.pvalue)
    assert found.names == ("a", "b")
    assert CANARY not in caplog.text


@pytest.mark.parametrize("units", [(0.0, -0.0), ("0.0", "-0.0"), ("7", "7.0"), ("007", " 7")])
def test_one_person_is_one_however_the_unit_is_written(units: tuple[Any, Any], tmp_path: Path) -> None:
    """As a number everywhere; as a text where it has no type, that is, in CSV files."""
    columns = {"x": [1, 1, 0, 0], "arm": ["a", "b", "a", "b"], "who": [*units, *(type(units[0])(f) for f in (3, 4))]}
    (tmp_path / "a.csv").write_text(
        "x,arm,who\n" + "".join(f"{x},{arm},{who}\n" for x, arm, who in zip(*columns.values(), strict=True))
    )
    sources: list[Any] = [tmp_path / "a.csv"]
    if isinstance(units[0], float):
        pa.parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
        connection = duckdb.connect()
        connection.register("raw", pa.table(columns))
        sources += [tmp_path / "a.parquet", pa.table(columns), pd.DataFrame(columns), pl.DataFrame(columns)]
        sources += [connection.sql("from raw"), warehouses.ibis_table(pa.table(columns), tmp_path)]
        sources += [warehouses.postgres_address(pa.table(columns), tmp_path)]
    for source in sources:
        with pytest.raises(InvalidData, match="both groups"):
            pt.compare_groups(source, group="arm", column="x", unit="who", epsilon=1)
        assert pt.data.count_records(source, column="x", unit="who") == 3


def _singles(folder: Path) -> list[Any]:
    """What may be handed over as one record, though it could be taken for several, or for a file of them."""
    WRITERS["csv"](folder / "a.csv")
    several: list[Any] = [
        [0, 0],
        [],
        (1, 2),
        (),
        {1, 2},
        frozenset({1}),
        {"x": 1},
        range(3),
        deque([0, 1]),
        b"01",
        "01",
    ]
    several += [np.array([1.0, 0.0]), np.zeros((2, 2)), np.array([]), np.float64(7), pd.Series([0, 1]), pl.Series([1])]
    return [
        *several,
        TABLE,
        iter([0, 1]),
        (one for one in (0, 1)),
        str(folder / "a.csv"),
        [folder / "a.csv"],
        Odd(),
        object(),
        math,
    ]


def _fed(made: Callable[[], Any], feed: str, first: Any) -> tuple[int, Any]:
    """How many records were seen, and what came out, of a stream that begins with a record."""
    one = made()
    records = [first, *[0, 1, 1, 0, 1, 0] * 3]
    for record in records:
        getattr(one, feed)(record)
        if getattr(one, "verdict", None) is not None:
            break
    watcher = getattr(one, "monitor", one)
    return watcher.seen, {name: value for name, value in watcher.to_dict().items() if name != "receipt"}


@cache
def _watchers() -> dict[str, tuple[Callable[[], Any], str]]:
    def seeded() -> np.random.Generator:
        return np.random.default_rng(4)

    plain = pt.Monitor(*RATES, epsilon=1)._plan
    fitted = pt.Monitor(RATES[0], distance=0.5, epsilon=5)._plan
    running = pt.Sequential(*RATES, epsilon=1)._plan
    found: dict[str, tuple[Callable[[], Any], str]] = {
        "Monitor": (lambda: pt.Monitor.of(plain, rng=seeded()), "update_one"),
        "Monitor, fit": (lambda: pt.Monitor.of(fitted, rng=seeded()), "update_one"),
        "Sequential": (lambda: pt.Sequential.of(running, rng=seeded()), "update_one"),
    }
    if importlib.util.find_spec("river"):
        from privatest.streams.river import PrivateDrift

        def drift() -> Any:
            made = PrivateDrift(*RATES, epsilon=1.0)
            made._monitor = pt.Monitor.of(plain, rng=seeded())
            return made

        found["river"] = (drift, "update")
    return found


@pytest.mark.parametrize("name", ["Monitor", "Monitor, fit", "Sequential", "river"])
def test_one_call_is_one_record_whatever_it_is(name: str, tmp_path: Path) -> None:
    """It moves nobody else's position, raises nothing, and counts as a record that makes no sense."""
    if name not in _watchers():
        pytest.skip("river is not installed")
    made, feed = _watchers()[name]
    seen, expected = _fed(made, feed, None)
    assert seen > 0
    for record in _singles(tmp_path):
        found = _fed(made, feed, record)
        assert found == (seen, expected), type(record)


def test_a_stream_takes_no_name_of_a_file_or_table_for_a_record(tmp_path: Path) -> None:
    """But for labels, and where one call is one record; there a path object is refused, by its type."""
    WRITERS["csv"](tmp_path / "one.csv")
    name = str(tmp_path / "one.csv")
    labels = ("categorical(yes=0.2, no=0.8)", "categorical(yes=0.8, no=0.2)")
    files = pt.Monitor({"one.csv": 0.2, "no": 0.8}, {"one.csv": 0.8, "no": 0.2}, epsilon=1)
    files.update("one.csv")
    assert files.seen == 1
    texts: list[Any] = [
        name,
        np.str_(name),
        name.encode(),
        "gone.parquet",
        "*.csv.gz",
        "postgresql://me@host/db::table",
    ]
    for made in (pt.Monitor, pt.Sequential):
        for pair in (RATES, labels):
            one = made(*pair, epsilon=1)
            for text in texts:
                with pytest.raises(InvalidInput, match=r"name of a file.*update_many"):
                    one.update(text)
            with pytest.raises(InvalidInput, match="path was given as a record"):
                one.update_one(Path(name))
            assert one.seen == 0
            for text in texts:
                one.update_one(text)
            assert one.seen == len(texts)
    if "river" in _watchers():
        with pytest.raises(InvalidInput, match="path was given as a record"):
            _watchers()["river"][0]().update(Path(name))
