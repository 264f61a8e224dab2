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
from privatest.cli.streams import LONGEST_LINE, NO_TEXT, arriving
from tests.cli.conftest import ENVIRONMENT, PROGRAM, Run
from tests.cli.test_exit_codes import until

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
    assert (fewer.code, "Was the file replaced?" in fewer.err) == (2, True)


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


def test_following_a_file_that_grows_and_is_replaced(tmp_path: Path) -> None:
    lines, state = tmp_path / "values.txt", tmp_path / "state.json"
    lines.write_bytes(OLD[:100] + b"0")  # the last line is not complete yet
    words = [*PROGRAM, "monitor", str(lines), "--follow", *PAIR, "--state", str(state), "--json"]
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
    monkeypatch.setattr(pt.Monitor, "update_many", lambda _, batch: seen.append(engines.total(score, batch)))
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
