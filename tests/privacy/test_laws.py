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
def test_pmf_sums_to_one_and_cdf_is_its_sum(noise: Noise) -> None:
    far = reference.reach(noise, 45)
    x = np.array([float(v) for v in reference.lattice(noise, -far, far)])
    mass = noise.pmf(x)
    assert abs(math.fsum(mass) - 1) < 1e-14
    assert np.all(np.abs(np.cumsum(mass) - noise.cdf(x)) < 1e-13)


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


@every_noise
def test_between_lattice_values(noise: Noise) -> None:
    for x in [float(v) for v in reference.lattice(noise, -5, 5)]:
        assert noise.cdf(np.nextafter(x, -np.inf)) == noise.cdf(x - 1)
        assert noise.cdf(np.nextafter(x, np.inf)) == noise.cdf(x) == noise.cdf(x + 0.25)
        assert noise.sf(np.nextafter(x, -np.inf)) == noise.sf(x - 1)
        assert noise.pmf(np.nextafter(x, np.inf)) == 0.0
    # Where adding an offset would round: the largest lattice value under -1e-300 is not 0.
    assert noise.cdf(-1e-300) == noise.cdf(-float(noise.offset) if noise.offset else -1.0)


@every_noise
def test_extremes_shapes_and_kinds_of_argument(noise: Noise) -> None:
    np.testing.assert_array_equal(noise.cdf([-np.inf, np.inf]), [0, 1])
    np.testing.assert_array_equal(noise.sf([-np.inf, np.inf]), [1, 0])
    np.testing.assert_array_equal(noise.logcdf([-np.inf, np.inf]), [-np.inf, 0])
    np.testing.assert_array_equal(noise.logsf([-np.inf, np.inf]), [0, -np.inf])
    np.testing.assert_array_equal(noise.pmf([-np.inf, np.inf]), [0, 0])
    for function in (noise.cdf, noise.sf, noise.pmf, noise.logcdf, noise.logsf, noise.logpmf):
        assert np.isnan(function(np.nan))
        assert isinstance(function(0.5), float)
        assert function(np.zeros((2, 3))).shape == (2, 3)
        assert function([]).shape == (0,)
        assert function(Fraction(3, 2)) == function(1.5)
        assert function(7) == function(7.0)


@every_noise
def test_variance_is_that_of_the_law(noise: Noise) -> None:
    if noise in reference.SMALL:
        far = reference.reach(noise, 60)
        truth = 2 * mpmath.fsum(
            reference.mp(x) ** 2 * reference.pmf(noise, x) for x in reference.lattice(noise, -far, 0)
        )
    else:
        # Beyond enumeration: minus the second difference of the characteristic function, in 60 digits.
        truth = large_variance(noise)
    assert relative_error(noise.variance, truth) < 1e-13


def large_variance(noise: Noise) -> Any:
    if isinstance(noise, Tulap):
        b, w = mpmath.exp(-reference.mp(noise.epsilon)), noise.width
        second = mpmath.nsum(lambda g: g**2 * b**g, [1, mpmath.inf]) * 2 * (1 - b) / (1 + b)
        return w**2 * second + mpmath.mpf(sum((2 * k - w + 1) ** 2 for k in range(w))) / (4 * w)
    assert isinstance(noise, Laplace | Logistic)
    s = reference.mp(noise.scale)
    if isinstance(noise, Laplace):
        return 2 * s**2 + mpmath.mpf(1) / 12 + (1 / (240 * s**2))
    # Rounding adds the variance of a uniform; Poisson summation's corrections are exp(-2 pi^2 s), invisible.
    return (mpmath.pi * s) ** 2 / 3 + mpmath.mpf(1) / 12


@pytest.mark.parametrize("shift", range(-12, 13))
def test_literal_decisions(shift: int) -> None:
    """For an integer total s, Pr[s + N > 0] is the continuous noise's: the sigmoid coin, the Laplace coin."""
    for scale in (Fraction(2), Fraction(1, 3), Fraction(17, 7)):
        z = reference.mp(Fraction(shift) / scale)
        sigmoid = 1 / (1 + mpmath.exp(-z))
        assert relative_error(Logistic(scale).sf(-shift), sigmoid) < 1e-14
        laplace = mpmath.exp(z) / 2 if z < 0 else 1 - mpmath.exp(-z) / 2
        assert relative_error(Laplace(scale).sf(-shift), laplace) < 1e-14
