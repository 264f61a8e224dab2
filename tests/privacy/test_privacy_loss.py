"""What a shift of the total reveals: formula against brute force, and Tulap's tightness."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
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


@pytest.mark.parametrize("noise", reference.TULAPS, ids=reference.name)
def test_tulap_meets_the_constraint_with_equality(noise: Tulap) -> None:
    """F(x + width) = min(e^eps F(x), 1 - e^-eps (1 - F(x))), relatively in both tails."""
    epsilon = float(noise.epsilon)
    half = min(3 * noise.width, 5000)
    near = np.arange(-half, half + 1.0) + float(noise.offset)
    blocks = noise.width * np.arange(-50.0, 51.0) + near[0] % 1
    x = np.unique(np.concatenate([near, blocks]))
    x = x[noise.logcdf(x) > -690]
    lower_rule = np.exp(epsilon) * noise.cdf(x)
    upper_rule = 1 - np.exp(-epsilon) * noise.sf(x)
    np.testing.assert_allclose(noise.cdf(x + noise.width), np.minimum(lower_rule, upper_rule), rtol=1e-13)
    # Where the upper rule binds, its complement is the one that keeps digits.
    binding = upper_rule < lower_rule
    np.testing.assert_allclose(
        noise.sf(x + noise.width)[binding], (np.exp(-epsilon) * noise.sf(x))[binding], rtol=1e-13
    )


@pytest.mark.parametrize("noise", [Laplace(Fraction(4)), Logistic(Fraction(4))], ids=reference.name)
def test_the_equality_is_particular_to_tulap(noise: Noise) -> None:
    """The same check fails for the other two at the same epsilon = 1, width = 4."""
    x = np.arange(-20, 20) + 0.5
    lower_rule = np.exp(1) * noise.cdf(x)
    upper_rule = 1 - np.exp(-1) * noise.sf(x)
    bound = np.minimum(lower_rule, upper_rule)
    assert np.all(noise.cdf(x + 4) <= bound * (1 + 1e-14))
    assert np.max(1 - noise.cdf(x + 4) / bound) > 0.01
