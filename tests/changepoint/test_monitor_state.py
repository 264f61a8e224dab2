"""State files and ledgers: nothing is released twice, lost, or started afresh unnoticed."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import pickle
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.errors import BudgetExceeded, InvalidDocument, InvalidInput, LedgerLocked, RequestConflict
from privatest.hypotheses import make_pair
from privatest.numbers import rational
from privatest.privacy import seeded_source
from privatest.streams.monitor import Monitor, MonitorTargets, pair_plan, unknown_plan
from privatest.streams.monitor_plan import MonitorPlan
from privatest.streams.saved_state import MONITOR, NotWritten, StateFile, read_text, state_text
from tests.changepoint import kills

COINS = make_pair("bernoulli(0.2)", "bernoulli(0.8)")
WATCH = pair_plan(COINS, rational(1), "cusum", MonitorTargets(0.1, 1e8, None))
ASKED = {"epsilon": 1, "mean_time_between_false_alarms": 1e8}
QUIET = ([0, 0, 1, 0, 0] * 200)[: 40 * WATCH.block + 3]


@cache
def watch_of_bits() -> MonitorPlan:
    """Built when a test asks for it: it takes a second."""
    return unknown_plan([0.5, 0.5], 0.4, rational(1), "cusum", MonitorTargets(0.1, 1e8, None))


@pytest.fixture(params=["sums", "bits"])
def watch(request: pytest.FixtureRequest) -> MonitorPlan:
    return watch_of_bits() if request.param == "bits" else WATCH


def rng(seed: int = 3) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_kills_lose_nothing_and_release_nothing_twice() -> None:
    found = kills.run(25, seed=5)
    assert found.problems == []
    assert found.kills >= 25


def test_a_state_that_is_written_too_late_is_caught() -> None:
    assert kills.run(kills.NEVER, seed=6, broken=True).problems != []


@pytest.mark.parametrize("method", ["cusum", "paper"])
def test_a_restored_monitor_goes_on_where_it_was(method: str, tmp_path: Path) -> None:
    watch = pair_plan(COINS, rational(1), method, MonitorTargets(0.1, 1e4, None))
    monitor = Monitor.of(watch, rng=rng(1))
    monitor.update_many(QUIET)
    monitor.save(tmp_path / "state.json")
    restored = pt.Monitor.load(tmp_path / "state.json", rng=rng(2))
    assert monitor.seen == len(QUIET) > restored.seen == len(QUIET) // watch.block * watch.block
    assert restored.to_dict() == {**monitor.to_dict(), "seen": restored.seen}
    alarm = restored.update_many([*QUIET[restored.seen :], *[1] * 2000])
    assert alarm is not None
    assert abs(alarm.index - len(QUIET)) <= 2 * watch.block * (restored.interval or 3)
    again = pt.Monitor.load(tmp_path / "state.json")
    assert again.drift_detected
    assert again.update(0) == again.alarm == alarm
    assert again.seen == alarm.seen


def test_a_saved_block_keeps_its_noise(tmp_path: Path) -> None:
    """Saving amid a block changes nothing: neither the noise of the block nor what it releases."""
    plain, saved = Monitor.of(WATCH, rng=rng()), Monitor.of(WATCH, rng=rng())
    plain.update_many(QUIET)
    for start in range(0, len(QUIET), 7):
        saved.update_many(QUIET[start : start + 7])
        saved.save(tmp_path / "state.json")
    assert saved.trace == plain.trace


def test_the_file_holds_nothing_of_an_unfinished_block(tmp_path: Path) -> None:
    """Neither raw nor with noise, which a later release would have in common with it."""
    found = []
    for bit in (0, 1):
        monitor = Monitor.of(WATCH, rng=rng())
        monitor.update_many([0] * WATCH.block + [bit] * (WATCH.block - 1))
        monitor.save(tmp_path / f"{bit}.json")
        content = read_text((tmp_path / f"{bit}.json").read_bytes(), "it")
        found.append({key: value for key, value in content.items() if key not in ("id", "mark")})
    assert found[0] == found[1]
    assert found[0]["start"] == WATCH.block


def test_bound_monitors_write_before_they_answer(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    monitor = pt.Monitor("bernoulli(0.2)", "bernoulli(0.8)", state=path, **ASKED)
    assert path.stat().st_mode & 0o077 == 0
    for record in QUIET:
        monitor.update(record)
        content = read_text(path.read_bytes(), "it")
        assert content["trace"] == list(monitor._released)
        assert content["start"] == monitor.seen // monitor.block * monitor.block
    restored = pt.Monitor.load(path)
    assert restored.seen == len(QUIET) // monitor.block * monitor.block
    assert restored.trace == monitor.trace


def test_only_the_newest_holder_may_go_on(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    monitor = Monitor.of(WATCH)
    monitor.save(path)
    newer = pt.Monitor.load(path)
    before = monitor.trace
    with pytest.raises(InvalidInput, match="no longer holds"):
        monitor.update_many(QUIET)
    assert monitor.trace == before
    assert not monitor.drift_detected
    newer.update_many(QUIET)


def _load(path: str, answer: multiprocessing.Queue) -> None:
    try:
        answer.put(("loaded", pt.Monitor.load(path).seen))
    except Exception as error:
        answer.put((type(error).__name__, str(error)))


def test_another_process_is_kept_out_until_this_one_lets_go(tmp_path: Path) -> None:
    path, context = str(tmp_path / "state.json"), multiprocessing.get_context("fork")

    def elsewhere() -> tuple[str, object]:
        answer = context.Queue()
        process = context.Process(target=_load, args=(path, answer))
        process.start()
        found = answer.get(timeout=60)
        process.join()
        return found

    monitor = Monitor.of(WATCH)
    monitor.save(path)
    kind, message = elsewhere()
    assert kind == "InvalidInput"
    assert "in use by another process" in str(message)
    del monitor
    assert elsewhere() == ("loaded", 0)


def saved(tmp_path: Path) -> Path:
    path = tmp_path / "state.json"
    monitor = Monitor.of(WATCH, rng=rng())
    monitor.update_many(QUIET)
    monitor.save(path)
    monitor._file.close()
    return path


def test_every_flipped_byte_is_refused(tmp_path: Path) -> None:
    raw = saved(tmp_path).read_bytes()
    assert len(raw) < 5000
    for place in range(len(raw)):
        for flip in (1, 32, 128):
            broken = bytearray(raw)
            broken[place] ^= flip
            with pytest.raises(InvalidDocument):
                read_text(bytes(broken), "it")
    assert read_text(raw, "it")["start"] == len(QUIET) // WATCH.block * WATCH.block


def test_every_truncation_and_extension_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    raw = path.read_bytes()
    for size in range(len(raw)):
        with pytest.raises(InvalidDocument):
            read_text(raw[:size], "it")
    path.write_bytes(raw + b" ")
    with pytest.raises(InvalidDocument, match="checksum is wrong"):
        pt.Monitor.load(path)
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(InvalidDocument, match="must not start again"):
        pt.Monitor.load(path)
    with pytest.raises(InvalidDocument, match="must not start again"):
        pt.Monitor("bernoulli(0.2)", "bernoulli(0.8)", state=path, **ASKED)
    assert path.read_bytes() == raw[: len(raw) // 2]


def test_other_versions_and_missing_files_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    path.write_text(path.read_text().replace(MONITOR.format, "privatest/monitor/1"))
    with pytest.raises(InvalidDocument, match="'privatest/monitor/1'"):
        pt.Monitor.load(path)
    with pytest.raises(InvalidDocument, match="no state"):
        pt.Monitor.load(tmp_path / "elsewhere.json")
    with pytest.raises(InvalidInput, match="cannot be kept there"):
        pt.Monitor.load(tmp_path / "no" / "such" / "folder.json")


@pytest.mark.parametrize("key", ["plan", "progress", "trace", "result", "id", "start", "settings", "place", "mark"])
def test_contents_with_a_sound_checksum_that_make_no_sense_are_refused(key: str, tmp_path: Path) -> None:
    path = saved(tmp_path)
    content = read_text(path.read_bytes(), "it")
    for value in ("nonsense", {"blocks": -1}, [1, 2, 3], 77, None):
        if (key, value) == ("result", None) or (key == "id" and not isinstance(value, dict)):
            continue
        if key in ("id", "settings", "place", "mark") or (key == "trace" and isinstance(value, list)):
            changed = {name: entry for name, entry in content.items() if name != key}
        else:
            changed = {**content, key: value}
        path.write_text(state_text(json.dumps(changed)))
        with pytest.raises(InvalidDocument):
            pt.Monitor.load(path)


def test_a_successor_that_was_written_but_not_named_is_the_state(tmp_path: Path) -> None:
    """Killed between the flush and the rename: noise that is on the disk is not drawn again."""
    path = tmp_path / "state.json"
    monitor = Monitor.of(WATCH)
    monitor.update_many(QUIET[: 10 * WATCH.block])
    monitor.save(path)
    before = path.read_bytes()
    monitor.update_many(QUIET[10 * WATCH.block : 12 * WATCH.block])
    after = path.read_bytes()
    path.write_bytes(before)
    Path(f"{path}.next").write_bytes(after)
    restored = pt.Monitor.load(path)
    assert restored.trace == monitor.trace
    assert restored.seen == 12 * WATCH.block
    assert path.read_bytes() == after
    # rubbish, or the successor of something else, is not
    for other in (after[:100], before):
        Path(f"{path}.next").write_bytes(other)
        assert pt.Monitor.load(path).seen == 12 * WATCH.block


# one of a kind --------------------------------------------------------------------------------------------------------


class Counted:
    """A source that counts how often it was asked."""

    simulated = True

    def __init__(self) -> None:
        self.asked, self._source = 0, seeded_source(rng())

    def bits(self, k: int) -> int:
        self.asked += 1
        return self._source.bits(k)

    def below(self, n: int) -> int:
        self.asked += 1
        return self._source.below(n)


def test_noise_is_drawn_when_a_block_is_released_and_not_before(watch: MonitorPlan, tmp_path: Path) -> None:
    source = Counted()
    stream = Monitor.__new__(Monitor)
    stream._start(watch, {}, source, None)  # type: ignore[arg-type]
    for _ in range(watch.block - 1):
        stream.update_one(0)
    stream.save(tmp_path / "state.json")
    assert source.asked == 0
    stream.update_one(0)
    first = source.asked
    assert first > 0
    for _ in range(watch.block - 1):
        stream.update_one(0)
    stream.reset()
    assert source.asked == first, "nothing was drawn for the next block"


def _holders() -> dict[str, object]:
    monitor = Monitor.of(WATCH)
    monitor.update_many(QUIET[: WATCH.block + 1])
    bits = Monitor.of(watch_of_bits())
    bits.update_many([0, 1, 0])
    return {
        "monitor": monitor,
        "sum": monitor._open,
        "bits": bits._open,
        "within": [monitor],
    }


@pytest.mark.parametrize("name", ["monitor", "sum", "bits", "within"])
def test_what_holds_an_open_block_cannot_be_copied_or_pickled(name: str) -> None:
    held = _holders()[name]
    ways = [copy.deepcopy, *(lambda x, p=p: pickle.dumps(x, p) for p in range(pickle.HIGHEST_PROTOCOL + 1))]
    if name != "within":
        ways.append(copy.copy)
    for way in ways:
        with pytest.raises(InvalidInput, match=r"save\(path\)"):
            way(held)


def forked(work: Callable[[], object]) -> str:
    """What an error said that ``work`` met in a forked process, or ``went on``."""
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            work()
            said = "went on"
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        said = answer.read()
    os.waitpid(process, 0)
    return said


def test_a_forked_process_has_no_use_of_its_parents_monitor(watch: MonitorPlan, tmp_path: Path) -> None:
    monitor = Monitor.of(watch)
    monitor.update_many([0])
    ways: list[Callable[[], object]] = [
        lambda: monitor.update(0),
        lambda: monitor.update([0]),
        lambda: monitor.update_many([]),
        lambda: monitor.update_many([0] * 3 * watch.block),
        monitor.reset,
        lambda: monitor.save(tmp_path / "state.json"),
    ]
    for way in ways:
        assert "save(path)" in forked(way)
    assert not (tmp_path / "state.json").exists()
    assert forked(lambda: Monitor.of(watch).update_many([0] * 3 * watch.block)) == "went on"
    monitor.update_many([0] * 3 * watch.block)
    assert len(monitor.trace) == 3


# the newest state -----------------------------------------------------------------------------------------------------


def test_an_older_state_in_the_same_place_is_refused_and_the_price_is_named(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    monitor, block = Monitor.of(WATCH), WATCH.block
    monitor.save(path)
    kept = []
    for i in range(3):
        kept.append(path.read_bytes())
        monitor.update_many(QUIET[i * block : (i + 1) * block])
    newest = path.read_bytes()
    del monitor
    for older in kept:
        path.write_bytes(older)
        with pytest.raises(InvalidDocument, match=r"not the newest .* costs epsilon twice"):
            pt.Monitor.load(path)
        with pytest.raises(InvalidDocument, match="not the newest"):
            StateFile(path).read()
    path.write_bytes(newest)
    assert pt.Monitor.load(path).seen == 3 * block
    Path(f"{path}.lock").unlink()  # as the message says, at that price
    path.write_bytes(kept[0])
    assert pt.Monitor.load(path).seen == 0


@pytest.mark.parametrize("begun", ["fresh", "restored", "restored twice"])
def test_a_state_that_was_written_but_not_named_is_followed_after_a_restore_too(
    begun: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the flush and the rename, whatever came before: what is on the disk is not drawn again."""
    path = tmp_path / "state.json"
    monitor = Monitor.of(WATCH)
    monitor.save(path)
    for _ in range({"fresh": 0, "restored": 1, "restored twice": 2}[begun]):
        monitor = pt.Monitor.load(path)
        monitor.update_many(QUIET[monitor.seen : monitor.seen + WATCH.block])
        monitor = pt.Monitor.load(path)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            monitor.update_many(QUIET[monitor.seen : monitor.seen + WATCH.block])
    written = read_text(Path(f"{path}.next").read_bytes(), "it")
    assert len(written["trace"]) == len(monitor.trace) + 1
    assert list(pt.Monitor.load(path)._released) == written["trace"]


