"""Scores: a score maps every possible record to an integer, and the law of that integer is known exactly.

A score is a function of cells, a finite partition of all possible records. Every record falls into
exactly one cell: a cell of the partition, or the odd cell (index ``count``) if it makes no sense (null, NaN,
infinite, unparseable, outside both supports). Indices are computed by a lookup or by arithmetic that every engine
reproduces bit for bit.

============== ===================================================== ==============================
cells          index of a record x                                   used for
============== ===================================================== ==============================
LabelCells     position of x among the labels                        finite domains
IntegerCells   position of x among the first integers of the cells   counts
DyadicCells    floor(x 2^e) - first, clipped                         real numbers
BoundedCells   floor(t 2^e) + 2^e, t = (x - m)/(s + |x - m|)         real numbers with heavy tails
EdgeCells      number of edges at or below x                         bins of a goodness-of-fit test
GroupedCells   place of the group, then the index among inner cells  tables of several groups
============== ===================================================== ==============================
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, TypeGuard

import numpy as np
import numpy.typing as npt

from privatest.errors import InvalidDistribution, InvalidDocument, InvalidInput
from privatest.json_documents import (
    MOST_ENTRIES,
    fields_from_json,
    fields_to_json,
    fraction_from_json,
    integers_from_json,
    label_to_json,
    numbers_from_json,
    reading,
    runs_from_json,
    runs_to_json,
)
from privatest.numbers import Floats, Integers, Number, rational

Indices = npt.NDArray[np.intp]


class Cells(ABC):
    """A partition of all records into ``count`` cells and the odd cell, index ``count``."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of cells without the odd cell."""

    @abstractmethod
    def index(self, numbers: Floats) -> Indices:
        """Return the cell of each number; ``count`` for NaN, infinities and numbers outside of all cells."""

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document from which :meth:`from_dict` restores the cells exactly."""
        return fields_to_json(self)

    @property
    def of_record(self) -> Cells:
        """The cells that distinguish the record itself, whatever its group."""
        return self

    @classmethod
    def from_dict(cls, document: Any) -> Cells:
        """Return the cells that :meth:`to_dict` wrote, of any kind."""
        return cells_from_dict(document)


@dataclass(frozen=True)
class LabelCells(Cells):
    """One cell for each label of a finite domain; with ``others``, one more for every other record but missing ones."""

    kind: ClassVar[str] = "labels"
    labels: tuple[Hashable, ...]
    others: bool = False

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
        if len(set(self.labels)) != len(self.labels):
            raise InvalidDocument("A label of the score occurs twice.")

    @property
    def count(self) -> int:
        return len(self.labels) + self.others

    @property
    def rest(self) -> int:
        """The cell of records that are no label, and present."""
        return len(self.labels)

    @cached_property
    def position(self) -> dict[Hashable, int]:
        """The cell of each label."""
        return {label: cell for cell, label in enumerate(self.labels)}

    @cached_property
    def _numeric(self) -> tuple[Floats, Indices]:
        pairs = sorted(
            (float(label), cell) for label, cell in self.position.items() if is_number(label) and float(label) == label
        )
        return np.array([x for x, _ in pairs], dtype=np.float64), np.array([c for _, c in pairs], dtype=np.intp)

    def index(self, numbers: Floats) -> Indices:
        keys, cells = self._numeric
        rest = np.where(np.isfinite(numbers), self.rest, self.count)
        if len(keys) == 0:
            return rest
        near = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)
        return np.where(keys[near] == numbers, cells[near], rest)

    def index_of(self, record: object) -> int:
        """Return the cell of one record of any type; an unhashable one is odd."""
        try:
            if isinstance(record, np.floating):  # of any precision: a column of them would be read as float64
                record = float(record)
            index = self.position.get(record)  # type: ignore[call-overload, unused-ignore]
            if index is None:
                index = self.rest if self.others and is_present(record) else self.count
            return int(index)
        except Exception:  # a record's own __hash__ or __eq__ may raise anything: that record is odd
            return self.count

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "labels": [label_to_json(label) for label in self.labels]}


def is_present(record: Any) -> bool:
    """Whether a record is neither None nor NaN, NaT or NA, nor infinite, nor an empty text."""
    if record is None or not _equals_itself(record) or record in ("", b""):
        return False
    return not is_number(record) or math.isfinite(record)


def is_number(label: Any) -> TypeGuard[float]:
    """Whether a label is a real number, which a column of numbers may hold."""
    return isinstance(label, (numbers.Real, Decimal, np.bool_))


def _equals_itself(label: Hashable) -> bool:
    """Whether a label equals itself: false for NaN, NaT, NA and objects that refuse to be compared."""
    try:
        return bool(label == label)
    except Exception:
        return False


@dataclass(frozen=True)
class GroupedCells(Cells):
    """The cells ``inner`` once for each group of a public list. A record in none of the groups is odd.

    Only records that were opened with a column of groups have such a cell (``Records.grouped``).
    """

    kind: ClassVar[str] = "grouped"
    groups: tuple[str, ...]
    inner: Cells

    def __post_init__(self) -> None:
        if not self.groups or len(set(self.groups)) != len(self.groups) or isinstance(self.inner, GroupedCells):
            raise InvalidDocument("Groups of cells must have different names, at least one, and no groups inside.")

    @property
    def count(self) -> int:
        return len(self.groups) * self.inner.count

    @property
    def of_record(self) -> Cells:
        return self.inner

    def index(self, numbers: Floats) -> Indices:  # noqa: ARG002 - a number says nothing of its group
        raise InvalidInput("These cells are of groups. Name the column of the groups: by=...")

    def crossed(self, inner: Indices, group: Indices) -> Indices:
        """Return the cell of each record, from its inner cell and the place of its group; -1 for no group."""
        odd = (group < 0) | (inner == self.inner.count)
        return np.where(odd, self.count, group * self.inner.count + inner)


@dataclass(frozen=True, eq=False)
class IntegerCells(Cells):
    """Runs of consecutive integers; the last run ends at ``last``."""

    kind: ClassVar[str] = "integers"
    first: Integers
    last: int

    def __post_init__(self) -> None:
        if len(self.first) == 0 or np.any(self.first[1:] <= self.first[:-1]) or self.last < self.first[-1]:
            raise InvalidDocument("The integer cells are not in increasing order.")

    @property
    def count(self) -> int:
        return len(self.first)

    @cached_property
    def _starts(self) -> Floats:
        # Floats are exact enough: from 2^53 on there are only the outermost, pooled cells.
        return self.first.astype(np.float64)

    @cached_property
    def _consecutive(self) -> bool:
        """Whether all cells but the first and the last hold one integer each."""
        return self.count > 1 and bool(np.all(np.diff(self.first[1:]) == 1))

    def index(self, numbers: Floats) -> Indices:
        with np.errstate(invalid="ignore"):
            inside = (np.floor(numbers) == numbers) & (numbers >= self._starts[0]) & (numbers <= float(self.last))
        if self._consecutive:
            return _whole_cells(numbers - (self._starts[1] - 1), self.count, inside)
        index = np.searchsorted(self._starts, numbers, side="right") - 1
        return np.where(inside, index, self.count)


@dataclass(frozen=True)
class DyadicCells(Cells):
    """Intervals of length 2^-exponent; the outermost two reach to the ends of the support.

    Scaling by a power of two and taking the floor are exact in binary floating point, so the index is never
    rounded. (One exception: a negative number so small that scaling it down underflows counts as 0.)
    """

    kind: ClassVar[str] = "dyadic"
    exponent: int
    first: int
    size: int
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        _check_within(self.exponent, -1022, 1023)
        _check_within(self.first, -(2**53), 2**53)
        _check_within(self.size, 1, MOST_ENTRIES)
        _check_support(self.low, self.high)

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
            cell = np.floor(numbers * self.factor) - self.first
        return _whole_cells(cell, self.size, _inside(numbers, self.low, self.high))


@dataclass(frozen=True)
class BoundedCells(Cells):
    """Uniform cells in t = (x - centre)/(scale + |x - centre|), which maps the line onto (-1, 1)."""

    kind: ClassVar[str] = "bounded"
    centre: float
    scale: float
    exponent: int
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise InvalidDocument(f"The scale {self.scale!r} of the cells must be greater than 0.")
        _check_within(self.exponent, 0, 22)
        _check_support(self.low, self.high)

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
            away = numbers - self.centre
            cell = np.floor(away / (self.scale + np.abs(away)) * self.factor) + half
        if np.any(lost := np.isnan(cell)):
            # Numbers so large that the quotient is inf/inf belong to the outermost cell of their side.
            cell = np.where(lost, np.where(away > 0, 2.0 * half, 0.0), cell)
        return _whole_cells(cell, self.count, _inside(numbers, self.low, self.high))


@dataclass(frozen=True)
class EdgeCells(Cells):
    """Intervals (-inf, e_1), [e_1, e_2), ..., [e_m, inf) within the support: comparisons only, so exact everywhere."""

    kind: ClassVar[str] = "edges"
    edges: tuple[float, ...]
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not self.edges or not all(a < b for a, b in pairwise((self.low, *self.edges, self.high))):
            raise InvalidDocument("The edges of the bins are not in increasing order.")

    @property
    def count(self) -> int:
        return len(self.edges) + 1

    @cached_property
    def _sorted(self) -> Floats:
        return np.array(self.edges)

    def index(self, numbers: Floats) -> Indices:
        inside = _inside(numbers, self.low, self.high)
        return np.where(inside, np.searchsorted(self._sorted, numbers, side="right"), self.count)


def _inside(numbers: Floats, low: float, high: float) -> npt.NDArray[np.bool_]:
    """Whether each number is finite and lies in [low, high]."""
    inside = np.isfinite(numbers)
    if low > -math.inf:
        inside &= numbers >= low
    if high < math.inf:
        inside &= numbers <= high
    return inside


def _whole_cells(cell: Floats, count: int, inside: npt.NDArray[np.bool_]) -> Indices:
    """Return whole numbers as cells: clipped to [0, count - 1], and ``count`` where ``inside`` is false."""
    cell = np.minimum(np.maximum(cell, 0.0), count - 1.0)
    return (cell if np.all(inside) else np.where(inside, cell, float(count))).astype(np.intp)


def _check_within(number: int, least: int, most: int) -> None:
    if not least <= number <= most:
        raise InvalidDocument(f"A number of the cells, {number}, must lie between {least} and {most}.")


def _check_support(low: float, high: float) -> None:
    if not low < high:
        raise InvalidDocument("The support of the cells is empty.")


def cells_from_dict(document: Any) -> Cells:
    """Return the cells that :meth:`Cells.to_dict` wrote."""
    with reading("the cells of the score"):
        every = (LabelCells, IntegerCells, DyadicCells, BoundedCells, EdgeCells, GroupedCells)
        kinds = {one.kind: one for one in every}
        if document["kind"] not in kinds:
            raise InvalidDocument(f"Unknown kind of cells {document['kind']!r}.")
        kind = kinds[document["kind"]]
        cells: Cells = kind(**fields_from_json(kind, document))
    return cells


FEW_VALUES = 16
"""With at most so many values the exact law of a total is quick, and a coarse lattice is enough."""
LARGEST_TOTAL = 2**63 - 1
ROUNDED = Fraction(1, 2**50)
"""Largest relative error of a ratio by rounding of its logarithms."""
OTHERS = ("other_null_laws", "other_alternative_laws", "outer_null_laws", "outer_alternative_laws", "upper_laws")


@dataclass(frozen=True, eq=False)
class Score:
    r"""An integer score of a record: a step function, constant on each cell.

    The score :math:`s` stands for the value :math:`\text{origin} + \text{step} \cdot s` of the clamped
    log-likelihood ratio. For privacy any function of one record would do; what matters is ``width``, the
    most by which replacing one record can change a total, and that it is exact.

    Guarantees: every record has a score in [low, high]; ``width = high - low`` is the realised range
    over all cells, the odd cell included; the laws are probabilities over ``support`` that sum to 1.

    Attributes:
        cells: the partition of the records.
        table: the score of each cell, then that of the odd cell.
        origin, step: the value that a score stands for.
        support: the scores that P or Q ever produces, in increasing order.
        null_law, alternative_law: their probabilities under P and under Q; for a set, the worst law of the set for the
            test that the score was made for.
        other_null_laws, other_alternative_laws: further laws of such a set. Every member's law is stochastically at
            least (for Q: at most) one of the set's laws.
        outer_null_laws, outer_alternative_laws: bounds of such a set on the other side: every member's law is at most
            (for Q: at least) one of these.
        upper_laws: for a two-sided test, the lowest laws of the alternatives that score higher than the null.
    """

    cells: Cells
    table: Integers
    origin: Fraction
    step: Fraction
    support: Integers
    null_law: Floats
    alternative_law: Floats
    other_null_laws: tuple[Floats, ...] = ()
    other_alternative_laws: tuple[Floats, ...] = ()
    outer_null_laws: tuple[Floats, ...] = ()
    outer_alternative_laws: tuple[Floats, ...] = ()
    upper_laws: tuple[Floats, ...] = ()

    def __post_init__(self) -> None:
        for array in (self.table, self.support, *self._every_law()):
            array.setflags(write=False)

    def _every_law(self) -> list[Floats]:
        others = [law for name in OTHERS for law in getattr(self, name)]
        return [self.null_law, self.alternative_law, *others]

    @property
    def null_laws(self) -> tuple[Floats, ...]:
        """The laws of the null hypothesis, the worst first."""
        return self.null_law, *self.other_null_laws

    @property
    def alternative_laws(self) -> tuple[Floats, ...]:
        """The laws of the alternative, the worst first."""
        return self.alternative_law, *self.other_alternative_laws

    @property
    def null_high_laws(self) -> tuple[Floats, ...]:
        """The highest laws of the null hypothesis, or its law if it is a single distribution."""
        return self.outer_null_laws or self.null_laws

    @cached_property
    def low(self) -> int:
        """The smallest score any record can have."""
        return int(self.table.min())

    @cached_property
    def high(self) -> int:
        """The largest score any record can have."""
        return int(self.table.max())

    @property
    def width(self) -> int:
        """Delta, the most by which replacing one record changes a total."""
        return self.high - self.low

    @cached_property
    def line(self) -> tuple[int, int] | None:
        """(sign, offset) if the score is clip(sign * cell + offset, low, high) on all cells; else None."""
        scores = self.table[:-1]
        inner = np.flatnonzero((scores > self.low) & (scores < self.high))
        if len(inner) < 2 or scores.min() != self.low or scores.max() != self.high:
            return None
        sign = int(scores[inner[1]] - scores[inner[0]])
        offset = int(scores[inner[0]]) - sign * int(inner[0])
        straight = np.clip(sign * np.arange(len(scores)) + offset, self.low, self.high)
        return (sign, offset) if abs(sign) == 1 and np.array_equal(straight, scores) else None

    @property
    def odd_score(self) -> int:
        """The score of a record that makes no sense."""
        return int(self.table[-1])

    def of_numbers(self, numbers: npt.ArrayLike) -> Integers:
        """Return the score of each number. (Engines sum scores without storing them.)"""
        return self.table[self.cells.index(np.asarray(numbers, dtype=np.float64))]

    def value(self, total: Fraction | int, n: int) -> Fraction:
        """Return the value that a (noisy) total of n scores stands for: n origin + step total."""
        return n * self.origin + self.step * total

    def lattice_threshold(self, threshold: Fraction, n: int) -> Fraction:
        """Return the total that stands for ``threshold``, the inverse of :meth:`value`."""
        return (threshold - n * self.origin) / self.step

    def mean(self, law: Floats) -> float:
        """Mean score under one of the two laws."""
        return math.fsum(law * self.support)

    def check_total(self, n: int) -> None:
        """Raise InvalidInput if a total of n scores could exceed 64 bits."""
        largest = max(abs(self.low), abs(self.high)) * n
        if largest > LARGEST_TOTAL:
            most = LARGEST_TOTAL // max(abs(self.low), abs(self.high))
            raise InvalidInput(
                f"n={n} is too large for scores up to {max(abs(self.low), abs(self.high))}: the total could leave "
                f"64 bits. Use n of at most {most}, or a narrower clamp."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document from which :meth:`from_dict` restores the score exactly."""
        return {
            "cells": self.cells.to_dict(),
            "table": runs_to_json(self.table),
            "origin": str(self.origin),
            "step": str(self.step),
            "support": self.support.tolist(),
            "null_law": self.null_law.tolist(),
            "alternative_law": self.alternative_law.tolist(),
            **{name: [law.tolist() for law in laws] for name in OTHERS if (laws := getattr(self, name))},
        }

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Score:
        """Return the score that :meth:`to_dict` wrote; refuses one whose parts do not fit together."""
        with reading("the score"):
            cells = cells_from_dict(document["cells"])
            table = runs_from_json(document["table"])
            support = integers_from_json(document["support"])
            laws: dict[str, Any] = {key: numbers_from_json(document[key]) for key in ("null_law", "alternative_law")}
            values: dict[str, Any] = {key: fraction_from_json(document[key]) for key in ("origin", "step")}
            others: dict[str, Any] = {
                name: tuple(numbers_from_json(law) for law in document.get(name, ())) for name in OTHERS
            }
            score = cls(cells=cells, table=table, support=support, **values, **laws, **others)
        if len(table) != cells.count + 1:
            raise InvalidDocument(f"The score has {cells.count} cells but a table of {len(table)} entries.")
        if score.step <= 0:
            raise InvalidDocument(f"The step {score.step} of the score must be greater than 0.")
        if len(support) == 0 or np.any(support[1:] <= support[:-1]) or not np.all(np.isin(support, table)):
            raise InvalidDocument("The support of the score's laws is not a set of its scores.")
        for law in score._every_law():
            fits = law.shape == support.shape and bool(np.all(law >= 0)) and abs(math.fsum(law) - 1) < 1e-9
            if not fits:
                raise InvalidDocument("A law of the score is not a probability over its scores.")
        return score

    def __repr__(self) -> str:
        low, high = (float(self.origin + self.step * s) for s in (self.low, self.high))
        return f"Score({self.cells.kind}, {self.cells.count} cells, ratio {low:.6g} to {high:.6g}, width {self.width})"

    def bounds(self) -> tuple[float, float]:
        """Return the realised clamp: the ratios that the lowest and the highest score stand for."""
        return float(self.origin + self.step * self.low), float(self.origin + self.step * self.high)


def lattice(low: Number, high: Number, units: int) -> tuple[Fraction, Fraction]:
    """Origin and step of a lattice of ``units`` steps whose ends are exactly low and high.

    Ends that are opposite up to the rounding of two logarithms (those of 0.3/0.7 and 0.7/0.3) are made opposite,
    so that the threshold between hypotheses that mirror each other is 0.

    >>> lattice(-0.1, 0.1, 4)
    (Fraction(-1, 10), Fraction(1, 20))
    >>> lattice(-0.8472978603872034, 0.8472978603872037, 2)[1] == Fraction("0.8472978603872034")
    True
    """
    origin, last = rational(low, "clamp"), rational(high, "clamp")
    if abs(origin + last) <= ROUNDED * last:
        last = -origin
    return origin, (last - origin) / units
