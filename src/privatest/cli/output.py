"""Output of commands: JSON or tables on standard output, error messages on standard error, texts in files."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import stat
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import privatest as pt
from privatest import errors, options

WIDTH = 80
LONGEST_COMPLAINT = 700
LARGEST_TEXT = 100_000_000
PATIENCE = 10.0
"""Seconds that a pipe may be silent before a short text that is read from it."""
NARROW, DROPPED = 60, ("note", "private", "")
"""On a terminal with fewer columns, facts are shown without meanings and tables without these columns."""
BAR = 16
UNBROKEN, LONGEST_VALUE = 50, 60
"""A word of this many letters, such as a fingerprint, or a longer value is printed below the table, not in it."""


class ReaderGone(BaseException):
    """The reader of standard output, such as ``head``, has closed it."""


def emit(text: str) -> None:
    """Print a text on standard output at once."""
    if sys.stdout is None:
        return
    try:
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        sys.stdout.flush()
    except OSError as error:
        raise _unprinted(error) from None


def say(text: str) -> None:
    """Print a sentence or two on standard output, in lines of at most ``WIDTH`` columns.

    On a narrow terminal a fingerprint stays whole.
    """
    lines = textwrap.wrap(plain(text), min(_width(), WIDTH), break_on_hyphens=False, break_long_words=False)
    emit("\n".join(part for line in lines for part in textwrap.wrap(line, WIDTH, break_on_hyphens=False)))


def flush() -> None:
    """Flush standard output; raise :class:`ReaderGone` if its reader has closed it."""
    if sys.stdout is not None and not sys.stdout.closed:
        try:
            sys.stdout.flush()
        except OSError as error:
            raise _unprinted(error) from None


def _unprinted(error: OSError) -> BaseException:
    """Return the error to raise if standard output cannot be written: its reader is gone, or its disk is full."""
    # Python flushes standard output once more when it ends; that goes to the null device.
    with contextlib.suppress(OSError), open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return ReaderGone()
    return errors.InvalidInput(f"Standard output cannot be written: {error.strerror or type(error).__name__}.")


def emit_json(document: Mapping[str, Any], *, line: bool = False) -> None:
    """Print a JSON document, indented or on one line."""
    emit(json.dumps(document, indent=None if line else 2, allow_nan=False))


def complain(problem: object) -> None:
    """Print a problem on standard error, in one or two lines, whatever characters it quotes."""
    text = plain(spoken(str(problem)))
    if len(text) > LONGEST_COMPLAINT:
        text = f"{text[: LONGEST_COMPLAINT // 2]} ... {text[-LONGEST_COMPLAINT // 2 :]}"
    if sys.stderr is not None:
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        with contextlib.suppress(OSError):  # the exit code still tells
            print(f"privatest: {text}".encode(encoding, "backslashreplace").decode(encoding), file=sys.stderr)


def spoken(text: str, *, subject: bool = True) -> str:
    """Return a message of the package with its arguments and functions written as options and commands.

    Quotations are unchanged. A function that no command calls is said to be Python's.

    Args:
        text: the message.
        subject: whether a name before a colon, at the start, is that of an argument.

    >>> spoken("Say which one holds the records: column=..."), spoken("null: 'nan' is not a number.")
    ('Say which one holds the records: --column', "--null: 'nan' is not a number.")
    >>> spoken("between=(1, 0) must have its lower end first. Leave max_rows_per_unit out, or use sample_size(...).")
    '--between 1 0 must have its lower end first. Leave --max-rows-per-unit out, or use privatest plan.'
    >>> spoken("Look at the column (pt.check), or use pt.tabulate(data, between=(0, 1)).quantile(0.5).")
    "Look at the column (privatest check), or use Python's pt.tabulate(data, between=(0, 1)).quantile(0.5)."
    """
    if " in the problem file " in text:  # there they are keys, not options
        return text
    names = sorted({option.name for option in options.OPTIONS}, key=len, reverse=True)
    every, long = "|".join(names), "|".join(name for name in names if "_" in name)
    mention = re.compile(
        rf"(?<![\w.])({every})=(\([^()]*\)|\[[^][]*\]|[-+]?[\w.]*\w|\.\.\.)?"  # name=value, name=... and name=
        rf"|(?<![\w.-])({long})(?!\w)"  # a name that is no English word
        rf"|(?<![\w.-])({every})(?= is missing)"
        rf"|^({every if subject else '(?!)'})(?=: )"  # what a sentence is about
    )
    message, named = "", False
    for place, part in enumerate(_KEPT.split(text)):
        if place % 2:
            message += f" {part}" if named else _CALLS.get(part) or _as_command(part)
        else:
            message += mention.sub(_as_option, part)
        named = part.endswith("=")  # name='a quotation'
    return message


_INSIDE = r"\((?:[^()]|\([^()]*\))*\)"
_KEPT = re.compile(
    rf"(^[a-z_]+: \w+=\S+|(?<!\w)'[^']*'(?!\w)|\b[\w.]+{_INSIDE}(?:\.\w+{_INSIDE})?|\bpt\.[a-z_.]*[a-z_]"
    r"|\bprivatest\.check\b)"
)
"""Parts of a message that stay, or become a command: a parameter of a law ("normal: sd=-1"), quotations, functions."""
_CALLS = {
    "sample_size(...)": "privatest plan",
    "ledger.grant()": "privatest ledger grant",
    "pt.data.read_as": "--decimal, --missing",
    "pt.data.read_as(data, text_order=True)": "--text-order",
    "pt.data.read_as(data, fold_case=True)": "--fold-case",
}
_COMMANDS = {question.call: name for name, question in options.QUESTIONS.items() if not name.startswith("/")}
_SWITCHES = {option.name for option in options.OPTIONS if option.kind is options.SWITCH}


def _as_command(part: str) -> str:
    """Return a function of the package as the command that calls it, with the options in place of ``name=...``."""
    called = re.fullmatch(rf"(?:pt|privatest)\.([\w.]+)({_INSIDE})?", part)
    if called is None:  # a method of what a function returns is Python's
        return f"Python's {part}" if part.startswith("pt.") else part
    if called[1] not in _COMMANDS:
        return f"Python's {part}"
    arguments = re.findall(r"(\w+)=\.\.\.", called[2] or "")
    words = ["privatest", _COMMANDS[called[1]], *(["DATA"] if called[2] else []), *map(options.flag, arguments)]
    return " ".join(words)


def _as_option(match: re.Match[str]) -> str:
    """Return an argument in a message as an option: ``--between 0 1`` for ``between=(0, 1)``."""
    name, value = match[1] or match[3] or match[4] or match[5], match[2]
    flag = options.flag(name)
    if value in (None, "...") or (value == "True" and name in _SWITCHES):
        return flag
    within = value[1:-1].split(",") if value[0] in "([" else None
    if within is None:
        return f"{flag} {value}"
    words = [word.strip() for word in within]
    return f"{flag} {' '.join(words) if value[0] == '(' else ','.join(words)}"


def plain(text: object) -> str:
    """Return the text on one line, without characters that control a terminal."""
    return "".join(
        letter if letter.isprintable() else " " if letter in "\n\t" else f"\\u{ord(letter):04x}" for letter in str(text)
    ).strip()


def facts(title: str, lines: Iterable[tuple[str, str, str]]) -> None:
    """Print a title, and below it a line for each fact: its name, its value and what the value means."""
    from rich.table import Table

    narrow = _width() < NARROW
    table = Table.grid(padding=(0, 2), expand=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold", style="dim")
    below = []
    for name, value, meaning in ((name, value, spoken(meaning, subject=False)) for name, value, meaning in lines):
        if len(value) > LONGEST_VALUE or (len(value) >= UNBROKEN and " " not in value):
            below.append((name, value, meaning))
        else:
            table.add_row(f"  {plain(name)}", _text(value), _text("" if narrow else meaning))
    _print(title, table)
    for name, value, meaning in below:
        if " " in value:
            say(f"{name.capitalize()}: {value}.")
        else:
            say(f"{name.capitalize()}, {meaning}:" if meaning else f"{name.capitalize()}:")
            say(value)  # on a line of its own, so that it is broken only if no line can hold it


def show_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]], *, left: Sequence[str]) -> None:
    """Print a table with a heading for each column. The columns in ``left`` are aligned left, the others right."""
    from rich import box
    from rich.table import Table

    narrow = _width() < NARROW
    places = [place for place, heading in enumerate(headings) if not narrow or heading not in DROPPED]
    names = [headings[place] for place in places]
    cells = [[plain(row[place]) for place in places] for row in rows]
    gap = 1 if narrow else 2
    table = Table(
        box=box.SIMPLE_HEAD, show_edge=not narrow, pad_edge=False, padding=(0, gap, 0, 0), collapse_padding=True
    )
    for heading in names:
        # A number is never broken over lines.
        table.add_column(heading, justify="left" if heading in left else "right", overflow="fold")
        table.columns[-1].no_wrap = heading not in left
    for row in cells:
        table.add_row(*map(_text, row))
    _print(title, table)


def _text(value: object) -> Any:
    from rich.text import Text

    return Text(plain(value))


def _print(title: str, table: Any) -> None:
    from io import StringIO

    from rich.console import Console

    terminal, width = sys.stdout is not None and sys.stdout.isatty(), _width()
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    page = StringIO()
    console = Console(
        file=page,
        width=width,
        force_terminal=terminal,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    console.print(_text(title))
    console.print(table)
    lines = [line.rstrip() for line in page.getvalue().splitlines()]
    text = "\n".join(lines).rstrip("\n")
    if not encoding.startswith("utf"):
        text = text.replace("\u2500", "-").replace("\u2501", "-").replace("\u2588", "#").replace("\u2013", "-")
    emit(text)


def _width() -> int:
    return min(_columns(), 100) if sys.stdout is not None and sys.stdout.isatty() else WIDTH


def _columns() -> int:
    import shutil

    return max(shutil.get_terminal_size((WIDTH, 24)).columns, 40)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on standard error, if it is a terminal, that something is computed; after two seconds with a bar."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True, highlight=False, markup=False).status(what) as status:
        started = time.monotonic()

        def listener(headway: Any) -> None:
            if time.monotonic() - started >= 2.0:
                filled = round(BAR * headway.done / max(headway.total, 1))
                bar = "\u2588" * filled + "\u2591" * (BAR - filled)
                text = f"{headway.done} of {headway.total}" + (f" ({headway.detail})" if headway.detail else "")
                status.update(f"{what} {bar} {plain(text)}")

        with pt.progress(listener):
            yield


def write_text(path: str, text: str, option: str) -> None:
    """Write the text to a file, or raise an error that names the option."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise errors.InvalidInput(f"{option} {path!r} could not be written: {reason(error)}.") from None


