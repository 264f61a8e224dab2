"""Statistics to choose from, and the choice: whichever leaves the smallest type II error at the same type I error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from privatest.fit.excess import Excess
from privatest.fit.grains import Grains
from privatest.fit.law import ExcessLaw, excess_law
from privatest.fit.moments import moments, rough_error
from privatest.fit.ramp import Ramp
from privatest.fit.two_point import two_point
from privatest.fit.unfavourable import Alternative, alternatives, flipped
from privatest.fit.uniformity import uniformity

__all__ = ["METHODS", "Candidate", "Recipe", "Target", "ranked", "recipes"]

Floats = npt.NDArray[np.float64]

METHODS = ("auto", "direct", "uniformity", "grains")

UNIFORM_RAMPS = (Ramp(0.7), *(Ramp(0.0, floor) for floor in (1.0, 2.0, 4.0)), *(Ramp(x) for x in (1.5, 3.0)))
RAMPS = (Ramp(1.0), Ramp(0.0), Ramp(1.0, middle=0.35), Ramp(1.0, middle=0.25, growth=2 / 3), Ramp(2.0, middle=0.25))

# The least width of a statistic: thresholds between two values of T + N are then fine enough to meet alpha closely.
FINE = 64
# With so few symbols the hardest alternative is improved by moving single symbols to the other side, so often.
CLIMBED, CLIMBS = 256, 3


@dataclass(frozen=True, eq=False)
class Target:
    """What a test is designed for."""

    p: Floats
    n: int
    distance: float
    epsilon: Fraction
    alpha: float


@dataclass(frozen=True, eq=False)
class Candidate:
    """A statistic of the histogram over symbols or, after Goldreich's map, over grains."""

    method: str
    excess: Excess
    grains: Grains | None = None

    def law(self, q: Floats, n: int) -> ExcessLaw:
        """Law of the statistic for n records from q."""
        return excess_law(self.excess, n, q if self.grains is None else self.grains.image(q))

    def hardest(self, target: Target, *, quick: bool = False) -> list[tuple[float, Alternative]]:
        """Alternatives with their approximate type II errors, the largest first."""
        p, n, distance = target.p, target.n, target.distance
        at_null = moments(self.excess, n, self._seen(p))

        def rated(found: Iterable[Alternative]) -> list[tuple[float, Alternative]]:
            errors = []
            for alternative in found:
                at_q = moments(self.excess, n, self._seen(alternative.q))
                error = rough_error(at_null, at_q, self.excess.width, float(target.epsilon), target.alpha)
                errors.append((error, alternative))
            return errors

        # What Goldreich's map does to q is affine: alternatives are those of the original domain.
        own = None if self.grains else self.excess
        ranking = sorted(rated(alternatives(own, n, p, distance, quick=quick)), key=_largest_first)
        if own is not None and not quick and 2 < len(p) <= CLIMBED and np.any(p != p[0]):
            for _ in range(CLIMBS):
                better = rated(flipped(own, n, p, distance, ranking[0][1].q))
                ranking, before = sorted(ranking + better, key=_largest_first), ranking[0]
                if ranking[0] is before:
                    break
        return ranking

    def _seen(self, q: Floats) -> Floats:
        return q if self.grains is None else self.grains.image(q)


def _largest_first(pair: tuple[float, Alternative]) -> float:
    return -pair[0]


@dataclass(frozen=True)
class Recipe:
    """How to make a candidate for any number of records; ``ramp`` None is the statistic of Acharya, Sun and Zhang."""

    method: str
    ramp: Ramp | None = None

    def candidate(self, target: Target) -> Candidate | None:
        """The candidate, or None where the statistic would not depend on the data."""
        if self.method == "binomial":
            return _folded(target)
        grains = _grains(target.p.tobytes()) if self.method == "grains" else None
        p = target.p if grains is None else np.full(grains.count, 1 / grains.count)
        excess = uniformity(len(p), target.n) if self.ramp is None else self.ramp.excess(p, target.n)
        return None if excess is None else Candidate(self.method, excess.refined(FINE), grains)

    def error(self, target: Target) -> float:
        """Approximate type II error at the hardest alternative."""
        candidate = self.candidate(target)
        return 1.0 if candidate is None else candidate.hardest(target, quick=True)[0][0]


def recipes(p: Floats, method: str) -> list[Recipe]:
    """What the method may use, the most useful first."""
    uniform = bool(np.all(p == p[0]))
    if len(p) == 2 and method == "auto":
        return [Recipe("binomial")]
    found = []
    if method in ("auto", "direct"):
        found += [Recipe("direct", ramp) for ramp in (UNIFORM_RAMPS if uniform else RAMPS)]
    if method == "uniformity" or (method == "auto" and uniform):
        found.append(Recipe("uniformity"))
    if method == "grains" or (method == "auto" and not uniform):
        found += [Recipe("grains", ramp) for ramp in (Ramp(0.0), Ramp(1.0), None)]
    return found


def ranked(target: Target, choice: list[Recipe]) -> list[Recipe]:
    """The recipes by their approximate type II error at the hardest alternative, the smallest first."""
    return choice if len(choice) == 1 else sorted(choice, key=lambda recipe: recipe.error(target))


@lru_cache(maxsize=8)
def _grains(p: bytes) -> Grains:
    return Grains.of(np.frombuffer(p))


@lru_cache(maxsize=64)
def _folded_excess(p: bytes, n: int, distance: float, epsilon: Fraction, alpha: float) -> Excess:
    return two_point(np.frombuffer(p), n, distance, epsilon, alpha).refined(FINE)


def _folded(target: Target) -> Candidate:
    key = (target.p.tobytes(), target.n, target.distance, target.epsilon, target.alpha)
    return Candidate("binomial", _folded_excess(*key))
