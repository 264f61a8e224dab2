"""What each block of a stream releases, and what it votes: all that a monitor ever learns of the data.

- :class:`SumBlocks`: the noisy total.
- :class:`BitBlocks`: the bit of a private test: one of goodness of fit, for an unknown alternative, or a given one.

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
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from privatest.changepoint.block_tests import Voter, voter_from_dict
from privatest.changepoint.change_point import Alarm
from privatest.changepoint.open_block import OpenBits, OpenBlock, OpenSum
from privatest.changepoint.state_file import MONITOR, Keeper
from privatest.changepoint.sum_blocks import SumBlocks, check_met, holds_tuples, stream_privacy
from privatest.documents import wholes_from_json
from privatest.engines.arrays import SequenceRecords
from privatest.engines.protocol import NO_ENDS, Records
from privatest.errors import InvalidDocument
from privatest.numbers import Integers
from privatest.privacy import Notion, Source, as_notion

__all__ = [
    "BitBlocks",
    "Blocks",
    "Cusum",
    "CusumProgress",
    "Intervals",
    "IntervalsProgress",
    "Progress",
    "Rule",
    "Watch",
    "blocks_from_dict",
    "rule_from_dict",
]


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
class BitBlocks:
    """Blocks that release the bits of a private test: +1 for "as before", -1 for "new"."""

    voter: Voter
    old: int
    new: int
    kind: ClassVar[str] = "bits"

    @property
    def block(self) -> int:
        return int(self.voter.test.n)

    @property
    def epsilon(self) -> Fraction | None:
        price = self.voter.price
        return price if isinstance(price, Fraction) else None

    def meets(self, notion: Notion) -> bool:
        return self.voter.notion.implies(notion)

    @property
    def holds_tuples(self) -> bool:
        return holds_tuples(self.voter.cells)

    def values(self, records: Records, ends: range = NO_ENDS) -> Integers:
        """What the test sees of each record."""
        return self.voter.values(records, ends)

    def values_of(self, records: list[Any]) -> Integers:
        return self.values(SequenceRecords(records))

    @property
    def vote(self) -> Callable[[int], int]:
        return lambda released: self.old if released > 0 else self.new

    @property
    def most_vote(self) -> int:
        return max(self.old, self.new)

    def release(self, values: Integers, source: Source) -> int:
        """The bit of a block, from what the test sees of its records."""
        return self.voter.vote(values, source)

    def votes(self, released: Integers) -> Integers:
        found: Integers = np.where(released > 0, self.old, self.new).astype(np.int64)
        return found

    def trace(self, released: int) -> float:
        """The bit."""
        return float(released)

    def to_dict(self) -> dict[str, Any]:
        """What tells them from others; of tests that a document can hold, all that :func:`blocks_from_dict` needs."""
        return {"kind": self.kind, "test": self.voter.question(), "old": self.old, "new": self.new}


def blocks_from_dict(document: dict[str, Any]) -> SumBlocks | BitBlocks:
    """What ``to_dict`` wrote; refuses blocks that are not private at their declared epsilon."""
    if document["kind"] == BitBlocks.kind:
        return BitBlocks(voter_from_dict(document["test"]), int(document["old"]), int(document["new"]))
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

    blocks: SumBlocks | BitBlocks
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
        """Plain JSON values; refused where the blocks' test is a function, which no document can hold."""
        if isinstance(self.blocks, BitBlocks):
            self.blocks.voter.to_dict()
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
