"""The statistical test in Evidently's protocol: the package where it is installed, else a stand-in of its registry.

The stand-in has what Evidently 0.7 has: ``StatTest`` with four fields, ``register_stattest(test, default_impl)``, and a
call with (reference, current, kind, threshold) that gives a score and a verdict.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privatest as pt
from privatest.errors import InvalidInput, MissingExtra
from privatest.integrations.evidently import private_stattest

HOME = "evidently.legacy.calculations.stattests"
P, Q = "normal(0, 1)", "normal(1, 1)"


def modules(**content: Any) -> dict[str, ModuleType]:
    found = {}
    for name in ("evidently", "evidently.legacy", "evidently.legacy.calculations", HOME, "evidently.legacy.core"):
        found[name] = ModuleType(name)
    for name, value in content.items():
        setattr(found["evidently.legacy.core" if name == "ColumnType" else HOME], name, value)
    return found


@dataclass
class StatTest:
    name: str
    display_name: str
    allowed_feature_types: list[Any]
    default_threshold: float = 0.05


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Every function that was registered, by name."""
    found: dict[str, Any] = {}

    def register_stattest(stat_test: StatTest, default_impl: Any = None) -> None:
        found[stat_test.name] = default_impl

    kinds = Enum("ColumnType", {"Numerical": "num", "Categorical": "cat"})
    for name, module in modules(StatTest=StatTest, register_stattest=register_stattest, ColumnType=kinds).items():
        monkeypatch.setitem(sys.modules, name, module)
    return found


def column(mean: float, size: int = 200) -> pd.Series[float]:
    return pd.Series(np.random.default_rng(1).normal(mean, 1, size))


def test_it_tells_p_from_q(registered: dict[str, Any]) -> None:
    made = private_stattest(P, Q, epsilon=1, n=200)
    assert (made.name, made.default_threshold, len(made.allowed_feature_types)) == ("privatest", 0.05, 2)
    assert "raw data" in made.display_name
    ask = registered["privatest"]
    score, drifted = ask(column(0), column(0), None, 0.05)
    assert (0.05 < score <= 1, drifted) == (True, False)
    score, drifted = ask(column(0), column(1), None, 0.05)
    assert (0 <= score < 0.05, drifted) == (True, True)


def test_the_reference_is_not_looked_at_and_the_size_is_free(registered: dict[str, Any]) -> None:
    private_stattest(P, Q, epsilon=1, n=200, name="other")
    for size in (190, 200, 210):  # missing values are left out before
        score, drifted = registered["other"](None, column(0, size), None, 0.05)
        assert score > 0.05
        assert drifted is False


def test_odd_values_raise_nothing(registered: dict[str, Any]) -> None:
    private_stattest(P, Q, epsilon=1, n=200)
    odd = pd.Series([*column(0), None, float("inf")])
    assert registered["privatest"](None, odd, None, 0.05)[1] is False


def test_a_ledger_releases_a_request_once(registered: dict[str, Any], tmp_path: Path) -> None:
    with pt.Ledger(tmp_path / "book.db") as ledger:
        ledger.grant("claims", epsilon=1, neighbours="add-remove")
        private_stattest(P, Q, epsilon=1, n=200, ledger=ledger, dataset="claims", request="today")
        scores = {registered["privatest"](None, column(0), None, 0.05)[0] for _ in range(5)}
        assert len(scores) == 1
        assert ledger.spent("claims") == 1
        private_stattest(P, Q, epsilon=1, n=200, ledger=ledger, dataset="claims", request="again")
        with pytest.raises(pt.errors.BudgetExceeded):
            registered["privatest"](None, column(0), None, 0.05)


def test_bad_settings_register_nothing(registered: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="n=0"):
        private_stattest(P, Q, epsilon=1, n=0)
    assert registered == {}


def test_without_evidently_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "evidently", None)
    monkeypatch.setitem(sys.modules, HOME, None)
    with pytest.raises(MissingExtra, match=r"Install it: pip install \".*evidently"):
        private_stattest(P, Q, epsilon=1, n=200)


def test_evidently_itself_asks_it() -> None:
    evidently = pytest.importorskip("evidently")
    from evidently.metrics import ValueDrift

    made = private_stattest(P, Q, epsilon=1, n=200)
    for mean, drifted in ((0.0, False), (1.0, True)):
        frames = [evidently.Dataset.from_pandas(pd.DataFrame({"x": column(at)})) for at in (mean, 0.0)]
        result = evidently.Report([ValueDrift(column="x", method="privatest")]).run(*frames)
        score = float(result.dict()["metrics"][0]["value"])
        assert (score < made.default_threshold) is drifted
