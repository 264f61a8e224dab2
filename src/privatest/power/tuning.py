"""The clamp that needs the fewest records, chosen by exact error rates.

A :class:`Goal` says what a test must achieve (an advantage, or two error rates), a :class:`Profile` what tuning needs
to know of a pair: the law of its unclamped ratio, finely binned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from privatest import _validate
from privatest.errors import InvalidInput, shown
from privatest.hypotheses import ContinuousPair, DiscretePair, Pair
from privatest.laws.curves import Curves
from privatest.privacy import Tulap
from privatest.privacy.neighbours import REPLACE, Neighbourhood
from privatest.scores.clamped import cell_masses, cell_ratios
from privatest.scores.score import FEW_VALUES
from privatest.vectors import Floats

__all__ = ["ADVANTAGE", "Goal", "Profile", "make_goal", "profile_of", "rough_clamp", "tuned_clamp"]

ADVANTAGE = 2 / 3
"""The paper's bar."""


@dataclass(frozen=True)
class Goal:
    """Either ``advantage`` is given, or ``alpha`` and ``beta`` are."""

    advantage: float | None = None
    alpha: float | None = None
    beta: float | None = None

    def margin(self, curves: Curves) -> float:
        """By how much the best cutoff exceeds the goal; negative where it falls short. Increases with power."""
        if self.alpha is None:
            return curves.best_offset()[1] - (self.advantage or 0.0)
        return (self.beta or 0.0) - curves.beta_at(self.alpha)

    def surplus(self, alpha: float, beta: float) -> float:
        """By how much a test with these error rates exceeds the goal; negative where it falls short."""
        if self.alpha is None:
            return 1.0 - alpha - beta - (self.advantage or 0.0)
        return min(self.alpha - alpha, (self.beta or 0.0) - beta)

    def __str__(self) -> str:
        if self.alpha is None:
            return f"advantage {self.advantage:.6g}"
        return f"alpha {self.alpha:g} and beta {self.beta:g}"


def make_goal(advantage: float | None, alpha: float | None, beta: float | None) -> Goal:
    """The goal a user asks for; the paper's advantage of 2/3 where nothing is asked."""
    if alpha is None and beta is None:
        return Goal(advantage=_validate.probability(advantage=ADVANTAGE if advantage is None else advantage))
    if advantage is not None:
        raise InvalidInput(f"advantage={shown(advantage)} and alpha= or beta= were given. Give one or the other.")
    if alpha is None or beta is None:
        name = "alpha" if alpha is None else "beta"
        raise InvalidInput(f"{name} is missing: alpha and beta go together. Give both, or advantage.")
    _validate.probability(alpha=alpha)
    _validate.probability(beta=beta)
    if alpha + beta >= 1:
        raise InvalidInput(
            f"alpha={alpha!r} and beta={beta!r} must add up to less than 1: tossing a coin achieves that without data."
        )
    return Goal(alpha=float(alpha), beta=float(beta))


# Steps of the lattice used while tuning; the final test has a finer one. Few values need few.
COARSE_UNITS = 192
FEW_UNITS = 24


@dataclass(frozen=True, eq=False)
class Profile:
    """Ratios in increasing order (perhaps infinite) and their probabilities under P and Q."""

    ratios: Floats
    p: Floats
    q: Floats

    def curves(self, clamp: tuple[float, float], epsilon: Fraction, n: int, around: Neighbourhood = REPLACE) -> Curves:
        """Error rates of the tight test with this clamp, on a coarse lattice."""
        a, b = clamp
        low, high = max(a, float(self.ratios[0])), min(b, float(self.ratios[-1]))
        units = FEW_UNITS if 2 < len(self.ratios) <= FEW_VALUES else COARSE_UNITS
        steps = np.rint((np.clip(self.ratios, low, high) - low) * (units / (high - low))).astype(np.int64)
        if len(steps) > units:
            support = np.arange(units + 1)
            place = steps
        else:
            support, place = np.unique(steps, return_inverse=True)
        null, alternative = (np.bincount(place, weights=mass, minlength=len(support)) for mass in (self.p, self.q))
        centre = (self.centre(clamp) - low) * (units / (high - low))
        noise = Tulap(epsilon, math.ceil(around.extent(0, units, centre) - 1e-9))
        return Curves(support, null.astype(np.float64), alternative.astype(np.float64), n, noise)

    @cached_property
    def typical(self) -> float:
        """A typical size of the ratio: the 70% quantile of the finite ones, P and Q together; infinite ones apart."""
        finite = np.isfinite(self.ratios)
        sizes, mass = np.abs(self.ratios[finite]), (self.p + self.q)[finite]
        order = np.argsort(sizes)
        below = np.cumsum(mass[order])
        if len(below) == 0 or below[-1] <= 0:
            return 1.0
        return float(sizes[order][np.searchsorted(below, 0.7 * below[-1])]) or 1.0

    def centre(self, clamp: tuple[float, float]) -> float:
        """The middle between the means of the clamped ratio: about the threshold for one record."""
        values = np.clip(self.ratios, *clamp)
        return float(np.sum((self.p + self.q) * values)) / 2

    def moments(self, clamp: tuple[float, float]) -> tuple[float, float, float]:
        """Difference of means and the two variances of the clamped ratio."""
        values = np.clip(self.ratios, *clamp)
        means = [float(np.sum(mass * values)) for mass in (self.p, self.q)]
        spreads = [float(np.sum(m * (values - mean) ** 2)) for m, mean in zip((self.p, self.q), means, strict=True)]
        return means[0] - means[1], spreads[0], spreads[1]


