"""Every gate of the ledger, one step on each side: what just passes, and what just does not."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from privatest.charge_before_release import make_charge
from privatest.errors import BudgetExceeded, InvalidInput, LedgerTampered, RequestConflict
from privatest.ledger import Ledger
from privatest.ledger.budgets import fraction_text
from privatest.ledger.hash_chain import LedgerRow

ROWS, HEAD = "privatest_ledger_rows", "privatest_ledger_head"
TINY = Fraction(1, 10**30)


def request(ledger: Ledger, name: str, **changes: Any) -> Any:
    words: dict[str, Any] = {"dataset": "claims", "epsilon": 0.1, "design": "d", "draw": dict}
    return ledger.perform(request=name, **{**words, **changes})


class TestTheAnchor:
    @pytest.fixture
    def filled(self, path: Path) -> Ledger:
        ledger = Ledger(path)
        ledger.grant("claims", epsilon=1)
        for name in "abc":
            request(ledger, name)
        return ledger

    def rolled_back(self, path: Path, rows: int) -> None:
        """What somebody who may write to the file can do: remove the newest rows and make the head fit."""
        with sqlite3.connect(path) as raw:
            raw.execute(f"DELETE FROM {ROWS} WHERE sequence > {rows}")
            raw.execute(f"UPDATE {HEAD} SET count = {rows}, hash = (SELECT hash FROM {ROWS} WHERE sequence = {rows})")
        raw.close()

    @pytest.mark.parametrize("left", range(1, 7))
    def test_rows_that_were_rolled_back_are_seen_from_every_receipt(
        self, filled: Ledger, path: Path, left: int
    ) -> None:
        """Also one row only; what lies before the receipt is all that it can speak for."""
        pins = {entry.sequence: f"{entry.sequence}:{entry.hash}" for entry in filled.history()}
        self.rolled_back(path, left)
        assert filled.verify() == left, "alone it cannot see this, and the documents say so"
        for number, pin in pins.items():
            if number <= left:
                assert filled.verify(since=pin) == left
            else:
                with pytest.raises(
                    LedgerTampered, match=f"Row {left + 1} .* is missing: the fingerprint .* pins {number} "
                ):
                    filled.verify(since=pin)


@pytest.mark.parametrize(
    "damage", ["kind = 'grant '", "epsilon = '1/5'", "time = ''", "release = '{}'", "design = 'e'"]
)
@pytest.mark.parametrize("row", [2, 3])
def test_a_damaged_row_however_old_stops_charges_on_every_data_set(path: Path, damage: str, row: int) -> None:
    ledger = Ledger(path)
    ledger.grant("claims", epsilon=1)
    request(ledger, "old", draw=lambda: {"x": 1})
    ledger.grant("other", epsilon=1)
    for k in range(3):
        request(ledger, f"q{k}", dataset="other")
    with sqlite3.connect(path) as raw:
        raw.execute(f"UPDATE {ROWS} SET {damage} WHERE sequence = {row}")
    raw.close()
    for again in (ledger, Ledger(path)):
        for dataset in ("claims", "other"):
            with pytest.raises(LedgerTampered, match=f"Row {row} "):
                request(again, "new", dataset=dataset, draw=lambda: 1 / 0)
        with pytest.raises(LedgerTampered, match=f"Row {row} "):
            again.grant("third", epsilon=1)
    assert request(ledger, "q0", dataset="other") == {}, "what was released before is still given out"


class TestAmounts:
    @pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1), -TINY])
    def test_a_forged_charge_that_is_free_or_less_is_found(self, path: Path, epsilon: Fraction) -> None:
        """With every hash right: only the amounts are wrong."""
        ledger = Ledger(path)
        ledger.grant("claims", epsilon=1)
        grant = ledger.history()[0]
        price, when = fraction_text(epsilon), grant.time.isoformat()
        row = LedgerRow(2, when, "charge", "claims", "q", price, "d", "1/1", price, None, grant.hash).sealed()
        with sqlite3.connect(path) as raw:
            raw.execute(f"INSERT INTO {ROWS} VALUES ({', '.join('?' * 12)})", row)
            raw.execute(f"UPDATE {HEAD} SET count = 2, hash = ?", [row.hash])
        raw.close()
        with pytest.raises(LedgerTampered, match=r"Row 2 .* holds an epsilon that is not positive"):
            ledger.verify()

    def test_the_last_of_the_budget_and_a_trace_more(self, path: Path) -> None:
        ledger = Ledger(path)
        ledger.grant("claims", epsilon=1)
        request(ledger, "most", epsilon=1 - TINY)
        with pytest.raises(BudgetExceeded) as caught:
            request(ledger, "more", epsilon=2 * TINY)
        assert (caught.value.requested, caught.value.left) == (2 * TINY, TINY)
        request(ledger, "rest", epsilon=TINY)
        assert ledger.left("claims") == 0
        ledger.grant("claims", epsilon=1)
        with pytest.raises(InvalidInput, match="already spent"):
            ledger.grant("claims", epsilon=1 - TINY)
        assert ledger.verify() == 5


def test_charges_are_on_disk_when_they_are_said_to_be(path: Path) -> None:
    """No kill can show this, only a power cut: so the setting itself is read, on the connection that writes."""
    ledger = Ledger(path)
    with ledger._store.write() as book:
        found = {
            name: book.connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("synchronous", "journal_mode")
        }
    assert found == {"synchronous": 3, "journal_mode": "delete"}, "3 is EXTRA"


NOBODY = """
import os, sys
import privatest.ledger.store
os.setgid(65534); os.setuid(65534)
from privatest import Ledger, errors
for create in (True, False):
    try:
        Ledger(sys.argv[1], create=create)
    except errors.LedgerUnavailable as error:
        print(error)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody who may not")
def test_a_ledger_that_may_not_be_read_is_a_sentence_without_folders(path: Path) -> None:
    folder = path.parent / "secret folder"
    folder.mkdir()
    path.parent.chmod(0o755)
    Ledger(folder / "ledger.db").grant("claims", epsilon=1)
    for locked, mode in ((folder, 0o700), (folder / "ledger.db", 0o600)):
        folder.chmod(0o755)
        locked.chmod(mode)
        found = subprocess.run(
            [sys.executable, "-c", NOBODY, str(folder / "ledger.db")], capture_output=True, text=True, timeout=600
        )
        lines = found.stdout.splitlines()
        assert (len(lines), found.stderr) == (2, ""), found.stderr
        for line in lines:
            assert line.startswith("The ledger 'ledger.db' cannot be opened: this user may not read it")
            assert "secret folder" not in line


class TestChargeItself:
    def charge(self, ledger: Ledger, value: Any, name: str = "r") -> Any:
        names: dict[str, Any] = {"ledger": ledger, "dataset": "claims", "request": name}
        return make_charge(**names, price=Fraction(1, 2), design=lambda: {"value": value}, simulated=False)

    def test_whole_numbers_texts_and_lists_are_compared_whole(self, path: Path) -> None:
        ledger = Ledger(path)
        ledger.grant("claims", epsilon=9)
        kinds = [
            10**12,
            10**12 + 1,
            "10",
            True,
            None,
            [1, 2],
            [2, 1],
            [1, 2, 3],
            "x" * 200,
            "x" * 201,
            "x" * 202,
            {"a": 1},
        ]
        for place, one in enumerate(kinds):
            self.charge(ledger, one, f"r{place}").perform(dict, dict)
            for other in kinds:
                if other is not one:
                    with pytest.raises(RequestConflict):
                        self.charge(ledger, other, f"r{place}").earlier()
