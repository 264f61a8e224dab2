"""Monitors and sequential tests that the page follows: fed by requests or by a file. Only what they release is shown.

Each lives in a worker process of its own (``_Followed``, and the jobs below it); the server keeps ``Monitors``, which
of them there are and what they said last.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import privatest as pt
from privatest import errors, followed, options
from privatest.studio.answering import arguments, plain_number
from privatest.studio.lanes import RUNNING, Gone, Lane
from privatest.studio.runs import STAYS, Budgets, Folder, ledger_of

Json = dict[str, Any]
MOST_MONITORS = 16
MOST_STARTING = 2
SHOWN = 400
TOLD = ("null", "alternative", "epsilon", "privacy", "beta", "dataset", "request")
"""What a monitor's state repeats of the question."""
NOUNS = {"/monitors": "monitor", "/sequentials": "sequential"}
"""What is followed, by the request that starts it; the names of those that run begin so."""
_REMEDY = "The monitor has stopped. Start another one, with a request of its own."


class _Followed:
    """One monitor and what was asked of it."""

    def __init__(self, monitor: Any, asked: Json, path: Path | None) -> None:
        self.monitor, self.asked, self.path = monitor, asked, path
        self.lock = threading.Lock()
        self.stop = threading.Event()
        self.alarms: list[Json] = []
        self.problem = ""

    def feed(self, lines: Iterable[bytes | str]) -> None:
        """Hand on records; none after an alarm."""
        with self.lock:
            if self.monitor.result is None and not self.stop.is_set():
                alarm = self.monitor.update_many(pt.data.read_lines(lines))
                if alarm is not None:
                    self.alarms.append(alarm.to_dict())

    def state(self, name: str) -> Json:
        with self.lock:
            trace = [float(each) for each in self.monitor.trace]
            walk = getattr(self.monitor, "walk", None)  # of a sequential test
            told: Json = plain_number(
                {
                    "monitor": name,
                    **{name: self.asked.get(name) for name in TOLD},
                    **({"walk": list(walk)[-SHOWN:]} if walk is not None else {}),
                    "following": self.path is not None and not self.stop.is_set(),
                    "stopped": self.stop.is_set(),
                    "problem": self.problem,
                    "seen": self.monitor.seen,
                    "drift_detected": self.monitor.result is not None,
                    "alarms": list(self.alarms),
                    "trace": trace[-SHOWN:],
                    # of a monitor: what its alarm looks at, computed from the trace
                    "threshold": getattr(self.monitor, "threshold", None),
                    "levels": list(getattr(self.monitor, "levels", ()))[-SHOWN:],
                    "settings": self.monitor.values(),
                }
            )
        return told

    def follow(self) -> None:
        """Read the file's lines as they are added, until stopped or an alarm is raised."""
        assert self.path is not None
        try:
            file = followed.LineFile(self.path)
            try:
                for lines, _ in file.batches(follow=True, remedy=_REMEDY, wait=self._ended):
                    self.feed(lines)
                    if self._ended():
                        break
            finally:
                file.close()
        except errors.PrivatestError as problem:
            # Its file's place in this folder is all that the page knows of.
            self.problem = str(problem).replace(str(self.path), str(self.asked["path"]))
            self.stop.set()
        except OSError as problem:
            self.problem = f"The file {self.asked['path']!r} can no longer be read: {problem.strerror}."
            self.stop.set()

    def _ended(self, seconds: float = 0) -> bool:
        return self.stop.wait(seconds) or self.monitor.result is not None


_here: list[_Followed] = []
"""The one monitor of this worker."""


def _start(name: str, route: str, asked: Json, path: str | None, ledger: str) -> Json:
    try:
        settings = arguments(route, asked, options.RULE, options.PAYER)
        monitor = getattr(pt, options.QUESTIONS[route].call)(**settings, ledger=ledger_of(ledger), source=path)
    except errors.PrivatestError as error:
        if path is not None:  # its place in the folder is all that the page knows of
            error.args = (str(error).replace(path, asked["path"]), *error.args[1:])
        raise
    made = _Followed(monitor, asked, None if path is None else Path(path))
    _here.append(made)
    if path is not None:
        threading.Thread(target=made.follow, name=f"studio-{name}", daemon=True).start()
    return made.state(name)


def _then(do: Callable[..., None]) -> Callable[..., Json]:
    """A job on the monitor of this worker, which answers with its state."""

    def job(name: str, **arguments: Any) -> Json:
        if not _here:
            raise errors.Infeasible("The monitor's process has ended, and the monitor with it.")
        do(_here[0], **arguments)
        return _here[0].state(name)

    return job


