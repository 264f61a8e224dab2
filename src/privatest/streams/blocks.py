"""The blocks of a stream: the private numbers that they release, and the open block that is being filled.

Every record of a stream lies in one block, and a block releases one private number when it is full: its noisy total
(:class:`SumBlocks`) or the bit of a private test (``BitBlocks`` of monitors). All releases together are then as private
as one. Each release is turned into an integer vote, a function of the release alone.

Noise is drawn only when a block is released. The records of the open block (:class:`OpenBlock`) are raw: they are in no
file, and the object that holds them cannot be copied. So no two continuations of one stream share the draw of a block,
and no difference between their releases is raw.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, NoReturn

import numpy as np

from privatest.engines.arrays import SequenceRecords
from privatest.engines.records import NO_ENDS, Records, scores_of_each
from privatest.errors import InvalidDocument, InvalidInput
from privatest.json_documents import fields_to_json
from privatest.numbers import Integers
from privatest.privacy import Noise, Notion, RandomSource
from privatest.privacy.bulk_draws import draw_blocks, noise_adder
from privatest.privacy.canonical_noise import CANONICAL
from privatest.scores import Cells, LabelCells, Score
from privatest.scores.score import BoundedCells, DyadicCells

PLAIN = frozenset({float, int, bool, str})
"""Types of records whose arithmetic is Python's own, with known errors and no side effects."""
# More records than _FEW are scored by arrays, which are quicker then. The scores of _REMEMBERED values are cached.
_FEW, _REMEMBERED = 192, 1 << 13
_FLOATS = {float}
_NOTHING = np.zeros(0, dtype=np.int64)
ONLY_ONE = (
    "A monitor or sequential test cannot be copied, pickled or used in a forked process: it holds raw records, and two "
    "copies would release the same records twice. Write its state with save(path), and continue with load(path) of its "
    "class wherever it is needed."
)

PlainScores = Callable[[list[Any]], list[int] | None]
"""A function that returns twice the scores of a few ``PLAIN`` records; None if arrays must score them."""


class OneProcess:
    """Base of objects that hold records of an open block. Each exists once, in one process."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidInput(ONLY_ONE)


class Blocks(ABC):
    """The releases and votes of blocks. Each kind of release is a frozen dataclass below it."""

    kind: ClassVar[str]

    block: int
    """The number of records in a block."""

    @property
    @abstractmethod
    def cells(self) -> Cells:
        """The cells that records are sorted into."""

    @abstractmethod
    def meets(self, notion: Notion) -> bool:
        """Return whether a block's release meets a notion, for one record that is replaced."""

    @abstractmethod
    def values(self, records: Records, ends: range = NO_ENDS) -> Integers:
        """Return one raw integer for each record, to be stored until the block is full.

        Ties are refused as by ``Records.check_ends``.
        """

    def values_of(self, records: list[Any]) -> Integers:
        """Return the integers stored for a list of records."""
        return self.values(SequenceRecords(records))

    @abstractmethod
    def summary(self, values: Integers) -> Integers:
        """Return what must be stored of an open block's values until the block is full."""

    @abstractmethod
    def release(self, blocks: Sequence[Integers], source: RandomSource) -> list[int]:
        """Draw the noise of full blocks, and return their releases.

        Args:
            blocks: the values stored for each block.
            source: where randomness comes from.
        """

    def plain_scores(self) -> PlainScores | None:
        """Return a quick function that scores a few plain records; None if there is none.

        It may cache records, which are raw: it belongs to one stream, not to the design.
        """
        return None

    @abstractmethod
    def votes(self, released: Sequence[int]) -> list[int]:
        """Return the vote of each release: positive for the new regime, or for Q."""

    @abstractmethod
    def trace(self, released: int) -> float:
        """Return a release as a number to show."""

    @abstractmethod
    def question(self) -> dict[str, Any]:
        """Return everything besides the data on which the releases depend, ready for JSON."""


