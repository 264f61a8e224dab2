r"""The best private test on a two-point domain, in closed form.

With N the number of records at the point that speaks for P, binomial of rate x under P and y < x under Q, no
epsilon-DP test beats "P when N + G > j", G two-sided geometric, for the best threshold j (Awan and Slavkovic 2018):
among all tests the most powerful at each level adds Tulap noise G + U, U uniform on (-1/2, 1/2); between half integers
both error rates are linear in the threshold, so that the best ones lie at half integers, where U plays no part.

The same with prior weights u on P and v on Q,

.. math:: \Phi(u, v) = \min_g \{u (1 - E_P g) + v E_Q g\}
        = \min\{u, v, \min_j u \Pr_P[N + G \le j] + v \Pr_Q[N + G > j]\},

is what the lower bound for general pairs is made of.

For any notion of stability the same holds with the chains g(k + 1) = h(g(k)) in place of geometric noise
(``privacy/decision_chain.py``): :class:`Chains`. No private test f that is below a chain g at k, f(k) <= g(k), is
above it at k + 1; so f - g changes its sign at most once, from above to below. The ratio of the counts' laws
increases; so a test whose type I error is no larger than the chain's has no smaller type II error. Hence the errors of
all chains lie on a convex curve, below which no private test lies; a few of its points enclose it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privatest.laws.block_laws import REACH, binomial
from privatest.numbers import Floats, Integers, discounted
from privatest.privacy.decision_chain import Ladder, chain, make_ladder
from privatest.privacy.divergences import Odds
from privatest.privacy.notion import Notion, is_straight


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
        """First count and probabilities of the counts that matter, under P and under Q."""
        return binomial(self.n, self.x, self.reach), binomial(self.n, self.y, self.reach)

    @cached_property
    def thresholds(self) -> Integers:
        """Every threshold j near the counts under P or under Q; :attr:`gap` covers the thresholds between the two."""
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
        """Return the largest advantage and its threshold j."""
        alphas, betas = self.rates
        top = int(np.argmin(alphas + betas))
        value, threshold = 1.0 - float(alphas[top] + betas[top]), int(self.thresholds[top])
        if 1.0 - self.gap > value:
            # The threshold in the gap at which both errors are as equal as whole numbers allow.
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
        """log Pr_P[N + G = j]/Pr_Q[N + G = j] at the steps between thresholds, which never decreases."""
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
        """log Pr[N + G = j] up to a constant; far out it is accurate too, as no differences are taken."""
        at = np.clip(j - self.first, 0, len(self.law) - 1)
        # Each N is below j, above j or equal to it; the last counts once.
        inside = np.maximum(self.below[at] + self.above[at] - self.law[at], 1e-300)
        away = np.maximum(np.maximum(self.first - j, j - self.last), 0)
        return np.asarray(np.log(inside) - self.epsilon * away)


FINE = 16
"""Number of rungs per record if h is curved."""
SMALLEST = 1e-15
"""A smaller error rate counts as 0."""
NOISY = 1e-9
"""Smaller sums by transforms are not accurate."""
DIRECTLY = 1 << 23
"""With at most so many products sums are computed directly, which is accurate, and else by transforms."""


@dataclass(frozen=True, eq=False)
class Rates:
    """One error rate of all chains of a ladder, by the rung of the threshold.

    Attributes:
        first: rung of the first value.
        values: the error rates.
        accurate: whether small rates have a small relative error.
    """

    first: int
    values: Floats
    accurate: bool = True


@dataclass(frozen=True, eq=False)
class Chains:
    """n records of a two-point domain under any notion: the point that speaks for P has rate x under P, y <= x under Q.

    A threshold is a number of rungs J, not always whole: for N records at that point the test says "null" with
    probability F at the rung N * fine - J.
    """

    n: int
    x: float
    y: float
    notion: Notion
    fine: int = FINE
    reach: float = REACH

    @property
    def ladder(self) -> Ladder:
        """The ladder of the notion."""
        return make_ladder(self.notion, self.fine)

    @cached_property
    def _windows(self) -> tuple[tuple[int, Floats], tuple[int, Floats]]:
        return binomial(self.n, self.x, self.reach), binomial(self.n, self.y, self.reach)

    @cached_property
    def rates(self) -> tuple[Rates, Rates]:
        """Type I errors, which increase with the threshold from 0 to 1, and type II errors, which decrease to 0."""
        ladder = self.ladder
        (first, p), (other, q) = self._windows
        falling = _means(ladder, -(other + len(q) - 1), q[::-1])  # mirrored: F(rung) = 1 - F(fine - rung)
        last = -ladder.fine - (falling.first + len(falling.values) - 1)
        return _means(ladder, first, p), Rates(last, falling.values[::-1], falling.accurate)

    @cached_property
    def outlines(self) -> tuple[tuple[int, Floats, Floats], tuple[Floats, Floats]]:
        """First rung and both errors at the rungs; corners of a polygon that lies nowhere above the curve of errors."""
        alphas, betas = self.rates
        first, a, b = _both_errors(alphas, betas, 0)
        return (first, a, b), corners(self, 0)

    def bounds(self) -> tuple[float, float]:
        """Return a lower and an upper bound on the largest advantage; they are equal if h consists of lines."""
        (_, a, b), (c, d) = self.outlines
        return 1.0 - float((a + b).min()), 1.0 - float((c + d).min())

    def best(self) -> tuple[float, float]:
        """Return the largest advantage and its threshold."""
        (first, a, b), _ = self.outlines
        top = int(np.argmin(a + b))
        value, at = 1.0 - float(a[top] + b[top]), float(first + top)
        if is_straight(self.notion):
            return value, at
        from scipy import optimize  # start-up: a plan of a pure test needs none

        minimum = optimize.minimize_scalar(
            lambda where: sum(self.errors(where)), bounds=(at - 1, at + 1), method="bounded", options={"xatol": 1e-5}
        )
        refined = 1.0 - float(minimum.fun)
        return (refined, float(minimum.x)) if refined > value else (value, at)

    def beta_bounds(self, level: float) -> tuple[float, float]:
        """Return a lower and an upper bound on the least type II error at a type I error of at most ``level``."""
        (_, a, b), (c, d) = self.outlines
        return float(np.interp(level, c, d)), float(np.interp(level, a, b))

    def beta_at(self, level: float) -> tuple[float, float]:
        """Return the least type II error at a type I error of at most ``level``, and its threshold."""
        (first, a, _), _ = self.outlines
        place = int(np.searchsorted(a, level, side="right")) - 1
        if place >= len(a) - 1:  # the type II error is 0
            return 0.0, float(first + len(a) - 1)
        from scipy import optimize  # start-up: a plan of a pure test needs none

        low = float(first + place)
        excess = [self.errors(low + share)[0] - level for share in (0.0, 1.0)]
        if excess[0] >= 0 or excess[1] <= 0:
            at = low if excess[0] >= 0 else low + 1
        else:
            at = float(optimize.brentq(lambda where: self.errors(where)[0] - level, low, low + 1, xtol=1e-13))
        return self.errors(at)[1], at

    def start(self, threshold: float) -> tuple[int, Odds]:
        """Return a count in the middle of the chain of this threshold, and the probability of "null" there."""
        ladder = self.ladder
        count = -(math.floor(-threshold) // ladder.fine)
        rung = count * ladder.fine - threshold
        whole = min(max(math.floor(rung), 0), ladder.fine - 1)
        return count, ladder.between(whole, rung - whole)

    def errors(self, threshold: float) -> tuple[float, float]:
        """Type I and type II error of one chain, followed from its start in both directions."""
        count, (p, rest) = self.start(threshold)
        up, down = np.array(chain(self.notion, p, rest)), np.array(chain(self.notion, rest, p))
        errors = []
        for lo, law in self._windows:
            away = np.arange(lo, lo + len(law)) - count
            over, under = np.append(up, 0.0), np.append(down, 0.0)
            not_null = over[np.clip(away, 0, len(up))]
            null = under[np.clip(-away, 0, len(down))]
            errors.append((law, np.where(away >= 0, not_null, 1 - null), np.where(away > 0, 1 - not_null, null)))
        (p_law, not_null, _), (q_law, _, null) = errors
        return math.fsum((p_law * not_null).tolist()), math.fsum((q_law * null).tolist())


def corners(problem: Chains, certain: int) -> tuple[Floats, Floats]:
    """Return a polygon nowhere above the errors, if ``certain`` more records are "+" under P and "-" under Q."""
    alphas, betas = problem.rates
    _, a, b = _both_errors(alphas, betas, certain * problem.ladder.fine)
    return outline(a, b, straight=is_straight(problem.notion), accurate=alphas.accurate)


def _means(ladder: Ladder, first: int, law: Floats) -> Rates:
    """The mean of 1 - F at the rung N * fine - J for every J at which it is neither 0 nor 1; N - first has this law."""
    fine, reach = ladder.fine, ladder.records + 1
    low, high = first - reach, first + len(law) - 1 + reach
    size = high - low + 1
    steps = np.arange(first - high, first + len(law) - low)  # N - j
    accurate = len(law) * len(steps) <= DIRECTLY
    means_of_rungs = np.empty((size, fine))
    for rung in range(fine):
        row = ladder.above(steps * fine + rung)
        if accurate:
            means = np.correlate(row, law, mode="valid")
        else:
            length = 1 << (len(row) - 1).bit_length()
            product = np.fft.rfft(row, length) * np.conj(np.fft.rfft(law, length))
            means = np.maximum(np.fft.irfft(product, length)[:size] - SMALLEST, 0.0)
        # J = j * fine - rung increases with j and decreases with the rung.
        means_of_rungs[:, fine - 1 - rung] = means[::-1]
    return Rates(low * fine - fine + 1, means_of_rungs.ravel(), accurate)


def _both_errors(alphas: Rates, betas: Rates, later: int) -> tuple[int, Floats, Floats]:
    """First rung and both errors at the rungs where both are positive, and at one more rung on either side.

    Args:
        later: number of rungs by which the type I errors are shifted, for records that are certain under either
            hypothesis.
    """
    first = alphas.first + later + int(np.searchsorted(alphas.values, SMALLEST, side="right")) - 1
    last = betas.first + len(betas.values) - int(np.searchsorted(betas.values[::-1], SMALLEST, side="right"))
    if first >= last:
        return first, np.zeros(1), np.zeros(1)
    rungs = np.arange(first, last + 1)
    a = np.append(alphas.values, 1.0)[np.clip(rungs - alphas.first - later, 0, len(alphas.values))]
    b = np.append(1.0, betas.values)[np.clip(rungs - betas.first + 1, 0, len(betas.values))]
    a[0] = b[-1] = 0.0
    return first, a, b


def outline(a: Floats, b: Floats, *, straight: bool, accurate: bool = True) -> tuple[Floats, Floats]:
    """Corners of a polygon that lies nowhere above a convex decreasing curve through the points (a, b).

    Guarantees: the corners are in convex position.

    Between two points the curve is above both neighbouring chords, extended: a corner is where these meet. If
    rounding would matter it is the corner of the box instead. If h is made of lines the points are the corners, but for
    rounding.
    """
    if straight or len(a) < 2:
        return _hull(a, b)
    corner_a, corner_b = a[:-1].copy(), b[1:].copy()
    if len(a) > 6:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            slope = np.diff(b) / np.diff(a)
            before, after = slope[:-2], slope[2:]  # of the segments 1, ..., len - 3
            left_a, left_b, right_a, right_b = a[1:-2], b[1:-2], a[2:-1], b[2:-1]
            at = (right_b - left_b + before * left_a - after * right_a) / (before - after)
            at = np.clip(np.where(np.isfinite(at), at, left_a), left_a, right_a)
            height = np.maximum(left_b + before * (at - left_a), right_b + after * (at - right_a))
        least = 0.0 if accurate else NOISY
        fit = np.isfinite(height) & (left_a > least) & (right_b > least)
        fit[:1] = fit[-1:] = False
        corner_a[1:-1] = np.where(fit, at, left_a)
        corner_b[1:-1] = np.where(fit, np.clip(height, right_b, left_b), right_b)
    return _hull(np.concatenate([a[:1], corner_a, a[-1:]]), np.concatenate([b[:1], corner_b, b[-1:]]))


def _hull(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the points below every straight line between two others, for increasing ``a``.

    Each round examines every other point, so that its two neighbours stay: of points that agree up to rounding
    one is left.
    """
    unchanged, odd = 0, 1
    while unchanged < 2:
        middle = np.arange(2 - odd, len(a) - 1, 2)
        left, right = middle - 1, middle + 1
        above = (a[middle] - a[left]) * (b[right] - b[left]) <= (a[right] - a[left]) * (b[middle] - b[left])
        unchanged = 0 if above.any() else unchanged + 1
        vertices = np.ones(len(a), dtype=np.bool_)
        vertices[middle[above]] = False
        a, b, odd = a[vertices], b[vertices], 1 - odd
    return a, b
