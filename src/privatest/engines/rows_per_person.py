"""Persons with several rows: what one of them contributes, and records in memory or files joined by unit.

A unit (a person) with m rows counts as at most k records, and every row counts alike. Where scores are summed, each of
its rows has the weight min(1, k/m), so the person's part is the sum of the scores, scaled to k rows. The sum over all
persons is exact and is rounded once (:func:`sum_of_persons`). No row is chosen by what it holds, so the mean is right
whatever m is. Counts of cells cannot be scaled, because what is computed from them needs whole records: there k of the
m rows are drawn without looking at them, by the caller, who has the randomness (:class:`Surplus`).

Where positions matter the rule is another one (:class:`PlacedRecords`): the first k rows of each unit count, and every
other row stays in its place and counts as an odd record. The rule uses only whose rows are and when they were made,
never what they hold, so one person's rows do not move those of others.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest.engines.arrays import RowStream, StreamedRecords, StreamRecords
from privatest.engines.key_columns import Keys, UnitCodes, group_codes, plain_key
from privatest.engines.orders_and_ties import OrderedRecords, ranks
from privatest.engines.records import (
    Column,
    Promise,
    Surplus,
    index_score,
)
from privatest.numbers import Integers
from privatest.scores import Cells, Score

Truths = npt.NDArray[np.bool_]


GATHER = 1 << 21
"""Number of pairs of unit and score that are gathered before they are counted and merged."""


@dataclass(frozen=True, eq=False)
class UnitRecords(StreamedRecords):
    """The rows of a stream, at most ``most`` for each unit. Rows without a unit do not count.

    Sums take 24 bytes of memory for each distinct pair of unit and score, and a table of the units if these are texts.
    """

    most: int
    order: str | None = None

    @property
    def promise(self) -> Promise:
        return Promise(self.most, "joined")

    def in_places(self) -> PlacedRecords:
        return PlacedRecords(self.stream, self.order, turns=Turns(self.most))

    def is_shared(self) -> bool:
        coder, tally = UnitCodes(), _PairCounts()
        numbers: dict[str, int] = {}
        for part in self.stream.parts():
            assert part.unit is not None
            assert part.group is not None
            groups = group_codes(part.group, numbers)
            rows = part.unit.present & (groups >= 0)
            tally.add(coder.codes(part.unit.at(rows)), groups[rows])
        units, _, _ = tally.merged()
        return bool(np.any(units[1:] == units[:-1]))

    def _rows(self) -> int:
        _, _, counts = self._tally(lambda records: np.zeros(records.count(), dtype=np.int64))
        return int(np.minimum(counts, self.most).sum())

    def _sum(self, score: Score) -> tuple[int, Fraction]:
        units, scores, counts = self._tally(lambda records: records.series(score))
        _, sizes = _rows_of_persons(units, counts)
        order = np.argsort(sizes, kind="stable")
        sizes, scores, counts = sizes[order], scores[order], counts[order]
        first = np.flatnonzero(np.append(True, sizes[1:] != sizes[:-1])[: len(sizes)])
        if max(abs(score.low), abs(score.high)) * int(counts.sum()) < 1 << 63:
            sums = np.add.reduceat(scores * counts, first).tolist() if len(first) else []
        else:
            pairs = [one * times for one, times in zip(scores.tolist(), counts.tolist(), strict=True)]
            sums = [sum(pairs[start:end]) for start, end in itertools.pairwise([*first.tolist(), len(pairs)])]
        rows = np.add.reduceat(counts, first).tolist() if len(first) else []
        return sum_of_persons(zip(sizes[first].tolist(), rows, sums, strict=True), self.most)

    def _cells(self, cells: Cells) -> tuple[list[int], Surplus]:
        score = index_score(cells)
        units, result, counts = self._tally(lambda records: records.series(score))
        person, sizes = _rows_of_persons(units, counts)
        return Surplus.split(person, result, counts, sizes <= self.most, cells.count + 1, self.most)

    def _tally(self, scores_of: Callable[[Column], Integers]) -> Pairs:
        """Return every pair of unit and score, sorted, with the number of rows that have it."""
        coder = UnitCodes()
        tally = _PairCounts()
        for part in self.stream.parts():
            assert part.unit is not None
            tally.add(coder.codes(part.unit), scores_of(part.records)[part.unit.present])
        return tally.merged()


def sum_of_persons(groups: Iterable[tuple[int, int, int]], most: int) -> tuple[int, Fraction]:
    """Return how many records persons count as, and the sum of their scores, each person scaled to ``most`` rows.

    Args:
        groups: for the persons with m rows each: m, the number of their rows, and the sum of their scores. Several
            groups may have one m.
        most: k, the most records that a person counts as.

    Guarantees: with m rows of scores s in [low, high] a person adds r = min(m, k) records and r sum(s)/m, which lies in
    [r low, r high]. The caller rounds the exact sum once (``nearest``), so another set of rows of one person changes
    the total by an integer of at most r (high - low), whatever all others hold.

    >>> sum_of_persons([(1, 3, 2), (5, 10, 3)], most=1)  # three persons of one row, two of five rows: 2 + 3/5
    (5, Fraction(13, 5))
    """
    rows, totals = Counter[int](), Counter[int]()
    for size, some, total in groups:
        rows[size] += some
        totals[size] += total
    parts = [Fraction(0), *(Fraction(min(size, most) * total, size) for size, total in totals.items())]
    while len(parts) > 1:  # in pairs, so that denominators stay small
        parts = [sum(parts[i : i + 2], Fraction(0)) for i in range(0, len(parts), 2)]
    count = sum(some // size * min(size, most) for size, some in rows.items())
    return count, parts[0]


def _rows_of_persons(units: Integers, counts: Integers) -> tuple[Integers, Integers]:
    """Return, for pairs sorted by unit, the number of each pair's person and how many rows that person has."""
    first = np.flatnonzero(np.append(True, units[1:] != units[:-1])[: len(units)])
    person = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(units))))
    return person, np.add.reduceat(counts, first)[person] if len(first) else counts


