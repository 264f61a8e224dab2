"""A distribution from a log density that the user wrote, and the quadrature that it needs.

Adaptive Gauss-Legendre quadrature works on many panels at once. An integrand returns, for every abscissa, its value and
the size of its rounding error, so that refinement stops at the noise floor instead of chasing it. :func:`find_breaks`
places the first panels around the modes of a density, out to its far tails and into both ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from privatest.errors import InvalidDistribution, shown
from privatest.hypotheses.distribution import Reals
from privatest.numbers import Floats, row_dots

LEVELS: Final[Floats] = np.unique(
    np.concatenate(
        [
            np.arange(0.02, 0.5, 0.02),  # the body
            10.0 ** -np.arange(2.0, 16.01, 0.5),  # tails that matter to a probability
            10.0 ** -np.arange(20.0, 301.0, 10.0),  # tails that matter to a ratio
            [0.5],
        ]
    )
)
"""Tail probabilities at whose quantiles panels and landmarks are placed."""

ORDER = 20
_t, _w = np.polynomial.legendre.leggauss(ORDER)
GAUSS: tuple[Floats, Floats] = ((_t + 1) / 2, _w / 2)
"""Abscissae and weights on [0, 1]."""
Nodes = tuple[Floats, ...]
"""Values at the abscissae that the integrand uses: arrays of shape (panels, ORDER)."""
Integrand = Callable[[Nodes], tuple[Floats, Floats]]
RELATIVE_TOLERANCE = 2e-15
MOST_ROUNDS = 64
MOST_PANELS = 2000


def panel_nodes(lower: Floats, upper: Floats) -> Floats:
    """Abscissae of every panel, of shape (panels, ORDER)."""
    return lower[:, None] + (upper - lower)[:, None] * GAUSS[0]


@dataclass(frozen=True)
class Panels:
    """Panels from left to right with the integral over each, and a bound on the error of their sum."""

    lower: Floats
    upper: Floats
    masses: Floats
    error: float

    @property
    def total(self) -> float:
        """The integral over all panels."""
        return math.fsum(self.masses.tolist())

    @property
    def edges(self) -> Floats:
        """The ends of panels that lie side by side."""
        return np.append(self.lower, self.upper[-1])


def adaptive(
    integrand: Integrand,
    evaluate: Callable[[Floats], Nodes],
    lower: Floats,
    upper: Floats,
    whole: Nodes,
    halves: Nodes,
    *,
    panel_tolerance: float | None = None,
) -> Panels:
    """Return the integral on panels that are halved until 20 nodes on each agree with 20 on each half.

    Invariant: the accepted and the pending panels tile the first panels.

    Args:
        integrand: the integrand and its rounding error, as functions of the nodes.
        evaluate: the nodes of new panels.
        lower, upper: ends of the first panels.
        whole: the nodes of each first panel.
        halves: the nodes of their left, then of their right halves.
        panel_tolerance: largest relative error of each panel, where small ones must be accurate too.
    """
    accepted: list[tuple[Floats, Floats, Floats]] = []
    settled = error = 0.0
    coarse = _weigh(integrand, whole, lower, upper)[0]
    for turn in range(MOST_ROUNDS):
        middle = (lower + upper) / 2
        left, left_noise = _weigh(integrand, _part(halves, 0), lower, middle)
        right, right_noise = _weigh(integrand, _part(halves, 1), middle, upper)
        fine = left + right
        gap = np.abs(fine - coarse)
        bar = np.full(fine.shape, RELATIVE_TOLERANCE * (settled + float(np.abs(fine).sum())))
        if panel_tolerance is not None:
            bar = np.minimum(bar, panel_tolerance * np.abs(fine)) + 1e-300
        narrow = upper - lower <= 1e-14 * np.maximum(np.abs(lower), np.abs(upper))
        bad = (gap > bar + left_noise + right_noise) & ~narrow & (turn < MOST_ROUNDS - 1)
        if bad.sum() > MOST_PANELS:  # keep the work bounded: refine the worst ones
            bad &= gap >= np.partition(gap[bad], -MOST_PANELS)[-MOST_PANELS]
        accepted.append((lower[~bad], upper[~bad], fine[~bad]))
        settled += float(np.abs(fine[~bad]).sum())
        error += float(gap[~bad].sum())
        if not bad.any():
            break
        coarse = np.concatenate([left[bad], right[bad]])
        lower, upper = np.concatenate([lower[bad], middle[bad]]), np.concatenate([middle[bad], upper[bad]])
        halves = half_nodes(evaluate, lower, upper)
    starts, ends, masses = (np.concatenate(part) for part in zip(*accepted, strict=True))
    order = np.argsort(starts)
    return Panels(starts[order], ends[order], masses[order], error)


def split_panels(
    evaluate: Callable[[Floats], Nodes], cuts: Floats, lower: Floats, upper: Floats, whole: Nodes, halves: Nodes
) -> tuple[Floats, Floats, Nodes, Nodes]:
    """Split the panels that a cut falls into, and keep the nodes of all others."""
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
    new_whole = evaluate(panel_nodes(new_lower, new_upper))
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
    return evaluate(panel_nodes(np.concatenate([lower, middle]), np.concatenate([middle, upper])))


def _part(halves: Nodes, which: int) -> Nodes:
    size = halves[0].shape[0] // 2
    return tuple(part[which * size : (which + 1) * size] for part in halves)


def _weigh(integrand: Integrand, nodes: Nodes, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    value, noise = integrand(nodes)
    width = upper - lower
    return row_dots(value, GAUSS[1]) * width, row_dots(noise, GAUSS[1]) * width


FARTHEST = 1e60
"""How far out on an infinite support to look, in units of one and of each mode's width."""


