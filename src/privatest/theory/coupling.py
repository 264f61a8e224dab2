r"""Couplings of P^n and Q^n: the paper's, whose Hamming distance bounds private tests, and the cheapest (Wasserstein).

**The paper's coupling.** Every record belongs to the core with probability 1 - tau and to the tails with probability
tau. The tails are drawn independently (X from P'', Y from Q''); the m records of the core are coupled as a whole, so
that X = Y as often as possible:

.. math:: \Pr[X = Y = x] = \min\{P'^m(x), Q'^m(x)\}, \qquad
          \Pr[X = x, Y = y] = \frac{(P'^m - Q'^m)_+(x)\,(Q'^m - P'^m)_+(y)}{TV(P'^m, Q'^m)} \quad (x \ne y).

X has law P^n and Y law Q^n (CKMSU19, proof of the lower bound, section 3; only the core and the tails enter, so
swapped roles need no special case). For an epsilon-DP test g, changing d records one after the other gives
g(x) - g(y) <= :func:`largest_gain` (d), so that the advantage is at most the mean of that over the coupling.

**The Wasserstein distance** under min(eps d_H, 1), on finite domains, with its dual function:

.. math:: W = \min_{\text{couplings}} E \min\{\varepsilon\, d_H(X, Y), 1\}
            = \max_f \{E_P f - E_Q f : 0 \le f \le 1,\ |f(x) - f(y)| \le \varepsilon \text{ for neighbours}\}.

The two sides are equal by Kantorovich's duality: the metric is the least of 1 and eps times the distance in the
graph of neighbours, so being 1-Lipschitz means moving by at most eps along an edge and by at most 1 overall. Saying P
with probability (1 + f)/4 is eps-DP and has advantage exactly W/4; no eps-DP test has more than W (CKMSU19, section 3
and appendix E). The paper takes f up to 2; as f needs to reach only 1, (1 + f)/3 is private too, for W/3.

**Data sets as histograms** of classes (:class:`Classes`, :class:`Histograms`). Two reductions lose nothing, neither
for this distance nor for the best private test (``bounds/optimum.py``):

- *Labels with the same ratio form one class.* Given its class, a record's label has the same law under P and
  under Q. A test may therefore draw the labels itself from the classes (a channel applied record by record
  turns neighbours into neighbours, which preserves privacy and error rates), and a coupling of the
  classes extends to the labels without new differences (equal classes get equal labels).
- *Data sets that are permutations of one another have one histogram.* P^n and Q^n do not depend on the order: averaging
  a test over all orders preserves its error rates and its privacy. Histograms h and h' have orderings that differ in
  exactly :math:`\|h - h'\|_1 / 2` places, the least possible, so that is their distance.

Some optimal f increases with the class, by the sorting argument of ``bounds/optimum.py``; so one inequality for the
outermost two of each set of mutual neighbours is enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from privatest import numbers
from privatest.errors import InvalidInput, PrivatestError, shown
from privatest.hypotheses import DiscretePair, Pair, make_pair
from privatest.numbers import Floats, Integers, Number
from privatest.theory.decomposition import Decomposition, decompose_pair

BATCH = 1 << 14
"""Number of records that rejection sampling draws at a time."""


def largest_gain(distance: npt.ArrayLike, epsilon: float) -> Floats:
    r"""Return the most by which an epsilon-DP test's probability of "null" can differ at Hamming distance d.

    .. math:: 1 - e^{-\varepsilon d/2} \ (d \text{ even}), \qquad
              1 - \frac{2 e^{-\varepsilon (d-1)/2}}{1 + e^\varepsilon} \ (d \text{ odd})

    Along a path of neighbours a probability g can rise to at most min(e^eps g, 1 - e^-eps (1 - g)), a concave
    function; so over d steps the rise is largest when it is symmetric about 1/2. Smaller than tanh(eps d/2),
    which looks at the two ends of the path only, as soon as d > 1; equal to it at d = 1.

    Args:
        distance: numbers of records in which two data sets differ.
        epsilon: privacy loss.

    >>> largest_gain([0, 1, 2], 1.0).round(6).tolist(), round(math.tanh(0.5), 6), round(math.tanh(1.0), 6)
    ([0.0, 0.462117, 0.632121], 0.462117, 0.761594)
    """
    d = np.asarray(distance, dtype=np.float64)
    pairs = np.floor(d / 2)
    with np.errstate(under="ignore"):
        rest = np.exp(-epsilon * pairs) * np.where(d % 2 == 1, 2.0 / (1.0 + math.exp(min(epsilon, 700.0))), 1.0)
    return 1.0 - rest


@dataclass(frozen=True)
class Coupling:
    """The joint law of n records X from P and n records Y from Q.

    Attributes:
        split: the decomposition of P and Q.
        n: number of records on each side.
    """

    split: Decomposition
    n: int

    def draw(self, rng: np.random.Generator) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Draw one pair (X, Y).

        Args:
            rng: a seeded generator.
        """
        X, Y = self.sample(rng, 1)
        return X[0], Y[0]

    def sample(self, rng: np.random.Generator, size: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Draw pairs, one to a row. X is accepted as Y with probability min(1, Q'^m(X)/P'^m(X)).

        Args:
            rng: a seeded generator.
            size: number of pairs.
        """
        if not isinstance(rng, np.random.Generator):
            raise InvalidInput(f"rng={shown(rng)} must be a Generator: pass numpy.random.default_rng(seed).")
        tail = rng.random((size, self.n)) < self.split.tau
        X, Y = (np.empty((size, self.n), dtype=self._dtype) for _ in range(2))
        if tail.any():
            assert self.split.tails is not None
            count = int(tail.sum())
            X[tail] = self.split.tails.null.sample(rng, count)
            Y[tail] = self.split.tails.alternative.sample(rng, count)
        if not tail.all():
            assert self.split.core is not None
            X[~tail] = self.split.core.null.sample(rng, int((~tail).sum()))
            Y[~tail] = X[~tail]
            ratio = self._core_ratio(self.split.core, X, ~tail)
            with np.errstate(over="ignore", under="ignore"):
                refused = np.flatnonzero(rng.random(size) >= np.exp(np.minimum(-ratio, 0.0)))
            self._redraw(self.split.core, rng, Y, ~tail, refused)
        return X, Y

    @property
    def _dtype(self) -> npt.DTypeLike:
        return {"labels": object, "integers": np.int64, "reals": np.float64}[self.split.pair.kind]

    def _core_ratio(self, core: Pair, X: npt.NDArray[Any], there: npt.NDArray[np.bool_]) -> Floats:
        """Sum of the core's log ratios in each row."""
        ratios = np.zeros(X.shape)
        ratios[there] = core.ratio(X[there])
        total: Floats = ratios.sum(axis=1)
        return total

    def _redraw(
        self,
        core: Pair,
        rng: np.random.Generator,
        Y: npt.NDArray[Any],
        there: npt.NDArray[np.bool_],
        rows: npt.NDArray[np.intp],
    ) -> None:
        """Draw the core of these rows of Y from (Q'^m - P'^m)_+, normalised, by rejection from Q'^m.

        A try succeeds with probability TV(P'^m, Q'^m), the share of the rows that need one: one try a pair on average.
        """
        # Invariant: the rows that are not pending hold their draw; refused tries leave no trace.
        pending = rows
        while len(pending):
            tries = max(BATCH // (len(pending) * self.n), 1)
            wanted = np.repeat(there[pending], tries, axis=0)
            candidates = np.empty(wanted.shape, dtype=self._dtype)
            candidates[wanted] = core.alternative.sample(rng, int(wanted.sum()))
            ratio = self._core_ratio(core, candidates, wanted)
            accepted = rng.random(len(ratio)) < -np.expm1(np.minimum(ratio, 0.0))
            accepted = accepted.reshape(len(pending), tries)
            done = accepted.any(axis=1)
            first = np.arange(len(pending)) * tries + accepted.argmax(axis=1)
            for row, candidate in zip(pending[done], first[done], strict=True):
                Y[row, there[row]] = candidates[candidate, there[row]]
            pending = pending[~done]

    def expected(self, gain: Floats, core_variation: Floats) -> float:
        r"""Return an upper bound on the mean of rho(distance), for a non-decreasing function rho.

        .. math:: \sum_k \mathrm{Bin}(k; n, \tau) [\rho(k) + (\rho(n) - \rho(k))\, TV(P'^{n-k}, Q'^{n-k})]

        Args:
            gain: rho(0), ..., rho(n).
            core_variation: TV(P'^m, Q'^m) for m = 0, ..., n, or upper bounds.
        """
        from scipy import stats

        k = np.arange(self.n + 1)
        law = stats.binom.pmf(k, self.n, self.split.tau)
        return math.fsum((law * (gain + (gain[-1] - gain) * core_variation[::-1])).tolist())


def coupling(null: Any, alternative: Any, *, epsilon: Number, n: int) -> Coupling:
    """Return the coupling of P^n and Q^n at privacy epsilon.

    Args:
        n: number of records on each side.
        null, alternative: P and Q, in any form that :func:`privatest.design` takes.
        epsilon: privacy loss.

    >>> X, Y = coupling([0.5, 0.5], [0.4, 0.6], epsilon=1, n=5).draw(np.random.default_rng(3))
    >>> len(X), len(Y)
    (5, 5)
    """
    level = float(numbers.positive(epsilon=epsilon, remedy="It is the privacy loss that is allowed."))
    return Coupling(decompose_pair(make_pair(null, alternative), level), numbers.positive_integer(n=n))


ATTEMPTS: tuple[tuple[Literal["highs-ds", "highs-ipm"], float], ...] = (
    ("highs-ds", 1e-10),
    ("highs-ds", 1e-9),
    ("highs-ipm", 1e-9),
    ("highs-ds", 1e-7),
)
"""Methods and tolerances for linear programs, in the order in which they are tried."""
SAME_RATIO = 1e-13
"""Ratios that differ by no more than this (relatively, or absolutely near 0) are equal but for rounding."""


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
        """Number of classes."""
        return len(self.p)

    @cached_property
    def odd(self) -> int:
        """The class of a record that makes no sense: that whose ratio is nearest to 0."""
        return int(np.argmin(np.abs(self.ratios)))


def merge(pair: Pair, remedy: str = "") -> Classes:
    """Return the classes of a pair on a finite domain.

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
        """Number of histograms: C(n + classes - 1, classes - 1)."""
        return math.comb(self.n + self.classes - 1, self.classes - 1)

    @cached_property
    def table(self) -> Integers:
        """All histograms, one to a row."""
        table, left = np.zeros((1, 0), dtype=np.int64), np.array([self.n], dtype=np.int64)
        for _ in range(self.classes - 1):
            rows = np.repeat(np.arange(len(left)), left + 1)
            ends = np.cumsum(left + 1)
            value = np.arange(ends[-1]) - np.repeat(ends - left - 1, left + 1)
            table = np.column_stack([table[rows], value])
            left = left[rows] - value
        return np.column_stack([table, left])

    def rank(self, table: Integers) -> Integers:
        """Return the index in ``table`` of each given row."""
        # Summed over the classes: how many histograms agree before that class and have fewer records in it.
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
        """Probability of each histogram if records have law p: a product of conditional binomials, each accurate."""
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


def solved_program(
    gain: Floats,
    histograms: Histograms,
    ends: tuple[Integers, Integers],
    cuts: tuple[Floats, Floats, Floats],
    least: tuple[Floats, float] | None = None,
) -> tuple[Floats, float]:
    """The g in [0, 1] on histograms that maximises gain.g, and an upper bound on the maximum, by a linear program.

    g increases with the class and satisfies a g(high) + b g(low) <= c in each row.

    Args:
        gain: the objective.
        histograms: the domain of g.
        ends: high and low, histograms by number.
        cuts: a, b and c.
        least: a law and the least mean of g under it; None for no such condition.

    Guarantees: the bound holds whatever the solver's accuracy, by weak duality: with A g <= b, for any y >= 0,
    gain.g is at most b.y + the sum of the positive parts of gain - A'y. g itself may violate its constraints by about
    the tolerance. If the solver gives up at a small tolerance, larger ones are tried.
    """
    from scipy import optimize, sparse

    rows = histograms.rows
    pairs = [np.stack([rows[:, i], rows[:, i + 1]]) for i in range(histograms.classes - 1)]  # g rises with the class
    columns = np.concatenate([*pairs, np.stack(ends)], axis=1)
    steady = np.ones(rows.shape[0] * len(pairs))
    entries = np.stack([np.concatenate([steady, cuts[0]]), np.concatenate([-steady, cuts[1]])])
    limit = np.concatenate([0 * steady, cuts[2]])
    lines = np.tile(np.arange(len(limit)), 2)
    # Typed Any: the stubs of linprog know dense matrices only.
    matrix: Any = sparse.csr_matrix((entries.ravel(), (lines, columns.ravel())), shape=(len(limit), histograms.count))
    if least is not None:
        matrix = sparse.vstack([matrix, sparse.csr_matrix(-least[0])], format="csr")
        limit = np.append(limit, -least[1])
    message = ""
    for method, tolerance in ATTEMPTS:
        solution = optimize.linprog(
            -gain,
            A_ub=matrix,
            b_ub=limit,
            bounds=(0, 1),
            method=method,
            options={"primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance},
        )
        if solution.x is not None and solution.status == 0:
            y = np.maximum(-solution.ineqlin.marginals, 0.0)
            bound = float(limit @ y + np.maximum(gain - matrix.T @ y, 0.0).sum())
            return np.clip(solution.x, 0.0, 1.0), bound
        message = str(solution.message)
    raise PrivatestError(f"The linear program of {len(gain)} variables was not solved: {message} Use a smaller n.")


UNITS = 1 << 48
"""The dual function's values are multiples of 1/UNITS."""
MOST_VARIABLES = 50_000
_REMEDY = "Use fewer records or labels: the distance is for small domains."


@dataclass(frozen=True, eq=False)
class Wasserstein:
    """The distance W, and a function f on histograms that attains it.

    Attributes:
        value: E_P f - E_Q f for this f, exact to 1e-12.
        bound: an upper bound on the distance, within 1e-8 of the value.
        dual: f in units of 1/UNITS: in [0, 1], and neighbours differ by at most epsilon, exactly.
        pair: P and Q on their common domain, which is finite.
        classes: classes of labels or integers with the same ratio.
        epsilon: privacy loss.
        n: number of records.
    """

    pair: Pair
    classes: Classes
    epsilon: Fraction
    n: int
    bound: float
    dual: Integers

    @cached_property
    def histograms(self) -> Histograms:
        """The domain of the dual function."""
        return Histograms(self.classes.count, self.n)

    @cached_property
    def value(self) -> float:
        """The distance W."""
        gain = self.histograms.law(self.classes.p) - self.histograms.law(self.classes.q)
        return math.fsum((gain * (self.dual / UNITS)).tolist())

    def probabilities(self) -> list[Fraction]:
        """Probability (1 + f)/4 of "null" of the paper's mechanism, for each histogram.

        Guarantees: epsilon-DP, because neighbours have (1 + f)/(1 + f') <= 1 + eps <= e^eps and, for the other
        decision, (3 - f')/(3 - f) <= 1 + eps/2 <= e^eps.
        """
        return [Fraction(UNITS + int(f), 4 * UNITS) for f in self.dual]

    def is_lipschitz(self) -> bool:
        """Whether f lies in [0, 1] and neighbours differ by at most epsilon, in exact arithmetic."""
        among = self.dual[self.histograms.rows]
        steepest = int((among.max(axis=1) - among.min(axis=1)).max())
        inside = int(self.dual.min()) >= 0 and int(self.dual.max()) <= UNITS
        return inside and Fraction(steepest, UNITS) <= self.epsilon

    def __repr__(self) -> str:
        return f"Wasserstein(value={self.value:.9g}, epsilon={float(self.epsilon):g}, n={self.n})"


def wasserstein(null: Any, alternative: Any, *, epsilon: Number, n: int) -> Wasserstein:
    """Return the Wasserstein distance between P^n and Q^n under min(eps d_H, 1), with its dual function.

    Args:
        n: number of records.
        null, alternative: P and Q, in any form that :func:`privatest.design` takes.
        epsilon: privacy loss.

    >>> wasserstein([1.0, 0.0], [0.0, 1.0], epsilon=0.1, n=3)
    Wasserstein(value=0.3, epsilon=0.1, n=3)
    """
    budget = numbers.positive(epsilon=epsilon, remedy="It is the privacy loss that is allowed.")
    n = numbers.positive_integer(n=n)
    pair = make_pair(null, alternative)
    classes = merge(pair, _REMEDY)
    histograms = Histograms(classes.count, n)
    if histograms.count > MOST_VARIABLES:
        raise InvalidInput(
            f"n={n} records of {classes.count} classes have {histograms.count} histograms; at most "
            f"{MOST_VARIABLES} are handled. {_REMEDY}"
        )
    rows, gain = histograms.rows, histograms.law(classes.p) - histograms.law(classes.q)
    one = np.ones(len(rows))
    f, bound = solved_program(gain, histograms, (rows[:, -1], rows[:, 0]), (one, -one, min(float(budget), 1.0) * one))
    dual = _repaired(f, histograms, budget)
    return Wasserstein(pair=pair, classes=classes, epsilon=budget, n=n, bound=bound, dual=dual)


def _repaired(f: Floats, histograms: Histograms, epsilon: Fraction) -> Integers:
    """f in units of 1/UNITS, shrunk towards 1/2 so that neighbours differ by at most epsilon exactly."""
    among = f[histograms.rows]
    most = max(math.floor(min(epsilon, Fraction(1)) * UNITS), 1)
    steepest = max(float((among.max(axis=1) - among.min(axis=1)).max()), most / UNITS)
    # Two roundings add at most one unit to a difference, the doubles above less than another.
    shrink = max(most / UNITS - 2 / UNITS, 0.0) / steepest
    values = 0.5 + (f - 0.5) * min(shrink, 1.0)
    return np.rint(values * UNITS).astype(np.int64)