UnitName = int | float | str | bytes
"""A unit's name as a number or text, or a digest of it."""
DIGEST = 16
"""Bytes of a digest. Two units with one digest would share their turns, which costs rows, never privacy."""


class Turns:
    """Counts the rows of each unit that were taken so far, over all batches of a stream. Raw, never released.

    Units are compared by what they say, not by their types: 7, 7.0 and "7" are one unit. To take two units for one
    costs rows; to take one for two would cost privacy. None, NaN and objects without a plain form are no unit.

    Args:
        most: the most rows of one unit that count.
        key: with it units are kept as digests, as a state stores them; None: units are kept by name, in memory.
        taken: the unit of each row that was taken before.
    """

    def __init__(self, most: int, key: bytes | None = None, taken: Iterable[bytes] = ()) -> None:
        self.most, self.key = most, key
        self._taken: Counter[UnitName] = Counter(taken)

    def hide(self, key: bytes) -> None:
        """Replace the names of units by digests with this key, from now on."""
        assert self.key is None
        self.key = key
        self._taken = Counter({self.hidden(unit): taken for unit, taken in self._taken.items()})

    def hidden(self, name: UnitName) -> UnitName:
        """Return the digest of a unit's name; the name itself without a key."""
        if self.key is None or isinstance(name, bytes):
            return name
        text = f"={name}" if isinstance(name, str) else repr(name)  # no number's text begins with =
        return hashlib.blake2b(text.encode(), digest_size=DIGEST, key=self.key).digest()

    def admit(self, unit: Any) -> UnitName | None:
        """Take one row of a unit if it still counts, and return the unit's name or digest; else None."""
        name = self._name_or_digest(unit)
        if name is None or self._taken[name] >= self.most:
            return None
        self._taken[name] += 1
        return name

    def give_back(self, name: UnitName) -> None:
        """Undo :meth:`admit` for a row that was not used."""
        self._taken[name] -= 1

    def taken(self) -> Counter[UnitName]:
        """Return how many rows of each unit were taken."""
        return self._taken.copy()

    def _name_or_digest(self, unit: Any) -> UnitName | None:
        name = _unit_name(unit)
        return None if name is None else self.hidden(name)

    def names(self, parts: Sequence[Keys]) -> tuple[list[UnitName], Integers]:
        """Return the names or digests of the units, and the number of each row's unit among them; -1 for no unit."""
        result: dict[UnitName, int] = {}
        rows = []
        for part in parts:
            values = part.values[part.present]
            distinct, place = np.unique(values, return_inverse=True)
            texts = distinct.tolist() if part.distinct is None else [part.distinct[int(at)] for at in distinct]
            digests = [self._name_or_digest(text) for text in texts]
            code = [-1 if name is None else result.setdefault(name, len(result)) for name in digests]
            row = np.full(len(part.values), -1, dtype=np.int64)
            row[part.present] = np.array(code, dtype=np.int64)[place.reshape(-1)] if len(code) else -1
            rows.append(row)
        return list(result), np.concatenate([np.empty(0, dtype=np.int64), *rows])

    def counting(self, names: list[UnitName], owner: Integers, places: Integers, scores: Integers) -> Truths:
        """Return which rows count: of each unit the first ones by place, at most ``most`` with those taken before.

        Guarantees: how many rows of a unit count at each place depends on owners and places alone. Of its rows at one
        place those with the lowest scores count, so that every engine takes the same.
        """
        within = np.lexsort((scores, places, owner))
        sorted_owner = owner[within]
        first = np.flatnonzero(np.append(True, sorted_owner[1:] != sorted_owner[:-1])[: len(owner)])
        sizes = np.diff(np.append(first, len(owner)))
        rank = np.empty(len(owner), dtype=np.int64)
        rank[within] = np.arange(len(owner)) - np.repeat(first, sizes)
        before = np.array([self._taken.get(name, 0) for name in names] + [self.most], dtype=np.int64)  # -1 is the last
        counts: Truths = rank + before[owner] < self.most
        return counts

    def take(self, names: list[UnitName], owner: Integers) -> None:
        """Count rows that counted and were used as taken."""
        for name, more in zip(names, np.bincount(owner, minlength=len(names)).tolist(), strict=True):
            if more:
                self._taken[name] += more


