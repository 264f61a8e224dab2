"""Whether the tails make a Kullback-Leibler divergence infinite."""

from __future__ import annotations

import math

import numpy as np

from privatest.pairs.distribution import Floats

__all__ = ["has_true_zero", "tail_remainder"]

UNDERFLOWING = -300.0
"""A log density below this may be followed by one that has underflowed."""
SLOWEST = 1e-3
"""Powers below this are taken to be 0: the logarithm of the last decades cannot tell."""


def tail_remainder(u: Floats, gain: Floats) -> float:
    r"""Integral of gain du from 0 to the smallest u, by the power law of the last decades.

    With u the tail probability of P and L(u) the log ratio there, the tail adds

    .. math:: \int_0^{u_0} L(u)\,du

    to KL(P||Q), infinite unless u L(u) tends to 0 like a power of u. Probabilities u increase along the
    array.
    """
    tail = (u > 1e-305) & (u < 1e-8) & (gain > 0) & np.isfinite(gain)
    u, gain = u[tail], gain[tail]
    if u.size < 4:
        return 0.0
    size = np.log(u) + np.log(gain)
    middle = u.size // 2
    if not u[middle] > u[0]:  # a complement that is stuck at its rounding tells nothing
        return 0.0
    power = (size[middle] - size[0]) / (math.log(u[middle]) - math.log(u[0]))
    return math.inf if power <= SLOWEST else float(math.exp(size[0]) / power)


def has_true_zero(gain: Floats, log_other: Floats) -> bool:
    """Whether Q has no density somewhere under P, and not only one too small for floats.

    Some scipy families know their density but not its logarithm, which is lost where the density
    underflows: in a tail, next to points at which it is tiny already. Arguments are L and log q along
    landmarks under P.
    """
    lost = gain == np.inf
    if not lost.any():
        return False
    seen = np.flatnonzero(~lost)
    if seen.size == 0 or lost[seen[0] : seen[-1]].any():
        return True
    first, last = log_other[seen[0]], log_other[seen[-1]]
    return bool((lost[0] and first > UNDERFLOWING) or (lost[-1] and last > UNDERFLOWING))
