"""The two tables, and what may be asked of them inside one transaction."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    Select,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
    inspect,
    select,
)

from privatest.errors import LedgerTampered, LedgerUnreadable
from privatest.ledger.account import Protected
from privatest.ledger.chain import ADVANCE, EMPTY, FORMAT, Head, Row
from privatest.privacy.notions import Notion

__all__ = ["Book"]

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
OF_REQUEST = OF_STREAM.where(rows.c.kind.in_(["charge", "release"]))
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
    """The ledger inside one transaction.

    Guarantees: every row handed out matches its own hash.
    """

    def __init__(self, connection: Connection, ledger: str, *, writing: bool) -> None:
        self.connection = connection
        self.ledger = ledger
        self.writing = writing
        self.written = EMPTY
        """The newest row that this transaction has added."""

    def exists(self) -> bool:
        """Whether the database holds a ledger."""
        found = [table.name for table in (rows, head) if inspect(self.connection).has_table(table.name)]
        if len(found) == 1:
            raise LedgerTampered(f"The ledger {self.ledger} lost a table: only {found[0]} is left.")
        return bool(found)

    def create(self) -> None:
        """Make the tables, and the head record of an empty ledger."""
        if self.connection.dialect.name == "postgresql":
            # Two sessions may both find no tables: the second waits here, then finds them. Any number does.
            self.connection.exec_driver_sql("SELECT pg_advisory_xact_lock(1811111480)")
        if not self.exists():
            metadata.create_all(self.connection)
            self.connection.execute(head.insert(), {"id": 1, "format": FORMAT, "count": EMPTY.rows, "hash": EMPTY.hash})

    def head(self) -> Head:
        """The head record; when writing, nobody else writes from here to the end of the transaction."""
        found = self.connection.execute(THE_HEAD_LOCKED if self.writing else THE_HEAD).all()
        if len(found) != 1:
            raise LedgerTampered(f"The ledger {self.ledger} has {len(found)} head records, not one.")
        version, count, newest = found[0]
        if version != FORMAT:
            raise LedgerUnreadable(
                f"The ledger {self.ledger} is of version {version!r}; this privatest reads version {FORMAT}. "
                "Use the privatest that wrote it."
            )
        return Head(count, newest)

    def tail(self) -> Head:
        """The head record, which must name the newest row: the cheap part of ``verify``."""
        at = self.head()
        newest = self._first(NEWEST)
        found = EMPTY if newest is None else Head(newest.sequence, newest.hash)
        if at != found:
            raise LedgerTampered(
                f"Rows of the ledger {self.ledger} were removed, inserted or changed: the head record counts "
                f"{at.rows!r}, the newest row is number {found.rows}. Run ledger.verify(), and restore the "
                "ledger from a backup.",
                found.rows,
            )
        return at

    def newest_of(self, dataset: str) -> Row | None:
        """The newest row of a data set, which carries its totals."""
        return self._first(NEWEST_OF, dataset=dataset)

    def request(self, dataset: str, request: str) -> dict[str, Row]:
        """The rows of one request by kind: nothing, a charge, or a charge and a release."""
        found = self.connection.execute(OF_REQUEST, {"dataset": dataset, "request": request})
        by_kind = {row.kind: row for row in (Row(*values).checked(self.ledger) for values in found)}
        if "release" in by_kind and "charge" not in by_kind:
            bad = by_kind["release"].sequence
            raise LedgerTampered(f"Row {bad} of the ledger {self.ledger} is a release without its charge.", bad)
        return by_kind

    def advanced(self, dataset: str, request: str) -> Row | None:
        """The newest advance of the stream that a request began."""
        return self._first(NEWEST_ADVANCE, dataset=dataset, request=request)

    def rows(self, after: int | None, limit: int) -> list[Row]:
        """The next rows, unchecked, for the one who checks them all; None: from the first, whatever its number."""
        statement, values = (IN_ORDER, {}) if after is None else (AFTER, {"after": after})
        return [Row(*found) for found in self.connection.execute(statement.limit(limit), values)]

    def history(self, dataset: str | None) -> list[Row]:
        """All rows, or those of one data set, oldest first."""
        found = (
            self.connection.execute(AFTER, {"after": EMPTY.rows})
            if dataset is None
            else self.connection.execute(OF_DATASET, {"dataset": dataset})
        )
        return [Row(*values).checked(self.ledger) for values in found]

    def prices(self, dataset: str) -> Counter[tuple[Notion, Protected]]:
        """How many charges of each price, for what, a data set has."""
        found = [Row(*values).checked(self.ledger) for values in self.connection.execute(CHARGES, {"dataset": dataset})]
        return Counter((row.price, row.protected) for row in found)

    def protected(self, dataset: str) -> Protected:
        """What a data set's budget protects."""
        found = Protected()
        for values in self.connection.execute(GRANTS_OF, {"dataset": dataset}):
            found = found.after(Row(*values).checked(self.ledger).about) or found
        return found

    def covers(self) -> dict[str, list[str]]:
        """The sources that each data set's grant names; a data set that takes any source is not listed."""
        found: dict[str, list[str]] = {}
        for values in self.connection.execute(GRANTS):
            row = Row(*values).checked(self.ledger)
            if (named := row.about.get("covers")) is not None:  # a grant that names none leaves them as they are
                found[row.dataset] = list(named)
        return {dataset: named for dataset, named in found.items() if named}

    def datasets(self) -> list[str]:
        """Every data set with a row, in alphabetical order."""
        return sorted(str(name) for name in self.connection.execute(DATASETS).scalars())

    def append(
        self,
        at: Head,
        kind: str,
        dataset: str,
        *,
        epsilon: str,
        granted: str,
        spent: str,
        request: str | None = None,
        design: str | None = None,
        release: str | None = None,
    ) -> Row:
        """Add a row after the head record ``at``, which this transaction has locked; amounts as they are written."""
        row = Row(
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

    def _first(self, statement: Select[Any], **values: str) -> Row | None:
        found = self.connection.execute(statement, values).first()
        return None if found is None else Row(*found).checked(self.ledger)
