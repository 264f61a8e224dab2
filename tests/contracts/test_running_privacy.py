"""Privacy of the code that runs: every data set of a small domain, every neighbour, every branch of every draw.

The laws compared are those of the public runs themselves (see :mod:`tests.contracts.walk`), at epsilons, widths and
levels other than 1. For each mechanism one test breaks it and sees the same check fail.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privatest as pt
from privatest.changepoint import change_plan
from privatest.changepoint import exponential_mechanism as direct_module
from privatest.changepoint.block_sums import SumsDetector, SumsModel, law_of
from privatest.changepoint.block_tests import BitsDetector, voter_of
from privatest.changepoint.change_point import FALSE_ALARM
from privatest.changepoint.cusum import SuffixAlarm
from privatest.changepoint.detector import Detector
from privatest.changepoint.exponential_mechanism import ExponentialDetector, draw_exponential
from privatest.decision import PrivateTest
from privatest.decision.construction import from_score
from privatest.engines.rows_per_person import Turns
from privatest.engines.sources import open_source
from privatest.errors import InvalidDocument
from privatest.fit import FitTest, design_fit
from privatest.fit.excess_law import Excess
from privatest.hypotheses import make_pair
from privatest.privacy import Laplace, Pure, Tulap
from privatest.privacy.notion import Neighbourhood
from privatest.scores import Score, clamped_score
from privatest.streams import Sequential, SequentialPlan
from privatest.streams.blocks import SumBlocks
from privatest.streams.monitor import Monitor
from privatest.streams.monitor_plan import BitBlocks, Cusum, Intervals, Rule
from privatest.streams.sequential_plan import Boundaries
from tests.contracts.exhaustive import owners
from tests.contracts.walk import Law, largest_loss, walk, walking
from tests.sequential import plans

SLACK = 1 + 1e-12
Records = tuple[Any, ...]
PAIR = make_pair("bernoulli(0.2)", "bernoulli(0.8)")


def replaced(domain: Records, n: int) -> Iterator[tuple[Records, Records]]:
    """All data sets of n records and all ways to replace one of them."""
    for data in itertools.product(domain, repeat=n):
        for i, other in itertools.product(range(n), domain):
            if other != data[i]:
                yield data, (*data[:i], other, *data[i + 1 :])


def laws_of(run: Callable[[Records, Any], Hashable], pairs: list[tuple[Records, Records]]) -> dict[Records, Law]:
    return {data: walk(lambda source, data=data: run(data, source)) for data in {one for pair in pairs for one in pair}}


def loss(run: Callable[[Records, Any], Hashable], domain: Records, n: int, view: Any = None) -> float:
    """The largest privacy loss of a run, over all data sets and neighbours."""
    return losses(run, domain, n, view)[0]


def losses(run: Callable[[Records, Any], Hashable], domain: Records, n: int, *views: Any) -> list[float]:
    """The same for what each view leaves of the answers."""
    pairs = list(replaced(domain, n))
    laws = laws_of(run, pairs)
    return [largest_loss(laws, pairs, view) for view in views]


def decision(answer: Any) -> Hashable:
    return answer[0]


# P or Q ---------------------------------------------------------------------------------------------------------------


def small_test(kind: str, epsilon: Fraction, units: int, n: int = 2, **words: Any) -> PrivateTest:
    """Three labels on a lattice of few steps."""
    pair = make_pair([0.2, 0.3, 0.5], [0.5, 0.3, 0.2])
    return from_score(pair, clamped_score(pair, (-1, 1), units), Pure(epsilon), n, kind, (-1, 1), **words)


def opened(records: Records) -> Any:
    """Opening draws nothing, so once for all branches; 1, 1.0 and True are three records, though equal."""
    return _opened(tuple((type(each), each) for each in records))


@cache
def _opened(records: tuple[tuple[type, Any], ...]) -> Any:
    return open_source(np.array([each for _, each in records], dtype=object))


def run_test(test: PrivateTest) -> Callable[[Records, Any], Hashable]:
    def run(data: Records, source: Any) -> Hashable:
        release = test.run(opened(data), rng=source)
        return release.decision, release.statistic

    return run


@pytest.mark.parametrize(("epsilon", "units", "n"), [("2", 3, 2), ("1/3", 1, 2), ("1", 5, 1)])
@pytest.mark.parametrize("kind", ["tight", "ncllr", "scllr"])
def test_a_test_of_p_against_q(kind: str, epsilon: str, units: int, n: int) -> None:
    test = small_test(kind, Fraction(epsilon), units, n)
    with walking(4):
        run = run_test(test)
        found, decided = losses(run, (0, 2, None), n, None, decision)
    assert found <= Fraction(epsilon) * SLACK
    assert decided <= Fraction(epsilon) * SLACK
    assert kind != "tight" or found > float(Fraction(epsilon)) * 0.999


def test_half_the_noise_is_seen() -> None:
    good = small_test("tight", Fraction(1), 2, 1)
    with walking(4):
        for noise in (Tulap(Fraction(2), 2), Laplace(Fraction(1))):
            bad = object.__new__(PrivateTest)
            bad.__dict__.update({**good.__dict__, "noise": noise})
            assert loss(run_test(bad), (0, 2), 1) > 1.9


def of_sets(test: PrivateTest, *, two_sided: bool) -> PrivateTest:
    """The same test with laws of sets and, perhaps, a second cutoff: all that a release is computed from."""
    law, other = test.score.null_law, test.score.alternative_law
    blend = (law + other) / 2
    score = replace(test.score, other_null_laws=(blend,), outer_null_laws=(law,), outer_alternative_laws=(other, blend))
    if not two_sided:
        return replace(test, score=score, worst_members=("a", "b"))
    score = replace(score, upper_laws=(blend,), outer_alternative_laws=())
    return replace(test, score=score, worst_members=("a", "b"), upper=test.cutoff + 1)


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize(("epsilon", "units", "n"), [("2", 3, 2), ("1/3", 1, 2), ("1", 2, 1)])
def test_a_test_of_sets_releases_no_more(epsilon: str, units: int, n: int, two_sided: bool) -> None:
    """The whole release, with both p-values and what the data fit; half the noise is seen."""
    test = of_sets(small_test("tight", Fraction(epsilon), units, n), two_sided=two_sided)

    def run(data: Records, source: Any) -> Hashable:
        release = test.run(opened(data), rng=source)
        return release.decision, release.statistic, release.pvalue, release.pvalue_alternative, release.fits

    with walking(4):
        assert 0.999 * float(Fraction(epsilon)) < loss(run, (0, 2, None), n) <= Fraction(epsilon) * SLACK
        bad = object.__new__(PrivateTest)
        bad.__dict__.update({**test.__dict__, "noise": Tulap(2 * Fraction(epsilon), units)})
        test = bad
        assert loss(run, (0, 2), n) > 1.9 * float(Fraction(epsilon))


@cache
def of_two_rows(mine: Records) -> Any:
    """One person's rows beside another's, in a frame with names; opening draws nothing, so once for all branches."""
    rows = [("me", x) for x in mine] + [("you", 2)]
    frame = pd.DataFrame({"who": [who for who, _ in rows], "x": np.array([x for _, x in rows], dtype=object)})
    return open_source(frame, column="x", unit="who", max_rows_per_unit=2)


@pytest.mark.parametrize(("kind", "neighbours"), [("tight", "replace"), ("ncllr", "replace"), ("tight", "add-remove")])
def test_a_person_of_two_rows(kind: str, neighbours: str) -> None:
    """All of one person's rows, beside another's, through a data frame with a column of names."""
    epsilon = Fraction(3, 2)
    test = small_test(kind, epsilon, 1, 3, around=Neighbourhood(neighbours, 2))

    def run(mine: Records, source: Any) -> Hashable:
        release = test.run(of_two_rows(mine), rng=source)
        # the shifted lattice of add-remove is too fine to tell all of its values apart
        return (release.decision, release.statistic) if neighbours == "replace" else (release.decision,)

    mine = [rows for size in (2, 3) for rows in itertools.product((0, 2), repeat=size)]
    if neighbours == "replace":
        pairs = list(itertools.permutations(mine, 2))
    else:
        pairs = [pair for rows in (*mine, (0,), (2,), (None,)) for pair in ((rows, ()), ((), rows))]
    with walking(3):
        laws = laws_of(run, pairs)
        for view in (None, decision) if neighbours == "replace" else (decision,):
            assert largest_loss(laws, pairs, view) <= epsilon * SLACK


# how much of it makes no sense ----------------------------------------------------------------------------------------


def run_odd(test: PrivateTest, odd_epsilon: Fraction) -> Callable[[Records, Any], Hashable]:
    def run(data: Records, source: Any) -> Hashable:
        release = test.run(opened(data), rng=source, odd_epsilon=odd_epsilon)
        return release.decision, release.statistic, release.odd_share

    return run


@pytest.mark.parametrize(("epsilon", "odd_epsilon", "n"), [("1", "1/2", 2), ("1/2", "2", 2)])
def test_a_test_with_the_share_of_odd_records(epsilon: str, odd_epsilon: str, n: int) -> None:
    """Both together cost the sum of both, and each of them its own part."""
    test, both = small_test("tight", Fraction(epsilon), 1, n), Fraction(epsilon) + Fraction(odd_epsilon)
    with walking(4):
        run = run_odd(test, Fraction(odd_epsilon))
        views = None, lambda answer: (answer[0], answer[2]), lambda answer: answer[2]
        whole, together, alone = losses(run, (0, 2, None), n, *views)
    assert whole <= both * SLACK
    assert 0.6 * both < together <= both * SLACK
    assert 0.9 * Fraction(odd_epsilon) < alone <= Fraction(odd_epsilon) * SLACK
    assert test.run(np.array([None] * n, dtype=object), odd_epsilon=Fraction(odd_epsilon)).epsilon == float(both)


# the best possible tests ----------------------------------------------------------------------------------------------


# is it still P --------------------------------------------------------------------------------------------------------


def small_fit(null: list[float], epsilon: Fraction, n: int) -> FitTest:
    """The test in its largest units, so that there are fewer outputs to walk."""
    test = design_fit(null, distance=0.2, epsilon=epsilon, n=n)
    excess = test.candidate.excess
    simple = excess.simplified(test.n) or Excess(excess.knots, np.ones_like(excess.weights), excess.symbols)
    return replace(
        test,
        excess=simple,
        noise=Tulap(epsilon, simple.width),
        cutoff=test.cutoff * simple.width / excess.width,
    )


def run_fit(test: FitTest) -> Callable[[Records, Any], Hashable]:
    def run(data: Records, source: Any) -> Hashable:
        release = test.run(opened(data), rng=source)
        return release.decision, release.statistic

    return run


@pytest.mark.parametrize("epsilon", [Fraction(3, 10), Fraction(2)])
@pytest.mark.parametrize(("null", "n"), [([0.5, 0.5], 3), ([0.9, 0.1], 2), ([1 / 3, 1 / 3, 1 / 3], 2)])
def test_a_test_of_fit(null: list[float], n: int, epsilon: Fraction) -> None:
    test = small_fit(null, epsilon, n)
    with walking(4):
        for found in losses(run_fit(test), (*range(len(null)), None), n, None, decision):
            assert found <= epsilon * SLACK


def test_a_fit_with_half_the_noise_is_seen() -> None:
    test = small_fit([0.25, 0.75], Fraction(1), 2)
    object.__setattr__(test, "noise", Tulap(Fraction(2), test.noise.width))
    with walking(4):
        assert loss(run_fit(test), (0, 1), 2) > 1.9


# when did it change ---------------------------------------------------------------------------------------------------


def few_steps(units: int = 1) -> Score:
    return clamped_score(PAIR, (-1, 1), units)


def direct(epsilon: Fraction, stride: int, level: Fraction, units: int = 1) -> ExponentialDetector:
    score = few_steps(units)
    return ExponentialDetector(score, epsilon, level, stride)


def blocks(epsilon: Fraction, block: int, false_alarm: float | None, units: int = 1) -> SumsDetector:
    score = few_steps(units)
    return SumsDetector.of(score, Tulap(epsilon, score.width), block, false_alarm)


def locate(detector: Detector) -> Callable[[Records, Any], Hashable]:
    def run(series: Records, source: Any) -> Hashable:
        drawn = detector.draw(opened(series), len(series), source)
        return detector.locate(drawn, len(series)), json.dumps(drawn)

    return run


DIRECT = [
    ("1", 1, "0", 1, 2),
    ("1", 1, "9/10", 1, 2),
    ("1/2", 2, "33/4", 16, 3),
    ("3", 1, "37/64", 1, 2),
    ("5", 1, "1/2", 3, 2),
    ("1/10", 1, "13/7", 5, 2),
]


@pytest.mark.parametrize(("epsilon", "stride", "level", "units", "n"), DIRECT)
def test_direct(epsilon: str, stride: int, level: str, units: int, n: int) -> None:
    detector = direct(Fraction(epsilon), stride, Fraction(level), units)
    with walking(1):
        assert loss(locate(detector), (0, 1), n) <= Fraction(epsilon) * SLACK


@pytest.mark.parametrize("factor", [2, 32])
def test_a_weight_in_other_units_than_the_level_is_seen(factor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one that forgets the level's denominator."""
    detector = direct(Fraction(1), 1, Fraction(1, 2))
    monkeypatch.setattr(direct_module, "draw_exponential", lambda q, rate, s: draw_exponential(q, rate * factor, s))
    with walking(1):
        assert loss(locate(detector), (0, 1), 2) > 1.2


