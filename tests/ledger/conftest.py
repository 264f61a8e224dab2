"""Each test that asks for `target` runs on an empty SQLite file and on an empty PostgreSQL database."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine

from privatest.ledger import Ledger
from tests import needs
from tests.ledger import server as postgresql
from tests.ledger.server import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One PostgreSQL server for all tests of this process."""
    if needs.required() and postgresql.binaries() is None and os.getuid() == 0:
        postgresql.install()
    programs = postgresql.binaries()
    if programs is None:
        needs.missing(postgresql.HOW_TO_GET_IT)
        return
    with postgresql.serving(programs) as running:
        yield running


@pytest.fixture
def path() -> Iterator[Path]:
    """Where a SQLite file may be made, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="privatest-", dir=postgresql.quick_folder()) as folder:
        yield Path(folder) / "ledger.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, path: Path) -> str:
    """Where a ledger may be made."""
    if request.param == "sqlite":
        return str(path)
    running: Server = request.getfixturevalue("server")
    return running.new_schema()


@pytest.fixture
def ledger(target: str) -> Iterator[Ledger]:
    """An empty ledger."""
    with Ledger(target) as opened:
        yield opened


@pytest.fixture
def tamper(target: str) -> Callable[..., Any]:
    """Call tamper("UPDATE ...", ...): run SQL behind the ledger's back; the rows of the last statement."""

    def run(*statements: str) -> list[tuple[Any, ...]]:
        url = target.replace("postgresql:", "postgresql+psycopg:") if "://" in target else f"sqlite:///{target}"
        engine = create_engine(url, poolclass=NullPool)
        rows: list[tuple[Any, ...]] = []
        with engine.begin() as connection:
            for statement in statements:
                result = connection.exec_driver_sql(statement)
                rows = [tuple(row) for row in result] if result.returns_rows else []
        return rows

    return run


@pytest.fixture
def ask(ledger: Ledger) -> Callable[..., dict[str, Any]]:
    """Call ask("q1"): a request on data set "claims" for epsilon 0.1, unless said otherwise."""

    def perform(request: str, **changes: Any) -> dict[str, Any]:
        arguments = {
            "dataset": "claims",
            "epsilon": 0.1,
            "design": "sha256:aa",
            "draw": lambda: {"decision": "null", "request": request},
        }
        return ledger.perform(request=request, **{**arguments, **changes})

    return perform
