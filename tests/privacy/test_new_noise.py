"""A new noise is one class and one line of the registry: designs, error rates, prices and documents then know it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
import pytest
from numpy.typing import NDArray

from privatest.decision import PrivateTest
from privatest.decision.construction import from_score
from privatest.hypotheses import make_pair
from privatest.numbers import Floats
from privatest.privacy import NOISES, Noise, Pure
from privatest.privacy import randomness as coins
from privatest.privacy.noise import two_sided_characteristic
from privatest.privacy.notion import Neighbourhood
from privatest.privacy.randomness import RandomSource
from privatest.scores import clamped_score


@dataclass(frozen=True)
class Geometric(Noise):
    """Pr[N = k] proportional to exp(-rate abs(k)) on the integers."""

    rate: Fraction
    kind: ClassVar[str] = "geometric"
    test: ClassVar[str] = "geometric test"

    @classmethod
    def for_width(cls, epsilon: Fraction, width: Fraction, step: Fraction) -> Self:  # noqa: ARG003
        return cls(epsilon / width)

    @property
    def offset(self) -> Fraction:
        return Fraction(0)

    @property
    def decay_rate(self) -> float:
        return float(self.rate)

    @property
    def variance(self) -> float:
        return 2 * math.exp(-self.decay_rate) / math.expm1(-self.decay_rate) ** 2

    def draw_doubled(self, source: RandomSource) -> int:
        return 2 * coins.two_sided_geometric(self.rate.numerator, self.rate.denominator, source)

    def _log_pmf(self, v: Floats) -> Floats:
        return math.log(math.tanh(self.decay_rate / 2)) - self.decay_rate * np.abs(v)

    def _log_lower(self, v: Floats) -> Floats:
        return self.decay_rate * v - math.log1p(math.exp(-self.decay_rate))

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        return two_sided_characteristic(self.decay_rate, t)

    def _exact_loss(self, shift: int) -> Fraction:
        return shift * self.rate


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NOISES, Geometric.kind, Geometric)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_registered_noise_makes_tests_that_run_and_can_be_saved(neighbours: str) -> None:
    pair, clamp = make_pair("bernoulli(0.7)", "bernoulli(0.3)"), (-1, 1)
    score = clamped_score(pair, clamp)
    test = from_score(
        pair, score, Pure(Fraction(1, 2)), 60, Geometric.test, clamp, alpha=0.1, around=Neighbourhood(neighbours)
    )
    assert isinstance(test.noise, Geometric)
    assert test.price == Fraction(1, 2)
    assert 0.05 < test.alpha <= 0.1
    assert test.beta < 0.5
    assert "noise=Geometric" in repr(test)
    assert PrivateTest.from_json(test.to_json()) == test
    assert test.run([1] * 60, rng=np.random.default_rng(1)).decision == "null"
