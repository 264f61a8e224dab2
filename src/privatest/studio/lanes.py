"""Where computations queue: a lane has worker processes, limits on time and memory, and a memory of answers.

Guarantees: nothing computes inside the server; no computation outlives its limit, nor takes more memory than its
worker may; a question that nobody waits for any more is dropped, or, where ``stoppable``, stopped; no more questions
wait than are answered in a while; equal questions about public things are computed once.
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
"""Answers that a lane remembers, and their bytes."""
MOST_WAITING = 64
PATIENCE = 0.25
"""Seconds between two looks at whether somebody still waits."""
GRACE = 2.0
"""Seconds for which a computation goes on that nobody waits for: a new worker takes about as long to start."""
PLANNING, RUNNING = 2 * 2**30, 4 * 2**30
"""Bytes of memory of a worker: from public settings alone, and with data."""

LOOK, NEEDED = 0, 8
"""How much the workers of the first picture and of the first number give way to others."""

HEADWAY = '{"headway"'
"""How a line begins that is no answer yet."""

Json = dict[str, Any]
Gone = Callable[[], Awaitable[bool]]


class Busy(Exception):
    """More questions wait than can be answered soon."""


class _Worker:
    """One process, started when first asked; asked from one thread at a time, killed from any."""

    def __init__(self, nice: int, memory: int) -> None:
        self._command = _command(nice, memory)
        self._held: list[subprocess.Popen[str]] = []
        self.told: Json = {}  # how far what it computes has come, and what it has found so far
        weakref.finalize(self, _end_all, self._held)

    @property
    def process(self) -> subprocess.Popen[str] | None:
        """The process, while it runs."""
        return next((each for each in self._held if each.poll() is None), None)

    def ask(self, line: str, seconds: float) -> tuple[str, bool]:
        """The answer, "" if the process ended first, and whether the time was up."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(seconds, process.kill)
        timer.daemon = True
        timer.start()
        answer, self.told = "", {}
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            while (answer := process.stdout.readline()).startswith(HEADWAY):
                self.told = json.loads(answer)
        except (OSError, ValueError):
            answer = ""  # it was ended meanwhile; what was read last is no answer
        late = timer.finished.is_set()
        timer.cancel()
        if not answer:
            self.kill()
        return answer, late

    def _started(self) -> subprocess.Popen[str]:
        running = self.process
        if running is None:
            self.kill()
            running = _early.pop(tuple(self._command), None) or _launched(self._command)
            self._held.append(running)
        return running

    def kill(self) -> None:
        _end_all(self._held)


def _command(nice: int, memory: int) -> list[str]:
    return [sys.executable, "-m", "privatest.studio.worker", str(nice), str(memory)]


def _launched(command: list[str]) -> subprocess.Popen[str]:
    """A process that waits for questions."""
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
    """Processes that import what they need while the server does the same; lanes made meanwhile take them over."""
    commands = [_command(each, PLANNING) for each in nice]
    _early.update({tuple(command): _launched(command) for command in commands})
    try:
        yield
    finally:
        _end_all([_early.popitem()[1] for _ in range(len(_early))])


def _end_all(held: list[subprocess.Popen[str]]) -> None:
    for process in list(held):
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError, ValueError):
                    pipe.close()
        with contextlib.suppress(ValueError):
            held.remove(process)


