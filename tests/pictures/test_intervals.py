"""Estimates and two groups: exact values stand at their marks, a release lies where it was released, patience ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import privatest as pt
from tests.pictures import artists

WIDTHS = {"this interval": lambda at: 0.1 + at, "no private interval": lambda at: 0.05 + at / 2}


@pytest.fixture(scope="module")
def rate() -> pt.results.EstimateDesign:
    return pt.design_estimate("bernoulli(?)", epsilon=2, n=40)


@pytest.fixture(scope="module")
def arms() -> pt.results.GroupsDesign:
    return pt.design_groups(n=(40, 60), epsilon=2)


def released(arms: pt.results.GroupsDesign, **other: Any) -> pt.results.GroupsRelease:
    """A release as a run would give it back, at once."""
    made = pt.results.GroupsRelease(
        decision="alternative",
        pvalue=0.012,
        statistic=0.25,
        difference=0.25,
        interval=(0.05, 0.44),
        rates=(0.3, 0.55),
        confidence=0.95,
        alpha=0.05,
        alternative="two-sided",
        n=(40, 60),
        epsilon=2.0,
        design=arms,
    )
    return replace(made, **other)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """Widths and powers of a formula; gives back the rates at which power was asked for."""
    asked: list[tuple[float, float]] = []

    def power(_design: Any, rates: tuple[float, float]) -> float:
        asked.append(rates)
        return float(ndtr(12 * abs(rates[1] - rates[0]) - 1.6))

    monkeypatch.setattr(pt.results.EstimateDesign, "expected_width", lambda _, at: WIDTHS["this interval"](at))
    monkeypatch.setattr(pt.results.EstimateDesign, "width_bound", lambda _, at: WIDTHS["no private interval"](at))
    monkeypatch.setattr(pt.results.GroupsDesign, "power", power)
    return asked


def marks(line: Any) -> dict[float, float]:
    """Where a line has markers."""
    x, y = line.get_data()
    every = line.get_markevery()
    return dict(zip(np.asarray(x)[every].tolist(), np.asarray(y)[every].tolist(), strict=True))


@pytest.mark.usefixtures("quick")
def test_widths_stand_at_their_marks_beside_the_bound(rate: pt.results.EstimateDesign) -> None:
    axes = rate.plot()
    axes.figure.canvas.draw()
    for start, formula in WIDTHS.items():
        (line,) = artists.labelled(axes, start)
        found = marks(line)
        assert list(found) == pytest.approx([0.05, 0.15, 0.25, 0.35, 0.5, 0.65, 0.75, 0.85, 0.95])
        assert list(found.values()) == pytest.approx([formula(at) for at in found])
    assert axes.get_xlim() == (0, 1)
    assert axes.get_ylim()[0] == 0
    assert axes.get_xlabel() == "true p"
    assert axes.get_xscale() == "linear"
    assert "0.95 interval for bernoulli(?), n = 40 records, \u03b5 = 2" in axes.get_title(loc="left")
    assert any("0.15 to 1.05" in text for text in artists.legend(axes))


@pytest.mark.parametrize("simulated", [False, True])
def test_a_real_estimate_lies_on_its_axis(rate: pt.results.EstimateDesign, simulated: bool) -> None:
    release = rate.run([0, 1, 0, 0] * 10, rng=np.random.default_rng(1) if simulated else None)
    axes = release.plot()
    axes.figure.canvas.draw()
    (line,) = artists.labelled(axes, "_SIMULATED" if simulated else "_released")
    assert tuple(line.get_xdata()) == release.interval
    assert any(list(one.get_xdata()) == [release.estimate] for one in axes.lines)
    for start, value in (("_to be expected", rate.expected_width), ("_no private", rate.width_bound)):
        (row,) = artists.labelled(axes, start)
        low, high = row.get_xdata()
        assert high - low == pytest.approx(value(release.estimate))
        assert (low + high) / 2 == pytest.approx(release.estimate)
    assert axes.get_xlabel() == "p"
    # The texts stand in the picture, and no legend hides it.
    assert any(text.startswith("SIMULATED" if simulated else "released") for text in artists.texts(axes))
    assert axes.get_legend() is None


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_a_released_difference_and_its_interval(alternative: str, quick: list[tuple[float, float]]) -> None:
    arms = pt.design_groups(n=(40, 60), epsilon=2, alternative=alternative)
    interval = {"two-sided": (0.05, 0.44), "greater": (0.08, 1.0), "less": (-1.0, 0.41)}[alternative]
    axes = released(arms, interval=interval, alternative=alternative, names=("old", "new")).plot()
    axes.figure.canvas.draw()
    (line,) = artists.labelled(axes, "_released")
    ends, (low, high) = axes.get_xlim(), line.get_xdata()
    # An end that is none lies outside of the picture.
    assert low == interval[0] if alternative != "less" else low < ends[0]
    assert high == interval[1] if alternative != "greater" else high > ends[1]
    words = {"two-sided": "0.05 to 0.44", "greater": "at least 0.08", "less": "at most 0.41"}[alternative]
    assert line.get_label() == f"_released: 0.25, {words}"
    assert any(list(one.get_xdata()) == [0.25] for one in axes.lines)
    assert axes.get_xlabel() == "rate of new minus rate of old"
    assert {rates[0] for rates in quick} == {0.3}
    lifts = [rates[1] - 0.3 for rates in quick]
    assert (min(lifts) < 0) == (alternative != "greater")
    assert (max(lifts) > 0) == (alternative != "less")
    assert "The rates differ, p = 0.012" in axes.get_title(loc="left")
