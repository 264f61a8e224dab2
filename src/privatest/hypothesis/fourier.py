"""Laws of integers as waves on a circle, where the sum of n independent ones is the n-th power.

Transforms are numpy's: the same code as that of ``scipy.fft``, whose import takes a third of the time of a whole plan.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cache

import numpy as np
import numpy.typing as npt
from numpy import fft

__all__ = ["fast_length", "log_waves", "probabilities"]

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]


def log_waves(places: npt.NDArray[np.int64], law: Floats, size: int) -> Complexes:
    """Logarithms of the Fourier coefficients of a law on a circle of ``size`` integers.

    Those of the sum of n independent records are n times these.

    >>> coin = log_waves(np.array([0, 1]), np.array([0.5, 0.5]), 4)
    >>> probabilities(2 * coin, 4, first=0, count=3).round(12).tolist()
    [0.25, 0.5, 0.25]
    """
    waves = fft.rfft(np.bincount(places % size, weights=law, minlength=size))
    return np.asarray(np.log(np.where(waves == 0, 1e-300, waves)))


def probabilities(logs: Complexes, size: int, *, first: int, count: int) -> Floats:
    """The probabilities of ``count`` integers from ``first`` on, from logarithms of Fourier coefficients."""
    return np.roll(np.maximum(fft.irfft(np.exp(logs), size), 0.0), -(first % size))[:count]


def fast_length(size: int) -> int:
    """The smallest number of at least ``size`` without prime factors above 5, as ``scipy.fft.next_fast_len`` has it.

    >>> [fast_length(size) for size in (1, 7, 1023, 1025)]
    [1, 8, 1024, 1080]
    """
    numbers = _smooth(max(25, size.bit_length()))
    return numbers[bisect_left(numbers, size)]


@cache
def _smooth(bits: int) -> list[int]:
    """The numbers up to 2^bits without prime factors above 5, sorted."""
    most = 1 << bits
    found = []
    fives = 1
    while fives <= most:
        odd = fives
        while odd <= most:
            found += [odd << shift for shift in range((most // odd).bit_length())]
            odd *= 3
        fives *= 5
    return sorted(found)
