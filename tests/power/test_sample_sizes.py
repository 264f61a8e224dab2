"""P or Q in one call.

Sample sizes: the table of the design document, the definition, and impossible targets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest.errors import Infeasible, InvalidInput

COINS = "bernoulli(0.2)", "bernoulli(0.8)"
DATA = [0, 0, 1, 0, 0] * 8


def test_one_call_is_the_design_for_as_many_records_and_its_run() -> None:
    made = pt.design(*COINS, epsilon=1, n=40, alpha=0.05)
    for seed in range(5):
        found = pt.decide(DATA, *COINS, epsilon=1, alpha=0.05, rng=np.random.default_rng(seed))
        assert found == made.run(DATA, rng=np.random.default_rng(seed))
        assert found.design == made
    assert pt.decide(DATA, *COINS, epsilon=1).private


def test_a_number_that_is_not_public_is_asked_for_before_the_data_are_counted() -> None:
    class Untouchable:
        """Whatever is asked of it fails."""

        def __getattribute__(self, name: str) -> object:
            raise AssertionError(f"the data were looked at: {name}")

    with pytest.raises(InvalidInput, match="n is missing: with neighbours='add-remove'"):
        pt.decide(Untouchable(), *COINS, epsilon=1, neighbours="add-remove")
    assert pt.decide(DATA, *COINS, epsilon=1, neighbours="add-remove", n=30).n == 30


FAIR = ([0.6, 0.4], [0.4, 0.6])
RARE = ([1.0, 0.0], [0.9, 0.1])
THREE = ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2])
NORMAL = (stats.norm(0, 1), stats.norm(0.2, 1))


@pytest.mark.parametrize("epsilon", [0.3, 1, 3])
@pytest.mark.parametrize("pair", [FAIR, RARE, THREE, ([0.1, 0.9], [0.3, 0.7])])
@pytest.mark.parametrize("test", ["tight", "ncllr"])
def test_it_and_every_larger_n_meet_the_target_and_one_fewer_does_not(pair, epsilon, test) -> None:  # type: ignore[no-untyped-def]
    if pair is RARE and test == "ncllr":
        return
    n = pt.sample_size(*pair, epsilon=epsilon, test=test, clamp="paper")

    def advantage(m: int) -> float:
        return pt.design(*pair, epsilon=epsilon, n=m, test=test, clamp="paper").advantage

    assert advantage(n - 1) < 2 / 3 if n > 1 else True
    assert all(advantage(m) >= 2 / 3 for m in range(n, n + 60))


def test_the_design_at_the_sample_size_meets_both_error_targets() -> None:
    test = pt.design(*NORMAL, epsilon=1, alpha=0.05, beta=0.1)
    assert test.alpha <= 0.05
    assert test.beta <= 0.1
    assert test.n == pt.sample_size(*NORMAL, epsilon=1, alpha=0.05, beta=0.1)
    fewer = pt.design(*NORMAL, epsilon=1, n=test.n - 1, alpha=0.05)
    assert fewer.beta > 0.1


def test_a_given_alpha_is_used_up_but_not_exceeded() -> None:
    for alpha in (0.2, 0.01, 1e-4):
        test = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=0.5, n=80, alpha=alpha)
        assert 0.98 * alpha < test.alpha <= alpha


def test_min_epsilon_is_the_inverse_of_sample_size() -> None:
    epsilon = pt.min_epsilon(*FAIR, n=29)
    assert pt.sample_size(*FAIR, epsilon=epsilon) <= 29
    assert pt.sample_size(*FAIR, epsilon=epsilon * 0.999) > 29
    tight = pt.min_epsilon(*NORMAL, n=200)
    assert pt.design(*NORMAL, epsilon=tight, n=200).advantage >= 2 / 3
    assert pt.design(*NORMAL, epsilon=tight * 0.99, n=200).advantage < 2 / 3
    with pytest.raises(Infeasible, match="n=50"):
        pt.min_epsilon(*NORMAL, n=50)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"advantage": 1.2}, r"advantage=1.2 must lie in \(0, 1\)"),
        ({"advantage": 0}, r"advantage=0 must lie in \(0, 1\)"),
        ({"alpha": 0.05}, "beta is missing"),
        ({"beta": 0.05}, "alpha is missing"),
        ({"alpha": 0.6, "beta": 0.5}, "add up to less than 1"),
        ({"alpha": 0.1, "beta": 0.1, "advantage": 0.5}, "one or the other"),
        ({"test": "tigth"}, "Did you mean 'tight'"),
        ({"clamp": "papr"}, "Did you mean 'paper'"),
        ({"clamp": (1, -1)}, "first end below its second"),
        ({"clamp": (1, 2, 3)}, "must be 'tuned', 'paper' or a pair"),
        ({"clamp": "paper", "test": "llr"}, "does not apply"),
        ({"epsilon": 0}, "epsilon=0 must be greater than 0"),
        ({"epsilon": float("nan")}, "must be finite"),
        ({"epsilon": float("inf")}, "must be finite"),
        ({"epsilon": "1"}, "must be a number"),
        ({"threshold": float("inf")}, "threshold=inf must be finite"),
    ],
)
def test_bad_arguments_name_the_rule(arguments, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidInput, match=message):
        pt.sample_size(*FAIR, **{"epsilon": 1, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n=0 must be a whole number"),
        ({"n": 2.5}, "n=2.5 must be a whole number"),
        ({"n": True}, "n=True"),
        ({"n": 10, "beta": 0.1}, "Leave one of them out"),
        ({"n": 10, "alpha": 1.5}, r"alpha=1.5 must lie in \(0, 1\)"),
        ({"n": 10, "alpha": 0.1, "threshold": 0}, "Give one of them"),
        ({"n": 2**60}, "64 bits"),
        ({"n": 10, "neighbours": "add"}, "neighbours='add'"),
    ],
)
def test_bad_designs_name_the_rule(arguments, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidInput, match=message):
        pt.design(*FAIR, epsilon=1, **arguments)


@pytest.mark.parametrize(
    ("privacy", "n"),
    [
        ("pure(1)", 29),
        ("approx(1, 1e-6)", 29),
        ("approx(0.5, 0.05)", 32),
        ("tv(0.1)", 43),
        ("tv(0.25)", 28),
        ("gdp(1)", 27),
        ("gdp(0.5)", 34),
    ],
)
def test_the_best_decision_on_two_points_under_every_notion(privacy: str, n: int) -> None:
    """DESIGN 7.1; benchmarks/bench_stair.py has the optimum beside it."""
    if privacy.startswith("gdp"):
        pytest.importorskip("flint")
    assert pt.sample_size([0.6, 0.4], [0.4, 0.6], privacy=privacy, release="decision") == n


SMALL = 0.05**1.5
THREE_POINTS = [0, 0.5, 0.5], [2 * SMALL, 0.55 - SMALL, 0.45 - SMALL]


@pytest.mark.parametrize(
    ("pair", "words", "smaller", "n"),
    [
        # Each was one more; the linear program's numbers are 51 and, for both of the last, 117.
        (("bernoulli(0.3)", "bernoulli(0.45)"), {"privacy": "tv(0.15)", "release": "decision"}, "release", 51),
        (THREE_POINTS, {"epsilon": 1}, "clamp", 120),
        (THREE_POINTS, {"epsilon": 1, "release": "decision"}, "clamp", 117),
    ],
)
def test_the_best_that_is_known_is_taken(pair: Any, words: dict[str, Any], smaller: str, n: int) -> None:
    """A decision may be that of the noisy statistic, a tuned clamp may be the paper's: neither needs more records."""
    of_smaller = {**words, smaller: {"release": "statistic", "clamp": "paper"}[smaller]}
    assert pt.sample_size(*pair, **words) == n
    assert pt.sample_size(*pair, **of_smaller) >= n
    here, there = (pt.design(*pair, n=n - 1, **each).advantage for each in (words, of_smaller))
    assert here >= there - 1e-9


def test_of_sets_every_larger_number_of_records_meets_the_goal() -> None:
    """Beyond the sample size, laws that are the worst for a nearby number of records stand in for those of each."""
    sets = "poisson(mean<=2.5)", "poisson(mean>=3)"
    n = pt.sample_size(*sets, epsilon=1)
    assert pt.design(*sets, epsilon=1, n=n - 1).advantage < 2 / 3
    assert all(pt.design(*sets, epsilon=1, n=m).advantage >= 2 / 3 for m in range(n, n + 6))


@pytest.mark.parametrize(("p", "q", "n"), [(0.76, 0.4, 13), (0.48, 0.11, 12), (0.54, 0.9, 13), (0.56, 0.73, 61)])
def test_a_smaller_number_of_records_before_a_dip_of_the_power_is_not_the_sample_size(
    p: float, q: float, n: int
) -> None:
    """With two records fewer each of these tests meets the goal, with one fewer it misses the goal again."""
    assert pt.sample_size([p, 1 - p], [q, 1 - q], epsilon=3, test="llr", alpha=0.1, beta=0.1) == n
