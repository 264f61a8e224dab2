"""The commands, put together, and from a command line to an exit code.

===== ==============================================================================================
0     done (also with ``--exit-code``: null, or no change)
1     only with ``--exit-code``: alternative, or changed
2     bad input, said in one or two lines on standard error; nothing was charged
3     over budget; nothing was charged
4     failed after the charge (or, without a ledger, after the answer was drawn), with a sentence that says how to get
      the answer; the same request again is not charged again
130   interrupted (Ctrl-C); if something was charged, standard error says so
141   the reader of standard output went away
===== ==============================================================================================
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any

import typer

from privatest import errors, questions
from privatest.cli import plan_commands, run_commands, stream_commands
from privatest.cli.options import Given, signature
from privatest.cli.output import ReaderGone, complain, emit, emit_json, facts, flush

__all__ = ["AFTER_CHARGE", "BAD_INPUT", "COMMANDS", "INTERRUPTED", "OVER_BUDGET", "READER_GONE", "command", "run"]

BAD_INPUT, OVER_BUDGET, AFTER_CHARGE, INTERRUPTED, READER_GONE = 2, 3, 4, 130, 141
# The marks by which typer asks for a shell completion.
PROGRAM, COMPLETION = "privatest", "_PRIVATEST_COMPLETE"

ABOUT = """Private tests: did this data come from P or from Q, when did it change, how large is it, did B beat A?

Say what you expect before you look: --null is P, --alternative is Q, --epsilon is the privacy loss.

\b
Example:
  privatest plan --null "normal(0,1)" --alternative "normal(0.2,1)" --epsilon 0.5
"""


def studio(given: Given) -> None:
    """Open the studio, a page on this machine to plan by looking.

    \b
    Example:
      privatest studio --folder data --ledger ledger.db
    """
    from privatest import studio as page  # for the start-up time of all other commands

    page.serve(
        **{name: value for name, value in given.items() if name != "no_browser"}, open_browser=not given["no_browser"]
    )


def version(given: Given) -> None:
    """The version of the package.

    \b
    Example:
      privatest version
    """
    import privatest as pt  # start-up: `--help` needs none of it

    found = {"privatest": pt.__version__, "python": platform.python_version()}
    if given["json"]:
        emit_json(found)
    else:
        facts("privatest", [(name, text, "") for name, text in found.items()])


COMMANDS: tuple[tuple[str | None, str, Callable[[Given], None]], ...] = (
    (None, "plan", plan_commands.plan),
    (None, "compare", plan_commands.compare),
    (None, "curve", plan_commands.curve),
    (None, "check", run_commands.check),
    (None, "test", run_commands.decide),
    (None, "detect", run_commands.detect),
    (None, "changes", run_commands.changes),
    (None, "monitor", stream_commands.monitor),
    (None, "sequential", stream_commands.sequential),
    (None, "fit", run_commands.fit),
    (None, "estimate", run_commands.estimate),
    (None, "groups", run_commands.groups),
    ("ledger", "grant", run_commands.grant),
    ("ledger", "show", run_commands.show),
    ("ledger", "verify", run_commands.verify),
    (None, "studio", studio),
    (None, "version", version),
)


def _parsed(name: str, function: Callable[[Given], None]) -> Callable[..., None]:
    """The command as typer takes one, its options those of the table.

    When interrupted after a charge it says so, for typer keeps nothing but that it was interrupted.
    """

    def parsed(**given: Any) -> None:
        try:
            function(given)
        except KeyboardInterrupt as error:
            if (note := errors.charge_note(error)) is not None:
                complain(f"Interrupted. {note}")
            raise

    parsed.__doc__ = function.__doc__
    parsed.__signature__ = signature(name)  # type: ignore[attr-defined]
    return parsed


def _told_version(asked: bool) -> None:
    if asked:
        import privatest as pt  # here, for a quick start

        emit(f"{PROGRAM} {pt.__version__}")
        raise typer.Exit


def _program(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_told_version, help="Say the version and stop.")
    ] = False,
) -> None:
    pass


@cache
def command() -> Any:
    """The program, as an object that runs a list of words."""
    # No rich markup: plain help starts quicker, and what users write is never read as markup.
    plain: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False, "no_args_is_help": True}
    app = typer.Typer(
        name="privatest", help=ABOUT, context_settings={"terminal_width": 80, "max_content_width": 80}, **plain
    )
    ledger = typer.Typer(help="Budgets: who may spend how much epsilon on which data set.", **plain)
    app.callback()(_program)
    for place, name, function in COMMANDS:
        (app if place is None else ledger).command(name)(_parsed(name, function))
    app.add_typer(ledger, name="ledger")
    return typer.main.get_command(app)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; never raises, never prints a traceback."""
    words = _pairs_apart(sys.argv[1:] if arguments is None else arguments)
    told, sys.unraisablehook = sys.unraisablehook, _untold
    try:
        code = _dispatch(words)
        flush()
        return code
    except ReaderGone:
        return READER_GONE
    except KeyboardInterrupt:
        return INTERRUPTED
    except errors.BudgetExceeded as error:
        complain(error)
        return OVER_BUDGET
    except errors.PrivatestError as error:
        return _complained(error, error)
    except SystemExit as error:  # typer's own
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":  # typer's mark that nobody reads its help
            return READER_GONE
        return error.code if isinstance(error.code, int) else 0
    except Exception as error:
        return _complained(_unexpected(error), error)
    finally:
        sys.unraisablehook = told


