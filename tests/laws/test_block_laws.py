"""Laws of block totals: Fourier against plain convolution; bins that lose nothing and overlap nowhere."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privatest.errors import Infeasible
from privatest.laws.block_laws import BlockLaws, ScoreLaw
from privatest.privacy import Tulap

COIN = ScoreLaw(np.array([0, 1]), np.array([0.2, 0.8]), np.array([0.8, 0.2]), 1)
DIE = ScoreLaw(np.array([0, 3, 4, 9]), np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.4, 0.4, 0.2, 0.0]), 10)


def convolved(law: ScoreLaw, old: int, new: int) -> np.ndarray:
    """Probabilities of the totals from 0 on."""
    total = np.ones(1)
    for mass in [law.p] * old + [law.q] * new:
        dense = np.zeros(law.support[-1] + 1)
        dense[law.support] = mass
        total = np.convolve(total, dense)
    return total


@pytest.mark.parametrize("law", [COIN, DIE])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(1), Fraction(5)])
@pytest.mark.parametrize("block", [1, 2, 7])
def test_noisy_totals_by_plain_convolution(law: ScoreLaw, epsilon: Fraction, block: int) -> None:
    noise = Tulap(epsilon, law.width)
    olds = (0, block // 2, block)
    found = BlockLaws.of(law, noise, block, olds)
    for row, old in enumerate(olds):
        totals = convolved(law, old, block - old)
        edges = found.first + found.bin_width * np.arange(found.count - 1)
        # Pr[floor(S + N) < edge], floor(N) = N - offset
        below = np.array(
            [totals @ noise.cdf(edge - 1 - np.arange(len(totals)) + float(noise.offset)) for edge in edges]
        )
        expected = np.diff(np.concatenate([[0.0], below, [1.0]]))
        # The outermost bins miss what the window left out.
        np.testing.assert_allclose(found.laws[row], expected, atol=2e-10)
    np.testing.assert_allclose(found.laws.sum(axis=1), 1, rtol=1e-12)


def test_totals_without_noise() -> None:
    found = BlockLaws.of(DIE, None, 5, (5, 0, 2))
    for row, old in enumerate((5, 0, 2)):
        expected = np.zeros(found.count)
        totals = convolved(DIE, old, 5 - old)
        expected[-found.values[0] : len(totals) - found.values[0]] = totals
        np.testing.assert_allclose(found.laws[row], expected, atol=1e-14)


@pytest.mark.parametrize("width", [1, 4])
def test_bins_hold_the_values_they_say(width: int) -> None:
    law = ScoreLaw(np.array([0, width]), np.array([0.2, 0.8]), np.array([0.8, 0.2]), width)
    noise = Tulap(Fraction(1, 20), width)
    found = BlockLaws.of(law, noise, 60, (0, 60))
    assert (found.bin_width > 1) == (width > 1)
    floors = np.arange(found.first - 50, found.first + found.bin_width * found.count + 50)
    bins = found.bins(np.zeros(len(floors), dtype=np.int64), 2 * floors + int(2 * noise.offset))
    assert bins[0] == 0
    assert bins[-1] == found.count - 1
    assert np.all(np.isin(np.diff(bins), (0, 1)))
    inner = np.bincount(bins)[1:-1]
    assert np.all(inner == found.bin_width)
    assert bins[np.flatnonzero(floors == found.first)[0]] == 1


def test_large_blocks_agree_with_the_normal_law() -> None:
    found = BlockLaws.of(DIE, None, 10_000, (10_000,))
    mean = float(found.laws[0] @ found.values)
    deviation = float(np.sqrt(found.laws[0] @ (found.values - mean) ** 2))
    assert mean == pytest.approx(10_000 * DIE.means[0], rel=1e-9)
    assert deviation == pytest.approx(np.sqrt(10_000 * DIE.variances[0]), rel=1e-6)


def test_samples_follow_the_law() -> None:
    found = BlockLaws.of(COIN, Tulap(Fraction(1), 1), 6, (0, 3, 6))
    drawn = found.sample(1, (200_000,), np.random.default_rng(1))
    np.testing.assert_allclose(np.bincount(drawn, minlength=found.count) / 200_000, found.laws[1], atol=0.006)


@pytest.mark.parametrize("bins", [1, 2, 40, 9000])
def test_draws_are_the_bins_of_uniform_numbers(bins: int) -> None:
    """Whatever the table that finds most of them at once; of 9000 bins most cells of it hold several."""
    law = np.random.default_rng(bins).dirichlet(np.full(bins, 0.5))
    drawn = BlockLaws(1, (0,), 0, 1, law[None, :]).sample(0, (50, 90), np.random.default_rng(7))
    uniform = np.random.default_rng(7).random((50, 90))
    ends = np.append(np.cumsum(law)[:-1], 2.0)
    assert np.array_equal(drawn, np.searchsorted(ends, uniform, side="right"))


def test_totals_of_more_values_than_memory_holds_are_refused() -> None:
    with pytest.raises(Infeasible, match="Use a larger epsilon"):
        BlockLaws.of(COIN, Tulap(Fraction(1, 10**9), 1), 1000, (0, 1000))
