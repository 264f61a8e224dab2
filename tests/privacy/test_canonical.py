"""The noise that meets a notion: its law, its constraint, all events of shifted laws; and many counts together."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privatest.errors import InvalidInput
from privatest.notions import approx, gdp, kl, pure, renyi, tv, zcdp
from privatest.privacy import (
    Gaussian,
    Noise,
    Notion,
    Stair,
    TruncatedTulap,
    Uniform,
    canonical_noise,
    noise_from_dict,
)
from privatest.privacy.canonical_noise import counts_guarantee, counts_noise
from privatest.privacy.composition import adds_up_within
from privatest.privacy.notion import NEIGHBOURS, Neighbourhood

NOTIONS = [pure(1), approx(1, 0.01), approx(0.5, 0.05), approx(0.1, 0.5), approx(0, 0.2), tv(0.1), tv(0.3), gdp(1)]
NOTIONS += [gdp(0.2), zcdp(0.5), zcdp(0.07), renyi(3, 0.4), kl(0.3)]
NEW: list[Noise] = [
    TruncatedTulap(Fraction(1), Fraction(1, 100), 3),
    TruncatedTulap(Fraction(1, 2), Fraction(1, 20), 4),
    TruncatedTulap(Fraction(1), Fraction(1, 10**6), 8),
    TruncatedTulap(Fraction(1, 10), Fraction(1, 2), 5),
    TruncatedTulap(Fraction(5), Fraction(1, 10**9), 1),
    Uniform(1),
    Uniform(10),
    Uniform(7),
    Gaussian(Fraction(1), 4),
    Gaussian(Fraction(3), 1),
    Gaussian(Fraction(1, 100), 3),
    Gaussian(Fraction(20), 1),
    Stair(Fraction(1, 2), 3),
]
each_new = pytest.mark.parametrize("noise", NEW, ids=lambda noise: "-".join(map(str, noise.to_dict().values())))


def lattice(noise: Noise, nats: float = 60) -> np.ndarray:
    reach = int(noise.reach(nats)) + 3
    return np.arange(-reach, reach + 1) + float(noise.offset)


@each_new
def test_masses_tails_variance_and_transform_agree(noise: Noise) -> None:
    x = lattice(noise)
    masses = noise.pmf(x)
    assert masses.sum() == pytest.approx(1, abs=1e-13)
    np.testing.assert_allclose(noise.cdf(x), np.cumsum(masses), atol=1e-13)
    np.testing.assert_allclose(noise.sf(x), noise.cdf(-x - 1), rtol=1e-12)
    assert float((masses * x * x).sum()) == pytest.approx(noise.variance, rel=1e-12, abs=1e-15)
    for t in (0.0, 0.1, 0.7, 2.0, 3.1, 7.0):
        assert float(noise.characteristic(t)) == pytest.approx(float((masses * np.cos(t * x)).sum()), abs=1e-13)
    theta = min(0.5 * noise.decay_rate, 0.3 / np.sqrt(noise.variance + 0.01))
    for t in (0.1, 2.0):
        direct = (masses * np.exp(1j * (t + 1j * theta) * x)).sum()
        assert abs(complex(noise.characteristic(t + 1j * theta)) - direct) < 1e-12
    assert noise_from_dict(noise.to_dict()) == noise


@each_new
def test_tails_are_accurate_relative_to_themselves(noise: Noise) -> None:
    x = lattice(noise, 200)
    below = x[(x < 0) & (noise.pmf(x) > 0)]
    upwards = np.cumsum(noise.pmf(below))
    summed = upwards > 1e-60
    np.testing.assert_allclose(noise.cdf(below)[summed], upwards[summed], rtol=1e-9)
    np.testing.assert_allclose(np.exp(noise.logcdf(below)), noise.cdf(below), rtol=1e-12)


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("notion", [n for n in NOTIONS if n.tradeoff], ids=str)
def test_the_constraint_is_met_with_equality(notion: Notion, width: int) -> None:
    noise = canonical_noise(notion, width)
    x = lattice(noise, 30)
    here, there = noise.cdf(x[:-width]), noise.cdf(x[width:])
    inside = here > 0
    most = notion.h(here)
    if isinstance(noise, Gaussian):  # equality for the number before it is rounded; its rounding shifts both alike
        assert np.all(there <= most + 1e-12)
        return
    exact = not isinstance(noise, Uniform) or noise.points * Fraction(str(float(notion.gain()))) == width
    if exact:
        np.testing.assert_allclose(there[inside], most[inside], atol=1e-12)
    assert np.all(there <= most + 1e-12)


@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_it_meets_the_notion_and_half_of_it_does_not(notion: Notion) -> None:
    noise = canonical_noise(notion, 8)
    assert all(noise.meets(notion, shift) for shift in range(9))
    assert not noise.meets(notion, 17)
    assert not canonical_noise(notion, 4).meets(notion, 8)


@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_all_sets_of_outputs_meet_the_definition(notion: Notion) -> None:
    """Two shifted laws, all events by likelihood ratio: no event has more than h; divergences within their bounds."""
    noise = canonical_noise(notion, 3)
    x = lattice(noise, 40)
    x = np.concatenate([x, x[-1] + 1 + np.arange(3)])
    p, q = noise.pmf(x), noise.pmf(x - 3)
    assert worst(notion, p, q) <= 1e-10
    half = canonical_noise(notion, 1)
    x = lattice(half, 40)
    x = np.concatenate([x, x[-1] + 1 + np.arange(3)])
    assert worst(notion, half.pmf(x), half.pmf(x - 3)) > 1e-3


def worst(notion: Notion, p: np.ndarray, q: np.ndarray) -> float:
    """By how much two laws violate a notion, computed from its definition."""
    if notion.name in ("zcdp", "renyi", "kl"):
        orders = {"zcdp": [1.01, 1.5, 2, 4, 16], "renyi": [float(notion.exact[0])], "kl": [1.0]}[notion.name]
        excess = []
        for order in orders:
            seen = (p > 1e-250) & (q > 1e-250)
            ratio = np.log(p[seen]) - np.log(q[seen])
            divergence = (
                float(np.sum(p[seen] * ratio))
                if order == 1
                else float(np.log(np.sum(q[seen] * np.exp(order * ratio)))) / (order - 1)
            )
            bound = {"zcdp": order * float(notion.exact[0]), "renyi": float(notion.exact[-1])}
            excess.append(divergence - bound.get(notion.name, float(notion.exact[-1])))
        return max(excess)
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(p > 0, q / np.where(p > 0, p, 1), np.where(q > 0, np.inf, 0)))
    here, there = np.cumsum(p[order]), np.cumsum(q[order])
    return float(np.max(there - notion.h(np.clip(here, 0, 1))))


def test_what_makes_no_noise_is_refused() -> None:
    for make in (
        lambda: TruncatedTulap(Fraction(1), Fraction(0), 3),
        lambda: TruncatedTulap(Fraction(1), Fraction(1), 3),
        lambda: Uniform(0),
        lambda: Gaussian(Fraction(0), 1),
        lambda: Gaussian.for_width(Fraction(1), Fraction(1), Fraction(1)),
    ):
        with pytest.raises(InvalidInput):
            make()


STRONG = [pure(4), approx(4, 0.1), approx(0, 0.6), tv(0.6), gdp(3), zcdp(2), renyi(2, 6), kl(4)]


@pytest.mark.parametrize("around", [Neighbourhood(kind, rows) for kind in NEIGHBOURS for rows in (1, 2)], ids=str)
@pytest.mark.parametrize("notion", STRONG, ids=str)
def test_many_counts_meet_the_notion_together(notion: Notion, around: Neighbourhood) -> None:
    """A person's rows in one count, or each in a count of its own: all events of all counts at once."""
    noise = counts_noise(notion, around)
    assert adds_up_within(counts_guarantee(noise, around), notion)
    x = lattice(noise, 22)
    x = np.concatenate([x, x[-1] + 1 + np.arange(2)])
    sides = 2 if around.kind == "replace" else 1
    for moved in ([around.rows] * sides, [1] * (sides * around.rows)):
        p, q = np.ones(1), np.ones(1)
        for shift in moved:
            p, q = merged(np.multiply.outer(p, noise.pmf(x)), np.multiply.outer(q, noise.pmf(x - shift)))
        assert worst(notion, p, q) <= 1e-8
    half = counts_noise(notion, Neighbourhood(around.kind, 2 * around.rows))
    assert adds_up_within(counts_guarantee(half, around), notion)
    assert not adds_up_within(counts_guarantee(noise, Neighbourhood(around.kind, 2 * around.rows)), notion)