def profile_of(pair: Pair) -> Profile:
    """The profile of a pair: its atoms, or the cells between the landmarks of a continuous pair."""
    if isinstance(pair, DiscretePair):
        ratios, p, q = pair.ratios, pair.p, pair.q
    else:
        assert isinstance(pair, ContinuousPair)
        edges = pair.landmarks
        p, q = cell_masses(pair.null, edges), cell_masses(pair.alternative, edges)
        ratios = cell_ratios(pair, edges, p, q)
    seen = (p + q > 0) & ~np.isnan(ratios)
    order = np.argsort(ratios[seen], kind="stable")
    ratios, p, q = ratios[seen][order], p[seen][order], q[seen][order]
    return Profile(ratios, p / math.fsum(p), q / math.fsum(q))


# Candidate ends of the clamp, in units of the ratio's typical size; 0 stands for "hardly anything".
_GRID = (0.05, 0.4, 1.0, 2.0, 4.0, 8.0, 32.0)
_FIRST_STEP, _LAST_STEP = 1.6, 1.03
_MOST_TRIALS = 160
Clamp = tuple[float, float]


def tuned_clamp(
    profile: Profile, epsilon: Fraction, n: int, goal: Goal, *extra: Clamp, around: Neighbourhood = REPLACE
) -> Clamp:
    """(a, b) of the largest margin at n records; ``extra`` clamps (the paper's) compete too.

    A grid over both ends, then a pattern search from the best two cells of it: error rates are smooth in the ends but
    can have two peaks, one for counting rare records and one for using them all (the paper's three-point example).
    """
    least, most = float(profile.ratios[0]), float(profile.ratios[-1])
    if len(profile.ratios) <= 2:  # every clamp gives the same test up to scale
        return extra[0] if extra else (max(least, -1.0), min(most, 1.0))
    tried: dict[Clamp, float] = {}

    def margin(clamp: Clamp) -> float:
        a, b = max(clamp[0], least), min(clamp[1], most)
        key = (float(f"{a:.12g}"), float(f"{b:.12g}"))
        if key not in tried:
            tried[key] = goal.margin(profile.curves(key, epsilon, n, around))
        return tried[key]

    for clamp in extra:
        margin(clamp)
    ranked = _ranked(profile, epsilon, n, around)
    for _, a, b in ranked[:14]:
        margin((a, b))
    starts = sorted(tried, key=lambda clamp: -tried[clamp])[:2]
    best = max((_climb(margin, start, tried) for start in starts), key=margin)
    return max(tried, key=lambda clamp: tried[clamp]) if tried else best


def rough_clamp(profile: Profile, epsilon: Fraction, n: int, around: Neighbourhood = REPLACE) -> Clamp:
    """About the best (a, b), by the means and variances of the noisy total alone: error rates are not computed."""
    tried: dict[Clamp, float] = {}

    def value(clamp: Clamp) -> float:
        if clamp not in tried:
            tried[clamp] = _deflection(profile, clamp, float(epsilon), n, around)
        return tried[clamp]

    _, *start = _ranked(profile, epsilon, n, around)[0]
    return _climb(value, (start[0], start[1]), tried)


def _ranked(profile: Profile, epsilon: Fraction, n: int, around: Neighbourhood) -> list[tuple[float, float, float]]:
    """(deflection, a, b) of the clamps of the grid, the most promising first."""
    least, most = float(profile.ratios[0]), float(profile.ratios[-1])
    size = profile.typical
    lows = sorted({max(-g * size, least) for g in _GRID})
    highs = sorted({min(g * size, most) for g in _GRID})
    return sorted(
        ((_deflection(profile, (a, b), float(epsilon), n, around), a, b) for a in lows for b in highs), reverse=True
    )


def _deflection(profile: Profile, clamp: Clamp, epsilon: float, n: int, around: Neighbourhood) -> float:
    """Gap of the means over the standard deviation of the noisy total: a quick guide to where to look."""
    gap, null, alternative = profile.moments(clamp)
    low, high = max(clamp[0], float(profile.ratios[0])), min(clamp[1], float(profile.ratios[-1]))
    width = around.extent(low, high, profile.centre(clamp))
    noise = 2 * (width / (2 * math.sinh(min(epsilon, 40) / 2))) ** 2 / 2 + width**2 / 12
    return n * gap / math.sqrt(n * (null + alternative) / 2 + noise)


def _climb(margin: Callable[[Clamp], float], start: Clamp, tried: dict[Clamp, float]) -> Clamp:
    """Pattern search: multiply either end, or both, by the step; shrink the step when nothing helps."""
    here, step = start, _FIRST_STEP
    value = margin(here)
    while step > _LAST_STEP and len(tried) < _MOST_TRIALS:
        moves = [(s, 1.0) for s in (step, 1 / step)] + [(1.0, s) for s in (step, 1 / step)]
        moves += [(s, s) for s in (step, 1 / step)]
        for left, right in moves:
            there = (here[0] * left, here[1] * right)
            if there[0] < there[1] and margin(there) > value + 1e-12:
                here, value = there, margin(there)
                break
        else:
            step = math.sqrt(step)
    return here
