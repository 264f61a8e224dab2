"""A score that is a clipped line, in the words that DuckDB is quickest at.

A CASE with three branches costs DuckDB four times its ``sum(x)``, and ``least`` with ``greatest`` no less. Two absolute
values clip without a branch: |c - L| - |c - H| = 2 clip(c, L, H) - (L + H). All of it in whole numbers, so exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privatest.engines.expression import LARGEST
from privatest.engines.sql_errors import SUMMABLE
from privatest.scores import DyadicCells, Score

__all__ = ["FoldedLine", "folded_line"]

# Where c is too large for 32 bits it may as well be this.
FAR = 1 << 30


@dataclass(frozen=True)
class FoldedLine:
    """The sums to ask for, and how the total follows from them."""

    sums: dict[str, Any]
    score: Score
    first: int
    low: int
    high: int

    def total(self, count: int, known: int, folded: int) -> int:
        """The total of ``count`` records, of which ``known`` are not odd."""
        assert self.score.line is not None
        sign, offset = self.score.line
        clipped = (folded + known * (self.low + self.high)) // 2
        return sign * (clipped - known * self.first) + known * offset + (count - known) * self.score.odd_score


def folded_line(score: Score, x: Any, ibis: Any) -> FoldedLine | None:
    """The sums for a score that is a line over the whole of the reals; None for other scores."""
    cells = score.cells
    if (
        not isinstance(cells, DyadicCells)
        or score.line is None
        or (cells.low, cells.high) != (-float("inf"), float("inf"))
    ):
        return None
    sign, offset = score.line
    ends = sorted(sign * (bound - offset) for bound in (score.low, score.high))
    low, high = (cells.first + min(max(end, 0), cells.size - 1) for end in ends)
    if max(abs(low), abs(high)) >= FAR or high - low >= SUMMABLE:
        return None

    @ibis.udf.scalar.builtin(signature=(("float64",), "float64"))
    def floor(x):  # type: ignore[no-untyped-def]
        ...

    # NULL where the floor has no 32 bits; COALESCE looks at its second argument for those alone.
    near = floor(x * ibis.literal(repr(cells.factor)).cast("float64")).try_cast("int32")
    largest = ibis.literal(repr(LARGEST)).cast("float64")
    far = ibis.cases(((x > 0) & (x <= largest), FAR), ((x < 0) & (x >= -largest), -FAR), else_=ibis.null("int32"))
    cell = ibis.coalesce(near, far.cast("int32")).cast("int64")
    folded = (cell - low).abs() - (cell - high).abs()
    return FoldedLine({"known": cell.count(), "folded": folded.sum().cast("int64")}, score, cells.first, low, high)
