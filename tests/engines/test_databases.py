"""Tables in DuckDB and PostgreSQL: the integers of NumPy to the last one, and nothing of a record in any error."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pytest

import privatest as pt
from privatest import engines
from privatest.engines import open_source
from privatest.engines.databases import SqlRecords
from privatest.engines.records import counting_score
from privatest.errors import InvalidData
from privatest.scores import Score
from tests.engines.catalogue import SCORES, first_rows
from tests.engines.extremes import EXTREMES, doubles, scores
from tests.engines.warehouses import WAREHOUSES, new_table, postgres

LINE = SCORES["line"].score
SQL = {name: opener for name, opener in WAREHOUSES.items() if name in ("DuckDB", "PostgreSQL")}


def expected(score: Score, numbers: list[Any]) -> list[int]:
    return [int(s) for s in score.of_numbers([math.nan if x is None else float(x) for x in numbers])]


@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("database", SQL)
def test_every_double_gets_the_score_it_has_in_memory(database: str, name: str, tmp_path: Path) -> None:
    cells, numbers = EXTREMES[name], doubles(EXTREMES[name])
    source = SQL[database]({"x": numbers, "when": list(range(len(numbers)))}, tmp_path)
    records = open_source(source, column="x", order="when")
    for number, score in enumerate(scores(cells)):
        assert dict(zip(map(repr, numbers), records.series(score), strict=True)) == dict(
            zip(map(repr, numbers), expected(score, numbers), strict=True)
        )
        if number % 2 == 0:
            assert records.total(score) == sum(expected(score, numbers))
    index = cells.index(np.array([math.nan if x is None else x for x in numbers]))
    assert records.histogram(cells) == np.bincount(index, minlength=cells.count + 1).tolist()


@pytest.mark.parametrize("database", SQL)
def test_a_total_is_one_query_and_counts_too(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    plain = SqlRecords._run
    monkeypatch.setattr(SqlRecords, "_run", lambda self, query: (asked.append(query), plain(self, query))[1])
    for score in (LINE, SCORES["dyadic"].score, SCORES["infinite ratios"].score):
        asked.clear()
        records = open_source(SQL[database]({"x": [0.0, None, 1.0]}, tmp_path))
        records.total(score)
        assert (records.count(), len(asked)) == (3, 1)
        records.histogram(score.cells)
        assert len(asked) == 2


def test_numbers_that_no_double_holds_do_not_raise() -> None:
    """PostgreSQL's numeric is unbounded, and its own cast to a double raises for these."""
    largest, half = 2**1024 - 2**970, Decimal(2) ** -1075
    odd: list[Any] = ["1e400", "-1e400", "NaN", "Infinity", "-Infinity", largest, -largest]
    near = [largest - 1, -largest + 1]
    zero = ["1e-400", "-1e-400", 0, "1e-324"]
    address = new_table("x numeric", *((str(value),) for value in [*odd, *near, *zero, half * 3]))
    numbers = [*[math.nan] * len(odd), 1.7976931348623157e308, -1.7976931348623157e308, *[0.0] * len(zero), 5e-324]
    score = scores(EXTREMES["bounded"])[1]
    assert engines.total(score, address) == sum(expected(score, numbers))


LABELS = SCORES["text labels"].score


@pytest.mark.parametrize("database", SQL)
def test_an_empty_table_has_nothing(database: str, tmp_path: Path) -> None:
    table = pa.table(
        {"x": pa.array([], pa.float64()), "when": pa.array([], pa.int64()), "who": pa.array([], pa.int64())}
    )
    for words in ({}, {"unit": "who"}):
        source = SQL[database](table, tmp_path)
        chosen = {"column": "x", "order": "when", **words}
        records = open_source(source, **chosen)
        assert (records.count(), records.total(LINE)) == (0, 0)
        assert not any(records.histogram(LINE.cells, first_rows))
        placed: Any = records.in_places() if words else records  # type: ignore[attr-defined]
        assert placed.block_totals(LINE, 2) == []
        assert placed.series(LINE).dtype == np.int64
        assert not placed.series(LINE).size


