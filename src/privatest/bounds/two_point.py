r"""The best private test on a two-point domain, in closed form.

With N the number of records at the point that speaks for P, binomial of rate x under P and y < x under Q, no
epsilon-DP test beats "P when N + G > j", G two-sided geometric, for the best threshold j (Awan and Slavkovic 2018):
among all tests the most powerful at each level adds Tulap noise G + U, U uniform on (-1/2, 1/2); between half integers
both error rates are linear in the threshold, so that the best ones lie at half integers, where U plays no part.

The same with prior weights u on P and v on Q,

.. math:: \Phi(u, v) = \min_g \{u (1 - E_P g) + v E_Q g\}
        = \min\{u, v, \min_j u \Pr_P[N + G \le j] + v \Pr_Q[N + G > j]\},

is what the lower bound for general pairs is made of.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privatest.laws.noisy_counts import REACH, binomial
from privatest.vectors import Floats, Integers

__all__ = ["TwoPoint", "discounted"]


@dataclass(frozen=True, eq=False)
class TwoPoint:
    """n records of a two-point domain: the point that speaks for P has rate x under P and y <= x under Q.

    Counts more than ``reach`` deviations off are left out.
    """

    n: int
    x: float
    y: float
    epsilon: float
    reach: float = REACH

    @cached_property
    def _windows(self) -> tuple[tuple[int, Floats], tuple[int, Floats]]:
        """First count and probabilities, under P and under Q, of all counts that matter."""
        return binomial(self.n, self.x, self.reach), binomial(self.n, self.y, self.reach)

    @cached_property
    def thresholds(self) -> Integers:
        """Every j near the counts of P or of Q; what lies between the two is :attr:`gap`'s business."""
        pieces = [np.arange(lo - 1, lo + len(law) + 1) for lo, law in self._windows]
        return np.unique(np.concatenate(pieces))

    @cached_property
    def rates(self) -> tuple[Floats, Floats]:
        """(Pr_P[N + G <= j], Pr_Q[N + G > j]) at the thresholds: type I and type II errors."""
        return self._rates(self.thresholds)

    def _rates(self, j: Integers) -> tuple[Floats, Floats]:
        under_p, under_q = self._counts
        # N + G > j under Q is -N + G <= -j - 1, G being symmetric.
        return under_p.noisy_cdf(j), under_q.mirrored.noisy_cdf(-j - 1)

    @cached_property
    def _counts(self) -> tuple[_Counts, _Counts]:
        first, second = (_Counts.from_window(lo, law, self.epsilon) for lo, law in self._windows)
        return first, second

    @cached_property
    def gap(self) -> float:
        r"""Thresholds strictly between the counts of Q and those of P: the least of A e^(eps j) + B e^(-eps j).

        There the errors are exactly A e^(eps j) and B e^(-eps j); over all real j the least of u A e^(eps j) +
        v B e^(-eps j) is :math:`2 \sqrt{AB}\sqrt{uv}`, which this is for u = v = 1. Infinite where there is no gap.
        """
        (first_p, _), (first_q, q) = self._windows
        if first_p - (first_q + len(q)) < 3:
            return math.inf
        alphas, betas = self.rates
        j = self.thresholds
        left, right = int(np.searchsorted(j, first_q + len(q))), int(np.searchsorted(j, first_p - 1))
        # alpha(right) = A e^(eps j_right), beta(left) = B e^(-eps j_left)
        apart = float(j[right] - j[left])
        return 2 * math.sqrt(alphas[right] * betas[left]) * math.exp(-self.epsilon * apart / 2)

    def best(self) -> tuple[float, int]:
        """The largest advantage and its threshold j."""
        alphas, betas = self.rates
        top = int(np.argmin(alphas + betas))
        value, threshold = 1.0 - float(alphas[top] + betas[top]), int(self.thresholds[top])
        if 1.0 - self.gap > value:
            # equal errors in the middle of the gap, as nearly as whole numbers allow
            middle = self._middle_of_gap()
            around = np.arange(middle - 1, middle + 2)
            alphas, betas = self._rates(around)
            top = int(np.argmin(alphas + betas))
            value, threshold = max(value, 1.0 - float(alphas[top] + betas[top])), int(around[top])
        return value, threshold

    def _middle_of_gap(self) -> int:
        (first_p, _), (first_q, q) = self._windows
        alphas, betas = self.rates
        j = self.thresholds
        left, right = int(np.searchsorted(j, first_q + len(q))), int(np.searchsorted(j, first_p - 1))
        if self.gap == 0.0:  # both errors underflow
            return int(j[left] + j[right]) // 2
        balance = (math.log(betas[left]) - math.log(alphas[right])) / self.epsilon
        return round((float(j[left] + j[right]) + balance) / 2)

    @cached_property
    def turns(self) -> Floats:
        """log Pr_P[N + G = j]/Pr_Q[N + G = j] for the steps between thresholds, which never decreases."""
        laws = [counts.noisy_log_pmf(self.thresholds[1:]) for counts in self._counts]
        return np.maximum.accumulate(laws[0] - laws[1])


