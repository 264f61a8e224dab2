"""The plan of a monitor: what its blocks release, when they raise the alarm, and what is promised of both.

From P and Q (or P and a distance, or a test of blocks) to the plan whose block, votes and threshold have the smallest
computed delay.
"""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from privatest.changepoint.block_sums import SumsModel, law_of
from privatest.changepoint.block_tests import Voter, voter_of
from privatest.changepoint.cusum import MOST_BLOCKS, Chart, Mixed
from privatest.changepoint.detector_search import BlockTuner, Clamp, fit_of_blocks, paper_test
from privatest.decision import PrivateTest
from privatest.decision.run import Outcome, cost_fact
from privatest.errors import Infeasible, InvalidDocument
from privatest.facts import Fact
from privatest.hypotheses import Pair
from privatest.hypotheses.parse import Hypotheses
from privatest.laws.block_laws import BlockLaws
from privatest.numbers import Floats, Integers, Number
from privatest.privacy import Notion, as_notion, canonical_noise
from privatest.privacy.notions import budget_word, notion_words
from privatest.streams.blocks import BitBlocks, Blocks, SumBlocks
from privatest.streams.paper_intervals import LONGEST_INTERVAL, Majority, recommended_interval
from privatest.streams.state_file import MONITOR, StateKind
from privatest.streams.stream_plan import Rule, StreamPlan

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Alarm(Outcome):
    """A monitor says that the stream has changed.

    Guarantees: a function of the blocks' noisy sums or bits, so it costs no privacy beyond theirs. If the stream
    changed at k* (the first record of the new regime) and no alarm was raised before k* (``seen`` was at least k*
    + 1), then abs(index - k*) <= accuracy with probability at least 1 - beta.

    Attributes:
        index: estimate of k*: the first record of the new regime, counted from 0 over the whole stream.
        accuracy: the index is off by more records than this with probability at most ``beta``, see above; computed from
            P, Q and epsilon, never from the data.
        seen: records consumed when the alarm was raised; always the end of a block.
        epsilon: privacy loss of the whole stream.
        simulated: True when the monitor's randomness came from a generator of the caller's: such an alarm is not
            private.
        design: the monitor's plan; no part of its documents.
    """

    index: int
    accuracy: int
    seen: int

    KIND: ClassVar[str] = "Alarm"

    @property
    def title(self) -> str:
        """The name, and whether it is simulated."""
        return "Alarm" if self.private else "Alarm, SIMULATED, not private"

    @property
    def sentence(self) -> str:
        """The index, its accuracy, and when the alarm was raised."""
        return f"change at record {self.index}, give or take {self.accuracy}; raised after {self.seen} records"

    def facts(self) -> list[Fact]:
        """The index, its accuracy, when the alarm was raised, and what the stream cost."""
        return [
            Fact("index", self.index, "estimate of the first record of the new regime"),
            Fact("accuracy", self.accuracy, "records, give or take"),
            Fact("seen", self.seen, "records, when it was raised"),
            *self._ending(),
        ]

    def plot(self, ax: Axes | None = None) -> Axes:
        """The index with its accuracy, and when the alarm was raised; never the data."""
        from privatest import pictures

        return pictures.alarm(self, ax)


class AlarmRule(Rule):
    """When a monitor raises the alarm. Its subclasses are frozen dataclasses, one for each method."""

    kind: ClassVar[str]

    @abstractmethod
    def quiet(self, most: int, progress: Any) -> int:
        """Number of further blocks, each voting at most ``most``, that cannot raise an alarm."""


class CusumProgress(NamedTuple):
    """Blocks so far, W after them, and the number of blocks after which W was 0 last."""

    blocks: int = 0
    level: int = 0
    zero: int = 0

    @property
    def start(self) -> int:
        """The block in which the change is placed: where the latest excursion starts."""
        return self.zero


