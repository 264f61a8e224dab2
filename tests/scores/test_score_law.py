"""The law of a score under any distribution, and the worst law over a set of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.errors import InvalidInput
from privatest.hypotheses import make_pair
from privatest.hypotheses.parse import as_distribution, as_hypothesis
from privatest.numbers import Floats
from privatest.scores import BoundedCells, Cells, DyadicCells, LabelCells, Score, clamped_score
from privatest.scores import score_law as laws_of_scores
from privatest.scores.score import IntegerCells
from privatest.scores.score_law import Known, Worst, cell_law, every_score, score_law, worst_laws

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
    "uniform(-1, 0.5)",
    "poisson(2)",
    "exponential(3)",
    "mixture(0.9, normal(0, 1), 0.1, normal(5, 1))",
    {"a": 0.3, "c": 0.7},
    {0: 0.25, 0.5: 0.25, 2: 0.5},
    [0.1, 0.1, 0.1, 0.7],
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


def test_power_is_alpha_under_p_and_what_is_left_of_beta_under_q() -> None:
    for null, alternative in PAIRS:
        for neighbours in ("replace", "add-remove"):
            test = pt.design(null, alternative, epsilon=1, n=40, neighbours=neighbours)
            assert test.power(null) == pytest.approx(test.alpha, abs=1e-12)
            assert 1 - test.power(alternative) == pytest.approx(test.beta, abs=1e-12)


def test_power_by_enumeration() -> None:
    """All data sets of three coins, their probabilities under another coin, and the noise's own law."""
    test = pt.design("bernoulli(0.3)", "bernoulli(0.7)", epsilon=1, n=3)
    for p in (0.0, 0.2, 0.45, 1.0):
        expected = 0.0
        for heads, ways in enumerate((1, 3, 3, 1)):
            total = int(test.score.of_numbers([1.0] * heads + [0.0] * (3 - heads)).sum())
            says = float(test.noise.cdf(float(test.cutoff - total)))
            expected += ways * p**heads * (1 - p) ** (3 - heads) * says
        assert test.power({0: 1 - p, 1: p}) == pytest.approx(expected, abs=1e-12)
    assert 0 < test.power({"neither": 1.0}) < 1


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


def test_a_continuous_law_hits_no_integer() -> None:
    score = pt.design("poisson(3)", "poisson(4)", epsilon=1, n=30).score
    assert isinstance(score.cells, IntegerCells)
    assert cell_law(score.cells, as_distribution("normal(3, 1)"))[-1] == 1.0


def searched(laws: tuple[str, str], members: str, side: Any, known: Known | None = None) -> list[Worst]:
    """The worst laws for a test that decides by the mean score."""
    score = clamped_score(make_pair(*laws), (-1, 1), 64)
    (leaf,) = as_hypothesis(members).leaves()
    sign = -1.0 if side == "low" else 1.0
    return worst_laws(score, leaf, side, lambda law: float(sign * (law @ every_score(score)) / score.width), known)


NORMALS = ("normal(0, 1)", "normal(1, 1)")
# Members, side: laws, laws computed, error stated and found, the worst member. Requests that were charged are known by
# their designs, so these are not to change unnoticed.
FOUND: list[tuple[tuple[str, str], str, str, int, int, float, float, str]] = [
    (NORMALS, "normal(0, sd in [0.8, 1.2])", "low", 8, 24, -0.645455, -0.645507, "normal(0, 1.2)"),
    (NORMALS, "normal(0, sd in [0.8, 1.2])", "high", 9, 27, 0.690011, 0.689956, "normal(0, 0.8)"),
    (("normal(0, 1)", "normal(0, 1.5)"), "normal(mean in [-0.2, 0.2], sd in [0.9, 1.1])", "low", 13, 252, -0.772562,
     -0.772651, "normal(-0.2, 1.1)"),
    (("t(3)", "normal(0, 1)"), "student_t(df in [3, 6], loc=0, scale in [0.9, 1.1])", "low", 9, 72, -0.092481,
     -0.092562, "student_t(6, 0, 0.9)"),
    (("t(3)", "normal(0, 1)"), "student_t(df in [3, 6], loc=0, scale in [0.9, 1.1])", "high", 7, 78, 0.179345,
     0.179262, "student_t(3, 0, 1.1)"),
    (("poisson(3)", "poisson(4)"), "poisson(mean in [2, 3.2])", "low", 1, 4, -0.543823, -0.543823, "poisson(3.2)"),
    (("poisson(3)", "poisson(4)"), "poisson(mean in [2, 3.2])", "high", 1, 4, 0.713894, 0.713894, "poisson(2)"),
    (NORMALS, "near(normal(mean in [-1, 0.1], sd=1), 0.05)", "low", 1, 4, -0.584001, -0.584001, "normal(0.1, 1)"),
    (NORMALS, "normal(mean<=0, sd=1)", "high", 1, 11, 1.0, 0.999971, "normal(-4, 1)"),
]  # fmt: skip


@pytest.mark.parametrize(("laws", "members", "side", "count", "computed", "error", "attained", "member"), FOUND)
def test_the_worst_laws_stay_what_they_were(
    laws: tuple[str, str],
    members: str,
    side: str,
    count: int,
    computed: int,
    error: float,
    attained: float,
    member: str,
) -> None:
    known: Known = {}
    found = searched(laws, members, side, known)
    assert (len(found), len(known)) == (count, computed)
    assert (found[0].error, found[0].attained) == pytest.approx((error, attained), abs=1e-6)
    assert {entry.member for entry in found} == {member}
    assert -1e-12 <= found[0].error - found[0].attained <= 1e-4
    assert [entry.error for entry in found] == sorted((entry.error for entry in found), reverse=True)
    for entry in found:
        assert entry.law.sum() == pytest.approx(1, abs=1e-12)
        assert entry.law.min() >= 0


