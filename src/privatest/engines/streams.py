"""Records that come piece by piece: pieces are read in parallel where only sums are asked for, else one by one.

Never more than a few pieces' parts are in memory, so the peak does not grow with the number of records.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from privatest.engines.arrays import summer
from privatest.engines.keys import Keys
from privatest.engines.protocol import NO_ENDS, Column, OneReading, Promise, Seen, whole_blocks
from privatest.scores import Cells, Score
from privatest.vectors import Integers

__all__ = ["Part", "Piece", "Progress", "Stream", "StreamRecords"]

Result = TypeVar("Result")
Progress = Callable[[int], None]  # so many rows (or bytes) more have been read


class Part(NamedTuple):
    """Some rows: their records, and where asked for the columns that say whose they are and when."""

    records: Column
    unit: Keys | None = None
    order: Keys | None = None


@dataclass(frozen=True, eq=False)
class Piece:
    """A run of rows that can be read on its own, part by part."""

    read: Callable[[Progress], Iterator[Part]]


def _silent(_amount: int) -> None:
    pass


def _no_bar() -> AbstractContextManager[Progress]:
    return nullcontext(_silent)


@dataclass(frozen=True, eq=False)
class Stream:
    """The rows of a source, as often as they are asked for.

    Attributes:
        pieces: all rows, in the order they lie in.
        sample: no record at all, of the column's type: what a score is checked against.
        rows: how many rows there are, where that is known without reading them.
        bar: shows the progress of one reading.
    """

    pieces: Sequence[Piece]
    sample: Column
    rows: int | None = None
    bar: Callable[[], AbstractContextManager[Progress]] = field(default=_no_bar)

    def parts(self) -> Iterator[Part]:
        """All rows in order, one part at a time."""
        with self.bar() as progress:
            for piece in self.pieces:
                yield from piece.read(progress)

    def gather(self, make_work: Callable[[], Callable[[Column], Result]]) -> Iterator[Result]:
        """The work on all parts, in no order that matters: by several threads, each with work of its own."""
        threads = min(os.cpu_count() or 1, 16, len(self.pieces))
        if threads <= 1:
            work = make_work()
            for part in self.parts():
                yield work(part.records)
            return
        own = threading.local()
        with self.bar() as progress, ThreadPoolExecutor(threads) as pool:

            def run(piece: Piece) -> list[Result]:
                if not hasattr(own, "work"):
                    own.work = make_work()
                return [own.work(part.records) for part in piece.read(progress)]

            waiting: deque[Future[list[Result]]] = deque()
            try:
                for piece in self.pieces:
                    waiting.append(pool.submit(run, piece))
                    if len(waiting) > 2 * threads:
                        yield from waiting.popleft().result()
                while waiting:
                    yield from waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    @cached_property
    def row_count(self) -> int:
        """How many rows there are, by reading them if nothing else tells."""
        return self.rows if self.rows is not None else sum(self.gather(lambda: lambda records: records.count()))


@dataclass(frozen=True, eq=False)
class StreamRecords(OneReading):
    """All rows of a stream, in the order they lie in."""

    stream: Stream
    _seen: Seen = field(default_factory=Seen, repr=False, kw_only=True)

    @property
    def promise(self) -> Promise:
        return Promise()

    def count(self) -> int:
        return self.stream.rows if self.stream.rows is not None else super().count()

    def _known(self) -> int | None:
        return self.stream.rows if self.stream.rows is not None else super()._known()

    def _fits(self, score: Score) -> None:
        self.stream.sample.check(score)

    def _rows(self) -> int:
        return self.stream.row_count

    def _sum(self, score: Score) -> tuple[int, int]:
        def make_work() -> Callable[[Column], tuple[int, int]]:
            total = summer(score)
            return lambda records: (records.count(), total(records))

        found = list(self.stream.gather(make_work))
        count = sum(rows for rows, _ in found)
        if self.stream.rows is not None:
            self._agree(count)
        return count, sum(total for _, total in found)

    def _cells(self, cells: Cells) -> list[int]:
        counts = np.zeros(cells.count + 1, dtype=np.int64)
        for found in self.stream.gather(lambda: lambda records: records.histogram(cells)):
            counts += found
        if self.stream.rows is not None:
            self._agree(int(counts.sum()))
        return [int(count) for count in counts]

    def check_ends(self, ends: range) -> None:
        """Rows lie in an order of their own: nothing is tied."""

    def series(self, score: Score, ends: range = NO_ENDS) -> Integers:  # noqa: ARG002 - nothing is tied
        found = [part.records.series(score) for part in self.stream.parts()]
        self._agree(sum(map(len, found)))
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)

    def block_totals(self, score: Score, block: int, start: int = 0) -> list[int]:
        totals: list[int] = []
        # The scores of the block that is not complete yet: pieces of at most one block in all.
        open_block: list[Integers] = []
        seen, held, skip = 0, 0, start
        for part in self.stream.parts():
            scores = part.records.series(score)
            seen += len(scores)
            scores, skip = scores[skip:], max(skip - len(scores), 0)
            open_block.append(scores)
            held += len(scores)
            if held >= block:
                joined = np.concatenate(open_block)
                totals += whole_blocks(joined, block)
                open_block = [joined[held - held % block :]]
                held %= block
        self._agree(seen)
        return totals
