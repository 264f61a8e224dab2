"""What each block of a stream releases, and what it votes: all that a monitor ever learns of the data.

- :class:`SumBlocks`: the noisy total. The total of the block's scores plus noise that meets the notion is an exact half
  integer T; the vote is a step function of T: the log-likelihood ratio of its bin for "cusum" and for sequential tests,
  a bit for "paper".
- :class:`FitBlocks`: the bit of a private goodness-of-fit test, for an unknown alternative.

A record lies in one block, so all releases together are as private as one. Both restore from plain JSON values.

When to raise the alarm, given the blocks' votes: the CUSUM chart and the paper's intervals.

A rule is frozen; its progress is a small value that is replaced, never changed, so that what was not written to
disk has not happened.

A monitor's design: what the blocks release, the rule that raises the alarm, and what is known of both beforehand.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property, partial
from itertools import islice
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from privatest.changepoint.change_point import Alarm
from privatest.changepoint.open_block import OpenBits, OpenBlock, OpenSum
from privatest.changepoint.state_file import MONITOR, Keeper
from privatest.documents import integers_from_json, wholes_from_json
from privatest.engines.arrays import SequenceRecords
from privatest.engines.protocol import NO_ENDS, Records, counter, indexer, scores_of_each
from privatest.errors import InvalidDocument
from privatest.fit import FitTest
from privatest.numbers import Integers
from privatest.privacy import Noise, Notion, Pure, Source, as_notion, noise_from_dict
from privatest.privacy.asked import CANONICAL
from privatest.privacy.composition import per_row
from privatest.scores import Cells, LabelCells, Score
from privatest.scores.score import BoundedCells, DyadicCells

__all__ = [
    "PLAIN",
    "Blocks",
    "Cusum",
    "CusumProgress",
    "FitBlocks",
    "Intervals",
    "IntervalsProgress",
    "Progress",
    "Rule",
    "SumBlocks",
    "Watch",
    "blocks_from_dict",
    "check_met",
    "holds_tuples",
    "quick_numbers",
    "quick_values",
    "rule_from_dict",
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


class Blocks(Protocol):
    """What blocks release and vote."""

    kind: ClassVar[str]

    @property
    def block(self) -> int:
        """Records in a block."""

    @property
    def epsilon(self) -> Fraction | None:
        """Privacy loss of all releases together; None where there is no bound, but another notion."""

    def meets(self, notion: Notion) -> bool:
        """Whether a block's release meets the notion."""

    @property
    def holds_tuples(self) -> bool:
        """Whether a record may be a tuple."""

    def values(self, records: Records, ends: range = NO_ENDS) -> Integers:
        """What is kept of each record: an integer. Raw. Refused as by ``Records.check_ends``."""

    def values_of(self, records: list[Any]) -> Integers:
        """The same, of a short list."""

    @property
    def vote(self) -> Callable[[int], int]:
        """The vote of one release."""

    @property
    def most_vote(self) -> int:
        """No release votes more."""

    def votes(self, released: Integers) -> Integers:
        """The integer vote of each release, positive for the new regime."""

    def trace(self, released: int) -> float:
        """A release, for people."""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""


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
    def epsilon(self) -> Fraction | None:
        price: Any = self.test.price
        return price if isinstance(price, Fraction) else None

    def meets(self, notion: Notion) -> bool:
        return as_notion(self.test.price).implies(notion)

    @property
    def holds_tuples(self) -> bool:
        return holds_tuples(self.test.domain.cells)

    def values(self, records: Records, ends: range = NO_ENDS) -> Integers:
        """The symbol of each record."""
        cells = self.test.domain.cells
        records.check(counter(cells))
        found = records.series(indexer(cells), ends)
        odd: Integers = np.where(found >= cells.count, self.test.odd_symbol, found)
        return odd

    def values_of(self, records: list[Any]) -> Integers:
        return self.values(SequenceRecords(records))

    @property
    def vote(self) -> Callable[[int], int]:
        return lambda released: self.old if released > 0 else self.new

    @property
    def most_vote(self) -> int:
        return max(self.old, self.new)

    def release(self, values: Integers, source: Source) -> int:
        """The bit of a block, from its records' symbols: -1 where the test says that the block is new."""
        counts = np.bincount(values, minlength=len(self.test.domain.probabilities)).astype(np.int64)
        return -1 if self.test.draw_noisy(counts, source) > self.test.cutoff else 1

    def votes(self, released: Integers) -> Integers:
        found: Integers = np.where(released > 0, self.old, self.new).astype(np.int64)
        return found

    def trace(self, released: int) -> float:
        """The bit."""
        return float(released)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "test": self.test.to_dict(), "old": self.old, "new": self.new}


