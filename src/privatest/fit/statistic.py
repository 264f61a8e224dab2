r"""The statistic: how far counts exceed given levels, an integer that one record moves by at most its width.

The uniformity statistic of Diakonikolas, Gouleakis, Peebles and Price, as used by Acharya, Sun and Zhang 2018.

.. math:: S = \tfrac12 \sum_x |N_x/m - 1/k|

On integers: with m = q k + r, 0 <= r < k, and sum of N equal to m,

.. math:: m k S = \sum_x (k N_x - m)^+ = (k - r) \sum_x (N_x - q)^+ + r \sum_x (N_x - q - 1)^+ ,

an :class:`Excess` with two knots. For m >= k its width is k, for m < k the first sum is the constant m and
the width is m; so S moves by at most min(m, k)/(m k) = 1/max(m, k).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest.documents import reading
from privatest.errors import InvalidInput
from privatest.numbers import Integers

__all__ = ["Excess", "uniformity"]

LARGEST_TOTAL = 2**63 - 1


@dataclass(frozen=True, eq=False)
class Excess:
    r"""An integer statistic of a histogram N over ``symbols`` symbols.

    .. math:: T(N) = \sum_l w_l \sum_x (N_x - \kappa_{x,l})^+

    With one knot per symbol near its expected count this is the empirical total variation distance; knots spread
    over several counts give a chi-squared statistic whose tails grow linearly. The statistic of Acharya, Sun
    and Zhang (:mod:`privatest.fit.statistic`) is the case of two knots.

    Guarantees: replacing one record moves T by at most ``width``, the sum of the weights (proof.md).

    Attributes:
        knots: one row for each symbol, or a single row that serves all; rows are in increasing order.
        weights: one positive integer for each column.
        symbols: size of the domain.

    >>> Excess(np.array([[1]]), np.array([1]), symbols=3).of(np.array([4, 1, 0]))
    3
    """

    knots: Integers
    weights: Integers
    symbols: int

    def __post_init__(self) -> None:
        rows = self.knots.shape[0] if self.knots.ndim == 2 else -1
        if rows not in (1, self.symbols) or self.weights.shape != self.knots.shape[1:] or not self.weights.size:
            raise InvalidInput(
                "The statistic needs one row of knots, or one for each symbol, and a weight for each knot."
            )
        if np.any(self.weights < 1) or np.any(self.knots < 0):
            raise InvalidInput("The weights of the statistic must be at least 1 and its knots at least 0.")
        for array in (self.knots, self.weights):
            array.setflags(write=False)

    @cached_property
    def width(self) -> int:
        """The most by which replacing one record changes T."""
        return sum(self.weights.tolist())

    def of(self, counts: Integers) -> int:
        """T, exactly."""
        columns = zip(self.weights.tolist(), self.knots.T, strict=True)
        return sum(w * int(np.maximum(counts - knots, 0).sum()) for w, knots in columns)

    def check_total(self, n: int) -> None:
        """Refuse an n at which T could leave 64 bits."""
        if self.width * n > LARGEST_TOTAL:
            raise InvalidInput(
                f"n={n} is too large for a statistic of width {self.width}: it could leave 64 bits. "
                f"Use n of at most {LARGEST_TOTAL // self.width}."
            )

    def rows(self, symbols: npt.NDArray[np.intp]) -> Integers:
        """The knots of these symbols, one row each."""
        return self.knots[np.zeros_like(symbols) if len(self.knots) == 1 else symbols]

    @cached_property
    def row_numbers(self) -> Integers:
        """Symbols with equal knots have equal numbers."""
        if len(self.knots) == 1:
            return np.zeros(self.symbols, dtype=np.int64)
        rows = np.ascontiguousarray(self.knots).view(f"V{8 * self.knots.shape[1]}").ravel()
        return np.unique(rows, return_inverse=True)[1].ravel().astype(np.int64)

    def simplified(self, n: int) -> Excess | None:
        """The same test on n records with the smallest width; None if T would be the same for all data.

        A column of zeros adds the constant n, one of knots at n or above adds nothing; equal columns
        merge; a common factor of the weights divides T, its width and so its noise alike.
        """
        knots = np.minimum(np.sort(self.knots, axis=1), n)
        columns, group = np.unique(knots, axis=1, return_inverse=True)
        weights = np.bincount(group.ravel(), weights=self.weights.astype(np.float64)).astype(np.int64)
        telling = np.any(columns > 0, axis=0) & np.any(columns < n, axis=0)
        if not telling.any():
            return None
        columns, weights = columns[:, telling], weights[telling]
        if len(columns) > 1 and np.all(columns == columns[0]):
            columns = columns[:1]
        return Excess(np.ascontiguousarray(columns), weights // math.gcd(*weights.tolist()), self.symbols)

    def refined(self, width: int) -> Excess:
        """The same T in smaller units, so that its width, and the noise's, is at least ``width``.

        Nothing is gained or lost but the fineness of the threshold.
        """
        return Excess(self.knots, self.weights * -(-width // self.width), self.symbols)

    def to_dict(self) -> dict[str, Any]:
        """A JSON document from which :meth:`from_dict` restores the statistic exactly."""
        return {"knots": self.knots.tolist(), "weights": self.weights.tolist(), "symbols": self.symbols}

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Excess:
        """The statistic that :meth:`to_dict` wrote."""
        with reading("the statistic"):
            return cls(_whole(document["knots"], 2), _whole(document["weights"], 1), int(document["symbols"]))


def _whole(values: list[Any], dimensions: int) -> Integers:
    array = np.array(values)
    if array.ndim != dimensions or array.dtype.kind != "i":
        raise ValueError("knots and weights must be tables of whole numbers")
    return array.astype(np.int64)


def uniformity(symbols: int, n: int) -> Excess:
    """m k S, less a constant and divided by a common factor: the smallest integers that carry S.

    Guarantees: width min(m, k)/gcd(m, k), or 1 when m < k; the sensitivity of S is exactly 1/max(m, k).
    """
    q, r = divmod(n, symbols)
    pairs = [(q, symbols - r), (q + 1, r)] if r else [(q, symbols)]
    knots = np.array([[knot for knot, _ in pairs]], dtype=np.int64)
    weights = np.array([weight for _, weight in pairs], dtype=np.int64)
    found = Excess(knots, weights, symbols).simplified(n)
    # Only m = 1 leaves nothing: one record has the same histogram up to the names of the symbols.
    return found if found is not None else Excess(np.array([[1]], dtype=np.int64), np.array([1]), symbols)
