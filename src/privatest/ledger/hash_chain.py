"""The ledger's rows, chained by their hashes.

A row as stored is a :class:`LedgerRow`, as read by people an :class:`Entry`; amounts are exact, and each has one text
(``account.py``): an epsilon is ``p/q`` in lowest terms. :class:`HashChain` reads the whole ledger again: every hash,
every link, every sum.

What this finds: a row edited in any column, removed, inserted, moved or swapped, at the end too (the head
record holds the number of rows and the newest hash); a running total that is not the sum of the rows; a
release or a second draw without its charge, or a charge without its draw; two charges or two releases for one request;
more spent than granted; a stream that goes back, or from one mark to two.

What it cannot find: somebody who may write to the database and recomputes all later hashes and the head has
made another, consistent ledger; so has somebody who puts back an old copy of the whole database, or removes
it. Against both, note ``ledger.fingerprint()`` somewhere they cannot write and pass it to
``ledger.verify(since=...)``; what was added after the noted fingerprint stays open to them. On PostgreSQL,
give the role that runs requests no more than SELECT and INSERT on ``privatest_ledger_rows`` and SELECT and
UPDATE on ``privatest_ledger_head``: it can then add rows, and neither edit nor delete one.
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

from privatest.addresses import DataAddress
from privatest.charge import Receipt, RecordedRelease
from privatest.errors import LedgerTampered
from privatest.ledger.account import (
    Account,
    Amount,
    Composed,
    Inconvertible,
    Protected,
    account_of,
    amount,
    canonical,
    price_of,
)
from privatest.privacy.notions import Notion, Pure

LONGEST_DECIMAL = 17
LONGEST_FRACTION = 24


def exact(amount: Amount) -> str:
    """``amount`` for people: a decimal where it is short, else a fraction, else rounded, saying so; or the notion.

    >>> from fractions import Fraction
    >>> exact(Fraction(1)), exact(Fraction(3, 10)), exact(Fraction(1, 3)), exact(Fraction(2, 3**60))
    ('1.0', '0.3', '1/3', 'about 4.71796e-29')
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
"""How the n-th advance of a stream is spelt in its row: the database itself then refuses a second n-th one."""
FORMAT = 2  # goes into every hash and into the head record
COMPACT = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"))
SOURCE = "privatest/source"
"""Where a recorded release names what was read for it: no release of the package has a field of this name."""


class Head(NamedTuple):
    """What the head record says: how many rows there are, and the hash of the newest."""

    rows: int
    hash: str

    @property
    def fingerprint(self) -> str:
        """``count:hash``, which pins all rows up to now."""
        return f"{self.rows}:{self.hash}"


EMPTY = Head(0, "0" * 64)


