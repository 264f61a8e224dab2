"""The bound of a histogram test on the exponential, certain decisions, exact errors, the coin."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

from privatest.bounds.optimum import DENOMINATOR, HistogramTest, optimum
from privatest.errors import InvalidInput
from privatest.numbers import exp_below

LABELS = {"a": 0.2, "b": 0.3, "c": 0.5}, {"a": 0.5, "b": 0.3, "c": 0.2}


@pytest.fixture(scope="module")
def test() -> HistogramTest:
    return optimum(*LABELS, epsilon=0.8, n=5).test


def by_labels(test: HistogramTest) -> Callable[[tuple[int, ...]], Fraction]:
    """Probability of "null" for a data set given by positions among the members, the odd one included."""
    classes = test.histograms.classes
    return lambda x: test.probability(np.bincount(test.members[list(x)], minlength=classes).tolist())


@pytest.mark.parametrize("epsilon", ["1/1000", "1/3", "1", "5/2", "40"])
def test_a_rational_below_e_to_the_epsilon(epsilon: str) -> None:
    x = Fraction(epsilon)
    with mpmath.workdps(60):
        exact = mpmath.exp(mpmath.mpf(x.numerator) / x.denominator)
        found = exp_below(x)
        gap = (exact - mpmath.mpf(found.numerator) / found.denominator) / exact
    assert 0 < gap < mpmath.mpf(2) ** -90


def test_certain_decisions_are_refused(test: HistogramTest) -> None:
    for value in (0, DENOMINATOR):
        numerators = test.numerators.copy()
        numerators[3] = value
        with pytest.raises(InvalidInput, match="privacy loss of inf"):
            dataclasses.replace(test, numerators=numerators)
    constant = dataclasses.replace(test, numerators=np.full_like(test.numerators, DENOMINATOR))
    assert constant.largest_log_ratio() == 0.0  # the same answer always is private
    assert constant.advantage == pytest.approx(0.0, abs=1e-15)


def test_error_rates_by_enumeration(test: HistogramTest) -> None:
    p, q = (list(law.values()) for law in LABELS)
    says_null = by_labels(test)
    alpha = math.fsum(
        math.prod(p[i] for i in x) * float(1 - says_null(x)) for x in itertools.product(range(3), repeat=5)
    )
    beta = math.fsum(math.prod(q[i] for i in x) * float(says_null(x)) for x in itertools.product(range(3), repeat=5))
    assert test.alpha == pytest.approx(alpha, abs=1e-13)
    assert test.beta == pytest.approx(beta, abs=1e-13)
    assert test.advantage == pytest.approx(1 - alpha - beta, abs=1e-13)


@pytest.mark.statistical
def test_the_coin(test: HistogramTest) -> None:
    data = ["a", "c", "c", "b", "c"]
    rng = np.random.default_rng(3)
    draws = [test.run(data, rng=rng) for _ in range(4000)]
    assert all(release.simulated and release.statistic is None and release.pvalue is None for release in draws)
    count = sum(release.decision == "null" for release in draws)
    g = float(test.probability((1, 1, 3)))
    assert stats.binomtest(count, 4000, g).pvalue > 1e-9


def decides_like(test: HistogramTest, data: Any, counts: tuple[int, ...], **options: Any) -> None:
    """The decision on these data is that of a coin for these counts, from the same seed."""
    for seed in range(20):
        release = test.run(data, rng=np.random.default_rng(seed), **options)
        words = np.random.default_rng(seed).integers(0, 2**64, size=512, dtype=np.uint64)
        drawn = Fraction(int(words[-1]) >> 14, DENOMINATOR)  # 50 bits of the first word that a source takes
        assert release.decision == ("null" if drawn < test.probability(counts) else "alternative")


def test_records_are_counted_whatever_holds_them(test: HistogramTest) -> None:
    import pandas as pd

    decides_like(test, ["a", "b", "b", "c", "c"], (1, 2, 2))
    decides_like(test, np.array(["c"] * 5), (0, 0, 5))
    decides_like(test, pd.DataFrame({"x": list("aaabc"), "y": 1}), (3, 1, 1), column="x")
    # Odd records count as the class whose ratio is nearest to 0, here b.
    decides_like(test, ["a", None, float("nan"), "nobody", [1]], (1, 4, 0))
