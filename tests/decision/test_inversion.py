"""Intervals: exact coverage by enumeration, ends that are certified, lengths by two methods."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest import engines
from privatest.decision.interval_inversion import Inversion
from privatest.estimates.estimate import EstimateDesign
from privatest.privacy import Gaussian, Noise, Tulap, Uniform


def lattice(found: Inversion, value: float, share: float = 1e-9) -> list[Fraction]:
    """Noisy totals between which all but so much of the law lies."""
    total = found.total(value)
    low = high = found.noise.offset
    while total.cdf(low) > share:
        low -= 64
    while total.sf(high) > share:
        high += 64
    return [low + i for i in range(int(high - low) + 1)]


def coarse(family: str, n: int, epsilon: float, units: int, **words: Any) -> EstimateDesign:
    """An estimate on a lattice of few steps, so that every noisy total can be gone through."""
    from privatest.estimates.tuned_score import success_score

    made = pt.design_estimate(family, epsilon=epsilon, n=n, **words)
    score = success_score(made.unknown, units)
    return replace(made, score=score, noise=Tulap(made.notion.loss, units))


@pytest.mark.parametrize(("n", "epsilon", "rate"), [(12, 1, 0.3), (20, 2, 0.1)])
def test_coverage_and_length_by_going_through_all_totals(n: int, epsilon: float, rate: float) -> None:
    design = coarse("bernoulli(?)", n, epsilon, 5)
    found, total = design.inversion, design.inversion.total(rate)
    covered = length = 0.0
    for noisy in lattice(found, rate, 1e-6):
        mass = total.cdf(noisy) - total.cdf(noisy - 1)
        low, high = found.interval(noisy, 0.95)
        covered += mass * (low <= rate <= high)
        length += mass * (high - low)
    assert covered == pytest.approx(design.coverage(rate), abs=3e-6)
    assert design.coverage(rate) >= 0.95 - 1e-9
    assert length == pytest.approx(
        design.expected_width(rate), rel=0.02
    )  # an interpolation, on a lattice of five steps


@pytest.mark.parametrize(
    ("family", "between", "values"),
    [
        ("bernoulli(?)", None, (0.0, 0.01, 0.5, 1.0)),
        ("poisson(?)", (0, 10), (0.0, 0.5, 4.0, 10.0)),
        ("normal(mean=?, sd=1)", (-3, 3), (-3.0, 0.0, 2.5)),
        ("normal(0, sd=?)", (0.5, 2), (0.5, 1.0, 2.0)),
        ("exponential(rate=?)", (0.1, 10), (0.1, 1.0, 10.0)),
        ("laplace(?, 1)", (-3, 3), (0.0, 3.0)),
        ("categorical(yes=?)", None, (0.1, 0.9)),
    ],
)
def test_coverage_is_the_confidence_whatever_the_value(family: str, between: Any, values: tuple[float, ...]) -> None:
    design = pt.design_estimate(family, between=between, epsilon=1, n=40)
    for value in values:  # an end of the range is missed to one side only
        assert 0.95 - 1e-9 <= design.coverage(value) <= (0.98 if value in design.between else 0.955)


def test_other_parameters_that_are_known_roughly_widen_it() -> None:
    """Under every member of the box the true value is left out by either tail with probability 2.5% at most."""
    exact = pt.design_estimate("normal(mean=?, sd=1)", between=(-3, 3), epsilon=1, n=50)
    rough = pt.design_estimate("normal(mean=?, sd in [0.8, 1.2])", between=(-3, 3), epsilon=1, n=50)
    assert rough.expected_width(0.2) > 1.05 * exact.expected_width(0.2)
    least, most = rough.inversion.accepted(0.2, 0.95)
    for sd in (0.8, 1.0, 1.2):
        member = pt.design_estimate(f"normal(mean=?, sd={sd})", between=(-3, 3), epsilon=1, n=50)
        total = replace(member.inversion, score=rough.score, noise=rough.noise).total(0.2)
        assert total.cdf(least) <= 0.025 + 1e-9
        assert total.sf(most) <= 0.025 + 1e-9


@pytest.mark.parametrize(
    ("null", "alternative"), [("bernoulli(0.2)", "bernoulli(0.6)"), ("normal(0, 1)", "normal(1, 1)")]
)
def test_a_test_s_release_has_an_interval(null: str, alternative: str) -> None:
    """That of the same score, noise and noisy total; a confidence more is a longer one."""
    test = pt.design(null, alternative, epsilon=1, n=80)
    rng = np.random.default_rng(7)
    data = rng.binomial(1, 0.4, 80) if "bernoulli" in null else rng.normal(0.4, 1, 80)
    release = test.run(data, rng=rng)
    narrow, wide = (test.interval(release, confidence=level) for level in (0.5, 0.99))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    assert wide[0] < 0.4 < wide[1]
    again = pt.results.Release.from_dict(release.to_dict())
    assert test.interval(again, confidence=0.5) == narrow
    inside = test.interval(release, between=(0.1, 0.7), confidence=0.99)
    assert inside == pytest.approx((max(wide[0], 0.1), min(wide[1], 0.7)), abs=1e-6)


def test_releases_without_an_interval_are_refused() -> None:
    test = pt.design("normal(0, 1)", "normal(1, 2)", epsilon=1, n=20)
    release = test.run(np.zeros(20))
    with pytest.raises(pt.errors.InvalidInput, match="do not differ by one parameter"):
        test.interval(release)
    simple = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=20)
    with pytest.raises(pt.errors.InvalidInput, match="release of this test"):
        simple.interval("nothing")  # type: ignore[arg-type]
    with pytest.raises(pt.errors.InvalidInput, match="confidence"):
        simple.interval(simple.run(np.zeros(20)), confidence=1.5)
    hidden = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=20, neighbours="add-remove")
    with pytest.raises(pt.errors.InvalidInput, match="number of records is public"):
        hidden.interval(hidden.run(np.zeros(20)))


@pytest.mark.parametrize("text", ["approx(0.5, 0.05)", "tv(0.2)", "gdp(1)", "zcdp(0.5)", "renyi(2, 0.5)", "kl(0.3)"])
def test_a_release_under_every_notion_has_an_interval(text: str) -> None:
    """At its ends one tail of the noisy total, by enumeration of all counts, is what the interval may miss by."""
    test = pt.design("bernoulli(0.4)", "bernoulli(0.6)", privacy=text, n=30)
    release = test.run([0, 1, 1] * 10, rng=np.random.default_rng(1))
    low, high = test.interval(release, confidence=0.9)
    assert release.statistic is not None
    value = float(test.score.lattice_threshold(Fraction(release.statistic), test.n))

    def tails(rate: float) -> tuple[float, float]:
        up_to = 0.0
        for count, mass in enumerate(stats.binom.pmf(np.arange(31), 30, rate).tolist()):
            one, other = (engines.open_for(engines.Need(rows=1), [x]).total(test.score) for x in (1, 0))
            up_to += mass * float(test.noise.cdf(value - count * one - (30 - count) * other))
        return up_to, 1 - up_to

    assert low < 2 / 3 < high or release.decision == "null"
    for end in (low, high):
        assert min(tails(end)) == pytest.approx(0.05, abs=2e-3)


@pytest.mark.parametrize(("between", "rate"), [(None, 0.0), (None, 1.0), ((0.2, 0.6), 0.2), ((0.2, 0.6), 0.6)])
def test_an_end_of_the_range_is_held_by_what_lies_beyond_it(between: Any, rate: float) -> None:
    """What fits no value gives the nearest end, so that a true value there is missed to one side only."""
    design = pt.design_estimate("bernoulli(?)", between=between, epsilon=1, n=4)
    assert design.score is not None
    assert design.noise is not None
    far = 4 * max(abs(design.score.low), abs(design.score.high)) + round(design.noise.reach(30))
    ends = [design.release(side * far + design.noise.offset).interval for side in (-1, 1)]
    assert sorted(ends) == sorted((end, end) for end in design.between)
    totals = design.inversion.total(rate)
    (least, most), other = design.inversion.accepted(rate, 0.95), ends.index((rate, rate)) == 0
    missed = totals.sf(most) if other else totals.cdf(least)
    assert design.coverage(rate) == pytest.approx(1 - missed, abs=1e-9)
    assert 0.975 <= design.coverage(rate) < 0.976


def hidden(epsilon: float, n: int) -> Inversion:
    """From a noisy total and a noisy number of records."""
    return pt.design_estimate("bernoulli(?)", epsilon=epsilon, n=n, neighbours="add-remove").inversion


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
@pytest.mark.parametrize(
    "noise", [Tulap(Fraction(1, 3), 1), Tulap(Fraction(1, 50), 1), Gaussian(Fraction(1, 4), 1), Uniform(41)], ids=str
)
def test_an_interval_pays_for_its_number_of_records_too(noise: Noise, confidence: float) -> None:
    """What both sides miss, and a noisy number that is further off than is looked at, adds up to what is told."""
    found = replace(hidden(1, 100), count_noise=noise)
    half, counting = found._tails(confidence)
    away = found.off_by(counting)
    reach = int(noise.reach(60)) + 50
    beyond = np.concatenate([np.arange(-reach, -away), np.arange(away + 1, reach + 1)])
    missed = float(np.sum(noise.pmf(beyond))) + 1e-20
    assert missed <= counting * (1 + 1e-9)
    assert 2 * half + missed <= (1 - confidence) * (1 + 1e-9)
    number = Fraction(500)
    numbers = found._numbers(number, counting, half)
    assert {number - away, number + away} == {numbers[0].n, numbers[-1].n + numbers[-1].more}


@pytest.mark.parametrize("value", [0.1, 0.45, 0.5, 0.9])
@pytest.mark.parametrize("more", [1, 7, 300])
def test_numbers_bounded_together_have_no_smaller_tail_than_each(value: float, more: int) -> None:
    found = hidden(0.2, 200)
    group = replace(found, n=150, count_noise=None, more=more, chance=2.5e-6)
    spread = found.noise.reach(3)
    for n in sorted({150, 151, 150 + more // 2, 150 + more}):
        one = replace(found, n=n, count_noise=None)
        mean = n * float(one.total(value).law @ one.total(value).support)
        for noisy in (Fraction(round(mean + side * spread)) + found.noise.offset for side in (-1, 1)):
            assert group.at_most(value, value, noisy) >= one.at_most(value, value, noisy)
            assert group.at_least(value, value, noisy) >= one.at_least(value, value, noisy)
