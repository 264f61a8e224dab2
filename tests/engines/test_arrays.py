"""Arrays of every size, by any number of threads: the sum of the table's entries.

A kernel is the table: chunk by chunk, on many numbers and on the nastiest ones.

Python objects are read one by one, and none of them can change what becomes of the others.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privatest.engines import arrays, total
from privatest.engines.arrays import ArrayRecords, SequenceRecords
from privatest.hypotheses import make_pair
from privatest.scores import BoundedCells, DyadicCells, IntegerCells, LabelCells, Score, clamped_score
from tests.engines.catalogue import SCORES


@pytest.mark.parametrize("name", ["line", "dyadic", "bounded", "integers", "number labels"])
def test_threads_give_the_same_integer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    score = SCORES[name].score
    values = np.random.default_rng(11).normal(1, 2, 300_000)
    values[::1000] = math.nan
    if name in ("integers", "number labels"):
        values = np.round(values)
    expected = ArrayRecords(values).total(score)
    monkeypatch.setattr(arrays, "FEW", 1000)
    for count in (1, 2, 7, 64, None):
        monkeypatch.setattr(arrays.os, "cpu_count", lambda count=count: count)
        assert ArrayRecords(values).total(score) == expected == plain(score, values)


def test_a_total_beyond_64_bits_is_still_exact() -> None:
    """Tests refuse such an n; the engine would not lose a bit of it."""
    cells = DyadicCells(0, 0, 2)
    table = np.array([2**62, 2**62 - 1, 0])
    score = Score(cells, table, Fraction(0), Fraction(1), np.array([0]), np.array([1.0]), np.array([1.0]))
    assert total(score, np.array([0.0, 0.0, 1.0, 1.0])) == 2 * 2**62 + 2 * (2**62 - 1)


CLAMP = (-0.9, 1.1)
KERNELS: dict[str, Score] = {
    "line": clamped_score(make_pair(stats.norm(0, 1), stats.norm(1, 1)), CLAMP),
    "line, falling": clamped_score(make_pair(stats.norm(1, 1), stats.norm(0, 1)), CLAMP),
    "line, fine": clamped_score(make_pair(stats.norm(0, 1), stats.norm(0.01, 1)), (-0.01, 0.012)),
    "line, far from 0": clamped_score(make_pair(stats.norm(1e6, 1), stats.norm(1e6 + 1, 1)), CLAMP),
    "line, tiny": clamped_score(make_pair(stats.norm(0, 1e-99), stats.norm(1e-99, 1e-99)), CLAMP),
    "dyadic": clamped_score(make_pair(stats.norm(0, 1), stats.norm(0, 2)), CLAMP),
    "dyadic, shifted": clamped_score(make_pair(stats.norm(40, 1), stats.norm(41, 2)), CLAMP),
    "line, from 0 on": clamped_score(make_pair(stats.expon(), stats.expon(scale=2)), CLAMP),
    "dyadic, from 0 on": clamped_score(make_pair(stats.gamma(2), stats.gamma(3)), CLAMP),
    "dyadic, from 0 to 1": clamped_score(make_pair(stats.beta(2, 2), stats.beta(2, 3)), CLAMP),
    "two integers": clamped_score(make_pair(stats.bernoulli(0.2), stats.bernoulli(0.4)), CLAMP),
    "integers": clamped_score(make_pair(stats.poisson(3), stats.poisson(4)), CLAMP),
    "many integers": clamped_score(make_pair(stats.poisson(3000), stats.poisson(3100)), CLAMP),
    "integers from 1 on": clamped_score(make_pair(stats.geom(0.2), stats.geom(0.1)), CLAMP),
    "integers to 40": clamped_score(make_pair(stats.binom(40, 0.2), stats.binom(40, 0.3)), CLAMP),
    "labels": clamped_score(make_pair({-2: 0.2, 0.5: 0.3, 9: 0.5}, {-2: 0.5, 0.5: 0.3, 9: 0.2}), CLAMP),
    "bounded": SCORES["bounded"].score,
    "bounded, cauchy": clamped_score(make_pair(stats.cauchy(0), stats.cauchy(3)), CLAMP),
}


def plain(score: Score, values: np.ndarray[Any, Any]) -> int:
    """The total by the definition, in Python integers."""
    return sum(score.table[score.cells.index(values.astype(np.float64))].tolist())


def adversarial(score: Score, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Every edge and its neighbours, far and tiny numbers, all of them finite."""
    edges = edges_of(score)
    near = [edges, np.nextafter(edges, -math.inf), np.nextafter(edges, math.inf)]
    far = 10.0 ** rng.uniform(-300, 300, 3000) * rng.choice([-1, 1], 3000)
    special = [0.0, -0.0, 5e-324, -5e-324, 1e16, -1e16, 1e17, -1e17, 1e25, -1e25, 2.0**53, 1e154, -1e154]
    values = np.concatenate([*near, far, special])
    rng.shuffle(values)
    return values


