"""The coupling: marginals by enumeration, sampler against joint law, distances against the formula."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import optimize, stats

from privatest.hypotheses import DiscretePair
from privatest.theory.coupling import Coupling, coupling, largest_gain

Floats = npt.NDArray[np.float64]

CASES: list[tuple[list[float], list[float], float]] = [
    ([0.6, 0.4], [0.4, 0.6], 0.2),
    ([0.6, 0.4], [0.4, 0.6], 1.0),  # nothing clamped
    ([0.9, 0.1], [0.3, 0.7], 0.4),  # swapped
    ([0.3, 0.7], [0.9, 0.1], 0.4),  # and the other way round
    ([0.0, 1.0], [0.1, 0.9], 0.5),  # eps' = 0
    ([1.0, 0.0], [0.0, 1.0], 0.3),  # no core
    ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], 0.5),
    ([0.5, 0.5, 0.0], [0.0, 0.5, 0.5], 1.0),
]


def product_law(p: list[float], n: int) -> Floats:
    return np.array([math.prod(x) for x in itertools.product(p, repeat=n)])


def distances(sets: list[tuple[Any, ...]]) -> npt.NDArray[np.int64]:
    return np.array([[sum(a != b for a, b in zip(x, y, strict=True)) for y in sets] for x in sets])


def core_variations(pairs: Coupling) -> Floats:
    """TV(P'^m, Q'^m) for m = 0..n by enumeration."""
    core = pairs.split.core
    if core is None:
        return np.ones(pairs.n + 1)
    assert isinstance(core, DiscretePair)
    return np.array(
        [
            np.abs(product_law(core.p.tolist(), m) - product_law(core.q.tolist(), m)).sum() / 2
            for m in range(pairs.n + 1)
        ]
    )


def joint_law(pairs: Coupling) -> tuple[list[tuple[Any, ...]], Floats]:
    """All data sets over a finite domain and the matrix of Pr[X = x, Y = y], by enumeration."""
    pair, n = pairs.split.pair, pairs.n
    assert isinstance(pair, DiscretePair)
    k = len(pair.labels)
    joint = np.zeros((k,) * (2 * n))
    for tail in itertools.product((False, True), repeat=n):
        joint += pattern_law(pairs, tail, k)
    return list(itertools.product(pair.labels, repeat=n)), joint.reshape(k**n, k**n)


def pattern_law(pairs: Coupling, tail: tuple[bool, ...], k: int) -> Floats | float:
    """The part of the joint law in which exactly these records are of the tails; axes x_1..x_n, y_1..y_n."""
    split, n = pairs.split, pairs.n
    m = n - sum(tail)
    weight = split.tau ** (n - m) * split.core_mass**m
    if weight == 0.0:
        return 0.0
    p = q = np.ones(1)
    for _ in range(m):
        assert isinstance(split.core, DiscretePair)
        p, q = np.kron(p, split.core.p), np.kron(q, split.core.q)
    over, under = np.maximum(p - q, 0.0), np.maximum(q - p, 0.0)
    variation = max(float(over.sum()), 1e-300)
    core = np.diag(np.minimum(p, q)) + np.multiply.outer(over, under) / variation
    places = [i for i in range(n) if not tail[i]]
    operands: list[Any] = [core.reshape((k,) * (2 * m)), [*places, *(n + i for i in places)]]
    for i in range(n):
        if tail[i]:
            assert isinstance(split.tails, DiscretePair)
            operands += [split.tails.p, [i], split.tails.q, [n + i]]
    law: Floats = np.einsum(*operands, list(range(2 * n)))
    return weight * law


@pytest.mark.parametrize(("null", "alternative", "epsilon"), CASES)
def test_marginals_are_the_two_products(null: list[float], alternative: list[float], epsilon: float) -> None:
    worst = 0.0
    for n in (1, 2, 3, 4):
        _, joint = joint_law(coupling(null, alternative, epsilon=epsilon, n=n))
        assert joint.min() >= 0
        worst = max(worst, float(np.abs(joint.sum(axis=1) - product_law(null, n)).max()))
        worst = max(worst, float(np.abs(joint.sum(axis=0) - product_law(alternative, n)).max()))
    assert worst <= 1e-14


@pytest.mark.parametrize(("null", "alternative", "epsilon"), CASES)
def test_distances_of_the_coupling(null: list[float], alternative: list[float], epsilon: float) -> None:
    n = 3
    pairs = coupling(null, alternative, epsilon=epsilon, n=n)
    sets, joint = joint_law(pairs)
    apart = distances(sets)
    variations = core_variations(pairs)
    # The probability of any difference is exact: tails always differ, the core as a whole with probability TV.
    some = np.minimum(np.arange(n + 1), 1).astype(float)
    assert pairs.expected(some, variations) == pytest.approx(float((joint * (apart > 0)).sum()), abs=1e-13)
    # Any other gain is bounded: a core that differs at all is taken to differ everywhere.
    for gain in (largest_gain(np.arange(n + 1), epsilon), np.tanh(epsilon * np.arange(n + 1) / 2)):
        mean = float((joint * gain[apart]).sum())
        assert mean <= pairs.expected(gain, variations) + 1e-13


def goodness(pairs: Coupling, X: npt.NDArray[Any], Y: npt.NDArray[Any]) -> float:
    """p-value of the counts of all (x, y) against the joint law."""
    sets, joint = joint_law(pairs)
    place = {x: i for i, x in enumerate(sets)}
    law = joint.ravel()
    found = np.bincount(
        [place[tuple(x)] * len(sets) + place[tuple(y)] for x, y in zip(X.tolist(), Y.tolist(), strict=True)],
        minlength=len(law),
    )
    common = law * len(X) > 8
    if found[law <= 1e-15].any():
        return 0.0
    observed = np.append(found[common], found[~common].sum())
    expected = np.append(law[common], law[~common].sum()) * len(X)
    kept = expected > 1e-9
    return float(stats.chisquare(observed[kept], expected[kept] * observed[kept].sum() / expected[kept].sum()).pvalue)


@pytest.mark.statistical
@pytest.mark.parametrize(("null", "alternative", "epsilon"), CASES)
def test_the_sampler_has_the_joint_law(null: list[float], alternative: list[float], epsilon: float) -> None:
    pairs = coupling(null, alternative, epsilon=epsilon, n=2)
    X, Y = pairs.sample(np.random.default_rng(11), 8000)
    if len(null) == 2 and null[0] == 1.0:
        assert (X == 0).all()
        assert (Y == 1).all()
        return
    assert goodness(pairs, X, Y) > 1e-9


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 3.0])
def test_largest_gain_is_what_a_path_of_neighbours_allows(epsilon: float) -> None:
    """Against the linear program over all private tests of d + 1 data sets in a row; below tanh beyond d = 1."""
    factor = math.exp(epsilon)
    for d in range(1, 8):
        rows, limits = [], []
        for i, j in [*itertools.pairwise(range(d + 1)), *((j, i) for i, j in itertools.pairwise(range(d + 1)))]:
            first, second = np.zeros(d + 1), np.zeros(d + 1)
            first[i], first[j] = 1, -factor
            second[i], second[j] = factor, -1
            rows += [first, second]
            limits += [0.0, factor - 1]
        objective = np.zeros(d + 1)
        objective[0], objective[-1] = -1, 1
        found = optimize.linprog(objective, A_ub=np.array(rows), b_ub=np.array(limits), bounds=(0, 1))
        gain = float(largest_gain(d, epsilon))
        assert gain == pytest.approx(-found.fun, abs=1e-9)
        assert gain <= math.tanh(epsilon * d / 2) + 1e-15
        assert (d == 1) == math.isclose(gain, math.tanh(epsilon * d / 2), rel_tol=1e-12)
