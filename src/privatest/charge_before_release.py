"""Charged before released: how everything that runs on data uses a ledger.

A ledger is any object with ``perform`` and ``released``, and with ``advance`` for streams, as :class:`privatest.Ledger`
has them. It records the draw together with the charge, and the release is computed from the recorded draw alone. So the
noise of one request is drawn once, whatever fails or is killed. Where a second draw depends on the first one, the first
is recorded before anything is computed from it.
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

from privatest.data_addresses import DataAddress, address_of, reading_facts
from privatest.errors import InvalidInput, shown

LONGEST_SETTING = 200
ANYBODY = "*"
"""Unit of records whose persons are named, but not by a column: of a stream, or of records that were open already."""
Draw = str | int | list[Any] | None
"""Everything that was drawn for one answer, as JSON has it; exact numbers are integers or texts of fractions.

It holds what may be released and nothing else: a noisy total, a level, an index, or only the decision.
"""


@dataclass(frozen=True)
class Receipt:
    """What the ledger recorded about a release.

    Attributes:
        dataset, request: the data set that paid, and the request's name.
        recorded: when the release was recorded, in UTC.
        source: what was read for it; None if no source was recorded.
        design: fingerprint of everything the release depends on besides the data.
        fingerprint: pins the ledger up to this release. If it is kept where the ledger's owner cannot change it,
            ``ledger.verify(since=...)`` finds out whether any row up to it was changed or removed.
        replayed: whether this answer was charged and drawn before, so that nothing was charged now.
        given: the source that was given this time.
        same_source: whether that is the recorded source; None if it cannot be known.
        read: whether the data given now were read although the answer was charged before: for its second step, or
            because another run of this request was faster.
        converted: what was lost by converting the price into the budget's notion; None if nothing was.
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
        """One sentence about the receipt."""
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
        """Return plain values for JSON."""
        document = {name: value for name, value in asdict(self).items() if name != "converted" or value is not None}
        return {**document, "recorded": self.recorded.isoformat(), "note": self.note}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any] | None) -> Receipt | None:
        """Return the receipt that :meth:`to_dict` wrote; None for None."""
        if document is None:
            return None
        values = {one.name: document[one.name] for one in fields(cls) if one.name != "converted"}
        values["converted"] = document.get("converted")
        return cls(**{**values, "recorded": datetime.fromisoformat(values["recorded"]).astimezone(UTC)})


class RecordedRelease(dict[str, Any]):
    """A release as the ledger recorded it, with its receipt."""

    receipt: Receipt | None = None


