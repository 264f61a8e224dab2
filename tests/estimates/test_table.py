"""A noisy table: laws of weighted sums two ways, answers that hold for every law, and what is refused."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privatest as pt
from privatest.errors import InvalidInput
from privatest.estimates.published_table import DiscreteGaussian
from privatest.estimates.table_family import TableFamily, read_family
from privatest.estimates.table_test import telling_edges
from privatest.hypotheses import as_distribution
from privatest.laws.weighted_counts import BoundedSum, Statistic, weighted
from privatest.privacy import Noise, seeded_source
from privatest.privacy.canonical_noise import counts_noise
from privatest.privacy.notion import Neighbourhood
from privatest.results import Table
from privatest.scores import EdgeCells
from privatest.scores.score_law import cell_law

NOTIONS = [pt.pure(1), pt.zcdp(0.5), pt.approx(1, 1e-6), pt.tv(0.2), pt.gdp(1)]


def noise_of(notion: Any) -> Noise:
    return counts_noise(notion, Neighbourhood())


def masses_of(noise: Noise, reach: int) -> dict[Fraction, float]:
    values = [Fraction(k, 2) for k in range(-2 * reach, 2 * reach + 1)]
    return {value: float(noise.pmf(float(value))) for value in values if noise.pmf(float(value)) > 0}


# Laws, two ways -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_the_noise_of_a_weighted_sum_by_adding_up_all_values(notion: Any) -> None:
    noise, weights = noise_of(notion), (2, -1)
    found, one = weighted(noise, weights), masses_of(noise, 30)
    law: dict[Fraction, float] = {}
    for (a, p), (b, q) in itertools.product(one.items(), repeat=2):
        value = weights[0] * a + weights[1] * b
        law[value] = law.get(value, 0.0) + p * q
    for value in (-9, -2.5, -1, 0, 1.5, 4, 12):
        assert float(found.cdf(value)) == pytest.approx(sum(p for v, p in law.items() if v <= value), abs=1e-6)
    assert found.variance == pytest.approx(sum(float(v) ** 2 * p for v, p in law.items()), rel=1e-3)
    square = sum(max(float(v) - 1.25, 0.0) ** 2 * p for v, p in law.items())
    assert found.excess_square(np.array([1.25]))[0] == pytest.approx(square, rel=1e-3)


def test_a_far_tail_of_weighted_noise_is_bounded_from_above() -> None:
    noise = noise_of(pt.pure(1))
    single = weighted(noise, [1])
    for away in (20, 60, 150):
        assert float(noise.sf(away)) <= float(single.sf(away)) * (1 + 1e-9)


@pytest.mark.parametrize("known", [True, False])
def test_a_tail_of_a_table_by_adding_up_all_counts(known: bool) -> None:
    noise, law, n = noise_of(pt.pure(2)), np.array([0.2, 0.5, 0.3]), 4
    weights, doubled = np.array([3, -1, 0, 0]), 10
    statistic = Statistic(weights, noise, n if known else None, doubled)
    one, below, just = masses_of(noise, 22), 0.0, 0.0
    for counts in itertools.product(range(n + 1), repeat=3):
        if sum(counts) == n:
            chance = stats.multinomial.pmf(counts, n, law)
            total = 3 * counts[0] - counts[1]
            for a, p in one.items():
                below += chance * p * sum(q for b, q in one.items() if total + 3 * a - b <= Fraction(doubled, 2))
                just += chance * p * one.get(total + 3 * a - Fraction(doubled, 2), 0.0)
    assert just > 0.01
    for side, tail in ((0, below), (1, 1 - below + just)):  # both with the sum itself
        assert statistic.tail(law, [n], side) == pytest.approx(tail, abs=1e-7)
        assert statistic.rough_tail(law, [n], side) == pytest.approx(tail, abs=0.04)


@pytest.mark.parametrize("seed", range(6))
def test_no_law_exceeds_the_bound_for_its_mean_and_variance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, law, n = np.sort(rng.random(4)), rng.dirichlet(np.ones(4) / 2), 6
    noise = weighted(noise_of(pt.pure(1)), [1])
    mean = float(law @ values)
    variance = float(law @ (values - mean) ** 2)
    bound = BoundedSum(n, noise, 5.0)
    for x in (n * mean + 1.0, n * mean + 2.5):
        truth = 0.0
        for counts in itertools.product(range(n + 1), repeat=4):
            if sum(counts) == n:
                chance = stats.multinomial.pmf(counts, n, law)
                truth += chance * float(noise.sf(5.0 * (x - float(np.dot(counts, values))) - 1e-9))
        assert truth <= bound.at_least(x, mean, variance) * (1 + 1e-9)
        assert truth <= bound.at_least(x, mean, 2 * variance) * (1 + 1e-9)


@pytest.mark.parametrize("fine", [2, 3, 7])
@pytest.mark.parametrize("known", [True, False])
def test_the_bound_of_a_table_holds_whatever_its_weights_were_rounded_to(known: bool, fine: int) -> None:
    """Records that lie where rounding moves the weights most; the exact tail of the sum is that of the rounded ones."""
    n, rng = 400, np.random.default_rng(fine)
    noise, unit = noise_of(pt.pure(8)), np.sort(np.append(rng.random(3), [0.0, 1.0]))
    plain = Table(EdgeCells(tuple(range(4))), (0,) * 6, noise, n if known else None, epsilon=8.0)
    missed = 0
    for cell, upper in itertools.product(range(1, 4), (False, True)):
        law = np.full(5, 0.01)
        law[cell] += 1 - law.sum()
        mean = float(law @ unit)
        variance = float(law @ (unit - mean) ** 2)
        weights = plain.statistic(unit, fine).weights
        middle = n * float(law @ weights[:-1])
        for away in (-3, -1, 0, 1, 3):
            seen = replace(plain.statistic(unit, fine), doubled=round(2 * middle + away * 2 * math.sqrt(n) * fine / 9))
            found = seen.bound(unit, mean, variance, [n], upper=upper)
            exact = seen.tail(law, [n], int(upper))
            assert exact <= found * (1 + 1e-9)
            rounded = np.ptp(weights[:-1] - np.ptp(weights[:-1]) * unit)
            missed += rounded > 0.2
    assert missed  # some weights were rounded by much


# Answers --------------------------------------------------------------------------------------------------------------


def table_of(data: Any, seed: int = 0, **words: Any) -> Table:
    return pt.tabulate(data, rng=np.random.default_rng(seed), **{"epsilon": 1, **words})


def test_answers_about_a_normal_column() -> None:
    data = np.random.default_rng(1).normal(40, 12, 4_000)
    table = table_of(data, between=(0, 100), cells=50, epsilon=4)
    assert table.cells.count == 52
    assert abs(table.counts.sum() - 4_000) < 300
    share = table.share(above=40)
    assert share.interval[0] < 0.5 < share.interval[1]
    assert share.interval[1] - share.interval[0] < 0.06
    for level in (0.1, 0.5, 0.9):
        low, high = table.quantile(level).interval
        assert low <= stats.norm.ppf(level, 40, 12) <= high
        assert high - low <= 8
    mean = table.mean()
    assert mean.interval[0] < 40 < mean.interval[1]
    both = table.estimate("normal(mean=?, sd=?)", between=(0, 100), sd_between=(2, 40))
    assert both.fits
    assert both.interval["mean"][0] < 40 < both.interval["mean"][1]
    assert both.interval["sd"][0] < 12 < both.interval["sd"][1]
    assert both.interval["mean"][1] - both.interval["mean"][0] < 1.2 * 3.92 * 12 / math.sqrt(4_000)
    assert table.test("normal(40, 12)", "normal(45, 12)", alpha=1e-6).decision == "null"
    assert table.test("normal(35, 12)", "normal(40, 12)", alpha=1e-6).decision == "alternative"
    assert table.fit("normal(40, 12)").pvalue > 1e-6
    assert table.fit("normal(40, 15)").decision == "alternative"


def test_a_bound_is_tested_while_the_spread_is_unknown() -> None:
    data = np.random.default_rng(11).normal(3, 2, 800)
    table = table_of(data, between=(-12, 18), cells=30, epsilon=2)
    found = table.test("normal(mean<=2, sd=?)", "normal(mean>=2.5, sd=?)", sd_between=(0.5, 8))
    assert found.decision == "alternative"
    assert found.pvalue < 1e-3 + 0.05
    assert table.test("normal(mean<=3.4, sd=?)", "normal(mean>=4, sd=?)", sd_between=(0.5, 8)).pvalue > 0.9
    assert table.test("normal(mean>=2.6, sd=?)", "normal(mean<=2, sd=?)", sd_between=(0.5, 8)).decision == "null"
    with pytest.raises(InvalidInput, match="from the other side"):
        table.test("normal(mean<=2, sd=?)", "normal(mean<=3, sd=?)", sd_between=(0.5, 8))


def test_counts_by_mean_and_dispersion() -> None:
    data = np.random.default_rng(12).negative_binomial(2, 2 / 6, 2_000)
    table = table_of(data, labels=range(24), epsilon=2)
    found = table.estimate("negative_binomial(mean=?, dispersion=?)", between=(0.5, 30), dispersion_between=(0.05, 5))
    assert found.fits
    assert found.interval["mean"][0] < 4 < found.interval["mean"][1]
    assert found.interval["dispersion"][0] < 0.5 < found.interval["dispersion"][1]
    with pytest.raises(InvalidInput, match="no parameter 'spread'"):
        table.estimate("normal(mean=?, spread=?)", between=(0, 1))


def test_a_family_that_does_not_fit_is_said_first() -> None:
    data = np.random.default_rng(2).negative_binomial(2, 0.4, 4_000)
    found = table_of(data, labels=range(16), epsilon=4).estimate("poisson(?)", between=(0.5, 10))
    assert not found.fits
    assert "does NOT fit" in found.sentence
    assert found.facts()[0].name == "doubtful"


def test_a_parameter_beyond_its_range_is_said_and_explains_nothing() -> None:
    """The sd is at least 0.3: a constant column does not fit, and two values that nearly do are doubted."""
    ask: dict[str, Any] = {"between": (-3, 3), "cells": 8, "epsilon": 1}
    constant = table_of(np.full(442, 0.5), **ask).estimate("normal(mean=?, sd=?)", sd_between=(0.3, 3))
    assert not constant.fits
    two = table_of(np.arange(442) % 2 + 1.0, **ask).estimate("normal(mean=?, sd=?)", sd_between=(0.3, 3))
    assert two.sentence.startswith("AT AN END OF ITS RANGE (sd=0.3): a value beyond may fit better.")
    assert "sd_between=" in str(two)
    assert type(two).from_dict(two.to_dict()) == two
    wide = table_of(np.random.default_rng(1).normal(0, 1, 442), **ask)
    assert wide.estimate("normal(mean=?, sd=?)", sd_between=(0.3, 3)).doubt == ""


@pytest.mark.parametrize("sd", [0.3, 0.32])
def test_a_family_at_or_near_an_end_of_its_range_fits_its_own_records(sd: float) -> None:
    rng, found = np.random.default_rng(6), []
    for seed in range(20):
        table = table_of(rng.normal(0.2, sd, 400), seed, between=(-3, 3), cells=12, epsilon=1)
        box = read_family("normal(mean=?, sd=?)", {"sd": (0.3, 3)}, table._edges)
        found.append(TableFamily(box, table, tuple(table.numbers(1e-3))).fit_pvalue(1e-3))
    assert min(found) > 0.001
    assert sum(pvalue <= 0.1 for pvalue in found) <= 7


def test_missing_records_are_measured_and_the_answer_is_about_the_others() -> None:
    rng = np.random.default_rng(3)
    data = np.where(rng.random(6_000) < 0.37, np.nan, rng.normal(0, 1, 6_000))
    table = table_of(data, edges=[-1, 0, 1], epsilon=4)
    assert abs(table.missing - np.isnan(data).sum()) < 40
    assert table.share(above=0).interval[0] < 0.5 < table.share(above=0).interval[1]
    assert table.share(above=1).interval[0] < stats.norm.sf(1) < table.share(above=1).interval[1]
    assert "present" in table.share(above=0).sentence


def test_whole_numbers_of_a_type_without_missing_values_pay_nothing_for_them() -> None:
    data = np.random.default_rng(4).integers(0, 10, 2_000)
    table = table_of(data, between=(0, 10), cells=10)
    assert table.complete
    assert table.numbers(0.01) == [2_000]
    nullable = table_of(data.astype(float), between=(0, 10), cells=10)
    widths = [float(np.ptp(each.share(above=5).interval)) for each in (table, nullable)]
    assert widths[0] < widths[1] * 1.02
    assert widths[1] < 1.2 * widths[0]


@pytest.mark.parametrize(
    ("known", "level"),
    [
        (True, 0.5),
        pytest.param(False, 0.5, marks=pytest.mark.exhaustive),
        pytest.param(True, 0.2, marks=pytest.mark.exhaustive),
    ],
)
def test_the_interval_of_a_share_covers_by_enumeration(known: bool, level: float) -> None:
    """All counts and noises of a table of two cells; the intervals are computed for every noisy table."""
    n, confidence = 4, 0.8
    design = pt.design_table(n=n, edges=[0], epsilon=2)
    one = masses_of(design.noise, 6)
    missed: dict[tuple[int, int, int], bool] = {}
    wrong = 0.0
    for above in range(n + 1):
        chance = stats.binom.pmf(above, n, level)
        for (a, p), (b, q) in itertools.product(one.items(), repeat=2):
            if p * q < 1e-5:
                wrong += chance * p * q
                continue
            doubled = (int(2 * (n - above + a)), int(2 * (above + b)), 0)
            if doubled not in missed:
                table = design.release([known, list(doubled)])
                low, high = table.share(above=0, confidence=confidence).interval
                missed[doubled] = not low <= level <= high
            wrong += chance * p * q * missed[doubled]
    assert wrong <= 1 - confidence + 2e-3


@pytest.mark.parametrize("value", [-7.0, 0.0, 1.5, 2.0, 9.0])
def test_a_quantile_of_records_that_are_all_alike_lies_in_their_cell(value: float) -> None:
    edges = [0.0, 1.0, 2.0, 3.0]
    found = table_of(np.full(1_000, value), edges=edges, epsilon=20)
    ends = [-math.inf, *edges, math.inf]
    cell = next((low, high) for low, high in itertools.pairwise(ends) if low <= value < high)
    for share in (0.1, 0.5, 0.9):
        assert found.quantile(share).interval == cell


@pytest.mark.parametrize("shape", ["normal", "ties", "gap"])
@pytest.mark.parametrize("runs", [10, pytest.param(150, marks=pytest.mark.exhaustive)])
def test_the_interval_of_a_median_covers(shape: str, runs: int) -> None:
    rng, held = np.random.default_rng(5), 0
    for seed in range(runs):
        draws = {
            "normal": rng.normal(0, 1, 300),
            "ties": rng.integers(-2, 3, 300).astype(float),
            "gap": rng.normal(0, 0.2, 300) + np.where(rng.random(300) < 0.5, -1.5, 1.5),
        }[shape]
        low, high = table_of(draws, seed, between=(-4, 4), cells=32).median().interval
        held += low <= 0 <= high
    assert held >= 0.6 * runs if runs == 10 else held >= 0.9 * runs


@pytest.mark.exhaustive
def test_the_intervals_of_two_parameters_cover() -> None:
    rng, held, runs = np.random.default_rng(6), np.zeros(2), 40
    for seed in range(runs):
        table = table_of(rng.normal(3, 2, 300), seed, between=(-30, 30), cells=60)
        found = table.estimate("normal(mean=?, sd=?)", sd_between=(0.5, 8))
        held += [low <= truth <= high for (low, high), truth in zip(found.intervals, (3, 2), strict=True)]
    assert min(held) >= 33  # of 40, each with probability 0.95; the seeds are fixed


def test_a_design_says_when_noise_drowns_its_counts() -> None:
    drowned, clear = (pt.design_table(n=100, between=(0, 1), cells=count, epsilon=1) for count in (90, 8))
    assert "cells would do" in str(drowned)
    assert "cells would do" not in str(clear)


def test_sets_and_power() -> None:
    design = pt.design_table(n=400, between=(-4, 4), cells=16, epsilon=1)
    test = design.power("normal(mean<=0, sd in [0.9, 1.1])", "normal(mean>=0.5, sd in [0.9, 1.1])", alpha=0.05)
    assert test.alpha <= 0.05
    assert 0.5 < 1 - test.beta < 1
    simple = design.power("normal(0, 1)", "normal(0.5, 1)", alpha=0.05)
    assert simple.beta < test.beta
    best = pt.sample_size("normal(0, 1)", "normal(0.5, 1)", epsilon=1, alpha=0.05, beta=max(simple.beta, 1e-6))
    assert best < 400


# Documents and refusals -----------------------------------------------------------------------------------------------


def test_a_table_is_analysed_elsewhere() -> None:
    table = table_of(np.random.default_rng(7).normal(0, 1, 500), edges=[-1, 0, 1])
    other = Table.from_dict(json.loads(json.dumps(table.to_dict())))
    assert other.doubled == table.doubled
    assert other.share(above=0).interval == table.share(above=0).interval
    lines = table.to_csv().splitlines()
    assert lines[0] == "cell,count,noise,about"
    assert len(lines) == table.cells.count + 2


@pytest.mark.parametrize("name", ["t.csv", "t.json"])
def test_a_saved_table_answers_as_before(name: str, tmp_path: Any) -> None:
    frame = pd.DataFrame({"x": np.random.default_rng(7).normal(0, 1, 500), "arm": ["a, b", 'c"'] * 250})
    table = table_of(frame, column="x", by="arm", groups=["a, b", 'c"'], edges=[-1, 0, 1])
    table.save(tmp_path / name)
    other = Table.load(tmp_path / name)
    assert other.doubled == table.doubled
    assert other.noise == table.noise
    assert other.groups['c"'].median().interval == table.groups['c"'].median().interval


def test_the_table_of_a_group_is_about_its_records() -> None:
    rng = np.random.default_rng(8)
    frame = pd.DataFrame({"x": rng.normal(0, 1, 4_000), "arm": rng.choice(["a", "b", "none"], 4_000)})
    frame.loc[frame.arm == "b", "x"] += 2
    table = table_of(frame, column="x", by="arm", groups=["a", "b"], between=(-4, 6), cells=20, epsilon=2)
    assert list(table.groups) == ["a", "b"]
    for name, median in (("a", 0.0), ("b", 2.0)):
        one = table.groups[name]
        assert abs(one.counts.sum() - (frame.arm == name).sum()) < 150
        assert one.median().interval[0] <= median <= one.median().interval[1]
        assert (
            one.estimate("normal(mean=?, sd=1)").interval[0] < median < one.estimate("normal(mean=?, sd=1)").interval[1]
        )
    with pytest.raises(InvalidInput, match=r"table.groups\['a'\]"):
        table.median()
    with pytest.raises(InvalidInput, match="groups is missing"):
        pt.tabulate(frame, column="x", by="arm", edges=[0], epsilon=1)


@pytest.mark.parametrize("noise", ["laplace(3)", "discrete_laplace(3)", "gaussian(4)", "discrete_gaussian(sd=4)"])
def test_a_table_that_others_have_noised(noise: str) -> None:
    """Its noise is the law of what they add; the interval of a share covers."""
    rng, held = np.random.default_rng(9), 0
    scale = float(noise.split("(")[1].strip("sd=)"))
    whole = np.arange(-60, 61)
    masses = np.exp(-(whole**2) / (2 * scale**2)) if "gauss" in noise else np.exp(-np.abs(whole) / scale)
    for _ in range(20):
        counts = rng.multinomial(1_000, [0.4, 0.3, 0.2, 0.1])
        added = {
            "laplace": lambda: rng.laplace(0, scale, 4),
            "gaussian": lambda: rng.normal(0, scale, 4),
        }.get(noise.split("(")[0], lambda: rng.choice(whole, 4, p=masses / masses.sum()))()
        table = pt.table(counts + added, cells=[10, 20, 30], noise=noise, n=1_000)
        low, high = table.share(above=30).interval
        held += low <= 0.1 <= high
        assert table.share(above=20).epsilon == 0
    assert held >= 16
    assert table.noise.variance == pytest.approx(2 * scale**2 if "lap" in noise else scale**2, rel=0.06)


def test_the_discrete_gaussian_is_its_definition() -> None:
    noise, values = DiscreteGaussian(Fraction(3, 2)), np.arange(-40, 41)
    masses = np.exp(-(values**2) / (2 * 1.5**2))
    masses /= masses.sum()
    assert noise.pmf(values) == pytest.approx(masses, abs=1e-15)
    assert noise.cdf(values) == pytest.approx(np.cumsum(masses), abs=1e-14)
    t = np.array([0.1, 1.0, 3.0])
    assert noise.characteristic(t) == pytest.approx([(masses * np.cos(t_ * values)).sum() for t_ in t], abs=1e-13)
    source = seeded_source(np.random.default_rng(0))
    draws = np.array([noise.draw_doubled(source) for _ in range(3_000)]) / 2
    assert abs(draws.mean()) < 0.15
    assert draws.var() == pytest.approx(2.25, rel=0.15)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"noise": "poisson(3)"}, "noise="),
        ({"noise": "laplace(0)"}, "between 0.001"),
        ({"noise": "discrete_laplace(2)", "counts": [1.5, 2]}, "not whole"),
        ({"cells": [1, 2, 3, 4]}, "edges for 2 counts"),
        ({"cells": ["a"]}, "its own label"),
        ({"counts": [1, math.nan]}, "finite"),
    ],
)
def test_tables_of_others_that_are_none(words: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"counts": [10, 20], "cells": [0.5], "noise": "laplace(2)", **words}
    with pytest.raises(InvalidInput, match=message):
        pt.table(given.pop("counts"), **given)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({}, "needs one of"),
        ({"edges": [1, 0]}, "increasing order"),
        ({"edges": [0, 0]}, "increasing order"),
        ({"edges": []}, "at least one"),
        ({"edges": [0, math.nan]}, "edges"),
        ({"between": (1, 0)}, "lower one first"),
        ({"between": (0, 1), "cells": 0}, "cells=0"),
        ({"between": (0, 1), "edges": [0, 1]}, "needs one of"),
        ({"edges": [0, 1], "cells": 3}, "goes with between"),
        ({"between": (0, math.inf)}, "finite"),
    ],
)
def test_cells_that_are_none_are_refused(words: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        pt.tabulate([1.0, 2.0], epsilon=1, **words)


def test_questions_that_a_table_cannot_answer_are_refused() -> None:
    table = table_of(np.arange(100.0), edges=[20, 40, 60])
    for call, message in (
        (lambda: table.share(above=30), "must be an edge"),
        (lambda: table.share(), "Name one"),
        (lambda: table.share(above=20, below=60), "Name one"),
        (lambda: table.quantile(1.5), "share"),
        (lambda: table.estimate("normal(mean=0, sd=1)"), "question marks"),
        (lambda: table.estimate("norml(mean=?, sd=1)"), "named families"),
        (lambda: table.estimate("normal(mean=?, sd=1)", sd_between=(1, 2)), "sd_between"),
        (lambda: table.test("bernoulli(0.1)", "bernoulli(0.2)"), "do not tell"),
        (lambda: table_of(["a", "b"] * 30, labels=["a", "b"]).median(), "labels"),
    ):
        with pytest.raises(InvalidInput, match=message):
            call()


PAIRS = [
    ("normal(0, 1)", "normal(0.5, 1)", 32),
    ("normal(0, 1)", "normal(0, 1.5)", 35),
    ("poisson(2)", "poisson(3)", 30),
]


@pytest.mark.parametrize(("null", "alternative", "n"), PAIRS)
def test_cells_that_are_placed_for_a_pair_tell_it_best_and_have_the_stated_errors(
    null: str, alternative: str, n: int
) -> None:
    """Better than cells of equal probability; the errors are those of simulated tables."""
    placed = pt.design_table(n=n, null=null, alternative=alternative, cells=8, epsilon=1)
    assert 2 <= placed.cells.count <= 8
    test = placed.power(null, alternative)
    laws = [as_distribution(text) for text in (null, alternative)]
    edges = np.unique(np.mean([law.ppf(np.arange(1, 8) / 8) for law in laws], axis=0)).tolist()
    equal = pt.design_table(n=n, edges=edges, epsilon=1).power(null, alternative)
    assert test.advantage > equal.advantage + 0.02
    # A second way: the counts and their noise as they are drawn, and the weights of the test.
    rng, runs = np.random.default_rng(6), 40_000
    weights = test.score.table - round(float(test.score.table.mean()))
    ratio = math.exp(-0.5)
    for law, stated in zip(laws, (test.alpha, 1 - test.beta), strict=True):
        masses = np.append(cell_law(placed.cells, law)[:-1], 0.0)
        counts = rng.multinomial(n, masses / masses.sum(), size=runs)
        noise = rng.geometric(1 - ratio, counts.shape) - rng.geometric(1 - ratio, counts.shape)
        sums = (counts + noise) @ weights + n * (test.score.table[0] - weights[0])
        says = np.mean(sums < float(test.cutoff))
        assert abs(says - stated) < 5 * math.sqrt(0.25 / runs)
    table = placed.run(laws[0].sample(rng, n), rng=rng)
    assert table.test(null, alternative).decision in ("null", "alternative")


def test_placed_cells_are_the_best_of_all_and_their_question_is_checked() -> None:
    """No move of an edge, and no cell more or less, tells more than the thousandth that is given up."""
    noise = pt.design_table(n=40, edges=[0], epsilon=1).noise
    found = telling_edges("normal(0, 1)", "normal(0.5, 1)", noise, 40, 8)
    laws = [as_distribution(text) for text in ("normal(0, 1)", "normal(0.5, 1)")]

    def told(edges: list[float]) -> float:
        p, q = (np.diff(np.concatenate([[0], law.cdf(np.array(edges)), [1]])) for law in laws)
        return float(np.sum((p - q) ** 2 / (40 * (p + q) / 2 + noise.variance)))

    others = [sorted({*found, at}) for at in np.linspace(-3, 3, 61)]
    others += [[*found[:i], found[i] + away, *found[i + 1 :]] for i in range(len(found)) for away in (-0.05, 0.05)]
    others += [[*found[:i], *found[i + 1 :]] for i in range(len(found))]
    assert max(map(told, others)) < told(found) * 1.002
    assert told([-1, 0, 1]) < told(found) * 0.95  # which a worse table does not reach
    words: dict[str, Any] = {"n": 40, "epsilon": 1}
    with pytest.raises(InvalidInput, match="give both"):
        pt.design_table(null="normal(0, 1)", **words)
    with pytest.raises(InvalidInput, match="give both"):
        pt.design_table(null="normal(0, 1)", alternative="normal(1, 1)", edges=[0], **words)
    for null, alternative in (("normal(mean<=0, sd=1)", "normal(1, 1)"), ({"a": 0.5, "b": 0.5}, {"a": 0.1, "b": 0.9})):
        with pytest.raises(InvalidInput, match="two distributions of numbers"):
            pt.design_table(null=null, alternative=alternative, **words)
    with pytest.raises(InvalidInput, match="No 1 cells tell"):
        pt.design_table(null="normal(0, 1)", alternative="normal(1, 1)", cells=1, **words)


@pytest.mark.parametrize("doubled", [(0, 40, 40, 0), (-6, 44, 40, 4), (2, 20, 20, 0)])
def test_a_mean_between_two_edges_is_answered_wherever_it_lies(doubled: tuple[int, ...]) -> None:
    """Both edges are equally far from the middle, so that no count tells of the spread about it."""
    plain = Table(EdgeCells((0.0, 1.0)), doubled, noise_of(pt.pure(1)), 40, epsilon=1.0)
    for table in (plain, replace(plain, n=None)):
        found = table.mean()
        assert 0 <= found.interval[0] <= found.estimate <= found.interval[1] <= 1
