"""One-record advantages against direct sums and integrals; the theorem's numbers by closed forms and two ways each."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from privatest.hypotheses import make_pair
from privatest.theory import decompose, soft_advantage, soft_clamped_advantage
from privatest.theory.complexity import sample_complexity


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("pairs", [150, pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_both_identities_on_random_pairs(pairs: int) -> None:
    rng = np.random.default_rng(1811)
    for _ in range(pairs):
        k = int(rng.integers(2, 12))
        p, q = rng.dirichlet(np.full(k, rng.choice([0.2, 1.0, 5.0])), size=2)
        if k > 2 and rng.random() < 0.2:
            p[0], q[1] = 0, 0
            p, q = p / p.sum(), q / q.sum()
        epsilon = float(np.exp(rng.uniform(np.log(0.01), np.log(5))))
        split = decompose(p, q, epsilon=epsilon)
        with np.errstate(divide="ignore", over="ignore"):
            ratio = np.log(p) - np.log(q)
            soft = float(((p - q) * sigmoid(ratio / 2)).sum())
            clamped = float(((p - q) * sigmoid(np.clip(ratio, *split.clamp) / 2)).sum())
        h2 = 1 - float(np.sqrt(p * q).sum())
        assert abs(soft_advantage(split.pair) - soft) < 1e-12
        assert abs(soft_advantage(split.pair) - h2) < 1e-12
        assert abs(soft_clamped_advantage(split) - clamped) < 1e-12


def test_the_core_term_is_the_hellinger_distance_of_the_core() -> None:
    split = decompose([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], epsilon=0.4)
    assert split.core is not None
    by_parts = (
        split.tau / 2 * (math.tanh(0.1) + math.tanh(split.epsilon_prime / 4))
        + (1 - split.tau) * split.core.hellinger_squared
    )
    assert soft_clamped_advantage(split) == pytest.approx(by_parts, rel=1e-13)


@pytest.mark.parametrize(
    ("null", "alternative"),
    [
        (stats.norm(0, 1), stats.norm(1, 1)),
        (stats.norm(0, 1), stats.norm(0, 2)),
        (stats.cauchy(), stats.norm()),
        (stats.expon(), stats.gamma(2)),
        (stats.laplace(0, 1), stats.laplace(1, 1)),
    ],
)
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_against_scipy_quadrature(null: Any, alternative: Any, epsilon: float) -> None:
    split = decompose(null, alternative, epsilon=epsilon)
    a, b = split.clamp

    def integrand(x: float) -> float:
        if math.isinf(x) or null.pdf(x) + alternative.pdf(x) == 0:
            return 0.0
        ratio = min(max(null.logpdf(x) - alternative.logpdf(x), a), b)
        return float((null.pdf(x) - alternative.pdf(x)) * sigmoid(ratio / 2))

    edges = [end for piece in (*split.sets.S, *split.sets.T) for end in piece]  # type: ignore[attr-defined]
    points = sorted({0.0, 30.0, *(end for end in edges if math.isfinite(end))})
    lows, highs = [-math.inf, *points], [*points, math.inf]
    truth = math.fsum(
        integrate.quad(integrand, lo, hi, epsabs=1e-13, limit=200)[0]
        for lo, hi in zip(lows, highs, strict=True)
        if null.cdf(hi) > 0 or alternative.cdf(hi) > 0
    )
    assert soft_clamped_advantage(split) == pytest.approx(truth, abs=1e-10)


def test_close_pairs_do_not_cancel() -> None:
    pair = make_pair("normal(0, 1)", "normal(0.001, 1)")
    assert soft_advantage(pair) == pytest.approx(-math.expm1(-1e-6 / 8), rel=1e-11)


def test_edge_cases() -> None:
    disjoint = decompose([1.0, 0.0], [0.0, 1.0], epsilon=0.8)
    assert soft_clamped_advantage(disjoint) == pytest.approx(math.tanh(0.2))
    assert soft_advantage(disjoint.pair) == 1
    bounded = decompose([0.5, 0.5], [0.4, 0.6], epsilon=5)
    assert soft_clamped_advantage(bounded) == soft_advantage(bounded.pair)


BINARY = [([p, 1 - p], [q, 1 - q]) for p, q in itertools.product((0.05, 0.4, 0.9), (0.0, 0.1, 0.5, 0.95))]


def test_coins_on_which_privacy_is_free() -> None:
    found = sample_complexity([0.6, 0.4], [0.4, 0.6], epsilon=1)
    hellinger = 1 - 2 * math.sqrt(0.24)
    assert found.regime == "free"
    assert found.tail_term == 0
    assert found.value == pytest.approx(1 / hellinger, rel=1e-12)
    assert found.nonprivate == pytest.approx(1 / hellinger, rel=1e-12)
    assert found.free_epsilon == pytest.approx(math.log(1.5), rel=1e-14)
    assert found.two_point == pytest.approx(1 / hellinger + 5, rel=1e-12)
    assert found.local == pytest.approx(25, rel=1e-12)
    # with nothing clamped adv_1 is the Hellinger distance itself
    assert found.by_advantage == pytest.approx(1 / hellinger, rel=1e-12)


def test_the_orders_of_the_paper() -> None:
    """Sandwich and two-point formula agree with the value up to constants, over six decades of epsilon."""
    low, high, two = math.inf, 0.0, []
    for (null, alternative), epsilon in itertools.product(BINARY, (1e-4, 1e-2, 0.1, 0.5, 0.99)):
        found = sample_complexity(null, alternative, epsilon=epsilon)
        low, high = min(low, found.value / found.sandwich[0]), max(high, found.value / found.sandwich[1])
        assert found.two_point is not None
        two.append(found.value / found.two_point)
    print(f"value >= {low:.3f}/H^2, <= {high:.3f}/(eps H^2); two-point formula within [{min(two):.3f}, {max(two):.3f}]")
    assert low > 0.25
    assert high < 4
    assert min(two) > 0.1
    assert max(two) < 4
