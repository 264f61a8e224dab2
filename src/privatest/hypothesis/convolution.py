"""The law of a sum of scores on a window that holds all but 1e-18 of it, by FFT."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from privatest.errors import InvalidInput
from privatest.hypothesis.fourier import Complexes, fast_length, log_waves, probabilities
from privatest.hypothesis.spectrum import central_reach, log_transform, side_lobes
from privatest.hypothesis.tilt import NEGLIGIBLE_EXPONENT, tilt, window_ends

__all__ = ["LARGEST_WINDOW", "Window", "convolve"]

Floats = npt.NDArray[np.float64]

# Beyond this n the FFT's rounding, n times 1e-16, starts to show.
MOST_CONVOLVED = 1_000
LARGEST_WINDOW = 1 << 24
_ROUNDING = 2.3e-16


@dataclass(frozen=True, eq=False)
class Window:
    """The law of J tilted by e^(theta J), on consecutive integers.

    Attributes:
        start: the first integer.
        weights: probabilities of it and of those that follow, under the tilted law.
        log_mass: log E e^(theta (J - start)), which undoes the tilt.
        accuracy: error of the weights as a vector, relative to its norm.
    """

    start: int
    weights: Floats
    log_mass: float
    accuracy: float


def convolve(steps: Floats, law: Floats, n: int, theta: float) -> Window:
    """The tilted law of the sum of n independent steps."""
    tilted, _ = tilt(steps, law, theta)
    first, last = window_ends(steps, tilted, n)
    size = fast_length(last - first + 1)
    if size > LARGEST_WINDOW:
        raise InvalidInput(
            f"n={n} is too large for exact error rates on this lattice. Use a clamp nearer to the "
            "ratio's spread, or fewer records."
        )
    # Centred on the rounded mean, so that phases near the main lobe stay small and exact.
    centre = round(float(tilted @ steps))
    places = steps.astype(np.int64) - centre
    logs, accuracy = _log_waves_of_sum(places, tilted, n, size)
    weights = probabilities(logs, size, first=first - n * centre, count=last - first + 1)
    if theta == 0:
        return Window(first, weights, 0.0, accuracy)
    # An error of 1e-16 in log M(theta) would be multiplied by n, and so would one of its size about 0.
    mean = math.fsum(law * steps)
    if theta * (steps[-1] - mean) < 500:
        mean, logs = log_transform(steps, law, np.array([theta + 0j]))
        cumulant = float(logs[0].real)
    else:
        cumulant = tilt(steps - mean, law, theta)[1]
        accuracy += 4 * _ROUNDING * n * abs(cumulant)
    return Window(first, weights, n * cumulant + theta * float(n * Fraction(mean) - first), accuracy)


def _log_waves_of_sum(places: npt.NDArray[np.int64], law: Floats, n: int, size: int) -> tuple[Complexes, float]:
    """Logarithms of the Fourier coefficients of the sum of n steps, and their accuracy relative to the law's norm."""
    rounding = _ROUNDING * math.log2(size + 1)
    if n > MOST_CONVOLVED:
        steps = places.astype(np.float64)
        reach = central_reach(steps, law, n, NEGLIGIBLE_EXPONENT)
        lobes = None if reach is None else side_lobes(steps, law, n, reach, NEGLIGIBLE_EXPONENT)
        if reach is not None and lobes is not None and len(lobes) == 0:
            near = math.ceil(reach * size / (2 * math.pi)) + 1
            t = 2 * math.pi * np.arange(min(near, size // 2 + 1)) / size
            mean, logs = log_transform(steps, law, (-1j * t).astype(np.complex128))
            waves = np.full(size // 2 + 1, -np.inf, dtype=np.complex128)
            # The mean is at most half a step, and its multiple is taken modulo the window.
            turns = math.fmod(n * mean, size) if abs(mean) < 2**-20 else n * mean
            waves[: len(t)] = n * logs - 1j * t * turns
            exponent = NEGLIGIBLE_EXPONENT * 8 + 4 * abs(n * mean) * reach
            return waves, rounding + _ROUNDING * exponent
    return n * log_waves(places, law, size), (n + 1) * rounding
