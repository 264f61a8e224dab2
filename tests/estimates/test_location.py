"""The first of two steps: what it adds to the misses of the second, by the sum that its module states."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from privatest.estimates.location import PLACES, STARTS, UNSEEN, Location
from privatest.hypotheses.one_parameter import OneParameter
from privatest.privacy.notion import make_neighbourhood, make_notion

FAMILIES = ["normal(mean=?, sd=1)", "cauchy(?, 1)", "normal(mean=?, sd in [0.8, 1.2])"]


def one_by_one(location: Location, asked: OneParameter, value: float, n: int, level: float) -> float:
    """The sum over bins of the smaller of both chances, bin by bin and start by start."""
    s, logs = location._tilts
    worst = 0.0
    box = asked.box(value, value)
    for corner in box.corners():
        member, total = box.member(corner), 0.0
        ends = member.ppf(np.array([UNSEEN, 1 - UNSEEN]))  # type: ignore[attr-defined]
        for start in range(STARTS):
            first, last = location.place_of(start, ends).tolist()
            inner = location.begins(start, np.arange(first + 1, last + 1))
            below = [0.0, *member.cdf(inner).tolist(), 1.0]  # type: ignore[attr-defined]
            masses = [max(after - before, 0.0) for before, after in itertools.pairwise(below)]
            most = max(masses)

            def beats(mass: float, most: float = most) -> float:
                ahead = np.maximum(mass * np.expm1(s) + most * np.expm1(-s), -1 + 1e-15)
                return float(np.exp(min(float(np.min(n * np.log1p(ahead) + 2 * logs)), 0.0)))

            chosen = masses.index(most)
            total += sum(min(1.0 if i == chosen else beats(mass), level) for i, mass in enumerate(masses))
            total += min((location.bins - len(masses)) * beats(2 * UNSEEN), 1.0)
        worst = max(worst, total / STARTS)
    return worst


def located(family: str, epsilon: float, length: float) -> tuple[OneParameter, Location]:
    asked = OneParameter.of(family, (-40.0, 40.0))
    return asked, Location.over(*asked.inner, length, make_notion(epsilon, None), make_neighbourhood("replace", 1))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("level", [0.0, 0.01, 0.04])
def test_misses_are_the_sum_over_all_bins(family: str, level: float) -> None:
    asked, location = located(family, 0.5, 4.0)
    for value in (-39.0, 0.3, 17.5):
        assert location.misses(asked, value, 300, level) == pytest.approx(
            one_by_one(location, asked, value, 300, level), rel=1e-9, abs=1e-15
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_the_second_steps_level_is_the_largest_that_is_enough_at_every_place(family: str) -> None:
    n, level = 400, 0.95
    asked, location = located(family, 0.5, 4.0)
    second = location.second_level(asked, n, level)
    assert second is not None
    cell = location.length / STARTS
    places = [cell * place / PLACES for place in range(0, PLACES, 4)]  # the middle of the range is 0

    def worst(share: float) -> float:
        return max(location.misses(asked, value, n, share) for value in places)

    most = (1 - level) * (1 - 1e-4)
    assert worst(1 - second) <= most
    every = [cell * place / PLACES for place in range(PLACES)]
    assert max(location.misses(asked, value, n, 1 - second + (1 - level) / 2**12) for value in every) > most
