"""Exhaustive privacy of the monitor: the exact law of its output on all binary streams of up to six records.

Streams go through the package's code up to the raw block totals; the laws of the releases are closed forms in extended
precision; what is made of the releases is the package's code again (votes and rules).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from fractions import Fraction

import numpy as np
import pytest

from privatest.changepoint.block_tests import voter_of
from privatest.changepoint.blocks import BlockDesign
from privatest.changepoint.detectors import law_of
from privatest.fit import design_fit
from privatest.hypotheses import make_pair
from privatest.privacy import Tulap
from privatest.scores import clamped_score
from privatest.streams.monitor import Monitor
from privatest.streams.stream import SumBlocks
from privatest.streams.watch import BitBlocks, Cusum, Intervals, Rule, Watch
from tests.contracts.exhaustive import log_sf

SLACK = 1 + 1e-12
Stream = tuple[int, ...]
Law = dict[Hashable, np.longdouble]


def sums(epsilon: Fraction, block: int, bits: bool) -> SumBlocks:
    score = clamped_score(make_pair("bernoulli(0.2)", "bernoulli(0.8)"), (-1, 1), 1)  # one step: all is enumerable
    laws = BlockDesign(law_of(score), Tulap(epsilon, 1), block).laws
    assert laws.bin_width == 1
    if bits:
        return SumBlocks(score, Tulap(epsilon, 1), block, 1, 1, np.array([1, -1]))
    votes = np.rint(16 * (laws.log_laws[0] - laws.log_laws[-1])).astype(np.int64)
    return SumBlocks(score, Tulap(epsilon, 1), block, laws.first, 1, votes)


def watch(blocks: SumBlocks | BitBlocks, rule: Rule) -> Watch:
    return Watch(blocks, rule, rule.kind, 0.1, 1, 1.0, 1.0, 1, None, "P", "Q")


def vote_laws(blocks: SumBlocks | BitBlocks, noise: Tulap) -> Callable[[Stream], dict[int, np.longdouble]]:
    """The exact law of a block's vote."""

    def law(records: Stream) -> dict[int, np.longdouble]:
        values = blocks.values_of(list(records))
        if isinstance(blocks, BitBlocks):
            counts = np.bincount(values, minlength=2)
            test = blocks.voter.test
            assert test.candidate.grains is None
            least = int(2 * (test.cutoff - test.candidate.excess.of(counts)) // 1)
            new = np.exp(log_sf(noise, np.array([least]))[0])
            return {blocks.new: new, blocks.old: 1 - new}
        total = int(values.sum())
        b = np.exp(-np.longdouble(noise.epsilon.numerator) / noise.epsilon.denominator)
        found: dict[int, np.longdouble] = {}
        last = blocks.first + len(blocks.table) - 2
        for place, vote in enumerate(blocks.table.tolist()):
            floor = blocks.first - 1 + place
            if place == 0:
                p = b ** (total - floor) / (1 + b) if floor <= total else 1 - b ** (floor - total + 1) / (1 + b)
            elif floor == last:
                p = b ** (floor - total) / (1 + b) if floor >= total else 1 - b ** (total - floor + 1) / (1 + b)
            else:
                p = (1 - b) / (1 + b) * b ** abs(floor - total)
            found[vote] = found.get(vote, np.longdouble(0)) + p
        return found

    return law


def output_law(made: Watch, noise: Tulap | None = None) -> Callable[[Stream], Law]:
    """The law of (index, seen) of the alarm, or None, after all records."""
    block, rule = made.block, made.rule
    votes = vote_laws(made.blocks, noise or _noise(made))

    def law(stream: Stream) -> Law:
        quiet = {rule.begin: np.longdouble(1)}
        found: Law = {}
        for first in range(0, len(stream) - block + 1, block):
            after: dict[Hashable, np.longdouble] = {}
            for progress, p in quiet.items():
                for vote, q in votes(stream[first : first + block]).items():
                    then, fires = rule.feed_few(progress, [vote])
                    if fires is not None:
                        key = then.start * block, first + block
                        found[key] = found.get(key, np.longdouble(0)) + p * q
                    else:
                        after[then] = after.get(then, np.longdouble(0)) + p * q
            quiet = after
        return {**found, None: sum(quiet.values())}

    return law


def _noise(made: Watch) -> Tulap:
    return made.blocks.noise if isinstance(made.blocks, SumBlocks) else made.blocks.voter.test.noise


def largest_log_ratio(law: Callable[[Stream], Law], n: int) -> float:
    laws = {stream: law(stream) for stream in itertools.product((0, 1), repeat=n)}
    worst = 0.0
    for stream, one in laws.items():
        assert float(sum(one.values())) == pytest.approx(1, abs=1e-9)
        for i in range(n):
            other = laws[(*stream[:i], 1 - stream[i], *stream[i + 1 :])]
            assert one.keys() == other.keys()
            worst = max(worst, *(abs(float(np.log(one[k]) - np.log(other[k]))) for k in one))
    return worst


CASES = [
    (Fraction(1), 2, Cusum(8)),
    (Fraction(1, 2), 1, Cusum(4)),
    (Fraction(3), 3, Cusum(20)),
    (Fraction(1), 1, Intervals(2)),
    (Fraction(2), 2, Intervals(1)),
    (Fraction(1, 10), 1, Intervals(3)),
]


@pytest.mark.parametrize(("epsilon", "block", "rule"), CASES)
@pytest.mark.parametrize("n", [1, 4, 5, 6])
def test_the_monitor_is_private(epsilon: Fraction, block: int, rule: Rule, n: int) -> None:
    law = output_law(watch(sums(epsilon, block, isinstance(rule, Intervals)), rule))
    assert largest_log_ratio(law, n) <= epsilon * SLACK


@pytest.mark.parametrize(("epsilon", "block", "rule"), CASES)
def test_with_twice_the_weight_it_is_not(epsilon: Fraction, block: int, rule: Rule) -> None:
    made = watch(sums(epsilon, block, isinstance(rule, Intervals)), rule)
    assert largest_log_ratio(output_law(made, Tulap(2 * epsilon, 1)), 6) > 1.2 * epsilon


@pytest.mark.parametrize("rule", [Cusum(1), Intervals(2)])
def test_the_monitor_of_an_unknown_alternative_is_private(rule: Rule) -> None:
    test = design_fit([0.5, 0.5], distance=0.4, epsilon=1, n=2, alpha=0.3)
    made = watch(BitBlocks(voter_of(test), -1, 1), rule)
    assert largest_log_ratio(output_law(made), 6) <= SLACK
    assert largest_log_ratio(output_law(made, Tulap(Fraction(2), test.noise.width)), 6) > 1.2


def test_each_release_is_private_on_its_own_and_so_are_all_of_them() -> None:
    """Blocks are independent and a record lies in one: the releases' ratio is that of one block's vote, bin by bin."""
    epsilon = Fraction(1)
    blocks = sums(epsilon, 2, bits=False)
    fine = SumBlocks(blocks.score, blocks.noise, 2, blocks.first, 1, np.arange(len(blocks.table)))
    law = vote_laws(fine, blocks.noise)
    for one, other in (((0, 0), (0, 1)), ((0, 1), (1, 1))):
        ratios = [abs(float(np.log(law(one)[bin_]) - np.log(law(other)[bin_]))) for bin_ in law(one)]
        assert max(ratios) <= epsilon * SLACK
        assert max(ratios) > 0.999


def test_noise_too_narrow_for_the_score_is_refused() -> None:
    blocks = sums(Fraction(1), 2, bits=False)
    document = blocks.to_dict()
    document["score"]["table"] = [[value * 3, count] for value, count in document["score"]["table"]]
    document["score"]["support"] = [3 * value for value in document["score"]["support"]]
    from privatest.errors import InvalidDocument
    from privatest.streams.watch import blocks_from_dict

    with pytest.raises(InvalidDocument, match="not be private"):
        blocks_from_dict(document)


@pytest.mark.statistical
@pytest.mark.parametrize(("epsilon", "block", "rule"), [CASES[0], CASES[3]])
def test_the_enumerated_law_is_that_of_the_monitor(epsilon: Fraction, block: int, rule: Rule) -> None:
    made, stream, runs = watch(sums(epsilon, block, isinstance(rule, Intervals)), rule), (1, 0, 1, 1, 1, 0), 4000
    law, rng = output_law(made)(stream), np.random.default_rng(5)
    found = []
    for _ in range(runs):
        alarm = Monitor.of(made, rng=rng).update_many(list(stream))
        found.append(None if alarm is None else (alarm.index, alarm.seen))
    assert set(found) <= set(law)
    for answer, p in law.items():
        share = float(p)
        assert abs(found.count(answer) / runs - share) <= 6.2 * np.sqrt(share * (1 - share) / runs) + 1e-9
