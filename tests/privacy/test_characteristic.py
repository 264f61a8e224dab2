"""E exp(i t N) against direct summation of the definition's pmf, for real and complex t."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
import pytest

from privatest.privacy import Laplace, Logistic, Noise, Tulap
from tests.privacy import reference

every_noise = pytest.mark.parametrize("noise", reference.NOISES, ids=reference.name)


def direct(noise: Noise, t: complex, log_tail: float) -> Any:
    """The sum itself, in 60 digits."""
    z = mpmath.mpf(t) if isinstance(t, float) else mpmath.mpc(t)
    return mpmath.fsum(mass * mpmath.cos(z * x) for x, mass in masses(noise, log_tail))


@lru_cache(maxsize=4)
def masses(noise: Noise, log_tail: float) -> list[tuple[Any, Any]]:
    """The values up to zero, each with its probability and that of its mirror image."""
    values = reference.lattice(noise, -reference.reach(noise, log_tail), 0)
    return [(reference.mp(x), reference.pmf(noise, x) * (2 if x else 1)) for x in values]


@every_noise
def test_closed_forms_at_any_size(noise: Noise) -> None:
    """Independent closed forms in 60 digits reach the parameters and the strip's edge that sums do not."""
    rng = np.random.default_rng(20260)
    near_zero = rng.normal(size=2) * noise.decay_rate
    angles = np.concatenate([rng.uniform(-20, 20, 2), near_zero, [0, 2 * np.pi]])
    for t in angles:
        assert abs(closed_form(noise, float(t)) - reference.mp(float(noise.characteristic(t)))) < 1e-14
        for part in (-0.9, 0.999):
            z = complex(t, part * noise.decay_rate)
            scale = abs(closed_form(noise, complex(0, z.imag)))
            error = abs(closed_form(noise, z) - mpmath.mpc(complex(noise.characteristic(z))))
            # The pole at the edge amplifies the rounding of t by the inverse of the distance.
            assert error / scale < 1e-15 / (1 - abs(part)), z


def closed_form(noise: Noise, t: complex) -> Any:
    z = mpmath.mpmathify(t)
    if isinstance(noise, Tulap):
        w, b = noise.width, mpmath.exp(-reference.mp(noise.epsilon))
        block = mpmath.sin(w * z / 2) / (w * mpmath.sin(z / 2)) if z else mpmath.mpf(1)
        return block * (1 - b) ** 2 / ((1 - b * mpmath.expj(w * z)) * (1 - b * mpmath.expj(-w * z)))
    assert isinstance(noise, Laplace | Logistic)
    s = reference.mp(noise.scale)
    r = mpmath.exp(-1 / s)
    if isinstance(noise, Laplace):
        half = mpmath.expj(z / 2) / (1 - r * mpmath.expj(z)) + mpmath.expj(-z / 2) / (1 - r * mpmath.expj(-z))
        return (1 - r) / 2 * half
    if not z:
        return mpmath.mpf(1)
    near, reach = -round(float(mpmath.re(z)) / (2 * math.pi)), int(3 / float(s)) + 3
    return mpmath.fsum(
        2 * mpmath.pi * s * mpmath.sin(z / 2) / mpmath.sinh(mpmath.pi * s * (z + 2 * mpmath.pi * k))
        for k in range(near - reach, near + reach + 1)
    )


@every_noise
def test_period_symmetry_and_bound(noise: Noise) -> None:
    t = np.random.default_rng(7).uniform(-np.pi, np.pi, 50)
    sign = -1 if noise.offset else 1
    spread = math.sqrt(noise.variance) + 1
    shifted = noise.characteristic(t + 2 * np.pi)
    # t + 2 pi is rounded, by 1e-15; the function's slope is at most the standard deviation.
    assert np.max(np.abs(shifted - sign * noise.characteristic(t))) < 1e-15 * spread + 1e-14
    np.testing.assert_allclose(noise.characteristic(-t), noise.characteristic(t), atol=1e-15)
    assert np.all(np.abs(noise.characteristic(t)) <= 1 + 1e-15)
    assert noise.characteristic(0.0) == 1
    assert noise.characteristic(0j) == 1
    line = noise.characteristic(1j * noise.decay_rate * np.linspace(-0.99, 0.99, 21))
    np.testing.assert_allclose(line.imag, 0, atol=1e-10)
    assert np.all(line.real >= 1 - 1e-15)
