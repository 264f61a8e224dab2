"""Persons with many rows, and persons who come and go: privacy verified on every small data set.

Totals are the engines' own, of raw data sets with a column that says whose row it is; output probabilities are exact.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privatest as pt
from privatest import engines
from privatest.decision import PrivateTest
from privatest.engines import rows_per_person as units
from privatest.errors import InvalidInput
from privatest.privacy import Noise, Tulap, seeded_source
from privatest.scores import Score
from tests.contracts.exhaustive import decision_log_ratio, log_pmf

SLACK = 1 + 1e-12
PAIRS = [
    ({"a": 0.6, "b": 0.4}, {"a": 0.4, "b": 0.6}),
    ({"a": 0.2, "b": 0.3, "c": 0.5}, {"a": 0.5, "b": 0.3, "c": 0.2}),
    ({"a": 0.0, "b": 1.0}, {"a": 0.1, "b": 0.9}),
]
Rows = tuple[Any, ...]


def tables(labels: list[Any], most: int) -> Iterator[Rows]:
    """All multisets of up to ``most`` rows of one person, odd ones included."""
    for size in range(most + 1):
        yield from itertools.combinations_with_replacement([*labels, None, "odd"], size)


@cache
def opened(persons: tuple[tuple[str, Rows], ...], most: int) -> tuple[Any, int]:
    """The rows of some persons, opened once for all tests that look at them, and how many of them are used."""
    rows = [(who, x) for who, values in persons for x in values]
    frame = pd.DataFrame({"who": [r[0] for r in rows], "x": np.array([r[1] for r in rows], dtype=object)})
    records = engines.open_source(frame, column="x", unit="who", max_rows_per_unit=most)
    return records, records.count()


def total(test: PrivateTest, persons: dict[str, Rows]) -> tuple[int, int]:
    """The total before the noise, and how many rows are used."""
    raw, count = summed(tuple(persons.items()), test.max_rows_per_unit, test.score)
    return test.scale * raw - test.shift * count, count


@cache
def summed(persons: tuple[tuple[str, Rows], ...], most: int, score: Score) -> tuple[int, int]:
    """The sum of the scores, once for all tests of one score, and how many rows are used."""
    records, count = opened(persons, most)
    return records.total(score), count


def largest(noise: Noise, differences: set[int]) -> float:
    """sup over outputs of the log-ratio, for totals that differ by any of these.

    Tulap's pmf is constant on blocks of its width, so one output on each side of every border of either block says
    it all; the others are looked at on a grid and far out.
    """
    parity = int(2 * noise.offset)
    worst = 0.0
    for difference in differences:
        if isinstance(noise, Tulap):
            borders = noise.width * np.arange(-4, 5) + noise.width // 2
            places = (borders[:, None] + np.arange(-2, 3)).ravel()
            places = np.concatenate([places, places + difference])
        else:
            places = np.concatenate([np.linspace(-3, 3, 2001), [-60, 60]]) * (abs(difference) + 1)
        values = 2 * np.rint(places).astype(np.int64) + parity
        worst = max(worst, float(np.max(np.abs(log_pmf(noise, values) - log_pmf(noise, values - 2 * difference)))))
    return worst


def differences(test: PrivateTest, labels: list[Any]) -> set[tuple[int, int]]:
    """(total, neighbour's total) for all rows of one person beside others, by the test's notion of neighbours."""
    found = set()
    others: dict[str, Rows] = {"B": (labels[0], labels[-1], None), "C": (labels[0],) * 5}
    seen = {rows: total(test, {"A": rows, **others}) for rows in tables(labels, test.max_rows_per_unit + 2)}
    if test.neighbours == "add-remove":
        nobody = total(test, others)[0]
        for value, _ in seen.values():
            found |= {(value, nobody), (nobody, value)}
        return found
    for (value, count), (other, used) in itertools.product(seen.values(), repeat=2):
        if count == used:  # n is public
            found.add((value, other))
    return found


@pytest.mark.parametrize("kind", ["tight", "ncllr", "scllr"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_all_of_one_persons_rows_are_hidden(kind: str, neighbours: str, rows: int, show: Any) -> None:
    worst = 0.0
    for (null, alternative), epsilon in itertools.product(PAIRS, (0.5, 2)):
        test = pt.design(
            null, alternative, epsilon=epsilon, n=9, test=kind, clamp="paper", neighbours=neighbours,
            max_rows_per_unit=rows,
        )  # fmt: skip
        pairs = differences(test, list(null))
        ratio = largest(test.noise, {a - b for a, b in pairs})
        assert decision_log_ratio(test.noise, test.cutoff, pairs) <= ratio * SLACK
        worst = max(worst, ratio / epsilon)
    show(f"{kind}, {neighbours}, {rows} rows a person: largest log-ratio {worst:.12f} epsilon")
    assert worst <= SLACK
    if kind == "tight":
        assert worst > 0.99


def unscaled(groups: Any, most: int) -> tuple[int, int]:
    """All rows of a person count in full, though the person counts as ``most`` records."""
    found = list(groups)
    return sum(rows // m * min(m, most) for m, rows, _ in found), sum(total for _, _, total in found)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_the_check_fails_when_a_persons_sum_is_not_scaled(neighbours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    null, alternative = PAIRS[1]
    words: dict[str, Any] = {"epsilon": 1, "n": 9, "clamp": "paper", "neighbours": neighbours}
    test = pt.design(null, alternative, max_rows_per_unit=1, **words)
    assert largest(test.noise, {a - b for a, b in differences(test, list(null))}) <= SLACK
    summed.cache_clear()
    opened.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(units, "sum_of_persons", unscaled)
        ratio = largest(test.noise, {a - b for a, b in differences(test, list(null))})
    summed.cache_clear()
    opened.cache_clear()
    assert ratio > 1 + 1e-6


def test_too_little_noise_for_the_rows_or_the_shift_is_refused() -> None:
    null, alternative = PAIRS[1]
    test = pt.design(null, alternative, epsilon=1, n=9, neighbours="add-remove", max_rows_per_unit=2)
    document = test.to_dict()
    for change in ({"max_rows_per_unit": 3}, {"shift": test.shift + test.scale * 20}, {"neighbours": "replace"}):
        with pytest.raises(InvalidInput, match="privacy loss"):
            PrivateTest.from_dict({**document, **change})
    assert PrivateTest.from_dict(document) == test


class TestAddRemove:
    """n is neither required nor revealed."""

    @pytest.fixture
    def test(self) -> PrivateTest:
        return pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=40, neighbours="add-remove")

    def test_any_number_of_records_will_do(self, test: PrivateTest) -> None:
        rng = np.random.default_rng(1)
        for n in (0, 1, 39, 40, 41, 1000):
            release = test.run(rng.normal(0, 1, n), rng=np.random.default_rng(2))
            assert release.n == 40
            assert release.neighbours == "add-remove"

    def test_error_rates_are_those_measured(self, test: PrivateTest) -> None:
        rng, runs = np.random.default_rng(4), 4000
        source = seeded_source(rng)
        for mean, error, wrong in ((0.0, test.alpha, False), (1.0, test.beta, True)):
            said = 0
            for _ in range(runs):  # without the p-values, which take their time
                raw = test.scale * engines.total(test.score, rng.normal(mean, 1, 40)) - 40 * test.shift
                said += (raw + test.noise.draw(source) > test.cutoff) == wrong
            assert abs(said / runs - error) < 6 * np.sqrt(error * (1 - error) / runs) + 1e-3

    def test_alpha_is_kept(self) -> None:
        for level in (0.2, 0.05, 1e-3, 1e-8):
            test = pt.design(
                "bernoulli(0.3)", "bernoulli(0.6)", epsilon=0.7, n=80, neighbours="add-remove", alpha=level
            )
            assert level / 2 < test.alpha <= level


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(("p", "q", "epsilon"), [(0.3, 0.45, 1), (0.05, 0.2, 0.5), (0.5, 0.8, 4)])
def test_errors_of_persons_with_many_rows_are_at_most_the_stated_ones(
    p: float, q: float, epsilon: float, k: int
) -> None:
    """Forty persons with m independent rows each, all of which count as k: computed, not simulated."""
    test = pt.design(
        f"bernoulli({p})", f"bernoulli({q})", epsilon=epsilon, n=40 * k, max_rows_per_unit=k, clamp="paper"
    )
    assert max(test.alpha, test.beta) < 0.5
    low, high = (int(test.score.table[cell]) for cell in (0, 1))

    def says_null(rate: float, m: int) -> float:
        ones = np.arange(40 * m + 1)
        exact = (Fraction(k * (low * (40 * m - one) + high * one), m) for one in ones.tolist())
        totals = [math.floor(total + Fraction(1, 2)) for total in exact]
        law = stats.binom.pmf(ones, 40 * m, rate)
        return float(sum(mass * test.noise.sf(test.cutoff - total) for mass, total in zip(law, totals, strict=True)))

    assert 1 - says_null(p, k) == pytest.approx(test.alpha, rel=1e-9)  # k rows: what is stated
    for m in (k + 1, 5):
        assert 1 - says_null(p, m) <= test.alpha
        assert says_null(q, m) <= test.beta


ROWS = pd.DataFrame({"x": [0, 1, 1, 0] * 30, "who": [i // 3 for i in range(120)], "arm": ["a", "b"] * 60})
ROWS["arm"] = np.where(ROWS["who"] % 2, "a", "b")
LAW, AWAY = "bernoulli(0.3)", "bernoulli(0.7)"
ASKED: dict[str, Any] = {
    "test": lambda **words: pt.decide(ROWS, LAW, AWAY, epsilon=1, column="x", **words),
    "odd": lambda **words: pt.design(LAW, AWAY, epsilon=1, n=40 if words else 120).run(
        ROWS, column="x", odd_epsilon=0.5, **words
    ),
    "optimum": lambda **words: pt.optimum(LAW, AWAY, epsilon=1, n=40 if words else 120).test.run(
        ROWS, column="x", **words
    ),
    "estimate": lambda **words: pt.estimate(ROWS, "bernoulli(?)", epsilon=1, column="x", **words),
    "groups": lambda **words: pt.compare_groups(ROWS, group="arm", epsilon=1, column="x", **words),
    "fit": lambda **words: pt.goodness_of_fit(ROWS, LAW, distance=0.4, epsilon=2, beta=None, column="x", **words),
    "change": lambda **words: pt.detect_change(ROWS, LAW, AWAY, epsilon=2, column="x", **words),
    "changes": lambda **words: pt.detect_change(ROWS, LAW, AWAY, epsilon=2, column="x", **words, changes="several"),
}


@pytest.mark.parametrize("question", ASKED)
def test_a_release_says_whose_rows_it_hides(question: str) -> None:
    """All rows of one person where a unit was named, one record where none was; and so does its document."""
    for words, hidden in (({"unit": "who"}, "all rows of one person"), ({}, "one record")):
        found = ASKED[question](**words)
        assert f"hides replacing {hidden}" in str(found)
        assert found.persons == bool(words) == found.to_dict().get("persons", False)
        assert type(found).from_dict(found.to_dict()).persons == bool(words)
