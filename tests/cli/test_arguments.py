"""What commands write: never over what they read, however it is named; over other files only when told to. No hangs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import privatest as pt
from privatest import report
from privatest.cli import output
from tests.cli.conftest import Run

LAWS = ("--null", "bernoulli(0.3)", "--alternative", "bernoulli(0.7)", "--epsilon", "1")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with everything that a command may read, and other names for it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("x\n" + "0\n1\n" * 30)
    (tmp_path / "lines.txt").write_text("0\n1\n" * 30)
    (tmp_path / "problem.toml").write_text('null = "bernoulli(0.3)"\n')
    (tmp_path / "design.json").write_text(
        pt.design("bernoulli(0.3)", "bernoulli(0.7)", epsilon=1, n=60).to_json() + "\n"
    )
    with pt.Ledger(tmp_path / "ledger.db") as ledger:
        ledger.grant("d", epsilon=50)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "rows.csv").write_text("x\n" + "0\n1\n" * 30)
    (tmp_path / "linked").symlink_to(tmp_path / "folder", target_is_directory=True)
    return tmp_path


def spellings(path: Path) -> list[str]:
    """Names that lead to a file."""
    beside = path.parent
    links = [beside / f"soft-{path.name}", beside / f"hard-{path.name}"]
    links[0].symlink_to(path)
    os.link(path, links[1])
    relative = os.path.relpath(path)
    return [str(path), relative, f"./{relative}", f"folder/../{relative}", *map(str, links)]


PAID = ("--ledger", "ledger.db", "--dataset", "d", "--request", "r")
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "test": (
        ("test", "rows.csv", *LAWS, *PAID, "--problem", "problem.toml"),
        ("rows.csv", "ledger.db", "problem.toml"),
    ),
    "design": (("test", "rows.csv", "--design", "design.json"), ("rows.csv", "design.json")),
    "folder": (("test", "folder", *LAWS), ("folder/rows.csv", "linked/rows.csv")),
    "glob": (("test", "folder/*.csv", *LAWS), ("folder/rows.csv",)),
    "detect": (("detect", "rows.csv", *LAWS, *PAID), ("rows.csv", "ledger.db")),
    "fit": (("fit", "rows.csv", "--null", "bernoulli(0.5)", "--distance", "0.4", "--epsilon", "1"), ("rows.csv",)),
    "plan": (("plan", *LAWS, "--problem", "problem.toml"), ("problem.toml",)),
    "sqlite": (("test", "rows.csv", *LAWS, "--ledger", "sqlite:///ledger.db", *PAID[2:]), ("ledger.db",)),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_that_is_read_is_written_over(command: str, place: Path, run: Run) -> None:
    words, read = COMMANDS[command]
    kept = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    for name in read:
        for spelt in spellings(place / name) if "linked" not in name else [name]:
            for option in ("--save", "--report"):
                for forced in ((), ("--force",)):
                    found = run(*words, option, spelt, *forced)
                    assert (found.code, found.refused) == (2, True), (option, spelt)
                    assert "reads" in found.err
    assert {path: path.read_bytes() for path in kept} == kept


def test_a_ledger_that_is_not_there_yet_is_kept_free(place: Path, run: Run) -> None:
    for target in ("new.db", "./new.db", str(place / "new.db"), "new.db-wal"):
        found = run("test", "rows.csv", *LAWS, "--ledger", "new.db", *PAID[2:], "--report", target)
        assert (found.code, "reads" in found.err) == (2, True)
    found = run("plan", *LAWS, "--save", "one", "--report", "one")
    assert (found.code, "already" in found.err) == (2, True)
    found = run("monitor", "lines.txt", *LAWS, "--state", "lines.txt")
    assert (found.code, "reads" in found.err) == (2, True)
    assert sorted(path.name for path in place.glob("*.db*")) == ["ledger.db"]


def test_files_that_are_not_ours_need_force(place: Path, run: Run) -> None:
    precious = place / "thesis.html"
    for option in ("--save", "--report", "--save-design"):
        precious.write_text("<!DOCTYPE html><p>Ten years of work")
        found = run("plan", *LAWS, option, precious)
        assert found.refused
        assert "--force" in found.err
        assert "Ten years" in precious.read_text()
        assert run("plan", *LAWS, option, precious, "--force").code == 0
        assert "Ten years" not in precious.read_text()
        assert run("plan", *LAWS, option, precious).code == 0  # it is ours now
        precious.write_text("")
        assert run("plan", *LAWS, option, precious).code == 0


@pytest.mark.skipif(os.name != "posix", reason="named pipes")
class TestPipes:
    """Pipes with nobody at the other end, or somebody silent."""

    @pytest.fixture(params=["nobody", "silent"])
    def pipe(self, place: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.setattr(output, "PATIENCE", 0.2)
        os.mkfifo(place / "pipe.csv")
        end = os.open(place / "pipe.csv", os.O_RDWR) if request.param == "silent" else None
        yield "pipe.csv"
        if end is not None:
            os.close(end)

    def test_where_a_file_is_due(self, pipe: str, run: Run) -> None:
        for words in (
            ("test", pipe, *LAWS),
            ("detect", pipe, *LAWS),
            ("fit", pipe, "--null", "bernoulli(0.5)", "--distance", "0.4", "--epsilon", "1"),
            ("plan", "--problem", pipe),
            ("test", "rows.csv", "--design", pipe),
            ("plan", *LAWS, "--report", pipe),
            ("plan", *LAWS, "--save", pipe, "--force"),
            ("monitor", "lines.txt", *LAWS, "--state", pipe),
        ):
            found = run(*words)
            assert (found.code, found.refused) == (2, True), (words, found.err)
            assert "pipe" in found.err

    def test_what_is_wrong_is_said_before_a_monitor_waits(self, pipe: str, run: Run) -> None:
        assert run("monitor", pipe, "--null", "bernoulli(0.3)", "--alternative", "nonsense", "--epsilon", "1").refused


@pytest.mark.skipif(os.name != "posix", reason="devices")
def test_devices_and_pipes_are_never_replaced(place: Path, run: Run) -> None:
    """A report or a state takes the place of what is there: that of a device would be gone for everybody."""
    (place / "device").symlink_to("/dev/null")
    os.mkfifo(place / "pipe")
    kept = {name: os.lstat(place / name).st_ino for name in ("device", "pipe")}
    for name in kept:
        for words in (
            *(("plan", *LAWS, option, name, "--force") for option in ("--save", "--report", "--save-design")),
            ("test", "rows.csv", *LAWS, "--report", name, "--force"),
            ("monitor", "lines.txt", *LAWS, "--state", name),
            ("test", "rows.csv", *LAWS, "--ledger", name, *PAID[2:]),
            ("ledger", "grant", "--ledger", name, "--dataset", "d", "--epsilon", "1"),
        ):
            found = run(*words)
            assert (found.code, found.refused) == (2, True), (words, found.err)
            assert "a pipe or a device" in found.err
        test = pt.design("bernoulli(0.3)", "bernoulli(0.7)", epsilon=1, n=60)
        with pytest.raises(pt.errors.InvalidInput, match="pipe or a device"):
            report.write(place / name, question={}, design=test, kind="plan")
        with pytest.raises(pt.errors.InvalidInput, match="pipe or a device"):
            pt.Monitor("bernoulli(0.3)", "bernoulli(0.7)", epsilon=1).save(place / name)
    assert {name: os.lstat(place / name).st_ino for name in kept} == kept
    assert not list(Path("/dev").glob("null*.lock"))


def test_a_problem_file_may_take_a_change_for_granted_and_the_command_line_wins(run: Run, tmp_path: Path) -> None:
    problem, again, lines = tmp_path / "p.toml", tmp_path / "again.toml", b"0\n" * 200 + b"1\n" * 200
    problem.write_text(
        'null = "bernoulli(0.2)"\nalternative = "bernoulli(0.8)"\nepsilon = 2\nassume_change = true\ndata = "-"\n'
    )
    words = ("detect", "--problem", problem, "--json")
    certain = run(*words, "--save", again, stdin=lines)
    assert certain.document["false_alarm"] is None
    assert "assume_change = true" in again.read_text()
    assert 0 < run(*words, "--false-alarm", "0.01", stdin=lines).document["false_alarm"] <= 0.01
    problem.write_text(problem.read_text().replace("assume_change = true", "false_alarm = 0.01"))
    assert 0 < run(*words, stdin=lines).document["false_alarm"] <= 0.01
    assert run(*words, "--assume-change", stdin=lines).document["false_alarm"] is None
