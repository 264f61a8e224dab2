"""Privacy of a noisy table, of the code that runs: every data set, neighbour and branch of every draw."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import pandas as pd
import pytest

from privatest import design_table, engines
from privatest.errors import InvalidDocument, InvalidInput
from privatest.estimates.table_design import TableDesign
from privatest.privacy import Tulap
from tests.contracts.test_estimate_privacy import forged
from tests.contracts.test_running_privacy import SLACK, laws_of, loss, opened
from tests.contracts.walk import largest_loss, walking

Records = tuple[Any, ...]


def run_table(design: TableDesign) -> Callable[[Records, Any], Hashable]:
    return lambda data, source: design.run(opened(data), rng=source).doubled


@pytest.mark.parametrize("epsilon", ["2", "1/3"])
def test_all_counts_together(epsilon: str) -> None:
    design = design_table(n=1, labels=["a"], epsilon=Fraction(epsilon))
    with walking(2):
        found = loss(run_table(design), ("a", "b", None), 1)
    assert 0.999 * float(Fraction(epsilon)) < found <= Fraction(epsilon) * SLACK


def test_half_the_noise_is_refused_and_seen() -> None:
    bad = forged(design_table(n=1, labels=["a"], epsilon=1), noise=Tulap(Fraction(1), 1))
    with walking(3):
        assert loss(run_table(bad), ("a", "b"), 1) > 1.9


def test_a_person_comes_or_goes() -> None:
    design = design_table(n=1, labels=["a"], epsilon=1, neighbours="add-remove")
    pairs = [((), ("a",)), (("a",), ("a", None)), (("b",), ())]
    with walking(3):
        found = largest_loss(laws_of(run_table(design), pairs), pairs, None)
    assert 0.999 < found <= SLACK


def test_a_person_of_two_rows() -> None:
    design = design_table(n=2, labels=["a"], epsilon=1, max_rows_per_unit=2)

    @cache
    def of_me(mine: Records) -> Any:
        frame = pd.DataFrame({"who": ["me"] * len(mine), "x": list(mine)})
        return engines.open_for(design.need, frame, column="x", unit="who")

    def run(mine: Records, source: Any) -> Hashable:
        return design.run(of_me(mine), rng=source).doubled

    pairs = list(itertools.permutations((("a", "a"), ("a", "b"), ("b", "b")), 2))
    with walking(2):
        assert 0.9 < largest_loss(laws_of(run, pairs), pairs, None) <= SLACK


@pytest.mark.parametrize("change", [{"privacy": "pure(0.4)"}, {"max_rows_per_unit": 2}, {"neighbours": "nobody"}])
def test_a_document_that_promises_more_is_refused(change: dict[str, Any]) -> None:
    document = design_table(n=10, edges=[0, 1], epsilon=1).to_dict()
    assert TableDesign.from_dict(document) == design_table(n=10, edges=[0, 1], epsilon=1)
    with pytest.raises((InvalidDocument, InvalidInput)):
        TableDesign.from_dict({**document, **change})


def test_noise_that_is_weighted_away_is_refused() -> None:
    document = design_table(n=10, edges=[0, 1], epsilon=1).to_dict()
    document["noise"] = {"kind": "weighted", "noise": document["noise"], "weights": [0]}
    with pytest.raises((InvalidDocument, InvalidInput), match="noise"):
        TableDesign.from_dict(document)


def test_a_test_by_a_table_has_the_noise_of_its_weights() -> None:
    test = design_table(n=50, edges=[-1, 0, 1], epsilon=1).power("normal(0, 1)", "normal(1, 1)")
    weights = list(test.noise.weights)  # type: ignore[attr-defined]
    fewer = replace(test.noise, weights=(0, *weights[1:]))
    with pytest.raises(InvalidInput, match="noise"):
        replace(test, noise=fewer)
    with pytest.raises(InvalidInput, match="noise"):
        replace(test, notion=0.5)
