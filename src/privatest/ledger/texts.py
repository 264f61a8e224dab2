"""Texts that enter the ledger: names, releases, fingerprints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from privatest.addresses import Source
from privatest.errors import InvalidInput, shown
from privatest.ledger.rows import EMPTY, SOURCE, Head

__all__ = ["check_name", "noted", "read_fingerprint", "release_text", "source_document"]

LONGEST_NAME = 200  # dataset and request share an index entry, which PostgreSQL limits to 2,704 bytes


def check_name(**arguments: object) -> None:
    """Check the one named argument: a short line of text."""
    ((word, value),) = arguments.items()
    if not isinstance(value, str):
        raise InvalidInput(f"{word}={shown(value)} must be text.")
    if len(value) > LONGEST_NAME:
        raise InvalidInput(
            f"{word}={value[:20] + '...'!r} has {len(value)} characters; {LONGEST_NAME} is the most. Use a hash of it."
        )
    if not value or value != value.strip() or not value.isprintable():
        raise InvalidInput(f"{word}={shown(value)} must be one line of text, without space at either end.")


def source_document(source: Source | None) -> dict[str, Any] | None:
    """A source as it is noted: its name, and a text by which it is known again."""
    return None if source is None else {"name": source.name, "identity": source.identity}


def noted(**facts: object) -> str | None:
    """JSON text of what is noted beside a grant or a charge; None where there is nothing to note."""
    known = {name: fact for name, fact in facts.items() if fact is not None}
    return json.dumps(known, allow_nan=False) if known else None


def release_text(release: object, source: Source | None = None) -> str:
    """JSON text of a release and its source; one that JSON cannot hold is refused, and stays charged."""
    if not isinstance(release, Mapping):
        raise InvalidInput(f"compute returned a {type(release).__name__}; a release is a dict. The charge stays.")
    try:
        noted = {} if source is None else {SOURCE: source_document(source)}
        return json.dumps({**release, **noted}, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        # The cause is not repeated: it may quote what was computed from the data.
        raise InvalidInput(
            "compute returned a dict that JSON cannot hold: a value is NaN, infinite, or not made of text, "
            "numbers, truth values, None, lists and dicts. The charge stays."
        ) from None


def read_fingerprint(text: str) -> Head:
    """What ``ledger.fingerprint()`` returned, taken apart."""
    count, colon, digest = str(text).partition(":")
    if not (colon and count.isdecimal() and len(count) < 20 and len(digest) == len(EMPTY.hash)):
        raise InvalidInput(f"since={shown(text)} must be what ledger.fingerprint() returned, count:hash.")
    return Head(int(count), digest)
