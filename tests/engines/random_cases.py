"""Random tables of odd types, with units, orders and missing values together: each engine against plain lists.

    python -m tests.engines.random_cases --cases 300 --engine postgres

A table has records, units and an order of types that the engine draws: domains, enumerations, padded and collated
texts, numerics without bounds, dates beyond all calendars. What is due is computed row by row, in plain Python, from
the rules of docs/engines.md alone. Every case is made from its number, so that a difference can be had again: --first.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import psycopg

from privatest.engines import open_source
from privatest.errors import InvalidData
from privatest.scores import LabelCells, Score
from tests.engines.catalogue import SCORES, STRANGE, first_rows
from tests.engines.warehouses import postgres, spark

__all__ = ["ENGINES", "Difference", "differences"]

TIED = "equal values on both sides of a block's end"
LABELS = ("a", "b", "")
TEXTS = (*LABELS, "A", " a", "a ", "aa", "B", "10", "9", "1", "\u00e4", "z", "\u00e5", "\U0001f600", "a'\\b", "%")
ENUM = ("zz", "b", "a", "A", "")
DAYS = (0, 1, -1, 19_000, 19_001, -700_000, 2_932_897, 5_000_000)
# Among them the hours around both changes of the clock in Berlin, 2024, and years that Python does not have.
MICROS = tuple(
    1_000_000 * second
    for second in (
        0,
        1,
        -1,
        *range(1_729_983_600, 1_729_994_401, 1800),
        *range(1_711_845_000, 1_711_852_201, 900),
        2**38,
    )
)


@dataclass(frozen=True)
class Kind:
    """A type of an engine: how it is declared, the values a column may have, and how one is written."""

    declared: str
    values: tuple[Any, ...]
    write: Callable[[Any], str] = str
    narrow: Callable[[Any], Any] = lambda value: value  # what is left of a value in this type


def _stripped(text: str) -> str:
    return text.rstrip(" ")


def _single(value: Any) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value))


INTEGERS = (0, 1, 2, 3, 9, -2, 60)
LONG = (*INTEGERS, 2**53 + 1, -(2**63), 2**63 - 1, 2**60, 2**60 + 1)
FLOATS = (0.0, -0.0, 0.5, 0.1, 1.0, 2.75, -2.0, 0.25, -1.5, *STRANGE)
SINGLES = tuple(x for x in FLOATS if not math.isfinite(x) or x == 0 or 1e-30 < abs(x) < 1e30)
SHORT_DECIMALS = tuple(Decimal(text) for text in ("0", "1", "2.000", "0.5", "0.25", "-1.5", "3.125", "-2", "0.001"))
LONG_DECIMALS = (*SHORT_DECIMALS, *(Decimal(text) for text in ("12345678901234567.891", "98765432109876543.219")))
NUMERICS = (
    *LONG_DECIMALS,
    *(Decimal(text) for text in ("NaN", "1e400", "-1e400", "Infinity", "1e-400", "1.0", "1.00")),
)
UUIDS = tuple(str(uuid.UUID(int=number)) for number in range(5))
TRUTHS = (True, False)


POSTGRES = {
    "number": [
        Kind("boolean", TRUTHS),
        Kind("smallint", INTEGERS),
        Kind("bigint", LONG),
        Kind("real", SINGLES, repr, _single),
        Kind("double precision", FLOATS, repr),
        Kind("numeric", NUMERICS),
        Kind("numeric(25, 3)", LONG_DECIMALS),
        Kind("random_share", SHORT_DECIMALS),
    ],
    "text": [
        Kind("text", TEXTS),
        Kind('text COLLATE "da-x-icu"', TEXTS),
        Kind("text COLLATE random_numeric", TEXTS),
        Kind("text COLLATE random_caseless", TEXTS),
        Kind("varchar(8)", TEXTS),
        Kind("char(4)", TEXTS, str, _stripped),
        Kind("random_mood", ENUM),
        Kind("random_word", TEXTS),
        Kind("name", TEXTS),
    ],
    "time": [
        Kind("date", (*DAYS, math.inf, -math.inf), lambda days: _moment(days, "day")),
        Kind("timestamp", (*MICROS, math.inf, -math.inf), lambda micros: _moment(micros, "microsecond")),
        Kind("timestamptz", (*MICROS, math.inf), lambda micros: _moment(micros, "microsecond", "+00")),
    ],
    "other": [
        Kind("uuid", UUIDS),
        Kind("bytea", UUIDS, lambda text: "\\\\x" + text.encode().hex()),
        Kind("inet", ("::1", "::2")),
    ],
}
DUCKDB = {
    "number": [
        Kind("BOOLEAN", TRUTHS),
        Kind("TINYINT", INTEGERS),
        Kind("UBIGINT", (0, 1, 2, 3, 2**64 - 1)),
        Kind("HUGEINT", (*LONG, 2**100 + 2**47 + 1, -(2**100) - 2**47 - 1, 10**38)),
        Kind("REAL", SINGLES, repr, _single),
        Kind("DOUBLE", FLOATS, repr),
        Kind("DECIMAL(25, 3)", LONG_DECIMALS),
    ],
    "text": [
        Kind("VARCHAR", (*TEXTS, "a\0", "\0")),
        Kind("VARCHAR COLLATE NOCASE", TEXTS),
        Kind("VARCHAR COLLATE DE", TEXTS),
        Kind("ENUM('zz', 'b', 'a', 'A', '')", ENUM),
    ],
    "time": [
        Kind("DATE", (*DAYS, math.inf, -math.inf), lambda days: _moment(days, "day")),
        Kind("TIMESTAMP", (*MICROS, math.inf), lambda micros: _moment(micros, "microsecond")),
        Kind("TIMESTAMPTZ", MICROS, lambda micros: _moment(micros, "microsecond", "+00")),
    ],
    "other": [Kind("UUID", UUIDS), Kind("BLOB", UUIDS)],
}
SPARK = {
    "number": [
        Kind("cast({} AS boolean)", TRUTHS),
        Kind("cast({} AS tinyint)", INTEGERS),
        Kind("cast({} AS bigint)", LONG),
        Kind("cast({} AS float)", SINGLES, repr, _single),
        Kind("cast({} AS double)", FLOATS, repr),
        Kind("cast({} AS decimal(38, 0))", (*LONG, 2**100 + 2**47 + 1)),
        Kind("cast({} AS decimal(25, 3))", LONG_DECIMALS),
    ],
    "text": [
        Kind("{}", (*TEXTS, "a\0", "\0")),
        Kind("collate({}, 'UTF8_LCASE')", TEXTS),
        Kind("collate({}, 'DE_CI')", TEXTS),
        Kind("rpad({}, 4, ' ')", TEXTS, str, _stripped),  # as Spark reads char(4)
    ],
    "time": [
        Kind("date_from_unix_date(cast({} AS int))", DAYS),
        Kind("timestamp_micros(cast({} AS bigint))", MICROS),
        Kind(
            "timestamp_ntz'1970-01-01' + make_dt_interval(0, 0, 0, cast({} AS bigint) / 1000000)",
            tuple(micros for micros in MICROS if abs(micros) < 10**16),
        ),
    ],
    "other": [Kind("cast({} AS binary)", UUIDS)],
}


def _moment(count: float, step: str, zone: str = "") -> str:
    """A date or time as PostgreSQL and DuckDB read it, also where Python has none."""
    if math.isinf(count):
        return "infinity" if count > 0 else "-infinity"
    days, rest = divmod(int(count), 1 if step == "day" else 86_400_000_000)
    year, month, day = _calendar(days)
    text = f"{year if year > 0 else 1 - year:04d}-{month:02d}-{day:02d}"
    if step != "day":
        seconds, micros = divmod(rest, 1_000_000)
        text += f" {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{micros:06d}{zone}"
    return text if year > 0 else f"{text} BC"


def _calendar(days: int) -> tuple[int, int, int]:
    """Year, month and day of so many days after 1970-01-01, in the Gregorian calendar without an end."""
    era, day = divmod(days + 719_468, 146_097)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    shown = month + 3 if month < 10 else month - 9
    return year + era * 400 + (shown <= 2), shown, day - (153 * month + 2) // 5 + 1


@dataclass(frozen=True)
class Case:
    """A table: the kinds of its columns, and its rows of (record, unit, order), each None where it is missing."""

    number: int
    score: Score
    kinds: tuple[Kind, Kind, Kind]
    rows: list[tuple[Any, Any, Any]]
    unit: bool
    order: bool
    most: int
    block: int
    start: int

    @property
    def words(self) -> dict[str, Any]:
        cut = {"unit": "who", "max_rows_per_unit": self.most} if self.unit else {}
        return {"column": "x", **cut, **({"order": "day"} if self.order else {})}

    def __str__(self) -> str:
        names = " | ".join(kind.declared for kind in self.kinds)
        return (
            f"case {self.number}: {names}, {len(self.rows)} rows, {self.words}, block {self.block}, start {self.start}"
        )


NUMERIC_SCORES = [name for name, case in SCORES.items() if case.numbers]


def make_case(number: int, types: dict[str, list[Kind]]) -> Case:
    """The case of that number."""
    rng = np.random.default_rng([20_241_027, number])

    def pick(found: list[Kind]) -> Kind:
        return found[int(rng.integers(len(found)))]

    text = rng.random() < 0.35
    record = pick(types["text" if text else "number"])
    unit = pick([*types["number"], *types["text"], *types["time"], *types["other"]])
    order = pick([*types["number"], *types["text"], *types["time"], *types["time"]])
    score = SCORES["text labels" if text else NUMERIC_SCORES[int(rng.integers(len(NUMERIC_SCORES)))]].score
    size = int(rng.choice([0, 1, 7, 30, 60], p=[0.03, 0.07, 0.2, 0.35, 0.35]))

    def column(kind: Kind, missing: float) -> list[Any]:
        pool = [kind.values[i] for i in rng.permutation(len(kind.values))[: int(rng.integers(2, 12))]]
        return [None if rng.random() < missing else pool[int(rng.integers(len(pool)))] for _ in range(size)]

    rows = list(zip(column(record, 0.1), column(unit, 0.15), column(order, 0.1), strict=True))
    block = int(rng.choice([1, 2, 5, 11, 20]))
    chosen = rng.random(2) < 0.8
    return Case(
        number,
        score,
        (record, unit, order),
        rows,
        bool(chosen[0]),
        bool(chosen[1]),
        int(rng.integers(1, 5)),
        block,
        int(rng.integers(0, 4)),
    )


def _key(kind: Kind, value: Any) -> Any:
    """A unit or an order as the rules compare it; None where it is missing."""
    value = None if value is None else kind.narrow(value)
    if value is None or value != value:
        return None
    if isinstance(value, str):
        return value.encode()
    return Fraction(value) if math.isfinite(value) else float(value)


def _of(case: Case, value: Any) -> tuple[int, int]:
    """Score and cell of a record."""
    cells = case.score.cells
    value = None if value is None else case.kinds[0].narrow(value)
    if isinstance(cells, LabelCells) and (value is None or isinstance(value, str)):
        cell = cells.index_of(value)
    else:
        cell = int(cells.index(np.array([math.nan if value is None else float(value)]))[0])
    return int(case.score.table[cell]), cell


def _rows(case: Case, place: int) -> dict[Any, list[tuple[int, tuple[bool, Any]]]]:
    """(value, order) of each unit's rows, the value being score (place 0) or cell (place 1); None has nobody's."""
    rows: dict[Any, list[tuple[int, tuple[bool, Any]]]] = {}
    for number, (record, unit, order) in enumerate(case.rows):
        at = _key(case.kinds[2], order) if case.order else None
        whose = _key(case.kinds[1], unit) if case.unit else number
        rows.setdefault(whose, []).append((_of(case, record)[place], (at is None, 0 if at is None else at)))
    return rows


def _placed(case: Case) -> list[tuple[int, tuple[bool, Any]]]:
    """(score, order) of all rows in order; those after the first rows of their unit, and nobody's, with the odd one."""
    found = []
    for whose, own in _rows(case, 0).items():
        counting = 0 if whose is None else case.most if case.unit else 1
        own.sort(key=lambda row: (row[1], row[0]))
        found += [(score if i < counting else case.score.odd_score, at) for i, (score, at) in enumerate(own)]
    return sorted(found, key=lambda row: (row[1], row[0]))


