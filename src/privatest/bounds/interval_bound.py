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
from privatest.hypotheses import Distribution, make_pair

__all__ = ["length_bound"]

STEPS = 12


def length_bound(
    member: Callable[[float], Distribution], at: float, ends: tuple[float, float], epsilon: float, n: int, level: float
) -> float:
    """The least mean length, where the parameter is ``at``, of a private interval within the ends.

    Args:
        member: a distribution for each parameter.
        level: how often the interval must hold the parameter, at least.
    """

    def held(other: float) -> float:
        try:
            pair = make_pair(member(other), member(at))
        except NothingToTest:
            return level
        private = level - advantage_bound(pair, epsilon, n)
        return max(private, unclamped(pair, n, "llr", alpha=1 - level).beta, 0.0)

    length = 0.0
    for end in ends:
        if end == at:
            continue
        reach = 1e-3 * (end - at)
        while abs(reach) < abs(end - at) and held(at + reach) > 0.02:
            reach *= 2
        if abs(reach) >= abs(end - at):
            reach = end - at
        # What is left out beyond is not negative, and the integrand falls: a sum of lower values is a lower bound.
        nodes = at + reach * np.arange(1, STEPS + 1) / STEPS
        length += abs(reach) / STEPS * sum(held(float(node)) for node in nodes)
    return length
