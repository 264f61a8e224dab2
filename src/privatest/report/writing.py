"""Putting a report on disk: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privatest.errors import InvalidInput
from privatest.report.page import render

__all__ = ["write"]


def write(
    path: str | os.PathLike[str],
    *,
    question: Mapping[str, Any],
    design: Any = None,
    result: Any = None,
    kind: str = "plan",
) -> None:
    """Render a report and put it at ``path``, replacing what is there in one step.

    Arguments are those of :func:`render`. Whoever reads the file meanwhile sees the old or the new one, never a part.
    """
    target = Path(path)
    if target.is_dir():
        raise InvalidInput(f"path={os.fspath(path)!r} is a folder. Name a file in it, such as report.html.")
    if target.exists() and not target.is_file():
        raise InvalidInput(
            f"path={os.fspath(path)!r} is a pipe or a device, which a report must not replace. Name a file."
        )
    if not target.parent.is_dir():
        raise InvalidInput(f"path={os.fspath(path)!r}: there is no folder {os.fspath(target.parent)!r}. Make it first.")
    page = render(question=question, design=design, result=result, kind=kind).encode("utf-8")
    beside = target.with_name(f".{target.name[:100]}.{os.getpid()}.{time.monotonic_ns()}.part")
    try:
        with beside.open("xb") as file:
            file.write(page)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidInput(f"path={os.fspath(path)!r} cannot be written: {reason}. Choose another place.") from None
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()