@dataclass(frozen=True)
class Cusum(AlarmRule):
    """Raise the alarm when W, the votes' sum since it was last 0, exceeds ``threshold``."""

    threshold: int
    kind: ClassVar[str] = "cusum"
    begin: ClassVar[CusumProgress] = CusumProgress()
    progress: ClassVar[type[CusumProgress]] = CusumProgress

    def __post_init__(self) -> None:
        if self.threshold < 0:
            raise InvalidDocument(f"threshold={self.threshold} must be a whole number of at least 0.")

    def feed(self, progress: CusumProgress, votes: Sequence[int]) -> tuple[CusumProgress, int | None]:
        (blocks, level, zero), threshold = progress, self.threshold
        for vote in votes:
            blocks += 1
            level += vote
            if level <= 0:
                level, zero = 0, blocks
            elif level > threshold:
                return CusumProgress(blocks, level, zero), blocks - progress.blocks - 1
        return CusumProgress(blocks, level, zero), None

    def quiet(self, most: int, progress: CusumProgress) -> int:
        return (self.threshold - progress.level) // most if most > 0 else sys.maxsize

    def check(self, progress: CusumProgress) -> None:
        """Refuse a progress that cannot be."""
        if not 0 <= progress.zero <= progress.blocks or progress.level < 0:
            raise InvalidDocument("The progress of the monitor does not fit together.")


class IntervalsProgress(NamedTuple):
    """Blocks so far, and the bits (z, +1 for "as before") of the last whole interval and of the present one."""

    blocks: int = 0
    last: tuple[int, ...] = ()
    present: tuple[int, ...] = ()

    @property
    def start(self) -> int:
        """The block in which the change is placed: the first argmin of the suffix sums of the bits."""
        bits = np.array(self.last + self.present, dtype=np.int64)
        return self.blocks - len(bits) + int(np.argmin(np.cumsum(bits[::-1])[::-1]))


