"""Charged before released: how everything that runs on data asks a ledger first.

A ledger is anything with ``perform`` and ``released``, and with ``advance`` for streams: :class:`privatest.Ledger`.
It records the draw together with the charge; the release is made of the recorded draw alone. So whatever fails or is
killed, the noise of one request is drawn once. Where a second draw depends on the first one, the first is on record
before anything is computed from it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from privatest.addresses import DataAddress, address_of, reading_facts
from privatest.errors import InvalidInput, shown

LONGEST_SETTING = 200
ANYBODY = "*"
"""The unit of what names whose each record is, but no column of names: a stream, or records that were opened before."""
Draw = str | int | list[Any] | None
"""All that was drawn for one answer, ready for JSON: exact numbers as integers or as the text of a fraction.

It holds what may be released and nothing more: a noisy total, a level, an index, or the decision alone.
"""


@dataclass(frozen=True)
class Receipt:
    """What the ledger noted beside a release.

    Attributes:
        dataset, request: whose budget paid, and the request's name.
        recorded: when the release was recorded, in UTC.
        source: what was read for it; None where an older version did not note it.
        design: fingerprint of everything the release depends on besides the data.
        fingerprint: pins the ledger up to this release: ``ledger.verify(since=...)`` finds out whether any row before
            it was changed or removed since, if it is kept where the ledger's owner cannot change it.
        replayed: True where this answer was charged and drawn before: nothing was charged for it now.
        given: what was given to read this time.
        same_source: whether that is the same; None where nobody can tell.
        read: whether the data given now were read all the same: for the second step of an answer whose first one was
            drawn before, or because another run of this request was faster.
        converted: what was lost where the price is of another notion than the budget; None where nothing was.
    """

    dataset: str
    request: str
    recorded: datetime
    source: str | None
    design: str
    fingerprint: str
    replayed: bool = False
    given: str | None = None
    same_source: bool | None = None
    read: bool = False
    converted: str | None = None

    def __str__(self) -> str:
        return self.note

    @property
    def note(self) -> str:
        """One sentence for whoever reads the release."""
        when = f"{self.recorded:%Y-%m-%d %H:%M:%S} UTC"
        source = "data that were not noted" if self.source is None else repr(self.source)
        text = f"recorded on {when} as request {self.request!r} of data set {self.dataset!r}, for {source}"
        if self.converted is not None:
            text = f"{text}; {self.converted}"
        if not self.replayed:
            return text
        if self.read:
            return f"{text}; another run of this request had charged it before: nothing was charged for this one"
        now = "the data given now were not read"
        if self.same_source is False:
            same = self.given == self.source
            now = f"the data given now ({'another source called ' if same else ''}{self.given!r}) were not read"
        return f"{text}; nothing charged, {now}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        kept = {name: value for name, value in asdict(self).items() if name != "converted" or value is not None}
        return {**kept, "recorded": self.recorded.isoformat(), "note": self.note}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any] | None) -> Receipt | None:
        """The receipt that :meth:`to_dict` wrote; None for None."""
        if document is None:
            return None
        kept = {one.name: document[one.name] for one in fields(cls) if one.name != "converted"}
        kept["converted"] = document.get("converted")
        return cls(**{**kept, "recorded": datetime.fromisoformat(kept["recorded"]).astimezone(UTC)})


class RecordedRelease(dict[str, Any]):
    """A release as the ledger keeps it, with its receipt."""

    receipt: Receipt | None = None


class Recordable(Protocol):
    """What can be recorded: a frozen dataclass with a field ``receipt``."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""


R = TypeVar("R", bound=Recordable)


class NotionPrice(Protocol):
    """A price that is no epsilon: a notion of stability (:class:`privatest.privacy.Notion`)."""

    @property
    def text(self) -> str:
        """Short and exact."""


@dataclass(frozen=True)
class Charge:
    """One request to a ledger: whose budget pays, under which name, how much, for what.

    Attributes:
        price: epsilon, exactly, or a notion that is not pure; a ledger is asked for ``epsilon`` or ``privacy``.
        neighbours, unit: whom the price protects: "replace" or "add-remove", and the column that names the person.
    """

    ledger: Any
    dataset: str
    request: str
    price: Fraction | NotionPrice
    design: str
    asked: Mapping[str, Any]
    source: DataAddress
    neighbours: str = "replace"
    unit: str | None = None

    def earlier(self) -> dict[str, Any] | None:
        """The release of this request, if it was completed before: no new noise, no new charge."""
        found: dict[str, Any] | None = self.ledger.released(**self._arguments)
        return found

    def perform(
        self,
        draw: Callable[[], Draw],
        release: Callable[[Draw], Mapping[str, Any]],
        further: Callable[[Draw], Draw] | None = None,
    ) -> dict[str, Any]:
        """Record the draw with the charge, then make the release of it; both as they are on record, if they are."""
        more = {} if further is None else {"further": further}
        found: dict[str, Any] = self.ledger.perform(**self._arguments, draw=draw, release=release, **more)
        return found

    def advance(self, position: int, mark: str, after: str) -> None:
        """Note how far the stream that this request began was released, before any of it is put out."""
        self.ledger.advance(dataset=self.dataset, request=self.request, position=position, mark=mark, after=after)

    @property
    def _arguments(self) -> dict[str, Any]:
        named = {"ledger": None, "price": "epsilon" if isinstance(self.price, Fraction) else "privacy"}
        words = {named.get(field.name, field.name): getattr(self, field.name) for field in fields(self)}
        return {word: value for word, value in words.items() if word is not None}


