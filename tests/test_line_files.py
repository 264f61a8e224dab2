"""Which lines come next of a file that grows, is replaced or cut short; both sides of each edge."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from privatest.errors import InvalidInput
from privatest.followed_file import AT_ONCE, LineFile


def text(*numbers: int) -> bytes:
    return b"".join(b"%d\n" % number for number in numbers)


class Watched:
    """Follows a file; what happens to it between two looks is a list of actions, one for each look."""

    def __init__(self, path: Path, *actions: Callable[[], object], **words: Any) -> None:
        self._left: Iterator[Callable[[], object]] = iter(actions)
        self.lines: list[int] = []
        self.places: list[Any] = []
        self._batches = LineFile(path).batches(follow=True, wait=self._wait, **words)

    def _wait(self, _seconds: float) -> bool:
        action = next(self._left, None)
        if action is not None:
            action()
        return action is None

    def run(self) -> list[int]:
        for lines, place in self._batches:
            self.lines += [int(line) for line in lines]
            self.places.append(place)
        return self.lines


def nothing() -> None:
    pass


def appending(path: Path, content: bytes) -> Callable[[], object]:
    def append() -> None:
        with path.open("ab") as file:
            file.write(content)

    return append


def replacing(path: Path, content: bytes, keep: bool = False) -> Callable[[], object]:
    def replace() -> None:
        if keep:
            path.rename(f"{path}.1")
        newer = path.with_name("newer")
        newer.write_bytes(content)
        os.replace(newer, path)

    return replace


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "values.txt"


def read(path: Path, *words: Any, **more: Any) -> list[int]:
    return [int(line) for lines, _ in LineFile(path).batches(*words, **more) for line in lines]


def place_of(path: Path, first: int = 0) -> dict[str, Any]:
    *_, (_, place) = LineFile(path).batches()
    assert place is not None
    return {**place, "first": first}


def test_a_file_is_read_to_its_end_and_a_last_line_may_lack_its_own(path: Path) -> None:
    path.write_bytes(text(1, 2) + b"3")
    assert read(path) == [1, 2, 3]
    assert Watched(path, nothing).run() == [1, 2], "its end may still come"
    assert Watched(path, appending(path, b"4\n5\n"), nothing).run() == [1, 2, 34, 5]


def test_lines_do_not_depend_on_how_they_arrive(path: Path) -> None:
    whole = text(*range(40_000))
    assert len(whole) > 3 * AT_ONCE
    path.write_bytes(whole)
    assert read(path) == list(range(40_000))
    assert read(path, 12_345, place_of(path)) == list(range(12_345, 40_000))


def test_a_mark_of_the_encoding_is_no_part_of_the_first_line_of_any_file(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + text(1, 2))
    known = place_of(path)
    assert read(path) == [1, 2]
    path.write_bytes(b"\xef\xbb\xbf" + text(3))
    assert read(path, 2, known, new_file=True) == [3]


@pytest.mark.parametrize("seen", [0, 1, 2, 3])
def test_a_restart_goes_on_behind_what_was_seen(path: Path, seen: int) -> None:
    path.write_bytes(text(1, 2, 3))
    assert read(path, seen, place_of(path)) == [1, 2, 3][seen:]
    assert read(path, 10 + seen, place_of(path, 10)) == [1, 2, 3][seen:]


@pytest.mark.parametrize("follow", [False, True])
def test_a_file_that_lacks_a_line_that_was_seen_was_cut_short(path: Path, follow: bool) -> None:
    path.write_bytes(text(1, 2, 3))
    known = place_of(path)
    path.write_bytes(text(1, 2))
    with pytest.raises(InvalidInput, match=r"was cut short, after 3 records.*Do this"):
        list(LineFile(path).batches(3, known, follow=follow, remedy="Do this."))
    assert read(path, 3, known, new_file=True) == [1, 2]
    path.write_bytes(text(1, 2) + b"3")  # a line that counted, whose end comes later
    known = place_of(path)
    assert read(path, 3, known, follow=follow, wait=lambda _: True) == []
    assert Watched(path, appending(path, b"\n4\n"), nothing, seen=3, place=known).run() == [4]


def test_another_file_of_the_same_name_is_refused(path: Path) -> None:
    path.write_bytes(text(1, 2, 3))
    known = place_of(path)
    replacing(path, text(1, 2, 3, 4))()
    with pytest.raises(InvalidInput, match=r"may be another file than the one that was read before.*, after 3 records"):
        read(path, 3, known)
    assert read(path, 3, known, new_file=True) == [1, 2, 3, 4]
    again = place_of(path, 3)
    assert read(path, 5, again, new_file=True) == [3, 4], "said again of the same file, no line is read twice"


@pytest.mark.parametrize(
    "place", [None, {}, {"file": 3}, {"file": [1, 2]}, {"first": 3}, "x", {"file": "a", "first": 0}]
)
def test_a_place_that_names_no_file_is_no_place(path: Path, place: Any) -> None:
    path.write_bytes(text(1, 2, 3, 4))
    with pytest.raises(InvalidInput, match="may be another file than the one that was read before"):
        read(path, 3, place)
    assert read(path, 3, place, new_file=True) == [1, 2, 3, 4]
    assert read(path, 0, None) == [1, 2, 3, 4]


@pytest.mark.parametrize("seen", [0, 2, 3])
def test_what_is_left_of_a_rotated_file_is_read_by_its_new_name(path: Path, seen: int) -> None:
    path.write_bytes(text(1, 2) + b"3")
    known = place_of(path)
    replacing(path, text(4, 5), keep=True)()
    assert read(Path(f"{path}.1"), seen, known) == [1, 2, 3][seen:]
    assert read(path, 3, known, new_file=True) == [4, 5]
    watched = Watched(path, nothing, seen=3, place=known, new_file=True)
    assert watched.run() == [4, 5]
    assert watched.places == [place_of(path, 3)]


def test_a_new_file_ends_the_following(path: Path) -> None:
    path.write_bytes(text(1, 2))
    watched = Watched(path, replacing(path, text(1, 2, 3), keep=True), nothing)
    with pytest.raises(InvalidInput, match="was replaced or cut short, after 2 records"):
        watched.run()
    assert watched.lines == [1, 2]


def test_a_file_that_is_gone_for_a_while_is_waited_for(path: Path) -> None:
    path.write_bytes(text(1))
    away = Path(f"{path}.1")
    steps = [lambda: path.rename(away), nothing, lambda: away.rename(path), appending(path, text(2)), nothing]
    assert Watched(path, *steps).run() == [1, 2]


def test_what_is_no_file_is_refused_or_has_no_place(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is a folder"):
        LineFile(tmp_path)
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        LineFile(tmp_path / "nothing")
    pipe, writer = os.pipe()
    os.write(writer, text(1, 2))
    os.close(writer)
    watched = Watched(Path(f"/dev/fd/{pipe}"), nothing, nothing)
    assert watched.run() == [1, 2]
    assert watched.places == [None]
    os.close(pipe)
