"""e-values combine."""

from __future__ import annotations

import math

import numpy as np
import pytest

import privatest as pt
from privatest.errors import InvalidInput


def test_products_and_averages() -> None:
    assert pt.combine_evalues([2, 8]) == 16
    assert pt.combine_evalues([2, 8], dependent=True) == 5
    assert pt.combine_evalues(iter([0.5])) == 0.5
    assert pt.combine_evalues([3, 0, math.inf]) == 0
    assert pt.combine_evalues([1e300] * 3 + [1e-300] * 3) == pytest.approx(1)
    assert pt.combine_evalues([1e300, 1e300]) == math.inf
    assert pt.combine_evalues([1e-300, 1e-300]) == 0


def test_means_under_the_null() -> None:
    rng = np.random.default_rng(2)
    ones = rng.choice([0.5, 2.0], p=[2 / 3, 1 / 3], size=(200_000, 2))  # mean 1
    products = np.array([pt.combine_evalues(pair) for pair in ones[:20_000]])
    assert abs(products.mean() - 1) < 4 * products.std() / math.sqrt(len(products))
    same = ones[:20_000, 0]
    assert np.mean(same * same) > 1.2  # of dependent values the product is no e-value
    averages = [pt.combine_evalues([value, value], dependent=True) for value in same[:2000]]
    assert averages == pytest.approx(same[:2000])


def test_discoveries() -> None:
    assert pt.evalue_discoveries([90, 0.3, 50, 2], alpha=0.05) == (0, 2)
    assert pt.evalue_discoveries([19], alpha=0.05) == ()
    assert pt.evalue_discoveries([20], alpha=0.05) == (0,)
    assert pt.evalue_discoveries([], alpha=0.05) == ()
    assert pt.evalue_discoveries({"a": 39, "b": 41, "c": 0}, alpha=0.05) == ("a", "b")
    assert pt.evalue_discoveries({"a": 29, "b": 60, "c": 0}, alpha=0.05) == ("b",)
    assert pt.evalue_discoveries({"a": 29, "b": 59, "c": 0}, alpha=0.05) == ()


def test_discoveries_are_as_many_as_there_can_be() -> None:
    """Against the definition, on all small tables: of all sets that are consistent the largest."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        values, alpha = rng.choice([0.0, 1, 5, 12, 20, 30, 60], size=4), 0.2
        found = pt.evalue_discoveries(values.tolist(), alpha=alpha)
        sizes = [k for k in range(1, 5) if np.sort(values)[-k] >= 4 / (alpha * k)]
        assert len(found) >= max(sizes, default=0)
        assert all(values[i] >= 4 / (alpha * len(found)) for i in found)


def test_false_discoveries_are_rare() -> None:
    rng, shares = np.random.default_rng(1), []
    for _ in range(4000):
        true = rng.choice([0.0, 40.0], p=[39 / 40, 1 / 40], size=6)
        shared = np.where(rng.random() < 0.025, 40.0, 0.0)
        values = np.where(np.arange(6) < 3, true, shared)  # dependent ones, too
        found = pt.evalue_discoveries([*values, 100.0, 200.0], alpha=0.2)
        shares.append(sum(i < 6 for i in found) / max(len(found), 1))
    assert np.mean(shares) <= 0.2


@pytest.mark.parametrize("bad", [[-1], [math.nan], ["3"], [None], 7, "123"])
def test_what_is_no_evalue_is_refused(bad: object) -> None:
    for call in (lambda: pt.combine_evalues(bad), lambda: pt.evalue_discoveries(bad, alpha=0.05)):  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="values"):
            call()


def test_nothing_to_combine_and_levels_that_are_none() -> None:
    with pytest.raises(InvalidInput, match="nothing to combine"):
        pt.combine_evalues([])
    for alpha in (0, 1, -0.1, math.nan):
        with pytest.raises(InvalidInput, match="alpha"):
            pt.evalue_discoveries([3], alpha=alpha)
