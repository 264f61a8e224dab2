"""Orders: the values of the column that gives the order of rows, their ranks, and which orders are refused.

Rows sort by rank; among rows of one rank the score decides, so that every engine has one series. Equal values of the
order are ties. A tie on both sides of a block's end is refused (:func:`ties_error`), because one record could then
change two blocks. Texts sort by time only if all of them are of one ISO form; others are refused (:func:`check_order`).
Both look at the order alone, which is public, never at a record.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np

from privatest.engines.arrays import StreamRecords
from privatest.engines.key_columns import Keys, plain_key, time_text, untyped_key, untyped_number
from privatest.engines.records import NO_ENDS, Promise, block_ends, sums_of_blocks
from privatest.errors import InvalidData
from privatest.numbers import Integers
from privatest.scores import Score

_YEAR, _MONTH, _DAY = "[0-9]{4}", "(0[1-9]|1[0-2])", "(0[1-9]|[12][0-9]|3[01])"
_HOUR = r"([01][0-9]|2[0-4]):[0-5][0-9](:([0-5][0-9]|60)([.][0-9]+)?)?"
ISO = {
    "year": _YEAR,
    "month": f"{_YEAR}-{_MONTH}",
    "day": f"{_YEAR}-{_MONTH}-{_DAY}",
    "day, short": f"{_YEAR}{_MONTH}{_DAY}",
    "week": f"{_YEAR}-W(0[1-9]|[1-4][0-9]|5[0-3])",
    "hour": _HOUR,
    "time T": f"{_YEAR}-{_MONTH}-{_DAY}T{_HOUR}",
    "time": f"{_YEAR}-{_MONTH}-{_DAY} {_HOUR}",
    "time T, UTC": f"{_YEAR}-{_MONTH}-{_DAY}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z",
}
"""Forms of texts that sort by time if all of them have one form."""


def ties_error(order: str | None) -> InvalidData:
    """Return the error for equal values of the order on both sides of a block's end."""
    return InvalidData(
        f"Column {order!r} does not order the records: equal values lie on both sides of a block's end, so that one "
        "record could change two blocks. Order by a column without ties, or sort the rows yourself and leave order out."
    )


def check_order(order: str, forms: set[str]) -> None:
    """Raise InvalidData for an order of texts that may not sort by time."""
    if len(forms) > 1 or "" in forms:
        raise InvalidData(
            f"Column {order!r} orders by text: as texts, 31/01/2026 comes after 01/02/2026, and 10 before 9. (In "
            "memory and in files, texts that are all of one ISO form, such as 2026-01-31, are accepted.) Make it a "
            "column of dates, times or numbers, or say that the order of texts is meant: "
            "pt.data.read_as(data, text_order=True)."
        )


@dataclass(frozen=True, eq=False)
class OrderedRecords(StreamRecords):
    """All rows of a stream in the order of a column. Their scores and ranks are in memory, at 16 bytes a row."""

    order: str

    @property
    def promise(self) -> Promise:
        return Promise(positions="tied")

    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:
        scores, places = self._sorted(score)
        check_ends(places, ends, self.order)
        return scores

    def check_ends(self, ends: range) -> None:
        if not len(ends):
            return
        keys = [part.order for part in self.stream.parts() if part.order is not None]
        check_ends(np.sort(ranks(keys)), ends, self.order)

    @property
    def has_order_values(self) -> bool:
        return True

    def order_forms(self) -> set[str]:
        return order_forms(part.order for part in self.stream.parts() if part.order is not None)

    def order_values(self, places: Sequence[int]) -> list[int | float | str | None]:
        keys = [part.order for part in self.stream.parts() if part.order is not None]
        self._agree(sum(len(key.values) for key in keys))
        return keys_at(keys, places)

    def block_totals(self, score: Score, block: int, start: int = 0) -> list[int]:
        scores, places = self._sorted(score)
        check_ends(places, block_ends(len(scores), block, start), self.order)
        return sums_of_blocks(scores[start:], block)

    def _sorted(self, score: Score) -> tuple[Integers, Integers]:
        parts = [(part.records.series(score), part.order) for part in self.stream.parts()]
        scores = np.concatenate([np.empty(0, np.int64), *(result for result, _ in parts)])
        places = ranks([keys for _, keys in parts if keys is not None])
        self._agree(len(scores))
        by_order = np.lexsort((scores, places))
        return scores[by_order], places[by_order]


def check_ends(places: Integers, ends: range, order: str | None) -> None:
    """Raise InvalidData if rows on both sides of an end have equal ranks.

    Args:
        places: the rank of each row, in ascending order.
        ends: numbers of rows after which a block ends.
        order: the column, for the message.
    """
    at = np.arange(max(ends.start, 1), min(ends.stop, len(places)), ends.step)
    if np.any(places[at - 1] == places[at]):
        raise ties_error(order)


