"""From a pair and an epsilon to a detector of each method, its settings chosen by computed accuracy."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from privatest.changepoint.bits import BitDesign, BitDetector, Bits, pair_bits
from privatest.changepoint.blocks import BlockDesign, BlockDetector
from privatest.changepoint.confidence import FailureCurve
from privatest.changepoint.direct import DirectDesign, DirectDetector
from privatest.changepoint.search import Clamp, Problem, law_of
from privatest.changepoint.suffix_alarm import SuffixAlarm
from privatest.engines import Records
from privatest.fit import FitTest
from privatest.hypothesis import PrivateTest
from privatest.hypothesis.build import from_score
from privatest.noise import Source, Tulap
from privatest.pairs import Pair
from privatest.power.family import make_family
from privatest.power.goal import make_goal
from privatest.power.sample_sizes import smallest_n
from privatest.scores import Score

__all__ = ["Design", "Detector", "auto_designs", "bit_design", "design", "paper_test"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# Simulations behind a stated accuracy, and more of them for small beta. More change it by a few percent.
BLOCK_RUNS, DIRECT_RUNS, MOST_RUNS = 8_000, 3_000, 40_000
# The paper's bar for the bits: each is right with probability 2/3.
PAPER_ERROR = 1 / 3
# A method that looks this much worse at first sight is not looked at again.
_HOPELESS = 1.5
_KEPT = 64


class Detector(Protocol):
    """What runs on data."""

    def locate(self, records: Any, n: int, source: Source) -> int | None:
        """The index, or None for "no change"; epsilon-DP."""

    def ends(self, n: int) -> range:
        """After how many of n records blocks are cut: equal values of an order must not lie on both sides."""


@dataclass(frozen=True, eq=False)
class Design:
    """A detector and what is known of it before any data are seen.

    Attributes:
        accuracy: None where no distance has a small enough failure probability.
        voters: whose votes the alarm counts; None without alarm.
        probe: a score that the records' type must fit.
        parts: all that looks at a record: the scores, or the test of the blocks.
        named: whether the two descriptions tell the question from every other.
    """

    method: str
    epsilon: Fraction
    curve: FailureCurve
    accuracy: int | None
    detector: Detector
    block: int
    clamp: tuple[float, float] | None
    null: str
    alternative: str
    alarm: SuffixAlarm | None = None
    voters: BlockDesign | BitDesign | None = None
    probe: Score | None = None
    parts: tuple[Score | PrivateTest | FitTest, ...] = ()
    named: bool = False

    def question(self) -> dict[str, Any]:
        """What the descriptions of P and Q leave open, ready for JSON: nothing where they are complete."""
        return {} if self.named else {"parts": [part.to_dict() for part in self.parts]}

    def check(self, records: Records) -> None:
        """Refuse records whose type does not fit, before anything is charged."""
        if self.probe is not None:
            records.check(self.probe)

    def missed(self, distances: Integers) -> Floats | None:
        """Bounds on Pr["no change"] for changes this far from the end; None where "no change" is no answer."""
        return None if self.alarm is None or self.voters is None else self.voters.missed(self.alarm, distances)


@dataclass(frozen=True, eq=False)
class _SplitDetector:
    """Half of epsilon asks the blocks whether there was a change, the other half where."""

    blocks: BlockDetector
    direct: DirectDetector

    def locate(self, records: Any, n: int, source: Source) -> int | None:
        if self.blocks.locate(records, n, source) is None:
            return None
        return self.direct.locate(records, n, source)

    def ends(self, n: int) -> range:
        return self.blocks.ends(n)


def auto_designs(pair: Pair, epsilon: Fraction, beta: float, false_alarm: float | None) -> list[Design]:
    """The designs of "direct" and "blocks" that are worth comparing.

    Where "no change" is an answer, blocks give it from the sums they release anyway; "direct" would split epsilon.
    """
    key = _key(pair, epsilon, beta, "auto", false_alarm)
    names = ["blocks"] if false_alarm is not None else _worth.get(key) if key else None
    problem = Problem(pair, epsilon)
    if names is None:
        rough = {"blocks": _best_blocks(problem, beta, false_alarm)[1], "direct": _best_direct(problem, beta)[1]}
        names = [name for name in rough if rough[name] <= _HOPELESS * min(rough.values())]
        if key:
            _worth[key] = names
    return [design(pair, epsilon, beta, name, false_alarm, problem) for name in names]


def design(
    pair: Pair,
    epsilon: Fraction,
    beta: float,
    method: str,
    false_alarm: float | None,
    problem: Problem | None = None,
) -> Design:
    """The detector of a method. Known ones are kept: they depend on public quantities only."""
    key = _key(pair, epsilon, beta, method, false_alarm)
    if key and key in _designs:
        return _designs[key]
    make = {"blocks": _blocks, "direct": _direct, "paper": _paper}[method]
    found = make(problem or Problem(pair, epsilon), beta, false_alarm)
    if key:
        while len(_designs) >= _KEPT:
            _designs.pop(next(iter(_designs)))
        _designs[key] = found
    return found


def _key(pair: Pair, *settings: Hashable) -> tuple[Hashable, ...] | None:
    """What a design depends on; None where the pair has no name to be known by."""
    names = pair.null.spec, pair.alternative.spec
    return None if None in names else (*names, *settings)


_designs: dict[tuple[Hashable, ...], Design] = {}
_worth: dict[tuple[Hashable, ...], list[str]] = {}


def _blocks(problem: Problem, beta: float, false_alarm: float | None) -> Design:
    clamp, _, block = _best_blocks(problem, beta, false_alarm)
    score = problem.score(clamp)
    found = BlockDesign(law_of(score), Tulap(problem.epsilon, score.width), block)
    curve = found.failures(beta, _runs(BLOCK_RUNS, beta))
    alarm = None if false_alarm is None else found.alarm(false_alarm, None)
    missed = None if alarm is None else found.missed(alarm, curve.distances)
    return Design(
        "blocks", problem.epsilon, curve, curve.accuracy(beta, missed), BlockDetector(score, found, alarm), block,
        score.bounds(), *_names(problem), alarm, found, score, (score,), _named(problem),
    )  # fmt: skip


def _direct(problem: Problem, beta: float, false_alarm: float | None) -> Design:
    whole, alarm, voters = problem.epsilon, None, None
    if false_alarm is not None:
        problem = problem.at(whole / 2)
    clamp = _best_direct(problem, beta)[0]
    score = problem.score(clamp)
    found = DirectDesign.of(law_of(score), problem.epsilon, beta)
    curve, missed = found.failures(beta, _runs(DIRECT_RUNS, beta)), None
    detector: Detector = DirectDetector(score, found)
    parts: tuple[Score, ...] = (score,)
    if false_alarm is not None:
        half = design(problem.pair, problem.epsilon, beta, "blocks", false_alarm, problem)
        assert isinstance(half.detector, BlockDetector)
        alarm, voters, parts = half.alarm, half.detector.design, (score, half.detector.score)
        assert alarm is not None
        missed = voters.missed(alarm, curve.distances)
        detector = _SplitDetector(half.detector, DirectDetector(score, found))
    return Design(
        "direct", whole, curve, curve.accuracy(beta, missed), detector, found.stride,
        score.bounds(), *_names(problem), alarm, voters, score, parts, _named(problem),
    )  # fmt: skip


def paper_test(problem: Problem) -> PrivateTest:
    """The test of the paper's blocks: the smallest block at which both errors are at most 1/3."""
    goal = make_goal(None, PAPER_ERROR, PAPER_ERROR)
    pair = problem.pair
    family = make_family(pair.null, pair.alternative, problem.epsilon, "tight", "paper", None, goal)
    size = smallest_n(family)
    # The threshold of the largest advantage, if both errors are small enough there; else the one made for alpha.
    test = from_score(pair, family.score_for(size), problem.epsilon, size, "tight", family.clamp_for(size))
    if max(test.alpha, test.beta) > PAPER_ERROR:
        test = family.test(size)
    return test


