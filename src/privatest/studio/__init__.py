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

__all__ = ["MAX_SECONDS", "MAX_UPLOAD", "create_app", "serve"]

MAX_UPLOAD = 256 * 2**20
"""Bytes of one uploaded file, unless told otherwise."""
MAX_SECONDS = 600.0
"""Seconds of one run on data, unless told otherwise."""
LOOPBACK = ("127.0.0.1", "localhost")


def create_app(
    *,
    folder: str | os.PathLike[str] | None = None,
    ledger: Any = None,
    token: str | None = None,
    hosts: Sequence[str] = LOOPBACK,
    max_upload: int = MAX_UPLOAD,
    max_seconds: float = MAX_SECONDS,
) -> FastAPI:
    """The studio as an ASGI application.

    Args:
        folder: data files may be named by their path inside it. None: only uploads can be run on.
        ledger: a ``Ledger``, the path of one, or a PostgreSQL URL; without it nothing can be run on data.
        token: the key that every question must carry (``Authorization: Bearer``). None: a fresh one, found as
            ``app.state.token``. A page gets it for a launch word, which works once: ``/#launch=`` and what
            ``app.state.launch()`` gives.
        hosts: names under which the page may be asked for; any other Host header is refused.
        max_upload: bytes of one uploaded file.
        max_seconds: of one run on data; it is stopped then, and the same request can be had again.
    """
    try:
        from privatest.studio.app import build  # an extra
    except ModuleNotFoundError as error:
        raise _without_extra(error) from None
    return build(folder=folder, ledger=ledger, token=token, hosts=hosts, max_upload=max_upload, max_seconds=max_seconds)


def serve(
    *,
    port: int = 0,
    folder: str | os.PathLike[str] | None = None,
    ledger: Any = None,
    open_browser: bool = True,
    host: str = "127.0.0.1",
    max_upload: int = MAX_UPLOAD,
    max_seconds: float = MAX_SECONDS,
) -> None:
    """Serve the studio until interrupted; prints the address of a page, and opens it unless told otherwise.

    Args:
        port: 0: any free one.
        host: other than a loopback address only if others shall reach the page; they need the printed address.
        folder, ledger, max_upload, max_seconds: as for :func:`create_app`.
    """
    from privatest.studio.lanes import LOOK, NEEDED, begun_early  # it starts processes

    with begun_early(LOOK, NEEDED):
        try:
            from privatest.studio.app import run  # an extra
        except ModuleNotFoundError as error:
            raise _without_extra(error) from None
        limits = {"max_upload": max_upload, "max_seconds": max_seconds}
        run(port=port, folder=folder, ledger=ledger, open_browser=open_browser, host=host, limits=limits)


def _without_extra(error: ModuleNotFoundError) -> Exception:
    missing = (error.name or "").partition(".")[0]
    if missing not in {"fastapi", "starlette", "uvicorn", "plotly", "pydantic"}:
        return error
    return errors.MissingExtra.of(f"The studio needs {missing}.", "studio")
