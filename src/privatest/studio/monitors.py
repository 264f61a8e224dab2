"""Monitors that the page follows: fed by requests or by a file that grows. Only what they release is shown."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import privatest as pt
from privatest import errors
from privatest.studio.answers import law_of, plain_number
from privatest.studio.places import Folder
from privatest.studio.runs import Budgets

__all__ = ["Monitors"]

Json = dict[str, Any]
MOST_MONITORS = 16
AT_ONCE = 1 << 20
LONGEST_LINE = 1 << 16
PAUSE = 0.3
SHOWN = 400


class _Followed:
    """One monitor and what was asked of it."""

    def __init__(self, monitor: Any, asked: Json, path: Path | None) -> None:
        self.monitor, self.asked, self.path = monitor, asked, path
        self.lock = threading.Lock()
        self.stop = threading.Event()
        self.alarms: list[Json] = []

    def feed(self, lines: Iterable[bytes | str]) -> None:
        """Hand on records; none after an alarm."""
        with self.lock:
            if not self.monitor.drift_detected and not self.stop.is_set():
                alarm = self.monitor.update_many(pt.read_lines(lines))
                if alarm is not None:
                    self.alarms.append(alarm.to_dict())

    def state(self, name: str) -> Json:
        with self.lock:
            trace = [float(each) for each in self.monitor.trace]
            told: Json = plain_number(
                {
                    "monitor": name,
                    "null": self.asked["null"],
                    "alternative": self.asked["alternative"],
                    "epsilon": self.asked["epsilon"],
                    "beta": self.asked["beta"],
                    "dataset": self.asked["dataset"],
                    "request": self.asked["request"],
                    "following": self.path is not None and not self.stop.is_set(),
                    "stopped": self.stop.is_set(),
                    "seen": self.monitor.seen,
                    "drift_detected": self.monitor.drift_detected,
                    "alarms": list(self.alarms),
                    "trace": trace[-SHOWN:],
                    "settings": _settings(self.monitor),
                }
            )
        return told

    def follow(self) -> None:
        """Read the file's lines as they are added, until stopped or an alarm is raised."""
        assert self.path is not None
        rest = b""
        try:
            with open(self.path, "rb") as file:
                while not self.stop.is_set() and not self.monitor.drift_detected:
                    piece = file.read(AT_ONCE)
                    *whole, rest = (rest + piece).split(b"\n")
                    if len(rest) > LONGEST_LINE:
                        rest = b"\xff"  # memory stays bounded; whatever follows on this line, it is an odd record
                    if whole:
                        self.feed(whole)
                    if not piece:
                        self.stop.wait(PAUSE)
        except (OSError, errors.PrivatestError):
            self.stop.set()


def _settings(monitor: Any) -> Json:
    """What the monitor promises, computed before any data."""
    names = ("method", "block", "expected_delay", "mean_time_between_false_alarms", "interval", "accuracy")
    found = {name: getattr(monitor, name, None) for name in names}
    return {name: value for name, value in found.items() if isinstance(value, str | int | float)}


class Monitors:
    """The monitors of one studio, in memory; the oldest stops when there are too many."""

    def __init__(self, folder: Folder, budgets: Budgets) -> None:
        self._folder, self._budgets = folder, budgets
        self._lock = threading.Lock()
        self._all: OrderedDict[str, _Followed] = OrderedDict()
        self._count = 0

    def start(self, asked: Json) -> Json:
        """A monitor, charged once; the same request again gives the one that is there."""
        path = None if asked["path"] is None else self._folder.find(asked["path"])
        ledger = self._budgets.open()
        with self._lock:
            for name, each in self._all.items():
                if (each.asked["dataset"], each.asked["request"]) == (asked["dataset"], asked["request"]):
                    if each.asked != asked:
                        raise errors.RequestConflict(
                            f"Request {asked['request']!r} on data set {asked['dataset']!r} is a monitor with other "
                            "settings. Give this one another name."
                        )
                    return each.state(name)
            monitor = pt.Monitor(
                law_of(asked["null"]),
                law_of(asked["alternative"]),
                epsilon=asked["epsilon"],
                beta=asked["beta"],
                mean_time_between_false_alarms=asked["mean_time_between_false_alarms"],
                ledger=ledger,
                dataset=asked["dataset"],
                request=asked["request"],
            )
            self._count += 1
            name, made = f"monitor-{self._count}", _Followed(monitor, asked, path)
            self._all[name] = made
            while len(self._all) > MOST_MONITORS:
                self._all.popitem(last=False)[1].stop.set()
        if path is not None:
            threading.Thread(target=made.follow, name=f"studio-{name}", daemon=True).start()
        return made.state(name)

    def listed(self) -> list[Json]:
        """The state of every monitor, the oldest first."""
        with self._lock:
            known = list(self._all.items())
        return [each.state(name) for name, each in known]

    def state(self, name: str) -> Json:
        """The state of one."""
        return self._find(name).state(name)

    def feed(self, name: str, lines: list[str]) -> Json:
        """Hand records to a monitor that follows no file."""
        found = self._find(name)
        if found.path is not None:
            raise errors.InvalidInput("This monitor follows a file. Start another one to send records to.")
        if found.stop.is_set():
            raise errors.InvalidInput("This monitor was stopped. Start another one.")
        found.feed(lines)
        return found.state(name)

    def stop(self, name: str) -> Json:
        """Follow no more; what was released stays visible."""
        found = self._find(name)
        found.stop.set()
        return found.state(name)

    def close(self) -> None:
        """Stop all of them."""
        with self._lock:
            for each in self._all.values():
                each.stop.set()

    def _find(self, name: str) -> _Followed:
        with self._lock:
            found = self._all.get(name)
        if found is None:
            raise errors.InvalidInput("There is no monitor of this name. The studio keeps them in memory only.")
        return found
