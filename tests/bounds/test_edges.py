"""Documents of histogram tests and the rational below e^epsilon, one step on each side."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from privatest.bounds.optimum import DENOMINATOR, MOST_HISTOGRAMS, HistogramTest, dual_test
from privatest.errors import InvalidDocument, InvalidInput
from privatest.ledger import Ledger
from privatest.numbers import exp_below
from privatest.privacy import Pure
from privatest.scores import LabelCells
from privatest.theory.wasserstein import wasserstein

HALF = DENOMINATOR // 2


def made(n: int = 1, **changes: Any) -> HistogramTest:
    """Two classes; "null" with probability 1/2 but where all records are of the first."""
    settings: dict[str, Any] = {
        "cells": LabelCells(("a", "b")),
        "members": np.array([0, 1, 0]),
        "null_law": np.array([0.25, 0.75]),
        "alternative_law": np.array([1.0, 0.0]),
        "numerators": np.array([HALF] * n + [HALF + 7]),
        "notion": Pure(Fraction(1, 3)),
        "n": n,
    }
    return HistogramTest(**settings | changes)


@pytest.mark.parametrize("bits", [40, 80])
@pytest.mark.parametrize("x", ["1/1000", "1/3", "1", "3", "17/2", "50", "100"])
def test_the_rational_below_e_to_the_x_is_as_near_as_it_says(x: str, bits: int) -> None:
    exact = Fraction(x)
    with mpmath.workdps(120):
        truth = mpmath.exp(mpmath.mpf(exact.numerator) / exact.denominator)
        found = exp_below(exact, bits)
        near = mpmath.mpf(found.numerator) / found.denominator
        assert 0 < (truth - near) / truth < mpmath.mpf(2) ** (8 - bits)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"n": 0}, "^n=0 must be a whole number of at least 1"),
        ({"n": True}, "^n=True must be a whole number"),
        ({"n": 1.0}, "^n=1.0 must be a whole number"),
        ({"members": [0, 2, 0]}, "^The parts of the test do not fit"),
        ({"members": [0, -1, 0]}, "^The parts of the test do not fit"),
        ({"members": [0, 1]}, "^The parts of the test do not fit"),
        ({"members": []}, "^A list of whole numbers"),
        ({"members": "011"}, "^A list of whole numbers"),
        ({"members": {"0": 1}}, "^A list of whole numbers"),
        ({"members": [0, 1, False]}, "^A list of whole numbers"),
        ({"null_law": [-0.25, 1.25]}, "^The parts of the test do not fit"),
        ({"alternative_law": [-0.25, 1.25]}, "^The parts of the test do not fit"),
        ({"null_law": [0.25, 0.75 + 2e-9]}, "^The parts of the test do not fit"),
        ({"null_law": [[0.25, 0.75]]}, "^The parts of the test do not fit"),
        ({"null_law": [0.25, 0.5, 0.25]}, "^The parts of the test do not fit"),
        ({"null_law": [0.25, 0.5, 0.25], "alternative_law": [0.25, 0.5, 0.25]}, "^The parts of the test do not fit"),
        ({"denominator": DENOMINATOR + 1}, "^The parts of the test do not fit"),
        ({"numerators": [HALF, HALF, HALF]}, "^The parts of the test do not fit"),
        ({"numerators": [1, HALF]}, "cannot be: The probabilities allow a privacy loss"),
        ({"epsilon": "0"}, "cannot be: epsilon="),
        ({"cells": 5}, "^A part of the cells|^The test cannot be read"),
    ],
)
def test_documents_at_their_edges(changes: dict[str, Any], complaint: str) -> None:
    document = json.loads(made().to_json())
    assert HistogramTest.from_dict(document) == made()
    assert HistogramTest.from_dict(document | {"null_law": [0.25, 0.75 + 5e-10]}).n == 1
    with pytest.raises(InvalidInput, match=complaint):
        HistogramTest.from_dict(document | changes)


def test_documents_that_json_cannot_hold_are_not_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        made(null_law=np.array([math.nan, 1.0])).to_json()


def test_what_a_test_is_made_of_cannot_be_changed() -> None:
    test = made()
    for array in (test.members, test.null_law, test.alternative_law, test.numerators):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_simulation_is_not_charged(tmp_path: Any) -> None:
    with Ledger(tmp_path / "ledger.db") as book:
        book.grant("d", epsilon=1)
        paid: dict[str, Any] = {"ledger": book, "dataset": "d", "request": "r"}
        with pytest.raises(InvalidInput, match="a simulation releases nothing"):
            made().run(["a"], rng=np.random.default_rng(1), **paid)
        assert book.spent("d") == 0
        made().run(["a"], **paid)
        assert book.spent("d") == Fraction(1, 3)


def test_what_is_no_document_is_named() -> None:
    for wrong, name in (([], "'list'"), ({"format": "x"}, "'x'"), ({}, "None")):
        with pytest.raises(InvalidDocument, match=f"format {name}, expected"):
            HistogramTest.from_dict(wrong)  # type: ignore[arg-type]


def test_the_mechanism_of_the_dual_function_is_restored_from_its_document() -> None:
    test = dual_test(wasserstein([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], epsilon=1, n=3))
    assert test.numerators.dtype == np.int64
    assert HistogramTest.from_json(test.to_json()) == test


def test_every_histogram_has_its_probability() -> None:
    assert made().private
    with pytest.raises(InvalidInput, match="2 histograms of n=1 records need as many probabilities, not 3"):
        made(numerators=np.array([HALF, HALF, HALF]))


def test_larger_documents_than_five_million_histograms_are_not_read() -> None:
    assert MOST_HISTOGRAMS == 5_000_000  # of what is written already
    document = json.loads(made().to_json()) | {"n": 5_000_000}
    with pytest.raises(InvalidDocument, match="do not fit together"):
        HistogramTest.from_dict(document)


def test_chances_are_probabilities() -> None:
    assert made().chances.tolist() == [0.5, (HALF + 7) / DENOMINATOR]
