"""The score of an estimate: what is tuned stays finite where a score tells nothing."""

from __future__ import annotations

import warnings

import pytest

import privatest as pt


@pytest.mark.parametrize(("n", "epsilon"), [(30, 1), (100, 0.1)])
def test_steps_whose_score_tells_nothing_at_some_values(n: int, epsilon: float) -> None:
    """Among the steps tried are some that no record of a small mean reaches: 0/0 would end the search where it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = pt.design_estimate("poisson(?)", between=(0.05, 20), epsilon=epsilon, n=n)
    plain = pt.design_estimate("poisson(?)", between=(0.05, 20), epsilon=epsilon, n=n, near=1.0)
    assert made.expected_width(0.2) < 1.2 * plain.expected_width(0.2)
