"""Options that belong together: a ledger, a data set and a request; an alternative or a distance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from privatest import errors
from privatest.cli.output import Fact, ReaderGone, emit, say

__all__ = ["PAID", "TIMEOUT", "answered", "budget", "check_payment", "one_of", "opened", "paid", "tell_receipt"]

PAID = ("ledger", "dataset", "request")
TIMEOUT = "ledger_timeout"


def check_payment(asked: Mapping[str, Any]) -> None:
    """All three or none."""
    named = [name for name in PAID if name in asked]
    if TIMEOUT in asked and "ledger" not in asked:
        raise errors.InvalidInput("--ledger-timeout without --ledger: there is nothing to wait for.")
    if named and len(named) < len(PAID):
        missing = ", ".join(f"--{name}" for name in PAID if name not in named)
        raise errors.InvalidInput(f"--{', --'.join(named)} without {missing}: the three go together.")


def paid(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The ledger, opened, and who pays for what; nothing where nobody pays."""
    if "ledger" not in asked:
        return {}
    return {"ledger": opened(asked), "dataset": asked["dataset"], "request": asked["request"]}


def opened(asked: Mapping[str, Any], *, create: bool = False) -> Any:
    """The ledger that is asked for, waiting for others as long as asked."""
    import privatest as pt

    words = {"timeout": asked[TIMEOUT]} if asked.get(TIMEOUT) is not None else {}
    return pt.Ledger(asked["ledger"], create=create, **words)


@contextmanager
def answered(asked: Mapping[str, Any], again: str | None = None) -> Iterator[None]:
    """What is done after the charge: if it fails, the complaint says how to go on (``again``, if not by itself)."""
    try:
        yield
    except ReaderGone:
        raise
    except BaseException as error:
        if not hasattr(error, "exit_code"):  # typer's own way out
            note = again or "The answer was drawn and no ledger keeps it: asking again spends epsilon again."
            if again is None and "ledger" in asked:
                kept = f"Request {asked['request']!r} of data set {asked['dataset']!r} is charged, its answer recorded"
                note = f"{kept}: the same command gives it again, without a new charge."
            errors.note_charge(error, note)
        raise


def tell_receipt(found: Any) -> None:
    """What the ledger noted: that the answer is an old one, and the fingerprint, on a line that is never broken."""
    if found.replayed is not None:
        say(f"This answer is not new: {found.replayed.note}.")
    if found.receipt is not None:
        emit(f"Fingerprint of the ledger, to keep elsewhere:\n{found.receipt.fingerprint}")


def budget(asked: Mapping[str, Any]) -> list[Fact]:
    """What is left after a run, as a line of its table."""
    if "ledger" not in asked:
        return [("budget", "no ledger", "note somewhere that this epsilon is spent")]
    with opened(asked) as ledger:
        left, granted = ledger.left(asked["dataset"]), ledger.granted(asked["dataset"])
    return [("budget", f"{float(left):g} left", f"of {float(granted):g} for data set {asked['dataset']}")]


def one_of(settings: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """An alternative or a distance: what the command line says replaces the other one in the problem file.

    A file may name both, the distance for ``fit``; then the alternative is the more precise question.
    """
    if given["distance"] is None:
        if "alternative" in settings:
            settings.pop("distance", None)
    elif given["alternative"] is None:
        settings.pop("alternative", None)
    return settings
