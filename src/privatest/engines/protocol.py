"""What every engine offers: count the records and sum their scores. Engines never see epsilon or randomness."""

from __future__ import annotations

from typing import Protocol

from privatest.scores import Score

__all__ = ["Records"]


class Records(Protocol):
    """One column of records, wherever it lies."""

    def count(self) -> int:
        """How many records there are."""

    def check(self, score: Score) -> None:
        """Raise InvalidData if the column's type (never a record's value) cannot fit the score."""

    def total(self, score: Score) -> int:
        """The exact sum of all records' scores."""
