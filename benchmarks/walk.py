"""Which modules of the package a question walks through, and how deep its calls nest: also in other processes.

Standard library only: a fresh interpreter loads it before anything else (see `following`).
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["follow", "following", "walked"]

ROOT, NOTES = "PRIVATEST_WALK_ROOT", "PRIVATEST_WALK_NOTES"


class Walk:
    """Files under `root` whose functions were called since `start`, and the deepest nesting of their calls."""

    def __init__(self, root: str, note: Callable[[str, int], None] = lambda _file, _depth: None) -> None:
        self.root, self.files, self.deepest = root, set[str](), 0
        self._note, self._nesting = note, threading.local()

    def watch(self, frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event not in ("call", "return") or not name.startswith(self.root) or frame.f_code.co_name == "<module>":
            return
        self._nesting.depth = depth = getattr(self._nesting, "depth", 0) + (1 if event == "call" else -1)
        if event == "call" and (name not in self.files or depth > self.deepest):
            self.files.add(name)
            self.deepest = max(self.deepest, depth)
            self._note(name, depth)

    def start(self) -> None:
        threading.setprofile(self.watch)
        sys.setprofile(self.watch)


def walked(question: Callable[[], Any], root: Path, notes: Path | None = None) -> tuple[set[str], int]:
    """Files of the package whose functions the question calls, here and in processes that it asks, and the depth."""
    walk = Walk(str(root))
    if notes is not None:
        notes.write_text("", encoding="utf-8")  # what was walked before the question does not count
    walk.start()
    try:
        question()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    told = [line.rpartition(" ") for line in notes.read_text(encoding="utf-8").splitlines()] if notes else []
    return walk.files | {name for name, _, _ in told}, max([walk.deepest, *(int(depth) for _, _, depth in told)])


def following(folder: Path, root: Path) -> Path:
    """Make every Python process started from now on follow its own calls; the file in which they note them."""
    notes = folder / "notes.txt"
    notes.write_text("", encoding="utf-8")
    (folder / "sitecustomize.py").write_text(
        f"import sys\nsys.path.append({str(Path(__file__).parent)!r})\nimport walk\nwalk.follow()\n", encoding="utf-8"
    )
    sys.path.insert(0, str(folder))  # the studio hands its path on
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), str(root.parent), os.environ.get("PYTHONPATH", "")])
    os.environ[ROOT], os.environ[NOTES] = str(root), str(notes)
    return notes


def follow() -> None:
    """In a fresh process: note every new file and every new depth at once, for the process may be killed."""
    notes = open(os.environ[NOTES], "a", encoding="utf-8", buffering=1)  # noqa: SIM115 - until the process ends
    Walk(os.environ[ROOT], lambda name, depth: print(name, depth, file=notes)).start()
