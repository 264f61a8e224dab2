"""Keys: the values of a unit, an order or a group, which say whose a row is, when it was made and in which group it is.

Keys are compared but never scored. :class:`Selection` holds the columns that the user names. :class:`Keys` holds the
values of one such column, read exactly and never as floats: two long identity numbers must not become one.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from privatest.errors import InvalidData, shown
from privatest.numbers import Integers, suggestion

Truths = npt.NDArray[np.bool_]

CLOCK = re.compile(r"(?P<clock>[0-9]{2}:[0-9]{2}(:[0-9]{2})?)(?P<fraction>\.[0-9]*)?(?P<zone>Z|[+-][0-9:]+|)", re.ASCII)
"""The time of day in a text of ISO form."""
LONGEST = 200
"""The most characters of a text that are released as a key."""
DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
"""A decimal number as CSV files hold it."""
NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
"""What programs write for NaN and infinity."""


class ColumnNames(NamedTuple):
    """Names of the columns to read. The table has each of them exactly once."""

    record: str
    unit: str | None = None
    order: str | None = None
    group: str | None = None

    def distinct(self) -> list[str]:
        """Return every name once."""
        return list(dict.fromkeys(name for name in self if name is not None))


@dataclass(frozen=True)
class Selection:
    """The columns that the user names, and how many rows of one unit count.

    Attributes:
        column: the column of the records; None: the only one that is not named otherwise.
        unit: the column that says whose a row is; None: every row is a person of its own.
        most: the most records that the rows of one unit count as; None exactly if there is no unit.
        order: the column that gives the order of the rows.
        group: the column that divides the rows into groups.
    """

    column: str | None = None
    unit: str | None = None
    most: int | None = None
    order: str | None = None
    group: str | None = None

    def by_word(self) -> dict[str, str]:
        """Return the columns that the user named, by argument."""
        words = {"column": self.column, "unit": self.unit, "order": self.order, "group": self.group}
        return {word: name for word, name in words.items() if name is not None}

    def of(self, names: Sequence[str], where: str, *, apart: bool = True) -> ColumnNames:
        """Return the columns to read. Raises InvalidData for a name that the table does not have exactly once.

        Args:
            names: names of the table's columns.
            where: what messages call the table.
            apart: whether the table keeps names apart from rows. A text file keeps them in its first line, which is a
                record if somebody forgot to write the names, so then no message quotes any of them.
        """
        keys = [
            None if name is None else _existing_column(names, name, where, apart)
            for name in (self.unit, self.order, self.group)
        ]
        rest = [name for name in names if name not in keys]
        if self.column is None and len(rest) != 1:
            raise InvalidData(
                f"{where[0].upper()}{where[1:]}: {len(rest)} columns. Say which one holds the records: column=..."
            )
        record = rest[0] if self.column is None else _existing_column(names, self.column, where, apart)
        for word, key in zip(("unit", "order", "group"), keys, strict=True):
            if key == record:
                raise InvalidData(
                    f"{word}={key!r} is the column of the records too. Whose a record is, when it was made and in "
                    "which group it is must not depend on what it holds: name another column."
                )
        return ColumnNames(record, *keys)


def _existing_column(names: Sequence[str], name: Any, where: str, apart: bool) -> str:
    times = list(names).count(str(name))
    if times == 0 and not apart:
        raise InvalidData(
            f"No column {shown(name)} in the first line of {where}, which must name the columns. That line is not "
            "shown here: in a file that lacks it, it is a record."
        )
    if times == 0:
        raise InvalidData(f"No column {shown(name)} in {where}.{suggestion(str(name), names)}")
    if times > 1:
        raise InvalidData(f"{times} columns of {where} are called {shown(name)}. Rename all but one.")
    return str(name)


@dataclass(frozen=True, eq=False)
class Keys:
    """The keys of one column.

    Attributes:
        values: 64-bit integers or floats; where ``distinct`` is given, positions in it.
        present: False where the key is missing (NULL, NaN).
        distinct: the keys that ``values`` points to, any hashable objects.
        untyped: whether the keys are fields of a text file, among which numbers sort as numbers.
        times: NumPy's name of the type, such as "datetime64[us]", if the values are dates, times or durations; else "".
        zone: the time zone that is written after such a time, if it is known; else "".
    """

    values: npt.NDArray[Any] = field(repr=False)
    present: Truths = field(repr=False)
    distinct: Sequence[Any] | None = field(default=None, repr=False)
    untyped: bool = False
    times: str = ""
    zone: str = ""

    def at(self, rows: slice | Truths) -> Keys:
        """Return the keys of some of the rows."""
        return replace(self, values=self.values[rows], present=self.present[rows])


def keys_of_array(values: npt.NDArray[Any], missing: Truths | None = None) -> Keys:
    """Return the keys of a NumPy array of numbers, booleans or times."""
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
    times = str(values.dtype) if kind in "mM" else ""
    truths = (False, True) if kind == "b" else None
    return Keys(whole, present if missing is None else present & ~missing, truths, times=times)


def keys_of_objects(values: Iterable[Any]) -> Keys:
    """Return the keys of Python objects. None, NaN and objects that are not hashable are missing keys."""
    distinct: dict[Any, int] = {}

    def position(value: Any) -> int:
        try:
            if value is None or value != value:
                return -1
            return distinct.setdefault(value, len(distinct))
        except Exception:  # the object's own code may raise anything: that key is missing
            return -1

    codes = np.array([position(value) for value in values], dtype=np.int64)
    return Keys(np.maximum(codes, 0), codes >= 0, list(distinct))


def group_codes(keys: Keys, numbers: dict[str, int]) -> Integers:
    """Return the number of each row's group in ``numbers``, to which new names are added; -1 for no group."""
    distinct, places = np.unique(keys.values[keys.present], return_inverse=True)
    names = [_name_of_group(keys, value) for value in distinct]
    codes = np.array([-1 if name is None else numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
    result = np.full(len(keys.values), -1, dtype=np.int64)
    result[keys.present] = codes[places.reshape(-1)]
    return result


def _name_of_group(keys: Keys, value: Any) -> str | None:
    if keys.distinct is None:
        return group_name(time_text(keys, value) if keys.times else value.item())
    return group_name(keys.distinct[int(value)], untyped=keys.untyped)


def group_name(key: Any, *, untyped: bool = False) -> str | None:
    """Return the name of a group, None for no group. Only fields of CSV files lose the blanks around them.

    >>> group_name("b "), group_name(b" b ", untyped=True), group_name(b" ", untyped=True)
    ('b ', 'b', None)
    >>> group_name(2.0), group_name(True)
    ('2', 'True')
    """
    try:
        if isinstance(key, bytes):
            key = key.decode("utf-8", "replace")
        if isinstance(key, str):
            return (key.strip() or None) if untyped else key
        if isinstance(key, bool | np.bool_):
            return str(bool(key))
        plain = plain_key(key)
        return str(key if plain is None else plain)
    except Exception:  # the key's own code may raise anything: its row is in no group
        return None


@dataclass(eq=False)
class UnitCodes:
    """Gives each unit a 64-bit code, the same in all parts of a source. Numbers are their own codes.

    Where a column holds numbers and texts, as pandas reads long CSV files in parts, units are compared by what they
    say: 7 and "7" are one unit. To take two units for one costs rows; to take one for two would cost privacy.
    """

    code_of: dict[Any, int] = field(default_factory=dict, repr=False)
    _listed: Any = field(default=None, repr=False)
    _mixed: bool = False

    def codes(self, keys: Keys) -> Integers:
        """Return the codes of the keys that are present."""
        values = keys.values[keys.present]
        if keys.distinct is None:
            return np.asarray(values.view(np.int64))
        if self._listed is not keys.distinct:  # it is the same list for all parts of a column in memory
            kinds = {
                str if isinstance(key, str) else bytes if isinstance(key, bytes) else None for key in keys.distinct
            }
            self._listed, self._mixed = keys.distinct, len(kinds) > 1
        used = np.zeros(len(keys.distinct), dtype=np.bool_)
        used[values] = True
        lookup = np.full(len(keys.distinct), -1, dtype=np.int64)
        for place in np.flatnonzero(used).tolist():
            key = keys.distinct[place]
            if keys.untyped:
                key = _untyped_unit(key)
            elif self._mixed:
                plain = plain_key(key, untyped=isinstance(key, str | bytes))
                key = key if plain is None else plain
            lookup[place] = self.code_of.setdefault(key, len(self.code_of))
        return lookup[values.astype(np.intp)]


def _untyped_unit(field: bytes) -> int | float | bytes:
    """Return the unit that a field of a CSV file names. 7, 7.0 and 007 are one unit, as 0.0 and -0.0 are."""
    result: int | float | bytes = int(field) if field.isdigit() and len(field) < LONGEST else untyped_key(field)[1]
    return result


def time_text(keys: Keys, value: Any) -> str:
    text = str(np.int64(value).view(keys.times))
    return plain_time(text + keys.zone) if keys.times.startswith("datetime") else text


def plain_key(key: Any, *, untyped: bool = False) -> int | float | str | None:
    """Return a key as a number or a text for JSON; None for an object that is neither. Raises for no key."""
    try:
        if isinstance(key, bytes | bytearray):
            key = bytes(key).decode("utf-8", "replace")
        if untyped:
            number = untyped_number(key)
            key = key if number is None or number != number else number
        if isinstance(key, Decimal) and key.is_finite() and abs(key.adjusted()) >= LONGEST:
            return str(key)[:LONGEST]
        if isinstance(key, datetime.date | datetime.time):
            return plain_time(key.isoformat())
        if isinstance(key, str):
            return key.strip().encode("utf-8", "replace").decode()[:LONGEST]
        if isinstance(key, Integral | np.bool_):
            return int(key)
        if not isinstance(key, Decimal | Real):
            return None
        number = float(key)
        return int(number) if number == int(number) else number
    except Exception:  # infinite, NaN, or a user's own type, which may raise anything
        return _infinity_text(key)


def _infinity_text(key: Any) -> str | None:
    """Return infinity as a text, which JSON has no number for; None for any other key."""
    try:
        return {math.inf: "inf", -math.inf: "-inf"}.get(float(key))
    except Exception:
        return None


def plain_time(text: str) -> str:
    """Return a date or time in ISO form, without a midnight and without zeros at the end of a fraction.

    >>> plain_time("2009-03-01 00:00:00.000"), plain_time("2009-03-01T12:30:00.250000")
    ('2009-03-01', '2009-03-01T12:30:00.25')
    """
    day, _, hour = text.strip().replace(" ", "T", 1).partition("T")
    result = CLOCK.fullmatch(hour)
    if result is None:
        return text.strip()
    clock, fraction, zone = result["clock"], (result["fraction"] or "").rstrip("0").rstrip("."), result["zone"]
    if not zone and not fraction and clock in ("00:00", "00:00:00"):
        return day
    return (
        f"{day}T{clock}{fraction}{zone}{':00' if len(zone) == 3 else ''}"  # databases write whole hours without minutes
    )


def untyped_key(key: Any) -> tuple[Any, ...]:
    """Return what a CSV field sorts by: a number by its size, anything else by its text."""
    number = untyped_number(key)
    return (1, untyped_text(key).encode()) if number is None or number != number else (0, number)


def untyped_number(key: Any) -> int | float | None:
    """Return the number that a CSV field is written as, NaN and infinity included; None for any other text.

    >>> untyped_number(b" 007 "), untyped_number("1.5e3"), untyped_number(b"-Infinity"), untyped_number(b"x")
    (7, 1500.0, -inf, None)
    """
    text = untyped_text(key)
    if not DECIMAL.fullmatch(text):
        return float(text) if NOT_FINITE.fullmatch(text) else None
    # Integers stay exact: identity numbers and times in nanoseconds are longer than a double.
    return int(text) if len(text) < 400 and text.lstrip("+-").isdigit() else float(text)


def untyped_text(key: Any) -> str:
    return key.decode("utf-8", "replace").strip() if isinstance(key, bytes) else str(key).strip()