def test_direct_spends_what_it_is_given() -> None:
    with walking(1):
        assert loss(locate(direct(Fraction(5), 1, Fraction(0))), (0, 1), 3) > 0.95 * 5


@pytest.mark.parametrize(
    ("epsilon", "block", "units", "n"),
    [("2", 2, 1, 3), ("2", 1, 2, 2), ("1/2", 3, 1, 4), ("3", 2, 1, 5)],
)
@pytest.mark.parametrize("false_alarm", [None, 0.2])
def test_blocks(epsilon: str, block: int, units: int, n: int, false_alarm: float | None) -> None:
    detector = blocks(Fraction(epsilon), block, false_alarm, units)
    with walking(3):
        assert loss(locate(detector), (0, 1), n) <= Fraction(epsilon) * SLACK


def test_blocks_with_half_the_noise_are_refused_and_seen() -> None:
    detector = blocks(Fraction(1), 2, None, 2)
    with pytest.raises(InvalidDocument):
        SumsDetector(detector.score, Tulap(Fraction(1), 1), 2)
    object.__setattr__(detector, "noise", Tulap(Fraction(2), 2))
    with walking(3):
        assert loss(locate(detector), (0, 1), 2) > 1.9


def paper(epsilon: Fraction, block: int, units: int, false_alarm: float | None) -> BitsDetector:
    test = from_score(PAIR, few_steps(units), Pure(epsilon), block, "tight", (-1, 1))
    found = BitsDetector(voter_of(test), min(test.alpha, 0.45), min(test.beta, 0.45))
    if false_alarm is None:
        return found
    alarm = SuffixAlarm.calibrated(*found.model.votes, false_alarm, None)
    return replace(found, threshold=alarm.threshold, false_alarm=alarm.false_alarm)


