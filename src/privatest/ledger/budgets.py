"""Budgets: what is spent and left of a data set's budget after its charges, in the notion in which it is granted.

The ledger's rows hold amounts as text, one text for each amount: an epsilon as the fraction ``p/q``, every other notion
as its own text. What is spent of a budget is a fraction if one number adds up (epsilon, rho, mu squared, ...). For a
budget in (epsilon, delta) it is the number of charges in each notion, and the composition is computed from them when it
is needed. ``privacy/composition.py`` says how charges of several notions compose.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from privatest.charge_before_release import ANYBODY
from privatest.errors import InvalidInput
from privatest.privacy.composition import of_weight, weight
from privatest.privacy.notion import (
    NEIGHBOURS,
    Approx,
    Gdp,
    Notion,
    Pure,
    Renyi,
    Tv,
    Zcdp,
    as_notion,
    converted,
    replaced,
)

Amount = Fraction | Notion
"""An amount as users see it: an epsilon as a number, any other notion as itself, 0 for nothing."""

MOST_BITS = 3300
"""The most bits of a numerator or denominator. They are at most 994 digits: far fewer than the 4,300 at which Python
refuses to write an integer, and enough for every float (the smallest, 5e-324, has 324 digits)."""
FLOATING = Fraction(1, 10**10)
"""Relative difference between machines that is allowed in conversions that are not rational. They are rounded up by
more than that."""


class Inconvertible(Exception):
    """Raised for a price from which no guarantee in the budget's notion follows."""


def fraction_text(amount: Fraction) -> str:
    """Return the text of an amount, one text for each number.

    Guarantees: ``read_fraction(fraction_text(x)) == x``.

    >>> fraction_text(Fraction(1, 10)), fraction_text(Fraction(3))
    ('1/10', '3/1')
    """
    if max(amount.numerator.bit_length(), amount.denominator.bit_length()) > MOST_BITS:
        raise InvalidInput(
            "The exact sum of the epsilons needs more than 990 digits. "
            "Use epsilons of few decimal digits, such as 0.05."
        )
    return f"{amount.numerator}/{amount.denominator}"


@lru_cache(maxsize=4096)
def read_fraction(text: object) -> Fraction | None:
    """Return the amount that :func:`fraction_text` wrote; None for any other text."""
    try:
        numerator, _, denominator = text.partition("/")  # type: ignore[attr-defined]  # whatever a forger put there
        result = Fraction(int(numerator), int(denominator))
        return result if type(text) is str and fraction_text(result) == text else None
    except (InvalidInput, AttributeError, TypeError, ValueError, ZeroDivisionError):
        return None


def price_text(price: Notion) -> str:
    """Return the text of a price or budget: the fraction of an epsilon, otherwise the notion's own text."""
    for part in price.exact:
        fraction_text(part)
    return fraction_text(price.loss) if isinstance(price, Pure) else price.text


@lru_cache(maxsize=4096)
def price_of(text: object) -> Notion | None:
    """Return the price that :func:`price_text` wrote; None for any other text."""
    epsilon = read_fraction(text)
    if epsilon is not None:
        return Pure(epsilon) if epsilon > 0 else None
    try:
        result = as_notion(text)
        return result if not isinstance(result, Pure) and result.text == text else None
    except InvalidInput:
        return None


def amount(notion: Notion | None) -> Amount:
    """Return an amount as users see it: the number of a pure notion, 0 for None, otherwise the notion."""
    if notion is None:
        return Fraction(0)
    return Fraction(notion.loss) if isinstance(notion, Pure) else notion


