r"""What no private interval can beat.

Let I be the interval of any eps-DP mechanism that holds every parameter with probability c at least. By Pratt's
identity its mean length at :math:`\theta` is :math:`\int \Pr_\theta[\theta' \in I]\, d\theta'`, and "is :math:`\theta'`
in I" is an eps-DP test between :math:`\theta'` (which it accepts with probability c at least) and :math:`\theta`. So

.. math:: E_\theta |I| \ge \int \max(\beta_\epsilon(\theta', \theta),\ \beta(\theta', \theta))\, d\theta',

with :math:`\beta_\epsilon` at most the least type II error of an eps-DP test whose type I error is 1 - c, and
:math:`\beta` that of any test (Neyman and Pearson). This contains, and is several times as much as, the bound from two
points only: :math:`2h (1 - 2(1-c) - A)` at distance 2h, A the most that the advantage of an eps-DP test can be.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from privatest.bounds.lower_bound import about_enough, missed_bound
from privatest.bounds.neyman_pearson import least_missed
from privatest.errors import NothingToTest
from privatest.hypotheses import Distribution, Pair, make_pair
from privatest.privacy import Notion
from privatest.vectors import Floats

__all__ = ["length_bound"]

STEPS = 40
PLACES = (4, 3.5, 3, 2.5, 2, 1.5, 1, 0.5, 4.5, 5, 5.5, 6, 7, 8)
"""At so many quarters of a telling distance the private bound is computed."""
MANY_PLACES = tuple(place / 6 for place in range(1, 37))
BETTER = 0.015
"""By how much, at least, the bound should rise from one of these to the next nearer one; else it is searched anew."""
SELDOM = 1e-3
"""What an interval holds less often than this adds next to nothing to its length."""
TOLD_APART = 0.9
"""A distance is telling if about n records have this advantage."""


def length_bound(
    member: Callable[[float], Distribution], at: float, ends: tuple[float, float], notion: Notion, n: int, level: float
) -> float:
    """The least mean length, where the parameter is ``at``, of a private interval.

    Args:
        member: a distribution for each parameter.
        ends: between which values are counted, those that an interval may hold at all; any two make a valid bound.
        notion: what the interval meets.
        level: how often the interval must hold the parameter, at least.
    """

    def pair_with(other: float) -> Pair | None:
        try:
            return make_pair(member(min(max(other, ends[0]), ends[1])), member(at))
        except NothingToTest:
            return None

    def anyhow(other: float) -> float:
        """How likely an interval holds the other value, private or not."""
        pair = pair_with(other)
        return level if pair is None else least_missed(pair, n, 1 - level)

    def privately(far: float) -> tuple[list[float], list[float]]:
        """The same of a private one, at some distances."""
        first = pair_with(at + far)
        guide = None if first is None else missed_bound(first, notion, n, 1 - level)[1]
        wanted = PLACES if guide is not None else MANY_PLACES  # two points only, which takes no time
        places = [place for place in wanted if ends[0] <= at + place * far / 4 <= ends[1]]
        found: list[float] = []
        for i, place in enumerate(places):
            pair = pair_with(at + place * far / 4)
            if pair is None:
                found.append(level)
                continue
            value, shape = missed_bound(pair, notion, n, 1 - level, guide)
            if i > 0 and place < PLACES[0] and guide is not None and value < found[i - 1] + BETTER:
                value, shape = max((value, shape), missed_bound(pair, notion, n, 1 - level), key=lambda one: one[0])
            guide = shape if place <= PLACES[0] else guide
            found.append(value)
        return [abs(place * far / 4) for place in places], found

    def telling(reach: float) -> float:
        """Half of it, or a quarter, and so on: the first at which n records are about too few to be sure."""
        far = reach
        while abs(far) > abs(reach) / 1024:
            pair = pair_with(at + far)
            if pair is None or about_enough(pair, notion, TOLD_APART) >= n:
                break
            far /= 2
        return far

    def visible(reach: float) -> float:
        """Half of it, or a quarter, and so on: the first that an interval holds now and then."""
        far = reach
        while abs(far) > abs(reach) / 1024 and anyhow(at + far / 2) < SELDOM:
            far /= 2
        return far

    length = 0.0
    for end in ends:
        if end == at:
            continue
        reach = end - at
        # Both fall with the distance: the lower sum of either is below its integral, whatever the steps.
        plain = visible(reach) * np.arange(1, STEPS + 1) / STEPS
        steps = [(np.abs(plain).tolist(), [anyhow(at + float(d)) for d in plain]), privately(telling(reach))]
        length += _lower_sum([_sorted(np.array(distances), np.array(found)) for distances, found in steps])
    return length


def _sorted(distances: Floats, values: Floats) -> tuple[Floats, Floats]:
    order = np.argsort(distances)
    return distances[order], values[order]


def _lower_sum(steps: list[tuple[Floats, Floats]]) -> float:
    """The integral of the largest of falling functions, each of which is at least its value at the next distance."""
    ends = np.unique(np.concatenate([distances for distances, _ in steps]))
    largest = np.zeros(len(ends))
    for distances, values in steps:
        place = np.searchsorted(distances, ends)
        largest = np.maximum(largest, np.append(values, 0.0)[place])
    return float(np.diff(ends, prepend=0.0) @ largest)
