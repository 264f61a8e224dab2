"""The exact law of a noisy total, against plain sums in extended precision: the stated error bounds the true one.

Also its parts: the Fourier integral, which refuses integrands that are too rough, and tilted laws with their windows.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from privatest.errors import InvalidInput
from privatest.laws import noisy_total as total_module
from privatest.laws.noisy_total import (
    Bounded,
    NoisyTotal,
)
from privatest.privacy import Gaussian, Laplace, Logistic, Noise, NoNoise, Tulap
from tests.laws.reference import EXTENDED, binomial_tails, exact_tails, law_of_sum, tails

STEPS, LAW = np.array([0.0, 1.0, 2.0, 5.0]), np.array([0.3, 0.3, 0.3, 0.1])


STEPS_TILT, LAW_TILT = np.array([0.0, 1.0, 4.0, 9.0]), np.array([0.3, 0.4, 0.2, 0.1])


needs_long_doubles = pytest.mark.skipif(not EXTENDED, reason="long doubles are doubles here")


def noises(width: int, epsilon: Fraction) -> list[Noise]:
    return [
        Tulap(epsilon, width),
        Laplace(Fraction(width) / epsilon),
        Logistic(Fraction(width) / epsilon),
        NoNoise(),
        Tulap(epsilon, max(width // 3, 1)),
    ]


def random_case(rng: np.random.Generator) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], int, Noise]:
    span = int(rng.choice([1, 2, 5, 30, 200]))
    count = min(int(rng.integers(1, 7)), 2 * span + 1)
    spacing = int(rng.choice([1, 1, 3, 8]))
    support = np.sort(rng.choice(np.arange(-span, span + 1) * spacing, size=count, replace=False)).astype(np.int64)
    law = rng.dirichlet(np.full(count, float(rng.choice([0.05, 0.3, 1, 5]))))
    law = law**3 if rng.random() < 0.3 else law
    law = law / math.fsum(law)
    n = int(rng.choice([1, 2, 3, 7, 20, 60, 150]) if span <= 30 else rng.choice([1, 2, 5, 11]))
    epsilon = Fraction(int(rng.choice([1, 5, 10, 30, 100])), int(rng.choice([10, 100])))
    width = int(support[-1] - support[0]) or 1
    return support, law, n, noises(width, epsilon)[int(rng.integers(5))]


def assert_close(found: Bounded, exact: np.longdouble, *, relative: float = 1e-6) -> None:
    difference = abs(float(np.longdouble(found.value) - exact))
    assert difference <= found.error
    assert difference <= 1e-10
    assert found.lower <= float(exact) * (1 + 1e-15)
    assert float(exact) * (1 - 1e-15) <= found.upper + 1e-16
    if exact > 1e-290:
        assert difference <= relative * float(exact)


@needs_long_doubles
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 8))])
def test_random_laws_against_plain_sums(seed: int) -> None:
    """25 laws a seed, nine levels each, both tails: within 1e-10, the stated error, and relatively 1e-6."""
    rng = np.random.default_rng(seed)
    for _ in range(25):
        support, law, n, noise = random_case(rng)
        found = NoisyTotal(support, law, n, noise)
        start, sums = law_of_sum(support, law, n)
        mean = n * float(law @ support)
        deviation = math.sqrt(n * float(law @ (support - law @ support) ** 2) + noise.variance)
        for z in (0, 0.9, -1.1, 3, -3, 7, -7, 11, -11):
            x = Fraction(round(mean + z * deviation))
            lower, upper = tails(start, sums, noise, x)
            # a law whose atoms span many orders of magnitude has tails that no single tilt resolves
            relative = 1e-6 if np.min(law[law > 0]) > 1e-12 else math.inf
            assert_close(found.bounded_cdf(x), lower, relative=relative)
            assert_close(found.bounded_sf(x), upper, relative=relative)


@needs_long_doubles
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_random_laws_by_inversion_against_plain_sums(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the Fourier integral, which by itself would leave such short laws to the convolution."""
    monkeypatch.setattr(total_module, "SMALL_WINDOW", 0)
    monkeypatch.setattr(total_module, "INVERSION_PER_POINT", 10**6)
    monkeypatch.setattr(total_module, "LARGE_WINDOW", 0)
    calls = []
    original = total_module.upper_tail_by_inversion

    def spy(*args: Any) -> Any:
        found = original(*args)
        calls.append(found is not None)
        return found

    monkeypatch.setattr(total_module, "upper_tail_by_inversion", spy)
    rng = np.random.default_rng(100 + seed)
    for _ in range(12):
        span = int(rng.choice([1, 2, 5]))
        support = np.arange(-span, span + 1) * int(rng.choice([1, 1, 3]))
        law = rng.dirichlet(np.full(len(support), 1.0))
        n = int(rng.choice([150, 400, 1000]))
        width = int(support[-1] - support[0])
        noise = noises(width, Fraction(int(rng.choice([1, 10, 30])), 10))[int(rng.integers(5))]
        found = NoisyTotal(support, law, n, noise)
        start, sums = law_of_sum(support, law, n)
        mean = n * float(law @ support)
        deviation = math.sqrt(n * float(law @ (support - law @ support) ** 2) + noise.variance)
        for z in (0, 1, -1, 4, -4, 9, -9):
            x = Fraction(round(mean + z * deviation))
            lower, upper = tails(start, sums, noise, x)
            assert_close(found.bounded_cdf(x), lower)
            assert_close(found.bounded_sf(x), upper)
    assert sum(calls) > 60


