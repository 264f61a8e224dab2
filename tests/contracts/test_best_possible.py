"""The best possible tests: really private, really runnable, and where the Wasserstein distance says they are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import cache

import numpy as np

import privatest as pt
from privatest.bounds.optimum import HistogramTest, Optimum

CASES = [
    (pair, epsilon, n)
    for pair, epsilon, n in itertools.product(
        (
            ((0.6, 0.4), (0.4, 0.6)),
            ((1.0, 0.0), (0.7, 0.3)),
            ((0.2, 0.3, 0.5), (0.5, 0.3, 0.2)),
            ((0.0, 0.5, 0.5), (0.2, 0.5, 0.3)),
        ),
        (0.2, 0.7, 2),
        (1, 3, 5),
    )
]


@cache
def solved(p: tuple[float, ...], q: tuple[float, ...], epsilon: float, n: int) -> Optimum:
    """Each linear program once, for all tests."""
    return pt.optimum(list(p), list(q), epsilon=epsilon, n=n)


def data_sets(k: int, n: int) -> Iterator[tuple[int, ...]]:
    return itertools.product(range(k), repeat=n)


def exhaustive_log_ratio(test: HistogramTest, k: int) -> float:
    """Over all data sets, not histograms, and all ways to replace one record, in exact rationals until the log."""
    classes = test.members

    def null_probability(data: tuple[int, ...]) -> float:
        counts = np.bincount(classes[list(data)], minlength=int(classes.max()) + 1)
        return test.probability(counts.tolist())  # type: ignore[return-value]

    worst = 0.0
    for data in data_sets(k, test.n):
        here = null_probability(data)
        for other in range(k):
            there = null_probability((other, *data[1:]))
            for a, b in ((here, there), (1 - here, 1 - there)):
                if a or b:
                    worst = max(worst, math.inf if not a or not b else abs(math.log(a / b)))
    return worst


def test_every_optimum_is_private_on_every_data_set(show) -> None:  # type: ignore[no-untyped-def]
    worst = 0.0
    for (p, q), epsilon, n in CASES:
        test = solved(p, q, epsilon, n).test
        worst = max(worst, exhaustive_log_ratio(test, len(p)) / epsilon)
    show(f"{len(CASES)} linear programs after repair: largest log-ratio {worst:.12f} epsilon")
    assert 0.999 < worst <= 1 + 1e-12


def test_no_private_test_of_ours_beats_the_optimum_or_the_bound() -> None:
    for (p, q), epsilon, n in CASES:
        best = solved(p, q, epsilon, n)
        for kind in ("tight", "ncllr", "scllr"):
            assert pt.design(list(p), list(q), epsilon=epsilon, n=n, test=kind).advantage <= best.bound + 1e-9
