"""The hardest alternatives: at the right distance, and no random search finds much harder ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from privatest.errors import InvalidInput
from privatest.fit import FitTest, design_fit
from privatest.fit.candidate_statistics import alternatives, largest_distance
from privatest.fit.excess_law import moments, rough_error

Floats = npt.NDArray[np.float64]


def power_law(k: int, exponent: float) -> Floats:
    p = np.arange(1, k + 1) ** -float(exponent)
    return p / p.sum()


@pytest.mark.parametrize("distance", [0.05, 0.3, 0.6])
@pytest.mark.parametrize(
    "p",
    [power_law(2, 0), power_law(2, 3), power_law(9, 0), power_law(10, 0), power_law(5, 2), np.array([0.5, 0.5, 0, 0])],
)
def test_distance_is_exact(p: Floats, distance: float) -> None:
    if distance > largest_distance(p):
        with pytest.raises(InvalidInput, match="largest total variation distance"):
            design_fit(p, distance=distance, epsilon=1, n=40)
        return
    test = design_fit(p, distance=distance, epsilon=1, n=40)
    found = list(alternatives(test.candidate.excess, 40, p, distance))
    assert found
    for alternative in found:
        assert np.all(alternative.q >= 0)
        assert alternative.q.sum() == pytest.approx(1, abs=1e-9)
        assert np.abs(alternative.q - p).sum() / 2 == pytest.approx(distance, abs=1e-9)


def random_alternative(p: Floats, distance: float, rng: np.random.Generator) -> Floats | None:
    k = len(p)
    scores = rng.choice([-1.0, 0.0, 1.0]) * np.log(np.maximum(p, 1e-12)) + rng.normal(0, 1, k)
    gains = scores > np.quantile(scores, rng.uniform(0.1, 0.9))
    if not gains.any() or p[~gains].sum() < distance:
        return None
    moves = []
    for side in (gains, ~gains):
        share = p[side] ** rng.choice([0.3, 0.5, 0.67, 0.8, 1.0]) * np.exp(rng.normal(0, 0.2, int(side.sum())))
        moves.append(distance * share / share.sum())
    up, down = moves
    for _ in range(100):  # what a symbol cannot lose the others do
        excess = np.maximum(down - p[~gains], 0).sum()
        down = np.minimum(down, p[~gains])
        if excess < 1e-15:
            break
        down += (p[~gains] - down) / (p[~gains] - down).sum() * excess
    q = p.copy()
    q[gains] += up
    q[~gains] -= down
    return np.maximum(q, 0) / np.maximum(q, 0).sum()


def hardest_random(test: FitTest, rng: np.random.Generator, tries: int) -> float:
    p, excess = test.domain.probabilities, test.candidate.excess
    at_null = moments(excess, test.n, p)
    drawn = [q for _ in range(tries) if (q := random_alternative(p, test.distance, rng)) is not None]
    hardest = max(drawn, key=lambda q: rough_error(at_null, moments(excess, test.n, q), test.noise, test.alpha))
    return test.candidate.law(hardest, test.n).cdf(test.cutoff, test.noise)


@pytest.mark.parametrize(
    ("k", "exponent", "distance", "n"),
    [(3, 1, 0.2, 60), (4, 2, 0.1, 180), (6, 2, 0.2, 60), (10, 1, 0.1, 280), (10, 0, 0.3, 40), (20, 2, 0.3, 50)],
)
def test_random_search_finds_nothing_much_harder(
    k: int, exponent: float, distance: float, n: int, show: Callable[[str], None]
) -> None:
    test = design_fit(power_law(k, exponent), distance=distance, epsilon=1, n=n)
    random = hardest_random(test, np.random.default_rng(k), 100)
    show(f"k={k} exponent {exponent}: type II error {test.beta:.4f} stated, {random:.4f} hardest of 100 at random")
    assert random <= 1.05 * test.beta + 1e-3
