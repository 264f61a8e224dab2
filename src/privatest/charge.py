"""Charged before released: how everything that runs on data asks a ledger first.

A ledger is anything with ``perform`` and ``released`` (see :class:`privatest.Ledger`). What needs no data, and what
only looks at the data's structure, is checked before the charge; the sum and the noise come after it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from privatest.errors import InvalidInput

__all__ = ["Charge", "charged", "fingerprint", "make_charge"]


class Released(Protocol):
    """What can be recorded."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""


R = TypeVar("R", bound=Released)


@dataclass(frozen=True)
class Charge:
    """One request to a ledger: whose budget pays, under which name, how much, for what."""

    ledger: Any
    dataset: str
    request: str
    epsilon: Fraction
    design: str

    def earlier(self) -> dict[str, Any] | None:
        """The release of this request, if it was completed before: no new noise, no new charge."""
        found: dict[str, Any] | None = self.ledger.released(
            dataset=self.dataset, request=self.request, epsilon=self.epsilon, design=self.design
        )
        return found

    def perform(self, compute: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """Charge, then compute, then record."""
        found: dict[str, Any] = self.ledger.perform(
            dataset=self.dataset, request=self.request, epsilon=self.epsilon, design=self.design, compute=compute
        )
        return found


def make_charge(
    ledger: Any,
    dataset: str | None,
    request: str | None,
    *,
    epsilon: Fraction | None,
    design: Callable[[], Mapping[str, Any]],
    simulated: bool,
) -> Charge | None:
    """The charge a user asks for; None without a ledger.

    Args:
        epsilon: None where the release is not private, which no budget pays for.
        design: gives everything the release depends on besides the data, ready for JSON.
    """
    named = {"dataset": dataset, "request": request}
    if ledger is None:
        for name, value in named.items():
            if value is not None:
                raise InvalidInput(f"{name}={value!r} was given without ledger=. Pass the ledger to charge.")
        return None
    if not callable(getattr(ledger, "perform", None)) or not callable(getattr(ledger, "released", None)):
        raise InvalidInput(f"ledger must be a privatest.Ledger, not a {type(ledger).__name__}. Open one: Ledger(path).")
    for name, value in named.items():
        if value is None:
            raise InvalidInput(f"{name} is missing: a ledger charges a data set once for a request. Give {name}=...")
    if simulated:
        raise InvalidInput("ledger= and rng= were both given, but a simulation releases nothing. Give one of them.")
    if epsilon is None:
        raise InvalidInput("ledger= was given, but this test is not private (epsilon=inf): no budget pays for it.")
    assert dataset is not None
    assert request is not None
    return Charge(ledger, dataset, request, epsilon, fingerprint(design()))


def fingerprint(question: Mapping[str, Any]) -> str:
    """A name for a question: two have the same one iff they are the same, up to the tenth digit of a number.

    Guarantees nothing about what ``question`` leaves out: it must hold all that a release depends on besides the data.
    A short description of P and Q will do only where it is ``named`` (see :class:`privatest.pairs.Distribution`).
    """
    text = json.dumps(_steady(question), sort_keys=True, allow_nan=False, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def charged(charge: Charge | None, compute: Callable[[], R], read: Callable[[dict[str, Any]], R]) -> R:
    """What ``compute`` gives, charged for first where there is a charge; ``read`` restores it from its document."""
    return compute() if charge is None else read(charge.perform(lambda: compute().to_dict()))


def _steady(value: Any) -> Any:
    """The same with numbers of nine digits: the last ones may differ from machine to machine, and mean nothing."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, Mapping):
        return {key: _steady(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_steady(entry) for entry in value]
    return value
