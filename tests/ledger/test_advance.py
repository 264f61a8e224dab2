"""A stream goes from mark to mark: the ledger knows how far it was released, and lets no older state go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from privatest.errors import RequestConflict
from privatest.ledger import Ledger

Ask = Callable[..., dict[str, Any]]


def go(ledger: Ledger, position: int, mark: str, after: str, request: str = "watch") -> None:
    ledger.advance(dataset="claims", request=request, position=position, mark=mark, after=after)


@pytest.fixture
def streamed(ledger: Ledger, ask: Ask) -> Ledger:
    """Seven rows: 1 grant, 2-3 watch, 4 charge of late, 5-7 advances of watch to 10, 10 and 30."""
    ledger.grant("claims", epsilon=1)
    ask("watch", epsilon=0.3)
    with pytest.raises(ZeroDivisionError):
        ask("late", release=lambda _: {"x": 1 / 0})
    go(ledger, 10, "a", "")
    go(ledger, 10, "b", "a")
    go(ledger, 30, "c", "b")
    return ledger


def test_a_stream_goes_forward_and_costs_nothing(streamed: Ledger) -> None:
    assert streamed.verify() == 7
    assert float(streamed.spent("claims")) == 0.4
    assert [entry.kind for entry in streamed.history("claims")][4:] == ["advance"] * 3
    assert streamed.history("claims")[-1].release == {"position": 30, "after": "b", "mark": "c"}


def test_no_older_state_goes_on(streamed: Ledger) -> None:
    for older in ("", "a", "b", "d"):
        with pytest.raises(RequestConflict, match=r"up to record 30 .* epsilon=0\.3 more for each"):
            go(streamed, 40, "d", older)
    assert streamed.verify() == 7
    go(streamed, 40, "d", "c")
    go(streamed, 40, "d", "c")  # the same once more
    with pytest.raises(RequestConflict, match="up to record 40"):
        go(streamed, 50, "e", "c")
    assert streamed.verify() == 8


def test_what_was_noted_is_never_taken_back(streamed: Ledger) -> None:
    """A state that was noted and lost is followed by a shorter one: the ledger keeps what may have been released."""
    go(streamed, 20, "d", "c")
    release = streamed.history("claims")[-1].release
    assert release is not None
    assert release["position"] == 30
    assert streamed.verify() == 8
