"""Families with one unknown parameter: what is read, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from privatest.errors import InvalidDistribution, InvalidInput
from privatest.hypotheses import as_distribution
from privatest.hypotheses.one_parameter import OneParameter, between_members
from privatest.hypotheses.parse import parse


@pytest.mark.parametrize(
    ("text", "between", "name"),
    [
        ("normal(mean=?, sd=1)", (-3, 3), "mean"),
        ("normal(?, 1)", (-3, 3), "mean"),
        ("normal(0, sd=?)", (0.5, 2), "sd"),
        ("bernoulli(?)", None, "p"),
        ("binomial(5, ?)", None, "p"),
        ("poisson(?)", (0, 20), "mean"),
        ("exponential(rate=?)", (0.1, 10), "rate"),
        ("exponential(?)", (0.1, 10), "scale"),
        ("share_above(5, ?)", None, "share"),
        ("categorical(yes=?)", None, "share of yes"),
        ("normal(mean=?, sd in [0.8, 1.2])", (-3, 3), "mean"),
    ],
)
def test_the_parameter_is_the_one_with_the_question_mark(text: str, between: Any, name: str) -> None:
    found = OneParameter.of(text, between)
    assert found.name == name
    assert found.exact == ("in [" not in text)
    assert found.low <= found.inner[0] < found.inner[1] <= found.high
    if not found.is_share:
        middle = sum(found.inner) / 2
        box = found.box(middle, middle)
        assert box.member(box.middle).describe() == found.member(middle).describe()


@pytest.mark.parametrize("high", [0.5, 1, 2, 49])
def test_a_rate_is_one_over_the_scale_wherever_its_range_ends(high: float) -> None:
    family = OneParameter.of("exponential(rate=?)", (0.1, high))
    for rate in (0.1, 0.25, high):
        assert family.member(rate).describe() == parse(f"exponential({1 / rate!r})").describe()
    assert OneParameter.of("exponential(mean=?)", (0.1, high)).member(0.25).describe() == "exponential(0.25)"


@pytest.mark.parametrize(
    ("text", "between", "words"),
    [
        ("normal(0, 1)", (-3, 3), "one question mark"),
        ("normal(?, ?)", (-3, 3), "Two unknown parameters"),
        (5, (-3, 3), "one question mark"),
        ("normal(?, 1)", (3, -3), "lower end first"),
        ("normal(?, 1)", (3, 3), "lower end first"),
        ("normal(?, 1)", None, "between is missing"),
        ("normal(?, 1)", (0, float("inf")), "two finite numbers"),
        ("normal(?, 1)", "ab", "two finite numbers"),
        ("normal(?, 1)", (True, 2), "two finite numbers"),
        ("normal(0, ?)", (-2, -1), "greater than 0"),
        ("bernoulli(?)", (0, 2), "between 0 and 1"),
        ("categorical(yes=?)", (0, 2), "between 0 and 1"),
        ("categorical(yes=?, no=0.5)", (0, 1), "one label"),
        ("normal(?, 1", (0, 1), "expected"),
        ("mixture(0.5, normal(?, 1), 0.5, normal(0, 1))", (0, 1), "named families"),
    ],
)
def test_what_is_no_question_is_refused(text: Any, between: Any, words: str) -> None:
    with pytest.raises((InvalidInput, InvalidDistribution), match=words):
        OneParameter.of(text, between)


def test_values_beyond_the_range_are_refused() -> None:
    family = OneParameter.of("normal(?, 1)", (-3, 3))
    assert family.check_value(2, "at") == 2
    for wrong in (4, "x", True, float("nan"), None):
        with pytest.raises(InvalidInput, match=r"at=.* must be a value of mean between -3 and 3"):
            family.check_value(wrong, "at")


def test_the_family_of_a_pair() -> None:
    def of(one: str, other: str, between: Any = None) -> OneParameter:
        return between_members(as_distribution(one), as_distribution(other), between)

    assert of("normal(0, 1)", "normal(1, 1)") == OneParameter("normal(mean=?, sd=1)", -100.0, 101.0)
    assert of("bernoulli(0.2)", "bernoulli(0.8)") == OneParameter("bernoulli(p=?)", 0.0, 1.0)
    assert of("poisson(4)", "poisson(3)").low == 0
    assert of("normal(0, 1)", "normal(0, 2)", (0.5, 3)) == OneParameter("normal(mean=0, sd=?)", 0.5, 3.0)
    for pair in (("normal(0, 1)", "normal(1, 2)"), ("normal(0, 1)", "laplace(0, 1)"), ("normal(0, 1)", "normal(0, 1)")):
        with pytest.raises(InvalidInput, match="do not differ by one parameter"):
            of(*pair)
