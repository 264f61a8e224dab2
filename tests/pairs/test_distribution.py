"""Finite distributions: what is accepted, and what every refusal says."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privatest.errors import InvalidDistribution, InvalidInput
from privatest.pairs import Labels, as_distribution, parse


def test_labels_of_any_hashable_kind() -> None:
    labels = ("a", 3, None, (1, 2), frozenset({5}), 2.5, True)
    law = Labels.from_mapping(dict.fromkeys(labels, 1 / 7))
    assert law.labels == labels
    assert law.kind == "labels"
    assert law.spec is None
    assert law.describe() == "categorical(7 labels)"


def test_arrays_have_labels_from_zero() -> None:
    for given_ in ([0.5, 0.5], (0.5, 0.5), np.array([0.5, 0.5]), np.array([0.5, 0.5], dtype=np.float32)):
        law = as_distribution(given_)
        assert isinstance(law, Labels)
        assert law.labels == (0, 1)
        assert all(type(label) is int for label in law.labels)


def test_exact_numbers_are_probabilities_too() -> None:
    law = Labels.from_mapping({"a": Fraction(1, 3), "b": Decimal("0.5"), "c": Fraction(1, 6)})
    assert law.probabilities == pytest.approx([1 / 3, 0.5, 1 / 6])
    assert Labels.from_array([0, 1]).probabilities.tolist() == [0, 1]
    assert Labels.from_array([1]).labels == (0,)


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ([0.5, 0.6], "sum to 1.1"),
        ([0.5, 0.5 + 2e-9], "sum to 1.000000002"),
        ([1.5, -0.5], "negative probability -0.5 (at position 1)"),
        ([0.5, math.nan], "NaN (at position 1)"),
        ([math.inf, 0.5], "sum to inf"),
        ([], "empty"),
        ({}, "empty mapping"),
        ([[0.5, 0.5]], "2 dimensions"),
        ([0.5, [0.5]], "flat list"),
        ([True, False], "bool"),
        (["0.5", "0.5"], "str"),
        ([0.5 + 0j, 0.5], "complex"),
        ({"a": "0.5", "b": "0.5"}, "str"),
        ({"a": None, "b": 1.0}, "NoneType"),
        ({"a": True, "b": Fraction(0)}, "bool"),
        (np.array(0.5), "0 dimensions"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "datetime"),
        (3, "not a distribution"),
        (None, "not a distribution"),
        (True, "not a distribution"),
        ({0.5, 0.25}, "not a distribution"),
        (b"normal(0, 1)", "not a distribution"),
        (object(), "type object is not a distribution"),
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


def test_labels_and_probabilities_must_match() -> None:
    with pytest.raises(InvalidDistribution, match="2 labels but 1 probabilities"):
        Labels(("a", "b"), [1.0])
    with pytest.raises(InvalidDistribution, match="label twice: 'a'"):
        Labels(("a", "a"), [0.5, 0.5])


def test_samples_follow_the_probabilities() -> None:
    rng = np.random.default_rng(1)
    drawn = Labels.from_mapping({"a": 0.25, "b": 0.75}).sample(rng, 4000)
    assert abs(np.mean(drawn == "b") - 0.75) < 0.05
    assert Labels.from_array([0.5, 0.5]).sample(rng, 5).dtype == np.int64
    mixed = Labels.from_mapping({"a": 0.5, (1, 2): 0.5}).sample(rng, 5)
    assert mixed.dtype == object


words = st.text(min_size=1, max_size=8) | st.integers(-(10**6), 10**6)


@given(st.lists(words, min_size=1, max_size=5, unique=True))
def test_the_spec_reads_back(labels: list[Any]) -> None:
    law = Labels(labels, [1 / len(labels)] * len(labels))
    if law.spec is None:
        assert not all(isinstance(label, int) or label.isprintable() for label in labels)
        return
    again = parse(law.spec)
    assert isinstance(again, Labels)
    assert again.labels == law.labels
    assert again.probabilities.tolist() == law.probabilities.tolist()
