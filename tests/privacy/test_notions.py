"""Notions: h against its definition, its symmetry and its iterates; gains; what follows from what; their texts."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from privatest.errors import InvalidInput
from privatest.notions import approx, gdp, kl, pure, renyi, tv, zcdp
from privatest.privacy import Notion, as_notion, make_notion

ALL = [pure(1), approx(0.5, 0.05), approx(1, 1e-6), tv(0.1), gdp(1), zcdp(0.3), renyi(2, 0.5), renyi(32, 1), kl(0.5)]


def allowed(notion: Notion, p: mpmath.mpf, q: mpmath.mpf) -> bool:
    """Whether probabilities p and q on neighbours meet the notion's definition, in many digits."""
    e = [mpmath.mpf(value.numerator) / value.denominator for value in notion.exact]
    pairs = ((p, q), (q, p))

    def divergence(p: mpmath.mpf, q: mpmath.mpf, order: mpmath.mpf) -> mpmath.mpf:
        if order == 1:
            return p * mpmath.log(p / q) + (1 - p) * mpmath.log((1 - p) / (1 - q))
        return mpmath.log(p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)) / (order - 1)

    if notion.name in ("pure", "approx"):
        delta = e[1] if len(e) > 1 else 0
        return all(y <= mpmath.exp(e[0]) * x + delta for p, q in pairs for x, y in ((p, q), (1 - p, 1 - q)))
    if notion.name == "tv":
        return bool(abs(p - q) <= e[0])
    if notion.name == "gdp":
        return bool(abs(normal_quantile(p) - normal_quantile(q)) <= e[0])
    if notion.name == "renyi":
        return all(divergence(x, y, e[0]) <= e[1] for x, y in pairs)
    if notion.name == "kl":
        return all(divergence(x, y, mpmath.mpf(1)) <= e[0] for x, y in pairs)
    orders = [1 + mpmath.mpf(10) ** (mpmath.mpf(k) / 12) for k in range(-72, 73)]
    return all(divergence(x, y, a) <= e[0] * a for x, y in pairs for a in orders)


def normal_quantile(p: mpmath.mpf) -> mpmath.mpf:
    return mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)


@pytest.mark.parametrize("notion", ALL, ids=str)
def test_h_is_the_largest_that_the_definition_allows(notion: Notion) -> None:
    # zcdp is a supremum over orders, of which the definition here tries a grid: it allows a little more.
    slack = 1e-2 if notion.name == "zcdp" else 1e-9
    with mpmath.workdps(60):
        for p in (1e-9, 0.01, 0.2, 0.5, 0.9):
            q = mpmath.mpf(float(notion.h(p)))
            if q < 1:
                move = q - mpmath.mpf(p)
                assert allowed(notion, mpmath.mpf(p), q - move * mpmath.mpf(1e-9))
                assert not allowed(notion, mpmath.mpf(p), min(q + move * slack, (1 + q) / 2))


@pytest.mark.parametrize("notion", ALL, ids=str)
def test_h_is_concave_symmetric_and_at_least_p(notion: Notion) -> None:
    grid = np.linspace(0.0, 1.0, 41)
    h = notion.h(grid)
    assert np.all(h >= grid)
    assert np.all(np.diff(h, 2) <= 1e-12)
    back = 1 - notion.h(1 - h)
    inside = h < 1
    np.testing.assert_allclose(back[inside], grid[inside], rtol=1e-9, atol=1e-12)
    assert notion.h(1.0) == 1.0


@pytest.mark.parametrize("notion", ALL, ids=str)
def test_the_gain_is_the_largest_over_a_grid(notion: Notion) -> None:
    for records in (1, 2) if notion.name == "zcdp" else (1, 2, 3):
        grid = np.linspace(0.0, 1.0, 41)
        largest = float(np.max(notion.h(grid, records) - grid))
        assert largest <= notion.gain(records) + 1e-12
        assert largest == pytest.approx(notion.gain(records), abs=2e-2)


@pytest.mark.parametrize("first", ALL, ids=str)
def test_what_implies_another_has_the_smaller_h(first: Notion) -> None:
    grid = np.array([1e-6, 0.01, 0.1, 0.3, 0.5, 0.7])
    below = first.h(grid)
    assert first.implies(first)
    for second in ALL:
        if first.implies(second):
            assert np.all(below <= second.h(grid) + 1e-12)


