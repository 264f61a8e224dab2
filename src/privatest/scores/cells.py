"""Cells: the finite partition of all possible records that a score is a function of.

Every record, whatever it is, falls into exactly one cell: a cell of the partition, or the odd cell
(index ``count``) for what makes no sense (null, NaN, infinite, unparseable, outside both supports).
Indices come from a lookup or from arithmetic that every engine reproduces bit for bit.

============== ===================================================== ==============================
cells          index of a record x                                   used for
============== ===================================================== ==============================
LabelCells     position of x among the labels                        finite domains
IntegerCells   position of x among the first integers of the cells   counts
DyadicCells    floor(x 2^e) - first, clipped                         real numbers
BoundedCells   floor(t 2^e) + 2^e, t = (x - m)/(s + |x - m|)         real numbers with heavy tails
============== ===================================================== ==============================
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar, TypeGuard

import numpy as np
import numpy.typing as npt

from privatest.documents import (
    MOST_ENTRIES,
    integer_from_json,
    integers_from_json,
    label_from_json,
    label_to_json,
    number_from_json,
)
from privatest.errors import InvalidDistribution, InvalidDocument
from privatest.vectors import Floats

__all__ = ["BoundedCells", "Cells", "DyadicCells", "IntegerCells", "LabelCells", "cells_from_dict"]

Indices = npt.NDArray[np.intp]


class Cells(ABC):
    """A partition of all records into ``count`` cells and the odd cell, index ``count``."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def count(self) -> int:
        """How many cells there are, the odd cell not counted."""

    @abstractmethod
    def index(self, numbers: Floats) -> Indices:
        """The cell of each number; NaN, infinities and foreign numbers get ``count``."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """A JSON document from which :func:`cells_from_dict` restores the cells exactly."""


@dataclass(frozen=True)
class LabelCells(Cells):
    """One cell for each label of a finite domain."""

    kind: ClassVar[str] = "labels"
    labels: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        if any(label is None or not _equals_itself(label) for label in self.labels):
            raise InvalidDistribution(
                "A label must not be None or NaN: a missing record has a fixed score of its own. "
                "Recode it as a text label such as 'missing'."
            )
        if any(is_number(label) and not abs(label) < 2**53 for label in self.labels):
            raise InvalidDistribution(
                "A numeric label must be smaller than 2^53, so that every engine tells it from its neighbours. "
                "Recode such labels as text."
            )

    @property
    def count(self) -> int:
        return len(self.labels)

    @cached_property
    def position(self) -> dict[Hashable, int]:
        """Label to cell."""
        return {label: cell for cell, label in enumerate(self.labels)}

    @cached_property
    def _numeric(self) -> tuple[Floats, Indices]:
        pairs = sorted(
            (float(label), cell) for label, cell in self.position.items() if is_number(label) and float(label) == label
        )
        return np.array([x for x, _ in pairs], dtype=np.float64), np.array([c for _, c in pairs], dtype=np.intp)

    def index(self, numbers: Floats) -> Indices:
        keys, cells = self._numeric
        if len(keys) == 0:
            return np.full(np.shape(numbers), self.count, dtype=np.intp)
        near = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)
        return np.where(keys[near] == numbers, cells[near], self.count)

    def index_of(self, record: object) -> int:
        """The cell of one record of any type; an unhashable one is odd."""
        try:
            if isinstance(record, np.floating):  # of any length, as a column of them would be read
                record = float(record)
            return self.position.get(record, self.count)  # type: ignore[call-overload, no-any-return, unused-ignore]
        except Exception:  # a record's own __hash__ or __eq__ may raise anything: that record is odd
            return self.count

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "labels": [label_to_json(label) for label in self.labels]}


def is_number(label: Any) -> TypeGuard[float]:
    """Whether a label is a real number, as a column of numbers may hold it."""
    return isinstance(label, (numbers.Real, Decimal, np.bool_))


def _equals_itself(label: Hashable) -> bool:
    """False for NaN, NaT and NA, and for whatever refuses to be compared."""
    try:
        return bool(label == label)
    except Exception:
        return False


@dataclass(frozen=True, eq=False)
class IntegerCells(Cells):
    """Runs of consecutive integers; the last run ends at ``last``."""

    kind: ClassVar[str] = "integers"
    first: npt.NDArray[np.int64]
    last: int

    @property
    def count(self) -> int:
        return len(self.first)

    @cached_property
    def _starts(self) -> Floats:
        # As floats: 2^53 and beyond only the outermost, pooled cells are met.
        return self.first.astype(np.float64)

    def index(self, numbers: Floats) -> Indices:
        sane = (numbers >= self._starts[0]) & (numbers <= float(self.last))
        whole = np.where(sane, numbers, self._starts[0])
        sane &= np.floor(whole) == whole
        found = np.searchsorted(self._starts, whole, side="right") - 1
        return np.where(sane, found, self.count)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "first": [int(k) for k in self.first], "last": int(self.last)}


@dataclass(frozen=True)
class DyadicCells(Cells):
    """Intervals of length 2^-exponent; the outermost two reach to the ends of the support.

    Scaling by a power of two and taking the floor are exact in binary floating point, so the index has no
    rounding at all. (But for this: a negative number so small that scaling it down underflows counts as 0.)
    """

    kind: ClassVar[str] = "dyadic"
    exponent: int
    first: int
    size: int
    low: float = -math.inf
    high: float = math.inf

    @property
    def count(self) -> int:
        return self.size

    @cached_property
    def factor(self) -> float:
        """2^exponent."""
        return math.ldexp(1.0, self.exponent)

    @cached_property
    def edges(self) -> Floats:
        """The inner edges, one fewer than there are cells."""
        return np.ldexp(np.arange(self.first + 1, self.first + self.size, dtype=np.float64), -self.exponent)

    def index(self, numbers: Floats) -> Indices:
        with np.errstate(invalid="ignore", over="ignore"):
            sane = np.isfinite(numbers) & (numbers >= self.low) & (numbers <= self.high)
            cell = np.floor(numbers * self.factor)
        cell = np.clip(np.where(sane, cell, self.first), self.first, self.first + self.size - 1) - self.first
        return np.where(sane, cell.astype(np.intp), self.size)

    def to_dict(self) -> dict[str, Any]:
        fields = {"exponent": self.exponent, "first": self.first, "size": self.size}
        return {"kind": self.kind, **fields, "support": _support_to_json(self.low, self.high)}


@dataclass(frozen=True)
class BoundedCells(Cells):
    """Uniform cells in t = (x - centre)/(scale + |x - centre|), which maps the line onto (-1, 1)."""

    kind: ClassVar[str] = "bounded"
    centre: float
    scale: float
    exponent: int
    low: float = -math.inf
    high: float = math.inf

    @property
    def count(self) -> int:
        return 2 << self.exponent

    @cached_property
    def factor(self) -> float:
        """2^exponent."""
        return math.ldexp(1.0, self.exponent)

    @cached_property
    def edges(self) -> Floats:
        """The inner edges, one fewer than there are cells."""
        half = 1 << self.exponent
        t = np.arange(1 - half, half, dtype=np.float64) / half
        return self.centre + self.scale * t / (1.0 - np.abs(t))

    def index(self, numbers: Floats) -> Indices:
        half = 1 << self.exponent
        with np.errstate(invalid="ignore", over="ignore"):
            sane = np.isfinite(numbers) & (numbers >= self.low) & (numbers <= self.high)
            away = np.where(sane, numbers, self.centre) - self.centre
            cell = np.floor(away / (self.scale + np.abs(away)) * self.factor) + half
        cell = np.clip(np.where(np.isnan(cell), 0.0, cell), 0, 2 * half - 1)
        # An overflow to inf/inf far out belongs to the outermost cell of its own side.
        cell = np.where(np.isinf(away) & (away > 0), 2 * half - 1, cell)
        return np.where(sane, cell.astype(np.intp), self.count)

    def to_dict(self) -> dict[str, Any]:
        fields = {"centre": self.centre, "scale": self.scale, "exponent": self.exponent}
        return {"kind": self.kind, **fields, "support": _support_to_json(self.low, self.high)}


def _support_to_json(low: float, high: float) -> list[float | None]:
    return [low if math.isfinite(low) else None, high if math.isfinite(high) else None]


def _support_from_json(pair: list[float | None]) -> tuple[float, float]:
    low, high = pair
    ends = -math.inf if low is None else number_from_json(low), math.inf if high is None else number_from_json(high)
    if not ends[0] < ends[1]:
        raise InvalidDocument("The support of the cells is empty.")
    return ends


def cells_from_dict(document: dict[str, Any]) -> Cells:
    """The cells that :meth:`Cells.to_dict` wrote."""
    try:
        kind = document["kind"]
        if kind == LabelCells.kind:
            labels = tuple(label_from_json(label) for label in document["labels"])
            if len(set(labels)) != len(labels):
                raise InvalidDocument("A label of the score occurs twice.")
            return LabelCells(labels)
        if kind == IntegerCells.kind:
            first, last = integers_from_json(document["first"]), integer_from_json(document["last"])
            if len(first) == 0 or np.any(first[1:] <= first[:-1]) or last < first[-1]:
                raise InvalidDocument("The integer cells are not in increasing order.")
            return IntegerCells(first, last)
        low, high = _support_from_json(document["support"])
        if kind == DyadicCells.kind:
            exponent = integer_from_json(document["exponent"], -1022, 1023)
            size = integer_from_json(document["size"], 1, MOST_ENTRIES)
            return DyadicCells(exponent, integer_from_json(document["first"], -(2**53), 2**53), size, low, high)
        if kind == BoundedCells.kind:
            centre, scale = number_from_json(document["centre"]), number_from_json(document["scale"])
            if not scale > 0:
                raise InvalidDocument(f"The scale {scale!r} of the cells must be greater than 0.")
            return BoundedCells(centre, scale, integer_from_json(document["exponent"], 0, 22), low, high)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        if isinstance(error, InvalidDocument):
            raise
        raise InvalidDocument(f"The cells of the score cannot be read: {error!r}.") from None
    raise InvalidDocument(f"Unknown kind of cells {kind!r}.")