def test_wrong_structure_is_an_error(tmp_path: Path) -> None:
    source = WAREHOUSES["DuckDB"]({"amount": [1.0], "name": ["a"], "x": [0.5]}, tmp_path)
    for words, message in [
        ({"column": "amout"}, r"No column 'amout' in the table. Did you mean 'amount'\?"),
        ({"column": "x", "unit": "nam"}, r"No column 'nam' in the table. Did you mean 'name'\?"),
        ({"column": "x", "order": "amounts"}, "Did you mean 'amount'"),
        ({}, "3 columns"),
    ]:
        with pytest.raises(InvalidData, match=message):
            engines.total(LINE, source, **words)
    with pytest.raises(InvalidData, match="text"):
        engines.total(LINE, source, column="name")
    with pytest.raises(InvalidData, match="numbers"):
        engines.total(LABELS, source, column="x")
    nested = duckdb.connect().query("SELECT [1] AS x, DATE '2024-01-01' AS d, 'a'::BLOB AS b, 1 AS n")
    for column in ("x", "d", "b"):
        with pytest.raises(InvalidData, match="type"):
            engines.total(LINE, nested, column=column)
    with pytest.raises(InvalidData, match="units of type"):
        open_source(nested, column="n", unit="x")
    with pytest.raises(InvalidData, match="an order of type"):
        open_source(nested, column="n", order="b")


def test_ibis_tables_columns_and_what_is_neither(tmp_path: Path) -> None:
    file = WAREHOUSES["DuckDB through Ibis"]({"x": [0.25, None, 2.0], "when": [3, 1, 2]}, tmp_path)
    wanted = expected(LINE, [None, 2.0, 0.25])
    records = open_source(file, column="x", order="when")
    assert (records.count(), records.total(LINE), records.series(LINE).tolist()) == (3, sum(wanted), wanted)
    assert records.block_totals(LINE, 2) == [sum(wanted[:2])]
    table = ibis.memtable(pa.table({"x": [0.25, 2.0], "y": [1, 2]}))
    assert engines.total(LINE, table, column="x") == sum(expected(LINE, [0.25, 2.0]))
    assert engines.total(LINE, table.x) == sum(expected(LINE, [0.25, 2.0]))
    assert engines.total(LINE, table.filter(table.y > 1), column="x") == sum(expected(LINE, [2.0]))
    with pytest.raises(InvalidData, match="Pass a table or a column"):
        engines.total(LINE, table.x.sum())
    with pytest.raises(InvalidData, match="belongs to no database"):
        engines.total(LINE, ibis.table({"x": "float64"}, name="nowhere"))


def test_addresses(tmp_path: Path) -> None:
    address = WAREHOUSES["DuckDB file"]({"x": [0.25, 2.0]}, tmp_path)
    assert engines.total(LINE, address) == sum(expected(LINE, [0.25, 2.0]))
    assert engines.total(LINE, address.replace("::", "::main.")) == sum(expected(LINE, [0.25, 2.0]))
    (tmp_path / "no.db").write_bytes(b"not a database" * 100)
    with pytest.raises(InvalidData, match=r"No table 'recods' in .* Did you mean 'records'\?"):
        engines.total(LINE, address.replace("records", "recods"))
    for wrong, message in [
        (address.partition("::")[0], "no table"),
        (f"duckdb:///{tmp_path}/missing.db::t", "No DuckDB file"),
        (f"duckdb:///{tmp_path}/no.db::t", "cannot be opened"),
        ("postgresql://me:secret4711@127.0.0.1:9/claims::t", "cannot be reached"),
        ("gopher://hole::t", "does not know addresses"),
    ]:
        with pytest.raises(InvalidData, match=message) as caught:
            open_source(wrong)
        assert "secret4711" not in str(caught.value)
        assert "\n" not in str(caught.value)
    schema = postgres().new_schema()
    name = schema.rpartition("%3D")[2]
    postgres().execute(f"CREATE TABLE {name}.few (x double precision); INSERT INTO {name}.few VALUES (0.25)")
    assert engines.total(LINE, f"{postgres().url()}::{name}.few") == sum(expected(LINE, [0.25]))
    assert engines.total(LINE, f"{schema}::{name}.few") == sum(expected(LINE, [0.25]))


