"""Chains of decisions: every pair of neighbouring levels meets its notion, tightly; draws have exactly that law."""

from __future__ import annotations

import contextlib
import itertools
import math
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest

from privatest.privacy import Approx, Chain, Gdp, Kl, Notion, Renyi, Tv, Zcdp, decision_chain
from privatest.privacy.decision_chain import BITS, ONE, chain_levels, chain_starts, decision_noise, proven

pytest.importorskip("flint")

NOTIONS = [
    Approx(Fraction(1, 2), Fraction(1, 20)),
    Tv(Fraction(1, 10)),
    Gdp(Fraction(1, 2)),
    Zcdp(Fraction(1, 2)),
    Renyi(2, Fraction(1, 2)),
    Kl(Fraction(1, 2)),
]
every_notion = pytest.mark.parametrize("notion", NOTIONS, ids=str)


class Fixed:
    simulated = True

    def __init__(self, value: int) -> None:
        self.value = value

    def bits(self, k: int) -> int:
        assert k == BITS
        return self.value

    def below(self, n: int) -> int:
        raise AssertionError(n)


@cache
def made(notion: Notion, width: int = 5) -> Chain:
    noise = decision_noise(notion, width)
    assert isinstance(noise, Chain)
    return noise


def allowed(notion: Notion, p: Fraction) -> float:
    """h(p), in doubles."""
    return notion.step(float(p), float(1 - p))[0]


@every_notion
def test_neighbouring_levels_meet_the_notion_and_waste_nothing(notion: Notion) -> None:
    for start in chain_starts(notion):
        _, heights = chain_levels(notion, start)
        for low, high in itertools.pairwise(heights):
            p, q = Fraction(low, ONE), Fraction(high, ONE)
            assert p < q
            assert float(q) <= allowed(notion, p) + 1e-12
            assert float(1 - p) <= allowed(notion, 1 - q) + 1e-12
            if 1e-6 < p < 1 - 1e-6:
                assert float(q) >= allowed(notion, p) - 1e-9
        if not isinstance(notion, Approx | Tv):
            assert 0 < heights[0] < ONE  # never impossible beside possible
            assert 0 < heights[-1] < ONE


