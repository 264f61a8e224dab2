"""Reading the whole ledger again: every hash, every link, every sum.

What this finds: a row edited in any column, removed, inserted, moved or swapped, at the end too (the head
record holds the number of rows and the newest hash); a running total that is not the sum of the rows; a
release without its charge; two charges or two releases for one request; more spent than granted; a stream that goes
back, or from one mark to two.

What it cannot find: somebody who may write to the database and recomputes all later hashes and the head has
made another, consistent ledger; so has somebody who puts back an old copy of the whole database, or removes
it. Against both, note ``ledger.fingerprint()`` somewhere they cannot write and pass it to
``ledger.verify(since=...)``; what was added after the noted fingerprint stays open to them. On PostgreSQL,
give the role that runs requests no more than SELECT and INSERT on ``privatest_ledger_rows`` and SELECT and
UPDATE on ``privatest_ledger_head``: it can then add rows, and neither edit nor delete one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fractions import Fraction

from privatest.errors import LedgerTampered
from privatest.ledger.amounts import canonical
from privatest.ledger.rows import ADVANCE, EMPTY, Head, Row

__all__ = ["Chain"]


@dataclass
class Chain:
    """The rows from 1 on, all found in order.

    Guarantees: after ``extend`` has accepted rows 1..k, they are exactly k consecutive linked rows, their
    totals are the sums of their charges, each release follows the one charge of its request, and each advance of a
    stream follows its release and the advance before it.
    """

    ledger: str
    head: Head = EMPTY
    granted: dict[str, Fraction] = field(default_factory=dict)
    spent: dict[str, Fraction] = field(default_factory=dict)
    charges: dict[tuple[str, str | None], Row] = field(default_factory=dict)
    released: set[tuple[str, str | None]] = field(default_factory=set)
    advanced: dict[tuple[str, str | None], tuple[int, int, str]] = field(default_factory=dict)

    def extend(self, row: Row) -> None:
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
        self.granted[row.dataset] = canonical(row.granted) or Fraction(0)
        self.spent[row.dataset] = canonical(row.spent) or Fraction(0)
        self.head = Head(row.sequence, row.hash)

    def finish(self, head: Head) -> None:
        """Compare what was read with the head record."""
        if head.rows > self.head.rows:
            raise self.broken(self.head.rows + 1, f"is missing: the head record counts {head.rows} rows")
        if head.rows < self.head.rows:
            raise self.broken(head.rows + 1, f"was inserted: the head record counts {head.rows} rows")
        if head.hash != self.head.hash:
            raise self.broken(head.rows, "is not the row that the head record names")

    def wrong(self, row: Row) -> str | None:
        """What contradicts the rows before, if anything. Only a forger who recomputes hashes gets here."""
        epsilon, granted, spent = canonical(row.epsilon), canonical(row.granted), canonical(row.spent)
        if epsilon is None or granted is None or spent is None:
            return "holds an amount that is not a fraction in lowest terms"
        if epsilon <= 0:
            return "holds an epsilon that is not positive"
        if spent > granted:
            return "spends more than was granted"
        granted_before = self.granted.get(row.dataset)
        spent_before = self.spent.get(row.dataset, Fraction(0))
        if row.kind == "grant":
            wrong = "is a grant with wrong totals" if (granted, spent) != (epsilon, spent_before) else None
            return wrong or (None if row.release is None else self.wrong_document(row))
        if granted_before is None:
            return f"is a {row.kind} on a data set without a grant"
        if granted != granted_before:
            return "changes the budget without a grant"
        if row.kind == "charge":
            return self.wrong_charge(row, spent == spent_before + epsilon)
        if row.kind == "release":
            return self.wrong_release(row, spent == spent_before)
        if row.kind.startswith("advance"):
            return self.wrong_advance(row, spent == spent_before)
        return f"is of the unknown kind {row.kind!r}"

    def wrong_charge(self, row: Row, adds_up: bool) -> str | None:
        key = (row.dataset, row.request)
        if not adds_up:
            return "does not add its epsilon to the running total"
        if row.request is None or row.design is None:
            return "is a charge without a request or a design"
        if key in self.charges:
            return f"charges the request {row.request!r} a second time"
        self.charges[key] = row
        return None if row.release is None else self.wrong_document(row)

    def wrong_release(self, row: Row, adds_up: bool) -> str | None:
        key = (row.dataset, row.request)
        charge = self.charges.get(key)
        if not adds_up:
            return "is a release that changes the running total"
        if charge is None:
            return "is a release without its charge"
        if (charge.epsilon, charge.design) != (row.epsilon, row.design):
            return "is a release of something else than was charged"
        if key in self.released:
            return f"is a second release of the request {row.request!r}"
        self.released.add(key)
        return self.wrong_document(row)

    def wrong_document(self, row: Row) -> str | None:
        try:
            document = json.loads(row.release or "")
        except ValueError:
            document = None
        return None if isinstance(document, dict) else f"is a {row.kind} that is not a JSON object"

    def wrong_advance(self, row: Row, adds_up: bool) -> str | None:
        key = (row.dataset, row.request)
        charge, (steps, position, mark) = self.charges.get(key), self.advanced.get(key, (0, 0, ""))
        if not adds_up:
            return "is an advance that changes the running total"
        if charge is None or key not in self.released:
            return "is the advance of a stream that never began"
        if (charge.epsilon, charge.design) != (row.epsilon, row.design):
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