@dataclass(frozen=True)
class Protection:
    """What a budget or a request protects: which data sets are neighbours.

    Losses add up only if they are about the same neighbours. A price for adding or removing one record, or person, is
    also a price for replacing it, which is both: at twice the epsilon, or what group privacy gives for another notion.
    Nothing else follows: "replace" says nothing about "add-remove", whose data sets have other sizes; single records
    say nothing about persons, who may have many; and persons say nothing about single records, because a record that
    changes its owner concerns two persons.

    Attributes:
        neighbours: "replace" or "add-remove".
        unit: the column that names the person whose records are protected together; None: single records.
    """

    neighbours: str = "replace"
    unit: str | None = None

    def __str__(self) -> str:
        what = "one record" if self.unit is None else "all records of one person"
        named = "" if self.unit in (None, ANYBODY) else f" (unit {self.unit!r})"
        return f"{'replacing' if self.neighbours == 'replace' else 'adding or removing'} {what}{named}"

    def after(self, about: Mapping[str, Any]) -> Protection | None:
        """Return this protection with a row's changes; None if the row cannot be read."""
        neighbours, unit = about.get("neighbours", self.neighbours), about.get("unit", self.unit or "")
        fits = neighbours in NEIGHBOURS and isinstance(unit, str)
        return Protection(neighbours, unit or None) if fits else None

    def differences(self, before: Protection) -> dict[str, str]:
        """Return what :meth:`after` reads: the fields that differ from ``before``."""
        result = {"neighbours": self.neighbours, "unit": self.unit or ""}
        return {name: value for name, value in result.items() if value != (getattr(before, name) or "")}

    def converted(self, price: Notion, requested: Protection) -> Notion | None:
        """Return what a price for another protection counts as in a budget for this one; None if nothing follows.

        >>> replacing, coming_and_going = Protection(), Protection("add-remove")
        >>> replacing.converted(Pure(0.5), coming_and_going), coming_and_going.converted(Pure(0.5), replacing)
        (pure(1), None)
        """
        if requested.unit != self.unit and not (requested.unit == ANYBODY and self.unit is not None):
            return None
        if requested.neighbours == self.neighbours:
            return price
        return replaced(price) if self.neighbours == "replace" else None


def conversion_loss(price: Notion, budget: Notion) -> str | None:
    """Return a sentence about what is lost if a price is converted into the budget's notion; None if nothing is.

    >>> conversion_loss(Pure(1), Zcdp(2))
    'pure(1) counts as zcdp(0.5), which says less'
    """
    exact = isinstance(budget, Approx) and price.tradeoff  # composed by its own privacy-loss distribution
    if exact or (type(price) is type(budget) and not isinstance(price, Renyi)):
        return None
    result = converted(price, budget)
    return None if result is None or result == price else f"{price} counts as {result}, which says less"


def account_of(budget: Notion) -> Account:
    """Return the account of a budget, which depends on its notion."""
    return ComposedAccount(budget) if isinstance(budget, Approx) else SummedAccount(budget)


class Account(ABC):
    """One budget. Spent amounts are texts, whose format the module's docstring defines.

    Guarantees: ``fits`` is never true if more is spent than was granted, whatever is rounded.
    """

    nothing: str

    def __init__(self, budget: Notion) -> None:
        self.budget = budget

    @abstractmethod
    def after(self, spent: str, price: Notion, times: int = 1) -> str:
        """Return what is spent after ``times`` more charges of one price. Raises Inconvertible."""

    @abstractmethod
    def reads(self, spent: object) -> bool:
        """Whether a text is what some charges come to, in its one spelling."""

    @abstractmethod
    def equal(self, spent: str, expected: str) -> bool:
        """Whether two sums are equal, up to differences between machines."""

    @abstractmethod
    def fits(self, spent: str) -> bool:
        """Whether the budget is at least what is spent."""

    @abstractmethod
    def total(self, spent: str) -> Notion | None:
        """Return what is spent in the budget's notion, rounded up; None for nothing."""

    @abstractmethod
    def left(self, spent: str) -> Notion | None:
        """Return what is left of the budget, rounded down; None for nothing."""

    @abstractmethod
    def added_up(self, prices: Mapping[Notion, int]) -> Notion | None:
        """Return the sum of the charges' losses in the budget's notion; None if that is no guarantee."""

    def of(self, prices: Mapping[Notion, int]) -> str:
        """Return what is spent by these charges."""
        spent = self.nothing
        for price, times in prices.items():
            spent = self.after(spent, price, times)
        return spent


class SummedAccount(Account):
    """An account in which one number adds up."""

    nothing = "0/1"

    def after(self, spent: str, price: Notion, times: int = 1) -> str:
        result = converted(price, self.budget)
        if result is None:
            raise Inconvertible
        return fraction_text((read_fraction(spent) or Fraction(0)) + times * weight(result))

    def reads(self, spent: object) -> bool:
        return (read_fraction(spent) or Fraction(0)) >= 0 and read_fraction(spent) is not None

    def equal(self, spent: str, expected: str) -> bool:
        if spent == expected or isinstance(self.budget, Pure | Zcdp):  # these convert exactly
            return spent == expected
        one, other = read_fraction(spent) or Fraction(0), read_fraction(expected) or Fraction(0)
        return abs(one - other) <= other * FLOATING

    def fits(self, spent: str) -> bool:
        result = read_fraction(spent)
        return result is not None and result <= weight(self.budget)

    def total(self, spent: str) -> Notion | None:
        result = read_fraction(spent) or Fraction(0)
        return of_weight(self.budget, result) if result > 0 else None

    def left(self, spent: str) -> Notion | None:
        result = weight(self.budget) - (read_fraction(spent) or Fraction(0))
        return of_weight(self.budget, result, up=False) if result > 0 else None

    def added_up(self, prices: Mapping[Notion, int]) -> Notion | None:
        """Add up epsilons, shifts mu, and for zcdp sqrt(2 rho)."""
        if not prices:
            return None
        weights = {price: weight(converted(price, self.budget) or self.budget) for price in prices}
        if not isinstance(self.budget, Gdp | Zcdp):
            total = sum((times * weights[price] for price, times in prices.items()), Fraction(0))
            return None if isinstance(self.budget, Tv) and total >= 1 else of_weight(self.budget, total)
        twice = 2 if isinstance(self.budget, Zcdp) else 1
        roots = [times * of_weight(Gdp(1), twice * weights[price]).exact[0] for price, times in prices.items()]
        return of_weight(self.budget, sum(roots, Fraction(0)) ** 2 / twice)


