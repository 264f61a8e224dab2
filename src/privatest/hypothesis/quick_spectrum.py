"""The transform of a score's law for tuning: absolute accuracy near 1e-13, computed a hundred times over."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numpy import fft

from privatest.hypothesis.fourier import fast_length
from privatest.hypothesis.spectrum import log_transform

__all__ = ["quick_log_transform", "side_lobe"]

Floats = npt.NDArray[np.float64]

# 6^64/64! < 1e-39
_MOMENTS = 64
_SERIES_RADIUS = 6.0
_FACTORIALS = np.array([float(math.factorial(j)) for j in range(1, _MOMENTS + 1)])


def quick_log_transform(steps: Floats, law: Floats, t: Floats) -> tuple[float, npt.NDArray[np.complex128]]:
    """As :func:`log_transform` at i t, by more moments and fewer exact sums: tuning calls this a hundred times."""
    mean = math.fsum(law * steps)
    away = steps - mean
    size = float(max(away[-1], -away[0]))
    if float(t[-1]) * size > _SERIES_RADIUS:
        return log_transform(steps, law, (1j * t).astype(np.complex128))
    away = away / size
    powers = np.cumprod(np.broadcast_to(away, (_MOMENTS, len(away))), axis=0)
    moments = np.einsum("ij,j->i", powers, law)
    coefficients = moments / _FACTORIALS
    x = 1j * t * size
    series = np.zeros_like(x)
    for coefficient in coefficients[::-1]:
        series = (series + coefficient) * x
    modulus = 0.5 * np.log1p(2 * series.real + series.real**2 + series.imag**2)
    return mean, modulus + 1j * np.arctan2(series.imag, 1 + series.real)


def side_lobe(steps: Floats, law: Floats, from_angle: float) -> float:
    """An upper bound on log |E e^(its)| over [from_angle, pi].

    |phi|^2 changes by at most var (pi/16d)^2 between a maximum and the nearest of 16 d grid points, and the
    variance is at most d^2/4.
    """
    degree = int(steps[-1] - steps[0])
    size = fast_length(16 * (degree + 1))
    dense = np.bincount((steps - steps[0]).astype(np.int64), weights=law, minlength=degree + 1)
    power = np.abs(fft.rfft(dense, size)) ** 2
    beyond = power[min(math.floor(from_angle * size / (2 * math.pi)), len(power) - 1) :]
    # Up to its first minimum the main lobe only falls, and at from_angle it has died by the choice of it.
    rising = np.flatnonzero(np.diff(beyond) > 0)
    if len(rising) == 0:
        return -math.inf
    return 0.5 * math.log(min(float(beyond[rising[0] :].max()) + (math.pi / 32) ** 2, 1.0))
