"""From a command line to an exit code.

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
import sys
from collections.abc import Sequence

from privatest import errors
from privatest.cli.output import ReaderGone, complain, emit, flush

__all__ = ["AFTER_CHARGE", "BAD_INPUT", "INTERRUPTED", "OVER_BUDGET", "READER_GONE", "run"]

BAD_INPUT, OVER_BUDGET, AFTER_CHARGE, INTERRUPTED, READER_GONE = 2, 3, 4, 130, 141
# The marks by which typer asks for a shell completion.
PROGRAM, COMPLETION = "privatest", "_PRIVATEST_COMPLETE"


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; never raises, never prints a traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments)
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


def _complained(problem: object, error: Exception) -> int:
    note = errors.charge_note(error)
    complain(problem if note is None else f"{problem} {note}")
    return BAD_INPUT if note is None else AFTER_CHARGE


def _untold(_error: object) -> None:
    """Errors inside a library's callbacks, which Python would print with a traceback that may quote a record."""


def _dispatch(words: list[str]) -> int:
    from privatest.cli.app import command

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