@pytest.mark.parametrize("notion", [notion for notion in NOTIONS if not notion.tradeoff], ids=str)
def test_what_is_proven_is_true_and_more_is_not_proven(notion: Notion) -> None:
    _, heights = chain_levels(notion, Fraction(1, 2))
    low, high = heights[len(heights) // 2], heights[len(heights) // 2 + 1]
    assert proven(notion, low, high)
    assert not proven(notion, low, high + (ONE - high) // 1000)


@every_notion
def test_a_draw_says_null_exactly_with_the_chance_of_the_level(notion: Notion) -> None:
    """At the very thresholds of a uniform integer of 192 bits: nothing is rounded."""
    noise, cutoff = made(notion), Fraction(1, 2)
    first, heights = noise._heights
    for level in range(first, first + len(heights)):
        total = 5 * level - 4  # of level: ceil((total - cutoff) / 5) = level
        assert math.ceil((total - cutoff) / 5) == level
        height = heights[level - first]
        for uniform, null in ((height - 1, True), (height, False)):
            if 0 <= uniform < ONE:
                assert (total + noise.draw(Fixed(uniform)) > cutoff) == null


@every_notion
def test_the_law_is_that_of_the_levels(notion: Notion) -> None:
    noise = made(notion)
    first, heights = noise._heights
    x = np.arange(-40, 41)
    levels = [min(max(-(value // 5), first), first + len(heights) - 1) for value in x.tolist()]
    above = np.array([heights[level - first] / ONE for level in levels])
    np.testing.assert_allclose(noise.sf(x), above, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(noise.mirrored.cdf(-x - 1), noise.sf(x), rtol=1e-12, atol=1e-300)
    values = np.arange(-600, 601)
    masses = noise.pmf(values)
    assert math.fsum(masses) == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(masses, noise.sf(values - 1) - noise.sf(values), rtol=0, atol=1e-12)
    for t in (0.1, 1.0):
        assert complex(noise.characteristic(t)) == pytest.approx(complex(np.exp(1j * t * values) @ masses), abs=1e-9)
    assert noise.variance == pytest.approx(masses @ values**2 - (masses @ values) ** 2, rel=1e-9)


def zcdp_excess(low: int, high: int, rho: Any) -> Any:
    """The largest excess of a divergence over rho times its order, both ways, for two chances in units of 2^-192."""
    one, other = (mpmath.mpf(value) / ONE for value in (low, high))
    found = []
    for a, b in ((one, other), (other, one)):

        def excess(s: Any, a: Any = a, b: Any = b) -> Any:
            return mpmath.log(a * (a / b) ** s + (1 - a) * ((1 - a) / (1 - b)) ** s) / s - rho * (s + 1)

        start = max((mpmath.mpf(i) / 4 for i in range(1, 80)), key=excess)
        found.append(excess(start))
        with contextlib.suppress(ValueError, ZeroDivisionError):  # it may fall from order 1 on
            peak = mpmath.findroot(lambda s, f=excess: mpmath.diff(f, s), start)
            found.append(excess(peak) if peak > 0 else found[-1])
        found.append(a * mpmath.log(a / b) + (1 - a) * mpmath.log((1 - a) / (1 - b)) - rho)
    return max(found)


def test_the_largest_chance_that_is_proven_of_zcdp_is_the_largest_there_is() -> None:
    """To 2^-65, against divergences of 40 digits: a proof that gives in at last would be found."""
    notion, low = Zcdp(Fraction(1, 2)), int(Fraction(0.4) * ONE)
    about = int(Fraction(notion.step(0.4, 0.6)[0]) * ONE)
    with mpmath.workdps(40):
        fits, exceeds = about - (ONE >> 33), about + (ONE >> 33)
        assert zcdp_excess(low, fits, mpmath.mpf(1) / 2) <= 0 < zcdp_excess(low, exceeds, mpmath.mpf(1) / 2)
        while exceeds - fits > ONE >> 72:
            middle = (fits + exceeds) // 2
            inside = zcdp_excess(low, middle, mpmath.mpf(1) / 2) <= 0
            fits, exceeds = (middle, exceeds) if inside else (fits, middle)
    assert proven(notion, low, fits - (ONE >> 65))
    assert not proven(notion, low, exceeds + (ONE >> 70))


@pytest.mark.parametrize("place", range(6))
def test_levels_leave_if_both_directions_meet_the_notion(place: int) -> None:
    """Levels whose chances rise much in the first step, or in the last, or in one between."""
    masses = [Fraction(1, 10)] * 6
    masses[place] = Fraction(1, 2)
    heights = [0, *itertools.accumulate(math.floor(mass * ONE) for mass in masses)]
    heights[-1] = ONE
    apart = [0.0, *map(float, masses), 0.0]
    for epsilon, delta in ((1.5, 0.11), (1.5, 0.27), (0.5, 0.2), (0.5, 0.35)):
        ways = [
            sum(max(q - math.exp(epsilon) * p, 0) for p, q in itertools.pairwise(way)) for way in (apart, apart[::-1])
        ]
        assert decision_chain.levels_leave(Approx(epsilon, delta), tuple(heights)) == (max(ways) <= delta)


@pytest.mark.parametrize("notion", [Tv(Fraction(1, 10)), Approx(Fraction(1, 2), Fraction(1, 20))], ids=str)
def test_levels_leave_only_where_that_is_proven(notion: Notion) -> None:
    """A unit of 2^-192 too much on one level, an end that is cut off, or another notion: only the decision leaves."""
    noise = decision_noise(notion, 5)
    assert isinstance(noise, Chain)
    heights = noise._heights[1]
    assert decision_chain.levels_leave(notion, heights)
    middle = len(heights) // 2
    much = 1 + int(notion.exact[-1] * decision_chain.ONE) >> 40
    assert not decision_chain.levels_leave(notion, (*heights[:middle], heights[middle] + much, *heights[middle + 1 :]))
    assert not decision_chain.levels_leave(notion, heights[1:])
    assert not decision_chain.levels_leave(notion, heights[:-1])
    assert not decision_chain.levels_leave(Gdp(1), heights)
    tight = type(notion)(*notion.exact[:-1], notion.exact[-1] * Fraction(10**9 - 1, 10**9))
    assert not decision_chain.levels_leave(tight, heights)
