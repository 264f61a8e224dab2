r"""Both error rates as functions of the cutoff, for many cutoffs at about the cost of one.

The transforms of the two laws are computed once; each cutoff is then a dot product:

.. math:: \Pr[T \le c] = \frac12 - \frac1\pi \int_0^\pi \frac{\Im[\phi_T(t) e^{-itc}]}{2 \sin(t/2)} dt

for c halfway between two values of T. If that integral has other peaks than the one at zero (few records, few
values), the law of the sum is convolved instead. The absolute error is near 1e-13; for a small relative error use
:mod:`privatest.laws.noisy_total`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from privatest.laws.fourier import QUICK_RADIUS, convolution, doubling_panels, log_transform, side_lobes, small_sums
from privatest.laws.noisy_total import NoisyTotal
from privatest.numbers import Floats, Integers, clipped, first_true, row_dots
from privatest.privacy import Noise
from privatest.scores import Score

_Spectrum = tuple[Floats, list[tuple[Floats, Floats]]]
"""Nodes, and real and imaginary parts of the weighted transform of each law."""

_GRID = 33
_NEGLIGIBLE = 42.0
# Scores of clamped ratios are below 2^17; those of infinite ratios are at least 2^24.
_INFINITE = 1 << 20
_LARGEST_TABLE = 1 << 21
# Sums of scores that stay below this are convolved on all their values, both laws at once.
_SMALL_SUM = 1 << 14
_MOST_PANELS = 120
_MOST_PANELS_OF_NOISE = 1 << 11
# Advantages that differ by less count as equal.
_TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Curves:
    """Error rates of the test that says "alternative" if T <= cutoff, for all cutoffs.

    Cutoffs are given as ``base + unit * offset``. The rates are exact for whole offsets, and linear in between.

    Attributes:
        support: the scores.
        null_law, alternative_law: their probabilities under P and under Q.
        n: number of records.
        noise: what is added to the sum of the scores.
    """

    support: Integers
    null_law: Floats
    alternative_law: Floats
    n: int
    noise: Noise

    @classmethod
    def of(cls, score: Score, n: int, noise: Noise, null_law: Floats | None = None) -> Curves:
        """Return the curves of a score under its first law of each hypothesis, or under another law of the null."""
        null = score.null_law if null_law is None else null_law
        return cls(score.support, null, score.alternative_law, n, noise)

    @cached_property
    def _without_infinite(self) -> tuple[Curves, tuple[float, float], tuple[float, float]] | None:
        """The curves given that all ratios are finite, and for P and for Q two probabilities: that all ratios are
        finite, and that a ratio is infinite and so small that the total is below every cutoff.

        It is None if all scores are of finite ratios. A record of infinite ratio outweighs all others, and the
        infinite ratios under P and under Q have opposite signs.
        """
        inner = np.abs(self.support) < _INFINITE
        if inner.all() or not inner.any():
            return None
        lowest = self.support < self.support[inner].min()
        laws, infinite = [], []
        for law in self._laws:
            share = math.fsum(law[inner])
            never = share**self.n
            laws.append(law[inner] / share if share > 0 else np.full(int(inner.sum()), 1 / inner.sum()))
            infinite.append((never, (1 - never) * float(law[lowest].sum() > 0)))
        return Curves(self.support[inner], laws[0], laws[1], self.n, self.noise), infinite[0], infinite[1]

    @property
    def _finite(self) -> Curves:
        """The curves of the scores of finite ratios: this object itself, if all are."""
        return self if self._without_infinite is None else self._without_infinite[0]

    @cached_property
    def _lattice(self) -> tuple[int, int, Floats, Noise]:
        """low, spacing and the support as steps, and the noise on the coarser lattice if it has one."""
        low = int(self.support[0])
        spacing = int(np.gcd.reduce(self.support - low)) or 1
        noise = self.noise
        if spacing > 1:
            if (coarse := noise.coarser(spacing)) is not None:
                noise = coarse
            else:
                spacing = 1
        return low, spacing, ((self.support - low) // spacing).astype(np.float64), noise

    @property
    def unit(self) -> int:
        """Number of lattice units in one offset."""
        return self._finite._lattice[1]

    @cached_property
    def _means(self) -> tuple[float, float]:
        steps = self._lattice[2]
        return math.fsum(self.null_law * steps), math.fsum(self.alternative_law * steps)

    @cached_property
    def _variances(self) -> tuple[float, float]:
        steps = self._lattice[2]
        null, alternative = (
            math.fsum(law * (steps - mean) ** 2) for law, mean in zip(self._laws, self._means, strict=True)
        )
        return null, alternative

    @cached_property
    def _centre(self) -> Fraction:
        """The midpoint between two values of the coarse total that is nearest to the midpoint of the means."""
        middle = Fraction(self.n * sum(self._means) / 2)
        offset = self._lattice[3].offset
        return math.floor(middle - offset) + offset + Fraction(1, 2)

    @cached_property
    def base(self) -> Fraction:
        """The cutoff of offset 0."""
        if self._finite is not self:
            return self._finite.base
        low, spacing, _, _ = self._lattice
        return spacing * self._centre + self.n * low

    def cutoff(self, offset: Fraction | int) -> Fraction:
        """Return the cutoff of an offset."""
        return self.base + self.unit * Fraction(offset)

    @cached_property
    def reach(self) -> float:
        """Offsets beyond this do not matter: they are e^-24 of the noise and 7 deviations past the farther mean."""
        if self._finite is not self:
            return self._finite.reach
        noise = self._lattice[3]
        null, alternative = self._means
        spread = max(self._variances)
        return self.n * abs(null - alternative) / 2 + 7 * math.sqrt(self.n * spread) + noise.reach(24) + 2

    @cached_property
    def _apart(self) -> bool:
        """Whether both errors are below 1e-16 at the cutoff halfway between the means."""
        _, _, steps, noise = self._lattice
        null, alternative = self._means
        spread = max(self._variances)
        skew = 60 * float(steps[-1])  # Bernstein: tails of bounded steps are Gaussian up to this
        return self.n * (null - alternative) / 2 > 10 * math.sqrt(self.n * spread) + noise.reach(40) + skew

    @cached_property
    def _core(self) -> float:
        """The largest advantage lies at an offset of at most this size."""
        noise = self._lattice[3]
        null, alternative = self._means
        spread = max(self._variances)
        middle = noise.reach(3)
        if noise.plateau:  # the noise's law is flat up to half of it on either side of 0
            middle = min(middle, 2.0 * noise.plateau)
        return self.n * abs(null - alternative) / 2 + 7 * math.sqrt(self.n * spread) + middle + 2

    @property
    def _edge(self) -> float:
        """:attr:`_core` of the scores of finite ratios."""
        return self._finite._core

    @property
    def _laws(self) -> tuple[Floats, Floats]:
        return self.null_law, self.alternative_law

    @property
    def _different_laws(self) -> tuple[Floats, ...]:
        """Return both laws, or only one if they are the same object."""
        return self._laws[:1] if self.null_law is self.alternative_law else self._laws

    def cdfs(self, offsets: Floats) -> tuple[Floats, Floats]:
        """(Pr_P[T <= c], Pr_Q[T <= c]) at c = base + unit * offset."""
        if self._without_infinite is not None:
            inner, *infinite = self._without_infinite
            first, second = (never * f + sure for f, (never, sure) in zip(inner.cdfs(offsets), infinite, strict=True))
            return first, second
        if self._smooth:
            t, weighted = self._spectrum
            angles = np.multiply.outer(offsets, t)
            cosines, sines = np.cos(angles), np.sin(angles)
            null, alternative = (0.5 - (row_dots(cosines, imag) - row_dots(sines, real)) for real, imag in weighted)
        elif self._core > _LARGEST_TABLE:
            null, alternative = (np.array([t.cdf(self.cutoff(math.floor(o))) for o in offsets]) for t in self._totals)
        else:
            null, alternative = self._tabulated(offsets)
        return clipped(null, 0.0, 1.0), clipped(alternative, 0.0, 1.0)

    @cached_property
    def _smooth(self) -> bool:
        """Whether the integral is used: its integrand has one peak, at 0, or the noise suppresses the others."""
        return self._nodes is not None

    @cached_property
    def _spectrum(self) -> _Spectrum:
        """Nodes, and the transforms about the centre times weights over 2 pi sin(t/2)."""
        assert self._nodes is not None, "the integral is used only where it is smooth"
        t, weights = self._nodes
        _, _, steps, noise = self._lattice
        shared = noise.characteristic(t) * (weights / (2 * math.pi * np.sin(t / 2)))
        weighted: list[tuple[Floats, Floats]] = []
        for law in self._different_laws:
            mean, logs = log_transform(steps, law, 1j * t, radius=QUICK_RADIUS)
            turns = float(self.n * Fraction(mean) - self._centre)
            transform = np.exp(self.n * logs + 1j * t * turns) * shared
            weighted.append((transform.real.copy(), transform.imag.copy()))
        return t, weighted * (2 // len(weighted))

    @cached_property
    def _nodes(self) -> tuple[Floats, Floats] | None:
        """Nodes and weights of the integral for offsets up to :attr:`reach`; None if it needs too many."""
        noise, n = self._lattice[3], self.n
        if n < 32 or min(self._variances) <= 0:
            return None
        reach, most = 9.5 / math.sqrt(n * min(self._variances)), _MOST_PANELS
        # The transform of a flat law has poles beside all multiples of 2 pi/plateau; only those at 0 are resolved.
        if reach > math.pi / 4 or reach * noise.plateau > 5 or not self._has_one_peak(reach):
            reach, most = noise.transform_reach(_NEGLIGIBLE), _MOST_PANELS_OF_NOISE
            if reach > math.pi / 4:
                return None
        scale = min(1.0 / math.sqrt(n * max(self._variances) + noise.variance), noise.decay_rate, 1.0 / self.reach)
        return doubling_panels(scale, reach, self.reach, most)

    def _has_one_peak(self, reach: float) -> bool:
        """Whether beyond ``reach`` both transforms' n-th powers are negligible."""
        steps = self._lattice[2]
        return all(side_lobes(steps, law, self.n, reach, _NEGLIGIBLE, most=0) is not None for law in self._laws)

    @property
    def everywhere(self) -> bool:
        """Whether :meth:`cdfs` holds at all offsets, not only at the offsets where the largest advantage may lie."""
        return self._finite._smooth

    @cached_property
    def _totals(self) -> tuple[NoisyTotal, NoisyTotal]:
        """The laws of the noisy totals, for one cutoff at a time, if neither the integral nor a table is possible."""
        first, second = (NoisyTotal(self.support, law, self.n, self.noise) for law in self._laws)
        return first, second

    @cached_property
    def _windows(self) -> list[tuple[int, Floats]]:
        """For each law, the smallest sum of scores that matters and the probabilities from it on."""
        _, _, steps, noise = self._lattice
        if self.n * steps[-1] < _SMALL_SUM:
            return [(0, weights) for weights in small_sums(steps.astype(np.int64), self._different_laws, self.n)]
        windows = []
        for law in self._different_laws:
            visited = law > 0
            total = NoisyTotal(steps[visited].astype(np.int64), law[visited], self.n, noise).sum_law()
            dense = np.zeros(int(total.values[-1] - total.values[0]) + 1)
            dense[total.values - total.values[0]] = total.masses
            windows.append((int(total.values[0]), dense))
        return windows

    @cached_property
    def _tables(self) -> tuple[int, Floats, Floats]:
        """r, and both cdfs at all whole offsets from -r to r: laws of the sums convolved with the noise's cdf."""
        noise = self._lattice[3]
        most = math.ceil(self._core) + 1
        windows = self._windows
        # The noise's cdf at centre - t + offset, for every total t of either law.
        least = min(first for first, _ in windows)
        last = max(first + len(weights) - 1 for first, weights in windows)
        levels = noise.cdf(float(self._centre - last) + np.arange(-most, most + last - least + 1, dtype=np.float64))
        tables = []
        for first, weights in windows:
            start = last - (first + len(weights) - 1)
            reached = levels[start : start + 2 * most + len(weights)]
            tables.append(convolution(reached, weights, valid=True))
        return most, tables[0], tables[-1]

    def _tabulated(self, offsets: Floats) -> tuple[Floats, Floats]:
        most, null, alternative = self._tables
        whole = np.floor(offsets)
        left = np.clip(whole + most, 0, 2 * most).astype(np.intp)
        right = np.minimum(left + 1, 2 * most)
        part = offsets - whole
        first, second = ((1 - part) * f[left] + part * f[right] for f in (null, alternative))
        return first, second

    def best_offset(self) -> tuple[int, float]:
        """Return the whole offset of the largest advantage, and that advantage.

        Among offsets with the same advantage it is the one whose two errors are nearest to each other.
        """
        if self._finite is self and self._apart:
            return 0, 1.0

        def best_of(offsets: Floats) -> tuple[int, float]:
            null, alternative = self.cdfs(offsets)
            gains = alternative - null
            lean = np.where(gains >= gains.max() - _TIE / 10, np.round(np.abs(1.0 - alternative - null), 9), 2.0)
            top = int(np.argmin(lean))  # of two mirrored offsets the first, whatever the last digits
            return top, float(alternative[top] - null[top])

        low, high = -self._edge, self._edge
        if (table := self._every_offset) is not None:
            low = high = table[best_of(table)[0]]
        while high - low > _GRID - 1:
            grid = np.rint(np.linspace(low, high, _GRID))
            top, _ = best_of(grid)
            gap = (high - low) / (_GRID - 1)
            low, high = grid[top] - 1.5 * gap, grid[top] + 1.5 * gap
        grid = np.arange(math.floor(low), math.ceil(high) + 1, dtype=np.float64)
        top, best = best_of(grid)
        return int(grid[top]), best

    @property
    def _every_offset(self) -> Floats | None:
        """All offsets of a table if the noise is spaced: the advantage then has a peak at every spacing. Else None.

        If the integral is used the sum is so wide and smooth that its place between the peaks does not matter.
        """
        inner = self._finite
        if inner._lattice[3].spacing == 1 or inner._smooth or inner._core > _LARGEST_TABLE:
            return None
        most = inner._tables[0]
        return np.arange(-most, most + 1, dtype=np.float64)

    def best_advantage(self) -> float:
        """Return the largest advantage of any cutoff."""
        return self.best_offset()[1]

    def best_cutoff(self) -> Fraction:
        """The cutoff of the largest advantage; if there are several, the one whose errors are nearest to each other.

        Between two whole offsets of the same advantage both errors are linear and their sum is constant.
        """
        offset, best = self.best_offset()
        if self.unit == 1 or self.noise.spacing > 1:
            return self.cutoff(offset)
        near = np.array([offset - 1, offset, offset + 1], dtype=np.float64)
        null, alternative = self.cdfs(near)
        lean = null - (1.0 - alternative)  # grows with the offset
        for left in (0, 1):
            flat = np.abs(alternative - null - best)[left : left + 2].max() <= _TIE
            if flat and lean[left] < 0 < lean[left + 1]:
                share = Fraction(float(-lean[left] / (lean[left + 1] - lean[left])))
                return self.cutoff(offset - 1 + left + Fraction(round(share * self.unit), self.unit))
        return self.cutoff(offset)

    def offset_for_alpha(self, alpha: float) -> int | None:
        """Return the largest whole offset at which the type I error is at most alpha; None if it is out of reach.

        Invariant: the error is at most alpha at `low` and above it at `high`.
        """
        if alpha < 1e-9:
            return None
        inner = self._finite
        edge = math.ceil(self.reach if inner._smooth else inner._core)
        low, high = -edge, edge
        ends = self.cdfs(np.array([low, high], dtype=np.float64))[0]
        if not ends[0] <= alpha < ends[1]:
            return None
        while high - low > 1:
            grid = np.unique(np.rint(np.linspace(low, high, _GRID)))
            fine = self.cdfs(grid)[0] <= alpha
            last = int(np.flatnonzero(fine)[-1]) if np.any(fine) else 0
            low, high = int(grid[last]), int(grid[min(last + 1, len(grid) - 1)])
        return low

    def beta_at(self, alpha: float) -> float:
        """Return the type II error at the largest cutoff whose type I error is at most alpha."""
        offset = self.offset_for_alpha(alpha)
        if offset is None:
            cutoff = self.cutoff_for_alpha(alpha)
            return NoisyTotal(self.support, self.alternative_law, self.n, self.noise).sf(cutoff)
        if self.noise.spacing > 1:
            ends, share = self._mixed(offset, alpha)
            return 1.0 - float((np.array([1 - share, share]) * self.cdfs(ends)[1]).sum())
        ends = np.array([offset, offset + 1], dtype=np.float64)
        null, alternative = self.cdfs(ends)
        # Between whole offsets both rates are linear on a coarser lattice, and a step on the finest one.
        part = (alpha - null[0]) / (null[1] - null[0]) if self.unit > 1 and null[1] > null[0] else 0.0
        return 1.0 - float(alternative[0] + part * (alternative[1] - alternative[0]))

    def mixed_cutoffs(self, alpha: float) -> tuple[Fraction, Fraction]:
        """The two cutoffs between which a coin has the least type II error, given that the type I error is alpha."""
        offset = self.offset_for_alpha(alpha)
        if offset is None:
            first = self.cutoff_for_alpha(alpha)
            return first, first + 1
        (low, high), _ = self._mixed(offset, alpha)
        return self.cutoff(int(low)), self.cutoff(int(high))

    def _mixed(self, offset: int, alpha: float) -> tuple[Floats, float]:
        """Two whole offsets, and the probability of the second with which the type I error is alpha.

        They are the ends of the segment of the upper hull of all (alpha, power) above alpha. Invariant: the type I
        error is at most alpha at the first and above it at the second. In each round the offset that is farthest above
        their line replaces one of them.
        """
        ends = np.array([offset, offset + 1], dtype=np.float64)
        every = ends if (table := self._every_offset) is None else table
        nulls, powers = self.cdfs(every)
        while True:
            null, power = self.cdfs(ends)
            run = null[1] - null[0]
            slope = (power[1] - power[0]) / run if run > 0 else 0.0
            above = powers - power[0] - slope * (nulls - null[0])
            top = int(np.argmax(above))
            if run <= 0 or above[top] <= _TIE * (1 + slope) or every[top] in ends:
                return ends, float((alpha - null[0]) / run) if run > 0 else 0.0
            ends[int(nulls[top] > alpha)] = every[top]

    def about_cutoff_for_alpha(self, alpha: float) -> Fraction:
        """:meth:`cutoff_for_alpha` or a neighbouring value of T, from the curves alone: for figures only."""
        offset = self.offset_for_alpha(alpha)
        return self.cutoff_for_alpha(alpha) if offset is None else self.base + self._finely(offset, alpha)

    def _finely(self, offset: int, alpha: float) -> int:
        """Return the approximate cutoff for alpha in lattice units from the base, by linear interpolation."""
        low, high = map(float, self.cdfs(np.array([offset, offset + 1], dtype=np.float64))[0])
        return self.unit * offset + (math.floor(self.unit * (alpha - low) / (high - low)) if low < high else 0)

    def cutoff_for_alpha(self, alpha: float) -> Fraction:
        """Return the largest cutoff, halfway between two values of T, at which the type I error is at most alpha."""
        null = NoisyTotal(self.support, self.null_law, self.n, self.noise)
        offset = self.offset_for_alpha(alpha)
        far = self.unit * math.ceil(self.reach)
        # In fine lattice units around the base. In the far tail the search is by probabilities alone.
        low, step = (-far, far) if offset is None else (self._finely(offset, alpha), 1)
        high: int | None = None

        def exceeds(place: int) -> bool:
            return null.cdf(self.base + place) > alpha

        while exceeds(low):
            low, high, step = low - step, low, 2 * step
        return self.base + first_true(exceeds, low, high) - 1


