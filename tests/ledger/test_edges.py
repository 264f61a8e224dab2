"""Names, amounts, settings and connections of the ledger at their edges: the last that passes and the first that does
not."""

from __future__ import annotations

import threading
from fractions import Fraction
from pathlib import Path

import pytest

from privatest.errors import (
    RequestConflict,
)
from privatest.ledger import Ledger
from privatest.ledger.budgets import Protection
from privatest.ledger.ledger import Request
from privatest.privacy import Pure


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