FOLLOWS = {
    "pure(1)": "pure approx tv gdp zcdp renyi kl",
    "approx(0.5, 0.05)": "approx tv",
    "tv(0.1)": "approx tv",
    "gdp(1)": "approx tv gdp zcdp renyi kl",
    "zcdp(0.3)": "approx tv zcdp renyi kl",
    "renyi(2, 0.5)": "approx tv renyi kl",
    "kl(0.5)": "approx tv kl",
}
CHOSEN: dict[str, dict[str, float]] = {"approx": {"epsilon": 1}, "renyi": {"order": 1.5}}


@pytest.mark.parametrize(("text", "kind"), [(text, kind) for text, kinds in FOLLOWS.items() for kind in kinds.split()])
def test_conversions_follow_and_are_tight(text: str, kind: str) -> None:
    """Every conversion that there is; those that there are not: `test_what_does_not_follow_is_not_said`."""
    notion = as_notion(text)
    result = notion.into(kind, **CHOSEN.get(kind, {}))
    assert result.name == kind
    assert notion.implies(result)
    if notion.tradeoff and kind in ("tv", "approx") and result.gain() < 1:
        # The two graphs touch: a little less would be too little.
        *first, last = result.exact
        assert not last or not notion.implies(type(result)(*first, last * Fraction(999, 1000)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: approx(1, 1),
        lambda: approx(0, 0),
        lambda: gdp(-1),
        lambda: renyi(1, 1),
        lambda: tv(1),
        lambda: pure(0),
        lambda: pure(math.inf),
        lambda: pure(True),
        lambda: gdp(1).into("zcpd"),
        lambda: gdp(1).into("approx"),
        lambda: gdp(1).into("zcdp", order=2),
        lambda: gdp(1).h(1.5),
        lambda: gdp(1).gain(-1),
    ],
)
def test_what_makes_no_sense_is_refused(make: object) -> None:
    with pytest.raises(InvalidInput, match=r"must|needs|not chosen|allow"):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "notion"),
    [
        ("pure(1)", pure(1)),
        ("1/3", pure(Fraction(1, 3))),
        (0.1, pure(0.1)),
        ("approx(1, 1e-6)", approx(1, 1e-6)),
        ("approx(delta=1e-6, epsilon=1)", approx(1, 1e-6)),
        ("tv(0.1)", tv(0.1)),
        ("zcdp(0.5)", zcdp(0.5)),
        ("renyi(2, 1/2)", renyi(2, 0.5)),
        ("kl(.5)", kl(0.5)),
        ("approx(1., delta=.1e-5)", approx(1, 1e-6)),
        (".5", pure(0.5)),
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
        "pure(1, 2)",
        "zcpd(1)",
        "approx(1, 1)",
        "approx(1, epsilon=2)",
        "gdp(x)",
        "gdp(1.2.3)",
        "gdp(1e9999)",
        "pure(1/0)",
        "pure(inf)",
        "__import__('os')",
        None,
        True,
    ],
)
def test_other_texts_are_refused(text: object) -> None:
    with pytest.raises(InvalidInput):
        as_notion(text)


def test_one_of_epsilon_and_privacy() -> None:
    assert make_notion(1, None) == pure(1)
    assert make_notion(None, "gdp(1)") == gdp(1)
    with pytest.raises(InvalidInput, match="both given"):
        make_notion(1, "gdp(1)")
    with pytest.raises(InvalidInput, match="epsilon is missing"):
        make_notion(None, None)
    with pytest.raises(InvalidInput, match="epsilon=0"):
        make_notion(0, None)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-10, 1_000_001, 1e300])
def test_epsilons_that_hide_everything_or_nothing_are_refused(epsilon: float) -> None:
    for words in ((epsilon, None), (None, pure(epsilon))):
        with pytest.raises(InvalidInput, match=r"^epsilon=.* must lie between 1e-09 and 1e\+06\. Typical"):
            make_notion(*words)
    assert make_notion(None, approx(0, 0.1)).epsilon == 0
