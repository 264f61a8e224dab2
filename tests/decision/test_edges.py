"""Reach of a person, prices, documents and decisions at their edges: by hand, one step on each side."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privatest import design
from privatest.charge import Receipt
from privatest.decision import PrivateTest, pvalue
from privatest.decision.calibration import calibrated_cutoffs, from_score, kind_score, unclamped
from privatest.errors import InvalidInput
from privatest.hypotheses import make_pair
from privatest.ledger import Ledger
from privatest.privacy import Laplace, NoNoise, Pure, Tulap
from privatest.privacy.notions import Neighbourhood, make_neighbourhood
from privatest.scores import LabelCells, Score

LAW = np.array([0.25, 0.75])


def score(low: int, high: int) -> Score:
    """Labels "a" and "b" with these scores; a record that makes no sense counts as "a"."""
    return Score(
        LabelCells(("a", "b")), np.array([low, high, low]), Fraction(-1), Fraction(1, 2), np.array([low, high]),
        LAW, LAW[::-1].copy(),
    )  # fmt: skip


def made(low: int = -2, high: int = 5, **changes: Any) -> PrivateTest:
    settings: dict[str, Any] = {"noise": Tulap(Fraction(1), 1000), "notion": Pure(1), "n": 3, "cutoff": Fraction(4)}
    return PrivateTest("tight", score(low, high), **settings | changes)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(
    ("low", "high", "scale", "shift", "replaced", "added"),
    [(-2, 5, 1, 0, 7, 5), (-6, 1, 1, 0, 7, 6), (3, 5, 1, 0, 2, 5), (-2, 5, 4, 7, 28, 15), (-2, 5, 4, -7, 28, 27)],
)
def test_how_far_a_person_moves_the_sum(
    low: int, high: int, scale: int, shift: int, replaced: int, added: int, rows: int
) -> None:
    reach = {
        kind: Neighbourhood(kind, rows).reach(score(low, high), scale, shift) for kind in ("replace", "add-remove")
    }
    assert reach == {"replace": rows * replaced, "add-remove": rows * added}
    for neighbours, expected in reach.items():
        test = made(low, high, scale=scale, shift=shift, neighbours=neighbours, max_rows_per_unit=rows)
        assert test.sensitivity == expected


def test_only_known_neighbours_and_whole_numbers_of_rows() -> None:
    assert make_neighbourhood("add-remove", 2) == Neighbourhood("add-remove", 2)
    assert Neighbourhood() == Neighbourhood("replace", 1)
    with pytest.raises(InvalidInput, match="neighbours='swap'"):
        make_neighbourhood("swap", 1)
    for wrong in ({"max_rows_per_unit": 0}, {"scale": 0}, {"scale": -1}, {"max_rows_per_unit": 1.5}, {"n": 0}):
        ((name, value),) = wrong.items()
        with pytest.raises(InvalidInput, match=f"{name}={value}"):
            made(**wrong)


def test_a_total_that_is_the_cutoff_is_the_alternative() -> None:
    test = made(noise=Tulap(Fraction(1), 7))
    found = [test.release(test.cutoff + step).decision for step in (-1, 0, 1)]
    assert found == ["alternative", "alternative", "null"]


def test_what_a_total_stands_for() -> None:
    """3 records, origin -1, step 1/2; M = 4 and C = 7."""
    plain, scaled = made(), made(scale=4, shift=7)
    hidden = made(scale=4, shift=7, neighbours="add-remove")
    assert plain.threshold == -3 + 4 / 2
    assert scaled.threshold == -3 + (4 + 3 * 7) / 4 / 2
    assert hidden.threshold == 4 / 4 / 2
    assert plain.clamp == scaled.clamp == (-2.0, 1.5)
    assert hidden.clamp == ((-2 - 7 / 4) / 2, (5 - 7 / 4) / 2)
    for test, law in ((scaled, LAW), (hidden, LAW)):
        assert test.null_total.support.tolist() == [-15, 13]
        assert test.alternative_total.support.tolist() == [-15, 13]
        np.testing.assert_array_equal(test.null_total.law, law)


@pytest.mark.parametrize("records", [["a", "b", "b"], ["b"], [], ["a", None, "z", "b"]])
def test_a_hidden_number_of_records_is_taken_off_the_total(records: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    test = made(scale=4, shift=7, neighbours="add-remove")
    monkeypatch.setattr(Tulap, "draw", lambda *_: Fraction(0))
    total = sum(4 * {"b": 5}.get(record, -2) - 7 for record in records)
    assert test.run(records).statistic == total / 4 / 2


def test_prices_are_exact() -> None:
    third = Fraction(1, 3)
    assert made(noise=Tulap(Fraction(1, 2), 7)).price == 1  # less is lost than was asked for
    assert made(noise=Tulap(third, 7), notion=Pure(third)).price == third
    above = third + Fraction(1, 10**30)
    assert made(noise=Tulap(third, 7), notion=Pure(above)).price == above
    assert made(noise=NoNoise(), notion=Pure(math.inf)).price is None


@pytest.mark.parametrize("epsilon", [0.0, -0.5, -1.0])
def test_no_test_at_no_epsilon(epsilon: float) -> None:
    """However little is lost: scores that are all alike lose nothing."""
    with pytest.raises(InvalidInput, match="must be greater than 0"):
        made(2, 2, noise=Laplace(Fraction(1)), notion=epsilon)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_what_a_test_prints(rows: int) -> None:
    text = repr(made(max_rows_per_unit=rows))
    assert ("max_rows_per_unit" in text) == (rows > 1)
    assert "noise=Tulap" in text
    bare = made(noise=NoNoise(), notion=Pure(math.inf))
    assert "noise=none" in repr(bare)
    assert "NOT PRIVATE" in repr(bare)


def test_a_simulation_is_not_charged(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as book:
        book.grant("d", epsilon=1)
        paid: dict[str, Any] = {"ledger": book, "dataset": "d", "request": "r"}
        with pytest.raises(InvalidInput, match="a simulation releases nothing"):
            made().run(["a", "b", "b"], rng=np.random.default_rng(1), **paid)
        assert book.spent("d") == 0
        made().run(["a", "b", "b"], **paid)
        assert book.spent("d") == 1


@pytest.mark.parametrize(
    "plain", [made(), design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=100)], ids=["few", "many"]
)
@pytest.mark.parametrize(("scale", "shift"), [(1, 0), (2, 7)])
def test_bars_of_a_picture_have_the_masses_of_the_law(plain: PrivateTest, scale: int, shift: int) -> None:
    test = replace(plain, scale=scale, shift=shift, noise=Laplace(plain.sensitivity * Fraction(scale)))
    high, low = (float(law.support @ law.law) * test.n for law in (test.null_total, test.alternative_total))
    edges = [Fraction(int(low + part * (high - low))) for part in (-3, -1, 0, 0.25, 0.5, 1, 2, 4)]
    for found, law in zip(test.masses(edges), (test.null_total, test.alternative_total), strict=True):
        np.testing.assert_allclose(found, np.diff([law.cdf(edge) for edge in edges]), atol=1e-4)


def test_bars_of_a_picture_of_scores_that_are_multiples_of_three() -> None:
    plain = design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=100)
    thrice = replace(
        plain.score, table=3 * plain.score.table, support=3 * plain.score.support, step=plain.score.step / 3
    )
    test = replace(plain, score=thrice, noise=Tulap(Fraction(1), thrice.width))
    high, low = (float(law.support @ law.law) * test.n for law in (test.null_total, test.alternative_total))
    edges = [Fraction(int(low + part * (high - low))) for part in (-3, -1, 0, 0.25, 0.5, 1, 2, 4)]
    for found, law in zip(test.masses(edges), (test.null_total, test.alternative_total), strict=True):
        np.testing.assert_allclose(found, np.diff([law.cdf(edge) for edge in edges]), atol=1e-4)


@pytest.mark.parametrize("threshold", [Fraction(0), Fraction(1, 10), Fraction(-3, 7)])
def test_the_likelihood_ratio_test_cuts_halfway_below_its_ties(threshold: Fraction) -> None:
    """Ties are the null's. With noise, a total is where it is."""
    pair = make_pair("bernoulli(0.3)", "bernoulli(0.7)")
    plain, smooth = (unclamped(pair, 2, kind, threshold=threshold) for kind in ("llr", "sllr"))
    tie = plain.score.lattice_threshold(threshold, 2)
    assert (plain.cutoff, smooth.cutoff) == (math.ceil(tie) - Fraction(1, 2), tie)


