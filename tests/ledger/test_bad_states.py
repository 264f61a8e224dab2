"""Bad input and bad states: a clear error, nothing half done."""

from __future__ import annotations

import math
import os
import random
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, event

from privatest.errors import (
    InvalidInput,
    LedgerError,
    LedgerLocked,
    LedgerUnavailable,
    LedgerUnreadable,
)
from privatest.ledger import Ledger
from tests.ledger.server import Server

Ask = Callable[..., dict[str, Any]]
SOURCE = str(Path(__file__).resolve().parents[2] / "src")
ROWS, HEAD = "privatest_ledger_rows", "privatest_ledger_head"


def never() -> dict[str, Any]:
    raise AssertionError("compute was called")


@pytest.fixture
def on_file(path: Path) -> Ledger:
    """A ledger in a SQLite file, with a budget and one request, that does not wait long for others."""
    ledger = Ledger(path, timeout=0.3)
    ledger.grant("claims", epsilon=1)
    request(ledger, "q0")
    return ledger


def request(ledger: Ledger, name: str, compute: Callable[[], Any] = dict, **words: Any) -> dict[str, Any]:
    return ledger.perform(dataset="claims", request=name, epsilon=0.1, design="d", draw=compute, **words)


NUMBERS: list[Any] = [0, -1, -0.1, math.nan, math.inf, -math.inf, True, "1", None, 1j, Fraction(-1, 3), [1]]
NAMES: list[Any] = [
    "",
    " ",
    "claims ",
    "\tclaims",
    "cla\nims",
    "a\0b",
    "\ud800",
    None,
    3,
    b"claims",
    "x" * 201,
]


def test_bad_arguments_charge_nothing(ledger: Ledger, ask: Ask) -> None:
    ledger.grant("claims", epsilon=1)
    for value in NUMBERS:
        for attempt in (
            lambda value=value: ledger.grant("claims", epsilon=value),
            lambda value=value: ask("q", epsilon=value, draw=never),
        ):
            with pytest.raises(InvalidInput, match="epsilon="):
                attempt()
    for value in NAMES:
        for argument, attempt in (
            ("dataset", lambda value=value: ledger.grant(value, epsilon=1)),
            ("dataset", lambda value=value: ask("q", dataset=value, draw=never)),
            ("dataset", lambda value=value: ledger.left(value)),
            ("request", lambda value=value: ask(value, draw=never)),
            ("design", lambda value=value: ask("q", design=value, draw=never)),
        ):
            with pytest.raises(InvalidInput, match=f"{argument}="):
                attempt()
    with pytest.raises(InvalidInput, match="draw must be a function"):
        ask("q", draw={"x": 1})
    assert ledger.verify() == 1


def test_an_unknown_data_set(ledger: Ledger, ask: Ask) -> None:
    with pytest.raises(InvalidInput, match=r"No data set 'claims' in the ledger .* gets its budget with ledger.grant"):
        ask("q", draw=never)
    ledger.grant("claims", epsilon=1)
    for attempt in (
        lambda: ledger.left("clams"),
        lambda: ledger.history("clams"),
        lambda: ask("q", dataset="clams", draw=never),
    ):
        with pytest.raises(InvalidInput, match=r"No data set 'clams' .* Did you mean 'claims'\?"):
            attempt()
    assert ledger.verify() == 1


class Secret:
    def __repr__(self) -> str:
        return "record 4711"


loop: dict[str, Any] = {}
loop["self"] = loop


@pytest.mark.parametrize(
    "release",
    [
        None,
        [1],
        "text",
        {"p": math.nan},
        {"p": math.inf},
        {"x": Secret()},
        {(1, 2): 3},
        loop,
        {"n": 10**5000},
    ],
)
def test_a_release_that_cannot_be_kept_stays_charged(on_file: Ledger, release: Any) -> None:
    with pytest.raises(InvalidInput, match="The charge stays") as caught:
        request(on_file, "q", lambda: {"x": 1}, release=lambda _: release)
    assert "4711" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert on_file.spent("claims") == Fraction(2, 10)
    assert request(on_file, "q", never) == {"x": 1}
    assert on_file.spent("claims") == Fraction(2, 10)


