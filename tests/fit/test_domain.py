"""Domains: finite as given, binned otherwise; every record has a symbol."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from privatest import engines
from privatest.errors import InvalidData, InvalidDocument
from privatest.fit import design_fit
from privatest.fit.fit_test import histogram, read_domain
from privatest.privacy import system_source
from privatest.scores import Cells, EdgeCells, IntegerCells, LabelCells


def test_continuous_nulls_get_bins_of_equal_probability() -> None:
    domain = read_domain(stats.norm(3, 2), 0.2)
    assert domain.bins == "20 bins of equal probability"
    assert set(domain.probabilities.tolist()) == {1 / 20}
    assert isinstance(domain.cells, EdgeCells)
    np.testing.assert_allclose(stats.norm(3, 2).cdf(domain.cells.edges), np.arange(1, 20) / 20)
    assert len(read_domain("normal(0, 1)", 0.2, bins=7).probabilities) == 7
    test = design_fit(stats.expon(), distance=0.3, epsilon=1, n=50, bins=8)
    assert "8 bins of equal probability" in repr(test)
    assert "(8 bins" in str(test)
    assert "between binned laws" in str(test)


def test_infinite_integers_are_pooled_and_finite_ones_kept() -> None:
    domain = read_domain(stats.poisson(3), 0.2)
    assert isinstance(domain.cells, IntegerCells)
    assert domain.bins is not None
    assert "tails pooled" in domain.bins
    first = domain.cells.first.astype(float)
    expected = np.diff(np.append(stats.poisson(3).cdf(first - 1), 1.0))
    np.testing.assert_allclose(domain.probabilities, expected, rtol=1e-9)
    kept = read_domain(stats.binom(5, 0.3), 0.2)
    assert kept.bins is None
    np.testing.assert_allclose(kept.probabilities, stats.binom(5, 0.3).pmf(np.arange(6)))
    assert len(read_domain(stats.binom(5, 0.3), 0.2, bins=3).probabilities) <= 3


def test_edges_put_every_number_somewhere_and_odd_ones_apart() -> None:
    cells = EdgeCells((0.0, 1.0), low=-2.0, high=5.0)
    numbers = np.array([-2.0, -0.5, 0.0, 0.99, 1.0, 5.0, 5.1, np.nan, np.inf])
    assert cells.index(numbers).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 3]
    again = Cells.from_dict(json.loads(json.dumps(cells.to_dict())))
    assert again == cells
    assert Cells.from_dict(EdgeCells((1.0,)).to_dict()) == EdgeCells((1.0,))
    backwards = {"kind": "edges", "edges": [2.0, 1.0], "low": "-inf", "high": "inf"}
    for broken in ({"kind": "edges"}, backwards, {"kind": "x"}):
        with pytest.raises(InvalidDocument):
            Cells.from_dict(broken)


SOURCES = [
    lambda x: x,
    lambda x: x.tolist(),
    lambda x: x.astype(object),
    lambda x: pd.Series(x),
    lambda x: pd.Series(x, dtype="Float64"),
    lambda x: x.astype(np.float32),
]
CELLS: list[Cells] = [
    LabelCells((0, 1, 2, 3)),
    IntegerCells(np.array([-5, 0, 2]), 9),
    EdgeCells((0.5, 1.5, 2.5)),
]


@pytest.mark.parametrize("cells", CELLS, ids=lambda cells: cells.kind)
def test_histogram_is_the_same_from_every_source(cells: Cells) -> None:
    numbers = np.array([0.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 77.0, np.nan, -1.0, 0.0])
    expected = np.bincount(cells.index(numbers), minlength=cells.count + 1)
    expected[2] += expected[-1]
    for source in SOURCES:
        counts = histogram(engines.open_source(source(numbers)), cells, odd=2, source=system_source)
        assert counts.tolist() == expected[:-1].tolist()
        assert counts.sum() == len(numbers)


def test_records_of_the_wrong_type_are_refused_by_column_type_only() -> None:
    with pytest.raises(InvalidData, match="text"):
        histogram(engines.open_source(np.array(["a", "b"])), EdgeCells((1.0,)), odd=0, source=system_source)
    counts = histogram(
        engines.open_source([1.0, "b", math.nan, None, 3]), EdgeCells((2.0,)), odd=0, source=system_source
    )
    assert counts.tolist() == [4, 1]
