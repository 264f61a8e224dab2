"""Programs in processes of their own that start at once: one process has imported everything and forks.

``command_line()`` are the words that take the place of ``python -m privatest``, ``worker_line()`` those of ``python -m
privatest.studio.worker``: a client that hands its arguments,
folder, environment and standard streams to the server and leaves with the exit code of the process forked there, which
ends when the client does. Not for tests of signals or of what is imported: those start the program itself.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

__all__ = ["command_line", "worker_line"]

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


def command_line() -> list[str]:
    """The words in place of ``python -m privatest``."""
    return [*_client(), "cli"]


def worker_line() -> list[str]:
    """The words in place of ``python -m privatest.studio.worker``."""
    return [*_client(), "worker"]


@cache
def _client() -> list[str]:
    """The client; the server ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="privatest-ready-"))
    (folder / "client.py").write_text(CLIENT)
    source = Path(__file__).resolve().parents[1]
    environment = os.environ | {"PYTHONPATH": f"{source / 'src'}{os.pathsep}{source}", "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "tests.ready", str(folder / "socket")]
    server = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(_end, server, folder)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    return [sys.executable, "-I", "-S", str(folder / "client.py"), str(folder / "socket")]


def _end(server: subprocess.Popen[bytes], folder: Path) -> None:
    server.communicate(timeout=60)  # its input ends, and so does it
    shutil.rmtree(folder)


def _serve(path: str) -> None:
    import select

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(64)
        print("ready", flush=True)
        while sys.stdin not in (heard := select.select([sys.stdin, listening], [], [])[0]):
            assert heard
            asking, _ = listening.accept()
            with asking:
                length, streams, *_ = socket.recv_fds(asking, 8, 3)
                said = b""
                while len(said) < int.from_bytes(length, "big"):
                    said += asking.recv(1 << 20)
                if os.fork() == 0:
                    _handle(asking, streams, *json.loads(said))
                for stream in streams:
                    os.close(stream)
            _wait(os.WNOHANG)
    _wait(0)


def _wait(how: int) -> None:
    """For those who handle, and so for what their processes cost."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, how)[0]:
            pass


def _handle(asking: socket.socket, streams: list[int], words: list[str], folder: str, env: dict[str, str]) -> None:
    """Run it in a child of ours; one that nobody waits for any more is killed."""
    import select

    child = os.fork()
    if child == 0:
        _run(streams, words, folder, env)
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(child)
    if ended not in select.select([asking, ended], [], [])[0]:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(OSError):
        asking.sendall(bytes([code % 256]))
    os._exit(0)


def _run(streams: list[int], words: list[str], folder: str, environment: dict[str, str]) -> None:
    from privatest import cli
    from privatest.studio import worker

    code = 71
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        program, *words = words
        if program == "worker":
            sys.argv = ["worker", *words]
            worker.main()
        code = cli.main(words)
        sys.stdout.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    for name in (
        "cli.commands",
        "studio.worker",
        "report",
        "pictures",
        "ledger",
        "engines.csv_files",
        "changepoint",
        "fit",
    ):
        __import__(f"privatest.{name}")
    for name in ("scipy.stats", "scipy.optimize", "matplotlib.figure", "matplotlib.backends.backend_svg", "sqlalchemy"):
        __import__(name)
    _serve(sys.argv[1])
