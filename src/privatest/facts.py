"""Facts: how results are shown, as a title and a list of facts: as text, as a table for notebooks, and as plain values.

Everything that shows a result takes :meth:`Described.lines`, and makes no list of its own. In HTML every text is
escaped, because labels and names come from the user.
"""

from __future__ import annotations

import html
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

WIDEST = 30
"""Longest value for which columns are aligned. Only the meaning of a longer value moves to the right."""


class Probability(float):
    """A probability. It is never shown as 0: below ``least``, what a double or a simulation resolves, it is "< least".

    >>> short(Probability(0.25)), short(Probability(0.0)), short(Probability(1e-9, least=1e-6))
    ('0.25', '< 1e-300', '< 1e-06')
    """

    least: float

    def __new__(cls, value: float, least: float = 1e-300) -> Probability:
        probability = super().__new__(cls, value)
        probability.least = least
        return probability


class Fact(NamedTuple):
    """A name, a value, and what the value means in a few words; no words if the name says it.

    The name is that of the API and of JSON (``receipt.note`` for a part's), so that the value on a screen can be found
    there. A fact whose value is None is null in JSON and is not shown.
    """

    name: str
    value: object
    meaning: str = ""


class Described(ABC):
    """Base of objects that are shown as a title and a list of facts."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What the object is."""

    @abstractmethod
    def facts(self) -> list[Fact]:
        """Return all facts worth knowing, in order: public numbers and what was released, never anything raw."""

    def lines(self) -> list[tuple[str, str, str]]:
        """Return the facts as texts, to be shown."""
        return [
            (name.replace("_", " ").replace(".", " "), short(value), meaning)
            for name, value, meaning in self.facts()
            if value is not None
        ]

    def values(self) -> dict[str, Any]:
        """Return the facts as plain values by name, for JSON, without the facts of parts."""
        return {name: plain_value(value) for name, value, _ in self.facts() if "." not in name}

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain values, ready for JSON; a result that can be read back has a document instead."""
        return self.values()

    def __str__(self) -> str:
        return text(self.title, self.lines())

    def _repr_html_(self) -> str:
        return fact_table(self.title, self.lines())


class Tabled(ABC):
    """Base of objects that are shown as a title, a table, and a sentence below it."""

    HEADINGS: ClassVar[tuple[str, ...]]

    @property
    @abstractmethod
    def title(self) -> str:
        """What the table shows."""

    @abstractmethod
    def entries(self) -> list[tuple[object, ...]]:
        """Return the rows: a value for each heading, None for no value."""

    @property
    def ending(self) -> str:
        """The sentence below the table; empty for none."""
        return ""

    def cells(self) -> list[tuple[str, ...]]:
        """Return the rows as texts, to be shown."""
        return [tuple(short(value, 4) for value in row) for row in self.entries()]

    def __str__(self) -> str:
        cells = [tuple(self.HEADINGS), *self.cells()]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
        ]
        return "\n".join([self.title, *lines, *([self.ending] if self.ending else [])])

    def _repr_html_(self) -> str:
        return table(f"{self.title}. {self.ending}".removesuffix(". "), self.HEADINGS, self.cells())


def escape(text: object) -> str:
    """Return a text for HTML, in which a browser finds no markup."""
    words = html.escape(str(text))
    # HTML must not contain control characters or lone surrogates.
    words = "".join(c if c in "\n\t" or (c >= " " and c != "\x7f") else "\N{REPLACEMENT CHARACTER}" for c in words)
    return words.encode("utf-8", "replace").decode("utf-8")


def short(value: object, digits: int = 6) -> str:
    """Return a number with a few digits, or the text of anything else."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "\N{EN DASH}"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Probability) and value < value.least:
        return f"< {value.least:g}"
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if isinstance(value, tuple | list) and all(isinstance(part, float | int) for part in value):
        return f"[{', '.join(short(part, 4) for part in value)}]"
    if isinstance(value, tuple | list) and all(isinstance(part, tuple | list) for part in value):
        return " and ".join(short(part) for part in value)
    return str(value)


def plain_value(value: Any) -> Any:
    """Return a value for JSON: lists for tuples, the texts "inf" and "-inf" for infinities."""
    if isinstance(value, tuple | list):
        return [plain_value(part) for part in value]
    return str(float(value)) if isinstance(value, float) and math.isinf(value) else value


def text(title: str, lines: Sequence[tuple[str, str, str]]) -> str:
    """Return a title, and below it one line for each fact."""
    names = max((len(name) for name, _, _ in lines), default=0)
    values = max((len(value) for _, value, _ in lines if len(value) <= WIDEST), default=0)
    below = [f"  {name:<{names}}  {value:<{values}}  {meaning}".rstrip() for name, value, meaning in lines]
    return "\n".join([title, *below])


def fact_table(title: str, lines: Iterable[tuple[str, object, str]]) -> str:
    """Return an HTML table of names, values and meanings; without the last column if there are no meanings."""
    entries = list(lines)
    third = any(meaning for _, _, meaning in entries)
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(short(value))}</td>'
        + (f"<td>{escape(meaning)}</td></tr>" if third else "</tr>")
        for name, value, meaning in entries
    )
    return f'<table class="privatest"><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>'


def table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table with a heading over each column; the first column names the rows."""
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = []
    for first, *others in rows:
        cells = "".join(f"<td>{escape(short(value))}</td>" for value in others)
        body.append(f'<tr><th scope="row">{escape(short(first))}</th>{cells}</tr>')
    caption = f"<caption>{escape(title)}</caption>"
    return f'<table class="privatest">{caption}<thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table>'
