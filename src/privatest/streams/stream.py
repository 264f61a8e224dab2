"""The block that is being filled, and what it releases once it is full.

Noise is drawn when a block is released and at no other time, and what is raw never leaves the process: it is in no
file, and nothing that holds it can be copied. Two continuations of one stream then draw noise of their own, so that no
difference of what they release is raw.

Blocks that release noisy totals, of monitors and of sequential tests alike.

The total of a block's scores plus noise that meets the notion is an exact half integer T; the vote is a step function
of T: the log-likelihood ratio of its bin for "cusum" and for sequential tests, a bit for "paper". A record lies in one
block, so all releases together are as private as one.

A stream on its way through a design, a monitor's or a sequential test's.

Records in, releases to the disk first, then the alarm or the verdict.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, NoReturn, Protocol

import numpy as np

from privatest.charge import Charge, Draw
from privatest.documents import integers_from_json, reading, wholes_from_json
from privatest.engines.arrays import SequenceRecords
from privatest.engines.records import NO_ENDS, Column, Records, scores_of_each
from privatest.engines.units import DIGEST, PlacedRecords, Turns, UnitName
from privatest.errors import InvalidDocument, InvalidInput, RequestConflict
from privatest.numbers import Integers
from privatest.privacy import Noise, Notion, Pure, RandomSource, noise_from_dict, system_source
from privatest.privacy.bulk_draws import draw_blocks, noise_adder
from privatest.privacy.canonical import CANONICAL
from privatest.privacy.notions import per_row
from privatest.scores import Cells, LabelCells, Score
from privatest.scores.score import BoundedCells, DyadicCells
from privatest.streams.state import Keeper, NotWritten, Roll, StateFile

ONLY_ONE = (
    "What watches a stream cannot be copied, pickled or used in a forked process: it holds raw records, and two that "
    "go on from one place would release the same records twice. Write its state with save(path), and go on with "
    "load(path) of its class wherever it is needed."
)


class OneProcess:
    """What holds records of an unfinished block: there is one of it, in one process."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidInput(ONLY_ONE)


@dataclass
class Closed(OneProcess):
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

    def release(self, values: Integers, source: RandomSource) -> int:
        """The bit of a block, from its records' symbols."""


class OpenSum(OneProcess):
    """Twice the sum of the scores so far; of the ``length`` records from ``start`` on there are ``count``.

    The stream's first block may have another length than the later ones.
    """

    def __init__(self, blocks: SumBlocks, source: RandomSource, first: int | None = None) -> None:
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


class OpenBits(OneProcess):
    """The symbols of the records so far."""

    def __init__(self, blocks: Bits, source: RandomSource) -> None:
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


class PricedBlocks(Protocol):
    """Blocks, as far as their price goes."""

    @property
    def epsilon(self) -> Fraction | None:
        """Privacy loss of a block's release; None where there is no bound."""

    def meets(self, notion: Notion) -> bool:
        """Whether a block's release meets the notion."""


def check_met(blocks: PricedBlocks, notion: Notion | None, rows: int) -> None:
    """Refuse blocks that are not private: for every row of a person, as the notion of the whole stream asks."""
    if isinstance(notion, Pure):
        raise InvalidDocument(f"privacy={notion} is an epsilon, which the noise tells by itself. Leave it out.")
    if blocks.epsilon is None and notion is None:
        raise InvalidDocument("privacy is missing: this noise bounds no privacy loss, but another notion.")
    if notion is not None and not blocks.meets(per_row(notion, rows)):
        raise InvalidDocument(f"What the blocks release does not meet {notion} for up to {rows} rows of a person.")


def stream_privacy(blocks: PricedBlocks, notion: Notion | None, rows: int) -> Notion:
    """What a stream of such blocks meets, all of it, for up to so many rows of a person."""
    if notion is not None:
        return notion
    assert blocks.epsilon is not None  # by check_met
    return Pure(blocks.epsilon * rows)


TRACE = 256
"""How many of the newest releases are kept."""
_CHUNK = 1 << 17
# So many single records wait at most, and so many of blocks that are full.
_MOST_PENDING, _MOST_FULL = 4096, 96


