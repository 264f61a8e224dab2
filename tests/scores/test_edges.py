"""Partitions and the ratios of their cells: small cases by hand, and what is taken for well-known pairs."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privatest.documents import document_from_json
from privatest.errors import InvalidDocument
from privatest.hypotheses import make_pair
from privatest.hypotheses.pair import ContinuousPair
from privatest.scores import BoundedCells, clamped_score
from privatest.scores.clamped import (
    cell_masses,
    cell_ratios,
    whole_score,
)

NORMALS = make_pair("normal(0, 1)", "normal(1, 1)")
assert isinstance(NORMALS, ContinuousPair)


def test_ratios_of_cells_where_masses_have_lost_their_digits_are_those_of_the_densities() -> None:
    """log p/q of N(0, 1) and N(1, 1) is 1/2 - x; the outer middles lie a thousandth of the whole beyond the edges."""
    edges = np.array([-40.0, -39.0, 0.0, 39.0, 40.0])
    p, q = (cell_masses(law, edges) for law in (NORMALS.null, NORMALS.alternative))
    found = cell_ratios(NORMALS, edges, p, q)
    expected = [0.5 + 40.08, 0.5 + 39.5, math.log(p[2] / q[2]), math.log(p[3] / q[3]), 0.5 - 39.5, 0.5 - 40.08]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("text", ["{", "", "[1, 2", b"\xff", 5, None, "[" * 100_000], ids=lambda text: repr(text)[:10])
def test_texts_that_are_not_json_are_refused_in_one_sentence(text: Any) -> None:
    with pytest.raises(InvalidDocument, match=r"^The text is not JSON; is it cut short"):
        document_from_json(text)


@pytest.mark.parametrize("n", [1, 1000])
@pytest.mark.parametrize("turned", [False, True])
def test_an_infinite_ratio_outweighs_all_others_and_the_noise(n: int, turned: bool) -> None:
    """Where the finite ones lie far from 0 on one side, and close together: many steps a record."""
    laws = [{"a": 0.6, "b": 0.3, "c": 0.1, "d": 0.0}, {"a": 0.03, "b": 0.0149, "c": 0.0, "d": 0.9551}]
    score = whole_score(make_pair(*laws[::-1] if turned else laws), n)
    a, b, c, d, _ = score.table.tolist()
    tie, noise = score.lattice_threshold(Fraction(0), n), 1000 / score.step
    for infinite, sign in ((c, -1 if turned else 1), (d, 1 if turned else -1)):
        for finite in (a, b):
            assert sign * (infinite + (n - 1) * finite - tie) >= noise


def test_integers_between_runs_have_no_mass_and_the_others_keep_theirs() -> None:
    laws = [stats.rv_discrete(values=([0, 1, 5], masses)) for masses in ([0.2, 0.3, 0.5], [0.6, 0.1, 0.3])]
    score = clamped_score(make_pair(*laws), (-5, 5))
    at = score.of_numbers(np.array([0.0, 1.0, 3.0, 5.0]))
    assert at[2] == score.table[-1]
    for law, masses in ((score.null_law, [0.2, 0.3, 0.5]), (score.alternative_law, [0.6, 0.1, 0.3])):
        np.testing.assert_allclose(law[np.searchsorted(score.support, at[[0, 1, 3]])], masses)


@pytest.mark.parametrize("cut", [0.0, 5.0, -1e9])
def test_where_only_the_side_of_a_number_counts_there_are_two_cells(cut: float) -> None:
    score = clamped_score(make_pair(f"share_above({cut}, 0.5)", f"share_above({cut}, 0.7)"), (-1, 1))
    assert score.cells == BoundedCells(cut, 1.0, 0)
    below, at, above = score.of_numbers([math.nextafter(cut, -math.inf), cut, math.nextafter(cut, math.inf)])
    assert (below, at, above) == (score.high, score.low, score.low)
    assert score.null_law.tolist() == [0.5, 0.5]
    np.testing.assert_allclose(score.alternative_law, [0.7, 0.3])
