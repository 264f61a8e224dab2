"""Goldreich's map: uniform exactly, far stays far, one record at a time."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privatest.fit.candidate_statistics import Grains, exact_probabilities
from privatest.privacy import seeded_source


def record_law(grains: Grains, symbol: int) -> list[Fraction]:
    """Law of the grain of one record, from the description of the map."""
    k = len(grains.keep)
    mixed = [Fraction(1, 2 * k) + Fraction(x == symbol) / 2 for x in range(k)]
    kept = [m * r for m, r in zip(mixed, grains.keep, strict=True)]
    owners = [*kept, 1 - sum(kept)]
    return [mass / own for mass, own in zip(owners, grains.owned, strict=True) for _ in range(own)]


laws = st.lists(st.integers(0, 50), min_size=2, max_size=8).filter(lambda x: sum(x) > 0)


@given(laws)
def test_records_from_p_become_exactly_uniform(shares: list[int]) -> None:
    p = [share / sum(shares) for share in shares]
    grains = Grains.of(p)
    exact = exact_probabilities(p)
    assert sum(exact) == 1
    assert grains.count == 4 * len(p)
    assert all(own >= 2 for own in grains.owned[:-1])
    mixture = [sum(e * law for e, law in zip(exact, column, strict=True)) for column in _columns(grains)]
    assert mixture == [Fraction(1, grains.count)] * grains.count


def _columns(grains: Grains) -> list[tuple[Fraction, ...]]:
    return list(zip(*(record_law(grains, symbol) for symbol in range(len(grains.keep))), strict=True))


@given(laws, st.integers(0, 2**32))
def test_distance_is_at_least_a_third(shares: list[int], seed: int) -> None:
    p = np.array(shares) / sum(shares)
    q = np.random.default_rng(seed).dirichlet(np.full(len(p), 0.5))
    grains = Grains.of(p)
    image = grains.image(q)
    assert image.sum() == pytest.approx(1, abs=1e-12)
    assert np.abs(image - 1 / grains.count).sum() / 2 >= np.abs(p - q).sum() / 2 / 3 - 1e-12


def test_image_is_the_law_of_the_draws_in_rationals() -> None:
    grains = Grains.of([0.2, 0.3, 0.5])
    q = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
    exact = [float(sum(e * law for e, law in zip(q, column, strict=True))) for column in _columns(grains)]
    np.testing.assert_allclose(grains.image(np.array([0.5, 0.25, 0.25])), exact, rtol=1e-12)


@pytest.mark.statistical
def test_draws_follow_the_law_and_keep_the_number_of_records() -> None:
    grains = Grains.of([0.15, 0.25, 0.6])
    counts = np.array([3000, 1000, 2000])
    drawn = grains.draw(counts, seeded_source(np.random.default_rng(3)))
    assert drawn.sum() == counts.sum()
    expected = sum(
        count * np.array([float(x) for x in record_law(grains, symbol)]) for symbol, count in enumerate(counts.tolist())
    )
    # Conservative: given the symbols, the counts vary less than multinomial ones.
    assert stats.chi2.sf(float(np.sum((drawn - expected) ** 2 / expected)), grains.count - 1) > 1e-9
    assert drawn.tolist() != grains.draw(counts, seeded_source(np.random.default_rng(4))).tolist()
