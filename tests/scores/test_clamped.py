"""The clamped ratio on a lattice: exact laws, exact ends, and next to no power lost.

Cells for real numbers: fine enough where it matters, few, and with the masses their edges give them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privatest.errors import InvalidInput
from privatest.hypotheses import make_pair, mixture
from privatest.laws.cutoffs import Curves
from privatest.privacy import Tulap
from privatest.scores import (
    BoundedCells,
    DyadicCells,
    LabelCells,
    Score,
    clamped_score,
    realised_clamp,
)

Cdf = Callable[[Any], Any]


def normal(mean: float, deviation: float) -> Cdf:
    return lambda x: mpmath.ncdf((x - mpmath.mpf(mean)) / mpmath.mpf(deviation))


def uniform(start: float, length: float) -> Cdf:
    return lambda x: min(max((x - mpmath.mpf(start)) / mpmath.mpf(length), mpmath.mpf(0)), mpmath.mpf(1))


# scipy's distributions, and their cdfs in closed form, to be evaluated in extended precision
CLOSED: dict[str, tuple[Any, Any, Cdf, Cdf]] = {
    "normal": (stats.norm(0, 1), stats.norm(1, 1), normal(0, 1), normal(1, 1)),
    "scale": (stats.norm(0, 1), stats.norm(0.1, 2), normal(0, 1), normal(0.1, 2)),
    "cauchy": (
        stats.cauchy(0, 1),
        stats.cauchy(1, 1),
        lambda x: mpmath.mpf(1) / 2 + mpmath.atan(x) / mpmath.pi,
        lambda x: mpmath.mpf(1) / 2 + mpmath.atan(x - 1) / mpmath.pi,
    ),
    "student and normal": (
        stats.t(2),
        stats.norm(),
        lambda x: mpmath.mpf(1) / 2 + x / (2 * mpmath.sqrt(2 + x * x)),
        normal(0, 1),
    ),
    "exponential and gamma": (
        stats.expon(),
        stats.gamma(2),
        lambda x: 1 - mpmath.exp(-x) if x > 0 else mpmath.mpf(0),
        lambda x: 1 - (1 + x) * mpmath.exp(-x) if x > 0 else mpmath.mpf(0),
    ),
    "misaligned uniforms": (
        stats.uniform(0, 1),
        stats.uniform(0.3337, 1.1),
        uniform(0, 1),
        uniform(0.3337, 1.1),
    ),
}


def laws_by_hand(score: Score, cdfs: tuple[Cdf, Cdf]) -> list[dict[int, Any]]:
    """The law of the score from its table, its edges and the closed forms, in 40 digits."""
    assert isinstance(score.cells, DyadicCells | BoundedCells)
    laws: list[dict[int, Any]] = []
    with mpmath.workdps(40):
        for cdf in cdfs:
            steps = [mpmath.mpf(0), *(cdf(mpmath.mpf(float(edge))) for edge in score.cells.edges), mpmath.mpf(1)]
            law: dict[int, Any] = {}
            for cell, (a, b) in enumerate(itertools.pairwise(steps)):
                value = int(score.table[cell])
                law[value] = law.get(value, mpmath.mpf(0)) + b - a
            laws.append(law)
    return laws


@pytest.mark.parametrize("name", CLOSED)
def test_laws_are_those_of_the_closed_forms(name: str) -> None:
    null, alternative, *cdfs = CLOSED[name]
    score = clamped_score(make_pair(null, alternative), (-0.8, 1.2))
    by_hand = laws_by_hand(score, (cdfs[0], cdfs[1]))
    for law, exact in zip((score.null_law, score.alternative_law), by_hand, strict=True):
        found = dict(zip(score.support.tolist(), law.tolist(), strict=True))
        for value, probability in exact.items():
            assert found.get(value, 0.0) == pytest.approx(float(probability), abs=1e-15, rel=1e-11)
        assert math.fsum(law) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("name", CLOSED)
def test_scores_stand_for_the_clamped_ratio_of_the_record(name: str) -> None:
    pair = make_pair(*CLOSED[name][:2])
    score = clamped_score(pair, (-0.8, 1.2))
    rng = np.random.default_rng(0)
    x = np.concatenate([pair.null.sample(rng, 2000), pair.alternative.sample(rng, 2000)]).astype(np.float64)
    values = float(score.origin) + float(score.step) * score.of_numbers(x)
    wanted = np.clip(pair.ratio(x), -0.8, 1.2)
    assert math.sqrt(float(np.mean((values - wanted) ** 2))) < 0.02
    assert np.median(np.abs(values - wanted)) <= float(score.step)


@settings(max_examples=30)
@given(
    weights=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=7),
    clamp=st.tuples(st.fractions(-3, Fraction(-1, 20)), st.fractions(Fraction(1, 20), 3)),
)
def test_finite_pairs_have_exactly_their_probabilities(
    weights: list[tuple[int, int]], clamp: tuple[Fraction, Fraction]
) -> None:
    p, q = (np.array(column, dtype=float) for column in zip(*weights, strict=True))
    if p.sum() == 0 or q.sum() == 0 or np.allclose(p / p.sum(), q / q.sum()):
        return
    p, q = p / p.sum(), q / q.sum()
    pair = make_pair(dict(enumerate(p)), dict(enumerate(q)))  # an array of zeros and a one is taken for data
    score = clamped_score(pair, clamp)
    assert isinstance(score.cells, LabelCells)
    assert score.step * score.width <= clamp[1] - clamp[0]
    assert clamp[0] <= score.origin + score.step * score.low
    assert score.origin + score.step * score.high <= clamp[1]
    for mass, law in ((p, score.null_law), (q, score.alternative_law)):
        found = dict(zip(score.support.tolist(), law.tolist(), strict=True))
        exact: dict[int, list[float]] = {}
        for cell, probability in enumerate(mass):
            exact.setdefault(int(score.table[cell]), []).append(float(probability))
        for value, parts in exact.items():
            assert found.get(value, 0.0) == pytest.approx(math.fsum(parts), abs=1e-15)
    low, high = (float(end) for end in clamp)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.clip(np.log(p) - np.log(q), low, high)
    values = np.array([float(score.origin + score.step * int(s)) for s in score.table[:-1]])
    seen = p + q > 0
    assert np.all(np.abs(values - ratio)[seen] <= float(score.step) * 0.500001)
    assert np.all(score.table[:-1][~seen] == score.odd_score)


class TestEnds:
    @pytest.mark.parametrize("name", CLOSED)
    @pytest.mark.parametrize("clamp", [(-0.1, 0.1), (Fraction(-5, 7), Fraction(5, 7)), (-2, 3), (0.05, 0.3), (-1, 0)])
    def test_the_lattice_never_leaves_the_clamp(self, name: str, clamp: tuple[Any, Any]) -> None:
        score = clamped_score(make_pair(*CLOSED[name][:2]), clamp)
        a, b = (Fraction(repr(end)) if isinstance(end, float) else Fraction(end) for end in clamp)
        assert a <= score.origin + score.step * score.low
        assert score.origin + score.step * score.high <= b
        assert score.step * score.width <= b - a
        assert score.width >= 1

    def test_where_the_ratio_goes_beyond_the_clamp_the_ends_are_the_clamp_exactly(self) -> None:
        clamp = Fraction(-5, 7), Fraction(3, 11)
        for pair in (make_pair(*CLOSED["normal"][:2]), make_pair([0.1, 0.3, 0.6], [0.6, 0.3, 0.1])):
            score = clamped_score(pair, clamp)
            assert score.origin + score.step * score.low == clamp[0]
            assert score.origin + score.step * score.high == clamp[1]

    def test_ratios_of_events_that_never_happen_do_not_widen_the_lattice(self) -> None:
        score = clamped_score(make_pair(stats.norm(0, 1), stats.norm(1e-6, 1)), (-1, 1))
        assert float(score.step * score.width) < 2e-5
        score = clamped_score(make_pair(stats.poisson(10), stats.poisson(10.001)), (-1, 1))
        assert float(score.step * score.width) < 0.01

    def test_the_odd_score_is_0_clamped(self) -> None:
        pair = make_pair(*CLOSED["normal"][:2])
        for clamp, odd in (((-1, 1), 0.0), ((0.25, 1), 0.25), ((-1, -0.25), -0.25)):
            score = clamped_score(pair, clamp)
            assert float(score.origin + score.step * score.odd_score) == pytest.approx(odd, abs=float(score.step))
            if odd:
                assert score.odd_score in (score.low, score.high)

    def test_labels_that_neither_hypothesis_knows_are_odd(self) -> None:
        pair = make_pair({"a": 0.5, "b": 0.5, "never": 0.0}, {"a": 0.2, "b": 0.8, "never": 0.0})
        score = clamped_score(pair, (-0.5, 0.5))
        assert score.table[2] == score.odd_score
        assert score.width > 100

    @pytest.mark.parametrize(
        ("clamp", "words"),
        [
            ((1, 1), "first end below"),
            ((1, -1), "first end below"),
            ((5, 6), "the same"),
            ((-math.inf, 1), "unbounded"),
            ((math.nan, 1), "finite"),
            ((1,), "pair of numbers"),
            (("a", 1), "must be a number"),
        ],
    )
    def test_a_clamp_that_makes_no_sense_is_refused(self, clamp: Any, words: str) -> None:
        with pytest.raises(InvalidInput, match=words):
            clamped_score(make_pair(stats.norm(0, 1), stats.norm(0.1, 1)), clamp)


POWER: dict[str, tuple[Any, Any, tuple[float, float]]] = {
    "normal": (stats.norm(0, 1), stats.norm(1, 1), (-1, 1)),
    "normal, close": (stats.norm(0, 1), stats.norm(0.05, 1), (-0.1, 0.1)),
    "normal, very close": (stats.norm(0, 1), stats.norm(1e-6, 1), (-1, 1)),
    "scale": (stats.norm(0, 1), stats.norm(0, 2), (-1, 0.7)),
    "student and normal": (stats.t(3), stats.norm(), (-0.5, 1)),
    "cauchy": (stats.cauchy(0), stats.cauchy(1), (-1, 1)),
    "misaligned uniforms": (stats.uniform(0, 1), stats.uniform(0.3337, 1.1), (-2, 2)),
    "exponential and gamma": (stats.expon(), stats.gamma(2.2), (-1, 1)),
    "poisson": (stats.poisson(3), stats.poisson(3.6), (-1, 1)),
    "geometric": (stats.geom(0.3), stats.geom(0.35), (-2, 2)),
    "mixture": (
        mixture([0.9, 0.1], [stats.norm(0, 1), stats.norm(4, 0.1)]),
        mixture([0.85, 0.15], [stats.norm(0, 1), stats.norm(4, 0.1)]),
        (-1, 1),
    ),
    "lognormal": (stats.lognorm(1), stats.lognorm(1.2), (-1, 1)),
    "far apart": (stats.norm(0, 1), stats.norm(20, 1), (-1, 1)),
    "five labels": ([0.1, 0.2, 0.3, 0.25, 0.15], [0.2, 0.15, 0.1, 0.3, 0.25], (-1, 0.6)),
}


def advantage(score: Score, n: int) -> float:
    """The largest advantage of a tight test with this score at epsilon 1, over all thresholds."""
    noise = Tulap(Fraction(1), score.width)
    return Curves(score.support, score.null_law, score.alternative_law, n, noise).best_offset()[1]


@pytest.mark.parametrize("name", POWER)
def test_a_finer_lattice_changes_the_advantage_by_less_than_1e_4(name: str) -> None:
    null, alternative, clamp = POWER[name]
    pair = make_pair(null, alternative)
    score = clamped_score(pair, clamp)
    n = 1
    while advantage(score, n) < 0.6:
        n *= 2
    low, high = realised_clamp(pair, *clamp)
    finer = clamped_score(pair, clamp, units=2 * round((high - low) / float(score.step)))
    assert abs(advantage(finer, n) - advantage(score, n)) < 1e-4


def test_a_jump_inside_a_cell_costs_less_than_1e_4() -> None:
    """Uniforms with misaligned ends are three labels in truth."""
    pair = make_pair(stats.uniform(0, 1), stats.uniform(0.3337, 1.1))
    p, q = [0.3337, 0.6663, 0.0], [0.0, 0.6663 / 1.1, 1 - 0.6663 / 1.1]
    exact = clamped_score(make_pair(p, q), (-2, 2), units=1 << 14)
    for n in (2, 8, 20):
        assert abs(advantage(clamped_score(pair, (-2, 2)), n) - advantage(exact, n)) < 1e-4
