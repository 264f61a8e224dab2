"""Privacy of a person who has more rows than count: whatever these rows hold, the noise hides what they change.

The rows are scaled to those that count, or some of them are drawn. So one person moves a total by any whole number up
to the largest one, not only by differences of scores. The numbers that noise is added to are those of the runs
themselves, for every choice of rows; what the noise hides of a move is computed from its probabilities.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privatest as pt
from privatest.decision import PrivateTest
from privatest.estimates.table_test import TableTest
from privatest.laws.weighted_counts import WeightedNoise
from privatest.numbers import Floats
from privatest.privacy import Noise
from tests.contracts.walk import walk, walking

OTHERS = 5
ROWS = 3
"""How many rows the person has; one or two of them count."""
LABELS = {"a": 0.2, "b": 0.3, "c": 0.5}, {"a": 0.5, "b": 0.3, "c": 0.2}
NORMALS = "normal(0, 1)", "normal(1, 1)"
TWO_SIDED = "normal(0, 1)", "any_of(normal(1, 1), normal(-1, 1))"
OF_LABELS, OF_NUMBERS = ("a", "b", "c", None), (-2.0, 0.1, 0.7, 3.0, None)


def table_test(*laws: Any, n: int, max_rows_per_unit: int, **cells: Any) -> Any:
    return pt.design_table(n=n, epsilon=1, max_rows_per_unit=max_rows_per_unit, **cells).power(*laws)


MADE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "labels": (lambda **w: pt.design(*LABELS, epsilon=1, **w), OF_LABELS),
    "numbers": (lambda **w: pt.design(*NORMALS, epsilon=1, **w), OF_NUMBERS),
    "two-sided": (lambda **w: pt.design(*TWO_SIDED, epsilon=1, **w), OF_NUMBERS),
    "ncllr": (lambda **w: pt.design(*LABELS, epsilon=1, test="ncllr", **w), OF_LABELS),
    "scllr": (lambda **w: pt.design(*NORMALS, epsilon=1, test="scllr", **w), OF_NUMBERS),
    "table of labels": (lambda **w: table_test(*LABELS, labels=["a", "b"], **w), OF_LABELS),
    "table of numbers": (lambda **w: table_test(*NORMALS, edges=[0, 1], **w), OF_NUMBERS),
    "two-sided table": (lambda **w: table_test(*TWO_SIDED, edges=[-1, 0, 1], **w), OF_NUMBERS),
    "table": (lambda **w: pt.design_table(epsilon=1, labels=["a", "b"], **w), OF_LABELS),
    "fit": (lambda **w: pt.design_fit(LABELS[0], distance=0.3, epsilon=1, **w), OF_LABELS),
    "estimate": (lambda **w: pt.design_estimate("categorical(a=?)", epsilon=1, missing="none", **w), OF_LABELS),
    "estimate of those present": (lambda **w: pt.design_estimate("bernoulli(?)", epsilon=1, **w), (0, 1, 7, None)),
}


@cache
def opened(design: Any, mine: tuple[Any, ...], others: tuple[Any, ...]) -> Any:
    people = [*range(OTHERS), *["me"] * ROWS]
    frame = pd.DataFrame({"who": list(map(str, people)), "x": pd.Series([*others, *mine], dtype=object)})
    return design.opened(frame, column="x", unit="who")


def noises(design: Any) -> list[Noise]:
    """The noise on each number that is drawn, in their order."""
    if isinstance(design, pt.results.TableDesign):
        return [design.noise] * (design.cells.count + 1)
    count_noise = getattr(design, "count_noise", None)
    return [design.noise, *([] if count_noise is None else [count_noise])]


def numbers_of(draw: Any) -> tuple[Fraction, ...]:
    if isinstance(draw, list) and isinstance(draw[0], bool):  # of a table: twice each count
        return tuple(Fraction(count, 2) for count in draw[1])
    return tuple(map(Fraction, draw if isinstance(draw, list) else [draw]))


def before_noise(design: Any, mine: tuple[Any, ...], others: tuple[Any, ...]) -> list[tuple[Fraction, ...]]:
    """The numbers that noise is added to, for every choice of the person's rows."""
    return list(walk(lambda source: numbers_of(design.draw(opened(design, mine, others), source))).mass)


def masses(noise: Noise, reach: int) -> Floats:
    """The probabilities of the values within a reach, in order."""
    if not isinstance(noise, WeightedNoise):
        return noise.pmf(np.arange(-reach, reach + 1) + float(noise.offset))
    size = 1 << (4 * reach).bit_length()
    many = int(noise.noise.reach(25)) + 1
    transform: Any = np.ones(size // 2 + 1)
    for weight in noise.weights:
        one = np.zeros(size)
        counts = np.arange(-many, many + 1)
        np.add.at(one, weight * counts % size, noise.noise.pmf(counts))
        transform = transform * np.fft.rfft(one)
    return np.fft.irfft(transform, size)[np.arange(-reach, reach + 1)]


@cache
def lost(noise: Noise, move: Fraction) -> float:
    """The largest privacy loss where noisy numbers are this far apart, over values of some probability."""
    assert move.denominator == 1
    away = abs(int(move))
    law = masses(noise, int(noise.reach(12)) + away + 1)
    here, there = law[away:], law[: len(law) - away]
    kept = here > 1e-6
    return float(np.max(np.log(here[kept]) - np.log(np.maximum(there[kept], 1e-14)), initial=0.0))


def largest_loss(design: Any, domain: tuple[Any, ...]) -> float:
    others = (domain * OTHERS)[:OTHERS]
    every = [before_noise(design, mine, others) for mine in rows_of(domain)]
    moves = {
        tuple(a - b for a, b in zip(one, other, strict=True))
        for some, more in itertools.permutations(every, 2)
        for one, other in itertools.product(some, more)
    }
    return max(sum(lost(noise, move) for noise, move in zip(noises(design), each, strict=True)) for each in moves)


def rows_of(domain: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    yield from itertools.combinations_with_replacement(domain, ROWS)


@pytest.fixture(autouse=True)
def _no_noise(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(Noise, "draw", lambda self, _: self.offset)
    for name in ("estimates.table_design", "fit.fit_test"):
        monkeypatch.setattr(
            f"privatest.{name}.draw_many", lambda _, count, __: np.zeros(count, np.int64), raising=False
        )
    with walking(1):
        yield


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("name", MADE)
def test_a_person_of_more_rows_than_count(name: str, rows: int) -> None:
    make, domain = MADE[name]
    assert 0.5 < largest_loss(make(n=OTHERS + rows, max_rows_per_unit=rows), domain) <= 1 + 1e-6


@pytest.mark.parametrize("name", ["table of labels", "table of numbers", "two-sided table"])
def test_scaled_rows_are_not_hidden_by_the_noise_of_counts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weighted sums of whole noise tell the fractions of a person's rows apart."""
    make, domain = MADE[name]
    monkeypatch.setattr(TableTest, "draw", PrivateTest.draw)
    assert largest_loss(make(n=OTHERS + 1, max_rows_per_unit=1), domain) > 2
