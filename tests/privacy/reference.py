"""The three laws from their definitions, to 60 digits: no formula here is shared with the package."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath

from privatest.privacy import Laplace, Logistic, Noise, Tulap

mpmath.mp.dps = 60

TULAPS = [
    Tulap(Fraction(1, 2), 3),
    Tulap(Fraction(1), 1),
    Tulap(Fraction(1), 4),
    Tulap(Fraction(7500000000000001, 25000000000000000), 2),
    Tulap(Fraction(1, 10**4), 10**6),
    Tulap(Fraction(50), 7),
]
LAPLACES = [
    Laplace(Fraction(2)),
    Laplace(Fraction(1, 3)),
    Laplace(Fraction(2 * 10**20, 31234567890123456789)),
    Laplace(Fraction(10**6)),
]
LOGISTICS = [
    Logistic(Fraction(2)),
    Logistic(Fraction(1, 2)),
    Logistic(Fraction(499, 1000)),
    Logistic(Fraction(1, 30)),
    Logistic(Fraction(2 * 10**20, 31234567890123456789)),
    Logistic(Fraction(10**6)),
]
NOISES: list[Noise] = [*TULAPS, *LAPLACES, *LOGISTICS]
SMALL = [noise for noise in NOISES if noise.variance < 1e4]


def mp(value: Fraction | float | int) -> Any:
    """The exact value, in mpmath."""
    fraction = Fraction(value)
    return mpmath.mpf(fraction.numerator) / fraction.denominator


def name(noise: Noise) -> str:
    return "-".join(str(value) for value in noise.to_dict().values())


def pmf(noise: Noise, x: Fraction) -> Any:
    """Pr[N = x] at a lattice value x."""
    if isinstance(noise, Tulap):
        # The pair (g, u) with width g + u = x is unique: u is x's distance from the nearest multiple.
        w = noise.width
        g = next(g for g in range(x // w - 1, x // w + 3) if abs(x - w * g) <= Fraction(w - 1, 2))
        b = mpmath.exp(-mp(noise.epsilon))
        normaliser = 1 + 2 * b / (1 - b)
        return b ** abs(g) / normaliser / w
    return continuous_cdf(noise, x + Fraction(1, 2)) - continuous_cdf(noise, x - Fraction(1, 2))


def continuous_cdf(noise: Noise, x: Fraction) -> Any:
    """The cdf of the continuous law that Laplace or Logistic rounds. Its differences are sharp below 0."""
    assert isinstance(noise, Laplace | Logistic)
    z = mp(x) / mp(noise.scale)
    if isinstance(noise, Laplace):
        return mpmath.exp(z) / 2 if z <= 0 else 1 - mpmath.exp(-z) / 2
    return 1 / (1 + mpmath.exp(-z))


def reach(noise: Noise, log_tail: float) -> int:
    """A distance beyond which the mass is under exp(-log_tail)."""
    width = noise.width if isinstance(noise, Tulap) else 1
    return int(log_tail / noise.decay_rate) + 2 * width + 2


def lattice(noise: Noise, lo: int, hi: int) -> list[Fraction]:
    """Lattice values in [lo, hi]."""
    return [k + noise.offset for k in range(lo, hi + 1) if k + noise.offset <= hi]
