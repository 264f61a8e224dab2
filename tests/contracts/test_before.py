"""What the version before wrote (tag pre-house) is read by this one: designs, ledgers, states of monitors.

``before/`` was written by that version's own code: designs of each kind, a ledger with one request of each kind, the
state of the monitor among them, and what was released.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import privatest as pt
from privatest.bounds import HistogramTest
from privatest.changepoint.state_file import FORMAT
from privatest.errors import InvalidDocument, LedgerUnreadable, RequestConflict

BEFORE = Path(__file__).parent / "before"
DESIGNS = json.loads((BEFORE / "designs.json").read_text())
RELEASES = json.loads((BEFORE / "releases.json").read_text())
KINDS: dict[str, Any] = {"test": pt.PrivateTest, "histogram_test": HistogramTest, "fit": pt.FitTest}
COINS = "bernoulli(0.2)", "bernoulli(0.8)"
DATA = [0, 0, 1, 0, 0] * 8


@pytest.fixture
def ledger(tmp_path: Path) -> pt.Ledger:
    pytest.importorskip("sqlalchemy")
    connection = sqlite3.connect(tmp_path / "ledger.db")
    connection.executescript((BEFORE / "ledger.sql").read_text())
    connection.close()
    return pt.Ledger(tmp_path / "ledger.db")


@pytest.mark.parametrize("kind", KINDS)
def test_a_design_is_read_and_written_as_it_was(kind: str) -> None:
    design = KINDS[kind].from_dict(DESIGNS[kind])
    assert design.to_dict() == DESIGNS[kind]
    assert design.run(DATA[: design.n]).private


def test_a_design_made_now_is_the_one_made_then() -> None:
    assert pt.design_fit([0.8, 0.2], distance=0.3, epsilon=1, n=40, alpha=1 / 6).to_dict() == DESIGNS["fit"]
    assert pt.optimum(*COINS, epsilon=1, n=10).test.to_dict().keys() == DESIGNS["histogram_test"].keys()


ASK: dict[str, Callable[..., Any]] = {
    "test": lambda **paying: pt.design(*COINS, epsilon=1, n=40).run(DATA, **paying),
    "histogram_test": lambda **paying: pt.optimum(*COINS, epsilon=1, n=10).test.run(DATA[:10], **paying),
    "fit": lambda **paying: pt.goodness_of_fit([1] * 40, [0.8, 0.2], distance=0.3, epsilon=1, alpha=1 / 6, **paying),
    "change": lambda **paying: pt.detect_change(DATA + [1] * 60, *COINS, epsilon=2, assume_change=True, **paying),
}


@pytest.mark.parametrize("kind", ASK)
def test_a_request_of_before_is_answered_again_free_of_charge(kind: str, ledger: pt.Ledger) -> None:
    spent = ledger.spent("claims")
    found = ASK[kind](ledger=ledger, dataset="claims", request=kind.replace("_", " "))
    assert found.replayed is not None
    assert ledger.spent("claims") == spent
    told, before = found.to_dict(), dict(RELEASES[kind])
    if kind == "fit":  # which pointed the other way
        assert before["statistic"] > 0 > told["statistic"]
        before["statistic"] = -before["statistic"]
        told.pop("format")
    if kind == "change":  # which could not name the order's values
        assert (told.pop("order_value"), told.pop("order_range")) == (None, None)
    for document in (told, before):
        del document["receipt"], document["replayed"]
    if kind in ("test", "fit", "histogram_test"):  # which did not say what the data fit
        assert (told.pop("fits"), told.pop("pvalue_alternative")) == (None, None)
        told.pop("evalue", None)  # computed from the statistic now
    assert told == before
    with pytest.raises(RequestConflict):
        ASK["fit" if kind != "fit" else "test"](ledger=ledger, dataset="claims", request=kind.replace("_", " "))


def test_a_ledger_of_before_is_whole(ledger: pt.Ledger) -> None:
    assert ledger.verify() == 13
    assert ledger.left("claims") == 20 - ledger.spent("claims")


def test_a_ledger_of_another_version_is_refused_by_its_number(ledger: pt.Ledger, tmp_path: Path) -> None:
    del ledger
    connection = sqlite3.connect(tmp_path / "ledger.db")
    connection.execute("UPDATE privatest_ledger_head SET format = 99")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerUnreadable, match=r"version 99; this privatest reads version 1"):
        pt.Ledger(tmp_path / "ledger.db").spent("claims")


def test_a_monitor_of_before_goes_on(ledger: pt.Ledger, tmp_path: Path) -> None:
    state = tmp_path / "monitor.json"
    shutil.copy(BEFORE / "monitor.json", state)
    monitor = pt.Monitor.load(state, ledger=ledger)
    assert monitor.seen <= RELEASES["monitor"]["seen"]
    assert list(monitor.trace) == RELEASES["monitor"]["trace"]
    monitor.update([0] * 40)
    assert monitor.seen > 40


def test_a_state_of_another_version_is_refused_by_its_format(tmp_path: Path) -> None:
    state = tmp_path / "monitor.json"
    text = (BEFORE / "monitor.json").read_text()
    assert FORMAT in text
    state.write_text(text.replace(FORMAT, "privatest/monitor/99"))
    with pytest.raises(InvalidDocument, match=r"'privatest/monitor/99', this version reads 'privatest/monitor/2'"):
        pt.Monitor.load(state)
