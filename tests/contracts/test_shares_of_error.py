"""The error probability that an answer states is divided among its steps, and each step takes no more than its share.

Steps: how many records are present, what further records add, the bound on a variance, and either side of an interval.
A step that took more would be seen in no coverage that is simulated, since most bounds have room to spare.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.estimates import table as tables
from privatest.estimates.present_records import PresentCount
from privatest.estimates.table_family import TableFamily, read_family
from privatest.privacy import Noise
from privatest.results import Table
from privatest.scores import EdgeCells

ROUNDING = 1 + 1e-9
NOTIONS = ("pure(1)", "pure(0.05)", "approx(1, 1e-6)", "tv(0.2)", "gdp(1)", "zcdp(0.5)")

# How many records are present -----------------------------------------------------------------------------------------

COUNTING: dict[str, Callable[..., Any]] = {
    "rate": lambda **w: pt.design_estimate("bernoulli(?)", n=400, confidence=0.9, missing="count", **w),
    "mean": lambda **w: pt.design_estimate(
        "normal(mean=?, sd=1)", between=(-2, 2), n=300, confidence=0.999, missing="count", **w
    ),
    "share": lambda **w: pt.design_estimate("share_above(0.5, ?)", n=1000, missing="count", **w),
    "groups": lambda **w: pt.design_groups(n=(400, 300), missing="count", **w),
    "groups, surely": lambda **w: pt.design_groups(n=(400, 300), missing="count", confidence=0.999, alpha=0.01, **w),
}


def law_of(noise: Noise) -> tuple[list[Fraction], Any]:
    """The values of a noise, but for a probability of 1e-12, and their probabilities."""
    reach = math.ceil(noise.reach(28)) + 1
    values = [noise.offset + k for k in range(-reach, reach + 1)]
    return values, noise.pmf(np.array([float(value) for value in values]))


@pytest.mark.parametrize("privacy", NOTIONS)
@pytest.mark.parametrize("name", COUNTING)
def test_more_records_are_summed_than_are_present_no_more_often_than_is_paid_for(name: str, privacy: str) -> None:
    """By all values of the noise: what is summed is then a sample of the records that are present, and of no others."""
    design = COUNTING[name](privacy=privacy)
    presence, n = design._presence, min(np.atleast_1d(design.n).tolist())
    assert presence.noise is not None
    values, masses = law_of(presence.noise)
    for present in (1, n // 2, n):
        summed = np.array([presence.summed(present + value, n) for value in values])
        assert masses @ (summed > present) <= presence.miss * ROUNDING + 1e-12
        assert summed.min() >= 1
        assert summed.max() <= n
    assert 0 < presence.miss < 1 - design.confidence


@pytest.mark.parametrize("privacy", NOTIONS)
def test_what_is_told_of_the_number_present_holds_it_as_often_as_is_told(privacy: str) -> None:
    noise = COUNTING["rate"](privacy=privacy).count_noise
    values, masses = law_of(noise)
    for confidence, present in product((0.5, 0.95, 0.999), (0, 3, 400)):
        ends = [PresentCount.of(noise, present + value, confidence, 400.0).interval for value in values]
        held = masses @ np.array([low <= present <= high for low, high in ends])
        assert held >= confidence * (1 - 1e-9) - 1e-12


@pytest.mark.parametrize("name", ["rate", "mean", "share"])
def test_the_ends_of_an_interval_are_rejected_with_what_the_number_present_leaves_of_the_error(name: str) -> None:
    """At the design's confidence and at others, by the tails of the total of as many records as are summed."""
    design = COUNTING[name](privacy="pure(1)")
    number = Fraction(design.n // 2)
    inversion = design._inversion(design._presence.summed(number, design.n))
    middle = sum(design.between) / 2
    noisy = math.floor(inversion.total(middle).mean) + design.noise.offset
    found = design.release([noisy, number])
    for confidence in (design.confidence, 0.8, 0.5):
        low, high = design.interval([noisy, number], confidence)
        assert confidence != design.confidence or found.interval == (low, high)
        half = (1 - confidence - design._presence.miss) / 2
        for end in (low, high):
            tails = inversion.at_least(end, end, noisy), inversion.at_most(end, end, noisy)
            assert min(tails) == pytest.approx(half, rel=1e-3)


# What further records add ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chance", [0.3, 0.02])
def test_numbers_bounded_together_have_no_smaller_tail_anywhere(chance: float) -> None:
    """Few records and many further ones beside next to no noise: what these add is all that a total can be far by."""
    found = pt.design_estimate("bernoulli(?)", epsilon=30, n=40, neighbours="add-remove").inversion
    group = replace(found, n=2, count_noise=None, more=400, chance=chance)
    few, rested = replace(group, more=0), 0
    for value, n in product((0.2, 0.5, 0.9), (2, 102, 402)):
        total = replace(few, n=n).total(value)
        down, up = group._moved(total.law, -1), group._moved(total.law, 1)
        for away in np.linspace(-6, 6, 25):
            noisy = math.floor(total.mean + away * total.deviation) + found.noise.offset
            low, high = total.cdf(noisy), total.sf(noisy - Fraction(1, 2))
            assert group.at_most(value, value, noisy) >= low * (1 - 1e-9)
            assert group.at_least(value, value, noisy) >= high * (1 - 1e-9)
            rested += low > few.at_most(value, value, noisy + down) or high > few.at_least(value, value, noisy - up)
    assert rested  # somewhere the bound rests on the chance alone


# Either side of an interval, and the bound on a variance --------------------------------------------------------------

TABLES: dict[str, dict[str, Any]] = {
    "declared": {},
    "missing": {"missing": 0.2},
    "hidden": {"neighbours": "add-remove"},
    "gaussian": {"privacy": "gdp(1)", "missing": 0.05},
}


def made(kind: str, seed: int) -> Table:
    """A table of fine cells, so that a tail takes many values."""
    words = {"epsilon": 1, **TABLES[kind]} if "privacy" not in TABLES[kind] else dict(TABLES[kind])
    absent = words.pop("missing", 0.0)
    rng = np.random.default_rng(seed)
    data: Any = rng.integers(0, 200, 1500)
    if absent:
        data = np.where(rng.random(1500) < absent, np.nan, data)
    edges = [float(edge) for edge in np.arange(-0.5, 200, 2)]
    return pt.tabulate(data, edges=edges, n=1500, rng=rng, **words)


def short(kind: str) -> Table:
    """A table of few cells and records, whose bounds are quick."""
    table = made(kind, 1)
    cells = EdgeCells((0.0, 40.0, 80.0))
    return replace(table, cells=cells, doubled=(2, 60, 50, 10, 4), n=None if table.n is None else 63)


@pytest.mark.parametrize("kind", TABLES)
def test_a_quantile_beyond_its_interval_is_rejected_with_half_of_the_error(kind: str) -> None:
    looked = 0
    for seed, share, confidence in product(range(2), (0.1, 0.5), (0.8, 0.95)):
        table = made(kind, seed)
        low, high = table.quantile(share, confidence=confidence).interval
        error, possible = table._with_error(confidence)
        assert error <= 1 - confidence + 1e-12
        edges, places = table._edges, np.arange(table.cells.count)
        for end, side in ((low, 0), (high, 1)):  # too few records below the lower end, too many below the upper one
            if not edges[0] < end < edges[-1]:
                continue
            edge = int(np.flatnonzero(edges == end)[0])
            statistic = table._share_statistic(places <= edge, share)
            law = np.where(places <= edge, share / (edge + 1), (1 - share) / (len(edges) - edge))
            looked += 1
            assert statistic.tail(law, possible, side) <= error / 2 * ROUNDING
    assert looked > 12


def levels_of(monkeypatch: pytest.MonkeyPatch, ask: Callable[[], Any]) -> list[float]:
    """The levels with which tails are compared in an answer, each as often as it may be missed."""
    found, times = list[float](), [1]
    end, variance = tables.lower_end, Table._variance

    def noted(tail: Any, ends: Any, level: float) -> float:
        found.extend([level] * times[0])
        return end(tail, ends, level)

    def counted(self: Table, ends: Any, anchors: Any, error: float, possible: Any) -> float:
        before = sum(found)
        times[0] = len(anchors)  # the place is chosen after the counts are known: each of them may be the one
        most = variance(self, ends, anchors, error, possible)
        times[0] = 1
        assert sum(found) - before <= error * ROUNDING
        return most

    monkeypatch.setattr(tables, "lower_end", noted)
    monkeypatch.setattr(Table, "_variance", counted)
    ask()
    return found


@pytest.mark.parametrize("kind", [*TABLES, "in steps"])
def test_the_sides_of_a_mean_and_its_variances_add_up_to_the_error(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    confidence = 0.9

    def ask() -> Any:
        if kind in TABLES:
            return short(kind).mean(confidence=confidence)
        rng = np.random.default_rng(1)
        return pt.estimate(np.arange(60.0), "mean", between=(0, 60), epsilon=1, confidence=confidence, rng=rng)

    levels = levels_of(monkeypatch, ask)
    assert len(levels) >= 3
    miscounted = 0.0 if kind == "declared" else tables.MISCOUNTED * (1 - confidence)
    assert 0.5 * (1 - confidence) < sum(levels) <= (1 - confidence - miscounted) * ROUNDING


@pytest.mark.parametrize("kind", TABLES)
def test_the_ends_of_a_share_s_interval_are_rejected_with_half_of_the_error(kind: str) -> None:
    table, confidence = made(kind, 1), 0.9
    error, possible = table._with_error(confidence)
    chosen = np.arange(table.cells.count) < 30
    low, high = table.share(below=float(table._edges[29]), confidence=confidence).interval
    for end, side in ((low, 1), (high, 0)):
        statistic = table._share_statistic(chosen, end)
        law = np.where(chosen, end / chosen.sum(), (1 - end) / (~chosen).sum())
        assert error / 4 < statistic.tail(law, possible, side) <= error / 2 * ROUNDING


@pytest.mark.parametrize(("family", "between"), [("normal(mean=?, sd=1)", (-3, 3)), ("poisson(?)", (0.5, 9))])
def test_the_ends_of_a_family_s_interval_are_rejected_for_certain(family: str, between: tuple[float, float]) -> None:
    """By exact tails, where those that look for the ends are a percent off."""
    rng = np.random.default_rng(0)
    data = rng.poisson(2, 40).astype(float) if "poisson" in family else rng.normal(0.4, 1, 40)
    table = pt.tabulate(data, edges=[-1, 0, 1, 2, 3], n=40, epsilon=0.5, rng=rng)
    error, possible = table._with_error(0.8)
    fitted = TableFamily(read_family(family, {"": between}, table._edges), table, tuple(possible))
    for end, side in zip(fitted.interval(0, error), (1, 0), strict=True):
        assert between[0] < end < between[1]
        law, weights = fitted.weights([end], 0, efficient=False)
        assert 0.9 * error / 2 < table.statistic(weights).tail(law, possible, side) <= error / 2 * ROUNDING