@pytest.mark.parametrize(("epsilon", "block", "units", "n"), [("3/2", 1, 1, 3), ("3", 2, 2, 4), ("1/2", 3, 3, 3)])
@pytest.mark.parametrize("false_alarm", [None, 0.3])
def test_the_papers_reduction(epsilon: str, block: int, units: int, n: int, false_alarm: float | None) -> None:
    detector = paper(Fraction(epsilon), block, units, false_alarm)
    with walking(3):
        assert loss(locate(detector), (0, 1), n, decision) <= Fraction(epsilon) * SLACK


@pytest.mark.parametrize("units", [1, 2, 3, 4])
def test_a_blocks_bit_is_the_tests_decision(units: int) -> None:
    """To the last outcome: the same draws decide the same, on the cutoff and next to it, whole or half."""
    epsilon, n = Fraction(2), 2
    for alpha in (None, 0.05, 0.3):
        test = from_score(PAIR, few_steps(units), Pure(epsilon), n, "tight", (-1, 1), alpha=alpha)
        if alpha is None:  # on a value of the noisy total
            test = replace(test, cutoff=test.cutoff.__floor__() + test.noise.offset)
        bits = voter_of(test).bits
        for data in itertools.product((0, 1), repeat=n):
            with walking(6):
                bit = walk(lambda source, data=data, bits=bits: int(bits(opened(data), n, source)[0]))
                said = walk(lambda source, data=data, test=test: test.run(opened(data), rng=source).decision)
            for vote, word in ((1, "null"), (-1, "alternative")):
                assert bit.of(int).get(vote, 0) == said.of(str).get(word, 0)


