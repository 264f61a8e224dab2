"""A budget is about one kind of neighbours: what it says was spent is what was lost, whatever mixture was asked.

Every data set of four records of two persons, every neighbour of the kind that the budget protects, and requests of all
kinds in many orders: the exact losses of those that the ledger let pass add up to no more than was granted.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import privatest as pt
from privatest import engines
from privatest.charge_before_release import ANYBODY
from privatest.errors import BudgetExceeded, InvalidInput, LedgerTampered, RequestConflict
from privatest.ledger.budgets import Protection
from privatest.ledger.hash_chain import EMPTY, HashChain
from privatest.privacy import Pure

COINS = "bernoulli(0.2)", "bernoulli(0.8)"
OWNERS = ("ann", "ann", "bob", "bob")
KINDS = [Protection(neighbours, unit) for neighbours in ("replace", "add-remove") for unit in (None, "who")]
Rows = tuple[tuple[int, str], ...]


@cache
def design(kind: Protection) -> pt.results.PrivateTest:
    rows = 1 if kind.unit is None else 2
    return pt.design(*COINS, epsilon=Fraction(1, 4), n=4, neighbours=kind.neighbours, max_rows_per_unit=rows)


def table(rows: Rows) -> pd.DataFrame:
    return pd.DataFrame({"x": [bit for bit, _ in rows], "who": [who for _, who in rows]})


def neighbours(kind: Protection) -> Iterator[tuple[Rows, Rows]]:
    """All data sets of four records, and all of their neighbours of a kind; a replaced record may change hands."""
    for bits in itertools.product((0, 1), repeat=4):
        data = tuple(zip(bits, OWNERS, strict=True))
        for place in range(4) if kind.unit is None else ("ann", "bob"):
            own = [i for i in range(4) if place in (i, OWNERS[i])]
            if kind.neighbours == "add-remove":
                yield data, tuple(row for i, row in enumerate(data) if i not in own)
                continue
            names = ("ann", "bob") if kind.unit is None else (OWNERS[own[0]],)
            for other, name in itertools.product(itertools.product((0, 1), repeat=len(own)), names):
                changed = dict(zip(own, other, strict=True))
                yield data, tuple((changed[i], name) if i in own else row for i, row in enumerate(data))


@cache
def moved(asked: Protection, rows: Rows) -> int:
    """The exact number that gets the noise."""
    test = design(asked)
    words = {} if asked.unit is None else {"unit": asked.unit, "max_rows_per_unit": 2}
    records = engines.open_source(table(rows), column="x", **words)
    return test.scale * records.total(test.score) - test.shift * records.count()


@cache
def loss(asked: Protection, budget: Protection) -> Fraction | float:
    """The largest privacy loss of one request over the neighbours that a budget protects.

    A request whose number of records is public refuses all others: it tells data sets of two sizes apart.
    """
    if asked.neighbours == "replace" and any(len(one) != len(other) for one, other in neighbours(budget)):
        return math.inf
    noise = design(asked).noise
    steps = {abs(moved(asked, one) - moved(asked, other)) for one, other in neighbours(budget)}
    return max(noise.exact_loss(step) or Fraction(0) for step in steps if step)


def spend(ledger: pt.Ledger, requests: tuple[Protection, ...]) -> tuple[Protection, ...]:
    """The requests that the ledger let pass."""
    passed = []
    rows = table(tuple(zip((0, 1, 0, 1), OWNERS, strict=True)))
    for number, kind in enumerate(requests):
        words = {} if kind.unit is None else {"unit": kind.unit}
        try:
            design(kind).run(rows, column="x", **words, ledger=ledger, dataset="d", request=f"r{number}")
            passed.append(kind)
        except (BudgetExceeded, InvalidInput):
            assert ledger.history("d")[-1].request != f"r{number}", "nothing was charged"
    return tuple(passed)


ORDERS = [KINDS, KINDS[::-1], [*KINDS[1:], *KINDS], KINDS[2:3] * 3, KINDS[3:] * 3, [*KINDS[2:], *KINDS[2:], *KINDS]]


def overspent(budget: Protection, folder: Path) -> Iterator[str]:
    """The mixtures that lose more than the ledger says, or than was granted."""
    for number, order in enumerate(ORDERS):
        ledger = pt.Ledger(folder / f"{budget.neighbours} {budget.unit} {number}.db")
        ledger.grant("d", epsilon=1, neighbours=budget.neighbours, unit=budget.unit)
        passed = spend(ledger, tuple(order) * 2)
        true = sum((loss(kind, budget) for kind in passed), Fraction(0))
        if not true <= ledger.spent("d") <= 1:
            yield f"{budget}: {', '.join(map(str, passed))} lose {true}, said to be {ledger.spent('d')}"
        ledger.verify()


@pytest.mark.parametrize("budget", KINDS, ids=str)
def test_what_was_let_pass_loses_no_more_than_was_granted(budget: Protection, tmp_path: Path) -> None:
    assert list(overspent(budget, tmp_path)) == []


def test_a_ledger_that_adds_all_epsilons_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it did: one epsilon of either kind for the other's, rows for persons, persons for rows."""
    monkeypatch.setattr(Protection, "converted", lambda _self, price, _asked: price)
    assert all(next(overspent(budget, tmp_path), None) for budget in KINDS)


