"""Many draws of Tulap at once: the table is exact, ambiguous words are resolved exactly, the law is the noise's.

The draws: exact laws by enumeration, exact types, and no float anywhere on the way.
"""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

from privatest.privacy import Gaussian, Laplace, Logistic, Noise, NoNoise, Tulap, bulk_draws, seeded_source
from privatest.privacy import randomness as coins
from privatest.privacy.bulk_draws import (
    _below,
    _floor_cdf,
    _inverted,
    _reach,
    _resolve,
    _table,
    draw_many,
    draw_rows,
    draw_some,
    noise_adder,
)
from privatest.privacy.canonical_noise import acceptance, keeps
from privatest.privacy.randomness import SeededSource, UniformDigits
from tests.privacy import enumeration, reference
from tests.privacy.enumeration import law
from tests.statistical.goodness_of_fit import goodness_of_fit, scaled

BAR = 1e-9


class Scripted:
    simulated = True

    def __init__(self, answers: Iterator[int]) -> None:
        self.answers = answers

    def bits(self, k: int) -> int:
        answer = next(self.answers)
        assert 0 <= answer < 1 << k
        return answer

    def below(self, n: int) -> int:
        raise AssertionError(n)


def cdf(epsilon: Fraction, g: int) -> mpmath.mpf:
    b = mpmath.exp(-mpmath.mpf(epsilon.numerator) / epsilon.denominator)
    return b ** (-g) / (1 + b) if g <= 0 else 1 - b ** (g + 1) / (1 + b)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(7, 3), Fraction(20)])
def test_the_table_is_the_rounded_cdf(epsilon: Fraction) -> None:
    reach = _reach(epsilon)
    with mpmath.workdps(80):
        expected = [int(mpmath.floor(cdf(epsilon, g) * mpmath.power(2, 64))) for g in range(-reach, reach + 1)]
        assert _table(epsilon).tolist() == expected
        assert _floor_cdf(epsilon, 3, 200) == int(mpmath.floor(cdf(epsilon, 3) * mpmath.power(2, 200)))
    assert expected[0] == 0
    assert expected[-1] == (1 << 64) - 1


@pytest.mark.parametrize("g", [-40, -3, -1, 0, 1, 2, 25])
@pytest.mark.parametrize("up", [False, True])
def test_a_word_in_a_thresholds_cell_is_settled_by_more_bits(g: int, up: bool) -> None:
    """U just below Pr[G <= g] means g, just above means g + 1."""
    epsilon = Fraction(1)
    word, more = divmod(_floor_cdf(epsilon, g, 128), 1 << 64)
    more += 1 if up else -1
    assert _resolve(epsilon, word, Scripted(iter([more]))) == (g + 1 if up else g)
    assert _resolve(epsilon, word, Scripted(iter([more - (1 if up else -1), (1 << 64) - 1 if up else 0]))) == (
        g + 1 if up else g
    )


def test_the_lookup_sends_exactly_the_ambiguous_words_to_be_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    epsilon = Fraction(1)
    table = _table(epsilon)
    reach = _reach(epsilon)
    words = np.concatenate(
        [table[reach - 3 : reach + 4], table[reach - 3 : reach + 4] + 1, table[reach - 3 : reach + 4] - 1]
    )
    sent = []
    monkeypatch.setattr(bulk_draws, "_resolve", lambda _, word, __: sent.append(word) or 99)
    found = _inverted(epsilon, words, Scripted(iter(())))
    assert sent == table[reach - 3 : reach + 4].tolist()
    assert found[7:14].tolist() == [-2, -1, 0, 1, 2, 3, 4]  # just above the threshold of -3: -2, and so on
    assert found[14:].tolist() == [-3, -2, -1, 0, 1, 2, 3]


def test_uniform_below_rejects_the_incomplete_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    n, limit = 1000, (1 << 64) // 1000 * 1000
    batches = iter(
        [
            np.array([5, limit, limit - 1, (1 << 64) - 1], dtype=np.uint64),
            np.array([limit + 1, 1007], dtype=np.uint64),
            np.array([2001], dtype=np.uint64),
        ]
    )
    monkeypatch.setattr(bulk_draws, "_words", lambda *_: next(batches))
    assert _below(n, 4, Scripted(iter(()))).tolist() == [5, 1, 999, 7]


