"""A request to a ledger: what is asked, how it is written down, and why it is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from privatest import numbers
from privatest.addresses import DataAddress, is_covered, touches
from privatest.charge import ANYBODY, differences
from privatest.errors import BudgetExceeded, InvalidInput, RequestConflict, SourceNotCovered, shown
from privatest.ledger.account import Account, Amount, Inconvertible, Protected, amount
from privatest.ledger.hash_chain import SOURCE, LedgerRow, counted, exact, same
from privatest.numbers import Number
from privatest.privacy.notions import NEIGHBOURS, Notion, Pure, as_notion

if TYPE_CHECKING:
    from privatest.ledger.store import Book


LONGEST_NAME = 200  # dataset and request share an index entry, which PostgreSQL limits to 2,704 bytes


def check_name(**arguments: object) -> None:
    """Check the one named argument: a short line of text."""
    ((word, value),) = arguments.items()
    if not isinstance(value, str):
        raise InvalidInput(f"{word}={shown(value)} must be text.")
    if len(value) > LONGEST_NAME:
        raise InvalidInput(
            f"{word}={value[:20] + '...'!r} has {len(value)} characters; {LONGEST_NAME} is the most. Use a hash of it."
        )
    if not value or value != value.strip() or not value.isprintable():
        raise InvalidInput(f"{word}={shown(value)} must be one line of text, without space at either end.")


def source_document(source: DataAddress | None) -> dict[str, Any] | None:
    """A source as it is noted: its name, and a text by which it is known again."""
    return None if source is None else {"name": source.name, "identity": source.identity}


def noted(**facts: object) -> str | None:
    """JSON text of what is noted beside a grant; None where there is nothing to note."""
    known = {name: fact for name, fact in facts.items() if fact is not None}
    return json.dumps(known, allow_nan=False) if known else None


UNHOLDABLE = (
    "JSON cannot hold: a value is NaN, infinite, or not made of text, numbers, truth values, None, lists and dicts."
)


def charge_text(draw: object, **facts: object) -> str:
    """JSON text of a charge: the draw, and what else is noted; a draw that JSON cannot hold is refused."""
    return _draw_text("draw", "Nothing was charged.", draw, **facts)


def further_text(draw: object) -> str:
    """JSON text of what was drawn after a charge; a draw that JSON cannot hold is refused, and the charge stays."""
    return _draw_text("further", "The charge stays.", draw)


def _draw_text(word: str, fate: str, draw: object, **facts: object) -> str:
    try:
        return json.dumps({**{name: fact for name, fact in facts.items() if fact}, "draw": draw}, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        # The cause is not repeated: it may quote what was computed from the data.
        raise InvalidInput(f"{word} returned what {UNHOLDABLE} {fate}") from None


def release_text(release: object, source: object = None) -> str:
    """JSON text of a release and of what was read for it; one that JSON cannot hold is refused, and stays charged."""
    if not isinstance(release, Mapping):
        raise InvalidInput(f"release returned a {type(release).__name__}; a release is a dict. The charge stays.")
    try:
        return json.dumps({**release, **({} if source is None else {SOURCE: source})}, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput(f"release returned a dict that {UNHOLDABLE} The charge stays.") from None


class Request(NamedTuple):
    """What is asked of a ledger: whose budget pays, under which name, how much, for whom and for what."""

    dataset: str
    name: str
    price: Notion
    protected: Protected
    design: str
    asked: Mapping[str, Any]


def request_price(rule: str, epsilon: Number | None, privacy: Any) -> Notion:
    """The price or budget that is asked for by ``epsilon`` or ``privacy``."""
    if privacy is None:
        if epsilon is None:
            raise InvalidInput("epsilon is missing: give epsilon=1, say, or privacy='zcdp(0.5)'.")
        return Pure(numbers.positive(rule, epsilon=epsilon))
    if epsilon is not None:
        raise InvalidInput(f"epsilon={shown(epsilon)} and privacy={shown(privacy)} were both given. Give one of them.")
    found = as_notion(privacy)
    if found.price is None:
        raise InvalidInput(f"privacy={shown(privacy)} is no privacy at all: no budget pays for it.")
    return found


def worded(price: Notion) -> str:
    """A price in messages: "epsilon=0.3", "privacy=zcdp(0.5)"."""
    return f"epsilon={exact(amount(price))}" if isinstance(price, Pure) else f"privacy={exact(price)}"


def respent(book: Book, dataset: str, newest: LedgerRow | None, account: Account, protected: Protected) -> str:
    """What is spent of a data set, as a new grant counts it: as before, or anew from the charges, in another notion."""
    if newest is None:
        return account.nothing
    before = book.protected(dataset)
    if newest.budget == account.budget and protected == before:
        return newest.spent
    try:
        return account.of(counted(book.prices(dataset), protected))
    except Inconvertible:
        raise InvalidInput(
            f"{worded(account.budget)} for {protected} cannot be granted to data set {dataset!r}: what is spent of its "
            f"budget of {newest.budget} for {before} does not convert into it. Grant it in a notion that all earlier "
            "requests convert into, and for the neighbours that they protect."
        ) from None


def affordable(newest: LedgerRow, price: Notion, protected: Protected, budgeted: Protected) -> str:
    """What is spent after one more charge; refuses one that does not fit, or does not convert into the budget."""
    account, budget, dataset = newest.account, newest.budget, newest.dataset
    counts = budgeted.counted(price, protected)
    if counts is None:
        raise InvalidInput(unprotected(dataset, price, protected, budgeted))
    said = "" if counts == price else f" for {protected} (for {budgeted} that is {worded(counts)})"
    try:
        after = account.after(newest.spent, counts)
    except Inconvertible:
        spent, left = totals(newest)
        raise InvalidInput(
            f"{worded(price)} asked{said} does not convert into the budget of data set {dataset!r}, {budget} "
            f"({exact(spent)} spent, {exact(left)} left): no such guarantee follows from it. Ask in another notion, or "
            "have a budget granted that it converts into, with ledger.grant()."
        ) from None
    if not account.fits(after):
        spent, left = totals(newest)
        comes = "" if isinstance(budget, Pure) else f" ({exact(spent)} spent)"
        asked, rest = worded(price), exact(left)
        if isinstance(left, Notion) and asked.endswith(rest):  # alike to six digits
            asked, rest = f"privacy={price.text}", left.text
        raise BudgetExceeded(
            f"{asked} asked{said}, {rest} left of {exact(amount(budget))}{comes} for data set "
            f"{dataset!r}. Ask for less, or have the budget raised with ledger.grant().",
            dataset,
            amount(price),
            spent,
            left,
        )
    return after


def unprotected(dataset: str, price: Notion, asked: Protected, budget: Protected) -> str:
    """Why a request cannot be charged to a budget that protects others, and what to do."""
    unit = "..." if asked.unit == ANYBODY else repr(asked.unit or "")
    grant = f"ledger.grant({dataset!r}, neighbours={asked.neighbours!r}, unit={unit}, ...)"
    remedies = [] if asked.neighbours == budget.neighbours else [f"with neighbours={budget.neighbours!r}"]
    if asked.unit != budget.unit:
        remedies.append("without unit" if budget.unit is None else f"with unit={budget.unit!r}")
    return (
        f"{worded(price)} asked for {asked} cannot be charged to data set {dataset!r}, whose budget is for {budget}: "
        f"that does not follow from it. Ask {' and '.join(remedies)}, or have the budget granted for what is asked: "
        f"{grant}."
    )


def check_protected(**given: object) -> None:
    """Check ``neighbours`` and ``unit``, where they are given; an empty unit is none."""
    if "neighbours" in given:
        numbers.choice(NEIGHBOURS, neighbours=given["neighbours"])
    if given.get("unit", "") != "":
        check_name(unit=given["unit"])


def totals(newest: LedgerRow) -> tuple[Amount, Amount]:
    """What is spent and what is left, for people."""
    return amount(newest.account.total(newest.spent)), amount(newest.account.left(newest.spent))


def check_same(charge: LedgerRow, ask: Request) -> None:
    """Refuse a request whose name stands for something else."""
    before = charge.price
    where = f"Request {charge.request!r} on data set {charge.dataset!r}"
    remedy = "Give this request another name, or repeat the earlier one unchanged."
    if before != ask.price:
        raise RequestConflict(
            f"{where} was charged before with {worded(before)}, now asked with {worded(ask.price)}. {remedy}"
        )
    if charge.design != ask.design:
        noted = charge.about.get("asked")
        named = differences(noted, ask.asked) if noted and ask.asked else ""
        raise RequestConflict(
            f"{where} was charged before for another design: {named}. {remedy}"
            if named
            else f"{where} was charged before for the design {charge.design!r}, now asked for {ask.design!r}. {remedy}"
        )
    if charge.protected != ask.protected:
        raise RequestConflict(
            f"{where} was charged before for {charge.protected}, now asked for {ask.protected}. {remedy}"
        )


def check_same_source(charge: LedgerRow, source: DataAddress | None) -> None:
    """Refuse to go on with other records than those of the first draw, which the data set's grant covers."""
    noted = charge.about.get("source") or {}
    if source is None or same(noted, source) is not False:
        return
    raise RequestConflict(
        f"Request {charge.request!r} on data set {charge.dataset!r} was charged for {noted.get('name')!r}, and the "
        f"second step of its answer is not drawn yet: {source.name!r} cannot be read for it. Repeat it with the same."
    )


def check_covered(covers: Mapping[str, list[str]], dataset: str, source: DataAddress | None) -> None:
    """Refuse a source that the data set's grant does not name, or that another one's does."""
    name = "data of an unknown source" if source is None else repr(source.name)
    own = covers.get(dataset)
    if own is not None and not is_covered(source, own):
        raise SourceNotCovered(
            f"Data set {dataset!r} is granted for {brief(own)}; {name} is none of them. Give one of those, charge the "
            f"data set that {name} belongs to, or have it added: ledger.grant({dataset!r}, epsilon=..., covers=[...])."
        )
    for other, named in covers.items():
        if other != dataset and touches(source, named):
            remedy = (
                f"Charge {other!r}."
                if own is None
                else f"Take it out of one of them: ledger.grant({other!r}, covers=...)."
            )
            raise SourceNotCovered(
                f"{name} belongs to data set {other!r}, whose grant names it or a part of it; {dataset!r} is another "
                f"one, and the same records would have two budgets. {remedy}"
            )


def brief(covers: list[str]) -> str:
    """The sources a grant names, for messages: the names of files without their folders."""
    names = [repr(one if "://" in one or "/" not in one else os.path.basename(one.rstrip("/"))) for one in covers]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