def blocks_from_dict(document: dict[str, Any]) -> SumBlocks | FitBlocks:
    """What ``to_dict`` wrote; refuses blocks that are not private at their declared epsilon."""
    if document["kind"] == FitBlocks.kind:
        return FitBlocks(FitTest.from_dict(document["test"]), int(document["old"]), int(document["new"]))
    if document["kind"] != SumBlocks.kind:
        raise InvalidDocument(f"Unknown kind of blocks {document['kind']!r}.")
    return SumBlocks.from_dict(document)


class CusumProgress(NamedTuple):
    """Blocks so far, W after them, and the number of blocks after which W was 0 last."""

    blocks: int = 0
    level: int = 0
    zero: int = 0

    @property
    def start(self) -> int:
        """The block in which the change is placed: where the latest excursion starts."""
        return self.zero


_progress: Callable[[tuple[int, int, int]], CusumProgress] = partial(tuple.__new__, CusumProgress)  # quick


@dataclass(frozen=True)
class Cusum:
    """Alarm when W, the votes' sum since it was last 0, exceeds ``threshold``."""

    threshold: int
    kind: ClassVar[str] = "cusum"
    begin: ClassVar[CusumProgress] = CusumProgress()

    def feed(self, progress: CusumProgress, votes: Integers) -> tuple[CusumProgress, int | None]:
        """Progress after these votes, or after those up to the alarm; and which vote raised it."""
        walk = progress.level + np.cumsum(votes)
        levels = walk - np.minimum(np.minimum.accumulate(walk), 0)
        above = levels > self.threshold
        hit = int(np.argmax(above)) if above.any() else None
        used = levels if hit is None else levels[: hit + 1]
        zeros = np.flatnonzero(used == 0)
        zero = progress.blocks + int(zeros[-1]) + 1 if len(zeros) else progress.zero
        return CusumProgress(progress.blocks + len(used), int(used[-1]), zero), hit

    def feed_few(self, progress: CusumProgress, votes: Iterable[int]) -> tuple[CusumProgress, int | None]:
        """:meth:`feed` of a few votes, without the price of arrays."""
        (blocks, level, zero), threshold = progress, self.threshold
        for vote in votes:
            blocks += 1
            level += vote
            if level <= 0:
                level, zero = 0, blocks  # no threshold is below 0
            elif level > threshold:
                return _progress((blocks, level, zero)), blocks - progress.blocks - 1
        return _progress((blocks, level, zero)), None

    def quiet(self, most: int, progress: CusumProgress) -> int:
        """So many blocks raise no alarm whatever they vote, ``most`` at most."""
        return (self.threshold - progress.level) // most if most > 0 else sys.maxsize

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"kind": self.kind, "threshold": self.threshold}

    def progress_to_dict(self, progress: CusumProgress) -> dict[str, Any]:
        """Plain values."""
        return {"blocks": progress.blocks, "level": progress.level, "zero": progress.zero}

    def progress_from_dict(self, document: dict[str, Any]) -> CusumProgress:
        """What :meth:`progress_to_dict` wrote."""
        found = CusumProgress(**wholes_from_json(document, "blocks", "level", "zero", least=0))
        if not 0 <= found.zero <= found.blocks:
            raise InvalidDocument("The progress of the monitor does not fit together.")
        return found


