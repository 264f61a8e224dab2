"""Finite distributions: what is accepted, and what every refusal says."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from privatest.errors import InvalidDistribution, InvalidInput
from privatest.hypotheses import Labels, as_distribution
from privatest.hypotheses.distribution import TAKEN_FOR_DATA


def test_exact_numbers_are_probabilities_too() -> None:
    law = Labels.from_mapping({"a": Fraction(1, 3), "b": Decimal("0.5"), "c": Fraction(1, 6)})
    assert law.probabilities == pytest.approx([1 / 3, 0.5, 1 / 6])
    assert Labels.from_array([0, 1]).probabilities.tolist() == [0, 1]
    assert Labels.from_array([1]).labels == (0,)


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ([0.5, 0.6], "sum to more than 1"),
        ([1.5, -0.5], "taken for data"),
        ({"a": 1.5, "b": -0.5}, "negative probability"),
        ([0.5, math.nan], "taken for data"),
        ({"a": 0.5, "b": math.nan}, "NaN"),
        ({}, "empty mapping"),
        ([[0.5, 0.5]], "2 dimensions"),
        ([True, False], "taken for data"),
        ({"a": "0.5", "b": "0.5"}, "str"),
        ({"a": True, "b": Fraction(0)}, "bool"),
        (np.array(0.5), "0 dimensions"),
        (3, "not a distribution"),
        (b"normal(0, 1)", "not a distribution"),
        (lambda x: -(x**2), "density(logpdf"),
    ],
)
def test_bad_probabilities_are_refused_by_name(given_: Any, says: str) -> None:
    with pytest.raises(InvalidDistribution) as caught:
        as_distribution(given_, "alternative")
    assert says in str(caught.value)
    assert str(caught.value).startswith("alternative")
    assert isinstance(caught.value, InvalidInput)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("column", [[0, 1] * 501, [0] * 40 + [1], [1, 0, 0], [0.5] * 21, [3, 4, 5], np.arange(9.0)])
@pytest.mark.parametrize("form", [list, np.array, tuple, iter, pd.Series])
def test_columns_are_taken_for_data(column: Any, form: Any) -> None:
    """Also a column of bits with a single 1, which sums to 1. The remedy is named, and nothing is quoted."""
    with pytest.raises(InvalidDistribution) as caught:
        as_distribution(form(column), "null")
    said = str(caught.value)
    assert said == f"null {TAKEN_FOR_DATA}"
    assert "run(data)" in said
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_labels_and_probabilities_must_match() -> None:
    with pytest.raises(InvalidDistribution, match="2 labels but 1 probabilities"):
        Labels(("a", "b"), [1.0])
    with pytest.raises(InvalidDistribution, match="label twice: 'a'"):
        Labels(("a", "a"), [0.5, 0.5])
