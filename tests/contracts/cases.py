"""Fourteen random (pair, clamp, data), each with odd records mixed in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privatest.hypotheses import make_pair
from privatest.scores import Score, clamped_score

__all__ = ["CASES", "Case", "by_hand"]


@dataclass(frozen=True, eq=False)
class Case:
    """A score and columns: records, who they are of, when they were made, and a day that may be missing or tied."""

    score: Score
    columns: dict[str, list[Any]]
    block: int
    start: int
    most: int


def by_hand(score: Score, record: Any) -> int:
    """The score of one record by the rules alone."""
    cells: Any = score.cells
    if isinstance(record, str) or cells.kind == "labels":
        return int(score.table[cells.index_of(record)]) if cells.kind == "labels" else score.odd_score
    return int(score.of_numbers([math.nan if record is None else record])[0])


def _pair(kind: str, rng: np.random.Generator) -> tuple[Any, Any]:
    a, b = np.round(rng.uniform(0.5, 4, 2), 2).tolist()
    match kind:
        case "normal":
            return f"normal(0, {a})", f"normal({b}, {a})"
        case "normals":
            return f"normal(0, {a})", f"normal({b}, {a + 1})"
        case "cauchy":
            return f"cauchy(0, {a})", f"cauchy({b}, {a})"
        case "exponential":
            return f"exponential({a})", f"exponential({a + b})"
        case "poisson":
            return f"poisson({a})", f"poisson({a + b})"
        case "numbers":
            p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
            return p, q
    labels = ["a", "B", "", "1", "ä", "two words", 'quo"te', "line\nbreak"]
    p, q = rng.dirichlet(np.ones(len(labels))), rng.dirichlet(np.ones(len(labels)))
    return dict(zip(labels, p.tolist(), strict=True)), dict(zip(labels, q.tolist(), strict=True))


ODD_NUMBERS = [None, math.nan, math.inf, -math.inf, 1e300, -1e300, -0.0, 5e-324, 2.0**60, 0.5, -3.0, 1e17]
# Numeric text, white space, other cases and unknown labels: none of them is a label.
ODD_TEXTS = [None, "1.0", "0.5", " a", "a ", "A", "b", "nan", "null", "NULL", "unknown", "ä", "1,5", "\t", "'a'"]


def _case(number: int) -> Case:
    rng = np.random.default_rng(1000 + number)
    kinds = ["normal", "normals", "cauchy", "exponential", "poisson", "numbers", "texts"]
    kind = kinds[number % len(kinds)]
    pair = make_pair(*_pair(kind, rng))
    low, high = np.round(rng.uniform(0.1, 2, 2), 3).tolist()
    score = clamped_score(pair, (-low, high))
    size = int(rng.integers(60, 240))
    source = pair.null if number % 2 else pair.alternative
    drawn: list[Any] = list(source.sample(rng, size))
    plain = drawn if kind == "texts" else [float(x) for x in drawn]
    odd: list[Any] = ODD_TEXTS if kind == "texts" else ODD_NUMBERS
    records = [*plain, *odd, *odd]
    records = [records[i] for i in rng.permutation(len(records))]
    people = [None if k == 0 else 2**60 + int(k) for k in rng.integers(0, max(size // 5, 2), len(records))]
    columns = {"x": records, "who": people, "when": rng.permutation(len(records)).tolist()}
    days: list[Any] = rng.integers(0, 3 * len(records), len(records)).tolist()
    if number % 3:  # texts, whose dictionaries list days of rows that no unit has
        days = [f"day {day:06d}" for day in days]
    columns["day"] = [None if gone else day for day, gone in zip(days, rng.random(len(records)) < 0.04, strict=True)]
    return Case(score, columns, int(rng.integers(1, 50)), int(rng.integers(0, 9)), int(rng.integers(1, 4)))


CASES = [_case(number) for number in range(14)]
