"""The transform of a score's law near zero, to full relative accuracy, and whether anything else matters."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numpy import fft

from privatest.hypothesis.fourier import fast_length
from privatest.products import dot, row_dots

__all__ = ["central_reach", "log_transform", "side_lobes"]

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]

_MOMENTS = 40
# Points of the grid to a period of the fastest oscillation. Between neighbours of such a grid a trigonometric
# polynomial exceeds the grid's largest modulus by a factor of at most 1/cos(pi/16).
_OVERSAMPLING = 16
_LARGEST_GRID = 1 << 24
# Complex numbers in one block of work: 64 MB.
_BLOCK = 1 << 22
# Floats that stay in a processor's cache while they are worked on.
_CACHED = 1 << 15


def log_transform(steps: Floats, law: Floats, z: Complexes) -> tuple[float, Complexes]:
    r"""The mean :math:`\mu` and :math:`\log E e^{z(s - \mu)}` at complex points z.

    Multiplied by n = 10^9 an error of 1e-16 in this logarithm would show. So it is computed from what
    :math:`e^w` adds to 1 + w, which loses nothing: :math:`\log(1 + E[w] + E[e^w - 1 - w])`, w = z(s - mu).
    Near zero the expectation is the series of the central moments.

    Guarantees: relative error of order 1e-15, besides that of the mean; the law counts as one that sums to 1.
    """
    mu = math.fsum(law * steps)
    away = steps - mu
    left = math.fsum(law * away)  # what is left of the first moment after rounding mu
    reach = float(max(away[-1], -away[0]))
    if float(np.max(np.abs(z))) * reach > 2.0:
        return mu, _log1p(z * left + _second_order(away, law, z))
    away = away / reach
    power = away.copy()
    coefficients = [left / reach]
    for j in range(2, _MOMENTS + 1):
        power = power * away
        coefficients.append(dot(law, power) / math.factorial(j))
    scaled = z * reach
    series = np.zeros_like(scaled)
    for coefficient in reversed(coefficients):
        series = (series + coefficient) * scaled
    return mu, _log1p(series)


def _second_order(away: Floats, law: Floats, z: Complexes) -> Complexes:
    r"""E[e^w - 1 - w] for w = z away, in blocks of bounded size, without cancellation.

    With w = a + ib the real part is :math:`(e^a - 1 - a) - 2 e^a \sin^2(b/2)` and the imaginary part
    :math:`(e^a - 1) \sin b + (\sin b - b)`, of which the last bracket and the first are series near 0.
    """
    found = np.empty(z.shape, dtype=np.complex128)
    rows = max(_CACHED // len(away), 1)
    for start in range(0, len(z), rows):
        part = z[start : start + rows]
        # One real part for all is the usual case, and its exponentials then are one row.
        real = part.real[:1] if np.all(part.real == part.real[0]) else part.real
        a, b = np.multiply.outer(real, away), np.multiply.outer(part.imag, away)
        half = np.sin(b / 2)
        sine = 2 * half * np.cos(b / 2)
        found.real[start : start + rows] = _dots(_exp_remainder(a), law) - 2 * _dots(half * half, law * np.exp(a))
        found.imag[start : start + rows] = _dots(sine, law * np.expm1(a)) + _dots(_sine_remainder(b, sine), law)
    return found


def _dots(values: Floats, weights: Floats) -> Floats:
    """Sums of the rows, weighted alike or each in its own way."""
    if weights.shape[0] == 1 or weights.ndim == 1:
        return row_dots(values, weights.reshape(-1))
    return np.asarray(np.einsum("ij,ij->i", values, weights))


def _exp_remainder(a: Floats) -> Floats:
    """e^a - 1 - a, accurate near 0."""
    series = np.zeros_like(a)
    near = np.clip(a, -0.5, 0.5)
    for j in range(16, 2, -1):  # 2 (0.5)^15/17! is far below rounding
        series = (series + 1) * (near / j)
    return np.where(np.abs(a) < 0.5, near * near / 2 * (1 + series), np.expm1(a) - a)


def _sine_remainder(b: Floats, sine: Floats) -> Floats:
    """sin b - b, accurate near 0."""
    square = np.minimum(b * b, 1.0)
    series = square * (-1 / (17 * 16))
    for j in range(15, 3, -2):  # 6/19! is below rounding
        series += 1
        series *= square
        series *= -1 / (j * (j - 1))
    series += 1
    series *= square
    series *= b
    series *= -1 / 6
    far = np.abs(b) >= 1
    np.subtract(sine, b, out=series, where=far)
    return series


def _log1p(w: Complexes) -> Complexes:
    """log(1 + w) for complex w, accurate near 0."""
    with np.errstate(divide="ignore"):
        modulus = 0.5 * np.log1p(np.maximum(2 * w.real + w.real**2 + w.imag**2, -1.0))
    result: Complexes = modulus + 1j * np.arctan2(w.imag, 1 + w.real)
    return result


def central_reach(steps: Floats, law: Floats, n: int, negligible: float) -> float | None:
    """An angle at which n log |E e^(its)| has fallen below -negligible for the first time, up to a quarter."""
    away = steps - math.fsum(law * steps)
    deviation = math.sqrt(math.fsum(law * away**2))
    if deviation == 0:
        return None
    angle = math.sqrt(2 * negligible / n) / deviation
    limit = math.exp(-negligible / n)
    while angle < math.pi / 2:
        if abs(complex(np.exp(1j * angle * away) @ law)) < limit:
            return angle
        angle *= 1.25
    return None


def side_lobes(steps: Floats, law: Floats, n: int, reach: float, negligible: float) -> Floats | None:
    """The angles t in (reach, pi] of local maxima with n log |E e^(its)| > -negligible.

    Guarantees: outside of these maxima's own neighbourhoods, and beyond ``reach``, the transform's n-th power is
    smaller than e^-negligible. None where the law is too long to be looked at.
    """
    degree = int(steps[-1] - steps[0])
    size = fast_length(_OVERSAMPLING * (degree + 1))
    if size > _LARGEST_GRID:
        return None
    dense = np.bincount((steps - steps[0]).astype(np.int64), weights=law, minlength=degree + 1)
    modulus = np.abs(fft.rfft(dense, size))
    angles = 2 * math.pi * np.arange(len(modulus)) / size
    gap = 2 * math.pi / size
    left = np.concatenate([modulus[1:2], modulus[:-1]])
    right = np.concatenate([modulus[1:], modulus[-2:-1] if size % 2 == 0 else modulus[-1:]])
    limit = math.exp(-negligible / n)
    high = modulus >= limit * math.cos(math.pi / _OVERSAMPLING)
    peaks = angles[(modulus >= left) & (modulus >= right) & high & (angles > reach - gap)]
    if len(peaks) * len(steps) > _BLOCK:
        return None
    tops, logs = _climb(steps, law, peaks, gap)
    there = (tops > reach) & (n * logs > -negligible)
    return np.unique(tops[there])


def _climb(steps: Floats, law: Floats, peaks: Floats, gap: float) -> tuple[Floats, Floats]:
    """Newton's method on log |E e^(its)| from points of the grid, never further than a point of the grid."""
    away = steps - math.fsum(law * steps)
    t = peaks.copy()
    for _ in range(8):
        waves = np.exp(1j * np.multiply.outer(t, away)) * law
        value, slope, bend = waves.sum(axis=1), 1j * row_dots(waves, away), -row_dots(waves, away**2)
        with np.errstate(all="ignore"):
            first = (slope / value).real
            second = (bend / value - (slope / value) ** 2).real
            move = np.where(second < 0, -first / second, np.sign(first) * gap / 4)
        t = np.clip(t + np.where(np.isfinite(move), move, 0.0), peaks - gap, peaks + gap)
    t = np.minimum(t, 2 * math.pi - t)  # the modulus is even about pi
    with np.errstate(divide="ignore"):
        logs = np.log(np.minimum(np.abs(row_dots(np.exp(1j * np.multiply.outer(t, away)), law)), 1.0))
    return t, logs
