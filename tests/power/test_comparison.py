"""Budgets that convert into one another: each row follows or is enough, tightly, and its records are in order."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest

from privatest.errors import InvalidInput
from privatest.power.comparison import ASKED, STRONGER, WEAKER, compare_notions
from privatest.privacy import Notion, as_notion

COINS = "bernoulli(0.4)", "bernoulli(0.6)"


def more(notion: Notion) -> Notion:
    """The same with one percent more."""
    place = 1 if notion.name == "renyi" else 0
    values = [value * Fraction(101, 100) if i == place else value for i, value in enumerate(notion.exact)]
    return type(notion)(*values)


@pytest.mark.parametrize("privacy", ["gdp(1)", "approx(0.5, 0.05)"])
def test_every_row_follows_or_is_enough(privacy: str) -> None:
    asked = as_notion(privacy)
    found = compare_notions(*COINS, privacy=privacy)
    assert found.requested.privacy == asked.text
    for row in found:
        notion = as_notion(row.privacy)
        assert row.optimum == row.lower_bound  # two points
        if row.relation == WEAKER:
            assert asked.implies(notion)
            assert row.lower_bound <= found.requested.lower_bound
        elif row.relation == STRONGER:
            assert notion.implies(asked)
            assert not more(notion).implies(asked)
            assert row.lower_bound >= found.requested.lower_bound
        else:
            assert row.relation == ASKED


def test_the_table_of_one_epsilon() -> None:
    found = compare_notions(*COINS, epsilon=1)
    sizes = {row.privacy.split("(")[0]: row.lower_bound for row in found}
    assert sizes == {"pure": 29, "gdp": 26, "zcdp": 26, "approx": 29, "renyi": 26, "kl": 25, "tv": 24}
    assert str(found).splitlines()[1].split() == ["privacy", "best", "at", "least", "/", "asked"]
    assert json.loads(json.dumps(found.to_dict()))["rows"][0]["relation"] == "as asked"


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="both given"):
        compare_notions(*COINS, epsilon=1, privacy="gdp(1)")
    with pytest.raises(InvalidInput, match="delta"):
        compare_notions(*COINS, epsilon=1, delta=2)
    with pytest.raises(InvalidInput, match="order"):
        compare_notions(*COINS, epsilon=1, order=1)
    for odd in (None, "small", math.nan, [1e-6]):
        with pytest.raises(InvalidInput, match=r"^delta="):
            compare_notions(*COINS, epsilon=1, delta=odd)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match=r"^order="):
            compare_notions(*COINS, epsilon=1, order=odd)  # type: ignore[arg-type]