def test_one_budget_does_not_pay_for_a_half_of_each(tmp_path: Path) -> None:
    """The hole: 0.5 for "replace" and 0.5 for "add-remove" of a budget of 1 cost 1.5 for a replaced record."""
    ledger = pt.Ledger(tmp_path / "ledger.db")
    ledger.grant("d", epsilon=1)
    made = [pt.design(*COINS, epsilon=0.5, n=20, neighbours=kind) for kind in ("replace", "add-remove")]
    made[0].run([0] * 20, ledger=ledger, dataset="d", request="1")
    with pytest.raises(BudgetExceeded, match=r"0\.5 asked for adding or removing .* epsilon=1\.0\), 0\.5 left of 1\.0"):
        made[1].run([0] * 20, ledger=ledger, dataset="d", request="2")
    assert ledger.spent("d") == Fraction(1, 2)
    ledger.grant("d", epsilon=2)
    release = made[1].run([0] * 20, ledger=ledger, dataset="d", request="2")
    assert ledger.spent("d") == Fraction(3, 2)
    assert release.receipt is not None
    assert release.receipt.converted == (
        "pure(0.5) for adding or removing one record counts as pure(1) for replacing one record"
    )


def test_what_follows_from_what() -> None:
    """Exhaustively: the same, and add-remove counted twice for replace; nothing else."""
    kinds = [Protection(one, unit) for one in ("replace", "add-remove") for unit in (None, "who", "whom", ANYBODY)]
    for budget, asked in itertools.product([kind for kind in kinds if kind.unit != ANYBODY], kinds):
        same_unit = asked.unit == budget.unit or (asked.unit == ANYBODY and budget.unit is not None)
        expected = {
            ("replace", "replace"): Pure(1),
            ("add-remove", "add-remove"): Pure(1),
            ("replace", "add-remove"): Pure(2),
        }.get((budget.neighbours, asked.neighbours))
        assert budget.converted(Pure(1), asked) == (expected if same_unit else None)


REFUSED: list[tuple[dict[str, str], dict[str, str], str]] = [
    ({"neighbours": "add-remove"}, {}, r"Ask with neighbours='add-remove', or .*neighbours='replace', unit=''"),
    ({"unit": "who"}, {}, r"one person \(unit 'who'\).* Ask with unit='who', or"),
    ({}, {"unit": "who"}, r"Ask without unit, or .*unit='who'"),
    ({}, {"unit": "*"}, r"Ask without unit, or .*unit=\.\.\."),
    ({"unit": "who"}, {"unit": "whom"}, "Ask with unit='who'"),
    ({"unit": "who", "neighbours": "add-remove"}, {}, "Ask with neighbours='add-remove' and with unit='who'"),
]


@pytest.mark.parametrize(("granted", "asked", "said"), REFUSED)
def test_what_does_not_follow_is_refused_with_the_remedy(
    granted: dict[str, str], asked: dict[str, str], said: str, tmp_path: Path
) -> None:
    ledger = pt.Ledger(tmp_path / "ledger.db")
    ledger.grant("d", epsilon=1, **granted)
    words: dict[str, Any] = {"dataset": "d", "request": "r", "epsilon": 0.1, "design": "d"}
    with pytest.raises(InvalidInput, match=rf"cannot be charged to data set 'd'.*{said}"):
        ledger.perform(**words, **asked, draw=lambda: pytest.fail("the data were read"))
    assert ledger.verify() == 1


def perform(ledger: pt.Ledger, name: str, **words: Any) -> Any:
    return ledger.perform(dataset="d", request=name, epsilon=0.25, design="d", draw=dict, **words)


ASKED: dict[str, Any] = {"epsilon": 1, "design": "x", "neighbours": "replace", "unit": "who"}
OTHERWISE: dict[str, dict[str, Any]] = {
    "price": {"epsilon": 2},
    "notion": {"epsilon": None, "privacy": "zcdp(0.5)"},
    "design": {"design": "y"},
    "neighbours": {"neighbours": "add-remove"},
    "no unit": {"unit": None},
    "another unit": {"unit": "household"},
    "any unit": {"unit": ANYBODY},
}