@dataclass(frozen=True)
class Intervals(AlarmRule):
    """Raise the alarm when an interval of ``interval`` blocks has more votes for the new regime than for the old."""

    interval: int
    kind: ClassVar[str] = "paper"
    begin: ClassVar[IntervalsProgress] = IntervalsProgress()
    progress: ClassVar[type[IntervalsProgress]] = IntervalsProgress

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise InvalidDocument(f"interval={self.interval} must be a whole number of at least 1.")

    def feed(self, progress: IntervalsProgress, votes: Sequence[int]) -> tuple[IntervalsProgress, int | None]:
        last, present = progress.last, list(progress.present)
        for place, vote in enumerate(votes):
            present.append(-1 if vote > 0 else 1)
            if len(present) == self.interval:
                if sum(present) < 0:
                    return IntervalsProgress(progress.blocks + place + 1, last, tuple(present)), place
                last, present = tuple(present), []
        return IntervalsProgress(progress.blocks + len(votes), last, tuple(present)), None

    def quiet(self, most: int, progress: IntervalsProgress) -> int:  # noqa: ARG002 - only the last of an interval may
        return self.interval - len(progress.present) % self.interval - 1

    def check(self, progress: IntervalsProgress) -> None:
        """Refuse a progress that cannot be."""
        bits = {*progress.last, *progress.present} <= {1, -1} and len(progress.present) <= self.interval
        if not bits or len(progress.last) not in (0, self.interval) or progress.blocks < len(progress.present):
            raise InvalidDocument("The progress of the monitor does not fit together.")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MonitorPlan(StreamPlan):
    """Everything that a monitor needs besides its records: frozen, and restored from JSON.

    Attributes:
        blocks: what the blocks release and vote.
        rule: when to raise the alarm.
        beta, accuracy: as :class:`Alarm` states them.
        mean_time_between_false_alarms: bound from below on the mean number of records till a false alarm.
        expected_delay: bound from above on the mean number of records after k* till the alarm.
        delay_bound: records after k* by which the alarm was raised with probability at least 1 - beta.
        recommended_interval: blocks in an interval of the paper's method that meet its targets; None with "cusum".
        null, alternative: short descriptions.
        notion: what the whole stream meets.
        max_rows_per_unit: the most rows of one person that count; None: each record is a person of its own.
    """

    FORMAT: ClassVar[str] = "privatest/monitor-plan/1"
    KIND: ClassVar[str] = "plan of a monitor"
    STATE: ClassVar[StateKind] = MONITOR

    blocks: Blocks
    rule: AlarmRule
    beta: float
    accuracy: int
    mean_time_between_false_alarms: float
    expected_delay: float
    delay_bound: int
    recommended_interval: int | None = None
    null: str
    alternative: str
    notion: Notion
    max_rows_per_unit: int | None = None

    def __post_init__(self) -> None:
        numbers = (self.beta, self.mean_time_between_false_alarms, self.expected_delay)
        if min(numbers) <= 0 or not all(map(math.isfinite, numbers)) or min(self.accuracy, self.delay_bound) < 0:
            raise InvalidDocument("The promises of the monitor do not fit together.")
        super().__post_init__()

    @property
    def method(self) -> str:
        """ "cusum" or "paper"."""
        return self.rule.kind

    @property
    def threshold(self) -> int | None:
        """h, which W must exceed for an alarm, in votes; None with the paper's method."""
        return self.rule.threshold if isinstance(self.rule, Cusum) else None

    @property
    def interval(self) -> int | None:
        """Blocks in an interval of the paper's method; None with "cusum"."""
        return self.rule.interval if isinstance(self.rule, Intervals) else None

    @property
    def false_alarm(self) -> float | None:
        """Probability that one interval of old records raises the alarm, with the paper's method; None with "cusum"."""
        return None if self.interval is None else self.interval * self.block / self.mean_time_between_false_alarms

    def quiet(self, progress: Any) -> int:
        """Number of further blocks that cannot raise an alarm, whatever they release.

        Args:
            progress: where the rule stands.
        """
        return self.rule.quiet(self.blocks.most_vote, progress) if isinstance(self.blocks, SumBlocks) else 0

    @property
    def result_class(self) -> type[Alarm]:
        """The class of the alarm."""
        return Alarm

    def result(self, progress: Any, origin: int, end: int) -> dict[str, Any]:
        """The fields of the alarm at the record ``end``.

        Args:
            progress: where the rule stands.
            origin: the record at which the rule began.
            end: the record after the last one of the block.
        """
        return {"index": origin + progress.start * self.block, "accuracy": self.accuracy, "seen": end}

    def question(self) -> dict[str, Any]:
        """What the releases depend on besides the data, ready for JSON."""
        return self._question(blocks=self.blocks.question())

    @property
    def title(self) -> str:
        """The question in a few words."""
        return f"Monitor of a change from {self.null} to {self.alternative}"

    def facts(self) -> list[Fact]:
        """The question and the promises."""
        sure = f"records by which it is raised, with probability {1 - self.beta:g}"
        between = self.mean_time_between_false_alarms
        return [
            Fact("null", self.null, "the old regime"),
            Fact("alternative", self.alternative, "the new regime"),
            cost_fact(self.privacy, "of the whole stream"),
            Fact("beta", self.beta, "probability with which the alarm's index may be further off than its accuracy"),
            Fact("method", self.method),
            Fact("block", self.block, "records in a block"),
            Fact("interval", self.interval, "blocks in an interval of the paper's method"),
            Fact("recommended_interval", self.recommended_interval, "the smallest that meets the targets"),
            Fact("false_alarm", self.false_alarm, "probability of an alarm in one interval where nothing changed"),
            Fact("accuracy", self.accuracy, "that an alarm will carry, in records"),
            Fact("expected_delay", self.expected_delay, "records from the change till the alarm on average, at most"),
            Fact("delay_bound", self.delay_bound, sure),
            Fact("mean_time_between_false_alarms", between, "in records, at least"),
            Fact("max_rows_per_unit", self.max_rows_per_unit, "rows of one person that count in the whole stream"),
        ]

    def __repr__(self) -> str:
        return (
            f"MonitorPlan({self.null} to {self.alternative}, {notion_words(self.privacy)}, method={self.method!r}, "
            f"block={self.block}, mean_time_between_false_alarms={self.mean_time_between_false_alarms:.4g}, "
            f"expected_delay={self.expected_delay:.4g}, accuracy={self.accuracy})"
        )


