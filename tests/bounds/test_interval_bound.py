"""What no private interval can beat: below every interval of ours, above the two-point bound, right without privacy.

The least type II error of any test: by formulas, against the best of all tests found by sorting ratios.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import privatest as pt
from privatest.bounds.interval_bound import least_missed
from privatest.bounds.lower_bound import advantage_bound, missed_bound
from privatest.decision.construction import unclamped
from privatest.hypotheses import make_pair
from privatest.privacy import Pure


def sorted_out(null: Any, alternative: Any, alpha: float) -> float:
    """Give up the null where the alternative is likelier by most, and flip a coin at the last value."""
    there = null + alternative > 1e-30
    null, alternative = null[there], alternative[there]
    ratio = alternative / np.maximum(null, 1e-40)
    order = np.argsort(-ratio, kind="stable")
    used, found = 0.0, 0.0
    for i in order:
        part = 1.0 if null[i] <= alpha - used else (alpha - used) / null[i]
        used, found = used + part * null[i], found + part * alternative[i]
        if part < 1:
            break
    return 1 - found


K = np.arange(0, 4000)
TOTALS = {
    ("bernoulli(0.3)", "bernoulli(0.4)"): (stats.binom(30, 0.3), stats.binom(30, 0.4)),
    ("bernoulli(0.3)", "bernoulli(0.1)"): (stats.binom(30, 0.3), stats.binom(30, 0.1)),
    ("bernoulli(0.02)", "bernoulli(0.01)"): (stats.binom(30, 0.02), stats.binom(30, 0.01)),
    ("binomial(4, 0.3)", "binomial(4, 0.35)"): (stats.binom(120, 0.3), stats.binom(120, 0.35)),
    ("poisson(2)", "poisson(2.5)"): (stats.poisson(60), stats.poisson(75)),
    ("poisson(2)", "poisson(1.5)"): (stats.poisson(60), stats.poisson(45)),
    ("poisson(0.01)", "poisson(0.005)"): (stats.poisson(0.3), stats.poisson(0.15)),
    ("geometric(0.3)", "geometric(0.4)"): (stats.nbinom(30, 0.3), stats.nbinom(30, 0.4)),
    ("geometric(0.3)", "geometric(0.25)"): (stats.nbinom(30, 0.3), stats.nbinom(30, 0.25)),
}


@pytest.mark.parametrize("names", TOTALS)
@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_whole_numbers_as_the_best_of_all_tests(names: tuple[str, str], alpha: float) -> None:
    null, alternative = (law.pmf(K) for law in TOTALS[names])
    assert least_missed(make_pair(*names), 30, alpha) == pytest.approx(sorted_out(null, alternative, alpha), abs=1e-9)


@pytest.mark.parametrize(
    ("null", "alternative"),
    [
        ("normal(0, 2)", "normal(0.5, 2)"),
        ("lognormal(0, 1)", "lognormal(-0.3, 1)"),
        ("normal(0, 1)", "normal(0, 1.2)"),
        ("lognormal(0, 1)", "lognormal(0, 0.8)"),
        ("exponential(1)", "exponential(1.4)"),
        ("gamma(2, 1)", "gamma(2, 0.8)"),
        ("laplace(0, 1)", "laplace(0, 1.3)"),
        ("half_normal(1)", "half_normal(1.2)"),
        ("rayleigh(1)", "rayleigh(1.2)"),
        ("weibull(1.5, 1)", "weibull(1.5, 1.2)"),
        ("pareto(3, 1)", "pareto(4, 1)"),
        ("share_above(5, 0.3)", "share_above(5, 0.4)"),
    ],
)
def test_formulas_are_those_of_the_ratio_on_its_lattice(null: str, alternative: str) -> None:
    """The lattice's test is a test: it misses no less, and hardly more."""
    pair = make_pair(null, alternative)
    made = unclamped(pair, 40, "llr", alpha=0.05)
    found = least_missed(pair, 40, 0.05)
    assert found <= made.beta + 1e-9
    # A share of 40 records is decided between whole numbers, so the lattice's test keeps to less than alpha.
    assert found == pytest.approx(made.beta, abs=0.09 if null.startswith("share") else 5e-3)


def test_without_a_formula_the_lattice_with_a_coin() -> None:
    pair = make_pair({"a": 0.5, "b": 0.3, "c": 0.2}, {"a": 0.3, "b": 0.3, "c": 0.4})
    one, other = np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.3, 0.3])
    laws = []
    for law in (one, other):
        total = np.ones((1, 1, 1))
        for _ in range(5):  # counts of all three labels
            grown = np.zeros(tuple(size + 1 for size in total.shape))
            for axis, p in enumerate(law):
                place = [slice(0, size) for size in total.shape]
                place[axis] = slice(1, total.shape[axis] + 1)
                grown[tuple(place)] += p * total
            total = grown
        laws.append(total.ravel())
    assert least_missed(pair, 5, 0.05) == pytest.approx(sorted_out(*laws, 0.05), abs=2e-3)
    assert least_missed(pair, 5, 0.05) <= unclamped(pair, 5, "llr", alpha=0.05).beta


