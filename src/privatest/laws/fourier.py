"""Fourier transforms of laws of integers; that of the sum of n independent integers is the n-th power.

- On a circle of integers by FFT: :func:`sum_laws`, :func:`small_sums`, :func:`convolution`. (By numpy's FFT: importing
  ``scipy.fft`` takes a third of the time of a whole plan.)
- At any complex point near zero, to full relative accuracy: :func:`log_transform`.
- Where the n-th power has died, and whether it rises again: :func:`central_reach`, :func:`side_lobes`.
- Nodes of Fourier integrals, Gauss-Legendre panels that double in length from the origin on: :func:`doubling_panels`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy import fft

from privatest.numbers import Floats, dot, row_dots

Complexes = npt.NDArray[np.complex128]

# Fourier coefficients below e^-64 are left out: all of them together are below 1e-20.
_LEFT_OUT = 64.0


def probabilities(logs: Complexes, size: int, *, first: int, count: int) -> Floats:
    """Return the probabilities of ``count`` integers from ``first`` on, from logarithms of Fourier coefficients."""
    return _unfolded(np.exp(logs), size, first, count)


def sum_laws(
    places: npt.NDArray[np.int64],
    laws: Sequence[Floats],
    counts: Sequence[Sequence[int]],
    windows: Sequence[tuple[int, int]],
    noise_waves: Callable[[int], Complexes] | None = None,
) -> list[Floats]:
    """Laws of sums of independent integers, each on its own window, from one Fourier transform for each law.

    The i-th sum has ``counts[i][j]`` terms with law ``laws[j]`` on ``places``. Returned are its probabilities at the
    integers of ``windows[i]``, first to last; mass outside of the widest window is folded into it, so windows must
    hold all but a negligible part of the law. ``noise_waves(size)`` are the logarithms of the Fourier coefficients of
    a noise to be added.

    >>> coin = np.array([0.5, 0.5])
    >>> [law.round(12).tolist() for law in sum_laws(np.array([0, 1]), [coin], [[1], [2]], [(0, 2), (0, 2)])]
    [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]]
    """
    size = fast_length(max(last - first + 1 for first, last in windows))
    waves = [fft.rfft(np.bincount(places % size, weights=law, minlength=size)) for law in laws]
    with np.errstate(divide="ignore"):
        sizes = [0.5 * np.log(wave.real**2 + wave.imag**2) for wave in waves]
    noise = np.zeros(1) if noise_waves is None else noise_waves(size)
    # A coefficient that is negligible for one of the sums may matter for another, of fewer terms.
    needed = np.zeros(size // 2 + 1, dtype=bool)
    counted = []
    for row in counts:
        size_of_sum = noise.real + sum(count * part for count, part in zip(row, sizes, strict=True) if count)
        counted.append(np.broadcast_to(np.asarray(size_of_sum) > -_LEFT_OUT, needed.shape))
        needed |= counted[-1]
    index = np.flatnonzero(needed)
    with np.errstate(divide="ignore"):  # the log of 0 is minus infinity, and counts as that
        logs = [np.log(wave[index]) if len(index) else index for wave in waves]
    summed = []
    for row, those, (first, last) in zip(counts, counted, windows, strict=True):
        inner = those[index]
        there = index[inner]
        exponents = np.broadcast_to(noise, needed.shape)[there] + 0j
        for count, log in zip(row, logs, strict=True):
            if count:
                exponents += count * log[inner]
        coefficients = np.zeros(size // 2 + 1, dtype=np.complex128)
        coefficients[there] = np.exp(exponents)
        summed.append(_unfolded(coefficients, size, first, last - first + 1))
    return summed


def small_sums(places: npt.NDArray[np.int64], laws: Sequence[Floats], n: int) -> list[Floats]:
    """For each law, the law of the sum of n independent integers, on all values from 0 to n times the largest place.

    n times the largest place must be so small that all values are quickly transformed. Errors are near n 1e-16.

    >>> [law.round(12).tolist() for law in small_sums(np.array([0, 1]), [np.array([0.5, 0.5])], 2)]
    [[0.25, 0.5, 0.25]]
    """
    count = n * int(places[-1]) + 1
    size = fast_length(count)
    single = np.zeros((len(laws), int(places[-1]) + 1))
    single[:, places] = laws
    power = fft.rfft(single, size)
    waves = power if n % 2 else np.ones_like(power)
    for bit in bin(n)[-2:1:-1]:  # by repeated squaring
        power = power * power
        if bit == "1":
            waves = waves * power
    return list(np.maximum(fft.irfft(waves, size)[:, :count], 0.0))


def _unfolded(coefficients: Complexes, size: int, first: int, count: int) -> Floats:
    """Return the probabilities of ``count`` integers from ``first`` on, from Fourier coefficients."""
    circle = np.maximum(fft.irfft(coefficients, size), 0.0)
    start = first % size
    if start + count <= size:
        return circle[start : start + count]
    return np.concatenate([circle[start:], circle[: start + count - size]])


def convolution(first: Floats, second: Floats, *, valid: bool = False) -> Floats:
    """The convolution of two sequences; with ``valid`` only the part where the shorter ``second`` overlaps completely.

    Equal to ``scipy.signal.fftconvolve``, whose import takes a while.

    >>> np.round(convolution(np.array([1.0, 2.0]), np.array([1.0, 0.0, 3.0])), 12).tolist()
    [1.0, 2.0, 3.0, 6.0]
    >>> np.round(convolution(np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.0]), valid=True), 12).tolist()
    [3.0, 6.0]
    """
    count = len(first) if valid else len(first) + len(second) - 1
    size = fast_length(count)  # what wraps around the circle reaches no valid place
    whole = fft.irfft(fft.rfft(first, size) * fft.rfft(second, size), size)[:count]
    return np.asarray(whole[len(second) - 1 :] if valid else whole)


_ODD = (1, 3, 5, 9, 15, 25, 27, 45, 75, 81, 125)


def fast_length(size: int) -> int:
    """Return a number not below ``size``, and at most a tenth above it, whose only prime factors are 2, 3 and 5.

    >>> [fast_length(size) for size in (1, 7, 1023, 1025)]
    [1, 8, 1024, 1152]
    """
    return min(odd << (-(-size // odd) - 1).bit_length() for odd in _ODD)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
# Gauss's rule with 24 nodes integrates e^(i f x) over [-1, 1] to rounding for frequencies f up to this.
_RESOLVED = 12.0


def doubling_panels(first: float, reach: float, frequency: float, most: int) -> tuple[Floats, Floats] | None:
    """Nodes and weights on [0, reach] for frequencies up to ``frequency``; the first panel is at most ``first`` long.

    None if that takes more than ``most`` panels.
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


