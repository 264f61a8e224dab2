"""The areas of the picture are the paper's: each law's hatched parts have area tau, the lines stand at the clamp."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.container import BarContainer

import privatest as pt
from tests.pictures import artists

MONTHS = [f"month {i}" for i in range(12)]
RISING = np.arange(1, 13) / 78

REALS: dict[str, tuple[Any, Any, float]] = {
    "figure 1": (
        pt.density(lambda x: np.log(2 * x), support=(0, 1)),
        pt.density(lambda x: -np.log1p(np.sqrt(x)) - np.log(2 - 2 * np.log(2)), support=(0, 1)),
        0.2,
    ),
    "shift": ("normal(0, 1)", "normal(1, 1)", 0.5),
    "scale": ("normal(0, 1)", "normal(0, 2)", 0.3),
    "scale, swapped": ("normal(0, 2)", "normal(0, 1)", 0.3),
    "beta": ("beta(2, 3)", "beta(3, 2)", 0.3),
    "mixture": ("normal(0, 1)", pt.mixture([0.3, 0.7], ["normal(-3, 0.5)", "normal(3, 1)"]), 0.5),
    "disjoint": ("uniform(0, 1)", "uniform(2, 3)", 1),
    "overlap": ("uniform(0, 1)", "uniform(0.3, 1.5)", 0.7),
    "tiny epsilon": ("normal(0, 1)", "normal(0.2, 1)", 0.001),
}
ATOMS: dict[str, tuple[Any, Any, float]] = {
    "zero": ("bernoulli(0)", "bernoulli(0.1)", 0.5),
    "bernoulli": ("bernoulli(0.3)", "bernoulli(0.5)", 0.2),
    "three": ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], 0.4),
    "twelve": (dict.fromkeys(MONTHS, 1 / 12), dict(zip(MONTHS, RISING, strict=True)), 0.3),
    "disjoint": ({"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0}, 1),
}
OTHERS: dict[str, tuple[Any, Any, float]] = {
    "poisson": ("poisson(3)", "poisson(5)", 0.4),
    "large counts": ("poisson(300)", "poisson(330)", 0.4),
    "no tails": ("bernoulli(0.5)", "bernoulli(0.45)", 2),
    "heavy tails": ("cauchy(0, 1)", "cauchy(2, 1)", 1),
    "two scales": ("normal(0, 1)", "normal(0, 500)", 1),
    "large epsilon": ("normal(0, 1)", "normal(1, 1)", 800),
    "hostile": (
        {"$x^2$": 0.2, "<b>\n": 0.3, "\u65e5\u672c": 0.4, "\\frac{": 0.1},
        {"$x^2$": 0.4, "<b>\n": 0.3, "\u65e5\u672c": 0.2, "\\frac{": 0.1},
        0.1,
    ),
}


@pytest.mark.parametrize("name", REALS)
def test_hatched_areas_of_densities_are_tau(name: str) -> None:
    null, alternative, epsilon = REALS[name]
    split = pt.decompose(null, alternative, epsilon=epsilon)
    axes = split.plot()
    for letter, reverse in (("P", False), ("Q", True)):
        parts = artists.labelled(axes, f"{letter} above")
        assert parts
        assert all(isinstance(part, PolyCollection) for part in parts)
        # The first part is the hockey-stick divergence at epsilon; what epsilon' adds makes it tau.
        assert artists.area(parts[0]) == pytest.approx(split.pair.hockey_stick(epsilon, reverse=reverse), abs=4e-3)
        assert math.fsum(map(artists.area, parts)) == pytest.approx(split.tau, abs=4e-3)
        assert len(parts) == 1 + (split.epsilon_prime < epsilon and letter == ("P" if split.swapped else "Q"))


@pytest.mark.parametrize("name", ATOMS)
def test_hatched_bars_are_tau(name: str) -> None:
    null, alternative, epsilon = ATOMS[name]
    split = pt.decompose(null, alternative, epsilon=epsilon)
    axes = split.plot()
    for letter in "PQ":
        bars = [part for part in artists.labelled(axes, f"{letter} above") if isinstance(part, BarContainer)]
        assert math.fsum(bar.get_height() for part in bars for bar in part) == pytest.approx(split.tau, abs=1e-12)
        (whole,) = (part for part in artists.labelled(axes, f"{letter} =") if isinstance(part, BarContainer))
        assert math.fsum(bar.get_height() for bar in whole) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("name", OTHERS)
def test_every_pair_draws_without_a_warning(name: str) -> None:
    null, alternative, epsilon = OTHERS[name]
    split = pt.decompose(null, alternative, epsilon=epsilon)
    axes = split.plot()
    axes.figure.canvas.draw()
    assert f"{split.tau:.4g}".replace("-", "\u2212") in axes.get_title(loc="left")
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    assert artists.legend(axes)[0].startswith("P =")
    assert len(set(artists.legend(axes))) == len(artists.legend(axes))
