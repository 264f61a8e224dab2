"""Addresses: where data and ledgers lie, as a name that may be shown and an identity that can be compared.

Nothing here opens anything. An address says what was given, whether or not it exists.
"""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

from privatest.errors import InvalidInput

FORMATS = {
    "Parquet": (".parquet", ".pq", ".parq"),
    "CSV": (".csv", ".tsv"),
    "Feather": (".feather", ".arrow", ".ipc", ".arrows"),
}
"""Formats of files, by the ends of their names."""
PACKED = (".gz", ".bz2", ".zst", ".lz4")
"""Ends of names of compressed files. Only text files may be compressed."""


def format_of(path: str) -> str | None:
    """Return the format of a file by its name alone, because its first bytes may be those of a record.

    >>> format_of("claims.csv.gz"), format_of("claims.txt")
    ('CSV', None)
    """
    name = path.lower()
    for ending in PACKED:
        if name.endswith(ending):
            name = name.removesuffix(ending)
            return "CSV" if name.endswith(FORMATS["CSV"]) else None
    return next((form for form, endings in FORMATS.items() if name.endswith(endings)), None)


IN_MEMORY = "data in memory"
"""Name of arrays, data frames, open tables and streams, of which two cannot be told apart."""

# A password may hold any character and ends at the last @, so everything before that @ is hidden.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*://)(?:(.*)@)?([^?#]*)([?#].*)?", re.DOTALL)
_SECRET_OPTION = re.compile(
    r"[?&;][^?&;=]*(?:pass|pwd|secret|token|key|credential)[^?&;=]*=.*", re.DOTALL | re.IGNORECASE
)
_FILES = ("duckdb://", "sqlite://", "file://")
_PORTS = {"postgresql": "5432", "mysql": "3306"}
_SCHEMAS = {"postgresql": "public.", "duckdb": "main."}
_WHERE = ("host", "hostaddr", "port", "dbname", "service")
"""Options of an address that say where the database is."""
_LONGEST = 200


def without_secrets(text: str, *, user: bool = False) -> str:
    """Return an address without password and options; the user's name is kept only with ``user``.

    A text that is not an address is returned as it is.

    >>> without_secrets("postgresql://ann:s/e?c#r@t@host/claims?sslmode=require::payments")
    'postgresql://...@host/claims?...::payments'
    """
    result = _ADDRESS.search(text)
    if result is None:
        return text
    scheme, login, rest, options = _parsed(result[0])
    name = (login or "").partition(":")[0]
    who = "" if login is None else f"{name}@" if user and name and re.fullmatch(r"[\w.\-]+", name) else "...@"
    table = (options or "").rpartition("::")[2] if "::" in (options or "") else None
    hidden = "" if options is None else "?..." if table is None else f"?...::{table}"
    return f"{text[: result.start()]}{scheme}{who}{rest}{hidden}"


def without_password(address: str) -> str:
    """Return an address without its password, but with everything else. Other texts are returned as they are.

    >>> without_password("postgresql://ann:s/e@t@host/claims?sslmode=require&password=x::payments")
    'postgresql://ann@host/claims?sslmode=require::payments'
    """
    result = _ADDRESS.search(address)  # it may be preceded by blanks or jdbc:
    if result is None:
        return address
    scheme, login, rest, options = _parsed(result[0])
    user = (login or "").partition(":")[0]
    public = f"{scheme}{user}{'@' if user else ''}{rest}{(options or '').replace('&...', '').removesuffix('?')}"
    return address[: result.start()] + public.replace("?::", "::")


def has_ambiguous_login(address: str) -> bool:
    """Whether the login has an @, which drivers would take for its end, and what follows for the host's name."""
    return _ADDRESS.fullmatch(address) is not None and "@" in (_parsed(address)[1] or "")


@dataclass(frozen=True)
class DataAddress:
    """What a request reads.

    Attributes:
        name: for messages, as the user wrote it, without passwords.
        parts: the files or tables, each in its one spelling; empty for data in memory.
    """

    name: str
    parts: tuple[str, ...] = ()

    @property
    def identity(self) -> str | None:
        """A short text, equal for equal files or tables; None for data in memory."""
        if not self.parts:
            return None
        return hashlib.sha256("\0".join(sorted(self.parts)).encode("utf-8", "replace")).hexdigest()[:32]


@dataclass(frozen=True, eq=False, repr=False)
class OpenOnce:
    """Data that several calls open once; :func:`privatest.data.open_once` returns it.

    Attributes:
        data: the source as the user named it. Ledgers and messages see nothing else.
        opened: the open records, by the columns and the rows of a unit that they were opened with. Never shown.
    """

    data: Any
    opened: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<{address_of(self).name}, to be opened once>"  # logs and debuggers must not show records


