"""The transform of a score's law for tuning: absolute accuracy near 1e-13, computed a hundred times over."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from numpy import fft

from privatest.hypothesis.fourier import fast_length
from privatest.hypothesis.spectrum import log_transform

__all__ = ["quick_log_transforms", "side_lobe"]

Floats = npt.NDArray[np.float64]

# 6^64/64! < 1e-39
_MOMENTS = 64
_SERIES_RADIUS = 6.0
_FACTORIALS = np.array([float(math.factorial(j)) for j in range(1, _MOMENTS + 1)])


def quick_log_transforms(
    steps: Floats, laws: Sequence[Floats], t: Floats
) -> list[tuple[float, npt.NDArray[np.complex128]]]:
    """As :func:`log_transform` at i t of each law, by more moments and fewer exact sums.

    Tuning calls this a hundred times.
    """
    means = [math.fsum(law * steps) for law in laws]
    sizes = [float(max(steps[-1] - mean, mean - steps[0])) for mean in means]
    if float(t[-1]) * max(sizes) > _SERIES_RADIUS:
        return [log_transform(steps, law, (1j * t).astype(np.complex128)) for law in laws]
    moments = np.empty((len(laws), _MOMENTS))
    for row, (law, mean, size) in enumerate(zip(laws, means, sizes, strict=True)):
        powers = np.cumprod(np.broadcast_to((steps - mean) / size, (_MOMENTS, len(steps))), axis=0)
        moments[row] = np.einsum("ij,j->i", powers, law)
    # (i x)^j is real for even j and imaginary for odd j, and either way a power of -x^2.
    coefficients = (moments / _FACTORIALS).reshape(len(laws), -1, 2)  # [law, k, :] are those of x^(2k+1), x^(2k+2)
    x = np.multiply.outer(sizes, t)
    square = -(x * x)
    series = np.zeros((2, *x.shape))
    for k in range(_MOMENTS // 2 - 1, -1, -1):
        series *= square
        series += coefficients[:, k].T[:, :, None]
    odd, even = series[0] * x, series[1] * square
    modulus = 0.5 * np.log1p(2 * even + even**2 + odd**2)
    logs = modulus + 1j * np.arctan2(odd, 1 + even)
    return list(zip(means, logs, strict=True))


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
