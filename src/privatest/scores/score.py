"""A score: every possible record gets an integer, and the law of that integer is known exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest.documents import fraction_from_json, integers_from_json, numbers_from_json, runs_from_json, runs_to_json
from privatest.errors import InvalidDocument, InvalidInput
from privatest.rational import Number, rational
from privatest.scores.cells import Cells, cells_from_dict
from privatest.vectors import Floats, Integers

__all__ = ["FEW_VALUES", "LARGEST_TOTAL", "Score"]


FEW_VALUES = 16
"""With so few values the exact law of a total is quick, and a coarse lattice is enough."""
LARGEST_TOTAL = 2**63 - 1


@dataclass(frozen=True, eq=False)
class Score:
    r"""An integer score of a record: a step function, constant on each cell.

    The score :math:`s` stands for the value :math:`\text{origin} + \text{step} \cdot s` of the clamped
    log-likelihood ratio. Any function of one record would do for privacy; what counts is ``width``, the
    most by which replacing one record can change a total, and that it is exact.

    Guarantees: every record has a score in [low, high]; ``width = high - low`` is the realised range
    over all cells, the odd cell included; the laws are probabilities over ``support`` that sum to 1.

    Attributes:
        cells: the partition of the records.
        table: the score of each cell, then that of the odd cell.
        origin, step: what a score stands for.
        support: the scores that P or Q ever produces, in increasing order.
        null_law, alternative_law: their probabilities under P and under Q.
    """

    cells: Cells
    table: Integers
    origin: Fraction
    step: Fraction
    support: Integers
    null_law: Floats
    alternative_law: Floats

    def __post_init__(self) -> None:
        for array in (self.table, self.support, self.null_law, self.alternative_law):
            array.setflags(write=False)

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
        """Delta: the most by which replacing one record changes a total."""
        return self.high - self.low

    @cached_property
    def line(self) -> tuple[int, int] | None:
        """(sign, offset) where the score is clip(sign * cell + offset, low, high) on all cells, if it is."""
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
        """The scores of numbers, one by one (engines sum without ever storing these)."""
        return self.table[self.cells.index(np.asarray(numbers, dtype=np.float64))]

    def value(self, total: Fraction | int, n: int) -> Fraction:
        """What a (noisy) total of n scores stands for: n origin + step total."""
        return n * self.origin + self.step * total

    def lattice_threshold(self, threshold: Fraction, n: int) -> Fraction:
        """The total that stands for ``threshold``: the inverse of :meth:`value`."""
        return (threshold - n * self.origin) / self.step

    def mean(self, law: Floats) -> float:
        """Mean score under one of the two laws."""
        return math.fsum(law * self.support)

    def check_total(self, n: int) -> None:
        """Refuse an n at which a total of n scores could leave 64 bits."""
        largest = max(abs(self.low), abs(self.high)) * n
        if largest > LARGEST_TOTAL:
            most = LARGEST_TOTAL // max(abs(self.low), abs(self.high))
            raise InvalidInput(
                f"n={n} is too large for scores up to {max(abs(self.low), abs(self.high))}: the total could leave "
                f"64 bits. Use n of at most {most}, or a narrower clamp."
            )

    def to_dict(self) -> dict[str, Any]:
        """A JSON document from which :meth:`from_dict` restores the score exactly."""
        return {
            "cells": self.cells.to_dict(),
            "table": runs_to_json(self.table),
            "origin": str(self.origin),
            "step": str(self.step),
            "support": self.support.tolist(),
            "null_law": self.null_law.tolist(),
            "alternative_law": self.alternative_law.tolist(),
        }

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Score:
        """The score that :meth:`to_dict` wrote; refuses one whose parts do not fit together."""
        try:
            cells = cells_from_dict(document["cells"])
            table = runs_from_json(document["table"])
            support = integers_from_json(document["support"])
            laws = [numbers_from_json(document[key]) for key in ("null_law", "alternative_law")]
            origin, step = (fraction_from_json(document[key]) for key in ("origin", "step"))
            score = cls(cells, table, origin, step, support, *laws)
        except InvalidDocument:
            raise
        except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
            raise InvalidDocument(f"The score cannot be read: {error!r}.") from None
        if len(table) != cells.count + 1:
            raise InvalidDocument(f"The score has {cells.count} cells but a table of {len(table)} entries.")
        if score.step <= 0:
            raise InvalidDocument(f"The step {score.step} of the score must be greater than 0.")
        if len(support) == 0 or np.any(support[1:] <= support[:-1]) or not np.all(np.isin(support, table)):
            raise InvalidDocument("The support of the score's laws is not a set of its scores.")
        for law in laws:
            fits = law.shape == support.shape and bool(np.all(law >= 0)) and abs(math.fsum(law) - 1) < 1e-9
            if not fits:
                raise InvalidDocument("A law of the score is not a probability over its scores.")
        return score

    def __repr__(self) -> str:
        low, high = (float(self.origin + self.step * s) for s in (self.low, self.high))
        return f"Score({self.cells.kind}, {self.cells.count} cells, ratio {low:.6g} to {high:.6g}, width {self.width})"

    def bounds(self) -> tuple[float, float]:
        """The clamp as realised: the ratios that the lowest and the highest score stand for."""
        return float(self.origin + self.step * self.low), float(self.origin + self.step * self.high)


def lattice(low: Number, high: Number, units: int) -> tuple[Fraction, Fraction]:
    """Origin and step of a lattice of ``units`` steps whose ends are exactly low and high.

    >>> lattice(-0.1, 0.1, 4)
    (Fraction(-1, 10), Fraction(1, 20))
    """
    origin = rational(low, "clamp")
    return origin, (rational(high, "clamp") - origin) / units