@pytest.mark.parametrize(("epsilon", "n", "at"), [(1, 60, 0.3), (0.2, 60, 0.5), (5, 30, 0.1)])
def test_below_our_width_and_above_the_bound_from_two_points(epsilon: float, n: int, at: float, show: Any) -> None:
    design = pt.design_estimate("bernoulli(?)", epsilon=epsilon, n=n)
    width, bound = design.expected_width(at), design.width_bound(at)
    show(f"epsilon {epsilon}, n = {n}, rate {at}: width {width:.4f}, bound {bound:.4f}, ratio {width / bound:.3f}")
    assert bound <= width * (1 + 1e-3)
    for h in (0.02, 0.05, 0.1):
        if at - h > 0:
            pair = make_pair(f"bernoulli({at - h})", f"bernoulli({at + h})")
            assert 2 * h * (1 - 0.1 - advantage_bound(pair, Pure(epsilon), n)) <= bound * (1 + 1e-9)


def test_a_private_bound_at_a_level_is_no_less_than_the_advantage_allows() -> None:
    """And no more than our own test misses: so a shape that were not valid would show."""
    guide = None
    for mean in (2.6, 2.4):
        pair = make_pair(f"poisson({mean})", "poisson(2)")
        alone, _ = missed_bound(pair, Pure(1), 40, 0.05)
        found, guide = missed_bound(pair, Pure(1), 40, 0.05, guide)
        ours = pt.design(f"poisson({mean})", "poisson(2)", epsilon=1, n=40, alpha=0.05)
        assert 0.95 - advantage_bound(pair, Pure(1), 40) - 0.02 <= max(found, alone)
        assert found <= ours.beta + 1e-9
        assert alone <= ours.beta + 1e-9


def test_of_two_points_it_is_the_error_of_the_best_private_test() -> None:
    """Uniformly most powerful: a count with Tulap noise, a threshold between whole numbers included."""
    pair = make_pair("bernoulli(0.4)", "bernoulli(0.2)")
    ours = pt.design("bernoulli(0.4)", "bernoulli(0.2)", epsilon=1, n=50, alpha=0.05)
    found, guide = missed_bound(pair, Pure(1), 50, 0.05)
    assert guide is None
    assert ours.beta - 2e-3 <= found <= ours.beta + 1e-9


def least_by_program(p: np.ndarray, q: np.ndarray, n: int, epsilon: float, alpha: float) -> float:
    """The least type II error of an epsilon-DP test, by a linear program over all tests of the records' counts."""
    cells = len(p)
    counts = [c for c in itertools.product(range(n + 1), repeat=cells) if sum(c) == n]
    place = {c: i for i, c in enumerate(counts)}
    rows = []
    for c in counts:
        for a, b in itertools.permutations(range(cells), 2):
            if c[a]:
                other = place[tuple(k - (i == a) + (i == b) for i, k in enumerate(c))]
                row = np.zeros(len(counts))
                row[place[c]], row[other] = 1, -np.exp(epsilon)
                # g(c) <= e^eps g(other), and 1 - g(c) <= e^eps (1 - g(other)).
                rows += [(row, 0.0), (-row, np.exp(epsilon) - 1)]
    under_p, under_q = (stats.multinomial(n, law).pmf(np.array(counts)) for law in (p, q))
    # g: the probability of giving up p.
    found = optimize.linprog(
        -under_q,
        A_ub=np.array([*(row for row, _ in rows), under_p]),
        b_ub=np.array([*(limit for _, limit in rows), alpha]),
        bounds=(0, 1),
    )
    return float(1 + found.fun)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_the_private_bound_is_below_the_best_of_a_linear_program(epsilon: float, show: Any) -> None:
    """Of two points it is that; of three it is below. Thresholds beyond all counts are looked at, too: with a small
    epsilon the best test of a small level has one there, and a bound of 1 is none."""
    n = 5
    for p, q in (([0.02, 0.98], [0.7, 0.3]), ([0.7, 0.3], [0.02, 0.98]), ([0.4, 0.6], [0.5, 0.5])):
        least = least_by_program(np.array(p), np.array(q), n, epsilon, 0.05)
        assert missed_bound(make_pair(p, q), Pure(epsilon), n, 0.05)[0] == pytest.approx(least, abs=1e-7)
    for p, q in (([0.1, 0.3, 0.6], [0.6, 0.3, 0.1]), ([0.2, 0.5, 0.3], [0.3, 0.1, 0.6])):
        least = least_by_program(np.array(p), np.array(q), n, epsilon, 0.05)
        found, _ = missed_bound(make_pair(p, q), Pure(epsilon), n, 0.05)
        show(f"three points, epsilon {epsilon}: {found:.4f}, by a linear program {least:.4f}")
        assert 0.7 * least < found <= least + 1e-7
