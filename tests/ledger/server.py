"""A PostgreSQL server of our own, in a temporary folder, reached through a socket in that folder."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

HOW_TO_GET_IT = "PostgreSQL is not installed. Get it: apt-get update && apt-get install -y postgresql"


def quick_folder() -> str | None:
    """A folder in memory, if there is one with room: the tests then do not hang on how busy the disk is.

    What locks, kills, races and full files do is the same there; only a power cut would tell the difference.
    """
    memory = Path("/dev/shm")
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**29
    return str(memory) if roomy else None


def binaries() -> Path | None:
    """The folder that holds initdb and pg_ctl. Debian keeps them out of the search path."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "pg_ctl").exists()), None)


def install() -> None:
    """On a machine that only runs checks, and only there: fetch Debian's package."""
    for command in (["apt-get", "update"], ["apt-get", "install", "-y", "postgresql"]):
        subprocess.run(command, check=False, capture_output=True, timeout=600)


@dataclass
class Server:
    """A running server; `stop` and `start` as a test needs it."""

    binaries: Path
    folder: Path
    user: Mapping[str, Any]
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def url(self, user: str = "postgres") -> str:
        return f"postgresql://{user}@/postgres?host={self.folder}"

    def new_schema(self) -> str:
        """The URL of an empty schema, which is quicker to make than a database and as good."""
        name = f"ledger_{next(self.numbers)}"
        self.execute(f"CREATE SCHEMA {name}")
        return f"{self.url()}&options=-csearch_path%3D{name}"

    def new_database(self, options: str) -> str:
        """The URL of an empty database with these options, such as ``ENCODING 'LATIN1' LOCALE 'C'``."""
        name = f"database_{next(self.numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0 {options}")
        return self.url().replace("/postgres?", f"/{name}?")

    def execute(self, statement: str, url: str | None = None) -> None:
        with psycopg.connect(url or self.url(), autocommit=True) as connection:
            connection.execute(statement.encode())

    def run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self.binaries / program), "-D", str(self.folder / "data"), *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            timeout=120,
            **self.user,
        )

    def start(self) -> None:
        self.run("pg_ctl", "start", "-w", "-l", str(self.folder / "log"))

    def stop(self, mode: str = "immediate") -> None:
        self.run("pg_ctl", "stop", "-w", "-m", mode)


@contextmanager
def serving(programs: Path) -> Iterator[Server]:
    """Make a cluster, start it, and remove it in the end."""
    folder = Path(tempfile.mkdtemp(prefix="privatest-pg-", dir=quick_folder()))
    user: dict[str, Any] = {}
    if os.getuid() == 0:  # initdb refuses root
        shutil.chown(folder, "postgres", "postgres")
        user = {"user": "postgres", "group": "postgres", "extra_groups": []}
    server = Server(programs, folder, user)
    try:
        server.run("initdb", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
        settings = f"listen_addresses = ''\nunix_socket_directories = '{folder}'\nmax_connections = 60\n"
        with (folder / "data" / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(settings)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
