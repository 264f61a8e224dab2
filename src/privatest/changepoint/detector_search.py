r"""The search for the best detector of each method by computed accuracy, for a pair or for P and a distance.

The law of the ratio alone gives clamps and block lengths to try. A block of B records distinguishes P from Q if
the means of the noisy totals are about three standard deviations apart:

.. math:: (B g)^2 = D^2 (B v + \sigma_N^2), \qquad D = 3

where g and v are the gap and the variance of one clamped ratio and :math:`\sigma_N^2` is the variance of the noise. The
clamps with the smallest B are compared by exact laws and simulations.

For an unknown alternative the blocks are tested for goodness of fit (the paper's last reduction).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from privatest.changepoint.block_sums import SumsDetector, SumsModel, block_votes, law_of
from privatest.changepoint.block_tests import MOST_ERROR, BitsDetector, Voter, voter_of
from privatest.changepoint.cusum import SuffixAlarm
from privatest.changepoint.detector import Detector, FailureCurve
from privatest.changepoint.exponential_mechanism import ExponentialDetector, ExponentialModel
from privatest.changepoint.several_changes import SeveralDetector, Switches
from privatest.decision import PrivateTest
from privatest.decision.clamp_tuning import Profile, Tuner, profile_of
from privatest.decision.problem import Goal, Method, Problem
from privatest.decision.worst_case import envelope_score, sides_of
from privatest.errors import Infeasible, InvalidInput, NothingToTest, shown
from privatest.fit import FitTest, design_fit
from privatest.hypotheses import Pair, as_distribution
from privatest.hypotheses.parse import Hypotheses
from privatest.laws.block_laws import BlockLaws, ScoreLaw
from privatest.numbers import Floats, root
from privatest.privacy import Noise, Notion, canonical_noise
from privatest.privacy.canonical_noise import loss_range
from privatest.privacy.notion import budget_word, notion_words
from privatest.progress_events import each
from privatest.scores import Score, clamped_score
from privatest.theory.decomposition import paper_clamp

Clamp = tuple[float, float]
Found = TypeVar("Found")
DEFLECTION = 3.0
# Ends of clamps to try, in units of the ratio's typical size.
_GRID = (0.02, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 9.0)

# Rounding a record's ratio to 1/8 of its standard deviation adds 1/768 to its variance. A coarser lattice will do
# where a whole block's rounding adds less than 1/768 to the noise's variance.
_STEPS_PER_DEVIATION = 8
_HIDDEN = 768
_FEWEST_UNITS, _MOST_UNITS = 8, 4096
# With this number of steps or fewer, some step lies within 1/32 of any place.
_MOST_STEPS_TO_ZERO = 16


@dataclass(frozen=True, eq=False)
class BlockTuner:
    """Finds clamps, scores and lengths of blocks that distinguish P from Q under a notion of privacy.

    For sets of distributions the pair is that of the two members that are the hardest to tell apart, and the laws of a
    score are the worst of the sets.
    """

    pair: Pair
    notion: Notion
    question: Hypotheses | None = None
    _searches: dict[Hashable, object] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, hypotheses: Pair | Hypotheses, notion: Notion) -> BlockTuner:
        """Return the tuner for a pair, or for sets of distributions."""
        if isinstance(hypotheses, Pair):
            return cls(hypotheses, notion)
        if sides_of(hypotheses).above:
            raise NothingToTest(
                f"alternative {hypotheses.alternative.describe()} lies on both sides of the null "
                f"{hypotheses.null.describe()}. Detectors look at one side: make a plan for each "
                "side, with a request of its own."
            )
        return cls(hypotheses.pair, notion, hypotheses)

    @property
    def hypotheses(self) -> Pair | Hypotheses:
        """Return the pair, or the hypotheses if at least one of them is a set."""
        return self.question or self.pair

    def once(self, key: Hashable, search: Callable[[], Found]) -> Found:
        """Return the result of a search, from a cache after the first call with this key."""
        if key not in self._searches:
            self._searches[key] = search()
        return self._searches[key]  # type: ignore[return-value]

    @cached_property
    def profile(self) -> Profile:
        """The law of the unclamped ratio."""
        profile = profile_of(self.pair)
        return profile if self.question is None else replace(profile, parts=self.question.parts)

    @cached_property
    def paper(self) -> Clamp:
        """The clamp of the decomposition; if it is very narrow, one that keeps about the sign of the ratio."""
        a, b = (float(end) for end in paper_clamp(self.pair, self.notion.equivalent))
        least = _GRID[0] * self.profile.typical
        return (a, b) if b - a > least else (-least / 2, least / 2)

    @cached_property
    def _spread(self) -> float:
        """The variance of the notion's noise for a width of 1."""
        return self._noise.variance / (1 << 20)

    @cached_property
    def _noise(self) -> Noise:
        return canonical_noise(self.notion, 1 << 10)

    @cached_property
    def clamps(self) -> tuple[Clamp, ...]:
        """Clamps in order of their natural block length; on two-point domains all are the same."""
        least, most = float(self.profile.ratios[0]), float(self.profile.ratios[-1])
        if len(np.unique(self.profile.ratios)) <= 2:
            return (self.paper,)
        size = self.profile.typical
        lows = sorted({round(max(-g * size, least), 12) for g in _GRID if max(-g * size, least) < 0})
        highs = sorted({round(min(g * size, most), 12) for g in _GRID if min(g * size, most) > 0})
        blocks = {(a, b): self.natural_block((a, b)) for a in lows for b in highs}
        blocks[self.paper] = self.natural_block(self.paper)
        ranked, seen = [], set()
        for clamp in sorted(blocks, key=lambda clamp: blocks[clamp]):
            if (key := f"{blocks[clamp]:.6g}") not in seen:  # clamps that scale the same score alike are one
                seen.add(key)
                ranked.append(clamp)
        return tuple(ranked)

    def natural_block(self, clamp: Clamp) -> float:
        """Return the B of the module's formula; infinite if the clamped ratio does not distinguish P from Q."""
        ratios = np.clip(self.profile.ratios, *clamp)
        low, high = float(ratios[0]), float(ratios[-1])
        gap, null, alternative = self.profile.moments((low, high))
        if not high > low or gap <= 1e-12 * (high - low):
            return math.inf
        return _deflected(gap, (null + alternative) / 2, self._spread * (high - low) ** 2)

    def units(self, clamp: Clamp) -> int:
        """Return the number of lattice steps of a score with this clamp."""
        ratios = np.clip(self.profile.ratios, *clamp)
        width = float(ratios[-1] - ratios[0])
        if len(np.unique(ratios)) == 2:
            return self._noise.grain * _steps_to_zero(float(ratios[0]), float(ratios[-1]))
        _, null, alternative = self.profile.moments((float(ratios[0]), float(ratios[-1])))
        deviation = math.sqrt((null + alternative) / 2)
        wanted = math.ceil(_STEPS_PER_DEVIATION * width / deviation) if deviation > 0 else _FEWEST_UNITS
        hidden = math.ceil(math.sqrt(_HIDDEN * min(self.natural_block(clamp), 1e12) / 12 / self._spread))
        return 1 << (min(max(min(wanted, hidden), _FEWEST_UNITS), _MOST_UNITS) - 1).bit_length()

    def rough_law(self, clamp: Clamp) -> ScoreLaw:
        """Return an approximation of the law of :meth:`score`, without its cells, to compare clamps."""
        units = self.units(clamp)
        ratios = np.clip(self.profile.ratios, *clamp)
        low, high = float(ratios[0]), float(ratios[-1])
        steps = np.rint((ratios - low) * (units / (high - low))).astype(np.int64)
        support, place = np.unique(steps, return_inverse=True)
        p: Floats = np.bincount(place, weights=self.profile.p, minlength=len(support)).astype(np.float64)
        q: Floats = np.bincount(place, weights=self.profile.q, minlength=len(support)).astype(np.float64)
        if self.profile.parts is not None:
            p, q = self.profile.parts[0].worst(p, "low"), self.profile.parts[1].worst(q, "high")
        return _coarsest(support, p, q, units, self._noise.grain)

    def score(self, clamp: Clamp) -> Score:
        """Return the score with this clamp, on the coarsest lattice that holds its values."""
        score = clamped_score(self.pair, clamp, self.units(clamp))
        factor = _common(math.gcd(*(int(s) - score.low for s in np.unique(score.table))), self._noise.grain)
        if factor > 1:
            origin = score.origin + score.step * score.low
            table, support = (score.table - score.low) // factor, (score.support - score.low) // factor
            score = replace(score, table=table, support=support, origin=origin, step=score.step * factor)
        return score if self.question is None else envelope_score(self.question, score)


