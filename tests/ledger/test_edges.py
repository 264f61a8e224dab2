"""Names, amounts, settings and connections of the ledger at their edges: the last that passes and the first that does
not."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from sqlalchemy import exc
from sqlalchemy.dialects import postgresql

from privatest.charge import make_charge
from privatest.errors import (
    InvalidInput,
    LedgerLocked,
    LedgerTampered,
    LedgerUnavailable,
    MissingExtra,
    RequestConflict,
)
from privatest.ledger import Ledger
from privatest.ledger import ledger as ledger_module
from privatest.ledger import store as store_module
from privatest.ledger.account import MOST_BITS, Protection, fraction_text, read_fraction
from privatest.ledger.hash_chain import HashChain, LedgerRow, amount_text, is_same_source
from privatest.ledger.ledger import Request
from privatest.ledger.store import THE_HEAD, THE_HEAD_LOCKED, Address, abandon, after_fork, before_fork
from privatest.privacy import Pure

GOOD: dict[str, Any] = {"dataset": "claims", "request": "q0", "epsilon": 0.1, "design": "sha256:5f2d"}
WAYS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "perform": (lambda book, **words: book.perform(**GOOD | words, draw=dict), ("dataset", "request", "design")),
    "released": (lambda book, **words: book.released(**GOOD | words), ("dataset", "request", "design")),
    "advance": (
        lambda book, **words: book.advance(
            **{"dataset": "claims", "request": "q0", "mark": "m", "after": "", "position": 1} | words
        ),
        ("dataset", "request", "mark"),
    ),
    "grant": (lambda book, dataset: book.grant(dataset, epsilon=1), ("dataset",)),
    "covers": (lambda book, dataset: book.covers(dataset), ("dataset",)),
    "granted": (lambda book, dataset: book.granted(dataset), ("dataset",)),
    "history": (lambda book, dataset: book.history(dataset), ("dataset",)),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_refuses_what_is_no_name(way: str, path: Path) -> None:
    ask, words = WAYS[way]
    with Ledger(path) as book:
        book.grant("claims", epsilon=1)
        book.perform(**GOOD, draw=dict)
        before = book.fingerprint()
        for word in words:
            for name, rule in (
                (5, "must be text"),
                ("", "must be one line of text"),
                (" claims", "must be one line of text"),
                ("claims\n", "must be one line of text"),
                ("x" * 201, "has 201 characters"),
            ):
                with pytest.raises(InvalidInput, match=f"^{word}=.* {rule}"):
                    ask(book, **{word: name})
        assert book.fingerprint() == before
        book.grant("x" * 200, epsilon=1)


@pytest.mark.parametrize("positive", [True, False])
def test_amounts_of_the_most_bits_and_one_more(positive: bool) -> None:
    turn = (lambda whole: Fraction(whole)) if positive else (lambda whole: Fraction(1, whole))
    largest = turn(2**MOST_BITS - 1)
    assert read_fraction(fraction_text(largest)) == largest
    with pytest.raises(InvalidInput, match="more than 990 digits"):
        fraction_text(turn(2**MOST_BITS))
    assert MOST_BITS == 3300  # what ledgers hold already


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (Fraction(10**32), f"1{'0' * 32}.0"),
        (Fraction(10**33), "about 1.00000e+33"),
        (Fraction(1, 10**17), f"0.{'0' * 16}1"),
        (Fraction(1, 10**18), "1/1000000000000000000"),
        (Fraction(-1, 4), "-0.25"),
        (Fraction(1, 3 * 10**20), "1/300000000000000000000"),
        (Fraction(1, 3 * 10**21), "1/3000000000000000000000"),
        (Fraction(1, 3 * 10**22), "about 3.33333e-23"),
        (Fraction(1, 10**400), "about 1e-400"),
        (Fraction(1, 5**800), "about 6.66801e-560"),
    ],
)
def test_amounts_for_people_are_short(amount: Fraction, text: str) -> None:
    assert amount_text(amount) == text


class Listening:
    """A ledger that is never asked."""

    def perform(self) -> None: ...

    def released(self) -> None: ...


def test_settings_are_noted_where_they_are_short() -> None:
    short = {
        **{"none": None, "whole": 3, "decimal": 0.5, "truth": True, "text": "x" * 200},
        **{"empty": [], "one": [1], "two": [1, 2.5]},
    }
    long = {"format": "f", "letters": "x" * 201, "three": [1, 2, 3], "texts": ["x"], "nested": [[1]], "table": {"a": 1}}
    charge = make_charge(
        Listening(),
        "claims",
        "q0",
        price=Fraction(1),
        design=lambda: {"test": {**short, **long}, "column": "x", "unit": None},
        simulated=False,
    )
    assert charge is not None
    assert charge.asked == {**short, "column": "x", "unit": None}


@pytest.mark.parametrize("number", [0, -1, -(2**62), -(2**62) - 1, -(2**63)])
def test_a_row_in_front_of_the_first_is_found_whatever_its_number(number: int, path: Path) -> None:
    """It would be the budget of a data set of its own."""
    import sqlite3

    with Ledger(path) as book:
        book.grant("claims", epsilon=1)
        assert book.verify() == 1
        with sqlite3.connect(path) as connection:
            names = [row[1] for row in connection.execute("PRAGMA table_info(privatest_ledger_rows)")]
            columns = ", ".join(str(number) if name == "sequence" else name for name in names)
            columns = columns.replace("dataset", "'visits'")
            connection.execute(f"INSERT INTO privatest_ledger_rows SELECT {columns} FROM privatest_ledger_rows")
        connection.close()
        with pytest.raises(LedgerTampered, match=f"Row {number} .* was inserted"):
            book.verify()


def test_a_ledger_is_closed_with_its_block(path: Path) -> None:
    closed = []

    class Heard(Ledger):
        def close(self) -> None:
            closed.append(True)
            super().close()

    with Heard(path) as book:
        assert not closed
        book.grant("claims", epsilon=1)
    assert closed == [True]


def test_without_sqlalchemy_it_is_named_and_other_missing_modules_are_not_taken_for_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "privatest.ledger.store", None)
        with pytest.raises(ModuleNotFoundError, match=r"privatest\.ledger\.store"):
            Ledger(path)
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "privatest.ledger.store")
        patch.setitem(sys.modules, "sqlalchemy", None)
        with pytest.raises(MissingExtra, match=r'needs SQLAlchemy. Install it: pip install .*"sqlalchemy>='):
            Ledger(path)


class Broken:
    """A connection that cannot even be rolled back."""

    def __init__(self, error: Exception | None) -> None:
        self.error, self.said = error, list[str]()

    def rollback(self) -> None:
        self.said.append("rollback")
        if self.error is not None:
            raise self.error

    def invalidate(self) -> None:
        self.said.append("invalidate")


def test_a_connection_that_cannot_be_rolled_back_is_dropped() -> None:
    fine, broken = Broken(None), Broken(exc.OperationalError("", {}, Exception()))
    for connection in (fine, broken):
        abandon(connection)  # type: ignore[arg-type]
    assert (fine.said, broken.said) == (["rollback"], ["rollback", "invalidate"])


def test_granting_what_a_data_set_has_writes_nothing(path: Path) -> None:
    with Ledger(path) as book:
        book.grant("claims", epsilon=1, covers=["/data/a.csv"])
        book.grant("claims", epsilon=1, covers=["/data/a.csv"])
        book.grant("claims", epsilon=1)
        assert book.verify() == 1
        book.grant("claims", epsilon=1, covers=["/data/a.csv", "/data/b.csv"])
        book.grant("claims", epsilon=1, covers=[])
        book.grant("claims", epsilon=1, covers=[])
        assert book.verify() == 3


@pytest.mark.parametrize(
    ("noted", "given", "found"),
    [
        (None, "file:a", None),
        (None, None, None),
        ({"name": "a", "identity": None}, None, None),
        ({"name": "a", "identity": None}, "file:a", False),
        ({"name": "a", "identity": "file:a"}, None, False),
        ({"name": "a", "identity": "file:a"}, "file:a", True),
        ({"name": "a", "identity": "file:a"}, "file:b", False),
    ],
)
def test_a_source_is_known_again_by_its_identity_alone(noted: Any, given: str | None, found: bool | None) -> None:
    class Given(NamedTuple):
        identity: str | None

    assert is_same_source(noted or {}, Given(given)) is found  # type: ignore[arg-type]


def test_a_receipt_holds_the_design(path: Path) -> None:
    with Ledger(path) as book:
        book.grant("claims", epsilon=1)
        receipt = book.perform(**GOOD, draw=dict).receipt
        assert receipt is not None
        assert (receipt.design, receipt.request, receipt.dataset) == (GOOD["design"], "q0", "claims")


@pytest.mark.parametrize("url", ["://", "postgresql://user@host:port/database", "postgres ql://host/database"])
def test_an_address_that_cannot_be_read_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(
        InvalidInput, match=r"^The ledger's URL cannot be read\. Write postgresql://user@host/database\.$"
    ):
        Ledger(url)


def test_a_fork_waits_for_every_open_ledger_and_lets_all_go_afterwards(path: Path) -> None:
    books = [Ledger(path.with_name(f"{number}.db")) for number in range(2)]
    turns = [book._store.turn for book in books]

    def free() -> list[bool]:
        found = []
        for turn in turns:
            if got := turn.acquire(blocking=False):
                turn.release()
            found.append(got)
        return found

    def elsewhere() -> list[bool]:
        found: list[bool] = []
        thread = threading.Thread(target=lambda: found.extend(free()))
        thread.start()
        thread.join()
        return found

    assert elsewhere() == [True, True]
    before_fork()
    try:
        assert elsewhere() == [False, False]
    finally:
        after_fork()
    assert elsewhere() == [True, True]
    for book in books:
        book.close()


def test_a_file_is_named_as_it_was_written_and_by_its_path_where_it_was_a_url(tmp_path: Path) -> None:
    assert Address.of("ledger.db").name == "'ledger.db'"
    assert Address.of(f"sqlite:///{tmp_path}/ledger.db").name == repr(f"{tmp_path}/ledger.db")


def test_a_release_without_its_charge_is_not_given_back(path: Path) -> None:
    import sqlite3

    with Ledger(path) as book:
        book.grant("claims", epsilon=1)
        book.perform(**GOOD, draw=dict)
        with sqlite3.connect(path) as connection:
            connection.execute("DELETE FROM privatest_ledger_rows WHERE kind = 'charge'")
        connection.close()
        with pytest.raises(LedgerTampered, match=r"Row 3 .* is a release without its charge"):
            book.released(**GOOD)


def test_what_another_one_released_meanwhile_is_given_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger(path) as book, Ledger(path) as other:
        book.grant("claims", epsilon=1)
        check = Ledger._check_all

        def late(self: Ledger) -> None:
            monkeypatch.setattr(Ledger, "_check_all", check)
            other.perform(**GOOD, draw=lambda: {"decision": "null"})
            check(self)

        monkeypatch.setattr(Ledger, "_check_all", late)
        found = book.perform(**GOOD, draw=lambda: pytest.fail("computed again"))
        assert found["decision"] == "null"
        assert found.receipt is not None
        assert found.receipt.replayed
        assert book.spent("claims") == Fraction(1, 10)
        assert book.verify() == 3


def test_an_at_sign_in_a_password_is_not_guessed_about() -> None:
    with pytest.raises(InvalidInput, match=r"holds an @. Write it as %40"):
        Address.of("postgresql://me:p@ss@localhost/ledgers")
    assert Address.of("postgresql://me:p%40ss@localhost/ledgers").url is not None


@pytest.mark.parametrize(
    ("error", "complaint"),
    [
        (PermissionError(13, "Permission denied"), "this user may not read it, or not enter its folder"),
        (OSError(5, "Input/output error"), "cannot be opened: Input/output error"),
        (OSError(), "cannot be opened: OSError"),
    ],
)
def test_a_ledger_that_cannot_be_looked_at_is_a_sentence(
    error: OSError, complaint: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> bool:
        raise error

    address = Address.of(path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "is_dir", refuse)
        with pytest.raises(LedgerUnavailable, match=complaint):
            address.check_folder(create=True)


def test_a_ledger_is_a_file_that_may_be_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    Address.of(path).check_folder(create=True)
    with pytest.raises(LedgerUnavailable, match=r"^No ledger at"):
        Address.of(path).check_folder(create=False)
    os.mkfifo(path.with_name("pipe"))
    with pytest.raises(LedgerUnavailable, match="is a pipe or a device"):
        Address.of(path.with_name("pipe")).check_folder(create=True)
    path.touch()
    Address.of(path).check_folder(create=False)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(LedgerUnavailable, match="this user may not read it"):
        Address.of(path).check_folder(create=False)


def test_a_thread_waits_for_its_turn_as_long_as_it_was_told(path: Path) -> None:
    with Ledger(path, timeout=0.05) as book:
        book.grant("claims", epsilon=1)
        inside, done = threading.Event(), threading.Event()

        def hold() -> None:
            with book._store.turn:
                inside.set()
                done.wait(60)

        holder = threading.Thread(target=hold)
        holder.start()
        assert inside.wait(60)
        try:
            with pytest.raises(LedgerLocked):
                book.spent("claims")
        finally:
            done.set()
            holder.join()
        assert book.spent("claims") == 0


def test_a_fork_waits_until_no_thread_is_inside_a_ledger(path: Path) -> None:
    import os
    import time
    import warnings

    with Ledger(path) as book:
        inside = threading.Event()

        def hold() -> None:
            with book._store.turn:
                inside.set()
                time.sleep(0.3)

        holder = threading.Thread(target=hold)
        holder.start()
        assert inside.wait(60)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer Pythons warn of any fork beside threads
            child = os.fork()
        if child == 0:
            os._exit(0 if book._store.turn.acquire(timeout=5) else 1)
        waited = book._store.turn.acquire(blocking=False)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert waited
        book._store.turn.release()
        holder.join()


def test_what_every_row_has_the_database_itself_demands(path: Path) -> None:
    import sqlite3

    with Ledger(path) as book:
        book.grant("claims", epsilon=1)
        with sqlite3.connect(path) as connection:
            found = {
                table: {
                    name for _, name, _, needed, _, _ in connection.execute(f"PRAGMA table_info({table})") if needed
                }
                for table in ("privatest_ledger_rows", "privatest_ledger_head")
            }
        connection.close()
    always = {"sequence", "time", "kind", "dataset", "epsilon", "granted", "spent", "previous", "hash"}
    assert found == {"privatest_ledger_rows": always, "privatest_ledger_head": {"id", "format", "count", "hash"}}


def test_rows_that_were_checked_are_compared_and_not_checked_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[int] = []
    extend = HashChain.extend

    def heard(chain: HashChain, row: LedgerRow) -> None:
        checked.append(row.sequence)
        extend(chain, row)

    monkeypatch.setattr(HashChain, "extend", heard)
    with Ledger(path) as book:
        book.grant("claims", epsilon=1)
        for number in range(3):
            book.perform(**GOOD | {"request": f"q{number}"}, draw=dict)
    assert checked == [1, 2, 3, 4, 5]


def test_only_a_transaction_that_may_append_locks_the_head(path: Path) -> None:
    """On a server that is what keeps two writers from going on from the same row."""
    locked = str(THE_HEAD_LOCKED.compile(dialect=postgresql.dialect()))
    assert locked.endswith("FOR UPDATE")
    with Ledger(path) as book:
        for begin, statement in ((book._store.read, THE_HEAD), (book._store.write, THE_HEAD_LOCKED)):
            with begin() as inside:
                heard: list[Any] = []
                execute = inside.connection.execute
                inside.connection = SimpleNamespace(
                    execute=lambda one, heard=heard, go=execute: heard.append(one) or go(one)
                )
                inside.head()
                assert heard == [statement]


def test_a_row_is_added_after_the_head_that_was_locked_or_not_at_all(path: Path) -> None:
    amounts = {"epsilon": "1/1", "granted": "1/1", "spent": "0/1"}
    with Ledger(path) as book:
        book.grant("claims", epsilon=1)
        before = book.fingerprint()

        def add(ahead: int) -> None:
            with book._store.write() as inside:
                head = inside.head()
                inside.append(head._replace(rows=head.rows + ahead), "grant", "visits", **amounts)

        with pytest.raises(LedgerTampered, match="changed under a lock"):
            add(1)
        assert book.fingerprint() == before
        add(0)
        assert book.verify() == 2


def test_nothing_is_written_to_an_older_copy_than_the_one_this_ledger_wrote(path: Path) -> None:
    """A restored copy has forgotten charges: what they were for would be paid for twice, or not at all."""
    with Ledger(path) as book:
        book.grant("claims", epsilon=1)
        older = path.read_bytes()
        book.perform(**GOOD, draw=dict)
        newest = path.read_bytes()
        path.write_bytes(older)
        for write in (
            lambda: book.grant("claims", epsilon=2),
            lambda: book.perform(**GOOD | {"request": "another"}, draw=dict),
        ):
            with pytest.raises(LedgerTampered):
                write()
            assert path.read_bytes() == older
        path.write_bytes(newest)
        book.perform(**GOOD | {"request": "another"}, draw=dict)
        assert book.verify() == 5
    with Ledger(path) as other:  # one that has written nothing yet knows of nothing newer
        path.write_bytes(older)
        other.grant("claims", epsilon=2)
        assert other.verify() == 2


@pytest.mark.parametrize("portion", [1, 2, 3, 4, 2000])
def test_an_old_row_that_changes_under_a_ledger_in_use_stops_the_next_charge(
    portion: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that were checked before are compared with what they were; the same ones are not checked again."""
    import sqlite3

    monkeypatch.setattr(ledger_module, "ROWS_AT_A_TIME", portion)
    with Ledger(path) as book:
        book.grant("claims", epsilon=1)
        for name in ("one", "two"):
            book.perform(**GOOD | {"request": name, "epsilon": 0.1}, draw=dict)
        anew: list[Any] = []
        verify = type(book).verify
        monkeypatch.setattr(type(book), "verify", lambda self, **words: anew.append(words) or verify(self, **words))
        book.perform(**GOOD | {"request": "three", "epsilon": 0.1}, draw=dict)
        assert anew == []
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE privatest_ledger_rows SET time = 'then' WHERE sequence = 2")
        with pytest.raises(LedgerTampered, match="Row 2 "):
            book.perform(**GOOD | {"request": "four", "epsilon": 0.1}, draw=dict)
        assert len(anew) == 1
        assert book.spent("claims") == Fraction(3, 10)


