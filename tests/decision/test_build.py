"""Exact type I errors by a public coin, and what a test that releases its decision can and cannot do."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import privatest as pt
from privatest.errors import InvalidInput
from privatest.laws import NoisyTotal

P, Q = [0.0, 0.5, 0.5], [0.1, 0.6, 0.3]


@cache
def exact(alpha: float = 0.05) -> pt.results.PrivateTest:
    return pt.design(P, Q, epsilon=1, n=20, alpha=alpha, release="decision")


@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_alpha_is_exact(alpha: float) -> None:
    test = exact(alpha)
    assert test.coin is not None
    assert alpha - 1e-13 <= test.alpha <= alpha
    law = NoisyTotal(test.score.support, test.score.null_law, test.n, test.noise)
    share = float(test.coin.share)
    assert test.alpha == pytest.approx(
        (1 - share) * law.cdf(test.cutoff) + share * law.cdf(test.coin.cutoff), abs=1e-15
    )


def test_no_other_coin_between_two_cutoffs_does_better() -> None:
    test, alpha = exact(), 0.05
    null, alternative = test.null_total, test.alternative_total
    first = math.floor(min(test.cutoff, test.coin.cutoff)) - 2 * test.noise.spacing  # type: ignore[union-attr]
    points = [(null.cdf(c), alternative.cdf(c)) for c in (first + Fraction(1, 2) + k for k in range(0, 320, 4))]
    lows = [point for point in points if point[0] <= alpha]
    highs = [point for point in points if point[0] > alpha]
    best = max(b + (d - b) * (alpha - a) / (c - a) for a, b in lows for c, d in highs)
    assert 1 - test.beta >= best - 1e-12


def test_the_release_statistic_is_a_level_with_its_own_pvalues() -> None:
    test = exact()
    w, cutoff = test.noise.spacing, test.cutoff
    for level in (-2, 0, 1, 3):
        found = test.release(test.draw_of(Fraction(math.floor(cutoff + w * level))))
        assert found.statistic == level
        assert found.released == "level"
        assert found.decision == ("null" if level >= 1 else "alternative")
        assert found.pvalue == pytest.approx(test.null_total.cdf(cutoff + w * level), rel=1e-12)
        assert found.pvalue_alternative == pytest.approx(test.alternative_total.sf(cutoff + w * (level - 1)), rel=1e-12)


def test_the_coin_is_drawn_from_the_same_source() -> None:
    test = exact()
    assert test.coin is not None
    rng = np.random.default_rng(3)
    from privatest.privacy import seeded_source

    tossed = [test.coin.toss(seeded_source(rng)) for _ in range(2000)]
    assert abs(sum(tossed) / 2000 - float(test.coin.share)) < 0.05


def test_what_a_decision_cannot_have_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="test='scllr' does not go with release='decision'"):
        pt.design(P, Q, epsilon=1, n=5, test="scllr", release="decision")
    with pytest.raises(InvalidInput, match="neighbours='add-remove' does not go with release='decision'"):
        pt.design(P, Q, epsilon=1, n=5, neighbours="add-remove", release="decision")
    with pytest.raises(InvalidInput, match=r"release='desision' must be one of .* Did you mean 'decision'"):
        pt.design(P, Q, epsilon=1, n=5, release="desision")
    with pytest.raises(InvalidInput, match="release='decision' does not apply to a two-sided test"):
        pt.design("normal(0, 1)", pt.any_of("normal(1, 1)", "normal(-1, 1)"), epsilon=1, n=9, release="decision")
    with pytest.raises(InvalidInput, match="test='stair' must be one of"):
        pt.design(P, Q, epsilon=1, n=5, test="stair")
    with pytest.raises(InvalidInput, match="releases its statistic has an interval"):
        exact().interval(exact().run([1] * 20, rng=np.random.default_rng(0)))
