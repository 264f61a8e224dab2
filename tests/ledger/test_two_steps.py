"""An answer in two steps: what was drawn first is on record before the second step looks at it."""

from __future__ import annotations

from typing import Any

import pytest

from privatest.ledger import Ledger

ASK: dict[str, Any] = {"dataset": "d", "request": "r", "epsilon": 1, "design": "sha256:ab"}


@pytest.fixture
def book(ledger: Ledger) -> Ledger:
    ledger.grant("d", epsilon=2)
    return ledger


def release(drawn: list[int]) -> dict[str, Any]:
    return {"drawn": drawn}


def kinds(book: Ledger) -> list[str]:
    return [entry.kind for entry in book.history("d")]


def test_each_step_is_on_record_before_the_next(book: Ledger) -> None:
    def further(drawn: list[int]) -> list[int]:
        assert kinds(book)[-1] == "charge"
        assert book.history("d")[-1].about["draw"] == drawn
        return [*drawn, 8]

    def looked(drawn: list[int]) -> dict[str, Any]:
        assert kinds(book)[-1] == "draw"
        return release(drawn)

    found = book.perform(**ASK, draw=lambda: [7], further=further, release=looked)
    assert found == {"drawn": [7, 8]}
    assert kinds(book) == ["grant", "charge", "draw", "release"]
    assert (book.history("d")[2].about, book.history("d")[2].release) == ({"draw": [7, 8]}, None)
    assert (book.spent("d"), book.verify()) == (1, 4)


def test_nothing_is_drawn_again_wherever_it_stops(book: Ledger) -> None:
    def stop(*_: object) -> Any:
        raise KeyboardInterrupt

    def never(*_: object) -> Any:
        pytest.fail("drawn again")

    with pytest.raises(KeyboardInterrupt):
        book.perform(**ASK, draw=lambda: [7], further=stop, release=release)
    with pytest.raises(KeyboardInterrupt):
        book.perform(**ASK, draw=never, further=lambda drawn: [*drawn, 8], release=stop)
    assert kinds(book) == ["grant", "charge", "draw"]
    assert book.perform(**ASK, draw=never, further=never, release=release) == {"drawn": [7, 8]}
    assert (book.spent("d"), book.verify()) == (1, 4)


@pytest.mark.parametrize("further", [None, lambda drawn: [*drawn, 9]], ids=["one step", "two"])
def test_who_is_slower_goes_on_from_what_is_on_record(book: Ledger, further: Any) -> None:
    """Another run completes the request while this one is at its second step."""

    def overtaken(drawn: list[int]) -> list[int]:
        book.perform(**ASK, draw=lambda: [0], further=further, release=release)
        return [*drawn, 8]

    found = book.perform(**ASK, draw=lambda: [7], further=overtaken, release=release)
    assert found == {"drawn": [7] if further is None else [7, 9]}
    assert book.verify() == len(kinds(book)) == (3 if further is None else 4)