def bulk(score: Score, rng: np.random.Generator, size: int) -> np.ndarray[Any, Any]:
    """Numbers around the cells, uniform and heavy-tailed."""
    edges = edges_of(score)
    first, last = float(edges[0]), float(edges[-1])
    if isinstance(score.cells, BoundedCells):
        first, last = score.cells.centre - 10 * score.cells.scale, score.cells.centre + 10 * score.cells.scale
    spread = last - first
    near, far = rng.uniform(first - spread / 3, last + spread / 3, size), first + spread * rng.standard_cauchy(size)
    if isinstance(score.cells, IntegerCells | LabelCells):
        return np.round(np.concatenate([near, far]))
    # Those outside the support come last, so that there are chunks without them.
    low, high = score.cells.low, score.cells.high  # type: ignore[attr-defined]
    inside = np.clip(near, low, high)
    return np.concatenate([inside, far])


def edges_of(score: Score) -> np.ndarray[Any, Any]:
    """Numbers at which the cell changes."""
    cells = score.cells
    if isinstance(cells, IntegerCells):
        return np.append(cells.first, [cells.last, cells.last + 1]).astype(np.float64)
    if isinstance(cells, LabelCells):
        return np.array(sorted(cells.labels), dtype=np.float64)  # type: ignore[type-var]
    assert isinstance(cells, DyadicCells | BoundedCells)
    support = [end for end in (cells.low, cells.high) if math.isfinite(end)]
    return np.sort(np.append(cells.edges, support))


@pytest.mark.parametrize("name", KERNELS)
def test_totals_are_sums_of_the_table_alone_and_among_many(name: str) -> None:
    """Alone, together, and among many others: a chunk that overflows on the way takes another path."""
    score = KERNELS[name]
    rng = np.random.default_rng(8)
    values = adversarial(score, rng)
    table = score.table[score.cells.index(values)]
    for index in rng.choice(len(values), 1000):
        assert total(score, values[index : index + 1]) == table[index], values[index]
    assert total(score, values[:100]) == int(table[:100].sum())
    many = bulk(score, rng, 100_000)
    np.testing.assert_array_equal(ArrayRecords(many).series(score), score.of_numbers(many))
    for numbers in (values[np.abs(values) < 1e290], values, many):
        assert total(score, numbers) == plain(score, numbers)


@pytest.mark.parametrize("name", KERNELS)
def test_one_odd_record_changes_the_total_by_its_own_score_alone(name: str) -> None:
    """The path a chunk takes must not show: what is not finite moves its own record and no other."""
    score = KERNELS[name]
    values = bulk(score, np.random.default_rng(9), 5000)
    before = total(score, values)
    for odd in (math.nan, math.inf, -math.inf):
        for place in (0, 4999, 9999):
            changed = values.copy()
            own = int(score.of_numbers(changed[place : place + 1])[0])
            changed[place] = odd
            assert total(score, changed) == before - own + score.odd_score
    far = np.append(values, [sys.float_info.max, -sys.float_info.max])
    assert total(score, far) == before + sum(score.of_numbers(far[-2:]).tolist())


def test_the_last_integer_of_the_support_and_the_first_beyond_it() -> None:
    cells = IntegerCells(np.array([0, 1, 2], dtype=np.int64), 10)
    law = np.ones(1)
    score = Score(cells, np.array([4, 5, 6, 9]), Fraction(0), Fraction(1), np.array([4]), law, law.copy())
    for record, expected in ((2, 6), (3, 6), (10, 6), (11, 9), (12, 9), (-1, 9)):
        assert total(score, np.array([float(record), 0.0])) == expected + 4
        assert ArrayRecords(np.array([float(record)])).series(score).tolist() == [expected]


def test_threads_leave_the_filters_of_warnings_as_they_were() -> None:
    """Each sum silences warnings for a moment; sums at the same time must not restore each other's state."""
    before = list(warnings.filters)
    score = SCORES["line"].score

    class Slow(Fraction):
        def __float__(self) -> float:
            time.sleep(0.001 * float(self.numerator))  # the threads take turns
            return 0.5

    sources = [SequenceRecords([0.5, None] + [Slow(number % 3, 7)] * 3) for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda records: records.total(score), sources))
    assert len(found) == 1
    assert list(warnings.filters) == before