@dataclass(frozen=True, eq=False)
class _Counts:
    """The law of a count N on first, first + 1, ..., and its running sums discounted by e^-eps a step.

    Attributes:
        below: sum over N <= j of Pr[N] e^(-eps (j - N)), at each j of the window.
        above: sum over N >= j of Pr[N] e^(-eps (N - j)).
    """

    first: int
    law: Floats
    below: Floats
    above: Floats
    epsilon: float

    @classmethod
    def from_window(cls, first: int, law: Floats, epsilon: float) -> _Counts:
        b = math.exp(-epsilon)
        return cls(first, law, discounted(law, b), discounted(law[::-1], b)[::-1], epsilon)

    @property
    def last(self) -> int:
        return self.first + len(self.law) - 1

    @property
    def mirrored(self) -> _Counts:
        """The law of -N."""
        return _Counts(-self.last, self.law[::-1], self.above[::-1], self.below[::-1], self.epsilon)

    def noisy_cdf(self, j: Integers) -> Floats:
        r"""Pr[N + G <= j] for G two-sided geometric; j sorted or not.

        Pr[G <= z] is e^(eps z)/(1 + b) for z < 0 and 1 - b e^(-eps z)/(1 + b) for z >= 0, with b = e^-eps.
        """
        b = math.exp(-self.epsilon)
        mass = np.cumsum(self.law)
        at = np.clip(j - self.first, 0, len(self.law) - 1)
        with np.errstate(under="ignore"):
            right = np.where(at + 1 < len(self.law), b * self.above[np.minimum(at + 1, len(self.law) - 1)], 0.0)
            inside = mass[at] - self.below[at] * (b / (1 + b)) + right / (1 + b)
            before = self.above[0] * np.exp(-self.epsilon * np.maximum(self.first - j, 0)) / (1 + b)
            rest = self.below[-1] * np.exp(-self.epsilon * np.maximum(j - self.last, 0)) * (b / (1 + b))
        return np.where(j < self.first, before, np.where(j > self.last, mass[-1] - rest, inside))

    def noisy_log_pmf(self, j: Integers) -> Floats:
        """log Pr[N + G = j], but for a constant, with small relative error far out too: no differences are taken."""
        at = np.clip(j - self.first, 0, len(self.law) - 1)
        # Each count is reached from below, from above, or is already there (once, not twice).
        inside = np.maximum(self.below[at] + self.above[at] - self.law[at], 1e-300)
        away = np.maximum(np.maximum(self.first - j, j - self.last), 0)
        return np.asarray(np.log(inside) - self.epsilon * away)


def discounted(law: Floats, b: float) -> Floats:
    """Running sums y[j] = law[j] + b y[j - 1] along the last axis, by doubling.

    As ``scipy.signal.lfilter([1], [1, -b], law)``; but importing scipy.signal takes longer than a whole plan.

    Invariant: sums[j] is the sum over the last ``reach`` entries up to j.

    >>> discounted(np.array([1.0, 0.0, 2.0]), 0.5).tolist()
    [1.0, 0.5, 2.25]
    """
    sums = np.array(law, dtype=np.float64)
    reach, factor = 1, b
    with np.errstate(under="ignore"):
        while reach < sums.shape[-1] and factor > 0:
            sums[..., reach:] += factor * sums[..., :-reach]
            reach, factor = 2 * reach, factor * factor
    return sums