@dataclass(frozen=True)
class Reading:
    """How the texts of a source are read.

    Attributes:
        decimal: the decimal mark.
        missing: texts that mean a missing record.
        fold_case: whether labels may differ in case.
        delimiter: what separates the fields of CSV files; None: what their names say.
        text_order: whether an order by text is meant.
    """

    decimal: str = "."
    missing: tuple[str, ...] = ()
    fold_case: bool = False
    delimiter: str | None = None
    text_order: bool = False


AS_WRITTEN = Reading()
"""How texts are read if the user says nothing."""


@dataclass(frozen=True, eq=False, repr=False)
class ReadAs:
    """Data with a rule for reading their texts; :func:`privatest.data.read_as` returns it."""

    data: Any
    reading: Reading

    def __repr__(self) -> str:
        return f"<{address_of(self).name}, read as {self.reading}>"


def unwrapped(data: Any) -> Any:
    """Return the data as the user named them, without :class:`OpenOnce` and :class:`ReadAs` around them."""
    while isinstance(data, OpenOnce | ReadAs):
        data = data.data
    return data


def reading_options(data: Any) -> Reading:
    """Return how the user said that texts are read."""
    while isinstance(data, OpenOnce):
        data = data.data
    return data.reading if isinstance(data, ReadAs) else AS_WRITTEN


def reading_facts(data: Any) -> dict[str, Any]:
    """Return how data are read, for a request's fingerprint; empty if the user said nothing."""
    if _is_several(data):
        each = [reading_facts(one) for one in data]
        return {"readings": each} if any(each) else {}
    result = reading_options(data)
    if result == AS_WRITTEN:
        return {}
    return {"reading": {**asdict(result), "missing": json.dumps(result.missing)}}


def _is_several(data: Any) -> bool:
    """Whether data are several sources, such as those of two groups, rather than records."""
    return isinstance(data, tuple) and len(data) > 0 and all(isinstance(one, OpenOnce | ReadAs) for one in data)


def address_of(data: Any) -> DataAddress:
    """Return the address of the data that a user passes: a path, glob, folder, address, or data in memory."""
    data = unwrapped(data)
    if isinstance(data, DataAddress):
        return data
    if isinstance(data, str):
        name = without_secrets(data)
        shown = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."
        return DataAddress(shown, (_table(data),) if "://" in data else _files([data]))
    if isinstance(data, os.PathLike):
        return address_of(os.fsdecode(os.fspath(data)))
    if isinstance(data, list | tuple) and data and all(issubclass(type(one), os.PathLike) for one in data):
        paths = [os.fsdecode(os.fspath(one)) for one in data]
        first = address_of(paths[0]).name
        return DataAddress(first if len(paths) == 1 else f"{first} and {len(paths) - 1} more", _files(paths))
    if _is_several(data):
        each = [address_of(one) for one in data]
        parts = [part for one in each for part in one.parts or (IN_MEMORY,)] if any(one.parts for one in each) else []
        return DataAddress(" and ".join(one.name for one in each), tuple(parts))
    return DataAddress(IN_MEMORY)


