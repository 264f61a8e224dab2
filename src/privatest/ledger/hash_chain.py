"""The ledger's rows, chained by their hashes.

A :class:`LedgerRow` is a row as it is stored; an :class:`Entry` is a row as users see it. Amounts are exact, and each
has one text (``budgets.py``). :class:`HashChain` checks the whole ledger: every hash, every link, every sum.

It finds: a row that was edited in any column, removed, inserted, moved or swapped, at the end too (the head record
holds the number of rows and the newest hash); a running total that is not the sum of the rows; more spent than granted.
The database itself refuses two charges or two releases of one request.

It cannot find a consistent forgery: somebody who may write to the database can recompute all later hashes and the head,
put back an old copy of the whole database, or remove it. Against this, keep ``ledger.fingerprint()`` where they cannot
write and pass it to ``ledger.verify(since=...)``; rows that were added after the fingerprint stay open to them. On
PostgreSQL, give the role that runs requests only SELECT and INSERT on ``privatest_ledger_rows`` and SELECT and UPDATE
on ``privatest_ledger_head``: it can then add rows, but neither edit nor delete one.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from privatest.charge_before_release import Receipt, RecordedRelease
from privatest.data_addresses import DataAddress
from privatest.errors import LedgerTampered
from privatest.ledger.budgets import (
    Account,
    Amount,
    ComposedAccount,
    Inconvertible,
    Protection,
    account_of,
    amount,
    price_of,
    read_fraction,
)
from privatest.privacy.notion import Notion, Pure

LONGEST_DECIMAL = 17
LONGEST_FRACTION = 24


def amount_text(amount: Amount) -> str:
    """Return an amount for messages: a decimal if it is short, else a fraction, else a rounded number; or the notion.

    >>> from fractions import Fraction
    >>> [amount_text(Fraction(*one)) for one in ((1,), (3, 10), (1, 3), (2, 3**60))]
    ['1.0', '0.3', '1/3', 'about 4.71796e-29']
    """
    if isinstance(amount, Notion):
        return amount.text if len(amount.text) <= len(str(amount)) else str(amount)
    rest, twos, fives = amount.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives, 1)
    if rest == 1 and places <= LONGEST_DECIMAL:
        digits = str(abs(amount.numerator) * 10**places // amount.denominator).rjust(places + 1, "0")
        sign = "-" if amount < 0 else ""
        if len(digits) <= 2 * LONGEST_DECIMAL:
            return f"{sign}{digits[:-places]}.{digits[-places:]}"
    if amount.denominator > 1 and len(text := str(amount)) <= LONGEST_FRACTION:
        return text
    return f"about {Decimal(amount.numerator) / Decimal(amount.denominator):.6g}"


Kind = Literal["grant", "charge", "draw", "release", "advance"]
ADVANCE = "advance {:012d}"
"""Kind of the n-th advance of a stream. The database itself then refuses a second n-th advance."""
FORMAT = 2
"""Version of the rows, which is part of every hash and of the head record."""
COMPACT = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"))
SOURCE = "privatest/source"
"""Field of a recorded release that names its source. No release of the package has a field of this name."""


class Head(NamedTuple):
    """The head record: the number of rows, and the hash of the newest one."""

    rows: int
    hash: str

    @property
    def fingerprint(self) -> str:
        """Text ``count:hash``, which pins all rows up to now."""
        return f"{self.rows}:{self.hash}"


EMPTY = Head(0, "0" * 64)


class LedgerRow(NamedTuple):
    """A row as it is stored in the database; amounts and time are texts, so that the hash covers every character.

    ``release`` is a JSON document. Of a release it is what was released; of a charge what was drawn, the design's
    settings, the source and what is protected; of a draw everything drawn by then; of a grant the sources that it
    covers and what it protects; of an advance the positions and marks.
    """

    sequence: int
    time: str
    kind: str
    dataset: str
    request: str | None
    epsilon: str
    design: str | None
    granted: str
    spent: str
    release: str | None
    previous: str
    hash: str = ""

    def digest(self) -> str:
        """Return the sha256 over every column but the hash itself, and thus over the previous row's hash."""
        content = COMPACT.encode(["privatest/ledger", FORMAT, *self[:-1]])
        return hashlib.sha256(content.encode("ascii")).hexdigest()

    def as_read(self) -> bytes:
        """Return every column, including the hash, with its type: it differs if the rows differ in anything."""
        return repr(tuple(self)).encode("utf-8", "surrogatepass")

    def sealed(self) -> LedgerRow:
        """Return this row with its hash."""
        return self._replace(hash=self.digest())

    def intact(self) -> bool:
        """Whether the hash is that of the content. A column that was edited to another type counts as edited."""
        try:
            return self.hash == self.digest()
        except TypeError:
            return False

    def checked(self, ledger: str) -> LedgerRow:
        """Return this row; raise LedgerTampered if it was edited."""
        if not self.intact():
            raise LedgerTampered(
                f"Row {self.sequence} of the ledger {ledger} was edited: its content does not match its "
                "hash. Restore the ledger from a backup; nothing more is charged until then.",
                self.sequence,
            )
        return self

    @property
    def about(self) -> dict[str, Any]:
        """What the row says besides its columns; empty if nothing. For checked rows only."""
        document = json.loads(self.release) if self.release is not None else {}
        if self.kind == "release":
            document = {"source": document[SOURCE]} if SOURCE in document else {}
        return {} if self.kind.startswith("advance") else dict(document)

    def recorded(
        self, address: DataAddress | None, *, replayed: bool, read: bool = False, converted: str | None = None
    ) -> RecordedRelease:
        """Return the recorded release with its receipt for a request on data at ``address``. For checked rows only."""
        document = json.loads(self.release or "{}")
        source = document.pop(SOURCE, None) or {}
        result = RecordedRelease(document)
        result.receipt = Receipt(
            dataset=self.dataset,
            request=self.request or "",
            recorded=datetime.fromisoformat(self.time),
            source=source.get("name"),
            design=self.design or "",
            fingerprint=Head(self.sequence, self.hash).fingerprint,
            replayed=replayed,
            given=None if address is None else address.name,
            same_source=None if address is None else is_same_source(source, address),
            read=read,
            converted=converted,
        )
        return result

    @property
    def price(self) -> Notion:
        """The new budget of a grant, or the price of the request. For checked rows only."""
        return _checked_price(price_of(self.epsilon))

    @property
    def protected(self) -> Protection:
        """What a request, or a first grant, protects. For checked rows only."""
        result = Protection().after(self.about)
        assert result is not None  # the hash is right, so this package wrote it
        return result

    @property
    def budget(self) -> Notion:
        """The budget of the data set after this row. For checked rows only."""
        return _checked_price(price_of(self.granted))

    @property
    def account(self) -> Account:
        """The account of the data set after this row."""
        return account_of(self.budget)

    def entry(self) -> Entry:
        """Return the row as users see it. For checked rows only."""
        return Entry(
            sequence=self.sequence,
            time=datetime.fromisoformat(self.time),
            kind=self.kind.partition(" ")[0],  # type: ignore[arg-type]  # the hash is right, so it is one of the four
            dataset=self.dataset,
            request=self.request,
            epsilon=amount(self.price),
            design=self.design,
            granted=amount(self.budget),
            total=self.spent,
            release=None if self.kind in ("grant", "charge", "draw") else dict(self.recorded(None, replayed=True)),
            hash=self.hash,
            about=self.about,
        )