def _without_nan(keys: Keys) -> Keys:
    """Return keys as places of an order: NaN is a missing one in a CSV file, too, as it is in a column of numbers."""
    if not keys.untyped or keys.distinct is None:
        return keys
    numbers = [untyped_number(key) for key in keys.distinct]
    missing = np.array([number is not None and number != number for number in numbers], dtype=np.bool_)
    return replace(keys, present=keys.present & ~missing[keys.values]) if missing.any() else keys


def ranks(parts: Sequence[Keys]) -> Integers:
    """Return the rank of each key in ascending order. Equal keys have one rank, and missing ones the last.

    Guarantees: only the keys of these rows count. What else ``distinct`` lists, such as the keys of rows that are left
    out, changes no rank.
    """
    if not parts:
        return np.empty(0, dtype=np.int64)
    parts = [_without_nan(part) for part in parts]
    present = np.concatenate([part.present for part in parts])
    values = [part.values[part.present] for part in parts]
    if parts[0].distinct is not None:
        values = _codes(parts, values)
    distinct, places = np.unique(np.concatenate(values), return_inverse=True)
    result = np.full(len(present), len(distinct), dtype=np.int64)
    result[present] = places.reshape(-1)
    return result


def keys_at(parts: Sequence[Keys], places: Iterable[int]) -> list[int | float | str | None]:
    """Return the keys at these places of their ascending order, as numbers and texts; None for a missing one.

    Guarantees: raises for no key, whatever it is. Of equal keys any one is returned.
    """
    rows = np.argsort(ranks(parts), kind="stable")
    starts = np.cumsum([0, *(len(part.values) for part in parts)])
    result = []
    for place in places:
        row = int(rows[place])
        part = int(np.searchsorted(starts, row, side="right")) - 1
        result.append(_plain_at(_without_nan(parts[part]), row - int(starts[part])))
    return result


def _plain_at(keys: Keys, row: int) -> int | float | str | None:
    if not keys.present[row]:
        return None
    value = keys.values[row]
    if keys.distinct is not None:
        return plain_key(keys.distinct[int(value)], untyped=keys.untyped)
    return time_text(keys, value) if keys.times else plain_key(value.item())


def order_forms(parts: Iterable[Keys]) -> set[str]:
    """Return the forms of an order's keys; none if their type sorts by itself. See ``Records.order_forms``."""
    result: set[str] = set()
    for part in map(_without_nan, parts):
        if part.distinct is None:
            break
        result |= {_form(part.distinct[int(at)], part.untyped) for at in np.unique(part.values[part.present])}
    return result


def _form(key: Any, untyped: bool) -> str:
    try:
        if isinstance(key, bytes):
            key = key.decode("utf-8", "replace")
        if isinstance(key, str):
            key = str(key).strip() if untyped else str(key)
            return "number" if untyped and untyped_number(key) is not None else _iso_form(key)
        if isinstance(key, datetime.time):
            return "hour of a day"
        if isinstance(key, datetime.datetime) and key.tzinfo is not None:
            return "point in time"
        if isinstance(key, datetime.date):
            return "local time"
        return "number" if isinstance(key, Real | Decimal | np.bool_) else ""
    except Exception:  # the key's own code may raise anything: it has no form
        return ""


def _iso_form(text: str) -> str:
    """Return the form of a text in ISO format; "" for any other text. Databases compute the same."""
    return next((name for name, pattern in ISO.items() if re.fullmatch(pattern, text)), "")


def _codes(parts: Sequence[Keys], values: Sequence[Integers]) -> list[Integers]:
    """Return numbers that sort as the keys do, for positions in each part's ``distinct``."""
    used = [np.unique(positions) for positions in values]
    keys = []
    for part, positions in zip(parts, used, strict=True):
        assert part.distinct is not None
        sort_key = untyped_key if part.untyped else _sort_key
        keys.append([sort_key(part.distinct[position]) for position in positions.tolist()])
    number = {key: code for code, key in enumerate(sorted({key for some in keys for key in some}))}
    codes = []
    for positions, places, some in zip(values, used, keys, strict=True):
        own = np.array([number[key] for key in some], dtype=np.int64)
        codes.append(own[np.searchsorted(places, positions)])
    return codes


def _sort_key(key: Any) -> tuple[Any, ...]:
    """Return what a key sorts by: numbers first, then texts, then everything else. It depends on that key alone."""
    try:
        if isinstance(key, Decimal) and key.is_finite() and abs(key.adjusted()) < 400:
            return (0, Fraction(key))  # exact, as databases compare decimals
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
