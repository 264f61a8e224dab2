"""A pair of densities whose log-likelihood ratio is another pair's, clamped."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from privatest.pairs.continuous_pair import ContinuousPair, Interval
from privatest.pairs.distribution import Floats
from privatest.pairs.reals import Reals

__all__ = ["ClampedPair"]


class ClampedPair(ContinuousPair):
    """Densities proportional to min{P, e^b Q} and min{Q, e^-a P}, whose ratio is [L]_a^b.

    Guarantees: the ratio lies in [a, b] exactly; taken from the densities it would be off by their rounding.
    """

    def __init__(self, base: ContinuousPair, clamp: tuple[float, float], null: Reals, alternative: Reals) -> None:
        super().__init__(null, alternative)
        self._base, self._clamp = base, clamp

    def _difference(self, x: Floats, log_p: Floats, log_q: Floats) -> Floats:
        del log_p, log_q  # they would say the same but for rounding
        ratio = self._base.ratio(x)
        # where one of P and Q has no density neither core has
        return np.where(np.isfinite(ratio), np.clip(ratio, *self._clamp), np.nan)

    @cached_property
    def ratio_range(self) -> Interval:
        (low, high), (a, b) = super().ratio_range, self._clamp
        return max(low, a), min(high, b)
