"""Straight lines that h does not exceed: exact ones, which prove that a test is private, and tangents of a curved h.

Every line comes with its mirror image: q <= slope p + height says, of the other decision, 1 - p <= slope (1 - q) +
height; h has both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

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
from privatest.rational import exp_below

__all__ = ["Line", "exact_line", "tangent"]


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
