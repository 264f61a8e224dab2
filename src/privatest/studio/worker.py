"""A process that computes for the studio: one JSON line in, one JSON line out, until its input ends.

Before the answer there may be lines that say how far it has come: {"headway": sentence}, perhaps with the rows that
were found so far and what was asked: {"headway": sentence, "found": rows, "asked": arguments}.

Started as ``python -m privatest.studio.worker NICE MEMORY``. In a process of its own a computation can be stopped,
shares no interpreter lock with the page, and a limit on memory holds. It ends with whoever started it.
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
from privatest.studio import answering, monitors, runs
from privatest.studio.lanes import LOOK, NEEDED

JOBS = {**answering.JOBS, **runs.JOBS, **monitors.JOBS}
FIRST = {LOOK: "decompose", NEEDED: "sample_size"}
"""What the workers of a page's first answers will need."""
EVERY = 0.4
"""Seconds between two words on how far it has come."""
MARGIN = 5.0
"""Seconds beyond the limit after which a worker ends by itself: whoever should have ended it is gone."""


def answer(line: str) -> dict[str, Any]:
    """The answer to one line: {"ok": result}, or {"error": sentence, "kind": name}."""
    try:
        asked = json.loads(line)
        return {"ok": answering.plain_number(JOBS[asked["job"]](**asked["arguments"]))}
    except errors.PrivatestError as error:
        said = [str(error), *filter(None, [errors.charge_note(error)])]
        return {"error": " ".join(said), "kind": type(error).__name__}
    except Exception as error:  # whatever it is, it says that these settings are beyond us
        return {
            "error": f"These settings are beyond what can be computed ({type(error).__name__}).",
            "kind": "Infeasible",
        }


def main() -> None:
    """Answer until the input ends."""
    warnings.simplefilter("ignore")
    nice, memory = int(sys.argv[1]), int(sys.argv[2])
    with contextlib.suppress(ImportError, ValueError, OSError, AttributeError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # what crashes leaves no records on disk
    with contextlib.suppress(OSError, AttributeError):
        os.nice(nice)
    asked: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=[asked], daemon=True).start()
    if nice in FIRST:
        getattr(pt, FIRST[nice])  # imported while nobody waits for it
    with open(os.devnull, "w") as nowhere:
        while True:
            line = asked.get()
            seconds = json.loads(line).get("seconds", 60.0)
            faulthandler.dump_traceback_later(seconds + MARGIN, exit=True, file=nowhere)
            # Plans tell how far they have come, which depends on public settings alone; runs on data tell nothing.
            public = json.loads(line)["job"] in answering.JOBS
            with pt.progress(_Teller(json.loads(line)["arguments"]) if public else lambda _: None):
                print(json.dumps(answer(line), allow_nan=False), flush=True)
            faulthandler.cancel_dump_traceback_later()


class _Teller:
    """Writes how far a computation has come, a few times a second at most; never after its answer."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self._next, self._asked, self._found = time.monotonic() + EVERY, asked, None

    def __call__(self, headway: Any) -> None:
        self._found = headway.found or self._found
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + EVERY
            told: dict[str, Any] = {"headway": str(headway)}
            if self._found is not None:
                rows = [asdict(row) for row in self._found]
                told |= {"found": answering.plain_number(rows), "asked": self._asked}
            print(json.dumps(told), flush=True)


def _read(asked: queue.SimpleQueue[str]) -> None:
    """Hand on questions; when their source is gone, end whatever is being computed."""
    with contextlib.suppress(OSError, ValueError):
        for line in sys.stdin:
            asked.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
