"""release="decision", verified: every data set, every neighbour, all that a release holds. Broken ones are caught."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

import privatest as pt
from privatest.decision import PrivateTest
from privatest.errors import InvalidInput
from privatest.privacy import Pure, Stair
from tests.contracts.exhaustive import neighbouring_totals

CASES: list[tuple[Any, Any, float, int, float | None]] = [
    ([0.6, 0.4], [0.4, 0.6], 1, 4, None),
    ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], 0.5, 3, None),
    ([0.0, 0.5, 0.5], [0.1, 0.6, 0.3], 2, 3, 0.2),
]
REACH = 4


@cache
def designed(case: int) -> PrivateTest:
    null, alternative, epsilon, n, alpha = CASES[case]
    return pt.design(null, alternative, epsilon=epsilon, n=n, alpha=alpha, clamp="paper", release="decision")


def release_law(test: PrivateTest, total: int) -> dict[tuple[str, bool], float]:
    """log-probability of every whole release, and of what the coin said, where the level is near 0."""
    spacing, epsilon = test.noise.spacing, test.noise.privacy_loss(test.noise.spacing)
    found: dict[tuple[str, bool], float] = {}
    for tossed in (False, True) if test.coin is not None else (False,):
        cutoff = test.coin.cutoff if tossed and test.coin is not None else test.cutoff
        first = math.ceil((cutoff - total) / spacing)
        for g in range(first - REACH, first + REACH):
            drawn = test.draw_of(Fraction(total + spacing * g), tossed=tossed)
            told = json.dumps([drawn, test.release(drawn).to_dict()])
            found[told, tossed] = math.log(math.tanh(epsilon / 2)) - epsilon * abs(g)
    return found


def largest_log_ratio(test: PrivateTest, n: int) -> float:
    """Over all data sets, all neighbours and all releases: infinite where one data set cannot give another's."""
    scores = sorted(set(test.score.table.tolist()))
    pairs = neighbouring_totals(scores, n)
    laws = {total: release_law(test, total) for total in {t for pair in pairs for t in pair}}
    worst = 0.0
    for a, b in pairs:
        # The outermost two levels of a list may lie beyond the other's.
        inner = list(laws[a].items())
        size = len(inner) // (2 if test.coin is not None else 1)
        for place, (told, log) in enumerate(inner):
            if 2 <= place % size < size - 2:
                worst = max(worst, abs(log - laws[b].get(told, math.inf)))
    return worst


@pytest.mark.parametrize("case", range(len(CASES)))
def test_every_release_of_every_data_set_and_neighbour(case: int) -> None:
    test, epsilon = designed(case), CASES[case][2]
    ratio = largest_log_ratio(test, CASES[case][3])
    print(f"{test.null} against {test.alternative}: largest log-ratio / epsilon {ratio / epsilon:.12f}")
    assert epsilon * 0.999999 <= ratio <= epsilon * (1 + 1e-12)


def test_half_the_noise_is_caught_twice() -> None:
    test, (_, _, epsilon, n, _) = designed(0), CASES[0]
    half = Stair(Fraction(epsilon), test.score.width // 2)
    with pytest.raises(InvalidInput, match="privacy loss of 2"):
        PrivateTest("stair", test.score, half, test.cutoff, Pure(epsilon), n)
    broken = PrivateTest("stair", test.score, half, test.cutoff, Pure(2 * epsilon), n)
    assert largest_log_ratio(broken, n) > 1.9 * epsilon
