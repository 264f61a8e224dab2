"""Every gate of privacy and of 64 bits, one step on each side: the last that passes, and the first that is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from privatest.bounds.optimum import DENOMINATOR, HistogramTest, optimum
from privatest.changepoint.block_sums import SumsDetector
from privatest.decision import PrivateTest
from privatest.decision.construction import from_score
from privatest.errors import InvalidInput
from privatest.fit import design_fit
from privatest.hypotheses import make_pair
from privatest.numbers import rational
from privatest.privacy import Laplace, Logistic, Noise, Pure, Tulap
from privatest.privacy.notion import Neighbourhood
from privatest.scores import Score, clamped_score
from privatest.scores.score import LARGEST_TOTAL
from privatest.streams.blocks import SumBlocks

PAIR = make_pair("bernoulli(0.2)", "bernoulli(0.8)")
SCORE = clamped_score(PAIR, (-1, 1), 5)
A_TRACE = Fraction(1, 10**15)


def fit_test(noise: Tulap) -> Any:
    test = design_fit([0.5, 0.3, 0.2], distance=0.3, epsilon=noise.epsilon, n=20)
    return replace(test, noise=Tulap(noise.epsilon, test.candidate.excess.width + noise.width - SCORE.width))


GATES: dict[str, Callable[[Tulap], Any]] = {
    "PrivateTest": lambda noise: PrivateTest("tight", SCORE, noise, Fraction(0), Pure(noise.epsilon), 3),
    "SumsDetector": lambda noise: SumsDetector(SCORE, noise, 4),
    "SumBlocks": lambda noise: SumBlocks(SCORE, noise, 4, 0, 1, np.array([1, -1])),
    "FitTest": fit_test,
}


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(1), Fraction(5, 2)])
@pytest.mark.parametrize("gate", GATES)
def test_noise_of_the_scores_width_passes_and_one_step_less_does_not(gate: str, epsilon: Fraction) -> None:
    assert SCORE.width == 5
    for width in (5, 6):
        GATES[gate](Tulap(epsilon, width))
    with pytest.raises(
        (InvalidInput, AssertionError), match=r"privacy loss|does not hide|would not be private|narrower"
    ):
        GATES[gate](Tulap(epsilon, 4))


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(1), Fraction(5, 2)])
@pytest.mark.parametrize("kind", [Laplace, Logistic])
def test_a_scale_of_width_over_epsilon_passes_and_a_trace_less_does_not(kind: type[Noise], epsilon: Fraction) -> None:
    def made(scale: Fraction) -> PrivateTest:
        return PrivateTest("ncllr", SCORE, kind(scale), Fraction(0), Pure(epsilon), 3)

    made(5 / epsilon)
    with pytest.raises(InvalidInput, match="privacy loss"):
        made(5 / epsilon - A_TRACE)


@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_rows_of_a_person_one_more_than_the_noise_hides(neighbours: str, rows: int) -> None:
    test = from_score(PAIR, SCORE, Pure(1), 30, "tight", (-1, 1), around=Neighbourhood(neighbours, rows))
    test = replace(test, noise=Tulap(Fraction(1), test.sensitivity))  # designs round it up to whole scores
    with pytest.raises(InvalidInput, match="privacy loss"):
        replace(test, max_rows_per_unit=rows + 1)


@pytest.mark.parametrize("epsilon", [Fraction(3, 10), Fraction(2)])
def test_probabilities_at_the_ratio_of_privacy_and_one_unit_beyond(epsilon: Fraction) -> None:
    """n = 1, two classes: either probability may be e^epsilon times the other, and so may the complements."""
    test = optimum([0.6, 0.4], [0.4, 0.6], epsilon=epsilon, n=1).test
    assert len(test.numerators) == 2
    with mpmath.workdps(40):
        small = DENOMINATOR // 50
        largest = int(mpmath.floor(small * mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)))

    def made(*numerators: int) -> HistogramTest:
        return replace(test, numerators=np.array(numerators, dtype=np.int64))

    for turn in (1, -1):
        for flip in (lambda x: x, lambda x: DENOMINATOR - x):
            made(*[flip(small), flip(largest)][::turn])
            with pytest.raises(InvalidInput, match="privacy loss"):
                made(*[flip(small), flip(largest + 1)][::turn])
    for ends in ((-1, DENOMINATOR // 2), (DENOMINATOR // 2, DENOMINATOR + 1)):
        with pytest.raises(InvalidInput, match="between 0 and"):
            made(*ends)


@pytest.mark.parametrize("text", ["NaN", "sNaN", "Infinity", "-Infinity"])
def test_a_decimal_that_is_no_number_is_refused_by_name(text: str) -> None:
    assert rational(Decimal("1e-30")) == Fraction(1, 10**30)
    with pytest.raises(InvalidInput, match=r"epsilon=-?(s?NaN|Infinity) must be finite"):
        rational(Decimal(text), "epsilon")


def scores_up_to(largest: int) -> Score:
    return replace(SCORE, table=np.array([0, largest, 0]), support=np.array([0, largest]))


def test_totals_up_to_the_largest_and_one_record_more() -> None:
    score = scores_up_to(1 << 40)
    most = LARGEST_TOTAL >> 40
    score.check_total(most)
    with pytest.raises(InvalidInput, match=f"n of at most {most}"):
        score.check_total(most + 1)
