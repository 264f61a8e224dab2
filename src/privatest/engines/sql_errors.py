"""What goes wrong where data lie elsewhere, in words of our own; and how large a sum there may be."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

from privatest.errors import InvalidData, InvalidInput, PrivatestError

__all__ = ["SUMMABLE", "asked", "rows_of_a_unit"]

Answer = TypeVar("Answer")

# Sums of 2^41 such scores stay within 64 bits. Larger scores are counted, and summed here in Python's integers.
SUMMABLE = 1 << 22


def asked(complaint: str, ask: Callable[[], Answer]) -> Answer:
    """What ``ask`` returns. Whatever it raises becomes this complaint: a database's own words may quote a record.

    So may its warnings, which are not shown.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ask()
    except PrivatestError:
        raise
    except Exception as error:
        name = type(error).__name__
    # Raised out here, so that the error does not carry the database's as its context.
    raise InvalidData(f"{complaint} ({name})")


def rows_of_a_unit(most: int | None) -> int:
    """The most rows of one unit that count, 1 unless it is said; so few that ranks times twice as many fit 64 bits."""
    if most is not None and most >= SUMMABLE // 4:
        raise InvalidInput(
            f"max_rows_per_unit={most} must be below {SUMMABLE // 4:,} where a database or Spark ranks the rows. "
            "Give the number of rows that one person may contribute, or leave unit out."
        )
    return most or 1
