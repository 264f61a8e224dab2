"""A power failure at any instant: the stream goes on from what is left on disk, and what was shown stands there.

A disk that keeps as little as it may: of a file what it held when it was last flushed, of a folder the names that it
had when it was last flushed, and of those that came, went or moved since then none, any one, or all. At each flush, and
when a call returns, the folder is written anew as such a disk would have it, and the stream is loaded from there: it
must know all that was shown, and whose rows have counted. Disks that forget what was flushed are shown to fail.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import privatest as pt

PAIR = ("bernoulli(0.2)", "bernoulli(0.8)")
RECORDS = [0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0] * 3
BEGUN: dict[str, Callable[..., Any]] = {
    "monitor": lambda **w: pt.Monitor(*PAIR, epsilon=1, mean_time_between_false_alarms=1e6, **w),
    "sequential": lambda **w: pt.Sequential(*PAIR, epsilon=1, alpha=1e-7, beta=1e-7, schedule=(6, 6), **w),
}


class Disk:
    """What of a folder survives a power failure; told by the flushes, of files or folders that are not forgotten."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, *, forgets: str = "") -> None:
        self.folder, self._forgets = folder, forgets
        self.names: dict[str, int] = {}
        self.contents: dict[int, bytes] = {}
        self.flushes = 0
        self.look: Callable[[], None] = lambda: None
        self._kept: list[int] = []  # so that no number of a file is given to another one
        flush = os.fsync

        def flushing(descriptor: int) -> None:
            flush(descriptor)
            self._flushed(os.fstat(descriptor), descriptor)

        patch.setattr(os, "fsync", flushing)

    def _flushed(self, found: os.stat_result, descriptor: int) -> None:
        is_folder = stat.S_ISDIR(found.st_mode)
        if is_folder and not os.path.samestat(found, self.folder.stat()):
            return
        paths = [self.folder / name for name, inode in self.present().items() if inode == found.st_ino]
        if not is_folder and not paths:
            return
        self.flushes += 1
        if self._forgets != ("folders" if is_folder else "files"):
            if is_folder:
                self.names = self.present()
            else:
                self._kept.append(os.dup(descriptor))
                self.contents[found.st_ino] = paths[0].read_bytes()
        self.look()

    def present(self) -> dict[str, int]:
        """The names that the folder has now."""
        return {entry.name: entry.inode() for entry in os.scandir(self.folder) if not entry.name.endswith(".lock")}

    def left(self, place: Path) -> Iterator[Path]:
        """Folders as a power failure may leave this one: names as they were flushed, and none, one or all others."""
        present = self.present()
        moved = [name for name in {**self.names, **present} if self.names.get(name) != present.get(name)]
        for some in dict.fromkeys([(), *((name,) for name in moved), tuple(moved)]):
            names = {**self.names, **{name: present.get(name, 0) for name in some}}
            folder = place / str(len(os.listdir(place)))
            folder.mkdir()
            for name, inode in names.items():
                if not inode:  # it was removed, or has another name
                    continue
                (folder / name).write_bytes(self.contents.get(inode, b""))
            yield folder

    def close(self) -> None:
        for descriptor in self._kept:
            os.close(descriptor)


def shown(made: Any) -> tuple[list[int], Counter[Any]]:
    """All that was released, and how many rows of each person counted for it."""
    turns = made._turns
    return list(made._released), Counter() if turns is None else turns.taken()


def loaded(folder: Path, kind: type[Any]) -> Any:
    """The stream of the newest state that is left; one that was saved to another file is found there."""
    for name in ("elsewhere", "state"):
        try:
            return kind.load(folder / name)
        except pt.errors.InvalidInput as error:
            if "There is no state" not in str(error):
                raise
    return None


def tried(name: str, batch: int, folder: Path, disk: Disk, *, unit: bool) -> None:
    """Begin, feed, save elsewhere and go on there; at each instant the power may fail."""
    made = BEGUN[name](**({"max_rows_per_unit": 2} if unit else {}))
    block = made.block if name == "monitor" else made.schedule[0]
    released: list[int] = []
    taken: Counter[Any] = Counter()

    def failed() -> None:
        for left in disk.left(folder):
            again = loaded(left, type(made))
            if again is None:
                assert not released, "what was shown is gone"
                continue
            there, turns = shown(again)
            assert there[: len(released)] == released, "what was shown is drawn again"
            assert not taken - turns, "turns that were taken are given again"

    def returned() -> None:
        nonlocal released, taken
        found, turns = shown(made)
        if (found, turns) != (released, taken):
            released, taken = found, turns if made.seen % block == 0 else taken  # an unfinished block comes again
            failed()

    made.save(disk.folder / "state")
    disk.look = failed
    for start in range(0, len(RECORDS), batch):
        part = RECORDS[start : start + batch]
        made.update(part, **({"unit": [(start + place) // 2 for place in range(len(part))]} if unit else {}))
        returned()
        if start == batch * (len(RECORDS) // batch // 2):
            made.save(disk.folder / "elsewhere")
            returned()
    assert len(released) >= 3
    assert disk.flushes > 10


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """The one that is looked at, and where it is written anew."""
    for name in ("disk", "left"):
        (tmp_path / name).mkdir()
    return tmp_path / "disk", tmp_path / "left"


@pytest.mark.parametrize("unit", [False, True], ids=["records", "persons"])
@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("name", BEGUN)
def test_what_was_shown_survives_a_power_failure(
    name: str, batch: int, unit: bool, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(folders[0], monkeypatch)
    tried(name, batch, folders[1], disk, unit=unit)
    disk.close()


@pytest.mark.parametrize("forgets", ["files", "folders"])
@pytest.mark.parametrize("name", BEGUN)
def test_a_disk_that_was_not_flushed_is_found(
    name: str, forgets: str, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(folders[0], monkeypatch, forgets=forgets)
    with pytest.raises(
        (AssertionError, pt.errors.InvalidDocument), match=r"what was shown|missing, cut|complete, unedited"
    ):
        tried(name, 7, folders[1], disk, unit=True)
    disk.close()