@pytest.mark.parametrize("target", [1e-12, 1e-30])
@pytest.mark.parametrize("noise", noises(12, Fraction(3)), ids=repr)
def test_far_tails_are_accurate_relative_to_themselves(noise: Noise, target: float) -> None:
    """Against 50 digits, near 1e-12 and near 1e-30, in both tails."""
    scores, law, n = [0, 3, 4, 12], [0.3, 0.4, 0.2, 0.1], 24
    found = NoisyTotal(np.array(scores), np.array(law), n, noise)
    with mpmath.workdps(50):
        weights = [mpmath.mpf(p) for p in law]
        weights = [p / mpmath.fsum(weights) for p in weights]
        high = next(x for x in range(0, 3000, 3) if found.sf(x) < target)
        low = next(x for x in range(n * 12, -3000, -3) if found.cdf(x) < target)
        for x in (high, low):
            lower, upper = exact_tails(scores, weights, n, noise, Fraction(x))
            small = min((found.cdf(x), lower), (found.sf(x), upper))
            if small[1] > 0:
                assert abs(small[0] / small[1] - 1) < 1e-9
                assert small[1] < target


@needs_long_doubles
@pytest.mark.parametrize("n", [10**4, pytest.param(10**6, marks=pytest.mark.exhaustive), 10**9])
@pytest.mark.parametrize("noise", noises(512, Fraction(1))[:4], ids=repr)
def test_two_scores_and_up_to_a_billion_records(n: int, noise: Noise) -> None:
    found = NoisyTotal(np.array([0, 512]), np.array([0.4, 0.6]), n, noise)
    mean, deviation = 512 * 0.6 * n, math.sqrt(512**2 * 0.24 * n + noise.variance)
    for z in (0.3, -11) if n > 10**6 else (0.3, 6, -11):
        x = Fraction(round(mean + z * deviation))
        lower, upper = binomial_tails((0, 512), 0.6, n, noise, x)
        assert_close(found.bounded_cdf(x), lower, relative=1e-9)
        assert_close(found.bounded_sf(x), upper, relative=1e-9)


@needs_long_doubles
@pytest.mark.parametrize(
    "noise", [Tulap(Fraction(1), 512), pytest.param(Laplace(Fraction(512)), marks=pytest.mark.exhaustive)], ids=repr
)
def test_a_rare_score_off_the_lattice_of_the_others(noise: Noise) -> None:
    """The integrand then has hundreds of peaks, and the law of the sum is too long to be convolved."""
    n, rare = 10**8, 1e-8
    found = NoisyTotal(np.array([0, 77, 512]), np.array([0.4, rare, 0.6 - rare]), n, noise)
    x = Fraction(round(512 * 0.6 * n + 0.5 * 512 * math.sqrt(0.24 * n)))
    lower = upper = np.longdouble(0)
    with mpmath.workdps(40):
        for k in range(20):
            weight = np.longdouble(
                str(mpmath.binomial(n, k) * mpmath.mpf(rare) ** k * (1 - mpmath.mpf(rare)) ** (n - k))
            )
            parts = binomial_tails((0, 512), (0.6 - rare) / (1 - rare), n - k, noise, x, shift=77 * k)
            lower, upper = lower + weight * parts[0], upper + weight * parts[1]
    assert_close(found.bounded_cdf(x), lower, relative=1e-9)
    assert_close(found.bounded_sf(x), upper, relative=1e-9)


