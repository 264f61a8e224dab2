"""When to raise the alarm, given the blocks' votes: the CUSUM chart and the paper's intervals.

A rule is frozen; its progress is a small value that is replaced, never changed, so that what was not written to
disk has not happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from privatest.errors import InvalidDocument

__all__ = ["Cusum", "CusumProgress", "Intervals", "IntervalsProgress", "Progress", "Rule", "rule_from_dict"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CusumProgress:
    """Blocks so far, W after them, and the number of blocks after which W was 0 last."""

    blocks: int = 0
    level: int = 0
    zero: int = 0

    @property
    def start(self) -> int:
        """The block in which the change is placed: where the latest excursion starts."""
        return self.zero


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

    def step(self, progress: CusumProgress, vote: int) -> tuple[CusumProgress, bool]:
        """:meth:`feed` of one vote."""
        blocks, level = progress.blocks + 1, max(progress.level + vote, 0)
        return CusumProgress(blocks, level, progress.zero if level else blocks), level > self.threshold

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"kind": self.kind, "threshold": self.threshold}

    def progress_to_dict(self, progress: CusumProgress) -> dict[str, Any]:
        """Plain values."""
        return {"blocks": progress.blocks, "level": progress.level, "zero": progress.zero}

    def progress_from_dict(self, document: dict[str, Any]) -> CusumProgress:
        """What :meth:`progress_to_dict` wrote."""
        found = CusumProgress(*_whole(document, "blocks", "level", "zero"))
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

    def step(self, progress: IntervalsProgress, vote: int) -> tuple[IntervalsProgress, bool]:
        """:meth:`feed` of one vote."""
        after, hit = self.feed(progress, np.array([vote], dtype=np.int64))
        return after, hit is not None

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
        return IntervalsProgress(_whole(document, "blocks")[0], tuple(last), tuple(present))


Rule = Cusum | Intervals
Progress = CusumProgress | IntervalsProgress


def rule_from_dict(document: dict[str, Any]) -> Rule:
    """What ``to_dict`` wrote."""
    if document["kind"] == Cusum.kind:
        return Cusum(*_whole(document, "threshold"))
    if document["kind"] == Intervals.kind:
        return Intervals(*_whole(document, "interval"))
    raise InvalidDocument(f"Unknown rule {document['kind']!r}.")


def _whole(document: dict[str, Any], *names: str) -> list[int]:
    values = [document[name] for name in names]
    if not all(type(value) is int and value >= 0 for value in values):
        raise InvalidDocument(f"{', '.join(names)} must be whole numbers.")
    return values