class LedgerRow(NamedTuple):
    """A row as it lies in the database, amounts and time as text, so that the hash covers every character.

    ``release`` is a JSON document: of a release what was released, of a charge what was drawn, what was asked and of
    which source, of a draw all that was drawn by then, of a grant which sources it covers, of it and of a charge what
    they protect, of an advance from where to where.
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
        """sha256 over every column but the hash itself, hence also over the previous row's hash."""
        content = COMPACT.encode(["privatest/ledger", FORMAT, *self[:-1]])
        return hashlib.sha256(content.encode("ascii")).hexdigest()

    def as_read(self) -> bytes:
        """Every column, the hash too, with its type: two rows that differ in anything differ in this."""
        return repr(tuple(self)).encode("utf-8", "surrogatepass")

    def sealed(self) -> LedgerRow:
        """This row with its hash."""
        return self._replace(hash=self.digest())

    def intact(self) -> bool:
        """Whether the hash is that of the content (a column edited to another type counts as edited)."""
        try:
            return self.hash == self.digest()
        except TypeError:
            return False

    def checked(self, ledger: str) -> LedgerRow:
        """This row, or the error that it was edited."""
        if not self.intact():
            raise LedgerTampered(
                f"Row {self.sequence} of the ledger {ledger} was edited: its content does not match its "
                "hash. Restore the ledger from a backup; nothing more is charged until then.",
                self.sequence,
            )
        return self

    @property
    def about(self) -> dict[str, Any]:
        """What a row says besides its columns; empty where it says nothing. Call it on checked rows."""
        document = json.loads(self.release) if self.release is not None else {}
        if self.kind == "release":
            document = {"source": document[SOURCE]} if SOURCE in document else {}
        return {} if self.kind.startswith("advance") else dict(document)

    def recorded(
        self, given: DataAddress | None, *, replayed: bool, read: bool = False, converted: str | None = None
    ) -> RecordedRelease:
        """What was released, with its receipt; of a checked release row, for a request that was ``given`` this."""
        document = json.loads(self.release or "{}")
        source = document.pop(SOURCE, None) or {}
        found = RecordedRelease(document)
        found.receipt = Receipt(
            dataset=self.dataset,
            request=self.request or "",
            recorded=datetime.fromisoformat(self.time),
            source=source.get("name"),
            design=self.design or "",
            fingerprint=Head(self.sequence, self.hash).fingerprint,
            replayed=replayed,
            given=None if given is None else given.name,
            same_source=None if given is None else same(source, given),
            read=read,
            converted=converted,
        )
        return found

    @property
    def price(self) -> Notion:
        """The new budget (grant), or what the request cost. Call it on checked rows."""
        return _known(price_of(self.epsilon))

    @property
    def protected(self) -> Protected:
        """What a request protects, or a first grant. Call it on checked rows."""
        found = Protected().after(self.about)
        assert found is not None  # the hash is right, so it is what was written
        return found

    @property
    def budget(self) -> Notion:
        """The budget of the data set after this row. Call it on checked rows."""
        return _known(price_of(self.granted))

    @property
    def account(self) -> Account:
        """How the data set's charges are summed after this row."""
        return account_of(self.budget)

    def entry(self) -> Entry:
        """The same, for people. Call it on checked rows."""
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


def _known(price: Notion | None) -> Notion:
    assert price is not None  # the hash is right, so it is what was written
    return price


def counted(prices: Mapping[tuple[Notion, Protected], int], budget: Protected) -> Counter[Notion]:
    """Prices as a budget for these neighbours counts them; raises Inconvertible."""
    found: Counter[Notion] = Counter()
    for (price, asked), times in prices.items():
        if (one := budget.counted(price, asked)) is None:
            raise Inconvertible
        found[one] += times
    return found


def same(noted: Mapping[str, Any], given: DataAddress) -> bool | None:
    """Whether a source is the one that was noted; None where both lie in memory, or nothing was noted."""
    if not noted or noted["identity"] == given.identity is None:
        return None
    return bool(noted["identity"] == given.identity)


@dataclass(frozen=True)
class Entry:
    """One thing that happened.

    Attributes:
        sequence: 1, 2, 3, ... over all data sets.
        time: when the row was written, by the clock of the machine that wrote it, in UTC.
        kind: "grant" (a budget was set), "charge" (epsilon was spent, and what it was spent on was drawn), "draw" (what
            was drawn after looking at that), "release" (what was made of the draw) or "advance" (a stream was released
            further; nothing was spent).
        dataset: whose budget.
        request: name of the request; None for a grant.
        epsilon: the new budget (grant), or what the request cost: a number, or a notion that is not pure.
        design: fingerprint of what was asked; None for a grant.
        granted: budget of the data set after this row.
        total: what is spent on the data set after this row, as it is written there.
        release: the recorded release, for rows of that kind; of an advance, how far the stream was released.
        hash: sha256 over this row and the hash of the one before.
        about: what else was noted: of a grant ``covers``, of a charge ``draw``, ``asked`` and ``source``, of both
            ``neighbours`` and ``unit`` where these are not "replace" and none, of a draw ``draw``, of a release
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
        """What is spent on the data set after this row, in the notion of its budget; 0 where that is nothing."""
        return amount(self._account.total(self.total))

    @property
    def left(self) -> Amount:
        """Budget left after this row; 0 where that is nothing."""
        return amount(self._account.left(self.total))

    @property
    def _account(self) -> Account:
        return account_of(self.granted if isinstance(self.granted, Notion) else Pure(self.granted))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON: the time as ISO text, amounts as numbers, or as texts of notions."""
        amounts = {name: plain(getattr(self, name)) for name in ("epsilon", "granted", "spent", "left")}
        kept = {name: value for name, value in vars(self).items() if name != "total"}
        return {**kept, "time": self.time.isoformat(), **amounts}


