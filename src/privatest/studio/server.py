"""The studio served by uvicorn, on the loopback interface unless told otherwise."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import sys
import threading
import webbrowser
from typing import Any

import uvicorn

from privatest import errors
from privatest.studio.app import build

__all__ = ["allowed_hosts", "run"]


def run(
    *, port: int, folder: str | os.PathLike[str] | None, ledger: Any, open_browser: bool, host: str, max_upload: int
) -> None:
    """See :func:`privatest.studio.serve`."""
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port < 2**16:
        raise errors.InvalidInput(f"port={port!r} must be a whole number from 0 (any free one) to 65535.")
    app = build(folder=folder, ledger=ledger, token=None, hosts=allowed_hosts(host), max_upload=max_upload)
    listening = _listen(host, port)
    with listening:
        name = f"[{host}]" if ":" in host else host
        address = f"http://{name}:{listening.getsockname()[1]}/?token={app.state.token}"
        print(f"The studio is open at {address}\nCtrl-C ends it.", file=sys.stderr, flush=True)
        if not _loopback(host):
            print("Others can reach it, unencrypted, and need only that address. Trust the network.", file=sys.stderr)
        # No access log: the first request's address holds the token.
        config = uvicorn.Config(
            app, access_log=False, log_level="warning", server_header=False, proxy_headers=False, ws="none"
        )
        if open_browser:
            opener = threading.Timer(0.8, webbrowser.open, [address])
            opener.daemon = True
            opener.start()
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])


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