@dataclass(frozen=True, eq=False)
class SumBlocks(Blocks):
    """Blocks that release noisy totals T; a release is written as the integer 2 T.

    Attributes:
        score, noise: the score of a record, and the noise of a total.
        block: the number of records in a block.
        first, bin_width: the bin of T is 0 below ``first``; then each bin has ``bin_width`` values of floor(T).
        table: the vote of each bin.
    """

    score: Score
    noise: Noise
    block: int
    first: int
    bin_width: int
    table: Integers = field(metadata={"key": "votes"})
    kind: ClassVar[str] = "sums"

    def __post_init__(self) -> None:
        if self.block < 1 or self.bin_width < 1 or not len(self.table):
            raise InvalidDocument("The blocks do not fit together.")
        if not isinstance(self.noise, CANONICAL):
            listed = ", ".join(repr(kind.kind) for kind in CANONICAL)
            raise InvalidDocument(f"The noise of a monitor must be of kind {listed}.")
        self.score.check_total(4 * self.block)
        if not self.noise.hides(self.score.width):
            raise InvalidDocument(
                f"{self.noise.describe()} noise of these settings does not hide scores of width {self.score.width}: "
                "this monitor would not be private."
            )

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone. Cached values are computed again."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def cells(self) -> Cells:
        return self.score.cells

    def meets(self, notion: Notion) -> bool:
        return self.noise.meets(notion, self.score.width)

    def values(self, records: Records, ends: range = NO_ENDS) -> Integers:
        return scores_of_each(records, self.score, ends)

    def values_of(self, records: list[Any]) -> Integers:
        if not isinstance(self.score.cells, LabelCells) and set(map(type, records)) == _FLOATS:
            with np.errstate(all="ignore"):
                return self.score.table[self.score.cells.index(np.array(records))]
        return super().values_of(records)

    def summary(self, values: Integers) -> Integers:
        total: Integers = values.sum(keepdims=True)
        return total

    def release(self, blocks: Sequence[Integers], source: RandomSource) -> list[int]:
        totals = np.array([int(values.sum()) for values in blocks], dtype=np.int64)
        return self.release_totals(totals, source)

    def release_totals(self, totals: Integers, source: RandomSource) -> list[int]:
        """Draw the releases of blocks with these totals."""
        released: list[int] = (2 * totals + draw_blocks(self.noise, len(totals), source)).tolist()
        return released

    def plain_scores(self) -> PlainScores | None:
        cells = self.score.cells
        if not isinstance(cells, BoundedCells | DyadicCells):
            double_score = Remembered(lambda record: 2 * int(self.values_of([record])[0])).__getitem__
            return lambda records: list(map(double_score, records))
        if isinstance(cells, BoundedCells) or (cells.low, cells.high) != (-math.inf, math.inf):
            return None
        if cells.size > _REMEMBERED:
            return None
        # The cell of a number is the floor of the number times 2^exponent, exactly as in ``cells.index``; numbers
        # beyond the ends are in the last cells.
        doubled, first, last = [2 * value for value in self.score.table.tolist()], cells.first, cells.size - 1
        of_cell = Remembered(lambda place: doubled[min(max(place - first, 0), last)])
        factor, floor = cells.factor, math.floor

        def scores(records: list[Any]) -> list[int] | None:
            if len(records) > _FEW:
                return None
            try:
                return [of_cell[floor(record * factor)] for record in records]
            except (TypeError, ValueError, OverflowError):  # not a finite number
                return None

        return scores

    @cached_property
    def most_vote(self) -> int:
        """The largest vote of any release."""
        return int(self.table.max())

    @cached_property
    def _table(self) -> list[int]:
        table: list[int] = self.table.tolist()
        return table

    def votes(self, released: Sequence[int]) -> list[int]:
        table, last, first, width = self._table, len(self.table) - 1, self.first, self.bin_width
        if len(released) <= _FEW:
            return [table[min(max(((one >> 1) - first) // width + 1, 0), last)] for one in released]
        bins = ((np.array(released, dtype=np.int64) >> 1) - first) // width + 1
        votes: list[int] = self.table[np.clip(bins, 0, last)].tolist()
        return votes

    @cached_property
    def _line(self) -> tuple[float, float]:
        return float(self.block * self.score.origin), float(self.score.step) / 2

    def trace(self, released: int) -> float:
        """Return the noisy sum of the clamped log-likelihood ratios log P/Q, in nats."""
        start, step = self._line
        return start + step * released

    def question(self) -> dict[str, Any]:
        return fields_to_json(self)


class Remembered(dict[Any, int]):
    """A cache of a function's values for the first ``_REMEMBERED`` arguments."""

    def __init__(self, function: Callable[[Any], int]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, argument: Any) -> int:
        value = self._function(argument)
        if len(self) < _REMEMBERED:
            self[argument] = value
        return value


class OpenBlock(OneProcess):
    """The block that is being filled: ``length`` records from ``start`` on, of which ``count`` have arrived.

    Args:
        blocks: the releases of all blocks.
        source: where randomness comes from.
        first: the number of records in the first block of the stream; None: as in the later ones.
    """

    def __init__(self, blocks: Blocks, source: RandomSource, first: int | None = None) -> None:
        self._blocks, self._source = blocks, source
        self._block, self._first = blocks.block, blocks.block if first is None else first
        self.go_to(0)

    @property
    def end(self) -> int:
        """The record after the last one."""
        return self.start + self.count

    def go_to(self, start: int) -> None:
        """Begin an empty block at this record. All records before it were released."""
        self.start, self.count = start, 0
        self.length = self._block if start else self._first
        self._summary = _NOTHING

    def extend(self, values: Integers) -> None:
        """Add the values of fewer records than the block lacks."""
        self._summary = self._blocks.summary(np.concatenate([self._summary, values]))
        self.count += len(values)

    def close(self, values: Integers) -> tuple[list[int], Integers]:
        """Return the releases of all blocks that these values fill, and the values that are left.

        Nobody may see the releases before :meth:`go_to`.
        """
        lacks, block = self.length - self.count, self._block
        more = (len(values) - lacks) // block
        end = lacks + more * block
        first = self._blocks.summary(np.concatenate([self._summary, values[:lacks]]))
        whole = values[lacks:end].reshape(more, block)
        if isinstance(self._blocks, SumBlocks):
            totals = np.append(first, whole.sum(axis=1))
            return self._blocks.release_totals(totals, self._source), values[end:]
        return self._blocks.release([first, *whole], self._source), values[end:]

    @cached_property
    def _plain_scores(self) -> PlainScores | None:
        return self._blocks.plain_scores()

    @cached_property
    def _add_noise(self) -> Callable[[list[int]], list[int]]:
        assert isinstance(self._blocks, SumBlocks)
        return noise_adder(self._blocks.noise, self._source)

    def close_plain(self, records: list[Any]) -> list[int] | None:
        """Return the releases of the blocks that exactly these plain records fill; None if arrays must score them."""
        length = self.length
        whole = len(records) == length or (length == self._block and len(records) % length == 0)
        if self.count or not whole or self._plain_scores is None:
            return None
        scores = self._plain_scores(records)
        if scores is None:
            return None
        return self._add_noise([sum(scores[at : at + length]) for at in range(0, len(scores), length)])
