"""Arguments of commands: their parameters for typer, and their values from the command line and a problem file.

Problem files hold the options of a command in TOML or JSON, under the same names::

    null = "normal(0, 1)"
    alternative = "normal(0.5, 1)"
    epsilon = 0.5
    column = "value"

A distribution may also be a table of label = probability, or a list of probabilities. The command line overrides the
file. A command reads from the file the options that it has; a name that no command has is refused.

Output files are checked before the work starts, so that no result is lost to a typing error.
"""

from __future__ import annotations

import difflib
import glob
import inspect
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from privatest import data_addresses, errors, options
from privatest.cli.output import complain, read_bytes, reason

Flags = dict[str, Any]
"""The options of a command by name, as the command line gave them; None or False for those that it did not give."""

LARGEST = 10_000_000
ADDRESSES = ("data", "treatment", "ledger")
ARGUMENTS = (options.DATA, options.TREATMENT, options.LINES)
_SCHEME = re.compile(r"(?:duckdb|sqlite|file)[\w+]*://(?:/(?=/|[A-Za-z]:|[^/]))?")
_BESIDE = ("", "-wal", "-shm", "-journal", ".next", ".lock")  # what databases and states keep beside themselves
# The first bytes of the files that commands write. Problem files are recognised by reading them.
_OURS = {"report": b"<!DOCTYPE html>", "save_design": b'{"format": "privatest/'}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number.") from None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text[:40]!r} is not a whole number.") from None


# The type and the parser of each kind of value, by the kind's words. Other kinds are text.
TYPES: dict[str, tuple[Any, Callable[[str], Any] | None]] = {
    "a number": (float, _number),
    "a whole number": (int, _whole),
    "two numbers": (tuple[str, str], None),  # read_settings converts them to numbers: typer parses no pairs
    "texts": (list[str], None),
}


def signature(command: str) -> inspect.Signature:
    """Return a signature with the options of a command, from which typer makes its parameters."""
    return inspect.Signature([_parameter(option) for option in options.of(command)])


def _parameter(option: options.Option) -> inspect.Parameter:
    """Return an option as a parameter for typer."""
    kind, metavar, default = (
        option.kind,
        option.kind.metavar,
        option.default if option.role == options.MANNER else None,
    )
    shown: dict[str, Any] = {"help": option.help, "show_default": default is not None}
    if kind in ARGUMENTS:
        annotation: Any = Annotated[str | None, typer.Argument(metavar=metavar, **shown)]
    elif kind is options.SWITCH:
        annotation, default = Annotated[bool, typer.Option(options.flag(option.name), **shown)], False
    else:
        kind_type, parser = TYPES.get(kind.words, (str, None))
        declared = typer.Option(options.flag(option.name), metavar=metavar, parser=parser, **shown)
        annotation = Annotated[kind_type | None, declared]
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def read_settings(command: str, flags: Flags, needs: str | None = None) -> dict[str, Any]:
    """Return the options of the question, from the command line or else from the problem file.

    Refuses a question that lacks a required option: one that the table names or, if it is given, ``needs``.
    """
    settings: dict[str, Any] = {}
    own = [option.name for option in options.of(command) if option.role != options.MANNER]
    if flags["problem"] is not None:
        # A file's key may be of another kind than here: one n, where curve takes several.
        kinds = {option.name: option.kind for option in options.of(command) if option.name in own}
        from_file = read_problem(flags["problem"])
        settings = {name: value for name, value in from_file.items() if name in kinds and _fits(kinds[name], value)}
    if flags.get("privacy") is not None and flags.get("epsilon") is None:
        settings.pop("epsilon", None)  # the problem file's
    elif flags.get("epsilon") is not None and flags.get("privacy") is None:
        settings.pop("privacy", None)
    words = {name: flags[name] for name in own if flags[name] is not None and flags[name] is not False}
    settings |= {name: _range(name, value) if isinstance(value, tuple) else value for name, value in words.items()}
    if isinstance(settings.get("clamp"), str):
        settings["clamp"] = _clamp(settings["clamp"])
    names = (options.QUESTIONS[command].needs if needs is None else needs).split()
    if any(settings.get(name) is None for name in names):
        _check_there(settings.get("data"))
    return need(settings, *names)


def _check_there(data: Any) -> None:
    """Refuse the name of a file that does not exist, before a message lists the missing options."""
    if isinstance(data, str) and FILE.search(data) and not os.path.exists(data):
        raise errors.InvalidInput(f"No file {data!r}.")


