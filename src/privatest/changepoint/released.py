r"""What each block of a stream releases, and what it votes: all that a monitor ever learns of the data.

- :class:`SumBlocks`: the total of the block's scores plus Tulap noise, an exact half integer T. The vote is a step
  function of T: the log-likelihood ratio of its bin for "cusum", a bit for "paper".
- :class:`FitBlocks`: the bit of a private goodness-of-fit test, for an unknown alternative.

A record lies in one block, so all releases together are epsilon-DP. Both restore from plain JSON values.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from privatest.changepoint.unknown import fit_vote
from privatest.engines.protocol import NO_ENDS, Records, counter, indexer
from privatest.engines.sequences import SequenceRecords
from privatest.engines.series import score_series
from privatest.errors import InvalidDocument
from privatest.fit import FitTest
from privatest.noise import Source, Tulap, noise_from_dict
from privatest.scores import Cells, LabelCells, Score
from privatest.scores.documents import integers_from_json

__all__ = ["Blocks", "FitBlocks", "SumBlocks", "blocks_from_dict"]

Integers = npt.NDArray[np.int64]


class Blocks(Protocol):
    """What blocks release and vote."""

    kind: ClassVar[str]

    @property
    def block(self) -> int:
        """Records in a block."""

    @property
    def epsilon(self) -> Fraction:
        """Privacy loss of all releases together."""

    @property
    def holds_tuples(self) -> bool:
        """Whether a record may be a tuple."""

    def values(self, records: Records, ends: range = NO_ENDS) -> Integers:
        """What is kept of each record: an integer. Raw. Refused as by ``Records.check_ends``."""

    def values_of(self, records: list[Any]) -> Integers:
        """The same, of a short list."""

    def vote(self, released: int) -> int:
        """The vote of one release."""

    def votes(self, released: Integers) -> Integers:
        """The integer vote of each release, positive for the new regime."""

    def trace(self, released: int) -> float:
        """A release, for people."""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""


@dataclass(frozen=True, eq=False)
class SumBlocks:
    """Blocks that release noisy totals; releases are written as the integers 2 T.

    Attributes:
        first, bin_width: the bin of T is 0 below ``first``, and then one of every ``bin_width`` values of floor(T).
        table: the vote of each bin.
    """

    score: Score
    noise: Tulap
    block: int
    first: int
    bin_width: int
    table: Integers
    kind: ClassVar[str] = "sums"

    def __post_init__(self) -> None:
        self.score.check_total(4 * self.block)
        if not self.noise.hides(self.score.width):
            raise InvalidDocument(
                f"Noise of width {self.noise.width} does not hide scores of width {self.score.width}: this monitor "
                "would not be private."
            )

    @property
    def epsilon(self) -> Fraction:
        return self.noise.epsilon

    @property
    def holds_tuples(self) -> bool:
        return _holds_tuples(self.score.cells)

    def values(self, records: Records, ends: range = NO_ENDS) -> Integers:
        return score_series(self.score, records, ends=ends)

    def values_of(self, records: list[Any]) -> Integers:
        if self._numbers and all(type(record) is float for record in records):
            with np.errstate(all="ignore"):
                return self.score.table[self.score.cells.index(np.array(records))]
        return self.values(SequenceRecords(records))

    def vote(self, released: int) -> int:
        place = ((released >> 1) - self.first) // self.bin_width + 1
        return self._list[min(max(place, 0), len(self._list) - 1)]

    @cached_property
    def _numbers(self) -> bool:
        return not isinstance(self.score.cells, LabelCells)

    @cached_property
    def _list(self) -> list[int]:
        return list(self.table.tolist())

    def votes(self, released: Integers) -> Integers:
        bins = np.clip(((released >> 1) - self.first) // self.bin_width + 1, 0, len(self.table) - 1)
        found: Integers = self.table[bins]
        return found

    @cached_property
    def _line(self) -> tuple[float, float]:
        return float(self.block * self.score.origin), float(self.score.step) / 2

    def trace(self, released: int) -> float:
        """The noisy sum of the clamped log-likelihood ratios log P/Q, in nats."""
        start, step = self._line
        return start + step * released

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "score": self.score.to_dict(),
            "noise": self.noise.to_dict(),
            "block": self.block,
            "first": self.first,
            "bin_width": self.bin_width,
            "votes": self.table.tolist(),
        }


@dataclass(frozen=True, eq=False)
class FitBlocks:
    """Blocks that release the bits of a goodness-of-fit test: +1 for "as before", -1 for "new"."""

    test: FitTest
    old: int
    new: int
    kind: ClassVar[str] = "bits"

    @property
    def block(self) -> int:
        return self.test.n

    @property
    def epsilon(self) -> Fraction:
        return self.test.noise.epsilon

    @property
    def holds_tuples(self) -> bool:
        return _holds_tuples(self.test.domain.cells)

    def values(self, records: Records, ends: range = NO_ENDS) -> Integers:
        """The symbol of each record."""
        cells = self.test.domain.cells
        records.check(counter(cells))
        found = records.series(indexer(cells), ends)
        odd: Integers = np.where(found >= cells.count, self.test.odd_symbol, found)
        return odd

    def values_of(self, records: list[Any]) -> Integers:
        return self.values(SequenceRecords(records))

    def vote(self, released: int) -> int:
        return self.old if released > 0 else self.new

    def release(self, values: Integers, source: Source) -> int:
        """The bit of a block, from its records' symbols."""
        counts = np.bincount(values, minlength=len(self.test.domain.probabilities)).astype(np.int64)
        return fit_vote(self.test, counts, source)

    def votes(self, released: Integers) -> Integers:
        found: Integers = np.where(released > 0, self.old, self.new).astype(np.int64)
        return found

    def trace(self, released: int) -> float:
        """The bit."""
        return float(released)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "test": self.test.to_dict(), "old": self.old, "new": self.new}


def _holds_tuples(cells: Cells) -> bool:
    return isinstance(cells, LabelCells) and any(isinstance(label, tuple) for label in cells.labels)


def blocks_from_dict(document: dict[str, Any]) -> SumBlocks | FitBlocks:
    """What ``to_dict`` wrote; refuses blocks that are not private at their declared epsilon."""
    if document["kind"] == FitBlocks.kind:
        return FitBlocks(FitTest.from_dict(document["test"]), int(document["old"]), int(document["new"]))
    if document["kind"] != SumBlocks.kind:
        raise InvalidDocument(f"Unknown kind of blocks {document['kind']!r}.")
    noise = noise_from_dict(document["noise"])
    if not isinstance(noise, Tulap):
        raise InvalidDocument("The noise of a monitor must be of kind 'tulap'.")
    numbers = [document[name] for name in ("block", "first", "bin_width")]
    if not all(type(number) is int for number in numbers) or numbers[0] < 1 or numbers[2] < 1:
        raise InvalidDocument("block, first and bin_width must be whole numbers.")
    block, first, bin_width = numbers
    votes = integers_from_json(document["votes"])
    return SumBlocks(Score.from_dict(document["score"]), noise, block, first, bin_width, votes)
