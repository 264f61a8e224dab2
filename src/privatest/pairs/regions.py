"""Where a condition on the log-likelihood ratio begins and ends to hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privatest.pairs.distribution import Floats

__all__ = ["Mask", "find_edges"]

Mask: TypeAlias = NDArray[np.bool_]

SPREAD = np.linspace(0.0, 1.0, 33)
LADDER = np.concatenate([-(2.0 ** -np.arange(3.0, 45.0)), [0.0], 2.0 ** -np.arange(3.0, 45.0)])
"""Points of a bracket that one round of the search looks at: everywhere, and around the expected crossing."""
MOST_ROUNDS = 40


def find_edges(
    function: Callable[[Floats], Floats],
    holds: Callable[[Floats], Mask],
    level: float,
    grid: Floats,
    values: Floats,
    flips: NDArray[np.intp],
    at_left: Mask,
) -> Floats:
    """For each bracket grid[i], grid[i + 1], i in ``flips``, the float next to those at which the condition
    holds.

    ``at_left`` says at which end of its bracket it holds. All brackets are searched at once. Each round
    looks at points spread over the bracket and at a ladder of points that close in on where the chord
    crosses the level, so that smooth functions take three rounds and jumps a few more; the condition alone
    decides.

    Invariant: it holds at ``inner`` and fails at ``outer``.
    """
    inside, outside = np.where(at_left, flips, flips + 1), np.where(at_left, flips + 1, flips)
    inner, outer = grid[inside], grid[outside]
    at_inner, at_outer = values[inside], values[outside]
    if flips.size == 0:
        return outer
    smallest = 1e-17 * np.abs(outer - inner)  # next to 0 floats go on for ever
    spread = np.broadcast_to(SPREAD, (flips.size, SPREAD.size))
    rows = np.arange(flips.size)
    for _ in range(MOST_ROUNDS):
        neighbours = np.spacing(np.maximum(np.abs(inner), np.abs(outer)))
        if np.all(np.abs(outer - inner) <= np.maximum(neighbours, smallest)):
            break
        with np.errstate(all="ignore"):
            crossing = (level - at_inner) / (at_outer - at_inner)
        crossing = np.where((crossing > 0) & (crossing < 1), crossing, 0.5)
        share = np.sort(np.clip(np.concatenate([crossing[:, None] + LADDER, spread], axis=1), 0.0, 1.0), axis=1)
        x = inner[:, None] + (outer - inner)[:, None] * share
        x[:, 0], x[:, -1] = inner, outer
        seen = function(x)
        good = holds(seen)
        seen[:, 0], seen[:, -1] = at_inner, at_outer
        good[:, 0], good[:, -1] = True, False
        bad = np.argmin(good, axis=1)
        inner, outer = x[rows, bad - 1], x[rows, bad]
        at_inner, at_outer = seen[rows, bad - 1], seen[rows, bad]
    return outer
