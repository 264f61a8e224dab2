"""A release is total: whatever noisy number can be drawn, under every notion, also far outside of the model.

What is made of a noisy number must not fail, warn or be no probability: a failure after the draw would tell that the
noisy number lies where it fails, and could be had again with another draw. Every design is walked from far below all
totals to far above them. ``python -m tests.contracts.test_total_release`` walks many more of them, and counts.
"""

from __future__ import annotations

import itertools
import json
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privatest as pt
from privatest.changepoint import block_sums
from privatest.errors import InvalidInput
from privatest.estimates import stepped_design, table_design
from privatest.estimates.table import TableEstimate
from privatest.privacy import Gaussian, Noise, TruncatedTulap, Tulap, Uniform, bulk_draws
from privatest.scores import EdgeCells, GroupedCells, LabelCells

NOTIONS = ("pure(1)", "approx(1, 0.001)", "tv(0.2)", "gdp(1)", "zcdp(0.5)", "renyi(2, 0.5)", "kl(0.5)")
RARE = 28.0
"""In nats: noise goes as far with probability 1e-12."""
ABSURD = (10**3, 10**6, 10**12)
"""Widths beyond all totals: nothing is drawn there, and nothing fails."""
LABELS = {"a": 0.2, "b": 0.3, "c": 0.5}, {"a": 0.5, "b": 0.3, "c": 0.2}
BOUNDED = stats.uniform(0, 1), stats.beta(2, 1, scale=1.5)
TESTS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "labels": (*LABELS, {"n": 12}),
    "bounded": (*BOUNDED, {"n": 150, "clamp": (-1, 1)}),
    "coin": (*LABELS, {"n": 12, "alpha": 0.05, "release": "decision"}),
    "decision": (*BOUNDED, {"n": 40, "release": "decision"}),
    "two-sided": ("normal(0, 1)", "any_of(normal(0.5, 1), normal(-0.5, 1))", {"n": 60}),
    "sets": ("normal(mean in [-0.5, 0.2], sd = 1)", "normal(mean in [1, 3], sd = 1)", {"n": 30}),
    "add-remove": (*LABELS, {"n": 12, "neighbours": "add-remove"}),
    "zeros": ({"a": 0.0, "b": 0.5, "c": 0.5}, {"a": 0.1, "b": 0.9, "c": 0.0}, {"n": 25}),
    "many": ("bernoulli(0.3)", "bernoulli(0.31)", {"n": 10**7}),
    "scllr": (*LABELS, {"n": 12, "test": "scllr"}),
    "ncllr": (*LABELS, {"n": 12, "test": "ncllr"}),
}
REGIMES = "bernoulli(0.1)", "bernoulli(0.9)"
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "rate": ("bernoulli(?)", {"n": 50}),
    "exponential": ("exponential(?)", {"n": 400, "between": (0.1, 10)}),
    "poisson": ("poisson(?)", {"n": 200, "between": (0.5, 20)}),
    "wide": ("normal(mean=?, sd=1)", {"n": 800, "between": (-100, 100)}),  # two steps
    "hidden": ("bernoulli(?)", {"n": 50, "neighbours": "add-remove"}),
}

TABLES: dict[str, dict[str, Any]] = {
    "table of edges": {"edges": [-1, 0, 1]},
    "table of labels": {"labels": ["a", "b"], "neighbours": "add-remove"},
    "table of persons": {"labels": ["a", "b"], "max_rows_per_unit": 2},
    "table of groups": {"edges": [0, 1], "groups": ["one", "other"]},
    "table of persons in groups": {"labels": ["a"], "groups": ["one", "other"], "max_rows_per_unit": 2},
}
STEPS: dict[str, dict[str, Any]] = {
    "median": {"family": "median"},
    "quantile of persons": {"family": "quantile(0.9)", "max_rows_per_unit": 2},
    "mean": {"family": "mean"},
    "about a mean": {"family": "mean", "guarantee": "approximate"},
    "both": {"family": "normal(mean=?, sd=?)", "sd_between": (0.5, 2)},
}


