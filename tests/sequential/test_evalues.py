"""e-values combine."""

from __future__ import annotations

import itertools
import math
import sys

import numpy as np
import pytest
from scipy import optimize

import privatest as pt
from privatest.errors import InvalidInput
from privatest.hypotheses import make_pair
from privatest.sequential.evalues import growth_bound
from tests.sequential.plans import coin


def test_products_and_averages() -> None:
    assert pt.combine_evalues([2, 8]) == 16
    assert pt.combine_evalues([2, 8], dependent=True) == 5
    assert pt.combine_evalues(iter([0.5])) == 0.5
    assert pt.combine_evalues([3, 0, math.inf]) == 0
    assert pt.combine_evalues([1e300] * 3 + [1e-300] * 3) == pytest.approx(1)
    assert pt.combine_evalues([1e300, 1e300]) == sys.float_info.max  # rounded down: only inf says that P cannot be
    assert pt.combine_evalues([1e300, math.inf]) == math.inf
    assert pt.combine_evalues([1e-300, 1e-300]) == 0
    assert pt.combine_evalues([1e-160, 1e-163, 1e160, 1e163]) == pytest.approx(1, rel=1e-14)  # not 0.988
    assert pt.combine_evalues([1e308, 1e308, 1e308], dependent=True) == pytest.approx(1e308)
    assert pt.combine_evalues({"north": 2.0, "south": 8.0}) == 16


def test_means_under_the_null() -> None:
    rng = np.random.default_rng(2)
    ones = rng.choice([0.5, 2.0], p=[2 / 3, 1 / 3], size=(200_000, 2))  # mean 1
    products = np.array([pt.combine_evalues(pair) for pair in ones[:20_000]])
    assert abs(products.mean() - 1) < 4 * products.std() / math.sqrt(len(products))
    same = ones[:20_000, 0]
    assert np.mean(same * same) > 1.2  # of dependent values the product is no e-value
    averages = [pt.combine_evalues([value, value], dependent=True) for value in same[:2000]]
    assert averages == pytest.approx(same[:2000])


def test_discoveries() -> None:
    assert pt.evalue_discoveries([90, 0.3, 50, 2], alpha=0.05) == (0, 2)
    assert pt.evalue_discoveries([19], alpha=0.05) == ()
    assert pt.evalue_discoveries([20], alpha=0.05) == (0,)
    assert pt.evalue_discoveries([], alpha=0.05) == ()
    assert pt.evalue_discoveries({"a": 39, "b": 41, "c": 0}, alpha=0.05) == ("a", "b")
    assert pt.evalue_discoveries({"a": 29, "b": 60, "c": 0}, alpha=0.05) == ("b",)
    assert pt.evalue_discoveries({"a": 29, "b": 59, "c": 0}, alpha=0.05) == ()


