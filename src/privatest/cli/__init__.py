"""The command line: ``privatest`` and ``python -m privatest``. Thin: parse, call the package, print what it returns.

Nothing heavy is imported until a command needs it, so that ``privatest --help`` is quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; see :mod:`privatest.cli.commands`."""
    if "numpy" not in sys.modules:
        # Threads of BLAS take longer to start than any product of ours takes; whoever wants them says so.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from privatest.cli.commands import run  # start-up: after the variable above is set

        return run(arguments)
    except KeyboardInterrupt:
        return 130
