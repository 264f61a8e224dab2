"""Spark DataFrames: the integers of NumPy, on one core and on executors that are killed."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import privatest as pt
from privatest import engines
from privatest.engines import open_source, sql
from privatest.engines.records import counting_score
from privatest.engines.spark import SparkRecords
from privatest.errors import InvalidData, MissingExtra
from privatest.scores import Score
from tests.engines.catalogue import SCORES, first_rows
from tests.engines.extremes import EXTREMES, doubles, scores
from tests.engines.warehouses import SPARK, WAREHOUSES, spark

pytestmark = SPARK

LINE = SCORES["line"].score
LABELS = SCORES["text labels"].score


def expected(score: Score, numbers: list[Any]) -> list[int]:
    return [int(s) for s in score.of_numbers([math.nan if x is None else float(x) for x in numbers])]


def frame(columns: dict[str, list[Any]] | pa.Table, folder: Path) -> Any:
    return WAREHOUSES["Spark"](columns, folder)


@pytest.mark.parametrize("name", EXTREMES)
def test_every_double_gets_the_score_it_has_in_memory(name: str, tmp_path: Path) -> None:
    """All scores of the cells in one job."""
    cells, numbers = EXTREMES[name], doubles(EXTREMES[name])
    records = open_source(frame({"x": numbers, "when": list(range(len(numbers)))}, tmp_path), column="x", order="when")
    assert isinstance(records, SparkRecords)
    F = records.language.functions
    wanted = {f"s{i}": score for i, score in enumerate(scores(cells))}
    made = [sql.score_of_number(s, F.col("r"), records.language).alias(name) for name, s in wanted.items()]
    by_expressions = sorted(records.rows.select("o", *made).collect())
    for name_of_score, score in wanted.items():
        assert_same(numbers, [row[name_of_score] for row in by_expressions], score)


def assert_same(numbers: list[Any], found: list[int], score: Score) -> None:
    names = [repr(x) for x in numbers]
    assert dict(zip(names, found, strict=True)) == dict(zip(names, expected(score, numbers), strict=True))


@pytest.fixture(params=["false", "true"])
def adaptive(request: pytest.FixtureRequest) -> Iterator[str]:
    """Spark's adaptive execution may change partitions between stages."""
    spark().conf.set("spark.sql.adaptive.enabled", request.param)
    yield request.param
    spark().conf.set("spark.sql.adaptive.enabled", "false")


@pytest.mark.usefixtures("adaptive")
@pytest.mark.parametrize("name", ["bounded", "infinite ratios"])
def test_totals_blocks_series_and_histograms(name: str, tmp_path: Path) -> None:
    score, rng = SCORES[name].score, np.random.default_rng(5)
    numbers = [*rng.integers(-2, 5, 400).astype(float).tolist(), None, math.nan, math.inf, -math.inf, 1e300]
    when = rng.permutation(len(numbers)).tolist()
    found = [s for _, s in sorted(zip(when, expected(score, numbers), strict=True))]
    # Several partitions, so that places are counted across them.
    records = open_source(frame({"x": numbers, "when": when}, tmp_path).repartition(4), column="x", order="when")
    assert records.total(score) == sum(found)
    assert records.count() == len(numbers)
    assert records.series(score).tolist() == found
    for block, start in ((7, 0), (50, 3), (1, 390), (1000, 0)):
        blocks = [sum(found[i : i + block]) for i in range(start, len(found) - block + 1, block)]
        assert records.block_totals(score, block, start) == blocks
    index = score.cells.index(np.array([math.nan if x is None else x for x in numbers]))
    assert records.histogram(score.cells) == np.bincount(index, minlength=score.cells.count + 1).tolist()


def test_nan_in_a_file_whose_numbers_are_finite(tmp_path: Path) -> None:
    """NaN is in no minimum and maximum that a Parquet file states."""
    for name in ("line", "bounded", "integers"):
        records = open_source(frame({"x": [0.5, math.nan, 1.0]}, tmp_path))
        assert records.total(SCORES[name].score) == sum(expected(SCORES[name].score, [0.5, math.nan, 1.0]))


def jobs() -> int:
    """How many jobs the session has run so far."""
    tracker = spark().sparkContext._jsc.sc().statusStore()
    return int(tracker.jobsList(None).size())


