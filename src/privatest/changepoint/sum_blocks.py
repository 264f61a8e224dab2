"""Blocks that release noisy totals, of monitors and of sequential tests alike.

The total of a block's scores plus noise that meets the notion is an exact half integer T; the vote is a step function
of T: the log-likelihood ratio of its bin for "cusum" and for sequential tests, a bit for "paper". A record lies in one
block, so all releases together are as private as one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Protocol

import numpy as np

from privatest.documents import integers_from_json, wholes_from_json
from privatest.engines.arrays import SequenceRecords
from privatest.engines.protocol import NO_ENDS, Records, scores_of_each
from privatest.errors import InvalidDocument
from privatest.numbers import Integers
from privatest.privacy import Noise, Notion, Pure, noise_from_dict
from privatest.privacy.asked import CANONICAL
from privatest.privacy.composition import per_row
from privatest.scores import Cells, LabelCells, Score
from privatest.scores.score import BoundedCells, DyadicCells

__all__ = [
    "PLAIN",
    "QuickScorer",
    "SumBlocks",
    "check_met",
    "holds_tuples",
    "quick_numbers",
    "quick_values",
    "stream_privacy",
]


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

    def __getstate__(self) -> dict[str, Any]:
        """What it was made of: what was computed since is computed again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def quick_totals(self) -> QuickScorer:
        """Twice the totals of the scores of plain records (floats, ints, truths, texts), without the price of arrays.

        It says None where that is not quick, or where a record makes no sense: then :meth:`values_of` says. It may
        remember records, which are raw: a stream's own, no part of its design.
        """
        return quick_values(self.values_of) if self._quick_numbers is None else self._quick_numbers

    @cached_property
    def _quick_numbers(self) -> QuickScorer | None:
        return quick_numbers(self.score)

    @cached_property
    def vote(self) -> Callable[[int], int]:
        """The vote of one release; what was asked before is remembered."""
        votes: list[int] = self.table.tolist()

        def voted(released: int) -> int:
            return votes[min(max(((released >> 1) - self.first) // self.bin_width + 1, 0), len(votes) - 1)]

        return Remembered(voted).__getitem__

    @cached_property
    def most_vote(self) -> int:
        """No release votes more."""
        return int(self.table.max())

    @cached_property
    def _numbers(self) -> bool:
        return not isinstance(self.score.cells, LabelCells)

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


# So many records are scored one by one; of more, arrays are quicker. So many distinct values are remembered.
_FEW, _REMEMBERED = 192, 1 << 13
_FLOATS = {float}
PLAIN = frozenset({float, int, bool, str})
"""Types of records whose arithmetic is Python's own: it never fails but in known ways, and says nothing."""
QuickScorer = Callable[[list[Any], int], list[int] | None]


class Remembered(dict[Any, int]):
    """What a function says of the values that it was asked about; of the first some thousands without asking again."""

    def __init__(self, function: Callable[[Any], int]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, value: Any) -> int:
        found = self._function(value)
        if len(self) < _REMEMBERED:
            self[value] = found
        return found


def quick_numbers(score: Score) -> QuickScorer | None:
    """A function of a few records of types in ``PLAIN`` and a number: twice the total of every so many of them.

    It says None where arrays are to do it, and there is none where records are looked up one by one. Guarantees:
    whatever it totals, it totals to twice the sum of the arrays' scores; it remembers nothing.
    """
    cells = score.cells
    if not isinstance(cells, BoundedCells | DyadicCells):
        return None
    if isinstance(cells, BoundedCells) or (cells.low, cells.high) != (-math.inf, math.inf) or cells.size > _REMEMBERED:
        return lambda _, __: None
    # The floor of a number times 2^exponent is its cell, exactly, as ``cells.index`` has it; those beyond the ends are
    # as the ends. What lies further out than this table is rare.
    factor, floor, no_number = cells.factor, math.floor, (TypeError, ValueError, OverflowError)
    doubled, first, last = [2 * value for value in score.table.tolist()], cells.first, cells.size - 1
    near = range(first - _REMEMBERED // 2, first + cells.size + _REMEMBERED // 2)
    of_cell = {place: doubled[min(max(place - first, 0), last)] for place in near}

    def of_all_cells(records: list[Any], each: int) -> list[int] | None:
        try:
            places = [floor(record * factor) for record in records]
        except no_number:
            return None
        values = (doubled[min(max(place - first, 0), last)] for place in places)
        return list(map(sum, zip(*[values] * each, strict=True)))

    def of_numbers(records: list[Any], each: int) -> list[int] | None:
        if len(records) > _FEW:
            return None
        totals, left = [], iter(records)
        try:
            for _ in range(0, len(records), each):
                total = 0
                for record in islice(left, each):
                    total += of_cell[floor(record * factor)]
                totals.append(total)
        except KeyError:
            return of_all_cells(records, each)
        except no_number:  # or none that is finite
            return None
        return totals

    return of_numbers


def quick_values(values_of: Callable[[list[Any]], Integers]) -> QuickScorer:
    """The same of records that are looked up: as the arrays say, equal numbers of any type have one score."""
    known = Remembered(lambda record: 2 * int(values_of([record])[0])).__getitem__

    def of_values(records: list[Any], each: int) -> list[int] | None:
        if not set(map(type, records)) <= PLAIN:
            return None
        return list(map(sum, zip(*[map(known, records)] * each, strict=True)))

    return of_values


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
