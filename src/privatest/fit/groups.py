"""Symbols of equal probability and equal knots, and the window of counts that holds nearly all their mass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from privatest.fit.excess import Excess

__all__ = ["Block", "Groups", "binomial_masses", "poisson_masses", "windows"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# Deviations a window reaches to either side; with the counts added below, what lies beyond has probability under 1e-13.
REACH = 7.5
MOST_ENTRIES = 1 << 20
TABULATED = 1 << 17


@dataclass(frozen=True, eq=False)
class Block:
    """Groups whose windows have one common length: one row for each group, one column for each count.

    Attributes:
        which: positions of the groups.
        sizes: how many symbols are in each.
        q: their probability.
        counts: the counts in the window.
        steps: T's increase when the count rises by one more.
        values: T's part due to one symbol of this count.
    """

    which: npt.NDArray[np.intp]
    sizes: Integers
    q: Floats
    counts: Integers
    steps: Integers
    values: Integers


@dataclass(frozen=True, eq=False)
class Groups:
    """The distinct (probability, knots) pairs of a law q over the symbols of a statistic."""

    q: Floats
    sizes: Integers
    knots: Integers
    weights: Integers
    member: npt.NDArray[np.intp]

    @classmethod
    def of(cls, excess: Excess, q: Floats) -> Groups:
        """Group the symbols; ``member[x]`` is the group of symbol x."""
        # A probability and the number of a row of knots as one complex number, which NumPy can sort.
        keys = q if len(excess.knots) == 1 else q + 1j * excess.row_numbers
        _, first, member, sizes = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        return cls(q[first], sizes.astype(np.int64), excess.rows(first), excess.weights, member.ravel())

    def blocks(self, n: int) -> Iterator[Block]:
        """Windows around n q, groups of similar spread together."""
        for which, counts in windows(self.q, n):
            rows, length = counts.shape
            knots = self.knots[which]
            # How much T's slope rises at each count of the window; knots below it all at its start.
            at = np.clip(knots - counts[:, :1], 0, length) + (length + 1) * np.arange(rows)[:, None]
            weights = np.broadcast_to(self.weights, knots.shape).ravel().astype(np.float64)
            bends = np.bincount(at.ravel(), weights=weights, minlength=rows * (length + 1))
            steps = np.cumsum(bends.reshape(rows, length + 1)[:, :-1], axis=1).astype(np.int64)
            begin = np.maximum(counts[:, :1] - knots, 0) @ self.weights
            values = begin[:, None] + np.cumsum(steps, axis=1) - steps
            yield Block(which, self.sizes[which], self.q[which], counts, steps, values)


def windows(q: Floats, n: int) -> Iterator[tuple[npt.NDArray[np.intp], Integers]]:
    """Positions in q and the counts around n q, one row each, positions of similar spread together."""
    mean = n * q
    spread = REACH * np.sqrt(mean)
    low = np.floor(np.maximum(mean - spread - 2, 0)).astype(np.int64)
    length = np.ceil(mean + spread + 11).astype(np.int64) - low + 1
    length = np.where(q == 0, 1, length)  # a symbol that cannot occur has the count 0 only
    order = np.argsort(length, kind="stable")
    start = 0
    while start < len(order):
        limit = 1.3 * int(length[order[start]]) + 4
        similar = int(np.searchsorted(length[order], limit, side="right"))
        which = order[start : min(similar, start + max(1, int(MOST_ENTRIES / limit)))]
        start += len(which)
        yield which, low[which, None] + np.arange(length[which[-1]])


def poisson_masses(counts: Integers, n: int, q: Floats) -> Floats:
    """Poisson(n q) on each row's window, scaled to sum to 1."""
    return _normalised(np.asarray(special.xlogy(counts, n * q[:, None])) - _log_factorial(counts))


def binomial_masses(counts: Integers, n: int, q: Floats) -> Floats:
    """Binomial(n, q) on each row's window, scaled to sum to 1."""
    rest = np.maximum(n - counts, 0)
    logs = special.xlogy(counts, q[:, None]) + special.xlog1py(rest, -q[:, None])
    return _normalised(np.where(counts <= n, logs - _log_factorial(counts) - _log_factorial(rest), -np.inf))


@lru_cache(maxsize=1)
def _table() -> Floats:
    return np.asarray(special.gammaln(np.arange(1.0, TABULATED + 1)))


def _log_factorial(counts: Integers) -> Floats:
    """log(j!), looked up where j is small enough: five times faster."""
    return np.asarray(_table()[counts] if counts.max() < TABULATED else special.gammaln(counts + 1.0))


def _normalised(logs: Floats) -> Floats:
    """Masses from logarithms; scaling takes away the rounding of the large terms that a row has in common."""
    with np.errstate(under="ignore"):
        masses = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(masses / masses.sum(axis=1, keepdims=True))
