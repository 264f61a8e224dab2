"""The commands, put together."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import typer

from privatest import errors
from privatest.cli import answering, budgets, pages, planning, watching
from privatest.cli.output import complain

__all__ = ["COMMANDS", "command"]

ABOUT = """Private tests: did this data come from P or from Q, and when did it change?

Say what you expect before you look: --null is P, --alternative is Q, --epsilon is the privacy loss.

\b
Example:
  privatest plan --null "normal(0,1)" --alternative "normal(0.2,1)" --epsilon 0.5
"""

COMMANDS: tuple[tuple[str | None, str, Callable[..., None]], ...] = (
    (None, "plan", planning.plan),
    (None, "compare", planning.compare),
    (None, "curve", planning.curve),
    (None, "test", answering.decide),
    (None, "detect", answering.detect),
    (None, "monitor", watching.monitor),
    (None, "fit", answering.fit),
    ("ledger", "grant", budgets.grant),
    ("ledger", "show", budgets.show),
    ("ledger", "verify", budgets.verify),
    (None, "studio", pages.studio),
    (None, "version", pages.version),
)


def _told(function: Callable[..., None]) -> Callable[..., None]:
    """The command; when interrupted after a charge it says so, for typer keeps nothing but that it was interrupted."""

    @wraps(function)
    def told(*arguments: Any, **options: Any) -> None:
        try:
            function(*arguments, **options)
        except KeyboardInterrupt as error:
            if (note := errors.charge_note(error)) is not None:
                complain(f"Interrupted. {note}")
            raise

    return told


@cache
def command() -> Any:
    """The program, as an object that runs a list of words."""
    # No rich markup: plain help starts quicker, and what users write is never read as markup.
    plain: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False, "no_args_is_help": True}
    app = typer.Typer(
        name="privatest", help=ABOUT, context_settings={"terminal_width": 80, "max_content_width": 80}, **plain
    )
    ledger = typer.Typer(help="Budgets: who may spend how much epsilon on which data set.", **plain)
    for place, name, function in COMMANDS:
        (app if place is None else ledger).command(name)(_told(function))
    app.add_typer(ledger, name="ledger")
    return typer.main.get_command(app)
