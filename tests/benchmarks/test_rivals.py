"""Rivals do what their papers say, and the evaluation measures what it says."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import rivals
from benchmarks.evaluate import RIVALS, evaluate_change, simulate_series
from privatest.hypotheses import make_pair


@pytest.mark.statistical
def test_offline_pcpd_errs_as_much_as_the_reimplementation_of_the_references() -> None:
    rng = np.random.default_rng(1)
    truth = np.full(3000, 100)
    for (old, new), scale, expected in (
        (("bernoulli(0.2)", "bernoulli(0.8)"), None, {0.5: 7.4, 1.0: 3.9}),
        (("normal(0, 1)", "normal(1, 1)"), 4.363, {0.5: 18.1, 1.0: 10.4}),
    ):
        pair = make_pair(old, new)
        ratios = np.asarray(pair.ratio(simulate_series(pair, 200, truth, rng).ravel())).reshape(3000, 200)
        for epsilon, mean in expected.items():
            found = rivals.offline_pcpd(ratios, scale or rivals.range_of_ratio(pair), epsilon, rng)
            assert np.mean(np.abs(found - 100)) == pytest.approx(mean, rel=0.08)


def test_maximum_likelihood_by_hand() -> None:
    ratios = np.array([[1.0, 2.0, -3.0, -1.0, -0.5], [-1.0, -1.0, -1.0, -1.0, -1.0], [2.0, -1.0, 3.0, -1.0, -4.0]])
    assert rivals.maximum_likelihood(ratios).tolist() == [2, 0, 3]


def test_pncpd_by_hand_and_its_statistic() -> None:
    rng = np.random.default_rng(2)
    clean = np.concatenate([rng.normal(0, 0.1, 60), rng.normal(5, 0.1, 140)])[None, :]
    assert rivals.pncpd(clean, 1e9, rng).tolist() == [60]
    assert rivals.pncpd(-clean, 1e9, rng, rising=False).tolist() == [60]
    noisy = rivals.pncpd(np.repeat(clean, 200, axis=0), 1.0, rng)
    assert np.all((noisy >= 20) & (noisy <= 180))


def test_an_evaluation_runs_everything_on_the_same_series() -> None:
    rows = evaluate_change(
        "bernoulli(0.2)",
        "bernoulli(0.8)",
        epsilon=1,
        n=150,
        runs=30,
        rng=np.random.default_rng(4),
        methods=("auto", *RIVALS),
    )
    assert [row.name for row in rows] == ["auto (blocks)", *RIVALS]
    assert {row.runs for row in rows} == {30}
    assert rows[0].accuracy is not None
    assert rows[1].accuracy is None
    json.dumps([row.to_dict() for row in rows])
    assert all(row.name in str(row) for row in rows)
    dummy = rows[-1]
    assert dummy.mean <= 45  # k* is uniform on the middle three fifths
    no_bound = evaluate_change(
        "normal(0, 1)", "normal(2, 1)", epsilon=1, n=100, runs=5, rng=np.random.default_rng(4), methods=RIVALS
    )
    assert [row.name for row in no_bound] == list(RIVALS[1:])  # the ratio's range is infinite