@pytest.mark.parametrize("draw", [math.nan, {"p": math.inf}, [Secret()], {(1, 2): 3}, loop, [10**5000]])
def test_a_draw_that_cannot_be_kept_charges_nothing(on_file: Ledger, draw: Any) -> None:
    with pytest.raises(InvalidInput, match="Nothing was charged") as caught:
        request(on_file, "q", lambda: draw, release=lambda _: {})
    assert "4711" not in str(caught.value)
    assert caught.value.__cause__ is None
    for other in (7, None, [1]):
        with pytest.raises(InvalidInput, match=r"draw returned a .* without release= .* Nothing was charged"):
            request(on_file, "q", lambda other=other: other)
    assert on_file.spent("claims") == Fraction(1, 10)
    kept: list[Any] = [1, "2/3", None]
    assert request(on_file, "q", lambda: kept, release=lambda drawn: {"x": drawn}) == {"x": kept}


@pytest.mark.parametrize("target", ["", ":memory:", "sqlite://", "sqlite:///:memory:", "a\0b", 7, None, b"x.db"])
def test_a_target_that_is_no_place_for_a_ledger(target: Any) -> None:
    with pytest.raises(InvalidInput, match="path"):
        Ledger(target)


@pytest.mark.parametrize(
    "target",
    [
        "mysql://joe:s3cret@host/db",
        "postgresql+asyncpg://joe:s3cret@host/db",
        "postgresql://joe:s3cret@host:port/db",
    ],
)
def test_a_url_that_cannot_be_used_is_not_repeated(target: str) -> None:
    with pytest.raises(InvalidInput, match="postgresql://user@host/database") as caught:
        Ledger(target)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_a_ledger_and_what_lies_beside_it_are_its_owners_alone(tmp_path: Path, umask: int) -> None:
    """Whatever the umask: the file, and the journal while a request is being written."""
    seen: dict[str, int] = {}

    def look(*_: Any) -> None:
        seen.update({one.name: stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()})

    before = os.umask(umask)
    try:
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.grant("claims", epsilon=1)
        with ledger._store.write() as book:
            book.append("grant", "claims", epsilon="2/1", granted="2/1", spent="0/1")
            look()
        request(ledger, "q0")
    finally:
        os.umask(before)
    look()
    assert seen == {"ledger.db": 0o600, "ledger.db-journal": 0o600}
    (tmp_path / "ledger.db").chmod(0o640)
    Ledger(tmp_path / "ledger.db").grant("claims", epsilon=3)
    assert stat.S_IMODE((tmp_path / "ledger.db").stat().st_mode) == 0o640, "an owner may open it to others"


def test_no_ledger_is_made_where_none_is_wanted(path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="No ledger at"):
        Ledger(path, create=False)
    assert not path.exists()
    path.touch()
    with pytest.raises(LedgerUnreadable, match="holds no ledger"):
        Ledger(path, create=False)
    Ledger(path)
    assert Ledger(path, create=False).verify() == 0


