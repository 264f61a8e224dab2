"""``ledger grant``, ``show`` and ``verify``."""

from __future__ import annotations

from typing import Annotated, Any

from privatest import errors
from privatest.cli import options as o
from privatest.cli.output import emit, emit_json, facts, say, show_table
from privatest.cli.planning import need
from privatest.cli.together import TIMEOUT, opened

__all__ = ["grant", "show", "verify"]

Since = Annotated[
    str | None, o.option("--since", "A fingerprint noted earlier: from a result, a report, show or verify.", "TEXT")
]
Covers = Annotated[
    list[str] | None,
    o.option("--covers", "A file, folder, glob or table that belongs to it; others are refused. Repeat it.", "SOURCE"),
]
UNSEEN = (
    "Every row matches its hash, its neighbours and the sums. Alone this cannot see that rows were removed, or an "
    "old copy put back, and the rest made to fit: check that with --since and a fingerprint kept elsewhere, as every "
    "result and report of this ledger prints one."
)
SEEN = "Every row matches its hash, its neighbours and the sums, and those up to the fingerprint are the same as then."


def grant(
    ledger: o.Ledger = None,
    dataset: o.Dataset = None,
    epsilon: o.Epsilon = None,
    covers: Covers = None,
    ledger_timeout: o.LedgerTimeout = None,
    as_json: o.Json = False,
) -> None:
    """Set the total budget of a data set; starts the ledger if there is none.

    With --covers the budget is for these files or tables only: requests that read others are refused, and so are
    requests of other data sets that read these. "data in memory" stands for standard input and data frames.

    \b
    Example:
      privatest ledger grant --ledger ledger.db --dataset claims --epsilon 1 \\
          --covers claims.csv
    """
    _need(ledger=ledger, dataset=dataset, epsilon=epsilon)
    assert ledger is not None
    assert dataset is not None
    assert epsilon is not None
    if not epsilon > 0 or epsilon == float("inf"):  # before an empty ledger is made for nothing
        raise errors.InvalidInput(f"epsilon={epsilon!r} must be greater than 0 and finite.")
    with opened({"ledger": ledger, TIMEOUT: ledger_timeout}, create=True) as book:
        book.grant(dataset, epsilon=epsilon, covers=covers or None)
        line, named = _line(book, dataset), book.covers(dataset)
    if as_json:
        emit_json({**line, "covers": named})
        return
    lines = [(name, value if name == "dataset" else f"{value:g}") for name, value in line.items()]
    facts("Budget", [*lines, *(("covers", one) for one in named or ["any source"])])


def show(
    ledger: o.Ledger = None,
    dataset: o.Dataset = None,
    ledger_timeout: o.LedgerTimeout = None,
    as_json: o.Json = False,
) -> None:
    """What is granted, spent and left, and every request so far; of a stream, how far it was released.

    \b
    Example:
      privatest ledger show --ledger ledger.db
    """
    _need(ledger=ledger)
    with opened({"ledger": ledger, TIMEOUT: ledger_timeout}) as book:
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
    emit(f"Note the fingerprint elsewhere to pin the ledger as it is now:\n{fingerprint}")


def verify(
    ledger: o.Ledger = None,
    since: Since = None,
    ledger_timeout: o.LedgerTimeout = None,
    as_json: o.Json = False,
) -> None:
    """Check every row, hash and sum of a ledger; exits with 2 if anything was edited.

    Alone it sees edits by those who do not recompute the hashes. With --since it sees, too, that rows were removed or
    the whole ledger written anew or put back, up to the fingerprint, if that was kept where they cannot change it.

    \b
    Example:
      privatest ledger verify --ledger ledger.db
    """
    _need(ledger=ledger)
    with opened({"ledger": ledger, TIMEOUT: ledger_timeout}) as book:
        rows = book.verify(since)
        fingerprint = book.fingerprint()
    if as_json:
        emit_json({"rows": rows, "intact": True, "fingerprint": fingerprint})
        return
    facts("The ledger is intact", [("rows", f"{rows:,}")])
    say(UNSEEN if since is None else SEEN)
    emit(f"Fingerprint of the ledger, to keep elsewhere:\n{fingerprint}")


def _line(book: Any, dataset: str) -> dict[str, Any]:
    granted, spent = book.granted(dataset), book.spent(dataset)
    return {"dataset": dataset, "granted": float(granted), "spent": float(spent), "left": float(granted - spent)}


def _need(**given: Any) -> None:
    need({name: value for name, value in given.items() if value is not None}, *given)
