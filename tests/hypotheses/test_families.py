"""Masses and quantiles of densities."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from privatest.hypotheses import Reals, as_distribution


def real(given: object) -> Reals:
    law = as_distribution(given)
    assert isinstance(law, Reals)
    return law


def test_mass_is_relatively_accurate_in_both_tails() -> None:
    law = real("normal(0, 1)")
    both = law.mass([-11.0, 10.0, -1.0, -math.inf], [-10.0, 11.0, 1.0, math.inf])
    tail = stats.norm.cdf(-10) - stats.norm.cdf(-11)
    np.testing.assert_allclose(both, [tail, tail, math.erf(1 / math.sqrt(2)), 1.0], rtol=1e-13)
    assert law.mass(1.0, 1.0) == 0
    assert law.mass(2.0, 1.0) == 0
