"""alpha and beta of designed tests against enumeration of every data set, and cost independent of n."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import privatest as pt
from privatest.decision import PrivateTest


def enumerated(test: PrivateTest, p: np.ndarray, q: np.ndarray) -> tuple[float, float]:
    """alpha and beta by summing over all histograms of n records: no transform, no lattice law."""
    scores = test.score.table[:-1]
    k, n = len(p), test.n
    alpha = beta = 0.0
    for cuts in itertools.combinations(range(n + k - 1), k - 1):
        counts = np.diff([-1, *cuts, n + k - 1]) - 1
        ways = math.factorial(n) / math.prod(math.factorial(int(c)) for c in counts)
        away = float(test.cutoff - int(counts @ scores))
        alpha += ways * float(np.prod(p**counts)) * float(test.noise.cdf(away))
        beta += ways * float(np.prod(q**counts)) * float(test.noise.sf(away))
    return alpha, beta


@pytest.mark.parametrize("cases", [40, pytest.param(200, marks=pytest.mark.exhaustive)])
def test_against_enumeration_on_random_cases(cases: int, show) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(20190618)
    worst = 0.0
    for case in range(cases):
        k, n = int(rng.integers(2, 5)), int(rng.integers(1, 13))
        p, q = rng.dirichlet(np.ones(k), size=2)
        if case % 5 == 0:  # a zero density
            p[0] = 0.0
            p /= p.sum()
        kind = ("tight", "scllr", "ncllr", "llr", "sllr")[case % 5 if case % 2 else (case // 2) % 5]
        epsilon = round(float(rng.uniform(0.05, 4)), 2)
        test = pt.design(p, q, epsilon=epsilon, n=n, test=kind, clamp="paper" if kind == "tight" else None)
        alpha, beta = enumerated(test, p, q)
        worst = max(worst, abs(test.alpha - alpha), abs(test.beta - beta))
    show(f"error rates against enumeration, {cases} cases: largest difference {worst:.2e}")
    assert worst <= 1e-10


@pytest.mark.parametrize("kind", ["tight", "ncllr", "scllr"])
def test_tails_near_1e_12_are_accurate_relative_to_themselves(kind: str, show) -> None:  # type: ignore[no-untyped-def]
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.5, 0.3, 0.2])
    test = pt.design(p, q, epsilon=1, n=60, test=kind, clamp="paper", alpha=1e-12)
    alpha, _ = enumerated(test, p, q)  # every term is positive, so the sum is accurate relative to itself
    show(f"{kind}: alpha {test.alpha:.6e}, by enumeration {alpha:.6e}, ratio - 1 = {test.alpha / alpha - 1:.1e}")
    assert 1e-13 < test.alpha <= 1e-12
    assert abs(test.alpha / alpha - 1) <= 1e-6


def test_curves_agree_with_totals_for_small_and_large_n() -> None:
    for n, pair in itertools.product((7, 500, 10**6), (("normal(0, 1)", "normal(0.3, 1)"), ([0.6, 0.4], [0.5, 0.5]))):
        test = pt.design(*pair, epsilon=0.5, n=n, clamp="paper")
        # the design found its cutoff with the curves; the rates come from the totals
        nearby = [
            test.alternative_total.cdf(test.cutoff + shift) - test.null_total.cdf(test.cutoff + shift)
            for shift in (-2 * test.score.width, -1, 0, 1, 2 * test.score.width)
        ]
        assert max(nearby) <= nearby[2] + 1e-11
