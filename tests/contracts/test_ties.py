"""Equal places of an order on both sides of a block's end are refused, by every engine and on every way to the blocks.

Equal numbers, equal texts, two NULLs, two NaN, a NaN beside a NULL: whichever came first would be told by what the
records hold. Inside of a block they are let pass. Blocks of every length, from every record on, and the ends that a
stream names, which go on for ever.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
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
    "equal numbers at the start": ([1, 1, 3, 4, 5, 6, 7, 8, 9], False),
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
    "NaN and NULL at the last end": ([1.0, 2.0, 3.0, 4.0, 5.0, math.nan, None, 6.0, math.nan], False),
    "infinity": ([3.0, -math.inf, 2.0, 4.0, 1.0, 6.0, 7.0, math.inf, 8.0], False),
    "infinity on both sides": ([-math.inf, math.inf, 1.0, math.inf, 2.0, 3.0, math.inf, math.inf, 4.0], True),
    "minus zero": ([-2.0, -1.0, -0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0], True),
}
TABLES = {**FRAMES, **{name: WAREHOUSES[name] for name in ("DuckDB", "PostgreSQL", "Spark")}}
# Databases take their time: they are asked about what they do in a way of their own.
FEW = ["numbers", "four NULLs", "three NULLs behind all ends", "four texts missing", "NaN and NULL"]
ENDED = ["equal numbers at the first end", "equal numbers at the last end"]
ASKED = {
    "DuckDB": FEW + ENDED,
    "PostgreSQL": FEW,
    "Spark": ["four NULLs", "NaN and NULL"],
}
# Lengths of blocks, and the record that the first one begins at.
BLOCKS = [(BLOCK, 0), (1, 0), (2, 1), (4, 0)]
ASKED_BLOCKS = {"DuckDB": BLOCKS[:3], "PostgreSQL": BLOCKS[:2], "Spark": BLOCKS[:2]}


def ways(source: Any, block: int, start: int) -> Iterator[tuple[str, range, Callable[[], Any]]]:
    """All that cuts blocks, with the ends; each on records opened anew, as a run does."""

    def opened() -> Any:
        return engines.open_source(source, column="x", order="day")

    whole = range(start + block, start + (len(RECORDS) - start) // block * block, block)
    for name, ends in (("whole blocks", whole), ("a stream", range(start + block, sys.maxsize, block))):
        yield f"before a charge, {name}", ends, lambda ends=ends: opened().check_ends(ends)
        yield f"scores one by one, {name}", ends, lambda ends=ends: opened().series(SCORE, ends)
    yield "totals of blocks", whole, lambda: opened().block_totals(SCORE, block, start)


def ties(days: list[Any], ends: range) -> bool:
    """Whether the places on both sides of an end are equal, by hand: what is missing comes last, and is one place."""
    present = sorted(day for day in days if day is not None and day == day)
    ordered = present + [None] * (len(days) - len(present))
    inside = range(ends.start, min(ends.stop, len(days)), ends.step)
    return any(ordered[end - 1] == ordered[end] for end in inside)


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
        assert ties(days, ENDS) == tied
        folder = tmp_path / str(number)
        folder.mkdir()
        source = TABLES[opener]({"x": RECORDS, "day": days}, folder)
        if opener == "Arrow stream":  # can be read once only
            source = source.read_all()
        for block, start in ASKED_BLOCKS.get(opener, BLOCKS):
            for way, ends, ask in ways(source, block, start):
                assert refused(ask) == ties(days, ends), (name, block, start, way)