def _unit_name(unit: Any) -> int | float | str | None:
    """Return the name of a unit; None for no unit."""
    if isinstance(unit, np.generic):
        unit = unit.item()
    try:
        return None if unit is None or unit != unit else plain_key(unit, untyped=isinstance(unit, str | bytes))
    except Exception:  # the unit's own code may raise anything: it is no unit then
        return None


@dataclass(frozen=True, eq=False)
class PlacedRecords(OrderedRecords):
    """All rows of a stream in their places. The first ``most`` rows of each unit count; the others have the odd score.

    Guarantees: which rows count depends on units and order alone. So a person's records change at most ``most`` of the
    scores and no other person's place. The number of rows, whose they are and when they were made is taken as public.
    """

    order: str | None  # type: ignore[assignment]
    turns: Turns = field(kw_only=True)
    _last: list[tuple[list[UnitName], Integers]] = field(default_factory=list, repr=False, kw_only=True)

    @property
    def promise(self) -> Promise:
        return Promise(self.turns.most, "fixed" if self.order is None else "tied")

    @property
    def has_order_values(self) -> bool:
        return self.order is not None

    def consumed(self, count: int) -> None:
        """Count the first ``count`` rows of the last series as taken."""
        ((names, owner),) = self._last
        taken = owner[:count]
        self.turns.take(names, taken[taken >= 0])

    def owners(self) -> list[UnitName | None]:
        """Return the unit of each row of the last series, in order; None for a row that does not count."""
        ((names, owner),) = self._last
        last: list[UnitName | None] = [*names, None]
        return [last[at] for at in owner.tolist()]

    def _sum(self, score: Score) -> tuple[int, int]:
        scores = self.series(score)
        return len(scores), sum(scores.tolist())

    def _cells(self, cells: Cells) -> tuple[list[int], None]:
        result = self.series(index_score(cells))
        return np.bincount(result, minlength=cells.count + 1).tolist(), None

    def _sorted(self, score: Score) -> tuple[Integers, Integers]:
        scores, units, keys = [], [], []
        for part in self.stream.parts():
            assert part.unit is not None
            scores.append(part.records.series(score))
            units.append(part.unit)
            if part.order is not None:
                keys.append(part.order)
        together = np.concatenate([np.empty(0, np.int64), *scores])
        places = ranks(keys) if self.order is not None else np.arange(len(together))
        self._agree(len(together))
        names, owner = self.turns.names(units)
        counts = self.turns.counting(names, owner, places, together)
        together = np.where(counts, together, score.table[-1])
        by_order = np.lexsort((together, places))
        self._last[:] = [(names, np.where(counts, owner, -1)[by_order])]
        return together[by_order], places[by_order]


