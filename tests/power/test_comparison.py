"""Budgets that convert into one another: each row follows or is enough, tightly, and its records are in order."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest

import privatest as pt
from privatest.errors import InvalidInput
from privatest.power import comparison
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
    assert found.asked.privacy == asked.text
    for row in found:
        notion = as_notion(row.privacy)
        assert row.optimum == row.lower_bound  # two points
        if row.relation == WEAKER:
            assert asked.implies(notion)
            assert row.lower_bound <= found.asked.lower_bound
        elif row.relation == STRONGER:
            assert notion.implies(asked)
            assert not more(notion).implies(asked)
            assert row.lower_bound >= found.asked.lower_bound
        else:
            assert row.relation == ASKED


def test_the_table_of_one_epsilon() -> None:
    found = compare_notions(*COINS, epsilon=1)
    sizes = {row.privacy.split("(")[0]: row.lower_bound for row in found}
    assert sizes == {"pure": 29, "gdp": 26, "zcdp": 26, "approx": 29, "renyi": 26, "kl": 25, "tv": 24}
    assert str(found).splitlines()[1].split() == ["privacy", "best", "at", "least", "/", "asked"]
    assert json.loads(json.dumps(found.to_dict()))["rows"][0]["relation"] == "as asked"


def test_other_domains_have_bounds_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "records_bound", lambda *_: 40)
    for pair in (("normal(0, 1)", "normal(2, 1)"), ("poisson(3)", "poisson(4)"), ([0.1] * 10, [0.05, 0.15] * 5)):
        found = compare_notions(*pair, privacy="tv(0.3)", alpha=0.1, beta=0.2)
        assert [row.lower_bound for row in found] == [40] * len(found.rows)
        assert [row.optimum is None for row in found] == [isinstance(pair[0], str)] * len(found.rows)


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


def test_losses_that_hide_nothing() -> None:
    """Comparisons of tests go on to where doubles end, those of notions are refused by name."""
    found = {row.test: row.n for row in pt.compare(*COINS, epsilon=1000).rows}
    assert found["tight"] == found["LLR"]
    with pytest.raises(InvalidInput, match="epsilon=1000 is more than 500"):
        compare_notions(*COINS, epsilon=1000)
    with pytest.raises(InvalidInput, match=r"epsilon=10000000\.0 must lie between 1e-09 and 1e\+06"):
        pt.design(*COINS, epsilon=1e7, n=10)
