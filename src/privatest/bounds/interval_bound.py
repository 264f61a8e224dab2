r"""A lower bound on the mean length of private intervals.

Let I be the interval of any eps-DP mechanism that holds every parameter with probability at least c. By Pratt's
identity its mean length at :math:`\theta` is :math:`\int \Pr_\theta[\theta' \in I]\, d\theta'`, and "is :math:`\theta'`
in I" is an eps-DP test between :math:`\theta'`, which it accepts with probability at least c, and :math:`\theta`. So

.. math:: E_\theta |I| \ge \int \max(\beta_\epsilon(\theta', \theta),\ \beta(\theta', \theta))\, d\theta',

where :math:`\beta_\epsilon` is a lower bound on the type II error of eps-DP tests whose type I error is 1 - c, and
:math:`\beta` that of all tests (Neyman and Pearson). This contains, and is several times as much as, the bound from two
points only: :math:`2h (1 - 2(1-c) - A)` at distance 2h, A an upper bound on the advantage of eps-DP tests.

In a family with monotone likelihood ratios both errors decrease as the two values move apart (the farther pair
dominates the nearer one), so that sums over steps, each with the value at its far end, are below the integral for any
steps.

The least type II error of all tests between two members of a family is that of Neyman and Pearson (1933).
If the sum of one statistic of the records is sufficient, its law is one of four, and the error is a
formula. For discrete totals a coin decides at one value, so that the type I error is exactly alpha: no test has
a smaller type II error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, gammainc, gammaincc, gammainccinv, gammaincinv, nbdtr, ndtr, ndtri, pdtr

from privatest.bounds.lower_bound import Guide, about_enough, missed_bound
from privatest.decision.construction import unclamped
from privatest.errors import NothingToTest
from privatest.hypotheses import Distribution, Pair, make_pair
from privatest.hypotheses.sets import parameters_of
from privatest.numbers import Floats, first_true
from privatest.privacy import Notion

Cdf = Callable[[int], float]


def least_missed(pair: Pair, n: int, alpha: float) -> float:
    """Return a lower bound on the type II error of all tests on n records whose type I error is at most alpha.

    Guarantees: at most the best test's, up to rounding; equal to it if the family has a formula.
    """
    error = least_missed_between(pair.null, pair.alternative, n, alpha)
    if error is not None:
        return error
    test = unclamped(pair, n, "llr", alpha=alpha)
    # A coin at the cutoff would raise the type I error to alpha and lower the type II error by at most this ratio.
    least = float(test.score.value(test.cutoff, n))
    return max(test.beta - math.exp(min(-least, 700.0)) * max(alpha - test.alpha, 0.0), 0.0)


def least_missed_between(null: Distribution, alternative: Distribution, n: int, alpha: float) -> float | None:
    """Return the least type II error of all tests by a formula; None if there is none for the two distributions."""
    one, other = parameters_of(null), parameters_of(alternative)
    if one is None or other is None or one[0] != other[0]:
        return None
    moved = [i for i, (a, b) in enumerate(zip(one[1], other[1], strict=True)) if a != b]
    if not moved:
        return 1 - alpha
    which = one[0].name, one[0].parameters[moved[0]].name
    if which in SHIFTS and len(moved) == 1:
        return _normal(SHIFTS[which](n, *one[1]), SHIFTS[which](n, *other[1]), alpha)
    if which in SCALES and len(moved) == 1:
        return _gamma(SCALES[which](n, *one[1]), SCALES[which](n, *other[1]), alpha)
    if which in COUNTS and len(moved) == 1:
        return _counts(COUNTS[which](n, *one[1]), COUNTS[which](n, *other[1]), alpha)
    return None


# Mean and standard deviation of a normal total.
SHIFTS: dict[tuple[str, str], Callable[..., tuple[float, float]]] = {
    ("normal", "mean"): lambda n, mean, sd: (n * mean, math.sqrt(n) * sd),
    ("lognormal", "mean"): lambda n, mean, sd: (n * mean, math.sqrt(n) * sd),
}
# Shape and scale of a total with a gamma law: the sum of |x|, x^2 / 2, x^k or log x.
SCALES: dict[tuple[str, str], Callable[..., tuple[float, float]]] = {
    ("exponential", "scale"): lambda n, scale: (n, scale),
    ("gamma", "scale"): lambda n, shape, scale: (n * shape, scale),
    ("laplace", "scale"): lambda n, _, scale: (n, scale),
    ("normal", "sd"): lambda n, _, sd: (n / 2, sd**2),
    ("lognormal", "sd"): lambda n, _, sd: (n / 2, sd**2),
    ("half_normal", "scale"): lambda n, scale: (n / 2, scale**2),
    ("rayleigh", "scale"): lambda n, scale: (n, scale**2),
    ("weibull", "scale"): lambda n, shape, scale: (n, scale**shape),
    ("pareto", "shape"): lambda n, shape, _: (n, 1 / shape),
}
# Cdf and mean of an integer total.
COUNTS: dict[tuple[str, str], Callable[..., tuple[Cdf, float]]] = {
    ("bernoulli", "p"): lambda n, p: (lambda k: float(bdtr(min(k, n), n, p)), n * p),
    ("share_above", "share"): lambda n, _, p: (lambda k: float(bdtr(min(k, n), n, p)), n * p),
    ("binomial", "p"): lambda n, of, p: (lambda k: float(bdtr(min(k, n * int(of)), n * int(of), p)), n * of * p),
    ("poisson", "mean"): lambda n, mean: (lambda k: float(pdtr(k, n * mean)), n * mean),
    ("geometric", "p"): lambda n, p: (lambda k: float(nbdtr(k, n, p)), n * (1 - p) / p),
}


def _normal(null: tuple[float, float], alternative: tuple[float, float], alpha: float) -> float:
    return float(ndtr(-ndtri(alpha) - abs(null[0] - alternative[0]) / null[1]))


def _gamma(null: tuple[float, float], alternative: tuple[float, float], alpha: float) -> float:
    (shape, one), (_, other) = null, alternative
    if other > one:
        return float(gammainc(shape, float(gammainccinv(shape, alpha)) * one / other))
    return float(gammaincc(shape, float(gammaincinv(shape, alpha)) * one / other))


def _counts(null: tuple[Cdf, float], alternative: tuple[Cdf, float], alpha: float) -> float:
    (under_null, mean), (under_alternative, other) = null, alternative
    up = other > mean

    def tails(k: int, cdf: Cdf) -> float:
        """Probability of k or more, or of k or less, where the null is given up."""
        below = float(cdf(k - 1 if up else k)) if k - up >= 0 else 0.0
        return 1 - below if up else below

    # Giving up the null from `inside` on keeps to alpha; from `outside` on, one value nearer to the mean, it does not.
    if up:
        inside = first_true(lambda k: tails(k, under_null) <= alpha, 0)
        outside = inside - 1
    else:
        outside = first_true(lambda k: tails(k, under_null) > alpha, 0)
        inside = outside - 1
    (a, more), (power, rest) = ((tails(inside, cdf), tails(outside, cdf)) for cdf in (under_null, under_alternative))
    coin = (alpha - a) / (more - a)
    return min(max(1 - power - coin * (rest - power), 0.0), 1.0)


STEPS = 40
FEW, MANY = 14, 48
"""Numbers of distances at which the private bound is computed: for each value, and once for all values or if quick."""
NEARLY_NONE = 0.02
"""Beyond the distance at which the private bound is this small it adds next to nothing."""
SEARCHED = 20
"""At every distance of this number, and at the first, shapes of the bound are searched; others use those nearby."""
ANEW = 40
"""After this number of values the shapes of the bound are searched anew."""
SELDOM = 1e-3
"""Values that an interval holds less often add next to nothing to its length."""
DISTINGUISHED = 0.9
"""Two values are distinguishable if about n records suffice for this advantage."""

_Steps = tuple[Floats, Floats]
"""Increasing distances, and a lower bound on the probability of holding the value at each of them."""


_Shapes = dict[float, Guide | None]
"""The shape of a dominating pair that proved most, by distance."""


@dataclass(frozen=True, eq=False)
class PrivateIntervals:
    """All private intervals for the parameter of a family, with a lower bound on their mean lengths.

    Attributes:
        member: the distribution with a given value of the parameter.
        notion: notion of stability that the intervals meet.
        n: number of records.
        level: least probability with which an interval must hold the parameter.
        moves: whether the parameter only shifts the distribution, so that the bound depends on distances alone.
    """

    member: Callable[[float], Distribution]
    notion: Notion
    n: int
    level: float
    moves: bool = False

    def lengths(self, values: Sequence[float], ends: Sequence[tuple[float, float]]) -> Floats:
        """Return a lower bound on the mean length of an interval, for each of these values of the parameter.

        Args:
            values: values of the parameter, best in order, since shapes found at one help at the next.
            ends: for each value, the range of other values that is integrated over; any range gives a valid bound.

        Guarantees: no interval that meets the notion, and holds every value with a probability of at least ``level``,
        is shorter in the mean.
        """
        reaches = [[abs(end - value) for end in both] for value, both in zip(values, ends, strict=True)]
        if self.moves:  # once for all values, for the one that is the farthest from an end
            far = [int(np.argmax([reach[side] for reach in reaches])) for side in (0, 1)]
            points = MANY if len(values) > FEW else FEW
            steps = [self._side(values[i], ends[i][side], {}, points) for side, i in enumerate(far)]
            return np.array([sum(map(_lower_sum, steps, reach)) for reach in reaches])
        lengths = np.zeros(len(values))
        for i, (value, both) in enumerate(zip(values, ends, strict=True)):
            if i % ANEW == 0 or i & (i - 1) == 0:  # shapes change most near an end of the range
                shapes: tuple[_Shapes, _Shapes] = {}, {}
            for end, cached, reach in zip(both, shapes, reaches[i], strict=True):
                lengths[i] += _lower_sum(self._side(value, end, cached), reach)
        return lengths

    def _side(self, at: float, end: float, cached: _Shapes, points: int = FEW) -> list[_Steps]:
        """Return the bounds for all tests and for private tests, between a value and an end.

        Args:
            known: shapes of a value nearby, used instead of a search; if empty, it is filled with those found.
            points: number of distances at which the private bound is computed if no shapes are known.
        """
        if end == at:
            return []
        plain = np.linspace(at, self._last_relevant(at, end), STEPS + 1)[1:]
        anyhow = np.abs(plain - at), np.array([self._held_by_any(other, at) for other in plain.tolist()])
        sign, reach = math.copysign(1.0, end - at), abs(end - at)

        def privately(distance: float, shapes: list[Guide | None], *, walk: bool) -> tuple[float, Guide | None]:
            other = _nearer(at + sign * distance, end, at)
            return max((self._held_by_private(other, at, shape, walk=walk) for shape in shapes), key=lambda one: one[0])

        bounds: dict[float, float] = {}
        for distance in sorted({min(distance, reach) for distance in cached}):
            bounds[distance] = privately(distance, [cached.get(distance, cached[max(cached)])], walk=False)[0]
        if not bounds:
            self._refine(abs(self._nearest_distinguished(at, end) - at), points, anyhow, bounds, cached, privately)
            plain = np.append(anyhow[1], 0.0)
            for distance in sorted(bounds)[:-1]:  # values nearby skip distances at which privacy costs next to nothing
                if bounds[distance] < 0.8 * plain[np.searchsorted(anyhow[0], distance)]:
                    del cached[distance]
        while bounds[max(bounds)] > NEARLY_NONE and max(bounds) < reach:
            distance, shape = min(1.2 * max(bounds), reach), cached[max(cached)]
            bounds[distance] = privately(distance, [shape], walk=True)[0]
        if all(shape is None for shape in cached.values()):  # two-point domains need no shapes
            cached.clear()
        return [anyhow, (np.array(sorted(bounds)), np.array([bounds[distance] for distance in sorted(bounds)]))]

    def _refine(
        self,
        distance: float,
        points: int,
        anyhow: _Steps,
        bounds: dict[float, float],
        cached: _Shapes,
        privately: Callable[..., tuple[float, Guide | None]],
    ) -> None:
        """Compute the private bound at a first distance, then where the sum over steps can gain most."""
        bounds[distance], cached[distance] = privately(distance, [None], walk=True)
        plain, points = np.append(anyhow[1], 0.0), MANY if cached[distance] is None else points
        for i in range(points):
            ends = np.array([0.0, *sorted(bounds)])
            values = np.array([self.level, *(bounds[one] for one in sorted(bounds))])
            gains = np.diff(ends) * (values[:-1] - np.maximum(values[1:], plain[np.searchsorted(anyhow[0], ends[1:])]))
            place = int(np.argmax(gains))
            low, high = float(ends[place]), float(ends[place + 1])
            shapes = [cached[high]]
            if points == MANY or i % SEARCHED == 0:
                shapes += [cached.get(low), None]
            value, shape = privately((low + high) / 2, list(dict.fromkeys(shapes)), walk=True)
            bounds[(low + high) / 2], cached[(low + high) / 2] = max(value, bounds[high]), shape

    def _pair(self, other: float, at: float) -> Pair | None:
        try:
            return make_pair(self.member(other), self.member(at))
        except NothingToTest:
            return None

    def _held_by_any(self, other: float, at: float) -> float:
        """A lower bound on the probability that an interval of this level, private or not, holds ``other`` if ``at`` is
        true."""
        error = least_missed_between(self.member(other), self.member(at), self.n, 1 - self.level)
        if error is not None:
            return error
        pair = self._pair(other, at)
        return self.level if pair is None else least_missed(pair, self.n, 1 - self.level)

    def _held_by_private(
        self, other: float, at: float, shape: Guide | None = None, *, walk: bool = False
    ) -> tuple[float, Guide | None]:
        """Return :meth:`_held_by_any` for private intervals, and the shape that proves it (``shape`` if given)."""
        pair = self._pair(other, at)
        if pair is None:
            return self.level, shape
        return missed_bound(pair, self.notion, self.n, 1 - self.level, shape, walk=walk or shape is None)

    def _nearest_distinguished(self, at: float, end: float) -> float:
        """Return approximately the nearest value that n records can distinguish from this one, at most the end."""

        def is_distinguished(other: float) -> bool:
            pair = self._pair(other, at)
            return pair is not None and about_enough(pair, self.notion, DISTINGUISHED) < self.n

        far = end
        if not is_distinguished(far):
            return far
        # Invariant after the loop: `far` is distinguished, the value half way to it is not.
        while abs(far - at) > abs(end - at) / 2**20 and is_distinguished((far + at) / 2):
            far = (far + at) / 2
        return far

    def _last_relevant(self, at: float, end: float) -> float:
        """Return a value beyond which intervals hold no value with a probability of at least ``SELDOM``."""
        far = end
        while abs(far - at) > abs(end - at) / 2**20 and self._held_by_any(at + (far - at) / 1.5, at) < SELDOM:
            far = at + (far - at) / 1.5
        return far


def _nearer(one: float, other: float, at: float) -> float:
    return min(one, other, key=lambda value: abs(value - at))


def _lower_sum(steps: list[_Steps], reach: float) -> float:
    """A lower bound on the integral, up to ``reach``, of a maximum of decreasing functions given at some distances."""
    if not steps:
        return 0.0
    ends = np.unique(np.minimum(np.concatenate([distances for distances, _ in steps]), reach))
    largest = np.zeros(len(ends))
    for distances, values in steps:
        place = np.searchsorted(distances, ends)
        largest = np.maximum(largest, np.append(values, 0.0)[place])
    return float(np.diff(ends, prepend=0.0) @ largest)
