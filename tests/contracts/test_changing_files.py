"""A file that changes between two readings: the second one is refused, or says what the first one saw.

Every format, every question after every other, with units and with an order; the file gets a row more, loses one, or
is replaced. Whatever comes back belongs to the file as it was when it was counted: never a total of other rows than
those that the number speaks of. Runs of designs that read twice are changed between their two readings.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import privatest as pt
from privatest import engines
from privatest.errors import InvalidData
from privatest.estimates.location import Location
from privatest.hypotheses import make_pair
from privatest.scores import clamped_score

SCORE = clamped_score(make_pair("bernoulli(0.2)", "bernoulli(0.8)"), (-1, 1), 4)
OTHER = clamped_score(make_pair("bernoulli(0.3)", "bernoulli(0.8)"), (-1, 1), 4)
N, BLOCK = 60, 7


def table(rows: int) -> pa.Table:
    """Records, persons and days that differ from the first row on if the number of rows does."""
    numbers = np.arange(rows) + rows
    return pa.table({"x": (numbers % 3 == 0).astype(np.float64), "who": numbers, "day": numbers})


def first_rows(rows: np.ndarray, most: int) -> np.ndarray:
    """The first rows of each person, where a mechanism would draw them."""
    return rows[:, :most]


def stream(content: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(path, content.schema) as writer:
        writer.write_table(content, max_chunksize=16)


FORMATS: dict[str, tuple[str, Callable[[pa.Table, Path], Any]]] = {
    "CSV": ("csv", pyarrow.csv.write_csv),
    "Parquet": ("parquet", lambda content, path: pa.parquet.write_table(content, path, row_group_size=16)),
    "Feather": ("feather", lambda content, path: pa.feather.write_feather(content, str(path), chunksize=16)),
    "Arrow stream": ("arrows", stream),
}
WHERE: dict[str, dict[str, Any]] = {
    "plain": {},
    "order": {"order": "day"},
    "units": {"unit": "who", "max_rows_per_unit": 1},
}
# What is asked first: how many, alone or together with a sum; or a sum itself.
FIRST: dict[str, Callable[[Any], Any]] = {
    "count": lambda records: records.count(),
    "count of a sum": lambda records: (records.check(SCORE), records.count())[1],
    "total": lambda records: records.total(SCORE),
    "histogram": lambda records: records.histogram(SCORE.cells, first_rows),
}
THEN: dict[str, Callable[[Any], Any]] = {
    "total": lambda records: records.total(SCORE),
    "another total": lambda records: records.total(OTHER),
    "histogram": lambda records: records.histogram(SCORE.cells, first_rows),
    "blocks": lambda records: records.block_totals(SCORE, BLOCK),
    "series": lambda records: records.series(SCORE).tolist(),
    "order": lambda records: records.order_values([0, 5]) if getattr(records, "has_order_values", False) else None,
}
IN_PLACE = {"blocks", "series"}
"""Refused of persons whose rows are one sum, and of tables in no order."""


class File:
    """A file of a format that can be written anew, with another number of rows."""

    def __init__(self, form: str, folder: Path) -> None:
        ending, self._write = FORMATS[form]
        self.path = folder / f"a.{ending}"
        self.write(N)

    def write(self, rows: int) -> None:
        self._write(table(rows), self.path)


class Table:
    """A table of a database that others write to."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self.write(N)

    def write(self, rows: int) -> None:
        self._connection.register("given", table(rows))
        self._connection.execute("create table if not exists t as from given; delete from t; insert into t from given")

    @property
    def path(self) -> Any:
        """The table as a source."""
        return self._connection.table("t")


def outcome(ask: Callable[[Any], Any], records: Any) -> Any:
    """What is answered, or None where that is refused."""
    try:
        return ask(records)
    except InvalidData as error:
        if "changed while they were read" not in str(error) and "cannot be read as" not in str(error):
            raise
        return None


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("form", [*FORMATS, "DuckDB"])
def test_a_second_reading_is_refused_or_says_what_the_first_one_saw(form: str, where: str, tmp_path: Path) -> None:
    file = Table() if form == "DuckDB" else File(form, tmp_path)
    without = IN_PLACE if where == "units" or (where, form) == ("plain", "DuckDB") else set()

    def opened() -> Any:
        return engines.open_source(file.path, column="x", **WHERE[where])

    expected = {name: ask(opened()) for name, ask in THEN.items() if name not in without}
    refused = 0
    for first, begin in FIRST.items():
        for then in expected:
            ask = THEN[then]
            for rows in (N + BLOCK, N - BLOCK, 2 * N):
                file.write(N)
                records = opened()
                begin(records)
                file.write(rows)
                found = outcome(ask, records)
                refused += found is None
                assert found in (None, expected[then]), (first, then, rows)
    assert refused > 25  # some are kept from the first reading, or are read by the footer that was read then


@pytest.mark.parametrize("form", ["CSV", "Feather"])
def test_the_second_of_two_steps_sees_the_records_of_the_first(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    design = pt.design_estimate("normal(mean=?, sd=1)", between=(-1000, 1000), epsilon=20, n=N)
    assert design.location is not None
    file, chosen = File(form, tmp_path), Location.chosen

    def meanwhile(*words: Any) -> Any:
        found = chosen(*words)
        file.write(2 * N)
        return found

    monkeypatch.setattr(Location, "chosen", meanwhile)
    with pytest.raises(InvalidData, match=r"changed while they were read|cannot be read as"):
        design.run(file.path, column="x")