@dataclass(frozen=True, eq=False)
class TwoSidedCurves:
    """Error rates of the test that says "null" if lower < T <= upper, where both tails of the null are equally likely.

    A type II error is any decision but the alternative on its own side.

    Attributes:
        low: curves of the null against the alternatives below it.
        high: curves of the null against the alternatives above it, with all signs changed.
    """

    low: Curves
    high: Curves

    @classmethod
    def of(
        cls, support: Integers, lowest: Floats, below: Floats, highest: Floats, above: Floats, n: int, noise: Noise
    ) -> TwoSidedCurves:
        """The curves of the null's lowest and highest law against the laws of the alternatives below and above."""
        high = Curves(-support[::-1], highest[::-1], above[::-1], n, noise.mirrored)
        return cls(Curves(support, lowest, below, n, noise), high)

    def beta_at(self, alpha: float) -> float:
        """Return the larger type II error if each tail has probability alpha/2."""
        return max(side.beta_at(alpha / 2) for side in (self.low, self.high))

    def cutoffs_for_alpha(self, alpha: float) -> tuple[Fraction, Fraction]:
        """Lower and upper cutoff such that each tail of the null has probability at most alpha/2."""
        return self.low.cutoff_for_alpha(alpha / 2), -self.high.cutoff_for_alpha(alpha / 2)

    @cached_property
    def _best(self) -> tuple[float, float]:
        """About the best alpha and its advantage, by interpolating both errors of each side on a grid."""
        levels = np.geomspace(1e-7, 0.4, 400)
        betas = []
        for side in (self.low, self.high):
            alphas, powers = side.cdfs(np.linspace(-side._edge, side._edge, 4 * _GRID))
            betas.append(1 - np.interp(levels, alphas, powers))
        advantages = 1 - 2 * levels - np.maximum(*betas)
        top = int(np.argmax(advantages))
        return 2 * float(levels[top]), float(advantages[top])

    def best_advantage(self) -> float:
        """Return the largest advantage, to about three digits."""
        return self._best[1]

    def best_cutoffs(self) -> tuple[Fraction, Fraction]:
        """Lower and upper cutoff with about the largest advantage."""
        return self.cutoffs_for_alpha(self._best[0])
