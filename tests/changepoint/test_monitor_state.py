"""State files and ledgers: nothing is released twice, lost, or started afresh unnoticed."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest

import privatest as pt
from privatest.changepoint.monitor import Monitor
from privatest.changepoint.state_file import FORMAT, StateFile, read_text, state_text
from privatest.changepoint.watches import Targets, pair_watch, unknown_watch
from privatest.errors import BudgetExceeded, InvalidDocument, InvalidInput, RequestConflict
from privatest.pairs import make_pair
from privatest.rational import rational
from tests.changepoint import kills

COINS = make_pair("bernoulli(0.2)", "bernoulli(0.8)")
WATCH = pair_watch(COINS, rational(1), "cusum", Targets(0.1, 1e8, None))
ASKED = {"epsilon": 1, "mean_time_between_false_alarms": 1e8}
QUIET = ([0, 0, 1, 0, 0] * 200)[: 40 * WATCH.block + 3]


def rng(seed: int = 3) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_kills_lose_nothing_and_release_nothing_twice() -> None:
    found = kills.run(25, seed=5)
    assert found.problems == []
    assert found.kills >= 25


def test_a_state_that_is_written_too_late_is_caught() -> None:
    assert kills.run(150, seed=6, broken=True).problems != []


@pytest.mark.parametrize("method", ["cusum", "paper"])
def test_a_restored_monitor_goes_on_where_it_was(method: str, tmp_path: Path) -> None:
    watch = pair_watch(COINS, rational(1), method, Targets(0.1, 1e4, None))
    monitor = Monitor.of(watch, rng=rng(1))
    monitor.update_many(QUIET)
    monitor.save(tmp_path / "state.json")
    restored = pt.Monitor.load(tmp_path / "state.json", rng=rng(2))
    assert restored.seen == monitor.seen == len(QUIET)
    assert restored.to_dict() == monitor.to_dict()
    alarm = restored.update_many([1] * 2000)
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


def test_the_file_holds_no_raw_sum(tmp_path: Path) -> None:
    """The unfinished block's entry is its sum with noise, the same however often it is written."""
    found = set()
    for seed in range(40):
        monitor = Monitor.of(WATCH, rng=rng(seed))
        monitor.update_many([1] * (WATCH.block - 1))
        for _ in range(2):
            monitor.save(tmp_path / f"{seed}.json")
            records, doubled = json.loads((tmp_path / f"{seed}.json").read_text())["content"]["open"]
            assert records == WATCH.block - 1
            found.add((seed, doubled))
    assert len(found) == 40
    assert len({doubled for _, doubled in found}) > 5  # the noise's spread


