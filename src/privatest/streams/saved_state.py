"""The state file of a monitor or a sequential test, in which it is saved and from which it is restored.

The text is one line of JSON, ``{"format": ..., "checksum": ..., "content": {...}}``; the checksum is the SHA-256 of the
content's bytes. A new state is written beside the old one, flushed to the disk, and renamed over it. A process that is
killed in between leaves a complete state and, beside it, an incomplete file or a complete successor. A reader takes a
complete successor for the state, so that noise that was written once is never drawn again. The lock file beside the
state has the number of the newest state, so that an older copy in its place is refused. A ledger also detects copies in
other places. One process at a time can hold a state.

The checksum detects accidents and careless edits. Whoever can forge it can also read the data.

A stream of persons must know whose rows have counted. They are listed in a file beside the state, as digests with a
secret of the state. That file is raw like the data, and never released. It is only appended to, before the state that
counts the new part is written, and each state has the valid size.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from privatest.errors import InvalidDocument, InvalidInput, shown

try:
    import fcntl
except ImportError:  # pragma: no cover - without POSIX the user must see to it that one process holds a state
    fcntl = None  # type: ignore[assignment]


class StateKind(NamedTuple):
    """A kind of stream: its noun in messages, the name of its class, and the format of its state files."""

    noun: str
    name: str
    format: str

    @property
    def opening(self) -> str:
        """The first characters of a state file."""
        return f'{{"format":"{self.format}","checksum":"'


MONITOR = StateKind("monitor", "Monitor", "privatest/monitor/3")
SEQUENTIAL = StateKind("sequential test", "Sequential", "privatest/sequential/2")
_MIDDLE, _CLOSING = '","content":', "}\n"
_DIGEST = 64
_COST = (
    "To continue from an older state would release later blocks a second time, with other noise: each of their records "
    "then costs epsilon twice."
)
_ADVICE = "Begin a new one with another file and a budget of its own."

_held: dict[str, weakref.ref[StateFile]] = {}


def state_text(content: str, kind: StateKind = MONITOR) -> str:
    """Return the text of a file whose content is this JSON text."""
    return state_bytes(content.encode(), kind).decode()


def read_text(raw: bytes, name: str, kind: StateKind = MONITOR) -> dict[str, Any]:
    """Return the content of a state file. Raises InvalidDocument if it is cut short, edited or of another version."""
    start = len(kind.opening) + _DIGEST + len(_MIDDLE)
    content = raw[start : -len(_CLOSING)]
    if len(raw) > start + len(_CLOSING) and raw == state_bytes(content, kind):
        document = json.loads(content)
        if isinstance(document, dict):
            return document
    version = _version(raw)
    if version is not None and version != kind.format:
        another = version.rpartition("/")[0] != kind.format.rpartition("/")[0]
        remedy = f"It is no {kind.noun}'s: load it with what wrote it" if another else "Use the version that wrote it"
        raise InvalidDocument(f"{name} is of the format {version!r}, this version reads {kind.format!r}. {remedy}.")
    raise InvalidDocument(
        f"{name} is not a complete, unedited state of a {kind.noun}: its checksum is wrong. A {kind.noun} must not "
        "start again on records that it has seen, because that would spend their budget twice. Replace the file by a "
        f"copy only if nothing was released since the copy was made. {_COST} {_ADVICE}"
    )


def state_bytes(content: bytes, kind: StateKind = MONITOR) -> bytes:
    """Return the bytes of a file whose content is this JSON text."""
    return b"".join(
        [
            kind.opening.encode(),
            hashlib.sha256(content).hexdigest().encode(),
            _MIDDLE.encode(),
            content,
            _CLOSING.encode(),
        ]
    )


def _version(raw: bytes) -> str | None:
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    version = document.get("format") if isinstance(document, dict) else None
    return version if isinstance(version, str) else None


def _real_path(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, (str, os.PathLike)) or {"\n", "\0"} & set(os.fsdecode(path)):
        raise InvalidInput(f"path={shown(path)} must be the path of a file.")
    return Path(os.path.realpath(os.fspath(path)))


@dataclass(frozen=True)
class UnitRoll:
    """The first ``size`` bytes of the file beside a state that lists the persons whose rows have counted.

    Invariant: bytes after these belong to a block that was never shown, and are overwritten by the next one. A process
    that is killed at any instant leaves the bytes of its newest state.
    """

    path: Path
    size: int = 0
    digest: Any = field(default_factory=hashlib.sha256)  # of these bytes; never updated in place

    @property
    def checksum(self) -> str:
        """SHA-256 of these bytes."""
        digest: str = self.digest.hexdigest()
        return digest

    @classmethod
    def beside(cls, state: Path) -> UnitRoll:
        """Return an empty roll beside a state."""
        return cls(state.with_name(state.name + ".units"))

    def extended(self, more: bytes) -> UnitRoll:
        """Append bytes, and return the longer roll when they survive a power failure."""
        if not more:
            return self
        try:
            with os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
                if file.seek(0, os.SEEK_END) < self.size:
                    raise _unlike(self.path)
                file.seek(self.size)
                file.write(more)
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
            if not self.size:
                _flush(self.path.parent)
        except OSError as error:
            raise NotWritten(
                f"The file {self.path.name!r} beside the state cannot be written: {error.strerror}. Nothing more was "
                "released. Mend that, and feed the stream again from record number seen on."
            ) from None
        digest = self.digest.copy()
        digest.update(more)
        return UnitRoll(self.path, self.size + len(more), digest)

    def read(self, size: int, checksum: str) -> tuple[UnitRoll, bytes]:
        """Read the roll of this size and checksum, and its bytes. Raises InvalidDocument for any other file."""
        try:
            with open(self.path, "rb") if size else contextlib.nullcontext() as file:
                content = b"" if file is None else file.read(size)
        except OSError:
            raise _unlike(self.path) from None
        roll = UnitRoll(self.path, len(content), hashlib.sha256(content))
        if roll.size != size or roll.checksum != checksum:
            raise _unlike(self.path)
        return roll, content

    def remove(self) -> None:
        """Remove the file, if there is one."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def _unlike(path: Path) -> InvalidDocument:
    return InvalidDocument(
        f"The file {path.name!r} is missing, cut short or edited. It lists the persons whose rows have counted in the "
        "state beside it; without it a person could count more often than max_rows_per_unit. Put it back. "
        f"{_ADVICE}"
    )


