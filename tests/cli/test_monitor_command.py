"""monitor: alarms as lines of JSON, broken lines, state files, files that grow and are replaced."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

import privatest as pt
from privatest import engines
from privatest.cli.monitor_command import arriving
from privatest.line_files import LONGEST_LINE, NO_TEXT
from tests.cli.conftest import ENVIRONMENT, PROGRAM, Run
from tests.cli.test_commands import until

RARELY = ("--mean-time-between-false-alarms", "1e9")  # so that no test here fails for a false alarm
PAIR = ("--null", "bernoulli(0.1)", "--alternative", "bernoulli(0.9)", "--epsilon", "2", *RARELY)
OLD, NEW = b"0\n" * 200, b"1\n" * 200


def printed(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_an_alarm_is_one_line_of_json(run: Run) -> None:
    found = run("monitor", *PAIR, stdin=OLD + NEW)
    (alarm,) = printed(found.out)
    assert (found.code, found.err) == (0, "")
    assert set(alarm) == {"index", "accuracy", "seen"}
    assert abs(alarm["index"] - 200) <= 4 * alarm["accuracy"]
    assert 200 < alarm["seen"] < 300
    assert run("monitor", *PAIR, "--exit-code", stdin=OLD + NEW).code == 1
    quiet = run("monitor", *PAIR, "--exit-code", "--json", stdin=OLD)
    assert quiet.code == 0
    (last,) = printed(quiet.out)
    assert (last["seen"], last["drift_detected"], last["private"]) == (200, False, True)


def test_broken_lines_are_records_like_any_other(run: Run) -> None:
    """Nothing is said about them, and they count."""
    broken = [
        b"\xff\xfe",
        b"",
        b"nan",
        b"inf",
        b"1e999",
        b"9" * 400,
        b"'; drop table",
        b"\x00",
        b"-1",
        b"2",
        b"0.5",
        b",,,",
    ]
    found = run("monitor", *PAIR, "--json", stdin=b"".join(line + b"\n" + OLD[:40] for line in broken))
    (last,) = printed(found.out)
    assert (found.code, found.err, last["seen"]) == (0, "", 12 * 21)


def test_going_on_after_an_alarm(run: Run) -> None:
    found = run("monitor", *PAIR, "--go-on", "--json", stdin=OLD + NEW)
    *alarms, last = printed(found.out)
    assert len(alarms) > 2
    assert last["seen"] == 400
    assert [alarm["seen"] for alarm in alarms] == sorted({alarm["seen"] for alarm in alarms})


def test_a_state_goes_on_where_it_was(run: Run, tmp_path: Path) -> None:
    state, lines = tmp_path / "state.json", tmp_path / "values.txt"
    lines.write_bytes(OLD)
    assert printed(run("monitor", lines, *PAIR, "--state", state, "--json").out)[0]["seen"] == 200
    lines.write_bytes(OLD + NEW)
    # The same command line again, then only the state: both skip what was seen.
    again = run("monitor", lines, *PAIR, "--state", state)
    (alarm,) = printed(again.out)
    assert alarm["seen"] > 200
    assert printed(run("monitor", lines, "--state", state).out) == [alarm], "an alarm is never forgotten"
    assert run("monitor", lines, "--state", state, "--epsilon", "3").refused
    assert run("monitor", lines, *PAIR, "--epsilon", "3", "--state", state).refused
    lines.write_bytes(b"0\n")
    fewer = run("monitor", lines, "--state", state, "--go-on")
    assert fewer.code == 2
    assert "was cut short" in fewer.err
    assert "--replaced new" in fewer.err


def test_a_rotated_file_is_read_from_its_start_after_a_restart_if_the_user_says_so(run: Run, tmp_path: Path) -> None:
    """No line that was seen of the old file is taken off the new one; what is left of the old one comes first."""
    state, lines = tmp_path / "state.json", tmp_path / "values.txt"
    lines.write_bytes(OLD)
    run("monitor", lines, *PAIR, "--state", state)
    with lines.open("ab") as file:
        file.write(b"0\n" * 3)  # written after the monitor had stopped
    os.rename(lines, tmp_path / "values.txt.1")
    lines.write_bytes(NEW)
    before = state.read_bytes()
    refused = run("monitor", lines, "--state", state, "--json")
    assert refused.code == 2
    assert "is another file than the one that was read before, after 200 records" in refused.err
    assert "--replaced new" in refused.err
    assert state.read_bytes() == before
    (alarm,) = printed(run("monitor", lines, "--state", state, "--replaced", "new").out)
    assert 203 < alarm["seen"] < 300


def test_a_rewritten_file_is_not_released_twice(run: Run, tmp_path: Path) -> None:
    state, lines = tmp_path / "state.json", tmp_path / "values.txt"
    lines.write_bytes(OLD)
    run("monitor", lines, *PAIR, "--state", state)
    newer = tmp_path / "newer.txt"
    newer.write_bytes(OLD + OLD[:40])
    os.replace(newer, lines)
    assert run("monitor", lines, "--state", state).code == 2
    last = printed(run("monitor", lines, "--state", state, "--replaced", "same", "--json").out)[-1]
    assert last["seen"] == 220
    os.unlink(lines)
    lines.write_bytes(OLD)  # where the system gives it the old one's number, it is another one all the same
    assert run("monitor", lines, "--state", state).code == 2


def test_a_file_whose_rest_is_gone_is_told_of(run: Run, tmp_path: Path) -> None:
    state, lines = tmp_path / "state.json", tmp_path / "values.txt"
    lines.write_bytes(OLD)
    run("monitor", lines, *PAIR, "--state", state)
    newer = tmp_path / "newer.txt"
    newer.write_bytes(OLD)
    os.replace(newer, lines)
    found = run("monitor", lines, "--state", state, "--replaced", "new", "--json")
    assert printed(found.out)[-1]["seen"] == 400
    assert (found.code, "lines it had after record 200 were not seen" in found.err) == (0, True)


def test_what_replaced_may_be(run: Run, tmp_path: Path) -> None:
    lines = tmp_path / "values.txt"
    lines.write_bytes(OLD)
    assert run("monitor", lines, *PAIR, "--replaced", "old").refused
    assert run("monitor", *PAIR, "--replaced", "new", stdin=OLD).refused


def test_a_state_of_no_file_or_of_another_one_needs_a_word(run: Run, tmp_path: Path) -> None:
    state, lines = tmp_path / "state.json", tmp_path / "values.txt"
    lines.write_bytes(OLD + OLD)
    run("monitor", *PAIR, "--state", state, stdin=OLD)
    found = run("monitor", lines, "--state", state)
    assert (found.code, "may be another file than was read, after 200 records" in found.err) == (2, True)
    assert printed(run("monitor", lines, "--state", state, "--replaced", "same", "--json").out)[-1]["seen"] == 400


def test_a_charged_monitor_goes_on_with_its_ledger(run: Run, tmp_path: Path) -> None:
    ledger, state, lines = tmp_path / "ledger.db", tmp_path / "state.json", tmp_path / "values.txt"
    lines.write_bytes(OLD)
    run("ledger", "grant", "--ledger", ledger, "--dataset", "claims", "--epsilon", "2")
    paying = ("--ledger", ledger, "--dataset", "claims", "--request", "watch")
    run("monitor", lines, *PAIR, *paying, "--state", state)
    old = state.read_bytes()
    lines.write_bytes(OLD + OLD)
    assert "give ledger=" in run("monitor", lines, "--state", state).err
    assert run("monitor", lines, "--state", state, "--ledger", ledger).code == 0
    elsewhere = tmp_path / "copy.json"
    elsewhere.write_bytes(old)
    found = run("monitor", lines, "--state", elsewhere, "--ledger", ledger)
    assert "was released up to record 400 from a newer state" in found.err
    assert found.code != 0
    assert run("ledger", "verify", "--ledger", ledger).code == 0


def test_standard_input_goes_on_or_starts_anew(run: Run, tmp_path: Path) -> None:
    for words, seen in ((("--from-start",), 200), ((), 400)):
        state = tmp_path / f"state{seen}.json"
        run("monitor", *PAIR, "--state", state, stdin=OLD)
        found = run("monitor", *PAIR, "--state", state, "--json", *words, stdin=OLD)
        assert printed(found.out)[-1]["seen"] == seen


@pytest.mark.parametrize("content", [b"", b"{}", bytes(range(256)), b'{"format": "privatest/monitor/999"}'])
def test_a_state_that_is_none_is_refused_and_left_alone(run: Run, tmp_path: Path, content: bytes) -> None:
    state = tmp_path / "state.json"
    state.write_bytes(content)
    for words in (PAIR, ()):
        found = run("monitor", *words, "--state", state, stdin=OLD)
        assert (found.code, found.refused, state.read_bytes()) == (2, True, content)


def test_a_monitor_is_charged_once(run: Run, tmp_path: Path) -> None:
    ledger, state = tmp_path / "ledger.db", tmp_path / "state.json"
    run("ledger", "grant", "--ledger", ledger, "--dataset", "claims", "--epsilon", "3")
    paying = ("monitor", *PAIR, "--ledger", ledger, "--dataset", "claims", "--state", state)
    for _ in range(2):
        assert run(*paying, "--request", "watch", stdin=OLD).code == 0
    (line,) = run("ledger", "show", "--ledger", ledger, "--json").document["datasets"]
    assert (line["granted"], line["spent"], line["left"]) == (3, 2, 1)
    other = (*paying[:-1], tmp_path / "other.json")
    assert run(*other, "--request", "again", stdin=OLD).code == 3


@pytest.mark.parametrize("said", [(), ("--replaced", "new")])
def test_following_a_file_that_grows_and_is_replaced(tmp_path: Path, said: tuple[str, ...]) -> None:
    lines, state = tmp_path / "values.txt", tmp_path / "state.json"
    lines.write_bytes(OLD[:100] + b"0")  # the last line is not complete yet
    words = [*PROGRAM, "monitor", str(lines), "--follow", *PAIR, *said, "--state", str(state), "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        try:
            until(lambda: state.exists() or process.poll() is not None)
            with lines.open("ab") as file:
                file.write(b"\n" + OLD[:98])
            newer = tmp_path / "newer.txt"
            newer.write_bytes(NEW)
            os.replace(newer, lines)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    if not said:
        (last,) = printed(out.decode())
        assert (process.returncode, last["seen"], last["drift_detected"]) == (2, 100, False)
        assert b"was replaced, after 100 records" in err
        return
    alarm, last = printed(out.decode())
    assert (process.returncode, err) == (0, b"")
    assert 100 < alarm["seen"] <= last["seen"] < 200


def test_kill_and_resume_prints_the_alarm_that_was_lost(tmp_path: Path, run: Run) -> None:
    """Killed before the reader saw anything, and again: the state has it."""
    lines, state = tmp_path / "values.txt", tmp_path / "state.json"
    lines.write_bytes(OLD)
    words = [*PROGRAM, "monitor", str(lines), "--follow", *PAIR, "--state", str(state)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, env=ENVIRONMENT) as process:
        until(lambda: state.exists() or process.poll() is not None)
        with lines.open("ab") as file:
            file.write(NEW)
        process.wait(60)  # it ends with the alarm, which nobody has read
    (alarm,) = printed(run("monitor", lines, "--state", state).out)
    assert 200 < alarm["seen"] < 300


def test_a_killed_monitor_goes_on(tmp_path: Path, run: Run) -> None:
    lines, state = tmp_path / "values.txt", tmp_path / "state.json"
    lines.write_bytes(OLD)
    words = [*PROGRAM, "monitor", str(lines), "--follow", *PAIR, "--state", str(state)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, env=ENVIRONMENT) as process:
        until(lambda: state.exists() or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
    lines.write_bytes(OLD + NEW)
    (alarm,) = printed(run("monitor", lines, "--state", state).out)
    assert 200 < alarm["seen"] < 300


def test_every_entrance_reads_a_field_alike(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that are labels of one entrance are labels of all; those that are odd are odd everywhere."""
    laws = ("--null", 'categorical("007"=0.95, x=0.05)', "--alternative", 'categorical("007"=0.05, x=0.95)')
    asked = (*laws, "--epsilon", "8", "--json")
    score = pt.design({"007": 0.95, "x": 0.05}, {"007": 0.05, "x": 0.95}, epsilon=8, n=1).score
    seen: list[int] = []
    monkeypatch.setattr(pt.Monitor, "update_many", lambda _, batch, **_place: seen.append(engines.total(score, batch)))
    for field in (b"007", b'"007"', b" 007", b"7", "\u00a0007".encode()):
        lines = (field + b"\r\n") * 400
        file, plain = tmp_path / "data.csv", tmp_path / "lines.txt"
        file.write_bytes(b"\xef\xbb\xbflabel\r\n" + lines)
        plain.write_bytes(b"\xef\xbb\xbf" + lines)
        known = b"007" in (field, field.strip(b'"'))
        for found in (run("test", file, *asked), run("test", "-", *asked, stdin=plain.read_bytes())):
            assert (found.document["statistic"] > 500) == known, field  # 400 records that count nothing sum to 0
        seen.clear()
        run("monitor", plain, *asked)
        run("monitor", *asked, stdin=plain.read_bytes())
        assert seen == 2 * [engines.total(score, file)], field


def test_lines_without_end_take_bounded_memory(tmp_path: Path) -> None:
    where = tmp_path / "long.txt"
    where.write_bytes(b"1" * (3 * LONGEST_LINE) + b"\n1\n")
    records = [line for batch in arriving(str(where)) for line in batch]
    assert (records[0][:1], records[1:]) == (NO_TEXT, [b"1"])
    assert len(records[0]) < 2 * LONGEST_LINE