@pytest.mark.statistical
@pytest.mark.parametrize(("epsilon", "width"), [(Fraction(1), 1), (Fraction(1, 3), 12), (Fraction(2), 7)])
def test_many_draws_follow_the_law(epsilon: Fraction, width: int) -> None:
    noise = Tulap(epsilon, width)
    assert fit(noise, draw_many(noise, 60_000, seeded_source(np.random.default_rng(2)))) > BAR


@pytest.mark.statistical
def test_an_epsilon_that_is_five_percent_off_is_rejected() -> None:
    drawn = draw_many(Tulap(Fraction(105, 100), 5), 60_000, seeded_source(np.random.default_rng(2)))
    assert fit(Tulap(Fraction(1), 5), drawn) < BAR


def fit(noise: Noise, doubled: np.ndarray) -> float:
    return goodness_of_fit(Counter(Fraction(int(value), 2) for value in doubled.tolist()), noise).pvalue


def test_a_single_draw_sends_exactly_the_ambiguous_words_to_be_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    epsilon, width = Fraction(1), 12
    table, reach = _table(epsilon).tolist(), _reach(epsilon)
    limit = (1 << 64) // width * width
    sent: list[int] = []
    monkeypatch.setattr(bulk_draws, "_resolve", lambda _, word, __: sent.append(word) or 99)

    class Words(Scripted):
        def below(self, n: int) -> int:
            assert n == width
            return 7

    def drawn(word: int, other: int) -> tuple[int, int]:
        (doubled,) = noise_adder(Tulap(epsilon, width), Words(iter([word << 64 | other])))([0])
        return divmod((doubled + width - 1) // 2, width)

    for g in range(-3, 4):
        threshold = table[reach + g]
        assert [drawn(threshold + step, 5)[0] for step in (-1, 0, 1)] == [g, 99, g + 1]
    assert sent == table[reach - 3 : reach + 4]
    assert drawn((1 << 64) - 1, 0) == (99, 0), "beyond the table"
    assert [drawn(table[reach] - 1, limit + step) for step in (-1, 0)] == [(0, width - 1), (0, 7)]


@pytest.fixture
def coin_oracles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coins, "geometric", enumeration.geometric)
    monkeypatch.setattr(coins, "two_sided_geometric", enumeration.two_sided_geometric)
    monkeypatch.setattr(coins, "sigmoid", enumeration.sigmoid)


@pytest.mark.usefixtures("coin_oracles")
@pytest.mark.parametrize(
    "noise",
    [
        Tulap(Fraction(1), 1),
        Tulap(Fraction(1), 4),
        Tulap(Fraction(3, 2), 3),
        Laplace(Fraction(2)),
        Laplace(Fraction(2, 3)),
    ],
    ids=reference.name,
)
def test_draws_of_tulap_and_laplace_have_the_law(noise: Noise) -> None:
    found = law(noise.draw, prune=1e-38)
    for x in reference.lattice(noise, -40, 40):
        truth = reference.pmf(noise, -abs(x))
        assert abs(found.lower[x] - truth) < 1e-30, x


@pytest.mark.usefixtures("coin_oracles")
@pytest.mark.parametrize("noise", [Logistic(Fraction(2)), Logistic(Fraction(2, 3))], ids=reference.name)
def test_draws_of_logistic_have_the_law(noise: Logistic) -> None:
    """One round keeps exactly half of the candidates, in the proportions of the law."""
    found = law(noise.draw, prune=1e-38, rounds="geometric")
    assert abs(found.rejected - mpmath.mpf(1) / 2) < 1e-30
    for x in reference.lattice(noise, -40, 40):
        assert abs(found.kept(x) - reference.pmf(noise, -abs(x))) < 1e-30, x


FLOAT_MODULES = {"math", "cmath", "numpy", "random", "decimal"}


