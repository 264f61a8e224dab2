"""Equal places of an order on both sides of a block's end are refused, by every engine and on every way to the blocks.

Equal numbers, equal texts, two NULLs, two NaN, a NaN beside a NULL: whichever came first would be told by what the
records hold. Inside of a block they are let pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from privatest import engines
from privatest.errors import InvalidData
from privatest.hypotheses import make_pair
from privatest.scores import clamped_score
from tests.engines.openers import FRAMES
from tests.engines.warehouses import SPARK, WAREHOUSES

SCORE = clamped_score(make_pair("bernoulli(0.2)", "bernoulli(0.8)"), (-1, 1), 4)
RECORDS = [0, 1, 1, 0, 1, 0, 0, 1, 1]
BLOCK = 3
ENDS = range(BLOCK, len(RECORDS), BLOCK)
# The place of each record, and whether the third and the fourth, or the sixth and the seventh in order, share theirs.
ORDERS: dict[str, tuple[list[Any], bool]] = {
    "numbers": ([5, 1, 3, 2, 8, 4, 7, 6, 9], False),
    "equal numbers at the first end": ([1, 2, 3, 3, 5, 6, 7, 8, 9], True),
    "equal numbers at the last end": ([8, 2, 3, 4, 5, 6, 6, 1, 9], True),
    "equal numbers inside": ([1, 2, 2, 4, 5, 5, 7, 7, 7], False),
    "texts": (["b", "a", "c", "d", "f", "e", "g", "h", "i"], False),
    "equal texts": (["a", "b", "c", "c", "d", "e", "f", "g", "h"], True),
    "one NULL": ([1, 2, 3, 4, 5, 6, 7, None, 8], False),
    "three NULLs behind all ends": ([1, 2, None, 3, 4, 5, 6, None, None], False),
    "four NULLs": ([None, 1, 2, None, 3, 4, 5, None, None], True),
    "NULLs alone": ([None] * 9, True),
    "four texts missing": ([None, "b", "c", None, "d", "e", "f", None, None], True),
    "NaN": ([math.nan, 1.0, 2.0, math.nan, 3.0, 4.0, 5.0, math.nan, math.nan], True),
    "NaN and NULL": ([math.nan, 1.0, 2.0, None, 3.0, 4.0, 5.0, math.nan, None], True),
    "one NaN": ([1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, math.nan, 8.0], False),
    "minus zero": ([-2.0, -1.0, -0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0], True),
}
TABLES = {**FRAMES, **{name: WAREHOUSES[name] for name in ("DuckDB", "PostgreSQL", "Spark")}}
# Databases take their time: they are asked about what they do in a way of their own.
FEW = ["numbers", "four NULLs", "three NULLs behind all ends", "four texts missing", "NaN and NULL"]
ASKED = {"DuckDB": FEW, "PostgreSQL": FEW, "Spark": ["four NULLs", "NaN and NULL"]}


def ways(source: Any) -> dict[str, Callable[[], Any]]:
    """All that cuts blocks; each on records opened anew, as a run does."""

    def opened() -> Any:
        return engines.open_source(source, column="x", order="day")

    return {
        "before a charge": lambda: opened().check_ends(ENDS),
        "totals of blocks": lambda: opened().block_totals(SCORE, BLOCK),
        "scores one by one": lambda: opened().series(SCORE, ENDS),
    }


def refused(ask: Callable[[], Any]) -> bool:
    try:
        ask()
    except InvalidData as error:
        if "does not order the records" not in str(error):
            raise
        return True
    return False


@pytest.mark.parametrize("opener", [pytest.param(name, marks=SPARK if name == "Spark" else []) for name in TABLES])
def test_ties_at_the_end_of_a_block_are_refused(opener: str, tmp_path: Path) -> None:
    for number, name in enumerate(ASKED.get(opener, ORDERS)):
        days, tied = ORDERS[name]
        folder = tmp_path / str(number)
        folder.mkdir()
        source = TABLES[opener]({"x": RECORDS, "day": days}, folder)
        if opener == "Arrow stream":  # can be read once only
            source = source.read_all()
        found = {way: refused(ask) for way, ask in ways(source).items()}
        assert found == dict.fromkeys(found, tied), name
