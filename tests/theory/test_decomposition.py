"""The decomposition: the paper's identities on a thousand random pairs, closed forms, and every edge case."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privatest.hypotheses import ContinuousPair, DiscretePair, density
from privatest.theory import Decomposition, decompose


def random_pair(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Sizes 1 < k < 12, sometimes with zeros, sometimes close, sometimes with equal ratios."""
    k = int(rng.integers(2, 12))
    p, q = rng.dirichlet(np.full(k, rng.choice([0.2, 1.0, 5.0])), size=2)
    kind = rng.integers(6)
    if kind == 0 and k > 2:
        p[rng.integers(k)] = 0
        q[rng.integers(k)] = 0
        p, q = (x / x.sum() if x.sum() > 0 else np.full(k, 1 / k) for x in (p, q))
    elif kind == 1:
        q = 0.99 * p + 0.01 * q
    elif kind == 2:
        q = p[::-1].copy()
    elif kind == 3:
        p, q = np.round(p * 16) / 16, np.round(q * 16) / 16
        p[0] += 1 - p.sum()
        q[-1] += 1 - q.sum()
        if min(p.min(), q.min()) < 0:
            return random_pair(rng)
    if np.abs(p - q).sum() < 1e-6:
        return random_pair(rng)
    return p, q, float(np.exp(rng.uniform(np.log(0.01), np.log(5))))


def check_identities(split: Decomposition) -> None:
    pair, tau = split.pair, split.tau
    assert isinstance(pair, DiscretePair)
    a, b = split.clamp
    assert 0 <= tau <= 1
    assert 0 <= split.epsilon_prime <= split.epsilon
    assert (a, b) == ((-split.epsilon, split.epsilon_prime) if split.swapped else (-split.epsilon_prime, split.epsilon))
    core, tails = split.core, split.tails
    p, q = np.zeros_like(pair.p), np.zeros_like(pair.q)
    if core is not None:
        assert isinstance(core, DiscretePair)
        p, q = p + (1 - tau) * core.p, q + (1 - tau) * core.q
        ratios = core.ratios[~np.isnan(core.ratios)]
        assert np.all(ratios <= b + 1e-12)
        assert np.all(ratios >= a - 1e-12)
        with np.errstate(divide="ignore", invalid="ignore"):
            plain = np.log(core.p / core.q)
        seen = core.p + core.q > 1e-290
        assert np.all(plain[seen] <= b + 1e-12)
        assert np.all(plain[seen] >= a - 1e-12)
    if tails is not None:
        assert isinstance(tails, DiscretePair)
        p, q = p + tau * tails.p, q + tau * tails.q
        assert not np.any((tails.p > 0) & (tails.q > 0))
    np.testing.assert_allclose(p, pair.p, rtol=0, atol=1e-12)
    np.testing.assert_allclose(q, pair.q, rtol=0, atol=1e-12)
    assert (core is None) == (tau == 1)
    assert (tails is None) == (tau == 0)