def find_breaks(
    logpdf: Callable[[Floats], Floats], support: tuple[float, float], points: Floats | None = None
) -> Floats:
    """Break points around every mode of the density, out to the far tails and into both ends."""
    lo, hi = support
    coarse = _coarse_grid(lo, hi, points)
    modes = _modes(logpdf, coarse)
    steps = np.concatenate([np.arange(0, 10, 0.5), 10 * 1.5 ** np.arange(0, math.log(FARTHEST) / math.log(1.5))])
    pieces = [np.array([x for x in (lo, hi) if math.isfinite(x)])]
    if points is not None:
        pieces.append(points)
    for mode in modes:
        width = _width(logpdf, float(mode), lo, hi)
        pieces += [mode + width * steps, mode - width * steps]
    for end, other, side in ((lo, hi, 1.0), (hi, lo, -1.0)):
        if math.isfinite(end):
            reach = abs(other - end) if math.isfinite(other) else float(np.max(np.abs(modes - end), initial=1.0))
            # towards 0 floats go on for ever; towards any other number they end after 52 halvings
            halvings = np.concatenate([np.arange(1, 60), np.arange(60, 900, 3)]) if end == 0 else np.arange(1, 50)
            pieces.append(end + side * reach * 2.0 ** -halvings.astype(float))
    everything = np.unique(np.concatenate(pieces))
    return np.asarray(everything[(everything >= lo) & (everything <= hi) & np.isfinite(everything)])


def _coarse_grid(lo: float, hi: float, points: Floats | None) -> Floats:
    octaves = 2.0 ** np.arange(-60, 200, 0.25)
    if math.isfinite(lo) and math.isfinite(hi):
        width = hi - lo
        near = width * 2.0 ** -np.arange(9, 50.0)
        grid = np.concatenate([lo + width * np.arange(1, 512) / 512, lo + near, hi - near])
    elif math.isfinite(lo):
        grid = lo + octaves
    elif math.isfinite(hi):
        grid = hi - octaves
    else:
        grid = np.concatenate([-octaves, [0.0], octaves])
    if points is not None:
        grid = np.concatenate([grid, points])
    grid = np.unique(grid)
    return grid[(grid > lo) & (grid < hi)]


