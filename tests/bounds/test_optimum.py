"""The best private test: the table of DESIGN 3.7, programs written another way, Wasserstein's sandwich."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, stats

from privatest.bounds.lower_bound import balanced, error_tables
from privatest.bounds.optimum import DENOMINATOR, Program, _chain, optimum, optimum_sample_size
from privatest.bounds.two_point import TwoPoint
from privatest.errors import InvalidInput
from privatest.hypotheses import make_pair
from privatest.numbers import exp_below, rational
from privatest.privacy import Pure, as_notion
from privatest.privacy.notion import Line
from privatest.theory.coupling import Histograms, merge

Show = Callable[[str], None]
Law = list[float]

TABLE: list[tuple[Law, Law, float, int]] = [
    ([0.4, 0.6], [0.6, 0.4], 1, 29),
    ([0.4, 0.6], [0.6, 0.4], 2, 25),
    ([1.0, 0.0], [0.9, 0.1], 0.5, 53),
    ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], 1, 12),
]


def all_tests_program(p: Law, q: Law, epsilon: float, n: int, u: float = 1.0, v: float = 1.0) -> float:
    """max over all private g of u E_P g - v E_Q g: every pair of neighbours, nothing merged, nothing sorted."""
    table = Histograms(len(p), n).table
    laws = [np.array([stats.multinomial.pmf(h, n, law) for h in table]) for law in (p, q)]
    apart = np.abs(table[:, None] - table[None]).sum(axis=2)
    factor = math.exp(epsilon)
    rows, limits = [], []
    for i, j in zip(*np.nonzero(apart == 2), strict=True):
        first, second = np.zeros(len(table)), np.zeros(len(table))
        first[i], first[j] = 1, -factor
        second[i], second[j] = factor, -1
        rows += [first, second]
        limits += [0.0, factor - 1]
    found = optimize.linprog(v * laws[1] - u * laws[0], A_ub=np.array(rows), b_ub=np.array(limits), bounds=(0, 1))
    return float(-found.fun)


@pytest.mark.parametrize(("null", "alternative", "epsilon", "n"), TABLE)
def test_sample_sizes_of_the_table(null: Law, alternative: Law, epsilon: float, n: int, show: Show) -> None:
    found = optimum_sample_size(null, alternative, epsilon=epsilon)
    here, before = (optimum(null, alternative, epsilon=epsilon, n=size) for size in (n, n - 1))
    show(f"optimum {null}/{alternative} at epsilon {epsilon}: n = {found}, advantage {here.advantage:.6f}")
    assert found == n
    assert here.advantage >= 2 / 3 > before.advantage


@pytest.mark.parametrize(
    ("null", "alternative", "epsilon", "n"),
    [
        ([0.6, 0.4], [0.4, 0.6], 0.5, 7),
        ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], 0.3, 5),
        ([0.0, 0.5, 0.5], [0.2, 0.4, 0.4], 1.0, 5),
        ([0.1, 0.2, 0.7], [0.3, 0.3, 0.4], 2.0, 5),
        ([0.5, 0.5, 0.0], [0.0, 0.5, 0.5], 0.7, 4),
        ([0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.25, 0.25], 0.6, 3),
        ([0.1, 0.2, 0.3, 0.4], [0.2, 0.4, 0.3, 0.1], 0.6, 3),  # two labels of one ratio
    ],
)
def test_against_the_program_over_all_tests(null: Law, alternative: Law, epsilon: float, n: int) -> None:
    """Classes, monotone tests and outermost neighbours only: nothing is lost."""
    found = optimum(null, alternative, epsilon=epsilon, n=n)
    assert found.advantage == pytest.approx(all_tests_program(null, alternative, epsilon, n), abs=1e-8)
    assert -1e-12 <= found.gap <= 1e-7


@pytest.mark.parametrize(("x", "y"), [(0.6, 0.4), (1.0, 0.9), (0.3, 0.0), (0.9, 0.2), (0.52, 0.5)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_two_points_closed_form_against_the_program(x: float, y: float, epsilon: float) -> None:
    for n in (1, 2, 6, 11):
        classes = merge(make_pair([1 - x, x], [1 - y, y]))
        _, bound = Program(classes, Pure(epsilon), n).solved()
        assert TwoPoint(n, x, y, epsilon).best()[0] == pytest.approx(bound, abs=1e-8)
        assert optimum([1 - x, x], [1 - y, y], epsilon=epsilon, n=n).advantage == pytest.approx(bound, abs=1e-8)


@pytest.mark.parametrize(
    ("n", "x", "y", "epsilon"),
    [
        (40, 0.6, 0.4, 0.3),
        (300, 0.99, 0.01, 0.02),
        (5000, 0.51, 0.5, 0.1),
        (38_118, 0.5075, 0.4925, 0.1),
        (50, 1.0, 0.0, 5.0),
    ],
)
def test_weighted_errors_against_every_threshold(n: int, x: float, y: float, epsilon: float) -> None:
    """All thresholds tried, for prior ratios far out too; in gaps between the counts the bound is a little lower."""
    (table,) = error_tables([TwoPoint(n, x, y, epsilon)])
    j, counts = np.arange(-1, n + 1), np.arange(n + 1)
    b = math.exp(-epsilon)
    laws = [stats.binom.pmf(counts, n, rate) for rate in (x, y)]
    wide = [np.flatnonzero(law > 1e-25) for law in laws]
    j = j[(j >= min(w[0] for w in wide) - 2) & (j <= max(w[-1] for w in wide) + 2)]
    errors = []
    for law, kept, sign in zip(laws, wide, (1, -1), strict=True):
        z = j[:, None] - counts[kept][None, :] if sign > 0 else counts[kept][None, :] - j[:, None] - 1
        cdf = np.where(
            z < 0, np.exp(epsilon * np.minimum(z, 0)) / (1 + b), 1 - b * np.exp(-epsilon * np.maximum(z, 0)) / (1 + b)
        )
        errors.append(cdf @ law[kept])
    ratio = np.linspace(-25, 25, 101)
    lines = np.exp(ratio / 2)[:, None] * errors[0] + np.exp(-ratio / 2)[:, None] * errors[1]
    exact = np.minimum(lines.min(axis=1), np.exp(-np.abs(ratio) / 2))
    found = balanced([table], [len(ratio)], ratio)
    assert np.all(found <= exact * (1 + 1e-9) + 1e-16)
    assert np.all(found >= exact * (1 - epsilon**2) - 1e-16)  # real thresholds instead of whole ones, in gaps


def test_staircases_are_private_and_nearly_exact() -> None:
    for epsilon, n, threshold in itertools.product((0.01, 0.7, 5.0), (1, 4, 4000), (-1, 0, 2)):
        factor = exp_below(rational(epsilon))
        start = round(DENOMINATOR / (1 + factor))
        g = _chain(n, threshold, start, Line(factor, Fraction(0)))[::-1].astype(object)  # by increasing counts
        for low, high in itertools.pairwise(g.tolist()):
            assert high * factor.denominator <= low * factor.numerator
            assert (DENOMINATOR - low) * factor.denominator <= (DENOMINATOR - high) * factor.numerator
        b = math.exp(-epsilon)
        away = np.arange(n + 1) - threshold
        exact = np.where(
            away > 0,
            1 - np.exp(-epsilon * np.maximum(away - 1, 0)) * b / (1 + b),
            np.exp(epsilon * np.minimum(away, 0)) * b / (1 + b),
        )
        np.testing.assert_allclose(g.astype(float) / DENOMINATOR, exact, atol=1e-12)


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match=r"finite domain.*lower_bound"):
        optimum("normal(0, 1)", "normal(1, 1)", epsilon=1, n=5)
    with pytest.raises(InvalidInput, match=r"linear program of 2003001 variables and 8004000 constraints.*lower_bound"):
        optimum([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], epsilon=1, n=2000)
    with pytest.raises(InvalidInput, match="linear program of"):
        optimum_sample_size([0.333, 0.333, 0.334], [0.334, 0.333, 0.333], epsilon=1)
    with pytest.raises(InvalidInput, match="table of"):
        optimum([0.5, 0.5], [0.4, 0.6], epsilon=1, n=10**9)
    for bad in (0, 1, 1.5, -0.1):
        with pytest.raises(InvalidInput, match="advantage"):
            optimum_sample_size([0.5, 0.5], [0.4, 0.6], epsilon=1, advantage=bad)
    for epsilon in (0, -1, math.inf):
        with pytest.raises(InvalidInput, match="epsilon"):
            optimum([0.5, 0.5], [0.4, 0.6], epsilon=epsilon, n=3)


THREE = ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2])


def test_every_notion_in_order() -> None:
    """What follows from a notion allows no less: pure(1) -> gdp, zcdp -> renyi, kl, tv; and alike at a level."""
    pure = as_notion("pure(1)")
    weaker = [pure.into("gdp"), pure.into("kl"), pure.into("renyi", order=2), pure.into("tv")]
    for alpha in (None, 0.2):
        least = optimum(*THREE, privacy=pure, n=3, alpha=alpha)
        for notion in weaker:
            found = optimum(*THREE, privacy=notion, n=3, alpha=alpha)
            assert found.bound >= least.bound - 1e-9
            if alpha is not None:
                assert found.alpha <= alpha


@pytest.mark.parametrize("privacy", ["approx(0.5, 0.05)", "tv(0.2)"])
@pytest.mark.parametrize("alpha", [None, 0.1])
def test_straight_notions_by_exhaustion(privacy: str, alpha: float | None) -> None:
    """Every two neighbouring data sets, in rationals, with e^epsilon from below by its series; tight."""
    found = optimum(*THREE, privacy=privacy, n=4, alpha=alpha)
    notion, test = as_notion(privacy), found.test
    delta = Fraction(notion.delta if hasattr(notion, "delta") else notion.eta)  # type: ignore[attr-defined]
    loss = notion.loss if hasattr(notion, "loss") else Fraction(0)
    factor = sum((loss**i / math.factorial(i) for i in range(30)), Fraction(0))  # below e^epsilon

    def largest_excess(chances: list[Fraction]) -> Fraction:
        worst = Fraction(-1)
        table = test.histograms.table.tolist()
        for i, j in itertools.permutations(range(len(table)), 2):
            if sum(abs(a - b) for a, b in zip(table[i], table[j], strict=True)) == 2:
                for a, b in ((chances[i], chances[j]), (1 - chances[i], 1 - chances[j])):
                    worst = max(worst, a - factor * b - delta)
        return worst

    chances = [Fraction(int(value), DENOMINATOR) for value in test.numerators]
    assert -1e-9 < largest_excess(chances) <= 0
    assert alpha is None or test.alpha <= alpha
    broken = test.numerators.copy()
    broken[0 if broken[0] > DENOMINATOR // 2 else -1] = DENOMINATOR
    broken[-1 if broken[0] == DENOMINATOR else 0] = 0
    broken[test.histograms.rows[0]] = [0, DENOMINATOR // 2, DENOMINATOR]
    assert largest_excess([Fraction(int(value), DENOMINATOR) for value in broken]) > 0
    import dataclasses

    with pytest.raises(InvalidInput, match="Move them towards 1/2"):
        dataclasses.replace(test, numerators=broken)
    again = type(test).from_json(test.to_json())
    assert again == test
    assert again.privacy == notion


def test_a_curved_notion_tells_its_advantage_and_is_not_run() -> None:
    found = optimum(*THREE, privacy="gdp(1)", n=3)
    assert found.to_dict()["privacy"] == "gdp(1)"
    with pytest.raises(InvalidInput, match=r"gdp\(1\) has a curved h"):
        found.test  # noqa: B018
    release = optimum(*THREE, privacy="tv(0.2)", n=3).test.run([0, 1, 2])
    assert release.privacy == "tv(0.2)"
    assert release.private
    assert release.epsilon == math.inf
