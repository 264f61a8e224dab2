"""How many records a source has: the public n that a test is designed for."""

from __future__ import annotations

from typing import Any

from privatest.engines.sources import open_source

__all__ = ["count_records"]


def count_records(source: Any, **where: Any) -> int:
    """The number of records that a test on this source sees.

    ``where`` says where they lie, as for ``run``: ``column``, ``unit``, ``max_rows_per_unit``, ``order``. With a unit
    the rows that the cut keeps are counted.

    >>> count_records([0.5, None, 2.0])
    3
    """
    return open_source(source, **where).count()
