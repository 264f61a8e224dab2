"""Adaptive Gauss-Legendre quadrature of many panels at once, and the panels that suit a given log density.

An integrand gives, for every abscissa, its value and the size of its rounding error, so that refinement
stops at the noise floor instead of chasing it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.numbers import Floats, row_dots

__all__ = [
    "GAUSS",
    "Integrand",
    "Nodes",
    "Panels",
    "adaptive",
    "build_panels",
    "half_nodes",
    "panel_nodes",
    "split_panels",
]

ORDER = 20
_t, _w = np.polynomial.legendre.leggauss(ORDER)
GAUSS: tuple[Floats, Floats] = ((_t + 1) / 2, _w / 2)
"""Abscissae and weights on [0, 1]."""
Nodes = tuple[Floats, ...]
"""Whatever the integrand wants to know at the abscissae, one array of shape (panels, ORDER) for each."""
Integrand = Callable[[Nodes], tuple[Floats, Floats]]
RELATIVE_TOLERANCE = 2e-15
MOST_ROUNDS = 64
MOST_PANELS = 2000


def panel_nodes(lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Abscissae and weights of every panel, each of shape (panels, ORDER)."""
    width = (upper - lower)[:, None]
    return lower[:, None] + width * GAUSS[0], width * GAUSS[1]


def adaptive(
    integrand: Integrand,
    evaluate: Callable[[Floats], Nodes],
    lower: Floats,
    upper: Floats,
    whole: Nodes,
    halves: Nodes,
) -> tuple[float, float, Floats]:
    """The integral, a bound on its error, and what each of the first panels contributed.

    ``whole`` holds the nodes of each panel and ``halves`` those of its left, then of its right half
    (shape (2 * panels, ORDER)). A panel is accepted when both agree; otherwise its halves are tried.

    Invariant: accepted + pending panels tile the first panels.
    """
    owner: NDArray[np.intp] = np.arange(lower.size)
    sums = np.zeros(lower.size)
    error = 0.0
    coarse = _weigh(integrand, whole, lower, upper)[0]
    for _ in range(MOST_ROUNDS):
        middle = (lower + upper) / 2
        left, left_noise = _weigh(integrand, _part(halves, 0), lower, middle)
        right, right_noise = _weigh(integrand, _part(halves, 1), middle, upper)
        fine = left + right
        gap = np.abs(fine - coarse)
        pending = np.abs(sums).sum() + np.abs(fine).sum()
        bar = RELATIVE_TOLERANCE * pending + left_noise + right_noise
        narrow = upper - lower <= 1e-14 * np.maximum(np.abs(lower), np.abs(upper))
        bad = (gap > bar) & ~narrow
        if bad.sum() > MOST_PANELS:  # keep the work bounded: refine the worst ones
            bad &= gap >= np.partition(gap[bad], -MOST_PANELS)[-MOST_PANELS]
        done = ~bad
        np.add.at(sums, owner[done], fine[done])
        error += float(gap[done].sum())
        if not bad.any():
            break
        coarse = np.concatenate([left[bad], right[bad]])
        owner = np.concatenate([owner[bad], owner[bad]])
        lower, upper = (
            np.concatenate([lower[bad], middle[bad]]),
            np.concatenate([middle[bad], upper[bad]]),
        )
        halves = half_nodes(evaluate, lower, upper)
    else:
        np.add.at(sums, owner, coarse)
        error += float(np.abs(coarse).sum())
    return float(sums.sum()), error, sums


