"""How far all rows of one person move the rounded total of all persons: every small case, by enumeration.

The bound of docs/decisions/011: an integer from [r low, r high] when a person who counts as r records comes or goes,
and at most r (high - low) when all their rows are replaced by others that count as r records too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest import engines
from privatest.engines.records import nearest
from privatest.engines.rows_per_person import sum_of_persons
from tests.engines.openers import FRAMES
from tests.engines.warehouses import SPARK, WAREHOUSES

LOW, HIGH = -2, 3
Group = tuple[int, int, int]
SumOf = Callable[[list[Group], int], tuple[int, int]]


def sums(most_rows: int) -> list[tuple[int, int]]:
    """Number of rows and sum of scores of one person, every one that rows with whole scores in [LOW, HIGH] can have."""
    return [(m, total) for m in range(1, most_rows + 1) for total in range(m * LOW, m * HIGH + 1)]


def others(k: int) -> list[list[Group]]:
    """Rows of other persons, whose exact sums have every fraction that persons of 2, 3 and 5 rows can bring about."""
    parts: dict[Fraction, list[Group]] = {}
    for rows in itertools.product(range(2 * LOW, 3), range(-1, 3), range(5)):
        beside = [(m, m, total) for m, total in zip((2, 3, 5), rows, strict=True)]
        parts.setdefault(sum_of_persons(beside, k)[1] % 1, beside)
    return list(parts.values())


def rounded_once(groups: list[Group], k: int) -> tuple[int, int]:
    """The package's rule."""
    count, exact = sum_of_persons(groups, k)
    return count, nearest(exact)


def reach(total_of: SumOf, k: int, most_rows: int) -> tuple[int, int, int, int]:
    """Number of pairs of neighbours, of those beyond the bound with add-remove and with replace neighbours, at it."""
    pairs = come = replaced = at = 0
    for beside in others(k):
        count, without = total_of(beside, k)
        moves: dict[int, list[int]] = {}
        for m, total in sums(most_rows):
            used, found = total_of([*beside, (m, m, total)], k)
            assert used - count == min(m, k)
            moves.setdefault(used - count, []).append(found - without)
        for r, moved in moves.items():
            pairs += len(moved) + len(moved) ** 2
            come += sum(not r * LOW <= one <= r * HIGH for one in moved)
            apart = [abs(one - other) for one, other in itertools.product(moved, repeat=2)]
            replaced += sum(one > r * (HIGH - LOW) for one in apart)
            at += apart.count(r * (HIGH - LOW))
    return pairs, come, replaced, at


def test_one_person_moves_the_rounded_total_by_their_own_scores_at_most(show: Any) -> None:
    every = [reach(rounded_once, k, 6) for k in (1, 2, 3, 4)]
    pairs, come, replaced, at = (sum(column) for column in zip(*every, strict=True))
    show(f"{pairs:,} pairs of neighbours: {come} and {replaced} beyond the bound, {at:,} at it")
    assert pairs > 100_000
    assert come == replaced == 0
    assert at > 0  # so the noise is not too large


def unscaled(groups: list[Group], k: int) -> tuple[int, int]:
    """All rows count in full."""
    return sum_of_persons(groups, k)[0], sum(total for _, _, total in groups)


def rounded_to_even_tens(groups: list[Group], k: int) -> tuple[int, int]:
    """Rounded to a coarser grid than that of the scores: monotone, but not alike at every integer."""
    count, exact = sum_of_persons(groups, k)
    return count, 10 * round(exact / 10)


@pytest.mark.parametrize("broken", [unscaled, rounded_to_even_tens])
def test_the_enumeration_sees_a_person_beyond_the_bound(broken: SumOf) -> None:
    _, come, replaced, _ = reach(broken, 2, 6)
    assert come > 0
    assert replaced > 0


ENGINES: dict[str, Any] = {name: FRAMES[name] for name in ("pandas", "Parquet", "CSV")}
ENGINES |= {name: WAREHOUSES[name] for name in ("DuckDB", "PostgreSQL", "Spark")}


@pytest.mark.parametrize(
    "engine", [pytest.param(one, id=one, marks=SPARK if one == "Spark" else []) for one in ENGINES]
)
def test_every_engine_moves_by_the_same_integer(engine: str, tmp_path: Path) -> None:
    """Every table of one person, up to two rows more than count, beside persons whose sum lies at a half."""
    plain = pt.design("bernoulli(0.3)", "bernoulli(0.6)", epsilon=1, n=9).score
    table = np.array([LOW, HIGH, 0])  # of 0, of 1, of a record that makes no sense
    score = replace(plain, table=table, support=np.unique(table))
    beside = [("you", x) for x in (1.0, 0.0)] + [("she", x) for x in (1.0, 0.0, None)]
    value = {0.0: LOW, 1.0: HIGH, None: 0}
    for k in (1,) if engine == "Spark" else (1, 2):
        moves: dict[int, list[int]] = {}
        for size in range(k + 3):
            for mine in itertools.combinations_with_replacement((0.0, 1.0, None), size):
                rows = [*beside, *(("me", x) for x in mine)]
                folder = tmp_path / f"{k}-{size}-{len(moves.get(min(size, k), []))}"
                folder.mkdir()
                source = ENGINES[engine]({"who": [who for who, _ in rows], "x": [x for _, x in rows]}, folder)
                records = engines.open_source(source, column="x", unit="who", max_rows_per_unit=k)
                own = [value[x] for x in mine]
                groups = [(2, 2, LOW + HIGH), (3, 3, LOW + HIGH), *([(size, size, sum(own))] if own else [])]
                assert (records.count(), records.total(score)) == rounded_once(groups, k)
                moves.setdefault(min(size, k), []).append(records.total(score))
        ((without,), *_) = moves.values()
        for r, found in moves.items():
            assert max(found) - min(found) == r * (HIGH - LOW)
            assert all(r * LOW <= one - without <= r * HIGH for one in found)
