"""Persons with several rows, for every engine; and records in memory or files that are joined by unit or put in order.

A unit (a person) with m rows counts as at most k records, and every row counts alike: where scores are summed, each of
its rows has the weight min(1, k/m), so that the person's part is the sum of the scores, scaled to k rows. The sum over
all persons is exact, and is rounded once (:func:`joined`). Nothing is chosen by what it holds, so the mean is right
whatever m is. Counts of cells cannot be scaled (what is computed from them takes each record for whole): there k of the
m rows are drawn, by whoever holds the randomness, without looking at them (:class:`Surplus`).

Where positions matter the rule is another one (:class:`PlacedRecords`): of each unit the first k rows count, and every
other row stays where it is and counts as a record that makes no sense. It looks at whose the rows are and at when they
were, never at what they hold, so that nobody's rows move anybody else's.
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
from privatest.engines.keys import Coder, Keys, group_codes, keys_at, order_forms, plain_key, ranks
from privatest.engines.records import (
    NO_ENDS,
    Column,
    Promise,
    Surplus,
    block_ends,
    indexer,
    no_places,
    tied,
    whole_blocks,
)
from privatest.numbers import Integers
from privatest.scores import Cells, Score

Truths = npt.NDArray[np.bool_]


# So many pairs of unit and score are gathered before they are counted and merged.
GATHER = 1 << 21


@dataclass(frozen=True, eq=False)
class OrderedRecords(StreamRecords):
    """All rows of a stream, in the order of a column; the ordered ones are read into memory, at 16 bytes a row."""

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
    def tells_order(self) -> bool:
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
        return whole_blocks(scores[start:], block)

    def _sorted(self, score: Score) -> tuple[Integers, Integers]:
        scores, keys = [], []
        for part in self.stream.parts():
            assert part.order is not None
            scores.append(part.records.series(score))
            keys.append(part.order)
        joined, places = np.concatenate([np.empty(0, np.int64), *scores]), ranks(keys)
        self._agree(len(joined))
        by_order = np.lexsort((joined, places))
        return joined[by_order], places[by_order]


def check_ends(places: Integers, ends: range, order: str | None) -> None:
    """Raise InvalidData if rows on both sides of an end have equal places; there is one for each row, in order."""
    at = np.arange(max(ends.start, 1), min(ends.stop, len(places)), ends.step)
    if np.any(places[at - 1] == places[at]):
        raise tied(order)


@dataclass(frozen=True, eq=False)
class UnitRecords(StreamedRecords):
    """The rows of a stream, those of each unit joined to at most ``most`` records; rows without a unit do not count.

    Sums need memory for each distinct pair of unit and score, at 24 bytes (texts as units: a table of them besides).
    """

    most: int

    @property
    def promise(self) -> Promise:
        return Promise(self.most, "joined")

    def is_shared(self) -> bool:
        coder, tally = Coder(), _UnitSums()
        known: dict[str, int] = {}
        for part in self.stream.parts():
            assert part.unit is not None
            assert part.group is not None
            groups = group_codes(part.group, known)
            rows = part.unit.present & (groups >= 0)
            tally.add(coder.codes(part.unit.at(rows)), groups[rows])
        units, _, _ = tally.merged()
        return bool(np.any(units[1:] == units[:-1]))

    def _rows(self) -> int:
        _, _, counts = self._tally(lambda records: np.zeros(records.count(), dtype=np.int64))
        return int(np.minimum(counts, self.most).sum())

    def _sum(self, score: Score) -> tuple[int, Fraction]:
        units, scores, counts = self._tally(lambda records: records.series(score))
        _, sizes = _sizes(units, counts)
        order = np.argsort(sizes, kind="stable")
        sizes, scores, counts = sizes[order], scores[order], counts[order]
        first = np.flatnonzero(np.append(True, sizes[1:] != sizes[:-1])[: len(sizes)])
        if max(abs(score.low), abs(score.high)) * int(counts.sum()) < 1 << 63:
            sums = np.add.reduceat(scores * counts, first).tolist() if len(first) else []
        else:
            pairs = [one * times for one, times in zip(scores.tolist(), counts.tolist(), strict=True)]
            sums = [sum(pairs[start:end]) for start, end in itertools.pairwise([*first.tolist(), len(pairs)])]
        rows = np.add.reduceat(counts, first).tolist() if len(first) else []
        return joined(zip(sizes[first].tolist(), rows, sums, strict=True), self.most)

    def _cells(self, cells: Cells) -> tuple[list[int], Surplus]:
        score = indexer(cells)
        units, found, counts = self._tally(lambda records: records.series(score))
        person, sizes = _sizes(units, counts)
        return Surplus.split(person, found, counts, sizes <= self.most, cells.count + 1, self.most)

    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:  # noqa: ARG002 - there is no series
        raise no_places(self.most)

    def check_ends(self, ends: range) -> None:  # noqa: ARG002 - there are no places
        raise no_places(self.most)

    def block_totals(self, score: Score, block: int, start: int = 0) -> list[int]:  # noqa: ARG002 - there are no blocks
        raise no_places(self.most)

    def _tally(self, scores_of: Callable[[Column], Integers]) -> Pairs:
        """Every pair of unit and score, in order, with the number of rows that have it."""
        coder = Coder()
        tally = _UnitSums()
        for part in self.stream.parts():
            assert part.unit is not None
            tally.add(coder.codes(part.unit), scores_of(part.records)[part.unit.present])
        return tally.merged()


def joined(groups: Iterable[tuple[int, int, int]], most: int) -> tuple[int, Fraction]:
    """How many records the rows of persons count as, and the sum of their scores, each person scaled to ``most`` rows.

    Args:
        groups: of the persons with m rows each: m, how many rows they have together, and the sum of their scores; in
            as many parts as there are.
        most: k, the most records that a person counts as.

    Guarantees: with m rows of scores s in [low, high] a person adds r = min(m, k) records and, before the rounding,
    r sum(s)/m, which lies in [r low, r high]. The exact sum is rounded once, by whoever asks for a total (``nearest``):
    so the whole moves by an integer of that range, whatever the person's rows are and whatever all others hold.

    >>> joined([(1, 3, 2), (5, 10, 3)], most=1)  # three persons of one row, two of five rows: 2 + 3/5
    (5, Fraction(13, 5))
    """
    rows, totals = Counter[int](), Counter[int]()
    for size, some, total in groups:
        rows[size] += some
        totals[size] += total
    parts = [Fraction(0), *(Fraction(min(size, most) * total, size) for size, total in totals.items())]
    while len(parts) > 1:  # in pairs, so that denominators stay small for as long as they can
        parts = [sum(parts[i : i + 2], Fraction(0)) for i in range(0, len(parts), 2)]
    count = sum(some // size * min(size, most) for size, some in rows.items())
    return count, parts[0]


def _sizes(units: Integers, counts: Integers) -> tuple[Integers, Integers]:
    """Of pairs in order of their units: which person each is of, counted from 0, and how many rows that person has."""
    first = np.flatnonzero(np.append(True, units[1:] != units[:-1])[: len(units)])
    person = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(units))))
    return person, np.add.reduceat(counts, first)[person] if len(first) else counts


Known = int | float | str | bytes
"""What a unit is known by: its plain name, or a digest of it."""
DIGEST = 16
"""Bytes of a digest. Two units of one digest would share their turns: that costs rows, never privacy."""


class Turns:
    """How many rows of each unit were taken so far, over all batches of a stream. Raw, on the trusted side only.

    Units are told apart by what they say, not by their types: 7, 7.0 and "7" are one. To take two for one costs rows,
    to take one for two would cost privacy. What cannot be told (None, NaN, an object of no plain form) is nobody.

    Args:
        most: rows of one unit that count.
        key: units are known by their digests with this key, as a state keeps them; None: by their names, in memory.
        taken: the units of the rows that were taken before.
    """

    def __init__(self, most: int, key: bytes | None = None, taken: Iterable[bytes] = ()) -> None:
        self.most, self.key = most, key
        self._taken: Counter[Known] = Counter(taken)

    def hide(self, key: bytes) -> None:
        """Know units by digests with this key from now on; by their names so far."""
        assert self.key is None
        self.key = key
        self._taken = Counter({self.hidden(unit): taken for unit, taken in self._taken.items()})

    def hidden(self, name: Known) -> Known:
        """The digest of a unit's plain name; the name itself where there is no key."""
        if self.key is None or isinstance(name, bytes):
            return name
        text = f"={name}" if isinstance(name, str) else repr(name)  # no number's text begins so
        return hashlib.blake2b(text.encode(), digest_size=DIGEST, key=self.key).digest()

    def admit(self, unit: Any) -> Known | None:
        """What a unit is known by, if a row of it still counts: it is taken then."""
        known = self._known(unit)
        if known is None or self._taken[known] >= self.most:
            return None
        self._taken[known] += 1
        return known

    def give_back(self, known: Known) -> None:
        """Undo :meth:`admit` of a row that was not consumed."""
        self._taken[known] -= 1

    def taken(self) -> Counter[Known]:
        """How many rows of each unit were taken."""
        return self._taken.copy()

    def _known(self, unit: Any) -> Known | None:
        name = _name(unit)
        return None if name is None else self.hidden(name)

    def names(self, parts: Sequence[Keys]) -> tuple[list[Known], Integers]:
        """The units of rows by what they are known by, and which of them each row is of; -1 where it is nobody's."""
        found: dict[Known, int] = {}
        rows = []
        for part in parts:
            values = part.values[part.present]
            distinct, place = np.unique(values, return_inverse=True)
            texts = distinct.tolist() if part.distinct is None else [part.distinct[int(at)] for at in distinct]
            known = [self._known(text) for text in texts]
            code = [-1 if name is None else found.setdefault(name, len(found)) for name in known]
            row = np.full(len(part.values), -1, dtype=np.int64)
            row[part.present] = np.array(code, dtype=np.int64)[place.reshape(-1)] if len(code) else -1
            rows.append(row)
        return list(found), np.concatenate([np.empty(0, dtype=np.int64), *rows])

    def counting(self, names: list[Known], owner: Integers, places: Integers, scores: Integers) -> Truths:
        """Which rows count: of each unit the first ones by place, up to ``most`` with those that were taken before.

        Guarantees: how many rows of a unit count at each place depends on owners and places alone. Of its rows at one
        place the lowest scores are taken, so that every engine takes the same.
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

    def take(self, names: list[Known], owner: Integers) -> None:
        """Remember rows that counted and were consumed."""
        for name, more in zip(names, np.bincount(owner, minlength=len(names)).tolist(), strict=True):
            if more:
                self._taken[name] += more


def _name(unit: Any) -> int | float | str | None:
    """What a unit is known by; None for nobody."""
    if isinstance(unit, np.generic):
        unit = unit.item()
    try:
        return None if unit is None or unit != unit else plain_key(unit, loose=isinstance(unit, str | bytes))
    except Exception:  # a unit's own code may raise anything: it is nobody then
        return None


@dataclass(frozen=True, eq=False)
class PlacedRecords(OrderedRecords):
    """All rows of a stream in their places, the first ``most`` of each unit with their records, the others without.

    A row that does not count, because its unit had its turns or it is nobody's, has the odd score.

    Guarantees: which rows count depends on units and order alone, so that a person's records reach at most ``most`` of
    the scores and nobody's place. The number of rows, whose they are and when they were is taken as public.
    """

    order: str | None  # type: ignore[assignment]
    turns: Turns = field(kw_only=True)
    _last: list[tuple[list[Known], Integers]] = field(default_factory=list, repr=False, kw_only=True)

    @property
    def promise(self) -> Promise:
        return Promise(self.turns.most, "fixed" if self.order is None else "tied")

    @property
    def tells_order(self) -> bool:
        return self.order is not None

    def consumed(self, count: int) -> None:
        """Of the rows of the last series, in order, so many were consumed: the units had these turns."""
        ((names, owner),) = self._last
        taken = owner[:count]
        self.turns.take(names, taken[taken >= 0])

    def owners(self) -> list[Known | None]:
        """Of each row of the last series, in order, what its unit is known by; None where the row does not count."""
        ((names, owner),) = self._last
        last: list[Known | None] = [*names, None]
        return [last[at] for at in owner.tolist()]

    def _sum(self, score: Score) -> tuple[int, int]:
        scores = self.series(score)
        return len(scores), sum(scores.tolist())

    def _cells(self, cells: Cells) -> tuple[list[int], None]:
        found = self.series(indexer(cells))
        return np.bincount(found, minlength=cells.count + 1).tolist(), None

    def _sorted(self, score: Score) -> tuple[Integers, Integers]:
        scores, units, keys = [], [], []
        for part in self.stream.parts():
            assert part.unit is not None
            scores.append(part.records.series(score))
            units.append(part.unit)
            if part.order is not None:
                keys.append(part.order)
        joined = np.concatenate([np.empty(0, np.int64), *scores])
        places = ranks(keys) if self.order is not None else np.arange(len(joined))
        self._agree(len(joined))
        names, owner = self.turns.names(units)
        counts = self.turns.counting(names, owner, places, joined)
        joined = np.where(counts, joined, score.table[-1])
        by_order = np.lexsort((joined, places))
        self._last[:] = [(names, np.where(counts, owner, -1)[by_order])]
        return joined[by_order], places[by_order]


Pairs = tuple[Integers, Integers, Integers]


class _UnitSums:
    """Counts of pairs, merged now and then so that memory stays in proportion to the distinct ones."""

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
        """All pairs so far, in order of unit and score."""
        if self._loose:
            units, scores = (np.concatenate([pair[i] for pair in self._loose]) for i in range(2))
            new = _counted(units, scores)
            both = (np.concatenate([old, more]) for old, more in zip(self._merged, new, strict=True))
            self._merged = new if len(self._merged[0]) == 0 else _counted(*both)
            self._loose, self._waiting = [], 0
        return self._merged


def _counted(units: Integers, scores: Integers, counts: Integers | None = None) -> Pairs:
    """The distinct pairs in order, with how often each occurs (or the sum of its counts)."""
    if len(units) == 0:
        return units, scores, np.empty(0, dtype=np.int64)
    lowest, low, high = int(units.min()), int(scores.min()), int(scores.max())
    packs = (int(units.max()) - lowest + 1) * (high - low + 1) < 1 << 63
    if packs and counts is None:  # both in one number, which sorts ten times as fast
        key = np.sort((units - lowest) * (high - low + 1) + (scores - low))
        first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        key, sizes = key[first], np.diff(np.append(first, len(key)))
        return key // (high - low + 1) + lowest, key % (high - low + 1) + low, sizes
    if packs:  # stable: two runs in order are merged rather than sorted
        order = np.argsort((units - lowest) * (high - low + 1) + (scores - low), kind="stable")
    else:
        order = np.lexsort((scores, units))
    units, scores = units[order], scores[order]
    first = np.flatnonzero(np.append(True, (units[1:] != units[:-1]) | (scores[1:] != scores[:-1])))
    ones = np.ones(len(units), dtype=np.int64) if counts is None else counts[order]
    return units[first], scores[first], np.add.reduceat(ones, first)


def records_of(stream: RowStream, most: int | None, order: str | None) -> UnitRecords | StreamRecords:
    """The rows of a stream as records: joined by unit, put in order, or as they lie."""
    if most is not None:
        return UnitRecords(stream, most)
    return StreamRecords(stream) if order is None else OrderedRecords(stream, order)