def split_panels(
    evaluate: Callable[[Floats], Nodes],
    cuts: Floats,
    lower: Floats,
    upper: Floats,
    whole: Nodes,
    halves: Nodes,
) -> tuple[Floats, Floats, Nodes, Nodes]:
    """The same panels, those with a cut inside replaced by their parts; the nodes of all others are kept."""
    index = np.searchsorted(lower, cuts, side="right") - 1
    cuts, index = cuts[index >= 0], index[index >= 0]
    inside = (cuts > lower[index]) & (cuts < upper[index])
    touched = np.unique(index[inside])
    if touched.size == 0:
        return lower, upper, whole, halves
    points = np.unique(np.concatenate([lower[touched], upper[touched], cuts[inside]]))
    middle = (points[:-1] + points[1:]) / 2
    ours = np.isin(np.searchsorted(lower, middle, side="right") - 1, touched)
    new_lower, new_upper = points[:-1][ours], points[1:][ours]
    new_whole = evaluate(panel_nodes(new_lower, new_upper)[0])
    new_halves = half_nodes(evaluate, new_lower, new_upper)
    keep = np.ones(lower.size, dtype=bool)
    keep[touched] = False
    sides = [
        tuple(np.concatenate([old[keep], new]) for old, new in zip(_part(halves, i), _part(new_halves, i), strict=True))
        for i in (0, 1)
    ]
    return (
        np.concatenate([lower[keep], new_lower]),
        np.concatenate([upper[keep], new_upper]),
        tuple(np.concatenate([old[keep], new]) for old, new in zip(whole, new_whole, strict=True)),
        tuple(np.concatenate([left, right]) for left, right in zip(*sides, strict=True)),
    )


def half_nodes(evaluate: Callable[[Floats], Nodes], lower: Floats, upper: Floats) -> Nodes:
    """Nodes of the left, then of the right halves."""
    middle = (lower + upper) / 2
    x, _ = panel_nodes(np.concatenate([lower, middle]), np.concatenate([middle, upper]))
    return evaluate(x)


def _part(halves: Nodes, which: int) -> Nodes:
    size = halves[0].shape[0] // 2
    return tuple(part[which * size : (which + 1) * size] for part in halves)


def _weigh(integrand: Integrand, nodes: Nodes, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    value, noise = integrand(nodes)
    width = upper - lower
    return row_dots(value, GAUSS[1]) * width, row_dots(noise, GAUSS[1]) * width


Function = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Panels:
    """Consecutive panels with the mass of each and a bound on the error of their sum."""

    edges: Floats
    masses: Floats
    error: float

    @property
    def total(self) -> float:
        return math.fsum(self.masses.tolist())


def build_panels(logpdf: Function, breaks: Floats) -> Panels:
    """Panels refined until 20 nodes on each agree with 20 on each half."""
    lower, upper = breaks[:-1], breaks[1:]
    coarse, _ = _masses(logpdf, lower, upper)
    done: list[tuple[Floats, Floats, Floats]] = []
    settled = error = 0.0
    for _ in range(60):
        middle = (lower + upper) / 2
        halves, noise = _masses(logpdf, np.concatenate([lower, middle]), np.concatenate([middle, upper]))
        left, right = halves[: lower.size], halves[lower.size :]
        gap = np.abs(left + right - coarse)
        # every panel to its own relative accuracy, so that small tails are accurate too
        bar = np.minimum(1e-15 * (settled + float(np.sum(left + right))), 1e-12 * (left + right))
        bar = bar + noise[: lower.size] + noise[lower.size :] + 1e-300
        bad = (gap > bar) & (upper - lower > 1e-14 * np.maximum(np.abs(lower), np.abs(upper)))
        good = ~bad
        done.append((lower[good], upper[good], (left + right)[good]))
        settled += float(done[-1][2].sum())
        error += float(gap[good].sum())
        if not bad.any() or bad.sum() > 20_000:
            break
        coarse = np.concatenate([left[bad], right[bad]])
        lower, upper = np.concatenate([lower[bad], middle[bad]]), np.concatenate([middle[bad], upper[bad]])
    if bad.any():
        done.append((lower[bad], upper[bad], (left + right)[bad]))
        error += float(gap[bad].sum())
    starts, ends, masses = (np.concatenate(part) for part in zip(*done, strict=True))
    order = np.argsort(starts)
    return Panels(np.append(starts[order], ends[order][-1]), masses[order], error)


def _masses(logpdf: Function, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Mass of each panel, and its error from the rounding of x and of the log density."""
    x, _ = panel_nodes(lower, upper)
    width = upper - lower
    with np.errstate(all="ignore"):
        log = logpdf(x.ravel()).reshape(x.shape)
        mass = row_dots(np.exp(log), GAUSS[1]) * width
        size = np.where(np.isfinite(log), log, 0.0)
        slope = np.ptp(size, axis=1) / width
        place = np.maximum(np.abs(lower), np.abs(upper))
        noise = 2.3e-16 * mass * (2 + np.abs(size).max(axis=1) + place * slope)
    return mass, np.where(np.isfinite(noise), noise, 0.0)
