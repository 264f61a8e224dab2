r"""Pairs that are easier to tell apart than a given one, and have a form that can be computed with.

A pair *dominates* (P, Q) if P and Q are its images under one channel. A private test of (P, Q), applied after the
channel to each record, is a private test of the dominating pair with the same error rates: an upper bound for all tests
of the dominating pair holds for all tests of (P, Q). Mass with ratio r may be split between levels l < r < h
preserving its P-mass and its Q-mass; the channel merges them again. In terms of roots, sqrt(pq), with

.. math:: p = \rho\, e^{r/2}, \quad q = \rho\, e^{-r/2},

the split is :math:`\rho_l = \rho \sinh\frac{h - r}{2} / \sinh\frac{h - l}{2}`,
:math:`\rho_h = \rho \sinh\frac{r - l}{2} / \sinh\frac{h - l}{2}`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privatest.hypotheses import ContinuousPair, DiscretePair, Pair
from privatest.laws.fourier import sum_laws
from privatest.laws.noisy_total import chernoff_windows
from privatest.numbers import Floats, root
from privatest.scores.clamped import cell_masses

# With a larger ratio mass counts as present under one hypothesis only; e^-60 is 1e-26.
LARGEST_LEVEL = 60.0
NOTHING = 1e-13


@dataclass(frozen=True, eq=False)
class Atoms:
    """A discrete pair: roots sqrt(pq) at finite levels of the ratio, and mass that only P or only Q has."""

    levels: Floats
    roots: Floats
    p_only: float
    q_only: float

    @cached_property
    def p(self) -> Floats:
        """P-mass at each level."""
        return self.roots * np.exp(self.levels / 2)

    @cached_property
    def q(self) -> Floats:
        """Q-mass at each level."""
        return self.roots * np.exp(-self.levels / 2)

    def beyond(self, level: float) -> float:
        """P-mass in excess of e^level Q, the hockey-stick divergence."""
        there = self.levels > level
        return self.p_only + float((self.p[there] * -np.expm1(level - self.levels[there])).sum())

    @cached_property
    def mirrored(self) -> Atoms:
        """P and Q exchanged."""
        return Atoms(-self.levels, self.roots, self.q_only, self.p_only)


def atoms_of(pair: Pair) -> Atoms:
    """Return a discrete pair that dominates ``pair``: the pair itself if discrete, else two atoms for each cell.

    A cell lies between neighbouring landmarks, where the ratio is monotone; its masses are split between
    the ratio's least and largest value in it.
    """
    if isinstance(pair, DiscretePair):
        p, q, low, high = pair.p, pair.q, pair.ratios, pair.ratios
    else:
        assert isinstance(pair, ContinuousPair)
        p, q, low, high = _cells(pair)
    visited = (p > 0) | (q > 0)
    p, q, low, high = p[visited], q[visited], low[visited], high[visited]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(p) - np.log(q) if low is not high else low
    # By rounding the ratio of the masses may lie outside; the wider range is the safe side.
    low, high = np.fmin(low, ratio), np.fmax(high, ratio)
    low, high = np.where(low < -LARGEST_LEVEL, -np.inf, low), np.where(high > LARGEST_LEVEL, np.inf, high)
    # The other hypothesis's mass beyond the largest level is dropped, which only makes errors smaller.
    p_alone, q_alone = low > LARGEST_LEVEL, high < -LARGEST_LEVEL
    endless = np.isinf(low) & np.isinf(high)
    up, down = np.isinf(high) & ~endless & ~p_alone, np.isinf(low) & ~endless & ~q_alone
    # Q-mass stays at the finite end with the P-mass of that ratio; the rest of the P-mass has no Q-mass beside it.
    p_only = p[endless | p_alone].sum() - (p[up] * np.expm1(np.minimum(low[up] - ratio[up], 0.0))).sum()
    q_only = q[endless | q_alone].sum() - (q[down] * np.expm1(np.minimum(ratio[down] - high[down], 0.0))).sum()
    inner = np.isfinite(low) & np.isfinite(high)
    lower, upper = shares(ratio[inner], low[inner], high[inner])
    roots = np.sqrt(p[inner]) * np.sqrt(q[inner])
    levels = np.concatenate([low[inner], high[inner], low[up], high[down]])
    masses = np.concatenate(
        [roots * lower, roots * upper, q[up] * np.exp(low[up] / 2), p[down] * np.exp(-high[down] / 2)]
    )
    positive = masses > 0
    return Atoms(levels[positive], masses[positive], float(p_only), float(q_only))


def shares(ratio: Floats, low: Floats | float, high: Floats | float) -> tuple[Floats, Floats]:
    """The shares of a root at ``ratio`` that go to ``low`` and to ``high``; all goes to ``low`` if they are equal."""
    width = np.asarray(high - low, dtype=np.float64)
    apart = width > 0
    # The quotients of sinh in a form that does not overflow if levels of many records lie far apart.
    scale = np.expm1(-np.where(apart, width, 1.0))
    below, above = np.where(apart, ratio - low, 0.0), np.where(apart, high - ratio, 0.0)
    lower = np.where(apart, np.exp(-below / 2) * np.expm1(-above) / scale, 1.0)
    upper = np.where(apart, np.exp(-above / 2) * np.expm1(-below) / scale, 0.0)
    return lower, upper


def _cells(pair: ContinuousPair) -> tuple[Floats, Floats, Floats, Floats]:
    """Masses of the cells between landmarks, and the range of the ratio in each."""
    x = pair.landmarks
    p, q = cell_masses(pair.null, x), cell_masses(pair.alternative, x)
    width = np.diff(x)
    # At a landmark the ratio may jump or be undefined (at the end of a support); so it is evaluated just inside.
    inside = np.stack([x[:-1] + share * width for share in (1e-6, 0.5, 1 - 1e-6)])
    ratios = pair.ratio(inside.ravel()).reshape(inside.shape)
    low, high = np.fmin.reduce(ratios, axis=0), np.fmax.reduce(ratios, axis=0)
    with np.errstate(invalid="ignore"):
        margin = 1e-3 * (high - low)  # for the slivers at both ends, where the ratio was not evaluated
    low, high = low - margin, high + margin
    least, most = pair.ratio_range
    low, high = np.maximum(low, least), np.minimum(high, most)
    # Beyond the outermost landmarks (1e-16 of the mass) the ratio may be any in its range.
    return p, q, np.concatenate([[least], low, [least]]), np.concatenate([[most], high, [most]])


@dataclass(frozen=True, eq=False)
class Split:
    """A dominating pair in three parts: tails, movers and the rest.

    Attributes:
        tau: mass of the tails: records that are p under P and q under Q, with certainty.
        x, y: rate of "+" among the movers, which are "+" or "-", under P and under Q.
        p_movers, q_movers: mass of the movers under P and under Q.
        levels, roots: levels and roots of the rest.
    """

    tau: float
    x: float
    y: float
    p_movers: float
    q_movers: float
    levels: Floats
    roots: Floats


@dataclass(frozen=True)
class Shape:
    """How to split a pair into tails, movers and the rest.

    Attributes:
        top: level > 0 of the clamp beyond which mass becomes tails; None for the whole range of the ratio and no tails.
        open_side: 0 for the paper's clamp with epsilon = top: [-s, top] or [-top, s] with s such that both tails have
            the same mass. 1 or -1: the upper or lower end is infinite, its tails are taken from the mass that
            only P or only Q has, and top is the other end.
        cuts: ends of the rest, as fractions of the clamp's upper and lower end.
    """

    top: float | None
    cuts: tuple[float, float]
    open_side: int = 0


def split_atoms(atoms: Atoms, shape: Shape) -> Split:
    """Tails beyond the clamp, movers at the clamp's two ends, and the rest between the cuts.

    Mass between a cut and the end of the clamp is split between the two.
    """
    mirrored = atoms.mirrored
    tau, upper, lower = _clamp(atoms, shape)
    up, p_plus, q_plus, high = _movers_above(atoms, upper, shape.cuts[0], tau)
    down, q_minus, p_minus, low = _movers_above(mirrored, lower, shape.cuts[1], tau)
    inner = (atoms.levels <= high if high < upper else atoms.levels < upper) & (
        mirrored.levels <= low if low < lower else mirrored.levels < lower
    )
    levels = np.concatenate([atoms.levels[inner], [high, -low]])
    roots = np.concatenate([atoms.roots[inner], [up, down]])
    p_movers, q_movers = p_plus + p_minus, q_plus + q_minus
    x = p_plus / p_movers if p_movers > 0 else 0.5
    y = q_plus / q_movers if q_movers > 0 else 0.5
    return Split(
        tau=tau,
        x=x,
        y=min(y, x),
        p_movers=p_movers,
        q_movers=q_movers,
        levels=levels[roots > 0],
        roots=roots[roots > 0],
    )


def _clamp(atoms: Atoms, shape: Shape) -> tuple[float, float, float]:
    """tau and the sizes of the clamp's upper and lower end."""
    mirrored, top = atoms.mirrored, shape.top
    assert top is None or top > 0, "at level 0 the two sides would overlap"
    ends = []
    for side in (atoms, mirrored):
        # Mass under 1e-13 that only one hypothesis has is dropped, which only makes errors smaller.
        most = max(float(side.levels.max(initial=0.0)), 0.0)
        ends.append(math.inf if side.p_only > NOTHING else most)
    if top is None:
        return 0.0, ends[0], ends[1]
    if shape.open_side == 1 and mirrored.beyond(top) <= atoms.p_only:
        return mirrored.beyond(top), math.inf, top
    if shape.open_side == -1 and atoms.beyond(top) <= atoms.q_only:
        return atoms.beyond(top), top, math.inf
    excess = atoms.beyond(top), mirrored.beyond(top)
    tau = max(excess)
    if tau <= NOTHING:
        return 0.0, min(top, ends[0]), min(top, ends[1])
    other = mirrored if excess[0] >= excess[1] else atoms
    # The other side's excess is at least tau at `left`, as it is at 0 (total variation), and less a little further on.
    left, _ = root(lambda level: other.beyond(level) < tau, 0.0, top, absolute=math.ldexp(top, -50))
    return (tau, top, left) if other is mirrored else (tau, left, top)


