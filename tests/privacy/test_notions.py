"""Notions: h against its definition, its symmetry and its iterates; gains; what follows from what."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from privatest.errors import InvalidInput
from privatest.notions import approx, gdp, kl, pure, renyi, tv, zcdp
from privatest.privacy import Approx, Notion, Pure

ALL = [pure(1), pure(0.1), approx(0.5, 0.05), approx(1, 1e-6), tv(0.1), gdp(1), gdp(0.2), zcdp(0.3)]
ALL += [renyi(2, 0.5), renyi(32, 1), kl(0.5), kl(0.01)]
PROBABILITIES = (1e-200, 1e-12, 1e-3, 0.1, 0.3, 0.5, 0.8, 0.99)


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
def test_iterates_are_h_again_and_again(notion: Notion) -> None:
    for p in PROBABILITIES[:: 3 if notion.name == "zcdp" else 1]:
        up, rest = p, 1 - p
        for records in range(1, 8):
            up, rest = notion.step(up, rest)
            found = notion.rise(p, 1 - p, records)
            assert found[0] == pytest.approx(up, rel=1e-11)
            assert found[1] == pytest.approx(rest, rel=1e-9, abs=1e-15)
        if rest > 1e-9:  # and down again
            assert notion.rise(rest, up, 7)[1] == pytest.approx(p, rel=1e-6)


@pytest.mark.parametrize("notion", ALL, ids=str)
def test_the_gain_is_the_largest_over_a_grid(notion: Notion) -> None:
    for records in (1, 2) if notion.name == "zcdp" else (1, 2, 3):
        grid = np.linspace(0.0, 1.0, 41 if notion.name == "zcdp" else 201)
        largest = float(np.max(notion.h(grid, records) - grid))
        assert largest <= notion.gain(records) + 1e-12
        assert largest == pytest.approx(notion.gain(records), abs=2e-2)


def test_gains_that_are_known() -> None:
    assert pure(1).gain() == pytest.approx(math.tanh(0.5), rel=1e-14)
    assert gdp(1).gain(2) == pytest.approx(math.erf(2 / math.sqrt(8)), rel=1e-14)
    assert tv(0.3).gain(4) == 1.0
    assert pure(700).gain() == 1.0


def test_far_values_keep_their_digits() -> None:
    assert pure(1).rise(1.0, 1e-300, 1)[1] == pytest.approx(1e-300 / math.e, rel=1e-13)
    with mpmath.workdps(400):
        far = mpmath.mpf(10) ** -250
        z = mpmath.findroot(lambda z: mpmath.log(mpmath.ncdf(z) / far), -33.8)
        assert float(gdp(1).h(1e-250, 3)) == pytest.approx(float(mpmath.ncdf(z + 3)), rel=1e-11)
        q = mpmath.mpf(float(renyi(2, 0.5).h(1e-100)))
        p = mpmath.mpf(1e-100)
        assert float(mpmath.log(q**2 / p + (1 - q) ** 2 / (1 - p))) == pytest.approx(0.5, rel=1e-11)


@pytest.mark.parametrize("first", ALL, ids=str)
def test_what_implies_another_has_the_smaller_h(first: Notion) -> None:
    grid = np.array([1e-6, 0.01, 0.1, 0.3, 0.5, 0.7])
    below = first.h(grid)
    assert first.implies(first)
    for second in ALL:
        if first.implies(second):
            assert np.all(below <= second.h(grid) + 1e-12)


@pytest.mark.parametrize("notion", ALL, ids=str)
@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("approx", {"delta": 1e-3}),
        ("approx", {"epsilon": 1}),
        ("tv", {}),
        ("gdp", {}),
        ("zcdp", {}),
        ("kl", {}),
        ("renyi", {"order": 3}),
    ],
)
def test_conversions_follow_and_are_tight(notion: Notion, kind: str, given: dict[str, float]) -> None:
    try:
        found = notion.into(kind, **given)
    except InvalidInput as refused:
        assert "does not convert" in str(refused)  # noqa: PT017 - either a conversion or this sentence
        return
    assert found.name == kind
    assert notion.implies(found)
    if notion.tradeoff and kind in ("tv", "approx") and found.gain() < 1:
        # The two graphs touch: a little less would be too little.
        *chosen, last = found.exact
        assert not last or not notion.implies(type(found)(*chosen, last * Fraction(999, 1000)))


def test_conversions_that_are_known() -> None:
    assert gdp(1).into("zcdp") == zcdp(0.5)
    assert pure(1).into("zcdp") == zcdp(0.5)
    assert zcdp(0.5).into("renyi", order=3) == renyi(3, 1.5)
    assert pure(1).into("approx", epsilon=2) == approx(2, 0)
    # delta(eps) = Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2)
    assert float(gdp(1).into("approx", epsilon=1).exact[1]) == pytest.approx(0.126936737507, rel=1e-8)
    assert float(tv(0.1).into("approx", epsilon=3).exact[1]) == 0.1


@pytest.mark.parametrize(
    "make",
    [
        lambda: approx(1, 1),
        lambda: approx(1, -0.1),
        lambda: approx(-1, 0.1),
        lambda: approx(0, 0),
        lambda: zcdp(0),
        lambda: gdp(-1),
        lambda: renyi(1, 1),
        lambda: renyi(2, 0),
        lambda: kl(0),
        lambda: tv(1),
        lambda: pure(0),
        lambda: pure(math.inf),
        lambda: pure(math.nan),
        lambda: pure(True),
        lambda: gdp(1).into("zcpd"),
        lambda: gdp(1).into("approx"),
        lambda: gdp(1).into("renyi"),
        lambda: gdp(1).into("zcdp", order=2),
        lambda: gdp(1).h(1.5),
        lambda: gdp(1).gain(-1),
    ],
)
def test_what_makes_no_sense_is_refused(make: object) -> None:
    with pytest.raises(InvalidInput, match=r"must|needs|not chosen|allow"):
        make()  # type: ignore[operator]


def test_exactness() -> None:
    assert pure(0.1).exact == (Fraction(1, 10),)
    assert pure(Fraction(1, 3)).text == "pure(1/3)"
    assert Pure(math.inf).epsilon == math.inf
    assert approx(1, 1e-6).epsilon == 1.0
    assert isinstance(approx(1, 1e-6), Approx)
    assert zcdp(0.5).epsilon == math.inf