_RADIUS = 2.0
"""The series of central moments is used up to this distance, where it loses no digit."""
QUICK_RADIUS = 6.0
"""Up to this distance the series has an absolute accuracy near 1e-13, which is enough for tuning."""

# Points of the grid to a period of the fastest oscillation. Between neighbours of such a grid a trigonometric
# polynomial exceeds the grid's largest modulus by a factor of at most 1/cos(pi/16).
_OVERSAMPLING = 16
_LARGEST_GRID = 1 << 24
# Complex numbers in one block of work: 64 MB.
_BLOCK = 1 << 22
# Floats that stay in a processor's cache while they are worked on.
_CACHED = 1 << 15


def log_transform(
    steps: Floats, law: Floats, z: npt.NDArray[np.complexfloating[Any, Any]], *, radius: float = _RADIUS
) -> tuple[float, Complexes]:
    r"""Return the mean :math:`\mu` and :math:`\log E e^{z(s - \mu)}` at complex points z.

    Multiplied by n = 10^9 an error of 1e-16 in this logarithm would show. So it is computed without cancellation,
    from :math:`e^w - 1 - w`: :math:`\log(1 + E[w] + E[e^w - 1 - w])`, w = z(s - mu).
    Where \|z\| times the largest \|s - mu\| is at most ``radius`` the expectation is the series of the central moments.

    Guarantees: relative error of order 1e-15, besides that of the mean, for the default radius; the law counts as one
    that sums to 1.
    """
    points: Complexes = np.asarray(z, dtype=np.complex128)
    mu = math.fsum(law * steps)
    away = steps - mu
    left = math.fsum(law * away)  # the first moment about mu is not quite 0, as mu is rounded
    reach = float(max(away[-1], -away[0]))
    farthest = float(np.max(np.abs(points))) * reach
    if farthest > radius:
        return mu, _log1p(points * left + _second_order(away, law, points))
    away = away / reach
    power = away.copy()
    coefficients = [left / reach]
    size = farthest  # farthest^j / j!, a bound on the term of order j
    while size > 1e-21 or len(coefficients) < 2:
        power = power * away
        order = len(coefficients) + 1
        coefficients.append(dot(law, power) / math.factorial(order))
        size *= farthest / order
    series = np.zeros_like(points)
    for coefficient in reversed(coefficients):
        series = (series + coefficient) * (points * reach)
    return mu, _log1p(series)


