"""JSON documents: functions that write and read their fields, check their format, and say what is wrong with them."""

from __future__ import annotations

import base64
import contextlib
import datetime
import json
import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from privatest.errors import InvalidDocument, InvalidInput, shown
from privatest.numbers import Floats, Integers, suggestion

MOST_ENTRIES = 1 << 24
LARGEST = 10**100
"""The largest rational of a document."""
_WHOLE = 2**63
_FRACTION = re.compile(r"-?[0-9]{1,2000}(/[0-9]{1,2000})?")
"""A fraction; its digits are limited, so that no document makes an integer of unbounded size."""
_PLAIN = (bool, int, float, str)
_TAGGED: dict[str, tuple[type, Any, Any]] = {
    "decimal": (Decimal, str, Decimal),
    "fraction": (Fraction, str, Fraction),
    "datetime": (datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "bytes": (bytes, lambda b: base64.b64encode(b).decode(), base64.b64decode),
}


def label_to_json(label: Hashable) -> Any:
    """Return a label as JSON: texts, numbers and booleans as they are, others as ``{kind: text}``."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return {"tuple": [label_to_json(part) for part in label]}
    if isinstance(label, _PLAIN):
        return label
    for tag, (kind, write, _) in _TAGGED.items():  # datetime stands before date, its parent class
        if isinstance(label, kind):
            return {tag: write(label)}
    raise InvalidInput(
        f"A label of type {type(label).__name__} cannot be written to JSON. "
        "Use text, numbers, dates, bytes or tuples of them as labels."
    )


def label_from_json(document: Any) -> Hashable:
    """Return the label that :func:`label_to_json` wrote."""
    if isinstance(document, _PLAIN):
        return document
    if isinstance(document, dict) and len(document) == 1:
        ((tag, content),) = document.items()
        if tag == "tuple" and isinstance(content, list):
            return tuple(label_from_json(part) for part in content)
        if tag in _TAGGED:
            try:
                label: Hashable = _TAGGED[tag][2](content)
            except Exception:
                raise InvalidDocument(f"A label of kind {tag!r} cannot be read.") from None
            return label
    raise InvalidDocument("A label cannot be read.")


def runs_to_json(values: npt.NDArray[np.int64]) -> list[list[int]]:
    """Return ``[value, length]`` for each run of equal values."""
    starts = np.flatnonzero(np.diff(values, prepend=values[0] - 1))
    lengths = np.diff(starts, append=len(values))
    return [[int(values[start]), int(length)] for start, length in zip(starts, lengths, strict=True)]


def runs_from_json(runs: list[list[int]]) -> npt.NDArray[np.int64]:
    """Return the values that :func:`runs_to_json` wrote."""
    lengths = [integer_from_json(length, 1, MOST_ENTRIES) for _, length in runs]
    if sum(lengths) > MOST_ENTRIES:
        raise InvalidDocument("The table of scores has a run length out of range.")
    return np.repeat(integers_from_json([value for value, _ in runs]), lengths)


def integer_from_json(value: Any, least: int = -_WHOLE, most: int = _WHOLE - 1) -> int:
    """Return an integer in [least, most]; raise InvalidDocument for anything else, numbers and texts included."""
    if type(value) is not int or not least <= value <= most:
        raise InvalidDocument("An integer is missing or out of range.")
    return value


def integers_from_json(values: Any) -> npt.NDArray[np.int64]:
    """Return a list of 64-bit integers as an array."""
    if not isinstance(values, list):
        raise InvalidDocument("A list of integers is missing.")
    return np.array([integer_from_json(value) for value in values], dtype=np.int64)


def number_from_json(value: Any) -> float:
    """Return a finite number."""
    if type(value) not in (int, float) or not math.isfinite(value):
        raise InvalidDocument("A number is missing or not finite.")
    return float(value)


def numbers_from_json(values: Any) -> npt.NDArray[np.float64]:
    """Return a list of finite numbers as an array."""
    if not isinstance(values, list):
        raise InvalidDocument("A list of numbers is missing.")
    return np.array([number_from_json(value) for value in values], dtype=np.float64)


def fraction_from_json(text: Any) -> Fraction:
    """Return a rational written as "p" or "p/q", of at most 1e100 in size: what is computed from it fits a double."""
    try:
        if isinstance(text, str) and _FRACTION.fullmatch(text):
            value = Fraction(text)
            if abs(value) <= LARGEST:
                return value
            raise InvalidDocument("A rational must lie between -1e100 and 1e100.")
    except ZeroDivisionError:
        pass
    raise InvalidDocument('A rational must be written as "p" or "p/q".')


def document_from_json(text: Any) -> Any:
    """Return what a JSON text holds. NaN and infinities, which JSON does not have, raise InvalidDocument."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except InvalidDocument:
        raise
    except (TypeError, ValueError, RecursionError):
        raise InvalidDocument("The text is not JSON; is it cut short?") from None


def _refuse(constant: str) -> None:
    raise InvalidDocument(f"The document holds {constant}, which is no number of a test.")


def check_format(document: Any, expected: str, kind: str) -> None:
    """Raise InvalidDocument for a document of another kind or version; the message names both formats."""
    if isinstance(document, dict) and document.get("format") == expected:
        return
    result = document.get("format") if isinstance(document, dict) else type(document).__name__
    family, _, version = str(result).rpartition("/")
    remedy = ""
    if family and version.isdecimal() and family == expected.rpartition("/")[0]:
        remedy = " Read it with the version of privatest that wrote it, or design it again."
    raise InvalidDocument(f"Not a {kind} this version can read: format {shown(result)}, expected {expected!r}.{remedy}")


def check_fields(document: Any, written: Any, what: str) -> None:
    """Raise InvalidDocument for a field of a document that is not in ``written``, what was read from it.

    A field that nobody reads, misspelled or of another version, would be taken for one that holds.
    """
    if isinstance(document, dict) and isinstance(written, dict):
        for name, value in document.items():
            if name not in written:
                raise InvalidDocument(f"Unknown field {shown(name)} in {what}: remove it.")
            check_fields(value, written[name], what)
    elif isinstance(document, list) and isinstance(written, list):
        for value, same in zip(document, written, strict=False):
            check_fields(value, same, what)


@contextlib.contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn any error within the context into an InvalidDocument about ``what``."""
    try:
        yield
    except InvalidDocument:
        raise
    except InvalidInput as error:
        raise InvalidDocument(f"The document describes {what}, but it cannot be: {error}") from None
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
        raise InvalidDocument(f"A part of {what} cannot be read: {error!r}.") from None


def value_to_json(value: Any) -> Any:
    """Return a field's value as JSON.

    Numbers and texts stay as they are; fractions become texts, tuples and arrays lists. An object with a method
    ``to_dict`` is written by it, one whose class has ``from_text`` as its ``text``, any other dataclass by its fields.
    """
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, tuple):
        return [value_to_json(part) for part in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if hasattr(type(value), "from_text"):
        return value.text
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return fields_to_json(value) if is_dataclass(value) else value


def value_from_json(kind: Any, value: Any, name: str) -> Any:
    """Return what :func:`value_to_json` wrote, for a field ``name`` whose annotation is ``kind``."""
    parts, origin = get_args(kind), get_origin(kind)
    if kind in _READERS:
        try:
            return _READERS[kind](value)
        except InvalidDocument as error:
            raise InvalidDocument(f"{name}={shown(value)}: {error}") from None
    if origin is tuple:
        if len(parts) == 2 and parts[1] is Ellipsis and isinstance(value, list):
            parts = (parts[0],) * len(value)
        if not isinstance(value, list) or len(value) != len(parts):
            raise InvalidDocument(f"{name}={shown(value)} must be a list of {len(parts)} values.")
        return tuple(value_from_json(part, one, name) for part, one in zip(parts, value, strict=True))
    if origin is dict and isinstance(value, dict):
        return {key: value_from_json(parts[1], one, f"{name}.{key}") for key, one in value.items()}
    if parts:  # "X | None", with a value
        return value_from_json(next(part for part in parts if part is not NoneType), value, name)
    if kind is int and type(value) is not int:
        raise InvalidDocument(f"{name}={shown(value)} must be a whole number.")
    if (kind is str or hasattr(kind, "from_text")) and not isinstance(value, str):
        raise InvalidDocument(f"{name} must be a text.")
    if kind in (int, str):
        return value
    if kind is bool and isinstance(value, bool):
        return value
    if hasattr(kind, "from_text"):
        return kind.from_text(value)
    if hasattr(kind, "from_dict"):
        return kind.from_dict(value)
    if issubclass(kind, tuple):  # a NamedTuple
        return kind(*value_from_json(tuple[*get_type_hints(kind).values()], value, name))  # type: ignore[misc]
    if not isinstance(value, dict):
        raise InvalidDocument(f"{name}={shown(value)} must be an object with named fields.")
    kind = _named_class(kind, value, name)
    names = {one.metadata.get("key", one.name) for one in fields(kind)}
    for field in value:
        if field not in names and field != "kind":
            raise InvalidDocument(f"Unknown field {shown(field)} in {name}: remove it.")
    return kind(**fields_from_json(kind, value))


def fields_to_json(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON, by name or by the ``key`` in their metadata, and its ``kind`` if any.

    Fields that are None are left out.
    """
    values = {one.metadata.get("key", one.name): getattr(value, one.name) for one in fields(value)}
    written = {key: value_to_json(value) for key, value in values.items() if value is not None}
    return {"kind": value.kind, **written} if hasattr(type(value), "kind") else written


def fields_from_json(kind: Any, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a dataclass, read from what :func:`fields_to_json` wrote.

    Only a field whose default is None may be missing.
    """
    kinds, arguments = get_type_hints(kind), {}
    for one in fields(kind):
        key = one.metadata.get("key", one.name)
        if key in document:
            arguments[one.name] = value_from_json(kinds[one.name], document[key], key)
        elif one.default is not None:
            raise InvalidDocument(f"Field {key!r} is missing from a document of {kind.__name__}.")
    return arguments


def _named_class(kind: Any, document: dict[str, Any], name: str) -> Any:
    """Return the class itself or, if each of its subclasses has a ``kind``, the one that the document names."""
    named = _kinds_below(kind)
    if not named:
        return kind
    chosen = document.get("kind")
    if not isinstance(chosen, str) or chosen not in named:
        listed = ", ".join(map(repr, named))
        close = suggestion(str(chosen), named)
        raise InvalidDocument(f"{name} of kind={shown(chosen)} must be one of {listed}.{close}")
    return named[chosen]


def _kinds_below(kind: Any) -> dict[str, Any]:
    """Return all subclasses that have a ``kind`` of their own, by this kind."""
    named: dict[str, Any] = {}
    for one in kind.__subclasses__():
        named |= {one.kind: one} if "kind" in vars(one) else {}
        named |= _kinds_below(one)
    return named


_READERS: dict[Any, Callable[[Any], Any]] = {
    float: lambda value: float(value) if value in ("inf", "-inf") else number_from_json(value),
    Hashable: label_from_json,
    Fraction: fraction_from_json,
    Integers: integers_from_json,
    Floats: numbers_from_json,
}