def of_three(laws: dict[str, Any], n: int = 12, **changes: Any) -> PrivateTest:
    """Labels "a", "b" and "c" that score 0, 1 and 2."""
    score = Score(
        LabelCells(("a", "b", "c")), np.array([0, 1, 2, 1]), Fraction(-1), Fraction(1), np.array([0, 1, 2]), **laws
    )  # fmt: skip
    settings = {"noise": Tulap(Fraction(2), 3), "cutoff": Fraction(13), "notion": Pure(2), "n": n}
    return PrivateTest("tight", score, **settings | changes)  # type: ignore[arg-type]


HIGH, HIGHER, LOW, LOWER, MIDDLE = (
    np.array(law) for law in ([0.1, 0.2, 0.7], [0.05, 0.1, 0.85], [0.7, 0.2, 0.1], [0.85, 0.1, 0.05], [0.2, 0.6, 0.2])
)  # fmt: skip
SIMPLE = {"null_law": HIGH, "alternative_law": LOW}
OF_SETS = SIMPLE | {
    "other_null_laws": (np.array([0.0, 0.5, 0.5]),), "other_alternative_laws": (np.array([0.5, 0.5, 0.0]),),
    "outer_null_laws": (HIGHER, np.array([0.0, 0.2, 0.8])),
    "outer_alternative_laws": (LOWER, np.array([0.8, 0.2, 0.0])),
}  # fmt: skip
TWO_SIDED = {"null_law": MIDDLE, "alternative_law": LOW, "upper_laws": (HIGH, np.array([0.0, 0.4, 0.6]))}
KINDS_OF_TESTS = {
    "simple": of_three(SIMPLE),
    "sets": of_three(OF_SETS),
    "two-sided": of_three(TWO_SIDED, 60, cutoff=Fraction(40), upper=Fraction(80)),
    "two-sided sets": of_three(
        TWO_SIDED | {"outer_null_laws": (np.array([0.15, 0.6, 0.25]),)}, 60, cutoff=Fraction(40), upper=Fraction(80)
    ),
    "shifted": of_three(SIMPLE, scale=2, shift=3, cutoff=Fraction(-10), noise=Tulap(Fraction(2), 8)),
}  # fmt: skip


