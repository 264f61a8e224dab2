"""Runs on data, all of them through a ledger: charged before anything is released, once per request name.

``Budgets`` and ``source_of`` stand in the server; the jobs run in worker processes, one for each run.
"""

from __future__ import annotations

import base64
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import privatest as pt
from privatest import errors
from privatest.studio.answers import law_of
from privatest.studio.places import Folder, Uploads

__all__ = ["JOBS", "STAYS", "Budgets", "ledger_of", "source_of"]

Json = dict[str, Any]
STAYS = "If it was charged before it was stopped, the same request under the same name is completed at no new charge."


class Budgets:
    """The ledger given at start, or none."""

    def __init__(self, ledger: Any) -> None:
        given = isinstance(ledger, str | os.PathLike)
        try:
            self._ledger = pt.Ledger(ledger, create=False) if given else ledger
        except errors.LedgerUnavailable as error:
            raise type(error)(
                f"{error} The studio starts none: grant a budget first, with privatest ledger grant, or give the "
                "ledger that is there."
            ) from None
        try:
            self._packed = None if ledger is None else base64.b64encode(pickle.dumps(self._ledger)).decode()
        except (TypeError, AttributeError, pickle.PicklingError):
            raise errors.InvalidInput(
                f"ledger must be a privatest.Ledger or its path, not a {type(ledger).__name__}."
            ) from None

    @property
    def given(self) -> bool:
        """Whether anything can be run on data."""
        return self._packed is not None

    def packed(self) -> str:
        """The ledger as a worker opens it (``ledger_of``), or a refusal."""
        if self._packed is None:
            raise errors.InvalidInput(
                "No ledger was given at start, so nothing is run on data. Start the studio with a ledger: "
                "privatest studio --ledger FILE."
            )
        return self._packed


def ledger_of(packed: str) -> pt.Ledger:
    """The ledger that :meth:`Budgets.packed` wrote, in this process."""
    ledger: pt.Ledger = pickle.loads(base64.b64decode(packed))
    return ledger


def _budget(book: pt.Ledger, name: str) -> Json:
    granted, spent, covers = book.granted(name), book.spent(name), book.covers(name)
    files = None if covers is None else [_shown(one, "", "") for one in covers]
    return {
        "dataset": name,
        "granted": float(granted),
        "spent": float(spent),
        "left": float(granted - spent),
        "covers": files,
    }


def source_of(source: Json, folder: Folder, uploads: Uploads) -> Path:
    """The file that a request names."""
    return folder.find(source["path"]) if source.get("path") is not None else uploads.find(source["upload"])


def _test(asked: Json, path: Path, ledger: pt.Ledger) -> Any:
    """Design the test and run it once: for the file's number of records, or for a stated one where that is hidden."""
    column, n = asked["column"], asked["n"]
    if n is None:
        if asked["neighbours"] == "add-remove":
            raise errors.InvalidInput(
                "n is missing: with neighbours='add-remove' the number of records is not public, so the test is "
                "designed for the number that you expect. Give n."
            )
        n = pt.count_records(path, column=column)
    test = pt.design(
        law_of(asked["null"]),
        law_of(asked["alternative"]),
        epsilon=asked["epsilon"],
        n=n,
        alpha=asked["alpha"],
        neighbours=asked["neighbours"],
    )
    release = test.run(path, column=column, ledger=ledger, dataset=asked["dataset"], request=asked["request"])
    design = {
        "null": test.null,
        "alternative": test.alternative,
        "alpha": test.alpha,
        "beta": test.beta,
        "threshold": test.threshold,
        "clamp": list(test.clamp),
    }
    return release, {"design": design}


def _change(asked: Json, path: Path, ledger: pt.Ledger) -> Any:
    """Locate a change in the file's records once."""
    found = pt.detect_change(
        path,
        law_of(asked["null"]),
        law_of(asked["alternative"]),
        epsilon=asked["epsilon"],
        beta=asked["beta"],
        false_alarm=asked["false_alarm"],
        column=asked["column"],
        order=asked["order"],
        ledger=ledger,
        dataset=asked["dataset"],
        request=asked["request"],
    )
    return found, {}


def _once(run: Callable[[Json, Path, pt.Ledger], Any]) -> Callable[..., Json]:
    """The run as a job: with the names that users know in place of paths on this machine, in all that it says."""

    def job(asked: Json, path: str, ledger: str) -> Json:
        book, name = ledger_of(ledger), asked["dataset"]
        shown = asked["source"]["path"] or "the upload"
        try:
            release, more = run(asked, Path(path), book)
        except errors.PrivatestError as error:
            error.args = (str(error).replace(path, shown), *error.args[1:])
            raise
        except Exception as error:
            note = errors.charge_note(error) or "Nothing was charged."
            raise errors.Infeasible(f"The run ended with {type(error).__name__}. {note}") from None
        receipt = release.receipt
        if receipt is not None:
            named = {key: _shown(getattr(receipt, key), path, shown) for key in ("source", "given")}
            release = replace(release, receipt=replace(receipt, **named))
        return {"release": release.to_dict(), **more, "budget": _budget(book, name), "request": asked["request"]}

    return job


def _shown(source: str | None, path: str, shown: str) -> str | None:
    """A source's name without this machine's folders."""
    if source is None or not os.path.isabs(source):
        return source
    return shown if source == path else os.path.basename(source)


def _about(folder: str | None, ledger: str | None) -> Json:
    """The files that can be named, and every data set with its budget."""
    book = None if ledger is None else ledger_of(ledger)
    budgets = [] if book is None else [_budget(book, name) for name in book.datasets()]
    return {"files": Folder(folder).listed(), "budgets": budgets}


JOBS: dict[str, Callable[..., Json]] = {"about": _about, "run_test": _once(_test), "run_change": _once(_change)}
