"""Python objects are read one by one, and none of them can change what becomes of the others."""

from __future__ import annotations

import math
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privatest.engines.sequences import SequenceRecords, _number
from tests.engines.catalogue import HOSTILE, SCORES

RECORD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**400), 10**400),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.decimals(),
    st.fractions(),
    st.complex_numbers(),
    st.tuples(st.integers()),
    st.lists(st.integers(), max_size=1),
    st.sampled_from(["a", "b", "", 0, 1, 2, 0.5, Fraction(1, 4)]),
)


@settings(max_examples=60)
@given(records=st.lists(RECORD, max_size=12), name=st.sampled_from(sorted(SCORES)))
def test_the_total_is_the_sum_over_the_records(records: list[Any], name: str) -> None:
    score = SCORES[name].score
    alone = [SequenceRecords([record]).total(score) for record in records]
    assert all(score.low <= one <= score.high for one in alone)
    assert SequenceRecords(records).total(score) == sum(alone)


@pytest.mark.parametrize("name", SCORES)
def test_hostile_neighbours_change_nothing(name: str) -> None:
    score = SCORES[name].score
    records = [*SCORES[name].numbers, *SCORES[name].texts]
    alone = SequenceRecords(records).total(score)
    assert SequenceRecords([*HOSTILE, *records]).total(score) == alone + len(HOSTILE) * score.odd_score


@pytest.mark.parametrize(
    ("record", "number"),
    [
        (1, 1.0),
        (True, 1.0),
        (np.True_, 1.0),
        (np.int8(-3), -3.0),
        (np.float32(0.5), 0.5),
        (np.longdouble(0.25), 0.25),
        (Decimal("0.1"), 0.1),
        (Fraction(1, 3), 1 / 3),
        (2**53 + 1, 2.0**53),
        (math.inf, math.inf),
    ],
    ids=repr,
)
def test_numbers_are_numbers(record: Any, number: float) -> None:
    assert _number(record) == number


@pytest.mark.parametrize("record", ["1", "nan", b"1", None, 1j, [1], 10**400, object(), Decimal("sNaN"), np.str_("1")])
def test_what_is_no_number_is_nan(record: Any) -> None:
    assert math.isnan(_number(record))


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
