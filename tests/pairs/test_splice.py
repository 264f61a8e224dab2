"""Piecewise combinations of two densities, against scipy's quadrature of the formula."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy import integrate, stats

from privatest.pairs import ContinuousPair, Reals, as_distribution
from privatest.pairs.clamped_pair import ClampedPair
from privatest.pairs.splice import Piece, Splice


def real(text: str) -> Reals:
    law = as_distribution(text)
    assert isinstance(law, Reals)
    return law


def capped() -> Splice:
    """min{P, Q} for N(0,1) and N(1,1), normalised: Q left of 1/2, P right of it."""
    overlap = 2 * stats.norm.sf(0.5)
    return Splice(
        real("normal(0, 1)"),
        real("normal(1, 1)"),
        [Piece(-math.inf, 0.5, 0, 1 / overlap), Piece(0.5, math.inf, 1 / overlap, 0)],
        "capped",
    )


def test_density_cdf_and_complement_agree() -> None:
    law = capped()
    overlap = 2 * stats.norm.sf(0.5)
    for x in (-3.0, 0.2, 0.5, 0.9, 4.0):
        density = min(stats.norm.pdf(x), stats.norm.pdf(x, 1)) / overlap
        assert law.pdf(x) == pytest.approx(density, rel=1e-13)
        area, _ = integrate.quad(lambda t: float(law.pdf(t)), -30, x, points=[0.5] if x > 0.5 else None)
        assert law.cdf(x) == pytest.approx(area, rel=1e-9)
        assert law.cdf(x) + law.sf(x) == pytest.approx(1, abs=1e-15)
    assert law.cdf(-9.0) == pytest.approx(stats.norm.cdf(-10) / overlap, rel=1e-12)  # far tail, relatively
    assert law.ppf(law.cdf(0.9)) == pytest.approx(0.9, rel=1e-12)
    assert law.support == (-math.inf, math.inf)


def test_a_difference_has_no_density_where_it_would_be_negative() -> None:
    tv = 2 * stats.norm.cdf(0.5) - 1
    law = Splice(real("normal(0, 1)"), real("normal(1, 1)"), [Piece(-math.inf, 0.5, 1 / tv, -1 / tv)], "excess")
    x = np.array([-5.0, 0.0, 0.4999, 0.6, 3.0])
    truth = np.where(x < 0.5, (stats.norm.pdf(x) - stats.norm.pdf(x, 1)) / tv, 0)
    np.testing.assert_allclose(law.pdf(x), truth, rtol=1e-10)
    assert law.cdf(0.5) == pytest.approx(1, abs=1e-14)
    assert law.sf(0.7) == 0
    assert law.support == (-math.inf, 0.5)


def test_gaps_between_pieces_are_empty() -> None:
    p = real("uniform(0, 4)")
    law = Splice(p, p, [Piece(0, 1, 2, 0), Piece(3, 4, 2, 0), Piece(4, 4, 9, 9)], "two rooms")
    np.testing.assert_allclose(law.cdf([-1, 0.5, 1, 2, 3, 3.5, 5]), [0, 0.25, 0.5, 0.5, 0.5, 0.75, 1])
    np.testing.assert_allclose(law.sf([-1, 0.5, 1, 2, 3, 3.5, 5]), [1, 0.75, 0.5, 0.5, 0.5, 0.25, 0])
    assert law.pdf(2.0) == 0
    assert np.isnan(law.cdf(np.nan))


def test_a_clamped_pair_has_exactly_the_clamped_ratio() -> None:
    base = ContinuousPair(real("normal(0, 1)"), real("normal(1, 1)"))
    pair = ClampedPair(base, (-0.5, 0.5), capped(), capped())
    x = np.linspace(-5, 5, 101)
    np.testing.assert_array_equal(pair.ratio(x), np.clip(base.ratio(x), -0.5, 0.5))
    assert pair.ratio_range == (-0.5, 0.5)


def test_a_splice_survives_pickling() -> None:
    law = capped()
    assert pickle.loads(pickle.dumps(law)).cdf(0.3) == law.cdf(0.3)