def plain(amount: Amount) -> float | str:
    """An amount in JSON: an epsilon as a number, as ever, every other notion as its text."""
    return amount.text if isinstance(amount, Notion) else float(amount)


@dataclass
class HashChain:
    """The rows from 1 on, all found in order.

    Guarantees: after ``extend`` has accepted rows 1..k, they are exactly k consecutive linked rows, their totals
    are the sums of their charges, each release follows the one charge of its request, and each advance of a stream
    follows its release and the advance before it. After ``finish`` the pin is one of them.
    """

    ledger: str
    head: Head = EMPTY
    pin: Head = EMPTY
    """A row that must be among them, noted before."""
    granted: dict[str, Notion] = field(default_factory=dict)
    spent: dict[str, str] = field(default_factory=dict)
    prices: dict[str, Counter[tuple[Notion, Protected]]] = field(default_factory=dict)
    protected: dict[str, Protected] = field(default_factory=dict)
    charges: dict[tuple[str, str | None], tuple[str, str]] = field(default_factory=dict)
    drawn: set[tuple[str, str | None]] = field(default_factory=set)
    released: set[tuple[str, str | None]] = field(default_factory=set)
    advanced: dict[tuple[str, str | None], tuple[int, int, str]] = field(default_factory=dict)
    read: Any = field(default_factory=hashlib.sha256)
    """sha256 over the rows as they were read, by which they are known again."""

    def extend(self, row: LedgerRow) -> None:
        """Accept the next row or say what is wrong with it."""
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
            self.protected[row.dataset] = self.granted_for(row) or Protected()
        if row.kind == "charge":
            self.prices.setdefault(row.dataset, Counter())[row.price, row.protected] += 1
        self.head = Head(row.sequence, row.hash)
        if self.pin.rows == self.head.rows and self.pin != self.head:
            raise self.broken(self.pin.rows, f"is not the one that the fingerprint {self.pin.fingerprint!r} pins")
        self.read.update(row.as_read())

    def finish(self, head: Head) -> None:
        """Compare what was read with the head record."""
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
        """What contradicts the rows before, if anything. Only a forger who recomputes hashes gets here."""
        if problem := self.wrong_amounts(row):
            return problem
        budget, account = row.budget, row.account
        before = self.granted.get(row.dataset)
        spent = self.spent.get(row.dataset, account.nothing)
        if row.kind in ("grant", "charge") and row.release is not None and (problem := self.wrong_document(row)):
            return problem
        if row.kind == "grant":
            now = self.granted_for(row)
            if now is None:
                return "is a grant for neighbours that nobody knows"
            unchanged = before == budget and now == self.protected.get(row.dataset)
            try:
                expected = spent if unchanged else account.of(counted(self.prices.get(row.dataset, {}), now))
            except Inconvertible:
                return "is a grant into which earlier charges do not convert"
            return None if budget == row.price and account.same(row.spent, expected) else "is a grant with wrong totals"
        if before is None:
            return f"is a {row.kind} on a data set without a grant"
        if budget != before:
            return "changes the budget without a grant"
        if row.kind == "charge":
            asked = Protected().after(row.about)
            if asked is None:
                return "is a charge for neighbours that nobody knows"
            try:
                ((price, _),) = counted({(row.price, asked): 1}, self.protected[row.dataset]).items()
                adds_up = account.same(row.spent, account.after(spent, price))
            except Inconvertible:
                return "is a charge that does not convert into the budget"
            return self.wrong_charge(row, adds_up)
        if row.kind in ("draw", "release"):
            return self.wrong_release(row, spent == row.spent)
        if row.kind.startswith("advance"):
            return self.wrong_advance(row, spent == row.spent)
        return f"is of the unknown kind {row.kind!r}"

    def granted_for(self, row: LedgerRow) -> Protected | None:
        """What a data set's budget protects after a grant; None where that cannot be read."""
        return self.protected.get(row.dataset, Protected()).after(row.about)

    def wrong_amounts(self, row: LedgerRow) -> str | None:
        """What is wrong with the texts of the amounts, or with their sizes; of (epsilon, delta) see ``finish``."""
        if (epsilon := canonical(row.epsilon)) is not None and epsilon <= 0:
            return "holds an epsilon that is not positive"
        budget = price_of(row.granted)
        if price_of(row.epsilon) is None or budget is None or not account_of(budget).reads(row.spent):
            return "holds an amount that is not a fraction in lowest terms, nor a notion as it is written"
        if not isinstance(account_of(budget), Composed) and not account_of(budget).fits(row.spent):
            return "spends more than was granted"
        return None

    def wrong_charge(self, row: LedgerRow, adds_up: bool) -> str | None:
        key = (row.dataset, row.request)
        if not adds_up:
            return "does not add its epsilon to the running total"
        if row.request is None or row.design is None:
            return "is a charge without a request or a design"
        if key in self.charges:
            return f"charges the request {row.request!r} a second time"
        self.charges[key] = row.epsilon, row.design
        return None if "draw" in row.about else "is a charge without its draw"

    def wrong_release(self, row: LedgerRow, adds_up: bool) -> str | None:
        """Of a release, and of what is drawn between the charge and it."""
        key = (row.dataset, row.request)
        charge = self.charges.get(key)
        if not adds_up:
            return f"is a {row.kind} that changes the running total"
        if charge is None:
            return f"is a {row.kind} without its charge"
        if charge != (row.epsilon, row.design):
            return f"is a {row.kind} of something else than was charged"
        if key in self.released:
            return f"is a {row.kind} after the release of the request {row.request!r}"
        if row.kind == "release":
            self.released.add(key)
            return self.wrong_document(row)
        if key in self.drawn:
            return f"is a second draw after the charge of the request {row.request!r}"
        self.drawn.add(key)
        return self.wrong_document(row) or (None if "draw" in row.about else "is a draw that says nothing was drawn")

    def wrong_document(self, row: LedgerRow) -> str | None:
        try:
            document = json.loads(row.release or "")
        except ValueError:
            document = None
        return None if isinstance(document, dict) else f"is a {row.kind} that is not a JSON object"

    def wrong_advance(self, row: LedgerRow, adds_up: bool) -> str | None:
        key = (row.dataset, row.request)
        charge, (steps, position, mark) = self.charges.get(key), self.advanced.get(key, (0, 0, ""))
        if not adds_up:
            return "is an advance that changes the running total"
        if charge is None or key not in self.released:
            return "is the advance of a stream that never began"
        if charge != (row.epsilon, row.design):
            return "is an advance of something else than was charged"
        if row.kind != ADVANCE.format(steps + 1):
            return "is an advance out of turn"
        try:
            document = json.loads(row.release or "")
            now, after, new = (document[name] for name in ("position", "after", "mark"))
        except (ValueError, TypeError, KeyError):
            return "is an advance that does not say from where to where"
        if type(now) is not int or now < position:
            return "is an advance that goes back"
        if after != mark or not isinstance(new, str):
            return "is an advance from elsewhere than where the stream was"
        self.advanced[key] = steps + 1, now, new
        return None

    def broken(self, sequence: int, problem: str) -> LedgerTampered:
        return LedgerTampered(f"Row {sequence} of the ledger {self.ledger} {problem}.", sequence)
