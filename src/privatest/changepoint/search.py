r"""Clamps and block lengths worth trying, from the law of the ratio alone.

A block of B records tells P from Q when the gap of the noisy totals' means is some three standard deviations:

.. math:: (B g)^2 = D^2 (B v + \sigma_N^2), \qquad D = 3

with g and v the gap and the variance of one clamped ratio and :math:`\sigma_N^2` the noise's variance. Of all clamps,
those with the smallest such B are worth a closer look; exact laws and simulations of them decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from privatest.changepoint.laws import ScoreLaw
from privatest.hypothesis.build import paper_clamp
from privatest.noise import Tulap
from privatest.pairs import Pair
from privatest.power.profile import Profile, profile_of
from privatest.scores import Score, clamped_score

__all__ = ["Clamp", "Problem", "law_of"]

Floats = npt.NDArray[np.float64]
Clamp = tuple[float, float]
Found = TypeVar("Found")

DEFLECTION = 3.0
# Ends of clamps to try, in units of the ratio's typical size.
_GRID = (0.02, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 9.0)
# Rounding a record's ratio to 1/8 of its standard deviation adds 1/768 to its variance. A coarser lattice will do
# where a whole block's rounding adds less than 1/768 to the noise's variance.
_STEPS_PER_DEVIATION = 8
_HIDDEN = 768
_FEWEST_UNITS, _MOST_UNITS = 8, 4096
# By then some step is within 1/32 of any place.
_MOST_STEPS_TO_ZERO = 16


@dataclass(frozen=True, eq=False)
class Problem:
    """A pair at an epsilon: clamps to try, and scores and laws for them."""

    pair: Pair
    epsilon: Fraction
    _searches: dict[Hashable, object] = field(default_factory=dict, repr=False)

    def once(self, key: Hashable, search: Callable[[], Found]) -> Found:
        """The result of a search, made the first time it is asked for."""
        if key not in self._searches:
            self._searches[key] = search()
        return self._searches[key]  # type: ignore[return-value]

    def at(self, epsilon: Fraction) -> Problem:
        """The same pair at another epsilon."""
        known: Problem = self.once(("at", epsilon), lambda: Problem(self.pair, epsilon))
        known.__dict__["profile"] = self.profile
        return known

    @cached_property
    def profile(self) -> Profile:
        """The law of the unclamped ratio."""
        return profile_of(self.pair)

    @cached_property
    def paper(self) -> Clamp:
        """The decomposition's clamp, or about the sign of the ratio where that is very narrow."""
        a, b = (float(end) for end in paper_clamp(self.pair, self.epsilon))
        least = _GRID[0] * _typical(self.profile)
        return (a, b) if b - a > least else (-least / 2, least / 2)

    @cached_property
    def clamps(self) -> tuple[Clamp, ...]:
        """Clamps in order of the block length they call for; on two-point domains all are the same."""
        least, most = float(self.profile.ratios[0]), float(self.profile.ratios[-1])
        if len(np.unique(self.profile.ratios)) <= 2:
            return (self.paper,)
        size = _typical(self.profile)
        lows = sorted({round(max(-g * size, least), 12) for g in _GRID if max(-g * size, least) < 0})
        highs = sorted({round(min(g * size, most), 12) for g in _GRID if min(g * size, most) > 0})
        found = {(a, b): self.natural_block((a, b)) for a in lows for b in highs}
        found[self.paper] = self.natural_block(self.paper)
        ranked, seen = [], set()
        for clamp in sorted(found, key=lambda clamp: found[clamp]):
            if (key := f"{found[clamp]:.6g}") not in seen:  # clamps that scale the same score alike are one
                seen.add(key)
                ranked.append(clamp)
        return tuple(ranked)

    def natural_block(self, clamp: Clamp) -> float:
        """The B of the module's formula; infinite where the clamp leaves nothing to tell."""
        ratios = np.clip(self.profile.ratios, *clamp)
        low, high = float(ratios[0]), float(ratios[-1])
        gap, null, alternative = self.profile.moments((low, high))
        if not high > low or gap <= 1e-12 * (high - low):
            return math.inf
        return _deflected(gap, (null + alternative) / 2, _spread(self.epsilon) * (high - low) ** 2)

    def units(self, clamp: Clamp) -> int:
        """Lattice steps of a score with this clamp."""
        ratios = np.clip(self.profile.ratios, *clamp)
        width = float(ratios[-1] - ratios[0])
        if len(np.unique(ratios)) == 2:
            return _steps_to_zero(float(ratios[0]), float(ratios[-1]))
        _, null, alternative = self.profile.moments((float(ratios[0]), float(ratios[-1])))
        deviation = math.sqrt((null + alternative) / 2)
        wanted = math.ceil(_STEPS_PER_DEVIATION * width / deviation) if deviation > 0 else _FEWEST_UNITS
        hidden = math.ceil(math.sqrt(_HIDDEN * min(self.natural_block(clamp), 1e12) / 12 / _spread(self.epsilon)))
        return 1 << (min(max(min(wanted, hidden), _FEWEST_UNITS), _MOST_UNITS) - 1).bit_length()

    def rough_law(self, clamp: Clamp) -> ScoreLaw:
        """About the law that :meth:`score` has, without its cells: for comparing clamps."""
        units = self.units(clamp)
        ratios = np.clip(self.profile.ratios, *clamp)
        low, high = float(ratios[0]), float(ratios[-1])
        steps = np.rint((ratios - low) * (units / (high - low))).astype(np.int64)
        support, place = np.unique(steps, return_inverse=True)
        p: Floats = np.bincount(place, weights=self.profile.p, minlength=len(support)).astype(np.float64)
        q: Floats = np.bincount(place, weights=self.profile.q, minlength=len(support)).astype(np.float64)
        return _coarsest(support, p, q, units)

    def score(self, clamp: Clamp) -> Score:
        """The score with this clamp, on the coarsest lattice that holds its values."""
        score = clamped_score(self.pair, clamp, self.units(clamp))
        factor = math.gcd(*(int(s) - score.low for s in np.unique(score.table)))
        if factor <= 1:
            return score
        origin = score.origin + score.step * score.low
        table, support = (score.table - score.low) // factor, (score.support - score.low) // factor
        return replace(score, table=table, support=support, origin=origin, step=score.step * factor)


