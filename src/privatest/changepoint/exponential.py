r"""The exponential mechanism over integer utilities, sampled exactly, also over 10^7 candidates.

Candidate k is drawn with probability proportional to :math:`e^{-x_k}`, :math:`x_k = \lambda (\max q - q_k)`,
lambda rational. Doubles only *propose*: the proposal has integer weights that lie above :math:`C e^{-x_k}`, and a
proposed k is kept with probability :math:`C e^{-x_k} / \text{weight}_k`, an exact coin. Argument: proof.md.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from privatest.changepoint.bounds import exp_bounds
from privatest.noise import Source

__all__ = ["draw_exponential"]

Integers = npt.NDArray[np.int64]

CHUNK = 1 << 14
# The weights are raised by this factor, far beyond the error of a double's exp (a few times 2^-52) of an
# argument that is off by 2^-51 of itself and is at most 64.
_MARGIN = 1 + 2.0**-40
_COMPARED_BITS = 96


def draw_exponential(utilities: Integers, rate: Fraction, source: Source) -> int:
    r"""k with probability exactly proportional to :math:`e^{\text{rate} \cdot q_k}`, q the utilities.

    Guarantees: exact for every rational rate > 0 and all utilities whose differences fit 64 bits; one pass over
    the utilities, and about one round.
    """
    best = int(utilities.max())
    scale_bits = min(62 - len(utilities).bit_length(), 50)
    firsts, sums = _chunk_weights(utilities, best, rate, scale_bits)
    ends = np.cumsum(sums)  # at most 2^63: len * (2^scale_bits (1 + tiny) + 1)
    # Invariant: a round that ends nowhere leaves no trace, so each has the same odds.
    while True:
        point = source.below(int(ends[-1]))
        chunk = int(np.searchsorted(ends, point, side="right"))
        inside = point - (int(ends[chunk - 1]) if chunk else 0)
        start, stop = int(firsts[chunk]), min(int(firsts[chunk]) + CHUNK, len(utilities))
        weights = np.cumsum(_weights(utilities[start:stop], best, rate, scale_bits))
        place = int(np.searchsorted(weights, inside, side="right"))
        weight = int(weights[place]) - (int(weights[place - 1]) if place else 0)
        loss = rate * (best - int(utilities[start + place]))
        if _keep(loss, scale_bits, weight, source):
            return start + place


def _chunk_weights(utilities: Integers, best: int, rate: Fraction, scale_bits: int) -> tuple[Integers, Integers]:
    """First index and total weight of each chunk. Where all of a chunk lies far below the best, weights are 1."""
    firsts = np.arange(0, len(utilities), CHUNK)
    tops = np.maximum.reduceat(utilities, firsts)
    sums = np.minimum(CHUNK, len(utilities) - firsts)
    far = Fraction(scale_bits) / rate  # e^-scale_bits 2^scale_bits < 1
    for c in np.flatnonzero(best - tops <= min(float(far) + 1, 2.0**62)):
        part = utilities[firsts[c] : firsts[c] + CHUNK]
        sums[c] = int(_weights(part, best, rate, scale_bits).sum())
    return firsts, sums


def _weights(utilities: Integers, best: int, rate: Fraction, scale_bits: int) -> Integers:
    """Integers above 2^scale_bits e^(-rate (best - q)), by less than 1 + 2^-39 of it."""
    loss = np.minimum((best - utilities).astype(np.float64) * float(rate), 64.0)
    return np.floor(np.exp(-loss) * (float(1 << scale_bits) * _MARGIN)).astype(np.int64) + 1


def _keep(loss: Fraction, scale_bits: int, weight: int, source: Source) -> bool:
    r"""True with probability :math:`2^{scale\_bits} e^{-loss} / weight`, which is at most 1.

    A uniform number U of as many bits as it takes: U * weight < 2^scale_bits e^-loss.
    """
    bits, uniform = 0, 0
    # Invariant: U lies in [uniform, uniform + 1) / 2^bits and nothing more is known of it.
    while True:
        bits += _COMPARED_BITS
        uniform = uniform << _COMPARED_BITS | source.bits(_COMPARED_BITS)
        low, high = exp_bounds(loss.numerator, loss.denominator, bits)
        if (uniform + 1) * weight <= low << scale_bits:
            return True
        if uniform * weight >= high << scale_bits:
            return False
