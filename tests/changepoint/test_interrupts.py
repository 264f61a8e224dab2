"""An interrupt in any line of a step: no block gets a second draw, here or from the file."""

from __future__ import annotations

import inspect
import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import privatest as pt
from privatest.errors import InvalidInput
from privatest.streams import saved_state, stream
from privatest.streams import sequential as sequential_tests

PAIR = ("bernoulli(0.2)", "bernoulli(0.8)")
RECORDS = [0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0] * 4
FILES = {module.__file__: inspect.getsource(module).splitlines() for module in (stream, saved_state)}
"""The lines at which an interrupt is raised."""
UNINTERRUPTED = ("with self._turn", "try:")
"""Where a turn is taken or ended, and where a ``try`` begins: Python handles no signal there, only before and after."""


@pytest.fixture(autouse=True, scope="module")
def tuned_once() -> Iterator[None]:
    """The one sequential test that is asked for here is designed once."""
    plan = sequential().plan
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequential_tests, "tuned_plan", lambda *_: plan)
        yield


@contextmanager
def interrupted(at: int) -> Iterator[list[int]]:
    """An interrupt at this line, counted from here, of the modules that make a step; how many lines there were."""
    lines = [0]

    def look(frame: FrameType, event: str, _: Any) -> Any:
        text = FILES.get(frame.f_code.co_filename)
        if text is None:
            return None
        if event == "line" and not text[frame.f_lineno - 1].strip().startswith(UNINTERRUPTED):
            lines[0] += 1
            if lines[0] == at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        yield lines
    finally:
        sys.settrace(before)


def monitor(**words: Any) -> Any:
    return pt.Monitor(*PAIR, epsilon=1, mean_time_between_false_alarms=1e6, **words)


def sequential(**words: Any) -> Any:
    return pt.Sequential(*PAIR, epsilon=1, alpha=1e-7, beta=1e-7, schedule=(6, 6), **words)


def one_by_one(made: Any, records: list[int], unit: bool) -> None:
    for number, record in enumerate(records):
        if made.result is not None:
            return
        made.update(record, **({"unit": number} if unit else {}))


def in_batches(made: Any, records: list[int], unit: bool) -> None:
    for first in range(0, len(records), 7):
        if made.result is not None:
            return
        part = records[first : first + 7]
        made.update(part, **({"unit": [first + k for k in range(len(part))]} if unit else {}))


def on_disk(path: Path) -> list[int]:
    """What a state says was released; nothing where there is none, or it was moved."""
    content = json.loads(path.read_text())["content"] if path.exists() else {}
    found: list[int] = content.get("trace", [])
    return found


def tried(begin: Callable[..., Any], feed: Callable[..., None], words: dict[str, Any], at: int, path: Path) -> str:
    """Feed, interrupted, and go on from ``seen`` as documented; what stood anywhere stands there still."""
    unit = "max_rows_per_unit" in words
    made = begin(**words)
    feed(made, RECORDS[:10], unit)
    with interrupted(at) as lines:
        try:
            feed(made, RECORDS[10:31], unit)
            return "over" if made.result is None else "raised"
        except KeyboardInterrupt:
            pass
    assert lines[0] == at
    stands = on_disk(path) if "state" in words else []
    outcome = "went on"
    try:
        feed(made, RECORDS[made.seen :], unit)
    except InvalidInput as error:
        if "was cut short" not in str(error):
            raise
        if "state" not in words:
            return "refused"
        ledger = {"ledger": words["ledger"]} if "ledger" in words else {}
        made = type(made).load(path, **ledger)
        feed(made, RECORDS[made.seen :], unit)
        outcome = "loaded"
    if made.result is not None:
        return outcome
    made._settle()
    trace, block = list(made._released), made._plan.block
    assert trace[: len(stands)] == stands, at
    assert made.seen == len(RECORDS)
    assert len(trace) == len(RECORDS) // block, at
    return outcome


APART = 16
"""Of so many lines one is tried in the short version."""
CASES: dict[str, tuple[Callable[..., Any], bool, bool, bool]] = {
    "monitor in memory": (monitor, False, False, False),
    "monitor of persons in memory": (monitor, False, False, True),
    "monitor with a file": (monitor, True, False, False),
    "monitor of persons with a file": (monitor, True, False, True),
    "monitor with a ledger": (monitor, True, True, False),
    "sequential in memory": (sequential, False, False, False),
    "sequential with a file": (sequential, True, False, False),
}


