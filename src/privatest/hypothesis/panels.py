"""Nodes for Fourier integrals: Gauss-Legendre panels that double in length from the origin on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["doubling_panels"]

Floats = npt.NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
# Gauss's rule with 24 nodes integrates e^(i f x) over [-1, 1] to rounding for frequencies f up to this.
_RESOLVED = 12.0


def doubling_panels(first: float, reach: float, frequency: float, most: int) -> tuple[Floats, Floats] | None:
    """Nodes and weights on [0, reach], the first panel at most so long, for frequencies up to ``frequency``.

    None where that takes more than ``most`` panels.
    """
    longest = 2 * _RESOLVED / frequency
    if reach / longest > most:
        return None
    ends = [0.0]
    length = min(first, longest)
    while ends[-1] < reach:
        ends.append(min(ends[-1] + length, reach))
        length = min(2 * length, longest)
    left, right = np.array(ends[:-1]), np.array(ends[1:])
    half = (right - left) / 2
    nodes = (left + half)[:, None] + half[:, None] * _NODES
    return nodes.ravel(), (half[:, None] * _WEIGHTS).ravel()
