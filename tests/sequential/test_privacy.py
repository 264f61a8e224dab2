"""Exhaustive privacy of sequential tests: the exact law of all that is put out, on all binary streams of six records.

What is put out: after how many records there was a verdict, which one, and every vote on the way, so every stopping
pattern. Laws of the votes are closed forms in extended precision; the rule and the plan are the package's code.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from fractions import Fraction

import numpy as np
import pytest

from privatest.privacy import Tulap
from privatest.streams import Sequential, SequentialPlan
from privatest.streams.sequential_plan import Boundaries
from tests.changepoint.test_monitor_privacy import SLACK, Law, Stream, vote_laws
from tests.changepoint.test_persons import of_persons, uncut
from tests.contracts.exhaustive import largest_person_log_ratio
from tests.sequential.plans import small_plan

CASES = [
    (Fraction(1), (2, 1), Boundaries(-150, 150)),
    (Fraction(1, 2), (1, 2), Boundaries(-60, 90, 3, 0)),
    (Fraction(3), (3, 1), Boundaries(-400, 300)),
    (Fraction(2), (1, 1), Boundaries(-90, 90, 4, 5)),
]


def output_law(plan: SequentialPlan, noise: Tulap | None = None) -> Callable[[Stream], Law]:
    """The law of (votes, verdict, seen); with another noise than the plan's, where one is given."""
    laws = [vote_laws(blocks, noise or blocks.noise) for blocks in (plan.first, plan.later)]

    def law(stream: Stream) -> Law:
        found: Law = {}

        def go(progress: object, votes: tuple[int, ...], p: np.longdouble) -> None:
            start = plan.records(len(votes))
            end = plan.records(len(votes) + 1)
            if end > len(stream):
                found[votes, None, start] = found.get((votes, None, start), np.longdouble(0)) + p
                return
            for vote, q in laws[len(votes) > 0](stream[start:end]).items():
                then, out = plan.rule.feed_few(progress, [vote])  # type: ignore[arg-type]
                key: Hashable = (*votes, vote), plan.rule.for_alternative(then), end
                if out is not None:
                    found[key] = found.get(key, np.longdouble(0)) + p * q
                else:
                    go(then, (*votes, vote), p * q)

        go(plan.rule.begin, (), np.longdouble(1))
        return found

    return law


def coarse(plan: SequentialPlan, bins: int = 5) -> SequentialPlan:
    """The same with fewer different votes, so that their sequences can be listed."""
    for blocks in {id(b): b for b in (plan.first, plan.later)}.values():
        votes = blocks.table
        step = max((int(votes.max()) - int(votes.min())) // bins, 1)
        object.__setattr__(blocks, "table", votes // step * step)
        blocks.__dict__.pop("_list", None)
    return plan


def loss(law: Callable[[Stream], Law], n: int, rows: int) -> float:
    """The largest log-ratio over streams of which up to ``rows`` records differ."""
    laws = {stream: law(stream) for stream in itertools.product((0, 1), repeat=n)}
    worst = 0.0
    for stream, one in laws.items():
        assert float(sum(one.values())) == pytest.approx(1, abs=1e-9)
        for places in itertools.combinations(range(n), min(rows, n)):
            other = laws[tuple(1 - x if i in places else x for i, x in enumerate(stream))]
            assert one.keys() == other.keys()
            worst = max(worst, *(abs(float(np.log(one[k]) - np.log(other[k]))) for k in one))
    return worst


@pytest.mark.parametrize("n", [1, 3, 6])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(("epsilon", "sizes", "rule"), CASES)
def test_a_sequential_test_is_private(
    epsilon: Fraction, sizes: tuple[int, int], rule: Boundaries, rows: int, n: int
) -> None:
    plan = coarse(small_plan(epsilon, sizes, rule, rows))
    assert plan.epsilon == epsilon
    found = loss(output_law(plan), n, rows)
    assert found <= epsilon * SLACK
    if n == 6:
        assert found > 0.9 * epsilon


@pytest.mark.parametrize(("epsilon", "sizes", "rule"), CASES)
def test_half_the_noise_is_seen(epsilon: Fraction, sizes: tuple[int, int], rule: Boundaries) -> None:
    plan = coarse(small_plan(epsilon, sizes, rule))
    assert loss(output_law(plan, Tulap(2 * epsilon, 1)), 5, 1) > 1.2 * epsilon


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("case", [0, 1])
def test_sequential_tests_are_private_for_persons(case: int, rows: int) -> None:
    """Whoever the rows belong to, with the package's own cut to as many rows of a person as count."""
    epsilon, sizes, rule = CASES[case]
    law = output_law(coarse(small_plan(epsilon, sizes, rule, rows)))
    assert largest_person_log_ratio(of_persons(law, rows), 4) <= epsilon * SLACK
    assert largest_person_log_ratio(of_persons(law, rows, uncut), 4) > epsilon * 1.2


def test_persons_of_two_rows_need_noise_for_two() -> None:
    plan = coarse(small_plan(Fraction(1), (2, 1), CASES[0][2], 1))
    assert loss(output_law(plan), 5, 2) > 1.5


def test_a_rule_that_looks_at_the_records_is_seen() -> None:
    """Such as one that goes on where the last record is a 1, whatever was released."""
    epsilon, sizes, rule = CASES[0]
    plan = coarse(small_plan(epsilon, sizes, rule))
    honest = output_law(plan)

    def leaking(stream: Stream) -> Law:
        found: Law = {}
        for key, p in honest(stream).items():
            votes, verdict, seen = key  # type: ignore[misc]
            key = votes, verdict if stream[0] else None, seen
            found[key] = found.get(key, np.longdouble(0)) + p
        return found

    laws = [leaking((bit, 0, 0, 0)) for bit in (0, 1)]
    assert laws[0].keys() != laws[1].keys()


@pytest.mark.statistical
@pytest.mark.parametrize("case", [0, 3])
def test_the_enumerated_law_is_that_of_the_run(case: int) -> None:
    epsilon, sizes, rule = CASES[case]
    plan, stream, runs = coarse(small_plan(epsilon, sizes, rule)), (1, 0, 1, 1, 1, 0), 3000
    marginal: dict[Hashable, float] = {}
    for answer, p in output_law(plan)(stream).items():
        key = answer[1:]  # type: ignore[index]
        marginal[key] = marginal.get(key, 0.0) + float(p)
    rng = np.random.default_rng(5)
    found: list[Hashable] = []
    for i in range(runs):
        run = Sequential.of(plan, rng=rng)
        if i % 2:
            run.update(list(stream))
        else:
            for record in stream:
                if not run.decided:
                    run.update(record)
        said = None if run.verdict is None else run.verdict.decision == "alternative"
        found.append((said, plan.records(run._progress.blocks)))
    assert set(found) <= set(marginal)
    for answer, share in marginal.items():
        assert abs(found.count(answer) / runs - share) <= 6.2 * np.sqrt(share * (1 - share) / runs) + 1e-9
