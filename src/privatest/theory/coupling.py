r"""The paper's coupling of P^n and Q^n, whose Hamming distance bounds the advantage of private tests.

Every record belongs to the core with probability 1 - tau and to the tails with probability tau. The tails are drawn
independently (X from P'', Y from Q''); the m records of the core are coupled as a whole, so that X = Y as often as
possible:

.. math:: \Pr[X = Y = x] = \min\{P'^m(x), Q'^m(x)\}, \qquad
          \Pr[X = x, Y = y] = \frac{(P'^m - Q'^m)_+(x)\,(Q'^m - P'^m)_+(y)}{TV(P'^m, Q'^m)} \quad (x \ne y).

X has law P^n and Y law Q^n (CKMSU19, proof of the lower bound, section 3; only the core and the tails enter, so
swapped roles need no special case). For an epsilon-DP test g, changing d records one after the other gives
g(x) - g(y) <= :func:`largest_gain` (d), so that the advantage is at most the mean of that over the coupling.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest import numbers
from privatest.errors import InvalidInput, shown
from privatest.hypotheses import DiscretePair, Pair, make_pair
from privatest.numbers import Floats, Number
from privatest.theory.decomposition import Decomposition, decompose_pair

MOST_PAIRS = 4_000_000
BATCH = 1 << 14
"""Number of records that rejection sampling draws at a time."""


def largest_gain(distance: npt.ArrayLike, epsilon: float) -> Floats:
    r"""The most by which an epsilon-DP test's probability of "null" can differ at Hamming distance d.

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

    def joint_law(self) -> tuple[list[tuple[Any, ...]], Floats]:
        """All data sets over a finite domain and the matrix of Pr[X = x, Y = y], by enumeration.

        Guarantees: rows sum to P^n and columns to Q^n.
        """
        pair = self.split.pair
        if not isinstance(pair, DiscretePair) or pair.kind != "labels":
            raise InvalidInput(f"{pair!r} has no labels to enumerate: the joint law is for mappings and arrays.")
        k = len(pair.labels)
        size = k**self.n
        if size * size > MOST_PAIRS:
            raise InvalidInput(
                f"n={self.n} records of {k} labels have {size * size} pairs of data sets; at most {MOST_PAIRS} "
                "are listed. Use sample() instead."
            )
        joint = np.zeros((k,) * (2 * self.n))
        for tail in itertools.product((False, True), repeat=self.n):
            joint += self._pattern(tail, k)
        return list(itertools.product(pair.labels, repeat=self.n)), joint.reshape(size, size)

    def _pattern(self, tail: tuple[bool, ...], k: int) -> Floats | float:
        """The part of the joint law in which exactly these records are of the tails; axes x_1..x_n, y_1..y_n."""
        tau, n = self.split.tau, self.n
        m = n - sum(tail)
        weight = tau ** (n - m) * self.split.core_mass**m
        if weight == 0.0:
            return 0.0
        core = self._core_joint(m).reshape((k,) * (2 * m))
        places = [i for i in range(n) if not tail[i]]
        operands: list[Any] = [core, [*places, *(n + i for i in places)]]
        for i in range(n):
            if tail[i]:
                assert isinstance(self.split.tails, DiscretePair)
                operands += [self.split.tails.p, [i], self.split.tails.q, [n + i]]
        law: Floats = np.einsum(*operands, list(range(2 * n)))
        return weight * law

    def _core_joint(self, m: int) -> Floats:
        """Joint law of the core's m records under the total variation coupling."""
        p = q = np.ones(1)
        for _ in range(m):
            assert isinstance(self.split.core, DiscretePair)
            p, q = np.kron(p, self.split.core.p), np.kron(q, self.split.core.q)
        over, under = np.maximum(p - q, 0.0), np.maximum(q - p, 0.0)
        joint = np.diag(np.minimum(p, q))
        variation = math.fsum(over.tolist())
        return joint + np.multiply.outer(over, under) / variation if variation > 0 else joint

    def expected(self, gain: Floats, core_variation: Floats) -> float:
        r"""An upper bound on the mean of rho(distance), for a non-decreasing function rho.

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
    """The coupling of P^n and Q^n at privacy epsilon.

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
