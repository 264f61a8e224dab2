"""Which lines come next of a file that grows, is rotated, replaced, cut short or rewritten; both sides of each edge."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from privatest.errors import InvalidInput
from privatest.followed import AT_ONCE, LONGEST_LINE, NO_TEXT, LineFile, ReadLines, _born


def text(*numbers: int) -> bytes:
    return b"".join(b"%d\n" % number for number in numbers)


class Watched:
    """Follows a file; what happens to it between two looks is a list of actions, one for each look."""

    def __init__(self, path: Path, *actions: Callable[[], object], **words: Any) -> None:
        self._left: Iterator[Callable[[], object]] = iter(actions)
        self.said: list[str] = []
        self.lines: list[int] = []
        self.places: list[Any] = []
        self._batches = LineFile(path).batches(follow=True, wait=self._wait, say=self.said.append, **words)

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
    ((_, place), *_) = LineFile(path).batches()
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


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_line_has_its_greatest_length(path: Path, more: int) -> None:
    path.write_bytes(b"x" * (LONGEST_LINE + more))
    ((line,),) = [lines for lines, _ in LineFile(path).batches()]
    assert (line == NO_TEXT) == (more > 0)


def test_a_mark_of_the_encoding_is_no_part_of_the_first_line_of_any_file(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + text(1, 2))
    newer = b"\xef\xbb\xbf" + text(3)
    assert Watched(path, replacing(path, newer), nothing, nothing, replaced="new").run() == [1, 2, 3]


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
    for replaced in (None, "same"):
        with pytest.raises(InvalidInput, match=r"was cut short: 1 lines of it are gone, after 3 records.*Do this"):
            list(LineFile(path).batches(3, known, follow=follow, replaced=replaced, remedy="Do this."))
    assert read(path, 3, known, replaced="new") == [1, 2]
    path.write_bytes(text(1, 2) + b"3")  # its end is not there, the line is
    assert read(path, 3, known, follow=follow, wait=lambda _: True) == []
    assert Watched(path, appending(path, b"\n4\n"), nothing, seen=3, place=known).run() == [4]


def test_another_file_of_the_same_name_is_refused_whatever_its_number(path: Path) -> None:
    path.write_bytes(text(1, 2, 3))
    known = place_of(path)
    for _ in range(20):  # the system gives the number of a file that is gone to the next one
        path.unlink()
        path.write_bytes(text(1, 2, 3, 4))
        with pytest.raises(InvalidInput, match="is another file than the one that was read before, after 3 records"):
            read(path, 3, known)
    assert read(path, 3, known, replaced="same") == [4]
    assert read(path, 13, {**known, "first": 10}, replaced="same") == [4]
    said: list[str] = []
    assert read(path, 3, known, replaced="new", say=said.append) == [1, 2, 3, 4]
    assert said == ["The file that was read before is gone: lines it had after record 3 were not seen."]


@pytest.mark.parametrize(
    "place", [None, {}, {"file": 3}, {"file": [1, 2]}, {"first": 3}, "x", {"file": "a", "first": 0}]
)
def test_a_place_that_names_no_file_is_no_place(path: Path, place: Any) -> None:
    path.write_bytes(text(1, 2, 3, 4))
    with pytest.raises(InvalidInput, match="may be another file than was read"):
        read(path, 3, place)
    assert read(path, 3, place, replaced="same") == [4]
    assert read(path, 3, place, replaced="new") == [1, 2, 3, 4]
    assert read(path, 0, None) == [1, 2, 3, 4]


@pytest.mark.parametrize("seen", [0, 2, 3])
def test_what_is_left_of_a_rotated_file_comes_first(path: Path, seen: int) -> None:
    path.write_bytes(text(1, 2) + b"3")
    known = place_of(path)
    replacing(path, text(4, 5), keep=True)()
    found = list(LineFile(path).batches(seen, known, replaced="new"))
    assert [int(line) for lines, _ in found for line in lines] == [*[1, 2, 3][seen:], 4, 5]
    assert found[-1] == ReadLines([b"4", b"5"], place_of(path, 3))
    if seen < 3:
        assert found[0].place == known


def test_following_through_a_rotation(path: Path) -> None:
    path.write_bytes(text(1, 2))
    old = place_of(path)
    steps = [appending(path, b"3\n4"), replacing(path, text(5), keep=True), appending(Path(f"{path}.1"), b"4\n6")]
    watched = Watched(path, *steps, appending(path, text(7)), nothing, replaced="new")
    assert watched.run() == [1, 2, 3, 44, 6, 5, 7], "the old one to its end, then the new one from its start"
    assert watched.places == [old, old, old, old, place_of(path, 5), place_of(path, 5)]


def test_followed_without_a_word_a_new_file_is_refused_after_the_old_ones_end(path: Path) -> None:
    path.write_bytes(text(1, 2))
    steps = [replacing(path, text(1, 2, 3), keep=True), appending(Path(f"{path}.1"), text(4)), nothing, nothing]
    watched = Watched(path, *steps)
    with pytest.raises(InvalidInput, match="was replaced, after 3 records"):
        watched.run()
    assert watched.lines == [1, 2, 4]


@pytest.mark.parametrize(("replaced", "expected"), [("new", [1, 2, 1, 2, 3]), ("same", [1, 2, 3])])
def test_an_atomic_rewrite_is_what_the_user_says(path: Path, replaced: str, expected: list[int]) -> None:
    path.write_bytes(text(1, 2))
    steps = [replacing(path, text(1, 2, 3)), nothing, nothing]
    assert Watched(path, *steps, replaced=replaced).run() == expected


def test_a_rewrite_of_the_same_lines_may_take_a_while(path: Path) -> None:
    path.write_bytes(text(1, 2, 3))
    steps = [lambda: path.write_bytes(b""), lambda: path.write_bytes(text(1)), nothing]
    more = [lambda: path.write_bytes(text(1, 2, 3, 4)), nothing]
    assert Watched(path, *steps, *more, replaced="same").run() == [1, 2, 3, 4]


@pytest.mark.parametrize("size", [-1, 0])
@pytest.mark.parametrize("replaced", [None, "new"])
def test_a_file_is_cut_short_when_it_is_one_byte_shorter(path: Path, size: int, replaced: str | None) -> None:
    path.write_bytes(text(1, 2, 3))
    shorter = text(7, 8, 9)[: 6 + size]
    watched = Watched(path, lambda: path.write_bytes(shorter), nothing, replaced=replaced)
    if size == 0:
        assert watched.run() == [1, 2, 3], "of the same length: not to be seen"
    elif replaced is None:
        with pytest.raises(InvalidInput, match="was cut short, after 3 records"):
            watched.run()
    else:
        assert watched.run() == [1, 2, 3, 7, 8]


def test_a_file_that_is_gone_for_a_while_is_waited_for(path: Path) -> None:
    path.write_bytes(text(1))
    steps = [lambda: path.rename(f"{path}.1"), nothing, lambda: path.write_bytes(text(2)), nothing, nothing]
    assert Watched(path, *steps, replaced="new").run() == [1, 2]


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


def test_a_file_with_the_number_of_the_old_one_and_another_birth_is_another_file(path: Path) -> None:
    """Whether or not this file system gives a number away again at once."""
    path.write_bytes(text(1, 2, 3, 4))
    known = place_of(path)
    number, born = known["file"]
    for other in ([number, born - 1], [number, born + 1], [number + 1, born]):
        with pytest.raises(InvalidInput, match="is another file than the one that was read before, after 3 records"):
            read(path, 3, {**known, "file": other})
    assert read(path, 3, known) == [4]


def test_two_files_of_one_number_are_told_apart_by_their_birth(path: Path) -> None:
    path.write_bytes(text(1))
    with path.open("rb") as file:
        born = _born(file.fileno())
    if born is None:
        pytest.skip("this system does not say when a file was made")
    assert place_of(path)["file"] == [path.stat().st_ino, born]
    os.replace(path, path.with_name("older"))
    time.sleep(0.02)  # longer than the clock of a file system stands still
    path.write_bytes(text(1))
    assert place_of(path)["file"][1] > born


@pytest.mark.parametrize("kept", [False, True])
def test_no_line_of_a_new_file_is_passed_over_though_it_is_longer_than_what_was_seen(path: Path, kept: bool) -> None:
    path.write_bytes(text(1, 2, 3))
    known = place_of(path)
    replacing(path, text(*range(4, 24)), keep=kept)()
    assert read(path, 3, known, replaced="new") == list(range(4, 24))
