"""Partitions and the ratios of their cells: small cases by hand, and what is taken for well-known pairs."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from privatest.hypotheses import make_pair
from privatest.hypotheses.pair import ContinuousPair
from privatest.scores import clamped_score
from privatest.scores.clamped import (
    cell_masses,
    cell_ratios,
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


def test_integers_between_runs_have_no_mass_and_the_others_keep_theirs() -> None:
    laws = [stats.rv_discrete(values=([0, 1, 5], masses)) for masses in ([0.2, 0.3, 0.5], [0.6, 0.1, 0.3])]
    score = clamped_score(make_pair(*laws), (-5, 5))
    at = score.of_numbers(np.array([0.0, 1.0, 3.0, 5.0]))
    assert at[2] == score.table[-1]
    for law, masses in ((score.null_law, [0.2, 0.3, 0.5]), (score.alternative_law, [0.6, 0.1, 0.3])):
        np.testing.assert_allclose(law[np.searchsorted(score.support, at[[0, 1, 3]])], masses)
