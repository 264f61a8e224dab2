"""Noise read back from a document, strictly: what ``Noise.to_dict`` wrote and nothing else."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from privatest import _validate
from privatest.errors import InvalidDocument, InvalidInput, shown
from privatest.privacy.laplace import Laplace
from privatest.privacy.logistic import Logistic
from privatest.privacy.noise import Noise, NoNoise
from privatest.privacy.tulap import Tulap

__all__ = ["noise_from_dict"]

_KINDS: dict[str, type[Noise]] = {cls.kind: cls for cls in (Tulap, Laplace, Logistic, NoNoise)}
# Bounded: no document may ask for integers of unbounded size.
_RATIONAL = re.compile(r"([1-9][0-9]{0,999})/([1-9][0-9]{0,999})")


def noise_from_dict(document: Mapping[str, object]) -> Noise:
    """The noise that ``to_dict`` described.

    Guarantees: ``noise_from_dict(noise.to_dict()) == noise``, exactly; anything else is an InvalidDocument.

    >>> noise_from_dict({"kind": "laplace", "scale": "5/2"})
    Laplace(scale=Fraction(5, 2))
    """
    if not isinstance(document, Mapping):
        raise InvalidDocument(f"A noise document must be an object, not {type(document).__name__}.")
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        listed = ", ".join(repr(known) for known in _KINDS)
        close = _validate.suggestion(str(kind), _KINDS)
        raise InvalidDocument(f"Noise kind={shown(kind)} must be one of {listed}.{close}")
    # Typed Any: mypy knows no common constructor of the four.
    noise_class: Any = _KINDS[kind]
    fields = {field.name: field.type for field in dataclasses.fields(noise_class)}
    for name in document:
        if name != "kind" and name not in fields:
            raise InvalidDocument(f"Unknown field {name!r} in a noise of kind {kind!r}: remove it.")
    for name in fields:
        if name not in document:
            raise InvalidDocument(f"Field {name!r} is missing from a noise of kind {kind!r}.")
    arguments = {
        name: _integer(name, document[name]) if type_name == "int" else _rational(name, document[name])
        for name, type_name in fields.items()
    }
    try:
        noise: Noise = noise_class(**arguments)
    except InvalidInput as error:
        raise InvalidDocument(f"Noise of kind {kind!r}: {error}") from error
    return noise


def _integer(name: str, value: object) -> int:
    if type(value) is not int:
        raise InvalidDocument(f"Noise {name}={shown(value)} must be an integer.")
    return value


def _rational(name: str, value: object) -> Fraction:
    match = _RATIONAL.fullmatch(value) if isinstance(value, str) else None
    fraction = Fraction(int(match[1]), int(match[2])) if match else None
    if fraction is None or f"{fraction.numerator}/{fraction.denominator}" != value:
        raise InvalidDocument(f'Noise {name}={shown(value)} must be a positive "p/q" in lowest terms, such as "1/2".')
    return fraction
