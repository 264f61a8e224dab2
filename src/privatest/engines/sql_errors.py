"""What goes wrong where data lie elsewhere, in words of our own; and how large a sum there may be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from privatest.errors import InvalidData, PrivatestError

__all__ = ["SUMMABLE", "asking", "tied", "unordered"]

# Sums of 2^41 such scores stay within 64 bits. Larger scores are counted, and summed here in Python's integers.
SUMMABLE = 1 << 22


@contextmanager
def asking(complaint: str) -> Iterator[None]:
    """Whatever a database raises becomes this complaint: its own words may hold what a record holds."""
    try:
        yield
    except PrivatestError:
        raise
    except Exception as error:
        raise InvalidData(f"{complaint} ({type(error).__name__})") from None


def tied(order: str | None) -> InvalidData:
    """The error for blocks whose ends are not settled."""
    return InvalidData(
        f"Column {order!r} does not order the records: equal values lie on both sides of a block's end. "
        "Order by a column without ties."
    )


def unordered() -> InvalidData:
    """The error for a series of rows that lie in no order."""
    return InvalidData("The rows of a database lie in no order. Name the column that gives it: order=...")
