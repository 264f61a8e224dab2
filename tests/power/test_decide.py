"""P or Q in one call."""

from __future__ import annotations

import numpy as np
import pytest

import privatest as pt
from privatest.errors import InvalidInput

COINS = "bernoulli(0.2)", "bernoulli(0.8)"
DATA = [0, 0, 1, 0, 0] * 8


def test_one_call_is_the_design_for_as_many_records_and_its_run() -> None:
    made = pt.design(*COINS, epsilon=1, n=40, alpha=0.05)
    for seed in range(5):
        found = pt.decide(DATA, *COINS, epsilon=1, alpha=0.05, rng=np.random.default_rng(seed))
        assert found == made.run(DATA, rng=np.random.default_rng(seed))
        assert found.design == made
    assert pt.decide(DATA, *COINS, epsilon=1).private


def test_persons_count_as_they_are_cut() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": DATA, "who": np.repeat(np.arange(10), 4)})
    found = pt.decide(frame, *COINS, epsilon=1, column="x", unit="who", max_rows_per_unit=2)
    assert (found.n, found.design.max_rows_per_unit) == (20, 2)


def test_a_number_that_is_not_public_is_asked_for_before_the_data_are_counted() -> None:
    class Untouchable:
        """Whatever is asked of it fails."""

        def __getattribute__(self, name: str) -> object:
            raise AssertionError(f"the data were looked at: {name}")

    with pytest.raises(InvalidInput, match="n is missing: with neighbours='add-remove'"):
        pt.decide(Untouchable(), *COINS, epsilon=1, neighbours="add-remove")
    assert pt.decide(DATA, *COINS, epsilon=1, neighbours="add-remove", n=30).n == 30


def test_no_records_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no records"):
        pt.decide([], *COINS, epsilon=1)