class Raised(Protocol):
    """What ends a stream: an alarm, a verdict."""

    @property
    def seen(self) -> int:
        """Records consumed when it was raised."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""


class Streamed(Protocol):
    """What a stream needs of its design: a monitor's :class:`Watch`, or the plan of a sequential test."""

    keeper: ClassVar[Keeper]

    @property
    def rule(self) -> Any:
        """When something is raised: frozen, with ``begin``, ``feed``, ``feed_few`` and the codec of its progress."""

    @property
    def blocks(self) -> Any:
        """What the blocks release and vote (``watch.Blocks``); of unequal ones the later."""

    @property
    def block(self) -> int:
        """Records in a block; of unequal ones in the later."""

    @property
    def privacy(self) -> Notion:
        """What the whole stream meets."""

    @property
    def text(self) -> str:
        """JSON text of the whole design, always the same."""

    def opened(self, source: RandomSource) -> OpenBlock:
        """An empty block at the stream's first record."""

    def records(self, blocks: int) -> int:
        """Records in the first so many blocks."""

    def votes(self, released: Integers, before: int) -> Integers:
        """The votes of blocks that so many blocks came before."""

    def few_votes(self, released: list[int], before: int) -> Iterable[int]:
        """The votes of a few, without the price of arrays."""

    @property
    def quiet(self) -> Callable[[Any], int]:
        """From the progress: so many further blocks raise nothing whatever they release."""

    def raised(self, progress: Any, origin: int, end: int, simulated: bool) -> Raised:
        """What is raised at the record ``end``, by a rule that began at ``origin``."""

    def raised_from_dict(self, document: dict[str, Any], simulated: bool) -> Raised:
        """What its ``to_dict`` wrote."""

    def releases(self) -> dict[str, Any]:
        """What the releases depend on besides the data: plain JSON values."""

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Streamed:
        """What ``text`` says; refuses a design that is not private at its declared epsilon."""


