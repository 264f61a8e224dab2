"""What a block of a stream releases where it is a noisy total, and what that votes.

The total of the block's scores plus Tulap noise is an exact half integer T. The vote is a step function of T: the
log-likelihood ratio of its bin for "cusum" and for sequential tests, a bit for "paper". A record lies in one block, so
all releases together are epsilon-DP.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from privatest.documents import integers_from_json, wholes_from_json
from privatest.engines.arrays import SequenceRecords
from privatest.engines.protocol import NO_ENDS, Records, scores_of_each
from privatest.errors import InvalidDocument
from privatest.privacy import Tulap, noise_from_dict
from privatest.scores import Cells, LabelCells, Score
from privatest.vectors import Integers

__all__ = ["SumBlocks", "holds_tuples"]


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
        return holds_tuples(self.score.cells)

    def values(self, records: Records, ends: range = NO_ENDS) -> Integers:
        return scores_of_each(records, self.score, ends)

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

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> SumBlocks:
        """What :meth:`to_dict` wrote; refuses blocks that are not private at their declared epsilon."""
        noise = noise_from_dict(document["noise"])
        if not isinstance(noise, Tulap):
            raise InvalidDocument("The noise of a monitor must be of kind 'tulap'.")
        sizes, first = wholes_from_json(document, "block", "bin_width", least=1), wholes_from_json(document, "first")
        votes = integers_from_json(document["votes"])
        return cls(Score.from_dict(document["score"]), noise, table=votes, **sizes, **first)


def holds_tuples(cells: Cells) -> bool:
    """Whether a record may be a tuple."""
    return isinstance(cells, LabelCells) and any(isinstance(label, tuple) for label in cells.labels)
