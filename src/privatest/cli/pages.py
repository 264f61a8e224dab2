"""``studio`` and ``version``."""

from __future__ import annotations

import platform
from typing import Annotated

import typer

from privatest.cli import options as o
from privatest.cli.output import emit_json, facts

__all__ = ["studio", "version"]

Folder = Annotated[str, typer.Option("--folder", help="Folder whose files the page may open.", metavar="FOLDER")]
Port = Annotated[int, typer.Option("--port", help="Port on this machine; 0 takes a free one.", metavar="NUMBER")]
Host = Annotated[str, typer.Option("--host", help="Address to listen on; others than loopback are visible.")]
Seconds = Annotated[
    float, typer.Option("--max-seconds", help="Seconds after which a run on data is stopped.", metavar="NUMBER")
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Print the address and open nothing.")]


def studio(
    folder: Folder = ".",
    port: Port = 0,
    host: Host = "127.0.0.1",
    ledger: o.Ledger = None,
    no_browser: NoBrowser = False,
    max_seconds: Seconds = 600.0,
) -> None:
    """Open the studio, a page on this machine to plan by looking.

    \b
    Example:
      privatest studio --folder data --ledger ledger.db
    """
    from privatest import studio as page

    page.serve(folder=folder, port=port, host=host, ledger=ledger, open_browser=not no_browser, max_seconds=max_seconds)


def version(as_json: o.Json = False) -> None:
    """The version of the package.

    \b
    Example:
      privatest version
    """
    import privatest as pt

    found = {"privatest": pt.__version__, "python": platform.python_version()}
    if as_json:
        emit_json(found)
        return
    facts("privatest", list(found.items()))