def test_count_and_total_take_one_job(tmp_path: Path) -> None:
    records = open_source(frame({"x": [0.5, None]}, tmp_path))
    records.check(LINE)
    before = jobs()
    assert records.count() == 2
    once = jobs() - before
    assert once >= 1
    assert records.total(LINE) == sum(expected(LINE, [0.5, None]))
    assert records.count() == 2
    assert jobs() - before == once
    assert records.total(SCORES["dyadic"].score) == sum(expected(SCORES["dyadic"].score, [0.5, None]))
    assert jobs() - before > once


def test_no_python_worker_is_needed(tmp_path: Path) -> None:
    records = open_source(frame({"x": [0.5], "when": [1]}, tmp_path), column="x", order="when")
    assert isinstance(records, SparkRecords)
    plan = records._sorted(SCORES["dyadic"].score)._jdf.queryExecution().executedPlan().toString()
    assert "Sort" in plan
    assert "Python" not in plan


def test_texts_and_other_types() -> None:
    texts = ["a", "b", "", None, "A", " a", "\u00e4", "a"]
    table = LABELS.table.tolist()
    wanted = sum(table[LABELS.cells.index_of(text)] for text in texts)  # type: ignore[attr-defined]
    session = spark()
    rows = session.createDataFrame([(text, place) for place, text in enumerate(texts)], "x string, day int")
    assert engines.total(LABELS, rows, column="x") == wanted
    if not session.version.startswith("3."):  # Spark 4 has collations
        ignoring = rows.selectExpr("collate(x, 'UTF8_LCASE') AS x", "day")
        assert engines.total(LABELS, ignoring, column="x") == wanted
        assert open_source(ignoring, column="day", unit="x").count() == len(set(texts) - {None})
    for kind, values in {
        "boolean": ["true", "false", "NULL"],
        "bigint": ["0", "9007199254740993", "NULL"],
        "float": ["0.5", "'NaN'", "'Infinity'"],
        "decimal(20, 3)": ["0.125", "1.3", "NULL"],
    }.items():
        typed = session.sql(" UNION ALL ".join(f"SELECT CAST({value} AS {kind}) AS x" for value in values))
        numbers = [{"true": 1, "false": 0, "NULL": None}.get(v, v.strip("'")) for v in values]
        assert engines.total(LINE, typed) == sum(expected(LINE, numbers)), kind


def test_ties_and_orders(tmp_path: Path) -> None:
    numbers = [0.9, 0.1, 0.5, 0.2, 0.7, 0.3]
    rows = frame({"x": numbers, "when": [1.0, 1.0, 2.0, math.nan, None, 3.0]}, tmp_path)
    s = expected(LINE, numbers)
    records = open_source(rows, column="x", order="when")
    assert records.series(LINE).tolist() == [*sorted(s[:2]), s[2], s[5], *sorted((s[3], s[4]))]
    assert records.block_totals(LINE, 2) == [s[0] + s[1], s[2] + s[5], s[3] + s[4]]
    for block, start in ((1, 0), (1, 2)):  # the tie of 1 and 1, and that of the two without an order
        with pytest.raises(InvalidData, match="'when' does not order the records"):
            records.block_totals(LINE, block, start)
    with pytest.raises(InvalidData, match="order="):
        open_source(rows, column="x").block_totals(LINE, 2)
    typed = rows.selectExpr("x", "date_add(DATE '2024-01-01', CAST(10 * x AS INT)) AS d", "CAST(x AS STRING) AS t")
    for order in ("d", "t"):
        assert open_source(typed, column="x", order=order).series(LINE).tolist() == expected(LINE, sorted(numbers))


@pytest.fixture
def berlin() -> Iterator[None]:
    """A session in a zone whose clocks change."""
    before = spark().conf.get("spark.sql.session.timeZone")
    spark().conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    yield
    spark().conf.set("spark.sql.session.timeZone", before)


