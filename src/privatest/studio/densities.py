"""Arrays for the picture of P and Q: densities or probabilities, and the ratio with its clamp. All of it public."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import privatest as pt
from privatest import vectors

__all__ = ["densities"]


POINTS = 241
MOST_BARS = 200
OUTSIDE = 0.002
"""Probability that may lie beyond either end of the picture."""


def densities(split: pt.Decomposition) -> dict[str, Any]:
    """x, P(x), Q(x) and the log ratio L(x), at points that show both laws; null where a value is infinite."""
    pair: Any = split.pair
    if pair.kind == "labels":
        order = np.argsort(-np.maximum(pair.p, pair.q), kind="stable")[:MOST_BARS]
        shown = np.sort(order)
        x: list[Any] = [str(pair.labels[i]) for i in shown]
        p, q, ratio = pair.p[shown], pair.q[shown], pair.ratios[shown]
    else:
        at = _reals(pair) if pair.kind == "reals" else _integers(pair)
        density = "pdf" if pair.kind == "reals" else "pmf"
        with np.errstate(all="ignore"):
            p, q = (np.asarray(getattr(law, density)(at), dtype=float) for law in (pair.null, pair.alternative))
            ratio = np.asarray(pair.ratio(at), dtype=float)
        x = at.tolist()
    low, high = split.clamp
    return {
        "kind": pair.kind,
        "x": x,
        "null": _finite(p),
        "alternative": _finite(q),
        "clamped": _finite(np.clip(ratio, low, high)),
        "ratio": _finite(ratio),
    }


def _ends(pair: Any) -> tuple[float, float]:
    """An interval with nearly all of both laws; of heavy tails the part around the middle."""
    lows, highs = [], []
    for law in (pair.null, pair.alternative):
        first, lower, upper, last = (
            float(value) for value in (*law.ppf(np.array([OUTSIDE, 0.25])), *law.isf(np.array([0.25, OUTSIDE])))
        )
        reach = 6 * (upper - lower)
        if reach > 0:
            first, last = max(first, lower - reach), min(last, upper + reach)
        lows.append(first)
        highs.append(last)
    low, high = min(lows), max(highs)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        middle = low if math.isfinite(low) else 0.0
        return middle - 1, middle + 1
    return low, high


def _reals(pair: Any) -> vectors.Floats:
    low, high = _ends(pair)
    margin = 0.03 * (high - low)
    inside_low, inside_high = pair.support
    # A density may be infinite at an end of its support: step inside by a little.
    tiny = 1e-6 * (high - low)
    start, stop = max(low - margin, inside_low + tiny), min(high + margin, inside_high - tiny)
    if not start < stop:
        start, stop = low, high
    return np.linspace(start, stop, POINTS)


def _integers(pair: Any) -> vectors.Floats:
    low, high = _ends(pair)
    first, last = math.floor(low), math.ceil(high)
    # Laws with few values: show every one, with a place to spare where there is one.
    step = max(1, -(-(last - first + 1) // MOST_BARS))
    edges = [law.support for law in (pair.null, pair.alternative)]
    first = max(first - 1, int(max(min(edge[0] for edge in edges), first - 1)))
    last = min(last + 1, int(min(max(edge[1] for edge in edges), last + 1)))
    return np.arange(first, last + 1, step, dtype=np.float64)


def _finite(values: vectors.Floats) -> list[float | None]:
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in values.tolist()]
