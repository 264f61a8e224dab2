"""Reach of a person, prices, documents and decisions at their edges: by hand, one step on each side."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privatest.decision import PrivateTest, pvalue
from privatest.decision.construction import calibrated_cutoffs, from_score, kind_score
from privatest.errors import InvalidInput
from privatest.hypotheses import make_pair
from privatest.privacy import Laplace, Pure, Tulap
from privatest.privacy.notion import Neighbourhood
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


@pytest.mark.parametrize("epsilon", [0.0, -0.5, -1.0])
def test_no_test_at_no_epsilon(epsilon: float) -> None:
    """However little is lost: scores that are all alike lose nothing."""
    with pytest.raises(InvalidInput, match="must be greater than 0"):
        made(2, 2, noise=Laplace(Fraction(1)), notion=epsilon)


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


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("threshold", [None, Fraction(0), Fraction(3, 2)])
def test_the_papers_tests_cut_at_0_unless_told_otherwise(neighbours: str, threshold: Fraction | None) -> None:
    pair = make_pair([0.2, 0.8], [0.8, 0.2])
    score = kind_score(pair, "scllr", (-1, 1))
    words: dict[str, Any] = {"threshold": threshold, "around": Neighbourhood(neighbours, 1)}
    test = from_score(pair, score, Pure(1), 20, "scllr", (-1, 1), **words)
    assert test.threshold == pytest.approx(float(threshold or 0), abs=float(score.step))
