"""The law of the statistic: against enumeration, between methods, and against simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from privatest.fit import excess_law as transform
from privatest.fit.candidate_statistics import Ramp
from privatest.fit.excess_law import ACCURACY, Excess, excess_law, uniformity
from privatest.laws import IntegerLaw
from privatest.privacy import Tulap
from tests.fit.brute_force import exact_law, uniformity_mean

RNG = np.random.default_rng(20240)


def power_law(k: int, exponent: float) -> np.ndarray:
    p = np.arange(1, k + 1) ** -float(exponent)
    return p / p.sum()


@pytest.mark.parametrize("n", [1, 2, 5, 9])
@pytest.mark.parametrize("shares", [(1, 1), (3, 7), (1, 1, 1), (1, 2, 3, 4), (0, 1, 1), (1, 1, 1, 1, 1)])
def test_against_enumeration(shares: tuple[int, ...], n: int) -> None:
    q = [Fraction(share, sum(shares)) for share in shares]
    for _ in range(3):
        rows = RNG.choice([1, len(q)])
        knots = np.sort(RNG.integers(0, n + 1, size=(rows, 3)), axis=1)
        excess = Excess(knots, RNG.integers(1, 4, size=3), len(q))
        law = excess_law(excess, n, np.array([float(x) for x in q]))
        found: dict[int, float] = {}
        for value, mass in zip(law.values.tolist(), law.masses.tolist(), strict=True):
            found[value] = found.get(value, 0.0) + mass
        expected = exact_law(excess, n, q)
        for value in expected.keys() | found.keys():
            assert found.get(value, 0.0) == pytest.approx(float(expected.get(value, 0)), abs=1e-12)


CASES = [
    (3, 500, 1.0, Ramp(0.0)),
    (10, 300, 1.0, Ramp(1.0)),
    (30, 600, 1.0, Ramp(0.0)),
    (40, 700, 0.3, Ramp(1.0)),
    (60, 900, 0.0, Ramp(3.0)),
    (100, 120, 1.0, Ramp(1.0, middle=0.25)),
]


def differences(first: IntegerLaw, second: IntegerLaw, width: int) -> float:
    worst = 0.0
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(5)):
        noise = Tulap(epsilon, width)
        for z in np.arange(-3, 4, 0.5):
            cutoff = Fraction(round(first.mean + z * first.deviation)) + noise.offset + Fraction(1, 2)
            worst = max(worst, abs(first.sf(cutoff, noise) - second.sf(cutoff, noise)))
            worst = max(worst, abs(first.sf(cutoff, noise) + first.cdf(cutoff, noise) - 1))
    return worst


@pytest.mark.parametrize(("k", "n", "exponent", "ramp"), CASES)
def test_fast_methods_agree_with_the_dense_one(
    k: int, n: int, exponent: float, ramp: Ramp, monkeypatch: pytest.MonkeyPatch, show: Callable[[str], None]
) -> None:
    p = power_law(k, exponent)
    excess = ramp.excess(p, n)
    assert excess is not None
    with monkeypatch.context() as patch:
        patch.setattr(transform, "ENOUGH_WIDTHS", math.inf)
        patch.setattr(transform, "FEW_FACTORS", math.inf)
        dense = excess_law(excess, n, p)
    usual = excess_law(excess, n, p)
    with monkeypatch.context() as patch:
        patch.setattr(transform, "ENOUGH_WIDTHS", math.inf)
        patch.setattr(transform, "FEW_FACTORS", 0)
        marching = excess_law(excess, n, p)
    worst = max(differences(usual, dense, excess.width), differences(marching, dense, excess.width))
    show(f"k={k} n={n}: largest difference of a probability {worst:.1e}")
    assert worst < ACCURACY


def test_uniformity_mean_follows_from_the_law() -> None:
    for k, n in [(7, 30), (50, 400), (1000, 300), (1000, 2000)]:
        excess = uniformity(k, n)
        law = excess_law(excess, n, np.full(k, 1 / k))
        # T = width max(m, k) S less a constant, read off one histogram.
        counts = np.zeros(k, dtype=np.int64)
        counts[0] = n
        constant = excess.width * max(n, k) * (1 - 1 / k) - excess.of(counts)
        assert law.mean + constant == pytest.approx(excess.width * max(n, k) * uniformity_mean(k, n), rel=1e-9)


def test_cutoff_is_the_smallest_that_keeps_the_level() -> None:
    p = power_law(5, 1.0)
    excess = Ramp(0.0).excess(p, 40)
    assert excess is not None
    law, noise = excess_law(excess, 40, p), Tulap(Fraction(1, 2), excess.width)
    for level in (0.5, 0.1, 1e-4):
        cutoff = law.cutoff(level, noise)
        assert law.sf(cutoff, noise) <= level < law.sf(cutoff - 1, noise)
