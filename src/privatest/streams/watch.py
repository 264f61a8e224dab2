"""What each block of a stream releases, and what it votes: all that a monitor ever learns of the data.

- :class:`SumBlocks`: the noisy total.
- :class:`BitBlocks`: the bit of a private test: one of goodness of fit, for an unknown alternative, or a given one.

A record lies in one block, so all releases together are as private as one. Both restore from plain JSON values.

When to raise the alarm, given the blocks' votes: the CUSUM chart and the paper's intervals.

A rule is frozen; its progress is a small value that is replaced, never changed, so that what was not written to
disk has not happened.

A monitor's design: what the blocks release, the rule that raises the alarm, and what is known of both beforehand.

What takes a stream, record by record or in batches, and keeps its state: monitors and sequential tests alike.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from privatest.addresses import format_of
from privatest.changepoint.block_tests import Voter
from privatest.charge import ANYBODY, fingerprint, make_charge
from privatest.documents import check_known, wholes_from_json
from privatest.engines.arrays import SequenceRecords
from privatest.engines.records import NO_ENDS, ORDERED, Records
from privatest.engines.sources import open_for, placed
from privatest.errors import InvalidDocument, InvalidInput
from privatest.facts import Described, Fact
from privatest.hypotheses import Hypothesis
from privatest.numbers import Integers
from privatest.privacy import Notion, RandomSource, as_notion, seeded_source, system_source
from privatest.privacy.notions import notion_words, price_words
from privatest.scores import LabelCells
from privatest.streams.state import MONITOR, Keeper, StateFile
from privatest.streams.stream import (
    PLAIN,
    OneProcess,
    OpenBits,
    OpenBlock,
    OpenSum,
    Raised,
    Stream,
    Streamed,
    SumBlocks,
    check_met,
    holds_tuples,
    stream_privacy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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

    def release(self, values: Integers, source: RandomSource) -> int:
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
        return BitBlocks(Voter.from_dict(document["test"]), int(document["old"]), int(document["new"]))
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

    def opened(self, source: RandomSource) -> OpenBlock:
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
        found = cls(blocks, rule, recommended_interval=interval, **settings, notion=notion)
        check_known(document, found.to_dict(), "the design of the monitor")
        return found


@dataclass(frozen=True)
class Alarm(Described):
    """A monitor says that the stream has changed.

    Guarantees: a function of the blocks' noisy sums or bits, so it costs no privacy beyond theirs. If the stream
    changed at k* (the first record of the new regime) and no alarm was raised before k* (``seen`` was at least k*
    + 1), then abs(index - k*) <= accuracy with probability at least 1 - beta.

    Attributes:
        index: estimate of k*: the first record of the new regime, counted from 0 over the whole stream.
        seen: records consumed when the alarm was raised; always the end of a block.
        simulated: True when the monitor's randomness came from a generator of the caller's; no part of its documents.
        accuracy: the index is off by more records than this with probability at most ``beta``, see above; computed from
            P, Q and epsilon, never from the data.
    """

    index: int
    accuracy: int
    seen: int
    simulated: bool = field(default=False, compare=False, repr=False)

    @property
    def private(self) -> bool:
        """Whether the guarantee holds: randomness from the operating system."""
        return not self.simulated

    @property
    def replayed(self) -> None:
        """Never: a monitor releases a block once, and what a state holds is the alarm itself."""
        return

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return self.values()

    def plot(self, ax: Axes | None = None) -> Axes:
        """The index with its accuracy, and when the alarm was raised; never the data."""
        from privatest import pictures

        return pictures.alarm(self, ax)

    @property
    def title(self) -> str:
        """What this is."""
        return "Alarm" if self.private else "Alarm, SIMULATED, not private"

    @property
    def sentence(self) -> str:
        """Where, how well, and when."""
        return f"change at record {self.index}, give or take {self.accuracy}; raised after {self.seen} records"

    def facts(self) -> list[Fact]:
        """Where, how well, and when."""
        return [
            Fact("index", self.index, "estimate of the first record of the new regime"),
            Fact("accuracy", self.accuracy, "records, give or take"),
            Fact("seen", self.seen, "records, when it was raised"),
        ]


D = TypeVar("D", bound=Streamed)
A = TypeVar("A", bound=Raised)
UNSAID: Any = object()  # of a unit: not even that it is nobody


def _names_a_source(text: str) -> bool:
    """Whether a text is written as names of files and addresses of tables are."""
    return format_of(text) is not None or ("://" in text and "::" in text)


class Watcher(OneProcess, Described, Generic[D, A]):
    """A design and the stream on its way through it.

    Guarantees, of all: every record lies in one block, so all that is ever put out is together as private as one
    block's release. With a state file, each release is in it before anything that depends on it is put out; only the
    newest state may go on.
    """

    DESIGN: ClassVar[type[Any]]
    """The class of the design."""
    _stream: Stream

    def _begin(
        self,
        laws: list[Hypothesis],
        settings: dict[str, Any],
        made: Callable[[], D],
        *,
        notion: Notion,
        rows: int | None,
        state: str | os.PathLike[str] | None,
        ledger: Any,
        dataset: str | None,
        request: str | None,
        source: str | os.PathLike[str] | None,
        rng: np.random.Generator | None,
    ) -> None:
        """Begin, or go on from the state file if there is one of the same settings; charge once.

        Args:
            laws: P and, where it is known, Q.
            settings: plain JSON values, by which states and requests are told apart, besides all that is named here.
            made: makes the design; not called where the state holds it.
            notion: what the whole stream is to meet.
            rows: the most rows of one person that count.
        """
        asked = {
            **{name: law.describe() for name, law in zip(("null", "alternative"), laws, strict=False)},
            **settings,
            **price_words(notion),
            "dataset": dataset,
            "request": request,
            **({} if rows is None else {"max_rows_per_unit": rows}),
        }
        paying: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "request": request, "data": source}
        make_charge(**paying, price=notion.price, design=dict, simulated=rng is not None)  # refuses what it must
        keeper = self.DESIGN.keeper
        file = None if state is None else StateFile(state, keeper)
        randomness: RandomSource = system_source if rng is None else seeded_source(rng)
        if file is not None and file.exists():
            content = file.read()
            same = content.get("asked", asked) == asked
            if same:
                self._stream = Stream.restored(content, randomness, file, self.DESIGN)
            if same and not all(law.named for law in laws):
                # The descriptions leave open what P and Q are; what is made of them does not.
                same = fingerprint(self._stream.watch.releases()) == fingerprint(made().releases())
            if not same:
                raise InvalidInput(
                    f"The state {file.path.name!r} is that of a {keeper.noun} with other settings. Restore it with "
                    f"{keeper.name}.load(path), or give this {keeper.noun} another file."
                )
        else:
            self._stream = Stream(made(), asked, randomness, file)
        stream = self._stream
        charge = make_charge(
            **paying,
            price=stream.watch.privacy.price,
            design=stream.design,
            simulated=rng is not None,
            settings=stream.asked,
            unit=None if stream.turns is None else ANYBODY,
        )
        if charge is not None:
            stream.begin(charge)
        elif file is not None and stream.fresh:
            stream.persist()

    @property
    def _design(self) -> D:
        found: Any = self._stream.watch
        design: D = found
        return design

    @property
    def raised(self) -> A | None:
        """What ended the stream: an alarm, a verdict; None while it goes on."""
        found: A | None = self._stream.alarm
        return found

    @property
    def epsilon(self) -> float:
        """Privacy loss of the whole stream; infinite where another notion bounds none."""
        return float(self.privacy.epsilon)

    @property
    def privacy(self) -> Notion:
        """The notion of stability that the whole stream meets."""
        return self._stream.watch.privacy

    @property
    def _cost(self) -> str:
        """For ``repr``: what the whole stream costs, or that it is not private."""
        cost = notion_words(self.privacy)
        return cost if self.private else f"SIMULATED, not private ({cost})"

    @property
    def seen(self) -> int:
        """Records consumed so far; the stream goes on with record number ``seen``, counted from 0."""
        return self._stream.seen

    @property
    def simulated(self) -> bool:
        """True when randomness came from a generator of the caller's at any time: such a stream is not private."""
        return self._stream.simulated

    @property
    def private(self) -> bool:
        """Whether the guarantee holds: randomness from the operating system."""
        return not self._stream.simulated

    @property
    def place(self) -> Any:
        """After a restore: what ``update_many`` was told of the place of the records before ``seen``; else None."""
        return self._stream.place

    def update(self, x: Any, *, unit: Any = UNSAID) -> A | None:
        """Take one record, or a batch if x can be one; what is raised, if anything is.

        A batch is a list, a range, an array, a column, a table, an iterator; a tuple, too, unless labels of P and Q are
        tuples. A set is refused: it has no order. Numbers, texts, mappings and all else are one record. Where a record
        may be a list itself, use :meth:`update_one`. A path is a file of records; a text that ends as names of files do
        (".parquet"), or is the address of a table, is refused unless it is a label of P and Q: :meth:`update_many`
        takes files and tables, :meth:`update_one` any record.

        A record that makes no sense raises nothing: it gets a fixed score.

        Args:
            x: the record or the batch.
            unit: whose it is, where the design is one of persons (``max_rows_per_unit``): any value that names a
                person; of a batch, one for each record. None is nobody.
        """
        if isinstance(x, str | bytes) and x not in self._texts and _names_a_source(os.fsdecode(x)):
            raise InvalidInput(
                "update was given the name of a file or table, which is no label of P and Q. Give sources of records "
                "to update_many(...), and one record, whatever it is, to update_one(...)."
            )
        if unit is UNSAID and (type(x) is float or type(x) in PLAIN):
            stream = self._stream
            if free := stream._free:
                pending = stream._pending
                pending.append(x)  # a turn is taken when the block is full
                return None if len(pending) < free else stream.filled()
        if type(x) in PLAIN or not self._is_batch(x):
            return self._take(x, unit)
        return self.update_many(x, unit=unit)

    def update_one(self, x: Any, *, unit: Any = UNSAID) -> A | None:
        """Take one record, whatever it is; what is raised, if anything is.

        A list, an array, a set or a table is one record, which makes no sense and gets a fixed score; so is any text
        that is no label. A path (``os.PathLike``) is refused: no record is one.

        Args:
            x: the record.
            unit: whose it is, as for :meth:`update`.
        """
        if type(x) not in PLAIN and issubclass(type(x), os.PathLike):
            raise InvalidInput("A path was given as a record. Give files of records to update_many(...).")
        return self.update(x, unit=unit) if type(x) in PLAIN and type(x) is not str else self._take(x, unit)

    def _take(self, x: Any, unit: Any) -> A | None:
        if (unit is UNSAID) != (self._stream.turns is None):
            self._check_unit(unit)
        found: A | None = self._stream.take(x, unit)
        return found

    def update_many(
        self,
        batch: Any,
        *,
        column: str | None = None,
        unit: Any = UNSAID,
        order: str | None = None,
        place: Any = None,
    ) -> A | None:
        """Take a batch of records in order of time; what is raised, if anything is.

        Records after that are not consumed (``seen`` says where), whatever the batch holds.

        Args:
            batch: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together
                with ``column``.
            column: which column holds the records.
            unit: which column says whose each record is, or a list of them beside a plain batch; needed, and allowed,
                where the design is one of persons (``max_rows_per_unit``).
            order: which column gives the order of time within the batch; None where the records lie in that order.
                Equal values on both sides of a block's end are refused, and nothing of the batch is consumed.
            place: where the batch came from, such as a file and the number of its first record: plain JSON values, kept
                in the state together with what is released of the batch.
        """
        try:
            json.dumps(place)
        except (TypeError, ValueError, RecursionError):
            raise InvalidInput("place must be made of plain JSON values: text, numbers, lists, dicts.") from None
        turns = self._stream.turns
        self._check_unit(unit)
        records: Records
        if turns is None:
            records = open_for(ORDERED, batch, column=column, order=order)
        else:
            records = placed(turns, batch, column=column, unit=unit, order=order)
        found: A | None = self._stream.take_many(records, place)
        return found

    def _check_unit(self, unit: Any) -> None:
        """Refuse persons where the design knows none, and records of nobody in particular where it does."""
        turns, keeper = self._stream.turns, self.DESIGN.keeper
        if unit is not UNSAID and unit is not None and turns is None:
            raise InvalidInput(
                f"unit was given, but this {keeper.noun} takes each record for a person's only one. Make it one of "
                f"persons: {keeper.name}(..., max_rows_per_unit=1)."
            )
        if unit is UNSAID and turns is not None:
            raise InvalidInput(
                f"This {keeper.noun} counts up to max_rows_per_unit={turns.most} records of one person, but unit is "
                "missing. Say whose the records are: unit=..."
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state, atomically; from now on the file is kept up to date.

        The file holds what was released and nothing else of the data. The records of an unfinished block are not in
        it: after a restore ``seen`` is the end of the last whole block. A file that was kept before says from now on
        that its stream has moved, and can no longer be loaded.

        Args:
            path: of the file.
        """
        _ = self._stream.watch.text  # a design that no file can hold is refused before there is one
        self._stream.save(path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        ledger: Any = None,
        source: str | os.PathLike[str] | None = None,
        rng: np.random.Generator | None = None,
    ) -> Self:
        """The one whose state this is; it goes on keeping the file up to date.

        Feed it the stream from record number ``seen`` on. Refuses a file that is cut short, edited, of another
        version, in use by another process, or older than the newest one that was kept there. One that was charged to a
        ledger goes on with that ledger only, which refuses a state that is not the newest one wherever it lies. Within
        a process the one that was loaded last is the only one that may go on.

        Args:
            path: the state file.
            ledger, source: as they were given when it began.
            rng: for simulations.
        """
        noun, name = cls.DESIGN.keeper.noun, cls.DESIGN.keeper.name
        file = StateFile(path, cls.DESIGN.keeper)
        randomness: RandomSource = system_source if rng is None else seeded_source(rng)
        stream = Stream.restored(file.read(), randomness, file, cls.DESIGN)
        dataset, request = (stream.asked.get(key) for key in ("dataset", "request"))
        if (ledger is None) != (request is None):
            raise InvalidInput(
                f"The {noun} of the state {file.path.name!r} was begun without a ledger. Leave ledger= out."
                if request is None
                else f"The {noun} of the state {file.path.name!r} was charged as request {request!r} of data set "
                f"{dataset!r}. Its ledger knows whether this is the newest state: give ledger=."
            )
        charge = make_charge(
            ledger,
            dataset,
            request,
            price=stream.watch.privacy.price,
            design=stream.design,
            simulated=rng is not None,
            data=source,
            settings=stream.asked,
            unit=None if stream.turns is None else ANYBODY,
        )
        if charge is not None:
            if charge.earlier() is None:
                raise InvalidInput(
                    f"This ledger has no {noun} of request {request!r} on data set {dataset!r}. Give the ledger that "
                    f"was charged; if the {noun} was killed while it began, begin it again: {name}(..., "
                    f"state={file.path.name!r})."
                )
            stream.begin(charge)
        return cls._of(stream)

    @classmethod
    def of(cls, watch: D, *, rng: np.random.Generator | None = None) -> Self:
        """A fresh one of a design that was made before, for simulations of many streams.

        Args:
            watch: the design.
            rng: a seeded generator; None: the operating system's randomness.
        """
        return cls._of(Stream(watch, {}, system_source if rng is None else seeded_source(rng)))

    @classmethod
    def _of(cls, stream: Stream) -> Self:
        made = cls.__new__(cls)
        made._stream = stream
        return made

    @cached_property
    def _texts(self) -> frozenset[Any]:
        """The labels of P and Q, where they have any."""
        blocks = self._stream.watch.blocks
        cells = blocks.score.cells if hasattr(blocks, "score") else blocks.voter.cells
        return frozenset(cells.labels if isinstance(cells, LabelCells) else ())

    def _is_batch(self, x: Any) -> bool:
        if isinstance(x, (float, int, str, bytes, bytearray, complex)):
            return False
        if isinstance(x, tuple):
            return not self._stream.watch.blocks.holds_tuples
        if isinstance(x, (list, set, frozenset, deque, range)):
            return True
        if isinstance(x, (np.ndarray, np.generic)):
            return x.ndim > 0
        if isinstance(x, Records):
            return True
        columns = ("__fspath__", "__array__", "__arrow_c_stream__", "columns", "column_names", "__next__")
        return any(hasattr(type(x), name) for name in columns)
