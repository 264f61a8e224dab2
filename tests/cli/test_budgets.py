"""Who pays, on the command line: recorded answers, what fails after the charge, grants that name files, passwords."""

from __future__ import annotations

import re
import sqlite3
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from privatest import Ledger, count_records
from privatest.errors import InvalidData
from tests.cli.conftest import ENVIRONMENT, PROGRAM, Run

LAWS = ("--null", "bernoulli(0.2)", "--alternative", "bernoulli(0.8)", "--epsilon", "0.5")
QUESTIONS: dict[str, tuple[str, ...]] = {
    "test": (*LAWS, "--n", "400"),
    "detect": LAWS,
    "fit": ("--null", "bernoulli(0.2)", "--distance", "0.5", "--epsilon", "0.5"),
}
NEW, OLD = "This answer is not new", "were not read"


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


@pytest.mark.parametrize("kind", QUESTIONS)
def test_an_answer_that_is_not_new_says_so_everywhere(
    kind: str, run: Run, files: Path, paying: tuple[str, ...]
) -> None:
    words, page = (*QUESTIONS[kind], *paying, "--request", "r"), files / "report.html"
    first = run(kind, files / "a.csv", *words, "--report", page)
    assert first.code == 0
    fresh = page.read_text()
    assert NEW not in first.out + fresh
    again = run(kind, files / "b.csv", *words, "--report", page)
    told = " ".join(again.out.split())
    assert re.search(
        r"not new: recorded on 20\d\d-\d\d-\d\d [\d:]{8} UTC as request 'r' of data set 'd', for '\S*a\.csv'", told
    )
    assert f"nothing charged, the data given now ('{files / 'b.csv'}') were not read" in told
    replayed = page.read_text()
    assert NEW in replayed
    assert OLD in replayed
    assert "Under another name it is drawn with new noise" in fresh
    assert "Asked again, a result" not in fresh + replayed
    (pin,) = {line for line in (first.out + again.out).splitlines() if re.fullmatch(r"3:[0-9a-f]{64}", line)}
    for text in (fresh, replayed):
        assert f'<pre class="line">{pin}</pre>' in text
    assert run("ledger", "verify", "--ledger", files / "ledger.db", "--since", pin).code == 0
    assert spent(files) == 0.5


def test_the_fingerprint_is_one_line_at_any_width(
    run: Run, files: Path, paying: tuple[str, ...], monkeypatch: Any
) -> None:
    run("test", files / "a.csv", *QUESTIONS["test"], *paying, "--request", "r")
    for columns in ("20", "80", "300"):
        monkeypatch.setenv("COLUMNS", columns)
        for command in ("show", "verify"):
            found = run("ledger", command, "--ledger", files / "ledger.db")
            assert re.search(r"^3:[0-9a-f]{64}$", found.out, re.MULTILINE)


def test_verify_says_what_it_cannot_see_and_since_sees_it(run: Run, files: Path, paying: tuple[str, ...]) -> None:
    ledger = files / "ledger.db"
    for request in "rs":
        run("test", files / "a.csv", *QUESTIONS["test"], *paying, "--request", request)
    pin = run("ledger", "verify", "--ledger", ledger, "--json").document["fingerprint"]
    with sqlite3.connect(ledger) as raw:
        raw.execute("DELETE FROM privatest_ledger_rows WHERE sequence > 1")
        raw.execute("UPDATE privatest_ledger_head SET count = 1, hash = (SELECT hash FROM privatest_ledger_rows)")
    raw.close()
    alone = run("ledger", "verify", "--ledger", ledger)
    assert alone.code == 0
    assert "this cannot see that rows were removed" in " ".join(alone.out.split())
    since = run("ledger", "verify", "--ledger", ledger, "--since", pin)
    assert (since.code, since.refused) == (2, True)
    assert "is missing: the fingerprint" in since.err


