"""Files that requests may name: inside one folder, or uploaded. Never anywhere else.

A path is resolved first, symbolic links and all, and must then lie inside the resolved folder.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from pathlib import Path, PureWindowsPath
from typing import BinaryIO

from privatest import errors

__all__ = ["KINDS", "Folder", "Uploads"]

MOST_LISTED = 500
MOST_UPLOADS = 8
KINDS = (".csv", ".tsv", ".txt", ".parquet", ".feather", ".arrow")


class Folder:
    """The folder given at start, or none."""

    def __init__(self, where: str | os.PathLike[str] | None) -> None:
        self._root: Path | None = None
        if where is not None:
            root = Path(where).expanduser()
            if not root.is_dir():
                raise errors.InvalidInput(
                    f"folder={str(where)!r} is no folder. Name one that is there, or leave it out."
                )
            self._root = root.resolve()

    @property
    def root(self) -> str | None:
        """The folder, resolved; None: no path can be named."""
        return None if self._root is None else str(self._root)

    def find(self, name: str) -> Path:
        """The file of that name inside the folder; anything else is refused, without saying what is there."""
        if self._root is None:
            raise errors.InvalidInput(
                "No folder was given at start. Upload the file, or start the studio with a folder."
            )
        plain = not ("\0" in name or "\\" in name or Path(name).is_absolute() or PureWindowsPath(name).drive)
        found = self._inside(self._root / name) if plain else None
        if found is None:
            raise errors.InvalidInput("path must name a file inside the studio's folder, relative to it.")
        return found

    def _inside(self, path: Path) -> Path | None:
        """The file that a path leads to, links followed; None if that lies outside or is no file."""
        assert self._root is not None
        try:
            found = path.resolve(strict=True)
            return found if found.is_relative_to(self._root) and found.is_file() else None
        except (OSError, ValueError, RuntimeError):  # no such file, no such name, links in a circle
            return None

    def listed(self) -> list[str]:
        """Data files in the folder and below, at most 500, hidden ones and links out of it left aside."""
        if self._root is None:
            return []
        names: list[str] = []
        for base, folders, files in os.walk(self._root):
            folders[:] = sorted(each for each in folders if not each.startswith("."))
            for each in sorted(files):
                path = Path(base, each)
                name = path.relative_to(self._root).as_posix()
                if (
                    not each.startswith(".")
                    and path.suffix.lower() in KINDS
                    and self._inside(path)
                    and name.isprintable()
                ):
                    names.append(name)
                if len(names) >= MOST_LISTED:
                    return names
        return names


class Uploads:
    """Uploaded files, the last eight, in a private folder that goes when the studio ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._kept: OrderedDict[str, Path] = OrderedDict()
        self._count = 0

    def new(self, name: str) -> tuple[str, BinaryIO]:
        """A file to write an upload to, and the word it will be known by. Only the ending of ``name`` is used."""
        kind = Path(name).suffix.lower() if "\0" not in name else ""
        if kind not in KINDS:
            raise errors.InvalidInput(f"name must end in one of {', '.join(KINDS)}: it says how the file is read.")
        with self._lock:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="privatest-studio-"))
                weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
            self._count += 1
            word = f"upload-{self._count}"
            return word, open(self._folder / (word + kind), "xb")  # closed by whoever writes

    def keep(self, word: str, path: str) -> None:
        """The upload is complete; the oldest goes if there are too many."""
        with self._lock:
            self._kept[word] = Path(path)
            while len(self._kept) > MOST_UPLOADS:
                self._kept.popitem(last=False)[1].unlink(missing_ok=True)

    def find(self, word: str) -> Path:
        """The file of a complete upload."""
        with self._lock:
            found = self._kept.get(word)
        if found is None:
            raise errors.InvalidInput("upload must be what an upload returned, one of the last eight. Upload it again.")
        return found

    def close(self) -> None:
        """Remove everything."""
        with self._lock:
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
            self._kept.clear()
