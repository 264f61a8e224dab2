r"""The ladder of a notion: every probability that a decision may have, one record after the other.

A decision that gains all it may from each record runs along a chain g(k + 1) = h(g(k)). All chains together are one
distribution function F with

.. math:: F(t + 1) = h(F(t)), \qquad F(-t) = 1 - F(t),

the law of the canonical noise (Awan and Vadhan 2023): a chain is F at t, t + 1, t + 2, ... On a finite ladder there are
a few rungs to each record, numbered by whole numbers; rung 0 is where h is balanced, and one record is ``fine`` rungs.

For h made of straight lines the rungs are the kinks of F: between two rungs every chain is linear in its start.

Lines that h does not exceed prove that a test is private: exact ones, and tangents of a curved h. Every line comes with
its mirror image: q <= slope p + height says, of the other decision, 1 - p <= slope (1 - q) + height; h has both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from privatest.numbers import Floats, Integers, clipped, exp_below
from privatest.privacy.divergences import (
    Odds,
    concentrated,
    kullback,
    kullback_slope,
    quantile,
    renyi_divergence,
    renyi_slope,
)
from privatest.privacy.notions import Approx, Gdp, Kl, Notion, Pure, Renyi, Tv, Zcdp

__all__ = ["Ladder", "Line", "chain", "exact_line", "is_straight", "make_ladder", "tangent"]


SMALLEST = 1e-18
"""What is left of 1 - F below this counts as nothing."""
LONGEST = 1_000_000


@dataclass(frozen=True, eq=False)
class Ladder:
    """F at the rungs.

    Attributes:
        notion: whose.
        starts: F at rungs 0, ..., ``fine``, with the complements: from p to 1 - p, where h(p) = 1 - p.
        rests: 1 - F at rungs 0, 1, 2, ..., each accurate relative to itself; 0 beyond.
    """

    notion: Notion
    starts: tuple[Odds, ...]
    rests: Floats

    @property
    def fine(self) -> int:
        """Rungs to a record."""
        return len(self.starts) - 1

    @property
    def records(self) -> int:
        """How many records lead from the middle to the end."""
        return -(-len(self.rests) // self.fine)

    def above(self, rungs: Integers) -> Floats:
        """1 - F at each rung, whatever its sign: the lower half mirrors the upper one."""
        up = clipped(rungs, 0, len(self.rests))
        down = clipped(self.fine - rungs, 0, len(self.rests))
        ended = np.append(self.rests, 0.0)
        return np.where(rungs >= 0, ended[up], 1.0 - ended[down])

    def below(self, rungs: Integers) -> Floats:
        """F at each rung."""
        return self.above(self.fine - rungs)

    def between(self, rung: int, share: float) -> Odds:
        """The start that lies so far from one of the rungs 0, ..., ``fine`` - 1 to the next."""
        (p, rest), (q, other) = self.starts[rung], self.starts[rung + 1]
        return p + share * (q - p), rest + share * (other - rest)


def is_straight(notion: Notion) -> bool:
    """Whether h is made of straight lines."""
    return isinstance(notion, Pure | Approx | Tv)


@lru_cache(maxsize=32)
def make_ladder(notion: Notion, fine: int) -> Ladder:
    """The ladder with so many rungs to a record, fewer where one record gains little.

    Where h is made of lines, its kinks and no more.

    >>> make_ladder(Tv(0.25), 4).starts
    ((0.375, 0.625), (0.5, 0.5), (0.625, 0.375))
    """
    low, high = notion.balanced
    fine = math.ceil(fine * min(2 * (high - low), 1.0))
    inner = _kinks(notion) if is_straight(notion) else [low + (high - low) * i / fine for i in range(1, fine)]
    starts = ((low, high), *((s, 1 - s) for s in inner), (high, low))
    rows = [chain(notion, *start) for start in starts[:-1]]
    rests = np.zeros((max(map(len, rows)), len(rows)))
    for i, row in enumerate(rows):
        rests[: len(row), i] = row
    flat = rests.ravel()
    return Ladder(notion, starts, flat[: int(np.flatnonzero(flat)[-1]) + 1])


def chain(notion: Notion, p: float, rest: float) -> list[float]:
    """1 - g for g = p, h(p), h(h(p)), ... until nothing is left of it."""
    found = [rest]
    while rest > SMALLEST and len(found) < LONGEST:
        before = rest
        p, rest = notion.step(p, rest)
        if not rest < before:  # a chain that stands still
            break
        found.append(rest)
    return found


def _kinks(notion: Notion) -> list[float]:
    """Starts whose chain meets 1 - h(0), beyond which h is 1, or whose mirror's does; in increasing order."""
    low, high = notion.balanced
    left, taken = notion.step(0.0, 1.0)[::-1]  # 1 - h(0) and h(0)
    found = set()
    if taken > 0:
        p, rest = left, taken
        # Invariant: the chain from p meets 1 - h(0); its rest grows by one record at a time.
        while p > high:
            rest, p = notion.step(rest, p)
        found = {s for s in (p, rest) if low * (1 + 1e-12) < s < high * (1 - 1e-12)}
        if math.isclose(p, rest, rel_tol=1e-12):
            found = {0.5}
    return sorted(found)