@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_a_full_device_after_the_charge_is_4_and_the_answer_can_be_had_again(
    kind: str, as_json: tuple[str, ...], run: Run, files: Path, paying: tuple[str, ...]
) -> None:
    words = (kind, str(files / "a.csv"), *QUESTIONS[kind], *paying, "--request", "r", *as_json)
    for _ in range(2):
        with open("/dev/full", "wb") as full:
            found = subprocess.run(
                [*PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, env=ENVIRONMENT
            )
        assert found.returncode == 4
        assert found.stderr.count("\n") == 1
        assert "No space left on device. Request 'r' of data set 'd' is charged, its answer recorded" in found.stderr
        assert "the same command gives it again, without a new charge" in found.stderr
    assert run(*words).code == 0
    assert spent(files) == 0.5


def test_a_full_device_without_a_ledger_says_that_the_answer_is_lost(files: Path) -> None:
    words = ("test", str(files / "a.csv"), *QUESTIONS["test"], "--column", "x")
    with open("/dev/full", "wb") as full:
        found = subprocess.run(
            [*PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, env=ENVIRONMENT
        )
    assert found.returncode == 4
    assert "asking again spends epsilon again" in found.stderr


def test_what_fails_while_the_answer_is_drawn_is_4_and_before_it_is_2(
    run: Run, files: Path, paying: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("test", files / "a.csv", *QUESTIONS["test"], *paying, "--request", "r")
    for failing, code in ((lambda *_: 1 / 0, 4), (lambda *_: (_ for _ in ()).throw(KeyboardInterrupt), 130)):
        with monkeypatch.context() as broken:
            broken.setattr("privatest.privacy.tulap.Tulap._draw_doubled", failing)
            found = run(*words)
        assert found.code == code
        assert "stays charged for request 'r'. The same request again completes it, without a new charge." in found.err
        assert found.err.count("\n") == 1
    assert spent(files) == 0.5
    missing = run("test", files / "gone.csv", *QUESTIONS["test"], *paying, "--request", "s")
    assert (missing.code, spent(files)) == (2, 0.5)
    assert run(*words).code == 0
    assert spent(files) == 0.5


def test_a_report_that_cannot_be_written_after_the_charge_is_4(
    run: Run, files: Path, paying: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    from privatest import report
    from privatest.errors import InvalidInput

    def refuse(*_: Any, **__: Any) -> None:
        raise InvalidInput("the disk is full")

    monkeypatch.setattr(report, "write", refuse)
    found = run("fit", files / "a.csv", *QUESTIONS["fit"], *paying, "--request", "r", "--report", files / "page.html")
    assert found.code == 4
    assert "the disk is full" in found.err
    assert "without a new charge" in found.err


def test_a_monitor_that_fails_after_the_charge_says_how_to_go_on(
    run: Run, files: Path, paying: tuple[str, ...]
) -> None:
    lines = files / "values.txt"
    lines.write_text("0\n" * 50 + "1\n" * 400)
    words = [
        "monitor",
        str(lines),
        *LAWS[:4],
        "--epsilon",
        "1",
        *paying[2:],
        "--request",
        "m",
        "--state",
        str(files / "s.json"),
    ]
    with open("/dev/full", "wb") as full:
        found = subprocess.run(
            [*PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, env=ENVIRONMENT
        )
    assert found.returncode == 4
    assert "is charged, its monitor kept: the same command goes on from" in found.stderr
    again = run(*words)
    assert again.code == 0
    assert again.document["seen"] > 0
    assert spent(files) == 1


def test_a_grant_names_its_files(run: Run, files: Path, paying: tuple[str, ...]) -> None:
    grant = ("ledger", "grant", "--ledger", files / "ledger.db", "--epsilon", "2", "--dataset")
    named = run(*grant, "d", "--covers", files / "a.csv", "--covers", files / "c*.csv", "--json")
    assert named.document["covers"] == sorted([str(files / "a.csv"), str(files / "c*.csv")])
    refused = run("test", files / "b.csv", *QUESTIONS["test"], *paying, "--request", "r")
    assert (refused.code, refused.refused, spent(files)) == (2, True, 0)
    assert "is granted for 'a.csv', 'c*.csv'" in refused.err
    piped = run("test", "-", *QUESTIONS["test"], *paying[2:], "--request", "r", stdin=b"0\n" * 400)
    assert (piped.code, spent(files)) == (2, 0)
    assert run("test", files / "a.csv", *QUESTIONS["test"], *paying, "--request", "r").code == 0
    assert run(*grant, "other").code == 0
    other = run("test", files / "a.csv", *QUESTIONS["test"], *paying[:-1], "other", "--request", "r")
    assert (other.code, "belongs to data set 'd'" in other.err) == (2, True)


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


@pytest.mark.parametrize("before", [" ", "jdbc:", "from "])
@pytest.mark.parametrize(
    "address", ["postgresql://ann:s3/cret@127.0.0.1:9/d::t", "postgresql://127.0.0.1:9/d?password=s3cret"]
)
def test_no_password_is_saved_of_what_is_not_quite_an_address(before: str, address: str, run: Run, files: Path) -> None:
    found = run("test", before + address, *QUESTIONS["test"], "--save", files / "problem.toml")
    assert found.code == 2
    for shown in ((files / "problem.toml").read_text(), found.out, found.err):
        assert "cret" not in shown


def test_a_locked_ledger_is_not_waited_for_any_longer(run: Run, files: Path, paying: tuple[str, ...]) -> None:
    with sqlite3.connect(files / "ledger.db", isolation_level=None) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        start = time.monotonic()
        assert run("test", files / "a.csv", *LAWS, *paying, "--request", "r", "--ledger-timeout", "0.1").code == 2
        assert time.monotonic() - start < 25, "without the option it waits for 30 seconds"
        holder.execute("ROLLBACK")
    holder.close()
