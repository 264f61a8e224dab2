r"""The choice of a fit test's statistic: candidates, compared by their type II error at the hardest alternatives.

**Hard alternatives** (:func:`alternatives`): laws at the given distance from P that are hard to tell from it. E T is
sum_x h_x(q_x) with convex h_x. If the symbols U gain and the symbols D lose, gamma in all either way, the mean of T is
the smallest where h_x'(q_x) is the same throughout U and throughout D. The worst sets are:

- for uniform P, by symmetry and convexity, two levels: 1/k + gamma/a on a symbols and 1/k - gamma/(k-a) on the rest;
  every a is tried (a = k/2 is the classical paired perturbation);
- otherwise U and D interleaved by probability (pairs of similar symbols), or chosen where T's mean rises the least, or
  small against large symbols; each with h' equalised, and the proportional p_x (1 + gamma/P(U)), p_x (1 - gamma/P(D));
  for few symbols also every move of gamma from one symbol to another.

**Candidates.** For two symbols the statistic is the distance of the count from a centre, tuned so that both sides are
equally hard (:func:`two_point`). For more symbols it is a :class:`Ramp`. The test of q against p that a small q - p
calls for increases T by an amount proportional to j - n p_x when a count rises from j to j + 1 (the increments of the
chi-squared statistic less N_x). The private test clips that ramp:

.. math:: \delta_x(j) = \mathrm{clip}\bigl(\beta_x + (j - n p_x)/r_x,\ 0,\ 1\bigr), \qquad
          r_x = \max\bigl(\text{floor},\ 2\,\text{stretch}\,\sqrt{\mu}\,(n p_x/\mu)^{\text{growth}}\bigr)

with mu the median of the n p_x, so that one record moves T by at most 1. A steep ramp (stretch 0) is the empirical
distance and the best against much noise; a long one is the chi-squared statistic and the best against none. beta_x
makes the mean increment under P the same for all symbols: otherwise some alternative at the given distance would make T
fall.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest.fit.excess_law import (
    REACH,
    Excess,
    binomial_masses,
    excess_law,
    marginals,
    moments,
    rough_error,
    uniformity,
    windows,
)
from privatest.laws import IntegerLaw
from privatest.numbers import Floats, Integers
from privatest.privacy import Noise, Notion, canonical_noise

Mask = npt.NDArray[np.bool_]

FEW_SYMBOLS = 6
NEWTON_STEPS = 3
SHARES = (0.35, 0.5, 0.65)
FLIPS = 10


@dataclass(frozen=True, eq=False)
class Alternative:
    """A law at the given distance from P, and the construction that gave it."""

    kind: str
    q: Floats


def largest_distance(p: Floats) -> float:
    """Return the largest total variation distance from P: all mass on its least likely symbol."""
    return 1.0 - float(p.min())


def alternatives(
    excess: Excess | None, n: int, p: Floats, distance: float, *, quick: bool = False
) -> Iterator[Alternative]:
    """Candidates for the least favourable alternative of a statistic (None: those that need no statistic).

    ``quick`` leaves out those that are seldom the worst.
    """
    if len(p) == 2:
        for up in (0, 1):
            if p[1 - up] >= distance - 1e-12:
                q = p + distance * np.where(np.arange(2) == up, 1.0, -1.0)
                yield Alternative("shift", np.clip(q, 0.0, 1.0))
        return
    if np.all(p == p[0]):
        yield from _two_levels(len(p), distance, quick)
    else:
        for kind, gains in _sides(excess, n, p, distance, quick):
            if excess is None or not quick:
                yield Alternative(f"proportional, {kind}", _proportional(p, gains, distance))
            if excess is not None:
                yield Alternative(f"equalised, {kind}", _equalised(excess, n, p, gains, distance))
    if len(p) <= FEW_SYMBOLS and not quick:
        yield from _single_moves(p, distance)


def flipped(excess: Excess, n: int, p: Floats, distance: float, q: Floats) -> Iterator[Alternative]:
    """Return alternatives that differ from q in the side of one symbol, for the symbols with the most room to move."""
    room = _room(p, marginals(excess, n, p)[1])
    for symbol in np.argsort(-room, kind="stable")[:FLIPS]:
        gains = q > p
        gains[symbol] = not gains[symbol]
        if gains.any() and p[~gains].sum() >= distance:
            yield Alternative("equalised, one symbol changed", _equalised(excess, n, p, gains, distance))


def _room(p: Floats, bend: Floats) -> Floats:
    """Return how far each symbol moves for the same change of h', which is proportional to 1/h''."""
    return np.where(p > 0, 1 / np.maximum(bend, 1e-9 * float(bend.max()) + 1e-300), 0.0)