class ComposedAccount(Account):
    """An account in (epsilon, delta): charges are counted, and composed all together."""

    nothing = "{}"

    def after(self, spent: str, price: Notion, times: int = 1) -> str:
        delta = self.budget.exact[1]
        always = isinstance(price, Pure) or (isinstance(price, Gdp | Zcdp) and delta > 0)
        if not always and not math.isfinite(_epsilon(frozenset({(price, 1)}), delta)):
            raise Inconvertible
        counts: dict[str, Any] = json.loads(spent)
        name = price_text(price)
        return _listed({**counts, name: counts.get(name, 0) + times})

    def reads(self, spent: object) -> bool:
        try:
            counts = json.loads(spent)  # type: ignore[arg-type]  # whatever a forger put there
            whole = all(
                type(times) is int and times > 0 and price_of(text) is not None for text, times in counts.items()
            )
            return whole and _listed(counts) == spent
        except (ValueError, TypeError, AttributeError):
            return False

    def equal(self, spent: str, expected: str) -> bool:
        return spent == expected

    def fits(self, spent: str) -> bool:
        epsilon, delta = self.budget.exact
        return Fraction(_finite(_epsilon(frozenset(_counts(spent).items()), delta))) <= epsilon

    def total(self, spent: str) -> Notion | None:
        if spent == self.nothing:
            return None
        epsilon, delta = _epsilon(frozenset(_counts(spent).items()), self.budget.exact[1]), self.budget.exact[1]
        return Approx(_short(epsilon, up=True), delta)

    def left(self, spent: str) -> Notion | None:
        epsilon = self.budget.exact[0]
        total = self.total(spent)
        if total is None:
            return self.budget
        result = epsilon - total.exact[0]
        return Pure(result) if result > 0 else None

    def added_up(self, prices: Mapping[Notion, int]) -> Notion | None:
        """Add up epsilons and deltas; the budget's delta is divided among the prices that need one."""
        delta = self.budget.exact[1]
        needy = sum(times for price, times in prices.items() if not isinstance(price, Pure | Approx | Tv))
        epsilon = lost = Fraction(0)
        for price, times in prices.items():
            if isinstance(price, Tv):
                result: Notion | None = Approx(0, price.eta)  # exactly; a conversion has the budget's delta
            else:
                result = price if isinstance(price, Approx) else converted(price, Approx(1, delta / max(needy, 1)))
            if result is None:
                return None
            epsilon, lost = epsilon + times * result.exact[0], lost + times * result.exact[1]
        return Approx(epsilon, lost) if prices and lost < 1 else None


@lru_cache(maxsize=1024)
def _epsilon(counts: frozenset[tuple[Notion, int]], delta: Fraction) -> float:
    # Needs an extra, and only budgets in (epsilon, delta) do.
    from privatest.privacy.composition import composed_epsilon

    return composed_epsilon(dict(counts), delta)


def _counts(spent: str) -> dict[Notion, int]:
    return {result: times for text, times in json.loads(spent).items() if (result := price_of(text)) is not None}


def _listed(counts: Mapping[str, int]) -> str:
    return json.dumps(dict(sorted(counts.items())), separators=(",", ":"))


def _finite(value: float) -> float:
    return min(value, 1e300)


def _short(value: float, *, up: bool) -> Fraction:
    """Return a number of nine digits, rounded to the safe side."""
    result = Fraction(f"{_finite(value):.9g}")
    step = Fraction(f"{max(_finite(value), 1e-300) * 1e-8:.1g}")
    return result + step if up and result < Fraction(_finite(value)) else result
