"""Spark DataFrames: the integers of NumPy, on one core and on executors that are killed."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from privatest.engines import open_source, score_sql
from privatest.engines.records import counting_score
from privatest.engines.spark import SparkRecords
from privatest.errors import InvalidData
from privatest.scores import Score
from tests.engines.catalogue import SCORES
from tests.engines.extremes import EXTREMES, doubles, scores
from tests.engines.warehouses import SPARK, WAREHOUSES, spark

pytestmark = SPARK

LINE = SCORES["line"].score


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
    wanted = {f"s{i}": score for i, score in enumerate(scores(cells))}
    made = {name: score_sql.score_of_number(s, records.rows.r, records.language) for name, s in wanted.items()}
    by_expressions = records.runner.whole(records.rows.select("o", **made)).sort_by("o")
    for name_of_score, score in wanted.items():
        assert_same(numbers, by_expressions[name_of_score].to_pylist(), score)


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
    query = records._scored(SCORES["dyadic"].score).order_by("o")
    runner: Any = records.runner
    plan = runner.frame(query)._jdf.queryExecution().executedPlan().toString()
    assert "Sort" in plan
    assert "Python" not in plan


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


@pytest.mark.exhaustive
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
