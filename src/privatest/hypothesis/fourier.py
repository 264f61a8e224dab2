"""Lengths for which Fourier transforms are quick.

Transforms are numpy's: the same code as that of ``scipy.fft``, whose import takes a third of the time of a whole plan.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cache

__all__ = ["fast_length"]


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
