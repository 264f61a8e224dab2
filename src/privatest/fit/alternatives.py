r"""Alternatives at the given distance that are hard to tell from P.

E T = sum_x h_x(q_x) with convex h_x. For given sets U of symbols that gain and D of symbols that lose, gamma in all
either way, the mean of T is least where h_x'(q_x) is the same throughout U and throughout D. Which sets are worst:

- uniform P: by symmetry and convexity two levels, 1/k + gamma/a on a symbols and 1/k - gamma/(k-a) on the rest; every a
  is tried (a = k/2 is the classical paired perturbation);
- otherwise U and D interleaved by probability (pairs of similar symbols), or chosen where T's mean rises
  least, or small against large symbols; each with h' equalised, and the proportional p_x (1 + gamma/P(U)),
  p_x (1 - gamma/P(D)); for few symbols also every move of gamma from one symbol to another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privatest.fit.excess_law import marginals
from privatest.fit.statistic import Excess
from privatest.numbers import Floats

__all__ = ["Alternative", "alternatives", "flipped", "largest_distance"]

Mask = npt.NDArray[np.bool_]

FEW_SYMBOLS = 6
NEWTON_STEPS = 3
SHARES = (0.35, 0.5, 0.65)
FLIPS = 10
FEW_TERMS = 8


@dataclass(frozen=True, eq=False)
class Alternative:
    """A law at the given distance from P, and how it was found."""

    kind: str
    q: Floats


def largest_distance(p: Floats) -> float:
    """The largest total variation distance from P: all mass on its least likely symbol."""
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
    """Alternatives like q but with one symbol, of those with the most room to move, on the other side."""
    room = _room(p, marginals(excess, n, p)[1])
    for symbol in np.argsort(-room, kind="stable")[:FLIPS]:
        gains = q > p
        gains[symbol] = not gains[symbol]
        if gains.any() and p[~gains].sum() >= distance:
            yield Alternative("equalised, one symbol changed", _equalised(excess, n, p, gains, distance))


def _room(p: Floats, bend: Floats) -> Floats:
    """A symbol moves by an amount proportional to 1/h'' for the same change of h'."""
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
    """Which symbols gain, for several orders in which symbols are asked to lose."""
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
    """Symbols lose in this order until they have their share of the room to move, and hold as much as must go."""
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
    """clip(start + rate * m, low, high) with the m at which it sums to ``total``.

    Invariant of the bisection: the sum is at most the total at ``left``, at least at ``right``.
    """
    ends = np.concatenate([(low - start) / rate, (high - start) / rate])
    left, right = float(ends.min()), float(ends.max())
    reached = _few_reach if len(start) < FEW_TERMS else _many_reach
    reaches = reached(start, rate, low, high, total)
    for _ in range(60):
        middle = (left + right) / 2
        if reaches(middle):
            right = middle
        else:
            left = middle
    found = np.clip(start + rate * right, low, high)
    return np.asarray(found * (total / found.sum()))


def _many_reach(start: Floats, rate: Floats, low: Floats, high: Floats, total: float) -> Callable[[float], bool]:
    """Whether clip(start + rate * m, low, high) sums to the total at least."""
    return lambda m: float(np.minimum(np.maximum(start + rate * m, low), high).sum()) >= total


def _few_reach(start: Floats, rate: Floats, low: Floats, high: Floats, total: float) -> Callable[[float], bool]:
    """The same to the last bit, in a tenth of the time: fewer than eight terms NumPy, too, adds up one by one."""
    terms = list(zip(start.tolist(), rate.tolist(), low.tolist(), high.tolist(), strict=True))

    def reaches(m: float) -> bool:
        found = 0.0
        for s, r, a, b in terms:  # not sum(), which rounds in another way from Python 3.12 on
            found += min(max(s + r * m, a), b)
        return found >= total

    return reaches


def _single_moves(p: Floats, distance: float) -> Iterator[Alternative]:
    for source in np.flatnonzero(p >= distance):
        for target in range(len(p)):
            if target != source:
                q = p.copy()
                q[source] -= distance
                q[target] += distance
                yield Alternative("one symbol to another", np.maximum(q, 0.0))
