"""Every noise at a deviation of about 2^50, drawn one by one and many at a time: no binary digit of a draw is missing.

A sampler that stops at the digits it happens to have is right in every test of small deviations. Here each of the 44
lowest digits must be fair, remainders by odd numbers uniform, and quantiles where the law, written apart, has them. The
bars are those of a false alarm of 1e-9; draws are seeded. A sampler that rounds is shown to fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtri

import privatest as pt
from privatest.privacy import (
    Gaussian,
    Laplace,
    Logistic,
    Noise,
    RandomSource,
    TruncatedTulap,
    Tulap,
    Uniform,
    seeded_source,
)
from privatest.privacy.bulk_draws import draw_blocks, draw_many, noise_adder
from privatest.privacy.decision_chain import Chain, Stair
from privatest.privacy.randomness import UniformDigits, geometric, two_sided_geometric

SCALE = 1 << 50
WIDTH = 1 << 40
FEW = 2400
QUANTILES = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)
SMALL = Fraction(WIDTH, SCALE)


def laplace(x: float) -> float:
    return math.exp(x) / 2 if x < 0 else 1 - math.exp(-x) / 2


def tulap(x: float) -> float:
    """Of epsilon 1, in widths: a two-sided geometric number and one that is uniform on (-1/2, 1/2)."""
    whole, part = math.floor(x + 0.5), x + 0.5 - math.floor(x + 0.5)
    masses = [math.tanh(0.5) * math.exp(-abs(g)) for g in range(-60, 61)]
    return sum(masses[: whole + 60]) + part * masses[whole + 60]


# The noise, what a draw is divided by, and the law of the quotient.
NOISES: dict[str, tuple[Noise, int, Callable[[float], float]]] = {
    "tulap": (Tulap(Fraction(1), SCALE), SCALE, tulap),
    "tulap, many blocks": (Tulap(SMALL, WIDTH), SCALE, laplace),
    "tulap, odd": (Tulap(Fraction(1), SCALE - 1), SCALE, tulap),
    "truncated": (TruncatedTulap(Fraction(1), Fraction(1, 10**9), SCALE), SCALE, tulap),
    "truncated, many blocks": (TruncatedTulap(SMALL, Fraction(1, 10**9), WIDTH), SCALE, laplace),
    "laplace": (Laplace(Fraction(SCALE)), SCALE, laplace),
    "laplace, odd": (Laplace(Fraction(SCALE * 7, 3)), SCALE * 7 // 3, laplace),
    "logistic": (Logistic(Fraction(SCALE)), SCALE, lambda x: 1 / (1 + math.exp(-x))),
    "uniform": (Uniform(SCALE), SCALE, lambda x: min(max(x + 0.5, 0.0), 1.0)),
    "uniform, odd": (Uniform(3 * SCALE - 1), 3 * SCALE - 1, lambda x: min(max(x + 0.5, 0.0), 1.0)),
    "gaussian": (Gaussian(SMALL, WIDTH), SCALE, lambda x: math.erfc(-x / math.sqrt(2)) / 2),
    "gaussian, odd": (Gaussian(Fraction(3, 5), SCALE), SCALE * 5 // 3, lambda x: math.erfc(-x / math.sqrt(2)) / 2),
    "stair": (Stair(Fraction(1, SCALE), 1), SCALE, laplace),
}


def one_by_one(noise: Noise, source: RandomSource) -> list[int]:
    return [int(2 * noise.draw(source)) for _ in range(FEW)]


def many(noise: Noise, source: RandomSource) -> list[int]:
    count = 4096 if isinstance(noise, Gaussian) else FEW  # from so many on by a table
    return [int(one) for one in draw_many(noise, count, source)]


def in_blocks(noise: Noise, source: RandomSource) -> list[int]:
    return [int(one) for one in draw_blocks(noise, FEW, source)]


def added(noise: Noise, source: RandomSource) -> list[int]:
    adder = noise_adder(noise, source)
    return [one for _ in range(FEW // 3) for one in adder([0, 0, 0])]


SEVERAL_WAYS = {"tulap", "truncated", "uniform", "gaussian"}
"""Noises that are drawn in other ways than one by one; their variants are in the exhaustive tests."""
WAYS = {"one by one": one_by_one, "many": many, "blocks": in_blocks, "added": added}


def unfair(values: list[int], digits: int) -> list[str]:
    """What of whole numbers is not as it is of those that spread evenly over 2^digits."""
    found, n = [], len(values)
    tests = [(f"digit {place}", 0.5, sum(one >> place & 1 for one in values)) for place in range(digits)]
    for base in (3, 5, 7, 11):
        remainders = np.bincount([one % base for one in values], minlength=base)
        tests += [(f"{rest} modulo {base}", 1 / base, int(count)) for rest, count in enumerate(remainders)]
    for what, share, count in tests:
        if beyond(count, n, share):
            found.append(f"{what}: {count} of {n}")
    return found


def beyond(count: int, n: int, share: float) -> bool:
    """Whether so few or so many have a probability below about 1e-11 (Bernstein)."""
    return abs(count - n * share) > 7.2 * math.sqrt(n * share * (1 - share)) + 9


def misplaced(values: list[int], scale: int, law: Callable[[float], float]) -> list[str]:
    """Quantiles that too few or too many draws lie below."""
    found = []
    for level in QUANTILES:
        low, high = -60.0, 60.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if law(middle) < level else (low, middle)
        count = sum(value < 2 * scale * low for value in values)
        if beyond(count, len(values), level):
            found.append(f"{level}: {count} of {len(values)}")
    return found


@pytest.mark.parametrize(
    ("name", "way"),
    [
        pytest.param(name, way, marks=[] if (way == "one by one" or name in SEVERAL_WAYS) else pytest.mark.exhaustive)
        for name in NOISES
        for way in WAYS
    ],
)
def test_every_digit_of_a_large_draw_is_drawn(name: str, way: str) -> None:
    noise, scale, law = NOISES[name]
    doubled = WAYS[way](noise, seeded_source(np.random.default_rng(7)))
    parity = int(2 * noise.offset)
    assert {one % 2 for one in doubled} == {parity}
    assert not unfair([(one - parity) // 2 for one in doubled], 44)
    assert not misplaced(doubled, scale, law)


LAZY: dict[str, Noise] = {
    "gaussian": Gaussian(Fraction(1), 8),
    "gaussian, wide": Gaussian(SMALL, WIDTH),
    "truncated": TruncatedTulap(Fraction(1, 10), Fraction(1, 2), 5),
}


@pytest.mark.parametrize("name", LAZY)
@pytest.mark.parametrize("way", ["one by one", "many"])
def test_no_draw_is_decided_before_its_digits_are_known(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds on what a number is compared with enclose all that more digits of it can say."""
    compared, own = 0, UniformDigits.is_below

    def is_below(digits: UniformDigits, bounds: Callable[[int], tuple[int, int]]) -> bool:
        nonlocal compared
        compared += 1
        (low, high), bits = bounds(digits.bits), digits.bits
        for more in (5, 40, 100):
            least, most = bounds(bits + more)
            assert low << more <= least <= most <= high << more
        return own(digits, bounds)

    monkeypatch.setattr(UniformDigits, "is_below", is_below)
    WAYS[way](LAZY[name], seeded_source(np.random.default_rng(5)))
    assert compared > 0


