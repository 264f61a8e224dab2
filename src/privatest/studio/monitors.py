"""Monitors and sequential tests of the studio, which read records from requests or from a file.

Each runs in a worker process of its own (``_Followed`` and the jobs below it). The server keeps a list of them with
their last states (``Monitors``). The page shows only what they release.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from operator import attrgetter
from pathlib import Path
from typing import Any

import privatest as pt
from privatest import errors, followed_file, options
from privatest.studio.job_queues import RUNNING, Gone, Lane
from privatest.studio.planning_requests import arguments, plain_number
from privatest.studio.runs import STAYS, Budgets, Folder, ledger_of

Json = dict[str, Any]
MOST_MONITORS = 16
MOST_STARTING = 2
SHOWN = 400
REPEATED = ("null", "alternative", "epsilon", "privacy", "beta", "dataset", "request")
"""Settings that a monitor's state repeats."""
NOUNS = {"/monitors": "monitor", "/sequentials": "sequential"}
"""The name of what a request starts; the names of running ones begin with it."""
_REMEDY = "The monitor has stopped. Start another one under a new request name."


class _Followed:
    """A monitor or sequential test in its worker, with its settings."""

    def __init__(self, monitor: Any, settings: Json, path: Path | None) -> None:
        self.monitor, self.settings, self.path = monitor, settings, path
        self.lock = threading.Lock()
        self.stop = threading.Event()
        self.alarms: list[Json] = []
        self.problem = ""

    def feed(self, lines: Iterable[bytes | str]) -> None:
        """Pass records on; none after an alarm."""
        with self.lock:
            if self.monitor.result is None and not self.stop.is_set():
                alarm = self.monitor.update_many(pt.data.read_lines(lines))
                if alarm is not None:
                    self.alarms.append(alarm.to_dict())

    def state(self, name: str) -> Json:
        """Return what the page shows: settings, releases and problems."""
        with self.lock:
            trace = [float(each) for each in self.monitor.trace]
            walk = getattr(self.monitor, "walk", None)  # of a sequential test
            shown: Json = plain_number(
                {
                    "monitor": name,
                    **{name: self.settings.get(name) for name in REPEATED},
                    **({"walk": list(walk)[-SHOWN:]} if walk is not None else {}),
                    "following": self.path is not None and not self.stop.is_set(),
                    "stopped": self.stop.is_set(),
                    "problem": self.problem,
                    "seen": self.monitor.seen,
                    "drift_detected": self.monitor.result is not None,
                    "alarms": list(self.alarms),
                    "trace": trace[-SHOWN:],
                    # a monitor's alarm statistic, computed from the trace
                    "threshold": getattr(self.monitor, "threshold", None),
                    "levels": list(getattr(self.monitor, "levels", ()))[-SHOWN:],
                    "settings": self.monitor.values(),
                }
            )
        return shown

    def follow(self) -> None:
        """Read the file's lines as they are added, until stopped or an alarm is raised."""
        assert self.path is not None
        try:
            file = followed_file.LineFile(self.path)
            try:
                for lines, _ in file.batches(follow=True, remedy=_REMEDY, wait=self._ended):
                    self.feed(lines)
                    if self._ended():
                        break
            finally:
                file.close()
        except errors.PrivatestError as problem:
            # The page knows only the file's place in the folder.
            self.problem = str(problem).replace(str(self.path), str(self.settings["path"]))
            self.stop.set()
        except OSError as problem:
            self.problem = f"The file {self.settings['path']!r} can no longer be read: {problem.strerror}."
            self.stop.set()

    def _ended(self, seconds: float = 0) -> bool:
        """Wait, and return whether the monitor was stopped or has raised an alarm."""
        return self.stop.wait(seconds) or self.monitor.result is not None


_here: list[_Followed] = []
"""The monitor of this worker."""


def _start(name: str, route: str, settings: Json, path: str | None, ledger: str) -> Json:
    """Start the monitor of this worker, charged to the ledger, and return its state."""
    try:
        if path is not None:
            followed_file.LineFile(path).close()  # a file that cannot be followed is refused before the charge
        words = arguments(route, settings, options.RULE, options.PAYER)
        monitor = attrgetter(options.QUESTIONS[route].call)(pt)(**words, ledger=ledger_of(ledger), source=path)
    except errors.PrivatestError as error:
        if path is not None:  # the page knows only its place in the folder
            error.args = (str(error).replace(path, settings["path"]), *error.args[1:])
        raise
    followed = _Followed(monitor, settings, None if path is None else Path(path))
    _here.append(followed)
    if path is not None:
        threading.Thread(target=followed.follow, name=f"studio-{name}", daemon=True).start()
    return followed.state(name)