def tails(test: PrivateTest, laws: Any, at: Fraction) -> tuple[float, float]:
    """The largest probability of a noisy total up to ``at``, and of one from ``at`` on, by convolution."""
    lows, highs = [], []
    for law in laws:
        total = np.array([1.0])
        for _ in range(test.n):
            total = np.convolve(total, law)
        values = test.scale * np.arange(len(total)) - test.shift * test.n
        lows.append(float(total @ test.noise.cdf(float(at) - values)))
        highs.append(float(total @ test.noise.sf(float(at) - values - 0.25)))
    return max(lows), max(highs)


@pytest.mark.parametrize("kind", KINDS_OF_TESTS)
def test_p_values_and_errors_by_convolution(kind: str) -> None:
    test = KINDS_OF_TESTS[kind]
    score = test.score
    nulls, alternatives = (
        [score.null_law, *score.other_null_laws],
        [score.alternative_law, *score.other_alternative_laws],
    )
    outer_nulls, outer = score.outer_null_laws or nulls, score.outer_alternative_laws or alternatives
    seen = set()
    for whole in range(-80, 100, 2):
        at = whole + test.noise.offset
        release = test.release(at)
        low, high = tails(test, nulls, at)[0], tails(test, outer_nulls, at)[1]
        above, below = tails(test, alternatives, at)[1], tails(test, outer, at)[0]
        if test.upper is None:
            expected = low, above
            fits = 2 * min(low, high) >= 0.001, 2 * min(above, below) >= 0.001
        else:
            expected = min(2 * min(low, high), 1), max(above, tails(test, score.upper_laws, at)[0])
            fits = expected[0] >= 0.001, min(2 * expected[1], 1) >= 0.001
        assert (release.pvalue, release.pvalue_alternative) == pytest.approx(expected, rel=1e-9, abs=1e-13)
        words = {(True, True): "both", (True, False): "null", (False, True): "alternative", (False, False): "neither"}
        assert release.fits == words[fits]
        seen.add(release.fits)
        inside = at > test.cutoff and (test.upper is None or at <= test.upper)
        assert release.decision == ("null" if inside else "alternative")
    assert seen == {"both", "null", "alternative", "neither"} - ({"neither"} if test.upper else set())
    step = Fraction(1, 2) if test.noise.offset else Fraction(1)
    alpha, beta = tails(test, nulls, test.cutoff)[0], tails(test, alternatives, test.cutoff + step)[1]
    if test.upper is not None:
        alpha += tails(test, outer_nulls, test.upper + step)[1]
        beta = max(beta, tails(test, score.upper_laws, test.upper)[0])
    assert (test.alpha, test.beta) == pytest.approx((alpha, beta), rel=1e-9)
    assert test.advantage == pytest.approx(1 - alpha - beta, rel=1e-9)
    law = {"a": 0.3, "b": 0.3, "c": 0.2, "d": 0.2}
    power = tails(test, [[0.3, 0.5, 0.2]], test.cutoff)[0]
    power += tails(test, [[0.3, 0.5, 0.2]], test.upper + step)[1] if test.upper is not None else 0
    assert test.power(law) == pytest.approx(power, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS_OF_TESTS)
