r"""What no private interval can beat.

Let I be the interval of any eps-DP mechanism that holds every parameter with probability c at least. By Pratt's
identity its mean length at :math:`\theta` is :math:`\int \Pr_\theta[\theta' \in I]\, d\theta'`, and "is :math:`\theta'`
in I" is an eps-DP test between :math:`\theta'` (which it accepts with probability c at least) and :math:`\theta`. So

.. math:: E_\theta |I| \ge \int \max(c - A(\theta, \theta'),\ \beta(\theta', \theta),\ 0)\, d\theta',

with A the most that the advantage of an eps-DP test can be, and :math:`\beta` the least type II error of any test,
private or not, whose type I error is 1 - c (Neyman and Pearson). This contains, and is several times as much as, the
bound from two points only: :math:`2h (1 - 2(1-c) - A)` at distance 2h.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from privatest.bounds.lower_bound import advantage_bound
from privatest.decision.build import unclamped
from privatest.errors import NothingToTest
from privatest.hypotheses import Distribution, Pair, make_pair
from privatest.privacy import Pure
from privatest.vectors import Floats

__all__ = ["length_bound"]

STEPS = 24
HALVES = 4
"""The private bound, which takes longer, is computed at fewer distances, twice as many as this."""


def length_bound(
    member: Callable[[float], Distribution], at: float, ends: tuple[float, float], epsilon: float, n: int, level: float
) -> float:
    """The least mean length, where the parameter is ``at``, of a private interval.

    Args:
        member: a distribution for each parameter.
        ends: between which values are counted, those that an interval may hold at all; any two make a valid bound.
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
        return level if pair is None else unclamped(pair, n, "llr", alpha=1 - level).beta

    def privately(other: float) -> float:
        pair = pair_with(other)
        return level if pair is None else max(level - advantage_bound(pair, Pure(epsilon), n), 0.0)

    length = 0.0
    for end in ends:
        if end == at:
            continue
        reach = end - at
        # Both fall with the distance: the lower sum of either is below its integral, whatever the steps.
        plain = reach * np.arange(1, STEPS + 1) / STEPS
        far = reach
        while privately(at + far) == 0 and abs(far) > abs(reach) / 256:
            far /= 2
        private = far * np.arange(1, 2 * HALVES) / HALVES
        private = private[np.abs(private) <= abs(reach)]
        steps = [
            (plain, [anyhow(at + float(d)) for d in plain]),
            (private, [privately(at + float(d)) for d in private]),
        ]
        length += _lower_sum([(np.abs(distances), np.array(values)) for distances, values in steps])
    return length


def _lower_sum(steps: list[tuple[Floats, Floats]]) -> float:
    """The integral of the largest of falling functions, each of which is at least its value at the next distance."""
    ends = np.unique(np.concatenate([distances for distances, _ in steps]))
    largest = np.zeros(len(ends))
    for distances, values in steps:
        place = np.searchsorted(distances, ends)
        largest = np.maximum(largest, np.append(values, 0.0)[place])
    return float(np.diff(ends, prepend=0.0) @ largest)