@pytest.mark.usefixtures("berlin")
def test_times_are_places_over_the_change_of_the_clock_and_far_away() -> None:
    """The hour that comes twice, the hour that never is, and years that Python does not have."""
    hour = 1_729_987_200  # 2024-10-27 00:00 UTC, the first 02:00 in Berlin; the second is an hour later
    moments = [hour, hour + 3600, hour + 1800, hour + 5400, 0, -(2**33), 2**38]
    numbers = [place / 10 for place in range(len(moments))]
    rows = spark().createDataFrame(list(zip(numbers, moments, strict=True)), "x double, at bigint")
    typed = rows.selectExpr(
        "x",
        "timestamp_seconds(at) AS moment",
        # the same clocks without a zone: half past two on the day that has no such time among them
        "timestamp_ntz'2024-03-31 01:30:00' + make_dt_interval(0, 0, 0, at - 1729987200) AS clock",
        "date_from_unix_date(CAST(at div 1800 AS INT)) AS day",
    )
    wanted = [score for _, score in sorted(zip(moments, expected(LINE, numbers), strict=True))]
    for order in ("moment", "clock", "day"):
        records = open_source(typed, column="x", order=order)
        assert records.series(LINE).tolist() == wanted, order
        assert records.block_totals(LINE, 1) == wanted, order
        assert open_source(typed, column="x", unit=order).count() == len(moments), order


def test_blanks_that_pad_are_no_part_of_a_text(tmp_path: Path) -> None:
    session, texts = spark(), ["a", "b ", "", " a", None]
    session.sql(f"CREATE TABLE padded (x CHAR(3), v VARCHAR(3), n DOUBLE) USING parquet LOCATION '{tmp_path}/padded'")
    try:
        values = ", ".join("(NULL, NULL, 0.1)" if text is None else f"('{text}', '{text}', 0.1)" for text in texts)
        session.sql(f"INSERT INTO padded VALUES {values}")
        table, cells = session.table("padded"), LABELS.cells
        for column, read in (("x", [text and text.rstrip(" ") for text in texts]), ("v", texts)):
            wanted = sum(int(LABELS.table[cells.index_of(text)]) for text in read)  # type: ignore[attr-defined]
            assert engines.total(LABELS, table, column=column) == wanted, column
            assert open_source(table, column="n", unit=column).count() == 4
            assert open_source(table, column="n", order=column).block_totals(LINE, 5) == [
                sum(expected(LINE, [0.1] * 5))
            ]
    finally:
        session.sql("DROP TABLE padded")


def test_labels_with_nul() -> None:
    law = {"a\0": 0.5, "a": 0.3, "\0": 0.2}
    score = pt.design(law, {**law, "a\0": 0.2, "\0": 0.5}, epsilon=1, n=9).score
    texts = [*law, "a\0b", None]
    rows = spark().createDataFrame([(text,) for text in texts], "x string")
    assert engines.total(score, rows) == engines.total(score, texts)


def test_what_structure_can_refuse_gets_a_sentence() -> None:
    rows = spark().createDataFrame([(0.5, 0.6, 1)], "x double, X double, who int")
    with pytest.raises(InvalidData, match=r"Columns 'x' and 'X' of the DataFrame differ in case only"):
        open_source(rows, column="x")
    assert open_source(rows, column="who").count() == 1
    assert (
        open_source(rows.selectExpr("who AS x", "who"), column="x", unit="who", max_rows_per_unit=2**63 - 1).count()
        == 1
    )
    # Python does not know intervals of mixed parts before Spark 4.
    interval = "INTERVAL '1' DAY" if spark().version.startswith("3.") else "make_interval(1)"
    odd = spark().sql(f"SELECT 1 AS n, {interval} AS i, array(1) AS a, map(1, 2) AS m, named_struct('s', 1) AS s")
    for name in ("i", "a", "m", "s"):
        for words in ({"unit": name}, {"order": name}):
            with pytest.raises(InvalidData, match="of type"):
                open_source(odd, column="n", **words)


def test_rows_that_arrive_meanwhile_are_in_count_and_sum_or_in_neither(tmp_path: Path) -> None:
    def grown(times: int) -> Any:
        pa.parquet.write_table(pa.table({"x": [0.1] * times, "day": list(range(times))}), tmp_path / f"{times}.parquet")
        spark().catalog.refreshByPath(str(tmp_path))
        return spark().read.schema("x double, day bigint").parquet(str(tmp_path))

    for score in (LINE, counting_score(LINE.cells)):
        records = open_source(grown(3), column="x", order="day")
        records.check(score)
        before = records.count()
        found = grown(1), records.total(LINE) if score is LINE else sum(records.histogram(LINE.cells))
        assert found[1] == (sum(expected(LINE, [0.1])) * before if score is LINE else before)
        assert records.count() == before
        (tmp_path / "1.parquet").unlink()


