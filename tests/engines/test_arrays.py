"""Arrays of every size, by any number of threads: the sum of the table's entries."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from privatest.engines import arrays, total
from privatest.engines.arrays import CHUNK, ArrayRecords
from privatest.scores import DyadicCells, Score
from tests.engines.catalogue import NUMERIC, SCORES
from tests.engines.test_kernels import plain


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