def test_any_other_database_of_ibis(tmp_path: Path) -> None:
    """SQLite: no NaN, no arrays, no types to speak of."""
    numbers = [*np.random.default_rng(2).normal(0, 2, 60).tolist(), 1e300, -1e300, 5e-324, None]
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection:
        connection.execute("CREATE TABLE t (x REAL, who INTEGER, day INTEGER)")
        rows = [(x, place % 9, place) for place, x in enumerate(numbers)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        connection.commit()
    address = f"sqlite:///{tmp_path}/a.sqlite::t"
    for name in ("line", "dyadic", "bounded", "integers", "number labels"):
        score = SCORES[name].score
        wanted = expected(score, numbers)
        records = open_source(address, column="x", order="day")
        assert records.series(score).tolist() == wanted
        assert records.total(score) == sum(wanted)
        assert records.block_totals(score, 7) == [sum(wanted[i : i + 7]) for i in range(0, len(wanted) - 6, 7)]
        units = open_source(address, column="x", unit="who", max_rows_per_unit=2)
        there = WAREHOUSES["DuckDB"]({"x": numbers, "who": [place % 9 for place in range(len(numbers))]}, tmp_path)
        assert units.total(score) == engines.total(score, there, column="x", unit="who", max_rows_per_unit=2)


@pytest.mark.parametrize("encoding", ["WIN1252", "LATIN1", "SQL_ASCII", "EUC_JP"])
def test_text_in_another_encoding_than_utf8_is_refused_before_the_charge(encoding: str, tmp_path: Path) -> None:
    """A byte may stand for no character there, as 129 in WIN1252, and to convert the record that has it would raise."""
    url = postgres().new_database(f"ENCODING '{encoding}' LOCALE 'C'")
    byte = "81" if encoding == "WIN1252" else "61"
    postgres().execute(
        "CREATE TYPE mood AS ENUM ('a', 'b'); CREATE TABLE t (x text, m mood, n double precision, day int); "
        f"INSERT INTO t VALUES (convert_from('\\x{byte}'::bytea, '{encoding}'), 'a', 0.25, 1), ('b', 'b', 2, 2)",
        url,
    )
    test = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=2)
    ledger = pt.Ledger(tmp_path / "ledger.db")
    ledger.grant("claims", epsilon=10)
    words: list[dict[str, str]] = [{"column": "x"}, {"column": "m"}, {"column": "n", "group": "x"}]
    for one in [*words, {"column": "n", "unit": "x"}, {"column": "n", "order": "x"}]:
        with pytest.raises(InvalidData, match=f"Column '[xm]' has text in the encoding {encoding}"):
            open_source(f"{url}::t", **one)
    with pytest.raises(InvalidData, match=f"encoding {encoding}"):
        test.run(f"{url}::t", column="m", ledger=ledger, dataset="claims", request="r")
    assert ledger.spent("claims") == 0
    assert engines.total(LINE, f"{url}::t", column="n", unit="day") == sum(expected(LINE, [0.25, 2]))
    assert open_source(f"{url}::t", column="n", order="day").series(LINE).tolist() == expected(LINE, [0.25, 2])


@contextmanager
def through_ibis(url: str) -> Iterator[Any]:
    """A connection of Ibis to a test server's database."""
    database, _, host = url.partition("@/")[2].partition("?host=")
    connection = ibis.postgres.connect(user="postgres", database=database, host=host)
    try:
        yield connection
    finally:
        connection.disconnect()


STRUCTURE = """
CREATE DOMAIN share AS numeric(5, 2) CHECK (value < 100); CREATE DOMAIN part AS share;
CREATE TYPE mood AS ENUM ('zz', 'b', 'a'); CREATE DOMAIN temper AS mood;
CREATE TABLE "a.b" (x part, m mood, t temper, "c.d" double precision, cash money, o oid, j json, p point, z timetz);
INSERT INTO "a.b" VALUES (0.25, 'a', 'zz', 1, 3, 4, '5', '(1,2)', '00:00+00');
INSERT INTO "a.b" VALUES (2.5, 'b', NULL, 2, 3, 4, '5', '(1,2)', NULL);
CREATE MATERIALIZED VIEW kept AS SELECT * FROM "a.b";
CREATE SCHEMA "s.t"; CREATE VIEW "s.t"."u.v" AS SELECT * FROM "a.b";
"""


