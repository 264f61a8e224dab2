"""Files that commands write: they are checked before the work starts, so that no result is lost for a typing error."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from privatest import errors

__all__ = ["check_target", "read_text", "write_report", "write_text"]

LARGEST = 100_000_000


def check_target(**paths: str | None) -> None:
    """Refuse, by the option's name, a path that cannot be written."""
    for name, path in paths.items():
        if path is None:
            continue
        option = f"--{name.replace('_', '-')}"
        try:
            target = Path(path)
            folder = target.parent
            if not path.strip() or target.is_dir():
                raise errors.InvalidInput(f"{option} {path!r} must be the name of a file, not of a folder.")
            if not folder.is_dir():
                raise errors.InvalidInput(f"{option} {path!r}: there is no folder {str(folder)!r}.")
            if not os.access(target if target.exists() else folder, os.W_OK):
                raise errors.InvalidInput(f"{option} {path!r}: you may not write there.")
        except (OSError, ValueError) as error:
            if isinstance(error, errors.InvalidInput):
                raise
            raise errors.InvalidInput(f"{option} {path!r} is not a usable file name.") from None


def write_text(path: str, text: str, option: str) -> None:
    """The text in a file, or an error that names the option."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise errors.InvalidInput(f"{option} {path!r} could not be written: {_reason(error)}.") from None


def read_text(path: str, option: str) -> str:
    """The text of a file, or an error that names the option."""
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise errors.InvalidInput(f"{option} {path!r} is larger than {LARGEST} bytes.")
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise errors.InvalidInput(f"{option} {path!r} is not text.") from None
    except (OSError, ValueError) as error:
        if isinstance(error, errors.InvalidInput):
            raise
        raise errors.InvalidInput(f"{option} {path!r} could not be read: {_reason(error)}.") from None


def write_report(path: str, **content: Any) -> None:
    """One self-contained HTML file about a plan or a result."""
    from privatest import report

    try:
        report.write(path, **content)
    except OSError as error:
        raise errors.InvalidInput(f"--report {path!r} could not be written: {_reason(error)}.") from None


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