def _paper(problem: Problem, beta: float, false_alarm: float | None) -> Design:
    test = paper_test(problem)
    found = BitDesign(test.n, test.alpha, test.beta)
    bits, names = pair_bits(test), _names(problem)
    made = bit_design("paper", found, problem.epsilon, bits, beta, false_alarm, test.clamp, names, test.score)
    return replace(made, parts=(test,), named=_named(problem))


def bit_design(
    method: str,
    found: BitDesign,
    epsilon: Fraction,
    bits: Bits,
    beta: float,
    false_alarm: float | None,
    clamp: tuple[float, float] | None,
    names: tuple[str, str],
    probe: Score,
) -> Design:
    """A detector from blocks' bits, with its alarm and its accuracy."""
    curve = found.failures()
    alarm = None if false_alarm is None else found.alarm(false_alarm, None)
    missed = None if alarm is None else found.missed(alarm, curve.distances)
    accuracy = curve.accuracy(beta, missed)
    detector = BitDetector(found, epsilon, bits, alarm)
    return Design(method, epsilon, curve, accuracy, detector, found.block, clamp, *names, alarm, found, probe)


def _runs(fewest: int, beta: float) -> int:
    return min(max(fewest, math.ceil(20 / beta)), MOST_RUNS)


def _names(problem: Problem) -> tuple[str, str]:
    return problem.pair.null.describe(), problem.pair.alternative.describe()