def test_bound_monitors_write_before_they_answer(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    monitor = pt.Monitor("bernoulli(0.2)", "bernoulli(0.8)", state=path, **ASKED)
    assert path.stat().st_mode & 0o077 == 0
    for record in QUIET:
        monitor.update(record)
        content = read_text(path.read_bytes(), "it")
        assert content["trace"] == list(monitor._stream.released)
        assert content["start"] == monitor.seen // monitor.block * monitor.block
    restored = pt.Monitor.load(path)
    assert restored.seen == len(QUIET) // monitor.block * monitor.block
    assert restored.trace == monitor.trace


def test_the_same_settings_go_on_and_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    monitor = pt.Monitor("bernoulli(0.2)", "bernoulli(0.8)", state=path, **ASKED)
    monitor.update_many(QUIET)
    again = pt.Monitor("bernoulli(0.2)", "bernoulli(0.8)", state=path, **ASKED)
    assert again.trace == monitor.trace
    with pytest.raises(InvalidInput, match="other settings"):
        pt.Monitor("bernoulli(0.2)", "bernoulli(0.7)", state=path, **ASKED)


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


def test_a_forked_child_cannot_go_on_with_its_parents_monitor(tmp_path: Path) -> None:
    monitor = Monitor.of(WATCH)
    monitor.save(tmp_path / "state.json")
    process = os.fork()
    if process == 0:
        try:
            monitor.update_many(QUIET)
        except InvalidInput:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    monitor.update_many(QUIET)


def saved(tmp_path: Path) -> Path:
    path = tmp_path / "state.json"
    monitor = Monitor.of(WATCH, rng=rng())
    monitor.update_many(QUIET)
    monitor.save(path)
    monitor._stream.file.close()
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
    with pytest.raises(InvalidDocument, match="checksum does not fit"):
        pt.Monitor.load(path)
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(InvalidDocument, match="must not start afresh"):
        pt.Monitor.load(path)
    with pytest.raises(InvalidDocument, match="must not start afresh"):
        pt.Monitor("bernoulli(0.2)", "bernoulli(0.8)", state=path, **ASKED)
    assert path.read_bytes() == raw[: len(raw) // 2]


def test_other_versions_and_missing_files_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    path.write_text(path.read_text().replace(FORMAT, "privatest/monitor/2"))
    with pytest.raises(InvalidDocument, match="'privatest/monitor/2'"):
        pt.Monitor.load(path)
    with pytest.raises(InvalidDocument, match="no state"):
        pt.Monitor.load(tmp_path / "elsewhere.json")
    with pytest.raises(InvalidInput, match="cannot be kept there"):
        pt.Monitor.load(tmp_path / "no" / "such" / "folder.json")


@pytest.mark.parametrize("key", ["design", "progress", "trace", "open", "alarm", "id", "start", "asked"])
def test_contents_with_a_sound_checksum_that_make_no_sense_are_refused(key: str, tmp_path: Path) -> None:
    path = saved(tmp_path)
    content = read_text(path.read_bytes(), "it")
    for value in ("nonsense", {"blocks": -1}, [1, 2, 3], 77, None):
        if (key, value) in (("alarm", None), ("open", None)) or (key == "id" and not isinstance(value, dict)):
            continue
        if key in ("id", "asked") or (key == "trace" and isinstance(value, list)):
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


def test_a_first_state_that_was_cut_short_is_none(tmp_path: Path) -> None:
    path = saved(tmp_path)
    raw = path.read_bytes()
    os.unlink(path)
    Path(f"{path}.next").write_bytes(raw[:-9])
    assert pt.Monitor("bernoulli(0.2)", "bernoulli(0.8)", state=path, **ASKED).seen == 0
    os.unlink(path)
    Path(f"{path}.next").write_bytes(raw)
    assert pt.Monitor.load(path).seen == len(QUIET)


def test_a_monitor_that_moved_leaves_no_second_life(tmp_path: Path) -> None:
    monitor = Monitor.of(WATCH)
    monitor.save(tmp_path / "a.json")
    monitor.save(tmp_path / "b.json")
    with pytest.raises(InvalidDocument, match="saved to another file"):
        pt.Monitor.load(tmp_path / "a.json")
    assert pt.Monitor.load(tmp_path / "b.json").seen == 0


def test_a_disk_that_fails_releases_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.json"
    monitor, plain = Monitor.of(WATCH, rng=rng()), Monitor.of(WATCH, rng=rng())
    monitor.save(path)
    plain.update_many(QUIET)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        for size in (WATCH.block, len(QUIET)):
            with pytest.raises(InvalidInput, match="No space left"):
                monitor.update_many(QUIET[:size])
        for record in QUIET[: WATCH.block - 1]:
            monitor.update(record)
        with pytest.raises(InvalidInput, match="No space left"):
            monitor.update(QUIET[WATCH.block - 1])
        assert monitor.trace == ()
        assert monitor.seen == WATCH.block - 1
    monitor.update_many(QUIET[monitor.seen :])
    assert monitor.trace == plain.trace


def test_simulated_stays_simulated(tmp_path: Path) -> None:
    monitor = Monitor.of(WATCH, rng=rng())
    monitor.save(tmp_path / "state.json")
    assert not pt.Monitor.load(tmp_path / "state.json").private


def test_with_an_unknown_alternative_whole_blocks_are_kept(tmp_path: Path) -> None:
    watch = unknown_watch([0.5, 0.5], 0.4, rational(1), "cusum", Targets(0.1, 1e3, None))
    monitor = Monitor.of(watch, rng=rng(1))
    monitor.update_many([0, 1] * watch.block + [1])
    monitor.save(tmp_path / "state.json")
    restored = pt.Monitor.load(tmp_path / "state.json")
    assert restored.trace == monitor.trace
    assert restored.seen == 2 * watch.block
    alarm = restored.update_many([1] * 40 * watch.block)
    assert alarm is not None


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
    with pytest.raises(RequestConflict, match="began a monitor before"):
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
    assert ledger.spent("clicks") == 1
    os.unlink(path)
    with pytest.raises(RequestConflict, match=r"Monitor\.load"):
        begin(ledger, "a", state=path)
    assert not path.exists()


def test_killed_between_charge_and_record_it_begins_once(
    ledger: pt.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.json"

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(ledger), "_record", killed)
        with pytest.raises(KeyboardInterrupt):
            begin(ledger, "a", state=path)
    assert ledger.spent("clicks") == 1
    begin(ledger, "a", state=path).update_many(QUIET)
    assert ledger.spent("clicks") == 1


def test_nothing_is_charged_or_written_when_the_settings_are_bad(ledger: pt.Ledger, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        begin(ledger, "a", mean_time_between_false_alarms=1e15, state=tmp_path / "state.json")
    with pytest.raises(BudgetExceeded):
        begin(ledger, "a", epsilon=3, state=tmp_path / "state.json")
    assert ledger.spent("clicks") == 0
    assert not (tmp_path / "state.json").exists()


def test_the_lock_is_let_go_with_the_monitor(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "x.json")
    other = StateFile(tmp_path / "x.json")
    with pytest.raises(InvalidInput, match="no longer holds"):
        file.write("{}")
    other.write("{}")
    assert other.read() == {}