class Recordable(Protocol):
    """A release that can be recorded: a frozen dataclass with a field ``receipt``."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""


R = TypeVar("R", bound=Recordable)


class NotionPrice(Protocol):
    """A price that is not an epsilon: a notion of stability (:class:`privatest.privacy.Notion`)."""

    @property
    def text(self) -> str:
        """Short and exact text of the notion."""


@dataclass(frozen=True)
class Charge:
    """One request to a ledger.

    Attributes:
        ledger: the ledger.
        dataset, request: the data set that pays, and the request's name.
        price: an exact epsilon, or a notion that is not pure; the ledger gets it as ``epsilon`` or ``privacy``.
        design: fingerprint of everything the release depends on besides the data.
        settings: the design's settings by name.
        source: what is read.
        neighbours, unit: whom the price protects: "replace" or "add-remove", and the column that names the person.
    """

    ledger: Any
    dataset: str
    request: str
    price: Fraction | NotionPrice
    design: str
    settings: Mapping[str, Any]
    source: DataAddress
    neighbours: str = "replace"
    unit: str | None = None

    def earlier(self) -> dict[str, Any] | None:
        """Return the release of this request if it was completed before, without noise or charge; else None."""
        result: dict[str, Any] | None = self.ledger.released(**self._arguments)
        return result

    def perform(
        self,
        draw: Callable[[], Draw],
        release: Callable[[Draw], Mapping[str, Any]],
        further: Callable[[Draw], Draw] | None = None,
    ) -> dict[str, Any]:
        """Record the draw with the charge and compute the release from it; what is recorded already is used again."""
        more = {} if further is None else {"further": further}
        result: dict[str, Any] = self.ledger.perform(**self._arguments, draw=draw, release=release, **more)
        return result

    def advance(self, position: int, mark: str, after: str) -> None:
        """Record how far the stream that this request began was released, before any of it is shown."""
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
    settings: Mapping[str, Any] | None = None,
    neighbours: str = "replace",
    unit: str | None = None,
) -> Charge | None:
    """Return the charge for what a user passed; None without a ledger.

    Args:
        ledger: a ledger, or the path or URL of an existing one.
        dataset, request: the data set that pays, and the request's name.
        price: an exact epsilon, or a notion that is not pure; None if the release is not private, which no budget pays.
        design: returns everything the release depends on besides the data, as JSON has it.
        simulated: whether the user gave the randomness.
        data: what will be read, as the user passed it; only its name is used.
        settings: settings that describe how an earlier request differs; None: the short ones of the design.
        neighbours, unit: whom the price protects, see :class:`Charge`.
    """
    named = {"dataset": dataset, "request": request}
    if ledger is None:
        for name, value in named.items():
            if value is not None:
                raise InvalidInput(f"{name}={shown(value)} was given without ledger=. Pass the ledger to charge.")
        return None
    if isinstance(ledger, str | os.PathLike):
        from privatest import Ledger  # an extra, which most runs do not need

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
    short = _settings(whole if settings is None else {"settings": settings})
    return Charge(
        ledger,
        dataset,
        request,
        price,
        fingerprint(whole),
        short,
        address_of(data),
        neighbours=neighbours,
        unit=unit,
    )


def fingerprint(question: Mapping[str, Any]) -> str:
    """Return a fingerprint of a question. Two are equal exactly if the questions are, up to nine digits of a number.

    ``question`` must hold everything that a release depends on besides the data. A short description of P and Q is
    enough only if it is ``named`` (see :class:`privatest.hypotheses.Distribution`).
    """
    text = json.dumps(_with_nine_digits(question), sort_keys=True, allow_nan=False, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def run_charged(
    charge: Charge | None,
    draw: Callable[[], Draw],
    release: Callable[[Draw], R],
    read: Callable[[dict[str, Any]], R],
    further: Callable[[Draw], Draw] | None = None,
) -> R:
    """Return what ``release`` computes from the draw; with a charge, from the draw that is recorded with it.

    Args:
        charge: the request to the ledger; None: nothing is charged.
        draw: reads the data and draws; not called if a draw is recorded.
        release: computes the answer from a draw; not called if an answer is recorded.
        read: restores an answer from its document.
        further: returns the draw together with what is drawn after looking at it; it gets a recorded draw. None: there
            is no second draw.
    """
    if charge is None:
        drawn = draw()
        return release(drawn if further is None else further(drawn))

    def document(drawn: Draw) -> dict[str, Any]:
        values = release(drawn).to_dict()
        return {name: value for name, value in values.items() if name not in ("receipt", "replayed")}

    recorded = charge.perform(draw, document, further)
    result: Any = replace(read(recorded), receipt=getattr(recorded, "receipt", None))  # type: ignore[type-var]
    answer: R = result
    return answer


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return the settings in which two requests differ, for messages: "n 40 then, 50 now; ..."."""
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return "; ".join(f"{name} {before.get(name)!r} then, {now.get(name)!r} now" for name in names)


def _settings(design: Mapping[str, Any]) -> dict[str, Any]:
    """Return the short settings of a design by name, without its tables."""
    result: dict[str, Any] = {}
    for name, value in design.items():
        inside = value.items() if isinstance(value, Mapping) else [(name, value)]
        result |= {key: entry for key, entry in inside if key != "format" and _short(entry)}
    return result


def _short(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= 2 and all(isinstance(entry, int | float) for entry in value)
    return value is None or isinstance(value, int | float) or (isinstance(value, str) and len(value) <= LONGEST_SETTING)


def _with_nine_digits(value: Any) -> Any:
    """Return the same with floats of nine digits, because the last digits may differ between machines."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, Mapping):
        return {key: _with_nine_digits(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_nine_digits(entry) for entry in value]
    return value