def normalized_covers(covers: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return the files, globs, folders and tables that a grant names, or IN_MEMORY, each in its one spelling."""
    result = [covers] if isinstance(covers, str | os.PathLike) else list(covers)
    for one in result:
        if not isinstance(one, str | os.PathLike) or not os.fsdecode(os.fspath(one)).strip():
            raise InvalidInput(f"covers holds {one!r}; name files, folders, tables (address::table) or {IN_MEMORY!r}.")
    texts = [os.fsdecode(os.fspath(one)) for one in result]
    return sorted({text if text == IN_MEMORY else _table(text) if "://" in text else _real(text) for text in texts})


def is_covered(source: DataAddress | None, covers: Sequence[str]) -> bool:
    """Whether a grant names every file or table of a source."""
    parts = () if source is None else source.parts
    if not parts:
        return IN_MEMORY in covers
    return all(any(_is_part(part, one) for one in covers) for part in parts)


def touches(source: DataAddress | None, covers: Sequence[str]) -> bool:
    """Whether a grant names any file or table of a source, including files inside a folder and hard links."""
    parts = [] if source is None else list(source.parts)
    return any(_is_part(part, one) for part in _with_files(parts) for one in covers) or _are_linked(parts, covers)


def overlap(covers: Iterable[str], others: Iterable[str]) -> list[str]:
    """Return what two grants both name, in whole or in part, such as a file and its folder, or a file and a glob."""
    named = [other for other in others if other != IN_MEMORY]
    return sorted(
        one
        for one in covers
        if any(_is_part(one, other) or _is_part(other, one) for other in named) or _are_linked([one], named)
    )


def hard_links(parts: Iterable[str]) -> set[tuple[int, int, str]]:
    """Return what identifies the files among these that have more than one name, each with its table, if one is named.

    Args:
        parts: files, folders, globs and tables, as a :class:`DataAddress` has them.
    """
    links = set()
    for part in parts:
        place, _, table = part.partition("::") if "://" in part else (part, "", "")
        named = [place.partition(":///")[2]] if "://" in place else glob.glob(place, recursive=True) or [place]
        for file in _with_files(named):
            with contextlib.suppress(OSError, ValueError):
                status = os.stat(file)
                if status.st_nlink > 1 and not os.path.isdir(file):
                    links.add((status.st_dev, status.st_ino, table))
    return links


def _are_linked(parts: Sequence[str], others: Sequence[str]) -> bool:
    """Whether one file has a name in both lists, by hard links."""
    links = hard_links(parts)
    return bool(links) and bool(links & hard_links(others))


def _with_files(parts: Iterable[str]) -> list[str]:
    """Return the parts, and all files inside the parts that are folders."""
    paths = list(parts)
    for folder in [part for part in paths if "://" not in part and os.path.isdir(part)]:
        paths += [os.path.realpath(os.path.join(base, name)) for base, _, names in os.walk(folder) for name in names]
    return paths


def _parsed(address: str) -> tuple[str, str | None, str, str | None]:
    """Return scheme, login, host with path, and options. Whatever may be secret is in the login or the options."""
    secret = _SECRET_OPTION.search(address)
    table = "" if secret is None or "::" not in secret[0] else "::" + secret[0].rpartition("::")[2]
    result = _ADDRESS.fullmatch(address if secret is None else address[: secret.start()])
    if result is None:  # an option in a wrong place
        return address.partition("://")[0] + "://", "", "", None
    options = result[4] if secret is None else f"{result[4] or '?'}&...{table}"
    if result[1] in _FILES and result[2] is not None:  # there is no login, the @ is part of a file's name
        return result[1], None, f"{result[2]}@{result[3]}", options
    return result[1], result[2], result[3], options


def _is_part(part: str, one: str) -> bool:
    if part == one or "://" in part or "://" in one:
        return part == one
    if part.startswith(one.rstrip(os.sep) + os.sep):
        return True
    if "**" in one:
        return fnmatch.fnmatchcase(part, one)
    names, patterns = part.split(os.sep), one.split(os.sep)
    return len(names) == len(patterns) and all(map(fnmatch.fnmatchcase, names, patterns))


def _files(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the files that paths and globs name now; a name without a file is returned itself."""
    result: list[str] = []
    for path in paths:
        text = os.path.expanduser(path)
        matched = (
            [] if "\0" in text or os.path.lexists(text) or not glob.has_magic(text) else glob.glob(text, recursive=True)
        )
        result += [_real(one) for one in matched or [text]]
    return tuple(sorted(set(result)))


def _real(path: str) -> str:
    """Return the one spelling of a path, without links; of a glob, links before the first wildcard are resolved."""
    text = os.path.expanduser(path)
    if "\0" in text:
        return text
    if glob.has_magic(text) and not os.path.lexists(text):
        pieces = os.path.abspath(text).split(os.sep)
        first = next(place for place, piece in enumerate(pieces) if glob.has_magic(piece))
        return os.path.join(os.path.realpath(os.sep.join(pieces[:first]) or os.sep), *pieces[first:])
    return os.path.realpath(text)


def _table(address: str) -> str:
    """Return the one spelling of a table's address: without user, password, default port and default schema."""
    database, colons, table = address.rpartition("::")
    if not colons or "://" not in database or "@" in table:
        database, table = address, ""
    result = _ADDRESS.search(database)
    if result is None:
        return address
    scheme, _, rest, options = _parsed(result[0])
    kind = scheme.lower().removesuffix("://").partition("+")[0]
    kind = "postgresql" if kind == "postgres" else kind
    if kind in ("duckdb", "sqlite"):
        place = f"{kind}:///{os.path.realpath(unquote(rest.removeprefix('/')))}"
    else:
        host, slash, name = rest.partition("/")
        port = _PORTS.get(kind, "")
        host = host.lower().removesuffix(f":{port}") if port else host.lower()
        host = re.sub(r"^(127\.0\.0\.1|\[::1\])(?=:|$)", "localhost", host)
        where = sorted(pair for pair in parse_qsl((options or "")[1:]) if pair[0] in _WHERE)
        query = "&".join(f"{key}={value}" for key, value in where)
        place = f"{kind}://{host}{slash}{name}{'?' if query else ''}{query}"
    return f"{place}::{table.removeprefix(_SCHEMAS.get(kind, '') or ' ')}" if table else place
