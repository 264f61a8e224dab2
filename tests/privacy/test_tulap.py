"""The stair: its law, its exact draws, and what leaves of a noisy total."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from privatest.privacy import Stair, Tulap

NOISES = [Stair(Fraction(1, 2), 3), Stair(Fraction(1), 1), Stair(Fraction(3), 64), Stair(Fraction(1, 10), 7)]


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_law_is_a_geometric_on_multiples_of_the_width(noise: Stair) -> None:
    """Its tails, variance and transform are those of its masses: `test_canonical.py`."""
    w, b = noise.width, math.exp(-float(noise.epsilon))
    g = np.arange(-400, 401)
    np.testing.assert_allclose(noise.pmf(w * g), (1 - b) / (1 + b) * b ** np.abs(g), rtol=1e-13, atol=1e-300)
    assert not np.any(noise.pmf(np.setdiff1d(np.arange(-6 * w, 6 * w + 1), w * g)))


def test_the_average_over_all_cutoffs_of_a_width_is_tulap() -> None:
    """Why the stair's best cutoff is at least as good as Tulap's: Tulap is the stair at a random one."""
    stair, tulap = Stair(Fraction(1), 5), Tulap(Fraction(1), 5)
    x = np.arange(-30, 31)
    average = np.mean([stair.cdf(x + shift) for shift in range(-2, 3)], axis=0)
    np.testing.assert_allclose(tulap.cdf(x), average, rtol=1e-13)


def test_the_level_says_null_exactly_where_the_noisy_total_exceeds_the_cutoff() -> None:
    noise, cutoff = Stair(Fraction(1), 4), Fraction(13, 2)
    for noisy in range(-30, 31):
        assert (noise.level(Fraction(noisy), cutoff) >= 1) == (noisy > cutoff)
        # All that it tells of a total is in which stretch of four it lies, and the noise.
        assert noise.level(Fraction(noisy + 4), cutoff) == noise.level(Fraction(noisy), cutoff) + 1