METHODS = ("cusum", "paper")
# False alarms are this many times as far apart as records are needed to tell P from Q, unless another rate is given.
DEFAULT_RARITY = 1_000
# Blocks to try, in units of the block that tells P from Q by three deviations.
_FACTORS = (0.08, 0.12, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0)
_FIRST_FACTOR = 0.35
# Votes are log-likelihood ratios in sixteenths of a nat, finer where blocks say little.
_UNIT, _FINEST_UNIT, _UNITS_PER_DEVIATION = 1 / 16, 1 / 128, 8
_LARGEST_VOTE = 40.0
# Error rates of the goodness-of-fit tests to try.
_ERRORS = (1 / 3, 1 / 6, 0.05)
_OFFSETS = 17


@dataclass(frozen=True)
class MonitorTargets:
    """What a monitor is to reach.

    Attributes:
        beta: probability with which an alarm's index may be further off than its accuracy.
        records: records between false alarms; None: by :data:`DEFAULT_RARITY`.
        interval: blocks in an interval of the paper's method; None: as computed.
        block: records in a block of the paper's method; None: as computed.
    """

    beta: float
    records: float | None
    interval: int | None
    block: int | None = None

    def between(self, enough: float) -> float:
        """Records between false alarms, where ``enough`` records tell P from Q."""
        if self.records is not None:
            return self.records
        return float(f"{DEFAULT_RARITY * max(enough, 1.0):.1e}")


def pair_plan(
    hypotheses: Pair | Hypotheses, privacy: Notion | Number, method: str, targets: MonitorTargets
) -> MonitorPlan:
    """The monitor of a method for a known alternative, or for sets of distributions; a number is an epsilon.

    Guarantees, of sets: the scores' laws are the worst of the sets and votes never rise with a block's sum, so that the
    time between false alarms is at least the stated one, and the delay at most, whatever the members are.
    """
    notion = as_notion(privacy)
    tuner = BlockTuner.of(hypotheses, notion)
    names = hypotheses.null.describe(), hypotheses.alternative.describe()
    records = targets.between(tuner.natural_block(tuner.clamps[0]))
    if method == "paper":
        test = paper_test(tuner, targets.block)
        return _by_majority(_bit_blocks(test), test.alpha, test.beta, targets, records, names, notion)
    clamp, block = _best(tuner, records)
    score = tuner.score(clamp)
    model = SumsModel(law_of(score), canonical_noise(notion, score.width), block)
    laws = model.laws
    votes = _votes(laws)
    if tuner.question is not None:
        votes = np.minimum.accumulate(votes)
    chart = _calibrated(votes, laws.laws[-1], laws.laws[0], records, block, notion)
    mixed = [Mixed(old, law) for old, law in zip(laws.olds[:-1], laws.laws[:-1], strict=True)]
    blocks = SumBlocks(score, model.noise, block, laws.first, laws.bin_width, votes)
    return _by_chart(blocks, chart, mixed, targets, names, notion)


def unknown_plan(
    null: Any, distance: float, privacy: Notion | Number, method: str, targets: MonitorTargets
) -> MonitorPlan:
    """The monitor of a method for an unknown alternative, at least ``distance`` away in total variation.

    Guarantees: the errors of new blocks are at most the test's, whatever the new law is; delay and accuracy are
    computed at the largest errors, at which they are worst.
    """
    notion, errors = as_notion(privacy), _ERRORS if method == "cusum" else _ERRORS[:1]
    voters = [voter_of(fit_of_blocks(null, distance, notion, error)) for error in errors]
    return voted_plan(voters, notion, method, targets, voters[0].names)


