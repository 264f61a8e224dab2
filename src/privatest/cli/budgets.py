"""Budgets: ``ledger grant``, ``show`` and ``verify``; and how a run on data is paid for by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from privatest import errors
from privatest.cli.options import Given, need
from privatest.cli.output import Fact, ReaderGone, emit, emit_json, facts, say, show_table

__all__ = ["answered", "budget", "check_payment", "grant", "opened", "paid", "show", "tell_receipt", "verify"]

PAID = ("ledger", "dataset", "request")
TIMEOUT = "ledger_timeout"
UNSEEN = (
    "Every row matches its hash, its neighbours and the sums. Alone this cannot see that rows were removed, or an "
    "old copy put back, and the rest made to fit: check that with --since and a fingerprint kept elsewhere, as every "
    "result and report of this ledger prints one."
)
SEEN = "Every row matches its hash, its neighbours and the sums, and those up to the fingerprint are the same as then."


def grant(given: Given) -> None:
    """Set the total budget of a data set; starts the ledger if there is none.

    With --covers the budget is for these files or tables only: requests that read others are refused, and so are
    requests of other data sets that read these. "data in memory" stands for standard input and data frames.

    \b
    Example:
      privatest ledger grant --ledger ledger.db --dataset claims --epsilon 1 \\
          --covers claims.csv
    """
    need(given, "ledger", "dataset", "epsilon")
    dataset, epsilon = given["dataset"], given["epsilon"]
    if not epsilon > 0 or epsilon == float("inf"):  # before an empty ledger is made for nothing
        raise errors.InvalidInput(f"epsilon={epsilon!r} must be greater than 0 and finite.")
    with opened(given, create=True) as book:
        book.grant(dataset, epsilon=epsilon, covers=given["covers"] or None)
        line, named = _line(book, dataset), book.covers(dataset)
    if given["json"]:
        emit_json({**line, "covers": named})
        return
    lines = [(name, value if name == "dataset" else f"{value:g}") for name, value in line.items()]
    facts("Budget", [*lines, *(("covers", one) for one in named or ["any source"])])


def show(given: Given) -> None:
    """What is granted, spent and left, and every request so far; of a stream, how far it was released.

    \b
    Example:
      privatest ledger show --ledger ledger.db
    """
    need(given, "ledger")
    with opened(given) as book:
        dataset = given["dataset"]
        names = book.datasets() if dataset is None else [dataset]
        lines = [_line(book, name) for name in names]
        history, fingerprint = book.history(dataset), book.fingerprint()
    if given["json"]:
        emit_json({"datasets": lines, "history": [entry.to_dict() for entry in history], "fingerprint": fingerprint})
        return
    headings = ("dataset", "granted", "spent", "left")
    rows = [[line["dataset"], *(f"{line[name]:g}" for name in headings[1:])] for line in lines]
    show_table("Budgets of epsilon", headings, rows, left=("dataset",))
    newest = {(entry.dataset, entry.request): entry.sequence for entry in history if entry.kind == "advance"}
    entries = [
        (
            str(entry.sequence),
            f"{entry.time:%Y-%m-%d %H:%M}",
            entry.kind if entry.release is None or entry.kind != "advance" else f"to {entry.release['position']}",
            entry.dataset,
            entry.request or "",
            f"{float(entry.epsilon):g}",
        )
        for entry in history
        if entry.kind != "advance" or newest[entry.dataset, entry.request] == entry.sequence
    ]
    emit("")
    show_table(
        "History (times in UTC)",
        ("row", "time", "what", "dataset", "request", "epsilon"),
        entries,
        left=("time", "what", "dataset", "request"),
    )
    emit("")
    emit(f"Note the fingerprint elsewhere to pin the ledger as it is now:\n{fingerprint}")


def verify(given: Given) -> None:
    """Check every row, hash and sum of a ledger; exits with 2 if anything was edited.

    Alone it sees edits by those who do not recompute the hashes. With --since it sees, too, that rows were removed or
    the whole ledger written anew or put back, up to the fingerprint, if that was kept where they cannot change it.

    \b
    Example:
      privatest ledger verify --ledger ledger.db
    """
    need(given, "ledger")
    with opened(given) as book:
        rows = book.verify(given["since"])
        fingerprint = book.fingerprint()
    if given["json"]:
        emit_json({"rows": rows, "intact": True, "fingerprint": fingerprint})
        return
    facts("The ledger is intact", [("rows", f"{rows:,}")])
    say(UNSEEN if given["since"] is None else SEEN)
    emit(f"Fingerprint of the ledger, to keep elsewhere:\n{fingerprint}")


def _line(book: Any, dataset: str) -> dict[str, Any]:
    granted, spent = book.granted(dataset), book.spent(dataset)
    return {"dataset": dataset, "granted": float(granted), "spent": float(spent), "left": float(granted - spent)}


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
