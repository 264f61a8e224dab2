"""One row of the ledger, as stored (:class:`Row`) and as read by people (:class:`Entry`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from privatest.addresses import Source
from privatest.charge import Receipt, Recorded
from privatest.errors import LedgerTampered
from privatest.ledger.amounts import unstored

__all__ = ["ADVANCE", "EMPTY", "FORMAT", "Entry", "Head", "Kind", "Row"]

Kind = Literal["grant", "charge", "release", "advance"]
ADVANCE = "advance {:012d}"
"""How the n-th advance of a stream is spelt in its row: the database itself then refuses a second n-th one."""

FORMAT = 1  # goes into every hash and into the head record
SOURCE = "privatest/source"
"""Where a recorded release names what was read for it: no release of the package has a field of this name."""


class Head(NamedTuple):
    """What the head record says: how many rows there are, and the hash of the newest."""

    rows: int
    hash: str


EMPTY = Head(0, "0" * 64)


class Row(NamedTuple):
    """A row as it lies in the database, amounts and time as text, so that the hash covers every character.

    ``release`` is a JSON document: of a release what was released, of a charge what was asked and of which source, of
    a grant which sources it covers, of an advance from where to where. Rows of older versions have it for releases
    and advances only.
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
        content = json.dumps(["privatest/ledger", FORMAT, *self[:-1]], ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(content.encode("ascii")).hexdigest()

    def sealed(self) -> Row:
        """This row with its hash."""
        return self._replace(hash=self.digest())

    def intact(self) -> bool:
        """Whether the hash is that of the content (a column edited to another type counts as edited)."""
        try:
            return self.hash == self.digest()
        except TypeError:
            return False

    def checked(self, ledger: str) -> Row:
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

    def recorded(self, given: Source | None, *, replayed: bool, read: bool = False) -> Recorded:
        """What was released, with its receipt; of a checked release row, for a request that was ``given`` this."""
        document = json.loads(self.release or "{}")
        source = document.pop(SOURCE, None) or {}
        found = Recorded(document)
        found.receipt = Receipt(
            dataset=self.dataset,
            request=self.request or "",
            recorded=datetime.fromisoformat(self.time),
            source=source.get("name"),
            design=self.design or "",
            fingerprint=f"{self.sequence}:{self.hash}",
            replayed=replayed,
            given=None if given is None else given.name,
            same_source=None if given is None else same(source, given),
            read=read,
        )
        return found

    def entry(self) -> Entry:
        """The same, for people. Call it on checked rows."""
        return Entry(
            sequence=self.sequence,
            time=datetime.fromisoformat(self.time),
            kind=self.kind.partition(" ")[0],  # type: ignore[arg-type]  # the hash is right, so it is one of the four
            dataset=self.dataset,
            request=self.request,
            epsilon=unstored(self.epsilon),
            design=self.design,
            granted=unstored(self.granted),
            spent=unstored(self.spent),
            release=None if self.kind in ("grant", "charge") else dict(self.recorded(None, replayed=True)),
            hash=self.hash,
            about=self.about,
        )


def same(noted: Mapping[str, Any], given: Source) -> bool | None:
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
        kind: "grant" (a budget was set), "charge" (epsilon was spent), "release" (its result was recorded) or "advance"
            (a stream was released further; nothing was spent).
        dataset: whose budget.
        request: name of the request; None for a grant.
        epsilon: the new budget (grant), or what the request cost.
        design: fingerprint of what was asked; None for a grant.
        granted: budget of the data set after this row.
        spent: epsilon spent on the data set after this row.
        release: the recorded release, for rows of that kind; of an advance, how far the stream was released.
        hash: sha256 over this row and the hash of the one before.
        about: what else was noted: of a grant ``covers``, of a charge ``asked`` and ``source``, of a release
            ``source``.
    """

    sequence: int
    time: datetime
    kind: Kind
    dataset: str
    request: str | None
    epsilon: Fraction
    design: str | None
    granted: Fraction
    spent: Fraction
    release: dict[str, Any] | None
    hash: str
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def left(self) -> Fraction:
        """Budget left after this row."""
        return self.granted - self.spent

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON: the time as ISO text, amounts as numbers."""
        amounts = {name: float(getattr(self, name)) for name in ("epsilon", "granted", "spent", "left")}
        return {**vars(self), "time": self.time.isoformat(), **amounts}