def expected(case: Case) -> dict[str, Any]:
    """What every engine must say of the case."""
    most = case.most if case.unit else 1
    own = [[score for score, _ in rows] for whose, rows in _rows(case, 0).items() if whose is not None]
    exact = sum((Fraction(min(len(scores), most) * sum(scores), len(scores)) for scores in own), Fraction(0))
    cells = [0] * (case.score.cells.count + 1)
    for whose, rows in _rows(case, 1).items():
        for cell, _ in [] if whose is None else sorted(rows)[:most]:
            cells[cell] += 1
    count = sum(min(len(scores), most) for scores in own)
    found: dict[str, Any] = {"count": count, "total": math.floor(exact + Fraction(1, 2)), "cells": cells}
    if case.order:
        rows = _placed(case)
        used = rows[case.start :]
        ends = range(case.block, len(used) + 1, case.block)
        tied = any(used[end - 1][1] == used[end][1] for end in ends[:-1])
        found["series"] = [score for score, _ in rows]
        found["blocks"] = TIED if tied else [sum(score for score, _ in used[end - case.block : end]) for end in ends]
    return found


def findings(case: Case, source: Any, *, few: bool = False) -> dict[str, Any]:
    """What an engine says of the case; of an engine that takes its time, not everything each time."""
    records = open_source(source, **case.words)
    records.check(case.score)
    found: dict[str, Any] = {"count": records.count(), "total": records.total(case.score)}
    if not (few and case.number % 5):
        found["cells"] = records.histogram(case.score.cells, first_rows)
    if not case.order:
        return found
    placed: Any = records.in_places() if case.unit else records  # type: ignore[attr-defined]
    placed.check(case.score)
    if not (few and case.number % 2):
        found["series"] = placed.series(case.score).tolist()
    if not (few and not case.number % 2):
        try:
            found["blocks"] = placed.block_totals(case.score, case.block, case.start)
        except InvalidData as error:
            found["blocks"] = TIED if "does not order the records" in str(error) else str(error)
    return found