def test_the_worst_laws_are_found_among_so_many_parts_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    members = "normal(mean in [-0.2, 0.2], sd in [0.9, 1.1])"
    all_of_them = searched(("normal(0, 1)", "normal(0, 1.5)"), members, "low")
    for most in (1, 2, 5):
        monkeypatch.setattr(laws_of_scores, "MOST_BOXES", most)
        known: Known = {}
        found = searched(("normal(0, 1)", "normal(0, 1.5)"), members, "low", known)
        assert len(found) <= most
        assert found[0].error >= all_of_them[0].error
        assert sum(isinstance(key[0], tuple) for key in known) == 1 + 4 * (
            most - 1
        )  # both ways to halve, two halves each


@pytest.mark.parametrize("members", ["normal(0, sd in [0.8, 1.2])", "normal(0.2, 1)"])
def test_laws_that_are_known_are_not_computed_again(members: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known: Known = {}
    first = searched(NORMALS, members, "low", known)

    def refuse(*_: Any) -> Any:
        raise AssertionError("computed again")

    monkeypatch.setattr(laws_of_scores, "score_law", refuse)
    monkeypatch.setattr(laws_of_scores, "_envelope", refuse)
    again = searched(NORMALS, members, "low", known)
    assert [(one.error, one.member, one.attained) for one in again] == [
        (one.error, one.member, one.attained) for one in first
    ]


@pytest.mark.parametrize("side", ["low", "high"])
def test_a_law_dominates_where_it_is_as_bad_at_every_score(side: Any) -> None:
    law = np.array([0.25, 0.25, 0.5])
    sign = 1.0 if side == "low" else -1.0

    def dominates(*moved: float) -> bool:
        return laws_of_scores._dominates(law + sign * np.array(moved), law, side)

    assert dominates(0, 0, 0)
    assert dominates(0.1, 0, -0.1)
    assert not dominates(-0.1, 0, 0.1)
    assert not dominates(0.1, -0.2, 0.1)
    assert not dominates(-1e-13, 0, 1e-13)
    assert dominates(-2e-16, 0, 2e-16)


CELLS: list[Cells] = [
    LabelCells(("a", 1, 2.5)),
    IntegerCells(np.array([0, 1, 4]), 9),
    DyadicCells(0, -2, 5, -2.5, 2.5),
    BoundedCells(0.0, 1.0, 1, -3.0, 3.0),
]


@pytest.mark.parametrize("cells", CELLS, ids=lambda cells: cells.kind)
def test_labels_have_the_cells_of_the_records_that_they_are(cells: Cells) -> None:
    """A text is no number, whatever it looks like; what no double holds is odd."""
    labels = ("a", "1", b"1", 1, 2.5, 10**400, (1, 2), True)
    expected = np.zeros(cells.count + 1)
    for label in labels:
        if isinstance(cells, LabelCells):
            place = {"a": 0, 1: 1, 2.5: 2}.get(label, 3)  # type: ignore[call-overload]
        elif isinstance(label, int | float) and label != 10**400:
            place = int(cells.index(np.array([float(label)]))[0])
        else:
            place = cells.count
        expected[place] += 1
    assert [laws_of_scores._cell_of(cells, label) for label in labels].count(cells.count) == expected[-1]
    found = np.zeros(cells.count + 1)
    for label in labels:
        found[laws_of_scores._cell_of(cells, label)] += 1
    np.testing.assert_array_equal(found, expected)


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


def test_sets_of_numbers_have_no_law_on_labels() -> None:
    score = clamped_score(make_pair({"a": 0.2, "b": 0.8}, {"a": 0.8, "b": 0.2}), (-1, 1), 5)
    assert isinstance(score, Score)
    (leaf,) = as_hypothesis("normal(0, sd in [1, 2])").leaves()
    with pytest.raises(InvalidInput, match=r"no law on cells of the kind 'labels'"):
        worst_laws(score, leaf, "low", lambda law: float(law[0]))


def test_no_mass_is_negative_where_a_cdf_falls_by_rounding() -> None:
    class Rounded:
        """A law on [0, 1] whose cdf and its complement are off by a trace."""

        def cdf(self, x: Floats) -> Floats:
            return np.clip(x, 0, 1) - np.where(x == 0.25, 0.1, 0)

        def sf(self, x: Floats) -> Floats:
            return np.clip(1 - x, 0, 1) + np.where(x == 0.75, 0.3, 0)

    law: Any = Rounded()
    found = laws_of_scores._between(law, np.array([-1.0, 0.2, 0.25, 0.5, 0.75, 2.0]))
    np.testing.assert_allclose(found, [0.2, 0.0, 0.35, 0.0, 0.55, 0.0])


def test_cells_of_another_kind_have_no_law() -> None:
    class Odd(LabelCells):
        kind = "odd"

    class Circles(Cells):
        kind = "circles"
        count = 3

        def index(self, numbers: Floats) -> Any:
            return numbers

        def to_dict(self) -> dict[str, Any]:
            return {}

    assert cell_law(Odd((1,)), as_distribution("bernoulli(0.25)"))[0] == 0.25
    with pytest.raises(InvalidInput, match=r"cells of the kind 'circles' is not known"):
        cell_law(Circles(), as_distribution("normal(0, 1)"))
