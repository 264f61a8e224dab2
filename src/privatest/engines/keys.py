"""Columns that are compared but never scored: whose row it is (unit), and when it happened (order).

Both are read exactly, without a detour over floats: two long identity numbers must not become one.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest.vectors import Integers

__all__ = ["Coder", "Keys", "keys_of_array", "keys_of_objects", "ranks"]

Truths = npt.NDArray[np.bool_]

# An ordinary decimal number in text, as CSV files hold it.
DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


@dataclass(frozen=True, eq=False)
class Keys:
    """A column of keys.

    Attributes:
        values: 64-bit integers or floats; or, where ``distinct`` is given, positions in it.
        present: False where the key is missing (NULL, NaN).
        distinct: the keys that ``values`` points to, any hashable objects.
        loose: the keys are text without a type (CSV), in which numbers sort as numbers.
    """

    values: npt.NDArray[Any]
    present: Truths
    distinct: Sequence[Any] | None = None
    loose: bool = False

    def at(self, rows: slice | Truths) -> Keys:
        """The keys of some of the rows."""
        return Keys(self.values[rows], self.present[rows], self.distinct, self.loose)


def keys_of_array(values: npt.NDArray[Any], missing: Truths | None = None) -> Keys:
    """The keys of a NumPy array of numbers, truths or times."""
    kind = values.dtype.kind
    whole: npt.NDArray[Any]
    if kind in "mM":
        whole = values.astype(np.int64)
        present = ~np.isnat(values)
    elif kind == "f":
        whole = values.astype(np.float64) + 0.0  # -0.0 and 0.0 are one key
        present = ~np.isnan(whole)
    elif kind == "u" and values.dtype.itemsize == 8:
        whole, present = values.astype(np.uint64), np.ones(len(values), dtype=np.bool_)
    else:
        whole, present = values.astype(np.int64), np.ones(len(values), dtype=np.bool_)
    return Keys(whole, present if missing is None else present & ~missing)


def keys_of_objects(values: Iterable[Any]) -> Keys:
    """The keys of Python objects; what cannot be a key (missing, NaN, not hashable) is missing."""
    distinct: dict[Any, int] = {}
    found = [_place(distinct, value) for value in values]
    codes = np.array(found, dtype=np.int64)
    return Keys(np.maximum(codes, 0), codes >= 0, list(distinct))


def _place(distinct: dict[Any, int], value: Any) -> int:
    try:
        if value is None or value != value:
            return -1
        return distinct.setdefault(value, len(distinct))
    except Exception:  # a key's own code may raise anything: that key is missing
        return -1


@dataclass(eq=False)
class Coder:
    """Units to 64-bit codes, one for each unit, over all parts of a source. Numbers are their own codes."""

    known: dict[Any, int] = field(default_factory=dict)

    def codes(self, keys: Keys) -> Integers:
        """The codes of the keys that are present."""
        values = keys.values[keys.present]
        if keys.distinct is None:
            return np.asarray(values.view(np.int64))
        used = np.zeros(len(keys.distinct), dtype=np.bool_)
        used[values] = True
        lookup = np.full(len(keys.distinct), -1, dtype=np.int64)
        for place in np.flatnonzero(used).tolist():
            lookup[place] = self.known.setdefault(keys.distinct[place], len(self.known))
        return lookup[values.astype(np.intp)]


def ranks(parts: Sequence[Keys]) -> Integers:
    """The place of each key in ascending order, equal keys alike, missing ones last.

    Guarantees: only the keys of these rows count: what else ``distinct`` lists, of rows that are left out or of a
    dictionary that is larger than its column, moves no place.
    """
    if not parts:
        return np.empty(0, dtype=np.int64)
    present = np.concatenate([part.present for part in parts])
    values = [part.values[part.present] for part in parts]
    if parts[0].distinct is not None:
        values = _codes(parts, values)
    distinct, places = np.unique(np.concatenate(values), return_inverse=True)
    found = np.full(len(present), len(distinct), dtype=np.int64)
    found[present] = places.reshape(-1)
    return found


def _codes(parts: Sequence[Keys], values: Sequence[Integers]) -> list[Integers]:
    """The positions of the parts' keys, each in its own ``distinct``, as numbers that sort as the keys do."""
    used = [np.unique(positions) for positions in values]
    keys = []
    for part, positions in zip(parts, used, strict=True):
        assert part.distinct is not None
        sort_key = _loose_key if part.loose else _sort_key
        keys.append([sort_key(part.distinct[position]) for position in positions.tolist()])
    number = {key: code for code, key in enumerate(sorted({key for some in keys for key in some}))}
    codes = []
    for positions, known, some in zip(values, used, keys, strict=True):
        own = np.array([number[key] for key in some], dtype=np.int64)
        codes.append(own[np.searchsorted(known, positions)])
    return codes


def _sort_key(key: Any) -> tuple[Any, ...]:
    """Numbers before texts before all else; each key on its own, so that no key changes the order of the others."""
    try:
        if isinstance(key, Decimal) and key.is_finite() and abs(key.adjusted()) < 400:
            return (0, Fraction(key))  # exactly, as databases compare them
        if isinstance(key, (bool, int, float, Decimal, Real, np.bool_)):
            number = key if isinstance(key, int) else float(key)
            return (0, number)
        if isinstance(key, str):
            return (1, key.encode("utf-8", "surrogatepass"))
        if isinstance(key, bytes):
            return (1, key)
        if isinstance(key, datetime.datetime) and key.tzinfo is not None:
            key = key.astimezone(datetime.UTC)
        if isinstance(key, (datetime.date, datetime.time)):
            return (1, key.isoformat().encode())
    except Exception:
        return (2,)
    return (2,)


def _loose_key(key: Any) -> tuple[Any, ...]:
    """Of a field of a CSV file: a decimal number by its size, anything else (dates in ISO form too) by its text."""
    text = key.decode("utf-8", "replace").strip() if isinstance(key, bytes) else str(key).strip()
    if not DECIMAL.fullmatch(text):
        return (1, text.encode())
    # Whole numbers exactly: identity numbers and times in nanoseconds are longer than a double.
    return (0, int(text) if len(text) < 400 and text.lstrip("+-").isdigit() else float(text))