# An interrupt between the opening of a file and its ``with`` leaves the closing to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("feed", [one_by_one, in_batches], ids=lambda feed: feed.__name__)
@pytest.mark.parametrize("apart", [pytest.param(1, marks=pytest.mark.exhaustive, id="in nearly every line"), APART])
@pytest.mark.parametrize("case", CASES)
def test_a_step_that_is_cut_anywhere_gives_no_block_a_second_draw(
    case: str, apart: int, feed: Callable[..., None], tmp_path: Path, show: Callable[[str], None]
) -> None:
    begin, file, ledger, persons = CASES[case]
    found: dict[str, int] = {}
    rng, at = random.Random(case), 0
    ledgers = pt.Ledger(tmp_path / "ledger.db") if ledger else None
    if ledgers is not None:
        ledgers.grant("d", epsilon=10**6, **({"unit": "who"} if persons else {}))
    while found.get("over", 0) < 1:
        at += rng.randint(
            1, apart * (15 if ledger and apart > 1 else 60 if ledger else 5 if file or begin is sequential else 1)
        )
        path = tmp_path / f"{at}.json"
        words: dict[str, Any] = {"state": path} if file else {}
        words |= {"ledger": ledgers, "dataset": "d", "request": f"r{at}"} if ledger else {}
        words |= {"max_rows_per_unit": 1} if persons else {}
        outcome = tried(begin, feed, words, at, path)
        found[outcome] = found.get(outcome, 0) + 1
    show(f"{case}: {found}")
    assert found.get("loaded" if file else "refused", 0) > (4 if apart == 1 else 0)


def failing(patch: pytest.MonkeyPatch, at: int, *, ever_after: bool) -> list[int]:
    """The disk fails at this call of the state's file, counted from here, or from it on; how many calls there were."""
    calls = [0]

    def fails(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*where: Any, **how: Any) -> Any:
            calls[0] += 1
            if calls[0] == at or (ever_after and calls[0] > at):
                raise OSError(28, "No space left on device")
            return real(*where, **how)

        return call

    for name in ("open", "fsync", "replace", "pwrite"):
        patch.setattr(saved_state.os, name, fails(getattr(os, name)))
    patch.setattr(Path, "unlink", fails(Path.unlink))
    return calls


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("ever_after", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("step", ["update", "save"])
@pytest.mark.parametrize("begin", [monitor, sequential])
def test_a_disk_that_fails_anywhere_in_a_step_gives_no_block_a_second_draw(
    begin: Callable[..., Any], step: str, ever_after: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was certainly not written may be drawn anew; what may have been is in doubt, until the file is read."""
    found: set[str] = set()
    for at in range(1, 20):
        paths = [tmp_path / f"{at} {name}.json" for name in ("old", "new")]
        made = begin(state=paths[0])
        one_by_one(made, RECORDS[:12], False)
        with monkeypatch.context() as patch:
            calls = failing(patch, at, ever_after=ever_after)
            try:
                one_by_one(made, RECORDS[12:24], False) if step == "update" else made.save(paths[1])
                said = ""
            except InvalidInput as error:
                said = str(error)
        if calls[0] < at:
            break
        held = [on_disk(path) for path in paths]
        newest, path = max(zip(held, paths, strict=True), key=lambda one: len(one[0]))
        if "cannot be written" in said or "cannot be kept there" in said:
            found.add("not written")
            assert made._file.is_at(paths[0])
            assert not paths[1].exists()
            assert not list(tmp_path.glob(f"{at} *.next"))
        elif said:
            found.add("in doubt")
            assert step == "update" or "remove '" in said, said
            with pytest.raises(InvalidInput, match="was cut short"):
                made.update(0)
            moved = paths[1].exists() or list(tmp_path.glob(f"{at} new*.next"))
            made = type(made).load(paths[1] if moved else path)
        one_by_one(made, RECORDS[made.seen :], False)
        made._settle()
        trace = list(made._released)
        assert trace[: len(newest)] == newest, (at, said)
        assert made.result or len(trace) == len(RECORDS) // made._plan.block, (at, said)
    assert found == {"in doubt"} | (set() if ever_after and step == "update" else {"not written"})


@pytest.mark.parametrize("kept", [True, False], ids=["kept in a file", "in memory"])
@pytest.mark.parametrize("begin", [monitor, sequential])
def test_a_state_is_saved_over_no_other_streams(begin: Callable[..., Any], kept: bool, tmp_path: Path) -> None:
    """Nor over a file that is none; over its own older one it is."""
    other, own, file, letter = (tmp_path / name for name in ("other", "own", "file", "letter"))
    one_by_one(begin(state=other), RECORDS[:20], False)
    one_by_one(monitor(state=file) if begin is sequential else sequential(state=file), RECORDS[:20], False)
    letter.write_text("nothing of ours")
    before = {path: path.read_bytes() for path in (other, file, letter)}
    made = begin(**({"state": own} if kept else {}))
    one_by_one(made, RECORDS[:20], False)
    made._settle()
    trace = list(made._released)
    for path in before:
        with pytest.raises(InvalidInput, match="exists and is not a state of this"):
            made.save(path)
        assert before[path] == path.read_bytes()
    assert type(made).load(other)._name != made._name
    one_by_one(made, RECORDS[20:30], False)
    made.save(own)
    made.save(tmp_path / "elsewhere")
    made.save(own)
    assert list(type(made).load(own)._released)[: len(trace)] == trace