def _modes(logpdf: Callable[[Floats], Floats], grid: Floats) -> Floats:
    """Local maxima seen on the grid and refined; ends count."""
    values = logpdf(grid)
    values = np.where(np.isnan(values), -np.inf, values)
    padded = np.concatenate([[-np.inf], values, [-np.inf]])
    peaks = (padded[1:-1] >= padded[:-2]) & (padded[1:-1] >= padded[2:]) & np.isfinite(values)
    best = float(np.max(values[np.isfinite(values)], initial=-np.inf))
    index = np.flatnonzero(peaks & (values > best - 800))
    index = index[np.argsort(-values[index], kind="stable")][:40]
    if index.size == 0:
        return grid[[grid.size // 2]]
    low, high = grid[np.maximum(index - 1, 0)], grid[np.minimum(index + 1, grid.size - 1)]
    return np.unique(np.concatenate([maxima(logpdf, low, high), grid[index]]))


def maxima(function: Callable[[Floats], Floats], low: Floats, high: Floats) -> Floats:
    """Approximate places of the largest value in each bracket; all brackets are searched at once."""
    rows, fractions = np.arange(low.size), np.linspace(0, 1, 33)
    best: Floats = low
    for _ in range(12):
        x = low[:, None] + (high - low)[:, None] * fractions
        values = function(x)
        top = np.argmax(np.where(np.isnan(values), -np.inf, values), axis=1)
        best = x[rows, top]
        low, high = x[rows, np.maximum(top - 1, 0)], x[rows, np.minimum(top + 1, 32)]
        if np.all(high - low <= 1e-9 * np.maximum(np.abs(low), np.abs(high))):  # flat at a maximum
            break
    return best


def _width(logpdf: Callable[[Floats], Floats], mode: float, lo: float, hi: float) -> float:
    """Distance at which the log density has dropped by a half on some side."""
    reach = 2.0 ** np.arange(-200, 200)
    reach = reach[(mode + reach != mode) | (mode - reach != mode)]
    top = float(logpdf(np.array([mode]))[0])
    x = np.stack([mode - reach, mode + reach])
    inside = (x > lo) & (x < hi)
    values = np.where(inside, logpdf(np.where(inside, x, mode).ravel()).reshape(x.shape), np.inf)
    dropped = np.any(values < top - 0.5, axis=0)
    if dropped.any():
        return float(reach[np.argmax(dropped)])
    return hi - lo if math.isfinite(hi - lo) else 1.0


def density_panels(logpdf: Callable[[Floats], Floats], breaks: Floats) -> Panels:
    """Panels between the breaks, refined until the mass of each is accurate."""

    def evaluate(x: Floats) -> Nodes:
        with np.errstate(all="ignore"):
            return x, logpdf(x)

    def mass(nodes: Nodes) -> tuple[Floats, Floats]:
        """Return the density, and its error from the rounding of x and of the log density."""
        x, log = nodes
        with np.errstate(all="ignore"):
            value = np.exp(log)
            size = np.where(np.isfinite(log), log, 0.0)
            slope = np.ptp(size, axis=1, keepdims=True) / np.ptp(x, axis=1, keepdims=True)
            noise = 2.3e-16 * value * (2 + np.abs(size) + np.abs(x) * slope)
        return value, np.where(np.isfinite(noise), noise, 0.0)

    lower, upper = breaks[:-1], breaks[1:]
    whole, halves = evaluate(panel_nodes(lower, upper)), half_nodes(evaluate, lower, upper)
    return adaptive(mass, evaluate, lower, upper, whole, halves, panel_tolerance=1e-12)


MASS_TOLERANCE = 1e-6


def density(
    logpdf: Callable[[Any], Any],
    *,
    support: tuple[float, float] = (-math.inf, math.inf),
    points: Sequence[float] | None = None,
    name: str = "density",
) -> Density:
    """Return the distribution with log density ``logpdf`` on ``support``.

    ``logpdf`` is called with an array where it can take one, else number by number. ``points`` are for densities whose
    peaks are too narrow to be found by search.

    Guarantees: integrates to 1 (a total within 1e-6 of 1 is normalised, any other is an error that says
    it); cdf and complement accurate in their own tails; ``.error`` bounds the quadrature error of the total.

    Args:
        logpdf: the logarithm of the density: a function of a number, or of an array.
        support: the two ends outside which the density is 0; infinite ones are allowed.
        name: what the distribution is called in print.
        points: places where the mass lies or the density bends; may be left out.

    >>> import numpy as np
    >>> density(lambda x: np.log(2 * x), support=(0, 1)).cdf(0.5).item()
    0.25
    """
    return Density(logpdf, support, points, name)


class Density(Reals):
    """See :func:`density`."""

    def __init__(
        self,
        logpdf: Callable[[Any], Any],
        support: tuple[float, float],
        points: Sequence[float] | None = None,
        name: str = "density",
    ) -> None:
        if not callable(logpdf):
            raise InvalidDistribution(f"{name}: logpdf must be a function of x, not {type(logpdf).__name__}.")
        self._function = logpdf
        self._name = name
        self._support = _check_support(support, name)
        self._points = _check_points(points, self._support, name)
        self._one_by_one = not _takes_arrays(logpdf, self._support)
        self._log_total = 0.0
        panels = self._integrate()
        self._log_total = math.log(panels.total)
        self._panels = replace(panels, masses=panels.masses / panels.total)

    @property
    def support(self) -> tuple[float, float]:
        return self._support

    @property
    def error(self) -> float:
        """Bound on the error of the total mass, as found by halving panels."""
        return self._panels.error

    def describe(self) -> str:
        return f"{self._name}({self._support[0]:g} to {self._support[1]:g})"

    def logpdf(self, x: ArrayLike) -> Floats:
        values = np.asarray(x, dtype=float)
        lo, hi = self._support
        inside = (values >= lo) & (values <= hi) & np.isfinite(values)
        log = np.full(values.shape, -np.inf)
        if inside.any():
            log[inside] = self._call(values[inside]) - self._log_total
        return log

    def _call(self, x: Floats) -> Floats:
        with np.errstate(all="ignore"):
            if self._one_by_one:
                log = np.array([self._at(float(value)) for value in x])
            else:
                try:
                    log = np.asarray(self._function(x))
                except Exception as fault:
                    raise self._raised(f"an array of x from {x.min():g} to {x.max():g}", fault) from fault
                if log.dtype.kind not in "iuf":
                    raise InvalidDistribution(
                        f"{self._name}: logpdf returned {log.dtype.name} values; it must return real numbers."
                    )
                log = np.broadcast_to(log.astype(float), x.shape)
        return np.where((x == self._support[0]) | (x == self._support[1]), np.where(np.isnan(log), -np.inf, log), log)

    def _at(self, x: float) -> float:
        try:
            return float(self._function(x))
        except Exception as fault:
            given_up = isinstance(fault, ValueError | ZeroDivisionError | OverflowError)
            if given_up and (x in self._support or abs(x) > 1e15):
                return -math.inf  # an end, or so far out that the formula gives up
            raise self._raised(f"x={shown(x)}", fault) from fault

    def _raised(self, at: str, fault: Exception) -> InvalidDistribution:
        """The error for an exception that the user's function raised. It names a point of a grid, never a record."""
        return InvalidDistribution(
            f"{self._name}: logpdf raised {type(fault).__name__} ({fault}) at {at}; it must return a number or -inf on "
            f"its whole support {self._support}. Correct it, or give the support on which it is defined."
        )

    def _integrate(self) -> Panels:
        breaks = find_breaks(self.logpdf, self._support, self._points)
        inner = (breaks[:-1] + breaks[1:]) / 2
        log = self.logpdf(inner)
        near = np.abs(inner) < 1e15
        if np.isnan(log[near]).any():
            x = float(inner[near][np.argmax(np.isnan(log[near]))])
            raise InvalidDistribution(
                f"{self._name}: logpdf is NaN at x={shown(x)}; it must be a number or -inf on its whole support."
            )
        if (log == np.inf).any():
            x = float(inner[np.argmax(log == np.inf)])
            raise InvalidDistribution(f"{self._name}: logpdf is +inf at x={shown(x)}, inside the support.")
        panels = density_panels(self._safe_logpdf, breaks)
        total = panels.total
        if not abs(total - 1) <= MASS_TOLERANCE:
            raise InvalidDistribution(
                f"{self._name} integrates to {total!r} over its support {self._support}: "
                "it must integrate to 1. If its mass is in a narrow place, name it with points=[...]."
            )
        return panels

    def _safe_logpdf(self, x: Floats) -> Floats:
        log = self.logpdf(x)
        return np.where(np.isnan(log), -np.inf, log)

    @cached_property
    def breaks(self) -> Floats:
        edges = self._panels.edges
        if edges.size <= 1500:
            return edges
        # refinement at kinks makes many edges; a landmark for every one would be too many, the kinks
        # themselves stay
        keep = np.unique(np.round(np.linspace(0, edges.size - 1, 1500)).astype(int))
        narrow = np.argsort(np.diff(edges), kind="stable")[:200]
        return np.unique(edges[np.concatenate([keep, narrow])])

    @cached_property
    def _before(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self._panels.masses)])

    @cached_property
    def _after(self) -> Floats:
        return np.concatenate([np.cumsum(self._panels.masses[::-1])[::-1], [0.0]])

    def cdf(self, x: ArrayLike) -> Floats:
        return self._cumulative(x, upper=False)

    def sf(self, x: ArrayLike) -> Floats:
        return self._cumulative(x, upper=True)

    def _cumulative(self, x: ArrayLike, *, upper: bool) -> Floats:
        values = np.asarray(x, dtype=float)
        flat = values.ravel()
        edges = self._panels.edges
        inside = np.clip(np.where(np.isnan(flat), edges[0], flat), edges[0], edges[-1])
        index = np.clip(np.searchsorted(edges, inside, side="right") - 1, 0, edges.size - 2)
        start, end = (inside, edges[index + 1]) if upper else (edges[index], inside)
        nodes = start[:, None] + (end - start)[:, None] * GAUSS[0]
        with np.errstate(all="ignore"):
            part = row_dots(np.exp(self._safe_logpdf(nodes)), GAUSS[1]) * (end - start)
        part = np.where(end > start, part, 0.0)
        mass = part + (self._after[index + 1] if upper else self._before[index])
        mass = np.where(np.isnan(flat), np.nan, np.clip(mass, 0.0, 1.0))
        return np.asarray(mass.reshape(values.shape))


