"""Single records are totalled without arrays, to the same integers; threads lose none of them."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.streams.blocks import SumBlocks

PAIRS = {
    "normal": ("normal(0, 1)", "normal(1, 1)"),
    "falling": ("normal(1, 1)", "normal(0, 1)"),
    "two bends": ("normal(0, 1)", "normal(0, 2)"),
    "coins": ("bernoulli(0.2)", "bernoulli(0.8)"),
    "labels": ({"a": 0.3, "b": 0.7}, {"a": 0.6, "b": 0.4}),
    "counts": ("poisson(3)", "poisson(4)"),
    "half line": ("exponential(1)", "exponential(2)"),
}
ODD: list[Any] = [
    math.nan,
    math.inf,
    -math.inf,
    1e308,
    -1e308,
    5e-324,
    True,
    False,
    0,
    1,
    7,
    -3,
    10**30,
    "a",
    "b",
    "",
    "1",
]


def blocks_of(name: str) -> SumBlocks:
    watch = pt.Monitor(*PAIRS[name], epsilon=1)._plan
    assert isinstance(watch.blocks, SumBlocks)
    return watch.blocks


@pytest.mark.parametrize("name", PAIRS)
def test_quick_scores_are_the_scores_of_arrays(name: str) -> None:
    blocks, rng = blocks_of(name), np.random.default_rng(3)
    quick_scores = blocks.plain_scores()
    edges = [step / 8 + shift for step in range(-24, 25) for shift in (0.0, -1e-12, 1e-12)]
    far = [sign * size for sign in (1, -1) for size in (15.99, 16.0, 16.01, 1e3, 1e9, 10**20)]
    plain = [*rng.normal(0, 2, 60).tolist(), *rng.integers(0, 9, 40).tolist(), *edges, *far, "a", "b"]
    quick = 0
    for _ in range(300):
        records = [plain[i] for i in rng.integers(0, len(plain), 12)]
        if name in ("normal", "falling", "two bends", "half line"):
            records = [record for record in records if not isinstance(record, str)]
        if rng.random() < 0.3:
            records.append(ODD[rng.integers(len(ODD))])
        scores = None if quick_scores is None else quick_scores(records)
        if scores is not None:
            quick += 1
            assert scores == (2 * blocks.values_of(records)).tolist(), records
    assert quick > 0 or name == "half line"  # there arrays do it


class Loud:
    """A record whose arithmetic fails, and says what it holds."""

    def __mul__(self, other: object) -> object:
        raise RuntimeError("here is what the record holds")


class Turned(float):
    """A number that multiplies otherwise than numbers do."""

    def __mul__(self, other: object) -> Any:
        return 10.0


class Whole:
    """No number, but a multiple of it has a whole part."""

    def __mul__(self, other: object) -> Whole:
        return self

    def __floor__(self) -> int:
        return 3


OBJECTS: list[Any] = [
    Loud(),
    Turned(0.25),
    Whole(),
    None,
    b"a",
    1j,
    Decimal("0.75"),
    Decimal("sNaN"),
    Fraction(-1, 3),
    Fraction(10**400),
    np.float64(0.75),
    np.float64(1e308),
    np.float32(3e38),
    np.float16(6e4),
    np.float16(-6e-8),
    np.longdouble(1) / 3,
    np.int8(1),
    np.uint64(2**63 + 1),
    np.bool_(True),
    np.complex128(1),
    np.str_("a"),
    np.timedelta64(3, "s"),
    np.array(0.75),
]


@pytest.mark.parametrize("name", PAIRS)
def test_a_record_of_any_kind_counts_alone_as_it_does_in_a_batch_and_is_never_heard_of(name: str) -> None:
    watch: Any = pt.Monitor(*PAIRS[name], epsilon=2)._plan
    fill: Any = "a" if name == "labels" else 1
    for record in [*OBJECTS, *ODD, -0.0, -5e-324, 2**53 + 1]:
        records = [fill] * (watch.block - 1) + [record]
        alone, batch = (pt.Monitor.of(watch, rng=np.random.default_rng(1)) for _ in range(2))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for one in records:
                alone.update(one)
            batch.update_many(records)
            assert alone.trace == batch.trace, repr(record)
    assert len(batch.trace) == 1