@pytest.mark.parametrize("pairs", [150, pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_P_and_Q_are_mixtures_of_core_and_tails_on_random_pairs(pairs: int) -> None:
    rng = np.random.default_rng(20181127)
    swapped = 0
    for _ in range(pairs):
        p, q, epsilon = random_pair(rng)
        # by label: an array of 0 and 1, as a law in one place is, would be taken for data
        split = decompose(dict(enumerate(p)), dict(enumerate(q)), epsilon=epsilon)
        check_identities(split)
        swapped += split.swapped
        # tau and eps' by their definitions
        forward = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        backward = np.maximum(q - math.exp(epsilon) * p, 0).sum()
        assert split.tau == pytest.approx(max(forward, backward), rel=1e-11, abs=1e-15)
        other = split.pair.hockey_stick(split.epsilon_prime, reverse=not split.swapped)
        assert other == pytest.approx(split.tau, rel=1e-11, abs=1e-15)
        further = split.epsilon_prime * (1 + 1e-6) + 1e-9
        if further < epsilon and split.tau > 0:  # the LARGEST such y
            assert split.pair.hockey_stick(further, reverse=not split.swapped) < split.tau
    assert pairs / 5 < swapped < 4 * pairs / 5


BER_TAU, BER_PRIME = 0.017563936464993588, 0.03540582126928362


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_bernoulli_has_the_numbers_of_the_issue(label: int, reverse: bool) -> None:
    laws = [{label: p, 1 - label: 1 - p} for p in (0.05, 0.1)]
    split = decompose(*(laws[::-1] if reverse else laws), epsilon=0.5)
    assert split.tau == pytest.approx(BER_TAU, rel=1e-12)
    assert split.epsilon_prime == pytest.approx(BER_PRIME, rel=1e-12)
    assert split.swapped is not reverse
    with mp.workdps(30):
        tau = mp.mpf("0.1") - mp.exp(mp.mpf("0.5")) * mp.mpf("0.05")
        assert split.epsilon_prime == pytest.approx(float(mp.log((mp.mpf("0.95") - tau) / mp.mpf("0.9"))), rel=1e-13)


def test_figure_one_of_the_paper() -> None:
    c = 2 * (1 - math.log(2))
    p = density(lambda x: np.log(2 * x), support=(0, 1))
    q = density(lambda x: -np.log1p(np.sqrt(x)) - math.log(c), support=(0, 1))
    split = decompose(p, q, epsilon=0.2)
    assert split.swapped
    assert round(split.tau, 6) == 0.268620
    assert split.pair.hockey_stick(split.epsilon_prime) == pytest.approx(split.tau, rel=1e-12)
    assert split.clamp == (-0.2, split.epsilon_prime)


def test_laplace_by_closed_form() -> None:
    """D_y = 1 - e^((y - s)/2) both ways: tau is that, eps' = eps, and from eps = s on there are no tails."""
    for epsilon in (0.1, 0.5, 0.9):
        split = decompose("laplace(0, 1)", "laplace(1, 1)", epsilon=epsilon)
        assert split.tau == pytest.approx(-math.expm1((epsilon - 1) / 2), rel=1e-12)
        assert split.epsilon_prime == epsilon
    split = decompose("laplace(0, 1)", "laplace(1, 1)", epsilon=1)
    assert split.tau == 0
    assert split.tails is None


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_exponential_by_closed_form(epsilon: float) -> None:
    """Rates 1 and 1/2, L = log 2 - x/2. With t = e^y: {L > y} = {x < 2 log(2/t)}, so D_y(P||Q) = (1 - t/2)^2,
    and {L < -y} = {x > 2 log(2t)}, so D_y(Q||P) = 1/(4t). They meet at t = 1; then the second is larger."""
    split = decompose("exponential(1)", "exponential(2)", epsilon=epsilon)
    t = math.exp(epsilon)
    forward, backward = max(1 - t / 2, 0) ** 2, 1 / (4 * t)
    assert split.tau == pytest.approx(max(forward, backward), rel=1e-12)
    assert split.swapped == (backward > forward)
    assert split.swapped
    assert split.epsilon_prime == pytest.approx(math.log(2 * (1 - math.sqrt(backward))), rel=1e-11)


def test_poisson_and_geometric_by_direct_sums() -> None:
    for null, alternative, epsilon in [
        (stats.poisson(3), stats.poisson(4), 0.5),
        (stats.poisson(30), stats.poisson(20), 1.0),
        (stats.geom(0.3), stats.geom(0.5), 0.4),
        (stats.nbinom(3, 0.3), stats.poisson(7), 0.7),
    ]:
        split = decompose(null, alternative, epsilon=epsilon)
        k = np.arange(0, 400)
        p, q = null.pmf(k), alternative.pmf(k)
        forward = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        backward = np.maximum(q - math.exp(epsilon) * p, 0).sum()
        assert split.tau == pytest.approx(max(forward, backward), rel=1e-11)
        assert split.swapped == (backward > forward)
        top, bottom = (p, q) if split.swapped else (q, p)
        other = np.maximum(top - math.exp(split.epsilon_prime) * bottom, 0).sum()
        assert other == pytest.approx(split.tau, rel=1e-11)
        check_identities(split)


CONTINUOUS: list[tuple[Any, Any]] = [
    ("normal(0, 1)", "normal(1, 1)"),
    ("normal(0, 1)", "normal(0, 2)"),
    ("cauchy(0, 1)", "normal(0, 1)"),
    ("exponential(1)", "gamma(2)"),
    ("laplace(0, 1)", "laplace(1, 1)"),
    ("uniform(0, 1)", "uniform(0.5, 1.5)"),
    ("beta(0.5, 0.5)", "beta(2, 2)"),
    ("mixture(0.5, normal(-3, 0.1), 0.5, normal(3, 1))", "normal(0, 3)"),
    ("student_t(3)", "normal(0.5, 2)"),
    ("lognormal(0, 1)", "exponential(2)"),
]


@pytest.mark.parametrize(("null", "alternative"), CONTINUOUS)
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 2.0])
def test_continuous_core_and_tails_make_up_P_and_Q(null: Any, alternative: Any, epsilon: float) -> None:
    split = decompose(null, alternative, epsilon=epsilon)
    pair, tau = split.pair, split.tau
    assert isinstance(pair, ContinuousPair)
    a, b = split.clamp
    x = pair.landmarks[1:-1]
    # differences of cdfs on a grid, and densities on the grid
    p, q = np.zeros(x.size), np.zeros(x.size)
    p_cdf, q_cdf = np.zeros(x.size), np.zeros(x.size)
    for share, part in ((1 - tau, split.core), (tau, split.tails)):
        if part is None:
            assert share == 0
            continue
        assert isinstance(part, ContinuousPair)
        p, q = p + share * part.null.pdf(x), q + share * part.alternative.pdf(x)
        p_cdf, q_cdf = p_cdf + share * part.null.cdf(x), q_cdf + share * part.alternative.cdf(x)
        np.testing.assert_allclose(part.null.cdf(x) + part.null.sf(x), 1, atol=1e-12)
    ends = [*pair.null.support, *pair.alternative.support]
    edges = [end for piece in (*split.sets.S, *split.sets.T) for end in piece]  # type: ignore[attr-defined]
    inner = ~np.isin(x, [*ends, *edges])
    np.testing.assert_allclose(p[inner], pair.null.pdf(x)[inner], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(q[inner], pair.alternative.pdf(x)[inner], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(p_cdf, pair.null.cdf(x), atol=1e-12)
    np.testing.assert_allclose(q_cdf, pair.alternative.cdf(x), atol=1e-12)
    if split.core is not None:
        low, high = split.core.ratio_range
        assert a - 1e-12 <= low
        assert high <= b + 1e-12
        assert split.core.hellinger_squared == pytest.approx(split.core_hellinger_squared, rel=1e-8, abs=1e-14)
    if split.tails is not None:
        assert split.tails.total_variation == pytest.approx(1, abs=1e-12)
    other = pair.hockey_stick(split.epsilon_prime, reverse=not split.swapped)
    assert other == pytest.approx(tau, rel=1e-11) or split.epsilon_prime == epsilon


@settings(max_examples=30)
@given(
    st.floats(-3, 3).map(lambda x: round(x, 3)),
    st.floats(0.2, 4).map(lambda x: round(x, 3)),
    st.floats(0.01, 4),
)
def test_swapping_the_hypotheses_mirrors_everything(mean: float, sd: float, epsilon: float) -> None:
    if (mean, sd) == (0, 1):
        return
    there = decompose("normal(0, 1)", f"normal({mean}, {sd})", epsilon=epsilon)
    back = decompose(f"normal({mean}, {sd})", "normal(0, 1)", epsilon=epsilon)
    assert there.tau == pytest.approx(back.tau, rel=1e-10, abs=1e-300)
    assert there.epsilon_prime == pytest.approx(back.epsilon_prime, rel=1e-8, abs=1e-12)
    if abs(there.epsilon_prime - epsilon) > 1e-9 * epsilon:
        assert there.swapped is not back.swapped


def test_no_tails_when_epsilon_is_at_least_the_largest_ratio() -> None:
    for epsilon in (math.log(2), 0.7, 3):
        split = decompose([0.5, 0.5], [0.25, 0.75], epsilon=epsilon)
        assert (split.tau, split.epsilon_prime, split.swapped) == (0.0, float(epsilon), False)
        assert split.tails is None
        assert split.core is split.pair


def test_flat_divergence_keeps_epsilon_prime_at_epsilon() -> None:
    """Mass 0.3 where the other density is zero, on both sides: D_y = 0.3 for every y that matters."""
    for epsilon in (0.1, 1.0, 3.0):
        split = decompose([0.3, 0.7, 0.0], [0.0, 0.7, 0.3], epsilon=epsilon)
        assert split.tau == pytest.approx(0.3, rel=1e-15)
        assert split.epsilon_prime == epsilon
        assert isinstance(split.core, DiscretePair)
        np.testing.assert_allclose(split.core.p, [0, 1, 0], atol=1e-15)
    # unequal by rounding only: 0.1 + 0.2 against 0.3
    split = decompose([0.1, 0.2, 0.7, 0.0], [0.0, 0.0, 0.7, 0.3], epsilon=1.0)
    assert split.epsilon_prime == 1.0
    split = decompose("uniform(0, 1)", "uniform(0.1, 1.1)", epsilon=0.3)
    assert split.epsilon_prime == 0.3
    assert split.tau == pytest.approx(0.1, rel=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1 / 3, 1e-6])
def test_tau_equal_to_tv_makes_epsilon_prime_zero(alpha: float) -> None:
    """Ber(0) against Ber(alpha): nothing of Q's excess is lost, P's is worth nothing."""
    split = decompose([1.0, 0.0], [1 - alpha, alpha], epsilon=0.5)
    assert split.tau == pytest.approx(alpha, rel=1e-9)
    assert split.epsilon_prime == 0
    assert split.swapped
    assert split.clamp == (-0.5, 0.0)
    assert isinstance(split.core, DiscretePair)
    assert split.core.total_variation == pytest.approx(0, abs=1e-15)
    check_identities(split)
    back = decompose([1 - alpha, alpha], [1.0, 0.0], epsilon=0.5)
    assert (back.epsilon_prime, back.swapped) == (0, False)


@pytest.mark.parametrize(
    ("null", "alternative"),
    [
        ([1.0, 0.0], [0.0, 1.0]),
        ([0.5, 0.5, 0, 0], [0, 0, 0.1, 0.9]),
        ("uniform(0, 1)", "uniform(1, 2)"),
        ("uniform(0, 1)", "uniform(5, 6)"),
        ({0: 1.0}, stats.poisson(3, loc=1)),
    ],
)
def test_disjoint_supports_have_no_core(null: Any, alternative: Any) -> None:
    split = decompose(null, alternative, epsilon=0.5)
    assert (split.tau, split.epsilon_prime) == (1.0, 0.5)
    assert split.core is None
    assert split.core_hellinger_squared == 0
    assert split.tails is not None
    assert split.tails.total_variation == pytest.approx(1)
    assert split.sets.A == ()


def test_sets_are_labels_integer_ranges_or_intervals() -> None:
    split = decompose({"a": 0.5, "b": 0.3, "c": 0.2, "d": 0}, {"a": 0.2, "b": 0.3, "c": 0.5, "d": 0}, epsilon=0.3)
    assert (split.sets.S, split.sets.T, split.sets.A) == (("a",), ("c",), ("b",))
    split = decompose("poisson(3)", "poisson(4)", epsilon=0.5)
    assert split.sets.S == ((0, 2),)
    assert split.sets.A == ((3, 5),)
    ((first, last),) = split.sets.T  # type: ignore[misc]
    assert (first, last) == (6, np.iinfo(np.int64).max)
    assert repr(split.sets).startswith("Sets(S={0..2}, T={6..")
    split = decompose("normal(0, 1)", "normal(0, 2)", epsilon=0.5)
    assert len(split.sets.S) == 1
    assert len(split.sets.T) == len(split.sets.A) == 2
