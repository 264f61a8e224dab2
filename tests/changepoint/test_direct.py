"""Direct: utilities by hand, the level that balances both sides, curves that bound.

The exponential mechanism: proposals that dominate, coins that are exact, draws that have the law.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from privatest.changepoint import exponential_mechanism as exponential
from privatest.changepoint.detector_search import BlockTuner
from privatest.changepoint.exponential_mechanism import (
    ExponentialDetector,
    ExponentialModel,
    _chunk_weights,
    _keep,
    _weights,
    best_level,
    draw_exponential,
)
from privatest.engines import open_source
from privatest.hypotheses import make_pair
from privatest.laws.block_laws import ScoreLaw
from privatest.privacy import Pure, seeded_source

COIN = ScoreLaw(np.array([0, 1]), np.array([0.2, 0.8]), np.array([0.8, 0.2]), 1)
SKEWED = ScoreLaw(np.array([0, 1]), np.array([0.0, 1.0]), np.array([0.1, 0.9]), 1)
NEAR = ScoreLaw(np.array([0, 1]), np.array([0.499, 0.501]), np.array([0.501, 0.499]), 1)


@pytest.mark.parametrize("stride", [1, 2, 3, 7])
def test_utilities_are_suffix_sums_up_to_a_constant(stride: int) -> None:
    score = BlockTuner(make_pair(stats.norm(0, 1), stats.norm(1, 1)), Pure(Fraction(1))).score((-0.5, 0.5))
    level = Fraction(33, 4)
    detector = ExponentialDetector(score, Fraction(1), level, stride)
    x = np.random.default_rng(1).normal(size=50)
    s = score.of_numbers(x)
    suffix = [-sum((int(v) - level for v in s[k:]), Fraction(0)) for k in range(0, 51, stride)]
    found = detector.utilities(open_source(x), 50)
    assert [Fraction(int(u), 4) for u in found] == [q - suffix[0] for q in suffix]


def test_the_level_balances_both_sides() -> None:
    level, decay = best_level(COIN, 1.0)
    assert level == Fraction(1, 2)
    assert decay > 0.1
    level, decay = best_level(SKEWED, 1.0)
    assert Fraction(9, 10) < level < 1
    assert decay > 0
    level, decay = best_level(NEAR, 1.0)  # far more privacy loss than such a pair needs
    assert abs(level - Fraction(1, 2)) < Fraction(1, 1000)
    assert 0 < decay < 1e-5


def test_the_simulated_curve_agrees_with_the_mechanism_itself() -> None:
    """The curve's means, against the exact law of the index on simulated coins."""
    design = ExponentialModel(COIN, Fraction(1), Fraction(1, 2), best_level(COIN, 1.0)[1], 2)
    rng = np.random.default_rng(2)
    runs, half = 4000, 60
    for phase in (0, 1):
        scores = rng.random((runs, 4 * half)) < np.where(np.arange(4 * half) < 2 * half + phase, 0.8, 0.2)
        q = np.zeros((runs, 4 * half + 1))
        q[:, 1:] = np.cumsum(scores - 0.5, axis=1)
        q, places = q[:, ::2], np.arange(0, 4 * half + 1, 2) - (2 * half + phase)
        w = np.exp(q - q.max(axis=1, keepdims=True))
        w /= w.sum(axis=1, keepdims=True)
        distances = np.arange(0, 40, 2)
        means = design._simulate(phase, half, distances, 4000, np.random.default_rng(3))
        for a, mean in zip(distances, means, strict=True):
            direct = w[:, np.abs(places) > a].sum(axis=1)
            assert abs(direct.mean() - mean) < 6 * np.sqrt(2 * direct.var() / runs) + 1e-9


BAR = 1e-9


class Scripted:
    """A source that answers ``bits`` from a list and refuses anything else."""

    simulated = True

    def __init__(self, answers: Iterator[int]) -> None:
        self.answers = answers
        self.calls = 0

    def bits(self, k: int) -> int:
        self.calls += 1
        answer = next(self.answers)
        assert 0 <= answer < 1 << k
        return answer

    def below(self, n: int) -> int:
        raise AssertionError(n)


def exact_law(utilities: np.ndarray, rate: Fraction) -> np.ndarray:
    with mpmath.workdps(50):
        weights = [
            mpmath.exp(mpmath.mpf(rate.numerator) / rate.denominator * int(q - utilities.max())) for q in utilities
        ]
        return np.array([float(w / sum(weights)) for w in weights])


@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(1, 3), Fraction(7, 2)])
@pytest.mark.parametrize("scale_bits", [20, 38, 50])
def test_integer_weights_lie_above_the_true_ones_by_little(rate: Fraction, scale_bits: int) -> None:
    utilities = -np.unique(np.concatenate([np.arange(400), np.geomspace(400, 1e7, 60).astype(np.int64)]))
    weights = _weights(utilities, 0, rate, scale_bits)
    with mpmath.workdps(60):
        for q, weight in zip(utilities.tolist(), weights.tolist(), strict=True):
            true = mpmath.power(2, scale_bits) * mpmath.exp(mpmath.mpf(rate.numerator) / rate.denominator * q)
            assert true <= weight <= true * (1 + mpmath.power(2, -39)) + 1