def _then(do: Callable[..., None]) -> Callable[..., Json]:
    """Return a job that acts on the monitor of this worker and returns its state."""

    def job(name: str, **arguments: Any) -> Json:
        if not _here:
            raise errors.Infeasible("The process of this monitor has ended. Start another monitor.")
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
    """A monitor as the server knows it: its worker and its last state."""

    def __init__(self, name: str, settings: Json) -> None:
        self.name, self.settings = name, settings
        self.last_state: Json | None = None
        self.over = False
        self.begun = asyncio.Event()
        # A single worker, so that requests to a monitor are carried out in order.
        self.lane = Lane(seconds=60, memory=RUNNING, nice=4, remembers=False, remedy=STAYS)

    async def ask(self, job: str, gone: Gone | None = None, **arguments: Any) -> Json:
        """Return the state after a job. A monitor that has ended returns its last state."""
        if self.last_state is None or not self.over:
            try:
                self.last_state = await self.lane.answer(job, {"name": self.name, **arguments}, gone)
            except errors.Infeasible as error:
                if self.last_state is None:
                    raise
                if self.over:  # by an earlier request
                    return self.last_state
                self.last_state = {**self.last_state, "following": False, "stopped": True, "problem": str(error)}
            if self.last_state["stopped"] or self.last_state["drift_detected"]:
                self.end()
        return self.last_state

    def end(self) -> None:
        """End its process, and keep its last state."""
        self.over = True
        self.lane.close()


class Monitors:
    """The monitors of a studio, or its sequential tests. The oldest is stopped when there are too many."""

    def __init__(self, folder: Folder, budgets: Budgets, route: str = "/monitors") -> None:
        self._folder, self._budgets, self._route = folder, budgets, route
        self._all: OrderedDict[str, _KnownMonitor] = OrderedDict()
        self._starting = asyncio.Semaphore(MOST_STARTING)
        self._count = 0

    async def start(self, settings: Json, gone: Gone) -> Json:
        """Start a monitor, charged once, and return its state. The same request again returns the same monitor."""
        path = None if settings["path"] is None else await asyncio.to_thread(self._folder.find, settings["path"])
        ledger = self._budgets.packed()
        for each in self._all.values():
            if (each.settings["dataset"], each.settings["request"]) == (settings["dataset"], settings["request"]):
                if each.settings != settings:
                    raise errors.RequestConflict(
                        f"Request {settings['request']!r} on data set {settings['dataset']!r} is a monitor with other "
                        "settings. Use another request name."
                    )
                await each.begun.wait()
                if each.last_state is None:
                    raise errors.Infeasible("This monitor could not be started. Repeat the request.")
                return await each.ask("monitor_state")
        self._count += 1
        monitor = _KnownMonitor(f"{NOUNS[self._route]}-{self._count}", settings)
        self._all[monitor.name] = monitor
        try:
            async with self._starting:
                where = None if path is None else str(path)
                state = await monitor.ask(
                    "monitor_start", gone, route=self._route, settings=settings, path=where, ledger=ledger
                )
        except BaseException:
            del self._all[monitor.name]
            monitor.end()
            raise
        finally:
            monitor.begun.set()
        begun = [each for each in self._all.values() if each.last_state is not None]
        for each in begun[: max(len(begun) - MOST_MONITORS, 0)]:
            each.end()
            del self._all[each.name]
        return state

    async def listed(self) -> list[Json]:
        """Return the state of every monitor that has begun, the oldest first."""
        return await asyncio.gather(*(each.ask("monitor_state") for each in self._all.values() if each.last_state))

    async def state(self, name: str) -> Json:
        """Return the state of a monitor."""
        return await self._find(name).ask("monitor_state")

    async def feed(self, name: str, lines: list[str]) -> Json:
        """Pass records to a monitor that follows no file, and return its state."""
        monitor = self._find(name)
        if monitor.settings["path"] is not None:
            raise errors.InvalidInput("This monitor follows a file. Start another one to send records.")
        if monitor.last_state is not None and monitor.last_state["stopped"]:
            raise errors.InvalidInput("This monitor was stopped. Start another one.")
        return await monitor.ask("monitor_feed", lines=lines)

    async def stop(self, name: str) -> Json:
        """Stop a monitor, and return its state, which stays visible."""
        monitor = self._find(name)
        state = await monitor.ask("monitor_stop")
        if not state["stopped"]:
            state = monitor.last_state = {**state, "stopped": True, "following": False}
        return state

    def close(self) -> None:
        """End all monitors."""
        for each in self._all.values():
            each.end()

    def _find(self, name: str) -> _KnownMonitor:
        monitor = self._all.get(name)
        if monitor is None:
            raise errors.InvalidInput("No monitor has this name. Monitors end when the studio ends.")
        return monitor
