"""Laws of noisy totals by plain means: sums of positive terms in extended precision, and closed forms.

Nothing here is shared with the package: neither transforms nor tilts nor the noises' own floats.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt

from privatest.privacy import Laplace, Logistic, Noise, NoNoise, Tulap

__all__ = ["EXTENDED", "binomial_tails", "exact_tails", "law_of_sum", "tails"]

Long = npt.NDArray[np.longdouble]
# Where a long double is a double, the reference is no better than what it is to judge.
EXTENDED = np.finfo(np.longdouble).eps < 1e-18


def _long(x: Fraction) -> np.longdouble:
    return np.longdouble(x.numerator) / np.longdouble(x.denominator)


def noise_tail(noise: Noise, doubled: npt.NDArray[Any]) -> Long:
    """Pr[2N > doubled] at numbers halfway between values of 2N, from the noise's definition."""
    if isinstance(noise, NoNoise):
        return (doubled < 0).astype(np.longdouble)
    if isinstance(noise, Tulap):
        epsilon = _long(noise.epsilon)
        b = np.exp(-epsilon)
        g, u = np.divmod((doubled + noise.width) // 2, noise.width)  # the first value beyond: its block and place
        share = np.longdouble(1) * (noise.width - u) / noise.width
        decay = np.exp(-epsilon * np.abs(g)) / (1 + b)
        return np.where(g >= 0, decay * (b + (1 - b) * share), 1 - decay * (b + (1 - b) * (1 - share)))
    assert isinstance(noise, Laplace | Logistic)
    at = np.abs(doubled) / np.longdouble(2) / _long(noise.scale)
    tail = np.exp(-at) / 2 if isinstance(noise, Laplace) else np.exp(-at) / (1 + np.exp(-at))
    return np.where(doubled >= 0, tail, 1 - tail)


def law_of_sum(support: npt.NDArray[Any], law: npt.NDArray[Any], n: int) -> tuple[int, Long]:
    """Smallest total of n scores, and the probabilities of it and all integers that follow."""
    low = int(support.min())
    base = np.zeros(int(support.max()) - low + 1, dtype=np.longdouble)
    np.add.at(base, support - low, law.astype(np.longdouble))
    base /= base.sum()
    found, power = np.ones(1, dtype=np.longdouble), base
    for bit in reversed(bin(n)[2:]):
        if bit == "1":
            found = np.convolve(found, power)
        power = np.convolve(power, power) if len(power) * 2 <= len(base) * n + 2 else power
    return n * low, found


def _between(noise: Noise, x: Fraction | int) -> int:
    """Twice the midpoint between the two values of the total around x."""
    return int(2 * (math.floor(Fraction(x) - noise.offset) + noise.offset)) + 1


def tails(start: int, law: Long, noise: Noise, x: Fraction | int) -> tuple[np.longdouble, np.longdouble]:
    """(Pr[S + N <= x], Pr[S + N > x]) for S with this law on start, start + 1, ..."""
    doubled = _between(noise, x) - 2 * (start + np.arange(len(law)))
    return (law * noise_tail(noise, -doubled)).sum(), (law * noise_tail(noise, doubled)).sum()


def binomial_tails(
    scores: tuple[int, int], p: float, n: int, noise: Noise, x: Fraction | int, shift: int = 0
) -> tuple[np.longdouble, np.longdouble]:
    """The same for two scores, the second with probability p, by the ratios of the binomial law; n may be large."""
    low, high = scores
    q, mode = np.longdouble(p), int(n * p)
    half = int(17 * math.sqrt(n * p * (1 - p))) + 50
    first, last = max(0, mode - half), min(n, mode + half)
    up, down = np.arange(mode, last), np.arange(mode, first, -1)
    rising = np.cumprod((np.longdouble(n) - up) / (up + np.longdouble(1)) * (q / (1 - q)))
    falling = np.cumprod(down / (np.longdouble(n) - down + 1) * ((1 - q) / q))
    law = np.concatenate([falling[::-1], [np.longdouble(1)], rising])
    law /= law.sum()
    start = _between(noise, x) - 2 * (low * n + (high - low) * first + shift)
    doubled = start - 2 * (high - low) * np.arange(len(law))
    return (law * noise_tail(noise, -doubled)).sum(), (law * noise_tail(noise, doubled)).sum()


def exact_tails(scores: list[int], law: list[Any], n: int, noise: Noise, x: Fraction) -> tuple[Any, Any]:
    """The same in mpmath's current precision, the law given in it."""
    low = min(scores)
    base = [mpmath.mpf(0)] * (max(scores) - low + 1)
    for score, p in zip(scores, law, strict=True):
        base[score - low] += p
    found = [mpmath.mpf(1)]
    for bit in bin(n)[2:]:
        found = _product(found, found)
        found = _product(found, base) if bit == "1" else found
    start = _between(noise, x) - 2 * n * low
    lower = mpmath.fsum(p * _tail(noise, 2 * j - start) for j, p in enumerate(found))
    upper = mpmath.fsum(p * _tail(noise, start - 2 * j) for j, p in enumerate(found))
    return lower, upper


def _product(a: list[Any], b: list[Any]) -> list[Any]:
    found = [mpmath.mpf(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            found[i + j] += x * y
    return found


def _tail(noise: Noise, doubled: int) -> Any:
    """Pr[2N > doubled], by summing or integrating the definition."""
    if isinstance(noise, NoNoise):
        return mpmath.mpf(doubled < 0)
    if doubled < 0:
        return 1 - _tail(noise, -doubled)
    if isinstance(noise, Tulap):
        epsilon = mpmath.mpf(noise.epsilon.numerator) / noise.epsilon.denominator
        b = mpmath.exp(-epsilon)
        g, u = divmod((doubled + noise.width) // 2, noise.width)
        weight = (1 - b) / (1 + b)
        # what is left of block g, and all later blocks
        return weight * b**g * mpmath.mpf(noise.width - u) / noise.width + weight * b ** (g + 1) / (1 - b)
    assert isinstance(noise, Laplace | Logistic)
    at = mpmath.mpf(doubled) / 2 * noise.scale.denominator / noise.scale.numerator
    return mpmath.exp(-at) / 2 if isinstance(noise, Laplace) else 1 / (1 + mpmath.exp(at))
