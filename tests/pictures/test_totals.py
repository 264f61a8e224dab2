"""The law of a noisy statistic, as drawn: probabilities of bins are the exact ones, and the errors' areas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.patches import StepPatch

import privatest as pt
from tests.pictures import artists

TESTS: dict[str, dict[str, Any]] = {
    "many records": {"null": "normal(0, 1)", "alternative": "normal(0.5, 1)", "epsilon": 0.5, "n": 100},
    "few values": {"null": "bernoulli(0.6)", "alternative": "bernoulli(0.4)", "epsilon": 1, "n": 20},
    "one value under P": {"null": "bernoulli(0)", "alternative": "bernoulli(0.1)", "epsilon": 0.5, "n": 50},
    "wide noise": {"null": "bernoulli(0.6)", "alternative": "bernoulli(0.4)", "epsilon": 0.05, "n": 10},
    "people come and go": {
        "null": "bernoulli(0.6)",
        "alternative": "bernoulli(0.4)",
        "epsilon": 1,
        "n": 40,
        "neighbours": "add-remove",
    },
    "many rows a person": {
        "null": "normal(0, 1)",
        "alternative": "normal(1, 1)",
        "epsilon": 1,
        "n": 60,
        "neighbours": "add-remove",
        "max_rows_per_unit": 2,
    },
    "logistic": {"null": [0.2, 0.3, 0.5], "alternative": [0.5, 0.3, 0.2], "epsilon": 1, "n": 9, "test": "scllr"},
    "laplace": {"null": [0.2, 0.3, 0.5], "alternative": [0.5, 0.3, 0.2], "epsilon": 1, "n": 9, "test": "ncllr"},
}


def drawn(axes: Any) -> tuple[StepPatch, StepPatch, StepPatch, StepPatch]:
    laws = [artist for artist in axes.patches if isinstance(artist, StepPatch)]
    assert len(laws) == 4
    return laws[0], laws[1], laws[2], laws[3]


def masses(patch: StepPatch) -> np.ndarray:
    return np.asarray(patch.get_data().values) * np.diff(patch.get_data().edges)


@pytest.mark.parametrize("name", TESTS)
def test_bins_have_the_exact_probabilities(name: str) -> None:
    settings = dict(TESTS[name])
    test = pt.design(settings.pop("null"), settings.pop("alternative"), **settings)
    axes = test.plot()
    axes.figure.canvas.draw()
    null, alpha, alternative, beta = drawn(axes)
    assert masses(alpha).sum() == pytest.approx(test.alpha, abs=6e-3)
    assert masses(beta).sum() == pytest.approx(test.beta, abs=6e-3)
    for patch, total in ((null, test.null_total), (alternative, test.alternative_total)):
        edges, found = patch.get_data().edges, masses(patch)
        assert found.sum() == pytest.approx(1, abs=1e-2)
        # Two ways: one integral or convolution for the picture, single probabilities for the error rates.
        for i in range(0, len(found), max(len(found) // 7, 1)):
            away = [(edge - test.threshold) * test.scale / float(test.score.step) for edge in edges[i : i + 2]]
            ends = [test.cutoff + round(one) for one in away]
            assert found[i] == pytest.approx(total.cdf(ends[1]) - total.cdf(ends[0]), abs=2e-6)
    # No bin lies on both sides of the threshold.
    assert np.min(np.abs(null.get_data().edges - test.threshold)) < 1e-9
    assert axes.lines[0].get_xdata()[0] == pytest.approx(test.threshold)


def test_a_release_is_marked_at_its_statistic() -> None:
    test = pt.design("bernoulli(0.6)", "bernoulli(0.4)", epsilon=1, n=20)
    release = test.run([0, 1] * 10)
    axes = test.plot(release=release)
    assert axes.lines[1].get_xdata()[0] == release.statistic
    assert any("released" in text and release.decision in text for text in artists.legend(axes))
    simulated = test.plot(release=test.run([0, 1] * 10, rng=np.random.default_rng(0)))
    assert any("SIMULATED" in text for text in artists.legend(simulated))


@pytest.mark.parametrize("null", [{"a": 0.2, "b": 0.3, "c": 0.5}, "bernoulli(0.4)"])
def test_fit_pictures_show_both_errors(null: Any) -> None:
    test = pt.design_fit(null, distance=0.2, epsilon=1, n=150)
    release = test.release(test.cutoff + 1)
    axes = test.plot(release=release)
    axes.figure.canvas.draw()
    law, alpha, hardest, beta = drawn(axes)
    assert masses(law).sum() == pytest.approx(1, abs=1e-2)
    assert masses(hardest).sum() == pytest.approx(1, abs=1e-2)
    assert masses(alpha).sum() == pytest.approx(test.alpha, abs=6e-3)
    assert masses(beta).sum() == pytest.approx(test.beta, abs=6e-3)
    assert axes.lines[1].get_xdata()[0] == release.statistic


@pytest.mark.parametrize("pair", [([0.2, 0.3, 0.5], [0.5, 0.3, 0.2]), ("bernoulli(0)", "bernoulli(0.3)")])
def test_a_histogram_test_shows_both_laws_and_its_chances(pair: Any) -> None:
    test = pt.optimum(*pair, epsilon=1, n=8).test
    release = test.run([0] * 8)
    axes = release.plot()
    axes.figure.canvas.draw()
    for law in (artist for artist in axes.patches if isinstance(artist, StepPatch)):
        assert np.sum(law.get_data().values) == pytest.approx(1, abs=0.02)
    (line,) = axes.lines
    chances = np.asarray(line.get_ydata(), dtype=float)
    assert np.all(np.diff(chances) > -1e-9)  # the larger the ratio, the more it speaks for P
    assert test.chances.min() - 1e-9 <= chances[0] < chances[-1] <= test.chances.max() + 1e-9
    assert f'it said "{release.decision}"' in axes.get_title(loc="left")
