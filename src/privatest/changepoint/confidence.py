"""How far off an index can be: a curve of failure probabilities, exact or bounded with stated confidence.

Simulations here are of public quantities (the laws of scores under P and Q), seeded, and never see data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privatest.numbers import Floats, Integers

__all__ = ["CONFIDENCE", "FailureCurve", "upper_bounds", "worst_of"]


CONFIDENCE = 0.999
"""The chance that a simulated bound is one."""


@dataclass(frozen=True, eq=False)
class FailureCurve:
    """Bounds on Pr[abs(index - k*) > a], for increasing a; beyond the last a the last bound holds.

    Guarantees: each bound is exact (``runs`` 0), or one with confidence 0.999 from ``runs`` simulations; as both the
    truth and the estimates fall with a, the confidence holds for the a that a target picks, too.
    """

    distances: Integers
    failures: Floats
    runs: int = 0

    def accuracy(self, beta: float, missed: Floats | None = None) -> int | None:
        """The smallest a whose failure probability (plus ``missed``, given for each a) is at most beta."""
        total = self.failures if missed is None else self.failures + missed
        enough = np.flatnonzero(total <= beta)
        return int(self.distances[enough[0]]) if len(enough) else None

    def quantile(self, beta: float, missed: Floats | None = None) -> float:
        """As :meth:`accuracy`, between the distances: for comparing designs. Infinite where beta is not reached."""
        total = self.failures if missed is None else self.failures + missed
        below = np.flatnonzero(total <= beta)
        if len(below) == 0:
            return math.inf
        at = int(below[0])
        if at == 0:
            return float(self.distances[0])
        high, low = total[at - 1], total[at]
        share = (high - beta) / (high - low) if high > low else 1.0
        return float(self.distances[at - 1] + share * (self.distances[at] - self.distances[at - 1]))


def upper_bounds(means: Floats, runs: int, confidence: float = CONFIDENCE) -> Floats:
    r"""Upper confidence bounds for the means of variables in [0, 1], from the averages of ``runs`` of them.

    The p above the average m with :math:`runs \cdot kl(m \| p) = \log 1/(1 - confidence)` (Chernoff, Hoeffding).
    """
    goal = -math.log1p(-confidence) / runs
    m = np.clip(means, 0.0, 1.0)
    low, high = m.copy(), np.ones_like(m)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Invariant: kl(m || low) <= goal < kl(m || high).
        for _ in range(60):
            p = (low + high) / 2
            kl = np.where(m > 0, m * np.log(m / p), 0.0) + np.where(m < 1, (1 - m) * np.log((1 - m) / (1 - p)), 0.0)
            inside = kl <= goal
            low, high = np.where(inside, p, low), np.where(inside, high, p)
    return high


def worst_of(curves: list[FailureCurve]) -> FailureCurve:
    """The pointwise largest of curves over the same distances."""
    failures = np.max([curve.failures for curve in curves], axis=0)
    return FailureCurve(curves[0].distances, failures, min(curve.runs for curve in curves))
