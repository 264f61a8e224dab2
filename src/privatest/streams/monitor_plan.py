"""The plan of a monitor: what its blocks release, when they raise the alarm, and what is promised of both."""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from privatest.changepoint.block_tests import Voter
from privatest.decision.run import Outcome, cost_fact
from privatest.engines.records import NO_ENDS, Records
from privatest.errors import InvalidDocument
from privatest.facts import Fact
from privatest.numbers import Integers
from privatest.privacy import Notion, RandomSource
from privatest.privacy.notion import notion_words
from privatest.scores import Cells
from privatest.streams.blocks import Blocks, SumBlocks
from privatest.streams.saved_state import MONITOR, StateKind
from privatest.streams.stream import Rule, StreamPlan

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Alarm(Outcome):
    """The alarm of a monitor: the stream has changed.

    Guarantees: it is a function of the blocks' noisy sums or bits, so it costs no privacy beyond theirs. If the stream
    changed at k* (the first record of the new regime) and no alarm was raised before k* (``seen`` was at least k*
    + 1), then abs(index - k*) <= accuracy with probability at least 1 - beta.

    Attributes:
        index: estimate of k*: the first record of the new regime, counted from 0 over the whole stream.
        accuracy: the index is off by more records than this with probability at most ``beta``, see above. It is
            computed from P, Q and epsilon, never from the data.
        seen: number of records consumed when the alarm was raised, the end of a block.
        epsilon: privacy loss of the whole stream.
        simulated: whether the caller's generator drew the noise. Such an alarm is not private.
        design: the monitor's plan; not part of documents.
    """

    index: int
    accuracy: int
    seen: int

    KIND: ClassVar[str] = "Alarm"

    @property
    def title(self) -> str:
        """The name, and whether it is simulated."""
        return "Alarm" if self.private else "Alarm, SIMULATED, not private"

    @property
    def sentence(self) -> str:
        """The index, its accuracy, and the number of records at the alarm."""
        return f"change at record {self.index}, give or take {self.accuracy}; raised after {self.seen} records"

    def facts(self) -> list[Fact]:
        """Return the index, its accuracy, the number of records at the alarm, and the price."""
        return [
            Fact("index", self.index, "estimate of the first record of the new regime, if records come from P, then Q"),
            Fact("accuracy", self.accuracy, "records, give or take"),
            Fact("seen", self.seen, "records, when it was raised"),
            *self._ending(),
        ]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the index with its accuracy, and the time of the alarm; never the data."""
        from privatest import pictures

        return pictures.alarm(self, ax)


@dataclass(frozen=True, eq=False)
class BitBlocks(Blocks):
    """Blocks that release the bit of a private test: +1 for "as before", -1 for "new".

    Attributes:
        voter: the test.
        old, new: the votes of the two bits, +1 and -1.
    """

    voter: Voter
    old: int
    new: int
    kind: ClassVar[str] = "bits"

    @property
    def block(self) -> int:  # type: ignore[override]
        return int(self.voter.test.n)

    @property
    def cells(self) -> Cells:
        return self.voter.cells

    def meets(self, notion: Notion) -> bool:
        return self.voter.notion.implies(notion)

    def values(self, records: Records, ends: range = NO_ENDS) -> Integers:
        return self.voter.values(records, ends)

    def summary(self, values: Integers) -> Integers:
        return values

    def release(self, blocks: Sequence[Integers], source: RandomSource) -> list[int]:
        return [self.voter.vote(values, source) for values in blocks]

    def votes(self, released: Sequence[int]) -> list[int]:
        return [self.old if bit > 0 else self.new for bit in released]

    def trace(self, released: int) -> float:
        """Return the bit."""
        return float(released)

    def question(self) -> dict[str, Any]:
        return {"kind": self.kind, "test": self.voter.question(), "old": self.old, "new": self.new}


class AlarmRule(Rule):
    """The rule by which a monitor raises the alarm. Each method is a frozen dataclass below it."""

    kind: ClassVar[str]

    @abstractmethod
    def quiet(self, most: int, progress: Any) -> int:
        """Return the number of further blocks, each voting at most ``most``, that cannot raise an alarm."""


class CusumProgress(NamedTuple):
    """The number of blocks so far, W after them, and the number of blocks after which W was last 0."""

    blocks: int = 0
    level: int = 0
    zero: int = 0

    @property
    def start(self) -> int:
        """The block in which the change is placed: the first one of the latest excursion."""
        return self.zero


@dataclass(frozen=True)
class Cusum(AlarmRule):
    """The rule that raises the alarm when W, the sum of the votes since it was last 0, exceeds ``threshold``."""

    threshold: int
    kind: ClassVar[str] = "cusum"
    begin: ClassVar[CusumProgress] = CusumProgress()
    progress: ClassVar[type[CusumProgress]] = CusumProgress

    def __post_init__(self) -> None:
        if self.threshold < 0:
            raise InvalidDocument(f"threshold={self.threshold} must be a whole number of at least 0.")

    def feed(self, progress: CusumProgress, votes: Sequence[int]) -> tuple[CusumProgress, int | None]:
        (blocks, level, zero), threshold = progress, self.threshold
        for vote in votes:
            blocks += 1
            level += vote
            if level <= 0:
                level, zero = 0, blocks
            elif level > threshold:
                return CusumProgress(blocks, level, zero), blocks - progress.blocks - 1
        return CusumProgress(blocks, level, zero), None

    def quiet(self, most: int, progress: CusumProgress) -> int:
        return (self.threshold - progress.level) // most if most > 0 else sys.maxsize

    def check(self, progress: CusumProgress) -> None:
        """Raise InvalidDocument for a progress that is impossible."""
        if not 0 <= progress.zero <= progress.blocks or progress.level < 0:
            raise InvalidDocument("The progress of the monitor does not fit together.")


class IntervalsProgress(NamedTuple):
    """The number of blocks so far, and the bits of the last whole interval and of the current one (+1: "as before")."""

    blocks: int = 0
    last: tuple[int, ...] = ()
    present: tuple[int, ...] = ()

    @property
    def start(self) -> int:
        """The block in which the change is placed: the first argmin of the suffix sums of the bits."""
        bits = np.array(self.last + self.present, dtype=np.int64)
        return self.blocks - len(bits) + int(np.argmin(np.cumsum(bits[::-1])[::-1]))


@dataclass(frozen=True)
class Intervals(AlarmRule):
    """The rule that raises the alarm when most of an interval's ``interval`` blocks vote for the new regime."""

    interval: int
    kind: ClassVar[str] = "paper"
    begin: ClassVar[IntervalsProgress] = IntervalsProgress()
    progress: ClassVar[type[IntervalsProgress]] = IntervalsProgress

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise InvalidDocument(f"interval={self.interval} must be a whole number of at least 1.")

    def feed(self, progress: IntervalsProgress, votes: Sequence[int]) -> tuple[IntervalsProgress, int | None]:
        last, present = progress.last, list(progress.present)
        for place, vote in enumerate(votes):
            present.append(-1 if vote > 0 else 1)
            if len(present) == self.interval:
                if sum(present) < 0:
                    return IntervalsProgress(progress.blocks + place + 1, last, tuple(present)), place
                last, present = tuple(present), []
        return IntervalsProgress(progress.blocks + len(votes), last, tuple(present)), None

    def quiet(self, most: int, progress: IntervalsProgress) -> int:  # noqa: ARG002 - only the last block of an interval can
        return self.interval - len(progress.present) % self.interval - 1

    def check(self, progress: IntervalsProgress) -> None:
        """Raise InvalidDocument for a progress that is impossible."""
        bits = {*progress.last, *progress.present} <= {1, -1} and len(progress.present) <= self.interval
        if not bits or len(progress.last) not in (0, self.interval) or progress.blocks < len(progress.present):
            raise InvalidDocument("The progress of the monitor does not fit together.")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MonitorPlan(StreamPlan):
    """Everything that a monitor needs besides its records.

    Attributes:
        blocks: the releases and votes of the blocks.
        rule: the rule by which the alarm is raised.
        beta: probability with which an alarm's index may be off by more than its accuracy.
        accuracy: as for :class:`Alarm`.
        mean_time_between_false_alarms: lower bound on the mean number of records until a false alarm.
        expected_delay: upper bound on the mean number of records from k* to the alarm.
        delay_bound: number of records after k* within which the alarm comes with probability at least 1 - beta.
        recommended_interval: smallest number of blocks in an interval of the paper's method that meets the targets;
            None with "cusum".
        null, alternative: short descriptions.
        notion: the notion that the whole stream meets.
        max_rows_per_unit: the largest number of rows of one person that count; None: each record is a person of its
            own.
    """

    FORMAT: ClassVar[str] = "privatest/monitor-plan/1"
    KIND: ClassVar[str] = "plan of a monitor"
    STATE: ClassVar[StateKind] = MONITOR

    blocks: Blocks
    rule: AlarmRule
    beta: float
    accuracy: int
    mean_time_between_false_alarms: float
    expected_delay: float
    delay_bound: int
    recommended_interval: int | None = None
    null: str
    alternative: str
    notion: Notion = field(metadata={"key": "budget"})
    max_rows_per_unit: int | None = None

    def __post_init__(self) -> None:
        numbers = (self.beta, self.mean_time_between_false_alarms, self.expected_delay)
        if min(numbers) <= 0 or not all(map(math.isfinite, numbers)) or min(self.accuracy, self.delay_bound) < 0:
            raise InvalidDocument("The numbers of the monitor do not fit together.")
        super().__post_init__()

    @property
    def method(self) -> str:
        """ "cusum" or "paper"."""
        return self.rule.kind

    @property
    def threshold(self) -> int | None:
        """h, the level in votes that W must exceed for an alarm; None with the paper's method."""
        return self.rule.threshold if isinstance(self.rule, Cusum) else None

    @property
    def interval(self) -> int | None:
        """The number of blocks in an interval of the paper's method; None with "cusum"."""
        return self.rule.interval if isinstance(self.rule, Intervals) else None

    @property
    def false_alarm(self) -> float | None:
        """The probability that an interval of old records raises the alarm; None with "cusum"."""
        return None if self.interval is None else self.interval * self.block / self.mean_time_between_false_alarms

    def quiet(self, progress: Any) -> int:
        """Return the number of further blocks that cannot raise an alarm, whatever they release.

        Args:
            progress: the progress of the rule.
        """
        return self.rule.quiet(self.blocks.most_vote, progress) if isinstance(self.blocks, SumBlocks) else 0

    @property
    def result_class(self) -> type[Alarm]:
        """The class of the alarm."""
        return Alarm

    def result(self, progress: Any, origin: int, end: int) -> dict[str, Any]:
        """Return the fields of the alarm at the record ``end``.

        Args:
            progress: the progress of the rule.
            origin: the record at which the rule began.
            end: the record after the last one of the block.
        """
        return {"index": origin + progress.start * self.block, "accuracy": self.accuracy, "seen": end}

    def question(self) -> dict[str, Any]:
        """Return everything besides the data on which the releases depend, ready for JSON."""
        return self._question(blocks=self.blocks.question())

    @property
    def title(self) -> str:
        """The question in a few words."""
        return f"Monitor of a change from {self.null} to {self.alternative}"

    def facts(self) -> list[Fact]:
        """Return the question and the guarantees."""
        sure = f"records within which it is raised, with probability {1 - self.beta:g}"
        between = self.mean_time_between_false_alarms
        return [
            Fact("null", self.null, "the old regime"),
            Fact("alternative", self.alternative, "the new regime"),
            cost_fact(self.privacy, "of the whole stream"),
            Fact("beta", self.beta, "probability with which the alarm's index may be further off than its accuracy"),
            Fact("method", self.method),
            Fact("block", self.block, "records in a block"),
            Fact("interval", self.interval, "blocks in an interval of the paper's method"),
            Fact("recommended_interval", self.recommended_interval, "the smallest that meets the targets"),
            Fact("false_alarm", self.false_alarm, "probability of an alarm in one interval where nothing changed"),
            Fact("accuracy", self.accuracy, "that an alarm will carry, in records"),
            Fact("expected_delay", self.expected_delay, "records from the change to the alarm on average, at most"),
            Fact("delay_bound", self.delay_bound, sure),
            Fact("mean_time_between_false_alarms", between, "in records, at least"),
            Fact("max_rows_per_unit", self.max_rows_per_unit, "rows of one person that count in the whole stream"),
        ]

    def __repr__(self) -> str:
        return (
            f"MonitorPlan({self.null} to {self.alternative}, {notion_words(self.privacy)}, method={self.method!r}, "
            f"block={self.block}, mean_time_between_false_alarms={self.mean_time_between_false_alarms:.4g}, "
            f"expected_delay={self.expected_delay:.4g}, accuracy={self.accuracy})"
        )
