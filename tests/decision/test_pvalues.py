"""e-values of releases: their mean under P by enumeration, sets and two sides, and what has none."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest.decision.pvalue import binned_ratio as ratio
from privatest.decision.pvalue import evalue_of_pvalue as from_pvalue
from privatest.decision.pvalue import likelihood_ratio
from privatest.laws.noisy_total import Bounded

COIN = pt.design("bernoulli(0.3)", "bernoulli(0.7)", epsilon=1, n=6)


def test_the_mean_under_p_is_at_most_one() -> None:
    """Over all bins but the rarest, with probabilities from the definitions."""
    test = pt.design("bernoulli(0.3)", "bernoulli(0.7)", epsilon=3, n=3)
    score, noise, totals = test.score, test.noise, (test.null_total, test.alternative_total)
    ends = score.table[score.cells.index(np.array([0.0, 1.0]))]
    width = int(min(total.deviation for total in totals) / 24)
    edges = [test.cutoff + k * width for k in range(-140, 141)]
    mean, seen = {0.3: 0.0, 0.7: 0.0}, {0.3: 0.0, 0.7: 0.0}
    below = {
        rate: sum(
            float(stats.binom.pmf(k, 3, rate))
            * noise.cdf(np.array([float(edge) - k * int(ends[1]) - (3 - k) * int(ends[0]) for edge in edges]))
            for k in range(4)
        )
        for rate in mean
    }
    for i, low in enumerate(edges[:-1]):
        shares = {rate: float(cdf[i + 1] - cdf[i]) for rate, cdf in below.items()}
        value = ratio(*totals, test.cutoff, low + Fraction(width, 2)) if max(shares.values()) > 1e-5 else 0.0
        for rate, share in shares.items():
            mean[rate] += share * value
            seen[rate] += share
    assert seen[0.3] > 0.999
    assert 0.99 < mean[0.3] <= 1
    assert mean[0.7] > 1.3


def test_a_release_has_the_evalue_of_its_total() -> None:
    rng = np.random.default_rng(0)
    for data, side in (([0] * 6, -1), ([1] * 6, 1)):
        found = COIN.run(data, rng=rng)
        assert found.evalue is not None
        assert found.values()["evalue"] == found.evalue
        noisy = COIN.score.lattice_threshold(Fraction(found.statistic or 0.0), 6)
        assert found.evalue == pytest.approx(ratio(COIN.null_total, COIN.alternative_total, COIN.cutoff, noisy))
        assert side * math.log(found.evalue) > -3
    assert replace(found, design=None).evalue is None


def test_sets_and_two_sides_go_by_their_pvalues() -> None:
    rng = np.random.default_rng(1)
    for null, alternative in (
        ("bernoulli(p<=0.3)", "bernoulli(p>=0.7)"),
        ("bernoulli(0.5)", pt.any_of("bernoulli(0.1)", "bernoulli(0.9)")),
    ):
        found = pt.design(null, alternative, epsilon=1, n=8).run([0, 1] * 4, rng=rng)
        assert found.pvalue is not None
        assert found.evalue == pytest.approx(from_pvalue(found.pvalue))
    assert 0.98 < np.mean([from_pvalue(k / 4000) for k in range(1, 4001)]) < 1  # of a p-value on a grid


@pytest.mark.parametrize("words", [{"epsilon": 1}, {"privacy": "approx(0.5, 0.05)"}, {"privacy": "tv(0.1)"}], ids=str)
def test_the_evalue_of_a_level_is_that_of_its_totals(words: dict[str, Any]) -> None:
    """Its mean over all levels under P is 1, nearly; a level is no statistic in nats, and is not read as one."""
    test = pt.design([0.6, 0.4], [0.4, 0.6], n=30, release="decision", **words)
    assert test.released == "level"
    mean = under_q = 0.0
    for level in range(-60, 61):
        high = test.cutoff + test.noise.spacing * level
        low = high - test.noise.spacing
        found = test.evalue(float(level), 0.5)
        assert found is not None
        mean += (test.null_total.cdf(high) - test.null_total.cdf(low)) * found
        under_q += (test.alternative_total.cdf(high) - test.alternative_total.cdf(low)) * found
    assert mean == pytest.approx(1, abs=1e-6)
    assert mean <= 1 + 1e-12
    assert under_q > 2
    tossed = pt.design([0.6, 0.4], [0.4, 0.6], n=30, release="decision", alpha=0.05, **words)
    if tossed.released == "statistic":  # where that does better
        return
    assert tossed.coin is not None
    assert tossed.evalue(3.0, 0.01) == from_pvalue(0.01)  # from which cutoff it was counted is not told


class Blurred:
    """A noisy total of whose probabilities little is known: each may be off by a fifth of itself."""

    def __init__(self, total: Any) -> None:
        self._total = total
        self.support, self.n, self.noise, self.deviation = total.support, total.n, total.noise, total.deviation

    def bounded_cdf(self, x: Any) -> Bounded:
        return self._blurred(self._total.bounded_cdf(x))

    def bounded_sf(self, x: Any) -> Bounded:
        return self._blurred(self._total.bounded_sf(x))

    def _blurred(self, found: Bounded) -> Bounded:
        return Bounded(found.value, found.error + found.value / 5)


def test_what_is_not_known_of_a_probability_never_makes_an_evalue_larger() -> None:
    """P's probabilities count as the most they can be, Q's as the least: in the bins, and where doubles end."""
    near, far = COIN, pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=20_000)
    for test, places in ((near, (-3, 0, 2)), (far, (-1_500, -20))):
        totals: list[Any] = [test.null_total, test.alternative_total]
        for place in places:
            noisy = test.cutoff + place * test.score.width + Fraction(1, 2)
            exact = ratio(*totals, test.cutoff, noisy)
            for rough in ([Blurred(totals[0]), totals[1]], [totals[0], Blurred(totals[1])], list(map(Blurred, totals))):
                assert ratio(*rough, test.cutoff, noisy) < exact * 0.9  # type: ignore[arg-type]


def test_all_totals_of_a_bin_have_one_evalue() -> None:
    """The first and the last noisy total between two edges, and what rounding to a double makes of them."""
    for test in (COIN, pt.design("bernoulli(0.3)", "bernoulli(0.7)", epsilon=3, n=3)):
        totals = test.null_total, test.alternative_total
        width = max(int(min(total.deviation for total in totals) / 24), 1)
        assert width > 2
        for place in (-3, -1, 0, 2):
            low, high = test.cutoff + place * width, test.cutoff + (place + 1) * width
            step = next(k for k in (Fraction(1, 2), Fraction(1)) if (low + k - test.noise.offset).denominator == 1)
            first, last = low + step, high - step if step < 1 else high
            inside = [first, last, first - Fraction(1, 5), last + Fraction(1, 5), (first + last) / 2]
            assert len({ratio(*totals, test.cutoff, noisy) for noisy in inside}) == 1
            assert ratio(*totals, test.cutoff, first - 1) != ratio(*totals, test.cutoff, first)
            assert ratio(*totals, test.cutoff, last + 1) != ratio(*totals, test.cutoff, last)


AT_A_TOTAL = [
    {"epsilon": 1},
    {"privacy": "gdp(1)", "threshold": 0},
    {"privacy": "gdp(1)"},
    {"privacy": "tv(0.2)", "threshold": 0},
]


@pytest.mark.parametrize("words", AT_A_TOTAL, ids=str)
def test_a_total_counts_for_the_bin_that_holds_it(words: dict[str, Any]) -> None:
    """Also where cutoffs, between which the bins lie, are themselves totals: each belongs to the bin that it ends."""
    test = pt.design("bernoulli(0.3)", "bernoulli(0.7)", n=6, **words)
    totals, offset = (test.null_total, test.alternative_total), test.noise.offset
    width = max(int(min(total.deviation for total in totals) / 24), 1)
    for place in (-30, -1, 0, 1, 12):
        high = test.cutoff + place * width
        last = math.floor(high - offset) + offset
        first = math.floor(high - width - offset) + 1 + offset
        assert high - width < first <= last <= high
        expected = likelihood_ratio(*totals, high - width, high)
        for noisy in {first, last}:
            assert ratio(*totals, test.cutoff, noisy) == pytest.approx(expected, rel=1e-12)
