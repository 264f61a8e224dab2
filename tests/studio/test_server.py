"""The studio as a process, and without its extra."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from privatest import errors
from privatest.studio import create_app, serve
from privatest.studio.server import allowed_hosts

HERE = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def test_it_listens_on_loopback_prints_the_address_once_and_ends_on_interrupt(tmp_path: Path) -> None:
    code = f"from privatest.studio import serve; serve(open_browser=False, folder={str(tmp_path)!r})"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, env=HERE, text=True)
    try:
        check(process)
    finally:
        process.kill()
        process.communicate()


def check(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    line = process.stderr.readline()
    match = re.search(r"(http://127\.0\.0\.1:\d+)/\?token=(\S+)", line)
    assert match is not None, line
    address, token = match.groups()
    with httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
        assert client.get("/", params={"token": token}).status_code == 303
        assert client.get("/").status_code == 200
        assert client.get("/", params={"token": "wrong"}, headers={"cookie": ""}).status_code in {200, 401}
        answer = client.post(
            "/api/look", json={"null": "bernoulli(0.4)", "alternative": "bernoulli(0.6)", "epsilon": 1}
        )
        assert answer.status_code == 200
        assert "server" not in answer.headers
        assert client.get("/api/about").json()["ledger"] is False
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=20)[1]
    assert process.returncode in {0, -signal.SIGINT}
    assert token not in rest
    assert "Traceback" not in rest


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


@pytest.mark.parametrize("size", [0, -1, 1.5, True, None])
def test_a_bad_limit_is_refused(size: Any) -> None:
    with pytest.raises(errors.InvalidInput, match="max_upload"):
        create_app(max_upload=size)


def test_only_loopback_names_are_served_unless_told_otherwise() -> None:
    assert set(allowed_hosts("127.0.0.1")) == {"127.0.0.1", "localhost", "::1"}
    assert "studio.example" in allowed_hosts("studio.example")


@pytest.mark.parametrize("name", ["fastapi", "uvicorn"])
def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for module in [
        each for each in sys.modules if each.startswith(("privatest.studio.app", "privatest.studio.server"))
    ]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(errors.MissingExtra, match=r"pip install privatest\[studio\]"):
        serve(open_browser=False) if name == "uvicorn" else create_app()


def test_importing_the_studio_imports_no_extra() -> None:
    code = "import sys, privatest.studio; print({'fastapi', 'uvicorn', 'plotly', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=HERE, check=True)
    assert done.stdout.strip() == "set()"
