"""The bars of the picture are the exact probabilities of the test."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.studio import noisy
from privatest.studio.noisy import noisy_law

CASES: list[tuple[str, str, float, int]] = [
    ("bernoulli(0.4)", "bernoulli(0.6)", 1.0, 12),  # every point of the lattice
    ("normal(0, 1)", "normal(1, 1)", 0.5, 400),
    ("bernoulli(0.4)", "bernoulli(0.41)", 0.01, 300),  # wide noise: a series
    ("normal(0, 1)", "normal(0.01, 1)", 0.5, 100_000),  # wide sums: a series
    ("bernoulli(0.3)", "bernoulli(0.7)", 0.5, 10**8),  # far apart: exact probabilities
]


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize(("P", "Q", "epsilon", "n"), CASES)
def test_the_bars_are_the_exact_law(P: str, Q: str, epsilon: float, n: int, neighbours: str) -> None:
    test = pt.design(P, Q, epsilon=epsilon, n=n, neighbours=neighbours)
    found = noisy_law(test)
    width = found["width"]
    for side, total in (("null", test.null_total), ("alternative", test.alternative_total)):
        bars = np.array(found[side]) * width
        below = bars[: found["decided"]].sum()
        assert below == pytest.approx(total.cdf(test.cutoff), abs=6e-4)  # the picture ends somewhere
        assert bars.sum() == pytest.approx(1, abs=2e-3)
        threshold = found["statistic"][found["decided"]] - width / 2
        assert threshold == pytest.approx(test.threshold, abs=1.01 * width)
        for index in np.argsort(bars)[-3:]:
            low, high = (edge(test, found, int(index) + more) for more in (0, 1))
            exact = total.cdf(high) - total.cdf(low)
            # Of few records whose shifted scores lie on a fine lattice, the series leaves out what no eye sees.
            assert bars[index] == pytest.approx(exact, rel=2e-3 if neighbours == "replace" else 1e-2, abs=1e-6)


def edge(test: Any, found: dict[str, Any], index: int) -> Fraction:
    """Between the last value below the bar and its first one."""
    centre = Fraction(found["statistic"][0]) + Fraction(found["width"]) * (index - Fraction(1, 2))
    if test.neighbours == "add-remove":
        return centre * test.scale / test.score.step
    return test.score.lattice_threshold(centre, test.n)


def test_both_ways_beyond_the_whole_lattice_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    test = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=0.5, n=400)
    whole = noisy_law(test)
    monkeypatch.setattr(noisy, "LONGEST", 1)
    series = noisy_law(test)
    monkeypatch.setattr(noisy, "FADED", 0.0)
    exact = noisy_law(test)
    for side in ("null", "alternative"):
        top = max(whole[side])
        assert np.max(np.abs(np.array(whole[side]) - series[side])) < 2e-3 * top
        assert np.max(np.abs(np.array(whole[side]) - exact[side])) < 2e-5 * top
