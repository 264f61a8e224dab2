"""The block that is being filled, and what it releases once it is full.

Noise is drawn when a block is released and at no other time, and what is raw never leaves the process: it is in no
file, and nothing that holds it can be copied. Two continuations of one stream then draw noise of their own, so that no
difference of what they release is raw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from privatest.changepoint.draws import draw_blocks
from privatest.changepoint.released import FitBlocks, SumBlocks
from privatest.errors import InvalidInput
from privatest.noise import Source

__all__ = ["ONLY_ONE", "Closed", "OpenBits", "OpenBlock", "OpenSum", "Single", "open_block"]

Integers = npt.NDArray[np.int64]

ONLY_ONE = (
    "A monitor cannot be copied, pickled or used in a forked process: it holds raw records, and two that go on from "
    "one place would release the same records twice. Write its state with monitor.save(path), and go on with "
    "Monitor.load(path) wherever it is needed."
)


class Single:
    """What holds records of an unfinished block: there is one of it, in one process."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidInput(ONLY_ONE)


@dataclass
class Closed(Single):
    """What blocks release that are full, not yet accounted for.

    Attributes:
        released: one integer for each block.
        start: the first record of the first of them.
        rest: values of the records after the last of them.
    """

    released: Integers
    start: int
    block: int
    rest: Integers

    def end(self, kept: int) -> int:
        """The record after the first ``kept`` blocks."""
        return self.start + kept * self.block


class OpenSum(Single):
    """Twice the sum of the scores so far."""

    def __init__(self, blocks: SumBlocks, source: Source) -> None:
        self._block, self._noise, self._source = blocks.block, blocks.noise, source
        self.start = self.count = self._doubled = 0

    @property
    def end(self) -> int:
        """The record after the last one."""
        return self.start + self.count

    def extend(self, values: Integers) -> None:
        """Add values; fewer than the block still lacks."""
        self._doubled += 2 * int(values.sum())
        self.count += len(values)

    def close(self, values: Integers) -> Closed:
        """The releases of all blocks that these values fill, noise included. Not released before :meth:`go_to`."""
        lacks = self._block - self.count
        more = (len(values) - lacks) // self._block
        end = lacks + more * self._block
        released = np.empty(1 + more, dtype=np.int64)
        released[0] = self._doubled + 2 * int(values[:lacks].sum())
        released[1:] = 2 * values[lacks:end].reshape(more, self._block).sum(axis=1)
        released += draw_blocks(self._noise, 1 + more, self._source)
        return Closed(released, self.start, self._block, values[end:])

    def close_one(self, values: Integers) -> int:
        """The release of the block, which exactly these values fill."""
        return self._doubled + 2 * int(values.sum()) + int(draw_blocks(self._noise, 1, self._source)[0])

    def go_to(self, start: int) -> None:
        """Begin an empty block here: those before it were accounted for."""
        self.start, self.count, self._doubled = start, 0, 0


class OpenBits(Single):
    """The symbols of the records so far."""

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

    def close(self, values: Integers) -> Closed:
        """The releases of all blocks that these values fill. Not released before :meth:`go_to`."""
        symbols, block = np.concatenate([*self._symbols, values]), self._blocks.block
        whole = len(symbols) // block
        bits = [self._blocks.release(symbols[i * block : (i + 1) * block], self._source) for i in range(whole)]
        return Closed(np.array(bits, dtype=np.int64), self.start, block, symbols[whole * block :])

    def close_one(self, values: Integers) -> int:
        """The release of the block, which exactly these values fill."""
        return self._blocks.release(np.concatenate([*self._symbols, values]), self._source)

    def go_to(self, start: int) -> None:
        """Begin an empty block here: those before it were accounted for."""
        self.start, self._symbols = start, []


OpenBlock = OpenSum | OpenBits


def open_block(blocks: SumBlocks | FitBlocks, source: Source) -> OpenBlock:
    """An empty block at the stream's first record."""
    return OpenSum(blocks, source) if isinstance(blocks, SumBlocks) else OpenBits(blocks, source)
