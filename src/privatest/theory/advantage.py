r"""Exact advantages of the soft tests on one record.

sLLR says P with probability sigmoid(L/2); scLLR clamps L first. On one record

.. math::
    \mathrm{adv}_1(\mathrm{sLLR}) = H^2(P, Q), \qquad
    \mathrm{adv}_1(\mathrm{scLLR}) = \tfrac{\tau}{2}\left(\tanh\tfrac{\varepsilon}{4} +
    \tanh\tfrac{\varepsilon'}{4}\right) + (1 - \tau) H^2(P', Q').
"""

from __future__ import annotations

import math

from privatest.pairs import Pair
from privatest.theory.decomposition import Decomposition

__all__ = [
    "soft_advantage",
    "soft_advantage_direct",
    "soft_clamped_advantage",
    "soft_clamped_advantage_direct",
]


def soft_advantage(pair: Pair) -> float:
    """adv_1(sLLR) = H^2(P, Q).

    >>> from privatest.pairs import make_pair
    >>> round(soft_advantage(make_pair("normal(0, 1)", "normal(1, 1)")), 12)
    0.117503097415
    """
    return pair.hellinger_squared


def soft_advantage_direct(pair: Pair) -> float:
    """The same by integrating (P - Q) sigmoid(L/2)."""
    return pair.clamped_gap(-math.inf, math.inf)


def soft_clamped_advantage(split: Decomposition) -> float:
    """adv_1(scLLR) from tau, eps' and the core's Hellinger distance."""
    tails = split.tau / 2 * (math.tanh(split.epsilon / 4) + math.tanh(split.epsilon_prime / 4))
    core = split.pair.clamped_hellinger(*split.clamp) if split.core_mass > 0 else 0.0
    return tails + core


def soft_clamped_advantage_direct(split: Decomposition) -> float:
    """The same by integrating (P - Q) sigmoid([L]/2)."""
    return split.pair.clamped_gap(*split.clamp)