def _named(problem: Problem) -> bool:
    return problem.pair.null.named and problem.pair.alternative.named


def _best_blocks(problem: Problem, beta: float, false_alarm: float | None) -> tuple[Clamp, float, int]:
    """Clamp, about the accuracy, and block length."""
    return problem.once(("blocks", beta, false_alarm), lambda: _search_blocks(problem, beta, false_alarm))


def _search_blocks(problem: Problem, beta: float, false_alarm: float | None) -> tuple[Clamp, float, int]:
    clamps = dict.fromkeys((*problem.clamps[:2], problem.paper))
    tried = {(clamp, max(round(problem.natural_block(clamp)), 1)): 0.0 for clamp in clamps}

    def rough(clamp: Clamp, block: int) -> float:
        law = problem.rough_law(clamp)
        found = BlockDesign(law, Tulap(problem.epsilon, law.width), block)
        curve, missed = found.rough(beta), None
        if false_alarm is not None:
            missed = found.missed(found.alarm(false_alarm, None), curve.distances)
        return curve.quantile(beta, missed)

    for key in tried:
        tried[key] = rough(*key)
    clamp, block = min(tried, key=lambda key: tried[key])
    # A change is found by whole blocks, so that smaller ones pay when "no change" is an answer.
    for factor in (0.7, 1.4) if false_alarm is None else (0.25, 0.35, 0.5, 0.7, 1.4):
        key = clamp, max(round(block * factor), 1)
        if key not in tried:
            tried[key] = rough(*key)
    clamp, block = min(tried, key=lambda key: tried[key])
    return clamp, tried[clamp, block], block


def _best_direct(problem: Problem, beta: float) -> tuple[Clamp, float]:
    """Clamp, and about the accuracy."""
    return problem.once(("direct", beta), lambda: _search_direct(problem, beta))


def _search_direct(problem: Problem, beta: float) -> tuple[Clamp, float]:
    designs = {
        clamp: DirectDesign.of(problem.rough_law(clamp), problem.epsilon, beta)
        for clamp in dict.fromkeys((*problem.clamps[:8], problem.paper))
        if math.isfinite(problem.natural_block(clamp))
    }
    fastest = sorted((clamp for clamp in designs if designs[clamp].decay > 0), key=lambda c: -designs[c].decay)[:2]
    tried = {clamp: designs[clamp].rough(beta).quantile(beta) for clamp in fastest}
    clamp = min(tried, key=lambda clamp: tried[clamp]) if tried else problem.paper
    return clamp, tried.get(clamp, math.inf)