def test_what_the_type_can_refuse_is_refused_before_the_charge(tmp_path: Path) -> None:
    url = postgres().new_database("")
    postgres().execute(STRUCTURE, url)
    ledger = pt.Ledger(tmp_path / "ledger.db")
    ledger.grant("claims", epsilon=10)
    for name in ("cash", "o", "j", "p"):
        ledger.grant(f"persons {name}", epsilon=10, unit=name)
    test = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=2)
    change = pt.design_change("normal(0, 1)", "normal(1, 1)", epsilon=1, n=400)
    refused: list[dict[str, str]] = [{"column": name} for name in ("cash", "o", "j", "p", "z")]
    refused += [{"column": "x", "unit": name} for name in ("cash", "o", "j", "p")]
    refused += [{"column": "x", "order": name} for name in ("cash", "o", "j", "p", "z")]
    with through_ibis(url) as connection:
        kept = connection.table("kept")  # Ibis takes oid for a number, and money for a decimal
        for source, words in product((f"{url}::a.b", kept, kept.filter(kept["c.d"] > 0)), refused):
            made = change if "order" in words else test
            dataset = f"persons {words['unit']}" if "unit" in words else "claims"
            with pytest.raises(InvalidData, match=r"type (money|oid|json|point|timetz)"):
                made.run(source, **words, ledger=ledger, dataset=dataset, request=str(words))
        assert engines.total(LINE, kept, column="x", order="t") == sum(expected(LINE, [0.25, 2.5]))
        more = kept.inner_join(ibis.memtable(pa.table({"c.d": [1.0], "y": [7]})), "c.d")
        assert engines.total(LINE, more, column="x") == sum(expected(LINE, [0.25]))
    assert ledger.spent("claims") == 0


def growing(database: str) -> tuple[Any, Callable[[], None]]:
    """A table of three rows, and how three more come in."""
    columns, insert = (
        "x double precision, who int, day int",
        "INSERT INTO {} VALUES (0.1, 1, 7), (0.2, 5, 5), (0.3, 3, 6)",
    )
    first = [(0.1, 1, 1), (0.2, 2, 2), (0.3, 3, 3)]
    if database == "PostgreSQL":
        address = new_table(columns, *first)
        return address, lambda: postgres().execute(insert.format(address.rpartition("::")[2]))
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t ({columns})")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?)", first)
    return connection.table("t"), lambda: connection.execute(insert.format("t"))


@pytest.mark.parametrize("cut", [{}, {"unit": "who", "max_rows_per_unit": 1}])
@pytest.mark.parametrize("database", SQL)
def test_rows_that_arrive_meanwhile_are_in_count_and_sum_or_in_neither(database: str, cut: dict[str, Any]) -> None:
    source, insert = growing(database)
    records = open_source(source, column="x", **cut)
    records.check(LINE)
    assert records.count() == 3
    insert()
    assert (records.total(LINE), records.count()) == (sum(expected(LINE, [0.1, 0.2, 0.3])), 3)
    source, insert = growing(database)
    records = open_source(source, column="x", **cut)
    records.check(counting_score(LINE.cells))
    assert records.count() == 3
    insert()
    assert (sum(records.histogram(LINE.cells, first_rows)), records.count()) == (3, 3)
    with pytest.raises(InvalidData, match="changed while they were read"):
        records.total(LINE)  # another sum is another reading
    source, insert = growing(database)
    records = open_source(source, column="x", order="day", **cut)
    if cut:
        records = records.in_places()  # type: ignore[attr-defined]
    assert records.count() == 3
    insert()
    for ask in (records.series, lambda score: records.block_totals(score, 2)):
        with pytest.raises(InvalidData, match="changed while they were read"):
            ask(LINE)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("database", SQL)
def test_a_run_sees_one_state_of_the_table(database: str, neighbours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    test = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=3, neighbours=neighbours)
    monkeypatch.setattr(type(test.noise), "draw", lambda _self, _source: Fraction(0))
    source, insert = growing(database)
    check = pt.results.PrivateTest.check
    with monkeypatch.context() as meanwhile:  # rows come in between the check and the sum
        meanwhile.setattr(pt.results.PrivateTest, "check", lambda self, records: (check(self, records), insert()))
        found = test.run(source, column="x").statistic
    three = test.run([0.1, 0.2, 0.3]).statistic
    six = test.run([0.1, 0.2, 0.3] * 2).statistic if neighbours == "add-remove" else None
    assert found in (three, six)


@pytest.mark.parametrize("database", SQL)
def test_more_rows_of_a_unit_than_a_database_can_count(database: str, tmp_path: Path) -> None:
    source = SQL[database]({"x": [0.1, 0.2], "who": [1, 1]}, tmp_path)
    for most in (2**20 - 1, 2**62, 2**63 - 1):
        assert open_source(source, column="x", unit="who", max_rows_per_unit=most).count() == 2
