"""The law of a score under any distribution, and the worst law over a set of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.decision.worst_case import worst_laws
from privatest.hypotheses.parse import as_distribution, as_hypothesis
from privatest.numbers import Floats
from privatest.scores import DyadicCells, LabelCells
from privatest.scores.score import IntegerCells
from privatest.scores.score_law import cell_law, every_score, score_law

PAIRS: list[tuple[Any, Any]] = [
    ("normal(0, 1)", "normal(1, 1)"),
    ("normal(0, 1)", "normal(0, 1.5)"),
    ("t(3)", "normal(0, 1)"),
    ("cauchy(0, 1)", "cauchy(1, 1)"),
    ("uniform(0, 1)", "beta(2, 1)"),
    ("exponential(1)", "exponential(2)"),
    ("poisson(3)", "poisson(4)"),
    ({"a": 0.2, "b": 0.8}, {"a": 0.5, "b": 0.5}),
    ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2]),
]
LAWS: list[Any] = [
    "normal(0.3, 2)",
    "mixture(0.9, normal(0, 1), 0.1, normal(5, 1))",
    {"a": 0.3, "c": 0.7},
    {0: 0.25, 0.5: 0.25, 2: 0.5},
]


@pytest.mark.parametrize(("null", "alternative"), PAIRS)
def test_under_p_and_q_the_laws_are_those_of_the_score(null: Any, alternative: Any) -> None:
    score = pt.design(null, alternative, epsilon=1, n=40).score
    for law, expected in ((null, score.null_law), (alternative, score.alternative_law)):
        support, found = score_law(score, as_distribution(law))
        whole = np.zeros(len(score.support))
        whole[np.searchsorted(score.support, support)] = found
        np.testing.assert_allclose(whole, expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(("null", "alternative"), PAIRS)
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_any_law_is_that_of_simulated_records(null: Any, alternative: Any, law: Any) -> None:
    """20,000 records scored one by one; a share may be off by 5 of its standard deviations, 1e-6 each."""
    score, source = pt.design(null, alternative, epsilon=1, n=40).score, as_distribution(law)
    masses = cell_law(score.cells, source)
    assert masses.sum() == pytest.approx(1, abs=1e-12)
    assert len(masses) == score.cells.count + 1
    records = source.sample(np.random.default_rng(11), 20_000)
    if records.dtype.kind in "OU" or score.cells.kind == "labels":
        position = getattr(score.cells, "position", {})
        cells = np.array([position.get(record, score.cells.count) for record in records.tolist()])
        if not position:
            cells = np.array([score.cells.count if isinstance(r, str) else score.cells.index(np.array([float(r)]))[0]
                              for r in records.tolist()])  # fmt: skip
    else:
        cells = score.cells.index(records.astype(float))
    support, found = score_law(score, source)
    scores = np.sort(score.table[cells])
    seen = (np.searchsorted(scores, support, side="right") - np.searchsorted(scores, support)) / 20_000
    assert np.all(np.abs(seen - found) <= 5 * np.sqrt(found * (1 - found) / 20_000) + 1e-3)


SETS = [
    ("normal(0, 1)", "normal(1, 1)", "normal(0, sd in [0.8, 1.2])"),
    ("normal(0, 1)", "normal(0, 1.5)", "normal(mean in [-0.2, 0.2], sd in [0.9, 1.1])"),
    ("t(3)", "normal(0, 1)", "student_t(df in [3, 6], loc=0, scale in [0.9, 1.1])"),
    ("poisson(3)", "poisson(4)", "poisson(mean in [2, 3.2])"),
    ("gamma(2, 1)", "gamma(2.5, 1)", "gamma(shape in [1.8, 2.2], scale in [0.9, 1.1])"),
    ("normal(0, 1)", "normal(1, 1)", "near(normal(mean in [-1, 0.1], sd=1), 0.05)"),
    ("normal(0, 1)", "normal(1, 1)", "normal(mean<=0, sd=1)"),
]


@pytest.mark.parametrize(("null", "alternative", "members"), SETS)
@pytest.mark.parametrize("side", ["low", "high"])
def test_no_member_is_worse_than_the_worst_laws(null: str, alternative: str, members: str, side: Any) -> None:
    """Stochastically: for each member there is a law among them on the worse side of it, at every score."""
    score = pt.design(null, alternative, epsilon=1, n=30).score
    (leaf,) = as_hypothesis(members).leaves()
    scores = every_score(score)
    sign = -1.0 if side == "low" else 1.0

    def error(law: Floats) -> float:
        return float(sign * (law @ scores) / score.width)

    found = worst_laws(score, leaf, side, error)
    assert found[0].error >= found[0].attained - 1e-12
    rng = np.random.default_rng(2)
    box: Any = leaf.of
    for _ in range(100):
        values = [rng.uniform(max(a, b - 4), b) for a, b in zip(box.low, box.high, strict=True)]
        support, law = score_law(score, box.member(values))
        whole = np.zeros(len(scores))
        whole[np.searchsorted(scores, support)] = law
        below = np.cumsum(leaf.worst(whole, side))
        margins = [
            np.min(np.cumsum(entry.law) - below) if side == "low" else np.min(below - np.cumsum(entry.law))
            for entry in found
        ]
        assert max(margins) >= -1e-12
        assert error(leaf.worst(whole, side)) <= found[0].error + 1e-12


def test_masses_of_cells_by_hand() -> None:
    coin = as_distribution("bernoulli(0.25)")
    np.testing.assert_allclose(cell_law(IntegerCells(np.array([0, 1, 4]), 9), coin), [0.75, 0.25, 0, 0])
    np.testing.assert_allclose(cell_law(IntegerCells(np.array([1, 2]), 9), coin), [0.25, 0, 0.75])
    np.testing.assert_allclose(cell_law(IntegerCells(np.array([-5, -1]), 0), coin), [0, 0.75, 0.25])
    np.testing.assert_allclose(cell_law(LabelCells((1, "a", 7)), coin), [0.25, 0, 0, 0.75])
    line = as_distribution("uniform(0, 4)")
    np.testing.assert_allclose(cell_law(DyadicCells(0, 0, 4), line), [0.25] * 4 + [0])
    np.testing.assert_allclose(cell_law(DyadicCells(0, 0, 4, 0.5, 3.0), line), [0.125, 0.25, 0.25, 0, 0.375])
    np.testing.assert_allclose(cell_law(DyadicCells(0, 0, 4), coin), [0.75, 0.25, 0, 0, 0])
    np.testing.assert_allclose(cell_law(LabelCells((1, "a")), line), [0, 0, 1])
    np.testing.assert_allclose(cell_law(DyadicCells(0, 0, 2, 0.0, 1.5), line), [0.25, 0.125, 0.625])
    np.testing.assert_allclose(cell_law(DyadicCells(0, 2, 2, 2.5, 3.5), line), [0.125, 0.125, 0.75])
    words = as_distribution({"a": 0.5, "b": 0.2, "c": 0.3})
    np.testing.assert_allclose(cell_law(LabelCells(("b", "a")), words), [0.2, 0.5, 0.3])
    np.testing.assert_allclose(cell_law(DyadicCells(0, 0, 4), words), [0, 0, 0, 0, 1])
    far = cell_law(DyadicCells(0, 28, 4), as_distribution("normal(0, 1)"))
    assert far[0] == 1.0
    assert far[2] == pytest.approx(1.4e-198, rel=1e-2)  # by the tail: differences of the cdf would be 0
