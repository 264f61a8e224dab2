"""Everything that runs on data, through a ledger: charged once, released once, nothing charged by a call that fails."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.errors import BudgetExceeded, InvalidInput, RequestConflict
from privatest.numbers import rational

RNG = np.random.default_rng(7)
COIN = RNG.integers(0, 2, 40)
SERIES = np.concatenate([RNG.integers(0, 2, 150) * 0, np.ones(150, dtype=np.int64)])

Ask = Callable[..., Any]


def decide(data: Any = COIN, **ledger: Any) -> Any:
    return pt.design("bernoulli(0.3)", "bernoulli(0.6)", epsilon=0.5, n=40).run(data, **ledger)


def best_run(data: Any = COIN[:6], **ledger: Any) -> Any:
    return pt.optimum("bernoulli(0.3)", "bernoulli(0.6)", epsilon=0.5, n=6).test.run(data, **ledger)


def fit(data: Any = COIN, **ledger: Any) -> Any:
    return pt.goodness_of_fit(data, [0.5, 0.5], distance=0.3, epsilon=0.5, beta=None, **ledger)


def detect(data: Any = SERIES, **ledger: Any) -> Any:
    return pt.detect_change(data, "bernoulli(0.1)", "bernoulli(0.9)", epsilon=0.5, **ledger)


ASKS: dict[str, Ask] = {"test": decide, "optimum": best_run, "fit": fit, "detect": detect}


@pytest.fixture
def ledger(tmp_path: Path) -> pt.Ledger:
    found = pt.Ledger(tmp_path / "ledger.db")
    found.grant("d", epsilon=1)
    return found


@pytest.mark.parametrize("name", ASKS)
class TestEveryRelease:
    def test_is_charged_once_and_returned_again(self, name: str, ledger: pt.Ledger) -> None:
        first = ASKS[name](ledger=ledger, dataset="d", request="r")
        assert ledger.spent("d") == Fraction(1, 2)
        again = [ASKS[name](ledger=ledger, dataset="d", request="r") for _ in range(5)]
        assert all(release == first for release in again)
        assert type(again[0]) is type(first)
        assert ledger.spent("d") == Fraction(1, 2)
        assert first.private
        assert ledger.verify() == 3

    def test_another_request_is_charged_again_until_the_budget_ends(self, name: str, ledger: pt.Ledger) -> None:
        for request in ("r", "s"):
            ASKS[name](ledger=ledger, dataset="d", request=request)
        with pytest.raises(BudgetExceeded, match=r"0\.5 asked, 0\.0 left"):
            ASKS[name](ledger=ledger, dataset="d", request="t")
        assert ledger.left("d") == 0

    def test_what_is_released_is_what_is_recorded(self, name: str, ledger: pt.Ledger) -> None:
        release = ASKS[name](ledger=ledger, dataset="d", request="r")
        recorded = [entry for entry in ledger.history("d") if entry.kind == "release"]
        assert len(recorded) == 1
        assert type(release).from_dict(recorded[0].release) == release

    def test_the_name_of_a_request_stands_for_one_design(self, name: str, ledger: pt.Ledger) -> None:
        ASKS[name](ledger=ledger, dataset="d", request="r")
        other = pt.design("bernoulli(0.2)", "bernoulli(0.6)", epsilon=0.5, n=40)
        with pytest.raises(RequestConflict):
            other.run(COIN, ledger=ledger, dataset="d", request="r")
        assert ledger.spent("d") == Fraction(1, 2)


def test_every_price_is_what_was_asked_and_covers_the_loss(ledger: pt.Ledger) -> None:
    """For every noise, also where the double of epsilon lies above or below it."""
    ledger.grant("d", epsilon=100)
    asked = [Fraction(1, 3), Fraction(5, 6), Fraction(2, 7), Fraction(1, 10), 0.3, 0.7]
    for place, epsilon in enumerate(asked):
        exact = rational(epsilon)
        for kind in ("tight", "ncllr", "scllr"):
            test = pt.design("bernoulli(0.3)", "bernoulli(0.6)", epsilon=epsilon, n=40, test=kind)
            assert test.price == exact
            assert (test.noise.exact_loss(test.sensitivity) or 0) <= exact
        best = pt.optimum("bernoulli(0.3)", "bernoulli(0.6)", epsilon=epsilon, n=6).test
        fitted = pt.design_fit([0.5, 0.5], distance=0.3, epsilon=epsilon, n=40)
        monitor = partial(pt.Monitor, "bernoulli(0.1)", "bernoulli(0.9)", epsilon=epsilon)
        runs: list[Ask] = [partial(best.run, COIN[:6]), partial(fitted.run, COIN), monitor]
        runs.append(partial(pt.detect_change, SERIES, "bernoulli(0.1)", "bernoulli(0.9)", epsilon=epsilon))
        for number, run in enumerate(runs):
            before = ledger.spent("d")
            run(ledger=ledger, dataset="d", request=f"{place} {number}")
            assert ledger.spent("d") - before == exact


def test_what_is_not_private_cannot_be_paid_for(ledger: pt.Ledger) -> None:
    test = pt.design("bernoulli(0.3)", "bernoulli(0.6)", epsilon=1, n=40, test="llr")
    with pytest.raises(InvalidInput, match="not private"):
        test.run(COIN, ledger=ledger, dataset="d", request="r")


@pytest.mark.parametrize("kind", [str, Path])
def test_a_ledger_may_be_given_by_its_path(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "by path.db"
    paying: dict[str, Any] = {"ledger": kind(path), "dataset": "d", "request": "r"}
    with pytest.raises(pt.errors.LedgerUnavailable):  # none is made by asking
        pt.estimate([0, 1] * 200, "bernoulli(?)", epsilon=1, **paying)
    assert not path.exists()
    with pt.Ledger(path, create=True) as ledger:
        ledger.grant("d", epsilon=2)
    first = pt.estimate([0, 1] * 200, "bernoulli(?)", epsilon=1, **paying)
    assert pt.estimate([0, 1] * 200, "bernoulli(?)", epsilon=1, **paying).statistic == first.statistic
    monitor = pt.Monitor("bernoulli(0.2)", "bernoulli(0.8)", epsilon=1, **{**paying, "request": "m"})
    monitor.update([0, 1] * 10)
    with pt.Ledger(path) as ledger:
        assert ledger.left("d") == 0
    with pytest.raises(pt.errors.InvalidInput, match="or its path, not a int"):
        pt.estimate([0, 1] * 200, "bernoulli(?)", epsilon=1, **{**paying, "ledger": 5})
