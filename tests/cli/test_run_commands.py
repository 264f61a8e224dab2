"""monitor: alarms as lines of JSON, broken lines, state files, files that grow and are replaced.

Who pays, on the command line: recorded answers, what fails after the charge, grants that name files, passwords.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import sqlite3
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

import privatest as pt
from privatest import Ledger, engines
from privatest.data import count_records
from privatest.errors import InvalidData
from tests.cli.conftest import ENVIRONMENT, PROGRAM, Run
from tests.cli.test_commands import until
from tests.ready import command_line

RARELY = ("--mean-time-between-false-alarms", "1e9")  # so that no test here fails for a false alarm
PAIR = ("--null", "bernoulli(0.1)", "--alternative", "bernoulli(0.9)", "--epsilon", "2", *RARELY)
OLD, NEW = b"0\n" * 200, b"1\n" * 200


def printed(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_an_alarm_is_one_line_of_json(run: Run) -> None:
    found = run("monitor", *PAIR, stdin=OLD + NEW)
    (alarm,) = printed(found.out)
    assert (found.code, found.err) == (0, "")
    assert set(alarm) >= {"index", "accuracy", "seen", "epsilon", "private"}
    assert abs(alarm["index"] - 200) <= 4 * alarm["accuracy"]
    assert 200 < alarm["seen"] < 300
    assert run("monitor", *PAIR, "--exit-code", stdin=OLD + NEW).code == 1
    quiet = run("monitor", *PAIR, "--exit-code", "--json", stdin=OLD)
    assert quiet.code == 0
    (last,) = printed(quiet.out)
    assert (last["seen"], last["drift_detected"], last["private"]) == (200, False, True)


EITHER = ("--null", "bernoulli(0.1)", "--alternative", "bernoulli(0.9)", "--epsilon", "2", "--schedule", "8,5")


def test_a_verdict_is_one_line_of_json(run: Run, tmp_path: Path) -> None:
    found = run("sequential", *EITHER, stdin=NEW)
    (verdict,) = printed(found.out)
    assert (found.code, found.err) == (0, "")
    assert set(verdict) >= {"decision", "seen", "evalue", "epsilon", "private"}
    assert run("sequential", *EITHER, "--alpha", "1e-6", "--beta", "1e-6", "--exit-code", stdin=NEW).code == 1
    assert run("sequential", *EITHER, stdin=b"1\n" * 5).err == "privatest: No verdict yet, after 5 records.\n"
    open_still = run("sequential", *EITHER, "--json", stdin=b"1\n" * 5)
    (last,) = printed(open_still.out)
    assert (last["seen"], last["decided"], last["evalue"], last["walk"]) == (5, False, 1.0, [])
    assert last["expected_n"][0] < last["fixed_n"] + 20
    page = tmp_path / "report.html"
    run("sequential", *EITHER, "--report", str(page), stdin=NEW)
    assert "Private sequential test" in page.read_text()
    assert "decided for" in page.read_text()
    page.write_text("not ours")
    assert run("sequential", *EITHER, "--report", str(page), stdin=NEW).refused


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--schedule", "8"), "schedule"),
        (("--schedule", "a,b"), "--schedule 'a,b'"),
        (("--most", "3"), "--most 3 is smaller than the first block of 8"),
        (("--alpha", "0.6", "--beta", "0.5"), "add up to less than 1"),
        (("--aim", "both"), "aim"),
        (("--follow",), "--follow needs the name of a file"),
    ],
)
def test_a_sequential_test_refuses(words: tuple[str, ...], message: str, run: Run) -> None:
    found = run("sequential", *EITHER, *words, stdin=NEW)
    assert found.refused
    assert message in found.err


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
    assert "or was cut short" in fewer.err
    assert "--new-file" in fewer.err
    assert printed(run("monitor", lines, "--state", state, "--go-on", "--new-file", "--json").out)[-1]["seen"] > 200


def test_a_rotated_file_is_read_from_its_start_after_a_restart_if_the_user_says_so(run: Run, tmp_path: Path) -> None:
    """No line that was seen of the old file is taken off the new one; the rest of the old one is read by its name."""
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
    assert "may be another file than the one that was read before, or was cut short, after 200 records" in refused.err
    assert "--new-file" in refused.err
    assert state.read_bytes() == before
    assert printed(run("monitor", tmp_path / "values.txt.1", "--state", state, "--json").out)[-1]["seen"] == 203
    (alarm,) = printed(run("monitor", lines, "--state", state, "--new-file").out)
    assert printed(run("monitor", lines, "--state", state, "--new-file").out) == [alarm]
    assert 203 < alarm["seen"] < 300


def test_a_rewritten_file_is_not_released_twice(run: Run, tmp_path: Path) -> None:
    state, lines = tmp_path / "state.json", tmp_path / "values.txt"
    lines.write_bytes(OLD)
    run("monitor", lines, *PAIR, "--state", state)
    newer = tmp_path / "newer.txt"
    newer.write_bytes(OLD + OLD[:40])
    os.replace(newer, lines)
    assert run("monitor", lines, "--state", state).code == 2
    piped = run("monitor", "--from-start", "--state", state, "--json", stdin=lines.read_bytes())
    assert printed(piped.out)[-1]["seen"] == 220
    os.unlink(lines)
    lines.write_bytes(OLD)  # where the system gives it the old one's number, it is another one all the same
    assert run("monitor", lines, "--state", state).code == 2


def test_a_grant_says_whom_it_protects(run: Run, tmp_path: Path) -> None:
    ledger, table = tmp_path / "ledger.db", tmp_path / "visits.csv"
    table.write_text("x,who\n" + "".join(f"{i % 2},{i}\n" for i in range(20)))
    where = ("--ledger", ledger, "--dataset", "claims")
    assert run("ledger", "grant", *where, "--epsilon", "1", "--neighbours", "swap").code == 2
    assert not ledger.exists()
    granted = run("ledger", "grant", *where, "--epsilon", "2", "--unit", "who", "--json").document
    assert (granted["neighbours"], granted["unit"]) == ("replace", "who")
    ask = ("test", table, *PAIR[:4], "--epsilon", "0.5", "--column", "x", *where)
    refused = run(*ask, "--request", "a")
    assert refused.code == 2
    assert "Ask with --unit 'who', or have the budget granted for what is asked" in refused.err
    assert run(*ask, "--request", "a", "--unit", "who").code == 0
    assert run(*ask, "--request", "b", "--unit", "who", "--neighbours", "add-remove", "--n", "20").code == 0
    (line,) = run("ledger", "show", *where, "--json").document["datasets"]
    assert (line["spent"], line["neighbours"], line["unit"]) == (1.5, "replace", "who")
    assert re.search(r"claims +2 +1\.5 +0\.5 +replace +who", run("ledger", "show", *where).out)
    assert "single records" not in run("ledger", "grant", *where, "--epsilon", "3", "--unit", "").out
    assert run("ledger", "show", *where, "--json").document["datasets"][0]["granted"] == 2, (
        "what was spent was persons'"
    )


def test_a_charged_monitor_goes_on_with_its_ledger(run: Run, tmp_path: Path) -> None:
    ledger, state, lines = tmp_path / "ledger.db", tmp_path / "state.json", tmp_path / "values.txt"
    lines.write_bytes(OLD)
    run("ledger", "grant", "--ledger", ledger, "--dataset", "claims", "--epsilon", "2")
    paying = ("--ledger", ledger, "--dataset", "claims", "--request", "watch")
    run("monitor", lines, *PAIR, *paying, "--state", state)
    old = state.read_bytes()
    lines.write_bytes(OLD + OLD)
    assert "give --ledger" in run("monitor", lines, "--state", state).err
    assert run("monitor", lines, "--state", state, "--ledger", ledger).code == 0
    elsewhere = tmp_path / "copy.json"
    elsewhere.write_bytes(old)
    found = run("monitor", lines, "--state", elsewhere, "--ledger", ledger)
    assert "was released up to record 400 from a newer state" in found.err
    assert found.code != 0
    assert run("ledger", "verify", "--ledger", ledger).code == 0


def test_following_a_file_that_grows_and_is_replaced(tmp_path: Path, run: Run) -> None:
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
            out, err = process.communicate(timeout=600)
        finally:
            process.kill()
    (last,) = printed(out.decode())
    seen = last["seen"]  # it was replaced before or after the reader came to the lines that were added
    assert (process.returncode, last["drift_detected"]) == (2, False)
    assert seen in (50, 100)
    assert f"was replaced or cut short, after {seen} records" in err.decode()
    alarm, last = printed(run("monitor", lines, "--state", state, "--new-file", "--json").out)
    assert seen < alarm["seen"] <= last["seen"] < 200


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


LAWS = ("--null", "bernoulli(0.2)", "--alternative", "bernoulli(0.8)", "--epsilon", "0.5")
QUESTIONS: dict[str, tuple[str, ...]] = {
    "test": (*LAWS, "--n", "400"),
    "detect": LAWS,
    "fit": ("--null", "bernoulli(0.2)", "--distance", "0.5", "--epsilon", "0.5"),
}
NOT_NEW, NOT_READ = "his answer is not new", "were not read"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x\n" + "0\n" * 400)
    return tmp_path


@pytest.fixture
def paying(run: Run, files: Path) -> tuple[str, ...]:
    run("ledger", "grant", "--ledger", files / "ledger.db", "--dataset", "d", "--epsilon", "2")
    return ("--column", "x", "--ledger", str(files / "ledger.db"), "--dataset", "d")


def spent(files: Path) -> float:
    with Ledger(files / "ledger.db") as ledger:
        return float(ledger.spent("d"))


@pytest.mark.parametrize(
    ("kind", "as_json"), [("test", ()), *zip(QUESTIONS, itertools.cycle([("--json",), ()]), strict=False)]
)
def test_a_full_device_after_the_charge_is_4_and_the_answer_can_be_had_again(
    kind: str, as_json: tuple[str, ...], run: Run, files: Path, paying: tuple[str, ...]
) -> None:
    words = (kind, str(files / "a.csv"), *QUESTIONS[kind], *paying, "--request", "r", *as_json)
    for _ in range(2):
        with open("/dev/full", "wb") as full:
            found = subprocess.run(
                [*command_line(), *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=600, env=ENVIRONMENT
            )
        assert found.returncode == 4
        assert found.stderr.count("\n") == 1
        assert "No space left on device. Request 'r' of data set 'd' is charged and its answer recorded" in found.stderr
        assert "The same command returns it without a new charge" in found.stderr
    assert run(*words).code == 0
    assert spent(files) == 0.5


def stop(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_what_fails_after_the_draw_is_4_and_before_it_is_2(
    run: Run, files: Path, paying: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("test", files / "a.csv", *QUESTIONS["test"], *paying, "--request", "r")
    with monkeypatch.context() as broken:
        broken.setattr("privatest.privacy.tulap.Tulap.draw_doubled", lambda *_: 1 / 0)
        assert run(*words).code == 2
    assert spent(files) == 0
    for failing, code in ((lambda *_, **__: 1 / 0, 4), (stop, 130)):
        with monkeypatch.context() as broken:
            broken.setattr("privatest.results.PrivateTest.release", failing)
            found = run(*words)
        assert found.code == code
        assert "stays charged for request 'r'. The same request again completes it, without a new charge." in found.err
        assert found.err.count("\n") == 1
    assert spent(files) == 0.5
    missing = run("test", files / "gone.csv", *QUESTIONS["test"], *paying, "--request", "s")
    assert (missing.code, spent(files)) == (2, 0.5)
    assert run(*words).code == 0
    assert spent(files) == 0.5


@pytest.mark.parametrize("password", ["s3cret", "s3/cret", "s3?cret", "s3#cret", "s3@cret", "s3:cret"])
@pytest.mark.parametrize("name", ["problem.toml", "problem.json"])
def test_no_password_is_saved(password: str, name: str, run: Run, files: Path) -> None:
    ledger = f"postgresql://ann:{password}@127.0.0.1:9/budgets?connect_timeout=2"
    data = f"postgresql://bob:{password}@127.0.0.1:9/claims::payments"
    saved = files / name
    words = ("--ledger", ledger, "--dataset", "d", "--request", "r", "--save", saved)
    found = run("test", data, *QUESTIONS["test"], "--column", "x", *words)
    assert found.code == 2
    text = saved.read_text()
    for shown in (text, found.out, found.err):
        assert "cret" not in shown
    with pytest.raises(InvalidData) as caught:
        count_records(data, column="x")
    assert "cret" not in str(caught.value)
    assert "s3" not in str(caught.value)
    assert "postgresql://ann@127.0.0.1:9/budgets?connect_timeout=2" in text
    assert "postgresql://bob@127.0.0.1:9/claims::payments" in text
    assert "The password of --ledger is not written" in found.err
    assert stat.S_ISREG(saved.stat().st_mode)


def test_a_locked_ledger_is_waited_for_as_long_as_asked(run: Run, files: Path, paying: tuple[str, ...]) -> None:
    with sqlite3.connect(files / "ledger.db", isolation_level=None) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        for words in (
            ("test", files / "a.csv", *QUESTIONS["test"], *paying, "--request", "r"),
            ("ledger", "show", "--ledger", files / "ledger.db"),
            ("ledger", "verify", "--ledger", files / "ledger.db"),
            ("ledger", "grant", "--ledger", files / "ledger.db", "--dataset", "d", "--epsilon", "1"),
        ):
            found = run(*words, "--ledger-timeout", "0.2")
            assert found.code == 2
            assert "is locked by somebody else" in found.err
            assert "--ledger-timeout" in found.err
        holder.execute("ROLLBACK")
    holder.close()
    assert run("test", "-", *LAWS, "--ledger-timeout", "3", stdin=b"0\n").code == 2
    assert spent(files) == 0


LOOKED = ("--null", "normal(0,1)", "--alternative", "normal(1,1)", "--column", "x")


@pytest.fixture
def comma(tmp_path: Path) -> str:
    rows = [f'"{i % 3},5",{"YES" if i % 2 else "no "}' for i in range(60)] + ["NA,yes", ",yes"]
    (tmp_path / "comma.csv").write_text("x,answer\n" + "\n".join(rows) + "\n")
    return str(tmp_path / "comma.csv")


def test_check_looks_and_says_that_it_is_not_private(run: Run, comma: str, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    found = run("check", comma, *LOOKED)
    assert found.code == 0
    assert found.out.startswith("NOT PRIVATE")
    assert "60" in found.out
    assert '--decimal ","' in " ".join(found.out.split())
    document = run("check", comma, *LOOKED, "--json").document
    assert document["warning"].startswith("NOT PRIVATE")
    assert (document["records"], document["missing"], document["unreadable"]) == (62, 1, 61)
    read = run("check", comma, *LOOKED, "--json", "--decimal", ",", "--missing", "NA,-").document
    assert (read["odd"], read["missing"]) == (2, 2)
    assert sorted(tmp_path.iterdir()) == before
