"""A studio with a folder of data, a ledger and a token, asked in-process or over the loopback interface."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.studio import create_app
from privatest.studio.job_queues import Lane, _Worker
from tests import ready

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # starlette would rather have httpx2, which is not what users of httpx have
    from fastapi.testclient import TestClient

TOKEN = "a-token-of-the-tests-0123456789"
HANGS = 600
"""Seconds after which something hangs: on a busy machine a computation may take a hundred times as long as alone."""
ASK = {"null": "bernoulli(0.4)", "alternative": "bernoulli(0.6)", "epsilon": 1.0}


@dataclass
class Studio:
    """The application and what it was given."""

    folder: Path
    ledger: pt.Ledger
    app: Any
    client: TestClient

    @property
    def ledger_bytes(self) -> bytes:
        """Everything that is on disk of the ledger."""
        files = sorted(self.folder.parent.glob("ledger.db*"))
        return b"".join(path.read_bytes() for path in files if not path.name.endswith("-shm"))

    def post(self, where: str, /, **body: Any) -> Any:
        return self.client.post(where, json=body)


def fill(folder: Path) -> None:
    """Coin tosses that look like P, tosses that change in the middle, and a column of numbers."""
    rng = np.random.default_rng(5)
    folder.mkdir()
    tosses = (rng.random(400) < 0.4).astype(int)
    (folder / "tosses.csv").write_text("toss,other\n" + "".join(f"{toss},x\n" for toss in tosses))
    changed = np.concatenate([rng.random(300) < 0.2, rng.random(300) < 0.8]).astype(int)
    (folder / "changed.csv").write_text("toss\n" + "".join(f"{toss}\n" for toss in changed))
    (folder / "stream.txt").write_text("".join(f"{toss}\n" for toss in changed))


def open_studio(where: Path, **more: Any) -> Studio:
    folder = where / "data"
    where.mkdir(exist_ok=True)
    fill(folder)
    ledger = pt.Ledger(where / "ledger.db")
    ledger.grant("claims", epsilon=3)
    ledger.grant("poor", epsilon=0.1)
    app = create_app(folder=folder, ledger=ledger, token=TOKEN, **more)
    for lane in app.state.lanes.values():
        if lane is not app.state.lanes["runs"]:  # whose limit is max_seconds
            lane._seconds = HANGS
    headers = {"authorization": f"Bearer {TOKEN}"}
    return Studio(folder, ledger, app, TestClient(app, base_url="http://127.0.0.1", headers=headers))


@contextlib.contextmanager
def begun(made: Studio) -> Iterator[Studio]:
    """A studio while its lifespan runs; its workers start when they are first asked, and not all six at once."""
    with contextlib.ExitStack() as stack:
        with cold():
            stack.enter_context(made.client)
        yield made


@pytest.fixture(autouse=True, scope="module")
def workers_are_forked(request: pytest.FixtureRequest) -> Iterator[None]:
    """From a process that has imported everything; only the tests of processes themselves start a program each."""
    plain, words = _Worker._started, ready.worker()  # here, and not in each lane's thread

    def forked(worker: _Worker) -> Any:
        command = worker._command
        if command[1:3] == ["-m", "privatest.studio.worker"]:
            worker._command = [*words, "0", command[4]]  # giving way to nobody
        try:
            return plain(worker)
        finally:
            worker._command = command

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("privatest.studio.monitors.Lane", lambda **said: Lane(**{**said, "seconds": HANGS}))
        if request.module.__name__.rpartition(".")[2] not in {"test_lanes", "test_server"}:
            patch.setattr(_Worker, "_started", forked)
        yield


@contextlib.contextmanager
def cold() -> Iterator[None]:
    """What begins in here starts no workers before they are asked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("privatest.studio.app._warm", lambda _lanes: None)
        yield


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """One studio for a whole file of tests; its lifespan runs."""
    with begun(open_studio(tmp_path_factory.mktemp("studio"), max_upload=200_000)) as made:
        yield made


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Studio]:
    """A studio of its own, for tests that spend."""
    with begun(open_studio(tmp_path)) as made:
        yield made


@dataclass
class Served:
    """A studio that listens."""

    studio: Studio
    address: str

    @property
    def first(self) -> str:
        """An address that opens one page."""
        return f"{self.address}/#launch={self.studio.app.state.launch()}"


@contextlib.contextmanager
def listening(made: Studio) -> Iterator[Served]:
    """A studio behind uvicorn on a free port, in a thread."""
    import uvicorn

    listens = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(made.app, log_level="error", access_log=False, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listens]}, daemon=True)
    with cold():
        thread.start()
        while not server.started:
            time.sleep(0.01)
    try:
        yield Served(made, f"http://127.0.0.1:{listens.getsockname()[1]}")
    finally:
        server.should_exit = True
        thread.join(10)
        listens.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One that listens, for a whole file of tests, with a budget for all of them."""
    made = open_studio(tmp_path_factory.mktemp("served"))
    made.ledger.grant("claims", epsilon=30)
    with listening(made) as found:
        yield found


HOSTILE = """
import sys
sys.argv = ["worker", *sys.argv[1:]]
from privatest.studio import worker

def spin(**_):
    while True:
        pass

def deaf(**_):  # to the limit that a worker sets itself
    __import__("faulthandler").cancel_dump_traceback_later()
    spin()

def tells(**_):  # how far it has come, and never ends
    while True:
        print('{"headway": "parts: 1 of 2", "found": [{"test": "first", "n": 2}], "asked": {"of": "what"}}', flush=True)
        __import__("time").sleep(0.02)

def eat(**_):
    return {"bytes": len(bytes(600 * 2**20))}

worker.JOBS.update(spin=spin, deaf=deaf, tells=tells, eat=eat, echo=lambda **said: said)
worker.JOBS.update(run_test=spin, run_change=eat, monitor_start=spin)
worker.main()
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Any]:
    """Lanes, made or given, whose workers do what never ends, or want more memory than there is."""
    script, made = tmp_path / "hostile.py", []
    script.write_text(HOSTILE)

    def lane(given: Lane | None = None, **settings: Any) -> Lane:
        lane = given or Lane(**{"seconds": HANGS, "memory": 512 * 2**20, **settings})
        for each in lane._workers:
            each._command[:-2] = [sys.executable, str(script)]
        made.append(lane)
        return lane

    yield lane
    for each in made:
        each.close()
