"""Noisy counts: laws against NoisyTotal, sums of two against brute force."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privatest.estimates.groups import noise_masses
from privatest.laws import NoisyTotal
from privatest.laws.block_laws import NoisyCount, masses_of, upper_tail
from privatest.privacy import Tulap


@pytest.mark.parametrize(("n", "rate", "epsilon", "fine"), [(30, 0.2, "1", 5), (200, 0.5, "1/2", 3), (8, 0.0, "2", 1)])
def test_a_law_is_that_of_the_total(n: int, rate: float, epsilon: str, fine: int) -> None:
    noise = Tulap(Fraction(epsilon), fine)
    law = NoisyCount(n, noise_masses(noise, fine)).law(rate)
    total = NoisyTotal(np.array([0, fine]), np.array([1 - rate, rate]), n, noise)
    assert law.masses.sum() == pytest.approx(1, abs=1e-14)
    for value in range(int(n * rate * fine) - 40, int(n * rate * fine) + 41, 7):
        assert float(law.at_least(np.array([value]))[0]) == pytest.approx(total.sf(value - 1), abs=1e-12)


def test_a_weighted_sum_of_two_by_brute_force() -> None:
    masses = noise_masses(Tulap(Fraction(1), 3), 3)
    one, other = NoisyCount(4, masses).law(0.3), NoisyCount(7, masses).law(0.6)
    sums = np.add.outer(-7 * one.values, 4 * other.values)
    joint = np.multiply.outer(one.masses, other.masses)
    for level in (-30, 0, 1, 2, 3, 17):
        assert upper_tail(one, other, (-7, 4), level) == pytest.approx(float(joint[sums >= level].sum()), abs=1e-12)
    plain = np.add.outer(one.values, other.values)
    assert upper_tail(one, other, (1, 1), 15) == pytest.approx(float(joint[plain >= 15].sum()), abs=1e-12)


@pytest.mark.parametrize(("kind", "size"), [("laplace", 2.0), ("gaussian", 3.0), ("discrete_laplace", 2.5)])
@pytest.mark.parametrize("fine", [1, 9])
def test_noise_of_other_systems(kind: str, size: float, fine: int) -> None:
    found = masses_of(kind, size, fine)
    values = (found.first + np.arange(len(found.masses))) / fine
    variance = {"laplace": 2 * size**2, "gaussian": size**2, "discrete_laplace": 0.5 / np.sinh(0.5 / size) ** 2}[kind]
    rounding = 1 / 12 / fine**2 if found.slack else 0.0
    assert found.masses.sum() == pytest.approx(1, abs=1e-12)
    assert float(found.masses @ values) == pytest.approx(0, abs=1e-12)
    assert float(found.masses @ values**2) == pytest.approx(variance + rounding, rel=1e-3)
    assert found.slack == (0 if kind == "discrete_laplace" else 1)