@dataclass(frozen=True)
class IntervalsProgress:
    """Blocks so far, and the bits (z, +1 for "as before") of the last whole interval and of the present one."""

    blocks: int = 0
    last: tuple[int, ...] = ()
    present: tuple[int, ...] = ()

    @property
    def start(self) -> int:
        """The block in which the change is placed: the first argmin of the suffix sums of the bits."""
        bits = np.array(self.last + self.present, dtype=np.int64)
        return self.blocks - len(bits) + int(np.argmin(np.cumsum(bits[::-1])[::-1]))


@dataclass(frozen=True)
class Intervals:
    """Alarm when an interval of ``interval`` blocks has more votes for the new regime than for the old one."""

    interval: int
    kind: ClassVar[str] = "paper"
    begin: ClassVar[IntervalsProgress] = IntervalsProgress()

    def feed(self, progress: IntervalsProgress, votes: Integers) -> tuple[IntervalsProgress, int | None]:
        """Progress after these votes, or after those up to the alarm; and which vote raised it."""
        n, bits = self.interval, np.where(votes > 0, -1, 1)
        ahead = np.concatenate([np.array(progress.present, dtype=np.int64), bits])
        whole = len(ahead) // n
        stops = np.flatnonzero(ahead[: whole * n].reshape(whole, n).sum(axis=1) < 0)
        # The present interval is the one that stops, or the unfinished one.
        end = (int(stops[0]) + 1) * n if len(stops) else len(ahead)
        start = end - n if len(stops) else whole * n
        last = tuple(ahead[start - n : start].tolist()) if start >= n else progress.last
        used = end - len(progress.present)
        after = IntervalsProgress(progress.blocks + used, last, tuple(ahead[start:end].tolist()))
        return after, used - 1 if len(stops) else None

    def feed_few(self, progress: IntervalsProgress, votes: Iterable[int]) -> tuple[IntervalsProgress, int | None]:
        """:meth:`feed` of a few votes."""
        return self.feed(progress, np.array(list(votes), dtype=np.int64))

    def quiet(self, most: int, progress: IntervalsProgress) -> int:  # noqa: ARG002 - whatever they vote
        """So many blocks raise no alarm: those before the last of the present interval."""
        return self.interval - len(progress.present) % self.interval - 1

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"kind": self.kind, "interval": self.interval}

    def progress_to_dict(self, progress: IntervalsProgress) -> dict[str, Any]:
        """Plain values."""
        return {"blocks": progress.blocks, "last": list(progress.last), "present": list(progress.present)}

    def progress_from_dict(self, document: dict[str, Any]) -> IntervalsProgress:
        """What :meth:`progress_to_dict` wrote."""
        last, present = document["last"], document["present"]
        if not all(bit in (1, -1) for bit in (*last, *present)) or len(last) not in (0, self.interval):
            raise InvalidDocument("The progress of the monitor does not fit together.")
        return IntervalsProgress(wholes_from_json(document, "blocks", least=0)["blocks"], tuple(last), tuple(present))


Rule = Cusum | Intervals
Progress = CusumProgress | IntervalsProgress


def rule_from_dict(document: dict[str, Any]) -> Rule:
    """What ``to_dict`` wrote."""
    if document["kind"] == Cusum.kind:
        return Cusum(**wholes_from_json(document, "threshold", least=0))
    if document["kind"] == Intervals.kind:
        return Intervals(**wholes_from_json(document, "interval", least=1))
    raise InvalidDocument(f"Unknown rule {document['kind']!r}.")


_NUMBERS = ("beta", "mean_time_between_false_alarms", "expected_delay")
_WHOLE = ("accuracy", "delay_bound")
_TEXTS = ("method", "null", "alternative")


