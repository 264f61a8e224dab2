r"""What no private interval can beat.

Let I be the interval of any eps-DP mechanism that holds every parameter with probability c at least. By Pratt's
identity its mean length at :math:`\theta` is :math:`\int \Pr_\theta[\theta' \in I]\, d\theta'`, and "is :math:`\theta'`
in I" is an eps-DP test between :math:`\theta'` (which it accepts with probability c at least) and :math:`\theta`. So

.. math:: E_\theta |I| \ge \int \max(c - A(\theta, \theta'),\ \beta(\theta', \theta),\ 0)\, d\theta',

with A the most that the advantage of an eps-DP test can be, and :math:`\beta` the least type II error of any test, private
or not, whose type I error is 1 - c (Neyman and Pearson). This contains, and is several times as much as, the bound from two
points only: :math:`2h (1 - 2(1-c) - A)` at distance 2h.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from privatest.bounds.lower_bound import advantage_bound
from privatest.decision.private_test import unclamped
from privatest.errors import NothingToTest
from privatest.hypotheses import Distribution, Pair, make_pair

__all__ = ["length_bound"]

STEPS = 24
EVERY = 6
"""The private bound, which takes longer, is computed at every so many of these."""


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
            return make_pair(member(other), member(at))
        except NothingToTest:
            return None

    def anyhow(other: float) -> float:
        """How likely an interval holds the other value, private or not."""
        pair = pair_with(other)
        return level if pair is None else unclamped(pair, n, "llr", alpha=1 - level).beta

    def privately(other: float) -> float:
        pair = pair_with(other)
        return level if pair is None else max(level - advantage_bound(pair, epsilon, n), 0.0)

    length = 0.0
    for end in ends:
        if end == at:
            continue
        reach = end - at
        # Both fall with the distance: the lower sum of either is below its integral, whatever the steps.
        nodes = at + reach * np.arange(1, STEPS + 1) / STEPS
        held = np.array([anyhow(node) for node in nodes.tolist()])
        for last in range(EVERY - 1, STEPS, EVERY):
            found = privately(float(nodes[last]))
            held[: last + 1] = np.maximum(held[: last + 1], found)
            if found == 0:
                break
        length += abs(reach) / STEPS * float(held.sum())
    return length
