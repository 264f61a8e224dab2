"""The base classes of monitors and sequential tests: a plan with its rule, and the stream of records that it is for.

Plans are frozen and have documents, as every design has. A rule is frozen, too. Its progress is a small value that is
replaced, never changed: a step that was not written to the disk leaves no trace. In a :class:`Stream` records come in,
and blocks are released and written to the disk. Only then is an alarm or a verdict shown.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from privatest.charge_before_release import ANYBODY, Charge, Draw, fingerprint, make_charge
from privatest.data_addresses import format_of
from privatest.decision.run import Designed, Outcome
from privatest.engines.records import ORDERED, Column, Records
from privatest.engines.rows_per_person import DIGEST, PlacedRecords, Turns, UnitName
from privatest.engines.sources import open_for, placed
from privatest.errors import InvalidDocument, InvalidInput, RequestConflict
from privatest.facts import Described
from privatest.hypotheses import Hypothesis
from privatest.json_documents import fields_to_json, reading, value_from_json, value_to_json
from privatest.numbers import Integers
from privatest.privacy import Notion, Pure, RandomSource, seeded_source, system_source
from privatest.privacy.notion import notion_words, per_row, price_words
from privatest.scores import LabelCells
from privatest.streams.blocks import ONLY_ONE, PLAIN, Blocks, OneProcess, OpenBlock
from privatest.streams.saved_state import NotWritten, StateFile, StateKind, UnitRoll


class Rule(ABC):
    """The rule by which a result follows from the votes of blocks."""

    begin: ClassVar[Any]
    """The progress before the first block. Its ``blocks`` is the number of blocks so far."""
    progress: ClassVar[type]
    """The class of the progress, a named tuple."""

    @abstractmethod
    def feed(self, progress: Any, votes: Sequence[int]) -> tuple[Any, int | None]:
        """Return the progress after these votes, and the place of the vote with which a result follows, or None.

        Votes after that place are not used.
        """

    @abstractmethod
    def check(self, progress: Any) -> None:
        """Raise InvalidDocument for a progress that is impossible."""


class StreamPlan(Designed):
    """Everything that a stream needs besides its records. Its subclasses are frozen dataclasses.

    Guarantees: the releases of the blocks meet ``notion`` for all rows of a person together. This is checked whenever
    an object is made, also from a document.
    """

    STATE: ClassVar[StateKind]

    blocks: Blocks
    """The releases and votes of blocks; of the later ones, if the first one differs."""
    rule: Any
    """The ``Rule`` by which a result follows, a frozen dataclass."""
    notion: Notion
    """The notion that the whole stream meets."""
    max_rows_per_unit: int | None
    """The largest number of rows of one person that count; None: each record is a person of its own."""

    def __post_init__(self) -> None:
        rows = self.max_rows_per_unit
        if rows is not None and rows < 1:
            raise InvalidDocument(f"max_rows_per_unit={rows} must be at least 1.")
        if not self.blocks.meets(per_row(self.notion, rows or 1)):
            raise InvalidDocument(
                f"What the blocks release does not meet {self.notion} for up to {rows or 1} rows of a person."
            )

    @property
    def block(self) -> int:
        """The number of records in a block, after the first one."""
        return self.blocks.block

    @property
    def first_block(self) -> int:
        """The number of records in the first block."""
        return self.blocks.block

    @property
    def privacy(self) -> Notion:
        """The notion that the whole stream meets, for all rows of a person together."""
        return self.notion

    @property
    def epsilon(self) -> float:
        """Privacy loss of the whole stream; infinite if the notion bounds none."""
        return float(self.notion.epsilon)

    def records(self, blocks: int) -> int:
        """Return the number of records in the first blocks.

        Args:
            blocks: number of blocks.
        """
        return self.first_block + (blocks - 1) * self.block if blocks else 0

    def votes(self, released: Sequence[int], before: int) -> list[int]:  # noqa: ARG002 - most blocks vote alike
        """Return the votes of blocks.

        Args:
            released: the release of each block, as an integer.
            before: number of blocks before the first of them.
        """
        return self.blocks.votes(released)

    def quiet(self, progress: Any) -> int:  # noqa: ARG002 - any block may bring a verdict
        """Return the number of further blocks that cannot bring a result, whatever they release.

        Args:
            progress: the progress of the rule.
        """
        return 0

    @abstractmethod
    def result(self, progress: Any, origin: int, end: int) -> dict[str, Any]:
        """Return the fields of the alarm or the verdict that follows at the record ``end``.

        Args:
            progress: the progress of the rule.
            origin: the record at which the rule began.
            end: the record after the last one of the block.
        """

    @property
    @abstractmethod
    def result_class(self) -> type[Outcome]:
        """The class of the alarm or the verdict."""

    @abstractmethod
    def question(self) -> dict[str, Any]:
        """Return everything besides the data on which the releases depend, ready for JSON."""

    @cached_property
    def text(self) -> str:
        """The JSON text of the plan, which is always the same."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    def __hash__(self) -> int:
        return hash((self.block, self.notion, self.max_rows_per_unit))

    def _question(self, **parts: Any) -> dict[str, Any]:
        """Return these parts as JSON, with the rows of a person and a notion other than epsilon, if there are any."""
        rows = {} if self.max_rows_per_unit is None else {"max_rows_per_unit": self.max_rows_per_unit}
        notion = {} if isinstance(self.notion, Pure) else {"privacy": self.notion.text}
        return {**parts, "rule": fields_to_json(self.rule), **rows, **notion}


