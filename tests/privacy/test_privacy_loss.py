"""What a shift of the total reveals: formula against brute force, and Tulap's tightness."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from privatest.privacy import Laplace, Logistic, Noise, NoNoise, Tulap
from tests.privacy import reference

SHIFTED = [noise for noise in reference.SMALL if noise.variance < 300]


def brute_force(noise: Noise, shift: int, far: int) -> Any:
    return max(
        mpmath.log(reference.pmf(noise, -abs(x)) / reference.pmf(noise, -abs(x + shift)))
        for x in reference.lattice(noise, -far, far)
    )


@pytest.mark.parametrize("noise", SHIFTED, ids=reference.name)
@pytest.mark.parametrize("shift", [1, 3, 7])
def test_privacy_loss_is_the_supremum_over_all_outputs(noise: Noise, shift: int) -> None:
    claimed = noise.privacy_loss(shift)
    attained = brute_force(noise, shift, far=min(reference.reach(noise, 30), 150))
    assert attained <= claimed * (1 + 1e-15)
    # The logistic approaches its supremum in the tail; the others attain it.
    assert attained >= claimed * (1 - (1e-5 if isinstance(noise, Logistic) else 1e-15))
    assert noise.privacy_loss(-shift) == claimed


def test_privacy_loss_is_exact_on_rationals() -> None:
    assert Tulap(Fraction(1, 2), 3).privacy_loss(3) == 0.5
    assert Tulap(Fraction(1, 2), 3).privacy_loss(4) == 1.0
    assert Tulap(Fraction(1, 10), 3).privacy_loss(1) == 0.1
    assert Laplace(Fraction(30, 1)).privacy_loss(3) == 0.1
    assert Logistic(Fraction(30, 1)).privacy_loss(3) == 0.1
    assert NoNoise().privacy_loss(0) == 0
    assert NoNoise().privacy_loss(1) == math.inf
