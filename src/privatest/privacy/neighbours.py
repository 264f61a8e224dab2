"""Which data sets a test must not tell apart, and how far apart their totals can be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from privatest import _validate
from privatest.scores import Score

__all__ = ["NEIGHBOURS", "REPLACE", "Neighbourhood", "make_neighbourhood"]

NEIGHBOURS = ("replace", "add-remove")


@dataclass(frozen=True)
class Neighbourhood:
    """One person's rows, up to ``rows`` of them, replaced by as many others, or added or removed.

    Attributes:
        kind: "replace" (the number of records is public) or "add-remove" (it is not).
        rows: the most rows that one person has in the data, or that are used of them.
    """

    kind: str = "replace"
    rows: int = 1

    def reach(self, score: Score, scale: int = 1, shift: int = 0) -> int:
        """The most by which the sum of ``scale s - shift`` differs between neighbours."""
        low, high = scale * score.low - shift, scale * score.high - shift
        return self.rows * (high - low if self.kind == "replace" else max(abs(low), abs(high)))

    def extent(self, low: float, high: float, centre: float) -> float:
        """The same for any two ends, shifted by the centre where records come and go."""
        return self.rows * (high - low if self.kind == "replace" else max(high - centre, centre - low))

    def units(self, score: Score, centre: Fraction) -> int:
        """:meth:`extent` of a score's range, rounded up to the score's lattice."""
        return self.rows * math.ceil(max(score.high - centre, centre - score.low))


REPLACE = Neighbourhood()


def make_neighbourhood(neighbours: str, max_rows_per_unit: int) -> Neighbourhood:
    """The neighbourhood a user asks for."""
    _validate.choice(NEIGHBOURS, neighbours=neighbours)
    return Neighbourhood(neighbours, _validate.positive_integer(max_rows_per_unit=max_rows_per_unit))
