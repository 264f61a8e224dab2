r"""Data sets up to order: classes of labels with one likelihood ratio, and the histograms of n records over them.

Two reductions lose nothing, neither for the best private test nor for the distance between P^n and Q^n:

- *Labels with the same ratio are one class.* Given its class, a record's label has the same law under P and
  under Q. A test may therefore draw the labels itself from the classes (a channel applied record by record,
  which turns neighbours into neighbours, so privacy and error rates stay), and a coupling of the
  classes extends to the labels without new differences (equal classes get equal labels).
- *Data sets that are permutations of one another are one histogram.* P^n and Q^n do not see the order: averaging a test
  over all orders keeps its error rates and its privacy. Histograms h and h' have orderings that differ in
  exactly :math:`\|h - h'\|_1 / 2` places, the least possible; so that is their distance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from privatest.errors import InvalidInput, PrivatestError
from privatest.hypotheses import DiscretePair, Pair
from privatest.numbers import Floats, Integers

__all__ = ["Classes", "Histograms", "merge", "solved_program"]


ATTEMPTS: tuple[tuple[Literal["highs-ds", "highs-ipm"], float], ...] = (
    ("highs-ds", 1e-10),
    ("highs-ds", 1e-9),
    ("highs-ipm", 1e-9),
    ("highs-ds", 1e-7),
)
"""How linear programs are solved, and how if that fails."""
SAME_RATIO = 1e-13
"""Ratios within this of one another (relative, or absolute near 0) differ by rounding only."""


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a finite domain, in increasing order of the ratio.

    Attributes:
        p, q: mass of each class under P and under Q.
        ratios: log p/q.
        members: the class of each atom of the pair; an atom that neither hypothesis visits has the class
            whose ratio is nearest to 0.
    """

    p: Floats
    q: Floats
    ratios: Floats
    members: Integers

    @property
    def count(self) -> int:
        """How many classes there are."""
        return len(self.p)

    @cached_property
    def odd(self) -> int:
        """The class of a record that makes no sense: the one whose ratio is nearest to 0."""
        return int(np.argmin(np.abs(self.ratios)))


def merge(pair: Pair, remedy: str = "") -> Classes:
    """The classes of a pair on a finite domain.

    >>> from privatest.hypotheses import make_pair
    >>> merge(make_pair([0.2, 0.1, 0.7], [0.4, 0.2, 0.4])).p.round(12).tolist()
    [0.3, 0.7]
    """
    if not isinstance(pair, DiscretePair) or (pair.kind == "integers" and _endless(pair)):
        raise InvalidInput(f"{pair!r} is not on a finite domain: histograms need one. {remedy}".rstrip())
    visited = (pair.p > 0) | (pair.q > 0)
    order = np.flatnonzero(visited)[np.argsort(pair.ratios[visited], kind="stable")]
    ratios = pair.ratios[order]
    with np.errstate(invalid="ignore"):
        gaps = np.diff(ratios)
    gaps[np.isnan(gaps)] = 0.0  # two infinities of one sign
    starts = np.append(True, gaps > SAME_RATIO * np.maximum(1.0, np.minimum(np.abs(ratios[1:]), 1e300)))
    number = np.cumsum(starts) - 1
    p, q = (np.bincount(number, weights=mass[order]) for mass in (pair.p, pair.q))
    classes = Classes(p / math.fsum(p), q / math.fsum(q), ratios[starts], np.zeros(len(pair.p), dtype=np.int64))
    classes.members[:] = classes.odd
    classes.members[order] = number
    return classes


def _endless(pair: DiscretePair) -> bool:
    extremes = np.iinfo(np.int64)
    return bool(pair.first[0] == extremes.min or pair.last[-1] == extremes.max)


@dataclass(frozen=True)
class Histograms:
    """All ways to put n records into a number of classes, in lexicographic order.

    >>> Histograms(classes=2, n=2).table.tolist()
    [[0, 2], [1, 1], [2, 0]]
    """

    classes: int
    n: int

    @property
    def count(self) -> int:
        """How many histograms there are: C(n + classes - 1, classes - 1)."""
        return math.comb(self.n + self.classes - 1, self.classes - 1)

    @cached_property
    def table(self) -> Integers:
        """One row a histogram."""
        table, left = np.zeros((1, 0), dtype=np.int64), np.array([self.n], dtype=np.int64)
        for _ in range(self.classes - 1):
            rows = np.repeat(np.arange(len(left)), left + 1)
            ends = np.cumsum(left + 1)
            value = np.arange(ends[-1]) - np.repeat(ends - left - 1, left + 1)
            table = np.column_stack([table[rows], value])
            left = left[rows] - value
        return np.column_stack([table, left])

    def rank(self, table: Integers) -> Integers:
        """The place of each row: for each class, how many histograms agree before it and have fewer there."""
        rest = np.full(len(table), self.n, dtype=np.int64)
        rank = np.zeros(len(table), dtype=np.int64)
        for place in range(self.classes - 1):
            parts = self.classes - 1 - place
            choose = np.array([math.comb(left + parts, parts) for left in range(self.n + 1)], dtype=np.int64)
            after = rest - table[:, place]
            rank += choose[rest] - choose[after]
            rest = after
        return rank

    @cached_property
    def rows(self) -> Integers:
        """Ranks of r + e_1, ..., r + e_classes for each histogram r of n - 1 records.

        Histograms in one row are neighbours of one another, and every pair of neighbours shares a row.
        """
        others = Histograms(self.classes, self.n - 1).table
        columns = []
        for place in range(self.classes):
            more = others.copy()
            more[:, place] += 1
            columns.append(self.rank(more))
        return np.column_stack(columns)

    def law(self, p: Floats) -> Floats:
        """Probability of each histogram when records have law p: a chain of binomials, each accurate."""
        from scipy import stats

        law = np.ones(self.count)
        left = np.full(self.count, self.n, dtype=np.int64)
        tail = 1.0
        for place in range(self.classes - 1):
            share = min(max(p[place] / tail, 0.0), 1.0) if tail > 0 else 0.0
            law *= stats.binom.pmf(self.table[:, place], left, share)
            left = left - self.table[:, place]
            tail = math.fsum(p[place + 1 :])
        return law


def solved_program(gain: Floats, matrix: Any, limit: Floats) -> tuple[Floats, float]:
    """g in [0, 1] with A g <= b and gain.g as large as can be, and a bound that no such g exceeds.

    Guarantees: the bound holds whatever the solver's accuracy, by weak duality: for any y >= 0, gain.g is at most b.y +
    the sum of the positive parts of gain - A'y. g itself may break its constraints by about the tolerance. Where the
    solver gives up at a small tolerance (HiGHS has states of its own for that), larger ones are tried.
    """
    from scipy import optimize

    message = ""
    for method, tolerance in ATTEMPTS:
        found = optimize.linprog(
            -gain,
            A_ub=matrix,
            b_ub=limit,
            bounds=(0, 1),
            method=method,
            options={"primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance},
        )
        if found.x is not None and found.status == 0:
            y = np.maximum(-found.ineqlin.marginals, 0.0)
            bound = float(limit @ y + np.maximum(gain - matrix.T @ y, 0.0).sum())
            return np.clip(found.x, 0.0, 1.0), bound
        message = str(found.message)
    raise PrivatestError(f"The linear program of {len(gain)} variables was not solved: {message} Use a smaller n.")
