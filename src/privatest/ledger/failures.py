"""What a database complains about, said in words of the ledger, with a remedy."""

from __future__ import annotations

from sqlalchemy import exc

from privatest.errors import LedgerError, LedgerLocked, LedgerUnavailable, LedgerUnreadable

__all__ = ["failure"]

LOCKED = (
    "is locked by somebody else. Try again, or wait longer: Ledger(..., timeout=seconds), on the command line "
    "--ledger-timeout SECONDS"
)
SILENT = "does not answer within the timeout of {seconds:g} seconds. Check that its server runs, and try again"
READ_ONLY = "cannot be written: {detail}. Give this user the right to write to it, and to its folder"
FULL = "cannot grow: {detail}. Make room on its disk and try again"
NO_FILE = "cannot be opened: {detail}. Check that the file is there, and that this user may write to its folder"
NOT_A_LEDGER = "is no ledger: {detail}. Was another file or database meant?"
ANOTHER_VERSION = "has no ledger's tables or columns: {detail}. Was it made by another version of privatest?"
DAMAGED = "is damaged: {detail}. Restore it from a backup"
BROKEN_DISK = "could not be read or written: {detail}. Check its disk"
UNREACHABLE = "cannot be reached: {detail}. Check the address, and that the server runs"
REFUSED = "refused this user: {detail}. Check the name, the password and the server's pg_hba.conf"
NO_DATABASE = "does not exist: {detail}. Create the database first"
OTHER = "failed: {detail}"

Answer = tuple[type[LedgerError], str]

SQLITE: dict[str, Answer] = {
    "SQLITE_BUSY": (LedgerLocked, LOCKED),
    "SQLITE_LOCKED": (LedgerLocked, LOCKED),
    "SQLITE_READONLY": (LedgerUnavailable, READ_ONLY),
    "SQLITE_PERM": (LedgerUnavailable, READ_ONLY),
    "SQLITE_FULL": (LedgerUnavailable, FULL),
    "SQLITE_CANTOPEN": (LedgerUnavailable, NO_FILE),
    "SQLITE_IOERR": (LedgerUnavailable, BROKEN_DISK),
    "SQLITE_NOTADB": (LedgerUnreadable, NOT_A_LEDGER),
    "SQLITE_CORRUPT": (LedgerUnreadable, DAMAGED),
    "SQLITE_ERROR": (LedgerUnreadable, ANOTHER_VERSION),  # no such table, no such column
}

# By SQLSTATE: five characters, of which the first two are the class.
POSTGRESQL: dict[str, Answer] = {
    "55P03": (LedgerLocked, LOCKED),
    "40P01": (LedgerLocked, LOCKED),
    "40001": (LedgerLocked, LOCKED),
    "42501": (LedgerUnavailable, READ_ONLY),
    "25006": (LedgerUnavailable, READ_ONLY),
    "53": (LedgerUnavailable, FULL),
    "53300": (LedgerUnavailable, UNREACHABLE),
    "58": (LedgerUnavailable, BROKEN_DISK),
    "XX001": (LedgerUnreadable, DAMAGED),
    "XX002": (LedgerUnreadable, DAMAGED),
    "42P01": (LedgerUnreadable, ANOTHER_VERSION),
    "42703": (LedgerUnreadable, ANOTHER_VERSION),
    "28": (LedgerUnavailable, REFUSED),
    "3D000": (LedgerUnavailable, NO_DATABASE),
    "08": (LedgerUnavailable, UNREACHABLE),
    "57": (LedgerUnavailable, UNREACHABLE),
}


def failure(error: exc.SQLAlchemyError, ledger: str) -> LedgerError:
    """The error to raise in place of ``error``. Never carries the statement's parameters."""
    if isinstance(error, exc.TimeoutError):  # the pool's connections are all in use
        return LedgerLocked(f"The ledger {ledger} {LOCKED}.")
    if not isinstance(error, exc.DBAPIError):
        return LedgerError(f"The ledger {ledger} {OTHER.format(detail=type(error).__name__)}.")
    kind, words = answer(error)
    lines = str(error.orig).strip().splitlines()
    detail = lines[0].rstrip(".") if lines else type(error.orig).__name__
    return kind(f"The ledger {ledger} {words.format(detail=detail)}.")


def answer(error: exc.DBAPIError) -> Answer:
    name = getattr(error.orig, "sqlite_errorname", None)
    if name is not None:  # SQLITE_BUSY, SQLITE_BUSY_SNAPSHOT, SQLITE_IOERR_WRITE, ...
        return SQLITE.get("_".join(name.split("_")[:2]), (LedgerError, OTHER))
    state = getattr(error.orig, "sqlstate", None)
    if state is None:  # the server did not answer, or the connection broke
        reachable = not (error.connection_invalidated or isinstance(error, exc.OperationalError))
        return (LedgerError, OTHER) if reachable else (LedgerUnavailable, UNREACHABLE)
    return POSTGRESQL.get(state) or POSTGRESQL.get(state[:2]) or (LedgerError, OTHER)
