"""What leaves the data: a frozen handful of plain values that say how private they are."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle

import pytest

from privatest.decision import Release

PRIVATE = Release("alternative", -3.25, 0.0125, 0.5, 100, "tight", "replace")
OPEN = Release("null", None, None, math.inf, 100, "llr", "replace")
SIMULATED = dataclasses.replace(PRIVATE, simulated=True)


def test_it_is_frozen() -> None:
    for field in dataclasses.fields(PRIVATE):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(PRIVATE, field.name, None)


def test_it_says_whether_it_is_private() -> None:
    assert [release.private for release in (PRIVATE, OPEN, SIMULATED)] == [True, False, False]


def test_its_document_is_plain_json() -> None:
    assert json.loads(json.dumps(PRIVATE.to_dict(), allow_nan=False)) == {
        "decision": "alternative",
        "statistic": -3.25,
        "pvalue": 0.0125,
        "epsilon": 0.5,
        "n": 100,
        "test": "tight",
        "neighbours": "replace",
        "simulated": False,
        "private": True,
        "receipt": None,
        "replayed": False,
    }
    assert json.loads(json.dumps(OPEN.to_dict(), allow_nan=False))["epsilon"] == "inf"
    assert json.loads(json.dumps(SIMULATED.to_dict(), allow_nan=False))["private"] is False


def test_it_prints_for_people() -> None:
    assert str(PRIVATE) == (
        "decision: alternative; statistic -3.25, p-value 0.0125; 0.5-differentially private (replace)"
    )
    assert str(OPEN) == "decision: null; NOT PRIVATE (epsilon = inf)"
    assert str(SIMULATED).endswith("SIMULATED, not private")


def test_it_compares_and_travels() -> None:
    assert pickle.loads(pickle.dumps(PRIVATE)) == PRIVATE
    assert PRIVATE != SIMULATED
    assert len({PRIVATE, dataclasses.replace(PRIVATE)}) == 1
