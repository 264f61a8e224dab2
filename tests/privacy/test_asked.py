"""Notions as users write them."""

from __future__ import annotations

from fractions import Fraction

import pytest

import privatest as pt
from privatest.errors import InvalidInput
from privatest.privacy import Notion, as_notion, make_notion


@pytest.mark.parametrize(
    ("text", "notion"),
    [
        ("pure(1)", pt.pure(1)),
        (" Pure( 0.5 ) ", pt.pure(0.5)),
        ("1/3", pt.pure(Fraction(1, 3))),
        (0.1, pt.pure(0.1)),
        ("approx(1, 1e-6)", pt.approx(1, 1e-6)),
        ("approx(delta=1e-6, epsilon=1)", pt.approx(1, 1e-6)),
        ("tv(0.1)", pt.tv(0.1)),
        ("gdp(mu=1)", pt.gdp(1)),
        ("zcdp(0.5)", pt.zcdp(0.5)),
        ("renyi(2, 1/2)", pt.renyi(2, 0.5)),
        ("kl(.5)", pt.kl(0.5)),
        ("tv(.1)", pt.tv(0.1)),
        ("approx(1., delta=.1e-5)", pt.approx(1, 1e-6)),
        (".5", pt.pure(0.5)),
    ],
)
def test_texts_mean_what_they_say(text: object, notion: Notion) -> None:
    assert as_notion(text) == notion
    assert as_notion(notion.text) == notion
    assert as_notion(notion) is notion


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pure",
        "pure()",
        "pure(1, 2)",
        "zcpd(1)",
        "approx(1)",
        "approx(1, 1)",
        "approx(1, epsilon=2)",
        "gdp(x)",
        "gdp(.)",
        "gdp(.e5)",
        "gdp(1.2.3)",
        "gdp(1e9999)",
        "pure(1/0)",
        "pure(-1)",
        "pure(inf)",
        "pure(nan)",
        "__import__('os')",
        "pure(1)(2)",
        None,
        True,
    ],
)
def test_other_texts_are_refused(text: object) -> None:
    with pytest.raises(InvalidInput):
        as_notion(text)


def test_a_misspelt_notion_is_guessed() -> None:
    with pytest.raises(InvalidInput, match="Did you mean 'zcdp'"):
        as_notion("zcpd(0.5)")


def test_one_of_epsilon_and_privacy() -> None:
    assert make_notion(1, None) == pt.pure(1)
    assert make_notion(None, "gdp(1)") == pt.gdp(1)
    with pytest.raises(InvalidInput, match="both given"):
        make_notion(1, "gdp(1)")
    with pytest.raises(InvalidInput, match="epsilon is missing"):
        make_notion(None, None)
    with pytest.raises(InvalidInput, match="epsilon=0"):
        make_notion(0, None)
