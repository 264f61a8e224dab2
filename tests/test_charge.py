"""What a run costs: what was asked, no less than it loses, and nothing where the ledger cannot be asked."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.errors import InvalidInput
from privatest.numbers import rational

RNG = np.random.default_rng(7)
COIN = RNG.integers(0, 2, 40)
SERIES = np.concatenate([RNG.integers(0, 2, 150) * 0, np.ones(150, dtype=np.int64)])

Ask = Callable[..., Any]


def fit(data: Any = COIN, **ledger: Any) -> Any:
    return pt.goodness_of_fit(data, [0.5, 0.5], distance=0.3, epsilon=0.5, beta=None, **ledger)


@pytest.fixture
def ledger(tmp_path: Path) -> pt.Ledger:
    found = pt.Ledger(tmp_path / "ledger.db")
    found.grant("d", epsilon=1)
    return found


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