def make_charge(
    ledger: Any,
    dataset: str | None,
    request: str | None,
    *,
    price: Fraction | NotionPrice | None,
    design: Callable[[], Mapping[str, Any]],
    simulated: bool,
    data: Any = None,
    told: Mapping[str, Any] | None = None,
    neighbours: str = "replace",
    unit: str | None = None,
) -> Charge | None:
    """The charge a user asks for; None without a ledger.

    Args:
        ledger: a ledger, or the path or URL of one that is there.
        price: epsilon, or a notion that is not pure; None where the release is not private, which no budget pays for.
        design: gives everything the release depends on besides the data, ready for JSON.
        data: what will be read, as the user passed it; only its name is looked at.
        told: settings by which a difference from an earlier request is named; None: the short ones of the design.
        neighbours, unit: whom the price protects, see :class:`Charge`.
    """
    named = {"dataset": dataset, "request": request}
    if ledger is None:
        for name, value in named.items():
            if value is not None:
                raise InvalidInput(f"{name}={shown(value)} was given without ledger=. Pass the ledger to charge.")
        return None
    if isinstance(ledger, str | os.PathLike):
        from privatest import Ledger  # an extra, which most runs do without

        ledger = Ledger(ledger, create=False)
    if not callable(getattr(ledger, "perform", None)) or not callable(getattr(ledger, "released", None)):
        raise InvalidInput(
            f"ledger must be a privatest.Ledger or its path, not a {type(ledger).__name__}. Open one: Ledger(path)."
        )
    for name, value in named.items():
        if value is None:
            raise InvalidInput(f"{name} is missing: a ledger charges a data set once for a request. Give {name}=...")
    if simulated:
        raise InvalidInput("ledger= and rng= were both given, but a simulation releases nothing. Give one of them.")
    if price is None:
        raise InvalidInput("ledger= was given, but this test is not private (epsilon=inf): no budget pays for it.")
    assert dataset is not None
    assert request is not None
    whole = {**design(), **reading_facts(data)}
    settings = _settings(whole if told is None else {"told": told})
    return Charge(
        ledger,
        dataset,
        request,
        price,
        fingerprint(whole),
        settings,
        address_of(data),
        neighbours=neighbours,
        unit=unit,
    )


def fingerprint(question: Mapping[str, Any]) -> str:
    """A name for a question: two have the same one iff they are the same, up to the tenth digit of a number.

    Guarantees nothing about what ``question`` leaves out: it must hold all that a release depends on besides the data.
    A short description of P and Q will do only where it is ``named`` (see :class:`privatest.hypotheses.Distribution`).
    """
    text = json.dumps(_with_nine_digits(question), sort_keys=True, allow_nan=False, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def charged(
    charge: Charge | None,
    draw: Callable[[], Draw],
    release: Callable[[Draw], R],
    read: Callable[[dict[str, Any]], R],
    further: Callable[[Draw], Draw] | None = None,
) -> R:
    """What ``release`` makes of the draw; where there is a charge, of the draw that is recorded with it.

    Args:
        charge: None where nobody pays.
        draw: reads the data and draws; not called where a draw is on record.
        release: makes the answer of a draw; not called where an answer is on record.
        read: restores an answer from its document.
        further: the draw with what is drawn after looking at it; called with a draw that is on record. None: no more.
    """
    if charge is None:
        drawn = draw()
        return release(drawn if further is None else further(drawn))

    def document(drawn: Draw) -> dict[str, Any]:
        kept = release(drawn).to_dict()
        return {name: value for name, value in kept.items() if name not in ("receipt", "replayed")}

    recorded = charge.perform(draw, document, further)
    found: Any = replace(read(recorded), receipt=getattr(recorded, "receipt", None))  # type: ignore[type-var]
    answer: R = found
    return answer


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The settings in which two requests differ, for people: "n 40 then, 50 now; ..."."""
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return "; ".join(f"{name} {before.get(name)!r} then, {now.get(name)!r} now" for name in names)


def _settings(design: Mapping[str, Any]) -> dict[str, Any]:
    """The short settings of a design, by name, without the tables: what a difference is named by."""
    found: dict[str, Any] = {}
    for name, value in design.items():
        inside = value.items() if isinstance(value, Mapping) else [(name, value)]
        found |= {key: entry for key, entry in inside if key != "format" and _short(entry)}
    return found


def _short(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= 2 and all(isinstance(entry, int | float) for entry in value)
    return value is None or isinstance(value, int | float) or (isinstance(value, str) and len(value) <= LONGEST_SETTING)


def _with_nine_digits(value: Any) -> Any:
    """The same with numbers of nine digits: the last ones may differ from machine to machine, and mean nothing."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, Mapping):
        return {key: _with_nine_digits(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_nine_digits(entry) for entry in value]
    return value