def test_discoveries_are_as_many_as_there_can_be() -> None:
    """Against the definition, on all small tables: of all sets that are consistent the largest."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        values, alpha = rng.choice([0.0, 1, 5, 12, 20, 30, 60], size=4), 0.2
        found = pt.evalue_discoveries(values.tolist(), alpha=alpha)
        sizes = [k for k in range(1, 5) if np.sort(values)[-k] >= 4 / (alpha * k)]
        assert len(found) >= max(sizes, default=0)
        assert all(values[i] >= 4 / (alpha * len(found)) for i in found)


def test_false_discoveries_are_rare() -> None:
    rng, shares = np.random.default_rng(1), []
    for _ in range(4000):
        true = rng.choice([0.0, 40.0], p=[39 / 40, 1 / 40], size=6)
        shared = np.where(rng.random() < 0.025, 40.0, 0.0)
        values = np.where(np.arange(6) < 3, true, shared)  # dependent ones, too
        found = pt.evalue_discoveries([*values, 100.0, 200.0], alpha=0.2)
        shares.append(sum(i < 6 for i in found) / max(len(found), 1))
    assert np.mean(shares) <= 0.2


@pytest.mark.parametrize(
    "bad", [[-1], [math.nan], ["3"], [None], 7, "123", {0.5, 4.0}, frozenset([2.0]), np.array(3.0)]
)
def test_what_is_no_evalue_is_refused(bad: object) -> None:
    for call in (lambda: pt.combine_evalues(bad), lambda: pt.evalue_discoveries(bad, alpha=0.05)):  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="values"):
            call()


def test_nothing_to_combine_and_levels_that_are_none() -> None:
    with pytest.raises(InvalidInput, match="nothing to combine"):
        pt.combine_evalues([])
    with pytest.raises(InvalidInput, match="dependent='no' must be True or False"):
        pt.combine_evalues([2, 3], dependent="no")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="dependent=<ndarray> must be True or False"):
        pt.combine_evalues([2, 3], dependent=np.array([0.5, 1.0]))  # type: ignore[arg-type]
    assert pt.combine_evalues(value for value in (2, 3)) == 6
    for alpha in (0, 1, -0.1, math.nan):
        with pytest.raises(InvalidInput, match="alpha"):
            pt.evalue_discoveries([3], alpha=alpha)


def steps(points: list[tuple[int, ...]]) -> list[dict[tuple[int, ...], int]]:
    """All integer functions with least value 0 that differ by 1 at most between neighbours: the extreme channels."""
    found: list[dict[tuple[int, ...], int]] = [{}]
    deepest = len(points[0])
    for point in points:
        near = [known for known in points if sum(a != b for a, b in zip(known, point, strict=True)) == 1]
        found = [
            {**one, point: value}
            for one in found
            for value in range(deepest + 1)
            if all(abs(value - one[known]) <= 1 for known in near if known in one)
        ]
    return [one for one in found if min(one.values()) == 0]


def best_power(p: np.ndarray, q: np.ndarray, n: int, epsilon: float) -> float:
    """The largest mean log e-value of any epsilon-DP mechanism on n records, by a linear program over all outputs.

    The divergence is a sum over outputs y of a convex, homogeneous function of the column Pr[y | data], so the best
    mechanism has extreme columns: e^(epsilon f) for the functions f above.
    """
    points = list(itertools.product(range(len(p)), repeat=n))
    masses = [np.array([math.prod(law[list(point)]) for point in points]) for law in (p, q)]
    columns = [np.exp(epsilon * np.array([one[point] for point in points])) for one in steps(points)]
    gains = [float(masses[1] @ c) * math.log(float(masses[1] @ c) / float(masses[0] @ c)) for c in columns]
    found = optimize.linprog(-np.array(gains), A_eq=np.array(columns).T, b_eq=np.ones(len(points)))
    assert found.status == 0
    return float(-found.fun)


def relaxed_power(p: np.ndarray, q: np.ndarray, n: int, epsilon: float) -> float:
    """The convex program: max E_Q log h with E_P h <= 1 and h within e^epsilon of its neighbours."""
    points = list(itertools.product(range(len(p)), repeat=n))
    masses = [np.array([math.prod(law[list(point)]) for point in points]) for law in (p, q)]
    near = [
        (i, j)
        for i, a in enumerate(points)
        for j, b in enumerate(points)
        if sum(x != y for x, y in zip(a, b, strict=True)) == 1
    ]

    def value(f: np.ndarray) -> float:
        top = float(f.max())
        return -(float(masses[1] @ f) - top - math.log(float(masses[0] @ np.exp(f - top))))

    limits = [{"type": "ineq", "fun": lambda f: np.array([epsilon - f[i] + f[j] for i, j in near])}]
    found = optimize.minimize(value, np.zeros(len(points)), constraints=limits, method="SLSQP", options={"ftol": 1e-12})
    return float(-found.fun)


TINY = [
    ([0.3, 0.7], [0.7, 0.3], 1),
    ([0.3, 0.7], [0.7, 0.3], 2),
    ([0.5, 0.5], [0.9, 0.1], 3),
    ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], 1),
    ([0.2, 0.3, 0.5], [0.6, 0.3, 0.1], 2),
]


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(("p", "q", "n"), TINY)
def test_no_private_evalue_grows_faster(p: list[float], q: list[float], n: int, epsilon: float) -> None:
    bound = n * growth_bound(make_pair(p, q), epsilon)
    best = best_power(np.array(p), np.array(q), n, epsilon)
    assert 0 < best <= bound * (1 + 1e-9)
    relaxed = relaxed_power(np.array(p), np.array(q), n, epsilon)
    assert best <= relaxed + 1e-7
    assert relaxed == pytest.approx(bound, rel=1e-4)  # the bound is the convex program's value, record by record


def test_without_privacy_it_is_the_divergence() -> None:
    assert growth_bound(make_pair([0.3, 0.7], [0.7, 0.3]), 20.0) == pytest.approx(0.4 * math.log(7 / 3))


def test_a_bound_for_a_smaller_epsilon_is_exceeded() -> None:
    p, q = np.array([0.3, 0.7]), np.array([0.7, 0.3])
    assert best_power(p, q, 1, 3.0) > growth_bound(make_pair(p, q), 0.3)


def test_ours_is_below_it() -> None:
    plan = coin()
    bound = growth_bound(make_pair("bernoulli(0.3)", "bernoulli(0.7)"), 1.0)
    assert 0.5 < plan.growth / bound < 1