def float_suspects(tree: ast.AST) -> list[str]:
    """Whatever could bring a float into integer code: literals, true division, float(), math, numpy."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, float | complex):
            found.append(f"literal {node.value}")
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
            found.append("true division")
        elif isinstance(node, ast.Name) and node.id in {"float", "complex", "round", "np", *FLOAT_MODULES}:
            found.append(f"name {node.id}")
        elif isinstance(node, ast.ImportFrom) and node.module in FLOAT_MODULES:
            found.append(f"import from {node.module}")
        elif isinstance(node, ast.Import):
            found += [f"import {alias.name}" for alias in node.names if alias.name in FLOAT_MODULES]
    return found


def source_tree(thing: ModuleType | Any) -> ast.AST:
    return ast.parse(textwrap.dedent(inspect.getsource(thing)))


def test_no_float_enters_a_draw() -> None:
    within = coins._bernoulli_exp_within_one
    flips = (coins.bernoulli, within, coins.bernoulli_exp, coins.sigmoid, coins.geometric, coins.two_sided_geometric)
    for flip in flips:
        assert float_suspects(source_tree(flip)) == [], flip
    for noise_class in (Tulap, Laplace, Logistic, NoNoise):
        assert float_suspects(source_tree(noise_class.draw_doubled)) == []
    assert float_suspects(source_tree(Noise.draw)) == []
    for method in (SeededSource.below, SeededSource.bits):
        assert float_suspects(source_tree(method)) == []


@pytest.mark.parametrize(
    "planted", ["x = 0.5", "x = a / b", "x /= 2", "import math", "from math import exp", "x = float(y)"]
)
def test_a_planted_float_is_found(planted: str) -> None:
    assert len(float_suspects(ast.parse(planted))) == 1


GAUSSIANS = [Gaussian(Fraction(1), 8), Gaussian(Fraction(3, 10), 1), Gaussian(Fraction(5), 1)]


@pytest.mark.statistical
@pytest.mark.parametrize("noise", GAUSSIANS, ids=str)
def test_many_gaussians_follow_the_law(noise: Gaussian) -> None:
    drawn = draw_many(noise, 30_000, seeded_source(np.random.default_rng(3)))
    assert fit(noise, drawn) > BAR
    assert fit(scaled(noise, Fraction(11, 10)), drawn) < BAR


def test_the_share_that_is_kept() -> None:
    """Its bounds enclose it at any number of bits, it is below 1, and the table holds it."""
    with mpmath.workdps(80):
        for whole, x, size in (
            (0, 0, 10),
            (0, 1, 10),
            (1, 0, 10),
            (1, 1023, 10),
            (7, 5, 10),
            (3, 12345, 64),
            (70, 1, 64),
        ):
            value = mpmath.mpf(2) ** (whole + 2) / 5 * mpmath.exp(-((whole + mpmath.mpf(x) / 2**size) ** 2) / 2)
            assert value < 1
            for bits in (64, 128):
                low, high = acceptance(whole, x, size, bits)
                assert low <= value * mpmath.mpf(2) ** bits <= high <= low + 2
    table = bulk_draws._shares()
    assert table.shape == (8, 1025)
    assert int(table[1, 0]) == acceptance(1, 0, 10, 64)[0]
    assert np.all(table[:, 1:] <= table[:, :-1])


def test_a_pair_near_its_share_is_settled_by_more_digits() -> None:
    """Just below the share it is kept, just above it is not; where 64 digits overlap, the next ones decide."""
    x = 1 << 63
    low, high = acceptance(1, x, 64, 64)

    def kept(uniform: int, *more: int) -> int | None:
        """The number of digits of x that are drawn until it is kept; None if it is not. ``more`` are further digits."""
        source = Scripted(iter(more))
        digits = UniformDigits(source, x, 64)
        return digits.bits if keeps(1, digits, UniformDigits(source, uniform, 64)) else None

    assert kept(low - 3) == 64
    assert kept(high + 3) is None
    least, most = acceptance(1, x + 1, 64, 64)[0], (1 << 32) - 1
    assert kept(least, 0, 0) == 96  # the digits of x, then those of the uniform number
    assert kept(high - 1, most, most) is None


@pytest.mark.parametrize("cell", [0, 1, 511, 1022, 1023])
@pytest.mark.parametrize("whole", range(7))
def test_the_table_keeps_no_pair_that_the_exact_share_rejects(whole: int, cell: int) -> None:
    """At both ends of a cell of the table, with a uniform number just below and just above the exact share there."""
    ones = (1 << whole) - 1  # so many ones at the low end, then a zero
    rejected = (1 << 64) - 1
    for x in (cell << 54, ((cell + 1) << 54) - 1):
        low, high = acceptance(whole, x, 64, 64)
        for uniform, kept in ((low - 4, True), (high + 4, False)):
            size = 2 + 64
            first = [[ones] + [0] * (size - 1), [x] + [rejected] * (size - 1), [uniform] + [rejected] * (size - 1)]
            again = [[0] * size, [1] * size, [0] * size]  # pairs that are kept
            words = b"".join(word.to_bytes(8, "big") for row in (*first, *again) for word in row)
            (pair,) = bulk_draws._half_normals(1, Words(words))
            digits = pair[1] if isinstance(pair[1], int) else pair[1].value
            assert (digits == x) == kept, (whole, cell, kept)


class Words:
    """A source that hands out these bytes in their order."""

    simulated = True

    def __init__(self, text: bytes) -> None:
        self._text, self._place = text, 0

    def bits(self, count: int) -> int:
        start, self._place = self._place, self._place + count // 8
        return int.from_bytes(self._text[start : self._place], "big")


@pytest.mark.parametrize("up", [False, True])
def test_a_number_near_the_middle_of_two_whole_ones_is_rounded_by_more_digits(
    up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 digits of a normal number whose next one says to which whole number it is nearer: that one is drawn."""
    noise = Gaussian(Fraction(1), 3)  # three times the number
    digits = (1 << 64) // 6  # a sixth, from below: three times it is a half, from here on or only later
    assert 3 * digits < 1 << 63 < 3 * (digits + 1)
    monkeypatch.setattr(bulk_draws, "_half_normals", lambda *_: [(5, digits, 0)])
    more = (1 << 32) - 1 if up else 0
    found = bulk_draws._gaussians(noise, 1, Scripted(iter((more, 1))))  # more digits, and the sign
    assert found.tolist() == [2 * (16 if up else 15)]
    monkeypatch.setattr(bulk_draws, "_half_normals", lambda *_: [(5, digits + 5, 1)])
    assert bulk_draws._gaussians(noise, 1, Scripted(iter(()))).tolist() == [-32]


