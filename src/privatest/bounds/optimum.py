r"""The best epsilon-DP test of all on a finite domain, exactly private and runnable.

A test is its probability g(h) of "null" for each histogram h of the records (``theory/histograms.py`` shows that
classes of labels and histograms lose nothing). The best one solves

.. math:: \max_g \sum_h (P^n(h) - Q^n(h))\, g(h), \quad
          g(h) \le e^\varepsilon g(h'), \quad 1 - g(h') \le e^\varepsilon (1 - g(h))

over all neighbours h, h'. One of the best is *monotone*: moving a record to a class of larger ratio never lowers g.
For split the classes into slivers of equal Q-mass, ordered by ratio, and sort g along one record after the other. Under
Q the mean of g stays, under P it can only grow; sorting keeps every inequality between neighbours, for both sides are
sorted alike; and averaging over the slivers of each class makes a monotone test on the classes again. With
the monotone inequalities added, of each set of mutual neighbours r + e_1, ..., r + e_k only the outermost two need the
privacy inequalities: k + 1 inequalities for each r instead of 2k(k - 1), which HiGHS solves many times faster.
(Where Q has no mass but P has, the class has infinite ratio and is the top of the order already.)

Two classes need no program: ``bounds/two_point.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest import _validate
from privatest.bounds.histogram_test import DENOMINATOR, HistogramTest
from privatest.bounds.lower_bound import lower_bound
from privatest.bounds.two_point import TwoPoint
from privatest.errors import InvalidInput
from privatest.hypotheses import make_pair
from privatest.markup import Fact, Told
from privatest.rational import Number, exp_below
from privatest.theory.histograms import Classes, Histograms, merge, solved_program
from privatest.vectors import Floats, Integers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MOST_VARIABLES", "Optimum", "optimum", "optimum_sample_size"]


MOST_VARIABLES = 100_000
"""A program of this size takes a quarter of a minute to a minute."""
LONGEST_TABLE = 20_000_000
"""For two classes: a table of n + 1 probabilities that still fits comfortably into memory."""
_ELSEWHERE = "Use lower_bound() for what no private test can beat, and design() for one that comes close."


@dataclass(frozen=True)
class Optimum(Told):
    """The best epsilon-DP test, repaired to exact privacy, and how far from the best that leaves it.

    Attributes:
        test: runnable like any other.
        advantage: of this very test, exact to 1e-12.
        bound: no epsilon-DP test on n records has a larger advantage (from the dual program).
        n, epsilon: what it was asked for.
        method: "closed form" (two classes of labels) or "linear program".
    """

    test: HistogramTest
    advantage: float
    bound: float
    n: int
    epsilon: float
    method: str

    @property
    def gap(self) -> float:
        """What rounding and repair cost: bound - advantage."""
        return self.bound - self.advantage

    @property
    def title(self) -> str:
        """What this is."""
        return f"The best private test of {self.test.null} against {self.test.alternative}"

    def facts(self) -> list[Fact]:
        """The test's, and how far they are from the best possible."""
        return [
            *self.test.facts(),
            Fact("bound", self.bound, "no private test has a larger advantage"),
            Fact("gap", self.gap, "what rounding and repair cost: bound - advantage"),
            Fact("method", self.method),
        ]

    def plot(self, ax: Axes | None = None) -> Axes:
        """That of :attr:`test`."""
        return self.test.plot(ax)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; the test itself is ``test.to_dict()``."""
        return self.values()

    def __repr__(self) -> str:
        return (
            f"Optimum(advantage={self.advantage:.9f}, n={self.n}, epsilon={self.epsilon:g}, "
            f"method={self.method!r}, gap={max(self.gap, 0.0):.1e})"
        )


def optimum(null: Any, alternative: Any, *, epsilon: Number, n: int) -> Optimum:
    """The best epsilon-DP test of P against Q on n records; finite domains only.

    >>> optimum([0.6, 0.4], [0.4, 0.6], epsilon=1, n=29)
    Optimum(advantage=0.677428013, n=29, epsilon=1, method='closed form', gap=...)
    """
    budget = _validate.positive(epsilon=epsilon, remedy="Typical values lie between 0.1 and 2.")
    n = _validate.positive_integer(n=n)
    pair = make_pair(null, alternative)
    classes = merge(pair, _ELSEWHERE)
    if classes.count == 2:
        _refuse(n + 1, LONGEST_TABLE, f"n={n} records of two classes need a table of {n + 1} probabilities")
        bound, threshold = _two_points(classes, float(budget), n).best()
        numerators, method = _staircase(n, threshold, exp_below(budget)), "closed form"
    else:
        found, bound = _solve(classes, float(budget), n)
        numerators, method = _repaired(found, Histograms(classes.count, n), exp_below(budget)), "linear program"
    test = HistogramTest.of_pair(pair, classes, numerators, budget, n, "optimum")
    return Optimum(test, test.advantage, bound, n, float(budget), method)


def optimum_sample_size(null: Any, alternative: Any, *, epsilon: Number, advantage: float = 2 / 3) -> int:
    """The smallest n at which some epsilon-DP test has the advantage (more records never hurt the best test).

    >>> optimum_sample_size([0.6, 0.4], [0.4, 0.6], epsilon=1)
    29
    """
    budget = _validate.positive(epsilon=epsilon, remedy="Typical values lie between 0.1 and 2.")
    target = _validate.probability(advantage=advantage)
    pair = make_pair(null, alternative)
    classes = merge(pair, _ELSEWHERE)
    first = lower_bound(pair.null, pair.alternative, epsilon=budget, advantage=target)
    if classes.count == 2:  # the bound is exact there
        return first

    def reaches(n: int) -> bool:
        return _solve(classes, float(budget), n)[1] >= target

    return _smallest(reaches, first)


def _smallest(reaches: Callable[[int], bool], first: int) -> int:
    """The smallest n >= first that reaches. Invariant: not reached at low, reached at high."""
    low, step = first - 1, 1
    while not reaches(low + step):
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def _two_points(classes: Classes, epsilon: float, n: int) -> TwoPoint:
    return TwoPoint(n, float(classes.p[1]), float(classes.q[1]), epsilon)


def _staircase(n: int, threshold: int, factor: Fraction) -> Integers:
    """Pr[N + G > threshold] for N = n, ..., 0 records of the second class, rounded so that it stays private.

    From the middle step outwards each number (g below the threshold, 1 - g above) is the last one over E, rounded up.
    """
    top, bottom = factor.numerator, factor.denominator
    stairs = [-(-DENOMINATOR * bottom // (top + bottom))]  # 1/(1 + E)
    while len(stairs) <= max(n - threshold, threshold):
        smaller = -(-stairs[-1] * bottom // top)
        if smaller == stairs[-1]:  # the smallest private number stays
            break
        stairs.append(smaller)
    away = np.arange(n, -1, -1) - threshold  # N - threshold
    value = np.array(stairs, dtype=np.int64)[np.minimum(np.where(away > 0, away - 1, -away), len(stairs) - 1)]
    return np.where(away > 0, DENOMINATOR - value, value)


def _refuse(size: int, most: int, what: str) -> None:
    if size > most:
        raise InvalidInput(f"{what}; at most {most} are handled. {_ELSEWHERE}")


def _solve(classes: Classes, epsilon: float, n: int) -> tuple[Floats, float]:
    """An optimal g up to the solver's tolerance, and an upper bound on the advantage of every private test."""
    k = classes.count
    rows = math.comb(n + k - 2, k - 1)
    _refuse(
        Histograms(k, n).count,
        MOST_VARIABLES,
        f"n={n} records of {k} classes need a linear program of {Histograms(k, n).count} variables and "
        f"{(k + 1) * rows} constraints",
    )
    histograms = Histograms(k, n)
    gain = histograms.law(classes.p) - histograms.law(classes.q)
    matrix, limit = _constraints(histograms, math.exp(min(epsilon, 300.0)))
    return solved_program(gain, matrix, limit)


