"""Budgets in every notion: what they take, what they refuse, and that nobody can forge them."""

from __future__ import annotations

import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from privatest.errors import BudgetExceeded, InvalidInput, LedgerTampered
from privatest.ledger import Ledger
from privatest.ledger import budgets as account_module
from privatest.ledger.budgets import account_of, fraction_text, price_of, price_text, read_fraction
from privatest.ledger.hash_chain import LedgerRow
from privatest.privacy import Approx, Gdp, Kl, Notion, Pure, Renyi, Tv, Zcdp
from privatest.privacy.composition import weight

ASK: dict[str, Any] = {"design": "sha256:5f2d", "draw": lambda: {"decision": "null"}}
BUDGETS: list[Notion] = [Pure(1), Zcdp(0.5), Gdp(1), Renyi(3, 1), Tv(0.5), Kl(1), Approx(1, 1e-6)]


def ask(ledger: Ledger, name: str, privacy: Any) -> Any:
    return ledger.perform(dataset="claims", request=name, privacy=privacy, **ASK)


@pytest.mark.parametrize("notion", [*BUDGETS, Pure(Fraction(1, 3)), Zcdp(Fraction(1, 3))], ids=str)
def test_a_price_has_one_text(notion: Notion) -> None:
    assert price_of(price_text(notion)) == notion
    assert read_fraction(fraction_text(Fraction(1, 3))) == Fraction(1, 3)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_a_budget_is_never_overspent_and_all_is_kept_in_its_own_notion(budget: Notion, path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.grant("claims", privacy=budget)
        assert ledger.spent("claims") == 0
        for number in range(3):
            ask(ledger, f"q{number}", "pure(0.1)")
        assert [entry.epsilon for entry in ledger.history() if entry.kind == "charge"] == [Fraction(1, 10)] * 3
        before = ledger.fingerprint()
        with pytest.raises(BudgetExceeded, match=r"asked, .* left of") as caught:
            ask(ledger, "q9", "pure(4)")
        assert ledger.fingerprint() == before
        assert caught.value.left == ledger.left("claims")
        assert ledger.verify() == 7
        again = ledger.perform(dataset="claims", request="q1", epsilon=0.1, **ASK)
        assert again.receipt is not None
        assert again.receipt.replayed


def test_zcdp_is_filled_to_the_last_rational(path: Path) -> None:
    """0.1 is rho = 1/200: a hundred fit into 1/2 exactly, and not one more, however small."""
    account = account_of(Zcdp(0.5))
    full = account.after(account.nothing, Pure(0.1), 100)
    assert account.fits(full)
    assert not account.fits(account.after(full, Pure(Fraction(1, 10**40))))
    gaussian = account_of(Gdp(1))
    assert gaussian.fits(gaussian.after("0/1", Gdp(0.1), 100))
    assert not gaussian.fits(gaussian.after("0/1", Gdp(0.1), 101))
    with Ledger(path) as ledger:
        ledger.grant("claims", privacy="zcdp(0.005)")
        ask(ledger, "q", 0.1)
        assert ledger.left("claims") == 0


@pytest.mark.parametrize(
    ("budget", "price"),
    [
        ("pure(1)", "zcdp(0.1)"),
        ("pure(1)", "gdp(0.1)"),
        ("zcdp(1)", "approx(0.1, 1e-9)"),
        ("gdp(1)", "zcdp(0.1)"),
        ("renyi(3, 1)", "renyi(2, 0.1)"),
        ("approx(1, 1e-6)", "tv(0.1)"),
        ("approx(1, 1e-6)", "approx(0.1, 1e-5)"),
    ],
)
def test_what_does_not_convert_is_refused_before_anything_is_computed(budget: str, price: str, path: Path) -> None:
    def never() -> dict[str, Any]:
        raise AssertionError("computed")

    with Ledger(path) as ledger:
        ledger.grant("claims", privacy=budget)
        before = ledger.fingerprint()
        with pytest.raises(InvalidInput, match=r"does not convert into the budget .* spent, .* left"):
            ledger.perform(dataset="claims", request="q", privacy=price, design="d", draw=never)
        assert ledger.fingerprint() == before


def test_a_budget_may_move_into_a_notion_that_all_of_it_converts_into(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.grant("claims", epsilon=1)
        for number in range(4):
            ask(ledger, f"q{number}", 0.2)
        ledger.grant("claims", privacy="zcdp(0.5)")
        assert ledger.spent("claims") == Zcdp(0.08)
        ask(ledger, "q9", "zcdp(0.1)")
        with pytest.raises(InvalidInput, match="does not convert into it"):
            ledger.grant("claims", epsilon=100)
        with pytest.raises(InvalidInput, match="already spent"):
            ledger.grant("claims", privacy="zcdp(0.1)")
        ledger.verify()


def forged(path: Path, number: int, **columns: str) -> None:
    """Change a row, and make every later hash and the head fit."""
    with sqlite3.connect(path) as database:
        rows = [
            LedgerRow(*found) for found in database.execute("SELECT * FROM privatest_ledger_rows ORDER BY sequence")
        ]
        previous = "0" * 64
        for row in rows:
            row = row._replace(previous=previous, **(columns if row.sequence == number else {})).sealed()
            previous = row.hash
            words = "epsilon = ?, granted = ?, spent = ?, previous = ?, hash = ?"
            values = (row.epsilon, row.granted, row.spent, row.previous, row.hash, row.sequence)
            database.execute(f"UPDATE privatest_ledger_rows SET {words} WHERE sequence = ?", values)
        database.execute("UPDATE privatest_ledger_head SET hash = ?", (previous,))
    database.close()


@pytest.mark.parametrize("budget", ["zcdp(0.5)", "gdp(1)", "approx(1, 1e-6)"])
def test_forgers_who_recompute_hashes_still_cannot_change_sums(budget: str, path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.grant("claims", privacy=budget)
        ask(ledger, "q", "gdp(0.1)")
        total = ledger.history()[1].total
    forged(path, 2)  # the forger's tools work: nothing changed, nothing found
    Ledger(path).verify()
    for number, columns in [
        (2, {"epsilon": "gdp(0.01)"}),
        (2, {"spent": account_of(Zcdp(1)).nothing if total != "{}" else "1/10"}),
        (2, {"granted": "gdp(9)"}),
        (1, {"granted": "zcdp(9)"}),
        (2, {"epsilon": "gdp(0.10)"}),
        (2, {"spent": total + " "}),
    ]:
        copy = path.with_suffix(".copy")
        shutil.copy(path, copy)
        forged(copy, number, **columns)
        with pytest.raises(LedgerTampered):
            Ledger(copy).verify()


def test_an_overspent_budget_in_epsilon_and_delta_is_found(path: Path) -> None:
    """Its rows are consistent but for what they come to."""
    with Ledger(path) as ledger:
        ledger.grant("claims", privacy="approx(9, 1e-6)")
        ask(ledger, "q", "pure(2)")
    for number in (1, 2, 3):
        forged(path, number, granted="approx(1, 1e-06)", **({"epsilon": "approx(1, 1e-06)"} if number == 1 else {}))
    with pytest.raises(LedgerTampered, match="more spent than was granted"):
        Ledger(path).verify()


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_all_that_is_said_to_be_left_can_be_spent_and_nothing_more(budget: Notion) -> None:
    """What is left is rounded down, what is spent up: all that is left always fits, a trace more never."""
    account = account_of(budget)
    for share in (Fraction(1, 3), Fraction(2, 7), Fraction(1, 10**6)):
        spent = account.after(account.nothing, budget.split(share) if not isinstance(budget, Approx) else Pure(share))
        left = account.left(spent)
        assert left is not None
        assert account.fits(account.after(spent, left))
        more = left.exact[-1] * (1 + Fraction(1, 10**5))
        assert not account.fits(account.after(spent, type(left)(*left.exact[:-1], more)))
        total = account.total(spent)
        assert total is not None
        if not isinstance(budget, Approx):
            assert weight(total) >= read_fraction(spent)  # type: ignore[operator]
            assert weight(total) + weight(left) == pytest.approx(weight(budget), rel=1e-12)


@pytest.mark.parametrize("value", [1 / 3, 0.1234567894, 0.1234567896, 2.0, 1e-9, 123456.78949])
def test_a_short_number_lies_on_the_safe_side(value: float) -> None:
    up = account_module._short(value, up=True)
    assert Fraction(value) <= up <= Fraction(value) * (1 + Fraction(1, 10**7))
    near = account_module._short(value, up=False)
    assert abs(near - Fraction(value)) <= Fraction(value) / 10**8
    assert near <= up
