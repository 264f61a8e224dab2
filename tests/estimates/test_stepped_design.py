"""Means, medians, quantiles and two parameters in one call: intervals, plans, documents, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest.errors import InvalidInput
from privatest.estimates.stepped_design import UNITS
from privatest.privacy import as_notion
from privatest.results import SteppedDesign, TableAnswer, TableEstimate

RANGES: dict[str, dict[str, Any]] = {
    "mean": {"between": (-20, 20)},
    "median": {"between": (-20, 20)},
    "quantile(0.9)": {"between": (-20, 20)},
    "normal(mean=?, sd=?)": {"between": (-50, 50), "sd_between": (0.5, 8)},
}


def estimated(data: Any, question: str, seed: int = 0, **words: Any) -> Any:
    return pt.estimate(data, question, rng=np.random.default_rng(seed), **{"epsilon": 1, **RANGES[question], **words})


def test_each_question_in_one_call() -> None:
    data = np.random.default_rng(1).normal(3, 2, 2_000)
    for question, truth in (("mean", 3.0), ("median", 3.0), ("quantile(0.9)", float(stats.norm.ppf(0.9, 3, 2)))):
        found = estimated(data, question, epsilon=2)
        assert isinstance(found, TableAnswer)
        assert found.interval[0] < truth < found.interval[1]
        assert found.interval[1] - found.interval[0] < 1.5
        assert TableAnswer.from_dict(json.loads(json.dumps(found.to_dict()))).interval == found.interval
    both = estimated(data, "normal(mean=?, sd=?)", epsilon=2)
    assert isinstance(both, TableEstimate)
    assert both.fits
    assert both.interval["mean"][0] < 3 < both.interval["mean"][1]
    assert both.interval["sd"][0] < 2 < both.interval["sd"][1]
    assert both.interval["mean"][1] - both.interval["mean"][0] < 0.3


def test_an_approximate_mean_says_so_wherever_it_is_printed() -> None:
    data = np.random.default_rng(2).normal(3, 2, 2_000)
    certified, about = estimated(data, "mean"), estimated(data, "mean", guarantee="approximate")
    assert np.diff(about.interval) < np.diff(certified.interval)
    assert "APPROXIMATE" in str(about)
    assert "APPROXIMATE" in about.sentence
    assert about.to_dict()["guarantee"] == "approximate"
    assert "APPROXIMATE" not in str(certified)


@pytest.mark.parametrize("runs", [8, pytest.param(60, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("shape", ["normal", "ties", "gap", "cauchy"])
def test_the_interval_of_a_median_covers(shape: str, runs: int) -> None:
    rng, held = np.random.default_rng(3), 0
    for seed in range(runs):
        data = {
            "normal": rng.normal(0, 1, 300),
            "ties": rng.integers(-2, 3, 300).astype(float),
            "gap": rng.normal(0, 0.2, 300) + np.where(rng.random(300) < 0.5, -1.5, 1.5),
            "cauchy": rng.standard_cauchy(300),
        }[shape]
        low, high = estimated(data, "median", seed).interval
        held += low <= 0 <= high
    assert held >= (0.6 if runs == 8 else 0.88) * runs


def test_records_beyond_the_range_and_missing_ones_are_said() -> None:
    rng = np.random.default_rng(4)
    data = np.where(rng.random(4_000) < 0.2, 500.0, rng.normal(0, 1, 4_000))
    found = estimated(data, "median")
    assert "lie beyond" in found.note
    assert 0.1 < float(found.note.split("About ")[1].split("%")[0]) / 100 < 0.3
    missing = np.where(rng.random(4_000) < 0.3, np.nan, rng.normal(0, 1, 4_000))
    for question in ("median", "mean"):
        low, high = estimated(missing, question).interval
        assert low < 0 < high


def test_a_plan_knows_the_width_before_the_run() -> None:
    design = pt.design_estimate("normal(mean=?, sd=?)", n=500, epsilon=1, **RANGES["normal(mean=?, sd=?)"])
    planned = design.expected_width("normal(3, 2)")
    assert planned["mean"] <= 0.5
    assert planned["mean"] > 0.351  # without privacy
    median = pt.design_estimate("median", n=500, epsilon=1, between=(-20, 20)).expected_width("normal(3, 2)")
    assert 0.35 < median < 1.2
    mean = pt.design_estimate("mean", n=2_000, epsilon=1, between=(-20, 20)).expected_width("normal(3, 2)")
    assert 0.175 < mean < 1.5
    assert SteppedDesign.from_json(design.to_json()) == design


@pytest.mark.parametrize("between", [(-20, 20), (0.3, 1)])
def test_a_record_adds_to_a_total_what_the_middle_of_its_own_cell_does(between: tuple[float, float]) -> None:
    design = pt.design_estimate("mean", n=500, epsilon=1, between=between)
    edges, last = design._edge_values, len(design._edge_values) - 1
    middles = np.concatenate([edges[:1], (edges[:-1] + edges[1:]) / 2, edges[-1:]])
    for low, high in ((0, last), (last // 3, last // 2)):
        share = np.clip((middles - edges[low]) / (edges[high] - edges[low]), 0, 1)
        off = design._steps((low, high)) + UNITS // 2 - share * UNITS
        assert off.min() > -1
        assert off.max() < 1e-6  # rounded down, but for rounding of doubles


@pytest.mark.parametrize("privacy", ["zcdp(0.5)", "approx(1, 1e-6)", "gdp(1)", "tv(0.3)"])
def test_every_notion(privacy: str) -> None:
    data = np.random.default_rng(5).normal(0, 1, 1_000)
    found = pt.estimate(data, "median", between=(-10, 10), privacy=privacy, rng=np.random.default_rng(0))
    assert found.privacy == as_notion(privacy).text
    assert found.interval[0] <= 0 <= found.interval[1]


@pytest.mark.parametrize(
    ("question", "words", "message"),
    [
        ("median", {"between": None}, "between is missing"),
        ("median", {"between": (1, 0)}, "lower one first"),
        ("quantile(1.5)", {}, "share"),
        ("median", {"sd_between": (1, 2)}, "goes with a family"),
        ("median", {"guarantee": "approximate"}, "goes with 'mean'"),
        ("mean", {"guarantee": "certain"}, "guarantee"),
        ("median", {"near": 0}, "near=0 goes with"),
        ("median", {"neighbours": "add-remove", "n": 100}, "pt.tabulate"),
        ("median", {"n": 5}, "needs 20 records"),
        ("normal(mean=?, sd=1)", {"sd_between": (1, 2)}, "second question mark"),
        ("normal(mean=?, sd=?)", {"sd_between": (1, 2), "spread_between": (1, 2)}, "spread_between"),
    ],
)
def test_what_is_refused_before_the_data_are_opened(question: str, words: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        pt.estimate("no such file.csv", question, **{"between": (0, 1), "epsilon": 1, **words})
