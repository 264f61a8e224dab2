"""Which rows of a unit are kept, for every engine; and records in memory or files that are cut by unit or put in order.

Of a unit (a person) with m rows, k are kept: its scores in ascending order, and of their ranks 0 .. m - 1 the evenly
spaced ones, which :func:`is_kept` says of one rank and :func:`kept_below` of many. The rule sees the unit's own scores
alone, so what one unit holds never decides what is kept of another; and since it sees scores and not places, every
engine keeps the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privatest.engines.arrays import Stream, StreamRecords
from privatest.engines.keys import Coder, keys_at, ranks
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
from privatest.scores import Cells, Score
from privatest.vectors import Integers

__all__ = ["OrderedRecords", "UnitRecords", "check_ends", "is_kept", "kept_below"]


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