@dataclass(frozen=True)
class Line:
    """q <= slope p + height, in rationals."""

    slope: Fraction
    height: Fraction

    def least(self, q: int, units: int) -> int:
        """The smallest numerator that a neighbour of q/units may have, by the line and by its mirror image.

        >>> Line(Fraction(2), Fraction(0)).least(10, 100), Line(Fraction(2), Fraction(0)).least(90, 100)
        (5, 80)
        """
        top, bottom = self.slope.numerator, self.slope.denominator
        more, over = self.height.numerator * units, self.height.denominator
        by_line = -((more - q * over) * bottom // (over * top))  # rounded up
        by_mirror = units - ((units - q) * top * over + more * bottom) // (bottom * over)
        return max(by_line, by_mirror, 0)

    def most(self, p: int, units: int) -> int:
        """The largest numerator that a neighbour of p/units may have."""
        return units - self.least(units - p, units)


def exact_line(notion: Notion) -> Line | None:
    """The line that is all of a notion made of straight lines, its slope rounded down; None where h is curved.

    Guarantees: a test whose probabilities meet the line and its mirror image, exactly, meets the notion.
    """
    if isinstance(notion, Pure):
        return Line(exp_below(notion.loss), Fraction(0))
    if isinstance(notion, Approx):
        return Line(exp_below(notion.loss) if notion.loss else Fraction(1), notion.delta)
    if isinstance(notion, Tv):
        return Line(Fraction(1), notion.eta)
    return None


def tangent(notion: Notion, p: float, rest: float) -> tuple[float, float]:
    """A value and a slope at p of a line that a curved h does not exceed anywhere, and touches at p."""
    if isinstance(notion, Gdp):
        mu = float(notion.mu)
        return notion.step(p, rest)[0], math.exp(min(-mu * quantile(p, rest) - mu * mu / 2, 700.0))
    order, (q, v) = 1.0, notion.step(p, rest)
    if isinstance(notion, Renyi):
        order = float(notion.order)
    elif isinstance(notion, Zcdp):
        order = concentrated(p, rest, float(notion.rho))[1]
    else:
        assert isinstance(notion, Kl), notion
    return q, _slope((p, rest), (q, v), order)


def _slope(before: Odds, after: Odds, order: float) -> float:
    """How fast q grows with p where the larger one of the two divergences of this order stays the same."""
    if order == 1.0:
        forward = kullback(*before, *after) >= kullback(*after, *before)
        first, second = kullback_slope(*before, *after) if forward else kullback_slope(*after, *before)
    else:
        forward = renyi_divergence(*before, *after, order) >= renyi_divergence(*after, *before, order)
        first, second = renyi_slope(*before, *after, order) if forward else renyi_slope(*after, *before, order)
    in_p, in_q = (first, second) if forward else (second, first)
    return -in_p / in_q
