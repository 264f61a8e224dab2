"""Exhaustive privacy: the exact law of each detector's answer on all binary series of up to six records and neighbours.

Series go through the package's own code up to the raw quantities (utilities, block totals); the laws of what is drawn
from these are closed forms in extended precision; what is made of the draws is the package's code again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from fractions import Fraction

import numpy as np
import pytest

import privatest as pt
from privatest.changepoint.block_tests import voter_of
from privatest.changepoint.blocks import BitDesign, BitDetector, BlockDesign, BlockDetector
from privatest.changepoint.detectors import BlockTuner, _SplitDetector, law_of
from privatest.changepoint.direct import DirectDesign, DirectDetector
from privatest.decision import PrivateTest
from privatest.engines import open_source
from privatest.engines.sources import block_totals
from privatest.hypotheses import make_pair
from privatest.privacy import Pure, Tulap, seeded_source
from privatest.scores import clamped_score
from tests.contracts.exhaustive import log_sf

SLACK = 1 + 1e-12
PAIR = make_pair("bernoulli(0.2)", "bernoulli(0.8)")
Series = tuple[int, ...]
Law = dict[Hashable, np.longdouble]


def largest_log_ratio(law: Callable[[Series], Law], n: int) -> float:
    """sup over binary series of n records, all neighbours and all answers."""
    laws = {series: law(series) for series in itertools.product((0, 1), repeat=n)}
    worst = 0.0
    for series, one in laws.items():
        assert float(sum(one.values())) == pytest.approx(1, abs=1e-9)
        for i in range(n):
            other = laws[(*series[:i], 1 - series[i], *series[i + 1 :])]
            assert one.keys() == other.keys()
            worst = max(worst, *(abs(float(np.log(one[k]) - np.log(other[k]))) for k in one))
    return worst


# direct ---------------------------------------------------------------------------------------------------------------


def direct(epsilon: Fraction, stride: int = 1, level: Fraction | None = None) -> DirectDetector:
    score = BlockTuner(PAIR, Pure(epsilon)).score((-1.0, 1.0))
    design = DirectDesign.of(law_of(score), epsilon, 0.1)
    return DirectDetector(
        score, DirectDesign(design.law, epsilon, design.level if level is None else level, design.decay, stride)
    )


def direct_law(detector: DirectDetector, factor: int = 1) -> Callable[[Series], Law]:
    design = detector.design

    def law(series: Series) -> Law:
        q = detector.utilities(open_source(np.array(series)), len(series))
        rate = design.rate / design.level.denominator * factor
        weights = np.exp(np.longdouble(rate.numerator) / rate.denominator * (q - q.max()).astype(np.longdouble))
        return {k * design.stride: w / weights.sum() for k, w in enumerate(weights)}

    return law


@pytest.mark.parametrize("n", range(1, 7))
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)])
@pytest.mark.parametrize("stride", [1, 2])
def test_direct_is_private(n: int, epsilon: Fraction, stride: int) -> None:
    for level in (None, Fraction(0), Fraction(9, 10)):
        assert largest_log_ratio(direct_law(direct(epsilon, stride, level)), n) <= epsilon * SLACK


def test_direct_spends_what_it_is_given() -> None:
    """Nearly all of epsilon is used: with level 0 the suffix sums fall steeply; the last candidate carries the loss."""
    assert largest_log_ratio(direct_law(direct(Fraction(5), 1, Fraction(0))), 6) > 0.95 * 5


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)])
def test_direct_with_twice_the_weight_is_not_private(epsilon: Fraction) -> None:
    detector = direct(epsilon, 1, Fraction(0))
    assert largest_log_ratio(direct_law(detector), 6) <= epsilon * SLACK
    assert largest_log_ratio(direct_law(detector, factor=2), 6) > epsilon * 1.2


# blocks ---------------------------------------------------------------------------------------------------------------


def blocks(epsilon: Fraction, block: int, false_alarm: float | None = None, width: int = 1) -> BlockDetector:
    score = clamped_score(PAIR, (-1, 1), 1)  # one step: every total and every noise can be enumerated
    design = BlockDesign(law_of(score), Tulap(epsilon, width), block)
    return BlockDetector(score, design, None if false_alarm is None else design.alarm(false_alarm, None))


def bin_law(detector: BlockDetector, total: int, noise: Tulap) -> np.ndarray:
    """Exact probabilities of the bins given a block's total; the noise is an integer, one value a bin."""
    laws = detector.design.laws
    assert noise.width == laws.bin_width == 1
    b = np.exp(-np.longdouble(noise.epsilon.numerator) / noise.epsilon.denominator)
    # bin 0: floor < first; last bin: floor >= first + count - 2; the others one value each
    inner = np.arange(laws.first, laws.first + laws.count - 2) - total
    low, high = laws.first - 1 - total, laws.first + laws.count - 2 - total
    assert low < 0 < high
    return np.concatenate([[b**-low / (1 + b)], (1 - b) / (1 + b) * b ** np.abs(inner), [b**high / (1 + b)]])


