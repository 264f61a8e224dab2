"""What the charges of a data set come to, in the notion that its budget is granted in.

Amounts lie in the ledger's rows as text, one text per amount: an epsilon as the fraction ``p/q``, as ever, every other
notion as its own text. What is spent of a budget is a fraction too where one number adds up (epsilon, rho, mu squared,
...); of a budget in (epsilon, delta) it is the list of how many charges there were of each
notion, from which the composition is computed when it is needed. Both are in ``privacy/composition.py``.
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

from privatest.charge import ANYBODY
from privatest.errors import InvalidInput
from privatest.privacy.composition import of_weight, weight
from privatest.privacy.notions import (
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
"""For people: an epsilon as a number, everything else as its notion; 0 where there is nothing."""

# 3,300 bits are at most 994 digits: far under the 4,300 at which Python refuses to convert an integer to
# text, and enough for every float (the smallest, 5e-324, has 324 digits).
MOST_BITS = 3300
FLOATING = Fraction(1, 10**10)
"""By how much conversions that are not rational may differ between machines; what is rounded up covers more."""


class Inconvertible(Exception):
    """A price from which no guarantee in the budget's notion follows."""


def stored(amount: Fraction) -> str:
    """The text of ``amount``, one text per number.

    Guarantees: ``canonical(stored(x)) == x``.

    >>> stored(Fraction(1, 10)), stored(Fraction(3))
    ('1/10', '3/1')
    """
    if max(amount.numerator.bit_length(), amount.denominator.bit_length()) > MOST_BITS:
        raise InvalidInput(
            "The exact sum of the epsilons needs more than 990 digits. "
            "Use epsilons of few decimal digits, such as 0.05."
        )
    return f"{amount.numerator}/{amount.denominator}"


@lru_cache(maxsize=4096)
def canonical(text: object) -> Fraction | None:
    """The amount, if the text is the one that :func:`stored` writes for it; else None. Rows repeat most amounts."""
    try:
        numerator, _, denominator = text.partition("/")  # type: ignore[attr-defined]  # whatever a forger put there
        found = Fraction(int(numerator), int(denominator))
        return found if type(text) is str and stored(found) == text else None
    except (InvalidInput, AttributeError, TypeError, ValueError, ZeroDivisionError):
        return None


def written(price: Notion) -> str:
    """The text of a price or a budget: the fraction of an epsilon, else the notion's own text."""
    for part in price.exact:
        stored(part)
    return stored(price.loss) if isinstance(price, Pure) else price.text


@lru_cache(maxsize=4096)
def price_of(text: object) -> Notion | None:
    """The price that :func:`written` wrote; None for any other text."""
    epsilon = canonical(text)
    if epsilon is not None:
        return Pure(epsilon) if epsilon > 0 else None
    try:
        found = as_notion(text)
        return found if not isinstance(found, Pure) and found.text == text else None
    except InvalidInput:
        return None


def amount(notion: Notion | None) -> Amount:
    """For people: the number of a pure notion, 0 for nothing, else the notion."""
    if notion is None:
        return Fraction(0)
    return Fraction(notion.loss) if isinstance(notion, Pure) else notion