P = TypeVar("P", bound=StreamPlan)
R = TypeVar("R", bound=Outcome)
NO_UNIT: Any = object()
"""The default of ``unit``. None means a record without a person."""
TRACE = 256
"""The number of the newest releases that are kept."""
_PORTION = 1 << 17
# The largest number of single records that wait for their block, and of those that wait in full blocks without a
# result.
_MOST_PENDING, _MOST_FULL = 4096, 96


class Stream(OneProcess, Described, Generic[P, R]):
    """A stream of records that are released block by block, as its plan says.

    Guarantees: every record lies in one block, so everything that is ever released is together as private as the
    release of one block. With a state file, each release is in the file before anything that depends on it is shown,
    and only the newest state can be continued. With a ledger every state has a mark and names the mark before it: a
    state is written, then its mark is recorded in the ledger, and then its result is shown. The ledger accepts each
    step from a mark once, so of all copies of a state only one can be continued, and a process that is killed in
    between leaves a state that the ledger knows.

    Threads take turns. A step (a draw, its record on disk and in the ledger, and its visible result) is done as a whole
    or leaves the stream in doubt, which then refuses to continue. So no block is drawn twice.

    Single records of blocks that cannot bring a result, whatever their noise, wait for the first block that can
    (``StreamPlan.quiet``), and then all of them are released together. With a file every block is released when it is
    full. Reading a property that shows releases releases them first.

    A stream of persons remembers the number of rows of each person. These numbers are raw and never shown. Beside a
    state file they are kept as digests (:class:`UnitRoll`) of the rows in released blocks. The rows of an open block
    are fed again after a restore, and count then.
    """

    PLAN: ClassVar[type[Any]]
    """The class of the plan."""

    def _begin(
        self,
        laws: list[Hypothesis],
        settings: dict[str, Any],
        make_plan: Callable[[], P],
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
        """Begin, or continue from the state file if it has the same settings; charge once.

        Args:
            laws: P and, if it is known, Q.
            settings: plain JSON values by which states and requests are distinguished, besides the other arguments.
            make_plan: returns the plan; not called if the state holds it.
            notion: the notion that the whole stream must meet.
            rows: the largest number of rows of one person that count.
            state, ledger, dataset, request, source, rng: as for :class:`Monitor`.
        """
        settings = {
            **{name: law.describe() for name, law in zip(("null", "alternative"), laws, strict=False)},
            **settings,
            **price_words(notion),
            "dataset": dataset,
            "request": request,
            **({} if rows is None else {"max_rows_per_unit": rows}),
        }
        paying: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "request": request, "data": source}
        make_charge(**paying, price=notion.price, design=dict, simulated=rng is not None)  # refuses what it must
        kind = self.PLAN.STATE
        file = None if state is None else StateFile(state, kind)
        if file is not None and file.exists():
            content = file.read()
            same = content.get("settings", settings) == settings
            if same:
                self._restore(content, _source(rng), file)
            if same and not all(law.named for law in laws):
                # The descriptions do not determine P and Q, but the plan does.
                same = fingerprint(self._plan.question()) == fingerprint(make_plan().question())
            if not same:
                raise InvalidInput(
                    f"The state {file.path.name!r} is that of a {kind.noun} with other settings. Restore it with "
                    f"{kind.name}.load(path), or name another file for this {kind.noun}."
                )
        else:
            self._start(make_plan(), settings, _source(rng), file)
        charge = self._charge_of(**paying, simulated=rng is not None)
        if charge is not None:
            self._pay(charge)
        elif file is not None and self._generation == 0:
            self._step(self._persist)

    def _start(self, plan: P, settings: dict[str, Any], source: RandomSource, file: StateFile | None) -> None:
        """Begin at the first record."""
        self._plan, self._settings, self._file = plan, settings, file
        rows = plan.max_rows_per_unit
        self._turns = None if rows is None else Turns(rows)
        self._owners: list[UnitName | None] = []  # the person of each row of the open block; None if it does not count
        self._roll: UnitRoll | None = None
        if file is not None and self._turns is not None:
            self._enroll(file)
        self._simulated = source.simulated
        self._name = f"{system_source.bits(128):032x}"
        self._result: R | None = None
        self._released: deque[int] = deque(maxlen=TRACE)
        self._place: Any = None
        self._charge: Charge | None = None
        self._mark = self._after = ""
        self._process, self._in_doubt = os.getpid(), False
        self._turn = threading.Lock()
        self._generation = self._origin = 0
        self._progress: Any = plan.rule.begin
        self._open = OpenBlock(plan.blocks, source, plan.first_block)
        self._pending: list[Any] = []  # single records; plain ones are appended without taking turns
        self._plain = True  # whether all pending records are plain
        self._make_room()
        _streams.add(self)

    def _restore(self, content: dict[str, Any], source: RandomSource, file: StateFile) -> None:
        """Continue from a state."""
        noun = file.kind.noun
        if content.get("moved") is True:
            raise InvalidDocument(
                f"The {noun} of the state {file.path.name!r} was later saved to another file. Load that file."
            )
        with reading(f"the state {file.path.name!r} ({file.kind.format})"):
            plan: Any = self.PLAN.from_dict(content["plan"])
            self._start(plan, dict(content["settings"]), source, file)
            if self._roll is not None:
                self._recall(self._roll, content["turns"])
            self._name, self._generation = str(content["id"]), int(content["generation"]) + 1
            self._simulated = source.simulated or bool(content["simulated"])
            self._origin = int(content["origin"])
            self._progress = value_from_json(plan.rule.progress, content["progress"], "progress")
            plan.rule.check(self._progress)
            if content["result"] is not None:
                result = plan.result_class.from_dict({**content["result"], "simulated": self._simulated})
                self._result = replace(result, design=plan)
            self._released.extend(int(value) for value in content["trace"])
            self._place = content["place"]
            self._mark, self._after = str(content["mark"]), str(content["after"])
            self._open.go_to(int(content["start"]))
            if self._open.start != self._origin + plan.records(self._progress.blocks):
                raise InvalidDocument(f"The progress of the {noun} does not fit its blocks.")
        self._make_room()

    def _charge_of(self, **paying: Any) -> Charge | None:
        """Return the charge of the whole stream; None without a ledger."""
        return make_charge(
            **paying,
            price=self._plan.privacy.price,
            design=lambda: {self._plan.STATE.noun: self._plan.question()},
            settings=self._settings,
            unit=None if self._turns is None else ANYBODY,
        )

    def _pay(self, charge: Charge) -> None:
        """Charge once. The ledger records the name of the one stream that the request began."""
        noun, name = self._plan.STATE.noun, self._plan.STATE.name
        if self._after and charge.earlier() is None:
            raise InvalidInput(
                f"This ledger has no {noun} of request {charge.request!r} on data set {charge.dataset!r}, but that of "
                "this state was charged to a ledger. Nothing was charged now. Give the ledger that was charged then."
            )

        def begun(_: Draw) -> dict[str, str]:
            if self._file is not None and self._generation == 0:
                self._step(self._persist)
            return {noun: self._name}

        if charge.perform(lambda: None, begun).get(noun) != self._name:
            raise RequestConflict(
                f"Request {charge.request!r} on data set {charge.dataset!r} began a {noun} earlier. A second one on "
                f"the same records would spend their budget twice. Continue with {name}.load(path, ledger=...) of its "
                "newest state file, or use another request name."
            )
        self._charge = charge
        if self._file is not None:
            self._step(self._note, self._open.start)

    @property
    def plan(self) -> P:
        """The plan, with everything that is known before any data."""
        return self._plan

    @property
    def result(self) -> R | None:
        """The alarm or the verdict; None before there is one."""
        return self._result

    @property
    def epsilon(self) -> float:
        """Privacy loss of the whole stream; infinite if the notion bounds none."""
        return self._plan.epsilon

    @property
    def privacy(self) -> Notion:
        """The notion of stability that the whole stream meets."""
        return self._plan.privacy

    @property
    def _cost(self) -> str:
        """The price of the whole stream for ``repr``, and whether it is simulated."""
        cost = notion_words(self.privacy)
        return cost if self.private else f"SIMULATED, not private ({cost})"

    @property
    def seen(self) -> int:
        """The number of records consumed so far; the next one is record number ``seen``, counted from 0."""
        return self._open.end + (len(self._pending) if self._result is None else 0)

    @property
    def simulated(self) -> bool:
        """Whether the caller's generator ever drew noise. Such a stream is not private."""
        return self._simulated

    @property
    def private(self) -> bool:
        """Whether the guarantee holds, because all noise came from the operating system's randomness."""
        return not self._simulated

    @property
    def place(self) -> Any:
        """After a restore, the ``place`` of the last batch before ``seen``, as given to ``update_many``; else None."""
        return self._place

    @property
    def trace(self) -> tuple[float, ...]:
        """The newest releases (at most 256), oldest first: noisy block sums of clamped log P/Q in nats.

        With a test of blocks they are the bits, -1 for "new". They are private, because they are the releases.
        """
        self._settle()
        return tuple(self._plan.blocks.trace(value) for value in self._released)

    def _settle(self) -> None:
        """Release the full blocks that wait, except in a forked process."""
        if len(self._pending) < self._lacks or self._process != os.getpid():
            return
        with self._turn:
            if self._result is None:
                self._step(self._flush)

    def update(self, x: Any, *, unit: Any = NO_UNIT) -> R | None:
        """Take one record or a batch of records; return the alarm or the verdict, if there is one.

        A list, range, array, column, table or iterator is a batch, and so is a tuple unless labels of P and Q are
        tuples. A set is refused, because it has no order. Numbers, texts, mappings and everything else are one record.
        If a record may be a list, use :meth:`update_one`. A path is a file of records. A text that ends like the name
        of a file (".parquet"), or is the address of a table, is refused unless it is a label of P and Q. Use
        :meth:`update_many` for files and tables, and :meth:`update_one` for any record.

        A record that makes no sense raises no error and gets a fixed score.

        Args:
            x: the record or the batch.
            unit: the person of the record, if the plan has ``max_rows_per_unit``: any value that names a person; for a
                batch one value for each record. None means no person.
        """
        if isinstance(x, str | bytes) and x not in self._texts and _names_a_source(os.fsdecode(x)):
            raise InvalidInput(
                "update was given the name of a file or table, which is no label of P and Q. Give sources of records "
                "to update_many(...), and one record, whatever it is, to update_one(...)."
            )
        if unit is NO_UNIT and (type(x) is float or type(x) in PLAIN) and (free := self._free):
            pending = self._pending
            pending.append(x)  # turns are taken only when the block is full
            return None if len(pending) < free else self._fill()
        if type(x) in PLAIN or not self._is_batch(x):
            return self._take(x, unit)
        return self.update_many(x, unit=unit)

    def update_one(self, x: Any, *, unit: Any = NO_UNIT) -> R | None:
        """Take one record of any kind; return the alarm or the verdict, if there is one.

        A list, an array, a set or a table is one record that makes no sense and gets a fixed score; so is any text that
        is no label. A path (``os.PathLike``) is refused.

        Args:
            x: the record.
            unit: the person of the record, as for :meth:`update`.
        """
        if type(x) not in PLAIN and issubclass(type(x), os.PathLike):
            raise InvalidInput("A path was given as a record. Give files of records to update_many(...).")
        return self.update(x, unit=unit) if type(x) in PLAIN and type(x) is not str else self._take(x, unit)

    def update_many(
        self,
        batch: Any,
        *,
        column: str | None = None,
        unit: Any = NO_UNIT,
        order: str | None = None,
        place: Any = None,
    ) -> R | None:
        """Take a batch of records in order of time; return the alarm or the verdict, if there is one.

        Records after the one with which it comes are not consumed; ``seen`` is their number.

        Args:
            batch: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together
                with ``column``.
            column: the column that holds the records.
            unit: the column that names the person of each record, or a list of persons beside a plain batch. Required
                if the plan has ``max_rows_per_unit``, else refused.
            order: the column that gives the order of time within the batch; None if the records lie in that order.
                Equal values on both sides of a block's end are refused, and nothing of the batch is consumed.
            place: the origin of the batch, such as a file and the number of its first record, in plain JSON values. It
                is kept in the state together with the releases of the batch.
        """
        try:
            json.dumps(place)
        except (TypeError, ValueError, RecursionError):
            raise InvalidInput("place must be made of plain JSON values: text, numbers, lists, dicts.") from None
        self._check_unit(unit)
        records: Records
        if self._turns is None:
            records = open_for(ORDERED, batch, column=column, order=order)
        else:
            records = placed(self._turns, batch, column=column, unit=unit, order=order)
        with self._turn:
            self._check()
            for part in () if self._result is not None else _portions(records):
                block, lacks = self._plan.block, self._open.start + self._open.length - self.seen
                end = lacks if lacks > 0 else lacks % block or block  # pending records may fill the open block
                # Before anything is consumed, so that refusing a tie does not depend on the place of the alarm.
                values = self._plan.blocks.values(part, range(end, sys.maxsize, block))
                self._step(self._flush)
                consume = self._consume_of_persons if isinstance(part, PlacedRecords) else self._consume_part
                self._step(consume, part, values, place)
                if self._result is not None:
                    break
            return self._result

    def _check_unit(self, unit: Any) -> None:
        """Raise InvalidInput if persons are named but not in the plan, or in the plan but not named."""
        turns, kind = self._turns, self._plan.STATE
        if unit is not NO_UNIT and unit is not None and turns is None:
            raise InvalidInput(
                f"unit was given, but this {kind.noun} takes each record for a different person's. To count rows by "
                f"person use {kind.name}(..., max_rows_per_unit=1)."
            )
        if unit is NO_UNIT and turns is not None:
            raise InvalidInput(
                f"This {kind.noun} counts up to max_rows_per_unit={turns.most} records of one person, but unit is "
                "missing. Name the persons of the records: unit=..."
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state atomically. From now on the file is kept up to date.

        The file holds the releases and nothing else of the data. The records of an open block are not in it: after a
        restore ``seen`` is the end of the last whole block. If another file was kept before, it can no longer be
        loaded.

        Args:
            path: the path of the file.
        """
        _ = self._plan.text  # a plan without a document is refused before a file is made
        with self._turn:
            self._step(self._flush)
            if self._file is not None and self._file.is_at(path):
                self._step(self._persist)
                return
            file = StateFile(path, self._plan.STATE)
            try:
                file.check_free(self._name)
                self._step(self._move, file)
            except BaseException:
                if self._file is not file or self._in_doubt:
                    file.close()
                raise

    def _move(self, file: StateFile) -> None:
        """Keep the state in another file from now on. This is part of a step."""
        before, roll, written = self._file, self._roll, False
        self._file = file
        try:
            if self._turns is not None:
                self._enroll(file)
            self._persist()
            written = True
            if before is not None:
                moved = {"id": self._name, "generation": self._generation, "moved": True}
                before.write(self._name, self._generation, json.dumps(moved))
        except InvalidInput as error:
            if isinstance(error, NotWritten) and not written:  # it stays where it was
                self._file, self._roll = before, roll
                raise
            if before is None:
                raise
            new, old = repr(file.path.name), repr(before.path.name)
            raise InvalidInput(
                f"The disk failed while the state was moved from {old} to {new}, so that both may be valid. To "
                f"continue from both would release blocks twice. Continue with {file.kind.name}.load({new}) and remove "
                f"{old}, or the other way round."
            ) from None
        if before is not None:
            before.close()
            if roll is not None:
                roll.remove()

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        ledger: Any = None,
        source: str | os.PathLike[str] | None = None,
        rng: np.random.Generator | None = None,
    ) -> Self:
        """Restore a stream from its state file, which is then kept up to date again.

        Feed it the stream from record number ``seen`` on. A file that is cut short, edited, of another version, in use
        by another process, or older than the newest state of that file is refused. A stream that was charged to a
        ledger continues with that ledger only, which refuses a state that is not the newest one, wherever it lies.
        Within a process only the stream that was loaded last can continue.

        Args:
            path: the state file.
            ledger, source: as when the stream began.
            rng: for simulations.
        """
        noun, name = cls.PLAN.STATE.noun, cls.PLAN.STATE.name
        file = StateFile(path, cls.PLAN.STATE)
        stream = cls.__new__(cls)
        stream._restore(file.read(), _source(rng), file)
        dataset, request = (stream._settings.get(key) for key in ("dataset", "request"))
        if (ledger is None) != (request is None):
            raise InvalidInput(
                f"The {noun} of the state {file.path.name!r} has no ledger. Leave ledger= out."
                if request is None
                else f"The {noun} of the state {file.path.name!r} was charged as request {request!r} of data set "
                f"{dataset!r}. Its ledger knows whether this is the newest state: give ledger=."
            )
        charge = stream._charge_of(
            ledger=ledger, dataset=dataset, request=request, data=source, simulated=rng is not None
        )
        if charge is not None:
            if charge.earlier() is None:
                raise InvalidInput(
                    f"This ledger has no {noun} of request {request!r} on data set {dataset!r}. Give the ledger that "
                    f"was charged. If the process was killed while the {noun} began, begin it again: {name}(..., "
                    f"state={file.path.name!r})."
                )
            stream._pay(charge)
        return stream

    @classmethod
    def of(cls, plan: P, *, rng: np.random.Generator | None = None) -> Self:
        """Return a new stream of a plan, to simulate many streams.

        Args:
            plan: the plan.
            rng: a seeded generator; None: the operating system's randomness.
        """
        stream = cls.__new__(cls)
        stream._start(plan, {}, _source(rng), None)
        return stream

    def reset(self) -> None:
        """Restart the rule with the next block. No record is used again."""
        with self._turn:
            if self._result is not None:
                self._pending.clear()  # they came while the alarm was raised
            self._step(self._flush)
            self._step(self._begin_anew)

    def _begin_anew(self) -> None:
        before = self._result, self._progress, self._origin
        self._result, self._progress, self._origin = None, self._plan.rule.begin, self._open.start
        try:
            if self._file is not None:
                self._persist()
        except NotWritten:
            self._result, self._progress, self._origin = before
            raise

    @cached_property
    def _texts(self) -> frozenset[Any]:
        """The labels of P and Q, if they have labels."""
        cells = self._plan.blocks.cells
        return frozenset(cells.labels if isinstance(cells, LabelCells) else ())

    def _is_batch(self, x: Any) -> bool:
        if isinstance(x, (float, int, str, bytes, bytearray, complex)):
            return False
        if isinstance(x, tuple):
            return not any(isinstance(label, tuple) for label in self._texts)
        if isinstance(x, (list, set, frozenset, deque, range)):
            return True
        if isinstance(x, (np.ndarray, np.generic)):
            return x.ndim > 0
        if isinstance(x, Records):
            return True
        columns = ("__fspath__", "__array__", "__arrow_c_stream__", "columns", "column_names", "__next__")
        return any(hasattr(type(x), name) for name in columns)

    # Steps: a draw, its record on disk and in the ledger, and its visible result.

    def _step(self, action: Callable[..., Any], *arguments: Any) -> None:
        """Do an action as a whole, or leave the stream in doubt.

        The stream is in doubt from before anything changes until everything is done. If a step is cut short (by an
        interrupt, a disk, or a ledger that does not answer), no block is drawn again here. If a state was certainly not
        written, everything is as before, and the draw is dropped unseen.
        """
        self._check()
        self._in_doubt, self._free = True, 0  # so that the next record of any kind calls _check()
        try:
            action(*arguments)
        except NotWritten:
            self._make_room()
            self._in_doubt = False
            raise
        self._make_room()
        self._in_doubt = False

    def _check(self) -> None:
        """Raise InvalidInput in a forked process, and after a step that was cut short."""
        if self._process != os.getpid():
            raise InvalidInput(ONLY_ONE)
        if self._in_doubt:
            noun, name = self._plan.STATE.noun, self._plan.STATE.name
            cut = f"The last step of this {noun} was cut short, and it is not known how much of it was done"
            if self._file is None:
                raise InvalidInput(
                    f"{cut}. To continue could draw a block twice, and there is no state file. Begin a new one, with a "
                    "request of its own. With state=path it could continue from its file."
                )
            ledger = "" if self._charge is None else ", ledger=..."
            raise InvalidInput(
                f"{cut}. Its state may have been written, or noted in the ledger. Continue with {name}.load("
                f"{self._file.path.name!r}{ledger}), and feed the stream from record number seen on."
            )

    def _make_room(self) -> None:
        """Set how many single records may wait, and how many of them without taking turns (none after a result)."""
        lacks = room = self._open.length - self._open.count
        if lacks < _MOST_FULL and self._file is None and self._turns is None:
            room += self._plan.block * min((_MOST_FULL - lacks) // self._plan.block, self._plan.quiet(self._progress))
        self._lacks, self._room = lacks, min(room, _MOST_PENDING)
        self._free = self._room if self._result is None and self._turns is None else 0

    def _take(self, record: Any, unit: Any) -> R | None:
        """Take one record of any kind. It is scored when its block is full."""
        if (unit is NO_UNIT) != (self._turns is None):
            self._check_unit(unit)
        with self._turn:
            self._check()
            if self._result is not None:
                return self._result
            if self._turns is None:
                self._append(record)
                if len(self._pending) >= self._room:
                    self._step(self._flush, 1)
            else:
                self._step(self._take_of_person, record, unit)
            return self._result

    def _append(self, record: Any) -> None:
        """Append a record of any kind to the waiting records."""
        if type(record) is np.float64:
            record = float(record)
        self._plain = self._plain and type(record) in PLAIN
        self._pending.append(record)

    def _fill(self) -> R | None:
        """Release the block that the pending records may have filled.

        A thread that appends a record without taking turns calls this if ``_free`` records or more wait. The block
        consists of the records that wait when its turn comes; later ones wait for the next block.
        """
        with self._turn:
            if self._result is None and len(self._pending) >= self._room:
                self._step(self._flush, 1)
            return self._result

    def _take_of_person(self, record: Any, unit: Any) -> None:
        assert self._turns is not None
        owner = self._turns.admit(unit)
        self._append(None if owner is None else record)  # None makes no sense under any P and Q
        self._owners.append(owner)
        try:
            if len(self._pending) >= self._room:
                self._flush()
        except NotWritten:
            self._pending.pop()
            self._owners.pop()
            if owner is not None:
                self._turns.give_back(owner)
            raise

    def _flush(self, newest: int = 0) -> None:
        """Score the pending single records. This is part of a step.

        Args:
            newest: the number of records at the end that are given back if the state cannot be written.
        """
        pending, plain = self._pending, self._plain
        batch = pending[:]
        if not batch or self._result is not None:
            return
        del pending[: len(batch)]  # records of other threads stay, and are plain
        self._plain = True
        try:
            released = self._open.close_plain(batch) if plain and len(batch) >= self._open.length else None
            if released is not None:
                self._account(released, None)
            else:
                self._consume(self._plan.blocks.values_of(batch), None)
        except NotWritten:
            pending[:0] = batch[: len(batch) - newest]
            self._plain = plain
            raise

    def _consume_part(self, _: Records, values: Integers, place: Any) -> None:
        if self._result is None:
            self._consume(values, place)

    def _consume_of_persons(self, part: PlacedRecords, values: Integers, place: Any) -> None:
        """Consume the rows of a batch, and count the consumed rows of each person."""
        if self._result is not None:
            return
        before, waiting = self.seen, len(self._owners)
        self._owners += part.owners()
        try:
            self._consume(values, place)
        except NotWritten:
            del self._owners[waiting:]
            raise
        part.consumed(self.seen - before)
        del self._owners[self._open.count :]  # of the rows after an alarm

    def _consume(self, values: Integers, place: Any) -> None:
        """Add values to the open block, and account for the blocks that they fill."""
        if len(values) < self._open.length - self._open.count:
            self._open.extend(values)
            return
        released, rest = self._open.close(values)
        self._account(released, place)
        if self._result is None:
            self._open.extend(rest)

    def _account(self, released: list[int], place: Any) -> None:
        """Account for released blocks, first on disk and in the ledger and then visibly; all of it or nothing."""
        plan, opened, before = self._plan, self._open, self._progress
        progress, hit = plan.rule.feed(before, plan.votes(released, before.blocks))
        end = opened.start + opened.length + (progress.blocks - before.blocks - 1) * plan.block
        result: R | None = None
        if hit is not None:
            released = released[: hit + 1]
            result = self._result_at(progress, end)
        if self._file is not None:
            self._write(progress, result, [*self._released, *released][-TRACE:], end, place)
        self._progress, self._result, self._place = progress, result, place
        self._released.extend(released)
        if self._owners:
            del self._owners[: end - opened.start]
        opened.go_to(end)

    def _result_at(self, progress: Any, end: int) -> R:
        """Return the alarm or the verdict that follows at a record."""
        plan = self._plan
        event: Any = plan.result_class(
            **plan.result(progress, self._origin, end),
            epsilon=plan.epsilon,
            privacy=None if isinstance(plan.notion, Pure) else plan.notion.text,
            persons=self._turns is not None,
            simulated=self._simulated,
            design=plan,
        )
        result: R = event
        return result

    def _persist(self) -> None:
        """Write the state, which continues after the last whole block: nothing of an open block is kept."""
        self._write(self._progress, self._result, list(self._released), self._open.start, self._place)

    def _write(self, progress: Any, result: R | None, released: Sequence[int], start: int, place: Any) -> None:
        assert self._file is not None
        mark, roll = f"{system_source.bits(128):032x}", self._roll
        if roll is not None:  # written before the state that names its size
            roll = roll.extended(_entries(self._owners[: start - self._open.start]))
        content = {
            "id": self._name,
            "generation": self._generation,
            "mark": mark,
            "after": self._mark,
            "settings": self._settings,
            "simulated": self._simulated,
            "origin": self._origin,
            "start": start,
            "place": place,
            "progress": value_to_json(progress),
            "trace": released,
            "result": None if result is None else result.to_dict(),
        }
        if roll is not None and self._turns is not None and self._turns.key is not None:
            rows = roll.size // DIGEST
            content["turns"] = {"key": self._turns.key.hex(), "rows": rows, "checksum": roll.checksum}
        try:
            head = json.dumps(content, separators=(",", ":"), allow_nan=False)
        except (TypeError, ValueError):
            raise NotWritten(f"The state of this {self._file.kind.noun} has a value that JSON cannot hold.") from None
        self._file.write(self._name, self._generation, head[:-1] + ',"plan":' + self._plan.text + "}")
        self._generation += 1
        self._mark, self._after, self._roll = mark, self._mark, roll
        if self._charge is not None:
            self._note(start)

    def _note(self, position: int) -> None:
        """Record the step to this state's mark in the ledger. If that fails, only the file can be continued."""
        assert self._charge is not None
        self._charge.advance(position, self._mark, self._after)

    def _enroll(self, file: StateFile) -> None:
        """Keep the persons of rows in released blocks beside a new file, as digests from now on."""
        assert self._turns is not None
        if self._turns.key is None:
            self._turns.hide(system_source.bits(256).to_bytes(32, "big"))
            self._owners = [None if owner is None else self._turns.hidden(owner) for owner in self._owners]
        counted = self._turns.taken()
        counted.subtract(owner for owner in self._owners if owner is not None)
        self._roll = UnitRoll.beside(file.path).extended(_entries(sorted(counted.elements())))

    def _recall(self, roll: UnitRoll, recorded: dict[str, Any]) -> None:
        """Restore the numbers of rows from the roll beside a state, which records its size and checksum."""
        assert self._turns is not None
        self._roll, digests = roll.read(int(recorded["rows"]) * DIGEST, str(recorded["checksum"]))
        units = (digests[at : at + DIGEST] for at in range(0, len(digests), DIGEST))
        self._turns = Turns(self._turns.most, bytes.fromhex(recorded["key"]), units)


def _source(rng: np.random.Generator | None) -> RandomSource:
    return system_source if rng is None else seeded_source(rng)


def _names_a_source(text: str) -> bool:
    """Return whether a text looks like the name of a file or the address of a table."""
    return format_of(text) is not None or ("://" in text and "::" in text)


def _entries(owners: Iterable[UnitName | None]) -> bytes:
    return b"".join(owner for owner in owners if isinstance(owner, bytes))


def _portions(records: Records) -> Iterable[Records]:
    """Return records in memory in portions, so that their scores need little memory, and others as they are."""
    if not isinstance(records, Column):
        yield records
        return
    for first in range(0, records.count(), _PORTION):
        yield records.part(first, min(first + _PORTION, records.count()))


_streams: weakref.WeakSet[Stream[Any, Any]] = weakref.WeakSet()


def _after_fork() -> None:
    for stream in list(_streams):
        stream._free = stream._process = 0  # so that the next record of any kind calls _check()
        stream._room = 0
        stream._turn = threading.Lock()  # a thread that had its turn is not in the child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
