"""Domains: finite as given, binned otherwise; every record has a symbol."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from privatest.errors import InvalidDocument
from privatest.fit import design_fit
from privatest.fit.fit_test import read_domain
from privatest.scores import Cells, EdgeCells, IntegerCells


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
