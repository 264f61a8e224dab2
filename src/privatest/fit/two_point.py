"""Two symbols: the distance of the noisy count from a centre, tuned so that both sides are equally hard."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from privatest.fit.excess import Excess
from privatest.fit.law import excess_law
from privatest.fit.unfavourable import alternatives
from privatest.noise import Tulap

__all__ = ["two_point"]

Floats = npt.NDArray[np.float64]

# The centre of |N_1 - c| moves in sixteenths of a count.
LEVELS = 16


def two_point(p: Floats, n: int, distance: float, epsilon: Fraction, alpha: float) -> Excess:
    r"""T = sum over 16 whole centres c of :math:`|N_1 - c|`, or :math:`N_x` if only symbol x can gain ``distance``.

    :math:`|N_1 - c| = (N_1 - c)^+ + (N_0 - (n - c))^+`, so this is an :class:`Excess`. Adding Tulap noise after
    taking the absolute value needs fewer records than a two-sided interval for the noisy count.
    """
    sides = list(alternatives(None, n, p, distance))
    if len(sides) == 1:
        up = int(sides[0].q[1] > p[1])
        knots = np.array([[n], [0]] if up else [[0], [n]], dtype=np.int64)
        return Excess(knots, np.ones(1, dtype=np.int64), 2)
    lower, upper = sorted(sides, key=lambda side: float(side.q[1]))

    def imbalance(index: int) -> float:
        """Type II error above P less that below P, which grows with the centre."""
        excess = _folded(n, index)
        noise = Tulap(epsilon, excess.width)
        cutoff = excess_law(excess, n, p).cutoff(alpha, noise)
        above, below = (excess_law(excess, n, side.q).below(cutoff, noise) for side in (upper, lower))
        return above - below

    # The balance lies between the two means, and near that under P.
    spread = 4 * math.sqrt(n * float(p[0] * p[1])) + 1
    low = round(LEVELS * max(n * float(lower.q[1]), n * float(p[1]) - spread))
    high = round(LEVELS * min(n * float(upper.q[1]), n * float(p[1]) + spread))
    # Invariant: the hard side is below P at ``low`` and above P at ``high``.
    while high - low > 1:
        middle = (low + high) // 2
        if imbalance(middle) < 0:
            low = middle
        else:
            high = middle
    best = min((low, high), key=lambda index: abs(imbalance(index)))
    found = _folded(n, best).simplified(n)
    return found if found is not None else _folded(n, best)


def _folded(n: int, index: int) -> Excess:
    """The mean of the centres is index / LEVELS."""
    centres = np.clip((index + np.arange(LEVELS)) // LEVELS, 0, n)
    return Excess(np.stack([n - centres, centres]).astype(np.int64), np.ones(LEVELS, dtype=np.int64), 2)