def _constraints(histograms: Histograms, factor: float) -> tuple[Any, Floats]:
    """A and b of A g <= b: g rises with the class, and its outermost two values in a row are private."""
    from scipy import sparse

    rows = histograms.rows
    low, high = rows[:, 0], rows[:, -1]
    blocks = [(rows[:, i], 1.0, rows[:, i + 1], -1.0, 0.0) for i in range(histograms.classes - 1)]
    blocks += [(high, 1.0, low, -factor, 0.0), (high, factor, low, -1.0, factor - 1.0)]
    # A row of large entries is divided by the factor: the same inequality, better scaled.
    index = np.arange(len(rows))
    lines = [np.tile(index + i * len(rows), 2) for i in range(len(blocks))]
    columns = [np.concatenate([left, right]) for left, _, right, _, _ in blocks]
    entries = [np.repeat([a / max(abs(a), abs(b)), b / max(abs(a), abs(b))], len(rows)) for _, a, _, b, _ in blocks]
    limit = np.repeat([c / max(abs(a), abs(b)) for _, a, _, b, c in blocks], len(rows))
    shape = (len(blocks) * len(rows), histograms.count)
    parts = (np.concatenate(entries), (np.concatenate(lines), np.concatenate(columns)))
    return sparse.csr_matrix(parts, shape=shape), limit


def _repaired(found: Floats, histograms: Histograms, factor: Fraction) -> Integers:
    """A feasible g next to a nearly feasible one, in units of 1/DENOMINATOR.

    Shrinking towards 1/2 by a share s leaves of a violation v at most (1 - s) v - s (E - 1)/2. So with v the largest
    violation, rounding included, s = 2v/(E - 1 + 2v) is enough.
    """
    among = found[histograms.rows]
    low, high = among.min(axis=1), among.max(axis=1)
    e = float(min(factor, Fraction(10**30)))  # more would overflow one day, and changes nothing
    violation = max(float(np.max(high - e * low)), float(np.max(e * high - low)) - (e - 1), 0.0)
    # Rounding to the lattice and the doubles above move each side by at most this.
    violation += (1 + e) * (1.0 / DENOMINATOR + 4e-16)
    share = 2 * violation / (e - 1 + 2 * violation)
    shrunk = (1 - share) * found + share / 2
    return np.rint(shrunk * DENOMINATOR).astype(np.int64)