@dataclass(frozen=True)
class Protected:
    """What a budget, or a request, protects: which data sets are neighbours.

    Losses add up only where they are about the same neighbours. A price for adding or removing one record, or person,
    is also one for replacing it, which is both: for twice the epsilon, or what group privacy makes of another notion.
    Nothing else follows: not from "replace" to "add-remove", whose data sets are of other sizes; not from single
    records to persons, who may have many; nor the other way, for a record that changes hands touches two persons.

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

    def after(self, about: Mapping[str, Any]) -> Protected | None:
        """This, but for what a row says of it; None where that cannot be read."""
        neighbours, unit = about.get("neighbours", self.neighbours), about.get("unit", self.unit or "")
        fits = neighbours in NEIGHBOURS and isinstance(unit, str)
        return Protected(neighbours, unit or None) if fits else None

    def noted(self, before: Protected) -> dict[str, str]:
        """What :meth:`after` reads: what differs from before."""
        found = {"neighbours": self.neighbours, "unit": self.unit or ""}
        return {name: value for name, value in found.items() if value != (getattr(before, name) or "")}

    def counted(self, price: Notion, asked: Protected) -> Notion | None:
        """What a price for what is asked counts as in a budget for this; None where nothing follows from it.

        >>> replacing, coming_and_going = Protected(), Protected("add-remove")
        >>> replacing.counted(Pure(0.5), coming_and_going), coming_and_going.counted(Pure(0.5), replacing)
        (pure(1), None)
        """
        if asked.unit != self.unit and not (asked.unit == ANYBODY and self.unit is not None):
            return None
        if asked.neighbours == self.neighbours:
            return price
        return replaced(price) if self.neighbours == "replace" else None


def conversion(price: Notion, budget: Notion) -> str | None:
    """What is lost where a price is of another kind than the budget; None where nothing is.

    >>> conversion(Pure(1), Zcdp(2))
    'pure(1) counts as zcdp(0.5), which says less'
    """
    exact = isinstance(budget, Approx) and price.tradeoff  # composed by its own privacy-loss distribution
    if exact or (type(price) is type(budget) and not isinstance(price, Renyi)):
        return None
    found = converted(price, budget)
    return None if found is None or found == price else f"{price} counts as {found}, which says less"


def account_of(budget: Notion) -> Account:
    """How charges to a budget of this notion are summed."""
    return Composed(budget) if isinstance(budget, Approx) else _Summed(budget)


class Account(ABC):
    """One budget. What is spent is a text; see the module.

    Guarantees: ``fits`` is never true of more than was granted, by rounding or otherwise.
    """

    nothing: str

    def __init__(self, budget: Notion) -> None:
        self.budget = budget

    @abstractmethod
    def after(self, spent: str, price: Notion, times: int = 1) -> str:
        """What is spent after one more charge, or several of one price; raises Inconvertible."""

    @abstractmethod
    def reads(self, spent: object) -> bool:
        """Whether that is what some charges come to, in the one way it is written."""

    @abstractmethod
    def same(self, spent: str, expected: str) -> bool:
        """Whether two sums are the same, but for what machines may differ by."""

    @abstractmethod
    def fits(self, spent: str) -> bool:
        """Whether the budget allows it."""

    @abstractmethod
    def total(self, spent: str) -> Notion | None:
        """What that is in the budget's notion, rounded up; None: nothing."""

    @abstractmethod
    def left(self, spent: str) -> Notion | None:
        """What is left of the budget, rounded down; None: nothing."""

    @abstractmethod
    def added_up(self, prices: Mapping[Notion, int]) -> Notion | None:
        """What the charges would come to in the budget's notion if losses were only added up; None where nothing."""

    def of(self, prices: Mapping[Notion, int]) -> str:
        """What charges come to, from the first."""
        spent = self.nothing
        for price, times in prices.items():
            spent = self.after(spent, price, times)
        return spent


class _Summed(Account):
    """One number adds up."""

    nothing = "0/1"

    def after(self, spent: str, price: Notion, times: int = 1) -> str:
        found = converted(price, self.budget)
        if found is None:
            raise Inconvertible
        return stored((canonical(spent) or Fraction(0)) + times * weight(found))

    def reads(self, spent: object) -> bool:
        return (canonical(spent) or Fraction(0)) >= 0 and canonical(spent) is not None

    def same(self, spent: str, expected: str) -> bool:
        if spent == expected or isinstance(self.budget, Pure | Zcdp):  # these convert exactly
            return spent == expected
        one, other = canonical(spent) or Fraction(0), canonical(expected) or Fraction(0)
        return abs(one - other) <= other * FLOATING

    def fits(self, spent: str) -> bool:
        found = canonical(spent)
        return found is not None and found <= weight(self.budget)

    def total(self, spent: str) -> Notion | None:
        found = canonical(spent) or Fraction(0)
        return of_weight(self.budget, found) if found > 0 else None

    def left(self, spent: str) -> Notion | None:
        found = weight(self.budget) - (canonical(spent) or Fraction(0))
        return of_weight(self.budget, found, up=False) if found > 0 else None

    def added_up(self, prices: Mapping[Notion, int]) -> Notion | None:
        """Shifts and epsilons add up; of zcdp that is what sqrt(2 rho) stands for."""
        if not prices:
            return None
        weights = {price: weight(converted(price, self.budget) or self.budget) for price in prices}
        if not isinstance(self.budget, Gdp | Zcdp):
            total = sum((times * weights[price] for price, times in prices.items()), Fraction(0))
            return None if isinstance(self.budget, Tv) and total >= 1 else of_weight(self.budget, total)
        twice = 2 if isinstance(self.budget, Zcdp) else 1
        roots = [times * of_weight(Gdp(1), twice * weights[price]).exact[0] for price, times in prices.items()]
        return of_weight(self.budget, sum(roots, Fraction(0)) ** 2 / twice)


