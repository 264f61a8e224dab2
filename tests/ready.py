"""Programs of ours in processes of their own that start at once: one process has imported everything and forks.

``command_line()`` are the words that take the place of ``python -m privatest``, ``worker()`` those in place of
``python -m privatest.studio.worker``: a client that hands its arguments, folder, environment and standard streams to
the server and leaves with the exit code of the process forked there, which ends when the client is killed. Not for
tests of signals, of limits or of what is imported: those start the program itself.

Where several processes share the tests, they share a server, too: the process that starts them calls ``share()``.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path

import pytest

__all__ = ["command_line", "hasten", "share", "worker"]

SHARED = "PRIVATEST_READY"
"""In the environment: the folder of a server that is shared."""

CLIENT = """
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    said = json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)], ensure_ascii=True).encode()
    socket.send_fds(server, [len(said).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(said)
    code = server.recv(1)
sys.exit(code[0] if code else 70)
"""


def hasten(patch: pytest.MonkeyPatch) -> None:
    """Make pictures that compute as many marks as seconds allow compute their least number."""
    from privatest.pictures import plans as sizes
    from privatest.pictures import releases as intervals

    for draw in (intervals.estimate, intervals.groups, sizes.complexity):
        assert draw.__kwdefaults__["patience"] > 0
        patch.setitem(draw.__kwdefaults__, "patience", 0.0)


def command_line() -> list[str]:
    """The words in place of ``python -m privatest``."""
    return [*_client(), "privatest"]


def worker() -> list[str]:
    """The words in place of ``python -m privatest.studio.worker``."""
    return [*_client(), "worker"]


def share() -> None:
    """Start a server for the processes that this one will start; it imports nothing before it is first asked."""
    os.environ[SHARED] = str(_started())


@cache
def _client() -> list[str]:
    """The words that ask the server, which has imported everything."""
    folder = Path(os.environ[SHARED]) if SHARED in os.environ else _started()
    words = [sys.executable, "-I", "-S", str(folder / "client.py"), str(folder / "socket")]
    subprocess.run([*words, "ready"], check=True)
    return words


def _started() -> Path:
    """The folder of a new server, which ends with this process. It can be asked at once, and answers when it can."""
    folder = Path(tempfile.mkdtemp(prefix="privatest-ready-"))
    (folder / "client.py").write_text(CLIENT)
    source = Path(__file__).resolve().parents[1]
    environment = os.environ | {"PYTHONPATH": f"{source / 'src'}{os.pathsep}{source}", "OPENBLAS_NUM_THREADS": "1"}
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket"))
        listening.listen(1024)
        number = listening.fileno()
        words = [sys.executable, "-m", "tests.ready", str(number)]
        server = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, pass_fds=[number])
    atexit.register(_end, server, folder)
    return folder


def _end(server: subprocess.Popen[bytes], folder: Path) -> None:
    server.communicate(timeout=60)  # its input ends, and so does it
    shutil.rmtree(folder)


def _serve(listening: socket.socket) -> None:
    import select
    import signal

    known = False
    with listening:
        while sys.stdin not in (heard := select.select([sys.stdin, listening], [], [])[0]):
            assert heard
            if not known:
                _import_everything()
                signal.signal(signal.SIGCHLD, _forget)
                known = True
            asking, _ = listening.accept()
            with asking:
                length, streams, *_ = socket.recv_fds(asking, 8, 3)
                wanted, said = int.from_bytes(length, "big"), b""
                while len(said) < wanted and (more := asking.recv(1 << 20)):
                    said += more
                if said and len(said) == wanted and os.fork() == 0:  # not if the client was killed meanwhile
                    listening.close()
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    _run(asking, streams, *json.loads(said))
                for stream in streams:
                    os.close(stream)


def _forget(*_: object) -> None:
    """Those that are done leave nothing but their time."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _run(asking: socket.socket, streams: list[int], words: list[str], folder: str, environment: dict[str, str]) -> None:
    from privatest import cli
    from privatest.studio import worker

    code = 71
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        threading.Thread(target=_end_with, args=[asking], daemon=True).start()
        if words[0] == "worker":
            sys.argv[1:] = words[1:]
            worker.main()
        elif words[0] == "ready":
            code = 0
        else:
            code = cli.main(words[1:])
            sys.stdout.flush()
    finally:
        asking.sendall(bytes([code]))
        os._exit(code)


def _end_with(asking: socket.socket) -> None:
    asking.recv(1)  # nothing, when the client is gone
    os._exit(72)


def _import_everything() -> None:
    """What command lines and workers use, also what they themselves import late."""
    for name in ("cli.commands", "report", "pictures", "ledger.store", "engines.files", "fit"):
        __import__(f"privatest.{name}")
    for name in ("changepoint", "estimates", "streams", "studio.worker"):
        __import__(f"privatest.{name}")
    for name in ("scipy.stats", "scipy.optimize", "sqlalchemy.dialects.sqlite", "tomllib"):
        __import__(name)
    for name in ("matplotlib.figure", "matplotlib.backends.backend_svg", "matplotlib.backends.backend_agg"):
        __import__(name)
    for name in ("PIL.Image", "pyarrow.csv", "pyarrow.compute", "rich.console", "rich.table", "typer.rich_utils"):
        __import__(name)
    hasten(pytest.MonkeyPatch())


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