def _written(case: Case) -> Iterator[tuple[str | None, ...]]:
    for row in case.rows:
        yield tuple(None if v is None else kind.write(v) for kind, v in zip(case.kinds, row, strict=True))


_numbers = itertools.count()


def _postgres_table(case: Case) -> str:
    server = postgres()
    with psycopg.connect(server.url(), autocommit=True) as connection:
        if connection.execute("SELECT to_regtype('random_mood')").fetchone() == (None,):
            words = ", ".join(f"'{word}'" for word in ENUM)
            for statement in (
                f"CREATE TYPE random_mood AS ENUM ({words})",
                "CREATE DOMAIN random_share AS numeric(6, 3) CHECK (value < 100)",
                "CREATE DOMAIN random_word AS text",
                "CREATE COLLATION random_numeric (provider = icu, locale = 'en-u-kn-true')",
                "CREATE COLLATION random_caseless (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
            ):
                connection.execute(statement.encode())
        name = f"random_{next(_numbers)}"
        columns = ", ".join(f"{n} {kind.declared}" for n, kind in zip(("x", "who", "day"), case.kinds, strict=True))
        connection.execute(f"CREATE TABLE {name} ({columns})".encode())
        marks = ", ".join(["%s"] * 3)
        types = [kind.declared.partition(" COLLATE")[0] for kind in case.kinds]
        cast = ", ".join(f"CAST({mark}::text AS {kind})" for mark, kind in zip(marks.split(", "), types, strict=True))
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {name} VALUES ({cast})".encode(), list(_written(case)))
    return f"{server.url()}::{name}"


