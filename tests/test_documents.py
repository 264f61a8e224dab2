"""JSON fragments that scores are written in: strict on the way in, exact on the way out and back."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privatest.errors import InvalidDocument
from privatest.json_documents import (
    runs_from_json,
    runs_to_json,
)


@given(st.lists(st.integers(-3, 3) | st.integers(-(2**62), 2**62), min_size=1, max_size=50))
def test_runs_restore_the_values(values: list[int]) -> None:
    array = np.array(values, dtype=np.int64)
    runs = runs_to_json(array)
    assert all(a[0] != b[0] for a, b in itertools.pairwise(runs))
    np.testing.assert_array_equal(runs_from_json(runs), array)


@pytest.mark.parametrize(
    "runs",
    [[[1, 0]], [[1, -2], [1, 5]], [[1, 2**30]], [[1.5, 2]], [[2**63, 1]], [[True, 1]], [["1", 1]], [[1, 1.0]]],
    ids=repr,
)
def test_broken_runs_are_refused(runs: Any) -> None:
    with pytest.raises(InvalidDocument):
        runs_from_json(runs)


def test_a_table_has_as_many_entries_as_fit_and_not_one_more() -> None:
    assert len(runs_from_json([[1, 2**24 - 5], [2, 5]])) == 2**24
    with pytest.raises(InvalidDocument, match="a run length out of range"):
        runs_from_json([[1, 2**24 - 5], [2, 6]])
    with pytest.raises(InvalidDocument, match="An integer is missing or out of range"):
        runs_from_json([[1, 2**24 + 1]])
