"""The block that is being filled, and what it releases once it is full.

Noise is drawn when a block is released and at no other time, and what is raw never leaves the process: it is in no
file, and nothing that holds it can be copied. Two continuations of one stream then draw noise of their own, so that no
difference of what they release is raw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from privatest.errors import InvalidInput
from privatest.numbers import Integers
from privatest.privacy import Source
from privatest.privacy.draws import draw_blocks, noise_adder

if TYPE_CHECKING:
    from privatest.changepoint.sum_blocks import QuickScorer, SumBlocks

__all__ = ["ONLY_ONE", "Closed", "OpenBits", "OpenBlock", "OpenSum", "Single"]

ONLY_ONE = (
    "What watches a stream cannot be copied, pickled or used in a forked process: it holds raw records, and two that "
    "go on from one place would release the same records twice. Write its state with save(path), and go on with "
    "load(path) of its class wherever it is needed."
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
        first: records of the first of them; the others have ``block``.
    """

    released: Integers
    start: int
    block: int
    rest: Integers
    first: int

    def end(self, kept: int) -> int:
        """The record after the first ``kept`` blocks, one at least."""
        return self.start + self.first + (kept - 1) * self.block


class Bits(Protocol):
    """Blocks that release a bit each."""

    @property
    def block(self) -> int:
        """Records in a block."""

    def release(self, values: Integers, source: Source) -> int:
        """The bit of a block, from its records' symbols."""


class OpenSum(Single):
    """Twice the sum of the scores so far; of the ``length`` records from ``start`` on there are ``count``.

    The stream's first block may have another length than the later ones.
    """

    def __init__(self, blocks: SumBlocks, source: Source, first: int | None = None) -> None:
        self._blocks, self._block, self._noise, self._source = blocks, blocks.block, blocks.noise, source
        self._first = blocks.block if first is None else first
        self.go_to(0)

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
        length = self.length
        lacks = length - self.count
        more = (len(values) - lacks) // self._block
        end = lacks + more * self._block
        released = np.empty(1 + more, dtype=np.int64)
        released[0] = self._doubled + 2 * int(values[:lacks].sum())
        released[1:] = 2 * values[lacks:end].reshape(more, self._block).sum(axis=1)
        released += draw_blocks(self._noise, 1 + more, self._source)
        return Closed(released, self.start, self._block, values[end:], length)

    @cached_property
    def _noisy(self) -> Callable[[list[int]], list[int]]:
        return noise_adder(self._noise, self._source)

    @cached_property
    def _totals(self) -> QuickScorer:
        return self._blocks.quick_totals()

    def close_one(self, values: Integers) -> int:
        """The release of the block, which exactly these values fill."""
        return self._noisy([self._doubled + 2 * int(values.sum())])[0]

    def close_plain(self, records: list[Any]) -> list[int] | None:
        """The releases of all blocks that these plain records fill; None where arrays are to score them."""
        length = self.length
        if self.count or (length != self._block and len(records) != length):
            return None
        totals = self._totals(records, length)
        return None if totals is None else self._noisy(totals)

    def go_to(self, start: int) -> None:
        """Begin an empty block here: those before it were accounted for."""
        self.start, self.count, self._doubled = start, 0, 0
        self.length = self._block if start else self._first


class OpenBits(Single):
    """The symbols of the records so far."""

    def __init__(self, blocks: Bits, source: Source) -> None:
        self._blocks, self._source = blocks, source
        self.start = 0
        self._symbols: list[Integers] = []

    @property
    def length(self) -> int:
        """Records of a block."""
        return self._blocks.block

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
        return Closed(np.array(bits, dtype=np.int64), self.start, block, symbols[whole * block :], block)

    def close_one(self, values: Integers) -> int:
        """The release of the block, which exactly these values fill."""
        return self._blocks.release(np.concatenate([*self._symbols, values]), self._source)

    def close_plain(self, records: list[Any]) -> None:
        """None: arrays are to tell the symbols."""

    def go_to(self, start: int) -> None:
        """Begin an empty block here: those before it were accounted for."""
        self.start, self._symbols = start, []


OpenBlock = OpenSum | OpenBits