@pytest.mark.parametrize("lock", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_locked_file(on_file: Ledger, path: Path, lock: str) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute(lock)
    with pytest.raises(LedgerLocked, match=r"is locked by somebody else\. Try again, or wait longer"):
        request(on_file, "q1", never)
    other.execute("ROLLBACK")
    other.close()
    assert on_file.spent("claims") == Fraction(1, 10)
    assert request(on_file, "q1") == {}


READ_ONLY = """
import os, sys
import privatest.ledger.store, sqlalchemy.dialects.sqlite.pysqlite
from privatest.errors import LedgerUnavailable
from privatest.ledger import Ledger
if os.getuid() == 0:  # whom no permission stops: become nobody
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
ledger = Ledger(sys.argv[1], timeout=1)
print(ledger.left("claims"), ledger.verify(), len(ledger.history()))
for attempt in (
    lambda: ledger.grant("claims", epsilon=7),
    lambda: ledger.perform(dataset="claims", request="q9", epsilon=0.1, design="d", draw=dict),
):
    try:
        attempt()
    except LedgerUnavailable as error:
        print(error)
"""


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_file_or_folder_that_may_only_be_read(on_file: Ledger, path: Path, what: str) -> None:
    path.chmod(0o444 if what == "file" else 0o666)
    path.parent.chmod(0o555 if what == "folder" else 0o777)
    command = [sys.executable, "-B", "-c", READ_ONLY, str(path)]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    path.parent.chmod(0o755)
    balance, *refusals = done.stdout.splitlines()
    assert balance == "9/10 3 3", done.stderr
    assert len(refusals) == 2
    complaint = "cannot be written: attempt to write a readonly database. Give this user the right to write to it"
    assert all(complaint in line for line in refusals), refusals
    assert on_file.verify() == 3


@pytest.fixture
def small_disk() -> Iterator[Callable[[int], None]]:
    """Call small_disk(pages): SQLite then finds its disk full when a file would grow over that."""
    limit = [2**30]

    def shrink(connection: Any, _record: Any) -> None:
        connection.execute(f"PRAGMA max_page_count = {limit[0]}")

    event.listen(Engine, "connect", shrink)
    yield lambda pages: limit.__setitem__(0, pages)
    event.remove(Engine, "connect", shrink)


def test_a_full_disk_before_the_charge(on_file: Ledger, small_disk: Callable[[int], None]) -> None:
    small_disk(1)  # SQLite lets the file keep the size it has
    done = 0

    def fill() -> None:
        nonlocal done
        for done in range(100):
            request(on_file, f"fill-{done}", lambda: {"text": "x" * 500})

    with pytest.raises(LedgerUnavailable, match=r"cannot grow: database or disk is full\. Make room"):
        fill()
    small_disk(2**30)
    assert on_file.verify() in {3 + 2 * done, 4 + 2 * done}
    assert request(on_file, f"fill-{done}", lambda: {"text": "y"})["text"] == "y"
    assert on_file.verify() == 5 + 2 * done


def test_a_full_disk_after_the_charge(on_file: Ledger, small_disk: Callable[[int], None]) -> None:
    small_disk(1)
    with pytest.raises(LedgerUnavailable, match="cannot grow"):
        request(on_file, "q2", lambda: {"text": "x" * 10**6})
    assert on_file.spent("claims") == Fraction(1, 10)
    with pytest.raises(LedgerUnavailable, match="cannot grow"):
        request(on_file, "q1", lambda: 7, release=lambda _: {"text": "x" * 10**6})
    assert on_file.spent("claims") == Fraction(2, 10)
    assert on_file.verify() == 4
    small_disk(2**30)
    assert request(on_file, "q1", never, release=lambda drawn: {"short": drawn}) == {"short": 7}
    assert on_file.spent("claims") == Fraction(2, 10)


def test_a_file_that_vanished_is_not_replaced_by_an_empty_ledger(on_file: Ledger, path: Path) -> None:
    path.unlink()
    with pytest.raises(LedgerUnavailable, match="cannot be opened: unable to open database file"):
        request(on_file, "q1", never)
    with pytest.raises(LedgerUnavailable):
        on_file.left("claims")
    assert not path.exists()


def test_a_file_damaged_anywhere_never_tells_another_story(on_file: Ledger, path: Path) -> None:
    for k in range(1, 9):
        request(on_file, f"q{k}", lambda: {"text": "x" * 300})
    whole, story = path.read_bytes(), on_file.history()
    chance = random.Random(5)
    refused = 0
    for _ in range(60):
        damaged = bytearray(whole)
        for place in chance.sample(range(len(whole)), 8):
            damaged[place] = chance.randrange(256)
        path.write_bytes(damaged)
        try:
            assert on_file.verify() == len(story)
            assert on_file.history() == story
        except LedgerError:
            refused += 1
    assert refused > 30
    path.write_bytes(whole)
    assert on_file.verify() == len(story)


def test_an_unreachable_server(server: Server, tmp_path: Path) -> None:
    for url in (f"postgresql://joe:s3cret@/db?host={tmp_path}", "postgresql://joe:s3cret@127.0.0.1:9/db"):
        with pytest.raises(LedgerUnavailable, match=r"cannot be reached: connection .* Check the address") as caught:
            Ledger(url, timeout=2)
        assert "s3cret" not in str(caught.value)
        assert "joe@" in str(caught.value)
    with pytest.raises(LedgerUnavailable, match='database "nowhere" does not exist'):
        Ledger(server.url().replace("/postgres?", "/nowhere?"))
    with pytest.raises(LedgerUnavailable, match='role "nobody" does not exist'):
        Ledger(server.url(user="nobody"))


def test_a_server_that_is_stopped_and_started(server: Server) -> None:
    with Ledger(server.new_schema(), timeout=5) as ledger:
        ledger.grant("claims", epsilon=1)
        request(ledger, "q0")
        server.stop()
        try:
            with pytest.raises(LedgerUnavailable, match="cannot be reached"):
                request(ledger, "q1", never)
        finally:
            server.start()
        assert ledger.spent("claims") == Fraction(1, 10)
        assert request(ledger, "q1") == {}

        def compute() -> dict[str, Any]:
            server.stop()
            server.start()
            return {"x": 1}

        assert request(ledger, "q2", compute) == {"x": 1}, "a restart during the computation goes unnoticed"
        assert ledger.verify() == 7


def test_a_locked_head_record(server: Server) -> None:
    url = server.new_schema()
    with Ledger(url, timeout=2) as ledger, psycopg.connect(url) as other:
        ledger.grant("claims", epsilon=1)
        other.execute(f"SELECT * FROM {HEAD} FOR UPDATE")
        with pytest.raises(LedgerLocked, match="is locked by somebody else"):
            request(ledger, "q1", never)
        assert ledger.left("claims") == 1, "reading does not wait"
        other.rollback()
        assert request(ledger, "q1") == {}


def test_a_role_that_can_add_and_neither_edit_nor_delete(server: Server) -> None:
    url = server.new_schema()
    schema = url.rpartition("%3D")[2]
    for statement in (
        "DROP ROLE IF EXISTS clerk",
        "DROP ROLE IF EXISTS auditor",
        "CREATE ROLE clerk LOGIN",
        "CREATE ROLE auditor LOGIN",
    ):
        server.execute(statement)
    with Ledger(url) as owner:
        owner.grant("claims", epsilon=1)
        server.execute(f"GRANT USAGE ON SCHEMA {schema} TO clerk, auditor")
        server.execute(f"GRANT SELECT ON {ROWS}, {HEAD} TO clerk, auditor", url)
        server.execute(f"GRANT INSERT ON {ROWS} TO clerk", url)
        server.execute(f"GRANT UPDATE ON {HEAD} TO clerk", url)
        with Ledger(url.replace("postgres@", "clerk@")) as clerk:
            assert request(clerk, "q1") == {}
            assert clerk.verify() == 3
        for statement in (f"UPDATE {ROWS} SET spent = '0/1'", f"DELETE FROM {ROWS}"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                server.execute(statement, url.replace("postgres@", "clerk@"))
        with Ledger(url.replace("postgres@", "auditor@")) as auditor:
            assert auditor.left("claims") == Fraction(9, 10)
            assert auditor.verify() == 3
            with pytest.raises(LedgerUnavailable, match=r"cannot be written: permission denied .* right to write"):
                request(auditor, "q2", never)
        assert owner.verify() == 3
    server.execute(f"DROP SCHEMA {schema} CASCADE; DROP ROLE clerk; DROP ROLE auditor")


def test_a_server_whose_default_is_to_read_only_or_to_lose_commits(server: Server) -> None:
    url = server.new_schema()
    options = "%20-cdefault_transaction_read_only%3Don%20-csynchronous_commit%3Doff"
    options += "%20-cdefault_transaction_isolation%3Dserializable"
    with Ledger(url + options) as ledger:
        ledger.grant("claims", epsilon=1)
        with ledger._store.write() as book:
            shown = [
                book.connection.exec_driver_sql(f"SHOW {name}").scalar()
                for name in ("synchronous_commit", "transaction_isolation")
            ]
        assert shown == ["on", "read committed"]


MISSING = """
import sys
for name in sys.argv[2:]: sys.modules[name] = None
import privatest.ledger
from privatest.errors import MissingExtra
try:
    privatest.ledger.Ledger(sys.argv[1])
except MissingExtra as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("target", "missing", "said"),
    [
        ("ledger.db", "sqlalchemy", "A ledger needs SQLAlchemy. Install it: pip install "),
        (
            "postgresql:///db",
            "psycopg",
            "A ledger in PostgreSQL needs psycopg. Install it: pip install ",
        ),
    ],
)
def test_a_missing_extra_is_named(target: str, missing: str, said: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", MISSING, target, missing]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert done.stdout.startswith(said), done.stderr
    assert '"sqlalchemy>=' in done.stdout
    assert '"psycopg[binary]>=' in done.stdout
    assert list(tmp_path.iterdir()) == []