class _Asked:
    """A question on its way, and how many wait for it."""

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
        seconds: limit on one computation.
        memory: bytes that a worker may take.
        nice: how much the workers give way to others.
        stoppable: whether a running computation is stopped once nobody waits for it.
        workers: how many compute at the same time.
        remembers: whether equal questions have equal answers: those are then shared and remembered.
        kept: whether a worker answers the next question too; otherwise nothing of one is left for the next.
        remedy: what to say where a limit was met.
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
        kept: bool = True,
        remedy: str = "Try a larger epsilon, a smaller n or simpler distributions.",
    ) -> None:
        self._seconds, self._stoppable, self._remembers, self._kept = seconds, stoppable, remembers, kept
        self._remedy = remedy
        self._workers = [_Worker(nice, memory) for _ in range(workers)]
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="studio-lane")
        self._known: OrderedDict[str, tuple[Json, int]] = OrderedDict()
        self._asked: dict[str | int, _Asked] = {}
        self._lock = threading.Lock()
        self._closed = False

    async def answer(self, job: str, arguments: Json, gone: Gone | None = None) -> Json:
        """The result of a job; raises what the job raised. ``gone`` says whether the asker has left."""
        asked = self._ask(self._line(job, arguments))
        if not isinstance(asked, _Asked):
            return _result(asked)
        waiter = asyncio.wrap_future(asked.future)
        try:
            while not waiter.done():
                await asyncio.wait([waiter], timeout=PATIENCE)
                if not waiter.done() and gone is not None and await gone():
                    raise errors.Infeasible("Nobody waits for this answer any more.")
            return _result(await waiter)
        except (CancelledError, asyncio.CancelledError):
            if asked.future.cancelled():
                raise errors.Infeasible("The computation was stopped.") from None
            raise
        finally:
            self._leave(asked)

    def _line(self, job: str, arguments: Json) -> str:
        return json.dumps(
            {"job": job, "arguments": arguments, "seconds": self._seconds}, sort_keys=True, allow_nan=False
        )

    def _ask(self, line: str) -> _Asked | Json:
        """The question, queued with all that ask the same, or its answer where that is known."""
        with self._lock:
            if self._closed:
                raise errors.Infeasible("The studio is closing: nothing is computed any more.")
            if line in self._known:
                self._known.move_to_end(line)
                return self._known[line][0]
            asked = self._asked.get(line)  # none, unless equal ones are shared
            if asked is None or asked.dropped:
                if len(self._asked) >= MOST_WAITING:
                    raise Busy(f"{MOST_WAITING} questions of this sort wait for their answers. Ask again in a while.")
                asked = _Asked(line)
                self._asked[line if self._remembers else id(asked)] = asked
                asked.future = self._threads.submit(self._compute, asked)
            asked.waiting += 1
            return asked

    def _leave(self, asked: _Asked) -> None:
        """One asker less; the last one takes the question with them."""
        with self._lock:
            asked.waiting -= 1
            if asked.waiting > 0 or asked.future.done():
                return
            if asked.future.cancel():
                self._forget(asked)
                return
            if self._stoppable:
                timer = threading.Timer(GRACE, self._stop, [asked])
                timer.daemon = True
                timer.start()

    def _stop(self, asked: _Asked) -> None:
        """Stop what still runs though nobody waits for it."""
        with self._lock:
            if asked.worker is not None and asked.waiting == 0:
                asked.dropped = True
                asked.worker.kill()

    def _forget(self, asked: _Asked) -> None:
        key = asked.line if self._remembers else id(asked)
        if self._asked.get(key) is asked:
            del self._asked[key]

    def _compute(self, asked: _Asked) -> Json:
        worker = self._idle.get()
        with self._lock:
            asked.worker = worker
        try:
            used = worker.process is not None
            text, late = worker.ask(asked.line, self._seconds)
            # Of a worker that was there before it may be the end of another question, or somebody else's doing.
            if used and not (text or late or asked.dropped or self._closed):
                text, late = worker.ask(asked.line, self._seconds)
            found: Json = json.loads(text) if text else self._too_long()
        finally:
            with self._lock:
                asked.worker = None
                self._forget(asked)
            if not self._kept or self._closed:
                worker.kill()
            self._idle.put(worker)
        if text and self._remembers:
            with self._lock:
                self._known[asked.line] = found, len(text)
                while len(self._known) > REMEMBERED or sum(each[1] for each in self._known.values()) > MOST_REMEMBERED:
                    self._known.popitem(last=False)
        return found

    def _too_long(self) -> Json:
        sentence = f"The computation was stopped: it needs more than {self._seconds:g} seconds or too much memory."
        return {"error": f"{sentence} {self._remedy}", "kind": "Infeasible"}

    def working(self) -> list[Json]:
        """What is being computed or waits: its job, the seconds since it was asked, and how far it has come.

        Where there is a part of the answer already: ``found``, and in ``asked`` what of.
        """
        with self._lock:
            return [
                {
                    "job": json.loads(each.line)["job"],
                    "seconds": round(time.monotonic() - each.since, 1),
                    "headway": "",
                    **({} if each.worker is None else each.worker.told),
                }
                for each in self._asked.values()
                if not each.dropped
            ]

    def warm(self, job: str, arguments: Json) -> Future[Json]:
        """Start the workers now, on a question that will be asked first; its answer is remembered where answers are."""
        asked = _Asked(self._line(job, arguments))
        first, *_ = [self._threads.submit(self._compute, asked) for _ in self._workers]
        return first

    def close(self) -> None:
        """End the workers and all questions; there is no next one."""
        with self._lock:
            self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.kill()


def _result(found: Json) -> Json:
    if "ok" in found:
        result: Json = found["ok"]
        return result
    kind = getattr(errors, found["kind"], None)
    if not (isinstance(kind, type) and issubclass(kind, errors.PrivatestError)):
        kind = errors.Infeasible
    error = kind.__new__(kind)  # its sentence is all that came over, whatever else its kind carries
    error.args = (found["error"],)
    raise error
