"""Scores of an ordered column, record by record or block by block: what change points are found from.

Like the totals, these integers are raw: they must not leave the process except through a private mechanism.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from privatest._validate import positive_integer
from privatest.engines.protocol import NO_ENDS, Need, Records, check_promise
from privatest.engines.sources import open_source
from privatest.errors import InvalidData, InvalidInput
from privatest.scores import Score

__all__ = ["as_records", "block_totals", "open_for", "score_series"]

Integers = npt.NDArray[np.int64]


def open_for(
    need: Need, source: Any, *, column: str | None = None, unit: str | None = None, order: str | None = None
) -> Records:
    """The records of a source for a mechanism: they promise what it needs, or are refused.

    Every mechanism gets its records here. With ``unit`` they are cut to the rows that it needs; records that are open
    already keep what they were opened with.
    """
    if need.ordered and isinstance(source, (set, frozenset)):
        raise _no_order()
    most = None if unit is None else need.rows
    records = open_source(source, column=column, unit=unit, max_rows_per_unit=most, order=order)
    check_promise(records.promise, need)
    return records


def score_series(
    score: Score,
    source: Any,
    column: str | None = None,
    *,
    order: str | None = None,
    ends: range = NO_ENDS,
) -> Integers:
    """The integer score of each record, in the order of the source or of the column ``order``.

    Refuses an order with equal values on both sides of one of the ``ends``, where the series is to be cut.

    Guarantees: an odd record gets the odd score; no sum of any of the scores leaves 64 bits (checked).
    """
    records = as_records(source, column, order)
    records.check(score)
    score.check_total(max(records.count(), 1))
    return records.series(score, ends)


def block_totals(
    score: Score, source: Any, block: int, column: str | None = None, *, order: str | None = None, start: int = 0
) -> list[int]:
    """Totals of consecutive blocks of ``block`` records, from record ``start`` on; what is left over is not used.

    Guarantees: the same scores as :func:`score_series`, summed exactly (checked against 64 bits).
    """
    block = positive_integer(block=block)
    if start < 0:
        raise InvalidInput(f"start={start} must be at least 0.")
    records = as_records(source, column, order)
    records.check(score)
    score.check_total(block)
    return records.block_totals(score, block, start)


def as_records(source: Any, column: str | None = None, order: str | None = None) -> Records:
    """The records of a source in the order of time, for sums that stay raw; open records are taken as they are."""
    if isinstance(source, Records):
        return source
    if isinstance(source, (set, frozenset)):
        raise _no_order()
    return open_source(source, column=column, order=order)


def _no_order() -> InvalidData:
    return InvalidData("The data are a set, which has no order. Pass a list, an array or a column in order of time.")
