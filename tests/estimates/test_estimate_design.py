"""Estimates, end to end: families, two steps, what is refused, documents, ledger."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest import engines
from privatest.errors import InvalidInput
from privatest.privacy import Notion
from privatest.privacy.canonical_noise import counts_guarantee
from privatest.privacy.composition import adds_up_within

RNG = np.random.default_rng

FAMILIES: dict[str, tuple[Any, float, Any]] = {
    "bernoulli(?)": (None, 0.3, lambda r, n: r.binomial(1, 0.3, n)),
    "binomial(5, ?)": (None, 0.4, lambda r, n: r.binomial(5, 0.4, n)),
    "poisson(?)": ((0, 20), 4.0, lambda r, n: r.poisson(4, n)),
    "geometric(?)": ((0.05, 1), 0.4, lambda r, n: r.geometric(0.4, n)),
    "exponential(rate=?)": ((0.1, 10), 2.0, lambda r, n: r.exponential(0.5, n)),
    "normal(mean=?, sd=1)": ((-3, 3), 0.5, lambda r, n: r.normal(0.5, 1, n)),
    "normal(0, sd=?)": ((0.5, 3), 1.5, lambda r, n: r.normal(0, 1.5, n)),
    "laplace(?, 1)": ((-3, 3), 1.0, lambda r, n: r.laplace(1, 1, n)),
    "laplace(0, ?)": ((0.2, 3), 0.7, lambda r, n: r.laplace(0, 0.7, n)),
    "gamma(2, ?)": ((0.5, 4), 1.0, lambda r, n: r.gamma(2, 1, n)),
    "lognormal(?, 1)": ((-2, 2), 0.3, lambda r, n: r.lognormal(0.3, 1, n)),
    "share_above(1, ?)": (None, 0.31, lambda r, n: r.normal(0.5, 1, n)),
    "normal(mean=?, sd in [0.8, 1.2])": ((-3, 3), 0.5, lambda r, n: r.normal(0.5, 0.9, n)),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_finds_its_parameter(family: str) -> None:
    between, truth, draw = FAMILIES[family]
    # With a seed: the truth lies outside in one run of 1,000, and there are thirteen families.
    release = pt.estimate(draw(RNG(3), 400), family, between=between, epsilon=1, confidence=0.999, rng=RNG(4))
    assert release.simulated
    assert release.interval[0] < truth < release.interval[1]
    assert release.interval[0] <= release.estimate <= release.interval[1]
    assert release.width < 0.6 * (release.design.between[1] - release.design.between[0])


def test_a_wide_range_is_looked_at_in_two_steps(show: Any) -> None:
    """Its width is that of a narrow range, it costs one epsilon, and its intervals hold the truth as often as said."""
    wide = pt.design_estimate("normal(mean=?, sd=1)", between=(-1e5, 1e5), epsilon=1, n=400)
    narrow = pt.design_estimate("normal(mean=?, sd=1)", between=(1230, 1240), epsilon=1, n=400)
    assert wide.location is not None
    assert wide.price == Fraction(1)
    first = counts_guarantee(wide.location.noise, wide.around)
    assert sum(part.loss for part in (*first, wide.second)) == 1  # type: ignore[union-attr]
    assert wide.expected_width(1234.0) < 1.1 * narrow.expected_width(1234.0)
    rng, held, runs = RNG(6), 0, 3
    assert min(wide.coverage(1234 + part) for part in (0.0, 0.3, 2.1)) >= 0.95 - 1e-9
    for _ in range(runs):
        mean = rng.uniform(-9e4, 9e4)
        release = wide.run(rng.normal(mean, 1, 400), rng=rng)
        held += release.interval[0] <= mean <= release.interval[1]
        assert release.epsilon == 1
        assert release.confidence == 0.95
    show(f"two steps: {held} of {runs} intervals hold the mean")
    assert held >= 1  # none has a probability of 1e-4, and the seed is given
    assert pt.results.EstimateDesign.from_json(wide.to_json()) == wide


def test_the_first_step_finds_the_right_bin_as_often_as_bounded() -> None:
    design = pt.design_estimate("normal(mean=?, sd=1)", between=(-200, 200), epsilon=1, n=400)
    location = design.location
    assert location is not None
    rng, wrong, runs = RNG(8), 0, 300
    from privatest.engines import open_source
    from privatest.privacy import seeded_source

    for _ in range(runs):
        counts = open_source(rng.normal(37.0, 1, 400)).histogram(location.cells)
        start, place = location.chosen(counts, seeded_source(rng))
        low = float(location.begins(start, np.array([place]))[0])
        wrong += not low - 2 <= 37.0 <= low + location.length + 2
    far = location.misses(design.unknown, 37.0, 400, 0.0)  # with a second step that never misses
    assert wrong / runs <= far + 3 * (far * (1 - far) / runs) ** 0.5 + 1e-9


@pytest.mark.parametrize("family", ["bernoulli(?)", "normal(mean=?, sd=1)"])
def test_a_number_of_records_that_is_hidden(family: str) -> None:
    """Whatever the number is, the interval holds the parameter; it is not the number expected that is used."""
    between, truth, draw = FAMILIES[family]
    design = pt.design_estimate(family, between=between, epsilon=2, n=200, neighbours="add-remove")
    assert design.coverage(truth) >= 0.95 - 1e-9
    rng = RNG(12)
    for n in (150, 200, 320) if family == "bernoulli(?)" else (320,):  # every number that is left takes its time
        release = design.run(draw(rng, n), rng=rng)
        assert release.n == 200
        low, high = release.interval
        assert low - 0.1 < truth < high + 0.1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"family": "normal(mean=?, sd=1)", "between": (3, -3)}, "lower end first"),
        ({"family": "normal(mean=?, sd=1)"}, "between is missing"),
        ({"family": "uniform(0, ?)", "between": (1, 3)}, "finite range"),
        ({"family": "bernoulli(?)", "confidence": 1.0}, "confidence"),
        ({"family": "bernoulli(?)", "confidence": -1}, "confidence"),
        ({"family": "bernoulli(?)", "epsilon": 0}, "epsilon"),
        ({"family": "bernoulli(?)", "n": 0}, "n=0"),
        ({"family": "bernoulli(?)", "near": 2}, "near=2"),
        ({"family": "bernoulli(?)", "neighbours": "both"}, "neighbours"),
        ({"family": "bernoulli(0.5)"}, "question mark"),
        ({"family": "poisson(?)", "between": (-1, 3)}, "greater than 0"),
    ],
)
def test_what_is_wrong_is_said(words: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"epsilon": 1, "n": 50, **words}
    with pytest.raises((InvalidInput, pt.errors.InvalidDistribution), match=message):
        pt.design_estimate(given.pop("family"), **given)


def test_a_score_that_does_not_move_one_way_is_refused() -> None:
    """A score that is high at both ends and low between: its sum cannot tell where the mean is."""
    good = pt.design_estimate("normal(mean=?, sd=1)", between=(-3, 3), epsilon=1, n=50)
    assert good.score is not None
    table = np.abs(good.score.table - good.score.table[:-1].max() // 2) * 2
    bent = replace(good.inversion, score=replace(good.score, table=table))
    with pytest.raises(InvalidInput, match=r"moves one way.* Use poisson"):
        bent.check_monotone("poisson")
    good.inversion.check_monotone("poisson")


@pytest.mark.parametrize("family", ["normal(mean=?, sd=-1)", "laplace(loc=?, scale=0)", "nosuch(?)"])
def test_a_family_that_is_wrong_is_not_told_as_a_wrong_range(family: str) -> None:
    with pytest.raises(pt.errors.InvalidDistribution) as told:
        pt.estimate([0, 1], family, between=(0, 3), epsilon=1)
    assert "between" not in str(told.value)
    with pytest.raises(InvalidInput, match="neighbours='x' must be one of"):
        pt.estimate([0, 1], "bernoulli(?)", epsilon=1, neighbours="x")


def test_a_width_says_how_many_records(show: Any) -> None:
    design = pt.design_estimate("bernoulli(?)", epsilon=1, n=100)
    for width in (0.2, 0.9):
        n = design.sample_size(width=width, at=0.3)
        assert design.at_n(n).expected_width(0.3) <= width
        assert n == 1 or design.at_n(n - 1).expected_width(0.3) > width
        show(f"{n} records for a width of {width}")
    with pytest.raises(InvalidInput, match=r"width=1e-09 is shorter than 10\^12 records allow"):
        design.sample_size(width=1e-9, at=0.3)


NOTIONS = ["approx(1, 1e-6)", "approx(0.5, 0.05)", "tv(0.2)", "gdp(1)", "zcdp(0.5)", "renyi(2, 0.5)", "kl(0.3)"]
each_notion = pytest.mark.parametrize("text", NOTIONS)


@each_notion
def test_coverage_under_every_notion_by_enumeration(text: str) -> None:
    """The totals that hold a rate, summed over all counts and the noise; and a release holds it as they do."""
    design = pt.design_estimate("bernoulli(?)", privacy=text, n=15, confidence=0.9)
    assert design.privacy == pt.notions.parse(text)
    assert design.score is not None
    assert design.noise is not None
    rate, (none, one) = 0.35, (engines.open_for(engines.Need(rows=1), [x]).total(design.score) for x in (0, 1))
    least, most = design.inversion.accepted(rate, 0.9)
    covered = 0.0
    for count, mass in enumerate(stats.binom.pmf(np.arange(16), 15, rate).tolist()):
        shifted = [float(end) - (count * one + (15 - count) * none) for end in (least, most)]
        covered += mass * float(design.noise.cdf(shifted[1]) - design.noise.cdf(shifted[0]))
    assert design.coverage(rate) == pytest.approx(covered, abs=1e-12)
    assert covered >= 0.9
    lattice = design.noise.offset
    for noisy in (math.floor(end) + lattice + away for end in (least, most) for away in (-2, 2)):
        low, high = design.release(noisy).interval
        assert (low <= rate <= high) == (least < noisy <= most)
    last = design.release(10**7 + lattice)  # beyond all that bounded noise can make: p-values are 0
    assert last.beyond
    assert last.interval[0] == last.interval[1]


@pytest.mark.parametrize("text", ["approx(0.5, 0.05)", "tv(0.2)", "gdp(1)", "kl(0.3)"])
def test_two_steps_under_every_notion(text: str) -> None:
    """Both steps are paid from one budget, divided as the notion adds up; one that costs more is refused."""
    whole = pt.notions.parse(text)
    design = pt.design_estimate("normal(mean=?, sd=1)", between=(-500, 500), privacy=whole, n=900)
    assert design.location is not None
    assert isinstance(design.second, Notion)
    assert adds_up_within([*counts_guarantee(design.location.noise, design.around), design.second], whole)
    with pytest.raises(InvalidInput, match="which together is not privacy="):
        replace(design, second=whole)
    assert pt.results.EstimateDesign.from_json(design.to_json()) == design
    assert min(design.coverage(3 + place / 97) for place in range(97)) >= 0.95 - 1e-6
    release = design.run(RNG(3).normal(77.25, 1, 900), rng=RNG(4))
    assert release.interval[0] < 77.25 < release.interval[1] < release.interval[0] + 1
    assert (release.privacy, release.epsilon) == (whole.text, whole.epsilon)


def test_a_second_step_that_is_less_sure_than_both_is_refused() -> None:
    document = pt.design_estimate("normal(mean=?, sd=1)", between=(-1e4, 1e4), epsilon=1, n=1000).to_dict()
    assert pt.results.EstimateDesign.from_dict(document).to_dict() == document
    for level in (0.5, 1.0, None):
        with pytest.raises(pt.errors.PrivatestError):
            pt.results.EstimateDesign.from_dict({**document, "level": level})


@pytest.mark.parametrize(
    ("family", "missing"),
    [("normal(mean=?)", "sd"), ("gamma(?)", "scale"), ("normal(sd=?)", "mean"), ("student_t(df=5, loc=?)", "scale")],
)
def test_a_parameter_that_nobody_gave_is_refused(family: str, missing: str) -> None:
    with pytest.raises(InvalidInput, match=rf"needs its {missing}: .*{missing}=2.*{missing} in \[1, 4\]"):
        pt.design_estimate(family, between=(1, 3), epsilon=1, n=50)


@pytest.mark.parametrize(
    ("family", "between", "told"),
    [
        ("normal(?, 2)", (-9, 9), "mean of normal(mean=?, sd=2)"),
        ("normal(mean=?, sd in [1, 3])", (-9, 9), "mean of normal(mean=?, sd in [1, 3])"),
        ("lognormal(mean=?, sd=1)", (-9, 9), "mean (the mean of log(x), not of x) of lognormal(mean=?, sd=1)"),
        ("laplace(loc=?, scale=1)", (-9, 9), "the median if the records come from this law"),
        ("exponential(rate=?)", (0.1, 9), "rate (1 over the mean) of exponential(rate=?)"),
    ],
)
def test_an_estimate_names_the_whole_model_and_its_condition(
    family: str, between: tuple[float, float], told: str
) -> None:
    rng = np.random.default_rng(5)
    found = pt.estimate(rng.exponential(1, 300), family, between=between, epsilon=1, rng=rng)
    assert told in found.sentence
    assert "if the records come from this family" in found.sentence
    assert "if the records come from this family" in str(found)
    again = type(found).from_dict(found.to_dict())
    assert again.sentence == found.sentence
    # The shape is another question; the sentence names it, ready to be asked, where one member is to be asked about.
    named = re.search(r"goodness_of_fit of '(.*)' tells", found.sentence)
    assert (named is None) == (" in [" in family)
    if named is not None:
        assert pt.design_fit(named[1], distance=0.3, epsilon=1, n=1000).alpha < 0.2
