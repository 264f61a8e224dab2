"""The command line in processes of their own that start at once: one process has imported everything and forks.

``command_line()`` are the words that take the place of ``python -m privatest``: a client that hands its arguments,
folder, environment and standard streams to the server and leaves with the exit code of the process forked there. Not
for tests of signals or of what is imported: those start the program itself.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

__all__ = ["command_line"]

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


@cache
def command_line() -> list[str]:
    """The words in place of ``python -m privatest``; the server ends with this process."""
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
        listening.listen()
        print("ready", flush=True)
        while sys.stdin not in (heard := select.select([sys.stdin, listening], [], [])[0]):
            assert heard
            asking, _ = listening.accept()
            with asking:
                length, streams, *_ = socket.recv_fds(asking, 8, 3)
                said = b""
                while len(said) < int.from_bytes(length, "big"):
                    said += asking.recv(1 << 20)
                child = os.fork()
                if child == 0:
                    _run(streams, *json.loads(said))
                for stream in streams:
                    os.close(stream)
                asking.sendall(bytes([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]))


def _run(streams: list[int], words: list[str], folder: str, environment: dict[str, str]) -> None:
    from privatest import cli

    code = 71
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        code = cli.main(words)
        sys.stdout.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    for name in ("cli.commands", "report", "pictures", "ledger", "engines.csv_files", "changepoint", "fit"):
        __import__(f"privatest.{name}")
    for name in ("scipy.stats", "scipy.optimize", "matplotlib.figure", "matplotlib.backends.backend_svg", "sqlalchemy"):
        __import__(name)
    _serve(sys.argv[1])
