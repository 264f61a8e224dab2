"""A law tilted by e^(theta s): what makes a tail typical, so that it is found to its own accuracy."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from privatest.products import row_dots

__all__ = ["NEGLIGIBLE_EXPONENT", "reach_of_sum", "saddle", "tilt", "window_ends"]

Floats = npt.NDArray[np.float64]

# exp(-42) < 1e-18: what windows may leave out.
NEGLIGIBLE_EXPONENT = 42.0
# A step that n records take with less than this probability need not find room in a window.
RAREST_STEP = 3e-19


def tilt(steps: Floats, law: Floats, theta: float) -> tuple[Floats, float]:
    """The law tilted by e^(theta step), and log of the mass it was divided by."""
    exponents = theta * steps
    shift = float(exponents.max())
    with np.errstate(under="ignore"):
        weights = law * np.exp(exponents - shift)
    mass = float(weights.sum())
    return weights / mass, shift + math.log(mass)


def saddle(steps: Floats, law: Floats, n: int, level: float, most: float) -> float:
    """theta in [0, most] that minimises n log M(theta) - theta level: the best tilt for Pr[J + N > level].

    Rounded to a binary fraction by at most a quarter of the tilted sum's standard deviation, so that
    neighbouring levels share it and what was computed for it.

    Invariant of the bisection: the tilted mean is below level/n at `left` and not below at `right`.
    """
    goal = level / n
    if float(law @ steps) >= goal:
        return 0.0
    limit = most * (1 - 1e-9)
    if math.isinf(limit):
        limit = 1e-6
        while limit < 700 and float(tilt(steps, law, limit)[0] @ steps) < goal:
            limit *= 2
    if float(tilt(steps, law, limit)[0] @ steps) <= goal:
        return limit
    left, right = 0.0, limit
    while right - left > 1e-3 * right:
        middle = (left + right) / 2
        if float(tilt(steps, law, middle)[0] @ steps) < goal:
            left = middle
        else:
            right = middle
    found = (left + right) / 2
    tilted, _ = tilt(steps, law, found)
    deviation = math.sqrt(n * max(float(tilted @ (steps - tilted @ steps) ** 2), 1e-300))
    grain = math.ldexp(1.0, math.floor(math.log2(0.5 / deviation)))
    return min(round(found / grain) * grain, limit)


def window_ends(steps: Floats, law: Floats, n: int) -> tuple[int, int]:
    """Ends of a window that the sum of n steps leaves with probability under 2e-18, by Chernoff's bound.

    Steps at either end that n records all but never take are left out of the bound: one that is far would spoil it.
    """
    inner = (n * np.cumsum(law) > RAREST_STEP) & (n * np.cumsum(law[::-1])[::-1] > RAREST_STEP)
    steps, law = steps[inner], law[inner]
    mean = float(law @ steps)
    down, up = reach_of_sum(steps, law, n)
    first, last = max(n * mean - down, n * float(steps[0])), min(n * mean + up, n * float(steps[-1]))
    return math.floor(first), math.ceil(last)


def reach_of_sum(steps: Floats, law: Floats, n: int, tilts: int = 40) -> tuple[float, float]:
    """How far below and above its mean the sum of n steps goes with a probability of over 2e-18, by Chernoff's bound.

    The sum of fewer steps stays within the same reach of its own mean.
    """
    mean = float(law @ steps)
    spread = math.sqrt(max(float(law @ (steps - mean) ** 2), 1e-300))
    u = np.geomspace(1e-2, 50.0, tilts) / (spread * math.sqrt(n))
    ends = []
    for sign in (-1.0, 1.0):
        exponents = np.multiply.outer(u, sign * (steps - mean))
        with np.errstate(under="ignore"):
            cumulants = np.log(row_dots(np.exp(np.minimum(exponents, 600.0)), law))
        cumulants[exponents.max(axis=1) > 600.0] = math.inf
        ends.append(float(np.min((n * cumulants + NEGLIGIBLE_EXPONENT) / u)))
    return ends[0], ends[1]
