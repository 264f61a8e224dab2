"""The errors that this package raises on purpose.

::

    PrivatestError
    +-- InvalidInput (ValueError)        an argument breaks a rule; the message names it and the remedy
    |   +-- InvalidDistribution          P or Q is not a distribution we can read
    |   |   +-- NothingToTest            P and Q are the same distribution
    |   +-- InvalidData                  the data's structure (never one record's value) is wrong
    |   +-- InvalidDocument              a serialised object is cut short, edited or of another version
    |   +-- Infeasible                   the target cannot be met by any setting; the message says why
    +-- MissingExtra (ImportError)       an optional dependency is not installed; the message names the extra
    +-- BudgetExceeded                   the price, .requested, is more than is .left of the budget; nothing was charged
    +-- LedgerError                      the ledger cannot do it; the message says why
        +-- LedgerUnavailable            missing, read-only, full or unreachable
        |   +-- LedgerLocked             another process held it for longer than the timeout; try again
        +-- LedgerUnreadable             not a ledger, damaged, or of another version
        +-- LedgerTampered               a row was edited, removed or moved; .sequence is the first bad one
        +-- RequestConflict              the request's name was used before, for another epsilon or design
        +-- SourceNotCovered             the data set's grant names its files or tables, and this is none of them

No message contains a record or anything computed from records. An error of any type that is raised after a charge has a
note that says so (:func:`charge_note`): the same request again is completed without a new charge.
"""

from __future__ import annotations

import os
import re
from numbers import Number
from typing import Any, Self

__all__ = [
    "BudgetExceeded",
    "Infeasible",
    "InvalidData",
    "InvalidDistribution",
    "InvalidDocument",
    "InvalidInput",
    "LedgerError",
    "LedgerLocked",
    "LedgerTampered",
    "LedgerUnavailable",
    "LedgerUnreadable",
    "MissingExtra",
    "NothingToTest",
    "PrivatestError",
    "RequestConflict",
    "SourceNotCovered",
    "charge_note",
    "note_charge",
    "shown",
]

LONGEST_SHOWN = 100


def shown(value: object) -> str:
    """Return an argument as messages may quote it: a number or a short text. Anything else may be data: its type.

    Args:
        value: the argument.

    >>> shown(0.5), shown("tigth"), shown([0, 1, 1])
    ('0.5', "'tigth'", '<list>')
    """
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    try:
        if value is None or isinstance(value, Number):  # NumPy's numbers too
            return str(value)
    except ValueError:  # an integer with more digits than Python writes
        return f"<{type(value).__name__}>"
    if isinstance(value, str) and len(value) <= LONGEST_SHOWN and "\n" not in value:
        return repr(value)
    return f"<{type(value).__name__}>"


class PrivatestError(Exception):
    """Base class of all errors that this package raises on purpose."""


class InvalidInput(PrivatestError, ValueError):
    """An argument breaks a rule."""


class InvalidDistribution(InvalidInput):
    """P or Q is not a distribution this package can read."""


class NothingToTest(InvalidDistribution):
    """P and Q are the same distribution."""


class InvalidData(InvalidInput):
    """The structure of the data (never the value of one record) is wrong."""


class InvalidDocument(InvalidInput):
    """A serialised object is cut short, edited or of another version."""


class Infeasible(InvalidInput):
    """No setting meets the target."""


class MissingExtra(PrivatestError, ImportError):
    """An optional dependency is not installed."""

    @classmethod
    def of(cls, sentence: str, extra: str) -> Self:
        """Return the error with the command that installs the extra, wherever this package was installed from.

        Args:
            sentence: what needs the dependency.
            extra: name of the extra in pyproject.toml.
        """
        from importlib import metadata  # start-up: only errors need it

        try:
            required = [line.partition(";") for line in metadata.requires("privatest") or ()]
        except metadata.PackageNotFoundError:  # run from its folder, not installed
            required = []
        wanted = [f'"{what.strip()}"' for what, _, when in required if re.search(rf"extra == ['\"]{extra}['\"]", when)]
        # Not privatest[extra]: pip would look for the package in an index, which may not have it.
        line = f"pip install {' '.join(wanted)}" if wanted else f'pip install ".[{extra}]" in the folder of privatest'
        return cls(f"{sentence} Install it: {line}")


class BudgetExceeded(PrivatestError):
    """The request costs more than is left; nothing was charged.

    ``requested``, ``spent`` and ``left`` are exact epsilons, or notions if the price or the budget is one.
    """

    def __init__(self, message: str, dataset: str, requested: Any, spent: Any, left: Any) -> None:
        super().__init__(message, dataset, requested, spent, left)  # all of them, so that it can be pickled
        self.dataset, self.requested, self.spent, self.left = dataset, requested, spent, left

    def __str__(self) -> str:
        return str(self.args[0])


class LedgerError(PrivatestError):
    """The ledger cannot perform the operation."""


class LedgerUnavailable(LedgerError):
    """The ledger is missing, read-only, full or unreachable."""


class LedgerLocked(LedgerUnavailable):
    """Another process or thread held the ledger for longer than the timeout."""


class LedgerUnreadable(LedgerError):
    """The database is not a ledger, is damaged, or is a ledger of another version."""


class LedgerTampered(LedgerError):
    """A row was edited, removed or moved. ``sequence`` is the first bad row, where one can be named."""

    def __init__(self, message: str, sequence: int | None = None) -> None:
        super().__init__(message, sequence)
        self.sequence = sequence

    def __str__(self) -> str:
        return str(self.args[0])


class RequestConflict(LedgerError):
    """A request of this name was charged before, for another epsilon or another design."""


class SourceNotCovered(LedgerError):
    """The data are not among the files or tables that the data set's grant names; nothing was charged."""


def note_charge(error: BaseException, note: str) -> None:
    """Add a note to an error that was raised after a charge, if it has none yet. Tracebacks show the note.

    Args:
        error: the error.
        note: what was charged, and how to go on.
    """
    if charge_note(error) is None:
        error.add_note(note)
        error.__dict__["charge_note"] = note


def charge_note(error: BaseException) -> str | None:
    """Return what was charged before an error, and how to go on; None if nothing was charged.

    Args:
        error: the error.
    """
    note = getattr(error, "charge_note", None)
    return note if isinstance(note, str) else None
