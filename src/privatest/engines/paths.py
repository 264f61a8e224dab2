"""Which files a path, a glob or a folder means."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from privatest._validate import suggestion
from privatest.errors import InvalidData

__all__ = ["FORMATS", "as_paths", "files_of", "format_of"]

# By how the name ends; what else a name may end with is compression, of text files only.
FORMATS = {
    "Parquet": (".parquet", ".pq", ".parq"),
    "CSV": (".csv", ".tsv"),
    "Feather": (".feather", ".arrow", ".ipc", ".arrows"),
}
PACKED = (".gz", ".bz2", ".zst", ".lz4")
ENDINGS = ", ".join(ending for endings in FORMATS.values() for ending in endings)


def as_paths(source: Any) -> list[str] | None:
    """The paths a source stands for, or None if it is not about files. Texts in a list are labels, not paths."""
    if isinstance(source, os.PathLike):
        named = os.fspath(source)
        return [os.fsdecode(named)]
    if isinstance(source, (list, tuple)) and source and all(issubclass(type(one), os.PathLike) for one in source):
        return [os.fsdecode(os.fspath(one)) for one in source]
    if not isinstance(source, str):
        return None
    looks_like_one = format_of(source) is not None or source.endswith("/") or ("/" in source and glob.has_magic(source))
    try:
        return [source] if looks_like_one or os.path.exists(source) else None
    except ValueError:  # a null character: no path
        return None


def format_of(path: str) -> str | None:
    """The format that a file's name stands for."""
    name = path.lower()
    for ending in PACKED:
        if name.endswith(ending):
            name = name.removesuffix(ending)
            return "CSV" if name.endswith(FORMATS["CSV"]) else None
    return next((form for form, endings in FORMATS.items() if name.endswith(endings)), None)


def _format_by_content(path: str) -> str | None:
    """The format that a file's first bytes give away, for names that end with nothing known."""
    try:
        with open(path, "rb") as file:
            start = file.read(6)
    except OSError:
        return None
    return "Parquet" if start[:4] == b"PAR1" else "Feather" if start == b"ARROW1" else None


def files_of(paths: Sequence[str]) -> tuple[str, list[str]]:
    """The format of the files that the paths, globs and folders name, and all of them, each in order of name."""
    found: list[str] = []
    for path in paths:
        found += _files_of_one(path)
    forms = {path: format_of(path) or _format_by_content(path) for path in found}
    for path, form in forms.items():
        if form is None:
            raise InvalidData(f"The file {path!r} is of no known format. Names may end with: {ENDINGS}.")
    kinds = sorted({str(form) for form in forms.values()})
    if len(kinds) > 1:
        raise InvalidData(f"The files are of different formats: {' and '.join(kinds)}. Name files of one: '*.parquet'.")
    return kinds[0], found


def _files_of_one(path: str) -> list[str]:
    path = os.path.expanduser(path)
    if os.path.isdir(path):
        inside = sorted(_walk(path))
        found = [name for name in inside if format_of(name) is not None]
        if not found:
            raise InvalidData(f"The folder {path!r} holds no data files. Their names may end with: {ENDINGS}.")
        return found
    if os.path.exists(path):
        if not os.path.isfile(path):
            raise InvalidData(
                f"{path!r} is a pipe or a device, and data are read more than once. Save them to a file first, or pass "
                "one record a line as standard input."
            )
        return [path]
    if glob.has_magic(path):
        found = sorted(name for name in glob.glob(path, recursive=True) if os.path.isfile(name))
        if not found:
            raise InvalidData(f"No file matches {path!r}. Check the folder and the pattern.")
        return found
    folder, name = os.path.split(path)
    try:
        near = os.listdir(folder or ".")
    except OSError:
        raise InvalidData(f"No file {path!r}: there is no folder {folder!r}.") from None
    raise InvalidData(f"No file {path!r}.{suggestion(name, near)}")


def _walk(folder: str) -> list[str]:
    """All files below a folder; hidden ones and those that writers leave beside the data are not data."""
    found = []
    for path in Path(folder).rglob("*"):
        names = path.relative_to(folder).parts
        if not any(name.startswith((".", "_")) for name in names) and path.is_file():
            found.append(str(path))
    return found
