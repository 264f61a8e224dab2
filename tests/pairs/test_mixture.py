"""Mixtures of each kind."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privatest.errors import InvalidDistribution
from privatest.pairs import Integers, Labels, Reals, make_pair, mixture, parse


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


def test_integers_and_labels() -> None:
    law = mixture([0.5, 0.5], ["poisson(2)", [0.25, 0.75]])
    assert isinstance(law, Integers)
    assert law.pmf(1) == pytest.approx(0.5 * 2 * math.exp(-2) + 0.375)
    assert law.cdf(0) + law.sf(0) == pytest.approx(1)
    labels = mixture([0.5, 0.5], [{"a": 1.0}, {"a": 0.5, "b": 0.5}])
    assert isinstance(labels, Labels)
    assert dict(zip(labels.labels, labels.probabilities, strict=True)) == {"a": 0.75, "b": 0.25}


def test_a_contaminated_normal_has_the_total_variation_of_its_contamination() -> None:
    pair = make_pair(mixture([0.9, 0.1], ["normal(0, 1)", "uniform(100, 101)"]), "normal(0, 1)")
    assert pair.total_variation == pytest.approx(0.1, rel=1e-12)
    assert pair.kl == math.inf or pair.kl > 100
    assert pair.ratio_range[0] == pytest.approx(math.log(0.9))


def test_parts_of_weight_zero_are_dropped() -> None:
    assert mixture([1.0, 0.0], ["normal(0, 1)", "cauchy(0, 1)"]).describe() == "mixture(1, normal(0, 1))"


def test_samples_have_the_right_shares() -> None:
    drawn = mixture([0.25, 0.75], ["normal(-50, 1)", "normal(50, 1)"]).sample(np.random.default_rng(5), 4000)
    assert abs(np.mean(drawn > 0) - 0.75) < 0.05


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