def law_of(score: Score) -> ScoreLaw:
    """A score's law."""
    return ScoreLaw(score.support, score.null_law, score.alternative_law, score.width)


def _steps_to_zero(low: float, high: float) -> int:
    """The fewest steps from low to high that put 0, the score of records that make no sense, near one of them."""
    share = min(max(-low / (high - low), 0.0), 1.0)
    return next(u for u in range(1, _MOST_STEPS_TO_ZERO + 1) if abs(round(share * u) / u - share) <= 1 / 32)


def _coarsest(support: npt.NDArray[np.int64], p: Floats, q: Floats, width: int) -> ScoreLaw:
    factor = math.gcd(width, *(int(s) for s in support))
    return ScoreLaw(support // factor, p, q, width // factor)


def _spread(epsilon: Fraction) -> float:
    """The variance of Tulap noise, in squares of its width."""
    return Tulap(epsilon, 1 << 10).variance / (1 << 20)


def _deflected(gap: float, variance: float, noise: float) -> float:
    """The positive root B of (gap B)^2 = D^2 (variance B + noise)."""
    d, g = DEFLECTION**2, gap**2
    return (d * variance + math.sqrt(d * d * variance * variance + 4 * g * d * noise)) / (2 * g)


def _typical(profile: Profile) -> float:
    """A quantile of the size of the ratio, both hypotheses together: robust against infinite ratios."""
    finite = np.isfinite(profile.ratios)
    sizes, mass = np.abs(profile.ratios[finite]), (profile.p + profile.q)[finite]
    if not np.any(finite):
        return 1.0
    order = np.argsort(sizes)
    below = np.cumsum(mass[order])
    return float(sizes[order][np.searchsorted(below, 0.7 * below[-1])]) or 1.0
