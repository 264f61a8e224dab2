"""Lanes: queues of computations, each with worker processes, limits on time and memory, and a cache of answers.

Guarantees: nothing is computed inside the server; no computation exceeds its time limit or its worker's memory limit; a
job that nobody waits for any more is dropped or, if the lane is ``stoppable``, stopped; the number of waiting jobs is
bounded; equal jobs on public settings are computed once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

from privatest import errors

REMEMBERED = 512
MOST_REMEMBERED = 16 * 2**20
"""Largest number of answers in a lane's cache, and of their bytes."""
MOST_WAITING = 64
PATIENCE = 0.25
"""Seconds between two checks whether somebody still waits."""
GRACE = 2.0
"""Seconds for which a computation continues that nobody waits for: a new worker takes about as long to start."""
PLANNING, RUNNING = 2 * 2**30, 4 * 2**30
"""Largest memory of a worker in bytes: for plans, and for runs on data."""

LOOK, NEEDED = 0, 8
"""Niceness of the workers of the first picture and of the first number."""

HEADWAY = '{"headway"'
"""The start of a line that reports progress and is not the answer."""

Json = dict[str, Any]
Gone = Callable[[], Awaitable[bool]]


class Busy(Exception):
    """Too many jobs wait for their answers."""


class _Worker:
    """One process, started with its first job. One thread at a time gives it jobs; any thread may kill it."""

    def __init__(self, nice: int, memory: int) -> None:
        self._command = _command(nice, memory)
        self._held: list[subprocess.Popen[str]] = []
        self.progress: Json = {}  # the last report of progress
        weakref.finalize(self, _end_all, self._held)

    @property
    def process(self) -> subprocess.Popen[str] | None:
        """The process, while it runs."""
        return next((each for each in self._held if each.poll() is None), None)

    def ask(self, line: str, seconds: float) -> tuple[str, bool]:
        """Return the answer, or "" if the process ended first, and whether the time was up."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(seconds, process.kill)
        timer.daemon = True
        timer.start()
        answer, self.progress = "", {}
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            while (answer := process.stdout.readline()).startswith(HEADWAY):
                self.progress = json.loads(answer)
        except (OSError, ValueError):
            answer = ""  # the process was ended; the last line is no answer
        late = timer.finished.is_set()
        timer.cancel()
        if not answer:
            self.kill()
        return answer, late

    def _started(self) -> subprocess.Popen[str]:
        """Return the running process, a new one if necessary."""
        running = self.process
        if running is None:
            self.kill()
            running = _early.pop(tuple(self._command), None) or _launched(self._command)
            self._held.append(running)
        return running

    def kill(self) -> None:
        """End the process."""
        _end_all(self._held)


def _command(nice: int, memory: int) -> list[str]:
    """Return the command line that starts a worker."""
    return [sys.executable, "-m", "privatest.studio.worker", str(nice), str(memory)]


def _launched(command: list[str]) -> subprocess.Popen[str]:
    """Start a process that waits for jobs."""
    # The same package as here, however it was found; one thread each: there are several of us.
    settings = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1", **settings},
        text=True,
        encoding="utf-8",
        start_new_session=True,  # Ctrl-C is for the server, which then ends us; without it we end by ourselves
    )


_early: dict[tuple[str, ...], subprocess.Popen[str]] = {}


@contextlib.contextmanager
def begun_early(*nice: int) -> Iterator[None]:
    """Start workers early, so that they import modules while the server does; lanes made in the context use them."""
    commands = [_command(each, PLANNING) for each in nice]
    _early.update({tuple(command): _launched(command) for command in commands})
    try:
        yield
    finally:
        _end_all([_early.popitem()[1] for _ in range(len(_early))])


def _end_all(held: list[subprocess.Popen[str]]) -> None:
    """Kill processes and close their pipes."""
    for process in list(held):
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError, ValueError):
                    pipe.close()
        with contextlib.suppress(ValueError):
            held.remove(process)


class _Job:
    """A job that waits or is computed, and the number of requests that wait for it."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.since = time.monotonic()
        self.waiting = 0
        self.dropped = False
        self.worker: _Worker | None = None
        self.future: Future[Json]