def voted_plan(
    voters: Sequence[Voter], notion: Notion, method: str, targets: MonitorTargets, names: tuple[str, str]
) -> MonitorPlan:
    """The monitor of a method from the bits of tests on blocks: of several, with the one of the smallest delay.

    Guarantees: false alarms, delay and accuracy are computed at the tests' stated errors; where these are bounds, they
    are worst there.
    """
    records = targets.between(voters[0].test.n)
    if method == "paper":
        voter, test = voters[0], voters[0].test
        return _by_majority(BitBlocks(voter, -1, 1), test.alpha, test.beta, targets, records, names, notion)
    charts = []
    for voter in voters:
        alpha, beta = voter.test.alpha, voter.test.beta
        old, new = np.array([alpha, 1 - alpha]), np.array([1 - beta, beta])
        charts.append(_calibrated(_bit_votes(alpha, beta), old, new, records, voter.test.n, notion))
    voter, chart = min(zip(voters, charts, strict=True), key=lambda one: _delay(one[1], one[0].test.n))
    n = voter.test.n
    offsets = np.unique(np.linspace(0, n - 1, min(n, _OFFSETS)).astype(np.int64)).tolist()
    mixed = [Mixed(old, law) for old in offsets for law in np.eye(2)]
    return _by_chart(BitBlocks(voter, int(chart.votes[1]), int(chart.votes[0])), chart, mixed, targets, names, notion)


def _by_chart(
    blocks: SumBlocks | BitBlocks,
    chart: Chart,
    mixed: Iterable[Mixed],
    targets: MonitorTargets,
    names: tuple[str, str],
    notion: Notion,
) -> MonitorPlan:
    block, beta = blocks.block, targets.beta
    accuracy = chart.accuracy(beta, block, list(mixed))
    if accuracy is None:
        raise Infeasible(
            f"No distance is exceeded with probability at most beta={beta:g} at {notion_words(notion)} by the "
            f"index of the alarm. Use a larger {budget_word(notion)} or beta."
        )
    between = block * chart.blocks_between_false_alarms
    late = block - 1 + block * chart.blocks_within(beta)
    return MonitorPlan(
        blocks=blocks,
        rule=Cusum(chart.threshold),
        beta=beta,
        accuracy=accuracy,
        mean_time_between_false_alarms=between,
        expected_delay=_delay(chart, block),
        delay_bound=late,
        null=names[0],
        alternative=names[1],
        notion=notion,
    )


def _delay(chart: Chart, block: int) -> float:
    """Records after k*: the rest of its block, then whole blocks from W = 0."""
    return block - 1 + block * chart.blocks_to_alarm


def _by_majority(
    blocks: SumBlocks | BitBlocks,
    alpha: float,
    beta: float,
    targets: MonitorTargets,
    records: float,
    names: tuple[str, str],
    notion: Notion,
) -> MonitorPlan:
    block = blocks.block
    recommended = recommended_interval(block, alpha, beta, targets.beta, records)
    interval = targets.interval or recommended
    if interval is None:
        raise Infeasible(
            f"mean_time_between_false_alarms={records:g} would take intervals of more than {LONGEST_INTERVAL} blocks. "
            "Ask for less, use method='cusum', or give an interval: what it promises is computed."
        )
    rule = Majority(interval, block, alpha, beta)
    between = min(rule.time_between_false_alarms, 1e300)
    return MonitorPlan(
        blocks=blocks,
        rule=Intervals(interval),
        beta=targets.beta,
        accuracy=rule.accuracy_within(targets.beta),
        mean_time_between_false_alarms=between,
        expected_delay=rule.expected_delay,
        delay_bound=rule.delay_within(targets.beta),
        recommended_interval=recommended,
        null=names[0],
        alternative=names[1],
        notion=notion,
    )