def small_plan(epsilon: Fraction, block: int, false_alarm: float = FALSE_ALARM) -> pt.results.ChangePlan:
    """What ``design_change`` makes where nothing is said of alarms, in blocks of very few records."""
    plan = pt.design_change("bernoulli(0.2)", "bernoulli(0.8)", epsilon=epsilon, false_alarm=false_alarm)
    detector = blocks(epsilon, block, false_alarm)
    return replace(plan, accuracy=1, detector=detector)


def run_plan(plan: pt.results.ChangePlan, **words: Any) -> Callable[[Records, Any], Hashable]:
    """The answer is all that the release says, in JSON: the rows lie in another order than that of their years."""

    @cache
    def table(data: Records) -> pd.DataFrame:
        return pd.DataFrame({"x": np.array(data, dtype=object), "year": [2009 - 3 * i for i in range(len(data))]})

    def run(data: Records, source: Any) -> Hashable:
        return json.dumps(
            plan.run(table(data), column="x", order="year", rng=source, **words).to_dict(), sort_keys=True
        )

    return run


@pytest.mark.parametrize("words", [{}, {"public_order": True}], ids=["order", "public order"])
@pytest.mark.parametrize(
    ("epsilon", "block", "n", "false_alarm"),
    [("2", 3, 3, 0.05), ("3", 2, 4, 0.05), ("3/2", 2, 4, 0.3), ("1", 3, 3, 0.4)],
)
def test_a_change_or_none(epsilon: str, block: int, n: int, false_alarm: float, words: dict[str, bool]) -> None:
    """The whole release, by the default that may say "no change", without and with the years of a public order."""
    budget, run = Fraction(epsilon), run_plan(small_plan(Fraction(epsilon), block, false_alarm), **words)
    with walking(3):
        assert 0.9 * budget < loss(run, (0, 1), n) <= budget * SLACK
        answers = [json.loads(text) for text in walk(lambda source: run((1,) * n, source)).mass]
    assert {answer["changed"] for answer in answers} == {True, False}
    named = {answer["order_value"] for answer in answers if answer["changed"]}
    assert named <= ({2009 - 3 * i for i in range(n)} if words else {None})
    assert {answer["order_value"] for answer in answers if not answer["changed"]} == {None}
    assert bool(words) == any("200" in json.dumps(answer["order_range"]) for answer in answers)


