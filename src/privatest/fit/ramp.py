r"""Knots from a shape: increments that rise linearly around the expected count, flat beyond.

The test of q against p that a small q - p calls for increases T by an amount proportional to j - n p_x when a count
rises from j to j + 1 (the increments of the chi-squared statistic less N_x). The private test clips that ramp:

.. math:: \delta_x(j) = \mathrm{clip}\bigl(\beta_x + (j - n p_x)/r_x,\ 0,\ 1\bigr), \qquad
          r_x = \max\bigl(\text{floor},\ 2\,\text{stretch}\,\sqrt{\mu}\,(n p_x/\mu)^{\text{growth}}\bigr)

with mu the median of the n p_x, so that one record moves T by at most 1. A steep ramp (stretch 0) is the empirical
distance and best against much noise; a long one is the chi-squared statistic and best against none. beta_x makes the
mean increment under P the same for all symbols: otherwise some alternative at the given distance would make T fall.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privatest.fit.excess import Excess
from privatest.fit.groups import REACH, binomial_masses, windows

__all__ = ["Ramp"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FEWEST_LEVELS, MOST_LEVELS = 4, 64


@dataclass(frozen=True)
class Ramp:
    """A shape of increments.

    Attributes:
        stretch: length of the ramp to either side, in standard deviations of a typical count.
        floor: its least length, in counts.
        middle: mean increment under P, 0 to 1.
        growth: 1/2 for the same stretch at every symbol; 2/3 is the weighting of Valiant and Valiant.
    """

    stretch: float
    floor: float = 1.0
    middle: float = 0.5
    growth: float = 0.5

    def excess(self, p: Floats, n: int) -> Excess | None:
        """The statistic on integers; None if it would be constant.

        The lattice has few levels where counts are large, since whole counts are fine enough there.
        """
        values, member = np.unique(p, return_inverse=True)
        typical = max(float(np.median(n * p)), 1e-9)
        levels = min(max(math.ceil(48 / math.sqrt(typical)), FEWEST_LEVELS), MOST_LEVELS)
        length = 2 * self.stretch * math.sqrt(typical) * (n * values / typical) ** self.growth
        length = np.maximum(self.floor, length)
        start = n * values[:, None] + (np.arange(levels) + 0.5) / levels * length[:, None]
        if len(values) == 1:
            knots = _whole(start, 0.5 * length, n)
        else:
            knots = np.empty(start.shape, dtype=np.int64)
            for which, counts in windows(values, n):
                masses = binomial_masses(counts, max(n - 1, 1), values[which])
                knots[which] = self._balanced(start[which], length[which], counts, masses, n)
        knots[values == 0] = 0  # whatever has no probability under P speaks against P at once
        return Excess(knots[member.ravel()], np.ones(levels, dtype=np.int64), len(p)).simplified(n)

    def _balanced(self, start: Floats, length: Floats, counts: Integers, masses: Floats, n: int) -> Integers:
        """Knots with a mean increment as near to ``middle`` as whole counts allow, by bisection on beta.

        Invariant: the mean increment is at most ``middle`` at low, at least at high.
        """
        # reach[j] = Pr[count >= j]: a knot there adds so much to the mean increment.
        reach = np.column_stack([np.cumsum(masses[:, ::-1], axis=1)[:, ::-1], np.zeros(len(masses))])

        def mean(knots: Integers) -> Floats:
            at = np.clip(knots - counts[:, :1], 0, masses.shape[1])
            return np.asarray(np.take_along_axis(reach, at, axis=1).mean(axis=1))

        span = length + REACH * np.sqrt(masses.shape[1]) + counts[:, -1] - counts[:, 0]
        low, high = -span, 2 * span
        for _ in range(24):
            centre = (low + high) / 2
            reached = mean(_whole(start, centre, n)) >= self.middle
            low, high = np.where(reached, low, centre), np.where(reached, centre, high)
        below, above = _whole(start, low, n), _whole(start, high, n)
        nearer = self.middle - mean(below) < mean(above) - self.middle
        return np.where(nearer[:, None], below, above)


def _whole(start: Floats, shift: Floats, n: int) -> Integers:
    """The first whole counts at or after start - shift."""
    return np.asarray(np.clip(np.ceil(start - shift[:, None] - 1e-9), 0, n).astype(np.int64))
