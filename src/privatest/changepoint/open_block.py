"""The block that is being filled, and what it releases once it is full."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privatest.changepoint.released import FitBlocks, NoiseQueue, SumBlocks
from privatest.errors import InvalidDocument
from privatest.noise import Source

__all__ = ["Closed", "OpenBits", "OpenBlock", "OpenSum", "open_block"]

Integers = npt.NDArray[np.int64]


@dataclass
class Closed:
    """What blocks release that are full, not yet accounted for.

    Attributes:
        released: one integer for each block.
        start: the first record of the first of them.
        rest: values of the records after the last of them.
        kept: how many of the blocks were accounted for, once they are.
        go_on: whether the rest is to be consumed, too.
    """

    released: Integers
    start: int
    block: int
    rest: Integers
    kept: int | None = None
    go_on: bool = True

    def end(self, kept: int) -> int:
        """The record after the first ``kept`` blocks."""
        return self.start + kept * self.block

    def commit(self, kept: int, go_on: bool) -> None:
        """Account for the first ``kept`` blocks: they are released. Without ``go_on`` the rest is not consumed."""
        self.kept, self.go_on = kept, go_on


class OpenSum:
    """Twice the sum of the scores so far; with the block's noise in it once it was written to disk."""

    def __init__(self, blocks: SumBlocks, source: Source) -> None:
        self._block, self._queue = blocks.block, NoiseQueue(blocks.noise, source)
        self.start = self.count = 0
        self._doubled, self._noised = 0, False

    @property
    def end(self) -> int:
        """The record after the last one."""
        return self.start + self.count

    def extend(self, values: Integers) -> None:
        """Add values; fewer than the block still lacks."""
        self._doubled += 2 * int(values.sum())
        self.count += len(values)

    @contextmanager
    def closing(self, values: Integers) -> Iterator[Closed]:
        """The releases of all blocks that these values fill. What is not committed has not happened."""
        lacks = self._block - self.count
        more = (len(values) - lacks) // self._block
        end = lacks + more * self._block
        fresh = self._queue.take(more + (not self._noised))
        released = 2 * values[lacks:end].reshape(more, self._block).sum(axis=1)
        first = self._doubled + 2 * int(values[:lacks].sum())
        released = np.concatenate([np.array([first], dtype=np.int64), released])
        released[int(self._noised) :] += fresh
        closed = Closed(released, self.start, self._block, values[end:])
        used = 0
        try:
            yield closed
            if closed.kept is not None:
                used = closed.kept - self._noised
                self.start, self.count, self._doubled, self._noised = closed.end(closed.kept), 0, 0, False
                if closed.go_on:
                    self.extend(closed.rest)
        finally:
            self._queue.put_back(fresh[used:])

    def full(self, values: Integers) -> int:
        """The release of the block, which exactly these values fill."""
        self._add_noise()
        return self._doubled + 2 * int(values.sum())

    def advance(self) -> None:
        """The full block was accounted for: on to the next."""
        self.start, self.count, self._doubled, self._noised = self.start + self._block, 0, 0, False

    def _add_noise(self) -> None:
        if not self._noised:
            self._doubled, self._noised = self._doubled + self._queue.take_one(), True

    def noised(self) -> list[int] | None:
        """[records, twice their sum with the noise that the whole block will carry]; None for an empty block."""
        if self.count == 0:
            return None
        self._add_noise()
        return [self.count, self._doubled]

    def restore(self, start: int, partial: list[int] | None) -> None:
        """Go on from here."""
        self.start = start
        if partial is not None:
            self.count, self._doubled = (int(number) for number in partial)
            self._noised = True
            if not 0 < self.count < self._block:
                raise InvalidDocument("The unfinished block has more records than a block.")


class OpenBits:
    """The symbols of the records so far. They are never written to disk."""

    def __init__(self, blocks: FitBlocks, source: Source) -> None:
        self._blocks, self._source = blocks, source
        self.start = 0
        self._symbols: list[Integers] = []

    @property
    def count(self) -> int:
        """Records so far."""
        return sum(len(part) for part in self._symbols)

    @property
    def end(self) -> int:
        """The record after the last one."""
        return self.start + self.count

    def extend(self, values: Integers) -> None:
        """Add values; fewer than the block still lacks."""
        self._symbols = [np.concatenate([*self._symbols, values])]

    @contextmanager
    def closing(self, values: Integers) -> Iterator[Closed]:
        """The releases of all blocks that these values fill. What is not committed has not happened."""
        symbols, block = np.concatenate([*self._symbols, values]), self._blocks.block
        whole = len(symbols) // block
        bits = [self._blocks.release(symbols[i * block : (i + 1) * block], self._source) for i in range(whole)]
        closed = Closed(np.array(bits, dtype=np.int64), self.start, block, symbols[whole * block :])
        yield closed
        if closed.kept is not None:
            self.start, self._symbols = closed.end(closed.kept), []
            if closed.go_on:
                self.extend(closed.rest)

    def full(self, values: Integers) -> int:
        """The release of the block, which exactly these values fill."""
        return self._blocks.release(np.concatenate([*self._symbols, values]), self._source)

    def advance(self) -> None:
        """The full block was accounted for: on to the next."""
        self.start, self._symbols = self.start + self._blocks.block, []

    def noised(self) -> None:
        """Nothing: an unfinished block's records are to be fed again."""

    def restore(self, start: int, partial: list[int] | None) -> None:
        """Go on from here."""
        if partial is not None:
            raise InvalidDocument("The unfinished block of a goodness-of-fit monitor is not kept on disk.")
        self.start = start


OpenBlock = OpenSum | OpenBits


def open_block(blocks: SumBlocks | FitBlocks, source: Source) -> OpenBlock:
    """An empty block at the stream's first record."""
    return OpenSum(blocks, source) if isinstance(blocks, SumBlocks) else OpenBits(blocks, source)
