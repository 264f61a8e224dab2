r"""From a pair, or P and a distance, and a notion of privacy to a detector of each method, by computed accuracy.

Clamps and block lengths worth trying come from the law of the ratio alone.
A block of B records tells P from Q when the gap of the noisy totals' means is some three standard deviations:

.. math:: (B g)^2 = D^2 (B v + \sigma_N^2), \qquad D = 3

with g and v the gap and the variance of one clamped ratio and :math:`\sigma_N^2` the noise's variance. Of all clamps,
those with the smallest such B are worth a closer look; exact laws and simulations of them decide.

For an unknown alternative: blocks with the private goodness-of-fit test (the paper's last reduction).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from privatest.changepoint.block_tests import MOST_ERROR, Voter, voter_from_dict, voter_of
from privatest.changepoint.blocks import BitDesign, BitDetector, BlockDesign, BlockDetector, FailureCurve, SuffixAlarm
from privatest.changepoint.direct import DirectDesign, DirectDetector
from privatest.charge import Draw
from privatest.decision import PrivateTest
from privatest.decision.problem import Goal, Method, Problem
from privatest.decision.tuning import Profile, Tuner, profile_of
from privatest.decision.worst_case import envelope_score, sides_of
from privatest.documents import (
    integers_from_json,
    number_from_json,
    numbers_from_json,
    wholes_from_json,
)
from privatest.engines import Records
from privatest.errors import Infeasible, InvalidDocument, InvalidInput, NothingToTest, shown
from privatest.fit import FitTest, design_fit
from privatest.hypotheses import Pair, as_distribution
from privatest.hypotheses.parse import Hypotheses
from privatest.laws.block_laws import ScoreLaw
from privatest.numbers import Floats, Integers
from privatest.privacy import Noise, Notion, Pure, RandomSource, canonical_noise
from privatest.privacy.canonical import loss_range
from privatest.privacy.notions import notion_from_json, notion_to_json, notion_words, per_row
from privatest.progress_events import each
from privatest.scores import Cells, Score, clamped_score
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
# By then some step is within 1/32 of any place.
_MOST_STEPS_TO_ZERO = 16


@dataclass(frozen=True, eq=False)
class BlockTuner:
    """Finds clamps, scores and lengths of blocks that tell P from Q at a notion of privacy.

    Of sets of distributions the pair is the one that is the hardest to tell apart, and the laws of a score are the
    worst of the sets.
    """

    pair: Pair
    notion: Notion
    question: Hypotheses | None = None
    _searches: dict[Hashable, object] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, asked: Pair | Hypotheses, notion: Notion) -> BlockTuner:
        """The tuner for a pair, or for sets."""
        if isinstance(asked, Pair):
            return cls(asked, notion)
        if sides_of(asked).above:
            raise NothingToTest(
                f"alternative {asked.alternative.describe()} lies on both sides of the null {asked.null.describe()}. A "
                "change is looked for on one side: ask for each with its own request."
            )
        return cls(asked.pair, notion, asked)

    @property
    def asked(self) -> Pair | Hypotheses:
        """The pair, or the hypotheses where one is a set."""
        return self.question or self.pair

    def once(self, key: Hashable, search: Callable[[], Found]) -> Found:
        """The result of a search, made the first time it is asked for."""
        if key not in self._searches:
            self._searches[key] = search()
        return self._searches[key]  # type: ignore[return-value]

    def at(self, notion: Notion) -> BlockTuner:
        """The same pair at another notion."""
        known: BlockTuner = self.once(("at", notion), lambda: BlockTuner(self.pair, notion, self.question))
        known.__dict__["profile"] = self.profile
        return known

    @cached_property
    def profile(self) -> Profile:
        """The law of the unclamped ratio."""
        found = profile_of(self.pair)
        return found if self.question is None else replace(found, parts=self.question.parts)

    @cached_property
    def paper(self) -> Clamp:
        """The decomposition's clamp, or about the sign of the ratio where that is very narrow."""
        a, b = (float(end) for end in paper_clamp(self.pair, self.notion.equivalent))
        least = _GRID[0] * self.profile.typical
        return (a, b) if b - a > least else (-least / 2, least / 2)

    @cached_property
    def _spread(self) -> float:
        """The variance of the notion's noise, in squares of its width."""
        return self._noise.variance / (1 << 20)

    @cached_property
    def _noise(self) -> Noise:
        return canonical_noise(self.notion, 1 << 10)

    @cached_property
    def clamps(self) -> tuple[Clamp, ...]:
        """Clamps in order of the block length they call for; on two-point domains all are the same."""
        least, most = float(self.profile.ratios[0]), float(self.profile.ratios[-1])
        if len(np.unique(self.profile.ratios)) <= 2:
            return (self.paper,)
        size = self.profile.typical
        lows = sorted({round(max(-g * size, least), 12) for g in _GRID if max(-g * size, least) < 0})
        highs = sorted({round(min(g * size, most), 12) for g in _GRID if min(g * size, most) > 0})
        found = {(a, b): self.natural_block((a, b)) for a in lows for b in highs}
        found[self.paper] = self.natural_block(self.paper)
        ranked, seen = [], set()
        for clamp in sorted(found, key=lambda clamp: found[clamp]):
            if (key := f"{found[clamp]:.6g}") not in seen:  # clamps that scale the same score alike are one
                seen.add(key)
                ranked.append(clamp)
        return tuple(ranked)

    def natural_block(self, clamp: Clamp) -> float:
        """The B of the module's formula; infinite where the clamp leaves nothing to tell."""
        ratios = np.clip(self.profile.ratios, *clamp)
        low, high = float(ratios[0]), float(ratios[-1])
        gap, null, alternative = self.profile.moments((low, high))
        if not high > low or gap <= 1e-12 * (high - low):
            return math.inf
        return _deflected(gap, (null + alternative) / 2, self._spread * (high - low) ** 2)

    def units(self, clamp: Clamp) -> int:
        """Lattice steps of a score with this clamp."""
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
        """About the law that :meth:`score` has, without its cells: for comparing clamps."""
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
        """The score with this clamp, on the coarsest lattice that holds its values."""
        score = clamped_score(self.pair, clamp, self.units(clamp))
        factor = _common(math.gcd(*(int(s) - score.low for s in np.unique(score.table))), self._noise.grain)
        if factor > 1:
            origin = score.origin + score.step * score.low
            table, support = (score.table - score.low) // factor, (score.support - score.low) // factor
            score = replace(score, table=table, support=support, origin=origin, step=score.step * factor)
        return score if self.question is None else envelope_score(self.question, score)