def walked(low: int, high: int, width: int, noise: Noise, inside: int = 5) -> list[Fraction]:
    """Noisy numbers from far below the totals between two ends to far above them, in order."""
    reach = math.ceil(noise.reach(RARE)) + noise.plateau + width
    ends = [low - reach, high + reach, low, high, *np.linspace(low, high, inside + 2)[1:-1].tolist()]
    ends += [end + sign * times * width for end, sign in ((low, -1), (high, 1)) for times in ABSURD]
    if noise.spacing > 1:  # a chain that ends says so by one value far beyond all others
        ends += [low - 2**64 * width, high + 2**64 * width]
    return [math.floor(end) + noise.offset for end in sorted(ends)]


def read(found: Any, design: Any) -> Any:
    """All that is told of a release."""
    found = replace(found, design=design)
    document = json.dumps(found.to_dict(), allow_nan=False)
    assert design.outcome.from_dict(json.loads(document)).epsilon == found.epsilon
    assert found.sentence
    assert repr(found)
    assert found.facts()
    for name in ("pvalue", "pvalue_alternative"):
        assert getattr(found, name, None) is None or 0 <= getattr(found, name) <= 1
    assert getattr(found, "evalue", None) is None or 0 <= found.evalue < math.inf
    return found


def rising(pvalues: list[float]) -> bool:
    """Whether p-values rise with the statistic, but for rounding."""
    return all(before * (1 - 1e-9) - 1e-15 <= after for before, after in itertools.pairwise(pvalues))


def of_test(test: Any, points: int) -> int:
    low, high = (test.n * (test.scale * end - test.shift) for end in (test.score.low, test.score.high))
    numbers = walked(low, high, test.sensitivity, test.noise, points)
    tosses = (False,) if test.coin is None else (False, True)
    for tossed in tosses:
        found = [read(test.release(test.draw_of(noisy, tossed=tossed)), test) for noisy in numbers]
        if not test.two_sided and test.released != "decision":
            assert rising([one.pvalue for one in found])
            assert rising([one.pvalue_alternative for one in reversed(found)])
    return len(numbers) * len(tosses)


def of_fit(test: Any, points: int) -> int:
    width = test.candidate.excess.width
    numbers = walked(0, width * test.n, width, test.noise, points)
    found = [read(test.release(noisy), test) for noisy in numbers]
    assert rising([one.pvalue for one in reversed(found)])
    return len(numbers)