def _check_support(support: Any, name: str) -> tuple[float, float]:
    try:
        lo, hi = (float(end) for end in support)
    except (TypeError, ValueError):
        raise InvalidDistribution(f"{name}: support={shown(support)} must be two numbers (low, high).") from None
    if math.isnan(lo) or math.isnan(hi) or not lo < hi:
        raise InvalidDistribution(f"{name}: support=({lo!r}, {hi!r}) must have low < high.")
    return lo, hi


def _check_points(points: Sequence[float] | None, support: tuple[float, float], name: str) -> Floats | None:
    if points is None:
        return None
    try:
        values = np.asarray(points, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InvalidDistribution(f"{name}: points={shown(points)} must be numbers.") from None
    if values.ndim != 1 or not np.all(np.isfinite(values)):
        raise InvalidDistribution(f"{name}: points={shown(points)} must be a flat list of finite numbers.")
    return np.unique(values[(values >= support[0]) & (values <= support[1])])


def _takes_arrays(function: Callable[[Any], Any], support: tuple[float, float]) -> bool:
    """Whether the function maps an array to an array of the same shape."""
    lo, hi = support
    middle = (
        (lo + hi) / 2
        if math.isfinite(lo + hi)
        else lo + 1
        if math.isfinite(lo)
        else hi - 1
        if math.isfinite(hi)
        else 0.5
    )
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(function(np.array([middle, middle])))
    except Exception:  # whatever it raises for an array, number by number it may do
        return False
    return result.shape in ((2,), ())
