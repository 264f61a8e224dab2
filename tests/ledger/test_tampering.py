"""Whatever is changed behind the ledger's back is found, by number."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from privatest.errors import LedgerError, LedgerTampered
from privatest.ledger import Ledger
from privatest.ledger.hash_chain import LedgerRow

ROWS, HEAD = "privatest_ledger_rows", "privatest_ledger_head"
Ask = Callable[..., dict[str, Any]]
Tamper = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def used(ledger: Ledger, ask: Ask) -> Ledger:
    """Nine rows: 1 grant claims, 2-3 q0, 4 grant visits, 5-6 v0, 7-8 q1, 9 charge of q2."""
    ledger.grant("claims", epsilon=1)
    ask("q0")
    ledger.grant("visits", epsilon=1)
    ask("v0", dataset="visits", epsilon=0.3)
    ask("q1")
    with pytest.raises(ZeroDivisionError):
        ask("q2", release=lambda _: {"x": 1 / 0})
    assert ledger.verify() == 9
    return ledger


EDITS = {
    "sequence": "90",
    "time": "'2020-01-01T00:00:00.000000+00:00'",
    "kind": "'grant'",
    "dataset": "'visits'",
    "request": "'q9'",
    "epsilon": "'1/11'",
    "design": "'sha256:ab'",
    "granted": "'2/1'",
    "spent": "'1/20'",
    "release": '\'{"decision": "alternative"}\'',
    "previous": f"'{'0' * 64}'",
    "hash": f"'{'f' * 64}'",
}


@contextmanager
def altered(tamper: Tamper, *statements: str) -> Iterator[None]:
    """The ledger with a change made behind its back; afterwards it is put right again."""
    rows = tamper(f"SELECT * FROM {ROWS} ORDER BY sequence")
    head = tamper(f"SELECT * FROM {HEAD}")
    tamper(*statements)
    yield
    back = [f"DELETE FROM {ROWS}", f"DELETE FROM {HEAD}"]
    back += [f"INSERT INTO {ROWS} VALUES ({cells(row)})" for row in rows]
    back += [f"INSERT INTO {HEAD} VALUES ({cells(row)})" for row in head]
    tamper(*back)


def cells(row: tuple[Any, ...]) -> str:
    return ", ".join("NULL" if cell is None else repr(cell) for cell in row)


def bad_row(ledger: Ledger) -> int | None:
    """The row that `verify` names, which its message must name too."""
    with pytest.raises(LedgerTampered) as caught:
        ledger.verify()
    assert f"Row {caught.value.sequence} of the ledger" in str(caught.value)
    return caught.value.sequence


def test_an_edit_of_any_column_is_found(used: Ledger, tamper: Tamper) -> None:
    assert len(tamper(f"SELECT * FROM {ROWS} LIMIT 1")[0]) == len(EDITS), "every column is tried"
    found = {}
    for row in (1, 3, 9):
        for column, value in EDITS.items():
            with altered(tamper, f"UPDATE {ROWS} SET {column} = {value} WHERE sequence = {row}"):
                if (row, column) not in {(1, "kind"), (1, "previous")}:  # there that is the true value
                    found[row, column] = bad_row(used)
            assert used.verify() == 9
    assert len(found) == 3 * len(EDITS) - 2
    assert {key: row for key, row in found.items() if row != key[0]} == {}


@pytest.mark.parametrize("portion", [1, 4, 9, 2000])
def test_rows_that_were_checked_before_are_compared_at_each_request(
    used: Ledger, tamper: Tamper, portion: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One object that has found all in order: whatever changes then is found, and named, as by one that has not."""
    monkeypatch.setattr("privatest.ledger.ledger.ROWS_AT_A_TIME", portion)
    changes = {
        **{
            row: f"UPDATE {ROWS} SET time = '2020-01-01T00:00:00.000000+00:00' WHERE sequence = {row}"
            for row in (1, 4, 9)
        },
        7: f"DELETE FROM {ROWS} WHERE sequence = 7",
        2: f"DELETE FROM {ROWS} WHERE sequence > 1",
    }
    for row, change in changes.items():
        used._check_all()
        assert used._checked is not None
        assert used._checked.head.rows == 9
        with altered(tamper, change):
            with pytest.raises(LedgerTampered) as caught:
                used._check_all()
            assert caught.value.sequence == row
            assert used._checked is None


