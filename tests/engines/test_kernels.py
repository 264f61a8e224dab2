"""The fast kernels are the table: chunk by chunk, on millions of numbers and on the nastiest ones."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privatest.engines import kernels, total
from privatest.engines.arrays import CHUNK, ArrayRecords
from privatest.pairs import make_pair
from privatest.scores import BoundedCells, DyadicCells, IntegerCells, LabelCells, Score, clamped_score
from tests.engines.catalogue import SCORES

CLAMP = (-0.9, 1.1)
LABELS = {-2: 0.2, 0.5: 0.3, 9: 0.5}, {-2: 0.5, 0.5: 0.3, 9: 0.2}
KERNELS: dict[str, tuple[str, Score]] = {
    "line": ("_line_total", clamped_score(make_pair(stats.norm(0, 1), stats.norm(1, 1)), CLAMP)),
    "line, falling": ("_line_total", clamped_score(make_pair(stats.norm(1, 1), stats.norm(0, 1)), CLAMP)),
    "line, fine": ("_line_total", clamped_score(make_pair(stats.norm(0, 1), stats.norm(0.01, 1)), (-0.01, 0.012))),
    "line, far from 0": ("_line_total", clamped_score(make_pair(stats.norm(1e6, 1), stats.norm(1e6 + 1, 1)), CLAMP)),
    "line, tiny": ("_line_total", clamped_score(make_pair(stats.norm(0, 1e-99), stats.norm(1e-99, 1e-99)), CLAMP)),
    "dyadic": ("_dyadic_places", clamped_score(make_pair(stats.norm(0, 1), stats.norm(0, 2)), CLAMP)),
    "dyadic, shifted": ("_dyadic_places", clamped_score(make_pair(stats.norm(40, 1), stats.norm(41, 2)), CLAMP)),
    "line, from 0 on": ("_line_total", clamped_score(make_pair(stats.expon(), stats.expon(scale=2)), CLAMP)),
    "dyadic, from 0 on": ("_dyadic_places", clamped_score(make_pair(stats.gamma(2), stats.gamma(3)), CLAMP)),
    "dyadic, from 0 to 1": ("_dyadic_places", clamped_score(make_pair(stats.beta(2, 2), stats.beta(2, 3)), CLAMP)),
    "two integers": ("_whole_places", clamped_score(make_pair(stats.bernoulli(0.2), stats.bernoulli(0.4)), CLAMP)),
    "integers": ("_whole_places", clamped_score(make_pair(stats.poisson(3), stats.poisson(4)), CLAMP)),
    "many integers": ("_whole_places", clamped_score(make_pair(stats.poisson(3000), stats.poisson(3100)), CLAMP)),
    "integers from 1 on": ("_whole_places", clamped_score(make_pair(stats.geom(0.2), stats.geom(0.1)), CLAMP)),
    "integers to 40": ("_whole_places", clamped_score(make_pair(stats.binom(40, 0.2), stats.binom(40, 0.3)), CLAMP)),
    "labels": (
        "_whole_places",
        clamped_score(make_pair({-2: 0.2, 0.5: 0.3, 9: 0.5}, {-2: 0.5, 0.5: 0.3, 9: 0.2}), CLAMP),
    ),
    "bounded": ("_bounded_places", SCORES["bounded"].score),
    "bounded, cauchy": ("_bounded_places", clamped_score(make_pair(stats.cauchy(0), stats.cauchy(3)), CLAMP)),
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
def test_the_kernel_is_the_one_meant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, score = KERNELS[name]
    called = []
    original = getattr(kernels, kernel)
    monkeypatch.setattr(kernels, kernel, lambda *args: called.append(kernel) or original(*args))
    kernels.total_of(score)
    assert called == [kernel]


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_the_table_on_a_million_numbers(name: str) -> None:
    score = KERNELS[name][1]
    rng = np.random.default_rng(7)
    kernel = kernels.total_of(score)
    values = bulk(score, rng, 250_000)
    for start in range(0, len(values), CHUNK):
        chunk = values[start : start + CHUNK]
        assert kernel(chunk) == plain(score, chunk)
    assert total(score, values) == plain(score, values)
    np.testing.assert_array_equal(ArrayRecords(values).series(score), score.of_numbers(values))


@pytest.mark.parametrize("name", KERNELS)
def test_the_quick_way_is_taken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that make sense need no general path; one that makes none does."""
    score = KERNELS[name][1]
    edges = edges_of(score)[:2] if isinstance(score.cells, LabelCells) else edges_of(score)
    values = np.repeat([edges[0], edges[len(edges) // 2]], 50)
    if isinstance(score.cells, IntegerCells | LabelCells):
        values = np.floor(values)
    expected = plain(score, values)
    made = kernels.total_of(score)
    general = []
    monkeypatch.setattr(type(score.cells), "index", lambda _, chunk: general.append(1) or np.zeros(len(chunk), int))
    assert made(values) == expected
    assert not general
    made(np.append(values, math.nan))
    assert general


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_the_table_on_adversarial_numbers_one_by_one(name: str) -> None:
    """Alone, in pairs and all together: a chunk that overflows on the way takes another path."""
    score = KERNELS[name][1]
    rng = np.random.default_rng(8)
    kernel = kernels.total_of(score)
    values = adversarial(score, rng)
    table = score.table[score.cells.index(values)]
    write, out = kernels.scores_of(score), np.empty(1, dtype=np.int64)
    for index in rng.choice(len(values), 3000):
        assert kernel(values[index : index + 1]) == table[index], values[index]
        write(values[index : index + 1], out)
        assert out[0] == table[index], values[index]
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


def test_the_last_integer_of_the_support_and_the_first_beyond_it() -> None:
    cells = IntegerCells(np.array([0, 1, 2], dtype=np.int64), 10)
    law = np.ones(1)
    score = Score(cells, np.array([4, 5, 6, 9]), Fraction(0), Fraction(1), np.array([4]), law, law.copy())
    for record, expected in ((2, 6), (3, 6), (10, 6), (11, 9), (12, 9), (-1, 9)):
        assert total(score, np.array([float(record), 0.0])) == expected + 4
        assert ArrayRecords(np.array([float(record)])).series(score).tolist() == [expected]


@pytest.mark.parametrize("end", [-1, 0, 1, kernels.SMALL // 2, kernels.SMALL - 1])
@pytest.mark.parametrize("side", [1, -1])
def test_sums_of_cells_around_what_doubles_hold_exactly(end: int, side: int) -> None:
    """Cells that end at the largest whose sum over a chunk is exact in doubles, and beyond; the sum is odd."""
    size = 1 << 8
    first = kernels.SMALL + end - size if side == 1 else -(kernels.SMALL + end - size)
    cells = DyadicCells(0, first, size)
    table = np.append(np.clip(np.arange(size), 3, size - 3), 5)
    support = np.array([4])
    score = Score(cells, table, Fraction(0), Fraction(1), support, np.ones(1), np.ones(1))
    assert score.line == (1, 0)
    chunk = np.full(CHUNK, float(first + 7)) + np.arange(CHUNK) % 5
    chunk[0] = first + 9
    for values in (chunk, chunk[1:]):
        assert kernels.total_of(score)(values) == plain(score, values)
