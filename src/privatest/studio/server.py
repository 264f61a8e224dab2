"""The studio served by uvicorn, on the loopback interface unless told otherwise."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from privatest import errors
from privatest.studio.app import build

__all__ = ["allowed_hosts", "run"]

OPENED_WITHIN = 120.0
"""Seconds after which the file that opens the page goes, opened or not."""
HANDOVER = """<!doctype html><meta charset="utf-8"><title>privatest studio</title>
<script>location.replace("{address}");</script><p><a href="{address}">Open the studio</a></p>
"""


class _Server(uvicorn.Server):
    """Computations end before connections do: no request keeps the server from ending."""

    def __init__(self, app: FastAPI) -> None:
        # No access log: it would tell when was asked for what.
        super().__init__(
            uvicorn.Config(
                app,
                access_log=False,
                log_level="warning",
                server_header=False,
                proxy_headers=False,
                ws="none",
                timeout_graceful_shutdown=5,
            )
        )
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.close()
        await super().shutdown(sockets)


def run(
    *,
    port: int,
    folder: str | os.PathLike[str] | None,
    ledger: Any,
    open_browser: bool,
    host: str,
    limits: dict[str, Any],
) -> None:
    """See :func:`privatest.studio.serve`."""
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port < 2**16:
        raise errors.InvalidInput(f"port={port!r} must be a whole number from 0 (any free one) to 65535.")
    app = build(folder=folder, ledger=ledger, token=None, hosts=allowed_hosts(host), **limits)
    with contextlib.ExitStack() as left:
        listening = left.enter_context(_listen(host, port))
        left.callback(app.state.close)
        server = _Server(app)
        left.enter_context(_signals(server))
        name = f"[{host}]" if ":" in host else host
        site = f"http://{name}:{listening.getsockname()[1]}/"
        word = app.state.launch()
        asks = sys.stdin is not None and sys.stdin.isatty()
        more = "Enter prints the address of another one, " if asks else ""
        print(f"The studio is open at {site}#launch={word}", file=sys.stderr)
        print(f"The address opens one page. {more}Ctrl-C ends the studio.", file=sys.stderr, flush=True)
        if not _loopback(host):
            print("Others can reach it, unencrypted, and need only that address. Trust the network.", file=sys.stderr)
        if open_browser:
            place = Path(tempfile.mkdtemp(prefix="privatest-launch-"))  # for this user's eyes only
            left.callback(shutil.rmtree, place, ignore_errors=True)
            threading.Thread(target=_open, args=[app, site, word, place], daemon=True).start()
        if asks:
            threading.Thread(target=_print_more, args=[app, site], daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listening])


@contextlib.contextmanager
def _signals(server: _Server) -> Iterator[None]:
    """A terminal that closes ends the studio as Ctrl-C does: uploads and processes go with it."""

    def hang_up(_number: int, _frame: Any) -> None:
        server.should_exit = True

    def terminate(number: int, _frame: Any) -> None:  # uvicorn ends first, and raises it again
        sys.exit(128 + number)

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, hang_up)
        if hasattr(signal, "SIGTTIN"):  # in the background Enter is for others; asking for it must not stop us
            before[signal.SIGTTIN] = signal.signal(signal.SIGTTIN, signal.SIG_IGN)
        before[signal.SIGTERM] = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _open(app: FastAPI, site: str, word: str, place: Path) -> None:
    """Open the page by way of a file: what is written on a browser's command line, every user of the machine reads."""
    file = place / "open.html"
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as writing:
        writing.write(HANDOVER.format(address=f"{site}#launch={word}"))
    time.sleep(0.5)  # the server is about to listen
    webbrowser.open(file.as_uri())
    end = time.monotonic() + OPENED_WITHIN
    while app.state.waits(word) and time.monotonic() < end:
        time.sleep(0.5)
    shutil.rmtree(place, ignore_errors=True)


def _print_more(app: FastAPI, site: str) -> None:
    """The address of another page whenever Enter is pressed. Not through sys.stdin, whose lock would outlive us."""
    with contextlib.suppress(OSError):
        while os.read(0, 1024):
            print(f"{site}#launch={app.state.launch()}", file=sys.stderr, flush=True)


def allowed_hosts(host: str) -> tuple[str, ...]:
    """The names under which a page that listens on ``host`` may be asked for."""
    names = ["127.0.0.1", "localhost", "::1"]
    if not _loopback(host):
        names += [host, socket.gethostname(), socket.getfqdn()]
        with contextlib.suppress(OSError):
            names += [str(found[4][0]) for found in socket.getaddrinfo(socket.gethostname(), None)]
    return tuple(dict.fromkeys(name.lower() for name in names))


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise errors.InvalidInput(
            f"The studio cannot listen on host={host!r}, port={port}: {error.strerror or error}. "
            "Try port=0, any free one."
        ) from None
    return listening