# the place ------------------------------------------------------------------------------------------------------------


def test_the_place_of_the_last_whole_block_is_kept(tmp_path: Path) -> None:
    path, block = tmp_path / "state.json", WATCH.block
    monitor = Monitor.of(WATCH, rng=rng())
    monitor.save(path)
    monitor.update_many(QUIET[: block - 1], place={"file": "a"})
    assert pt.Monitor.load(path).place is None
    monitor = pt.Monitor.load(path, rng=rng())
    monitor.update_many(QUIET[: block + 1], place={"file": "a"})
    monitor.update_many(QUIET[: block - 2], place={"file": "b"})
    monitor.save(path)
    monitor = pt.Monitor.load(path, rng=rng())
    assert (monitor.place, monitor.seen) == ({"file": "a"}, block)
    monitor.update_many(QUIET[:block])
    assert pt.Monitor.load(path).place is None
    with pytest.raises(InvalidInput, match="place"):
        monitor.update_many(QUIET, place={"file": object()})


# the ledger -----------------------------------------------------------------------------------------------------------


def begin(ledger: pt.Ledger, request: str, **more: object) -> pt.Monitor:
    return pt.Monitor(
        "bernoulli(0.2)", "bernoulli(0.8)", ledger=ledger, dataset="clicks", request=request, **{**ASKED, **more}
    )


