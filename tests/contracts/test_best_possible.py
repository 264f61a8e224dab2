"""The best possible tests: really private, really runnable, and where the Wasserstein distance says they are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import privatest as pt
from privatest.bounds.optimum import HistogramTest, Optimum, dual_test
from privatest.errors import InvalidInput
from privatest.theory.wasserstein import wasserstein

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


def test_the_optimum_lies_between_a_quarter_of_the_wasserstein_distance_and_all_of_it(show) -> None:  # type: ignore[no-untyped-def]
    low, high = math.inf, 0.0
    for (p, q), epsilon, n in CASES:
        distance = wasserstein(list(p), list(q), epsilon=epsilon, n=n)
        best = solved(p, q, epsilon, n).advantage
        assert distance.value / 4 - 1e-9 <= best <= distance.value + 1e-9
        assert dual_test(distance).advantage == pytest.approx(distance.value / 4, abs=1e-9)
        low, high = min(low, best / distance.value), max(high, best / distance.value)
    show(f"{len(CASES)} cases: optimum over W between {low:.3f} and {high:.3f}")


def test_every_optimum_is_private_on_every_data_set(show) -> None:  # type: ignore[no-untyped-def]
    worst = 0.0
    for (p, q), epsilon, n in CASES:
        test = solved(p, q, epsilon, n).test
        worst = max(worst, exhaustive_log_ratio(test, len(p)) / epsilon)
    show(f"{len(CASES)} linear programs after repair: largest log-ratio {worst:.12f} epsilon")
    assert 0.999 < worst <= 1 + 1e-12


def test_the_check_fails_for_an_optimum_that_is_not_repaired() -> None:
    test = pt.optimum([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], epsilon=0.7, n=3).test
    broken = test.numerators.copy()
    broken[int(np.argmax(broken))] = int(broken.max() * 1.02)
    with pytest.raises(InvalidInput, match="privacy loss"):
        replace(test, numerators=broken)
    unchecked = object.__new__(HistogramTest)
    unchecked.__dict__.update({**test.__dict__, "numerators": broken})
    assert exhaustive_log_ratio(unchecked, 3) > 0.7 * (1 + 1e-6)


def test_no_private_test_of_ours_beats_the_optimum_or_the_bound() -> None:
    for (p, q), epsilon, n in CASES:
        best = solved(p, q, epsilon, n)
        for kind in ("tight", "ncllr", "scllr"):
            assert pt.design(list(p), list(q), epsilon=epsilon, n=n, test=kind).advantage <= best.bound + 1e-9


def test_an_optimum_runs_like_any_other_test() -> None:
    test = pt.optimum({"a": 0.2, "b": 0.3, "c": 0.5}, {"a": 0.5, "b": 0.3, "c": 0.2}, epsilon=1, n=4).test
    release = test.run(["a", "b", None, "c"])
    assert release.decision in ("null", "alternative")
    assert release.statistic is None
    assert release.private
    rng = np.random.default_rng(3)
    said = sum(test.run(["a", "a", "c", "b"], rng=rng).decision == "null" for _ in range(3000)) / 3000
    counts = np.bincount(test.members[[0, 0, 2, 1]], minlength=int(test.members.max()) + 1).tolist()
    assert said == pytest.approx(float(test.probability(counts)), abs=0.05)
    assert HistogramTest.from_json(test.to_json()) == test


def test_too_large_a_program_is_refused_with_its_size() -> None:
    with pytest.raises(InvalidInput, match=r"lower_bound\(\)"):
        pt.optimum(np.full(10, 0.1), np.arange(1, 11) / 55, epsilon=1, n=40)


def test_comparison_lists_every_test_and_exports(show) -> None:  # type: ignore[no-untyped-def]
    found = pt.compare([0.6, 0.4], [0.4, 0.6], epsilon=1)
    rows = {row.test: row for row in found}
    assert rows["tight"].n == rows["optimum"].n == 29
    assert found.lower_bound <= 29
    assert rows["LLR"].n == 23
    assert not rows["LLR"].private
    assert len(found.to_dataframe()) == len(found.rows)
    assert "No private test needs fewer than" in str(found)
    rare = {row.test: row for row in pt.compare([1.0, 0.0], [0.9, 0.1], epsilon=0.5)}
    assert rare["scLLR"].n is None
    assert rare["tight"].n == 53
    show(str(found).replace("\n", " | "))