@pytest.mark.parametrize(("rows", "most"), [(2, 1), (3, 1), (4, 2), (4, 3), (5, 2)])
def test_every_choice_of_rows_is_equally_likely(rows: int, most: int) -> None:
    """By running the draw on every sequence of answers; two persons' choices are independent."""
    for persons in (1, 2):
        table = np.arange(persons * rows).reshape(persons, rows)
        found = law(lambda source, table=table: tuple(map(frozenset, draw_rows(source, table, most).tolist())), 0)
        choices = math.comb(rows, most) ** persons
        assert (len(found.lower), found.cut) == (choices, 0)
        assert set(found.lower.values()) == {Fraction(1, choices)}


@pytest.mark.parametrize(
    ("counts", "size"), [([1] * 4, 2), ([1] * 5, 4), ([2, 0, 3], 2), ([2, 1, 3], 5), ([3], 3), ([], 0)]
)
def test_every_choice_is_equally_likely(counts: list[int], size: int) -> None:
    """By running the draw on every sequence of answers: how many of each kind is hypergeometric."""
    found = law(lambda source: tuple(draw_some(source, counts, size)), 0)
    assert found.cut == 0
    choices = math.comb(sum(counts), size)
    for kinds, chance in found.lower.items():
        ways = math.prod(math.comb(count, taken) for count, taken in zip(counts, kinds, strict=True))
        assert (sum(kinds), chance) == (size, Fraction(ways, choices))


def test_many_persons_rows_are_drawn_as_few_persons_are() -> None:
    table = np.tile(np.arange(5), (20_000, 1))
    drawn = draw_rows(seeded_source(np.random.default_rng(7)), table, 2)
    assert np.array_equal(table, np.tile(np.arange(5), (20_000, 1)))  # what was given stays as it was
    counts = Counter(frozenset(line) for line in drawn.tolist())
    assert len(counts) == 10
    assert stats.chisquare(list(counts.values())).pvalue > BAR


def test_a_draw_that_prefers_a_place_is_caught() -> None:
    """Places drawn one after the other among all of them: the last swap wins."""

    def careless(source: Any) -> Any:
        table = [0, 1, 2]
        for place in range(2):
            other = source.below(3)
            table[place], table[other] = table[other], table[place]
        return frozenset(table[:2])

    assert set(law(careless, 0).lower.values()) != {Fraction(1, 3)}
