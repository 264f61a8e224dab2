"""A score that is a clipped line, in the words that DuckDB is quickest at.

A CASE with three branches costs DuckDB four times its ``sum(x)``, and ``least`` with ``greatest`` no less. Two absolute
values clip without a branch: |c - L| - |c - H| = 2 clip(c, L, H) - (L + H). All of it in whole numbers, so exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from privatest.engines.sql_errors import SUMMABLE
from privatest.engines.sql_language import IbisLanguage
from privatest.scores import DyadicCells, Score

__all__ = ["FoldedLine", "folded_line"]

# Records far below count so much, those far above 1: one sum tells both numbers, up to 2^40 records each.
BELOW = 1 << 40


@dataclass(frozen=True)
class FoldedLine:
    """The sums to ask for, and how the total follows from them."""

    sums: dict[str, Any]
    score: Score
    first: int
    low: int
    high: int

    def total(self, count: int, finite: int, folded: int, far: int) -> int:
        """The total of ``count`` records: the finite ones, of which the far ones come in two counts, and odd ones."""
        assert self.score.line is not None
        sign, offset = self.score.line
        below, above = divmod(far, BELOW)
        near = finite - above - below
        clipped = (folded + near * (self.low + self.high)) // 2 + above * self.high + below * self.low
        return sign * (clipped - finite * self.first) + finite * offset + (count - finite) * self.score.odd_score


def folded_line(score: Score, column: Any, language: IbisLanguage) -> FoldedLine | None:
    """The sums for a score that is a line over the whole of the reals; None for other scores."""
    cells, ibis = score.cells, language.ibis
    if not isinstance(cells, DyadicCells) or score.line is None or min(-cells.low, cells.high) < math.inf:
        return None
    sign, offset = score.line
    ends = sorted(sign * (bound - offset) for bound in (score.low, score.high))
    low, high = (cells.first + min(max(end, 0), cells.size - 1) for end in ends)
    # The floor in a short integer, the difference in one of twice the length: that cannot overflow.
    short, long = ("int16", "int32") if max(abs(low), abs(high)) < 1 << 15 else ("int32", "int64")
    if max(abs(low), abs(high)) >= 1 << 31 or high - low >= SUMMABLE:
        return None

    @ibis.udf.scalar.builtin(signature=(("float64",), "float64"))
    def floor(x):  # type: ignore[no-untyped-def]
        ...

    x = language.double(column)
    # NULL where the floor is too large for the short integer, and for NULL, NaN and infinities. DuckDB may take it for
    # never NULL, from a file's minimum and maximum, which know no NaN: so the finite ones are counted by themselves.
    cell = floor(x * language.number(cells.factor)).try_cast(short).cast(long)
    folded = (cell - ibis.literal(low, type=long)).abs() - (cell - ibis.literal(high, type=long)).abs()
    far = cell.isnull() & language.finite(x)
    return FoldedLine(
        {
            "finite": language.finite(x).sum(),
            "folded": folded.sum().cast("int64"),
            "far": ibis.cases((far, ibis.ifelse(x > 0, 1, BELOW))).sum(),
        },
        score,
        cells.first,
        low,
        high,
    )
