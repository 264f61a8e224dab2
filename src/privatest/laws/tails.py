"""Two ways to the tails of a sum of n scores plus noise, both accurate relative to the tail's own size.

*By convolution*: the law of the sum on a window that holds all but 1e-18 of it, by FFT. *By inversion*: one Fourier
integral, whose cost does not depend on n. Either way the law of a score is first tilted by e^(theta s), which makes
the tail that is asked for typical.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privatest.errors import InvalidInput
from privatest.laws.fourier import (
    Complexes,
    central_reach,
    doubling_panels,
    fast_length,
    log_transform,
    probabilities,
    side_lobes,
    sum_laws,
)
from privatest.privacy import Noise
from privatest.vectors import Floats, Integers, row_dots

__all__ = [
    "LARGEST_WINDOW",
    "NEGLIGIBLE_EXPONENT",
    "Window",
    "chernoff_windows",
    "convolve",
    "saddle",
    "tilt",
    "upper_tail_by_inversion",
    "window_ends",
]


# exp(-42) < 1e-18: what windows may leave out.
NEGLIGIBLE_EXPONENT = 42.0
# A step that n records take with less than this probability need not find room in a window.
RAREST_STEP = 3e-19


def tilt(steps: Floats, law: Floats, theta: float) -> tuple[Floats, float]:
    """The law tilted by e^(theta step), and log of the mass it was divided by."""
    exponents = theta * steps
    shift = float(exponents.max())
    with np.errstate(under="ignore"):
        weights = law * np.exp(exponents - shift)
    mass = float(weights.sum())
    return weights / mass, shift + math.log(mass)


def saddle(steps: Floats, law: Floats, n: int, level: float, most: float) -> float:
    """theta in [0, most] that minimises n log M(theta) - theta level: the best tilt for Pr[J + N > level].

    Rounded to a binary fraction by at most a quarter of the tilted sum's standard deviation, so that
    neighbouring levels share it and what was computed for it.

    Invariant of the bisection: the tilted mean is below level/n at `left` and not below at `right`.
    """
    goal = level / n
    if float(law @ steps) >= goal:
        return 0.0
    limit = most * (1 - 1e-9)
    if math.isinf(limit):
        limit = 1e-6
        while limit < 700 and float(tilt(steps, law, limit)[0] @ steps) < goal:
            limit *= 2
    if float(tilt(steps, law, limit)[0] @ steps) <= goal:
        return limit
    left, right = 0.0, limit
    while right - left > 1e-3 * right:
        middle = (left + right) / 2
        if float(tilt(steps, law, middle)[0] @ steps) < goal:
            left = middle
        else:
            right = middle
    found = (left + right) / 2
    tilted, _ = tilt(steps, law, found)
    deviation = math.sqrt(n * max(float(tilted @ (steps - tilted @ steps) ** 2), 1e-300))
    grain = math.ldexp(1.0, math.floor(math.log2(0.5 / deviation)))
    return min(round(found / grain) * grain, limit)


def window_ends(steps: Floats, law: Floats, n: int) -> tuple[int, int]:
    """Ends of a window that the sum of n steps leaves with probability under 2e-18.

    Steps at either end that n records all but never take are left out of the bound: one that is far would spoil it.
    """
    inner = (n * np.cumsum(law) > RAREST_STEP) & (n * np.cumsum(law[::-1])[::-1] > RAREST_STEP)
    return chernoff_windows(steps[inner], law[inner], [n])[0]


def chernoff_windows(steps: Floats, law: Floats, counts: Sequence[int]) -> list[tuple[int, int]]:
    """For each count a window that the sum of so many steps leaves with probability under 2e-18, by Chernoff's bound.

    The bound is computed for the largest count: the sum of fewer steps stays as near to its own mean.
    """
    most = max(counts)
    mean = float(law @ steps)
    spread = math.sqrt(max(float(law @ (steps - mean) ** 2), 1e-300))
    u = np.geomspace(1e-2, 50.0, 40) / (spread * math.sqrt(most))
    reaches = []
    for sign in (-1.0, 1.0):
        exponents = np.multiply.outer(u, sign * (steps - mean))
        with np.errstate(under="ignore"):
            cumulants = np.log(row_dots(np.exp(np.minimum(exponents, 600.0)), law))
        cumulants[exponents.max(axis=1) > 600.0] = math.inf
        reaches.append(float(np.min((most * cumulants + NEGLIGIBLE_EXPONENT) / u)))
    down, up = reaches
    least, largest = float(steps[0]), float(steps[-1])
    return [(math.floor(max(n * mean - down, n * least)), math.ceil(min(n * mean + up, n * largest))) for n in counts]


# exp(-46) = 1e-20: parts of the integrand that are left out.
_NEGLIGIBLE = 46.0
_MOST_PANELS = 1 << 16
_ROUNDING = 2.3e-16


def upper_tail_by_inversion(
    steps: Floats,
    law: Floats,
    n: int,
    noise: Noise,
    y: Fraction,
    spacing: int,
    theta: float,
    most_lobes: int = 0,
    most_work: float = 1 << 26,
) -> tuple[float, float] | None:
    r"""Pr[spacing J + N > y] and a bound on its error, or None where the integrand is too rough for it.

    .. math:: \Pr[J + N > y] = \frac{1}{2\pi} \int_{-\pi}^{\pi} \frac{M_J(z) M_N(z) e^{-z y}}{2 \sinh(z/2)} dt,
              \qquad z = \theta + i t,

    for y halfway between two values of J + N and any 0 < theta inside the noise's strip of convergence;
    ``theta`` is best near the saddle point. The integrand has a peak at t = 0 and, where the scores nearly lie
    on a coarser lattice, others: more than ``most_lobes`` of them are too many, and so is more than ``most_work``,
    nodes times steps.
    """
    if spacing > 1:
        if (coarse := noise.coarser(spacing)) is not None:
            return _on_coarser_lattice(steps, law, n, coarse, y, spacing, theta, most_lobes, most_work)
        steps = steps * spacing
    mean = math.fsum(law * steps)
    spread = math.sqrt(n * math.fsum(law * (steps - mean) ** 2) + noise.variance)
    # Away from the pole at 0 by about one standard deviation's worth, well inside the strip.
    theta = min(max(theta, 1.0 / spread), 0.9 * noise.decay_rate)
    if theta * float(steps[-1] - mean) > 500:  # beyond what exponentials can hold
        return None
    tilted, _ = tilt(steps, law, theta)
    reach = central_reach(steps, tilted, n, _NEGLIGIBLE)
    # A flat law's transform has a pole beside every multiple of 2 pi/plateau: only the one at 0 is resolved.
    if reach is None or reach * noise.plateau > 5.0:
        return None
    lobes = side_lobes(steps, tilted, n, reach, _NEGLIGIBLE)
    if lobes is None or len(lobes) > most_lobes:
        return None
    first, last = window_ends(steps, tilted, n)
    bandwidth = float(max(abs(y - first), abs(last - y)))
    # The first panel is half the smallest scale of the integrand.
    scale = min(theta, noise.decay_rate - theta, 1.0 / spread)
    panels = doubling_panels(scale / 2, reach, bandwidth, _MOST_PANELS)
    nodes = None if panels is None else _nodes_at_every_peak(lobes, *panels, reach)
    if nodes is None or len(nodes[0]) * len(steps) > most_work:
        return None
    return _integral(steps, law, n, noise, y, theta, reach, *nodes)


def _integral(
    steps: Floats,
    law: Floats,
    n: int,
    noise: Noise,
    y: Fraction,
    theta: float,
    reach: float,
    t: Floats,
    weights: Floats,
) -> tuple[float, float]:
    z = theta + 1j * np.concatenate([[0.0], t])
    mu, logs = log_transform(steps, law, z)
    away = float(y - n * Fraction(mu))
    with np.errstate(under="ignore"):
        factors = np.exp(n * logs - z * away) / (2 * np.sinh(z / 2))
    value = math.fsum(weights * (factors * noise.characteristic(-1j * z)).real[1:]) / math.pi
    # The noise's transform has the rounding of its largest value, at t = 0; the exponent has that of its terms,
    # and beside the other peaks, where the transform of the law is not near 1, that of n times a phase.
    highest = abs(complex(noise.characteristic(np.array([-1j * theta]))[0]))
    rounding = 20 + 8 * n * np.abs(logs.real) + 4 * np.abs(n * logs.imag - z.imag * away) + 2 * abs(theta * away)
    rounding[1:] += np.where(t > reach, n * (1 + t * float(steps[-1] - steps[0])), 0.0)
    sizes = np.abs(factors) * highest / math.pi
    error = _ROUNDING * math.fsum(weights * (rounding * sizes)[1:])
    # Beyond the reach |sinh(z/2)| is at least sin(reach/2).
    outside = math.exp(-_NEGLIGIBLE) * float(sizes[0]) * math.pi * math.sinh(theta / 2) / math.sin(reach / 2)
    return min(max(value, 0.0), 1.0), min(error + outside, 1.0)


def _nodes_at_every_peak(lobes: Floats, t: Floats, weights: Floats, reach: float) -> tuple[Floats, Floats] | None:
    """The nodes around 0 once more on both sides of every other peak; None where peaks overlap."""
    if len(lobes) == 0:
        return t, weights
    at_pi = np.abs(lobes - math.pi) < 1e-3 * reach  # a peak at pi is there by symmetry; half of it counts
    inner = lobes[~at_pi]
    centres = np.concatenate([[0.0], inner, [math.pi] if np.any(at_pi) else []])
    if np.any(np.diff(centres) < 2 * reach) or np.any(inner > math.pi - reach):
        return None
    sides = [t, *(inner[:, None] + t).reshape(1, -1), *(inner[:, None] - t).reshape(1, -1)]
    shares = [weights, np.tile(weights, 2 * len(inner))]
    if np.any(at_pi):
        sides.append(math.pi - t)
        shares.append(weights)
    return np.concatenate(sides), np.concatenate(shares)


def _on_coarser_lattice(
    steps: Floats,
    law: Floats,
    n: int,
    coarse: Noise,
    y: Fraction,
    spacing: int,
    theta: float,
    most_lobes: int,
    most_work: float,
) -> tuple[float, float] | None:
    """N = spacing N' + V, N' the noise on the coarser lattice and V uniform on `spacing` points centred at 0.

    So the probability is an average over V, and only two neighbouring values occur in it.
    """
    offset = coarse.offset
    half = Fraction(spacing - 1, 2)
    highest = math.floor((y + half) / spacing - offset)
    # V = -half + v, v = 0..spacing-1, moves the level past `highest` once (y + half - v)/spacing - offset < highest.
    still = min(math.floor(y + half - spacing * (highest + offset)) + 1, spacing)
    value = error = 0.0
    for level, share in ((highest, still), (highest - 1, spacing - still)):
        if share:
            middle = level + offset + Fraction(1, 2)
            found = upper_tail_by_inversion(steps, law, n, coarse, middle, 1, theta * spacing, most_lobes, most_work)
            if found is None:
                return None
            value += found[0] * share / spacing
            error += found[1] * share / spacing
    return value, error


# Beyond this n the FFT's rounding, n times 1e-16, starts to show.
MOST_CONVOLVED = 1_000
LARGEST_WINDOW = 1 << 24


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
    places, shift = steps.astype(np.int64) - centre, n * centre
    accuracy = _ROUNDING * math.log2(size + 1)
    central = _waves_near_zero(places, tilted, n, size) if n > MOST_CONVOLVED else None
    if central is None:
        (weights,) = sum_laws(places, [tilted], [[n]], [(first - shift, last - shift)])
        accuracy *= n + 1
    else:
        weights = probabilities(central[0], size, first=first - shift, count=last - first + 1)
        accuracy += central[1]
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


def _waves_near_zero(places: Integers, law: Floats, n: int, size: int) -> tuple[Complexes, float] | None:
    """Logarithms of the Fourier coefficients of the sum of n steps, and their error; None where other peaks matter.

    Only those near 0 are computed, to their own accuracy: multiplied by n, the rounding of an FFT would show.
    """
    steps = places.astype(np.float64)
    reach = central_reach(steps, law, n, NEGLIGIBLE_EXPONENT)
    lobes = None if reach is None else side_lobes(steps, law, n, reach, NEGLIGIBLE_EXPONENT)
    if reach is None or lobes is None or len(lobes) > 0:
        return None
    near = math.ceil(reach * size / (2 * math.pi)) + 1
    t = 2 * math.pi * np.arange(min(near, size // 2 + 1)) / size
    mean, logs = log_transform(steps, law, (-1j * t).astype(np.complex128))
    waves = np.full(size // 2 + 1, -np.inf, dtype=np.complex128)
    # The mean is at most half a step, and its multiple is taken modulo the window.
    turns = math.fmod(n * mean, size) if abs(mean) < 2**-20 else n * mean
    waves[: len(t)] = n * logs - 1j * t * turns
    return waves, _ROUNDING * (NEGLIGIBLE_EXPONENT * 8 + 4 * abs(n * mean) * reach)
