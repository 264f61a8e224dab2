"""Mixtures of each kind.

Piecewise combinations of two densities, against scipy's quadrature of the formula.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privatest.errors import InvalidDistribution
from privatest.hypotheses import ContinuousPair, Reals, as_distribution, make_pair, mixture, parse
from privatest.hypotheses.distribution import Splice, SplicePiece
from privatest.hypotheses.pair import ClampedPair


def test_reals() -> None:
    law = mixture([0.3, 0.7], [stats.norm(0, 1), "normal(2, 1)"])
    assert isinstance(law, Reals)
    x = np.array([-40.0, -1.0, 0.5, 3.0, 41.0])
    first, second = stats.norm(0, 1), stats.norm(2, 1)
    np.testing.assert_allclose(
        law.logpdf(x),
        np.logaddexp(math.log(0.3) + first.logpdf(x), math.log(0.7) + second.logpdf(x)),
        rtol=1e-13,
    )
    np.testing.assert_allclose(law.cdf(x), 0.3 * first.cdf(x) + 0.7 * second.cdf(x), rtol=1e-13)
    np.testing.assert_allclose(law.sf(x), 0.3 * first.sf(x) + 0.7 * second.sf(x), rtol=1e-13)
    np.testing.assert_allclose(law.cdf(law.ppf([0.1, 0.5, 0.9])), [0.1, 0.5, 0.9], rtol=1e-12)
    assert law.support == (-math.inf, math.inf)
    assert law.spec is not None
    assert parse(law.spec).spec == law.spec


def test_a_contaminated_normal_has_the_total_variation_of_its_contamination() -> None:
    pair = make_pair(mixture([0.9, 0.1], ["normal(0, 1)", "uniform(100, 101)"]), "normal(0, 1)")
    assert pair.total_variation == pytest.approx(0.1, rel=1e-12)
    assert pair.kl == math.inf or pair.kl > 100
    assert pair.ratio_range[0] == pytest.approx(math.log(0.9))


@pytest.mark.parametrize(
    ("weights", "parts", "says"),
    [
        ([0.5, 0.6], ["normal(0, 1)", "normal(1, 1)"], "weights has probabilities that sum to more than 1"),
        ([0.5, 0.5], ["normal(0, 1)"], "2 weights for 1 parts"),
        ([1.0], "normal(0, 1)", None),
        ([0.5, 0.5], "normal(0, 1)", "2 weights for 1 parts"),
        ([0.5, 0.5], ["normal(0, 1)", "poisson(1)"], "continuous with discrete"),
        ([0.5, 0.5], ["poisson(1)", {"a": 1.0}], "labels must be integers"),
        ([0.5, 0.5], ["normal(0, 1)", "norml(1, 1)"], "part 2"),
        ([], [], "empty"),
    ],
)
def test_bad_mixtures(weights: Any, parts: Any, says: str | None) -> None:
    if says is None:
        assert mixture(weights, parts).kind == "reals"
        return
    with pytest.raises(InvalidDistribution) as caught:
        mixture(weights, parts)
    assert says in str(caught.value)


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
        [SplicePiece(-math.inf, 0.5, 0, 1 / overlap), SplicePiece(0.5, math.inf, 1 / overlap, 0)],
        "capped",
    )


def test_a_difference_has_no_density_where_it_would_be_negative() -> None:
    tv = 2 * stats.norm.cdf(0.5) - 1
    law = Splice(real("normal(0, 1)"), real("normal(1, 1)"), [SplicePiece(-math.inf, 0.5, 1 / tv, -1 / tv)], "excess")
    x = np.array([-5.0, 0.0, 0.4999, 0.6, 3.0])
    truth = np.where(x < 0.5, (stats.norm.pdf(x) - stats.norm.pdf(x, 1)) / tv, 0)
    np.testing.assert_allclose(law.pdf(x), truth, rtol=1e-10)
    assert law.cdf(0.5) == pytest.approx(1, abs=1e-14)
    assert law.sf(0.7) == 0
    assert law.support == (-math.inf, 0.5)


def test_a_clamped_pair_has_exactly_the_clamped_ratio() -> None:
    base = ContinuousPair(real("normal(0, 1)"), real("normal(1, 1)"))
    pair = ClampedPair(base, (-0.5, 0.5), capped(), capped())
    x = np.linspace(-5, 5, 101)
    np.testing.assert_array_equal(pair.ratio(x), np.clip(base.ratio(x), -0.5, 0.5))
    assert pair.ratio_range == (-0.5, 0.5)