@pytest.mark.parametrize("noise", noises(8, Fraction(1, 2)), ids=repr)
@pytest.mark.parametrize("n", [3, 400, 10**6])
def test_probabilities_fall_as_the_level_rises(n: int, noise: Noise) -> None:
    found = NoisyTotal(np.array([-3, 0, 1, 5]), np.array([0.2, 0.3, 0.4, 0.1]), n, noise)
    mean = n * 0.3
    deviation = math.sqrt(n * 4.6 + noise.variance)
    levels = [Fraction(k) for k in range(math.floor(mean) - 12, math.floor(mean) + 12)]  # every level around the mean
    levels += [Fraction(round(mean + z * deviation)) for z in np.linspace(-25, 25, 21)]
    values = [(x, found.cdf(x), found.sf(x)) for x in sorted(levels)]
    for (_, cdf, sf), (_, next_cdf, next_sf) in pairwise(values):
        assert next_cdf >= cdf - 1e-14
        assert next_sf <= sf + 1e-14
        # in its own tail a probability falls relatively
        assert next_cdf >= cdf * (1 - 1e-11)
        assert next_sf <= sf * (1 + 1e-11)


class TestLevels:
    def test_a_level_between_two_values_is_the_lower_value(self) -> None:
        for noise in noises(4, Fraction(1)):
            found = NoisyTotal(np.array([0, 1]), np.array([0.5, 0.5]), 6, noise)
            value = 3 + noise.offset
            for part in (Fraction(0), Fraction(1, 3), Fraction(99, 100)):
                assert found.cdf(value + part) == found.cdf(value)
            assert found.cdf(value - Fraction(1, 1000)) < found.cdf(value)

    def test_without_noise_a_level_is_included(self) -> None:
        found = NoisyTotal(np.array([0, 1]), np.array([0.5, 0.5]), 4, NoNoise())
        assert [found.cdf(k) for k in range(-1, 5)] == pytest.approx([0, 1 / 16, 5 / 16, 11 / 16, 15 / 16, 1])


class TestDegenerate:
    def test_one_score_only(self) -> None:
        for noise in noises(5, Fraction(1, 3)):
            found = NoisyTotal(np.array([7, 9]), np.array([1.0, 0.0]), 11, noise)
            for x in (70, 77, 78, 90):
                assert found.cdf(x) == pytest.approx(float(noise.cdf(x - 77)), rel=1e-14)
                assert found.sf(x) == pytest.approx(float(noise.sf(x - 77)), rel=1e-14)

    @pytest.mark.parametrize("epsilon", [Fraction(1, 10_000), Fraction(50), Fraction(1, 10**8)])
    @needs_long_doubles
    def test_tiny_and_huge_epsilon(self, epsilon: Fraction) -> None:
        support, law, n = np.array([0, 3, 17, 64]), np.array([0.1, 0.4, 0.3, 0.2]), 40
        start, sums = law_of_sum(support, law, n)
        for noise in noises(64, epsilon):
            found = NoisyTotal(support, law, n, noise)
            deviation = math.sqrt(n * 500 + noise.variance)
            for z in (0, -1, 2, 5):
                x = Fraction(round(n * float(law @ support) + z * deviation))
                lower, upper = tails(start, sums, noise, x)
                assert_close(found.bounded_cdf(x), lower)
                assert_close(found.bounded_sf(x), upper)

    def test_a_score_all_but_certain(self) -> None:
        for rare in (1e-15, 1e-30, 1e-200):
            found = NoisyTotal(np.array([0, 100]), np.array([1 - rare, rare]), 50, Tulap(Fraction(1), 100))
            assert found.cdf(0) == pytest.approx(float(Tulap(Fraction(1), 100).cdf(0)), abs=1e-12)
            assert 0 < found.sf(2000) < 1e-8


@pytest.mark.parametrize("noise", noises(512, Fraction(1)), ids=repr)
def test_levels_that_are_never_reached(noise: Noise) -> None:
    """A billion records and a level a billion standard deviations away: 0 or 1, not an error."""
    found = NoisyTotal(np.arange(513), np.full(513, 1 / 513), 10**9, noise)
    for x in (10**9 * 600, 10**9 * 511):
        assert (found.cdf(x), found.sf(x)) == (1.0, 0.0)
    for x in (-(10**9), 10**9):
        assert (found.cdf(x), found.sf(x)) == (0.0, 1.0)
    assert found.bounded_sf(10**9 * 511).error < 1e-300


