"""Histograms, and the distance of P^n and Q^n three ways: dual, transport of histograms, transport of raw data sets."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import optimize, sparse

from privatest.hypotheses import make_pair
from privatest.theory.coupling import Histograms, merge, wasserstein

SMALL: list[tuple[list[float], list[float], float, int]] = [
    ([0.6, 0.4], [0.4, 0.6], 0.3, 4),
    ([0.6, 0.4], [0.4, 0.6], 2.0, 3),
    ([1.0, 0.0], [0.9, 0.1], 0.5, 4),
    ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], 0.4, 3),
    ([0.0, 0.5, 0.5], [0.2, 0.4, 0.4], 1.0, 3),
    ([0.1, 0.2, 0.7], [0.3, 0.3, 0.4], 0.2, 3),
]


def transport_cost(null: Any, alternative: Any, *, epsilon: float, n: int) -> float:
    """The same distance as a transport problem, by the best coupling of histograms."""
    classes = merge(make_pair(null, alternative), "")
    histograms = Histograms(classes.count, n)
    size = histograms.count
    assert size <= 400
    table = histograms.table
    apart = np.abs(table[:, None, :] - table[None, :, :]).sum(axis=2) / 2
    cost = np.minimum(float(epsilon) * apart, 1.0).ravel()
    from_p = sparse.kron(sparse.eye(size), np.ones((1, size)))
    to_q = sparse.kron(np.ones((1, size)), sparse.eye(size))
    laws = np.concatenate([histograms.law(classes.p), histograms.law(classes.q)])
    matrix: Any = sparse.csr_matrix(sparse.vstack([from_p, to_q]))
    # One equation follows from the others; without it rounding cannot make them contradict one another.
    found = optimize.linprog(cost, A_eq=matrix[:-1], b_eq=laws[:-1], bounds=(0, None), method="highs-ds")
    assert found.x is not None, found.message
    return float(cost @ found.x)


def raw_transport(p: list[float], q: list[float], epsilon: float, n: int) -> float:
    """The transport problem over all data sets as they are, no symmetry used."""
    sets = list(itertools.product(range(len(p)), repeat=n))
    laws = [np.array([math.prod(law[i] for i in x) for x in sets]) for law in (p, q)]
    cost = np.array([[min(epsilon * sum(a != b for a, b in zip(x, y, strict=True)), 1.0) for y in sets] for x in sets])
    size = len(sets)
    matrix = np.vstack([np.kron(np.eye(size), np.ones(size)), np.kron(np.ones(size), np.eye(size))])
    found = optimize.linprog(cost.ravel(), A_eq=matrix[:-1], b_eq=np.concatenate(laws)[:-1], bounds=(0, None))
    return float(found.fun)


@pytest.mark.parametrize(("null", "alternative", "epsilon", "n"), SMALL)
def test_the_distance_three_ways(null: list[float], alternative: list[float], epsilon: float, n: int) -> None:
    found = wasserstein(null, alternative, epsilon=epsilon, n=n)
    assert found.is_lipschitz()
    assert found.value <= found.bound + 1e-12
    assert found.value == pytest.approx(found.bound, abs=1e-8)
    assert found.value == pytest.approx(transport_cost(null, alternative, epsilon=epsilon, n=n), abs=1e-8)
    assert found.value == pytest.approx(raw_transport(null, alternative, epsilon, n), abs=1e-8)


def test_closed_forms() -> None:
    # Disjoint supports: every record differs. Certain ones: min(eps n, 1).
    assert wasserstein([1.0, 0.0], [0.0, 1.0], epsilon=0.1, n=4).value == pytest.approx(0.4)
    assert wasserstein([1.0, 0.0], [0.0, 1.0], epsilon=0.3, n=4).value == pytest.approx(1)
    # eps >= 1: total variation of the products. One record: eps TV.
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.5, 0.3, 0.2])
    histograms = Histograms(3, 4)
    variation = np.abs(histograms.law(p) - histograms.law(q)).sum() / 2
    assert wasserstein(p, q, epsilon=1, n=4).value == pytest.approx(variation, abs=1e-10)
    assert wasserstein(p, q, epsilon=0.25, n=1).value == pytest.approx(0.25 * 0.3, abs=1e-12)


def test_the_mechanisms_probabilities() -> None:
    found = wasserstein([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], epsilon=0.4, n=3)
    says_null = found.probabilities()
    assert all(Fraction(1, 4) <= g <= Fraction(1, 2) for g in says_null)
    gain = found.histograms.law(found.classes.p) - found.histograms.law(found.classes.q)
    advantage = math.fsum(float(g) * d for g, d in zip(says_null, gain.tolist(), strict=True))
    assert advantage == pytest.approx(found.value / 4, abs=1e-13)
