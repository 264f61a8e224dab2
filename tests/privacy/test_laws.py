"""pmf, cdf, sf and their logarithms against the definitions, body and tails."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from privatest.privacy import Laplace, Logistic, Noise, Tulap
from tests.privacy import reference

every_noise = pytest.mark.parametrize("noise", reference.NOISES, ids=reference.name)
small_noise = pytest.mark.parametrize("noise", reference.SMALL, ids=reference.name)


def relative_error(value: Any, truth: Any) -> float:
    return float(abs(reference.mp(float(value)) - truth) / abs(truth))


@every_noise
def test_pmf_is_the_definition(noise: Noise) -> None:
    far = reference.reach(noise, 30)
    points = {Fraction(round(far * u)) + noise.offset for u in np.linspace(-1, 1, 41)}
    points |= set(reference.lattice(noise, -6, 6))
    for x in points:
        # The definition's difference of cdfs keeps its digits in the lower tail only.
        truth = reference.pmf(noise, -abs(x))
        assert relative_error(noise.pmf(float(x)), truth) < 1e-13, x
        assert math.isclose(noise.logpmf(float(x)), float(mpmath.log(truth)), rel_tol=1e-13, abs_tol=1e-13)


@small_noise
def test_cdf_is_relatively_accurate(noise: Noise) -> None:
    """Against the definition's pmf, summed to 60 digits from below; sf by symmetry."""
    far = reference.reach(noise, 60)
    total = mpmath.mpf(0)
    for x in reference.lattice(noise, -far, 0):
        total += reference.pmf(noise, x)
        if x > -far / 2:
            # Compared where what the sum leaves out, exp(-30) of the tail or less, cannot be seen.
            assert relative_error(noise.cdf(float(x)), total) < 2e-13, x
            assert relative_error(noise.sf(float(-x - 1)), total) < 2e-13, x


@every_noise
def test_symmetry_and_complement(noise: Noise) -> None:
    far = reference.reach(noise, 40)
    x = np.unique(np.round(np.linspace(-far, far, 1001))) + float(noise.offset)
    np.testing.assert_array_equal(noise.pmf(x), noise.pmf(-x))
    np.testing.assert_allclose(noise.cdf(x), noise.sf(-x - 1), rtol=2e-16)
    np.testing.assert_allclose(noise.cdf(x) + noise.sf(x), 1, rtol=0, atol=3e-16)
    np.testing.assert_allclose(np.diff(noise.cdf(x)) >= 0, True)
    np.testing.assert_allclose(noise.logcdf(x), np.log(noise.cdf(x)), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(noise.logsf(x), np.log(noise.sf(x)), rtol=1e-13, atol=1e-15)


@every_noise
def test_tails_down_to_1e_300_and_beyond(noise: Noise) -> None:
    for log_tail in (100, 400, 690, 5000):
        x = -(Fraction(int(log_tail / noise.decay_rate)) + noise.offset)
        if isinstance(noise, Tulap):
            b, w = mpmath.exp(-reference.mp(noise.epsilon)), noise.width
            g = math.floor((x + Fraction(w - 1, 2)) / w)
            r = x + Fraction(w - 1, 2) - w * g
            below_block = sum(b ** (k - g) for k in range(1, 4)) + b ** (4 - g) / (1 - b)
            truth = (1 - b) / (1 + b) * (below_block + b**-g * reference.mp((r + 1) / w))
        else:
            truth = reference.continuous_cdf(noise, x + Fraction(1, 2))
        if log_tail < 691:
            assert relative_error(noise.cdf(float(x)), truth) < 3e-13
            assert relative_error(noise.sf(float(-x - 1)), truth) < 3e-13
        assert math.isclose(noise.logcdf(float(x)), float(mpmath.log(truth)), rel_tol=1e-14)
        assert math.isclose(noise.logsf(float(-x - 1)), float(mpmath.log(truth)), rel_tol=1e-14)
        assert noise.cdf(float(-x)) == 1.0 or log_tail < 100
        # The other side's logarithm is the tail itself, not 0.
        if log_tail < 691:
            assert relative_error(-noise.logsf(float(x)), truth) < 3e-13


@pytest.mark.parametrize("shift", range(-12, 13))
def test_literal_decisions(shift: int) -> None:
    """For an integer total s, Pr[s + N > 0] is the continuous noise's: the sigmoid coin, the Laplace coin."""
    for scale in (Fraction(2), Fraction(1, 3), Fraction(17, 7)):
        z = reference.mp(Fraction(shift) / scale)
        sigmoid = 1 / (1 + mpmath.exp(-z))
        assert relative_error(Logistic(scale).sf(-shift), sigmoid) < 1e-14
        laplace = mpmath.exp(z) / 2 if z < 0 else 1 - mpmath.exp(-z) / 2
        assert relative_error(Laplace(scale).sf(-shift), laplace) < 1e-14
