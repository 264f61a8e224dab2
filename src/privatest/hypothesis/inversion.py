"""Tail probabilities of a noisy total by one Fourier integral, at a cost that does not depend on n."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from privatest.hypothesis.panels import doubling_panels
from privatest.hypothesis.spectrum import central_reach, log_transform, side_lobes
from privatest.hypothesis.tilt import tilt, window_ends
from privatest.noise import Noise, Tulap

__all__ = ["upper_tail_by_inversion"]

Floats = npt.NDArray[np.float64]

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
        if isinstance(noise, Tulap) and noise.width % spacing == 0:
            return _on_coarser_lattice(steps, law, n, noise, y, spacing, theta, most_lobes, most_work)
        steps = steps * spacing
    mean = math.fsum(law * steps)
    spread = math.sqrt(n * math.fsum(law * (steps - mean) ** 2) + noise.variance)
    # Away from the pole at 0 by about one standard deviation's worth, well inside the strip.
    theta = min(max(theta, 1.0 / spread), 0.9 * noise.decay_rate)
    if theta * float(steps[-1] - mean) > 500:  # beyond what exponentials can hold
        return None
    tilted, _ = tilt(steps, law, theta)
    reach = central_reach(steps, tilted, n, _NEGLIGIBLE)
    # Tulap's transform has a pole beside every multiple of 2 pi/width: only the one at 0 is resolved.
    if reach is None or (isinstance(noise, Tulap) and reach * noise.width > 5.0):
        return None
    lobes = side_lobes(steps, tilted, n, reach, _NEGLIGIBLE)
    if lobes is None or len(lobes) > most_lobes:
        return None
    first, last = window_ends(steps, tilted, n)
    bandwidth = float(max(abs(y - first), abs(last - y)))
    # The first panel is half the smallest scale of the integrand.
    scale = min(theta, noise.decay_rate - theta, 1.0 / spread)
    panels = doubling_panels(scale / 2, reach, bandwidth, _MOST_PANELS)
    nodes = None if panels is None else _around(lobes, *panels, reach)
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


def _around(lobes: Floats, t: Floats, weights: Floats, reach: float) -> tuple[Floats, Floats] | None:
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
    noise: Tulap,
    y: Fraction,
    spacing: int,
    theta: float,
    most_lobes: int,
    most_work: float,
) -> tuple[float, float] | None:
    """N = spacing N' + V, N' Tulap on the coarser lattice and V uniform on `spacing` points centred at 0.

    So the probability is an average over V, and only two neighbouring values occur in it.
    """
    coarse = Tulap(noise.epsilon, noise.width // spacing)
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