def test_a_removed_row_is_found(used: Ledger, tamper: Tamper) -> None:
    for row in range(1, 10):
        with altered(tamper, f"DELETE FROM {ROWS} WHERE sequence = {row}"):
            assert bad_row(used) == row


def test_a_cut_off_end_is_found_at_once(used: Ledger, tamper: Tamper, ask: Ask) -> None:
    for kept in (8, 5, 1, 0):
        with altered(tamper, f"DELETE FROM {ROWS} WHERE sequence > {kept}"):
            assert bad_row(used) == kept + 1
            refuses(used, ask)


def test_an_edited_head_is_found_at_once(used: Ledger, tamper: Tamper, ask: Ask) -> None:
    for edit in ("count = 8", "count = 10", "count = -1", f"hash = '{'0' * 64}'", "hash = ''"):
        with altered(tamper, f"UPDATE {HEAD} SET {edit}"):
            bad_row(used)
            refuses(used, ask)


def test_none_or_two_heads_are_found_at_once(used: Ledger, tamper: Tamper, ask: Ask) -> None:
    for change in (f"DELETE FROM {HEAD}", f"INSERT INTO {HEAD} SELECT 2, format, count, hash FROM {HEAD}"):
        with altered(tamper, change):
            with pytest.raises(LedgerTampered, match="head records, not one"):
                used.verify()
            refuses(used, ask)


def test_an_inserted_row_is_found(used: Ledger, tamper: Tamper) -> None:
    columns = "time, 'charge', dataset, 'q8', epsilon, design, granted, spent, release, previous, hash"
    for sequence in (0, -7, 10, 2**40):
        insert = f"INSERT INTO {ROWS} SELECT {sequence}, {columns} FROM {ROWS} WHERE sequence = 2"
        with altered(tamper, insert):
            assert bad_row(used) == min(sequence, 10)


def test_an_edited_release_is_not_given_out(used: Ledger, tamper: Tamper, ask: Ask) -> None:
    tamper(f"UPDATE {ROWS} SET release = '{{}}' WHERE sequence = 3")
    with pytest.raises(LedgerTampered, match=r"Row 3 of the ledger .* was edited"):
        ask("q0")
    with pytest.raises(LedgerTampered, match="Row 3"):
        used.history()


@pytest.mark.usefixtures("used")
@pytest.mark.parametrize(
    ("left", "message"),
    [
        (lambda rows: rows[:9], r"Row 10 .* is missing: the fingerprint '10:"),
        (lambda rows: [*rows[:9], rows[0]], r"The charge of request 'q5' .* Its release is not given out"),
    ],
)
def test_a_charge_that_is_gone_when_the_release_is_due(
    tamper: Tamper, ask: Ask, left: Callable[[list[LedgerRow]], list[LedgerRow]], message: str
) -> None:
    def compute() -> dict[str, Any]:
        forge(tamper, left)
        return {"x": 1}

    with pytest.raises(LedgerTampered, match=message):
        ask("q5", draw=lambda: 1, release=lambda _: compute())


# What follows is done by a forger who knows the format and recomputes every hash and the head.


def forge(tamper: Tamper, change: Callable[[list[LedgerRow]], list[LedgerRow]]) -> None:
    rows = change([LedgerRow(*values) for values in tamper(f"SELECT * FROM {ROWS} ORDER BY sequence")])
    previous = "0" * 64
    statements = [f"DELETE FROM {ROWS}"]
    for sequence, row in enumerate(rows, 1):
        row = row._replace(sequence=sequence, previous=previous).sealed()
        previous = row.hash
        statements.append(f"INSERT INTO {ROWS} VALUES ({cells(row)})")
    tamper(*statements, f"UPDATE {HEAD} SET count = {len(rows)}, hash = '{previous}'")


def edit(number: int, **changes: Any) -> Callable[[list[LedgerRow]], list[LedgerRow]]:
    return lambda rows: [row._replace(**changes) if row.sequence == number else row for row in rows]