FILE = re.compile(r"^[^*?\[:]+\.(csv|tsv|txt|json|jsonl|ndjson|parquet|feather|arrow)$", re.IGNORECASE)
"""A name that can only be that of one file: no pattern, no address."""


def need(settings: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the settings, or raise InvalidInput if one of these names is missing."""
    missing = [
        name for name in names if settings.get(name) is None and not (name == "epsilon" and _has_notion(settings))
    ]
    if missing:
        listed = ", ".join(map(options.flag, missing))
        raise errors.InvalidInput(
            f"Missing: {listed}. Give {'it' if len(missing) == 1 else 'them'}, or a --problem file."
        )
    return settings


def _has_notion(settings: dict[str, Any]) -> bool:
    """Return whether a notion of privacy is given in place of epsilon."""
    return settings.get("privacy") is not None


def one_of(settings: dict[str, Any], flags: Flags) -> dict[str, Any]:
    """Keep an alternative or a distance: the one on the command line, or the alternative if a file gives both.

    A problem file may give both, the distance for ``fit``.
    """
    if flags["distance"] is None:
        if "alternative" in settings:
            settings.pop("distance", None)
    elif flags["alternative"] is None:
        settings.pop("alternative", None)
    return settings


def one_rule(settings: dict[str, Any], flags: Flags) -> dict[str, Any]:
    """Keep a bound on false alarms or the assumption of a change: the command line overrides the problem file."""
    if flags["false_alarm"] is None:
        if flags["assume_change"]:
            settings.pop("false_alarm", None)
    elif not flags["assume_change"]:
        settings.pop("assume_change", None)
    return settings


def read_problem(path: str) -> dict[str, Any]:
    """Return the settings in a problem file; raise InvalidInput for an unknown name or a value of the wrong kind."""
    settings = _parsed(path)
    for name, value in settings.items():
        if name not in options.KEYS:
            close = difflib.get_close_matches(name, options.KEYS, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else f" Known are {', '.join(options.KEYS)}."
            raise errors.InvalidInput(f"{name!r} in the problem file {path!r} is not an option.{hint}")
        if not _fits(options.KEYS[name], value):
            raise errors.InvalidInput(
                f"{name}={value!r} in the problem file {path!r} must be {options.KEYS[name].words}."
            )
    return settings


def write_problem(path: str, settings: Mapping[str, Any]) -> None:
    """Write a problem file from which :func:`read_problem` returns the same settings: JSON if named so, else TOML.

    Guarantees: no password is written. Addresses are written without it, and whoever uses the file gives the password
    to the database's client (PGPASSWORD, or a file ~/.pgpass).
    """
    document = {name: settings[name] for name in options.KEYS if settings.get(name) is not None}
    for name in ADDRESSES:
        if name in document and (address := data_addresses.without_password(document[name])) != document[name]:
            document[name] = address
            complain(
                f"The password of --{name} is not written to {path!r}. Give it by PGPASSWORD or in ~/.pgpass when you "
                "use that file."
            )
    document = {name: list(value) if isinstance(value, tuple) else value for name, value in document.items()}
    if path.lower().endswith(".json"):
        text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    else:
        import tomli_w

        text = tomli_w.dumps(document)
    try:
        Path(path).write_text(text, encoding="utf-8", errors="strict")
    except (OSError, ValueError) as error:
        raise errors.InvalidInput(f"The problem cannot be saved to {path!r}: {reason(error)}.") from None


def _parsed(path: str) -> dict[str, Any]:
    """Return the table that a problem file holds, JSON or TOML."""
    try:
        content = read_bytes(path, "The problem file", LARGEST)
    except errors.InvalidInput:
        raise
    except (OSError, ValueError) as error:
        raise errors.InvalidInput(f"The problem file {path!r} cannot be read: {reason(error)}.") from None
    try:
        text = content.decode("utf-8")
        if path.lower().endswith(".json"):
            table = json.loads(text)
        else:
            import tomllib

            table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        kind = "JSON" if path.lower().endswith(".json") else "TOML"
        raise errors.InvalidInput(
            f"The problem file {path!r} is not valid {kind}: {error}. Write TOML, or JSON in a file named *.json."
        ) from None
    if not isinstance(table, dict):
        raise errors.InvalidInput(f"The problem file {path!r} must hold a table of options, such as epsilon = 0.5.")
    return table


def _fits(kind: options.Kind, value: object) -> bool:
    """Return whether a value in a problem file is of this kind. Only switches are true or false."""
    if isinstance(value, bool) or kind is options.SWITCH:
        return isinstance(value, bool) and kind is options.SWITCH
    if kind is options.LAW:
        return isinstance(value, str | dict | list)
    if kind is options.RANGE or (kind is options.CLAMP and not isinstance(value, str)):
        return isinstance(value, list) and len(value) == 2 and all(_fits(options.NUMBER, end) for end in value)
    return isinstance(value, {"a number": int | float, "a whole number": int}.get(kind.words, str))


def _range(name: str, words: tuple[str, str]) -> tuple[float, float]:
    """Return the two numbers that an option gives."""
    try:
        low, high = (float(word) for word in words)
    except ValueError:
        raise errors.InvalidInput(
            f"{options.flag(name)} {' '.join(words)} must be two numbers, such as -3 3."
        ) from None
    return low, high


def _clamp(text: str) -> str | tuple[float, ...]:
    """Return a clamp from its text: a name, or two numbers."""
    if text in ("tuned", "paper"):
        return text
    try:
        a, b = (float(part) for part in text.strip("()[] ").split(","))
    except ValueError:
        raise errors.InvalidInput(f"clamp={text!r} must be 'tuned', 'paper' or two numbers such as -0.5,0.5.") from None
    return a, b


def check_written(flags: Flags, **paths: str | None) -> None:
    """Check the output files of a command that reads nothing but a problem file."""
    check_target((flags["problem"],), flags["force"], **paths)


def check_target(reads: Iterable[str | None] = (), force: bool = False, **paths: str | None) -> None:
    """Refuse output files that cannot be written or must not be overwritten. ``paths`` are named by their options.

    Guarantees: no file that ``reads`` names is overwritten, however it is spelt or linked, and no file is written
    twice. Any other file is overwritten only if it is empty, if the same option has written it, or with ``force``.
    """
    written = {name: path for name, path in paths.items() if path is not None}
    # A large folder takes long to list, so that is done only if something is written.
    taken = [file for text in reads if text for file in _files(text)] if written else []
    for name, path in written.items():
        option = options.flag(name)
        try:
            for file in taken:
                if _same(path, file):
                    raise errors.InvalidInput(
                        f"{option} {path!r} is a file that this command reads or writes already. Name another file."
                    )
            taken.append(path)
            target = Path(path)
            folder = target.parent
            if not path.strip() or target.is_dir():
                raise errors.InvalidInput(f"{option} {path!r} must be the name of a file, not of a folder.")
            if not folder.is_dir():
                raise errors.InvalidInput(
                    f"{option} {path!r} is in a folder that does not exist, {str(folder)!r}. Create it first."
                )
            if not os.access(target if target.exists() else folder, os.W_OK):
                raise errors.InvalidInput(
                    f"{option} {path!r} cannot be written: you have no permission. Name another file."
                )
            if target.exists() and not target.is_file():
                raise errors.InvalidInput(f"{option} {path!r} is a pipe or a device. Name a file.")
            if name != "state" and not force and target.is_file() and not _ours(name, path):
                raise errors.InvalidInput(
                    f"{option} {path!r} exists and was not written by {option}. Name another file, or give --force."
                )
        except errors.InvalidInput:
            raise
        except (OSError, ValueError):
            raise errors.InvalidInput(f"{option} {path!r} is not a usable file name.") from None


def _files(text: str) -> Iterator[str]:
    """Yield the files of a path, a glob, a folder or a database's address, with the files that a database keeps."""
    path = os.path.expanduser(_SCHEME.sub("", text).partition("::")[0])
    if "://" in path or "\0" in path:
        return
    if os.path.isdir(path):
        yield from (os.path.join(base, name) for base, _, names in os.walk(path) for name in names)
    elif glob.has_magic(path) and not os.path.exists(path):
        yield from glob.iglob(path, recursive=True)
    else:
        yield from (path + ending for ending in _BESIDE)


def _same(path: str, other: str) -> bool:
    """Return whether two names lead to the same file, existing or not."""
    try:
        if os.path.samefile(path, other):
            return True
    except (OSError, ValueError):
        pass  # one of them does not exist yet
    return os.path.normcase(os.path.realpath(path)) == os.path.normcase(os.path.realpath(other))


def _ours(name: str, path: str) -> bool:
    """Return whether the option may have written this file: it is empty, or of the kind that the option writes."""
    if os.path.getsize(path) == 0:
        return True
    if name == "save":
        try:
            read_problem(path)
            return True
        except errors.InvalidInput:
            return False
    with open(path, "rb") as file:
        start = file.read(1 << 16)
    return start.startswith(_OURS[name]) and b"privatest" in start