def merged(p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same two laws with outputs of one ratio taken together: no event tells more than the ratio."""
    p, q = p.ravel(), q.ravel()
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((p > 0) | (q > 0), np.log(q) - np.log(p), 0.0)
    key = np.where(np.isfinite(ratio), np.round(ratio, 9), np.sign(ratio) * 1e9)
    _, where = np.unique(key, return_inverse=True)
    return np.bincount(where.ravel(), weights=p), np.bincount(where.ravel(), weights=q)


@pytest.mark.parametrize("notion", NOTIONS, ids=str)
@pytest.mark.parametrize("width", [1, 6])
def test_whole_noise_is_on_the_integers_and_no_weaker(notion: Notion, width: int) -> None:
    noise = canonical_noise(notion, width, whole=True)
    assert noise.offset == 0
    assert noise.meets(notion, width)
    assert noise.variance <= canonical_noise(notion, width + 1).variance + 1


def test_the_level_says_null_exactly_where_the_noisy_total_exceeds_the_cutoff() -> None:
    noise, cutoff = Stair(Fraction(1), 4), Fraction(13, 2)
    for noisy in range(-30, 31):
        assert (noise.level(Fraction(noisy), cutoff) >= 1) == (noisy > cutoff)
        # All that it tells of a total is in which stretch of four it lies, and the noise.
        assert noise.level(Fraction(noisy + 4), cutoff) == noise.level(Fraction(noisy), cutoff) + 1