def _second_order(away: Floats, law: Floats, z: Complexes) -> Complexes:
    r"""E[e^w - 1 - w] for w = z away, in blocks of bounded size, without cancellation.

    With w = a + ib the real part is :math:`(e^a - 1 - a) - 2 e^a \sin^2(b/2)` and the imaginary part
    :math:`(e^a - 1) \sin b + (\sin b - b)`, of which the last bracket and the first are series near 0.
    """
    remainders = np.empty(z.shape, dtype=np.complex128)
    rows = max(_CACHED // len(away), 1)
    for start in range(0, len(z), rows):
        part = z[start : start + rows]
        # Usually all points have the same real part, and one row of exponentials is enough.
        real = part.real[:1] if np.all(part.real == part.real[0]) else part.real
        a, b = np.multiply.outer(real, away), np.multiply.outer(part.imag, away)
        half = np.sin(b / 2)
        sine = 2 * half * np.cos(b / 2)
        remainders.real[start : start + rows] = _dots(_exp_remainder(a), law) - 2 * _dots(half * half, law * np.exp(a))
        remainders.imag[start : start + rows] = _dots(sine, law * np.expm1(a)) + _dots(_sine_remainder(b, sine), law)
    return remainders


def _dots(values: Floats, weights: Floats) -> Floats:
    """Weighted sums of the rows, with one row of weights for all or one for each."""
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
    """Return an angle below pi/2 at which n log |E e^(its)| first falls below -negligible; None if there is none."""
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


def side_lobes(
    steps: Floats, law: Floats, n: int, reach: float, negligible: float, most: float = math.inf
) -> Floats | None:
    """Return the angles t in (reach, pi] of local maxima with n log |E e^(its)| > -negligible.

    Guarantees: beyond ``reach`` and outside of the neighbourhoods of these maxima, the transform's n-th power is
    smaller than e^-negligible. None if the law is too long to be examined, or has more than ``most`` such maxima.
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
    # Points of the grid that are themselves high enough: beside each there is a maximum.
    sure = (modulus > left) & (modulus >= right) & (modulus > limit * (1 + 1e-9)) & (angles > reach + gap)
    if len(peaks) * len(steps) > _BLOCK or np.count_nonzero(sure) > most:
        return None
    if len(peaks) == 0:
        return peaks
    tops, logs = _climb(steps, law, peaks, gap)
    lobes = np.unique(tops[(tops > reach) & (n * logs > -negligible)])
    return lobes if len(lobes) <= most else None


def _climb(steps: Floats, law: Floats, peaks: Floats, gap: float) -> tuple[Floats, Floats]:
    """Maxima of log |E e^(its)| by Newton's method from points of the grid, at most one gap of the grid away."""
    away = steps - math.fsum(law * steps)
    t = peaks.copy()
    for _ in range(8):
        waves = np.exp(1j * np.multiply.outer(t, away)) * law
        value, slope, bend = waves.sum(axis=1), 1j * row_dots(waves, away), -row_dots(waves, away**2)
        with np.errstate(all="ignore"):
            first = (slope / value).real
            second = (bend / value - (slope / value) ** 2).real
            move = np.where(second < 0, -first / second, np.sign(first) * gap / 4)
        before, t = t, np.clip(t + np.where(np.isfinite(move), move, 0.0), peaks - gap, peaks + gap)
        if np.array_equal(before, t):
            break
    t = np.minimum(t, 2 * math.pi - t)  # the modulus is even about pi
    with np.errstate(divide="ignore"):
        logs = np.log(np.minimum(np.abs(row_dots(np.exp(1j * np.multiply.outer(t, away)), law)), 1.0))
    return t, logs