@pytest.mark.parametrize(("timeout", "seconds"), [(0.5, 2), (2, 2), (2.1, 3), (30, 30)])
def test_a_server_that_does_not_answer_is_waited_for_two_seconds_at_least(
    timeout: float, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver knows whole seconds only, and takes 1 for 2."""
    asked: list[dict[str, Any]] = []

    def create(_: Any, **words: Any) -> Any:
        asked.append(words)
        raise ImportError

    monkeypatch.setattr(store_module, "create_engine", create)
    with pytest.raises(MissingExtra, match="needs psycopg"):
        Ledger("postgresql://me@localhost/ledgers", timeout=timeout)
    (words,) = asked
    assert words["connect_args"] == {"connect_timeout": seconds}
    assert words["pool_timeout"] == timeout
    assert words["hide_parameters"] is True


def test_whether_the_watchdog_bit_is_known_to_the_thread_it_watches(path: Path) -> None:
    with Ledger(path) as book:
        store = book._store
        assert not store._bitten()
        for fired in (False, True):
            store._thread.watchdog = SimpleNamespace(fired=fired)
            assert store._bitten() is fired
        store._thread.watchdog = None
        assert not store._bitten()
        with store._watched() as watchdog:
            assert watchdog is None  # a file needs none
        store.address = Address.of("postgresql://me@localhost/ledgers")
        with store._watched() as watchdog:
            assert store._thread.watchdog is watchdog
            assert not store._bitten()
        assert store._thread.watchdog is None
        store.address = Address.of(path)


def test_a_request_that_another_process_charged_meanwhile_is_compared_with_it(path: Path) -> None:
    """Under the lock, too: what was looked up before it may be old."""
    with Ledger(path) as book:
        book.grant("claims", epsilon=1)
        first_ask = Request("claims", "q0", Pure(0.1), Protection(), "sha256:5f2d", {})
        for draw, first in ((1, True), (2, False)):
            rows, charged = book._charge(first_ask, None, draw)
            assert (charged, rows["charge"].about["draw"]) == (first, 1), "the draw that was recorded first"
        for price, design in ((Pure(0.1), "sha256:0000"), (Pure(0.2), "sha256:5f2d")):
            with pytest.raises(RequestConflict):
                book._charge(first_ask._replace(price=price, design=design), None, 3)
        assert book.spent("claims") == Fraction(1, 10)