def _movers_above(atoms: Atoms, end: float, cut: float, tau: float) -> tuple[float, float, float, float]:
    """The upper side: the root that stays at the cut, P-mass and Q-mass of the movers, and the level of the cut."""
    if math.isinf(end):
        # The Q-mass of finite levels goes to the cut; the movers have none.
        at = cut * max(float(np.max(atoms.levels, initial=0.0)), 0.0)
        there = atoms.levels > at
        left = float(atoms.q[there].sum()) * math.exp(at / 2)
        return left, float((atoms.p[there] * -np.expm1(at - atoms.levels[there])).sum()) + atoms.p_only - tau, 0.0, at
    at = cut * end
    beyond = atoms.levels >= end
    root = float((atoms.roots[beyond] * np.exp((end - atoms.levels[beyond]) / 2)).sum())
    left = 0.0
    if at < end:
        between = (atoms.levels > at) & ~beyond
        lower, upper = shares(atoms.levels[between], at, end)
        left = float((atoms.roots[between] * lower).sum())
        root += float((atoms.roots[between] * upper).sum())
    return left, root * math.exp(end / 2), root * math.exp(-end / 2), at


@dataclass(frozen=True, eq=False)
class RootLaw:
    """Roots at levels (first + i) step of a lattice, so that products of pairs are convolutions."""

    step: float
    first: int
    roots: Floats

    @classmethod
    def from_levels(cls, levels: Floats, roots: Floats, step: float) -> RootLaw:
        """Return a lattice law that dominates these levels, each split between its two lattice neighbours."""
        below = np.floor(levels / step + 1e-9)
        exact = np.abs(levels / step - np.rint(levels / step)) < 1e-9
        below = np.where(exact, np.rint(levels / step), below)
        lower, upper = shares(levels, below * step, (below + np.where(exact, 0.0, 1.0)) * step)
        place = below.astype(np.int64)
        first = int(place.min())
        size = int(place.max()) - first + 2
        masses = np.zeros(size)
        for shift, share in ((0, lower), (1, upper)):
            masses += np.bincount(place - first + shift, weights=roots * share, minlength=size)
        positive = np.flatnonzero(masses)
        return cls(step, first + int(positive[0]), masses[positive[0] : positive[-1] + 1])

    @property
    def levels(self) -> Floats:
        """The levels of the lattice."""
        return np.arange(self.first, self.first + len(self.roots), dtype=np.float64) * self.step

    @property
    def deviation(self) -> float:
        """Standard deviation of the level under the normalised roots."""
        total = float(self.roots.sum())
        if total == 0:
            return 0.0
        law = self.roots / total
        return math.sqrt(max(float(law @ (self.levels - law @ self.levels) ** 2), 0.0))

    def power(self, n: int) -> RootLaw:
        """Return the roots of n records together, on a window that holds all but 1e-18 of their sum."""
        return self.powers([n])[0]

    def powers(self, counts: Sequence[int]) -> list[RootLaw]:
        """Return the roots of each number of records together, from one transform."""
        most = max(counts, default=0)
        if most == 0:
            return [RootLaw(self.step, 0, np.ones(1)) for _ in counts]
        mass = float(self.roots.sum())
        if mass == 0:  # the roots of so many records underflow; too small is the safe side
            return [RootLaw(self.step, 0, np.zeros(1) if n else np.ones(1)) for n in counts]
        law = self.roots / mass
        last = len(law) - 1
        steps = np.arange(len(law), dtype=np.float64)
        windows = [(0, n * last) for n in counts]
        if most * last > 4096:
            windows = chernoff_windows(steps, law, counts)
        centre = round(float(law @ steps))
        shifted = [(start - n * centre, stop - n * centre) for n, (start, stop) in zip(counts, windows, strict=True)]
        laws = sum_laws(np.arange(len(law)) - centre, [law], [[n] for n in counts], shifted)
        return [
            RootLaw(self.step, n * self.first + start, values * math.exp(n * math.log(mass)))
            for n, (start, _), values in zip(counts, windows, laws, strict=True)
        ]

    def coarser(self, step: float) -> RootLaw:
        """Return a law that dominates this one, on a lattice of at least this step."""
        positive = self.roots > 0
        if step <= self.step or not positive.any():
            return self
        return RootLaw.from_levels(self.levels[positive], self.roots[positive], step)