def _checked_price(price: Notion | None) -> Notion:
    assert price is not None  # the hash is right, so this package wrote it
    return price


def converted_prices(prices: Mapping[tuple[Notion, Protection], int], budget: Protection) -> Counter[Notion]:
    """Return prices as a budget for these neighbours counts them. Raises Inconvertible."""
    result: Counter[Notion] = Counter()
    for (price, requested), times in prices.items():
        if (one := budget.converted(price, requested)) is None:
            raise Inconvertible
        result[one] += times
    return result


def is_object(text: str) -> bool:
    """Whether a text is a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def is_same_source(noted: Mapping[str, Any], address: DataAddress) -> bool | None:
    """Return whether a source is the recorded one; None if both are in memory or no source was recorded."""
    if not noted or noted["identity"] == address.identity is None:
        return None
    return bool(noted["identity"] == address.identity)


@dataclass(frozen=True)
class Entry:
    """One entry of the ledger's history.

    Attributes:
        sequence: 1, 2, 3, ... over all data sets.
        time: when the row was written, by the clock of the machine that wrote it, in UTC.
        kind: "grant" (a budget was set), "charge" (epsilon was spent, and the answer was drawn), "draw" (the second
            step of an answer was drawn), "release" (the answer was released) or "advance" (a stream was released
            further, at no cost).
        dataset: the data set.
        request: name of the request; None for a grant.
        epsilon: the new budget of a grant, or the price of the request: a number, or a notion that is not pure.
        design: fingerprint of the design; None for a grant.
        granted: budget of the data set after this row.
        total: what is spent on the data set after this row, as the row has it.
        release: the recorded release, for rows of that kind; of an advance, how far the stream was released.
        hash: sha256 over this row and the hash of the one before.
        about: what else was recorded: of a grant ``covers``, of a charge ``draw``, ``settings`` and ``source``, of both
            ``neighbours`` and ``unit`` if these are not "replace" and none, of a draw ``draw``, of a release
            ``source``.
    """

    sequence: int
    time: datetime
    kind: Kind
    dataset: str
    request: str | None
    epsilon: Amount
    design: str | None
    granted: Amount
    total: str
    release: dict[str, Any] | None
    hash: str
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def spent(self) -> Amount:
        """What is spent on the data set after this row, in the notion of its budget; 0 for nothing."""
        return amount(self._account.total(self.total))

    @property
    def left(self) -> Amount:
        """Budget that is left after this row; 0 for nothing."""
        return amount(self._account.left(self.total))

    @property
    def _account(self) -> Account:
        return account_of(self.granted if isinstance(self.granted, Notion) else Pure(self.granted))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: the time as ISO text, amounts as numbers or as texts of notions."""
        amounts = {name: plain(getattr(self, name)) for name in ("epsilon", "granted", "spent", "left")}
        values = {name: value for name, value in vars(self).items() if name != "total"}
        return {**values, "time": self.time.isoformat(), **amounts}