JOBS: dict[str, Callable[..., Json]] = {
    "monitor_start": _start,
    "monitor_state": _then(lambda _followed: None),
    "monitor_feed": _then(lambda followed, lines: followed.feed(lines)),
    "monitor_stop": _then(lambda followed: followed.stop.set()),
}


class _KnownMonitor:
    """One monitor as the server knows it: its worker, and what it said last."""

    def __init__(self, name: str, asked: Json) -> None:
        self.name, self.asked = name, asked
        self.said: Json | None = None
        self.over = False
        self.begun = asyncio.Event()
        # A single worker, so that what is asked of a monitor is done in the order in which it was asked.
        self.lane = Lane(seconds=60, memory=RUNNING, nice=4, remembers=False, remedy=STAYS)

    async def ask(self, job: str, gone: Gone | None = None, **arguments: Any) -> Json:
        """Its state after a job; one that is over answers from memory."""
        if self.said is None or not self.over:
            try:
                self.said = await self.lane.answer(job, {"name": self.name, **arguments}, gone)
            except errors.Infeasible as error:
                if self.said is None:
                    raise
                if self.over:  # by a question before this one
                    return self.said
                self.said = {**self.said, "following": False, "stopped": True, "problem": str(error)}
            if self.said["stopped"] or self.said["drift_detected"]:
                self.end()
        return self.said

    def end(self) -> None:
        """It releases nothing more: its process goes, what it said stays."""
        self.over = True
        self.lane.close()


class Monitors:
    """The monitors of one studio, or its sequential tests, in memory; the oldest stops when there are too many."""

    def __init__(self, folder: Folder, budgets: Budgets, route: str = "/monitors") -> None:
        self._folder, self._budgets, self._route = folder, budgets, route
        self._all: OrderedDict[str, _KnownMonitor] = OrderedDict()
        self._starting = asyncio.Semaphore(MOST_STARTING)
        self._count = 0

    async def start(self, asked: Json, gone: Gone) -> Json:
        """A monitor, charged once; the same request again gives the one that is there."""
        path = None if asked["path"] is None else await asyncio.to_thread(self._folder.find, asked["path"])
        ledger = self._budgets.packed()
        for each in self._all.values():
            if (each.asked["dataset"], each.asked["request"]) == (asked["dataset"], asked["request"]):
                if each.asked != asked:
                    raise errors.RequestConflict(
                        f"Request {asked['request']!r} on data set {asked['dataset']!r} is a monitor with other "
                        "settings. Give this one another name."
                    )
                await each.begun.wait()
                if each.said is None:
                    raise errors.Infeasible("This monitor was asked for at the same time and did not begin.")
                return await each.ask("monitor_state")
        self._count += 1
        made = _KnownMonitor(f"{NOUNS[self._route]}-{self._count}", asked)
        self._all[made.name] = made
        try:
            async with self._starting:
                where = None if path is None else str(path)
                state = await made.ask("monitor_start", gone, route=self._route, asked=asked, path=where, ledger=ledger)
        except BaseException:
            del self._all[made.name]
            made.end()
            raise
        finally:
            made.begun.set()
        begun = [each for each in self._all.values() if each.said is not None]
        for each in begun[: max(len(begun) - MOST_MONITORS, 0)]:
            each.end()
            del self._all[each.name]
        return state

    async def listed(self) -> list[Json]:
        """The state of every monitor that has begun, the oldest first."""
        return await asyncio.gather(*(each.ask("monitor_state") for each in self._all.values() if each.said))

    async def state(self, name: str) -> Json:
        """The state of one."""
        return await self._find(name).ask("monitor_state")

    async def feed(self, name: str, lines: list[str]) -> Json:
        """Hand records to a monitor that follows no file."""
        found = self._find(name)
        if found.asked["path"] is not None:
            raise errors.InvalidInput("This monitor follows a file. Start another one to send records to.")
        if found.said is not None and found.said["stopped"]:
            raise errors.InvalidInput("This monitor was stopped. Start another one.")
        return await found.ask("monitor_feed", lines=lines)

    async def stop(self, name: str) -> Json:
        """Follow no more; what was released stays visible."""
        found = self._find(name)
        state = await found.ask("monitor_stop")
        if not state["stopped"]:
            state = found.said = {**state, "stopped": True, "following": False}
        return state

    def close(self) -> None:
        """End all of them."""
        for each in self._all.values():
            each.end()

    def _find(self, name: str) -> _KnownMonitor:
        found = self._all.get(name)
        if found is None:
            raise errors.InvalidInput("There is no monitor of this name. The studio keeps them in memory only.")
        return found
