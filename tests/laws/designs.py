"""A designed test of every kind, over every kind of record, with data for each."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

from scipy import stats

import privatest as pt
from privatest.decision import PrivateTest

__all__ = ["DESIGNS", "Design", "designed"]


@dataclass(frozen=True)
class Design:
    """Arguments of ``pt.design`` and how many records."""

    null: Any
    alternative: Any
    kind: str
    epsilon: Any = 1
    n: int = 12
    clamp: Any = "paper"


DATE = datetime.date(2024, 2, 29)
DESIGNS: dict[str, Design] = {
    "tight, text": Design({"a": 0.2, "b": 0.3, "c": 0.5}, {"a": 0.5, "b": 0.3, "c": 0.2}, "tight"),
    "tight, two labels": Design([0.6, 0.4], [0.4, 0.6], "tight", Fraction(5, 7), 25),
    "tight, labels of all kinds": Design(
        {"a": 0.1, 2: 0.2, 0.5: 0.2, ("t", DATE): 0.2, DATE: 0.1, b"x": 0.1, Decimal("0.1"): 0.1},
        {"a": 0.2, 2: 0.1, 0.5: 0.1, ("t", DATE): 0.1, DATE: 0.2, b"x": 0.2, Decimal("0.1"): 0.1},
        "tight",
    ),
    "tight, counts": Design(stats.poisson(3), stats.poisson(5), "tight", 0.5, 20),
    "tight, normal": Design(stats.norm(0, 1), stats.norm(1, 1), "tight", 0.5, 15),
    "tight, heavy tails": Design(stats.cauchy(0), stats.cauchy(2), "tight", 0.7, 15),
    "tight, supported": Design(stats.expon(), stats.gamma(2), "tight", 0.1, 10, (-1, Fraction(1, 3))),
    "scllr, normal": Design(stats.norm(0, 1), stats.norm(1, 1), "scllr", 0.5, 15),
    "scllr, wide": Design([0.9, 0.1], [0.2, 0.8], "scllr", 0.3, 10, (-1.5, 2)),
    "ncllr, labels": Design([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], "ncllr", 2, 9),
    "ncllr, normal": Design(stats.norm(0, 1), stats.norm(0, 2), "ncllr", 1, 15),
    "llr, labels": Design([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], "llr", 1, 9),
    "llr, infinite": Design([0.5, 0.5, 0.0], [0.0, 0.5, 0.5], "llr", 1, 3),
    "llr, normal": Design(stats.norm(0, 1), stats.norm(1, 1), "llr", 1, 9),
    "sllr, bounded": Design([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], "sllr", 1, 9),
    "sllr, unbounded": Design(stats.norm(0, 1), stats.norm(1, 1), "sllr", 1, 9),
}


@cache
def designed(name: str) -> PrivateTest:
    """The test of that name, designed once."""
    d = DESIGNS[name]
    clamp = {} if d.kind in ("llr", "sllr") else {"clamp": d.clamp}
    return pt.design(d.null, d.alternative, epsilon=d.epsilon, n=d.n, test=d.kind, **clamp)