def law_of(score: Score) -> ScoreLaw:
    """A score's law."""
    return ScoreLaw(score.support, score.null_law, score.alternative_law, score.width)


def _steps_to_zero(low: float, high: float) -> int:
    """The fewest steps from low to high that put 0, the score of records that make no sense, near one of them."""
    share = min(max(-low / (high - low), 0.0), 1.0)
    return next(u for u in range(1, _MOST_STEPS_TO_ZERO + 1) if abs(round(share * u) / u - share) <= 1 / 32)


def _common(factor: int, grain: int) -> int:
    """What a lattice may be coarsened by, so that a width of ``grain`` steps keeps as many."""
    return factor // math.gcd(factor, grain)


def _coarsest(support: npt.NDArray[np.int64], p: Floats, q: Floats, width: int, grain: int) -> ScoreLaw:
    factor = _common(math.gcd(width, *(int(s) for s in support)), grain)
    return ScoreLaw(support // factor, p, q, width // factor)


def _deflected(gap: float, variance: float, noise: float) -> float:
    """The positive root B of (gap B)^2 = D^2 (variance B + noise)."""
    d, g = DEFLECTION**2, gap**2
    return (d * variance + math.sqrt(d * d * variance * variance + 4 * g * d * noise)) / (2 * g)


# Simulations behind a stated accuracy, and more of them for small beta. More change it by a few percent.
BLOCK_RUNS, DIRECT_RUNS, MOST_RUNS = 8_000, 3_000, 40_000
_HALVINGS = 20
# A method that looks this much worse at first sight is not looked at again.
_HOPELESS = 1.5
_KEPT = 64


class Detector(Protocol):
    """What runs on data."""

    def draw(self, records: Any, n: int, source: RandomSource) -> Draw:
        """What is drawn of n records: private. Refuses equal values of an order on both sides of a block's end."""

    def locate(self, drawn: Any, n: int) -> int | None:
        """The index, or None for "no change", from what was drawn."""


@dataclass(frozen=True, eq=False)
class Detection:
    """A detector and what is known of it before any data are seen.

    Attributes:
        notion: what one row of a person costs.
        accuracy: None where no distance has a small enough failure probability.
        voters: whose votes the alarm counts; None without alarm.
        scores: what is made of a record; empty where a test votes on blocks.
        voter: that test.
        named: whether the two descriptions tell the question from every other.
    """

    method: str
    notion: Notion
    curve: FailureCurve
    accuracy: int | None
    detector: Detector
    block: int
    clamp: tuple[float, float] | None
    null: str
    alternative: str
    alarm: SuffixAlarm | None = None
    voters: BlockDesign | BitDesign | None = None
    scores: tuple[Score, ...] = ()
    voter: Voter | None = None
    named: bool = False

    def question(self) -> dict[str, Any]:
        """What the descriptions of P and Q leave open, ready for JSON: nothing where they are complete."""
        if self.named:
            return {}
        votes = [] if self.voter is None else [self.voter.question()]
        return {"parts": [*(score.to_dict() for score in self.scores), *votes]}

    def check(self, records: Records) -> None:
        """Refuse records whose type does not fit, before anything is charged."""
        if self.voter is not None:
            self.voter.check(records)
        else:
            records.check(self.scores[0])

    @property
    def record_cells(self) -> Cells:
        """Those of the first score, or of the test that votes."""
        return (self.scores[0] if self.voter is None else self.voter.probe).cells

    def missed(self, distances: Integers) -> Floats | None:
        """Bounds on Pr["no change"] for changes this far from the end; None where "no change" is no answer."""
        return None if self.alarm is None or self.voters is None else self.voters.missed(self.alarm, distances)

    def to_dict(self) -> dict[str, Any]:
        """What :meth:`from_dict` needs besides the plan's settings: the scores or the test, the curve, the alarm."""
        bits = self.detector.design if isinstance(self.detector, BitDetector) else None
        alarm = None
        if self.alarm is not None and self.voters is not None:
            alarm = {
                "block": self.voters.block,
                "threshold": self.alarm.threshold,
                "false_alarm": self.alarm.false_alarm,
            }
        return {
            "budget": notion_to_json(self.notion),
            "named": self.named,
            "parts": [part.to_dict() for part in (self.scores if self.voter is None else (self.voter,))],
            "errors": None if bits is None else [bits.alpha, bits.beta],
            "alarm": alarm,
            "curve": {"distances": self.curve.distances.tolist(), "failures": self.curve.failures.tolist()},
        }

    @classmethod
    def from_dict(cls, document: dict[str, Any], plan: dict[str, Any]) -> Detection:
        """The detection that :meth:`to_dict` wrote, for a plan of these settings.

        Guarantees: its noise is made anew for the declared notion, or is that of a test which is checked to keep it.
        The promises (curve, errors, false alarms) are read as they were written.
        """
        method, notion = plan["method"], row_from_json(document["budget"], plan)
        curve = FailureCurve(
            integers_from_json(document["curve"]["distances"]),
            numbers_from_json(document["curve"]["failures"]),
            plan["runs"],
        )
        if (
            len(curve.distances) != len(curve.failures)
            or not len(curve.distances)
            or np.any(np.diff(curve.distances) <= 0)
        ):
            raise InvalidDocument("The curve of the failures does not fit together.")
        written = document["alarm"]
        votes: dict[str, int] = {} if written is None else wholes_from_json(written, "block", "threshold", least=0)

        def alarm(voters: BlockDesign | BitDesign) -> SuffixAlarm | None:
            if written is None:
                return None
            return SuffixAlarm(*voters.votes, votes["threshold"], number_from_json(written["false_alarm"]))

        def blocks(score: Score, budget: Notion, block: int) -> BlockDetector:
            found = BlockDesign(law_of(score), canonical_noise(budget, score.width), block)
            return BlockDetector(score, found, alarm(found))

        detector: Detector
        scores: tuple[Score, ...] = ()
        voter: Voter | None = None
        voters: BlockDesign | BitDesign | None = None
        if method in ("blocks", "direct"):
            scores = tuple(Score.from_dict(part) for part in document["parts"])
            if method == "blocks":
                detector = blocks(scores[0], notion, plan["block"])
                voters = detector.design
            else:
                half = notion if written is None else notion.share(2)
                found = DirectDesign.of(law_of(scores[0]), loss_range(half), plan["beta"])
                direct = DirectDetector(scores[0], replace(found, stride=plan["block"]))
                detector = direct
                if written is not None:
                    other = blocks(scores[1], half, max(votes["block"], 1))
                    detector, voters = _SplitDetector(other, direct), other.design
        else:
            voter = voter_from_dict(document["parts"][0])
            if not voter.notion.implies(notion):
                raise InvalidDocument("The test of the blocks costs more than the plan's epsilon.")
            errors = numbers_from_json(document["errors"])
            if voter.test.n != plan["block"] or len(errors) != 2 or not np.all((errors >= 0) & (errors <= 0.5)):
                raise InvalidDocument("The test of the blocks does not fit the plan.")
            voters = BitDesign(voter.test.n, *errors.tolist())
            detector = BitDetector(voters, voter.bits, alarm(voters))
        return cls(
            method, notion, curve, plan["accuracy"], detector, plan["block"], plan["clamp"], plan["null"],
            plan["alternative"], None if voters is None else alarm(voters), None if written is None else voters,
            scores, voter, document["named"] is True,
        )  # fmt: skip


def row_from_json(text: Any, plan: dict[str, Any]) -> Notion:
    """What one row costs in a plan of these settings, before it was rounded; refuses one that is not a row's share."""
    row, rows, whole = notion_from_json(text), plan["max_rows_per_unit"], plan["notion"]
    if whole is None:
        if isinstance(row, Pure) and float(row.loss * rows) == plan["epsilon"]:
            return row
        whole = f"epsilon={shown(plan['epsilon'])}"
    elif row == per_row(whole, rows):
        return row
    raise InvalidDocument(f"budget={text} must be the share of {whole} of each of {rows} rows, before it was rounded.")


@dataclass(frozen=True, eq=False)
class _SplitDetector:
    """Half of the budget asks the blocks whether there was a change, the other half where. Both are always drawn."""

    blocks: BlockDetector
    direct: DirectDetector

    def draw(self, records: Any, n: int, source: RandomSource) -> Draw:
        return [self.blocks.draw(records, n, source), self.direct.draw(records, n, source)]

    def locate(self, drawn: Any, n: int) -> int | None:
        sums, index = drawn
        return None if self.blocks.locate(sums, n) is None else self.direct.locate(index, n)


def auto_designs(asked: Pair | Hypotheses, notion: Notion, beta: float, false_alarm: float | None) -> list[Detection]:
    """The designs of "direct" and "blocks" that are worth comparing.

    Where "no change" is an answer, blocks give it from the sums they release anyway; "direct" would split the budget.
    Of sets, those whose accuracy holds for every member.
    """
    if isinstance(asked, Hypotheses):
        certain = ["paper"] if false_alarm is not None else ["direct", "paper"]
        problem = BlockTuner.of(asked, notion)
        return [design(asked, notion, beta, name, false_alarm, problem) for name in certain]
    key = _key(asked, notion, beta, "auto", false_alarm)
    names = ["blocks"] if false_alarm is not None else _worth.get(key) if key else None
    problem = BlockTuner.of(asked, notion)
    if names is None:
        rough = {"blocks": _best_blocks(problem, beta, false_alarm)[1], "direct": _best_direct(problem, beta)[1]}
        names = [name for name in rough if rough[name] <= _HOPELESS * min(rough.values())]
        if key:
            _worth[key] = names
    return [design(asked, notion, beta, name, false_alarm, problem) for name in names]


def design(
    asked: Pair | Hypotheses,
    notion: Notion,
    beta: float,
    method: str,
    false_alarm: float | None,
    problem: BlockTuner | None = None,
    block: int | None = None,
) -> Detection:
    """The detector of a method. Known ones are kept: they depend on public quantities only."""
    key = _key(asked, notion, beta, method, false_alarm, block)
    if key and key in _designs:
        return _designs[key]
    if isinstance(asked, Hypotheses) and (method == "blocks" or (method == "direct" and false_alarm is not None)):
        raise InvalidInput(
            f"method={shown(method)} weighs sums of blocks by one P and one Q, so what it promises does not hold for "
            "all members of a set. Use method='paper', or leave method out."
        )
    given = problem or BlockTuner.of(asked, notion)
    if method == "paper":
        found = _paper(given, beta, false_alarm, block)
    else:
        found = (_blocks if method == "blocks" else _direct)(given, beta, false_alarm)
    if key:
        while len(_designs) >= _KEPT:
            _designs.pop(next(iter(_designs)))
        _designs[key] = found
    return found


def _key(asked: Pair | Hypotheses, *settings: Hashable) -> tuple[Hashable, ...] | None:
    """What a design depends on; None where the pair has no name to be known by."""
    names = asked.null.spec, asked.alternative.spec
    return None if None in names else (*names, *settings)


_designs: dict[tuple[Hashable, ...], Detection] = {}
_worth: dict[tuple[Hashable, ...], list[str]] = {}


def _blocks(problem: BlockTuner, beta: float, false_alarm: float | None) -> Detection:
    clamp, _, block = _best_blocks(problem, beta, false_alarm)
    score = problem.score(clamp)
    found = BlockDesign(law_of(score), canonical_noise(problem.notion, score.width), block)
    curve = found.failures(beta, _runs(BLOCK_RUNS, beta))
    alarm = None if false_alarm is None else found.alarm(false_alarm, None)
    missed = None if alarm is None else found.missed(alarm, curve.distances)
    return Detection(
        "blocks", problem.notion, curve, curve.accuracy(beta, missed), BlockDetector(score, found, alarm), block,
        score.bounds(), *_names(problem), alarm, found, (score,), None, _named(problem),
    )  # fmt: skip


def _direct(problem: BlockTuner, beta: float, false_alarm: float | None) -> Detection:
    whole, alarm, voters = problem.notion, None, None
    if false_alarm is not None:
        problem = problem.at(whole.share(2))
    clamp = _best_direct(problem, beta)[0]
    score = problem.score(clamp)
    found = DirectDesign.of(law_of(score), loss_range(problem.notion), beta)
    curve, missed = found.failures(beta, _runs(DIRECT_RUNS, beta)), None
    detector: Detector = DirectDetector(score, found)
    scores: tuple[Score, ...] = (score,)
    if false_alarm is not None:
        half = design(problem.asked, problem.notion, beta, "blocks", false_alarm, problem)
        assert isinstance(half.detector, BlockDetector)
        alarm, voters, scores = half.alarm, half.detector.design, (score, half.detector.score)
        assert alarm is not None
        missed = voters.missed(alarm, curve.distances)
        detector = _SplitDetector(half.detector, DirectDetector(score, found))
    return Detection(
        "direct", whole, curve, curve.accuracy(beta, missed), detector, found.stride,
        score.bounds(), *_names(problem), alarm, voters, scores, None, _named(problem),
    )  # fmt: skip


def paper_test(problem: BlockTuner, block: int | None = None) -> PrivateTest:
    """The test of the paper's blocks: of SC records, the fewest that have advantage 2/3, or of ``block`` records.

    Guarantees: both errors are below 1/2, so that the sums of the bits drift the right way before and after a change.
    """
    asked = problem.asked
    whole = Problem.of(asked.null, asked.alternative, privacy=problem.notion)
    tuner = Tuner.of(whole, Method(), Goal.of())
    n = tuner.sample_size() if block is None else block
    test = tuner.test(n)
    if max(test.alpha, test.beta) < MOST_ERROR:
        return test
    # The largest advantage of a short block may leave one error above 1/2: they are made about equal then. Invariant:
    # at the level low the type II error is the larger of the two, at high it is not.
    low, high, method = 0.0, MOST_ERROR, Method(clamp=tuner.clamp_for(n))
    for _ in range(_HALVINGS):
        level = (low + high) / 2
        found = Tuner.of(whole, method, Goal.of(alpha=level, beta=MOST_ERROR)).test(n)
        test = min(test, found, key=lambda one: max(one.alpha, one.beta))
        low, high = (level, high) if found.beta > found.alpha else (low, level)
    if max(test.alpha, test.beta) < MOST_ERROR:
        return test
    raise Infeasible(
        f"block={n} is too short at {notion_words(problem.notion)}: its test says the wrong thing with probability "
        f"{max(test.alpha, test.beta):.3g}, and must do so with probability below 1/2. The paper's block has "
        f"{tuner.sample_size()} records."
    )


def paper_of(method: str | None, distance: float | None, **given: int | str) -> str:
    """The paper's method, to which a setting belongs that was given; refuses another one, or a fit test's own block."""
    ((name, value),) = given.items()
    if method not in (None, "auto", "paper"):
        raise InvalidInput(f"{name}={value} belongs to method='paper', not to method={method!r}. Leave one out.")
    if name == "block" and distance is not None:
        raise InvalidInput(
            f"block={value} needs the alternative Q. With distance= the blocks' test is one of goodness of fit: give "
            f"it as test=privatest.design_fit(..., n={value})."
        )
    return "paper"


def _paper(problem: BlockTuner, beta: float, false_alarm: float | None, block: int | None = None) -> Detection:
    voter = voter_of(paper_test(problem, block))
    return replace(
        bit_design("paper", voter, problem.notion, beta, false_alarm, _names(problem)), named=_named(problem)
    )


def bit_design(
    method: str, voter: Voter, notion: Notion, beta: float, false_alarm: float | None, names: tuple[str, str]
) -> Detection:
    """A detector from the votes of a test on blocks, with its alarm and its accuracy."""
    found = BitDesign(voter.test.n, voter.test.alpha, voter.test.beta)
    curve = found.failures()
    alarm = None if false_alarm is None else found.alarm(false_alarm, None)
    missed = None if alarm is None else found.missed(alarm, curve.distances)
    return Detection(
        method, notion, curve, curve.accuracy(beta, missed), BitDetector(found, voter.bits, alarm), found.block,
        voter.clamp, *names, alarm, found, voter=voter,
    )  # fmt: skip


def _runs(fewest: int, beta: float) -> int:
    return min(max(fewest, math.ceil(20 / beta)), MOST_RUNS)


def _names(problem: BlockTuner) -> tuple[str, str]:
    return problem.asked.null.describe(), problem.asked.alternative.describe()


def _named(problem: BlockTuner) -> bool:
    return problem.asked.null.named and problem.asked.alternative.named


def _best_blocks(problem: BlockTuner, beta: float, false_alarm: float | None) -> tuple[Clamp, float, int]:
    """Clamp, about the accuracy, and block length."""
    return problem.once(("blocks", beta, false_alarm), lambda: _search_blocks(problem, beta, false_alarm))


def _search_blocks(problem: BlockTuner, beta: float, false_alarm: float | None) -> tuple[Clamp, float, int]:
    clamps = dict.fromkeys((*problem.clamps[:2], problem.paper))
    tried = {(clamp, max(round(problem.natural_block(clamp)), 1)): 0.0 for clamp in clamps}

    def rough(clamp: Clamp, block: int) -> float:
        law = problem.rough_law(clamp)
        found = BlockDesign(law, canonical_noise(problem.notion, law.width), block)
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


def _best_direct(problem: BlockTuner, beta: float) -> tuple[Clamp, float]:
    """Clamp, and about the accuracy."""
    return problem.once(("direct", beta), lambda: _search_direct(problem, beta))


def _search_direct(problem: BlockTuner, beta: float) -> tuple[Clamp, float]:
    loss = loss_range(problem.notion)
    designs = {
        clamp: DirectDesign.of(problem.rough_law(clamp), loss, beta)
        for clamp in dict.fromkeys((*problem.clamps[:8], problem.paper))
        if math.isfinite(problem.natural_block(clamp))
    }
    fastest = sorted((clamp for clamp in designs if designs[clamp].decay > 0), key=lambda c: -designs[c].decay)[:2]
    tried = {clamp: designs[clamp].rough(beta).quantile(beta) for clamp in fastest}
    clamp = min(tried, key=lambda clamp: tried[clamp]) if tried else problem.paper
    return clamp, tried.get(clamp, math.inf)


# Error rates of the blocks' tests to try: blocks grow slowly as the errors fall, and fewer of them are then needed.
ERRORS = (1 / 6, 0.05)


BlockTests = dict[tuple[Notion, float], FitTest]
"""By their budget and the most that either of their errors may be."""


def unknown_design(
    null: Any, distance: float, notion: Notion, beta: float, false_alarm: float | None, known: BlockTests
) -> Detection:
    """The detector for a change from P to any law at least ``distance`` away; ``known`` keeps the tests of blocks.

    Guarantees: a block of the new regime is taken for an old one with at most the test's type II error, whatever the
    new law is; the index is the further off the larger that error is, so the accuracy holds for all of them.
    """
    found = []
    for error in each("tests of blocks", ERRORS):
        if (notion, error) not in known:
            known[notion, error] = fit_of_blocks(null, distance, notion, error)
        voter = voter_of(known[notion, error])
        one = bit_design("fit", voter, notion, beta, false_alarm, voter.names)
        found.append(replace(one, named=as_distribution(null).named))
    return min(found, key=lambda one: float("inf") if one.accuracy is None else one.accuracy)


def fit_of_blocks(null: Any, distance: float, notion: Notion, error: float) -> FitTest:
    """The goodness-of-fit test on the smallest block at which both of its errors are at most ``error``."""
    return design_fit(null, distance=distance, privacy=notion, alpha=error, beta=error)