class Composed(Account):
    """(epsilon, delta): the charges are counted, and composed as a whole."""

    nothing = "{}"

    def after(self, spent: str, price: Notion, times: int = 1) -> str:
        delta = self.budget.exact[1]
        always = isinstance(price, Pure) or (isinstance(price, Gdp | Zcdp) and delta > 0)
        if not always and not math.isfinite(_epsilon(frozenset({(price, 1)}), delta)):
            raise Inconvertible
        counts: dict[str, Any] = json.loads(spent)
        name = written(price)
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

    def same(self, spent: str, expected: str) -> bool:
        return spent == expected

    def fits(self, spent: str) -> bool:
        counts = _counts(spent)
        return _known(self.budget).fits(counts)

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
        found = epsilon - total.exact[0]
        return Pure(found) if found > 0 else None

    def added_up(self, prices: Mapping[Notion, int]) -> Notion | None:
        """Epsilons and deltas; delta is divided among what needs one."""
        delta = self.budget.exact[1]
        needy = sum(times for price, times in prices.items() if not isinstance(price, Pure | Approx | Tv))
        epsilon = lost = Fraction(0)
        for price, times in prices.items():
            found = converted(price, Approx(1, delta / max(needy, 1))) if not isinstance(price, Approx) else price
            if found is None:
                return None
            epsilon, lost = epsilon + times * found.exact[0], lost + times * found.exact[1]
        return Approx(epsilon, lost) if prices and lost < 1 else None


class _KnownCounts:
    """Which counts fit a budget: those below some that do fit do, those above some that do not do not.

    So that many small charges need few compositions: where one fits, a quarter more of everything is tried, too.
    """

    def __init__(self, budget: Notion) -> None:
        self.epsilon, self.delta = budget.exact
        self.fitting: list[Mapping[Notion, int]] = []
        self.too_much: list[Mapping[Notion, int]] = []

    def fits(self, counts: Mapping[Notion, int]) -> bool:
        if any(_below(counts, known) for known in self.fitting):
            return True
        if any(_below(known, counts) for known in self.too_much):
            return False
        fits = self._look(counts)
        if fits and sum(counts.values()) > 8:
            self._look({notion: times + times // 4 + 1 for notion, times in counts.items()})
        return fits

    def _look(self, counts: Mapping[Notion, int]) -> bool:
        fits = Fraction(_finite(_epsilon(frozenset(counts.items()), self.delta))) <= self.epsilon
        known = self.fitting if fits else self.too_much
        known[:] = [*known[-20:], dict(counts)]
        return fits


def _below(one: Mapping[Notion, int], other: Mapping[Notion, int]) -> bool:
    return all(times <= other.get(notion, 0) for notion, times in one.items())


@lru_cache(maxsize=64)
def _known(budget: Notion) -> _KnownCounts:
    return _KnownCounts(budget)


@lru_cache(maxsize=1024)
def _epsilon(counts: frozenset[tuple[Notion, int]], delta: Fraction) -> float:
    # Needs an extra, and only budgets in (epsilon, delta) do.
    from privatest.privacy.composition import composed_epsilon

    return composed_epsilon(dict(counts), delta)


def _counts(spent: str) -> dict[Notion, int]:
    return {found: times for text, times in json.loads(spent).items() if (found := price_of(text)) is not None}


def _listed(counts: Mapping[str, int]) -> str:
    return json.dumps(dict(sorted(counts.items())), separators=(",", ":"))


def _finite(value: float) -> float:
    return min(value, 1e300)


def _short(value: float, *, up: bool) -> Fraction:
    """Nine digits, rounded to the safe side."""
    found = Fraction(f"{_finite(value):.9g}")
    step = Fraction(f"{max(_finite(value), 1e-300) * 1e-8:.1g}")
    return found + step if up and found < Fraction(_finite(value)) else found