@pytest.mark.parametrize("changed", OTHERWISE)
def test_the_release_for_one_request_answers_no_other(changed: str, tmp_path: Path) -> None:
    """Whatever is changed, one at a time: a price for these neighbours says nothing of a promise to those."""
    ledger = pt.Ledger(tmp_path / "ledger.db")
    ledger.grant("d", epsilon=10, unit="who")
    named: dict[str, Any] = {"dataset": "d", "request": "r"}
    assert ledger.perform(**named, **ASKED, draw=lambda: {"answer": 1}) == {"answer": 1}
    assert ledger.released(**named, **ASKED) == {"answer": 1}
    other = {**named, **ASKED, **OTHERWISE[changed]}
    with pytest.raises(RequestConflict):
        ledger.released(**other)
    with pytest.raises(RequestConflict):
        ledger.perform(**other, draw=lambda: {"answer": 2})
    assert ledger.spent("d") == 1


def test_a_grant_stays_what_it_is_until_it_is_said_otherwise(tmp_path: Path) -> None:
    ledger = pt.Ledger(tmp_path / "ledger.db")
    ledger.grant("d", epsilon=1)
    assert ledger.protects("d") == Protection()
    ledger.grant("d", epsilon=1, neighbours="add-remove", unit="who")
    ledger.grant("d", epsilon=2)
    ledger.grant("d", epsilon=2, neighbours="add-remove", unit="who")
    assert ledger.protects("d") == Protection("add-remove", "who")
    assert ledger.history("d")[1].about == {"neighbours": "add-remove", "unit": "who"}
    assert ledger.verify() == 3, "to say the same again changes nothing"
    ledger.grant("d", epsilon=2, unit="")
    assert ledger.protects("d") == Protection("add-remove")
    perform(ledger, "a", neighbours="add-remove")
    assert ledger.spent("d") == Fraction(1, 4)
    ledger.grant("d", epsilon=2, neighbours="replace")  # what was spent counts twice there
    assert ledger.spent("d") == Fraction(1, 2)
    perform(ledger, "b")
    assert ledger.spent("d") == Fraction(3, 4)
    with pytest.raises(InvalidInput, match=r"for adding or removing one record cannot be granted .* for replacing"):
        ledger.grant("d", epsilon=2, neighbours="add-remove")
    with pytest.raises(InvalidInput, match=r"epsilon=0\.7 is less than the 0\.75 already spent"):
        ledger.grant("d", epsilon=0.7)
    assert ledger.verify() == 9


def test_streams_of_persons_and_opened_records_need_a_budget_for_persons(tmp_path: Path) -> None:
    ledger = pt.Ledger(tmp_path / "ledger.db")
    ledger.grant("d", epsilon=9)
    ledger.grant("persons", epsilon=9, unit="who")
    rows = table(tuple(zip((0, 1, 0, 1), OWNERS, strict=True)))
    opened = engines.open_source(rows, column="x", unit="who", max_rows_per_unit=2)
    asks: list[Callable[..., Any]] = [
        lambda **paid: pt.Monitor(*COINS, epsilon=1, max_rows_per_unit=2, **paid),
        lambda **paid: pt.Sequential(*COINS, epsilon=1, max_rows_per_unit=2, **paid),
        lambda **paid: design(KINDS[1]).run(opened, **paid),
    ]
    for number, ask in enumerate(asks):
        with pytest.raises(InvalidInput, match=r"one person cannot be charged to data set 'd'"):
            ask(ledger=ledger, dataset="d", request=f"r{number}")
        ask(ledger=ledger, dataset="persons", request=f"r{number}")
    with pytest.raises(InvalidInput, match="Ask with unit='who'"):
        pt.Monitor(*COINS, epsilon=1, ledger=ledger, dataset="persons", request="rows")
    assert (ledger.spent("d"), ledger.spent("persons")) == (0, Fraction(9, 4))


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({1: {"neighbours": "add-remove"}}, "is a charge that does not convert into the budget"),
        ({2: {"neighbours": "add-remove", "draw": 1}}, "does not add its epsilon to the running total"),
        ({1: {"neighbours": "remove"}}, "is a grant for neighbours that nobody knows"),
        ({1: {"unit": 7}}, "is a grant for neighbours that nobody knows"),
        ({2: {"unit": 7, "draw": 1}}, "is a charge for neighbours that nobody knows"),
        ({2: {"unit": "who", "draw": 1}}, "is a charge that does not convert into the budget"),
    ],
)
def test_a_forger_who_recomputes_the_hashes_is_found(edit: dict[int, Any], said: str, tmp_path: Path) -> None:
    ledger = pt.Ledger(tmp_path / "ledger.db")
    ledger.grant("d", epsilon=1)
    perform(ledger, "a")
    chain = HashChain("forged")
    with ledger._store.read() as book:
        rows = book.rows(None, 10)
    previous = EMPTY.hash

    def read() -> None:
        nonlocal previous
        for row in rows:
            text = json.dumps(edit[row.sequence]) if row.sequence in edit else row.release
            forged = row._replace(release=text, previous=previous).sealed()
            previous = forged.hash
            chain.extend(forged)

    with pytest.raises(LedgerTampered, match=said):
        read()
