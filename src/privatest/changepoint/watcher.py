"""What takes a stream, record by record or in batches, and keeps its state: monitors and sequential tests alike."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from privatest.addresses import format_of
from privatest.changepoint.open_block import Single
from privatest.changepoint.state_file import StateFile
from privatest.changepoint.stream import Raised, Stream, Streamed
from privatest.changepoint.sum_blocks import PLAIN
from privatest.charge import ANYBODY, fingerprint, make_charge
from privatest.engines.protocol import ORDERED, Records
from privatest.engines.sources import open_for, placed
from privatest.errors import InvalidInput
from privatest.hypotheses.sets import Hypothesis
from privatest.markup import Told
from privatest.privacy import Notion, Source, seeded_source, system_source
from privatest.privacy.asked import priced, told
from privatest.scores import LabelCells

__all__ = ["UNSAID", "Watcher"]

D = TypeVar("D", bound=Streamed)
A = TypeVar("A", bound=Raised)
UNSAID: Any = object()  # of a unit: not even that it is nobody


class Watcher(Single, Told, Generic[D, A]):
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
            **priced(notion),
            "dataset": dataset,
            "request": request,
            **({} if rows is None else {"max_rows_per_unit": rows}),
        }
        paying: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "request": request, "data": source}
        make_charge(**paying, price=notion.price, design=dict, simulated=rng is not None)  # refuses what it must
        keeper = self.DESIGN.keeper
        file = None if state is None else StateFile(state, keeper)
        randomness: Source = system_source if rng is None else seeded_source(rng)
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
            told=stream.asked,
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
        cost = told(self.privacy)
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
        (".parquet") is refused where no label of P and Q is a text: :meth:`update_many` takes files, :meth:`update_one`
        any record.

        A record that makes no sense raises nothing: it gets a fixed score.

        Args:
            x: the record or the batch.
            unit: whose it is, where the design is one of persons (``max_rows_per_unit``): any value that names a
                person; of a batch, one for each record. None is nobody.
        """
        if type(x) is str and format_of(x) is not None and not self._holds_texts:
            raise InvalidInput(
                "update was given the name of a file, and P and Q are over numbers. Give files of records to "
                "update_many(...), and one record, whatever it is, to update_one(...)."
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

        A list, an array, a set or a table is one record, which makes no sense and gets a fixed score.

        Args:
            x: the record.
            unit: whose it is, as for :meth:`update`.
        """
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
        randomness: Source = system_source if rng is None else seeded_source(rng)
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
            told=stream.asked,
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
    def _holds_texts(self) -> bool:
        """Whether a record may be a text."""
        blocks = self._stream.watch.blocks
        cells = blocks.score.cells if hasattr(blocks, "score") else blocks.voter.cells
        return isinstance(cells, LabelCells) and any(isinstance(label, str) for label in cells.labels)

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
