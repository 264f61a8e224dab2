"""Fourier transforms of laws of integers, where the sum of n independent ones is the n-th power.

On a circle of integers by FFT (numpy's: the same code as that of ``scipy.fft``, whose import takes a third of the time
of a whole plan); at any angle near zero to full relative accuracy, with what says whether other angles matter; for
tuning, which asks a hundred times, to an absolute accuracy near 1e-13. And the nodes of Fourier integrals:
Gauss-Legendre panels that double in length from the origin on.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
from numpy import fft

from privatest.numbers import Floats, dot, row_dots

Complexes = npt.NDArray[np.complex128]

# Fourier coefficients below e^-64 are left out: all of them together are below 1e-20.
_LEFT_OUT = 64.0


def probabilities(logs: Complexes, size: int, *, first: int, count: int) -> Floats:
    """The probabilities of ``count`` integers from ``first`` on, from logarithms of Fourier coefficients."""
    return _unfolded(np.exp(logs), size, first, count)


def sum_laws(
    places: npt.NDArray[np.int64],
    laws: Sequence[Floats],
    counts: Sequence[Sequence[int]],
    windows: Sequence[tuple[int, int]],
    noise_waves: Callable[[int], Complexes] | None = None,
) -> list[Floats]:
    """Laws of sums of independent integers, each on its own window, from one Fourier transform for each law.

    The i-th sum has ``counts[i][j]`` terms with law ``laws[j]`` on ``places``. Out come its probabilities at the
    integers of ``windows[i]``, first to last; what lies outside of the widest window is folded into it, so windows must
    hold all that matters. ``noise_waves(size)`` are log Fourier coefficients of a noise, where one is added.

    >>> coin = np.array([0.5, 0.5])
    >>> [law.round(12).tolist() for law in sum_laws(np.array([0, 1]), [coin], [[1], [2]], [(0, 2), (0, 2)])]
    [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]]
    """
    size = fast_length(max(last - first + 1 for first, last in windows))
    waves = [fft.rfft(np.bincount(places % size, weights=law, minlength=size)) for law in laws]
    with np.errstate(divide="ignore"):
        sizes = [0.5 * np.log(wave.real**2 + wave.imag**2) for wave in waves]
    noise = np.zeros(1) if noise_waves is None else noise_waves(size)
    # A coefficient that is left out for one of the sums may count for another, of fewer terms.
    kept = np.zeros(size // 2 + 1, dtype=bool)
    counted = []
    for row in counts:
        size_of_sum = noise.real + sum(count * part for count, part in zip(row, sizes, strict=True) if count)
        counted.append(np.broadcast_to(np.asarray(size_of_sum) > -_LEFT_OUT, kept.shape))
        kept |= counted[-1]
    index = np.flatnonzero(kept)
    with np.errstate(divide="ignore"):  # the log of 0 is minus infinity, and counts as that
        logs = [np.log(wave[index]) if len(index) else index for wave in waves]
    found = []
    for row, those, (first, last) in zip(counts, counted, windows, strict=True):
        inner = those[index]
        there = index[inner]
        exponents = np.broadcast_to(noise, kept.shape)[there] + 0j
        for count, log in zip(row, logs, strict=True):
            if count:
                exponents += count * log[inner]
        coefficients = np.zeros(size // 2 + 1, dtype=np.complex128)
        coefficients[there] = np.exp(exponents)
        found.append(_unfolded(coefficients, size, first, last - first + 1))
    return found


def small_sums(places: npt.NDArray[np.int64], laws: Sequence[Floats], n: int) -> list[Floats]:
    """Laws of the sum of n independent integers from 0 on, on all values that it takes, for each law of one of them.

    For n times the largest place so small that all of it is quickly transformed; errors are near n 1e-16.

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
    """The probabilities of ``count`` integers from ``first`` on, from Fourier coefficients."""
    circle = np.maximum(fft.irfft(coefficients, size), 0.0)
    start = first % size
    if start + count <= size:
        return circle[start : start + count]
    return np.concatenate([circle[start:], circle[: start + count - size]])


def convolution(first: Floats, second: Floats) -> Floats:
    """The full convolution of two sequences, as ``scipy.signal.fftconvolve`` has it, whose import takes a while.

    >>> np.round(convolution(np.array([1.0, 2.0]), np.array([1.0, 0.0, 3.0])), 12).tolist()
    [1.0, 2.0, 3.0, 6.0]
    """
    count = len(first) + len(second) - 1
    size = fast_length(count)
    return np.asarray(fft.irfft(fft.rfft(first, size) * fft.rfft(second, size), size)[:count])


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


def side_lobes(
    steps: Floats, law: Floats, n: int, reach: float, negligible: float, most: float = math.inf
) -> Floats | None:
    """The angles t in (reach, pi] of local maxima with n log |E e^(its)| > -negligible.

    Guarantees: outside of these maxima's own neighbourhoods, and beyond ``reach``, the transform's n-th power is
    smaller than e^-negligible. None where the law is too long to be looked at, or has more than ``most`` of them.
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
    # Points of the grid that are high enough as they are: beside each is a maximum, wherever that lies exactly.
    sure = (modulus > left) & (modulus >= right) & (modulus > limit * (1 + 1e-9)) & (angles > reach + gap)
    if len(peaks) * len(steps) > _BLOCK or np.count_nonzero(sure) > most:
        return None
    tops, logs = _climb(steps, law, peaks, gap)
    found = np.unique(tops[(tops > reach) & (n * logs > -negligible)])
    return found if len(found) <= most else None


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
        before, t = t, np.clip(t + np.where(np.isfinite(move), move, 0.0), peaks - gap, peaks + gap)
        if np.array_equal(before, t):
            break
    t = np.minimum(t, 2 * math.pi - t)  # the modulus is even about pi
    with np.errstate(divide="ignore"):
        logs = np.log(np.minimum(np.abs(row_dots(np.exp(1j * np.multiply.outer(t, away)), law)), 1.0))
    return t, logs


# 6^64/64! < 1e-39
_QUICK_MOMENTS = 64
_SERIES_RADIUS = 6.0
_FACTORIALS = np.array([float(math.factorial(j)) for j in range(1, _QUICK_MOMENTS + 1)])


def _moments_for(radius: float) -> int:
    """An even number of moments after which those that follow add less than 1e-20 at this distance."""
    added = radius ** np.arange(1, _QUICK_MOMENTS + 1) / _FACTORIALS
    needed = int(np.flatnonzero(added > 1e-21)[-1]) + 2 if added[0] > 1e-21 else 2
    return min(needed + needed % 2, _QUICK_MOMENTS)


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
    count = _moments_for(float(t[-1]) * max(sizes))
    moments = np.empty((len(laws), count))
    for row, (law, mean, size) in enumerate(zip(laws, means, sizes, strict=True)):
        powers = np.cumprod(np.broadcast_to((steps - mean) / size, (count, len(steps))), axis=0)
        moments[row] = np.einsum("ij,j->i", powers, law)
    # (i x)^j is real for even j and imaginary for odd j, and either way a power of -x^2.
    coefficients = (moments / _FACTORIALS[:count]).reshape(
        len(laws), -1, 2
    )  # [law, k, :] are those of x^(2k+1), x^(2k+2)
    x = np.multiply.outer(sizes, t)
    square = -(x * x)
    series = np.zeros((2, *x.shape))
    for k in range(count // 2 - 1, -1, -1):
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