FORGERIES: dict[str, tuple[Callable[[list[LedgerRow]], list[LedgerRow]], str]] = {
    "charge not added": (edit(5, spent="0/1"), "Row 5 .* does not add its epsilon"),
    "release that spends": (edit(6, spent="2/5"), "Row 6 .* changes the running total"),
    "quiet raise": (edit(6, granted="9/1"), "Row 6 .* changes the budget without a grant"),
    "overspent": (edit(5, spent="3/1", epsilon="3/1"), "Row 5 .* spends more than was granted"),
    "negative charge": (edit(5, spent="-1/5", epsilon="-1/5"), "Row 5 .* not positive"),
    "not in lowest terms": (edit(5, epsilon="6/20"), "Row 5 .* lowest terms"),
    "zero denominator": (edit(5, epsilon="3/0"), "Row 5 .* lowest terms"),
    "no number": (edit(5, epsilon="free"), "Row 5 .* lowest terms"),
    "grant with wrong totals": (edit(4, granted="2/1"), "Row 4 .* grant with wrong totals"),
    "charge before the grant": (lambda rows: rows[1:], "Row 1 .* without a grant"),
    "unknown kind": (edit(6, kind="gift"), "Row 6 .* unknown kind"),
}


def test_a_forgery_that_does_not_add_up_is_found(used: Ledger, tamper: Tamper) -> None:
    for change, complaint in FORGERIES.values():
        with altered(tamper):
            forge(tamper, change)
            with pytest.raises(LedgerTampered, match=complaint):
                used.verify()


def test_a_consistent_forgery_is_found_by_a_fingerprint_kept_elsewhere_alone(
    used: Ledger, tamper: Tamper, ask: Ask
) -> None:
    noted = used.fingerprint()
    assert used.verify(since=noted) == 9
    ask("q3")
    assert used.verify(since=noted) == 11
    forge(tamper, edit(3, release=json.dumps({"decision": "alternative"})))
    assert used.verify() == 11, "documented: a consistent ledger is a ledger"
    with pytest.raises(LedgerTampered, match=r"Row 9 .* is not the one that the fingerprint"):
        used.verify(since=noted)


@pytest.mark.parametrize("kept", [1, 3, 8])
def test_an_old_copy_put_back_under_a_ledger_in_use_pays_for_nothing(
    used: Ledger, tamper: Tamper, ask: Ask, kept: int
) -> None:
    """The charge of a request that was never completed (row 9) is remembered as well."""
    forge(tamper, lambda rows: rows[:kept])
    for attempt in (lambda: ask("q7"), lambda: ask("q2"), lambda: used.grant("claims", epsilon=5)):
        with pytest.raises(LedgerTampered, match=rf"Row {kept + 1} .* is missing: the fingerprint '9:"):
            attempt()


@pytest.mark.usefixtures("used")
def test_an_old_copy_that_grew_again_under_a_ledger_in_use_pays_for_nothing(
    tamper: Tamper, ask: Ask, target: str
) -> None:
    forge(tamper, lambda rows: rows[:6])
    with Ledger(target) as other:
        for name in ("q3", "q4", "q5"):
            other.perform(dataset="visits", request=name, epsilon=0.1, design="sha256:d", draw=dict)
    with pytest.raises(LedgerTampered, match=r"Row 9 .* is not the one that the fingerprint '9:"):
        ask("q7")


def refuses(ledger: Ledger, ask: Ask) -> None:
    """New requests, repeated ones, grants and balances are all refused."""

    def never() -> dict[str, Any]:
        raise AssertionError("compute was called")

    for attempt in (
        lambda: ask("q7", draw=never),
        lambda: ask("q0", draw=never),
        lambda: ledger.grant("claims", epsilon=5),
        lambda: ledger.left("claims"),
        ledger.history,
        ledger.datasets,
        ledger.fingerprint,
    ):
        with pytest.raises(LedgerError) as caught:
            attempt()
        assert isinstance(caught.value, LedgerTampered)


@pytest.mark.parametrize("number", [1, 2, 9])
def test_a_sealed_row_that_follows_another_is_found(used: Ledger, tamper: Tamper, number: int) -> None:
    """All hashes fit their rows, and every row but one names the hash of the row before it."""
    rows = [LedgerRow(*values) for values in tamper(f"SELECT * FROM {ROWS} ORDER BY sequence")]
    previous, statements = "0" * 64, [f"DELETE FROM {ROWS}"]
    for row in rows:
        row = row._replace(previous="1" * 64 if row.sequence == number else previous).sealed()
        previous = row.hash
        statements.append(f"INSERT INTO {ROWS} VALUES ({cells(row)})")
    complaint = pytest.raises(LedgerTampered, match=f"Row {number} .* does not continue the row before it")
    with altered(tamper, *statements, f"UPDATE {HEAD} SET hash = '{previous}'"), complaint:
        used.verify()
    assert used.verify() == 9