class TestFarScores:
    """Scores that stand for infinite ratios outweigh all others together."""

    far = 10**11

    def test_one_far_record_settles_it(self) -> None:
        n = 1000
        found = NoisyTotal(np.array([0, 512, self.far]), np.array([0.5, 0.499, 0.001]), n, Logistic(Fraction(500)))
        assert found.sf(10**6) == pytest.approx(-math.expm1(n * math.log1p(-0.001)), rel=1e-9)
        near = NoisyTotal(np.array([0, 512]), np.array([0.5, 0.499]) / 0.999, n, Logistic(Fraction(500)))
        x = 512 * 500
        ever = -math.expm1(n * math.log1p(-0.001))
        assert found.sf(x) == pytest.approx(ever + (1 - ever) * near.sf(x), rel=1e-12)
        assert found.cdf(x) == pytest.approx((1 - ever) * near.cdf(x), rel=1e-12)

    def test_far_scores_of_both_signs_one_of_them_all_but_impossible(self) -> None:
        law = np.array([1e-28, 1e-12, 1 - 1e-12])
        found = NoisyTotal(np.array([-self.far, 0, self.far]), law, 100, NoNoise())
        assert found.sf(0) == pytest.approx(1, abs=1e-15)
        assert found.bounded_cdf(0).error < 1e-16

    def test_a_tiny_probability_of_a_far_score_is_not_lost(self) -> None:
        found = NoisyTotal(np.array([0, 1, self.far]), np.array([0.5, 0.5, 1e-20]), 10, NoNoise())
        assert found.sf(self.far - 1) == pytest.approx(1e-19, rel=1e-6)

    def test_a_level_beyond_one_far_record_is_not_answered_wrongly(self) -> None:
        """How many far records there are would then count, not only whether there is one."""
        found = NoisyTotal(np.array([0, 1, self.far]), np.array([0.5, 0.25, 0.25]), 2, Laplace(Fraction(10)))
        assert found.sf(self.far // 2) == pytest.approx(1 - 0.75**2, rel=1e-12)
        with pytest.raises(InvalidInput):
            found.sf(self.far + self.far // 2)

    @pytest.mark.parametrize("noise", [Tulap(Fraction(1), 700), NoNoise()], ids=repr)
    @pytest.mark.parametrize(("place", "share"), [(-(10**8), 1e-200), (10**8 + 7, 1e-200), (10**8, 1e-300)])
    def test_a_far_score_that_never_occurs_changes_nothing(self, noise: Noise, place: int, share: float) -> None:
        support, law, n = np.array([0, 350, 521, 700]), np.array([0.1, 0.2, 0.3, 0.4]), 300
        near = NoisyTotal(support, law, n, noise)
        order = np.argsort([*support, place])
        far = NoisyTotal(np.array([*support, place])[order], np.array([*law, share])[order], n, noise)
        for z in (-9, -2, 0.1, 3, 8):
            x = Fraction(round(n * 506.3 + z * math.sqrt(n * 50_000 + noise.variance)))
            for one, other in ((near.bounded_cdf(x), far.bounded_cdf(x)), (near.bounded_sf(x), far.bounded_sf(x))):
                assert abs(one.value - other.value) <= one.error + other.error
                assert one.value == pytest.approx(other.value, rel=1e-9)

    def test_a_law_too_long_is_refused_with_a_remedy(self) -> None:
        rng = np.random.default_rng(0)
        support = np.unique(rng.integers(0, 10**9, 50))
        found = NoisyTotal(support, np.full(len(support), 1 / len(support)), 30, NoNoise())
        with pytest.raises(InvalidInput, match="n=30 is too large for exact error rates"):
            found.cdf(10**10)


@pytest.mark.parametrize("deviations", [5, 20, 28, 36, 37.5])
def test_far_tails_under_gaussian_noise_by_adding_logarithms(deviations: float) -> None:
    """The noise's transform is e^700 there, and the sum's as small: only together are they a probability."""
    n, noise = 10**6, Gaussian(Fraction(1, 2000), 1)
    found = NoisyTotal(np.array([0, 1]), np.array([0.5, 0.5]), n, noise)
    x = n // 2 + round(deviations * math.sqrt(n / 4 + noise.variance))
    counts = np.arange(n + 1)
    logs = stats.binom.logpmf(counts, n, 0.5) + noise.logsf(x - counts)
    exact = float(special.logsumexp(logs))
    assert math.log(found.sf(x)) == pytest.approx(exact, abs=1e-7)  # as many digits as scipy's binomial has
    assert found.bounded_sf(x).error < 1e-9 * found.sf(x)


def test_a_tail_of_few_known_digits_is_told_as_its_upper_bound() -> None:
    assert Bounded(0.0, 1e-40).certified == 1e-40
    assert Bounded(1e-40, 1e-43).certified == 1.001e-40
    assert Bounded(0.3, 1e-12).certified == 0.3
    assert Bounded(0.0, math.exp(-740)).certified == 0.0  # a double has no digits of it