def _best(tuner: BlockTuner, records: float) -> tuple[Clamp, int]:
    """Clamp and block length of the smallest expected delay."""
    tried: dict[tuple[Clamp, int], float] = {}

    def delay(clamp: Clamp, factor: float) -> float:
        block = max(round(factor * tuner.natural_block(clamp)), 1)
        if (clamp, block) not in tried:
            law = tuner.rough_law(clamp)
            laws = BlockLaws.of(law, canonical_noise(tuner.notion, law.width), block, (0, block))
            chart = _chart(_votes(laws), laws.laws[-1], laws.laws[0], records / block)
            tried[clamp, block] = math.inf if chart is None else _delay(chart, block)
        return tried[clamp, block]

    clamps = list(dict.fromkeys((*tuner.clamps[:4], tuner.paper)))
    clamp = min(clamps, key=lambda one: delay(one, _FIRST_FACTOR))
    _descend(lambda i: delay(clamp, _FACTORS[i]), _FACTORS.index(_FIRST_FACTOR))
    best: tuple[Clamp, int] = min(tried, key=lambda key: tried[key])
    return best


def _descend(value: Callable[[int], float], start: int) -> None:
    """Walk from ``start`` in both directions for as long as the value falls."""
    for step in (-1, 1):
        place = start
        while 0 <= place + step < len(_FACTORS) and value(place + step) < value(place):
            place += step


def _chart(votes: Integers, old: Floats, new: Floats, blocks: float) -> Chart | None:
    """The chart with the smallest threshold; None where old blocks do not vote down, or no threshold will do."""
    if float(votes @ old) >= 0 or float(votes @ new) <= 0:
        return None
    return Chart.calibrated(votes, old, new, blocks)


def _calibrated(votes: Integers, old: Floats, new: Floats, records: float, block: int, notion: Notion) -> Chart:
    chart = _chart(votes, old, new, records / block)
    if chart is not None:
        return chart
    if records / block > MOST_BLOCKS:
        raise Infeasible(
            f"mean_time_between_false_alarms={records:g} is more than {MOST_BLOCKS:g} blocks of {block} records, "
            f"which is beyond what can be computed. Ask for at most {float(MOST_BLOCKS) * block:g}."
        )
    raise Infeasible(
        f"mean_time_between_false_alarms={records:g} is not reachable at {notion_words(notion)}: the blocks tell too "
        f"little. Use a larger {budget_word(notion)}, or ask for less."
    )


def _votes(laws: BlockLaws) -> Integers:
    """Log-likelihood ratios of new against old, as integers; the last of ``laws`` is old, the first new."""
    nats = np.clip(laws.log_laws[0] - laws.log_laws[-1], -_LARGEST_VOTE, _LARGEST_VOTE)
    mean = float(laws.laws[-1] @ nats)
    deviation = math.sqrt(max(float(laws.laws[-1] @ (nats - mean) ** 2), 1e-12))
    unit = min(_UNIT, max(deviation / _UNITS_PER_DEVIATION, _FINEST_UNIT))
    votes: Integers = np.rint(nats / unit).astype(np.int64)
    return votes


def _bit_votes(alpha: float, beta: float) -> Integers:
    """Votes of "new" and of "as before"."""
    odds = [math.log((1 - beta) / max(alpha, 1e-17)), -math.log((1 - alpha) / max(beta, 1e-17))]
    votes = np.rint(np.clip(odds, -_LARGEST_VOTE, _LARGEST_VOTE) / _UNIT).astype(np.int64)
    factor = max(math.gcd(*(int(vote) for vote in votes)), 1)
    reduced: Integers = votes // factor
    return reduced


def _bit_blocks(test: PrivateTest) -> SumBlocks:
    """Blocks of a test of P against Q: two bins, below and above its cutoff."""
    noise = test.noise
    first = (test.cutoff - noise.offset).__floor__() + 1  # T > cutoff exactly when floor(T) >= first
    return SumBlocks(test.score, noise, test.n, first, 1, np.array([1, -1], dtype=np.int64))
