"""Every design is answered in every way it may be run, and answered again from its record.

With and without a ledger, for single records and for persons, alone and with the share of odd records. What fails only
in one of these ways would fail after the charge.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import privatest as pt

COINS = "bernoulli(0.2)", "bernoulli(0.8)"
N = 40
OPEN: dict[str, Any] = {"neighbours": "add-remove"}
MADE: dict[str, Callable[..., Any]] = {
    "test": lambda **w: pt.design(*COINS, n=N, **w),
    "add-remove test": lambda **w: pt.design(*COINS, n=N, **OPEN, **w),
    "decision": lambda **w: pt.design(*COINS, n=N, release="decision", **w),
    "sets": lambda **w: pt.design("bernoulli(p<=0.2)", "bernoulli(p>=0.8)", n=N, **w),
    "estimate": lambda **w: pt.design_estimate("bernoulli(?)", n=N, **w),
    "add-remove estimate": lambda **w: pt.design_estimate("bernoulli(?)", n=N, **OPEN, **w),
    "estimate of those present": lambda **w: pt.design_estimate("bernoulli(?)", n=N, missing="count", **w),
    "two steps": lambda **w: pt.design_estimate("normal(mean=?, sd=1)", between=(-1000, 1000), n=N, **w),
    "table": lambda **w: pt.design_table(labels=[0, 1], n=N, **w),
    "add-remove table": lambda **w: pt.design_table(labels=[0, 1], n=N, **OPEN, **w),
    "grouped table": lambda **w: pt.design_table(labels=[0, 1], groups=["a", "b"], n=N, **w),
    "median in steps": lambda **w: pt.design_estimate("median", between=(0, 1), n=N, **w),
    "mean in steps": lambda **w: pt.design_estimate("mean", between=(0, 1), n=N, **w),
    "table test": lambda **w: pt.design_table(labels=[0], n=N, **w).power({0: 0.2, 1: 0.8}, {0: 0.8, 1: 0.2}),
    "fit": lambda **w: pt.design_fit([0.5, 0.5], distance=0.3, n=N, **w),
    "groups": lambda **w: pt.design_groups(n=(N // 2, N // 2), **w),
    "groups of those present": lambda **w: pt.design_groups(n=(N // 2, N // 2), missing="count", **w),
    "change": lambda **w: pt.design_change(*COINS, n=N, **w),
    "change in any series": lambda **w: pt.design_change(*COINS, **w),
    "unknown change": lambda **w: pt.design_change([0.8, 0.2], distance=0.5, n=N, assume_change=True, **w),
    "optimum": lambda **w: pt.optimum(*COINS, n=N, **w).test,
}
FRAME = pd.DataFrame({"who": range(N), "x": [0.0, 1.0] * (N // 2), "arm": ["a"] * (N // 2) + ["b"] * (N // 2)})


@cache
def made(name: str) -> Any:
    return MADE[name](privacy="pure(20)" if name == "two steps" else "pure(4)")


@pytest.mark.parametrize("odd_epsilon", [None, 0.5])
@pytest.mark.parametrize("unit", [None, "who"])
@pytest.mark.parametrize("name", MADE)
def test_every_design_is_answered(name: str, unit: str | None, odd_epsilon: float | None, tmp_path: Path) -> None:
    design = made(name)
    where = {
        "column": "x",
        "unit": unit,
        **{"groups": {"group": "arm"}, "grouped": {"by": "arm"}}.get(name.split()[0], {}),
    }
    ledger = pt.Ledger(tmp_path / "ledger.db")
    ledger.grant("d", epsilon=30, neighbours=design.neighbours, unit=unit or "")
    paying: dict[str, Any] = {"ledger": ledger, "dataset": "d", "request": "r"}
    for paid in ({}, paying):
        found = design.run(FRAME, **where, odd_epsilon=odd_epsilon, **paid)
        assert found.private
        assert found.persons == (unit is not None)
        assert (found.odd_share is None) == (odd_epsilon is None)
        assert found.sentence
        assert found.facts()
        document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert type(found).from_dict(document).epsilon == found.epsilon == design.epsilon + (odd_epsilon or 0)
    again = design.run(FRAME, **where, odd_epsilon=odd_epsilon, **paying)
    assert again.replayed
    assert again == found
    assert ledger.spent("d") == design.price + (0 if odd_epsilon is None else pt.notions.parse(odd_epsilon).loss)
