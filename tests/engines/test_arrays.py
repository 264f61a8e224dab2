"""The fast kernels are the table: chunk by chunk, on millions of numbers and on the nastiest ones."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privatest.engines import arrays, total
from privatest.engines.arrays import CHUNK, ArrayRecords
from privatest.pairs import make_pair
from privatest.scores import BoundedCells, DyadicCells, Score, clamped_score
from tests.engines.catalogue import NUMERIC, SCORES

CLAMP = (-0.9, 1.1)
KERNELS: dict[str, tuple[str, Score]] = {
    "line": ("_line_kernel", clamped_score(make_pair(stats.norm(0, 1), stats.norm(1, 1)), CLAMP)),
    "line, falling": ("_line_kernel", clamped_score(make_pair(stats.norm(1, 1), stats.norm(0, 1)), CLAMP)),
    "line, fine": ("_line_kernel", clamped_score(make_pair(stats.norm(0, 1), stats.norm(0.01, 1)), (-0.01, 0.012))),
    "line, far from 0": ("_line_kernel", clamped_score(make_pair(stats.norm(1e6, 1), stats.norm(1e6 + 1, 1)), CLAMP)),
    "line, tiny": ("_line_kernel", clamped_score(make_pair(stats.norm(0, 1e-200), stats.norm(1e-200, 1e-200)), CLAMP)),
    "dyadic": ("_dyadic_kernel", clamped_score(make_pair(stats.norm(0, 1), stats.norm(0, 2)), CLAMP)),
    "dyadic, shifted": ("_dyadic_kernel", clamped_score(make_pair(stats.norm(40, 1), stats.norm(41, 2)), CLAMP)),
    "bounded": ("_bounded_kernel", SCORES["bounded"].score),
    "bounded, cauchy": ("_bounded_kernel", clamped_score(make_pair(stats.cauchy(0), stats.cauchy(3)), CLAMP)),
}


def plain(score: Score, values: np.ndarray[Any, Any]) -> int:
    """The total by the definition, in Python integers."""
    return sum(score.table[score.cells.index(values.astype(np.float64))].tolist())


def adversarial(score: Score, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Every edge and its neighbours, far and tiny numbers, all of them finite."""
    assert isinstance(score.cells, DyadicCells | BoundedCells)
    edges = score.cells.edges
    near = [edges, np.nextafter(edges, -math.inf), np.nextafter(edges, math.inf)]
    far = 10.0 ** rng.uniform(-300, 300, 3000) * rng.choice([-1, 1], 3000)
    special = [0.0, -0.0, 5e-324, -5e-324, 1e16, -1e16, 1e17, -1e17, 1e25, -1e25, 2.0**53, 1e154, -1e154]
    values = np.concatenate([*near, far, special])
    rng.shuffle(values)
    return values


def bulk(score: Score, rng: np.random.Generator, size: int) -> np.ndarray[Any, Any]:
    """Numbers around the cells, uniform and heavy-tailed."""
    assert isinstance(score.cells, DyadicCells | BoundedCells)
    first, last = float(score.cells.edges[0]), float(score.cells.edges[-1])
    if isinstance(score.cells, BoundedCells):
        first, last = score.cells.centre - 10 * score.cells.scale, score.cells.centre + 10 * score.cells.scale
    spread = last - first
    return np.concatenate(
        [rng.uniform(first - spread / 3, last + spread / 3, size), first + spread * rng.standard_cauchy(size)]
    )


@pytest.mark.parametrize("name", KERNELS)
def test_the_kernel_is_the_one_meant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, score = KERNELS[name]
    called = []
    original = getattr(arrays, kernel)
    monkeypatch.setattr(arrays, kernel, lambda *args: called.append(kernel) or original(*args))
    arrays._kernel(score)
    assert called == [kernel]


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_the_table_on_a_million_numbers(name: str) -> None:
    score = KERNELS[name][1]
    rng = np.random.default_rng(7)
    kernel = arrays._kernel(score)
    values = bulk(score, rng, 250_000)
    for start in range(0, len(values), CHUNK):
        chunk = values[start : start + CHUNK]
        assert kernel(chunk) == plain(score, chunk)
    assert total(score, values) == plain(score, values)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_the_table_on_adversarial_numbers_one_by_one(name: str) -> None:
    """Alone, in pairs and all together: a chunk that overflows on the way takes another path."""
    score = KERNELS[name][1]
    rng = np.random.default_rng(8)
    kernel = arrays._kernel(score)
    values = adversarial(score, rng)
    table = score.table[score.cells.index(values)]
    for index in rng.choice(len(values), 3000):
        assert kernel(values[index : index + 1]) == table[index], values[index]
    assert kernel(values[: CHUNK // 2]) == int(table[: CHUNK // 2].sum())
    moderate = values[np.abs(values) < 1e290]
    assert total(score, moderate) == plain(score, moderate)
    assert total(score, values) == plain(score, values)


@pytest.mark.parametrize("name", KERNELS)
def test_one_odd_record_changes_the_total_by_its_own_score_alone(name: str) -> None:
    """The path a chunk takes must not show: what is not finite moves its own record and no other."""
    score = KERNELS[name][1]
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


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize("size", [0, 1, 2, CHUNK - 1, CHUNK, CHUNK + 1])
def test_chunks_of_every_size(name: str, size: int) -> None:
    score = SCORES[name].score
    numbers = np.array([*SCORES[name].numbers, math.nan, 1e300])
    values = np.random.default_rng(10).choice(numbers, size)
    assert total(score, values) == plain(score, values)


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


def test_scores_too_large_for_doubles_are_summed_as_integers() -> None:
    cells = DyadicCells(0, 0, 3)
    table = np.array([-(2**61) - 1, 2**61 + 1, 7, 5])
    score = Score(cells, table, Fraction(0), Fraction(1), np.array([7]), np.array([1.0]), np.array([1.0]))
    values = np.array([1.0] * 3 + [-1.0] * 2 + [2.0, math.nan])
    assert total(score, values) == 3 * (2**61 + 1) - 2 * (2**61 + 1) + 7 + 5


def test_a_total_beyond_64_bits_is_still_exact() -> None:
    """Tests refuse such an n; the engine would not lose a bit of it."""
    cells = DyadicCells(0, 0, 2)
    table = np.array([2**62, 2**62 - 1, 0])
    score = Score(cells, table, Fraction(0), Fraction(1), np.array([0]), np.array([1.0]), np.array([1.0]))
    assert total(score, np.array([0.0, 0.0, 1.0, 1.0])) == 2 * 2**62 + 2 * (2**62 - 1)


def test_nothing_is_written_to_the_data() -> None:
    for name in NUMERIC:
        values = np.random.default_rng(12).normal(0, 3, 1000)
        before = values.copy()
        total(SCORES[name].score, values)
        np.testing.assert_array_equal(values, before)
