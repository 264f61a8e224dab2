"""What adds up, exactly; what does not convert is said to."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from privatest.privacy import Approx, Gdp, Kl, Notion, Pure, Renyi, Tv, Zcdp, canonical_noise
from privatest.privacy.composition import adds_up_within, composed_epsilon, of_weight, together, weight
from privatest.privacy.notion import converted, replaced
from tests.contracts.noise_laws import excess, spent
from tests.privacy.test_canonical import lattice, worst

KINDS: list[Notion] = [Pure(0.3), Zcdp(0.3), Gdp(0.3), Renyi(3, 0.3), Tv(0.3), Kl(0.3)]


@pytest.mark.parametrize("notion", KINDS, ids=str)
def test_a_weight_says_all_of_its_kind(notion: Notion) -> None:
    assert of_weight(notion, weight(notion)) == notion
    assert of_weight(notion, weight(notion), up=False) == notion


@pytest.mark.parametrize("notion", [*KINDS, Approx(1, 1e-6)], ids=str)
def test_a_pure_answer_besides_costs_what_it_converts_to(notion: Notion) -> None:
    both = together(notion, Fraction(1, 10))
    assert isinstance(both, Notion)
    assert type(both) is type(notion)
    assert notion.implies(both)
    assert not both.implies(notion)
    assert together(notion, 0) == notion


def test_what_follows_and_what_does_not() -> None:
    assert converted(Pure(1), Zcdp(9)) == Zcdp(0.5)
    assert converted(Gdp(1), Zcdp(9)) == Zcdp(0.5)
    assert converted(Renyi(4, 0.5), Renyi(2, 9)) == Renyi(2, 0.5)
    assert converted(Renyi(2, 0.5), Renyi(4, 9)) is None
    assert converted(Zcdp(0.5), Gdp(1)) is None
    assert converted(Approx(1, 1e-6), Zcdp(1)) is None


WHOLES: list[Notion] = [*KINDS, Approx(1, 0.01)]
each_whole = pytest.mark.parametrize("whole", WHOLES, ids=str)


@each_whole
@pytest.mark.parametrize("parts", [(Fraction(1),), (Fraction(1, 50), Fraction(49, 50)), (Fraction(1, 7),) * 7])
def test_shares_add_up_to_the_whole(whole: Notion, parts: tuple[Fraction, ...]) -> None:
    split = [whole.split(part) for part in parts]
    assert adds_up_within(split, whole)
    assert all(type(part) is type(whole) and part.implies(whole) for part in split)
    if len(set(parts)) == 1:
        assert split[0] == whole.share(len(parts))


@each_whole
def test_a_little_more_than_the_shares_does_not(whole: Notion) -> None:
    shares = [whole.share(3)] * 3
    assert not adds_up_within([*shares, whole.split(Fraction(1, 10**12))], whole)
    for place in range(len(whole.exact)):  # one number alone is too large
        if len(whole.exact) == 1 or isinstance(whole, Approx):
            exact = [*shares[0].exact]
            exact[place] *= Fraction(10**9 + 1, 10**9)
            assert not adds_up_within([*shares[1:], type(whole)(*exact)], whole)
    assert not adds_up_within([shares[0], None], whole)


@each_whole
def test_shares_hold_of_exact_laws(whole: Notion) -> None:
    """Two noisy totals, both moved: all sets of pairs of outputs meet the whole; of the whole each they do not."""

    def excess(each: Notion) -> float:
        noise = canonical_noise(each, 1)
        x = lattice(noise, 25)
        x = np.append(x, x[-1] + 1)
        p, q = noise.pmf(x), noise.pmf(x - 1)
        return worst(whole, np.multiply.outer(p, p).ravel(), np.multiply.outer(q, q).ravel())

    assert excess(whole.share(2)) <= 1e-9
    assert excess(whole) > 1e-3


@pytest.mark.parametrize("notion", [Pure(0.4), Gdp(0.4), Zcdp(0.08), Approx(0.4, 0.01), Tv(0.2)], ids=str)
def test_a_record_replaced_is_one_removed_and_one_added(notion: Notion) -> None:
    """The noise that hides one record of width 1 hides two such steps as is said, and no better: by the noise's law."""
    noise, found = canonical_noise(notion, 1), replaced(notion)
    assert found is not None
    assert -0.02 < excess(found, [spent(found, noise.to_dict(), 2)]) < 1e-6
    assert excess(notion, [spent(notion, noise.to_dict(), 1)]) == pytest.approx(0, abs=1e-3)
    assert replaced(Tv(0.6)) is None
    assert replaced(Renyi(2, 0.1)) is None


@pytest.mark.parametrize(
    "part", [Tv(Fraction(1, 10)), Approx(0, Fraction(1, 10)), Approx(Fraction(1, 2), Fraction(1, 10))]
)
def test_every_answer_costs_its_delta(part: Notion) -> None:
    """Three deltas of a tenth are within three tenths, and within a tenth not at all."""
    assert composed_epsilon({part: 3}, Fraction(3, 10)) < math.inf
    assert composed_epsilon({part: 3}, Fraction(1, 10)) == math.inf
