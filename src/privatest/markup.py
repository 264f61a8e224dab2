"""A small table for notebooks: every text in it is escaped, since labels and names are the user's."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from privatest.charge import Receipt

__all__ = ["escape", "fact_table", "receipt_document", "receipt_facts", "short", "table"]


def escape(text: object) -> str:
    """The text for HTML, with nothing in it that a browser would act on."""
    words = html.escape(str(text))
    # A page cannot hold control characters, nor lone surrogates.
    words = "".join(c if c in "\n\t" or (c >= " " and c != "\x7f") else "\N{REPLACEMENT CHARACTER}" for c in words)
    return words.encode("utf-8", "replace").decode("utf-8")


def short(value: object) -> str:
    """A number of a few digits, or the text of anything else."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "\N{EN DASH}"}[value]
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple | list) and all(isinstance(part, float | int) for part in value):
        return f"[{', '.join(short(part) for part in value)}]"
    return str(value)


def fact_table(title: str, facts: Iterable[tuple[str, object]]) -> str:
    """A table of names and values."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(short(value))}</td></tr>' for name, value in facts
    )
    return f'<table class="privatest"><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>'


def receipt_facts(receipt: Receipt | None) -> list[tuple[str, object]]:
    """What a ledger noted beside a release, as lines of its table."""
    return [] if receipt is None else [("recorded", receipt.note), ("fingerprint of the ledger", receipt.fingerprint)]


def receipt_document(receipt: Receipt | None) -> dict[str, Any]:
    """The same as plain values, ready for JSON."""
    replayed = receipt is not None and receipt.replayed
    return {"receipt": None if receipt is None else receipt.to_dict(), "replayed": replayed}


def table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a heading over each column; the first column names the rows."""
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = []
    for first, *others in rows:
        cells = "".join(f"<td>{escape(short(value))}</td>" for value in others)
        body.append(f'<tr><th scope="row">{escape(short(first))}</th>{cells}</tr>')
    caption = f"<caption>{escape(title)}</caption>"
    return f'<table class="privatest">{caption}<thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table>'
