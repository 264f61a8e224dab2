"""How Spark says what expressions need: built-in functions only, so that no Python worker is started."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privatest.engines.fit import unfit

__all__ = ["SparkLanguage", "constant_array", "is_number", "is_text"]

NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "boolean")
PLAIN = "string"


@dataclass(frozen=True)
class SparkLanguage:
    """Columns of Spark; ``functions`` is the module of them that fits the frame."""

    functions: Any

    def number(self, value: float) -> Any:
        return self.functions.lit(float(value))

    def whole(self, value: int) -> Any:
        return self.functions.lit(value).cast("bigint")

    def case(self, arms: Sequence[tuple[Any, Any]], otherwise: Any) -> Any:
        (condition, value), *others = arms
        chain = self.functions.when(condition, value)
        for condition, value in others:
            chain = chain.when(condition, value)
        return chain.otherwise(otherwise)

    def floor(self, x: Any) -> Any:
        return self.functions.floor(x)

    def absolute(self, x: Any) -> Any:
        return self.functions.abs(x)

    def pick(self, table: Sequence[int], index: Any) -> Any:
        return self.functions.get(self.functions.expr(constant_array(table)), index)

    def any_of(self, text: Any, labels: Sequence[str]) -> Any:
        return text.isin(list(labels))

    def double(self, x: Any, kind: str) -> Any:
        """A column of numbers as doubles; the cast cannot fail for any record."""
        return x if kind == "double" else x.cast("double")

    def text(self, x: Any, kind: str) -> Any:
        """A text without the collation of its column (which Spark knows from version 4 on), and without padding."""
        if kind.startswith("string collate"):
            return self.functions.collate(x, "UTF8_BINARY")
        return self.functions.rtrim(x.cast(PLAIN)) if kind.startswith("char(") else x

    def key(self, x: Any, kind: str) -> Any:
        """A unit as something that equal units share: 0.0 and -0.0 are one, NaN is none."""
        if kind in ("float", "double"):
            x = x.cast("double") + self.number(0.0)
            return self.functions.when(~self.functions.isnan(x), x)
        if is_text(kind):
            return x if kind == PLAIN else self.text(x, kind).cast("binary")
        if not (is_number(kind) or kind.startswith(("date", "time", "binary"))):
            raise unfit(f"units of type {kind}", "Units are numbers, texts or dates")
        return x

    def place(self, x: Any, kind: str) -> Any:
        """An order as something that sorts the same everywhere: text by code points, NaN as NULL."""
        if is_text(kind):
            return self.text(x, kind).cast("binary")
        if kind == "boolean":
            return x.cast("int")
        if not (is_number(kind) or kind.startswith(("date", "time"))):
            raise unfit(f"an order of type {kind}", "Order by numbers, dates, times or texts")
        return self.key(x, kind)


def constant_array(table: Sequence[int]) -> str:
    """SQL for an array of integers: one text is parsed in no time, unlike thousands of numbers, and folded once."""
    return f"cast(split('{','.join(map(str, table))}', ',') AS array<bigint>)"


def is_number(kind: str) -> bool:
    """Whether a type is one of numbers; booleans are 0 and 1."""
    return kind.partition("(")[0] in NUMBERS


def is_text(kind: str) -> bool:
    """Whether a type is text, with or without a collation."""
    return kind.partition("(")[0].partition(" ")[0] in (PLAIN, "varchar", "char")
