"""The statistic of Acharya, Sun and Zhang: sensitivity, integers and null mean, against enumeration."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from privatest.fit.uniformity import uniformity, uniformity_mean
from tests.fit.brute_force import distance_from_uniform, histograms, multinomial, neighbours

SIZES = [(k, m) for k in range(2, 7) for m in range(1, 9) if math.comb(k + m - 1, m) <= 800]


@pytest.mark.parametrize(("k", "m"), SIZES)
def test_sensitivity_is_exactly_one_over_the_larger(k: int, m: int) -> None:
    largest = max(
        (abs(distance_from_uniform(a) - distance_from_uniform(b)) for a in histograms(k, m) for b in neighbours(a)),
        default=Fraction(0),
    )
    # One record has one histogram up to names: nothing changes.
    assert largest == (Fraction(1, max(m, k)) if m > 1 else 0)


@pytest.mark.parametrize(("k", "m"), SIZES)
def test_the_integers_carry_the_statistic_and_their_width_is_attained(k: int, m: int) -> None:
    excess = uniformity(k, m)
    assert excess.width == (k // math.gcd(k, m) if m >= k else 1)
    scale = Fraction(excess.width * max(m, k)) if m > 1 else Fraction(1)
    offsets = {scale * distance_from_uniform(counts) - excess.of(np.array(counts)) for counts in histograms(k, m)}
    assert m == 1 or len(offsets) == 1
    moves = {abs(excess.of(np.array(a)) - excess.of(np.array(b))) for a in histograms(k, m) for b in neighbours(a)}
    assert max(moves) == (excess.width if m > 1 else 0)


@pytest.mark.parametrize(("k", "m"), SIZES)
def test_null_mean(k: int, m: int) -> None:
    flat = [Fraction(1, k)] * k
    mean = sum(multinomial(counts, flat) * distance_from_uniform(counts) for counts in histograms(k, m))
    assert uniformity_mean(k, m) == pytest.approx(float(mean), rel=1e-12)


def test_null_mean_below_the_number_of_symbols_is_the_share_of_unseen_ones() -> None:
    for k, m in [(10, 3), (1000, 20), (50, 50)]:
        assert uniformity_mean(k, m) == pytest.approx((1 - 1 / k) ** m, rel=1e-12)