def test_an_empty_frame_has_nothing(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([], pa.float64()), "when": pa.array([], pa.int64())})
    records = open_source(frame(table, tmp_path), column="x", order="when")
    assert (records.count(), records.total(LINE), records.block_totals(LINE, 2)) == (0, 0, [])
    assert not records.series(LINE).size


def test_wrong_structure_is_an_error(tmp_path: Path) -> None:
    rows = frame({"amount": [1.0], "name": ["a"]}, tmp_path)
    for words, message in [
        ({"column": "amout"}, r"No column 'amout' in the DataFrame. Did you mean 'amount'\?"),
        ({}, "2 columns"),
        ({"column": "name"}, "text"),
    ]:
        with pytest.raises(InvalidData, match=message):
            engines.total(LINE, rows, **words)
    with pytest.raises(InvalidData, match="numbers"):
        engines.total(LABELS, rows, column="amount")
    with pytest.raises(InvalidData, match="type date"):
        engines.total(LINE, rows.selectExpr("DATE '2024-01-01' AS d"))
    with pytest.raises(InvalidData, match="Pass a DataFrame"):
        engines.total(LINE, rows.amount)
    with pytest.raises(InvalidData, match="streaming"):
        engines.total(LINE, spark().readStream.format("rate").load(), column="value")
    assert engines.total(LINE, rows.selectExpr("amount AS `a.b ``c`")) == sum(expected(LINE, [1.0]))


def test_the_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = frame({"x": [0.5]}, tmp_path)
    monkeypatch.setitem(sys.modules, "pyspark.sql.functions", None)
    with pytest.raises(MissingExtra, match=r'pip install "pyspark>=[\d.]+"$'):
        open_source(rows)


def test_a_folder_of_a_thousand_files(tmp_path: Path) -> None:
    numbers = np.random.default_rng(8).normal(0.5, 1, 20_000)
    for part in range(1000):
        pa.parquet.write_table(pa.table({"x": numbers[part::1000]}), tmp_path / f"part-{part:04d}.parquet")
    assert engines.total(LINE, spark().read.parquet(str(tmp_path))) == int(LINE.of_numbers(numbers).sum())


def test_an_executor_killed_during_the_job_changes_nothing(root: Path) -> None:
    """Two executor processes; one gets kill -9 when a part of the tasks is done."""
    spark()  # where there is no Java, this says so
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}", "SPARK_LOCAL_IP": "127.0.0.1"}
    program = [sys.executable, "-W", "ignore", str(root / "tests" / "engines" / "killed_executor.py")]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["killed"] > 0
    assert report["tasks done when killed"] < report["tasks"]
    assert report["executors seen"] >= 3  # two, and the one that took the dead one's place
    assert report["total"] == report["expected"]


def test_padded_texts_sort_without_their_padding(tmp_path: Path) -> None:
    """Beside a tab, which sorts before a blank: Spark itself pads the constants it compares with, but not an order."""
    session = spark()
    session.sql(f"CREATE TABLE tabbed (day CHAR(4), n DOUBLE) USING parquet LOCATION '{tmp_path}/tabbed'")
    try:
        session.sql("INSERT INTO tabbed VALUES ('a\t', 0.1), ('a', 0.2), ('a b', 0.3), ('', 0.4), ('\t', 0.5)")
        for frame in (session.table("tabbed"), session.table("tabbed").selectExpr("day AS day", "n")):
            found = open_source(frame, column="n", order="day").series(LINE).tolist()
            assert found == expected(LINE, [0.4, 0.5, 0.2, 0.1, 0.3])
    finally:
        session.sql("DROP TABLE tabbed")


def test_rows_that_arrive_between_two_jobs_are_in_count_and_sum_or_in_neither() -> None:
    """A frame with a row more for each millisecond that has passed when a job starts."""
    start = time.time_ns() // 10**6 - 1000
    growing = spark().range(2 * 10**6).where(f"id < unix_millis(current_timestamp()) - {start}")
    for cut in ({}, {"unit": "day"}):
        counts = []
        for _ in range(2):
            records = open_source(growing.selectExpr("0.1D AS x", "id AS day"), column="x", **cut)
            records.check(LINE)
            counts.append(records.count())
            assert records.total(LINE) == sum(expected(LINE, [0.1])) * counts[-1]
            with pytest.raises(InvalidData, match="changed while they were read"):
                records.histogram(LINE.cells, first_rows)  # another question is another reading
        assert 1000 < counts[0] < counts[1]