def block_law(detector: BlockDetector, noise: Tulap | None = None) -> Callable[[Series], Law]:
    design = detector.design
    known: dict[tuple[int, ...], Law] = {}
    answers: dict[int, tuple[np.ndarray, list[Hashable]]] = {}

    def decode(count: int) -> tuple[np.ndarray, list[Hashable]]:
        """The answer to every tuple of bins, as an index into a list of answers."""
        if count not in answers:
            grid = np.stack(np.meshgrid(*[np.arange(design.laws.count)] * count, indexing="ij"), axis=-1).reshape(
                -1, count
            )
            mass = np.cumsum(design._posterior(grid), axis=1)
            found = design._positions(count)[(mass < mass[:, -1:] / 2).sum(axis=1)]
            for row in np.random.default_rng(1).integers(0, len(grid), 40):  # the posterior here is that of locate
                assert design.locate(grid[row]) == found[row]
            if detector.alarm is not None:
                votes = np.cumsum(detector.alarm.steps[grid][:, ::-1], axis=1).max(axis=1)
                found = np.where(np.maximum(votes, 0) > detector.alarm.threshold, found, -1)
            values, places = np.unique(found, return_inverse=True)
            answers[count] = places, values.tolist()
        return answers[count]

    def law(series: Series) -> Law:
        n = len(series)
        totals = tuple(block_totals(detector.score, np.array(series), design.block, start=detector.start(n)))
        if totals not in known:
            p = np.ones(1, dtype=np.longdouble)
            for total in totals:
                p = np.multiply.outer(p, bin_law(detector, total, noise or design.noise)).ravel()
            places, values = decode(len(totals))
            sums = np.zeros(len(values), dtype=np.longdouble)
            np.add.at(sums, places, p)
            known[totals] = dict(zip(values, sums, strict=True))
        return known[totals]

    return law


CASES = [
    (6, 2, Fraction(2)),
    (6, 3, Fraction(1, 2)),
    (5, 2, Fraction(1)),
    (4, 2, Fraction(1, 2)),
    (4, 1, Fraction(9)),
    (6, 5, Fraction(1, 4)),
    (2, 1, Fraction(1)),
]


@pytest.mark.parametrize(("n", "block", "epsilon"), CASES)
@pytest.mark.parametrize("false_alarm", [None, 0.2])
def test_blocks_are_private(n: int, block: int, epsilon: Fraction, false_alarm: float | None) -> None:
    detector = blocks(epsilon, block, false_alarm)
    assert largest_log_ratio(block_law(detector), n) <= epsilon * SLACK


def test_blocks_with_half_the_noise_are_not_private() -> None:
    detector = blocks(Fraction(1), 3)
    assert largest_log_ratio(block_law(detector), 6) > 0.5
    assert largest_log_ratio(block_law(detector, noise=Tulap(Fraction(2), 1)), 6) > 1.2


def test_a_noise_too_narrow_for_the_score_is_refused() -> None:
    score = BlockTuner(make_pair([0.2, 0.3, 0.5], [0.5, 0.3, 0.2]), Pure(Fraction(1))).score((-2.0, 2.0))
    assert score.width == 2
    with pytest.raises(AssertionError):
        BlockDetector(score, BlockDesign(law_of(score), Tulap(Fraction(1), 1), 4))


