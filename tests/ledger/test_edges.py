"""Names, amounts, settings and connections of the ledger at their edges: the last that passes and the first that does
not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from privatest.charge import make_charge
from privatest.errors import (
    InvalidInput,
    LedgerLocked,
    LedgerUnavailable,
    RequestConflict,
)
from privatest.ledger import Ledger
from privatest.ledger.account import Protection
from privatest.ledger.ledger import Request
from privatest.ledger.store import Address
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


def test_an_at_sign_in_a_password_is_not_guessed_about() -> None:
    with pytest.raises(InvalidInput, match=r"holds an @. Write it as %40"):
        Address.of("postgresql://me:p@ss@localhost/ledgers")
    assert Address.of("postgresql://me:p%40ss@localhost/ledgers").url is not None


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
