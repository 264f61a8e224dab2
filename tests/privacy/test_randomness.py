"""The coins' exact probabilities, by enumeration of every answer of the source; and broken coins that fail.

Layer by layer: each function is enumerated with the one below it replaced by an oracle of the probability
that the layer below was shown to have.

The sources: ranges, uniformity, reproducibility, and who says what about being simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

from privatest.privacy import RandomSource, seeded_source, system_source
from privatest.privacy import randomness as coins
from tests.privacy import enumeration
from tests.privacy.enumeration import law
from tests.privacy.reference import mp

Coin = Callable[[int, int, Any], bool]
Whole = Callable[[int, int, Any], int]
TENTH = Fraction(1, 10)
RATES = [
    Fraction(0),
    Fraction(1, 10**20),
    TENTH,
    Fraction(7500000000000001, 25000000000000000),
    Fraction(12345678901234567890, 31234567890123456789),
    Fraction(1),
    Fraction(22, 7),
    Fraction(50),
]


def coin_is_exact(coin: Coin, rate: Fraction, probability: object, prune: float = 1e-30) -> bool:
    """Whether the bracket around Pr[True] is narrow and holds ``probability``, and Pr[False] the rest."""
    found = law(lambda source: coin(rate.numerator, rate.denominator, source), prune)
    assert found.cut < 1e-25
    return found.brackets(True, probability) and found.brackets(False, 1 - probability)  # type: ignore[operator]


@pytest.mark.parametrize("p", [0, 1, 3, 10**20, 10**20 + 1])
def test_bernoulli_is_exact(p: int) -> None:
    q = 10**20 + 1
    found = law(lambda source: coins.bernoulli(p, q, source), prune=1e-30)
    assert found.cut == 0
    assert found.lower.get(True, Fraction(0)) == Fraction(p, q)


@pytest.mark.parametrize("rate", [rate for rate in RATES if rate <= 1])
def test_bernoulli_exp_is_exact_up_to_rate_one(rate: Fraction) -> None:
    """To 25 digits, whatever the size of numerator and denominator."""
    assert coin_is_exact(coins._bernoulli_exp_within_one, rate, mpmath.exp(-mp(rate)))


@pytest.mark.parametrize("rate", RATES)
def test_bernoulli_exp_is_exact(rate: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coins, "_bernoulli_exp_within_one", enumeration.bernoulli_exp)
    assert coin_is_exact(coins.bernoulli_exp, rate, mpmath.exp(-mp(rate)))


def test_a_coin_that_reads_a_tenth_in_binary_is_caught() -> None:
    """exp(-0.1) for the double nearest 0.1 is 5e-18 off: invisible to doubles, not to the enumeration."""

    def binary(p: int, q: int, source: Any) -> bool:
        return coins.bernoulli_exp(*(p / q).as_integer_ratio(), source)

    assert coin_is_exact(coins.bernoulli_exp, TENTH, mpmath.exp(-mp(TENTH)))
    assert not coin_is_exact(binary, TENTH, mpmath.exp(-mp(TENTH)))


def test_an_off_by_one_coin_is_caught() -> None:
    """A numerator one too large at a denominator of 20 digits, as `<=` for `<` would make it: 1e-20 off."""

    def shifted(p: int, q: int, source: Any) -> bool:
        return coins._bernoulli_exp_within_one(p + 1, q, source)

    rate = Fraction(12345678901234567890, 31234567890123456789)
    assert coin_is_exact(coins.bernoulli_exp, rate, mpmath.exp(-mp(rate)))
    assert not coin_is_exact(shifted, rate, mpmath.exp(-mp(rate)))


@pytest.fixture
def exponential_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coins, "_bernoulli_exp_within_one", enumeration.bernoulli_exp)
    monkeypatch.setattr(coins, "bernoulli_exp", enumeration.bernoulli_exp)


@pytest.mark.usefixtures("exponential_oracle")
@pytest.mark.parametrize("rate", RATES)
def test_sigmoid_is_exact(rate: Fraction) -> None:
    assert coin_is_exact(coins.sigmoid, rate, 1 / (1 + mpmath.exp(-mp(rate))))


def geometric_is_exact(sampler: Whole, rate: Fraction) -> bool:
    """Whether m has probability (1-r) r^m, to 25 digits, for m up to 20."""
    found = law(lambda source: sampler(rate.numerator, rate.denominator, source), 1e-32, rounds="below")
    assert found.cut < 1e-28
    r = mpmath.exp(-mp(rate))
    return all(abs(found.kept(m) - (1 - r) * r**m) < 1e-25 for m in range(20))


# Denominators up to 100: the offset u is enumerated value by value.
RATIOS = [Fraction(1), Fraction(1, 2), Fraction(2, 3), Fraction(5, 2), Fraction(9), Fraction(13, 30)]


@pytest.mark.usefixtures("exponential_oracle")
@pytest.mark.parametrize("rate", RATIOS)
def test_geometric_is_exact(rate: Fraction) -> None:
    assert geometric_is_exact(coins.geometric, rate)


def two_sided_is_exact(sampler: Whole, rate: Fraction) -> bool:
    found = law(lambda source: sampler(rate.numerator, rate.denominator, source), 1e-38, rounds="geometric")
    r = mpmath.exp(-mp(rate))
    return all(abs(found.kept(g) - (1 - r) / (1 + r) * r ** abs(g)) < 1e-30 for g in range(-20, 21))


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 2), Fraction(5, 2)])
def test_two_sided_geometric_is_exact(rate: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coins, "geometric", enumeration.geometric)
    assert two_sided_is_exact(coins.two_sided_geometric, rate)


def test_counting_zero_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coins, "geometric", enumeration.geometric)

    def twice(p: int, q: int, source: Any) -> int:
        m = coins.geometric(p, q, source)
        return m if source.bits(1) else -m

    assert not two_sided_is_exact(twice, Fraction(1))


@pytest.mark.parametrize("rate", [Fraction(1, 10**30), Fraction(3, 10**20 + 7), Fraction(10**25, 3), Fraction(10**40)])
def test_cost_is_bounded_for_extreme_rates(rate: Fraction) -> None:
    """Uniform integers per draw, over 2,000 draws: a handful, from rates of 1e-30 to 1e40."""
    source = CountingSource()
    for _ in range(2000):
        coins.geometric(rate.numerator, rate.denominator, source)
        coins.sigmoid(rate.numerator, rate.denominator, source)
    assert source.count / 2000 < 20


class CountingSource:
    simulated = True

    def __init__(self) -> None:
        self.count = 0
        self._source = seeded_source(np.random.default_rng(5))

    def below(self, n: int) -> int:
        self.count += 1
        return self._source.below(n)

    def bits(self, k: int) -> int:
        self.count += 1
        return self._source.bits(k)


SIZES = [1, 2, 3, 7, 2**32 + 1, 2**63, 2**64 - 1, 2**64, 2**64 + 1, 3 * 2**64, 10**40, 2**200 + 1]


def seeded(seed: int) -> RandomSource:
    return seeded_source(np.random.default_rng(seed))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("source", [seeded(2), system_source], ids=["seeded", "system"])
def test_below_is_uniform_whatever_the_size(source: RandomSource, n: int) -> None:
    """Sixteen equal slices of the range (the whole of it when it is smaller), 4,000 draws, bar 1e-9."""
    slices = min(n, 16)
    draws = [source.below(n) for _ in range(4000)]
    assert all(type(draw) is int and 0 <= draw < n for draw in draws)
    if slices == 1:
        return
    counts = np.bincount([draw * slices // n for draw in draws], minlength=slices)
    # The slices of 0..n-1 have unequal sizes for small n only, where they are single values.
    assert stats.chisquare(counts).pvalue > 1e-9


@pytest.mark.parametrize("k", [0, 1, 5, 63, 64, 65, 128, 200])
@pytest.mark.parametrize("source", [seeded(3), system_source], ids=["seeded", "system"])
def test_bits_have_the_right_number_of_fair_bits(source: RandomSource, k: int) -> None:
    draws = [source.bits(k) for _ in range(1000)]
    assert all(type(draw) is int and 0 <= draw < 2**k for draw in draws)
    for position in range(k):
        ones = sum(draw >> position & 1 for draw in draws)
        assert stats.binomtest(ones, 1000).pvalue > 1e-9


def test_rejection_uses_every_top_bit_pattern_once() -> None:
    """Fed with known words, below(n) returns each word's top bits unless they are n or more."""

    class Counter(np.random.Generator):
        def integers(self, *_: object, **__: object) -> object:  # type: ignore[override]
            return np.array([value << 61 for value in range(8)], dtype=np.uint64)

    source = seeded_source(Counter(np.random.PCG64(0)))
    # Words are taken from the end of a block; 7, 6 and 5 are rejected by below(5).
    assert [source.below(5) for _ in range(10)] == [4, 3, 2, 1, 0, 4, 3, 2, 1, 0]


@pytest.mark.parametrize("count", [1, 2, 8])
def test_words_of_the_system_never_repeat(count: int) -> None:
    words = [word for _ in range(2000 // count) for word in coins.SystemSource.words(count)]
    assert len(set(words)) == 2000
    assert 0 <= min(words) <= max(words) < 1 << 64
    for bit in range(64):
        assert 800 < sum(word >> bit & 1 for word in words) < 1200  # 9 deviations
