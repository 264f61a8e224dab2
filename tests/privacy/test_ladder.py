"""Ladders: F(t + 1) = h(F(t)) at every rung, symmetric, and nothing between the kinks of straight notions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privatest.notions import approx, gdp, kl, pure, renyi, tv, zcdp
from privatest.privacy import Notion
from privatest.privacy.decision_chain import chain, make_ladder
from privatest.privacy.notion import exact_line, tangent

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


GRID = np.concatenate([np.geomspace(1e-9, 0.5, 12), 1 - np.geomspace(1e-9, 0.4, 12)])


@pytest.mark.parametrize("notion", [gdp(1), gdp(0.1), kl(0.1), kl(2), renyi(2, 0.5), renyi(10, 1), zcdp(0.5)], ids=str)
def test_a_tangent_touches_and_is_nowhere_below(notion: Notion) -> None:
    values = notion.h(GRID)
    for p in (1e-6, 0.1, 0.3, 0.5, 0.9):
        q, slope = tangent(notion, p, 1 - p)
        assert q == pytest.approx(float(notion.h(p)), rel=1e-12)
        assert np.all(q + slope * (GRID - p) >= values - 1e-12)
    for p in (0.001, 0.1, 0.3):  # another slope cuts
        q, slope = tangent(notion, p, 1 - p)
        near = p * np.array([0.9999, 1.0001])
        for times in (0.98, 1.02):
            assert not np.all(q + times * slope * (near - p) >= notion.h(near) - 1e-12)


@pytest.mark.parametrize("notion", [pure(1), approx(0.5, 0.05), approx(0, 0.1), tv(0.25)], ids=str)
def test_an_exact_line_is_h_rounded_to_the_safe_side(notion: Notion) -> None:
    line, units = exact_line(notion), 1 << 40
    assert line is not None
    for p in (0, 1, units // 1000, units // 3, units // 2, units - units // 50, units):
        most, least = line.most(p, units), line.least(p, units)
        assert most / units == pytest.approx(float(notion.h(p / units)), abs=1e-11)
        assert least / units == pytest.approx(1 - float(notion.h(1 - p / units)), abs=1e-11)
        # By the definition, in rationals; one unit more breaks it.
        for q, kept in ((most, True), (most + 1, most == units)):
            if q <= units:
                here, there = Fraction(p, units), Fraction(q, units)
                holds = there <= line.slope * here + line.height
                mirror = 1 - here <= line.slope * (1 - there) + line.height
                assert (holds and mirror) == kept