def _duckdb_table(case: Case) -> Any:
    connection = duckdb.connect()
    columns = ", ".join(f"{n} {kind.declared}" for n, kind in zip(("x", "who", "day"), case.kinds, strict=True))
    connection.execute(f"CREATE TABLE t ({columns})")
    if case.rows:
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [list(row) for row in _written(case)])
    return connection.table("t")


def _spark_frame(case: Case) -> Any:
    session = spark()
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    # Compiled to Java for one case in ten only: for so few rows that takes longer than all else.
    compiled = case.number % 10 == 0
    session.conf.set("spark.sql.codegen.wholeStage", str(compiled).lower())
    session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if compiled else "NO_CODEGEN")
    rows = session.createDataFrame(list(_written(case)), "x string, who string, day string")
    functions = __import__("pyspark.sql.functions", fromlist=["expr"])
    made = []
    for name, kind in zip(("x", "who", "day"), case.kinds, strict=True):
        padded = {"metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(4)"}} if kind.declared.startswith("rpad") else {}
        made.append(functions.expr(kind.declared.format(name)).alias(name, **padded))
    return rows.select(*made)


ENGINES: dict[str, tuple[dict[str, list[Kind]], Callable[[Case], Any]]] = {
    "postgres": (POSTGRES, _postgres_table),
    "duckdb": (DUCKDB, _duckdb_table),
    "spark": (SPARK, _spark_frame),
}


@dataclass(frozen=True)
class Difference:
    case: Case
    found: Any
    wanted: Any

    def __str__(self) -> str:
        return f"{self.case}\n  found  {self.found}\n  wanted {self.wanted}"


def differences(engine: str, numbers: range) -> Iterator[Difference | None]:
    """For each case, how the engine differs from plain lists; None where it does not."""
    types, make = ENGINES[engine]
    for number in numbers:
        case = make_case(number, types)
        try:
            found = findings(case, make(case), few=engine == "spark")
        except Exception as error:  # nothing in a record may raise
            yield Difference(case, repr(error), "no error")
            continue
        wanted = expected(case)
        wrong = {key: (found[key], wanted[key]) for key in found if found[key] != wanted[key]}
        yield (
            Difference(case, {k: v[0] for k, v in wrong.items()}, {k: v[1] for k, v in wrong.items()})
            if wrong
            else None
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--engine", choices=list(ENGINES), default="postgres")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    asked = parser.parse_args()
    wrong, numbers = 0, range(asked.first, asked.first + asked.cases)
    tables = [make_case(number, ENGINES[asked.engine][0]) for number in numbers]
    for found in differences(asked.engine, numbers):
        if found is not None:
            wrong += 1
            print(found, file=sys.stderr)
    both = sum(case.unit and case.order for case in tables)
    tied = sum(expected(case).get("blocks") == TIED for case in tables)
    kinds = len({kind.declared for case in tables for kind in case.kinds})
    print(
        f"{asked.engine}: {asked.cases} random cases of {kinds} types ({both} with units and an order together, {tied} "
        f"with a tie that is refused), {wrong} differences from plain lists"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