@dataclass(frozen=True, eq=False)
class Watch:
    """Everything a monitor needs besides its progress; restores from plain JSON values.

    Attributes:
        blocks: what the blocks release and vote.
        rule: when to raise the alarm.
        method: "cusum" or "paper".
        beta, accuracy: as stated in :class:`Alarm`.
        mean_time_between_false_alarms: bound from below on the mean number of records till a false alarm.
        expected_delay: bound from above on the mean number of records after k* till the alarm.
        delay_bound: records after k* by which the alarm was raised with probability at least 1 - beta.
        recommended_interval: blocks in an interval of the paper's method that meet its targets; None with "cusum".
        null, alternative: short descriptions.
        max_rows_per_unit: the most rows of one person that count; None: each record is a person of its own.
        notion: what the whole stream meets, where that is another notion than epsilon.
    """

    blocks: SumBlocks | FitBlocks
    rule: Rule
    method: str
    beta: float
    accuracy: int
    mean_time_between_false_alarms: float
    expected_delay: float
    delay_bound: int
    recommended_interval: int | None
    null: str
    alternative: str
    max_rows_per_unit: int | None = None
    notion: Notion | None = None
    keeper: ClassVar[Keeper] = MONITOR

    def __post_init__(self) -> None:
        check_met(self.blocks, self.notion, self.max_rows_per_unit or 1)

    @property
    def privacy(self) -> Notion:
        """What the whole stream meets: what a row costs, as often as a person may have one."""
        return stream_privacy(self.blocks, self.notion, self.max_rows_per_unit or 1)

    @property
    def block(self) -> int:
        """Records in a block."""
        return self.blocks.block

    def opened(self, source: Source) -> OpenBlock:
        """An empty block."""
        blocks = self.blocks
        return OpenSum(blocks, source) if isinstance(blocks, SumBlocks) else OpenBits(blocks, source)

    def records(self, blocks: int) -> int:
        """Records in so many blocks."""
        return blocks * self.blocks.block

    def votes(self, released: Integers, before: int) -> Integers:  # noqa: ARG002 - all blocks vote alike
        """The votes of blocks."""
        return self.blocks.votes(released)

    def few_votes(self, released: list[int], before: int) -> Iterable[int]:  # noqa: ARG002
        """The votes of a few."""
        return map(self.blocks.vote, released)

    @cached_property
    def quiet(self) -> Callable[[Any], int]:
        """So many further blocks raise no alarm whatever they release."""
        return partial(self.rule.quiet, self.blocks.most_vote)

    def raised(self, progress: Progress, origin: int, end: int, simulated: bool) -> Alarm:
        """The alarm at the record ``end``, by a rule that began at ``origin``."""
        return Alarm(origin + progress.start * self.blocks.block, self.accuracy, end, simulated)

    def raised_from_dict(self, document: dict[str, Any], simulated: bool) -> Alarm:
        """The alarm that its ``to_dict`` wrote."""
        return Alarm(**document, simulated=simulated)

    def releases(self) -> dict[str, Any]:
        """What the releases depend on besides the data: plain JSON values."""
        rows = {} if self.max_rows_per_unit is None else {"max_rows_per_unit": self.max_rows_per_unit}
        notion = {} if self.notion is None else {"privacy": self.notion.text}
        return {"blocks": self.blocks.to_dict(), "rule": self.rule.to_dict(), **rows, **notion}

    @cached_property
    def text(self) -> str:
        """JSON text of :meth:`to_dict`, always the same."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        known = {name: getattr(self, name) for name in (*_NUMBERS, *_WHOLE, *_TEXTS, "recommended_interval")}
        return {**self.releases(), **known}

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Watch:
        """What :meth:`to_dict` wrote; refuses a monitor that is not private at its declared epsilon."""
        numbers = {name: float(document[name]) for name in _NUMBERS}
        whole = {name: document[name] for name in _WHOLE}
        texts = {name: document[name] for name in _TEXTS}
        interval = document["recommended_interval"]
        sound = all(math.isfinite(number) and number > 0 for number in numbers.values())
        sound &= all(type(number) is int and number >= 0 for number in whole.values())
        sound &= all(isinstance(text, str) for text in texts.values())
        if not sound or not (interval is None or type(interval) is int):
            raise InvalidDocument("The design of the monitor does not fit together.")
        blocks, rule = blocks_from_dict(document["blocks"]), rule_from_dict(document["rule"])
        rows = wholes_from_json(document, "max_rows_per_unit", least=1) if "max_rows_per_unit" in document else {}
        notion = as_notion(document["privacy"]) if "privacy" in document else None
        settings: dict[str, Any] = {**numbers, **whole, **texts, **rows}
        return cls(blocks, rule, recommended_interval=interval, **settings, notion=notion)
