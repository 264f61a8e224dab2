"""Every error this package raises on purpose.

::

    PrivatestError
    +-- InvalidInput (ValueError)        an argument breaks a rule; the message names it and the remedy
    |   +-- InvalidDistribution          P or Q is not a distribution we can read
    |   |   +-- NothingToTest            P and Q are the same distribution
    |   +-- InvalidData                  the data's structure (never one record's value) is wrong
    |   +-- InvalidDocument              a serialised object is cut short, edited or of another version
    |   +-- Infeasible                   the target cannot be met by any setting; the message says why
    +-- MissingExtra (ImportError)       an optional dependency is not installed; the message names the extra
    +-- BudgetExceeded                   .asked is more than is .left of the budget; nothing was charged
    +-- LedgerError                      the ledger cannot do it; the message says what state it is in
        +-- LedgerUnavailable            missing, read-only, full or unreachable
        |   +-- LedgerLocked             somebody else held it for longer than the timeout; try again
        +-- LedgerUnreadable             not a ledger, damaged, or of another version
        +-- LedgerTampered               a row was edited, removed or moved; .sequence is the first bad one
        +-- RequestConflict              the request's name was used before, for another epsilon or design
        +-- SourceNotCovered             the data set's grant names its files or tables, and this is none of them

No message ever carries a record or anything computed from the records. What fails after a charge, of whatever type,
carries a note that says so (:func:`charge_note`): the same request again is completed without a new charge.
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
    """An argument as messages may quote it: a number, or a short text. Of anything else, which may be data, the type.

    Args:
        value: the argument.

    >>> shown(0.5), shown("tigth"), shown([0, 1, 1])
    ('0.5', "'tigth'", '<list>')
    """
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    try:
        if value is None or isinstance(value, Number):  # numpy's, too
            return str(value)
    except ValueError:  # more digits than Python writes out
        return f"<{type(value).__name__}>"
    if isinstance(value, str) and len(value) <= LONGEST_SHOWN and "\n" not in value:
        return repr(value)
    return f"<{type(value).__name__}>"


class PrivatestError(Exception):
    """Root of the tree above."""


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
        """What needs it, and the line that installs it, wherever this package itself was installed from.

        Args:
            sentence: what is needed for what.
            extra: of pyproject.toml, that asks for it.
        """
        from importlib import metadata  # start-up: only what fails needs it

        try:
            asked = [line.partition(";") for line in metadata.requires("privatest") or ()]
        except metadata.PackageNotFoundError:  # run from its folder, without having been installed
            asked = []
        wanted = [f'"{what.strip()}"' for what, _, when in asked if re.search(rf"extra == ['\"]{extra}['\"]", when)]
        # pip is not asked for privatest[extra]: it would look for the package in an index, where it need not be.
        line = f"pip install {' '.join(wanted)}" if wanted else f'pip install ".[{extra}]" in the folder of privatest'
        return cls(f"{sentence} Install it: {line}")


class BudgetExceeded(PrivatestError):
    """More was asked for than is left; nothing was charged.

    The amounts are exact epsilons, or notions where the budget or the price is none.
    """

    def __init__(self, message: str, dataset: str, asked: Any, spent: Any, left: Any) -> None:
        super().__init__(message, dataset, asked, spent, left)  # all of them, so that it survives pickling
        self.dataset, self.asked, self.spent, self.left = dataset, asked, spent, left

    def __str__(self) -> str:
        return str(self.args[0])


class LedgerError(PrivatestError):
    """The ledger cannot do what was asked."""


class LedgerUnavailable(LedgerError):
    """The ledger is missing, read-only, full or unreachable."""


class LedgerLocked(LedgerUnavailable):
    """Somebody else held the ledger for longer than the timeout."""


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
    """Note on an error that it came after a charge, once; tracebacks show it below the message.

    Args:
        error: what was raised.
        note: what was charged, and how to go on.
    """
    if charge_note(error) is None:
        error.add_note(note)
        error.__dict__["charge_note"] = note


def charge_note(error: BaseException) -> str | None:
    """What was charged before this error, and how to go on; None where nothing was charged.

    Args:
        error: what was raised.
    """
    found = getattr(error, "charge_note", None)
    return found if isinstance(found, str) else None
