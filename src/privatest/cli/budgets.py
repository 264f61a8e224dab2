"""``ledger grant``, ``show`` and ``verify``."""

from __future__ import annotations

from typing import Annotated, Any

from privatest import errors
from privatest.cli import options as o
from privatest.cli.output import emit, emit_json, facts, show_table
from privatest.cli.planning import need

__all__ = ["grant", "show", "verify"]

Since = Annotated[str | None, o.option("--since", "A fingerprint noted earlier, as show prints it.", "TEXT")]


def grant(
    ledger: o.Ledger = None, dataset: o.Dataset = None, epsilon: o.Epsilon = None, as_json: o.Json = False
) -> None:
    """Set the total budget of a data set; starts the ledger if there is none.

    \b
    Example:
      privatest ledger grant --ledger ledger.db --dataset claims --epsilon 1
    """
    import privatest as pt

    _need(ledger=ledger, dataset=dataset, epsilon=epsilon)
    assert ledger is not None
    assert dataset is not None
    assert epsilon is not None
    if not epsilon > 0 or epsilon == float("inf"):  # before an empty ledger is made for nothing
        raise errors.InvalidInput(f"epsilon={epsilon!r} must be greater than 0 and finite.")
    with pt.Ledger(ledger) as book:
        book.grant(dataset, epsilon=epsilon)
        line = _line(book, dataset)
    if as_json:
        emit_json(line)
        return
    facts("Budget", [(name, value if name == "dataset" else f"{value:g}") for name, value in line.items()])


def show(ledger: o.Ledger = None, dataset: o.Dataset = None, as_json: o.Json = False) -> None:
    """What is granted, spent and left, and every request so far; of a stream, how far it was released.

    \b
    Example:
      privatest ledger show --ledger ledger.db
    """
    import privatest as pt

    _need(ledger=ledger)
    assert ledger is not None
    with pt.Ledger(ledger, create=False) as book:
        names = book.datasets() if dataset is None else [dataset]
        lines = [_line(book, name) for name in names]
        history, fingerprint = book.history(dataset), book.fingerprint()
    if as_json:
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
    facts("Note the fingerprint elsewhere to pin the ledger as it is now:", [(fingerprint, "")])


def verify(ledger: o.Ledger = None, since: Since = None, as_json: o.Json = False) -> None:
    """Check every row, hash and sum of a ledger; exits with 2 if anything was edited.

    \b
    Example:
      privatest ledger verify --ledger ledger.db
    """
    import privatest as pt

    _need(ledger=ledger)
    assert ledger is not None
    with pt.Ledger(ledger, create=False) as book:
        rows = book.verify(since)
        fingerprint = book.fingerprint()
    if as_json:
        emit_json({"rows": rows, "intact": True, "fingerprint": fingerprint})
        return
    facts("The ledger is intact", [("rows", f"{rows:,}"), ("fingerprint", fingerprint)])


def _line(book: Any, dataset: str) -> dict[str, Any]:
    granted, spent = book.granted(dataset), book.spent(dataset)
    return {"dataset": dataset, "granted": float(granted), "spent": float(spent), "left": float(granted - spent)}


def _need(**given: Any) -> None:
    need({name: value for name, value in given.items() if value is not None}, *given)
