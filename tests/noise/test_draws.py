"""The draws: exact laws by enumeration, exact types, and no float anywhere on the way."""

from __future__ import annotations

import ast
import inspect
import textwrap
from fractions import Fraction
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest

import privatest.noise
from privatest.noise import Laplace, Logistic, Noise, NoNoise, Tulap, coins, seeded_source
from privatest.noise.randomness import SeededSource
from tests.noise import enumeration, reference
from tests.noise.enumeration import law


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


@pytest.mark.parametrize("noise", [*reference.NOISES, NoNoise()], ids=reference.name)
def test_draws_are_exact_rationals_on_the_lattice(noise: Noise) -> None:
    source = IntegersOnly()
    for _ in range(300):
        value = noise.draw(source)
        assert type(value) is Fraction
        assert type(value.numerator) is int
        assert (value - noise.offset).denominator == 1


class IntegersOnly:
    """A source that is asked for, and gives, Python integers and nothing else."""

    simulated = True

    def __init__(self) -> None:
        self._source = seeded_source(np.random.default_rng(11))

    def below(self, n: int) -> int:
        assert type(n) is int
        return self._source.below(n)

    def bits(self, k: int) -> int:
        assert type(k) is int
        return self._source.bits(k)


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
    assert float_suspects(source_tree(coins)) == []
    for noise_class in (Tulap, Laplace, Logistic, NoNoise):
        assert float_suspects(source_tree(noise_class._draw_doubled)) == []
    assert float_suspects(source_tree(Noise.draw)) == []
    for method in (SeededSource.below, SeededSource.bits):
        assert float_suspects(source_tree(method)) == []


@pytest.mark.parametrize(
    "planted", ["x = 0.5", "x = a / b", "x /= 2", "import math", "from math import exp", "x = float(y)"]
)
def test_a_planted_float_is_found(planted: str) -> None:
    assert len(float_suspects(ast.parse(planted))) == 1


def test_the_public_names_are_there() -> None:
    for name in privatest.noise.__all__:
        assert hasattr(privatest.noise, name)
