"""What a block of a stream releases where it is a noisy total, and what that votes.

The total of the block's scores plus noise that meets the notion is an exact half integer T. The vote is a step function
of T: the log-likelihood ratio of its bin for "cusum" and for sequential tests, a bit for "paper". A record lies in one
block, so all releases together are as private as one.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import repeat
from typing import Any, ClassVar, Protocol

import numpy as np

from privatest.documents import integers_from_json, wholes_from_json
from privatest.engines.arrays import SequenceRecords
from privatest.engines.protocol import NO_ENDS, Records, scores_of_each
from privatest.errors import InvalidDocument
from privatest.privacy import Noise, Notion, Pure, noise_from_dict
from privatest.privacy.asked import CANONICAL
from privatest.privacy.composition import per_row
from privatest.scores import Cells, LabelCells, Score
from privatest.scores.score import BoundedCells, DyadicCells
from privatest.vectors import Integers

__all__ = ["SumBlocks", "check_met", "holds_tuples", "quick_scorer", "stream_privacy"]


@dataclass(frozen=True, eq=False)
class SumBlocks:
    """Blocks that release noisy totals; releases are written as the integers 2 T.

    Attributes:
        first, bin_width: the bin of T is 0 below ``first``, and then one of every ``bin_width`` values of floor(T).
        table: the vote of each bin.
    """

    score: Score
    noise: Noise
    block: int
    first: int
    bin_width: int
    table: Integers
    kind: ClassVar[str] = "sums"

    def __post_init__(self) -> None:
        self.score.check_total(4 * self.block)
        if not self.noise.hides(self.score.width):
            raise InvalidDocument(
                f"{self.noise.describe()} noise of these settings does not hide scores of width {self.score.width}: "
                "this monitor would not be private."
            )

    @property
    def epsilon(self) -> Fraction | None:
        return self.noise.exact_loss(self.score.width)

    def meets(self, notion: Notion) -> bool:
        return self.noise.meets(notion, self.score.width)

    @property
    def holds_tuples(self) -> bool:
        return holds_tuples(self.score.cells)

    def values(self, records: Records, ends: range = NO_ENDS) -> Integers:
        return scores_of_each(records, self.score, ends)

    def values_of(self, records: list[Any]) -> Integers:
        if self._numbers and set(map(type, records)) == _FLOATS:
            with np.errstate(all="ignore"):
                return self.score.table[self.score.cells.index(np.array(records))]
        return self.values(SequenceRecords(records))

    @cached_property
    def quick_total(self) -> Callable[[list[Any]], int | None]:
        """The total of the scores of plain records (floats, ints, truths, texts), without the price of arrays.

        None where that is not quick, or where a record makes no sense: then :meth:`values_of` says.
        """
        return quick_scorer(self.score, self.values_of)

    def vote(self, released: int) -> int:
        votes = self._list
        place = ((released >> 1) - self.first) // self.bin_width + 1
        return votes[place] if 0 <= place < len(votes) else votes[0 if place < 0 else -1]

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
        if not isinstance(noise, CANONICAL):
            listed = ", ".join(repr(kind.kind) for kind in CANONICAL)
            raise InvalidDocument(f"The noise of a monitor must be of kind {listed}.")
        sizes, first = wholes_from_json(document, "block", "bin_width", least=1), wholes_from_json(document, "first")
        votes = integers_from_json(document["votes"])
        return cls(Score.from_dict(document["score"]), noise, table=votes, **sizes, **first)


# So many records a block are scored one by one; of more, arrays are quicker. So many distinct ones are remembered.
_FEW, _REMEMBERED, _MOST_STEPS = 192, 4096, 1 << 14


def quick_scorer(score: Score, values_of: Callable[[list[Any]], Integers]) -> Callable[[list[Any]], int | None]:
    """A function that totals the scores of a few plain records; None where arrays are to do it.

    Guarantees: whatever it totals, it totals to the sum of ``values_of``.
    """
    cells = score.cells
    if isinstance(cells, DyadicCells) and cells.low == -math.inf and cells.high == math.inf:
        table = score.table[:-1]
        first = np.flatnonzero(np.diff(table)) + 1
        # Cell i begins at (first + i) 2^-exponent, exactly: a double is below it iff its cell is.
        edges = [math.ldexp(float(cells.first + int(i)), -cells.exponent) for i in first]
        if any(math.ldexp(edge, cells.exponent) != cells.first + int(i) for edge, i in zip(edges, first, strict=True)):
            return lambda _: None
        heights = np.diff(table)[first - 1]
        if not (np.all(heights > 0) or np.all(heights < 0)) or np.sum(np.abs(heights)) > _MOST_STEPS:
            return lambda _: None
        # Each edge as often as the score moves there: the score is so many steps from that of the first cell.
        steps = [edge for edge, height in zip(edges, heights.tolist(), strict=True) for _ in range(abs(height))]
        start, way, all_steps = int(table[0]), 1 if np.all(heights > 0) else -1, repeat(steps)

        def of_numbers(records: list[Any]) -> int | None:
            if len(records) > _FEW:
                return None
            try:
                sane = math.isfinite(sum(records))  # then all of them are
            except (TypeError, OverflowError):
                return None
            return start * len(records) + way * sum(map(bisect_right, all_steps, records)) if sane else None

        return of_numbers
    if isinstance(cells, BoundedCells | DyadicCells):
        return lambda _: None

    class Known(dict[Any, int]):
        """The scores of values that were met, as the arrays say: equal numbers of any type have one."""

        def __missing__(self, record: Any) -> int:
            found = int(values_of([record])[0])
            if len(self) < _REMEMBERED:
                self[record] = found
            return found

    known = Known().__getitem__

    def of_values(records: list[Any]) -> int | None:
        return sum(map(known, records)) if set(map(type, records)) <= _PLAIN else None

    return of_values


_FLOATS, _PLAIN = {float}, {float, int, bool, str}


def holds_tuples(cells: Cells) -> bool:
    """Whether a record may be a tuple."""
    return isinstance(cells, LabelCells) and any(isinstance(label, tuple) for label in cells.labels)


class Released(Protocol):
    """Blocks, as far as their price goes."""

    @property
    def epsilon(self) -> Fraction | None:
        """Privacy loss of a block's release; None where there is no bound."""

    def meets(self, notion: Notion) -> bool:
        """Whether a block's release meets the notion."""


def check_met(blocks: Released, notion: Notion | None, rows: int) -> None:
    """Refuse blocks that are not private: for every row of a person, as the notion of the whole stream asks."""
    if isinstance(notion, Pure):
        raise InvalidDocument(f"privacy={notion} is an epsilon, which the noise tells by itself. Leave it out.")
    if blocks.epsilon is None and notion is None:
        raise InvalidDocument("privacy is missing: this noise bounds no privacy loss, but another notion.")
    if notion is not None and not blocks.meets(per_row(notion, rows)):
        raise InvalidDocument(f"What the blocks release does not meet {notion} for up to {rows} rows of a person.")


def stream_privacy(blocks: Released, notion: Notion | None, rows: int) -> Notion:
    """What a stream of such blocks meets, all of it, for up to so many rows of a person."""
    if notion is not None:
        return notion
    assert blocks.epsilon is not None  # by check_met
    return Pure(blocks.epsilon * rows)
