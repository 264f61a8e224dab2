"""The studio: a local page to plan with sliders, run through a ledger and follow a monitor.

``privatest studio`` or ``privatest.studio.serve()`` starts it. It needs the extra ``[studio]`` and calls the same
public functions as the command line. docs/studio.md lists what it guards against, and how.
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
"""Largest size of an uploaded file in bytes, by default."""
MAX_SECONDS = 600.0
"""Seconds after which a run on data is stopped, by default."""
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
    """Return the studio as an ASGI application.

    Args:
        folder: folder whose data files may be named. None: only uploaded files can be used.
        ledger: a ``Ledger``, the path of one, or a PostgreSQL URL; without it nothing can be run on data.
        token: the key that every request must carry (``Authorization: Bearer``). None: a new one is drawn, and is
            ``app.state.token``. A page receives it for a launch word, which works once: ``/#launch=`` followed by
            the result of ``app.state.launch()``.
        hosts: names under which the page is served; any other Host header is refused.
        max_upload: largest size of an uploaded file in bytes.
        max_seconds: seconds after which a run on data is stopped; the same request can then be repeated.
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
    """Serve the studio until interrupted. It prints the address of a page and, by default, opens it.

    Args:
        port: port to listen on; 0 takes any free one.
        open_browser: whether to open the page in a browser.
        host: address to listen on; one that is not loopback lets others reach the page, with the printed address.
        folder, ledger, max_upload, max_seconds: as for :func:`create_app`.
    """
    from privatest.studio.job_queues import LOOK, NEEDED, begun_early  # it starts processes

    with begun_early(LOOK, NEEDED):
        try:
            from privatest.studio.app import run  # an extra
        except ModuleNotFoundError as error:
            raise _without_extra(error) from None
        limits = {"max_upload": max_upload, "max_seconds": max_seconds}
        run(port=port, folder=folder, ledger=ledger, open_browser=open_browser, host=host, limits=limits)


def _without_extra(error: ModuleNotFoundError) -> Exception:
    """Return the error that names the missing extra, or the error itself if another module is missing."""
    missing = (error.name or "").partition(".")[0]
    if missing not in {"fastapi", "starlette", "uvicorn", "plotly", "pydantic"}:
        return error
    return errors.MissingExtra.of(f"The studio needs {missing}.", "studio")
