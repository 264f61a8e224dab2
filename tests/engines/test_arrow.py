"""Arrow columns: slices that share the source's memory, whoever hands them over; no engine loads another's library."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privatest import engines
from privatest.engines import arrays
from privatest.engines import arrays as frames
from privatest.engines.arrays import ArrayRecords
from privatest.errors import InvalidData
from tests.engines.catalogue import NUMERIC, SCORES

SCORE = SCORES["line"].score
NUMBERS = np.random.default_rng(4).normal(0.5, 2, 1000)


def shares(records: Any, values: np.ndarray[Any, Any]) -> bool:
    """Whether all records lie in the memory of the values."""
    parts = [records] if isinstance(records, ArrayRecords) else [part.records for part in records.stream.parts()]
    return all(np.shares_memory(part.values, values) for part in parts)


def test_numbers_without_nulls_are_not_copied() -> None:
    array = pa.array(NUMBERS)
    memory = array.to_numpy()
    frame = pd.DataFrame({"x": NUMBERS, "y": NUMBERS})
    column = pl.Series("x", NUMBERS)
    assert shares(engines.open_source(array), memory)
    assert shares(engines.open_source(pa.chunked_array([array, array])), memory)
    assert shares(engines.open_source(pa.table({"x": array})), memory)
    assert shares(engines.open_source(pa.table({"x": array}).to_reader()), memory)
    assert shares(engines.open_source(frame, column="x"), frame["x"].to_numpy())
    assert shares(engines.open_source(column), column.to_numpy())
    assert not shares(engines.open_source(array), NUMBERS.copy())


class Capsule:
    """An object of a library nobody has heard of, which speaks Arrow."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.held.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame], ids=["pyarrow", "pandas", "polars"])
def test_tables_of_any_library_that_speaks_arrow(make: Any) -> None:
    held = make({"x": NUMBERS, "who": np.arange(1000) // 2, "when": np.arange(1000)[::-1]})
    expected = SCORE.of_numbers(NUMBERS)
    records = engines.open_source(Capsule(held), column="x", order="when")
    assert records.total(SCORE) == int(expected.sum())
    np.testing.assert_array_equal(records.series(SCORE), expected[::-1])
    assert engines.open_source(Capsule(held), column="x", unit="who").count() == 500


def test_an_error_in_one_piece_stops_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "SLICE", 10)
    monkeypatch.setattr(arrays.os, "cpu_count", lambda: 3)
    records = engines.open_source(pa.array(NUMBERS))
    monkeypatch.setattr(frames, "arrow_records", lambda _: 1 / 0)
    with pytest.raises(InvalidData, match="ZeroDivisionError"):
        records.total(SCORE)


@pytest.mark.parametrize("name", NUMERIC)
def test_decimals_are_the_nearest_doubles(name: str) -> None:
    """Also for labels: 0.1 in a decimal column is the label 0.1."""
    score = SCORES[name].score
    texts = ["0.1", "0.5", "1", "2", "-1.5", "0.25", "12345678901234567.89", "0.0000000001"]
    values = [Decimal(text) for text in texts]
    expected = score.of_numbers([float(text) for text in texts]).tolist()
    columns = [pa.array(values, pa.decimal128(38, 12)), pa.array(values, pa.decimal256(60, 12))]
    for column in [*columns, pl.Series(values, dtype=pl.Decimal(38, 12))]:
        assert engines.open_source(column).series(score).tolist() == expected
    nulls = pa.array([None, *values], pa.decimal128(38, 12))
    assert engines.open_source(nulls).series(score).tolist() == [score.odd_score, *expected]


LIBRARIES = {"pyarrow", "pandas", "polars", "duckdb", "ibis", "pyspark", "sqlalchemy", "rich"}
LOADS = {
    "engines.total(score, [0.5, None])": set(),
    "engines.total(score, np.array([0.5]))": set(),
    "engines.total(score, PATH)": {"pyarrow"},
    "engines.total(score, PATH + '/a.csv')": {"pyarrow"},
}


@pytest.mark.parametrize("call", LOADS)
def test_an_engine_loads_no_other_library(call: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [0.5, None]}), tmp_path / "a.parquet")
    if "csv" in call:
        (tmp_path / "a.parquet").unlink()
        (tmp_path / "a.csv").write_text("x\n0.5\nabc\n\n")
    program = f"""
import sys
import numpy as np
from privatest import engines
from privatest.hypotheses import make_pair
from privatest.scores import clamped_score
PATH = {str(tmp_path)!r}
score = clamped_score(make_pair("normal(0, 1)", "normal(1, 1)"), (-1, 1))
{call}
print(*sorted({LIBRARIES!r} & set(sys.modules)))
"""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(root / "src")},
    )
    assert set(done.stdout.split()) == LOADS[call]
