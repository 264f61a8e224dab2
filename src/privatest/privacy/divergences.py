"""Divergences of two coins."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

Odds = tuple[float, float]
"""A probability and its complement, each accurate relative to itself."""


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
    from scipy.special import log_ndtr  # start-up: planning a pure test needs no scipy

    return float(log_ndtr(z))


def quantile(p: float, rest: float) -> float:
    """z with Phi(z) = p, accurate in both tails."""
    from scipy.special import ndtri  # start-up: planning a pure test needs no scipy

    return float(ndtri(p)) if p <= 0.5 else -float(ndtri(rest))


def kullback(p: float, u: float, q: float, v: float) -> float:
    """p log(p/q) + u log(u/v), for p + u = q + v = 1, as a sum of two terms that are not negative."""
    total = 0.0
    for a, b in ((p, q), (u, v)):
        r = log_ratio(b, a)
        total += a * (math.expm1(r) - r) if abs(r) < 1 else (b - a) - a * r
    return total


def renyi_divergence(p: float, u: float, q: float, v: float, order: float) -> float:
    """Divergence of (p, u) from (q, v), of an order above 1."""
    first, second = log_ratio(p, q), log_ratio(u, v)
    if order * max(first, second) > 30:
        a, b = math.log(q) + order * first, math.log(v) + order * second
        return (max(a, b) + math.log1p(math.exp(-abs(a - b)))) / (order - 1)
    terms = ((q, first), (v, second))
    return math.log1p(sum(a * (math.expm1(order * r) - order * math.expm1(r)) for a, r in terms)) / (order - 1)


def concentration(p: float, u: float, q: float, v: float) -> float:
    """The supremum over orders a > 1 of the divergence over a; at 1 it is the divergence of Kullback and Leibler."""
    largest = max(abs(log_ratio(p, q)), abs(log_ratio(u, v)))
    base = kullback(p, u, q, v)
    if base <= 0:
        return 0.0

    def over_order(s: float) -> float:
        order = 1 + math.exp(s)
        return renyi_divergence(p, u, q, v, order) / order

    # D_a is at most `largest`, so that beyond largest/base the ratio is below its value at 1.
    return max(base, golden_maximum(over_order, -9.0, math.log(max(largest / base, 1.0) + 1.0)))


def concentrated(p: float, u: float, rho: float) -> tuple[float, float]:
    """The largest logit whose coin has :func:`concentration` at most rho from and to (p, u), and the order that binds.

    The least of what the orders allow, one by one; the order 1 stands for Kullback and Leibler.
    """
    start = math.log(p) - math.log(u)

    def first(y: float) -> float:
        q, v = from_logit(y)
        return max(kullback(p, u, q, v), kullback(q, v, p, u)) - rho

    last = root(first, start)
    return min((last, 1.0), *(_binding((p, u), rho, start, last, forward) for forward in (True, False)))


def _binding(coin: Odds, rho: float, start: float, last: float, forward: bool) -> tuple[float, float]:
    """The logit that the orders allow in one direction, at most ``last``, and the order that binds (1: none)."""
    binding = 1.0

    def excess(order: float, y: float) -> float:
        other = from_logit(y)
        found = renyi_divergence(*coin, *other, order) if forward else renyi_divergence(*other, *coin, order)
        return found - rho * order

    def worst(y: float) -> tuple[float, float]:
        """The order that is exceeded most at this logit, and by how much of it."""
        # Divergences are at most the largest ratio: no order beyond this one binds.
        most = max(abs(log_ratio(a, b)) for a, b in zip(coin, from_logit(y), strict=True)) / rho
        end = math.log(max(most, 1.0) + 1.0)
        s, top = golden_peak(lambda s: excess(1 + math.exp(s), y) / (1 + math.exp(s)), -9.0, end)
        return 1 + math.exp(s), top

    # Invariant: the orders allow no more than `last`. The one that is exceeded most there says how much less.
    for _ in range(20):
        order, top = worst(last)
        if top <= 1e-15 * rho:
            break
        found = root(partial(excess, order), start)
        if not found < last - 1e-16 * max(abs(last), 1e-2):
            break
        last, binding = found, order
    return last, binding


def kullback_slope(p: float, u: float, q: float, v: float) -> tuple[float, float]:
    """Derivatives of :func:`kullback` in p and in q."""
    return log_ratio(p, q) - log_ratio(u, v), (q - p) / (q * v)


def renyi_slope(p: float, u: float, q: float, v: float, order: float) -> tuple[float, float]:
    """Derivatives of :func:`renyi_divergence` in p and in q, both times one positive factor."""
    first, second = log_ratio(p, q), log_ratio(u, v)
    most = (order - 1) * max(first, second)
    a, b = math.exp((order - 1) * first - most), math.exp((order - 1) * second - most)
    return order * (a - b), (order - 1) * (b * u / v - a * p / q)


def log_ratio(a: float, b: float) -> float:
    """log(a/b), also where the quotient is near 1 or out of range."""
    difference = (a - b) / b
    return math.log1p(difference) if abs(difference) < 0.5 else math.log(a) - math.log(b)


_GOLDEN = (math.sqrt(5) - 1) / 2
_GRID = 24


def golden_maximum(of: Callable[[float], float], low: float, high: float) -> float:
    """The largest value between the two ends."""
    return golden_peak(of, low, high)[1]


def golden_peak(of: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Where a function is largest, and how large: on a grid, then by golden section around its best point."""
    points = [low + (high - low) * i / _GRID for i in range(_GRID + 1)]
    values = [of(x) for x in points]
    top = max(range(len(values)), key=values.__getitem__)
    left, right = points[max(top - 1, 0)], points[min(top + 1, _GRID)]
    x, y = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
    fx, fy = of(x), of(y)
    best = max((values[top], points[top]), (fx, x), (fy, y))
    # Invariant: the largest value between the neighbours of the grid's best lies between left and right.
    while right - left > 1e-8 * max(abs(left), abs(right), 1e-3):
        if fx < fy:
            left, x, fx = x, y, fy
            y = left + _GOLDEN * (right - left)
            fy = of(y)
        else:
            right, y, fy = y, x, fx
            x = right - _GOLDEN * (right - left)
            fx = of(x)
        best = max(best, (fx, x), (fy, y))
    return best[1], best[0]


def root(excess: Callable[[float], float], start: float) -> float:
    """The last y from ``start`` on at which an increasing excess is not positive; it is negative at the start.

    Invariant of the bisection: the excess is not positive at `low` and positive at `high`; what is returned is `low`.
    """
    low, step = start, 1e-3
    high = low + step
    while excess(high) <= 0:
        low, step = high, 2 * step
        high = low + step
        if high > 700:
            return low
    below, above = excess(low), excess(high)
    for turn in range(200):
        if high - low <= 2e-16 * max(abs(low), abs(high), 1e-2):
            break
        # Regula falsi, every third time a plain halving.
        middle = (low + high) / 2 if turn % 3 == 2 else low - below * (high - low) / (above - below)
        if not low < middle < high:
            middle = (low + high) / 2
            if not low < middle < high:
                break
        value = excess(middle)
        if value <= 0:
            low, below = middle, value
        else:
            high, above = middle, value
    return low
