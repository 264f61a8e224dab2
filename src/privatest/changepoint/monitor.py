"""Has it changed yet? A stream watched as it comes, at the price of one epsilon for all of it."""

from __future__ import annotations

import json
import os
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest import _validate
from privatest.changepoint.change_point import Alarm
from privatest.changepoint.state_file import StateFile
from privatest.changepoint.stream import NO_STATE, Single, Stream
from privatest.changepoint.tuned_watch import Targets, pair_watch, unknown_watch
from privatest.changepoint.watch import Intervals, Watch
from privatest.charge import fingerprint, make_charge
from privatest.engines.protocol import ORDERED, Records
from privatest.engines.sources import open_for, placed
from privatest.errors import InvalidInput
from privatest.hypotheses.convert import as_hypothesis
from privatest.hypotheses.question import pair_or_question
from privatest.markup import Fact, Told
from privatest.privacy import Pure, Source, seeded_source, system_source
from privatest.rational import Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["METHODS", "Monitor"]

METHODS = ("cusum", "paper")
_PLAIN = frozenset({float, int, bool, str})
_UNSAID: Any = object()  # of a unit: not even that it is nobody


class Monitor(Single, Told):
    r"""Watch a stream for a change from P (``null``) to Q (``alternative``), with epsilon-privacy for all of it.

    Records are gathered in blocks, each of which releases its noisy sum (or, for an unknown alternative, the bit of a
    private test); everything else is computed from these. "cusum" raises the alarm when

    .. math:: W_j = \max(W_{j-1} + \text{vote}_j, 0) > h,

    the votes being the sums' log-likelihood ratios; "paper" when an interval of blocks has more bits for the new
    regime than for the old one, and then places the change in the last two intervals.

    Guarantees: every record lies in one block, so all that a monitor ever puts out is together
    epsilon-differentially private (replace one record; the number of records is public), however long the stream.
    On a stream that does not change, the mean number of records till an alarm is at least
    ``mean_time_between_false_alarms``. On one that changes at k* before any alarm, the mean number of records from k*
    to the alarm is at most ``expected_delay``, it is at most ``delay_bound`` with probability 1 - beta, and the index
    is as accurate as :class:`Alarm` says. All of these are computed, none is simulated. The law of alarm and ``seen``
    does not depend on how the stream is cut into batches. Memory does not grow with the stream. A block's noise is
    drawn when the block is released; a monitor cannot be copied, pickled or used in a forked process. Threads may share
    one: they take turns.

    After an alarm nothing more is consumed: every further call gives the same alarm again, until :meth:`reset`. Go on
    then with record number ``seen``.

    A monitor with a state file (``state=``, or after the first :meth:`save`) writes each noisy sum to it before
    anything that depends on the sum is put out. After a restore, feed the stream from record number ``seen`` on: no
    block is then released twice and no alarm is lost, whenever the process was killed. Only the newest state may go on:
    the place where it was kept knows it, and with a ledger the ledger knows it of every copy anywhere.

    Args:
        null, alternative: the old and the new regime, in any of the forms that :func:`privatest.design` takes.
        distance: in place of an alternative: the total variation by which it differs from the null at least.
        epsilon: privacy loss of the whole stream; a float is read as its shortest decimal.
        beta: probability with which the alarm's index may be further off than its accuracy.
        method: "cusum" (the default: its computed delay is the smaller by far) or "paper".
        interval: blocks in an interval, for "paper" (which is then the default); None: the recommended number.
        mean_time_between_false_alarms: in records. None: a thousand times as many records as tell P from Q.
        max_rows_per_unit: the most rows of one person that count in the whole stream; every update then says whose the
            records are (``unit``). The monitor is private for all rows of a person together: each row costs
            epsilon/max_rows_per_unit. A row beyond these, or of nobody, stays in its place and counts as a record that
            makes no sense. What is promised holds where no person has more. Such a monitor remembers whose rows it has
            seen, in memory only: it has no state file.
        state: path of a state file; where there is one of the same settings, the monitor goes on from it.
        ledger, dataset, request: charge epsilon to a ledger, once, when the monitor begins. A request begins one
            monitor only: afterwards it is continued from its state file or not at all.
        source: what the stream comes from (a file, a table), noted in the ledger and compared with what
            the data set's grant covers; None: records handed over in Python.
        rng: only for simulations: a seeded generator in place of the operating system's randomness. The monitor then
            says that it is simulated, and is not private.

    >>> monitor = Monitor("bernoulli(0.2)", "bernoulli(0.8)", epsilon=2, rng=np.random.default_rng(3))
    >>> monitor.update([0, 0, 1, 0, 0] * 60)
    >>> alarm = monitor.update([1, 1, 0, 1, 1] * 60)
    >>> abs(alarm.index - 300) <= alarm.accuracy, monitor.drift_detected, alarm.seen < 600
    (True, True, True)
    """

    def __init__(
        self,
        null: Any,
        alternative: Any = None,
        *,
        distance: float | None = None,
        epsilon: Number,
        beta: float = 0.1,
        method: str | None = None,
        interval: int | None = None,
        mean_time_between_false_alarms: float | None = None,
        max_rows_per_unit: int | None = None,
        state: str | os.PathLike[str] | None = None,
        ledger: Any = None,
        dataset: str | None = None,
        request: str | None = None,
        source: str | os.PathLike[str] | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        budget = _validate.positive(epsilon=epsilon, remedy="Typical values lie between 0.1 and 2.")
        beta = _validate.probability(beta=beta)
        method = _validate.choice(
            METHODS, method=("cusum" if interval is None else "paper") if method is None else method
        )
        if interval is not None:
            interval = _validate.positive_integer(interval=interval)
            if method != "paper":
                raise InvalidInput(f"interval={interval} belongs to method='paper'. Leave it out, or the method.")
        target = mean_time_between_false_alarms
        if target is not None:
            target = float(_validate.positive(mean_time_between_false_alarms=target))
        if (alternative is None) == (distance is None):
            raise InvalidInput(
                "Give either the alternative Q or, when it is unknown, distance=, the total variation by which it "
                "differs from P at least."
            )
        if distance is not None:
            distance = _validate.probability(distance=distance)
        rows = max_rows_per_unit
        if rows is not None:
            rows = _validate.positive_integer(max_rows_per_unit=rows)
            if state is not None:
                raise InvalidInput(NO_STATE)
        given = {"null": null, "alternative": alternative}
        laws = [as_hypothesis(law, name) for name, law in given.items() if law is not None]
        asked = {
            "null": laws[0].describe(),
            "alternative": f"distance {distance!r}" if distance is not None else laws[1].describe(),
            "epsilon": str(budget),
            "beta": beta,
            "method": method,
            "interval": interval,
            "mean_time_between_false_alarms": target,
            "dataset": dataset,
            "request": request,
            **({} if rows is None else {"max_rows_per_unit": rows}),
        }
        randomness: Source = system_source if rng is None else seeded_source(rng)
        paying: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "request": request, "data": source}
        make_charge(**paying, epsilon=budget, design=dict, simulated=rng is not None)  # refuses what it must
        targets = Targets(beta, target, interval)

        def made() -> Watch:
            each = budget / (rows or 1)
            if distance is None:
                found = pair_watch(pair_or_question(null, alternative), each, method, targets)
            else:
                found = unknown_watch(null, distance, each, method, targets)
            return replace(found, max_rows_per_unit=rows)

        file = None if state is None else StateFile(state)
        if file is not None and file.exists():
            content = file.read()
            same = content.get("asked", asked) == asked
            if same:
                self._stream = Stream.restored(content, randomness, file)
            if same and not all(law.named for law in laws):
                # The descriptions leave open what P and Q are; what is made of them does not.
                same = fingerprint(self._stream.watch.releases()) == fingerprint(made().releases())
            if not same:
                raise InvalidInput(
                    f"The state {file.path.name!r} is that of a monitor with other settings. Restore it with "
                    "Monitor.load(path), or give this monitor another file."
                )
        else:
            self._stream = Stream(made(), asked, randomness, file)
        stream = self._stream
        charge = make_charge(
            **paying, epsilon=stream.watch.epsilon, design=stream.design, simulated=rng is not None, told=stream.asked
        )
        if charge is not None:
            self._stream.begin(charge)
        elif file is not None and self._stream.fresh:
            self._stream.persist()

    @property
    def epsilon(self) -> float:
        """Privacy loss of the whole stream."""
        return float(self._stream.watch.epsilon)

    @property
    def privacy(self) -> Pure:
        """The notion of stability that the whole stream meets."""
        return Pure(self.epsilon)

    @property
    def beta(self) -> float:
        """Probability with which the alarm's index may be further off than its accuracy."""
        return self._stream.watch.beta

    @property
    def method(self) -> str:
        """ "cusum" or "paper"."""
        return self._stream.watch.method

    @property
    def block(self) -> int:
        """Records in a block."""
        return self._stream.watch.block

    @property
    def interval(self) -> int | None:
        """Blocks in an interval of the paper's method."""
        return self._stream.watch.rule.interval if isinstance(self._stream.watch.rule, Intervals) else None

    @property
    def recommended_interval(self) -> int | None:
        """The smallest interval, in blocks, that meets the targets of the paper's method; None with "cusum".

        The paper's condition n = Omega(SC log(k*/(n beta))) with its constants: false alarms are as rare as asked (one
        before k* has probability at most k* / mean_time_between_false_alarms) and an interval of new records is missed
        with probability at most beta/4. Then fewer than two intervals are seen after k*, with that probability.
        """
        return self._stream.watch.recommended_interval

    @property
    def accuracy(self) -> int:
        """The accuracy that an alarm will carry, in records."""
        return self._stream.watch.accuracy

    @property
    def mean_time_between_false_alarms(self) -> float:
        """Bound from below on the mean number of records till an alarm when nothing changes."""
        return self._stream.watch.mean_time_between_false_alarms

    @property
    def expected_delay(self) -> float:
        """Bound from above on the mean number of records from k* till the alarm."""
        return self._stream.watch.expected_delay

    @property
    def delay_bound(self) -> int:
        """Records after k* by which the alarm was raised with probability at least 1 - beta."""
        return self._stream.watch.delay_bound

    @property
    def seen(self) -> int:
        """Records consumed so far; the stream goes on with record number ``seen``, counted from 0."""
        return self._stream.seen

    @property
    def drift_detected(self) -> bool:
        """Whether the alarm has been raised and :meth:`reset` was not called since."""
        return self._stream.alarm is not None

    @property
    def alarm(self) -> Alarm | None:
        """The alarm, if it has been raised."""
        return self._stream.alarm

    @property
    def trace(self) -> tuple[float, ...]:
        """The newest releases (at most 256), oldest first: noisy block sums of clamped log P/Q in nats.

        With an unknown alternative: the blocks' bits, -1 for "new". Private as they are: they are what was released.
        """
        return tuple(self._stream.watch.blocks.trace(value) for value in self._stream.released)

    @property
    def simulated(self) -> bool:
        """True when randomness came from a generator of the caller's at any time: such a monitor is not private."""
        return self._stream.simulated

    @property
    def private(self) -> bool:
        """Whether the guarantee holds: randomness from the operating system."""
        return not self._stream.simulated

    def update(self, x: Any, *, unit: Any = _UNSAID) -> Alarm | None:
        """Take one record, or a batch if x is a list, an array or a column; the alarm if it is raised.

        A record that makes no sense raises nothing: it gets a fixed score.

        Args:
            x: the record or the batch.
            unit: whose it is, where the monitor is one of persons (``max_rows_per_unit``): any value that names a
                person; of a batch, one for each record. None is nobody.
        """
        if type(x) in _PLAIN or not self._is_batch(x):
            if (unit is _UNSAID) != (self._stream.turns is None):
                self._check_unit(unit)
            return self._stream.take(x, unit)
        return self.update_many(x, unit=unit)

    @property
    def place(self) -> Any:
        """After a restore: what ``update_many`` was told of the place of the records before ``seen``; else None."""
        return self._stream.place

    def update_many(
        self,
        batch: Any,
        *,
        column: str | None = None,
        unit: Any = _UNSAID,
        order: str | None = None,
        place: Any = None,
    ) -> Alarm | None:
        """Take a batch of records in order of time; the alarm if it is raised.

        Records after the alarm are not consumed (``seen`` says where), whatever the batch holds.

        Args:
            batch: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together
                with ``column``.
            column: which column holds the records.
            unit: which column says whose each record is, or a list of them beside a plain batch; needed, and allowed,
                where the monitor is one of persons (``max_rows_per_unit``).
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
        if turns is None:
            return self._stream.take_many(open_for(ORDERED, batch, column=column, order=order), place)
        return self._stream.take_many(placed(turns, batch, column=column, unit=unit, order=order), place)

    def _check_unit(self, unit: Any) -> None:
        """Refuse persons where the monitor knows none, and records of nobody in particular where it does."""
        rows = self._stream.watch.max_rows_per_unit
        if unit is not _UNSAID and unit is not None and rows is None:
            raise InvalidInput(
                "unit was given, but this monitor takes each record for a person's only one. Make it one of persons: "
                "Monitor(..., max_rows_per_unit=1)."
            )
        if unit is _UNSAID and rows is not None:
            raise InvalidInput(
                f"This monitor counts up to max_rows_per_unit={rows} records of one person, but unit is missing. Say "
                "whose the records are: unit=..."
            )

    def reset(self) -> None:
        """Watch on after an alarm: W and the intervals start from nothing; no record is looked at again."""
        self._stream.reset()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state, atomically; from now on the monitor keeps the file up to date by itself.

        The file holds what was released and nothing else of the data. The records of an unfinished block are not in
        it: after a restore ``seen`` is the end of the last whole block. A file that was kept before says from now on
        that the monitor has moved, and can no longer be loaded.
        """
        self._stream.save(path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        ledger: Any = None,
        source: str | os.PathLike[str] | None = None,
        rng: np.random.Generator | None = None,
    ) -> Monitor:
        """The monitor whose state this is; it goes on keeping the file up to date.

        Feed it the stream from record number ``seen`` on. Refuses a file that is cut short, edited, of another
        version, in use by another process, or older than the newest one that was kept there. A monitor that was
        charged to a ledger goes on with that ledger only, which refuses a state that is not the newest one wherever it
        lies. Within a process the monitor that was loaded last is the only one that may go on.

        Args:
            path: the state file.
            ledger, source: as they were given when the monitor began.
            rng: for simulations.
        """
        file = StateFile(path)
        stream = Stream.restored(file.read(), system_source if rng is None else seeded_source(rng), file)
        dataset, request = (stream.asked.get(name) for name in ("dataset", "request"))
        if (ledger is None) != (request is None):
            raise InvalidInput(
                f"The monitor of the state {file.path.name!r} was begun without a ledger. Leave ledger= out."
                if request is None
                else f"The monitor of the state {file.path.name!r} was charged as request {request!r} of data set "
                f"{dataset!r}. Its ledger knows whether this is the newest state: give ledger=."
            )
        charge = make_charge(
            ledger,
            dataset,
            request,
            epsilon=stream.watch.epsilon,
            design=stream.design,
            simulated=rng is not None,
            data=source,
            told=stream.asked,
        )
        if charge is not None:
            if charge.earlier() is None:
                raise InvalidInput(
                    f"This ledger has no monitor of request {request!r} on data set {dataset!r}. Give the ledger that "
                    f"was charged; if the monitor was killed while it began, begin it again: Monitor(..., "
                    f"state={file.path.name!r})."
                )
            stream.begin(charge)
        return cls._of(stream)

    @classmethod
    def of(cls, watch: Watch, *, rng: np.random.Generator | None = None) -> Monitor:
        """A fresh monitor of a design that was made before, for simulations of many streams."""
        return cls._of(Stream(watch, {}, system_source if rng is None else seeded_source(rng)))

    @classmethod
    def _of(cls, stream: Stream) -> Monitor:
        monitor = cls.__new__(cls)
        monitor._stream = stream
        return monitor

    def plot(self, ax: Axes | None = None) -> Axes:
        """The newest releases, block by block, and the alarm with its accuracy; never the records."""
        from privatest import pictures

        return pictures.monitor(self, ax)

    @property
    def title(self) -> str:
        """What this is."""
        return "Monitor"

    def facts(self) -> list[Fact]:
        """The question, the promises, and what was released so far."""
        watch, between = self._stream.watch, self.mean_time_between_false_alarms
        return [
            Fact("null", watch.null, "the old regime"),
            Fact("alternative", watch.alternative, "the new regime"),
            Fact("epsilon", self.epsilon, "privacy loss of the whole stream"),
            Fact("beta", self.beta, "probability with which the alarm's index may be further off than its accuracy"),
            Fact("method", self.method),
            Fact("block", self.block, "records in a block"),
            Fact("interval", self.interval, "blocks in an interval of the paper's method"),
            Fact("recommended_interval", self.recommended_interval, "the smallest that meets the targets"),
            Fact("accuracy", self.accuracy, "that an alarm will carry, in records"),
            Fact("expected_delay", self.expected_delay, "records from the change till the alarm on average, at most"),
            Fact("delay_bound", self.delay_bound, f"records by which it is raised, with probability {1 - self.beta:g}"),
            Fact("mean_time_between_false_alarms", between, "in records, at least"),
            Fact("max_rows_per_unit", watch.max_rows_per_unit, "rows of one person that count in the whole stream"),
            Fact("seen", self.seen, "records so far; the stream goes on with this one"),
            Fact("drift_detected", self.drift_detected, "no alarm" if self.alarm is None else self.alarm.sentence),
            Fact("private", self.private, "SIMULATED, not private" if self.simulated else ""),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Settings, promises and what was released so far: plain values, ready for JSON."""
        alarm = None if self._stream.alarm is None else self._stream.alarm.to_dict()
        return {**self.values(), "alarm": alarm, "trace": list(self.trace)}

    def __repr__(self) -> str:
        privacy = f"epsilon={self.epsilon:g}" if self.private else f"SIMULATED, not private (epsilon={self.epsilon:g})"
        watch = self._stream.watch
        return (
            f"Monitor({watch.null} to {watch.alternative}, {privacy}, method={self.method!r}, "
            f"block={self.block}, mean_time_between_false_alarms={self.mean_time_between_false_alarms:.4g}, "
            f"expected_delay={self.expected_delay:.4g}, accuracy={self.accuracy}, seen={self.seen}, "
            f"alarm={self._stream.alarm!r})"
        )

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
        columns = ("__array__", "__arrow_c_stream__", "columns", "column_names", "__next__")
        return any(hasattr(type(x), name) for name in columns)
