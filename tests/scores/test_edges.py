"""Partitions and the ratios of their cells: small cases by hand, and what is taken for well-known pairs."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privatest.documents import MOST_ENTRIES, document_from_json, integers_from_json, numbers_from_json
from privatest.errors import InvalidDocument, InvalidInput
from privatest.hypotheses import make_pair
from privatest.hypotheses.pair import ContinuousPair
from privatest.scores import BoundedCells, Cells, DyadicCells, IntegerCells, LabelCells, clamped_score
from privatest.scores.clamped import (
    cell_masses,
    cell_ratios,
    partition,
    realised_clamp,
    score_with_laws,
    whole_score,
)
from privatest.scores.score import LARGEST_TOTAL, cells_from_dict

NORMALS = make_pair("normal(0, 1)", "normal(1, 1)")
assert isinstance(NORMALS, ContinuousPair)

# Requests that were charged are known by their designs, so these are not to change unnoticed.
TAKEN: dict[tuple[str, str], Cells] = {
    ("normal(0, 1)", "normal(1, 1)"): DyadicCells(8, -158, 519),
    ("normal(0, 1)", "normal(0.01, 1)"): DyadicCells(6, -527, 1055),
    ("normal(0, 1)", "normal(0, 3)"): DyadicCells(8, -557, 1114),
    ("normal(1000000, 1)", "normal(1000001, 1)"): DyadicCells(8, 255999842, 519),
    ("cauchy(0, 1)", "cauchy(3, 1)"): BoundedCells(1.5, 4.0, 10),
    ("uniform(0, 2)", "uniform(0.3, 2.3)"): DyadicCells(12, 1227, 6967, 0.0, 2.3),
    ("exponential(1)", "exponential(2)"): DyadicCells(8, -1, 827, 0.0),
    ("laplace(0, 1)", "laplace(1, 1)"): DyadicCells(9, -1, 494),
}


@pytest.mark.parametrize("laws", TAKEN, ids=" ".join)
def test_the_partitions_of_well_known_pairs(laws: tuple[str, str]) -> None:
    assert clamped_score(make_pair(*laws), (-0.9, 1.1)).cells == TAKEN[laws]


def test_ratios_of_cells_where_masses_have_lost_their_digits_are_those_of_the_densities() -> None:
    """log p/q of N(0, 1) and N(1, 1) is 1/2 - x; the outer middles lie a thousandth of the whole beyond the edges."""
    edges = np.array([-40.0, -39.0, 0.0, 39.0, 40.0])
    p, q = (cell_masses(law, edges) for law in (NORMALS.null, NORMALS.alternative))
    found = cell_ratios(NORMALS, edges, p, q)
    expected = [0.5 + 40.08, 0.5 + 39.5, math.log(p[2] / q[2]), math.log(p[3] / q[3]), 0.5 - 39.5, 0.5 - 40.08]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_ratios_of_masses_that_speak_against_the_density_are_kept() -> None:
    edges = np.array([-2.0, -1.0, 1.0, 2.0])
    p = np.array([0.2, 1e-13, 0.4, 1e-13, 0.4])
    q = np.array([0.2, 1e-3, 0.4, 1e-3, 0.399])
    found = cell_ratios(NORMALS, edges, p, q)
    against = math.log(1e-13 / 1e-3)
    # In (-2, -1) the density speaks for P, the masses for Q: kept. In (1, 2) both speak for Q: the density's.
    np.testing.assert_allclose(found, [0.0, against, 0.0, 0.5 - 1.5, math.log(0.4 / 0.399)], atol=1e-12)


def test_scores_that_nobody_can_have_are_not_in_the_support() -> None:
    table = np.array([0, 1, 2, 7])
    mass = np.array([0.5, 0.0, 0.5])
    score = score_with_laws(LabelCells(("a", "b", "c")), table, Fraction(0), Fraction(1), mass, mass)
    assert score.support.tolist() == [0, 2]
    assert score.null_law.tolist() == score.alternative_law.tolist() == [0.5, 0.5]
    assert (score.low, score.high) == (0, 7)


def test_cells_up_to_the_most_and_one_more() -> None:
    document: dict[str, Any] = DyadicCells(0, 0, 1 << 24).to_dict()
    assert cells_from_dict(document).count == 1 << 24
    with pytest.raises(InvalidDocument, match="out of range"):
        cells_from_dict(document | {"size": (1 << 24) + 1})


@pytest.mark.parametrize("text", ["{", "", "[1, 2", b"\xff", 5, None, "[" * 100_000], ids=lambda text: repr(text)[:10])
def test_texts_that_are_not_json_are_refused_in_one_sentence(text: Any) -> None:
    with pytest.raises(InvalidDocument, match=r"^The text is not JSON; is it cut short"):
        document_from_json(text)


@pytest.mark.parametrize("values", ["12", {"0": 1}, None, 5, (1, 2)], ids=repr)
def test_lists_are_lists(values: Any) -> None:
    with pytest.raises(InvalidDocument, match=r"^A list of integers is missing"):
        integers_from_json(values)
    with pytest.raises(InvalidDocument, match=r"^A list of numbers is missing"):
        numbers_from_json(values)


class Bounded:
    """log p/q is x on (0, 8)."""

    support = (0.0, 8.0)

    @staticmethod
    def ratio(x: np.ndarray) -> np.ndarray:
        return np.where((x > 0) & (x < 8), x, np.nan)


def test_the_outer_cells_of_a_bounded_support_have_their_middle_inside_it() -> None:
    poor = np.array([1e-13, 0.5, 1e-13])
    found = cell_ratios(Bounded(), np.array([2.0, 5.0]), poor, np.array([1e-13, 0.25, 1e-13]))  # type: ignore[arg-type]
    np.testing.assert_allclose(found, [1.0, math.log(2), 6.5], rtol=1e-12)


def test_the_largest_total_is_that_of_64_bits() -> None:
    score = clamped_score(make_pair([0.2, 0.8], [0.8, 0.2]), (-1, 1), 1)
    assert (score.low, score.high) == (0, 1)
    score.check_total(2**63 - 1)
    with pytest.raises(InvalidInput, match=f"n of at most {2**63 - 1}"):
        score.check_total(2**63)
    assert LARGEST_TOTAL == 2**63 - 1
    assert MOST_ENTRIES == 2**24  # of a list in a document: what older documents hold


@pytest.mark.parametrize("first", [[0, 5, 3], [0, 5, 5], [3, 0, 5]])
def test_runs_of_integers_are_in_order_all_the_way(first: list[int]) -> None:
    document = IntegerCells(np.array([0, 3, 5]), 9).to_dict()
    assert cells_from_dict(document).count == 3
    with pytest.raises(InvalidDocument):
        cells_from_dict({**document, "first": first})


def test_of_masses_that_are_rounding_alone_the_density_speaks_even_against_them() -> None:
    """Left of 1/2 the ratio is positive, whatever is left of two masses near 1e-13."""
    edges = np.array([0.0, 0.1])
    for tiny, ratio in ((1e-13, 0.45), (1e-11, math.log(0.01))):
        found = cell_ratios(NORMALS, edges, np.array([0.5, tiny / 100, 0.5]), np.array([0.5, tiny, 0.5]))
        assert found[1] == pytest.approx(ratio, rel=1e-12)


def test_laws_sum_to_one_whatever_the_masses_do() -> None:
    cells, table = DyadicCells(0, 0, 3), np.array([0, 1, 1, 0])
    score = score_with_laws(
        cells, table, Fraction(0), Fraction(1), np.array([0.1, 0.2, 0.2]), np.array([1.0, 0.5, 0.5])
    )
    np.testing.assert_allclose(score.null_law, [0.2, 0.8], rtol=1e-15)
    np.testing.assert_allclose(score.alternative_law, [0.5, 0.5], rtol=1e-15)


def test_no_mass_is_negative_where_a_cdf_falls_by_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    cdf, sf = np.array([0.1, 0.3, 0.3 - 1e-9, 0.8, 0.9]), np.array([0.9, 0.7, 0.7, 0.2, 0.2 + 1e-9])
    monkeypatch.setattr(type(NORMALS.null), "cdf", lambda *_: cdf)
    monkeypatch.setattr(type(NORMALS.null), "sf", lambda *_: sf)
    found = cell_masses(NORMALS.null, np.arange(5.0))
    assert found.min() == 0
    assert (found[2], found[4]) == (0, 0)


def test_events_that_nobody_ever_sees_do_not_widen_the_clamp() -> None:
    """The ratios of two Poisson laws are straight lines: from the left, and from the right."""
    for first, second in ((50.0, 80.0), (80.0, 50.0)):
        low, high = realised_clamp(make_pair(f"poisson({first})", f"poisson({second})"), -1000, 1000)
        k = np.arange(400)
        p, q = stats.poisson(first), stats.poisson(second)
        seen = (np.maximum(p.cdf(k), q.cdf(k)) >= 1e-16) & (np.maximum(p.sf(k - 1), q.sf(k - 1)) >= 1e-16)
        ratios = (p.logpmf(k) - q.logpmf(k))[seen]
        assert (low, high) == pytest.approx((ratios.min(), ratios.max()), rel=1e-9)


@pytest.mark.parametrize(("last", "line"), [(3, (1, 0)), (2, None), (0, None)])
def test_a_score_is_a_line_on_all_of_its_cells_or_is_none(last: int, line: tuple[int, int] | None) -> None:
    table = np.array([0, 1, 2, 3, 3, last, 0])
    score = score_with_laws(DyadicCells(0, 0, 6), table, Fraction(0), Fraction(1), np.full(6, 1 / 6), np.full(6, 1 / 6))
    assert score.line == line


@pytest.mark.parametrize(
    ("laws", "clamp", "steps", "taken"),
    [
        (("cauchy(0, 1)", "cauchy(0.3, 1)"), 1, 64, BoundedCells(0.125, 2.0, 6)),
        (("cauchy(0, 1)", "cauchy(0, 4)"), 2, 256, BoundedCells(0.0, 8.0, 10)),
    ],
)
def test_where_cells_of_one_length_are_many_fewer_that_grow_outwards_are_taken(
    laws: tuple[str, str], clamp: float, steps: int, taken: Cells
) -> None:
    """5000 to 7000 of one length would do, too."""
    pair = make_pair(*laws)
    assert isinstance(pair, ContinuousPair)
    low, high = realised_clamp(pair, -clamp, clamp)
    cells, edges = partition(pair, low, high, (high - low) / steps, 1.0)
    assert cells == taken
    np.testing.assert_array_equal(edges, taken.edges)


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


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("ratio", "decides"), [(63.5, False), (64.0, False), (64.5, True)])
def test_a_ratio_of_64_is_the_last_that_does_not_decide_alone(ratio: float, decides: bool, turned: bool) -> None:
    laws = [[0.5, 0.25, 0.25, 0.0], [math.exp(-ratio) / 2, 0.5, 0.25, 0.25]]
    pair = make_pair(*laws[::-1] if turned else laws)
    sign = -1 if turned else 1
    assert pair.ratios[0] == sign * ratio
    score = whole_score(pair, 3)
    large, small, even, infinite, _ = (sign * (score.origin + score.step * int(s)) for s in score.table)
    assert float(small) == pytest.approx(-math.log(2), abs=0.1)
    assert float(even) == pytest.approx(0, abs=0.1)
    assert infinite < -1000
    assert large > 1000 if decides else float(large) == pytest.approx(ratio, rel=1e-12)


@pytest.mark.parametrize("cut", [0.0, 5.0, -1e9])
def test_where_only_the_side_of_a_number_counts_there_are_two_cells(cut: float) -> None:
    score = clamped_score(make_pair(f"share_above({cut}, 0.5)", f"share_above({cut}, 0.7)"), (-1, 1))
    assert score.cells == BoundedCells(cut, 1.0, 0)
    below, at, above = score.of_numbers([math.nextafter(cut, -math.inf), cut, math.nextafter(cut, math.inf)])
    assert (below, at, above) == (score.high, score.low, score.low)
    assert score.null_law.tolist() == [0.5, 0.5]
    np.testing.assert_allclose(score.alternative_law, [0.7, 0.3])


DYADIC = {"kind": "dyadic", "exponent": 3, "first": 0, "size": 4, "support": [None, None]}
BOUNDED = {"kind": "bounded", "centre": 0.0, "scale": 1.0, "exponent": 3, "support": [None, None]}


@pytest.mark.parametrize(
    ("document", "key", "least", "most"),
    [
        (DYADIC, "exponent", -1022, 1023),
        (DYADIC, "first", -(2**53), 2**53),
        (DYADIC, "size", 1, 2**24),
        (BOUNDED, "exponent", 0, 22),
    ],
)
def test_documents_of_cells_up_to_the_ends_and_one_step_beyond(
    document: dict[str, Any], key: str, least: int, most: int
) -> None:
    for value in (least, most):
        assert cells_from_dict({**document, key: value}).to_dict()[key] == value
    for value in (least - 1, most + 1):
        with pytest.raises(InvalidDocument):
            cells_from_dict({**document, key: value})


def test_a_scale_of_cells_is_positive_and_a_support_has_an_inside() -> None:
    assert cells_from_dict({**BOUNDED, "scale": 5e-324}) == BoundedCells(0.0, 5e-324, 3)
    with pytest.raises(InvalidDocument, match=r"^The scale 0\.0 of the cells must be greater than 0"):
        cells_from_dict({**BOUNDED, "scale": 0.0})
    assert cells_from_dict({**DYADIC, "support": [1.0, math.nextafter(1, 2)]}).to_dict()["support"][0] == 1.0
    for support in ([1.0, 1.0], [2.0, 1.0]):
        with pytest.raises(InvalidDocument, match="support of the cells is empty"):
            cells_from_dict({**DYADIC, "support": support})