def of_estimate(design: Any, points: int) -> int:
    if design.location is not None:
        chosen = (0, 0), (7, design.location.bins // 2), (3, design.location.bins - 1)
        return sum(of_estimate(design.second_step(*place), points) for place in chosen)
    scale, shift = design._scale_and_shift
    low, high = (design.n * (scale * end - shift) for end in (design.score.low, design.score.high))
    numbers = walked(low, high, scale * design.score.width, design.noise, points)
    counts: list[Any] = [None]
    if design.count_noise is not None:
        counts = [design.n + design.count_noise.offset, design.count_noise.offset - 10**6]
        numbers = numbers[:: max(len(numbers) // 4, 1)]
    for noisy, count in itertools.product(numbers, counts):
        found = read(design.release(noisy if count is None else [noisy, count]), design)
        assert design.between[0] <= found.interval[0] <= found.interval[1] <= design.between[1]
        assert design.between[0] <= found.estimate <= design.between[1]
    return len(numbers) * len(counts)


def of_groups(design: Any, points: int) -> int:
    each = [walked(0, n * design.fine, design.fine, design.noise, points) for n in design.n]
    pairs = list(zip(each[0], reversed(each[1]), strict=True)) + list(zip(*each, strict=True))
    for first, second in pairs:
        found = read(design.release((int(first), int(second))), design)
        assert -1 <= found.interval[0] <= found.interval[1] <= 1
    return len(pairs)


def of_change(plan: Any, points: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Every block's noise at one of the numbers, and blocks one after the other at all of them."""
    detector = getattr(plan.detector, "blocks", plan.detector)
    width, noise = detector.score.width, detector.noise
    numbers = walked(-plan.block * width, plan.block * width, width, noise, points)
    numbers = [noisy for noisy in numbers if abs(noisy) < 2**61]
    drawn = [[noisy] for noisy in numbers] + [numbers]
    for cycle in drawn:
        doubled = [int(2 * noisy) for noisy in cycle]
        monkeypatch.setattr(
            block_sums, "draw_many", lambda _, count, __, of=doubled: np.resize(np.array(of, dtype=np.int64), count)
        )
        read(plan.run([0, 1] * (plan.n // 2), rng=np.random.default_rng(1)), plan)
    return len(drawn)


def patterns(cells: int, numbers: list[Fraction]) -> list[list[int]]:
    """Twice the noise of each cell of a table: all at one number, at two by turns, or one cell alone at one."""
    found = [[number] * cells for number in numbers]
    for low, high in zip(numbers, reversed(numbers), strict=True):
        found.append([(low, high)[place % 2] for place in range(cells)])
        found += [[low if place == alone else numbers[0] % 1 for place in range(cells)] for alone in (0, cells - 1)]
    return [[int(2 * number) for number in pattern] for pattern in found]


def told(answer: Any) -> None:
    """All that an answer from a table tells."""
    document = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
    assert type(answer).from_dict(document).epsilon == answer.epsilon
    assert answer.sentence
    assert repr(answer)
    assert answer.facts()
    assert getattr(answer, "pvalue", None) is None or 0 <= answer.pvalue <= 1
    if isinstance(answer, TableEstimate):
        pairs = list(zip(answer.estimates, answer.intervals, strict=True))
    else:
        pairs = [(answer.estimate, answer.interval)] if hasattr(answer, "interval") else []
    for value, (low, high) in pairs:
        assert low <= value <= high


def answers_of(table: Any) -> int:
    """Whatever may be asked of a table, asked of this one."""
    if isinstance(table.cells, GroupedCells):
        return sum(answers_of(one) for one in table.groups.values())
    if isinstance(table.cells, EdgeCells):
        edges = list(table.cells.edges)
        asked = [
            lambda: table.share(above=edges[1]),
            table.median,
            lambda: table.quantile(0.9, confidence=0.5),
            table.mean,
            lambda: table.estimate("normal(mean=?, sd=1)", between=(-3, 3)),
            lambda: table.fit("normal(0, 1)"),
        ]
        pair: tuple[Any, Any] = ("normal(0, 1)", "normal(1, 1)")
    else:
        label = table.cells.labels[0]
        asked = [lambda: table.share(label=label), lambda: table.fit(LABELS[0])]
        pair = LABELS
    if table.n is not None:
        asked.append(lambda: table.test(*pair))
    for one in asked:
        told(one())
    return len(asked)


def of_table(design: Any, points: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Runs of a table, by groups and persons if it has any, where the noise is at these numbers."""
    drawn = patterns(design.cells.count + 1, within_64_bits(walked(0, design.n, design.n, design.noise, points)))
    near = design.noise.reach(RARE) + 2 * design.n
    for place, pattern in enumerate(drawn):
        monkeypatch.setattr(table_design, "draw_many", lambda _, count, __, of=pattern: np.resize(np.array(of), count))
        table = read(design.run(*rows_for(design), **named_columns(design)), design)
        asked = place % (12 if points == 1 else 2) == 0
        if asked and max(map(abs, pattern)) <= 2 * near:  # else the number of records would be absurd, too
            answers_of(table)
    return len(drawn)


def of_steps(design: Any, points: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Runs of an estimate in two steps, where the noise of both tables and of the total is at these numbers."""
    numbers = within_64_bits(walked(0, design.n, design.n, design.noise, points))
    drawn = patterns(len(design.first_edges) + 2, numbers)
    drawn = drawn[:: (15 if points == 1 else 4) if design.question_text == "mean" else 2]  # its bounds take longer
    for pattern, number in zip(drawn, itertools.cycle(numbers), strict=False):
        monkeypatch.setattr(
            stepped_design, "draw_many", lambda _, count, __, of=pattern: np.resize(np.array(of), count)
        )
        monkeypatch.setattr(
            Noise, "draw", lambda self, _, far=number: math.floor(far * stepped_design.UNITS) + self.offset
        )
        found = design.run(*rows_for(design), **named_columns(design))
        assert found.design is design
        told(found)
    return len(drawn)


def within_64_bits(numbers: list[Fraction]) -> list[Fraction]:
    return [number for number in numbers if abs(number) < 2**60]


def rows_for(design: Any) -> tuple[Any]:
    """As many rows as a design counts, of persons and groups."""
    count, rows = design.n, design.max_rows_per_unit
    cells = getattr(design.record_cells, "inner", design.record_cells)  # those of a group
    values: list[Any] = ["a", "b", "c"] if isinstance(cells, LabelCells) else [-0.5, 0.2, 1.7]
    return (
        pd.DataFrame(
            {
                "x": [values[place % 3] for place in range(count)],
                "who": [f"person {place // rows}" for place in range(count)],
                "group": ["one" if place % 2 else "other" for place in range(count)],
            }
        ),
    )


def named_columns(design: Any) -> dict[str, str]:
    grouped = {"by": "group"} if isinstance(design.record_cells, GroupedCells) else {}
    return {"column": "x", **grouped, **({"unit": "who"} if design.max_rows_per_unit > 1 else {})}


def of_blocks(watched: Any, points: int) -> int:
    """What a monitor or a sequential test makes of one block's noisy sum."""
    plan = watched._plan
    kinds = [plan.first, plan.later] if hasattr(plan, "later") else [plan.blocks]
    numbers: list[Fraction] = []
    for one in kinds:
        numbers = walked(one.block * one.score.low, one.block * one.score.high, one.score.width, one.noise, points)
        released = [int(2 * noisy) for noisy in numbers]
        votes = one.votes(released)
        assert all(one.table.min() <= vote <= one.table.max() for vote in votes)
        assert all(math.isfinite(one.trace(each)) for each in released)
    return len(kinds) * len(numbers)


DRAWN_BY_RUNS = of_change, of_table, of_steps
"""Walks that put numbers in place of what is drawn."""


def designs(notions: tuple[str, ...], **sizes: Any) -> Iterator[tuple[str, Callable[[], Any], Callable[..., int]]]:
    """Names of designs, how they are made, and how they are walked."""
    for notion in notions:
        kept = {"epsilon": 1} if notion == "pure(1)" else {"privacy": notion}
        for name, (null, alternative, words) in TESTS.items():
            given = {**words, **sizes} if words["n"] < 10**6 else words
            yield f"{name}, {notion}", lambda p=null, q=alternative, w={**given, **kept}: pt.design(p, q, **w), of_test
        for name, (family, words) in FAMILIES.items():
            given = {**words, **sizes}
            yield f"{name}, {notion}", lambda f=family, w={**given, **kept}: pt.design_estimate(f, **w), of_estimate
        for symbols in (2, 6):
            null = np.full(symbols, 1 / symbols)
            words = {"n": 300, "distance": 0.3, **sizes, **kept}
            yield f"fit of {symbols}, {notion}", lambda p=null, w=words: pt.design_fit(p, **w), of_fit
        for n in ((30, 20), (4, 200)):
            yield f"groups of {n}, {notion}", lambda n=n, w=kept: pt.design_groups(n=n, **w), of_groups
        for name, words in TABLES.items():
            given = {"n": 24, **sizes, **words, **kept}
            yield f"{name}, {notion}", lambda w=given: pt.design_table(**w), of_table
        for name, words in STEPS.items():
            given = {"n": 40, "between": (-2, 2), **words, **kept}
            yield f"{name}, {notion}", lambda w=given: pt.design_estimate(**w), of_steps
        words = {"n": 400, **kept}
        yield f"change, {notion}", lambda w=words: pt.design_change(*REGIMES, method="blocks", **w), of_change
        yield f"changes, {notion}", lambda w=words: pt.design_change(*REGIMES, **w, changes="several"), of_change
        yield f"monitor, {notion}", lambda w=kept: pt.Monitor(*REGIMES, **w), of_blocks
        yield f"sequential, {notion}", lambda w=kept: pt.Sequential(*REGIMES, **w), of_blocks


# Every design with two kinds of noise, and some with the others; of all of them more are walked by hand.
SOME = ("labels", "bounded", "decision", "two-sided", "rate", "exponential", "fit of 6", "groups of (30", "monitor")
BY_HAND = "wide, pure(1)", "both, pure(1)", "both, gdp(1)"
CASES = [case for case in designs(("pure(1)", "gdp(1)")) if case[0] not in BY_HAND]
CASES += [case for case in designs(NOTIONS[1:3]) if case[0].startswith(SOME)]
CASES += [case for case in designs(NOTIONS[4:]) if case[0].startswith(("bounded", "exponential", "fit of 6"))]
REFUSED = {f"{name}, {notion}" for name in ("scllr", "ncllr") for notion in NOTIONS[1:]}
"""The paper's tests are for an epsilon."""


@pytest.mark.parametrize(("name", "make", "walk"), CASES, ids=[case[0] for case in CASES])
def test_a_release_is_made_of_every_noisy_number(
    name: str, make: Callable[[], Any], walk: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        design = make()
    except InvalidInput:  # before there are data
        assert name in REFUSED
        return
    assert name not in REFUSED
    assert walk(design, 1, monkeypatch) if walk in DRAWN_BY_RUNS else walk(design, 1)


TINY = ["pure(1e-8)", "gdp(1e-12)", "gdp(1e-18)", "gdp(1e-20)", "tv(1e-18)", "zcdp(1e-40)", "approx(0, 1e-19)"]
DRAWN: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "test": (lambda **w: pt.design("bernoulli(0.2)", "bernoulli(0.8)", n=4, clamp=(-1, 1), **w), ([0, 1, 1, 0],)),
    "estimate": (lambda **w: pt.design_estimate("bernoulli(?)", n=4, **w), ([0, 1, 1, 0],)),
    "table": (lambda **w: pt.design_table(labels=[0, 1], n=4, **w), ([0, 1, 1, 0],)),
    "hidden table": (lambda **w: pt.design_table(labels=[0, 1], n=4, neighbours="add-remove", **w), ([0, 1],)),
    "groups": (lambda **w: pt.design_groups(n=(2, 2), **w), ([0, 1], [1, 0])),
    "fit": (lambda **w: pt.design_fit([0.5, 0.5], distance=0.3, n=4, **w), ([0, 1, 1, 0],)),
}


@pytest.mark.parametrize("privacy", TINY)
@pytest.mark.parametrize("name", DRAWN)
def test_the_widest_noise_is_drawn_or_refused_before_the_data(
    name: str, privacy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A draw that fails where the noise is large would be drawn again, and its law would end there."""
    make, data = DRAWN[name]
    try:
        design = make(privacy=privacy)
    except InvalidInput:
        return
    monkeypatch.setattr(bulk_draws, "_LARGEST_REACH", 0)
    for kind in (Gaussian, Tulap, TruncatedTulap, Uniform):
        monkeypatch.setattr(
            kind, "draw_doubled", lambda self, _: 2 * int(min(self.reach(90), 1e300)) + int(2 * self.offset)
        )
    assert design.run(*data).private


def main() -> None:
    """Walk designs of several sizes under several notions, and count."""
    warnings.simplefilter("error")
    made = numbers = failed = refused = 0
    notions = (*NOTIONS, "pure(0.05)", "pure(20)", "approx(0.3, 1e-9)", "tv(0.01)", "gdp(0.1)", "gdp(8)", "zcdp(0.001)")
    for name, make, walk in itertools.chain(designs(notions), designs(notions, n=7)):
        try:
            design = make()
        except InvalidInput:
            refused += 1
            continue
        made += 1
        try:
            with pytest.MonkeyPatch.context() as patch:
                numbers += walk(design, 9, patch) if walk in DRAWN_BY_RUNS else walk(design, 9)
        except Exception as error:
            failed += 1
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
    print(
        f"{made} designs under {len(notions)} notions ({refused} refused), {numbers:,} noisy numbers, {failed} failed"
    )


if __name__ == "__main__":
    main()
