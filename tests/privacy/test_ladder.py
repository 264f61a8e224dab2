"""Ladders: F(t + 1) = h(F(t)) at every rung, symmetric, and nothing between the kinks of straight notions."""

from __future__ import annotations

import numpy as np
import pytest

from privatest.privacy import Notion, approx, gdp, kl, pure, renyi, tv, zcdp
from privatest.privacy.ladder import chain, make_ladder

NOTIONS = [
    pure(1),
    approx(1, 1e-6),
    approx(0.5, 0.05),
    tv(0.1),
    tv(0.3),
    gdp(1),
    gdp(0.2),
    kl(0.1),
    renyi(2, 0.5),
    zcdp(1),
]


@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_one_record_up_is_one_step_of_h(notion: Notion) -> None:
    ladder = make_ladder(notion, 4)
    rungs = np.arange(-len(ladder.rests) - 9, len(ladder.rests) + 9)
    below = ladder.below(rungs)
    inside = below > 1e-100  # kl comes near the end of doubles in a few steps
    np.testing.assert_allclose(ladder.below(rungs + ladder.fine)[inside], notion.h(below[inside]), atol=1e-14, rtol=0)
    assert np.all(ladder.below(rungs + ladder.fine) <= notion.h(below) + 1e-14)
    np.testing.assert_allclose(ladder.above(ladder.fine - rungs), below, atol=1e-16)
    assert np.all(np.diff(below) >= 0)
    assert below[0] == 0
    assert below[-1] == 1


@pytest.mark.parametrize("notion", [approx(0.5, 0.05), tv(0.3), pure(0.7)], ids=str)
def test_between_the_rungs_of_a_straight_notion_chains_are_linear(notion: Notion) -> None:
    ladder = make_ladder(notion, 4)
    for rung in range(ladder.fine):
        ends = [chain(notion, *ladder.between(rung, share)) for share in (0.0, 1.0)]
        middle = chain(notion, *ladder.between(rung, 0.3))
        for i, value in enumerate(middle):
            first, last = (end[i] if i < len(end) else 0.0 for end in ends)
            assert value == pytest.approx(0.7 * first + 0.3 * last, abs=1e-14)
