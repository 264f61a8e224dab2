"""The worker: a process that computes for the studio. It reads a job per line as JSON and prints the answer as JSON.

Before the answer it may print lines about its progress: {"headway": sentence}, with the rows found so far and the
arguments of the job if there are any: {"headway": sentence, "found": rows, "asked": arguments}.

It is started as ``python -m privatest.studio.worker NICE MEMORY``. A computation in its own process can be stopped,
shares no interpreter lock with the page, and has a memory limit. The worker ends when its input ends.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import queue
import sys
import threading
import time
import warnings
from dataclasses import asdict
from typing import Any

import privatest as pt
from privatest import errors
from privatest.studio import monitors, planning_requests, runs
from privatest.studio.job_queues import LOOK, NEEDED

JOBS = {**planning_requests.JOBS, **runs.JOBS, **monitors.JOBS}
FIRST = {LOOK: "decompose", NEEDED: "sample_size"}
"""The functions that the workers of a page's first answers will call."""
EVERY = 0.4
"""Seconds between two reports of progress."""
MARGIN = 5.0
"""Seconds beyond the limit after which a worker ends by itself, because the server that should end it is gone."""


def answer(line: str) -> dict[str, Any]:
    """Return the answer to one line: {"ok": result}, or {"error": sentence, "kind": name}."""
    try:
        job = json.loads(line)
        return {"ok": planning_requests.plain_number(JOBS[job["job"]](**job["arguments"]))}
    except errors.PrivatestError as error:
        sentences = [str(error), *filter(None, [errors.charge_note(error)])]
        return {"error": " ".join(sentences), "kind": type(error).__name__}
    except Exception as error:
        return {
            "error": f"This cannot be computed for these settings ({type(error).__name__}).",
            "kind": "Infeasible",
        }


def main() -> None:
    """Answer jobs until the input ends."""
    warnings.simplefilter("ignore")
    nice, memory = int(sys.argv[1]), int(sys.argv[2])
    with contextlib.suppress(ImportError, ValueError, OSError, AttributeError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # what crashes leaves no records on disk
    with contextlib.suppress(OSError, AttributeError):
        os.nice(nice)
    jobs: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=[jobs], daemon=True).start()
    if nice in FIRST:
        getattr(pt, FIRST[nice])  # imported while nobody waits for it
    with open(os.devnull, "w") as nowhere:
        while True:
            line = jobs.get()
            seconds = json.loads(line).get("seconds", 60.0)
            faulthandler.dump_traceback_later(seconds + MARGIN, exit=True, file=nowhere)
            # Plans report progress, which depends on public settings alone; runs on data report nothing.
            public = json.loads(line)["job"] in planning_requests.JOBS
            with pt.progress(_ProgressPrinter(json.loads(line)["arguments"]) if public else lambda _: None):
                print(json.dumps(answer(line), allow_nan=False), flush=True)
            faulthandler.cancel_dump_traceback_later()


class _ProgressPrinter:
    """A listener that prints how far a computation is, at most a few times per second."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._next, self._settings, self._rows = time.monotonic() + EVERY, settings, None

    def __call__(self, headway: Any) -> None:
        self._rows = headway.partial or self._rows
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + EVERY
            line: dict[str, Any] = {"headway": str(headway)}
            if self._rows is not None:
                rows = [asdict(row) for row in self._rows]
                line |= {"found": planning_requests.plain_number(rows), "asked": self._settings}
            print(json.dumps(line), flush=True)


def _read(jobs: queue.SimpleQueue[str]) -> None:
    """Put jobs from the input into the queue; when the input ends, end the process and its computation."""
    with contextlib.suppress(OSError, ValueError):
        for line in sys.stdin:
            jobs.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