class NotWritten(InvalidInput):
    """The error of a state that was certainly not written, so that its draw can be dropped."""


class StateFile:
    """The only writer of a state: one process at a time and, within a process, the newest object."""

    def __init__(self, path: str | os.PathLike[str], kind: StateKind = MONITOR) -> None:
        self.path, self.kind = _real_path(path), kind
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            raise InvalidInput(
                f"The state {self.path.name!r} must be a file, not a folder, a pipe or a device. Name another path."
            )
        self._next = self.path.with_name(self.path.name + ".next")
        self._key, self._process = str(self.path), os.getpid()
        before = _held.get(self._key)
        holder = before() if before is not None else None
        self._lock: int | None = None
        if holder is not None and holder._process == self._process and holder._lock is not None:
            self._lock, holder._lock = holder._lock, None
        else:
            self._lock = self._take()
        _held[self._key] = weakref.ref(self)

    def is_at(self, path: str | os.PathLike[str]) -> bool:
        """Return whether this is the file at a path."""
        return self.path == _real_path(path)

    def exists(self) -> bool:
        """Return whether there is a state to restore. A first state that was cut short does not count."""
        if self.path.exists():
            return True
        with contextlib.suppress(OSError, InvalidDocument):
            return bool(read_text(self._next.read_bytes(), "", self.kind))
        return False

    def read(self) -> dict[str, Any]:
        """Return the newest state, which may be the complete successor that a killed process left."""
        name = f"The state {self.path.name!r}"
        try:
            current = read_text(self.path.read_bytes(), name, self.kind) if self.path.exists() else None
        except OSError as error:
            raise InvalidDocument(f"{name} cannot be read: {error.strerror}.") from None
        with contextlib.suppress(OSError, InvalidDocument):
            following = read_text(self._next.read_bytes(), name, self.kind)
            if current is None or _follows(current, following):
                os.replace(self._next, self.path)
                self._flush_folder()
                current = following
        if current is None:
            raise InvalidDocument(
                f"There is no state of a {self.kind.noun} at {self.path.name!r}. Begin one with "
                f"{self.kind.name}(..., state=path)."
            )
        (last_id, newest), generation = self._remembered(), current.get("generation")
        if current.get("id") == last_id and isinstance(generation, int) and generation < newest:
            raise InvalidDocument(
                f"{name} is not the newest one: it is number {generation} of this {self.kind.noun}, and number "
                f"{newest} was kept here. {_COST} {_ADVICE} (If nothing was released since, or if that cost is paid, "
                f"remove {self.path.name + '.lock'!r}.)"
            )
        return current

    def write(self, name: str, generation: int, content: str) -> None:
        """Replace the state. When this returns, the new one survives a power failure.

        Args:
            name: the name of the stream.
            generation: the number of the state.
            content: the state as JSON text.
        """
        if self._lock is None or self._process != os.getpid():
            raise NotWritten(
                f"This {self.kind.noun} no longer holds its state {self.path.name!r}: it was loaded again, or this "
                f"process was forked from the one that holds it. Use the {self.kind.noun} that was loaded last."
            )
        replaced = False
        try:
            descriptor = os.open(self._next, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(state_bytes(content.encode(), self.kind))
                file.flush()
                os.fsync(file.fileno())
            replaced = True  # from now on the new state may be there
            os.replace(self._next, self.path)
            self._flush_folder()
            if self._lock >= 0:  # in one piece, after the state itself is safe
                os.pwrite(self._lock, f"{name} {generation:020d}\n".encode(), 0)
        except OSError as error:
            if replaced or not self._dropped():
                raise InvalidInput(
                    f"The state {self.path.name!r} may or may not have been written: {error.strerror}. Nothing of it "
                    f"was shown. Mend that, continue with {self.kind.name}.load(path), and feed the stream from record "
                    "number seen on."
                ) from None
            raise NotWritten(
                f"The state {self.path.name!r} cannot be written: {error.strerror}. Nothing more was released. "
                "Mend that, and feed the stream again from record number seen on."
            ) from None

    def _dropped(self) -> bool:
        """Remove a successor beside the state, which a reader would take for the state; return False if that failed."""
        try:
            self._next.unlink(missing_ok=True)
        except OSError:
            return False
        return True

    def check_free(self, name: str) -> None:
        """Raise InvalidInput if there is a file that is not an earlier state of the stream of this name."""
        if not self.exists():
            return
        try:
            identifier = self.read().get("id")
        except InvalidDocument:
            identifier = None
        if identifier != name:
            raise InvalidInput(
                f"The file {self.path.name!r} exists and is not a state of this {self.kind.noun}. To overwrite it "
                "would lose its releases. Save to another path, or remove the file first."
            )

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None and self._lock >= 0:
            os.close(self._lock)
        self._lock = None

    def __del__(self) -> None:
        if getattr(self, "_process", None) == os.getpid() and getattr(self, "_lock", None) is not None:
            self.close()

    def _take(self) -> int:
        """Return a descriptor that holds the lock; -1 if the system has no locks."""
        if fcntl is None:  # pragma: no cover
            return -1
        try:
            lock = os.open(str(self.path) + ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise InvalidInput(f"The state {self.path.name!r} cannot be kept there: {error.strerror}.") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise InvalidInput(
                f"The state {self.path.name!r} is in use by another process. Two {self.kind.noun}s that continue from "
                "one state would draw different noise for the same records."
            ) from None
        return lock

    def _remembered(self) -> tuple[str | None, int]:
        """Return the name and the number of the newest state that was written here."""
        if self._lock is None or self._lock < 0:
            return None, 0
        name, _, generation = os.pread(self._lock, 1000, 0).decode("ascii", "replace").partition(" ")
        return (name, int(generation)) if generation.strip().isdecimal() else (None, 0)

    def _flush_folder(self) -> None:
        _flush(self.path.parent)


def _flush(path: Path) -> None:
    if os.name != "posix":  # pragma: no cover - folders cannot be opened elsewhere
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _follows(current: dict[str, Any], other: dict[str, Any]) -> bool:
    try:
        return bool(other["id"] == current["id"] and other["generation"] == current["generation"] + 1)
    except (KeyError, TypeError):
        return False
