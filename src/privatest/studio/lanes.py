"""Where computations queue: each lane has one worker process, a memory of answers, and a time limit.

Guarantees: equal questions are computed once; a question that nobody waits for any more is dropped, or, in a
lane for long work, stopped; no computation outlives its limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

from privatest import errors

__all__ = ["Lane"]

REMEMBERED = 512
PATIENCE = 0.25
"""Seconds between two looks at whether somebody still waits."""
GRACE = 2.0
"""Seconds for which a computation goes on that nobody waits for: a new worker takes about as long to start."""

Json = dict[str, Any]
Gone = Callable[[], Awaitable[bool]]


class _Worker:
    """One process, started when first asked; asked from one thread only, killed from any."""

    def __init__(self, nice: int) -> None:
        self._nice = nice
        self._process: subprocess.Popen[str] | None = None

    def ask(self, line: str, seconds: float) -> tuple[str, bool]:
        """The answer, "" if the process ended first, and whether the time was up."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(seconds, process.kill)
        timer.daemon = True
        timer.start()
        answer = ""
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except (BrokenPipeError, ValueError):
            pass
        late = timer.finished.is_set()
        timer.cancel()
        if not answer:
            _end(process)
        return answer, late

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self.kill()
            command = [sys.executable, "-m", "privatest.studio.worker", str(self._nice)]
            # The same package as here, however it was found; one thread each: there are several of us.
            settings = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "OMP_NUM_THREADS": "1", **settings},
                text=True,
                encoding="utf-8",
            )
            weakref.finalize(self, _end, self._process)
        return self._process

    def kill(self) -> None:
        process = self._process
        if process is not None:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError, ValueError):
                pipe.close()


class _Asked:
    """A question on its way, and how many wait for it."""

    def __init__(self) -> None:
        self.waiting = 0
        self.dropped = False
        self.future: Future[Json]


class Lane:
    """One worker and its queue.

    Args:
        seconds: limit on one computation.
        nice: how much the worker gives way to others.
        stoppable: whether a running computation is stopped once nobody waits for it.
    """

    def __init__(self, *, seconds: float, nice: int = 0, stoppable: bool = False) -> None:
        self._seconds, self._stoppable = seconds, stoppable
        self._worker = _Worker(nice)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="studio-lane")
        self._known: OrderedDict[str, Json] = OrderedDict()
        self._asked: dict[str, _Asked] = {}
        self._running: _Asked | None = None
        self._lock = threading.Lock()

    async def answer(self, job: str, arguments: Json, gone: Gone | None = None) -> Json:
        """The result of a job; raises what the job raised. ``gone`` says whether the asker has left."""
        line = json.dumps({"job": job, "arguments": arguments}, sort_keys=True)
        with self._lock:
            if line in self._known:
                self._known.move_to_end(line)
                return _result(self._known[line])
            asked = self._asked.get(line)
            if asked is None or asked.dropped:
                asked = self._asked[line] = _Asked()
                asked.future = self._thread.submit(self._compute, line, asked)
            asked.waiting += 1
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
            self._leave(line, asked)

    def _leave(self, line: str, asked: _Asked) -> None:
        """One asker less; the last one takes the question with them."""
        with self._lock:
            asked.waiting -= 1
            if asked.waiting > 0 or asked.future.done():
                return
            if asked.future.cancel():
                self._asked.pop(line, None)
                return
            if self._stoppable:
                timer = threading.Timer(GRACE, self._stop, [asked])
                timer.daemon = True
                timer.start()

    def _stop(self, asked: _Asked) -> None:
        """Stop what still runs though nobody waits for it."""
        with self._lock:
            if self._running is asked and asked.waiting == 0:
                asked.dropped = True
                self._worker.kill()

    def _compute(self, line: str, asked: _Asked) -> Json:
        with self._lock:
            self._running = asked
        try:
            text, late = self._worker.ask(line, self._seconds)
            if not (text or late or asked.dropped):  # the worker was ended for another's sake, or by somebody else
                text, late = self._worker.ask(line, self._seconds)
            found: Json = json.loads(text) if text else self._too_long()
        finally:
            with self._lock:
                self._running = None
                if self._asked.get(line) is asked:
                    del self._asked[line]
        if text:
            with self._lock:
                self._known[line] = found
                while len(self._known) > REMEMBERED:
                    self._known.popitem(last=False)
        return found

    def _too_long(self) -> Json:
        sentence = f"The computation was stopped: it needs more than {self._seconds:g} seconds or too much memory."
        return {
            "error": f"{sentence} Try a larger epsilon, a smaller n or simpler distributions.",
            "kind": "Infeasible",
        }

    def warm(self) -> None:
        """Start the worker now, so that the first question need not wait for it."""
        line = json.dumps(
            {"job": "look", "arguments": {"null": "bernoulli(0.4)", "alternative": "bernoulli(0.6)", "epsilon": 1}}
        )
        self._thread.submit(self._worker.ask, line, self._seconds)

    def close(self) -> None:
        """End the worker; the next question starts another."""
        self._worker.kill()


def _result(found: Json) -> Json:
    if "ok" in found:
        result: Json = found["ok"]
        return result
    kind = getattr(errors, found["kind"], errors.Infeasible)
    # Only errors that a message makes; none of the ledger's comes from a worker.
    raise (kind if issubclass(kind, errors.InvalidInput | errors.MissingExtra) else errors.Infeasible)(found["error"])