def _steps_to_zero(low: float, high: float) -> int:
    """Return the smallest number of equal steps from low to high with a step near 0, the score of odd records."""
    share = min(max(-low / (high - low), 0.0), 1.0)
    return next(u for u in range(1, _MOST_STEPS_TO_ZERO + 1) if abs(round(share * u) / u - share) <= 1 / 32)


def _common(factor: int, grain: int) -> int:
    """Return the factor by which a lattice may be coarsened if a width of ``grain`` steps must be kept."""
    return factor // math.gcd(factor, grain)


def _coarsest(support: npt.NDArray[np.int64], p: Floats, q: Floats, width: int, grain: int) -> ScoreLaw:
    factor = _common(math.gcd(width, *(int(s) for s in support)), grain)
    return ScoreLaw(support // factor, p, q, width // factor)


def _deflected(gap: float, variance: float, noise: float) -> float:
    """Return the positive root B of (gap B)^2 = D^2 (variance B + noise)."""
    d, g = DEFLECTION**2, gap**2
    return (d * variance + math.sqrt(d * d * variance * variance + 4 * g * d * noise)) / (2 * g)


# The numbers of simulations behind a stated accuracy, and the most for small beta. More change it by a few percent.
SUMS_RUNS, EXPONENTIAL_RUNS, MOST_RUNS = 8_000, 3_000, 40_000
# A method whose approximate accuracy is this many times the best one is not computed exactly.
_HOPELESS = 1.5
_KEPT = 64


@dataclass(frozen=True, eq=False)
class DetectorChoice:
    """A detector of one method and its accuracy.

    Attributes:
        method: the name of the method.
        detector: the detector.
        curve: bounds on the probability of each error of its index.
        accuracy: None if no distance has a small enough failure probability.
        names: short descriptions of the old and the new regime.
        named: whether the two descriptions determine the hypotheses.
    """

    method: str
    detector: Detector
    curve: FailureCurve
    accuracy: int | None
    names: tuple[str, str]
    named: bool = False

    @classmethod
    def of(
        cls, method: str, detector: Detector, curve: FailureCurve, beta: float, names: tuple[str, str], *, named: bool
    ) -> DetectorChoice:
        """Return the choice with the accuracy that follows from the curve and the detector's missed changes."""
        accuracy = curve.accuracy(beta, detector.missed(curve.distances))
        return cls(method, detector, curve, accuracy, names, named)

    @property
    def size(self) -> float:
        """The accuracy, or infinity if there is none, to compare choices."""
        return math.inf if self.accuracy is None else self.accuracy


def auto_choices(
    hypotheses: Pair | Hypotheses, notion: Notion, beta: float, false_alarm: float | None
) -> list[DetectorChoice]:
    """Return the choices of "direct" and "blocks" to compare.

    If "no change" is a possible answer, that is "blocks" alone, whose sums tell it. For sets they are the methods whose
    accuracy holds for every member.
    """
    tuner = BlockTuner.of(hypotheses, notion)
    if isinstance(hypotheses, Hypotheses):
        certain = ["paper"] if false_alarm is not None else ["direct", "paper"]
        return [best_choice(hypotheses, notion, beta, name, false_alarm, tuner) for name in certain]
    names = ["blocks"]
    if false_alarm is None:
        rough = {"blocks": _best_sums(tuner, beta, false_alarm)[1], "direct": _best_exponential(tuner, beta)[1]}
        names = [name for name in rough if rough[name] <= _HOPELESS * min(rough.values())]
    return [best_choice(hypotheses, notion, beta, name, false_alarm, tuner) for name in names]


def best_choice(
    hypotheses: Pair | Hypotheses,
    notion: Notion,
    beta: float,
    method: str,
    false_alarm: float | None,
    tuner: BlockTuner | None = None,
    block: int | None = None,
) -> DetectorChoice:
    """Return the best detector of a method. The last ones are cached: they depend on public quantities alone."""
    key = _key(hypotheses, notion, beta, method, false_alarm, block)
    if key and key in _choices:
        return _choices[key]
    if method == "direct" and false_alarm is not None:
        raise InvalidInput(
            "method='direct' always names an index. Use method='blocks', whose sums also tell whether there was a "
            "change, or say assume_change=True."
        )
    if isinstance(hypotheses, Hypotheses) and method == "blocks":
        raise InvalidInput(
            f"method={shown(method)} weighs sums of blocks by one P and one Q, so what it promises does not hold for "
            "all members of a set. Use method='paper', or leave method out."
        )
    tuner = tuner or BlockTuner.of(hypotheses, notion)
    if method == "direct":
        choice = _exponential_choice(tuner, beta)
    elif method == "paper":
        voter = voter_of(paper_test(tuner, block))
        choice = replace(voted_choice("paper", voter, beta, false_alarm, _names(tuner)), named=_named(tuner))
    else:
        choice = _sums_choice(tuner, beta, false_alarm)
    if key:
        while len(_choices) >= _KEPT:
            _choices.pop(next(iter(_choices)))
        _choices[key] = choice
    return choice


def _key(hypotheses: Pair | Hypotheses, *settings: Hashable) -> tuple[Hashable, ...] | None:
    """Return the key of a choice in the cache; None if P or Q has no name."""
    names = hypotheses.null.spec, hypotheses.alternative.spec
    return None if None in names else (*names, *settings)


_choices: dict[tuple[Hashable, ...], DetectorChoice] = {}


def _sums_choice(tuner: BlockTuner, beta: float, false_alarm: float | None) -> DetectorChoice:
    clamp, _, block = _best_sums(tuner, beta, false_alarm)
    score = tuner.score(clamp)
    detector = SumsDetector.of(score, canonical_noise(tuner.notion, score.width), block, false_alarm)
    curve = detector.model.failures(beta, _runs(SUMS_RUNS, beta))
    return DetectorChoice.of("blocks", detector, curve, beta, _names(tuner), named=_named(tuner))


def _exponential_choice(tuner: BlockTuner, beta: float) -> DetectorChoice:
    score = tuner.score(_best_exponential(tuner, beta)[0])
    model = ExponentialModel.of(law_of(score), loss_range(tuner.notion), beta)
    detector = ExponentialDetector(score, model.epsilon, model.level, model.stride)
    curve = model.failures(beta, _runs(EXPONENTIAL_RUNS, beta))
    return DetectorChoice.of("direct", detector, curve, beta, _names(tuner), named=_named(tuner))


def paper_test(tuner: BlockTuner, block: int | None = None) -> PrivateTest:
    """Return the test of the paper's blocks, on ``block`` records or on the fewest records with advantage 2/3.

    Guarantees: both errors are below 1/2, so that the sums of the bits drift in the right direction.
    """
    problem = Problem.of(tuner.hypotheses.null, tuner.hypotheses.alternative, privacy=tuner.notion)
    tests = Tuner.of(problem, Method(), Goal.of())
    n = tests.sample_size() if block is None else block
    test = tests.test(n)
    if max(test.alpha, test.beta) < MOST_ERROR:
        return test
    # At the largest advantage of a short block one error may be above 1/2. Then the two are made about equal.
    method = Method(clamp=tests.clamp_for(n))

    def at(level: float) -> PrivateTest:
        return Tuner.of(problem, method, Goal.of(alpha=level, beta=MOST_ERROR)).test(n)

    levels = root(lambda level: (one := at(level)).alpha >= one.beta, 0.0, MOST_ERROR, absolute=MOST_ERROR / 2**20)
    test = min(
        (test, *(at(level) for level in levels if 0 < level < MOST_ERROR)), key=lambda one: max(one.alpha, one.beta)
    )
    if max(test.alpha, test.beta) < MOST_ERROR:
        return test
    raise Infeasible(
        f"block={n} is too short at {notion_words(tuner.notion)}: its test says the wrong thing with probability "
        f"{max(test.alpha, test.beta):.3g}, and must do so with probability below 1/2. The paper's block has "
        f"{tests.sample_size()} records."
    )


def paper_of(method: str | None, distance: float | None, **setting: int | str) -> str:
    """Return "paper", the method to which a given setting belongs; raises InvalidInput beside another method."""
    ((name, value),) = setting.items()
    if method not in (None, "auto", "paper"):
        raise InvalidInput(f"{name}={value} belongs to method='paper', not to method={method!r}. Leave one out.")
    if name == "block" and distance is not None:
        raise InvalidInput(
            f"block={value} needs the alternative Q. With distance= the blocks' test is one of goodness of fit: give "
            f"it as test=privatest.design_fit(..., n={value})."
        )
    return "paper"


def voted_choice(
    method: str, voter: Voter, beta: float, false_alarm: float | None, names: tuple[str, str]
) -> DetectorChoice:
    """Return the detector from the votes of a test on blocks, with its alarm and its accuracy."""
    detector = BitsDetector.of(voter, false_alarm)
    return DetectorChoice.of(method, detector, detector.model.failures(), beta, names, named=False)


def _runs(fewest: int, beta: float) -> int:
    return min(max(fewest, math.ceil(20 / beta)), MOST_RUNS)


def _names(tuner: BlockTuner) -> tuple[str, str]:
    return tuner.hypotheses.null.describe(), tuner.hypotheses.alternative.describe()


def _named(tuner: BlockTuner) -> bool:
    return tuner.hypotheses.null.named and tuner.hypotheses.alternative.named


def _best_sums(tuner: BlockTuner, beta: float, false_alarm: float | None) -> tuple[Clamp, float, int]:
    """Return the clamp, the approximate accuracy and the length of a block for noisy sums."""
    return tuner.once(("blocks", beta, false_alarm), lambda: _search_sums(tuner, beta, false_alarm))


def _search_sums(tuner: BlockTuner, beta: float, false_alarm: float | None) -> tuple[Clamp, float, int]:
    clamps = dict.fromkeys((*tuner.clamps[:2], tuner.paper))
    tried = {(clamp, max(round(tuner.natural_block(clamp)), 1)): 0.0 for clamp in clamps}

    def rough(clamp: Clamp, block: int) -> float:
        law = tuner.rough_law(clamp)
        model = SumsModel(law, canonical_noise(tuner.notion, law.width), block)
        curve, missed = model.rough(beta), None
        if false_alarm is not None:
            missed = model.missed(SuffixAlarm.calibrated(*model.votes, false_alarm, None), curve.distances)
        return curve.quantile(beta, missed)

    for key in tried:
        tried[key] = rough(*key)
    clamp, block = min(tried, key=lambda key: tried[key])
    # Whole blocks detect a change, so that smaller ones can be better if "no change" is a possible answer.
    for factor in (0.7, 1.4) if false_alarm is None else (0.25, 0.35, 0.5, 0.7, 1.4):
        key = clamp, max(round(block * factor), 1)
        if key not in tried:
            tried[key] = rough(*key)
    clamp, block = min(tried, key=lambda key: tried[key])
    return clamp, tried[clamp, block], block


def _best_exponential(tuner: BlockTuner, beta: float) -> tuple[Clamp, float]:
    """Return the best clamp and its approximate accuracy."""
    return tuner.once(("direct", beta), lambda: _search_exponential(tuner, beta))


def _search_exponential(tuner: BlockTuner, beta: float) -> tuple[Clamp, float]:
    loss = loss_range(tuner.notion)
    designs = {
        clamp: ExponentialModel.of(tuner.rough_law(clamp), loss, beta)
        for clamp in dict.fromkeys((*tuner.clamps[:8], tuner.paper))
        if math.isfinite(tuner.natural_block(clamp))
    }
    fastest = sorted((clamp for clamp in designs if designs[clamp].decay > 0), key=lambda c: -designs[c].decay)[:2]
    tried = {clamp: designs[clamp].rough(beta).quantile(beta) for clamp in fastest}
    clamp = min(tried, key=lambda clamp: tried[clamp]) if tried else tuner.paper
    return clamp, tried.get(clamp, math.inf)


# Error rates of the blocks' tests to try: with smaller errors blocks are slightly longer, and fewer are needed.
ERRORS = (1 / 6, 0.05)


def unknown_choice(
    null: Any, distance: float, notion: Notion, beta: float, false_alarm: float | None, tests: dict[Any, FitTest]
) -> DetectorChoice:
    """Return the detector of a change from P to any law at least ``distance`` away; ``tests`` caches tests of blocks.

    Guarantees: a new block is taken for an old one with at most the test's type II error, whatever the new law is. The
    error of the index grows with that probability, so the accuracy holds for all new laws.
    """
    choices = []
    for error in each("tests of blocks", ERRORS):
        if (notion, error) not in tests:
            tests[notion, error] = fit_of_blocks(null, distance, notion, error)
        voter = voter_of(tests[notion, error])
        choice = voted_choice("fit", voter, beta, false_alarm, voter.names)
        choices.append(replace(choice, named=as_distribution(null).named))
    return min(choices, key=lambda one: one.size)


def fit_of_blocks(null: Any, distance: float, notion: Notion, error: float) -> FitTest:
    """Return the goodness-of-fit test on the smallest block at which both errors are at most ``error``."""
    return design_fit(null, distance=distance, privacy=notion, alpha=error, beta=error)


# Lengths of blocks to try, in units of the block whose noisy totals are three deviations apart.
_BLOCK_FACTORS = (0.35, 0.5, 0.7, 1.0, 1.4)


def several_choice(
    hypotheses: Pair | Hypotheses, notion: Notion, n: int | None, beta: float, false_alarm: float | None, whole: Notion
) -> DetectorChoice:
    """Return the detector of several changes with the best accuracy; raises Infeasible for too few records.

    Args:
        hypotheses: P and Q.
        notion: of one row.
        n: number of records.
        beta: probability with which a change may be missed or further off.
        false_alarm: probability of any change where there is none.
        whole: the notion of a person, for messages.
    """
    if n is None or false_alarm is None:
        raise InvalidInput("changes='several' needs n=, the number of records, and no assume_change.")
    tuner = BlockTuner.of(hypotheses, notion)
    monotone = tuner.question is not None
    best: tuple[int, Clamp, int] | None = None
    for clamp, block in _candidates(tuner, n):
        law = tuner.rough_law(clamp)
        laws = BlockLaws.of(law, canonical_noise(notion, law.width), block, (0, block))
        switches = _calibrated(laws, false_alarm, n, monotone=monotone)
        reach = None if switches is None else switches.reach(beta)
        if reach is not None and (best is None or reach * block + block // 2 < best[0]):
            best = reach * block + block // 2, clamp, block
    if best is None or 2 * best[0] > n:
        word = budget_word(whole)
        needed = "" if best is None else f" At this {word} about {2 * best[0]} records are needed."
        raise Infeasible(
            f"false_alarm={false_alarm:g} and beta={beta:g} are not reachable with n={n} records at "
            f"{notion_words(whole)}: a change in the middle would be missed or misplaced too often.{needed} Use more "
            f"records, or a larger {word}, beta or false_alarm."
        )
    _, clamp, block = best
    score = tuner.score(clamp)
    sums = SumsDetector(score, canonical_noise(notion, score.width), block)
    switches = _calibrated(sums.model.laws, false_alarm, n, monotone=monotone)
    assert switches is not None, "the rough law of the score was calibrated"
    reach = switches.reach(beta)
    assert reach is not None, "the rough law of the score had a reach"
    chance = switches.false_alarm(max(n // block, 1))
    detector = SeveralDetector(score, sums.noise, block, switches.penalty, chance, monotone)
    reaches = np.arange(max(2 * reach, 4))
    missed = np.minimum.accumulate(np.array([switches.missed(int(blocks)) for blocks in reaches]))
    curve = FailureCurve(reaches * block + block // 2, missed)
    return DetectorChoice.of("several", detector, curve, beta, _names(tuner), named=_named(tuner))


def _candidates(tuner: BlockTuner, n: int) -> Iterator[tuple[Clamp, int]]:
    """Yield the clamps and block lengths to try."""
    for clamp in dict.fromkeys((*tuner.clamps[:2], tuner.paper)):
        for factor in _BLOCK_FACTORS:
            size = factor * tuner.natural_block(clamp)
            if size <= n / 4:
                yield clamp, max(round(size), 1)


def _calibrated(laws: BlockLaws, target: float, n: int, *, monotone: bool) -> Switches | None:
    votes = block_votes(laws, monotone=monotone)
    return Switches.calibrated(votes, laws.laws[-1], laws.laws[0], target, max(n // laws.block, 1))
