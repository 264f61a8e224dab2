"""The studio as a process, and without its extra."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
import pytest

from privatest import errors
from privatest.studio import create_app, serve

COIN = {"null": "bernoulli(0.4)", "alternative": "bernoulli(0.6)", "epsilon": 1}
LONG = {"null": "cauchy(0, 1)", "alternative": "cauchy(0.5, 1)", "epsilon": 0.1}
HERE = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def heed() -> None:
    """Whoever runs the tests may ignore these, and a shell does so for what runs behind it."""
    for name in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_DFL)


@contextlib.contextmanager
def started(more: str = "open_browser=False", **environment: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """A studio in a process of its own: the process, its address and its launch word."""
    code = f"from privatest.studio import serve; serve({more})"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env=HERE | environment,
        text=True,
        preexec_fn=heed,
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        match = re.search(r"(http://127\.0\.0\.1:\d+)/#launch=(\S+)", line)
        assert match is not None, line
        yield process, *match.groups()
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def client_of(address: str, word: str) -> Iterator[httpx.Client]:
    """Somebody who has traded the word for the key."""
    with httpx.Client(base_url=address, trust_env=False, timeout=300) as client:
        end = time.monotonic() + 300
        while time.monotonic() < end:
            with contextlib.suppress(httpx.ConnectError):
                client.get("/")
                break
            time.sleep(0.05)
        key = client.post("/api/key", headers={"authorization": f"Launch {word}"}).json()["key"]
        client.headers["authorization"] = f"Bearer {key}"
        yield client


def test_it_listens_on_loopback_prints_the_address_once_and_ends_on_interrupt(tmp_path: Path) -> None:
    with started(f"open_browser=False, folder={str(tmp_path)!r}") as (process, address, word):
        with client_of(address, word) as client:
            assert client.get("/").status_code == 200
            assert client.post("/api/key", headers={"authorization": f"Launch {word}"}).status_code == 401
            answer = client.post("/api/look", json=COIN)
            assert answer.status_code == 200
            assert "server" not in answer.headers
            assert client.get("/api/about").json()["ledger"] is False
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=300)[1]
        assert process.returncode in {0, -signal.SIGINT}
        assert word not in rest
        assert "Traceback" not in rest


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])  # SIGINT: above
def test_however_it_ends_no_upload_and_no_process_is_left(tmp_path: Path, name: str) -> None:
    """Even while something is being computed."""
    with started(TMPDIR=str(tmp_path)) as (process, address, word):
        with client_of(address, word) as client:
            assert client.post("/api/upload", params={"name": "a.csv"}, content=b"x\n1\n").status_code == 200
            assert list(tmp_path.glob("privatest-studio-*/upload-1.csv"))
            workers = children(process.pid)
            assert workers
            with contextlib.suppress(httpx.ReadTimeout):
                client.post("/api/compare", json=LONG, timeout=httpx.Timeout(300, read=1))
            process.send_signal(getattr(signal, name))
            process.wait(300)
        assert list(tmp_path.glob("privatest-*")) == []
        assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def children(pid: int) -> list[int]:
    """The processes that a process started."""
    found = Path(f"/proc/{pid}/task/{pid}/children")
    if not found.exists():
        pytest.skip("this system does not list a process's children")
    names: list[str] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            names += (task / "children").read_text().split()
    return [int(name) for name in names]


def test_a_browser_is_told_a_file_that_others_cannot_read_and_no_secret(tmp_path: Path) -> None:
    """Every user of a machine can read every command line."""
    told, browser = tmp_path / "told", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$*" > {told}.part && mv {told}.part {told}\n')
    browser.chmod(0o700)
    with started("", BROWSER=f"{browser} %s", TMPDIR=str(tmp_path)) as (process, address, word):
        end = time.monotonic() + 300
        while not told.exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        opened = urlsplit(told.read_text())
        assert opened.scheme == "file"
        assert word not in told.read_text()
        file = Path(unquote(opened.path))
        assert f"{address}/#launch={word}" in file.read_text()
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        with client_of(address, word):
            while file.exists():  # the word is used: the file has done its work
                assert time.monotonic() < end
                time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.wait(300)


@pytest.mark.parametrize("path", ["typo.db", "no/such/folder/ledger.db"])
def test_a_ledger_that_is_not_there_is_not_made(tmp_path: Path, path: str) -> None:
    with pytest.raises(errors.LedgerUnavailable):  # first: a studio that is served does not come back
        create_app(ledger=tmp_path / path)
    with pytest.raises(errors.LedgerUnavailable, match="ledger grant"):
        serve(open_browser=False, ledger=str(tmp_path / path))
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(errors.InvalidInput, match="port"):
        serve(port=taken.getsockname()[1], open_browser=False)


@pytest.mark.parametrize(
    "bad",
    [{"port": -1}, {"port": 70000}, {"port": True}, {"host": "no.such.host.invalid"}, {"folder": "/nowhere/at/all"}],
)
def test_bad_settings_are_refused_at_start(bad: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput):
        serve(open_browser=False, **bad)


@pytest.mark.parametrize("name", ["fastapi", "uvicorn"])
def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for module in [each for each in sys.modules if each.startswith(("privatest.studio.app", "privatest.studio.app"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(errors.MissingExtra, match=r'pip install "fastapi>='):
        serve(open_browser=False) if name == "uvicorn" else create_app()