class Lane:
    """Workers and their queue.

    Args:
        seconds: time limit of one computation.
        memory: memory limit of a worker in bytes.
        nice: niceness of the workers.
        stoppable: whether a running computation is stopped when nobody waits for it.
        workers: number of computations at the same time.
        remembers: whether equal jobs have equal answers, which are then shared and cached.
        reuses: whether a worker computes further jobs; if not, each job has a new process, so that no data remain.
        remedy: sentence that follows the message about an exceeded limit.
    """

    def __init__(
        self,
        *,
        seconds: float,
        memory: int = PLANNING,
        nice: int = 0,
        stoppable: bool = False,
        workers: int = 1,
        remembers: bool = True,
        reuses: bool = True,
        remedy: str = "Try a larger epsilon, a smaller n or simpler distributions.",
    ) -> None:
        self._seconds, self._stoppable, self._remembers, self._reuses = (
            seconds,
            stoppable,
            remembers,
            reuses,
        )
        self._remedy = remedy
        self._workers = [_Worker(nice, memory) for _ in range(workers)]
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="studio-lane")
        self._answers: OrderedDict[str, tuple[Json, int]] = OrderedDict()
        self._pending: dict[str | int, _Job] = {}
        self._lock = threading.Lock()
        self._closed = False

    async def answer(self, job: str, arguments: Json, gone: Gone | None = None) -> Json:
        """Return the result of a job, or raise its error. ``gone`` returns whether the client has disconnected."""
        pending = self._ask(self._line(job, arguments))
        if not isinstance(pending, _Job):
            return _result(pending)
        waiter = asyncio.wrap_future(pending.future)
        try:
            while not waiter.done():
                await asyncio.wait([waiter], timeout=PATIENCE)
                if not waiter.done() and gone is not None and await gone():
                    raise errors.Infeasible("Nobody waits for this answer any more.")
            return _result(await waiter)
        except (CancelledError, asyncio.CancelledError):
            if pending.future.cancelled():
                raise errors.Infeasible("The computation was stopped.") from None
            raise
        finally:
            self._leave(pending)

    def _line(self, job: str, arguments: Json) -> str:
        """Return a job as the line that a worker reads."""
        return json.dumps(
            {"job": job, "arguments": arguments, "seconds": self._seconds}, sort_keys=True, allow_nan=False
        )

    def _ask(self, line: str) -> _Job | Json:
        """Return the job, queued or joined with an equal one, or its answer if that is cached."""
        with self._lock:
            if self._closed:
                raise errors.Infeasible("The studio is closing and computes nothing any more.")
            if line in self._answers:
                self._answers.move_to_end(line)
                return self._answers[line][0]
            pending = self._pending.get(line)  # None, unless equal jobs are shared
            if pending is None or pending.dropped:
                if len(self._pending) >= MOST_WAITING:
                    raise Busy(f"{MOST_WAITING} questions of this kind wait for their answers. Ask again in a while.")
                pending = _Job(line)
                self._pending[line if self._remembers else id(pending)] = pending
                pending.future = self._threads.submit(self._compute, pending)
            pending.waiting += 1
            return pending

    def _leave(self, pending: _Job) -> None:
        """Reduce the number of waiting requests by one; if it is 0 then, drop the job."""
        with self._lock:
            pending.waiting -= 1
            if pending.waiting > 0 or pending.future.done():
                return
            if pending.future.cancel():
                self._forget(pending)
                return
            if self._stoppable:
                timer = threading.Timer(GRACE, self._stop, [pending])
                timer.daemon = True
                timer.start()

    def _stop(self, pending: _Job) -> None:
        """Stop the computation if no request waits for it."""
        with self._lock:
            if pending.worker is not None and pending.waiting == 0:
                pending.dropped = True
                pending.worker.kill()

    def _forget(self, pending: _Job) -> None:
        key = pending.line if self._remembers else id(pending)
        if self._pending.get(key) is pending:
            del self._pending[key]

    def _compute(self, pending: _Job) -> Json:
        worker = self._idle.get()
        with self._lock:
            pending.worker = worker
        try:
            used = worker.process is not None
            text, late = worker.ask(pending.line, self._seconds)
            # A worker that served before may have been ended for an earlier job, or by the system: try once more.
            if used and not (text or late or pending.dropped or self._closed):
                text, late = worker.ask(pending.line, self._seconds)
            answer: Json = json.loads(text) if text else self._too_long()
        finally:
            with self._lock:
                pending.worker = None
                self._forget(pending)
            if not self._reuses or self._closed:
                worker.kill()
            self._idle.put(worker)
        if text and self._remembers:
            with self._lock:
                self._answers[pending.line] = answer, len(text)
                while (
                    len(self._answers) > REMEMBERED or sum(each[1] for each in self._answers.values()) > MOST_REMEMBERED
                ):
                    self._answers.popitem(last=False)
        return answer

    def _too_long(self) -> Json:
        """Return the error of a computation that exceeded a limit."""
        sentence = f"The computation was stopped: it needs more than {self._seconds:g} seconds or too much memory."
        return {"error": f"{sentence} {self._remedy}", "kind": "Infeasible"}

    def working(self) -> list[Json]:
        """Return the jobs that wait or are computed: name, seconds since the request, and progress.

        If a part of the answer is known, it is in ``found``, and the arguments of the job are in ``asked``.
        """
        with self._lock:
            return [
                {
                    "job": json.loads(each.line)["job"],
                    "seconds": round(time.monotonic() - each.since, 1),
                    "headway": "",
                    **({} if each.worker is None else each.worker.progress),
                }
                for each in self._pending.values()
                if not each.dropped
            ]

    def warm(self, job: str, arguments: Json) -> Future[Json]:
        """Start the workers now, on a job that the page requests first; its answer is cached if answers are."""
        pending = _Job(self._line(job, arguments))
        first, *_ = [self._threads.submit(self._compute, pending) for _ in self._workers]
        return first

    def close(self) -> None:
        """End the workers and all jobs, and accept no more."""
        with self._lock:
            self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.kill()


def _result(answer: Json) -> Json:
    """Return the result in a worker's answer, or raise its error."""
    if "ok" in answer:
        result: Json = answer["ok"]
        return result
    kind = getattr(errors, answer["kind"], None)
    if not (isinstance(kind, type) and issubclass(kind, errors.PrivatestError)):
        kind = errors.Infeasible
    error = kind.__new__(kind)  # its sentence is all that came over, whatever else its kind carries
    error.args = (answer["error"],)
    raise error