# paper ----------------------------------------------------------------------------------------------------------------


def paper(epsilon: Fraction, block: int, false_alarm: float | None = None) -> tuple[BitDetector, PrivateTest]:
    test = pt.design("bernoulli(0.2)", "bernoulli(0.8)", epsilon=epsilon, n=block, clamp="paper")
    design = BitDesign(block, min(test.alpha, 0.45), min(test.beta, 0.45))
    alarm = None if false_alarm is None else design.alarm(false_alarm, None)
    return BitDetector(design, voter_of(test).bits, alarm), test


def paper_law(detector: BitDetector, test: PrivateTest) -> Callable[[Series], Law]:
    def law(series: Series) -> Law:
        totals = block_totals(test.score, np.array(series), test.n)
        # Pr[T > cutoff]: 2T > 2 cutoff, taken halfway between two values of 2T
        doubled = [
            2 * int(np.floor(test.cutoff - test.noise.offset)) + int(2 * test.noise.offset) + 1 - 2 * t for t in totals
        ]
        yes = [np.exp(log_sf(test.noise, np.array([d]))[0]) for d in doubled]
        no = [np.exp(log_sf(test.noise, np.array([-d]))[0]) for d in doubled]  # the noise is symmetric
        found: Law = {}
        for votes in itertools.product((1, -1), repeat=len(totals)):
            bits = np.array(votes, dtype=np.int64)
            p = np.prod([y if z > 0 else m for z, y, m in zip(votes, yes, no, strict=True)])
            quiet = detector.alarm is not None and not detector.alarm.fires(np.where(bits < 0, 0, 1))
            answer = None if quiet else detector.design.locate(bits)
            found[answer] = found.get(answer, np.longdouble(0)) + p
        return found

    return law


@pytest.mark.parametrize(("n", "block"), [(6, 1), (6, 2), (5, 2), (6, 3), (4, 4)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
@pytest.mark.parametrize("false_alarm", [None, 0.3])
def test_the_papers_reduction_is_private(n: int, block: int, epsilon: Fraction, false_alarm: float | None) -> None:
    detector, test = paper(epsilon, block, false_alarm)
    assert largest_log_ratio(paper_law(detector, test), n) <= epsilon * SLACK


# direct with "no change": half of epsilon for each question -----------------------------------------------------------


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(6)])
def test_the_split_of_epsilon_adds_up(epsilon: Fraction) -> None:
    detector = _SplitDetector(blocks(epsilon / 2, 2, 0.6), direct(epsilon / 2))
    asked, placed = block_law(detector.blocks), direct_law(detector.direct)

    def law(series: Series) -> Law:
        loud = sum(p for answer, p in asked(series).items() if answer != -1)
        return {None: asked(series)[-1], **{k: loud * p for k, p in placed(series).items()}}

    assert largest_log_ratio(law, 4) > 0.5 * epsilon
    assert largest_log_ratio(law, 4) <= epsilon * SLACK


# the laws above are those of the detectors that run -------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["direct", "blocks", "paper"])
def test_the_enumerated_law_is_the_law_of_the_answers(kind: str) -> None:
    series, runs = (1, 0, 0, 1, 1, 0), 6000
    if kind == "direct":
        detector = direct(Fraction(1))
        law = direct_law(detector)(series)
    elif kind == "blocks":
        detector = blocks(Fraction(2), 2, 0.2)
        law = block_law(detector)(series)
    else:
        detector, test = paper(Fraction(1), 2, 0.3)
        law = paper_law(detector, test)(series)
    source = seeded_source(np.random.default_rng(12))
    records = open_source(np.array(series))
    found = [detector.locate(detector.draw(records, 6, source), 6) for _ in range(runs)]
    found = [-1 if kind == "blocks" and k is None else k for k in found]
    assert set(found) <= set(law)
    for answer, p in law.items():
        share = float(p)
        assert abs(found.count(answer) / runs - share) <= 6.2 * np.sqrt(share * (1 - share) / runs) + 1e-9