def plain(amount: Amount) -> float | str:
    """Return an amount for JSON: an epsilon as a number, every other notion as its text."""
    return amount.text if isinstance(amount, Notion) else float(amount)


@dataclass
class HashChain:
    """Checks the rows of a ledger one after the other, from row 1 on.

    Guarantees: after ``extend`` has accepted rows 1..k, they are exactly k consecutive linked rows, their totals are
    the sums of their charges, and no row but a grant changes a budget. After ``finish`` the pin is one of the rows.
    """

    ledger: str
    head: Head = EMPTY
    pin: Head = EMPTY
    """An earlier head, whose row must be among the rows."""
    granted: dict[str, Notion] = field(default_factory=dict)
    spent: dict[str, str] = field(default_factory=dict)
    prices: dict[str, Counter[tuple[Notion, Protection]]] = field(default_factory=dict)
    protected: dict[str, Protection] = field(default_factory=dict)
    read: Any = field(default_factory=hashlib.sha256)
    """sha256 over the rows as they were read, to recognise them later."""

    def extend(self, row: LedgerRow) -> None:
        """Accept the next row; raise LedgerTampered if something is wrong with it."""
        expected = self.head.rows + 1
        if row.sequence > expected:
            raise self.broken(expected, "is missing")
        if row.sequence < expected:
            raise self.broken(row.sequence, "was inserted: rows are numbered from 1, each number once")
        row.checked(self.ledger)
        if row.previous != self.head.hash:
            raise self.broken(expected, "does not continue the row before it")
        if problem := self.wrong(row):
            raise self.broken(expected, problem)
        self.granted[row.dataset] = row.budget
        self.spent[row.dataset] = row.spent
        if row.kind == "grant":
            self.protected[row.dataset] = self.granted_for(row) or Protection()
        if row.kind == "charge":
            self.prices.setdefault(row.dataset, Counter())[row.price, row.protected] += 1
        self.head = Head(row.sequence, row.hash)
        if self.pin.rows == self.head.rows and self.pin != self.head:
            raise self.broken(self.pin.rows, f"is not the one that the fingerprint {self.pin.fingerprint!r} pins")
        self.read.update(row.as_read())

    def finish(self, head: Head) -> None:
        """Compare the rows with the head record; raise LedgerTampered if they differ."""
        if head.rows > self.head.rows:
            raise self.broken(self.head.rows + 1, f"is missing: the head record counts {head.rows} rows")
        if head.rows < self.head.rows:
            raise self.broken(head.rows + 1, f"was inserted: the head record counts {head.rows} rows")
        if head.hash != self.head.hash:
            raise self.broken(head.rows, "is not the row that the head record names")
        if self.head.rows < self.pin.rows:
            missing = f"is missing: the fingerprint {self.pin.fingerprint!r} pins {self.pin.rows} rows"
            raise self.broken(self.head.rows + 1, missing)
        for dataset, budget in self.granted.items():
            if not account_of(budget).fits(self.spent[dataset]):
                raise self.broken(self.head.rows, f"leaves data set {dataset!r} with more spent than was granted")

    def wrong(self, row: LedgerRow) -> str | None:
        """Return how a row contradicts the rows before, if it does. Only a forger who recomputes hashes gets here."""
        if problem := self.wrong_amounts(row):
            return problem
        budget, account = row.budget, row.account
        before = self.granted.get(row.dataset)
        spent = self.spent.get(row.dataset, account.nothing)
        if row.kind in ("grant", "charge") and not is_object(row.release or "{}"):
            return f"is a {row.kind} that is not a JSON object"
        if row.kind == "grant":
            now = self.granted_for(row)
            if now is None:
                return "is a grant for neighbours that nobody knows"
            unchanged = before == budget and now == self.protected.get(row.dataset)
            try:
                expected = spent if unchanged else account.of(converted_prices(self.prices.get(row.dataset, {}), now))
            except Inconvertible:
                return "is a grant into which earlier charges do not convert"
            return (
                None if budget == row.price and account.equal(row.spent, expected) else "is a grant with wrong totals"
            )
        if before is None:
            return f"is a {row.kind} on a data set without a grant"
        if budget != before:
            return "changes the budget without a grant"
        if row.kind == "charge":
            requested = Protection().after(row.about)
            if requested is None:
                return "is a charge for neighbours that nobody knows"
            try:
                ((price, _),) = converted_prices({(row.price, requested): 1}, self.protected[row.dataset]).items()
                adds_up = account.equal(row.spent, account.after(spent, price))
            except Inconvertible:
                return "is a charge that does not convert into the budget"
            return None if adds_up else "does not add its epsilon to the running total"
        if row.kind in ("draw", "release") or row.kind.startswith("advance"):
            return None if spent == row.spent else f"is a {row.kind} that changes the running total"
        return f"is of the unknown kind {row.kind!r}"

    def granted_for(self, row: LedgerRow) -> Protection | None:
        """Return what a data set's budget protects after a grant; None if the grant cannot be read."""
        return self.protected.get(row.dataset, Protection()).after(row.about)

    def wrong_amounts(self, row: LedgerRow) -> str | None:
        """Return what is wrong with a row's amounts, if anything. ``finish`` checks budgets in (epsilon, delta)."""
        if (epsilon := read_fraction(row.epsilon)) is not None and epsilon <= 0:
            return "holds an epsilon that is not positive"
        budget = price_of(row.granted)
        if price_of(row.epsilon) is None or budget is None or not account_of(budget).reads(row.spent):
            return "holds an amount that is not a fraction in lowest terms, nor a notion as it is written"
        if not isinstance(account_of(budget), ComposedAccount) and not account_of(budget).fits(row.spent):
            return "spends more than was granted"
        return None

    def broken(self, sequence: int, problem: str) -> LedgerTampered:
        return LedgerTampered(f"Row {sequence} of the ledger {self.ledger} {problem}.", sequence)