class Stream(OneProcess):
    """The mutable half of what watches. What it released is on disk (if it has a file) before anything shows it.

    With a ledger every state has a mark and names the one before it. A state is written, then its mark is noted in the
    ledger, and then it is shown; the ledger takes each step from a mark once. So of all copies of a state only one goes
    on, and a process that is killed in between leaves a state whose mark, or whose mark before, the ledger has.

    Threads take turns: what one has consumed is released once, whoever comes next.

    Single records of blocks that can raise nothing, whatever their noise will be, wait for the first block that can
    (``Streamed.quiet``), and all of these are then released together; with a file every block is released when it is
    full. Whoever asks what was released has them released first.

    A stream of persons remembers how many rows each of them had (``turns``). That is raw: it is put out nowhere, and
    beside a state file it is kept as digests (``state_file.Roll``), of the rows of blocks that were released. Those of
    an unfinished block are fed again after a restore, and count then.

    Attributes:
        alarm: the alarm or verdict, if it has been raised.
        simulated: whether any noise came from a seeded generator.
        place: where in its source the record lies at which the state goes on, as the caller put it.
    """

    # These are asked for often; others are in a dict.
    __slots__ = ("_block", "_feed", "_free", "_lacks", "_open", "_pending", "_progress", "_quiet", "_room", "_votes")

    def __init__(self, watch: Any, asked: dict[str, Any], source: RandomSource, file: StateFile | None = None) -> None:
        self.watch: Streamed = watch
        self.asked, self.file = asked, file
        rows = getattr(watch, "max_rows_per_unit", None)
        self.turns = None if rows is None else Turns(rows)
        self._owners: list[UnitName | None] = []  # whose each row since the open block's first is, if it counts
        self._roll: Roll | None = None
        if self.turns is not None and file is not None:
            self._enroll(file)
        self.simulated = source.simulated
        self.name = f"{system_source.bits(128):032x}"
        self.alarm: Any = None
        self._released: deque[int] = deque(maxlen=TRACE)
        self.place: Any = None
        self._charge: Charge | None = None
        self._mark = self._after = ""
        self._process, self._in_doubt = os.getpid(), False
        self._turn = threading.Lock()
        self._generation = self._origin = 0
        self._progress: Any = watch.rule.begin
        self._open: OpenBlock = watch.opened(source)
        self._block, self._quiet = watch.block, watch.quiet
        self._votes, self._feed = watch.few_votes, watch.rule.feed_few
        self._pending: list[Any] = []  # single records, appended without taking turns where they are plain
        self._plain = True  # whether all of them are
        self._waits = self.turns is None and isinstance(self._open, OpenSum)
        self._make_room()
        _streams.add(self)

    @classmethod
    def restored(cls, content: dict[str, Any], source: RandomSource, file: StateFile, of: type[Streamed]) -> Stream:
        """The stream whose state this is, of a design of this kind."""
        noun = file.keeper.noun
        if content.get("moved") is True:
            raise InvalidDocument(
                f"The {noun} of the state {file.path.name!r} was saved to another file later. Load that one."
            )
        with reading(f"the state {file.path.name!r} ({file.keeper.format})"):
            watch = of.from_dict(content["design"])
            stream = cls(watch, dict(content["asked"]), source, file)
            if stream._roll is not None:
                stream._recall(stream._roll, content["turns"])
            stream.name, stream._generation = str(content["id"]), int(content["generation"]) + 1
            stream.simulated = source.simulated or bool(content["simulated"])
            stream._origin = int(content["origin"])
            stream._progress = watch.rule.progress_from_dict(content["progress"])
            if content["alarm"] is not None:
                stream.alarm = watch.raised_from_dict(content["alarm"], stream.simulated)
            stream._released.extend(int(value) for value in content["trace"])
            stream.place = content["place"]
            stream._mark, stream._after = str(content["mark"]), str(content["after"])
            stream._open.go_to(int(content["start"]))
            if stream._open.start != stream._origin + watch.records(stream._progress.blocks):
                raise InvalidDocument(f"The progress of the {noun} does not fit its blocks.")
        stream._make_room()
        return stream

    def design(self) -> dict[str, Any]:
        """All that the releases depend on besides the data."""
        return {self.watch.keeper.noun: self.watch.releases()}

    def begin(self, charge: Charge) -> None:
        """Charge once; the ledger's release is the name of the one stream that the request began."""
        noun, name = self.watch.keeper.noun, self.watch.keeper.name
        if self._after and charge.earlier() is None:
            raise InvalidInput(
                f"This ledger has no {noun} of request {charge.request!r} on data set {charge.dataset!r}, and the one "
                "of this state was begun with a ledger. Nothing was charged: give the ledger that was charged then."
            )

        def begun(_: Draw) -> dict[str, str]:
            if self.file is not None and self.fresh:
                self.persist()
            return {noun: self.name}

        if charge.perform(lambda: None, begun).get(noun) != self.name:
            raise RequestConflict(
                f"Request {charge.request!r} on data set {charge.dataset!r} began a {noun} before. A second one on "
                f"the same records would spend their budget twice: go on with {name}.load(path, ledger=...) of its "
                "newest state file, or make a new request."
            )
        self._charge = charge
        if self.file is not None:
            with self._step():
                self._note(self._open.start)

    @property
    def seen(self) -> int:
        """Records consumed so far; what came after an alarm is not."""
        return self._open.end + (len(self._pending) if self.alarm is None else 0)

    @property
    def progress(self) -> Any:
        """How far the rule has come, of what was released alone."""
        self._settle()
        return self._progress

    @property
    def released(self) -> Sequence[int]:
        """The newest releases, as integers."""
        self._settle()
        return self._released

    def _settle(self) -> None:
        """Release the blocks that are full and wait. In a forked process they are not for it to release."""
        if len(self._pending) < self._lacks or self._process != os.getpid():
            return
        with self._turn:
            if self.alarm is None:
                with self._step():
                    self._flush()

    @contextlib.contextmanager
    def _step(self) -> Iterator[None]:
        """A step of the stream: a draw, its place on disk and in the ledger, and what is seen of it, all or in doubt.

        In doubt before anything moves, and cleared last: whatever cuts a step short (an interrupt, a disk, a ledger
        that does not answer), no block is drawn again here. A state that was certainly not written leaves all as it
        was: what was drawn for it is dropped, seen by nobody.
        """
        self.check()
        self._in_doubt, self._free = True, 0  # nothing is free: the next record of any kind meets check()
        try:
            yield
        except NotWritten:
            self._make_room()
            self._in_doubt = False
            raise
        self._make_room()
        self._in_doubt = False

    @property
    def fresh(self) -> bool:
        """Whether the state was never written."""
        return self._generation == 0

    def take(self, record: Any, unit: Any = None) -> Any:
        """Consume one record, of any kind. Scored when its block is full."""
        with self._turn:
            self.check()
            if self.alarm is not None:
                return self.alarm
            if self.turns is None:
                self._append(record)
                return self._filled()
            with self._step():
                owner = self.turns.admit(unit)
                self._append(None if owner is None else record)  # None makes no sense whatever P and Q are
                self._owners.append(owner)
                try:
                    return self._flush() if len(self._pending) >= self._room else None
                except NotWritten:
                    self._pending.pop()
                    self._owners.pop()
                    if owner is not None:
                        self.turns.give_back(owner)
                    raise

    def _append(self, record: Any) -> None:
        """A record that waits, of any kind: what its own arithmetic would do or say is nobody's to hear."""
        if type(record) is np.float64:
            record = float(record)
        self._plain = self._plain and type(record) in PLAIN
        self._pending.append(record)

    def filled(self) -> Any:
        """Release the block that the records that wait may have filled.

        Whoever appends a record without taking turns has seen ``_free`` above 0 and comes here unless fewer wait. A
        block is made of those that wait when its turn comes; one that came too late waits for the next.
        """
        with self._turn:
            if self.alarm is not None:
                return self.alarm
            batch = self._pending[:]
            if self.file is not None or len(batch) != self._room or not self._plain:
                return self._filled()
            # A step, without the price of one. A forked process never comes here: nothing is free there.
            self.check()
            self._in_doubt, self._free = True, 0
            released = self._open.close_plain(batch)
            if released is None:
                self._in_doubt = False
                return self._filled()
            del self._pending[: len(batch)]  # what comes meanwhile stays
            found = self._account(released, None)
            self._in_doubt = False
            return found

    def _filled(self) -> Any:
        if len(self._pending) < self._room:
            return None
        with self._step():
            try:
                return self._flush()
            except NotWritten:
                self._pending.pop()
                raise

    def take_many(self, records: Records, place: Any = None) -> Any:
        """Consume records until the alarm; the state goes on at ``place`` once a block ended among them."""
        with self._turn:
            self.check()
            if self.alarm is not None:
                return self.alarm
            for part in _parts(records):
                block = self.watch.block
                lacks = self._open.start + self._open.length - self.seen
                end = lacks if lacks > 0 else lacks % block or block  # blocks that are full may wait
                # Before anything is consumed: a tie across a block's end is refused wherever the alarm would be.
                values = self.watch.blocks.values(part, range(end, sys.maxsize, block))
                with self._step():
                    self._flush()
                with self._step():
                    if isinstance(part, PlacedRecords):
                        found = self._consume_of_persons(part, values, place)
                    else:
                        found = self._consume(values, place)
                if found is not None:
                    break
            return self.alarm

    def reset(self) -> None:
        """Begin anew with the next block."""
        with self._turn:
            with self._step():
                if self.alarm is not None:
                    self._pending.clear()  # came while it was raised
                self._flush()
            before = self.alarm, self._progress, self._origin
            with self._step():
                self.alarm, self._progress, self._origin = None, self.watch.rule.begin, self._open.start
                try:
                    if self.file is not None:
                        self._persist()
                except NotWritten:
                    self.alarm, self._progress, self._origin = before
                    raise

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a path and keep it there."""
        with self._turn:
            with self._step():
                self._flush()
            before, roll = self.file, self._roll
            if before is not None and before.is_at(path):
                with self._step():
                    self._persist()
                return
            file = StateFile(path, self.watch.keeper)
            try:
                file.check_free(self.name)
                with self._step():
                    self.file, written = file, False
                    try:
                        if self.turns is not None:
                            self._enroll(file)
                        self._persist()
                        written = True
                        if before is not None:
                            moved = {"id": self.name, "generation": self._generation, "moved": True}
                            before.write(self.name, self._generation, json.dumps(moved))
                    except InvalidInput as error:
                        if isinstance(error, NotWritten) and not written:  # it stays where it was
                            self.file, self._roll = before, roll
                            raise
                        raise error if before is None else self._twice(before, file) from None
                    if before is not None:
                        before.close()
                        if roll is not None:
                            roll.remove()
            except BaseException:
                if self.file is not file or self._in_doubt:
                    file.close()
                raise

    def _twice(self, before: StateFile, file: StateFile) -> InvalidInput:
        """What to say where a state was saved elsewhere, and neither file is certainly not the one to go on from."""
        new, old = repr(file.path.name), repr(before.path.name)
        return InvalidInput(
            f"The state may lie at {new} and still at {old}: the disk failed in between. To go on from both would "
            f"release blocks twice. Go on with {self.watch.keeper.name}.load({new}) and remove {old}, or the other way "
            "round."
        )

    def persist(self) -> None:
        """Write the state. It goes on behind the last whole block: nothing is kept of an unfinished one."""
        with self._step():
            self._persist()

    def _persist(self) -> None:
        self._write(self._progress, self.alarm, self._released, self._open.start, self.place)

    def check(self) -> None:
        """Refuse to go on where another one may: in a forked process, or where a step was cut short."""
        if self._process != os.getpid():
            raise InvalidInput(ONLY_ONE)
        if self._in_doubt:
            noun, name = self.watch.keeper.noun, self.watch.keeper.name
            cut = f"The last step of this {noun} was cut short, and nobody can say here how much of it was done"
            if self.file is None:
                raise InvalidInput(
                    f"{cut}: to go on could give a block a second draw. It was kept in memory alone: begin a new one, "
                    "with a request of its own. One with state=path goes on from its file."
                )
            ledger = "" if self._charge is None else ", ledger=..."
            raise InvalidInput(
                f"{cut}: its state may have been written, or noted in the ledger. Go on with {name}.load("
                f"{self.file.path.name!r}{ledger}), and feed the stream from the record that its seen names."
            )

    def _flush(self) -> Any:
        """Score the single records that wait for it. Part of a step."""
        pending, opened = self._pending, self._open
        if not pending:
            return self.alarm
        batch, plain = pending[:], self._plain
        del pending[: len(batch)]  # what comes meanwhile stays, and is plain
        self._plain = True
        try:
            released = opened.close_plain(batch) if plain and len(batch) == self._lacks else None
            if released is None:
                return self._consume(self.watch.blocks.values_of(batch))
            return self._account(released, None)
        except NotWritten:
            pending[:0] = batch
            self._plain = plain
            raise

    def _consume(self, values: Integers, place: Any = None) -> Any:
        """Add values to the open block; what whole blocks release is on disk before anybody looks at it."""
        lacks = self._open.length - self._open.count
        if len(values) == lacks:
            return self._account([self._open.close_one(values)], place)  # without the price of arrays
        if len(values) < lacks:
            self._open.extend(values)
            self._make_room()
            return None
        closed = self._open.close(values)
        votes = self.watch.votes(closed.released, self._progress.blocks)
        progress, hit = self.watch.rule.feed(self._progress, votes)
        released = closed.released if hit is None else closed.released[: hit + 1]
        end, alarm = closed.end(len(released)), None
        if hit is not None:
            alarm = self.watch.raised(progress, self._origin, end, self.simulated)
        self._show(progress, alarm, released[-TRACE:].tolist(), end, place)
        if alarm is None:
            self._open.extend(closed.rest)
            self._make_room()
        return alarm

    def _consume_of_persons(self, part: PlacedRecords, values: Integers, place: Any) -> Any:
        """:meth:`_consume` of the rows of a batch, whose units then had their turns: as far as rows were consumed."""
        before, waiting = self.seen, len(self._owners)
        self._owners += part.owners()
        try:
            found = self._consume(values, place)
        except NotWritten:
            del self._owners[waiting:]
            raise
        part.consumed(self.seen - before)
        del self._owners[self._open.count :]  # those behind an alarm
        return found

    def _enroll(self, file: StateFile) -> None:
        """Keep whose rows counted in released blocks beside a new file; as digests from now on."""
        assert self.turns is not None
        if self.turns.key is None:
            self.turns.hide(system_source.bits(256).to_bytes(32, "big"))
            self._owners = [None if owner is None else self.turns.hidden(owner) for owner in self._owners]
        counted = self.turns.taken()
        counted.subtract(owner for owner in self._owners if owner is not None)
        self._roll = Roll.beside(file.path).extended(_entries(sorted(counted.elements())))

    def _recall(self, roll: Roll, said: dict[str, Any]) -> None:
        """The turns that a state says the roll beside it has."""
        assert self.turns is not None
        self._roll, found = roll.read(int(said["rows"]) * DIGEST, str(said["checksum"]))
        units = (found[at : at + DIGEST] for at in range(0, len(found), DIGEST))
        self.turns = Turns(self.turns.most, bytes.fromhex(said["key"]), units)

    def _account(self, released: list[int], place: Any) -> Any:
        """Account for a few blocks from the open one on, which released this: as :meth:`_show` does."""
        opened, before = self._open, self._progress
        progress, hit = self._feed(before, self._votes(released, before.blocks))
        end = opened.start + opened.length + (progress.blocks - before.blocks - 1) * self._block
        if hit is not None or self.file is not None or self.turns is not None:
            alarm = None if hit is None else self.watch.raised(progress, self._origin, end, self.simulated)
            self._show(progress, alarm, released if hit is None else released[: hit + 1], end, place)
            return alarm
        self._progress, self.place = progress, place
        self._released.extend(released)
        opened.go_to(end)
        self._make_room()
        return None

    def _show(self, progress: Any, alarm: Any, newest: list[int], end: int, place: Any) -> None:
        """Account for blocks up to ``end``: first on disk and in the ledger, then to be seen. All or nothing."""
        if self.file is not None:
            self._write(progress, alarm, [*self._released, *newest][-TRACE:], end, place)
        self._progress, self.alarm, self.place = progress, alarm, place
        self._released.extend(newest)
        del self._owners[: end - self._open.start]
        self._open.go_to(end)
        self._make_room()

    def _make_room(self) -> None:
        """How many single records may wait, and how many of them without a further look: none after an alarm."""
        opened = self._open
        self._lacks = room = opened.length - opened.count
        if room >= _MOST_FULL:
            room = room if room < _MOST_PENDING else _MOST_PENDING
        elif self._waits and self.file is None:
            most, quiet = (_MOST_FULL - room) // self._block, self._quiet(self._progress)
            room += self._block * (quiet if quiet < most else most)
        self._room = room
        self._free = room if self.alarm is None and self.turns is None else 0

    def _write(self, progress: Any, alarm: Any, released: Iterable[int], start: int, place: Any) -> None:
        assert self.file is not None
        mark, roll = f"{system_source.bits(128):032x}", self._roll
        if roll is not None:  # before the state that counts them
            roll = roll.extended(_entries(self._owners[: start - self._open.start]))
        content = {
            "id": self.name,
            "generation": self._generation,
            "mark": mark,
            "after": self._mark,
            "asked": self.asked,
            "simulated": self.simulated,
            "origin": self._origin,
            "start": start,
            "place": place,
            "progress": self.watch.rule.progress_to_dict(progress),
            "trace": list(released),
            "alarm": None if alarm is None else alarm.to_dict(),
            **self._turns_of(roll),
        }
        try:
            head = json.dumps(content, separators=(",", ":"), allow_nan=False)
        except (TypeError, ValueError):
            raise NotWritten(f"The state of this {self.watch.keeper.noun} has a value that JSON cannot hold.") from None
        self.file.write(self.name, self._generation, head[:-1] + ',"design":' + self.watch.text + "}")
        self._generation += 1
        self._mark, self._after, self._roll = mark, self._mark, roll
        if self._charge is not None:
            self._note(start)

    def _turns_of(self, roll: Roll | None) -> dict[str, Any]:
        """What a state says of the turns that were taken: how many, and how to know them again."""
        if roll is None or self.turns is None or self.turns.key is None:
            return {}
        return {"turns": {"key": self.turns.key.hex(), "rows": roll.size // DIGEST, "checksum": roll.checksum}}

    def _note(self, position: int) -> None:
        """Have the ledger take the step to this state's mark. Unless it says so, nobody may go on but from the file."""
        assert self._charge is not None
        self._charge.advance(position, self._mark, self._after)


def _entries(owners: Iterable[UnitName | None]) -> bytes:
    return b"".join(owner for owner in owners if isinstance(owner, bytes))


_streams: weakref.WeakSet[Stream] = weakref.WeakSet()


def _after_fork() -> None:
    for stream in list(_streams):
        stream._room = stream._free = stream._process = 0  # the next record of any kind meets check()
        stream._turn = threading.Lock()  # a thread that had its turn is not in the child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _parts(records: Records) -> Iterable[Records]:
    """Records in memory in portions, so that what is kept of them stays small; others as they are."""
    if not isinstance(records, Column):
        yield records
        return
    for first in range(0, records.count(), _CHUNK):
        yield records.part(first, min(first + _CHUNK, records.count()))
