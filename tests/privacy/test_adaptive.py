"""The level for a test that was chosen by private answers: its formula, its best split, and an attack on it."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from privatest.errors import InvalidInput
from privatest.privacy import Gdp, Kl, Notion, Pure, Renyi, Zcdp
from privatest.privacy.adaptive_reuse import adaptive_level


@pytest.mark.parametrize("notion", [Gdp(0.01), Zcdp(5e-5), Kl(5e-5), Renyi(2, 5e-5)], ids=str)
def test_other_notions_go_by_mutual_information(notion: Notion) -> None:
    found = adaptive_level(0.05, privacy=notion, n=1000)
    p = found.level
    assert 0 < p < 0.05
    assert 0.05 * math.log(0.05 / p) + 0.95 * math.log(0.95 / (1 - p)) == pytest.approx(0.05, rel=1e-6)
    assert (found.split, found.bound) == (None, "mutual information")


def test_it_says_when_it_is_of_no_use() -> None:
    found = adaptive_level(0.05, epsilon=1, n=1000)
    assert found.vacuous
    assert "1/sqrt(n) = 0.032" in found.note
    assert not adaptive_level(0.05, epsilon=0.03, n=1000).vacuous
    assert adaptive_level(0.05, privacy="zcdp(10)", n=1000).level == 0


@pytest.mark.parametrize("privacy", ["approx(1, 1e-6)", "tv(0.1)", Pure(math.inf)])
def test_what_has_no_stated_bound_is_refused(privacy: object) -> None:
    with pytest.raises(InvalidInput, match="no bound with stated constants"):
        adaptive_level(0.05, privacy=privacy, n=100)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0])
def test_the_best_attack_stays_below_alpha_by_enumeration(epsilon: float) -> None:
    """Eight fair bits, each told through randomised response; then the test of that level that likes the answers best.

    For each answer the attacker takes the data sets that have become most likely, up to the level: no choice does more.
    """
    n, alpha = 8, 0.3
    up = 1 / (1 + math.exp(-epsilon))
    data = np.array(list(product([0, 1], repeat=n)))
    given = up ** (data == 0).sum(axis=1) * (1 - up) ** (data == 1).sum(axis=1)  # of data given the answer 0...0

    def attained(level: float) -> float:
        best = np.sort(given)[::-1]
        whole = int(level * len(best))
        return float(best[:whole].sum() + (level * len(best) - whole) * best[whole])

    for found in (
        adaptive_level(alpha, epsilon=epsilon, n=n),
        adaptive_level(alpha, privacy=Kl(epsilon * math.tanh(epsilon / 2)), n=n),
    ):
        assert attained(found.level) <= alpha
    assert attained(alpha) > alpha  # naively it is exceeded: the attack is one
