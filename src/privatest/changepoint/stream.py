"""A stream on its way through a design: records in, releases to the disk first, then the alarm."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest.changepoint.alarm import Alarm
from privatest.changepoint.open_block import OpenBlock, open_block
from privatest.changepoint.rules import Progress
from privatest.changepoint.state_file import FORMAT, StateFile
from privatest.changepoint.watch import Watch
from privatest.engines.columns import Column
from privatest.engines.protocol import Records
from privatest.errors import InvalidDocument
from privatest.noise import Source, system_source

__all__ = ["TRACE", "Stream"]

Integers = npt.NDArray[np.int64]

TRACE = 256
"""How many of the newest releases are kept."""
_CHUNK = 1 << 17
_MOST_PENDING = 4096


class Stream:
    """The mutable half of a monitor. What it released is on disk (if it has a file) before anything shows it.

    Attributes:
        alarm: the alarm, if it has been raised.
        released: the newest releases, as integers.
        simulated: whether any noise came from a seeded generator.
    """

    def __init__(self, watch: Watch, asked: dict[str, Any], source: Source, file: StateFile | None = None) -> None:
        self.watch, self.asked, self.file = watch, asked, file
        self.simulated = source.simulated
        self.name = f"{system_source.bits(128):032x}"
        self.alarm: Alarm | None = None
        self.released: deque[int] = deque(maxlen=TRACE)
        self._generation = self._origin = 0
        self._progress: Progress = watch.rule.begin
        self._open: OpenBlock = open_block(watch.blocks, source)
        self._pending: list[Any] = []
        self._room = min(watch.block, _MOST_PENDING)

    @classmethod
    def restored(cls, content: dict[str, Any], source: Source, file: StateFile) -> Stream:
        """The stream whose state this is."""
        if content.get("moved") is True:
            raise InvalidDocument(
                f"The monitor of the state {file.path.name!r} was saved to another file later. Load that one."
            )
        try:
            watch = Watch.from_dict(content["design"])
            stream = cls(watch, dict(content["asked"]), source, file)
            stream.name, stream._generation = str(content["id"]), int(content["generation"]) + 1
            stream.simulated = source.simulated or bool(content["simulated"])
            stream._origin = int(content["origin"])
            stream._progress = watch.rule.progress_from_dict(content["progress"])
            stream.alarm = None if content["alarm"] is None else Alarm(**content["alarm"])
            stream.released.extend(int(value) for value in content["trace"])
            stream._open.restore(int(content["start"]), content["open"])
            if stream._open.start != stream._origin + stream._progress.blocks * watch.block:
                raise InvalidDocument("The progress of the monitor does not fit its blocks.")
        except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
            if isinstance(error, InvalidDocument):
                raise
            raise InvalidDocument(f"The state {file.path.name!r} cannot be read ({FORMAT}): {error}") from None
        stream._make_room()
        return stream

    @property
    def seen(self) -> int:
        """Records consumed so far."""
        return self._open.end + len(self._pending)

    @property
    def fresh(self) -> bool:
        """Whether the state was never written."""
        return self._generation == 0

    def take(self, record: Any) -> Alarm | None:
        """Consume one record, of any kind. Scored when its block is full."""
        if self.alarm is not None:
            return self.alarm
        self._pending.append(record)
        if len(self._pending) < self._room:
            return None
        try:
            return self._flush()
        except BaseException:
            self._pending.pop()
            raise

    def take_many(self, records: Records) -> Alarm | None:
        """Consume records until the alarm."""
        if self.alarm is not None:
            return self.alarm
        for part in _parts(records):
            values = self.watch.blocks.values(part)
            self._flush()
            if self._consume(values) is not None:
                break
        return self.alarm

    def reset(self) -> None:
        """Begin anew with the next block."""
        self._flush()
        self.alarm, self._progress, self._origin = None, self.watch.rule.begin, self._open.start
        if self.file is not None:
            self.persist()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a path and keep it there."""
        before = self.file
        if before is not None and before.is_at(path):
            before = None
        else:
            self.file = StateFile(path)
        self._flush()
        self.persist()
        if before is not None:
            before.write(json.dumps({"id": self.name, "generation": self._generation, "moved": True}))
            before.close()

    def persist(self) -> None:
        """Write the state, with the unfinished block's noised sum where there is one."""
        self._write(self._content(self._progress, self.alarm, self.released, self._open.start, self._open.noised()))

    def _flush(self) -> Alarm | None:
        """Score the single records that wait for it."""
        if not self._pending:
            return self.alarm
        found = self._consume(self.watch.blocks.values_of(self._pending))
        self._pending.clear()
        return found

    def _consume(self, values: Integers) -> Alarm | None:
        """Add values to the open block; what whole blocks release is on disk before anybody looks at it."""
        block = self.watch.block
        lacks = block - self._open.count
        if len(values) == lacks:
            return self._consume_block(values)
        if len(values) < lacks:
            self._open.extend(values)
            self._make_room()
            return None
        with self._open.closing(values) as closed:
            votes = self.watch.blocks.votes(closed.released)
            progress, hit = self.watch.rule.feed(self._progress, votes)  # type: ignore[arg-type]
            released = closed.released if hit is None else closed.released[: hit + 1]
            end, alarm = closed.end(len(released)), None
            if hit is not None:
                alarm = Alarm(self._origin + progress.start * block, self.watch.accuracy, end)
            newest = released[-TRACE:].tolist()
            if self.file is not None:
                self._write(self._content(progress, alarm, [*self.released, *newest][-TRACE:], end, None))
            self._progress, self.alarm = progress, alarm
            self.released.extend(newest)
            closed.commit(len(released), go_on=alarm is None)
        self._make_room()
        return alarm

    def _consume_block(self, values: Integers) -> Alarm | None:
        """:meth:`_consume` of values that fill the open block and no other: without the price of arrays."""
        watch, end = self.watch, self._open.start + self.watch.block
        released = self._open.full(values)
        progress, fires = watch.rule.step(self._progress, watch.blocks.vote(released))  # type: ignore[arg-type]
        alarm = Alarm(self._origin + progress.start * watch.block, watch.accuracy, end) if fires else None
        if self.file is not None:
            self._write(self._content(progress, alarm, [*self.released, released][-TRACE:], end, None))
        self._progress, self.alarm = progress, alarm
        self.released.append(released)
        self._open.advance()
        self._make_room()
        return alarm

    def _make_room(self) -> None:
        self._room = min(self.watch.block - self._open.count, _MOST_PENDING)

    def _write(self, content: dict[str, Any]) -> None:
        assert self.file is not None
        head = json.dumps(content, separators=(",", ":"), allow_nan=False)
        self.file.write(head[:-1] + ',"design":' + self.watch.text + "}")
        self._generation += 1

    def _content(
        self, progress: Progress, alarm: Alarm | None, released: Iterable[int], start: int, partial: list[int] | None
    ) -> dict[str, Any]:
        return {
            "id": self.name,
            "generation": self._generation,
            "asked": self.asked,
            "simulated": self.simulated,
            "origin": self._origin,
            "start": start,
            "progress": self.watch.rule.progress_to_dict(progress),  # type: ignore[arg-type]
            "open": partial,
            "trace": list(released),
            "alarm": None if alarm is None else alarm.to_dict(),
        }


def _parts(records: Records) -> Iterable[Records]:
    """Records in memory in portions, so that what is kept of them stays small; others as they are."""
    if not isinstance(records, Column):
        yield records
        return
    for first in range(0, records.count(), _CHUNK):
        yield records.part(first, min(first + _CHUNK, records.count()))