def _two_levels(k: int, distance: float, quick: bool) -> Iterator[Alternative]:
    most = min(k - 1, int(k * (1 - distance) + 1e-9))
    tried = {round(k * share / 20) for share in ((6, 8, 9, 10) if quick else range(1, 20))} | {k // 2}
    if not quick:
        tried |= set(range(1, 13)) | set(range(k - 12, k))
    for a in sorted(a for a in tried | {most} if 1 <= a <= most):
        q = np.where(np.arange(k) < a, 1 / k + distance / a, max(1 / k - distance / (k - a), 0.0))
        yield Alternative(f"two levels, {a} of {k} raised", q)


def _sides(excess: Excess | None, n: int, p: Floats, distance: float, quick: bool) -> Iterator[tuple[str, Mask]]:
    """Masks of the symbols that gain, each with its description, for several orders in which symbols lose."""
    if excess is None:
        slope, room = np.zeros(len(p)), p ** (2 / 3)
    else:
        slope, bend = marginals(excess, n, p)
        room = _room(p, bend)
    rising = np.argsort(p, kind="stable")
    pairs = np.concatenate([rising[::-2], rising[::-1][1::2]])
    orders = {
        "pairs": pairs,
        "small symbols gain": rising[::-1],
        "least increase": np.argsort(-slope, kind="stable"),
        "pairs, other way": np.concatenate([pairs[(len(p) + 1) // 2 :], pairs[: (len(p) + 1) // 2]]),
        "large symbols gain": rising,
    }
    tried: set[bytes] = set()
    for kind, order in list(orders.items())[: 3 if quick else None]:
        several = kind in ("small symbols gain", "least increase") and not quick
        for share in SHARES if several else (0.5,):
            gains = _losing(p, order, room, share, distance)
            if gains.tobytes() not in tried:
                tried.add(gains.tobytes())
                yield kind, gains


def _losing(p: Floats, order: npt.NDArray[np.intp], room: Floats, share: float, distance: float) -> Mask:
    """Return the mask of the symbols that gain.

    The others lose in this order, until they have their share of the room to move and hold enough probability.
    """
    enough = int(np.searchsorted(np.cumsum(room[order]), share * room.sum())) + 1
    held = int(np.searchsorted(np.cumsum(p[order]), distance - 1e-12)) + 1
    gains = np.ones(len(p), dtype=bool)
    gains[order[: max(enough, held)]] = False
    if not gains.any() or p[~gains].sum() < distance - 1e-12:
        gains[:] = False
        gains[np.argmin(p)] = True
    return gains


def _proportional(p: Floats, gains: Mask, distance: float) -> Floats:
    up, down = float(p[gains].sum()), float(p[~gains].sum())
    if up == 0.0:
        return _shifted(p, np.where(gains, distance / gains.sum(), 0.0) - np.where(gains, 0.0, p * distance / down))
    return _shifted(p, np.where(gains, p * distance / up, -p * distance / down))


def _shifted(p: Floats, move: Floats) -> Floats:
    q = np.maximum(p + move, 0.0)
    return np.asarray(q / q.sum())


def _equalised(excess: Excess, n: int, p: Floats, gains: Mask, distance: float) -> Floats:
    """Moves d with sum ``distance`` on either side and h'(p + d) equal within each, by damped Newton steps."""
    sign = np.where(gains, 1.0, -1.0)
    room = np.where(gains, distance, p)
    d = np.abs(_proportional(p, gains, distance) - p)
    for _ in range(NEWTON_STEPS):
        first, second = marginals(excess, n, np.clip(p + sign * d, 0.0, 1.0))
        bend = np.maximum(second, 1e-3 * float(np.mean(second)) + 1e-300)
        low, high = np.maximum(d / 2, 0.0), np.minimum(2 * d + 1e-3 * distance / len(p), room)
        start = d - sign * first / bend
        for side in (gains, ~gains):
            d[side] = _balanced(start[side], 1 / bend[side], low[side], high[side], distance)
    return _shifted(p, sign * d)


def _balanced(start: Floats, rate: Floats, low: Floats, high: Floats, total: float) -> Floats:
    """Return clip(start + rate * m, low, high) for the m at which it sums to ``total``."""
    # The sum is piecewise linear in m; it is computed at both ends of every piece, and interpolated.
    ends = np.concatenate([(low - start) / rate, (high - start) / rate])
    order = np.argsort(ends, kind="stable")
    ends, slopes = ends[order], np.cumsum(np.concatenate([rate, -rate])[order])
    sums = float(low.sum()) + np.append(0.0, np.cumsum(slopes[:-1] * np.diff(ends)))
    moves = np.clip(start + rate * np.interp(total, sums, ends), low, high)
    return np.asarray(moves * (total / moves.sum()))


def _single_moves(p: Floats, distance: float) -> Iterator[Alternative]:
    for source in np.flatnonzero(p >= distance):
        for target in range(len(p)):
            if target != source:
                q = p.copy()
                q[source] -= distance
                q[target] += distance
                yield Alternative("one symbol to another", np.maximum(q, 0.0))


# The centre of |N_1 - c| moves in sixteenths of a count.
LEVELS = 16


def two_point(target: Target) -> Excess:
    r"""T = sum over 16 whole centres c of :math:`|N_1 - c|`, or :math:`N_x` if only symbol x can gain ``distance``.

    :math:`|N_1 - c| = (N_1 - c)^+ + (N_0 - (n - c))^+`, so this is an :class:`Excess`. Adding noise after
    taking the absolute value needs fewer records than a two-sided interval for the noisy count.
    """
    p, n, alpha = target.p, target.n, target.alpha
    sides = list(alternatives(None, n, p, target.distance))
    if len(sides) == 1:
        up = int(sides[0].q[1] > p[1])
        knots = np.array([[n], [0]] if up else [[0], [n]], dtype=np.int64)
        return Excess(knots, np.ones(1, dtype=np.int64), 2)
    lower, upper = sorted(sides, key=lambda side: float(side.q[1]))

    def imbalance(index: int) -> float:
        """Return the type II error above P minus that below P, which grows with the centre."""
        excess = _folded(n, index)
        noise = target.noise(excess.width)
        cutoff = excess_law(excess, n, p).cutoff(alpha, noise)
        above, below = (excess_law(excess, n, side.q).cdf(cutoff, noise) for side in (upper, lower))
        return above - below

    # The balance lies between the two means, and near that under P.
    spread = 4 * math.sqrt(n * float(p[0] * p[1])) + 1
    low = round(LEVELS * max(n * float(lower.q[1]), n * float(p[1]) - spread))
    high = round(LEVELS * min(n * float(upper.q[1]), n * float(p[1]) + spread))
    # Invariant: the hard side is below P at ``low`` and above P at ``high``.
    while high - low > 1:
        middle = (low + high) // 2
        if imbalance(middle) < 0:
            low = middle
        else:
            high = middle
    best = min((low, high), key=lambda index: abs(imbalance(index)))
    simplified = _folded(n, best).simplified(n)
    return simplified if simplified is not None else _folded(n, best)


def _folded(n: int, index: int) -> Excess:
    """Return the excess statistic whose centres have the mean index / LEVELS."""
    centres = np.clip((index + np.arange(LEVELS)) // LEVELS, 0, n)
    return Excess(np.stack([n - centres, centres]).astype(np.int64), np.ones(LEVELS, dtype=np.int64), 2)


FEWEST_LEVELS, MOST_LEVELS = 4, 64


@dataclass(frozen=True)
class Ramp:
    """A shape of increments.

    Attributes:
        stretch: length of the ramp to either side, in standard deviations of a typical count.
        floor: its least length, in counts.
        middle: mean increment under P, 0 to 1.
        growth: 1/2 for the same stretch at every symbol; 2/3 is the weighting of Valiant and Valiant.
    """

    stretch: float
    floor: float = 1.0
    middle: float = 0.5
    growth: float = 0.5

    def excess(self, p: Floats, n: int) -> Excess | None:
        """Return the statistic on integers; None if it would be constant.

        The lattice has few levels where counts are large, since whole counts are fine enough there.
        """
        values, member = np.unique(p, return_inverse=True)
        typical = max(float(np.median(n * p)), 1e-9)
        levels = min(max(math.ceil(48 / math.sqrt(typical)), FEWEST_LEVELS), MOST_LEVELS)
        length = 2 * self.stretch * math.sqrt(typical) * (n * values / typical) ** self.growth
        length = np.maximum(self.floor, length)
        start = n * values[:, None] + (np.arange(levels) + 0.5) / levels * length[:, None]
        if len(values) == 1:
            knots = _whole(start, 0.5 * length, n)
        else:
            knots = np.empty(start.shape, dtype=np.int64)
            for which, counts in windows(values, n):
                masses = binomial_masses(counts, max(n - 1, 1), values[which])
                knots[which] = self._balanced(start[which], length[which], counts, masses, n)
        knots[values == 0] = 0  # whatever has no probability under P speaks against P at once
        return Excess(knots[member.ravel()], np.ones(levels, dtype=np.int64), len(p)).simplified(n)

    def _balanced(self, start: Floats, length: Floats, counts: Integers, masses: Floats, n: int) -> Integers:
        """Knots with a mean increment as near to ``middle`` as whole counts allow, by bisection on beta.

        Invariant: the mean increment is at most ``middle`` at low, at least at high.
        """
        # reach[j] = Pr[count >= j]: a knot there adds so much to the mean increment.
        reach = np.column_stack([np.cumsum(masses[:, ::-1], axis=1)[:, ::-1], np.zeros(len(masses))])

        def mean(knots: Integers) -> Floats:
            at = np.clip(knots - counts[:, :1], 0, masses.shape[1])
            return np.asarray(np.take_along_axis(reach, at, axis=1).mean(axis=1))

        span = length + REACH * np.sqrt(masses.shape[1]) + counts[:, -1] - counts[:, 0]
        low, high = -span, 2 * span
        for _ in range(24):
            centre = (low + high) / 2
            reached = mean(_whole(start, centre, n)) >= self.middle
            low, high = np.where(reached, low, centre), np.where(reached, centre, high)
        below, above = _whole(start, low, n), _whole(start, high, n)
        nearer = self.middle - mean(below) < mean(above) - self.middle
        return np.where(nearer[:, None], below, above)


def _whole(start: Floats, shift: Floats, n: int) -> Integers:
    """Return the first whole counts at or after start - shift."""
    return np.asarray(np.clip(np.ceil(start - shift[:, None] - 1e-9), 0, n).astype(np.int64))


METHODS = ("auto", "direct", "uniformity")
UNIFORM_RAMPS = (Ramp(0.7), *(Ramp(0.0, floor) for floor in (1.0, 2.0, 4.0)), *(Ramp(x) for x in (1.5, 3.0)))
RAMPS = (Ramp(1.0), Ramp(0.0), Ramp(1.0, middle=0.35), Ramp(1.0, middle=0.25, growth=2 / 3), Ramp(2.0, middle=0.25))

# The least width of a statistic: thresholds between two values of T + N are then fine enough to meet alpha closely.
FINE = 64
# With so few symbols the hardest alternative is improved by moving single symbols to the other side, so often.
CLIMBED, CLIMBS = 256, 3
LAWS_KEPT = 8


@dataclass(frozen=True, eq=False)
class Target:
    """The task of a test: P, the records, the distance, the notion that ``rows`` of one person meet, and alpha."""

    p: Floats
    n: int
    distance: float
    notion: Notion
    alpha: float
    rows: int = 1

    def noise(self, width: int) -> Noise:
        """Return the noise that hides all rows of a person. Each row changes T by at most ``width``."""
        return canonical_noise(self.notion, self.rows * width)


@dataclass(frozen=True, eq=False)
class FitStatistic:
    """A statistic of the histogram over symbols."""

    method: str
    excess: Excess

    def law(self, q: Floats, n: int) -> IntegerLaw:
        """Law of the statistic for n records from q."""
        return _cached_law(self.excess, q.tobytes(), n)

    def hardest(self, target: Target, noise: Noise, *, quick: bool = False) -> list[tuple[float, Alternative]]:
        """Alternatives with their approximate type II errors under a noise, the largest first."""
        p, n, distance = target.p, target.n, target.distance
        at_null = moments(self.excess, n, p)

        def rated(alternatives: Iterable[Alternative]) -> list[tuple[float, Alternative]]:
            errors = []
            for alternative in alternatives:
                at_q = moments(self.excess, n, alternative.q)
                error = rough_error(at_null, at_q, noise, target.alpha)
                errors.append((error, alternative))
            return errors

        ranking = sorted(rated(alternatives(self.excess, n, p, distance, quick=quick)), key=_largest_first)
        if not quick and 2 < len(p) <= CLIMBED and np.any(p != p[0]):
            for _ in range(CLIMBS):
                better = rated(flipped(self.excess, n, p, distance, ranking[0][1].q))
                ranking, before = sorted(ranking + better, key=_largest_first), ranking[0]
                if ranking[0] is before:
                    break
        return ranking


@lru_cache(maxsize=LAWS_KEPT)
def _cached_law(excess: Excess, q: bytes, n: int) -> IntegerLaw:
    """The law of a statistic; the last few are kept, because several thresholds are compared by the same ones."""
    return excess_law(excess, n, np.frombuffer(q))


def _largest_first(pair: tuple[float, Alternative]) -> float:
    return -pair[0]


@dataclass(frozen=True)
class Recipe:
    """A rule that makes a candidate for any number of records; without ``ramp`` that of Acharya, Sun and Zhang."""

    method: str
    ramp: Ramp | None = None

    def candidate(self, target: Target) -> FitStatistic | None:
        """Return the candidate, or None where the statistic would not depend on the data."""
        if self.method == "binomial":
            return _folded_candidates(target)
        p, n = target.p, target.n
        excess = uniformity(len(p), n) if self.ramp is None else self.ramp.excess(p, n)
        return None if excess is None else FitStatistic(self.method, excess.refined(FINE))

    def error(self, target: Target) -> float:
        """Approximate type II error at the hardest alternative."""
        candidate = self.candidate(target)
        if candidate is None:
            return 1.0
        return candidate.hardest(target, target.noise(candidate.excess.width), quick=True)[0][0]


def recipes(p: Floats, method: str) -> list[Recipe]:
    """Return the recipes of a method, the most useful first."""
    uniform = bool(np.all(p == p[0]))
    if len(p) == 2 and method == "auto":
        return [Recipe("binomial")]
    candidates = []
    if method in ("auto", "direct"):
        candidates += [Recipe("direct", ramp) for ramp in (UNIFORM_RAMPS if uniform else RAMPS)]
    if method == "uniformity" or (method == "auto" and uniform):
        candidates.append(Recipe("uniformity"))
    return candidates


def ranked(target: Target, choice: list[Recipe]) -> list[Recipe]:
    """Return the recipes by their approximate type II error at the hardest alternative, the smallest first."""
    return choice if len(choice) == 1 else sorted(choice, key=lambda recipe: recipe.error(target))


@lru_cache(maxsize=64)
def _folded_excess(p: bytes, *rest: Any) -> Excess:
    return two_point(Target(np.frombuffer(p), *rest)).refined(FINE)


def _folded_candidates(target: Target) -> FitStatistic:
    key = (target.p.tobytes(), target.n, target.distance, target.notion, target.alpha, target.rows)
    return FitStatistic("binomial", _folded_excess(*key))
