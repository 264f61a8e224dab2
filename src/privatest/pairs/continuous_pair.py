"""Pairs of densities on the line.

The sets {L > y} and {L < y} are unions of intervals. Their ends are found by looking at L on landmarks
(quantiles of both distributions, ends of supports, extrema of L) and then cutting every bracketed change at
once until neighbouring floats are left; their masses are differences of cdfs. Where those cancel, and for
the divergences that are not made of masses, the densities are integrated on panels between the landmarks.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from privatest.pairs.distribution import Floats
from privatest.pairs.heavy_tails import has_true_zero, tail_remainder
from privatest.pairs.landmarks import Plateaus, find_plateaus, limits, refine_extrema, subdivide
from privatest.pairs.pair import Pair, Term, hockey_stick_term, kullback_leibler_term
from privatest.pairs.quadrature import Nodes, adaptive, half_nodes, panel_nodes, split_panels
from privatest.pairs.reals import Reals
from privatest.pairs.regions import Mask, find_edges

__all__ = ["ContinuousPair", "Interval"]

Interval = tuple[float, float]

CANCELLED = 1e-3
"""Below this fraction of the mass it is a difference of, a hockey-stick divergence is integrated instead."""
SAME_LEVEL = 1e-15
THINNEST = 1e-13
"""Panels relatively thinner than this cannot hold their nodes; they count by their masses."""


class ContinuousPair(Pair):
    """P and Q with densities on the line."""

    null: Reals
    alternative: Reals

    def __init__(self, null: Reals, alternative: Reals) -> None:
        self.null, self.alternative = null, alternative
        self._regions: dict[tuple[float, bool], list[Interval]] = {}
        self._sticks: dict[tuple[float, bool], float] = {}

    @property
    def kind(self) -> str:
        return "reals"

    @cached_property
    def support(self) -> Interval:
        """Hull of both supports."""
        ends = (self.null.support, self.alternative.support)
        return min(lo for lo, _ in ends), max(hi for _, hi in ends)

    def ratio(self, x: ArrayLike) -> Floats:
        values = np.asarray(x)
        if values.dtype.kind not in "biuf":
            return np.full(values.shape, np.nan)
        return self._snapped(values.astype(float))

    def _snapped(self, x: Floats) -> Floats:
        """L(x), constant where it is constant, and carried on where both densities underflow."""
        raw, _ = self._trusted(x)
        (low, at_low), (high, at_high) = self._outermost
        lo, hi = self.support
        lost = np.isnan(raw) & np.isfinite(x)
        if lost.any():
            raw = np.where(lost & (x < low) & (x >= lo), at_low, raw)
            raw = np.where(lost & (x > high) & (x <= hi), at_high, raw)
        return np.asarray(raw)

    def _trusted(self, x: Floats) -> tuple[Floats, Floats]:
        """L(x), NaN where rounding drowns it, and the rounding error."""
        raw, noise = self._raw(x)
        with np.errstate(invalid="ignore"):
            raw = np.where(noise > 1e-4 * (1 + np.abs(raw)), np.nan, raw)
        return self._plateaus.apply(x, raw), noise

    def _raw(self, x: Floats) -> tuple[Floats, Floats]:
        """log p - log q, and the rounding error it may carry."""
        with np.errstate(all="ignore"):
            log_p, log_q = self.null.logpdf(x), self.alternative.logpdf(x)
            ratio = self._difference(x, log_p, log_q)
            noise = 2.3e-16 * (2 + np.abs(log_p) + np.abs(log_q))
        infinite = np.isinf(ratio)
        if infinite.any():  # far out in both supports that is an overflow of scipy's, not a zero
            (lo, hi), (low, high) = self._common_support, self._body
            ratio = np.where(infinite & (x > lo) & (x < hi) & ((x < low) | (x > high)), np.nan, ratio)
        return ratio, noise

    @cached_property
    def _common_support(self) -> Interval:
        (a, b), (c, d) = self.null.support, self.alternative.support
        return max(a, c), min(b, d)

    @cached_property
    def _body(self) -> Interval:
        """What lies between the 1e-16 quantiles of P or of Q."""
        x = self._breaks
        cdf = np.maximum(self.null.cdf(x), self.alternative.cdf(x))
        sf = np.maximum(self.null.sf(x), self.alternative.sf(x))
        inside = x[(cdf >= 1e-16) & (sf >= 1e-16)]
        return float(inside[0]), float(inside[-1])

    def _difference(self, x: Floats, log_p: Floats, log_q: Floats) -> Floats:
        """L(x); a pair that knows it better than from its densities says so here."""
        del x
        return np.asarray(log_p - log_q)

    @cached_property
    def _breaks(self) -> Floats:
        """Ends of the first panels."""
        points = np.concatenate([self.null.breaks, self.alternative.breaks])
        points = np.unique(points[np.isfinite(points)])
        ends = [x for x in (*self.null.support, *self.alternative.support) if math.isfinite(x)]
        # breaks that rounding put next to one another make panels too thin to be of use
        gap = np.diff(points, prepend=-np.inf)
        points = points[gap > 4e-16 * np.abs(points)]
        return np.unique(np.concatenate([points, ends]))

    @cached_property
    def _first_grid(self) -> tuple[Floats, Floats, Floats]:
        """Points, L and its rounding error there, before extrema are refined."""
        ends = np.array([x for x in (*self.null.support, *self.alternative.support) if math.isfinite(x)])
        beside = np.concatenate([np.nextafter(ends, -np.inf), np.nextafter(ends, np.inf)])
        lo, hi = self.support
        beside = beside[(beside > lo) & (beside < hi)]
        grid = np.unique(np.concatenate([subdivide(self._breaks, 4), beside]))
        # at the very end of a support a density may be anything; what counts is its value on either side
        grid = grid[~np.isin(grid, ends)]
        return (grid, *self._raw(grid))

    @cached_property
    def _plateaus(self) -> Plateaus:
        grid, ratio, noise = self._first_grid
        return find_plateaus(grid, ratio, noise, self.support)

    @cached_property
    def _outermost(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The first and the last point of the grid at which L is known, with L there."""
        grid, ratio, _ = self._first_grid
        known = np.flatnonzero(~np.isnan(ratio))
        if known.size == 0:
            return (math.inf, math.nan), (-math.inf, math.nan)
        first, last = known[0], known[-1]
        return (float(grid[first]), float(ratio[first])), (float(grid[last]), float(ratio[last]))

    @cached_property
    def _grid(self) -> tuple[Floats, Floats]:
        """Every landmark, to the 1e-300 quantiles, with L there."""
        grid, ratio, noise = self._first_grid
        ratio = self._plateaus.apply(grid, ratio)
        extrema = refine_extrema(grid, ratio, noise, self._snapped)
        full = np.unique(np.concatenate([grid, extrema]))
        return full, self._snapped(full)

    @cached_property
    def landmarks(self) -> Floats:
        """Sorted points that resolve P, Q and L: quantiles to about 1e-16, ends, extrema and jumps."""
        grid, _ = self._grid
        low, high = self._body
        ends = [x for x in (*self.null.support, *self.alternative.support) if math.isfinite(x)]
        return np.unique(np.concatenate([grid[(grid >= low) & (grid <= high)], ends]))

    @cached_property
    def ratio_range(self) -> Interval:
        _, ratio = self._grid
        seen = ratio[~np.isnan(ratio)]
        ends = limits(self._trusted, self.support, self._breaks)
        everything = np.concatenate([seen, ends])
        return float(everything.min()), float(everything.max())

    def regions_above(self, level: float) -> list[Interval]:
        """{L > level} as disjoint open intervals from left to right."""
        return list(self._region(level, above=True))

    def regions_below(self, level: float) -> list[Interval]:
        """{L < level} as disjoint open intervals from left to right."""
        return list(self._region(level, above=False))

    def _region(self, level: float, *, above: bool) -> list[Interval]:
        key = (float(level), above)
        if key not in self._regions:
            if len(self._regions) > 256:
                self._regions.clear()
            self._regions[key] = self._find_region(*key)
        return self._regions[key]

    def _find_region(self, level: float, above: bool) -> list[Interval]:
        slack = SAME_LEVEL * abs(level) if self._plateaus else 0.0

        def holds(ratio: Floats) -> Mask:
            with np.errstate(invalid="ignore"):
                return np.asarray(ratio > level + slack if above else ratio < level - slack)

        grid, ratio = self._grid
        there = holds(ratio)
        flips = np.flatnonzero(there[1:] != there[:-1])
        edges = find_edges(self._snapped, holds, level, grid, ratio, flips, there[flips])
        starts = [float(x) for x, i in zip(edges, flips, strict=True) if not there[i]]
        ends = [float(x) for x, i in zip(edges, flips, strict=True) if there[i]]
        lo, hi = self.support
        if there[0]:
            starts.insert(0, lo)
        if there[-1]:
            ends.append(hi)
        return list(zip(starts, ends, strict=True))

    def _masses(self, regions: list[Interval]) -> tuple[float, float]:
        if not regions:
            return 0.0, 0.0
        lower, upper = np.array(regions).T
        p, q = self.null.mass(lower, upper), self.alternative.mass(lower, upper)
        return min(math.fsum(p.tolist()), 1.0), min(math.fsum(q.tolist()), 1.0)

    def above(self, level: float) -> tuple[float, float]:
        return self._masses(self._region(level, above=True))

    def below(self, level: float) -> tuple[float, float]:
        return self._masses(self._region(level, above=False))

    def hockey_stick(self, level: float, reverse: bool = False) -> float:
        key = (float(level), reverse)
        if key not in self._sticks:
            if len(self._sticks) > 1024:
                self._sticks.clear()
            self._sticks[key] = self._hockey_stick(*key)
        return self._sticks[key]

    def _hockey_stick(self, level: float, reverse: bool) -> float:
        p, q = self.below(-level) if reverse else self.above(level)
        top, bottom = (q, p) if reverse else (p, q)
        if top == 0.0:
            return 0.0
        difference = top - math.exp(level) * bottom if bottom > 0 else top
        if difference > CANCELLED * top:
            return min(difference, 1.0)
        value = self.integral(hockey_stick_term(level, reverse=reverse), (-level if reverse else level,))
        return min(max(value, 0.0), 1.0)

    def integral(self, term: Term, levels: tuple[float, ...] = ()) -> float:
        sides = [(level, above) for level in levels if math.isfinite(level) for above in (True, False)]
        cuts = {end for level, above in sides for piece in self._region(level, above=above) for end in piece}
        return self._integrate(term, np.array(sorted(x for x in cuts if math.isfinite(x))))[0]

    def _integrate(self, term: Term, cuts: Floats) -> tuple[float, float]:
        """Integral and error bound; panels that a cut falls into are split there."""
        lower, upper, whole, halves, thin = self._panels

        def integrand(nodes: Nodes) -> tuple[Floats, Floats]:
            with np.errstate(all="ignore"):
                value, moved = term(nodes[0], nodes[1], nodes[2])
                return value, moved * nodes[3]

        lower, upper, whole, halves = split_panels(self._nodes, cuts, lower, upper, whole, halves)
        value, error, _ = adaptive(integrand, self._nodes, lower, upper, whole, halves)
        with np.errstate(all="ignore"):
            rest, _ = term(*thin)
        return value + float(rest[np.isfinite(rest)].sum()), error

    def _nodes(self, x: Floats) -> Nodes:
        """log p, log q, L and its rounding error at the abscissae."""
        with np.errstate(all="ignore"):
            log_p, log_q = self.null.logpdf(x), self.alternative.logpdf(x)
            # a node that rounding puts on a singular end counts for nothing
            log_p, log_q = (np.where(log == np.inf, -np.inf, log) for log in (log_p, log_q))
            noise = 2.3e-16 * (2 + np.abs(log_p) + np.abs(log_q))
            ratio = self._difference(x, log_p, log_q)
        lost = np.isnan(ratio)
        if lost.any():  # both densities are zero there
            ratio = np.where(lost, 0.0, ratio)
        noise = np.where(np.isfinite(noise), noise, 2.3e-16)
        return log_p, log_q, self._plateaus.apply(x, ratio), noise

    @cached_property
    def _panels(self) -> tuple[Floats, Floats, Nodes, Nodes, tuple[Floats, Floats, Floats]]:
        """Panels with their nodes, and what is too thin for nodes as masses."""
        points = self._breaks
        lo, hi = self.support
        lower, upper = points[:-1], points[1:]
        thin = upper - lower <= THINNEST * np.maximum(np.abs(lower), np.abs(upper))
        outer_lower, outer_upper = [], []
        if points[0] > lo:
            outer_lower.append(lo)
            outer_upper.append(float(points[0]))
        if points[-1] < hi:
            outer_lower.append(float(points[-1]))
            outer_upper.append(hi)
        by_mass = (np.concatenate([lower[thin], outer_lower]), np.concatenate([upper[thin], outer_upper]))
        with np.errstate(divide="ignore", invalid="ignore"):
            log_p = np.log(self.null.mass(*by_mass))
            log_q = np.log(self.alternative.mass(*by_mass))
            ratio = log_p - log_q
        seen = ~np.isnan(ratio)
        lower, upper = lower[~thin], upper[~thin]
        whole = self._nodes(panel_nodes(lower, upper)[0])
        halves = half_nodes(self._nodes, lower, upper)
        return lower, upper, whole, halves, (log_p[seen], log_q[seen], ratio[seen])

    def _kullback_leibler(self, *, reverse: bool) -> float:
        rest = self._heavy_remainder(reverse=reverse)
        if math.isinf(rest):
            return math.inf
        value, _ = self._integrate(kullback_leibler_term(reverse=reverse), np.array([]))
        return max(value, 0.0) + rest if math.isfinite(value) else math.inf

    def _heavy_remainder(self, *, reverse: bool) -> float:
        """What the far tails add to KL beyond the last landmark: 0, a small number, or infinity."""
        law, other = (self.alternative, self.null) if reverse else (self.null, self.alternative)
        if float(law.cdf(other.support[0]) + law.sf(other.support[1])) > 0:  # mass where the other has none
            return math.inf
        lo, hi = law.support
        x = self._breaks[(self._breaks >= lo) & (self._breaks <= hi)]
        ratio, _ = self._raw(x)
        gain = -ratio if reverse else ratio
        cdf, sf = law.cdf(x), law.sf(x)
        there = (cdf > 0) & (sf > 0) & ~np.isnan(gain)
        if has_true_zero(gain[there], other.logpdf(x[there])):
            return math.inf
        return tail_remainder(cdf, gain) + tail_remainder(sf[::-1], gain[::-1])