def _pairs_apart(words: Sequence[str]) -> list[str]:
    """The words of a command line, with "--between -3,3" written as "--between -3 3", which is what typer reads.

    >>> _pairs_apart(["estimate", "--between", "-3,3"]), _pairs_apart(["--between=-3,3"])
    (['estimate', '--between', '-3', '3'], ['--between', '-3', '3'])
    """
    flags = {questions.flag(option.name) for option in questions.OPTIONS if option.kind is questions.RANGE}
    found: list[str] = []
    for word in words:
        flag, equals, value = word.partition("=")
        if equals and flag in flags and value.count(",") == 1:
            found += [flag, *value.split(",")]
        elif found and found[-1] in flags and word.count(",") == 1:
            found += [part.strip() for part in word.strip("() ").split(",")]
        else:
            found.append(word)
    return found


def _complained(problem: object, error: Exception) -> int:
    note = errors.charge_note(error)
    complain(problem if note is None else f"{problem} {note}")
    return BAD_INPUT if note is None else AFTER_CHARGE


def _untold(_error: object) -> None:
    """Errors inside a library's callbacks, which Python would print with a traceback that may quote a record."""


def _dispatch(words: list[str]) -> int:
    try:
        code = command().main(args=words, prog_name=PROGRAM, complete_var=COMPLETION, standalone_mode=False)
    except Exception as error:
        if not hasattr(error, "format_message"):  # what typer raises about options and arguments
            raise
        shown = str(error.format_message()).strip()
        if type(error).__name__ == "NoArgsIsHelpError":  # no command at all
            emit(shown)
            return 0
        complain(f"{shown}{'' if shown.endswith(('.', '?', ')')) else '.'} See: {_help_of(error)}")
        return BAD_INPUT
    return code if isinstance(code, int) else 0


def _help_of(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context is not None else PROGRAM} --help"


def _unexpected(error: Exception) -> str:
    """A line without the error's own text where that could quote a record."""
    if isinstance(error, OSError) and error.strerror:
        where = f": {os.fsdecode(error.filename)}" if isinstance(error.filename, str | bytes) else ""
        return f"{error.strerror}{where}."
    if isinstance(error, UnicodeError):
        return "A name holds characters that no file or database can have. Write it in plain letters."
    if isinstance(error, MemoryError):
        return "Not enough memory for this. Use fewer records or smaller numbers."
    return f"This could not be computed ({type(error).__name__}). Please report the command line as a bug."
