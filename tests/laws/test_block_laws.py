"""Laws of block totals: Fourier against plain convolution; bins that lose nothing and overlap nowhere."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

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


def test_large_blocks_agree_with_the_normal_law() -> None:
    found = BlockLaws.of(DIE, None, 10_000, (10_000,))
    mean = float(found.laws[0] @ found.values)
    deviation = float(np.sqrt(found.laws[0] @ (found.values - mean) ** 2))
    assert mean == pytest.approx(10_000 * DIE.means[0], rel=1e-9)
    assert deviation == pytest.approx(np.sqrt(10_000 * DIE.variances[0]), rel=1e-6)
