"""How fast evidence against P can grow under Q, whatever private mechanism collects it."""

from __future__ import annotations

import math

import numpy as np

from privatest.hypotheses import Pair
from privatest.power.tuning import profile_of
from privatest.vectors import Floats

__all__ = ["growth_bound"]


def growth_bound(pair: Pair, epsilon: float) -> float:
    r"""The most that a record adds to the mean log e-value under Q, whatever epsilon-DP mechanism makes it, in nats.

    .. math:: \max\{E_Q g - \log E_P e^g : \text{range of } g \le \epsilon\}

    attained by :math:`g = [\log q/p]_c^{c+\epsilon}` with the c at which :math:`E_P e^g = 1`. Proof: proof.md.
    """
    profile = profile_of(pair)
    ratios = -profile.ratios  # log q/p

    def clipped(c: float) -> Floats:
        return np.clip(ratios, c, c + epsilon)

    # Invariant: E_P e^g <= 1 at low, and >= 1 at high: it grows with c, from e^-epsilon at most to e^epsilon at least.
    low, high = -2 * epsilon, epsilon
    for _ in range(200):
        middle = (low + high) / 2
        if float(profile.p @ np.exp(clipped(middle))) <= 1:
            low = middle
        else:
            high = middle
    g = clipped((low + high) / 2)
    return float(profile.q @ g) - math.log(float(profile.p @ np.exp(g)))
