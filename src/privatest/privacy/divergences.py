"""Divergences of two coins, also of coins that are nearly the same or nearly certain, and maxima of functions.

A coin is given by both of its probabilities, each with a small relative error: (p, u) and (q, v), p + u = q + v = 1.
Notions that bound divergences are computed from these functions (``notion.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from privatest.numbers import root

Odds = tuple[float, float]
"""A probability and its complement, each with a small relative error."""


def from_logit(y: float) -> Odds:
    """e^y/(1 + e^y) and its complement."""
    small = math.exp(-abs(y))
    less, more = small / (1 + small), 1 / (1 + small)
    return (more, less) if y >= 0 else (less, more)


def normal(z: float) -> Odds:
    """Phi(z) and 1 - Phi(z)."""
    scaled = z / math.sqrt(2)
    return math.erfc(-scaled) / 2, math.erfc(scaled) / 2


def log_normal(z: float) -> float:
    """log Phi(z), accurate in the lower tail."""
    from scipy.special import log_ndtr  # start-up: planning a pure test needs no scipy

    return float(log_ndtr(z))


def quantile(p: float, rest: float) -> float:
    """z with Phi(z) = p, accurate in both tails."""
    from scipy.special import ndtri  # start-up: planning a pure test needs no scipy

    return float(ndtri(p)) if p <= 0.5 else -float(ndtri(rest))


def kullback(p: float, u: float, q: float, v: float) -> float:
    """The divergence of Kullback and Leibler of (p, u) from (q, v), as a sum of two terms that are not negative."""
    total = 0.0
    for a, b in ((p, q), (u, v)):
        r = log_ratio(b, a)
        total += a * (math.expm1(r) - r) if abs(r) < 1 else (b - a) - a * r
    return total


def renyi_divergence(p: float, u: float, q: float, v: float, order: float) -> float:
    """Return the Renyi divergence of (p, u) from (q, v), of an order above 1."""
    first, second = log_ratio(p, q), log_ratio(u, v)
    if order * max(first, second) > 30:
        a, b = math.log(q) + order * first, math.log(v) + order * second
        return (max(a, b) + math.log1p(math.exp(-abs(a - b)))) / (order - 1)
    terms = ((q, first), (v, second))
    return math.log1p(sum(a * (math.expm1(order * r) - order * math.expm1(r)) for a, r in terms)) / (order - 1)


def concentration(p: float, u: float, q: float, v: float) -> float:
    """The supremum over orders a > 1 of the Renyi divergence over a. At order 1 it is that of Kullback and Leibler."""
    largest = max(abs(log_ratio(p, q)), abs(log_ratio(u, v)))
    base = kullback(p, u, q, v)
    if base <= 0:
        return 0.0

    def over_order(s: float) -> float:
        order = 1 + math.exp(s)
        return renyi_divergence(p, u, q, v, order) / order

    # D_a is at most `largest`, so that beyond the order largest/base the quotient is below its value at 1.
    return max(base, golden_maximum(over_order, -9.0, math.log(max(largest / base, 1.0) + 1.0)))


def concentrated(p: float, u: float, rho: float) -> tuple[float, float]:
    """The largest logit whose coin has :func:`concentration` at most rho from and to (p, u), and the order that binds.

    It is the least of the logits that the single orders allow; the order 1 stands for Kullback and Leibler.
    """
    start = math.log(p) - math.log(u)

    def excess(y: float) -> float:
        q, v = from_logit(y)
        return max(kullback(p, u, q, v), kullback(q, v, p, u)) - rho

    last = last_allowed(excess, start)
    return min((last, 1.0), *(_binding((p, u), rho, start, last, forward) for forward in (True, False)))


def _binding(coin: Odds, rho: float, start: float, last: float, forward: bool) -> tuple[float, float]:
    """The largest logit, at most ``last``, that all orders allow in one direction, and the order that binds, or 1."""
    binding = 1.0

    def excess(order: float, y: float) -> float:
        other = from_logit(y)
        pair = (*coin, *other) if forward else (*other, *coin)
        return renyi_divergence(*pair, order) - rho * order

    def worst(y: float) -> tuple[float, float]:
        """Return the order at which this logit exceeds its bound most, relative to the order, and by how much."""
        # Divergences are at most the largest log-ratio: no order beyond this one binds.
        most = max(abs(log_ratio(a, b)) for a, b in zip(coin, from_logit(y), strict=True)) / rho
        end = math.log(max(most, 1.0) + 1.0)
        s, top = golden_peak(lambda s: excess(1 + math.exp(s), y) / (1 + math.exp(s)), -9.0, end)
        return 1 + math.exp(s), top

    # Invariant: the orders allow no more than `last`. The order that it exceeds most says how much less.
    for _ in range(20):
        order, top = worst(last)
        if top <= 1e-15 * rho:
            break
        allowed = last_allowed(partial(excess, order), start)
        if not allowed < last - 1e-16 * max(abs(last), 1e-2):
            break
        last, binding = allowed, order
    return last, binding


def kullback_slope(p: float, u: float, q: float, v: float) -> tuple[float, float]:
    """Return the derivatives of :func:`kullback` in p and in q."""
    return log_ratio(p, q) - log_ratio(u, v), (q - p) / (q * v)


def renyi_slope(p: float, u: float, q: float, v: float, order: float) -> tuple[float, float]:
    """Return the derivatives of :func:`renyi_divergence` in p and in q, times a common positive factor."""
    first, second = log_ratio(p, q), log_ratio(u, v)
    most = (order - 1) * max(first, second)
    a, b = math.exp((order - 1) * first - most), math.exp((order - 1) * second - most)
    return order * (a - b), (order - 1) * (b * u / v - a * p / q)


def log_ratio(a: float, b: float) -> float:
    """log(a/b), accurate also if the quotient is near 1 or out of range."""
    difference = (a - b) / b
    return math.log1p(difference) if abs(difference) < 0.5 else math.log(a) - math.log(b)


_GOLDEN = (math.sqrt(5) - 1) / 2
_GRID = 24


def golden_maximum(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the largest value of a function between two ends."""
    return golden_peak(function, low, high)[1]


def golden_peak(function: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Where a function is largest between two ends, and that value: on a grid, then by golden section around it."""
    points = [low + (high - low) * i / _GRID for i in range(_GRID + 1)]
    values = [function(x) for x in points]
    top = max(range(len(values)), key=values.__getitem__)
    left, right = points[max(top - 1, 0)], points[min(top + 1, _GRID)]
    x, y = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
    fx, fy = function(x), function(y)
    best = max((values[top], points[top]), (fx, x), (fy, y))
    # Invariant: the largest value between the neighbours of the grid's best lies between left and right.
    while right - left > 1e-8 * max(abs(left), abs(right), 1e-3):
        if fx < fy:
            left, x, fx = x, y, fy
            y = left + _GOLDEN * (right - left)
            fy = function(y)
        else:
            right, y, fy = y, x, fx
            x = right - _GOLDEN * (right - left)
            fx = function(x)
        best = max(best, (fx, x), (fy, y))
    return best[1], best[0]


def last_allowed(excess: Callable[[float], float], start: float) -> float:
    """Return the last y from ``start`` on, at most about 700, at which an increasing excess is not positive.

    The excess must be negative at the start; it is not positive at the y that is returned.
    """
    low, step = start, 1e-3
    while excess(high := low + step) <= 0:
        low, step = high, 2 * step
        if low + step > 700:
            return low
    return root(lambda y: excess(y) > 0, low, high, relative=2e-16, absolute=2e-18)[0]