@pytest.fixture
def ledger(tmp_path: Path) -> pt.Ledger:
    made = pt.Ledger(tmp_path / "ledger.db")
    made.grant("clicks", epsilon=2.5)
    return made


def test_a_monitor_is_charged_once_when_it_begins(ledger: pt.Ledger) -> None:
    monitor = begin(ledger, "a")
    assert ledger.spent("clicks") == 1
    monitor.update_many(QUIET)
    assert ledger.spent("clicks") == 1
    with pytest.raises(RequestConflict, match="began a monitor earlier"):
        begin(ledger, "a")
    with pytest.raises(RequestConflict):
        begin(ledger, "a", epsilon=0.5)
    begin(ledger, "b")
    with pytest.raises(BudgetExceeded):
        begin(ledger, "c")
    assert ledger.spent("clicks") == 2


def test_a_charged_monitor_goes_on_from_its_state_only(ledger: pt.Ledger, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    monitor = begin(ledger, "a", state=path)
    monitor.update_many(QUIET)
    again = begin(ledger, "a", state=path)
    assert again.trace == monitor.trace
    assert pt.Monitor.load(path, ledger=ledger).trace == monitor.trace
    assert ledger.spent("clicks") == 1
    with pytest.raises(InvalidInput, match=r"request 'a' of data set 'clicks'.*give ledger="):
        pt.Monitor.load(path)
    os.unlink(path)
    with pytest.raises(RequestConflict, match=r"Monitor\.load"):
        begin(ledger, "a", state=path)
    assert not path.exists()


def rows_of(ledger: pt.Ledger) -> list[int]:
    return [
        entry.release["position"] for entry in ledger.history("clicks") if entry.kind == "advance" and entry.release
    ]


def test_the_ledger_knows_how_far_a_stream_was_released(ledger: pt.Ledger, tmp_path: Path) -> None:
    """Once for each call that released something, also where the stream goes on elsewhere."""
    path, block = tmp_path / "state.json", WATCH.block
    monitor = begin(ledger, "a", state=path)
    assert rows_of(ledger) == [0]
    monitor.update_many(QUIET[: 10 * block])
    monitor.update_many(QUIET[: block - 1])
    assert rows_of(ledger) == [0, 10 * block]
    monitor = pt.Monitor.load(path, ledger=ledger)
    assert rows_of(ledger) == [0, 10 * block]
    for record in QUIET[:block]:
        monitor.update(record)
    monitor.save(tmp_path / "elsewhere.json")
    assert rows_of(ledger) == [0, 10 * block, 11 * block, 11 * block]
    assert ledger.verify() == 7
    assert ledger.spent("clicks") == 1


@pytest.mark.parametrize("back", [1, 2, 3])
@pytest.mark.parametrize("place", ["state.json", "copy.json"])
def test_the_ledger_refuses_an_older_state_wherever_it_lies(
    ledger: pt.Ledger, tmp_path: Path, back: int, place: str
) -> None:
    path, kept, block = tmp_path / "state.json", [], WATCH.block
    monitor = begin(ledger, "a", state=path)
    for i in range(3):
        kept.append(path.read_bytes())
        monitor.update_many(QUIET[i * block : (i + 1) * block])
    newest = path.read_bytes()
    del monitor
    Path(f"{path}.lock").unlink()
    older = tmp_path / place
    older.write_bytes(kept[-back])
    for restore in (lambda: pt.Monitor.load(older, ledger=ledger), lambda: begin(ledger, "a", state=older)):
        with pytest.raises(RequestConflict, match=rf"released up to record {3 * block} .* epsilon=1\.0 more for each"):
            restore()
        assert older.read_bytes() == kept[-back], "refused, and left alone"
    older.write_bytes(newest)
    assert pt.Monitor.load(older, ledger=ledger).seen == 3 * block


def test_of_two_copies_of_the_newest_state_one_goes_on(ledger: pt.Ledger, tmp_path: Path) -> None:
    path, other = tmp_path / "state.json", tmp_path / "copy.json"
    monitor = begin(ledger, "a", state=path)
    monitor.update_many(QUIET)
    other.write_bytes(path.read_bytes())
    second = pt.Monitor.load(other, ledger=ledger)
    assert second.trace == monitor.trace
    monitor.update_many(QUIET)
    before = second.trace
    for _ in range(2):
        with pytest.raises((RequestConflict, InvalidInput), match=r"newer state|Continue with"):
            second.update_many(QUIET)
        assert second.trace == before, "what was drawn was not shown"
    with pytest.raises(RequestConflict, match="newer state"):
        pt.Monitor.load(other, ledger=ledger)
    monitor.update_many(QUIET)


@pytest.mark.parametrize("noted", [False, True])
def test_killed_around_the_ledgers_note_a_monitor_goes_on_from_its_state(
    ledger: pt.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noted: bool
) -> None:
    path, block = tmp_path / "state.json", WATCH.block
    monitor = begin(ledger, "a", state=path)
    monitor.update_many(QUIET[:block])
    advance = type(ledger).advance

    def broken(*words: object, **more: object) -> None:
        if noted:
            advance(*words, **more)  # type: ignore[arg-type]
        raise LedgerLocked("it took too long")

    with monkeypatch.context() as patch:
        patch.setattr(type(ledger), "advance", broken)
        with pytest.raises(LedgerLocked):
            monitor.update_many(QUIET[:block])
        assert (len(monitor.trace), monitor.seen) == (1, block)
    for way in (lambda: monitor.update_many(QUIET), monitor.reset, lambda: monitor.save(path)):
        with pytest.raises(InvalidInput, match=r"Monitor\.load\('state\.json', ledger="):
            way()
    again = pt.Monitor.load(path, ledger=ledger)
    assert (len(again.trace), again.seen) == (2, 2 * block), "the state that was written is the one that goes on"
    again.update_many(QUIET)
    assert ledger.verify() > 0


def test_a_state_goes_on_with_its_own_ledger_only(ledger: pt.Ledger, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    begin(ledger, "a", state=path)
    other = pt.Ledger(tmp_path / "other.db")
    other.grant("clicks", epsilon=5)
    with pytest.raises(InvalidInput, match="This ledger has no monitor of request 'a'"):
        pt.Monitor.load(path, ledger=other)
    assert other.spent("clicks") == 0
    free = Monitor.of(WATCH)
    free.save(tmp_path / "free.json")
    with pytest.raises(InvalidInput, match="has no ledger"):
        pt.Monitor.load(tmp_path / "free.json", ledger=ledger)


@pytest.mark.parametrize("batch", [None, 3])
def test_threads_take_turns(batch: int | None) -> None:
    """Every record is released once: two threads at one block would both release it, with noise of their own."""
    monitor, threads, each = Monitor.of(WATCH), 4, 300
    ready, failed = threading.Barrier(threads), []

    def work() -> None:
        ready.wait()
        try:
            for _ in range(each):
                monitor.update(0) if batch is None else monitor.update_many([0] * batch)
        except Exception as error:
            failed.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(before)
    assert not failed
    assert monitor.seen == threads * each * (batch or 1)


def test_full_blocks_that_wait_are_released_by_one_process_once() -> None:
    watch = pair_plan(make_pair("normal(0, 1)", "normal(1, 1)"), rational(2), "cusum", MonitorTargets(0.1, 1e8, None))
    monitor = Monitor.of(watch)
    for _ in range(watch.block + 1):
        monitor.update(0.0)
    stream = monitor
    assert len(stream._pending) > watch.block

    def look() -> None:
        assert monitor.trace == ()
        assert monitor.levels == ()
        assert monitor.seen == watch.block + 1
        assert len(stream._pending) > watch.block

    assert forked(look) == "went on"
    assert len(monitor.trace) == 1
    assert len(stream._pending) + stream._open.count == 1
    trace = monitor.trace
    assert monitor.trace == trace


def test_blocks_wait_without_a_state_file_only(tmp_path: Path) -> None:
    watch = pair_plan(make_pair("normal(0, 1)", "normal(1, 1)"), rational(2), "cusum", MonitorTargets(0.1, 1e8, None))
    monitor = Monitor.of(watch)
    for _ in range(watch.block + 1):
        monitor.update(0.0)
    monitor.save(tmp_path / "state")
    assert len(read_text((tmp_path / "state").read_bytes(), "it")["trace"]) == 1
    for _ in range(watch.block - 1):
        monitor.update(0.0)
    assert monitor._pending == []
    assert len(read_text((tmp_path / "state").read_bytes(), "it")["trace"]) == 2


def test_a_successor_that_became_the_state_is_flushed_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its new name survives a power failure: what follows is drawn from it."""
    path = saved(tmp_path)
    content = read_text(path.read_bytes(), "it")
    following = {**content, "generation": content["generation"] + 1}
    Path(f"{path}.next").write_text(state_text(json.dumps(following)))
    calls: list[str] = []
    replace, fsync = os.replace, os.fsync

    def naming(one: Path, other: Path) -> None:
        calls.append("replace")
        replace(one, other)

    def flushing(descriptor: int) -> None:
        calls.append("folder" if os.path.samestat(os.fstat(descriptor), tmp_path.stat()) else "file")
        fsync(descriptor)

    monkeypatch.setattr(os, "replace", naming)
    monkeypatch.setattr(os, "fsync", flushing)
    assert StateFile(path).read()["generation"] == following["generation"]
    assert calls == ["replace", "folder"]


@pytest.mark.parametrize("kind", [pt.Monitor, pt.Sequential])
def test_what_was_simulated_stays_so(kind: Any, tmp_path: Path) -> None:
    """A state whose noise came from a generator of the caller's is not private, whoever goes on from it."""
    laws, path = ("bernoulli(0.2)", "bernoulli(0.8)"), tmp_path / "state"
    made = kind(*laws, epsilon=1, state=path, rng=np.random.default_rng(1))
    made.update([0])
    made.save(path)
    del made
    for again in (lambda: kind.load(path), lambda: kind(*laws, epsilon=1, state=path)):
        found = again()
        assert found.simulated
        assert not found.private
        found.save(path)
        del found
    made = kind(*laws, epsilon=1, state=tmp_path / "other")
    made.save(tmp_path / "other")
    del made
    assert kind.load(tmp_path / "other").private


def test_a_state_file_is_written_by_no_process_but_the_one_that_took_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nothing else has noticed that this is another process."""
    file = StateFile(tmp_path / "state")
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: 1)
        with pytest.raises(NotWritten, match="was forked from the one that holds it"):
            file.write("name", 0, "{}")
    assert not (tmp_path / "state").exists()
    file.close()