@pytest.mark.parametrize("draw", [geometric, two_sided_geometric])
@pytest.mark.parametrize("top", [1, 3])
def test_every_digit_of_a_large_geometric_number_is_drawn(
    draw: Callable[[int, int, RandomSource], int], top: int
) -> None:
    source = seeded_source(np.random.default_rng(8))
    values = [draw(top, top * SCALE + top - 1, source) for _ in range(FEW)]
    assert not unfair(values, 44)
    signed = values if draw is two_sided_geometric else [-1 - one if i % 2 else one for i, one in enumerate(values)]
    assert not misplaced([2 * one for one in signed], SCALE, laplace)


@pytest.mark.parametrize("text", ["gdp(1)", "zcdp(0.5)", "approx(1, 0.001)"])
def test_the_levels_of_a_wide_chain(text: str) -> None:
    """What leaves is a level, a multiple of the width: each as often as the chain of h says."""
    noise = Chain(pt.notions.parse(text), WIDTH, Fraction(1, 2))
    source = seeded_source(np.random.default_rng(9))
    draws = [noise.draw(source) for _ in range(FEW)]
    assert all(one % WIDTH == 0 for one in draws)
    notion, p = noise.notion, 0.5
    for level in range(4):  # Pr[G > -k] from g(0) = 1/2 on
        assert not beyond(sum(one > -level * WIDTH for one in draws), FEW, p), level
        p = float(notion.h(p))


def test_samplers_that_stop_early_are_found() -> None:
    rng = np.random.default_rng(10)
    fine = [int(one) for one in rng.integers(-(1 << 50), 1 << 50, FEW)]
    assert not unfair(fine, 44)
    for bits in (1, 10, 30):
        assert unfair([one >> bits << bits for one in fine], 44)
        assert unfair([one >> 20 + bits << 20 + bits | one % (1 << 20) for one in fine], 44)
    normal = [int(SCALE * ndtri(u)) for u in rng.random(FEW)]
    assert unfair(normal[: FEW // 2] + [one // 3 * 3 for one in normal[FEW // 2 :]], 44)
    law = NOISES["gaussian"][2]
    assert not misplaced([2 * one for one in normal], SCALE, law)
    assert misplaced([2 * one for one in normal], 3 * SCALE // 2, law)
