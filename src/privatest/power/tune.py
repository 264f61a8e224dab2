"""The clamp that needs the fewest records, chosen by exact error rates."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from privatest.hypothesis.neighbours import REPLACE, Neighbourhood
from privatest.power.goal import Goal
from privatest.power.profile import Profile

__all__ = ["rough_clamp", "tuned_clamp"]

# Candidate ends of the clamp, in units of the ratio's typical size; 0 stands for "hardly anything".
_GRID = (0.05, 0.4, 1.0, 2.0, 4.0, 8.0, 32.0)
_FIRST_STEP, _LAST_STEP = 1.6, 1.03
_MOST_TRIALS = 160

Clamp = tuple[float, float]


def tuned_clamp(
    profile: Profile, epsilon: Fraction, n: int, goal: Goal, *extra: Clamp, around: Neighbourhood = REPLACE
) -> Clamp:
    """(a, b) of the largest margin at n records; ``extra`` clamps (the paper's) compete too.

    A grid over both ends, then a pattern search from the best two cells of it: error rates are smooth in the ends but
    can have two peaks, one for counting rare records and one for using them all (the paper's three-point example).
    """
    least, most = float(profile.ratios[0]), float(profile.ratios[-1])
    if len(profile.ratios) <= 2:  # every clamp gives the same test up to scale
        return extra[0] if extra else (max(least, -1.0), min(most, 1.0))
    tried: dict[Clamp, float] = {}

    def margin(clamp: Clamp) -> float:
        a, b = max(clamp[0], least), min(clamp[1], most)
        key = (float(f"{a:.12g}"), float(f"{b:.12g}"))
        if key not in tried:
            tried[key] = goal.margin(profile.curves(key, epsilon, n, around))
        return tried[key]

    for clamp in extra:
        margin(clamp)
    ranked = _ranked(profile, epsilon, n, around)
    for _, a, b in ranked[:14]:
        margin((a, b))
    starts = sorted(tried, key=lambda clamp: -tried[clamp])[:2]
    best = max((_climb(margin, start, tried) for start in starts), key=margin)
    return max(tried, key=lambda clamp: tried[clamp]) if tried else best


def rough_clamp(profile: Profile, epsilon: Fraction, n: int, around: Neighbourhood = REPLACE) -> Clamp:
    """About the best (a, b), by the means and variances of the noisy total alone: error rates are not computed."""
    tried: dict[Clamp, float] = {}

    def value(clamp: Clamp) -> float:
        if clamp not in tried:
            tried[clamp] = _deflection(profile, clamp, float(epsilon), n, around)
        return tried[clamp]

    _, *start = _ranked(profile, epsilon, n, around)[0]
    return _climb(value, (start[0], start[1]), tried)


def _ranked(profile: Profile, epsilon: Fraction, n: int, around: Neighbourhood) -> list[tuple[float, float, float]]:
    """(deflection, a, b) of the clamps of the grid, the most promising first."""
    least, most = float(profile.ratios[0]), float(profile.ratios[-1])
    size = _typical(profile)
    lows = sorted({max(-g * size, least) for g in _GRID})
    highs = sorted({min(g * size, most) for g in _GRID})
    return sorted(
        ((_deflection(profile, (a, b), float(epsilon), n, around), a, b) for a in lows for b in highs), reverse=True
    )


def _typical(profile: Profile) -> float:
    """The root mean square of the finite part of the ratio, both hypotheses together, outliers apart."""
    finite = np.isfinite(profile.ratios)
    ratios, mass = np.abs(profile.ratios[finite]), (profile.p + profile.q)[finite] / 2
    order = np.argsort(ratios)
    below = np.cumsum(mass[order])
    if len(below) == 0 or below[-1] <= 0:
        return 1.0
    typical = float(ratios[order][np.searchsorted(below, 0.7 * below[-1])])
    return typical or 1.0


def _deflection(profile: Profile, clamp: Clamp, epsilon: float, n: int, around: Neighbourhood) -> float:
    """Gap of the means over the standard deviation of the noisy total: a quick guide to where to look."""
    gap, null, alternative = profile.moments(clamp)
    low, high = max(clamp[0], float(profile.ratios[0])), min(clamp[1], float(profile.ratios[-1]))
    width = around.extent(low, high, profile.centre(clamp))
    noise = 2 * (width / (2 * math.sinh(min(epsilon, 40) / 2))) ** 2 / 2 + width**2 / 12
    return n * gap / math.sqrt(n * (null + alternative) / 2 + noise)


def _climb(margin: Callable[[Clamp], float], start: Clamp, tried: dict[Clamp, float]) -> Clamp:
    """Pattern search: multiply either end, or both, by the step; shrink the step when nothing helps."""
    here, step = start, _FIRST_STEP
    value = margin(here)
    while step > _LAST_STEP and len(tried) < _MOST_TRIALS:
        moves = [(s, 1.0) for s in (step, 1 / step)] + [(1.0, s) for s in (step, 1 / step)]
        moves += [(s, s) for s in (step, 1 / step)]
        for left, right in moves:
            there = (here[0] * left, here[1] * right)
            if there[0] < there[1] and margin(there) > value + 1e-12:
                here, value = there, margin(there)
                break
        else:
            step = math.sqrt(step)
    return here
