r"""The Wasserstein distance of P^n and Q^n under min(eps d_H, 1), its dual function and the test made of it.

.. math:: W = \min_{\text{couplings}} E \min\{\varepsilon\, d_H(X, Y), 1\}
            = \max_f \{E_P f - E_Q f : 0 \le f \le 1,\ |f(x) - f(y)| \le \varepsilon \text{ for neighbours}\}.

The two sides are equal by Kantorovich's duality: the metric is the least of 1 and eps times the distance in the
graph of neighbours, so being 1-Lipschitz means moving by at most eps along an edge and by at most 1 overall. Saying P
with probability (1 + f)/4 is eps-DP and has advantage exactly W/4; no eps-DP test has more than W (CKMSU19, section 3
and appendix E). The paper takes f up to 2; as f needs to reach only 1, (1 + f)/3 is private too, for W/3.

Histograms of classes stand for data sets (``theory/histograms.py``). Some best f rises with the class, by the sorting
argument of ``bounds/optimum.py``; so one inequality for the outermost two of each set of mutual neighbours is enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from privatest import numbers
from privatest.errors import InvalidInput
from privatest.hypotheses import Pair, make_pair
from privatest.numbers import Floats, Integers, Number
from privatest.theory.histograms import Classes, Histograms, merge, solved_program

__all__ = ["UNITS", "Wasserstein", "wasserstein"]


UNITS = 1 << 48
"""The dual function's values are multiples of 1/UNITS."""
MOST_VARIABLES = 50_000
_REMEDY = "Use fewer records or labels: the distance is for small domains."


@dataclass(frozen=True, eq=False)
class Wasserstein:
    """W, and a function f on histograms that attains it.

    Attributes:
        value: E_P f - E_Q f for this very f, exact to 1e-12.
        bound: an upper bound on the distance (from the coupling), within 1e-8 of the value.
        dual: f in units of 1/UNITS: in [0, 1], and neighbours differ by at most epsilon, exactly.
        pair: P and Q on their common domain, which is finite.
        classes: the labels or integers that have the same ratio, put together.
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
        """What the dual function is a function of."""
        return Histograms(self.classes.count, self.n)

    @cached_property
    def value(self) -> float:
        """The distance W."""
        gain = self.histograms.law(self.classes.p) - self.histograms.law(self.classes.q)
        return math.fsum((gain * (self.dual / UNITS)).tolist())

    def probabilities(self) -> list[Fraction]:
        """(1 + f)/4 for each histogram: the probability with which the paper's mechanism says P.

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
    """The distance of P^n and Q^n under min(eps d_H, 1), with its dual function.

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
    found, bound = _solve(classes, histograms, float(budget))
    return Wasserstein(pair, classes, budget, n, bound, _repaired(found, histograms, budget))


def _solve(classes: Classes, histograms: Histograms, epsilon: float) -> tuple[Floats, float]:
    from scipy import sparse

    gain = histograms.law(classes.p) - histograms.law(classes.q)
    rows = histograms.rows
    size = len(rows)
    edges = [(rows[:, i], rows[:, i + 1], 0.0) for i in range(histograms.classes - 1)]  # f rises with the class
    edges.append((rows[:, -1], rows[:, 0], min(epsilon, 1.0)))
    lines = np.concatenate([np.tile(np.arange(size) + i * size, 2) for i in range(len(edges))])
    columns = np.concatenate([np.concatenate([left, right]) for left, right, _ in edges])
    signs = np.tile(np.repeat([1.0, -1.0], size), len(edges))
    # Typed Any: the stubs of linprog know dense matrices only.
    matrix: Any = sparse.csr_matrix((signs, (lines, columns)), shape=(len(edges) * size, histograms.count))
    limit = np.repeat([most for _, _, most in edges], size)
    return solved_program(gain, matrix, limit)


def _repaired(found: Floats, histograms: Histograms, epsilon: Fraction) -> Integers:
    """f on the lattice of 1/UNITS, shrunk towards 1/2 until it is Lipschitz with constant epsilon to the last digit."""
    clipped = np.clip(found, 0.0, 1.0)
    among = clipped[histograms.rows]
    most = max(math.floor(min(epsilon, Fraction(1)) * UNITS), 1)
    steepest = max(float((among.max(axis=1) - among.min(axis=1)).max()), most / UNITS)
    # Two roundings add at most one unit to a difference, the doubles above less than another.
    shrink = max(most / UNITS - 2 / UNITS, 0.0) / steepest
    values = 0.5 + (clipped - 0.5) * min(shrink, 1.0)
    return np.rint(values * UNITS).astype(np.int64)