def test_what_does_not_fit_has_less_than_a_thousandth_in_two_tails(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the bound exactly twice a tail, and one step of a double above: any bound would do."""
    test = KINDS_OF_TESTS[kind]
    for whole in (-30, 5, 9, 12, 18, 23, 38, 60, 82, 96):
        at = whole + test.noise.offset
        plain = test.release(at)
        assert plain.pvalue is not None
        assert plain.pvalue_alternative is not None
        small = plain.pvalue if test.upper is not None else 2 * plain.pvalue
        for bound, others in ((small, ("null", "both")), (2 * plain.pvalue_alternative, ("alternative", "both"))):
            if not 0 < bound < 0.5:
                continue
            monkeypatch.setattr(pvalue, "EXTREME", bound)
            assert test.release(at).fits in others
            monkeypatch.setattr(pvalue, "EXTREME", math.nextafter(bound, 1))
            assert test.release(at).fits not in others


def test_the_second_threshold_lies_above_the_first() -> None:
    with pytest.raises(InvalidInput, match=r"^upper=40 must be greater than cutoff=40"):
        of_three(TWO_SIDED, 60, cutoff=Fraction(40), upper=Fraction(40))
    assert of_three(TWO_SIDED, 60, cutoff=Fraction(40), upper=Fraction(41)).two_sided
    for laws, ends in ((TWO_SIDED, {}), (SIMPLE, {"upper": Fraction(50)})):
        with pytest.raises(InvalidInput, match="go together"):
            of_three(laws, 60, cutoff=Fraction(40), **ends)


def test_documents_say_whether_a_test_is_private() -> None:
    assert made().to_dict()["privacy"] == "pure(1)"
    open_test = unclamped(make_pair([0.2, 0.8], [0.8, 0.2]), 5, "llr")
    assert open_test.to_dict()["privacy"] == "pure(inf)"
    assert PrivateTest.from_dict(open_test.to_dict()) == open_test
    for test in KINDS_OF_TESTS.values():
        assert PrivateTest.from_json(test.to_json()) == test
        assert ("upper" in test.to_dict()) == test.two_sided


@pytest.mark.parametrize("alpha", [0.1, 0.01])
@pytest.mark.parametrize("sets", [False, True])
def test_a_level_is_halved_between_the_two_tails(alpha: float, sets: bool) -> None:
    """The cutoffs are the innermost ones at which no law of the null has more than half of the level beyond."""
    others = {"other_null_laws": (np.array([0.25, 0.55, 0.2]),), "outer_null_laws": (np.array([0.15, 0.6, 0.25]),)}
    test = of_three(TWO_SIDED | (others if sets else {}), 60, cutoff=Fraction(40), upper=Fraction(80))
    score = test.score
    lower, upper = calibrated_cutoffs(score, test.noise, 60, alpha)
    below, above = math.floor(lower), math.floor(upper) + 1  # the totals up to, and from, which it says "alternative"
    assert (
        tails(test, score.null_laws, Fraction(below))[0]
        <= alpha / 2
        < tails(test, score.null_laws, Fraction(below + 1))[0]
    )
    highs = score.outer_null_laws or score.null_laws
    assert tails(test, highs, Fraction(above))[1] <= alpha / 2 < tails(test, highs, Fraction(above - 1))[1]


def test_of_hypotheses_that_mirror_each_other_the_best_thresholds_do_too() -> None:
    laws = {"null_law": MIDDLE, "alternative_law": LOW, "upper_laws": (LOW[::-1].copy(),)}
    score = of_three(laws, 60, cutoff=Fraction(40), upper=Fraction(80)).score
    lower, upper = calibrated_cutoffs(score, Tulap(Fraction(2), 3), 60, None)
    assert 30 < lower < upper < 90
    assert abs((math.floor(lower) + math.floor(upper) + 1) - 120) <= 1
    best = of_three(laws, 60, cutoff=lower, upper=upper)
    for wider in (-6, 6):
        other = of_three(laws, 60, cutoff=lower - wider, upper=upper + wider)
        assert best.alpha + best.beta < other.alpha + other.beta


@pytest.mark.parametrize("scale", [1, 4])
def test_the_noise_in_nats(scale: int) -> None:
    test = made(scale=scale)
    assert test.noise_sd == pytest.approx(math.sqrt(Tulap(Fraction(1), 1000).variance) / 2 / scale, rel=1e-12)


@pytest.mark.parametrize("again", [False, True])
def test_an_answer_that_is_not_new_says_so(again: bool) -> None:
    receipt = Receipt("claims", "q0", datetime(2026, 1, 2, tzinfo=UTC), "a.csv", "sha256:5f2d", "3:00", replayed=again)
    release = replace(made().release(Fraction(3)), receipt=receipt)
    assert ("this answer is not new" in str(release)) == again
    (note,) = (fact.value for fact in release.facts() if fact.name == "receipt.note")
    assert note == f"{'this answer is not new: ' if again else ''}{receipt.note}"


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("threshold", [None, Fraction(0), Fraction(3, 2)])
def test_the_papers_tests_cut_at_0_unless_told_otherwise(neighbours: str, threshold: Fraction | None) -> None:
    pair = make_pair([0.2, 0.8], [0.8, 0.2])
    score = kind_score(pair, "scllr", (-1, 1))
    words: dict[str, Any] = {"threshold": threshold, "around": Neighbourhood(neighbours, 1)}
    test = from_score(pair, score, Pure(1), 20, "scllr", (-1, 1), **words)
    assert test.threshold == pytest.approx(float(threshold or 0), abs=float(score.step))
