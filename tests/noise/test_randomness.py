"""The sources: ranges, uniformity, reproducibility, and who says what about being simulated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from privatest.errors import InvalidInput
from privatest.noise import Source, seeded_source, system_source

SIZES = [1, 2, 3, 7, 2**32 + 1, 2**63, 2**64 - 1, 2**64, 2**64 + 1, 3 * 2**64, 10**40, 2**200 + 1]


def seeded(seed: int) -> Source:
    return seeded_source(np.random.default_rng(seed))


def test_only_the_seeded_source_is_simulated() -> None:
    assert seeded(1).simulated is True
    assert system_source.simulated is False


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("source", [seeded(2), system_source], ids=["seeded", "system"])
def test_below_is_uniform_whatever_the_size(source: Source, n: int) -> None:
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
def test_bits_have_the_right_number_of_fair_bits(source: Source, k: int) -> None:
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


def test_same_seed_same_integers() -> None:
    first, second = seeded(4), seeded(4)
    assert [first.below(n) for n in SIZES * 50] == [second.below(n) for n in SIZES * 50]
    assert seeded(4).bits(128) != seeded(5).bits(128)


def test_system_source_does_not_repeat() -> None:
    assert len({system_source.bits(128) for _ in range(1000)}) == 1000


@pytest.mark.parametrize("n", [0, -1])
def test_an_empty_range_is_an_error(n: int) -> None:
    with pytest.raises(InvalidInput, match=f"n={n}"):
        seeded(1).below(n)
    with pytest.raises(ValueError, match="positive"):
        system_source.below(n)
    with pytest.raises(InvalidInput, match="k=-1"):
        seeded(1).bits(-1)


@pytest.mark.parametrize("rng", [None, 7, np.random.RandomState(1)])
def test_a_seed_is_not_a_generator(rng: object) -> None:
    with pytest.raises(InvalidInput, match=r"default_rng\(seed\)"):
        seeded_source(rng)  # type: ignore[arg-type]


def test_bits_take_no_more_words_than_they_hold() -> None:
    class Words(np.random.Generator):
        def integers(self, *_: object, **__: object) -> object:  # type: ignore[override]
            return np.array([value << 60 | value for value in range(12, 0, -1)], dtype=np.uint64)

    source = seeded_source(Words(np.random.PCG64(0)))
    one, two, three, four = (value << 60 | value for value in range(1, 5))
    assert [source.bits(64), source.bits(64)] == [one, two]
    assert source.bits(128) == three << 64 | four
    assert source.bits(68) == (5 << 60 | 5) << 4 | 6
    assert [source.bits(4), source.bits(0), source.below(2**64), source.bits(4)] == [7, 0, 9 << 60 | 9, 10]