def test_chunks_far_below_the_best_count_as_their_weights_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exponential, "CHUNK", 16)
    rng = np.random.default_rng(1)
    utilities = np.cumsum(rng.integers(-40, 40, size=1000))
    firsts, sums = _chunk_weights(utilities, int(utilities.max()), Fraction(1, 3), 40)
    weights = _weights(utilities, int(utilities.max()), Fraction(1, 3), 40)
    np.testing.assert_array_equal(sums, np.add.reduceat(weights, firsts))
    assert (sums == np.minimum(16, 1000 - firsts)).any()  # some chunks were skipped


@pytest.mark.parametrize("loss", [Fraction(0), Fraction(1, 7), Fraction(5), Fraction(60), Fraction(10**6)])
def test_the_coin_compares_a_uniform_number_with_the_exact_share(loss: Fraction) -> None:
    scale_bits = 40
    weight = int(np.floor(np.exp(-float(loss)) * 2.0**40 * (1 + 2.0**-40))) + 1
    with mpmath.workdps(120):
        share = mpmath.power(2, scale_bits) * mpmath.exp(-mpmath.mpf(loss.numerator) / loss.denominator) / weight
        assert share <= 1
        edge = int(mpmath.floor(share * mpmath.power(2, 96)))
        rng = np.random.default_rng(3)
        for uniform in [0, edge - 2, edge + 2, *(int(u * 2**96) for u in rng.random(50))]:
            if not 0 <= uniform < 1 << 96 or uniform == edge:
                continue
            source = Scripted(iter([uniform, 1 << 95]))
            assert _keep(loss, scale_bits, weight, source) == (mpmath.mpf(uniform) / mpmath.power(2, 96) < share)


@pytest.mark.parametrize("loss", [Fraction(1, 7), Fraction(5)])
@pytest.mark.parametrize("more", [0, (1 << 96) - 1])
def test_a_uniform_number_on_the_edge_gets_more_bits(loss: Fraction, more: int) -> None:
    scale_bits, weight = 40, int(np.exp(-float(loss)) * 2.0**40) + 5
    with mpmath.workdps(120):
        share = mpmath.power(2, scale_bits) * mpmath.exp(-mpmath.mpf(loss.numerator) / loss.denominator) / weight
        edge = int(mpmath.floor(share * mpmath.power(2, 96)))
        source = Scripted(iter([edge, more, 0]))
        uniform = (mpmath.mpf(edge) + mpmath.mpf(more) / mpmath.power(2, 96)) / mpmath.power(2, 96)
        assert _keep(loss, scale_bits, weight, source) == (uniform < share)
        assert source.calls >= 2


CASES = {
    "walk": (np.cumsum(np.random.default_rng(5).integers(-3, 4, size=40)), Fraction(1, 5)),
    "steep": (np.array([0, -1, -2, -3, -9, -2, -1]), Fraction(3, 2)),
    "flat": (np.zeros(11, dtype=np.int64), Fraction(1)),
    "chunks": (np.cumsum(np.random.default_rng(6).integers(-1, 2, size=150)), Fraction(1, 5)),
}


def pvalue(utilities: np.ndarray, rate: Fraction, count: int, seed: int, drawn_rate: Fraction | None = None) -> float:
    source = seeded_source(np.random.default_rng(seed))
    draws = [draw_exponential(utilities, drawn_rate or rate, source) for _ in range(count)]
    observed = np.bincount(draws, minlength=len(utilities)).astype(float)
    expected = exact_law(utilities, rate) * count
    rare = expected < 20
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0
    return float(stats.chisquare(observed[keep], expected[keep] * observed.sum() / expected[keep].sum()).pvalue)


@pytest.mark.statistical
@pytest.mark.parametrize("name", CASES)
def test_draws_have_the_law_of_the_mechanism(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exponential, "CHUNK", 32)
    assert pvalue(*CASES[name], count=8_000, seed=11) > BAR


@pytest.mark.statistical
def test_a_rate_that_is_a_fifth_off_is_rejected() -> None:
    utilities, rate = CASES["steep"]
    assert pvalue(utilities, rate, count=8_000, seed=11, drawn_rate=rate * Fraction(6, 5)) < BAR


def test_ten_million_candidates_and_far_values() -> None:
    utilities = np.full(10_000_000, -(1 << 61), dtype=np.int64)
    utilities[7_654_321] = 0
    assert draw_exponential(utilities, Fraction(1, 512), seeded_source(np.random.default_rng(1))) == 7_654_321