def read_text(path: str, option: str) -> str:
    """Return the text of a file, or raise an error that names the option."""
    try:
        return read_bytes(path, option, LARGEST_TEXT).decode("utf-8")
    except UnicodeDecodeError:
        raise errors.InvalidInput(f"{option} {path!r} is not text.") from None
    except errors.InvalidInput:
        raise
    except (OSError, ValueError) as error:
        raise errors.InvalidInput(f"{option} {path!r} could not be read: {reason(error)}.") from None


def read_bytes(path: str, option: str, most: int) -> bytes:
    """Return the bytes of a file or of a pipe; raise InvalidInput if the pipe is silent for too long."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    content = bytearray()
    try:
        pipe = stat.S_ISFIFO(os.fstat(file).st_mode)
        while len(content) <= most:
            if pipe and not select.select([file], [], [], PATIENCE)[0]:
                raise errors.InvalidInput(f"{option} {path!r} is a pipe that was silent for {PATIENCE:g} seconds.")
            if not (piece := os.read(file, 1 << 16)):
                return bytes(content)
            content += piece
    finally:
        os.close(file)
    raise errors.InvalidInput(f"{option} {path!r} is larger than {most} bytes.")


def write_report(path: str, **content: Any) -> None:
    """Write one self-contained HTML file about a plan or a result."""
    from privatest import report  # start-up: few commands write one

    try:
        report.write(path, **content)
    except OSError as error:
        raise errors.InvalidInput(f"--report {path!r} could not be written: {reason(error)}.") from None


def reason(error: Exception) -> str:
    """Return why a file could not be read or written, in a few words."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
