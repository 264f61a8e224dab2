"""Where a ledger lies: a SQLite file or a PostgreSQL database."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from privatest.addresses import unclear_login, without_secrets
from privatest.errors import InvalidInput, LedgerUnavailable, shown

__all__ = ["Address", "Target"]

Target = str | os.PathLike[str] | URL

POSTGRESQL = {"postgresql", "postgres", "postgresql+psycopg"}


@dataclass(frozen=True)
class Address:
    """Exactly one of the two is set."""

    path: Path | None = None
    url: URL | None = None
    text: str = ""
    """A path as it was written, for messages: the folder it was taken from is nobody's business."""

    @classmethod
    def of(cls, target: Target) -> Address:
        """Read what a user wrote. A relative path is taken from the folder that is current now."""
        if isinstance(target, str) and "://" not in target:
            return cls(path=absolute(target), text=target)
        if isinstance(target, os.PathLike):
            return cls(path=absolute(os.fspath(target)), text=os.fspath(target))
        if not isinstance(target, str | URL):
            raise InvalidInput(f"A ledger lies at a path or at a URL, not at a {type(target).__name__}.")
        if isinstance(target, str) and unclear_login(target):
            raise InvalidInput("The name or password in the ledger's URL holds an @. Write it as %40.")
        try:
            # psycopg reads postgres:// as well; SQLAlchemy does not.
            url = make_url(target)
        except (ArgumentError, ValueError):
            # The text is not repeated: it may hold a password.
            raise InvalidInput("The ledger's URL cannot be read. Write postgresql://user@host/database.") from None
        if url.drivername in POSTGRESQL:
            return cls(url=url.set(drivername="postgresql+psycopg"))
        if url.drivername in {"sqlite", "sqlite+pysqlite"}:
            if url.query:
                raise InvalidInput("The URL of a SQLite ledger takes no options. Write sqlite:///path, or the path.")
            return cls(path=absolute(url.database or ""))
        raise InvalidInput(
            f"A ledger cannot lie in {url.drivername!r}. Give the path of a SQLite file, or postgresql://user@host/database."
        )

    @property
    def name(self) -> str:
        """For messages; hides the password."""
        if self.url is not None:
            whole = self.url.render_as_string(hide_password=False).replace("+psycopg", "", 1)
            return repr(without_secrets(whole, user=True))
        return repr(self.text or str(self.path))

    def check_folder(self, *, create: bool) -> None:
        """Say plainly what SQLite would call "unable to open database file"."""
        if self.path is None:
            return
        try:
            if not self.path.parent.is_dir():
                folder = os.path.dirname(self.text) or str(self.path.parent)
                raise LedgerUnavailable(f"No folder {folder!r} for the ledger {self.path.name!r}. Make it first.")
            if self.path.is_dir():
                raise LedgerUnavailable(f"{self.name} is a folder; a ledger is a file.")
            if self.path.exists() and not self.path.is_file():
                raise LedgerUnavailable(f"{self.name} is a pipe or a device; a ledger is a file.")
            if not create and not self.path.exists():
                raise LedgerUnavailable(f"No ledger at {self.name}.")
            if self.path.exists() and not os.access(self.path, os.R_OK):
                raise PermissionError
        except PermissionError:
            raise LedgerUnavailable(
                f"The ledger {self.path.name!r} cannot be opened: this user may not read it, or not enter its folder. "
                "Give this user the right to."
            ) from None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise LedgerUnavailable(f"The ledger {self.path.name!r} cannot be opened: {reason}.") from None


def absolute(text: str) -> Path:
    if not text or text == ":memory:" or "\0" in text or "\n" in text:
        raise InvalidInput(f"ledger={shown(text)} must be the path of a file: a ledger outlives who writes it.")
    return Path(text).expanduser().absolute()