Pairs = tuple[Integers, Integers, Integers]


class _PairCounts:
    """Counts pairs of unit and score. Memory grows with the number of distinct pairs only."""

    def __init__(self) -> None:
        empty = np.empty(0, dtype=np.int64)
        self._merged: Pairs = (empty, empty, empty)
        self._loose: list[tuple[Integers, Integers]] = []
        self._waiting = 0

    def add(self, units: Integers, scores: Integers) -> None:
        self._loose.append((units, scores))
        self._waiting += len(units)
        if self._waiting > max(GATHER, len(self._merged[0])):
            self.merged()

    def merged(self) -> Pairs:
        """Return all pairs so far, sorted by unit and score, with their counts."""
        if self._loose:
            units, scores = (np.concatenate([pair[i] for pair in self._loose]) for i in range(2))
            new = _count_pairs(units, scores)
            both = (np.concatenate([old, more]) for old, more in zip(self._merged, new, strict=True))
            self._merged = new if len(self._merged[0]) == 0 else _count_pairs(*both)
            self._loose, self._waiting = [], 0
        return self._merged


def _count_pairs(units: Integers, scores: Integers, counts: Integers | None = None) -> Pairs:
    """Return the distinct pairs, sorted, with how often each occurs, or with the sum of its counts."""
    if len(units) == 0:
        return units, scores, np.empty(0, dtype=np.int64)
    lowest, low, high = int(units.min()), int(scores.min()), int(scores.max())
    packs = (int(units.max()) - lowest + 1) * (high - low + 1) < 1 << 63
    if packs and counts is None:  # both fit into one number, which sorts ten times as fast
        key = np.sort((units - lowest) * (high - low + 1) + (scores - low))
        first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        key, sizes = key[first], np.diff(np.append(first, len(key)))
        return key // (high - low + 1) + lowest, key % (high - low + 1) + low, sizes
    if packs:  # a stable sort merges sorted runs
        order = np.argsort((units - lowest) * (high - low + 1) + (scores - low), kind="stable")
    else:
        order = np.lexsort((scores, units))
    units, scores = units[order], scores[order]
    first = np.flatnonzero(np.append(True, (units[1:] != units[:-1]) | (scores[1:] != scores[:-1])))
    ones = np.ones(len(units), dtype=np.int64) if counts is None else counts[order]
    return units[first], scores[first], np.add.reduceat(ones, first)


def records_of_rows(stream: RowStream, most: int | None, order: str | None) -> UnitRecords | StreamRecords:
    """Return the rows of a stream as records: joined by unit, sorted by a column, or in the order of the source."""
    if most is not None:
        return UnitRecords(stream, most, order)
    return StreamRecords(stream) if order is None else OrderedRecords(stream, order)
