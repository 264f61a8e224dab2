"""The studio: a local page to plan with sliders, run through a ledger and follow a monitor.

``privatest studio`` starts it, or ``privatest.studio.serve()``. It needs the extra ``[studio]`` and calls the same
public functions as the command line. What it guards against, and how: docs/studio.md.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from privatest import errors

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["MAX_UPLOAD", "create_app", "serve"]

MAX_UPLOAD = 256 * 2**20
"""Bytes of one uploaded file, unless told otherwise."""
LOOPBACK = ("127.0.0.1", "localhost")


def create_app(
    *,
    folder: str | os.PathLike[str] | None = None,
    ledger: Any = None,
    token: str | None = None,
    hosts: Sequence[str] = LOOPBACK,
    max_upload: int = MAX_UPLOAD,
) -> FastAPI:
    """The studio as an ASGI application.

    Args:
        folder: data files may be named by their path inside it. None: only uploads can be run on.
        ledger: a ``Ledger``, the path of one, or a PostgreSQL URL; without it nothing can be run on data.
        token: what the first visit (``/?token=...``) and programs (``Authorization: Bearer``) must present. None: a
            fresh one, found as ``app.state.token``.
        hosts: names under which the page may be asked for; any other Host header is refused.
        max_upload: bytes of one uploaded file.
    """
    try:
        from privatest.studio.app import build
    except ModuleNotFoundError as error:
        raise _without_extra(error) from None
    return build(folder=folder, ledger=ledger, token=token, hosts=hosts, max_upload=max_upload)


def serve(
    *,
    port: int = 0,
    folder: str | os.PathLike[str] | None = None,
    ledger: Any = None,
    open_browser: bool = True,
    host: str = "127.0.0.1",
    max_upload: int = MAX_UPLOAD,
) -> None:
    """Serve the studio until interrupted; prints the address with its token, and opens it unless told otherwise.

    Args:
        port: 0: any free one.
        host: other than a loopback address only if others shall reach the page; they need the printed token.
        folder, ledger, max_upload: as for :func:`create_app`.
    """
    try:
        from privatest.studio.server import run
    except ModuleNotFoundError as error:
        raise _without_extra(error) from None
    run(port=port, folder=folder, ledger=ledger, open_browser=open_browser, host=host, max_upload=max_upload)


def _without_extra(error: ModuleNotFoundError) -> Exception:
    missing = (error.name or "").partition(".")[0]
    if missing not in {"fastapi", "starlette", "uvicorn", "plotly", "pydantic"}:
        return error
    return errors.MissingExtra(f"The studio needs {missing}. Install it: pip install privatest[studio]")
