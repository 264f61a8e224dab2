"""A process that computes for the studio: one JSON line in, one JSON line out, until its input ends.

Started as ``python -m privatest.studio.worker NICE``. In a process of its own a computation can be stopped, shares no
interpreter lock with the page, and a limit on memory holds.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from typing import Any

from privatest import errors
from privatest.studio.answers import JOBS, plain_number

__all__ = ["answer", "main"]

MOST_MEMORY = 6 * 2**30


def answer(line: str) -> dict[str, Any]:
    """The answer to one line: {"ok": result}, or {"error": sentence, "kind": name}."""
    try:
        asked = json.loads(line)
        return {"ok": plain_number(JOBS[asked["job"]](**asked["arguments"]))}
    except errors.PrivatestError as error:
        return {"error": str(error), "kind": type(error).__name__}
    except Exception as error:  # whatever it is, it says that these settings are beyond us
        return {
            "error": f"These settings are beyond what can be computed ({type(error).__name__}).",
            "kind": "Infeasible",
        }


def main() -> None:
    """Answer until the input ends."""
    warnings.simplefilter("ignore")
    with contextlib.suppress(ImportError, ValueError, OSError, AttributeError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    with contextlib.suppress(OSError, AttributeError):
        os.nice(int(sys.argv[1]))
    for line in sys.stdin:
        print(json.dumps(answer(line), allow_nan=False), flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