@pytest.mark.parametrize("words", [{}, {"public_order": True}], ids=["order", "public order"])
def test_a_change_or_none_with_half_the_noise_is_seen(words: dict[str, bool]) -> None:
    plan = small_plan(Fraction(1), 2, 0.3)
    object.__setattr__(plan.detector, "noise", Tulap(Fraction(2), 1))  # type: ignore[attr-defined]
    with walking(3):
        assert loss(run_plan(plan, **words), (0, 1), 2) > 1.9


def test_a_value_read_where_a_record_lies_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at the released index, but at the first record that is 1: the same check fails without end."""
    plan = small_plan(Fraction(1), 3, 0.4)

    def leaking(_self: Any, _design: Any, found: Any, _draw: Any, records: Any) -> Any:
        scores = records().series(plan.detector.score)  # type: ignore[attr-defined]
        first = int(np.argmax(scores == scores.min()))
        return found if found.index is None else replace(found, order_values=tuple(records().order_values([first])))

    monkeypatch.setattr(change_plan.PublicOrder, "added", leaking)
    with walking(6):
        assert loss(run_plan(plan, public_order=True), (0, 1), 3) > 1.9


# has it changed yet ---------------------------------------------------------------------------------------------------


def sums(epsilon: Fraction, block: int, units: int = 1) -> SumBlocks:
    score = few_steps(units)
    laws = SumsModel(law_of(score), Tulap(epsilon, score.width), block).laws
    votes = np.rint(16 * (laws.log_laws[0] - laws.log_laws[-1])).astype(np.int64)
    return SumBlocks(score, Tulap(epsilon, score.width), block, laws.first, laws.bin_width, votes)


def watched(made: SumBlocks | BitBlocks, rule: Rule, batch: int | None) -> Callable[[Records, Any], Hashable]:
    """Record by record (batch None), or in batches of so many; the answer is all that a monitor says."""
    watch = plans.watching(made, rule)

    def run(stream: Records, source: Any) -> Hashable:
        monitor = Monitor.of(watch, rng=source)
        if batch is None:
            for record in stream:
                monitor.update(record)
        else:
            for first in range(0, len(stream), batch):
                monitor.update_many(list(stream[first : first + batch]))
        alarm = monitor.alarm
        return (None if alarm is None else (alarm.index, alarm.seen)), monitor.trace

    return run


@pytest.mark.parametrize(
    ("epsilon", "block", "units", "n", "rule", "batch"),
    [
        ("2", 1, 1, 2, Cusum(8), None),
        ("2", 2, 1, 3, Cusum(8), 3),
        ("3", 1, 2, 2, Cusum(20), 2),
        ("1/2", 2, 3, 2, Cusum(4), 1),
        ("2", 1, 1, 2, Intervals(1), 2),
    ],
)
def test_a_monitor(epsilon: str, block: int, units: int, n: int, rule: Rule, batch: int | None) -> None:
    made = sums(Fraction(epsilon), block, units)
    with walking(4):
        assert 0.9 * Fraction(epsilon) < loss(watched(made, rule, batch), (0, 1), n) <= Fraction(epsilon) * SLACK


def test_a_monitor_with_half_the_noise_is_seen() -> None:
    made = sums(Fraction(1), 2, 2)
    object.__setattr__(made, "noise", Tulap(Fraction(2), 2))
    with walking(3):
        assert loss(watched(made, Cusum(8), None), (0, 1), 2) > 1.9


def test_a_monitor_of_an_unknown_alternative() -> None:
    epsilon = Fraction(3, 2)
    made = BitBlocks(voter_of(small_fit([0.9, 0.1], epsilon, 2)), -1, 1)
    with walking(3):
        for batch in (None, 3):
            found = loss(watched(made, Cusum(1), batch), (0, 1, None), 3, lambda answer: answer)
            assert 0.5 * epsilon < found <= epsilon * SLACK


# stop when it is clear ------------------------------------------------------------------------------------------------


def stopped(plan: SequentialPlan) -> Callable[[Records, Any], Hashable]:
    """All that a sequential test says: every noisy sum, the verdict, and when it came."""

    def run(stream: Records, source: Any) -> Hashable:
        made = Sequential.of(plan, rng=source)
        for record in stream:
            if not made.decided:
                made.update(record)
        return None if made.verdict is None else made.verdict.decision, made.seen, made.trace

    return run


SCHEDULES = [
    ("1", (2, 1), Boundaries(-150, 150)),
    ("1/2", (1, 2), Boundaries(-60, 90, 3, 0)),
    ("3", (1, 1), Boundaries(-900, 900, 4, 5)),
]


@pytest.mark.parametrize(("epsilon", "sizes", "rule"), SCHEDULES)
def test_a_sequential_test(epsilon: str, sizes: tuple[int, int], rule: Boundaries) -> None:
    """Of one record, of two with noise for two, and of two with noise for one."""
    budget = Fraction(epsilon)
    streams = list(itertools.product((0, 1), repeat=3))
    pairs = [(one, other) for one, other in itertools.permutations(streams, 2) if differing(one, other) <= 2]
    with walking(3):
        single, double = (laws_of(stopped(plans.small_plan(budget / rows, sizes, rule)), pairs) for rows in (1, 2))
        near = [(one, other) for one, other in pairs if differing(one, other) == 1]
        assert 0.9 * budget < largest_loss(single, near, None) <= budget * SLACK
        assert 0.9 * budget < largest_loss(double, pairs, None) <= budget * SLACK
        assert largest_loss(single, pairs, None) > 1.4 * budget


def differing(one: Records, other: Records) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))


# persons in streams ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 2])
def test_persons_in_a_monitor(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever three records belong to, and whatever else one person's could be; all records of a person, as a check."""
    budget, n = Fraction(2), 3
    made = sums(budget / rows, 1)
    watch = plans.watching(made, Cusum(8), rows=rows)

    def worst() -> float:
        found = 0.0
        for who in owners(n):

            def run(stream: Records, source: Any, who: tuple[int, ...] = who) -> Hashable:
                monitor = Monitor.of(watch, rng=source)
                for record, owner in zip(stream, who, strict=True):
                    monitor.update(record, unit=owner)
                return monitor.trace

            streams = itertools.product((0, 1), repeat=n)
            pairs = [
                (one, other)
                for one, other in itertools.permutations(streams, 2)
                if len({who[i] for i in range(n) if one[i] != other[i]}) == 1
            ]
            found = max(found, largest_loss(laws_of(run, pairs), pairs, None))
        return found

    with walking(2):
        assert 0.9 * budget < worst() <= budget * SLACK
        monkeypatch.setattr(Turns, "admit", lambda _, unit: unit)
        assert worst() > budget * 1.2
