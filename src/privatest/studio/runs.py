"""Runs on data, all of them through a ledger: charged before anything is released, once per request name."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import privatest as pt
from privatest import errors
from privatest.studio.answers import law_of, plain_number
from privatest.studio.places import Folder, Uploads

__all__ = ["Budgets", "run_change", "run_test", "source_of"]

Json = dict[str, Any]


class Budgets:
    """The ledger given at start, or none."""

    def __init__(self, ledger: Any) -> None:
        given = isinstance(ledger, str | os.PathLike)
        self._ledger = pt.Ledger(ledger) if given else ledger

    @property
    def given(self) -> bool:
        """Whether anything can be run on data."""
        return self._ledger is not None

    def open(self) -> pt.Ledger:
        """The ledger, or a refusal."""
        if self._ledger is None:
            raise errors.InvalidInput(
                "No ledger was given at start, so nothing is run on data. Start the studio with a ledger: "
                "privatest studio --ledger FILE."
            )
        ledger: pt.Ledger = self._ledger
        return ledger

    def shown(self) -> list[Json]:
        """Every data set with its budget: granted, spent, left."""
        if self._ledger is None:
            return []
        book = self.open()
        return [_budget(name, book.granted(name), book.spent(name)) for name in book.datasets()]


def _budget(name: str, granted: Fraction, spent: Fraction) -> Json:
    return {"dataset": name, "granted": float(granted), "spent": float(spent), "left": float(granted - spent)}


def source_of(source: Json, folder: Folder, uploads: Uploads) -> Path:
    """The file that a request names."""
    return folder.find(source["path"]) if source.get("path") is not None else uploads.find(source["upload"])


def run_test(asked: Json, path: Path, budgets: Budgets) -> Json:
    """Design the test for the file's number of records (which is public) and run it once."""
    ledger, column = budgets.open(), asked["column"]
    n = asked["n"] if asked["n"] is not None else pt.count_records(path, column=column)
    P, Q = law_of(asked["null"]), law_of(asked["alternative"])
    test = pt.design(P, Q, epsilon=asked["epsilon"], n=n, alpha=asked["alpha"])
    release = test.run(path, column=column, ledger=ledger, dataset=asked["dataset"], request=asked["request"])
    design = {
        "null": test.null,
        "alternative": test.alternative,
        "alpha": test.alpha,
        "beta": test.beta,
        "threshold": test.threshold,
        "clamp": list(test.clamp),
    }
    return _told({"release": release.to_dict(), "design": design}, asked, ledger)


def run_change(asked: Json, path: Path, budgets: Budgets) -> Json:
    """Locate a change in the file's records once."""
    ledger = budgets.open()
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
    return _told({"release": found.to_dict()}, asked, ledger)


def _told(found: Json, asked: Json, ledger: pt.Ledger) -> Json:
    name = asked["dataset"]
    budget = _budget(name, ledger.granted(name), ledger.spent(name))
    told: Json = plain_number({**found, "budget": budget, "request": asked["request"]})
    return told
