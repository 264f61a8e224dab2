"""Which rows of a unit are kept, for every engine; and records in memory or files that are cut by unit or put in order.

Of a unit (a person) with m rows, k are kept: its scores in ascending order, and of their ranks 0 .. m - 1 the evenly
spaced ones, which :func:`is_kept` says of one rank and :func:`kept_below` of many. The rule sees the unit's own scores
alone, so what one unit holds never decides what is kept of another; and since it sees scores and not places, every
engine keeps the same.

Where positions matter the rule is another one (:class:`PlacedRecords`): of each unit the first k rows count, and every
other row stays where it is and counts as a record that makes no sense. It looks at whose the rows are and at when they
were, never at what they hold, so that nobody's rows move anybody else's.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest.engines.arrays import Stream, StreamRecords
from privatest.engines.keys import Coder, Keys, keys_at, plain_key, ranks
from privatest.engines.protocol import (
    NO_ENDS,
    ORDERED,
    Column,
    Declared,
    OneReading,
    Promise,
    Seen,
    block_ends,
    check_promise,
    indexer,
    tied,
    whole_blocks,
)
from privatest.numbers import Integers
from privatest.scores import Cells, Score

__all__ = ["OrderedRecords", "PlacedRecords", "Turns", "UnitRecords", "check_ends", "is_kept", "kept_below"]

Truths = npt.NDArray[np.bool_]


# So many pairs of unit and score are gathered before they are counted and merged.
GATHER = 1 << 21


@dataclass(frozen=True, eq=False)
class OrderedRecords(StreamRecords):
    """All rows of a stream, in the order of a column; the ordered ones are read into memory, at 16 bytes a row."""

    order: str

    @property
    def promise(self) -> Promise:
        return Promise.of(None, self.order, lie=True)

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
    """Refuse equal places, of which there is one for each row in order, on both sides of an end."""
    at = np.arange(max(ends.start, 1), min(ends.stop, len(places)), ends.step)
    if np.any(places[at - 1] == places[at]):
        raise tied(order)


@dataclass(frozen=True, eq=False)
class UnitRecords(OneReading):
    """The rows of a stream, at most ``most`` of each unit; rows without a unit are not counted.

    Sums need memory for each distinct pair of unit and score, at 24 bytes (texts as units: a table of them besides).
    """

    stream: Stream
    most: int
    order: str | None = None
    _seen: Seen = field(default_factory=Seen, repr=False, kw_only=True)

    @property
    def promise(self) -> Promise:
        return Promise.of(self.most, self.order, lie=True)

    @property
    def declared(self) -> Declared:
        return self.stream.sample.declared

    def _rows(self) -> int:
        _, _, counts = self._tally(lambda records: np.zeros(records.count(), dtype=np.int64))
        return int(np.minimum(counts, self.most).sum())

    def _sum(self, score: Score) -> tuple[int, int]:
        _, scores, kept = self._kept(lambda records: records.series(score))
        count = int(kept.sum())
        if max(abs(score.low), abs(score.high)) * count < 1 << 63:
            return count, int(np.dot(scores, kept))
        return count, sum(one * times for one, times in zip(scores.tolist(), kept.tolist(), strict=True))

    def _cells(self, cells: Cells) -> list[int]:
        score = indexer(cells)
        _, found, kept = self._kept(lambda records: records.series(score))
        counts = np.zeros(cells.count + 1, dtype=np.int64)
        np.add.at(counts, found, kept)
        return [int(count) for count in counts]

    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:
        scores, places = self._sorted(score)
        check_ends(places, ends, self.order)
        return scores

    def check_ends(self, ends: range) -> None:  # noqa: ARG002 - which rows count depends on the score: no ends are settled
        check_promise(self.promise, ORDERED)

    def block_totals(self, score: Score, block: int, start: int = 0) -> list[int]:
        scores, places = self._sorted(score)
        check_ends(places, block_ends(len(scores), block, start), self.order)
        return whole_blocks(scores[start:], block)

    def _kept(self, scores_of: Callable[[Column], Integers]) -> tuple[Integers, Integers, Integers]:
        """Units, scores, and how often each pair is kept."""
        units, scores, counts = self._tally(scores_of)
        ends = np.cumsum(counts)
        first = np.flatnonzero(np.append(True, units[1:] != units[:-1])[: len(units)])
        run = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(units))))
        before = (ends - counts)[first][run]  # rows of the units before this one
        rows = np.add.reduceat(counts, first)[run] if len(first) else counts
        above, below = ends - before, ends - counts - before
        return units, scores, kept_below(above, rows, self.most) - kept_below(below, rows, self.most)

    def _tally(self, scores_of: Callable[[Column], Integers]) -> tuple[Integers, Integers, Integers]:
        """Every pair of unit and score, in order, with the number of rows that have it."""
        coder = Coder()
        tally = _Tally()
        for part in self.stream.parts():
            assert part.unit is not None
            tally.add(coder.codes(part.unit), scores_of(part.records)[part.unit.present])
        return tally.merged()

    def _sorted(self, score: Score) -> tuple[Integers, Integers]:
        coder = Coder()
        units, scores, keys = [], [], []
        for part in self.stream.parts():
            assert part.unit is not None
            units.append(coder.codes(part.unit))
            scores.append(part.records.series(score)[part.unit.present])
            if part.order is not None:
                keys.append(part.order.at(part.unit.present))
        empty = np.empty(0, dtype=np.int64)
        unit, joined = np.concatenate([empty, *units]), np.concatenate([empty, *scores])
        places = ranks(keys) if self.order is not None else np.arange(len(unit))
        within = np.lexsort((places, joined, unit))
        sorted_units = unit[within]
        first = np.flatnonzero(np.append(True, sorted_units[1:] != sorted_units[:-1])[: len(unit)])
        sizes = np.diff(np.append(first, len(unit)))
        rows = np.repeat(sizes, sizes)
        rank = np.arange(len(unit)) - np.repeat(first, sizes)
        keep = within[is_kept(rank, rows, min(self.most, int(rows.max(initial=1))))]
        self._agree(len(keep))
        by_order = keep[np.lexsort((joined[keep], places[keep]))]
        return joined[by_order], places[by_order]


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

    def _cells(self, cells: Cells) -> list[int]:
        found = self.series(indexer(cells))
        return np.bincount(found, minlength=cells.count + 1).tolist()  # type: ignore[no-any-return]

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


def is_kept(rank: Any, rows: Any, most: int) -> Any:
    """Whether the row of this rank is kept of a unit with so many rows: k = ``most`` of its m rows at most.

    Rank r is kept if a multiple of 2m lies in (2rk + m, 2(r+1)k + m], so that the kept ones are evenly spaced.
    Written with operators that integer columns of NumPy, of Ibis and of Spark all have, and without a division.

    >>> is_kept(np.arange(7), np.full(7, 7), 3).astype(int).tolist()
    [0, 1, 0, 1, 0, 1, 0]
    """
    return (rows <= most) | (((rank + 1) * (2 * most) + rows) % (rows * 2) < 2 * most)


def kept_below(rank: Integers, rows: Integers, most: int) -> Integers:
    """How many of the ranks below ``rank`` :func:`is_kept` keeps of a unit with so many rows.

    >>> rows = np.full(8, 7)
    >>> np.diff(kept_below(np.arange(8), rows, 3)).tolist()
    [0, 1, 0, 1, 0, 1, 0]
    """
    if len(rows) and 2 * (int(rows.max()) + 1) * min(most, int(rows.max())) >= 1 << 62:  # beyond 64 bits
        pairs = zip(rank.tolist(), rows.tolist(), strict=True)
        return np.array([r if m <= most else (2 * r * most + m) // (2 * m) for r, m in pairs], dtype=np.int64)
    fewest = min(most, int(rows.max(initial=1)))
    return np.where(rows <= most, rank, (2 * rank * fewest + rows) // np.maximum(2 * rows, 1))


Pairs = tuple[Integers, Integers, Integers]


class _Tally:
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
