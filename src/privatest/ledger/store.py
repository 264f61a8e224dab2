"""The database of a ledger: its two tables, its address, its errors in the ledger's words, and its transactions.

A ledger lies in a SQLite file or a PostgreSQL database. There is one writer at a time, across threads and processes,
and what a transaction wrote is on disk when it returns.
"""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import threading
import time
import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    BigInteger,
    Column,
    Connection,
    Engine,
    Index,
    Integer,
    MetaData,
    Select,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
    create_engine,
    exc,
    inspect,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from privatest.data_addresses import has_ambiguous_login, without_secrets
from privatest.errors import (
    InvalidInput,
    LedgerError,
    LedgerLocked,
    LedgerTampered,
    LedgerUnavailable,
    LedgerUnreadable,
    MissingExtra,
    shown,
)
from privatest.ledger.budgets import Protection
from privatest.ledger.hash_chain import ADVANCE, EMPTY, FORMAT, Head, LedgerRow
from privatest.privacy.notion import Notion

metadata = MetaData()

# SQLite makes a column the table's own key only if its type is spelt INTEGER.
whole = BigInteger().with_variant(Integer, "sqlite")
rows = Table(
    "privatest_ledger_rows",
    metadata,
    Column("sequence", whole, primary_key=True, autoincrement=False),
    Column("time", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("request", Text),
    Column("epsilon", Text, nullable=False),
    Column("design", Text),
    Column("granted", Text, nullable=False),
    Column("spent", Text, nullable=False),
    Column("release", Text),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    # The database itself refuses a second charge or a second release of one request.
    UniqueConstraint("dataset", "request", "kind", name="privatest_ledger_once"),
    Index("privatest_ledger_newest", "dataset", "sequence"),
)
head = Table(
    "privatest_ledger_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("format", Integer, nullable=False),
    Column("count", whole, nullable=False),
    Column("hash", Text, nullable=False),
)
THE_HEAD = select(head.c.format, head.c["count"], head.c.hash)

# Every writer locks this one row first, so writers take turns. (SQLAlchemy leaves FOR UPDATE out for SQLite,
# where BEGIN IMMEDIATE does it.)
THE_HEAD_LOCKED = THE_HEAD.with_for_update()
NEWEST = select(rows).order_by(rows.c.sequence.desc()).limit(1)
NEWEST_OF = select(rows).where(rows.c.dataset == bindparam("dataset")).order_by(rows.c.sequence.desc()).limit(1)
OF_STREAM = select(rows).where(rows.c.dataset == bindparam("dataset"), rows.c.request == bindparam("request"))
OF_REQUEST = OF_STREAM.where(rows.c.kind.in_(["charge", "draw", "release"]))
# By the numbers in their kinds, which the unique index has in order: a stream may have very many.
NEWEST_ADVANCE = (
    OF_STREAM.where(rows.c.kind.between(ADVANCE.format(0), ADVANCE.format(10**12 - 1)))
    .order_by(rows.c.kind.desc())
    .limit(1)
)
IN_ORDER = select(rows).order_by(rows.c.sequence)
AFTER = IN_ORDER.where(rows.c.sequence > bindparam("after"))
OF_DATASET = select(rows).where(rows.c.dataset == bindparam("dataset")).order_by(rows.c.sequence)
CHARGES = OF_DATASET.where(rows.c.kind == "charge")
GRANTS_OF = OF_DATASET.where(rows.c.kind == "grant")
GRANTS = select(rows).where(rows.c.kind == "grant").order_by(rows.c.sequence)
DATASETS = select(rows.c.dataset).distinct().order_by(rows.c.dataset)
ADD = rows.insert()
MOVE_HEAD = (
    head.update()
    .where(head.c["count"] == bindparam("old"))
    .values({"count": bindparam("new"), "hash": bindparam("newest")})
)


class Book:
    """The tables of a ledger within one transaction.

    Guarantees: every row handed out matches its own hash.
    """

    def __init__(self, connection: Connection, ledger: str, *, writing: bool) -> None:
        self.connection = connection
        self.ledger = ledger
        self.writing = writing
        self.written = EMPTY
        """Head after the newest row that this transaction has added."""

    def exists(self) -> bool:
        """Whether the database has a ledger's tables."""
        result = [table.name for table in (rows, head) if inspect(self.connection).has_table(table.name)]
        if len(result) == 1:
            raise LedgerTampered(f"The ledger {self.ledger} lost a table: only {result[0]} is left.")
        return bool(result)

    def create(self) -> None:
        """Create the tables and the head record of an empty ledger."""
        if self.connection.dialect.name == "postgresql":
            # Two sessions may both find no tables: the second one waits for this lock, then finds them.
            self.connection.exec_driver_sql("SELECT pg_advisory_xact_lock(1811111480)")
        if not self.exists():
            metadata.create_all(self.connection)
            self.connection.execute(head.insert(), {"id": 1, "format": FORMAT, "count": EMPTY.rows, "hash": EMPTY.hash})

    def head(self) -> Head:
        """Return the head record; a transaction that writes locks it, so that nobody else writes."""
        result = self.connection.execute(THE_HEAD_LOCKED if self.writing else THE_HEAD).all()
        if len(result) != 1:
            raise LedgerTampered(f"The ledger {self.ledger} has {len(result)} head records, not one.")
        version, count, newest = result[0]
        if version != FORMAT:
            raise LedgerUnreadable(
                f"The ledger {self.ledger} is of version {version!r}; this privatest reads version {FORMAT}. "
                "Use the privatest that wrote it."
            )
        return Head(count, newest)

    def tail(self) -> Head:
        """Return the head record; raise LedgerTampered if it does not name the newest row."""
        at = self.head()
        newest = self._first(NEWEST)
        result = EMPTY if newest is None else Head(newest.sequence, newest.hash)
        if at != result:
            raise LedgerTampered(
                f"Rows of the ledger {self.ledger} were removed, inserted or changed: the head record counts "
                f"{at.rows!r}, the newest row is number {result.rows}. Run ledger.verify(), and restore the "
                "ledger from a backup.",
                result.rows,
            )
        return at

    def newest_of(self, dataset: str) -> LedgerRow | None:
        """Return the newest row of a data set, which has its totals."""
        return self._first(NEWEST_OF, dataset=dataset)

    def request(self, dataset: str, request: str) -> dict[str, LedgerRow]:
        """Return the rows of one request by kind: none, or a charge and perhaps a draw and a release."""
        result = self.connection.execute(OF_REQUEST, {"dataset": dataset, "request": request})
        by_kind = {row.kind: row for row in (LedgerRow(*values).checked(self.ledger) for values in result)}
        if by_kind and "charge" not in by_kind:
            kind, row = next(iter(by_kind.items()))
            bad = f"Row {row.sequence} of the ledger {self.ledger} is a {kind} without its charge."
            raise LedgerTampered(bad, row.sequence)
        return by_kind

    def advanced(self, dataset: str, request: str) -> LedgerRow | None:
        """Return the newest advance of the stream that a request began."""
        return self._first(NEWEST_ADVANCE, dataset=dataset, request=request)

    def rows(self, after: int | None, limit: int) -> list[LedgerRow]:
        """Return the rows after a sequence number, unchecked; None: from the first row, whatever its number."""
        statement, values = (IN_ORDER, {}) if after is None else (AFTER, {"after": after})
        return [LedgerRow(*result) for result in self.connection.execute(statement.limit(limit), values)]

    def history(self, dataset: str | None) -> list[LedgerRow]:
        """Return all rows, or those of one data set, oldest first."""
        result = (
            self.connection.execute(AFTER, {"after": EMPTY.rows})
            if dataset is None
            else self.connection.execute(OF_DATASET, {"dataset": dataset})
        )
        return [LedgerRow(*values).checked(self.ledger) for values in result]

    def prices(self, dataset: str) -> Counter[tuple[Notion, Protection]]:
        """Return how many charges of each price and protection a data set has."""
        result = [
            LedgerRow(*values).checked(self.ledger) for values in self.connection.execute(CHARGES, {"dataset": dataset})
        ]
        return Counter((row.price, row.protected) for row in result)

    def protected(self, dataset: str) -> Protection:
        """Return what a data set's budget protects."""
        result = Protection()
        for values in self.connection.execute(GRANTS_OF, {"dataset": dataset}):
            result = result.after(LedgerRow(*values).checked(self.ledger).about) or result
        return result

    def covers(self) -> dict[str, list[str]]:
        """Return the sources that each data set's grant names, without data sets that allow any source."""
        result: dict[str, list[str]] = {}
        for values in self.connection.execute(GRANTS):
            row = LedgerRow(*values).checked(self.ledger)
            if (named := row.about.get("covers")) is not None:  # a grant without covers does not change them
                result[row.dataset] = list(named)
        return {dataset: named for dataset, named in result.items() if named}

    def datasets(self) -> list[str]:
        """Return the names of all data sets, in alphabetical order."""
        return sorted(str(name) for name in self.connection.execute(DATASETS).scalars())

    def follow(self, charge: LedgerRow, kind: str, release: str) -> LedgerRow:
        """Add a row about a request that was charged, which changes no total."""
        newest = self.newest_of(charge.dataset) or charge
        return self.append(
            kind,
            charge.dataset,
            request=charge.request,
            design=charge.design,
            epsilon=charge.epsilon,
            granted=newest.granted,
            spent=newest.spent,
            release=release,
        )

    def append(
        self,
        kind: str,
        dataset: str,
        *,
        epsilon: str,
        granted: str,
        spent: str,
        request: str | None = None,
        design: str | None = None,
        release: str | None = None,
    ) -> LedgerRow:
        """Add a row after the head record, which this transaction has locked; amounts are texts."""
        at = self.head()
        row = LedgerRow(
            sequence=at.rows + 1,
            time=datetime.now(UTC).isoformat(timespec="microseconds"),
            kind=kind,
            dataset=dataset,
            request=request,
            epsilon=epsilon,
            design=design,
            granted=granted,
            spent=spent,
            release=release,
            previous=at.hash,
        ).sealed()
        self.connection.execute(ADD, row._asdict())
        moved = self.connection.execute(MOVE_HEAD, {"old": at.rows, "new": row.sequence, "newest": row.hash}).rowcount
        if moved != 1:
            raise LedgerTampered(f"The head record of the ledger {self.ledger} changed under a lock.")
        self.written = Head(row.sequence, row.hash)
        return row

    def _first(self, statement: Select[Any], **values: str) -> LedgerRow | None:
        result = self.connection.execute(statement, values).first()
        return None if result is None else LedgerRow(*result).checked(self.ledger)


Target = str | os.PathLike[str] | URL
POSTGRESQL = {"postgresql", "postgres", "postgresql+psycopg"}


@dataclass(frozen=True)
class Address:
    """Where a ledger lies. Exactly one of ``path`` and ``url`` is set."""

    path: Path | None = None
    url: URL | None = None
    text: str = ""
    """The path as the user wrote it, for messages, which do not show the current folder."""

    @classmethod
    def of(cls, target: Target) -> Address:
        """Return the address that a user wrote. A relative path starts in the folder that is current now."""
        if isinstance(target, str) and "://" not in target:
            return cls(path=absolute(target), text=target)
        if isinstance(target, os.PathLike):
            return cls(path=absolute(os.fspath(target)), text=os.fspath(target))
        if not isinstance(target, str | URL):
            raise InvalidInput(f"A ledger lies at a path or at a URL, not at a {type(target).__name__}.")
        if isinstance(target, str) and has_ambiguous_login(target):
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
        """The address for messages, without the password."""
        if self.url is not None:
            whole = self.url.render_as_string(hide_password=False).replace("+psycopg", "", 1)
            return repr(without_secrets(whole, user=True))
        return repr(self.text or str(self.path))

    def check_folder(self, *, create: bool) -> None:
        """Raise LedgerUnavailable, with the reason, where SQLite would only say "unable to open database file"."""
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

    def make_file(self) -> None:
        """Create the SQLite file, if there is none, readable by this user only. SQLite's other files get the same mode.

        An existing file keeps its mode.
        """
        if self.path is None:
            return
        with contextlib.suppress(OSError):  # SQLite will say what is wrong, or open a file that another process made
            file = os.open(os.path.realpath(self.path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            os.fchmod(file, 0o600)
            os.close(file)


def absolute(text: str) -> Path:
    if not text or text == ":memory:" or "\0" in text or "\n" in text:
        raise InvalidInput(f"ledger={shown(text)} must be the path of a file: a ledger outlives who writes it.")
    return Path(text).expanduser().absolute()


LOCKED = (
    "is locked by somebody else. Try again, or wait longer: Ledger(..., timeout=seconds), on the command line "
    "--ledger-timeout SECONDS"
)
READ_ONLY = "cannot be written: {detail}. Give this user the right to write to it, and to its folder"
FULL = "cannot grow: {detail}. Make room on its disk and try again"
NO_FILE = "cannot be opened: {detail}. Check that the file is there, and that this user may write to its folder"
NOT_A_LEDGER = "is no ledger: {detail}. Give the file or database of a ledger"
ANOTHER_VERSION = "has no ledger's tables or columns: {detail}. It may be of another version of privatest"
DAMAGED = "is damaged: {detail}. Restore it from a backup"
BROKEN_DISK = "could not be read or written: {detail}. Check its disk"
UNREACHABLE = "cannot be reached: {detail}. Check the address, and that the server runs"
REFUSED = "refused this user: {detail}. Check the name, the password and the server's pg_hba.conf"
NO_DATABASE = "does not exist: {detail}. Create the database first"
OTHER = "failed: {detail}"
ErrorWords = tuple[type[LedgerError], str]
SQLITE: dict[str, ErrorWords] = {
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

POSTGRESQL_FAILURES: dict[str, ErrorWords] = {
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
"""By SQLSTATE, which has five characters; the first two are its class."""


def ledger_error(error: exc.SQLAlchemyError, ledger: str) -> LedgerError:
    """Return the error to raise in place of SQLAlchemy's. It never has the statement's parameters."""
    if isinstance(error, exc.TimeoutError):  # all connections of the pool are in use
        return LedgerLocked(f"The ledger {ledger} {LOCKED}.")
    if not isinstance(error, exc.DBAPIError):
        return LedgerError(f"The ledger {ledger} {OTHER.format(detail=type(error).__name__)}.")
    kind, words = error_words(error)
    lines = str(error.orig).strip().splitlines()
    detail = lines[0].rstrip(".") if lines else type(error.orig).__name__
    return kind(f"The ledger {ledger} {words.format(detail=detail)}.")


def error_words(error: exc.DBAPIError) -> ErrorWords:
    """Return the kind of error to raise for a driver's error, and its words."""
    name = getattr(error.orig, "sqlite_errorname", None)
    if name is not None:  # SQLITE_BUSY, SQLITE_BUSY_SNAPSHOT, SQLITE_IOERR_WRITE, ...
        return SQLITE.get("_".join(name.split("_")[:2]), (LedgerError, OTHER))
    state = getattr(error.orig, "sqlstate", None)
    if state is None:  # the server did not answer, or the connection broke
        reachable = not (error.connection_invalidated or isinstance(error, exc.OperationalError))
        return (LedgerError, OTHER) if reachable else (LedgerUnavailable, UNREACHABLE)
    return POSTGRESQL_FAILURES.get(state) or POSTGRESQL_FAILURES.get(state[:2]) or (LedgerError, OTHER)


BEGIN = {
    ("sqlite", False): "BEGIN",
    ("sqlite", True): "BEGIN IMMEDIATE",
    # One snapshot for all that is read; nothing is locked.
    ("postgresql", False): "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    # After the head record is locked, later statements must see what the previous holder committed.
    ("postgresql", True): "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
}
# A charge must be on disk when COMMIT returns, also where the server's default is looser.
POSTGRESQL_SETTINGS = (
    "SELECT set_config('lock_timeout', '{milliseconds}ms', true), set_config('synchronous_commit', "
    "CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' "
    "ELSE current_setting('synchronous_commit') END, true)"
)
PATIENCE = 0.02
"""Seconds of one wait for a lock by SQLite, which looks after 1, 3, 8 and 18 milliseconds."""


class FileConnection(sqlite3.Connection):
    """A connection to a SQLite file whose locks end when it is closed.

    Otherwise a query that was interrupted holds its lock for as long as any object refers to its cursor, such as a
    traceback in a notebook, which would then wait for itself.
    """

    def __init__(self, *where: Any, **how: Any) -> None:
        super().__init__(*where, **how)
        self._cursors: weakref.WeakSet[sqlite3.Cursor] = weakref.WeakSet()

    def cursor(self, *factory: Any, **how: Any) -> Any:
        """Return a cursor that is closed with the connection."""
        result = super().cursor(*factory, **how)
        self._cursors.add(result)
        return result

    def close(self) -> None:
        """Close the connection and all of its cursors."""
        for cursor in list(self._cursors):
            with contextlib.suppress(sqlite3.ProgrammingError):  # closed before, with its connection
                cursor.close()
        super().close()


class Store:
    """Transactions with the database of one ledger.

    Guarantees: a transaction that ends without an error is durable; one that ends with an error changed nothing. If the
    connection breaks during COMMIT, nobody can know; to repeat the request settles it. The object may be used by many
    threads, and in a child process after a fork.
    """

    def __init__(self, address: Address, timeout: float, *, create: bool) -> None:
        self.address = address
        self.timeout = timeout
        self.turn = threading.RLock()
        self._engines: dict[int, Engine] = {}
        self._files: dict[int, sqlite3.Connection] = {}  # the newest connection of each process
        self._mode = "rwc" if create else "rw"
        address.check_folder(create=create)
        if create:
            address.make_file()
        with forking:
            stores.add(self)
        self._open(create)
        # From here on a missing file is an error, and no new ledger is created.
        self._mode = "rw"

    @contextlib.contextmanager
    def read(self) -> Iterator[Book]:
        """Begin a transaction that sees one state of the ledger."""
        with self._transaction(writing=False) as connection:
            yield Book(connection, self.address.name, writing=False)

    @contextlib.contextmanager
    def write(self) -> Iterator[Book]:
        """Begin a transaction that may add rows: all of them or none."""
        with self._transaction(writing=True) as connection:
            yield Book(connection, self.address.name, writing=True)

    def close(self) -> None:
        """Close idle connections; the next use opens new ones."""
        engine = self._engines.pop(os.getpid(), None)
        if engine is not None:
            engine.dispose()

    def _open(self, create: bool) -> None:
        with self.read() as book:
            if book.exists():
                book.head()  # raises if it is of another version
                return
        if not create:
            raise LedgerUnreadable(f"{self.address.name} holds no ledger.")
        with self.write() as book:
            book.create()

    @contextlib.contextmanager
    def _transaction(self, *, writing: bool) -> Iterator[Connection]:
        with self._own_turn():
            try:
                with self._begun(writing) as connection:
                    try:
                        yield connection
                        connection.exec_driver_sql("COMMIT")
                    except BaseException:
                        abandon(connection)
                        raise
            except SQLAlchemyError as error:
                raise ledger_error(error, self.address.name) from getattr(error, "orig", None)
            except UnicodeDecodeError:
                # sqlite3 fails to decode its own message if that quotes the bytes of a damaged schema.
                detail = DAMAGED.format(detail="its schema is not text")
                raise LedgerUnreadable(f"The ledger {self.address.name} {detail}.") from None

    def _begun(self, writing: bool) -> Connection:
        """Return a connection inside a new transaction, after waiting for the locks that it needs.

        SQLite looks for a free lock ever more rarely, in the end ten times a second, so that a late process may never
        find a gap between busy ones. So each of its waits is limited to PATIENCE and started anew.
        """
        deadline = time.monotonic() + self.timeout
        lost = 0
        while True:
            connection = None
            try:
                # With AUTOCOMMIT SQLAlchemy begins no transaction by itself, so this statement does.
                connection = self._engine().connect()
                connection.exec_driver_sql(BEGIN[connection.dialect.name, writing])
                for statement in self._settings(connection.dialect.name, writing):
                    connection.exec_driver_sql(statement)
                return connection
            except BaseException as error:
                if connection is not None:
                    abandon(connection)
                    connection.close()
                if self.address.path is None:
                    # After a restart of the server the first connection fails, and a second one is made.
                    lost += 1
                    if lost > 1 or not getattr(error, "connection_invalidated", False):
                        raise
                    continue
                name = getattr(getattr(error, "orig", None), "sqlite_errorname", "")
                if not name.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                    raise
            time.sleep(0.001)  # SQLite sometimes does not wait at all

    def _settings(self, database: str, writing: bool) -> list[str]:
        milliseconds = math.ceil(1000 * self.timeout)
        if database == "postgresql":
            return [POSTGRESQL_SETTINGS.format(milliseconds=milliseconds)] if writing else []
        # A reader takes its lock with the first read. After that only COMMIT waits, for the readers that have begun,
        # and new readers are held off: SQLite itself may wait for that.
        lock = [] if writing else ["SELECT count(*) FROM sqlite_master"]
        return [*lock, f"PRAGMA busy_timeout = {milliseconds}"]

    @contextlib.contextmanager
    def _own_turn(self) -> Iterator[None]:
        """Wait for this thread's turn at a SQLite file. A fork waits until no thread has its turn."""
        if self.address.path is None:
            yield
            return
        if not self.turn.acquire(timeout=self.timeout):
            raise LedgerLocked(f"The ledger {self.address.name} {LOCKED}.")
        try:
            yield
        finally:
            self.turn.release()

    def _engine(self) -> Engine:
        """Return the engine of this process.

        An engine inherited through a fork is left alone: its connections belong to the parent process, and to close
        them here would end them there.
        """
        process = os.getpid()
        engine = self._engines.get(process)
        if engine is None:
            engine = self._engines.setdefault(process, self._connectable())
            weakref.finalize(self, dispose, engine, process)
        return engine

    def _connectable(self) -> Engine:
        if self.address.url is None:
            # No pool: to open a file is cheap, and no idle connection is left for a fork to inherit.
            # SQLite's write-ahead log would save four of five fsyncs, but then the file alone would not be the ledger
            # (a copy could lack the newest charges), and two hosts could not share it.
            return create_engine(
                "sqlite://",
                creator=self._sqlite,
                poolclass=NullPool,
                isolation_level="AUTOCOMMIT",
                hide_parameters=True,
            )
        try:
            seconds = max(2, math.ceil(self.timeout))
            return create_engine(
                self.address.url,
                isolation_level="AUTOCOMMIT",
                hide_parameters=True,
                pool_timeout=self.timeout,
                connect_args={"connect_timeout": seconds, "tcp_user_timeout": 1000 * seconds},
            )
        except ImportError:
            raise MissingExtra.of("A ledger in PostgreSQL needs psycopg.", "ledger") from None

    def _sqlite(self) -> sqlite3.Connection:
        path = self.address.path
        assert path is not None
        uri = f"{path.as_uri()}?mode={self._mode}"
        # Only the thread that has its turn opens a connection, so the last one is closed, unless an interrupt came at a
        # bad moment. Then it would hold its lock until Python collects it.
        if (last := self._files.get(os.getpid())) is not None:
            last.close()  # it is forgotten only below, in case of an interrupt here
        connection = sqlite3.connect(
            uri, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False, factory=FileConnection
        )
        self._files[os.getpid()] = connection
        try:
            # EXTRA: the removal of the journal is on disk too when COMMIT returns. Otherwise a power failure could
            # undo a charge whose release has been shown.
            connection.execute("PRAGMA synchronous = EXTRA")
        except BaseException:
            connection.close()
            raise
        # A row that was edited to broken UTF-8 must be readable, so that its hash shows which row it is.
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        return connection


def abandon(connection: Connection) -> None:
    """Roll back; if that fails, drop the connection, which rolls back too."""
    try:
        connection.rollback()
    except SQLAlchemyError:
        connection.invalidate()


def dispose(engine: Engine, process: int) -> None:
    """Close the engine's connections in the process that made it."""
    if os.getpid() == process:
        engine.dispose()


# SQLite keeps its locks in memory too. If one thread forks while another is inside a transaction, the child would have
# locks that nobody ever releases. So a fork waits for all turns.
stores: weakref.WeakSet[Store] = weakref.WeakSet()
forking = threading.RLock()
waiting: list[Store] = []


def before_fork() -> None:
    forking.acquire()
    waiting[:] = sorted(stores, key=id)  # one order for all
    for store in waiting:
        store.turn.acquire()


def after_fork() -> None:
    while waiting:
        waiting.pop().turn.release()
    forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=before_fork, after_in_parent=after_fork, after_in_child=after_fork)
